"""What repositories of kernels take where no tuned size is known: their heuristics and defaults, restated.

Facts only, nothing of their code is here. Read at openxla/tokamax 783ea9570, vllm-project/tpu-inference b8692ff01,
AI-Hypercomputer/maxtext e591f30cb, sgl-project/sglang-jax cddbf6f1 and jax 0.10.2; each function says where.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tuned_kernels import CHIPS, array

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.hardware import tpu_chips

Row = Mapping[str, Any]
Values = dict[str, int]


def quantised_default(row: Row) -> Values:
    """tpu-inference, quantized_matmul/tuned_block_sizes.py: what a table without the key gives."""
    return {"bb": 128, "bo": 128, "bi": 128}


def attention_128(row: Row) -> Values:
    """Tokamax's heuristic for attention, and the default of splash and flash attention in jax."""
    return {"bq": 128, "bk": 128}


def attention_512(row: Row) -> Values:
    """MaxText, configs/base.yml: sa_block_q, sa_block_kv, where sequences are as long."""
    (_, q), (_, k) = (array(row["problem"][name]) for name in "qk")
    return {"bq": min(512, q[1]), "bk": min(512, k[1])}


def megablox_default(row: Row) -> Values:
    """jax, megablox/gmm.py: the default tiling."""
    return {"tm": 128, "tk": 128, "tn": 128}


def maxtext_groups(row: Row) -> Values:
    """MaxText, configs/base.yml: tiles of the forward pass (rows, embedding, features), cut to the problem."""
    m, k, n = _dims(row)
    return {"tm": min(512, m), "tk": min(1024, k), "tn": min(1024, n)}


