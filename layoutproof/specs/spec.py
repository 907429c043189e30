"""Spec files: YAML that says which layouts there are and what must hold of them.

    source: https://openxla.org/xla/tiled_layout       where the truth comes from
    layouts:
      scores: f32[3,5]{1,0:T(2,2)}
    kernels:                                           Pallas calls of user code, traced when a check is run
      mm: {trace: "pkg.kernels:matmul", args: ["bf16[1024,1024]", "bf16[1024,1024]"], kwargs: {bm: 256}, target: v5e}
    checks:
      - injective: scores                              a property, of a name, a text or {language: ..}
      - same_map: [swept, {tile: [grid, atom]}]        an expression: what an operator makes of other layouts
      - injective: {strided: "f32[3,5] strides (4,1)"}
        expect: refuted
        counterexample: {first: [0, 4], second: [1, 0]}
      - locate: scores                                 a fact: a number that somebody published
        index: [2, 3]
        is: {offset: 17}
      - kernel: mm                                     every property, of every Pallas call in it
      - blocks_in_bounds: mm[0]                        one property, of one call by its number or name
      - same: mm                                       whether it computes what another function computes
        as: dot

Each check becomes a `Check`, plain data with its place in the file. All mistakes of a file are collected.
A file without checks is for the gate, which compares what it states: nothing of it is proved.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layoutproof.core import plugins
from layoutproof.core.errors import LayoutError, Undecided, closest, shorten
from layoutproof.registry.catalogue import options_of
from layoutproof.registry.expressions import operands, operator, operators
from layoutproof.registry.read import read_layout
from layoutproof.specs import problems
from layoutproof.specs.positions import Node, read_file, read_yaml
from layoutproof.specs.spec_model import (
    FACTS,
    NAME,
    OF_VALUES,
    PROGRAM_CLAIMS,
    SAME,
    SAME_FUNCTION,
    ProgramCheck,
    ProgramModel,
    PropertyCheck,
    SpecFile,
    kinds,
    model_of,
)
from layoutproof.specs.traced import KEY, is_traced, named_calls, one_call, with_args_of
from layoutproof.specs.validation import fits, validated

_OF_ASK = ("where", "engine", "confirm", "effort")


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a spec file, as plain data that can be sent to another process.

    labels: the layouts as the file writes them.  layouts: what `read_layout` takes, names looked up.
    options: what `ask` takes.  fact: of a fact, the keys besides the layout (`index`, `is`, `mode`, ..).
    counterexample, figures, reason: what else is expected; None and empty where the file says nothing.
    """

    file: str
    line: int
    column: int
    kind: str
    labels: tuple[str, ...]
    layouts: tuple[object, ...]
    name: str = ""
    note: str = ""
    source: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    fact: Mapping[str, object] = field(default_factory=dict)
    expect: str = "proved"
    counterexample: Mapping[str, Any] | None = None
    figures: Mapping[str, object] = field(default_factory=dict)
    reason: str = ""

    @property
    def title(self) -> str:
        """Its name, or the layouts as the file writes them."""
        return self.name or " , ".join(shorten(label, 60) for label in self.labels)

    @property
    def texts(self) -> tuple[str, ...]:
        """Its layouts as a report shows them."""
        if self.is_of_program:
            return self.labels
        return tuple(
            ", ".join(f"{key}: {_label(value) if key in operators() else value}" for key, value in layout.items())
            if isinstance(layout, dict)
            else str(layout)
            for layout in self.layouts
        )

    @property
    def is_of_program(self) -> bool:
        """Whether it is about a program instead of a layout."""
        return self.kind in PROGRAM_CLAIMS

    @property
    def is_fact(self) -> bool:
        """Whether it compares a number or a text instead of asking a property."""
        return self.kind in FACTS


@dataclass(frozen=True, slots=True)
class Unasked:
    """A definition in a spec file without a check. what: layout, kernel, program, or claim of the gate.

    place: `specs/a.yaml:12`.
    """

    what: str
    name: str
    place: str

    def __str__(self) -> str:
        return f"{self.what} {self.name} ({self.place})"


def load(path: str | Path) -> tuple[list[Check], list[LayoutError]]:
    """The checks of one spec file and everything that is wrong with it; nothing is raised for bad input."""
    try:
        root = read_file(path)
    except LayoutError as error:
        return [], [error]
    return read_spec(root, Path(path).as_posix())


