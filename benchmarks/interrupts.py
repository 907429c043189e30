"""Ctrl-C at random moments of many commands, from their start on: `python benchmarks/interrupts.py [COMMAND..]`.

Each command runs whole once, and then is interrupted at moments that are drawn from what it took then, at most
LONGEST. A moment ends in one of these ways: `130`, with the one line "interrupted" or a part that says that it is one;
`answered`, where the answer was there before; `early`, where Python itself was still starting and no line of ours had
run; `wrong`, anything else: a traceback, another exit code, a process that is left. The last column is the longest time
from Ctrl-C to the end of the process. Exit 1 where one is wrong, or where none of a command was stopped.

`--moments 100` is how many of each command, `--seed 29` what they are drawn by.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.attacks.room import claims, command, descendants, environment, left_after  # noqa: E402

LONGEST = 20.0
"""Seconds within which moments are drawn."""
PATIENCE = 20.0
"""Seconds that the processes of a command may take to be gone; far more than they need, on a machine that is busy."""
HANGS = 240.0
"""Seconds after which a command that was interrupted is said not to end."""
MODULE = """
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

def dot(x, y):
    return jnp.dot(x, y)

def turned(x, y):
    return jnp.dot(y.T, x.T).T

def walked(x, y):
    return jnp.sin(jnp.dot(jnp.exp(x), y)) + jnp.max(x)

def also(x, y):
    return jnp.max(x) + jnp.sin(jnp.dot(y.T, jnp.exp(x).T).T)

def body(x, o):
    o[...] = x[...] * 2

