"""The Pallas calls of user code that a spec file names, as layouts that a lock file can hold.

The code of another state is never run: a git revision has no work tree, and importing it is not what anybody asked for.
What the code of today does is traced, and what it did is in the lock file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutproof.core.kernel import Kernel
from layoutproof.core.kernel_print import mapping_of
from layoutproof.jobs.gate.specs import Named
from layoutproof.jobs.pallas.claims import calls_in
from layoutproof.jobs.pallas.spec_text import name_of, wordless


def layouts_of(traced: Sequence[Named]) -> tuple[Named, ...]:
    """Each call that the entries of `kernels:` make, as `entry:call`. What has no words is left out: its claims say so.

    Raises LayoutError for what cannot be imported or traced.
    """
    found: list[Named] = []
    for entry in traced:
        names: list[str] = []
        for call in calls_in(entry.value):
            names.append(name_of(call, names))
            if not wordless(call) and isinstance(call, Kernel):
                value: dict[str, Any] = {"kernel": mapping_of(call)}
                found.append(Named(f"{entry.name}:{names[-1]}", value, entry.line, entry.column))
    return tuple(found)
