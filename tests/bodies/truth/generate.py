"""Random kernels: every aspect is right, or slips by chance. What slips is noted, and may still do no harm."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from tests.bodies.truth.description import (
    Description,
    E,
    For,
    Let,
    Ref,
    Scoped,
    Shape,
    Signal,
    Slice,
    Start,
    Store,
    Table,
    View,
    Wait,
    When,
    parts,
)

# expressions


def num(value: int) -> E:
    """An integer."""
    return E("int", (value,))


def pid(k: int) -> E:
    """A program id."""
    return E("pid", (k,))


def scalar(op: str, a: E, b: E | int) -> E:
    """An operation on scalars, with what is plain already done."""
    other = num(b) if isinstance(b, int) else b
    if a.op == other.op == "int" and op in ("+", "*", "-"):
        x, y = a.args[0], other.args[0]
        return num(x + y if op == "+" else x * y if op == "*" else x - y)
    if (op == "*" and other == num(1)) or (op == "+" and other == num(0)):
        return a
    return E(op, (a, other), (), "bool" if op in ("<", "<=", "==", "!=", "and", "or") else "i32")


def both(a: E, b: E) -> E:
    """Two conditions."""
    return E("and", (a, b), (), "bool")


def name(of: str, like: E) -> E:
    """What a name stands for."""
    return E("name", (of,), like.shape, like.dtype)


def array(op: str, a: E, b: E, dtype: str | None = None) -> E:
    """Elementwise, on equal shapes."""
    return E(op, (a, b), a.shape, dtype or a.dtype)


def full(value: E, shape: Shape) -> E:
    """An array of one number."""
    return E("full", (value,), shape, value.dtype)


def zeros(shape: Shape, value: float = 0.0) -> E:
    """An array of one constant."""
    return full(E("float", (value,), (), "f32"), shape)


def iota(shape: Shape, axis: int) -> E:
    """The index along an axis."""
    return E("iota", (axis,), shape)


def float_of(value: E) -> E:
    """A value in f32."""
    return value if value.dtype == "f32" else E("astype", (value,), value.shape, "f32")


def fitted(value: E, shape: Shape, rng: random.Random) -> E:
    """A value in another shape: repeated, broadcast or cut."""
    while len(value.shape) < len(shape):
        value = E("reshape", (value,), (1, *value.shape), value.dtype)
    if len(value.shape) > len(shape):
        value = E("reshape", (value,), (prod(value.shape[:-1]), value.shape[-1]), value.dtype)
        if len(shape) == 1:
            value = E("reshape", (value,), (prod(value.shape),), value.dtype)
    for d, size in enumerate(shape):
        here = value.shape
        if here[d] == size:
            continue
        if here[d] == 1:
            value = E("broadcast", (value,), (*here[:d], size, *here[d + 1 :]), value.dtype)
            continue
        if here[d] < size:
            many = -(-size // here[d])
            grown = (*here[:d], here[d] * many, *here[d + 1 :])
            value, here = E("concat", ((value,) * many, d), grown, value.dtype), grown
        if here[d] > size:
            starts = tuple(rng.choice((0, here[d] - size)) if k == d else 0 for k in range(len(here)))
            value = E("slice", (value, starts), (*here[:d], size, *here[d + 1 :]), value.dtype)
    return value


@dataclass(frozen=True)
class Got:
    """A value. of: the input while its elements are in place.  place: where the window starts in each dimension."""

    value: E
    of: Ref | None = None
    place: tuple[E, ...] = ()


@dataclass(eq=False)
class Maker:
    """One kernel in the making. slips: the chance that an aspect is wrong."""

    rng: random.Random
    seed: int
    slips: float = 0.0
    unit: Shape = (4, 8)
    grid: Shape = ()
    parallel: int = 0
    tables: list[Table] = field(default_factory=list)
    inputs: list[Ref] = field(default_factory=list)
    outputs: list[Ref] = field(default_factory=list)
    scratch: list[Ref] = field(default_factory=list)
    body: list[Any] = field(default_factory=list)
    last: list[Any] = field(default_factory=list)
    aliases: list[tuple[int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    count: int = 0
    values: list[Got] = field(default_factory=list)

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return self.rng.random() < p

    def slip(self, what: str, scale: float = 1.0) -> bool:
        """Whether this aspect is wrong."""
        if self.chance(self.slips * scale):
            self.notes.append(what)
            return True
        return False

    def choose(self, *ways: Any) -> Any:
        """One of some."""
        return self.rng.choice(ways)

    def fresh(self, of: str) -> str:
        """A new name."""
        self.count += 1
        return f"{of}{self.count}"

    # the kernel

    def made(self) -> Description:
        """The whole of it."""
        rng = self.rng
        self.slips = rng.choice((0.0, 0.05, 0.1, 0.15, 0.3))
        self.unit = rng.choice(((4, 8), (4, 8), (4, 8), (8, 128)))
        rank = rng.choice((1, 1, 2, 2, 3))
        sizes = {1: (1, 2, 3, 4, 5), 2: (1, 2, 3, 3), 3: (1, 2, 2)}[rank]
        self.grid = tuple(rng.choice(sizes) for _ in range(rank))
        self.parallel = min(rank, rng.choice((0, 0, 0, 1, 1, 2)))
        for k in range(rng.choice((0, 0, 0, 1, 1, 2))):
            low = rng.choice((0, 0, 0, 1))
            self.tables.append(Table(f"t{k}", rng.choice((1, 2, 3)), low, low + rng.choice((0, 1, 1, 2))))
        for _ in range(rng.choice((1, 1, 2))):
            self._input()
        if self.chance(0.1):
            self._alias()
        else:
            for _ in range(rng.choice((1, 1, 1, 2))):
                self._output()
        for ref in self.inputs:
            self.values.append(self._loaded(ref) if ref.block else self._fetched(ref))
        for _ in range(rng.choice((0, 1, 1, 2))):
            self._extra()
        for ref in self.outputs:
            if ref.block:
                self._fill(ref)
            else:
                self._send(ref)
        return Description(
            self.seed,
            self.grid,
            self.parallel,
            tuple(self.tables),
            tuple(self.inputs),
            tuple(self.outputs),
            tuple(self.scratch),
            _live((*self.body, *self.last)),
            tuple(self.aliases),
            tuple(self.notes),
        )

    # operands

    def _number(self, k: int, extent: int) -> tuple[E, int]:
        """A block index that depends on grid dimension k or on less, and its largest value."""
        way = self.rng.choice(("id", "id", "id", "back", "half", "const", "table", "less", "flat"))
        if way == "back":
            return scalar("-", num(extent - 1), pid(k)), extent - 1
        if way == "half":
            return scalar("//", pid(k), 2), (extent - 1) // 2
        if way == "const":
            return num(0), 0
        if way == "table" and self.tables:
            table = self.rng.choice(self.tables)
            at = pid(k) if extent <= table.length else num(self.rng.randrange(table.length))
            return self._entry(table, at), table.high
        if way == "less":
            return scalar("max", scalar("-", pid(k), 1), 0), max(extent - 2, 0)
        if way == "flat" and len(self.grid) > 1:
            other = (k + 1) % len(self.grid)
            return scalar("+", scalar("*", pid(k), self.grid[other]), pid(other)), extent * self.grid[other] - 1
        return pid(k), extent - 1

    def _entry(self, table: Table, at: E) -> E:
        return E("load", (View(table.name, (Slice(at, 1, 1, True),)), None))

    def _rest(self, size: int) -> int:
        """How much the last block lacks."""
        return self.rng.randrange(1, size) if size > 1 and self.chance(0.35) else 0

    def _input(self) -> None:
        rng, of = self.rng, f"x{len(self.inputs)}"
        if self.chance(0.2):
            self.inputs.append(Ref(of, "in", self._whole(), "f32", "hbm"))
            return
        rows = self.unit[0] * rng.choice((1, 1, 2))
        columns = self.unit[1] * rng.choice((1, 1, 2)) if self.unit[1] > 8 else rng.choice((8, 8, 5, 4, 16))
        block = [("blocked", rows), ("blocked", columns)]
        if self.chance(0.15):
            block.insert(0, ("squeezed", 1))
        dims, index = [], []
        for _, size in block:
            e, most = self._index()
            index.append(e)
            dims.append((most + 1) * size - self._rest(size))
        low = high = 0
        if len(block) == 2 and self.chance(0.06):
            # elements, with padding at both ends of the rows
            low, k = rng.choice((0, 1, 2)), rng.randrange(len(self.grid))
            high = rng.choice((0, 1, 2))
            block = [("element", rows), ("element", columns)]
            index = [scalar("*", pid(k), rows), num(0)]
            dims = [self.grid[k] * rows - low - high, columns]
        elif self.slip("one block more in the array"):
            d = len(block) - 1
            dims[d] += rng.choice((1, block[d][1]))
        if min(dims) < 1:
            block, dims, index = block[-2:], [rows, columns], [num(0), num(0)]
            block = [("blocked", rows), ("blocked", columns)]
            low = high = 0
        dtype = rng.choice(("f32", "f32", "f32", "bf16", "i32"))
        self.inputs.append(Ref(of, "in", tuple(dims), dtype, "vmem", tuple(block), tuple(index), low, high))

    def _index(self) -> tuple[E, int]:
        k = self.rng.randrange(len(self.grid))
        return self._number(k, self.grid[k])

    def _whole(self) -> Shape:
        """An array in HBM: for each program of some dimension, some rows."""
        return (self.unit[0] * prod(self.grid), self.unit[1])

    def _output(self) -> None:
        rng, of = self.rng, f"o{len(self.outputs)}"
        if self.chance(0.2):
            self.outputs.append(Ref(of, "out", self._whole(), "f32", "hbm"))
            return
        depth = rng.randrange(max(self.parallel, 0), len(self.grid) + 1)
        used = [*range(depth)]
        rng.shuffle(used)
        rows = self.unit[0] * rng.choice((1, 1, 2))
        columns = self.unit[1] if self.unit[1] > 8 else rng.choice((8, 8, 5, 4, 16))
        block, index, dims = [], [], []
        while len(used) > 2:
            k = used.pop()
            block.append(("squeezed", 1))
            index.append(pid(k))
            dims.append(self.grid[k])
        for size in (rows, columns):
            block.append(("blocked", size))
            if used and self.chance(0.8 if len(used) < 2 else 1.1):
                k = used.pop()
                back = self.chance(0.2)
                index.append(scalar("-", num(self.grid[k] - 1), pid(k)) if back else pid(k))
                dims.append(self.grid[k] * size - self._rest(size))
            else:
                index.append(num(0))
                dims.append(size - (self._rest(size) if self.chance(0.3) else 0))
        for k in used:
            block.insert(0, ("squeezed", 1))
            index.insert(0, pid(k))
            dims.insert(0, self.grid[k])
        dtype = rng.choice(("f32", "f32", "f32", "bf16", "i32"))
        self.outputs.append(Ref(of, "out", tuple(dims), dtype, "vmem", tuple(block), tuple(index)))

    def _alias(self) -> None:
        """An output in the place of the first input."""
        if self.chance(0.4):
            shape = self._whole()
            self.inputs[0] = Ref("x0", "in", shape, "f32", "hbm")
            self.outputs.append(Ref("o0", "out", shape, "f32", "hbm"))
        else:
            self._output()
            if not self.outputs[0].block:
                self.inputs[0] = replace(self.outputs[0], name="x0", role="in")
            else:
                self.inputs[0] = replace(self.outputs[0], name="x0", role="in")
        self.aliases.append((0, 0))

    # values

    def _let(self, value: E, of: Ref | None = None, place: tuple[E, ...] = ()) -> Got:
        """A name for a value in the body."""
        got = self.fresh("v")
        self.body.append(Let(got, value))
        return Got(name(got, value), of, place)

    def _load(self, ref: str, slices: Sequence[Slice], shape: Shape, dtype: str) -> E:
        return E("load", (View(ref, tuple(slices)), None), shape, dtype)

    def _start(self, extent: int, size: int, counter: tuple[E, int] | None = None) -> E:
        """Where a slice starts: inside, but for slips."""
        room = extent - size
        ways: list[Callable[[], E]] = [lambda: num(self.rng.randint(0, room))]
        k = self.rng.randrange(len(self.grid))
        moving, most = counter or (pid(k), self.grid[k] - 1)
        if most and room // most:
            ways.append(lambda: scalar("*", moving, self.rng.randint(1, room // most)))
        ways.append(lambda: scalar("min", scalar("*", moving, self.choose(1, 2, size)), room))
        if self.tables:
            table = self.rng.choice(self.tables)
            entry = self._entry(table, num(self.rng.randrange(table.length)))
            ways.append(lambda: entry if table.high <= room else scalar("min", entry, room))
        if room:
            ways.append(lambda: scalar("%", scalar("*", moving, self.choose(1, 2, 3)), room + 1))
        start = self.rng.choice(ways)()
        if self.slip("a start that is one off", 0.7):
            start = scalar("+", start, self.choose(1, -1, room))
        if self.chance(0.06) and start.op != "int":
            start = E("multiple_of", (start, self.choose(1, 2, size)), (), "i32")
        return start

    def _loaded(self, ref: Ref) -> Got:
        """A load of a window, whole or in parts."""
        shape, rng = ref.seen, self.rng
        starts = self._window_starts(ref)
        way = rng.choice(("whole", "whole", "whole", "part", "halves", "strided", "rows", "masked"))
        rows, rest = shape[0], shape[1:]
        everything = [Slice(num(0), n) for n in rest]
        if way == "part" and rows > 1:
            size = rng.randint(1, rows)
            value = self._load(ref.name, [Slice(self._start(rows, size), size), *everything], (size, *rest), ref.dtype)
            got = self._let(float_of(value))
            return self._worked(Got(fitted(got.value, shape, rng)))
        if way == "halves" and rows > 1 and rows % 2 == 0:
            half = rows // 2
            pieces = [
                self._load(ref.name, [Slice(num(s), half), *everything], (half, *rest), ref.dtype) for s in (0, half)
            ]
            return self._worked(self._let(float_of(E("concat", (tuple(pieces), 0), shape, ref.dtype)), ref, starts))
        if way == "strided" and rows % 2 == 0:
            half = rows // 2
            start = rng.choice((0, 1)) + (1 if self.slip("a stride past the end") else 0)
            value = self._load(ref.name, [Slice(num(start), half, 2), *everything], (half, *rest), ref.dtype)
            return self._worked(Got(fitted(self._let(float_of(value)).value, shape, rng)))
        if way == "rows":
            total = self._row_sum(ref)
            return self._worked(Got(fitted(self._let(total).value, shape, rng)))
        if way == "masked":
            got = E("load", (View(ref.name), self._inside(ref, shape, starts)), shape, ref.dtype)
            if got.args[1] is not None:
                value = E("select", (got.args[1], got, full(self._zero(ref.dtype), shape)), shape, ref.dtype)
                return self._worked(self._let(float_of(value if self.chance(0.8) else got), None, ()))
        value = self._load(ref.name, (), shape, ref.dtype)
        return self._worked(self._let(float_of(value), ref, starts))

    def _zero(self, dtype: str) -> E:
        return E("float", (0.0,), (), "f32") if dtype == "f32" else E("astype", (num(0),), (), dtype)

    def _row_sum(self, ref: Ref) -> E:
        """A loop over rows."""
        rows, columns = ref.seen[0], ref.seen[1]
        counter, carried = self.fresh("r"), self.fresh("c")
        many: E = num(rows + (1 if self.slip("a row too many") else 0))
        if self.chance(0.3) and ref.block and ref.block[-2][0] == "blocked":
            # as many rows as there are
            start = self._window_starts(ref)[0]
            valid = scalar("-", num(ref.shape[-2]), start)
            many = scalar("min", valid, num(rows)) if not self.slip("a row too many") else num(rows)
        at = E("name", (counter,))
        row = float_of(self._load(ref.name, [Slice(at, 1), Slice(num(0), columns)], (1, columns), ref.dtype))
        before = E("name", (carried,), (1, columns), "f32")
        step = array(self.choose("+", "max"), before, row)
        if self.chance(0.2):
            keep = scalar("<", at, rows - 1)
            step = E("select", (full(keep, (1, columns)), step, before), (1, columns), "f32")
        kind = "while" if self.chance(0.3) else "fori"
        return E("loop", (counter, many, carried, zeros((1, columns)), step, kind), (1, columns), "f32")

    def _window_starts(self, ref: Ref) -> tuple[E, ...]:
        found = []
        for (kind, size), e in zip(ref.block, ref.index, strict=True):
            if kind != "squeezed":
                found.append(scalar("*", e, size) if kind == "blocked" else e)
        if ref.low:
            found[0] = scalar("-", found[0], ref.low)
        return tuple(found)

    def _inside(self, ref: Ref, shape: Shape, starts: tuple[E, ...]) -> E | None:
        """A mask of what is no padding; perhaps a wrong one."""
        dims = [n for n, (kind, _) in zip(ref.shape, ref.block, strict=True) if kind != "squeezed"]
        found: E | None = None
        for d, (extent, start) in enumerate(zip(dims, starts, strict=True)):
            padded = extent % shape[d] or ref.low or ref.high
            if not padded and not self.chance(0.1):
                continue
            if self.slip("one dimension is not masked"):
                continue
            start = num(0) if self.slip("the mask forgets the program") else start
            place = array("+", full(start, shape), iota(shape, d))
            compare = "<=" if self.slip("the mask has one place more") else "<"
            if self.chance(0.2):
                compare, extent = "<=", extent - (1 if compare == "<" else 0)
            mask = array(compare, place, full(num(extent), shape), "bool")
            if ref.low and d == 0:
                mask = array("and", mask, array("<=", full(num(0), shape), place, "bool"))
            found = mask if found is None else array("and", found, mask)
        return found

    def _worked(self, got: Got) -> Got:
        """Some operations on a value."""
        if got.of is not None and self.chance(0.75):
            mask = self._inside(got.of, got.value.shape, got.place)
            if mask is not None:
                if self.slip("the mask is the wrong way round", 0.5):
                    mask = E("not", (mask,), mask.shape, "bool")
                filler = zeros(got.value.shape, self.choose(0.0, 0.0, -5.0))
                got = Got(E("select", (mask, got.value, filler), got.value.shape, "f32"))
        for _ in range(self.rng.choice((0, 1, 1, 2, 3))):
            got = Got(self._operated(got.value))
        return self._let(got.value)

    def _operated(self, v: E) -> E:
        rng, shape = self.rng, v.shape
        axis = rng.randrange(len(shape))
        small = prod(shape) <= 4096
        ways = "sum max min cumsum rev roll halves transpose reshape dot number where integers bf16 cond other"
        way = rng.choice([*ways.split(), "as it is", "fori", "as it is", "data"])
        if way in ("sum", "max", "min"):
            op = {"sum": "sum", "max": "amax", "min": "amin"}[way]
            reduced = E(op, (v, axis), tuple(1 if d == axis else n for d, n in enumerate(shape)), "f32")
            return E("broadcast", (reduced,), shape, "f32")
        if way == "cumsum":
            return E("cumsum", (v, axis, self.chance(0.4)), shape, "f32")
        if way == "rev":
            return E("rev", (v, axis), shape, "f32")
        if way == "roll":
            return E("roll", (v, num(rng.randrange(shape[axis])), axis), shape, "f32")
        if way == "halves" and shape[axis] % 2 == 0:
            half = shape[axis] // 2
            cut = tuple(half if d == axis else n for d, n in enumerate(shape))
            ends = [tuple(s if d == axis else 0 for d in range(len(shape))) for s in (half, 0)]
            return E("concat", (tuple(E("slice", (v, s), cut, "f32") for s in ends), axis), shape, "f32")
        if way == "transpose" and len(shape) == 2:
            return fitted(E("transpose", (v,), shape[::-1], "f32"), shape, rng)
        if way == "reshape" and len(shape) == 2 and shape[1] % 2 == 0:
            folded = E("reshape", (v,), (shape[0] * 2, shape[1] // 2), "f32")
            if self.chance(0.5):
                folded = E("rev", (folded, 0), folded.shape, "f32")
            return E("reshape", (folded,), shape, "f32")
        if way == "dot" and len(shape) == 2 and small:
            other = E("transpose", (v,), shape[::-1], "f32")
            product = E("dot", (v, other), (shape[0], shape[0]), "f32")
            return fitted(product, shape, rng)
        if way == "number":
            return array(self.choose("+", "*", "max"), v, zeros(shape, self.choose(0.0, 1.0, 2.0)))
        if way == "where":
            at = array("<", iota(shape, axis), full(num(rng.randint(0, shape[axis])), shape), "bool")
            return E("select", (at, v, zeros(shape)), shape, "f32")
        if way == "integers":
            counted = E("astype", (v,), shape, "i32")
            return E("astype", (array("+", counted, iota(shape, axis)),), shape, "f32")
        if way == "bf16":
            return E("astype", (E("astype", (v,), shape, "bf16"),), shape, "f32")
        if way == "cond":
            k = rng.randrange(len(self.grid))
            test = scalar("==", pid(k), self.choose(0, self.grid[k] - 1))
            other = E(
                "broadcast",
                (E("amax", (v, axis), tuple(1 if d == axis else n for d, n in enumerate(shape)), "f32"),),
                shape,
                "f32",
            )
            return E("cond", (test, v, other), shape, "f32")
        if way == "other" and self.values:
            return array(self.choose("+", "*", "max"), v, fitted(rng.choice(self.values).value, shape, rng))
        if way == "fori":
            counter, carried = self.fresh("r"), self.fresh("c")
            before = E("name", (carried,), shape, "f32")
            moved = E("roll", (before, num(1), axis), shape, "f32") if self.chance(0.5) else v
            at = E("name", (counter,))
            test = full(scalar("<", at, 1), shape)
            step = self.choose(
                array("+", before, moved), E("select", (test, before, moved), shape, "f32"), array("max", moved, v)
            )
            return E("loop", (counter, num(rng.randint(0, 3)), carried, v, step, "fori"), shape, "f32")
        if way == "data" and self.chance(0.3):
            self.notes.append("data")
            positive = array("<", zeros(shape), v, "bool")
            return E("select", (positive, v, zeros(shape, 1.0)), shape, "f32")
        return v

    def _some(self, shape: Shape) -> E:
        """Some value in a shape."""
        if not self.values:
            return zeros(shape, 1.0)
        found = fitted(self.rng.choice(self.values).value, shape, self.rng)
        for other in self.values:
            if self.chance(0.4):
                found = array(self.choose("+", "max"), found, fitted(other.value, shape, self.rng))
        return found

    # outputs with windows

    def _inner(self, ref: Ref) -> list[int]:
        """The grid dimensions along which the window stays."""
        used = {p.args[0] for e in ref.index for p in _pids(e)}
        return [k for k in range(len(self.grid)) if k not in used]

    def _at(self, dims: Sequence[int], last: bool) -> E | None:
        """The condition of the first or the last step along some grid dimensions."""
        found: E | None = None
        for k in dims:
            end = self.grid[k] - 1 if last else 0
            if last and self.slip("the last step is one off"):
                end += self.choose(-1, 1)
            elif not last and self.slip("the first step is one off"):
                end += 1
            if self.slip("the step of another dimension", 0.5):
                k = self.rng.randrange(len(self.grid))
            test = scalar("==", pid(k), end)
            found = test if found is None else both(found, test)
        return found

    def _under(self, condition: E | None, *statements: Any) -> None:
        self.body.append(When(condition, statements) if condition is not None else None)
        if self.body[-1] is None:
            self.body[-1:] = statements

    def _fill(self, ref: Ref) -> None:
        """Stores into an output's window."""
        shape, inner = ref.seen, self._inner(ref)
        ways = ["direct", "direct", "parts", "loop", "either", "masked", "table"]
        ways += ["sum", "sum", "sum", "window", "carried"] if len(shape) == 2 else []
        way = self.rng.choice(ways)
        value = self._some(shape)
        whole = View(ref.name)

        def cast(v: E) -> E:
            return v if ref.dtype == "f32" else E("astype", (v,), v.shape, ref.dtype)

        def load(of: str, dtype: str = "f32") -> E:
            return float_of(E("load", (View(of), None), shape, dtype))

        def store(view: View, v: E) -> Store:
            return Store(view, cast(v))

        if way in ("sum", "window"):
            total = ref.name
            if way == "sum":
                total = self.fresh("s")
                self.scratch.append(Ref(total, "scratch", shape))
            dtype = "f32" if way == "sum" else ref.dtype
            init = zeros(shape) if way == "sum" else cast(zeros(shape))
            if not self.slip("never zeroed"):
                if self.slip("zeroed in part") and shape[0] > 1:
                    part = View(total, (Slice(num(0), shape[0] - 1), *(Slice(num(0), n) for n in shape[1:])))
                    less = (shape[0] - 1, *shape[1:])
                    self._under(self._at(inner, False), Store(part, fitted(init, less, self.rng)))
                else:
                    self._under(self._at(inner, False), Store(View(total), init))
            added = array(self.choose("+", "+", "max"), load(total, dtype), value)
            self.body.append(Store(View(total), added if way == "sum" else cast(added)))
            if way == "sum":
                flush = self._at(inner, True) if self.chance(0.8) else None
                self._under(flush, store(whole, load(total)))
            return
        if way == "carried":
            kept = self.fresh("s")
            self.scratch.append(Ref(kept, "scratch", shape))
            first = self._at(
                range(self.parallel if not self.slip("over parallel programs") else 0, len(self.grid)), False
            )
            if not self.slip("never zeroed"):
                self._under(first, Store(View(kept), self._some(shape)))
            self.body.append(store(whole, load(kept)))
            if self.chance(0.7):
                self.body.append(Store(View(kept), array("+", load(kept), value)))
            return
        rows = shape[0]
        columns = tuple(Slice(num(0), n) for n in shape[1:])
        guard = None
        if inner and self.chance(0.4):
            guard = self._at(inner, self.chance(0.7))
        elif self.slip("stored by some programs only"):
            k = self.rng.randrange(len(self.grid))
            guard = scalar("<", pid(k), self.grid[k] - 1)
        if way == "parts" and rows > 1:
            cut = self.rng.randint(1, rows - 1)
            end = rows - (1 if self.slip("the last row is left out") else 0)
            if self.chance(0.3) and rows % 2 == 0:
                size = (rows // 2, *shape[1:])
                for start in (0, 0 if self.slip("the same phase twice") else 1):
                    view = View(ref.name, (Slice(num(start), rows // 2, 2), *columns))
                    self._under(guard, store(view, fitted(value, size, self.rng)))
                return
            for start, stop in ((0, cut), (cut, end)):
                if stop > start:
                    view = View(ref.name, (Slice(num(start), stop - start), *columns))
                    self._under(guard, store(view, fitted(value, (stop - start, *shape[1:]), self.rng)))
            return
        if way == "loop":
            counter = self.fresh("r")
            at, size = E("name", (counter,)), self.choose(1, 1, 2 if rows % 2 == 0 else 1)
            many = rows // size
            if self.slip("a row too few"):
                many -= 1
            elif self.slip("a row too many", 0.6):
                many += 1
            start = scalar("*", at, size)
            view = View(ref.name, (Slice(start, size), *columns))
            source = self.rng.choice([*self.inputs, None])
            row = fitted(value, (size, *shape[1:]), self.rng)
            if source is not None and source.block and source.seen == shape:
                row = float_of(
                    self._load(source.name, [Slice(start, size), *columns], (size, *shape[1:]), source.dtype)
                )
            elif len(shape) == 2 and self.chance(0.5):
                row = full(E("astype", (at,), (), "f32"), (size, *shape[1:]))
            kind = self.rng.choice(("fori", "fori", "while", "unrolled"))
            self._under(guard, For(counter, num(0), num(many), (store(view, row),), kind))
            return
        if way == "either":
            k = self.rng.randrange(len(self.grid))
            test = scalar("<", pid(k), self.rng.randint(0, self.grid[k]))
            if self.tables and self.chance(0.4):
                table = self.rng.choice(self.tables)
                test = scalar("<", self._entry(table, num(0)), self.choose(table.low, table.high))
            other = (store(whole, self._some(shape)),)
            if self.slip("only one branch stores"):
                other = ()
            self._under(guard, When(test, (store(whole, value),), other))
            return
        if way == "masked" and len(shape) == 2:
            mask = self._inside(ref, shape, self._window_starts(ref))
            if mask is not None and self.chance(0.7):
                if self.slip("the mask of the store lacks one"):
                    short = array("<", iota(shape, 1), full(num(shape[1] - 1), shape), "bool")
                    mask = array("and", mask, short)
                self._under(guard, Store(whole, cast(value), mask))
                return
        if way == "table" and self.tables and rows > 1:
            table = self.rng.choice(self.tables)
            entry = self._entry(table, num(self.rng.randrange(table.length)))
            start = scalar("min", entry, rows - 1) if table.high > rows - 1 else entry
            if not self.slip("only what a table says is stored"):
                self._under(guard, store(whole, value))
            view = View(ref.name, (Slice(start, 1), *columns))
            self.body.append(store(view, zeros((1, *shape[1:]))))
            return
        self._under(guard, store(whole, value))

    # copies

    def _linear(self) -> E:
        """The number of the program."""
        found = pid(0)
        for k in range(1, len(self.grid)):
            found = scalar("+", scalar("*", found, self.grid[k]), pid(k))
        return found

    def _buffers(self, slots: int, rows: int, columns: int, of: str = "b") -> tuple[str, str]:
        buffer, semaphore = self.fresh(of), self.fresh("m")
        self.scratch.append(Ref(buffer, "scratch", (slots, rows, columns)))
        self.scratch.append(Ref(semaphore, "scratch", (slots,), "i32", "dma"))
        return buffer, semaphore

    def _slot(self, buffer: str, slot: E, rows: int, columns: int) -> View:
        return View(buffer, (Slice(slot, 1, 1, True), Slice(num(0), rows), Slice(num(0), columns)))

    def _one(self, semaphore: str, slot: E) -> View:
        return View(semaphore, (Slice(slot, 1, 1, True),))

    def _fetched(self, ref: Ref) -> Got:
        """What a program needs of an array in HBM, by copies."""
        rng = self.rng
        rows, columns = self.unit
        every = prod(self.grid)
        at = self._linear()
        way = rng.choice(("simple", "simple", "pieces", "ahead", "ahead", "loop"))

        def part(number: E, many: int = rows) -> View:
            start = scalar("*", number, rows)
            if self.slip("a place one off", 0.6):
                start = scalar("+", start, self.choose(1, rows))
            return View(ref.name, (Slice(start, many), Slice(num(0), columns)))

        if way == "simple":
            if self.chance(0.25):
                return self._scoped_fetch(part(at), rows, columns)
            buffer, semaphore = self._buffers(1, rows, columns)
            place, sem = self._slot(buffer, num(0), rows, columns), self._one(semaphore, num(0))
            return self._simple(part(at), place, sem, rows, columns)
        if way == "pieces":
            # many starts, one wait for all bytes through a descriptor of another shape
            buffer, semaphore = self._buffers(1, rows, columns)
            counter = self.fresh("r")
            turn = E("name", (counter,))
            size = self.choose(1, 2)
            source = View(
                ref.name,
                (Slice(scalar("+", scalar("*", at, rows), scalar("*", turn, size)), size), Slice(num(0), columns)),
            )
            target = View(
                buffer, (Slice(num(0), 1, 1, True), Slice(scalar("*", turn, size), size), Slice(num(0), columns))
            )
            sem = self._one(semaphore, num(0))
            many = rows // size - (1 if self.slip("a piece too few") else 0)
            kind = self.rng.choice(("fori", "unrolled", "while"))
            self.body.append(For(counter, num(0), num(many), (Start(source, target, sem),), kind))
            all_of = self._slot(buffer, num(0), rows, columns)
            if self.chance(0.5):
                self.body.append(Wait(all_of, all_of, sem))
            else:
                counter = self.fresh("r")
                self.body.append(For(counter, num(0), num(many), (Wait(_moved(source), _moved(target), sem),), kind))
            return self._let(self._load(buffer, all_of.slices, (rows, columns), "f32"))
        slots = self.choose(2, 2, 3)
        buffer, semaphore = self._buffers(slots, rows, columns)
        modulus = slots + (1 if self.slip("a slot too many", 0.5) else 0)

        def copy(number: E, slips: bool = True) -> tuple[View, View, View]:
            slot = scalar("%", number, modulus)
            if slips and self.slip("another slot", 0.6):
                slot = scalar("%", scalar("+", number, 1), slots)
            return part(number), self._slot(buffer, slot, rows, columns), self._one(semaphore, slot)

        if way == "ahead":
            if self.parallel and not self.slip("ahead over parallel programs", 2):
                buffer = self._slot(buffer, num(0), rows, columns)  # type: ignore[assignment]
                return self._simple(part(at), buffer, self._one(semaphore, num(0)), rows, columns)  # type: ignore[arg-type]
            self.body.append(When(scalar("==", at, 0), (Start(*copy(num(0))),)))
            ahead = scalar("+", at, 1)
            guard = scalar("<", ahead, every)
            early = Start(*copy(ahead))
            start: Any = early if self.slip("no guard") else When(guard, (early,))
            wait = Wait(*copy(at))
            slot = scalar("%", at, modulus)
            view = self._slot(buffer, slot, rows, columns)
            steps = [start, wait]
            if self.slip("another order", 0.5):
                steps = [wait, start]
            self.body += steps
            got = self._let(self._load(buffer, view.slices, (rows, columns), "f32"))
            return self._worked(got)
        # a loop over parts within the program
        total, counter = self.fresh("s"), self.fresh("r")
        many = self.choose(2, 3, every)
        many = min(many, every)
        turn = E("name", (counter,))
        self.scratch.append(Ref(total, "scratch", (rows, columns)))
        self.body.append(Store(View(total), zeros((rows, columns))))
        self.body.append(Start(*copy(num(0))))
        ahead = scalar("+", turn, 1)
        limit = many + (1 if self.slip("one start too many", 0.5) else 0)
        inner: list[Any] = [When(scalar("<", ahead, limit), (Start(*copy(ahead)),)), Wait(*copy(turn))]
        if self.slip("reads before the wait", 0.5):
            inner = inner[:1]
            self.notes.append("no wait")
        read = self._load(
            buffer, self._slot(buffer, scalar("%", turn, modulus), rows, columns).slices, (rows, columns), "f32"
        )
        before = self._load(total, (), (rows, columns), "f32")
        inner.append(Store(View(total), array("+", before, read)))
        kind = self.rng.choice(("fori", "fori", "while", "unrolled"))
        self.body.append(For(counter, num(0), num(many), tuple(inner), kind))
        return self._let(self._load(total, (), (rows, columns), "f32"))

    def _simple(self, source: View, place: View, sem: View, rows: int, columns: int) -> Got:
        self.body.append(Start(source, place, sem))
        load = self._load(place.ref, place.slices, (rows, columns), "f32")
        if self.slip("reads before the wait"):
            got = self._let(load)
            self.body.append(Wait(source, place, sem))
            return got
        if not self.slip("no wait"):
            if self.slip("waits for less"):
                first, *rest = place.slices
                less = View(place.ref, (first, Slice(num(0), rows // 2), *rest[1:]))
                self.body.append(Wait(less, less, sem))
            else:
                self.body.append(Wait(source, place, sem))
                if self.slip("waits twice", 0.4):
                    self.body.append(Wait(source, place, sem))
        return self._worked(self._let(load))

    def _scoped_fetch(self, source: View, rows: int, columns: int) -> Got:
        buffer, semaphore, out = self.fresh("b"), self.fresh("m"), self.fresh("s")
        self.scratch.append(Ref(out, "scratch", (rows, columns)))
        refs = (Ref(buffer, "fresh", (rows, columns)), Ref(semaphore, "fresh", (), "i32", "dma"))
        body: list[Any] = [Start(source, View(buffer), View(semaphore))]
        if not self.slip("no wait"):
            body.append(Wait(source, View(buffer), View(semaphore)))
        body.append(Store(View(out), self._load(buffer, (), (rows, columns), "f32")))
        self.body.append(Scoped(refs, tuple(body)))
        return self._let(self._load(out, (), (rows, columns), "f32"))

    def _send(self, ref: Ref) -> None:
        """Copies to an output in HBM."""
        rng = self.rng
        rows, columns = self.unit
        every = prod(self.grid)
        at = self._linear()

        def part(number: E) -> View:
            start = scalar("*", number, rows)
            if self.slip("a place one off", 0.6):
                start = scalar("+", start, self.choose(1, -1, rows))
            return View(ref.name, (Slice(start, rows), Slice(num(0), columns)))

        way = rng.choice(("simple", "simple", "later", "loop", "chosen"))
        if way == "chosen" and (not self.tables or self.chance(0.5)):
            way = "simple"
        if way == "later" and self.parallel:
            way = "simple"
        value = self._some((rows, columns))
        if way in ("simple", "chosen"):
            buffer, semaphore = self._buffers(1, rows, columns, "w")
            place, sem = self._slot(buffer, num(0), rows, columns), self._one(semaphore, num(0))
            self.body.append(Store(place, value))
            number = at
            if way == "chosen":
                table = rng.choice(self.tables)
                number = scalar("%", scalar("+", self._entry(table, num(0)), at), every)
            if self.slip("all programs write one place", 0.5):
                number = num(0)
            target = part(number)
            self.body.append(Start(place, target, sem))
            if self.slip("overwrites what is sent"):
                self.body.append(Store(place, zeros((rows, columns))))
            if not self.slip("no wait"):
                self.body.append(Wait(place, target, sem))
            return
        buffer, semaphore = self._buffers(2, rows, columns, "w")

        def copy(number: E) -> tuple[View, View, View]:
            slot = scalar("%", number, 2)
            if self.slip("another slot", 0.5):
                slot = scalar("%", scalar("+", number, 1), 2)
            return self._slot(buffer, slot, rows, columns), part(number), self._one(semaphore, slot)

        if way == "later":
            # two copies are on their way; the last programs wait for what is left
            if not self.slip("no wait"):
                self.body.append(When(scalar("<=", num(2), at), (Wait(*copy(scalar("-", at, 2))),)))
            self.body.append(Store(self._slot(buffer, scalar("%", at, 2), rows, columns), value))
            self.body.append(Start(*copy(at)))
            final: list[Any] = [Wait(*copy(at))]
            if every > 1 and not self.slip("one is left on its way"):
                final.insert(0, Wait(*copy(scalar("-", at, 1))))
            self.last.append(When(scalar("==", at, every - 1), tuple(final)))
            return
        counter = self.fresh("r")
        turn = E("name", (counter,))
        many = every
        if self.parallel:
            # each program sends one part
            turn_at, many = scalar("+", at, turn), 1
        else:
            turn_at = turn
        inner: list[Any] = [
            When(scalar("<=", num(2), turn), (Wait(*copy(scalar("-", turn_at, 2))),)),
            Store(self._slot(buffer, scalar("%", turn_at, 2), rows, columns), value),
            Start(*copy(turn_at)),
        ]
        self.body.append(For(counter, num(0), num(many), tuple(inner), rng.choice(("fori", "unrolled"))))
        last = scalar("+", at, 0) if self.parallel else num(many - 1)
        self.body.append(Wait(*copy(last)))
        if many > 1 and not self.slip("one is left on its way"):
            self.body.append(Wait(*copy(num(many - 2))))

    # other things

    def _extra(self) -> None:
        """Something beside: a temporary, a counter, a signal, a table that is written."""
        rng = self.rng
        shape = self.unit
        way = rng.choice(("temporary", "counter", "signal", "scratch", "previous", "number"))
        if way == "temporary":
            of = self.fresh("f")
            ref = Ref(of, "fresh", shape)
            out = self.fresh("s")
            self.scratch.append(Ref(out, "scratch", shape))
            statements: list[Any] = []
            if not self.slip("a temporary is not written"):
                value = self._some(shape)
                if self.slip("a temporary is written in part"):
                    part = View(of, (Slice(num(0), shape[0] // 2), Slice(num(0), shape[1])))
                    statements.append(Store(part, fitted(value, (shape[0] // 2, shape[1]), rng)))
                else:
                    statements.append(Store(View(of), value))
            read = self._load(of, (), shape, "f32")
            if self.chance(0.3):
                above = array("<", iota(shape, 0), full(num(shape[0] // 2), shape), "bool")
                read = E("select", (above, read, zeros(shape)), shape, "f32")
            statements.append(Store(View(out), read))
            self.body.append(Scoped((ref,), tuple(statements)))
            self.values.append(self._let(self._load(out, (), shape, "f32")))
        elif way == "counter":
            of = self.fresh("n")
            self.scratch.append(Ref(of, "scratch", (2,), "i32", "smem"))
            cell = View(of, (Slice(num(0), 1, 1, True),))
            now = E("load", (cell, None))
            first = self._at(range(self.parallel, len(self.grid)), False)
            if not self.slip("never zeroed"):
                self._under(first, Store(cell, num(0)))
            k = rng.randrange(len(self.inputs))
            ref = self.inputs[k]
            if ref.block and len(ref.seen) == 2 and ref.seen[0] > 1:
                row = scalar("%", now, ref.seen[0]) if not self.slip("an unbounded counter", 0.5) else now
                rows = self._load(ref.name, [Slice(row, 1), Slice(num(0), ref.seen[1])], (1, ref.seen[1]), ref.dtype)
                self.values.append(Got(fitted(self._let(float_of(rows)).value, ref.seen, rng)))
            self.body.append(Store(cell, scalar("+", now, 1)))
        elif way == "signal":
            of = self.fresh("g")
            self.scratch.append(Ref(of, "scratch", (), "i32", "signal"))
            many = self.choose(1, 2)
            self.body.append(Signal(View(of), many))
            if not self.slip("a signal is left"):
                taken = many + (1 if self.slip("more is taken than signalled", 0.5) else 0)
                self.body.append(Signal(View(of), taken, True))
        elif way == "scratch":
            # all of it is written in some steps, a part is read
            of = self.fresh("s")
            rows = shape[0]
            self.scratch.append(Ref(of, "scratch", shape))
            k = rng.randrange(len(self.grid))
            guard = None
            if self.slip("written by some programs only"):
                guard = scalar("==", pid(k), 0)
            self._under(guard, Store(View(of), self._some(shape)))
            size = rng.randint(1, rows)
            read = self._load(
                of, [Slice(self._start(rows, size), size), Slice(num(0), shape[1])], (size, shape[1]), "f32"
            )
            self.values.append(Got(fitted(self._let(read).value, shape, rng)))
        elif way == "previous":
            # the block of the program before
            of = self.fresh("s")
            self.scratch.append(Ref(of, "scratch", shape))
            start = self.parallel if not self.slip("over parallel programs") else 0
            first = self._at(range(start, len(self.grid)), False)
            if first is not None and not self.slip("never zeroed"):
                self.body.append(When(first, (Store(View(of), zeros(shape)),)))
            elif first is None:
                self.body.append(Store(View(of), zeros(shape)))
            before = self._let(self._load(of, (), shape, "f32"))
            self.last.append(Store(View(of), self._some(shape)))
            self.values.append(before)
        else:
            k = rng.randrange(len(self.grid))
            by = self.choose(1, 2, 4)
            number = scalar("*", pid(k), by)
            said = by if not self.slip("what is said to divide") else by * 2
            promised = E("multiple_of", (number, said))
            value = full(E("astype", (promised,), (), "f32"), shape)
            self.values.append(self._let(value))


def _pids(e: Any) -> list[E]:
    return [p for p in parts(e) if isinstance(p, E) and p.op == "pid"]


def _live(body: tuple[Any, ...]) -> tuple[Any, ...]:
    """Without values that nobody uses: tracing drops them, and the loads in them."""
    while True:
        used = {p.args[0] for p in parts(body) if isinstance(p, E) and p.op == "name"}
        kept = _kept(body, used)
        if kept == body:
            return kept
        body = kept


def _kept(body: tuple[Any, ...], used: set[str]) -> tuple[Any, ...]:
    found: list[Any] = []
    for s in body:
        match s:
            case Let(of, _) if of not in used:
                continue
            case When(condition, then, otherwise):
                found.append(When(condition, _kept(then, used), _kept(otherwise, used)))
            case For() | Scoped():
                found.append(replace(s, body=_kept(s.body, used)))
            case _:
                found.append(s)
    return tuple(found)


def _moved(view: View) -> View:
    """The same shape at the beginning."""
    return View(view.ref, tuple(replace(s, start=num(0)) for s in view.slices))


HARDER = 1_000_000
"""From this seed on, kernels have rarer forms."""
SCHEMAS = 1_000_000_000
"""From this seed on, kernels have tables of a schema."""


def kernel(seed: int) -> Description:
    """The random kernel of a seed."""
    if seed >= SCHEMAS:
        from tests.bodies.truth.schemas import OverTables

        return OverTables(random.Random(seed), seed).made()
    if seed >= HARDER:
        from tests.bodies.truth.harder import Harder

        return Harder(random.Random(seed), seed).made()
    return Maker(random.Random(seed), seed).made()
