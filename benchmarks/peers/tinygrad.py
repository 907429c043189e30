"""tinygrad's check of indices (`CHECK_OOB`), which asks z3: a flat index below the size of its buffer."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from benchmarks.peers.asking import Ask, NotAsked, answering, size
from benchmarks.peers.expressions import run

INSTALL = ("tinygrad==0.14.0", "z3-solver==5.4.0.0")
IMPORT = "tinygrad"


def asked(question: dict[str, Any]) -> Ask:
    """A place of several coordinates is asked for by its offset: the check knows no other."""
    from tinygrad.uop.ops import AxisType, UOp
    from tinygrad.uop.validate import validate_index_with_z3

    layout = question["layouts"][0]
    if question["kind"] != "in_bounds" or layout["places"] is None:
        raise NotAsked("it checks bounds")

    def ask() -> bool:
        index = [UOp.range(extent, k, AxisType.GLOBAL) for k, extent in enumerate(layout["shape"])]
        offset: Any = 0
        for place, extent in zip(layout["places"], layout["range"], strict=True):
            offset = offset * extent + run(place, index)
        with contextlib.redirect_stdout(io.StringIO()):
            return bool(validate_index_with_z3(size(layout["range"]), offset, UOp.const(True)))

    return Ask(ask)


if __name__ == "__main__":
    answering(asked, "tinygrad")
