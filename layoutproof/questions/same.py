"""`lp.same`: whether a function of JAX, with its Pallas kernels, computes what a reference computes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
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
from layoutproof.values.compare import RELATIONS, Comparison, Input, compare
from layoutproof.values.relations.calls import LARGEST

PREMISES = (
    "body_races", "dma_order", "undefined_values", "body_in_bounds", "blocks_in_bounds", "parallel_writes",
    "table_reads", "alias_hazard",
)  # fmt: skip
"""What the walk takes to hold: it runs programs in one order, and copies land when they are waited for."""
MOST_ELEMENTS = 2**27
"""Elements of all arguments and results together."""
QUESTION = "same"
SCOPE = "over the reals, at these sizes: rounding is not asked"


@dataclass(frozen=True, slots=True)
class Same(Answer):
    """What came of comparing a function with its reference.

    Attributes:
        function: Its name.
        reference: The reference's name.
        comparison: What the points and float64 say of the values.
        premises: The findings about the function's kernels on which that rests.
        sizes: Names of sizes, where it is about all of them.
        where: What holds of these.
        smallest: Of a difference, the smallest sizes at which there is one.
    """

    function: str
    reference: str
    comparison: Comparison
    premises: tuple[Finding, ...] = ()
    sizes: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    smallest: Mapping[str, int] = field(default_factory=dict)

    @property
    def scope(self) -> str:
        """What the answer is about, in words."""
        if not self.sizes:
            return SCOPE
        held = f" where {' and '.join(self.where)}" if self.where else ""
        return f"over the reals, for all {', '.join(self.sizes)} from 1 to {LARGEST:,}{held}: rounding is not asked"

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
        place = self.comparison.place
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
        finding = Finding(
            QUESTION, f"{self.function} = {self.reference}", self.reason, file=file, line=line, column=column,
            verdict=self.verdict, counterexample=point, figures=figures,
            decided_by=self.decided_by,
            scope=self.scope,
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
    def exit_code(self) -> int:
        """0 proved or sampled, 1 refuted, 3 unknown."""
        return self.verdict.exit_code

    def __str__(self) -> str:
        found = self.comparison
        lines = []
        if self.verdict is Verdict.SAMPLED:
            axioms = f" (axioms: {', '.join(found.axioms)})" if found.axioms else ""
            lines.append(
                f"sampled   {self.function} = {self.reference}   no difference at {found.points} random points{axioms}"
            )
            lines.append(f"  scope         {SCOPE}")
            lines.append(f"  chance        {self.chance}")
            lines += self._stability()
        elif self.verdict is Verdict.PROVED:
            lines.append(f"proved    {self.function} = {self.reference}   every element is the same sum of products")
            lines.append(f"  scope         {self.scope}")
            lines.append(f"  by            {self.decided_by}")
            lines += self._stability()
        else:
            place = self.findings[0]
            where = shown_place(f"{place.file}:{place.line}") if place.file else ""
            lines.append(f"{self.verdict.value:<9} {self.function} = {self.reference}   {where}".rstrip())
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
            "hint": self.comparison.hint, "decided_by": self.decided_by, "operands": self.comparison.operands,
            "exponents": [
                {"place": e.place, "at_most_zero": e.bounded, "beside_a_literal": e.beside}
                for e in self.comparison.exponents
            ],
            "sums": [
                {"place": s.place, "dtype": s.dtype, "terms": s.terms, "unit_roundoff": s.roundoff}
                for s in self.comparison.sums
            ],
            "scope": finding.scope, "sizes": list(self.sizes), "smallest": dict(self.smallest),
            "premises": [
                {"question": f.question, "subject": f.subject, "verdict": f.verdict.value, "reason": f.reason}
                for f in self.premises
            ],
        }  # fmt: skip
        return document(self.exit_code, body)


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
    inputs: Callable[[], Any] | None = None,
    outputs: Sequence[int] | None = None,
    points: int = 3,
    target: str | None = None,
    gradient: bool = False,
    relations: bool = True,
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
        assume: Conditions on scalar prefetch operands, for the premises.
        inputs: Instead of `args`: a function that gives them; it is called once.
        outputs: Positions of the outputs that are compared; all by default.
        points: At how many random points the two are compared, from 1 to 100.
        target: The TPU generation that functions are traced for, e.g. "v5e".
        gradient: Whether the gradients are compared: of all float arguments, for random cotangents.
        relations: Whether relations are asked before points.
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
    from layoutproof.pallas.from_jax.bodies import JaxReader
    from layoutproof.pallas.from_jax.user import argument, device, named_function

    jax = need_jax()
    names = [_name(f) for f in (kernel, reference)]
    with contextlib.ExitStack() as stack:
        ours, theirs = (f if callable(f) else stack.enter_context(named_function(str(f))) for f in (kernel, reference))
        if inputs is not None:
            if args:
                raise LayoutError("arguments are given, or made by inputs, not both")
            made = inputs()
            args = tuple(made) if isinstance(made, list | tuple) else (made,)
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

        def flat(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*values: Any) -> list[Any]:
                filled = list(leaves)
                for k, value in zip(at, values, strict=True):
                    filled[k] = value
                return list(jax.tree_util.tree_leaves(function(*jax.tree_util.tree_unflatten(tree, filled))))

            return call

        shapes = [jax.ShapeDtypeStruct(i.shape, i.dtype) for i in arrays]
        calls = [flat(ours), flat(theirs)]
        chip = device(target or "")
        traced = [_traced(c, shapes, chip, n) for c, n in zip(calls, names, strict=True)]
        _alike(traced, names, outputs)
        sizes = _sizes(arrays)
        if sizes:
            if gradient:
                raise LayoutError("a gradient is compared at given sizes")
            proved = _for_all(calls, traced, arrays, shapes, sizes, names, outputs, target, assume, where, tick)
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
        if gradient:
            arrays, shapes, calls = _gradients(jax, arrays, shapes, calls, traced[1])
            traced = [_traced(c, shapes, chip, n) for c, n in zip(calls, names, strict=True)]
            outputs = None
        elements = sum(prod(i.shape) for i in arrays) + sum(prod(a.shape) for t in traced for a in t.out_avals)
        too_large = ""
        if elements > MOST_ELEMENTS:
            too_large = f"arguments and results have {elements:,} elements, more than {MOST_ELEMENTS:,}"
        found = compare(
            (traced[0], traced[1]), arrays, JaxReader(), points, outputs, tick, relations, too_large
        )  # fmt: skip
        premises = _premises(calls[0], arrays, shapes, target, assume, where)
    return Same(names[0], names[1], found, premises)


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
    whole = Same(names[0], names[1], Comparison(Verdict.UNKNOWN), (), sizes, tuple(where), said.sizes)
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
    ours, theirs = ([tuple(a.shape) for a in t.out_avals] for t in traced)
    if outputs is not None:
        most = min(len(ours), len(theirs))
        odd = [k for k in outputs if not isinstance(k, int) or not 0 <= k < most]
        if odd or not outputs:
            raise LayoutError(f"outputs are positions from 0 to {most - 1}; {odd[0] if odd else 'none'} is given")
        ours, theirs = ([side[k] for k in outputs] for side in (ours, theirs))
    if len(ours) != len(theirs):
        raise LayoutError(f"{names[0]} gives {len(ours)} outputs and {names[1]} gives {len(theirs)}")
    if not ours:
        raise LayoutError(f"{names[0]} gives no output, so there is nothing to compare")
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a != b:
            raise LayoutError(f"output {k} of {names[0]} is {list(a)}, and of {names[1]} {list(b)}")


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
    held = conditions_of(found, where) if found else ()
    return tuple(f for call, said in zip(found, held, strict=True) for f in _of(judged(call, where=said)))


def _of(call: Judged) -> list[Finding]:
    whole = call.whole()
    asked = [f for f in call.findings if f.question in PREMISES and f.severity == "error"]
    return [*asked, *([replace(whole, severity="error")] if whole is not None else [])]
