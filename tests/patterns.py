"""Whether a regular expression can be made to go back: its automaton, and the ambiguities that cost more than a pass.

A backtracking engine does at most as many steps as its pattern has runs over the prefixes of a text. Runs are at most
linear in the text unless a word can be pumped in two ways (Weber and Seidl 1991, "On the degree of ambiguity of finite
automata", criteria EDA and IDA, with every state taken as final; a search begins anywhere, so that its pattern has a
loop over any character in front). So what is asked here of a pattern holds for
every text, not for those that somebody tried.

The automaton is that of Glushkov: a state is one character class of the pattern. Where it cannot be exact it has more
runs than the engine: what an assertion ahead excludes is kept. A possessive loop is left by what cannot go on in it.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from re import _constants as names  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

PACKAGE = Path(__file__).parents[1] / "layoutproof"

_ALPHABET = [*map(chr, range(128)), "\x85", "\xa0", "\u2028", "é", "∘", "٣", "中"]
_ALL = (1 << len(_ALPHABET)) - 1
_COPIES = 8
"""Of a bounded repetition at most so many characters stand in a row in the automaton: the rest is a factor."""


def _of(pattern: str) -> int:
    matches = re.compile(pattern, re.DOTALL).fullmatch
    return sum(1 << n for n, letter in enumerate(_ALPHABET) if matches(letter))


_WORD = _of(r"\w")
_CATEGORIES = {
    names.CATEGORY_DIGIT: _of(r"\d"),
    names.CATEGORY_NOT_DIGIT: _of(r"\D"),
    names.CATEGORY_SPACE: _of(r"\s"),
    names.CATEGORY_NOT_SPACE: _of(r"\S"),
    names.CATEGORY_WORD: _WORD,
    names.CATEGORY_NOT_WORD: _of(r"\W"),
}


class Way(NamedTuple):
    """How nothing is read between two characters.

    before: what the character before may be.  after: what the next may be.  edge: whether exactly one of the two is
    of a word.  asked: whether something was asked that may not hold.
    """

    before: int = _ALL
    after: int = _ALL
    edge: bool = False
    asked: bool = False

    def then(self, other: Way) -> Way:
        """This and the other at one place."""
        return Way(
            self.before & other.before, self.after & other.after, self.edge or other.edge, self.asked or other.asked
        )


class Part(NamedTuple):
    """Of a piece of a pattern: ways through it that read nothing, its first and last states, the way to each."""

    empty: tuple[Way, ...] = ()
    first: tuple[tuple[int, Way], ...] = ()
    last: tuple[tuple[int, Way], ...] = ()


class Automaton:
    """classes: what each state reads.  follow: from a state to others, by which characters.  begin: the first states.
    final: states after which the pattern has matched, whatever comes.
    """

    def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
        """Of a pattern as `re` takes it."""
        self.classes: list[int] = []
        self.follow: list[list[tuple[int, int]]] = []
        tree = _parser.parse(pattern, flags)
        self.flags = tree.state.flags
        whole = self._sequence(tree)
        self.begin = [(q, way) for q, way in whole.first if way.before or way.after]
        self.final = {q for q, way in whole.last if not way.asked}
        self.empty = any(not way.asked for way in whole.empty)

    def _state(self, letters: int) -> Part:
        if self.flags & re.IGNORECASE:
            for n, letter in enumerate(_ALPHABET):
                for other in (letter.lower(), letter.upper()):
                    if letters >> n & 1 and other in _ALPHABET:
                        letters |= 1 << _ALPHABET.index(other)
        self.classes.append(letters)
        self.follow.append([])
        here = ((len(self.classes) - 1, Way()),)
        return Part((), here, here)

    def _link(self, last: Iterable[tuple[int, Way]], first: Iterable[tuple[int, Way]]) -> None:
        for p, one in last:
            for q, other in first:
                way = one.then(other)
                letters = self.classes[q] & way.after if self.classes[p] & way.before else 0
                if way.edge and not self.classes[p] & ~_WORD:
                    letters &= ~_WORD
                elif way.edge and not self.classes[p] & _WORD:
                    letters &= _WORD
                if letters:
                    self.follow[p].append((q, letters))

    def _join(self, one: Part, two: Part) -> Part:
        self._link(one.last, two.first)
        return Part(
            tuple(dict.fromkeys(a.then(b) for a in one.empty for b in two.empty)),
            one.first + tuple((q, a.then(way)) for a in one.empty for q, way in two.first),
            two.last + tuple((q, way.then(b)) for b in two.empty for q, way in one.last),
        )

    def _sequence(self, items: Any) -> Part:
        part = Part((Way(),))
        for kind, value in items:
            part = self._join(part, self._one(kind, value))
        return part

    def _one(self, kind: Any, value: Any) -> Part:
        if kind in (names.LITERAL, names.NOT_LITERAL, names.ANY, names.IN):
            return self._state(_letters(kind, value, self.flags))
        if kind is names.BRANCH:
            parts = [self._sequence(each) for each in value[1]]
            return Part(*(tuple(x for part in parts for x in part[n]) for n in range(3)))  # type: ignore[arg-type]
        if kind is names.SUBPATTERN:
            return self._sequence(value[3])
        if kind is names.ATOMIC_GROUP:
            return self._sequence(value)
        if kind in (names.MAX_REPEAT, names.MIN_REPEAT, names.POSSESSIVE_REPEAT):
            return self._repeat(*value, possessive=kind is names.POSSESSIVE_REPEAT)
        if kind is names.AT:
            return Part((self._at(value),))
        if kind in (names.ASSERT, names.ASSERT_NOT):
            return self._assertion(kind is names.ASSERT, *value)
        raise ValueError(f"{kind}: not read here")

    def _at(self, where: Any) -> Way:
        if where in (names.AT_BEGINNING, names.AT_BEGINNING_STRING):
            multiline = where is names.AT_BEGINNING and self.flags & re.MULTILINE
            return Way(before=_of(r"\n") if multiline else 0, asked=True)
        if where is names.AT_BOUNDARY:
            return Way(edge=True, asked=True)
        return Way(asked=True)

    def _assertion(self, holds: bool, direction: int, items: Any) -> Part:
        if direction > 0:
            inside = self._sequence(items)
            after = _ALL
            if len(items) == 1 and items[0][0] in (names.LITERAL, names.NOT_LITERAL, names.ANY, names.IN):
                after = _letters(*items[0], self.flags) if holds else ~_letters(*items[0], self.flags) & _ALL
                return Part((Way(after=after, asked=True),))
            return Part((Way(after=after, asked=True),), inside.first)
        kind, value = items[-1] if len(items) else (None, None)
        if kind in (names.LITERAL, names.NOT_LITERAL, names.ANY, names.IN) and (holds or len(items) == 1):
            letters = _letters(kind, value, self.flags)
            return Part((Way(before=letters if holds else ~letters & _ALL, asked=True),))
        return Part((Way(asked=True),))

    def _repeat(self, low: int, high: Any, items: Any, possessive: bool) -> Part:
        endless = high is names.MAXREPEAT
        size = max(1, len(list(_leaves(items))))
        copies = min(low if endless else high, max(1, _COPIES // size))
        part, ends = Part((Way(),)), list[tuple[int, Way]]()
        for n in range(copies):
            if n >= min(low, copies):
                # what may be left out is left out with all that comes after it
                ends += part.last
                skipped = part.empty
            loop = self._sequence(items)
            part = self._join(part, loop)
            if n >= min(low, copies):
                part = part._replace(empty=tuple(dict.fromkeys((*part.empty, *skipped))))
        if endless:
            if not copies:
                loop = part = self._sequence(items)
                part = part._replace(empty=(*part.empty, Way()))
            self._link(loop.last, loop.first)
        part = part._replace(last=(*part.last, *ends))
        if possessive:
            goes_on = 0
            for q, way in part.first:
                # a round that is one character never fails once it is read
                if (q, Way()) in loop.last:
                    goes_on |= self.classes[q] & way.after
            stop = Way(after=~goes_on & _ALL)
            part = Part(
                tuple(way.then(stop) for way in part.empty),
                part.first,
                tuple((q, way.then(stop)) for q, way in part.last),
            )
        return part


def _leaves(items: Any) -> Iterator[Any]:
    for kind, value in items:
        if kind is names.BRANCH:
            for each in value[1]:
                yield from _leaves(each)
        elif kind is names.SUBPATTERN:
            yield from _leaves(value[3])
        elif kind is names.ATOMIC_GROUP:
            yield from _leaves(value)
        elif kind in (names.MAX_REPEAT, names.MIN_REPEAT, names.POSSESSIVE_REPEAT):
            yield from _leaves(value[2])
        else:
            yield kind


def _letters(kind: Any, value: Any, flags: int) -> int:
    if kind is names.ANY:
        return _ALL if flags & re.DOTALL else _ALL & ~_of(r"\n")
    if kind is names.LITERAL:
        return _letter(value)
    if kind is names.NOT_LITERAL:
        return _ALL & ~_letter(value)
    found, negated = 0, False
    for one, of in value:
        if one is names.NEGATE:
            negated = True
        elif one is names.LITERAL:
            found |= _letter(of)
        elif one is names.RANGE:
            found |= sum(1 << n for n, letter in enumerate(_ALPHABET) if of[0] <= ord(letter) <= of[1])
        else:
            found |= _CATEGORIES[of]
    return ~found & _ALL if negated else found


@cache
def letter(character: str) -> int:
    """A character as a set of letters of the automata."""
    # one that is not of the alphabet stands for itself by the last one of it
    return 1 << (_ALPHABET.index(character) if character in _ALPHABET else len(_ALPHABET) - 1)


def _letter(code: int) -> int:
    return letter(chr(code))


@cache
def ambiguity(pattern: str | bytes, flags: int = 0, search: bool = True, whole: bool = False) -> str:
    """How a text can make the engine go over it more than once; "" where none can.

    Args:
        pattern: As `re` takes it.
        flags: As `re` takes them.
        search: It may begin anywhere in the text.
        whole: It must match to the end of it, so that reaching a final state is no success yet.
    """
    it = Automaton(pattern, flags)
    loops = _loops(it)
    for q in sorted(set().union(*loops) if loops else ()):
        if q in it.final and not whole:
            continue
        if search and (found := _restarts(it, q)):
            return f"each place begins anew what runs on: {found!r}"
    for component in loops:
        if not whole and component <= it.final:
            continue
        if found := _two_ways(it, component):
            return f"one loop has two ways: {found!r}"
    for one in loops:
        for two in loops:
            if one is not two and not (two <= it.final and not whole) and (found := _two_loops(it, one, two)):
                return f"two loops read the same: {found!r}"
    return ""


def _loops(it: Automaton) -> list[frozenset[int]]:
    """The strongly connected components with an edge."""
    reach = []
    for p in range(len(it.classes)):
        seen, todo = set(), [p]
        while todo:
            for q, _ in it.follow[todo.pop()]:
                if q not in seen:
                    seen.add(q)
                    todo.append(q)
        reach.append(seen)
    return list(dict.fromkeys(frozenset(q for q in seen if p in reach[q]) for p, seen in enumerate(reach) if p in seen))


def _restarts(it: Automaton, q: int) -> str:
    """A word that leads from the beginning to q and from q to q."""
    before = it.classes[q]
    start: list[tuple[int, int, int]] = []
    for p, way in it.begin:
        allowed = way.before & before
        if not allowed:
            continue
        letters = it.classes[p] & way.after
        if way.edge and not allowed & ~_WORD:
            letters &= ~_WORD
        elif way.edge and not allowed & _WORD:
            letters &= _WORD
        for r, others in it.follow[q]:
            if letters & others:
                start.append((p, r, letters & others))
    return _path(it, start, lambda pair: pair == (q, q))


def _two_ways(it: Automaton, component: frozenset[int]) -> str:
    for p in component:
        edges = [(r, letters) for r, letters in it.follow[p] if r in component]
        start = [
            (r, s, a & b)
            for n, (r, a) in enumerate(edges)
            for m, (s, b) in enumerate(edges)
            if n < m and a & b and it.classes[r]
        ]
        if found := _path(it, start, lambda pair: pair[0] == pair[1], component, component):
            return found
    return ""


def _two_loops(it: Automaton, one: frozenset[int], two: frozenset[int]) -> str:
    """A word that leads from p to p, from p to q, and from q to q."""
    for p in one:
        for q in two:
            start = [
                (a, b, c, x & y & z)
                for a, x in it.follow[p]
                if a in one
                for b, y in it.follow[p]
                for c, z in it.follow[q]
                if c in two and x & y & z
            ]
            seen = {each[:3] for each in start}
            todo = deque((each[:3], _some(each[3])) for each in start)
            while todo:
                (a, b, c), word = todo.popleft()
                if (a, b, c) == (p, q, q):
                    return word
                for a2, x in it.follow[a]:
                    if a2 not in one:
                        continue
                    for c2, z in it.follow[c]:
                        if c2 not in two or not x & z:
                            continue
                        for b2, y in it.follow[b]:
                            if x & y & z and (a2, b2, c2) not in seen:
                                seen.add((a2, b2, c2))
                                todo.append(((a2, b2, c2), word + _some(x & y & z)))
    return ""


def _path(it: Automaton, start: Any, wanted: Any, left: Any = None, right: Any = None) -> str:
    seen = {each[:2] for each in start}
    todo = deque((each[:2], _some(each[2])) for each in start)
    while todo:
        (a, b), word = todo.popleft()
        if wanted((a, b)):
            return word
        for a2, x in it.follow[a]:
            if left is not None and a2 not in left:
                continue
            for b2, y in it.follow[b]:
                if x & y and (a2, b2) not in seen and (right is None or b2 in right):
                    seen.add((a2, b2))
                    todo.append(((a2, b2), word + _some(x & y)))
    return ""


def _some(letters: int) -> str:
    """One letter of them, a plain one where there is one."""
    for plain in 'a1 ,(){}[]"\n':
        if letters >> _ALPHABET.index(plain) & 1:
            return plain
    return _ALPHABET[(letters & -letters).bit_length() - 1]


class Use(NamedTuple):
    """A pattern in the sources. where: file and line.  name: it is kept under, "" where it is used at once."""

    where: str
    name: str
    pattern: str | bytes
    flags: int
    search: bool
    whole: bool


_ANYWHERE = {"search", "finditer", "findall", "sub", "subn", "split", "scanner"}


def uses() -> Iterator[Use]:
    """Every regular expression of the package, evaluated in its module; what only a call knows is one word `x`."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if "re." not in _source(path):
            continue
        tree = _tree(path)
        calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call) and _of_re(each)]
        if not calls:
            continue
        scope = vars(importlib.import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)))
        named = {
            id(each.value): each.targets[0].id
            for each in ast.walk(tree)
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
        }
        for call in calls:
            method = call.func.attr  # type: ignore[attr-defined]
            pattern = _text(call.args[0], scope)
            if pattern is None:
                continue
            flags = [*call.args[1:], *(k.value for k in call.keywords if k.arg == "flags")]
            number = 0
            for each in flags:
                if ast.unparse(each).startswith("re."):
                    number = int(eval(ast.unparse(each), {"re": re}))
            name = named.get(id(call), "")
            methods = {method} if method != "compile" else _methods(name, path, tree)
            where = f"{path.relative_to(PACKAGE.parent)}:{call.lineno}"
            yield Use(where, name, pattern, number, bool(methods & _ANYWHERE) or not methods, methods == {"fullmatch"})


