"""One walk over a jaxpr: every equation is computed on a kind of number, in the order in which it is written.

Integers and truth values that follow from the code alone are known, and computed by NumPy at their own width; so are
floats of the code. Everything else is data, arrays of the kind of number. The walk takes what JAX's eager evaluation
would take, Pallas kernels included: their programs one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from layoutproof.core.errors import failure
from layoutproof.values import contractions, control, elementwise, kernels, movement, references
from layoutproof.values.known import Known, data_of, known_of
from layoutproof.values.refusals import OFFER, Collision, Ended, Levels, NotModelled, OutOfBounds

MOST_EQUATIONS = 20_000_000
"""Equations that one walk computes."""

Rule = Callable[["Walk", Any, list[Any]], list[Any]]

PRIMITIVES: Mapping[str, Rule] = {
    **elementwise.PRIMITIVES,
    **movement.PRIMITIVES,
    **contractions.PRIMITIVES,
    **references.PRIMITIVES,
    **control.PRIMITIVES,
    **kernels.PRIMITIVES,
}
"""Primitive -> (walk, equation, operands) -> results."""

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("sort", "top_k", "approx_top_k"), "an order of data"),
    **dict.fromkeys(("psum", "all_gather", "ppermute", "all_to_all", "shard_map", "psum_invariant"), "several devices"),
    **dict.fromkeys(
        ("random_bits", "threefry2x32", "prng_random_bits", "prng_seed"), "random numbers of a key that is data"
    ),
    "fft": "a Fourier transform",
    "triangular_solve": "a triangular system",
    "cholesky": "a factorisation of data",
    "device_id": "several devices",
    "get_barrier_semaphore": "several devices",
}
"""Primitives that are known and not modelled, and why."""


Step = tuple[Any, tuple[tuple[Any, Known | None], ...]]
"""An equation, and of each operand (its variable, None) or (the literal itself, its number)."""


class Prepared:
    """A reader of jaxprs that reads each once, for all walks over them.

    starts: of the index maps whose tables are known, the blocks of each program: kept by `kernels`.  tick: is told of
    each program that is walked, (the grid, its ids).
    """

    def __init__(self, reader: Any, tick: Callable[[Any, Any], None] = lambda grid, ids: None) -> None:
        self._reader, self.tick = reader, tick
        self._plans: dict[int, tuple[Any, tuple[Any, list[Any], tuple[Step, ...]]]] = {}
        self.starts: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def plan(self, jaxpr: Any) -> tuple[Any, list[Any], tuple[Step, ...]]:
        """(the jaxpr, its constants, the equations whose results somebody looks at, or that touch memory)."""
        if id(jaxpr) not in self._plans:
            inner, consts = self._reader.opened(jaxpr)
            steps = tuple(
                (e, tuple((a, known_of(a.val) if hasattr(a, "val") else None) for a in e.invars)) for e in _used(inner)
            )
            # with the jaxpr itself, so that its identity stays its own
            self._plans[id(jaxpr)] = jaxpr, (inner, [known_of(c) for c in consts], steps)
        return self._plans[id(jaxpr)][1]


def _used(jaxpr: Any) -> list[Any]:
    """The equations of a jaxpr whose results somebody looks at, or that touch memory."""
    wanted = {v for v in jaxpr.outvars if not hasattr(v, "val")}
    found = []
    for equation in reversed(jaxpr.eqns):
        touches = any(hasattr(v.aval, "inner_aval") for v in equation.invars if not hasattr(v, "val"))
        if touches or equation.effects or not wanted.isdisjoint(equation.outvars):
            found.append(equation)
            wanted.update(v for v in equation.invars if not hasattr(v, "val"))
    return found[::-1]


class Walk:
    """The state of one walk. numbers: the kind of number.  reader: as of `bodies.interpreter.Reader`.

    audit: what is told of exponentials and sums, as of `stability.Audit`; None where nobody asks.
    inside: whether so far every block had an element in its array, no masked access left its memory, and no place
    rested on how data compare. An access without a mask that leaves its memory ends the walk.  flying: the copies that
    are not waited for.  ordered: whether so far nothing was touched that a copy in flight moves, and each wait had the
    bytes of whole copies.  watch: is told of programs, loads and stores, and may turn them, as of `prefixes.Watch`.
    """

    def __init__(self, numbers: Any, reader: Any, audit: Any = None, watch: Any = None) -> None:
        self.numbers, self.watch = numbers, watch
        self.reader = reader if isinstance(reader, Prepared) else Prepared(reader)
        self.audit = audit
        self.programs: kernels.Programs | None = None
        self.equation: Any = None
        self.seen = 0
        self.inside = True
        self.flying: list[references.Copy] = []
        self.ordered = True
        self.around: list[Any] = []

    def place(self) -> str:
        """`file:line` of the equation that is computed, or of the one that it is in."""
        for equation in (self.equation, *reversed(self.around)):
            if equation is not None and (found := self.reader.place_of(equation)):
                return str(found)
        return ""

    def refuse(self, what: str) -> NotModelled:
        """What to raise."""
        return NotModelled(what, self.place())

    def data(self, value: Any) -> Any:
        """A value as data."""
        return data_of(self.numbers, value)

    def run(self, jaxpr: Any, arguments: Sequence[Any]) -> list[Any]:
        """The results of a jaxpr for some values."""
        inner, consts, steps = self.reader.plan(jaxpr)
        if len(arguments) == len(inner.invars):
            known, given = consts, list(arguments)
        else:
            # run_scoped: the outer references are the constants
            known, given = list(arguments[: len(inner.constvars)]), list(arguments[len(inner.constvars) :])
        values: dict[Any, Any] = dict(zip(inner.constvars, known, strict=True))
        values.update(zip(inner.invars, given, strict=True))
        around, self.equation = self.equation, self.equation
        self.around.append(around)
        for equation, atoms in steps:
            self.equation = equation
            operands = [values[variable] if literal is None else literal for variable, literal in atoms]
            for variable, result in zip(equation.outvars, self._results(equation, operands), strict=True):
                values[variable] = result
        if self.audit is not None:
            self.audit.body(self, inner)
        self.equation = around
        self.around.pop()
        return [known_of(a.val) if hasattr(a, "val") else values[a] for a in inner.outvars]

    def _results(self, equation: Any, operands: list[Any]) -> list[Any]:
        self.seen += 1
        if self.seen > MOST_EQUATIONS:
            raise self.refuse(f"more than {MOST_EQUATIONS:,} equations; {OFFER}")
        name = equation.primitive.name
        rule = PRIMITIVES.get(name)
        try:
            if rule is not None:
                return rule(self, equation, operands)
            if operands and all(isinstance(o, Known) for o in operands):
                return evaluated(equation, operands)
        except (NotModelled, OutOfBounds) as refusal:
            refusal.place = refusal.place or self.place()
            raise
        except (Levels, Collision, Ended, MemoryError, RecursionError):
            raise
        except Exception as error:
            # a form of an operation that nobody has read: it is unknown, with our own words for it
            raise self.refuse(f"{name}: {failure(error)}") from error
        raise self.refuse(REFUSED.get(name, f"the primitive {name}"))


def evaluated(equation: Any, operands: Sequence[Known]) -> list[Any]:
    """An equation of numbers that are known, computed by JAX itself."""
    import jax

    primitive, params = equation.primitive, equation.params
    given = [
        o.array if hasattr(o.array, "dtype") and not isinstance(o.array, np.ndarray)
        else jax.numpy.asarray(o.array, v.aval.dtype)
        for o, v in zip(operands, equation.invars, strict=True)
    ]  # fmt: skip
    with jax.default_device(jax.devices("cpu")[0]), jax.ensure_compile_time_eval():
        found = primitive.bind(*given, **params)
    sampled = any(o.sampled for o in operands)
    return [known_of(f, sampled) for f in (found if primitive.multiple_results else [found])]
