"""Rewrites of traced equations: which are found, where, and that none of them changes a number."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.rewrites import CASES
from layoutproof.core.errors import LayoutError

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax", reason="the extra jax is not installed")

from layoutproof.pallas.from_jax import rewrites  # noqa: E402
from layoutproof.pallas.from_jax.rewrites import Rewrite, compared, flat, moved_by, numbers, of_kernel, of_program  # noqa: E402

HEADS, LANES = 4, 128


def shape(*dims: int, dtype: str = "bfloat16") -> Any:
    return jax.ShapeDtypeStruct(dims, dtype)


def call(body: Callable[..., None], operands: list[Any], blocks: list[tuple[int, ...]], out: Any, block: Any) -> Any:
    """The equation of a kernel of two programs, along dimension 0 of each operand."""
    from jax.experimental import pallas as pl

    def spec(dims: tuple[int, ...]) -> Any:
        return pl.BlockSpec(dims, lambda i: (i,) + (0,) * (len(dims) - 1))

    def function(*arrays: Any) -> Any:
        return pl.pallas_call(
            body, grid=(2,), in_specs=list(map(spec, blocks)), out_specs=spec(block), out_shape=out
        )(*arrays)  # fmt: skip

    (equation,) = jax.make_jaxpr(function)(*operands).jaxpr.eqns
    return equation


def rope(x: Any, scale: Any, o: Any) -> None:
    wide = x[...].astype("float32")
    turned = jax.numpy.concatenate([wide[:, :, :64] * 3.0, wide[:, :, 64:] + 1.0], -1) * scale[...]
    o[...] = turned.reshape(16, HEADS * LANES)


def rope_call() -> Any:
    wide = HEADS * LANES
    return call(rope, [shape(32, HEADS, LANES), shape(32, 1, 1, dtype="float32")], [(16, HEADS, LANES), (16, 1, 1)],
                shape(32, wide, dtype="float32"), (16, wide))  # fmt: skip


def split_call() -> Any:
    def body(x: Any, o: Any) -> None:
        o[...] = (x[...] * 2).reshape(16, HEADS, LANES)

    wide = HEADS * LANES
    return call(body, [shape(32, wide)], [(16, wide)], shape(32, HEADS, LANES), (16, HEADS, LANES))


def turned_call() -> Any:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...].astype("float32").T

    return call(body, [shape(256, 128)], [(128, 128)], shape(256, 128, dtype="float32"), (128, 128))


def plain_call() -> Any:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...] * 2

    return call(body, [shape(32, HEADS, LANES)], [(16, HEADS, LANES)], shape(32, HEADS, LANES), (16, HEADS, LANES))


@pytest.mark.parametrize(
    ("made", "kinds"),
    [
        (rope_call, {"outside", "first", "convert last"}),
        (split_call, {"outside"}),
        (turned_call, {"outside", "convert last"}),
        (plain_call, set()),
    ],
)
def test_rewrites_of_a_kernel_keep_every_number(made: Callable[[], Any], kinds: set[str]) -> None:
    """A kernel that moves no data has none."""
    equation = made()
    found = of_kernel(equation.params)
    assert {each.kind for each in found} == kinds
    for each in found:
        assert numbers(equation, each) == "", each


def test_the_cause_is_the_operation_at_its_line() -> None:
    """In the body, with the arrays that it takes and gives; the operand is one that the call has."""
    first = next(each for each in of_kernel(rope_call().params) if each.kind == "first")
    line = rope.__code__.co_firstlineno + 3
    assert (first.operation, first.place) == ("reshape", f"{__file__}:{line}")
    assert (first.before, first.after) == ("f32[16,4,128]", "f32[16,512]")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_of_lanes", lambda of: lambda value, heads: rewrites._Apart(of(value, heads).parts[::-1])),
        ("_keeps_heads", lambda of: lambda eqn, dims: True),
        ("_head_of", lambda of: lambda value, heads: lambda h: of(value, heads)(0)),
    ],
)
def test_a_wrong_rewrite_is_seen(monkeypatch: pytest.MonkeyPatch, name: str, wrong: Any) -> None:
    """Heads in another order, rows taken as if they were all, another sign: the numbers differ, or it is no program."""

    def body(x: Any, o: Any) -> None:
        part = (x[...].astype("float32") * 3.0)[:, 1:3, :] if name == "_keeps_heads" else x[...].astype("float32") * 3.0
        o[...] = part.reshape(16, part.shape[1] * LANES)

    wide = LANES * (2 if name == "_keeps_heads" else HEADS)
    equation = call(body, [shape(32, HEADS, LANES)], [(16, HEADS, LANES)], shape(32, wide, dtype="float32"), (16, wide))
    rewrite = Rewrite("first", "reshape", "", "", "", "", "", operand=0)
    assert numbers(equation, rewrite) == ""
    monkeypatch.setattr(rewrites, name, wrong(getattr(rewrites, name)))
    try:
        found = numbers(equation, rewrite)
    except LayoutError as error:
        found = error.problem
    assert "differ" in found or "does not run it" in found


def test_a_call_that_is_too_large_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is said, and is not taken for the same."""
    monkeypatch.setattr(rewrites, "MOST_WORK", 100)
    equation = rope_call()
    with pytest.raises(LayoutError, match="too large"):
        numbers(equation, of_kernel(equation.params)[0])
    assert "too large" in compared(lambda x: [x * 2], lambda x: [x * 2], [shape(8, 128)])


