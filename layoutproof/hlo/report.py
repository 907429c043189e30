"""An audit for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, TypedDict

from layoutproof.core.amounts import size
from layoutproof.core.document import Doc, Exactly
from layoutproof.core.errors import shorten
from layoutproof.core.finding import Finding, FindingEntry, PointEntry, VerdictWord, as_dict, exit_code, text, word
from layoutproof.core.result import Verdict, plain
from layoutproof.core.visible import visible
from layoutproof.hlo.executions import Runs
from layoutproof.hlo.executions import words as runs_in_words
from layoutproof.hlo.fixes import DEFAULT_TARGET, SmallerForms, fix
from layoutproof.hlo.found import Audit, Buffers, Casts, Location, Moves, ProgramSummary, Resharded, Talks
from layoutproof.pallas.judge import scope

WORDS = {0: "proved", 1: "refuted", 2: "bad input", 3: "unknown"}
WORTH = 0.9
"""The largest part of an array's bytes that a candidate may take: one that saves less is not worth a compilation."""
_MOVES = {
    "relayout": "another layout: every element is rewritten",
    "space": "to another memory space, laid out as before",
    "same": "a second array just like the first",
    "free": "moves no byte",
    "unknown": "unknown",
}


def wasters(audit: Audit, top: int) -> list[Buffers]:
    """The shapes that waste most bytes, all results of that shape together."""
    worst = sorted(audit.buffers.values(), key=lambda b: (-b.array.waste * b.count, b.first.line))
    return [each for each in worst[:top] if each.array.waste]


def as_text(audit: Audit, top: int = 10, target: str | None = None) -> str:
    """One file's audit; errors stand last, where a terminal shows them."""
    lines = [
        *_head(audit),
        *_sizes(audit),
        *_entries(audit, top),
        *_wasted(audit, top, target),
        *_moved(audit, top),
        *_talked(audit, top),
        *_resharded(audit, top),
        *_cast(audit, top),
        *_rest(audit),
    ]
    found = audit.findings()
    scope = _scope(audit)
    last = f"{audit.file}: {_headline(audit, exit_code(found))}" + (f"; Mosaic kernels: {scope}" if scope else "")
    return "\n".join([*map(visible, lines), *_trouble(found, top), visible(last)])


def _headline(audit: Audit, code: int) -> str:
    """The questions with their answers, and the further findings, which prove no property of a program."""
    asked = []
    if audit.casts:
        count = sum(each.count for each in audit.casts.values())
        kept = sum(each.count for each in audit.casts.values() if each.cast.verdict is Verdict.PROVED)
        asked.append(f"{kept} of {count} bitcast{_s(count)} proved to keep every byte")
    if any(each.scheduled and each.whole for each in audit.programs):
        twice = f"{audit.contradicted} buffer{_s(audit.contradicted)} with two layouts"
        asked.append(twice if audit.contradicted else "no buffer with two layouts")
    if kernels := sum(audit.kernels.values()):
        asked.append(f"{audit.kernels['proved']} of {kernels} answers about Mosaic kernels proved")
    if compared := audit.compared:
        asked.append(f"{compared - len(audit.differences)} of {compared} of XLA's sizes are ours")
    said = ", ".join(asked) or "nothing asked"
    return f"{WORDS[code]}; {said}; {_besides(audit)}" if code else f"{said}; {_besides(audit)}"


def _besides(audit: Audit) -> str:
    """Padding, copies and collectives, as the last line has them."""
    if not audit.instructions:
        return "no instruction"
    _, unpadded, padded = sums(audit)["total"]
    found = [f"{size(padded - unpadded)} of {size(padded)} is padding" if padded > unpadded else "no padding"]
    moved = [each for each in audit.moves.values() if each.move.kind == "relayout"]
    copies = sum(each.count for each in moved)
    amount = sum(each.count * each.move.size for each in moved)
    found.append(f"{copies} relayout{_s(copies)} ({size(amount)}{_in_loops(moved)})" if moved else "no relayout")
    talks = [*audit.talks.values()]
    count = sum(each.count for each in talks)
    found.append(f"{count} collective{_s(count)}" + (f" ({_in_loops(talks)[2:]})" if _in_loops(talks) else ""))
    return ", ".join(found) if talks else ", ".join([*found[:2], "no collective"])


