"""The command as a process of its own: what only shows there, such as pipes, terminals, signals and imports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import layoutproof
from layoutproof.programs.record import MemoryStats, ProgramValue, Record
from tests.hangs import HANGS

pytestmark = pytest.mark.slow

ROOT = Path(layoutproof.__file__).parents[1]
SCORES = "f32[3,5]{1,0:T(2,2)}"
OVERLAP = "f32[3,5] strides (4,1)"


def process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The same as a process of its own, which is what users start."""
    command = [sys.executable, "-m", "layoutproof", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGS, **options)


def spec(folder: Path, *checks: str) -> str:
    """A spec file with these checks."""
    path = folder / "a.yaml"
    path.write_text("source: here\nchecks:\n" + "".join(f"  - {check}\n" for check in checks))
    return str(path)


def test_check_as_users_run_it(tmp_path: Path) -> None:
    """End to end: a refuted claim in a folder of specs shows where it is and why, and the process exits 1."""
    path = Path(spec(tmp_path, f"injective: {SCORES}", f"injective: {OVERLAP}")).as_posix()
    done = process("check", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == ""
    assert re.sub(r"\d+\.\d m?s", "TIME", done.stdout) == (
        f"refuted  injective  {OVERLAP}   {path}:4:5\n"
        f"  layout   {OVERLAP}\n"
        "  because  (0, 4) and (1, 0) are both stored at offset 4\n"
        "  at       first=(0, 4) second=(1, 0)\n"
        "  by       digits\n"
        "  explain  layoutproof explain injective\n"
        "\n"
        "1 of 2 claims as stated: 1 proved; 1 NOT as stated; TIME\n"
    )


def test_check_imports_no_solver_it_does_not_need(tmp_path: Path) -> None:
    """Claims that structure decides load neither numpy nor a solver; a table loads numpy, several processes no more."""
    heavy = ("numpy", "islpy", "z3", "sympy", "jax", "rich", "joblib", "matplotlib")
    code = f"""
import sys
from layoutproof.cli.main import run
print(run(["check", *sys.argv[1:]]), [m for m in {heavy!r} if m in sys.modules], file=sys.stderr)
"""

    def loaded(*arguments: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGS)
        return done.stderr.strip()

    assert loaded(spec(tmp_path, f"bijective: {SCORES}", f"same_map: ['{SCORES}', '{SCORES}']")) == "0 []"
    assert loaded(spec(tmp_path, "table: f32[2]{0}\n    is: [0, 1]")) == "0 ['numpy']"
    assert loaded(spec(tmp_path, *[f"bijective: {SCORES}"] * 40), "--jobs", "2") == "0 []"


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (("--help",), []),
        (("ask", "injective", SCORES), []),
        (("search", "--help"), []),
        (("schema", "search"), ["pydantic", "yaml"]),
    ],
    ids=lambda value: " ".join(value[:2]),
)
def test_only_who_reads_files_pays_for_their_models(arguments: tuple[str, ...], loaded: list[str]) -> None:
    """Help and a constant question load neither YAML nor pydantic."""
    code = f"""
import sys
from layoutproof.cli.main import run
print(run(sys.argv[1:]), [m for m in {["pydantic", "yaml"]!r} if m in sys.modules], file=sys.stderr)
"""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGS)
    assert done.stderr.strip() == f"0 {loaded}"


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`layoutproof explain | head` prints no complaint and is not taken for a refutation."""
    for arguments in (["schema"], ["--help"]):
        command = [sys.executable, "-m", "layoutproof", *arguments]
        reading, writing = os.pipe()
        os.close(reading)
        try:
            done = subprocess.run(
                command, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=HANGS
            )
        finally:
            os.close(writing)
        assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_full_disk_is_not_refuted(options: tuple[str, ...]) -> None:
    """Output that cannot be written ends with 2 and a sentence; 1 would mean refuted."""
    command = [sys.executable, "-m", "layoutproof", "ask", "injective", SCORES, *options]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=HANGS)
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_stdout_is_not_refuted() -> None:
    """Nobody wants the output, so only the exit code answers."""
    command = [sys.executable, "-m", "layoutproof", "ask", "injective", SCORES]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command], cwd=ROOT, stderr=subprocess.PIPE, timeout=HANGS
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_shell_can_complete() -> None:
    """The shell's question for commands that start with `che` is answered with `check`."""
    asked = {"_LAYOUTPROOF_COMPLETE": "bash_complete", "COMP_WORDS": "layoutproof che", "COMP_CWORD": "1"}
    assert process(env={**os.environ, **asked}).stdout == "plain,check\n"


