"""Finds assumptions on tables and sizes that decide an open question. Each is verified by asking it again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from layoutproof.core.budget import spent
from layoutproof.core.errors import BudgetExceeded, listed
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel, Relation, Table
from layoutproof.kernel.read_consistency import range_of
from layoutproof.kernel.relations import in_parts, range_at
from layoutproof.kernel.scalar_memory import assuming, every_table
from layoutproof.kernel.table_assumptions import with_assumptions
from layoutproof.pallas import problems
from layoutproof.pallas.assumptions import bounded, together, worded
from layoutproof.pallas.possible_tables import founded
from layoutproof.pallas.refuted_if import tables_needed
from layoutproof.pallas.schemas_by_use import offered, sliced
from layoutproof.solvers.conclude import left_open
from layoutproof.solvers.vacuity import where_term

Again = Callable[[Kernel, str], Finding | None]
"""Asks a question of a kernel about which more is assumed, under a condition on its sizes ("" = none)."""
Holds = Callable[[Kernel, str], bool]
"""Whether a question is proved then, which is less work."""

MOST_TRIED = 8
"""Times that each open question of a call is asked anew, on average; and a hundred more."""
NOTHING_ASSUMED = "nothing is assumed of it"
"""The end of the reason of a finding that depends on a table without assumptions."""
SAY_SIZES = "say what it may be with where"
"""The advice where a size of the running program leaves a question open."""
AT_PLACES = frozenset({"table_reads", "body_in_bounds"})
"""The questions that say how large a size may be although they read tables: those about where tables end."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenQuestion:
    """A question that is refuted or unknown, perhaps for want of an assumption.

    position: among the findings.  again: asks it anew.  holds: whether it is proved then.  tables: that it reads.
    whatever: whether, where it is refuted then, that is so whatever tables hold.  body: whether it is about the body.
    sized: whether it may rest on sizes of the running program.  whole: whether no
    claim says it, so that asking it anew is asking all of its property.
    """

    position: int
    again: Again
    holds: Holds
    whatever: Holds
    tables: tuple[Table, ...]
    body: bool = False
    sized: bool = False
    whole: bool = False


def settled(
    kernel: Kernel, found: Sequence[Finding], open_: Sequence[OpenQuestion], strict_tables: bool = False
) -> dict[int, Finding]:
    """The findings that are refuted or unknown only for want of an assumption: unknown, with the assumption.

    found: all findings.  open_: those that may be.  All advice on a call can be assumed at once. Each question is asked
    a bounded number of times, so that the work is linear in their number.  strict_tables: a refutation by tables
    within the assumptions stays.
    """
    asked = [one for one in open_ if (one.tables or one.sized) and not one.whole]
    tries = _AssumptionTries(kernel, MOST_TRIED * len(asked) + 100)
    # an assumption that decides a question by itself is advised for it alone
    alone = {one.position: _sizes(one, found[one.position], tries) for one in asked if one.sized}
    tries.sizes = {name: most[-1] for name, most in _bounds(alone.values()).items()}
    decide = [one for one in asked if one.sized and found[one.position].severity == "error"]
    if tries.sizes and _refutes(decide, {}, tries.sizes, tries):
        alone = _exactly(decide, alone, tries)
    needs: dict[int, dict[str, Table]] = {position: {} for position, sizes in alone.items() if sizes}
    asked = [one for one in asked if one.position not in needs.keys() | _divisible(asked, found)]
    read = {table.name: table for one in asked for table in one.tables}
    best, held = _bounds_of_tables(kernel, asked, found, read, tries)
    needs |= {one.position: {t.name: best[t.name] for t in one.tables} for one in held if tries.proved(one, best)}
    # what only a warning needs is not advised, so that no error may rest on it
    left = sorted(
        (one for one in asked if one.position not in needs), key=lambda one: found[one.position].severity != "error"
    )
    by_words, everything = _worded(left, best, tries)
    needs |= by_words
    of_before = dict.fromkeys(needs, tries.sizes)
    alone |= _sizes_beside(asked, decide, found, needs, everything, tries)
    tries.left += len(needs)
    # the advice is one set: each question is asked again under all of it
    needs = {position: more for position, more in needs.items() if _holds_under(open_, position, everything, tries)}
    needs |= _of_wholes([one for one in open_ if one.whole], {**_own(kernel), **everything}, tries)
    said, by_schema = _by_schemas(kernel, found, open_, needs, everything, tries)
    answers: dict[int, Finding] = {}
    for one in open_:
        finding, of_all = found[one.position], of_before.get(one.position, tries.sizes)
        sizes = alone.get(one.position) or (of_all if one.sized else {})
        if not (strict_tables and _within(kernel, one, finding)):
            schemas = said if one.position in by_schema else ()
            answer = _answer(kernel, one, finding, needs.get(one.position), sizes, tries.exact, schemas)
            answers |= {} if answer is None else {one.position: answer}
    return answers


