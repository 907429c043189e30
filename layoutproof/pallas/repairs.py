"""Fixes tried: each is applied to the kernel, and every question is asked again, before it is shown.

A fix is shown if the refuted question is proved with it, and no other question becomes refuted or unknown. Of several
the one is shown after which nothing is refuted. Where numbers may be wrong by it, it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from layoutproof.core.errors import listed
from layoutproof.core.finding import Finding
from layoutproof.core.message import restated
from layoutproof.core.result import Verdict
from layoutproof.kernel.fixes import KernelFix
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation

Answers = Sequence[tuple[Finding, Obligation]]
Ask = Callable[[Kernel, str], Answers]
"""All that one property says of a kernel, with what was asked."""

MOST_OF_ONE = 6
"""Fixes of one finding that are tried."""
MOST_TRIED = 16
"""Fixes of one kernel that are tried."""
MOST_JOINED = 6
"""Fixes that are told as one, where the first lets padding in, which the others mask, or is one of several alike."""
SHORT = frozenset({"outputs_covered", "inputs_read", "undefined_values"})
"""Questions of which one refutation may have several causes: a grid that falls short in two dimensions, two masks."""
CHECK = "then check the numbers, which are not proved: "

Key = tuple[str, str, int]


def with_fixes(
    kernel: Kernel, found: Sequence[tuple[Finding, Obligation]], names: Sequence[str], ask: Ask
) -> list[Finding]:
    """The findings, the refuted ones with the first fix that repairs them.

    names: of all questions, which are asked again.  ask: asks one of them.
    """
    tries = _RepairTries(kernel, tuple(names), ask, {_key(f) for f, _ in found if _wrong(f)})
    for finding, _ in found:
        tries.known.setdefault(finding.question, set())
    for finding, _ in found:
        if finding.verdict is not Verdict.PROVED:
            tries.known[finding.question].add(finding.subject)
    best: list[_Outcome | None] = []
    for finding, obligation in found:
        best.append(tries.best(finding, obligation) if _wrong(finding) else None)
    # one after which nothing is wrong, of whatever finding; the first that leaves no doubt of the numbers
    all_of_it = [one for one in best if one is not None and not one.left]
    whole = min(all_of_it, key=lambda one: bool(one.fix.doubt), default=None)
    told = []
    for (finding, _), one in zip(found, best, strict=True):
        if whole is not None and _wrong(finding) and (one is None or one.left or one.fix.doubt > whole.fix.doubt == ""):
            one = whole
        told.append(finding if one is None else replace(finding, fix=one.words(), hint=""))
    return told


def _wrong(finding: Finding) -> bool:
    return finding.verdict is Verdict.REFUTED and finding.severity != "info"


def _key(finding: Finding) -> Key:
    return finding.question, finding.subject, finding.line


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A fix that repairs something. left: the remaining refutations."""

    fix: KernelFix
    left: frozenset[Key]

    def words(self) -> str:
        said = self.fix.words
        if self.left:
            questions = list(dict.fromkeys(question for question, _, _ in sorted(self.left)))
            wrong = listed(questions)
            said = restated(
                f"{said}; {wrong} {'is' if len(questions) == 1 else 'are'} wrong in spite of it", said, wrong=wrong
            )
        return restated(f"{said}; {CHECK}{self.fix.doubt}", said, doubt=self.fix.doubt) if self.fix.doubt else said


@dataclass(eq=False)
class _RepairTries:
    """wrong: the refutations before.  known: of questions that were asked before, the subjects that are not proved."""

    kernel: Kernel
    names: tuple[str, ...]
    ask: Ask
    wrong: set[Key]
    known: dict[str, set[str]] = field(default_factory=dict)
    left: int = MOST_TRIED

    def best(self, finding: Finding, obligation: Obligation) -> _Outcome | None:
        """The first fix after which nothing is wrong, else the first that repairs this finding, else None."""
        found: _Outcome | None = None
        for fix in islice(_candidates(finding, obligation), MOST_OF_ONE):
            outcome = self._try(finding, fix)
            if outcome is None:
                continue
            if not outcome.left:
                return outcome
            found = found or outcome
        return found

    def _try(self, finding: Finding, fix: KernelFix, joined: int = 1) -> _Outcome | None:
        if self.left <= 0:
            return None
        self.left -= 1
        wrong: dict[Key, tuple[Finding, Obligation]] = {}
        new: list[tuple[Finding, Obligation]] = []
        # the question that it should fix is asked first: most that fail fail there
        for name in dict.fromkeys((finding.question, *self.names)):
            for answer, obligation in self.ask(fix.kernel, name):
                if answer.verdict is Verdict.PROVED or answer.severity == "info":
                    continue
                if _key(answer) == _key(finding):
                    return self._joined(finding, fix, [(answer, obligation)], joined)
                if answer.subject not in self._before(name):
                    new.append((answer, obligation))
                    if answer.question != "undefined_values":
                        return None
                elif answer.verdict is Verdict.REFUTED and _key(answer) in self.wrong:
                    wrong[_key(answer)] = answer, obligation
        if new:
            return self._joined(finding, fix, new, joined)
        whole = None
        if wrong and all(question in SHORT for question, _, _ in wrong):
            whole = self._joined(finding, fix, list(wrong.values())[:1], joined)
        return _Outcome(fix, frozenset(wrong)) if whole is None or whole.left else whole

    def _joined(
        self, finding: Finding, fix: KernelFix, new: Sequence[tuple[Finding, Obligation]], joined: int
    ) -> _Outcome | None:
        """The fix with another one, which masks the padding that is left, or that it lets in."""
        answer, obligation = new[0]
        if joined == MOST_JOINED or answer.verdict is not Verdict.REFUTED or answer.question not in SHORT:
            return None
        if answer.question != "undefined_values" and finding.question not in SHORT:
            return None
        for more in islice(_candidates(answer, obligation), 1):
            words = restated(f"{fix.words}; and {more.words}", fix.words, more=more.words)
            doubt = fix.doubt if more.doubt in fix.doubt else "; ".join(filter(None, (fix.doubt, more.doubt)))
            return self._try(finding, KernelFix(words, more.kernel, doubt), joined + 1)
        return None

    def _before(self, name: str) -> set[str]:
        """The subjects that are not proved of the kernel as it is."""
        if name not in self.known:
            answers = self.ask(self.kernel, name)
            self.known[name] = {f.subject for f, _ in answers if f.verdict is not Verdict.PROVED}
        return self.known[name]


def _candidates(finding: Finding, obligation: Obligation) -> Iterator[KernelFix]:
    """The fixes of one finding; an error while they are made ends them."""
    fixes: Iterable[KernelFix] = iter(())
    try:
        fixes = obligation.fixes(finding.counterexample or {})
        yield from fixes
    except Exception:
        # a fix that cannot be made is none
        return
