"""The same work wherever it runs: results, order, and nothing lost or doubled when a worker dies in the middle."""

from __future__ import annotations

import datetime
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from layoutproof.compiler.workers import Workers, spread
from layoutproof.core.errors import InternalError, LayoutError
from layoutproof.formats import render
from layoutproof.gating.compare import compare
from layoutproof.gating.states import pair

pytestmark = pytest.mark.slow


def slowly(item: int) -> tuple[int, int]:
    """An item's square, and who made it."""
    time.sleep(0.02)
    return item * item, os.getpid()


@pytest.mark.parametrize("jobs", [1, 2, 0])
def test_processes(jobs: int) -> None:
    """In the order of the items, whoever is done first."""
    found = list(spread(slowly, range(20), Workers(jobs)))
    assert [square for square, _ in found] == [item * item for item in range(20)]
    assert (os.getpid() in {who for _, who in found}) == (jobs == 1)


@pytest.mark.parametrize(
    ("workers", "problem"),
    [
        (Workers(backend="dask"), "needs --scheduler"),
        (Workers(backend="spark"), "unknown backend 'spark'; known: dask, ray"),
    ],
)
def test_what_is_not_to_be_had(workers: Workers, problem: str) -> None:
    """Said in plain words."""
    with pytest.raises(LayoutError, match=problem):
        list(spread(slowly, [1, 2], workers))


def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    """A process of a cluster on this machine, that finds the modules which this process finds."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    command = [sys.executable, "-W", "ignore", "-m", f"distributed.cli.{module}", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A real Dask scheduler on loopback and two workers, each its own process: the address, and the workers."""
    pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
    file = tmp_path / "scheduler.json"
    local = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    processes = [start("dask_scheduler", *local)]
    try:
        # the scheduler creates the file before it writes it
        wait_for(lambda: file.is_file() and file.read_text().rstrip().endswith("}"))
        address = json.loads(file.read_text())["address"]
        for number in range(2):
            folder = ("--local-directory", str(tmp_path / str(number)))
            processes.append(start("dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", *folder))
        yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def wait_for(ready: Callable[[], bool]) -> None:
    """Until it is so; a minute at most."""
    end = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < end, "nothing happened within a minute"
        time.sleep(0.05)


# Dask's own sockets and files are closed when its processes end, not when Python looks
dask = pytest.mark.filterwarnings("ignore")


@pytest.mark.commit
@dask
def test_a_cluster_gives_what_one_process_gives(cluster: tuple[str, Any]) -> None:
    """Two workers on loopback, the same results in the same order, made by both of them and not here."""
    address, workers = cluster
    both_there(address)
    found = list(spread(slowly, range(60), Workers(backend="dask", scheduler=address)))
    assert [square for square, _ in found] == [item * item for item in range(60)]
    assert {who for _, who in found} == {worker.pid for worker in workers}


@pytest.mark.commit
@dask
def test_a_worker_that_dies_in_the_middle_loses_and_doubles_nothing(cluster: tuple[str, Any], tmp_path: Path) -> None:
    """One of two is killed while it works: every result is there, once, in order."""
    address, workers = cluster
    both_there(address)
    log = tmp_path / "log"
    log.mkdir()
    killed = threading.Thread(target=kill_when, args=(workers[0], log, 10))
    killed.start()
    found = list(spread(logged, [(item, str(log)) for item in range(100)], Workers(backend="dask", scheduler=address)))
    killed.join()
    assert workers[0].wait() == -signal.SIGKILL
    assert found == [item * item for item in range(100)]
    assert len(list(log.iterdir())) >= 100


