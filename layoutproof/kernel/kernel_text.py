"""Kernels as plain data, the form that spec files, tests and searches write: a mapping to a `Kernel` and back.

    grid: {i: "cdiv(M, 128)", k: 4}             or [4, 2], "(4, 2)", 8; names are i, j, k, .. where none are given
    semantics: [parallel, arbitrary]            left out: all arbitrary
    inputs:
      - {name: x, array: "f32[M,512]", block: [128, 128], index: "(i, k) -> (i, k)"}
    outputs:
      - {name: o, array: "f32[M,512]", block: [128, null], index: "(i, k) -> (i, 0)"}
    aliases: {x: o}
    tables: {t: {array: "s32[8]", assume: ["0 <= t < 4", "t is monotone"]}}
    scratch: [{array: "f32[8,128]", memory: vmem}]
    scoped: [{array: "f32[8,128]"}]                        what the body allocates itself, when most is alive

`operands:` with a `role` in each may stand for inputs and outputs. Of an operand only `array` is needed: a block left
out is the whole array, an index left out all zeros. Every key is modelled or refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.expression import parse_size
from layoutproof.core.term import Amount, parameters
from layoutproof.kernel import problems
from layoutproof.kernel.kernel import MEMORIES, SEMANTICS, Block, Kernel, Operand, Scratch, Table
from layoutproof.kernel.kernel_block import read_block, unblocked
from layoutproof.kernel.kernel_index import Scope, read_index
from layoutproof.kernel.kernel_parts import (
    Parser,
    check_keys,
    list_of,
    name_of,
    parse_amount,
    read_array,
    read_grid,
    shown,
    within,
    without_rounding,
    word_of,
)
from layoutproof.kernel.table_assumptions import with_assumptions

PIPELINES = ("pallas_call", "emit_pipeline")
PLATFORMS = ("tpu", "triton", "mosaic_gpu")
REVISITS = ("immediate", "any")
ROLES = ("in", "out")
SEMAPHORES = {"sem": 32, "dma_sem": 32, "barrier_sem": 32}
"""The element types in memory `semaphore`."""

_KERNEL = (
    *("name", "grid", "inputs", "outputs", "operands", "semantics", "vmapped", "aliases", "tables", "scratch"),
    *("scoped", "vmem_limit", "pipeline", "platform"),
)
_OPERAND = (
    *("name", "array", "block", "index", "memory", "buffers", "lookahead", "revisit", "live", "pipelined", "same_as"),
    "indexing_mode",
)
_NAME = re.compile(r"[A-Za-z_][\w.\[\]-]{0,99}")


def read_kernel(
    value: object, types: Mapping[str, int], known: Collection[str] | None = None
) -> tuple[Kernel, tuple[str, ...]]:
    """A kernel from its mapping, and notes: each old spelling, with today's one.

    types: the known element types and their widths in bits.  known: names of parameters, that is of numbers which are
    still to be chosen: amounts are then kept as terms, and `Kernel.bind` asks the rest of the rules; None = names are
    sizes of run time. Raises LayoutError for every field that is wrong, with its place in the mapping, the rule and
    the known names.

    >>> kernel, _ = read_kernel({"grid": [4], "outputs": [{"array": "f32[8]", "block": [2], "index": "i -> i"}]},
    ...                         {"f32": 32})
    >>> str(kernel.outputs[0])
    'outputs[0] f32[8] block (2) index (i)'
    """
    given = check_keys(value, _KERNEL, "a kernel", ("grid",))
    parse: Parser = parse_size if known is None else parse_amount
    grid, names = read_grid(given["grid"], parse)
    tables, assumed = _tables(given.get("tables", {}), types, parse)
    rows = _rows(given, types, parse)
    scratch = _scratch(given.get("scratch", ()), types, "scratch", parse)
    scoped = _scratch(given.get("scoped", ()), types, "scoped", parse)
    sizes = _sizes(grid, rows, tables, (*scratch, *scoped))
    if known is not None and not isinstance(given["grid"], Mapping):
        # generated names give way to written ones
        names = tuple(f"{name}_" if name in sizes else name for name in names)
    _distinct([*_called("grid dimension", names), *_called("size", sizes), *_called("table", map(_its_name, tables))])
    scope = Scope(names, {t.name: t for t in tables}, frozenset(sizes), None if known is None else frozenset(known))
    operands = tuple(_operand(row, scope) for row in rows)
    _distinct([*_called("operand", map(_its_name, operands)), *_called("table", map(_its_name, tables))])
    _check_operands(operands)
    kernel = Kernel(
        _name(given.get("name", "kernel")),
        grid,
        names,
        operands,
        _semantics(given.get("semantics", ()), names),
        _vmapped(given.get("vmapped", ()), names),
        _aliases(given.get("aliases", {}), operands),
        tables,
        scratch,
        _limit(given.get("vmem_limit")),
        word_of(given.get("pipeline", PIPELINES[0]), PIPELINES, "pipeline"),
        word_of(given.get("platform", PLATFORMS[0]), PLATFORMS, "platform"),
        scoped=scoped,
    )
    if known is None:
        kernel.check_aliases()
    kernel = replace(kernel, plain="platform" not in given and kernel.could_be_plain() and not _placed(rows))
    kernel = with_assumptions(kernel, assumed, parse=parse)
    bounds = parameters(e for t in kernel.tables for e in (t.low, t.high) if e is not None)
    _distinct([*_called("grid dimension", names), *_called("size", bounds)])
    return kernel, tuple(f"{row.name}: {row.note}" for row in rows if row.note)


def _sizes(
    grid: Iterable[Amount], rows: Iterable[_Row], tables: Iterable[Table], scratch: Iterable[Scratch]
) -> tuple[str, ...]:
    """The names of sizes, in the order in which extents name them first."""
    extents = [*grid]
    for row in rows:
        extents += [*row.dims, *(block.size for block in row.block)]
    extents += [extent for table in tables for extent in table.dims]
    extents += [extent for each in scratch for extent in each.dims]
    return parameters(extents)


def _its_name(of: Operand | Table) -> str:
    return of.name


def _called(kind: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """Names, each with what it is the name of."""
    return [(kind, name) for name in names]


def _check_operands(operands: Sequence[Operand]) -> None:
    """There is one, and what an operand is the same as is an input before it."""
    for k, operand in enumerate(operands):
        earlier = tuple(o.name for o in operands[:k] if o.role == "in" and not o.same_as)
        if operand.same_as:
            with within(operand.name):
                word_of(operand.same_as, earlier, "same_as: an earlier input")
    if not operands:
        raise LayoutError(problems.NO_OPERAND())


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise LayoutError(problems.KERNEL_NAME(shown(value)))
    return value


def _limit(value: object) -> int | None:
    if value is None:
        return None
    if type(value) is not int or value < 1:
        raise LayoutError(problems.VMEM_LIMIT(shown(value)))
    return value


@dataclass(frozen=True, slots=True)
class _Row:
    """An operand of which everything but the index map has been read: index maps may use sizes that others name."""

    where: str
    role: str
    given: Mapping[str, Any]
    name: str
    memory: str
    dtype: str
    dims: tuple[Amount, ...]
    block: tuple[Block, ...]
    note: str


def _rows(given: Mapping[str, object], types: Mapping[str, int], parse: Parser) -> list[_Row]:
    entries = {key: list_of(given.get(key, ()), key) for key in ("inputs", "outputs", "operands")}
    if "operands" in given and ("inputs" in given or "outputs" in given):
        raise LayoutError(problems.OPERANDS_TWICE())
    rows: list[_Row] = []
    for key, role in (("inputs", "in"), ("outputs", "out"), ("operands", "")):
        for k, entry in enumerate(entries[key]):
            with within(f"{key}[{k}]"):
                rows.append(_row(f"{key}[{k}]", entry, role, types, parse))
    return [row for role in ROLES for row in rows if row.role == role]


def _placed(rows: Sequence[_Row]) -> bool:
    """Whether a window's memory is named: only TPUs have several."""
    return any("memory" in row.given and row.memory not in ("any", "gmem") for row in rows)


