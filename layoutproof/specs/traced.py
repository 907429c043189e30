"""Checks of spec files about user code: `{pallas: {trace: "module:function", ..}}`, traced when they run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from layoutproof.compiler.tracing import permit, run_now
from layoutproof.core.errors import LayoutError, Unsupported, listed, shorten
from layoutproof.core.finding import Finding
from layoutproof.core.message import located, restated
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.pallas.judge import (
    about_body,
    advice,
    judge,
    kernel_of,
    kernel_target,
    meant_for,
    premise,
    scope,
    summary,
    unread,
)
from layoutproof.pallas.judge import answer as one_answer
from layoutproof.pallas.kept_judgements import kept_findings
from layoutproof.pallas.problems import NOTHING_ASKED
from layoutproof.registry.catalogue import is_of_kernels, kernel_properties, options_of
from layoutproof.specs import problems
from layoutproof.specs.positions import Node, read_file
from layoutproof.specs.spec_model import NAME

KEY = "pallas"
"""The one key of the mapping that stands for traced calls."""

ALL = "kernel"
"""The kind of check that asks every property of kernels."""


_FORMS = {
    "trace": str,
    "args": Sequence,
    "kwargs": Mapping,
    "target": str,
    "compiler": str,
    "assume": Sequence,
    "call": int | str,
}
"""The type of each key of traced calls; all but the first may be missing, or null."""
_CALL = re.compile(rf"({NAME.pattern})\[([^\[\]]{{1,200}})\]")


def is_traced(layout: object) -> bool:
    """Whether a check's layout stands for the Pallas calls of user code."""
    return isinstance(layout, Mapping) and set(layout) == {KEY}


def named_calls(
    node: Node | None, file: str, layouts: Mapping[str, object], errors: list[LayoutError]
) -> dict[str, object]:
    """The section `kernels` of a spec file, as checks take its names; nothing is imported here."""
    if node is None or type(node.value) is not dict or node.keys is None:
        return {}
    named: dict[str, object] = {}
    for name, value in node.value.items():
        problem = problems.KERNEL_NAME_TAKEN(name) if name in layouts else ""
        if not NAME.fullmatch(name):
            problem = problems.KERNEL_NAME(shorten(name, 40))
        if problem:
            line, column = node.keys[name]
            errors.append(LayoutError(problem, file=file, line=line, column=column))
        named[name] = {KEY: value.plain()}
    return named


def one_call(text: str, named: Mapping[str, object]) -> object | None:
    """What `mm[1]` or `mm[name]` stands for where `mm` names Pallas calls; None for any other text.

    >>> one_call("mm[1]", {"mm": {"pallas": {"trace": "a:f"}}})
    {'pallas': {'trace': 'a:f', 'call': 1}}
    """
    found = _CALL.fullmatch(text)
    traced: Any = named.get(found[1]) if found is not None else None
    if found is None or not is_traced(traced) or not isinstance(traced[KEY], Mapping):
        return None
    return {KEY: {**traced[KEY], "call": int(found[2]) if found[2].isdecimal() else found[2]}}


def answer(kind: str, layout: object, options: Mapping[str, Any]) -> Finding:
    """One result for all calls that a check speaks of: the worst.

    kind: a property of kernels, or `kernel` for all of them.  layout: traced calls, or anything that describes a
    kernel.  options: as for `judge`. Raises Undecided where there is no call, LayoutError for wrong input.
    """
    if kind != ALL and not is_of_kernels(kind):
        known = ", ".join(kernel_properties())
        raise LayoutError(problems.PROPERTY_OF_LAYOUTS(kind, known))
    given = dict(options)
    wanted: Mapping[str, Any] = {}
    if is_traced(layout):
        wanted = entry_of(layout)
        has_target = kind == ALL or "target" in options_of(kind)
        for name in ("target", "compiler"):
            if has_target and name in wanted:
                given.setdefault(name, wanted[name])
    asked = {"kind": kind, **given}
    results = [
        found
        for call in _calls(kind, layout)
        for found in kept_findings(call, asked, lambda call=call: (_of_call(kind, call, given),))  # type: ignore[misc]
    ]
    return min(results, key=lambda result: result.verdict)


