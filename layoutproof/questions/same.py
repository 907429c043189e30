"""`lp.same`: whether a function of JAX, with its Pallas kernels, computes what a reference computes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from math import prod
from operator import itemgetter
from typing import Any

from layoutproof.core.dimensions import dimension
from layoutproof.core.document import document
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import Answer, Finding, split_place
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Verdict
from layoutproof.core.size import symbols_of
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.findings import Judged, judged
from layoutproof.pallas.report import place as shown_place
from layoutproof.questions.reduced import equations_in, smallest
from layoutproof.values.compare import RELATIONS, SMALL, Comparison, Input, TooLarge, compare
from layoutproof.values.prefixes import Begin
from layoutproof.values.refusals import OFFER
from layoutproof.values.relations.calls import LARGEST

PREMISES = (
    "body_races", "dma_order", "undefined_values", "body_in_bounds", "blocks_in_bounds", "parallel_writes",
    "table_reads", "alias_hazard",
)  # fmt: skip
"""What the walk takes to hold: it runs programs in one order, and copies land when they are waited for."""
PLACES, ORDER = ("body_in_bounds", "blocks_in_bounds", "table_reads"), ("dma_order",)
"""What the walk sees by itself: it computes every place of every program, from the integers that are given, and which
copies are in flight when a place is touched."""
MOST_ELEMENTS = 2**27
"""Elements of all arguments and results together."""
QUESTION = "same"


@dataclass(frozen=True, slots=True)
class Same(Answer):
    """What came of comparing a function with its reference.

    Attributes:
        function: Its name.
        reference: The reference's name.
        comparison: What the points and float64 say of the values.
        premises: The findings about the function's kernels, at the given sizes, on which that rests.
        reduced: Of each argument that was compared at a smaller size (name, the given shape, the smaller one).
        sizes: Names of sizes, where it is about all of them.
        where: What holds of these.
        smallest: Of a difference, the smallest sizes at which there is one.
    """

    function: str
    reference: str
    comparison: Comparison
    premises: tuple[Finding, ...] = ()
    reduced: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = ()
    sizes: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    smallest: Mapping[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """Refuted where the values are, or a premise is; unknown where one of them is; else proved or sampled."""
        return min([self.comparison.verdict, *(f.verdict for f in self.premises)])

    @property
    def reason(self) -> str:
        """Why it is refuted or unknown, in one sentence; "" where it is proved or sampled."""
        if self.comparison.verdict is self.verdict:
            return self.comparison.reason
        first = min(self.premises, key=lambda f: f.verdict)
        values = ""
        if self.comparison.verdict is Verdict.SAMPLED:
            values = f"; where it holds, no difference at {self.comparison.points} random points"
        if self.comparison.verdict is Verdict.PROVED:
            values = "; where it holds, the values are proved to be the same"
        return f"it rests on {first.question}, which is {first.verdict.value}: {first.reason}{values}"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One."""
        begins = self.comparison.begins
        place = self.comparison.place or ("" if begins is None else begins.place or begins.stored)
        if self.comparison.verdict is not self.verdict:
            first = min(self.premises, key=lambda f: f.verdict)
            place = f"{first.file}:{first.line}" if first.file else ""
        file, line, column = split_place(place)
        witness = self.comparison.witness
        figures: dict[str, Any] = {"points": self.comparison.points}
        figures |= {"sizes": dict(self.smallest)} if self.smallest else {}
        if witness is not None:
            figures |= {
                "different": witness.different, "elements": witness.of, "rows": witness.rows,
                "value": _shown(witness.ours), "reference_value": _shown(witness.theirs), "seed": witness.seed,
                "scale": witness.scale,
            }  # fmt: skip
        point = None
        if witness is not None and self.verdict is Verdict.REFUTED:
            point = {"output": (witness.output,), "element": witness.index}
        elif self.comparison.differs is not None and self.verdict is Verdict.REFUTED:
            output, element = self.comparison.differs
            point = {"output": (output,), "element": element}
        hints = [self.comparison.hint]
        if begins is not None and self.comparison.verdict is self.verdict:
            hints.insert(0, f"it begins at {_told(begins)}")
        finding = Finding(
            QUESTION, f"{self.function} = {self.reference}", self.reason, file=file, line=line, column=column,
            verdict=self.verdict, counterexample=point, figures=figures,
            decided_by=self.decided_by, scope=self.scope, hint="; ".join(filter(None, hints)),
            assumes=tuple(dict.fromkeys(f"{f.question}: {f.verdict.value}" for f in self.premises)),
        )  # fmt: skip
        return (finding,)

    @property
    def decided_by(self) -> str:
        """The engine: points or relations, float64 of a difference that it shows; "" where none decides."""
        if self.verdict is Verdict.SAMPLED:
            return "points"
        return "float64" if self.comparison.witness is not None else self.comparison.decided_by

    @property
    def scope(self) -> str:
        """What the answer is about, in words."""
        at = "at the smaller sizes of `--reduced`" if self.reduced else "at these sizes"
        if self.sizes:
            held = f" where {' and '.join(self.where)}" if self.where else ""
            at = f"for all {', '.join(self.sizes)} from 1 to {LARGEST:,}{held}"
        return f"over the reals, {at}: rounding is not asked"

    @property
    def exit_code(self) -> int:
        """0 proved or sampled, 1 refuted, 3 unknown."""
        return self.verdict.exit_code

    def __str__(self) -> str:
        found = self.comparison
        lines = []
        at = ", ".join(f"{name} {list(shape)}" for name, _, shape in self.reduced)
        pair = f"{self.function} = {self.reference}" + (f" at {at}" if at else "")
        if self.verdict is Verdict.SAMPLED:
            axioms = f" (axioms: {', '.join(found.axioms)})" if found.axioms else ""
            lines.append(f"sampled   {pair}   no difference at {found.points} random points{axioms}")
            lines.append(f"  scope         {self.scope}")
            lines.append(f"  chance        {self.chance}")
            lines += self._stability()
        elif self.verdict is Verdict.PROVED:
            lines.append(f"proved    {pair}   every element is the same sum of products")
            lines.append(f"  scope         {self.scope}")
            lines.append(f"  by            {self.decided_by}")
            lines += self._stability()
        else:
            place = self.findings[0]
            where = shown_place(f"{place.file}:{place.line}") if place.file else ""
            lines.append(f"{self.verdict.value:<9} {pair}   {where}".rstrip())
            lines.append(f"  because       {self.reason}")
            if self.smallest:
                lines.append(f"  smallest      {', '.join(f'{name} = {n}' for name, n in self.smallest.items())}")
            if found.witness is not None:
                how = f"inputs of seed {found.witness.seed}, standard deviation {found.witness.scale:g}"
                lines.append(f"  replayed on   float64, {how}")
            elif found.decided_by and self.verdict is Verdict.REFUTED:
                lines.append("  replayed on   plain integers: the products of the element, counted on both sides")
            if found.operands and found.operands != self.reason:
                lines.append(f"  operands      {found.operands}")
            if found.begins is not None:
                lines.append(f"  begins at     {_told(found.begins)}")
            if found.hint:
                lines.append(f"  hint          {found.hint}")
        lines += [f"  drawn         {said}" for said in found.drawn]
        lines += [f"  note          {said}" for said in found.notes]
        by_verdict = {v: [f.question for f in self.premises if f.verdict is v] for v in Verdict}
        rests = "; ".join(f"{', '.join(dict.fromkeys(names))}: {v.value}" for v, names in by_verdict.items() if names)
        if rests:
            lines.append(f"  rests on      {rests}")
        counts = ", ".join(
            f"{int(v is self.verdict)} {v.value}"
            for v in (Verdict.PROVED, Verdict.SAMPLED, Verdict.REFUTED, Verdict.UNKNOWN)
        )
        return "\n".join([*lines, f"1 pair: {counts}"])

    def _stability(self) -> list[str]:
        """The lines about exponents and sums."""
        found, lines = self.comparison, []
        high = [e.place for e in found.exponents if not e.bounded]
        beside = [e.place for e in found.exponents if e.bounded and e.beside]
        if found.exponents and not high and not beside:
            lines.append("  stable        every exponent is at most 0")
        if high:
            at = ", ".join(shown_place(p) for p in high)
            lines.append(
                f"  not bounded   {at}: nothing shows that the exponent is at most 0; e^x overflows float32 at 89"
            )
        if beside:
            at = ", ".join(shown_place(p) for p in beside)
            lines.append(
                f"  not scaled    {at}: the maximum also holds a number of the code, such as one that it starts at; "
                "where all others are far below that, every exponential is 0"
            )
        if found.sums:
            worst = max(found.sums, key=lambda s: s.roundoff)
            alike = [s for s in found.sums if s.dtype == worst.dtype]
            most = max(alike, key=lambda s: s.terms)
            terms = (
                f", {most.terms:,} terms at once: relative error of up to {most.bound:.2g} of the sum of magnitudes"
                if most.terms else ""
            )  # fmt: skip
            carried = ", ".join(shown_place(s.place) for s in alike if not s.terms)
            terms += f"; carried from step to step at {carried}" if carried else ""
            lines.append(f"  sums kept in  {worst.dtype} at {shown_place(most.place)}{terms}")
        return lines

    @property
    def chance(self) -> str:
        """What is proved of the chance that a difference is missed, in words; "" where nothing is drawn."""
        if self.verdict is Verdict.PROVED:
            return ""
        if not self.comparison.axioms:
            return (
                f"a difference of degree d is missed with a chance of at most (d / 2^{self.comparison.bits})"
                f"^{self.comparison.points} for each element (Schwartz and Zippel)"
            )
        return "no proved bound: " + ", ".join(self.comparison.axioms) + " are taken as functions with few laws"

    def as_dict(self) -> dict[str, Any]:
        """What `layoutproof same --json` prints."""
        (finding,) = self.findings
        body = {
            "subject": finding.subject, "verdict": self.verdict.value, "reason": self.reason,
            "file": finding.file, "line": finding.line, "counterexample": _plain(finding.counterexample),
            "figures": dict(finding.figures), "points": self.comparison.points,
            "axioms": list(self.comparison.axioms), "chance": self.chance,
            "drawn": list(self.comparison.drawn), "notes": list(self.comparison.notes),
            "begins": None if self.comparison.begins is None else {
                "place": self.comparison.begins.place, "until": self.comparison.begins.until,
                "program": list(self.comparison.begins.program), "stored": self.comparison.begins.stored,
            },
            "hint": self.comparison.hint, "decided_by": self.decided_by, "operands": self.comparison.operands,
            "exponents": [
                {"place": e.place, "at_most_zero": e.bounded, "beside_a_literal": e.beside}
                for e in self.comparison.exponents
            ],
            "sums": [
                {"place": s.place, "dtype": s.dtype, "terms": s.terms, "unit_roundoff": s.roundoff}
                for s in self.comparison.sums
            ],
            "scope": finding.scope,
            "reduced": [
                {"argument": name, "given": list(given), "shape": list(shape)} for name, given, shape in self.reduced
            ],
            "sizes": list(self.sizes),
            "smallest": dict(self.smallest),
            "premises": [
                {"question": f.question, "subject": f.subject, "verdict": f.verdict.value, "reason": f.reason}
                for f in self.premises
            ],
        }  # fmt: skip
        return document(self.exit_code, body)


