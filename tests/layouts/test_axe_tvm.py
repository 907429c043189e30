"""TVM itself as a peer, where it is installed: recorded behaviour is what it still does, and its layouts are read."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

from layoutproof.algebra.axe.canonical_form import canonical, same
from layoutproof.algebra.axe.grouping import group
from layoutproof.algebra.axe.tiling import tile
from layoutproof.layouts import axe

PROGRAM = """
import json
from tvm.tirx.layout import R, S, TileLayout, laneid, m, warpid
def show(t):
    it = lambda i: [int(i.extent), int(i.stride), i.axis.name]
    return {"D": [it(i) for i in t.shard], "R": [it(i) for i in t.replica],
            "O": {a.name: int(v) for a, v in t.offset.items()}}
fig2 = TileLayout(S[(8, 2, 4, 2) : (4 @ laneid, 1 @ warpid, 1 @ laneid, 1 @ m)] + R[2 : 4 @ warpid] + 5 @ warpid)
grid, atom = TileLayout(S[(8, 8) : (8, 1)]), TileLayout(S[(4, 2, 2, 4) : (16, 8, 1, 2)])
print(json.dumps({"fig2": show(fig2), "canonical": show(fig2.canonicalize()), "grouped": show(fig2.group([8, 16])[0]),
                  "grid": show(grid), "atom": show(atom), "tiled": show(atom.tile(grid, (8, 8), (8, 8)))}))
"""


@pytest.mark.skipif(importlib.util.find_spec("tvm") is None, reason="apache-tvm is not installed")
def test_tvm_agrees() -> None:
    """Canonical form, grouping and tiling without replicas are the same maps as TVM's own. In a child: it can abort."""
    child = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True)
    found = {name: axe.read(value) for name, value in json.loads(child.stdout).items()}
    assert same(canonical(found["fig2"]), found["canonical"])
    grouped = group(found["fig2"], (8, 16))
    assert isinstance(grouped, tuple)
    assert same(grouped[0], found["grouped"])
    tiled = tile(found["grid"], (8, 8), found["atom"], (8, 8))
    assert isinstance(tiled, axe.AxeLayout)
    assert same(tiled, found["tiled"])
