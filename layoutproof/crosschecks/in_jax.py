"""The program of a child process that asks JAX: a request has cases, and its answer an outcome for each.

    {"what": a name of `ASKED`, "platform": "cpu", "cases": [..]} -> [outcome, ..]

JAX is imported here, in `tagged_kernel` and in `exchanges` only. What JAX cannot run is skipped, with its words.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.compiler.serve import Tell, serve
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.crosschecks import exchanges, tagged_kernel
from layoutproof.crosschecks.case import Case, layout_case
from layoutproof.crosschecks.definitions import device_array
from layoutproof.crosschecks.places import MOST, ours, packed, reason, same_array
from layoutproof.crosschecks.source import Agree, Disagree, Outcome, Skipped, as_data, both
from layoutproof.layouts.sharding import ShardedArray
from layoutproof.layouts.xla import XlaLayout
from layoutproof.questions.evaluate import evaluate, pack, read_constant, table, unpack

if TYPE_CHECKING:
    from jax.typing import ArrayLike


def answer(request: JsonObject, tell: Tell) -> list[JsonObject]:
    """One outcome for each case of a request."""
    cases = [layout_case(json.loads(text) if text[:1] == "{" else text, "") for text in request["cases"]]
    return [as_data(outcome) for outcome in ASKED[request["what"]](cases, request["platform"])]


def each(one: Callable[[Case, str], Outcome]) -> Callable[[Sequence[Case], str], list[Outcome]]:
    """The outcome of every case by itself."""

    def run(cases: Sequence[Case], platform: str) -> list[Outcome]:
        return [_skipping(partial(one, case, platform)) for case in cases]

    return run


def _skipping(work: Callable[[], Outcome]) -> Outcome:
    try:
        return work()
    except (LayoutError, Undecided) as error:
        return Skipped(reason(error))


def tables(cases: Sequence[Case], platform: str) -> list[Outcome]:
    """Index maps compiled for a device, arrays packed and unpacked on it: all cases in one program."""
    import jax
    import numpy as np

    given: dict[int, Any] = {}
    wanted: dict[int, dict[str, Any]] = {}
    outcomes = {k: _skipping(partial(_given, k, case, given, wanted)) for k, case in enumerate(cases)}

    def run(arrays: Mapping[int, ArrayLike]) -> dict[int, JsonObject]:
        found: dict[int, dict[str, Any]] = {k: {} for k in arrays}
        for k in arrays:
            outcomes[k] = _skipping(partial(_traced, cases[k].parsed, arrays[k], found[k]))
        return found

    with jax.default_device(jax.devices(platform)[0]):
        done = jax.device_get(jax.jit(run)(given))
    for k, found in done.items():
        for what, theirs in found.items():
            said = wanted[k][what]
            one = same_array(what, said, np.asarray(theirs).astype(said.dtype).reshape(said.shape))
            # why something is not compared counts only where nothing is
            outcomes[k] = one if isinstance(outcomes[k], Skipped) else both(outcomes[k], one)
    return [outcomes[k] for k in range(len(cases))]


PLACE, PACKED, UNPACKED = "place on the device", "byte packed on the device", "element unpacked on the device"


def _given(k: int, case: Case, given: dict[int, object], wanted: dict[int, dict[str, object]]) -> Outcome:
    """Puts the arrays of a case into `given`, and what we say of them into `wanted`."""
    import numpy as np

    read, m = read_constant(case.parsed)
    shape = tuple(map(int, m.domain.extents))
    if prod(shape) > MOST:
        raise Undecided(f"more than {MOST:,} elements")
    if 0 in shape:
        raise Undecided("no elements")
    arrays: dict[str, Any] = {
        "at": [row.astype(np.int32) for row in np.ogrid[tuple(map(slice, shape))]] if shape else []
    }
    wanted[k] = {PLACE: table(read, (0,) * len(m.replicas.extents))}
    if isinstance(read, XlaLayout):
        with contextlib.suppress(Undecided):
            words, image = packed(read)
            wanted[k] |= {PACKED: image, UNPACKED: words}
            if words.dtype.itemsize < 8:
                # JAX has no words of 64 bits by default
                narrow = {1: "uint1", 2: "uint2", 4: "uint4"}.get(m.memory.bits if m.memory else 0)
                arrays |= {"words": words.astype(narrow) if narrow else words, "image": image}
    given[k] = arrays
    return Skipped("an array without dimensions has no index map to compile")


def _traced(layout: object, arrays: JsonObject, found: JsonObject) -> Outcome:
    """Computes on the device, into `found`. Raises LayoutError where that is beyond its integers."""
    if arrays["at"]:
        replica = (0,) * len(read_constant(layout)[1].replicas.extents)
        found[PLACE] = evaluate(layout, arrays["at"], replica)
    if "words" in arrays:
        with contextlib.suppress(LayoutError):
            # a layout that cannot be packed has places all the same
            found[PACKED] = pack(layout, arrays["words"])
            found[UNPACKED] = unpack(layout, arrays["image"], arrays["words"].dtype)
    return Skipped("an array without dimensions has no index map to compile")


def shards(case: Case, platform: str) -> Outcome:
    """Real arrays cut over devices: each device's values, and the slices that JAX says it holds."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    layout = case.parsed
    if not isinstance(layout, ShardedArray):
        raise Undecided("no sharding")
    bare = replace(layout, layout=None)
    said = ours(bare)
    devices = device_array(bare)
    shape, count = tuple(map(int, bare.dims)), devices.shape[: len(layout.dims)]
    found = jax.devices(platform)
    if devices.max() >= len(found):
        raise Undecided(f"more devices than the {len(found)} there are")
    if any(extent % tiles for extent, tiles in zip(shape, count, strict=True)):
        raise Undecided("JAX makes no arrays whose shards differ in size")
    names = [f"a{k}" for k in range(devices.ndim)]
    of = {device.id: number for number, device in enumerate(found)}
    mesh = Mesh(np.array([found[n] for n in devices.reshape(-1)], dtype=object).reshape(devices.shape), names)
    sharding = NamedSharding(mesh, PartitionSpec(*names[: len(shape)]))
    array = jax.device_put(np.arange(prod(shape), dtype=np.int32).reshape(shape), sharding)
    # device, index in its shard -> element, as we say; and then as the arrays on the devices are
    ours_held: dict[tuple[int, ...], int] = {}
    for number, places in enumerate(said.at.reshape(prod(shape), *said.at.shape[-2:])):
        for place in places:
            ours_held[tuple(map(int, place))] = number
    slices = sharding.devices_indices_map(shape)
    compared = 0
    for shard in array.addressable_shards:
        device, data = of[shard.device.id], np.asarray(shard.data)
        starts = [part.indices(extent)[0] for part, extent in zip(slices[shard.device], shape, strict=True)]
        for at in np.ndindex(data.shape):
            theirs = int(data[at])
            if (
                theirs != int(np.ravel_multi_index([s + a for s, a in zip(starts, at, strict=True)], shape))
                if shape
                else 0
            ):
                return Disagree(
                    "devices_indices_map against the shard of device", str(starts), str(theirs), (device, *at)
                )
            mine = ours_held.pop((device, *at), None)
            if mine != theirs:
                return Disagree("element in the shard of device", str(mine), str(theirs), (device, *at))
            compared += 1
    if ours_held:
        place = min(ours_held)
        return Disagree("element in the shard of device", str(ours_held[place]), "nothing", place)
    return Agree(compared)


def good(answers: Any) -> bool:
    """Whether the process can be asked again: the TPU interpreter keeps what an exception left."""
    return not any("the interpreter raised" in str(each) for each in answers)


ASKED: Mapping[str, Callable[[Sequence[Case], str], list[Outcome]]] = {
    "tables": tables,
    "shards": each(shards),
    "kernels": each(tagged_kernel.interpreted),
    "tpu_kernels": each(tagged_kernel.on_tpu_interpreter),
    "programs": each(exchanges.programs),
    "moved_bytes": each(exchanges.moved_bytes),
}


if __name__ == "__main__":
    serve(answer, good)
