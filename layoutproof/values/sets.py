"""The maximum of a set of residues as a random function of the set: of its members, not of their order or number.

What a maximum was taken of is kept, so that a maximum of maxima is that of the union.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from layoutproof.values.fields import mixed
from layoutproof.values.refusals import Collision

Array = np.ndarray[Any, Any]

KEPT = 200_000
"""Of arrays of more maxima than that the sets are not kept: a maximum of those is unknown."""
NONE = 2**31 - 1
"""No member: every residue is below it."""
NOBODY = np.zeros(0, np.int64)
"""No members."""
_AT_ONCE = 2**17
"""Members that are sorted at once, which stay in the processor's own memory."""


class Sets:
    """The maxima that were taken at one level. p: its prime.  salt: draws the function."""

    def __init__(self, p: int, salt: int) -> None:
        self.p, self.salt = p, salt
        self._members: dict[int, Array] = {}
        self._drawn: dict[int, int] = {}
        self._unkept = False

    def maximum(self, residues: Array, leaves: Array, maxima: Array) -> tuple[Array, Array]:
        """Of each row the maximum of its members, and how many different ones there are.

        residues: [rows, columns].  leaves: which entries are numbers.  maxima: which of these are maxima themselves.
        """
        if residues.shape[1] == 2:
            # A running maximum is often kept once for each lane.
            # The two words of a pair do not fit 64 bits side by side, so the pair is mixed.
            pairs = residues * 4 + leaves + 2 * maxima
            distinct, where = _distinct(mixed(pairs[:, 0], 0) ^ mixed(pairs[:, 1], 1))
            first = np.zeros(distinct.size, np.int64)
            first[where[::-1]] = np.arange(len(residues))[::-1]
            if distinct.size < len(residues):
                found, many = self._maximum(residues[first], leaves[first], maxima[first])
                return found[where], many[where]
        return self._maximum(residues, leaves, maxima)

    def _maximum(self, residues: Array, leaves: Array, maxima: Array) -> tuple[Array, Array]:
        result, count = np.zeros(len(residues), np.int64), np.zeros(len(residues), np.int64)
        several = 0
        for which, keys in self._members_of(residues, leaves, maxima):
            many = np.empty(len(keys), np.int64)
            sums = np.empty(len(keys), np.uint64)
            for some in _rows(*keys.shape):
                part = keys[some]
                new, many[some] = _sorted(part)
                hashes = mixed(part, self.salt)
                if (many[some] != part.shape[1]).any():
                    hashes *= new & (part != NONE)
                sums[some] = hashes.sum(1)
            count[which] = many
            drawn = (mixed(sums, self.salt + 1) % np.uint64(self.p)).astype(np.int64)
            # no residue is as large as what stands where there is no member
            drawn[many <= 1] = np.where(many == 1, keys[:, 0], 0)[many <= 1]
            several += int((many > 1).sum())
            if several > KEPT:
                self._unkept = True
            else:
                for row in np.flatnonzero(many > 1):
                    sign = int(sums[row])
                    if sign not in self._drawn:
                        self._drawn[sign] = key = self._free(int(drawn[row]))
                        self._members[key] = keys[row] if many[row] == keys.shape[1] else _members(keys[row])
                    drawn[row] = self._drawn[sign]
            result[which] = drawn
        return result, count

    def _members_of(self, residues: Array, leaves: Array, maxima: Array) -> Iterator[tuple[Any, Array]]:
        """(rows, their members, side by side and in no order, `NONE` beyond them): rows of like many at once."""
        plain = residues.astype(np.int32)
        if not maxima.any():
            if not leaves.all():
                plain[~leaves] = NONE
            yield slice(None), plain
            return
        plain[~leaves | maxima] = NONE
        rows, columns = np.nonzero(leaves & maxima)
        sets = [self._members[int(k)] for k in residues[rows, columns]]
        sizes = np.array([s.size for s in sets])
        width = np.bincount(rows, sizes, len(residues)).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(residues)))])
        # of sizes within a factor of two: little is left empty
        like = np.frexp(width)[1]
        for size in np.unique(like):
            which = np.flatnonzero(like == size)
            wide = int(width[which].max())
            keys = np.full((which.size, residues.shape[1] + wide), NONE, np.int32)
            keys[:, wide:] = plain[which]
            for row, inside in zip(keys, which, strict=True):
                at = 0
                for members in sets[starts[inside] : starts[inside + 1]]:
                    row[at : at + members.size] = members
                    at += members.size
            yield which, keys

    def _free(self, key: int) -> int:
        """The key, or where another set has it by chance the next one that is drawn."""
        while key in self._members:
            if self._unkept:
                # one of those that are not kept may have had the number already
                raise Collision
            key = int(mixed(np.array([key]), self.salt + 3)[0] % np.uint64(self.p))
        return key

    def members(self, key: int) -> Array:
        """The operands of a maximum."""
        return self._members[key]

    def ranks(self, members: Array, preferred: Array = NOBODY) -> Array:
        """The order in which a maximum is one of its members, the first of them.

        preferred: members before others, sorted.
        """
        found = mixed(members, self.salt + 2) >> np.uint64(1)
        if preferred.size:
            found += np.where(_found(preferred, members), np.uint64(0), np.uint64(2**63))
        return found

    def drawn(self, residues: Array, preferred: Array = NOBODY) -> Array:
        """Of each maximum the member that it is. preferred: members that it is before others, sorted."""
        distinct, where = _distinct(residues)

        def of(members: Array) -> Any:
            return members[np.argmin(self.ranks(members, preferred))]

        return np.array([of(self._members[int(k)]) for k in distinct], np.int64)[where]

    def holds(
        self, maxima: Array, others: Array, asked: Array, inner: Array, literals: set[int]
    ) -> tuple[Array, Array]:  # fmt: skip
        """(Whether each maximum was taken of a set with the others of its row in it, whether a literal is beside them).

        maxima: residues, [rows].  others: residues, [rows, columns].  asked: which of these are asked about.
        inner: which of them are maxima, whose members then all have to be in the set.
        """
        distinct, where = _distinct(maxima)
        sets = [self._members[int(k)] for k in distinct]
        known = np.sort(np.fromiter(literals, np.int32, len(literals)))
        plain = np.where(asked & ~inner, others, NONE).astype(np.int32)
        held = np.zeros(others.shape, bool)
        sizes = np.array([s.size for s in sets])[where]
        like = np.frexp(sizes)[1]
        for size in np.unique(like):
            which = np.flatnonzero(like == size)
            wide = int(sizes[which].max())
            if wide > 4 * others.shape[1]:
                for row in which:
                    held[row] = _found(sets[where[row]], plain[row])
                continue
            for rows in _rows(which.size, wide + others.shape[1]):
                some = which[rows]
                keys = np.full((some.size, wide + others.shape[1]), NONE, np.int32)
                keys[:, wide:] = plain[some]
                for row, at in zip(keys, where[some], strict=True):
                    row[: sets[at].size] = sets[at]
                # nothing is added to a set by what is in it
                every = _sorted(keys)[1] == sizes[some]
                held[some[every]] = True
                for row in some[~every]:
                    held[row] = _found(sets[where[row]], plain[row])
        rows_of, columns_of = np.nonzero(asked & inner)
        if rows_of.size:
            pairs, back = _distinct((where[rows_of] << 32) | others[rows_of, columns_of])
            inside = [_found(sets[k >> 32], self._members[k & (2**32 - 1)]).all() for k in pairs.tolist()]
            held[rows_of, columns_of] = np.array(inside)[back]
        held &= asked
        some_literal = np.array([bool(_found(members, known).any()) for members in sets])[where]
        if not some_literal.any():
            return held, np.zeros(held.shape, bool)
        return held, some_literal[:, None] & ~_found(known, others)

    def knows(self, residues: Array) -> bool:
        """Whether the sets of all these maxima are kept."""
        return all(int(k) in self._members for k in _distinct(residues)[0])


