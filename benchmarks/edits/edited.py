"""Single edits of a kernel's source: every place where one can be made, and what it makes of it.

An edit is one change of the syntax tree of a function, bodies and index maps within it included: an operator, a
comparison, a constant, a name, an index, a mask, a condition, a call, a statement that is dropped, doubled or exchanged
with the next one, an element type; a store that adds or adds no more, a conversion or the type of a sum left out, an
axis, an extent of a grid or of a block, what a function is taken of, a transposition.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

COMPUTED: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add,), ast.Mult: (ast.Add, ast.Div), ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mod, ast.Mult), ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,), ast.MatMult: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,),
}  # fmt: skip
COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE), ast.NotEq: (ast.Eq,),
}  # fmt: skip
CALLED = {
    "exp": ("exp2", "tanh"), "exp2": ("exp",), "log": ("log1p",), "maximum": ("minimum", "add"),
    "minimum": ("maximum",),
    "max": ("min", "sum"), "min": ("max",), "sum": ("max", "mean"), "mean": ("sum",), "rsqrt": ("sqrt",),
    "sqrt": ("rsqrt", "square"), "tanh": ("sinh",), "zeros_like": ("ones_like",), "erf": ("tanh",), "abs": ("square",),
    "cumsum": ("cumprod",), "program_id": ("num_programs",), "sigmoid": ("tanh",), "silu": ("gelu",),
}  # fmt: skip
TYPES = {"F32": ("BF16",), "BF16": ("F32",)}
WIDTHS = {"int32": ("int8", "int16", "float32"), "int8": ("int32",), "int16": ("int32",), "float32": ("int32",)}


@dataclass(frozen=True)
class Edit:
    """One change. kind: what sort of.  text: the function with it.  line: in the function.  words: was -> now."""

    kind: str
    text: str
    line: int
    words: str


Place = tuple[str, ast.AST, Callable[[], ast.AST | None]]
"""(kind, the node that is changed, what changes it where it stands and gives what stands there now)"""


def function_of(text: str) -> ast.FunctionDef:
    """The function that a text is."""
    (found,) = ast.parse(text).body
    assert isinstance(found, ast.FunctionDef)
    return found


def edit(text: str, draw: random.Random) -> Edit:
    """A random edit of a function's text: every kind that there is is as likely."""
    places = list(_places(function_of(text)))
    kind = draw.choice(sorted({kind for kind, _, _ in places}))
    chosen = draw.choice([k for k, (other, _, _) in enumerate(places) if other == kind])
    tree = function_of(text)
    _, node, change = list(_places(tree))[chosen]
    was = ast.unparse(node)
    now = change()
    ast.fix_missing_locations(tree)
    said = "nothing" if now is None else ast.unparse(now)
    return Edit(kind, ast.unparse(tree), getattr(node, "lineno", 0), f"{was}  ->  {said}")


def _places(function: ast.FunctionDef) -> Iterator[Place]:
    """All edits, in the order of the tree; calling what changes a place changes this tree."""
    yield from _inside(function, ())


def _inside(node: ast.AST, scopes: tuple[tuple[str, ...], ...]) -> Iterator[Place]:
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        scopes = (*scopes, tuple(a.arg for a in node.args.args))
    yield from _of_statements(node)
    for field, value in ast.iter_fields(node):
        if field in ("args", "returns", "annotation") and isinstance(value, ast.arguments | ast.expr):
            continue
        many = value if isinstance(value, list) else [value]
        for k, child in enumerate(many):
            if not isinstance(child, ast.AST) or _is_text(child):
                continue
            if isinstance(child, ast.expr):
                yield from _of_expression(child, _putter(node, field, value, k), scopes)
            yield from _inside(child, scopes)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _putter(node: ast.AST, field: str, value: object, k: int) -> Callable[[ast.AST], ast.AST]:
    def put(new: ast.AST) -> ast.AST:
        if isinstance(value, list):
            value[k] = new
        else:
            setattr(node, field, new)
        return new

    return put


