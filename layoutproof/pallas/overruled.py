"""A run may overrule: where it shows what a proof excludes, the proof is unknown, and a finding `conflict` is an error.

Why it matters: either the proof is wrong, or JAX's interpreter is, or the assumptions are not true of a table. None of
them may stay hidden, least of all behind a "proved" that stands beside the run's own exception.
Refuted by: a sign of a run (`--replay`) of which every question is proved that speaks of such signs: an access out of
bounds, a race, a semaphore left with a count, a wait that never ends, results that change with what new memory holds.
A sign that no question excludes is shown and counts for nothing: NaN that both runs have, which arithmetic makes; an
exception of another kind; an error in an unused output; a known fault of the interpreter
(BUGS-FOUND.md and docs/kernels.md), which is then named. A sign that a refuted or unknown question explains is none.
Fix: Send the line `report` with the file that `layoutproof kernels .. --record FILE` writes, which has no source code.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from layoutproof.bodies.effects import Signal, StartedCopy, View, Wait, views_of
from layoutproof.core.errors import listed
from layoutproof.core.finding import Finding, split_place
from layoutproof.core.packages import package_version
from layoutproof.core.result import Verdict
from layoutproof.core.visible import visible
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.pallas import problems
from layoutproof.pallas.findings import Judged
from layoutproof.pallas.replay import SIGNS, Replay, Sign
from layoutproof.solvers.conclude import left_open

CONFLICT = "conflict"
"""The question of what a run shows against a proof."""
_VALUES = ("initialised", "outputs_stored", "undefined_values")
_EXCLUDED = {
    "race": ("body_races", "dma_order"),
    "hang": ("dma_order",),
    "semaphore": ("dma_order",),
    "nan": _VALUES,
    "differs": _VALUES,
}
"""Which questions together exclude a sign where they are proved, by its kind."""
_RAISED = (("out-of-bounds block index", ("blocks_in_bounds",)), ("out-of-bounds", ("body_in_bounds",)))
"""The same of an exception, by its words, the first that fit."""


def overruled(call: Judged) -> Judged:
    """The call with what its run contradicts as unknown, and a `conflict` for each sign that does."""
    kernel, run = call.call, call.replay
    if isinstance(kernel, Unmodelled) or run is None or run.problem:
        return call
    wrong = {sign: names for sign in run.signs if (names := _contradicted(call, sign))}
    faults = {sign: fault for sign in wrong if (fault := known_fault(kernel, sign))}
    said = tuple(replace(sign, known=faults.get(sign, sign.known)) for sign in run.signs)
    wrong = {sign: names for sign, names in wrong.items() if sign not in faults}
    told = replace(call, replay=replace(run, signs=said))
    if not wrong:
        return told
    found = []
    for finding in call.findings:
        against = [sign.text for sign, names in wrong.items() if finding.question in names]
        proved = finding.verdict is Verdict.PROVED and finding.severity == "error"
        why = problems.RUN_SHOWS(finding.decided_by, "; ".join(against))
        found.append(left_open(replace(finding, verdict=Verdict.UNKNOWN), why) if against and proved else finding)
    return replace(told, findings=(*found, *(_conflict(call, kernel, run, *one) for one in wrong.items())))


def _contradicted(call: Judged, sign: Sign) -> tuple[str, ...]:
    """The questions whose proofs exclude a sign; () where something else than a wrong proof explains it."""
    if sign.known or (sign.output and not _used(call, sign.output)):
        return ()
    excluded = _EXCLUDED.get(sign.kind, ())
    if sign.kind == "raised":
        excluded = next((names for words, names in _RAISED if words in sign.text.lower()), ())
    speaking = {name for name, kinds in SIGNS.items() if sign.kind in kinds} | {"table_reads"}
    open_ = any(
        f.question in speaking and f.verdict is not Verdict.PROVED and f.severity != "info" for f in call.findings
    )
    asked = {f.question for f in call.findings}
    return () if open_ or not asked.issuperset(excluded) else excluded


def _used(call: Judged, output: str) -> bool:
    return isinstance(call.call, Kernel) and any(o.name == output and o.live for o in call.call.outputs)


def known_fault(kernel: Kernel, sign: Sign) -> str:
    """The fault of JAX's interpreter that a sign may be, in words; "" where none is known that looks like it.

    Source: the table of docs/kernels.md, 1,000 random kernels in the interpreters of jax 0.10.2 and 0.12.0.1.
    """
    return next((words for kind, words in _faults(kernel) if kind == sign.kind), "")


def _faults(kernel: Kernel) -> Iterator[tuple[str, str]]:
    if any(block.low or block.high for operand in kernel.operands for block in operand.block):
        padding = problems.ELEMENT_PADDING()
        yield from ((kind, padding) for kind in ("raised", "nan", "differs"))
    body = kernel.body
    effects = () if body is None else body.effects
    if kernel.parallel():
        if any(isinstance(effect, Signal) for effect in effects):
            yield "hang", "on two cores a signal that names no core goes to the first one, and the other waits for ever"
        if any(isinstance(effect, StartedCopy | Wait) for effect in effects):
            yield "hang", "on two cores, one waits for a copy that the other one started"
    moved = {
        _key(view) for effect in effects if isinstance(effect, StartedCopy) for view in (effect.source, effect.target)
    }
    if any(_key(effect.view) not in moved for effect in effects if isinstance(effect, Wait)):
        yield (
            "raised",
            "the interpreter looks at the place that a wait's descriptor names, of which only the size counts",
        )
    if any(piece.stride > 1 for view in views_of(body) for step in view.steps for piece in step.slices):
        yield "race", "the interpreter takes strided slices for all that lies between their ends"


def _key(view: View) -> Hashable:
    """A key that is equal for views that are written alike."""
    steps = [(s.kind, s.dims, tuple((p.start, p.size, p.stride) for p in s.slices)) for s in view.steps]
    return view.reference.name, *steps


def _conflict(call: Judged, kernel: Kernel, run: Replay, sign: Sign, names: tuple[str, ...]) -> Finding:
    proofs = [f for f in call.findings if f.question in names and f.verdict is Verdict.PROVED]
    by = "+".join(dict.fromkeys(f.decided_by for f in proofs if f.decided_by)) or "rule"
    file, line, column = split_place(kernel.source)
    reason = problems.OVERRULED(listed(list(names)), by, sign.text)
    fix = (
        "send the line report with what --record FILE writes of this call (no source code): a bug of layoutproof or JAX"
    )
    own = package_version("layoutproof") or "(not installed)"
    report = (
        f"layoutproof {own}, jax {run.jax}; {kernel.name} grid ({', '.join(map(str, kernel.grid))})"
        f"{f', target {call.target} {call.compiler}' if call.target else ''}; proved: {', '.join(names)} by {by}"
        f"; run: {run}"
    )
    at = {"file": file, "line": line, "column": column}
    return Finding(CONFLICT, kernel.name, visible(reason), fix=fix, figures={"report": report}, **at)  # type: ignore[arg-type]
