"""The work of programs: loops by their trips, held against the compiler's own analysis, the jaxpr, counts by hand."""

from __future__ import annotations

import importlib.util
import random
from dataclasses import replace
from pathlib import Path

import pytest

from layoutproof.core.counted import Counted
from layoutproof.gating.records import changes
from layoutproof.ir.windows import pairs
from layoutproof.programs.reading import record_of
from layoutproof.programs.record import KernelCall, Often, Place, ProgramWork, Record
from layoutproof.programs.report import text
from tests.said import words

pytestmark = pytest.mark.slow

LOOP = """HloModule step, is_scheduled=true

%body (p: (s32[], f32[64,64], f32[64,64])) -> (s32[], f32[64,64], f32[64,64]) {
  %p = (s32[], f32[64,64]{1,0}, f32[64,64]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %h = f32[64,64]{1,0} get-tuple-element(%p), index=1
  %w = f32[64,64]{1,0} get-tuple-element(%p), index=2
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %dot = f32[64,64]{1,0} dot(%h, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, \
metadata={op_name="jit(f)/layer/dot_general" source_file="model.py" source_line=7}
  %tanh = f32[64,64]{1,0} tanh(%dot), metadata={op_name="jit(f)/layer/tanh" source_file="model.py" source_line=8}
  ROOT %t = (s32[], f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(%next, %tanh, %w)
}

%cond (q: (s32[], f32[64,64], f32[64,64])) -> pred[] {
  %q = (s32[], f32[64,64]{1,0}, f32[64,64]{1,0}) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %end = s32[] constant(5)
  ROOT %c = pred[] compare(%j, %end), direction=LT
}

ENTRY %main (x: f32[64,64], w: f32[64,64]) -> f32[64,64] {
  %x = f32[64,64]{1,0} parameter(0)
  %w.1 = f32[64,64]{1,0} parameter(1)
  %zero = s32[] constant(0)
  %init = (s32[], f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(%zero, %x, %w.1)
  %loop = (s32[], f32[64,64]{1,0}, f32[64,64]{1,0}) while(%init), condition=%cond, body=%body
  ROOT %out = f32[64,64]{1,0} get-tuple-element(%loop), index=1
}
"""
DOT = 2 * 64**3
ARRAY = 64 * 64 * 4


def record(hlo: str) -> Record:
    return record_of(hlo.splitlines(keepends=True))


def work(hlo: str) -> ProgramWork:
    found = record(hlo).work
    assert found is not None
    return found


@pytest.mark.fast
def test_a_loop_counts_by_its_trips() -> None:
    """By hand: five products, five additions of the counter, six comparisons, five times an array of tanh."""
    found = work(LOOP)
    assert found.products == {"f32": Counted.of(5 * DOT)}
    assert found.flops == Counted.of(5 * DOT + 5 + 6)
    assert found.transcendentals == Counted.of(5 * 64 * 64)
    # dot reads two arrays and writes one, tanh reads one and writes one; the counter and the comparison
    assert found.bytes == Counted.of(5 * (5 * ARRAY + 12) + 6 * 9)
    first, second = found.places[:2]
    assert (first.source, first.scope, first.flops, first.often.times) == ("model.py:7", "jit(f)/layer", DOT, 5)
    assert (second.source, second.transcendentals) == ("model.py:8", 64 * 64)


@pytest.mark.fast
def test_an_unknown_trip_count_is_said_and_never_one() -> None:
    open_ = LOOP.replace("%end = s32[] constant(5)", "%end = s32[] add(%j, %j)")
    found = work(open_)
    assert (found.product_flops.least, found.product_flops.most) == (0, None)
    assert "trip count" in found.flops.why
    assert "at least 0 flops (" in text(record(open_))