def _told(begins: Begin) -> str:
    """Where a difference begins, in words."""
    if not begins.place:
        stored = f"; the element is stored at {shown_place(begins.stored)}" if begins.stored else ""
        return f"a place that is not known{stored}"
    last = f" to {begins.until.rpartition(':')[2]}, at one of these stores" if begins.until else ""
    program = f" of program {begins.program}" if begins.program else ""
    return f"{shown_place(begins.place)}{last}{program}"


def _plain(point: Any) -> Any:
    return None if point is None else {name: list(at) for name, at in point.items()}


def _shown(x: float) -> float | str:
    return x if x == x and abs(x) != float("inf") else str(x)


def same(
    kernel: Callable[..., Any] | str,
    reference: Callable[..., Any] | str,
    *args: Any,
    where: Sequence[str] = (),
    assume: Sequence[str] = (),
    inputs: Callable[[], Any] | str | None = None,
    outputs: Sequence[int] | None = None,
    points: int = 3,
    target: str | None = None,
    gradient: bool = False,
    relations: bool = True,
    reduced: bool = False,
    tick: Callable[[str], None] = lambda what: None,
) -> Same:
    """Whether a function computes what a reference computes, over the reals, at these sizes.

    Both are traced. Sums of products are compared as relations, which prove; everything else is walked over at random
    points of prime fields (`layoutproof explain same`). Nothing runs on a device. What is refuted is shown on float64,
    or where it is too large for that, counted on plain integers.

    Args:
        kernel: A function of JAX, with or without Pallas calls, or its place: `MODULE:FUNCTION`, `FILE.py:FUNCTION`.
        reference: The function that says what is right, likewise.
        *args: The arguments of both: shapes (texts such as f32[8,128], or `jax.ShapeDtypeStruct`; f32[M,128] where
            the answer is to be about all M, which relations alone can say), arrays of integers
            such as tables, which are used as they are, trees of these, and other values, which are passed as they are.
            Of an array of floats the shape counts.
        where: Conditions on sizes that are names, or that only the running program knows.
        assume: Conditions as of `kernels`: on scalar prefetch operands, for the premises, and bounds of integers of
            which only the shape is given, `0 <= args[1] < 8`, that they are drawn in.
        inputs: Instead of `args`: a function that gives them, or its place; it is called once, without arguments.
        outputs: Positions of the outputs that are compared; all by default.
        points: At how many random points the two are compared, from 1 to 100.
        target: The TPU generation that functions are traced for, e.g. "v5e".
        gradient: Whether the gradients are compared: of all float arguments, for random cotangents.
        relations: Whether relations are asked before points.
        reduced: Whether they are compared at the smallest sizes of the arguments at which the function's kernels have
            every kind of program: the first, a middle, the last and a ragged one of each axis. The premises are asked
            at the given sizes.
        tick: Is told what is done now.

    Returns:
        The answer: `verdict` (proved, sampled, refuted or unknown), `reason`, `findings`, `exit_code`; `str` is what
        the command prints.

    Raises:
        LayoutError: The input is wrong: shapes that do not fit, outputs that are not alike, a function that raises.
    """
    if not isinstance(points, int) or not 1 <= points <= 100:
        raise LayoutError(f"points are a whole number from 1 to 100, not {shorten(repr(points), 40)}")
    from layoutproof.pallas.from_jax.adapter import need_jax
    from layoutproof.pallas.from_jax.user import argument, device, named_function

    jax = need_jax()
    names = [_name(f) for f in (kernel, reference)]
    with contextlib.ExitStack() as stack:
        ours, theirs = (f if callable(f) else stack.enter_context(named_function(str(f))) for f in (kernel, reference))
        if inputs is not None:
            if args:
                raise LayoutError("arguments are given, or made by inputs, not both")
            args = _made(inputs if callable(inputs) else stack.enter_context(named_function(str(inputs))), inputs)
        from jax import export

        scope = export.SymbolicScope()
        given = tuple(argument(a, scope) if isinstance(a, str) else a for a in args)
        paths, tree = jax.tree_util.tree_flatten_with_path(given)
        leaves = [leaf for _, leaf in paths]
        at = [k for k, leaf in enumerate(leaves) if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]
        arrays = [
            Input(
                f"args{jax.tree_util.keystr(paths[k][0])}", tuple(leaves[k].shape), leaves[k].dtype, _known(leaves[k])
            )
            for k in at
        ]
        arrays, assume = _bounded(arrays, assume)

        def flat(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*values: Any) -> list[Any]:
                filled = list(leaves)
                for k, value in zip(at, values, strict=True):
                    filled[k] = value
                return list(jax.tree_util.tree_leaves(function(*jax.tree_util.tree_unflatten(tree, filled))))

            return call

        calls = [flat(ours), flat(theirs)]
        chip = device(target or "")

        def at_sizes(arrays: list[Input]) -> _Pair:
            """What is compared, at these sizes of the arguments."""
            shapes = [jax.ShapeDtypeStruct(i.shape, i.dtype) for i in arrays]
            traced = [_traced(c, shapes, chip, n) for c, n in zip(calls, names, strict=True)]
            _alike(traced, names, outputs)
            if not gradient:
                return _Pair(arrays, shapes, calls[0], traced, lambda at: retraced(calls[1], arrays, at))
            more, shapes, of = _gradients(jax, arrays, shapes, calls, traced[1])
            both = [_traced(c, shapes, chip, n) for c, n in zip(of, names, strict=True)]
            return _Pair(more, shapes, of[0], both, lambda at: retraced(of[1], more, at))

        def retraced(reference: Callable[..., Any], arrays: list[Input], shapes: list[tuple[int, ...]]) -> Any:
            """The reference at other shapes, None where it cannot be traced there."""
            structs = [jax.ShapeDtypeStruct(shape, i.dtype) for i, shape in zip(arrays, shapes, strict=True)]
            try:
                return _traced(reference, structs, chip, names[1])
            except LayoutError:
                return None

        def resized(shapes: list[tuple[int, ...]]) -> list[Input]:
            return [replace(i, shape=shape) for i, shape in zip(arrays, shapes, strict=True)]

        pair = at_sizes(arrays)
        sizes = _sizes(arrays)
        if sizes:
            if gradient or reduced:
                what = "a gradient is compared" if gradient else "smaller sizes are those of arrays"
                raise LayoutError(f"{what} at given sizes, and {', '.join(sizes)} are names")
            proved = _for_all(
                calls, pair.traced, arrays, pair.shapes, sizes, names, outputs, target, assume, where, tick
            )
            if not proved.smallest:
                return proved
            tick("the smallest sizes")
            small = [_at(leaf, proved.smallest) for leaf in leaves]
            shown = same(
                ours, theirs, *jax.tree_util.tree_unflatten(tree, small), assume=assume, outputs=outputs,
                points=points, target=target, tick=tick,
            )  # fmt: skip
            if shown.verdict is Verdict.REFUTED:
                return replace(shown, function=names[0], reference=names[1], smallest=proved.smallest)
            said = f"relations show a difference at these sizes that a walk does not: {proved.comparison.reason}"
            return replace(proved, comparison=Comparison(Verdict.UNKNOWN, said))
        premises = _premises(pair.call, pair.arrays, pair.shapes, target, assume, where)
        smaller, why = [i.shape for i in arrays], ""
        if reduced:
            tick("smaller sizes")
            fixed = {n for i in arrays if i.value is not None for n in i.shape}
            smaller, why = smallest(smaller, fixed, lambda shapes: at_sizes(resized(shapes)).traced)
            pair = at_sizes(resized(smaller))
            # what holds at the given sizes and not at these is about sizes that the code is not written for
            there = () if why else _premises(pair.call, pair.arrays, pair.shapes, target, assume, where)
            worse = [f for f in there if f.verdict < min((p.verdict for p in premises), default=f.verdict)]
            if worse:
                why = f"at {list(pair.arrays[0].shape)} {worse[0].question} is {worse[0].verdict.value}"
        if why:
            found = Comparison(Verdict.UNKNOWN, f"{names[0]} is not compared at smaller sizes: {why}")
        else:
            found = _compared(pair, points, None if gradient else outputs, tick, relations)
    changed = ((i.name, i.shape, shape) for i, shape in zip(arrays, smaller, strict=True) if i.shape != shape)
    # at smaller sizes nothing was seen of the given ones
    seen = () if reduced else (*(PLACES if found.inside else ()), *(ORDER if found.ordered else ()))
    return Same(names[0], names[1], found, tuple(_seen(f, seen) for f in premises), tuple(changed))


