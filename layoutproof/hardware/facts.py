"""Facts about targets as data: the basis of a rule, its source, and the version of the source.

A module of `hardware` with facts has them in `FACTS`; the values that a rule uses stay beside the rule, and the fact
takes its value from there. `crosscheck --facts` measures each again with the installed versions, and shows differences:
facts are of one version of a compiler, no promise of the next.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable
from dataclasses import dataclass

AS_THE_RULE = "as the rule says"
"""The value of a fact that is a rule: a new measurement is compared with the rule itself."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact.

    name: of the fact, the same for all targets.  value: as text, for rules; AS_THE_RULE where it is a rule itself.
    version: the source with its version, "libtpu 0.0.52".  source: how it was found, in words.
    target: canonical name of a generation or target, "" = all that the compiler knows.
    """

    name: str
    value: str
    version: str
    source: str
    target: str = ""


def facts() -> tuple[Fact, ...]:
    """Every fact of every module here, in the order of the modules' names."""
    import layoutproof.hardware as package

    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    return tuple(fact for module in modules for fact in getattr(module, "FACTS", ()))


def as_of(every: Iterable[Fact], who: str) -> tuple[Fact, ...]:
    """One fact of each name and target: of several the newest that is not newer than `who`, else the oldest.

    who: a version as facts name it, e.g. "libtpu 0.0.51.3"; those of others than that program have one version only.

    >>> both = [Fact("sums", "no", "libtpu 0.0.50.1", ""), Fact("sums", "yes", "libtpu 0.0.51", "")]
    >>> [fact.value for who in ("0.0.42.1", "0.0.50.7", "0.0.52") for fact in as_of(both, f"libtpu {who}")]
    ['no', 'no', 'yes']
    """
    found: dict[tuple[str, str], Fact] = {}
    for fact in every:
        key = (fact.name, fact.target)
        kept = found.get(key)
        newer = kept is not None and numbers(kept.version) < numbers(fact.version) <= numbers(who)
        if kept is None or newer:
            found[key] = fact
    return tuple(found.values())


def numbers(version: str) -> tuple[int, ...]:
    """The comparable part of a version: numbers between points, up to the first part that is none.

    >>> numbers("libtpu 0.0.53.dev20261101"), numbers("libtpu")
    ((0, 0, 53), ())
    """
    found = re.search(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,9}", version)
    return tuple(map(int, found[0].split("."))) if found else ()