@pytest.mark.commit
@dask
def test_the_gate_on_a_cluster(cluster: tuple[str, Any], tmp_path: Path) -> None:
    """The report is the same, byte for byte."""
    address, _ = cluster
    for side, layout in (("old", "{1,0}"), ("new", "{0,1}")):
        (tmp_path / side).mkdir()
        for k in range(8):
            text = f"source: x\nlayouts:\n  a{k}: f32[3,5]{layout}\nchecks:\n  - injective: a{k}\n"
            (tmp_path / side / f"{k}.yaml").write_text(text)
    old, new = pair(str(tmp_path / "old"), str(tmp_path / "new"))
    today = datetime.date(2026, 11, 21)
    here = render("json", compare(old, new, {}, today=today))
    there = render("json", compare(old, new, {}, today=today, workers=Workers(backend="dask", scheduler=address)))
    assert here == there
    assert json.loads(here)["summary"].endswith("8 findings in 8 files: 8 denied")


def both_there(address: str) -> None:
    """Until both workers have reported to the scheduler."""
    from distributed import Client

    with Client(address, timeout="30s", set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)


def logged(item: tuple[int, str]) -> int:
    """A square, and a file that says that someone began to make it."""
    number, folder = item
    (Path(folder) / f"{number}-{os.getpid()}").touch()
    time.sleep(0.02)
    return number * number


def kill_when(worker: subprocess.Popen[bytes], log: Path, done: int) -> None:
    """Kills a worker once it has begun so many items."""
    wait_for(lambda: sum(name.endswith(f"-{worker.pid}") for name in os.listdir(log)) >= done)
    worker.kill()


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_run(sign: signal.Signals, tmp_path: Path) -> None:
    """Whoever is killed takes its workers along, in the middle of an answer; who is interrupted says that alone."""
    code = (
        # whoever started the tests in the background lets them ignore Ctrl-C, and so all that they start
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from layoutproof.compiler.workers import Workers, spread\n"
        "from tests.compiler.test_workers import busy\n"
        "try:\n"
        f"    list(spread(busy, [{str(tmp_path)!r}] * 2, Workers(2)))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    run = subprocess.Popen([sys.executable, "-c", code], env=environment, **pipes)
    wait_for(lambda: len(list(tmp_path.iterdir())) == 2)
    run.send_signal(sign)
    said = run.communicate()
    assert said == (("interrupted\n", "") if sign == signal.SIGINT else ("", ""))
    wait_for(lambda: not any(running(int(path.name)) for path in tmp_path.iterdir()))


def busy(folder: str) -> None:
    """Never done; says who does it."""
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(600)


def running(process: int) -> bool:
    """Whether it is there and has not ended; whoever adopts it may be slow to notice."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] in "ZX")


def fails(what: str) -> str:
    """Whatever is asked for."""
    if what == "input":
        raise LayoutError("no such dimension", text="f32[x]", column=5, file="a.yaml", line=3)
    if what == "bug":
        raise ZeroDivisionError("of ours")
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    return what


@pytest.mark.parametrize(
    ("what", "kind", "words"),
    [
        ("input", LayoutError, "no such dimension"),
        ("bug", InternalError, "a worker failed on it: ZeroDivisionError: of ours"),
        ("killed", LayoutError, "a worker ended by SIGKILL on it .* with fewer --jobs each has more memory"),
    ],
)
def test_what_a_worker_cannot_do_is_said(what: str, kind: type[Exception], words: str) -> None:
    """As one process says it, with the place; never as an answer, and never for ever waited for."""
    with pytest.raises(kind, match=words) as raised:
        list(spread(fails, ["fine", what, "fine"], Workers(2)))
    if isinstance(raised.value, LayoutError) and what == "input":
        assert (raised.value.file, raised.value.line, raised.value.column) == ("a.yaml", 3, 5)


def where(_: int) -> str:
    return os.getcwd()


def imported(name: str) -> str:
    """Where a library is found, if not in the folder."""
    return str(importlib.import_module(name).__file__)


def test_workers_import_nothing_of_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it stands first where this process looks, as with `python -m`; what is nowhere else is found there."""
    for name in ("colorsys", "mine"):
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    library, mine = spread(imported, ["colorsys", "mine"], Workers(2))
    assert library != str(tmp_path / "colorsys.py")
    assert mine == str(tmp_path / "mine.py")


def test_workers_stand_where_the_run_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that are kept from an earlier run do not look for files and modules in its folder."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert set(spread(where, [1, 2], Workers(2))) == {str(tmp_path / name)}
