"""`python benchmarks/public_gpu_kernels.py CHECKOUTS [--only TEXT]`: Mosaic GPU kernels of openxla/tokamax, judged.

CHECKOUTS is a folder with a checkout of tokamax, named `openxla+tokamax`; none of its code is here. It needs Python
3.12 and jax 0.12. Each call is traced on a CPU as one for its chip, of which the answers are made up. What is said of
it is kept in `tests/cases/mosaic_gpu_kernels.json`, with the reason of each that is not traced. From there
`python -m tests.pallas.mosaic_gpu_page` takes its table. Records (`--record`) do not keep all of a GPU's kernel.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent / "public_functions"))

from modules import Absent

ROWS = Path(__file__).resolve().parents[1] / "tests" / "cases" / "mosaic_gpu_kernels.json"
REPOSITORY = "openxla/tokamax"
OPS = "tokamax._src.ops"
CHIPS = {"a100": ("8.0", 108), "h100": ("9.0", 132), "b200": ("10.0", 148)}
"""Of each chip its compute capability, and how many multiprocessors it has."""
BARE = (
    "tokamax", "tokamax._src", OPS, f"{OPS}.attention", f"{OPS}.gated_linear_unit", f"{OPS}.ragged_dot",
    "tokamax._src.autotuning", "tokamax._src.pallas",
)  # fmt: skip
"""Packages whose `__init__` is not run."""

Made = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class GpuCall:
    """One call. make: the function and its arguments, once its modules can be imported.

    keeps: what its callers keep to, as assumptions on tables: sizes of groups that are not negative and fit.
    """

    name: str
    chip: str
    make: Callable[[], Made]
    keeps: tuple[str, ...] = ()


@contextmanager
def of_chip(chip: str) -> Iterator[None]:
    """Answers what is asked of a GPU while a function is traced."""
    import jax
    from jax.extend import backend

    capability, many = CHIPS[chip]
    device = SimpleNamespace(core_count=many, platform="gpu", device_kind=chip, compute_capability=capability)
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(backend, "get_default_device", return_value=device))
        for name in ("devices", "local_devices"):
            stack.enter_context(mock.patch.object(jax, name, return_value=[device]))
        yield


class StandIns(Absent):
    """Finds what is not installed and no kernel of the list needs."""

    NAMES = frozenset({"xprof", "triton", "einshape", "jax_triton"})


class _EveryName(types.ModuleType):
    """A module whose names all stand for classes."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return object


def prepare(root: Path) -> None:
    """Makes the modules of a checkout importable: quantised arrays, and checks of shapes, are stand-ins."""
    import jax

    sys.path.insert(0, str(root))
    for name in BARE:
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")))]
        sys.modules[name] = package
    sys.meta_path.append(StandIns())

    @jax.tree_util.register_dataclass
    @dataclass
    class QArray:
        qvalue: Any
        scale: Any
        zero_point: Any = None
        qtype: Any = dataclasses.field(default=None, metadata={"static": True})
        shape = property(lambda self: self.qvalue.shape)
        ndim = property(lambda self: len(self.qvalue.shape))
        dtype = property(lambda self: self.scale.dtype)
        scale_tile_shape = property(
            lambda self: tuple(n // m for n, m in zip(self.qvalue.shape, self.scale.shape, strict=True))
        )

    for name in ("qwix", "qwix._src", "qwix._src.core", "qwix._src.core.qarray", "qwix.pallas"):
        sys.modules[name] = made = _EveryName(name)
        made.__path__, made.QArray = [], QArray  # type: ignore[attr-defined]
    sys.modules["tokamax._src.jaxtyping"] = shapes = _EveryName("tokamax._src.jaxtyping")
    shapes.jaxtyped = lambda function: function  # type: ignore[attr-defined]


def module(name: str) -> Any:
    """A module of the operations."""
    return importlib.import_module(f"{OPS}.{name}")


def array(shape: tuple[int, ...], dtype: str = "bfloat16") -> Any:
    import jax
    import jax.numpy as jnp

    return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))


def _attention(generation: str, causal: bool = False, residuals: bool = False, **config: Any) -> Callable[[], Made]:
    def make() -> Made:
        own = module(f"attention.pallas_mosaic_gpu_kernel_{generation}")
        options = {
            "is_causal": causal, "logits_soft_cap": None, "logits_scale": 0.125, "out_dtype": array(()).dtype,
            "normalize_output": True, "return_residuals": residuals, "use_stable_softmax": True,
            "rescale_threshold": 1.0, "config": own.Config(**config),
        }  # fmt: skip
        nothing = (None,) * 4
        return lambda *qkv: own.flash_attention_kernel(*qkv, *nothing, **options), (array((1024, 4, 64)),) * 3

    return make


