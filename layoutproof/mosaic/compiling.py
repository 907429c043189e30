"""The answering side of `ask`: compiles one Pallas call by itself and reads what the compiler wrote about it.

The call's equation alone is lowered, on its own shapes: the code around it has its own kernels, and may stop the
compiler where this one does not. It runs in a process of its own, whose environment says which files libtpu writes, and
where: that cannot be chosen for each compilation.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from layoutproof.compiler import cache as kept
from layoutproof.compiler import libtpu
from layoutproof.compiler.serve import Tell, serve
from layoutproof.core.errors import LayoutError
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.mosaic import dumps
from layoutproof.mosaic.unseen import flops, unseen
from layoutproof.pallas.from_jax.adapter import device_of, need_jax, own_lines
from layoutproof.pallas.from_jax.sent import call_of

PROFILE = "profile"
"""The folder for estimates of cycles, in that of the compiler's files; it has to be there."""
MOST_WORDS = 8000
_KEPT = "kernel 2"
"""Of answers in the cache; another number where an answer is of another form."""
_SCOPED = re.compile(r"Scoped allocation with size \S+ and limit \S+ exceeded scoped vmem limit")
_USED = re.compile(r'"used_scoped_memory_configs":\[(.*?)\]')
_VMEM = re.compile(r'"memory_space":"1"[^}]*"size":"(\d+)"')
_CALL = re.compile(r'^\s*(?:ROOT )?%(\S+) = .*custom_call_target="tpu_custom_call"', re.MULTILINE)
_OWN_FAULT = (NameError, ImportError, AttributeError)
"""What no compiler raises: the call does not stand by itself, or the user's code is wrong."""
_AROUND = re.compile(r"without shard_map|[Uu]nbound axis")
"""What the Pallas lowering says where the mesh around the call is missing."""


def flags(folder: str, profile: bool) -> str:
    """What libtpu has to be told, in LIBTPU_INIT_ARGS. profile: estimates of cycles, and nothing else."""
    if profile:
        return f"--xla_jf_dump_static_llo_profile_to={folder}/{PROFILE}"
    return (
        f"--xla_jf_dump_to={folder} --xla_jf_dump_llo_pass_label_regex=final_bundles "
        "--xla_mosaic_enable_llo_source_annotations=true "
        f"--xla_mosaic_dump_to={folder} --xla_mosaic_enable_dump_debug_info=true"
    )


def answered(request: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """One call for one target: `told` with the compiler's version, or `refused` with its words.

    request: as `sent.call_of` has it, with `library`, "" for the installed compiler, `flags`, what its user
    tells it, `profile`, whether its cycles are asked for, and `folder`, to which libtpu was told to write, and which is
    emptied.
    """
    start = time.perf_counter()
    tell("tracing")
    kernel, equation = call_of(request)
    target, profile, folder = request["target"], request["profile"], Path(request["folder"])
    jax = need_jax()
    compiler = libtpu.with_flags(libtpu.version(request["library"]), request["flags"])
    about = {"jax": jax.__version__, "compiler": compiler}
    programs = 1
    for extent in kernel.grid:
        programs *= extent if type(extent) is int else 1
    seen = {"unseen": unseen(equation.params["jaxpr"]), "flops": flops(equation.params["jaxpr"], programs)}
    try:
        lowered = _lowered(jax, equation, equation.params, target, kernel.name)
    except _OWN_FAULT as error:
        raise LayoutError(f"the call cannot be compiled by itself: {_words(error)}") from None
    except Exception as error:
        if _AROUND.search(str(error)):
            raise LayoutError(f"the call cannot be compiled by itself: {_words(error)}") from None
        # the Pallas lowering is the compiler's first part, and what it raises is its answer
        return {**about, **seen, "refused": _words(error)}
    digest = hashlib.sha256(lowered.as_text(debug_info=True).encode(errors="backslashreplace")).hexdigest()[:32]
    key = [_KEPT, about, target, digest, profile]
    found = kept.get(key)
    if found is None:
        tell("estimating" if profile else "compiling")
        found = (
            _profiled(lowered, folder) if profile else _told(jax, equation, lowered, target, kernel.name, folder, tell)
        )
        kept.put(key, found)
        found = {**found, "seconds": time.perf_counter() - start}
    return {**about, **seen, **found}


def _lowered(jax: Any, equation: Any, params: Mapping[str, Any], target: str, name: str) -> Any:
    place = jax.sharding.SingleDeviceSharding(_device(target))
    given = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype, sharding=place) for v in equation.invars]

    def called(*values: Any) -> Any:
        return equation.primitive.bind(*values, **params)

    # the compiler names a call by the function that makes it
    called.__name__ = re.sub(r"\W", "_", name) or "kernel"
    # rules of lowering ask which chip they are for; without it jax 0.12 refuses what the compiler takes
    with device_of(target), own_lines():
        return jax.jit(called, keep_unused=True).lower(*given)


@cache
def _device(target: str) -> Any:
    return libtpu.device(CHIPS[target].topology)


def _told(jax: Any, equation: Any, lowered: Any, target: str, name: str, folder: Path, tell: Tell) -> dict[str, Any]:
    """What the compiler says. Of a kernel that needs too much VMEM the files are those of one with a higher limit."""
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
            made = _lowered(jax, equation, _roomier(equation.params, CHIPS[target].vmem), target, name).compile()
        except Exception:
            # it needs more than the chip has: nothing but the words of the refusal is known
            return {"refused": refused}
    text = made.as_text()
    call = _CALL.search(text)
    operation = call[1] if call else ""
    used = _USED.search(text, call.start()) if call else None
    sizes = _VMEM.findall(used[1]) if used else []
    memory = dumps.vmem(dumps.text_of(folder, "*-vmem_report.html"), operation)
    bundles = dumps.text_of(folder, f"*-{operation}-*-final_bundles.txt")
    return {
        "refused": refused,
        "used": sum(map(int, sizes)) if used else None,
        "vmem": memory,
        # with the raised limit of a kernel that is refused others would be there
        "whole": [] if refused else dumps.whole(text, operation),
        "moves": dumps.lines(bundles) if bundles else None,
        "relayouts": dumps.relayouts(dumps.text_of(folder, "*-post-relayout-insertion.txt")),
    }


def _profiled(lowered: Any, folder: Path) -> dict[str, Any]:
    """The estimate of cycles, None where the compiler writes none."""
    _empty(folder)
    try:
        text = lowered.compile().as_text()
    except Exception as error:
        return {"refused": _words(error)}
    call = _CALL.search(text)
    operation = call[1] if call else ""
    return {"refused": "", "cycles": dumps.cycles(dumps.text_of(folder / PROFILE, "*.textproto"), operation)}


def _roomier(params: Mapping[str, Any], limit: int) -> dict[str, Any]:
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
    """All that an exception says, lines kept: what explains it reads them."""
    text = str(error).strip()[:MOST_WORDS]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


if __name__ == "__main__":
    serve(answered)
