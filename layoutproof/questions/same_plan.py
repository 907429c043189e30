"""The plan of an `lp.same` comparison: frozen data, complete before any question is asked; and the same, traced.

A plan says which two functions, of which arrays, given or drawn, at which sizes, and under which assumptions. A pair is
what JAX makes of it at some sizes: two programs of one list of arrays. For gradients these are other functions, and
have the cotangents as further arrays; the rest of the code does not distinguish them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from layoutproof.core.dimensions import dimension
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.message import located
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import symbols_of
from layoutproof.ir.program import Atom, Program, programs_in
from layoutproof.questions import problems
from layoutproof.values import meshes
from layoutproof.values.control import called
from layoutproof.values.elementwise import kind_of
from layoutproof.values.pair import Input

if TYPE_CHECKING:
    from jax import ShapeDtypeStruct
    from jax.extend.core import ClosedJaxpr
    from jax.sharding import Sharding
    from jax.typing import ArrayLike

Call = Callable[..., list[Any]]


@dataclass(frozen=True)
class Plan:
    """The two functions that are compared, their inputs and sizes.

    names: of the function and of its reference.  calls: both, of the arrays alone, giving their outputs as a list.
    halved: with `reduced`, whether extents are halved until a walk is short, and not made as small as kernels allow.
    arrays: those among the arguments; sizes that are names mean all of them.  the rest: as of `lp.same`, `assume`
    without what it says of arrays that are drawn.
    """

    names: tuple[str, str]
    calls: tuple[Call, Call]
    arrays: tuple[Input, ...]
    assume: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    outputs: tuple[int, ...] | None = None
    points: int = 3
    target: str | None = None
    gradient: bool = False
    relations: bool = True
    reduced: bool = False
    halved: bool = False

    @property
    def shapes(self) -> list[tuple[Any, ...]]:
        """Of the arrays."""
        return [i.shape for i in self.arrays]

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that are names."""
        return tuple(dict.fromkeys(symbols_of(dimension(n) for shape in self.shapes for n in shape)))

    def at(self, shapes: Sequence[tuple[Any, ...]]) -> Plan:
        """The same of arrays of other shapes."""
        return replace(
            self, arrays=tuple(replace(i, shape=shape) for i, shape in zip(self.arrays, shapes, strict=True))
        )

    def sized(self, sizes: Mapping[str, int]) -> Plan:
        """The same with numbers for the sizes that are names, and without the conditions on them."""
        on = Numbers(sizes)
        return replace(self.at([tuple(int(on.size(dimension(n))) for n in s) for s in self.shapes]), where=())


@dataclass(frozen=True)
class TracedPair:
    """A plan, traced. arrays: the inputs, drawn or given.  call: the function asked about.  jaxprs: its, the
    reference's.

    programs: these, as they are read.  outputs: positions of those that are compared, None for all.  retrace: the
    reference at other shapes of the arrays, None where it cannot be traced there.
    """

    arrays: tuple[Input, ...]
    call: Call
    jaxprs: tuple[Any, Any]
    programs: tuple[Program, Program]
    outputs: tuple[int, ...] | None
    retrace: Callable[[list[tuple[int, ...]]], Program | None]

    def with_tables(self) -> tuple[Call, list[ShapeDtypeStruct]]:
        """(The function of the arrays without a given value, their shapes): given values are constants."""
        drawn = [k for k, i in enumerate(self.arrays) if i.value is None]

        def call(*values: ArrayLike) -> list[ArrayLike]:
            filled: list[Any] = [i.value for i in self.arrays]
            for k, value in zip(drawn, values, strict=True):
                filled[k] = value
            return self.call(*filled)

        return call, _structs([self.arrays[k] for k in drawn])


