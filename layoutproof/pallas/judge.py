"""Judge a kernel: every property of kernels asked of it, each answer with its verdict, its severity and its fix."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from types import ModuleType
from typing import Any

from layoutproof.core.budget import Budget, budget
from layoutproof.core.claim import Claim
from layoutproof.core.errors import LayoutError, Undecided, failure, listed, unknown_name
from layoutproof.core.expression import parse_condition
from layoutproof.core.finding import Finding
from layoutproof.core.folding import all_of
from layoutproof.core.message import message_of, restated
from layoutproof.core.numbers import INTS
from layoutproof.core.result import Verdict
from layoutproof.core.size import symbols_of
from layoutproof.core.term import Amount, Term, fixed, reads
from layoutproof.hardware.tpu_described import described
from layoutproof.kernel import relations
from layoutproof.kernel.contents import contradicted, with_entries_written_out
from layoutproof.kernel.kernel import Kernel, KernelTarget, Relation, Table, in_place
from layoutproof.kernel.obligation import Due, Obligation, Settled, undecided
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.pallas import problems, stored_tables
from layoutproof.pallas.assumptions import about, impossible, tables_of
from layoutproof.pallas.points import READS, with_entries
from layoutproof.pallas.possible_tables import unfounded
from layoutproof.pallas.refuted_if import refuted_if, sizes_needed, tables_needed, whatever
from layoutproof.pallas.repairs import with_fixes
from layoutproof.pallas.settled import OpenQuestion, depends, settled
from layoutproof.pallas.ways_out import with_way_out
from layoutproof.registry.catalogue import kernel_properties, kernel_property
from layoutproof.registry.hardware import other_targets, target_modules
from layoutproof.registry.read import read_layout
from layoutproof.solvers.conclude import Conclusion, How, concluded
from layoutproof.solvers.decide import ENGINES, proves
from layoutproof.solvers.guards import holds_when
from layoutproof.solvers.vacuity import unsatisfied, where_term

ANALYSABLE = "analysable"
"""The property that is unknown where the body moves data by manual DMA."""
BODY = "body not looked at"
ASKED = "of the body: "
GRID = "grid"
"""The value of `only`: the grid and the BlockSpecs, without the body."""
IDLE = "not applicable: "
"""The start of the reason where a property does not apply."""
STEPS = 1_000_000
"""The budget of one property for all its questions to a kernel, at effort 1: ten seconds or so on a machine of 2025."""
SMALL = (1, 2, 3)
"""Of sizes that are names: those of which a question is asked that is open for all of them."""
MANY = 100
"""The most questions of a property within one such budget; it has two budgets for more."""
PIPELINE = "emit_pipeline"
"""The mover of the windows of a pipeline in a body. Only rules with `PIPELINES = True` check the body of a pipeline."""
IN_ORDER = "its programs are taken to run in order, as on a TPU (no target is given, and a GPU runs them at once)"
"""The premise of a proof for a call without a platform that fails for programs that run at once."""
IN_ORDER_ON_TPU = (
    "its programs are taken to run in order, as on one core of a TPU (no target and no dimension_semantics)"
)
"""Likewise of a call with scratch, which is for a TPU and does not say in what order its programs run."""
AT_ONCE = ("parallel_writes", "alias_hazard", "initialised", "body_races")
"""The properties that programs which run at once may violate."""
LAST = frozenset({"inputs_read"})
"""Asked last: an unread input usually follows from an unwritten output, which says more."""


def judge(
    kernel: Kernel,
    *,
    names: Sequence[str] | None = None,
    only: str = "",
    target: str | KernelTarget | None = None,
    compiler: str | None = None,
    where: str | None = None,
    engine: str | None = None,
    confirm: bool = False,
    effort: int = 1,
    fixes: bool = True,
    strict_tables: bool = False,
    settled_elsewhere: Collection[str] = (),
) -> tuple[Finding, ...]:
    """A finding for everything that the properties ask of a kernel, the proved ones too.

    names: the properties, all by default; those about a target are then left out where no target of the kernel's
    platform is given, and those about the body where it is not read.  only: "grid" leaves out the body's.
    where: a condition on size symbols.  engine, confirm, effort: as for `ask`.  fixes: whether ways to repair what is
    refuted are looked for and tried.
    strict_tables: whether a violation that only some of the assumed tables have is refuted, and not unknown.
    settled_elsewhere: the properties for which no deciding assumption is looked for where they are unknown.
    Raises LayoutError for an unknown property or target, and for a target property without a target.
    """
    chip = kernel_target(target, compiler) if isinstance(target, str) else target
    kernel = meant_for(kernel, chip)
    if only == GRID:
        # a body that is not asked about is not read either
        kernel = replace(kernel, body_reader=None, unread="")
    call = _call(kernel, chip, where, (ENGINES if engine is None else (engine,), confirm, effort))
    kernel = call.kernel
    made: _Made = {}
    found: list[Finding] = []
    asked_for: list[Obligation] = []
    open_: list[OpenQuestion] = []
    over: set[str] = set()
    for name in by_default(kernel) if names is None else names:
        module = kernel_property(name)
        if _asked_around(name, kernel):
            continue
        if module.TARGET and not call.on_its_platform:
            if names is not None:
                found.append(call.foreign(name))
                asked_for.append(Obligation(kernel.name, undecided("")))
            continue
        here = call.subject(name, module)
        with budget(STEPS, effort) as steps:
            obligations = call.obligations(name, module, here, steps)
            answers_ = [call.finding(name, kernel, obligation) for obligation in obligations]
        if steps.left < 0:
            over.add(name)
        for position, (obligation, (finding, _)) in enumerate(zip(obligations, answers_, strict=True)):
            about_it, sized, whole = _rests_on(kernel, name, obligation, finding, where)
            elsewhere = name in settled_elsewhere and finding.verdict is Verdict.UNKNOWN
            if (about_it or sized or whole) and not elsewhere:
                again = _CallQuestion(call, name, module, position, obligation.subject, here is call.reading, made)
                how_again = (again.finding, again.holds, again.whatever)
                open_.append(OpenQuestion(len(found), *how_again, about_it, about_body(name), sized, whole))
            found.append(finding)
        asked_for += [obligation for _, obligation in answers_]
    for position, finding in _settled(kernel, found, open_, strict_tables, effort).items():
        found[position] = finding
    if not strict_tables or any(table.contents is not None for table in every_table(kernel)):
        pairs = zip(found, asked_for, strict=True)
        found = [refuted_if(kernel, finding, asked, call.how) for finding, asked in pairs]
    # tables that are assumed to be of a size may be none of such a small one
    if call.symbols and not call.nothing and not (kernel.runtime and every_table(kernel)):
        found = [_at_small_sizes(call, f, a, strict_tables) for f, a in zip(found, asked_for, strict=True)]
    if fixes and not call.nothing and any(f.verdict is Verdict.REFUTED for f in found):
        found = with_fixes(kernel, list(zip(found, asked_for, strict=True)), _asked_of_repairs(call), call.answers)
    platform = kernel.platform
    return tuple(with_way_out(kernel, f, settled_by(f.question, platform), f.question in over) for f in found)


def _asked_of_repairs(call: _Call) -> list[str]:
    """The properties that a repaired kernel has to have. A bug of what is below the kernel is none of the kernel, and
    no edit of it is asked to end it."""
    kernel = call.kernel
    names = [name for name in by_default(kernel) if not _asked_around(name, kernel)]
    modules = {name: kernel_property(name) for name in names}
    asked = [name for name in names if call.on_its_platform or not modules[name].TARGET]
    return [name for name in asked if getattr(modules[name], "REPAIRED", True)]


def _at_small_sizes(call: _Call, finding: Finding, asked: Obligation, strict_tables: bool) -> Finding:
    """The finding at small sizes, where that decides more; it names these sizes where the user named none."""
    small = _of_small_sizes(call.kernel, finding, asked, call.condition, call.chip, call.how)
    nobody_said = small is not finding and call.where is None and not strict_tables
    return sizes_needed(small, call.kernel.runtime) if nobody_said else small


_Made = dict[tuple[str, Kernel], tuple[Due, ...]]


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with all that its questions have in common.

    kernel: with the entries of its tables written out.  reading: as its index maps read them.  bound: under the
    condition on sizes, on which rests what a body does in a program.  where: that condition, as text and as a term.
    nothing: why nothing can be said of it, "" = something can.  open_tables: likewise of what reads tables.
    """

    kernel: Kernel
    reading: Kernel
    bound: Kernel
    chip: KernelTarget | None
    where: str | None
    condition: Term | None
    symbols: tuple[str, ...]
    how: How
    nothing: str
    open_tables: str

    @property
    def on_its_platform(self) -> bool:
        """Whether there is a target, and it knows kernels for this platform."""
        return self.chip is not None and self.chip.platform == self.kernel.platform

    def subject(self, name: str, module: ModuleType) -> Kernel:
        """The call as a property sees it."""
        return self.bound if about_body(name) else self.reading if getattr(module, "READS", False) else self.kernel

    def foreign(self, name: str) -> Finding:
        """The answer about a target of another platform. LayoutError where none is given."""
        if self.chip is None:
            raise LayoutError(problems.NEEDS_TARGET(name, ", ".join(kernel_targets())))
        return Finding(name, self.kernel.name, foreign(self.kernel, self.chip), verdict=Verdict.UNKNOWN)

    def obligations(self, name: str, module: ModuleType, here: Kernel, steps: Budget) -> list[Obligation]:
        """All that a property asks, open where nothing can be said; for many of them the budget has more steps."""
        dues = _obligations(module, here, self.chip)
        if len(dues) > MANY:
            steps.more(STEPS * self.how[2])
        asked = [_made(due, here) for due in dues]
        if self.nothing:
            return [replace(one, claim=undecided(self.nothing)) for one in asked]
        if not self.open_tables:
            return asked
        # a claim that reads no table holds for all tables
        unknown = undecided(self.open_tables)
        return [replace(one, claim=unknown) if _may_read(here, name, one) else one for one in asked]

    def finding(self, name: str, kernel: Kernel, asked: Obligation, sizes: str = "") -> tuple[Finding, Obligation]:
        """The answer to one obligation, and whose it is. sizes: a condition on them in place of the call's."""
        return _finding(name, kernel, asked, self.within(sizes), self.symbols, self.how)

    def within(self, sizes: str) -> Term | None:
        """The condition on sizes under which is asked. sizes: another one than the call's, "" = that."""
        return where_term(sizes, self.symbols) if sizes else self.condition

    def answers(self, changed: Kernel, name: str) -> list[tuple[Finding, Obligation]]:
        """A property's answers on the call as a fix has changed it."""
        changed = _within(changed, self.where, self.condition) if about_body(name) else changed
        with budget(STEPS, self.how[2]):
            made_of = [_made(due, changed) for due in _obligations(kernel_property(name), changed, self.chip)]
            return [self.finding(name, changed, obligation) for obligation in made_of]


