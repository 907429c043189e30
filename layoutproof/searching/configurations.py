"""Whether configurations of a function's block sizes are legal, each in milliseconds: what a tuner asks many times.

The function is traced with numbers that record its decisions (`alike`): who decides alike has the same calls, whose
grids, blocks and scratch are terms. Of most configurations these terms get numbers, and the rules are asked of that;
nothing is traced. Traced are those that decide otherwise than all before, and those of which terms do not say enough:
where scratch decides whether a kernel fits, since the compiler drops some by what the body does, and where a product
that the body holds does.

Asked are QUESTIONS: the grid, the BlockSpecs, the rules of the target, and memory. No question of bodies is: what JAX
refuses in a body for the shape of a reference is seen of those that are traced; `layoutproof.kernels` judges bodies.
"""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations_with_replacement
from math import ceil, floor, prod

from layoutproof.core import problems as core_problems
from layoutproof.core.errors import LayoutError, Undecided, closest, shorten
from layoutproof.core.finding import Finding
from layoutproof.core.message import Message
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel, KernelTarget, MemoryUse, Unmodelled, Work
from layoutproof.pallas.judge import GRID, conditions_of, judge
from layoutproof.searching import problems
from layoutproof.searching.alike import Candidates, Kernels
from layoutproof.searching.array_parts import ArrayPart, parts, reduced
from layoutproof.searching.legal import MEMORY, against
from layoutproof.searching.legality import Legality
from layoutproof.searching.machines import fits, of_products
from layoutproof.searching.problem import Problem
from layoutproof.searching.traced import FUNCTION, Prices, priced, prices

FIRST = ("grid_positive", "block_shape", "legal_for_target", "element_alignment")
"""Asked first: they cost least, and refuse most."""

ALONE = ("outputs_covered", "blocks_in_bounds", "index_int32", "inputs_read", "table_reads")
"""The questions whose answer about an operand rests on that array and the grid dimensions that choose its blocks.

Where no arrays share a buffer they are asked once for all configurations that cut the array in one way.
"""

LEFT = ("revisits",)
"""Likewise of outputs, but that dimensions count too that are outside of those which choose their blocks."""

AT_ONCE = ("parallel_writes",)
"""Likewise of outputs, but that of every other dimension it counts too whether it has two programs."""

REST = ("parallel_prefix", "alias_hazard")

QUESTIONS = (*FIRST, *ALONE, *LEFT, *AT_ONCE, *REST)
"""The properties of kernels that are asked, beside `memory_budget`.

Left out are those that make no configuration illegal (`partial_blocks`, `relayout`), that only the compiler decides
(`vmem_total`, `compiled`), and those about bodies.
"""

RACES = "body_races"
BODIES = (
    MEMORY,
    "tma_box",
    "wgmma_tiles",
    "tcgen05_tiles",
    "gpu_instructions",
    "warpgroup_registers",
    *FIRST,
    "commit_smem",
    "dma_order",
    *(name for name in ALONE if name != "inputs_read"),
    *LEFT,
    *AT_ONCE,
    *REST,
    "multiple_of",
    "undefined_values",
    "initialised",
    "outputs_stored",
    "body_in_bounds",
    "inputs_read",
    RACES,
)
"""What is asked of kernels of Mosaic GPU, the cheap first; what is not read mostly follows from what is not written.

Races are asked where all else is proved: where data decide what threads do they take seconds, and are open too. Left
out is what makes none illegal.
"""

BY_BODIES = ("mosaic_gpu",)
"""The platforms of which BODIES are asked."""

NOT_OF_SIZES = ("AssertionError", "AttributeError", "ImportError", "ModuleNotFoundError", "RuntimeError")
"""What a function for a GPU may raise because there is none where it is traced: of its CUDA, of its device."""

MOST = 1 << 14
"""Configurations of a space that are enumerated; of more `sample` says how many are looked at."""

COMPILED = {
    "matmul": (0.94, 1.34),
    "attention": (0.75, 3.75),
    "elementwise": (1.00, 1.07),
    "reduction": (1.00, 1.50),
}
"""By the kind of a kernel's body: the compiler's VMEM over windows and scratch, least and most.

Measured on 110 configurations of nine kernels that it takes, v5e and v6e, libtpu 0.0.52, 2026-11-27
(`benchmarks/legal.py --compile`); the reduction is of `machines.BODIES`. Below 1 scratch was dropped.
"""

