"""Random kernels with forms that are rarer: carried places, copies of a size that is computed, nested loops, tables
that the body writes, conditions that are computed, masks that are numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.bodies.truth.description import E, For, Ref, Scoped, Slice, Start, Store, View, Wait, When
from tests.bodies.truth.generate import (
    Maker,
    array,
    fitted,
    full,
    iota,
    num,
    pid,
    scalar,
    zeros,
)


def either(a: E, b: E) -> E:
    """One of two conditions."""
    return E("or", (a, b), (), "bool")


def no(a: E) -> E:
    """Not that condition."""
    return E("not", (a,), a.shape, "bool")


class Harder(Maker):
    """The same, with more."""

    def _condition(self) -> E:
        """A condition of the program that is computed in some way."""
        rng = self.rng
        k = rng.randrange(len(self.grid))
        extent = self.grid[k]
        ways: list[Callable[[], E]] = [
            lambda: scalar("==", scalar("%", pid(k), 2), rng.choice((0, 1))),
            lambda: either(scalar("==", pid(k), 0), scalar("==", pid(k), extent - 1)),
            lambda: no(scalar("==", pid(k), rng.randrange(extent))),
            lambda: scalar("<", scalar("-", scalar("*", pid(k), 2), extent), rng.choice((-1, 0, 1))),
            lambda: scalar("==", scalar("//", scalar("-", pid(k), 1), 2), rng.choice((-1, 0))),
            lambda: scalar("<=", self._linear(), rng.randrange(extent + 1)),
        ]
        if self.tables:
            table = rng.choice(self.tables)
            entry = self._entry(table, num(rng.randrange(table.length)))
            ways += [
                lambda: scalar("==", entry, rng.randint(table.low, table.high)),
                lambda: scalar("<", pid(k), entry),
                lambda: scalar("!=", scalar("%", scalar("+", entry, pid(k)), 2), 0),
            ]
        return rng.choice(ways)()

    def _operated(self, v: E) -> E:
        if not self.chance(0.35):
            return super()._operated(v)
        rng, shape = self.rng, v.shape
        axis = rng.randrange(len(shape))
        way = rng.choice(
            ("mask as numbers", "compare", "scalar choice", "shift", "blocks", "carried row", "window max")
        )
        if way == "mask as numbers":
            # 0 times what is undefined is undefined
            at = array("<", iota(shape, axis), full(num(rng.randint(1, shape[axis])), shape), "bool")
            return array("*", v, E("astype", (at,), shape, "f32"))
        if way == "compare":
            one = array("<=", v, zeros(shape, 0.0), "bool")
            here = array("<", iota(shape, axis), full(num(rng.randint(0, shape[axis])), shape), "bool")
            kept = array(self.choose("and", "or"), here, one, "bool")
            self.notes.append("data")
            return E("astype", (kept,), shape, "f32")
        if way == "scalar choice":
            return E("select", (full(self._condition(), shape), v, zeros(shape, 1.0)), shape, "f32")
        if way == "shift" and shape[axis] > 1:
            # the neighbour, and 0 at the end
            cut = tuple(n - 1 if d == axis else n for d, n in enumerate(shape))
            edge = tuple(1 if d == axis else n for d, n in enumerate(shape))
            starts = tuple(1 if d == axis else 0 for d in range(len(shape)))
            moved = E("concat", ((E("slice", (v, starts), cut, "f32"), zeros(edge)), axis), shape, "f32")
            return array("-", v, moved)
        if way == "blocks" and len(shape) == 2 and shape[1] % 2 == 0:
            half = (shape[0], shape[1] // 2)
            ends = [E("slice", (v, (0, s)), half, "f32") for s in (0, half[1])]
            best = array(self.choose("max", "+"), *ends)
            return E("concat", ((best, ends[rng.randrange(2)]), 1), shape, "f32")
        if way == "carried row" and len(shape) == 2:
            counter, carried = self.fresh("r"), self.fresh("c")
            before = E("name", (carried,), shape, "f32")
            at = array("==", iota(shape, 0), full(E("name", (counter,)), shape), "bool")
            step = E("select", (at, array("+", before, v), before), shape, "f32")
            many = num(rng.randint(0, shape[0]))
            return E("loop", (counter, many, carried, zeros(shape), step, self.choose("fori", "while")), shape, "f32")
        if way == "window max":
            rolled = E("roll", (v, num(1), axis), shape, "f32")
            edge = array("==", iota(shape, axis), full(num(0), shape), "bool")
            safe = rolled if self.slip("the roll goes round") else E("select", (edge, v, rolled), shape, "f32")
            return array("max", v, safe)
        return v

    def _extra(self) -> None:
        if self.chance(0.4):
            super()._extra()
            return
        ways = (self._ring, self._written_table, self._part_copy, self._steps, self._nested, self._twice)
        self.rng.choice(ways)()

    def _keep(self, shape: tuple[int, ...]) -> str:
        of = self.fresh("s")
        self.scratch.append(Ref(of, "scratch", shape))
        return of

    def _ring(self) -> None:
        """A ring of rows in scratch: each program writes one and reads another."""
        rng, (rows, columns) = self.rng, self.unit
        of = self._keep((rows, columns))
        at = self._linear()
        size = rng.choice((2, 3, rows))
        size = min(size, rows)
        first = self._at(range(self.parallel, len(self.grid)), False)
        if not self.slip("the ring is not filled"):
            self._under(first, Store(View(of), zeros((rows, columns))))
        row = (Slice(scalar("%", at, size), 1), Slice(num(0), columns))
        self.body.append(Store(View(of, row), fitted(self._some(self.unit), (1, columns), rng)))
        other = scalar("%", scalar("+", at, rng.choice((0, 1, 2))), size)
        got = self._load(of, (Slice(other, 1), Slice(num(0), columns)), (1, columns), "f32")
        if self.chance(0.3):
            got = self._load(of, (Slice(num(0), size), Slice(num(0), columns)), (size, columns), "f32")
        self.values.append(self._let(fitted(self._let(got).value, self.unit, rng)))

    def _written_table(self) -> None:
        """A table in scratch: filled by a loop, read as a place."""
        rng, (rows, columns) = self.rng, self.unit
        of = self.fresh("n")
        many = rng.choice((2, 3))
        self.scratch.append(Ref(of, "scratch", (many,), "i32", "smem"))
        counter = self.fresh("r")
        turn = E("name", (counter,))
        upto = many - (1 if self.slip("the table lacks its last entry") else 0)
        entry = self.choose(
            turn, scalar("%", scalar("+", turn, pid(0)), rows), scalar("min", scalar("*", turn, 2), rows - 1)
        )
        cell = View(of, (Slice(turn, 1, 1, True),))
        self.body.append(
            For(counter, num(0), num(upto), (Store(cell, entry),), self.choose("fori", "while", "unrolled"))
        )
        source = self._keep((rows, columns))
        self.body.append(Store(View(source), self._some(self.unit)))
        number = E("load", (View(of, (Slice(num(rng.randrange(many)), 1, 1, True),)), None))
        if self.slip("the entry is taken twice", 0.5):
            number = scalar("+", number, number)
        got = self._load(source, (Slice(number, 1), Slice(num(0), columns)), (1, columns), "f32")
        self.values.append(self._let(fitted(self._let(got).value, self.unit, rng)))

    def _part_copy(self) -> None:
        """Copies of rows under conditions, waited for under the same ones, or others."""
        rows, columns = self.unit
        source = self._keep((rows, columns))
        target = self._keep((rows, columns))
        sem = self.fresh("m")
        self.scratch.append(Ref(sem, "scratch", (), "i32", "dma"))
        self.body.append(Store(View(source), self._some(self.unit)))
        self.body.append(Store(View(target), zeros(self.unit)))
        test = self._condition()
        half = max(rows // 2, 1)
        part = (Slice(num(0), half), Slice(num(0), columns))
        later = (Slice(num(half), rows - half), Slice(num(0), columns))
        copy = (View(source, part), View(target, part), View(sem))
        self.body.append(When(test, (Start(*copy),)))
        if self.chance(0.5):
            # what the copy does not touch
            at = later if not self.slip("it is overwritten in flight") else part
            size = at[0].size
            if size:
                self.body.append(Store(View(target, at), zeros((size, columns), 2.0)))
        if self.chance(0.4) and not self.slip("it is read in flight"):
            self.values.append(self._let(self._load(source, (), self.unit, "f32")))
        same = test if not self.slip("another condition") else self._condition()
        if not self.slip("no wait", 0.5):
            self.body.append(When(same, (Wait(*copy),)))
        self.values.append(self._let(self._load(target, (), self.unit, "f32")))

    def _steps(self) -> None:
        """A place that a loop moves by steps, up or down, read row by row."""
        rng, (rows, columns) = self.rng, self.unit
        source = self._keep((rows, columns))
        self.body.append(Store(View(source), self._some(self.unit)))
        counter, carried = self.fresh("r"), self.fresh("c")
        turn = E("name", (counter,))
        step = self.choose(1, 2)
        many = -(-rows // step)
        many += 1 if self.slip("a step too many") else 0
        place = scalar("*", turn, step)
        if self.chance(0.4):
            place = scalar("-", num(rows - 1), place)
        if self.chance(0.3):
            place = scalar("%", scalar("+", place, self._linear()), rows)
        row = self._load(source, (Slice(place, 1), Slice(num(0), columns)), (1, columns), "f32")
        before = E("name", (carried,), (1, columns), "f32")
        total = array(self.choose("+", "max"), before, row)
        if self.chance(0.4):
            total = E("cond", (scalar("<", turn, many - 1), total, before), (1, columns), "f32")
        found = E(
            "loop",
            (counter, num(many), carried, zeros((1, columns)), total, self.choose("fori", "while")),
            (1, columns),
            "f32",
        )
        self.values.append(self._let(fitted(self._let(found).value, self.unit, rng)))

    def _nested(self) -> None:
        """Stores by two loops, one in the other, under a condition on both."""
        rows, columns = self.unit
        of = self._keep((rows, columns))
        out, inner = self.fresh("r"), self.fresh("r")
        a, b = E("name", (out,)), E("name", (inner,))
        half = max(rows // 2, 1)
        place = scalar("+", scalar("*", a, half), b)
        if self.slip("the loops are exchanged"):
            place = scalar("+", scalar("*", b, half), a)
        row = View(of, (Slice(place, 1), Slice(num(0), columns)))
        value = full(E("astype", (place,), (), "f32"), (1, columns))
        store: Any = Store(row, value)
        if self.chance(0.4):
            test = self.choose(scalar("<=", b, a), scalar("==", scalar("%", place, 2), 0), scalar("<", a, 1))
            other = () if self.slip("one side stores nothing") else (Store(row, zeros((1, columns))),)
            store = When(test, (store,), other)
        kind = self.choose("fori", "while", "unrolled")
        loop = For(out, num(0), num(rows // half), (For(inner, num(0), num(half), (store,), "fori"),), kind)
        self.body.append(loop)
        self.values.append(self._let(self._load(of, (), self.unit, "f32")))

    def _twice(self) -> None:
        """Memory for a while, in a loop: written in one iteration is not written in the next."""
        rows, columns = self.unit
        of, kept, counter = self.fresh("f"), self._keep((rows, columns)), self.fresh("r")
        turn = E("name", (counter,))
        self.body.append(Store(View(kept), zeros(self.unit)))
        write: Any = Store(View(of), self._some(self.unit))
        if self.slip("written in the first iteration only"):
            write = When(scalar("==", turn, 0), (write,))
        read = self._load(of, (), self.unit, "f32")
        before = self._load(kept, (), self.unit, "f32")
        add = Store(View(kept), array("+", before, read))
        scoped = Scoped((Ref(of, "fresh", self.unit),), (write, add))
        if self.chance(0.4):
            scoped = Scoped((Ref(of, "fresh", self.unit),), (For(counter, num(0), num(2), (write, add)),))
            self.body.append(scoped)
        else:
            self.body.append(For(counter, num(0), num(2), (scoped,)))
        self.values.append(self._let(self._load(kept, (), self.unit, "f32")))

    def _fill(self, ref: Ref) -> None:
        if not self.chance(0.4):
            super()._fill(ref)
            return
        shape = ref.seen
        whole = View(ref.name)
        value = self._some(shape)

        def cast(v: E) -> E:
            return v if ref.dtype == "f32" else E("astype", (v,), v.shape, ref.dtype)

        inner = self._inner(ref)
        way = self.rng.choice(("cases", "cover", "steps", "shared", "masked sum"))
        if way == "cases":
            # two conditions that leave nothing out, or something
            test = self._condition()
            self.body.append(When(test, (Store(whole, cast(value)),)))
            rest = no(test) if not self.slip("the cases leave something out") else no(self._condition())
            self.body.append(When(rest, (Store(whole, cast(self._some(shape))),)))
        elif way == "cover" and shape[0] > 1:
            # parts that overlap
            rows, columns = shape[0], tuple(Slice(num(0), n) for n in shape[1:])
            size = self.rng.randint(rows // 2, rows)
            k = self.rng.randrange(len(self.grid))
            start = scalar("min", scalar("*", pid(k), size), rows - size)
            for at in (num(0), num(rows - size), start):
                if self.slip("a part is left out"):
                    continue
                part = fitted(value, (size, *shape[1:]), self.rng)
                self.body.append(Store(View(ref.name, (Slice(at, size), *columns)), cast(part)))
        elif way == "steps":
            rows, columns = shape[0], tuple(Slice(num(0), n) for n in shape[1:])
            counter = self.fresh("r")
            turn = E("name", (counter,))
            place = scalar("-", num(rows - 1), turn)
            if self.chance(0.5):
                place = scalar("%", scalar("+", turn, self._linear()), rows)
            row = full(E("astype", (turn,), (), "f32"), (1, *shape[1:]))
            store: Any = Store(View(ref.name, (Slice(place, 1), *columns)), cast(row))
            if self.slip("a row is left out"):
                store = When(no(scalar("==", turn, self.rng.randrange(rows))), (store,))
            self.body.append(For(counter, num(0), num(rows), (store,), self.choose("fori", "while")))
        elif way == "shared" and inner:
            # each step of a visit stores a part
            k = inner[-1]
            steps, rows = self.grid[k], shape[0]
            size = -(-rows // steps)
            columns = tuple(Slice(num(0), n) for n in shape[1:])
            start = scalar("min", scalar("*", pid(k), size), rows - size)
            if self.slip("the steps store one part"):
                start = num(0)
            part = fitted(value, (size, *shape[1:]), self.rng)
            self.body.append(Store(View(ref.name, (Slice(start, size), *columns)), cast(part)))
        elif way == "masked sum" and len(shape) == 2:
            # what is masked twice, in two ways
            at = iota(shape, 1)
            cut = self.rng.randint(0, shape[1])
            low = array("<", at, full(num(cut), shape), "bool")
            high = array("<=", full(num(cut + (1 if self.slip("the masks leave one out") else 0)), shape), at, "bool")
            self.body.append(Store(whole, cast(value), low))
            self.body.append(Store(whole, cast(self._some(shape)), high))
        else:
            self.body.append(Store(whole, cast(value)))