def loads(text: str, file: str = "spec") -> tuple[list[Check], list[LayoutError]]:
    """As `load`, from text.

    >>> checks, errors = loads("source: here\\nchecks:\\n  - injectve: f32[3]{0}", "a.yaml")
    >>> print(errors[0])
    a.yaml:3:5: unknown key 'injectve'; did you mean 'injective'?
    """
    try:
        root = read_yaml(text, file)
    except LayoutError as error:
        return [], [error]
    return read_spec(root, file)


def read_spec(root: Node, file: str) -> tuple[list[Check], list[LayoutError]]:
    """The checks in a document, and its mistakes in the order of the file. Checks without a mistake are all there."""
    if type(root.value) is dict and root.keys is not None and "search" in root.keys and "checks" not in root.keys:
        line, column = root.keys["search"]
        return [], [LayoutError(problems.SEARCH_FILE(shlex.quote(file)), file=file, line=line, column=column)]
    errors = validated(SpecFile, root, file)[1]
    if type(root.value) is not dict:
        return [], errors
    source = _of(root, "source", str) or ""
    layouts, bad = _layouts(root, file, errors)
    layouts |= named_calls(root.value.get("kernels"), file, layouts, errors)
    programs = _of(root, "programs", dict) or {}
    checks: list[Check] = []
    for node in _of(root, "checks", list) or []:
        if type(node.value) is not dict:
            continue  # the model of the file has said so
        try:
            check = _check(node, file, source, layouts, bad, errors, programs)
        except LayoutError as error:
            errors.append(error)
            continue
        if check is not None:
            checks.append(check)
    return checks, sorted(errors, key=lambda e: (e.line or 0, e.column or 0))


def unasked(root: Node, file: str) -> list[Unasked]:
    """The layouts, kernels and programs that a document names and no check of it is about, in its order.

    After them the claims that are not asked of one state: those of the gate.
    """
    if type(root.value) is not dict:
        return []
    used: set[object] = set()
    checks = _of(root, "checks", list) or []
    for check in checks:
        for value in check.value.values() if type(check.value) is dict else ():
            used.update(_texts(value))
    for value in (_of(root, "layouts", dict) or {}).values():
        used.update(_texts(value) if _expression(value) else ())
    # a call of a kernel is named by its kernel's name: mm[0]
    names = {str(text).partition("[")[0] for text in used}
    named = [
        Unasked(what, name, f"{file}:{node.line}")
        for section, what in (("layouts", "layout"), ("kernels", "kernel"), ("programs", "program"))
        for name, node in (_of(root, section, dict) or {}).items()
        if name not in names
    ]
    of_gate = [each.value[SAME_FUNCTION] for each in checks if type(each.value) is dict and SAME_FUNCTION in each.value]
    what = f"claim of the gate, {SAME_FUNCTION} of"
    return [*named, *(Unasked(what, str(about.value), f"{file}:{about.line}") for about in of_gate)]


def _texts(node: Node) -> Iterator[str]:
    """Every text in a value, at any depth."""
    inside = node.value.values() if type(node.value) is dict else node.value if type(node.value) is list else ()
    if type(node.value) is str:
        yield node.value
    for part in inside:
        yield from _texts(part)


def _expression(node: Node) -> str:
    """The operator of a mapping that is an expression, else ""."""
    name = next(iter(node.value), "") if type(node.value) is dict and len(node.value) == 1 else ""
    return name if name in operators() else ""


def named_layouts(root: Node, file: str) -> tuple[dict[str, object], dict[str, LayoutError]]:
    """The section `layouts` as `read_layout` takes each: in an expression names are what they stand for.

    file: the name in errors.  Returns also the mistakes in names in an expression, or in a layout that it needs.
    """
    given = _of(root, "layouts", dict) or {}
    found: dict[str, object] = {}
    wrong: dict[str, LayoutError] = {}
    waiting = [(name, False) for name in reversed(given)]
    open_: list[str] = []
    while waiting:
        name, done = waiting.pop()
        if name in found or name in wrong:
            continue
        needs = [text for text in _texts(given[name]) if text in given] if _expression(given[name]) else []
        missing = [other for other in needs if other not in found and other not in wrong]
        if missing and not done:
            open_.append(name)
            waiting += [(name, True), *((other, False) for other in missing if other not in open_)]
            continue
        try:
            if missing:
                node = given[name]
                raise LayoutError(problems.LAYOUT_CYCLE(name), file=file, line=node.line, column=node.column)
            found[name] = _resolved(given[name], file, found, list(given))
        except LayoutError as error:
            wrong[name] = error
    return {name: found[name] for name in given if name in found}, wrong


