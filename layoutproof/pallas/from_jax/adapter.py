"""The one file that knows where JAX keeps things, and what moves between its versions.

Read from jax 0.10.2 (Python 3.11) and jax 0.12.0.1 (Python 3.12): a block mapping's `index_map_jaxpr` is a ClosedJaxpr
in the first and a Jaxpr in the second; block dimensions are ints, None or objects in the first, always objects later;
what a kernel is told of the chip comes from `jax/_src/pallas/mosaic/tpu_info.py`, later from `jax/_src/tpu_info.py`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import dropwhile, takewhile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from layoutproof.core.errors import LayoutError
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.pallas.from_jax import problems
from layoutproof.pallas.from_jax.of_jax import (
    EitherJaxpr,
    JaxAtom,
    JaxAval,
    JaxEquation,
    JaxJaxpr,
    JaxLiteral,
    JaxPrimitive,
    Params,
)

if TYPE_CHECKING:
    from jax._src.source_info_util import SourceInfo
    from jax.core import ShapedArray, Tracer
    from jax.extend.core import Jaxpr, JaxprEqn
    from jax.sharding import Mesh
    from jax.typing import ArrayLike

KNOWN = ((0, 10), (0, 11), (0, 12))
"""Versions of JAX (major, minor) whose Pallas calls are read; 0.10.2 and 0.12.0.1 were tried."""

MARK = "layoutproof_pipeline"
"""Scope put round a pipeline that was seen, so that what it moves is told from the manual DMA of the body."""
PARTS = "layoutproof_parts"
"""The same round a pipeline that was given views, `x.at[..]`: which part of the array that is, the body has chosen."""
BODY = "layoutproof_body"
"""Scope put round the body of a pipeline, in which anything may be moved by manual DMA again."""

PIPELINES = {
    "jax._src.pallas.mosaic.pipeline": ("_emit_pipeline",),
    "jax._src.pallas.mosaic_gpu.pipeline": ("emit_pipeline", "emit_pipeline_warp_specialized"),
}
"""Module -> the functions that every pipeline written with it goes through."""

SPARSE_CORE = "jax._src.pallas.mosaic.sc_primitives"
"""The module of the primitives that SparseCores alone have."""
MOSAIC_GPU = "jax._src.pallas.mosaic_gpu.primitives"
"""The module of the primitives that Mosaic GPU alone has."""
_AS_OTHERS = ("load", "semaphore_signal", "semaphore_wait")
"""Its primitives that have the names of others."""
_RENAMED = {
    name.removesuffix("_p"): name
    for name in ("set_max_registers_p", "wgmma_accumulator_deref_p", "wgmma_accumulator_store_p", "inline_mgpu_p")
}
"""Names of them in jax 0.12, and those of before, by which they are read."""

_OURS = str(Path(__file__).resolve().parents[2]) + os.sep


_SPACES = {
    "default": "vmem",
    "none": "vmem",
    "any": "any",
    "hbm": "hbm",
    "vmem": "vmem",
    "smem": "smem",
    "host": "host",
}
_SPACES |= {"semaphore_mem": "semaphore", "semaphore": "semaphore", "vmem_shared": "vmem_shared", "cmem": "cmem"}
_SPACES |= {"gmem": "gmem", "error": "any", "regs": "regs", "tmem": "tmem"}


def memory_word(space: object) -> str:
    """A memory space of JAX as a word of `kernel.MEMORIES`."""
    # a space may be said with the mesh whose it is (`MemorySpace.VMEM @ mesh`)
    space = space.memory_space if hasattr(space, "mesh") and hasattr(space, "memory_space") else space
    # jax 0.12 wraps some spaces in objects whose text is the name
    text = str(getattr(space, "value", space)).lower().rpartition(".")[2]
    if text == "smem" and "mosaic_gpu" in type(space).__module__:
        # it is no scalar memory
        return "shared"
    return _SPACES.get(text, "any")


def need_jax() -> ModuleType:
    """The jax module. LayoutError where it is missing or of an untested version."""
    if "jax" not in sys.modules:
        # shapes are traced on the CPU; looking for other devices takes time, and libtpu writes to the terminal
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    try:
        import jax
    except ImportError as error:
        raise LayoutError(problems.NEEDS_JAX(error)) from None
    version = tuple(int(part) for part in jax.__version__.split(".")[:2])
    if version not in KNOWN:
        known = ", ".join(f"{a}.{b}" for a, b in KNOWN)
        raise LayoutError(problems.JAX_VERSION(jax.__version__, known))
    module: ModuleType = jax
    return module


def opened(jaxpr: EitherJaxpr) -> tuple[JaxJaxpr, tuple[ArrayLike, ...]]:
    """(the jaxpr, values of its constants), from a ClosedJaxpr or a Jaxpr."""
    inner = jaxpr.jaxpr if hasattr(jaxpr, "jaxpr") else jaxpr
    return inner, tuple(getattr(jaxpr, "consts", ()))


MESH_KERNELS = ("mpmd_map", "core_map")
"""Primitives that run a kernel over a mesh of cores."""


def over_meshes(params: Params) -> tuple[tuple[Mesh, ...], tuple[Jaxpr, ...]]:
    """(The meshes of a `mpmd_map` or `core_map`, the jaxpr that runs over each)."""
    meshes = tuple(params["meshes"]) if "meshes" in params else (params["mesh"],)
    return meshes, tuple(params["jaxprs"]) if "jaxprs" in params else (params["jaxpr"],)


def is_tracer(value: object) -> TypeGuard[Tracer]:
    """Whether a constant of a jaxpr is only there while JAX traces: of jax 0.12 a scope holds the references around it.

    The equation that runs the scope has them as operands, too.
    """
    # a plain value is asked about where JAX is not installed, too
    core = sys.modules.get("jax.core")
    return core is not None and isinstance(value, core.Tracer)


def inner_jaxprs(params: Mapping[str, object]) -> Iterator[tuple[str, EitherJaxpr]]:
    """Every jaxpr among an equation's parameters, also in tuples: (parameter name, jaxpr)."""
    for name, value in params.items():
        for entry in value if isinstance(value, tuple | list) else (value,):
            if hasattr(entry, "eqns") or hasattr(getattr(entry, "jaxpr", None), "eqns"):
                yield name, entry


