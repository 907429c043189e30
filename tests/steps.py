"""Steps of this package counted: the same on every machine, with what C does over a text among them.

A line of Python may copy a text of any length, or search in it, so lines alone show nothing. The modules of the package
are rewritten as they are imported: each round of a loop and each call is a step, and what is cut out of a text, put
together, looked through or matched is as many steps as it has characters. A process that counts has to call `install`
before it imports anything of the package.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from typing import Any

from tests.patterns import Automaton, letter

steps = 0
"""Counted so far."""

_SIZED = (str, bytes, list, tuple, dict, set, frozenset)
_ALL = frozenset(
    (
        *("join", "list", "tuple", "set", "frozenset", "dict", "sorted", "sum", "any", "all", "min", "max", "extend"),
        *(
            "update",
            "fromkeys",
            "loads",
            "dumps",
            "parse",
            "int",
            "float",
            "Counter",
            "deque",
            "reversed",
            "writelines",
            "get_source_segment",
        ),
    )
)
"""Functions that take all of what they are given."""
_WHOLE = frozenset(
    (
        *("replace", "strip", "lstrip", "rstrip", "split", "rsplit", "splitlines", "lower", "upper", "partition"),
        *("rpartition", "encode", "decode", "isdigit", "isdecimal", "isspace", "isidentifier", "isalnum", "title"),
        *("removeprefix", "removesuffix", "translate", "format", "copy", "insert", "remove", "reverse", "sort"),
    )
)
"""Methods that go over, or copy, all of what they belong to."""
_FOUND = frozenset(("find", "index", "rfind", "rindex", "count"))


def _add(count: int) -> None:
    global steps
    steps += count


def _size(value: object) -> int:
    return len(value) if isinstance(value, _SIZED) else 0


def each(values: Iterable[Any]) -> Iterator[Any]:
    """The values, a step for each."""
    for value in values:
        _add(1)
        yield value


def cut(value: Any, where: Any) -> Any:
    """A part of a sequence."""
    part = value[where]
    _add(1 + _size(part))
    return part


def made(value: Any) -> Any:
    """Something that was put together."""
    _add(1 + _size(value))
    return value


def asked(value: Any) -> Any:
    """What a loop goes on by."""
    _add(1)
    return value


def within(part: Any, whole: Any) -> bool:
    """Whether something is in a sequence."""
    held = part in whole
    if isinstance(whole, str | bytes) and held:
        _add(whole.find(part) + 1)
    elif isinstance(whole, str | bytes | list | tuple):
        _add(1 + len(whole))
    return held


def call(function: Any, *given: Any, **named: Any) -> Any:
    """A call of anything."""
    _add(1)
    of, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(of, re.Pattern):
        return _matched(of, name, function, given, named)
    if isinstance(of, str | bytes) and name in _FOUND:
        return _looked(of, name, function, given)
    if isinstance(of, _SIZED) and name in _WHOLE:
        _add(len(of))
    elif name == "pop" and isinstance(of, list) and given and given[0] >= 0:
        _add(len(of) - given[0])
    elif name in _ALL:
        _add(sum(map(_size, given)))
    return function(*given, **named)


def _looked(of: str | bytes, name: str, function: Callable[..., int], given: Sequence[Any]) -> int:
    begin, end, _ = slice(*given[1:3] if len(given) > 2 else (*(given[1:] or (0,))[:1], None)).indices(len(of))
    _add(max(0, end - begin))
    found = function(*given)
    if name in ("find", "index") and found >= 0:
        _add(found - end)
    elif name in ("rfind", "rindex") and found >= 0:
        _add(begin - found)
    return found


def _matched(of: re.Pattern[Any], name: str, function: Any, given: Sequence[Any], named: Any) -> Any:
    text = given[1] if name in ("sub", "subn") else given[0]
    begin = given[1] if len(given) > 1 and name not in ("sub", "subn", "split") else 0
    end = min(len(text), given[2]) if len(given) > 2 and name not in ("sub", "subn", "split") else len(text)
    if name == "finditer":
        return _one_by_one(function(*given, **named), begin, end)
    found = function(*given, **named)
    if isinstance(found, re.Match):
        _add(found.end() - begin)
    elif name in ("match", "fullmatch"):
        # what cannot go on here is seen soon, but for what a pattern has behind a loop
        _add(_ways(of).length(text, begin, end))
    else:
        _add(max(0, end - begin))
    return found


class _Ways:
    """How far into a text a pattern can go before it is clear that it matches nothing there."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self.automaton = Automaton(pattern.pattern, pattern.flags & ~re.UNICODE)
        self.next: dict[tuple[frozenset[int], int], frozenset[int]] = {}

    def length(self, text: Any, begin: int, end: int) -> int:
        """In characters."""
        classes, at = self.automaton.classes, begin
        states = frozenset(state for state, _ in self.automaton.begin)
        while at < end and states:
            bit = letter(text[at] if isinstance(text, str) else chr(text[at]))
            key = (states, bit) if at > begin else (states, -bit)
            if key not in self.next:
                follow = self.automaton.follow
                self.next[key] = frozenset(
                    [q for q in states if classes[q] & bit]
                    if at == begin
                    else [q for p in states for q, letters in follow[p] if letters & bit]
                )
            states = self.next[key]
            at += 1
        return at - begin


