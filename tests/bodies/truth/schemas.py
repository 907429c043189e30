"""Random kernels over tables of a schema: sums of groups, pages, offsets, permutations, slices, lists of blocks, masks.

What is carried over programs is set up where a table says that a group begins, and stored where it ends. Each aspect is
right, or slips by chance: where a group begins or ends, what entry is read, what is assumed of the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.bodies.truth.description import (
    Description,
    E,
    For,
    Let,
    Ref,
    Slice,
    Start,
    Store,
    Table,
    View,
    Wait,
    When,
)
from tests.bodies.truth.generate import Maker, array, both, full, iota, num, pid, scalar, zeros
from tests.bodies.truth.harder import either, no

ROWS, COLUMNS = 4, 8
SHAPE = (ROWS, COLUMNS)


def entry(of: str, *at: E | int) -> E:
    """An entry of a table."""
    places = [num(a) if isinstance(a, int) else a for a in at]
    return E("load", (View(of, tuple(Slice(a, 1, 1, True) for a in places)), None))


def rows_of(ref: str, start: E, many: int = ROWS) -> View:
    """Some rows."""
    return View(ref, (Slice(start, many), Slice(num(0), COLUMNS)))


def loaded(view: View, shape: tuple[int, ...] = SHAPE) -> E:
    """What a part of memory holds."""
    return E("load", (view, None), shape, "f32")


class OverTables(Maker):
    """One kernel over tables of a schema."""

    def made(self) -> Description:
        """The whole of it."""
        rng = self.rng
        self.slips = rng.choice((0.0, 0.0, 0.06, 0.12, 0.2))
        self.assume: list[str] = []
        ways: tuple[Callable[[], None], ...] = (
            self._sums, self._sums, self._product, self._product, self._by_offsets, self._by_sizes, self._pages,
            self._copied_pages, self._permuted, self._sent, self._blocks, self._masked, self._sliced,
        )  # fmt: skip
        way = rng.choice(ways)
        way()
        return Description(
            self.seed,
            self.grid,
            self.parallel,
            tuple(self.tables),
            tuple(self.inputs),
            tuple(self.outputs),
            tuple(self.scratch),
            tuple(self.body),
            notes=(way.__name__.strip("_"), *self.notes),
            assume=tuple(self.assume),
        )

    # operands

    def _table(self, length: int, low: int, high: int, shape: tuple[int, ...] = ()) -> str:
        of = f"prefetch{len(self.tables)}"
        self.tables.append(Table(of, length, low, high, shape))
        return of

    def _window(self, role: str, blocks: int, index: E, rows: int = ROWS) -> str:
        refs = self.inputs if role == "in" else self.outputs
        of = f"{'x' if role == 'in' else 'o'}{len(refs)}"
        block = (("blocked", rows), ("blocked", COLUMNS))
        refs.append(Ref(of, role, (blocks * rows, COLUMNS), "f32", "vmem", block, (index, num(0))))
        return of

    def _whole_array(self, role: str, rows: int) -> str:
        """A window that is the array: its rows are read and written where the body says."""
        return self._window(role, 1, num(0), rows)

    def _in_memory(self, role: str, rows: int) -> str:
        refs = self.inputs if role == "in" else self.outputs
        of = f"{'x' if role == 'in' else 'o'}{len(refs)}"
        refs.append(Ref(of, role, (rows, COLUMNS), "f32", "hbm"))
        return of

    def _kept(self, memory: str = "vmem", shape: tuple[int, ...] = SHAPE, dtype: str = "f32") -> str:
        of = self.fresh("s")
        self.scratch.append(Ref(of, "scratch", shape, dtype, memory))
        return of

    def _off(self, what: str, number: int, by: int, scale: float = 1.0) -> int:
        """A number, or one that is off by some."""
        return number + by if self.slip(what, scale) else number

    # what is carried over programs

    def _begins(self, t: str, at: E) -> E:
        """Whether a group begins at a step."""
        if self.slip("a group begins at the first step alone"):
            return scalar("==", at, 0)
        before = scalar("-", at, 1)
        if not self.slip("the entry before the first one", 0.7):
            before = scalar("max", before, 0)
        changed = scalar("!=", entry(t, at), entry(t, before))
        return changed if self.slip("the first step begins no group") else either(scalar("==", at, 0), changed)

    def _ends(self, t: str, at: E, steps: int) -> E:
        """Whether a group ends at a step."""
        last = scalar("==", at, steps - 1)
        if self.slip("a group ends at the last step alone"):
            return last
        after = scalar("+", at, 1)
        if not self.slip("the entry after the last one", 0.7):
            after = scalar("min", after, num(steps - 1))
        changed = scalar("!=", entry(t, at), entry(t, after))
        return changed if self.slip("the last step ends no group") else either(last, changed)

    def _summed(self, begins: E, value: E, ends: E, out: View, count: E | None = None) -> None:
        """Adds to an accumulator that is zeroed where a group begins, and stored where it ends. count: what guards."""
        acc = View(self._kept())
        before = loaded(acc)
        if self.chance(0.3):
            at_first = E("select", (full(begins, SHAPE), zeros(SHAPE), before), SHAPE, "f32")
            self.body.append(Store(acc, array("+", at_first, value)))
        else:
            zeroed: list[Any] = [When(begins, (Store(acc, zeros(SHAPE)),))]
            added = Store(acc, array("+", before, value))
            guarded: Any = added if count is None else When(count, (added,))
            steps = [*zeroed, guarded]
            if self.slip("adds before it zeroes", 0.5):
                steps = steps[::-1]
            if count is not None and self.slip("zeroes only where something is added", 0.7):
                steps = [When(count, (*zeroed, added))]
            self.body += steps
        self.body.append(When(ends, (Store(out, before),)))

    # kernels

    def _sums(self) -> None:
        """Each block of rows is added to the block of its group: ids in order."""
        groups, steps = self.choose(2, 3, 3), self.choose(3, 4, 5)
        outer = self.choose(0, 0, 2)
        self.grid = (outer, steps) if outer else (steps,)
        at = pid(len(self.grid) - 1)
        below = self._off("more ids than groups", groups, 1, 0.7)
        length = self._off("a table that is too short", steps, -1, 0.5)
        t = self._table(length, 0, below - 1)
        self.assume.append(
            f"0 <= {t} < {below}" if self.slip("ids in any order") else f"{t} is sorted_ids(below={below})"
        )
        if not self.slip("groups may be empty"):
            rising = f"{t}[0] == 0; {t}[-1] == {below - 1}; {t}[i + 1] <= {t}[i] + 1"
            self.assume.append(self.choose(f"{t} is onto", rising) if length >= below else f"{t}[0] == 0")
        x = self._window("in", steps, at)
        o = self._window("out", groups, entry(t, at))
        if outer:
            # each of the outer programs has columns of its own
            ref = self.outputs[-1]
            wide = (ref.shape[0], COLUMNS * outer)
            self.outputs[-1] = Ref(ref.name, "out", wide, "f32", "vmem", ref.block, (ref.index[0], pid(0)))
        self._summed(self._begins(t, at), loaded(View(x)), self._ends(t, at, steps), View(o))

    def _product(self) -> None:
        """A grouped product: offsets of groups, and the group and the tile of each step."""
        groups, tiles = self.choose(2, 2, 3), self.choose(1, 2, 2)
        steps = tiles + groups - 1
        total = tiles * ROWS - self.choose(0, 0, 1)
        inner = self.choose(0, 0, 2)
        self.grid = (steps, inner) if inner else (steps,)
        offsets = self._table(groups + 1, 0, total)
        group = self._table(steps, 0, groups - 1)
        tile = self._table(steps, 0, tiles - 1)
        said = self._off("fewer rows are said", total, -1, 0.5)
        self.assume.append(f"{offsets} is cu_seqlens(total={said})")
        schema = (
            f"group_tiles(groups={groups}, offsets={offsets}, tiles={tile}, tile={ROWS}, total={said}, steps={steps})"
        )
        if self.slip("only ranges of groups and tiles"):
            self.assume.append(f"0 <= {group} < {groups}; 0 <= {tile} < {tiles}; {tile} is monotone")
        else:
            self.assume.append(f"{group} is {schema}")
        at = pid(0)
        x = self._window("in", tiles, entry(tile, at))
        w = self._window("in", groups, entry(group, at))
        index = entry(tile, at)
        block = (("blocked", ROWS), ("blocked", COLUMNS))
        o = "o0"
        self.outputs.append(Ref(o, "out", (total, COLUMNS), "f32", "vmem", block, (index, num(0))))
        value = array("*", loaded(View(x)), loaded(View(w)))
        of = entry(group, at)
        begin, end = (
            entry(offsets, of),
            entry(offsets, scalar("+", of, self._off("the end of the next group", 1, 1, 0.5))),
        )
        first = scalar("*", entry(tile, at), ROWS)
        if self.slip("the mask forgets the tile", 0.7):
            first = num(0)
        row = array("+", full(first, SHAPE), iota(SHAPE, 0))
        low, high = array("<=", full(begin, SHAPE), row, "bool"), array("<", row, full(end, SHAPE), "bool")
        if self.slip("a row of the group is left out"):
            high = array("<", row, full(scalar("-", end, 1), SHAPE), "bool")
        mine = high if self.slip("rows of groups before, too", 0.5) else array("and", low, high, "bool")
        out = View(o)
        if not inner:
            self.body.append(Store(out, E("select", (mine, value, loaded(out)), SHAPE, "f32")))
            return
        acc = View(self._kept())
        zero = scalar("==", pid(1), 0)
        if self.slip("zeroed where a group begins"):
            zero = self._begins(group, at)
        self.body.append(When(zero, (Store(acc, zeros(SHAPE)),)))
        self.body.append(Store(acc, array("+", loaded(acc), value)))
        last = scalar("==", pid(1), self._off("stored one step early", inner - 1, -1, 0.5))
        if self.slip("stored where a group ends"):
            last = self._ends(group, at, steps)
        self.body.append(When(last, (Store(out, E("select", (mine, loaded(acc), loaded(out)), SHAPE, "f32")),)))

    def _by_offsets(self) -> None:
        """Each program copies the rows of its sequence, one by one."""
        groups, total = self.choose(2, 3, 3), self.choose(3, 4, 6)
        self.grid = (self._off("no program of the last sequence", groups, -1, 0.7),)
        said = self._off("rows that are not said", total, self.choose(-1, 1), 0.7)
        offsets = self._table(groups + 1, 0, said)
        self.assume.append(f"{offsets} is cu_seqlens(total={said})")
        if self.slip("offsets in any order", 0.6):
            self.assume = [f"0 <= {offsets} <= {said}"]
        x, o = self._whole_array("in", total), self._whole_array("out", total)
        counter = self.fresh("r")
        row = E("name", (counter,))
        at = pid(0)
        begin = scalar("+", entry(offsets, at), self._off("begins one row late", 0, 1, 0.7))
        end = entry(offsets, scalar("+", at, self._off("ends where the next one ends", 1, 1, 0.5)))
        end = scalar("+", end, self._off("a row too many", 0, 1, 0.7))
        moved = Store(rows_of(o, row, 1), loaded(rows_of(x, row, 1), (1, COLUMNS)))
        self.body.append(For(counter, begin, end, (moved,), self.choose("fori", "while")))

    def _by_sizes(self) -> None:
        """A place that is carried over programs: the sum of the sizes before."""
        groups, total = self.choose(2, 3), self.choose(3, 4, 5)
        self.grid = (groups,)
        said = self._off("rows that are not said", total, 1, 0.7)
        sizes = self._table(groups, 0, said)
        self.assume.append(f"{sizes} is group_sizes(total={said})")
        if self.slip("sizes without a sum", 0.6):
            self.assume = [f"{sizes} is lengths(most={said})"]
        x, o = self._whole_array("in", total), self._whole_array("out", total)
        cell = View(self._kept("smem", (2,), "i32"), (Slice(num(0), 1, 1, True),))
        now = E("load", (cell, None))
        at = pid(0)
        if not self.slip("the place is never zeroed"):
            self.body.append(When(scalar("==", at, 0), (Store(cell, num(0)),)))
        if not self.slip("the output is never filled"):
            self.body.append(When(scalar("==", at, 0), (Store(View(o), zeros((total, COLUMNS))),)))
        begin = self.fresh("v")
        self.body.append(Let(begin, now))
        counter = self.fresh("r")
        row = scalar("+", E("name", (begin,)), E("name", (counter,)))
        many = scalar("+", entry(sizes, at), self._off("a row too many", 0, 1, 0.7))
        moved = Store(rows_of(o, row, 1), loaded(rows_of(x, row, 1), (1, COLUMNS)))
        self.body.append(For(counter, num(0), many, (moved,), self.choose("fori", "while")))
        self.body.append(Store(cell, scalar("+", E("name", (begin,)), entry(sizes, at))))

    def _paged(self) -> tuple[int, int, int, str, str]:
        """Sequences, pages of each, pages in all, the table of pages, and that of lengths."""
        batch, each, pages = 2, 2, self.choose(2, 3)
        most = self._off("longer than its pages", each * ROWS, ROWS, 0.5)
        below = self._off("more pages than there are", pages, 1, 0.7)
        table = self._table(batch * each, 0, below - 1)
        lengths = self._table(self._off("too few lengths", batch, -1, 0.4), 0, most)
        self.assume += [f"{table} is page_table(pages={below})", f"{lengths} is lengths(most={most})"]
        if self.chance(0.3):
            self.assume.append(f"1 <= {lengths}[b] <= {most}")
        return batch, each, pages, table, lengths

    def _pages(self) -> None:
        """Blocks of pages, summed up as far as a sequence is long."""
        batch, each, pages, table, lengths = self._paged()
        self.grid = (batch, each)
        self.parallel = self.choose(0, 1)
        place = scalar("+", scalar("*", pid(0), each), pid(1))
        place = scalar("+", place, self._off("the page of the next step", 0, 1, 0.6))
        x, o = self._window("in", pages, entry(table, place)), self._window("out", batch, pid(0))
        length = entry(lengths, pid(0))
        there = scalar("<", scalar("*", pid(1), ROWS), length)
        ends = scalar("==", pid(1), each - 1)
        if self.slip("stored with the last page that is there"):
            last = scalar("//", scalar("+", length, ROWS - 1), ROWS)
            ends = scalar("==", scalar("+", pid(1), 1), last)
        begins = scalar("==", pid(1), 0)
        if self.slip("zeroed by the first sequence alone"):
            begins = both(begins, scalar("==", pid(0), 0))
        self._summed(begins, loaded(View(x)), ends, View(o), there)

    def _copied_pages(self) -> None:
        """The same, with pages that the body copies."""
        batch, each, pages, table, lengths = self._paged()
        self.grid = (batch,)
        x, o = self._in_memory("in", pages * ROWS), self._window("out", batch, pid(0))
        buffer = self._kept()
        acc = View(o) if self.chance(0.5) else View(self._kept())
        semaphore = View(self._kept("dma", (), "i32"))
        counter = self.fresh("r")
        n = E("name", (counter,))
        length = entry(lengths, pid(0))
        many = scalar("//", scalar("+", length, ROWS - 1), ROWS)
        many = many if self.slip("as many pages as there are rows", 0.5) else scalar("min", many, num(each))
        page = entry(table, scalar("+", scalar("*", pid(0), each), n))
        source = rows_of(x, scalar("*", page, ROWS))
        if not self.slip("never zeroed"):
            self.body.append(Store(acc, zeros(SHAPE)))
        add = Store(acc, array("+", loaded(acc), loaded(View(buffer))))
        copy = (source, View(buffer), semaphore)
        steps: list[Any] = [Start(*copy), Wait(*copy), add]
        if self.slip("reads before the wait", 0.6):
            steps = [steps[0], add, steps[1]]
        if self.slip("waits for full pages alone", 0.6):
            steps[steps.index(Wait(*copy))] = When(
                scalar("<=", scalar("*", scalar("+", n, 1), ROWS), length), (Wait(*copy),)
            )
        self.body.append(For(counter, num(0), many, tuple(steps), self.choose("fori", "while")))
        if acc.ref != o:
            self.body.append(Store(View(o), loaded(acc)))

    def _order(self, many: int) -> str:
        """A table that is a permutation, or something near one."""
        below = self._off("more places than entries", many, 1, 0.6)
        t = self._table(many, 0, below - 1)
        said = f"0 <= {t} < {below}" if self.slip("places that may be equal") else f"{t} is permutation(of={below})"
        self.assume.append(said)
        return t

    def _permuted(self) -> None:
        """Blocks of the output in another order."""
        many = self.choose(2, 3, 4)
        self.grid = (self._off("a program too few", many, -1, 0.6),)
        self.parallel = self.choose(0, 1)
        t = self._order(many)
        x, o = self._window("in", many, pid(0)), self._window("out", many, entry(t, pid(0)))
        stored = Store(View(o), array("+", loaded(View(x)), zeros(SHAPE, 1.0)))
        self.body.append(When(scalar("!=", entry(t, pid(0)), 0), (stored,)) if self.slip("not of block 0") else stored)

    def _sent(self) -> None:
        """Rows of the output by copies, each to a place of its own."""
        many = self.choose(2, 3, 4)
        self.grid = (self._off("a program too few", many, -1, 0.6),)
        self.parallel = self.choose(0, 1, 1)
        t = self._order(many)
        x, o = self._window("in", many, pid(0)), self._in_memory("out", many * ROWS)
        buffer, semaphore = self._kept(), View(self._kept("dma", (), "i32"))
        place = entry(t, scalar("+", pid(0), self._off("the place of the next one", 0, 1, 0.5)))
        if self.slip("two at one place", 0.5):
            place = scalar("//", place, 2)
        copy = (View(buffer), rows_of(o, scalar("*", place, ROWS)), semaphore)
        self.body += [Store(View(buffer), loaded(View(x))), Start(*copy)]
        if not self.slip("no wait", 0.5):
            self.body.append(Wait(*copy))

    def _sliced(self) -> None:
        """Two slices of the output by copies that are in flight together, where tables say: no slice meets another."""
        long, in_rows = 2, self.chance(0.5)
        programs = 1 if in_rows else self.choose(1, 1, 2)
        many = 2 * programs
        rows = long * many + self.choose(0, 1)
        self.grid = (programs,)
        said = self._off("more rows than there are", rows, 1, 0.6)
        if in_rows:
            t = self._table(2 * many, 0, said, (2, many))
            first, lengths = 1 if self.chance(0.5) else 0, f"{t}[%d, i]"
            schema, lengths = f"slice_rows(starts={first}, lengths={1 - first}, of={said})", lengths % (1 - first)
        else:
            t, u = self._table(many, 0, said), self._table(many, 0, said)
            schema, lengths = f"slices(lengths={u}, of={said})", f"{u}[i]"
        self.assume.append(f"{t} is {schema}" if self.slip("slices may meet") else f"{t} is disjoint_{schema}")
        if not self.slip("slices may be shorter than what is copied"):
            self.assume.append(f"{long} <= {lengths}")
        o, buffer = self._in_memory("out", rows), self._kept(shape=(long, COLUMNS))
        self.body.append(Store(View(buffer), zeros((long, COLUMNS))))
        semaphore = View(self._kept("dma", (), "i32"))
        copies = []
        for k in range(2):
            place = scalar("+", scalar("*", pid(0), 2), k)
            start = entry(t, num(first), place) if in_rows else entry(t, place)
            copies.append((View(buffer), rows_of(o, start, long), semaphore))
        one_by_one = self.chance(0.3)
        for copy in copies:
            self.body += [Start(*copy), *([Wait(*copy)] if one_by_one else [])]
        waits = [] if one_by_one else [Wait(*copy) for copy in copies]
        self.body += waits[1:] if self.slip("one wait for both", 0.4) else waits

    def _blocks(self) -> None:
        """Rows of blocks that are not empty, summed up by row."""
        rows, columns, steps = 2, self.choose(2, 3), self.choose(3, 4)
        self.grid = (steps,)
        below = self._off("more rows than there are", rows, 1, 0.6)
        columns_below = self._off("more columns than there are", columns, 1, 0.6)
        t, of = self._table(steps, 0, below - 1), self._table(steps, 0, columns_below - 1)
        schema = f"block_list(below={below}, columns={of}, columns_below={columns_below}, steps={steps})"
        self.assume.append(f"{t} is {schema}")
        if not self.slip("rows may be empty"):
            self.assume.append(f"{t} is onto")
        at = pid(0)
        x, y = self._window("in", steps, at), self._window("in", columns, entry(of, at))
        o = self._window("out", rows, entry(t, at))
        value = array("*", loaded(View(x)), loaded(View(y)))
        # of equal rows columns rise: a step whose column does not is of another row
        begins, ends = self._begins(t, at), self._ends(t, at, steps)
        if self.slip("a row begins where columns do not rise"):
            before = scalar("max", scalar("-", at, 1), 0)
            begins = either(scalar("==", at, 0), no(scalar("<", entry(of, before), entry(of, at))))
        self._summed(begins, value, ends, View(o))

    def _masked(self) -> None:
        """Attention by a mask of blocks: what is nothing is left out."""
        queries, steps, blocks = 2, 2, self.choose(2, 3)
        self.grid = (1, queries, steps)
        shape = (1, queries, steps)
        below = self._off("more blocks than there are", blocks, 1, 0.6)
        t, kinds = self._table(4, 0, below - 1, shape), self._table(4, 0, 2, shape)
        masks = self._table(4, 0, 1, shape)
        turned = self.chance(0.4)
        schema = "splash_mask_dkv" if turned else "splash_mask"
        self.assume.append(f"{t} is {schema}(blocks={below}, kinds={kinds}, masks={masks}, partial=2)")
        # of the gradients each column of keys goes through the rows of queries
        ids = (pid(0), pid(2), pid(1)) if turned else (pid(0), pid(1), pid(2))
        x, m = self._window("in", blocks, entry(t, *ids)), self._window("in", 2, entry(masks, *ids))
        o = self._window("out", queries, pid(1))
        kind = entry(kinds, *ids)
        partly = full(scalar("==", kind, 1), SHAPE)
        value = E("select", (partly, array("*", loaded(View(x)), loaded(View(m))), loaded(View(x))), SHAPE, "f32")
        there = scalar("<", num(0), kind)
        begins, ends = scalar("==", pid(2), 0), scalar("==", pid(2), steps - 1)
        if self.slip("stored where something is"):
            ends = both(ends, there)
        if self.slip("zeroed by the first queries alone"):
            begins = both(begins, scalar("==", pid(1), 0))
        self._summed(begins, value, ends, View(o), there)
