"""What a described kernel does, literally: its programs run one after the other on NumPy arrays.

Every element carries bits: PADDING (made of what is behind an array's end), UNWRITTEN (made of memory that nothing
wrote in this run), FOREIGN (made of scratch that a program of another core may have written). A copy moves its elements
when it starts, and is in flight until all bytes of its semaphore have been waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement, permutations, product
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.kernel import Table as Described
from layoutproof.kernel.table_assumptions import with_assumptions
from layoutproof.pallas.witnesses import broken, witness
from tests.bodies.truth.description import (
    Description,
    E,
    For,
    Let,
    Ref,
    Scoped,
    Shape,
    Signal,
    Start,
    Store,
    Table,
    View,
    Wait,
    When,
    parts,
)

PADDING, UNWRITTEN, FOREIGN, STORED = 1, 2, 4, 8
"""STORED: made of something unwritten, which was stored and counts as written from then on."""
DTYPES: dict[str, Any] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i32": np.int32, "bool": np.bool_}
BYTES = {"f32": 4, "bf16": 2, "i32": 4}
GARBAGE = 77
MOST_ITERATIONS = 10_000

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.mod,
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "min": np.minimum,
    "max": np.maximum,
}


class Stop(Exception):
    """What comes after has no meaning: an access out of bounds, a place or a number of iterations that is garbage."""


@dataclass(eq=False)
class Value:
    """Numbers, and bits of each."""

    v: Any
    bits: Any


@dataclass(eq=False)
class Memory:
    """A reference. who: the program that wrote each element last, -1 = none."""

    ref: Ref
    v: Any
    bits: Any
    who: Any
    stored: Any


@dataclass(eq=False)
class Flight:
    """A copy that may not have ended."""

    source: Memory
    taken: Any
    target: Memory
    given: Any
    size: int


@dataclass(eq=False)
class Semaphore:
    """What one semaphore counts."""

    flights: list[Flight] = field(default_factory=list)
    started: int = 0
    waited: int = 0
    count: int = 0


@dataclass
class Seen:
    """What a run shows. found: kind of violation, and its first place in words.  outputs: at the end."""

    found: dict[str, str] = field(default_factory=dict)
    outputs: list[Value] = field(default_factory=list)
    stopped: bool = False

    def add(self, kind: str, where: str) -> None:
        """Keeps the first of each kind."""
        self.found.setdefault(kind, where)


Program = tuple[int, ...]


@dataclass(eq=False)
class Run:
    """One run: the programs that one core is given, in their order, on some inputs and tables."""

    made: Description
    inputs: Sequence[Any]
    tables: Sequence[Any]
    programs: Sequence[Program]
    seen: Seen = field(default_factory=Seen)
    program: Program = ()
    number: int = 0
    iterations: int = 0
    conditions: int = 0
    touched: dict[tuple[Program, str], tuple[Any, Any]] = field(default_factory=dict)
    in_map: bool = False

    def run(self) -> Seen:
        """All programs."""
        made = self.made
        self.memory: dict[str, Memory] = {}
        self.semaphores: dict[str, dict[Shape, Semaphore]] = {}
        self.arrays: dict[str, Memory] = {}
        for table, content in zip(made.tables, self.tables, strict=True):
            ref = Ref(table.name, "in", table.dims, "i32", "smem")
            self.memory[table.name] = self._memory(ref, np.array(content, np.int32))
        for ref, array in zip(made.inputs, self.inputs, strict=True):
            self.arrays[ref.name] = self._memory(ref, np.array(array))
        for k, ref in enumerate(made.outputs):
            source = next((a for a, b in made.aliases if b == k), None)
            self.arrays[ref.name] = self._memory(ref, None if source is None else np.array(self.inputs[source]))
            if source is not None and not ref.block:
                self.arrays[ref.name] = self.arrays[made.inputs[source].name]
        for ref in made.scratch:
            if ref.memory in ("dma", "signal"):
                self.semaphores[ref.name] = {}
            else:
                self.memory[ref.name] = self._memory(ref, None)
        for ref in (*made.inputs, *made.outputs):
            if not ref.block:
                self.memory[ref.name] = self.arrays[ref.name]
        self.read = {ref.name: np.zeros(ref.shape, bool) for ref in made.inputs}
        self.covered = {ref.name: np.zeros(ref.shape, bool) for ref in made.outputs if ref.block}
        try:
            with np.errstate(all="ignore"):
                self._programs()
        except Stop as reason:
            self.seen.stopped = True
            self.seen.add("stopped", str(reason))
        self.seen.outputs = [Value(self.arrays[r.name].v, self.arrays[r.name].bits) for r in made.outputs]
        return self.seen

    def _programs(self) -> None:
        made = self.made
        blocks: dict[str, tuple[int, ...]] = {}
        left: set[tuple[str, tuple[int, ...]]] = set()
        for number, program in enumerate(self.programs):
            self.program, self.number = program, number
            starts = {ref.name: self._starts(ref) for ref in (*made.inputs, *made.outputs) if ref.block}
            for ref in made.inputs:
                if ref.block:
                    self.memory[ref.name] = self._window(ref, starts[ref.name])
            for ref in made.outputs:
                if ref.block and blocks.get(ref.name) != starts[ref.name]:
                    _overlap(ref, starts[ref.name], self.seen)
                    if (ref.name, starts[ref.name]) in left:
                        self.seen.add("revisited", f"{ref.name} at {starts[ref.name]} in program {program}")
                    self.memory[ref.name] = self._memory(Ref(ref.name, "out", ref.seen, ref.dtype), None)
                    blocks[ref.name] = starts[ref.name]
            self._do(made.body, {})
            self._windows_in_flight()
            after = self.programs[number + 1] if number + 1 < len(self.programs) else None
            for ref in made.outputs:
                if not ref.block:
                    continue
                if after is not None:
                    self.program = after
                    same = self._starts(ref) == starts[ref.name]
                    self.program = program
                    if same:
                        continue
                self._written_back(ref, starts[ref.name])
                left.add((ref.name, starts[ref.name]))
        for name, slots in self.semaphores.items():
            self._at_zero(name, slots, "when the kernel ends")
        for of, covered in self.covered.items():
            if not covered.all():
                self.seen.add("not covered", f"{of}{_first(~covered)}")
        for ref in made.outputs:
            if not ref.block:
                memory = self.arrays[ref.name]
                if not memory.stored.all():
                    self.seen.add("not stored", f"{ref.name}{_first(~memory.stored)}")
                if (memory.bits & PADDING).any():
                    self.seen.add("padding", f"{ref.name}{_first(memory.bits & PADDING)}")

    def _windows_in_flight(self) -> None:
        windows = {ref.name for ref in (*self.made.inputs, *self.made.outputs) if ref.block}
        for slots in self.semaphores.values():
            for semaphore in slots.values():
                if any(m.ref.name in windows for f in semaphore.flights for m in (f.source, f.target)):
                    self.seen.add("window in flight", f"when program {self.program} ends")

    # memory

    def _memory(self, ref: Ref, content: Any) -> Memory:
        shape = ref.shape
        known = content is not None
        v = content if known else np.full(shape, GARBAGE, DTYPES[ref.dtype])
        bits = np.full(shape, 0 if known else UNWRITTEN, np.uint8)
        return Memory(ref, v, bits, np.full(shape, -1), np.zeros(shape, bool))

    def _starts(self, ref: Ref) -> tuple[int, ...]:
        found = []
        self.in_map = True
        for (kind, size), e in zip(ref.block, ref.index, strict=True):
            entry = int(self._scalar(e, {}))
            found.append(entry * size if kind == "blocked" else entry)
        self.in_map = False
        if ref.low:
            found[0] -= ref.low
        return tuple(found)

    def _window(self, ref: Ref, starts: tuple[int, ...]) -> Memory:
        array = self.arrays[ref.name].v
        seen = self._memory(Ref(ref.name, "in", ref.seen, ref.dtype), None)
        seen.bits[...] = PADDING
        inside, place = _overlap(ref, starts, self.seen)
        if not _whole(ref):
            self.read[ref.name][place] = True
        kept = array[place].reshape(seen.v[inside].shape)
        seen.v[inside] = kept
        seen.bits[inside] = 0
        return seen

    def _written_back(self, ref: Ref, starts: tuple[int, ...]) -> None:
        window, array = self.memory[ref.name], self.arrays[ref.name]
        inside, place = _overlap(ref, starts, self.seen)
        self.covered[ref.name][place] = True
        bits, stored = window.bits[inside], window.stored[inside]
        if not stored.all():
            self.seen.add("not stored", f"{ref.name}: window of program {self.program}, element {_first(~stored)}")
        if (bits & PADDING).any():
            self.seen.add("padding", f"{ref.name}: window of program {self.program}, {_first(bits & PADDING)}")
        if (stored & ((bits & UNWRITTEN) > 0)).any():
            self.seen.add("uses unwritten", f"{ref.name}: what goes out after program {self.program}")
        shape = array.v[place].shape
        array.v[place] = window.v[inside].reshape(shape)
        array.bits[place] = bits.reshape(shape)

    def _region(self, view: View, names: dict[str, Value]) -> tuple[Memory, Any, Shape]:
        """A memory, the index of a part of it, and the part's shape."""
        memory = self.memory[view.ref]
        if not view.slices:
            return memory, tuple(slice(0, n) for n in memory.ref.shape), memory.ref.shape
        index = self._index(view, names, memory.ref.shape)
        return memory, index, tuple(s.size for s in view.slices if not s.single)

    def _index(self, view: View, names: dict[str, Value], shape: Shape) -> Any:
        found = []
        for s, extent in zip(view.slices, shape, strict=True):
            start = int(self._scalar(s.start, names))
            last = start + (s.size - 1) * s.stride
            if start < 0 or last >= extent:
                kind = "table read outside" if self.in_map else "out of bounds"
                self.seen.add(kind, f"{view.ref}: {start}..{last} of {extent} in program {self.program}")
                raise Stop("out of bounds")
            found.append(start if s.single else slice(start, last + 1, s.stride))
        return tuple(found)

    def _touch(self, memory: Memory, index: Any, writes: bool) -> None:
        """An element is read or written now."""
        name, what = memory.ref.name, "writes" if writes else "reads"
        for slots in self.semaphores.values():
            for semaphore in slots.values():
                for flight in semaphore.flights:
                    if flight.target is memory and flight.given[index].any():
                        self.seen.add("dma", f"{what} {name} in program {self.program}, a copy into it is in flight")
                    if writes and flight.source is memory and flight.taken[index].any():
                        self.seen.add("dma", f"writes {name} in program {self.program}, a copy of it is in flight")

    def _remember(self, memory: Memory, index: Any, writes: bool) -> None:
        """Which elements of an array in HBM a program touches."""
        if memory.ref.memory != "hbm":
            return
        key = (self.program, memory.ref.name)
        if key not in self.touched:
            self.touched[key] = (np.zeros(memory.ref.shape, bool), np.zeros(memory.ref.shape, bool))
        self.touched[key][writes][index] = True

    # values

    def _reads(self, memory: Memory, index: Any) -> None:
        # of other windows, all is taken to be read
        read = self.read.get(memory.ref.name)
        if read is not None and read.shape == memory.ref.shape:
            read[index] = True

    def _loaded(self, memory: Memory, index: Any, mask: Value | None = None) -> Value:
        self._touch(memory, index, False)
        self._reads(memory, index)
        v, bits = np.array(memory.v[index]), np.array(memory.bits[index])
        if memory.ref.role == "scratch" and self.made.parallel:
            who = np.asarray(memory.who[index])
            own = self.program[: self.made.parallel]
            foreign = [k for k, p in enumerate(self.programs) if p[: self.made.parallel] != own]
            bits[np.isin(who, foreign)] |= FOREIGN
        if mask is not None:
            # what a mask switches off is nothing that is known
            bits = np.where(mask.v, bits, PADDING).astype(np.uint8) | mask.bits
            looked = bits[np.broadcast_to(mask.v, bits.shape)]
        else:
            looked = bits
        if memory.ref.role in ("out", "scratch", "fresh"):
            if (looked & UNWRITTEN).any():
                self.seen.add("reads unwritten", f"{memory.ref.name} in program {self.program}")
            if (looked & FOREIGN).any():
                self.seen.add("reads foreign", f"{memory.ref.name} in program {self.program}")
        return Value(v, bits)

    def _used(self, bits: Any, what: str) -> None:
        if (bits & UNWRITTEN).any():
            self.seen.add("uses unwritten", f"{what} in program {self.program}")
        if (bits & FOREIGN).any():
            self.seen.add("uses foreign", f"{what} in program {self.program}")

    def _scalar(self, e: E, names: dict[str, Value]) -> Any:
        value = self.value(e, names)
        if value.bits.any():
            self._used(value.bits, "a condition or a place")
            if value.bits & PADDING:
                self.seen.add("steered by padding", f"in program {self.program}")
            if value.bits & ~np.uint8(FOREIGN):
                raise Stop("a condition or a place is garbage")
        return value.v

    def value(self, e: E, names: dict[str, Value]) -> Value:
        """What an expression is."""
        found = self._value(e, names)
        v, bits = np.asarray(found.v), np.asarray(found.bits, np.uint8)
        if v.shape != e.shape or bits.shape != e.shape:
            raise AssertionError(f"{e.op} has shape {v.shape}, bits {bits.shape}, not {e.shape}")
        if v.dtype != DTYPES[e.dtype]:
            v = v.astype(DTYPES[e.dtype])
        return Value(v, bits)

    def _value(self, e: E, names: dict[str, Value]) -> Value:
        if e.op in _BINARY:
            a, b = self.value(e.args[0], names), self.value(e.args[1], names)
            return Value(_BINARY[e.op](a.v, b.v), a.bits | b.bits)
        match e.op, e.args:
            case (("int" | "float"), (number,)):
                return _known(number)
            case "pid", (k,):
                return _known(self.program[k])
            case "name", (name,):
                return names[name]
            case "load", (view, mask):
                memory, index, _ = self._region(view, names)
                return self._loaded(memory, index, None if mask is None else self.value(mask, names))
            case "not", (a,):
                inner = self.value(a, names)
                return Value(~inner.v, inner.bits)
            case (("and" | "or"), (a, b)):
                one, two = self.value(a, names), self.value(b, names)
                ends = e.op == "or"
                v = one.v | two.v if ends else one.v & two.v
                # what one side decides, the other side does not spoil
                sure = ((one.v == ends) & (one.bits == 0)) | ((two.v == ends) & (two.bits == 0))
                return Value(v, np.where(sure, 0, one.bits | two.bits))
            case "select", (condition, a, b):
                c, one, two = (self.value(x, names) for x in (condition, a, b))
                bits = np.where(c.bits > 0, c.bits | one.bits | two.bits, np.where(c.v, one.bits, two.bits))
                return Value(np.where(c.v, one.v, two.v), bits)
            case "iota", (axis,):
                return Value(np.indices(e.shape)[axis], np.zeros(e.shape, np.uint8))
            case (("full" | "broadcast"), (a,)):
                return self._both(a, names, lambda x: np.broadcast_to(x, e.shape))
            case "astype", (a,):
                return self.value(a, names)
            case "multiple_of", (a, by):
                inner = self.value(a, names)
                if inner.v % by:
                    self.seen.add("not a multiple", f"{inner.v} of {by} in program {self.program}")
                return inner
            case (("sum" | "amax" | "amin"), (a, axis)):
                inner = self.value(a, names)
                v = {"sum": np.sum, "amax": np.max, "amin": np.min}[e.op](inner.v, axis=axis, keepdims=True)
                return Value(v, np.bitwise_or.reduce(inner.bits, axis=axis, keepdims=True))
            case "total", (a,):
                inner = self.value(a, names)
                return Value(inner.v.sum(), np.bitwise_or.reduce(inner.bits, axis=None))
            case "cumsum", (a, axis, back):
                inner = self.value(a, names)
                turn = (lambda x: np.flip(x, axis)) if back else (lambda x: x)
                v = turn(np.cumsum(turn(inner.v), axis=axis))
                return Value(v, turn(np.bitwise_or.accumulate(turn(inner.bits), axis=axis)))
            case "rev", (a, axis):
                return self._both(a, names, lambda x: np.flip(x, axis))
            case "roll", (a, shift, axis):
                by = int(self._scalar(shift, names))
                return self._both(a, names, lambda x: np.roll(x, by, axis))
            case "concat", (pieces, axis):
                values = [self.value(a, names) for a in pieces]
                return Value(
                    np.concatenate([x.v for x in values], axis), np.concatenate([x.bits for x in values], axis)
                )
            case "slice", (a, starts):
                part = tuple(slice(s, s + n) for s, n in zip(starts, e.shape, strict=True))
                return self._both(a, names, lambda x: x[part])
            case "reshape", (a,):
                return self._both(a, names, lambda x: x.reshape(e.shape))
            case "transpose", (a,):
                return self._both(a, names, lambda x: x.T)
            case "dot", (a, b):
                one, two = self.value(a, names), self.value(b, names)
                bits = np.bitwise_or.reduce(one.bits, axis=1, keepdims=True) | np.bitwise_or.reduce(
                    two.bits, axis=0, keepdims=True
                )
                return Value(one.v @ two.v, bits)
            case "cond", (condition, a, b):
                return self.value(a if self._scalar(condition, names) else b, names)
            case "loop", (counter, count, carried, start, step, _):
                value = self.value(start, names)
                for i in range(int(self._scalar(count, names))):
                    self._turn()
                    value = self.value(step, {**names, counter: _known(i), carried: value})
                return value
        raise ValueError(e.op)

    def _both(self, a: E, names: dict[str, Value], change: Callable[[Any], Any]) -> Value:
        inner = self.value(a, names)
        return Value(change(inner.v), change(inner.bits))

    def _turn(self) -> None:
        self.iterations += 1
        if self.iterations > MOST_ITERATIONS:
            raise Stop("too many iterations")

    # statements

    def _do(self, body: tuple[Any, ...], names: dict[str, Value]) -> None:
        names = dict(names)
        for statement in body:
            match statement:
                case Let(name, value):
                    names[name] = self.value(value, names)
                case Store(view, value, mask):
                    self._store(view, value, mask, names)
                case When(condition, then, otherwise):
                    self._do(then if self._scalar(condition, names) else otherwise, names)
                case For(name, start, stop, inner, _):
                    for i in range(int(self._scalar(start, names)), int(self._scalar(stop, names))):
                        self._turn()
                        self._do(inner, {**names, name: _known(i)})
                case Start(source, target, semaphore):
                    self._start(source, target, self._slot(semaphore, names), names)
                case Wait(source, target, semaphore):
                    # only the shape of what is waited for counts, its place is never used
                    memory = self.memory[source.ref].ref
                    shape = tuple(s.size for s in source.slices if not s.single) if source.slices else memory.shape
                    self._wait(self._slot(semaphore, names), _size(shape, memory), semaphore.ref)
                case Signal(semaphore, amount, wait):
                    slot = self._slot(semaphore, names)
                    if wait and slot.count < amount:
                        self.seen.add("dma", f"{semaphore.ref} counts {slot.count}, {amount} are waited for")
                    slot.count += -amount if wait else amount
                case Scoped(refs, inner):
                    self._scoped(refs, inner, names)

    def _store(self, view: View, value: E, mask: E | None, names: dict[str, Value]) -> None:
        if mask is None and value.op == "select" and value.args[2] == E("load", (view, None), value.shape, value.dtype):
            self._merged(view, value, names)
            return
        given = self.value(value, names)
        where = None if mask is None else self.value(mask, names)
        memory, index, shape = self._region(view, names)
        chosen = np.ones(shape, bool) if where is None else where.v
        if where is not None and where.bits.any():
            self._used(where.bits, "a mask")
            raise Stop("a mask is garbage")
        self._used(given.bits[chosen], f"a store to {view.ref}")
        self._touch(memory, index, True)
        self._put(memory, index, chosen, given.v, given.bits)

    def _merged(self, view: View, value: E, names: dict[str, Value]) -> None:
        """`out = where(mine, new, out)`: what goes back to its own place is as it was."""
        where, given = self.value(value.args[0], names), self.value(value.args[1], names)
        memory, index, _ = self._region(view, names)
        if where.bits.any():
            self._used(where.bits, "a mask")
            raise Stop("a mask is garbage")
        self._used(given.bits[where.v], f"a store to {view.ref}")
        self._touch(memory, index, True)
        self._put(memory, index, where.v, given.v, given.bits)
        memory.stored[index] = True

    def _put(self, memory: Memory, index: Any, chosen: Any, v: Any, bits: Any) -> None:
        memory.v[index] = np.where(chosen, v.astype(memory.v.dtype), memory.v[index])
        # what is stored is written, whatever it is made of
        kept = (bits & (PADDING | STORED)) | np.where(bits & UNWRITTEN, STORED, 0)
        memory.bits[index] = np.where(chosen, kept, memory.bits[index])
        memory.who[index] = np.where(chosen, self.number, memory.who[index])
        memory.stored[index] |= chosen

    def _slot(self, semaphore: View, names: dict[str, Value]) -> Semaphore:
        ref = next((r for r in self.made.scratch if r.name == semaphore.ref), None) or self.fresh[semaphore.ref]
        index = self._index(semaphore, names, ref.shape) if semaphore.slices else ()
        return self.semaphores[semaphore.ref].setdefault(index, Semaphore())

    def _start(self, source: View, target: View, semaphore: Semaphore, names: dict[str, Value]) -> None:
        one, taken, shape = self._region(source, names)
        two, given, _ = self._region(target, names)
        for memory, index, writes in ((one, taken, False), (two, given, True)):
            self._remember(memory, index, writes)
            self._touch(memory, index, writes)
        self._reads(one, taken)
        v, bits = np.array(one.v[taken]), np.array(one.bits[taken])
        if one.ref.role == "scratch" and self.made.parallel:
            own = self.program[: self.made.parallel]
            foreign = [k for k, p in enumerate(self.programs) if p[: self.made.parallel] != own]
            if np.isin(one.who[taken], foreign).any():
                self.seen.add("uses foreign", f"a copy of {source.ref} in program {self.program}")
        if (bits & UNWRITTEN).any():
            out = two.ref.role == "out" and all(self.made.outputs[b].name != two.ref.name for _, b in self.made.aliases)
            self.seen.add("uses unwritten" if out else "copies unwritten", f"{source.ref} in program {self.program}")
        if two.ref.role == "out" and (bits & PADDING).any():
            self.seen.add("copies padding", f"{source.ref} to {target.ref} in program {self.program}")
        self._put(two, given, np.ones(shape, bool), v, bits)
        masks = []
        for memory, index in ((one, taken), (two, given)):
            mask = np.zeros(memory.ref.shape, bool)
            mask[index] = True
            masks.append(mask)
        size = _size(shape, one.ref)
        semaphore.flights.append(Flight(one, masks[0], two, masks[1], size))
        semaphore.started += size

    def _wait(self, semaphore: Semaphore, size: int, name: str) -> None:
        semaphore.waited += size
        if semaphore.waited > semaphore.started:
            self.seen.add("dma", f"more is waited for on {name} than was started, in program {self.program}")
            semaphore.waited = semaphore.started
        if semaphore.waited == semaphore.started:
            semaphore.flights.clear()
            semaphore.started = semaphore.waited = 0

    def _at_zero(self, name: str, slots: dict[Shape, Semaphore], when: str) -> None:
        for semaphore in slots.values():
            if semaphore.flights or semaphore.count:
                self.seen.add("dma", f"{name} is not 0 {when}")

    fresh: dict[str, Ref] = field(default_factory=dict)

    def _scoped(self, refs: tuple[Ref, ...], body: tuple[Any, ...], names: dict[str, Value]) -> None:
        for ref in refs:
            if ref.memory in ("dma", "signal"):
                self.semaphores[ref.name] = {}
                self.fresh[ref.name] = ref
            else:
                self.memory[ref.name] = self._memory(ref, None)
        self._do(body, names)
        for ref in refs:
            if ref.memory in ("dma", "signal"):
                self._at_zero(ref.name, self.semaphores.pop(ref.name), "when its memory is freed")
            else:
                memory = self.memory.pop(ref.name)
                for slots in self.semaphores.values():
                    for semaphore in slots.values():
                        if any(memory in (f.source, f.target) for f in semaphore.flights):
                            self.seen.add("dma", f"{ref.name} is freed while a copy is in flight")


