"""Deciding: engines that break or disagree, small boxes, threads, forks, Ctrl-C and memory, each as a user meets it."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

import layoutproof as lp
from layoutproof.cli.main import cli
from layoutproof.core.errors import InternalError, Undecided
from layoutproof.solvers import brute, digits, isl
from tests.peak import peak

OVERLAP = "f32[3,5] strides (4,1)"
SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"


def _python(program: str, seconds: int = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=seconds
    )


def test_two_engines_that_disagree_confirm_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One engine proves it and the next refutes it: --confirm says so and accepts neither."""
    monkeypatch.setattr(digits, "decide", lambda claim, effort=1: None)
    with pytest.raises(
        InternalError, match=r"digits says None and brute says \{'first': \(0, 4\), 'second': \(1, 0\)\}"
    ):
        lp.ask("injective", OVERLAP, confirm=True)
    # and where both refute it, but at different points
    monkeypatch.setattr(digits, "decide", lambda claim, effort=1: {"first": (1, 4), "second": (2, 0)})
    with pytest.raises(InternalError, match="please report this"):
        lp.ask("injective", OVERLAP, confirm=True)


def test_two_engines_that_agree_confirm() -> None:
    """The twin: undisturbed, two engines refute it alike."""
    result = lp.ask("injective", OVERLAP, confirm=True)
    assert result.verdict is lp.Verdict.REFUTED
    assert result.decided_by == "digits+brute"


