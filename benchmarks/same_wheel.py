"""The TPU kernels of the installed JAX beside their references: `python benchmarks/same_wheel.py [--only NAME]`.

Each row is `lp.same` of a kernel of `jax.experimental.pallas.ops.tpu` and the reference that stands beside it there, or
a few lines of jax.numpy; with gradients where it has them. Integer tables (segments, pages, lengths, groups) are given.
Seconds are of a processor, tracing included, in a process that has imported everything. Exits 1 where a row says
something else than its own expectation, or takes longer than 15 s.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.beside import child, run

MOST = 15.0
"""Seconds of a processor that a row may take."""
ONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Products of matrices on one core."""
OPS = "jax.experimental.pallas.ops.tpu"


@dataclass(frozen=True)
class Pair:
    """One row. build: (kernel, reference, arguments).  says: the verdict that is expected; sampled may be proved.

    why: it is neither.
    """

    name: str
    build: Callable[[], tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]]
    gradient: bool = False
    says: str = "sampled"
    why: str = ""


def pairs() -> Iterator[Pair]:
    """All."""
    yield Pair("matmul 512x512x512", lambda: _matmul(512))
    yield Pair("matmul 512x448x512", lambda: _matmul(448), says="refuted", why="K % block_k is left out")
    for name in ("plain", "causal", "segments", "bias"):
        yield Pair(f"flash attention, {name}", lambda name=name: _flash(name))
        yield Pair(f"flash attention, {name}, gradient", lambda name=name: _flash(name), True)
    for name in ("causal", "local", "mqa", "soft cap", "segments"):
        yield Pair(f"splash attention, {name}", lambda name=name: _splash(name))
    for name in ("causal", "mqa"):
        yield Pair(f"splash attention, {name}, gradient", lambda name=name: _splash(name), True)
    for mode in (None, "kv_head", "batch"):
        for inline in (True, False):
            yield Pair(
                f"paged attention, megacore {mode}{', sequences inline' if inline else ''}",
                lambda mode=mode, inline=inline: _paged(mode, inline),
                says="unknown" if mode else "sampled",
                why="each of two cores starts copies of its own, and the walk is of one" if mode else "",
            )
    yield Pair("ragged paged attention", lambda: _ragged(None))
    yield Pair("ragged paged attention, window", lambda: _ragged(64))
    for name in ("", "transposed", "existing_out"):
        yield Pair(f"megablox gmm{', ' if name else ''}{name}", lambda name=name: _gmm(name))
    yield Pair("megablox gmm, gradient", lambda: _gmm("gradient"), True)
    yield Pair("megablox tgmm", _tgmm)
    yield Pair("example double", _double)


def f32(*shape: int) -> str:
    """An argument."""
    return f"f32[{','.join(map(str, shape))}]"


def _matmul(k: int) -> Any:
    import jax.numpy as jnp

    matmul = importlib.import_module(f"{OPS}.matmul").matmul
    return lambda x, y: matmul(x, y, block_shape=(256, 256), block_k=128), jnp.dot, (f32(512, k), f32(k, 512))


def _flash(name: str) -> Any:
    import numpy as np

    fa = importlib.import_module(f"{OPS}.flash_attention")
    sizes = fa.BlockSizes(
        block_q=128, block_k_major=128, block_k=128, block_b=1, block_q_major_dkv=128, block_k_major_dkv=128,
        block_k_dkv=128, block_q_dkv=128, block_k_major_dq=128, block_k_dq=128, block_q_dq=128,
    )  # fmt: skip
    ids = np.repeat(np.arange(3, dtype=np.int32), (100, 60, 96))[None]
    segments = fa.SegmentIds(ids, ids) if name == "segments" else None
    args = (f32(1, 1, 256, 128),) * 3 + ((f32(1, 1, 256, 256),) if name == "bias" else ())

    def kernel(q: Any, k: Any, v: Any, bias: Any = None) -> Any:
        return fa.flash_attention(q, k, v, bias, segments, causal=name == "causal", sm_scale=0.125, block_sizes=sizes)

    def reference(q: Any, k: Any, v: Any, bias: Any = None) -> Any:
        return fa.mha_reference_no_custom_vjp(q, k, v, bias, segments, causal=name == "causal", sm_scale=0.125)

    return kernel, reference, args


