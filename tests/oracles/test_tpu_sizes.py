"""Bytes that the real TPU compiler allots (libtpu 0.0.42.1), row by row."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.layouts.xla.sizes import sizes
from layoutproof.registry.read import read_layout
from tests.oracles import plain
from tests.recorded import rows

pytestmark = pytest.mark.slow

DEFAULTS = "tpu_padded_bytes.jsonl"
CUSTOM = "tpu_custom_sizes.jsonl"


def xla_type(dtype: str) -> str:
    """XLA's name of a NumPy or ml_dtypes type: bfloat16 is bf16, float8_e4m3fn is f8e4m3fn, bool is pred."""
    if dtype == "bool":
        return "pred"
    kind, rest = re.fullmatch(r"(bfloat|float|uint|int|complex)(.*)", dtype).groups()  # type: ignore[union-attr]
    return {"bfloat": "bf", "float": "f", "uint": "u", "int": "s", "complex": "c"}[kind] + rest.replace("_", "")


def wrong_default(row: dict[str, Any]) -> str:
    shape = f"{xla_type(row['dtype'])}[{','.join(map(str, row['shape']))}]"
    layout = lp.tpu_default(shape, target=row["generation"])
    allotted = lp.ask("padding", layout).figures["bytes"]
    if (str(layout), allotted) == (shape + row["text"], row["argument_bytes"]):
        return ""
    return f"{row['generation']} {shape}{row['text']} {row['argument_bytes']} bytes; ours {layout} {allotted} bytes"


def test_default_layouts_and_their_bytes() -> None:
    """The compiler prints the layout that tpu_default gives, and allots the bytes that padding counts."""
    all_rows = rows(DEFAULTS)
    measured = [row for row in all_rows if "error" not in row]
    refused = [row["error"] for row in all_rows if "error" in row]
    assert [wrong for row in measured if (wrong := wrong_default(row))] == []
    # nothing was measured where the array did not fit into HBM, and only there
    assert [error for error in refused if "Ran out of memory" not in error] == []
    assert len(measured) > 100 * len(refused)


def test_a_wrong_default_is_found() -> None:
    """A row with other bytes or another layout is reported, so the check above can fail."""
    row = next(row for row in rows(DEFAULTS) if "error" not in row)
    assert wrong_default(row) == ""
    assert "ours" in wrong_default({**row, "argument_bytes": row["argument_bytes"] + 1})
    assert "ours" in wrong_default({**row, "text": row["text"] + "S(1)"})


def wrong_custom(row: dict[str, Any]) -> list[str]:
    _, shape, dtype, major_to_minor, tiles = row["case"]
    text, allotted = row["result"]["ok"], row["result"]["arg"]
    layout = read_layout(text)
    # no tiles asked for means: tiles by the compiler's rule for that order
    wanted = tuple(map(tuple, tiles)) or layout.tiles
    asked = (xla_type(dtype), tuple(shape), tuple(major_to_minor), wanted)
    got = (layout.element_type, layout.dims, tuple(reversed(layout.minor_to_major)), layout.tiles)
    pairs = [
        ("fields", got, asked),
        ("text", str(layout), text),
        ("ArraySize", sizes(layout)["ShapeUtil::ArraySize"], allotted),
        ("all tile levels", sizes(layout)["definition"], plain.allotted(plain.read(text))),
    ]
    return [f"{text}: {name} {ours}, not {theirs}" for name, ours, theirs in pairs if ours != theirs]


def test_custom_layouts() -> None:
    """For any tiling, sensible or not, the compiler prints our text and allots what ShapeUtil::ArraySize says."""
    accepted = [row for row in rows(CUSTOM) if "ok" in row["result"]]
    assert accepted
    assert [wrong for row in accepted for wrong in wrong_custom(row)] == []


def test_a_wrong_custom_size_is_found() -> None:
    """One byte more, another order or other tiles are each reported."""
    row = next(row for row in rows(CUSTOM) if len(row["case"][1]) == 2 and row["case"][4] and "ok" in row["result"])
    result = {**row["result"], "arg": row["result"]["arg"] + 1}
    assert len(wrong_custom({**row, "result": result})) == 1
    case = row["case"]
    assert len(wrong_custom({**row, "case": [*case[:3], case[3][::-1], case[4]]})) == 1
    assert len(wrong_custom({**row, "case": [*case[:4], [*case[4], [1]]]})) == 1


def test_where_the_compiler_allots_less_than_the_definition() -> None:
    """Deeper tile levels may pad, and the compiler does not count that: never more bytes than we say, sometimes fewer.

    Where it allots fewer, elements lie beyond what is allotted: the tiling has no meaning the compiler would stand by.
    """
    layouts = [read_layout(row["result"]["ok"]) for row in rows(CUSTOM) if "ok" in row["result"]]
    both = {str(layout): (by["definition"], by["ShapeUtil::ArraySize"]) for layout in layouts if (by := sizes(layout))}
    assert [text for text, (definition, compiler) in both.items() if definition < compiler] == []
    differing = [text for text, (definition, compiler) in both.items() if definition > compiler]
    assert differing
    # only a second level that does not divide the first one, or reaches beyond it, can add padding
    assert [text for text in differing if not overhanging(plain.read(text).tiles)] == []


def overhanging(tiles: tuple[tuple[int, ...], ...]) -> bool:
    """Whether some level does not cut the level above it evenly."""
    return any(
        len(inner) > len(outer) or any(o % i for o, i in zip(outer[::-1], inner[::-1], strict=False))
        for outer, inner in itertools.pairwise(tiles)
    )