def _row(where: str, entry: object, role: str, types: Mapping[str, int], parse: Parser) -> _Row:
    known = _OPERAND if role else (*_OPERAND, "role")
    given = check_keys(entry, known, "an operand", ("array",) if role else ("array", "role"))
    name = given.get("name", where.replace("inputs", "args"))
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise LayoutError(problems.OPERAND_NAME(shown(name)))
    memory = word_of(given.get("memory", "vmem"), MEMORIES, "memory")
    dtype, dims = read_array(given["array"], {**types, **SEMAPHORES} if memory == "semaphore" else types, parse=parse)
    block, note = read_block(given.get("block"), dims, parse), ""
    if "indexing_mode" in given:
        block, note = unblocked(given["indexing_mode"], block)
    shown_at = f"{where} {name!r}" if "name" in given else where
    return _Row(shown_at, role or word_of(given["role"], ROLES, "role"), given, name, memory, dtype, dims, block, note)


def _operand(row: _Row, scope: Scope) -> Operand:
    with within(row.where):
        index, sizes = read_index(row.given.get("index"), row.block, scope)
        buffers = row.given.get("buffers")
        if buffers is not None and (type(buffers) is not int or buffers < 1):
            raise LayoutError(problems.BUFFERS(shown(buffers)))
        return Operand(
            row.name,
            row.role,
            row.dims,
            row.dtype,
            row.block,
            index,
            sizes,
            row.memory,
            buffers,
            _truth(row.given, "lookahead", False),
            word_of(row.given.get("revisit", REVISITS[0]), REVISITS, "revisit"),
            _truth(row.given, "live", True),
            pipelined=_truth(row.given, "pipelined", False),
            same_as=row.given.get("same_as", ""),
        )