FLOAT = 4
"""Bytes of an element of the products that a body holds: the matrix unit gives 32 bits."""

_NAME = re.compile(r"[^\W\d]\w*")


class _Untold(Exception):
    """Terms do not say it: the configuration has to be traced."""


class _ConfiguredCall:
    """One call of a configuration, with what it takes of each memory.

    like: with terms, where it was not traced.  kernel: with numbers.  where: a condition on sizes, None = none.
    uses: of memories; unknown: why they are not known, "" = they are.
    """

    def __init__(
        self,
        like: Kernel | Unmodelled,
        kernel: Kernel | Unmodelled,
        where: str | None,
        traced: bool,
        target: KernelTarget,
    ):
        self.like, self.kernel, self.where, self.traced, self._target = like, kernel, where, traced, target
        self.uses, self.unknown = self._uses(kernel)

    def _uses(self, kernel: Kernel | Unmodelled) -> tuple[tuple[MemoryUse, ...], str]:
        if isinstance(kernel, Unmodelled) or kernel.platform != self._target.platform:
            return (), ""
        try:
            return self._target.memory(kernel), ""
        except (LayoutError, Undecided) as error:
            return (), str(error)

    def _bare(self) -> tuple[MemoryUse, ...]:
        """Of an untraced call what it takes without scratch, of which the compiler drops some by what the body does."""
        kernel = self.kernel
        if isinstance(kernel, Unmodelled) or self.traced or not (kernel.scratch or kernel.scoped):
            return self.uses
        return self._uses(replace(kernel, scratch=(), scoped=()))[0]

    def over(self) -> bool:
        """Whether memory has to be asked about. _Untold where terms do not say whether it is too small."""
        if self.unknown:
            return True
        # where all of its scratch may do too, no body says that it does not fit
        open_ = not self.traced and any(use.least > use.limit for use in self.uses)
        if open_ and not any(use.least > use.limit for use in self._bare()):
            raise _Untold
        return any(use.used > use.limit for use in self.uses)

    def vmem(self) -> list[tuple[MemoryUse, int]]:
        """Its use of VMEM, and the least bytes that no choice of the compiler does without."""
        from layoutproof.pallas.memory_needed import memory_needed

        least = self._bare()
        if self.traced and isinstance(self.kernel, Kernel) and any(use.used > use.limit for use in self.uses):
            least = memory_needed(self.kernel, self._target)
        return [(use, one.least) for use, one in zip(self.uses, least, strict=True) if use.name == "VMEM"]


@dataclass(slots=True)
class _Products:
    """The products that the bodies of calls hold which decide alike.

    call: with terms.  works: of those that were traced, with their numbers.  pairs: the positions of two sizes whose
    product may be the largest; of two whose product is larger than all that a traced body holds, none is held.
    """

    call: Kernel | Unmodelled
    works: list[tuple[tuple[int, ...], Work]] = field(default_factory=list)
    pairs: set[tuple[int, int]] | None = None

    def add(self, values: Mapping[str, int], kernel: Kernel, work: Work) -> None:
        """One more that was traced."""
        many = _sizes(values, kernel)
        known = combinations_with_replacement(range(len(many)), 2) if self.pairs is None else self.pairs
        self.pairs = {(a, b) for a, b in known if FLOAT * many[a] * many[b] <= work.held}
        self.works.append((tuple(values.values()), work))

    def bounds(self, values: Mapping[str, int], kernel: Kernel) -> Iterator[tuple[int, int, int]]:
        """By each that was traced: (most, least) bytes that a body takes by its products, the least of the largest one.

        The largest product is of two of the sizes, or grows no faster than each number of a configuration; of a loop
        that is unrolled there are more where a number is less.
        """
        many = _sizes(values, kernel)
        paired = FLOAT * max((many[a] * many[b] for a, b in self.pairs or ()), default=0)
        for other, work in self.works:
            ratios = [Fraction(a, b) for a, b in zip(values.values(), other, strict=True) if min(a, b) > 0 and a != b]
            if len(ratios) < sum(a != b for a, b in zip(values.values(), other, strict=True)):
                continue
            up = prod((ratio for ratio in ratios if ratio > 1), start=Fraction(1))
            down = prod((ratio for ratio in ratios if ratio < 1), start=Fraction(1))
            grown = max(up, Fraction(paired, work.held))
            held, every = floor(work.held * down), floor(work.products * down / up)
            most = of_products(ceil(work.held * grown), ceil(work.products * grown / down))
            yield most, of_products(held, max(held, every)), held


