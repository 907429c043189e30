"""The compiler's estimate of the cycles of kernels as they stand in a compiled program.

Each call is compiled by itself from its own module, as the text of the program has it: of the code that made it nothing
is needed. What surrounds it is not there: an array that the program puts into VMEM as a whole lies in HBM.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

from layoutproof.compiler import cache, libtpu
from layoutproof.compiler.child import ask
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.mosaic import problems
from layoutproof.mosaic.ask import PROFILE_SECONDS, PROFILED, child
from layoutproof.mosaic.compiling import flags
from layoutproof.pallas.compiled import Estimate
from layoutproof.pallas.from_mosaic.mosaic_calls import MosaicCall

_KEPT = "cycles 2"


def estimates(
    calls: Sequence[MosaicCall],
    target: str,
    *,
    options: Mapping[str, str],
    library: str = "",
    seconds: float = PROFILE_SECONDS,
    memory: int | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> list[Estimate]:
    """The cycles of each call, or why there are none.

    Args:
        calls: As `mosaic_calls.call_of` reads them of a text; equal ones are asked once.
        target: A TPU generation.
        options: The compiler's, that the program was compiled with.
        library: The path of another libtpu; "" for the installed one.
        seconds: That one call may take.
        memory: Bytes of address space of the compiler's process, None for no limit.
        progress: Called with what is done now.

    Returns:
        One estimate for each call, in order. They are kept between runs.
    """
    if target not in PROFILED:
        return [Estimate(reason=f"the compiler's simulation does not know {target}, and aborts")] * len(calls)
    keys = [_key(call) for call in calls]
    compiler = libtpu.with_flags(libtpu.version(library), libtpu.told())
    found: dict[str, JsonObject] = {}
    asked: dict[str, MosaicCall] = {}
    for key, call in zip(keys, calls, strict=True):
        if call.problem:
            found[key] = {"reason": call.problem}
        elif (known := cache.get([_KEPT, compiler, target, dict(options), key])) is not None:
            found[key] = known
        else:
            asked[key] = call
    if asked:
        progress("estimating cycles of kernels")
        with tempfile.TemporaryDirectory(prefix="layoutproof-") as folder:
            process = child(flags(folder, True), library, min(seconds, PROFILE_SECONDS), memory)
            requests = [_request(call, target, options, folder) for call in asked.values()]
            with closing(ask(process, iter(requests), dict)) as answers:
                for key, answer in zip(asked, answers, strict=True):
                    if answer.value is None:
                        found[key] = {"reason": answer.problem or str(answer.error)}
                        continue
                    found[key] = answer.value
                    cache.put([_KEPT, compiler, target, dict(options), key], answer.value)
    return [_estimate(found[key]) for key in keys]


def _estimate(said: JsonObject) -> Estimate:
    if said.get("cycles") is None:
        return Estimate(reason=shorten(" ".join(str(said.get("reason") or "the compiler wrote none").split()), 300))
    return Estimate(int(said["cycles"]))


def _key(call: MosaicCall) -> str:
    """What an answer depends on; two calls that have the same are one question."""
    if call.problem:
        return call.problem
    sides = [[[each.dtype, *each.dims] for each in side] for side in (call.operands, call.results)]
    return json.dumps([_config(call), sides, call.aliases], sort_keys=True)


def _config(call: MosaicCall) -> JsonObject:
    """What JAX gave the compiler, without what that has added."""
    try:
        whole = json.loads(call.config)
    except ValueError:
        raise LayoutError(problems.CONFIGURATION()) from None
    return {name: whole[name] for name in ("custom_call_config", "scoped_memory_configs") if name in whole}


def _request(call: MosaicCall, target: str, options: Mapping[str, str], folder: str) -> JsonObject:
    return {
        "config": json.dumps(_config(call)),
        "operands": [[each.dtype, list(each.dims)] for each in call.operands],
        "results": [[each.dtype, list(each.dims)] for each in call.results],
        "aliases": [list(pair) for pair in call.aliases],
        "target": target,
        "options": dict(options),
        "folder": os.fspath(folder),
    }
