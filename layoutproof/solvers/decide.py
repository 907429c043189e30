"""Deciding one claim: the engines in turn, and every refutation replayed on plain ints before anyone sees it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, reduce
from types import ModuleType
from typing import NamedTuple

from layoutproof.core.budget import left, spend, spent
from layoutproof.core.claim import (
    And,
    At,
    Claim,
    Equal,
    Formula,
    NotExists,
    NotViolated,
    PlacePredicate,
    Uncovered,
    outline,
)
from layoutproof.core.errors import BudgetExceeded, InternalError, NotSmallest, Undecided, Unsupported, not_installed
from layoutproof.core.index_map import IndexMap, permutation
from layoutproof.core.message import message_of
from layoutproof.core.result import Point
from layoutproof.core.size import Extent, product
from layoutproof.core.space import Space
from layoutproof.core.term import Term
from layoutproof.solvers.unpermuted import moved, unpermuted

ENGINES = ("digits", "bits", "isl", "smt", "brute")
BITS_FIRST = ("bits", "digits", "isl", "smt", "brute")
WITHOUT_XOR = ("isl", "smt")
"""Engines that are asked about places before they are permuted, where that is the same question."""
QUICK_BUDGET_DIVISOR = 30
"""The short tries of isl and z3 have this part of their budgets."""
LONGER_BUDGET_DIVISOR = 3
"""A longer try of isl has this part of its budget: some tens of milliseconds."""
CANDIDATES = (("isl", 0.1), ("smt", 1 / QUICK_BUDGET_DIVISOR), ("isl", 1.0))
"""Engines, and parts of their budgets, that are asked whether a candidate holds: z3 before all that isl may do."""
MORE_SIZES = 30
"""How many times as many sizes are tried once smt has not decided."""
NEAR = 1 << 20
"""Points of a violation up to which the other engines search for a smaller one, which takes them seconds."""
ENUMERATED = 1000
"""Elements up to which a hole is replayed by looking at every element on plain ints: milliseconds. Of more, another
engine must say that none is there, which is a hundred times as fast as looking at 10,000."""
SEEN = 100_000
"""Elements up to which a hole is replayed that enumeration of symbolic sizes found: it has seen each of them."""


class Decision(NamedTuple):
    """The answer to a claim: counterexample or None, and the engines that decided.

    `reason` says why no engine could, or why the counterexample may not be the smallest. `broken`: wrong answers of
    engines, which are our bug; another one decided. `ways`: advice for a claim that no engine decided, in words.
    """

    point: Point | None
    by: str
    reason: str
    broken: str = ""
    ways: str = ""


def decide(claim: Claim, engines: tuple[str, ...] = ENGINES, confirm: bool = False, effort: float = 1) -> Decision:
    """Ask the engines in turn until one decides, or two where `confirm`.

    A violation that was found before is replayed, and not searched for again.
    Raises InternalError where two engines disagree, and where one is wrong and no other decides.
    """
    anew = partial(_decided, claim, engines, confirm, effort)
    asked = _Question("+".join(engines), f"decide {confirm}", effort, claim.key, claim.where, claim.symbols, [anew])
    before = left()
    if not claim.key or before is None or spent():
        return anew()
    try:
        decision, steps = _answered(asked)
    except _NotKept as other:
        decision, steps = other.answer, 0
    assert isinstance(decision, Decision)
    if not asked.asks:
        return decision
    if steps > before:
        # where the budget ends, only the engines themselves say
        return anew()
    if decision.point is not None:
        _replay(claim, decision.point, decision.by, effort)
    # the replay is one of these steps
    spend(steps - (before - (left() or 0)))
    return decision


def _decided(claim: Claim, engines: tuple[str, ...], confirm: bool, effort: float) -> Decision:
    """As `decide`, by the engines."""
    if claim.implied_by is not None and engines == ENGINES and not confirm and _proved_easily(claim, effort):
        return Decision(None, "digits", "")
    if spent():
        return Decision(None, "", spent())
    answers = _Answers()
    for name, function, share in _attempts_of(claim, engines, effort):
        if name in answers.points or name in answers.broken:
            continue
        try:
            point = _run(name, function, claim, share)
            if point is not None:
                _replay(claim, point, name, effort)
        except NotSmallest as found:
            holds = answers.add_violation(name, found, claim, effort)
            if holds and function == "growing" and not confirm and _elements(claim, found.point) > NEAR:
                break
        except (Undecided, ZeroDivisionError, InternalError) as problem:
            answers.add_problem(name, function, problem)
        else:
            if not confirm:
                return Decision(point, name, "", _listed(answers.broken) if answers.broken else "")
            answers.points[name] = point
            if len(answers.points) == 2:
                return answers.agreed()
    return answers.left_open(claim, engines)


class _Answers:
    """The answers of engines on one claim that is still undecided, or needs a second engine that agrees.

    points: engine -> the violation, None where it proves the claim.  reasons: engine -> why it does not know.  broken:
    engine -> what it said that is wrong.  best: the smallest violation so far that may not be the smallest, and who
    found it.  over: whether a budget of steps was spent.
    """

    __slots__ = ("best", "broken", "over", "points", "reasons")

    def __init__(self) -> None:
        self.points: dict[str, Point | None] = {}
        self.reasons: dict[str, str] = {}
        self.broken: dict[str, str] = {}
        self.best: tuple[Point, str] | None = None
        self.over = False

    def add_violation(self, name: str, found: NotSmallest, claim: Claim, effort: float) -> bool:
        """An engine has a violation that may not be the smallest; returns whether nothing speaks against it."""
        self.reasons[name] = f"has a violation and cannot show that it is the smallest: {found}"
        if self.best is not None and not _smaller(found.point, self.best[0]):
            return True
        try:
            _replay(claim, found.point, name, effort)
        except Undecided as undecided:
            self.reasons[name] = str(undecided)
            return False
        self.best = (found.point, name)
        return True

    def add_problem(self, name: str, function: str, problem: Exception) -> None:
        """An engine does not know, or is wrong."""
        match problem:
            case InternalError():
                self.broken[name] = message_of(problem)
            case ZeroDivisionError():
                self.reasons[name] = "the map divides by zero"
            case _ if function in ("growing", "sizes.smallest"):
                # the engine's own reason counts
                self.reasons.setdefault(name, message_of(problem))
            case _:
                self.reasons[name] = message_of(problem)
                self.over |= isinstance(problem, BudgetExceeded)

    def agreed(self) -> Decision:
        """The decision of two engines. Raises InternalError where they disagree."""
        (one, point), (other, second) = self.points.items()
        if point != second:
            raise InternalError(f"{one} says {point} and {other} says {second}: please report this")
        return Decision(point, f"{one}+{other}", "", _listed(self.broken))

    def left_open(self, claim: Claim, engines: tuple[str, ...]) -> Decision:
        """The decision once every engine was asked. Raises InternalError where one is wrong and no other decides."""
        if self.best is not None and not self.points:
            reason = "a violation, not shown to be the smallest within the step budget"
            return Decision(*self.best, reason, _listed(self.broken))
        said = _listed(
            {name: why for name, why in self.reasons.items() if name not in self.points and name not in self.broken}
        )
        for name, point in self.points.items():
            verdict = "proves" if point is None else "refutes"
            reason = f"only {name} {verdict} it, no second engine confirms: {said}"
            return Decision(None, "", reason, _listed(self.broken), "ask for one engine alone, without --confirm")
        if self.broken:
            raise InternalError("; ".join(filter(None, (_listed(self.broken), said))))
        return Decision(None, "", said, "", _ways(claim, engines, self.over))


def _ways(claim: Claim, engines: tuple[str, ...], over: bool) -> str:
    """Advice for a claim that no engine could decide; `over`: some of them for want of steps."""
    ways = ["ask every engine, without --engine"] if set(engines) != set(ENGINES) else []
    if claim.sizes():
        ways.append(f"give numbers for {', '.join(claim.sizes())}, or say what holds of them (--where)")
    elif over:
        ways.append("ask about fewer elements")
    if over:
        ways.append("allow more steps (--effort 10)")
    if not ways:
        ways.append("write the map without what the engines name")
    return ", or ".join(ways)


def proves(claim: Claim, engines: tuple[str, ...] = ENGINES, confirm: bool = False, effort: float = 1) -> bool:
    """Whether `decide` proves a claim. A violation ends it: which one is the smallest is not asked, nor replayed."""
    if confirm:
        decision = decide(claim, engines, confirm, effort)
        return decision.point is None and not decision.reason
    if claim.implied_by is not None and engines == ENGINES and _proved_easily(claim, effort):
        return True
    for name, function, share in _attempts_of(claim, engines, effort):
        if function == "bounded_search" or (name == "brute" and not _solver(name).can_try_all(claim, share)):
            # it looks for violations
            continue
        held = _proved_by(name, function, claim, share)
        if held is not None:
            return held
    return False


def candidate_holds(claim: Claim) -> str:
    """The engine that proves a claim which is one of many that are tried, most of them in vain; "" where none does.

    isl proves one in a moment, or labours to its budget where z3 soon sees a violation.
    """
    for name, share in CANDIDATES:
        held = _proved_by(name, "decide", claim, share)
        if held is not None:
            return name if held else ""
    return ""


@dataclass(frozen=True, slots=True)
class _Question:
    """A question to an engine, or to several, equal to another one about the same points and violation.

    asks: asks it of a claim, taken out by who answers: what is kept of a question does not hold the claim.
    """

    name: str
    function: str
    share: float
    key: str
    where: Term | None
    symbols: tuple[str, ...]
    asks: list[Callable[[], object]] = field(compare=False)


class _NotKept(Exception):
    """An answer that is not kept: there were not steps enough, and where there are more it may be another one; or it
    has words, which speak of this claim's names."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answer = answer


