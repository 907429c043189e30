"""Pallas kernels for TPU in programs that JAX lowered, exported or compiled: the call says the arrays, the Mosaic
module inside of it the grid, the windows and the body. Nothing of the program that made it is needed, jaxlib reads
the module.

Read: HLO text (`compiled.as_text()`, dumps of XLA) and StableHLO text (`lowered.as_text()`, `exported.mlir_module()`)
of jax 0.10.2 and 0.12.0.1, of libtpu 0.0.42.1, and of other tools that write the same custom calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError
from layoutproof.core.message import message_of
from layoutproof.hlotext.lines import STARTS, read_hlo
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.kernel.table_assumptions import check_tables, with_assumptions
from layoutproof.pallas.from_mosaic import problems
from layoutproof.pallas.from_mosaic.mosaic_bodies import with_body
from layoutproof.pallas.from_mosaic.mosaic_calls import MosaicCall, calls_in_module, calls_in_stablehlo
from layoutproof.pallas.from_mosaic.mosaic_child import read_modules
from layoutproof.pallas.from_mosaic.mosaic_config import Config, config_of
from layoutproof.pallas.from_mosaic.mosaic_kernel import kernel_in

Found = Kernel | Unmodelled


def kernels_in_hlo(text: str, file: str = "", assume: Sequence[str] = ()) -> tuple[Found, ...]:
    """Every Pallas kernel in the text of a program, in its order; () where it has none.

    file: its name, for `Kernel.source`, which is the line of the call in it; an operand's source is the user's line (of
    the index map, or else of the call) where the text tells one.  assume: of the tables `prefetch0`, `args[1]` .. of
    each call, as `kernel.tables` reads them.  What cannot be read is Unmodelled, with the reason, never left out: also
    kernels for GPU, and the rest of a text that is cut short.
    Raises LayoutError for a text that is no program, for assumptions that fit no call, and where jax is not installed.
    """
    found = kernels_of_calls(calls_in(text, file))
    check_tables(found, assume)
    return tuple(with_assumptions(k, assume, strict=False) if isinstance(k, Kernel) else k for k in found)


def calls_in(text: str, file: str = "") -> Iterator[MosaicCall]:
    """The calls of Pallas kernels in the text of a program. LayoutError for a text that is none."""
    file = file or "text"
    lines = text.splitlines(keepends=True)
    if any(line.startswith(STARTS) for line in lines):
        for module in read_hlo(lines, file):
            yield from calls_in_module(module, file)
        return
    if not any("func.func" in line or "stablehlo." in line for line in lines):
        raise LayoutError(
            problems.NO_MODULE_TEXT(),
            file=file,
            line=1,
        )
    yield from calls_in_stablehlo(text, file)


@dataclass(frozen=True, slots=True)
class ReadCall:
    """One call as it was read. digest: of its module without source positions, "" where it cannot be read."""

    kernels: tuple[Found, ...]
    digest: str = ""


def kernels_of_calls(calls: Iterable[MosaicCall]) -> tuple[Found, ...]:
    """The kernels of some calls; their modules are read together by one child process, each different one once."""
    return tuple([kernel for read in read_calls(calls) for kernel in read.kernels])


def read_calls(calls: Iterable[MosaicCall]) -> tuple[ReadCall, ...]:
    """Each call with its kernels, as `kernels_of_calls`."""
    known = [_configured(call) for call in calls]
    bodies = tuple(dict.fromkeys(config.body for _, config in known if config is not None))
    modules = dict(zip(bodies, _modules(bodies), strict=True)) if bodies else {}
    together = tuple(dict.fromkeys((config.body, config.locations) for _, config in known if config is not None))
    found = []
    for call, config in known:
        module = {} if config is None else modules[config.body]
        if config is None:
            found.append(ReadCall((Unmodelled(call.name or "a custom call", call.source, call.problem),)))
        elif "error" in module:
            reason = problems.MODULE(module["error"])
            found.append(ReadCall((Unmodelled(call.name or "a custom call", call.source, reason),)))
        else:
            kernel = kernel_in(call, config, module)
            if isinstance(kernel, Kernel):
                kernel = with_body(kernel, (config.body, config.locations), together)
            found.append(ReadCall((kernel,), module.get("digest", "")))
    return tuple(found)


@lru_cache(maxsize=256)
def _modules(bodies: tuple[str, ...]) -> tuple[JsonObject, ...]:
    # the audit and the gate ask of the same kernels, and each answer costs a process
    return read_modules(bodies)


def _configured(call: MosaicCall) -> tuple[MosaicCall, Config | None]:
    """The call with its configuration; None, and the call says why, where it has none that can be read."""
    if call.problem:
        return call, None
    try:
        return call, config_of(call.config)
    except LayoutError as error:
        return replace(call, problem=message_of(error)), None