def _in_loops(of: Sequence[Moves | Talks]) -> str:
    """How many of them run in a loop, "" for none."""
    count = sum(each.count for each in of if each.runs.times not in (0, 1))
    return f", {count} in a loop" if count else ""


def _scope(audit: Audit) -> str:
    """The scope of the proofs of Mosaic kernels, "" where none is proved."""
    return scope(None) if audit.kernels["proved"] else ""


class FirstEntry(TypedDict):
    first: Annotated[str, Doc("the name of the first one")]
    line: int
    op_name: str
    source: str


class OftenEntry(TypedDict):
    times: Annotated[int | None, Doc("runs in one call; null where a loop's trip count is unknown")]
    sometimes: Annotated[bool, Doc("it stands in a branch, so that it may run less often")]
    why: Annotated[str, Doc("which loop's trip count is unknown")]


class ParameterEntry(FirstEntry):
    number: int
    shape: str
    unpadded: int
    padded: int
    sharding: str


class ProgramEntry(TypedDict):
    name: str
    line: int
    scheduled: bool
    partitions: int
    result: str
    whole: Annotated[bool, Doc("nothing is wrong with its text")]
    parameters: list[ParameterEntry]


class FixEntry(TypedDict, total=False):
    """Other layouts and shapes with their bytes; empty where there is none."""

    layout: str
    layout_bytes: int
    merged: str
    merged_bytes: int
    full: str
    smaller: str
    smaller_bytes: int


class WasterEntry(FirstEntry):
    shape: str
    count: int
    unpadded: int
    padded: int
    fix: Annotated[FixEntry, Doc("other layouts and shapes with their bytes; none of them was tried")]
    parameters: Annotated[list[int], Doc("of the entry, among them: their layout is the user's to choose")]
    results: Annotated[list[int], Doc("the same of results")]


class TalkEntry(FirstEntry, OftenEntry):
    kind: str
    does: Annotated[str, Doc("dimension, reduction and devices in words")]
    bytes: Annotated[int | None, Doc("the larger side, on each device, each time")]
    moved: Annotated[int | None, Doc("what each device has to receive at the least, each time")]
    count: int


class ReshardEntry(FirstEntry, OftenEntry):
    """Collectives that move data with nothing but moves between them."""

    collectives: Annotated[list[str], Doc("with nothing but moves between them, by name")]
    received: Annotated[int | None, Doc("bytes that a device receives through them")]
    needed: Annotated[int | None, Doc("bytes that the device with most must receive at least, for what is read")]
    unknown: Annotated[str, Doc("why that is unknown")]


_Ends = TypedDict("_Ends", {"from": str, "to": str})
_Reshape = TypedDict("_Reshape", {"is": Annotated[str, Doc("the reshape or transpose that it stands for")]})


class PairEntry(_Ends, FirstEntry):
    count: int
    reason: str
    counterexample: PointEntry | None
    decided_by: str


class MoveEntry(PairEntry, OftenEntry):
    opcode: str
    kind: Annotated[str, Exactly(Literal["relayout", "space", "same", "free", "unknown"])]
    bytes: int
    parameter: Annotated[int | None, Doc("the entry parameter that is copied")]


class BitcastEntry(PairEntry, _Reshape):
    """Bitcasts."""

    verdict: VerdictWord


class BytesEntry(TypedDict):
    unpadded: int
    padded: int


class ComparedEntry(TypedDict):
    compared: int
    allocated: int


class AuditEntry(TypedDict):
    file: str
    verdict: VerdictWord
    scope: str
    findings: list[FindingEntry]
    programs: list[ProgramEntry]
    computations: int
    instructions: int
    bytes: dict[Annotated[str, Exactly(Literal["parameter", "constant", "value", "total"])], BytesEntry]
    memory_spaces: dict[str, int]
    wasters: list[WasterEntry]
    copies: list[MoveEntry]
    collectives: list[TalkEntry]
    reshards: Annotated[list[ReshardEntry], Doc("where fewer bytes would do, and where that is unknown")]
    copies_in_fusions: dict[str, int]
    bitcasts: list[BitcastEntry]
    fusion_roots: dict[str, int]
    custom_calls: dict[str, int]
    mosaic_kernels: dict[str, int]
    sizes: Annotated[ComparedEntry, Doc("XLA's own sizes that were compared with ours, and bytes allocated")]