def scan_parts(equation: JaxEquation) -> tuple[int, int]:
    """Of a scan: how many constants, how many carried values."""
    params = equation.params
    if "num_consts" in params:
        return int(params["num_consts"]), int(params["num_carry"])
    # jax 0.12
    consts, carry, _ = params["ft_in"].update(list(equation.invars)).unpack()
    return len(list(consts)), len(list(carry))


def evaluated(
    jaxpr: Jaxpr,
    equations: Sequence[JaxEquation],
    variables: Sequence[JaxAtom],
    values: Sequence[ArrayLike],
    result: JaxAtom,
) -> ArrayLike:
    """The result of some equations of a jaxpr on this machine's CPU. values: of the variables they start from."""
    jax = need_jax()
    eval_jaxpr = importlib.import_module("jax._src.core").eval_jaxpr
    names = jaxpr.debug_info.with_unknown_names()
    part = jaxpr.replace(
        eqns=list(equations), constvars=[], invars=list(variables), outvars=[result], effects=set(), debug_info=names
    )
    with jax.default_device(jax.devices("cpu")[0]), jax.ensure_compile_time_eval():
        (found,) = jax.jit(lambda *given: eval_jaxpr(part, (), *given))(*values)
    return found


def axes_around() -> dict[str, int]:
    """While something is traced: the axes of meshes, and of named grids, around it, with their extents."""
    sizes = importlib.import_module("jax._src.core").get_axis_env().axis_sizes
    return {name: extent for name, extent in dict(sizes).items() if isinstance(name, str) and type(extent) is int}


