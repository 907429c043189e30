"""The answering side of `--try`: one program with one candidate, compiled in a process of its own as `compiling` does.

The program becomes a function of its arrays alone, so that each of them has a number, and a candidate is an argument of
`jax.jit`: layouts by `Format`, donation by `donate_argnums`. A larger or reshaped parameter is sliced or reshaped back
first, so the program keeps its meaning. A dump in place of a function is HLO text from before optimization.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutproof.compiler.serve import Tell, serve
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.pallas.from_jax.adapter import device_of, need_jax
from layoutproof.pallas.from_jax.rewrites import (
    Rewrite,
    RewriteEntry,
    compared,
    flat,
    moved_by,
    of_program,
    with_rewrite,
)
from layoutproof.programs import compiling, problems

if TYPE_CHECKING:
    from jax import Array, ShapeDtypeStruct
    from jax.core import ShapedArray
    from jax.experimental.layout import Format
    from jax.interpreters.mlir import LoweringRuleContext
    from jax.sharding import Mesh, Sharding
    from jax.stages import Lowered, Wrapped
    from jax.tree_util import KeyPath
    from jaxlib.mlir.ir import Attribute, Module, Operation, Type, Value


@dataclasses.dataclass(frozen=True, slots=True)
class _TriedProgram:
    """A program as a function of its arrays. arrays: their shapes with shardings.  donated: by number, of those that
    the user gives away, None = unknown.  names: of the arrays, () = unknown."""

    function: Callable[..., Any]
    arrays: Sequence[Any]
    donated: frozenset[int] | None
    names: Sequence[str] = ()


def answered(request: JsonObject, tell: Tell) -> JsonObject:
    """One program with the candidate `change`: as `compiling.answered`, with `kept`: the arrays by number that are
    parameters of what was compiled, in their order, `names` of the arrays, and `donors`: whether it is known which ones
    are donated.

    `rewrites`: of the program as it is, those of its equations.  `moved_by`: what moves data, by place.  `numbers`: why
    the results of a rewritten program are not known to be the program's own, "" where they are.
    """
    about: dict[str, Any] = {}

    def lower(request: JsonObject) -> tuple[Lowered, list[str]]:
        lowered, results, found = _lowered(request)
        about.update(found)
        return lowered, results

    return {**compiling.answer_of(request, tell, lower), **about}


def _lowered(request: JsonObject) -> tuple[Lowered, list[str], JsonObject]:
    jax = need_jax()
    mesh = compiling._mesh(request)
    with contextlib.ExitStack() as stack:
        program = _of_dump(request["hlo"], mesh) if "hlo" in request else _of_function(request, mesh, stack)
        if request["target"] != compiling.CPU:
            stack.enter_context(device_of(request["target"]))
        stack.enter_context(compiling.on_mesh(mesh))
        change = _by_array(request["change"], request.get("kept"))
        program, rewrites, moves, numbers = _rewritten(program, request["change"]["rewrite"], mesh)
        lowered = _jitted(program, change, mesh).lower(*_changed(program.arrays, change))
        about: JsonObject = {
            "kept": _kept(lowered),
            "donors": program.donated is not None,
            "names": list(program.names),
        }
        about |= {"rewrites": rewrites, "moved_by": _by_parameter(moves, about["kept"]), "numbers": numbers}
        return lowered, compiling._names(jax, lowered), about


def _rewritten(
    program: _TriedProgram, number: int, mesh: Mesh
) -> tuple[_TriedProgram, list[RewriteEntry], dict[str, list[str]], str]:
    """(The program with a rewrite, or as it is, the rewrites of it, what moves data where, why its numbers
    are not known to be the same).

    number: of the rewrite, -1 for none; then they are listed. On several devices there are none: an order is
    of a shard.
    """
    if mesh.axis_names:
        return program, [], {}, ""
    jaxpr = flat(program.function, program.arrays)
    found: Sequence[Rewrite] = of_program(jaxpr.jaxpr)
    if number < 0:
        return program, [each.as_dict() for each in found], moved_by(jaxpr.jaxpr), ""
    if number >= len(found):
        raise LayoutError(problems.NO_REWRITE(number))
    rewrite = found[number]
    function = with_rewrite(jaxpr.jaxpr, jaxpr.consts, rewrite)
    own = with_rewrite(jaxpr.jaxpr, jaxpr.consts, None)
    # a constraint says where an array is, and is no computation
    why = "" if rewrite.kind == "constraint" else compared(own, function, program.arrays)
    function.__name__ = program.function.__name__
    return dataclasses.replace(program, function=function), [], {}, why


def _by_parameter(moves: Mapping[str, list[str]], kept: Sequence[int] | None) -> dict[str, list[str]]:
    """What moves data, with parameters in place of arrays. kept: the array that each parameter is."""
    arrays = {f"parameter {array}": f"parameter {k}" for k, array in enumerate(kept or ())}
    return {arrays.get(place, place): words for place, words in moves.items()}


def _of_function(request: JsonObject, mesh: Mesh, stack: contextlib.ExitStack) -> _TriedProgram:
    """A function of the user's, or one that `jax.export` wrote: Python's own values are put into it."""
    jax = need_jax()
    place = request["program"]
    if request["exported"]:
        function, args, kwargs = compiling._exported(Path(place), mesh)
    else:
        function, given, kwargs = compiling.called(request, stack)
        args = compiling._placed(given, request, mesh)
    paths, tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
    leaves = [leaf for _, leaf in paths]
    arrays = [k for k, leaf in enumerate(leaves) if isinstance(leaf, jax.ShapeDtypeStruct)]
    outs = compiling._out(request, mesh) if request["out"] else None

    def flat(*values: Array) -> object:
        put = list(leaves)
        for k, value in zip(arrays, values, strict=True):
            put[k] = value
        own, named = jax.tree_util.tree_unflatten(tree, put)
        result = function(*own, **named)
        return result if outs is None else jax.lax.with_sharding_constraint(result, outs)

    flat.__name__ = getattr(function, "__name__", "program")
    names = [_name(function, paths[k][0]) for k in arrays]
    return _TriedProgram(flat, [leaves[k] for k in arrays], _donated(request, function, args, kwargs, arrays), names)


def _name(function: Callable[..., object], path: KeyPath) -> str:
    """The name of an array in the user's function: `params['w']`. path: in the pair of arguments and named ones."""
    jax = need_jax()
    named, rest = path[0].idx == 1, path[2:]
    first = path[1].key if named else f"argument {path[1].idx}"
    with contextlib.suppress(ValueError, TypeError, IndexError):
        if not named:
            given = list(inspect.signature(function).parameters.values())[path[1].idx]
            first = first if given.kind is given.VAR_POSITIONAL else given.name
    return f"{first}{jax.tree_util.keystr(rest)}"


