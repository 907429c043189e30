"""Shared parts of commands: the `--json` flag, layouts as arguments, files written whole or not at all."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypedDict

import click

from layoutproof.cli import problems
from layoutproof.cli.progress import listener
from layoutproof.core.document import Doc, Document, Failure, envelope
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.visible import json_text, visible_lines

if TYPE_CHECKING:
    from pathlib import Path

    from layoutproof.core.finding import Answer

json_flag = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
no_trace_flag = click.option(
    "--no-trace",
    is_flag=True,
    help="Import no code that a file names; claims that need it are unknown. For files that you do not trust.",
)


Command = Callable[..., int]


def args_options(help: str) -> Callable[[Command], Command]:
    """`--arg`, once for each argument of a function, and `--args`, all in one text: the command gets one tuple, `args`.

    help: what an argument may be.
    """

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def given(args: tuple[str, ...], together: str | None, **rest: object) -> int:
            if together is not None:
                from layoutproof.kernel.kernel_parts import parts_of

                args = (*parts_of(f"({together})"), *args)
            return command(args=args, **rest)

        several = "All arguments in one text: 'f32[8,128], f32[128,8], True'."
        options = (
            click.option("--args", "together", metavar="VALUES", help=several),
            click.option("--arg", "args", metavar="VALUE", multiple=True, help=help),
        )
        return functools.reduce(lambda made, option: option(made), options, given)

    return decorated


def _caching(context: click.Context, parameter: click.Parameter, off: bool) -> None:
    """Turns the cache off for one command, or says why it is of no use."""
    if context.resilient_parsing:
        return
    # most commands keep nothing and need not load it
    from layoutproof.compiler import cache

    if off:
        context.with_resource(cache.unused())
    elif why := cache.refused():
        say(why, err=True)


no_cache_flag = click.option(
    "--no-cache",
    is_flag=True,
    expose_value=False,
    callback=_caching,
    help="Believe no answer of an earlier run, and keep none.",
)


def complete_target(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """For completion in shells: the targets that are built in."""
    from layoutproof.pallas.judge import kernel_targets

    return [name for name in kernel_targets() if name.startswith(incomplete)]


def complete_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """For completion in shells: files, where an argument may be one."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


target_option = click.option(
    "--target",
    metavar="NAME",
    shell_complete=complete_target,
    help="A bare shape such as f32[1000,5] gets the layout this TPU generation gives it.",
)


if TYPE_CHECKING:
    _Text = click.ParamType[str]
else:
    # not generic before click 8.4
    _Text = click.ParamType


class Form(_Text):
    """The name of a form of reports: those of `formats`, and those that other packages add."""

    name = "format"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Those that are built in."""
        from layoutproof.formats import names

        return f"[{'|'.join(names())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name itself; a usage error names the known ones."""
        from layoutproof.formats import form_of

        try:
            return form_of(value)
        except LayoutError as error:
            self.fail(error.problem, param, ctx)


form_option = click.option(
    "--format", "form", type=Form(), default="text", show_default=True, help="The form of the report."
)


class AlsoTo(_Text):
    """`FORM=FILE`: a form of reports, and where a report in it is written."""

    name = "form=file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """(form, file)."""
        if isinstance(value, tuple):
            return value
        form, equals, file = str(value).partition("=")
        if not equals or not file:
            self.fail(problems.REPORT_FORM(value), param, ctx)
        return Form().convert(form, param, ctx), file


also_option = click.option(
    "--also",
    type=AlsoTo(),
    metavar="FORM=FILE",
    multiple=True,
    help="Write the report of this run in another form too, e.g. html=report.html; repeatable.",
)
_BARE = re.compile(r"\s*\w+\s*\[[^\]{}()]*\]\s*")


def _path(context: click.Context, parameter: click.Parameter, given: str | None) -> Path | None:
    """The path of a file that an option names; what paths are is imported only where there is one."""
    if given is None:
        return None
    from pathlib import Path

    return Path(given)


svg_option = click.option(
    "--svg",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    callback=_path,
    help="Write a picture of what was found to this file.",
)


def layouts_of(texts: tuple[str, ...], target: str | None) -> list[Any]:
    """The layouts that arguments mean: texts, or one-key mappings such as '{"strided": "f32[3,5] strides (4,1)"}' and
    expressions such as '{tile: ["S[(8,8):(8,1)]", "S[(2,3):(3,1)]"]}'.

    With a target, a bare shape has that target's default layout; without one nothing is guessed. Raises LayoutError
    when no layout can be read so, or a target is named and no layout is a bare shape.
    """
    read = [_layout(text, target) for text in texts]
    if target is not None and not any(_BARE.fullmatch(text) for text in texts):
        shown = " and ".join(shorten(text, 60) for text in texts)
        raise LayoutError(problems.TARGET_OF_BARE_SHAPE(shown))
    return read


def _layout(text: str, target: str | None) -> Any:
    from layoutproof.registry.read import read_layout

    if target is not None and _BARE.fullmatch(text):
        from layoutproof.registry.defaults import tpu_default

        return tpu_default(text, target)
    if text.lstrip().startswith("{"):
        from layoutproof.specs.positions import read_yaml

        return read_layout(read_yaml(text).plain())
    return read_layout(text)


def assumed(texts: Sequence[str], layouts: Sequence[object], target: str | None) -> list[str]:
    """A sentence for each bare shape that was given no target: which layout it was read as, and how to get a TPU's.

    >>> from layoutproof.registry.read import read_layout
    >>> assumed(["f32[3,5]"], [read_layout("f32[3,5]")], None)
    ["f32[3,5]{1,0}, row-major without tiles; --target v5e gives that TPU's layout"]
    """
    found = []
    for text, layout in zip(texts, layouts, strict=True):
        bare = "".join(text.split())
        if target is None and str(layout).startswith(f"{bare}{{"):
            sizes = "" if re.fullmatch(r"\w+\[[0-9,]*\]", bare) else "with numbers for its sizes, "
            found.append(f"{layout}, row-major without tiles; {sizes}--target v5e gives that TPU's layout")
    return found


def notes_of(layout: object) -> list[str]:
    """Notes on the text of a layout: a line for each old spelling, with today's one, and a line for each operation of
    an expression, with the facts proved of its result."""
    notes = [f"note      {note}" for note in getattr(layout, "notes", ())]
    return [*notes, *(f"derived   {step}" for step in getattr(layout, "derivation", ()))]


def integers(text: str, what: str) -> tuple[int, ...]:
    """Numbers separated by commas, brackets round them allowed; LayoutError for anything else.

    >>> integers("(2, 3)", "an index")
    (2, 3)
    """
    inner = text.strip().strip("()[]")
    parts = [part.strip() for part in inner.split(",")] if inner else []
    for part in parts:
        if not re.fullmatch(r"-?[0-9]{1,40}", part):
            raise LayoutError(problems.INDEX_FORM(what, shorten(part, 40)), text=text[:200])
    return tuple(map(int, parts))


def print_json(answer: Document | Failure) -> int:
    """A command's answer on stdout; gives the exit code that is in it."""
    click.echo(json_text(answer))
    return answer["exit_code"]