@dataclass(frozen=True, slots=True)
class _CallQuestion:
    """One question about a call, to be asked again of the call with more assumed.

    position, subject: of its obligation among those of the property.  as_read: whether it is about maps as they read
    tables.  made: the obligations of the kernel that was last asked about, of each property that was asked of it.
    """

    call: _Call
    name: str
    module: ModuleType
    position: int
    subject: str
    as_read: bool
    made: _Made

    def posed(self, assumed: Kernel) -> Obligation | None:
        """The obligation of another kernel; None where that has no such one."""
        # questions about reads are asked of the maps that read; where these are the same, it is the same kernel, of
        # which the body is walked once
        operands = self.call.reading.operands
        asked_of = replace(assumed, operands=operands) if self.as_read and assumed.operands != operands else assumed
        if (self.name, assumed) not in self.made:
            # one kernel is asked many questions before the next
            if any(kernel is not assumed for _, kernel in self.made):
                self.made.clear()
            self.made[self.name, assumed] = _obligations(self.module, asked_of, self.call.chip)
        more = self.made[self.name, assumed]
        if self.position >= len(more):
            return None
        new = _made(more[self.position], asked_of)
        # a walk names where it went wrong, and the whole call where nothing does
        return new if new.subject in (self.subject, assumed.name) else None

    def finding(self, assumed: Kernel, sizes: str) -> Finding | None:
        """The answer of another kernel, under a condition on sizes; None where it has no such question."""
        asked = self.posed(assumed)
        return None if asked is None else self.call.finding(self.name, assumed, asked, sizes)[0]

    def whatever(self, assumed: Kernel, sizes: str) -> bool:
        """Whether it is violated by another kernel whatever its tables hold, under a condition on sizes."""
        asked = self.posed(assumed)
        if asked is None or asked.graver or not isinstance(asked.claim, Claim):
            return False
        claim = replace(asked.claim, where=self.call.within(sizes), symbols=self.call.symbols)
        return whatever(claim, self.call.how, sized=True)

    def holds(self, assumed: Kernel, sizes: str) -> bool:
        """Whether it is proved of another kernel, under a condition on sizes."""
        asked = self.posed(assumed)
        return asked is not None and _proved(asked, self.call.within(sizes), self.call.symbols, self.call.how)


