"""The first value of a program that is not as it was, and the line of the source that changed it.

Both programs are rows, one for each value, in the order of the program (`programs.stated`, or `text_rows` of a compiled
text). Rows are matched by what they do and in their order, never by names or numbers of lines. What is left over, says
something else, or takes another value is an edit of the source; what gives another type of the same operands is one
too. Of several edits the nearest to a finding in the data flow that can be its cause is named, and nothing where
none can.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from layoutproof.core.document import JsonObject
from layoutproof.core.errors import shorten
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.gating import problems
from layoutproof.hlotext.texts import logical

MOST_ROWS = 6_000
"""Of each side; of larger programs no line is named, which their hunks tell too (`gate --blame`)."""
_SHARDS = frozenset(
    (
        *("sharding_constraint", "shard_map", "reshard", "mesh_cast", "device_put", "psum", "psum2", "psum_invariant"),
        *("all_gather", "all_gather_invariant", "reduce_scatter", "ppermute", "all_to_all", "pbroadcast"),
        *("pmax", "pmin", "custom_partitioning", "layout_constraint"),
    )
)
"""Primitives that say where values are."""
_PLACES = frozenset(
    (
        *(
            "transpose",
            "reshape",
            "dot_general",
            "conv_general_dilated",
            "concatenate",
            "gather",
            "scatter",
            "scatter-add",
        ),
        *(
            "dynamic_slice",
            "dynamic_update_slice",
            "slice",
            "squeeze",
            "rev",
            "sort",
            "cumsum",
            "pad",
            "split",
            "top_k",
        ),
        *("pallas_call", "reduce_sum", "reduce_max", "argmax", "broadcast_in_dim", "scan", "while", "iota", "fft"),
    )
)
"""Primitives that say which elements are taken, or in which order."""
_KEEPS = frozenset(("remat2", "checkpoint", "remat", "optimization_barrier", "custom_vjp_call"))
"""Primitives that say what is kept, and how long."""
EXCHANGES = frozenset(("new_collective", "grown_collective", "exchanged_collective", "regrouped"))
COPIES = frozenset(("new_copy", "relaid_parameter", "abi", "moved", "grew", "memory_space", "resharded", "replicated"))
GROWTH = frozenset(("peak_memory", "temporaries", "vmem", "estimated_cycles", "lost_donation"))
CAUSED = EXCHANGES | COPIES | GROWTH
"""Classes of collectives, copies, layouts and growth, which a change of the source makes."""
SILENT = "nothing that is left"
"""`op` of a frame of a compiled text without instructions."""
PARAMETER = "parameter"
"""`said` of a parameter of a compiled text."""


_INDEX = re.compile(r"[su]32\[\d*\]")
"""Numbers by which a compiler finds a device's part of an array."""


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One value: what it is by (`op`, `said`), of which others (`given`), and `types` of what it gives.

    places: `file:line` of the frames that made it, from the innermost outwards.  key: of a compiled text, what the row
    is matched by; "" elsewhere, where it is what the row does.
    """

    op: str
    places: tuple[str, ...]
    said: str
    given: tuple[int, ...]
    gives: tuple[int | None, ...]
    types: tuple[str, ...]
    key: str = ""


def rows_of(given: Iterable[JsonObject]) -> list[SourceRow]:
    """Rows from plain data, as of `programs.stated`."""
    return [
        SourceRow(r["op"], tuple(r["places"]), r["said"], tuple(r["given"]), tuple(r["gives"]), tuple(r["types"]))
        for r in given
    ]


Sources = Mapping[str, Sequence[str]]
"""The lines of files, by their names in `SourceRow.places`."""


@dataclass(frozen=True, slots=True)
class SourceEdit:
    """A row that is not as it was. old, new: numbers of rows, None where a side has none.  own: it does something else
    itself; else it has another type of the same operands.  node: in the data flow of both."""

    old: int | None
    new: int | None
    own: bool
    node: int


@dataclass(frozen=True, slots=True)
class Changed:
    """What differs between two lists of rows.

    edits: in the order of the new program, and where they went of the old.  follows: those among them whose operands
    changed too.  links: of both programs together, by node.  at: the nodes that have a line of the new source.
    sources: of both.
    """

    before: Sequence[SourceRow]
    after: Sequence[SourceRow]
    edits: tuple[SourceEdit, ...]
    follows: frozenset[int]
    links: Mapping[int, Collection[int]]
    at: Mapping[str, Collection[int]]
    sources: tuple[Sources, Sources]


def changed(
    before: Sequence[SourceRow], after: Sequence[SourceRow], sources: tuple[Sources, Sources] = ({}, {})
) -> Changed | None:
    """The edits between two programs; None where one has no rows, or too many.

    sources: the lines of the files of both, where they are at hand: then a line is named that is not as it was.
    """
    if not before or not after or max(len(before), len(after)) > MOST_ROWS:
        return None
    pairs = _pairs(before, after)
    olds = dict(pairs)
    news = {other: one for one, other in pairs}
    # nodes are rows of the new program, and behind them the rows that only the old one has
    node = {k: olds[k] if k in olds else len(after) + k for k in range(len(before))}
    makers = _makers(before), _makers(after)
    edits: list[SourceEdit] = []
    for k, row in enumerate(after):
        if k not in news:
            edits.append(SourceEdit(None, k, True, k))
            continue
        old = before[news[k]]
        if not row.key and ((old.op, old.said) != (row.op, row.said) or _rewired(old, row, makers, olds, news)):
            edits.append(SourceEdit(news[k], k, True, k))
        elif old.types != row.types:
            edits.append(SourceEdit(news[k], k, False, k))
    edits += [SourceEdit(k, None, True, node[k]) for k in range(len(before)) if k not in olds]
    links: dict[int, set[int]] = defaultdict(set)
    above: dict[int, set[int]] = defaultdict(set)
    for side, rows, name in ((0, before, node), (1, after, {k: k for k in range(len(after))})):
        for k, row in enumerate(rows):
            for value in row.given:
                if (maker := makers[side].get(value)) is not None:
                    one, other = name[maker], name[k]
                    links[one].add(other)
                    links[other].add(one)
                    if side == 1:
                        above[other].add(one)
    at: dict[str, set[int]] = defaultdict(set)
    for k, row in enumerate(after):
        for place in row.places:
            at[place].add(k)
    nodes = {each.node for each in edits}
    follows = frozenset(each.node for each in edits if not each.own and above[each.node] & nodes)
    return Changed(before, after, tuple(edits), follows, links, at, sources)


def _pairs(before: Sequence[SourceRow], after: Sequence[SourceRow]) -> list[tuple[int, int]]:
    """Rows that are one, by what they do and in their order; then of the rest by the operation alone."""
    found: list[tuple[int, int]] = []
    olds, news = ([r.key or (r.op, r.said) for r in side] for side in (before, after))
    for kind, a, b, c, d in SequenceMatcher(None, olds, news, autojunk=False).get_opcodes():
        if kind == "equal":
            found += zip(range(a, b), range(c, d), strict=True)
        elif kind == "replace":
            one, other = ([r.op for r in side] for side in (before[a:b], after[c:d]))
            for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks():
                found += [(a + block.a + k, c + block.b + k) for k in range(block.size)]
    return found


def _makers(rows: Sequence[SourceRow]) -> dict[int, int]:
    return {value: k for k, row in enumerate(rows) for value in row.gives if value is not None}


def _rewired(
    old: SourceRow, new: SourceRow, makers: tuple[Mapping[int, int], Mapping[int, int]],
    olds: Mapping[int, int], news: Mapping[int, int],
) -> bool:  # fmt: skip
    """Whether a row takes another value, of which both programs have the one and the other."""
    if len(old.given) != len(new.given):
        # what one has more comes from a row that the other has not, or is no row's
        return False
    for one, other in zip(old.given, new.given, strict=True):
        then, now = makers[0].get(one), makers[1].get(other)
        if then is None or now is None:
            if then is not now and (then is None or then in olds) and (now is None or now in news):
                return True
            continue
        if then in olds and now in news and olds[then] != now:
            return True
    return False


def cause(changes: Changed, question: str, places: Sequence[str]) -> str:
    """The line that makes a finding: `model.py:7: ..`, "" where none is convincing.

    question: the class of the finding.  places: of the source, of the instruction that it is about; () where none.
    """
    near = _distances(changes, places)
    edits = [e for e in changes.edits if not places or not near or e.node in near]
    entered = next(
        (e for e in edits if None not in (e.old, e.new) and changes.after[e.new or 0].said == PARAMETER), None
    )
    if entered is not None:
        return _of_parameter(changes, entered)
    of_text = bool(changes.after[0].key)
    if of_text and question in GROWTH:
        # what is kept longer is no value of a text that differs
        return ""
    ranked = sorted(
        (weight, each.node in changes.follows, near.get(each.node, 1 << 30), k)
        for k, each in enumerate(edits)
        if (weight := _weight(question, changes, each)) < _WEAK or not of_text
    )
    return _said(changes, edits[ranked[0][-1]]) if ranked else ""


def _of_parameter(changes: Changed, edit: SourceEdit) -> str:
    """A parameter of a compiled text that is laid out or cut otherwise: a text does not say which line asks for it."""
    assert edit.old is not None
    assert edit.new is not None
    new = changes.after[edit.new]
    now, before = (", ".join(row.types) for row in (new, changes.before[edit.old]))
    return problems.PARAMETER_CHANGED(new.op, shorten(now, 120), shorten(before, 120))


def _distances(changes: Changed, places: Sequence[str]) -> dict[int, int]:
    """How far each row is from those of a line, through values in either direction."""
    start = next((changes.at[place] for place in places if place in changes.at), ())
    found = dict.fromkeys(start, 0)
    todo = deque(start)
    while todo:
        here = todo.popleft()
        for each in changes.links.get(here, ()):
            if each not in found:
                found[each] = found[here] + 1
                todo.append(each)
    return found


_WEAK = 4
"""The weight of what is no cause where a compiled text alone is known."""


def _weight(question: str, changes: Changed, edit: SourceEdit) -> int:
    """How far an edit is from being a cause of a class of findings: 0 is the nearest."""
    row = changes.after[edit.new] if edit.new is not None else changes.before[edit.old or 0]
    if row.op == SILENT and not edit.own:
        # a constraint of which both texts have an instruction
        return 0 if all(side.types for side in (changes.before[edit.old or 0], row)) else _WEAK
    if not edit.own:
        return _WEAK if question in EXCHANGES and not _is_cut_otherwise(changes, edit) else 3
    if row.op == SILENT:
        # a frame comes and goes with what the compiler makes of those around it, unless it had an instruction
        return 0 if row.types and edit.new is None else _WEAK
    if question in GROWTH:
        first, second = (_KEEPS, _SHARDS | _PLACES | {"convert_element_type"})
    elif question in EXCHANGES:
        first, second = _SHARDS, _PLACES
    else:
        first, second = _SHARDS | _PLACES, frozenset({"convert_element_type", "return"})
    return 0 if row.op in first else 1 if row.op in second else 2


def _is_cut_otherwise(changes: Changed, edit: SourceEdit) -> bool:
    """Whether arrays have other extents; another layout of the same ones is no other sharding."""
    assert edit.old is not None
    assert edit.new is not None
    sides = [
        {logical(t) for t in row.types if not _INDEX.match(t)}
        for row in (changes.before[edit.old], changes.after[edit.new])
    ]
    return sides[0] != sides[1]


def _said(changes: Changed, edit: SourceEdit) -> str:
    old = None if edit.old is None else changes.before[edit.old]
    new = None if edit.new is None else changes.after[edit.new]
    row = new or old
    assert row is not None
    if row.op == "return":
        return ""
    place = _line(changes, edit)
    if not place:
        return ""
    here, there = changes.sources if edit.new is None else changes.sources[::-1]
    said = _edited(old, new, changes, edit, place)
    # a row that says something else while its line is as it was has it from a definition
    silent = not said or not edit.own or (old is not None and new is not None and old.said == new.said)
    definition = "" if silent or _is_fresh(place, here, there) else definition_behind(place, here, there)
    return problems.DEFINITION_CHANGED(definition, said) if definition else said


def definition_behind(place: str, here: Sources, there: Sources) -> str:
    """The line of a definition that a statement uses, and of which the other source has another text; "" for none.

    A definition is a name that one statement of the file gives a value, or a function; of one that uses others, theirs
    are looked at. Of a function of which several lines differ none is named.

    Args:
        place: `file:line`, of the statement.
        here: The lines of the files that have it.
        there: The lines of the other source.

    Returns:
        The line of the definition and its name, "" where there is none, or where the file is no Python.

    >>> was, now = ([f"S = P({axis})", "T = S, S", "y = put(x, T)"] for axis in ("'x'", "'y'"))
    >>> definition_behind("m.py:3", {"m.py": now}, {"m.py": was})
    'm.py:1: S'
    """
    file, _, line = place.rpartition(":")
    try:
        tree = ast.parse("\n".join(here.get(file, ())))
    except (SyntaxError, ValueError):
        return ""
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    around = [s for s in statements if s.lineno <= int(line) <= (s.end_lineno or s.lineno)]
    if not around:
        return ""
    given = _definitions(statements)
    todo, seen = deque([min(around, key=lambda s: (s.end_lineno or s.lineno) - s.lineno)]), set[str]()
    while todo:
        used = {node.id for node in ast.walk(todo.popleft()) if isinstance(node, ast.Name)}
        for name in sorted(used - seen):
            seen.add(name)
            if len(given[name]) != 1:
                continue
            (statement,) = given[name]
            begins = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
            at = range(begins, (statement.end_lineno or statement.lineno) + 1)
            fresh = [k for k in at if _is_fresh(f"{file}:{k}", here, there)]
            if fresh and (len(fresh) == 1 or not isinstance(statement, ast.FunctionDef)):
                return f"{file}:{fresh[0]}: {name}"
            todo.append(statement)
    return ""


def _definitions(statements: Iterable[ast.stmt]) -> defaultdict[str, list[ast.stmt]]:
    """The statements that give a name its value, by name."""
    given: defaultdict[str, list[ast.stmt]] = defaultdict(list)
    for statement in statements:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.FunctionDef):
            given[statement.name].append(statement)
        elif isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
            targets = [statement.target]
        for target in targets:
            for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(each, ast.Name):
                    given[each.id].append(statement)
    return given


def _edited(old: SourceRow | None, new: SourceRow | None, changes: Changed, edit: SourceEdit, place: str) -> str:
    """What a row says now, and said before, at its place."""
    row = new or old
    assert row is not None
    if new is None and row.op == SILENT:
        return problems.OLD_LINE_GONE(place)
    if row.op == SILENT and old is None:
        return problems.LINE_WITHOUT_TRACE(place)
    if old is None:
        return problems.OPERATION_NEW(place, row.op, _words(row.said))
    if new is None:
        return problems.OPERATION_GONE(place, row.op, _words(row.said))
    if old.said != new.said:
        return problems.OPERATION_SAYS(place, row.op, shorten(new.said, 120), shorten(old.said, 120))
    if old.types != new.types:
        gives = f"gives {shorten(', '.join(new.types), 120)} now, {shorten(', '.join(old.types), 120)} before"
        if asks := _silent_after(changes, edit):
            return problems.NOTHING_LEFT(asks, row.op, place, gives)
        # of a text alone the value may have another sharding for any line behind it
        return "" if new.key else f"{place}: {row.op} {gives}"
    return problems.OPERATION_TAKES(place, row.op)


def _silent_after(changes: Changed, edit: SourceEdit) -> str:
    """The line behind a value of which a compiled text has nothing left, as of a constraint on its sharding; else "".

    It is of the same function, called from the same lines.
    """
    assert edit.new is not None
    row = changes.after[edit.new]
    following = changes.after[edit.new + 1] if edit.new + 1 < len(changes.after) else None
    if following is None or following.op != SILENT or len(following.places) < len(row.places):
        return ""
    outer = following.places[len(following.places) - len(row.places) :]
    file = row.places[0].rpartition(":")[0]
    near = outer[0].startswith(f"{file}:") and 0 < _number(outer[0]) - _number(row.places[0]) <= _BEHIND
    return outer[0] if row.places[1:] == outer[1:] and near else ""


_BEHIND = 2
"""Lines behind a value in which its constraint is looked for."""


def _number(place: str) -> int:
    return int(place.rpartition(":")[2])


def _words(said: str) -> str:
    return f", {shorten(said, 120)}" if said else ""


def _line(changes: Changed, edit: SourceEdit) -> str:
    """The innermost line that the other source does not have; else the innermost one all of whose rows were edited.

    A function that others call too, as before, is not the place.
    """
    side = changes.after if edit.new is not None else changes.before
    which = edit.new if edit.new is not None else edit.old
    assert which is not None
    edited = {(e.new if edit.new is not None else e.old) for e in changes.edits}
    row = side[which]
    here, there = changes.sources if edit.new is None else changes.sources[::-1]
    if (place := next((p for p in row.places if _is_fresh(p, here, there)), "")) or not row.places:
        return place
    alike = [k for k, other in enumerate(side) if other.op == row.op and other.places[:1] == row.places[:1]]
    for depth, place in enumerate(row.places):
        if all(k in edited for k in alike if side[k].places[depth : depth + 1] == (place,)):
            return place
    return row.places[0]


def _is_fresh(place: str, here: Sources, there: Sources) -> bool:
    """Whether the text of a line is none of the file's lines in the other source; False where it is not at hand."""
    file, _, line = place.rpartition(":")
    if file not in here or file not in there or not 0 < int(line) <= len(here[file]):
        return False
    return here[file][int(line) - 1].strip() not in {each.strip() for each in there[file]}


def caused(
    findings: Iterable[Finding], changes: Changed | None, places: Mapping[int, tuple[str, ...]], stated: str = ""
) -> list[Finding]:
    """The findings, each with its cause where one is convincing.

    changes: between the two programs, None where they are not known.  places: by the line of an instruction in the new
    text, the lines of the source that it comes from.  stated: a change of how the program is asked for, which comes
    before all others.
    """
    made = []
    for each in findings:
        said = ""
        if each.question in CAUSED and each.verdict is Verdict.REFUTED:
            said = stated or (cause(changes, each.question, places.get(each.line, ())) if changes is not None else "")
        made.append(replace(each, cause=said, follows=tuple(caused(each.follows, changes, places, stated))))
    return made