def twice(x, b=128):
    spec = pl.BlockSpec((b, 128), lambda i: (i, 0))
    call = pl.pallas_call(body, grid=(x.shape[0] // b,), in_specs=[spec], out_specs=spec, out_shape=x)
    return call(x)
"""
WALK = ("--args", "f32[2048,2048], f32[2048,2048]")
PLAIN = {
    "ask": ("ask", "injective", "f32[3,5]"),
    "check": ("check", "specs"),
    "check --jobs": ("check", "specs", "--jobs", "2", "--json"),
    "gate": ("gate", "other", "specs", "--jobs", "2"),
    "hlo": ("hlo", "m.hlo"),
    "why": ("why", "m.txt"),
    "search": ("search", "matmul", "4096", "4096", "4096", "--target", "v5e"),
    "explain": ("explain",),
}
"""What needs no JAX."""
TRACED = {
    "kernels": ("kernels", "made.py:twice", "--args", "f32[4096,128]", "--target", "v5e"),
    "kernels --replay": ("kernels", "made.py:twice", "--args", "f32[4096,128]", "--target", "v5e", "--replay"),
    "same": ("same", "made.py:dot", "--reference", "made.py:turned", *WALK),
    "same, a long walk": ("same", "made.py:walked", "--reference", "made.py:also", *WALK),
    "same in specs": ("check", "same"),
}
COMPILED = {
    "compile": ("compile", "made.py:dot", *("--arg", "f32[2048,2048]") * 2, "--target", "v5e"),
    "search --compile": ("search", "search/matmul.yaml", "--compile"),
}


class End(NamedTuple):
    """How a command ended that was interrupted. kind: of the four.  seconds: it took to.  said: what is wrong."""

    kind: str
    seconds: float
    said: str = ""


def commands() -> dict[str, tuple[str, ...]]:
    """Those that can run here."""
    traced = TRACED if importlib.util.find_spec("jax") else {}
    return {**PLAIN, **traced, **(COMPILED if traced and importlib.util.find_spec("libtpu") else {})}


def prepare(room: Path) -> Path:
    """The files that the commands read, in a folder."""
    claims(room, 400)
    (room / "other").mkdir()
    (room / "other" / "a.yaml").write_text((room / "specs" / "a.yaml").read_text().replace(",5]", ",6]"))
    (room / "m.txt").write_text("Ran out of memory in memory space hbm. Used 17.0G of 16.0G hbm.\n" * 2000)
    lines = "".join(f"  %c{k} = f32[{k + 3},5]{{1,0}} copy(%p)\n" for k in range(5000))
    entry = "ENTRY %e (p: f32[3,5]) -> f32[3,5] {\n  %p = f32[3,5]{1,0} parameter(0)\n"
    (room / "m.hlo").write_text(f"HloModule m\n\n{entry}{lines}  ROOT %r = f32[3,5]{{1,0}} copy(%p)\n}}\n")
    (room / "made.py").write_text(MODULE)
    shutil.copytree(ROOT / "specs" / "search", room / "search")
    (room / "same").mkdir()
    shapes = "['f32[2048,2048]', 'f32[2048,2048]']"
    kernels = "".join(f"  {name}: {{trace: 'made:{name}', args: {shapes}}}\n" for name in ("walked", "also"))
    (room / "same" / "a.yaml").write_text(f"source: x\nkernels:\n{kernels}checks:\n  - same: walked\n    as: also\n")
    return room


def interrupted(room: Path, after: float, *arguments: str) -> End:
    """How a command ends that gets Ctrl-C so many seconds after its start, as a terminal sends it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # a shell lets what it starts in the background ignore it, and so all that is started there
        signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        command(*arguments),
        cwd=room,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after)
    answered = process.poll() is not None
    started = descendants(process.pid)
    begun = time.monotonic()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    try:
        out, said = process.communicate(timeout=HANGS)
    except subprocess.TimeoutExpired:
        process.kill()
        return End("wrong", HANGS, f"after {after:.2f} s: it does not end: {process.communicate()[1][-600:]!r}")
    seconds = time.monotonic() - begun
    left = left_after(started, PATIENCE)
    for one in left:
        with contextlib.suppress(OSError):
            os.kill(one, signal.SIGKILL)
    words = f"after {after:.2f} s: exit {process.returncode}, {len(left)} left, {said[-600:]!r}"
    if left:
        return End("wrong", seconds, words)
    if process.returncode == 130 and (said == "interrupted\n" or (not said and "interrupted" in out)):
        return End("130", seconds)
    if answered or (process.returncode in (0, 1, 3) and not said):
        return End("answered", seconds)
    # before a line of ours runs, Python itself says what it says
    if "layoutproof" not in said.replace("-m layoutproof", ""):
        return End("early", seconds)
    return End("wrong", seconds, words)


def moments(room: Path, words: Sequence[str], many: int, drawn: random.Random) -> list[End]:
    """How a command ends at so many moments of its run."""
    start = time.monotonic()
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(command(*words), cwd=room, env=environment(), capture_output=True, timeout=LONGEST)
    whole = time.monotonic() - start
    return [interrupted(room, drawn.uniform(0.0, whole), *words) for _ in range(many)]


def main(given: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="COMMAND", help=f"of {', '.join(commands())}; all by default")
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--seed", type=int, default=29)
    asked = parser.parse_args(given)
    unknown = set(asked.names) - set(commands())
    if unknown:
        parser.error(f"no command here is called {', '.join(sorted(unknown))}")
    failed = False
    print(f"{'command':<20} {'moments':>7} {'130':>5} {'answered':>8} {'early':>5} {'wrong':>5} {'longest':>8}")
    for name in asked.names or commands():
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            ends = moments(prepare(Path(folder).resolve()), commands()[name], asked.moments, random.Random(asked.seed))
        kinds = Counter(end.kind for end in ends)
        slowest = max(end.seconds for end in ends)
        counts = f"{kinds['130']:>5} {kinds['answered']:>8} {kinds['early']:>5} {kinds['wrong']:>5}"
        print(f"{name:<20} {len(ends):>7} {counts} {slowest:>6.2f} s", flush=True)
        print("".join(f"    | {end.said}\n" for end in ends if end.said), end="", flush=True)
        failed = failed or kinds["wrong"] > 0 or kinds["130"] == 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