def axes_of(equation: JaxEquation) -> dict[str, int]:
    """The axes of the mesh that an equation runs its jaxprs on, with their extents; none of what is no shard_map."""
    mesh = equation.params.get("mesh") if equation.primitive.name == "shard_map" else None
    return {str(name): int(extent) for name, extent in dict(getattr(mesh, "shape", None) or {}).items()}


def enclosing_id(value: object) -> str:
    """The name of a traced value that is an id of the grid or of a mesh around it; "" for any other value."""
    made = getattr(value, "parent", None)
    primitive = str(getattr(made, "primitive", ""))
    if made is None or enclosing_extent(value) is None:
        return ""
    if primitive == "axis_index":
        return f"outer_axis_{made.params['axis_name']}"
    return f"outer_program_id{int(made.params['axis'])}"


class _Atom:
    """An operand of an equation that is still being traced."""

    def __init__(self, aval: JaxAval) -> None:
        self.aval = aval


class TracedEquation(NamedTuple):
    """An equation of a jaxpr that is still being traced."""

    primitive: JaxPrimitive
    params: Params
    invars: tuple[JaxAtom, ...]
    outvars: tuple[JaxAtom, ...]
    effects: object


def made_by(value: Tracer) -> tuple[TracedEquation, tuple[Tracer | int, ...], int] | None:
    """The origin of a value that is being traced: its equation, the operands, which of the results it is.

    None of an input, and where a version of JAX does not keep it. Source: `DynamicJaxprTracer` and `TracingEqn` of
    jax/_src/interpreters/partial_eval.py, jax 0.10.2.
    """
    made = getattr(value, "parent", None)
    given = getattr(made, "in_tracers", None)
    results = [k for k, v in enumerate(getattr(made, "outvars", ())) if v is getattr(value, "val", None)]
    if made is None or given is None or not results:
        return None
    operands = tuple(_Atom(v.aval) for v in given)
    equation = TracedEquation(made.primitive, made.params, operands, tuple(made.outvars), made.effects)
    # a constant is traced as a value that nothing has made
    return equation, tuple(v.val.val if is_literal(getattr(v, "val", None)) else v for v in given), results[0]


def runs_whatever(value: object) -> bool:
    """Whether the code being traced runs as often as the value's equation: no branch or loop is between the two."""
    context = getattr(importlib.import_module("jax._src.core"), "trace_ctx", None)
    now, then = getattr(context, "trace", None), getattr(value, "_trace", None)
    return now is not None and now is then


def enclosing_extent(value: object) -> int | None:
    """Of a traced value that is an id of the grid or a mesh around it, how many there are; None for anything else."""
    made = getattr(value, "parent", None)
    primitive = str(getattr(made, "primitive", ""))
    if made is not None and primitive == "axis_index":
        return axes_around().get(made.params["axis_name"])
    if made is None or primitive != "program_id":
        return None
    core = importlib.import_module("jax._src.pallas.core")
    try:
        extent = core.axis_frame().grid[int(made.params["axis"])]
    except (AttributeError, AssertionError, IndexError, KeyError):
        # a version of JAX that keeps the grid elsewhere: nothing is known of the number
        return None
    return extent if type(extent) is int else None


def body_of(params: Params) -> Jaxpr:
    """The jaxpr of what an equation runs: of a `pallas_call`, a `core_map`, or the one body of a `mpmd_map`."""
    return params["jaxprs"][0] if "jaxprs" in params else params["jaxpr"]


def is_semaphore(aval: JaxAval) -> bool:
    """Whether a value is of semaphores."""
    return "sem" in str(getattr(aval, "dtype", ""))


def is_placed(aval: JaxAval) -> bool:
    """Whether a value lies in an explicitly chosen memory, and not where arrays usually do."""
    space = str(getattr(aval, "memory_space", None)).rpartition(".")[2].lower()
    return space not in ("none", "any", "device", "default")