def _splash(name: str) -> Any:
    import jax
    import jax.numpy as jnp
    import numpy as np

    sk = importlib.import_module(f"{OPS}.splash_attention.splash_attention_kernel")
    sm = importlib.import_module(f"{OPS}.splash_attention.splash_attention_mask")
    t, heads = 256, 2
    one = sm.LocalMask((t, t), (64, 0), 0) if name == "local" else sm.CausalMask((t, t))
    masks = sm.MultiHeadMask([one] * heads)
    back = ("block_q_dkv", "block_kv_dkv", "block_kv_dkv_compute", "block_q_dq", "block_kv_dq")
    sizes = sk.BlockSizes(block_q=128, block_kv=128, block_kv_compute=128, **dict.fromkeys(back, 128))
    make = sk.make_splash_mqa_single_device if name == "mqa" else sk.make_splash_mha_single_device
    cap = 20.0 if name == "soft cap" else None
    splash = make(masks, block_sizes=sizes, attn_logits_soft_cap=cap)
    ids = np.repeat(np.arange(3, dtype=np.int32), (100, 60, 96))
    held = np.array(one[:, :])
    if name == "segments":
        held = held & (ids[:, None] == ids[None])
    keys = f32(t, 128) if name == "mqa" else f32(heads, t, 128)

    def kernel(q: Any, k: Any, v: Any) -> Any:
        return splash(q, k, v, sk.SegmentIds(ids, ids) if name == "segments" else None)

    def reference(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("htd,sd->hts" if name == "mqa" else "htd,hsd->hts", q, k)
        s = s if cap is None else cap * jnp.tanh(s / cap)
        p = jax.nn.softmax(jnp.where(held, s, -jnp.inf), axis=-1)
        return jnp.einsum("hts,sd->htd" if name == "mqa" else "hts,hsd->htd", p, v)

    return kernel, reference, (f32(heads, t, 128), keys, keys)


def _paged(mode: str | None, inline: bool) -> Any:
    import jax
    import jax.numpy as jnp
    import numpy as np

    pk = importlib.import_module(f"{OPS}.paged_attention.paged_attention_kernel")
    batch, heads, shared, pages, size, width = 2, 16, 2, 12, 16, 4
    lengths = np.array([50, 17], np.int32)
    table = np.array([[3, 7, 1, 11], [5, 0, 2, 9]], np.int32)

    def kernel(q: Any, k: Any, v: Any, lengths: Any, table: Any) -> Any:
        return pk.paged_attention(
            q, k, v, lengths, table, pages_per_compute_block=2, megacore_mode=mode, inline_seq_dim=inline
        )

    def reference(q: Any, k: Any, v: Any, lengths: Any, table: Any) -> Any:
        found = []
        for b in range(batch):
            keys, values = (x[:, table[b]].reshape(shared, width * size, 128) for x in (k, v))
            own = q[b].reshape(shared, heads // shared, 128)
            s = jnp.einsum("hgd,hsd->hgs", own, keys)
            s = jnp.where(jnp.arange(width * size, dtype=jnp.int32) < lengths[b], s, -jnp.inf)
            found.append(jnp.einsum("hgs,hsd->hgd", jax.nn.softmax(s, axis=-1), values).reshape(heads, 128))
        return jnp.stack(found)

    cache = f32(shared, pages, size, 128)
    return kernel, reference, (f32(batch, heads, 128), cache, cache, lengths, table)


def _ragged(window: int | None) -> Any:
    import jax
    import jax.numpy as jnp
    import numpy as np

    rk = importlib.import_module(f"{OPS}.ragged_paged_attention.kernel")
    # three sequences: a prefill, a decoding one, a longer prefill behind keys that are there already
    tokens, starts = 48, np.array([0, 20, 21, 48], np.int32)
    lengths, table = np.array([20, 70, 40], np.int32), np.arange(15, dtype=np.int32).reshape(3, 5)[:, ::-1].copy()
    size, heads, shared = 16, 4, 2
    many = np.array([3], np.int32)

    def kernel(q: Any, pages: Any, lengths: Any, table: Any, starts: Any, many: Any) -> Any:
        return rk.ragged_paged_attention(
            q, pages, lengths, table, starts, many, sm_scale=0.125, sliding_window=window, num_kv_pages_per_block=2,
            num_queries_per_block=16,
        )  # fmt: skip

    def reference(q: Any, pages: Any, _: Any, __: Any, ___: Any, ____: Any) -> Any:
        found = []
        for b in range(3):
            own = q[starts[b] : starts[b + 1]].reshape(-1, shared, heads // shared, 128)
            held = pages[table[b]].reshape(-1, 2 * shared, 128)[: lengths[b]]
            s = jnp.einsum("qhgd,khd->hgqk", own, held[:, 0::2]) * 0.125
            here = lengths[b] - own.shape[0] + np.arange(own.shape[0])[:, None]
            there = np.arange(lengths[b])[None]
            seen = (there <= here) & (there > here - (window or 10**6))
            p = jax.nn.softmax(jnp.where(seen, s, -jnp.inf), axis=-1)
            found.append(jnp.einsum("hgqk,khd->qhgd", p, held[:, 1::2]).reshape(-1, heads, 128))
        return jnp.concatenate(found)

    return kernel, reference, (f32(tokens, heads, 128), f32(15, size, 2 * shared, 128), lengths, table, starts, many)


GROUPS = (100, 0, 28, 128)
"""Sizes of the groups: one ends within a tile, one is empty."""


def _gmm(name: str) -> Any:
    import jax.numpy as jnp
    import numpy as np

    module = importlib.import_module(f"{OPS}.megablox.{'ops' if name == 'gradient' else 'gmm'}")
    sizes = np.array(GROUPS, np.int32)
    owner = np.repeat(np.arange(4), GROUPS)
    m, k, n = sum(GROUPS), 256, 128

    def kernel(x: Any, y: Any, sizes: Any, *out: Any) -> Any:
        rest = {"transpose_rhs": True} if name == "transposed" else {}
        rest |= {"existing_out": out[0]} if out else {}
        return module.gmm(x, y, sizes, jnp.float32, (128, 128, 128), **rest)

    def reference(x: Any, y: Any, _: Any, *out: Any) -> Any:
        return jnp.einsum("mk,mnk->mn" if name == "transposed" else "mk,mkn->mn", x, y[owner])

    rhs = f32(4, n, k) if name == "transposed" else f32(4, k, n)
    more = (f32(m, n),) if name == "existing_out" else ()
    return kernel, reference, (f32(m, k), rhs, sizes, *more)


def _tgmm() -> Any:
    import jax.numpy as jnp
    import numpy as np

    module = importlib.import_module(f"{OPS}.megablox.gmm")
    sizes = np.array(GROUPS, np.int32)
    first = np.cumsum((0, *GROUPS))
    m, k, n = sum(GROUPS), 128, 128

    def kernel(x: Any, y: Any, sizes: Any) -> Any:
        return module.tgmm(x, y, sizes, jnp.float32, (128, 128, 128))

    def reference(x: Any, y: Any, _: Any) -> Any:
        return jnp.stack([x[:, a:b] @ y[a:b] for a, b in pairwise(first)])

    return kernel, reference, (f32(k, m), f32(m, n), sizes)


def _double() -> Any:
    return importlib.import_module(f"{OPS}.example_kernel").double, lambda x: x + x, (f32(256, 256),)


def answered(request: Mapping[str, str], tell: Any) -> dict[str, Any]:
    """The answering side."""
    import layoutproof as lp

    (pair,) = [p for p in pairs() if p.name == request["name"]]
    start = time.process_time()
    try:
        kernel, reference, args = pair.build()
        found = lp.same(kernel, reference, *args, gradient=pair.gradient, target="v5e")
    except lp.LayoutError as error:
        return {"verdict": "error", "reason": str(error), "seconds": time.process_time() - start}
    return {
        "verdict": found.verdict.value, "reason": found.reason, "seconds": time.process_time() - start,
        "axioms": list(found.comparison.axioms),
        "premises": sorted({f"{f.question}: {f.verdict.value}" for f in found.premises}),
    }  # fmt: skip


def main() -> int:
    """Asks each, prints the table."""
    import jax

    from layoutproof.compiler.child import ask

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", help="rows whose name has this")
    given = options.parse_args()
    chosen = [p for p in pairs() if not given.only or given.only in p.name]
    asked = child("a kernel", Path(__file__), 400.0, {"JAX_PLATFORMS": "cpu", **ONE})
    print(f"{datetime.date.today()}, jax {jax.__version__}\n")
    print("| kernel | verdict | seconds | because |\n|---|---|---|---|")
    wrong = []
    # imports are no part of the first row's time
    warm = [{"name": "example double"}]
    answers = iter(ask(asked, [*warm, *({"name": p.name} for p in chosen)], lambda value: value))
    next(answers)
    for pair, answer in zip(chosen, answers, strict=True):
        said = answer.value or {"verdict": "none", "reason": answer.problem, "seconds": 400.0}
        reason = said["reason"] if said["verdict"] not in ("sampled", "proved") else ""
        why = f"{pair.why}: {reason}" if pair.why and said["verdict"] == pair.says else reason
        print(f"| {pair.name} | {said['verdict']} | {said['seconds']:.1f} | {why[:400]} |", flush=True)
        if said["verdict"] != pair.says and (said["verdict"], pair.says) != ("proved", "sampled"):
            wrong.append(f"{pair.name}: {said['verdict']}, not {pair.says}")
        elif said["seconds"] > MOST:
            wrong.append(f"{pair.name}: {said['seconds']:.1f} s")
    print("\n".join(["", *wrong, f"{len(chosen)} pairs, {len(wrong)} otherwise than expected"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    run(answered, main)