def _call(kernel: Kernel, chip: KernelTarget | None, where: str | None, how: How) -> _Call:
    """The data that the questions about a call share."""
    reading = stored_tables.seen_by_maps(kernel)
    kernel = with_entries_written_out(reading)
    symbols, effort = sizes_of(kernel), how[2]
    condition = None if where is None else where_term(where, symbols)
    most = [Term("<=", Term("name", name), Term("int", n)) for name, n in kernel.largest().items()]
    condition = all_of([*most, *([] if condition is None else [condition])]) if most else condition
    nothing = "" if where is None else unsatisfied(where, effort)
    for against in (contradicted, impossible):
        nothing = nothing or next((f"vacuous: {why}" for why in map(against, every_table(kernel)) if why), "")
    open_tables = "" if nothing else unfounded(kernel, where, symbols, effort)
    if open_tables.startswith("vacuous"):
        nothing = open_tables
    bound = _within(kernel, where, condition)
    return _Call(kernel, reading, bound, chip, where, condition, symbols, how, nothing, open_tables)


def _settled(
    kernel: Kernel, found: Sequence[Finding], open_: Sequence[OpenQuestion], strict_tables: bool, effort: int
) -> dict[int, Finding]:
    """`settled`; a budget that is spent, or a failure of ours in it, leaves open what it was asked about."""
    try:
        with budget(STEPS, effort):
            return settled(kernel, found, open_, strict_tables)
    except Exception as error:
        names = [table.name for table in every_table(kernel)]
        why = message_of(error) if isinstance(error, Undecided) else failure(error)
        return {o.position: depends(found[o.position], names, why) for o in open_}


