"""The answering side of `compile`: traces one function and has it compiled, in a process of its own.

What it needs of JAX is asked of the user's own: `jax.jit(f).lower(..).compile()`, ahead of time. A topology's devices
are not there; nothing is computed.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import layoutproof
from layoutproof.compiler import cache, libtpu
from layoutproof.compiler.serve import Tell, serve
from layoutproof.compiler.tracing import Tracing
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, Unsupported, shorten, unknown_name
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.pallas.from_jax import user
from layoutproof.pallas.from_jax.adapter import device_of, need_jax
from layoutproof.programs import problems
from layoutproof.programs.shardings import read_specs

if TYPE_CHECKING:
    from jax import Device, ShapeDtypeStruct
    from jax.extend.core import ClosedJaxpr
    from jax.sharding import Mesh, PartitionSpec
    from jax.stages import Compiled as JaxCompiled
    from jax.stages import Lowered, Traced

CPU = "cpu"
_MEMORY = {
    "arguments": "argument_size_in_bytes",
    "outputs": "output_size_in_bytes",
    "aliased": "alias_size_in_bytes",
    "temporaries": "temp_size_in_bytes",
    "generated_code": "generated_code_size_in_bytes",
    "peak": "peak_memory_in_bytes",
}
_POLICIES = "jax.checkpoint_policies."
"""The beginning of an argument that is a remat policy, which JAX has as a function."""
_KEPT = "program 3"
"""The version of answers in the cache; another number for another form of `compiled`'s result."""


def answered(request: JsonObject, tell: Tell) -> JsonObject:
    """One program for one target: `compiled`, or `refused` with the compiler's words.

    Where `same` is asked, it is as of `same_source.compared`.
    """
    source: list[Any] = []
    start = time.process_time()

    def lower(request: JsonObject) -> tuple[Lowered, list[str]]:
        lowered, results, jaxpr = _lowered(request)
        source[:] = [jaxpr, _kept_inputs(lowered)]
        return lowered, results

    found = answer_of(request, tell, lower)
    if "text" in found:
        found["source"], found["stated"] = _source(source[0])
    if request.get("same") and "text" in found:
        found["same"] = _compared(request, tell, lower, found, source)
    # of all threads: the compiler has many
    return {**found, "cpu": time.process_time() - start}


def _source(jaxpr: ClosedJaxpr) -> tuple[JsonObject, list[JsonObject]]:
    """The work of a program and of its kernels by its own source, and its values; nothing where it cannot be told."""
    from layoutproof.pallas.from_jax.programs import program_of
    from layoutproof.programs.source_work import of_source
    from layoutproof.programs.stated import stated

    with contextlib.suppress(LayoutError, Unsupported):
        program = program_of(jaxpr)
        return of_source(program), stated(program)
    return {}, []


def _compared(
    request: JsonObject, tell: Tell, lower: Callable[[JsonObject], tuple[Lowered, list[str]]],
    found: JsonObject, source: Sequence[ClosedJaxpr],
) -> JsonObject:  # fmt: skip
    """The comparison of a compiled program with its source; for one that is too large, of a smaller compilation.

    lower: as of `answer_of`.  found: its result.  source: the jaxpr that was lowered last, and its inputs that are
    parameters of the compiled program.
    """
    from layoutproof.pallas.from_jax.programs import program_of
    from layoutproof.programs.same_source import compared, too_large, unknown

    program = program_of(source[0])
    large = too_large(program)
    reduced: list[str] = []
    if large:
        tell("smaller sizes")
        shapes, why, reduced = _smaller(request, program)
        if why:
            return unknown(problems.SMALLER_NOT_TRIED(large, why))
        found = answer_of({**request, "shapes": shapes}, tell, lower)
        if "text" not in found:
            words = shorten(" ".join(str(found["refused"]).split()), 400)
            return unknown(problems.SMALLER_REFUSED(large, ", ".join(reduced), words))
        program = program_of(source[0])
    tell("comparing")
    said = compared(found.get("whole") or found["text"], program, source[1], found["shardings"])
    return said | {"reduced": reduced}