def _known(number: Any) -> Value:
    return Value(np.asarray(number), np.zeros((), np.uint8))


def _first(where: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in np.argwhere(where)[0])


def _size(shape: Shape, ref: Ref) -> int:
    return int(np.prod(shape)) * BYTES[ref.dtype]


def _whole(ref: Ref) -> bool:
    """Whether the window is the array."""
    return ref.seen == ref.shape and all(e.op == "int" and e.args[0] == 0 for e in ref.index)


def _overlap(ref: Ref, starts: tuple[int, ...], seen: Seen) -> tuple[Any, Any]:
    """The part of a window that is in the array, and its place there. Raises Stop where there is none."""
    inside, place = [], []
    for (kind, size), start, extent in zip(ref.block, starts, ref.shape, strict=True):
        low, high = max(start, 0), min(start + size, extent)
        if low >= high:
            seen.add("block outside", f"{ref.name}: the window at {starts} is outside of {ref.shape}")
            raise Stop("a window is outside of its array")
        place.append(slice(low, high))
        if kind != "squeezed":
            inside.append(slice(low - start, high - start))
    return tuple(inside), tuple(place)


# what is asked

QUESTIONS = (
    "body_in_bounds",
    "outputs_stored",
    "initialised",
    "undefined_values",
    "dma_order",
    "body_races",
    "inputs_read",
    "multiple_of",
    "blocks_in_bounds",
    "outputs_covered",
    "revisits",
    "table_reads",
)
"""The questions that have a truth here."""

