"""Every Pallas call in a JAX function, found by tracing it on shapes: nothing is computed, no device is needed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.table_assumptions import with_assumptions
from layoutproof.pallas.from_jax import problems
from layoutproof.pallas.from_jax.adapter import (
    MESH_KERNELS,
    axes_of,
    device_of,
    inner_jaxprs,
    is_literal,
    is_pallas_call,
    need_jax,
    opened,
    pipelines_traced,
    place_of,
    place_of_function,
    skipped_frame,
)
from layoutproof.pallas.from_jax.around import arounds
from layoutproof.pallas.from_jax.assume import said_in
from layoutproof.pallas.from_jax.calls import Found, Pipelines, attempt, kernel_of
from layoutproof.pallas.from_jax.constants import Constants, Maker
from layoutproof.pallas.from_jax.meshes import mesh_kernel_of
from layoutproof.pallas.from_jax.of_jax import EitherJaxpr
from layoutproof.pallas.from_jax.ranges import RUNS

if TYPE_CHECKING:
    from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn


def kernels_of(
    function: Callable[..., object],
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    target: str = "v5e",
    assume: Sequence[str] = (),
) -> tuple[Found, ...]:
    """The Pallas calls of `function(*args, **kwargs)`, in the order in which they are traced.

    args: arrays and `jax.ShapeDtypeStruct`s are traced, everything else is passed as it is. target: the generation that
    the function shall believe it runs on.  assume: of tables, as `kernel.tables` reads them; what
    `layoutproof.assume` says in the code is added.
    Raises LayoutError where jax is missing, where the function raises (with its file and line), for bad assumptions.
    """
    jaxpr, pipelines = traced(function, args, kwargs, target=target)
    found: list[Found] = []
    walk(jaxpr, [True] * len(opened(jaxpr)[0].outvars), found)
    every = [*found, *pipelines.take(found)]
    assumed = [with_assumptions(k, assume, strict=False) if isinstance(k, Kernel) else k for k in every]
    return tuple(_with_sharing(k, assumed) if isinstance(k, Kernel) else k for k in assumed)


def _with_sharing(kernel: Kernel, found: Sequence[Found]) -> Kernel:
    """The kernel, with the others that have its barrier semaphore."""
    others = [k for k in found if isinstance(k, Kernel) and k is not kernel and k.collective == kernel.collective]
    return replace(kernel, sharing=tuple(others)) if kernel.collective is not None and others else kernel


def _alone(jaxpr: Jaxpr) -> bool:
    """Whether a program makes one call, inside of functions that do nothing else, or none."""
    if len(jaxpr.eqns) != 1:
        return not jaxpr.eqns
    (equation,) = jaxpr.eqns
    if is_pallas_call(equation.params) or equation.primitive.name in MESH_KERNELS:
        return True
    inner = [opened(closed)[0] for _, closed in inner_jaxprs(equation.params)]
    return equation.primitive.name not in ("scan", "while", "cond") and len(inner) == 1 and _alone(inner[0])


def _last(jaxpr: Jaxpr) -> JaxprEqn | None:
    """The call that all other operations of a program have to come before, and which gives the program's results.

    None where an operation takes what it gives, or may run beside it. What nobody uses XLA leaves out.
    """
    used = {id(v) for v in jaxpr.outvars if not is_literal(v)}
    kept: list[JaxprEqn] = []
    for equation in reversed(jaxpr.eqns):
        if equation.effects or any(id(v) in used for v in equation.outvars):
            kept.append(equation)
            used |= {id(v) for v in equation.invars if not is_literal(v)}
    if not kept:
        return None
    last, *before = kept
    results = [id(v) for v in jaxpr.outvars]
    needed = {id(v) for v in last.invars if not is_literal(v)}
    for equation in before:
        if equation.effects or not any(id(v) in needed for v in equation.outvars):
            return None
        needed |= {id(v) for v in equation.invars if not is_literal(v)}
    if len({*results}) < len(results) or not {*results} <= {id(v) for v in last.outvars}:
        return None
    if is_pallas_call(last.params):
        return last
    name, places = last.primitive.name, last.params.get("out_shardings", ())
    handed = name in RUNS or name.startswith("custom_")
    # a result that is wanted on other devices is moved there afterwards
    inner = [opened(closed)[0] for _, closed in inner_jaxprs(last.params)]
    if not handed or len(inner) != 1 or any(type(place).__name__ != "UnspecifiedValue" for place in places):
        return None
    return _last(inner[0])


def traced(
    function: Callable[..., object],
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    target: str = "v5e",
    names: Sequence[str] = (),
) -> tuple[ClosedJaxpr, Pipelines]:
    """The jaxpr of `function(*args, **kwargs)` with its constants, and the pipelines in it.

    Arguments and errors as of `kernels_of`; of the target "cpu" it is told what is here. names: of the arrays among the
    arguments, where they are others than `args[0]`.
    """
    jax = need_jax()
    pipelines = Pipelines()
    kept = dict(kwargs or {})
    arrays_at = [k for k, value in enumerate(args) if is_array(value)]
    named = [name for name, value in kept.items() if is_array(value)]

    def call(arrays: Sequence[object], more: Mapping[str, object]) -> object:
        given = list(args)
        for k, value in zip(arrays_at, arrays, strict=True):
            given[k] = value
        return function(*given, **{**kept, **more})

    def pipeline(options: Mapping[str, object], refs: Sequence[object]) -> None:
        pipelines.add(options, refs, caller())

    with contextlib.nullcontext() if target == "cpu" else device_of(target), pipelines_traced(pipeline):
        try:
            jaxpr = jax.make_jaxpr(call)([args[k] for k in arrays_at], {name: kept[name] for name in named})
        except LayoutError:
            raise
        except Exception as error:
            text = " ".join(str(error).split()).partition(" See https://docs.jax.dev/")[0]
            # JAX names what was traced: that is ours, and the user's are inside
            text = text.replace(f"{call.__name__} at {__file__}:{call.__code__.co_firstlineno} ", "")
            for k, name in enumerate(names or [f"args[{at}]" for at in arrays_at]):
                text = text.replace(f"arrays[{k}]", name)
            advice = next((f"; {fix}" for said, fix in ADVICE if said in text), "")
            text = shorten(text, 300)
            place = raised_at(error)
            raise LayoutError(problems.TRACING(type(error).__name__, text, place, advice)) from None
    return jaxpr, pipelines


ADVICE = (
    (
        "does not have SparseCores",
        "a mesh of subcores is made for a target that has SparseCores: "
        f"{', '.join(name for name, chip in CHIPS.items() if chip.sparse)} have some (--target)",
    ),
    (
        "must be >= the product of mesh_shape",
        "to trace, no devices are needed: jax.sharding.AbstractMesh is a mesh, and "
        "XLA_FLAGS=--xla_force_host_platform_device_count=N makes N devices of the processor",
    ),
    (
        "does not match the specs of the input",
        "over explicit axes the argument says its sharding: "
        "jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec)), from a function for --inputs",
    ),
    (
        "Symbolic dimension comparison",
        "the function asks in Python about a size that is a name: give it a number, or a multiple, f32[8*M,128]",
    ),
)
"""What JAX says of meshes and of sizes that are names, and what helps who traces without devices, or for all sizes."""


def walk(
    jaxpr: EitherJaxpr, live: Sequence[bool], found: list[Found], assumed: Sequence[str] = (), handed: bool = True
) -> None:
    """The Pallas calls of a jaxpr and of every jaxpr inside of it, one for each of its `sites`.

    live: which of its results are used. assumed: the assumptions of `layoutproof.assume` around it.
    handed: whether a call in no frame of the user's is one that was handed to us, whose place is its body's function.
    """
    alone = _alone(opened(jaxpr)[0])
    last = None if alone else _last(opened(jaxpr)[0])
    first, paths = len(found), []
    made: dict[int, Kernel] = {}
    for site in sites(jaxpr, live, assumed):
        equation, needed = site.equation, site.needed
        place = place_of(equation.source_info)
        if is_pallas_call(equation.params):
            if not place and handed:
                place = place_of_function(getattr(opened(equation.params["jaxpr"])[0], "debug_info", None))
            call = attempt(
                partial(
                    kernel_of, equation.params, place, needed, equation.invars,
                    axes=site.axes, known=site.known, beside=site.beside,
                ),
                "pallas_call",
                place,
            )  # fmt: skip
            if isinstance(call, Kernel):
                call = replace(call, alone=alone, last=equation is last)
        else:
            call = attempt(partial(mesh_kernel_of, equation, place, needed, site.axes), equation.primitive.name, place)
        if isinstance(call, Kernel):
            call = with_assumptions(_with_makers(call, site, made), site.assumed, strict=False)
            made[id(equation)] = call
        found.append(call)
        paths.append(site.path)
    kernels = {path: k for path, k in zip(paths, found[first:], strict=True) if isinstance(k, Kernel)}
    joined = arounds(jaxpr, kernels)
    found[first:] = [joined.get(path, k) for path, k in zip(paths, found[first:], strict=True)]


def _with_makers(call: Kernel, site: Site, made: Mapping[int, Kernel]) -> Kernel:
    """The kernel, with the source of each input: uninitialised memory, or an earlier kernel.

    made: earlier kernels, by their equations. Where JAX fills `jnp.empty` with zeros (0.10.2 does, 0.12 does not), its
    jaxpr has zeros.
    """
    atoms = site.equation.invars[len(site.equation.invars) - len(call.inputs) :]
    makers = dict(zip((o.name for o in call.inputs), map(site.maker, atoms), strict=True))

    def known(operand: Operand) -> Operand:
        equation, position = makers.get(operand.name) or (None, 0)
        if equation is None or operand.role != "in":
            return operand
        if equation.primitive.name == "empty":
            place = place_of(equation.source_info)
            return replace(operand, unfilled=problems.EMPTY_AT(place) if place else "jax.lax.empty")
        maker = made.get(id(equation))
        if maker is None or position >= len(maker.outputs):
            return operand
        return replace(operand, made_by=(maker.name, maker.source, maker.outputs[position].name))

    return call.with_operands(known)


@dataclass(frozen=True)
class Site:
    """An equation that runs a kernel. needed: which of its results are used.  assumed: the assumptions there.

    axes: of the meshes around it, with their extents.  beside: the equations of the jaxpr that it stands in.
    known: the integers of one of its operands, where constants of the program alone decide them.  maker: the
    equation that made one (`Constants.maker`).
    path: the numbers of the equation and of the inner jaxprs around it.
    """

    equation: Any
    needed: list[bool]
    assumed: tuple[str, ...]
    axes: Mapping[str, int]
    beside: Sequence[Any]
    known: Callable[[Any], tuple[int, ...] | None] = lambda atom: None
    path: tuple[int, ...] = ()
    maker: Callable[[Any], Maker | None] = lambda atom: None


def sites(
    jaxpr: EitherJaxpr,
    live: Sequence[bool],
    assumed: Sequence[str] = (),
    axes: Mapping[str, int] = MappingProxyType({}),
    constants: Constants | None = None,
    path: tuple[int, ...] = (),
) -> Iterator[Site]:
    """Each equation that runs a kernel; arguments as of `walk`. axes: of the meshes around the jaxpr.

    Pipelines inside are seen where they are traced; loops and calls in a kernel's body hold no further call.
    constants: the known values of the jaxpr; None = its constants alone.  path: of the jaxpr.
    """
    constants = Constants(jaxpr) if constants is None else constants
    jaxpr, _ = opened(jaxpr)
    used = {id(v) for equation in jaxpr.eqns for v in equation.invars if not hasattr(v, "val")}
    used |= {id(v) for v, alive in zip(jaxpr.outvars, live, strict=True) if alive and not hasattr(v, "val")}
    for k, equation in enumerate(jaxpr.eqns):
        needed = [id(v) in used and type(v).__name__ != "DropVar" for v in equation.outvars]
        said = (*assumed, *said_in(str(equation.source_info.name_stack)))
        if is_pallas_call(equation.params) or equation.primitive.name in MESH_KERNELS:
            known, maker = constants.integers, constants.maker
            yield Site(equation, needed, said, axes, jaxpr.eqns, known, (*path, k), maker)
            continue
        for n, (_, closed) in enumerate(inner_jaxprs(equation.params)):
            inner, _ = opened(closed)
            same = len(inner.outvars) == len(needed)
            yield from sites(
                closed,
                needed if same and equation.primitive.name not in ("scan", "while") else [True] * len(inner.outvars),
                said,
                {**axes, **axes_of(equation)},
                constants.inside(equation, closed),
                (*path, k, n),
            )


def caller() -> str:
    """`file:line` of the innermost frame that belongs to neither jax nor this package."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not skipped_frame(file):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def raised_at(error: BaseException) -> str:
    """` (file:line)` of the innermost frame of user code that raised, or ""."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not skipped_frame(file):
            place = f" ({file}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place


def is_array(value: object) -> bool:
    # a single number of NumPy's is a value that Python code may look at, and no array
    scalar = type(value).__module__ == "numpy" and type(value).__name__ != "ndarray"
    return hasattr(value, "shape") and hasattr(value, "dtype") and not scalar
