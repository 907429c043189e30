"""The amounts of Pallas calls as terms, where a function is traced with recorded numbers (`core.recorded`).

JAX gets plain ints: of a grid, of the sizes of blocks and of the shapes of scratch memory the terms are kept here, and
everything else that JAX is given counts as read, with its value. That JAX treats all extents of these three alike is
assumed; who shows an answer traces it once more with plain ints.
What a body does with a number is not recorded where it goes into an operation of JAX: no grid, block or index map
follows from it. What Python decides in a body is, unless bodies are left out.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from layoutproof.core.numbers import INTS
from layoutproof.core.recorded import Recorded, Trail, plain, term_of
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.pallas.from_jax.adapter import is_kernel_of_jax, need_jax, replaced, skipped_frame


@dataclass(frozen=True, slots=True)
class Amounts:
    """Of one call, each a term or an int. grid: its extents.  scratch: of each shape.

    inputs, outputs: the sizes of each operand's block, None = the whole array; () = of no operand anything is said.
    """

    grid: tuple[Any, ...]
    inputs: tuple[tuple[Any, ...] | None, ...]
    outputs: tuple[tuple[Any, ...] | None, ...]
    scratch: tuple[tuple[Any, ...] | None, ...]


def trail() -> Trail:
    """An empty one, for a function that is traced: JAX's caches, and ours, may hash numbers."""
    need_jax()
    return Trail(lambda file: skipped_frame(file) and not is_kernel_of_jax(file))


