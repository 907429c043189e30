"""What JAX says of shardings that an array cannot have: indivisible, of another rank, of no such axis, without a type.

Each message is one entry of `_KINDS`. Sources: messages of jax 0.4.30 to 0.12.0.1 (`tests/messages/test_jax_says.py`
asks the installed JAX for each of today's), and threads in `tests/cases/messages`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from layoutproof.core.errors import closest
from layoutproof.messages.explanation import Explanation, joined
from layoutproof.messages.kinds import SPEC, Kind, Told, explained
from layoutproof.messages.pasted import PastedLine


def _numbers(text: str | None) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text or ""))


def _counted(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _indivisible(match: re.Match[str], block: str) -> Told:
    """A dimension of `size` elements that a sharding cuts into `parts`."""
    named = match.groupdict()
    axis, parts, size = (int(named[key]) for key in ("axis", "parts", "size"))
    shape = _numbers(named.get("shape"))
    if parts < 1 or size % parts == 0:
        return Told("", reason=f"{parts} divides {size}, so the sharding of the message does not explain it")
    said = (
        f"dimension {axis} has {size} elements and is cut into {parts} equal parts; {size} % {parts} = {size % parts}"
    )
    up, down = -(-size // parts) * parts, size // parts * parts
    ways = [f"pad dimension {axis} from {size} to {up}" + f", or cut it to {down}" * (down > 0)]
    others = [
        f"dimension {d} ({n} / {parts} = {n // parts})"
        for d, n in enumerate(shape)
        if d != axis and n % parts == 0 and n
    ]
    if others:
        ways.append(f"or shard {joined(others[:3])} instead")
    elif len(shape) > 1:
        ways.append(f"no other dimension of {shape} is a multiple of {parts} either")
    fits = [n for n in range(min(parts, size), 1, -1) if size % n == 0 and parts % n == 0]
    if fits:
        ways.append(f"or shard it over {fits[0]} devices: mesh axes of that product divide it")
    return Told(said, tuple(ways))


def _contracting(match: re.Match[str], block: str) -> Told:
    axes = sorted(set(re.findall(r"'(\w+)'", match[1] + match[2])))
    return Told(
        f"the summed dimensions of both operands lie split over {joined(axes) or 'mesh axes'}: the result may "
        "be summed over these devices or scattered, and JAX does not choose",
        (
            "name it: out_sharding=P(..) of jnp.einsum, jnp.dot or lax.dot_general; an axis that P leaves out is "
            "summed over (all-reduce), one that it names at a dimension is scattered (reduce-scatter)",
            "or jax.sharding.reshard one operand first, which gathers it",
        ),
    )


def _twice(match: re.Match[str], block: str) -> Told:
    used = re.findall(r"@\(?([\w,]+)", match[3])
    axes = [axis for text in used for axis in text.split(",")]
    double = sorted({axis for axis in axes if axes.count(axis) > 1})
    if not double:
        return Told("", reason=f"the result {match[3]} uses no mesh axis twice")
    return Told(
        f"{match[1]} of {match[2]} would give {match[3]}, split over mesh axis {joined(double)} in two dimensions; an "
        "axis cuts one dimension only",
        (
            f"jax.sharding.reshard one operand so that {joined(double)} is left in one of them",
            "or name the result: out_sharding=P(..)",
        ),
    )


def _broadcasting(match: re.Match[str], block: str) -> Told:
    one, two = (re.findall(r"'\w+'|None|\([^()]*\)", text[text.index("(") + 1 : -1]) for text in (match[2], match[3]))
    differ = [str(d) for d, (a, b) in enumerate(zip(one, two, strict=False)) if a != b and "None" not in (a, b)]
    at = f" in dimension {joined(differ)}" if differ else ""
    return Told(
        f"the operands of {match[1]} are split differently{at}: {match[2]} and {match[3]}",
        (f"jax.sharding.reshard(x, {_spec(one)}) of the second, or {_spec(two)} of the first",),
    )


def _indexing(match: re.Match[str], block: str) -> Told:
    how = "get(out_sharding=P(..))" if match[1] == "get" else "set(values, out_sharding=P(..))"
    return Told(
        "an indexed dimension is split over devices, or the indices are, so the sharding of the result is not "
        "determined",
        (
            f"name it: x.at[index].{how}",
            "or jax.sharding.reshard the array so that the indexed dimension is whole: P(None, ..)",
        ),
    )


def _sharded_dimension(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the dimension that the operation goes along is split over devices: {match[0].strip()}",
        ("jax.sharding.reshard(x, P(..)) with None at that dimension before it",),
    )


def _differently(match: re.Match[str], block: str) -> Told:
    return Told(
        "the operation takes operands of one sharding, and these have two",
        ("jax.sharding.reshard one of them to the sharding of the other, which jax.typeof(x).sharding.spec says",),
    )


def _pieces(match: re.Match[str], block: str) -> Told:
    return Told(
        f"{match[1]} makes a piece of {match[2]} elements of a dimension that lies over {match[3]} devices, "
        f"and {match[3]} does not divide {match[2]}",
        (
            f"cut at multiples of {match[3]}",
            "or jax.sharding.reshard(x, P(..)) with None at that dimension before it",
        ),
    )


def _name_the_result(match: re.Match[str], block: str) -> Told:
    return Told(
        "the sharding of the result does not follow from those of the operands",
        ("name it: the operation takes out_sharding=P(..)",),
    )


def _asserted(match: re.Match[str], block: str) -> Told:
    if match[1] == match[2]:
        return Told("", reason=f"both shardings of the message are {match[1]}, so they do not explain it")
    return Told(
        f"on Explicit axes with_sharding_constraint moves nothing and asserts: the array is {match[1]}, and "
        f"{match[2]} is asked for",
        (
            f"jax.sharding.reshard(x, {match[2]}) moves it",
            "or AxisType.Auto for the mesh's axes, where the compiler is to choose",
        ),
    )


def _no_in_specs(match: re.Match[str], block: str) -> Told:
    return Told(
        "None is no spec of shard_map's arguments",
        (
            "P() for an argument that each device has whole",
            "or no in_specs on Explicit axes: they follow the arguments",
        ),
    )


def _vmapped(match: re.Match[str], block: str) -> Told:
    return Told(
        f"vmap goes along one dimension of several arrays, which is split over {match[1]} in one and {match[2]} in "
        "another",
        (
            "jax.sharding.reshard one of them, so that the mapped dimension is split alike",
            "in_axes=None for one that is the same for all",
        ),
    )


def _auto_axes(match: re.Match[str], block: str) -> Told:
    return Told(
        "the mesh's axes are Explicit, and with_sharding_constraint speaks of Auto axes only",
        (
            "jax.sharding.reshard(x, P(..)) in its place",
            "or make the mesh's axes Auto: jax.make_mesh(.., axis_types=(AxisType.Auto,) * n)",
        ),
    )


def _rank(match: re.Match[str], block: str) -> Told:
    entries, rank = int(match[1]), int(match[2])
    return Told(
        f"the PartitionSpec has {entries} entries and the array {rank} dimensions",
        (f"P with at most {rank} entries; dimensions that it leaves out are whole",),
    )


def _entries(spec: str) -> list[str]:
    """The entries of a PartitionSpec as it is printed: `P(('data', 'model'), None)` has two."""
    return re.findall(r"\([^()]*\)|'[^']*'|None|\w+", spec[spec.index("(") + 1 : -1])


def _axes(entry: str) -> list[str]:
    return re.findall(r"'([^']*)'", entry)


def _spec(entries: Sequence[str]) -> str:
    return f"P({', '.join(entries)})"


def _short_of_dimensions(match: re.Match[str], block: str) -> Told:
    """A PartitionSpec of more entries than the value has dimensions."""
    least, rank = int(match["least"]), int(match["rank"])
    entries = _entries(match["spec"]) if match["spec"] else []
    if rank >= least or (entries and len(entries) != least):
        return Told("", reason=f"{least} entries and {rank} dimensions: the sizes of the message do not explain it")
    spec = f" {match['spec']}" if match["spec"] else ""
    fits = (
        f": {_spec(entries[:rank])}"
        if entries and {*entries[rank:]} == {"None"}
        else f" of at most {_counted(rank, 'entry', 'entries')}"
    )
    ways = [f"a PartitionSpec{fits}; dimensions that it leaves out are whole" if rank else "P() for a single number"]
    if match["who"] and "key path" in match["who"]:
        ways.append(
            "one sharding for a whole tree stands for every leaf of it, the smallest too: give a tree of shardings, "
            "P() for steps and counts"
        )
    else:
        ways.append("inside of vmap or scan the value has one dimension less than outside")
    what = "one of " + match["who"].replace("with pytree key path ", "at ") if match["who"] else "the value"
    has, dimensions = _counted(least, "entry", "entries"), _counted(rank, "dimension", "dimensions")
    return Told(f"the PartitionSpec{spec} has {has}, and {what} has {dimensions}", tuple(ways))


def _too_long(match: re.Match[str], block: str) -> Told:
    entries, rank = int(match[3]), int(match[6])
    if entries <= rank:
        return Told("", reason=f"{entries} entries for {rank} dimensions are not too long")
    return Told(
        f"{match[1]} {match[2]} of shard_map has {_counted(entries, 'entry', 'entries')}, and {match[4]} is "
        f"{match[5]}, of {_counted(rank, 'dimension', 'dimensions')}",
        (
            f"a PartitionSpec of at most {_counted(rank, 'entry', 'entries')}; dimensions that it leaves out are whole"
            if rank
            else "P()",
        ),
    )


def _axis_twice(match: re.Match[str], block: str) -> Told:
    """One mesh axis in two places of one PartitionSpec."""
    entries, axis = _entries(match[1]), match[2]
    at = [d for d, entry in enumerate(entries) for name in _axes(entry) if name == axis]
    if len(at) < 2:
        return Told("", reason=f"{match[1]} names {axis} once, so the message does not explain itself")
    if len({*at}) == 1:
        ways = [f"name {axis} once in the entry of dimension {at[0]}"]
    else:
        keep = [_spec([_without(entry, axis, d != kept) for d, entry in enumerate(entries)]) for kept in sorted({*at})]
        ways = [" or ".join(keep)]
    return Told(
        f"{match[1]} names mesh axis {axis} {len(at)} times, at dimension {joined([str(d) for d in at])}; an axis cuts "
        "one dimension only, once",
        (*ways, "or a mesh with one axis more, where both dimensions are to be cut"),
    )


def _without(entry: str, axis: str, out: bool) -> str:
    """An entry of a PartitionSpec, without an axis where it is to go out."""
    if not out or axis not in _axes(entry):
        return entry
    left = [name for name in _axes(entry) if name != axis]
    return "None" if not left else repr(left[0]) if len(left) == 1 else f"({', '.join(map(repr, left))})"


def _no_such_axis(match: re.Match[str], block: str) -> Told:
    axis, names = match["axis"], _axes(match["names"])
    if axis in names or axis not in _axes(match["spec"]):
        return Told(
            "", reason=f"{axis} is an axis of the mesh, or none of {match['spec']}: the text contradicts itself"
        )
    there = f"the axes {joined(names)}" if names else "no axes"
    return Told(
        f"{match['spec']} names axis {axis}, and the mesh has {there}{closest(axis, names)}",
        ("an axis of the mesh", f"or a mesh with {axis!r} among its axis names, which is the one in use at that line"),
    )


def _not_manual(match: re.Match[str], block: str) -> Told:
    names, axis = sorted(_axes(match[2])), match[3]
    if axis in names:
        return Told("", reason=f"{axis} is among the axes {joined(names)}: the text contradicts itself")
    return Told(
        f"{match[1]} of shard_map names axis {axis}; it goes over {joined(names) or 'no axis'}{closest(axis, names)}",
        ("an axis of the mesh that shard_map is given", f"or axis_names={{.., {axis!r}}}, where the mesh has it"),
    )


def _no_mesh(match: re.Match[str], block: str) -> Told:
    return Told(
        f"a PartitionSpec alone says no devices, and no mesh is set where {match[1]} is called",
        (
            "with jax.set_mesh(mesh): around the call of the jitted function",
            "or NamedSharding(mesh, P(..)) in its place",
        ),
    )


def _other_type(match: re.Match[str], block: str) -> Told:
    return Told(
        "", reason="this error of sharding types is not known here; axes that are Auto, or out_sharding=P(..), avoid it"
    )


_SHAPE = r"\((?P<shape>[\d, ]*)\)"


def _not_replicated(match: re.Match[str], block: str) -> Told:
    axes = re.findall(r"\w+", match["axes"] or match["more"])
    if not axes:
        return Told("", reason="the message names no mesh axis over which the output is to be the same")
    names = joined([repr(axis) for axis in axes])
    axis = repr(axes[0]) if len(axes) == 1 else f"({', '.join(map(repr, axes))})"
    return Told(
        f"out_specs {match['spec']} says that all devices along {names} hold the same output, and nothing shows that: "
        "each may hold what it made of its own shard",
        (
            f"make it the same before it is returned: jax.lax.psum(y, {axis}), or pmean, pmax, all_gather",
            f"or say that it differs: name {names} in out_specs, such as P({axis})",
            "check_vma=False only hides it: where the devices differ, the result is that of one of them",
        ),
    )


def _shard_shape(match: re.Match[str], block: str) -> Told:
    wanted, given = _numbers(match["wanted"]), _numbers(match["given"])
    if wanted == given:
        return Told("", reason="both shapes are the same: the text contradicts itself")
    whole = f" of {match['type']}" if match["type"] else ""
    return Told(
        f"each device holds a shard of shape {match['wanted']}{whole}, and was given an array of shape "
        f"{match['given']}",
        (
            "give each device its own part: data[index] for the index that the callback of "
            "jax.make_array_from_callback gets",
            "sharding.shard_shape(shape) is what each device holds, sharding.devices_indices_map(shape) which part",
        ),
    )


_KINDS: tuple[Kind, ...] = (
    (
        re.compile(
            rf"out_specs(?:\[[^\n]{{0,80}})? is (?P<spec>{SPEC}) which implies that the corresponding output value is "
            r"(?:replicated across mesh ax[ei]s (?P<axes>[^\n]{1,200}?), but could "
            r"|only varying across mesh axes \{[^\n{}]{0,200}\} and not \{(?P<more>[^\n{}]{1,200})\}, but it was "
            r"inferred)"
        ),
        _not_replicated,
    ),
    (
        re.compile(
            r"Expected shard shape (?P<wanted>\([\d, ]{0,80}\)) doesn't match the single device array shape "
            r"(?P<given>\([\d, ]{0,80}\))(?:\. Shape of Array is (?P<type>\w{1,20}\[[\d,]{0,80}\]))?"
        ),
        _shard_shape,
    ),
    (
        re.compile(
            r"the global size of its dimension (?P<axis>\d+) should be divisible by (?P<parts>\d+), but it is equal to "
            rf"(?P<size>\d+)(?: \(full shape: {_SHAPE})?"
        ),
        _indivisible,
    ),
    (
        re.compile(
            r"implies that array axis (?P<axis>\d+) is partitioned (?P<parts>\d+) times, but the dimension size is "
            rf"(?P<size>\d+)(?: \(full shape: {_SHAPE})?"
        ),
        _indivisible,
    ),
    (
        re.compile(
            r"implies that array axis (?P<axis>\d+) is partitioned (?P<parts>\d+) times, but does not evenly "
            rf"divide the dimension size (?P<size>\d+)(?:\. Got shape: {_SHAPE})?"
        ),
        _indivisible,
    ),
    (
        re.compile(
            r"(?:of shape \w{1,20}\[(?P<shape>[\d,]*)\].{0,400}?)?which maps array axis (?P<axis>\d+) "
            r"\(of size (?P<size>\d+)\) to mesh ax[ei]s .{1,200}? \(of (?:total )?size (?P<parts>\d+)\)"
        ),
        _indivisible,
    ),
    (
        re.compile(
            rf"Contracting dimensions are sharded.{{0,200}}?lhs_contracting_spec={SPEC} and "
            rf"rhs_contracting_spec={SPEC}"
        ),
        _contracting,
    ),
    (
        re.compile(r"\b(\w{1,40}) operation with inputs: (.{1,400}?),? produces an illegally sharded result: (\S+)"),
        _twice,
    ),
    (re.compile(rf"\b(\w{{1,40}}) got incompatible shardings for broadcasting: {SPEC}, {SPEC}"), _broadcasting),
    (re.compile(r"Use `\.at\[\.\.\.\]\.(get|set\S*)\(out_sharding=\)`"), _indexing),
    (
        re.compile(
            r"(?:must be unsharded over the sorting dimension|should be unsharded over the axis being reduced"
            r"|cannot be sharded on the axis being rolled over|should be fully replicated when axis is not specified)"
        ),
        _sharded_dimension,
    ),
    (re.compile(r"[Pp]lease specify the (?:sharding of the output|output sharding) via"), _name_the_result),
    (
        re.compile(
            r"(?:All operands should have the same sharding|operand sharding must be equal to update sharding"
            r"|tangents and operand shardings must match)"
        ),
        _differently,
    ),
    (
        re.compile(r"\b(\w{1,40}) on sharded dims where out dim \((\d+)\) is not divisible by mesh axes \((\d+)\)"),
        _pieces,
    ),
    (re.compile(r"with_sharding_constraint can only refer to Auto axes"), _auto_axes),
    (
        re.compile(
            rf"`with_sharding_constraint` acts as an assert .{{0,80}}?The array sharding: {SPEC} did not match the "
            rf"sharding provided: {SPEC}"
        ),
        _asserted,
    ),
    (re.compile(r"shard_map in_specs argument must be a pytree .{0,120}? but it was None"), _no_in_specs),
    (
        re.compile(
            r"Mapped away dimension of inputs passed to vmap should be sharded the same\. Got inconsistent axis specs: "
            r"(.{1,80}?) vs (.{1,80}?)(?=$|\.)"
        ),
        _vmapped,
    ),
    (
        re.compile(r"Length of sharding\.spec \((\d+)\) must be equal to aval's ndim \((\d+)\)"),
        _rank,
    ),
    (
        re.compile(
            r"(?:One of (?P<who>.{1,120}?) is incompatible with its sharding annotation .{0,2000}? "
            rf"spec=(?P<spec>{SPEC})[^()]{{0,80}}\) )?is only valid for values of rank at least (?P<least>\d+), but "
            r"was applied to a value of rank (?P<rank>\d+)"
        ),
        _short_of_dimensions,
    ),
    (
        re.compile(
            rf"(in_specs\S{{0,40}}|out_specs\S{{0,40}}) is {SPEC} which has length (\d+), but (?:the )?(?:passed )?"
            r"(.{1,200}?),? (?:where .{1,200}?, )?has shape (\S{1,80}), which has rank (\d+)"
        ),
        _too_long,
    ),
    (
        re.compile(
            rf"can map every mesh axis to at most one positional dimension, but {SPEC} has duplicate entries for "
            r"`(\w{1,80})`"
        ),
        _axis_twice,
    ),
    (
        re.compile(
            rf"Resource axis: (?P<axis>\w{{1,80}}) of (?P<spec>{SPEC}) is not found in mesh: "
            r"\((?P<names>[^()]{0,400})\)"
        ),
        _no_such_axis,
    ),
    (
        re.compile(
            r"shard_map (in_specs|out_specs) argument must refer to an axis marked as manual \((.{0,400}?)\), but:\s+"
            r"(?:in_specs|out_specs)\S{0,80} refers to '(\w{1,80})'"
        ),
        _not_manual,
    ),
    (re.compile(r"\b(\w{1,40}) requires a non-empty mesh in context"), _no_mesh),
    (re.compile(r"ShardingTypeError: \S"), _other_type),
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The errors of shardings in a text, each once.

    lines: of the text.  target: not looked at.
    """
    yield from explained("sharding", _KINDS, lines)
