"""The command line: finds its commands in `cli.commands`, and turns every failure into a message and an exit code.

0 all proved, 1 something refuted, 2 bad input or usage, 3 nothing refuted but something unknown. Results go to
stdout, messages to stderr; with `--json`, one JSON object on stdout and nothing else, errors included.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import pkgutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

import layoutproof
import layoutproof.cli.commands
from layoutproof.cli import problems
from layoutproof.cli.arguments import print_json, say
from layoutproof.cli.interrupt import leave, listen
from layoutproof.core.document import envelope, error_entry
from layoutproof.core.errors import InternalError, LayoutError, Undecided, unknown_name
from layoutproof.core.message import message_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

BAD_INPUT = 2
UNKNOWN = 3
INTERRUPTED = 130
CLOSED_PIPE = 141


GROUPS = ("layouts", "kernels and programs", "claims and changes", "about")
"""The headings of `--help`, in order. A command names its own in its file's docstring, after `In the list:`."""


class Page(NamedTuple):
    """The parts of a command's docstring."""

    group: str
    summary: str


def page_of(name: str) -> Page:
    """The entry of one command in the list of all, out of its file; nothing is imported for a list.

    >>> page_of("why")
    Page(group='kernels and programs', summary='Explain a pasted out-of-memory report or compiler message or shape.')
    """
    spec = importlib.util.find_spec(f"layoutproof.cli.commands.{name}")
    loader: Any = spec and spec.loader
    docstring = str(loader.get_source(f"layoutproof.cli.commands.{name}")).split('"""', 2)[1]
    group, _, summary = " ".join(docstring.partition("In the list:")[2].split()).partition(": ")
    return Page(group, summary)


class Commands(click.Group):
    """A group whose commands are files, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all files in `cli.commands`."""
        return sorted(m.name for m in pkgutil.iter_modules(layoutproof.cli.commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of one file; None when there is no such file."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"layoutproof.cli.commands.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with the nearest name where there is no such command."""
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            raise click.UsageError(unknown_name("command", args[0], self.list_commands(ctx)).problem, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by what they are about, none of their lines cut."""
        pages = {name: page_of(name) for name in self.list_commands(ctx)}
        for group in GROUPS:
            with formatter.section(group.capitalize()):
                formatter.write_dl([(name, page.summary) for name, page in pages.items() if page.group == group])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, as they are written."""
        with formatter.section("Examples"):
            for line in EXAMPLES:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands and options, without importing a command."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [
            *(CompletionItem(name, help=page_of(name).summary) for name in names),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]


EXAMPLES = (
    'layoutproof show "f32[1000,5]" --target v5e',
    'layoutproof ask injective "f32[N,M]{1,0:T(8,128)}"',
    'layoutproof kernels my_kernels.py:matmul --args "f32[512,512], f32[512,512]"',
    'layoutproof why "f32[1048576,8]{1,0:T(8,128)}"',
    "layoutproof init",
    'eval "$(_LAYOUTPROOF_COMPLETE=bash_source layoutproof)"  # completion in bash',
)


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(layoutproof.__version__, prog_name="layoutproof")
def cli() -> None:
    """Prove what tensor layouts do: which byte, tile, device or grid step each element goes to.

    Exit codes: 0 all proved, 1 something refuted, 2 bad input or usage, 3 nothing refuted but something unknown.
    `layoutproof COMMAND --help` has the options of a command and an example.
    """


def main(args: Sequence[str] | None = None) -> NoReturn:
    """The console entry: runs and exits."""
    arguments = list(sys.argv[1:] if args is None else args)
    for stream in (sys.stdout, sys.stderr):
        # a terminal that cannot show a character is no reason to fail
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        listen(INTERRUPTED)
        code = run(arguments)
        if code == INTERRUPTED:
            leave(code)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        # stdout takes no more: its reader has enough, or the disk is full; Python must not complain when it closes it
        code = CLOSED_PIPE if isinstance(error, BrokenPipeError) else BAD_INPUT
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if code == BAD_INPUT:
            say(_message(error), err=True)
    except KeyboardInterrupt:
        say("interrupted", err=True)
        leave(INTERRUPTED)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code. No exception but KeyboardInterrupt and BrokenPipeError."""
    as_json = "--json" in arguments or " --format json " in " ".join(["", *arguments, ""]).replace("=", " ")
    completing = os.environ.get("_LAYOUTPROOF_COMPLETE")
    if completing:
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "layoutproof", "_LAYOUTPROOF_COMPLETE", completing)
    try:
        # not cli.main: it ends a closed pipe with 1, which here means refuted
        with cli.make_context("layoutproof", list(arguments)) as context:
            code: Any = cli.invoke(context)
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort as stop:
        raise KeyboardInterrupt from stop
    except click.ClickException as error:
        return _fail(error, "usage", as_json)
    except LayoutError as error:
        return _fail(error, "input", as_json)
    except Undecided as error:
        return _fail(error, "unknown", as_json, UNKNOWN)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _fail(error, "input", as_json)
    except Exception as error:
        return _fail(error, "internal", as_json)


def _fail(error: Exception, kind: str, as_json: bool, code: int = BAD_INPUT) -> int:
    message = _message(error)
    if as_json:
        print_json({**envelope(code), "error": error_entry(error, kind, message)})
    elif isinstance(error, click.ClickException):
        shown = io.StringIO()
        error.show(shown)
        say(shown.getvalue().rstrip("\n"), err=True)
    else:
        say(message, err=True)
    return code


def _folder_is_gone() -> bool:
    """Whether the folder in which the command was started was deleted since."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _message(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError):
        if not error.filename and _folder_is_gone():
            return problems.FOLDER_DELETED()
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    if isinstance(error, LayoutError):
        return str(error)
    if isinstance(error, Undecided):
        return message_of(error)
    what = str(error) if isinstance(error, InternalError) else f"{type(error).__name__}: {error}"
    return problems.INTERNAL_ERROR(what)
