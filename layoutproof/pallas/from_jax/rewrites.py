"""Rewrites: the same numbers, moved elsewhere. A rule finds the operation of the user's source that moves data, and
changes an equation; whoever asks compiles it and compares.

A rewrite is made of the traced equations and not of the source text, so that it can be tried before anybody writes it.
In a kernel an operand is given merged, or transposed; its heads are taken apart where they are read; a conversion goes
before or after what moves its data. In a program a transposition goes before a reshape, or its result stays where it is
(`with_layout_constraint`). None of them changes a number: each only says where elements are.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict

from layoutproof.core.element_types import element_type
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.hardware.tpu_tiles import LANES
from layoutproof.pallas.compiled import SourceRewrite
from layoutproof.pallas.from_jax import problems
from layoutproof.pallas.from_jax.adapter import body_of, is_literal, need_jax, opened, place_of, places_of
from layoutproof.pallas.from_jax.of_jax import JaxAtom, JaxAval, Params

if TYPE_CHECKING:
    from jax import Array
    from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

RewriteKind = Literal["outside", "first", "convert first", "convert last", "transpose first", "constraint"]
MOVES = ("reshape", "transpose", "slice", "rev", "broadcast_in_dim")
"""Primitives with one array that only move elements: any of them may change places with a conversion."""
TILED_ROWS = 32
"""Rows of a tile of the narrowest elements that kernels compute with, 8 bits."""
CAUSES = (*MOVES[:4], "gather", "concatenate", "dynamic_slice", "squeeze", "convert_element_type")
"""Primitives that a user writes, and that leave data in another order, or in tiles of another size."""
INLINED = ("jit", "pjit", "closed_call", "core_call")
_ELEMENTWISE = frozenset((
    "add", "sub", "mul", "div", "max", "min", "neg", "abs", "sign", "exp", "exp2", "log", "log1p", "tanh",
    "logistic", "sqrt", "rsqrt", "square", "sin", "cos", "pow", "integer_pow", "floor", "ceil", "round",
    "select_n", "erf", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "xor", "convert_element_type",
    "copy",
))  # fmt: skip
"""Primitives that compute each element of the result of the same element of each operand."""


class RewriteEntry(TypedDict):
    """A rewrite in words, as it is printed and sent to other processes."""

    kind: str
    operation: str
    place: str
    before: str
    after: str
    what: str
    write: str


@dataclass(frozen=True, slots=True)
class Rewrite(SourceRewrite):
    """One change of one equation, or of one operand of a kernel.

    equation: its number among the equations that are rewritten.  operand: of the kernel, -1 for none.
    order: dimensions: of a transposed operand or of a constraint from major to minor; () for a merged one.
    """

    kind: RewriteKind
    equation: int = -1
    operand: int = -1
    order: tuple[int, ...] = ()

    def as_dict(self) -> RewriteEntry:
        """Plain data."""
        return {
            "kind": self.kind, "operation": self.operation, "place": self.place, "before": self.before,
            "after": self.after, "what": self.what, "write": self.write,
        }  # fmt: skip


Operands = Sequence[Any]
"""The values of an equation's operands: arrays, references, heads apart: what each is is of its primitive."""
Override = Callable[["JaxprEqn", Operands], object]


class JaxBlockMapping(Protocol):
    """What a call says of the blocks of one operand: jax/_src/pallas/core.py."""

    block_shape: Sequence[Any]
    array_aval: Any
    transformed_block_aval: Any
    index_map_jaxpr: Any

    def replace(self, **changes: object) -> JaxBlockMapping:
        """The same with some fields changed."""


