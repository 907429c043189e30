"""One kernel in its forms: as it is traced, as its own dump has it, and each of them once more under a random `vmap`.

They are one kernel, so that no question is proved of one and refuted of another. That needs no oracle.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import jax

from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.kernel.table_assumptions import with_assumptions
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.from_mosaic.mosaic_module import calls_in, kernels_of_calls
from layoutproof.pallas.judge import judge
from tests.pallas.mosaic_texts import lowered

BODIES = ("body_in_bounds", "body_races", "dma_order", "initialised", "outputs_stored", "undefined_values")
GRIDS = ("alias_hazard", "blocks_in_bounds", "outputs_covered", "parallel_writes", "revisits")
"""What batching leaves as it is. What it costs of memory, and which blocks a target takes, it may change."""

SIZES = (1, 2, 3)
"""Of a batch; one of 1 JAX takes away again."""


@dataclass(frozen=True)
class Call:
    """A function with one Pallas call. assume: of its tables.  how: what was done to it, in words."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    assume: tuple[str, ...] = ()
    how: str = ""


def batched(call: Call, rng: random.Random, tables: int = 0) -> Call:
    """The call under one or two `vmap`s, of some arguments along some axes. tables: how many arguments come first.

    A batch of tables becomes a loop around the call.
    """
    function, arguments, words = call.function, list(map(_shape, call.arguments)), []
    for _ in range(rng.choice((1, 1, 2))):
        size = rng.choice(SIZES)
        axes: list[int | None] = []
        for k, one in enumerate(arguments):
            rest = 0.15 if k < tables else 0.75
            axes.append(rng.randint(0, len(one.shape)) if rng.random() < rest else None)
        if all(axis is None for axis in axes):
            axes[-1] = 0
        function = jax.vmap(function, in_axes=tuple(axes))
        arguments = [
            one if axis is None else jax.ShapeDtypeStruct((*one.shape[:axis], size, *one.shape[axis:]), one.dtype)
            for one, axis in zip(arguments, axes, strict=True)
        ]
        words.append(f"vmap of {size} along {axes}")
    return Call(function, tuple(arguments), call.assume, ", ".join(words))


def _shape(value: Any) -> Any:
    return jax.ShapeDtypeStruct(value.shape, value.dtype)


def traced(call: Call) -> Kernel | Unmodelled | str:
    """The kernel as it is traced; why there is none."""
    try:
        found = kernels_of(call.function, call.arguments, assume=call.assume)
    except LayoutError as error:
        return str(error)
    (kernel,) = [k for k in found if isinstance(k, Unmodelled) or k.pipeline == "pallas_call"]
    return kernel


def dumped(calls: Sequence[Call], target: str = "v5e") -> list[Kernel | Unmodelled | str]:
    """The kernels as their lowered texts have them, read by one child process; why there is none."""
    found: list[Any] = []
    every: list[Any] = []
    for k, call in enumerate(calls):
        try:
            one = list(calls_in(lowered((call.function, call.arguments), target), f"{k}.mlir"))
        except Exception as error:
            found.append(f"{type(error).__name__}: {' '.join(str(error).split())[:120]}")
            continue
        found.append(len(every) if len(one) == 1 else f"{len(one)} calls")
        every += one
    kernels = kernels_of_calls(every)
    made: list[Kernel | Unmodelled | str] = []
    for number, call in zip(found, calls, strict=True):
        kernel = number if isinstance(number, str) else kernels[number]
        made.append(with_assumptions(kernel, call.assume, strict=False) if isinstance(kernel, Kernel) else kernel)
    return made


def verdicts(kernel: Kernel | Unmodelled | str) -> dict[str, Verdict]:
    """The worst error of each question that is asked; none of what is no kernel."""
    if not isinstance(kernel, Kernel):
        return {}
    found: dict[str, Verdict] = {}
    for name in (*BODIES, *GRIDS):
        errors = [f.verdict for f in judge(kernel, names=[name]) if f.severity == "error"]
        if errors:
            found[name] = min(errors)
    return found


@dataclass(frozen=True)
class Forms:
    """What is said of one kernel in its forms. how: it was batched.  verdicts: by form."""

    name: str
    how: str
    verdicts: Mapping[str, Mapping[str, Verdict]]

    def compared(self) -> Iterator[tuple[str, str, Verdict, Verdict]]:
        """(form, question, of the traced kernel, of the form) of each question that is asked of both."""
        traced = self.verdicts["traced"]
        for form, found in self.verdicts.items():
            if form != "traced":
                yield from ((form, name, traced[name], found[name]) for name in traced if name in found)

    def contradictions(self) -> list[str]:
        """What is proved of one form and refuted of another, in words.

        Programs of a batch run at the same time: what one finds in scratch that nobody has written (`initialised`) is
        then a race as well.
        """
        both = {Verdict.PROVED, Verdict.REFUTED}
        unwritten = self.verdicts["traced"].get("initialised") is Verdict.REFUTED
        return [
            f"{self.name} {form} ({self.how}): {question} is {two.value}, and {one.value} of the traced kernel"
            for form, question, one, two in self.compared()
            if {one, two} == both
            and not (unwritten and question == "body_races" and form.startswith("batched") and two is Verdict.REFUTED)
        ]

    def open(self) -> list[tuple[str, str]]:
        """(form, question) of what is unknown of that form, or of the traced kernel, alone."""
        return [(f, q) for f, q, one, two in self.compared() if (one is Verdict.UNKNOWN) != (two is Verdict.UNKNOWN)]


def every_form(calls: Mapping[str, Call], tables: Mapping[str, int] = MappingProxyType({})) -> Iterator[Forms]:
    """Each call in its forms, batched by chance, always the same for a name. tables: how many arguments are."""
    batches = {n: batched(call, random.Random(n), tables.get(n, 0)) for n, call in calls.items()}
    compiled = iter(dumped([*calls.values(), *batches.values()]))
    of_calls = dict(zip(calls, compiled, strict=False))
    of_batches = dict(zip(batches, compiled, strict=False))
    for name, call in calls.items():
        kernels = {
            "traced": traced(call),
            "batched": traced(batches[name]),
            "dumped": of_calls[name],
            "batched and dumped": of_batches[name],
        }
        yield Forms(name, batches[name].how, {form: verdicts(kernel) for form, kernel in kernels.items()})
