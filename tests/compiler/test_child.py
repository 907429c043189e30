"""Processes of their own, real ones: whatever becomes of one is an answer to its request, and to that one alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from layoutproof.compiler.child import Child, Reply, ask
from layoutproof.compiler.serve import MARK, hung_up
from layoutproof.core.errors import BudgetExceeded, LayoutError
from tests.hangs import HANGS

pytestmark = pytest.mark.slow

CHILD = Child("the reader", "tests.compiler.answering", seconds=30)


@pytest.fixture(autouse=True)
def _tests_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answering program is a module of the tests."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))


def asked(*requests: Any, child: Child = CHILD, read: Callable[[Any], Any] = lambda value: value) -> list[Reply[Any]]:
    return list(ask(child, requests, read))


def one(*request: Any, child: Child = CHILD) -> Reply[Any]:
    """The answer to a request between two others, which have theirs whatever becomes of it."""
    before, found, after = asked(["echo", 1], request, ["echo", 2], child=child)
    assert (before, after) == (Reply(1), Reply(2))
    return found


def test_one_process_answers_all_requests() -> None:
    first, second = asked(["pid"], ["pid"])
    assert first.value == second.value != os.getpid()
    assert asked() == []


def test_answers_come_one_by_one() -> None:
    """The second request is not even made before the first is answered, and who stops ends the process."""
    made = []

    def requests() -> Any:
        for k in range(3):
            made.append(k)
            yield ["pid"]

    answers = ask(CHILD, requests(), int)
    pid = next(answers).value
    assert made == [0]
    assert alive(pid)
    answers.close()  # type: ignore[attr-defined]
    assert not alive(pid)


def alive(pid: Any) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return (
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z" if os.path.isdir("/proc") else True
    )


@pytest.mark.parametrize("value", [None, [], {"a": [1.5, "\x1e\n\u20ac", True]}, "x" * 5_000_000, list(range(200_000))])
def test_values_come_as_they_are(value: Any) -> None:
    """Also of several megabytes, both ways, and with the protocol's own marks in them."""
    assert asked(["echo", value], ["echo", value]) == [Reply(value), Reply(value)]


def test_big_requests_to_one_that_talks_first() -> None:
    """Neither side waits for the other's pipe: it writes more than a pipe holds before it reads the rest."""
    requests = [["stderr"], ["echo", "y" * 1_000_000]] * 3
    assert [answer.value for answer in asked(*requests)] == ["still here", "y" * 1_000_000] * 3


def test_a_program_that_never_reads(tmp_path: Path) -> None:
    script = tmp_path / "deaf.py"
    script.write_text("import time\ntime.sleep(1000)\n")
    (found,) = asked(["echo", "y" * 1_000_000], child=replace(CHILD, program=script, seconds=0.5))
    assert (found.cause, found.problem) == ("slow", "the reader did not come to an end within 0.5 s on it")


def test_progress_comes_before_the_answer() -> None:
    seen: list[Any] = []
    assert [a.value for a in ask(CHILD, [["progress", 3], ["progress", 0]], int, seen.append)] == [3, 0]
    assert seen == [{"done": 0}, {"done": 1}, {"done": 2}]


def test_garbage_on_standard_output_is_no_answer() -> None:
    """Python's, native code's, even with the protocol's mark; and nothing reads the next request away."""
    assert one("print", "\x1e{}").value == ""


@pytest.mark.parametrize(
    "garbage", ["x", "\\x1e", "\\x1e[]\\n", "\\x1enull\\n", '\\x1e{"answer": 1}\\n', "\\x1e{{{\\n"]
)
def test_a_program_that_speaks_another_language(garbage: str, tmp_path: Path) -> None:
    script = tmp_path / "other.py"
    script.write_text(f"import os, sys\nos.write(1, b'{garbage}')\nsys.exit('not installed')\n")
    for found in asked(["echo", 1], ["echo", 2], child=replace(CHILD, program=script)):
        assert found.value is None
        whole = garbage.endswith("\\n")
        assert found.cause == ("garbled" if whole else "ended")
        wanted = "gave no answer of a known form on it" if whole else "ended with exit code 1 on it: not installed"
        assert wanted in found.problem


def test_endless_garbage_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "loud.py"
    script.write_text("import os\nwhile True:\n    os.write(1, b'x' * 4096 + b'\\n')\n")
    (found,) = asked(1, child=replace(CHILD, program=script, seconds=0.5))
    assert found.cause == "slow"
    assert len(found.stderr) <= 1 << 16


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("SIGKILL", "by SIGKILL on it (it was killed, as the system does when memory runs out)"),
        ("SIGSEGV", "by SIGSEGV on it (it read or wrote memory that is not its own)"),
        ("SIGTERM", "by SIGTERM on it (it was asked to end)"),
        ("SIGUSR1", "by SIGUSR1 on it"),
    ],
)
def test_a_signal_in_words(name: str, why: str) -> None:
    found = one("kill", name)
    assert (found.cause, found.problem) == ("ended", f"the reader ended {why}")


@pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="no such signals here")
def test_a_signal_without_a_name() -> None:
    assert one("kill", "SIGRTMIN").problem.startswith("the reader ended by SIGRTMIN on it")


def test_native_code_that_gives_up() -> None:
    """The line that says what of, and not the stack after it; all of it is kept."""
    found = one("abort")
    assert found.problem.endswith("SIGABRT on it (it gave up by itself): x.cc:9] Check failed: ok")
    assert "stack trace" in found.stderr


def test_a_crash() -> None:
    assert "ended by SIGSEGV on it" in one("crash").problem


