"""One Pallas call with everything that was found out about it, and what all that means together.

A call is refuted when something of severity `error` is, and unknown when it could not be modelled, when nothing was
asked of it, when a target was given that knows nothing of its platform, when its body was asked about and not read, or
when something that would be an error is unknown. A question that can at worst be a warning or an info, refuted or
unknown, is shown and counted as that, and decides nothing; if it is unknown and the only one, so is the call. A
question that only the compiler decides (`vmem_total`) is such an info: shown, counted as not asked, never as proved.
The line of a finding, the counts and the exit code all go by `word`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from layoutproof.core.errors import LayoutError, Undecided, failure
from layoutproof.core.finding import ACCEPTED, Finding, split_place, unknown, word
from layoutproof.core.finding import exit_code as rule
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.pallas import problems
from layoutproof.pallas.compiled import Compiled
from layoutproof.pallas.judge import (
    about_body,
    beside,
    by_default,
    foreign,
    judge,
    kernel_target,
    meant_for,
    premise,
    scope,
    unasked,
    unread,
    with_parts,
)
from layoutproof.pallas.replay import Replay


@dataclass(frozen=True, slots=True)
class Judged:
    """One call, its findings (the proved ones too), and the hardware that they are about.

    target, compiler: as the target spells them, "" where none was given.  foreign: why the target says nothing of
    this call, "" where it does.  asked: the properties that were asked for, () = all.
    only: "grid" where the body was not asked.  accepted: why a call that is unknown as a whole is accepted, "" = it is
    not.  replay: the outcome of running it, None where that was not asked; `overruled` judges it.
    where: the condition on its sizes under which it was judged, "" = none.
    compiled: the compiler's report on it, for each target that was asked; findings judge it.
    premise: an assumption that was made and not stated, "" = none.
    among: whether some default questions were left out.
    """

    call: Kernel | Unmodelled
    findings: tuple[Finding, ...] = ()
    target: str = ""
    compiler: str = ""
    foreign: str = ""
    asked: tuple[str, ...] = ()
    only: str = ""
    accepted: str = ""
    replay: Replay | None = None
    where: str = ""
    compiled: tuple[Compiled, ...] = ()
    premise: str = ""
    among: bool = False

    @property
    def scope(self) -> str:
        """The scope and the premises of the verdict, in words; "" where the call could not be modelled."""
        if isinstance(self.call, Unmodelled):
            return ""
        said = scope(self.asked, self.verdict, self.of_body(), self.only)
        return "; ".join(filter(None, (said, self.premise)))

    @property
    def manual_dma(self) -> tuple[str, ...]:
        """The names of the operands that the body moves by manual DMA."""
        return () if isinstance(self.call, Unmodelled) else tuple(o.name for o in self.call.manual_dma)

    @property
    def verdict(self) -> Verdict:
        """The worst that is found of it, by the rule above."""
        found = min((finding.verdict for finding in self.decisive()), default=Verdict.PROVED)
        return Verdict.UNKNOWN if found is Verdict.PROVED and self.only_accepted else found

    @property
    def only_accepted(self) -> bool:
        """Whether something is unknown, and all of it that would decide is accepted."""
        decisive = self.decisive()
        some = bool(self.accepted) or any(_accepted(f) and f.severity == "error" for f in self.findings)
        return some and all(f.verdict is Verdict.PROVED for f in decisive)

    def whole(self) -> Finding | None:
        """The unknown that the call is as a whole, None where it was judged."""
        if isinstance(self.call, Unmodelled):
            return _open(self.call, self.call.reason)
        if self.foreign or not (self.findings or self.among):
            return _open(self.call, self.foreign or problems.NOTHING_ASKED())
        return _open(self.call, self.unread) if self.unread else None

    @property
    def unread(self) -> str:
        """Why the body was not read, and how to ask less; "" where it was read, or was not asked about."""
        return "" if isinstance(self.call, Unmodelled) or self.asked or self.only else unread(self.call)

    def decisive(self) -> tuple[Finding, ...]:
        """The findings that decide the verdict, and the exit code, by the rule above."""
        whole = self.whole()
        open_ = (whole,) if whole is not None and not self.accepted else ()
        left = tuple(f for f in self.findings if not _accepted(f))
        errors = tuple(f for f in left if f.severity == "error")
        if whole is not None or any(f.severity == "error" for f in self.findings):
            return (*errors, *open_)
        # where nothing weightier was asked, an unknown is an unknown
        return tuple(replace(f, severity="error") for f in left if f.verdict is Verdict.UNKNOWN)

    def word(self, finding: Finding) -> str:
        """The word under which one of its findings is counted: a verdict, or its severity below an error, or `IDLE`.

        Where nothing weightier was asked, an unknown is an unknown.
        """
        if _accepted(finding):
            return ACCEPTED
        alone = finding.verdict is Verdict.UNKNOWN and all(f.severity != "error" for f in self.findings)
        return word(replace(finding, severity="error") if alone else finding)

    def proved(self) -> tuple[str, ...]:
        """The properties of which every finding is proved."""
        names = dict.fromkeys(f.question for f in self.findings)
        return tuple(n for n in names if all(f.verdict is Verdict.PROVED for f in self.of(n)))

    def of_body(self) -> tuple[str, ...]:
        """The questions about the body that were asked."""
        return tuple(dict.fromkeys(f.question for f in self.findings if f.question and about_body(f.question)))

    def of(self, name: str) -> tuple[Finding, ...]:
        """The findings of one property."""
        return tuple(f for f in self.findings if f.question == name)


def judged(
    call: Kernel | Unmodelled,
    *,
    names: Sequence[str] | None = None,
    only: str = "",
    target: str | None = None,
    compiler: str | None = None,
    where: str | None = None,
    effort: int = 1,
    strict_tables: bool = False,
    among: Collection[str] | None = None,
    settled_elsewhere: Collection[str] = (),
) -> Judged:
    """Everything that is asked of one call. Arguments and errors as of `pallas.judge.judge`.

    among: only these of the default properties.
    A property that was named and has nothing to ask of the call (no alias, nothing parallel) is unknown: `unasked`.
    """
    chip = None if target is None else kernel_target(target, compiler)
    shown, version = ("", "") if chip is None else (chip.name, chip.compiler)
    if isinstance(call, Unmodelled):
        return Judged(call, (), shown, version)
    call = meant_for(call, chip)
    why = "" if chip is None else foreign(call, chip)
    asked = (*with_parts(names), *beside(names)) if names else None
    if among is not None:
        asked = tuple(name for name in by_default(call) if name in among)
    try:
        found = judge(
            call, names=asked, only=only, target=chip, where=where, effort=effort, strict_tables=strict_tables,
            settled_elsewhere=settled_elsewhere,
        )  # fmt: skip
    except (LayoutError, Undecided):
        raise
    except Exception as error:
        return Judged(Unmodelled(call.name, call.source, failure(error)), (), shown, version)
    for name in names or ():
        if all(finding.question != name for finding in found):
            found += (replace(unasked(name, call), subject=call.name),)
    taken = premise(call, found, only=only, where=where, effort=effort) if chip is None and asked is None else ""
    return Judged(
        call, found, shown, version, why, tuple(names or ()), only, where=where or "", premise=taken,
        among=among is not None,
    )  # fmt: skip


def count(calls: Iterable[Judged], what: str) -> int:
    """How many findings of some calls count as `what`."""
    return sum(call.word(finding) == what for call in calls for finding in call.findings)


def exit_code(calls: Iterable[Judged]) -> int:
    """By the rule of all commands; unknown where there is no call at all."""
    listed = list(calls)
    return rule([f for call in listed for f in call.decisive()] if listed else [unknown("kernels", "no Pallas call")])


def _accepted(finding: Finding) -> bool:
    return finding.policy.startswith(ACCEPTED)


def _open(call: Kernel | Unmodelled, why: str) -> Finding:
    """That nothing can be told of a call as a whole."""
    file, line, column = split_place(call.source)
    return Finding("kernel", call.name, why, file=file, line=line, column=column, verdict=Verdict.UNKNOWN)


def key_of(call: Kernel | Unmodelled) -> str:
    """A text that is equal for calls of which the same things hold, wherever they were traced.

    The names of size symbols, where the source lies, and the body count: a report says all of them.
    """
    return f"{call!r} {call.body_reader}" if isinstance(call, Kernel) else repr(call)


def without_proved(call: Judged) -> Judged:
    """The same call with what is not proved, and what is wrong last, where a terminal shows it."""
    left = [f for f in call.findings if f.verdict is not Verdict.PROVED]
    return replace(call, findings=tuple(sorted(left, key=_weight)))


def _weight(finding: Finding) -> tuple[int, bool]:
    wrong = finding.verdict is Verdict.REFUTED
    return (("info", "warning", "error").index(finding.severity), wrong)
