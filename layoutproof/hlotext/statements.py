"""Instructions that are not on one line each, as people write them and as XLA's parser reads them.

XLA's lexer takes line ends as any other space. What its printer writes is read line by line in `lines`; what is
otherwise comes here: an instruction over several lines, several on one line, comments in between, no shape.
Source: `hlo_lexer.cc` and `ParseInstruction`, `ParseInstructionRhs` of `hlo_parser.cc` of openxla/xla (2026-08).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from layoutproof.core.bounds import DEEPEST
from layoutproof.core.brackets import QUOTED, closing, without_remarks
from layoutproof.hlotext.texts import element_of, element_text, parts

_MARK = re.compile(r'"|/[*/]')
_TO_QUOTE = re.compile(QUOTED.removeprefix('"'), re.DOTALL)
_BLANK = re.compile(r"\s+")
_STRING = re.compile(QUOTED, re.DOTALL)
_HEAD = re.compile(r"(ROOT\s+)?%?([\w.\-]+)\s*=\s*")
_ARRAY = re.compile(r"[a-z]\w*+\[[^\]]*+\](?:\{[^}]*+\})?")
_OPCODE = re.compile(r"([a-z][\w\-]*)\s*(?=\()")
_BUFFER = re.compile(r"b\((?:[a-z]\w*\[|\()")
_NESTED = re.compile(r"[\w\-]\s*\(")
_KEY = re.compile(r"([A-Za-z_][\w\-]*)\s*=\s*")
_WORD = re.compile(r'[^\s,(){}\[\]"]+')
_LAYOUT = re.compile(r"\{[^{}]*+\}")
_DIMENSIONS = re.compile(r"([a-z]\w*)\[([\d,]*)\]")
_BEGINS = re.compile(r"(?:ENTRY\s+)?%?[\w.\-]+\s*[({]")
MOST_LINES = 100_000
"""Lines of one instruction; a constant that is written out has a line for each of its rows."""

_AS_OPERAND = frozenset(
    (
        *("abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "copy", "cosine", "divide", "erf", "exponential"),
        *("exponential-minus-one", "floor", "log", "log-plus-one", "logistic", "maximum", "minimum", "multiply"),
        *("negate", "not", "or", "power", "remainder", "reverse", "round-nearest-afz", "round-nearest-even", "rsqrt"),
        *("select-and-scatter", "shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sqrt"),
        *("subtract", "tan", "tanh", "xor", "while", "all-reduce", "all-reduce-start", "all-reduce-done"),
        *("collective-permute", "opt-barrier", "optimization-barrier", "reduce-precision", "add-dependency"),
        *(
            "dynamic-update-slice",
            "scatter",
            "cholesky",
            "select",
            "is-finite",
            "count-leading-zeros",
            "popcnt",
            "sort",
        ),
    )
)
"""Opcodes whose result has the shape of an operand: `select` of its second, `clamp` of its second, others of the first.

