"""Patterns over Pallas calls: each gives the places of a kernel, as (subject, source), that a known bug needs."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from layoutproof.bodies.effects import Access, Body, StartedCopy, stored_names, views_of, writes_to
from layoutproof.bodies.values import Value
from layoutproof.core.errors import Undecided
from layoutproof.core.numbers import INTS
from layoutproof.core.size import ceil_div
from layoutproof.core.term import Term, reads
from layoutproof.kernel.kernel import Kernel, Operand

Places = Iterator[tuple[str, str]]
_TILE = 4 * 128
_DEEP = 12


def unread_beside_copies(kernel: Kernel) -> Places:
    """An array in HBM of 4 rows of 128 or more that the body never addresses, beside a copy of a part of another."""
    body = _body(kernel)
    if body is None or not any(map(_part_copied, body.effects)):
        return
    addressed = {view.reference.name for view in views_of(body)} | body.beyond
    for operand in kernel.inputs:
        whole = not operand.windowed and operand.memory != "semaphore"
        if whole and operand.name not in addressed and _elements(operand) >= _TILE:
            yield operand.name, operand.source or kernel.source


def constant_block_past_the_end(kernel: Kernel) -> Places:
    """A window whose block index is a constant behind the last block."""
    for operand in kernel.operands:
        for term, extent, block in zip(operand.index, operand.dims, operand.block, strict=False):
            constant = operand.windowed and block.kind == "blocked" and term.op == "int" and _ints(extent, block.size)
            if constant and term.args[0] >= ceil_div(extent, block.size):
                yield operand.name, operand.source


def empty_table(kernel: Kernel) -> Places:
    """A scalar-prefetch operand without entries."""
    for table in kernel.tables:
        if 0 in table.dims:
            yield table.name, kernel.source


def padded_before_element(kernel: Kernel) -> Places:
    """An `Element` window with padding before the array."""
    for operand in kernel.inputs:
        if any(block.kind == "element" and block.low for block in operand.block):
            yield operand.name, operand.source


def single_buffer_by_stored_table(kernel: Kernel) -> Places:
    """An input with one buffer, whose block a table chooses that the body stores to."""
    body = _body(kernel)
    if body is None:
        return
    views = [view for view in map(writes_to, body.effects) if view is not None]
    stored = {view.reference.position for view in views if view.reference.role == "prefetch"}
    tables = {table.name for position, table in enumerate(kernel.tables) if position in stored}
    for operand in kernel.inputs:
        if operand.buffers == 1 and any(_table(read) in tables for read in reads(operand.terms())):
            yield operand.name, operand.source


def negative_index(kernel: Kernel) -> Places:
    """A load at an index below 0 in the first program."""
    body = _body(kernel)
    first = dict.fromkeys(kernel.grid_names, 0)
    for effect in () if body is None else body.effects:
        if not isinstance(effect, Access) or effect.spot.path or effect.view.reference.role not in ("in", "out"):
            continue
        for step in effect.view.steps[:1]:
            if any((_at(piece.start, first) or 0) < 0 for piece in step.slices):
                yield effect.view.reference.name, effect.spot.source


def block_past_the_end(kernel: Kernel) -> Places:
    """A window that in the last program lies behind its array."""
    if not _ints(*kernel.grid):
        return
    last = {name: int(many) - 1 for name, many in zip(kernel.grid_names, kernel.grid, strict=True)}
    for operand in kernel.operands:
        for term, extent, block in zip(operand.index, operand.dims, operand.block, strict=False):
            if operand.windowed and block.kind == "blocked" and _ints(extent, block.size) and term.op != "int":
                at = _at(term, last)
                if at is not None and at >= ceil_div(extent, block.size):
                    yield operand.name, operand.source


def wheel_matmul_tail(kernel: Kernel) -> Places:
    """A call of `pallas/ops/tpu/matmul.py` of JAX whose block does not divide the contracted dimension."""
    if _stands_in(kernel, "pallas/ops/tpu/matmul.py") and kernel.inputs:
        operand = kernel.inputs[0]
        extent, size = operand.dims[-1], operand.block[-1].size
        if _ints(extent, size) and extent % size:
            yield operand.name, kernel.source


def wheel_paged_attention(kernel: Kernel) -> Places:
    """A call of the `paged_attention` of JAX with a grid over pages, whose lengths may be 0."""
    if _stands_in(kernel, "ops/tpu/paged_attention/paged_attention_kernel.py") and len(kernel.grid) == 4:
        lengths = kernel.tables[0] if kernel.tables else None
        if lengths is not None and not (type(lengths.low) is int and lengths.low >= 1):
            yield lengths.name, kernel.source


def multiplied_by_mask(kernel: Kernel) -> Places:
    """A store of something that is multiplied by a mask made a number."""
    body = _body(kernel)
    for effect in () if body is None else body.effects:
        if isinstance(effect, Access) and isinstance(effect.value, Value) and _masked(effect.value, _DEEP):
            yield effect.view.reference.name, effect.spot.source


def several_aliases_unstored(kernel: Kernel) -> Places:
    """Two or more outputs that share buffers with inputs, of which the body stores one never."""
    body = _body(kernel)
    if body is None or len(kernel.aliases) < 2:
        return
    stored = stored_names(body.effects)
    for _, position in kernel.aliases:
        operand = kernel.outputs[position]
        if operand.windowed and operand.name not in stored | body.beyond:
            yield operand.name, operand.source or kernel.source


def _body(kernel: Kernel) -> Body | None:
    """The body where all of it is modelled."""
    body: Body | None = kernel.body
    return None if body is None or body.unmodelled else body


def _part_copied(effect: object) -> bool:
    """Whether this is a copy out of a part of an input into the kernel's own memory."""
    if not isinstance(effect, StartedCopy) or effect.source.reference.role != "in":
        return False
    whole, part = effect.source.reference.dims, effect.source.dims
    near = effect.target.reference.memory in ("vmem", "smem")
    return near and effect.source.reference.memory in ("hbm", "any") and part is not None and prod(part) < prod(whole)


def _elements(operand: Operand) -> int:
    return prod(operand.dims) if _ints(*operand.dims) else 0  # type: ignore[arg-type]


def _ints(*amounts: object) -> bool:
    return all(type(amount) is int for amount in amounts)


def _table(read: Term) -> str:
    """The name of the table of a read."""
    return str(read.args[0])


def _at(term: Term, program: dict[str, int]) -> int | None:
    """The number in one program; None where it depends on more than its indices."""
    if set(term.names()) - set(program) or reads((term,)):
        return None
    try:
        found = term.evaluate(program, INTS)
    except (Undecided, KeyError, ArithmeticError):
        return None
    return found if type(found) is int else None


def _stands_in(kernel: Kernel, path: str) -> bool:
    """Whether the call stands in this file of JAX."""
    file = kernel.source.replace("\\", "/").rpartition(":")[0]
    return file.endswith(path) and "jax/" in file


def _masked(value: Value, deep: int) -> bool:
    """Whether a product with a truth value made a number is in it."""
    if value.made is None or not deep:
        return False
    operation, operands = value.made
    if operation == "mul" and any(map(_made_of_truth, operands)):
        return True
    return any(_masked(operand, deep - 1) for operand in operands)


def _made_of_truth(value: Value) -> bool:
    if value.made is None:
        return False
    operation, operands = value.made
    if operation in ("broadcast_in_dim", "reshape"):
        return any(map(_made_of_truth, operands))
    return operation == "convert_element_type" and value.dtype.kind == "f" and operands[0].dtype.kind == "b"