def as_json(audit: Audit, top: int = 10, target: str | None = None) -> AuditEntry:
    """The same for programs. Bytes are integers, lists are complete but for the wasters (`top`)."""
    found = audit.findings()
    return {
        "file": audit.file,
        "verdict": min((f.verdict for f in found), default=Verdict.PROVED).value,
        "scope": _scope(audit),
        "findings": list(map(as_dict, found)),
        "programs": [_program(p) for p in audit.programs],
        "computations": audit.computations,
        "instructions": audit.instructions,
        "bytes": {name: {"unpadded": u, "padded": p} for name, (_, u, p) in sums(audit).items()},
        "memory_spaces": {str(space): size for space, size in sorted(spaces(audit).items())},
        "wasters": [_waster(b, target) for b in wasters(audit, top)],
        "copies": [_move(m) for m in _by_size(audit)],
        "collectives": [_talk(t) for t in _by_bytes(audit)],
        "reshards": [_reshard_json(r) for r in _by_spare(audit)],
        "copies_in_fusions": dict(audit.fused_moves),
        "bitcasts": [_cast_json(cast) for cast in audit.casts.values()],
        "fusion_roots": dict(audit.roots),
        "custom_calls": dict(audit.targets),
        "mosaic_kernels": dict(audit.kernels),
        "sizes": {"compared": audit.compared, "allocated": audit.allocated},
    }


def sums(audit: Audit) -> dict[str, tuple[int, int, int]]:
    """(how many, unpadded bytes, padded bytes) of parameters, constants, values, and all together."""
    found = {"parameter": (0, 0, 0), "constant": (0, 0, 0), "value": (0, 0, 0), "total": (0, 0, 0)}
    for (role, _), b in audit.buffers.items():
        for name in (role, "total"):
            n, unpadded, padded = found[name]
            found[name] = (n + b.count, unpadded + b.array.unpadded * b.count, padded + b.array.padded * b.count)
    return found


def spaces(audit: Audit) -> Counter[int]:
    """Padded bytes by memory space."""
    found: Counter[int] = Counter()
    for b in audit.buffers.values():
        found[b.array.space] += b.array.padded * b.count
    return found


def _head(audit: Audit) -> Iterator[str]:
    names = ", ".join(shorten(p.name, 40) for p in audit.programs[:3])
    more = f" and {len(audit.programs) - 3} more" if len(audit.programs) > 3 else ""
    if audit.programs:
        counts = f"{audit.computations} computations, {audit.instructions} instructions"
        yield f"{audit.file}: {len(audit.programs)} program{_s(len(audit.programs))} ({names}{more}), {counts}"
    else:
        yield f"{audit.file}: no program"
    if audit.compared or audit.differences:
        same = audit.compared - len(audit.differences)
        yield f"  XLA's own sizes: {same} of {audit.compared} are ours; {size(audit.allocated)} allocated"


def _sizes(audit: Audit) -> Iterator[str]:
    if not audit.buffers:
        return
    yield "  bytes, over all arrays ever made (they share memory, so this is no peak)"
    for name, (count, unpadded, padded) in sums(audit).items():
        if count:
            times = f"{padded / unpadded:.2f}x" if unpadded else "-"
            yield f"    {name:<10}{count:>8}  {size(unpadded):>10} -> {size(padded):>10} padded  {times:>7}"
    found = spaces(audit)
    if len(found) > 1:
        yield "    by memory space: " + ", ".join(f"S({s}) {size(n)}" for s, n in sorted(found.items()))


