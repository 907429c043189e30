"""A source: who is asked what we say too. One module of `sources` each; nothing is registered.

    NAME        is the file's name
    version()   the source with its version, as the table shows it: "jax 0.10.2, cpu"
    missing()   what has to be installed or plugged in before it can be asked, and how; "" for nothing
    compare()   one outcome for each case, in their order, each as soon as it is there
    random_cases()  of a number and a seed, where it is asked about cases of its own kind; most have none
    SMALLER     False where a case takes so long that none is made smaller; most have none

What can abort, hang or use up the memory answers from a process of its own (`compiler.child`); then `compare` sends the
cases in batches, and a case on which the process ends is skipped with the words of its end, like one that is out of its
reach. A source never says Agree of something that it did not look at.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Protocol

from layoutproof.core.document import JsonObject
from layoutproof.core.errors import unknown_name
from layoutproof.crosschecks.case import Case


@dataclass(frozen=True, slots=True)
class Agree:
    """Both say the same. compared: how many numbers were compared: offsets, bytes, elements, verdicts.

    unanswered: why a part of the questions has no answer, "" = all have one.
    """

    compared: int = 1
    unanswered: str = ""


@dataclass(frozen=True, slots=True)
class Disagree:
    """The two say something else.

    what: the compared figure, e.g. "offset", "packed byte", "shard of device", "program that wrote it last".
    ours, theirs: the two values, as text.  index: the smallest place where they differ; () where there is none.
    """

    what: str
    ours: str
    theirs: str
    index: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """Nothing was compared.

    reason: why, without names and numbers of the case, so that the table can count it; "" = the case is none of this
    source's subject, and is not counted at all.
    """

    reason: str


Outcome = Agree | Disagree | Skipped


def as_data(outcome: Outcome) -> dict[str, object]:
    """An outcome as plain data, for a process of its own to answer with."""
    return {"kind": type(outcome).__name__, **asdict(outcome)}


def of_data(value: JsonObject) -> Outcome:
    """The outcome again.

    >>> of_data(as_data(Disagree("offset", "1", "2", (0, 3))))
    Disagree(what='offset', ours='1', theirs='2', index=(0, 3))
    """
    given = {name: entry for name, entry in value.items() if name != "kind"}
    match value["kind"]:
        case "Agree":
            return Agree(int(given["compared"]), str(given.get("unanswered", "")))
        case "Disagree":
            return Disagree(
                str(given["what"]), str(given["ours"]), str(given["theirs"]), tuple(map(int, given["index"]))
            )
    return Skipped(str(given["reason"]))


def both(first: Outcome, second: Outcome) -> Outcome:
    """Of two comparisons of one case: the disagreement, or all that agrees; skipped where nothing was compared.

    >>> both(Agree(3), Skipped("no bytes")), both(Agree(3), Agree(4))
    (Agree(compared=3, unanswered=''), Agree(compared=7, unanswered=''))
    """
    match first, second:
        case Agree(a, why), Agree(b, more):
            return Agree(a + b, why or more)
        case (Disagree(), _) | (_, Skipped("")) | (Agree(), Skipped()):
            return first
    return second


class Source(Protocol):
    """The protocol of a module of `sources`."""

    def version(self) -> str:
        """The source with its version."""

    def missing(self) -> str:
        """The missing parts for asking it; "" for none."""

    def compare(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """One outcome for each case, in their order."""


def sources() -> tuple[str, ...]:
    """The names of all sources: the modules of `layoutproof.crosschecks.sources`."""
    return _names()


@lru_cache(maxsize=1)
def _names() -> tuple[str, ...]:
    import layoutproof.crosschecks.sources as package

    return tuple(sorted(module.name for module in pkgutil.iter_modules(package.__path__)))


def source(name: str) -> Source:
    """One source by its name; LayoutError lists the known ones."""
    if name not in sources():
        raise unknown_name("source", name, sources())
    module: Source = importlib.import_module(f"layoutproof.crosschecks.sources.{name}")
    return module