@cache
def _source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(_source(path))


def _of_re(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "re"
        and call.func.attr not in ("escape", "purge")
    )


@cache
def _methods(name: str, path: Path, tree: ast.AST) -> set[str]:
    if not name:
        return set()
    taken = {
        each.func.attr
        for each in ast.walk(tree)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and any(isinstance(a, ast.Name) and a.id == name for a in each.args)
    }
    if "matched" in taken:
        return {"match"}
    if not name.startswith("_"):
        # who uses it, under another name too, imports it by its own
        files = [_tree(p) for p in PACKAGE.rglob("*.py") if name in _source(p)]
        given = {
            a.asname or a.name
            for file in files
            for each in ast.walk(file)
            if isinstance(each, ast.ImportFrom)
            for a in each.names
            if a.name == name
        }
    else:
        files, given = [tree], set()
    given.add(name)
    return {
        each.attr
        for file in files
        for each in ast.walk(file)
        if isinstance(each, ast.Attribute)
        and (
            (isinstance(each.value, ast.Name) and each.value.id in given)
            or (isinstance(each.value, ast.Attribute) and each.value.attr == name)
        )
    } & (_ANYWHERE | {"match", "fullmatch"})


def _text(node: ast.expr, scope: dict[str, Any]) -> str | bytes | None:
    try:
        return eval(compile(ast.Expression(node), "pattern", "eval"), scope)
    except (NameError, AttributeError):
        pass
    if isinstance(node, ast.JoinedStr):
        parts = [_text(each.value if isinstance(each, ast.FormattedValue) else each, scope) for each in node.values]
        return "".join("x" if part is None else str(part) for part in parts)
    return None
