"""`with layoutproof.guard()`: every way in which JAX traces a Pallas call, and what must never be silent."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import layoutproof
from layoutproof.cli.guard import Judge
from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Unmodelled
from layoutproof.pallas.from_jax.adapter import device_of
from tests.cli.user_code import CALL_LINE, folder_with_kernels
from tests.said import words

pytestmark = pytest.mark.slow

ROOT = Path(layoutproof.__file__).parents[1]
jax = pytest.importorskip("jax", reason="JAX is not installed")


@pytest.fixture
def mine(tmp_path: Path) -> Any:
    """The module of user code, fresh, because JAX does not trace a function again that it has traced."""
    path = folder_with_kernels(tmp_path, "guarded_kernels")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def zeros(*dims: int) -> Any:
    return jax.ShapeDtypeStruct(dims, jax.numpy.float32)


def grids(seen: Any) -> list[tuple[int, ...]]:
    return [call.call.grid for call in seen.calls]


def test_a_wrong_call_raises(mine: Any) -> None:
    """The error is the report, with the user's line; it is no LayoutError, which would say that the input is bad."""
    with pytest.raises(layoutproof.KernelError) as caught, layoutproof.guard() as seen:
        jax.eval_shape(mine.copy, zeros(1000, 128))
    assert words(
        "pallas.outputs_covered_unwritten", operand="outputs", parts="768:1000, 0:128", kind="block", number="(3, 0)"
    ) in str(caught.value)
    assert f"guarded_kernels.py:{CALL_LINE}" in str(caught.value)
    assert not isinstance(caught.value, LayoutError)
    assert [call.verdict for call in caught.value.calls] == [Verdict.REFUTED]
    assert seen.calls == caught.value.calls


def test_a_right_call_is_silent(mine: Any) -> None:
    """Nothing is raised and nothing warned, and what was proved is there to look at."""
    with layoutproof.guard(target="v5e") as seen:
        jax.eval_shape(mine.copy, zeros(1024, 128))
    assert [call.verdict for call in seen.calls] == [Verdict.PROVED]
    assert "block_shape" in seen.calls[0].proved()


WAYS = {
    "eval_shape": lambda f: jax.eval_shape(f, zeros(1000, 128)),
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(zeros(1000, 128)),
    "lowered": lambda f: jax.jit(f).lower(zeros(1000, 128)),
    "called": lambda f: f(jax.numpy.zeros((1000, 128))),
    "jit": lambda f: jax.jit(f)(jax.numpy.zeros((1000, 128))),
    "jit in jit": lambda f: jax.eval_shape(jax.jit(lambda x: jax.jit(f)(x) + 1), zeros(1000, 128)),
    "scan": lambda f: jax.eval_shape(lambda xs: jax.lax.scan(lambda c, x: (c, f(x)), 0, xs), zeros(2, 1000, 128)),
    "cond": lambda f: jax.eval_shape(lambda x: jax.lax.cond(x[0, 0] > 0, f, lambda y: y, x), zeros(1000, 128)),
    "custom_vjp": lambda f: jax.eval_shape(jax.grad(lambda x: _with_gradient(f)(x).sum()), zeros(1000, 128)),
}


def _with_gradient(f: Any) -> Any:
    wrapped = jax.custom_vjp(f)
    wrapped.defvjp(lambda x: (f(x), None), lambda _, g: (g,))
    return wrapped


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_trace(way: str, mine: Any) -> None:
    """The wrong grid of 3 is found however the call is reached, once, with the line of the call."""
    with pytest.raises(layoutproof.KernelError) as caught, layoutproof.guard() as seen:
        WAYS[way](lambda x: mine.copy(x))
    assert grids(seen) == [(3,)]
    assert all(call.call.source for call in caught.value.calls)


def test_vmap_is_judged_as_it_runs(mine: Any) -> None:
    """The batched grid, not the one that the user wrote."""
    with layoutproof.guard() as seen:
        jax.eval_shape(jax.vmap(mine.copy), zeros(5, 1024, 128))
    assert grids(seen) == [(5, 4)]


def test_equal_calls_are_judged_once(mine: Any) -> None:
    """Twice the same call is one report; another shape is another call."""
    with layoutproof.guard() as seen:
        for rows in (512, 512, 1024):
            jax.eval_shape(lambda x: mine.copy(mine.copy(x)), zeros(rows, 128))
    assert grids(seen) == [(2,), (4,)]


def test_unused_outputs_are_no_error(mine: Any) -> None:
    """An output that nobody uses may be written wrongly: only the whole function shows that."""
    with layoutproof.guard() as seen:
        jax.eval_shape(mine.scratch_outputs, zeros(64, 128))
    assert [call.verdict for call in seen.calls] == [Verdict.PROVED]
    assert any(f.severity == "info" and f.verdict is Verdict.REFUTED for f in seen.calls[0].findings)