def _of_statements(node: ast.AST) -> Iterator[Place]:
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return
    for k, statement in enumerate(body):
        if _is_text(statement) or isinstance(statement, ast.Return):
            continue

        def drop(k: int = k) -> None:
            body[k] = ast.Pass()

        def double(k: int = k) -> ast.AST:
            body.insert(k, deepcopy(body[k]))
            return ast.Module([body[k], body[k + 1]], [])

        def exchange(k: int = k) -> ast.AST:
            body[k], body[k + 1] = body[k + 1], body[k]
            return ast.Module([body[k], body[k + 1]], [])

        if isinstance(statement, ast.AugAssign | ast.Assign):
            yield from _of_store(statement, body, k)
        yield "statement dropped", statement, drop
        yield "statement doubled", statement, double
        if k + 1 < len(body) and not isinstance(body[k + 1], ast.Return):
            yield "statements exchanged", statement, exchange


def _of_store(statement: ast.AugAssign | ast.Assign, body: list[ast.stmt], k: int) -> Iterator[Place]:
    """A store that adds stores alone, or takes away; one that stores adds."""

    def put(new: ast.stmt) -> ast.AST:
        body[k] = new
        return new

    if isinstance(statement, ast.AugAssign):
        target, value = statement.target, statement.value
        yield "store", statement, lambda: put(ast.Assign([target], value))
        opposite = ast.Sub() if isinstance(statement.op, ast.Add) else ast.Add()
        yield "store", statement, lambda: put(ast.AugAssign(target, opposite, value))
    elif len(statement.targets) == 1 and isinstance(target := statement.targets[0], ast.Subscript):
        yield "store", statement, lambda: put(ast.AugAssign(target, ast.Add(), statement.value))


def _of_expression(
    node: ast.expr, put: Callable[[ast.AST], ast.AST], scopes: tuple[tuple[str, ...], ...]
) -> Iterator[Place]:
    def other(kind: str, make: Callable[[], ast.AST]) -> Place:
        return kind, node, lambda: put(make())

    match node:
        case ast.BinOp(left=left, op=op, right=right):
            for new in COMPUTED.get(type(op), ()):
                yield other("operator", lambda new=new: ast.BinOp(left, new(), right))
            if isinstance(op, ast.Sub | ast.Div | ast.Pow | ast.MatMult):
                yield other("operator", lambda: ast.BinOp(right, op, left))
            yield other("operator", lambda: left)
            yield other("operator", lambda: right)
            if isinstance(op, ast.Mult | ast.Div):
                yield from _of_factor(left, op, right, other)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            for compared in COMPARED.get(type(op), ()):
                yield other("comparison", lambda new=compared: ast.Compare(left, [new()], [right]))
        case ast.UnaryOp(operand=operand):
            yield other("operator", lambda: operand)
        case ast.Constant(value=bool(value)):
            yield other("constant", lambda: ast.Constant(not value))
        case ast.Constant(value=int(value)):
            for number in sorted({value + 1, value - 1, 0, 2 * value} - {value}):
                yield other("constant", lambda number=number: ast.Constant(number))
        case ast.Constant(value=float(value)):
            for factor in (2.0, 0.5, -1.0, 1.01, 0.0):
                yield other("constant", lambda factor=factor: ast.Constant(value * factor))
        case ast.Name(id=name):
            for new_type in TYPES.get(name, ()):
                yield other("element type", lambda new=new_type: ast.Name(new, ast.Load()))
            own = next((scope for scope in reversed(scopes) if name in scope), ())
            for instead in own if isinstance(node.ctx, ast.Load) else ():
                if instead != name:
                    yield other("name", lambda new=instead: ast.Name(new, ast.Load()))
        case ast.Attribute(value=whole, attr="T"):
            yield other("transposed", lambda: whole)
        case ast.Attribute(value=ast.Name(id="jnp") as module, attr=name):
            for width in WIDTHS.get(name, ()):
                yield other("element type", lambda new=width: ast.Attribute(module, new, ast.Load()))
        case ast.Tuple(elts=elements) if isinstance(node.ctx, ast.Load) and len(elements) > 1:
            for k in range(len(elements) - 1):
                turned = [*elements[:k], elements[k + 1], elements[k], *elements[k + 2 :]]
                yield other("index", lambda turned=turned: ast.Tuple(turned, ast.Load()))
            for k in range(len(elements)):
                zero = [*elements[:k], ast.Constant(0), *elements[k + 1 :]]
                yield other("index", lambda zero=zero: ast.Tuple(zero, ast.Load()))
        case ast.Call():
            yield from _of_call(node, other)