def _smaller(request: JsonObject, program: ClosedJaxpr) -> tuple[list[tuple[int, ...]], str, list[str]]:
    """(Smaller shapes of the arrays among the arguments, why there are none, the text about those that changed)."""
    from layoutproof.pallas.from_jax.programs import program_of
    from layoutproof.questions.reduced import halved

    if request["exported"]:
        return [], "a file of jax.export has no others", []
    with contextlib.ExitStack() as stack:
        _, given, kwargs = called(request, stack)
    flat, keystr = need_jax().tree_util.tree_flatten_with_path, need_jax().tree_util.keystr
    arrays = [
        (f"{side}{keystr(path)}", leaf) for side, tree in (("args", given), ("kwargs", kwargs))
        for path, leaf in flat(tree)[0] if _is_array(leaf)
    ]  # fmt: skip

    def traced(shapes: list[tuple[int, ...]]) -> list[ClosedJaxpr]:
        with contextlib.ExitStack() as stack:
            try:
                return [program_of(_traced({**request, "shapes": shapes}, stack).jaxpr)]
            except Exception as error:
                # a function of other sizes raises whatever it likes
                raise LayoutError(str(error)) from None

    given_shapes = [tuple(leaf.shape) for _, leaf in arrays]
    shapes, why = halved(given_shapes, set(), traced)
    pairs = zip(arrays, shapes, strict=True)
    changed = [f"{name} {list(s)} for {list(leaf.shape)}" for (name, leaf), s in pairs if s != tuple(leaf.shape)]
    return shapes, why, changed


def answer_of(request: JsonObject, tell: Tell, lower: Callable[[JsonObject], tuple[Lowered, list[str]]]) -> JsonObject:
    """The same. lower: makes of a request the program before it is compiled, and the names of its results."""
    start = time.perf_counter()
    tell("tracing")
    lowered, results = lower(request)
    # the compiled text has the places in the user's program; the values do not depend on them
    placed, bare = (_digest(lowered.as_text(debug_info=debug)) for debug in (True, False))
    jax = need_jax()
    about = {"jax": jax.__version__, "compiler": _compiler(request), "lowered": bare}
    options = [request["target"], request["topology"], request["flags"], os.environ.get("XLA_FLAGS", "")]
    # with all of its constants a text is many times larger
    options += ["whole"] if request.get("same") else []
    key = [_KEPT, about, placed, *options]
    # files that a flag asks for are written by compiling alone
    kept = None if "xla_dump_to" in request["flags"] or request.get("schedule") else cache.get(key)
    traced = time.perf_counter() - start
    if kept is None:
        tell("compiling")
        try:
            made = lowered.compile(compiler_options=dict(request["flags"]) or None)
        except Exception as error:
            # every exception here is the compiler's answer; the user's code ran before
            return {**about, "refused": shorten(f"{error}".strip() or type(error).__name__, 4000)}
        kept = compiled(made, results, lambda: libtpu.written_text(lowered, request["flags"]))
        if request.get("same"):
            kept["whole"] = _with_constants(made)
        if not request.get("schedule"):
            cache.put(key, kept)
        kept = {**kept, "seconds": time.perf_counter() - start - traced}
    return {**about, "traced": traced, **kept}


def compiled(made: JaxCompiled, results: Sequence[str] = (), otherwise: Callable[[], str] = lambda: "") -> JsonObject:
    """What JAX's compiled program says of itself, as plain data.

    results: their names, () where unknown.  otherwise: its text where it cannot be asked for it; "" where that fails.
    """
    try:
        text = made.as_text()
    except Exception:
        # jaxlib 0.10.2 cannot read back some programs of libtpu 0.0.52 for 7x (async-update)
        text = otherwise()
        if not text:
            raise
    memory: dict[str, int] = {}
    with contextlib.suppress(Exception):
        stats = made.memory_analysis()
        memory = {name: int(getattr(stats, key)) for name, key in _MEMORY.items() if hasattr(stats, key)}
        if not memory.get("peak"):
            memory.pop("peak", None)
    cost: dict[str, float] = {}
    with contextlib.suppress(Exception):
        found = made.cost_analysis()
        found = found[0] if isinstance(found, list) else found
        for name, key in (("flops", "flops"), ("bytes_accessed", "bytes accessed")):
            # the compiler gives negative numbers for what it does not count
            if found is not None and found.get(key, -1.0) >= 0:
                cost[name] = float(found[key])
    shardings: dict[str, list[str]] = {"parameters": [], "results": []}
    with contextlib.suppress(Exception):
        from jax._src.lib import xla_client

        run = made.runtime_executable()
        for name, given in (
            ("parameters", run.get_parameter_shardings()),
            ("results", run.get_output_shardings()),
        ):
            shardings[name] = [str(xla_client.HloSharding.from_proto(each)) for each in given or ()]
    return {
        "text": text,
        "memory": memory,
        "cost": cost,
        "shardings": shardings,
        "specs": _specs(made),
        **_places(made),
        "results": list(results),
    }