@lru_cache(maxsize=4096)
def _answered(asked: _Question) -> tuple[object, int]:
    """The answer to a question, and the steps that it took. Raises _NotKept.

    A claim that was asked before is not asked again. It takes the same steps: a verdict does not depend on what else
    was asked.
    """
    before = left()
    answer = asked.asks.pop()()
    after = left()
    words = isinstance(answer, Decision) and (answer.reason or answer.broken)
    if before is None or after is None or spent() or words:
        raise _NotKept(answer)
    return answer, before - after


def _proved_by(name: str, function: str, claim: Claim, share: float) -> bool | None:
    """Whether an engine proves a claim; None where it does not know."""
    anew = partial(_proved_anew, name, function, claim, share)
    if not claim.key or left() is None or spent():
        return anew()
    asked = _Question(name, function, share, claim.key, claim.where, claim.symbols, [anew])
    try:
        held, steps = _answered(asked)
    except _NotKept as short:
        held = short.answer
    else:
        if asked.asks:
            try:
                spend(steps)
            except BudgetExceeded:
                return None
    assert held is None or isinstance(held, bool)
    return held


def _proved_anew(name: str, function: str, claim: Claim, share: float) -> bool | None:
    try:
        if name in WITHOUT_XOR and function == "decide":
            return bool(_solver(name).proves(unpermuted(claim), share))
        return _run(name, function, claim, share) is None
    except NotSmallest:
        return False
    except (Undecided, ZeroDivisionError, InternalError):
        return None