@dataclass(frozen=True, slots=True, kw_only=True)
class Legal:
    """Says of configurations of one function whether they are legal: `legal(block_m=128, block_n=256)`.

    Attributes:
        parameters: The values that each parameter may take, rising: those of `space`. Any whole number can be asked.
        problem: The function and its target.
        target: The rules.
        where: Conditions on sizes of the running program, which may name parameters.

    Of a platform in BY_BODIES each configuration is traced.
    """

    parameters: Mapping[str, tuple[int, ...]]
    problem: Problem
    target: KernelTarget
    where: tuple[str, ...] = ()
    _seen: list[Candidates] = field(default_factory=list, repr=False)
    _prices: dict[Kernels, Prices] = field(default_factory=dict, repr=False)
    _told: dict[tuple[int, ...], Legality] = field(default_factory=dict, repr=False)
    _arrays: dict[object, tuple[Finding, ...]] = field(default_factory=dict, repr=False)
    _products: dict[int, _Products] = field(default_factory=dict, repr=False)

    def __call__(self, **configuration: int) -> Legality:
        """The answer about one configuration.

        Args:
            **configuration: The value of each parameter, a whole number.

        Returns:
            The answer: `verdict`, `reason`, `vmem_bytes`, `steps`, `traffic`; `bool` of it is whether it is legal.

        Raises:
            LayoutError: A parameter is missing or unknown, or its value is no whole number.
        """
        values = self._values(configuration)
        key = tuple(values.values())
        if key not in self._told:
            self._told[key] = self._answer(values)
        return self._told[key]

    def space(self, sample: int | None = None, seed: int = 0, unknown: bool = False) -> Iterator[Legality]:
        """Every legal configuration of the parameters' values, the best by the model first.

        The model is that of `layoutproof.search` without what bodies compute: steps, and bytes between HBM and VMEM.
        Those without a price, whose data are moved by manual DMA, come last, large values first.

        Args:
            sample: Look at no more configurations than these, drawn without replacement; None = at all.
            seed: Of what is drawn; one seed draws the same.
            unknown: Whether those come too that are neither legal nor refused.

        Returns:
            The answers, each made when it is taken.

        Raises:
            LayoutError: There are more than MOST configurations and no sample is asked for; or sample is below 1.
        """
        every = prod(map(len, self.parameters.values()))
        if sample is not None and (type(sample) is not int or sample < 1):
            raise LayoutError(problems.SAMPLE_FORM(shorten(repr(sample), 40)))
        if sample is None and every > MOST:
            raise LayoutError(problems.TOO_MANY_CONFIGURATIONS(every, MOST))
        numbers: Sequence[int] = range(every)
        if sample is not None and sample < every:
            numbers = sorted(random.Random(seed).sample(numbers, sample))
        return self._best_first(numbers, unknown)

    def _best_first(self, numbers: Sequence[int], unknown: bool) -> Iterator[Legality]:
        ranked = []
        for number in numbers:
            values = self._numbered(number)
            row = self._figures(values)
            ranked.append((row is None, *(row or (0, 0)), tuple(-value for value in values.values()), values))
        for *_, values in sorted(ranked, key=operator.itemgetter(slice(4))):
            found = self(**values)
            if found.verdict is Verdict.PROVED or (unknown and found.verdict is Verdict.UNKNOWN):
                yield found

    def _numbered(self, number: int) -> dict[str, int]:
        """The configuration of a number, of all in the order of `itertools.product`."""
        found: dict[str, int] = {}
        for name, values in reversed([*self.parameters.items()]):
            number, k = divmod(number, len(values))
            found[name] = values[k]
        return {name: found[name] for name in self.parameters}

    @property
    def _bodies(self) -> bool:
        """Whether bodies are asked about, each traced with its numbers."""
        return self.target.platform in BY_BODIES

    def _figures(self, values: Mapping[str, int]) -> tuple[int, int] | None:
        """(time, bytes) by the model, None = unknown. There is a model of TPUs only."""
        if self._bodies:
            return None
        calls, traced = self._candidates.calls(values)
        if isinstance(calls, LayoutError):
            return None
        row = self._priced(values, calls, traced)
        return None if row is None else (row["time"], row["bytes"])

    @property
    def _candidates(self) -> Candidates:
        if not self._seen:
            self._seen.append(Candidates(self.problem.traced.trace, self.problem.count()))
        elif self._seen[0].contradicted and not self._seen[0].stopped:
            # the function looks at something else than its arguments: nothing that terms said holds
            self._seen[0] = Candidates(self.problem.traced.trace, self.problem.count(), contradicted=True, stopped=True)
            self._told.clear()
        return self._seen[0]

    def _values(self, configuration: Mapping[str, object]) -> dict[str, int]:
        """The numbers of a configuration, in the order of the parameters."""
        for name in configuration:
            if name not in self.parameters:
                near = closest(name, self.parameters)
                raise LayoutError(problems.NO_PARAMETER(name, ", ".join(self.parameters), near))
        missing = [name for name in self.parameters if name not in configuration]
        if missing:
            raise LayoutError(problems.PARAMETERS_MISSING(", ".join(missing)))
        return {name: _whole(name, configuration[name]) for name in self.parameters}

    def _answer(self, values: Mapping[str, int]) -> Legality:
        if self._bodies:
            from layoutproof.pallas.from_jax.adapter import sees_gpu

            try:
                own = self.problem.traced.trace(values)
            except LayoutError as error:
                return _refused(values, error, True, () if sees_gpu() else NOT_OF_SIZES)
            return self._of(values, own, own, True)
        calls, traced = self._candidates.calls(values)
        if isinstance(calls, LayoutError):
            return _refused(values, calls, traced)
        if not traced:
            with suppress(_Untold):
                return self._of(values, calls, _bound(calls, values), False)
            try:
                found = self._candidates.itself(values)
            except LayoutError as error:
                return _refused(values, error, True)
            self._learn(values, calls, found)
            calls = found
        else:
            self._learn(values, self._candidates.like(values), calls)
        return self._of(values, calls, calls, True)

    def _learn(self, values: Mapping[str, int], like: Kernels, found: Kernels) -> None:
        """What the bodies of a traced configuration hold. like: the calls with terms, () = there are none."""
        for call, kernel in zip(like, found, strict=False):
            if isinstance(kernel, Kernel) and kernel.work is not None and kernel.work.held:
                seen = self._products.setdefault(id(call), _Products(call))
                seen.add(values, kernel, kernel.work)

    def _room(self, values: Mapping[str, int], like: Kernel | Unmodelled, kernel: Kernel) -> tuple[int, int, int]:
        """(most, least) bytes that a body takes by its products, and the least of the largest of them.

        By the bodies of those that decide alike. _Untold where none is traced.
        """
        seen = self._products.get(id(like))
        found = [] if seen is None else list(seen.bounds(values, kernel))
        if not found:
            raise _Untold
        _, least, held = max(found, key=operator.itemgetter(1))
        return min(most for most, *_ in found), least, held

    def _of(self, values: Mapping[str, int], calls: Kernels, known: Kernels, traced: bool) -> Legality:
        """The answer about a configuration whose calls are known. _Untold where terms do not say enough.

        calls: with terms, where it was not traced.
        """
        where = conditions_of(known, [numbered(text, values) for text in self.where])
        asked = [_ConfiguredCall(*each, traced, self.target) for each in zip(calls, known, where, strict=True)]
        rules, reason, question = self._rules(asked)
        fits = ""
        if rules is Verdict.PROVED:
            fits = next(filter(None, (self._aside(values, one) for one in asked)), "")
        row = self._priced(values, calls, traced)
        vmem = [(one.kernel, use, least) for one in asked for use, least in one.vmem()]
        largest = max(vmem, key=lambda each: each[1].used, default=None)
        shared = [use for one in asked for use in one.uses if use.name == "shared memory"]
        # a pipeline in a body is a loop of its programs
        steps = [_steps(kernel) for kernel in known if not (self._bodies and _in_body(kernel))]
        work = None if largest is None or isinstance(largest[0], Unmodelled) else largest[0].work
        kind = "" if work is None else work.kind
        return Legality(
            configuration=dict(values),
            verdict=Verdict.UNKNOWN if fits else rules,
            rules=rules,
            reason=reason or fits,
            question=question,
            vmem_bytes=None if largest is None else largest[2],
            vmem_limit=None if largest is None else largest[1].limit,
            vmem_estimate=None if largest is None else largest[1].used,
            vmem_error=COMPILED.get(kind),
            steps=None if None in steps else sum(filter(None, steps)),
            smem_bytes=max((use.least for use in shared), default=None),
            smem_limit=max((use.limit for use in shared), default=None),
            traffic=None if row is None else row["bytes"],
            time=None if row is None else row["time"],
            traced=traced,
        )

    def _rules(self, asked: Sequence[_ConfiguredCall]) -> tuple[Verdict, str, str]:
        """(the verdict of the rules, why it is not proved, the property that is not)."""
        open_: tuple[str, str] | None = None if asked else (problems.NO_PALLAS_CALL(), "")
        for one in asked:
            kernel = one.kernel
            if isinstance(kernel, Unmodelled):
                open_ = open_ or (f"{kernel.name}: {kernel.reason}", "")
                continue
            if kernel.platform != self.target.platform:
                open_ = open_ or (problems.OTHER_PLATFORM(kernel.name, kernel.platform, self.target.name), "")
                continue
            found, refuted = against(self._findings(one, kernel), True)
            if found is None:
                if self._bodies and kernel.unread:
                    open_ = open_ or (f"{kernel.name}: {kernel.unread}", "")
                continue
            said = problems.QUESTION_OF(found.question, found.subject, found.reason), found.question
            if refuted:
                return Verdict.REFUTED, *said
            open_ = open_ or said
        return (Verdict.PROVED, "", "") if open_ is None else (Verdict.UNKNOWN, *open_)

    def _findings(self, one: _ConfiguredCall, kernel: Kernel) -> Iterator[Finding]:
        """What is found of one call, until something is refuted."""
        if self._bodies:
            yield from self._of_bodies(one, kernel)
            return
        if one.over():
            yield from judge(kernel, names=(MEMORY,), target=self.target, fixes=False)
        yield from self._judged(kernel, FIRST, one.where)
        # of scratch it counts whether there is some
        told = replace(kernel, operands=(), grid=(), scratch=(), scoped=(), unread="", accesses=(), touched=None)
        alike = f"{told!r} {bool(kernel.scratch)} {bool(kernel.scoped)}", one.where
        if kernel.aliases or kernel.relations:
            every = ArrayPart(kernel.operands, kernel.grid, True)
            yield from self._once(kernel, every, (*ALONE, *LEFT, *AT_ONCE, *REST), alike)
            return
        for names, of in (
            (ALONE, parts(kernel)),
            (LEFT, parts(kernel, outputs=True, after=True)),
            (AT_ONCE, parts(kernel, outputs=True, most=2)),
        ):
            for part in of:
                less = reduced(part, kernel.grid_names, leading=names is LEFT)
                if less is part or self._once(kernel, less, names, alike):
                    yield from self._once(kernel, part, names, alike)
        if one.where is None:
            # no arrays share a buffer, and of the grid it counts which dimensions have more than one program
            rest = ArrayPart((), tuple(n if type(n) is not int else min(n, 2) for n in kernel.grid), True)
        else:
            rest = ArrayPart(kernel.operands, kernel.grid, True)
        yield from self._once(kernel, rest, REST, alike)

    def _of_bodies(self, one: _ConfiguredCall, kernel: Kernel) -> Iterator[Finding]:
        """What is found of one call by BODIES."""
        open_ = False
        for name in BODIES:
            if name == RACES and open_:
                return
            found = judge(kernel, names=(name,), target=self.target, fixes=False, where=one.where)
            yield from found
            open_ = open_ or any(f.verdict is Verdict.UNKNOWN and f.asked and f.severity == "error" for f in found)

    def _once(
        self, kernel: Kernel, part: ArrayPart, names: Sequence[str], alike: tuple[str, str | None]
    ) -> Sequence[Finding]:
        """What is found of a part by questions that rest on its grid and arrays, and not on the body.

        alike: all that the answer rests on beside the part.
        """
        where = alike[1]
        if kernel.around is not None:
            return self._judged(part.of(kernel), names, where)
        key = alike, names, part.grid, part.in_order, repr(part.operands)
        if key not in self._arrays:
            # what is proved of an array is proved of one like it, whatever its name; a finding says the name
            like = alike, names, part.unnamed()
            if like not in self._arrays:
                judged = self._judged(part.of(kernel), names, where)
                self._arrays[key] = tuple(f for f in judged if f.verdict is not Verdict.PROVED)
                if self._arrays[key]:
                    return self._arrays[key]
                self._arrays[like] = ()
            self._arrays[key] = ()
        return self._arrays[key]

    def _judged(self, kernel: Kernel, names: Sequence[str], where: str | None) -> Sequence[Finding]:
        return judge(kernel, names=names, target=self.target, only=GRID, fixes=False, where=where)

    def _aside(self, values: Mapping[str, int], one: _ConfiguredCall) -> str:
        """Why it is unknown whether a kernel fits that no rule refuses, "" = by the model it does.

        Of attention the body's products say it, since no ratio to windows and scratch bounds what it takes.
        """
        kernel, use = one.kernel, next((use for use in one.uses if use.name == "VMEM"), None)
        if one.unknown or use is None or isinstance(kernel, Unmodelled) or kernel.pipeline == "emit_pipeline":
            return one.unknown
        work = kernel.work
        if work is not None and work.kind == "attention":
            room = of_products(work.held, work.products)
            most, least, held = (room, room, work.held) if one.traced else self._room(values, one.like, kernel)
            if use.used + most <= use.limit:
                return ""
            if use.used + least <= use.limit:
                raise _Untold
            return problems.VMEM_WITH_PRODUCT(use.used, use.limit, least, held)
        kept = self.problem.kept_free(kernel)
        if fits(kernel, use.used, use.limit, kept):
            return ""
        return problems.VMEM_ABOVE_SHARE(use.used, use.limit, 100 - kept.percent, kept.source)

    def _priced(self, values: Mapping[str, int], calls: Kernels, traced: bool) -> Mapping[str, int] | None:
        """The figures by the model, None where it has none for these calls."""
        if self._bodies:
            return None
        try:
            given = self._prices.get(calls) or prices(self.problem, calls)
            if not traced:
                self._prices[calls] = given  # of all who decide alike
            if given.uncounted:
                return None
            return priced(self.problem, values, given).figures
        except (LayoutError, Undecided, ZeroDivisionError):
            return None