@dataclass(frozen=True, slots=True)
class _Apart:
    """An array of two or more dimensions as its parts along the last but one: heads, each with lanes of its own."""

    parts: tuple[Any, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        *rows, lanes = self.parts[0].shape
        return (*rows, len(self.parts), lanes)

    def whole(self) -> Array:
        return need_jax().numpy.stack(self.parts, axis=-2)

    def merged(self) -> Array:
        return need_jax().lax.concatenate(self.parts, self.parts[0].ndim - 1)


def _of_lanes(value: Array, heads: int) -> _Apart:
    """The heads of an array that has them one beside the other in its last dimension."""
    jax = need_jax()
    wide = value.shape[-1] // heads
    return _Apart(tuple(jax.lax.slice_in_dim(value, h * wide, (h + 1) * wide, axis=-1) for h in range(heads)))


def evaluated(
    jaxpr: Jaxpr, consts: Sequence[object], args: Sequence[object], overrides: Mapping[int, Override] | None = None
) -> list[object]:
    """The results of a jaxpr, some of its equations computed in another way. overrides: by their numbers.

    Without overrides nested calls (`jax.jit`) are opened, so that tracing it gives equations of one list.
    """
    util = importlib.import_module("jax._src.source_info_util")
    held: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    held.update(zip(jaxpr.invars, args, strict=True))
    for number, eqn in enumerate(jaxpr.eqns):
        given = [atom.val if is_literal(atom) else held[atom] for atom in eqn.invars]
        stack = util.current_name_stack() + eqn.source_info.name_stack
        with util.user_context(eqn.source_info.traceback, name_stack=stack), eqn.ctx.manager:
            change = (overrides or {}).get(number)
            found: Any
            if change is not None:
                found = change(eqn, given)
            elif any(isinstance(value, _Apart) for value in given):
                found = _of_heads(eqn, given)
            elif overrides is None and eqn.primitive.name in INLINED and "jaxpr" in eqn.params:
                inner, constants = opened(eqn.params["jaxpr"])
                found = evaluated(inner, constants, given)
            else:
                found = bound(eqn, given)
        several = eqn.primitive.multiple_results
        held.update(zip(eqn.outvars, found if several else [found], strict=True))
    return [
        value.whole() if isinstance(value, _Apart) else value
        for value in (atom.val if is_literal(atom) else held[atom] for atom in jaxpr.outvars)
    ]


def bound(eqn: JaxprEqn, given: Operands) -> object:
    """The results of an equation for other operands."""
    found = eqn.primitive.get_bind_params(eqn.params)
    functions, params = found if isinstance(found, tuple) else ((), found)
    return eqn.primitive.bind(*functions, *given, **params)


def bound_to(eqn: JaxprEqn, given: Operands, **params: object) -> object:
    """The results of an equation for other operands and with other parameters."""
    return eqn.primitive.bind(*given, **{**eqn.params, **params})


def _of_heads(eqn: JaxprEqn, given: Operands) -> object:
    """An equation of which some operand has its heads apart: head by head where it may be, else of the whole."""
    name = eqn.primitive.name
    first = next(value for value in given if isinstance(value, _Apart))
    shape, heads = first.shape, len(first.parts)
    if name in _ELEMENTWISE and all(_has_heads(value, shape) for value in given):
        each = [_head_of(value, heads) for value in given]
        return _Apart(tuple(bound(eqn, [of(h) for of in each]) for h in range(heads)))
    along = _along_lanes(eqn, given, first)
    if along is not None:
        return along
    return bound(eqn, [value.whole() if isinstance(value, _Apart) else value for value in given])


def _along_lanes(eqn: JaxprEqn, given: Operands, first: _Apart) -> object | None:
    """An equation that moves elements within the last dimension of each head, or merges heads; None for others."""
    name, shape, heads = eqn.primitive.name, first.shape, len(first.parts)
    if name == "reshape" and eqn.params["new_sizes"] == (*shape[:-2], shape[-2] * shape[-1]):
        merged: object = first.merged()
        return merged
    if name == "slice" and _keeps_heads(eqn, shape):
        start, stop, step = (eqn.params[key] for key in ("start_indices", "limit_indices", "strides"))
        step = step or (1,) * len(shape)
        cut = need_jax().lax.slice_in_dim
        return _Apart(tuple(cut(part, start[-1], stop[-1], step[-1], axis=-1) for part in first.parts))
    if name == "concatenate" and eqn.params["dimension"] == len(shape) - 1:
        each = [_head_of(value, heads) for value in given]
        join = need_jax().lax.concatenate
        return _Apart(tuple(join([of(h) for of in each], len(shape) - 2) for h in range(heads)))
    if name == "split" and eqn.params["axis"] == len(shape) - 1:
        parts: list[Any] = [bound_to(eqn, [part], axis=len(shape) - 2) for part in first.parts]
        return [_Apart(tuple(each[k] for each in parts)) for k in range(len(parts[0]))]
    if name == "roll" and eqn.params.get("axis") == len(shape) - 1 and eqn.params.get("stride") is None:
        return _Apart(tuple(bound_to(eqn, [part, *given[1:]], axis=len(shape) - 2) for part in first.parts))
    return None


def _has_heads(value: object, shape: Sequence[int]) -> bool:
    """Whether an operand is a number, or has these dimensions, or 1 in place of some of them."""
    own = tuple(getattr(value, "shape", ()))
    return not own or (len(own) == len(shape) and all(n in (1, m) for n, m in zip(own, shape, strict=True)))


def _head_of(value: Array | _Apart, heads: int) -> Callable[[int], object]:
    """Gives a head of an operand; one that has 1 head has it for all."""
    if isinstance(value, _Apart):
        return lambda h: value.parts[h]
    if not getattr(value, "shape", ()):
        return lambda h: value
    index = need_jax().lax.index_in_dim
    return lambda h: index(value, h if value.shape[-2] == heads else 0, axis=-2, keepdims=False)


def _keeps_heads(eqn: JaxprEqn, shape: Sequence[int]) -> bool:
    start, stop, step = (eqn.params[key] for key in ("start_indices", "limit_indices", "strides"))
    return not any(start[:-1]) and tuple(stop[:-1]) == tuple(shape[:-1]) and all(s == 1 for s in (step or (1,))[:-1])


# what moves data


def _text(aval: JaxAval) -> str:
    return f"{element_type(aval.dtype)}[{','.join(map(str, aval.shape))}]"


def of_program(jaxpr: Jaxpr) -> tuple[Rewrite, ...]:
    """The rewrites of a program's equations, in their order. jaxpr: without nested calls, as `flat` gives it."""
    return tuple(rewrite for pair in (_pairs(jaxpr), _constraints(jaxpr)) for rewrite in pair)


def flat(function: Callable[..., object], arrays: Sequence[object]) -> ClosedJaxpr:
    """A function as one list of equations."""
    jax = need_jax()
    traced = jax.make_jaxpr(function)(*arrays)
    inner, consts = opened(traced)
    found: ClosedJaxpr = jax.make_jaxpr(lambda *values: evaluated(inner, consts, values))(*arrays)
    return found


def _pairs(jaxpr: Jaxpr) -> Iterator[Rewrite]:
    """Two equations after each other that may change places."""
    makers = {v: k for k, eqn in enumerate(jaxpr.eqns) for v in eqn.outvars}
    uses: dict[Any, int] = {}
    for eqn in jaxpr.eqns:
        for atom in eqn.invars:
            if not is_literal(atom):
                uses[atom] = uses.get(atom, 0) + 1
    for atom in jaxpr.outvars:
        if not is_literal(atom):
            uses[atom] = uses.get(atom, 0) + 1
    for number, eqn in enumerate(jaxpr.eqns):
        maker = None if not eqn.invars or is_literal(eqn.invars[0]) else makers.get(eqn.invars[0])
        if maker is None:
            continue
        before = jaxpr.eqns[maker]
        names = before.primitive.name, eqn.primitive.name
        once = uses.get(eqn.invars[0]) == 1
        if any(_is_aligned(e) for e in (before, eqn)):
            continue
        if names[0] == "convert_element_type" and names[1] in MOVES and _arrays(before):
            yield _rewrite(
                "convert last",
                eqn,
                number,
                f"{names[1]} of {_text(before.invars[0].aval)}, then the conversion to {_text(eqn.outvars[0].aval)}",
                f"x.{names[1]}(..).astype(..)",
            )
        elif names[1] == "convert_element_type" and names[0] in MOVES and once and _arrays(before):
            yield _rewrite(
                "convert first",
                before,
                number,
                f"the conversion to {eqn.outvars[0].aval.dtype}, then the {names[0]} to {_text(eqn.outvars[0].aval)}",
                f"x.astype(..).{names[0]}(..)",
            )
        elif names == ("reshape", "transpose") and once and (found := _regrouped(before, eqn)) is not None:
            yield _rewrite(
                "transpose first",
                before,
                number,
                f"{_dims(before, found.first)} transposed {found.order}, then split to {_text(eqn.outvars[0].aval)}",
                f"x.reshape{found.first}.transpose{found.order}.reshape{found.last}",
            )


def _dims(eqn: JaxprEqn, dims: Sequence[int]) -> str:
    return f"{element_type(eqn.outvars[0].aval.dtype)}[{','.join(map(str, dims))}]"


def _is_aligned(eqn: JaxprEqn) -> bool:
    """Whether an equation takes whole tiles, so that no element leaves its place in a register."""
    if eqn.primitive.name != "slice":
        return False
    shape = eqn.invars[0].aval.shape
    bounds = zip(eqn.params["start_indices"], eqn.params["limit_indices"], shape, strict=True)
    *_, rows, lanes = [(0, 1, 1), (0, 1, 1), *bounds]

    def on(of: tuple[int, int, int], tile: int) -> bool:
        return of[0] % tile == 0 and (of[1] % tile == 0 or of[1] == of[2])

    return eqn.params["strides"] is None and on(rows, TILED_ROWS) and on(lanes, LANES)


def _arrays(eqn: JaxprEqn) -> bool:
    return len(getattr(eqn.invars[0].aval, "shape", ())) > 1


def _rewrite(
    kind: RewriteKind,
    cause: JaxprEqn,
    number: int,
    what: str,
    write: str,
    operand: int = -1,
    order: tuple[int, ...] = (),
) -> Rewrite:
    return Rewrite(
        kind, cause.primitive.name, place_of(cause.source_info), _text(cause.invars[0].aval),
        _text(cause.outvars[0].aval), what, write, number, operand, order,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Regrouped:
    """A reshape and a transposition as a coarser reshape, a transposition, and the rest of the reshape."""

    first: tuple[int, ...]
    order: tuple[int, ...]
    last: tuple[int, ...]

    def of(self, value: Array) -> Array:
        lax = need_jax().lax
        return lax.reshape(lax.transpose(lax.reshape(value, self.first), self.order), self.last)


def _regrouped(reshape: JaxprEqn, transpose: JaxprEqn) -> _Regrouped | None:
    """The transposition done before dimensions are split that stay together, in their order; None where none do."""
    new, taken = reshape.outvars[0].aval.shape, transpose.params["permutation"]
    runs: list[list[int]] = []
    for k in taken:
        if runs and runs[-1][-1] == k - 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    if len(runs) == len(new):
        return None
    # dimensions that are not split belong together too, unless both were there before the reshape
    old = _borders(reshape.invars[0].aval.shape)
    split: list[list[int]] = []
    for run in runs:
        at = [run[0]]
        for k in run[1:]:
            if prod(new[:k]) in old:
                split.append(at)
                at = []
            at.append(k)
        split.append(at)
    ordered = sorted(split)
    if len(ordered) == len(new) or len(ordered) < 2:
        return None
    first = tuple(prod(new[k] for k in run) for run in ordered)
    return _Regrouped(first, tuple(ordered.index(run) for run in split), tuple(new[k] for k in taken))


def _borders(dims: Sequence[int]) -> set[int]:
    """The numbers of elements at which a dimension begins: of two shapes the same border is one between dimensions."""
    return {prod(dims[:k]) for k in range(len(dims))}


def _constraints(jaxpr: Jaxpr) -> Iterator[Rewrite]:
    """A transposed or reshaped array that stays where it was, or is laid out as it is written."""
    for number, eqn in enumerate(jaxpr.eqns):
        if eqn.primitive.name not in ("transpose", "reshape") or len(eqn.outvars[0].aval.shape) < 2:
            continue
        orders = [tuple(range(len(eqn.outvars[0].aval.shape)))]
        if eqn.primitive.name == "transpose":
            taken = eqn.params["permutation"]
            orders.insert(0, tuple(taken.index(k) for k in range(len(taken))))
        for order in orders:
            yield _rewrite(
                "constraint",
                eqn,
                number,
                f"the result of {eqn.primitive.name} laid out {order} from major to minor",
                f"with_layout_constraint(y, Layout({order}))",
                order=order,
            )


def moved_by(jaxpr: Jaxpr) -> dict[str, list[str]]:
    """Place -> what moves data nearest before what is computed there, `transpose at model.py:12`; of a line that
    another line of the user's calls, as in a helper, that one too: `transpose at model.py:12, called at model.py:40`.

    A copy that a compiler makes names the operation that reads or makes the array; the layout comes from these. Of an
    input, `parameter 0`, it is the first operation that takes it.
    """
    nearest: dict[Any, tuple[str, ...]] = {}
    found: dict[str, list[str]] = {}
    for eqn in jaxpr.eqns:
        given = [nearest.get(atom, ()) for atom in eqn.invars if not is_literal(atom)]
        before = tuple(dict.fromkeys(words for each in given for words in each))[:4]
        place, name = place_of(eqn.source_info), eqn.primitive.name
        said = f"{name} at {', called at '.join(each.rpartition('/')[2] for each in places_of(eqn.source_info)[:2])}"
        own = (said,) if name in CAUSES else before
        nearest.update(dict.fromkeys(eqn.outvars, own))
        found.setdefault(place, []).extend(words for words in own if words not in found.get(place, ()))
        for number, variable in enumerate(jaxpr.invars):
            if variable in [atom for atom in eqn.invars if not is_literal(atom)]:
                found.setdefault(f"parameter {number}", [said])
    return found


def with_rewrite(jaxpr: Jaxpr, consts: Sequence[object], rewrite: Rewrite | None) -> Callable[..., list[object]]:
    """The function of a jaxpr with one rewrite of its equations, or with none."""
    overrides = {} if rewrite is None else _overrides(jaxpr, rewrite)
    return lambda *values: evaluated(jaxpr, consts, values, overrides)


def _overrides(jaxpr: Jaxpr, rewrite: Rewrite) -> dict[int, Override]:
    eqn = jaxpr.eqns[rewrite.equation]
    makers = {v: k for k, other in enumerate(jaxpr.eqns) for v in other.outvars}
    if rewrite.kind == "constraint":
        layouts = importlib.import_module("jax.experimental.layout")
        order = layouts.Layout(rewrite.order)
        return {rewrite.equation: lambda eqn, given: layouts.with_layout_constraint(bound(eqn, given), order)}
    earlier = makers[eqn.invars[0]]
    maker = jaxpr.eqns[earlier]
    held: list[Any] = []

    def keep(eqn: JaxprEqn, given: Operands) -> object:
        held[:] = given
        return bound(eqn, given)

    def exchanged(eqn: JaxprEqn, given: Operands) -> object:
        if rewrite.kind == "transpose first":
            found = _regrouped(maker, eqn)
            assert found is not None
            return found.of(held[0])
        # given[1:]: what a move takes beside its array is of the later equation, or was kept of the earlier one
        first = bound(eqn, [held[0], *given[1:]])
        return bound(maker, [first, *held[1:]])

    return {earlier: keep, rewrite.equation: exchanged}


# kernels


def of_kernel(params: Params) -> tuple[Rewrite, ...]:
    """The rewrites of a Pallas call: of its operands first, then of the equations of its body.

    params: of the call's equation. A call whose operands are aliased keeps them as they are.
    """
    body = _flat_body(params)
    kept = {k for pair in params.get("input_output_aliases") or () for k in pair}
    found = [] if kept else [*_operands(params, body)]
    return (*found, *(r for r in _pairs(body)))


def _flat_body(params: Params) -> Jaxpr:
    body = body_of(params)
    return _retraced(params, [v.aval for v in body.invars], lambda *refs: evaluated(body, (), refs))


def _retraced(params: Params, avals: Sequence[object], function: Callable[..., object]) -> Jaxpr:
    """The jaxpr of a body for references of these types. Raises LayoutError where it would hold constants."""
    core = importlib.import_module("jax._src.pallas.core")
    partial_eval = importlib.import_module("jax._src.interpreters.partial_eval")
    wrapping = importlib.import_module("jax._src.linear_util")
    grid = params["grid_mapping"]
    debug = body_of(params).debug_info
    if len(debug.arg_names or ()) != len(avals):
        debug = debug._replace(arg_names=None)

    def run(*refs: object) -> list[object]:
        function(*refs)
        return []

    with core.tracing_grid_env(grid.grid, grid.vmapped_dims):
        jaxpr, _, consts = partial_eval.trace_to_jaxpr_dynamic(wrapping.wrap_init(run, debug_info=debug), list(avals))
    if consts:
        raise LayoutError("the body holds constants")
    done, _ = partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), instantiate=True)
    result: Jaxpr = done
    return result


