"""Functions over several devices, right and wrong: `python benchmarks/shardings [--only NAME]`.

Each pair is one function over a mesh of up to 8 devices beside what one device computes. JAX first runs both, on
devices of the processor and in float64, and shows that the right one computes what the reference does and the wrong one
does not; then `lp.same` is asked, without a device. Exits 1 where a right one is refuted or a wrong one is sampled, or
where more than a tenth is unknown.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if __package__ != "benchmarks.shardings":
    sys.path[0] = str(HERE.parents[1])

DEVICES = 8
TOLERANCE = 1e-6
SETS = ("listed", "others")


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=SETS, action="append", help="Only this set.")
    parser.add_argument("--only", action="append", help="Only the pair of this name.")
    given = parser.parse_args(arguments)
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={DEVICES}".strip()
    os.environ |= {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}

    from benchmarks.shardings import listed, others

    chosen = {"listed": listed.pairs, "others": others.pairs}
    found = [pair for name in given.set or SETS for pair in chosen[name]()]
    count, wrongly, unknown = 0, 0, 0
    for pair in found:
        if given.only and pair.name not in given.only:
            continue
        for wrong in (False, True):
            verdict, reason, seconds = judged(pair, wrong)
            shown = witness(pair, wrong)
            if shown:
                raise SystemExit(f"{pair.name}, {'wrong' if wrong else 'right'}: JAX says that {shown}")
            right = verdict == ("refuted" if wrong else "sampled") or (verdict == "proved" and not wrong)
            count, unknown = count + 1, unknown + (verdict == "unknown")
            wrongly += not right and verdict != "unknown"
            mark = "" if right else "? " if verdict == "unknown" else "WRONG "
            what = pair.kind if wrong else "right"
            print(f"{mark}{pair.name}: {what}: {verdict} {seconds:.1f} s {reason[:160]}", flush=True)
    print(f"{count} functions: {wrongly} wrong, {unknown} unknown")
    return int(wrongly > 0 or 10 * unknown > count)


def judged(pair: Any, wrong: bool) -> tuple[str, str, float]:
    """(Verdict, reason, CPU seconds) of one side."""
    import layoutproof as lp

    start = time.process_time()
    found = lp.same(pair.of(wrong), pair.reference, *pair.args, gradient=pair.gradient)
    return found.verdict.value, found.reason, time.process_time() - start


def witness(pair: Any, wrong: bool) -> str:
    """What JAX says that is otherwise than the pair says; "" where it says the same. It looks at each device's part."""
    import jax
    import numpy as np

    from layoutproof.pallas.from_jax.user import argument

    jax.config.update("jax_enable_x64", True)
    try:
        rng = np.random.default_rng(5)
        args = [
            rng.normal(size=argument(each).shape) + 0.5 if isinstance(each, str) else each for each in pair.args
        ]  # fmt: skip
        calls = [pair.of(wrong), pair.reference]
        if pair.gradient:
            calls = [_gradient(call, len(args)) for call in calls]
        ours, theirs = (jax.tree.leaves(jax.jit(call)(*args)) for call in calls)
        differ = False
        for a, b in zip(ours, theirs, strict=True):
            whole = np.asarray(b)
            differ |= any(
                not np.allclose(np.asarray(shard.data), whole[shard.index], rtol=TOLERANCE, atol=TOLERANCE)
                for shard in a.addressable_shards
            )
    finally:
        jax.config.update("jax_enable_x64", False)
    return "" if differ is wrong else f"they {'differ' if differ else 'are the same'}"


def _gradient(call: Any, many: int) -> Any:
    import jax
    import jax.numpy as jnp

    def loss(*values: Any) -> Any:
        outs = jax.tree.leaves(call(*values))
        return sum((jnp.sin(1.0 + jnp.arange(out.size)).reshape(out.shape) * out).sum() for out in outs)

    return jax.grad(loss, argnums=tuple(range(many)))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
