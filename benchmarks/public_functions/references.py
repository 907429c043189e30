"""What the public calls are to compute: the repository's own reference where it has one, else a few lines of jax.numpy.

`REFERENCES` has those of calls of `calls.py`, by repository and name. Integers that are tables are given: `tables`
has them by position.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from calls import EASYDEL, EJKERNEL, GRIFFIN, JETSTREAM, MAXDIFFUSION, MAXTEXT, SGLANG, TOKAMAX, TPU_INFERENCE

Function = Callable[..., Any]


@dataclass(frozen=True)
class Reference:
    """make: given the module, the reference.  tables: integer arguments by position.  whose: own, or of the repository.

    given: made of a function what is compared, where not every argument is one that it is for.  outputs: those that
    are compared, None for all.
    """

    make: Callable[[Any], Function]
    tables: Mapping[int, Any] = field(default_factory=dict)
    whose: str = "ours"
    given: Callable[[Function], Function] = lambda function: function
    outputs: tuple[int, ...] | None = None


def _ints(*values: Any) -> Any:
    return np.array(values, np.int32)


def _summed(reference: Function, count: int) -> Function:
    """The gradient of the sum of all results."""

    def loss(*given: Any) -> Any:
        return sum(leaf.astype(jnp.float32).sum() for leaf in jax.tree.leaves(reference(*given)))

    return jax.grad(loss, tuple(range(count)))


def _scan(x: Any, a: Any, h0: Any) -> Any:
    """h = a h + x, row after row."""

    def step(h: Any, row: Any) -> Any:
        h = row[1] * h + row[0]
        return h, h

    last, rows = jax.lax.scan(step, h0, (x.swapaxes(0, 1), a.swapaxes(0, 1)))
    return rows.swapaxes(0, 1), last


def _attention(q: Any, k: Any, v: Any, mask: str = "full", scale: float = 1.0) -> Any:
    """softmax(scale q k^T) v, of (.., rows, elements)."""
    s = jnp.einsum("...qd,...kd->...qk", q.astype(jnp.float32), k.astype(jnp.float32)) * scale
    row, column = np.arange(s.shape[-2])[:, None], np.arange(s.shape[-1])[None]
    seen = {"full": column >= 0, "causal": column <= row, "local": (column <= row) & (column >= row - 128)}[mask]
    p = jax.nn.softmax(jnp.where(seen, s, -jnp.inf), axis=-1)
    return jnp.einsum("...qk,...kd->...qd", p, v.astype(jnp.float32))


def _splash(mask: str, gradient: bool = False) -> Callable[[Any], Function]:
    function = partial(_attention, mask=mask)
    found = jax.grad(lambda *a: function(*a).sum(), (0, 1, 2)) if gradient else function
    return lambda module: found


def _base2(length: int, axes: str) -> Callable[[Any], Function]:
    """Attention with powers of 2, of the first rows; the result has the axes of hqd in that order."""

    def reference(q: Any, k: Any, v: Any) -> Any:
        found = _attention(q[:, :length], k[:, :length], v[:, :length], scale=float(np.log(2.0)))
        return jnp.einsum(f"hqd->{axes}", found).astype(q.dtype)

    return lambda module: reference


SIZES = _ints(100, 0, 28, 128, 64, 96, 60, 36)
"""Rows of each group: one is empty, most end within a tile."""


def _owners(sizes: Any) -> Any:
    return np.repeat(np.arange(len(sizes)), sizes)


def _grouped(sizes: Any) -> Reference:
    def gmm(x: Any, y: Any, _: Any) -> Any:
        return jnp.einsum("mk,mkn->mn", x, y[_owners(sizes)], preferred_element_type=jnp.float32)

    return Reference(lambda module: gmm, {2: sizes})


def _transposed(sizes: Any) -> Reference:
    ends = np.cumsum((0, *sizes))

    def tgmm(x: Any, y: Any, _: Any) -> Any:
        pairs = itertools.pairwise(ends)
        return jnp.stack([jnp.dot(x[:, a:b], y[a:b], preferred_element_type=jnp.float32) for a, b in pairs])

    return Reference(lambda module: tgmm, {2: sizes})


def _ragged(name: str) -> Reference:
    """MaxText's own; of the results of several heads of keys the sums are not divided out, as a comment there says."""

    def make(module: Any) -> Function:
        def reference(q: Any, k: Any, v: Any, lengths: Any) -> Any:
            if name == "mqa":
                o, m, total = module.reference_mqa(q, k, v, lengths)
                return o, m[..., 0], total[..., 0]
            if name == "mha":
                o, m, total = module.reference_mha(q, k, v, lengths)
            else:
                o, m, total = module.reference_gqa(q[:, 0], k.swapaxes(1, 2), v.swapaxes(1, 2), lengths)
            return o * total, m, total

        return reference

    return Reference(make, {3: _ints(1024, 300, 256, 1)}, "MaxText's")


