"""`layoutproof ask PROPERTY LAYOUT [LAYOUT]`: one question."""

from __future__ import annotations

from typing import Any

import click

from layoutproof.core.result import Result, Verdict
from layoutproof.doors.arguments import integers, json_flag, layouts_of, print_json, target_option

_CODES = {Verdict.PROVED: 0, Verdict.REFUTED: 1, Verdict.UNKNOWN: 3}


@click.command(name="ask")
@click.argument("name", metavar="PROPERTY")
@click.argument("layouts", metavar="LAYOUT [LAYOUT]", nargs=-1, required=True)
@click.option("--where", metavar="CONDITION", help='On sizes not known yet, e.g. "N % 8 == 0".')
@click.option("--engine", metavar="NAME", help="Force one of digits, isl, smt, brute.")
@click.option("--confirm", is_flag=True, help="Demand that two engines agree.")
@click.option("--effort", type=click.IntRange(1, 1000), default=1, show_default=True, help="Multiplies step budgets.")
@click.option("--at-most", metavar="BOUND", help="padding: 2% of what is allotted, or 1.02x the unpadded bytes.")
@click.option("--permutation", metavar="DIMENSIONS", help="bitcast: of a transpose, e.g. 1,0.")
@target_option
@json_flag
def command(
    name: str,
    layouts: tuple[str, ...],
    where: str | None,
    engine: str | None,
    confirm: bool,
    effort: int,
    at_most: str | None,
    permutation: str | None,
    target: str | None,
    as_json: bool,
) -> int:
    """Ask one question: does PROPERTY hold?

    Of one LAYOUT or of a pair; `layoutproof explain` lists the properties.
    """
    from layoutproof.engine.ask import ask

    options: dict[str, Any] = {} if at_most is None else {"at_most": at_most}
    if permutation is not None:
        options["permutation"] = integers(permutation, "a permutation")
    read = layouts_of(layouts, target)
    result = ask(name, *read, where=where, engine=engine, confirm=confirm, effort=effort, **options)
    if as_json:
        from layoutproof.jobs.report import result_json

        print_json(result_json(result))
    else:
        click.echo(_text(result))
    return _CODES[result.verdict]


def _text(result: Result) -> str:
    lines = [str(result)]
    if result.decided_by:
        lines.append(f"  by       {result.decided_by}")
    lines += [f"  {name:<16} {value}" for name, value in result.figures.items() if not isinstance(value, list)]
    if result.verdict is Verdict.REFUTED:
        lines.append(f"  explain  layoutproof explain {result.property}")
    return "\n".join(lines)