def only_call(layout: object) -> Kernel:
    """The one call that a fact speaks of. LayoutError where there are several, Undecided where it is not modelled."""
    calls = _calls("a fact", layout)
    if len(calls) > 1:
        raise LayoutError(problems.FACT_NEEDS_ONE_CALL(_named(layout[KEY], calls)))  # type: ignore[index]
    if isinstance(calls[0], Unmodelled):
        raise Unsupported(problems.CALL_NOT_MODELLED(calls[0].name, calls[0].source, calls[0].reason))
    return calls[0]


def kernels_named_in(path: Path) -> tuple[tuple[Kernel | Unmodelled, str | None, str | None], ...]:
    """Every kernel that a spec file names, in its order: whole kernels among `layouts`, then the calls of `kernels`.

    Each comes with the target and the compiler that its entry states. LayoutError for what is no spec file, with its
    place. What its checks say of them is `layoutproof check`'s business.
    """
    root, file = read_file(path), path.as_posix()
    sections = root.value if type(root.value) is dict else None
    if sections is None or not {"layouts", "kernels"} & sections.keys():
        raise LayoutError(problems.NO_DEFINITIONS(), file=file, line=1)
    found: list[tuple[Kernel | Unmodelled, str | None, str | None]] = []
    for name, node in _entries(sections.get("layouts")):
        value = node.plain()
        if isinstance(value, Mapping) and set(value) == {"kernel"}:
            source = f"{file}:{node.line}"
            try:
                found.append((replace(kernel_of(value, ALL), source=source), None, None))
            except LayoutError as error:
                raise LayoutError(located(name, error.problem), text=error.text).at(file, node.line) from None
    compared = _compared(sections)
    for name, node in _entries(sections.get("kernels")):
        entry = compared.get(name) or {KEY: node.plain()}
        calls = every_call_in(entry) if name in compared else calls_in(entry)
        stated = entry_of(entry)
        found += [(call, stated.get("target"), stated.get("compiler")) for call in calls]
    return tuple(found)


def _compared(sections: Mapping[str, Node]) -> dict[str, object]:
    """The functions that checks compare, by name: they may make no Pallas call, and a reference takes the function's
    arguments."""
    entries = {name: node.plain() for name, node in _entries(sections.get("kernels"))}
    found: dict[str, object] = {}
    checks = sections.get("checks")
    for check in checks.plain() if checks is not None and type(checks.value) is list else ():
        said = check if isinstance(check, Mapping) else {}
        found |= {
            name: {KEY: entries[name]} for key in ("stable", "sums_at_least") if (name := str(said.get(key))) in entries
        }
        names = [str(said.get(key)) for key in ("same", "as")]
        ours, theirs = (entries.get(name) for name in names)
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            found |= {names[0]: {KEY: ours}, names[1]: {KEY: with_args_of(ours, theirs)}}
    return found


def stated_args(layout: object) -> bool:
    """Whether an entry of `kernels:` states arguments."""
    return is_traced(layout) and bool(entry_of(layout).get("args"))


