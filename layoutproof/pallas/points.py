"""The entries of tables in a violation, as people name them: `prefetch0[3] = 8`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layoutproof.core.claim import Claim
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Counterexample
from layoutproof.core.term import Term, substitute
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.relations import range_at
from layoutproof.kernel.windows import named_reads

READS = "reads"
"""The point of a counterexample that says what is read of tables; `first_reads` where there are several programs."""

REPLICAS = "_at"
"""How a point ends that has what else chooses a program's window: other grid indices, reads, offsets in the window."""


def with_entries(kernel: Kernel, claim: Claim, point: Counterexample) -> Counterexample:
    """The point of a claim about index maps with the entries of tables by name, `{"prefetch0[3]": 8}`.

    In the claim they are numbers from 0 on, one for each read of an index map, in the order of the map's replicas.
    """
    known = _reads_by_name(kernel)
    on = Numbers(dict(point.get("sizes", {})))
    shown: dict[str, Any] = {}
    for label, values in point.items():
        program = "program" if label == READS else label.removesuffix(f"_{READS}")
        told = label == READS or label.endswith(f"_{READS}")
        if not told or isinstance(values, Mapping) or program not in claim.points or label not in claim.points:
            shown[label] = values
            continue
        names = dict(zip(claim.points[program].names, point[program], strict=False))
        shown[label] = _entries(kernel, known, dict(zip(claim.points[label].names, values, strict=True)), names, on)
    return shown


def replicas_read(kernel: Kernel, claim: Claim, point: Counterexample | None) -> Counterexample:
    """The point with what its replicas read of tables by name too: `first_reads` of `first` and `first_at`."""
    known = _reads_by_name(kernel)
    shown: dict[str, Any] = dict(point or {})
    on = Numbers(dict(shown.get("sizes", {})))
    for label, values in (point or {}).items():
        program = label.removesuffix(REPLICAS)
        if not label.endswith(REPLICAS) or not {program, label} <= set(claim.points) or isinstance(values, Mapping):
            continue
        at = dict(zip(claim.points[label].names, values, strict=True))
        read = {text: value for text, value in at.items() if text in known}
        names = dict(zip(claim.points[program].names, shown[program], strict=True))
        names |= {text: value for text, value in at.items() if text not in known}
        if read:
            shown[f"{program}_{READS}"] = _entries(kernel, known, read, names, on)
    return shown


def _reads_by_name(kernel: Kernel) -> dict[str, Term]:
    """The reads of all index maps by the names that their values have in points."""
    terms = (term for operand in kernel.operands for term in operand.terms())
    return {name.args[0]: read for read, name in named_reads(terms).items()}


def _entries(
    kernel: Kernel, known: Mapping[str, Term], values: Mapping[str, int], names: Mapping[str, int], on: Numbers
) -> dict[str, int]:
    """Each read with its indices as numbers, and what else is chosen by its own name."""
    found: dict[str, int] = {}
    seen = dict(names)
    fresh = {read: Term("name", name) for name, read in known.items()}
    # the reads in a read's place come before it
    for text in sorted(values, key=len):
        value = values[text]
        if text in known:
            read = known[text]
            table = str(read.args[0].args[0])
            value += on.size(range_at(kernel.relations, kernel.table(table), read.args[1:])[0])
            at = [substitute(part, fresh).evaluate({**values, **seen}, on) for part in read.args[1:]]
            seen[text] = value
            text = f"{table}[{', '.join(map(str, at))}]"
        found[text] = value
    return found