def tokamax_groups(row: Row) -> Values:
    """Tokamax, ragged_dot/pallas_mosaic_tpu.py: on 7x the largest tiles, halved until three quarters of the limit hold
    them, rows first, then columns, then the sum; tiles of 128 on all others.
    """
    if CHIPS[row["chip"]] != "7x":
        return {"tm": 128, "tk": 128, "tn": 128}
    m, k, n = _dims(row)
    (left, _), (right, _) = (array(row["problem"][name]) for name in ("lhs", "rhs"))
    summed = row["problem"]["ragged_dot_dimension_numbers"]["dot_dimension_numbers"][0] == [[0], [0]]
    tiles = {"tm": min(m, 1024), "tk": k, "tn": n}
    room = 0.75 * tpu_chips.CHIPS["7x"].vmem / 2
    wide = [max(2, ELEMENT_BITS[kind] // 8) for kind in (left, right)]

    def takes() -> int:
        tm, tk, tn = tiles["tm"], tiles["tk"], tiles["tn"]
        other, out = (tm * tn, tk * tn) if summed else (tk * tn, tm * tn)
        return 2 * (tm * tk * wide[0] + other * wide[1]) + 3 * out * wide[0]

    for name in ("tk", "tn", "tm") if summed else ("tm", "tn", "tk"):
        while takes() > room and tiles[name] > 128:
            tiles[name] = max(tiles[name] // 2 // 128 * 128, 128)
    return tiles


def _dims(row: Row) -> tuple[int, int, int]:
    """Rows, summed and other dimension, as the row's tiles name them."""
    p = row["problem"]
    (_, lhs), (_, rhs) = array(p["lhs"]), array(p["rhs"])
    turned = p["ragged_dot_dimension_numbers"]["dot_dimension_numbers"][0] == [[1], [2]]
    return lhs[0], lhs[1], rhs[1] if turned or len(rhs) == 2 else rhs[2]


def cross_entropy_heuristic(row: Row) -> Values:
    """Tokamax, linear_softmax_cross_entropy_loss/pallas_mosaic_tpu_kernel.py, forward, with the limit of half of VMEM.

    Rows: the least divisor from 1,024.  Hidden: the divisor nearest to the width of a core's matrix units (256 x 2 on
    7x), powers of two first.  Vocabulary: the largest that fits, divisors first.
    """
    p = row["problem"]
    (kind, (rows, hidden)), (_, (_, words)) = array(p["x"]), array(p["w"])
    size, limit = ELEMENT_BITS[kind] // 8, tpu_chips.CHIPS[CHIPS[row["chip"]]].vmem // 2
    bb = next((b for b in range(1024, rows + 1, 128) if rows % b == 0), 1024)
    of_hidden = [h for h in range(128, hidden + 1, 128) if hidden % h == 0] or [512]
    bh = min(of_hidden, key=lambda h: (h & (h - 1) != 0, abs(h - 512)))
    most = (limit - 2 * bb * bh * size - 24 * bb) // (2 * bh * size + 16 * bb)
    fitting = range(max(128, min(words, most) // 128 * 128), 127, -128)
    return {"bb": bb, "bh": bh, "bv": next((v for v in fitting if words % v == 0), fitting[0])}


def paged_128(row: Row) -> Values:
    """jax, ragged_paged_attention/tuned_block_sizes.py, and version 2 in tpu-inference: 128 pages, 32 queries."""
    p = row["problem"]
    return {"pages": min(128, -(-p["page_x_pages_per_seq"] // p["page"])), "bq": 32}


def paged_1024(row: Row) -> Values:
    """sglang-jax, ragged_paged_attention/tuned_block_sizes.py: 1,024 keys, 32 queries."""
    page = row["problem"]["page"]
    return {"pages": max(1, min(1024, _length(row)) // page), "bq": 32}


def paged_v3(row: Row) -> Values:
    """tpu-inference, ragged_paged_attention/v3/tuned_block_sizes.py: 2,048 keys, on 7x 4,096, and 32 queries."""
    most = 4096 if CHIPS[row["chip"]] == "7x" else 2048
    page = row["problem"]["page"]
    return {"pages": min(most // page, -(-_length(row) // page)), "bq": 32}


def paged_v3_mixed(row: Row) -> Values:
    """tpu-inference, ragged_paged_attention/v3/kernel.py, for mixed sequences: keys up to 1,024 (on 7x 2,048, and at
    most half of all), queries so many that they and the heads that share keys are as many. Of tokens 4,096 at once.
    """
    heads, pairs = map(int, re.findall(r"\d+", row["problem"]["heads"])[:2])
    shared = 1 << (heads // pairs - 1).bit_length()
    page, length = row["problem"]["page"], _length(row)
    if CHIPS[row["chip"]] == "7x":
        keys, queries = min(2048, length // 2), min(2048 // shared, 2048)
    else:
        keys, queries = min(1024, length), min(1024 // shared, 2048)
    return {"pages": max(1, -(-keys // page)), "bq": max(1, queries)}


def _length(row: Row) -> int:
    p = row["problem"]
    said = re.search(r"\d+", str(p["model_len"])) if "model_len" in p else None
    return int(said[0]) if said else int(p["page_x_pages_per_seq"])


PEERS: Mapping[str, Mapping[str, Callable[[Row], Values]]] = {
    "quantized_matmul": {"tpu-inference default": quantised_default},
    "tokamax.pallas_mosaic_tpu_flash_attention": {
        "tokamax heuristic, jax default": attention_128,
        "MaxText default": attention_512,
    },
    "tokamax.pallas_mosaic_tpu_ragged_dot": {
        "tokamax heuristic": tokamax_groups,
        "MaxText default": maxtext_groups,
        "jax default": megablox_default,
    },
    "tokamax.pallas_mosaic_tpu_linear_softmax_cross_entropy_loss": {"tokamax heuristic": cross_entropy_heuristic},
    "ragged_paged_attention(jax)": {"jax default": paged_128, "sglang-jax default": paged_1024},
    "ragged_paged_attention_v2": {"tpu-inference default": paged_128, "sglang-jax default": paged_1024},
    "ragged_paged_attention_v3": {"tpu-inference default": paged_v3, "tpu-inference formula": paged_v3_mixed},
}
"""Kernel -> who names a size for a row, and which."""
