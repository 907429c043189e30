"""Judged Pallas calls as text for people and as JSON for programs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Annotated, TypedDict

from layoutproof.core.document import Doc, Document, envelope
from layoutproof.core.errors import listed
from layoutproof.core.finding import ACCEPTED, IDLE, Finding, FindingEntry, VerdictWord, as_dict, split_place
from layoutproof.core.finding import text as text_of
from layoutproof.core.result import Verdict, plain
from layoutproof.core.visible import visible
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.pallas.compiled import CompiledEntry
from layoutproof.pallas.findings import Judged, count, exit_code, without_proved
from layoutproof.pallas.judge import BODY, advice
from layoutproof.pallas.overruled import CONFLICT
from layoutproof.pallas.replay import ReplayEntry


def text(calls: Sequence[Judged], everything: bool = False) -> str:
    """Every call with what is not proved of it (or everything), then one line that counts.

    Advice that several calls share is printed once, before the last line.
    """
    needs = Counter(needed for call in calls if (needed := advised(call)))
    shared = {needed for needed, many in needs.items() if many > 1}
    joint = []
    for needed in needs:
        if needed in shared:
            names = list(dict.fromkeys(str(call.call.name) for call in calls if advised(call) == needed))
            joint.append(visible(f"{needs[needed]} calls need the same: {listed(names)}") + f"\n  assume   {needed}\n")
    blocks = [f"{one(call, everything, shared)}\n" for call in calls]
    return "\n".join([*blocks, *joint, summary(calls)])


def one(call: Judged, everything: bool = False, elsewhere: Collection[str] = ()) -> str:
    """One call: where it is, its grid and target, how much is proved, and each finding with its numbers.

    elsewhere: the advice that is printed for several calls at once.

    matmul_kernel   kernels/matmul.py:70
      grid     (3, 3, 3)
      target   v5e, libtpu 0.0.42.1
      proved   9 properties of the grid and BlockSpecs; body not looked at

    refuted  outputs_covered  outputs[0] f32[1000,1000] block (256, 256)   kernels/matmul.py:70
      because  no program writes outputs[0][768:1000, 0:256] (block (3, 0))
      at       block=(3, 0)
      fix      grid floor-divides 1000 by 256: use pl.cdiv
      explain  layoutproof explain outputs_covered
    """
    kernel = call.call
    lines = [f"{kernel.name}   {place(kernel.source)}".rstrip()]
    run = [f"  run      {call.replay}"] if call.replay is not None else []
    run += [line for each in call.compiled for line in each.text().splitlines()]
    if isinstance(kernel, Unmodelled):
        lines += ["  unknown  not modelled, so nothing of it is proved", f"  because  {kernel.reason}"]
        lines += [f"  {ACCEPTED} {call.accepted}"] if call.accepted else []
        lines += run
        return "\n".join(map(visible, lines))
    lines.append(f"  grid     ({', '.join(map(str, kernel.grid))}){_semantics(kernel)}")
    if call.target:
        lines.append(f"  target   {call.target}, {call.compiler}")
    else:
        lines.append("  target   none given; what hardware demands is not asked")
    if call.premise:
        lines.append(f"  premise  {call.premise}")
    given = _options("; ".join(assumptions(kernel)), call.where)
    if given:
        lines.append(f"  given    {given}")
    proved = call.proved()
    of_body = [name for name in proved if name in call.of_body()]
    lines.append(
        f"  proved   {_many(len(proved) - len(of_body), 'property')} of the grid and BlockSpecs; {_body(call, of_body)}"
    )
    if everything and proved:
        lines.append(f"           {', '.join(proved)}")
    if call.manual_dma:
        lines.append(f"  DMA      {', '.join(call.manual_dma)}")
    if call.foreign:
        lines.append(f"  unknown  what the hardware demands: {call.foreign}")
    elif not call.findings:
        lines.append("  unknown  there is nothing in it to ask about")
    elif call.unread:
        lines.append(f"  unknown  {call.unread}")
        lines += [f"  {ACCEPTED} {call.accepted}"] if call.accepted else []
    needed = advised(call)
    if needed and needed not in elsewhere:
        lines.append(f"  assume   {needed}")
    lines += run
    left = call if everything else without_proved(call)
    found = [finding_text(f, kernel, call.word(f), _run(call, f)) for f in left.findings]
    return "\n\n".join(["\n".join(map(visible, lines)), *found])


def finding_text(finding: Finding, kernel: Kernel, said: str, run: str = "") -> str:
    """One finding: its word, the property, the operand, the place; then the reason, the program, and the advice.

    run: the outcome of running the kernel.
    """
    undecided = finding.verdict is Verdict.UNKNOWN and said == finding.severity
    reason = f"unknown: {finding.reason}" if undecided else finding.reason
    page = "" if finding.verdict is Verdict.PROVED else f"layoutproof explain {finding.question}"
    return text_of(
        replace(finding, subject=_subject(finding, kernel), reason=reason), [("run", run), ("explain", page)], said
    )


def _run(call: Judged, finding: Finding) -> str:
    # a conflict says itself what the run showed
    return call.replay.of(finding) if call.replay is not None and finding.question != CONFLICT else ""


def summary(calls: Sequence[Judged]) -> str:
    """One line: calls by their verdict, then findings that their lines call something else, then what proved means.

    >>> summary([])
    'no Pallas call; there is nothing to prove'
    """
    if not calls:
        return "no Pallas call; there is nothing to prove"
    counts = ", ".join(f"{_count(calls, v)} {v.value}" for v in (Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN))
    line = f"{_many(len(calls), 'Pallas call')}: {counts}"
    accepted = sum(call.only_accepted for call in calls)
    line += f", {accepted} {ACCEPTED}" if accepted else ""
    wrong = [call for call in calls if call.verdict is Verdict.REFUTED]
    also = count(wrong, "unknown")
    line += f"; {_many(also, 'question')} unknown in what is refuted" if also else ""
    for severity in ("warning", "info"):
        said = count(calls, severity)
        line += f"; {said} {severity}" + ("s" if said != 1 and severity == "warning" else "") if said else ""
    told = count(calls, ACCEPTED)
    line += f"; {_many(told, 'unknown question')} {ACCEPTED}" if told else ""
    idle = count(calls, IDLE)
    line += f"; {idle} {IDLE}" if idle else ""
    return "; ".join((line, *scopes(calls)))


def scopes(calls: Sequence[Judged]) -> tuple[str, ...]:
    """The scopes of the proved calls, in words, each once."""
    return tuple(dict.fromkeys(call.scope for call in calls if call.verdict is Verdict.PROVED))


def why_unknown(call: Judged) -> str:
    """In one line, why it is unknown whether a call is right.

    >>> why_unknown(Judged(Unmodelled("mm", "a.py:7", "a grid of floats")))
    'unknown  mm a.py:7: a grid of floats'
    """
    first, *others = [f for f in call.decisive() if f.verdict is Verdict.UNKNOWN]
    head = f"unknown  {call.call.name} {place(call.call.source)}".rstrip()
    of = f"{first.question} of {first.subject}: " if first.question != "kernel" else ""
    more = f" (and {len(others)} more)" if others else ""
    return visible(f"{head}: {of}{first.reason}{more}")


class OperandEntry(TypedDict):
    name: str
    role: str
    dtype: str
    dims: list[int | str]
    block: list[str]


class KernelFindingEntry(FindingEntry):
    asked: bool
    replay: Annotated[str, Doc("of what is refuted, what running the kernel says of it; empty without --replay")]


class KernelEntry(TypedDict):
    subject: str
    verdict: VerdictWord
    reason: str
    scope: str
    accepted: Annotated[str, Doc('why a call that is unknown as a whole is accepted, "" = it is not')]
    file: str
    line: int
    target: str
    compiler: str
    manual_dma: Annotated[list[str], Doc("operands that the body copies itself")]
    assume: Annotated[str, Doc("the assumptions that would settle what is unknown, for --assume")]
    where: Annotated[str, Doc("the condition on sizes that would settle it with them, for --where")]
    grid: list[int | str]
    platform: str
    pipeline: str
    operands: list[OperandEntry]
    replay: Annotated[ReplayEntry | None, Doc("null without --replay")]
    compiled: Annotated[list[CompiledEntry], Doc("with --compile: what the compiler makes of it, by target")]
    findings: list[KernelFindingEntry]


class KernelsDocument(Document):
    """The findings on every Pallas call."""

    summary: dict[str, int]
    scope: Annotated[str, Doc("what was proved of those that are proved")]
    kernels: list[KernelEntry]


def as_json(calls: Sequence[Judged]) -> KernelsDocument:
    """The same for programs, as of `core.document`: `kernels` with all findings, `summary`, the meaning of proved."""
    counts = {verdict.value: _count(calls, verdict) for verdict in (Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN)}
    counts |= {
        "accepted": sum(call.only_accepted for call in calls),
        "warnings": count(calls, "warning"),
        "infos": count(calls, "info"),
        "not_asked": count(calls, IDLE),
    }
    return {
        **envelope(exit_code(calls)),
        "summary": {"kernels": len(calls), **counts},
        "scope": "; ".join(scopes(calls)),
        "kernels": [_call_json(call) for call in calls],
    }


def place(source: str) -> str:
    """`file:line` relative to where we are, if it lies below."""
    file, colon, line = source.rpartition(":")
    if not colon or not os.path.isabs(file):
        return source
    here = os.getcwd() + os.sep
    return f"{file.removeprefix(here)}:{line}"


def _call_json(call: Judged) -> KernelEntry:
    kernel = call.call
    file, line, _ = split_place(kernel.source)
    assume, where = advice(call.findings)
    return {
        "subject": kernel.name,
        "verdict": call.verdict.value,
        "reason": (call.foreign or call.unread) if isinstance(kernel, Kernel) else kernel.reason,
        "scope": call.scope,
        "accepted": call.accepted,
        "file": file,
        "line": line,
        "target": call.target,
        "compiler": call.compiler,
        "manual_dma": list(call.manual_dma),
        "assume": assume,
        "where": where,
        "grid": plain(kernel.grid) if isinstance(kernel, Kernel) else [],
        "platform": kernel.platform if isinstance(kernel, Kernel) else "",
        "pipeline": kernel.pipeline if isinstance(kernel, Kernel) else "",
        "operands": [
            {"name": o.name, "role": o.role, "dtype": o.dtype, "dims": plain(o.dims), "block": list(map(str, o.block))}
            for o in (kernel.operands if isinstance(kernel, Kernel) else ())
        ],
        "replay": None if call.replay is None else call.replay.as_dict(),
        "compiled": [each.as_dict() for each in call.compiled],
        "findings": [{**as_dict(f), "asked": f.asked, "replay": _run(call, f)} for f in call.findings],
    }


def assumptions(kernel: Kernel) -> tuple[str, ...]:
    """All that is assumed of a call's tables, as `--assume` takes it."""
    of_tables = (text for table in every_table(kernel) for text in table.assumptions())
    return (*of_tables, *(relation.text for relation in kernel.relations))