@contextlib.contextmanager
def recorded_calls(trail: Trail, bodies: bool) -> Iterator[list[Amounts]]:
    """Within it the list gets the amounts of each Pallas call that this thread traces.

    bodies: whether bodies are traced with recorded numbers too; otherwise they are left out.
    """
    calls: list[Amounts] = []
    shapes: dict[int, tuple[Any, tuple[Any, ...]]] = {}

    def seen(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(kernel: Any, out_shape: Any, *, grid_spec: Any, **more: Any) -> Any:
            spec, amounts = _plain_grid(grid_spec, shapes)
            calls.append(amounts)
            # what it costs is said to the compiler, and chooses nothing
            more = {name: plain_parts(value, name == "cost_estimate") for name, value in more.items()}
            body = _watched(kernel, trail) if bodies else _nothing
            return original(body, plain_parts(out_shape), grid_spec=spec, **more)

        return call

    def shaped(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(space: Any, shape: Any, *more: Any, **named: Any) -> Any:
            if not isinstance(shape, tuple | list):
                return original(space, shape, *more, **named)
            made = original(space, tuple(map(plain, shape)), *more, **named)
            shapes[id(made)] = made, tuple(map(term_of, shape))
            return made

        return call

    def constant(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda extent: type(extent) is Recorded or original(extent)

    module = importlib.import_module("jax._src.pallas.pallas_call")
    core = importlib.import_module("jax._src.pallas.core")
    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(module, "_pallas_call", seen))
        stack.enter_context(replaced(core.jax_core, "is_constant_dim", constant))
        for part in (core, importlib.import_module("jax._src.pallas.mosaic.core")):
            space = getattr(part, "MemorySpace", None)
            if space is not None and "__call__" in vars(space):
                stack.enter_context(replaced(space, "__call__", shaped))
        yield calls


def general(kernel: Kernel, amounts: Amounts) -> Kernel | None:
    """The kernel with terms for amounts and without its body; None where they do not fit.

    kernel: as it was found with plain ints.
    """
    if kernel.pipeline != "pallas_call" or kernel.scoped or kernel.runtime:
        return None
    pairs = [(kernel.inputs, amounts.inputs), (kernel.outputs, amounts.outputs)]
    fits = all(len(said) in (0, len(operands)) for operands, said in pairs)
    if not fits or (len(amounts.grid), len(amounts.scratch)) != (len(kernel.grid), len(kernel.scratch)):
        return None
    sized = [_with_block(o, s) for operands, said in pairs for o, s in zip(operands, said or [None] * len(operands))]
    return replace(
        kernel,
        body_reader=None,
        grid=tuple(map(amount, amounts.grid)),
        operands=tuple(sized),
        scratch=tuple(
            s if dims is None else replace(s, dims=tuple(map(amount, dims)))
            for s, dims in zip(kernel.scratch, amounts.scratch, strict=True)
        ),
    )


def amount(value: Any) -> Any:
    """An amount of a kernel: a term, or the int where no name is in it.

    >>> amount(Term("int", 2)), amount(Term("name", "b"))
    (2, Term(b))
    """
    return value.evaluate({}, INTS) if isinstance(value, Term) and not value.names() else value


def _with_block(operand: Operand, block: Sequence[Any] | None) -> Operand:
    if block is None:
        return operand
    sized = [b if n is None else replace(b, size=amount(n)) for b, n in zip(operand.block, block, strict=True)]
    return replace(operand, block=tuple(sized))


def _plain_grid(grid_spec: Any, shapes: dict[int, tuple[Any, tuple[Any, ...]]]) -> tuple[Any, Amounts]:
    """The same for JAX, with plain ints, and its amounts."""
    from jax.tree_util import tree_flatten

    spec = copy.copy(grid_spec)
    spec.grid = tuple(map(plain, grid_spec.grid))
    sides = {}
    for side in ("in_specs", "out_specs"):
        leaves, tree = tree_flatten(getattr(grid_spec, side), is_leaf=_is_spec)
        said = all(map(_is_spec, leaves))
        sides[side] = tuple(map(_sizes, leaves)) if said else ()
        if said:
            setattr(spec, side, tree.unflatten(map(_plain_spec, leaves)))
    leaves, _ = tree_flatten(grid_spec.scratch_shapes)
    scratch = tuple(shapes[id(leaf)][1] if id(leaf) in shapes else None for leaf in leaves)
    return spec, Amounts(tuple(map(term_of, grid_spec.grid)), sides["in_specs"], sides["out_specs"], scratch)


def _is_spec(value: Any) -> bool:
    return hasattr(value, "block_shape") and hasattr(value, "index_map")


def _sizes(spec: Any) -> tuple[Any, ...] | None:
    """The sizes that are numbers; a dimension of another kind is as JAX has it."""
    if spec.block_shape is None:
        return None
    return tuple(term_of(n) if type(n) in (Recorded, int) else None for n in spec.block_shape)


def _plain_spec(spec: Any) -> Any:
    shape = spec.block_shape
    sizes = None if shape is None else tuple(plain(n) if type(n) is Recorded else plain_parts(n) for n in shape)
    return replace(spec, block_shape=sizes, pipeline_mode=plain_parts(spec.pipeline_mode))


def plain_parts(value: Any, quietly: bool = False) -> Any:
    """The same with plain ints in it, which count as read unless `quietly`."""
    if type(value) is Recorded:
        return value.value if quietly else int(value)
    if isinstance(value, dict):
        return {plain_parts(k, quietly): plain_parts(v, quietly) for k, v in value.items()}
    if type(value) in (tuple, list):
        return type(value)(plain_parts(entry, quietly) for entry in value)
    if is_dataclass(value) and not isinstance(value, type):
        held = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        changed = {name: plain_parts(one, quietly) for name, one in held.items() if _holds(one)}
        return replace(value, **changed) if changed else value
    return value


def _holds(value: Any) -> bool:
    """Whether a recorded number is in it."""
    if type(value) is Recorded:
        return True
    if isinstance(value, dict):
        return any(_holds(v) for pair in value.items() for v in pair)
    if isinstance(value, tuple | list):
        return any(map(_holds, value))
    if not is_dataclass(value) or isinstance(value, type):
        return False
    return any(_holds(getattr(value, field.name)) for field in fields(value))


def _nothing(*references: Any) -> None:
    """A body that does nothing."""


def _watched(kernel: Any, trail: Trail) -> Any:
    """The same body, in which numbers that go into operations of JAX are not recorded."""
    if isinstance(kernel, functools.partial):
        return functools.partial(_watched(kernel.func, trail), *kernel.args, **kernel.keywords)

    @functools.wraps(kernel)
    def body(*args: Any, **named: Any) -> Any:
        before, trail.inside = trail.inside, True
        try:
            return kernel(*args, **named)
        except Exception:
            trail.stopped_inside = True
            raise
        finally:
            trail.inside = before

    return body