@dataclass(frozen=True)
class _Pair:
    """What is compared. call: the function that is asked about.  traced: its jaxpr, and the reference's.

    retrace: the reference's at other shapes.
    """

    arrays: list[Input]
    shapes: list[Any]
    call: Callable[..., Any]
    traced: list[Any]
    retrace: Callable[[list[tuple[int, ...]]], Any]


def _compared(
    pair: _Pair, points: int, outputs: Sequence[int] | None, tick: Callable[[str], None], relations: bool
) -> Comparison:
    """What relations, points and float64 say; unknown, with the numbers, where there is nothing to compare."""
    from layoutproof.pallas.from_jax.bodies import JaxReader

    compared = [a for t in pair.traced for a in t.out_avals]
    if not any(prod(a.shape) for a in compared):
        return Comparison(Verdict.UNKNOWN, "no output has an element, so there is nothing to compare")
    elements = sum(prod(i.shape) for i in pair.arrays) + sum(prod(a.shape) for a in compared)
    most, place = max((_largest(t) for t in pair.traced), key=itemgetter(0))
    too_large = SMALL
    if elements > MOST_ELEMENTS:
        too_large = TooLarge(f"arguments and results have {elements:,} elements, more than {MOST_ELEMENTS:,}")
    elif most > MOST_ELEMENTS:
        too_large = TooLarge(f"an array here has {most:,} elements, more than {MOST_ELEMENTS:,}", place)
    sides = pair.traced[0], pair.traced[1]
    try:
        return compare(sides, pair.arrays, JaxReader(), points, outputs, tick, relations, too_large, pair.retrace)
    except MemoryError:
        return Comparison(Verdict.UNKNOWN, f"memory ran out: the largest array has {most:,} elements; {OFFER}", place)