def _attention_vjp(generation: str, **config: Any) -> Callable[[], Made]:
    def make() -> Made:
        own = module(f"attention.pallas_mosaic_gpu_vjp_kernel_{generation}")
        of = own if generation == "sm100" else module("attention.pallas_mosaic_gpu_vjp_common")
        options = {
            "logits_scale": 0.125, "logits_soft_cap": None, "is_causal": False, "ds_dtype": None,
            "config": of.Config(**config),
        }  # fmt: skip
        nothing = (None,) * 4

        def run(q: Any, k: Any, v: Any, most: Any, sums: Any, out: Any, dout: Any) -> Any:
            return own.flash_attention_vjp_kernel(q, k, v, (most, sums), out, dout, *nothing, **options)

        row = array((4, 1024), "float32")
        return run, (*(array((1024, 4, 64)),) * 3, row, row, *(array((1024, 4, 64)),) * 2)

    return make


def _gated(generation: str, **config: Any) -> Callable[[], Made]:
    def make() -> Made:
        import jax

        own = module(f"gated_linear_unit.pallas_mosaic_gpu_kernel_{generation}")
        options = {
            "activation": jax.nn.silu,
            "config": module("gated_linear_unit.pallas_mosaic_gpu_common").Config(**config),
        }
        return lambda x, w: own.gated_linear_unit(x, w, **options), (array((512, 256)), array((256, 2, 512)))

    return make


GROUPS, SUBCHANNEL = 4, 128


