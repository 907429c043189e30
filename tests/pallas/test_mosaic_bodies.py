"""Operations of bodies that no kernel of the other tests has: what a module that somebody else wrote may hold."""

from __future__ import annotations

import functools

import pytest

pytest.importorskip("jax", reason="reading Mosaic kernels needs the extra [jax]")

from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_mosaic.mosaic_module import calls_in, kernels_of_calls
from layoutproof.pallas.judge import judge
from tests.pallas.mosaic_texts import WINDOW, call_line, config

pytestmark = pytest.mark.slow

VECTOR = "vector<8x128xf32>"
ROW = "vector<1x128xf32>"
MEMORY = "memref<8x128xf32, #tpu.memory_space<vmem>>"
STORED = f"vector.store %v, %o[%zero, %zero] : {MEMORY}, {VECTOR}"


def text(body: str, functions: str = "") -> str:
    """A program with a kernel of 4 programs over blocks of 8 rows: %i is the program, %x its input, %o its output."""
    module = f"""
module attributes {{stable_mosaic.version = 11 : i64}} {{
  func.func @rows(%i: i32, %x: {MEMORY}, %o: {MEMORY}) attributes {{
      dimension_semantics = [#tpu.dimension_semantics<arbitrary>], iteration_bounds = array<i64: 4>,
      scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>,
      window_params = [{WINDOW}, {WINDOW}]}} {{
    %zero = arith.constant 0 : index
    %v = vector.load %x[%zero, %zero] : {MEMORY}, {VECTOR}
    {body}
    return
  }}
  func.func @transform_0(%i: i32) -> (i32, i32) {{
    %c = arith.constant 0 : i32
    return %i, %c : i32, i32
  }}
  {functions}
}}
"""
    return call_line(config(module))


def kernel(body: str) -> Kernel:
    (found,) = kernels_of_calls(calls_in(text(body)))
    assert isinstance(found, Kernel)
    return found


def verdict(found: Kernel, question: str = "body_in_bounds") -> Verdict:
    return min(f.verdict for f in judge(found, names=[question]) if f.severity == "error")


def row(number: str) -> str:
    """Row `number`, an i32, loaded and stored again."""
    return (
        f"{number}\n %k = arith.index_cast %n : i32 to index\n"
        f"%r = vector.load %x[%k, %zero] : {MEMORY}, {ROW}\n vector.store %r, %o[%k, %zero] : {MEMORY}, {ROW}"
    )


ROWS = {
    # the number of a row as operations on the program's number say it, and the largest row that it is
    "floordivsi": ("%c = arith.constant 2 : i32\n %n = arith.floordivsi %i, %c : i32", True),
    "ceildivsi": ("%c = arith.constant 2 : i32\n %n = arith.ceildivsi %i, %c : i32", True),
    "remui": ("%c = arith.constant 3 : i32\n %n = arith.remui %i, %c : i32", True),
    "remui of what is below 0": (
        "%c = arith.constant 9 : i32\n %d = arith.constant -1 : i32\n %e = arith.subi %d, %i : i32\n"
        "%n = arith.remui %e, %c : i32",
        True,  # 2**32 - 1 - i leaves 3, 2, 1, 0 of 9
    ),
    "remsi of what is below 0": (
        "%c = arith.constant 9 : i32\n %d = arith.constant -1 : i32\n %e = arith.subi %d, %i : i32\n"
        "%n = arith.remsi %e, %c : i32",
        False,
    ),
    "shli": ("%c = arith.constant 2 : i32\n %n = arith.shli %i, %c : i32", False),
    "shrui": ("%c = arith.constant 1 : i32\n %n = arith.shrui %i, %c : i32", True),
    "extsi of a truth value": (
        "%c = arith.constant 2 : i32\n %b = arith.cmpi slt, %i, %c : i32\n %n = arith.extsi %b : i1 to i32",
        False,  # -1
    ),
    "extui of a truth value": (
        "%c = arith.constant 2 : i32\n %b = arith.cmpi slt, %i, %c : i32\n %n = arith.extui %b : i1 to i32",
        True,
    ),
    "cmpi ult": (
        "%c = arith.constant 2 : i32\n %d = arith.constant 8 : i32\n %s = arith.subi %i, %c : i32\n"
        "%b = arith.cmpi ult, %s, %c : i32\n %n = arith.select %b, %s, %i : i32",
        True,  # -2 and -1 are no small numbers without a sign
    ),
    "func.call": ("%n = func.call @twice(%i) : (i32) -> i32", True),
    "func.call past the end": (
        "%m = func.call @twice(%i) : (i32) -> i32\n %n = func.call @twice(%m) : (i32) -> i32",
        False,
    ),
    "scf.index_switch": (
        "%j = arith.index_cast %i : i32 to index\n %n = scf.index_switch %j -> i32\n"
        "case 0 { %a = arith.constant 7 : i32\n scf.yield %a : i32 }\n"
        "case 1 { %a = arith.constant 1 : i32\n scf.yield %a : i32 }\n default { scf.yield %i : i32 }",
        True,
    ),
    "scf.index_switch past the end": (
        "%j = arith.index_cast %i : i32 to index\n %n = scf.index_switch %j -> i32\n"
        "case 0 { %a = arith.constant 7 : i32\n scf.yield %a : i32 }\n"
        "case 1 { %a = arith.constant 8 : i32\n scf.yield %a : i32 }\n default { scf.yield %i : i32 }",
        False,
    ),
}  # fmt: skip
TWICE = "func.func @twice(%a: i32) -> i32 {\n %b = arith.addi %a, %a : i32\n return %b : i32\n }"


@functools.lru_cache(maxsize=1)
def rows() -> dict[str, Kernel]:
    """The kernels of all of them; one child process reads them."""
    calls = [call for number, _ in ROWS.values() for call in calls_in(text(row(number), TWICE))]
    found = dict(zip(ROWS, kernels_of_calls(calls), strict=True))
    return {name: one for name, one in found.items() if isinstance(one, Kernel)}


@pytest.mark.parametrize("name", ROWS)
def test_the_number_of_a_row_is_what_the_operations_say(name: str) -> None:
    _, inside = ROWS[name]
    found = rows()[name]
    assert found.body.unmodelled == ()
    assert verdict(found) is (Verdict.PROVED if inside else Verdict.REFUTED)


def test_an_operation_that_is_not_known_is_named_and_nothing_is_proved() -> None:
    found = kernel(f'%w = "stable_mosaic.tpu.unheard_of"(%x) : ({MEMORY}) -> {VECTOR}\n {STORED}')
    ((what, _),) = found.body.unmodelled
    assert what == "the operation tpu.unheard_of"
    assert verdict(found) is Verdict.UNKNOWN


def test_an_operation_on_values_that_is_not_known_loses_the_value_alone() -> None:
    """It touches no memory: what is stored is as defined as what went in."""
    found = kernel(f'%w = "stable_mosaic.tpu.unheard_of"(%v) : ({VECTOR}) -> {VECTOR}\n {STORED}')
    assert found.body.unmodelled == ()
    assert verdict(found) is Verdict.PROVED
    assert verdict(found, "outputs_stored") is Verdict.PROVED