def with_args_of(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a reference, with the arguments of the function that is held against it where it states none."""
    return {**{key: ours[key] for key in ("args",) if key in ours}, **theirs}


def _entries(node: Node | None) -> Sequence[tuple[str, Node]]:
    return tuple(node.value.items()) if node is not None and type(node.value) is dict else ()


def _of_call(kind: str, call: Kernel | Unmodelled, options: Mapping[str, Any]) -> Finding:
    if isinstance(call, Unmodelled):
        why = restated(f"not modelled ({call.source}): {call.reason}", call.reason, source=call.source)
        return Finding(kind, call.name, why, verdict=Verdict.UNKNOWN)
    if kind != ALL:
        return one_answer(kind, call, **options)
    only = str(options.get("only", ""))
    if options.get("target"):
        call = meant_for(call, kernel_target(options["target"], options.get("compiler")))
    findings = judge(call, **options)
    if not findings:
        return Finding(kind, str(call), NOTHING_ASKED(), verdict=Verdict.UNKNOWN)
    weighty = [f for f in findings if f.severity == "error"] or list(findings[:1])
    worst = summary(kind, call, weighty)
    asked = len(dict.fromkeys(f.question for f in findings if f.asked))
    if worst.verdict is Verdict.PROVED:
        figures: dict[str, object] = {"properties": asked}
        if not only and unread(call):
            return Finding(kind, str(call), unread(call), verdict=Verdict.UNKNOWN, figures=figures)
        taken = "" if options.get("target") else premise(call, findings, **options)
        said = "; ".join(filter(None, (scope(None, body=_of_body(findings), only=only), taken)))
        held: dict[str, Any] = {"verdict": Verdict.PROVED, "decided_by": worst.decided_by, "figures": figures}
        return Finding(kind, str(call), scope=said, **held)
    needed, sizes = advice(findings)
    both = [f"{key} {text!r}" for key, text in (("assume", needed), ("where", sizes)) if text]
    settled = f"; to settle all: {listed(both)}" if ";" in needed or len(both) > 1 else ""
    reason = restated(f"{worst.question}: {worst.reason}{settled}", worst.reason, part=worst.question)
    more = {**worst.figures, "properties": asked}
    said = scope(None, worst.verdict, _of_body(findings), only)
    return replace(worst, question=kind, reason=reason, figures=more, scope=said)


def _of_body(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f.question for f in findings if about_body(f.question)))


def _calls(kind: str, layout: object) -> Sequence[Kernel | Unmodelled]:
    return calls_in(layout) if is_traced(layout) else [kernel_of(layout, kind)]


def calls_in(layout: object) -> Sequence[Kernel | Unmodelled]:
    """The calls of user code that a check's layout stands for. Undecided where there is none, LayoutError otherwise."""
    wanted = entry_of(layout)
    found = every_call_in(layout)
    if not found:
        raise Unsupported(problems.NO_PALLAS_CALL(wanted["trace"]))
    call = wanted.get("call")
    if call is None:
        return found
    chosen = [c for k, c in enumerate(found) if call in (k, c.name)]
    if not chosen:
        raise LayoutError(problems.UNKNOWN_CALL(wanted["trace"], shorten(str(call), 60), _named(wanted, found)))
    return chosen


def every_call_in(layout: object) -> Sequence[Kernel | Unmodelled]:
    """The calls of the function that a check's layout names, () where it makes none. Errors as of `calls_in`."""
    from layoutproof.pallas.from_jax.user import calls_of

    wanted = entry_of(layout)
    given, kwargs, assume = wanted.get("args") or (), wanted.get("kwargs"), wanted.get("assume") or ()
    target, rule = wanted.get("target"), permit(wanted["trace"])
    # within a run code stays as it is, and several claims, the gate and the lock ask for the same calls
    asked = [wanted["trace"], given, kwargs, target, assume, os.getcwd()]
    kept, key = _of_run(run_now()) if run_now() else {}, json.dumps(asked, sort_keys=True, default=repr)
    if key not in kept:
        kept[key] = calls_of(wanted["trace"], given, kwargs, target=target, assume=assume, rule=rule)
    return kept[key]


@lru_cache(maxsize=1)
def _of_run(run: str) -> dict[str, Sequence[Kernel | Unmodelled]]:
    return {}


def entry_of(layout: object) -> Mapping[str, Any]:
    """The keys of Pallas calls. LayoutError for anything else."""
    wanted = layout[KEY]  # type: ignore[index]
    if (
        not isinstance(wanted, Mapping)
        or not isinstance(wanted.get("trace"), str)
        or not all(name in _FORMS and isinstance(value, _FORMS[name] | None) for name, value in wanted.items())
    ):
        raise LayoutError(problems.PALLAS_FORM())
    return wanted


def _named(wanted: Mapping[str, object], calls: Sequence[Kernel | Unmodelled]) -> str:
    listed = ", ".join(f"{k} {call.name}" for k, call in enumerate(calls))
    return problems.CALLS_OF_FUNCTION(wanted["trace"], len(calls), listed)