def program(x: Any) -> Any:
    """A nested function, as most programs have: its equations are of one list."""
    turned = jax.jit(lambda y: y.reshape(8, 4, 4, 2, 16).swapaxes(0, 1))(x)
    return turned.astype("float32")


def test_rewrites_of_a_program() -> None:
    """The transposition goes before the part of the reshape that it does not need, the conversion before both."""
    jaxpr = flat(program, [shape(8, 32, 16)])
    found = of_program(jaxpr.jaxpr)
    first = next(each for each in found if each.kind == "transpose first")
    assert first.write == "x.reshape(8, 4, 8, 16).transpose(1, 0, 2, 3).reshape(4, 8, 4, 2, 16)"
    assert {each.kind for each in found} == {"transpose first", "convert first", "constraint"}
    own = rewrites.with_rewrite(jaxpr.jaxpr, jaxpr.consts, None)
    for each in found:
        if each.kind != "constraint":
            assert compared(own, rewrites.with_rewrite(jaxpr.jaxpr, jaxpr.consts, each), [shape(8, 32, 16)]) == ""


def test_other_numbers_of_a_program_are_seen() -> None:
    """Of a program that does something else, where elements are too."""
    given = [shape(8, 32, dtype="float32")]
    assert "differ" in compared(lambda x: [x + 1], lambda x: [x - 1], given)
    assert "became" in compared(lambda x: [x.T], lambda x: [x], given)
    assert compared(lambda x: [x + 1], lambda x: [1 + x], given) == ""


def test_any_transposition_of_any_split() -> None:
    """What is found for random shapes computes what the pair of both computes."""
    draw = random.Random(7)
    many = 0
    for _ in range(120):
        new = [draw.choice((1, 2, 3, 4)) for _ in range(draw.randint(3, 5))]
        cuts = sorted(draw.sample(range(1, len(new)), draw.randint(1, len(new) - 1)))
        old = [int(np.prod(new[a:b])) for a, b in itertools.pairwise([0, *cuts, len(new)])]
        order = draw.sample(range(len(new)), len(new))
        traced = jax.make_jaxpr(lambda x, new=new, order=order: x.reshape(new).transpose(order))(shape(*old))
        found = [each for each in of_program(traced.jaxpr) if each.kind == "transpose first"]
        many += len(found)
        value = np.arange(np.prod(old)).reshape(old)
        for each in found:
            (result,) = rewrites.with_rewrite(traced.jaxpr, traced.consts, each)(jax.numpy.asarray(value, "float32"))
            assert np.array_equal(np.asarray(result), value.reshape(new).transpose(order)), (old, new, order)
    assert many > 12


def test_what_moved_the_data_is_the_nearest_before() -> None:
    """Not what moved it before that."""

    def function(x: Any) -> Any:
        turned = x.T
        flipped = turned[::-1]
        return flipped * 2

    line = function.__code__.co_firstlineno
    found = {place.rpartition(":")[2]: words for place, words in moved_by(flat(function, [shape(8, 16)]).jaxpr).items()}
    assert found[str(line + 3)] == [f"rev at test_rewrites.py:{line + 2}"]
    assert found[str(line + 1)] == [f"transpose at test_rewrites.py:{line + 1}"]


def test_of_a_helper_the_line_that_calls_it_is_named_too() -> None:
    """Whoever writes `helper(x)` has to change that line, or the helper's."""

    def helper(x: Any) -> Any:
        return x.swapaxes(0, 1)

    def function(x: Any) -> Any:
        return helper(x) * 2

    inner, outer = (f.__code__.co_firstlineno + 1 for f in (helper, function))
    moved = moved_by(flat(function, [shape(8, 16)]).jaxpr)
    said = f"transpose at test_rewrites.py:{inner}, called at test_rewrites.py:{outer}"
    assert moved["parameter 0"] == [said]
    assert said in moved[f"{__file__}:{outer}"]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.kernel])
def test_the_twin_of_a_case_has_no_rewrite(name: str) -> None:
    """What the benchmark's kernels have a fault in, their twins do not: there is nothing to print."""
    from layoutproof.pallas.from_jax.user import arguments

    case = CASES[name]
    for function, args, some in ((case.function, case.args, True), (case.twin, case.twin_args, False)):
        jaxpr = jax.make_jaxpr(function)(*arguments(list(args)))
        (equation,) = [each for each in jaxpr.jaxpr.eqns if each.primitive.name == "pallas_call"]
        found = [each for each in of_kernel(equation.params) if each.operation == case.cause]
        assert bool(found) == some, found
