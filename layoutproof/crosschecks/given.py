"""Cases from what a user has: spec files, dumps, Pallas kernels, texts of layouts."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.files import DUMP_ENDS, YAML_ENDS, lines, listed
from layoutproof.crosschecks.case import Case, PallasCall, layout_case
from layoutproof.hlotext.lines import events
from layoutproof.hlotext.module import Instruction
from layoutproof.hlotext.texts import arrays
from layoutproof.kernel.kernel import Kernel
from layoutproof.layouts.kernel.layout import KernelLayout
from layoutproof.registry.read import map_of
from layoutproof.specs.positions import read_yaml
from layoutproof.specs.spec import load

SIZES = ((5, 3, 2, 4, 7), (8, 16, 6, 9, 12))
"""Values that size symbols get, in the order in which a layout names them; a layout is compared at each."""
_FUNCTION = re.compile(r"(?:[A-Za-z_][\w.]*|[^:\s]+\.py):[A-Za-z_][\w.]*")


def given_cases(
    given: Sequence[object], args: Sequence[str] = (), kwargs: Mapping[str, str] | None = None
) -> list[Case]:
    """The cases of files, kernels and layouts, each text once.

    given: spec files and folders of them, dumps, `MODULE:FUNCTION`, layouts as `read_layout` takes them.
    args, kwargs: of the functions, as `layoutproof kernels` takes them.  Raises LayoutError for what cannot be read.
    """
    found: dict[tuple[str, int], Case] = {}
    for each in given:
        for case in _cases(each, args, kwargs or {}):
            found.setdefault((case.text, case.call.number if case.call else 0), case)
    return list(found.values())


def _cases(given: object, args: Sequence[str], kwargs: Mapping[str, str]) -> Iterator[Case]:
    path = Path(str(given)) if isinstance(given, str | Path) else None
    if path is not None and (path.name.endswith(YAML_ENDS) or os.path.isdir(path)):
        files = [path]
        if os.path.isdir(path):
            files = [p for p in listed(path) if p.name.endswith((*YAML_ENDS, *DUMP_ENDS))]
        for file in files:
            yield from _of_dump(file) if file.name.endswith(DUMP_ENDS) else _of_specs(file)
    elif path is not None and path.name.endswith(DUMP_ENDS):
        yield from _of_dump(path)
    elif isinstance(given, str) and _FUNCTION.fullmatch(given):
        yield from _of_function(given, args, kwargs)
    elif isinstance(given, str) and given.lstrip().startswith("{") and " sharded " not in given:
        yield from _with_sizes(layout_case(read_yaml(given).plain(), ""))
    else:
        yield from _with_sizes(layout_case(given, ""))


def _with_sizes(case: Case) -> Iterator[Case]:
    """The case, at some values of its size symbols where it has any.

    >>> [case.text for case in _with_sizes(layout_case("f32[N,M]{1,0}", "a.yaml:3"))]
    ['f32[5,3]{1,0}', 'f32[8,16]{1,0}']
    """
    names = () if case.kind == "kernel" else map_of(case.parsed).sizes()
    if not names:
        yield case
        return
    for values in SIZES:
        text = case.text
        for name, value in zip(names, itertools.cycle(values), strict=False):
            text = re.sub(rf"\b{re.escape(name)}\b", str(value), text)
        try:
            bound = layout_case(text, case.origin)
        except (LayoutError, Undecided):
            # these sizes make none: tiles that do not divide, strides of the wrong sign
            continue
        if not map_of(bound.parsed).sizes():
            yield bound


def _of_specs(path: Path) -> Iterator[Case]:
    """Every layout and kernel that a check of a spec file is about; both of a bitcast as a pair too."""
    checks, errors = load(path)
    if errors:
        raise errors[0]
    for check in checks:
        origin = f"{check.file}:{check.line}"
        cases = [case for value in check.layouts for case in _readable(value, origin)]
        yield from cases
        if check.kind == "bitcast" and len(cases) == 2 and not check.options:
            yield pair(*cases)


def _readable(value: object, origin: str) -> Iterator[Case]:
    if not isinstance(value, str | Mapping) or (isinstance(value, Mapping) and "trace" in value):
        return
    try:
        yield from _with_sizes(layout_case(value, origin))
    except (LayoutError, Undecided):
        # a check may be about a text that is wrong, or a sharding without an array; `check` says so
        return


def pair(first: Case, second: Case) -> Case:
    """Two layouts of which it is asked whether the same bytes are both."""
    return Case("pair", f"{first.text} -> {second.text}", (first.parsed, second.parsed), first.origin)


def _of_dump(path: Path) -> Iterator[Case]:
    """Every layout in a dump, at the first line that has it; the two of each bitcast as a pair."""
    shapes: dict[str, Case | None] = {}
    with lines(path) as text:
        known: dict[str, str] = {}
        for event in events(text, path.as_posix()):
            if not isinstance(event, Instruction):
                continue
            known[event.name] = event.shape
            for shape in arrays(event.shape):
                if shape not in shapes:
                    found = list(_readable(shape, f"{path.as_posix()}:{event.line}")) if "[" in shape else []
                    shapes[shape] = found[0] if found else None
                    yield from found
            if event.opcode == "bitcast" and event.operands:
                two = shapes.get(known.get(event.operands[0], "")), shapes.get(event.shape)
                if two[0] is not None and two[1] is not None:
                    yield pair(two[0], two[1])


def _of_function(place: str, args: Sequence[str], kwargs: Mapping[str, str]) -> Iterator[Case]:
    """Every Pallas call that a function makes."""
    from layoutproof.pallas.from_jax.user import argument, calls_of

    named = {name: argument(value) for name, value in kwargs.items()}
    calls = calls_of(place, args, named)
    if not any(isinstance(call, Kernel) for call in calls):
        raise LayoutError(f"{place} makes no Pallas call that is modelled; there is nothing to compare")
    for number, call in enumerate(calls):
        if isinstance(call, Kernel):
            yield Case(
                "kernel",
                place,
                KernelLayout(call),
                call.source,
                PallasCall(place, tuple(args), dict(kwargs), "", number),
            )
