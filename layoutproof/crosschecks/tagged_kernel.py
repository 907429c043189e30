"""A kernel run by JAX with a body of ours: every program fills its blocks with its own number, and keeps what it sees.

So the blocks are JAX's, whatever the kernel computes: an element of an output says which program wrote it last.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import Undecided
from layoutproof.core.index_map import row_major
from layoutproof.core.result import Verdict
from layoutproof.core.term import reads
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.compiling import block_dimension
from layoutproof.crosschecks.places import same_array
from layoutproof.crosschecks.source import Agree, Disagree, Outcome, Skipped, both
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.kernel_elements import outside, window
from layoutproof.solvers.arrays import ArrayNumbers

if TYPE_CHECKING:
    import numpy as np
    from jax import Array
    from jax.experimental.pallas import BlockSpec
    from jax.ref import Ref
    from numpy.typing import NDArray

MOST_PROGRAMS = 1024
"""Programs of a kernel that is run."""
MOST_ELEMENTS = 1 << 22
"""Elements of one of its arrays."""


def interpreted(case: Case, platform: str) -> Outcome:
    """`pallas_call(interpret=True)`: of each output which program wrote what, of each input what each program sees."""
    import jax
    import numpy as np

    kernel = _kernel(case)
    found: Outcome = Skipped("no operand with blocks")
    with jax.default_device(jax.devices(platform)[0]):
        for operand in kernel.outputs:
            if operand.windowed:
                held = written(kernel, operand, interpret=True)
                found = both(found, _writers(kernel, operand, held, int(np.iinfo(np.int32).min)))
        for operand in kernel.inputs:
            if operand.windowed and not isinstance(found, Disagree):
                found = both(found, _readers(kernel, operand))
    return found


def on_tpu_interpreter(case: Case, platform: str) -> Outcome:
    """`pltpu.InterpretParams` on memory that starts as NaN: who wrote what, blocks visited again, races of cores."""
    import numpy as np
    from jax.experimental.pallas import tpu

    from layoutproof.questions.ask import ask

    kernel = _kernel(case)
    known = getattr(tpu.InterpretParams, "__dataclass_fields__", {})
    cores = 2 if any("parallel" in word for word in kernel.semantics) else 1
    wanted = {"uninitialized_memory": "nan", "detect_races": True, "on_race": "warn", "num_cores_or_threads": cores}
    how = tpu.InterpretParams(**{name: value for name, value in wanted.items() if name in known})
    proved = {name: ask(name, case.parsed).verdict is Verdict.PROVED for name in ("revisits", "parallel_writes")}
    # one program after the other: nothing can race, whatever is said of it
    proved["parallel_writes"] |= cores == 1
    found: Outcome = Skipped("")
    for operand in kernel.outputs:
        if not operand.windowed:
            continue
        said, error, held = _told(lambda operand=operand: written(kernel, operand, how))
        if error:
            if "revisited block" not in error.lower():
                return Skipped(f"the interpreter raised {error.strip().splitlines()[-1][:100]}")
            # programs that may run at once come in an order of its own
            if all(proved.values()):
                return Disagree("revisits", "proved", "a block revisited")
            return both(found, Agree(1))
        if "RACE DETECTED" in said and proved["parallel_writes"]:
            return Disagree("parallel_writes", "proved", "a race")
        if proved["parallel_writes"]:
            found = both(found, _writers(kernel, operand, held, int(np.iinfo(np.int32).max)))
        elif "RACE DETECTED" in said:
            found = both(found, Agree(1))
        else:
            found = both(found, Skipped("programs that may run at once write one element, and no race was seen"))
    return found


def _told(work: Any) -> tuple[str, str, Any]:
    """(the output and the log, the exception in words, the result)."""
    from jax.experimental.pallas import tpu

    said = io.StringIO()
    handler = logging.StreamHandler(said)
    logging.getLogger().addHandler(handler)
    try:
        with contextlib.redirect_stdout(said):
            held = work()
        return said.getvalue(), "", held
    except Exception as error:
        with contextlib.suppress(Exception):
            tpu.reset_tpu_interpret_mode_state()
        return said.getvalue(), f"{type(error).__name__}: {error}", None
    finally:
        logging.getLogger().removeHandler(handler)


def _kernel(case: Case) -> Kernel:
    """The kernel of a case. Raises Undecided for one that cannot be run so."""
    if case.kind != "kernel":
        raise Undecided("no kernel")
    kernel: Kernel = case.parsed.kernel
    numbers = [*kernel.grid, *(n for o in kernel.operands for n in o.dims)]
    if any(type(n) is not int for n in numbers):
        raise Undecided("sizes without a value")
    if prod(map(int, kernel.grid)) > MOST_PROGRAMS:
        raise Undecided(f"more than {MOST_PROGRAMS:,} programs")
    for operand in kernel.operands:
        if operand.unmodelled or operand.sizes or list(reads(operand.index)):
            raise Undecided("tables, bounded slices and code that is not modelled choose the blocks")
        if prod(map(int, operand.dims)) > MOST_ELEMENTS:
            raise Undecided(f"an array of more than {MOST_ELEMENTS:,} elements")
        if operand.windowed and any(outside(kernel, operand, at) for at in _programs(kernel)):
            raise Undecided("a block lies outside of its array, where the interpreter moves it inside")
    return kernel


def _programs(kernel: Kernel) -> list[tuple[int, ...]]:
    import itertools

    return list(itertools.product(*(range(int(n)) for n in kernel.grid)))


def _writers(kernel: Kernel, operand: Operand, held: NDArray[np.int32], never: int) -> Outcome:
    """The number of the last program in each element, or `never` where it is not written."""
    import numpy as np

    from layoutproof.layouts.kernel.layout import KernelLayout
    from layoutproof.questions.programs import programs_of

    last = programs_of(KernelLayout(kernel), operand.name).last
    return same_array("program that wrote it last", np.where(last < 0, never, last), held)


def _readers(kernel: Kernel, operand: Operand) -> Outcome:
    """The window of each program on an array that holds its own positions, where its block is inside of the array."""
    import numpy as np

    dims = tuple(map(int, operand.dims))
    positions = np.arange(prod(dims), dtype=np.int32).reshape(dims)
    saw, compared = seen(kernel, operand), 0
    for program in _programs(kernel):
        own = window(kernel, operand, program)
        inside = [(max(0, a), min(b, n)) for (a, b), n in zip(own, dims, strict=True)]
        mine = positions[tuple(slice(a, b) for a, b in inside)]
        cut = [slice(a - low, b - low) for (a, b), (low, _) in zip(inside, own, strict=True)]
        kept = [c for c, block in zip(cut, operand.block, strict=True) if block.kind != "squeezed"]
        theirs = saw[program][tuple(kept)]
        same = same_array("element that a program sees", mine.reshape(theirs.shape), theirs)
        if isinstance(same, Disagree):
            return Disagree(same.what, same.ours, same.theirs, (*program, *same.index))
        compared += mine.size
    return Agree(compared)


def written(kernel: Kernel, operand: Operand, interpret: object) -> NDArray[np.int32]:
    """One output after every program has filled its block with its row-major number."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu

    grid = tuple(map(int, kernel.grid))

    def body(ref: Ref) -> None:
        number = row_major(tuple(pl.program_id(k) for k in range(len(grid))), grid)
        ref[...] = jnp.full(ref.shape, number, dtype=jnp.int32)

    shape = jax.ShapeDtypeStruct(tuple(map(int, operand.dims)), jnp.int32)
    words = tuple("parallel" if "parallel" in word else "arbitrary" for word in kernel.semantics) or None
    params = tpu.CompilerParams(dimension_semantics=words)
    call = pl.pallas_call(
        body, grid=grid, out_specs=_spec(kernel, operand), out_shape=shape, interpret=interpret, compiler_params=params
    )
    return np.asarray(call())