def _operands(params: Params, body: Jaxpr) -> Iterator[Rewrite]:
    """Operands of which the body merges, splits or transposes what it reads or writes as a whole."""
    grid = params["grid_mapping"]
    first = grid.num_index_operands
    for number, mapping in enumerate(grid.block_mappings):
        ref = body.invars[first + number]
        uses = [eqn for eqn in body.eqns if ref in [a for a in eqn.invars if not is_literal(a)]]
        out = number >= grid.num_inputs
        wanted = "swap" if out else "get"
        whole = bool(uses) and all(e.primitive.name == wanted and len(e.invars) == 1 + out for e in uses)
        if not whole or not all(type(b).__name__ == "Blocked" for b in mapping.block_shape):
            continue
        name = _name(params, number)
        yield from _merged(body, mapping, number, name, out)
        if not out:
            yield from _turned(body, uses, number, name)


def _name(params: Params, number: int) -> str:
    return str(getattr(params["grid_mapping"].block_mappings[number], "origin", "") or f"operand {number}")


def _merged(body: Jaxpr, mapping: JaxBlockMapping, number: int, name: str, out: bool) -> Iterator[Rewrite]:
    block, array = [b.block_size for b in mapping.block_shape], mapping.array_aval.shape
    if len(block) < 3 or block[-1] != array[-1]:
        return
    for k, eqn in enumerate(body.eqns):
        if eqn.primitive.name != "reshape":
            continue
        one, other = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
        narrow, wide = (other, one) if out else (one, other)
        # what is merged may have lost some lanes, or be of a type that the operand is converted to
        if len(narrow) < 2 or tuple(wide) != (*narrow[:-2], narrow[-2] * narrow[-1]) or narrow[-2] != block[-2]:
            continue
        if narrow[-1] % LANES:
            continue
        dims = (*array[:-2], array[-2] * array[-1])
        shape = f"[{','.join(map(str, dims))}]"
        if out:
            yield _rewrite(
                "outside",
                eqn,
                k,
                f"{name} written as {shape}, reshaped after the call",
                f"out_shape {shape}, then .reshape{tuple(array)}",
                operand=number,
            )
        else:
            yield _rewrite(
                "outside",
                eqn,
                k,
                f"{name} given as {shape}",
                f"{name}.reshape{dims} before the call, its "
                f"heads read as {name}[.., h * {array[-1]}:(h + 1) * {array[-1]}]",
                operand=number,
            )
            yield _rewrite(
                "first",
                eqn,
                k,
                f"{name} reshaped when it is read, its heads taken from the lanes",
                f"{name}[...].reshape(.., {block[-2] * block[-1]}) first in the body",
                operand=number,
            )
        return


