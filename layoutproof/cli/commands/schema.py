"""`layoutproof schema [spec|search]`: the JSON Schema of spec files or of search files."""

from __future__ import annotations

import click

from layoutproof.cli.arguments import print_json


@click.command()
@click.argument("files", type=click.Choice(["spec", "search"]), default="spec")
@click.option("--json", is_flag=True, expose_value=False, help="Changes nothing: a schema is JSON.")
def command(files: str) -> int:
    """Print the JSON Schema of spec files (the default) or of search files, for editors.

    Each key has a description and examples. An editor takes the schema from a comment at the top of a file:
    # yaml-language-server: $schema=search.schema.json
    """
    if files == "spec":
        from layoutproof.specs.spec_model import json_schema
    else:
        from layoutproof.tilings.search_model import json_schema
    print_json(json_schema())
    return 0