@pytest.mark.parametrize(
    ("layout", "verdict"), [(OVERLAP, lp.Verdict.REFUTED), ("f32[3,5] strides (5,1)", lp.Verdict.PROVED)]
)
def test_an_engine_that_breaks_is_told_beside_the_verdict(
    layout: str, verdict: lp.Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refutation that does not replay ends nothing: the next engine decides, and the answer names the broken one."""
    monkeypatch.setattr(digits, "decide", lambda claim, effort=1: {"first": (0, 0), "second": (2, 4)})
    answer = lp.ask("injective", layout)
    assert (answer.verdict, answer.decided_by) == (verdict, "brute")
    assert str(answer.figures["broken_engine"]).startswith("digits: digits found {'first': (0, 0), 'second': (2, 4)}")
    assert "broken_engine" in CliRunner().invoke(cli, ["ask", "injective", layout]).output


def test_an_engine_that_breaks_alone_is_a_bug_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody else decides, it is no verdict, nor is the other engines' silence."""
    monkeypatch.setattr(digits, "decide", lambda claim, effort=1: {"first": (0, 0), "second": (2, 4)})
    with pytest.raises(InternalError, match="digits found"):
        lp.ask("injective", OVERLAP, engine="digits")


def test_small_boxes_are_tried_before_isl_labours(monkeypatch: pytest.MonkeyPatch) -> None:
    """165 elements on 504 places are looked at in milliseconds, where isl would need seconds: it is not asked."""

    def refuse(claim: object, effort: float = 1) -> None:
        raise AssertionError("isl was asked")

    monkeypatch.setattr(isl, "decide", refuse)
    text = "(i < 33, j < 5) -> (((i * 11) // 6 + (i % 14 % 15) * 7 + (j * 11 // 6) * 29) % 504) in [504]"
    result = lp.ask("covers", text)
    assert (result.verdict, result.decided_by) == (lp.Verdict.REFUTED, "brute")
    # up to 100,000 are tried before isl gets its whole budget: the short try alone may fail first
    tries: list[float] = []

    def short(claim: object, effort: float = 1) -> None:
        tries.append(effort)
        raise Undecided("isl gives up")

    monkeypatch.setattr(isl, "decide", short)
    large = "(i < 1000, j < 33) -> ((i % 8 % 5) * 7 + (j % 9 % 4) * 29 + (i * 11 // 6)) in [5000]"
    assert lp.ask("covers", large).decided_by == "brute"
    assert all(effort < 1 for effort in tries)


def test_isl_is_never_in_one_call_for_long() -> None:
    """isl's hardest call, a subtraction that took half a minute, is given up after its share of operations."""
    from layoutproof.solvers.isl import CALL

    text = "(i < 1000) -> ((((i // 8) % 4) % 6)*30 + ((i // 4) + (i + i))*21, 198 + (i // 9)*20) in [504, 504]"
    result = lp.ask("covers", text, engine="isl")
    assert result.verdict is lp.Verdict.UNKNOWN
    assert f"one call of isl needs more than {CALL} operations" in result.reason


@pytest.mark.parametrize("tried", [brute.few, brute.bounded_search])
def test_symbolic_sizes_are_never_few(tried: object) -> None:
    """No number of sizes tried proves anything for all of them."""
    from layoutproof.properties import injective
    from layoutproof.registry.read import map_of, read_layout

    (claim,) = injective.claims(map_of(read_layout("f32[N,M] strides (M,1)")))
    with pytest.raises(Undecided):
        tried(claim)  # type: ignore[operator]


def test_ctrl_c_ends_z3_and_the_next_question_is_answered() -> None:
    """SIGINT while z3 works on what it cannot decide: KeyboardInterrupt arrives, not an answer."""
    done = _python(
        """
        import os, signal, threading
        # a job in the background of a shell ignores it, and so do its children
        signal.signal(signal.SIGINT, signal.default_int_handler)
        import layoutproof as lp
        # libraries that are being imported may swallow it
        lp.ask("injective", "f32[N,M] strides (M-1,1)", engine="smt")
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            cubes = "(i < 1000000007) -> (i * i * i % 1000000007,)"
            print(lp.ask("injective", cubes, engine="smt", effort=100).verdict)
        except KeyboardInterrupt:
            print("interrupted")
        print(lp.ask("injective", "f32[N,M] strides (M-1,1)", engine="smt").verdict.value)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\nrefuted\n", "")


def test_memory_of_z3_is_bounded() -> None:
    """A product of many factors takes z3 gigabytes: it stops at its bound, here a low one, and says why."""
    done = _python(
        textwrap.indent(inspect.getsource(peak), " " * 8)
        + """
        from layoutproof.solvers.smt import session
        session.MEMORY = 100
        import layoutproof as lp
        product = "*".join("i" * 12)
        result = lp.ask("injective", f"(i < 1000000007) -> ({product} % 1000003,)", engine="smt")
        print(result.verdict.value, "megabytes for z3 are spent" in result.reason)
        print(peak() < 500)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "unknown True\nTrue\n", "")


def test_nothing_of_z3_is_left_when_the_answer_is_there() -> None:
    """No term waits in a cycle for whichever thread collects garbage, and the common context was never made."""
    done = _python(
        """
        import gc
        gc.disable()
        import layoutproof as lp
        for engine, where in (("smt", None), ("smt", "N > 3 and M > 2")):
            lp.ask("injective", "f32[N,M]{1,0:T(8,128)}", engine=engine, where=where)
            lp.ask("injective", "f32[N,M] strides (M-1,1)", engine=engine, where=where)
            lp.ask("covers", "f32[N,M] strides (M-1,1)", engine=engine, where=where)
        import z3
        left = [x for x in gc.get_objects() if isinstance(x, (z3.AstRef, z3.Solver, z3.ModelRef, z3.Context))]
        print(len(left), z3.z3._main_ctx)
        """
    )
    assert (done.stdout, done.stderr) == ("0 None\n", "")


def test_a_fork_during_the_first_questions_leaves_a_child_that_works() -> None:
    """Other threads are importing engines, or are inside z3: the child asks all the same."""
    done = _python(
        """
        import os, threading
        import layoutproof as lp
        questions = [("covers", "f32[N,M]{1,0:T(8,128)}"), ("injective", "f32[N,M] strides (M-1,1)")]
        threads = [threading.Thread(target=lp.ask, args=q) for q in questions * 2]
        for thread in threads:
            thread.start()
            child = os.fork()
            if child == 0:
                os._exit(0 if [lp.ask(*q).verdict.value for q in questions] == ["refuted", "refuted"] else 1)
            assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert done.returncode == 0, done.stderr


def test_a_short_soak() -> None:
    """One round of each kind: threads with a collector beside them, z3 used by others, asyncio, fork, Ctrl-C, exit."""
    done = subprocess.run([sys.executable, str(SOAK), "--rounds", "4"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("4 rounds, 0 failed, ")