def _turned(body: Jaxpr, uses: Sequence[JaxprEqn], number: int, name: str) -> Iterator[Rewrite]:
    """An operand that the body transposes, also after it has converted it."""
    chain = {v for eqn in uses for v in eqn.outvars}
    for k, eqn in enumerate(body.eqns):
        taken = bool(eqn.invars) and not is_literal(eqn.invars[0]) and eqn.invars[0] in chain
        if taken and eqn.primitive.name == "convert_element_type":
            chain.add(eqn.outvars[0])
        if taken and eqn.primitive.name == "transpose":
            order = tuple(eqn.params["permutation"])
            yield _rewrite(
                "outside",
                eqn,
                k,
                f"{name} given transposed {order}",
                f"{name}.transpose{order} before the call, no transposition in the body",
                operand=number,
                order=order,
            )
            return


@dataclass(frozen=True, slots=True)
class RewrittenCall:
    """A Pallas call with one rewrite.

    bind: of operands to results, in their new form.  operand, result: the number of the one that has a new form, -1 for
    none.  aval: its shape.  own: the shape before.  order: of its transposition, () for a reshape.
    """

    bind: Callable[..., list[Any]]
    operand: int = -1
    result: int = -1
    aval: Any = None
    own: tuple[int, ...] = ()
    order: tuple[int, ...] = ()

    def __call__(self, *values: object) -> list[object]:
        """The call's own results for its own operands: what is outside is done before the call, or after it."""
        jax = need_jax()
        given = list(values)
        if self.operand >= 0:
            value = given[self.operand]
            given[self.operand] = (
                jax.lax.transpose(value, self.order) if self.order else jax.lax.reshape(value, self.aval.shape)
            )
        results = self.bind(*given)
        if self.result >= 0:
            results[self.result] = jax.lax.reshape(results[self.result], self.own)
        return results


