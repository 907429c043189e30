"""Mosaic modules as plain data, in a process of its own, because jaxlib's reader can abort it on bad bytes.

A request is one module, base64 of MLIR bytecode or of MLIR text; its answer `{"attributes", "functions", "digest"}`, or
`{"error"}`, after which the process ends. A request `{"module", "locations"}` has the answer `{"functions"}`, the
kernel's own body in it. Nothing here knows what index maps and bodies mean; of jaxlib it takes only what jaxlib 0.10.2
and 0.12.0 both have.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from layoutproof.compiler.serve import Tell, serve
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.pallas.from_mosaic import problems

if TYPE_CHECKING:
    from jaxlib.mlir.ir import Attribute, Block, Context, Module, Operation

MOST = 2000
"""Operations of one function that are written out; index maps have a few dozen."""

MOST_BODY = 200_000
"""Operations of a kernel's body that are written out."""

MARKS = ("window_params", "iteration_bounds", "scratch_operands", "dimension_semantics")
"""Attributes of the function that is the kernel; its body is written out only for who asks for it."""

_PLACE = re.compile(r'"([^"]*)":([1-9]\d*):')
_LOCATION = re.compile(r"(?:^\[|, )loc\(")


def described(text: str) -> JsonObject:
    """One module. Its errors are jaxlib's own words."""
    with _context():
        module = _parsed(text)
        functions = [function(operation.operation) for operation in module.body.operations]
        # where its lines stand in the user's program is no part of what a module does
        plain_text = module.operation.get_asm(enable_debug_info=False, print_generic_op_form=True)
        digest = hashlib.sha256(plain_text.encode()).hexdigest()[:32]
        own = attributes(module.operation)
        return {"attributes": own, "functions": functions, "digest": digest}


def bodies(module: str, locations: str = "") -> JsonObject:
    """All functions of one module with their bodies, and where each operation stands in the user's program.

    locations: base64 of another module, where the first one does not say that itself.
    """
    with _context():
        parsed = _parsed(module)
        entries = _entries(parsed.operation)
        told = _told(locations) if locations else []
        if len(told) != len(entries):
            told = [place([entry]) if entry is not None else "" for entry in entries]
        places = iter(told[1:])
        functions = [_with_body(operation.operation, places) for operation in parsed.body.operations]
        return {"functions": functions, "marks": MARKS}


def _entries(operation: Operation) -> list[Operation]:
    """An operation, and all that is in it, in order; None for an argument of a block."""
    found = [operation]
    for region in operation.regions:
        for block in region.blocks:
            found += [None] * len(block.arguments)
            for entry in block.operations:
                found += _entries(entry.operation)
    return found


def _told(locations: str) -> list[str]:
    """`file:line` of each entry of a module, as another one tells it in `tpu.locs` (jax 0.12: debug_locations)."""
    try:
        said = str(_parsed(locations).operation.attributes["tpu.locs"])
    except Exception:
        # without them there are no lines, and everything else is as it was
        return []
    return [_first(text) for text in _LOCATION.split(said)[1:]]


def _with_body(operation: Operation, places: Iterator[str]) -> JsonObject:
    blocks = [block for region in operation.regions for block in region.blocks]
    next(places)
    numbers = ValueNumbers(MOST_BODY, places)
    return {
        "attributes": attributes(operation),
        "arguments": [str(a.type) for block in blocks[:1] for a in block.arguments],
        "body": [body(block, numbers) for block in blocks],
    }


def _context() -> Context:
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext as dialects
    from jaxlib.mosaic.python import tpu

    context, registry = ir.Context(), ir.DialectRegistry()
    # threads would each want a part of the memory
    context.enable_multithreading(False)
    dialects.register_dialects(registry)
    context.append_dialect_registry(registry)
    tpu.register_dialect(context)
    context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    return context


def _parsed(text: str) -> Module:
    from jaxlib.mlir import ir

    return ir.Module.parse(base64.b64decode(text, validate=True))


def allocated(operation: Operation) -> list[list[object]]:
    """The allocations of an operation, by its regions: [types that a region itself allocates and uses, its regions]."""
    found = []
    for region in operation.regions:
        own, inner = [], []
        for block in region.blocks:
            for entry in block.operations:
                each = entry.operation
                if each.name.endswith("memref.alloca") and list(each.results[0].uses):
                    own.append(str(each.results[0].type))
                inner += allocated(each)
        if own or inner:
            found.append([own, inner])
    return found


