"""What all tables that are as assumed have in common: an entry that assumptions fix, a violation that each of them has.

A last entry may be said to be the greatest, and a first one 0. What such entries violate is wrong whatever the rest of
the table holds. It is shown of one table that is as assumed, entry by entry, and then proved of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import TYPE_CHECKING

from layoutproof.bodies.claims import asked
from layoutproof.bodies.effects import Body
from layoutproof.bodies.terms import names_in, renaming, replaced
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.folding import FALSE, TRUE, all_of, any_of, fold, folded, negation
from layoutproof.core.term import ZERO, Term, reads
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.relations import tables_of
from layoutproof.kernel.windows import block_count
from layoutproof.pallas.witnesses import value_in, witness
from layoutproof.solvers.decide import proves

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_PROGRAMS = 4096
"""Programs in which a violation is looked for with one table, the first ones and the last ones first."""
MOST_PROVED = 8
"""Programs of which it is asked whether all tables have it."""
EFFORT = 1 / 10
"""Of the engines' step budgets, for each of these questions."""


@lru_cache(maxsize=256)
def is_fixed(kernel: Kernel, name: str, at: tuple[int, ...], value: int) -> bool:
    """Whether each table that is as assumed holds a number at some place.

    >>> from layoutproof.kernel.kernel import Table
    >>> from layoutproof.kernel.table_assumptions import with_assumptions
    >>> kernel = Kernel("k", (4,), ("i",), (), tables=(Table("t", (4,)),))
    >>> kernel = with_assumptions(kernel, ["0 <= t < 9", "t[0] == 3"])
    >>> is_fixed(kernel, "t", (0,), 3), is_fixed(kernel, "t", (1,), 3)
    (True, False)
    """
    entry = Term("read", Term("name", name), *(Term("int", k) for k in at))
    return _never(kernel, fold("!=", entry, Term("int", value)))


def in_every_table(kernel: Kernel, violation: Sequence[Term]) -> dict[str, int] | None:
    """The ids of a program in which each table that is as assumed has a violation; None where none was found.

    violation: conditions over the ids of a program and entries of tables.
    """
    whole = all_of(violation)
    tables = [read.args[0].args[0] for read in reads((whole,))]
    known = {table.name for table in kernel.tables}
    if set(names_in(whole)) - set(kernel.grid_names) or not tables or not known.issuperset(tables):
        return None
    held = witness(kernel, related(kernel, tables), {})
    if held is None:
        return None
    asked_of = 0
    for program in _programs(kernel):
        ids = {name: Term("int", k) for name, k in zip(kernel.grid_names, program, strict=True)}
        here = replaced(replaced(whole, renaming(ids)), folded)
        if here is FALSE or not (here is TRUE or bool(value_in(here, {}, held))):
            continue
        asked_of += 1
        if here is TRUE or _never(kernel, negation(here)):
            return dict(zip(kernel.grid_names, program, strict=True))
        if asked_of == MOST_PROVED:
            break
    return None


def blocks_outside(operand: Operand) -> dict[int, tuple[Term, int]] | None:
    """Of each dimension the condition that a program's block is outside of the array, and the last block inside.

    None where that is not so simple.

    >>> from layoutproof.kernel.kernel import Block
    >>> i = Term("name", "i")
    >>> blocks_outside(Operand("o", "out", (64,), "f32", (Block("blocked", 8),), (i,)))
    {0: (Term(i < 0 or 8 <= i), 7)}
    """
    found = {}
    for k, (term, block, extent) in enumerate(zip(operand.index, operand.block, operand.dims, strict=True)):
        count = block_count(extent, block) if type(extent) is int else None
        if block.kind not in ("blocked", "squeezed") or type(count) is not int:
            return None
        found[k] = any_of([fold("<", term, ZERO), fold("<=", Term("int", count), term)]), count - 1
    return found


def in_no_program_alike(
    kernel: Kernel, body: Body, alike: Sequence[Term], happens: Sequence[Term], unless: Term
) -> dict[str, int] | None:
    """The ids of a program such that in every table none of those like it does something; None where none was found.

    alike: terms over ids and entries that are equal in programs that are alike, the blocks of a grid's array.  happens:
    the condition of each thing that one may do, over ids and entries.  unless: the condition of programs that do not
    count, which no table meets of the one that is found.
    """
    import numpy as np

    terms = [*alike, *happens, unless]
    tables = [read.args[0].args[0] for read in reads(terms)]
    known = {table.name for table in kernel.tables}
    strange = {name for term in terms for name in names_in(term)} - set(kernel.grid_names)
    programs = list(_programs(kernel))
    if strange or not tables or not known.issuperset(tables) or not programs or len(programs) == MOST_PROGRAMS:
        return None
    held = witness(kernel, related(kernel, tables), {})
    if held is None:
        return None
    columns = np.array(programs).reshape(len(programs), -1).T
    ids = dict(zip(kernel.grid_names, columns, strict=True))
    blocks = [tuple(row) for row in np.stack([_over(term, ids, held) for term in alike], axis=1).tolist()]
    done = np.any([_over(term, ids, held) for term in happens], axis=0) if happens else np.zeros(len(programs), bool)
    stored = {block for block, one in zip(blocks, done.tolist(), strict=True) if one}
    left = [program for program, block in zip(programs, blocks, strict=True) if block not in stored]
    for program in left[:MOST_PROVED]:
        here = renaming({name: Term("int", k) for name, k in zip(kernel.grid_names, program, strict=True)})
        same = [fold("==", term, replaced(replaced(term, here), folded)) for term in alike]
        if not _never(kernel, replaced(replaced(unless, here), folded)):
            continue
        if all(_never(kernel, all_of([one, *same]), body) for one in happens):
            return dict(zip(kernel.grid_names, program, strict=True))
    return None


def _over(term: Term, ids: Mapping[str, NDArray[np.int64]], held: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """The values of a term in some programs."""
    import numpy as np

    some = next(iter(ids.values()))
    return np.broadcast_to(value_in(term, ids, held), some.shape).astype(np.int64)


def related(kernel: Kernel, names: Sequence[str]) -> list[str]:
    """Some tables and all that relations tie to them."""
    found = list(dict.fromkeys(names))
    for name in found:
        for relation in kernel.relations:
            if name in tables_of(relation):
                found += [other for other in tables_of(relation) if other not in found]
    return found


def _programs(kernel: Kernel) -> Iterator[tuple[int, ...]]:
    """Programs, those at the ends of the grid first; none where sizes are names."""
    extents = [int(extent) for extent in kernel.grid if type(extent) is int]
    if len(extents) < len(kernel.grid):
        return
    ends = product(*(dict.fromkeys((0, extent - 1)) for extent in extents))
    every = product(*map(range, extents))
    yield from islice(dict.fromkeys((*ends, *islice(every, MOST_PROGRAMS))), MOST_PROGRAMS)


def _never(kernel: Kernel, condition: Term, body: Body | None = None) -> bool:
    """Whether no tables that are as assumed meet a condition on their entries, in any program."""
    try:
        return proves(asked(kernel, body or Body(), [condition]).claim, ("isl", "smt"), effort=EFFORT)
    except (Undecided, LayoutError):
        return False
