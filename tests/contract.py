"""What scripts and files of users rest on: commands with their options, keys of `--json` and of spec files, names of
questions and findings, exit codes.

    python -m tests.contract

adds to `tests/contract.json` what is new, and refuses where something that stands in it is gone, but for what
`DEPRECATED` has named for a minor version.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from layoutproof.cli import main as cli
from layoutproof.cli.documents import DOCUMENTS, json_schema
from layoutproof.core.document import JsonObject
from layoutproof.core.finding_kinds import KINDS
from layoutproof.registry.catalogue import kernel_properties, properties
from layoutproof.specs.spec_model import json_schema as spec_schema

RECORD = Path(__file__).with_suffix(".json")
ROOT = RECORD.parents[1]
DEPRECATED: Mapping[str, str] = {}
"""Entry as `lines` writes it -> the version, such as "0.2", whose changelog says that it will go."""
EXIT_CODES = ("0 proved", "1 refuted", "2 bad input", "3 unknown", "130 interrupted")

Contract = dict[str, list[str]]


def contract() -> Contract:
    """Everything that is promised today, sorted."""
    context = click.Context(cli.cli)
    commands = {name: cli.cli.get_command(context, name) for name in cli.cli.list_commands(context)}
    options = [
        f"{name} {said}"
        for name, command in commands.items()
        if command is not None
        for parameter in command.params
        for said in (parameter.opts if isinstance(parameter, click.Option) else [f"[{parameter.name}]"])
    ]
    return {
        "commands": sorted(options),
        "exit codes": list(EXIT_CODES),
        "json": sorted({f"{name} {key}" for name in DOCUMENTS for key in keys(json_schema(name))}),
        "names": sorted({*properties(), *kernel_properties(), *KINDS}),
        "spec files": sorted(set(keys(spec_schema()))),
    }


def keys(schema: JsonObject) -> Iterator[str]:
    """The path of each key that a JSON Schema names, once with each of its types and values.

    >>> list(keys({"properties": {"a": {"type": "array", "items": {"properties": {"b": {"type": "string"}}}}}}))
    ['a: array', 'a[].b: string']
    """

    def walk(node: object, path: str, inside: tuple[str, ...]) -> Iterator[str]:
        if not isinstance(node, Mapping):
            return
        if isinstance(ref := node.get("$ref"), str):
            if ref not in inside:
                yield from walk(found(ref), path, (*inside, ref))
            return
        for name, child in node.get("properties", {}).items():
            at = f"{path}.{name}" if path else str(name)
            yield from (f"{at}: {each}" for each in types(child, ()))
            yield from walk(child, at, inside)
        yield from walk(node.get("items"), f"{path}[]", inside)
        for way in ("anyOf", "oneOf", "allOf"):
            for child in node.get(way, []):
                yield from walk(child, path, inside)

    def types(node: object, inside: tuple[str, ...]) -> set[str]:
        if not isinstance(node, Mapping):
            return {"any"}
        if isinstance(ref := node.get("$ref"), str):
            return set() if ref in inside else types(found(ref), (*inside, ref))
        ways = [child for way in ("anyOf", "oneOf", "allOf") for child in node.get(way, [])]
        if ways:
            return set().union(*(types(child, inside) for child in ways))
        if "const" in node or "enum" in node:
            return {json.dumps(value) for value in node.get("enum", [node.get("const")])}
        said = node.get("type", "any")
        return {said} if isinstance(said, str) else set(said)

    def found(ref: str) -> object:
        node: object = schema
        for part in ref.removeprefix("#/").split("/"):
            node = node[part] if isinstance(node, Mapping) else None
        return node

    yield from walk(schema, "", ())


def lines(promised: Contract) -> set[str]:
    """Each entry as one line.

    >>> lines({"names": ["injective"]})
    {'names: injective'}
    """
    return {f"{part}: {entry}" for part, entries in promised.items() for entry in entries}


def missing(before: Contract, now: Contract, deprecated: Mapping[str, str], release: str) -> list[str]:
    """What was promised before, is gone, and may not go in this version.

    It may where it is deprecated since an earlier minor version.
    """

    def minor(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in text.split(".")[:2])

    gone = lines(before) - lines(now)
    return sorted(each for each in gone if each not in deprecated or minor(deprecated[each]) >= minor(release))


def promised() -> Contract:
    """The committed file."""
    found: Contract = json.loads(RECORD.read_text("utf-8"))
    return found


def version() -> str:
    """Of the code beside this file."""
    found: str = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    return found


def main() -> None:
    """Writes the file anew."""
    now = contract()
    if RECORD.exists() and (gone := missing(promised(), now, DEPRECATED, version())):
        sys.exit("\n".join(["promised, and gone:", *gone]))
    RECORD.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
