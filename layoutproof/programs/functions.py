"""Whether a program computes what it computed: two checkouts of one repository, compared in a process of its own.

Both are traced there (`two_trees`), and compared as `layoutproof same` compares a function with its reference. The
comparison runs the code of both. Stored values tell without the old code whether the new one computes the same, but
only at the points at which they were taken.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from math import prod
from pathlib import Path
from typing import Any

from layoutproof.compiler.child import Child, Reply, ask
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, failure
from layoutproof.programs import problems
from layoutproof.programs.compile import CPU, Asked, checked, paths_in, request_of

POINTS = 3
"""Random points at which two programs are compared."""


@dataclass(frozen=True, slots=True)
class Computed:
    """The comparison of a program's new values with its old ones.

    state: `same`, `other` where float64 shows it, `unknown` with the reason.  points: at how many there was no
    difference; 0 where relations prove it.  output: the first that differs.  place, before: where the two part, as
    `file:line` of the new and of the old code, "" where it is not known.  reduced: arguments that were compared at
    smaller sizes.  notes: drawn inputs, and changes without effect over the reals.
    second: JAX's answer on a difference.  alike: whether both are one program, too.  digest, digest_before: of the two
    as they are traced, without lines.  error: a mistake in either.  line: of two texts, that of the new one where they
    part.  narrower: where the new one of two texts rounds to fewer bits, in words.
    """

    state: str
    reason: str = ""
    points: int = 0
    decided_by: str = ""
    output: str = ""
    place: str = ""
    before: str = ""
    reduced: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    second: str = ""
    alike: bool = False
    digest: str = ""
    digest_before: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    error: LayoutError | None = None
    line: int = 0
    narrower: str = ""


def attempted(compare: Callable[[], Computed]) -> Computed:
    """The result of a comparison. It never raises: a failed comparison is unknown."""
    try:
        return compare()
    except LayoutError as error:
        return Computed("unknown", error.problem)
    except ImportError as error:
        return Computed("unknown", problems.NOT_COMPARED_WITHOUT(error.name))
    except (MemoryError, RecursionError) as error:
        return Computed("unknown", problems.TOO_LARGE(type(error).__name__))
    except Exception as error:
        # a text or record may say anything, and what else is known of it stands
        return Computed("unknown", problems.NOT_COMPUTED(failure(error)))


@dataclass(frozen=True, slots=True)
class Kept:
    """The values of a program at fixed random points, as a lock file keeps them.

    jax, evaluator: the versions that made it; other versions cannot compare with it.  arrays, outputs: of each its
    name, shape and type.  points, digest, floats: as of `values.digests.Values`.
    """

    jax: str
    evaluator: str
    arrays: tuple[tuple[str, tuple[int, ...], str], ...]
    outputs: tuple[tuple[str, tuple[int, ...], str], ...]
    points: int
    digest: str
    floats: tuple[tuple[float | None, float | None], ...]

    def as_dict(self) -> dict[str, object]:
        """As a line of the lock has it."""
        return asdict(self)


def kept_from(value: Any) -> Kept:
    """The `Kept` of a line. TypeError, ValueError, KeyError for what is none."""

    def named(rows: Any) -> tuple[tuple[str, tuple[int, ...], str], ...]:
        return tuple((str(name), tuple(map(int, shape)), str(dtype)) for name, shape, dtype in rows)

    floats = tuple((_number(share), _number(size)) for share, size in value["floats"])
    return Kept(
        str(value["jax"]), str(value["evaluator"]), named(value["arrays"]), named(value["outputs"]),
        int(value["points"]), str(value["digest"]), floats,
    )  # fmt: skip


def _number(value: str | float | None) -> float | None:
    return None if value is None else float(value)


def unlike(old: Kept, new: Kept) -> str:
    """Why values that were kept do not say that a program computes the same; "" where they do."""
    from layoutproof.values.digests import Values

    for name, one, other in (("jax", old.jax, new.jax), ("evaluator", old.evaluator, new.evaluator)):
        if one != other:
            return problems.LOCKED_BY_OTHER(name, one, other)
    if (old.arrays, old.outputs) != (new.arrays, new.outputs):
        return problems.LOCKED_OTHER_VALUES()
    then, now = (Values(each.digest, each.points, each.floats) for each in (old, new))
    return "" if now.same_as(then) else problems.NOT_LOCKED_VALUES()


def valued(asked: Sequence[Asked], seconds: float) -> Iterator[Kept | str]:
    """The values of each program to keep, or why there are none, in their order. seconds: that one may take."""
    requests: list[tuple[int, dict[str, Any] | str]] = []
    for each in asked:
        try:
            requests.append((prod(each.mesh.values()), {"of": _request(each), "points": POINTS}))
        except LayoutError as error:
            requests.append((0, error.problem))
    for devices, group in groupby(requests, key=lambda pair: pair[0]):
        given = [each for _, each in group]
        answers = ask(_child(devices, seconds), (each for each in given if isinstance(each, dict)), dict)
        for one in given:
            if isinstance(one, str):
                yield one
                continue
            answer = next(answers)
            why = answer.problem if answer.value is None else str(answer.value.get("reason", ""))
            yield why or kept_from(answer.value)


def compared(pairs: Sequence[tuple[Asked, Asked]], seconds: float) -> Iterator[Computed]:
    """The comparison of each pair (new, old), in their order. The old one names the folder of its checkout.

    seconds: that one comparison may take.
    """
    requests: list[tuple[int, dict[str, Any] | LayoutError]] = []
    for new, old in pairs:
        try:
            sides = {"new": _request(new), "old": _request(old)}
            requests.append((prod(new.mesh.values()), {**sides, "points": POINTS}))
        except LayoutError as error:
            requests.append((0, error))
    for devices, group in groupby(requests, key=lambda pair: pair[0]):
        given = [each for _, each in group]
        answers = ask(_child(devices, seconds), (each for each in given if isinstance(each, dict)), dict)
        for each in given:
            yield Computed("unknown", each.problem, error=each) if isinstance(each, LayoutError) else _of(next(answers))


def _request(asked: Asked) -> JsonObject:
    """One side: the program to trace, its folder, and its module path."""
    # its values do not depend on the compiler
    sound = replace(checked(asked), libtpu="", flags={})
    paths = paths_in(Path(asked.folder)) if asked.folder else tuple(filter(None, sys.path))
    return {**request_of(sound), "folder": asked.folder or os.getcwd(), "paths": list(paths)}


def _child(devices: int, seconds: float) -> Child:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}".strip()
    environment = {"JAX_PLATFORMS": CPU, "XLA_FLAGS": flags}
    return Child("the comparison", "layoutproof.programs.two_trees", environment, seconds)


def _of(answer: Reply[dict[str, object]]) -> Computed:
    """The comparison of one pair, from the answer of its process."""
    if answer.value is None:
        error = answer.error if isinstance(answer.error, LayoutError) else None
        return Computed("unknown", answer.problem, error=error)
    said: dict[str, Any] = {n: tuple(each) if isinstance(each, list) else each for n, each in answer.value.items()}
    found = Computed(**{name: each for name, each in said.items() if name in Computed.__dataclass_fields__})
    if found.state == "other" and said.get("guessed"):
        why = problems.OTHER_NAMES(found.reason)
        return replace(found, state="unknown", reason=why)
    if found.state == "same" and (said.get("gone") or said.get("fresh")):
        names = [*(f"{n} is gone" for n in said["gone"]), *(f"{n} is new" for n in said["fresh"])]
        why = problems.OTHER_RESULTS(", ".join(names))
        return replace(found, state="unknown", reason=why)
    return found
