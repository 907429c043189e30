"""A Pallas call: its programs one after the other, in the order of the grid, each on its windows.

A window of an input is what its block of the array holds, undefined beyond the array's end. A window of an output is
undefined when a block is first visited, stays while programs in a row visit it, and is written back, as far as the
array goes, when the next one is visited. Scratch keeps what it holds. (jax/_src/pallas/hlo_interpreter.py and the
TPU's pipeline agree on that, jax 0.10.2 and 0.12.0.1.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from layoutproof.ir.program import Equation, Grid, Program, Window, is_for_gpu, is_for_triton
from layoutproof.values.floats import array_of
from layoutproof.values.kinds import Shaped
from layoutproof.values.known import Known, combined, moved
from layoutproof.values.memory import ElementView, HeldMemory, Semaphore
from layoutproof.values.movement import numbers_of
from layoutproof.values.references import fresh, missing_of, touched, unwritten
from layoutproof.values.refusals import OFFER
from layoutproof.values.state import GridPosition, Rule, Walking
from layoutproof.values.triton import run_programs

MOST_PROGRAMS = 100_000
"""Programs of one call."""

Array = np.ndarray[Any, Any]


@dataclass
class _Window:
    """One operand as programs see it. extents: of a block.  shown: those that the body sees.

    at: of the block that is there, where it starts in the array; None of none.
    """

    whole: HeldMemory
    block: Window
    output: bool
    extents: tuple[int, ...] = ()
    shown: tuple[int, ...] = ()
    at: tuple[tuple[int, int], ...] | None = None
    memory: HeldMemory | None = None

    @property
    def windowed(self) -> bool:
        """As of `Window`."""
        return self.block.windowed


def _starts(
    on: Walking, block: Window, ids: tuple[int, ...], tables: Sequence[HeldMemory], known: tuple[bytes, ...] | None
) -> tuple[tuple[int, int], ...]:
    """Of each dimension (first element, extent) of the block that a program sees.

    known: the entries of the tables, None where they are data. The result is the same at every point.
    """
    inner = block.index_map
    names = dict(zip(inner.invars[len(ids) :], tables, strict=False))
    if any(v in names and names[v].changed for e in inner.eqns for v in e.invars if not hasattr(v, "val")):
        # blocks are fetched ahead: whether the index map reads the table before or after the write is unspecified
        raise on.refuse("an index map that reads a table which the body writes to")
    key = block, ids, known
    if known is None or key not in on.prepared.starts:
        before, on.inside = on.inside, True
        found = _computed(on, block, ids, tables)
        inside, on.inside = on.inside, before and on.inside
        if known is None:
            return found
        on.prepared.starts[key] = found, inside
    starts, inside = on.prepared.starts[key]
    on.inside = on.inside and inside
    return starts


def _contents(tables: Sequence[HeldMemory]) -> tuple[bytes, ...] | None:
    """The entries of tables, None where they are data."""
    if not all(isinstance(t.value, Known) for t in tables):
        return None
    return tuple(str(t.shape).encode() + np.asarray(array_of(t.value)).tobytes() for t in tables)


def _computed(
    on: Walking, block: Window, ids: tuple[int, ...], tables: Sequence[HeldMemory]
) -> tuple[tuple[int, int], ...]:
    given = [Known(np.asarray(k, np.int32)) for k in ids] + list(tables)
    found = on.run(block.index_map, given[: len(block.index_map.invars)])
    numbers = iter(numbers_of(on, found, "an index map"))
    result = []
    for kind, extent, low in block.block:
        at = next(numbers)
        if kind == "blocked":
            result.append((at * extent, extent))
        elif kind == "squeezed":
            result.append((at, 1))
        elif kind == "element":
            result.append((at - low, extent))
        elif kind == "bounded":
            result.append((at, min(next(numbers), extent)))
        else:
            raise on.refuse(f"a block dimension {kind}")
    return tuple(result)


def _seen(block: Window, starts: Sequence[tuple[int, int]], shape: Sequence[int]) -> bool:
    """Whether a block has an element in its array, in every dimension; a window of elements lies there as a whole."""
    for (kind, _, _), (first, extent), n in zip(block.block, starts, shape, strict=True):
        whole = kind not in ("blocked", "squeezed")
        if (first < 0 or first + extent > n) if whole else not -extent < first < n:
            return False
    return True


def overlap(starts: Sequence[tuple[int, int]], shape: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The part of a block that lies in the array: (in the array, in the block)."""
    array, block = [], []
    for (first, extent), n in zip(starts, shape, strict=True):
        low, high = min(max(first, 0), n), min(max(first + extent, 0), n)
        array.append(slice(low, high))
        block.append(slice(low - first, high - first))
    return tuple(array), tuple(block)