def _divisible(asked: Sequence[OpenQuestion], found: Sequence[Finding]) -> set[int]:
    """The questions that no bound settles: one that makes a number divisible leaves one number."""
    return {one.position for one in asked if found[one.position].question == "multiple_of"}


def _worded(
    left: Sequence[OpenQuestion], best: Mapping[str, Table], tries: _AssumptionTries
) -> tuple[dict[int, dict[str, Table]], dict[str, Table]]:
    """What such words as `monotone` prove beside bounds, by the position of a question; and all tables with them."""
    needs: dict[int, dict[str, Table]] = {}
    everything = dict(best)
    for one in left:
        # what another question needs already is asked first: less is assumed in all
        advised = {table.name: everything[table.name] for table in one.tables}
        plain = {table.name: best[table.name] for table in one.tables}
        for more in (*([advised] if advised != plain else []), *worded(plain)):
            joint = {name: together(everything[name], table) for name, table in more.items()}
            if all(joint.values()) and tries.proved(one, more):
                needs[one.position] = more
                everything |= {name: table for name, table in joint.items() if table is not None}
                break
    return needs, everything


def _sizes_beside(
    asked: Sequence[OpenQuestion],
    decide: Sequence[OpenQuestion],
    found: Sequence[Finding],
    needs: dict[int, dict[str, Table]],
    everything: Mapping[str, Table],
    tries: _AssumptionTries,
) -> dict[int, dict[str, int]]:
    """Sizes of the running program that settle questions once the advised tables are assumed, which `needs` then says.

    Neither a bound on the grid proves `t[first[0] + g]` in bounds, nor one on `first`: both together do. One program
    alone is no advice, as a table of zeros is none; nor are bounds that refute one of `decide`, the questions that
    decide the verdict and may rest on sizes.
    """
    if tries.exact:
        return {}
    left = [one for one in asked if one.sized and one.position not in needs and one.tables]
    least = dict(tries.sizes)
    for one in left:
        if found[one.position].question in AT_PLACES and not _proved_beside(one, everything, least, tries):
            sizes = _sizes(one, tries.ask(one, everything, least), tries, everything, least)
            least |= sizes if all(most > 1 for most in sizes.values()) else {}
    if least == tries.sizes or _refutes(decide, everything, least, tries):
        return {}
    tries.under(least)
    now = [one for one in left if tries.proved(one, everything)]
    needs |= {one.position: {t.name: everything[t.name] for t in one.tables} for one in now}
    return {one.position: least for one in now}


def _proved_beside(
    one: OpenQuestion, everything: Mapping[str, Table], sizes: Mapping[str, int], tries: _AssumptionTries
) -> bool:
    """Whether a question is proved under these tables and bounds, the bounds found so far for others."""
    if not sizes:
        return False
    answer = tries.ask(one, everything, sizes)
    return answer is not None and answer.verdict is Verdict.PROVED


def _without_needless(
    held: Sequence[OpenQuestion], best: Mapping[str, Table], own: Mapping[str, Table], tries: _AssumptionTries
) -> dict[str, Table]:
    """The tables that settle questions, each as it was where all that read it are proved so, too, or with no end.

    `(mask[i] != 0) * k` is in bounds whatever the mask holds: only the table beside it is advised. `min(t[i] // 8, 3)`
    is where no entry is negative, however large: a bound of so many blocks would be true of no table of rows.
    """
    kept = dict(best)
    for name, table in best.items():
        readers = [one for one in held if name in {table.name for table in one.tables}]
        weaker = [own[name]] if all(len(one.tables) > 1 for one in readers) else []
        if readers and own[name].high is None and table.high is not None:
            weaker.append(replace(table, high=range_of(own[name])[1]))
        for less in weaker:
            without = {**kept, name: less}
            if all(tries.proved(one, {t.name: without[t.name] for t in one.tables}) for one in readers):
                kept = without
                break
    return kept


