"""Reductions of several results: the greatest with its place, and others side by side; and what is given later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.from_hlo.programs import compiled
from layoutproof.hlotext.lines import read_hlo
from layoutproof.programs.two_texts import computed
from layoutproof.values.floats import Floats
from layoutproof.values.walk import Prepared, Walk

# as jax.lax.argmax is lowered (jax 0.10.2)
BEST = """best {
  x = f32[] parameter(0)
  i = s32[] parameter(1)
  y = f32[] parameter(2)
  j = s32[] parameter(3)
  gt = pred[] compare(x, y), direction=GT
  nan = pred[] compare(x, x), direction=NE
  either = pred[] or(gt, nan)
  eq = pred[] compare(x, y), direction=EQ
  lt = pred[] compare(i, j), direction=LT
  tie = pred[] and(eq, lt)
  first = pred[] or(either, tie)
  value = f32[] select(either, x, y)
  place = s32[] select(first, i, j)
  ROOT t = (f32[], s32[]) tuple(value, place)
}

"""
ENTRY = """ENTRY e {
  a = f32[16,5] parameter(0)
  w = f32[16,5] parameter(1)
  k = s32[16,5] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  both = (f32[16], s32[16]) reduce(a, k, low, zero), dimensions={1}, to_apply=best
  at = s32[16] get-tuple-element(both), index=1
  wide = s32[16,5] broadcast(at), dimensions={0}
  here = pred[16,5] compare(wide, k), direction=EQ
  one = f32[16,5] convert(here)
  taken = f32[16,5] multiply(one, w)
  none = f32[] constant(0)
  sum = f32[16] reduce(taken, none), dimensions={1}, to_apply=add
  max = f32[16] get-tuple-element(both), index=0
  ROOT out = f32[16] add(sum, max)
}
"""
ADD = "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}\n\n"
HEAD = "HloModule m\n\n"
TEXT = HEAD + ADD + BEST + ENTRY
SWAPPED = (
    ("(f32[16], s32[16]) reduce(a, k, low, zero)", "(s32[16], f32[16]) reduce(k, a, zero, low)"),
    ("  at = s32[16] get-tuple-element(both), index=1", "  at = s32[16] get-tuple-element(both), index=0"),
    ("  max = f32[16] get-tuple-element(both), index=0", "  max = f32[16] get-tuple-element(both), index=1"),
    ("x = f32[] parameter(0)\n  i = s32[] parameter(1)\n  y = f32[] parameter(2)\n  j = s32[] parameter(3)",
     "x = f32[] parameter(1)\n  i = s32[] parameter(0)\n  y = f32[] parameter(3)\n  j = s32[] parameter(2)"),
    ("ROOT t = (f32[], s32[]) tuple(value, place)", "ROOT t = (s32[], f32[]) tuple(place, value)"),
)  # fmt: skip
RIGHT: dict[str, tuple[tuple[str, str], ...]] = {
    "as it is": (),
    "the comparison the other way round": (("compare(x, y), direction=GT", "compare(y, x), direction=LT"),),
    "the place first": SWAPPED,
    "the least of the opposites": (
        ("compare(x, y), direction=GT", "compare(x, y), direction=LT"),
        ("constant(-inf)", "constant(inf)"),
        ("  both =", "  m = f32[16,5] negate(a)\n  both ="),
        ("reduce(a,", "reduce(m,"),
        ("ROOT out = f32[16] add(sum, max)", "ROOT out = f32[16] subtract(sum, max)"),
    ),
    "a start that is below all": (("constant(0)\n  both", "constant(4)\n  both"),),
}
OTHER: dict[str, tuple[tuple[str, str], ...]] = {
    "the least": (
        ("compare(x, y), direction=GT", "compare(x, y), direction=LT"), ("constant(-inf)", "constant(inf)"),
    ),
    "the numbers of the rows": (("s32[16,5] iota(), iota_dimension=1", "s32[16,5] iota(), iota_dimension=0"),),
    "another one of the two": (("reduce(a, k", "reduce(w, k"),),
    "one place further": (("compare(wide, k)", "compare(wide, k1)"), (
        "  here =", "  o = s32[] constant(1)\n  os = s32[16,5] broadcast(o), dimensions={}\n"
        "  k1 = s32[16,5] add(k, os)\n  here =")),
    "a start above some": (("constant(-inf)", "constant(0)"),),
}  # fmt: skip
UNLIKE: dict[str, tuple[tuple[str, str], ...]] = {
    "the last of several": (("compare(i, j), direction=LT", "compare(i, j), direction=GT"),),
    "the other's place": (("select(first, i, j)", "select(first, j, i)"),),
    "the other's value": (("select(either, x, y)", "select(either, y, x)"),),
    "the last of several, from behind": (
        ("  both =", "  r = f32[16,5] reverse(a), dimensions={1}\n  both ="), ("reduce(a,", "reduce(r,"),
        ("  wide =", "  f = s32[] constant(4)\n  fs = s32[16] broadcast(f), dimensions={}\n"
         "  back = s32[16] subtract(fs, at)\n  wide ="), ("broadcast(at)", "broadcast(back)"),
    ),
}  # fmt: skip


def edited(text: str, edits: tuple[tuple[str, str], ...]) -> str:
    """A text with each edit, which it has."""
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("name", RIGHT)
def test_the_same_pair_however_it_is_written(name: str) -> None:
    """A computation of two pairs is what it does with each order of its numbers."""
    assert computed(TEXT, edited(TEXT, RIGHT[name])).state == "same"


@pytest.mark.parametrize("name", OTHER)
def test_another_pair(name: str) -> None:
    """What is the greatest otherwise, or stands beside it."""
    found = computed(TEXT, edited(TEXT, OTHER[name]))
    assert found.state == "other", found


@pytest.mark.parametrize("name", UNLIKE)
def test_what_is_another_pair_where_two_are_equal_is_not_the_same(name: str) -> None:
    """Points have no two equal numbers; a computation that gives no such pair is unknown by name."""
    found = computed(TEXT, edited(TEXT, UNLIKE[name]))
    assert found.state in ("unknown", "other"), found


def test_the_numbers_of_a_pair() -> None:
    """NumPy's, of equal ones the first; NaN is above all."""
    (module,) = read_hlo(TEXT.splitlines(keepends=True))
    program = compiled(module).program
    a, w = np.round(np.random.default_rng(1).standard_normal((2, 16, 5)) * 2)
    a[3, 2] = np.nan
    (found,) = Walk(Floats(1), Prepared()).run(program, [Floats(1).constant(x) for x in (a, w)])
    wanted = np.take_along_axis(w, a.argmax(1)[:, None], 1)[:, 0] + a.max(1)
    np.testing.assert_array_equal(found.array, wanted)