def test_a_terminal_without_the_characters_is_no_error() -> None:
    """A picture has lines that Latin-1 lacks; they are replaced, nothing fails."""
    done = process("show", SCORES, env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "12 13 ? 16 17" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
def test_a_long_check_shows_progress_on_a_terminal_only(tmp_path: Path) -> None:
    """On a terminal a bar appears on stderr, and stdout is the same as without one."""
    code = """
import sys
from layoutproof.cli import main as cli, progress
progress.PATIENCE = -1.0
sys.exit(cli.run(["check", sys.argv[1]]))
"""
    path = spec(tmp_path, *[f"injective: {SCORES}"] * 100)
    command = [sys.executable, "-c", code, path]
    master, slave = os.openpty()
    # no bar fails below rather than waiting for one
    os.write(slave, b"|")
    try:
        shown = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=slave, text=True, timeout=HANGS, check=True
        )
        bar = os.read(master, 10_000).decode(errors="replace")
    finally:
        os.close(slave)
        os.close(master)
    silent = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANGS, check=True)
    assert "checks" in bar
    assert silent.stdout.splitlines()[-1].startswith("100 claims as stated: 100 proved; ")
    assert shown.stdout.splitlines()[-1].startswith("100 claims as stated: 100 proved; ")
    assert silent.stderr == ""


def test_interrupted_is_130() -> None:
    """Ctrl-C ends with the shell's own code and one word."""
    code = """
from layoutproof.cli import main as cli
def interrupt(arguments):
    raise KeyboardInterrupt
cli.run = interrupt
cli.main([])
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGS)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


LOST = """
class Lost:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
Lost()
"""
"""What is raised in a finaliser Python prints and forgets."""
LONG = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]); os.kill(os.getpid(), signal.SIGINT)"
"""The main thread hears of nothing, as in one long product."""


@pytest.mark.parametrize("work", [LOST, LONG])
def test_interrupted_where_the_main_thread_does_not_hear_of_it(work: str) -> None:
    """One line and the same code, and no traceback of a finaliser."""
    assert _interrupted(work, "default_int_handler") == (130, "", "interrupted\n")


@pytest.mark.parametrize("handler", ["SIG_IGN", "default_int_handler"])
def test_other_signals_and_errors_stay_as_they_are(handler: str) -> None:
    """What a shell lets ignore Ctrl-C ignores it, a finaliser's own error is shown, and another signal is no Ctrl-C."""
    work = "class Lost:\n    def __del__(self):\n        raise ValueError('mine')\nLost()\n"
    work += (
        "signal.signal(signal.SIGUSR1, lambda number, frame: print('heard'))\nos.kill(os.getpid(), signal.SIGUSR1)\n"
    )
    work += "os.kill(os.getpid(), signal.SIGINT)\n" if handler == "SIG_IGN" else ""
    code, out, err = _interrupted(work, handler, "time.sleep(1)")
    assert (code, out) == (0, "heard\n")
    assert "ValueError: mine" in err
    assert "interrupted" not in err


def _interrupted(work: str, handler: str, then: str = "time.sleep(60)") -> tuple[int, str, str]:
    """(exit code, output, messages) of the command, which does some work instead of its own."""
    lines = "\n".join(f"    {line}" for line in [*work.strip().splitlines(), then, "return 0"])
    code = f"import os, signal, time\nsignal.signal(signal.SIGINT, signal.{handler})\n"
    code += f"from layoutproof.cli import main as cli\ndef run(arguments):\n{lines}\ncli.run = run\ncli.main([])\n"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGS)
    return done.returncode, done.stdout, done.stderr