_ways = cache(_Ways)


def _one_by_one(found: Iterator[re.Match[Any]], begin: int, end: int) -> Iterator[re.Match[Any]]:
    for match in found:
        _add(1 + match.end() - begin)
        begin = match.end()
        yield match
    _add(max(0, end - begin))


class _Counted(ast.NodeTransformer):
    """Calls of the functions above in place of what does as much."""

    def _of(self, name: str, node: ast.expr, *given: ast.expr) -> ast.expr:
        function = ast.Attribute(ast.Name("__steps__", ast.Load()), name, ast.Load())
        return ast.copy_location(ast.Call(function, list(given), []), node)

    def visit_For(self, node: ast.For) -> ast.AST:
        """A loop."""
        self.generic_visit(node)
        node.iter = self._of("each", node.iter, node.iter)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        """A loop."""
        self.generic_visit(node)
        node.test = self._of("asked", node.test, node.test)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        """A loop."""
        self.generic_visit(node)
        if not node.is_async:
            node.iter = self._of("each", node.iter, node.iter)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """A slice."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or not isinstance(node.slice, ast.Slice):
            return node
        none = ast.Constant(None)
        ends = [each or none for each in (node.slice.lower, node.slice.upper, node.slice.step)]
        where = ast.copy_location(ast.Call(ast.Name("slice", ast.Load()), ends, []), node)
        return self._of("cut", node, node.value, where)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Texts and lists that are added."""
        self.generic_visit(node)
        return self._of("made", node, node) if isinstance(node.op, ast.Add) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """A text of several."""
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                value.value = self.visit(value.value)
        return self._of("made", node, node)

    def visit_List(self, node: ast.List) -> ast.AST:
        """A list of others."""
        self.generic_visit(node)
        starred = isinstance(node.ctx, ast.Load) and any(isinstance(each, ast.Starred) for each in node.elts)
        return self._of("made", node, node) if starred else node

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        """A tuple of others."""
        return self.visit_List(node)  # type: ignore[arg-type]

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Whether something is in a text."""
        self.generic_visit(node)
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.In | ast.NotIn):
            return node
        inside = self._of("within", node, node.left, node.comparators[0])
        return ast.copy_location(ast.UnaryOp(ast.Not(), inside), node) if isinstance(node.ops[0], ast.NotIn) else inside

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "vars", "globals", "cast"):
            return node
        node.args.insert(0, node.func)
        node.func = ast.Attribute(ast.Name("__steps__", ast.Load()), "call", ast.Load())
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Types are no steps."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Types are no steps."""
        return node

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        """A pattern of a match is no call."""
        return node

    visit_MatchClass = visit_MatchMapping = visit_MatchSequence = visit_MatchOr = visit_MatchAs = visit_MatchValue  # type: ignore[assignment]


def compiled(source: str | bytes, path: str) -> Any:
    """A module's code, counted; it finds this module as `__steps__`."""
    tree = ast.fix_missing_locations(_Counted().visit(ast.parse(source, path)))
    return compile(tree, path, "exec", dont_inherit=True)


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> Any:
        """From the source, always: what is kept of it is not counted."""
        path = self.get_filename(fullname)
        return compiled(self.get_data(path), path)

    def exec_module(self, module: Any) -> None:
        """With this module under a name that nobody has."""
        module.__dict__["__steps__"] = sys.modules[__name__]
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Where the others find a module of the package, with the loader that counts."""
        if name.partition(".")[0] != "layoutproof":
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if isinstance(spec.loader, SourceFileLoader):
                    spec.loader = _Loader(spec.loader.name, spec.loader.path)
                return spec
        return None


def install() -> None:
    """From here on what is imported of the package is counted."""
    sys.meta_path.insert(0, _Finder())
