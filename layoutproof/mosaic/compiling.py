"""The answering side of `ask`: compiles one Pallas call by itself and reads what the compiler wrote about it.

The call's equation alone is lowered, on its own shapes: the code around it has its own kernels, and may stop the
compiler where this one does not. Kernels that hand semaphores, or arrays in a memory of their choice, to each other are
lowered together: none of them is a program by itself. It runs in a process of its own, whose environment says which
files libtpu writes, and where: that cannot be chosen for each compilation.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from layoutproof.compiler import cache as kept
from layoutproof.compiler import libtpu
from layoutproof.compiler.serve import Tell, serve
from layoutproof.core.document import JsonObject
from layoutproof.core.element_types import dtype_name
from layoutproof.core.errors import LayoutError
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.mosaic import dumps, problems
from layoutproof.mosaic.unseen import flops, unseen
from layoutproof.pallas.from_jax.adapter import (
    MESH_KERNELS,
    body_of,
    device_of,
    is_pallas_call,
    is_placed,
    is_semaphore,
    need_jax,
    own_lines,
    put,
)
from layoutproof.pallas.from_jax.programs import program_of
from layoutproof.pallas.from_jax.rewrites import Rewrite, RewrittenCall, numbers, of_kernel, rewritten_call
from layoutproof.pallas.from_jax.sent import call_of
from layoutproof.pallas.from_jax.trace import Site
from layoutproof.pallas.from_mosaic.mosaic_calls import TARGET

if TYPE_CHECKING:
    from jax import Array, Device
    from jax.extend.core import JaxprEqn
    from jax.stages import Compiled, Lowered

PROFILE = "profile"
"""The folder for estimates of cycles, in that of the compiler's files; it has to be there."""
MOST_WORDS = 8000
_KEPT = "kernel 4"
"""Of answers in the cache; another number where an answer is of another form."""
_SCOPED = re.compile(r"Scoped allocation with size \S+ and limit \S+ exceeded scoped vmem limit")
_USED = re.compile(r'"used_scoped_memory_configs":\[([^\]\n]*+)\]?')
_VMEM = re.compile(r'"memory_space":"1"[^}]{0,200}?"size":"(\d+)"')
_PRICE = re.compile(r'"estimated_cycles":"(\d+)"')
_CALL = re.compile(r'^[^\S\n]*+(?:ROOT )?%(\S+) = .*custom_call_target="tpu_custom_call"', re.MULTILINE)
_ASKED = "layoutproof_asked"
"""The scope round the call that is asked about, where others are compiled with it."""
_OWN_FAULT = (NameError, ImportError, AttributeError)
"""Errors that no compiler raises: the call does not stand by itself, or the user's code is wrong."""
_AROUND = re.compile(r"without shard_map|[Uu]nbound axis")
"""The Pallas lowering's error where the mesh around the call is missing."""


def flags(folder: str, profile: bool) -> str:
    """The flags for libtpu, in LIBTPU_INIT_ARGS. profile: estimates of cycles only."""
    if profile:
        return f"--xla_jf_dump_static_llo_profile_to={folder}/{PROFILE}"
    return (
        f"--xla_jf_dump_to={folder} --xla_jf_dump_llo_pass_label_regex=final_bundles "
        "--xla_mosaic_enable_llo_source_annotations=true "
        f"--xla_mosaic_dump_to={folder} --xla_mosaic_enable_dump_debug_info=true"
    )


def answered(request: JsonObject, tell: Tell) -> JsonObject:
    """One call for one target: `told` with the compiler's version, or `refused` with its words.

    request: as `sent.call_of` has it, with `library`, "" for the installed compiler, `flags`, what its user
    tells it, `profile`, whether its cycles are asked for, and `folder`, to which libtpu was told to write, and which is
    emptied. `rewrites`: whether the answer lists the rewrites of the call.  `rewrite`: the number of the one that is
    made first; then `numbers` says how its results differ from the call's own, "" for not at all.
    """
    if "config" in request:
        return _of_text(request)
    start = time.perf_counter()
    tell("tracing")
    kernel, site = call_of(request)
    program = _program(site)
    rewrites = of_kernel(site.equation.params) if "rewrite" in request or request.get("rewrites") else ()
    if "rewrite" in request:
        program = dataclasses.replace(program, rewrite=rewrites[request["rewrite"]])
    target, profile, folder = request["target"], request["profile"], Path(request["folder"])
    jax = need_jax()
    compiler = libtpu.with_flags(libtpu.version(request["library"]), request["flags"])
    about = {"jax": jax.__version__, "compiler": compiler}
    programs = 1
    for extent in kernel.grid:
        programs *= extent if type(extent) is int else 1
    body = program_of(body_of(site.equation.params))
    seen = {"unseen": unseen(body), "flops": flops(body, programs)}
    if request.get("rewrites"):
        seen["rewrites"] = [each.as_dict() for each in rewrites]
    try:
        lowered = _lowered(jax, program, site.equation.params, target, kernel.name)
    except _OWN_FAULT as error:
        raise LayoutError(problems.NOT_BY_ITSELF(_words(error))) from None
    except Exception as error:
        if _AROUND.search(str(error)):
            raise LayoutError(problems.NOT_BY_ITSELF(_words(error))) from None
        # the Pallas lowering is the compiler's first part, and what it raises is its answer
        return {**about, **seen, "refused": _words(error)}
    text = kept.anywhere(lowered.as_text(debug_info=True))
    digest = hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:32]
    key = [_KEPT, about, target, digest, profile]
    found = kept.get(key)
    if found is None:
        tell("estimating" if profile else "compiling")
        found = (
            _profiled(lowered, folder) if profile else _told(jax, program, lowered, target, kernel.name, folder, tell)
        )
        if program.rewrite is not None and not profile and not found["refused"]:
            tell("comparing numbers")
            try:
                found = {**found, "numbers": numbers(program.asked, program.rewrite)}
            except LayoutError as error:
                found = {**found, "numbers": None, "uncompared": error.problem}
        kept.put(key, found)
        found = {**found, "seconds": time.perf_counter() - start}
    return {**about, **seen, **found}


