"""One pass over a body: every equation becomes values, effects, or a named refusal.

The equations are those of an `ir.program.Program` from any front end. Each primitive is in one file, by family; an
unknown primitive is refused by name: its results are lost and perhaps undefined, and where it touches a reference
nothing is proved of the body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from layoutproof.bodies import (
    arithmetic,
    atomics,
    choosing,
    control,
    copies,
    gpus,
    invariants,
    memory,
    mosaic_gpu,
    packing,
    problems,
    programs,
    reductions,
    shapes,
    subcores,
)
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import (
    Access,
    Body,
    BodyReference,
    Carried,
    Effect,
    GpuInstruction,
    Handed,
    KeptEntry,
    Loop,
    Mask,
    Slice,
    Spot,
    Unknown,
    View,
    ViewStep,
    stored_names,
    writes_to,
)
from layoutproof.bodies.integers import applied, condition_of, literal, number_of
from layoutproof.bodies.order import operand_of, padding, seen, start_of
from layoutproof.bodies.passes import BodyValue, Rule, as_array
from layoutproof.bodies.terms import names_in, renaming, replaced
from layoutproof.bodies.values import DEEPEST, Index, Lost, Value, again, dims_of, maybe
from layoutproof.core.budget import budget, spend
from layoutproof.core.element_types import integer_range
from layoutproof.core.errors import BudgetExceeded, shorten
from layoutproof.core.folding import FALSE, TRUE, all_of, any_of, constant, folded, negation
from layoutproof.core.message import Template, message_of, restated
from layoutproof.core.term import ZERO, Term, fixed
from layoutproof.ir.program import Dtype, Equation, Literal, MemRefType, Program, Variable
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.kernel.scalar_memory import is_table

Begin = tuple[tuple[str, tuple[Term, ...]], ...]
"""Memory by name that is filled with zeros when a program begins, each under its conditions."""
STEPS, PER_EQUATION = 1_000_000, 20
"""The budget for reading one body, and what an equation takes of it."""
INVARIANTS = 1_000_000
"""The budget for looking for what all of its loops keep: where it is spent, of further loops nothing is known."""
MOST_EQUATIONS = 400_000
"""Equations that are looked at, loops once each; then the body is over budget."""

PRIMITIVES: Mapping[str, Rule] = {
    **arithmetic.PRIMITIVES,
    **shapes.PRIMITIVES,
    **reductions.PRIMITIVES,
    **memory.PRIMITIVES,
    **atomics.PRIMITIVES,
    **control.PRIMITIVES,
    **copies.PRIMITIVES,
    **programs.PRIMITIVES,
    **packing.PRIMITIVES,
    **choosing.PRIMITIVES,
    **subcores.PRIMITIVES,
    **mosaic_gpu.PRIMITIVES,
    **gpus.PRIMITIVES,
}
"""Primitive -> (interpreter, equation, operands) -> results."""

LOGIC = ("and", "or", "xor", "eq", "ne")
"""Primitives that combine truth values."""

COMPARED: Mapping[str, tuple[str, bool, bool]] = {
    "lt": ("lt", False, False),
    "gt": ("lt", True, False),
    "le": ("le", False, False),
    "ge": ("le", True, False),
    "eq": ("eq", False, False),
    "ne": ("eq", False, True),
}
"""Comparisons: by which they are said, whether of the sides exchanged, and whether it is false where they hold."""

REPEATED = frozenset(
    (
        *arithmetic.PRIMITIVES, *shapes.PRIMITIVES, *reductions.PRIMITIVES, *packing.PRIMITIVES, *choosing.PRIMITIVES,
        *programs.NUMBERS,
    )
)  # fmt: skip
"""Primitives that give the same again where they are applied to the same."""

REFUSED: Mapping[str, Template] = {
    "device_id": problems.UNMODELLED_DEVICES,
    "core_barrier": problems.UNMODELLED_CORES,
    "emit_pipeline": problems.UNMODELLED_PIPELINE,
    "pipeline_body": problems.UNMODELLED_PIPELINE,
    "threefry2x32": problems.UNMODELLED_RANDOM_NUMBERS,
    "random_bits": problems.UNMODELLED_RANDOM_NUMBERS,
    "random_seed": problems.UNMODELLED_RANDOM_NUMBERS,
    "random_split": problems.UNMODELLED_RANDOM_NUMBERS,
    "random_fold_in": problems.UNMODELLED_RANDOM_NUMBERS,
    "random_wrap": problems.UNMODELLED_RANDOM_NUMBERS,
    "random_unwrap": problems.UNMODELLED_RANDOM_NUMBERS,
    "jaxpr_call": problems.UNMODELLED_KERNEL_IN_KERNEL,
    "ragged_dot_general": problems.UNMODELLED_GROUPED_PRODUCT,
    "prng_split": problems.UNMODELLED_RANDOM_NUMBERS,
    "prng_join": problems.UNMODELLED_RANDOM_NUMBERS,
    "scatter": problems.UNMODELLED_SCATTER,
    "scatter-add": problems.UNMODELLED_SCATTER,
    "conv": problems.UNMODELLED_CONVOLUTION,
    "conv_general_dilated": problems.UNMODELLED_CONVOLUTION,
    "matmul_push_rhs": problems.UNMODELLED_MATRIX_UNIT,
    "matmul_acc_lhs": problems.UNMODELLED_MATRIX_UNIT,
    "matmul_pop": problems.UNMODELLED_MATRIX_UNIT,
    "sc_fetch_and_add": problems.UNMODELLED_SUBCORE_MEMORY,
    "async_prefetch": problems.UNMODELLED_CACHE_PREFETCH,
    "async_store_smem": problems.UNMODELLED_CLUSTER_MEMORY,
    "barrier_test": problems.UNMODELLED_BARRIER_TEST,
    "mgpu_atomic_store": problems.UNMODELLED_ATOMIC_STORE,
    "semaphore_signal_parallel": problems.UNMODELLED_MULTI_GPU_SEMAPHORE,
    "griddepcontrol_wait": problems.UNMODELLED_DEPENDENT_LAUNCH,
    "griddepcontrol_launch_dependents": problems.UNMODELLED_DEPENDENT_LAUNCH,
}
"""Primitives that are known and not modelled, and why. Their results are lost, and perhaps undefined."""


Found = TypeVar("Found")


class Interpreter:
    """The state of one pass.

    kernel: whose body it is.  constant: of references that show entries of a table to which nothing stores, how they
    are a view of it.  whole: those that hold nothing undefined, and to which nothing stores.  steady: those to which
    nothing stores while a program runs.  induction: whether invariants of loops are looked for.  version: of JAX, for
    messages on unknown forms.  forwards: whether data that a copy has brought from a table is known by its name there;
    forwarded: memory, the loop, and the effect at which that was assumed of a copy outside of the loop.
    warps: of an axis of warps (`WarpMesh`) the number of the warp that is looked at.  units: as of `effects.Body`.
    """

    def __init__(
        self,
        kernel: Kernel,
        constant: Mapping[str, View] = MappingProxyType({}),
        whole: frozenset[str] = frozenset(),
        steady: frozenset[str] = frozenset(),
        induction: bool = True,
        version: str = "",
    ) -> None:
        self.forwards = True
        self.forwarded: list[tuple[BodyReference, Loop, int]] = []
        self.version = version
        self.induction = induction
        self.kernel = kernel
        self.grid = kernel.grid
        self.names = kernel.grid_names
        self.counted = kernel.counted
        self.constant = constant
        self.whole = whole
        self.steady = steady
        self.effects: list[Effect] = []
        self.writes: dict[BodyReference, list[tuple[Effect, View]]] = {}
        self.writes_to_here = 0
        self.references: list[BodyReference] = []
        self.unknowns: dict[str, Unknown] = {}
        self.definitions: dict[str, Term] = {}
        self.loads: dict[str, Table] = {}
        self.carried: dict[str, Carried] = {}
        self.handed: list[Handed] = []
        self.masks: list[Mask] = []
        self.witnesses: dict[str, int] = {}
        self.refused: dict[tuple[str, str], None] = {}
        self.beyond: set[str] = set()
        self.facts: list[Term] = []
        self.goes_on: dict[str, Term] = {}
        self.doubts: dict[str, Value] = {}
        self.kept: dict[str, KeptEntry] = {}
        self.multiples: list[tuple[Term, int, Spot]] = []
        self.checks: list[tuple[Term, Spot]] = []
        self.barriers: list[Spot] = []
        self.instructions: list[GpuInstruction] = []
        self.asks: set[str] = set()
        self.warps: dict[str, Term] = {}
        self.units = ""
        self.path: tuple[Term, ...] = ()
        self.loops: tuple[Loop, ...] = ()
        self.equation: Equation | None = None
        self._around: tuple[Equation | None, ...] = ()
        self.scope = ""
        self._used: frozenset[Any] = frozenset()
        self.first_loads: dict[tuple[object, ...], str] = {}
        self._same: dict[tuple[object, ...], object] = {}
        self._fixed: set[object] = set()
        self._data: dict[object, Term] = {}
        self._made = 0
        self._seen = 0
        self._left = INVARIANTS

    # made by families

    def named(self, prefix: str) -> str:
        """A name that is not used yet."""
        self._made += 1
        return f"{prefix}{self._made}"

    def spot(self) -> Spot:
        """Where the pass is."""
        return Spot(len(self.effects), self.path, self.loops, self.source(), self.scope)

    def source(self) -> str:
        """`file:line` of the equation that is looked at, or of the one that it is in where JAX wrote it."""
        inward = (*self._around, self.equation)
        return next((place for e in reversed(inward) if e is not None and (place := str(e.source))), "")

    def searched(self, look: Callable[[], dict[str, Found]]) -> dict[str, Found]:
        """The invariants of numbers that a loop carries, by name; none where the steps for it are spent."""
        if not self.induction or self._left <= 0:
            return {}
        with budget(self._left) as mine, suppress(BudgetExceeded):
            try:
                return look()
            finally:
                self._left = mine.left
        return {}

    def witness(self, extent: int) -> Term:
        """A name for "some k from 0 to extent - 1"."""

        def made() -> Term:
            name = self.named("some")
            self.witnesses[name] = extent
            return Term("name", name)

        return again(made)

    def apart(self, index: Index, conditions: Sequence[Term]) -> list[Term]:
        """Conditions on one element that hold together, each with its names for "some k"; those of the index stay."""
        whole = list(dict.fromkeys(conditions))
        outer = {name for term in index for name in names_in(term)}
        taken: set[str] = set()
        for k, condition in enumerate(whole):
            mine = [name for name in names_in(condition) if name in self.witnesses and name not in outer]
            new = {name: self.witness(self.witnesses[name]) for name in mine if name in taken}
            whole[k] = replaced(condition, renaming(new)) if new else condition
            taken.update(mine)
        return whole

    def unknown(self, why: str, dtype: Dtype) -> Term:
        """A number that no term says, of any value that its type holds."""
        return self.any_number(self.named("any"), why, dtype, self.source(), fixed=not self.loops)

    def any_number(
        self, name: str, why: str, dtype: Dtype, source: str, facts: Sequence[Term] = (), fixed: bool = False
    ) -> Term:
        """The name as a number of any value that its type holds, and of which the facts are true."""
        bits, kind = 8 * int(getattr(dtype, "itemsize", 4)), getattr(dtype, "kind", "i")
        low, high = (0, 2) if kind == "b" else integer_range(bits, kind != "u")
        self.unknowns[name] = Unknown(name, low, high, why, source, tuple(facts), fixed)
        return Term("name", name)

    def scalar(self, value: Value, dtype: Dtype | None = None) -> Term:
        """A single number as a term, an unknown where no term says it."""
        try:
            return value.number()
        except Lost as lost:
            return self._of_data(value, str(lost), value.dtype if dtype is None else dtype)

    def same(self, what: tuple[object, ...]) -> object:
        """An object that stands for a key: the same one for equal keys."""
        if what not in self._same:
            self._same[what] = object()
            if not self.loops:
                self._fixed.add(self._same[what])
        return self._same[what]

    def _which(self, value: Value) -> object:
        if value.same is None:
            value.same = self.same(("value", len(self._same)))
        return value.same

    def _of_data(self, value: Value, why: str, dtype: Dtype, depth: int = 0) -> Term:
        """A single number that data decide, by one name wherever it is the same one, and what is computed of it."""
        which = self._which(value)
        if which not in self._data:
            self._data[which] = self._computed(value, why, depth) or self._any_of_data(value, why, dtype)
        return self._data[which]

    def _any_of_data(self, value: Value, why: str, dtype: Dtype) -> Term:
        term = self.any_number(self.named("any"), why, dtype, self.source(), fixed=self._which(value) in self._fixed)
        if not value.defined:
            self.doubts[term.args[0]] = value
        return Term("!=", term, ZERO) if getattr(value.dtype, "kind", "") == "b" else term

    def _computed(self, value: Value, why: str, depth: int) -> Term | None:
        """A truth value that is computed of others, or compares two numbers, or stands for one; None of others.

        Of what decides nothing where another part is false it does not count that it is undefined: that is said of the
        whole alone.
        """
        name, operands = value.made or ("", ())
        truths = [o.dtype.kind == "b" for o in operands] if name and not any(o.dims for o in operands) else []
        logic = name in ("not", "convert_element_type") or (
            name in LOGIC and all(o.defined or o.known for o in operands)
        )
        if depth < DEEPEST and logic and truths and all(truths):
            parts = [self._part(operand, depth + 1) for operand in operands]
            if name == "convert_element_type":
                return number_of(parts[0]) if value.dtype.kind in "iu" else None
            return folded(condition_of(applied(name, parts, operands[0].dtype)))
        if name not in COMPARED or not truths or any(truths):
            return None
        if all(operand.dtype.kind in "iu" for operand in operands):
            return folded(applied(name, [self._part(o, depth + 1) for o in operands], operands[0].dtype))
        # of floats x < y and y <= x are both false where one is no number: neither says the other
        said, turned, opposite = COMPARED[name]
        left, right = reversed(operands) if turned else operands
        sides = self._which(left), self._which(right)
        which = self.same((said, frozenset(sides) if said == "eq" else sides))
        if which not in self._data:
            self._data[which] = self._any_of_data(value, why, value.dtype)
        return negation(self._data[which]) if opposite else self._data[which]

    def _part(self, value: Value, depth: int) -> Term:
        try:
            return value.number()
        except Lost as lost:
            return self._of_data(value, str(lost), value.dtype, depth)

    def is_used(self, variable: Variable) -> bool:
        """Whether a result of the current equation is used."""
        return variable in self._used

    def refuse(self, what: str) -> None:
        """Something that is not modelled happens here."""
        self.refused.setdefault((what, self.source()))

    @contextmanager
    def under(self, *conditions: Term) -> Iterator[None]:
        """Within it, effects happen only where these hold."""
        before, self.path = self.path, (*self.path, *(c for c in map(folded, conditions) if c is not TRUE))
        try:
            yield
        finally:
            self.path = before

    @contextmanager
    def inside(self, loop: Loop) -> Iterator[None]:
        """Within it, effects happen in every iteration of a loop."""
        before, self.loops = self.loops, (*self.loops, loop)
        try:
            yield
        finally:
            self.loops = before

    def zero(self, reference: BodyReference, conditions: Sequence[Term]) -> None:
        """Fills memory with zeros where some conditions hold."""
        with self.under(*conditions):
            zeros = Value(reference.dims, _Kind(float), "a zero")
            self.effects.append(Access("write", View(reference), self.spot(), zeros))

    # the pass

    def run(self, inner: Program, arguments: Sequence[BodyValue]) -> list[Any]:
        """The results of a program for some values and views; its effects are noted."""
        consts = zip(inner.constvars, inner.consts, strict=False)
        values: dict[Any, Any] = {variable: self.constant_value(value) for variable, value in consts}
        values.update(zip(inner.given, arguments, strict=True))
        for equation in inner.eqns:
            self._seen += 1
            spend(PER_EQUATION)
            if self._seen > MOST_EQUATIONS:
                raise BudgetExceeded(problems.MOST_EQUATIONS(MOST_EQUATIONS))
            outer = self.equation, self._used, self.scope
            self._around = (*self._around, self.equation)
            self.equation, self._used, self.scope = equation, inner.used, equation.scope or self.scope
            results = self._results(equation, [self._value(atom, values) for atom in equation.invars])
            self.equation, self._used, self.scope = outer
            self._around = self._around[:-1]
            values.update(zip(equation.outvars, results, strict=True))
        return [self._value(atom, values) for atom in inner.outvars]

    def constant_value(self, value: Any) -> Value:
        """A number or an array that is known when tracing."""
        dims = dims_of(value)
        dtype = getattr(value, "dtype", None) or _Kind(type(value))
        if not dims and getattr(dtype, "kind", "") in "iub":
            try:
                term = folded(literal(value))
            except TypeError:
                # a value that a pipeline's body captures may be a constant of an inner function
                return Value(dims, dtype, problems.VALUE_AROUND_PIPELINE())
            known = constant(term)
            found = Value(dims, dtype, lambda index: term, span=None if known is None else (known, known))
        elif dims:
            return Value(dims, dtype, problems.CODE_ARRAY())
        else:
            found = Value(dims, dtype, problems.CODE_NUMBER())
        found.same = self.same(("constant", str(getattr(value, "dtype", type(value))), repr(value)))
        return found

    def _value(self, atom: Variable | Literal, values: Mapping[Variable, BodyValue]) -> BodyValue:
        return self.constant_value(atom.val) if hasattr(atom, "val") else values[atom]

    def _results(self, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
        name = equation.primitive.name
        make = PRIMITIVES.get(name)
        if name in mosaic_gpu.NOT_EVERYWHERE:
            self.instructions.append(GpuInstruction(name, self.spot()))
        try:
            if make is None:
                why = REFUSED[name]() if name in REFUSED else ""
                of = f" of {self.version}" if self.version and not why else ""
                said = problems.PRIMITIVE(name)
                raise UnsupportedOp(restated(f"{said} ({why})" if why else f"{said}{of}", said, why=why))
            return self._noted(equation, operands, self._made_by(make, equation, operands))
        except UnsupportedOp as problem:
            addressed = any(isinstance(o, View) for o in operands)
            made = any(isinstance(v.aval, MemRefType) for v in equation.outvars)
            if addressed or made or equation.effects:
                self.refuse(message_of(problem))
                self.beyond |= {o.reference.name for o in operands if isinstance(o, View)}
            return lost(self, equation, operands, message_of(problem))

    def _noted(
        self, equation: Equation, operands: list[BodyValue], results: Sequence[BodyValue]
    ) -> Sequence[BodyValue]:
        """Results of which it is said what they are: the same operation of the same gives the same."""
        name = equation.primitive.name
        if name in REPEATED and all(isinstance(one, Value) for one in (*operands, *results)):
            given = [as_array(operand) for operand in operands]
            what = (name, str(equation.params), *map(self._which, given))
            for k, (result, variable) in enumerate(zip(map(as_array, results), equation.outvars, strict=True)):
                if result.same is None:
                    result.same = self.same((*what, k, dims_of(variable.aval), str(variable.aval.dtype)))
                    result.made = name, tuple(given)
        return results

    def _made_by(self, make: Rule, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
        try:
            return make(self, equation, operands)
        except (KeyError, AttributeError, TypeError, ValueError, IndexError) as error:
            # a parameter that this version of JAX has in another form: this equation is unknown, and no other
            said = f"{type(error).__name__}: {shorten(' '.join(str(error).split()), 80)}"
            known = f"{self.version} has it" if self.version else "it is here"
            raise UnsupportedOp(problems.PRIMITIVE_FORM(equation.primitive.name, known, said)) from None


class _Kind:
    """The element type of a plain Python number."""

    def __init__(self, kind: type) -> None:
        self.kind = {bool: "b", int: "i"}.get(kind, "f")
        self.itemsize = 4


def lost(on: Interpreter, equation: Equation, operands: Sequence[BodyValue], why: str) -> list[Value]:
    """Results of which nothing is known: numbers are lost, and undefined where any element of any operand may be."""

    def undefined(index: Index) -> Term:
        parts = []
        for operand in operands:
            if isinstance(operand, Value) and not operand.defined:
                parts.append(operand.undefined(tuple(on.witness(extent) for extent in operand.dims)))
        return all_of([any_of(parts), maybe(why)])

    return [Value(dims_of(v.aval), v.aval.dtype, why, undefined) for v in equation.outvars]


def body_of(
    program: Program,
    references: Sequence[BodyReference],
    kernel: Kernel,
    arguments: Sequence[BodyValue] | None = None,
    version: str = "",
    begin: Begin = (),
) -> Body:
    """The body of a kernel. references: its arguments, in order; kernel: its grid and its tables.

    arguments: of the program, where they are not references alone: views of them, and values.  version: of JAX, for
    messages.  begin: the memory that is filled with zeros before.
    Raises BudgetExceeded for bodies that are too long.
    """
    with budget(STEPS):
        return _read(program, references, kernel, arguments, version, begin)


def _read(
    program: Program,
    references: Sequence[BodyReference],
    kernel: Kernel,
    arguments: Sequence[BodyValue] | None,
    version: str,
    begin: Begin,
) -> Body:
    tables = {r.name: view for r in references if (view := _of_table(kernel, r)) is not None}

    whole = frozenset(r.name for r in references if _is_whole(kernel, r))
    shared = {kernel.inputs[k].name for k, _ in kernel.aliases if k >= 0}
    given = frozenset(r.name for r in references if r.role in ("in", "prefetch") and r.name not in shared)
    stored: frozenset[str] = frozenset()
    beyond: frozenset[str] = frozenset()

    def passed(
        constant: Mapping[str, View], whole: frozenset[str], induction: bool, forwards: bool = True
    ) -> Interpreter:
        on = Interpreter(kernel, constant, whole, given - stored, induction, version)
        on.forwards, on.beyond = forwards, set(beyond)
        on.references = list(references)
        for name, conditions in begin:
            on.zero(next(r for r in references if r.name == name), conditions)
        on.run(program, [View(reference) for reference in references] if arguments is None else list(arguments))
        if on.units:
            try:
                control.check_units(on)
            except UnsupportedOp as problem:
                on.refuse(message_of(problem))
        if any(_stored_again(on.effects, *each) for each in on.forwarded):
            return passed(constant, whole, induction, forwards=False)
        return on

    if tables:
        # a table that the body writes to is no constant, and what was read of it no entry of a table
        stored = stored_names(passed({}, frozenset(), False).effects)
        tables = {name: view for name, view in tables.items() if name not in stored}
        whole -= stored
    on = passed(tables, whole, True)
    if on.beyond:
        # what touches memory and is not modelled may change it, another subcore's at any time: what is stored there
        # or was there before is not known to be there, wherever it is loaded
        beyond = frozenset(on.beyond)
        stored, whole = stored | beyond, whole - beyond
        tables = {name: view for name, view in tables.items() if name not in beyond}
        on = passed(tables, whole, True)
    before, stored = stored, stored_names(on.effects) | beyond
    if (stored - before) & (whole | given):
        # a store into an input's window may be undefined, and replaces its values
        on = passed(tables, whole - stored, True)
    body = Body(
        tuple(on.references),
        tuple(on.effects),
        on.unknowns,
        on.definitions,
        on.loads,
        on.carried,
        on.witnesses,
        tuple(on.refused),
        tuple(on.multiples),
        tuple(on.facts),
        on.goes_on,
        on.doubts,
        handed=tuple(on.handed),
        masks=tuple(on.masks),
        checks=tuple(on.checks),
        barriers=tuple(on.barriers),
        asks=frozenset(on.asks),
        beyond=frozenset(on.beyond),
        units=on.units,
        instructions=tuple(on.instructions),
    )
    body = replace(body, loads={**body.loads, **invariants.bounded_in_scratch(kernel, body)})
    return replace(body, kept=invariants.kept_in_memory(kernel, body))


def _stored_again(effects: Sequence[Effect], reference: BodyReference, loop: Loop, number: int) -> bool:
    """Whether an iteration of a loop stores to memory after effect `number`, which looked at what was there before."""
    later = (e for e in effects[number:] if loop in e.spot.loops)
    return any(view.reference is reference for e in later if (view := writes_to(e)) is not None)


def _of_table(kernel: Kernel, reference: BodyReference) -> View | None:
    """An argument as a view of the table whose entries it shows; None where it shows none.

    It is a scalar-prefetch operand, a block of an input of integers (`scalar_memory.is_table`), or any one block in
    scalar memory that all programs see.
    """
    if reference.role != "in":
        return View(reference) if reference.role == "prefetch" else None
    operand = kernel.operands[reference.position]
    if not is_table(kernel, operand):
        seen_alike = reference.memory == "smem" and all(term.op == "int" for term in operand.terms())
        return View(reference) if seen_alike else None
    if tuple(operand.block[k].size for k in seen(operand)) != reference.dims:
        return None
    slices = tuple(
        Slice(start_of(operand, k), Term("int", block.size), single=block.kind == "squeezed")
        for k, block in enumerate(operand.block)
    )
    dims = tuple(map(int, fixed(operand.dims)))
    return View(reference, (ViewStep("slices", dims, reference.dims, slices),) if slices else ())


def _is_whole(kernel: Kernel, reference: BodyReference) -> bool:
    """Whether all of an argument is defined when a program begins: it is filled, and nothing of a window is padding."""
    operand = operand_of(kernel, reference)
    at = tuple(Term("name", f"at{k}") for k in range(len(reference.dims)))
    if reference.role == "prefetch":
        return True
    if reference.role != "in" or operand is None or operand.unfilled or operand.partly:
        return False
    return padding(operand, at) is FALSE
