"""`python tests/pallas/mosaic_compiler.py`: pitfalls compiled by the real TPU compiler, in a process of its own.

In: one JSON list of [number, "wrong" or "right"] on stdin. Out: one JSON text a line, the compiled program, before the
next is compiled; "" where JAX or the compiler refuses it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

Case = tuple[int, str]


def compiled(cases: list[Case], environment: dict[str, str]) -> list[str]:
    """The texts of compiled programs for one v5e; fewer where the compiler ended its process."""
    child = subprocess.run(
        [sys.executable, "-P", __file__],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
    )
    return [json.loads(line) for line in child.stdout.splitlines()]


def main() -> None:
    """The child."""
    import jax
    from jax.experimental.topologies import get_topology_desc

    from tests.pallas.pitfalls import PITFALLS

    bounds = {"chips_per_host_bounds": (1, 1, 1)}
    device = get_topology_desc(platform="tpu", topology_name="v5e:1x1", **bounds).devices[0]
    place = jax.sharding.SingleDeviceSharding(device)
    mesh = jax.sharding.Mesh([device], ("d",)).abstract_mesh
    for number, side in json.load(sys.stdin):
        text = ""
        try:
            function, arguments = getattr(PITFALLS[number - 1], side)()
            arrays = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place) for a in arguments]
            with jax.sharding.use_abstract_mesh(mesh):
                made = jax.jit(function, out_shardings=place).lower(*arrays)
            text = made.compile().as_text()
        except Exception as error:
            print(f"{number} {side}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
        os.write(1, json.dumps(text).encode() + b"\n")


if __name__ == "__main__":
    main()