def numbered(text: str, values: Mapping[str, object]) -> str:
    """A condition with numbers for the parameters that it names.

    >>> numbered("0 <= prefetch2 < 2048 // tm", {"tm": 128})
    '0 <= prefetch2 < 2048 // 128'
    """
    return _NAME.sub(lambda name: str(values.get(name[0], name[0])), text)


def _bound(calls: Kernels, values: Mapping[str, int]) -> Kernels:
    """The calls with numbers. _Untold where they do not take these."""
    from layoutproof.pallas.from_jax.recorded_calls import bound

    try:
        return tuple(bound(call, values) for call in calls if isinstance(call, Kernel))
    except (LayoutError, Undecided):
        raise _Untold from None


def _steps(kernel: Kernel | Unmodelled) -> int | None:
    """The programs of one call, None = not known."""
    if isinstance(kernel, Unmodelled):
        return None
    known = [n for n in kernel.grid if isinstance(n, int)]
    return prod(known) if len(known) == len(kernel.grid) else None


def _sizes(values: Mapping[str, int], kernel: Kernel) -> list[int]:
    """The numbers that a dimension of a body's value may be: those of the configuration, and of the blocks."""
    blocks = (block.size for operand in kernel.operands for block in operand.block)
    return [*values.values(), *(size if type(size) is int else 0 for size in blocks)]


def _in_body(kernel: Kernel | Unmodelled) -> bool:
    """Whether a call is a pipeline within the body of another one."""
    return isinstance(kernel, Kernel) and kernel.pipeline == "emit_pipeline"


def _refused(values: Mapping[str, int], error: LayoutError, traced: bool, open_: Sequence[str] = ()) -> Legality:
    """The answer where the function raises. open_: the names of errors that say nothing of the configuration."""
    said = FUNCTION + error.problem
    figures = error.problem.figures if isinstance(error.problem, Message) else {}
    no = Verdict.REFUTED
    if figures.get("error") in open_:
        no, said = Verdict.UNKNOWN, problems.NO_GPU(said.rstrip(": "))
    return Legality(configuration=dict(values), verdict=no, rules=no, reason=said, traced=traced)


def _whole(name: str, value: object) -> int:
    """A whole number, one of NumPy too. LayoutError for anything else."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise LayoutError(core_problems.WHOLE_NUMBER(name, shorten(repr(value), 40))) from None