def _of_text(request: JsonObject) -> JsonObject:
    """The cycles of a call of which the text of a program has the module, or the `reason` why there are none.

    request: as `placed.estimates` makes it.
    """
    jax = need_jax()
    place = jax.sharding.SingleDeviceSharding(_device(request["target"]))

    def arrays(side: str, **more: object) -> list[object]:
        made, types = jax.ShapeDtypeStruct, jax.numpy
        return [made(tuple(dims), types.dtype(dtype_name(dtype)), **more) for dtype, dims in request[side]]

    call = jax.ffi.ffi_call(
        TARGET, arrays("results"), has_side_effect=True, custom_call_api_version=1,
        legacy_backend_config=request["config"], input_output_aliases=dict(map(tuple, request["aliases"])),
    )  # fmt: skip
    given = arrays("operands", sharding=place)
    out = {} if given else {"out_shardings": place}
    try:
        lowered = jax.jit(lambda *values: call(*values), keep_unused=True, **out).lower(*given)
    except Exception as error:
        return {"reason": _words(error)}
    found = _profiled(lowered, Path(request["folder"]), request["options"])
    return {"cycles": found.get("cycles"), "reason": found["refused"]}


@dataclass(frozen=True)
class _MosaicProgram:
    """Equations that are one program, in order. asked: the one that is asked about.  rewrite: made of it first."""

    equations: tuple[Any, ...]
    asked: Any
    rewrite: Rewrite | None = None


def _program(site: Site) -> _MosaicProgram:
    """A call, and the kernels beside it that it is joined to."""
    kernels = [e for e in site.beside if is_pallas_call(e.params) or e.primitive.name in MESH_KERNELS]
    found = [site.equation]
    for _ in kernels:
        own = set().union(*map(_joints, found))
        found = [e for e in kernels if e is site.equation or own & _joints(e)]
    return _MosaicProgram(tuple(found), site.equation)


def _joints(equation: JaxprEqn) -> set[int]:
    """The variables of an equation that only kernels of its own program can give it, or take from it."""
    values = (*equation.invars, *equation.outvars)
    return {id(v) for v in values if is_semaphore(v.aval) or (v in equation.outvars and is_placed(v.aval))}


def _lowered(
    jax: ModuleType,
    program: _MosaicProgram,
    params: Mapping[str, object],
    target: str,
    name: str,
    own_form: bool = False,
) -> Lowered:
    """params: of the call that is asked about.  own_form: whether a rewritten call is given its own operands, which are
    brought into their new form before it, and not that form."""
    place = jax.sharding.SingleDeviceSharding(_device(target))
    made = {id(v) for e in program.equations for v in e.outvars}
    free = list({id(v): v for e in program.equations for v in e.invars if id(v) not in made}.values())
    if any(is_semaphore(v.aval) for v in free):
        raise LayoutError(problems.SEMAPHORE_GIVEN())
    rewritten: RewrittenCall | None = None
    changed: Any = None
    if program.rewrite is not None:
        rewritten = rewritten_call(program.asked.replace(params=dict(params)), program.rewrite)
        own_form |= len(program.equations) > 1
        if rewritten.operand >= 0 and not own_form:
            changed = program.asked.invars[rewritten.operand]
            own_form |= sum(v is changed for v in program.asked.invars) > 1
    avals = [rewritten.aval if rewritten and v is changed and not own_form else v.aval for v in free]
    given = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place) for a in avals]

    def called(*values: Array) -> Array:
        held = {id(v): put(value, v.aval) for v, value in zip(free, values, strict=True)}
        for equation in program.equations:
            others = len(program.equations) > 1 and equation is program.asked
            with jax.named_scope(_ASKED) if others else nullcontext():
                own = params if equation is program.asked else equation.params
                operands = [held[id(v)] for v in equation.invars]
                if equation is program.asked and rewritten is not None:
                    results = (rewritten if own_form else rewritten.bind)(*operands)
                else:
                    results = equation.primitive.bind(*operands, **own)
            held.update(zip(map(id, equation.outvars), results, strict=True))
        # a semaphore is nothing that a program gives
        return [held[id(v)] for e in program.equations for v in e.outvars if not is_semaphore(v.aval)]

    # the compiler names a call by the function that makes it
    called.__name__ = re.sub(r"\W", "_", name) or "kernel"
    # rules of lowering ask which chip they are for; without it jax 0.12 refuses what the compiler takes
    with device_of(target), own_lines():
        # without an argument nothing else says for which device
        out = {} if given else {"out_shardings": place}
        return jax.jit(called, keep_unused=True, **out).lower(*given)


