"""In what order programs run, which windows they see, and what of a window is padding, as terms of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutproof.bodies.effects import BodyReference, Index
from layoutproof.bodies.terms import renaming, replaced
from layoutproof.core.folding import FALSE, TRUE, all_of, any_of, fold, negation
from layoutproof.core.term import ONE, ZERO, Term, reads, size_term
from layoutproof.kernel.kernel import Kernel, Operand


def operand_of(kernel: Kernel, reference: BodyReference) -> Operand | None:
    """The operand whose window a reference is; None for memory of other kinds, and for arrays without windows."""
    if reference.role not in ("in", "out") or reference.position >= len(kernel.operands):
        return None
    operand = kernel.operands[reference.position]
    return operand if operand.windowed else None


def given(kernel: Kernel, reference: BodyReference) -> Operand | None:
    """The input whose array a reference is: of an output in a GPU's global memory the one that shares its buffer."""
    if reference.position >= len(kernel.operands) or reference.role not in ("in", "out"):
        return None
    operand = kernel.operands[reference.position]
    if reference.role == "in" or reference.memory != "gmem":
        return operand if reference.role == "in" else None
    return next((kernel.inputs[a] for a, b in kernel.aliases if a >= 0 and kernel.outputs[b] is operand), None)


def filled_before(kernel: Kernel, reference: BodyReference) -> bool:
    """Whether a reference has contents when the kernel begins: no scratch, and no output of its own."""
    return reference.role in ("in", "prefetch", "semaphore", "around") or given(kernel, reference) is not None


def unfilled(kernel: Kernel, reference: BodyReference) -> str:
    """The operation that made the array of an input which is not filled, or not wholly; "" for all other memory."""
    operand = given(kernel, reference)
    return "" if operand is None else operand.unfilled or operand.partly


def partly(kernel: Kernel, reference: BodyReference) -> str:
    """The operation that made the array of an input and stores only a part of it: the read part may be unfilled."""
    operand = given(kernel, reference)
    return "" if operand is None else operand.partly


def seen(operand: Operand) -> list[int]:
    """The dimensions of an operand that its window has: all that are not squeezed."""
    return [k for k, block in enumerate(operand.block) if block.kind != "squeezed"]


def start_of(operand: Operand, k: int) -> Term:
    """Where the window starts in dimension k of the array."""
    block, index = operand.block[k], operand.index[k]
    if block.kind == "blocked":
        if index.op == "int" and type(block.size) is int:
            return Term("int", index.args[0] * block.size)
        return Term("*", index, size_term(block.size))
    return index if not block.low else Term("-", index, Term("int", block.low))


def in_array(operand: Operand, index: Index) -> Index:
    """Where an element of what a program sees of an operand lies in its array. index: without squeezed dimensions."""
    rest = iter(index)
    starts = [(start_of(operand, k), block.kind == "squeezed") for k, block in enumerate(operand.block)]
    return tuple(start if single else fold("+", start, next(rest)) for start, single in starts)


