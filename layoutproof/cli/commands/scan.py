"""`layoutproof scan [PATH]`: the Pallas calls, shardings and layouts of a repository, and what judges them.

In the list: claims and changes: List every Pallas call and sharding of a repository and what judges it.
"""

from __future__ import annotations

import click

from layoutproof.cli.arguments import json_flag, print_json, say

_STYLES = ((r"judged in CI\b", "bold green"), (r"\bby none\b", "bold magenta"), (r"(?m)^(note|unread) ", "yellow"))


@click.command()
@click.argument("path", default=".", type=click.Path())
@click.option("--all", "everything", is_flag=True, help="Also PartitionSpecs, layouts and BlockSpecs, and tests.")
@json_flag
def command(path: str, everything: bool, as_json: bool) -> int:
    """List every Pallas call, shard_map, sharding and layout annotation of a repository, and what judges it.

    By syntax: nothing is imported. Judged is a call whose function is named by a spec file that a claim asks about, by
    layoutproof kernels in CI, or that is a test under pytest --layoutproof; reached is one that such a function uses,
    by name. PATH is the root of the repository (default: here).

    \b
    Example:
      layoutproof scan
    """
    from layoutproof.answers.of_scan import scan

    answer = scan(path)
    if as_json:
        return print_json(answer.as_dict())
    say(answer.text(everything), _STYLES)
    return answer.exit_code