@pytest.mark.parametrize("code", [0, 1, 77])
def test_an_exit_without_an_answer(code: int) -> None:
    """Its last words are quoted, also where they are no text."""
    assert one("exit", code).problem == f"the reader ended with exit code {code} on it: \ufffd the last words"


def test_memory_is_limited() -> None:
    """In Python and in native code; what needs less has its answer."""
    small = replace(CHILD, memory=1 << 30)
    found = one("memory", 1 << 31, child=small)
    assert (found.cause, found.problem) == ("raised", "the reader failed on it: MemoryError; it may use 1024 MiB")
    found = one("native memory", 1 << 31, child=small)
    assert found.problem == "the reader ended by SIGABRT on it (it may use 1024 MiB): what(): std::bad_alloc"
    assert one("memory", 1 << 20, child=small).value == 1 << 20


def test_what_hangs_is_ended() -> None:
    start = time.monotonic()
    (found,) = asked(["hang"], child=replace(CHILD, seconds=0.5))
    assert (found.cause, found.problem) == ("slow", "the reader did not come to an end within 0.5 s on it")
    assert time.monotonic() - start < 20


def test_what_it_started_ends_with_it() -> None:
    (found,) = asked(["hang with a child"], child=replace(CHILD, seconds=1.0))
    assert found.cause == "slow"


def test_what_it_left_behind_holds_nobody_up() -> None:
    """A process of another session keeps its pipes open: its end is seen all the same."""
    found = one("leave a child")
    assert found.problem.startswith("the reader ended with exit code 5 on it")


def test_a_closed_pipe_is_no_answer() -> None:
    assert one("close").problem == "the reader closed its output without an answer to it"


def test_errors_of_ours_come_as_they_were() -> None:
    found = one("wrong input")
    assert isinstance(found.error, LayoutError)
    assert (found.cause, found.problem) == ("raised", "tile size 0 must be positive")
    assert (found.error.text, found.error.column) == ("f32[3]{0:T(0)}", 12)
    found = one("budget")
    assert isinstance(found.error, BudgetExceeded)
    assert str(found.error) == found.problem == "its steps are spent"


@pytest.mark.parametrize(
    ("request_", "words"), [(["raise", "no such thing"], "ValueError: no such thing"), (["no data"], "TypeError: ")]
)
def test_other_errors_are_told(request_: list[Any], words: str) -> None:
    found = one(*request_)
    assert (found.cause, found.error) == ("raised", None)
    assert found.problem.startswith(f"the reader failed on it: {words}")


def test_an_answer_of_another_form() -> None:
    first, second = asked(["echo", "7"], ["echo", "x"], read=int)
    assert first.value == 7
    assert second.problem.startswith("the reader gave no answer of a known form on it: ValueError")


def test_a_process_that_is_spoilt_is_replaced() -> None:
    answers = asked(["pid"], ["echo", "last"], ["pid"], ["pid"])
    assert [answer.problem for answer in answers] == [""] * 4
    assert answers[0].value != answers[2].value == answers[3].value


def test_it_stands_where_we_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In our folder, with our modules, and none of that folder's before them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    (found,) = asked(["where"], child=replace(CHILD, environment={"ANSWER": "42"}))
    assert found.value is not None, found.problem
    folder, path, variable = found.value
    assert (folder, variable) == (str(tmp_path), "42")
    assert set(filter(None, sys.path)) - {str(tmp_path)} <= {*path, str(tmp_path)}


def test_what_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(LayoutError, match=r"a Python process for the reader cannot be started: .*No such file"):
        asked(["pid"])


def test_it_ends_when_we_are_killed(tmp_path: Path) -> None:
    """In the middle of a long answer, with nobody left to end it."""
    code = (
        "from layoutproof.compiler.child import Child, ask\n"
        "answers = ask(Child('x', 'tests.compiler.answering'), [['pid'], ['hang']], int)\n"
        "print(next(answers).value, flush=True)\n"
        "next(answers)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + 30
    while alive(pid):
        assert time.monotonic() < end, "it is still there"
        time.sleep(0.1)


@pytest.mark.parametrize("early", [True, False])
def test_it_ends_where_nobody_holds_the_pipe(early: bool) -> None:
    """Its parent is there all the time, as where it was adopted before it looked: the pipe alone says who is gone.

    early: the pipe is closed before it begins, with a request in it. What it has started ends too.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "tests.compiler.answering"]
    with subprocess.Popen(command, env=environment, start_new_session=True, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(messages({"memory": None}, {"request": ["tell and hang with a child"]}))
        process.stdin.flush()
        if not early:
            process.stdout.readline()
        process.stdin.close()
        # the end of what it writes is the end of the last process that holds its output
        process.stdout.read()
        assert process.wait(HANGS) == -signal.SIGKILL


def test_who_has_every_answer_may_hang_up() -> None:
    """It ends by itself, with its own exit code."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tests.compiler.answering"]
    given = messages({"memory": None}, {"request": ["slowly", 2.5]})
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(given)
        process.stdin.flush()
        assert b'"answer": "done"' in process.stdout.readline()
        process.stdin.close()
        assert process.wait(HANGS) == 0


def messages(*data: Any) -> bytes:
    """As they stand in the pipe."""
    return "".join(f"{MARK}{json.dumps(each)}\n" for each in data).encode("ascii")


def test_a_pipe_is_hung_up_whatever_is_left_in_it() -> None:
    told, tells = os.pipe()
    os.write(tells, b"x")
    assert not hung_up(told)
    os.close(tells)
    assert hung_up(told)
    os.read(told, 1)
    assert hung_up(told)
    os.close(told)
