"""A child process that counts what JAX does on a second call with a sharding that is spelled otherwise.

Output: one JSON list of [first, second, compiled], shardings as JAX prints them; compiled: whether the second call
compiled. The first entry is JAX's version.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"


def main() -> list[Any]:
    """The cases."""
    import jax
    import numpy as np
    from jax.sharding import AxisType, Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(lambda name, seconds, **rest: compiled.append(name))

    def mesh(names: str, sizes: tuple[int, ...], kind: Any = AxisType.Auto) -> Any:
        return Mesh(np.array(jax.devices()).reshape(sizes), tuple(names), axis_types=(kind,) * len(names))

    pairs = []
    for kind in (AxisType.Auto, AxisType.Explicit):
        two, one = mesh("xy", (4, 2), kind), mesh("xy", (8, 1), kind)
        pairs += [(two, a, two, b) for a, b in ((P("x"), P("x", None)), (P("x", None), P("x")), (P(), P(None, None)))]
        pairs += [(two, P(("x", "y")), two, P(("x", "y"), None)), (two, P("x"), two, P(("x",)))]
        pairs += [(one, P("x"), one, P("x", "y")), (one, P("x", "y"), one, P("x")), (one, P("x"), one, P(("x", "y")))]
        pairs += [(two, P("x"), two, P("y")), (two, P("x"), two, P(None, "x")), (two, P(("x", "y")), one, P("x"))]
        pairs += [(two, P("x"), mesh("ab", (4, 2), kind), P("a"))]
    pairs.append((mesh("xy", (4, 2)), P("x"), mesh("xy", (4, 2), AxisType.Explicit), P("x")))
    found: list[Any] = [jax.__version__]
    for number, (before, one_spec, after, other_spec) in enumerate(pairs):
        function = jax.jit(lambda x, k=number: x * 2 + k)
        array = np.zeros((16, 16), np.float32)
        given = [NamedSharding(m, s) for m, s in ((before, one_spec), (after, other_spec))]
        arrays = [jax.block_until_ready(jax.device_put(array, each)) for each in given]
        jax.block_until_ready(function(arrays[0]))
        compiled.clear()
        jax.block_until_ready(function(arrays[1]))
        again = any("backend_compile" in name for name in compiled)
        found.append([*(f"{each.spec} on {each.mesh}" for each in given), again])
    return found


if __name__ == "__main__":
    json.dump(main(), sys.stdout)
