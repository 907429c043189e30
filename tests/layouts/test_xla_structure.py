"""An XLA layout in structure is the layout of the text that it spells, at every door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.cli import main as cli

SPELLS = {
    "f32[3,5]{1,0:T(2,2)}": {"shape": "f32[3,5]", "minor_to_major": [1, 0], "tiles": [[2, 2]]},
    "bf16[16,256]{1,0:T(8,128)(2,1)}": {"shape": "bf16[16,256]", "minor_to_major": [1, 0], "tiles": [[8, 128], [2, 1]]},
    "f32[2,7,8]{2,0,1:T(*,8)S(1)}": {
        "shape": "f32[2,7,8]", "minor_to_major": [2, 0, 1], "tiles": [["*", 8]], "memory_space": 1,
    },
    "s4[8]{0:L(16)E(4)M(8)}": {
        "shape": "s4[8]", "minor_to_major": [0], "tail_alignment": 16, "element_bits": 4, "metadata_bytes": 8,
    },
    "f32[N,M]{1,0:T(a,128)}": {"shape": "f32[N,M]", "minor_to_major": [1, 0], "tiles": [["a", 128]]},
    "f32[3,5]{1,0}": {"shape": "f32[3,5]"},
    "f32[]": {"shape": "f32[]", "minor_to_major": []},
}  # fmt: skip


@pytest.mark.parametrize("text", SPELLS)
def test_it_is_the_text(text: str) -> None:
    assert lp.read_layout({"xla": SPELLS[text]}) == lp.read_layout(text)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"minor_to_major": [0]}, "shape"),
        ({"shape": "f32[3,5]", "tile": [[2, 2]]}, "no 'tile'; did you mean 'tiles'?"),
        ({"shape": "f32[3,5]", "tiles": [[2, 2]]}, "minor_to_major is needed where tiles"),
        ({"shape": "f32[3,5]", "minor_to_major": [1, 1]}, "names dimension 1 twice"),
        ({"shape": "f32[3,5]", "minor_to_major": [1, 0], "tiles": [[-1, 2]]}, r"write \* as XLA prints it"),
        ({"shape": "f32[3,5]", "minor_to_major": [1, 0], "tiles": [2, 2]}, r"tiles\[0\] is a list, not 2"),
        ({"shape": "f32[3,5]", "minor_to_major": [1, 0], "tiles": [["2)(3", 2]]}, "a tile has numbers"),
        ({"shape": "f32[3,5]{0,1}", "minor_to_major": [1, 0]}, "a text without a layout"),
        ({"shape": [3, 5]}, "a text without a layout"),
        ({"shape": "f32[3,5]", "minor_to_major": [True, False]}, "takes whole numbers"),
    ],
)
def test_mistakes(value: dict[str, Any], said: str) -> None:
    with pytest.raises(lp.LayoutError, match=said):
        lp.read_layout({"xla": value})


def test_commands_and_spec_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = {"xla": SPELLS["f32[3,5]{1,0:T(2,2)}"]}
    assert cli.run(["ask", "same_map", json.dumps(given), "f32[3,5]{1,0:T(2,2)}"]) == 0
    assert cli.run(["locate", json.dumps(given), "2,3"]) == 0
    assert "offset 17" in capsys.readouterr().out
    spec = tmp_path / "s.yaml"
    spec.write_text(json.dumps({"layouts": {"a": given}, "checks": [{"prints": "a", "is": "f32[3,5]{1,0:T(2,2)}"}]}))
    assert cli.run(["check", str(spec)]) == 0


def test_a_tile_of_minus_one_is_answered_with_a_star(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["show", "f32[3,5]{1,0:T(-1,2)}"]) == 2
    assert "tile size -1: where a tile combines dimensions, write * as XLA prints it" in capsys.readouterr().err


def test_which_byte_count_matters(capsys: pytest.CaptureFixture[str]) -> None:
    """One of XLA's functions is what is allotted; that line says so, and no other."""
    assert cli.run(["show", "f32[3,5]{1,0:T(2,2)}"]) == 0
    sizes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("size ")]
    assert len(sizes) == 4
    assert [line for line in sizes if "this one counts" in line] == [
        "size      96 bytes by ShapeUtil::ArraySize (what PJRT and the TPU compiler allot: this one counts)"
    ]