`is-finite` gives pred; it is looked after in `inferred`.
"""


class Statement(NamedTuple):
    """One instruction as it is written. shape: "" where the text leaves it to be inferred.  attributes: with `, `."""

    root: bool
    name: str
    shape: str
    opcode: str
    inside: str
    attributes: str
    line: int


class Gathered:
    """Lines as one text without comments, and what of it is still open; each line is looked at once.

    The ends of lines in a comment stay, so that lines can be counted.

    >>> Gathered('a /* b */ "/* c */" // d').text
    'a  "/* c */" '
    >>> [Gathered(text).is_open for text in ("add(b,", "add(b, c),", "add(b, c)", "ROOT a")]
    [True, True, False, True]
    """

    __slots__ = ("_called", "_depth", "_end", "_inside", "_last", "_pieces")

    def __init__(self, line: str = "") -> None:
        self._pieces, self._inside, self._depth = list[str](), "", 0
        self._end = self._last = ""
        self._called = False
        self.add(line)

    def add(self, line: str) -> None:
        """The next line, with its end."""
        at, length = 0, len(line)
        while at < length:
            if self._inside == '"':
                found = _TO_QUOTE.match(line, at)
                end = length if found is None else found.end()
                if found is not None and found[1]:
                    self._inside = ""
                self._add(line[at:end], quoted=True)
            elif self._inside:
                end = line.find("*/", at)
                self._inside = "" if end >= 0 else self._inside
                end = end + 2 if end >= 0 else length
                self._pieces.append("\n" * line.count("\n", at, end))
            else:
                mark = _MARK.search(line, at)
                end = length if mark is None else mark.start()
                self._add(line[at:end])
                if mark is not None and mark[0] == "//":
                    # to the end of the line
                    end = line.find("\n", end)
                    end = end if end >= 0 else length
                elif mark is not None:
                    self._inside = mark[0]
                    end = mark.end()
                    if self._inside == '"':
                        self._add('"', quoted=True)
            at = end

    def _add(self, piece: str, quoted: bool = False) -> None:
        if not piece:
            return
        self._pieces.append(piece)
        if bare := piece.rstrip():
            self._end = bare[-1]
            if not quoted:
                self._last = bare[-1]
        if not quoted:
            self._depth += sum(map(piece.count, "([{")) - sum(map(piece.count, ")]}"))
            self._called = self._called or "(" in piece

    @property
    def text(self) -> str:
        """All of it."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    @property
    def is_quoted(self) -> bool:
        """Whether it ends inside a string."""
        return self._inside == '"'

    @property
    def goes_on(self) -> bool:
        """Whether a bracket, a string or a comment is not closed, or a comma ends it."""
        return bool(self._inside) or self._depth > 0 or self._last == ","

    @property
    def is_open(self) -> bool:
        """Whether it is no whole instruction yet: it goes on, `=` ends it, or it is one word."""
        return self.goes_on or self._end == "=" or (self._end not in (")", "]", "}") and not self._called)


def statements(text: str, line: int) -> tuple[list[Statement], str, str]:
    """The instructions in a text without comments; what follows the `}` that ends the computation; what is wrong.

    line: the number of its first line. What follows is "" where the computation does not end, "}" and the rest where it
    does; what is wrong is "" for nothing.

    >>> found, rest, wrong = statements("a = f32[] parameter(0) ROOT b =\\n add(a, a), metadata={} } c {", 7)
    >>> [(each.name, each.shape, each.opcode, each.line) for each in found], rest, wrong
    ([('a', 'f32[]', 'parameter', 7), ('b', '', 'add', 7)], '} c {', '')
    """
    found = list[Statement]()
    at, counted = _skipped(text, 0), 0
    while at < len(text):
        if text[at] == "}":
            return found, text[at:], ""
        line, counted = line + text.count("\n", counted, at), at
        one, end = _statement(text, at, line)
        if one is None:
            return found, "", f"not an instruction: {text[at : at + 80].strip()!r}"
        if _depth(one.inside) > DEEPEST:
            return found, "", f"operations within operations, more than {DEEPEST} deep: {text[at : at + 80].strip()!r}"
        found += _unnested(one)
        at = _skipped(text, end)
    return found, "", ""


def _depth(text: str) -> int:
    """How deep brackets stand within brackets, at most; what strings hold counts as well."""
    deepest = depth = 0
    for mark in _ROUND.findall(text):
        depth += 1 if mark == "(" else -1
        deepest = max(deepest, depth)
    return deepest


_ROUND = re.compile(r"[()]")