def _places(made: JaxCompiled) -> JsonObject:
    """The coordinates of each device's chip, and its slice where there are several; [] for devices without any.

    Devices as the program numbers them.
    """
    with contextlib.suppress(Exception):
        leaves = need_jax().tree_util.tree_leaves((made.input_shardings, made.output_shardings))
        devices = leaves[0]._device_assignment
        slices = [int(getattr(device, "slice_index", None) or 0) for device in devices]
        chips = [list(map(int, device.coords)) for device in devices]
        return {"chips": chips, "slices": slices if len(set(slices)) > 1 else []}
    return {"chips": [], "slices": []}


def _specs(made: JaxCompiled) -> dict[str, list[str]]:
    """The shardings of parameters and results as JAX spells them, "" for those without a mesh."""
    found: dict[str, list[str]] = {"parameters": [], "results": []}
    with contextlib.suppress(Exception):
        leaves = need_jax().tree_util.tree_leaves
        for name, given in (("parameters", made.input_shardings), ("results", made.output_shardings)):
            found[name] = [
                f"{each.spec} on {each.mesh}" if hasattr(each, "spec") and hasattr(each, "mesh") else ""
                for each in leaves(given)
            ]
    return found


def _with_constants(made: JaxCompiled) -> str:
    """The compiled text with every constant written out; "" where it cannot be had."""
    with contextlib.suppress(Exception):
        from jaxlib._hlo import HloPrintOptions

        options = HloPrintOptions()
        options.print_large_constants = True
        return "\n".join(module.to_string(options) for module in made.runtime_executable().hlo_modules())
    return ""


def _kept_inputs(lowered: Lowered) -> list[int] | None:
    """The arguments, by number, that are parameters of what is compiled; None where JAX does not say."""
    with contextlib.suppress(Exception):
        return sorted(map(int, lowered._lowering.compile_args["kept_var_idx"]))
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(cache.anywhere(text).encode(errors="backslashreplace")).hexdigest()[:32]


def _compiler(request: JsonObject) -> str:
    """Which compiler this process has, with its version."""
    if request["target"] == CPU:
        import jaxlib

        return f"XLA:CPU of jaxlib {jaxlib.__version__}"
    named = f"libtpu {request['libtpu']}" if request["libtpu"] else libtpu.version()
    return libtpu.with_flags(named, libtpu.told())


def _lowered(request: JsonObject) -> tuple[Lowered, list[str], ClosedJaxpr]:
    """(the program before it is compiled, the names of its results, its jaxpr)."""
    jax = need_jax()
    with contextlib.ExitStack() as stack:
        traced = _traced(request, stack)
        lowered = traced.lower()
        if request.get("elsewhere"):
            _refuse_modules_of(Path(request["elsewhere"]))
        return lowered, _names(jax, lowered), traced.jaxpr


def _traced(request: JsonObject, stack: contextlib.ExitStack) -> Traced:
    """What JAX traces of a request. stack: within it it is traced and lowered."""
    jax = need_jax()
    target, mesh = request["target"], _mesh(request)
    place = request["program"]
    if request["exported"]:
        function, args, kwargs = _exported(Path(place), mesh)
    else:
        function, given, kwargs = called(request, stack)
        args = _placed(given, request, mesh)
    options: dict[str, Any] = {}
    if request["donate"]:
        options["donate_argnums"] = tuple(request["donate"])
    if request["out"]:
        options["out_shardings"] = _out(request, mesh)
    fixed = [k for k, value in enumerate(args) if _is_fixed(value)]
    if fixed and not hasattr(function, "lower"):
        options["static_argnums"] = tuple(fixed)
    named = [name for name, value in kwargs.items() if _is_no_array(value)]
    if named and not hasattr(function, "lower"):
        options["static_argnames"] = tuple(named)
    jitted = jax.jit(function, **options) if options or not hasattr(function, "lower") else function
    if target != CPU:
        # rules of lowering ask which chip they are for
        stack.enter_context(device_of(target))
    stack.enter_context(on_mesh(mesh))
    traced = jitted.trace(*args, **kwargs)
    _must_give_arrays(traced.jaxpr.jaxpr.outvars, place)
    return traced


