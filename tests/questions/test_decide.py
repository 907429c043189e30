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
from tests.hangs import HANGS
from tests.peak import peak

pytestmark = pytest.mark.slow

OVERLAP = "f32[3,5] strides (4,1)"
SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"


def _python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=HANGS
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
        import os, signal, threading
        import layoutproof as lp
        questions = [("covers", "f32[N,M]{1,0:T(8,128)}"), ("injective", "f32[N,M] strides (M-1,1)")]
        threads = [threading.Thread(target=lp.ask, args=q) for q in questions * 2]
        for thread in threads:
            thread.start()
            child = os.fork()
            if child == 0:
                signal.alarm(600)
                os._exit(0 if [lp.ask(*q).verdict.value for q in questions] == ["refuted", "refuted"] else 1)
            assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert done.returncode == 0, done.stderr


_FORKS_BESIDE = """
import importlib, os, pathlib, signal, sys, tempfile, threading
sys.path.insert(0, tempfile.mkdtemp())

def module(name, *lines):
    pathlib.Path(sys.path[0], name + ".py").write_text("\\n".join(lines))

def child_imports(name, seconds):
    child = os.fork()
    if child == 0:
        # the end of a child that is stuck, also where nobody waits for it any more
        signal.alarm(seconds)
        importlib.import_module(name)
        os._exit(0)
    return os.waitpid(child, 0)[1]
"""


def test_no_import_begins_between_the_last_look_and_the_fork() -> None:
    """What runs before a fork and after us lets a thread try: it begins when the fork is done."""
    program = """
        module("late", "import __main__", "__main__.inside.set()", "__main__.go_on.wait()")
        inside, go_on, try_it = threading.Event(), threading.Event(), threading.Event()
        thread = threading.Thread(target=lambda: (try_it.wait(), importlib.import_module("late")))
        thread.start()
        # registered before ours, so that it runs after ours: gives the other thread its turn
        os.register_at_fork(before=lambda: (try_it.set(), inside.wait(1)))
        import layoutproof as lp
        # in the child nobody sets the event but the importer itself
        os.register_at_fork(after_in_child=go_on.set)
        status = child_imports("late", 60)
        go_on.set()
        thread.join()
        print(status)
        """
    assert _forks_beside(program) == "0\n"


def test_an_import_that_is_about_to_take_its_lock_is_waited_for() -> None:
    """Its lock exists and nobody owns it yet: the thread stands within the search for the lock."""
    program = """
        import layoutproof as lp
        module("late", "import __main__", "__main__.loaded.append(1)")
        loaded, first, forked = [], threading.Event(), threading.Event()
        lock = importlib._bootstrap._ModuleLock
        acquire = lock.acquire

        def slow(self):
            if threading.current_thread() is thread and not first.is_set():
                # it holds the small lock inside, as between two steps of acquire
                with self.lock:
                    first.set()
                    forked.wait(1)
            return acquire(self)

        lock.acquire = slow
        thread = threading.Thread(target=importlib.import_module, args=("late",))
        thread.start()
        first.wait()
        print(child_imports("late", 60))
        forked.set()
        thread.join()
        print(loaded)
        """
    assert _forks_beside(program) == "0\n[1]\n"


def test_what_waits_for_the_thread_that_forks_is_imported_anew_in_the_child() -> None:
    """A module forks while it is imported, and another thread waits within an import for that one: nobody can wait."""
    program = """
        import layoutproof as lp
        module("forks", "import __main__", "__main__.thread.start()", "__main__.waits.wait()",
               "__main__.status = __main__.child_imports('other', 60)")
        module("other", "import __main__", "__main__.waits.set()", "import forks", "x = 1")
        waits = threading.Event()
        thread = threading.Thread(target=importlib.import_module, args=("other",))
        importlib.import_module("forks")
        thread.join()
        print(status, sys.modules["other"].x)
        """
    assert _forks_beside(program) == "0 1\n"


def _forks_beside(program: str) -> str:
    done = _python(_FORKS_BESIDE + textwrap.dedent(program))
    assert not done.stderr or "use of fork() may lead to deadlocks" in done.stderr, done.stderr
    return done.stdout


@pytest.mark.commit
def test_forks_beside_threads_that_import_for_the_first_time() -> None:
    """Some hundred forks while three threads import modules, of which some fail: no child is stuck."""
    command = [sys.executable, str(SOAK), "--forks", "200"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS)
    assert (done.returncode, done.stdout) == (0, "200 forks, 0 stuck\n"), done.stderr


@pytest.mark.commit
def test_a_short_soak() -> None:
    """One round of each kind: threads with a collector beside them, z3 used by others, asyncio, fork, Ctrl-C, exit."""
    done = subprocess.run([sys.executable, str(SOAK), "--rounds", "4"], capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("4 rounds, 0 failed, ")
