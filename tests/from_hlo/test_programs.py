"""HLO modules as programs: what each family of instructions computes, against NumPy and by what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.from_hlo.programs import compiled
from layoutproof.hlotext.lines import read_hlo
from layoutproof.ir.program import Array
from layoutproof.values.floats import Floats
from layoutproof.values.known import Known
from layoutproof.values.refusals import NotModelled
from layoutproof.values.walk import Prepared, Walk

ADD = "add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }\n"
MAX = "max { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] maximum(x, y) }\n"


def run(entry: str, *given: Any, before: str = "") -> list[Any]:
    """What a module computes of arrays. entry: the instructions of its entry computation, a line each."""
    lines = "".join(f"  {line}\n" for line in entry.strip().splitlines())
    (module,) = read_hlo(f"HloModule m\n{before}\nENTRY e {{\n{lines}}}\n".splitlines(keepends=True))
    made = compiled(module)
    numbers = Floats(1)
    values = [Known(np.asarray(x)) if np.asarray(x).dtype.kind in "iub" else numbers.constant(x) for x in given]
    return [np.asarray(v.array) for v in Walk(numbers, Prepared()).run(made.program, values)]


def drawn(*shape: int) -> Any:
    """Numbers."""
    return np.random.default_rng(3).standard_normal(shape)


A, B = drawn(3, 4), drawn(4, 5)
SQUARE = np.eye(4) * 3 + drawn(4, 4) / 4
CASES = {
    "fft": (
        "a = f32[3,4] parameter(0)\nb = c64[3,3] fft(a), fft_type=RFFT, fft_length={4}\nc = f32[3,3] real(b)\n"
        "d = f32[3,3] imag(b)\nROOT e = f32[3,3] subtract(c, d)",
        (A,), np.fft.rfft(A).real - np.fft.rfft(A).imag,
    ),
    "triangular-solve": (
        "a = f32[4,4] parameter(0)\nb = f32[4,5] parameter(1)\n"
        "ROOT c = f32[4,5] triangular-solve(a, b), left_side=true, lower=true, transpose_a=TRANSPOSE",
        (SQUARE, B), np.linalg.solve(np.tril(SQUARE).T, B),
    ),
    "cholesky": (
        "a = f32[4,4] parameter(0)\nROOT c = f32[4,4] cholesky(a), lower=true",
        (SQUARE @ SQUARE.T,), np.linalg.cholesky(SQUARE @ SQUARE.T),
    ),
    "dot": (
        "a = f32[3,4] parameter(0)\nb = f32[4,5] parameter(1)\n"
        "ROOT c = f32[3,5] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", (A, B), A @ B,
    ),
    "a product as the TPU compiler writes it": (
        "a = f32[3,4] parameter(0)\nb = f32[4,5] parameter(1)\n"
        "ROOT c = f32[5,3] convolution(a, b), dim_labels=bf_io->fb",
        (A, B), (A @ B).T,
    ),
    "products of several matrices, likewise": (
        "a = f32[2,3,4] parameter(0)\nb = f32[2,5,4] parameter(1)\n"
        "ROOT c = f32[2,3,5] convolution(a, b), window={size=2 stride=1 lhs_dilate=2}, dim_labels=0bf_0oi->0bf",
        (drawn(2, 3, 4), drawn(2, 5, 4)), np.einsum("bij,bkj->bik", drawn(2, 3, 4), drawn(2, 5, 4)),
    ),
    "a convolution whose kernel is turned": (
        "a = f32[1,6,1] parameter(0)\nb = f32[3,1,1] parameter(1)\n"
        "ROOT c = f32[1,4,1] convolution(a, b), window={size=3 rhs_reversal=1}, dim_labels=b0f_0io->b0f",
        (drawn(1, 6, 1), drawn(3, 1, 1)),
        np.convolve(drawn(1, 6, 1)[0, :, 0], drawn(3, 1, 1)[:, 0, 0], "valid")[None, :, None],
    ),
    "reduce with a start": (
        "a = f32[3,4] parameter(0)\nb = f32[] constant(2)\nROOT c = f32[4] reduce(a, b), dimensions={0}, to_apply=add",
        (A,), A.sum(0) + 2,
    ),
    "reduce-window, all up to each place": (
        "a = f32[3,4] parameter(0)\nb = f32[] constant(0)\n"
        "ROOT c = f32[3,4] reduce-window(a, b), window={size=1x4 pad=0_0x3_0}, to_apply=add", (A,), np.cumsum(A, 1),
    ),
    "reduce-window, steps of two": (
        "a = f32[3,4] parameter(0)\nb = f32[] constant(-inf)\n"
        "ROOT c = f32[3,2] reduce-window(a, b), window={size=1x2 stride=1x2}, to_apply=max",
        (A,), A.reshape(3, 2, 2).max(2),
    ),
    "a bitcast of layouts": (
        "a = f32[3,4]{1,0} parameter(0)\nROOT c = f32[4,3]{0,1} bitcast(a)", (A,), A.T,
    ),
    "a bitcast of whole tiles": (
        "a = f32[8,256]{1,0:T(8,128)} parameter(0)\nROOT c = f32[16,128]{1,0:T(8,128)} bitcast(a)",
        (drawn(8, 256),), drawn(8, 256).reshape(8, 2, 128).transpose(1, 0, 2).reshape(16, 128),
    ),
    "a loop of known trips": (
        "a = f32[4] parameter(0)\nz = s32[] constant(0)\nt = (s32[], f32[4]) tuple(z, a)\n"
        "w = (s32[], f32[4]) while(t), condition=test, body=step\nROOT c = f32[4] get-tuple-element(w), index=1",
        (A[0],), A[0] * 8,
    ),
    "a branch": (
        "k = s32[] parameter(0)\na = f32[4] parameter(1)\n"
        "ROOT c = f32[4] conditional(k, a, a), branch_computations={twice, same}", (np.int32(-5), A[0]), A[0],
    ),
    "gather of rows": (
        "a = f32[3,4] parameter(0)\ni = s32[2] parameter(1)\nROOT c = f32[2,4] gather(a, i), offset_dims={1}, "
        "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}",
        (A, np.array([2, 7], np.int32)), A[[2, 2]],
    ),
    "scatter that adds": (
        "a = f32[3,4] parameter(0)\ni = s32[2] parameter(1)\nu = f32[2,4] parameter(2)\n"
        "ROOT c = f32[3,4] scatter(a, i, u), update_window_dims={1}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
        (A, np.array([1, 1], np.int32), B[:2, :4]), A + np.stack([0 * A[0], B[0, :4] + B[1, :4], 0 * A[0]]),
    ),
    "pad that cuts, and pads between": (
        "a = f32[4] parameter(0)\nb = f32[] constant(7)\nROOT c = f32[6] pad(a, b), padding=-1_2_1",
        (A[0],), np.array([7, A[0][1], 7, A[0][2], 7, A[0][3], 7, 7])[0:6],
    ),
    "what is started and waited for": (
        "a = f32[4] parameter(0)\ns = (f32[4]{0:S(1)}, f32[4], u32[]) copy-start(a)\n"
        "ROOT c = f32[4]{0:S(1)} copy-done(s)",
        (A[0],), A[0],
    ),
    "a select that turns a type without a convert": (
        "a = f32[4] parameter(0)\nz = f32[] constant(0)\nb = f32[4] broadcast(z), dimensions={}\n"
        "p = pred[4] compare(a, b), direction=GT\nROOT c = bf16[4] select(p, a, b)", (A[0],), np.maximum(A[0], 0),
    ),
}  # fmt: skip
BODIES = (
    ADD + MAX + "test { p = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(3) "
    "ROOT l = pred[] compare(i, n), direction=LT }\n"
    "step { p = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(p), index=0 o = s32[] constant(1) "
    "j = s32[] add(i, o) x = f32[4] get-tuple-element(p), index=1 y = f32[4] add(x, x) "
    "ROOT t = (s32[], f32[4]) tuple(j, y) }\n"
    "twice { x = f32[4] parameter(0) ROOT y = f32[4] add(x, x) }\n"
    "same { x = f32[4] parameter(0) ROOT y = f32[4] copy(x) }\n"
)


@pytest.mark.parametrize("name", CASES)
def test_what_it_computes(name: str) -> None:
    """Each is what NumPy makes of the same numbers."""
    if name.startswith(("gather", "scatter")):
        pytest.importorskip("jax", reason="where a gather and a scatter go is JAX's own rule")
    entry, given, wanted = CASES[name]
    (found,) = run(entry, *given, before=BODIES)
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_memory_that_nobody_wrote() -> None:
    """A bitcast that takes padding in has no number there; behind a select that looks away it has one."""
    entry = (
        "a = f32[2,3]{1,0:T(8,128)} parameter(0)\nROOT c = f32[2,4]{1,0:T(8,128)} bitcast(a)\n"
    )  # fmt: skip
    (found,) = run(entry, drawn(2, 3))
    assert np.isnan(found[:, 3]).all()
    assert not np.isnan(found[:, :3]).any()


REFUSED = {
    "sort": ("a = f32[4] parameter(0)\nROOT c = f32[4] sort(a), dimensions={0}, to_apply=max", "an order of data"),
    "fft": (
        "a = f32[2048] parameter(0)\nROOT c = c64[1025] fft(a), fft_type=RFFT, fft_length={2048}",
        "a Fourier transform along 2,048 elements, more than 1,024",
    ),
    "cholesky": (
        "a = f32[4,4] parameter(0)\nROOT c = f32[4,4] cholesky(a), lower=false",
        "a factorisation into an upper triangle",
    ),
    "custom-call": (
        'a = f32[4] parameter(0)\nROOT c = f32[4] custom-call(a), custom_call_target="mine"', "a custom call of mine",
    ),
    "constant": (
        "ROOT c = f32[100] constant({...})", "a constant that the text leaves out: have large constants printed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_by_name(name: str) -> None:
    """What nobody models is an equation of its own, and refused where somebody walks over it."""
    entry, why = REFUSED[name]
    given = [drawn(*map(int, entry.split("[")[1].split("]")[0].split(",")))] if "parameter" in entry else []
    with pytest.raises(NotModelled) as refusal:
        run(entry, *given, before=BODIES)
    assert refusal.value.what == why


def expanded(slope: float) -> Any:
    """A module whose erf is written out as a line, which it is nowhere but at 0."""
    meta = ', metadata={op_name="jit(f)/erf"}'
    text = (
        "HloModule m\nENTRY e {\n  a = f32[4096] parameter(0)\n"
        f"  k = f32[] constant({slope})\n  b = f32[4096] broadcast(k), dimensions={{}}{meta}\n"
        f"  c = f32[4096] multiply(a, b){meta}\n  ROOT d = f32[4096] negate(c)\n}}\n"
    )
    (module,) = read_hlo(text.splitlines(keepends=True))
    return compiled(module)


def test_what_says_that_it_is_a_function_and_is_none_stays_what_it_is() -> None:
    """The name alone convinces nobody: the numbers have to be the function's."""
    made = expanded(1.1283791)
    assert not made.expansions
    assert [e.primitive.name for e in made.program.eqns] == ["broadcast_in_dim", "mul", "neg"]