def test_verbose_lists_each_claim(tmp_path: Path) -> None:
    """A line for each that is as stated, a counterexample that was wanted by that name; an unchanged run says so."""
    path = spec(tmp_path, f"injective: {SCORES}", f"injective: {OVERLAP}\n    expect: refuted")
    environment = {**os.environ, "LAYOUTPROOF_CACHE": str(tmp_path / "cache")}
    first = process("check", "-v", path, env=environment).stdout.splitlines()
    assert [line.split()[:2] for line in first[:2]] == [["proved", "injective"], ["counterexample", "injective"]]
    assert first[0].endswith(f"{path}:3:5")
    assert first[-1].startswith("2 claims as stated: 1 proved, 1 counterexample as expected; ")
    assert len(process("check", path, env=environment).stdout.splitlines()) == len(first) - 3
    again = process("check", "-v", path, env=environment).stdout.splitlines()
    assert again[-1] == "2 claims as stated: 1 proved, 1 counterexample as expected; nothing changed since the last run"


def test_a_gate_of_records_loads_no_engine(tmp_path: Path) -> None:
    """Nothing in two records has to be proved, so that the command starts without what proves."""
    record = Record(
        "step",
        memory=MemoryStats(1 << 20, 1 << 10, 0, 1 << 12),
        parameters=(ProgramValue(0, "x", "f32[8]{0}", 32, 32),),
    )
    for name, size in (("old", 1 << 12), ("new", 1 << 14)):
        more = replace(record, memory=replace(record.memory, temporaries=size))
        (tmp_path / f"{name}.json").write_text(more.to_json())
    heavy = [f"layoutproof.{name}" for name in ("questions.ask", "pallas.judge", "specs.spec", "hlo.audit")]
    code = f"""
import sys
from layoutproof.cli.main import run
print(run(["gate", "old.json", "new.json"]), [m for m in {heavy!r} if m in sys.modules], file=sys.stderr)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HANGS)
    assert done.stderr.strip() == "0 []"
    assert "peak_memory" in done.stdout


def test_a_question_over_products_of_sizes_ends() -> None:
    """Its steps of z3 once took hours each: the process had to be killed."""
    command = ("ask", "covers", "f32[N + 1,N]{0,1:T(1,*,8)L(8)}", "--where")
    refuted, found = process(*command, "N % 4 == 0"), process(*command, "N >= 40 and N % 8 == 3")
    assert (refuted.returncode, found.returncode) == (1, 1)
    assert "at       sizes=(N = 4) place=(0, 2, 0, 4)\n" in refuted.stdout
    assert "at       sizes=(N = 43) place=(0, 236, 0, 4)\n  by       brute\n" in found.stdout
    left = process(*command, "N % 8 == 0")
    assert (left.returncode, left.stderr) == (3, "")
    assert left.stdout.startswith("unknown  covers ")


def test_ctrl_c_while_the_commands_are_imported_is_one_line(tmp_path: Path) -> None:
    """It comes as early as a user can send it: a module that the commands import sends it itself."""
    (tmp_path / "click.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n")
    # a job in the background of a shell ignores it, and so do its children
    program = "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program += "; runpy.run_module('layoutproof', run_name='__main__')"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HANGS)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_a_working_folder_that_was_deleted_is_named(tmp_path: Path) -> None:
    """The message says what to do, not only an error number; what needs no folder is answered."""
    gone = tmp_path / "gone"
    gone.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for words, code, said in (
        (["check", "specs"], 2, "the working folder was deleted: change to one that is there (cd), and ask again\n"),
        (["ask", "injective", SCORES], 0, ""),
    ):
        command = ["sh", "-c", 'rmdir "$0"; exec "$@"', str(gone), sys.executable, "-m", "layoutproof", *words]
        done = subprocess.run(command, cwd=gone, env=environment, capture_output=True, text=True, timeout=HANGS)
        assert (done.returncode, done.stderr) == (code, said)
        gone.mkdir()
