"""Search files about arrays: the ready ones answer, and what is wrong with a file is said with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.searching.arrays_file import answer, read
from layoutproof.searching.searched import Searched
from layoutproof.specs.positions import Node, read_file, read_yaml
from tests.said import stretch, words


def read_and_answer(root: Node, file: str = "search") -> Searched:
    return answer(read(root, file))


SPECS = Path(__file__).resolve().parents[2] / "specs" / "search"


@pytest.mark.parametrize("name", ["array_layouts", "padding", "sharding"])
def test_the_ready_files_answer(name: str) -> None:
    found = read_and_answer(read_file(SPECS / f"{name}.yaml"), f"{name}.yaml")
    assert found.verdict.exit_code == 0
    assert "certificate" in found.text()
    assert json.loads(json.dumps(found.as_json()))["target"] == "v5e"


def test_the_documented_case_from_its_file() -> None:
    data: Any = read_and_answer(read_file(SPECS / "array_layouts.yaml")).as_json()
    one = data["layouts"]["each"]["q"]
    assert one["best"][0] == {"layout": "bf16[16,1280,40]{1,2,0:T(8,128)(2,1)}", "bytes": 1638400}
    assert one["written"]["bytes"] == 5242880
    assert one["certificate"] == {"kind": "enumerated", "covered": 6}


def test_none_and_unknown() -> None:
    none = read_and_answer(read_yaml("{target: v5e, shardings: {w: 'f32[8,128]'}, mesh: {x: 2}, memory: 1000}"))
    assert none.verdict.exit_code == 1
    assert "1000 bytes a device" in none.text()
    unknown = read_and_answer(read_yaml("{target: v5e, padding: {w: 'f32[100]{0:T(8)L(1024)}'}}"))
    assert unknown.verdict.exit_code == 3
    assert "unknown" in unknown.text()
    scalar = read_and_answer(read_yaml("{target: v5e, padding: {w: 'f32[]'}}"))
    assert scalar.verdict.exit_code == 1
    sizes = ", ".join(f"n{k}: 2" for k in range(17))
    first, second = (",".join(f"n{k}" for k in part) for part in (range(9), range(8, 17)))
    arrays = f"{{v: 'f32[{first}]', w: 'f32[{second}]'}}"
    many = f"{{target: v5e, sizes: {{{sizes}}}, order: shared, layouts: {arrays}}}"
    assert read_and_answer(read_yaml(many)).verdict.exit_code == 3


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("target: v5e\nlayout: {}", (2, 1), "unknown key 'layout'"),
        (
            "target: v5e\nrequire: [even, [1]]\nlayouts: {a: 'f32[8]'}",
            (2, 17),
            words("kernel.part_choice", what="require", known="even, whole", value="[1]", near=""),
        ),
        ("target: v5e\nrequire: square\nlayouts: {a: 'f32[8]'}", (2, 10), "not 'square'"),
        ("layouts: {a: 'f32[8]'}", (1, 1), "'target' is missing"),
        ("target: v9\nlayouts: {a: 'f32[8]'}", (1, 9), "unknown TPU generation"),
        ("target: v5e", (1, 1), "nothing is asked"),
        ("target: v5e\nlayouts:\n  a: f32[n]", (3, 6), stretch("searching.not_in_sizes", name="n")),
        ("target: v5e\nlayouts:\n  a: f33[8]", (3, 6), "f33"),
        ("target: v5e\nlayouts:\n  a: 8", (3, 6), stretch("searching.shape_form")),
        ("target: v5e\nlayouts: []", (2, 10), "'layouts': expected a mapping"),
        (
            "target: v5e\norder: any\nlayouts: {a: 'f32[8]'}",
            (2, 8),
            words("kernel.part_choice", what="order", known="each, shared", value="'any'", near=""),
        ),
        ("target: v5e\norder: shared\nlayouts: {a: 'f32[8,4]'}", (3, 14), "needs a name"),
        ("target: v5e\nsizes: {n: 0}\nlayouts: {a: 'f32[n]'}", (2, 12), "at least 1; found 0"),
        ("target: v5e\nshardings: {a: 'f32[8]'}", (2, 12), "need a mesh"),
        ("target: v5e\nmesh: {x: 0}\nshardings: {a: 'f32[8]'}", (2, 11), "at least 1; found 0"),
        ("target: v5e\nmesh: {x: 2}\nmemory: lots\nshardings: {a: 'f32[8]'}", (3, 9), "amount of memory"),
        ("target: v5e\npadding:\n  a: f32[<=8]", (3, 6), "not known"),
        ("target: v5e\npadding:\n  a: (f32[8], f32[8])", (3, 6), "only an array"),
    ],
)
def test_errors_say_where(text: str, where: tuple[int, int], what: str) -> None:
    with pytest.raises(LayoutError, match=what.replace("(", r"\(").replace("[", r"\[")) as caught:
        read_and_answer(read_yaml(text, "f.yaml"), "f.yaml")
    assert (caught.value.file, caught.value.line, caught.value.column) == ("f.yaml", *where)


def test_tiles_are_chosen_by_the_bytes_they_take() -> None:
    """2 x 128, 4 x 128 or 8 x 128, and two levels of tiles at once: each choice against whole tiles counted by hand."""
    text = """
target: v5e
tune: {t: [1, 2, 4, 8, 16], s: [1, 2]}
layouts:
  w: f32[4,300]{1,0:T(t,128)}
  v: bf16[3,5,130]{2,1,0:T(t,128)(s,1)}
"""
    answered = answer(read(read_yaml(text)), best=100)
    document: Any = answered.as_json()
    rows = document["layouts"]["each"]
    by_t = {row["values"]["t"]: row["bytes"] for row in rows["w"]["best"]}
    assert by_t == {t: -(-4 // t) * t * 384 * 4 for t in (1, 2, 4, 8, 16)}
    assert [row["values"]["t"] for row in rows["w"]["best"]] == [4, 2, 1, 8, 16]
    assert rows["w"]["certificate"] == {"kind": "enumerated", "covered": 5}
    both = {(row["values"]["t"], row["values"]["s"]): row["bytes"] for row in rows["v"]["best"]}
    assert len(both) == rows["v"]["certificate"]["covered"] == 10
    # rows of a tile are a multiple of s within it
    assert both == {(t, s): 3 * -(-5 // t) * (-(-t // s) * s) * 256 * 2 for t in (1, 2, 4, 8, 16) for s in (1, 2)}
    assert "t = 4" in answered.text()
    assert "the compiler gives by itself" in answered.text()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("tune: {t: [2]}\nlayouts: {w: 'f32[8,8]'}", words("searching.tuned_in_no_layout", name="t")),
        ("tune: {t: []}\nlayouts: {w: 'f32[8,8]{1,0:T(t,128)}'}", "expected at least one entry"),
        ("layouts: {w: 'f32[8,8]{1,0:T(t,128)}'}", "t stands in a tile of"),
        ("tune: {t: [2]}\norder: shared\nsizes: {a: 8}\nlayouts: {w: 'f32[a]{0:T(t)}'}", "without variables in them"),
    ],
)
def test_tiles_that_cannot_be_chosen(text: str, what: str) -> None:
    with pytest.raises(LayoutError, match=what):
        read(read_yaml("target: v5e\n" + text))
