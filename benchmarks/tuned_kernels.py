"""Kernels with published block sizes, declared: grid and BlockSpecs as their sources state them, one row at a time.

Sources: vllm-project/tpu-inference (traced at b8692ff01; texts read at 07b47d2, 0ebc93b), openxla/tokamax (rows of
783ea9570; texts read at 0a510f7, 099096d, 0088abd, 076d007), jax 0.10.2. Facts only; nothing of their code is here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.core.errors import Undecided
from layoutproof.hardware import tpu_chips
from layoutproof.searching.problem import Problem
from layoutproof.searching.read import read_problem
from layoutproof.specs.positions import read_yaml

CHIPS = {"tpu7x": "7x", "tpu_v5": "v5p", "tpu_v5_lite": "v5e", "tpu_v6_lite": "v6e", "tpu v6": "v6e", "tpu v7": "7x"}
CHIPS |= {"TPU v6": "v6e", "TPU v5": "v5e"}  # `TPU v5` of that table may be v5p too: the same VMEM by default
CHIPS |= {"TPU v5e": "v5e", "TPU v6e": "v6e", "TPU v7": "7x"}
TYPES = {"int8": "s8", "int4": "s4", "bfloat16": "bf16", "float32": "f32", "float8_e4m3fn": "f8e4m3fn"}
TYPES |= {"float4_e2m1fn": "f4e2m1fn", "float8_e5m2": "f8e5m2"}
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\]")


@dataclass(frozen=True)
class Asked:
    """One row as a problem of ours, and the published choice. ranked: whether the model's cost means anything."""

    problem: Problem
    values: Mapping[str, int]
    ranked: bool = True


def powers(low: int, high: int) -> list[int]:
    """Powers of two from `low` to `high`."""
    return [1 << k for k in range(64) if low <= 1 << k <= high]


def divisors(extent: int, unit: int) -> list[int]:
    """Multiples of `unit` that divide `extent`, and `extent` itself."""
    return sorted({k for k in range(unit, extent + 1, unit) if extent % k == 0} | {extent})


def array(text: str) -> tuple[str, list[int]]:
    """Element type and extents of `bf16[8,128]`; i32 is XLA's s32."""
    found = _ARRAY.fullmatch(text)
    if found is None:
        raise Undecided(f"the row's array {text[:40]} is not one of numbers")
    return re.sub(r"^i", "s", found[1]), [int(n) for n in found[2].split(",") if n]


def asked(
    name: str, chip: str, kernel: Mapping[str, Any], sizes: Mapping[str, int], tune: Mapping[str, Sequence[int]],
    values: Mapping[str, int], flops: str,
) -> Asked:  # fmt: skip
    """The problem of a search file with these keys. The published values are candidates, whatever `tune` says."""
    domains = {key: sorted({*domain, values[key]}) for key, domain in tune.items()}
    document = {"search": name, "target": CHIPS[chip], "kernel": kernel, "sizes": sizes, "tune": domains}
    # the sizes were tuned with their own bodies, so what these spill is in them
    text = json.dumps({**document, "flops": flops, "headroom": "0%"})
    return Asked(read_problem(read_yaml(text, name), name), values)