def put(value: ArrayLike, aval: ShapedArray) -> ArrayLike:
    """A value where `with_memory_space_constraint` puts one of this type, as the kernel is given it."""
    if not is_placed(aval):
        return value
    from jax.experimental.pallas import tpu

    return tpu.with_memory_space_constraint(value, aval.memory_space)


def is_pallas_call(params: Mapping[str, object]) -> bool:
    """Whether an equation is a call with grid and block mappings."""
    return hasattr(params.get("grid_mapping"), "block_mappings")


def is_literal(atom: object) -> TypeGuard[JaxLiteral]:
    """Whether an operand of an equation is a constant, and no variable."""
    return hasattr(atom, "val")


def dropped(variable: JaxAtom) -> bool:
    """Whether a result of an equation is thrown away."""
    return type(variable).__name__ == "DropVar"


def blocks_with_names() -> contextlib.AbstractContextManager[object]:
    """Within it blocks of kernels may have sizes that are names: those that hold all of an array.

    Source: jax/_src/pallas/core.py (pallas_export_experimental), jax 0.10.2 and 0.12.0. Where a version has no such
    thing, such a kernel cannot be traced.
    """
    made = getattr(importlib.import_module("jax._src.pallas.core"), "pallas_export_experimental", None)
    return contextlib.nullcontext() if made is None else made(dynamic_shapes=True)


@contextlib.contextmanager
def device_of(target: str) -> Iterator[None]:
    """Within it a function that this thread traces believes that it runs on one core of this generation.

    That is what `pltpu.get_tpu_info()`, `jax.devices()[0].device_kind` and `jax.default_backend()` tell it. What JAX
    has traced before is traced again, because a kernel's blocks may depend on the chip. Not an abstract mesh: inside of
    one `shard_map` refuses every mesh of the user's.
    Raises LayoutError for a generation that JAX does not know.
    """
    jax = need_jax()
    if target not in CHIPS:
        raise LayoutError(problems.TARGET(", ".join(CHIPS), target))
    kind, cores = CHIPS[target].kind, CHIPS[target].cores

    def devices(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **options: [_Device(d, kind, cores) for d in original(*args, **options)]

    with contextlib.ExitStack() as stack:
        for name in ("jax._src.tpu_info", "jax._src.pallas.mosaic.tpu_info"):
            module = _module(name)
            if module is not None and hasattr(module, "get_device_kind"):
                stack.enter_context(replaced(module, "get_device_kind", lambda _: lambda: kind))
                stack.enter_context(replaced(module, "get_num_device_cores", lambda _: lambda: cores))
        stack.enter_context(replaced(jax, "devices", devices))
        stack.enter_context(replaced(jax, "local_devices", devices))
        stack.enter_context(replaced(jax, "default_backend", lambda _: lambda: "tpu"))
        # JAX's caches hold what other chips were told; a value that was never there misses them all
        stack.enter_context(_cache_key(jax)(object()))
        yield


def sees_gpu() -> bool:
    """Whether a function that is traced here finds a GPU, if it looks for one."""
    return any(device.platform in ("gpu", "cuda", "rocm") for device in need_jax().devices())


class _Device:
    """A device of this machine that says it is another one."""

    platform = "tpu"
    core_on_chip = 0

    def __init__(self, device: object, kind: str, cores: int) -> None:
        self.device = device
        self.device_kind = kind
        self.num_cores = cores

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Device) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)


def _cache_key(jax: Any) -> Callable[[Any], contextlib.AbstractContextManager[Any]]:
    """JAX's context for values that caches of traced functions depend on; made once, it stays with the jax module."""
    if not hasattr(jax, "_layoutproof_traced"):
        jax._layoutproof_traced = jax.make_user_context(None)
    key: Callable[[Any], contextlib.AbstractContextManager[Any]] = jax._layoutproof_traced
    return key


