"""`layoutproof schema`: the JSON Schema of spec files."""

from __future__ import annotations

import click

from layoutproof.cli.arguments import print_json


@click.command()
@click.option("--json", is_flag=True, expose_value=False, help="Changes nothing: a schema is JSON.")
def command() -> int:
    """Print the JSON Schema of spec files, for editors."""
    from layoutproof.specs.spec_model import json_schema

    print_json(json_schema())
    return 0
