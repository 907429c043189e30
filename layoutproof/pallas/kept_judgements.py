"""What was found of a traced call, kept between runs: who edits one function of a file judges that one again.

`lp.kernels` keeps all that it says of a call, a claim of a spec file its own answer, the gate what it compares. An
answer rests on the call and its body as they are traced, and on what was asked; the cache adds the versions of this
package, of JAX and of what decides. It names lines of the user's file, which an edit further up moves without changing
anything else. So it is kept with the ranks of its lines among those of the call, where each of them can be told from
other numbers; else with the lines as they are.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from layoutproof.compiler.cache import get, put
from layoutproof.compiler.kept import as_json, classes, from_json
from layoutproof.core.finding import Finding
from layoutproof.core.result import plain as plain_values
from layoutproof.hardware.tpu_kernels import installed
from layoutproof.ir.codec import digest, written
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.pallas.findings import Judged
from layoutproof.pallas.judge import kernel_target, meant_for
from layoutproof.pallas.records import plain

MIN_SECONDS = 0.005
"""Seconds that a judgement must have taken to be kept. No verdict depends on it."""

T = TypeVar("T")
_HELD = classes(Judged, Finding)
_LINE = re.compile(r"(?<=\.py:)[0-9]+")
_OTHER_LINES = re.compile(r"\blines?\b")
"""Words after which numbers are lines, too, in sentences that say more than one."""


def kept(call: Kernel | Unmodelled, asked: Mapping[str, object], make: Callable[[], Judged]) -> Judged:
    """What was found of the call before, or what `make` finds now.

    asked: everything that was asked, and how, as plain data, with `target` and `compiler`.
    """

    def bare(found: Judged) -> Judged | None:
        if isinstance(found.call, Unmodelled):
            # it could not be judged, which the next run may
            return None
        findings = tuple(map(_plain_figures, found.findings))
        return replace(found, call=None, findings=findings)  # type: ignore[arg-type]

    found, new = _found(call, ["judged"], asked, make, Judged, bare)
    if new:
        return found
    target, compiler = asked["target"], asked["compiler"]
    version = None if compiler is None else str(compiler)
    chip = None if target is None else kernel_target(str(target), version)
    # what is kept has no call
    return replace(found, call=meant_for(call, chip) if isinstance(call, Kernel) else call)


def kept_findings(
    call: Kernel | Unmodelled, asked: Mapping[str, object], make: Callable[[], tuple[Finding, ...]]
) -> tuple[Finding, ...]:
    """What `make` finds of a call, or found before. asked: everything that was asked, and how, as plain data."""
    found, _ = _found(call, ["found"], asked, make, tuple, lambda found: tuple(map(_plain_figures, found)))
    return found


def _found(
    call: Kernel | Unmodelled,
    of: list[str],
    asked: Mapping[str, object],
    make: Callable[[], T],
    kind: type[T],
    bare: Callable[[T], T | None],
) -> tuple[T, bool]:
    """(an answer of a kind, whether it was made now).

    of: the first words of its key.  bare: the form that is kept, None of an answer that is not.
    """
    text = None if isinstance(call, Unmodelled) else _text(call, asked)
    if text is None:
        return make(), True
    # 0 says that there is no line
    lines = sorted({0, *(int(line) for line in _LINE.findall(text))})
    to_ranks = {line: rank for rank, line in enumerate(lines)}
    exact = [*of, text]
    moved = [*of, "ranks", _LINE.sub(lambda found: str(to_ranks[int(found[0])]), text)]
    try:
        found = from_json(_with_lines(get(moved), dict(enumerate(lines))), _HELD) or from_json(get(exact), _HELD)
    except KeyError:
        found = None
    if isinstance(found, kind):
        return found, False
    start = time.perf_counter()
    answer = make()
    if time.perf_counter() - start > MIN_SECONDS and (said := bare(answer)) is not None:
        _keep(said, exact, moved, to_ranks)
    return answer, True


def _plain_figures(finding: Finding) -> Finding:
    return replace(finding, figures=plain_values(finding.figures))


@lru_cache(maxsize=16)
def _said(call: Kernel) -> str | None:
    """All that an answer rests on of a call, None where it was not traced here. Several claims ask about one call."""
    from layoutproof.pallas.from_jax.bodies import TracedBody

    body = call.body_reader
    if not isinstance(body, TracedBody):
        return None
    # the text of the jaxpr has the names, the program the lines, its digest the arrays
    held = [] if body.refused else [written(body.program), digest(body.program)]
    return _json([plain(call), str(body), repr(body.begin), held])


def _text(call: Kernel, asked: Mapping[str, object]) -> str | None:
    """Everything that an answer rests on; None where that is not known."""
    said = _said(call)
    question = None if said is None else _json([dict(asked), installed()])
    return None if question is None else f"[{said}, {question}]"


def _json(parts: Sequence[object]) -> str | None:
    try:
        return json.dumps(parts, sort_keys=True)
    except (TypeError, ValueError):
        return None


def _keep(said: object, exact: list[str], moved: list[str], to_ranks: Mapping[int, int]) -> None:
    entry = as_json(said, _HELD)
    if from_json(entry, _HELD) != said:
        return
    if any(map(_OTHER_LINES.search, _texts(entry))):
        put(exact, entry)
        return
    try:
        put(moved, _with_lines(entry, to_ranks))
    except KeyError:
        put(exact, entry)


def _with_lines(data: object, numbers: Mapping[int, int]) -> object:
    """An answer as JSON with other lines in it. KeyError for one that has no other."""
    if isinstance(data, str):
        return _LINE.sub(lambda found: str(numbers[int(found[0])]), data)
    if isinstance(data, list):
        return [_with_lines(each, numbers) for each in data]
    if not isinstance(data, dict):
        return data
    return {key: numbers[each] if key == "line" else _with_lines(each, numbers) for key, each in data.items()}


def _texts(data: object) -> Iterator[str]:
    """The texts in an answer as JSON, the keys of its mappings too."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, list | dict):
        for each in data.values() if isinstance(data, dict) else data:
            yield from _texts(each)
