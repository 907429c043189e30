"""Changes between the custom calls of two programs: targets, the layouts that they demand, Mosaic kernels inside.

A kernel is compared as a kernel, and judged before and after by the questions of the audit (`hlo.kernels`). Where it is
another one, both bodies are judged too. Where a kernel's lines stand in the user's program is no part of it. A record
has of a kernel its name, digest, VMEM and cycles.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from layoutproof.core.errors import LayoutError, listed, shorten
from layoutproof.core.finding import Finding, unknown
from layoutproof.core.message import extended, restated
from layoutproof.core.result import Verdict
from layoutproof.gating import problems
from layoutproof.gating.amounts import amount
from layoutproof.gating.array_classes import array_classes
from layoutproof.gating.classes import layouts
from layoutproof.gating.compiled_program import Inside, KernelData, LayoutDemands, Verdicts, title
from layoutproof.gating.kernel_regressions import bodies_in_words, is_worse
from layoutproof.gating.kernels import kernels
from layoutproof.gating.matching import Match, Round, match
from layoutproof.hlo.kernels import KERNEL
from layoutproof.hlotext.texts import logical
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.kernel.kernel_print import mapping_of
from layoutproof.pallas.from_mosaic.mosaic_calls import TARGET

INTERNAL = frozenset(
    (
        *("ConcatBitcast", "AssumeGatherIndicesInBound", "AllocateBuffer", "LayoutConstraint", "Sharding"),
        *("SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement", "MoveToHost", "MoveToDevice"),
    )
)
"""Targets that compilers write for themselves, and that compute nothing: they come and go with a compiler's choices."""


def customs(before: Sequence[LayoutDemands], after: Sequence[LayoutDemands]) -> list[Finding]:
    """The findings between the custom calls of two programs."""
    old, new = ([c for c in side if c.target == TARGET] for side in (before, after))
    one, other = ([c for c in side if c.target != TARGET] for side in (before, after))
    return [*_kernels(old, new), *_others(one, other)]


def _others(before: Sequence[LayoutDemands], after: Sequence[LayoutDemands]) -> list[Finding]:
    rounds: list[Round[LayoutDemands]] = [
        Round(lambda c: (c.target, c.operands, c.result, c.said), alike=True),
        Round(lambda c: (c.target, c.base, c.op_name, c.result)),
        Round(lambda c: (c.base, c.op_name, c.result)),
        Round(lambda c: (c.target, c.result), match_heuristic="by its target and result"),
        Round(lambda c: (c.op_name, c.result) if c.op_name else None, match_heuristic="by op_name and result"),
    ]
    known = {c.target for c in before}
    gone = known - {c.target for c in after} - INTERNAL
    found = []
    for pair in match(before, after, rounds):
        old, new = pair.old, pair.new
        if old is not None and new is not None:
            found += _called(pair)
        elif new is not None and new.target not in known | INTERNAL:
            known.add(new.target)
            why = problems.CALLS_NEW_TARGET(new.target)
            found.append(Finding("custom_call", _subject(new), why, line=new.line, after=new.target))
        elif old is not None and old.target in gone:
            gone.discard(old.target)
            found.append(
                Finding("vanished_call", _subject(old), problems.NOT_CALLED_ANY_MORE(old.target), before=old.target)
            )
    return found


def _called(pair: Match[LayoutDemands]) -> list[Finding]:
    """The changes of one call besides its result."""
    old, new = pair.old, pair.new
    assert old is not None
    assert new is not None
    at: dict[str, Any] = {"line": new.line, "match_heuristic": pair.match_heuristic}
    found = []
    if old.target != new.target:
        if {old.target, new.target} <= INTERNAL:
            return []
        why = problems.CALLS_OTHER_TARGET(new.target or "nothing", old.target or "nothing")
        return [Finding("custom_call", _subject(new), why, before=old.target, after=new.target, **at)]
    if old.said != new.said:
        why = problems.SAYS_OTHERWISE(new.said or "nothing", old.said or "nothing")
        found.append(Finding("custom_call", _subject(new), why, before=old.said, after=new.said, **at))
    sides: dict[str, Any] = {"before": ", ".join(old.operands), "after": ", ".join(new.operands)}
    if len(old.operands) != len(new.operands):
        why = problems.OPERANDS_DEMANDED(len(new.operands), len(old.operands))
        return [*found, Finding("custom_call", _subject(new), why, **at, **sides)]
    for number, (one, other) in enumerate(zip(old.operands, new.operands, strict=True)):
        if one == other:
            continue
        subject = f"operand {number} of {_subject(new)}"
        if logical(one) != logical(other):
            why = problems.LAYOUT_DEMANDED(other, one)
            found.append(Finding("custom_call", subject, why, before=one, after=other, **at))
        else:
            found += [replace(f, subject=subject, **at) for f in array_classes(one, other)]
    return found


Seen = tuple[LayoutDemands, Inside | None]
"""A kernel with what it is; None where only its digest is known."""


