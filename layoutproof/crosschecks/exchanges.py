"""Programs of several devices run by JAX on virtual ones, in float64, and walked over here, by device.

Of an array with a sharding over a mesh two programs are made. One is left to XLA to partition: its compiled text is
evaluated, with the shardings as we read them. The other one is a `shard_map` with every collective that fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

from layoutproof.core.errors import Undecided
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.places import MOST
from layoutproof.crosschecks.source import Agree, Disagree, Outcome, Skipped, both
from layoutproof.layouts.sharding import NamedSharding, ShardedArray

if TYPE_CHECKING:
    from jax import Array
    from jax.extend.core import ClosedJaxpr
    from jax.sharding import Mesh, PartitionSpec

CLOSE = 1e-9
"""Relative difference up to which sums in another order are the same on float64."""


def mesh_of(case: Case) -> tuple[dict[str, int], list[tuple[str, ...]]]:
    """(axis -> size, the axes of each dimension). Raises Undecided for what JAX has no such array of."""
    layout = case.parsed
    if not isinstance(layout, ShardedArray) or not isinstance(layout.sharding, NamedSharding):
        raise Undecided("no sharding over a mesh with names")
    of = layout.sharding
    if of.mesh.maximal or of.manual or of.unreduced or "device_ids" in str(of.mesh):
        raise Undecided("a mesh whose devices are not in order, or that is no whole array's")
    if any(axis.size for axes in of.dims for axis in axes):
        raise Undecided("a part of an axis")
    axes = dict(zip(of.mesh.names, of.mesh.tiles.dims, strict=True))
    if not 1 < prod(axes.values()) <= 8:
        raise Undecided("one device, or more than eight")
    dims = [tuple(of.mesh.names[axis.number] for axis in each) for each in of.dims]
    shape = tuple(map(int, layout.dims))
    if prod(shape) > MOST or not prod(shape) or len(dims) != len(shape):
        raise Undecided(f"more than {MOST:,} elements, or none")
    if any(n % prod(axes[name] for name in names) for n, names in zip(shape, dims, strict=True)):
        raise Undecided("JAX makes no arrays whose shards differ in size")
    return axes, dims


def programs(case: Case, platform: str) -> Outcome:
    """The results of both programs."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    axes, dims = mesh_of(case)
    many = prod(axes.values())
    found = jax.devices(platform)
    mesh = Mesh(np.array(found[:many]).reshape(tuple(axes.values())), tuple(axes))
    cut = NamedSharding(mesh, PartitionSpec(*(names or None for names in dims)))
    shape = tuple(map(int, case.parsed.dims))
    given = np.random.default_rng(prod(shape)).standard_normal(shape)
    return both(_partitioned(case, given, cut, mesh), _lockstep(given, cut, axes))


def _partitioned(case: Case, given: Array, cut: PartitionSpec, mesh: Mesh) -> Outcome:
    """What XLA partitions, by its compiled text."""
    import jax
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec

    from layoutproof.from_hlo.programs import compiled, partitioned
    from layoutproof.hlotext.lines import read_hlo

    def function(x: Array) -> Array:
        rows = x.reshape(x.shape[0], -1)
        return x, x[::-1], x.sum(0), rows @ rows.T, x * 2

    whole = NamedSharding(mesh, PartitionSpec())
    placed = jax.device_put(given, cut)
    made = jax.jit(function, out_shardings=(whole, cut, whole, whole, cut)).lower(placed).compile()
    theirs = [np.asarray(each) for each in made(placed)]
    (module,) = read_hlo(made.as_text().splitlines(keepends=True))
    mine, everywhere = str(case.parsed.sharding), "{replicated}"
    outs = [everywhere, mine, everywhere, everywhere, mine]
    program = partitioned(compiled(module), mesh.devices.size, [mine], outs).program
    return _alike("result of the partitioned program", program, given, theirs)


def _lockstep(given: Array, cut: PartitionSpec, axes: dict[str, int]) -> Outcome:
    """A shard_map with the collectives that fit what each device holds."""
    import jax
    import numpy as np
    from jax.sharding import PartitionSpec

    from layoutproof.pallas.from_jax.programs import program_of

    def function(x: Array) -> Array:
        return [each[None] for each in exchanges(x, axes)]

    rows = PartitionSpec(tuple(axes))
    mapped = jax.shard_map(function, mesh=cut.mesh, in_specs=cut.spec, out_specs=rows, check_vma=False)
    theirs = [np.asarray(each) for each in jax.jit(mapped)(given)]
    return _alike("what a device has of a collective", program_of(jax.make_jaxpr(mapped)(given)), given, theirs)


