"""Kernels of `plgpu.kernel`: a grid whose programs all run at once, whole arrays, and what the body does with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="finding Pallas calls needs the extra [jax]")

from layoutproof.cli import main as cli  # noqa: E402
from layoutproof.core.result import Verdict  # noqa: E402
from layoutproof.kernel.kernel import Kernel  # noqa: E402
from layoutproof.pallas.findings import Judged, judged  # noqa: E402
from layoutproof.pallas.from_jax.trace import kernels_of  # noqa: E402

pytestmark = pytest.mark.slow

SOURCE = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu


def kernel(body, x, grid=(8,), names=("i",), **options):
    made = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return plgpu.kernel(body, out_type=made, grid=grid, grid_names=names, **options)(x)


def stores(x, at, **options):
    def body(x_ref, o_ref):
        i = jax.lax.axis_index("i")
        o_ref[pl.ds(at(i), 128)] = x_ref[pl.ds(i * 128, 128)] * 2

    return kernel(body, x, **options)


def apart(x):
    return stores(x, lambda i: i * 128)


def backwards(x):
    return stores(x, lambda i: (7 - i) * 128)


def one_place(x):
    return stores(x, lambda i: 0)


def overlapping(x):
    return stores(x, lambda i: i * 120)


def folded(x):
    return stores(x, lambda i: (i % 4) * 128)


def past(x):
    return stores(x, lambda i: i * 128 + 8)


def threads(x):
    return stores(x, lambda i: i * 128, num_threads=2, thread_name="t")


def two_dims(x):
    def body(x_ref, o_ref):
        at = jax.lax.axis_index("i") * 512 + jax.lax.axis_index("j") * 128
        o_ref[pl.ds(at, 128)] = x_ref[pl.ds(at, 128)]

    return kernel(body, x, (2, 4), ("i", "j"))


def forgets_j(x):
    def body(x_ref, o_ref):
        at = jax.lax.axis_index("i") * 512
        o_ref[pl.ds(at, 128)] = x_ref[pl.ds(at, 128)]

    return kernel(body, x, (2, 4), ("i", "j"))
"""


@pytest.fixture(scope="module")
def of() -> Callable[[str], Judged]:
    pytest.importorskip("jax.experimental.pallas.mosaic_gpu", reason="JAX's Mosaic GPU cannot be imported (absl-py)")
    names: dict[str, Any] = {}
    exec(SOURCE, names)

    def judged_call(name: str) -> Judged:
        (call,) = kernels_of(names[name], (jax.ShapeDtypeStruct((1024,), "float32"),))
        return judged(call, target="mosaic_gpu")

    return judged_call


@pytest.mark.parametrize("name", ["apart", "backwards", "two_dims"])
def test_programs_that_store_apart_are_proved(name: str, of: Callable[[str], Judged]) -> None:
    call = of(name)
    assert isinstance(call.call, Kernel)
    assert (call.call.platform, call.foreign, call.verdict) == ("mosaic_gpu", "", Verdict.PROVED)
    assert {f.verdict for f in call.of("body_races")} == {Verdict.PROVED}


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("one_place", (0,), (1,)),
        ("overlapping", (0,), (1,)),
        ("folded", (0,), (4,)),
        ("forgets_j", (0, 0), (0, 1)),
    ],
)
def test_programs_that_race_are_refuted(
    name: str, first: tuple[int, ...], second: tuple[int, ...], of: Callable[[str], Judged]
) -> None:
    call = of(name)
    (race,) = [f for f in call.of("body_races") if f.verdict is Verdict.REFUTED]
    assert call.verdict is Verdict.REFUTED
    assert race.counterexample is not None
    assert (race.counterexample["first"], race.counterexample["second"]) == (first, second)
    assert "arbitrary" not in race.fix


def test_a_store_past_the_array(of: Callable[[str], Judged]) -> None:
    (found,) = [f for f in of("past").of("body_in_bounds") if f.verdict is Verdict.REFUTED]
    assert found.counterexample == {"program": (7,)}


def test_threads_that_store_to_one_element_are_refuted(of: Callable[[str], Judged]) -> None:
    call = of("threads")
    assert isinstance(call.call, Kernel)
    assert {f.question for f in call.findings if f.verdict is not Verdict.PROVED} == {"body_races"}
    assert call.verdict is Verdict.REFUTED


def test_on_the_command_line(of: Any, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gpu_kernels.py").write_text(SOURCE)
    codes = [
        cli.run(["kernels", f"gpu_kernels.py:{name}", "--arg", "f32[1024]", "--target", "mosaic_gpu"])
        for name in ("apart", "one_place", "threads")
    ]
    assert codes == [0, 1, 1]
    assert "and both write element (0,) of outputs[0]" in capsys.readouterr().out


def test_a_plain_call_is_judged_for_it() -> None:
    """The same call on a TPU, whose programs run one after the other, and on a GPU."""
    from layoutproof.pallas.judge import kernel_of

    shared = kernel_of({"kernel": {"grid": [4], "outputs": [{"array": "f32[8]", "index": "i -> (0)"}]}}, "a test")
    assert judged(shared, target="v5e").verdict is Verdict.PROVED
    on_gpu = judged(shared, target="mosaic_gpu")
    assert [f.verdict for f in on_gpu.of("parallel_writes")] == [Verdict.UNKNOWN]
    assert "both write block" in on_gpu.of("parallel_writes")[0].reason
