"""`python benchmarks/bodies.py [--random N] [--seed S]`: random kernel bodies, judged and run.

Each kernel is built of slices, masks, reductions, accumulators and loops that are right or wrong by chance. It runs in
`pltpu.InterpretParams` with memory that starts as NaN, and with memory that starts as 0. A verdict is wrong where
  proved in bounds, and the interpreter meets an access that is not; or refuted, and it meets none;
  proved that nothing undefined reaches an output and nothing is read before it is written, and an output has NaN, or
  differs between the two memories;
  refuted that nothing undefined reaches an output, and no output shows it.
What is read before it is written need not reach an output. Prints counts and the seed of each disagreement; exits 1
where there is one.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")


@dataclass(frozen=True)
class Sample:
    """A kernel, its arguments, and how it is written."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    text: str


def sample(rng: random.Random) -> Sample:
    """A random kernel: a grid over rows, perhaps over columns, one input, one output, perhaps an accumulator."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    columns, block = rng.choice([(128, 128), (200, 128), (256, 128), (200, 256), (130, 128), (384, 128)])
    rows = rng.choice([8, 16, 12, 20])
    steps, across = -(-rows // 8), -(-columns // block)
    mask = rng.choice(["none", "right", "right", "local", "one more", "last step"])
    what = rng.choice(["sum", "max", "copy", "cumsum", "reverse", "roll", "rows", "dot"])
    init = rng.choice(["first", "first", "first", "second", "never"])
    access = rng.choice(["whole", "whole", "loop", "loop + 1", "offset", "program"])
    filler = 0.0 if what != "max" else -1e30

    def body(x: Any, o: Any, acc: Any) -> None:
        k = pl.program_id(1)
        index = lax.broadcasted_iota(jnp.int32, (8, block), 1)
        place = index if mask == "local" else index + k * block

        def load() -> Any:
            if access == "whole":
                return x[...]
            if access == "offset":
                return jnp.concatenate([x[pl.ds(4, 4), :], x[pl.ds(0, 4), :]])
            if access == "program":
                return jnp.broadcast_to(x[pl.ds(pl.program_id(0) * 2, 2), :][:1], (8, block))
            more = 1 if access == "loop + 1" else 0

            def step(r: Any, total: Any) -> Any:
                return total + x[pl.ds(r + more, 1), :]

            return jnp.broadcast_to(lax.fori_loop(0, 8, step, jnp.zeros((1, block), jnp.float32)), (8, block))

        value = load()
        if mask == "one more":
            value = jnp.where(place <= columns, value, filler)
        elif mask == "last step":
            value = jnp.where((place < columns) | (k < across - 2), value, filler)
        elif mask != "none":
            value = jnp.where(place < columns, value, filler)
        if what == "sum":
            value = jnp.broadcast_to(value.sum(1, keepdims=True), (8, block))
        elif what == "max":
            value = jnp.broadcast_to(value.max(1, keepdims=True), (8, block))
        elif what == "rows":
            value = jnp.broadcast_to(value.sum(0, keepdims=True), (8, block))
        elif what == "cumsum":
            value = lax.cumsum(value, axis=1)
        elif what == "reverse":
            value = lax.rev(value, (1,))
        elif what == "roll":
            value = pltpu.roll(value, 3, 1)
        elif what == "dot":
            value = jnp.broadcast_to(jnp.dot(value, value.T).sum(1, keepdims=True), (8, block))
        if init != "never":

            @pl.when(k == (0 if init == "first" else 1))
            def _() -> None:
                acc[...] = jnp.zeros_like(acc)

        acc[...] += value

        @pl.when(k == pl.num_programs(1) - 1)
        def _() -> None:
            o[...] = acc[...]

    def function(x: Any, interpret: Any = False) -> Any:
        return pl.pallas_call(
            body,
            grid=(steps, across),
            in_specs=[pl.BlockSpec((8, block), lambda i, k: (i, k))],
            out_specs=pl.BlockSpec((8, block), lambda i, k: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((rows, block), jnp.float32),
            scratch_shapes=[pltpu.VMEM((8, block), jnp.float32)],
            interpret=interpret,
        )(x)

    text = f"{rows}x{columns} block {block} mask={mask} what={what} init={init} access={access}"
    return Sample(function, (np.ones((rows, columns), np.float32),), text)


def judged(kernel: Sample) -> dict[str, str]:
    """The verdict of each question about the body: the worst of its findings."""
    from layoutproof.pallas.from_jax.trace import kernels_of
    from layoutproof.pallas.judge import about_body, in_order, judge

    (call,) = kernels_of(kernel.function, kernel.arguments)
    found: dict[str, str] = {}
    for name in filter(about_body, in_order(body=True)):
        verdicts = [f.verdict for f in judge(call, names=[name]) if f.severity == "error"]  # type: ignore[arg-type]
        found[name] = min(verdicts).value if verdicts else "nothing"
    return found


def run(kernel: Sample) -> tuple[bool, bool]:
    """Whether an access is out of bounds, and whether an output depends on what memory held."""
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental.pallas import tpu as pltpu

    seen = []
    for start in ("nan", "zero"):
        try:
            params = pltpu.InterpretParams(uninitialized_memory=start, out_of_bounds_reads="raise")
            seen.append(np.asarray(kernel.function(*map(jnp.asarray, kernel.arguments), interpret=params)))
        except Exception as error:
            pltpu.reset_tpu_interpret_mode_state()
            if "ut-of-bounds" in str(error) or "out of bounds" in str(error):
                return True, False
            raise
    nan, zero = seen
    return False, bool(np.isnan(nan).any() or not np.allclose(nan, zero))


def main() -> int:
    """Judge and run; print what disagrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    wrong = 0
    start = time.perf_counter()
    for number in range(given.seed, given.seed + given.random):
        kernel = sample(random.Random(number))
        said = judged(kernel)
        outside, undefined = run(kernel)
        values = [said.get(name, "nothing") for name in ("undefined_values", "initialised")]
        defined = "refuted" if "refuted" in values else "unknown" if "unknown" in values else "proved"
        bounds = said["body_in_bounds"]
        bad = (bounds == "proved") == outside if bounds != "unknown" else False
        if not outside and defined != "unknown":
            reaches = values[0] == "refuted"
            bad = bad or (undefined and defined == "proved") or (reaches and not undefined)
        counts[f"in bounds {bounds}, it is {'not' if outside else 'so'}"] += 1
        if not outside:
            counts[f"defined {defined}, it is {'not' if undefined else 'so'}"] += 1
        if bad:
            wrong += 1
            print(f"seed {number}: {kernel.text}: {said}; outside {outside}, undefined {undefined}", flush=True)
    for what, count in sorted(counts.items()):
        print(f"{count:6} {what}")
    print(f"{given.random} kernels from seed {given.seed}: {wrong} wrong; {time.perf_counter() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