def _resolved(node: Node, file: str, layouts: Mapping[str, object], known: Sequence[str]) -> object:
    """What `read_layout` takes: in an expression names are what they stand for.

    Each operand that is a layout is read, so that what is wrong with it is said at its place. LayoutError for a name
    that is not there, with the nearest one.
    """
    name = _expression(node)
    if not name:
        return node.plain()
    inner = node.value[name]
    given = inner.value if type(inner.value) is list else [inner]
    try:
        operands(name, given)
    except LayoutError as error:
        raise error.at(file, inner.line, inner.column) from None
    first = operator(name).layouts
    layers = [_operand(each, file, layouts, known) for each in given[:first]]
    return {name: [*layers, *(each.plain() for each in given[first:])]}


def _operand(node: Node, file: str, layouts: Mapping[str, object], known: Sequence[str]) -> object:
    value = node.value
    if type(value) is str and NAME.fullmatch(value):
        if value not in layouts:
            near = closest(value, known) or ("; named are " + ", ".join(known) if known else "; none is named")
            problem = problems.LAYOUT_UNREADABLE(value) if value in known else problems.UNKNOWN_LAYOUT(value, near)
            raise LayoutError(problem, file=file, line=node.line, column=node.column)
        return layouts[value]
    found = _resolved(node, file, layouts, known)
    try:
        read_layout(found)
    except LayoutError as error:
        raise error.at(file, node.line, node.column) from None
    except Undecided:
        pass  # the check says so
    return found


def _layouts(root: Node, file: str, errors: list[LayoutError]) -> tuple[dict[str, object], set[str]]:
    """The named layouts, and the names of those that cannot be read."""
    node = root.value.get("layouts")
    if node is None or type(node.value) is not dict or node.keys is None:
        return {}, set()
    named: dict[str, object] = {}
    bad: set[str] = set()
    resolved, wrong = named_layouts(root, file)
    for name, value in node.value.items():
        named[name] = resolved.get(name, value.plain())
        if not NAME.fullmatch(name):
            problem = problems.LAYOUT_NAME(shorten(name, 40))
            errors.append(LayoutError(problem, file=file, line=node.keys[name][0], column=node.keys[name][1]))
        if name in wrong:
            bad.add(name)
            errors.append(wrong[name])
            continue
        try:
            read_layout(named[name])
        except Undecided:
            pass  # the check says so
        except LayoutError as error:
            bad.add(name)
            if isinstance(named[name], str) or (isinstance(named[name], dict) and len(value.value) == 1):
                errors.append(error.at(file, value.line, value.column))
    return named, bad


def _check(
    node: Node,
    file: str,
    source: str,
    layouts: Mapping[str, object],
    bad: set[str],
    errors: list[LayoutError],
    programs: Mapping[str, Node],
) -> Check | None:
    kind = _kind(node, file)
    model = model_of(kind)
    plain = node.plain()
    _, mistakes = validated(model, node, file)
    errors.extend(mistakes)
    if mistakes:
        return None
    assert node.keys is not None
    about = node.value[kind]
    if issubclass(model, ProgramCheck):
        return _program_check(node, file, source, kind, programs)
    if kind in OF_VALUES:
        return _values_check(node, file, source, kind, layouts)
    literal = kind == "tpu_default" or (kind == "invalid" and not _expression(about))
    parts = about.value if type(about.value) is list and not literal else [about]
    if bad.intersection(text for part in parts for text in _texts(part)):
        return None
    values = tuple(part.plain() if literal else _named(part, file, layouts) for part in parts)
    labels = tuple(_label(part.plain()) for part in parts)
    line, column = node.keys[kind]
    common: dict[str, Any] = {k: plain[k] for k in ("name", "note") if k in plain} | {"source": source}
    if not issubclass(model, PropertyCheck):
        fact = {k: v for k, v in plain.items() if k not in (kind, "name", "note")}
        return Check(file, line, column, kind, labels, values, fact=fact, **common)
    point = plain.get("counterexample")
    return Check(
        file,
        line,
        column,
        kind,
        labels,
        values,
        options={k: plain[k] for k in (*_OF_ASK, *_options(kind)) if k in plain},
        expect=plain.get("expect", "proved"),
        counterexample=None if point is None else {k: v if isinstance(v, dict) else tuple(v) for k, v in point.items()},
        figures=plain.get("figures", {}),
        reason=plain.get("reason", ""),
        **common,
    )