@contextlib.contextmanager
def planned(
    kernel: Callable[..., Any] | str,
    reference: Callable[..., Any] | str,
    args: Sequence[Any],
    inputs: Callable[[], Any] | str | None,
    assume: Sequence[str],
    **rest: Any,
) -> Iterator[Plan]:
    """The plan of what a user asks, while the modules of functions that are given as places can be found.

    Arguments as of `lp.same`; rest: the fields of `Plan` that are as there. Raises LayoutError for an invalid question.
    """
    from layoutproof.pallas.from_jax.adapter import need_jax
    from layoutproof.pallas.from_jax.user import arguments, named_function

    points = rest.get("points")
    if not isinstance(points, int) or not 1 <= points <= 100:
        raise LayoutError(problems.POINTS(shorten(repr(points), 40)))
    jax = need_jax()
    with contextlib.ExitStack() as stack:

        def function(given: Callable[..., object] | str) -> Callable[..., object]:
            return given if callable(given) else stack.enter_context(named_function(str(given)))

        functions = [function(f) for f in (kernel, reference)]
        if inputs is not None:
            if args:
                raise LayoutError(problems.ARGUMENTS_TWICE())
            args = _made(function(inputs), inputs)
        given = tuple(arguments(args))
        paths, tree = jax.tree_util.tree_flatten_with_path(given)
        leaves = [leaf for _, leaf in paths]
        at = [k for k, leaf in enumerate(leaves) if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]
        arrays = [
            Input(
                f"args{jax.tree_util.keystr(paths[k][0])}", tuple(leaf.shape), leaf.dtype, _known(leaf),
                sharding=_sharding(leaf),
            )
            for k, leaf in enumerate(leaves) if k in at
        ]  # fmt: skip
        bounded, others = _bounded(arrays, assume)

        def flat(function: Callable[..., object]) -> Call:
            def call(*values: ArrayLike) -> list[ArrayLike]:
                filled = list(leaves)
                for k, value in zip(at, values, strict=True):
                    filled[k] = value
                return list(jax.tree_util.tree_leaves(function(*jax.tree_util.tree_unflatten(tree, filled))))

            return call

        plan = Plan(
            (_name(kernel), _name(reference)), (flat(functions[0]), flat(functions[1])), bounded, others, **rest
        )  # fmt: skip
        if plan.sizes and (plan.gradient or plan.reduced):
            named = problems.GRADIENT_OF_NAMES if plan.gradient else problems.REDUCED_OF_NAMES
            raise LayoutError(named(", ".join(plan.sizes)))
        yield plan


def traced(plan: Plan) -> TracedPair:
    """The two functions of a plan as programs. LayoutError where they cannot be traced, or their outputs do not fit."""
    jaxprs = _jaxprs(plan, plan.calls, plan.arrays)
    _alike(jaxprs, plan.names, plan.outputs)
    if not plan.gradient:
        return _as_assumed(plan, _pair(plan, plan.arrays, plan.calls, jaxprs, plan.outputs))
    arrays, calls = _gradients(plan, jaxprs[1])
    return _as_assumed(plan, _pair(plan, arrays, calls, _jaxprs(plan, calls, arrays), None))


def given_whole(pair: TracedPair) -> list[dict[str, Input]]:
    """Of each kernel that the function itself calls, the names of its operands that are arguments, as they are."""
    program = pair.programs[0]
    arguments: dict[Atom, Input] = dict(zip(program.invars, pair.arrays, strict=True))
    return _given_whole(program, arguments) or []


def _given_whole(program: Program, arguments: Mapping[Atom, Input]) -> list[dict[str, Input]] | None:
    """Likewise in a program that runs once. None where others run in it, as its kernels are then counted elsewhere."""
    found: list[dict[str, Input]] = []
    for equation in program.eqns:
        operands = equation.invars
        if equation.primitive.name == "pallas_call":
            mapping = equation.params["grid_mapping"]
            before, tables = mapping.dynamic, mapping.tables
        elif equation.primitive.name in meshes.PRIMITIVES:
            before = tables = 0
        elif (inner := called(equation)) is not None:
            pairs = zip(inner.invars, operands, strict=True)
            known: dict[Atom, Input] = {
                v: arguments[o] for v, o in pairs if o in arguments and v.aval.shape == o.aval.shape
            }
            within = _given_whole(inner, known)
            if within is None:
                return None
            found += within
            continue
        elif any(True for _ in programs_in(equation)):
            return None
        else:
            continue
        operands = operands[before:]
        names = [f"prefetch{k}" if k < tables else f"args[{k - tables}]" for k in range(len(operands))]
        found.append({n: arguments[v] for n, v in zip(names, operands, strict=True) if v in arguments})
    return found


def again(plan: Plan, pair: TracedPair) -> TracedPair | None:
    """The function traced anew: None where it is the same program, as of a function that looks at its arguments alone.

    A function that counts its calls, or reads a file, may be another one.
    """
    from layoutproof.pallas.from_jax.digests import digest

    jaxpr = _jaxpr(plan, pair.call, plan.names[0], _structs(pair.arrays))
    kept, made = digest(pair.jaxprs[0]), digest(jaxpr)
    alike = str(jaxpr) == str(pair.jaxprs[0]) if kept is None else kept == made
    return None if alike else _with(pair, jaxpr)


