"""Whether steps along one axis of a kernel's grid, or of a loop, are one step, up to the names of what they read.

A function is read at a size that is a name, so for every number of blocks at once. All that meets data, memory or
control is a term over the step k and the number of blocks n: a condition, a mask, an address, a number that becomes a
float. Within each case of k (the first, a middle, the last one) none of them may differ between two steps, of kernels
with as many blocks as you like; windows, or what a loop
reads, go along the axis block by block. So a state after k steps is the same whatever
comes later, and a fault at the fourth step is one at the second. Anything else is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.control import steps_of
from layoutproof.bodies.effects import Slice, View
from layoutproof.bodies.integers import condition_of
from layoutproof.bodies.memory import through, view_of
from layoutproof.bodies.passes import BodyValue, as_array
from layoutproof.bodies.terms import names_in, renaming, replaced
from layoutproof.bodies.values import Lost, Value, dims_of
from layoutproof.bodies.wraps import unwrapped
from layoutproof.core.budget import budget
from layoutproof.core.claim import Claim, SizeCondition
from layoutproof.core.dimensions import dimension
from layoutproof.core.errors import LayoutError, Undecided, failure
from layoutproof.core.folding import all_of, any_of, constant, fold, linear, negation
from layoutproof.core.products import Sum
from layoutproof.core.term import ONE, ZERO, Term, every, size_term
from layoutproof.ir.program import Aval, Equation, Grid, MemRefType, Program, Variable, Window, planted, scan_parts
from layoutproof.values import elementwise
from layoutproof.values.relations.arrays import FloatArray, refused
from layoutproof.values.relations.calls import CALLS, starts_of
from layoutproof.values.relations.decide import STEPS
from layoutproof.values.relations.loops import LOOPS, looped, trips
from layoutproof.values.relations.reading import Reading, bounds, is_float, reference_of

FIRST, MIDDLE, LAST = "first", "middle", "last"
HANDS_ON = frozenset({
    "jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "remat",
    "remat2", "checkpoint", "custom_vmap_call", "custom_lin", "xla_call", "scan", "while", "cond", "run_scoped",
    "pallas_call",
})  # fmt: skip
"""Primitives that give their operands to programs inside of them."""
ALIKE = frozenset({
    *elementwise.PRIMITIVES, "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "dot_general",
    "broadcast_in_dim", "transpose", "reshape", "squeeze", "expand_dims", "copy", "copy_p", "stop_gradient", "cumsum",
    "cumprod", "cummax", "cummin", "cumlogsumexp", "add_any", "square",
})  # fmt: skip
"""Primitives that do with each element along the axis what they do with every other one."""
SCALES = frozenset({"mul", "div"})
"""What data may meet a number of blocks, or of the step, in."""
OF_SIZES = frozenset({
    *SCALES, "add", "sub", "neg", "sqrt", "rsqrt", "convert_element_type", "broadcast_in_dim", "reshape", "squeeze",
    "copy", "stop_gradient",
})  # fmt: skip
"""What makes such a number of one and constants, or of several."""
COMPARES = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "is_finite", "and", "or", "not", "xor"})
ACCESSES = frozenset({"get", "swap", "addupdate", "masked_load", "load", "masked_swap"})
MOVES = frozenset({"broadcast_in_dim", "reshape", "squeeze", "transpose", "expand_dims", "copy", "slice"})
LINEAR = frozenset({"name", "int", "+", "-", "*"})
EFFORT = 1 / 4
"""Of isl's budget, for each question."""


class Varies(Exception):
    """Two steps of one case may differ. what: in what.  place: `file:line`."""

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(f"{what} at {place}" if place else what)


class _Sized(FloatArray):
    """A float that the number of blocks and the step alone make, such as how many elements a mean is over.

    degree: of the rational function that it is of these.  term: where it is an integer that a term says.
    """

    degree = 1
    term: Term | None = None


class _OfData(Value):
    """Truth values that floats alone decide."""


@dataclass(frozen=True)
class Blocks:
    """An axis of a kernel's grid, or a loop, along which what is said holds for any number of blocks, by induction over
    its steps.

    axis: of the grid; -1 of a loop.  loop: `file:line` of that, else "".
    reduced: whether outputs are the same blocks at every step.  kinds: of steps.  along: axes of
    arguments that grow with it, each by a block.  compared: the numbers of blocks at which the two were compared.
    """

    axis: int
    reduced: bool
    kinds: tuple[str, ...]
    along: tuple[str, ...]
    compared: tuple[int, ...]
    loop: str = ""


