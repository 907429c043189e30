"""What JAX says where Python needs a value and has a tracer: branches, numbers, NumPy arrays, values that escape.

Source: jax/_src/errors.py and jax/_src/core.py of jax 0.10.2; `tests/messages/test_jax_says.py` asks the installed JAX
for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from layoutproof.messages.explanation import Explanation
from layoutproof.messages.kinds import Kind, Told, explained
from layoutproof.messages.pasted import PastedLine

_ARGUMENT = re.compile(r"depends on the values? of the arguments? '?([\w.\[\]]{0,79}[\w\]])")
_BY = re.compile(r"`(\w{1,40})` argument to `(\w{1,40})`|(?:error arose in|size argument of) ([\w.]{0,59}\w)")
_FUNCTION = re.compile(r"while tracing the function (\S{1,80}) at (\S{1,300}:\d{1,9}) for (\w{1,40})")
_CREATED = re.compile(r"The tracer had been created on line (\S{1,200}:\d{1,9}) \((\S{1,80})\)")


def _value(block: str) -> str:
    """What the value depends on, in words."""
    argument, function = _ARGUMENT.search(block), _FUNCTION.search(block)
    own = function is not None and "site-packages" not in function[2]
    where = f" of {function[1]}" + (f" ({function[2]})" if own else "") if function else ""
    return f"argument {argument[1]}{where}" if argument else f"an argument{where}"


def _static(block: str) -> tuple[str, ...]:
    argument = _ARGUMENT.search(block)
    name = argument[1] if argument else "x"
    return (f"static_argnames={name!r}, if it is a setting: each value of it is compiled anew",)


def _branch(match: re.Match[str], block: str) -> Told:
    return Told(
        f"Python's if, while, and, or or assert needs a value, and it rests on {_value(block)}, which is known when "
        "the compiled program runs",
        (
            "jnp.where(c, a, b) for elements; jax.lax.cond(c, f, g, x) for a choice of computations; "
            "jax.lax.while_loop for a loop",
            "jnp.minimum, jnp.maximum and jnp.logical_and in place of min, max and `and`",
            *_static(block),
        ),
    )


def _number(match: re.Match[str], block: str) -> Told:
    return Told(
        f"Python needs an integer (a range, a shape, an index of a list), and it rests on {_value(block)}, which is "
        "known when the compiled program runs",
        (
            *_static(block),
            "jax.lax.fori_loop for a loop of that many turns; x[i] of an array takes a traced i",
        ),
    )


def _numpy(match: re.Match[str], block: str) -> Told:
    return Told(
        f"NumPy needs the elements of an array, and they rest on {_value(block)}, which is known when the compiled "
        "program runs",
        (
            "the function of jax.numpy in place of NumPy's: jnp.sin for np.sin",
            "jnp.asarray(table)[i] for a NumPy table that a traced i picks from",
        ),
    )


def _concrete(match: re.Match[str], block: str) -> Told:
    where = _BY.search(block)
    said = "" if where is None else f", by {where[3] or f'{where[2]} for its {where[1]}'}"
    return Told(
        f"a number is needed while the function is traced{said}, and it rests on {_value(block)}, which is known when "
        "the compiled program runs",
        (
            *_static(block),
            "or write it for values: jnp.where, jax.lax.cond, jax.lax.while_loop",
            *["size=n of jnp.nonzero and jnp.unique, whose results have a length that data decide"]
            * ("nonzero" in block),
        ),
    )


def _escaped(match: re.Match[str], block: str) -> Told:
    created = _CREATED.search(block)
    where = f", made at {created[1]} in {created[2]}" if created else ""
    return Told(
        f"a value of a traced function ({match[1]}{where}) was kept outside of it, in a global, an attribute or a "
        "list, and is used after tracing has ended",
        (
            "return it from the function, and pass it on as an argument",
            "with jax.checking_leaks(): raises where the value escapes",
        ),
    )


_KINDS: tuple[Kind, ...] = (
    (re.compile(r"Attempted boolean conversion of |TracerBoolConversionError: "), _branch),
    (re.compile(r"The __index__\(\) method was called on "), _number),
    (re.compile(r"The numpy\.ndarray conversion method __array__\(\) was called on "), _numpy),
    (re.compile(r"Abstract tracer value encountered where concrete value is expected"), _concrete),
    (re.compile(r"ConcretizationTypeError: |TracerIntegerConversionError: "), _concrete),
    (
        re.compile(
            r"Encountered an unexpected tracer\. A function transformed by JAX had a side effect, allowing for a "
            r"reference to an intermediate value with type (\S{1,200})"
        ),
        _escaped,
    ),
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The errors of values that tracing does not have, each once.

    lines: of the text.  target: not looked at.
    """
    yield from explained("tracing", _KINDS, lines)