def advised(call: Judged) -> str:
    """All that a call needs so that what is unknown of it is settled, as the command takes it; "" for nothing."""
    return _options(*advice(call.findings))


def _options(assume: str, where: str) -> str:
    """The options of the command for an assumption or an advice on a call.

    >>> _options("0 <= t < 4", "grid1 <= 11")
    '--assume "0 <= t < 4" --where "grid1 <= 11"'
    """
    return " ".join(f'--{name} "{text}"' for name, text in (("assume", assume), ("where", where)) if text)


def _body(call: Judged, proved: Sequence[str]) -> str:
    """The proved questions about the body, of all that were asked."""
    asked = call.of_body()
    if not asked:
        return f"body not asked (--only {call.only})" if call.only else BODY
    return f"{len(proved)} of {_many(len(asked), 'question')} about the body"


def _subject(finding: Finding, kernel: Kernel) -> str:
    for operand in kernel.operands:
        if operand.name == finding.subject:
            block = ", ".join(map(str, operand.block))
            return f"{operand.name} {operand.dtype}[{','.join(map(str, operand.dims))}] block ({block})"
    return finding.subject


def _semantics(kernel: Kernel) -> str:
    return f" {' '.join(kernel.semantics)}" if kernel.semantics else ""


def _count(calls: Sequence[Judged], verdict: Verdict) -> int:
    return sum(call.verdict is verdict and not call.only_accepted for call in calls)


def _many(count: int, what: str) -> str:
    """
    >>> _many(2, "property")
    '2 properties'
    """
    if count == 1:
        return f"1 {what}"
    return f"{count} {what[:-1]}ies" if what.endswith("y") else f"{count} {what}s"