def _by_schemas(
    kernel: Kernel,
    found: Sequence[Finding],
    open_: Sequence[OpenQuestion],
    needs: dict[int, dict[str, Table]],
    everything: Mapping[str, Table],
    tries: _AssumptionTries,
) -> tuple[tuple[str, ...], set[int]]:
    """Of the schemas that tables may have by their use, the set that decides most of the rest, and these questions.

    needs: the assumptions that decide the others, which must do so under the schemas, too; it grows.
    """
    left = [one for one in open_ if one.position not in needs and found[one.position].severity == "error"]
    best: tuple[tuple[str, ...], set[int]] = ((), set())
    for said in offered(kernel) if left else ():
        assumed = with_assumptions(tries.assumed(everything), said)
        condition = where(tries.sizes, tries.exact)
        if spent() or not founded(assumed, condition, assumed.parameters()):
            continue
        if condition:
            # a question without a claim depends on it as on a relation
            term = where_term(condition, assumed.parameters())
            assumed = replace(assumed, relations=(*assumed.relations, Relation(condition, term)))
        now = {one.position for one in left if _holds_of(one, assumed, tries)}
        kept = len(now) > len(best[1]) and all(
            _holds_of(one, assumed, tries) for one in open_ if one.position in needs and one.tables
        )
        best = (said, now) if kept else best
        if len(best[1]) == len(left):
            break
    needs |= {position: {} for position in best[1]}
    return best


def _holds_of(one: OpenQuestion, assumed: Kernel, tries: _AssumptionTries) -> bool:
    """Whether a question is proved of a call of which more is assumed."""
    sizes = where(tries.sizes if one.sized else {}, tries.exact)
    with suppress(BudgetExceeded):
        if one.whole:
            answer = one.again(assumed, sizes)
            return answer is not None and answer.verdict is Verdict.PROVED
        return one.holds(assumed, sizes)
    return False


def _answer(
    kernel: Kernel,
    one: OpenQuestion,
    finding: Finding,
    needed: dict[str, Table] | None,
    sizes: dict[str, int],
    exact: bool,
    said: tuple[str, ...],
) -> Finding | None:
    """The replacement of a finding; None = none.

    needed: the tables that decide it, None = none that was tried does.  sizes: how large each may be, or is exactly.
    said: the schemas that settle it.
    """
    if needed is not None:
        return _advised(kernel, finding, needed, said, sizes, where(sizes, exact), _within(kernel, one, finding))
    if "sizes" in (finding.counterexample or ()) and one.sized:
        return left_open(finding, problems.KNOWN_AT_RUN_TIME(listed(kernel.runtime), SAY_SIZES))
    if finding.verdict is not Verdict.REFUTED:
        return None
    unbounded = [t.name for t in one.tables if _is_free(kernel, t, finding)]
    return depends(finding, unbounded, NOTHING_ASSUMED) if unbounded else None


def _holds_under(
    open_: Sequence[OpenQuestion], position: int, everything: Mapping[str, Table], tries: _AssumptionTries
) -> bool:
    """Whether a question is proved where all that is advised of the call is assumed."""
    one = next(one for one in open_ if one.position == position)
    return not one.tables or tries.proved(one, everything)


def _is_free(kernel: Kernel, table: Table, finding: Finding) -> bool:
    """Whether the entries of a table in a counterexample may be any number of its type."""
    if table.low is not None and table.high is not None:
        return False
    shown: Any = (finding.counterexample or {}).get("reads", {})
    places = [text.removeprefix(f"{table.name}[").rstrip("]") for text in shown if text.startswith(f"{table.name}[")]
    at = [[Term("int", int(part)) for part in place.split(",")] for place in places]
    low, high = range_of(table)
    ranges = [range_at(kernel.relations, table, place) for place in at]
    return not ranges or any(ends[0] == low or ends[1] == high for ends in ranges)


