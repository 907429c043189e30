"""A kernel as text to read, and as the mapping that `kernel_text` reads back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutproof.core.term import Amount
from layoutproof.kernel.kernel import Block, Kernel, Operand, Table
from layoutproof.kernel.kernel_index import index_text
from layoutproof.kernel.relations import tables_of


def kernel_lines(kernel: Kernel) -> list[str]:
    """The call in one line, then one line for each operand, table and scratch."""
    grid = ", ".join(f"{n} < {e}" for n, e in zip(kernel.grid_names, kernel.grid, strict=True))
    marks = [f"vmapped {kernel.grid_names[k]}" for k in kernel.vmapped]
    marks += [kernel.pipeline] if kernel.pipeline != "pallas_call" else []
    marks += [kernel.platform] if kernel.platform != "tpu" else []
    marks += [f"vmem_limit {kernel.vmem_limit}"] if kernel.vmem_limit is not None else []
    said = " ".join((", ".join(kernel.semantics), *marks)).strip()
    lines = [f"{kernel.name} grid ({grid})" + (f" {said}" if said else "")]
    lines += [f"  {o.role:<3}  {operand_text(kernel, o)}" for o in kernel.operands]
    lines += [f"  {kernel.inputs[a].name} shares the buffer of {kernel.outputs[b].name}" for a, b in kernel.aliases]
    lines += [
        f"  table {t.name} {_table(t)}" + "".join(f", {a}" for a in _assumed(kernel, t))
        for t in (*kernel.tables, *kernel.scalars)
    ]
    lines += [f"  scratch {array_text(s.dtype, s.dims)} {s.memory}" for s in kernel.scratch]
    return lines + [f"  scoped {array_text(s.dtype, s.dims)} {s.memory}" for s in kernel.scoped]


def operand_text(kernel: Kernel, operand: Operand) -> str:
    """An operand with its index map over the kernel's grid, and what of it is not the default."""
    block = f"({', '.join(map(str, operand.block))})"
    index = index_text(kernel.grid_names, operand.index, operand.sizes)
    text = f"{operand.name} {array_text(operand.dtype, operand.dims)} block {block} index {index}"
    for key, value in _extras(operand).items():
        text += f" {key} {value}" if type(value) is not bool else f" {key}" if value else f" not {key}"
    return text


def mapping_of(kernel: Kernel) -> dict[str, object]:
    """The mapping that means this kernel. Where in a user's code it was found is not part of the language."""
    found: dict[str, Any] = {"name": kernel.name}
    found["grid"] = {n: _plain(e) for n, e in zip(kernel.grid_names, kernel.grid, strict=True)}
    for key, operands in (("inputs", kernel.inputs), ("outputs", kernel.outputs)):
        if operands:
            found[key] = [_operand(kernel, operand) for operand in operands]
    if kernel.semantics:
        found["semantics"] = list(kernel.semantics)
    if kernel.vmapped:
        found["vmapped"] = [kernel.grid_names[k] for k in kernel.vmapped]
    if kernel.aliases:
        found["aliases"] = {kernel.inputs[a].name: kernel.outputs[b].name for a, b in kernel.aliases}
    if kernel.tables:
        found["tables"] = {t.name: {"array": _table(t), "assume": _assumed(kernel, t)} for t in kernel.tables}
    if kernel.scratch:
        found["scratch"] = [{"array": array_text(s.dtype, s.dims), "memory": s.memory} for s in kernel.scratch]
    if kernel.scoped:
        found["scoped"] = [{"array": array_text(s.dtype, s.dims), "memory": s.memory} for s in kernel.scoped]
    if kernel.vmem_limit is not None:
        found["vmem_limit"] = kernel.vmem_limit
    return {**found, "pipeline": kernel.pipeline, "platform": kernel.platform}


def _assumed(kernel: Kernel, table: Table) -> list[str]:
    """The assumptions on a table; one on several together stands with the first table that it reads."""
    related = (relation.text for relation in kernel.relations if tables_of(relation)[:1] == (table.name,))
    return [*table.assumptions(), *related]


def _operand(kernel: Kernel, operand: Operand) -> dict[str, object]:
    return {
        "name": operand.name,
        "array": array_text(operand.dtype, operand.dims),
        "block": [_block(block) for block in operand.block],
        "index": index_text(kernel.grid_names, operand.index, operand.sizes),
        **_extras(operand),
    }


def _extras(operand: Operand) -> dict[str, object]:
    defaults = {"memory": "vmem", "buffers": None, "lookahead": False, "revisit": "immediate", "live": True}
    defaults |= {"pipelined": False, "same_as": ""}
    return {key: getattr(operand, key) for key, usual in defaults.items() if getattr(operand, key) != usual}


def _block(block: Block) -> object:
    return None if block.kind == "squeezed" else _plain(block.size) if block.kind == "blocked" else str(block)


def _plain(extent: Amount) -> int | str:
    return extent if isinstance(extent, int) else str(extent)


def array_text(dtype: str, dims: Sequence[object]) -> str:
    """An array as people write it.

    >>> array_text("bf16", (8, "M"))
    'bf16[8,M]'
    """
    return f"{dtype}[{','.join(map(str, dims))}]"


def _table(table: Table) -> str:
    bits = f"{'s' if table.signed else 'u'}{table.bits}"
    return array_text(table.dtype if table.dtype[:1] in ("s", "u") else bits, table.dims)