def by_default(kernel: Kernel) -> Sequence[str]:
    """The questions asked of a kernel by default, in order.

    Where all of its body is modelled, the questions about it judge what it moves by manual DMA.
    """
    body = kernel.body_reader is not None
    told = body and bool(kernel.manual_dma) and not kernel.body.unmodelled
    return [name for name in in_order(body) if name != ANALYSABLE or not told]


def in_order(body: bool = False) -> Sequence[str]:
    """The default questions, in order: every property, and those about the body where `body` is true."""
    asked = (name for name in kernel_properties() if body or not about_body(name))
    return sorted(asked, key=LAST.__contains__)


def about_body(name: str) -> bool:
    """Whether a property is about what a kernel's body does, and not about its grid and BlockSpecs."""
    return name in kernel_properties() and bool(getattr(kernel_property(name), "BODY", False))


def settled_by(name: str, platform: str = "tpu") -> str:
    """The advice that makes a question about the body provable, in words; "" for other properties."""
    asked = kernel_property(name)
    own = getattr(asked, "SETTLED_BY_ON_GPU", "") if platform == "mosaic_gpu" else ""
    return str(own or getattr(asked, "SETTLED_BY", ""))


def worst_of_body(kernel: Kernel) -> tuple[Finding, ...]:
    """Of each question about the body, without those about a target, the worst finding that decides, unless proved."""
    if kernel.body_reader is None:
        return (Finding("body", kernel.name, problems.NOT_READ(), verdict=Verdict.UNKNOWN),)
    asked = [name for name in by_default(kernel) if about_body(name) and not kernel_property(name).TARGET]
    worst: dict[str, Finding] = {}
    for finding in judge(kernel, names=asked, fixes=False):
        known = worst.get(finding.question)
        if finding.severity == "error" and (known is None or finding.verdict < known.verdict):
            worst[finding.question] = finding
    return tuple(found for found in worst.values() if found.verdict is not Verdict.PROVED)


def advice(findings: Sequence[Finding]) -> tuple[str, str]:
    """All that some findings of one call need, in one line that `--assume` takes, and in one for `--where`.

    "" for nothing. Each was tried; of a size the smallest bound is the one under which all of them hold. Needs of
    warnings alone are left out: right callers need not keep to them. An aliased output holds the input's values in
    blocks that no program has, so its table of blocks may leave some out.
    """
    findings = [finding for finding in findings if finding.severity == "error"]
    needs = "; ".join(dict.fromkeys(text for finding in findings for text in finding.needs))
    least: dict[tuple[str, str], int] = {}
    for name, how, most in (part.split(" ") for f in findings if f.where for part in f.where.split(" and ")):
        least[name, how] = min(int(most), least.get((name, how), int(most)))
    return needs, " and ".join(f"{name} {how} {most}" for (name, how), most in sorted(least.items()))


def with_parts(names: Sequence[str]) -> tuple[str, ...]:
    """These properties of kernels, and those that each of them stands for where it is asked by its name.

    >>> with_parts(["revisits", "legal_for_target"])[:3]
    ('revisits', 'legal_for_target', 'block_shape')
    """
    return tuple(dict.fromkeys(part for name in names for part in (name, *getattr(kernel_property(name), "WITH", ()))))


def scope(
    names: Sequence[str] | None, verdict: Verdict = Verdict.PROVED, body: Sequence[str] = (), only: str = ""
) -> str:
    """The scope of an answer about a kernel, in words: the questions, all properties by default, and their subject.

    body: the questions about the body that were asked beside.  only: the only part that was asked, "" = all.

    >>> scope(None)
    'grid and BlockSpecs proved; body not looked at'
    >>> scope(None, body=["body_in_bounds"])
    'grid and BlockSpecs proved; of the body: body_in_bounds'
    >>> scope(["revisits"])
    'revisits proved of the grid and BlockSpecs; body not looked at'
    >>> scope(["body_in_bounds"])
    'body_in_bounds proved of the body'
    """
    if names and all(map(about_body, names)):
        return f"{listed(names)} proved of the body" if verdict is Verdict.PROVED else "of the body"
    beside_ = f"{ASKED}{', '.join(body)}" if body else f"body not asked (--only {only})" if only else BODY
    if verdict is not Verdict.PROVED:
        return beside_
    said = f"{listed(names)} proved of the grid and BlockSpecs" if names else "grid and BlockSpecs proved"
    return f"{said}; {beside_}"


