"""Calls, branches and loops: run as they are written, once their conditions are known."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from layoutproof.ir.program import Equation, Program, programs_in, scan_parts
from layoutproof.values.devices import each
from layoutproof.values.kinds import Shaped
from layoutproof.values.known import DeviceParts, Known, combined, moved
from layoutproof.values.state import Rule, Walking

MOST_STEPS = 10_000
"""Of a loop whose end rests on data."""


def _call(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    params = equation.params
    jaxpr = params.get("jaxpr", params.get("call_jaxpr", params.get("fun_jaxpr", params.get("call"))))
    if jaxpr is None:
        raise on.refuse(f"a call of {params.get('name', 'a function')} without its body")
    return list(on.run(jaxpr, operands))


def decided(on: Walking, value: Shaped, what: str) -> int:
    """A single number that follows from the code, and not from how data compare; on all devices the same."""
    if not isinstance(value, Known) or (value.sampled and on.numbers.exact):
        raise on.refuse(f"{what} that data decide")
    return int(value.array)


def _alike(on: Walking, value: Shaped, what: str) -> Shaped | None:
    """A value of which devices decide alike as one of them has it; else None."""
    if not isinstance(value, DeviceParts):
        return value
    return value.parts[0] if len({decided(on, part, what) for part in value.parts}) == 1 else None


def _cond(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    held, *rest = operands
    which = _alike(on, held, "a branch")
    if which is None:
        return each(on, lambda given: _cond(on, equation, given), operands)
    branches = equation.params["branches"]
    chosen = min(max(decided(on, which, "a branch"), 0), len(branches) - 1)
    if on.watch is not None:
        chosen = on.watch.branch(equation, chosen, rest)
    return list(on.run(branches[chosen], rest))


def _platform(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """Which of several forms of a function is lowered: inside of a kernel that for Mosaic, outside of it never that.

    Source: jax/_src/lax/control_flow/conditionals.py (platform_index), jax 0.10.2; `jnp.diagonal` is written so.
    """
    within = on.programs is not None
    kinds = [None if k is None else tuple(k) for k in equation.params["platforms"]]
    for number, kind in enumerate(kinds):
        if kind is None or (within and kind == ("mosaic",)):
            return [Known(np.asarray(number, np.int32))]
        if kind != ("mosaic",):
            break
    raise on.refuse(f"a branch for {', '.join(str(kind) for kind in kinds)}, which are platforms")


def _while(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    p = equation.params
    first, second = int(p["cond_nconsts"]), int(p["body_nconsts"])
    of_condition, of_body = operands[:first], operands[first : first + second]
    carried = operands[first + second :]
    steps = 0
    if on.watch is not None:
        on.watch.loop(on, equation)
    while True:
        goes_on = _alike(on, on.run(p["cond_jaxpr"], [*of_condition, *carried])[0], "a loop's end")
        if goes_on is None:
            return each(on, lambda given: _while(on, equation, given), [*operands[: first + second], *carried])
        if not decided(on, goes_on, "a loop's end"):
            break
        steps += 1
        on.trips[equation] = max(on.trips.get(equation, 0), steps)
        if (steps > MOST_STEPS or on.is_long()) and isinstance(goes_on, Known) and goes_on.sampled:
            # a number that was drawn from all of its type: smaller ones are drawn next
            raise on.refuse(f"a loop of {steps:,} steps and more that data decide")
        on.seen += 1
        carried = _handed_on(on, equation, steps - 1, carried, on.run(p["body_jaxpr"], [*of_body, *carried]))
    return list(carried)


def _handed_on(on: Walking, equation: Equation, step: int, before: list[Shaped], after: list[Shaped]) -> list[Shaped]:
    """The carried values of a step of a loop."""
    return after if on.watch is None else list(on.watch.handed_on(on, equation, step, before, after))


def _scan(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    p = equation.params
    consts, carry = scan_parts(equation)
    fixed, carried, rows = operands[:consts], operands[consts : consts + carry], operands[consts + carry :]
    length = int(p["length"])
    stacked: list[list[Any]] = []
    if on.watch is not None:
        on.watch.loop(on, equation)
    order = range(length - 1, -1, -1) if p.get("reverse") else range(length)
    for step, k in enumerate(order):
        here = [moved(on.numbers, x, itemgetter(k)) for x in rows]
        if on.watch is not None:
            for row in here:
                on.watch.read(on, row)
        results = on.run(p["jaxpr"], [*fixed, *carried, *here])
        carried = _handed_on(on, equation, step, carried, results[:carry])
        stacked.append(results[carry:])
    if p.get("reverse"):
        stacked.reverse()
    outs: list[Shaped] = []
    for k, variable in enumerate(equation.outvars[carry:]):
        if not length:
            dtype = variable.aval.dtype
            empty = np.zeros(variable.aval.shape, dtype if dtype.kind in "iub" else np.float64)
            outs.append(Known(empty))
            continue
        outs.append(combined(on.numbers, [row[k] for row in stacked], np.stack))
    return [*carried, *outs]


CALLS = (
    "jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr",
    "remat", "remat2", "checkpoint", "custom_vmap_call", "custom_lin", "xla_call", "xla_metadata_call",
)  # fmt: skip
"""Primitives that run one program on all that they are given."""

_ONE_BY_ONE = frozenset({*CALLS, "shard_map", "partitioned"})


def called(equation: Equation) -> Program | None:
    """The program that an equation runs once on its operands, giving its results; None where it is no such thing."""
    if equation.primitive.name not in _ONE_BY_ONE:
        return None
    found = [each for each in equation.params.values() if isinstance(each, Program)]
    if len(found) != 1 or len([*programs_in(equation)]) != 1:
        return None
    fits = (len(found[0].invars), len(found[0].outvars)) == (len(equation.invars), len(equation.outvars))
    return found[0] if fits else None


PRIMITIVES: dict[str, Rule] = {
    **dict.fromkeys(CALLS, _call),
    "cond": _cond,
    "platform_index": _platform,
    "while": _while,
    "scan": _scan,
}  # fmt: skip