def rewritten_call(eqn: JaxprEqn, rewrite: Rewrite) -> RewrittenCall:
    """A Pallas call with one rewrite.

    Args:
        eqn: The call's equation.
        rewrite: One of `of_kernel`.

    Returns:
        The call, a function of the operands of the equation.
    """
    params = dict(eqn.params)
    body, grid = _flat_body(params), params["grid_mapping"]
    avals = [v.aval for v in body.invars]
    at = grid.num_index_operands + rewrite.operand

    def bind(*values: object) -> list[object]:
        return list(eqn.primitive.bind(*values, **params))

    if rewrite.operand < 0:
        params["jaxpr"] = _retraced(params, avals, with_rewrite(body, (), rewrite))
        return RewrittenCall(bind)
    overrides = _of_operand(body, body.invars[at], rewrite)
    own = grid.block_mappings[rewrite.operand]
    if rewrite.kind == "outside":
        mapping = _mapping(own, rewrite)
        avals[at] = mapping.transformed_block_aval
        mappings = [mapping if k == rewrite.operand else m for k, m in enumerate(grid.block_mappings)]
        params["grid_mapping"] = replace(grid, block_mappings=tuple(mappings))
    params["jaxpr"] = _retraced(params, avals, lambda *refs: evaluated(body, (), refs, overrides))
    if rewrite.kind != "outside":
        return RewrittenCall(bind)
    out = rewrite.operand - grid.num_inputs
    if out >= 0:
        outs = list(params["out_avals"])
        outs[out] = outs[out].update(shape=mapping.array_aval.shape)
        params["out_avals"] = tuple(outs)
        return RewrittenCall(bind, -1, out, outs[out], own.array_aval.shape)
    dynamic = len(eqn.invars) - grid.num_index_operands - grid.num_inputs
    return RewrittenCall(bind, dynamic + at, -1, mapping.array_aval, own.array_aval.shape, rewrite.order)


