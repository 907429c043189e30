"""`layoutproof crosscheck`: compare what is said here with NumPy, devices, interpreters and the real compiler.

In the list: about: Compare the answers with NumPy and devices and the real compiler.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from layoutproof.cli import problems
from layoutproof.cli.arguments import args_options, complete_file, json_flag, print_json, say
from layoutproof.cli.progress import Progress, progress_bar
from layoutproof.core.errors import LayoutError


@click.command()
@click.argument("given", nargs=-1, metavar="[SPECS|DUMP|MODULE:FUNCTION|LAYOUT]...", shell_complete=complete_file)
@click.option("--random", type=click.IntRange(min=0), default=0, metavar="N", help="Also so many random cases.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random cases.")
@click.option("--source", "sources", metavar="NAME", multiple=True, help="Ask this one only; may be repeated.")
@args_options("Of a function: bf16[4096,512], or a literal.")
@click.option("--kwarg", "kwargs", metavar="NAME=VALUE", multiple=True, help="The same, by name.")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
@click.option("--facts", is_flag=True, help="Find the recorded facts about targets again, and show what has moved.")
@click.option("--libtpu", metavar="PATH", default="", help="With --facts: another compiler than the installed one.")
@json_flag
def command(
    given: tuple[str, ...],
    random: int,
    seed: int,
    sources: tuple[str, ...],
    args: tuple[str, ...],
    kwargs: tuple[str, ...],
    markdown: bool,
    facts: bool,
    libtpu: str,
    as_json: bool,
) -> int:
    """Put layouts and kernels to sources that share nothing with this package, and compare what they say.

    Spec files, dumps and folders of both, Pallas kernels by their function, single layouts, or random cases. Sources
    that can abort or hang answer from processes of their own. A source that is not installed is skipped, and decides
    nothing. Each kind of disagreement is shown on the smallest case that still has it, with a line that asks it again.

    With --facts, the facts behind the rules of targets are measured again with the installed TPU compiler and JAX, or
    with the libtpu.so of --libtpu: a new version that behaves in another way is seen on the day it is installed.

    Exit codes: 0 all sources that answered agree, 1 a source disagrees or a fact has moved, 2 bad input, 3 nothing was
    compared, or a fact is unanswered.

    \b
    Example:
      layoutproof crosscheck --random 1000
    """
    from layoutproof.answers.of_crosscheck import crosscheck
    from layoutproof.answers.of_facts import drift
    from layoutproof.core.finding import Answer

    if facts and (given or random or sources or markdown):
        raise LayoutError(problems.FACTS_WITH_LAYOUTS())
    if libtpu and not facts:
        raise LayoutError(problems.LIBTPU_WITHOUT_FACTS(libtpu))
    pairs = [text.partition("=") for text in kwargs]
    if any(not sign for _, sign, _ in pairs):
        raise LayoutError(problems.KWARG_FORM())
    if facts:
        answer: Answer = drift(libtpu)
    else:
        named = {name: value for name, _, value in pairs}
        with progress_bar("cases", sys.stderr.isatty()) as bar:
            told = None if bar is None else _summed(bar)
            checked = crosscheck(
                *given, random=random, seed=seed, sources=sources, args=args, kwargs=named, progress=told
            )
        answer = checked
        if markdown and not as_json:
            say(checked.markdown())
            return checked.exit_code
    if as_json:
        return print_json(answer.as_dict())
    say(str(answer))
    return answer.exit_code


def _summed(bar: Progress) -> Callable[[str, int, int], None]:
    """The progress of all sources together, which are asked at once."""
    known: dict[str, tuple[int, int]] = {}

    def progress(source: str, done: int, total: int) -> None:
        known[source] = (done, total)
        rows = list(known.values())
        bar(sum(done for done, _ in rows), sum(total for _, total in rows))

    return progress