def _kernels(before: Sequence[LayoutDemands], after: Sequence[LayoutDemands]) -> list[Finding]:
    rounds: list[Round[LayoutDemands]] = [Round(lambda c: (c.written, c.vmem, c.place), alike=True)]
    open_ = [pair for pair in match(before, after, rounds) if pair.old is None or pair.new is None]
    olds, news = [p.old for p in open_ if p.old], [p.new for p in open_ if p.new]
    if not open_:
        return []
    rounds_seen: list[Round[Seen]] = [
        Round(lambda s: None if s[1] is None else (*_around(s[0]), _json(s[1])), alike=True),
        Round(lambda s: (s[0].base, s[0].op_name, s[0].result)),
        Round(lambda s: (s[0].base, s[0].op_name)),
        Round(lambda s: s[1].digest or None if s[1] is not None else None, ordered=False),
        Round(lambda s: (s[0].op_name, s[0].result) if s[0].op_name else None, match_heuristic="by op_name and result"),
        Round(lambda s: s[0].result or None, match_heuristic="by its result"),
        Round(lambda s: s[0].place or None, match_heuristic="by its name"),
    ]
    found = []
    for pair in match(seen(olds), seen(news), rounds_seen):
        if pair.old is not None and pair.new is not None:
            found += _kernel(pair.old, pair.new, pair.match_heuristic)
        elif pair.new is not None:
            custom, inside = pair.new
            why = problems.KERNEL_NEW()
            found.append(Finding("added", _subject(custom), why, line=custom.line))
            if inside is not None:
                found += _judged(None, custom, inside, "")
                found += _bodies(None, (custom, inside), "")[0]
        elif pair.old is not None:
            found.append(Finding("vanished_call", _subject(pair.old[0]), problems.KERNEL_GONE()))
    return found


def _kernel(old: Seen, new: Seen, match_heuristic: str) -> list[Finding]:
    """The changes of one kernel."""
    (one, before), (other, after) = old, new
    if before is None or after is None:
        return _by_digest(one, other, match_heuristic)
    if (*_around(one), _json(before)) == (*_around(other), _json(after)):
        return amount("vmem", f"VMEM of {_subject(other)}", one.vmem, other.vmem, "bytes")
    return _by_contents((one, before), (other, after), match_heuristic)


def _by_digest(one: LayoutDemands, other: LayoutDemands, match_heuristic: str) -> list[Finding]:
    """The changes of a kernel whose contents are not known."""
    subject, figures = _subject(other), dict[str, Any]()
    vmem = amount("vmem", f"VMEM of {subject}", one.vmem, other.vmem, "bytes")
    if one.written == other.written:
        return vmem
    # without cycles of the old one, as in older records, its text says that it changed
    known = one.cycles is not None
    cycles = amount("estimated_cycles", f"cycles of {subject}", one.cycles, other.cycles, "cycles") if known else []
    why = problems.KERNEL_TEXT()
    if [each.question for each in vmem] == ["shrank"]:
        # smaller blocks are more steps: less VMEM is reported with this cost, and is no gain by itself
        why = problems.LESS_VMEM(vmem[0].reason, why)
        figures, vmem = dict(vmem[0].figures), []
    sides: dict[str, Any] = {"before": one.written, "after": other.written}
    body = Finding("kernel_body", subject, why, figures=figures, match_heuristic=match_heuristic, **sides)
    return [*cycles, *vmem, body]


def _by_contents(
    old: tuple[LayoutDemands, Inside], new: tuple[LayoutDemands, Inside], match_heuristic: str
) -> list[Finding]:
    """The changes of a kernel: what is around it, its grid and blocks, its body."""
    (one, before), (other, after) = old, new
    at: dict[str, Any] = {"line": other.line, "match_heuristic": match_heuristic}
    found = [*_called(Match(one, other, match_heuristic)), *_judged(before, other, after, match_heuristic)]
    bodies, said = ([], "") if _same_inside(before, after) else _bodies(old, new, match_heuristic)
    found += bodies
    subject = _subject(other)
    pairs = list(zip(before.kernels, after.kernels, strict=False))
    same = before.kernels == after.kernels
    for was, now in () if same else pairs:
        if was == now:
            continue
        if isinstance(was, str) or isinstance(now, str):
            reason = now if isinstance(now, str) else f"before: {was}"
            why = problems.KERNEL_UNREAD(reason)
            found.append(unknown(subject, why, **at))
            continue
        changed = [f for f in kernels({"kernel": was}, {"kernel": now}, layouts) if f.question != "respelled"]
        found += [replace(f, subject=subject, **at) for f in changed]
    if len(before.kernels) != len(after.kernels):
        why = problems.KERNEL_PARTS(len(after.kernels), len(before.kernels))
        found.append(Finding("kernel", subject, why, **at))
    if same and before.digest != after.digest:
        unread = next((k for k in after.kernels if isinstance(k, str)), "")
        sides: dict[str, Any] = {"before": before.digest, "after": after.digest}
        if unread:
            why = problems.KERNEL_MODULE(unread)
            found.append(unknown(subject, why, **at, **sides))
        else:
            why = problems.KERNEL_BODY(said)
            found.append(Finding("kernel_body", subject, why, **at, **sides))
    return found