def _mapping(own: JaxBlockMapping, rewrite: Rewrite) -> JaxBlockMapping:
    """A block mapping of an operand whose last two dimensions are merged, or whose dimensions are transposed."""
    jax = need_jax()
    blocks, dims = list(own.block_shape), list(own.array_aval.shape)
    opened_map = opened(own.index_map_jaxpr)
    index: Any = opened_map[0]
    consts = opened_map[1]
    if rewrite.order:
        blocks, dims = [blocks[k] for k in rewrite.order], [dims[k] for k in rewrite.order]
        taken = list(rewrite.order)
    else:
        merged = type(blocks[-1])(blocks[-2].block_size * blocks[-1].block_size)
        blocks, dims = [*blocks[:-2], merged], [*dims[:-2], dims[-2] * dims[-1]]
        # a block has all of the last dimension, so that its index there is 0
        taken = [*range(len(dims))]
    outs = [index.outvars[k] for k in taken]
    closed = (
        importlib.import_module("jax.extend.core").ClosedJaxpr(
            index.replace(outvars=outs, debug_info=index.debug_info._replace(result_paths=None)), consts
        )
        if hasattr(own.index_map_jaxpr, "consts")
        else index.replace(outvars=outs)
    )
    inner = own.transformed_block_aval
    shape = tuple(b.block_size for b in blocks)
    return own.replace(
        block_shape=tuple(blocks),
        transformed_block_aval=inner.update(inner_aval=inner.inner_aval.update(shape=shape)),
        index_map_jaxpr=closed,
        index_map_out_tree=jax.tree_util.tree_structure((0,) * len(outs)),
        array_aval=own.array_aval.update(shape=tuple(dims)),
    )