def _within(kernel: Kernel, one: OpenQuestion, finding: Finding) -> bool:
    """Whether tables refute a question that are within what is assumed of them."""
    refuted = finding.verdict is Verdict.REFUTED and bool(tables_needed(kernel, finding))
    return refuted and not any(_is_free(kernel, table, finding) for table in one.tables)


def _advised(
    kernel: Kernel,
    finding: Finding,
    tables: Mapping[str, Table],
    said: tuple[str, ...],
    sizes: Iterable[str],
    condition: str,
    within: bool,
) -> Finding:
    """The finding as unknown, with what would settle it, as it was tried.

    said: schemas of tables.  sizes: of which condition speaks.  within: see `_within`.
    """
    own = _own(kernel)
    if finding.reason.endswith(NOTHING_ASSUMED):
        finding = replace(finding, reason="")
    more = {n: [text for text in t.assumptions() if text not in own[n].assumptions()] for n, t in tables.items()}
    for text in said:
        # the longest name of those that begin first: `args[0][1]` and not `args[0]`
        first = min((text.index(name), -len(name), name) for name in own if name in text)
        more.setdefault(first[2], []).append(text)
    texts = [*said] if said else [text for texts in more.values() for text in texts]
    if not condition and not texts:
        # asked by itself it is proved, and nothing more is to be assumed: its budget went to other questions
        return finding
    if not condition:
        what = f"assume {listed([repr(text) for text in texts])} and it is proved"
        if within:
            return left_open(finding, f"{tables_needed(kernel, finding)}; {what}", needs=tuple(texts))
        return depends(finding, [n for n, told in more.items() if told], what, needs=tuple(texts))
    why = f"depends on {listed(list(sizes))}, known at run time only"
    if texts:
        why += f", and on what {listed([n for n, told in more.items() if told])} holds; assume "
        why += f"{listed([repr(text) for text in texts])}, say with where {condition!r}, and it is proved"
    else:
        why += f"; {SAY_SIZES}: {condition!r}, and it is proved"
    return left_open(finding, why, needs=tuple(texts), where=condition)


def where(sizes: Mapping[str, int], exact: bool = False) -> str:
    """The condition that sizes of the running program are not larger than these, or exactly these.

    >>> where({"grid1": 11, "grid0": 4})
    'grid0 <= 4 and grid1 <= 11'
    >>> where({"grid1": 11}, exact=True)
    'grid1 == 11'
    """
    return " and ".join(f"{name} {'==' if exact else '<='} {most}" for name, most in sorted(sizes.items()))


def depends(finding: Finding, tables: Sequence[str], what: str, **more: object) -> Finding:
    """The finding as unknown, because of what tables hold. more: further fields of it."""
    return left_open(finding, problems.TABLES_HOLD(listed(tables), what), **more)


@dataclass(slots=True)
class _AssumptionTries:
    """Questions asked anew, each once for the assumptions on the tables that it reads; `left`: how many more may be.

    sizes: of the running program, a bound on each in the questions.  exact: they are equal to that.
    """

    kernel: Kernel
    left: int
    sizes: Mapping[str, int] = field(default_factory=dict)
    exact: bool = False
    _known: dict[tuple[int, tuple[str, ...]], bool] = field(default_factory=dict)
    _kernels: dict[tuple[str, ...], Kernel] = field(default_factory=dict)

    def proved(self, one: OpenQuestion, more: Mapping[str, Table]) -> bool:
        """Whether a question is proved for tables of which this is assumed."""
        key = (one.position, _said(more.get(table.name, table) for table in one.tables))
        if key not in self._known:
            if self.left <= 0 or spent():
                return False
            self.left -= 1
            with suppress(BudgetExceeded):
                self._known[key] = one.holds(self.assumed(more), where(self.sizes if one.sized else {}, self.exact))
        # where the budget ends within a try, what was found before it stays
        return self._known.get(key, False)

    def under(self, sizes: Mapping[str, int]) -> None:
        """Ask under other bounds from now on: what was proved under weaker ones still is, what was not may be."""
        self._known = {key: True for key, held in self._known.items() if held}
        self.sizes = sizes

    def ask(self, one: OpenQuestion, more: Mapping[str, Table], sizes: Mapping[str, int]) -> Finding | None:
        """The answer for such tables and sizes; None where no more may be asked."""
        if self.left <= 0 or spent():
            return None
        self.left -= 1
        with suppress(BudgetExceeded):
            return one.again(self.assumed(more), where(sizes, self.exact))
        return None

    def assumed(self, more: Mapping[str, Table]) -> Kernel:
        """The kernel of whose tables this is assumed."""
        tables = tuple(more.get(table.name, table) for table in every_table(self.kernel))
        key = _said(tables)
        if key not in self._kernels:
            self._kernels.clear()
            self._kernels[key] = assuming(self.kernel, tables)
        return self._kernels[key]