def _smaller(point: Point, other: Point) -> bool:
    """Whether a violation is the smaller one: by its largest size, then by all that it has, in order."""
    rows = [(max(at.get("sizes", ()), default=0), *at.get("sizes", ()), *at.values()) for at in (point, other)]
    return rows[0] < rows[1]


def _elements(claim: Claim, point: Point) -> int:
    """How many points there are to choose from at the sizes of a violation."""
    return _product(tuple(extent for space in claim.points.values() for extent in space.extents), claim, point)


def _listed(said: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {words}" for name, words in said.items())


def _proved_easily(claim: Claim, effort: float) -> bool:
    """Whether the structural engine proves the easier claim that implies this one."""
    assert claim.implied_by is not None
    easier = replace(claim.implied_by, where=claim.where, symbols=claim.symbols)
    try:
        return _run("digits", "decide", easier, effort) is None
    except (Undecided, ZeroDivisionError, InternalError):
        return False


def _run(name: str, function: str, claim: Claim, share: float) -> Point | None:
    module, _, own = function.rpartition(".")
    asked = unpermuted(claim) if name in WITHOUT_XOR else claim
    try:
        point: Point | None = getattr(_solver(module or name), own)(asked, share)
    except NotSmallest as found:
        raise NotSmallest(str(found), moved(claim, found.point)) from None
    except ModuleNotFoundError as error:
        # brute imports numpy when it has many points
        raise not_installed(error) from None
    if point is not None and asked is not claim and isinstance(claim.violation, Uncovered):
        raise NotSmallest(
            "another place without an element may come before it once places are permuted", moved(claim, point)
        )
    return point


def _attempts_of(claim: Claim, engines: tuple[str, ...], effort: float) -> tuple[tuple[str, str, float], ...]:
    """As `_attempts`, bits first where every map is a matrix of bits as it is: no other engine is faster then."""
    sizes, maps, _, nested = outline(claim)
    if engines is ENGINES and maps and all(map(_solver("bits").is_matrix, maps)):
        engines = BITS_FIRST
    # z3 labours over products of sizes, which layouts have; a claim with a key is about a body
    return _attempts(engines, effort, not sizes or claim.key != "", nested)


@lru_cache(maxsize=64)
def _attempts(
    engines: tuple[str, ...], effort: float, light: bool, nested: bool = False
) -> tuple[tuple[str, str, float], ...]:
    """(solver, its function, effort) in order. light: whether z3 is tried early. nested: see `Outline`.

    Few points are tried before isl is asked: it may labour for seconds over what takes them milliseconds. Between a
    short and a full try of isl comes a bounded search: of somewhat more points, or at the first elements; and, where
    the claim is light, a short try of z3, which takes choices and reads of tables more lightly. Before a full one of
    smt, which may labour over products of sizes, the smallest sizes are tried. Where each point that is tried has
    points of its own to look through, isl has a longer try before the bounded search.
    """
    attempts: list[tuple[str, str, float]] = []
    for name in engines:
        if name == "smt" and "digits" in engines:
            attempts.append(("digits", "sizes.smallest", effort))
        if name == "isl" and "brute" in engines:
            attempts += [
                ("brute", "few", effort),
                (name, "decide", effort / QUICK_BUDGET_DIVISOR),
                *([(name, "decide", effort / LONGER_BUDGET_DIVISOR)] if nested else []),
                ("brute", "bounded_search", effort),
            ]
            if "smt" in engines and light:
                attempts.append(("smt", "decide", effort / QUICK_BUDGET_DIVISOR))
        attempts.append((name, "decide", effort))
        if name == "isl":
            attempts.append((name, "growing", effort))
        if name == "smt" and "digits" in engines:
            attempts.append(("digits", "sizes.smallest", MORE_SIZES * effort))
    return tuple(attempts)


def _replay(claim: Claim, point: Point, engine: str, effort: float) -> None:
    violation = claim.violation
    most = SEEN if engine == "brute" and claim.sizes() else ENUMERATED
    if isinstance(violation, Uncovered) and _product(_choices(violation.map), claim, point) > most:
        # too many elements for plain ints: that none of them is at the place is asked of another engine instead
        m, target = violation.map, point[violation.point]
        moved = permutation(m)
        if moved is not None:
            # an element is at the place where, without the permutation, it is where that place comes from
            came = tuple([moved.apply(n) if axis == moved.axis else n for axis, n in enumerate(target)])
            m = replace(m, place=moved.before)
        else:
            came = target
        there = IndexMap(m.domain, m.range, lambda index, replica, on: came)
        replicas = {"replica": m.replicas} if m.replicas.extents else {}
        held = Equal(At(m, "element", "replica" if replicas else ""), At(there, "element"))
        nobody = Claim({"element": there.domain, **replicas}, held)
        fixed = replace(nobody, where=pinned(claim, point), symbols=claim.symbols)
        # enumeration looks at each element once more, at this place alone; what it could sort it can look through
        others = ("brute",) if engine == "brute" else tuple(name for name in ENGINES if name != engine)
        again = decide(fixed, others, False, effort)
        if again.reason:
            raise Unsupported(f"found a hole at {target} that no second engine confirms ({again.reason})")
        replays = again.point is None
    else:
        try:
            replays = _solver("brute").violates(claim, point)
        except BudgetExceeded:
            replays = _nobody_else(claim, point, engine, effort)
    if not replays:
        raise InternalError(
            f"{engine} found {point}, which does not violate the claim on plain ints: please report this"
        )


def _nobody_else(claim: Claim, point: Point, engine: str, effort: float) -> bool:
    """As a replay, where there are too many further points to look at: that there is none is asked of another engine.

    So is that another claim is kept at these sizes. Raises Undecided where that does not know.
    """
    parts = claim.violation.parts if isinstance(claim.violation, And) else (claim.violation,)
    rest = tuple(part for part in parts if not isinstance(part, NotExists | NotViolated))
    if not _solver("brute").violates(replace(claim, violation=And(rest)), point):
        return False
    sizes = pinned(claim, point)
    for part in parts:
        if isinstance(part, NotViolated):
            there = replace(part.claim, where=sizes, symbols=claim.symbols)
            kept = decide(there, tuple(name for name in ENGINES if name != engine), False, effort)
            if kept.reason:
                raise Unsupported(f"found {point}, where no second engine says that the claim is kept ({kept.reason})")
            if kept.point is not None:
                return False
        if isinstance(part, NotExists):
            nobody = Claim(
                {"pinned": Space(), **part.points}, _at(part.formula, point), where=sizes, symbols=claim.symbols
            )
            other = "smt" if engine != "smt" else "isl"
            found = decide(nobody, (other,), False, max(1, int(effort)))
            weaker = isinstance(part.formula, And) and any(isinstance(p, NotExists) for p in part.formula.parts)
            if found.reason or (found.point is not None and weaker):
                why = found.reason or "one exists where its premises are left out"
                raise Unsupported(f"found {point}, which no second engine confirms ({why})")
            if found.point is not None:
                return False
    return True


def _at(formula: Formula, point: Point) -> Formula:
    """A formula with the entries of a point in it; without what it says does not exist, so that it holds more often."""
    match formula:
        case And(parts):
            return And(tuple([_at(part, point) for part in parts if not isinstance(part, NotExists)]))
        case PlacePredicate(places, condition):
            return PlacePredicate(tuple([_fixed(place, point) for place in places]), condition)
    raise Unsupported(f"no second engine is asked about {type(formula).__name__} among further points")


def _fixed(place: At, point: Point) -> At:
    if place.point not in point:
        return place
    index, replica = point[place.point], point[place.replica] if place.replica else ()
    there = IndexMap(Space(), place.map.range, lambda nothing, copy, on: place.map.place(index, replica, on))
    return At(there, "pinned")


def _choices(m: IndexMap) -> tuple[Extent, ...]:
    return m.domain.extents + m.replicas.extents


def _product(extents: tuple[Extent, ...], claim: Claim, point: Point) -> int:
    on = claim.numbers(point)
    return int(product(on.size(extent) for extent in extents))


def pinned(claim: Claim, point: Point) -> Term | None:
    """The condition that every size has the point's value."""
    terms = [Term("==", Term("name", n), Term("int", v)) for n, v in claim.numbers(point).sizes.items()]
    return reduce(lambda left, right: Term("and", left, right), terms) if terms else None


@lru_cache(maxsize=8)
def _solver(name: str) -> ModuleType:
    """An engine, imported when it is first asked. Raises Unsupported where its library is not there."""
    try:
        return importlib.import_module(f"layoutproof.solvers.{name}")
    except ModuleNotFoundError as error:
        raise not_installed(error) from None
