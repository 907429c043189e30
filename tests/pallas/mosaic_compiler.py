"""Pitfalls compiled by the real TPU compiler, in a process of its own.

A request is [number, "wrong" or "right"]; its answer the compiled program's text, "" where JAX or the compiler refuses.
"""

from __future__ import annotations

import sys
from typing import Any

from layoutproof.compiler import libtpu
from layoutproof.compiler.child import Child, ask
from layoutproof.compiler.serve import Tell, serve

Case = tuple[int, str]

CHILD = Child(libtpu.WHAT, "tests.pallas.mosaic_compiler", libtpu.ENVIRONMENT, 250)


def compiled(cases: list[Case]) -> list[str]:
    """The texts of compiled programs for one v5e; "" where the compiler ended its process."""
    return [answer.value or "" for answer in ask(CHILD, cases, str)]


def answered(case: Any, tell: Tell) -> str:
    """The answering side: of one pitfall."""
    import jax

    from tests.pallas.pitfalls import PITFALLS

    number, side = case
    device = libtpu.device("v5e:1x1")
    place = jax.sharding.SingleDeviceSharding(device)
    mesh = jax.sharding.Mesh([device], ("d",)).abstract_mesh
    try:
        function, arguments = getattr(PITFALLS[number - 1], side)()
        arrays = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place) for a in arguments]
        with jax.sharding.use_abstract_mesh(mesh):
            made = jax.jit(function, out_shardings=place).lower(*arrays)
        return str(made.compile().as_text())
    except Exception as error:
        print(f"{number} {side}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
        return ""


if __name__ == "__main__":
    serve(answered)