def _donated(
    request: JsonObject,
    function: Callable[..., object],
    args: Sequence[object],
    kwargs: JsonObject,
    arrays: Sequence[int],
) -> frozenset[int] | None:
    """The arrays, by number, that the user gives away: as the request says, or as `jax.jit` of the user's own does."""
    jax = need_jax()
    counts = [len(jax.tree_util.tree_leaves(value)) for value in args]
    starts = [sum(counts[:k]) for k in range(len(counts))]
    leaves = {leaf for k in request["donate"] for leaf in range(starts[k], starts[k] + counts[k])}
    found = {number for number, leaf in enumerate(arrays) if leaf in leaves}
    if hasattr(function, "lower") and not request["donate"]:
        try:
            infos = jax.tree_util.tree_leaves(function.lower(*args, **kwargs).args_info)
        except Exception:
            return None
        if len(infos) != len(arrays):
            return None
        found = {number for number, info in enumerate(infos) if info.donated}
    return frozenset(found)


def _of_dump(text: str, mesh: Mesh) -> _TriedProgram:
    """What HLO text from before optimization computes, as a function: jaxlib reads it and turns it into StableHLO.

    Raises LayoutError where it cannot: it has no form in StableHLO for the fusions and layouts of a compiled program.
    """
    jax = need_jax()
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir

    try:
        module_from_text = importlib.import_module("jaxlib._hlo").hlo_module_from_text
        proto = module_from_text(text).as_serialized_hlo_module_proto()
        portable = xla_client._xla.mlir.hlo_to_stablehlo(proto)
        with mlir.make_ir_context():
            main = _main(ir.Module.parse(portable))
            ins, outs = (list(map(_aval, side)) for side in (main.type.inputs, main.type.results))
    except Exception as error:
        raise LayoutError(problems.NO_PROGRAM_OF_TEXT(shorten(" ".join(str(error).split()), 200))) from None
    function = _inlined(portable, outs)
    one = jax.sharding.SingleDeviceSharding(mesh.devices.flat[0])
    arrays = [jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=one) for aval in ins]
    header = text[: text.find("\n")]
    aliased = frozenset(int(n) for n in re.findall(r": \((\d+), \{", _braced(header)))
    return _TriedProgram(function, arrays, aliased)


def _braced(header: str) -> str:
    """The part of a module's first line on buffers that results share with parameters."""
    at = header.find("input_output_alias=")
    return "" if at < 0 else header[at : header.find(" }", at)]


