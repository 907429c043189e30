"""A compiled kernel's body says what the traced one says: what stands in a dump without source is judged too."""

from __future__ import annotations

import functools
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.table_assumptions import with_assumptions
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.from_mosaic.mosaic_module import calls_in, kernels_of_calls
from layoutproof.pallas.judge import judge
from tests.bodies.judged import worst
from tests.bodies.pitfalls import ASKED, CASES
from tests.pallas.mosaic_texts import lowered

pytestmark = pytest.mark.slow

REFUSED = {"cumsum_reverse_over_padding": "cumsum", "reverse_partial_axis": "rev"}
"""What JAX does not lower for TPU, and the primitive that it names."""

SIDES = [(name, wrong) for name in CASES if name not in REFUSED for wrong in (True, False)]


@functools.lru_cache(maxsize=1)
def compiled() -> dict[tuple[str, bool], Kernel]:
    """Every pitfall as its lowered text has it; one child process reads all of them."""
    calls = []
    for name, wrong in SIDES:
        built = CASES[name].build(wrong)
        calls += calls_in(lowered((built.fn, built.args)), f"{name}.mlir")
    found = {}
    for side, kernel in zip(SIDES, kernels_of_calls(calls), strict=True):
        assert isinstance(kernel, Kernel)
        found[side] = with_assumptions(kernel, CASES[side[0]].assume, strict=False)
    return found


def findings(name: str, wrong: bool, question: str) -> list[Finding]:
    return [f for f in judge(compiled()[name, wrong], names=[question], strict_tables=True) if f.severity == "error"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_compiled_is_as_it_was(name: str) -> None:
    built = CASES[name].build(True)
    with pytest.raises(Exception, match=f"primitive.* {REFUSED[name]}"):
        lowered((built.fn, built.args))


@pytest.mark.parametrize("name", [n for n in CASES if n not in REFUSED])
def test_the_right_twin_is_proved_without_its_source(name: str) -> None:
    kernel = compiled()[name, False]
    assert kernel.body.unmodelled == ()
    assert {question: worst(findings(name, False, question)) for question in ASKED} == dict.fromkeys(
        ASKED, Verdict.PROVED
    )


@pytest.mark.parametrize("name", [n for n in CASES if n not in (*REFUSED, "parallel_scatter_duplicate")])
def test_the_error_is_found_without_the_source(name: str) -> None:
    case = CASES[name]
    found = {question: findings(name, True, question) for question in ASKED}
    refuted = next(f for f in found[case.kind] if f.verdict is Verdict.REFUTED)
    # the module's locations name the user's line
    assert refuted.file.endswith("pitfalls.py")
    assert refuted.line > 0
    assert {"program", "first", "element"} & set(refuted.counterexample or {})
    others = {q: worst(f) for q, f in found.items() if q != case.kind and q not in case.also}
    assert others == dict.fromkeys(others, Verdict.PROVED)


def test_a_load_that_nobody_looks_at_is_no_read_where_a_store_is_meant() -> None:
    """JAX writes a load before each store, as a swap gives what was there; a load of the user's own stays a read."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def stores(x: object, o: object, kept: object) -> None:
        kept[...] = x[...]  # type: ignore[index]
        o[...] = kept[...]  # type: ignore[index]

    def reads(x: object, o: object, kept: object) -> None:
        o[...] = x[...] + kept[...]  # type: ignore[index]
        kept[...] = x[...]  # type: ignore[index]

    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    x = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    verdicts = []
    for body in (stores, reads):
        call = pl.pallas_call(
            body,
            grid=(4,),
            in_specs=[rows],
            out_specs=rows,
            out_shape=x,
            scratch_shapes=[pltpu.VMEM((8, 128), x.dtype)],
        )
        (kernel,) = kernels_of_calls(calls_in(lowered((call, (x,))), "kept.mlir"))
        assert isinstance(kernel, Kernel)
        verdicts.append(worst([f for f in judge(kernel, names=["initialised"]) if f.severity == "error"]))
    assert verdicts == [Verdict.PROVED, Verdict.REFUTED]


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("way", ["rem", "min", "lt", "shift", "signed"])
def test_integers_without_a_sign_are_what_the_operations_take_them_for(way: str, right: bool) -> None:
    """A module does not say that a table is of unsigned numbers; its operand does."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def block(n: jax.Array) -> jax.Array:
        blocks = jnp.uint32(4 if right else 5)
        if way == "signed":
            # of a number with its highest bit set the remainder is negative
            number = n.astype(jnp.int32)
            return jnp.abs(jax.lax.rem(number, 4)) if right else jax.lax.rem(number, 4)
        ways = {"rem": n % blocks, "min": jnp.minimum(n, blocks - 1), "shift": n >> (30 if right else 29)}
        return ways.get(way, n).astype(jnp.int32)

    def body(table: Any, x: Any, o: Any) -> None:
        n = table[pl.program_id(0)]

        def copy() -> None:
            o[...] = x[pl.ds(block(n) * 8, 8), :]

        if way == "lt":
            o[...] = jnp.zeros((8, 128), jnp.float32)
            pl.when(n < jnp.uint32(4 if right else 5))(copy)
        else:
            copy()

    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((32, 128), lambda i, t: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
    )
    rows = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    call = pl.pallas_call(body, grid_spec=grid, out_shape=rows)
    arguments = (jax.ShapeDtypeStruct((4,), jnp.uint32), rows)
    (kernel,) = kernels_of_calls(calls_in(lowered((call, arguments)), "unsigned.mlir"))
    (traced,) = kernels_of(call, arguments)
    assert isinstance(kernel, Kernel)
    assert isinstance(traced, Kernel)
    for one in (traced, kernel):
        said = worst([f for f in judge(one, names=["body_in_bounds"]) if f.severity == "error"])
        assert said is (Verdict.PROVED if right else Verdict.UNKNOWN)
