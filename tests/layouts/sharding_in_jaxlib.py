"""A child process that asks jaxlib about shardings: a JSON list of texts in, a JSON list of answers out.

An answer is {"printed": what XLA prints, "tiles": what it prints for the V2 form of a mesh sharding, "devices": the
device of each tile}, or null where XLA refuses or aborts. It aborts the whole process on some texts, so forks do the
asking: one that dies answers null for the text it died on, and the next one goes on after it.
"""

from __future__ import annotations

import json
import sys


def answer(text: str) -> dict[str, object] | None:
    from jaxlib import _hlo

    try:
        sharding = _hlo.HloSharding.from_string(text)
    except (Exception, MemoryError):
        return None
    found: dict[str, object] = {"printed": str(sharding)}
    if "mesh" in text and not text.startswith("{{"):
        # of what is printed: that leaves out axes of size 1, over which XLA's conversion stumbles
        sharding = _hlo.HloSharding.from_string(str(sharding)).v3_to_v2_sharding()
        found["tiles"] = str(sharding)
    if str(sharding).startswith("{devices="):
        found["devices"] = [int(device) for device in sharding.tile_assignment_devices()]
    return found


if __name__ == "__main__":
    import jaxlib._hlo  # noqa: F401  loaded once, before the forks
    from forked import answers

    json.dump(answers(json.load(sys.stdin), answer), sys.stdout)