def beside(names: Sequence[str]) -> tuple[str, ...]:
    """The questions to ask beside some properties, so that manual DMA in the body leaves their answer unknown.

    A target's rules for windows and memory do not depend on the body.
    """
    rests = any(not kernel_property(name).TARGET and not about_body(name) for name in names)
    return (ANALYSABLE,) if rests and ANALYSABLE not in names else ()


def answer(name: str, kernel: Kernel, **how: Any) -> Finding:
    """One answer to one property of a kernel. how: as for `judge`."""
    chip = kernel_target(how["target"], how.pop("compiler", None)) if isinstance(how.get("target"), str) else None
    how = how if chip is None else how | {"target": chip}
    kernel = meant_for(kernel, chip)
    result = summary(name, kernel, judge(kernel, names=with_parts([name]), **how))
    more: dict[str, Any] = {}
    if chip is not None and "(rules of" in chip.compiler:
        more["figures"] = {**result.figures, "compiler": chip.compiler}
    if chip is not None and chip.platform != kernel.platform and result.verdict is Verdict.PROVED:
        more |= {"verdict": Verdict.UNKNOWN, "reason": foreign(kernel, chip), "decided_by": ""}
    elif result.verdict is Verdict.PROVED or result.reason.startswith(IDLE):
        held = judge(kernel, names=beside([name]))
        result, more = (summary(name, kernel, held), {}) if held else (result, more)
    verdict = more.get("verdict", result.verdict)
    return replace(result, question=name, scope=scope([name], verdict), **more)


def meant_for(kernel: Kernel, chip: KernelTarget | None) -> Kernel:
    """A call as a target sees it: one that does not say what it is for is for the target's platform.

    Without a target it is for a TPU, whose programs run one after the other.
    """
    if chip is None or not kernel.plain or kernel.platform == chip.platform:
        return kernel
    if chip.platform == "triton":
        return kernel.changed(platform=chip.platform)
    # the body was read as a TPU runs it
    unread = problems.READ_AS_TPU(chip.platform)
    return replace(kernel, platform=chip.platform, body_reader=None, unread=unread if kernel.body_reader else "")


def unread(kernel: Kernel) -> str:
    """Why nothing is told of a body that a call has, and how to ask less; "" where it is read, or there is none.

    >>> unread(Kernel("k", (4,), ("g0",), (), platform="triton", unread="bodies of kernels for triton are not read"))
    'what the body does: bodies of kernels for triton are not read; --only grid asks less'
    """
    less = f"--only {GRID} asks less"
    return problems.BODY_UNREAD(kernel.unread, less) if kernel.unread else ""


def premise(kernel: Kernel, findings: Sequence[Finding], **how: Any) -> str:
    """The premise of a call that is judged without a target, in words: that its programs run in order.

    "" where the call itself gives the order, or has features of a TPU and no scratch that carries state between
    programs; where nothing is proved; and where the proofs also hold for programs that run at once, as on a GPU: then
    nothing depends on it. how: as for `judge`.
    """
    hands_on = kernel.platform == "tpu" and kernel.pipeline == "pallas_call" and kernel.scratch and not kernel.semantics
    held = {f.question for f in findings if f.verdict is Verdict.PROVED and f.severity == "error"}
    if not (kernel.plain or hands_on) or all(extent == 1 for extent in kernel.grid) or not held:
        return ""
    at_once = replace(kernel, semantics=("parallel",) * len(kernel.grid))
    # a question that has nothing to ask of programs that run in order may have of others
    asked = [name for name in AT_ONCE if name in held or name not in {f.question for f in findings}]
    asked = [name for name in asked if not about_body(name) or not (how.get("only") or kernel.body_reader is None)]
    told = judge(at_once, names=asked, fixes=False, **how)
    words = IN_ORDER if kernel.plain else IN_ORDER_ON_TPU
    return words if any(f.severity == "error" and f.verdict is not Verdict.PROVED for f in told) else ""


def foreign(kernel: Kernel, chip: KernelTarget) -> str:
    """Why a target says nothing of a kernel, "" where it does."""
    if chip.platform == kernel.platform:
        return ""
    return problems.FOREIGN(kernel.platform, chip.name, chip.platform)


def unasked(name: str, kernel: Kernel) -> Finding:
    """The answer of a property that does not apply to a kernel: its own `unasked`, or else unknown."""
    settled = getattr(kernel_property(name), "unasked", None)
    if _asked_around(name, kernel):
        return Finding(
            name,
            str(kernel),
            problems.BODY_AROUND(IDLE),
            verdict=Verdict.UNKNOWN,
        )
    said = undecided(problems.NOTHING_OF_IT()) if settled is None else settled(kernel)
    if said.verdict is not Verdict.PROVED:
        said = replace(said, reason=restated(f"{IDLE}{said.reason}", said.reason))
    return Finding(name, str(kernel), said.reason, verdict=said.verdict, decided_by=said.by, hint=said.hint)