def called(request: Mapping[str, Any], stack: contextlib.ExitStack) -> tuple[Any, list[Any], dict[str, Any]]:
    """(the function that a request names, its arguments, those by name). stack: within it user code runs."""
    place, said = request["program"], request.get("rule")
    given = [_tree(value) for value in request["args"]]
    kwargs = {name: _tree(value) for name, value in request["kwargs"].items()}
    rule = None if said is None else Tracing(True, None if said[0] is None else tuple(said[0]), said[1])
    if rule is not None:
        # a policy of JAX by its name is no code that the file chooses
        texts, values = [*request["args"], *request["kwargs"].values()], [*given, *kwargs.values()]
        user.check_stated([value for text, value in zip(texts, values, strict=True) if not _is_policy(text)], place)
    function = stack.enter_context(user.named_function(place, rule))
    user._check_arity(function, place, given, kwargs)
    if "shapes" in request:
        given, kwargs = _at(request["shapes"], (given, kwargs))
    return function, given, kwargs


def _at(shapes: Sequence[Sequence[int]], given: Any) -> Any:
    """Arguments whose arrays have other shapes, in order."""
    jax = need_jax()
    leaves, form = jax.tree_util.tree_flatten(given)
    new = iter(shapes)
    return jax.tree_util.tree_unflatten(
        form, [jax.ShapeDtypeStruct(tuple(next(new)), x.dtype) if _is_array(x) else x for x in leaves]
    )


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, need_jax().ShapeDtypeStruct)


def _must_give_arrays(results: Sequence[object], place: str) -> None:
    """LayoutError where a function gives back no array: of a program of nothing every claim holds."""
    if all(type(result).__name__ == "Literal" for result in results):
        what = "only numbers that are known when it is traced" if results else "nothing"
        raise LayoutError(problems.NO_ARRAY_BACK(place, what))


def _refuse_modules_of(checkout: Path) -> None:
    """Raises Unsupported where a module was imported from another checkout than the program's: then it is a mixture."""
    own = Path(layoutproof.__file__).parent
    for name, module in sorted(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "/")
        if file.is_relative_to(checkout) and not file.is_relative_to(own) and "site-packages" not in file.parts:
            raise Unsupported(problems.IMPORTED_FROM_HERE(name))


def _names(jax: ModuleType, lowered: Lowered) -> list[str]:
    with contextlib.suppress(Exception):
        leaves, _ = jax.tree_util.tree_flatten_with_path(lowered.out_info)
        return [f"result{jax.tree_util.keystr(path)}" for path, _ in leaves]
    return []


def on_mesh(mesh: Mesh) -> contextlib.AbstractContextManager[object]:
    """Within it bare partition specs in a function mean this mesh, if it has axes."""
    if not mesh.axis_names:
        return contextlib.nullcontext()
    jax = need_jax()
    return jax.set_mesh(mesh) if hasattr(jax, "set_mesh") else mesh  # type: ignore[no-any-return]