def _inlined(portable: bytes, outs: Sequence[ShapedArray]) -> Callable[..., tuple[Array, ...]]:
    """A function of JAX that calls the main function of a StableHLO module."""
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jax._src.lib.mlir.dialects import func
    from jax.extend.core import Primitive

    primitive = Primitive("dump")
    primitive.multiple_results = True
    primitive.def_abstract_eval(lambda *avals: list(outs))

    def rule(ctx: LoweringRuleContext, *args: Value) -> Sequence[Value]:
        with ctx.module_context.module.context:
            module = ir.Module.parse(portable)
            # its attributes on devices and on its own compilation are set anew
            for name in _names_of(module.operation.attributes):
                if name.startswith("mhlo.") and not name.startswith("mhlo.num_"):
                    del module.operation.attributes[name]
            main = _main(module)
            main.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get({}) for _ in main.type.inputs])
            types = main.type.results
            into = ctx.module_context.module
            name = mlir.merge_mlir_modules(into, "dump", module, dst_symtab=ctx.module_context.symbol_table)
            results: Sequence[Value] = func.CallOp(types, ir.FlatSymbolRefAttr.get(name), args).results
            return results

    mlir.register_lowering(primitive, rule)

    def program(*values: Array) -> tuple[Array, ...]:
        return tuple(primitive.bind(*values))

    return program


def _names_of(attributes: Attribute) -> list[str]:
    return [str(getattr(each, "name", each)) for each in attributes]


def _main(module: Module) -> Operation:
    return next(op for op in module.body.operations if str(getattr(op, "name", "")).strip('"') == "main")


def _aval(kind: Type) -> ShapedArray:
    """The shape of an array of StableHLO's. Raises what MLIR raises for a token or an opaque value."""
    jax = need_jax()
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    tensor = ir.RankedTensorType(kind)
    for dtype in _DTYPES:
        if mlir.dtype_to_ir_type(jax.numpy.dtype(dtype)) == tensor.element_type:
            return jax.core.ShapedArray(tuple(tensor.shape), jax.numpy.dtype(dtype))
    raise LayoutError(problems.NO_ARRAY(kind))


_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int4", "uint4"),
    *("bfloat16", "float16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"),
)


def _by_array(change: JsonObject, kept: Sequence[int] | None) -> JsonObject:
    """A candidate with arrays in place of parameters. kept: the array that each parameter is."""

    def array(number: int) -> int:
        if kept is None:
            return number
        if number >= len(kept):
            raise LayoutError(problems.NO_PARAMETER(number))
        return kept[number]

    found: dict[str, Any] = {
        name: {array(int(key)): tuple(value) for key, value in change[name].items()}
        for name in ("orders", "padded", "reshaped")
    }
    return {
        **found,
        "results": {int(key): tuple(value) for key, value in change["results"].items()},
        "donated": [array(number) for number in change["donated"]],
    }


def _changed(arrays: Sequence[ShapeDtypeStruct], change: JsonObject) -> list[ShapeDtypeStruct]:
    """The arrays that the program is given in place of its own."""
    jax = need_jax()
    found = list(arrays)
    for number, dims in {**change["padded"], **change["reshaped"]}.items():
        found[number] = jax.ShapeDtypeStruct(dims, found[number].dtype, sharding=found[number].sharding)
    return found


def _jitted(program: _TriedProgram, change: JsonObject, mesh: Mesh) -> Wrapped:
    """The program with a candidate, for the arrays of `_changed`."""
    jax = need_jax()
    own = [tuple(array.shape) for array in program.arrays]

    def function(*values: Array) -> object:
        put = list(values)
        for number in change["padded"]:
            put[number] = jax.lax.slice(put[number], (0,) * len(own[number]), own[number])
        for number in change["reshaped"]:
            put[number] = jax.lax.reshape(put[number], own[number])
        return tuple(jax.tree_util.tree_leaves(program.function(*put)))

    function.__name__ = program.function.__name__
    options: dict[str, Any] = {}
    donated = {*(program.donated or ()), *change["donated"]}
    if donated:
        options["donate_argnums"] = tuple(sorted(donated))
    single = None if mesh.axis_names else jax.sharding.SingleDeviceSharding(mesh.devices.flat[0])
    if change["orders"]:
        options["in_shardings"] = tuple(
            _format(change["orders"].get(k), array.sharding or single) for k, array in enumerate(program.arrays)
        )
    if change["results"]:
        count = len(jax.eval_shape(function, *_changed(program.arrays, change)))
        options["out_shardings"] = tuple(_format(change["results"].get(k), single) for k in range(count))
    return jax.jit(function, **options)


def _format(order: tuple[int, ...] | None, sharding: Sharding) -> Format:
    """As JAX takes a layout. order: from major to minor, () the compiler's choice, None the default one."""
    if order is None:
        return sharding
    layouts = importlib.import_module("jax.experimental.layout")
    # their names until jax 0.7
    format_of = getattr(layouts, "Format", None) or layouts.Layout
    layout_of = layouts.Layout if hasattr(layouts, "Format") else layouts.DeviceLocalLayout
    return format_of(layout_of(order) if order else layout_of.AUTO, sharding)


def _kept(lowered: Lowered) -> list[int] | None:
    """The arrays that the compiled program has as parameters: JAX leaves out unused ones. None = unknown."""
    with contextlib.suppress(Exception):
        return sorted(lowered._lowering.compile_args["kept_var_idx"])
    return None


if __name__ == "__main__":
    serve(answered)