@dataclass(frozen=True)
class Uniform:
    """The result. axis: of the grid; -1 of a loop.  reduced: whether outputs are the same blocks at every step.

    scaled: of how high a degree, in both, what data are multiplied with or divided by is as a function of the number of
    blocks and of the step: as many values decide it.
    """

    axis: int
    reduced: bool
    scaled: int = 0


def uniform(sides: tuple[Program, Program], size: str) -> Uniform:
    """That a function is one step along an axis, or in a loop, and its reference one of any number of blocks.

    sides: both, traced at extents of which some are a block times `size`, less what a ragged last block lacks.
    Raises Varies where that is not shown.
    """
    try:
        with budget(STEPS):
            ours, theirs = (_Steps(side, size) for side in sides)
            if len(ours.found) != 1 or any(f.axis >= 0 for f in theirs.found):
                raise Varies(f"{len(ours.found)} axes, and {len(theirs.found)} in the reference")
            ours.decide()
            theirs.decide()
            return replace(ours.found[0], scaled=ours.scaled + theirs.scaled)
    except (UnsupportedOp, Undecided, LayoutError) as problem:
        raise Varies(str(problem)) from None
    except Varies:
        raise
    except Exception as error:
        # a form of an operation that is not read: it is not shown
        raise Varies(failure(error)) from None


