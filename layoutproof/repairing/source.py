"""A source text as a tree with offsets, and the part of it that a function of its own file reaches."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.core.errors import LayoutError

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True, eq=False)
class ParsedText:
    """A text that is Python.

    Attributes:
        text: The whole file.
        tree: It parsed.
        starts: Of each line, the offset of its first character.
        parents: Of each node but the tree itself, the node around it.
    """

    text: str
    tree: ast.Module
    starts: Sequence[int]
    parents: Mapping[ast.AST, ast.AST]

    def start(self, node: ast.expr | ast.stmt) -> int:
        """The offset of a node's first character; of a function with decorators, of `def`."""
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        """The offset after a node's last character."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def of(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        return self.text[self.start(node) : self.end(node)]

    def indent(self, node: ast.stmt) -> str:
        """The white space before a statement; "" where it does not begin its line."""
        before = self.text[self.starts[node.lineno - 1] : self.start(node)]
        return before if not before.strip() else ""

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the nearest."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function(self, node: ast.AST) -> Function | None:
        """The innermost function or lambda around a node, None at the top of the file."""
        return next((one for one in self.around(node) if isinstance(one, Function)), None)

    def _offset(self, line: int, column: int) -> int:
        # columns of the tree count bytes
        start = self.starts[line - 1]
        row = self.text[start : self.starts[line] if line < len(self.starts) else len(self.text)]
        return start + (column if row.isascii() else len(row.encode()[:column].decode()))


def source_of(text: str, file: str = "") -> ParsedText:
    """A text parsed.

    Raises:
        LayoutError: It is no Python; with its line.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise LayoutError(f"not Python: {error}", file=file, line=getattr(error, "lineno", 0) or 0) from None
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    return ParsedText(text, tree, starts, parents)


def reached(source: ParsedText, name: str) -> tuple[ast.stmt, ...]:
    """The statements at the top of a file that a function of it uses: itself, functions and constants, in turn.

    name: of the function, of a method as `Class.method`; of a name that the file does not define itself, all functions.
    """
    top: dict[str, ast.stmt] = {}
    for statement in source.tree.body:
        for one in _names_of(statement):
            top[one] = statement
    first = name.partition(".")[0]
    if first not in top:
        return tuple(one for one in source.tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef))
    found: dict[ast.stmt, None] = {}
    todo = [top[first]]
    while todo:
        statement = todo.pop()
        if statement in found:
            continue
        found[statement] = None
        used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        todo += [top[one] for one in sorted(used & set(top))]
    return tuple(sorted(found, key=lambda statement: statement.lineno))


def _names_of(statement: ast.stmt) -> Sequence[str]:
    """The names that a statement at the top of a file defines."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [statement.name]
        case ast.Assign():
            return [node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def unread(source: ParsedText, statements: Sequence[ast.stmt]) -> set[ast.AST]:
    """The nodes that say types or document: an edit of them changes nothing."""
    found: set[ast.AST] = set()
    for statement in statements:
        for node in ast.walk(statement):
            parts: list[ast.AST | None] = []
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                args = node.args
                every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
                parts = [node.returns, *(arg.annotation for arg in every if arg is not None)]
            elif isinstance(node, ast.AnnAssign):
                parts = [node.annotation]
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                parts = [node]
            found.update(sub for part in parts if part is not None for sub in ast.walk(part))
    return found


def parameters_of(source: ParsedText, function: str, number: int) -> list[str]:
    """The names of one parameter, by its number, of the functions of a name in a file."""
    found = [n for n in ast.walk(source.tree) if isinstance(n, ast.FunctionDef) and n.name == function]
    every = [[arg.arg for arg in (*one.args.posonlyargs, *one.args.args)] for one in found]
    return [names[number] for names in every if number < len(names)]