MOST_CONTENTS = 12
DATA_SETS = 2


@dataclass(frozen=True)
class Truth:
    """wrong, right: the questions whose answer must not be "proved", must not be "refuted". why: in words.

    spared: the questions that are right of some tables, so that nothing but those tables may be refuted.
    """

    wrong: frozenset[str]
    right: frozenset[str]
    why: dict[str, str]
    spared: frozenset[str] = frozenset()


def contents(made: Description, seed: int) -> tuple[list[list[Any]], bool]:
    """What the tables may hold, and whether that is all."""
    if made.assume:
        return assumed(made, seed)
    rng = np.random.default_rng(seed)
    ranges = [range(t.low, t.high + 1) for t in made.tables for _ in range(t.length)]
    every = int(np.prod([len(r) for r in ranges])) if ranges else 1
    if every <= MOST_CONTENTS * 6:
        flat = [list(p) for p in product(*ranges)]
    else:
        flat = [[int(rng.choice(r)) for r in ranges] for _ in range(MOST_CONTENTS)]
        flat += [[r[0] for r in ranges], [r[-1] for r in ranges]]
    found = []
    for numbers in flat:
        rest, one = list(numbers), []
        for t in made.tables:
            one.append(np.array(rest[: t.length], np.int32))
            rest = rest[t.length :]
        found.append(one)
    return found, every <= MOST_CONTENTS * 6


