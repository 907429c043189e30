"""`layoutproof scan [PATH]`: the Pallas calls, shardings and layouts of a repository, and what judges them.

In the list: claims and changes: List every Pallas call and sharding of a repository and what judges it.
"""

from __future__ import annotations

import shlex

import click

from layoutproof.cli import problems
from layoutproof.cli.arguments import json_flag, print_json, say

_STYLES = ((r"judged in CI\b", "bold green"), (r"\bby none\b", "bold magenta"), (r"(?m)^(note|unread) ", "yellow"))


@click.command()
@click.argument("path", default=".", type=click.Path())
@click.option("--all", "everything", is_flag=True, help="Also PartitionSpecs, layouts and BlockSpecs, and tests.")
@click.option(
    "--from-tests",
    "tests",
    is_flag=True,
    help="Run the project's tests, and write a spec file with the shapes that they use. This runs its code.",
)
@click.option("--pytest", "arguments", metavar="ARGUMENTS", default="", help="With --from-tests: '-k attention tests'.")
@click.option(
    "--write", metavar="FILE", default="specs/from_tests.yaml", show_default=True, help="With --from-tests: where."
)
@json_flag
def command(path: str, everything: bool, tests: bool, arguments: str, write: str, as_json: bool) -> int:
    """List every Pallas call, shard_map, sharding and layout annotation of a repository, and what judges it.

    By syntax: nothing is imported. Judged is a call whose function is named by a spec file that a claim asks about, by
    layoutproof kernels in CI, or that is a test under pytest --layoutproof; reached is one that such a function uses,
    by name. PATH is the root of the repository (default: here). With --from-tests the project's own tests are run, by
    this Python's pytest, and a spec file states the shapes with which they call what makes Pallas calls; it is checked
    before it is reported, and the exit code is that of the check.

    \b
    Example:
      layoutproof scan --all
    """
    from layoutproof.answers.of_scan import scan

    if arguments and not tests:
        raise click.UsageError(problems.PYTEST_WITHOUT_FROM_TESTS())
    answer = scan(path, from_tests=shlex.split(arguments) if tests else None, write=write)
    if as_json:
        return print_json(answer.as_dict())
    say(answer.text(everything), _STYLES)
    return answer.exit_code