SEVERAL = HEAD + (
    "both {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  u = f32[] parameter(2)\n  v = f32[] parameter(3)\n"
    "  s = f32[] add(x, u)\n  m = f32[] maximum(y, v)\n  ROOT t = (f32[], f32[]) tuple(s, m)\n}\n\n"
    "ENTRY e {\n  a = f32[4,8] parameter(0)\n  b = f32[4,8] parameter(1)\n  z = f32[] constant(0)\n"
    "  l = f32[] constant(-inf)\n  ROOT r = (f32[4], f32[4]) reduce(a, b, z, l), dimensions={1}, to_apply=both\n}\n"
)


@pytest.mark.parametrize(
    ("old", "new", "state", "output"),
    [
        ("add(x, u)", "add(u, x)", "same", ""), ("maximum(y, v)", "minimum(y, v)", "other", "result 1"),
        ("add(x, u)", "multiply(x, u)", "other", "result 0"), ("reduce(a, b", "reduce(b, a", "other", "result 0"),
        ("add(x, u)", "add(x, v)", "unknown", ""), ("tuple(s, m)", "tuple(m, s)", "unknown", ""),
    ],
)  # fmt: skip
def test_reductions_side_by_side(old: str, new: str, state: str, output: str) -> None:
    """Each of its own operand; what mixes them is unknown by name."""
    found = computed(SEVERAL, SEVERAL.replace(old, new))
    assert (found.state, found.output) == (state, output), found


# as libtpu 0.0.52 writes what a SparseCore of a 7x does
LATER = """HloModule m, num_partitions=2

sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}

inner {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum
}

outer {
  p = f32[8] parameter(0)
  ROOT c = f32[8] custom-call(p), custom_call_target="TODO(b/522284627)", called_computations={inner}
}

ENTRY e {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  s = ((), (), (s32[8], s32[2])) async-start(), async_execution_thread="sparsecore", calls=outer
  u = ((f32[8]), f32[8], (s32[8])) async-update(s, a), output_to_operand_aliasing={{2,0}: (0, {2,0})}
  d = f32[8] async-done(u)
  ROOT o = f32[8] add(d, b)
}
"""


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        ("a", "a", "same"), ("async-update(s, a)", "async-update(s, b)", "other"),
        ("to_apply=sum", "to_apply=most", "other"), ("{{0,1}}", "{{0},{1}}", "other"),
        ("async-start(), async", "async-start(a), async", "unknown"),
        ("async-update(s, a)", "async-update(s)", "unknown"), ("TODO(b/522284627)", "mine", "unknown"),
    ],
)  # fmt: skip
def test_operands_that_come_with_an_update(old: str, new: str, state: str) -> None:
    """What is started without operands gets them later; one given twice, or never, is no program."""
    most = "most {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] maximum(x, y)\n}\n\n"
    changed = LATER.replace("inner {", f"{most}inner {{", 1).replace(old, new)
    found: Any = computed(LATER, changed)
    assert found.state == state, found


def test_what_waits_for_operands_that_never_come_is_said() -> None:
    """With the line."""
    (module,) = read_hlo(LATER.replace("async-update(s, a)", "async-update(s)").splitlines(keepends=True))
    with pytest.raises(LayoutError, match="was not given all of its operands") as error:
        compiled(module)
    assert error.value.line == 24
