"""Runs of kernels in JAX's interpreter of TPU kernels (`pltpu.InterpretParams`), in a child process.

A run is no proof: it sees one set of arguments, on a CPU, and has blind spots of its own (`BLIND`). Its outcome for a
refuted question stands beside it; an outcome against a proof is a conflict (`overruled`). Memory starts as NaN, copies
happen when they are waited for, races are looked for; a run that ends is repeated on zeros with copies that happen at
once. Where the two differ, the kernel used a value that was never written, or was still in flight.
Arguments are small numbers made from the shapes; tables keep their assumptions. The child ends by itself, or is
ended: a wait for too much hangs for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Annotated, Any, Literal, TypedDict

from layoutproof.compiler.child import Child, Reply, ask
from layoutproof.core.document import Doc, Exactly
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import listed, shorten
from layoutproof.core.finding import Finding
from layoutproof.core.message import restated
from layoutproof.core.result import Verdict
from layoutproof.core.visible import visible
from layoutproof.kernel.kernel import Kernel, Table, Unmodelled
from layoutproof.kernel.read_consistency import range_of
from layoutproof.pallas import problems as texts
from layoutproof.pallas.from_jax.sent import identity, sent
from layoutproof.pallas.points import READS

SECONDS = 120.0
"""The time limit of one kernel, start and compilation included; then the child is ended, without an answer."""
MEMORY = 16 << 30
"""Bytes of address space of the child; JAX reserves several GiB that it never touches."""
MOST_PROGRAMS = 4096
"""Programs of a kernel that is run; each takes milliseconds."""
MOST_BYTES = 256 << 20
"""Bytes of the arguments, results and scratch of a kernel that is run."""
MOST_TABLES = 4
"""Contents of the tables that are tried, until one shows something."""
MOST_ENTRIES = 1 << 16

CHILD = Child(
    "JAX's interpreter of TPU kernels",
    "layoutproof.pallas.from_jax.run_call",
    {"JAX_PLATFORMS": "cpu"},
    SECONDS,
    MEMORY,
)

_STORED = frozenset({"nan", "differs"})
SIGNS: Mapping[str, frozenset[str]] = {
    "body_in_bounds": frozenset({"raised"}),
    "blocks_in_bounds": frozenset({"raised", *_STORED}),
    "outputs_stored": _STORED,
    "outputs_covered": _STORED,
    "initialised": _STORED,
    "undefined_values": _STORED,
    "dma_order": frozenset({"hang", "semaphore", "race", "raised", *_STORED}),
    "body_races": frozenset({"race", *_STORED}),
    "parallel_writes": frozenset({"race"}),
    "revisits": frozenset({"raised"}),
}
"""Which signs speak of which question; of any other question none does."""

BLIND: Mapping[str, str] = {
    "body_in_bounds": "a single index of -1 wraps around there, and only the arguments of the run are tried",
    "outputs_stored": "a window that a program does not store keeps what the program before it left there",
    "initialised": "scratch keeps what an earlier program left, and what is overwritten before it is used is lost",
    "undefined_values": "XLA turns NaN * mask into a select on a CPU, and maxima and comparisons can lose a NaN",
    "dma_order": "copies happen when they are waited for, the last one first, or at once",
    "body_races": "two cores take turns by their own pace, and only the arguments of the run are tried",
    "inputs_read": "an element that is not read leaves no trace in a result",
    "multiple_of": "the interpreter does not look at what multiple_of says",
}
"""Why a run may not show what is true, by question (jax 0.10.2 and 0.12.0.1)."""


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing that a run showed. kind: nan, differs, race, raised, hang or semaphore.  text: in words.

    output: of which it speaks, "" = none.  known: why it is against no proof, "" = it may be.
    """

    kind: str
    text: str
    output: str = ""
    known: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.known})" if self.known else self.text