def _largest(jaxpr: Any) -> tuple[int, str]:
    """(Elements of the largest array that a jaxpr makes, kernels' and loops' bodies included, its place)."""
    from layoutproof.pallas.from_jax.bodies import JaxReader

    most, where = 0, None
    for equation in equations_in(jaxpr):
        size = max((prod(getattr(v.aval, "shape", ())) for v in equation.outvars), default=0)
        if size > most:
            most, where = size, equation
    return most, "" if where is None else str(JaxReader().place_of(where) or "")


def _made(inputs: Callable[[], Any], place: object) -> tuple[Any, ...]:
    """The arguments that the author's own function makes."""
    said = place if isinstance(place, str) else getattr(inputs, "__name__", "inputs")
    try:
        signature(inputs).bind()
    except TypeError as error:
        raise LayoutError(f"{said} is called without arguments to make the inputs: {error}") from None
    except ValueError:
        # a function of C that says no parameters
        pass
    made = inputs()
    if made is None:
        raise LayoutError(f"{said} makes the inputs, and gives None")
    return tuple(made) if isinstance(made, list | tuple) else (made,)


def _bounded(arrays: list[Input], assume: Sequence[str]) -> tuple[list[Input], tuple[str, ...]]:
    """The arguments with the bounds that are assumed of them, and the conditions that speak of other tables."""
    from layoutproof.kernel.table_assumptions import conditions, tables_said
    from layoutproof.values.elementwise import kind_of

    named = {i.name: k for k, i in enumerate(arrays)}
    others, found = [], list(arrays)
    for text in conditions(assume):
        tables = tables_said([text])
        (name,) = tables or ("",)
        if name not in named:
            others.append(text)
            continue
        table, k = tables[name], named[name]
        low, high = table.low, table.high
        if kind_of(arrays[k].dtype) != "i" or arrays[k].value is not None:
            kind = "given" if arrays[k].value is not None else f"{arrays[k].dtype}"
            raise LayoutError(f"bounds are assumed of integers that are drawn, and {name} is {kind}", text=text)
        if not isinstance(low, int) or not isinstance(high, int):
            raise LayoutError(f"of {name}, which is drawn, numbers as bounds are assumed, and no more", text=text)
        span = found[k].span or (low, high - 1)
        found[k] = replace(found[k], span=(max(span[0], low), min(span[1], high - 1)))
    return found, tuple(others)