def _entries(audit: Audit, top: int) -> Iterator[str]:
    for program in audit.programs[:1]:
        yield f"  entry of {program.name}" + (f", one of {program.partitions} partitions" * (program.partitions > 1))
        for p in program.parameters[:top]:
            note = f"  {p.sharding}" if p.sharding and p.sharding != "{replicated}" else ""
            yield f"    parameter {p.number:<4} {shorten(p.shape, 70)}  {size(p.padded)}  {p.location.op_name}{note}"
        if len(program.parameters) > top:
            yield f"    .. {len(program.parameters) - top} more; --json has them"
        yield f"    result         {shorten(program.result, 90)}"
    if len(audit.programs) > 1:
        yield f"  entries of {len(audit.programs) - 1} more programs: --json has them"


def _wasted(audit: Audit, top: int, target: str | None) -> Iterator[str]:
    worst = wasters(audit, top)
    if not worst:
        return
    rule = target or "v4 and later"
    yield f"  top wasters, with what you could change, by the tiles of {rule}"
    for b in worst:
        array = b.array
        times = f"{array.padded / array.unpadded:.1f}x" if array.unpadded else "all"
        yield f"    {size(array.waste * b.count):>10} wasted, {times}: {b.count} of {array.text}"
        yield f"               first {_where(b.first)}"
        yield from (f"               {line}" for line in _control(audit, b, target))


def _control(audit: Audit, b: Buffers, target: str | None) -> Iterator[str]:
    """Whose choice an array's layout is, and what would take fewer bytes where it is the user's."""
    constant = audit.buffers.get(("constant", b.array.text)) is b
    yours = [_parameter_name(audit, number) for number in b.given] + [f"result {number}" for number in b.results]
    rest = b.count - len(yours)
    if not yours:
        kind = "constant" if constant else "temporary"
        many = {"constant": "constants", "temporary": "temporaries"}
        what, whose = (f"a {kind}", "its") if b.count == 1 else (many[kind], "the first one's")
        shape = f"; {whose} shape is that of {b.first.source}"
        yield f"{what}, laid out by the compiler{shape if b.first.source else ''}"
        return
    others = f"; {rest} more {'is' if rest == 1 else 'are'} the compiler's" if rest > 0 else ""
    yield f"yours: {shorten(', '.join(yours), 120)}{others}"
    found, own = _fix(b, target), b.array.padded
    if found is None:
        return
    if found.layout and found.layout_bytes <= own * WORTH:
        order = found.layout[found.layout.index("{") :]
        yield f"candidate: laid out {order} it would save {own - found.layout_bytes} bytes; {_untried(audit)}"
    if found.merged and found.merged_bytes <= own * WORTH and b.given:
        yield f"candidate: held as {found.merged} it would save {own - found.merged_bytes} bytes; {_untried(audit)}"


def _untried(audit: Audit) -> str:
    """That a candidate was not compiled, and what would: the text of a compiled program cannot be."""
    compiled = any(each.scheduled for each in audit.programs)
    return "not tried: layoutproof compile --try" if compiled else "not tried: add --try"


def _parameter_name(audit: Audit, number: int) -> str:
    """A parameter of the entry with the name that the user's program gives it."""
    given = (p for program in audit.programs for p in program.parameters if p.number == number)
    name = next((p.location.op_name for p in given), "")
    return f"parameter {number}" + (f" {name}" if name else "")


def _moved(audit: Audit, top: int) -> Iterator[str]:
    kinds = Counter[str]()
    for m in audit.moves.values():
        kinds[m.move.kind] += m.count
    if kinds:
        yield "  copies, transposes and reshapes: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
    moved = [m for m in _by_size(audit) if m.move.kind in ("relayout", "same", "unknown")]
    for m in moved[:top]:
        yield f"    {size(m.move.size * m.count):>10} {m.count} {m.opcode} {m.source.text} -> {m.target.text}"
        of = f"entry parameter {m.parameter}, at every call: " if m.parameter >= 0 else ""
        yield f"               {of}{_MOVES[m.move.kind]}{_runs(m.runs)}; first {_where(m.first)}"
        if m.parameter >= 0 and m.move.kind == "relayout" and m.opcode == "copy" and m.target.layout is not None:
            name = _parameter_name(audit, m.parameter)
            order = ",".join(map(str, m.target.layout.minor_to_major))
            what = f"{name} passed as {{{order}}} would save {m.move.size} bytes a call if the rest stayed as it is"
            yield f"               candidate: {what}; {_untried(audit)}"
    if len(moved) > top:
        yield f"    .. {len(moved) - top} more; --json has them"


