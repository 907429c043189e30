"""JAX itself, on four CPU devices: Pallas's interpreters for grids, `NamedSharding.is_equivalent_to` for shardings."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.peers.asking import Ask, NotAsked, answering
from benchmarks.peers.expressions import run

INSTALL = ("jax==0.10.2",)
IMPORT = "jax"
INTERPRETERS = ("interpret=True", "InterpretParams")
"""What interprets a kernel: with either, the table has a line of its own."""


def asked(question: dict[str, Any], interpreter: str = INTERPRETERS[0]) -> Ask:
    """A kernel whose programs write ones: in bounds where nothing is raised, covered where all of it is ones."""
    layout = question["layouts"][0]
    if "mesh" in layout:
        return _shardings(question)
    if "grid" not in layout:
        raise NotAsked("it runs kernels, and compares shardings")
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    form = layout["grid"]
    how: Any = True if interpreter == INTERPRETERS[0] else pltpu.InterpretParams(uninitialized_memory="nan")

    def body(o: Any) -> None:
        o[...] = jnp.ones_like(o)

    def ask() -> Any:
        def index(*programs: Any) -> Any:
            return tuple(run(place, programs) for place in layout["places"])

        call = pl.pallas_call(
            body,
            grid=tuple(form["programs"]),
            out_specs=pl.BlockSpec(tuple(form["block"]), index),
            out_shape=jax.ShapeDtypeStruct(tuple(form["array"]), jnp.float32),
            interpret=how,
        )
        return np.asarray(call())

    def in_bounds() -> bool:
        try:
            ask()
        except Exception as error:
            # what a callback raises comes as an error of the runtime, with the words of the first
            if "Out-of-bounds" not in str(error):
                raise
            return False
        return True

    if question["kind"] == "in_bounds":
        return Ask(in_bounds)
    return Ask(lambda: bool((ask() == 1).all()))


def _shardings(question: dict[str, Any]) -> Ask:
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    forms = [one["mesh"] for one in question["layouts"]]

    def made(form: dict[str, Any]) -> Any:
        devices = np.array(jax.devices())[np.array(form["devices"])]
        return NamedSharding(Mesh(devices, ("x", "y")), PartitionSpec(*form["spec"]))

    return Ask(lambda: bool(made(forms[0]).is_equivalent_to(made(forms[1]), len(forms[0]["dims"]))))


if __name__ == "__main__":
    os.environ |= {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    answering(asked, "jax")