@contextlib.contextmanager
def replaced(
    module: ModuleType, name: str, make: Callable[[Callable[..., object]], Callable[..., object]]
) -> Iterator[None]:
    """`module.name` is `make(what it was)` for this thread, and for others what it was.

    If other code has replaced it meanwhile, that replacement stays and ours becomes a no-op.
    """
    original = getattr(module, name)
    ours, thread, active = make(original), threading.get_ident(), [True]

    def call(*args: object, **options: object) -> object:
        chosen = ours if active and threading.get_ident() == thread else original
        return chosen(*args, **options)

    setattr(module, name, call)
    try:
        yield
    finally:
        active.clear()
        if getattr(module, name) is call:
            setattr(module, name, original)


def taken_as_ints(kind: type, read: Callable[..., int]) -> None:
    """JAX's operations take values of a type as ints from now on, as they take those of a NumPy scalar's.

    read: the int of one.
    """
    core, dtypes = (importlib.import_module(f"jax._src.{name}") for name in ("core", "dtypes"))
    core.pytype_aval_mappings[kind] = lambda value: core.typeof(read(value))
    dtypes.python_scalar_types_to_dtypes[kind] = dtypes.python_scalar_types_to_dtypes[int]
    dtypes.register_canonicalize_value_handler(kind, lambda value: dtypes.canonicalize_value(read(value)))


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class _All(set[Any]):
    """Every primitive there is."""

    def __contains__(self, primitive: object) -> bool:
        return True


@contextlib.contextmanager
def own_lines() -> Iterator[None]:
    """Within it each operation of a TPU kernel is lowered for itself, and so has its own line of the source.

    Otherwise JAX takes what it has lowered before for an equal operation, with the first one's line, and that is the
    line that the compiler's own files name. For a process of its own: other threads see it too.
    """
    module = _module("jax._src.pallas.mosaic.lowering")
    name = "_uncacheable_primitives"
    if module is None or not hasattr(module, name):
        yield
        return
    before = getattr(module, name)
    setattr(module, name, _All(before))
    try:
        yield
    finally:
        setattr(module, name, before)


