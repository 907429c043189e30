"""`layoutproof schema [spec|search]`: the JSON Schema of what is written in files, or of what a command prints.

In the list: about: Print the JSON Schema of spec files or search files or answers.
"""

from __future__ import annotations

import click

from layoutproof.cli.arguments import json_flag, print_json, say
from layoutproof.core.document import Document, envelope
from layoutproof.core.errors import unknown_name
from layoutproof.core.visible import json_text


class SchemaDocument(Document):
    schema: dict[str, object]


@click.command()
@click.argument("files", type=click.Choice(["spec", "search"]), default="spec")
@click.option("--of", "of", metavar="COMMAND", help="Of what `layoutproof COMMAND --json` prints, instead.")
@json_flag
def command(files: str, of: str | None, as_json: bool) -> int:
    """Print the JSON Schema of spec files (the default) or of search files, for editors.

    Each key has a description and examples. An editor takes the schema from a comment at the top of a file:
    # yaml-language-server: $schema=search.schema.json

    \b
    Example:
      layoutproof schema search > search.schema.json
    """
    if of is not None:
        schema = _of_command(of)
    elif files == "spec":
        from layoutproof.specs.spec_model import json_schema

        schema = json_schema()
    else:
        from layoutproof.searching.search_model import json_schema

        schema = json_schema()
    if as_json:
        found: SchemaDocument = {**envelope(0), "schema": schema}
        return print_json(found)
    say(json_text(schema))
    return 0


def _of_command(name: str) -> dict[str, object]:
    from layoutproof.cli.documents import json_schema
    from layoutproof.cli.main import cli

    names = cli.list_commands(click.get_current_context())
    if name not in names:
        raise unknown_name("command", name, names)
    return json_schema(name)