def test_unknown_is_a_warning_and_never_silent(mine: Any) -> None:
    """A kernel that waits for other devices, and one that reads a table of which nothing is known."""
    for traced in (
        lambda: jax.eval_shape(mine.barrier, zeros(8, 128)),
        lambda: jax.eval_shape(mine.gather, jax.ShapeDtypeStruct((8,), jax.numpy.int32), zeros(64, 128)),
    ):
        with pytest.warns(layoutproof.KernelWarning, match="unknown"), layoutproof.guard() as seen:
            traced()
        assert [call.verdict for call in seen.calls] == [Verdict.UNKNOWN]


def test_assumptions_said_by_a_decorator(mine: Any) -> None:
    """They settle the question for what is traced while the function runs, with their words, and for nothing else."""
    arguments = (jax.ShapeDtypeStruct((8,), jax.numpy.int32), zeros(64, 128))
    gather = layoutproof.assume("0 <= prefetch0 < 8")(jax.jit(mine.gather))
    with layoutproof.guard() as seen:
        jax.eval_shape(gather, *arguments)
    assert [call.verdict for call in seen.calls] == [Verdict.PROVED]
    assert "0 <= prefetch0 < 8" in {said for f in seen.calls[0].findings for said in f.assumes}
    wider = layoutproof.assume("0 <= prefetch0 < 9")(mine.gather)
    with pytest.warns(layoutproof.KernelWarning, match="refuted if prefetch0 can be"), layoutproof.guard() as seen:
        jax.eval_shape(wider, *arguments)
    assert [call.verdict for call in seen.calls] == [Verdict.UNKNOWN]
    strict = layoutproof.kernels(mine.gather, *arguments, assume=["0 <= prefetch0 < 9"], strict_tables=True)
    assert [call.verdict for call in strict.calls] == [Verdict.REFUTED]
    jax.clear_caches()
    with pytest.warns(layoutproof.KernelWarning, match="unknown"), layoutproof.guard():
        jax.eval_shape(mine.gather, *arguments)
    with pytest.raises(LayoutError, match="an assumption is '0 <= t < 8'"):
        layoutproof.assume("prefetch0")


def test_pipelines_inside_of_kernels(mine: Any) -> None:
    """A kernel that moves its data by emit_pipeline is judged by what the pipeline does."""
    with device_of("v5e"), layoutproof.guard() as seen:
        jax.eval_shape(lambda x: mine.pipelined(x, 4), zeros(32, 128))
    assert grids(seen) == [(), (4,)]
    wrong = pytest.raises(layoutproof.KernelError, match="no program writes")
    with wrong, device_of("v5e"), layoutproof.guard():
        jax.eval_shape(lambda x: mine.pipelined(x, 3), zeros(32, 128))


def test_warn_instead_of_raise(mine: Any) -> None:
    """With on="warn" a wrong call is a warning."""
    with pytest.warns(layoutproof.KernelWarning, match="no program writes"), layoutproof.guard(on="warn") as seen:
        jax.eval_shape(mine.copy, zeros(1000, 128))
    assert [call.verdict for call in seen.calls] == [Verdict.REFUTED]


def test_the_blocks_own_exception_goes_on(mine: Any) -> None:
    """It is not hidden by the report, which becomes a note."""

    def wrong() -> None:
        jax.eval_shape(mine.copy, zeros(1000, 128))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught, layoutproof.guard():
        wrong()
    assert "no program writes" in caught.value.__notes__[0]


def test_jax_is_left_as_it_was(mine: Any) -> None:
    """After the block nothing is watched, also after an exception and for guards in guards."""
    from jax._src.interpreters.partial_eval import JaxprStackFrame

    before, finders = JaxprStackFrame.to_jaxpr, list(sys.meta_path)
    with layoutproof.guard() as outer, layoutproof.guard() as inner:
        jax.eval_shape(mine.copy, zeros(256, 128))
    assert grids(outer) == grids(inner) == [(1,)]
    with pytest.raises(ZeroDivisionError), layoutproof.guard():
        raise ZeroDivisionError
    assert JaxprStackFrame.to_jaxpr is before
    assert sys.meta_path == finders
    jax.eval_shape(mine.copy, zeros(1000, 128))