def _seen(premise: Finding, seen: Sequence[str]) -> Finding:
    """A premise that nobody could decide for all tables, where the walk saw it hold for those that are given."""
    if premise.verdict is not Verdict.UNKNOWN or premise.question not in seen:
        return premise
    words = "every program was walked over with the integers that are given"
    return replace(premise, verdict=Verdict.PROVED, reason=words, decided_by="walk")


def _sizes(arrays: Sequence[Input]) -> tuple[str, ...]:
    """The names of sizes in the shapes of arguments."""
    return tuple(dict.fromkeys(symbols_of(dimension(n) for i in arrays for n in i.shape)))


def _at(leaf: Any, sizes: Mapping[str, int]) -> Any:
    """A leaf of the arguments at given sizes."""
    import jax

    if not hasattr(leaf, "shape") or all(isinstance(n, int) for n in leaf.shape):
        return leaf
    on = Numbers(sizes)
    return jax.ShapeDtypeStruct(tuple(int(on.size(dimension(n))) for n in leaf.shape), leaf.dtype)


def _for_all(
    calls: Sequence[Callable[..., Any]],
    traced: Sequence[Any],
    arrays: Sequence[Input],
    shapes: Sequence[Any],
    sizes: tuple[str, ...],
    names: Sequence[str],
    outputs: Sequence[int] | None,
    target: str | None,
    assume: Sequence[str],
    where: Sequence[str],
    tick: Callable[[str], None],
) -> Same:
    """What relations say for all sizes; where they show a difference, the smallest ones."""
    from layoutproof.core.expression import parse_condition
    from layoutproof.pallas.from_jax.bodies import JaxReader
    from layoutproof.pallas.from_jax.user import calls_in
    from layoutproof.pallas.judge import conditions_on
    from layoutproof.values.relations.decide import related
    from layoutproof.values.stability import sums_in

    held = [parse_condition(text) for text in where]
    stray = [n for term in held for n in term.names() if n not in sizes]
    if stray:
        raise LayoutError(f"a condition speaks of {stray[0]}; the sizes are {', '.join(sizes)}")
    tick("relations")
    reader = JaxReader()
    said = related((traced[0], traced[1]), arrays, reader, outputs, sizes, held)
    whole = Same(
        names[0], names[1], Comparison(Verdict.UNKNOWN), sizes=sizes, where=tuple(where), smallest=said.sizes
    )  # fmt: skip
    if said.same is None:
        why = f"relations, which alone speak of all sizes, do not decide it: {said.reason}"
        return replace(whole, comparison=Comparison(Verdict.UNKNOWN, why))
    notes = tuple(f"a conversion from {old} to {new} changes nothing, over the reals" for old, new in said.conversions)
    if not said.same:
        at = f"output {said.output}[{', '.join(map(str, said.element))}]"
        return replace(whole, comparison=Comparison(Verdict.UNKNOWN, f"{at}: {said.operands}", notes=notes))
    found = calls_in(calls[0], list(shapes), {}, target=target, assume=assume)
    if len(found) != len(said.grids):
        why = f"{len(found)} kernels are found where relations read {len(said.grids)}"
        return replace(whole, comparison=Comparison(Verdict.UNKNOWN, why))
    bounds = [*where, *(f"{name} <= {LARGEST}" for name in sizes)]
    premises: list[Finding] = []
    for call, grid in zip(found, said.grids, strict=True):
        texts = [*bounds, *(f"grid{k} == {n}" for k, n in enumerate(grid) if n.op != "int")]
        premises += _of(judged(call, where=conditions_on(call, texts) if isinstance(call, Kernel) else None))
    # that nothing undefined is in an output is what relations decide, for all sizes
    kept = tuple(f for f in premises if f.question != "undefined_values")
    comparison = Comparison(Verdict.PROVED, decided_by=RELATIONS, notes=notes, sums=sums_in(reader, traced[0].jaxpr))
    return replace(whole, comparison=comparison, premises=kept)


