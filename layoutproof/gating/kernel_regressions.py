"""Whether a stated kernel breaks a rule that it kept before: every property of kernels, asked of both states.

A kernel is stated once a spec file or a lock names it, whether or not a claim is made of it. The rules of a target are
for claims, which name a target; so are the sizes of a new kernel with size symbols.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.gating import problems
from layoutproof.gating.kernels import is_kernel
from layoutproof.kernel.kernel import Kernel
from layoutproof.registry.read import read_layout

ALL = "kernel"

Answers = Mapping[tuple[str, str], Finding]
"""By property and subject."""


def broken(old: object, new: object, expected: Collection[tuple[str, str]] = ()) -> list[Finding]:
    """The questions that are refuted or unknown for the new kernel and were not for the old one; none for other
    layouts.

    old: None where there was no kernel.  expected: (property or `kernel`, verdict) that the file says of a new one.
    Subject and place are for the caller to fill in.

    >>> out = {"name": "o", "array": "f32[16]", "block": [8], "index": "(i) -> (i)"}
    >>> sides = [{"kernel": {"grid": [n], "outputs": [out]}} for n in (2, 1)]
    >>> [found.reason for found in broken(*sides)]
    ['outputs_covered of o: no program writes o[8:16] (block (1,))']
    """
    if not is_kernel(new):
        return []
    if not is_kernel(old) and _has_symbols(new):
        return []
    return worse(answers(_kernel(old)) if is_kernel(old) else {}, answers(_kernel(new)), expected)


def worse(before: Answers, after: Answers, expected: Collection[tuple[str, str]] = ()) -> list[Finding]:
    """The findings that are refuted or unknown now and were not before. expected: as of `broken`."""
    verdicts = {key: answer.verdict for key, answer in before.items()}
    found = []
    for key, answer in after.items():
        verdict = answer.verdict
        if not is_worse(verdict, verdicts.get(key)):
            continue
        if any((name, verdict.value) in expected for name in (answer.question, ALL)):
            continue
        why = problems.RULE_BROKEN(answer.question, answer.subject, answer.reason)
        more: dict[str, Any] = {
            n: getattr(answer, n) for n in ("counterexample", "decided_by", "fix", "hint", "needs", "where")
        }
        found.append(Finding("unknown" if verdict is Verdict.UNKNOWN else "refuted", "", why, verdict=verdict, **more))
    return found


def is_worse(now: Verdict, before: Verdict | None) -> bool:
    """Whether an answer about a kernel got worse; before: None where the question is new.

    >>> is_worse(Verdict.UNKNOWN, None), is_worse(Verdict.UNKNOWN, Verdict.REFUTED), is_worse(Verdict.PROVED, None)
    (True, False, False)
    """
    return now is not Verdict.PROVED and (before is None or now < before)


def _has_symbols(value: object) -> bool:
    from layoutproof.pallas.judge import sizes_of

    kernel = _kernel(value)
    return kernel is not None and bool(sizes_of(kernel))


def _kernel(value: object) -> Kernel | None:
    try:
        kernel = read_layout(value).kernel
    except (LayoutError, AttributeError):
        return None
    return kernel if isinstance(kernel, Kernel) else None


def bodies_in_words(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Two bodies in words. then, now: the verdict on each question that is not proved.

    >>> bodies_in_words({}, {"initialised": "refuted"})
    'before, every question about it was proved; now, initialised is refuted'
    """
    if not then and not now:
        return problems.BODIES_PROVED()
    every = "every question about it {} proved"
    before, after = (
        ", ".join(f"{name} {verb} {verdict}" for name, verdict in side.items()) or every.format(verb)
        for side, verb in ((then, "was"), (now, "is"))
    )
    return f"as before, {after}" if then == now else f"before, {before}; now, {after}"


def answers(kernel: Kernel | None) -> Answers:
    """The worst answer to each property of each subject, of those that decide; none where it is no kernel."""
    from layoutproof.pallas.judge import judge
    from layoutproof.pallas.kept_judgements import kept_findings

    worst: dict[tuple[str, str], Finding] = {}
    for answer in kept_findings(kernel, {"everything": True}, lambda: judge(kernel)) if kernel is not None else ():
        key = (answer.question, answer.subject)
        if answer.severity == "error" and (key not in worst or answer.verdict < worst[key].verdict):
            worst[key] = answer
    return worst
