"""Edits of one place each, made of the text of a file alone: what is wrong in kernels is mostly one of these.

Another comparison, a number that is one off, another name of the same function, two arguments in the other order, a
division that drops a rest, a sum that is not cast, scratch that nothing sets to zero, a wait that is missing. None is
right by itself: `answers/of_repair.py` judges each. The cost of an edit says how unlikely it is, 0 the likeliest.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from layoutproof.repairing.source import Function, ParsedText, reached, unread

MOST_NAMES = 8
"""Other names of a function that are tried in the place of one."""
MOST_NUMBERS = 6
"""Other numbers of a function, likewise."""
LIKELY = 4
"""By how much an edit is likelier of whose kind most repairs of such a fault are."""
GRID_AXES = 3
"""Axes of a grid for which a block of zeros is tried, the last one first where there are fewer."""

_COMPARED: dict[type[ast.cmpop], tuple[str, Sequence[str]]] = {
    ast.Lt: ("<", ("<=", ">=", ">")),
    ast.LtE: ("<=", ("<", ">", ">=")),
    ast.Gt: (">", (">=", "<=", "<")),
    ast.GtE: (">=", (">", "<", "<=")),
    ast.Eq: ("==", ("!=", ">=", "<=")),
    ast.NotEq: ("!=", ("==",)),
}
_OPERATORS: dict[type[ast.operator], tuple[str, Sequence[str]]] = {
    ast.Add: ("+", ("-", "*")),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("/", "+")),
    ast.Div: ("/", ("*",)),
    ast.FloorDiv: ("//", ("%",)),
    ast.Mod: ("%", ("//",)),
    ast.BitAnd: ("&", ("|",)),
    ast.BitOr: ("|", ("&",)),
}
_PLAIN = ("0.0", "1.0", "0.5", "2.0", "-jnp.inf", "jnp.inf")
_SMALL = tuple(f"1e-{k}" for k in (3, 5, 6, 7, 8, 9, 10, 12))
_SIBLINGS = {
    "sum": ("mean", "max"), "mean": ("sum",), "max": ("min", "sum"), "min": ("max",), "exp": ("exp2", "log"),
    "exp2": ("exp",), "log": ("exp", "log2"), "log2": ("log",), "sin": ("cos",), "cos": ("sin",), "sqrt": ("rsqrt",),
    "rsqrt": ("sqrt",), "maximum": ("minimum", "add"), "minimum": ("maximum",), "argmax": ("argmin",),
    "argmin": ("argmax",), "tanh": ("sigmoid",), "ones_like": ("zeros_like",), "zeros_like": ("ones_like",),
    "rem": ("mod",), "cumsum": ("cumprod",), "square": ("abs",), "abs": ("square",), "floor": ("ceil",),
    "ceil": ("floor",), "erf": ("erfc",), "any": ("all",), "all": ("any",), "prod": ("sum",),
}  # fmt: skip
"""Functions that are taken for one another."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a text.

    Attributes:
        start: The offset of the first character that is replaced.
        end: The offset after the last one; `start` of a text that is put between.
        new: What stands there then.
        line: The line of `start`, from 1.
        words: The change in words.
        cost: How unlikely it is, from 0.
        kind: What it changes: `zero`, `wait`, `order` of the grid's programs, `mask`, `grid`, `index`, else `value`.
    """

    start: int
    end: int
    new: str
    line: int
    words: str
    cost: int = 0
    kind: str = ""

    def of(self, text: str) -> str:
        """The text with this change."""
        return text[: self.start] + self.new + text[self.end :]


Maker = Callable[[ParsedText, ast.AST], Iterator[Edit]]


def edits(source: ParsedText, name: str, lines: Sequence[int] = (), kinds: Collection[str] = ()) -> list[Edit]:
    """The edits of what a function reaches in its file, the likeliest first.

    Args:
        source: The file.
        name: The function's name in it.
        lines: Where something is wrong, the first the surest; edits of these come first, then those of the functions
            around them.
        kinds: What repairs such a fault most often; edits of these kinds come before others as near.

    Returns:
        Each edit once; one after which the text is as it was is left out.

    >>> from layoutproof.repairing.source import source_of
    >>> found = edits(source_of("def f(n):\\n    return n < 3\\n"), "f", [2])
    >>> found[0].words
    'line 2: n <= 3, and not n < 3'
    """
    statements = reached(source, name)
    left_out = unread(source, statements)
    near = _near(source, lines)
    found: dict[tuple[int, int, str], tuple[tuple[int, int, int], Edit]] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if node in left_out:
                continue
            far, place = _far(source, node, lines, near), _kind(source, node)
            for maker in MAKERS:
                for made in maker(source, node):
                    edit = made if made.kind else replace(made, kind=place)
                    key = edit.start, edit.end, edit.new
                    rank = far + edit.cost - LIKELY * (edit.kind in kinds), far, edit.start
                    if source.text[edit.start : edit.end] != edit.new and (key not in found or rank < found[key][0]):
                        found[key] = rank, edit
    return [edit for _, edit in sorted(found.values(), key=lambda one: one[0])]


def _kind(source: ParsedText, node: ast.AST) -> str:
    """What a node is a part of: an index map or an index, the grid of a call, or a value."""
    before = node
    for around in source.around(node):
        if isinstance(around, ast.Lambda) and before is around.body:
            return "index"
        if isinstance(around, ast.Subscript) and before is around.slice:
            return "index"
        if isinstance(around, ast.Call) and getattr(around.func, "attr", "") in ("ds", "dslice"):
            return "index"
        if isinstance(around, ast.keyword) and around.arg == "grid":
            return "grid"
        if isinstance(around, ast.stmt):
            break
        before = around
    return "value"


def _near(source: ParsedText, lines: Sequence[int]) -> set[ast.AST]:
    """The functions around the lines."""
    wanted = set(lines)
    nodes = (node for node in ast.walk(source.tree) if isinstance(node, ast.stmt) and node.lineno in wanted)
    return {one for node in nodes if (one := source.function(node)) is not None}


def _far(source: ParsedText, node: ast.AST, lines: Sequence[int], near: set[ast.AST]) -> int:
    """How far a node is from where something is wrong, in units of cost."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
    if not isinstance(node, ast.FunctionDef):
        for far, line in enumerate(lines):
            if first <= line <= last and last - first < 8:
                return min(far, 2)
    if node in near or any(one in near for one in source.around(node)):
        return 2
    return 4 if lines else 0