def _name(function: Callable[..., Any] | str) -> str:
    if callable(function):
        inner = getattr(function, "func", function)
        return str(getattr(inner, "__name__", type(function).__name__))
    return str(function).rpartition(":")[2]


def _known(leaf: Any) -> Any:
    """The numbers of an array that is given, if they are integers or truth values."""
    import numpy as np

    from layoutproof.values.elementwise import kind_of

    if not hasattr(leaf, "__array__") or kind_of(leaf.dtype) not in "ib":
        return None
    return np.asarray(leaf)


def _traced(call: Callable[..., Any], shapes: Sequence[Any], chip: Any, name: str) -> Any:
    from layoutproof.pallas.from_jax.trace import traced

    try:
        return traced(call, shapes, **chip)[0]
    except LayoutError as error:
        raise LayoutError(f"{name}: {error.problem}", file=error.file, line=error.line) from None


def _alike(traced: Sequence[Any], names: Sequence[str], outputs: Sequence[int] | None) -> None:
    """Raises LayoutError where the outputs cannot be compared."""
    from layoutproof.values.elementwise import kind_of

    ours, theirs = ([tuple(a.shape) for a in t.out_avals] for t in traced)
    kinds = [[a.dtype for a in t.out_avals] for t in traced]
    if outputs is not None:
        most = min(len(ours), len(theirs))
        odd = [k for k in outputs if not isinstance(k, int) or not 0 <= k < most]
        if odd or not outputs:
            raise LayoutError(f"outputs are positions from 0 to {most - 1}; {odd[0] if odd else 'none'} is given")
        ours, theirs = ([side[k] for k in outputs] for side in (ours, theirs))
        kinds = [[side[k] for k in outputs] for side in kinds]
    if len(ours) != len(theirs):
        raise LayoutError(f"{names[0]} gives {len(ours)} outputs and {names[1]} gives {len(theirs)}")
    if not ours:
        raise LayoutError(f"{names[0]} gives no output, so there is nothing to compare")
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a != b:
            raise LayoutError(f"output {k} of {names[0]} is {list(a)}, and of {names[1]} {list(b)}")
    for k, (one, other) in enumerate(zip(*kinds, strict=True)):
        if kind_of(one) != kind_of(other):
            raise LayoutError(f"output {k} of {names[0]} is {one}, and of {names[1]} {other}")


