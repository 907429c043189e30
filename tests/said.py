"""What tests say of a message: its id, and the values that they are about. The words are in `golden/messages.md`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from string import Formatter

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.core.message import Message, Template, brief, message_of, plain_figure
from tests.imports import sources


@cache
def templates() -> dict[str, Template]:
    """All templates of the product, by id."""
    modules = [importlib.import_module(name) for name, text in sources().items() if "= Template(" in text]
    return {each.id: each for module in modules for each in vars(module).values() if isinstance(each, Template)}


def messages(text: str) -> Iterator[Message]:
    """A message, and those that are values of it."""
    if isinstance(text, Message):
        yield text
        for value in text.figures.values():
            yield from messages(value) if isinstance(value, str) else ()


class Said:
    """A message with some of its values; a value that is a message itself is another `Said`.

    >>> from layoutproof.core.message import Template
    >>> word, at = Template("kernel.word", "{word!r} is no word"), Template("kernel.at", "in {where}: {what}")
    >>> Said("kernel.word", word="a b").of(at("x", word("a b"))), Said("kernel.at", where="x").of(at("x", "z"))
    (True, True)
    """

    def __init__(self, id: str, /, **figures: object) -> None:
        """The id, and values by their names."""
        self.id, self.figures = id, figures

    def __repr__(self) -> str:
        return f"{self.id}({', '.join(f'{name}={value!r}' for name, value in self.figures.items())})"

    def of(self, said: str | Exception) -> bool:
        """Whether a text or what an error says is this message, or has it among its values.

        Of another one it prints what it is, for a test that fails.
        """
        text = getattr(said, "problem", "") or message_of(said) if isinstance(said, Exception) else said
        found = any(
            each.id == self.id and all(self._is(each, name) for name in self.figures) for each in messages(text)
        )
        if not found:
            print(f"not {self!r}: {brief(text)}")
        return found

    def _is(self, each: Message, name: str) -> bool:
        value, wanted = each.figures.get(name), self.figures[name]
        if isinstance(wanted, Said):
            return isinstance(value, str) and wanted.of(value)
        return plain_figure(value) == wanted


def placed(error: LayoutError) -> str:
    """Where an error stands: `a.yaml:3:5`, without the parts that it does not have.

    >>> placed(LayoutError("wrong", file="a.yaml", line=3, column=5)), placed(LayoutError("wrong"))
    ('a.yaml:3:5', '')
    """
    return ":".join(str(part) for part in (error.file, error.line, error.column) if part)


def says(wanted: Said | str, text: str) -> bool:
    """Whether a text is a message, or has some words."""
    return wanted.of(text) if isinstance(wanted, Said) else wanted in text


@contextmanager
def raises(kind: type[Exception], wanted: Said | str) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """That a block raises an error which says a message, or has some words."""
    with pytest.raises(kind) as raised:
        yield raised
    assert wanted.of(raised.value) if isinstance(wanted, Said) else wanted in str(raised.value)


def words(id: str, /, **figures: object) -> str:
    """The text of a message, to be looked for in what a command prints, which has no ids.

    >>> words("core.unknown_name", what="engine", word="digit", rest="; known: isl")
    "unknown engine 'digit'; known: isl"
    """
    template = templates()[id]
    assert sorted(figures) == sorted(template.names()), id
    return str(template(*(figures[name] for name in template.names())))


def stretch(id: str, /, **figures: object) -> str:
    """The longest part of a message's text between two values that are not given, to be looked for in what a command
    prints.

    >>> stretch("core.unknown_name", what="engine", word="digit")
    "unknown engine 'digit'"
    """
    parts = [""]
    for text, name, spec, conversion in Formatter().parse(templates()[id].words):
        parts[-1] += text
        if name in figures:
            shown = f"{{value{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}}}"
            parts[-1] += shown.format(value=figures[name])
        elif name:
            parts.append("")
    return max(parts, key=len).strip()
