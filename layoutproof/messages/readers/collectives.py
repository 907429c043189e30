"""What JAX says of collectives and of what varies over a mesh inside of `jax.shard_map`.

Source: jax/_src/lax/parallel.py, jax/_src/core.py and jax/_src/shard_map.py of jax 0.10.2;
`tests/messages/test_kernels_say.py` asks the installed JAX for each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from layoutproof.messages.explanation import Explanation, joined
from layoutproof.messages.kinds import Kind, Told, explained, next_multiple
from layoutproof.messages.pasted import PastedLine


def _all_to_all(match: re.Match[str], block: str) -> Told:
    size, axis, devices = int(match[1]), match[2], int(match[3])
    if devices and size % devices == 0:
        return Told("", reason=f"{devices} divides {size}, so it does not explain it")
    up = next_multiple(size, devices)
    return Told(
        f"all_to_all sends an equal part of split_axis to each of {devices} devices along {axis}, and {size} elements "
        f"are no multiple of {devices}",
        (f"pad the dimension to {up}; or split another one", "the size is that of one device's shard, not the array's"),
    )


def _permutation(match: re.Match[str], block: str) -> Told:
    pairs = re.findall(r"\((\d{1,6}), (\d{1,6})\)", match[1])
    twice = [
        f"device {number} {what} {times} times"
        for what, side in (("sends", 0), ("receives", 1))
        for number, times in Counter(pair[side] for pair in pairs).items()
        if times > 1
    ]
    if not twice:
        return Told("", reason="no device sends or receives twice in the pairs of the message")
    return Told(
        f"ppermute moves each shard at most once: {joined(twice)}",
        ("pairs (source, destination) with each device once on either side: [(k, (k + 1) % n) for k in range(n)]",
         "jax.lax.all_gather or psum where several are to reach one device"),
    )  # fmt: skip


def _not_varying(match: re.Match[str], block: str) -> Told:
    return Told(
        f"{match[1]} over {match[2]} is given a value that does not vary along it: all devices there hold the same one",
        (
            f"leave the {match[1]} out: the value is the same on all of them already",
            f"or jax.lax.pcast(x, {match[2]}, to='varying') before it, which moves nothing",
        ),
    )


def _cotangent(match: re.Match[str], block: str) -> Told:
    return Told(
        f"inside of shard_map the result varies over the mesh ({match[2]}), and the value that its gradient starts "
        f"from ({match[1]}) does not",
        (
            "sum the loss over the axis before it is differentiated: jax.lax.psum or pmean, so that it is one number",
            "or jax.lax.pcast(one, ('x',), to='varying') as the start, where each device has a loss of its own",
        ),
    )


_KINDS: tuple[Kind, ...] = (
    (
        re.compile(
            r"The size of all_to_all split_axis \((\d{1,12})\) has to be divisible by the size of the named axis "
            r"(\S{1,80}) \((\d{1,9})\)"
        ),
        _all_to_all,
    ),
    (re.compile(r"ppermute sources and destinations must be unique, got (\[[\d(), ]{1,4000}\])"), _permutation),
    (
        re.compile(
            r"(\w{1,30}) is a variant->invariant collective\. .{0,200}? must be present in .{0,80}?\. Got "
            r"ax[ei]s(?:_name)?=(\(.{1,80}?\)|\w{1,40})"
        ),
        _not_varying,
    ),
    (
        re.compile(
            r"unexpected JAX type \(e\.g\. shape/dtype\) for argument to vjp function: got (\S{1,80}?), but expected "
            r"(\S{1,40}\{\S{1,40}\})"
        ),
        _cotangent,
    ),
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The errors of collectives in a text, each once.

    lines: of the text.  target: not looked at.
    """
    yield from explained("collective", _KINDS, lines)
