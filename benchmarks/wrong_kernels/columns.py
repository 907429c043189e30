"""What each way of checking says of one kernel. Every column is a function here: (kernel, module, folder) -> `Said`.

A column gets the kernel, wrong or right, as a file that was imported, and says whether it noticed something. None sees
the edit. `witness` is no column: it shows what is wrong by other means than those of layoutproof.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu

from benchmarks.wrong_kernels.made import Kernel

TARGET = "v5e"


@dataclass(frozen=True)
class Said:
    """caught: yes, no, or unknown.  words: what it says."""

    caught: str
    words: str = ""


def of(kernel: Kernel, module: ModuleType) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function and the reference of an edited file."""
    (found,) = [k for k in module.KERNELS if k.function.__name__ == kernel.name]
    return found.function, found.reference


def arrays(kernel: Kernel, scale: float = 1.0, seed: int = 0, wide: bool = False) -> list[Any]:
    """What a test draws: normal numbers, integers over their range; tables as they are."""
    draw = np.random.default_rng(seed)
    made = []
    for given in kernel.arguments:
        if not isinstance(given, str):
            made.append(jnp.asarray(given))
            continue
        name, dims = re.fullmatch(r"(\w+)\[([\d,]*)\]", given).groups()  # type: ignore[union-attr]
        size = tuple(int(n) for n in dims.split(","))
        if name == "s8":
            made.append(jnp.asarray(draw.integers(-127, 128, size), jnp.int8))
        elif name == "s32":
            made.append(jnp.asarray(draw.integers(0, 4, size), jnp.int32))
        else:
            dtype = jnp.float64 if wide else {"f32": jnp.float32, "bf16": jnp.bfloat16}[name]
            made.append(jnp.asarray(draw.normal(size=size) * scale, dtype))
    return made


def interpreted(function: Callable[..., Any], given: list[Any], how: Any = True) -> list[np.ndarray[Any, Any]]:
    """The results of a kernel in an interpreter of JAX, on the CPU."""
    with pltpu.force_tpu_interpret_mode(how), jax.default_device(jax.devices("cpu")[0]):
        return [np.asarray(r).astype(np.float64) for r in jax.tree.leaves(jax.jit(function)(*given))]


def referred(reference: Callable[..., Any], given: list[Any]) -> list[np.ndarray[Any, Any]]:
    """The results of a reference."""
    return [np.asarray(r).astype(np.float64) for r in jax.tree.leaves(jax.jit(reference)(*given))]


def apart(ours: list[Any], theirs: list[Any], tolerance: float) -> str:
    """How many elements `allclose` calls different, in words."""
    for a, b in zip(ours, theirs, strict=True):
        far = ~np.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
        if far.any():
            return f"{int(far.sum())} of {far.size} elements, the first {a[far][0]:.6g} for {b[far][0]:.6g}"
    return ""


def allclose(kernel: Kernel, module: ModuleType, tolerance: float) -> Said:
    """On normal numbers of one seed, in Pallas' own interpreter."""
    function, reference = of(kernel, module)
    given = arrays(kernel)
    try:
        words = apart(interpreted(function, given), referred(reference, given), tolerance)
    except Exception as error:
        words = f"raised {type(error).__name__}: {str(error).splitlines()[0][:120]}"
    return Said("yes" if words else "no", words)


def allclose_2e2(kernel: Kernel, module: ModuleType) -> Said:
    """With rtol = atol = 2e-2, as benchmarks of generated kernels ask."""
    return allclose(kernel, module, 2e-2)


def allclose_1e5(kernel: Kernel, module: ModuleType) -> Said:
    """With rtol = atol = 1e-5."""
    return allclose(kernel, module, 1e-5)


def interpret_params(kernel: Kernel, module: ModuleType) -> Said:
    """JAX's interpreter of TPU kernels: memory starts as NaN, copies land when waited for, races are looked for."""
    function, reference = of(kernel, module)
    given = arrays(kernel)
    return told(lambda: apart(interpreted(function, given, strict()), referred(reference, given), 2e-2))


def strict() -> Any:
    """All that the interpreter can find."""
    return pltpu.InterpretParams(
        detect_races=True, dma_execution_mode="on_wait", uninitialized_memory="nan", out_of_bounds_reads="raise"
    )


def told(run: Callable[[], str]) -> Said:
    """What a run in that interpreter shows: an exception, a race, other numbers."""
    with heard() as said:
        try:
            words = run()
        except Exception as error:
            with contextlib.suppress(Exception):
                pltpu.reset_tpu_interpret_mode_state()
            return Said("yes", f"raised {type(error).__name__}: {str(error).splitlines()[0][:120]}")
    if "RACE DETECTED" in said.getvalue():
        words = "a race"
    return Said("yes" if words else "no", words)


