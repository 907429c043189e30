"""`layoutproof crosscheck`: compare what is said here with NumPy, devices, interpreters and the real compiler."""

from __future__ import annotations

import click

from layoutproof.cli.arguments import json_flag, print_json, say


@click.command()
@click.argument("given", nargs=-1, metavar="[SPECS|LAYOUT]...")
@click.option("--random", type=click.IntRange(min=0), default=0, metavar="N", help="Also so many random cases.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random cases.")
@click.option("--source", "sources", metavar="NAME", multiple=True, help="Ask this one only; may be repeated.")
@json_flag
def command(given: tuple[str, ...], random: int, seed: int, sources: tuple[str, ...], as_json: bool) -> int:
    """Put layouts and kernels to sources that share nothing with this package, and compare what they say.

    What is not installed is skipped, and decides nothing.

    Exit codes: 0 whoever was asked agrees, 1 somebody disagrees, 2 bad input, 3 nobody compared anything.
    """
    from layoutproof.answers.of_crosscheck import crosscheck

    answer = crosscheck(*given, random=random, seed=seed, sources=sources)
    if as_json:
        return print_json(answer.as_dict())
    say(str(answer))
    return answer.exit_code
