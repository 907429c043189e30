"""What a pair is: one function over the devices of a mesh, right and wrong, beside what one device computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, PartitionSpec

P = PartitionSpec


@dataclass(frozen=True)
class Pair:
    """One pair. of: gives the function, wrong or right.  reference: what one device computes.

    kind: the fault, in words.  args: shapes as texts, or integers that are given.  after: the public thread of the same
    kind, "" for none.  gradient: whether the gradients are what is wrong.
    """

    name: str
    kind: str
    reference: Callable[..., Any]
    args: tuple[Any, ...]
    of: Callable[[bool], Callable[..., Any]]
    after: str = ""
    gradient: bool = False


def mesh(kind: AxisType = AxisType.Auto, **axes: int) -> Mesh | AbstractMesh:
    """A mesh, of devices where there are enough of them: then its functions can be run, too."""
    shape, names = tuple(axes.values()), tuple(axes)
    types = (kind,) * len(names)
    if len(jax.devices()) >= prod(shape):
        return jax.make_mesh(shape, names, axis_types=types, devices=jax.devices()[: prod(shape)])
    return AbstractMesh(shape, names, types)


def over(f: Callable[..., Any], on: Mesh | AbstractMesh, ins: Any, outs: Any, **more: Any) -> Callable[..., Any]:
    """A function on each device. JAX does not check what is the same on all, unless `check_vma` asks for it."""
    return jax.shard_map(f, mesh=on, in_specs=ins, out_specs=outs, **{"check_vma": False, **more})


def line(f: Callable[..., Any], ins: Any, outs: Any, **more: Any) -> Callable[..., Any]:
    """A function on four devices, `d`."""
    return over(f, mesh(d=4), ins, outs, **more)


def plane(f: Callable[..., Any], ins: Any, outs: Any, **more: Any) -> Callable[..., Any]:
    """A function on two by two devices, `data` and `model`."""
    return over(f, mesh(data=2, model=2), ins, outs, **more)


def around(n: int, step: int = 1) -> list[tuple[int, int]]:
    """Each device sends to the one `step` after it, the last to the first."""
    return [(k, (k + step) % n) for k in range(n)]


def whole(x: Any, axis: str, dim: int = 0) -> Any:
    """What all devices of an axis hold, one after the other."""
    return lax.all_gather(x, axis, axis=dim, tiled=True)