@contextlib.contextmanager
def pipelines_traced(callback: Callable[[Mapping[str, object], tuple[object, ...]], None]) -> Iterator[None]:
    """Within it `callback(arguments of emit_pipeline, references it is called with)` sees every pipeline traced.

    Of the arguments, `platform` is ours: "tpu" or "mosaic_gpu"; `body` is what the pipeline runs; others, such as
    `allocations` and `scratches`, are those of the call.
    A TPU pipeline's equations carry the scope `MARK` or `PARTS`, those of its body `BODY`. That of a GPU is a loop of
    the body around it like any other.
    """
    jax = need_jax()
    looking = False

    def seen(options: Mapping[str, object], refs: tuple[object, ...]) -> None:
        nonlocal looking
        if looking:
            # looking at a pipeline traces its body, and the pipelines in it will be traced again
            return
        looking = True
        try:
            callback(options, refs)
        finally:
            looking = False

    def watching(platform: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def scope(name: str) -> contextlib.AbstractContextManager[object]:
            return jax.named_scope(name) if platform == "tpu" else contextlib.nullcontext()

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def emit(body: Callable[..., object], **options: object) -> Callable[..., object]:
                @functools.wraps(body)
                def scoped(*given: object, **named: object) -> object:
                    with scope(BODY):
                        return body(*given, **named)

                pipeline = original(scoped, **options)

                def called(*refs: object, **more: object) -> object:
                    # a pipeline calls itself again once its buffers are there; seen is seen
                    seen({**options, **more, "platform": platform, "body": body}, refs)
                    cut = any(is_view(ref) for ref in jax.tree.leaves(list(refs), is_leaf=is_view))
                    with scope(PARTS if cut else MARK):
                        return pipeline(*refs, **more)

                return _like(pipeline, called)

            return emit

        return make

    with contextlib.ExitStack() as stack:
        for name, functions in PIPELINES.items():
            platform = "mosaic_gpu" if "gpu" in name else "tpu"
            # the GPU's takes half a second to import, and is there where code uses it
            module = sys.modules.get(name) if platform == "mosaic_gpu" else _module(name)
            for function in functions:
                if module is not None and hasattr(module, function):
                    stack.enter_context(replaced(module, function, watching(platform)))
        # the public modules hold the GPU's functions under their own names
        public = sys.modules.get("jax.experimental.pallas.mosaic_gpu")
        for function in PIPELINES["jax._src.pallas.mosaic_gpu.pipeline"]:
            if public is not None and hasattr(public, function):
                stack.enter_context(replaced(public, function, watching("mosaic_gpu")))
        yield


def _like(pipeline: object, called: Callable[..., object]) -> Callable[..., object]:
    """`called` with the name and attributes of the pipeline that JAX gave out (`get_allocations` of the GPU's).

    A kernel that is a pipeline and nothing else has its name.
    """
    called.__name__ = getattr(pipeline, "__name__", called.__name__)
    for name, value in vars(pipeline).items() if hasattr(pipeline, "__dict__") else ():
        setattr(called, name, value)
    return called


def is_view(ref: object) -> bool:
    """Whether a reference is a part of another, `x.at[..]`."""
    return bool(getattr(ref, "transforms", ()))


def pipelined(jaxpr: JaxJaxpr) -> frozenset[int]:
    """The arguments of a kernel's body that only pipelines seen by `pipelines_traced` touch, and that they move whole.

    An operand of an unknown operation counts as touched.
    """
    inner, _ = opened(jaxpr)
    whole, touched = _uses(inner, "")
    return frozenset(k for k, v in enumerate(inner.invars) if id(v) in whole and id(v) not in touched)


def scope_of(equation: JaxEquation) -> str:
    """ "pipeline" or "body" for an equation of a pipeline seen by `pipelines_traced`, or of the body that it runs."""
    return {BODY: "body", MARK: "pipeline", PARTS: "pipeline"}.get(_scope(equation), "")


def _scope(equation: JaxprEqn) -> str:
    """The innermost of our scopes round an equation, as its own jaxpr says; "" where there is none."""
    scopes = str(equation.source_info.name_stack).split("/")
    return next((scope for scope in reversed(scopes) if scope in (MARK, PARTS, BODY)), "")


def _uses(jaxpr: JaxJaxpr, scope: str) -> tuple[set[int], set[int]]:
    """The variables of a jaxpr in a scope that pipelines use, and those that anything else uses, by identity."""
    whole: set[int] = set()
    touched: set[int] = set()
    for equation in jaxpr.eqns:
        here = _scope(equation) or scope
        given = {id(v) for v in equation.invars if not is_literal(v)}
        for passed, closed in _passed(equation):
            inner, _ = opened(closed)
            names = dict(zip([id(v) for v in passed[1]], passed[0], strict=False))
            inner_whole, inner_touched = _uses(inner, here)
            whole |= {id(names[v]) for v in inner_whole if v in names}
            touched |= {id(names[v]) for v in inner_touched if v in names}
            given -= {id(v) for v in passed[0] if not is_literal(v)}
        if here == MARK:
            whole |= given
        else:
            touched |= given
    return whole, touched


def _passed(equation: JaxEquation) -> Iterator[tuple[tuple[list[JaxAtom], list[JaxAtom]], EitherJaxpr]]:
    """((operands, the variables that they become), jaxpr) of each inner jaxpr that is understood."""
    operands = list(equation.invars)
    for name, closed in inner_jaxprs(equation.params):
        inner, _ = opened(closed)
        match equation.primitive.name:
            case "cond":
                given = operands[1:]
            case "while":
                first, second = int(equation.params["cond_nconsts"]), int(equation.params["body_nconsts"])
                consts = operands[:first] if name == "cond_jaxpr" else operands[first : first + second]
                given = consts + operands[first + second :]
            case _:
                given = operands
        for variables in (inner.invars, inner.constvars):
            if len(variables) == len(given):
                yield (given, list(variables)), closed
                break


def place_of(source_info: SourceInfo) -> str:
    """`file:line` of the user's frame of an equation, "" where there is none."""
    util = importlib.import_module("jax._src.source_info_util")
    with contextlib.suppress(Exception):
        frame = util.user_frame(source_info.traceback)
        # to JAX we are a user too, who traces
        if frame is not None and not frame.file_name.startswith(_OURS):
            return f"{frame.file_name}:{frame.start_line}"
    return ""


def places_of(source_info: SourceInfo) -> tuple[str, ...]:
    """`file:line` of every frame of the user's of an equation, from the innermost outwards; () where there is none.

    Who calls us is no part of the traced program.
    """
    util = importlib.import_module("jax._src.source_info_util")
    with contextlib.suppress(Exception):
        frames = dropwhile(_is_ours, util.user_frames(source_info.traceback))
        return tuple([f"{f.file_name}:{f.start_line}" for f in takewhile(lambda f: not _is_ours(f), frames)])
    return ()


def _is_ours(frame: object) -> bool:
    return str(getattr(frame, "file_name", "")).startswith(_OURS)


def place_of_function(debug_info: object) -> str:
    """`file:line` out of JAX's description of a traced function, `<lambda> at file.py:12`."""
    text = str(getattr(debug_info, "func_src_info", "") or "")
    return text.rpartition(" at ")[2] if " at " in text else ""


def is_jaxs_own(jaxpr: EitherJaxpr) -> bool:
    """Whether a nested jaxpr was traced from a function of the jax package, by JAX's description of it."""
    inner, _ = opened(jaxpr)
    file = place_of_function(getattr(inner, "debug_info", None)).rpartition(":")[0]
    return file.startswith(str(Path(str(sys.modules["jax"].__file__)).parent) + os.sep)


def name_of(primitive: JaxPrimitive) -> str:
    """The name of a primitive; of one that has the name of another one, of JAX, and is not that, no name that we read.

    Anybody may make a primitive of any name, and say how it is computed. Those of SparseCores have names of others that
    do something else, `gather` and `load`: here they begin with `sc_`. So do some of Mosaic GPU, with `mgpu_`.
    """
    name = str(primitive.name)
    own = _primitives(len(sys.modules)).get(name)
    if any(value is primitive for value in vars(sys.modules.get(SPARSE_CORE, contextlib)).values()):
        return f"sc_{name.removeprefix('sc_')}"
    of_gpu = name in (*_AS_OTHERS, *_RENAMED)
    if of_gpu and any(p is primitive for p in vars(sys.modules.get(MOSAIC_GPU, contextlib)).values()):
        return _RENAMED.get(name, f"mgpu_{name}")
    return name if own is None or any(p is primitive for p in own) else f"{name} of another package"


@functools.lru_cache(maxsize=1)
def _primitives(modules: int) -> Mapping[str, tuple[JaxPrimitive, ...]]:
    """JAX's primitives by name, of the modules that are imported by now. modules: how many these are."""
    from jax.extend.core import Primitive

    found: dict[str, dict[int, Any]] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "jax":
            for value in list(vars(module).values()):
                if isinstance(value, Primitive):
                    found.setdefault(str(value.name), {})[id(value)] = value
    return {name: tuple(each.values()) for name, each in found.items()}


def is_kernel_of_jax(file: str) -> bool:
    """Whether a file holds kernels that ship with JAX, which are written as users write theirs."""
    return f"{os.sep}pallas{os.sep}ops{os.sep}" in file


def skipped_frame(file: str) -> bool:
    """Whether a frame of this file is JAX's, ours or Python's own machinery, and no user's."""
    jax = str(Path(str(sys.modules["jax"].__file__)).parent) + os.sep
    python = os.path.dirname(contextlib.__file__) + os.sep
    return file.startswith((_OURS, jax, "<")) or (file.startswith(python) and "-packages" not in file)