def _of_factor(
    left: ast.expr, op: ast.operator, right: ast.expr, other: Callable[[str, Callable[[], ast.AST]], Place]
) -> Iterator[Place]:
    """A factor of what a function gives, as one of what it is taken of."""
    match left:
        case ast.Call(func=function, args=[inner, *rest], keywords=words) if not _is_cast(function):
            taken = ast.Call(function, [ast.BinOp(inner, op, right), *rest], words)
            yield other("taken of", lambda: taken)


def _is_cast(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in ("astype", "cdiv", "program_id")


def _of_words(node: ast.Call, other: Callable[[str, Callable[[], ast.AST]], Place]) -> Iterator[Place]:
    """What is said by a keyword, or left out with it: an axis, the type of a sum, extents of a grid."""
    for k, word in enumerate(node.keywords):

        def given(value: ast.expr | None, k: int = k) -> ast.Call:
            own = [] if value is None else [ast.keyword(node.keywords[k].arg, value)]
            return ast.Call(node.func, node.args, [*node.keywords[:k], *own, *node.keywords[k + 1 :]])

        if word.arg == "preferred_element_type":
            yield other("conversion", lambda given=given: given(None))
        elif word.arg == "axis":
            yield other("axis", lambda given=given, word=word: given(_other_axis(word.value)))
        elif word.arg == "grid" and isinstance(word.value, ast.Tuple):
            yield from (other("extent", lambda given=given, new=new: given(new)) for new in _extents(word.value.elts))


def _other_axis(axis: ast.expr) -> ast.Constant:
    """The first one, or in its place the last."""
    return ast.Constant(-1 if isinstance(axis, ast.Constant) and axis.value == 0 else 0)


def _extents(elements: list[ast.expr]) -> Iterator[ast.Tuple]:
    """Each extent one less, one more, half and double."""
    changes = ((ast.Sub(), 1), (ast.Add(), 1), (ast.FloorDiv(), 2), (ast.Mult(), 2))
    for k, element in enumerate(elements):
        for op, by in changes:
            new = ast.BinOp(element, op, ast.Constant(by))
            yield ast.Tuple([*elements[:k], new, *elements[k + 1 :]], ast.Load())


def _of_call(node: ast.Call, other: Callable[[str, Callable[[], ast.AST]], Place]) -> Iterator[Place]:
    function, arguments = node.func, node.args
    yield from _of_words(node, other)
    if not isinstance(function, ast.Attribute):
        return
    name, whole = function.attr, function.value

    def call(attr: str, given: list[ast.expr]) -> ast.Call:
        return ast.Call(ast.Attribute(whole, attr, ast.Load()), given, node.keywords)

    if name == "where" and len(arguments) == 3:
        condition, yes, no = arguments
        for made in (yes, no, call(name, [condition, no, yes])):
            yield other("mask", lambda made=made: made)
    elif name == "when":
        (condition,) = arguments
        negated = ast.Call(ast.Attribute(ast.Name("jnp", ast.Load()), "logical_not", ast.Load()), [condition], [])
        yield other("condition", lambda: call(name, [negated]))
        yield other("condition", lambda: call(name, [ast.Compare(condition, [ast.Eq()], [condition])]))
    elif name == "astype":
        yield other("conversion", lambda: whole)
    elif name == "BlockSpec" and arguments and isinstance(arguments[0], ast.Tuple):
        for new in _extents(arguments[0].elts):
            yield other("extent", lambda new=new: call(name, [new, *arguments[1:]]))
    elif name in ("max", "min", "sum", "mean") and len(arguments) == 1 and not isinstance(whole, ast.Name):
        yield other("axis", lambda: call(name, [_other_axis(arguments[0])]))
    elif isinstance(whole, ast.Name) and whole.id in ("jnp", "lax") and len(arguments) == 1:
        yield other("call", lambda: arguments[0])
    if len(arguments) == 2 and name not in ("BlockSpec", "where"):
        yield other("call", lambda: call(name, arguments[::-1]))
    match arguments:
        # where what keeps it from 0 is added
        case [ast.BinOp(left=inner, op=ast.Add() as op, right=small)] if name in ("sqrt", "rsqrt", "log"):
            yield other("taken of", lambda: ast.BinOp(call(name, [inner]), op, small))
    for attr in CALLED.get(name, ()):
        yield other("call", lambda attr=attr: call(attr, arguments))