@pytest.mark.fast
def test_what_is_not_counted_leaves_the_flops_open() -> None:
    """A sort, and a custom call: named, and never taken to be nothing."""
    other = LOOP.replace("%tanh = f32[64,64]{1,0} tanh(%dot)", "%tanh = f32[64,64]{1,0} cholesky(%dot)")
    found = work(other)
    assert (found.flops.least, found.flops.most) == (5 * DOT + 11, None)
    assert found.uncounted == ("tanh: " + words("hlo.work_not_counted", opcode="cholesky"),)
    called = LOOP.replace("tanh(%dot)", 'custom-call(%dot), custom_call_target="Mine"')
    assert work(called).flops.most is None


@pytest.mark.fast
def test_windows_of_convolutions() -> None:
    """Closed forms against every pair gone through."""
    draw = random.Random(1)
    for _ in range(3000):
        given = [draw.randint(*r) for r in ((1, 7), (1, 5), (1, 9), (1, 4), (-2, 5), (1, 4), (1, 3))]
        extent, taps, out, stride, low, base, dilation = given
        places = [o * stride + k * dilation - low for o in range(out) for k in range(taps)]
        assert pairs(*given) == sum(p >= 0 and p % base == 0 and p // base < extent for p in places), given


def test_flops_are_the_compilers_own() -> None:
    """Of all programs without a loop or a branch whose work is counted whole, but for two."""
    from tests.programs.test_corpus import ROWS
    from tests.programs.test_corpus import record as of_row

    same, other = 0, set()
    for number, row in enumerate(ROWS):
        found = of_row(number)
        assert found.work is not None
        looped = any(word in row["text"] for word in (" while(", " conditional("))
        if looped or found.work.flops.exact is None or found.kernels or row["target"] == "7x":
            continue
        if found.work.flops.exact == row["cost"].get("flops", 0):
            same += 1
        else:
            other.add(row["name"])
    # a reduce-scatter is counted as none by the compiler, and its windows turned round lose products
    assert other <= {"reduce_scatter", "flax_attention"}, other
    assert same >= 90, same


LAYERS = """
import jax
import jax.numpy as jnp


def loss(params, x):
    def layer(h, p):
        up, down = p
        return h + jnp.tanh(h @ up) @ down, None

    h, _ = jax.lax.scan(layer, x, params)
    return (h**2).sum()


def step(params, x):
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, x))
"""


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu")
def test_a_step_of_four_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward two products a layer, backward four: by hand, by the jaxpr, by the compiled text; XLA's is a part."""
    import layoutproof as lp

    monkeypatch.chdir(tmp_path)
    (tmp_path / "layers.py").write_text(LAYERS)
    shapes = ("f32[4,128,512]", "f32[4,512,128]")
    (found,) = lp.compile("layers.py:step", shapes, "f32[256,128]", target="v5e").records
    assert found.work is not None
    by_hand = 4 * 6 * 2 * 256 * 128 * 512
    assert found.work.product_flops == Counted.of(by_hand)
    assert found.work.source == Counted.of(by_hand)
    assert found.flops is not None
    assert found.flops < by_hand / 3


KERNEL = KernelCall(Place("k.1", 8), "matmul", 1703936, "abc", Often(), cycles=41459)
SLOWER = replace(KERNEL, vmem=262144, digest="def", cycles=380260)


@pytest.mark.fast
def test_a_slower_tile_is_a_growing_cost() -> None:
    """Less VMEM and 9.2 times the cycles: never that it shrank. What is not known any more is unknown."""
    old, new = (Record("step", kernels=(kernel,)) for kernel in (KERNEL, SLOWER))
    first, second = changes(old, new)
    assert (first.question, first.subject) == ("estimated_cycles", "cycles of kernel matmul")
    assert "41459 cycles before, 380260 now" in first.reason
    assert second.question == "kernel_body"
    assert [f.question for f in changes(old, Record("step", kernels=(replace(SLOWER, cycles=None),)))] == [
        "unknown", "kernel_body",
    ]  # fmt: skip
    across = replace(new, made=replace(new.made, compiler="libtpu 9"))
    assert [f.question for f in changes(old, across, across=True)] == ["kernel_body"]