def _of_operand(body: Jaxpr, ref: JaxAtom, rewrite: Rewrite) -> dict[int, Override]:
    """The changes of what reads or writes one operand."""
    jax = need_jax()
    shape = tuple(ref.aval.shape)
    found: dict[int, Override] = {}
    loads: list[Any] = []

    def read(eqn: JaxprEqn, given: Operands) -> object:
        value = given[0][...]
        if rewrite.order:
            loads[:] = [value]
            return jax.lax.transpose(value, [rewrite.order.index(k) for k in range(len(shape))])
        if rewrite.kind == "first":
            value = jax.lax.reshape(value, (*shape[:-2], shape[-2] * shape[-1]))
        return _of_lanes(value, shape[-2])

    def turned(eqn: JaxprEqn, given: Operands) -> object:
        return jax.lax.convert_element_type(loads[0], eqn.outvars[0].aval.dtype)

    def split(eqn: JaxprEqn, given: Operands) -> object:
        return _of_lanes(given[0], eqn.outvars[0].aval.shape[-2])

    def written(eqn: JaxprEqn, given: Operands) -> object:
        value = given[1]
        merged = (
            value.merged()
            if isinstance(value, _Apart)
            else jax.lax.reshape(value, (*shape[:-2], shape[-2] * shape[-1]))
        )
        given[0][...] = merged
        # nobody uses what was there before: `_operands` asks for stores alone
        return jax.lax.full(shape, 0, ref.aval.dtype)

    for k, eqn in enumerate(body.eqns):
        if ref in [atom for atom in eqn.invars if not is_literal(atom)]:
            found[k] = read if eqn.primitive.name == "get" else written
    if rewrite.order:
        found[rewrite.equation] = turned
    elif found and all(change is written for change in found.values()):
        found[rewrite.equation] = split
    return found


