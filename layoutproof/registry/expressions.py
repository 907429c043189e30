"""Layout expressions: `{tile: [A, B]}`, an operator of `layoutproof.operators` with the layouts that it works on.

What comes out is a layout of the operands' language that satisfies the operator's equation, with how it was proved in
`derivation`; or an error that says why there is none. Nothing is guessed.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import ModuleType
from typing import Any

import layoutproof.operators
from layoutproof.core.errors import LayoutError, Reason, Unsupported, shorten
from layoutproof.core.message import located
from layoutproof.core.plugins import Plugin
from layoutproof.registry import problems


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """One operator. layouts: how many layouts come first.  argument: the further operand, "" for none.
    optional: whether it may be left out.  equation: of its result, for every element.
    """

    name: str
    of: type
    layouts: int
    argument: str
    optional: bool
    equation: str
    apply: Callable[..., Any]

    @property
    def form(self) -> str:
        """How it is written: `{slice: [A, box]}`."""
        operands = ["A", "B"][: self.layouts]
        if self.argument and not self.optional:
            operands.append(self.argument)
        if len(operands) == 1:
            return f"{{{self.name}: A}}" + (f" or {{{self.name}: [A, {self.argument}]}}" if self.argument else "")
        return f"{{{self.name}: [{', '.join(operands)}]}}"


@lru_cache(maxsize=1)
def operators() -> tuple[str, ...]:
    """The names of all operators: the modules of `layoutproof.operators`."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(layoutproof.operators.__path__)))


@lru_cache(maxsize=64)
def operator(name: str) -> Operator:
    """One of `operators`."""
    module = operator_module(name)
    argument, optional = getattr(module, "ARGUMENT", ""), getattr(module, "OPTIONAL", False)
    return Operator(name, module.OF, module.LAYOUTS, argument, optional, module.EQUATION, module.apply)


def operator_module(name: str) -> ModuleType | Plugin:
    """The module of one operator; its text is the operator's page."""
    return importlib.import_module(f"layoutproof.operators.{name}")


def operands(name: str, value: object) -> list[object]:
    """The operands of an operator, as a list of its length. LayoutError for another number of operands.

    >>> operands("canonical", "S[4:1]"), operands("tile", ["S[4:1]", "S[2:1]"])
    (['S[4:1]'], ['S[4:1]', 'S[2:1]'])
    """
    op = operator(name)
    most = op.layouts + bool(op.argument)
    given = value if isinstance(value, list | tuple) else [value]
    if not most - op.optional <= len(given) <= most:
        raise LayoutError(problems.OPERANDS(name, op.form, len(given), "s" * (len(given) != 1)))
    return list(given)


def evaluate(name: str, value: object, read: Callable[[object], Any]) -> Any:
    """The layout that an expression is, with `derivation`. read: how an operand is read that is a layout.

    Raises LayoutError where there is no such layout, Unsupported where that is not known because sizes have no values.
    """
    op = operator(name)
    given = operands(name, value)
    layouts = [_of(op, read(each)) for each in given[: op.layouts]]
    arguments = given[op.layouts :]
    shown = f"{name}({', '.join([*map(str, layouts), *map(_text, arguments)])})"
    try:
        found = op.apply(*layouts, *arguments)
    except LayoutError as error:
        raise LayoutError(located(name, error.problem), text=error.text, column=error.column) from None
    if isinstance(found, Reason):
        if any(_symbols(layout) for layout in layouts):
            raise Unsupported(f"{shown} is not known: {found}")
        raise LayoutError(problems.NO_LAYOUT(shown, found))
    steps = tuple(step for layout in layouts for step in layout.derivation)
    proved = f"{found} = {shown}; proved for every element: {op.equation}"
    return replace(found, derivation=tuple(dict.fromkeys((*steps, proved))))


def _of(op: Operator, layout: Any) -> Any:
    if isinstance(layout, op.of):
        return layout
    language = op.of.__module__.split(".")[2].replace("axe", "Axe").replace("cute", "CuTe")
    raise LayoutError(problems.OTHER_LANGUAGE(op.name, language, shorten(str(layout), 80)))


def _symbols(layout: Any) -> Sequence[str]:
    found: Sequence[str] = layout.index_map().sizes()
    return found


def _text(argument: object) -> str:
    return argument if isinstance(argument, str) else str(argument).replace("'", "")