def _program_check(node: Node, file: str, source: str, kind: str, programs: Mapping[str, Node]) -> Check | None:
    """A claim about a program that the file names, None where that has a mistake; nothing is compiled here."""
    plain, about = node.plain(), node.value[kind]
    name = about.plain()
    if name not in programs:
        near = closest(name, list(programs)) or (
            "; named are " + ", ".join(programs) if programs else "; the file names none under programs"
        )
        raise LayoutError(
            problems.UNKNOWN_PROGRAM(shorten(name, 60), near), file=file, line=about.line, column=about.column
        )
    if not fits(ProgramModel, programs[name].plain()):
        return None
    assert node.keys is not None
    line, column = node.keys[kind]
    own = (kind, "name", "note", "expect", "reason", "figures")
    return Check(
        file,
        line,
        column,
        kind,
        (name,),
        (programs[name].plain(),),
        plain.get("name", ""),
        plain.get("note", ""),
        source,
        {key: value for key, value in plain.items() if key not in own},
        {},
        plain.get("expect", "proved"),
        None,
        plain.get("figures", {}),
        plain.get("reason", ""),
    )


def _values_check(node: Node, file: str, source: str, kind: str, named: Mapping[str, object]) -> Check:
    """A claim about the values of functions that the file names; nothing is imported here."""
    plain = node.plain()
    keys = (SAME, "as") if kind == SAME else (kind,)
    entries = [_function(node.value[key], file, named) for key in keys]
    entries[1:] = [with_args_of(entries[0], entry) for entry in entries[1:]]
    if "args" not in plain and any(entry.get("args", []) != entries[0].get("args", []) for entry in entries):
        about = node.value["as"]
        problem = problems.ARGUMENTS_DIFFER(plain[SAME], plain["as"])
        raise LayoutError(problem, file=file, line=about.line, column=about.column)
    assert node.keys is not None
    own = (*keys, "name", "note", "expect", "reason", "figures")
    return Check(
        file,
        *node.keys[kind],
        kind,
        tuple(plain[key] for key in keys),
        tuple({KEY: entry} for entry in entries),
        plain.get("name", ""),
        plain.get("note", ""),
        source,
        {key: value for key, value in plain.items() if key not in own},
        expect=plain.get("expect", "sampled"),
        figures=plain.get("figures", {}),
        reason=plain.get("reason", ""),
    )


def _function(about: Node, file: str, named: Mapping[str, object]) -> dict[str, Any]:
    """The entry of `kernels` that a claim about values names. LayoutError for what is none."""
    entries: dict[str, Any] = {name: value for name, value in named.items() if is_traced(value)}
    name = about.plain()
    if name not in entries or not isinstance(entries[name][KEY], Mapping):
        known = "; named are " + ", ".join(entries) if entries else "; the file names none under kernels"
        problem = problems.UNKNOWN_FUNCTION(shorten(name, 60), closest(name, list(entries)) or known)
        raise LayoutError(problem, file=file, line=about.line, column=about.column)
    return dict(entries[name][KEY])


def _options(kind: str) -> Sequence[str]:
    return ("target", "compiler", "only", "strict_tables") if kind == "kernel" else tuple(options_of(kind))


def _kind(node: Node, file: str) -> str:
    """The one key that says what is asked."""
    known = kinds()
    keys = node.keys or {}
    found = [key for key in keys if key in known]
    if not found:
        others = plugins.names("properties", known)
        found = [key for key in keys if key in others]
    if len(found) == 1:
        return found[0]
    if found:
        line, column = keys[found[1]]
        problem = problems.TWO_QUESTIONS(found[0], found[1])
        raise LayoutError(problem, file=file, line=line, column=column)
    for key, (line, column) in keys.items():
        near = closest(key, known)
        if near:
            raise LayoutError(problems.UNKNOWN_KEY(shorten(key, 40), near), file=file, line=line, column=column)
    found_keys = f"found only {', '.join(shorten(k, 40) for k in keys)}" if keys else "found nothing"
    problem = problems.NO_QUESTION(found_keys, ", ".join(known))
    raise LayoutError(problem, file=file, line=node.line, column=node.column)


def _label(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_label(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_label, value)) + "]"
    return str(value)


def _named(node: Node, file: str, layouts: Mapping[str, object]) -> object:
    """The definition of a layout's name; a text or mapping as it is, in an expression with the names looked up."""
    value = node.plain()
    if type(value) is not str:
        return _resolved(node, file, layouts, list(layouts))
    one = one_call(value, layouts)
    if one is not None:
        return one
    if not NAME.fullmatch(value):
        return value
    if value not in layouts:
        near = closest(value, list(layouts)) or ("; named are " + ", ".join(layouts) if layouts else "; none is named")
        raise LayoutError(problems.UNKNOWN_LAYOUT(value, near), file=file, line=node.line, column=node.column)
    return layouts[value]


def _of(root: Node, key: str, kind: type) -> Any:
    node = root.value.get(key)
    return node.value if node is not None and type(node.value) is kind else None
