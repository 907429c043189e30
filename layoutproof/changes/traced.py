"""The Pallas calls of user code that a spec file names, as layouts that a lock file can hold.

The code of another state is never run: a git revision has no work tree, and importing it is not what anybody asked for.
What the code of today does is traced, and what it did is in the lock file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from layoutproof.changes.specs import Named, Spec, compare
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.finding import Finding, unknown, wrong_input
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.kernel_print import mapping_of
from layoutproof.pallas.spec_text import name_of, not_serialisable
from layoutproof.specs.traced import calls_in


def layouts_of(traced: Sequence[Named]) -> tuple[Named, ...]:
    """Each call that the entries of `kernels:` make, as `entry:call`. What has no words is left out: its claims say so.

    Raises LayoutError for what cannot be imported or traced.
    """
    found: list[Named] = []
    for entry in traced:
        names: list[str] = []
        for call in calls_in(entry.value):
            names.append(name_of(call, names))
            if not not_serialisable(call) and isinstance(call, Kernel):
                value: dict[str, Any] = {"kernel": mapping_of(call)}
                found.append(Named(f"{entry.name}:{names[-1]}", value, entry.line, entry.column))
    return tuple(found)


def drift(locked: Sequence[Named], spec: Spec, relpath: str) -> list[Finding]:
    """What the calls of a spec file's entries do now, against what a lock says that they did.

    An entry that is gone, or that the file names otherwise, is the spec file's change and is not told twice.
    """
    entries = {entry.name: entry for entry in spec.traced}
    before = [call for call in locked if call.name.partition(":")[0] in entries]
    names = dict.fromkeys(call.name.partition(":")[0] for call in before)
    found: list[Finding] = []
    for name in names:
        entry = entries[name]
        at: dict[str, Any] = {"relpath": relpath, "file": spec.file, "line": entry.line, "column": entry.column}
        try:
            now = layouts_of([entry])
        except Undecided as why:
            found.append(unknown(f"kernel {name}", str(why), **at))
            continue
        except LayoutError as error:
            found.append(wrong_input(f"kernel {name}", error.problem, **at))
            continue
        sides = (Spec(spec.file, tuple(c for c in before if c.name.startswith(f"{name}:"))), Spec(spec.file, now))
        found += [replace(each, **at) for each in compare(*sides, relpath).all()]
    return found