def _ragged(file: str, function: str, kinds: tuple[str, str] | None = None, **config: Any) -> Callable[[], Made]:
    """kinds: element types of the left operand and of the right one, where the right one is quantised."""

    def make() -> Made:
        import jax.numpy as jnp

        own = module(f"ragged_dot.pallas_mosaic_gpu_kernel_{file}")
        common = module("ragged_dot.pallas_mosaic_gpu_common")
        said = common.Config(**{"num_stages": 2, "split_k": 1, **config})
        left, right = array((512, 512)), array((GROUPS, 512, 512))
        if "contracting" in function:
            right = left
        if kinds is not None:
            made = sys.modules["qwix"].QArray
            rows = array((GROUPS, 512 // SUBCHANNEL, 512))
            right = made(array((GROUPS, 512, 512), kinds[1]), rows, None, jnp.dtype(kinds[1]))
        if kinds is not None and kinds[0] != "bfloat16":
            # one of fp8 has sums of its rows beside its scales
            scale = array((512, 4)) if kinds[0] == "int8" else array((512, 8), "float32")
            left = made(array((512, 512), kinds[0]), scale, None, jnp.dtype(kinds[0]))
        run = getattr(own, function)
        sizes = array((GROUPS,), "int32")
        return lambda a, b, sizes: run(a, b, sizes, jnp.bfloat16, said), (left, right, sizes)

    return make


_DOT = {"block_m": 64, "block_n": 64, "block_k": 128, "grid_minor_dim": 0}
_DOT100 = {"block_m": 64, "block_n": 128, "block_k": 128}
_BLOCKS = {"block_q": 64, "block_kv": 128, "num_stages": 2}
_GATED80 = {"tile_m": 64, "tile_n": 64, "tile_k": 32}
_GATED = {"tile_m": 128, "tile_n": 64, "tile_k": 64}
_VJP = {"block_kv_dkv": 128, "block_kv_dq": 128}

CALLS = (
    GpuCall("attention sm90", "h100", _attention("sm90", **_BLOCKS)),
    GpuCall("attention sm90 causal", "h100", _attention("sm90", True, **_BLOCKS)),
    GpuCall("attention sm90 persistent", "h100", _attention("sm90", persistent=True, **_BLOCKS)),
    GpuCall("attention sm90 residuals", "h100", _attention("sm90", False, True, persistent=True, **_BLOCKS)),
    GpuCall("attention sm100", "b200", _attention("sm100", block_q=256, block_kv=128, num_stages=2)),
    GpuCall("attention vjp sm90", "h100", _attention_vjp("sm90", block_q_dkv=64, block_q_dq=64, **_VJP)),
    GpuCall("attention vjp sm100", "b200", _attention_vjp("sm100", block_q_dkv=128, block_q_dq=128, **_VJP)),
    GpuCall("gated linear unit sm80", "a100", _gated("sm80", num_stages=2, **_GATED80)),
    GpuCall("gated linear unit sm90", "h100", _gated("sm90", **_GATED)),
    GpuCall("gated linear unit sm90 cluster", "h100", _gated("sm90", cluster_size_m=2, **_GATED)),
    GpuCall("gated linear unit sm100", "b200", _gated("sm100", **_GATED)),
    GpuCall("ragged dot sm90", "h100", _ragged("sm90", "ragged_dot_kernel", persistent=False, **_DOT)),
    GpuCall("ragged dot sm90 persistent", "h100", _ragged("sm90", "ragged_dot_kernel", **_DOT)),
    GpuCall(
        "ragged contracting dot sm90", "h100", _ragged("sm90", "ragged_contracting_dim_dot_kernel", **_DOT),
        ("0 <= args[0] <= 512", "0 <= args[1] <= 512", "args[1][i] + args[0][i] <= 512"),
    ),
    GpuCall(
        "ragged dot sm90 int4", "h100",
        _ragged("sm90_quant", "ragged_dot_quantized_kernel", ("bfloat16", "int4"), **_DOT),
    ),
    GpuCall(
        "ragged dot sm100", "b200",
        _ragged(
            "sm100", "ragged_dot_gpu_non_quant_blackwell_kernel", block_m=64, block_n=128, block_k=256,
            persistent=False, collective=True, grid_minor_dim=0, grid_tile_width=4,
        ),
    ),
    GpuCall(
        "ragged dot sm100 int4", "b200",
        _ragged("sm100_quant", "ragged_dot_gpu_quant_blackwell_kernel", ("bfloat16", "int4"), **_DOT100),
    ),
    GpuCall(
        "ragged dot sm100 int4, scaled after", "b200",
        _ragged(
            "sm100_quant_post_scale", "ragged_dot_gpu_quant_post_scale_blackwell_kernel", ("bfloat16", "int4"),
            post_scale=True, **_DOT100,
        ),
    ),
    GpuCall(
        "ragged dot sm100 int8 x int4", "b200",
        _ragged(
            "sm100_i8_quant", "ragged_dot_gpu_i8_quant_blackwell_kernel", ("int8", "int4"),
            **_DOT100 | {"block_m": 16},
        ),
    ),
    GpuCall(
        "ragged dot sm100 fp8 x int4", "b200",
        _ragged(
            "sm100_fp8_quant", "ragged_dot_gpu_fp8_quant_blackwell_kernel", ("float8_e4m3fn", "int4"),
            **_DOT100 | {"block_m": 16},
        ),
    ),
)  # fmt: skip
"""Every kernel file of tokamax for Mosaic GPU, with the configurations of its own heuristics where they are small."""


def judged(call: GpuCall) -> dict[str, Any]:
    """What is said of one call: counts of errors by their verdicts, and the reasons of what is not proved."""
    from layoutproof.core.errors import LayoutError
    from layoutproof.pallas.from_jax.trace import kernels_of
    from tests.pallas.mosaic_gpu_page import said_of

    said: dict[str, Any] = {"call": call.name, "chip": call.chip, "assumed": call.keeps}
    try:
        with of_chip(call.chip):
            function, arguments = call.make()
            found = kernels_of(function, arguments, target="v5e", assume=call.keeps)
    except (LayoutError, ImportError, ValueError, NotImplementedError) as error:
        return {**said, "failed": f"{type(error).__name__}: {error}".splitlines()[0].partition(" (/")[0]}
    apart = [said_of([kernel]) for kernel in found]
    count = {verdict: sum(each[verdict] for each, _ in apart) for verdict in ("proved", "unknown", "refuted")}
    whole = sum(not each["unknown"] and not each["refuted"] for each, _ in apart)
    reasons = list(dict.fromkeys(reason for _, more in apart for reason in more))
    return {**said, "kernels": len(found), "whole": whole, **count, "reasons": reasons}


def main(arguments: Sequence[str] | None = None) -> None:
    """Judges all calls, or those whose name has a text, whose rows take their places among those that are kept."""
    import jax

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", default="", metavar="TEXT", help="the calls whose name has it; others are kept")
    options = parser.parse_args(arguments)
    root = options.checkouts / REPOSITORY.replace("/", "+")
    if not root.is_dir():
        sys.exit(f"no checkout of {REPOSITORY}: {root} is no folder")
    asked = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    prepare(root.absolute())
    kept = json.loads(ROWS.read_text("utf-8"))["rows"] if ROWS.exists() else []
    rows = {row["call"]: row for row in kept}
    for call in CALLS:
        if options.only in call.name:
            rows[call.name] = judged(call)
            print(json.dumps(rows[call.name])[:300], flush=True)
    origin = {"repository": REPOSITORY, "commit": asked.stdout.strip(), "jax": jax.__version__}
    ordered = [rows[call.name] for call in CALLS if call.name in rows]
    ROWS.write_text(json.dumps({**origin, "rows": ordered}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