class SignEntry(TypedDict):
    kind: Annotated[str, Exactly(Literal["nan", "differs", "race", "raised", "hang", "semaphore"])]
    text: str
    known: Annotated[str, Doc("why it is against no proof, e.g. a fault of the interpreter; empty = it may be")]


class ReplayEntry(TypedDict):
    """The outcome of running a kernel in JAX's interpreter; a finding `conflict` reports it against a proof."""

    signs: Annotated[list[SignEntry], Doc("what the run showed")]
    problem: Annotated[str, Doc("why it was not run, or not to its end; empty where it was")]
    jax: Annotated[str, Doc("the version of JAX that ran it")]
    tables: Annotated[dict[str, list[int]], Doc("what the tables held in that run, the first entries")]


@dataclass(frozen=True, slots=True)
class Replay:
    """The outcome of running one kernel.

    signs: of violations.  problem: why it was not run, or not to its end; "" where it was.  jax: the version.
    tables: their first entries, by name, in row-major order.
    """

    signs: tuple[Sign, ...] = ()
    problem: str = ""
    jax: str = ""
    tables: Mapping[str, tuple[int, ...]] | None = None

    def __str__(self) -> str:
        held = ", ".join(f"{name} = {shorten(str(list(row)), 40)}" for name, row in (self.tables or {}).items())
        if self.problem:
            return f"no: {self.problem}"
        said = "; ".join(map(str, self.signs)) or texts.ENDED()
        return visible(texts.RUN_SAID(said, f" (with {held})" if held else "", self.jax))

    def of(self, finding: Finding) -> str:
        """The outcome for one finding, in words; "" for one that is no refuted error, or where nothing was run."""
        if finding.verdict is not Verdict.REFUTED or finding.severity != "error" or self.problem:
            return ""
        speaking = [sign.text for sign in self.signs if sign.kind in SIGNS.get(finding.question, frozenset())]
        if speaking:
            return visible("; ".join(speaking))
        blind = BLIND.get(finding.question, texts.NO_SIGN())
        return texts.NOTHING_OF_IT_SEEN(blind)

    def as_dict(self) -> ReplayEntry:
        """The same for programs."""
        return {
            "signs": [{"kind": sign.kind, "text": sign.text, "known": sign.known} for sign in self.signs],
            "problem": self.problem,
            "jax": self.jax,
            "tables": {name: list(row) for name, row in (self.tables or {}).items()},
        }


def replays(
    function: Callable[..., object] | str,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    target: str,
    calls: Sequence[tuple[Kernel | Unmodelled, Sequence[Finding]]],
) -> tuple[Replay, ...]:
    """Runs each Pallas call of a function by itself.

    Args:
        function: As `kernels` takes it: a function, or where it is.
        args: Of the function, as `kernels` takes them; of arrays only the shapes count.
        kwargs: The same by name.
        target: The hardware that the function believes it runs on, "" where none was given.
        calls: All calls that were found, in the order in which they are made, each with what was found of it.

    Returns:
        The outcome of each, in their order.
    """
    problems = [_not_run(call) for call, _ in calls]
    try:
        code = sent(function, args, kwargs) if not all(problems) else ""
    except Exception as error:
        why = shorten(f"{type(error).__name__}: {error}", 200)
        code, problems = "", [p or texts.NOT_SENT(why) for p in problems]
    requests = [
        {"code": code, "target": target, "call": k, "same": identity(call), "tables": contents(call, found)}
        for k, (call, found) in enumerate(calls)
        if isinstance(call, Kernel) and not problems[k]
    ]
    answers = ask(CHILD, requests, _read)
    return tuple(_replay(next(answers)) if not problem else Replay(problem=problem) for problem in problems)