def place(operations: list[Operation]) -> str:
    """`file:line` that the first operation with a location tells, its innermost frame; "" where none tells any."""
    return next(filter(None, (_first(str(operation.location)) for operation in operations)), "")


def _first(location: str) -> str:
    found = _PLACE.search(location)
    # MLIR calls a text that it was given "-"
    return f"{found[1]}:{found[2]}" if found is not None and found[1] not in ("", "-") else ""


def function(operation: Operation) -> JsonObject:
    """A function: its operations, or for the kernel itself only the types of its arguments."""
    own = attributes(operation)
    blocks = [block for region in operation.regions for block in region.blocks]
    made: dict[str, Any] = {
        "kind": operation.name,
        "attributes": own,
        "arguments": [str(a.type) for block in blocks[:1] for a in block.arguments],
    }
    if any(mark in own for mark in MARKS):
        made["allocated"] = allocated(operation)
    else:
        made["body"] = [body(block, ValueNumbers()) for block in blocks]
        made["place"] = place([entry.operation for block in blocks for entry in list(block.operations)[:MOST]])
    return made


class ValueNumbers:
    """Values of one function by number, in the order in which they are met.

    most: operations that are written out.  places: where each argument and operation stands in the user's program, ""
    for not known; None = that is not written.
    """

    def __init__(self, most: int = MOST, places: Iterator[str] | None = None) -> None:
        self.known: dict[Any, int] = {}
        self.operations = 0
        self.most = most
        self.places = places

    def of(self, value: object) -> int:
        """The number of a value."""
        return self.known.setdefault(value, len(self.known))


def body(block: Block, numbers: ValueNumbers) -> JsonObject:
    """A block: numbers of its arguments, and its operations."""
    arguments = [numbers.of(a) for a in block.arguments]
    operations = []
    places = numbers.places
    if places is not None:
        for _ in arguments:
            next(places)
    for entry in block.operations:
        operation = entry.operation
        numbers.operations += 1
        if numbers.operations > numbers.most:
            break
        stands = {} if places is None else {"place": next(places)}
        operations.append(
            {
                **stands,
                "name": operation.name,
                "operands": [numbers.of(v) for v in operation.operands],
                "operand_types": [str(v.type) for v in operation.operands],
                "results": [numbers.of(v) for v in operation.results],
                "types": [str(v.type) for v in operation.results],
                "attributes": attributes(operation),
                "regions": [[body(inner, numbers) for inner in region.blocks] for region in operation.regions],
            }
        )
    return {"arguments": arguments, "operations": operations, "cut": numbers.operations > numbers.most}


def attributes(operation: Operation) -> JsonObject:
    """The attributes of an operation, as plain data."""
    # iterating gives names in one version and named attributes in another
    names = [getattr(entry, "name", entry) for entry in operation.attributes]
    return {name: plain(operation.attributes[name]) for name in names}


def plain(attribute: Attribute) -> object:
    """Numbers, texts, lists and dictionaries as such, names of functions as `@name`, everything else as MLIR text."""
    from jaxlib.mlir import ir

    if isinstance(attribute, ir.BoolAttr | ir.IntegerAttr | ir.StringAttr):
        return attribute.value
    if isinstance(attribute, ir.ArrayAttr):
        return [plain(entry) for entry in attribute]
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return [int(attribute[k]) for k in range(len(attribute))]
    if isinstance(attribute, ir.DictAttr):
        return {entry.name: plain(entry.attr) for entry in attribute}
    return str(attribute)


def answer(asked: str | dict[str, str], tell: Tell) -> JsonObject:
    """The description of one module, or its bodies. LayoutError where jaxlib is not there."""
    try:
        return described(asked) if isinstance(asked, str) else bodies(**asked)
    except ImportError as error:
        why = shorten(str(error) or "jaxlib", 200)
        raise LayoutError(problems.NEEDS_JAX(why)) from None
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        return {"error": " ".join(words.split())[:300]}


if __name__ == "__main__":
    # bytes that are no module may have spoilt the memory that the next one is read into
    serve(answer, again=lambda said: "error" not in said)
