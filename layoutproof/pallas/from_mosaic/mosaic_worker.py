"""Mosaic modules as plain data, in a process of its own, because jaxlib's reader can abort it on bad bytes.

A request is one module, base64 of MLIR bytecode or of MLIR text; its answer `{"attributes", "functions", "transfers",
"digest"}`, or `{"error"}`, after which the process ends. Nothing here knows what index maps mean; of jaxlib it takes
only what jaxlib 0.10.2 and 0.12.0 both have.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

from layoutproof.compiler.serve import Tell, serve
from layoutproof.core.errors import LayoutError, shorten

MOST = 2000
"""Operations of one function that are written out; index maps have a few dozen."""

MARKS = ("window_params", "iteration_bounds", "scratch_operands", "dimension_semantics")
"""Attributes of the function that is the kernel; its body is not written out."""

_PLACE = re.compile(r'"([^"]*)":([1-9]\d*):')


def described(text: str) -> dict[str, Any]:
    """One module. Its errors are jaxlib's own words."""
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
    with context:
        module = ir.Module.parse(base64.b64decode(text, validate=True))
        functions = [function(operation.operation) for operation in module.body.operations]
        moved = transfers(module.operation)
        # where its lines stand in the user's program is no part of what a module does
        plain_text = module.operation.get_asm(enable_debug_info=False, print_generic_op_form=True)
        digest = hashlib.sha256(plain_text.encode()).hexdigest()[:32]
        own = attributes(module.operation)
        return {"attributes": own, "functions": functions, "transfers": moved, "digest": digest}


def transfers(operation: Any) -> list[str]:
    """Names of the operations in it, at any depth, that copy memory: `enqueue_dma` and others like it."""
    found: set[str] = set()
    left = [operation]
    while left:
        for region in left.pop().regions:
            for block in region.blocks:
                for entry in block.operations:
                    inner = entry.operation
                    if "enqueue" in inner.name:
                        found.add(inner.name)
                    if len(inner.regions):
                        left.append(inner)
    return sorted(found)


def allocated(operation: Any) -> list[Any]:
    """What an operation allocates, by its regions: [types of what a region itself allocates and uses, its regions]."""
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


def place(operations: list[Any]) -> str:
    """`file:line` that the first operation with a location tells, its innermost frame; "" where none tells any."""
    for operation in operations:
        found = _PLACE.search(str(operation.location))
        # MLIR calls a text that it was given "-"
        if found is not None and found[1] not in ("", "-"):
            return f"{found[1]}:{found[2]}"
    return ""


def function(operation: Any) -> dict[str, Any]:
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
    """Values of one function by number, in the order in which they are met."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self.operations = 0

    def of(self, value: Any) -> int:
        """The number of a value."""
        return self.known.setdefault(value, len(self.known))


def body(block: Any, numbers: ValueNumbers) -> dict[str, Any]:
    """A block: numbers of its arguments, and its operations."""
    arguments = [numbers.of(a) for a in block.arguments]
    operations = []
    for entry in block.operations:
        operation = entry.operation
        numbers.operations += 1
        if numbers.operations > MOST:
            break
        operations.append(
            {
                "name": operation.name,
                "operands": [numbers.of(v) for v in operation.operands],
                "operand_types": [str(v.type) for v in operation.operands],
                "results": [numbers.of(v) for v in operation.results],
                "types": [str(v.type) for v in operation.results],
                "attributes": attributes(operation),
                "regions": [[body(inner, numbers) for inner in region.blocks] for region in operation.regions],
            }
        )
    return {"arguments": arguments, "operations": operations, "cut": numbers.operations > MOST}


def attributes(operation: Any) -> dict[str, Any]:
    """The attributes of an operation, as plain data."""
    # iterating gives names in one version and named attributes in another
    names = [getattr(entry, "name", entry) for entry in operation.attributes]
    return {name: plain(operation.attributes[name]) for name in names}


def plain(attribute: Any) -> Any:
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


def answer(text: str, tell: Tell) -> dict[str, Any]:
    """What one module is. LayoutError where jaxlib is not there."""
    try:
        return described(text)
    except ImportError as error:
        why = shorten(str(error) or "jaxlib", 200)
        raise LayoutError(f"reading Mosaic kernels needs jax: pip install jax ({why})") from None
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        return {"error": " ".join(words.split())[:300]}


if __name__ == "__main__":
    # bytes that are no module may have spoilt the memory that the next one is read into
    serve(answer, again=lambda said: "error" not in said)