def _own(kernel: Kernel) -> dict[str, Table]:
    return {table.name: table for table in every_table(kernel)}


def _sizes(
    one: OpenQuestion,
    finding: Finding | None,
    tries: _AssumptionTries,
    more: Mapping[str, Table] | None = None,
    least: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """How large sizes of the running program may be for a question to be proved: just below what refutes it.

    {} where that is not known, or would be no advice: a few programs cannot violate it. more: tables that are assumed
    beside.  least: bounds that are.
    """
    if finding is None or (one.tables and finding.question not in AT_PLACES):
        return {}
    bounds: dict[str, int] = dict(least or {})
    seen: Finding | None = finding
    for _ in range(2 * len(tries.kernel.runtime)):
        point: Any = {} if seen is None else seen.counterexample or {}
        sizes = {name: int(n) for name, n in dict(point.get("sizes", {})).items() if name in tries.kernel.runtime}
        over = [name for name, n in sizes.items() if n > 1]
        if not over:
            return {}
        bounds[over[0]] = sizes[over[0]] - 1
        seen = tries.ask(one, more or {}, bounds)
        if seen is not None and seen.verdict is Verdict.PROVED:
            return bounds
    return {}


def _bounds(all_: Iterable[Mapping[str, int]]) -> dict[str, list[int]]:
    """The bounds of each size, the largest first."""
    found: dict[str, set[int]] = {}
    for sizes in all_:
        for name, most in sizes.items():
            found.setdefault(name, set()).add(most)
    return {name: sorted(most, reverse=True) for name, most in found.items()}


def _refutes(
    asked: Sequence[OpenQuestion], more: Mapping[str, Table], sizes: Mapping[str, int], tries: _AssumptionTries
) -> bool:
    """Whether the advised sizes refute a question: an assumption that refutes the kernel is no advice.

    more: tables that are advised beside; where there are none, questions that read tables are not asked. A violation
    that certain entries of them have is "refuted if", which no verdict rests on; one that all have is a refutation.
    """
    for one in asked:
        said = tries.ask(one, more, sizes) if more or not one.tables else None
        if said is None or said.verdict is not Verdict.REFUTED:
            continue
        assumed = tries.assumed(more)
        if not (more and tables_needed(assumed, said)) or one.whatever(assumed, where(sizes, tries.exact)):
            return True
    return False


def _exactly(
    asked: Sequence[OpenQuestion], alone: Mapping[int, Mapping[str, int]], tries: _AssumptionTries
) -> dict[int, dict[str, int]]:
    """Exact sizes for questions that bounds refute: with too few programs something is left out.

    Of each question that reads no table the sizes, under which all of them are proved; {} where there are none such.
    """
    tries.exact = True
    bounds = _bounds(alone.values())
    sized = [one for one in asked if not one.tables or alone.get(one.position)]
    for k in range(max(map(len, bounds.values()))):
        tries.sizes = {name: most[min(k, len(most) - 1)] for name, most in bounds.items()}
        answers = (tries.ask(one, {}, tries.sizes) for one in sized)
        if all(said is not None and said.verdict is Verdict.PROVED for said in answers):
            return {one.position: dict(tries.sizes) for one in sized}
    tries.exact, tries.sizes = False, {}
    return {}


def _of_wholes(
    wholes: Sequence[OpenQuestion], tables: Mapping[str, Table], tries: _AssumptionTries
) -> dict[int, dict[str, Table]]:
    """Of questions that no claim says, those that all advice together settles, with all tables of which it speaks."""
    own = _own(tries.kernel)
    told = {name: table for name, table in tables.items() if table.assumptions() != own[name].assumptions()}
    if not told and not tries.sizes:
        return {}
    tries.left += len(wholes)
    answers = {one.position: tries.ask(one, told, tries.sizes) for one in wholes}
    return {k: told for k, found in answers.items() if found is not None and found.verdict is Verdict.PROVED}


def _said(tables: Iterable[Table]) -> tuple[str, ...]:
    return tuple(f"{table.name} {'; '.join(table.assumptions())}" for table in tables)


def _bounds_of_tables(
    kernel: Kernel,
    asked: Sequence[OpenQuestion],
    found: Sequence[Finding],
    read: Mapping[str, Table],
    tries: _AssumptionTries,
) -> tuple[dict[str, Table], list[OpenQuestion]]:
    """The bounds of tables that settle most questions, and these."""
    if not asked:
        return {}, []
    # where slices start and how long they are is one property of both: a bound of each by itself forbids most tables
    placing = {name for said in sliced(kernel) for name in said.tables}
    best, held = _best(kernel, asked, read, placing, tries)
    best = _tightened(asked, found, best, held, placing, tries)
    return _without_needless(held, best, _own(kernel), tries), held


def _best(
    kernel: Kernel,
    asked: Sequence[OpenQuestion],
    read: Mapping[str, Table],
    placing: Collection[str],
    tries: _AssumptionTries,
) -> tuple[dict[str, Table], list[OpenQuestion]]:
    """Of the ways to bound the tables by what they index, the one that settles most, and what it settles.

    placing: tables that say where slices are; one of several rows is none that one bound speaks of.
    """
    best: dict[str, Table] = {}
    held: list[OpenQuestion] = []
    single = [table for name, table in read.items() if name not in placing or len(table.dims) == 1]
    for bounds in bounded(kernel, single):
        more = {**read, **bounds}
        best = best or more
        now: list[OpenQuestion] = []
        for k, one in enumerate(asked):
            if tries.proved(one, more):
                now.append(one)
            elif len(now) + len(asked) - k - 1 <= len(held):
                break
        if len(now) > len(held):
            best, held = more, now
        if len(held) == len(asked) or tries.left <= 0:
            break
    return best or dict(read), held


def _tightened(
    asked: Sequence[OpenQuestion],
    found: Sequence[Finding],
    best: dict[str, Table],
    held: list[OpenQuestion],
    placing: Collection[str],
    tries: _AssumptionTries,
) -> dict[str, Table]:
    """The largest bounds that settle questions about places of the body for which no place of a table says one.

    Of other questions no bound is advised: a number of rows that is small enough to keep programs apart leaves all
    but one of them without work, which no caller can promise. A property of larger numbers holds for smaller ones,
    so the largest bound is found by bisection. A table of zeros alone is no advice. held: the decided questions; it
    grows.
    """
    for one in asked:
        if not one.body or one in held:
            continue
        free = [t.name for t in one.tables if t.high is None and _plain(best[t.name]) and not in_parts(tries.kernel, t)]
        free = [name for name in free if name not in placing]
        if tries.proved(one, best):
            held.append(one)
            continue
        for name in free if found[one.position].question in AT_PLACES else ():
            most = _largest(one, best, name, tries)
            if most > 1:
                best = {**best, name: replace(best[name], low=0, high=most)}
                held.append(one)
                break
    return best


def _plain(table: Table) -> bool:
    return table.high is None or (type(table.high) is int and table.low == 0)


def _largest(one: OpenQuestion, best: Mapping[str, Table], name: str, tries: _AssumptionTries) -> int:
    """The largest high for which a question is proved if a table holds 0 to high - 1; 0 where none is."""
    table = best[name]

    def holds(high: int) -> bool:
        return tries.proved(one, {**best, name: replace(table, low=0, high=high)})

    if not holds(2):
        return 0
    # mostly it is of the size of some array: from below that takes half the tries of halving all integers
    low, high = 2, 1 << (table.bits - 1) if table.high is None else int(table.high)
    while 4 * low < high:
        if not holds(4 * low):
            high = 4 * low
            break
        low *= 4
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
