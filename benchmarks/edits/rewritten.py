"""Right rewrites of a kernel's source: laws of the reals, and other ways to write the same operation.

Each law looks at one expression and gives another one that is equal over the reals, where the operands are numbers of
the data. Whether it is so where it was applied (an integer division, a mask value) float64 says; what it tells apart is
no rewrite.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator

from benchmarks.edits.edited import Edit, function_of

MOST = 4
"""Expressions that are rewritten in one kernel."""


def _parsed(text: str, **parts: ast.expr) -> ast.expr:
    """An expression of other ones, by name."""
    tree = ast.parse(text, mode="eval").body

    class Filled(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return parts.get(node.id, node)

    filled = Filled().visit(tree)
    assert isinstance(filled, ast.expr)
    return filled


_OF_TWO: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("B + A", "A - (-B)", "(A + B) * 1", "jnp.add(A, B)"),
    ast.Sub: ("A + -B", "-(B - A)", "jnp.subtract(A, B)"),
    ast.Mult: ("B * A", "-(A * -B)", "jnp.multiply(A, B)", "(A + A) * B - A * B", "A * (B + 1) - A"),
    ast.Div: ("A * (1.0 / B)", "jnp.divide(A, B)", "2.0 * A / (B + B)", "-A / -B", "A / B * 1.0"),
}  # fmt: skip
_OF_CALLS = {
    "exp": (
        "1.0 / jnp.exp(-(A))", "jnp.exp((A) * 0.5) ** 2", "jnp.exp2((A) * 1.4426950408889634)",
        "jnp.exp((A) - 1.0) * jnp.exp(1.0)",
    ),
    "rsqrt": ("1.0 / jnp.sqrt(A)", "(A) ** -0.5", "jnp.sqrt(1.0 / (A))"),
    "sqrt": ("1.0 / lax.rsqrt(A)", "(A) ** 0.5"),
    "tanh": ("2.0 / (1.0 + jnp.exp(-2.0 * (A))) - 1.0", "2.0 * jax.nn.sigmoid(2.0 * (A)) - 1.0", "-jnp.tanh(-(A))"),
    "log": ("-jnp.log(1.0 / (A))", "jnp.log1p((A) - 1.0)"),
    "square": ("(A) * (A)",),
}  # fmt: skip
_DOTS = (
    'jnp.einsum("ab,bc->ac", A, B)', "jnp.matmul(A, B)", "(A) @ (B)", "(jnp.dot((B).T, (A).T)).T",
    "lax.dot_general(A, B, (((1,), (0,)), ((), ())))",
)  # fmt: skip


def _laws(node: ast.expr) -> Iterator[ast.expr]:
    """What an expression is equal to."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            for text in _OF_TWO.get(type(op), ()):
                yield _parsed(text, A=left, B=right)
            if isinstance(op, ast.Mult) and isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):
                yield _parsed("A * C + B * C", A=left.left, B=left.right, C=right)
            if isinstance(op, ast.Sub | ast.Add) and isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):
                yield ast.BinOp(left.left, ast.Add(), ast.BinOp(left.right, op, right))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="jnp" | "lax" | "jax"), attr=name), args=[argument]):
            for text in _OF_CALLS.get(name, ()):
                yield _parsed(text, A=argument)
            if name == "exp" and isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Sub):
                yield _parsed("jnp.exp(A * 0.5 - B) * jnp.exp(A * 0.5)", A=argument.left, B=argument.right)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="jnp"), attr="dot"), args=[left, right], keywords=[]):
            # with keywords it may be kept in another type, which the others would have to be told
            for text in _DOTS:
                yield _parsed(text, A=left, B=right)
        case ast.Call(func=ast.Name(id="dot"), args=[left, right]):
            for text in _DOTS:
                yield _parsed(text, A=left, B=right)
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="jnp"), attr="maximum" | "minimum" as name), args=[left, right]
        ):
            yield _parsed(f"jnp.{name}(B, A)", A=left, B=right)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="jnp"), attr="where"), args=[condition, yes, no]):
            yield _parsed("jnp.where(jnp.logical_not(C), B, A)", A=yes, B=no, C=condition)
            yield _parsed(
                "lax.select_n(C, jnp.broadcast_to(B, C.shape), jnp.broadcast_to(A, C.shape))", A=yes, B=no, C=condition
            )
        case ast.Call(func=ast.Attribute(value=whole, attr="sum"), args=[ast.Constant(value=int())], keywords=keywords):
            own = ast.Call(ast.Attribute(whole, "mean", ast.Load()), node.args, keywords)
            yield _parsed("M * X.shape[K]", M=own, X=whole, K=node.args[0])
            turned = ast.Call(
                ast.Attribute(_parsed("jnp.flip(X, K)", X=whole, K=node.args[0]), "sum", ast.Load()),
                node.args,
                keywords,
            )
            yield turned
        case ast.Call(
            func=ast.Attribute(value=whole, attr="mean"), args=[ast.Constant(value=int())], keywords=keywords
        ):
            own = ast.Call(ast.Attribute(whole, "sum", ast.Load()), node.args, keywords)
            yield _parsed("S / X.shape[K]", S=own, X=whole, K=node.args[0])
            yield _parsed("S * (1 / X.shape[K])", S=own, X=whole, K=node.args[0])
        case ast.Call(
            func=ast.Attribute(value=whole, attr="max" | "min" as name),
            args=[ast.Constant(value=int())],
            keywords=keywords,
        ):
            instead = "min" if name == "max" else "max"
            own = ast.Call(ast.Attribute(ast.UnaryOp(ast.USub(), whole), instead, ast.Load()), node.args, keywords)
            yield ast.UnaryOp(ast.USub(), own)
        case ast.Compare(left=left, ops=[ast.Lt()], comparators=[right]):
            yield _parsed("B > A", A=left, B=right)
            yield _parsed("jnp.logical_not(A >= B)", A=left, B=right)
        case ast.Attribute(attr="T", value=whole):
            yield _parsed("jnp.swapaxes(X, 0, 1)", X=whole)


def _places(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, Callable[[ast.expr], None]]]:
    """(an expression, what it is equal to, what puts that in its place), outermost first."""
    for field, value in ast.iter_fields(node):
        if field in ("returns", "annotation") or isinstance(value, ast.arguments):
            continue
        for k, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST):
                continue

            def put(new: ast.expr, node: ast.AST = node, field: str = field, value: object = value, k: int = k) -> None:
                if isinstance(value, list):
                    value[k] = new
                else:
                    setattr(node, field, new)

            if isinstance(child, ast.expr):
                for equal in _laws(child):
                    yield child, equal, put
            yield from _places(child)


def rewrite(text: str, draw: random.Random) -> Edit:
    """A function's text with one to `MOST` expressions rewritten, each by a law."""
    tree = function_of(text)
    said, line = [], 0
    for _ in range(draw.randint(1, MOST)):
        places = list(_places(tree))
        if not places:
            break
        node, equal, put = draw.choice(places)
        line = line or getattr(node, "lineno", 0)
        said.append(f"{ast.unparse(node)}  ->  {ast.unparse(equal)}")
        put(equal)
        ast.fix_missing_locations(tree)
        tree = function_of(ast.unparse(tree))
    return Edit("law", ast.unparse(tree), line, "; ".join(said) or "nothing")