def test_a_failure_of_ours_is_not_taken_for_a_proof(mine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If looking at a traced function fails, the user's program goes on and the call is unknown."""

    def broken(*_: Any) -> None:
        raise KeyError("new in this version")

    monkeypatch.setattr("layoutproof.pallas.from_jax.trace.walk", broken)
    said = "please report it: KeyError: 'new in this version'"
    with pytest.warns(layoutproof.KernelWarning, match=said), layoutproof.guard():
        shape = jax.eval_shape(mine.copy, zeros(1024, 128)).shape
    assert shape == (1024, 128)


def test_a_cached_trace_is_not_seen_and_a_cleared_one_is(mine: Any) -> None:
    """What the manual says of jit caches is so."""
    traced = jax.jit(lambda x: mine.copy(x))
    traced(jax.numpy.zeros((1000, 128)))
    with pytest.warns(layoutproof.KernelWarning, match=words("cli.guard_no_call")), layoutproof.guard() as seen:
        traced(jax.numpy.zeros((1000, 128)))
    assert seen.calls == ()
    traced.clear_cache()
    with pytest.raises(layoutproof.KernelError), layoutproof.guard():
        traced(jax.numpy.zeros((1000, 128)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on": "print"}, words("cli.guard_on", found="print")),
        ({"target": "v99"}, words("core.unknown_name", what="target", word="v99", rest="; known: ")),
    ],
)
def test_wrong_input(options: dict[str, str], said: str) -> None:
    """Told before the block runs."""
    with pytest.raises(LayoutError, match=said), layoutproof.guard(**options):
        pytest.fail("the block ran")


def test_judge_keeps_what_it_knows() -> None:
    """The same call in two tests is judged once."""
    judge = Judge()
    odd = Unmodelled("mm", "a.py:7", "odd")
    first = judge.of((odd, odd))
    second = judge.of((Unmodelled("mm", "a.py:7", "odd"),))
    assert len(first) == 1
    assert first.keys() == second.keys()
    assert all(second[key] is call for key, call in first.items())


def process(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Code in a fresh process, beside the module of user code."""
    setup = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(folder)!r}]; import layoutproof\n"
    return subprocess.run(
        [sys.executable, "-c", setup + code], capture_output=True, text=True, check=False, timeout=120
    )


def test_jax_may_be_imported_inside(tmp_path: Path) -> None:
    """The guard does not import JAX, and waits for Pallas to be imported."""
    folder_with_kernels(tmp_path)
    code = (
        "with layoutproof.guard(on='warn') as seen:\n"
        "    assert 'jax' not in sys.modules\n"
        "    import jax, users_kernels\n"
        "    jax.eval_shape(users_kernels.copy, jax.ShapeDtypeStruct((1000, 128), 'float32'))\n"
        "    from layoutproof.pallas.from_jax.adapter import device_of\n"
        "    with device_of('v5e'):\n"
        "        jax.eval_shape(lambda x: users_kernels.pipelined(x, 3), jax.ShapeDtypeStruct((32, 128), 'float32'))\n"
        "print([call.verdict.value for call in seen.calls])\n"
    )
    done = process(code, tmp_path)
    assert (done.stdout, done.returncode) == ("imported\n['refuted', 'refuted', 'refuted']\n", 0), done.stderr


def test_without_jax(tmp_path: Path) -> None:
    """A guard that can see nothing says so at once."""
    code = (
        "import importlib.util\n"
        "importlib.util.find_spec = lambda name: None\n"
        "try:\n"
        "    with layoutproof.guard(): print('the block ran')\n"
        "except layoutproof.LayoutError as error: print(error)\n"
    )
    done = process(code, tmp_path)
    assert done.stdout == words("cli.guard_without_jax") + "\n", done.stderr


def test_no_warning_escapes_a_right_suite(mine: Any) -> None:
    """Warnings are errors here, and a right call raises none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with layoutproof.guard():
            jax.eval_shape(mine.two, zeros(1024, 128))


def test_calls_that_differ_in_their_bodies_alone_are_judged_each() -> None:
    """Equal grids, blocks and source lines: the second body, which reads past its block, is not taken for the first."""
    from jax.experimental import pallas as pl

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))

    def call(x: Any, first: int) -> Any:
        def body(a: Any, b: Any) -> None:
            b[...] = a[pl.ds(first + 0 * pl.program_id(0), 8), :]

        return pl.pallas_call(body, grid=(2,), in_specs=[block], out_specs=block, out_shape=zeros(16, 128))(x)

    with layoutproof.guard() as right:
        jax.eval_shape(lambda x: (call(x, 0), call(x, 0)), zeros(16, 128))
    assert [judged.verdict for judged in right.calls] == [Verdict.PROVED]
    with pytest.raises(layoutproof.KernelError, match="body_in_bounds") as caught, layoutproof.guard():
        jax.eval_shape(lambda x: (call(x, 0), call(x, 8)), zeros(16, 128))
    assert [judged.verdict for judged in caught.value.calls] == [Verdict.REFUTED]