def _compared(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """Another comparison of the same two."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        old, others = _COMPARED[type(node.ops[0])]
        for k, new in enumerate(others):
            yield from _operator(source, node, (node.left, node.comparators[0]), (old, new), min(k, 1))


def _calculated(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """Another operation on the same two, the two in the other order, or one of them alone."""
    if not isinstance(node, ast.BinOp):
        return
    if type(node.op) in _OPERATORS:
        old, others = _OPERATORS[type(node.op)]
        for new in others:
            yield from _operator(source, node, (node.left, node.right), (old, new), 1)
    if isinstance(node.op, ast.FloorDiv):
        left, right = source.of(node.left), source.of(node.right)
        yield _replaced(source, node, f"-(-({left}) // ({right}))", 0)
    whole, left, right = source.of(node), source.of(node.left), source.of(node.right)
    if isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.MatMult):
        middle = source.text[source.end(node.left) : source.start(node.right)]
        if "(" not in middle and ")" not in middle and whole.startswith(left):
            yield _replaced(source, node, f"{right}{middle}{left}", 2)
    yield _replaced(source, node, f"({left})" if _loose(node.left) else left, 1)
    yield _replaced(source, node, f"({right})" if _loose(node.right) else right, 2)


def _numbers(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """A number that is one off, or another one of the same function."""
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool) or not isinstance(node.value, int | float):
        return
    value = node.value
    if isinstance(value, int):
        for other in (value + 1, value - 1):
            if other >= 0:
                yield _replaced(source, node, str(other), 0)
        if value > 3 and value % 2 == 0:
            yield _replaced(source, node, str(value * 2), 1)
            yield _replaced(source, node, str(value // 2), 1)
    else:
        yield _replaced(source, node, f"(-{source.of(node)})", 1)
        for plain in _SMALL if 0 < value < 1e-2 else _PLAIN:
            yield _replaced(source, node, plain, 2)
    others = _constants(source, node, type(value))
    for text in others[:MOST_NUMBERS]:
        yield _replaced(source, node, text, 1)
    function = source.function(node)
    if isinstance(function, ast.Lambda) and isinstance(value, int):
        for name in _parameters(function):
            yield _replaced(source, node, name, 0)


def _constants(source: ParsedText, node: ast.Constant, kind: type) -> list[str]:
    """The other numbers of a kind in the outermost function around a node, the nearest first."""
    outer = [one for one in source.around(node) if isinstance(one, ast.stmt)]
    found = [
        other
        for other in ast.walk(outer[-1] if outer else source.tree)
        if isinstance(other, ast.Constant) and type(other.value) is kind and other.value != node.value
    ]
    found.sort(key=lambda other: abs(other.lineno - node.lineno))
    return list(dict.fromkeys(source.of(other) for other in found))


def _negative(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """Without its sign, or with one."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield _replaced(source, node, source.of(node.operand), 0)


def _names(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """Another name of the same function; one more or one less."""
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return
    parent = source.parents.get(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        return
    function = source.function(node)
    if isinstance(function, ast.Lambda):
        others = _parameters(function)
        if node.id in others:
            yield _replaced(source, node, "0", 1)
            for text in (f"{node.id} + 1", f"{node.id} - 1", f"2 * {node.id}"):
                yield _replaced(source, node, text if _alone(parent) else f"({text})", 1)
            # a table of scalar prefetch that is not asked
            for table in others:
                if table != node.id and not isinstance(parent, ast.Subscript):
                    yield _replaced(source, node, f"{table}[{node.id}]", 1)
        cost = 0
    else:
        others, cost = _local(source, node), 2
        if node.id not in others:
            return
        indexed = isinstance(parent, ast.Subscript) and parent.slice is node
        if indexed or isinstance(parent, ast.Call | ast.Tuple | ast.Slice):
            for text in (f"{node.id} + 1", f"{node.id} - 1"):
                yield _replaced(source, node, text, 3)
    for name in others[:MOST_NAMES]:
        yield _replaced(source, node, name, cost)


def _alone(parent: ast.AST | None) -> bool:
    """Whether a sum may stand in a node without brackets."""
    return not isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Attribute)


def _parameters(function: ast.AST) -> list[str]:
    if not isinstance(function, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    return [arg.arg for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def _local(source: ParsedText, node: ast.AST) -> list[str]:
    """The names that the functions around a node define, those of the nearest first."""
    found: dict[str, None] = {}
    for function in source.around(node):
        if not isinstance(function, ast.FunctionDef):
            continue
        found.update(dict.fromkeys(_parameters(function)))
        for one in ast.walk(function):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                found[one.id] = None
        if function.name != "_":
            break
    return [name for name in found if name != "_"]


def _swapped(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """Two parts in the other order: of what an index map returns, of an index, of the arguments of a call."""
    parts: Sequence[ast.expr] = ()
    if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load) and 2 <= len(node.elts) <= 4:
        parts = node.elts
    elif isinstance(node, ast.Call) and len(node.args) == 2 and not any(isinstance(a, ast.Starred) for a in node.args):
        parts = node.args
    for k, first in enumerate(parts):
        for second in parts[k + 1 :]:
            between = source.text[source.end(first) : source.start(second)]
            new = f"{source.of(second)}{between}{source.of(first)}"
            yield _span(source, source.start(first), source.end(second), new, 0 if isinstance(node, ast.Tuple) else 2)


def _sliced(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """The other end: the last elements for the first, or what a slice leaves out."""
    if not isinstance(node, ast.Slice) or node.step is not None or (node.lower is None) == (node.upper is None):
        return
    whole = ast.copy_location(ast.Name("_"), node)
    old = source.of(whole)
    bound = source.of(node.lower if node.lower is not None else node.upper)  # type: ignore[arg-type]
    others = (f"-({bound}):", f"{bound}:") if node.lower is None else (f":{bound}", f":-({bound})")
    for new in others:
        yield _span(source, source.start(whole), source.start(whole) + len(old), new, 1)


def _called(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """Another function of the same kind, its argument alone, another choice of `where`, no cast, a transpose."""
    if not isinstance(node, ast.Call):
        return
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    for other in _SIBLINGS.get(name, ()):
        end = source.end(function)
        yield _span(source, end - len(name), end, other, 1)
    if len(node.args) == 1 and not node.keywords and name not in ("astype", "program_id", "num_programs"):
        yield _replaced(source, node, f"({source.of(node.args[0])})", 2)
    if name == "where" and len(node.args) == 3:
        _, taken, left = node.args
        between = source.text[source.end(taken) : source.start(left)]
        new = f"{source.of(left)}{between}{source.of(taken)}"
        yield _span(source, source.start(taken), source.end(left), new, 1)
        yield _replaced(source, node, f"({source.of(taken)})", 2)
    if name == "astype" and isinstance(function, ast.Attribute):
        yield _replaced(source, node, f"({source.of(function.value)})", 2)
    if name in ("dot", "dot_general", "matmul") and len(node.args) >= 2:
        for arg in node.args[:2]:
            yield _replaced(source, arg, f"({source.of(arg)}).T", 2)


def _attributes(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """Without a transpose."""
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield _replaced(source, node, source.of(node.value), 2)


def _texts(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """A dimension of the grid that runs in order; an argument that is the other of two."""
    if isinstance(node, ast.Constant) and node.value == "parallel":
        yield replace(_replaced(source, node, '"arbitrary"', 0), kind="order")
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield _replaced(source, node, str(not node.value), 1)


def _stored(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """A store that adds, one that does not, one that is left out; two statements in the other order."""
    if not isinstance(node, ast.stmt):
        return
    match node:
        case ast.Assign(targets=[ast.Subscript() as target]):
            between = source.text[source.end(target) : source.start(node.value)]
            new = between.replace("=", "+=", 1)
            yield _span(source, source.end(target), source.start(node.value), new, 1)
        case ast.AugAssign(target=target):
            between = source.text[source.end(target) : source.start(node.value)]
            yield _span(source, source.end(target), source.start(node.value), _assigned(between, "="), 1)
            other = {ast.Add: "-=", ast.Sub: "+=", ast.Mult: "/="}.get(type(node.op), "")
            if other:
                yield _span(source, source.end(target), source.start(node.value), _assigned(between, other), 2)
    after = _next(source, node)
    if after is not None and source.indent(node) and source.indent(after) and not _decorated(node, after):
        between = source.text[source.end(node) : source.start(after)]
        new = f"{source.of(after)}{between}{source.of(node)}"
        moved = _span(source, source.start(node), source.end(after), new, 2)
        yield replace(moved, kind="wait") if ".wait(" in new else moved
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Assign) and source.indent(node):
        yield _span(source, source.start(node), source.end(node), "pass", 4, f"without {_short(source.of(node))}")


def _assigned(between: str, new: str) -> str:
    """What stands between a target and a value, with another operator than `+=` and its like."""
    before, _, after = between.partition("=")
    return before.rstrip("+-*/%@&|^<>") + new + after


def _decorated(*nodes: ast.stmt) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.decorator_list for node in nodes)


def _next(source: ParsedText, node: ast.stmt) -> ast.stmt | None:
    """The statement after one in the same block."""
    block = getattr(source.parents.get(node), "body", None)
    if not isinstance(block, list) or node not in block:
        return None
    k = block.index(node)
    return block[k + 1] if k + 1 < len(block) else None


def _waited(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """A copy that is waited for: right after its start, or at the end of the block."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call) or not source.indent(node):
        return
    function = node.value.func
    if not isinstance(function, ast.Attribute) or function.attr != "start" or node.value.args:
        return
    wait = f"{source.of(function.value)}.wait()"
    places: list[ast.stmt] = [node]
    while (after := _next(source, places[-1])) is not None:
        places.append(after)
    for place in places:
        line = f"\n{source.indent(node)}{wait}"
        at = source.end(place)
        yield replace(_span(source, at, at, line, 1, f"{wait} after line {place.end_lineno}"), kind="wait")


def _zeroed(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """A reference that a kernel adds to is set to zero first: in the first step of one axis of the grid, or always."""
    if not isinstance(node, ast.FunctionDef) or not node.body:
        return
    first = node.body[1] if _is_text(node.body[0]) and len(node.body) > 1 else node.body[0]
    indent = source.indent(first)
    if not indent:
        return
    # where a block begins it already, another one would leave what that stores where it should not
    within = [one for one in ast.walk(node) if isinstance(one, Function) and one is not node]
    added = _added(node) - {name for one in within for name in _begun(one)}
    at = source.start(first)
    if isinstance(first, ast.FunctionDef) and first.decorator_list:
        at = source.starts[first.decorator_list[0].lineno - 1] + len(indent)
    for name in [one for one in _parameters(node) if one in added]:
        zero = f"{name}[...] = jnp.zeros_like({name})"
        for axis in reversed(range(GRID_AXES)):
            block = f"@pl.when(pl.program_id({axis}) == 0)\n{indent}def _():\n{indent}    {zero}\n\n{indent}"
            words = f"{zero} where pl.program_id({axis}) is 0, before all else"
            yield replace(_span(source, at, at, block, 1, words), kind="zero")
        yield replace(_span(source, at, at, f"{zero}\n{indent}", 2, f"{zero} before all else"), kind="zero")


def _added(node: ast.AST) -> set[str]:
    """The references that a kernel adds to."""
    return {
        one.target.value.id
        for one in ast.walk(node)
        if isinstance(one, ast.AugAssign)
        and isinstance(one.target, ast.Subscript)
        and isinstance(one.target.value, ast.Name)
    }


def _begun(node: ast.AST) -> set[str]:
    """The references that a function stores into without reading them: it begins a sum, or a maximum."""
    found = set[str]()
    for one in ast.walk(node):
        target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        if isinstance(one, ast.Assign) and isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            found |= {target.value.id} - _read(one.value)
    return found


def _read(node: ast.AST) -> set[str]:
    """The references that are read."""
    return {
        one.value.id
        for one in ast.walk(node)
        if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name) and isinstance(one.ctx, ast.Load)
    }


def _begins(source: ParsedText, node: ast.AST) -> Iterator[Edit]:
    """A block that begins a sum does so in the first step of another axis of the grid."""
    if not isinstance(node, ast.FunctionDef):
        return
    kernel = source.function(node)
    if kernel is None or not _begun(node) & (_added(kernel) | _read(kernel)):
        return
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute) and decorator.args:
            for axis in reversed(range(GRID_AXES)) if decorator.func.attr == "when" else ():
                first = f"{source.of(decorator.func.value)}.program_id({axis}) == 0"
                yield replace(_replaced(source, decorator.args[0], first, 0), kind="zero")


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


MAKERS: Sequence[Maker] = (
    _compared, _calculated, _numbers, _negative, _names, _swapped, _sliced, _called, _attributes, _texts, _stored,
    _waited, _zeroed, _begins,
)  # fmt: skip


def wrapped(source: ParsedText, name: str, reference: str, condition: str) -> Iterator[Edit]:
    """What is loaded of a reference is 0 where a condition does not hold.

    name: of the function whose part of the file is looked at.  reference: a parameter of the kernel.
    condition: Python, of the shape of what is loaded.
    """
    for statement in reached(source, name):
        for node in ast.walk(statement):
            if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
                continue
            if isinstance(node.value, ast.Name) and node.value.id == reference:
                masked = f"jnp.where({condition}, {source.of(node)}, 0)"
                yield replace(_replaced(source, node, masked, 0), kind="mask")


def joined(text: str, several: Sequence[Edit]) -> Edit:
    """Some edits of places that do not overlap, as one."""
    order = sorted(several, key=lambda edit: edit.start)
    start, end = order[0].start, order[-1].end
    new, at = "", start
    for edit in order:
        new += text[at : edit.start] + edit.new
        at = edit.end
    return Edit(start, end, new, order[0].line, "; ".join(edit.words for edit in order), kind=order[0].kind)


def _operator(
    source: ParsedText, node: ast.expr, sides: tuple[ast.expr, ast.expr], change: tuple[str, str], cost: int
) -> Iterator[Edit]:
    """Another operator between two operands."""
    old, new = change
    start, end = source.end(sides[0]), source.start(sides[1])
    between = source.text[start:end]
    if between.count(old) == 1:
        place, words = start + between.index(old), source.of(node)
        at = place - source.start(node)
        shown = words[:at] + new + words[at + len(old) :]
        yield _span(source, place, place + len(old), new, cost, f"{_short(shown)}, and not {_short(words)}")


def _replaced(source: ParsedText, node: ast.expr, new: str, cost: int) -> Edit:
    start, end = source.start(node), source.end(node)
    return _span(source, start, end, new, cost)


def _span(source: ParsedText, start: int, end: int, new: str, cost: int, words: str = "") -> Edit:
    line = source.text.count("\n", 0, start) + 1
    words = words or f"{_short(new)}, and not {_short(source.text[start:end])}"
    return Edit(start, end, new, line, f"line {line}: {words}", cost)


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= 60 else plain[:57] + ".."


def _loose(node: ast.expr) -> bool:
    """Whether an operand needs brackets where it stands alone."""
    return isinstance(node, ast.BinOp | ast.BoolOp | ast.Compare | ast.IfExp | ast.Lambda | ast.UnaryOp)