def contents(call: Kernel, found: Sequence[Finding]) -> list[dict[str, list[int]]]:
    """Contents for the tables of a call, each within its assumptions: the values of counterexamples first.

    >>> contents(Kernel("k", (1,), ("g0",), (), tables=(Table("t", (5,), low=0, high=9),)), ())
    [{'t': [0, 2, 4, 6, 8]}, {'t': [8, 8, 8, 8, 8]}, {'t': [0, 0, 0, 0, 0]}]
    """
    tables = (*call.tables, *call.scalars)
    if not tables:
        return [{}]
    wrong = [f.counterexample for f in found if f.verdict is Verdict.REFUTED and f.counterexample]
    values = [v for point in wrong for name, read in point.items() if name.endswith(READS) for v in read.values()]
    tried: list[dict[str, list[int]]] = []
    for value in (*dict.fromkeys(values), None, 1 << 64, 0):
        made = {table.name: _entries(table, value) for table in tables}
        if made not in tried:
            tried.append(made)
    return tried[:MOST_TABLES]


def _entries(table: Table, value: int | None) -> list[int]:
    """Entries in row-major order: all the one value, or, where that may not be, spread over the range evenly.

    The even ones never decrease, name no value twice where there are enough, and leave none out where there are not.
    """
    if table.contents is not None:
        return list(table.contents)
    low, high = (int(end) for end in range_of(table))
    if table.low is None and table.high is None:
        # nothing is assumed: small numbers rather than the ends of the type
        low, high = 0, 8
    many, last = prod(int(n) for n in table.dims), high - low - 1
    if table.total is not None:
        value = min(value or 0, table.total // max(many, 1))
    if value is not None and not table.injective and not table.onto:
        return [min(max(value, low), high - 1)] * many
    return [low + k * last // max(many - 1, 1) for k in range(many)]


def _not_run(call: Kernel | Unmodelled) -> str:
    """Why a call is not run, "" where it is."""
    if isinstance(call, Unmodelled):
        return texts.NOT_MODELLED()
    if call.pipeline == "emit_pipeline":
        return texts.RUN_AROUND()
    if call.platform != "tpu":
        return texts.RUN_PLATFORM(call.platform)
    if call.subcores:
        # of jax 0.10.2 and 0.12.0.1 it runs all programs as one core, and takes a list of places for numbers of rows
        return texts.RUN_SUBCORES()
    numbers = [*call.grid, *(n for o in call.operands for n in o.dims)]
    numbers += [e for t in (*call.tables, *call.scalars) for e in (*t.dims, *range_of(t))]
    if any(type(n) is not int for n in numbers):
        named = call.named_sizes()
        if named:
            return texts.RUN_NUMBERS(listed(named))
        unknown = ", ".join(call.runtime)
        said = texts.RUN_SIZES()
        return restated(f"{said}: {unknown}", said, names=unknown) if unknown else said
    if any(int(low) >= int(high) for low, high in map(range_of, (*call.tables, *call.scalars))):
        return texts.RUN_TABLES()
    programs = prod(int(n) for n in call.grid)
    if programs > MOST_PROGRAMS:
        return texts.RUN_PROGRAMS(programs, MOST_PROGRAMS)
    if any(prod(int(n) for n in t.dims) > MOST_ENTRIES for t in (*call.tables, *call.scalars)):
        return texts.RUN_ENTRIES(MOST_ENTRIES)
    held = [(o.dtype, o.dims) for o in call.operands] + [(s.dtype, s.dims) for s in call.scratch]
    size = sum(ELEMENT_BITS.get(dtype, 32) * prod(int(n) for n in dims) for dtype, dims in held) // 8
    if size > MOST_BYTES:
        return texts.RUN_BYTES(size >> 20, MOST_BYTES >> 20)
    return ""


def _read(value: Any) -> Replay:
    named = ("kind", "text", "output", "known")
    signs = tuple(Sign(*(str(sign.get(name, "")) for name in named)) for sign in value["signs"])
    tables = {str(name): tuple(map(int, row)) for name, row in value["tables"].items()}
    return Replay(signs, str(value["problem"]), str(value["jax"]), tables)


def _replay(answer: Reply[Replay]) -> Replay:
    if answer.value is not None:
        return answer.value
    return Replay(problem=shorten(answer.problem, 300))
