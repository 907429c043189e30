"""Whether the real TPU compiler takes a function's candidates: compiled ahead of time, without any TPU.

In a child process, because the compiler can abort its own (libtpu 0.0.42.1 does on what it was never asked before).
What a kernel's body holds besides its windows is in no index map; the compiler is the one who knows what it takes.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from layoutproof.compiler import libtpu
from layoutproof.compiler.child import Answer, Child, ask
from layoutproof.compiler.serve import Tell, serve
from layoutproof.core.errors import LayoutError, Unsupported, shorten
from layoutproof.hardware.tpu_chips import CHIPS

LONGEST = 600
"""Seconds that one candidate may take; a compiler that hangs answers nothing."""

CHILD = Child(libtpu.WHAT, "layoutproof.tilings.traced_compile", libtpu.ENVIRONMENT, LONGEST)

_SCOPED = re.compile(r"Scoped allocation with size \S+ and limit \S+ exceeded scoped vmem limit")


def refused(
    place: str,
    args: Sequence[object],
    candidates: Sequence[Mapping[str, object]],
    target: str,
    enough: int | None = None,
) -> list[Answer[str]]:
    """For each candidate's keyword arguments "" where the compiler takes the function, else its own words.

    No value where it has none, because the compiler aborted or hung. place, args: as for `calls_of`.
    enough: how many that it takes are enough: those after them are not answered.
    Raises Undecided where the compiler is not installed, LayoutError where the function is not there.
    """
    missing = libtpu.missing() or ("" if target in CHIPS else f"it does not know {target}")
    if missing:
        raise Unsupported(f"{libtpu.WHAT} cannot be asked: {missing}")
    about = {"place": place, "args": args, "target": target}
    found: list[Answer[str]] = []
    taken, needed = 0, len(candidates) if enough is None else enough
    with contextlib.closing(ask(CHILD, ({**about, "kwargs": kwargs} for kwargs in candidates), str)) as answers:
        while taken < needed and (answer := next(answers, None)) is not None:
            if isinstance(answer.error, LayoutError):
                raise answer.error
            found.append(answer)
            taken += answer.value == ""
    return found


def _compiled(place: str, args: Sequence[Any], kwargs: Mapping[str, object], target: str, device: Any) -> str:
    """ "" where the compiler takes it, else why not."""
    from layoutproof.pallas.from_jax import user
    from layoutproof.pallas.from_jax.adapter import device_of, need_jax

    jax = need_jax()
    where, _, name = place.rpartition(":")
    given = [user.argument(arg) if isinstance(arg, str) else arg for arg in args]
    named = {name: passed(value) for name, value in kwargs.items()}
    arrays = [k for k, value in enumerate(given) if isinstance(value, jax.ShapeDtypeStruct)]
    here = jax.sharding.SingleDeviceSharding(device)
    with contextlib.redirect_stdout(sys.stderr), user._paths(where):
        function = user._function(user._module(where), where, name)

        def called(*values: Any) -> Any:
            filled = dict(zip(arrays, values, strict=True))
            return function(*(filled.get(k, value) for k, value in enumerate(given)), **named)

        shapes = [jax.ShapeDtypeStruct(given[k].shape, given[k].dtype, sharding=here) for k in arrays]
        try:
            with device_of(target):  # rules of lowering ask for the chip too
                lowered = jax.jit(called).lower(*shapes)
            lowered.compile()
        except Exception as error:
            text = str(error)
            scoped = _SCOPED.search(text)
            return scoped[0] if scoped else shorten(f"{type(error).__name__}: {text}", 300)
    return ""


def passed(value: object) -> object:
    """A keyword argument: an array's shape, or a Python literal; other texts stay texts."""
    from layoutproof.pallas.from_jax.user import argument

    if not isinstance(value, str):
        return value
    try:
        return argument(value)
    except LayoutError:
        return value


@cache
def _device(target: str) -> Any:
    return libtpu.device(CHIPS[target].topology)


def answered(request: Mapping[str, Any], tell: Tell) -> str:
    """The answering side: of one candidate."""
    target = request["target"]
    return _compiled(request["place"], request["args"], request["kwargs"], target, _device(target))


if __name__ == "__main__":
    serve(answered)
