"""Advice that was tried: a program compiled again with each candidate, and the effect of each.

Each candidate is compiled in a process of its own, several at a time; earlier compilations come from the cache.
Only a candidate that helped is called a fix.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, TypedDict

from layoutproof.compiler.child import Reply
from layoutproof.compiler.rounds import ask_in_rounds
from layoutproof.core.document import Doc, JsonObject
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import Finding, FindingEntry, as_dict
from layoutproof.core.result import Verdict
from layoutproof.core.visible import visible
from layoutproof.hlo.fixes import DEFAULT_TARGET
from layoutproof.programs import problems
from layoutproof.programs.candidates import (
    NOTHING,
    Figures,
    FiguresEntry,
    ProgramChange,
    Try,
    TryEntry,
    candidates,
    changes,
    figures,
    gain,
    judged,
    rewrites_of,
    together,
    words,
)
from layoutproof.programs.compile import CPU, LONGEST, Asked, checked, child_of, made_of, missing, request_of
from layoutproof.programs.record import Record

QUESTION = "try"
_PROGRAM = "layoutproof.programs.trying"
GIVE = (
    "give the function, `layoutproof compile --try MODULE:FUNCTION`, or the text from before optimization: "
    "`jax.jit(f).lower(..).compiler_ir('hlo').as_hlo_text()`, or *before_optimizations.txt of --xla_dump_to"
)
"""The replacement for a text that cannot be compiled again."""


class AdviceEntry(TypedDict):
    program: str
    compiler: str
    before: FiguresEntry
    tries: list[TryEntry]
    together: Annotated[TryEntry | None, Doc("all that helped at once, where several did")]
    findings: Annotated[list[FindingEntry], Doc("why nothing could be tried")]


@dataclass(frozen=True, slots=True)
class Advice:
    """The candidates tried for one program.

    title: the program and its target.  compiler: with its version.  before: the figures of the program as it is, None
    where they are not known; `findings` then say why.  tries: one for each candidate.  together: all that helped at
    once, None where fewer than two did.
    """

    title: str
    compiler: str = ""
    before: Figures | None = None
    tries: tuple[Try, ...] = ()
    together: Try | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def fixes(self) -> tuple[Try, ...]:
        """The candidates that helped, the best first."""
        before = self.before
        if before is None:
            return ()
        every = [*self.tries, *([self.together] if self.together else [])]
        return tuple(sorted((t for t in every if t.verdict == "helped"), key=lambda t: gain(before, t), reverse=True))

    def as_dict(self) -> AdviceEntry:
        """Plain data."""
        return {
            "program": self.title,
            "compiler": self.compiler,
            "before": None if self.before is None else asdict(self.before),
            "tries": [each.as_dict() for each in self.tries],
            "together": None if self.together is None else self.together.as_dict(),
            "findings": list(map(as_dict, self.findings)),
        }

    def __str__(self) -> str:
        return "\n".join(map(visible, self._lines())) if self.before is not None else ""

    def _lines(self) -> Iterator[str]:
        before = self.before
        assert before is not None
        many = f"{len(self.tries)} candidate{'' if len(self.tries) == 1 else 's'}"
        yield f"tried    {many} for {self.title}, {self.compiler}"
        yield f"  before   {words(before)}"
        for each in self.fixes:
            assert each.figures is not None
            yield f"  fix      {shorten(each.candidate.what, 200)}: {changes(before, each.figures)}"
            for cause in (each.causes or tuple(filter(None, [each.candidate.cause])))[:_SHOWN]:
                yield f"           cause {shorten(cause, 240)}"
            if each.candidate.kind != "together":
                yield f"           write {shorten(each.candidate.write, 240)}"
            for name, shape in list(each.layouts.items())[:_SHOWN]:
                yield f"           the compiler chose {name} as {shape}"
            if len(each.layouts) > _SHOWN:
                yield f"           and {len(each.layouts) - _SHOWN} more; --json has them"
        if not self.fixes:
            yield "  fix      none: no candidate helped"
        if any(each.candidate.orders or each.candidate.reshaped or each.candidate.padded for each in self.fixes):
            yield f"  note     {_NOTE}"
        for each in self.tries:
            if each.verdict != "helped":
                said = each.problem if each.figures is None else changes(before, each.figures)
                yield f"  {_WORDS[each.verdict]:<8} {shorten(each.candidate.what, 120)}: {shorten(said, 200)}"


_SHOWN = 4
_NOTE = "a parameter in another form saves only where the array is made in that form"
_WORDS = {"same": "no help", "worse": "worse", "trade": "a trade", "failed": "failed"}


def advice(
    asked: Asked,
    seconds: float = LONGEST,
    memory: int | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Advice:
    """Tries the candidates for one program.

    seconds, memory: that one candidate may take, in a process of its
    own.  progress: is called with what is done now.
    """
    try:
        sound = checked(asked)
    except LayoutError as error:
        return _nothing(asked.title, error.problem, bad=True)
    if why := missing(sound):
        return _nothing(sound.title, problems.NOT_COMPILED(why))
    return _tried(sound, request_of(sound), (), seconds, memory, progress)


def advice_on_dump(
    text: str,
    title: str,
    target: str,
    scheduled: bool,
    partitions: int = 1,
    names: Sequence[str] = (),
    seconds: float = LONGEST,
    memory: int | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Advice:
    """The same of a program in HLO text.

    title: its file.  names: of its parameters.  scheduled: its compiler has been at work already.  partitions: devices
    that run it.

    A compiled text is not compiled again: its bitcasts name bytes of the layouts that the compiler chose, so with other
    layouts it would be another program.
    """
    asked = Asked(title, target=target)
    if scheduled:
        return _nothing(title, problems.TEXT_IS_COMPILED(GIVE))
    if partitions > 1:
        return _nothing(
            title, f"the text is of {partitions} devices and does not say where they are; {GIVE.partition(', or')[0]}"
        )
    try:
        sound = checked(asked)
    except LayoutError as error:
        return _nothing(title, error.problem, bad=True)
    if why := missing(sound):
        return _nothing(title, problems.NOT_COMPILED(why))
    return _tried(sound, {**request_of(sound), "hlo": text}, names, seconds, memory, progress)


def _tried(
    asked: Asked,
    request: JsonObject,
    names: Sequence[str],
    seconds: float,
    memory: int | None,
    progress: Callable[[str], None],
) -> Advice:
    child = replace(child_of(asked, seconds, memory), program=_PROGRAM)
    asking: list[ProgramChange] = []

    def requests() -> _Plan:
        """The plan, with a request for each candidate."""
        plan = _plan(asked, "hlo" in request, names)
        kept, given = None, next(plan)
        while True:
            asking[:] = given
            answers = yield [{**request, "change": each.change, "kept": kept} for each in given]
            if kept is None and answers[0].value is not None:
                kept = answers[0].value.get("kept")
            try:
                given = plan.send(answers)
            except StopIteration as end:
                found: Advice = end.value
                return found

    def tell(number: int, what: object) -> None:
        progress(f"{asked.title}: {number + 1} of {len(asking)}: {what or 'done'}: {asking[number].what}")

    return ask_in_rounds(child, requests(), dict, tell)


_Answers = list[Reply[dict[str, Any]]]
_Plan = Generator[Sequence[Any], _Answers, Advice]


def _plan(asked: Asked, dump: bool, names: Sequence[str]) -> Generator[Sequence[ProgramChange], _Answers, Advice]:
    """Yields what is to be compiled, is sent the answers: the program as it is, each candidate, all that helped."""
    (answer,) = yield [NOTHING]
    made = made_of(asked, answer)
    if made.record is None or answer.value is None:
        why = "not compiled" if made.problem is None else made.problem.reason
        return _nothing(asked.title, f"{why}; {GIVE}" if dump else why)
    moved = answer.value["moved_by"]
    kept, donors, own = (answer.value[key] for key in ("kept", "donors", "names"))
    names = names or [own[number] for number in kept or range(len(own)) if number < len(own)]
    before = _named(made.record, names)
    chosen = candidates(before, donors, DEFAULT_TARGET if asked.target == CPU else asked.target)
    chosen = (*chosen, *rewrites_of(before, answer.value["rewrites"]))

    def outcome(candidate: ProgramChange, answer: Reply[dict[str, object]]) -> Try:
        result = made_of(asked, answer)
        if result.record is None:
            why = result.problem.reason if result.problem is not None else "not compiled"
            return Try(candidate, "failed", problem=why)
        if answer.value is not None and answer.value["numbers"]:
            return Try(candidate, "failed", problem=str(answer.value["numbers"]))
        return judged(candidate, before, _named(result.record, names), moved)

    answers = yield chosen
    tries = list(map(outcome, chosen, answers))
    was = figures(before)
    both = together(sorted(tries, key=lambda each: gain(was, each), reverse=True))
    last = None
    if both is not None:
        (answer,) = yield [both]
        last = outcome(both, answer)
    undone = tries and all(each.verdict == "failed" for each in tries)
    findings = (_problem(asked.title, problems.NO_CANDIDATE_COMPILED(tries[0].problem)),) if undone else ()
    return Advice(asked.title, before.made.compiler, was, tuple(tries), last, findings)


def _named(record: Record, names: Sequence[str]) -> Record:
    """A record whose parameters have these names, where they are as many; the names of `trying` are its own."""
    given = record.parameters
    known = names if len(names) == len(given) else [""] * len(given)
    named = [replace(each, name=name) for each, name in zip(given, known, strict=True)]
    return replace(record, parameters=tuple(named))


def _problem(title: str, reason: str) -> Finding:
    return Finding(QUESTION, title, reason, verdict=Verdict.UNKNOWN)


def _nothing(title: str, reason: str, bad: bool = False) -> Advice:
    return Advice(title, findings=(replace(_problem(title, reason), bad_input=bad),))
