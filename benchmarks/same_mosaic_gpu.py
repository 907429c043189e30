"""The Mosaic GPU kernels of the installed JAX beside their references, by values.

`python benchmarks/same_mosaic_gpu.py [--only NAME]`.

Each row is `lp.same` of a kernel of `tests/pallas/mosaic_gpu_ops.py`, at the sizes there, and a few lines of jax.numpy;
and of the same kernel and a reference with one error. Groups of ragged products are given. Nothing runs on a GPU; what
kernels ask of one while they are traced is made up there. Seconds are of a processor, for the right reference, tracing
included. Exits 1 where a row says something else than is expected.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.beside import child, run

ONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Products of matrices on one core."""
GROUPS = 100, 0, 300, 112
"""Rows of the groups of a ragged product."""
SECONDS = 900.0
"""For one row."""


@dataclass(frozen=True)
class Beside:
    """One row. reference: by whether it is the wrong one.  error: that of the wrong one.  says: what is expected."""

    reference: Callable[[bool], Callable[..., Any]]
    error: str
    says: str = "sampled"


def product(a: Any, b: Any) -> Any:
    return a.astype("float32") @ b.astype("float32")


def multiplied(wrong: bool) -> Callable[..., Any]:
    """Without the last row of K where it is wrong."""
    cut = slice(None, -1 if wrong else None)
    return lambda a, b: product(a[:, cut], b[cut]).astype(b.dtype)


def _with_c(wrong: bool) -> Callable[..., Any]:
    return lambda a, b, c: product(a, b).astype(a.dtype) + (c.T if wrong else c)


def attended(causal: bool, wrong: bool) -> Callable[..., Any]:
    """With a mask off by one where it is causal and wrong, else with a scale."""
    import jax
    import jax.numpy as jnp

    def reference(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.astype(jnp.float32) for x in (q, k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (0.125 if wrong and not causal else 1)
        if causal:
            scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool), -1 if wrong else 0), scores, -jnp.inf)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v).astype(jnp.float16)

    return reference


def _gradient(wrong: bool) -> Callable[..., Any]:
    import jax

    own = attended(False, wrong)
    return lambda q, k, v: jax.grad(lambda q, k, v: own(q, k, v).astype("float32").sum(), (0, 1, 2))(q, k, v)


def _groups(wrong: bool) -> list[slice]:
    """The rows of each group; one row goes to another one where it is wrong."""
    sizes = [99, 1, *GROUPS[2:]] if wrong else GROUPS
    return [slice(sum(sizes[:k]), sum(sizes[: k + 1])) for k in range(len(sizes))]


def _ragged(wrong: bool) -> Callable[..., Any]:
    import jax.numpy as jnp

    return lambda a, b, _: jnp.concatenate(
        [product(a[rows], b[k]) for k, rows in enumerate(_groups(wrong))]
    ).astype(a.dtype)  # fmt: skip


def _transposed(wrong: bool) -> Callable[..., Any]:
    import jax.numpy as jnp

    return lambda a, b, _: jnp.stack([product(a[rows].T, b[rows]) for rows in _groups(wrong)]).astype(a.dtype)


ROWS = {
    "hopper_matmul_mgpu.matmul cluster None": Beside(multiplied, "without the last row of K"),
    "hopper_matmul_mgpu.matmul cluster M": Beside(multiplied, "without the last row of K"),
    "hopper_matmul_mgpu.matmul plus c": Beside(_with_c, "c turned"),
    "hopper_mixed_type_matmul_mgpu.mixed_matmul_kernel": Beside(multiplied, "without the last row of K"),
    "attention_mgpu.attention": Beside(lambda wrong: attended(False, wrong), "with a scale"),
    "attention_mgpu.attention causal": Beside(lambda wrong: attended(True, wrong), "the mask off by one"),
    "attention_mgpu.attention_with_pipeline_emitter": Beside(lambda wrong: attended(False, wrong), "with a scale"),
    "attention_mgpu.attention gradient": Beside(_gradient, "with a scale"),
    "ragged_dot_mgpu.ragged_dot": Beside(_ragged, "a row in another group", says="unknown"),
    "transposed_ragged_dot_mgpu.transposed_ragged_dot": Beside(_transposed, "a row in another group", says="unknown"),
    "blackwell_matmul_mgpu.matmul_kernel": Beside(multiplied, "without the last row of K", says="unknown"),
}


def answered(request: Mapping[str, Any], tell: Any) -> dict[str, Any]:
    """The answering side."""
    import numpy as np

    import layoutproof as lp
    from tests.pallas.mosaic_gpu_ops import ops, pretended

    (op,) = [op for op in ops() if op.name == request["name"]]
    start = time.process_time()
    try:
        with pretended(op.chip):
            kernel, args = op.build()
            args = tuple(np.array(GROUPS, np.int32) if a.shape == (4,) else a for a in args)
            found = lp.same(kernel, ROWS[op.name].reference(request["wrong"]), *args)
    except lp.LayoutError as error:
        return {"verdict": "error", "reason": str(error), "seconds": time.process_time() - start}
    return {"verdict": found.verdict.value, "reason": found.reason, "seconds": time.process_time() - start}


def main() -> int:
    """Asks each, prints the table."""
    import jax

    from layoutproof.compiler.child import ask

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", help="rows whose name has this")
    given = options.parse_args()
    chosen = [name for name in ROWS if not given.only or given.only in name]
    asked = child("a kernel", Path(__file__), SECONDS, {"JAX_PLATFORMS": "cpu", **ONE})
    print(f"{datetime.date.today()}, jax {jax.__version__}\n")
    print("| kernel | verdict | seconds | because | beside a wrong reference |\n|---|---|---|---|---|")
    wrong = []
    requests = [{"name": name, "wrong": error} for name in chosen for error in (False, True)]
    answers = ask(asked, requests, lambda value: value)
    for name, right, other in zip(chosen, answers, answers, strict=False):
        row = ROWS[name]
        none = {"verdict": "none", "reason": right.problem or other.problem, "seconds": SECONDS}
        said, beside = right.value or none, other.value or none
        reason = said["reason"] if said["verdict"] != "sampled" else ""
        shown = f"{row.error}: {beside['verdict']}"
        print(f"| {name} | {said['verdict']} | {said['seconds']:.0f} | {_short(reason)} | {shown} |", flush=True)
        if said["verdict"] != row.says:
            wrong.append(f"{name}: {said['verdict']}, not {row.says}")
        if beside["verdict"] in ("sampled", "proved"):
            wrong.append(f"{name}, {row.error}: {beside['verdict']}")
    print("\n".join(["", *wrong, f"{len(chosen)} kernels, {len(wrong)} otherwise than expected"]))
    return 1 if wrong else 0


def _short(reason: str) -> str:
    """A reason up to its first numbers."""
    return reason.partition(" (")[0].partition(";")[0][:300]


if __name__ == "__main__":
    run(answered, main)