def outside(operand: Operand, k: int, entry: Term) -> Term:
    """The condition that an entry of the window in dimension k of the array is padding; FALSE where none ever is.

    The window itself is taken to be one of the array's, as `blocks_in_bounds` asks.
    """
    block, extent = operand.block[k], operand.dims[k]
    valid = operand.sizes[k] if operand.sizes else None
    place = fold("+", start_of(operand, k), entry)
    past = fold("<=", size_term(extent), place)
    if block.kind == "blocked":
        if type(extent) is int and type(block.size) is int and extent % block.size == 0:
            return FALSE
        count = -(-extent // block.size) if type(extent) is int and type(block.size) is int else None
        if count is not None:
            # only the last block has padding
            return all_of([past, fold("==", operand.index[k], Term("int", count - 1))])
        return past
    parts = [past]
    if block.low:
        parts.append(fold("<", place, ZERO))
    elif block.kind == "element" and not block.high:
        return FALSE
    if valid is not None:
        parts.append(Term("<=", valid, entry))
    return any_of(parts)


def padding(operand: Operand, index: Index) -> Term:
    """The condition that an element of an operand's window is padding. index: in the window, without squeezed ones."""
    return any_of([outside(operand, k, entry) for k, entry in zip(seen(operand), index, strict=True)])


def valid(kernel: Kernel, operand: Operand, index: Index) -> Term:
    """The condition that an element of an operand's window is one of the array: no padding, of none of its blocks."""
    return all_of([*(_one_of(kernel, operand, k) for k in range(len(operand.dims))), negation(padding(operand, index))])


def _one_of(kernel: Kernel, operand: Operand, k: int) -> Term:
    """The condition that a window is one of the array's in a dimension; TRUE where it always holds, or is unknown."""
    block, extent, term = operand.block[k], operand.dims[k], operand.index[k]
    if block.kind not in ("blocked", "squeezed") or type(block.size) is not int or type(extent) is not int:
        return TRUE
    if reads((term,)):
        return TRUE
    count = -(-extent // block.size)
    if term.op == "name" and term.args[0] in kernel.grid_names:
        most = kernel.grid[kernel.grid_names.index(term.args[0])]
        if type(most) is not int or most <= count:
            return TRUE
    return all_of([fold("<=", ZERO, term), fold("<", term, Term("int", count))])


def _last(kernel: Kernel, k: int) -> Term:
    extent = kernel.grid[k]
    return Term("int", extent - 1) if type(extent) is int else Term("-", size_term(extent), ONE)


def names(kernel: Kernel) -> tuple[Term, ...]:
    """The programs' names as terms."""
    return tuple(Term("name", name) for name in kernel.grid_names)


def at_program(kernel: Kernel, term: Term, program: Sequence[Term]) -> Term:
    """A term over the grid's names for another program."""
    return replaced(term, renaming(dict(zip(kernel.grid_names, program, strict=True))))


def one_by_one(kernel: Kernel) -> tuple[tuple[Term, ...], Term]:
    """The program after each, where one core runs all of them, and the condition that there is one."""
    own = names(kernel)
    found: list[Term] = []
    behind = TRUE
    for k in reversed(range(len(own))):
        at_end = _equal(own[k], _last(kernel, k))
        step = Term("select", at_end, ZERO, Term("+", own[k], ONE))
        found.append(_choose(behind, step, own[k]))
        behind = all_of([at_end, behind])
    return tuple(reversed(found)), negation(behind)


def _choose(condition: Term, yes: Term, no: Term) -> Term:
    if condition is TRUE:
        return yes
    return no if condition is FALSE else Term("select", condition, yes, no)


def _equal(left: Term, right: Term) -> Term:
    return fold("==", left, right)


def following(kernel: Kernel) -> tuple[tuple[Term, ...], Term, dict[str, Any]]:
    """A program that may come next on the same core: its ids, the condition, and names of its ids with their extents.

    A core runs, of every parallel dimension, whatever part it was given, and all of the other dimensions.
    """
    parallel = set(kernel.parallel())
    if not parallel or kernel.platform != "tpu":
        after, some = one_by_one(kernel)
        return after, some, {}
    own = names(kernel)
    after = tuple(Term("name", f"next{k}") for k in range(len(own)))
    ways = []
    for d in range(len(own)):
        parts = [_equal(own[k], after[k]) for k in range(d)]
        parts.append(fold("<", own[d], after[d]) if d in parallel else _equal(after[d], Term("+", own[d], ONE)))
        for k in range(d + 1, len(own)):
            if k in parallel:
                parts.append(Term("<=", after[k], own[k]))
            else:
                parts += [_equal(own[k], _last(kernel, k)), _equal(after[k], ZERO)]
        ways.append(all_of(parts))
    return after, any_of(ways), {f"next{k}": kernel.grid[k] for k in range(len(own))}


def first_of_core(kernel: Kernel) -> Term:
    """The condition that a program may be the first that a core runs."""
    parallel = set(kernel.parallel()) if kernel.platform == "tpu" else set()
    return all_of([_equal(term, ZERO) for k, term in enumerate(names(kernel)) if k not in parallel])


def last_of_core(kernel: Kernel) -> Term:
    """The condition that a program may be the last that a core runs."""
    parallel = set(kernel.parallel()) if kernel.platform == "tpu" else set()
    return all_of([_equal(term, _last(kernel, k)) for k, term in enumerate(names(kernel)) if k not in parallel])


def other_block(kernel: Kernel, operand: Operand, program: Sequence[Term]) -> Term:
    """The condition that another program has another block of an operand."""
    found = []
    for term in operand.index:
        there = at_program(kernel, term, program)
        if there is not term:
            found.append(fold("!=", term, there))
    return any_of(found)