def quantized_matmul(row: Mapping[str, Any]) -> Asked:
    """vllm-project/tpu-inference kernels/quantized_matmul/kernel.py: activations in bf16, quantized inside.

    It asks for as much VMEM as the chip has. Its scratch for sums is there only where K is split.
    """
    p, b = row["problem"], row["blocks"]
    x, w = TYPES[p["x"]], TYPES[p["w"]]
    sums = "s32" if w[0] == "s" else "f32"
    up = {axis: -(-p[f"n_{axis}"] // b[f"{axis}_block"]) * b[f"{axis}_block"] for axis in ("batch", "out", "in")}
    limit = tpu_chips.CHIPS[CHIPS[row["chip"]]].vmem
    split, kept = "min(1, I // bi - 1)", "min(1, O // bo - 1) * (1 - min(1, I // bi - 1))"
    kernel = {
        "grid": ["cdiv(B, bb)", "cdiv(O, bo)", "cdiv(I, bi)"],
        "semantics": ["parallel", "arbitrary", "arbitrary"],
        "inputs": [
            {"name": "x", "array": "bf16[B,I]", "block": ["bb", "bi"], "index": "(b, o, i) -> (b, i)"},
            {"name": "w", "array": f"{w}[O,I]", "block": ["bo", "bi"], "index": "(b, o, i) -> (o, i)"},
            {"name": "scale", "array": "f32[1,O]", "block": [1, "bo"], "index": "(b, o, i) -> (0, o)"},
            {"name": "largest", "array": "bf16[1,B]", "block": [1, "bb"], "index": "(b, o, i) -> (0, b)"},
        ],
        "outputs": [{"name": "y", "array": "bf16[B,O]", "block": ["bb", "bo"], "index": "(b, o, i) -> (b, o)"}],
        "scratch": [{"array": f"{sums}[bb * {split},bo]"}, {"array": f"{x}[bb * {kept},bi]"}],
        "vmem_limit": limit,
    }
    sizes = {"B": up["batch"], "O": up["out"], "I": up["in"]}
    tune = {
        "bb": [n for n in powers(16, 4096) if up["batch"] % n == 0],
        "bo": divisors(up["out"], 128),
        "bi": divisors(up["in"], 128),
    }
    values = {"bb": b["batch_block"], "bo": b["out_block"], "bi": b["in_block"]}
    return asked("quantized_matmul", row["chip"], kernel, sizes, tune, values, "2 * B * O * I")


def flash_attention(row: Mapping[str, Any]) -> Asked:
    """openxla/tokamax attention/pallas_mosaic_tpu.py over its splash attention; layout 2 stores sequences minor.

    block_kv_compute cuts a block that is already there: no window knows it. Causal rows count the blocks that the
    diagonal touches, as work; bytes count as if every block were fetched.
    """
    p, b = row["problem"], row["blocks"]
    (kind, q), (_, k), (_, v) = (array(p[name]) for name in "qkv")
    if len(q) != 4 or k[2] not in (1, q[2]) or (p.get("bias"), p["mask"]["bool_mask"]) != (None, None):
        raise Undecided("grouped heads, a bias or a mask of bools: not modelled here")
    minor = [b[f"{name}_layout"] == 2 for name in "qkv"]

    def operand(name: str, head: str, rows: str, depth: str, size: str, index: str, swapped: bool) -> dict[str, Any]:
        dims, block, place = [rows, depth], [size, depth], [index, "0"]
        if swapped:
            dims, block, place = dims[::-1], block[::-1], place[::-1]
        return {
            "name": name,
            "array": f"{kind}[N,{head},{dims[0]},{dims[1]}]",
            "block": [None, None, *block],
            "index": f"(n, h, i, j) -> (n, {'0' if head == '1' else 'h'}, {place[0]}, {place[1]})",
        }

    heads = "1" if k[2] == 1 and q[2] != 1 else "H"
    kernel = {
        "grid": ["N", "H", "cdiv(Q, bq)", "cdiv(K, bk)"],
        "semantics": ["parallel", "parallel", "arbitrary", "arbitrary"],
        "inputs": [
            operand("q", "H", "Q", "D", "bq", "i", minor[0]),
            operand("k", heads, "K", "D", "bk", "j", minor[1]),
            operand("v", heads, "K", "V", "bk", "j", minor[2]),
        ],
        "outputs": [operand("o", "H", "Q", "V", "bq", "i", False)],
        "scratch": [{"array": "f32[bq,128]"}, {"array": "f32[bq,128]"}, {"array": "f32[bq,V]"}],
    }
    sizes = {"N": q[0], "H": q[2], "Q": q[1], "K": k[1], "D": q[3], "V": v[3]}
    touched = "Q * (K + max(bq, bk)) // 2" if p["mask"]["is_causal"] else "Q * K"
    tune = {"bq": powers(128, min(4096, q[1])), "bk": powers(128, min(4096, k[1]))}
    values = {"bq": b["block_q"], "bk": b["block_kv"]}
    return asked("flash", row["chip"], kernel, sizes, tune, values, f"2 * N * H * (D + V) * ({touched})")


def ragged_dot(row: Mapping[str, Any]) -> Asked:
    """openxla/tokamax ragged_dot/pallas_mosaic_tpu.py (Megablox), of groups of one size that begin anywhere.

    Its tuner draws the sizes at random. So a group begins and ends within a tile of rows, which the next group visits
    again: each has as many rows to visit as it has, and one tile more.

    Where the sums need one step only, libtpu 0.0.42.1 allots nothing to the scratch for them (measured on a matrix
    product of this form: 5.00M with it and without it). Rows of the transposed product name their tiles after its own
    dimensions, or, where those would be too small for them, after those of the forward product.
    """
    p, b = row["problem"], row["blocks"]
    (kind, lhs), (other, rhs) = array(p["lhs"]), array(p["rhs"])
    groups = p["group_sizes"]
    many = groups["num_groups"] if isinstance(groups, Mapping) else sum(1 for n in groups if n)
    contracting = p["ragged_dot_dimension_numbers"]["dot_dimension_numbers"][0]
    out = "bf16" if p["preferred_element_type"] in (None, "bfloat16") else TYPES[p["preferred_element_type"]]
    m, each = lhs[0], -(-lhs[0] // many)
    buffers = b.get("input_buffer_count", 2)
    turned = contracting == [[1], [2]]
    if contracting == [[0], [0]]:
        k, n = lhs[1], rhs[1]
        kernel = {
            "grid": ["cdiv(N, tn)", "cdiv(K, tk)", "G", "cdiv(E + tm, tm)"],
            "semantics": ["parallel", "parallel", "arbitrary", "arbitrary"],
            "inputs": [
                {"name": "lhs", "array": f"{kind}[G,E + tm,K]", "block": [None, "tm", "tk"],
                 "index": "(n, k, g, i) -> (g, i, k)", "buffers": buffers},
                {"name": "rhs", "array": f"{other}[G,E + tm,N]", "block": [None, "tm", "tn"],
                 "index": "(n, k, g, i) -> (g, i, n)", "buffers": buffers},
            ],
            "outputs": [{"name": "out", "array": f"{out}[G,K,N]", "block": [None, "tk", "tn"],
                         "index": "(n, k, g, i) -> (g, k, n)"}],
            "scratch": [{"array": "f32[tk * min(1, G * cdiv(E + tm, tm) - 1),tn]"}],
        }  # fmt: skip
    else:
        k, n = lhs[1], rhs[1 if turned else 2]
        inner = {"array": f"{other}[G,N,K]", "block": [None, "tn", "tk"], "index": "(n, g, i, k) -> (g, n, k)"}
        if not turned:
            inner = {"array": f"{other}[G,K,N]", "block": [None, "tk", "tn"], "index": "(n, g, i, k) -> (g, k, n)"}
        kernel = {
            "grid": ["cdiv(N, tn)", "G", "cdiv(E + tm, tm)", "cdiv(K, tk)"],
            "semantics": ["parallel", "arbitrary", "arbitrary", "arbitrary"],
            "inputs": [
                {"name": "lhs", "array": f"{kind}[G,E + tm,K]", "block": [None, "tm", "tk"],
                 "index": "(n, g, i, k) -> (g, i, k)", "buffers": buffers},
                {"name": "rhs", **inner},
            ],
            "outputs": [{"name": "out", "array": f"{out}[G,E + tm,N]", "block": [None, "tm", "tn"],
                         "index": "(n, g, i, k) -> (g, i, n)"}],
            "scratch": [{"array": "f32[tm * min(1, cdiv(K, tk) - 1),tn]"}],
        }  # fmt: skip
    if buffers > 2:
        raise Undecided(f"{buffers} buffers: pallas_call has no such window; that kernel is a pipeline of its own")

    def tiles(extent: int) -> list[int]:
        up = -(-extent // 128) * 128
        return sorted({*powers(128, up), *(up >> k for k in range(6) if (up >> k) % 128 == 0), extent})

    sizes = {"G": many, "E": each, "K": k, "N": n}
    tune = {"tm": powers(64, min(1024, m)), "tk": tiles(k), "tn": tiles(n)}
    tk, tn = b["tile_k"], b["tile_n"]
    if turned and (tk > max(tiles(k)) or tn > max(tiles(n))):
        tk, tn = tn, tk
    values = {"tm": b["tile_m"], "tk": tk, "tn": tn}
    return asked("ragged_dot", row["chip"], kernel, sizes, tune, values, "2 * G * (E + tm) * K * N")


def cross_entropy(row: Mapping[str, Any]) -> Asked:
    """openxla/tokamax linear_softmax_cross_entropy_loss/pallas_mosaic_tpu_kernel.py, forward; its scalar is in SMEM."""
    p, b = row["problem"], row["blocks"]
    (kind, x), (other, w) = array(p["x"]), array(p["w"])
    kernel = {
        "grid": ["cdiv(B, bb)", "cdiv(V, bv)", "cdiv(H, bh)"],
        "inputs": [
            {"name": "x", "array": f"{kind}[B,H]", "block": ["bb", "bh"], "index": "(i, j, k) -> (i, k)"},
            {"name": "labels", "array": "s32[B]", "block": ["bb"], "index": "(i, j, k) -> (i,)"},
            {"name": "w", "array": f"{other}[H,V]", "block": ["bh", "bv"], "index": "(i, j, k) -> (k, j)"},
        ],
        "outputs": [{"name": "lse", "array": "f32[B]", "block": ["bb"], "index": "(i, j, k) -> (i,)"}],
        "scratch": [{"array": "f32[bb,bv]"}],
    }
    sizes = {"B": x[0], "H": x[1], "V": w[1]}
    tune = {"bb": powers(128, min(8192, x[0])), "bh": divisors(x[1], 128), "bv": powers(128, 16384)}
    values = {"bb": b["b_block_size"], "bh": b["h_block_size"], "bv": b["v_block_size"]}
    return asked("cross_entropy", row["chip"], kernel, sizes, tune, values, "2 * B * H * V")


def ragged_attention(row: Mapping[str, Any]) -> Asked:
    """jax 0.10.2 ragged_paged_attention/kernel.py, and version 2 in vllm-project/tpu-inference, which has its blocks.

    Both tables are of heads per block. A block of queries with its output are windows; pages are copied by hand into
    two buffers.
    """
    p, b = row["problem"], row["blocks"]
    end, of = ("per_blk", "_per_blk") if "q_heads_per_blk" in p else ("per_block", "")
    length = -(-p["page_x_pages_per_seq"] // p["page"]) * p["page"]
    values = {"pages": b[f"num_kv_pages_{end}"], "bq": b[f"num_queries_{end}"]}
    heads, pairs = p[f"q_heads{of}"], p[f"kv_heads{of}"]
    kinds = TYPES[p["q"]], TYPES[p["kv"]]
    return _paged(row["chip"], kinds, heads, pairs, p["head_dim"], p["page"], length, values, limit=None)


def ragged_attention_v3(row: Mapping[str, Any]) -> Asked:
    """vllm-project/tpu-inference kernels/ragged_paged_attention/v3/kernel.py: one program that copies everything by
    hand, queries, pages and output each into two buffers, and may use all of VMEM.

    Heads of the keys and values that would fall on the same banks are one more.
    """
    p, b = row["problem"], row["blocks"]
    said = re.fullmatch(r"max_model_len-(\d+)-sw-None", str(p["model_len"]))
    if said is None:
        raise Undecided("a sliding window, or no length: not modelled here")
    kinds = re.fullmatch(r"q_(\w+)_kv_(\w+)", p["dtypes"])
    counts = re.fullmatch(r"q_head-(\d+)_kv_head-(\d+)_head-(\d+)", p["heads"])
    if kinds is None or counts is None:
        raise Undecided("heads or element types are not those of a row")
    heads, pairs, depth = map(int, counts.groups())
    length = -(-int(said[1]) // p["page"]) * p["page"]
    values = {"pages": b["bkv_p"], "bq": b["bq"]}
    limit = tpu_chips.CHIPS[CHIPS[row["chip"]]].vmem
    of = TYPES[kinds[1]], TYPES[kinds[2]]
    return _paged(row["chip"], of, heads, pairs, max(depth, 128), p["page"], length, values, limit=limit)


def _paged(
    chip: str, kinds: tuple[str, str], heads: int, pairs: int, depth: int, page: int, length: int,
    values: Mapping[str, int], limit: int | None,
) -> Asked:  # fmt: skip
    """Decoding, as if what is copied by hand were windows: the same blocks, two buffers of each.

    The tables do not say what was measured. Each of 34 sequences has one query and as many keys as the row allows, as
    in the example of tpu-inference's own tuner in which most sequences decode; a whole block of queries is multiplied
    with each block of keys, whatever of them is there.
    """
    q, kv = kinds
    kernel = {
        "grid": ["S", "cdiv(L, pages * P)"],
        "semantics": ["arbitrary", "arbitrary"],
        "inputs": [
            {"name": "q", "array": f"{q}[S,1,{heads},{depth}]", "block": [None, "bq", heads, depth],
             "index": "(s, j) -> (s, 0, 0, 0)"},
            {"name": "kv", "array": f"{kv}[S,L,{2 * pairs},{depth}]", "block": [None, "pages * P", 2 * pairs, depth],
             "index": "(s, j) -> (s, j, 0, 0)"},
        ],
        "outputs": [{"name": "o", "array": f"{q}[S,1,{heads},{depth}]", "block": [None, "bq", heads, depth],
                     "index": "(s, j) -> (s, 0, 0, 0)"}],
        "scratch": [
            {"array": f"f32[{pairs},bq * {heads // pairs},128]"},
            {"array": f"f32[{pairs},bq * {heads // pairs},128]"},
            {"array": f"f32[{pairs},bq * {heads // pairs},{depth}]"},
        ],
    }  # fmt: skip
    if limit is not None:
        kernel["vmem_limit"] = limit
    tune = {"pages": powers(1, max(1, min(4096, length) // page)), "bq": powers(8, 256)}
    flops = f"4 * S * bq * {heads} * {depth} * cdiv(L, pages * P) * pages * P"
    return asked("ragged_attention", chip, kernel, {"S": 34, "L": length, "P": page}, tune, values, flops)


MODELS: Mapping[str, Callable[[Mapping[str, Any]], Asked]] = {
    "quantized_matmul": quantized_matmul,
    "tokamax.pallas_mosaic_tpu_flash_attention": flash_attention,
    "tokamax.pallas_mosaic_tpu_ragged_dot": ragged_dot,
    "tokamax.pallas_mosaic_tpu_linear_softmax_cross_entropy_loss": cross_entropy,
    "ragged_paged_attention(jax)": ragged_attention,
    "ragged_paged_attention_v2": ragged_attention,
    "ragged_paged_attention_v3": ragged_attention_v3,
}

UNMODELLED = {
    "mla_v2": "moves its pages by manual DMA; chip given as one of two",
    "fused_moe_v1": "moves everything by manual DMA; chip given as one of two",
    "megablox_gmm": "the row does not say which chip",
    "all_gather_matmul": "a collective over several chips",
    "maxtext.splash_attention/megablox": "a model's name instead of shapes",
    "recipe.splash/flash/gmm": "a model's name instead of shapes",
    "tokamax.pallas_mosaic_tpu_flash_attention_vjp": "the fused backward kernel is not declared here",
    "tokamax.pallas_mosaic_tpu_linear_softmax_cross_entropy_loss_vjp": "moves its gradients by manual DMA",
}
