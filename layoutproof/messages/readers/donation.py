"""What JAX says of donated and deleted arrays.

Sources: messages of jax 0.10.2 and 0.12.0.1 (`tests/messages/test_jax_says.py` asks the installed JAX for them), and of
XLA's PjRt clients; a donated argument gives its memory to one output of its shape and type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from layoutproof.messages.explanation import Explanation, joined
from layoutproof.messages.kinds import Kind, Told, explained
from layoutproof.messages.pasted import PastedLine

_AGAIN = "Calling the de-optimized version"
_ARRAY = re.compile(r"(?:ShapedArray\()?\b([a-z]\w*+\[[\d,]*\])")


def _unusable(match: re.Match[str], block: str) -> Told:
    arrays = list(dict.fromkeys(_ARRAY.findall(match[1])))
    shown = joined(arrays[:4]) + f" and {len(arrays) - 4} more" * (len(arrays) > 4)
    if "not implemented for" in block.lower():
        return Told(
            "the backend that runs takes no donation: the arrays are copied, the numbers are right",
            ("nothing, where the program runs on TPUs or GPUs later",),
        )
    return Told(
        f"no output is left whose shape and type are those of {shown or 'what was donated'}: its memory is not used "
        "again, and peak memory is that without donation",
        (
            "donate (donate_argnums) only what an output replaces: of the same shape, type and sharding",
            "an output in another type (float32 for bfloat16) or a slice of it takes no donation: return it as it came",
            "layoutproof compile says how many bytes of arguments a program's outputs reuse",
        ),
    )


def _deleted(match: re.Match[str], block: str) -> Told:
    found = re.search(r"with shape=([\w\[\],]+)", block)
    which = f"{found[1]} is" if found else "an array is"
    if _AGAIN in block:
        return Told(
            "jax_debug_nans runs a call again whose arguments the first run was given (donate_argnums)",
            ("leave donate_argnums out while jax_debug_nans is on",),
        )
    return Told(
        f"{which} used after its memory was given away: donated to a jitted call (donate_argnums), or deleted",
        (
            "use what the call returned in its place: state = step(state), never the old state again",
            "or do not donate it; or keep jnp.copy(x) before the call",
        ),
    )


def _twice(match: re.Match[str], block: str) -> Told:
    return Told(
        f"one array is donated twice by one call (arguments {match[2]} and {match[1]} are the same): it has one memory "
        f"to give",
        (
            "pass two arrays: jnp.copy of one of them; two leaves of a state that were made as one array are the usual "
            "case",
            "or donate one of the two only",
        ),
    )


def _given_and_used(match: re.Match[str], block: str) -> Told:
    return Told(
        f"one array is donated as argument {match[2]} of a call and read as argument {match[1]} of the same call",
        (
            "pass jnp.copy(x) for one of them",
            "or do not donate it",
        ),
    )


_KINDS: tuple[Kind, ...] = (
    (re.compile(r"[Ss]ome donated buffers were not usable:? ?(.*)"), _unusable),
    (
        re.compile(
            r"Attempt to donate the same buffer twice in Execute\(\).{0,40}?argument (\d+).{0,60}?first use: (\d+)"
        ),
        _twice,
    ),
    (
        re.compile(
            r"Attempt to use a buffer that was previously donated in the same call to Execute\(\).{0,40}?argument "
            r"(\d+).{0,60}?first use: (\d+)"
        ),
        _given_and_used,
    ),
    (
        re.compile(
            r"Calling the de-optimized version[\s\S]{0,400}?Donation requested for invalid buffer"
            r"|(?:Array|Buffer|buffer) has been deleted(?: or donated)?|(?:Array|Bundle) (?:is )?deleted or donated"
            r"|Array has already been deleted|called on deleted or donated buffer|Donation requested for invalid buffer"
            r"|CopyToHostAsync\(\) called on invalid buffer"
        ),
        _deleted,
    ),
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The messages about donation in a text, each once.

    lines: of the text.  target: not looked at.
    """
    found = explained("donation", _KINDS, lines)
    if any(_AGAIN in line.text for line in lines):
        # what follows is the second run, in other words
        found = iter(list(found)[:1])
    yield from found