def seen(kernel: Kernel, operand: Operand) -> NDArray[np.int32]:
    """The reads of every program from an int32 array that holds its own positions: programs first, then the block."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import pallas as pl

    grid = tuple(map(int, kernel.grid))
    dims = tuple(map(int, operand.dims))
    block = tuple(int(b.size) for b in operand.block if b.kind != "squeezed")

    def body(x: Ref, o: Ref) -> None:
        o[...] = x[...]

    call = pl.pallas_call(
        body,
        grid=grid,
        in_specs=[_spec(kernel, operand)],
        out_specs=pl.BlockSpec((*(None,) * len(grid), *block), lambda *at: (*at, *(0,) * len(block))),
        out_shape=jax.ShapeDtypeStruct((*grid, *block), jnp.int32),
        interpret=True,
    )
    return np.asarray(call(jnp.arange(prod(dims), dtype=jnp.int32).reshape(dims)))


def _spec(kernel: Kernel, operand: Operand) -> BlockSpec:
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    def index(*at: Array) -> tuple[Array, ...]:
        names: Mapping[str, Any] = dict(zip(kernel.grid_names, at, strict=True))
        return tuple(jnp.asarray(term.evaluate(names, ArrayNumbers(jnp)), jnp.int32) for term in operand.index)

    return pl.BlockSpec(tuple(map(block_dimension, operand.block)), index)