def _asked_around(name: str, kernel: Kernel) -> bool:
    """Whether a question is asked of the body around a pipeline, in which it is written out, and not of its own."""
    return kernel.pipeline == PIPELINE and about_body(name) and not getattr(kernel_property(name), "PIPELINES", False)


def summary(name: str, kernel: Kernel, findings: Sequence[Finding]) -> Finding:
    """One answer for the whole kernel: its worst finding; those that are info count where nothing weightier is."""
    weighty = [f for f in findings if f.severity != "info"] or list(findings)
    if not weighty:
        return unasked(name, kernel)
    worst = min(weighty, key=lambda f: f.verdict)
    reason = worst.reason
    if reason and worst.question != name:
        reason = restated(f"{worst.question}: {reason}", reason, part=worst.question)
    # a question asked by name decides, whatever its severity among others
    return replace(worst, question=name, subject=str(kernel), reason=reason, severity="error")


def kernel_of(value: object, asked: str) -> Kernel:
    """The kernel that a value is or describes; `asked` is what wants to know. LayoutError for a layout of arrays."""
    read = value if isinstance(value, Kernel) else read_layout(value)
    kernel = read if isinstance(read, Kernel) else getattr(read, "kernel", None)
    if isinstance(kernel, Kernel):
        return kernel
    raise LayoutError(problems.ABOUT_KERNEL(asked, read))


def conditions_on(kernel: Kernel, texts: Sequence[str]) -> str | None:
    """Those of some conditions on sizes that speak of this kernel's own, as one; None where none does."""
    known = set(sizes_of(kernel))
    parts = [f"({text})" for text in texts if set(parse_condition(text).names()) <= known]
    return " and ".join(parts) if parts else None


def conditions_of(calls: Sequence[object], texts: Sequence[str]) -> list[str | None]:
    """`conditions_on` of each call. LayoutError for a condition that speaks of no call."""
    held = [conditions_on(call, texts) if texts and isinstance(call, Kernel) else None for call in calls]
    stray = [text for text in texts if all(said is None or f"({text})" not in said for said in held)]
    if stray:
        sizes = dict.fromkeys(name for call in calls if isinstance(call, Kernel) for name in sizes_of(call))
        have = f"they have {', '.join(sizes)}" if sizes else "they have none"
        raise LayoutError(problems.CONDITION_SIZES(have), text=stray[0])
    return held


def sizes_of(kernel: Kernel) -> tuple[str, ...]:
    """The size symbols of a kernel: of its grid, arrays, blocks, index maps and tables.

    Raises Undecided where it has parameters that are not bound.
    """
    extents: list[Amount] = list(kernel.grid)
    names: list[str] = []
    for operand in kernel.operands:
        extents += [*operand.dims, *(block.size for block in operand.block)]
        names += [n for term in operand.terms() for n in term.names() if n not in kernel.grid_names]
    for table in every_table(kernel):
        extents += [*table.dims, *(e for e in (table.low, table.high, table.first) if e is not None)]
    return tuple(dict.fromkeys((*symbols_of(fixed(extents)), *names)))


def kernel_targets() -> tuple[str, ...]:
    """The names of all targets that know kernels and are built in."""
    return tuple(name for module in _own_targets() for name in module.KERNEL_TARGETS)


def kernel_target(name: str, compiler: str | None = None) -> KernelTarget:
    """A target by name, as its module spells it or takes it. LayoutError lists the known ones.

    >>> kernel_target("TPU v5 lite").name
    'v5e'
    """
    found = _target_in(_own_targets(), name, compiler) or _target_in(_others_targets(name), name, compiler)
    if found is not None:
        return found
    if why := described(name):
        raise LayoutError(why)
    added = [added for module in _others_targets() for added in module.KERNEL_TARGETS]
    raise unknown_name("target", name, (*kernel_targets(), *added), other_names())


def other_names() -> dict[str, str]:
    """Names in use of targets other than their own, with the target that each is, or that it most likely means."""
    return {other: ours for module in _own_targets() for other, ours in module.OTHER_NAMES.items()}


def _target_in(modules: Sequence[Any], name: str, compiler: str | None) -> KernelTarget | None:
    found: KernelTarget
    for module in modules:
        if name in module.KERNEL_TARGETS:
            found = module.kernel_target(name, compiler)
            return found
    for module in modules:
        try:
            found = module.kernel_target(name)
        except LayoutError:
            continue
        return found if compiler is None else module.kernel_target(name, compiler)
    return None


def target_page(name: str) -> str:
    """The page of a target, as `explain` shows it; of another name that it has, too. LayoutError for others."""
    ours = name if name in kernel_targets() else kernel_target(name).name
    module = next((module for module in _own_targets() if ours in module.KERNEL_TARGETS), None)
    if module is None:
        raise unknown_name("target", name, kernel_targets())
    text: str = module.page(name)
    return text


