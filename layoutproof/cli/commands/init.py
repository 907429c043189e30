"""`layoutproof init [FOLDER]`: the first files of a repository.

In the list: claims and changes: Write a first spec file with a workflow and a pre-commit entry.
"""

from __future__ import annotations

import click

from layoutproof.cli.arguments import json_flag, print_json, say


@click.command()
@click.argument("folder", default=".", type=click.Path())
@click.option("--force", is_flag=True, help="Replace files of these names that are there already.")
@json_flag
def command(folder: str, force: bool, as_json: bool) -> int:
    """Write a commented spec file with its schema for editors, a GitHub workflow and a pre-commit entry.

    Existing files are kept, unless --force is given. If one file cannot be written, none is. FOLDER is the
    root of the repository (default: here); it is searched for Pallas calls and HLO dumps, and no code is imported.

    \b
    Example:
      layoutproof init
    """
    from layoutproof.answers.of_init import init

    answer = init(folder, force=force)
    if as_json:
        return print_json(answer.as_dict())
    say(str(answer))
    return answer.exit_code