def _gradients(
    jax: Any, arrays: list[Input], shapes: list[Any], calls: list[Callable[..., Any]], reference: Any
) -> tuple[list[Input], list[Any], list[Callable[..., Any]]]:
    """The same for gradients: with the cotangents of the float outputs as further inputs."""
    from layoutproof.values.elementwise import kind_of

    wanted = [k for k, i in enumerate(arrays) if kind_of(i.dtype) == "f"]
    floats = [k for k, a in enumerate(reference.out_avals) if kind_of(a.dtype) == "f"]
    if not wanted or not floats:
        raise LayoutError("a gradient needs an argument and an output of floats")
    many = len(arrays)

    def of(call: Callable[..., Any]) -> Callable[..., Any]:
        def gradient(*values: Any) -> list[Any]:
            fixed, cotangents = list(values[:many]), values[many:]

            def inner(*moving: Any) -> list[Any]:
                for k, value in zip(wanted, moving, strict=True):
                    fixed[k] = value
                found = call(*fixed)
                return [found[k] for k in floats]

            outs, back = jax.vjp(inner, *(values[k] for k in wanted))
            return list(back([c.astype(o.dtype) for c, o in zip(cotangents, outs, strict=True)]))

        return gradient

    more = [Input(f"cotangent[{k}]", tuple(reference.out_avals[k].shape), reference.out_avals[k].dtype) for k in floats]
    structs = [jax.ShapeDtypeStruct(i.shape, i.dtype) for i in more]
    return [*arrays, *more], [*shapes, *structs], [of(call) for call in calls]


