"""Kernels at random, with tables, paddings, bounded slices and aliases, and a walk for every table there is.

Proved: no table that is as said has a violation. Refuted: every table has, and with `strict_tables` some table has.
"refuted if t can be ..", which is unknown: some table has, and with `strict_tables` it is refuted. Unknown: only
because of what a table holds, and what is then advised is tried here too.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.core.expression import parse_map
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.core.term import Term, reads
from layoutproof.kernel.kernel import Block, Kernel, Operand, Table
from layoutproof.pallas.judge import judge
from layoutproof.pallas.refuted_if import REFUTED_IF

NAMES = "ij"
WORDS = ("monotone", "injective", "onto")
Program = tuple[int, ...]


class OutsideOfTable(Exception):
    """A program reads past a table: what it then sees is nobody's business but `table_reads`'."""


def any_index(rng: random.Random, rank: int, reading: bool) -> str:
    i, j = rng.choice(NAMES[:rank]), rng.choice(NAMES[:rank])
    plain = [i] * 3 + ["0", f"{i} // 2", f"{i} + 1", f"2 - {i}", f"{i} % 2", f"{i} + {j}", f"min({i}, {j})"]
    read = [f"t[{i}]"] * 3 + [f"t[{i}] + {j}", f"t[t[{i}]]", f"max(t[{i}], t[{j}])", f"select(t[{i}] < 1, {i}, {j})"]
    return rng.choice(plain + (read if reading else []))


def any_operand(rng: random.Random, name: str, role: str, rank: int, reading: bool, bounded: bool) -> Operand:
    dims, block, index, sizes = [], [], [], []
    kinds = ("element", "squeezed") if rng.random() < 0.25 else ("blocked", "blocked", "squeezed")
    for _ in range(rng.choice((1, 1, 2))):
        kind = "bounded" if bounded and rng.random() < 0.4 else rng.choice(kinds)
        size = 1 if kind == "squeezed" else rng.randint(1, 3)
        padding = (rng.randint(0, 1), rng.randint(0, 2)) if kind == "element" else (0, 0)
        block.append(Block(kind, size, *padding))
        term = any_index(rng, rank, reading)
        index.append(f"{size} * ({term})" if kind in ("element", "bounded") else term)
        sizes.append(rng.choice((str(size), f"{size} - i % 2", "max(0, 2 - i)")) if kind == "bounded" else "")
        dims.append(max(1, size * rng.randint(1, 3) - rng.randint(0, 1)))
    head = f"({', '.join(NAMES[:rank])},) -> "
    lengths = tuple(parse_map(f"{head}({size},)")[1][0] if size else None for size in sizes)
    terms = parse_map(f"{head}({', '.join(index)},)")[1]
    return Operand(name, role, tuple(dims), "f32", tuple(block), terms, lengths if any(sizes) else ())


def any_kernel(rng: random.Random) -> Kernel:
    rank = rng.choice((1, 1, 2))
    reading, bounded = rng.random() < 0.6, rng.random() < 0.25
    grid = tuple(rng.randint(1, 4 if rank == 1 else 3) for _ in range(rank))
    x, o = (any_operand(rng, name, role, rank, reading, bounded) for name, role in (("x", "in"), ("o", "out")))
    aliased = rng.random() < 0.5
    if aliased:
        x = replace(x, dims=o.dims, block=o.block, index=o.index, sizes=o.sizes, buffers=rng.choice((None, 1, 3)))
        if rng.random() < 0.5:
            other = any_operand(rng, "x", "in", rank, reading, bounded=False)
            x = replace(x, index=tuple((other.index + x.index)[: len(x.index)]))
    said = dict.fromkeys((word for word in WORDS if rng.random() < 0.25), True)
    table = Table("t", (rng.randint(1, 4),), low=0, high=rng.randint(1, 3), **said)
    return Kernel(
        "k", grid, tuple(NAMES[:rank]), (x, o),
        semantics=tuple(rng.choice(("parallel", "arbitrary", "arbitrary")) for _ in grid),
        aliases=((0, 0),) if aliased else (), tables=(table,) if reading else (),
        pipeline="emit_pipeline" if bounded else "pallas_call",
    )  # fmt: skip


def tables_of(table: Table, words: tuple[str, ...] = (), high: int | None = None) -> Iterator[tuple[int, ...]]:
    """Every table that is as said; `words` and `high` say more."""
    said = {word for word in WORDS if word in words or getattr(table, word)}
    values = range(table.high if high is None else high)  # type: ignore[arg-type]
    for held in itertools.product(values, repeat=int(table.dims[0])):  # type: ignore[arg-type]
        if "monotone" in said and list(held) != sorted(held):
            continue
        if "injective" in said and len(set(held)) < len(held):
            continue
        if "onto" not in said or set(held) == set(values):
            yield held


class Walk:
    """One kernel with one table's contents, on ints."""

    def __init__(self, kernel: Kernel, held: tuple[int, ...]) -> None:
        self.kernel, self.held = kernel, held
        self.programs = list(itertools.product(*(range(n) for n in kernel.grid)))  # type: ignore[arg-type]

    def number(self, term: Term, names: Mapping[str, int]) -> Any:
        op, args = term.op, term.args
        if op == "int":
            return args[0]
        if op == "name":
            return names[args[0]]
        if op == "read":
            at = self.number(args[1], names)
            if not 0 <= at < len(self.held):
                raise OutsideOfTable
            return self.held[at]
        a = [self.number(part, names) for part in args]
        match op:
            case "+" | "-" | "*" | "//" | "%":
                if op in "+-":
                    return a[0] + a[1] if op == "+" else a[0] - a[1]
                return a[0] * a[1] if op == "*" else a[0] // a[1] if op == "//" else a[0] % a[1]
            case "min" | "max":
                return min(a) if op == "min" else max(a)
            case "<":
                return a[0] < a[1]
            case "select":
                return a[1] if a[0] else a[2]
        raise AssertionError(op)

    def returned(self, o: Operand, p: Program) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        names = dict(zip(self.kernel.grid_names, p, strict=True))
        sizes = tuple(None if s is None else self.number(s, names) for s in o.sizes or (None,) * len(o.dims))
        return tuple(self.number(term, names) for term in o.index), sizes

    def window(self, o: Operand, p: Program) -> list[tuple[int, int]]:
        found = []
        for block, at, size in zip(o.block, *self.returned(o, p), strict=True):
            first = at * block.size if block.kind == "blocked" else at - block.low
            found.append((first, first + (block.size if size is None else size)))
        return found

    def elements(self, o: Operand, p: Program) -> set[tuple[int, ...]]:
        # a slice has no more elements than its block, whatever it says
        sides = [
            range(max(0, first), min(end, first + int(block.size), n))  # type: ignore[type-var]
            for (first, end), block, n in zip(self.window(o, p), o.block, o.dims, strict=True)
        ]
        return set(itertools.product(*sides))

    def blocks_in_bounds(self, o: Operand) -> bool:
        for p in self.programs:
            for block, at, size, n in zip(o.block, *self.returned(o, p), o.dims, strict=True):
                if block.kind == "bounded":
                    fine = at >= 0 and 0 <= size <= block.size and at + size <= n
                elif block.kind == "element":
                    fine = at >= 0 and at + block.size <= block.low + n + block.high
                else:
                    fine = 0 <= at < (-(-n // block.size) if block.kind == "blocked" else n)
                if not fine:
                    return True
        return False

    def outputs_covered(self, o: Operand) -> bool:
        every = set(itertools.product(*(range(n) for n in o.dims)))  # type: ignore[arg-type]
        return bool(every.difference(*(self.elements(o, p) for p in self.programs)))

    def revisits(self, o: Operand) -> bool:
        blocks = [self.returned(o, p) for p in self.programs]
        runs = [b for k, b in enumerate(blocks) if k == 0 or b != blocks[k - 1]]
        return len(set(runs)) < len(runs)

    def apart(self, p: Program, q: Program) -> bool:
        return any(p[k] != q[k] for k in self.kernel.parallel())

    def parallel_writes(self, o: Operand) -> bool:
        exact = any(block.kind in ("element", "bounded") for block in o.block)
        holds = {p: self.elements(o, p) if exact else {self.returned(o, p)[0]} for p in self.programs}
        return any(self.apart(p, q) and holds[p] & holds[q] for p, q in itertools.combinations(self.programs, 2))

    def meet(self, o: Operand, p: Program, x: Operand, q: Program) -> bool:
        both = zip(o.block, x.block, self.window(o, p), self.window(x, q), o.dims, strict=True)
        return all(
            w == r if a == b and a.kind in ("blocked", "squeezed") else max(w[0], r[0], 0) < min(w[1], r[1], n)
            for a, b, w, r, n in both
        )

    def alias_hazard(self, o: Operand) -> bool:
        x, steps = self.kernel.inputs[0], self.programs
        into, out = [self.returned(x, p) for p in steps], [self.returned(o, p) for p in steps]
        for w, r in itertools.product(range(len(steps)), repeat=2):
            near = 1 <= r - w <= (x.buffers or 2) and out[w + 1] != out[w] and into[r - 1] != into[r]
            if (near or self.apart(steps[w], steps[r])) and self.meet(o, steps[w], x, steps[r]):
                return True
        return False

    def partial_blocks(self, o: Operand) -> bool:
        return any(
            block.kind in ("blocked", "squeezed") and not 0 <= a < e <= n
            for p in self.programs
            for block, (a, e), n in zip(o.block, self.window(o, p), o.dims, strict=True)
        )

    def table_reads(self, o: Operand) -> bool:
        try:
            return not all(self.returned(o, p) for p in self.programs)
        except OutsideOfTable:
            return True


OF_EVERY_OPERAND = ("blocks_in_bounds", "partial_blocks", "table_reads")
PROPERTIES = (*OF_EVERY_OPERAND, "outputs_covered", "revisits", "parallel_writes", "alias_hazard")


def violated(k: Kernel, name: str, o: Operand, words: tuple[str, ...] = (), high: int | None = None) -> bool | None:
    """Whether some table has a violation; None where there is none seen and a program reads past the table."""
    unsure = False
    for held in tables_of(k.tables[0], words, high) if k.tables else [()]:
        try:
            if getattr(Walk(k, held), name)(o):
                return True
        except OutsideOfTable:
            unsure = True
    return None if unsure else False


def violated_by_all(k: Kernel, name: str, o: Operand) -> bool:
    """Whether there is no table without a violation, one that a program reads past left aside."""
    for held in tables_of(k.tables[0]) if k.tables else [()]:
        try:
            if not getattr(Walk(k, held), name)(o):
                return False
        except OutsideOfTable:
            continue
    return True


def check(k: Kernel, name: str, o: Operand, findings: Sequence[Finding], strict: bool) -> None:
    found = min(findings, key=lambda f: f.verdict)
    verdict, reason = found.verdict, found.reason
    truth = violated(k, name, o)
    said = (str(k), [str(operand) for operand in k.operands], [t.assumptions() for t in k.tables], name, reason)
    if verdict is Verdict.PROVED:
        assert truth is not True, said
    elif verdict is Verdict.REFUTED:
        assert truth is not False, said
        assert strict or found.severity != "error" or violated_by_all(k, name, o), said
    else:
        assert k.tables, said
        whose = "depends on what t holds|which blocks of o are written|vacuous: "
        assert re.search(whose if strict else f"{whose}|^{REFUTED_IF}t can be ", reason), said
        assert not reason.startswith(REFUTED_IF) or truth is not False, said
        advised = re.search("assume (.*) and it is proved", reason)
        if advised and len(findings) == 1:
            bound = re.search(r"0 <= t < (\d+)", advised[1])
            words = tuple(word for word in WORDS if word in advised[1])
            assert violated(k, name, o, words, int(bound[1]) if bound else None) is not True, said
            assert any(tables_of(k.tables[0], words, int(bound[1]) if bound else None)), said


def disagreements(k: Kernel, name: str, findings: Sequence[Finding], strict: bool = False) -> None:
    """AssertionError where what is said of a property contradicts the walk. strict: with `strict_tables`."""
    for o in k.operands:
        if name == "alias_hazard":
            subject = "x -> o" if o.role == "out" and k.aliases else ""
        else:
            subject = o.name if o.role == "out" or name in OF_EVERY_OPERAND else ""
        mine = [f for f in findings if f.subject == subject]
        if mine:
            check(k, name, o, mine, strict)
        elif subject and not (name == "table_reads" and not reads(o.index)):
            assert violated(k, name, o) is not True, (str(k), name, o)


def judged(k: Kernel, name: str, fixes: bool = True) -> tuple[Finding, ...]:
    """What is said of a property without `strict_tables`; AssertionError where that or what is said with it is wrong.

    With it, exactly what is "refuted if .." is refuted, and nothing else is another verdict.
    """
    found = judge(k, names=[name], fixes=fixes)
    strictly = judge(k, names=[name], fixes=fixes, strict_tables=True)
    disagreements(k, name, found)
    disagreements(k, name, strictly, strict=True)
    for one, strict in zip(found, strictly, strict=True):
        said = (str(k), [str(operand) for operand in k.operands], name, one.reason, strict.reason)
        assert (one.question, one.subject) == (strict.question, strict.subject), said
        if one.reason.startswith(REFUTED_IF):
            assert (one.verdict, strict.verdict) == (Verdict.UNKNOWN, Verdict.REFUTED), said
        else:
            assert one.verdict is strict.verdict, said
    return found


def ask(seed: int, number: int) -> tuple[str, str, str]:
    """The question with this number of this seed: (property, verdict, what is wrong with that or "")."""
    rng = random.Random(f"{seed}/{number}")
    k, name = any_kernel(rng), rng.choice(PROPERTIES)
    try:
        findings = judged(k, name, fixes=False)
    except Exception as error:  # what contradicts the walk, and what is an error of ours, are both wrong
        return name, "error", f"{name} of {k}: {type(error).__name__}: {error}"
    return name, min([f.verdict for f in findings], default=Verdict.PROVED).value, ""