class _Steps(Reading):
    """One reading of a function. asked: terms, with what is around them, that may not differ within a case.

    spans, elements: how many programs, and elements of a dimension, a name may be one of.  others: the steps of loops
    along the axis that take other strides; nothing may rest on them.
    """

    def __init__(self, program: Program, size: str) -> None:
        super().__init__({**CALLS, "pallas_call": _kernel, "while": _while, "scan": _scan})
        self.size, self.step, self.ids = size, "", frozenset[str]()
        self.others: set[str] = set()
        self.kernels = 0
        self.reduced = not any(
            size in names_in(_term(n)) for v in program.outvars for n in _dims(v.aval) if not isinstance(n, int)
        )
        self.spans: dict[str, int] = {}
        self.elements: dict[str, int] = {}
        self.found: list[Uniform] = []
        self.scaled = 0
        self.asked: dict[tuple[Term, tuple[Term, ...]], str] = {}
        dims = [v.aval for v in program.invars]
        self.run(program, [
            refused("data", _dims(a), a.dtype) if is_float(a) else Value(_dims(a), a.dtype, "integers that are data")
            for a in dims
        ])  # fmt: skip
        if self.refused:
            what, place = next(iter(self.refused))
            raise Varies(what, place)

    def entered(self, counter: str, steps: Term) -> None:
        """The loop whose steps are asked about is the first of as many steps as there are blocks."""
        if steps is Term("name", self.size) and not self.step:
            self.step, self.ids = counter, self.ids | {counter}
            self.found.append(Uniform(-1, self.reduced))
        elif self.size in names_in(steps):
            self.others.add(counter)

    def _results(self, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
        name = equation.primitive.name
        if name.startswith(("dma_", "semaphore_")):
            raise Varies("a copy by hand", self.source())
        if name in HANDS_ON:
            return self._handed_on(equation, operands)
        if name == "dynamic_slice" and self.step and isinstance(operands[0], FloatArray):
            return self._dynamic_slice(equation, operands)
        floats = [v.aval for v in (*equation.invars, *equation.outvars) if is_float(v.aval)]
        if name not in ALIKE | ACCESSES and any(not isinstance(n, int) for a in floats for n in a.shape):
            raise Varies(f"{name} along the axis", self.source())
        if any(isinstance(o, _Sized) for o in operands):
            return self._of_sizes(equation, operands)
        touches = any(isinstance(o, View) for o in operands)
        if name in ACCESSES and touches:
            self._accessed(equation, operands)
        elif floats or touches or equation.effects:
            integers = [o for o in operands if isinstance(o, Value) and not isinstance(o, FloatArray)]
            if name == "convert_element_type" and integers and self._counts(integers[0]):
                return [_sized(equation.outvars[0], 1, self._element(integers[0]))]
            for value in integers:
                self._ask(value)
        return self._truths(name, operands, super()._results(equation, operands))

    def _truths(self, name: str, operands: Sequence[BodyValue], results: Sequence[BodyValue]) -> Sequence[BodyValue]:
        """The results of a primitive: where data are compared, truth values of data."""
        if name not in COMPARES | MOVES or not all(isinstance(o, FloatArray | _OfData) for o in operands):
            return results
        found = map(as_array, results)
        return [_OfData(r.dims, r.dtype, "data") if not isinstance(r, FloatArray) else r for r in found]

    def _handed_on(self, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
        """The results of a call, a branch or a loop, of which none may be a number of blocks."""
        name = equation.primitive.name
        if name == "cond":
            self._ask(operands[0], decides=True)
        if any(isinstance(o, _Sized) for o in _carried(equation, operands)):
            raise Varies("a number of blocks that a loop hands on", self.source())
        results = super()._results(equation, operands)
        if name not in ("jit", "pjit") and any(isinstance(r, _Sized) for r in results):
            raise Varies("a number of blocks that control hands on", self.source())
        return results

    def _dynamic_slice(self, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
        """A slice of data, block by block along the axis."""
        variable = equation.outvars[0]
        sizes = _dims(variable.aval)
        starts = [self._element(as_array(start)) for start in operands[1:]]
        self._sliced([Slice(s, _term(n)) for s, n in zip(starts, sizes, strict=True)], as_array(operands[0]).dims)
        return [refused("data", sizes, variable.aval.dtype)]

    def _of_sizes(self, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
        """An operation on numbers of blocks: data scaled by one, another such number, or a comparison of two."""
        name, variable = equation.primitive.name, equation.outvars[0]
        pairs = zip(operands, equation.invars, strict=True)
        others = [hasattr(a, "val") or _is_number(o) for o, a in pairs if not isinstance(o, _Sized)]
        degree = sum(o.degree for o in operands if isinstance(o, _Sized))
        if name in SCALES and others == [False]:
            self.scaled += degree
            return super()._results(equation, operands)
        if name in OF_SIZES and all(others):
            said = _shifted(name, operands)
            return [_sized(v, degree, said) for v in equation.outvars]
        compared = _compared(name, operands)
        if compared is None:
            raise Varies(f"{name} of a number of blocks", self.source())
        return [Value(_dims(variable.aval), variable.aval.dtype, lambda index: compared)]

    def _accessed(self, equation: Equation, operands: list[BodyValue]) -> None:
        """Notes where memory is read or stored to: along the axis block by block, else at all steps alike."""
        if equation.primitive.name in ("get", "swap", "addupdate"):
            first = 1 if equation.primitive.name == "get" else 2
            reference, transforms, rest = operands[0], planted(equation.params["tree"], operands[first:]), []
        else:
            reference, transforms, *rest = planted(equation.params["args_tree"], operands)
        for step in through(self, view_of(self, reference), transforms).steps:
            if step.slices:
                self._sliced(step.slices, step.dims)
        for value in rest:
            if isinstance(value, Value) and not isinstance(value, FloatArray):
                self._ask(value)

    def _sliced(self, slices: Sequence[Slice], dims: Sequence[int]) -> None:
        for piece, extent in zip(slices, dims, strict=True):
            size = ONE if piece.single else piece.size
            if piece.start is ZERO and not piece.single and _term(extent) is size:
                continue
            if self.size not in names_in(_term(extent)):
                self._note(unwrapped(piece.start), False)
                self._note(unwrapped(size), False)
                continue
            width = constant(size)
            if width is None or piece.stride != 1 or not self.step:
                raise Varies("a slice along the axis", self.source())
            at, of = linear([(1, Term("name", self.step))], -1), Term("name", self.size)
            start = replaced(unwrapped(piece.start), renaming({self.step: at}))
            if set(names_in(start)) - {self.step, self.size} or not _never(
                all_of([fold("<", at, of), fold("!=", start, linear([(width, at)]))])
            ):
                raise Varies(f"a slice that starts at {piece.start}", self.source())
            _covered(self, width, of, _term(extent))

    def _element(self, value: Value) -> Term:
        """An element of integers, as a term over the step, the size and `element` names. Varies where none says it."""
        names = [f"element{d} of {n}" if isinstance(n, int) else "along" for d, n in enumerate(value.dims)]
        self.elements.update((name, n) for name, n in zip(names, value.dims, strict=True) if isinstance(n, int))
        index = tuple(ZERO if n == 1 else Term("name", name) for name, n in zip(names, value.dims, strict=True))
        try:
            term = value.number(index)
        except (Lost, UnsupportedOp):
            raise Varies("integers that are data", self.source()) from None
        return unwrapped(condition_of(term) if getattr(value.dtype, "kind", "") == "b" else term)

    def _counts(self, value: Value) -> bool:
        """Whether a number is linear in the size and the step, and in nothing else."""
        term = self._element(value)
        names = set(names_in(term))
        # a product of two numbers that are not constants is of a higher degree
        plain = all(p.op in LINEAR and (p.op != "*" or any(a.op == "int" for a in p.args)) for p in every(term))
        return bool(names) and names <= {self.size, self.step} and plain

    def _ask(self, value: BodyValue, decides: bool = False) -> None:
        """Notes that integers may not differ between two steps of a case. decides: a branch."""
        if isinstance(value, _OfData) and not decides:
            return
        if not isinstance(value, Value):
            raise Varies("a branch that data decide", self.source())
        self._note(self._element(value), decides)

    def _note(self, term: Term, decides: bool) -> None:
        names = set(names_in(term))
        if names & self.others:
            raise Varies("a step of a loop of other strides", self.source())
        if names.isdisjoint({self.size, self.step, "along"}) and not decides:
            return
        path = tuple(map(unwrapped, self.path))
        for each in (term, *path):
            odd = [n for n in names_in(each) if n not in (self.size, *self.ids, *self.elements)]
            if odd or any(part.op == "read" for part in every(each)):
                why = "a place along the axis" if "along" in odd else "a number that memory holds"
                raise Varies(f"a condition or an address of {why}", self.source())
        self.asked.setdefault((term, path), self.source())

    def decide(self) -> None:
        """Raises Varies where a term that was asked may differ within a case."""
        for (term, path), place in self.asked.items():
            if not self._same_in_each_case(term, path):
                raise Varies(f"{term} is not the same at all steps between the first and the last one", place)

    def _same_in_each_case(self, term: Term, path: Sequence[Term]) -> bool:
        names = {n for t in (term, *path) for n in names_in(t)}
        if names.isdisjoint({self.size, self.step}):
            return True
        shared: dict[str, Term] = {}
        limits: list[Term] = []
        for name in names - {self.size, self.step}:
            # names of claims about sizes are at least 1
            extent = self.elements[name] if name in self.elements else self.spans[name]
            own = Term("name", f"shared{len(shared)}")
            shared[name] = linear([(1, own)], -1)
            limits.append(fold("<=", own, Term("int", extent)))
        sides = []
        for k in range(2):
            at, of = linear([(1, Term("name", f"step{k}"))], -1), Term("name", f"blocks{k}")
            change = renaming({**shared, self.step or "no step": at, self.size: of})
            sides.append((at, of, replaced(term, change), [replaced(p, change) for p in path]))
        (_, _, one, when), (_, _, other, also) = sides
        if _is_condition(term):
            apart = any_of([all_of([one, negation(other)]), all_of([other, negation(one)])])
        else:
            apart = fold("!=", one, other)
        for case in (FIRST, MIDDLE, LAST) if self.step in names else ("",):
            there = [c for at, of, _, _ in sides for c in _in_case(case, at, of)]
            violation = all_of([*limits, *there, *when, *also, apart])
            if not _never(violation):
                return False
        return True


def _in_case(case: str, at: Term, of: Term) -> list[Term]:
    """The conditions that a step is in a case. One block alone is first and last, and is compared by itself."""
    last = linear([(1, of)], -1)
    several = fold("<", ONE, of)
    if case == FIRST:
        return [several, fold("==", at, ZERO)]
    if case == LAST:
        return [several, fold("==", at, last)]
    if case == MIDDLE:
        return [fold("<", ZERO, at), fold("<", at, last)]
    return [several]


def _never(violation: Term) -> bool:
    """Whether isl shows that no sizes make it true."""
    from layoutproof.solvers.decide import proves

    try:
        return proves(Claim({}, SizeCondition(violation)), ("isl",), effort=EFFORT)
    except (Undecided, LayoutError):
        return False


def _is_condition(term: Term) -> bool:
    return term.op in ("<", "<=", "==", "!=", "and", "or", "not") or term.op in ("true", "false")


def _is_number(value: BodyValue) -> bool:
    """Whether a value is a number of the code."""
    return _number(value) is not None


def _number(value: BodyValue) -> Fraction | None:
    """The number of the code that a value is."""
    if not isinstance(value, FloatArray) or value.dims:
        return None
    try:
        found = value.sum(())
    except UnsupportedOp:
        return None
    if found.undefined or any(m.factors or m.when or m.bound for m in found.numbers):
        return None
    return sum((m.coefficient for m in found.numbers), Fraction(0))


def _whole(value: BodyValue) -> Term | None:
    """An integer that a term says, as a float: of the code, or of sizes."""
    if isinstance(value, _Sized):
        return value.term
    known = _number(value)
    return Term("int", int(known)) if known is not None and known.denominator == 1 else None


def _shifted(name: str, operands: Sequence[BodyValue]) -> Term | None:
    """The term of a number of blocks that is moved, or more or less than a constant."""
    terms = list(map(_whole, operands))
    if any(t is None for t in terms):
        return None
    if name in ("add", "sub"):
        return linear([(1, terms[0]), (1 if name == "add" else -1, terms[1])])  # type: ignore[list-item]
    return terms[0] if name in MOVES or name == "convert_element_type" else None


def _compared(name: str, operands: Sequence[BodyValue]) -> Term | None:
    """Two such numbers compared; None where it is no comparison, or no term says them."""
    terms = list(map(_whole, operands))
    if len(terms) != 2 or terms[0] is None or terms[1] is None:
        return None
    one, other = terms[0], terms[1]
    if name in ("lt", "gt"):
        return fold("<", *((one, other) if name == "lt" else (other, one)))
    if name in ("le", "ge"):
        return fold("<=", *((one, other) if name == "le" else (other, one)))
    return None


def _dims(aval: Aval) -> tuple[int, ...]:
    # as of `dims_of`
    return tuple(n if isinstance(n, int) else size_term(dimension(n)) for n in getattr(aval, "shape", ()))  # type: ignore[misc]


def _sized(variable: Variable, degree: int, term: Term | None) -> _Sized:
    def element(index: tuple[Term, ...]) -> Sum:
        raise UnsupportedOp("a number of blocks")

    found = _Sized(_dims(variable.aval), variable.aval.dtype, element)
    found.degree, found.term = degree, term
    return found


def _kernel(on: _Steps, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    """A Pallas call whose grid grows along one axis."""
    params = equation.params
    mapping = params["grid_mapping"]
    on.kernels += 1
    if on.kernels > 1 or on.found:
        raise Varies("more than one kernel", on.source())
    if mapping.tables or params.get("input_output_aliases"):
        raise Varies("tables, or outputs that take the place of inputs,", on.source())
    grid, axis = _grid(on, mapping, operands)
    names = [on.named("p") for _ in grid]
    ids = [Term("name", name) for name in names]
    on.step, on.ids = names[axis] if axis >= 0 else "", frozenset(names)
    on.spans = {name: int(n.args[0]) for k, (name, n) in enumerate(zip(names, grid, strict=True)) if k != axis}
    extents = [bounds(n) for n in grid]
    spans = [(0, max(high - 1, 0)) for _, high in extents]
    reduced = True
    for k, block in enumerate(mapping.windows):
        along = _goes_along(on, block, starts_of(on, block, ids, spans))
        reduced = reduced and not (along and k >= mapping.inputs)
    if axis >= 0 and not reduced and not mapping.scratch:
        raise Varies("no state that the programs keep", on.source())
    before, on.programs = on.memory, (ids, grid, spans, extents, mapping.counted)
    on.run(params["jaxpr"], _references(on, params["jaxpr"]))
    on.memory, on.programs = before, None
    if axis >= 0:
        if on.found:
            raise Varies("a loop along the axis in a kernel whose grid goes along it", on.source())
        on.found.append(Uniform(axis, reduced))
    return [refused("data", _dims(v.aval), v.aval.dtype) for v in equation.outvars]


def _grid(on: _Steps, mapping: Grid, operands: Sequence[BodyValue]) -> tuple[list[Term], int]:
    """The extents of a grid, and which axis grows; -1 where none does, and a loop inside of each program does."""
    dynamic = iter(as_array(value).number() for value in operands[: mapping.dynamic])
    grid = [Term("int", n) if type(n) is int else next(dynamic) for n in mapping.extents]
    grows = [k for k, n in enumerate(grid) if n.op != "int"]
    if grows and (len(grows) != 1 or grid[grows[0]] is not Term("name", on.size)):
        raise Varies(f"a grid of {', '.join(map(str, grid))} programs", on.source())
    return grid, grows[0] if grows else -1


def _references(on: _Steps, body: Program) -> list[View]:
    """The memory of a kernel, the only one while it is read: floats in it are data."""
    on.memory = {}
    name = on.named("call")
    avals = [replace(v.aval, shape=_dims(v.aval)) for v in body.invars]
    refs = [reference_of(on, aval, f"{name}.{k}", "scratch") for k, aval in enumerate(avals)]
    for view, aval in zip(refs, avals, strict=True):
        if is_float_memory(aval):
            on.memory[view.reference.name] = refused("data", dims_of(aval), aval.dtype)
    return refs


def is_float_memory(aval: MemRefType) -> bool:
    """Whether a reference is to floats."""
    return elementwise.kind_of(getattr(aval, "dtype", bool)) == "f" and aval.memory != "semaphore"


def _carried(equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    """The initial carried values of a loop."""
    if equation.primitive.name == "scan":
        consts, carry = scan_parts(equation)
        return operands[consts : consts + carry]
    if equation.primitive.name == "while":
        return operands[int(equation.params["cond_nconsts"]) + int(equation.params["body_nconsts"]) :]
    return []


def _while(on: _Steps, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    """A loop of as many steps as there are blocks is read for one of them, and no first ones are run before."""
    p = equation.params
    first, second = int(p["cond_nconsts"]), int(p["body_nconsts"])
    fixed, inits = operands[first : first + second], operands[first + second :]
    adds = steps_of(on, p["body_jaxpr"], second, len(inits))
    try:
        steps, most = trips(on, p["cond_jaxpr"], operands[:first], inits, adds)
    except UnsupportedOp:
        raise Varies("a loop whose end is no number", on.source()) from None
    if on.size not in names_in(steps):
        return LOOPS["while"](on, equation, operands)
    return looped(on, steps, inits, adds, most, lambda slots, t: on.run(p["body_jaxpr"], [*fixed, *slots]))[0]


def _scan(on: _Steps, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    if equation.params.get("reverse") and not isinstance(equation.params["length"], int):
        raise Varies("a loop from the last block to the first", on.source())
    return LOOPS["scan"](on, equation, operands)


def _term(extent: int | Term) -> Term:
    return extent if isinstance(extent, Term) else Term("int", extent)


def _goes_along(on: _Steps, block: Window, starts: Sequence[tuple[str, Term]]) -> bool:
    """Whether a window goes along the axis, block by block over all of the array; it may stay where it is."""
    if not block.windowed:
        raise Varies("a copy by hand", on.source())
    along = False
    for (kind, start), (_, extent, _), n in zip(starts, block.block, _dims(block.aval), strict=True):
        start = unwrapped(start)
        step = Term("name", on.step)
        width = 1 if kind == "squeezed" else extent
        if not isinstance(width, int):
            # all of it
            if start is not ZERO or _term(n) is not size_term(dimension(width)):
                raise Varies("a block whose size is a name", on.source())
            continue
        moves = on.step in names_in(start)
        grows = isinstance(n, Term) and on.size in n.names()
        if not moves and not grows and on.size not in names_in(start):
            continue
        if kind not in ("blocked", "squeezed") or start is not fold("*", step, Term("int", width)):
            raise Varies(f"a block that starts at {start}", on.source())
        _covered(on, width, Term("name", on.size), _term(n))
        along = True
    return along


def _covered(on: _Steps, width: int, blocks: Term, size: Term) -> None:
    """That blocks of a width are as many as an extent has, the last of them ragged or whole."""
    beyond = any_of([
        fold("<", linear([(width, blocks)]), size), fold("<=", size, linear([(width, blocks)], -width))
    ])  # fmt: skip
    if on.size not in names_in(size) or not _never(beyond):
        raise Varies(f"{blocks} blocks of {width} along an extent of {size}", on.source())