@cache
def _device(target: str) -> Device:
    return libtpu.device(CHIPS[target].topology)


def _told(
    jax: ModuleType, program: _MosaicProgram, lowered: Lowered, target: str, name: str, folder: Path, tell: Tell
) -> dict[str, object]:
    """The compiler's answer. For a kernel that needs too much VMEM the files are those of a higher limit."""
    _empty(folder)
    refused = ""
    try:
        made = lowered.compile()
    except Exception as error:
        refused = _words(error)
        if not _SCOPED.search(str(error)):
            return {"refused": refused}
        tell("compiling with more VMEM")
        _empty(folder)
        try:
            lowered = _lowered(jax, program, _roomier(program.asked.params, CHIPS[target].vmem), target, name)
            made = lowered.compile()
        except Exception:
            # it needs more than the chip has: nothing but the words of the refusal is known
            return {"refused": refused}
    text = _text(made, lowered)
    call = _call_in(text)
    operation = call[1] if call else ""
    used = _USED.search(text, call.start()) if call else None
    sizes = _VMEM.findall(used[1]) if used else []
    memory = dumps.vmem(dumps.text_of(folder, "*-vmem_report.html"), operation)
    bundles = dumps.text_of(folder, f"*-{operation}-*-final_bundles.txt")
    relayouts = dumps.text_of(folder, "*-post-relayout-insertion.txt")
    around = None
    if program.rewrite is not None and program.rewrite.kind == "outside" and not refused:
        # beside the kernel itself: what it takes to bring its operands into their new form
        full = _lowered(jax, program, program.asked.params, target, name, own_form=True)
        full_text = _text(full.compile(), full)
        around = _around(full_text, _call_in(full_text))
    return {
        "refused": refused,
        "used": sum(map(int, sizes)) if used else None,
        "vmem": memory,
        # with the raised limit of a kernel that is refused others would be there
        "whole": [] if refused else dumps.whole(text, operation),
        "moves": dumps.lines(bundles) if bundles else None,
        "bundles": dumps.bundles(bundles) if bundles else None,
        "around": _around(text, call) if around is None else around,
        # of several kernels the file of one is as good as that of another
        "relayouts": dumps.relayouts(relayouts) if len(program.equations) == 1 else [],
    }


def _text(made: Compiled, lowered: Lowered) -> str:
    """The compiled text. That JAX cannot read it back is no refusal of the compiler's."""
    try:
        return str(made.as_text())
    except Exception:
        text = libtpu.written_text(lowered, {})
        if not text:
            raise
        return text


def _call_in(text: str) -> re.Match[str] | None:
    """The call that is asked about, in a compiled program; its line names the scope where there are others."""
    calls = list(_CALL.finditer(text))
    lines = [text[call.start() : text.find("\n", call.start())] for call in calls]
    return next((call for call, line in zip(calls, lines, strict=True) if _ASKED in line), calls[0] if calls else None)


def _around(text: str, call: re.Match[str] | None) -> int:
    """Cycles that the compiler prices what it runs before and after the call at: copies of operands and results."""
    own = (call.start(), text.find("\n", call.start())) if call else (0, 0)
    return sum(int(price[1]) for price in _PRICE.finditer(text) if not own[0] <= price.start() < own[1])


def _profiled(lowered: Lowered, folder: Path, options: Mapping[str, str] = MappingProxyType({})) -> dict[str, object]:
    """The estimate of cycles, None where the compiler writes none. options: the compiler's own."""
    _empty(folder)
    try:
        made = lowered.compile(compiler_options=dict(options) or None)
    except Exception as error:
        return {"refused": _words(error)}
    text = _text(made, lowered)
    call = _call_in(text)
    operation = call[1] if call else ""
    return {"refused": "", "cycles": dumps.schedule(folder / PROFILE).get(operation)}


def _roomier(params: Mapping[str, object], limit: int) -> dict[str, object]:
    """The parameters of a call that asks for so many bytes of VMEM."""
    given = params.get("compiler_params")
    if not dataclasses.is_dataclass(given) or isinstance(given, type):
        from jax.experimental.pallas import tpu

        given = tpu.CompilerParams()
    return {**params, "compiler_params": dataclasses.replace(given, vmem_limit_bytes=limit)}


def _empty(folder: Path) -> None:
    """The folder of the compiler's files, without those of the kernel before."""
    (folder / PROFILE).mkdir(parents=True, exist_ok=True)
    for path in folder.rglob("*"):
        if path.is_file():
            path.unlink()


def _words(error: BaseException) -> str:
    """The whole text of an exception, with its lines, which its explanation needs."""
    text = str(error).strip()[:MOST_WORDS]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


if __name__ == "__main__":
    serve(answered)
