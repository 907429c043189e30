"""The shapes with which a project's own tests call the functions that make Pallas calls.

A function is noted when a Pallas call is made while it runs: its arguments as they were when it was called. So a
profile of Python's calls is kept while the tests run, which makes them slower, and nothing of the project is changed.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

MOST_OF_ONE = 4
"""Different arguments of one function that are stated."""
_PALLAS = os.path.join("jax", "_src", "pallas", "pallas_call.py")
_CALLS = ("pallas_call", "_pallas_call", "wrapped")


@dataclass(frozen=True, slots=True)
class Called:
    """One way in which a function was called, with a Pallas call in it.

    place: `module:function`, as a spec file names it.  args: texts of shapes, and values.  kwargs: those by name only.
    problem: why these arguments cannot be stated; "" where they are.  file, line: of the function.
    """

    place: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    file: str = ""
    line: int = 0


class ArgumentsWatch:
    """Notes the calls while it is on. root: the project; wanted: per file below it, the functions of interest."""

    def __init__(self, root: str, wanted: Mapping[str, Sequence[str]]) -> None:
        self.wanted = {os.path.join(root, file): frozenset(names) for file, names in wanted.items()}
        self.found: dict[str, Called] = {}
        self.here = threading.local()

    def start(self) -> None:
        """Of this thread and of those that begin later."""
        threading.setprofile(self._event)
        sys.setprofile(self._event)

    def stop(self) -> None:
        """Of this thread; the others go on to their end and note nothing that is read."""
        threading.setprofile(None)
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call":
            file = code.co_filename
            if file in self.wanted:
                if code.co_qualname in self.wanted[file]:
                    self._open().append((frame, _arguments(frame, code)))
            elif code.co_name in _CALLS and file.endswith(_PALLAS) and (open_ := self._open()):
                # the innermost function that can be stated; one around it where it cannot
                for outer, called in reversed(open_):
                    self.found.setdefault(repr((called.place, called.args, called.kwargs, called.problem)), called)
                    if not called.problem and outer is not None:
                        break
        elif event == "return" and code.co_filename in self.wanted:
            open_ = self._open()
            if open_ and open_[-1][0] is frame:
                open_.pop()

    def _open(self) -> list[tuple[FrameType, Called]]:
        if not hasattr(self.here, "open"):
            self.here.open = []
        found: list[tuple[FrameType, Called]] = self.here.open
        return found


def _arguments(frame: FrameType, code: CodeType) -> Called:
    """The arguments of a call that begins, as a spec file states them."""
    name, module = code.co_qualname, str(frame.f_globals.get("__name__", ""))
    place = f"{module}:{name}"
    at = {"file": code.co_filename, "line": code.co_firstlineno}
    values = frame.f_locals
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    rest = code.co_varnames[len(names) : len(names) + 2]
    if code.co_flags & 0x04 and values.get(rest[0]):
        return Called(place, problem=f"it takes *{rest[0]}", **at)  # type: ignore[arg-type]
    keywords = rest[1 if code.co_flags & 0x04 else 0] if code.co_flags & 0x08 else ""
    if keywords and values.get(keywords):
        return Called(place, problem=f"it takes **{keywords}", **at)  # type: ignore[arg-type]
    for k, each in enumerate(names):
        value = stated(values.get(each), k >= count)
        if value is _NONE:
            kind = type(values.get(each)).__name__
            return Called(place, problem=f"its argument {each} is a {kind}, which a file cannot state", **at)  # type: ignore[arg-type]
        if k < count:
            args.append(value)
        else:
            kwargs[each] = value
    return Called(place, tuple(args), kwargs, **at)  # type: ignore[arg-type]


_NONE = object()


def stated(value: object, keyword: bool = False) -> object:
    """An argument as a spec file states it, `_NONE` where it cannot: an array by its shape, a literal by its text.

    keyword: whether it is given by its name, where a file states values alone.

    >>> stated((8, None, "a")), stated(8, keyword=True), stated(print) is _NONE
    ("(8, None, 'a')", 8, True)
    """
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        kind = str(getattr(dtype, "name", dtype))
        known = re.fullmatch(r"\w+", kind) and all(type(size) is int for size in shape)
        return f"{kind}[{','.join(map(str, shape))}]" if known and not keyword else _NONE
    if value is None or type(value) in (bool, int, float):
        return value
    if keyword:
        return value if type(value) is str or (type(value) is list and _literal(value)) else _NONE
    return repr(value) if _literal(value) else _NONE


def _literal(value: object) -> bool:
    """Whether Python reads its text as the same value."""
    if type(value) in (tuple, list):
        return all(map(_literal, value))  # type: ignore[call-overload]
    return value is None or type(value) in (bool, int, float, str)


def run_tests(asked: tuple[str, Mapping[str, Sequence[str]], Sequence[str]]) -> tuple[int, list[Called]]:
    """Runs pytest in this process and folder: its exit code, and how the functions were called.

    asked: the project's folder, the functions of interest per file, and pytest's own arguments.
    """
    import importlib.util

    import pytest

    root, wanted, arguments = asked
    # as `python -m pytest` does
    sys.path.insert(0, root)
    watch = ArgumentsWatch(os.path.realpath(root), wanted)
    alone = ["-n", "0"] if importlib.util.find_spec("xdist") is not None else []
    watch.start()
    try:
        code = pytest.main([*alone, "-q", "-p", "no:cacheprovider", "--rootdir", root, *arguments])
    finally:
        watch.stop()
    return int(code), list(watch.found.values())


def chosen(found: Sequence[Called]) -> tuple[list[Called], list[Called]]:
    """Those that a file states, at most `MOST_OF_ONE` of a function; and a problem of each function that has none."""
    by: dict[str, list[Called]] = {}
    for called in found:
        if not called.problem:
            by.setdefault(called.place, []).append(called)
    named = [each for calls in by.values() for each in calls[:MOST_OF_ONE]]
    problems = {called.place: called for called in found if called.problem and called.place not in by}
    return named, list(problems.values())


def spec_text(named: Sequence[Called], source: str) -> str:
    """A spec file that states them, with a claim about each."""
    import json

    seen: dict[str, int] = {}
    entries, checks = [], []
    for called in named:
        name = re.sub(r"\W", "_", called.place.rpartition(":")[2])
        seen[name] = seen.get(name, 0) + 1
        name = name if seen[name] == 1 else f"{name}_{seen[name]}"
        while name in checks:
            name += "_"
        parts = [f"trace: {json.dumps(called.place)}", f"args: {json.dumps(list(called.args))}"]
        parts += [f"kwargs: {json.dumps(dict(called.kwargs))}"] if called.kwargs else []
        entries.append(f"  {name}: {{{', '.join(parts)}}}")
        checks.append(name)
    head = (
        f"# The shapes with which the project's own tests call what makes Pallas calls.\nsource: {json.dumps(source)}\n"
    )
    return head + "\n".join(["kernels:", *entries, "checks:", *(f"  - kernel: {name}" for name in checks), ""])