def _talked(audit: Audit, top: int) -> Iterator[str]:
    """The collectives, the most bytes of all runs first; those in loops say so."""
    talks = _by_bytes(audit)
    if not talks:
        return
    kinds = Counter[str]()
    for t in talks:
        kinds[t.kind] += t.count
    yield "  collectives: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    for t in talks[:top]:
        amount = "unknown" if t.bytes is None else size(t.bytes * t.count)
        yield f"    {amount:>10} {t.count} {shorten(t.does, 120)}"
        received = "" if t.moved is None else f"each device receives {size(t.moved)} or more each time"
        yield f"               {received}{_runs(t.runs) if received else _runs(t.runs)[2:]}; first {_where(t.first)}"
    if len(talks) > top:
        yield f"    .. {len(talks) - top} more; --json has them"


def _resharded(audit: Audit, top: int) -> Iterator[str]:
    """Where a device receives more than is needed, the most too many bytes of all runs first; then what is unknown."""
    found = _by_spare(audit)
    if not found:
        return
    unknown = sum(r.what.needed is None for r in found)
    yield "  reshards: " + ", ".join(
        f"{n} {what}"
        for n, what in ((len(found) - unknown, "receive more than is needed"), (unknown, "of unknown need"))
        if n
    )
    for r in found[:top]:
        received, needed = ("an unknown number of" if n is None else str(n) for n in (r.what.received, r.what.needed))
        names = shorten(", ".join(r.what.collectives), 120)
        if r.what.needed is None:
            yield f"    {names}: each device receives {received} bytes; what would do is unknown: {r.what.why}"
        else:
            yield f"    {names}: each device receives {received} bytes, {needed} would do"
        yield f"               {f'{_runs(r.runs)[2:]}; ' if _runs(r.runs) else ''}first {_where(r.first)}"
    if len(found) > top:
        yield f"    .. {len(found) - top} more; --json has them"


def _runs(runs: Runs) -> str:
    """How often something runs, where that is not once a call."""
    if runs.times in (0, 1) and not runs.sometimes:
        return ""
    if runs.times is None:
        return f", in a loop of unknown trips ({runs.why})"
    if runs.times == 1:
        return ", in a branch"
    return f", {runs_in_words(runs)} a call: in a loop" + (" and a branch" if runs.sometimes else "")


def _cast(audit: Audit, top: int) -> Iterator[str]:
    if not audit.casts:
        return
    how: Counter[str] = Counter()
    for c in audit.casts.values():
        how[c.cast.how.split(" (")[0] or c.cast.verdict.value] += c.count
    yield "  bitcasts: " + ", ".join(f"{n} {kind}" for kind, n in how.most_common())
    reordered = [c for c in audit.casts.values() if c.cast.reorders]
    for c in reordered[:top]:
        yield f"    {c.source.text} -> {c.target.text}: no reshape, yet no byte is lost"
        yield f"               {c.cast.reason}; first {_where(c.first)}"
    if len(reordered) > top:
        yield f"    .. {len(reordered) - top} more; --json has them"


def _rest(audit: Audit) -> Iterator[str]:
    tables = {"fusion roots": audit.roots, "custom calls": audit.targets, "Mosaic kernels": audit.kernels}
    for what, counts in tables.items():
        if counts:
            yield f"  {what}: " + ", ".join(f"{n} {shorten(name, 50)}" for name, n in counts.most_common(12))


def _trouble(found: Sequence[Finding], top: int) -> Iterator[str]:
    """The findings, of each kind so many."""
    shown: Counter[tuple[str, str]] = Counter()
    for finding in found:
        kind = (word(finding), finding.question)
        shown[kind] += 1
        if shown[kind] <= top:
            yield f"\n{text(finding)}"
    for (said, question), count in shown.items():
        if count > top:
            yield f"\n{said:<8} {question}  {count - top} more; --json has them"
    if found:
        yield ""


