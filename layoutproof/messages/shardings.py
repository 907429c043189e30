"""What JAX says of shardings that an array cannot have: a dimension that is not divided evenly, a type without result.

Each message is one entry of `_KINDS`. Sources: messages of jax 0.4.30 to 0.12.0.1 (`tests/messages/test_jax_says.py`
asks the installed JAX for each of today's), and threads in `tests/cases/messages`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from layoutproof.messages.explanation import Explanation, joined
from layoutproof.messages.kinds import Kind, Told, explained
from layoutproof.messages.pasted import Line

_SPEC = r"(P?\((?:[^()]|\([^()]{0,60}\)){0,200}\))"


def _numbers(text: str | None) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text or ""))


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
        (
            f"jax.sharding.reshard(x, P{match[2].removeprefix('P')}) of the second, or "
            f"P{match[3].removeprefix('P')} of the first",
        ),
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


def _other_type(match: re.Match[str], block: str) -> Told:
    return Told(
        "", reason="this error of sharding types is not known here; axes that are Auto, or out_sharding=P(..), avoid it"
    )


_SHAPE = r"\((?P<shape>[\d, ]*)\)"
_KINDS: tuple[Kind, ...] = (
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
            rf"Contracting dimensions are sharded.{{0,200}}?lhs_contracting_spec={_SPEC} and "
            rf"rhs_contracting_spec={_SPEC}"
        ),
        _contracting,
    ),
    (
        re.compile(r"(\w{1,40}) operation with inputs: (.{1,400}?),? produces an illegally sharded result: (\S+)"),
        _twice,
    ),
    (re.compile(rf"(\w{{1,40}}) got incompatible shardings for broadcasting: {_SPEC}, {_SPEC}"), _broadcasting),
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
        re.compile(r"(\w{1,40}) on sharded dims where out dim \((\d+)\) is not divisible by mesh axes \((\d+)\)"),
        _pieces,
    ),
    (re.compile(r"with_sharding_constraint can only refer to Auto axes"), _auto_axes),
    (
        re.compile(r"Length of sharding\.spec \((\d+)\) must be equal to aval's ndim \((\d+)\)"),
        _rank,
    ),
    (re.compile(r"ShardingTypeError: \S"), _other_type),
)


def read(lines: Sequence[Line], target: str | None) -> Iterator[Explanation]:
    """The errors of shardings in a text, each once.

    lines: of the text.  target: not looked at.
    """
    yield from explained("sharding", _KINDS, lines)
