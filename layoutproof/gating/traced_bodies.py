"""The bodies of traced calls, as a lock file keeps them: digests, and what was not proved of each.

    ["specs/a.yaml", "body", "mm:matmul", ["1f0c..", "9a3b..", [["dma_order", "matmul", "unknown"]]]]

A body itself would be most of the lock, and what it computes is not compared anyway: two bodies are told apart by their
digests, and one that changed is judged anew, with the source at hand, against what is said here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.core.finding import Finding, unknown
from layoutproof.core.result import Verdict
from layoutproof.gating import problems
from layoutproof.gating.kernel_records import unplaced
from layoutproof.gating.kernel_regressions import Answers, answers, bodies_in_words, worse
from layoutproof.gating.lock_head import RENEW
from layoutproof.gating.matching import Round, match
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.judge import about_body
from layoutproof.pallas.records import plain, records_in


@dataclass(frozen=True, slots=True)
class BodyDigest:
    """One call. around: digest of all but its body.  inside: of its body, without the lines of the user's program.

    not_proved: (property, subject, verdict) of each answer that decides and is no proof.
    """

    around: str
    inside: str
    not_proved: tuple[tuple[str, str, str], ...] = ()

    def as_list(self) -> list[object]:
        """As a line of the lock has it."""
        return [self.around, self.inside, [list(each) for each in self.not_proved]]


def body_from(value: Any) -> BodyDigest:
    """The `BodyDigest` of a line. TypeError, ValueError for what is none."""
    around, inside, not_proved = value
    found = tuple((name, subject, Verdict(verdict).value) for name, subject, verdict in not_proved)
    if not all(isinstance(text, str) for text in (around, inside, *(part for each in found for part in each))):
        raise TypeError(value)
    return BodyDigest(around, inside, found)


def locked(call: Kernel) -> BodyDigest:
    """The lock file's record of a call that was traced here."""
    judged = answers(call)
    open_ = [(*key, found.verdict.value) for key, found in judged.items() if found.verdict is not Verdict.PROVED]
    return replace(_digests(call), not_proved=tuple(sorted(open_)))


def changes(
    old: Mapping[str, BodyDigest],
    new: Mapping[str, Kernel],
    stated: Collection[str],
    expected: Collection[tuple[str, str]] = (),
) -> list[Finding]:
    """The questions about the bodies of one entry's calls that were proved and are refuted or unknown now.

    old, new: by `entry:call`.  stated: calls whose grid and maps stand in the lock, or did: all but their bodies is
    compared there.  expected: (property or `kernel`, verdict) that the file itself says of calls that are new.
    """
    rounds: list[Round[tuple[str, BodyDigest]]] = [
        Round(lambda each: each[0]),
        Round(lambda each: each[1].inside, match_heuristic="by its body: the name is new", ordered=False),
    ]
    found: list[Finding] = []
    for pair in match([*old.items()], [(name, _digests(call)) for name, call in new.items()], rounds):
        name = (pair.new or pair.old)[0]  # type: ignore[index]
        if pair.new is None:
            found += [] if name in stated else [Finding("removed", f"kernel {name}", problems.NOT_CALLED())]
            continue
        was = None if pair.old is None else pair.old[1]
        made = _changed(was, pair.new[1], new[name], name in stated, expected)
        found += [replace(each, subject=f"kernel {name}", match_heuristic=pair.match_heuristic) for each in made]
    return found


def not_kept(calls: Sequence[str]) -> Finding:
    """The finding of calls whose bodies a lock file does not keep."""
    several = len(calls) > 1
    what = f"kernel{'s' if several else ''} {', '.join(calls)}"
    why = f"the lock file keeps grid and maps of {'them' if several else 'it'} only"
    return unknown(what, problems.BODY_NOT_LOCKED(why, RENEW))


def _changed(
    old: BodyDigest | None, new: BodyDigest, call: Kernel, stated: bool, expected: Collection[tuple[str, str]]
) -> list[Finding]:
    if old is not None and (old.around, old.inside) == (new.around, new.inside):
        return []
    now = answers(call)
    then: Answers = {}
    if old is not None:
        then = {(name, of): Finding(name, of, "", verdict=Verdict(said)) for name, of, said in old.not_proved}
    # questions about grid and maps are asked where those are compared
    asked = {key: found for key, found in now.items() if not stated or about_body(key[0])}
    lost = worse(then, asked, expected if old is None else ())
    if old is None:
        return lost if stated else [Finding("added", "", problems.CALLED_NEWLY()), *lost]
    found = []
    if old.around != new.around and not stated:
        found.append(Finding("kernel", "", problems.AROUND_THE_BODY()))
    if old.inside != new.inside:
        sides = (
            {key[0]: each.verdict.value for key, each in side.items() if about_body(key[0]) and _open(each)}
            for side in (then, now)
        )
        found.append(Finding("kernel_body", "", problems.BODY_CHANGED(bodies_in_words(*sides))))
    return [*found, *lost]


def _open(found: Finding) -> bool:
    return found.verdict is not Verdict.PROVED


def _digests(call: Kernel) -> BodyDigest:
    from layoutproof.pallas.from_jax.record import record_of

    (record,) = records_in([record_of(call)], call.name)
    return BodyDigest(_digest(unplaced(plain(record.call))), record.body)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