def _paged_attention(q: Any, k: Any, v: Any, lengths: Any, table: Any) -> Any:
    """Of each sequence: its queries, and the keys of its pages."""
    shared, _, size, width = k.shape
    batch, heads, _ = q.shape
    keys, values = (x[:, table].swapaxes(0, 1).reshape(batch, shared, -1, width) for x in (k, v))
    s = jnp.einsum("bhgd,bhtd->bhgt", q.reshape(batch, shared, heads // shared, width), keys)
    held = jnp.arange(table.shape[1] * size, dtype=jnp.int32)[None] < lengths[:, None]
    p = jax.nn.softmax(jnp.where(held[:, None, None], s, -jnp.inf), axis=-1)
    return jnp.einsum("bhgt,bhtd->bhgd", p, values).reshape(q.shape)


def _chunk(q: Any, k: Any, v: Any, length: Any, pages: Any) -> Any:
    """The last chunk of a sequence of these pages, causal."""
    chunk, heads, width = q.shape
    shared = k.shape[0]
    keys, values = (x[:, pages].reshape(shared, -1, width) for x in (k, v))
    own = q.reshape(chunk, shared, heads // shared, width)
    s = jnp.einsum("qhgd,hkd->hgqk", own, keys) / np.sqrt(width)
    row = length[0] - chunk + jnp.arange(chunk, dtype=jnp.int32)[:, None]
    seen = jnp.arange(keys.shape[1], dtype=jnp.int32)[None] <= row
    p = jax.nn.softmax(jnp.where(seen, s, -jnp.inf), axis=-1)
    return jnp.einsum("hgqk,hkd->qhgd", p, values).reshape(chunk, heads * width)


PAGES = np.arange(32, dtype=np.int32).reshape(4, 8)[:, ::-1].copy()
LENGTHS = _ints(128, 50, 17, 1)


def _decode(q: Any, k: Any, v: Any, start: Any, end: Any) -> Any:
    s = jnp.einsum("bhd,btd->bht", q.astype(jnp.float32), k.astype(jnp.float32)) * q.shape[-1] ** -0.5
    at = jnp.arange(k.shape[1], dtype=jnp.int32)[None]
    held = (at >= start[:, None]) & (at < end[:, None])
    p = jax.nn.softmax(jnp.where(held[:, None], s, -jnp.inf), axis=-1)
    return jnp.einsum("bht,btd->bhd", p, v.astype(jnp.float32))


def _inverse(a: Any) -> Any:
    """Of unit lower triangular matrices, row after row."""
    n = a.shape[-1]
    rows = [jnp.broadcast_to(jnp.eye(n, dtype=a.dtype)[0], (*a.shape[:-2], n))]
    for i in range(1, n):
        above = jnp.stack(rows, -2)
        rows.append(jnp.eye(n, dtype=a.dtype)[i] - jnp.einsum("...k,...kn->...n", a[..., i, :i], above))
    return jnp.stack(rows, -2)


def _triangular(function: Function) -> Function:
    """Of any matrix, the unit lower triangular one."""
    return lambda a: function(jnp.tril(a, -1) + jnp.eye(a.shape[-1], dtype=a.dtype))


def _blockwise(module: Any) -> Function:
    """x in blocks of 256, each row of one as integers of 8 bits and a scale, as the repository's own function makes."""

    def reference(x: Any, w: Any, scale: Any) -> Any:
        total = jnp.zeros((x.shape[0], w.shape[0]), jnp.float32)
        for i in range(x.shape[1] // 256):
            part = slice(256 * i, 256 * (i + 1))
            q, s = module.util.quantize_block(x[:, part].astype(jnp.float32), 1, "int8")
            dot = jnp.einsum("mk,nk->mn", q, w[:, part], preferred_element_type=jnp.int32)
            total += dot.astype(jnp.float32) * s * scale[i]
        return total.astype(x.dtype)

    return reference


def _cache(new: Any, slices: Any, cache: Any, many: Any) -> Any:
    """Slices (place in the cache, place in the new rows, rows), copied."""
    for k in range(int(np.asarray(SLICES).shape[1])):
        to, start, rows = (int(n) for n in SLICES[:, k])
        if k < SLICED:
            cache = cache.at[to : to + rows].set(new[start : start + rows])
    return cache


SLICED = 5
SLICES = np.zeros((3, 16), np.int32)
SLICES[:, :SLICED] = np.array([(0, 0, 20), (37, 20, 1), (64, 21, 32), (200, 53, 7), (500, 60, 4)]).T


def _gmm_v2(x: Any, y: Any, _: Any) -> Any:
    return jnp.einsum("mk,mkn->mn", x, y[_owners(SIZES)], preferred_element_type=jnp.float32).astype(x.dtype)


QUERIES, KEYS = _ints(0, 20, 21, 60, 64), _ints(20, 70, 100, 4)
"""Of four sequences: where the queries of each start, and how many keys it has."""


def _own_ragged(module: Any) -> Function:
    def reference(q: Any, pages: Any, lengths: Any, table: Any, starts: Any, many: Any) -> Any:
        return module.ref_ragged_paged_attention(q, pages, KEYS, PAGES, QUERIES, _ints(4))

    return reference


def _of(function: Function, tables: Mapping[int, Any] | None = None, **more: Any) -> Reference:
    return Reference(lambda module: function, tables or {}, **more)


GMM, TGMM, V2 = _grouped(SIZES), _transposed(SIZES), _of(_gmm_v2, {2: SIZES})
PAGED = _of(_paged_attention, {3: LENGTHS, 4: PAGES})

PLACES = np.arange(1024, dtype=np.int32) * 37 % 512
"""Rows that are gathered: some of them twice."""

REFERENCES: Mapping[tuple[str, str], Reference] = {
    (repository[0], name): reference
    for repository, made in {
        GRIFFIN: {
            "lru": _of(_scan),
            "lru 1000 rows": _of(_scan),
            "lru gradient": _of(_summed(_scan, 2)),
        },
        JETSTREAM: {
            "chunked prefill": _of(_chunk, {3: _ints(128), 4: PAGES[0]}),
            "paged attention": PAGED,
            "paged attention, programs for sequences": PAGED,
        },
        MAXTEXT: {
            **{f"ragged {name}": _ragged(name) for name in ("mqa", "gqa", "mha")},
            "splash causal": Reference(_splash("causal")),
            "splash local": Reference(_splash("local")),
            "splash batched": Reference(_splash("causal")),
            "splash gradient": Reference(_splash("causal", True)),
            "gmm 512": GMM,
            "gmm 2048": _grouped(4 * SIZES),
            "gmm, tiles that do not divide": GMM,
            "tgmm": TGMM,
            "gmm v2": V2,
        },
        MAXDIFFUSION: {
            "splash 2048": Reference(_base2(2048, "hdq")),
            "splash 2000": Reference(_base2(2000, "hdq")),
            "splash, two heads a tile": Reference(_base2(2048, "hdq")),
        },
        TOKAMAX: {
            "splash causal": Reference(_splash("causal")),
            "splash local": Reference(_splash("local")),
            "splash gradient": Reference(_splash("causal", True)),
        },
        EJKERNEL: {
            "flash": Reference(_splash("full")),
            "flash causal": Reference(_splash("causal")),
            "ragged decode": _of(_decode, {3: _ints(0, 100, 512, 1023), 4: _ints(1024, 300, 513, 1024)}),
            "gmm": GMM,
            "tgmm": TGMM,
            "gmm, three buffers": GMM,
            "tgmm, two buffers": TGMM,
        },
        EASYDEL: {
            "triangular inverse": _of(_inverse, given=_triangular),
            "triangular inverse, blocks": _of(_inverse, given=_triangular),
        },
        TPU_INFERENCE: {
            "blockwise quantised": Reference(_blockwise),
            "blockwise quantised, 1280": Reference(_blockwise),
            "gmm v2": V2,
            "ragged paged attention 2": Reference(
                _own_ragged, {2: KEYS, 3: PAGES, 4: QUERIES, 5: _ints(4)}, "tpu-inference's"
            ),
            "cache update": _of(_cache, {1: SLICES, 3: _ints(SLICED)}),
            # every row: what is outside of the range is not defined
            "ragged gather 2": _of(lambda x, at, start, end: x[at], {1: PLACES, 2: _ints(0), 3: _ints(PLACES.size)}),
        },
        SGLANG: {
            "blockwise quantised": Reference(_blockwise),
            "gmm v2": V2,
        },
    }.items()
    for name, reference in made.items()
}