# the numbers

MOST_WORK = 1 << 33
"""Elements of all blocks of all programs, and products in them, above which a call is not run for its numbers."""
_CLOSE = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 2e-3}
"""Element type -> the share of the largest result by which results may differ, as another order of sums makes them."""


def numbers(eqn: JaxprEqn, rewrite: Rewrite) -> str:
    """How the results of a rewritten call differ from the call's own, in JAX's interpreter; "" for not at all.

    eqn: of the call.  Raises LayoutError where it is not run.
    """
    interpreted = eqn.replace(params={**eqn.params, "interpret": True})
    programs = prod(n for n in eqn.params["grid_mapping"].grid if type(n) is int)
    if (work := programs * _work(body_of(eqn.params))) > MOST_WORK:
        raise LayoutError(problems.CALL_SIZE(work))
    own = eqn.primitive.bind
    return _run(lambda *values: own(*values, **interpreted.params), rewritten_call(interpreted, rewrite),
                [v.aval for v in eqn.invars])  # fmt: skip


def compared(own: Callable[..., object], other: Callable[..., object], arrays: Sequence[JaxAval]) -> str:
    """How the results of two programs of the same arrays differ on the CPU, or why that is not known; "" for none."""
    try:
        if (work := _work(opened(need_jax().make_jaxpr(own)(*arrays))[0])) > MOST_WORK:
            return problems.PROGRAM_SIZE(work)
        return _run(own, other, arrays)
    except LayoutError as error:
        return error.problem


def _run(own: Callable[..., object], other: Callable[..., object], avals: Sequence[JaxAval]) -> str:
    """The first difference of two functions on small whole numbers, of which sums are exact in any order."""
    import numpy as np

    jax = need_jax()
    random = np.random.default_rng(0)
    given = [
        jax.numpy.asarray(random.integers(-2, 3, a.shape) if _counts(a) else np.zeros(a.shape), a.dtype) for a in avals
    ]
    try:
        before, after = (jax.jit(partial(_called, function))(*given) for function in (own, other))
    except Exception as error:
        raise LayoutError(problems.NOT_RUN(shorten(" ".join(str(error).split()), 200))) from None
    return next(filter(None, map(_difference, before, after)), "")


def _called(function: Callable[..., object], *values: object) -> object:
    return function(*values)


def _work(jaxpr: Jaxpr) -> int:
    """Elements of the results of all equations, those of products times what they sum over."""
    each = 0
    for one in jaxpr.eqns:
        size = sum(prod(getattr(v.aval, "shape", ())) for v in one.outvars)
        if one.primitive.name == "dot_general":
            size *= prod(one.invars[0].aval.shape[k] for k in one.params["dimension_numbers"][0][0])
        each += size
    return each


def _counts(aval: JaxAval) -> bool:
    """Whether a value is of numbers, and no table of places: of these every one is 0."""
    return getattr(aval.dtype, "kind", "f") != "i" or len(aval.shape) > 1


def _difference(one: Array, other: Array) -> str:
    import numpy as np

    a, b = (np.asarray(value) for value in (one, other))
    if a.shape != b.shape or a.dtype != b.dtype:
        return problems.RESULT_TYPE(a.dtype, list(a.shape), b.dtype, list(b.shape))
    if a.tobytes() == b.tobytes():
        return ""
    wide, narrow = a.astype(np.float64), b.astype(np.float64)
    largest = float(np.max(np.abs(wide), initial=0.0))
    apart = float(np.max(np.abs(wide - narrow), initial=0.0))
    if apart <= _CLOSE.get(str(a.dtype), 0.0) * largest:
        return ""
    return problems.RESULTS_DIFFER(apart, largest)