def _with(pair: TracedPair, jaxpr: ClosedJaxpr) -> TracedPair:
    from layoutproof.pallas.from_jax.programs import program_of

    return replace(pair, jaxprs=(jaxpr, pair.jaxprs[1]), programs=(program_of(jaxpr), pair.programs[1]))


def _pair(
    plan: Plan, arrays: tuple[Input, ...], calls: Sequence[Call], jaxprs: tuple[ClosedJaxpr, ClosedJaxpr],
    outputs: tuple[int, ...] | None,
) -> TracedPair:  # fmt: skip
    from layoutproof.pallas.from_jax.programs import program_of

    def retrace(shapes: list[tuple[int, ...]]) -> Program | None:
        resized = [replace(i, shape=shape) for i, shape in zip(arrays, shapes, strict=True)]
        try:
            return program_of(_jaxpr(plan, calls[1], plan.names[1], _structs(resized, sharded=False)))
        except LayoutError:
            return None

    return TracedPair(arrays, calls[0], jaxprs, (program_of(jaxprs[0]), program_of(jaxprs[1])), outputs, retrace)


def _structs(arrays: Sequence[Input], sharded: bool = True) -> list[ShapeDtypeStruct]:
    import jax

    return [jax.ShapeDtypeStruct(i.shape, i.dtype, sharding=i.sharding if sharded else None) for i in arrays]


def _sharding(leaf: ShapeDtypeStruct) -> Sharding:
    """The sharding over a mesh that an argument says; it is part of the type where axes of the mesh are explicit."""
    found = getattr(leaf, "sharding", None)
    return found if hasattr(found, "mesh") and hasattr(found, "spec") else None


def _jaxprs(plan: Plan, calls: Sequence[Call], arrays: Sequence[Input]) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    ours = _jaxpr(plan, calls[0], plan.names[0], _structs(arrays))
    return ours, _jaxpr(plan, calls[1], plan.names[1], _structs(arrays, sharded=False))


def _jaxpr(plan: Plan, call: Call, name: str, structs: Sequence[ShapeDtypeStruct]) -> ClosedJaxpr:
    from layoutproof.pallas.from_jax.trace import traced
    from layoutproof.pallas.from_jax.user import device

    try:
        names = [i.name for i in plan.arrays]
        return traced(call, structs, None, names=names, **device(plan.target or ""))[0]
    except LayoutError as error:
        raise LayoutError(located(name, error.problem), file=error.file, line=error.line) from None
    except SystemExit as error:
        raise LayoutError(problems.TRACING_EXIT(name, error)) from None


def _alike(jaxprs: Sequence[ClosedJaxpr], names: Sequence[str], outputs: Sequence[int] | None) -> None:
    """Raises LayoutError where the outputs cannot be compared."""
    ours, theirs = ([tuple(a.shape) for a in t.out_avals] for t in jaxprs)
    kinds = [[a.dtype for a in t.out_avals] for t in jaxprs]
    if outputs is not None:
        most = min(len(ours), len(theirs))
        odd = [k for k in outputs if not isinstance(k, int) or not 0 <= k < most]
        if odd or not outputs:
            raise LayoutError(problems.OUTPUT_POSITIONS(most - 1, odd[0] if odd else "none"))
        ours, theirs = ([side[k] for k in outputs] for side in (ours, theirs))
        kinds = [[side[k] for k in outputs] for side in kinds]
    if len(ours) != len(theirs):
        many = "1 output" if len(ours) == 1 else f"{len(ours)} outputs"
        raise LayoutError(problems.OUTPUT_COUNT(names[0], many, names[1], len(theirs)))
    if not ours:
        raise LayoutError(problems.NO_OUTPUT(names[0]))
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a != b:
            raise LayoutError(problems.OUTPUT_DIFFERS(k, names[0], list(a), names[1], list(b)))
    for k, (one, other) in enumerate(zip(*kinds, strict=True)):
        if kind_of(one) != kind_of(other):
            raise LayoutError(problems.OUTPUT_DIFFERS(k, names[0], one, names[1], other))


