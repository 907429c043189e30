"""What JAX, Shardy and XLA say of meshes, of the devices of arrays, and of programs that they cut.

Sources: public threads, each a row of `tests/cases/fresh_messages.jsonl`; docs/sharding of JAX 0.10.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from layoutproof.messages.explanation import Explanation
from layoutproof.messages.kinds import Kind, Told, explained, sizes_in
from layoutproof.messages.pasted import PastedLine

_ONE_MESH = (
    "make one mesh and every sharding of it: two calls of make_mesh or create_device_mesh may order devices apart"
)


def _devices(match: re.Match[str], block: str) -> Told:
    one, two = sizes_in(match[1]), sizes_in(match[2])
    if one == two:
        return Told("", reason="both device lists of the message are the same, so they do not explain it")
    if set(one) == set(two):
        why = f"the same {len(one)} devices, in two orders"
    else:
        why = f"{len(one)} device{'' if len(one) == 1 else 's'} and {len(two)}, which are not the same ones"
    return Told(
        f"one call is given arrays, or a result's sharding, on {why}; a jitted program has one list of devices",
        (_ONE_MESH, "or move the array first: jax.device_put(x, the sharding that the others have)"),
    )


def _elsewhere(match: re.Match[str], block: str) -> Told:
    return Told(
        "an array is read as a whole in one process, and some of its shards lie on devices of others",
        (
            "jax.experimental.multihost_utils.process_allgather(x, tiled=True) brings all of it to each process",
            "or read what is here: [shard.data for shard in x.addressable_shards]",
        ),
    )


def _two_meshes(match: re.Match[str], block: str) -> Told:
    return Told(
        f"{match[1]} is given an array whose type has another mesh than the one in context: of two kinds of axes "
        "(Auto, Explicit, Manual), as inside of shard_map and around it",
        (
            "make what the body of shard_map uses inside of it, or pass it as an argument with its in_specs",
            "arrays made before jax.set_mesh have the old mesh: make them again, or jax.device_put them",
        ),
    )


def _order_of_axes(match: re.Match[str], block: str) -> Told:
    return Told(
        "a dimension of a result of shard_map is cut along an axis that is not manual before one that is",
        ("name the manual axes first in the entry of out_specs, or make all axes of the mesh manual",),
    )


def _not_explicit(match: re.Match[str], block: str) -> Told:
    return Told(
        f"{match[1]} is given a sharding that names the axis {match[2]}, which is {match[3]} here; there a sharding of "
        "a type names Explicit axes alone",
        (
            f"make {match[2]} an Explicit axis of the mesh (axis_types=), or leave it out of the spec",
            "inside of shard_map its axes are Manual: a sharding says nothing of them",
        ),
    )


def _varying(match: re.Match[str], block: str) -> Told:
    return Told(
        f"operands of {match[1]} inside of shard_map differ in the mesh axes along which they vary: {match[2]}",
        (
            "make the other one vary too: jax.lax.pvary(x, axes), or jax.lax.pcast(x, axes, to='varying')",
            "or shard_map(.., check_vma=False), which also checks less of out_specs",
        ),
    )


def _override(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the compiler gives a result the sharding {match[1]} where its type says another one: a check of JAX itself",
        ("say the result's sharding where it is made (out_sharding=), or at the jit (out_shardings=)",),
    )


def _factor(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the sharding rule of a custom partitioning has the letter {match[1]} for dimensions of two sizes, {match[2]} "
        f"and {match[3]}",
        ("another letter for one of them; one letter is one size",),
    )


def _reduced_twice(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the partitioner sums over the axis {match[1]} an array that is cut or replicated along {match[1]}: what it "
        "made of the program is refused by its own check",
        ("constrain the operand or the result of that line: jax.lax.with_sharding_constraint(x, sharding)",),
    )


def _malformed(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the partitioner made a {match[1]} of a wrong shape, and XLA's verifier refuses it: a bug of the compiler, "
        "not of the program",
        (
            "hold the operands otherwise there: jax.lax.with_sharding_constraint(x, P()) before that line",
            "docs/known_bugs.md has the versions of one such bug, jax-39301",
        ),
    )


def _partition_id(match: re.Match[str], block: str) -> Told:
    return Told(
        "the number of the device (axis_index) is asked for where the compiler cuts the program itself, so that it is "
        "not said whose number is meant",
        (
            "make all axes of the mesh manual there: shard_map without axis_names, or without auto=",
            "or pass the number in: jnp.arange(n) with the sharding P(axis), one entry on each device",
        ),
    )


def _needs_shardy(match: re.Match[str], block: str) -> Told:
    return Told(
        "ragged_dot is cut over devices by the older partitioner, which does it wrongly",
        ('jax.config.update("jax_use_shardy_partitioner", True), or ragged_dot inside of shard_map',),
    )


def _prefix(match: re.Match[str], block: str) -> Told:
    return Told(
        f"{match[1]} has another structure than the values: a spec stands for a whole subtree, or the containers are "
        "alike (list for list, dict for dict)",
        ("one spec for the whole argument, or jax.tree.map(lambda x: spec, value) to have one for each leaf",),
    )


def _children(match: re.Match[str], block: str) -> Told:
    found = re.search(r"with (\d+) child\w*[\s\S]{0,120}?with (\d+) child", block)
    if found is None:
        return Told("", reason="two trees differ; paste the lines that follow, down to both numbers of children")
    where = re.search(r"key path\s+(\S[^\n]{0,120})", block)
    return Told(
        f"the specs have {found[1]} entries where the values have {found[2]}" + (f", at {where[1]}" if where else ""),
        ("compare the keys of both there; each value needs an entry, None or P() where it is whole on each device",),
    )


_KINDS: tuple[Kind, ...] = (
    (
        re.compile(
            r"Received incompatible devices for jitted computation[\s\S]{0,400}? device ids (\[[\d, ]{0,4000}\])"
            r"[\s\S]{0,400}? explicit output sharding with device ids (\[[\d, ]{0,4000}\])"
        ),
        _devices,
    ),
    (re.compile(r"[Ff]etching value for `?jax\.Array`? that spans non-addressable"), _elsewhere),
    (re.compile(r"For primitive (\w{1,60}), context mesh .{0,400}? should match the aval mesh"), _two_meshes),
    (re.compile(r"must have all manual axes come before free axes"), _order_of_axes),
    (
        re.compile(
            r"PartitionSpec passed to (\w{1,60}) cannot contain axis names that are of type Auto or Manual"
            r".{0,400}? with axis name: (\S{1,40}) of type: AxisType\.(\w{1,12})"
        ),
        _not_explicit,
    ),
    (
        re.compile(r"Primitive (\w{1,60}) requires varying manual axes to match, but got \[(.{1,400}?)\]\."),
        _varying,
    ),
    (re.compile(r"Unexpected XLA sharding override: \(XLA\) (\w{1,40}\(.{0,200}?\)) !="), _override),
    (re.compile(r"Factor (\w{1,8}) corresponds to two sizes: (\d{1,19}) and (\d{1,19})"), _factor),
    (re.compile(r"'sdy\.all_reduce' op reduction axis \"(\w{1,60})\" overlaps with operand"), _reduced_twice),
    (
        re.compile(
            r"\[hlo verifier\]: Expected instruction to have shape equal to [\s\S]{0,400}? (\w{1,40})\("
            r"[\s\S]{0,400}?Failed after spmd-partitioning"
        ),
        _malformed,
    ),
    (re.compile(r"PartitionId instruction is not supported for SPMD partitioning"), _partition_id),
    (re.compile(r"You have to use Shardy for RaggedDot"), _needs_shardy),
    (re.compile(r"(\w[\w ]{0,60}?) specification must be a tree prefix of the corresponding value"), _prefix),
    (re.compile(r"different numbers of pytree children at key path\s{1,20}(?!pjit (?:in|out)_shardings)"), _children),
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The messages about meshes, devices and cut programs in a text, each once.

    lines: of the text.  target: not looked at.
    """
    yield from explained("sharding", _KINDS, lines)