def _statement(text: str, at: int, line: int) -> tuple[Statement | None, int]:
    """The instruction that begins somewhere, and where it ends; None where there is none, or only a part of it."""
    head = _HEAD.match(text, at)
    if head is None:
        return None, at
    start = at = head.end()
    opcode = None if _BUFFER.match(text, at) else _OPCODE.match(text, at)
    if opcode is None:
        array = _ARRAY.match(text, at)
        if array is not None:
            at = array.end()
        else:
            at += text.startswith("b(", at)
            at = closing(text, at) + 1 if text.startswith("(", at) else 0
        if at <= 0:
            return None, start
        opcode = _OPCODE.match(text, _skipped(text, at))
        if opcode is None:
            return None, start
    shape = _flat(text[start:at])
    begin = text.index("(", opcode.end())
    end = closing(text, begin)
    if end < 0:
        return None, start
    attributes, at = list[str](), end + 1
    while text.startswith(",", _skipped(text, at)):
        key = _KEY.match(text, _skipped(text, _skipped(text, at) + 1))
        until = _value(text, key.end()) if key is not None else -1
        if key is None or until < 0:
            return None, start
        attributes.append(f", {key[1]}={_flat(text[key.end() : until])}")
        at = until
    inside = _flat(text[begin + 1 : end])
    return Statement(bool(head[1]), head[2], shape, opcode[1], inside, "".join(attributes), line), at


def nested(inside: str) -> bool:
    """Whether there is an instruction among the operands, as XLA's parser allows it.

    >>> nested("f32[2]{0:T(8)} convert(%x), %y"), nested("(f32[2]{0:T(8)}, s32[]) %x, /*index=1*/%y")
    (True, False)
    """
    bare = _LAYOUT.sub("", without_remarks(inside))
    return "(" in bare and _NESTED.search(bare) is not None


def _unnested(of: Statement) -> list[Statement]:
    """An instruction after those that stand among its operands, which get names of their own."""
    if of.opcode == "constant" or not nested(of.inside):
        return [of]
    found, names = list[Statement](), list[str]()
    for k, part in enumerate(parts(of.inside)):
        if nested(part):
            one, _ = _statement(f"{of.name}.operand{k} = {part}", 0, of.line)
            if one is not None:
                found += _unnested(one)
                names.append(one.name)
                continue
        names.append(part)
    return [*found, of._replace(inside=", ".join(names))]


def _value(text: str, at: int) -> int:
    """Where the value of an attribute ends; -1 where it is not there, or does not end."""
    begin = looked = at
    meshed = text.endswith("device_ids=", 0, begin)
    while at < len(text):
        mark = text[at]
        if mark in "([{":
            at = closing(text, at) + 1
            if at == 0:
                return -1
        elif mark == '"':
            string = _STRING.match(text, at)
            if string is None or not string[1]:
                return -1
            at = string.end()
        else:
            word = _WORD.match(text, at)
            if word is None:
                # `mesh['x'=2], device_ids=(1,0) {'x'}` has spaces in it, and no instruction begins with such a bracket
                after = _skipped(text, at)
                meshed, looked = meshed or text.find("mesh", looked, at) >= 0, max(begin, at - 3)
                if meshed and after > at > begin and text.startswith(("{", "["), after):
                    at = after
                    continue
                break
            at = word.end()
    return at if at > begin else -1


def inferred(of: Statement, operands: Sequence[str], shapes: dict[str, str], roots: dict[str, str]) -> str:
    """The shape that XLA infers where the text leaves it out; "" where that takes more than the operands' shapes.

    operands: their names.  shapes: of what is defined so far, by name.  roots: results of computations, by name.

    >>> shape = {"x": "f32[2]{0}", "t": "(f32[2]{0}, s32[])"}
    >>> inferred(Statement(True, "r", "", "tuple", "x, t", "", 1), ("x", "t"), shape, {})
    '(f32[2]{0}, (f32[2]{0}, s32[]))'
    """
    given = []
    for operand in operands:
        name, indices = element_of(operand)
        given.append(element_text(shapes.get(name, ""), indices))
    if of.opcode == "after-all":
        return "token[]"
    if of.opcode == "tuple" and all(given):
        return f"({', '.join(given)})"
    if of.opcode in ("call", "fusion", "conditional"):
        called = re.search(r"(?:to_apply|calls|true_computation|branch_computations)=\{?%?([\w.\-]+)", of.attributes)
        return roots.get(called[1], "") if called else ""
    if not given or not given[0]:
        return ""
    index = re.search(r"\bindex=(\d+)", of.attributes)
    if of.opcode == "get-tuple-element" and index is not None:
        return element_text(given[0], (int(index[1]),))
    if of.opcode in ("compare", "is-finite"):
        return "pred" + given[0][given[0].index("[") :] if "[" in given[0] else ""
    if of.opcode in ("select", "clamp"):
        return given[1] if len(given) > 1 else ""
    if of.opcode == "sort" and len(given) > 1:
        return f"({', '.join(given)})"
    return given[0] if of.opcode in _AS_OPERAND else _computed(of, given)