def _gradients(plan: Plan, reference: ClosedJaxpr) -> tuple[tuple[Input, ...], list[Call]]:
    """(The arrays and the cotangents of the outputs of floats that are compared, the gradients as functions of these).

    After the gradients come the values of these outputs, as the gradient rules give them.
    reference: its jaxpr, which has the types of its outputs.
    """
    import jax

    wanted = [k for k, i in enumerate(plan.arrays) if kind_of(i.dtype) == "f"]
    compared = range(len(reference.out_avals)) if plan.outputs is None else plan.outputs
    floats = [k for k in compared if kind_of(reference.out_avals[k].dtype) == "f"]
    if not wanted or not floats:
        raise LayoutError(problems.GRADIENT_OF_NO_FLOAT())
    many = len(plan.arrays)

    def of(call: Call) -> Call:
        def gradient(*values: ArrayLike) -> list[ArrayLike]:
            fixed, cotangents = list(values[:many]), values[many:]

            def inner(*moving: ArrayLike) -> list[ArrayLike]:
                for k, value in zip(wanted, moving, strict=True):
                    fixed[k] = value
                found = call(*fixed)
                return [found[k] for k in floats]

            outs, back = jax.vjp(inner, *(values[k] for k in wanted))
            found = list(back([c.astype(o.dtype) for c, o in zip(cotangents, outs, strict=True)]))
            # the value by a gradient rule may differ from the function's
            return [*found, *outs]

        return gradient

    of_outputs = [reference.out_avals[k] for k in floats]
    more = [Input(f"cotangent[{k}]", tuple(a.shape), a.dtype) for k, a in zip(floats, of_outputs, strict=True)]
    return (*plan.arrays, *more), [of(call) for call in plan.calls]


def _name(function: Callable[..., object] | str) -> str:
    if callable(function):
        inner = getattr(function, "func", function)
        return str(getattr(inner, "__name__", type(function).__name__))
    return str(function).rpartition(":")[2]


def _made(inputs: Callable[[], object], place: object) -> tuple[ArrayLike, ...]:
    """The arguments that the author's own function makes."""
    said = place if isinstance(place, str) else getattr(inputs, "__name__", "inputs")
    try:
        signature(inputs).bind()
    except TypeError as error:
        raise LayoutError(problems.INPUTS_PARAMETERS(said, error)) from None
    except ValueError:
        # a function of C that says no parameters
        pass
    made = inputs()
    if made is None:
        raise LayoutError(problems.INPUTS_NONE(said))
    return tuple(made) if isinstance(made, list | tuple) else (made,)


def _known(leaf: ArrayLike) -> ArrayLike:
    """The numbers of an array that is given, if they are integers or truth values."""
    import numpy as np

    if not hasattr(leaf, "__array__") or kind_of(leaf.dtype) not in "ib":
        return None
    return np.asarray(leaf)


def _bounded(arrays: Sequence[Input], assume: Sequence[str]) -> tuple[tuple[Input, ...], tuple[str, ...]]:
    """The arguments with the bounds that are assumed of them, and the conditions that speak of other tables."""
    from layoutproof.kernel.table_assumptions import conditions, tables_said

    named = {i.name: k for k, i in enumerate(arrays)}
    others, found = [], list(arrays)
    for text in conditions(assume):
        tables = tables_said([text])
        (name,) = tables or ("",)
        if name not in named:
            others.append(text)
            continue
        table, k = tables[name], named[name]
        if kind_of(arrays[k].dtype) != "i" or arrays[k].value is not None:
            kind = "given" if arrays[k].value is not None else f"{arrays[k].dtype}"
            raise LayoutError(problems.BOUNDS_OF_GIVEN(name, kind), text=text)
        if not isinstance(table.low, int) or not isinstance(table.high, int):
            raise LayoutError(problems.BOUNDS_NUMBERS(name), text=text)
        found[k] = _narrowed(found[k], table.low, table.high)
    return tuple(found), tuple(others)


def _narrowed(drawn: Input, low: int, high: int) -> Input:
    span = drawn.span or (low, high - 1)
    return replace(drawn, span=(max(span[0], low), min(span[1], high - 1)))


def _as_assumed(plan: Plan, pair: TracedPair) -> TracedPair:
    """A pair whose integers are drawn within what is assumed of the tables of kernels that they are, as they are."""
    from layoutproof.kernel.table_assumptions import tables_said

    found = {i.name: i for i in pair.arrays}
    for name, table in tables_said(plan.assume).items():
        for argument in {i.name for given in given_whole(pair) for n, i in given.items() if n == name}:
            drawn = found[argument]
            if drawn.value is None and kind_of(drawn.dtype) == "i" and type(table.low) is type(table.high) is int:
                found[argument] = _narrowed(drawn, table.low, table.high)
    return replace(pair, arrays=tuple(found[i.name] for i in pair.arrays))
