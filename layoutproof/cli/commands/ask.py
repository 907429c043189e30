"""`layoutproof ask PROPERTY LAYOUT [LAYOUT]`: one question.

In the list: layouts: Ask one question of a layout or of a pair; `explain` lists the questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, get_args

import click

from layoutproof.cli.arguments import (
    assumed,
    integers,
    json_flag,
    layouts_of,
    print_json,
    say,
    svg_option,
    target_option,
    with_written,
)
from layoutproof.core import plugins
from layoutproof.core.finding import text
from layoutproof.core.result import Verdict
from layoutproof.questions.ask import ask
from layoutproof.registry.catalogue import kernel_properties, options_of, properties
from layoutproof.solvers.decide import ENGINES

if TYPE_CHECKING:
    from pathlib import Path


def _declared(option: str) -> tuple[str, str]:
    return f"--{option.replace('_', '-')}", option


def _page(names: Sequence[str]) -> str:
    owners = ", ".join(names) if len(names) < 4 else f"{', '.join(names[:2])} and {len(names) - 2} more"
    return f"Option of {owners}; see `layoutproof explain {names[0]}`."


def _property_options(names: Iterable[str]) -> list[click.Parameter]:
    """One command line option for each option of these properties, so that a new property brings its own."""
    owners: dict[str, list[str]] = {}
    for name in names:
        for option in options_of(name):
            if option != "target":  # the command has one for layouts without a layout too
                owners.setdefault(option, []).append(name)
    return [
        click.Option(_declared(option), metavar="VALUE", help=_page(names)) for option, names in sorted(owners.items())
    ]


ASKED = "layoutproof.asked"
"""Where the context keeps the properties whose options a command line may have."""


class Ask(click.Command):
    """The command, with the options of the property that is asked; with those of all where it may be of another.

    So one question loads one property, and one that another package adds has its options too.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it."""
        own = {*properties(), *kernel_properties()}
        words = {text for text in args if not text.startswith("-")}
        asked = words & own or (words.intersection(plugins.names("properties", own)) if words else set())
        ctx.meta[ASKED] = sorted(asked)
        flags = {text.split("=")[0] for text in args if text.startswith("--")}
        known = {flag for parameter in self.get_params(ctx) for flag in (*parameter.opts, *parameter.secondary_opts)}
        if not asked or not flags <= known or not asked <= own or "--help" in flags or "-h" in args:
            ctx.meta[ASKED] = [*properties(), *kernel_properties(), *sorted(asked - own)]
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Those of the command and of the properties that may be asked."""
        own = super().get_params(ctx)
        *before, target, svg, as_json, page = own
        return [*before, *_property_options(ctx.meta.get(ASKED, ())), target, svg, as_json, page]


def _complete_property(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in properties() if name.startswith(incomplete)]


@click.command(name="ask", cls=Ask)
@click.argument("name", metavar="PROPERTY", shell_complete=_complete_property)
@click.argument("layouts", metavar="LAYOUT [LAYOUT]", nargs=-1, required=True)
@click.option("--where", metavar="CONDITION", help='Condition on size symbols, e.g. "N % 8 == 0".')
@click.option("--engine", metavar="NAME", help=f"Force one of {', '.join(ENGINES)}.")
@click.option("--confirm", is_flag=True, help="Demand that two engines agree.")
@click.option(
    "--effort", type=click.IntRange(1, 1000), default=1, show_default=True, help="Multiply the budgets of steps."
)
@target_option
@svg_option
@json_flag
def command(
    name: str,
    layouts: tuple[str, ...],
    where: str | None,
    engine: str | None,
    confirm: bool,
    effort: int,
    target: str | None,
    svg: Path | None,
    as_json: bool,
    **options: str | None,
) -> int:
    """Ask one question: does PROPERTY hold?

    Of one LAYOUT or of a pair; `layoutproof explain` lists the properties.

    \b
    Examples:
      layoutproof ask padding "f32[1000,5]" --target v5e --at-most 50%
      layoutproof ask same_map "f32[8,4]{1,0}" "f32[8,4] strides (4,1)"
    """
    given = {option: _value(name, option, text) for option, text in options.items() if text is not None}
    own = "target" in options_of(name)
    if target is not None and own:
        given["target"] = target
    read = layouts_of(layouts, None if own else target)
    result = ask(name, *read, where=where, engine=engine, confirm=confirm, effort=effort, **given)
    if svg is not None:
        from layoutproof.answers.of_pictures import finding_svg
        from layoutproof.core.files import write_whole

        write_whole(svg, finding_svg(result, read).encode())
    if as_json:
        return print_json(with_written(result.as_dict(), svg))
    page = f"layoutproof explain {result.question}" if result.verdict is Verdict.REFUTED else ""
    notes = () if own else assumed(layouts, read, target)
    say(text(result, [*(("assumed", note) for note in notes), ("explain", page)]))
    return result.exit_code


def _value(name: str, option: str, text: str) -> Any:
    """An option of a property from its text: numbers as 1,0, YAML where it has structure, otherwise the text itself."""
    annotation, _ = options_of(name).get(option, (str, None))
    kinds = get_args(annotation) or (annotation,)
    if Sequence[int] in kinds:
        return integers(text, f"--{option.replace('_', '-')}")
    if str in kinds and not text.lstrip().startswith(("{", "[")):
        return text
    from layoutproof.specs.positions import read_yaml

    return read_yaml(text).plain()
