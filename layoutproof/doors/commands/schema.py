"""`layoutproof schema`: the JSON Schema of spec files."""

from __future__ import annotations

import click

from layoutproof.doors.arguments import json_flag, print_json


@click.command()
@json_flag
def command(as_json: bool) -> int:
    """Print the JSON Schema of spec files, for editors. It is JSON with and without --json."""
    from layoutproof.jobs.spec_model import json_schema

    print_json(json_schema())
    return 0