def _premises(
    call: Callable[..., Any],
    arrays: Sequence[Input],
    shapes: Sequence[Any],
    target: str | None,
    assume: Sequence[str],
    where: Sequence[str],
) -> tuple[Finding, ...]:
    """What is found of the kernels of a function, of what the walk takes to hold."""
    from layoutproof.pallas.from_jax.user import calls_in
    from layoutproof.pallas.judge import conditions_of

    drawn = [k for k, i in enumerate(arrays) if i.value is None]

    def with_tables(*values: Any) -> Any:
        filled: list[Any] = [i.value for i in arrays]
        for k, value in zip(drawn, values, strict=True):
            filled[k] = value
        return call(*filled)

    found = calls_in(with_tables, [shapes[k] for k in drawn], {}, target=target, assume=assume)
    for text in () if found else (*where, *assume):
        raise LayoutError(f"{shorten(text, 80)!r} is about a kernel, and the function has none")
    held = conditions_of(found, where) if found else ()
    return tuple(f for call, said in zip(found, held, strict=True) for f in _of(judged(call, where=said)))


def _of(call: Judged) -> list[Finding]:
    whole = call.whole()
    asked = [f for f in call.findings if f.question in PREMISES and f.severity == "error"]
    return [*asked, *([replace(whole, severity="error")] if whole is not None else [])]
