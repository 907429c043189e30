"""`layoutproof compile FILE`: the record of a compiled program."""

from __future__ import annotations

import click

from layoutproof.cli.arguments import json_flag, print_json, say


@click.command(name="compile")
@click.argument("program", metavar="FILE")
@click.option("--mesh", metavar="AXIS=SIZE,..", help="The mesh, in the order of the devices, e.g. data=2,model=2.")
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="Lines of each list.")
@json_flag
def command(program: str, mesh: str | None, top: int, as_json: bool) -> int:
    """Read the record of a compiled program from its dump: memory, collectives, copies, kernels, cycles.

    Exit codes: 0 there is a record, 2 the text is wrong or cut short.
    """
    from layoutproof.answers.of_programs import compile
    from layoutproof.programs.shardings import read_mesh

    answer = compile(program, mesh=read_mesh(mesh or ""), top=top)
    if as_json:
        return print_json(answer.as_dict())
    say(str(answer))
    return answer.exit_code
