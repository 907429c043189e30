"""Where an editor underlines what a JSON Schema refuses: line and column of the value, or of the key that is wrong."""

from __future__ import annotations

from typing import Any

import jsonschema

from layoutproof.specs.positions import Node, read_yaml


def places(schema: dict[str, Any], text: str) -> list[str]:
    """`line:column` of each mistake that a validator finds in a YAML text, in order.

    The validator is python-jsonschema, which knows nothing of this package. Of a key that is not known it is the key's
    place, as editors have it; of one that is missing the mapping's.
    """
    root = read_yaml(text)
    found: set[tuple[int, int]] = set()
    errors = jsonschema.Draft202012Validator(schema).iter_errors(root.plain())
    for error in (leaf for whole in errors for leaf in leaves(whole)):
        node = root
        for step in error.absolute_path:
            node = node.value[step]
        unknown: list[str] = []
        if "propertyNames" in error.absolute_schema_path:
            unknown = [error.instance]
        elif error.validator == "additionalProperties":
            unknown = [key for key in error.instance if f"{key!r}" in error.message]
        found |= {_key(node, key) for key in unknown} or {(node.line, node.column)}
    return [f"{line}:{column}" for line, column in sorted(found)]


def leaves(error: Any) -> list[Any]:
    """An error, or those of the alternative that comes nearest: whose mistakes lie deepest, as editors choose it."""
    alternatives: dict[int, list[Any]] = {}
    for part in error.context or ():
        alternatives.setdefault(part.schema_path[0], []).append(part)
    nearest = max(alternatives.values(), key=lambda parts: max(_depth(part) for part in parts), default=[])
    deeper = [part for part in nearest if _depth(part) > _depth(error)]
    return [leaf for part in deeper for leaf in leaves(part)] or [error]


def _depth(error: Any) -> tuple[int, bool]:
    of_key = error.validator == "additionalProperties" or "propertyNames" in error.absolute_schema_path
    return len(error.absolute_path), of_key


def _key(node: Node, key: str) -> tuple[int, int]:
    line, column = (node.keys or {})[key]
    return line, column
