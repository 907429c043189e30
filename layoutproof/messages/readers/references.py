"""What Pallas says of loads and stores while it traces a body: a value that is not what the reference takes.

Sources: messages of jax 0.10.2 and 0.12.0.1; `tests/messages/test_jax_says.py` asks the installed JAX for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from layoutproof.messages.explanation import Explanation
from layoutproof.messages.kinds import Kind, Told, explained, sizes_in
from layoutproof.messages.pasted import PastedLine

_SHAPE = r"\(([\d, ]{0,200})\)"
_INDEXED = re.compile(
    r"Transforms: \(NDIndexer\(indices=\((.{0,2000}?)\), shape=\(([\d, ]{0,200})\), int_indexer_shape=\(\)"
)
_ALL = re.compile(r"Transforms: \(\)")


def _region(block: str, ref: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of what a store replaces, by the indices that the message shows; None where they do not tell."""
    if _ALL.search(block):
        return ref
    found = _INDEXED.search(block)
    if found is None or block.count("NDIndexer(") != 1 or sizes_in(found[2]) != ref:
        return None
    return tuple(int(size) for size in re.findall(r"Slice\(start=[^,]{1,80}, size=(\d+)", found[1]))


def _shape(match: re.Match[str], block: str) -> Told:
    ref, value = sizes_in(match["ref"]), sizes_in(match["value"])
    said = None if match["expected"] is None else sizes_in(match["expected"])
    told = _region(block.replace("\n", " "), ref)
    region = said if said is not None else told
    if region is None:
        return Told("", reason="the message does not show which part of the reference is stored to")
    if region == value or (told is not None and told != region):
        return Told(
            "", reason=f"the shapes of the message do not explain it: {region} is stored to, of {ref}, by {value}"
        )
    ways = []
    if _broadcasts(value, region):
        ways.append(f"jnp.broadcast_to(value, {region})")
    if prod(value) == prod(region):
        ways.append(f"value.reshape({region})")
    if len(value) == len(ref) and all(v <= n for v, n in zip(value, ref, strict=True)):
        cut = ", ".join(":" if v == n else f"start:start + {v}" for v, n in zip(value, ref, strict=True))
        ways.append(f"index the reference so that the part is {value}: ref[{cut}] = value")
    if value and region == ref:
        ways.append(f"make the reference {value}: its BlockSpec's block, or the shape of the scratch")
    if not ways:
        ways.append(f"make the value {region}")
    whole = "the whole reference" if region == ref else f"a part of {ref}"
    return Told(
        f"the body stores a value of shape {value} where {region} is, {whole}; they have to be equal",
        (ways[0], *[f"or {way}" for way in ways[1:]]),
    )


def _broadcasts(value: tuple[int, ...], region: tuple[int, ...]) -> bool:
    last = region[len(region) - len(value) :]
    return len(value) <= len(region) and all(v in (1, n) for v, n in zip(value, last, strict=True))


def _dtype(match: re.Match[str], block: str) -> Told:
    if match[1] == match[2]:
        return Told("", reason=f"both types of the message are {match[1]}, so they do not explain it")
    return Told(
        f"the body stores {match[2]} to a reference of {match[1]}, and a store converts nothing",
        ("ref[...] = value.astype(ref.dtype)", f"or make the reference {match[2]}: out_shape, or the scratch"),
    )


def _too_many(match: re.Match[str], block: str) -> Told:
    shape = sizes_in(match[2])
    return Told(
        f"a reference of shape {shape} is indexed by more than {len(shape)} indices: ({match[1]})",
        (
            "one index for each dimension that the block has; a dimension that the BlockSpec squeezes (None) is no "
            "dimension of the reference",
        ),
    )


def _interpret(match: re.Match[str], block: str) -> Told:
    return Told(
        f"a Pallas call was run on the {match[1]}, which executes no kernel; only JAX's interpreter runs one there",
        (
            "interpret=True of pl.pallas_call, or interpret=pltpu.InterpretParams(), runs it here",
            "to compile it for a TPU without one: jax.jit(f).trace(x).lower(lowering_platforms=('tpu',)), or "
            "layoutproof kernels --compile",
            "on a machine with a TPU, jax.devices() says whether JAX found it: JAX_PLATFORMS=cpu, or no libtpu, hides "
            "it",
        ),
    )


_KINDS: tuple[Kind, ...] = (
    (
        re.compile(
            rf"Invalid shape for `swap`\. Ref shape: (?P<ref>{_SHAPE})\.(?: Expected shape: (?P<expected>{_SHAPE})\.)? "
            rf"Value shape: (?P<value>{_SHAPE})"
        ),
        _shape,
    ),
    (re.compile(r"Invalid dtype for `swap`\. Ref dtype: (\w{1,40})\. Value dtype: (\w{1,40})"), _dtype),
    (
        re.compile(rf"`indices` must not be longer than `shape`: indices=\(([^()]{{0,400}})\), shape={_SHAPE}"),
        _too_many,
    ),
    (re.compile(r"Only interpret mode is supported on (\w{1,20}) backend"), _interpret),
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The errors of references in a text, each once.

    lines: of the text.  target: not looked at.
    """
    yield from explained("Pallas", _KINDS, lines)
