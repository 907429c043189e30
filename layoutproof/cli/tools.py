"""Commands as tools for other programs: an object of arguments instead of a command line.

A tool has the name of its command, the options of the command as arguments (`strict_tables` for `--strict-tables`) and
the command's `--json` object as its answer, so nothing is declared twice. Options that write files are left out; a
picture comes with the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypedDict

import click

from layoutproof.cli import problems
from layoutproof.cli.documents import json_schema
from layoutproof.cli.main import cli, page_of
from layoutproof.compiler import cache
from layoutproof.core.errors import LayoutError, shorten, unknown_name
from layoutproof.registry.catalogue import kernel_properties, properties

TOOLS = ("kernels", "same", "ask", "compile", "why", "search", "explain")
"""The commands that are tools."""
_READERS = ("ask", "why", "explain")
"""Those that run no code of anybody's."""
KEPT = ["tools"]
"""The key of what is kept of them."""
PICTURE = "picture"
"""The argument that asks for a picture, which the option `--svg` writes."""
_LEFT_OUT = (
    "json",
    "no-cache",
    "help",
    "record",
    "write-baseline",
    "output",
    "resume",
    "markdown",
    "init",
    "spec",
    "diff",
)
"""Options that write a file, or that say how the answer is printed."""
_SHOWN_ONLY = {"fix": "--diff"}
"""Arguments whose option writes a file, and the option beside which it shows what it would write."""


class Tool(TypedDict):
    """A tool: its name, what it does, whether it may run code that a call names, its arguments and its answer."""

    name: str
    runs_code: bool
    title: str
    description: str
    arguments: dict[str, object]
    answer: dict[str, object]


def all_declared() -> list[Tool]:
    """The tools, in their order. Schemas of answers load most of this package, so they are kept between runs."""
    found: list[Tool] = cache.get(KEPT)
    if found is None:
        found = [declared(name) for name in TOOLS]
        cache.put(KEPT, found)
    return found


def declared(name: str) -> Tool:
    """A command as a tool. KeyError where there is none."""
    found = {key: parameter for key, parameter in parameters_of(name).items() if key != PICTURE}
    properties_of = {key: _schema(parameter) for key, parameter in found.items()}
    if PICTURE in parameters_of(name):
        properties_of[PICTURE] = {"type": "boolean", "description": "Also draw what was found: SVG."}
    schema: dict[str, object] = {
        "type": "object",
        "properties": properties_of,
        "required": [key for key, parameter in found.items() if parameter.required],
        "additionalProperties": False,
    }
    # an answer is an object whichever of its documents it is
    answer = {"type": "object", **json_schema(name)}
    page = (_command(name).help or "").replace("\b\n", "").strip()
    return {
        "name": name, "runs_code": name not in _READERS, "title": page_of(name).summary, "description": page,
        "arguments": schema, "answer": answer,
    }  # fmt: skip


@lru_cache(maxsize=32)
def parameters_of(name: str) -> Mapping[str, click.Parameter]:
    """The parameters of a command that a tool has, by the names of its arguments."""
    from layoutproof.cli.commands.ask import ASKED

    command = _command(name)
    context = click.Context(command)
    # what one property of a layout asks for is an option of its own
    context.meta[ASKED] = [*properties(), *kernel_properties()]
    found: dict[str, click.Parameter] = {}
    for parameter in command.get_params(context):
        long = max(parameter.opts, key=len).removeprefix("--") if isinstance(parameter, click.Option) else ""
        if long not in _LEFT_OUT:
            key = PICTURE if long == "svg" else (long or str(parameter.name)).replace("-", "_")
            found[key] = parameter
    return found


def command_line(name: str, arguments: Mapping[str, object], picture: str) -> list[str]:
    """The command line that an object of arguments stands for.

    Args:
        name: Of a tool.
        arguments: As its schema says; null is as if it were not there.
        picture: The file for the picture.

    Returns:
        The words after `layoutproof`.

    Raises:
        LayoutError: No such tool or argument, or a value of another type.

    >>> command_line("kernels", {"place": "k.py:f", "arg": ["f32[8]"], "strict_tables": True}, "")
    ['kernels', '--json', '--arg=f32[8]', '--strict-tables', '--', 'k.py:f']
    >>> command_line("kernels", {"place": "k.py:f", "fix": True}, "")
    ['kernels', '--json', '--fix', '--diff', '--', 'k.py:f']
    """
    if name not in TOOLS:
        raise unknown_name("tool", name, TOOLS)
    parameters = parameters_of(name)
    options: list[str] = []
    words: dict[str, list[str]] = {}
    for key, value in arguments.items():
        if value is None:
            continue
        if key not in parameters:
            raise unknown_name("argument", key, list(parameters))
        parameter = parameters[key]
        given = _texts(name, key, parameter, value)
        if isinstance(parameter, click.Argument):
            words[key] = given
        elif key == PICTURE:
            options += [f"--svg={picture}"] if value else []
        elif _is_flag(parameter):
            beside = [_SHOWN_ONLY[key]] if key in _SHOWN_ONLY else []
            options += [max(parameter.opts, key=len), *beside] if value else []
        else:
            options += [f"{max(parameter.opts, key=len)}={text}" for text in given]
    # in the order of the command, whatever that of the object is
    rest = [text for key in parameters for text in words.get(key, ())]
    return [name, "--json", *options, *(["--"] if rest else []), *rest]


def _texts(name: str, key: str, parameter: click.Parameter, value: object) -> list[str]:
    """A value as words of a command line."""
    if key == PICTURE or _is_flag(parameter):
        if not isinstance(value, bool):
            raise LayoutError(problems.ARGUMENT_FLAG(key, name, _shown(value)))
        return []
    values = value if isinstance(value, list) and _repeats(parameter) else [value]
    if not all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in values):
        what = "a text or a number, or a list of them" if _repeats(parameter) else "a text or a number"
        raise LayoutError(problems.ARGUMENT_TYPE(key, name, what, _shown(value)))
    return [str(each) for each in values]


def _shown(value: object) -> str:
    return shorten(repr(value), 60)


def _repeats(parameter: click.Parameter) -> bool:
    return parameter.nargs == -1 or bool(getattr(parameter, "multiple", False))


def _is_flag(parameter: click.Parameter) -> bool:
    return bool(getattr(parameter, "is_flag", False))


def _schema(parameter: click.Parameter) -> dict[str, object]:
    """The JSON Schema of one argument."""
    kind = parameter.type
    one: dict[str, Any]
    if _is_flag(parameter):
        one = {"type": "boolean"}
    elif isinstance(kind, click.IntRange | click.FloatRange):
        one = {"type": "integer" if isinstance(kind, click.IntRange) else "number"}
        one |= {k: v for k, v in (("minimum", kind.min), ("maximum", kind.max)) if v is not None}
    elif isinstance(kind, click.Choice):
        one = {"enum": [str(choice) for choice in kind.choices]}
    elif kind is click.INT:
        one = {"type": "integer"}
    else:
        one = {"type": ["string", "integer"] if parameter.nargs == -1 else "string"}
    found: dict[str, object] = {"anyOf": [{"type": "array", "items": one}, one]} if _repeats(parameter) else one
    said = " ".join(filter(None, (getattr(parameter, "metavar", None), getattr(parameter, "help", None))))
    return {**found, "description": said} if said else found


def _command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    if found is None:
        raise KeyError(name)
    return found