def _mesh(request: JsonObject) -> Mesh:
    """The mesh of a request over the topology's devices; of one device without axes where it names none."""
    import numpy as np

    jax = need_jax()
    target, topology, axes = request["target"], request["topology"], request["mesh"]
    if target == CPU:
        devices: list[Any] = list(jax.devices("cpu"))
        wanted = int(np.prod(list(axes.values()))) if axes else 1
        if len(devices) < wanted:
            raise LayoutError(problems.MESH_OVER_CPU(wanted, len(devices)))
        devices = devices[:wanted]
    else:
        devices = _devices(target, topology)
    sizes, names = tuple(axes.values()), tuple(axes)
    if not axes:
        if len(devices) > 1 and topology:
            raise LayoutError(problems.MESH_NEEDED(topology, len(devices)))
        devices, sizes = devices[:1], ()
    if int(np.prod(sizes or (1,))) != len(devices):
        many = int(np.prod(sizes))
        raise LayoutError(problems.MESH_OVER_TOPOLOGY(many, topology or "of one chip", len(devices)))
    grid = np.array(devices).reshape(sizes)
    if axes and target != CPU:
        from jax.experimental import mesh_utils

        with contextlib.suppress(Exception):
            grid = mesh_utils.create_device_mesh(sizes, devices)
    return jax.sharding.Mesh(grid, names)


def _devices(target: str, topology: str) -> list[Device]:
    from jax.experimental.topologies import get_topology_desc

    chip = CHIPS[target].topology
    if not topology:
        return [libtpu.device(chip)]
    name = libtpu.topology_name(chip, topology)
    try:
        try:
            return list(get_topology_desc(platform="tpu", topology_name=name).devices)
        except Exception:
            # less than a host, or no multiple of one: as if the whole were one host
            bounds = (*map(int, name.partition(":")[2].split("x")), 1, 1)[:3]
            return list(get_topology_desc(platform="tpu", topology_name=name, chips_per_host_bounds=bounds).devices)
    except Exception as error:
        raise LayoutError(problems.NO_TOPOLOGY(topology, target, shorten(str(error), 200))) from None


def _tree(value: object) -> object:
    """An argument: arrays where a text writes a shape, also inside of dicts and lists; else itself."""
    if isinstance(value, str):
        if _is_policy(value):
            return _policy(value.removeprefix(_POLICIES))
        try:
            found = user.argument(value)
        except LayoutError:
            if value.strip().startswith(("{", "[", "(")) or user._SHAPE.fullmatch(value):
                raise  # i32[8] is meant for a shape; a string that looks like one is written in quotes
            return value
        return found if not isinstance(found, dict | list | tuple) else _inner(found)
    return _inner(value)


def _is_policy(value: object) -> bool:
    return isinstance(value, str) and value.startswith(_POLICIES)


def _policy(name: str) -> object:
    """A policy of `jax.checkpoint_policies`, by its name. LayoutError where there is none.

    What makes a policy of names stands there too, and is none: only a policy takes the parameters of an equation.
    """
    policies = need_jax().checkpoint_policies
    known = [
        each for each in dir(policies) if not each.startswith("_")
        and any(p.kind is p.VAR_KEYWORD for p in inspect.signature(getattr(policies, each)).parameters.values())
    ]  # fmt: skip
    if name not in known:
        raise unknown_name("policy of jax.checkpoint_policies", name, known)
    return getattr(policies, name)