def _rows(rows: int, columns: int) -> Iterator[slice]:
    """So many rows at once."""
    many = max(1, _AT_ONCE // max(columns, 1))
    return (slice(k, k + many) for k in range(0, rows, many))


def _sorted(rows: Array) -> tuple[Array, Array]:
    """Sorts rows; (which entries are not the one before, how many members each row has)."""
    rows.sort(1)
    new = np.ones(rows.shape, bool)
    np.not_equal(rows[:, 1:], rows[:, :-1], out=new[:, 1:])
    return new, np.count_nonzero(new, 1) - (rows[:, -1] == NONE)


def _members(row: Array) -> Array:
    """The members of a sorted row, each once."""
    found: Array = row[np.append(row[1:] != row[:-1], row[-1] != NONE)]
    return found


def _distinct(keys: Array) -> tuple[Array, Array]:
    """(the distinct keys, which of them each is), by sorting: NumPy's own goes through a table of hashes.

    A maximum stands once for each element of a row: runs of one key are sorted as one.
    """
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if keys.size else np.zeros(0, np.int64)
    runs = keys[starts]
    order = np.argsort(runs, kind="stable")
    row = runs[order]
    new = np.append(True, row[1:] != row[:-1]) if row.size else np.zeros(0, bool)
    where = np.empty(runs.size, np.int64)
    where[order] = np.cumsum(new) - 1
    return row[new], np.repeat(where, np.diff(np.append(starts, keys.size)))


def _found(table: Array, keys: Array) -> Array:
    """Which keys are in a sorted table."""
    if not table.size:
        return np.zeros(keys.shape, bool)
    found: Array = table[np.minimum(np.searchsorted(table, keys), table.size - 1)] == keys
    return found