def _judged(before: Inside | None, custom: LayoutDemands, after: Inside, match_heuristic: str) -> list[Finding]:
    """New refutations, and new unknowns."""
    at: dict[str, Any] = {"line": custom.line, "match_heuristic": match_heuristic}
    found = []
    for verdict, why in _worse(() if before is None else before.verdicts, after.verdicts):
        said = extended(why, f" ({_since(before)})")
        refuted = verdict is Verdict.REFUTED
        found.append(
            Finding("refuted", _subject(custom), said, **at) if refuted else unknown(_subject(custom), said, **at)
        )
    return found


def _since(before: object) -> str:
    return "it is new" if before is None else "before, that was not so"


def _bodies(
    old: tuple[LayoutDemands, Inside] | None, new: tuple[LayoutDemands, Inside], match_heuristic: str
) -> tuple[list[Finding], str]:
    """The rules that the new body breaks or leaves unknown and the old one does not; and both bodies in words."""
    custom = new[0]
    at: dict[str, Any] = {"line": custom.line, "match_heuristic": match_heuristic}
    now = of_body(*new)
    then = () if old is None else of_body(*old)
    if now is None:
        return [], "its body was not judged"
    if then is None:
        why = "the body is another, and the lock file was written by a version that did not judge bodies: write it anew"
        return [unknown(_subject(custom), f"{why} with --lock", **at)], why
    was = _since(old)
    worse = _worse(then, now)
    found = [
        Finding("refuted", _subject(custom), extended(why, f" ({was})"), **at)
        for verdict, why in worse
        if verdict is Verdict.REFUTED
    ]
    lost = {_rule(why): why for verdict, why in worse if verdict is Verdict.UNKNOWN}
    if lost:
        reason = next(iter(lost.values()))
        others = f"; so are {listed(list(lost)[1:])}" if len(lost) > 1 else ""
        found.append(unknown(_subject(custom), restated(f"of the body: {reason} ({was}){others}", reason), **at))
    return found, bodies_in_words(*({_rule(why): verdict for verdict, why in side} for side in (then, now)))


def _worse(before: Verdicts, after: Verdicts) -> list[tuple[Verdict, str]]:
    """The answers that got worse, with their reasons; of several about one property the worst counts before."""
    then: dict[str, Verdict] = {}
    for word, why in before:
        then[_rule(why)] = min(Verdict(word), then.get(_rule(why), Verdict.PROVED))
    now = [(Verdict(word), why) for word, why in after]
    return [(verdict, why) for verdict, why in now if is_worse(verdict, then.get(_rule(why)))]


def of_body(custom: LayoutDemands, inside: Inside) -> Verdicts | None:
    """The unproved questions about the bodies; None where a lock file does not say."""
    if inside.body is not None or custom.source is None:
        return inside.body
    from layoutproof.hlo.kernels import check_body

    return tuple((found.verdict.value, _said(found)) for found in check_body(custom.source))


def _same_inside(before: Inside, after: Inside) -> bool:
    return before.kernels == after.kernels and before.digest == after.digest


def _said(found: Finding) -> str:
    """The reason as a lock file keeps it: after the property that it is about."""
    return found.reason if found.question == KERNEL else f"{found.question}: {found.reason}"


def _rule(why: str) -> str:
    """The property that a reason is about."""
    return why.partition(":")[0]


def seen(side: Sequence[LayoutDemands]) -> list[Seen]:
    """Each kernel with what it is."""
    from layoutproof.hlo import kernels as judge
    from layoutproof.pallas.from_mosaic.mosaic_calls import call_of
    from layoutproof.pallas.from_mosaic.mosaic_module import ReadCall, read_calls

    fresh = [c for c in side if c.inside is None and c.source is not None]
    made = []
    for custom in fresh:
        assert custom.source is not None
        try:
            (read,) = read_calls([replace(call_of(custom.source, ""), name="kernel", source="")])
        except LayoutError as error:
            read = ReadCall((Unmodelled("kernel", "", error.problem),))
        verdicts = tuple((f.verdict.value, _said(f)) for f in judge.check(custom.source, "", None))
        made.append(Inside(tuple(map(_mapping, read.kernels)), read.digest or custom.written, verdicts))
    answers = iter(made)
    return [(c, next(answers) if c.inside is None and c.source is not None else c.inside) for c in side]


def _mapping(kernel: Kernel | Unmodelled) -> KernelData:
    """A kernel as plain data; the reason where it cannot be read."""
    if isinstance(kernel, Unmodelled):
        return kernel.reason
    found: KernelData = json.loads(json.dumps(mapping_of(kernel)))
    return found


def _around(custom: LayoutDemands) -> tuple[tuple[str, ...], str, str]:
    return (custom.operands, custom.result, custom.said)


def _json(value: Inside) -> str:
    # one module has one body
    return json.dumps([value.kernels, value.digest, value.verdicts], sort_keys=True)


def _subject(custom: LayoutDemands) -> str:
    what = "kernel" if custom.target == TARGET else "custom call"
    return f"{what} {custom.place or title(shorten(custom.base, 60), custom.op_name)}"
