"""Runs Pallas calls in JAX's interpreter of TPU kernels: the program of a child process, which `pallas.replay` asks.

Read from jax 0.10.2 and 0.12.0.1: races are printed by the first, logged by the second; both say on standard output
when a semaphore is left with a count, and wait for ever for one that never has enough.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from layoutproof.compiler.serve import Tell, serve
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import shorten
from layoutproof.pallas.from_jax import problems
from layoutproof.pallas.from_jax.of_jax import JaxEquation
from layoutproof.pallas.from_jax.sent import call_of

if TYPE_CHECKING:
    from jax.extend.core import JaxprEqn
    from jax.typing import ArrayLike

STILL = 5.0
"""Seconds without any work after which a kernel waits for ever. A waiting thread looks ten times a second."""
_WORK = 0.01
"""Processor time, as a part of the time, that is no work."""

Sign = dict[str, str]

_RACE = re.compile(r"RACE DETECTED\s+(read|write) of .*? (\S+:\d+)\S*.*?\s(read|write)\s+of .*? (\S+:\d+)", re.DOTALL)
_RAISED = re.compile(r"^(\w*(?:Error|Exception|Warning))\b:? ?(.*)", re.MULTILINE)


def run(request: JsonObject, tell: Tell) -> dict[str, object]:
    """Runs one call of a function; returns the outcome as plain data."""
    import jax

    kernel, site = call_of(request)
    equation = site.equation
    outputs = [o.name for o in kernel.operands if o.role == "out"]
    names = [*(table.name for table in kernel.tables), *(o.name for o in kernel.inputs)]
    signs: list[Sign] = []
    held: Mapping[str, Sequence[int]] = {}
    problem = ""
    for held in request["tables"]:
        arguments = _arguments(jax, equation, {names.index(name): row for name, row in held.items()})
        signs, problem = _shown(jax, equation, arguments, outputs)
        if signs or problem:
            break
    tables = {name: list(row)[:8] for name, row in held.items()}
    return {"signs": signs, "problem": problem, "jax": jax.__version__, "tables": tables}


def _arguments(jax: ModuleType, equation: JaxEquation, tables: Mapping[int, Sequence[int]]) -> list[ArrayLike]:
    """Small numbers, 1 to 8 as floats and 0 to 7 as integers, that repeat after no power of two; tables as said.

    tables: the entries of arguments, by their position.
    """
    import numpy

    made = []
    for k, variable in enumerate(equation.invars):
        shape, dtype = variable.aval.shape, variable.aval.dtype
        count = int(numpy.prod(shape, dtype=numpy.int64))
        if k in tables:
            row = numpy.asarray(tables[k], numpy.int64)
        elif jax.numpy.issubdtype(dtype, jax.numpy.inexact):
            row = (numpy.arange(count) * 7 // 5 + 3 * (numpy.arange(count) // 11)) % 8 + 1
        else:
            row = (numpy.arange(count) * 7 // 5) % (2 if numpy.dtype(dtype).kind == "b" else 8)
        made.append(jax.numpy.asarray(row.reshape(shape)).astype(dtype))
    return made


def _shown(
    jax: ModuleType, equation: JaxEquation, arguments: Sequence[object], outputs: Sequence[str]
) -> tuple[list[Sign], str]:
    """The outcome for one set of arguments, and why it could not be run to its end."""
    first, signs, problem = _interpreted(jax, equation, arguments, "nan", "on_wait")
    if first is None:
        return signs, problem
    second, more, _ = _interpreted(jax, equation, arguments, "zero", "eager")
    signs += [sign for sign in more if sign not in signs]
    for k, result in enumerate(first):
        name = outputs[k] if k < len(outputs) else f"outputs[{k}]"
        signs += _compared(name, result, None if second is None else second[k])
    return signs, ""


def _compared(name: str, first: object, second: object) -> Iterator[Sign]:
    """The signs in the results of two runs: NaN in the first, and elements that differ in the second."""
    import numpy

    one = numpy.asarray(first)
    nan = one != one
    if nan.any():
        both = second is not None and bool((nan & (second != second)).any())
        where = f"NaN in {name} at {_at(nan)}" + _more(nan)
        known = problems.WRITTEN_MEMORY() if both else ""
        text = where + (", on memory that starts as 0 too" if both else "")
        yield {"kind": "nan", "text": text, "output": name, "known": known}
    if second is not None:
        other = numpy.asarray(second)
        changed = (one != other) & ~nan & ~(other != other)
        if changed.any():
            place = _at(changed)
            values = f"{one[place]} on memory that starts as NaN or the largest integer, {other[place]} on zeros"
            yield {"kind": "differs", "text": f"{name} at {place} is {values}{_more(changed)}", "output": name}


def _at(where: Any) -> tuple[int, ...]:
    import numpy

    return tuple(int(n) for n in numpy.argwhere(where)[0])


def _more(where: Any) -> str:
    count = int(where.sum())
    return f" ({count:,} of {where.size:,} elements)" if count > 1 else ""


def _interpreted(
    jax: ModuleType, equation: JaxprEqn, arguments: Sequence[object], memory: str, copies: str
) -> tuple[list[object] | None, list[Sign], str]:
    """(results, signs, problem) of one run. No results where it raised, hung, or the interpreter cannot run it."""
    from jax.experimental.pallas import tpu

    known = getattr(tpu.InterpretParams, "__dataclass_fields__", {})
    wanted = {
        "uninitialized_memory": memory,
        "dma_execution_mode": copies,
        "out_of_bounds_reads": "raise",
        "detect_races": True,
        # race after race, and to the end
        "on_race": "warn",
        "num_cores_or_threads": _cores(equation),
    }
    how = tpu.InterpretParams(**{name: value for name, value in wanted.items() if name in known})
    params = {**equation.params, "interpret": how}
    done: list[Any] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            compiled = jax.jit(lambda *a: equation.primitive.bind(*a, **params)).lower(*arguments).compile()
        except BaseException as error:
            failed.append(NotImplementedError(_words(error)))
            return
        try:
            done.append([jax.device_get(result) for result in compiled(*arguments)])
        except BaseException as error:
            failed.append(error)

    said = io.StringIO()
    handler = logging.StreamHandler(said)
    logging.getLogger().addHandler(handler)
    thread = threading.Thread(target=work, daemon=True)
    with contextlib.redirect_stdout(said):
        thread.start()
        hung = _hangs(thread)
    logging.getLogger().removeHandler(handler)
    signs = list(_told(said.getvalue()))
    if hung:
        words = problems.PROCESS_WAITS(STILL)
        return None, [*signs, {"kind": "hang", "text": words}], ""
    if not failed:
        return done[0], signs, ""
    with contextlib.suppress(Exception):
        tpu.reset_tpu_interpret_mode_state()
    if isinstance(failed[0], NotImplementedError):
        return None, signs, problems.CANNOT_RUN(jax.__version__, failed[0])
    return None, [*signs, {"kind": "raised", "text": problems.RAISED(_words(failed[0]))}], ""


def _cores(equation: JaxEquation) -> int:
    """As many as a mesh has; else two where programs may run at once, or one."""
    if meshes := equation.params.get("meshes"):
        return math.prod(dict(meshes[0].shape).values())
    words = getattr(equation.params.get("compiler_params"), "dimension_semantics", None) or ()
    return 2 if any("parallel" in str(getattr(word, "name", word)).lower() for word in words) else 1


def _hangs(thread: threading.Thread) -> bool:
    """Waits for a thread. Whether nothing in this process has worked for a while and it has not ended."""
    idle, before = 0.0, time.process_time()
    while True:
        thread.join(1.0)
        if not thread.is_alive():
            return False
        now = time.process_time()
        idle, before = (idle + 1.0 if now - before < _WORK else 0.0), now
        if idle >= STILL:
            return True


def _told(text: str) -> Iterator[Sign]:
    """The interpreter's messages on races and semaphores."""
    seen = set()
    for found in _RACE.finditer(text):
        first, here, second, there = found.groups()
        seen.add(f"a race: a {first} at {_short(here)} and a {second} at {_short(there)}")
    if not seen and "RACE DETECTED" in text:
        seen.add("a race")
    yield from ({"kind": "race", "text": race} for race in sorted(seen)[:2])
    if left := re.search(r"non-zero count.*?at kernel exit: *(-?\d+)", text, re.DOTALL):
        yield {"kind": "semaphore", "text": f"a semaphore is left with a count of {left[1]}"}


def _short(place: str) -> str:
    return place.removeprefix(os.getcwd() + os.sep)


def _words(error: BaseException) -> str:
    """The innermost exception that a text tells of: the one that the kernel met."""
    found = _RAISED.findall(str(error))
    kind, words = found[-1] if found else (type(error).__name__, str(error))
    return shorten(f"{kind}: {' '.join(words.split())}".removesuffix(": "), 200)


def _good(answer: Any) -> bool:
    """Whether the process can run another call: not after an exception, nor while a thread hangs."""
    return not answer["problem"] and all(sign["kind"] not in ("hang", "raised") for sign in answer["signs"])


if __name__ == "__main__":
    serve(run, _good)
