"""The answering side of XLA's own code in jaxlib: its parser of texts, its shardings, its count of bytes.

It runs in a process of its own, since some texts abort it. A request is ["shape" or "sharding" or "bytes", text].
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from layoutproof.compiler.serve import Tell, serve

if TYPE_CHECKING:
    from jaxlib.xla_client import Client


def shape(text: str) -> str | None:
    """What XLA prints for the text of a shape; None where it refuses it."""
    from jaxlib import _hlo

    try:
        module = _hlo.hlo_module_from_text(f"HloModule m\nENTRY e {{ ROOT p = {text}\n parameter(0) }}")
    except Exception:
        return None
    roots = [line.strip() for line in module.to_string().splitlines() if line.strip().startswith("ROOT ")]
    return str(roots[0]).removeprefix("ROOT %p = ").removesuffix(" parameter(0)") if len(roots) == 1 else None


def byte_size(text: str) -> int | None:
    """The bytes of a shape, without padding (`ShapeUtil::ByteSizeOf`): the reads of a copy by its cost model."""
    from jaxlib import _hlo, xla_client

    try:
        module = _hlo.hlo_module_from_text(
            f"HloModule m\nENTRY e {{ p = {text} parameter(0)\n ROOT c = {text} copy(p) }}"
        )
        return int(xla_client._xla.hlo_module_cost_analysis(_client(), module)["bytes accessed0{}"])
    except Exception:
        return None


@cache
def _client() -> Client:
    from jaxlib import xla_client

    return xla_client.make_cpu_client()


def sharding(text: str) -> dict[str, object] | None:
    """{"printed", "tiles": its form without a mesh, "devices": of each tile}; None where XLA refuses it."""
    from jaxlib import _hlo

    try:
        found: Any = _hlo.HloSharding.from_string(text)
    except (Exception, MemoryError):
        return None
    said: dict[str, Any] = {"printed": str(found)}
    if "mesh" in text and not text.startswith("{{"):
        # of what is printed: that leaves out axes of size 1, over which XLA's conversion stumbles
        found = _hlo.HloSharding.from_string(str(found)).v3_to_v2_sharding()
        said["tiles"] = str(found)
    if str(found).startswith("{devices="):
        said["devices"] = [int(device) for device in found.tile_assignment_devices()]
    return said


JOBS: Mapping[str, Any] = {"shape": shape, "bytes": byte_size, "sharding": sharding}


def answered(request: tuple[str, str], tell: Tell) -> object:
    """The answering side: of one text."""
    job, text = request
    return {"said": JOBS[job](text)}


if __name__ == "__main__":
    serve(answered)