def _extents(block: Window) -> tuple[int, ...]:
    return tuple(extent for _, extent, _ in block.block)


def _shown(block: Window) -> tuple[int, ...]:
    """The shape in which the body sees a block."""
    return tuple(extent for kind, extent, _ in block.block if kind != "squeezed")


def _fetched(on: Walking, window: _Window, starts: tuple[tuple[int, int], ...]) -> HeldMemory:
    """A window that holds the block."""
    whole, shape = window.whole, window.whole.shape
    extents, shown = window.extents, window.shown
    array, inside = overlap(starts, shape)
    if all(s.stop - s.start == n for s, n in zip(array, extents, strict=True)):
        missing = None if whole.missing is None else whole.missing[array].reshape(shown)
        value = moved(on.numbers, whole.value, lambda r: r[array].reshape(shown))
        return HeldMemory(value, whole.dtype, whole.name, missing)
    missing = missing_of(on, extents, whole.dtype)
    if missing is not None:
        missing[inside] = False if whole.missing is None else whole.missing[array]
        missing = missing.reshape(shown)
    empty = HeldMemory(unwritten(on, extents, whole.dtype), whole.dtype, whole.name)
    if isinstance(whole.value, Known) != isinstance(empty.value, Known):
        empty.value = on.data(empty.value) if isinstance(empty.value, Known) else on.numbers.undefined(extents)
    part = moved(on.numbers, whole.value, lambda r: r[array])
    if isinstance(part, Known) != isinstance(empty.value, Known):
        part = on.data(part)

    def move(parts: Sequence[Array]) -> Array:
        out = np.array(parts[0])
        out[inside] = parts[1]
        return out.reshape(shown)

    return HeldMemory(combined(on.numbers, [empty.value, part], move), whole.dtype, whole.name, missing)


def _written(on: Walking, window: _Window) -> None:
    """Writes a window of an output back."""
    if window.at is None or window.memory is None:
        return
    whole, held = window.whole, window.memory.missing
    array, inside = overlap(window.at, whole.shape)
    extents = window.extents
    part = moved(on.numbers, window.memory.value, lambda r: r.reshape(extents)[inside])

    def put(out: Array, given: Array) -> None:
        out[array] = given

    whole.put(on.numbers, part, put)
    if whole.missing is None and held is not None:
        whole.missing = np.zeros(whole.shape, bool)
    if whole.missing is not None:
        whole.missing[array] = False if held is None else held.reshape(extents)[inside]