@lru_cache(maxsize=1)
def _own_targets() -> tuple[ModuleType, ...]:
    return tuple(module for module in target_modules() if hasattr(module, "KERNEL_TARGETS"))


def _others_targets(name: str | None = None) -> tuple[Any, ...]:
    return tuple(module for module in other_targets(name) if hasattr(module, "KERNEL_TARGETS"))


def _of_small_sizes(
    kernel: Kernel, found: Finding, asked: Obligation, condition: Term | None, chip: KernelTarget | None, how: How
) -> Finding:
    """An unknown of a body for all sizes, refuted at small ones: then all of its numbers are known."""
    names = sizes_of(kernel)
    if found.verdict is not Verdict.UNKNOWN or found.severity != "error" or not about_body(found.question):
        return found
    module = kernel_property(found.question)
    for n in SMALL:
        sizes = dict.fromkeys(names, n)
        if condition is not None and not condition.evaluate(sizes, INTS):
            continue
        with suppress(LayoutError, Undecided), budget(STEPS, how[2]):
            small = kernel.sized(sizes)
            obligations = [_made(due, small) for due in _obligations(module, small, chip)]
            alike = [obligation for obligation in obligations if obligation.subject == asked.subject]
            for obligation in alike:
                if len(alike) > 1 and obligation.source != asked.source:
                    continue
                one, _ = _finding(found.question, small, obligation, None, (), how)
                if one.verdict is Verdict.REFUTED:
                    said = ", ".join(f"{name} = {size}" for name, size in sizes.items())
                    shown = {"sizes": sizes, **(one.counterexample or {})}
                    told = restated(f"with {said}: {one.reason}", one.reason, sizes=said)
                    return replace(one, reason=told, counterexample=shown)
    return found


def _within(kernel: Kernel, where: str | None, condition: Term | None) -> Kernel:
    """The kernel under a condition on its sizes, which its body's claims then rest on."""
    if where is None or condition is None:
        return kernel
    return replace(kernel, relations=(*kernel.relations, Relation(where, condition)))


def _obligations(module: ModuleType, kernel: Kernel, target: KernelTarget | None) -> tuple[Due, ...]:
    kernel = in_place(kernel) if getattr(module, "BODY", False) else kernel
    try:
        return tuple(module.obligations(kernel, target) if module.TARGET else module.obligations(kernel))
    except Undecided as reason:
        return (Obligation(kernel.name, undecided(message_of(reason)), source=kernel.source),)
    except Exception as error:
        return (Obligation(kernel.name, undecided(failure(error)), source=kernel.source),)


def _made(due: Due, kernel: Kernel) -> Obligation:
    try:
        return due if isinstance(due, Obligation) else due()
    except Undecided as reason:
        return Obligation(kernel.name, undecided(message_of(reason)), source=kernel.source)
    except Exception as error:
        return Obligation(kernel.name, undecided(failure(error)), source=kernel.source)


def _finding(
    name: str, kernel: Kernel, asked: Obligation, where: Term | None, symbols: tuple[str, ...], how: How
) -> tuple[Finding, Obligation]:
    """The answer to one obligation, and the obligation; an internal error leaves it unknown."""
    try:
        found = _answer(name, kernel, asked, where, symbols, how)
    except Exception as error:
        why = message_of(error) if isinstance(error, Undecided) else failure(error)
        unknown = replace(asked, claim=undecided(why), figures={}, graver=())
        found = _answer(name, kernel, unknown, None, (), how)
    if found.verdict is Verdict.PROVED:
        return found, asked
    graver = [_finding(name, kernel, _made(more, kernel), where, symbols, how) for more in asked.graver]
    worst = min(graver, key=lambda answer: answer[0].verdict, default=(found, asked))
    return (found, asked) if worst[0].verdict is Verdict.PROVED else worst


def _proved(asked: Obligation, where: Term | None, symbols: tuple[str, ...], how: How) -> bool:
    """Whether the answer to one obligation is that it is proved."""
    claim = asked.claim
    if Verdict.PROVED in asked.leaves_open or _empty(claim):
        return False
    if isinstance(claim, Settled):
        return claim.verdict is Verdict.PROVED
    try:
        return proves(replace(claim, where=where, symbols=symbols) if symbols else claim, *how)
    except Exception:
        return False


def _empty(claim: Claim | Settled) -> bool:
    """Whether a claim speaks of no program, or of no element."""
    return any(type(e) is int and e <= 0 for space in getattr(claim, "points", {}).values() for e in space.extents)


