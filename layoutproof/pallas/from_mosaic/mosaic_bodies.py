"""The body of a compiled kernel: the Mosaic module's own operations, read by the interpreter of bodies.

Read on first use (`Kernel.body`): grids and windows do not wait for it. The modules of one text are read together
by one child process.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

from layoutproof.bodies.effects import Body, BodyReference, StartedCopy
from layoutproof.bodies.interpreter import Begin
from layoutproof.bodies.reading import LateBody, read_body
from layoutproof.core.document import JsonObject
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import BudgetExceeded, LayoutError
from layoutproof.ir.program import Program, element_type_named
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_mosaic import problems
from layoutproof.pallas.from_mosaic.mosaic_calls import MosaicCall
from layoutproof.pallas.from_mosaic.mosaic_child import read_bodies, read_modules
from layoutproof.pallas.from_mosaic.mosaic_config import config_of
from layoutproof.pallas.from_mosaic.mosaic_equations import (
    MosaicBlock,
    MosaicOperation,
    function_of,
    literal,
    program_of,
)
from layoutproof.pallas.from_mosaic.mosaic_kernel import kernel_in
from layoutproof.pallas.from_mosaic.mosaic_primitives import meaning
from layoutproof.pallas.from_mosaic.mosaic_terms import PREFIX

Module = tuple[str, str]
"""A module, and another one that tells its locations, "" for none: base64 of MLIR bytecode or text."""


def with_body(kernel: Kernel, module: Module, beside: tuple[Module, ...]) -> Kernel:
    """The kernel with its body. beside: the modules of the same text."""
    return replace(kernel, body_reader=LateBody(partial(_body, module, beside), kernel))


def _body(module: Module, beside: tuple[Module, ...], kernel: Kernel, begin: Begin) -> Body:
    body = read_body(partial(_program, kernel, module, beside), kernel, "its Mosaic module", begin=begin)
    copies = [e.spot.source for e in body.effects if isinstance(e, StartedCopy) and e.spot.scope == "pipeline"]
    if copies:
        # it copies a partial last block up to its last tile, and which block that is no module says
        why = problems.PARTIAL_PIPELINE()
        body = replace(body, unmodelled=(*body.unmodelled, (why, copies[0] or kernel.source)))
    return body if body.references else replace(body, references=_windows(kernel))


def _partial(kernel: Kernel) -> bool:
    """Whether the last tile of an array that is copied by hand is partial, for some tile that its element type has."""
    for operand in kernel.manual_dma:
        rows = 8 * max(1, 32 // ELEMENT_BITS.get(operand.dtype, 32))
        for extent, tile in zip(reversed(operand.dims), (128, rows), strict=False):
            if type(extent) is not int or extent % tile:
                return True
    return False


@lru_cache(maxsize=4)
def _written(modules: tuple[Module, ...]) -> dict[Module, JsonObject]:
    return dict(zip(modules, read_bodies(modules), strict=True))


def _program(kernel: Kernel, module: Module, beside: tuple[Module, ...]) -> Program:
    """The equations of a kernel's body. LayoutError where its module cannot be read, BudgetExceeded if long."""
    found = _written(beside)[module]
    if "error" in found:
        raise LayoutError(str(found["error"]))
    functions = found["functions"]
    (main,) = (f for f in functions if any(mark in f["attributes"] for mark in found["marks"]))
    blocks = {str(f["attributes"].get("sym_name", "")): _block(f["body"][0]) for f in functions if len(f["body"]) == 1}
    return program_of(
        meaning, blocks, _block(main["body"][0]), main["arguments"], len(kernel.grid), scoped=_partial(kernel)
    )


def programs_of(call: MosaicCall) -> tuple[Kernel, Program, list[Program]]:
    """A call's kernel, its body, and the index map of each operand, as programs. LayoutError for what is not read."""
    config = config_of(call.config)
    kernel = kernel_in(call, config, read_modules((config.body,))[0])
    if not isinstance(kernel, Kernel):
        raise LayoutError(kernel.reason)
    found = _written(((config.body, config.locations),))[config.body, config.locations]
    if "error" in found:
        raise LayoutError(str(found["error"]))
    functions = found["functions"]
    (main,) = (f for f in functions if any(mark in f["attributes"] for mark in found["marks"]))
    blocks = {str(f["attributes"].get("sym_name", "")): _block(f["body"][0]) for f in functions if len(f["body"]) == 1}
    types = {str(f["attributes"].get("sym_name", "")): f["arguments"] for f in functions}
    body = program_of(meaning, blocks, _block(main["body"][0]), main["arguments"], len(kernel.grid))
    given = main["attributes"].get("window_params") or [{}] * len(kernel.operands)
    maps = []
    for operand, window in zip(kernel.operands, given, strict=True):
        name = str((window or {}).get("transform_indices", "")).removeprefix("@")
        if name:
            maps.append(function_of(meaning, blocks, blocks[name], types[name]))
        else:
            zeros = tuple(literal(0, element_type_named("s32")) for _ in operand.dims)
            maps.append(Program((), (), zeros))
    return kernel, body, maps


def _windows(kernel: Kernel) -> tuple[BodyReference, ...]:
    """The operands of a body that cannot be read, as far as the windows say them."""
    return tuple(
        BodyReference(
            o.name, o.role, tuple(b.size if type(b.size) is int else 1 for b in o.block), o.dtype, o.memory, k
        )
        for k, o in enumerate(kernel.operands)
    )


def _block(given: JsonObject) -> MosaicBlock:
    if given["cut"]:
        raise BudgetExceeded(problems.MOST_BODY_OPERATIONS())
    return MosaicBlock(tuple(given["arguments"]), tuple(map(_operation, given["operations"])))


def _operation(given: JsonObject) -> MosaicOperation:
    return MosaicOperation(
        given["name"].removeprefix(PREFIX),
        tuple(given["operands"]),
        tuple(given["results"]),
        given["attributes"],
        tuple(tuple(map(_block, region)) for region in given["regions"]),
        tuple(given["operand_types"]),
        tuple(given["types"]),
        given["place"],
    )