MOST_ASSUMED = 60
"""Contents of tables with a schema that are looked at."""
MOST_TRIED = 6_000
"""Contents that are held against what is assumed, to find all that are so."""


def assumed(made: Description, seed: int) -> tuple[list[list[Any]], bool]:
    """What tables may hold that are as assumed, and whether that is all: first what our own search for tables finds."""
    kernel = Kernel("tables", made.grid, (), (), tables=tuple(Described(t.name, t.dims) for t in made.tables))
    kernel = with_assumptions(kernel, made.assume)
    names = [t.name for t in made.tables]
    rng = np.random.default_rng(seed)
    found: dict[bytes, list[Any]] = {}

    def kept(tables: Mapping[str, Any]) -> bool:
        one = [np.array(tables[name], np.int32) for name in names]
        found.setdefault(b"".join(t.tobytes() for t in one), one)
        return False

    witness(kernel, names, {}, kept)
    said = {t.name: t for t in kernel.tables}
    each = [_candidates(table, said[table.name]) for table in made.tables]
    every = prod(map(len, each)) <= MOST_TRIED
    if not every:
        # some of each by chance: the first ones are all alike
        many = int(MOST_TRIED ** (1 / len(each)))
        each = [[some[k] for k in rng.permutation(len(some))[:many]] for some in each]

    def more(tables: dict[str, Any]) -> None:
        if len(tables) == len(names):
            kept(tables)
            return
        table = made.tables[len(tables)]
        for flat in each[len(tables)]:
            with_it = {**tables, table.name: np.array(flat, np.int32).reshape(table.dims)}
            if broken(kernel, with_it, {}) == "":
                more(with_it)

    more({})
    first, *rest = found.values()
    rest = [rest[k] for k in rng.permutation(len(rest))]
    return [first, *rest[: MOST_ASSUMED - 1]], every and len(found) <= MOST_ASSUMED