def test_places_are_of_the_text_where_it_says_no_others() -> None:
    """An equation stands where its instruction does."""
    text = "HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n  ROOT b = f32[2] add(a, a)\n}\n"
    (module,) = read_hlo(text.splitlines(keepends=True))
    (equation,) = compiled(module, "dump.hlo").program.eqns
    assert equation.source == "dump.hlo:4"
    assert equation.outvars[0].aval == Array((2,), np.dtype("float32"))


@pytest.mark.parametrize(
    "text",
    [
        "HloModule m\nENTRY e {\n  a = f32[<=2] parameter(0)\n  ROOT b = f32[<=2] add(a, a)\n}\n",
        "HloModule m\nENTRY e {\n  ROOT b = f32[2] fusion(), kind=kLoop, calls=nobody\n}\n",
    ],
)
def test_what_is_no_program(text: str) -> None:
    """A size that only the running program knows, and a computation that is not there."""
    (module,) = read_hlo(text.splitlines(keepends=True))
    with pytest.raises(LayoutError):
        compiled(module)


@pytest.mark.slow
def test_computations_that_call_each_other_many_times_are_bounded() -> None:
    """Each of 40 computations calls the one before it twice: a trillion instructions, and an error at once."""
    parts = ["HloModule m\n", "c0 {\n  x = f32[] parameter(0)\n  ROOT y = f32[] add(x, x)\n}\n"]
    for k in range(1, 40):
        parts.append(
            f"c{k} {{\n  x = f32[] parameter(0)\n  y = f32[] call(x), to_apply=c{k - 1}\n"
            f"  ROOT z = f32[] call(y), to_apply=c{k - 1}\n}}\n"
        )
    parts.append("ENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=c39\n}\n")
    (module,) = read_hlo("".join(parts).splitlines(keepends=True))
    with pytest.raises(LayoutError, match="more than 200,000 equations"):
        compiled(module)
