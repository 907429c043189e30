"""`lp.legal`: whether configurations of a function's block sizes are legal, each in milliseconds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from layoutproof.answers import problems
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.message import located
from layoutproof.hardware.mosaic_gpu import KERNEL_TARGETS, OTHER_NAMES
from layoutproof.hardware.tpu_chips import chip_of
from layoutproof.pallas.judge import kernel_target
from layoutproof.searching.alike import Kernels
from layoutproof.searching.configurations import Legal, numbered
from layoutproof.searching.problem import Problem, TracedFunction
from layoutproof.searching.ranges import domain
from layoutproof.searching.ready import values_of
from layoutproof.searching.traced_file import passed


def legal(
    function: Callable[..., object] | str,
    *args: object,
    target: str,
    parameters: Mapping[str, Sequence[int] | Mapping[str, int | str] | str | int],
    compiler: str | None = None,
    assume: str | Sequence[str] = (),
    where: str | Sequence[str] = (),
    **kwargs: object,
) -> Legal:
    """Say of configurations of a function's block sizes whether they are legal, in milliseconds each.

    The function is traced on shapes, with numbers that record its decisions; nothing is computed. Of a configuration
    that decides as one before did, no tracing is needed. `searching.configurations.QUESTIONS` and memory are asked;
    what a body does is not, `layoutproof.kernels` judges it.

    A kernel of Mosaic GPU is traced for each configuration, and `searching.configurations.BODIES` are asked of its
    body: a fraction of a second each, or more.

    Args:
        function: A function that makes Pallas calls, or `MODULE:FUNCTION`, `FILE.py:FUNCTION`.
        *args: Its arguments: arrays and `jax.ShapeDtypeStruct`s are traced, and texts such as `"bf16[4096,4096]"`; all
            else is passed as it is.
        target: The TPU generation, such as `"v5e"`, or `"mosaic_gpu"`, `"h100"`, `"h200"`, `"b200"`.
        parameters: The keyword arguments that a configuration says, each with the values of the space: a list, a range,
            or as a search file writes them, `{"from": 128, "to": 2048, "multiple_of": 128}` or `"128..2048"`.
        compiler: The version of its compiler, where rules differ between versions.
        assume: Conditions on scalar prefetch operands, e.g. `["0 <= prefetch0 < 8"]`; a parameter that they name stands
            for its number, `"0 <= prefetch2 < 2048 // tm"`.
        where: Conditions on sizes of the running program, likewise: `"grid1 <= 2048 // tm + 7"`.
        **kwargs: Its other arguments by name, as `args`.

    Returns:
        What is called with one configuration, `legal(block_m=128, block_n=256)`, and gives a `Legality`: `verdict`
        (proved: legal, refuted: refused, unknown), `reason`, `vmem_bytes`, `vmem_estimate`, `smem_bytes`, `steps`,
        `traffic`. Its `space()` goes through the legal configurations, the best by the model first.

    Raises:
        LayoutError: No such target, no parameters, values that are none, or a function that does not take them.
    """
    chip = target if target.lower() in (*KERNEL_TARGETS, *OTHER_NAMES) else chip_of(target).name
    rules = kernel_target(target, compiler)
    if not isinstance(parameters, Mapping) or not parameters:
        raise LayoutError(problems.NO_PARAMETERS())
    taken = [name for name in parameters if name in kwargs]
    if taken:
        raise LayoutError(problems.PARAMETER_TWICE(", ".join(taken)))
    values = {name: _values(name, entry) for name, entry in parameters.items()}
    assumed, held = ((each,) if isinstance(each, str) else tuple(each) for each in (assume, where))
    given, named = [passed(value) for value in args], {name: passed(value) for name, value in kwargs.items()}
    if callable(function):
        _check_takes(function, given, {**named, **{name: each[0] for name, each in values.items()}})
    elif not isinstance(function, str):
        raise LayoutError(problems.FUNCTION_TYPE(shorten(repr(function), 60)))

    def trace(configuration: Mapping[str, object]) -> Kernels:
        from layoutproof.pallas.from_jax.user import calls_in, calls_of

        asked: Any = calls_in if callable(function) else calls_of
        said = [numbered(text, configuration) for text in assumed]
        found: Kernels = asked(function, given, {**named, **configuration}, target=chip, assume=said)
        return found

    name = getattr(function, "__name__", "the function") if callable(function) else function
    problem = Problem(
        name=name, variables=values, target=chip, kernels=TracedFunction(trace), compiler=compiler, headroom=None
    )
    return Legal(parameters=values, problem=problem, target=rules, where=held)


def _values(name: str, entry: object) -> tuple[int, ...]:
    """The values of one parameter, rising."""
    try:
        if isinstance(entry, str):
            entry = values_of(entry)
        if isinstance(entry, Sequence | range) and not all(type(value) is int for value in entry):
            raise LayoutError(problems.NOT_WHOLE_NUMBERS(shorten(repr(entry), 60)))
        if not isinstance(entry, Sequence | Mapping) and type(entry) is not int:
            raise LayoutError(problems.VALUES_FORM(shorten(repr(entry), 60)))
        return domain(entry, ())
    except LayoutError as error:
        raise LayoutError(located(f"parameter {name}", error.problem)) from None


def _check_takes(function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """LayoutError where the function has no such arguments, whatever their values."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some callables have none; calling it will tell
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        name = getattr(function, "__name__", "the function")
        given = f"{len(args)} arguments and {', '.join(kwargs)}"
        raise LayoutError(problems.CALL_DOES_NOT_FIT(name, shorten(str(signature), 160), given, error)) from None