def _pallas_call(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    params = equation.params
    mapping = params["grid_mapping"]
    triton = is_for_triton(equation)
    if is_for_gpu(equation) and not triton:
        raise on.refuse("a kernel for a GPU")
    many = mapping.dynamic
    grid = _grid(on, mapping, operands[:many])
    dtypes = [v.aval.dtype for v in equation.invars[many:]]
    given, count = list(zip(operands[many:], dtypes, strict=True)), mapping.tables
    tables = [HeldMemory(v, d, f"prefetch{k}") for k, (v, d) in enumerate(given[:count])]
    inputs = [HeldMemory(v, d, f"args[{k}]") for k, (v, d) in enumerate(given[count:])]
    windows = _windows(on, mapping, inputs, params.get("input_output_aliases") or ())
    scratch = [fresh(on, aval, f"scratch[{k}]") for k, aval in enumerate(mapping.scratch)]
    if not triton and on.watch is not None and (found := on.watch.call(windows, scratch)) is not None:
        return list(found)
    before = on.programs
    if triton:
        wholes = [w.whole for w in windows]
        blocks = [w.block for w in windows]
        run_programs(
            on, params["jaxpr"], grid, mapping.counted, blocks, wholes, lambda b, ids: _starts(on, b, ids, (), ())
        )
    else:
        _run_programs(on, params["jaxpr"], grid, mapping.counted, tables, windows, scratch)
    on.ordered = on.ordered and not on.flying
    on.flying = []
    outputs = [w for w in windows if w.output]
    for window in outputs:
        if window.windowed and not triton:
            _written(on, window)
    # an integer of a result that was never written is any
    left = [w.whole.missing for w in outputs if w.whole.missing is not None]
    on.defined = on.defined and not any(m.any() for m in left)
    if on.watch is not None and not triton:
        on.watch.done()
    on.programs = before
    return [w.whole.value for w in outputs]


def _run_programs(
    on: Walking, body: Program, grid: tuple[int, ...], counted: tuple[int, ...], tables: Sequence[HeldMemory],
    windows: Sequence[_Window], scratch: Sequence[HeldMemory | Semaphore],
) -> None:  # fmt: skip
    """Runs the programs of a grid, one after the other. counted: as of `GridPosition`."""
    held, known = [t.value for t in tables], _contents(tables)
    for ids in product(*(range(n) for n in grid)):
        on.programs = GridPosition(grid, ids, counted)
        on.prepared.tick(grid, ids)
        if any(t.value is not h for t, h in zip(tables, held, strict=True)):
            held, known = [t.value for t in tables], _contents(tables)
        for window in windows:
            if window.windowed:
                starts = _starts(on, window.block, ids, tables, known)
                on.inside = on.inside and _seen(window.block, starts, window.whole.shape)
                _move(on, window, starts)
        arguments = [*tables, *(w.whole if w.memory is None else w.memory for w in windows), *scratch]
        if on.lockstep is not None:
            on.lockstep.begins(on, arguments)
        if on.watch is not None:
            on.watch.program(on, body, arguments)
        on.run(body, arguments)


def _grid(on: Walking, mapping: Grid, dynamic: Sequence[Shaped]) -> tuple[int, ...]:
    """The extents of a grid. dynamic: the numbers of those that the call computes."""
    numbers = iter(numbers_of(on, dynamic, "the extent of a grid"))
    grid = tuple(n if type(n) is int else next(numbers) for n in mapping.extents)
    if prod(grid) > MOST_PROGRAMS:
        raise on.refuse(f"a grid of {prod(grid):,} programs, more than {MOST_PROGRAMS:,}; {OFFER}")
    return grid


def _windows(
    on: Walking, mapping: Grid, inputs: Sequence[HeldMemory], aliases: Sequence[tuple[int, int]]
) -> list[_Window]:  # fmt: skip
    """The windows of a call, before its first program. aliases: of operands, of which outputs have the memory."""
    aliased = {int(output): int(operand) - mapping.tables for operand, output in aliases}
    windows = []
    for k, block in enumerate(mapping.windows):
        output = k - mapping.inputs
        if output < 0:
            whole = inputs[k]
        elif aliased.get(output, -1) >= 0:
            whole = inputs[aliased[output]]
        else:
            shape, dtype = block.aval.shape, block.aval.dtype
            missing = missing_of(on, shape, dtype)
            whole = HeldMemory(unwritten(on, shape, dtype), dtype, f"outputs[{output}]", missing)
        windows.append(_Window(whole, block, output >= 0, _extents(block), _shown(block)))
    return windows


def _move(on: Walking, window: _Window, starts: tuple[tuple[int, int], ...]) -> None:
    """Makes a window that of the block which starts there: an output's is written back, an input's fetched."""
    if starts == window.at:
        return
    for memory, written in ((window.whole, window.output), (window.memory, True)):
        if memory is not None:
            touched(on, ElementView(memory, None, memory.shape), written)
    if window.output:
        _written(on, window)
        shown, dtype = window.shown, window.whole.dtype
        missing = missing_of(on, shown, dtype)
        window.memory = HeldMemory(unwritten(on, shown, dtype), dtype, window.whole.name, missing)
    else:
        window.memory = _fetched(on, window, starts)
    window.at = starts


def _program_id(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    programs, axis = on.programs, int(equation.params["axis"])
    if programs is None:
        raise on.refuse("a program's id outside of a kernel")
    return [Known(np.asarray(programs.ids[programs.counted[axis]], np.int32))]


def _num_programs(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    programs, axis = on.programs, int(equation.params["axis"])
    if programs is None:
        raise on.refuse("a number of programs outside of a kernel")
    return [Known(np.asarray(programs.grid[programs.counted[axis]], np.int32))]


PRIMITIVES: dict[str, Rule] = {"pallas_call": _pallas_call, "program_id": _program_id, "num_programs": _num_programs}
