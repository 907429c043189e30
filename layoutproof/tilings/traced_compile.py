"""Whether the real TPU compiler takes a function's candidates: compiled ahead of time, without any TPU.

In a child process, because the compiler can abort its own (libtpu 0.0.42.1 does on what it was never asked before).
What a kernel's body holds besides its windows is in no index map; the compiler is the one who knows what it takes.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from layoutproof.core.errors import LayoutError, Unsupported, shorten
from layoutproof.hardware.tpu_chips import CHIPS

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    # otherwise the compiler serves one process of a machine only
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}

LONGEST = 600
"""Seconds that all candidates of one call may take together; a compiler that hangs answers nothing."""

_SCOPED = re.compile(r"Scoped allocation with size \S+ and limit \S+ exceeded scoped vmem limit")


def refused(
    place: str,
    args: Sequence[object],
    candidates: Sequence[Mapping[str, object]],
    target: str,
    enough: int | None = None,
) -> list[str | None]:
    """For each candidate's keyword arguments "" where the compiler takes the function, else its own words.

    None where nobody can tell, because the compiler aborted or hung. place, args: as for `calls_of`.
    enough: how many that it takes are enough: those after them are not answered.
    Raises Undecided where the compiler is not installed.
    """
    missing = [name for name in ("jax", "libtpu") if importlib.util.find_spec(name) is None]
    if missing or target not in CHIPS:
        hint = f"pip install {' '.join(missing)}"
        why = f"no {', '.join(missing)} ({hint})" if missing else f"it does not know {target}"
        raise Unsupported(f"the TPU compiler cannot be asked: {why}")
    found: list[str | None] = []
    needed = len(candidates) if enough is None else enough
    while len(found) < len(candidates) and found.count("") < needed:
        left, missing_ones = candidates[len(found) :], needed - found.count("")
        question = {"place": place, "args": args, "target": target, "candidates": left, "enough": missing_ones}
        found += _ask(question)
        if len(found) < len(candidates) and found.count("") < needed:
            found.append(None)  # the one that it died of
    return found


def version() -> str:
    """The installed compiler with its version."""
    try:
        return f"libtpu {importlib.metadata.version('libtpu')}"
    except importlib.metadata.PackageNotFoundError:
        return "libtpu"


def _ask(question: Mapping[str, object]) -> list[str]:
    """The answers of one child, as many as it gave before it ended."""
    # -P: modules of the current folder must not shadow installed ones
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "layoutproof.tilings.traced_compile"],
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        out, _ = child.communicate(json.dumps(question), timeout=LONGEST)
    except subprocess.TimeoutExpired:
        child.kill()
        out, _ = child.communicate()
    lines = [line for line in out.splitlines(keepends=True) if line.endswith("\n")]
    return [json.loads(line) for line in lines]


def _compiled(place: str, args: Sequence[Any], kwargs: Mapping[str, object], target: str, device: Any) -> str:
    """ "" where the compiler takes it, else why not."""
    from layoutproof.pallas.from_jax import user
    from layoutproof.pallas.from_jax.adapter import device_of, need_jax

    jax = need_jax()
    where, _, name = place.rpartition(":")
    given = [user.argument(arg) if isinstance(arg, str) else arg for arg in args]
    named = {name: passed(value) for name, value in kwargs.items()}
    arrays = [k for k, value in enumerate(given) if isinstance(value, jax.ShapeDtypeStruct)]
    here = jax.sharding.SingleDeviceSharding(device)
    with contextlib.redirect_stdout(sys.stderr), user._paths(where):
        function = user._function(user._module(where), where, name)

        def called(*values: Any) -> Any:
            filled = dict(zip(arrays, values, strict=True))
            return function(*(filled.get(k, value) for k, value in enumerate(given)), **named)

        shapes = [jax.ShapeDtypeStruct(given[k].shape, given[k].dtype, sharding=here) for k in arrays]
        try:
            with device_of(target):  # rules of lowering ask for the chip too
                lowered = jax.jit(called).lower(*shapes)
            lowered.compile()
        except Exception as error:
            text = str(error)
            scoped = _SCOPED.search(text)
            return scoped[0] if scoped else shorten(f"{type(error).__name__}: {text}", 300)
    return ""


def passed(value: object) -> object:
    """A keyword argument: an array's shape, or a Python literal; other texts stay texts."""
    from layoutproof.pallas.from_jax.user import argument

    if not isinstance(value, str):
        return value
    try:
        return argument(value)
    except LayoutError:
        return value


def main() -> None:
    """The child: one question as JSON on stdin, one JSON text a line, each written before the next is compiled."""
    from jax.experimental.topologies import get_topology_desc

    question = json.load(sys.stdin)
    topology = CHIPS[question["target"]].topology
    device = get_topology_desc(platform="tpu", topology_name=topology, chips_per_host_bounds=(1, 1, 1)).devices[0]
    taken = 0
    for kwargs in question["candidates"]:
        answer = _compiled(question["place"], question["args"], kwargs, question["target"], device)
        os.write(1, json.dumps(answer).encode() + b"\n")
        taken += not answer
        if taken == question["enough"]:
            break


if __name__ == "__main__":
    main()