def _inner(value: object) -> object:
    if isinstance(value, dict):
        return {key: _inner(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_inner(part) for part in value)
    if isinstance(value, str) and user._SHAPE.fullmatch(value):
        return user.argument(value)
    return value


def _is_fixed(value: object) -> bool:
    """Whether an argument is no array nor a tree with arrays: Python's own, for which the program is made."""
    jax = need_jax()
    leaves = jax.tree_util.tree_leaves(value)
    return not any(map(_is_array, leaves))


def _is_no_array(value: object) -> bool:
    """Whether JAX makes no array of an argument: a text or a function, such as a remat policy."""
    return any(isinstance(leaf, str) or callable(leaf) for leaf in need_jax().tree_util.tree_leaves(value))


def _placed(given: Sequence[object], request: JsonObject, mesh: Mesh) -> list[object]:
    """The arguments with their shardings; replicated over the mesh where none is said."""
    jax = need_jax()
    specs = [read_specs(text, request["mesh"]) for text in request["in"]]
    if len(specs) > len(given):
        raise LayoutError(problems.SHARDINGS_OF_ARGUMENTS(len(specs), len(given)))
    whole = ("P", ())
    return [
        _sharded(jax, mesh, value, spec, f"argument {k}")
        for k, (value, spec) in enumerate(zip(given, [*specs, *[whole] * (len(given) - len(specs))], strict=True))
    ]


def _sharded(jax: ModuleType, mesh: Mesh, value: object, spec: PartitionSpec, what: str) -> object:
    """An array, or each of a dict or a list, with its sharding; one `P(..)` is that of all of them."""
    if isinstance(value, jax.ShapeDtypeStruct):
        return _sharded_array(jax, mesh, value, spec, what)
    if isinstance(value, dict):
        if not _is_one(spec) and (not isinstance(spec, dict) or set(spec) - set(value)):
            raise LayoutError(problems.SHARDING_KEYS(what, ", ".join(map(str, value))))
        parts = dict.fromkeys(value, spec) if _is_one(spec) else {name: spec.get(name, ("P", ())) for name in value}
        return {name: _sharded(jax, mesh, each, parts[name], f"{what}[{name!r}]") for name, each in value.items()}
    if isinstance(value, list | tuple):
        if not _is_one(spec) and (not isinstance(spec, list | tuple) or len(spec) != len(value)):
            raise LayoutError(problems.SHARDING_PARTS(what, len(value)))
        specs = [spec] * len(value) if _is_one(spec) else spec
        return type(value)(
            _sharded(jax, mesh, each, part, f"{what}[{k}]")
            for k, (each, part) in enumerate(zip(value, specs, strict=True))
        )
    return value


def _is_one(spec: object) -> bool:
    """Whether this is one `P(..)`, and no tree of them."""
    return isinstance(spec, tuple) and len(spec) == 2 and spec[0] == "P"


def _sharded_array(
    jax: ModuleType, mesh: Mesh, array: ShapeDtypeStruct, spec: PartitionSpec, what: str
) -> ShapeDtypeStruct:
    """One array, where the devices of the mesh divide each of its dimensions. LayoutError where they do not."""
    if not _is_one(spec):
        raise LayoutError(problems.SHARDING_OF_ARRAY(what))
    entries = spec[1]
    if len(entries) > len(array.shape):
        raise LayoutError(problems.SHARDING_DIMENSIONS(what, len(array.shape), len(entries)))
    for size, entry in zip(array.shape, entries, strict=False):
        axes = entry if isinstance(entry, tuple) else () if entry is None else (entry,)
        many = prod(mesh.shape[axis] for axis in axes)
        if size % many:
            raise LayoutError(problems.DEVICES_DO_NOT_DIVIDE(what, many, size))
    if mesh.axis_names:
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*entries))
    else:
        sharding = jax.sharding.SingleDeviceSharding(mesh.devices.flat[0])
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)


def _out(request: JsonObject, mesh: Mesh) -> object:
    jax = need_jax()

    def made(spec: PartitionSpec) -> object:
        if isinstance(spec, tuple) and len(spec) == 2 and spec[0] == "P":
            return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec[1]))
        if isinstance(spec, dict):
            return {name: made(part) for name, part in spec.items()}
        return type(spec)(made(part) for part in spec)

    found = [made(read_specs(text, request["mesh"])) for text in request["out"]]
    return found[0] if len(found) == 1 else tuple(found)


def _exported(path: Path, mesh: Mesh) -> tuple[Any, list[Any], dict[str, Any]]:
    """The function of a `jax.export` file, with the arguments that it says it takes."""
    jax = need_jax()
    from jax import export

    from layoutproof.core.files import MAX_TEXT, read

    try:
        found = export.deserialize(bytearray(read(path, MAX_TEXT)))
    except LayoutError:
        raise
    except Exception as error:
        raise LayoutError(problems.NO_EXPORT(shorten(str(error), 200)), file=str(path)) from None
    if found.nr_devices != mesh.devices.size:
        raise LayoutError(problems.EXPORTED_FOR(found.nr_devices, mesh.devices.size), file=str(path))
    if found.nr_devices > 1:
        shardings = found.in_shardings_jax(mesh)
    else:
        shardings = [jax.sharding.SingleDeviceSharding(mesh.devices.flat[0])] * len(found.in_avals)
    leaves = [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding)
        for aval, sharding in zip(found.in_avals, shardings, strict=True)
    ]
    args, kwargs = jax.tree_util.tree_unflatten(found.in_tree, leaves)
    return found.call, list(args), dict(kwargs)


if __name__ == "__main__":
    serve(answered)