class WrittenEntry(TypedDict, total=False):
    """The keys that a command adds to its answer where it wrote files."""

    written: Annotated[list[str], Doc("with --svg: the picture")]


class FilesDocument(Document):
    """The files that a command wrote, beside its answer."""

    written: list[str]


class SummaryDocument(FilesDocument):
    """The output of a command that wrote its answer to a file."""

    summary: str


def with_written(answer: Document, *files: Path | str | None) -> Document:
    """A command's answer with the files that it wrote, where it wrote any."""
    written = [str(file) for file in files if file]
    return with_files(answer, written) if written else answer


def with_files(answer: Document, written: list[str]) -> FilesDocument:
    """A command's answer with the files that it wrote, also where it wrote none."""
    return {**answer, "written": written}


def summed_up(exit_code: int, summary: str, *files: Path | str | None) -> SummaryDocument:
    """The output of a command that wrote its answer to a file."""
    written = [str(file) for file in files if file]
    return {**envelope(exit_code), "summary": summary, "written": written}


VERDICTS = (
    (r"(?m)^(refuted|deny|error)\b", "bold red"),
    (r"(?m)^unknown\b", "bold magenta"),
    (r"(?m)^warn(ing)?\b", "yellow"),
    (r"(?m)^(proved|allow)\b", "bold green"),
    (r"(?m)^  fix ", "green"),
)
"""The coloured parts of findings: (pattern, rich's style)."""


def coloured(stream: TextIO | None) -> bool:
    """Whether the output to a stream is coloured: NO_COLOR says never, FORCE_COLOR always, else a terminal decides.

    Source: https://no-color.org and https://force-color.org, as of 2026-11: set and not empty; the first wins.
    """
    if stream is None or os.environ.get("NO_COLOR"):
        # Python has no stream where the caller closed it
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def say(text: str, styles: Sequence[tuple[str, str]] = VERDICTS, *, err: bool = False) -> None:
    """Text for people, harmless for terminals and build servers, on stdout or stderr.

    styles: (pattern, rich's style) for what is shown in colour, where colours are wanted.
    """
    text = visible_lines(text)
    if err or not any(re.search(pattern, text) for pattern, _ in styles) or not coloured(sys.stdout):
        click.echo(text, err=err)
        return
    from rich.console import Console
    from rich.text import Text

    styled = Text(text)
    for pattern, style in styles:
        styled.highlight_regex(pattern, style)
    Console(highlight=False, soft_wrap=True, force_terminal=True, no_color=False, color_system="standard").print(styled)


def show_answer(answer: Answer, written: list[str], as_json: bool, styles: Sequence[tuple[str, str]] = VERDICTS) -> int:
    """A command's answer with the files that it wrote, as text or as JSON; gives the exit code. styles: as of `say`."""
    if as_json:
        return print_json(with_files(answer.as_dict(), written))
    say(str(answer), styles)
    if written:
        say(f"\nwritten: {', '.join(written)}")
    return answer.exit_code


def say_drawn(text: str, color: bool) -> None:
    """A picture with text around it, harmless but for the backgrounds of its cells. color: whether it has any."""
    parts = _BACKGROUNDS.split(text) if color else [text]
    click.echo("".join(part if k % 2 else visible_lines(part) for k, part in enumerate(parts)), color=color)


_BACKGROUNDS = re.compile(r"(\x1b\[(?:48;5;\d{1,3};38;5;16|0)m)")
"""How `pictures` begins and ends the background of a cell."""


def waiting(what: str) -> None:
    """One line about what is done now, for who waits at a terminal or listens."""
    if (told := listener()) is not None:
        told(what)
    elif sys.stderr.isatty():
        say(what, err=True)


def told_of(title: str, what: str) -> None:
    """The same about one of several."""
    waiting(f"{title}: {what}")


def print_report(text: str, form: str, styles: Sequence[tuple[str, str]] = VERDICTS) -> None:
    """A report in one of the forms of `formats`; those that are not for people are harmless by their own rules."""
    if form == "text":
        say(text, styles)
    else:
        click.echo(text)