def _answer(
    name: str, kernel: Kernel, asked: Obligation, where: Term | None, symbols: tuple[str, ...], how: How
) -> Finding:
    read = _tables(kernel, asked) if asked.reads else ()
    assumed = tuple(text for table in read for text in table.assumptions())
    related = _related(kernel, name, asked, read)
    assumed += tuple(relation.text for relation in related)
    claim = asked.claim
    if _empty(claim):
        # no program, nothing read or written: `grid_positive` says what is wrong with that
        claim = undecided(problems.VACUOUS())
    figures, open_ = asked.figures, ""
    if isinstance(claim, Settled):
        refuted = claim.verdict is Verdict.REFUTED
        point = dict(claim.counterexample) if refuted else None
        said = Conclusion(claim.verdict, claim.reason, point, claim.by, claim.hint)
    else:
        claim = replace(claim, where=where, symbols=symbols) if symbols else claim
        said = concluded((claim,), how)
        open_ = asked.leaves_open.get(said.verdict, "")
    if said.verdict is Verdict.REFUTED:
        changing = stored_tables.why(kernel, tuple(table.name for table in read))
        by_tables = _of_some_tables(name, kernel, asked, related, said.counterexample or {})
        # a rule's answer is first of all about the tables within the assumptions
        open_ = (by_tables or changing) if isinstance(claim, Settled) else (changing or open_ or by_tables)
    if open_:
        said = said.left_open(open_)
    elif said.verdict is Verdict.REFUTED and isinstance(claim, Claim):
        if said.counterexample and kernel.tables:
            said = replace(said, counterexample=with_entries(kernel, claim, said.counterexample))
        if symbols and not assumed and not kernel.runtime:
            figures = {**figures, **holds_when((claim,), where)}
    place = asked.source or kernel.source
    return said.finding(name, asked.subject, figures, place, severity=asked.severity, assumes=assumed)


def _related(kernel: Kernel, name: str, asked: Obligation, read: Sequence[Table]) -> list[Relation]:
    """The relations on which an answer may rest: about the body all, elsewhere those that read one of its tables.

    A rule that settles a question of windows without an engine, and an info, rests on none.
    """
    if asked.severity == "info" or (isinstance(asked.claim, Settled) and not about_body(name)):
        return []
    names = {table.name for table in read}
    anywhere = about_body(name) and not asked.tables
    found = [(relation, relations.tables_of(relation)) for relation in kernel.relations]
    return [relation for relation, of in found if of and (anywhere or names.intersection(of))]


def _of_some_tables(
    name: str, kernel: Kernel, asked: Obligation, related: Sequence[Relation], point: Mapping[str, object]
) -> str:
    """Why a refutation does not count: its tables may violate the assumed relations, which were not checked.

    It does count where no entry says that it happens, and where each table has the entries that do.

    The entries that a claim reads keep the bounds of parts of tables; for the body's claims these are a range or a
    case.
    """
    if isinstance(asked.claim, Claim):
        by_maps = [] if about_body(name) else [t for o in about(kernel, asked.subject) for t in o.terms()]
        related = [one for one in related if one.bound is None or not relations.ranged(one, reads(by_maps))]
    shown = READS in point or not (asked.reads and isinstance(asked.claim, Claim))
    if related and about_body(name) and shown and not _needs(kernel, point):
        return ""
    names = dict.fromkeys(table for relation in related for table in relations.tables_of(relation))
    return problems.TABLE_RELATIONS(listed(list(names))) if related else ""


def _needs(kernel: Kernel, point: Mapping[str, object]) -> bool:
    """Whether a violation needs entries of tables that not all tables have."""
    return bool(tables_needed(kernel, Finding("", "", counterexample=point)))


def _rests_on(
    kernel: Kernel, name: str, asked: Obligation, found: Finding, where: str | None
) -> tuple[tuple[Table, ...], bool, bool]:
    """Which assumptions could decide an open question: tables, sizes, or a run of the whole rule anew."""
    open_ = found.verdict is Verdict.UNKNOWN
    sized = where is None and bool(kernel.runtime)
    if isinstance(asked.claim, Settled):
        told = every_table(kernel) or sized
        open_ = open_ or READS in (found.counterexample or ())
        whole = open_ and about_body(name) and bool(told) and not kernel.body.unmodelled
        return (), sized and whole, whole
    if found.verdict is not Verdict.REFUTED and not (open_ and asked.leaves_open):
        return (), False, False
    tables = _tables(kernel, asked) if asked.reads else ()
    return tuple(table for table in tables if not stored_tables.is_changing(table)), sized, False


def _may_read(kernel: Kernel, name: str, asked: Obligation) -> bool:
    """Whether an answer may rest on what tables hold: of the body's, all that neither a claim nor a rule settles."""
    if isinstance(asked.claim, Settled) and (about_body(name) or asked.claim.by == "rule"):
        return asked.claim.by != "rule"
    return asked.reads and bool(_tables(kernel, asked))


def _tables(kernel: Kernel, asked: Obligation) -> tuple[Table, ...]:
    """The tables on which an answer may depend; of where devices are there is nothing to assume."""
    if asked.tables:
        named = [table for table in every_table(kernel) if table.name in asked.tables]
    else:
        named = list(tables_of(kernel, about(kernel, asked.subject)))
    return tuple(table for table in named if not table.place and table.contents is None)
