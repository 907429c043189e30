"""Changes between the collectives of two programs.

A collective is the same one if it does the same with the same shapes. The rest are matched by the user's operation:
over other devices, along another dimension, with another reduction one is *regrouped*, otherwise the bytes are
compared that it moves in a run, as far as it is known how often it runs. Unmatched ones are new or gone. New ones that
move no more than gone ones did, reductions over the same devices, stand *instead* of these.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from layoutproof.core.errors import shorten
from layoutproof.core.finding import Finding, unknown
from layoutproof.core.message import extended
from layoutproof.gating import problems
from layoutproof.gating.compiled_program import Exchange, bytes_in_words, often_in_words, title, total
from layoutproof.gating.matching import Match, Round, match


def exchanges(before: Sequence[Exchange], after: Sequence[Exchange]) -> list[Finding]:
    """The findings between the collectives of two programs."""
    rounds: list[Round[Exchange]] = [
        Round(lambda e: (e.what, e.operands, e.results, _runs(e), e.base, e.op_name), alike=True),
        Round(lambda e: (e.what, e.operands, e.results, _runs(e)), alike=True),
        Round(lambda e: (e.what, e.operands, e.results)),
        Round(lambda e: (e.what.kind, e.op_name, e.operands) if e.op_name else None),
        Round(lambda e: (e.what.kind, e.operands, e.results), match_heuristic="by its shapes"),
        Round(lambda e: (e.what.kind, e.op_name) if e.op_name else None),
        Round(lambda e: None if e.size is None else (e.what, e.size, _runs(e)), alike=True),
        Round(lambda e: e.what, match_heuristic="by what it does"),
    ]
    found, new, gone = [], list[Exchange](), list[Exchange]()
    for pair in match(before, after, rounds):
        if pair.old is None and pair.new is not None:
            new.append(pair.new)
        elif pair.new is None and pair.old is not None:
            gone.append(pair.old)
        else:
            found += _changed(pair)
    return [*found, *_come_and_gone(new, gone)]


def _runs(each: Exchange) -> Hashable:
    return each.depth, each.often, each.alone


def _changed(pair: Match[Exchange]) -> list[Finding]:
    old, new = pair.old, pair.new
    assert old is not None
    assert new is not None
    if old.what != new.what or (old.alone and new.alone is False):
        why = problems.NOW_BEFORE(_words(new), _words(old))
        if old.what == new.what:
            why = problems.CHANNEL_TAKEN()
        elif old.axes != new.axes and old.axes is not None and new.axes is not None:
            why = problems.NOW_BEFORE(_over(new), _over(old))
        return [_finding("regrouped", new, why, old, {"bytes": new.size or 0}, pair.match_heuristic)]
    was, now = (old.size, new.size) if old.often == new.often else (total(old), total(new))
    if was is None or now is None:
        if (old.operands, old.results, _runs(old)) == (new.operands, new.results, _runs(new)):
            return []
        why = problems.MOVES(_moved(new), _moved(old))
        return [
            unknown(
                _subject(new),
                why,
                line=new.line,
                match_heuristic=pair.match_heuristic,
                before=_words(old),
                after=_words(new),
            )
        ]
    figures = {"bytes": now - was, "bytes_before": was, "bytes_after": now}
    if old.operands == new.operands and old.results != new.results:
        why = problems.GIVES(", ".join(new.results), ", ".join(old.results))
        return [_finding("reshaped_result", new, why, old, figures, pair.match_heuristic)]
    if (new.depth or 0) > (old.depth or 0):
        why = problems.LOOPS_CHANGED(now, _loops(new.depth), _loops(old.depth))
        return [_finding("grown_collective", new, why, old, {"bytes": now}, pair.match_heuristic)]
    if now == was and (new.depth != old.depth or new.alone is not False):
        return []
    kind = "grown_collective" if now > was else "shrunk_collective"
    return [_finding(kind, new, f"{was} bytes before, {now} after", old, figures, pair.match_heuristic)]


def _come_and_gone(new: Sequence[Exchange], gone: Sequence[Exchange]) -> list[Finding]:
    instead = _instead(new, gone)
    found = []
    why: str
    for each in new:
        why = problems.MOVED_NEWLY(bytes_in_words(each.size), _in_loops(each))
        if instead:
            why = problems.MOVED_INSTEAD(bytes_in_words(total(each)), sum(total(e) or 0 for e in gone))
        kind = "exchanged_collective" if instead else "new_collective"
        found.append(_finding(kind, each, why, None, {"bytes": each.size or 0}))
    for each in gone:
        kind, why = "vanished_collective", problems.MOVED_NO_LONGER(bytes_in_words(each.size))
        if not instead and _unseen(each) and not any(_alike(each, other) for other in new):
            kind = "lost_exchange"
            why = extended(why, ", and the result has the same shape with it and without: is it still right?")
        sides: dict[str, Any] = {"before": _words(each), "figures": {"bytes": each.size or 0}}
        found.append(Finding(kind, _subject(each), why, **sides))
    return found


def _instead(new: Sequence[Exchange], gone: Sequence[Exchange]) -> bool:
    """Whether the new ones replace the gone ones: no more traffic, and sums over as many devices."""
    moved = [_traffic(each) for each in (*new, *gone)]
    if not new or not gone or None in moved:
        return False
    if sum(size or 0 for size in moved[: len(new)]) > sum(size or 0 for size in moved[len(new) :]):
        return False
    if max(e.depth or 0 for e in new) > max(e.depth or 0 for e in gone):
        return False
    sums = [{_summed(e) for e in side if e.what.reduces} for side in (new, gone)]
    return sums[0] == sums[1]


def _summed(each: Exchange) -> Hashable:
    groups = sorted(",".join(sorted(group.split(","))) for group in each.what.over.strip("{}").split("},{"))
    return (tuple(groups), each.what.reduction)


def _alike(old: Exchange, new: Exchange) -> bool:
    """Whether a new collective does what a gone one did, or more."""
    return old.what.reduces == new.what.reduces and (not old.what.reduces or _summed(old) == _summed(new))


def _traffic(each: Exchange) -> int | None:
    """Bytes in and out of a device, by and large: an all-reduce is a reduce-scatter and an all-gather."""
    moved = total(each)
    return None if moved is None else moved * (2 if each.what.kind == "all-reduce" else 1)


def _unseen(each: Exchange) -> bool:
    """Whether the program's shapes are the same without it: a sum, or pieces that change places."""
    return each.what.reduces or each.operands == each.results


def _finding(
    kind: str, new: Exchange, why: str, old: Exchange | None, figures: Mapping[str, int], match_heuristic: str = ""
) -> Finding:
    more: dict[str, Any] = {"line": new.line, "figures": figures, "match_heuristic": match_heuristic}
    return Finding(kind, _subject(new), why, before="" if old is None else _words(old), after=_words(new), **more)


def _subject(each: Exchange) -> str:
    return f"{each.what.kind} {each.place or title(each.base, each.op_name)}"


def _words(each: Exchange) -> str:
    return f"{shorten(str(each.what), 200)} of {', '.join(each.operands)} to {', '.join(each.results)}"


def _over(each: Exchange) -> str:
    return f"over mesh axes {', '.join(each.axes or ()) or 'none'}"


def _moved(each: Exchange) -> str:
    return bytes_in_words(each.size) + often_in_words(each.often)


def _loops(depth: int | None) -> str:
    return f"{depth} loop{'' if depth == 1 else 's'}" if depth else "no loop"


def _in_loops(each: Exchange) -> str:
    if each.often is not None:
        return often_in_words(each.often) + ("" if each.axes is None else f", {_over(each)}")
    return f", in each turn of {_loops(each.depth)}" if each.depth else ""