@contextlib.contextmanager
def heard() -> Iterator[io.StringIO]:
    """What is printed and logged, which is where JAX says races."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    logging.getLogger().addHandler(handler)
    try:
        with contextlib.redirect_stdout(said):
            yield said
    finally:
        logging.getLogger().removeHandler(handler)


def libtpu(kernel: Kernel, module: ModuleType) -> Said:
    """Whether the TPU compiler takes it."""
    from layoutproof.compiler import libtpu as compiler
    from layoutproof.hardware.tpu_chips import CHIPS
    from layoutproof.pallas.from_jax.adapter import device_of

    function, _ = of(kernel, module)
    place = jax.sharding.SingleDeviceSharding(compiler.device(CHIPS[TARGET].topology))
    given = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place) for a in arrays(kernel)]
    try:
        with device_of(TARGET):
            jax.jit(function).lower(*given).compile()
    except Exception as error:
        return Said("yes", f"{type(error).__name__}: {str(error).splitlines()[0][:160]}")
    return Said("no")


def places(kernel: Kernel, module: ModuleType) -> Said:
    """`layoutproof kernels`: no access out of bounds, no race, no undefined memory, nothing left out."""
    import layoutproof as lp

    function, _ = of(kernel, module)
    found = lp.kernels(
        function,
        *(
            jax.ShapeDtypeStruct(a.shape, a.dtype) if isinstance(t, str) else a
            for a, t in zip(arrays(kernel), kernel.arguments, strict=True)
        ),
    )
    for finding in found.findings:
        if finding.verdict is lp.Verdict.REFUTED and finding.severity == "error":
            return Said("yes", f"{finding.question}: {finding.reason[:160]}")
    if found.exit_code == 3:
        return Said("unknown", next(f.reason for f in found.findings if f.verdict is lp.Verdict.UNKNOWN)[:160])
    return Said("no")


def values(kernel: Kernel, module: ModuleType) -> Said:
    """`layoutproof same`, with the questions about places on which it rests."""
    import layoutproof as lp

    function, reference = of(kernel, module)
    found = lp.same(function, reference, *kernel.arguments)
    caught = {lp.Verdict.REFUTED: "yes", lp.Verdict.UNKNOWN: "unknown"}.get(found.verdict, "no")
    return Said(caught, found.reason[:240])


def lines(kernel: Kernel, module: ModuleType) -> Said:
    """What `layoutproof same` says beside a sampled verdict: exponents without a bound, sums coarser than float32."""
    import layoutproof as lp

    function, reference = of(kernel, module)
    found = lp.same(function, reference, *kernel.arguments)
    words = [f"{e.place.rpartition(':')[2]}: exponent" for e in found.comparison.exponents if not e.bounded or e.beside]
    words += [f"sum in {s.dtype}" for s in found.comparison.sums if s.roundoff > 2.0**-24]
    return Said("yes" if words else "no", ", ".join(words))


def witness(kernel: Kernel, wrong: str, module: ModuleType) -> Said:
    """What shows that a kernel is wrong, as its kind says; of a right one, that nothing does."""
    function, reference = of(kernel, module)
    kind = kernel.kind(wrong) if wrong else ""
    if kind == "order":
        return interpret_params(kernel, module)
    if kind == "unstable":
        for scale, sign in ((1e3, 1), (1e-3, 1), (1e3, -1)):
            given = [-abs(a) - scale if sign < 0 and a.dtype.kind == "f" else a for a in arrays(kernel, scale)]
            ours, theirs = interpreted(function, given), referred(reference, given)
            for a, b in zip(ours, theirs, strict=True):
                if (np.isfinite(b) & ~np.isfinite(a)).any():
                    return Said("yes", f"not finite on numbers of {sign * scale:g}, where the reference is")
        return Said("no")
    with jax.enable_x64(True), widened(module):
        ratios = {}
        for scale in (1.0, 1e-3, 30.0, -1e3):
            given = arrays(kernel, abs(scale), seed=1, wide=True)
            given = [-abs(a) + scale if scale < 0 and a.dtype.kind == "f" else a for a in given]
            ours, theirs = interpreted(function, given), referred(reference, given)
            ratios[scale] = max(map(distance, ours, theirs))
    if not kind:
        far = max(ratios, key=lambda scale: ratios[scale])
        return Said("yes" if ratios[far] > 1e-6 else "no", f"{ratios[far]:.2g} apart on float64 at {far:g}")
    given = arrays(kernel)
    exact = referred(reference, given)
    both = (function, kernel.function)
    own, other = (max(map(distance, interpreted(f, given), exact)) for f in both)
    far = own > 8 * max(other, 2.0**-24) and max(ratios.values()) < 1e-3 * own
    return Said("yes" if far else "no", f"{own:.2g} apart on float32, the right one {other:.2g}")


@contextlib.contextmanager
def widened(module: ModuleType) -> Iterator[None]:
    """Floats of a file are float64."""
    before: Mapping[str, Any] = {name: getattr(module, name) for name in ("F32", "BF16") if hasattr(module, name)}
    try:
        for name in before:
            setattr(module, name, jnp.float64)
        yield
    finally:
        for name, dtype in before.items():
            setattr(module, name, dtype)


def distance(ours: Any, theirs: Any) -> float:
    """The largest difference, by the largest number of the reference."""
    nan = np.isnan(ours) != np.isnan(theirs)
    if nan.any() or (np.isinf(ours) != np.isinf(theirs)).any():
        return float("inf")
    both = np.isfinite(ours) & np.isfinite(theirs)
    if not both.any():
        return 0.0
    return float(np.abs(ours - theirs)[both].max() / max(np.abs(theirs[both]).max(), 1e-300))


COLUMNS: Mapping[str, Callable[[Kernel, ModuleType], Said]] = {
    "allclose 2e-2": allclose_2e2,
    "allclose 1e-5": allclose_1e5,
    "InterpretParams": interpret_params,
    "libtpu": libtpu,
    "places": places,
    "values": values,
    "lines": lines,
}
