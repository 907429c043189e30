"""Arguments for a function with a Pallas call, by its text alone: shapes that its blocks and its grid divide.

Nothing is imported. Sizes that the text does not state are guessed (`GRID` programs, blocks of `EXTENT`, f32), so it is
a first command to run and to edit, and no statement about the function.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

GRID = 4
"""Programs along a dimension of the grid that is computed from the arguments."""
EXTENT = 128
"""Of a block's dimension that is no number in the text."""
_WHOLE = (256, 256)
"""Of an array without a block."""


def arguments_of(text: str, function: str) -> tuple[str, ...]:
    """A shape for each positional parameter without a default, in order; () where there is no such function.

    >>> text = '''
    ... def f(x, rows=8):
    ...     spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    ...     return pl.pallas_call(body, grid=(16,), in_specs=[spec], out_specs=spec, out_shape=x)(x)
    ... '''
    >>> arguments_of(text, "f")
    ('f32[128,128]',)
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found = next((each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == function), None)
    if found is None:
        return ()
    given = [*found.args.posonlyargs, *found.args.args]
    defaults = found.args.defaults
    names = {each.arg: value for each, value in zip(given[len(given) - len(defaults) :], defaults, strict=True)}
    names |= {
        each.arg: value for each, value in zip(found.args.kwonlyargs, found.args.kw_defaults, strict=True) if value
    }
    return _Text(found, {**_assigned(tree.body), **names, **_assigned([*ast.walk(found)])}).arguments(
        len(given) - len(defaults)
    )


@dataclass(frozen=True, slots=True)
class _Text:
    """A function, and what the names in it stand for."""

    function: ast.FunctionDef
    names: Mapping[str, ast.expr]

    def arguments(self, many: int) -> tuple[str, ...]:
        call = next(_calls(self.function, "pallas_call"), None)
        options = {} if call is None else {each.arg: self.meant(each.value) for each in call.keywords}
        inside = options.get("grid_spec")
        if isinstance(inside, ast.Call):
            options |= {each.arg: self.meant(each.value) for each in inside.keywords}
        grid = self.several(options.get("grid"))
        tables = self.number(options.get("num_scalar_prefetch")) or 0
        shapes = [
            self.shape(spec, [self.number(each) for each in grid]) for spec in self.several(options.get("in_specs"))
        ]
        if not shapes:
            made = next(_calls(options.get("out_shape"), "ShapeDtypeStruct"), None)
            shapes = [self.whole(made)]
        arrays = many - tables
        if len(shapes) != arrays:
            shapes = [next((shape for shape in shapes if shape), _WHOLE)] * max(arrays, 0)
        usual = next((shape for shape in shapes if shape), _WHOLE)
        texts = [f"f32[{','.join(map(str, shape or usual))}]" for shape in shapes]
        return (*[f"s32[{math.prod(usual)}]"] * min(tables, many), *texts)

    def shape(self, spec: ast.expr, grid: Sequence[int | None]) -> tuple[int, ...]:
        """Of the array that a BlockSpec cuts; () where the text does not say."""
        meant = self.meant(spec)
        if not isinstance(meant, ast.Call):
            return ()
        parts = {"block_shape": None, "index_map": None} | dict(
            zip(("block_shape", "index_map"), meant.args, strict=False)
        )
        parts |= {each.arg: each.value for each in meant.keywords if each.arg in parts}
        block, index = (None if part is None else self.meant(part) for part in parts.values())
        if not isinstance(block, ast.Tuple):
            return ()
        programs = [each.arg for each in index.args.args] if isinstance(index, ast.Lambda) else []
        body = self.several(index.body) if isinstance(index, ast.Lambda) else []
        found = []
        for number, part in enumerate(block.elts):
            squeezed = isinstance(part, ast.Constant) and part.value is None
            size = 1 if squeezed else self.number(part) or EXTENT
            moves = (
                [each.id for each in ast.walk(body[number]) if isinstance(each, ast.Name)] if number < len(body) else []
            )
            along = [programs.index(name) for name in moves if name in programs]
            found.append(size * math.prod((grid[k] if k < len(grid) else None) or GRID for k in along))
        return tuple(found)

    def whole(self, made: ast.Call | None) -> tuple[int, ...]:
        """The dimensions of a ShapeDtypeStruct, where all are numbers."""
        dims = [self.number(each) for each in self.several(made.args[0] if made is not None and made.args else None)]
        return tuple(each for each in dims if each) if dims and None not in dims else ()

    def several(self, value: ast.expr | None) -> list[ast.expr]:
        """The entries of a list or tuple, also of one that is repeated; one value alone is one entry."""
        meant = None if value is None else self.meant(value)
        if isinstance(meant, ast.List | ast.Tuple):
            return list(meant.elts)
        if isinstance(meant, ast.BinOp) and isinstance(meant.op, ast.Mult):
            times = self.number(meant.right)
            if isinstance(self.meant(meant.left), ast.List | ast.Tuple) and times is not None and 0 < times < 100:
                return self.several(meant.left) * times
        return [] if meant is None else [meant]

    def meant(self, value: ast.expr) -> ast.expr:
        """The expression that a name is bound to; else itself."""
        for _ in range(8):
            if not isinstance(value, ast.Name) or value.id not in self.names:
                break
            value = self.names[value.id]
        return value

    def number(self, value: ast.expr | None, depth: int = 0) -> int | None:
        """A positive whole number that is written, or a product or quotient of such; None for anything else."""
        meant = None if value is None or depth > 8 else self.meant(value)
        if isinstance(meant, ast.Constant) and type(meant.value) is int and 0 < meant.value < 2**20:
            return meant.value
        if isinstance(meant, ast.BinOp) and isinstance(meant.op, ast.Mult | ast.FloorDiv):
            sides = [self.number(side, depth + 1) for side in (meant.left, meant.right)]
            if sides[0] is not None and sides[1] is not None:
                return sides[0] * sides[1] if isinstance(meant.op, ast.Mult) else sides[0] // sides[1] or None
        return None


def _assigned(nodes: Sequence[ast.AST]) -> dict[str, ast.expr]:
    """The names that are assigned one value."""
    found: dict[str, ast.expr] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
    return found


def _calls(inside: ast.AST | None, name: str) -> Iterator[ast.Call]:
    """Each call of a function of this name."""
    for node in ast.walk(inside) if inside is not None else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name:
            yield node