def _candidates(table: Table, said: Described) -> list[tuple[int, ...]]:
    """Everything that a table may hold by what is said of it alone."""
    span = range(table.low, table.high + 1)
    if said.monotone:
        return list(combinations_with_replacement(span, table.length))
    if said.injective:
        return list(permutations(span, table.length))
    return list(product(span, repeat=table.length))


def arrays(made: Description, seed: int) -> list[Any]:
    """Inputs: small numbers, above and below 0."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-3, 4, ref.shape).astype(DTYPES[ref.dtype]) for ref in made.inputs]


def shares(made: Description) -> list[list[Program]]:
    """What one core may be given: all programs; those of one parallel index, or of two."""
    every = list(product(*map(range, made.grid)))
    found = [every]
    if made.parallel:
        groups = sorted({p[: made.parallel] for p in every})
        chosen = [(g,) for g in groups] + list(combinations(groups, 2))[:10]
        found += [[p for p in every if p[: made.parallel] in group] for group in chosen]
    return found


def truth(made: Description) -> Truth:
    """What is true of a kernel, of every run that was looked at."""
    found: dict[str, str] = {}
    every, all_contents = contents(made, made.seed)
    stopped, spared = False, set[str]()
    for number, tables in enumerate(every):
        here, ended = _of_tables(made, number, tables)
        stopped = stopped or not ended
        found = here | found
        if ended:
            spared |= {name for name, (bad, open_) in _KINDS.items() if not (bad | open_) & set(here)}
    return _answers(found, all_contents and "data" not in made.notes, stopped, frozenset(spared))


def _of_tables(made: Description, number: int, tables: Sequence[Any]) -> tuple[dict[str, str], bool]:
    """What runs on these tables show, and whether all of them came to their end."""
    found: dict[str, str] = {}
    ended = True
    for data in range(DATA_SETS if number == 0 else 1):
        for share, programs in enumerate(shares(made)):
            run = Run(made, arrays(made, made.seed + 7 * number + data), tables, programs)
            seen = run.run()
            ended = ended and not seen.stopped
            # of an output, all programs write
            whole = share == 0
            for kind, where in seen.found.items():
                if whole or kind not in _OF_ALL:
                    found.setdefault(kind, f"{where}; tables {[t.tolist() for t in tables]}")
            if whole and not seen.stopped:
                races(run, found)
                _unread(run, found)
        if made.parallel:
            # parallel programs have no order: who comes first may find what a later one left
            behind = sorted(shares(made)[0], key=lambda p: tuple(-n for n in p[: made.parallel]))
            run = Run(made, arrays(made, made.seed + 7 * number + data), tables, behind)
            kinds = run.run().found
            found |= {kind: kinds[kind] for kind in kinds if "foreign" in kind and kind not in found}
    return found, ended


def races(run: Run, found: dict[str, str]) -> None:
    """Adds where two programs that may run at once meet in an array, one of them writing."""
    depth = run.made.parallel
    names = {b: a for a, b in ((run.made.inputs[a].name, run.made.outputs[b].name) for a, b in run.made.aliases)}
    touched = [(p, names.get(name, name), *sets) for (p, name), sets in run.touched.items()]
    for (p, one, reads, writes), (q, two, others, written) in combinations(touched, 2):
        if p[:depth] != q[:depth] and one == two:
            met = (writes & (written | others)) | (written & reads)
            if met.any():
                found.setdefault("race", f"{p} and {q} in {one}{_first(met)}")


def _unread(run: Run, found: dict[str, str]) -> None:
    for ref in run.made.inputs:
        unread = ~run.read[ref.name]
        if unread.any():
            found.setdefault("unread", f"{ref.name}{_first(unread)}")
        if any(isinstance(x, E) and x.op == "load" for x in parts(ref.index)):
            continue
        for d, ((kind, size), e) in enumerate(zip(ref.block, ref.index, strict=True)):
            plain = kind == "blocked" and not any(isinstance(x, E) and x.op in _CHOICES for x in parts(e))
            along = run.read[ref.name].any(axis=tuple(k for k in range(len(ref.shape)) if k != d))
            whole = ref.shape[d] // size
            rest = along[whole * size :]
            if plain and whole > 1 and along[: whole * size].all() and rest.size and not rest.any():
                found.setdefault("unread tail", f"{ref.name} dimension {d}")


_CHOICES = {"min", "max", "select"}
"""What an index map leaves out with these, it leaves out on purpose."""
_OF_ALL = {"not stored", "not covered", "revisited"}
"""What only a run of all programs shows."""
_KINDS: dict[str, tuple[set[str], set[str]]] = {
    # question: what makes it wrong, what makes it neither right nor wrong
    "body_in_bounds": ({"out of bounds"}, set()),
    "outputs_stored": ({"not stored"}, set()),
    "initialised": ({"uses unwritten"}, {"copies unwritten"}),
    "undefined_values": ({"padding"}, {"copies padding", "steered by padding"}),
    "dma_order": ({"dma"}, {"window in flight"}),
    "body_races": ({"race", "uses foreign"}, set()),
    "inputs_read": ({"unread tail"}, {"unread"}),
    "multiple_of": ({"not a multiple"}, set()),
    "blocks_in_bounds": ({"block outside"}, set()),
    "outputs_covered": ({"not covered"}, set()),
    "revisits": ({"revisited"}, set()),
    "table_reads": ({"table read outside"}, set()),
}
_OUTSIDE = {
    "out of bounds": "body_in_bounds",
    "block outside": "blocks_in_bounds",
    "table read outside": "table_reads",
}
"""What follows such an access has no meaning."""


def _answers(found: dict[str, str], all_contents: bool, stopped: bool, spared: frozenset[str]) -> Truth:
    wrong, right, why = set(), set(), {}
    outside = {question for kind, question in _OUTSIDE.items() if kind in found}
    for question, (bad, open_) in _KINDS.items():
        kinds = [kind for kind in found if kind in bad]
        why[question] = "; ".join(f"{kind}: {found[kind]}" for kind in found if kind in bad | open_)
        if kinds and (not outside or question in outside):
            wrong.add(question)
        elif not kinds and not open_ & set(found) and all_contents and not stopped:
            right.add(question)
    return Truth(frozenset(wrong), frozenset(right), why, spared)