def _truth(given: Mapping[str, object], key: str, default: bool) -> bool:
    value = given.get(key, default)
    if type(value) is not bool:
        raise LayoutError(problems.TRUTH(key, shown(value)))
    return value


def _distinct(named: Sequence[tuple[str, str]]) -> None:
    seen: dict[str, str] = {}
    for what, name in named:
        if name in seen:
            both = f"two {what}s" if seen[name] == what else f"one {seen[name]} and one {what}"
            raise LayoutError(problems.NAME_TWICE(name, both))
        seen[name] = what


def _semantics(value: object, names: Sequence[str]) -> tuple[str, ...]:
    words = tuple(word_of(word, SEMANTICS, "semantics") for word in list_of(value, "semantics"))
    if words and len(words) != len(names):
        raise LayoutError(problems.SEMANTICS_RANK(len(words), len(names)))
    return words


def _vmapped(value: object, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(names.index(word_of(word, names, "vmapped")) for word in list_of(value, "vmapped"))


def _aliases(value: object, operands: Sequence[Operand]) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, Mapping):
        raise LayoutError(problems.ALIASES_FORM(shown(value)))
    inputs = {o.name: o for o in operands if o.role == "in"}
    outputs = {o.name: o for o in operands if o.role == "out"}
    found = []
    for one, other in value.items():
        source = word_of(one, tuple(inputs), "aliases: the input")
        target = word_of(other, tuple(outputs), "aliases: the output")
        found.append((list(inputs).index(source), list(outputs).index(target)))
    return tuple(found)


def _tables(value: object, types: Mapping[str, int], parse: Parser) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise LayoutError(problems.TABLES_FORM(shown(value)))
    tables: list[Table] = []
    texts: list[str] = []
    for name, entry in value.items():
        what = f"table {name_of(name, 'a table')!r}"
        given = {"array": entry} if isinstance(entry, str) else check_keys(entry, ("array", "assume"), what, ("array",))
        dtype, dims = read_array(given["array"], types, what, parse)
        if dtype[0] != "s" and not (dtype[0] == "u" and dtype[1:].isdigit()):
            raise LayoutError(problems.TABLE_TYPE(what, dtype))
        bits = int(dtype[1:])
        unsigned = dtype[0] == "u"
        low, high = (0, 1 << bits) if unsigned else (None, None)
        tables.append(Table(name, dims, bits, low, high, dtype=dtype))
        for text in list_of(given.get("assume", ()), f"{what}: assume"):
            if not isinstance(text, str):
                raise LayoutError(problems.ASSUMPTION_FORM(what, name, shown(text)))
            texts.append(without_rounding(text))
    return tuple(tables), tuple(texts)


def _scratch(value: object, types: Mapping[str, int], key: str, parse: Parser) -> tuple[Scratch, ...]:
    found = []
    for k, entry in enumerate(list_of(value, key)):
        what = f"{key}[{k}]"
        given = check_keys(entry, ("array", "memory"), what, ("array",))
        memory = word_of(given.get("memory", "vmem"), MEMORIES, f"{what}: memory")
        dtype, dims = read_array(
            given["array"], {**types, **SEMAPHORES} if memory == "semaphore" else types, what, parse
        )
        found.append(Scratch(dims, dtype, memory))
    return tuple(found)