def exchanges(x: Array, axes: dict[str, int]) -> Iterator[Array]:
    """Each collective over each axis, and over two of them, as far as the extents of the first dimension allow."""
    import jax
    from jax import lax

    over: list[tuple[str, ...]] = [(name,) for name in axes]
    over += [tuple(axes)[::-1]] if len(axes) > 1 else []
    for names in over:
        many = prod(axes[name] for name in names)
        yield lax.psum(x, names)
        yield lax.pmax(x, names)
        yield x * lax.axis_index(names)
        yield lax.all_gather(x, names, axis=0, tiled=True)
        # in jax 0.12 another order than the mesh's is an error
        order = tuple(sorted(names, key=list(axes).index)) if hasattr(jax, "raise_on_ppermute_sort_diff") else names
        yield lax.ppermute(x, order, [(k, (k + 1) % many) for k in range(many - 1)])
        if x.shape[0] % many == 0:
            yield lax.psum_scatter(x, names, scatter_dimension=0, tiled=True)
            yield lax.all_to_all(x, names, 0, 0, tiled=True)


def _alike(what: str, program: ClosedJaxpr, given: Array, theirs: Sequence[Array]) -> Outcome:
    """Our results of a program beside JAX's."""
    import numpy as np

    from layoutproof.values.floats import Floats
    from layoutproof.values.known import data_of, first_place
    from layoutproof.values.refusals import NotModelled, OutOfBounds
    from layoutproof.values.walk import Prepared, Walk

    numbers = Floats(1)
    try:
        results = Walk(numbers, Prepared()).run(program, [numbers.constant(given)])
    except NotModelled as refusal:
        return Skipped(f"not modelled: {refusal.what}")
    except OutOfBounds as refusal:
        return Disagree(what, refusal.said, "the same on all devices")
    compared = 0
    for k, (mine, other) in enumerate(zip(results, theirs, strict=True)):
        array = np.asarray(data_of(numbers, mine).array)
        if array.shape != other.shape:
            return Disagree(what, f"of shape {list(array.shape)}", f"{list(other.shape)}", (k,))
        apart = ~np.isclose(array, other, rtol=CLOSE, atol=CLOSE)
        at = first_place(apart)
        if at is not None:
            return Disagree(what, f"{array[at]:.12g}", f"{other[at]:.12g}", (k, *at))
        compared += array.size
    return Agree(compared)


def moved_bytes(case: Case, platform: str) -> Outcome:
    """Bytes that each device has to receive: of each collective alone, in the compiler's text, and of what it was made.

    A ring: to sum parts, or to gather them, each device receives all parts but its own, one after the other (Patarasuk
    and Yuan, JPDC 69, 2009).
    """
    import jax
    import numpy as np
    from jax import lax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from layoutproof.programs.reading import record_of

    axes, dims = mesh_of(case)
    many = prod(axes.values())
    mesh = Mesh(np.array(jax.devices(platform)[:many]).reshape(tuple(axes.values())), tuple(axes))
    cut = PartitionSpec(*(names or None for names in dims))
    shape = tuple(map(int, case.parsed.dims))
    names = tuple(axes)[:1]
    size = axes[names[0]]
    own = prod(shape) // prod(axes[name] for each in dims for name in each) * 4
    local = [n // prod(axes[name] for name in each) for n, each in zip(shape, dims, strict=True)]
    functions = {
        "all-reduce": (lambda x: lax.psum(x, names), _ring(size, own / size) * 2),
        "all-gather": (lambda x: lax.all_gather(x, names, axis=0, tiled=True), _ring(size, own)),
        "collective-permute": (lambda x: lax.ppermute(x, names, [(k, (k + 1) % size) for k in range(size)]), own),
    }
    if local[0] % size == 0:
        functions |= {
            "reduce-scatter": (
                lambda x: lax.psum_scatter(x, names, scatter_dimension=0, tiled=True), _ring(size, own / size),
            ),
            "all-to-all": (lambda x: lax.all_to_all(x, names, 0, 0, tiled=True), _ring(size, own / size)),
        }  # fmt: skip
    compared = 0
    given = jax.ShapeDtypeStruct(shape, np.float32, sharding=NamedSharding(mesh, cut))
    for kind, (function, expected) in functions.items():
        rows = PartitionSpec(tuple(axes))
        mapped = jax.shard_map(
            lambda x, f=function: f(x)[None], mesh=mesh, in_specs=cut, out_specs=rows, check_vma=False
        )
        text = jax.jit(mapped).lower(given).compile().as_text()
        said = record_of(text.splitlines(keepends=True)).collectives
        if [each.kind for each in said] != [kind]:
            # XLA makes something else of it, such as nothing of a group of one
            continue
        if said[0].moved != int(expected):
            return Disagree(f"bytes that a device receives by {kind}", str(said[0].moved), str(int(expected)))
        compared += 1
    return Agree(compared) if compared else Skipped("XLA makes something else of every collective")


def _ring(devices: int, part: float) -> float:
    """Bytes that come to each device, while parts go round until each was everywhere but where it began."""
    return sum(part for _ in range(devices - 1))