def _computed(of: Statement, given: Sequence[str]) -> str:
    """Shapes that XLA computes from dimensions; "" where that takes more than these."""
    arrays = [_DIMENSIONS.match(each.replace(" ", "")) for each in given]
    if None in arrays:
        return ""
    types = [found[1] for found in arrays if found is not None]
    sizes = [[int(size) for size in found[2].split(",") if size] for found in arrays if found is not None]
    first, along = sizes[0], _numbers(of.attributes, "dimensions")
    if of.opcode in ("real", "imag"):
        types[0], result = {"c64": "f32", "c128": "f64"}.get(types[0], ""), first
    elif of.opcode == "transpose" and along is not None and sorted(along) == [*range(len(first))]:
        result = [first[k] for k in along]
    elif of.opcode == "concatenate" and along is not None and len(along) == 1 and along[0] < min(map(len, sizes)):
        (k,) = along
        result = [*first[:k], sum(each[k] for each in sizes), *first[k + 1 :]]
    elif of.opcode == "reduce" and along is not None and len(given) == 2:
        result = [size for k, size in enumerate(first) if k not in along]
    elif of.opcode == "dot" and len(sizes) == 2:
        sides = [
            [_numbers(of.attributes, f"{side}_{kind}_dims") or [] for kind in ("batch", "contracting")]
            for side in ("lhs", "rhs")
        ]
        free = [[x for k, x in enumerate(e) if k not in {*b, *c}] for e, (b, c) in zip(sizes, sides, strict=True)]
        result = [*(first[k] for k in sides[0][0] if k < len(first)), *free[0], *free[1]]
    elif of.opcode == "pad" and (padding := re.search(r"\bpadding=([\dx_\-]+)", of.attributes)):
        edges = [[int(edge) for edge in each.split("_")] for each in padding[1].split("x")]
        if len(edges) != len(first):
            return ""
        inner = [max(size - 1, 0) * (edge[2] if len(edge) > 2 else 0) for size, edge in zip(first, edges, strict=True)]
        result = [size + edge[0] + edge[1] + more for size, edge, more in zip(first, edges, inner, strict=True)]
    else:
        return ""
    return f"{types[0]}[{','.join(map(str, result))}]" if types[0] else ""


def _numbers(attributes: str, name: str) -> list[int] | None:
    found = re.search(rf"\b{name}=\{{([\d,\s]*)\}}", attributes)
    return None if found is None else [int(each) for each in found[1].split(",") if each.strip()]


def header_of(text: str) -> tuple[str, str]:
    """A module's first line as XLA prints it, from one without comments that people wrote; and what follows it.

    The text itself, where it is none.

    >>> header_of("  HloModule m,\\n  is_scheduled=true,\\n replica_count=2\\n")
    ('HloModule m, is_scheduled=true, replica_count=2', '')
    """
    head = re.match(r"\s*HloModule\s+([^\s,]+)", text)
    if head is None:
        return text, ""
    said, at = [f"HloModule {head[1]}"], head.end()
    while text.startswith(",", _skipped(text, at)):
        key = _KEY.match(text, _skipped(text, _skipped(text, at) + 1))
        until = _value(text, key.end()) if key is not None else -1
        if key is None or until < 0:
            return text, ""
        said.append(f"{key[1]}={_flat(text[key.end() : until])}")
        at = until
    rest = text[at:].strip()
    return (", ".join(said), rest and f"{rest}\n") if not rest or _BEGINS.match(rest) else (text, "")


def _skipped(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _flat(text: str) -> str:
    """The text on one line."""
    return " ".join(line for each in text.split("\n") if (line := each.strip())) if "\n" in text else text.strip()