def _by_size(audit: Audit) -> list[Moves]:
    return sorted(audit.moves.values(), key=lambda m: (-m.move.size * m.count * (m.runs.times or 1), m.first.line))


def _by_bytes(audit: Audit) -> list[Talks]:
    """Unknown bytes first: they may be the most."""

    def weight(t: Talks) -> tuple[bool, int, int]:
        return (t.bytes is not None, -(t.bytes or 0) * t.count * (t.runs.times or 1), t.first.line)

    return sorted(audit.talks.values(), key=weight)


def _by_spare(audit: Audit) -> list[Resharded]:
    def weight(r: Resharded) -> tuple[bool, int, int]:
        spare = (r.what.received or 0) - (r.what.needed or 0)
        return (r.what.needed is None, -spare * (r.runs.times or 1), r.first.line)

    return sorted(audit.reshards, key=weight)


def _fix(b: Buffers, target: str | None) -> SmallerForms | None:
    return None if b.array.layout is None else fix(b.array.layout, target or DEFAULT_TARGET)


def _where(location: Location) -> str:
    rest = " ".join(text for text in (location.op_name, location.source) if text)
    return f"{location.name} (line {location.line}{', ' + shorten(rest, 80) if rest else ''})"


def _location(location: Location) -> FirstEntry:
    return {"first": location.name, "line": location.line, "op_name": location.op_name, "source": location.source}


def _program(program: ProgramSummary) -> ProgramEntry:
    parameters: list[ParameterEntry] = [
        {"number": p.number, "shape": p.shape, "unpadded": p.unpadded, "padded": p.padded, "sharding": p.sharding,
         **_location(p.location)}
        for p in program.parameters
    ]  # fmt: skip
    return {
        "name": program.name, "line": program.line, "scheduled": program.scheduled, "partitions": program.partitions,
        "result": program.result, "whole": program.whole, "parameters": parameters,
    }  # fmt: skip


def _waster(b: Buffers, target: str | None) -> WasterEntry:
    found, array = _fix(b, target), b.array
    fix: FixEntry = {} if found is None else {
        "layout": found.layout, "layout_bytes": found.layout_bytes, "merged": found.merged,
        "merged_bytes": found.merged_bytes, "full": found.full, "smaller": found.smaller,
        "smaller_bytes": found.smaller_bytes,
    }  # fmt: skip
    return {
        "shape": array.text,
        "count": b.count,
        "unpadded": array.unpadded,
        "padded": array.padded,
        "fix": fix,
        "parameters": list(b.given),
        "results": list(b.results),
        **_location(b.first),
    }


def _cast_json(of: Casts) -> BitcastEntry:
    cast = of.cast
    return {
        "from": of.source.text,
        "to": of.target.text,
        "is": cast.how,
        "count": of.count,
        "verdict": cast.verdict.value,
        "reason": cast.reason,
        "counterexample": plain(cast.element),
        "decided_by": cast.decided_by,
        **_location(of.first),
    }


def _move(m: Moves) -> MoveEntry:
    return {
        "opcode": m.opcode,
        "from": m.source.text,
        "to": m.target.text,
        "kind": m.move.kind,
        "count": m.count,
        "bytes": m.move.size,
        "parameter": None if m.parameter < 0 else m.parameter,
        **_runs_json(m.runs),
        "reason": m.move.reason,
        "counterexample": plain(m.move.element),
        "decided_by": m.move.decided_by,
        **_location(m.first),
    }


def _runs_json(runs: Runs) -> OftenEntry:
    return {"times": runs.times, "sometimes": runs.sometimes, "why": runs.why}


def _talk(t: Talks) -> TalkEntry:
    return {
        "kind": t.kind, "does": t.does, "bytes": t.bytes, "moved": t.moved, "count": t.count,
        **_runs_json(t.runs), **_location(t.first),
    }  # fmt: skip


def _reshard_json(r: Resharded) -> ReshardEntry:
    what = r.what
    return {
        "collectives": list(what.collectives), "received": what.received, "needed": what.needed,
        **_runs_json(r.runs), "unknown": what.why, **_location(r.first),
    }  # fmt: skip


def _s(count: int) -> str:
    return "" if count == 1 else "s"
