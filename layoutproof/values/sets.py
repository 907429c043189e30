"""The maximum of a set of residues as a random function of the set: of its members, not of their order or number.

What a maximum was taken of is kept, so that a maximum of maxima is that of the union.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from layoutproof.values.fields import mixed
from layoutproof.values.refusals import Collision

Array = np.ndarray[Any, Any]

KEPT = 200_000
"""Of arrays of more maxima than that the sets are not kept: a maximum of those is unknown."""


class Sets:
    """The maxima that were taken at one level. p: its prime.  salt: draws the function."""

    def __init__(self, p: int, salt: int) -> None:
        self.p, self.salt = p, salt
        self._members: dict[int, tuple[int, Array]] = {}

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
        rows, columns = np.nonzero(leaves & ~maxima)
        keys = residues[rows, columns]
        inner_rows, inner_columns = np.nonzero(leaves & maxima)
        if inner_rows.size:
            sets = [self._members[int(k)][1] for k in residues[inner_rows, inner_columns]]
            rows = np.concatenate([rows, np.repeat(inner_rows, [s.size for s in sets])])
            keys = np.concatenate([keys, *sets])
        both = np.sort((rows.astype(np.int64) << 32) | keys)
        both = both[np.append(True, both[1:] != both[:-1])] if both.size else both
        rows, keys = both >> 32, both & (2**32 - 1)
        count = np.bincount(rows, minlength=len(residues))
        result = np.zeros(len(residues), np.int64)
        filled = np.flatnonzero(count)
        if not filled.size:
            return result, count
        starts = np.concatenate([[0], np.cumsum(count[filled])[:-1]])
        sums = np.add.reduceat(mixed(keys, self.salt), starts)
        several = count[filled] > 1
        drawn = (mixed(sums, self.salt + 1) % np.uint64(self.p)).astype(np.int64)
        result[filled] = np.where(several, drawn, keys[starts])
        if several.sum() <= KEPT:
            ends = starts + count[filled]
            for row in np.flatnonzero(several):
                key, sign = int(drawn[row]), int(sums[row])
                known = self._members.setdefault(key, (sign, keys[starts[row] : ends[row]]))
                if known[0] != sign:
                    raise Collision
        return result, count

    def drawn(self, residues: Array) -> Array:
        """Of each maximum the member that it is."""
        distinct, where = _distinct(residues)
        members = (self._members[int(k)][1] for k in distinct)
        return np.array([m[np.argmin(mixed(m, self.salt + 2))] for m in members], np.int64)[where]

    def holds(self, maxima: Array, others: Array, inner: Array, literals: set[int]) -> tuple[Array, Array]:
        """(Whether each maximum was taken of a set with the other in it, whether a literal is in it beside that).

        maxima, others: residues, [n].  inner: which of the others are maxima, whose members then all have to be in it.
        """
        distinct, where = np.unique(maxima, return_inverse=True)
        members = [self._members[int(k)][1] for k in distinct]
        owner = np.repeat(np.arange(len(members)), [m.size for m in members])
        held = np.isin((where << 32) | others, (owner << 32) | np.concatenate(members))
        if inner.any():
            pairs, back = np.unique((where[inner] << 32) | others[inner], return_inverse=True)
            within = [bool(np.isin(self._members[int(p & (2**32 - 1))][1], members[int(p >> 32)]).all()) for p in pairs]
            held[inner] = np.array(within)[back]
        known = np.fromiter(literals, np.int64, len(literals))
        some = np.array([bool(np.isin(m, known).any()) for m in members])
        return held, some[where] & ~np.isin(others, known)

    def knows(self, residues: Array) -> bool:
        """Whether the sets of all these maxima are kept."""
        return all(int(k) in self._members for k in residues)


def _distinct(keys: Array) -> tuple[Array, Array]:
    """(the distinct keys, which of them each is), by sorting: NumPy's own goes through a table of hashes."""
    order = np.argsort(keys, kind="stable")
    row = keys[order]
    new = np.append(True, row[1:] != row[:-1]) if row.size else np.zeros(0, bool)
    where = np.empty(keys.size, np.int64)
    where[order] = np.cumsum(new) - 1
    return row[new], where
