"""Schemas of tables: how they are said, and that real tables of that meaning, and no others, are as they say."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.kernel.table_assumptions import check_assumption, with_assumptions
from layoutproof.kernel.table_schemas import SCHEMAS, written_out
from layoutproof.pallas.witnesses import broken

LIST = "t is block_list(below=4, columns=u, columns_below=4, steps=3)"


def said(tables: dict[str, Any], *texts: str) -> str | None:
    """What some arrays break of what is said of them."""
    held = {name: np.array(entries) for name, entries in tables.items()}
    kernel = Kernel("k", (4,), ("g0",), (), tables=tuple(Table(name, array.shape) for name, array in held.items()))
    return broken(with_assumptions(kernel, texts), held, {})


@pytest.mark.fast
@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        ("t is cu_seqlens(total=8)", [0, 3, 3, 8], [0, 3, 2, 8]),
        ("t is cu_seqlens(total=8)", [0, 0, 0, 8], [0, 3, 3, 7]),
        ("t is cu_seqlens(total=8)", [0, 8, 8, 8], [1, 3, 3, 8]),
        ("t is page_table(pages=4)", [[3, 0], [1, 1]], [[3, 0], [4, 1]]),
        ("t is lengths(most=4)", [4, 0, 1], [4, 5, 1]),
        ("t is group_sizes(total=5)", [4, 0, 1], [4, 1, 1]),
        ("t is permutation(of=3)", [2, 0, 1], [2, 0, 2]),
        ("t is sorted_ids(below=3)", [0, 2, 2], [0, 2, 1]),
    ],
)
def test_a_schema_says_what_tables_of_its_meaning_hold(text: str, right: Any, wrong: Any) -> None:
    assert said({"t": right}, text) == ""
    assert said({"t": wrong}, text) != ""


@pytest.mark.fast
def test_slices_are_in_their_array_and_apart() -> None:
    lengths = {"u": [3, 0, 2]}
    assert said({"t": [5, 8, 0], **lengths}, "t is slices(lengths=u, of=8)") == ""
    assert said({"t": [6, 8, 0], **lengths}, "t is slices(lengths=u, of=8)") != ""
    assert said({"t": [5, 8, -1], **lengths}, "t is slices(lengths=u, of=8)") != ""
    assert said({"t": [5, 8, 3], **lengths}, "t is disjoint_slices(lengths=u, of=8)") == ""
    assert said({"t": [5, 8, 4], **lengths}, "t is slices(lengths=u, of=8)") == ""
    assert said({"t": [5, 8, 4], **lengths}, "t is disjoint_slices(lengths=u, of=8)") != ""
    rows = "t is disjoint_slice_rows(starts=1, lengths=0, of=8)"
    assert said({"t": [[3, 0, 2], [5, 8, 3]]}, rows) == ""
    assert said({"t": [[3, 0, 2], [5, 8, 4]]}, rows) != ""
    assert said({"t": [[3, 0, 2], [6, 8, 0]]}, "t is slice_rows(starts=1, lengths=0, of=8)") != ""


@pytest.mark.fast
def test_a_list_of_blocks_rises_within_each_row() -> None:
    # behind the steps nothing is said of columns
    assert said({"t": [0, 0, 3, 3], "u": [1, 2, 0, 0]}, LIST) == ""
    assert said({"t": [0, 0, 3, 3], "u": [2, 1, 0, 0]}, LIST) != ""
    assert said({"t": [0, 3, 2, 3], "u": [1, 2, 0, 0]}, LIST) != ""


@pytest.mark.fast
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("t is cu_seqlen(total=8)", "'cu_seqlen' is no schema of tables; there are cu_seqlens, group_tiles"),
        ("t is cu_seqlens()", "is written cu_seqlens(total=..)"),
        ("t is cu_seqlens(8)", "is written cu_seqlens(total=..)"),
        ("t is cu_seqlens(total=8, pages=2)", "is written cu_seqlens(total=..)"),
        ("t is page_table(pages=)", "is written page_table(pages=..)"),
        ("t is lengths(most=1, most=2)", "is written lengths(most=..)"),
        ("t is cu_seqlens", "not 'cu_seqlens'"),
    ],
)
def test_what_is_no_schema_says_why(text: str, problem: str) -> None:
    with pytest.raises(LayoutError) as raised:
        check_assumption(text)
    assert problem in str(raised.value)


@pytest.mark.fast
def test_indices_below_zero_count_from_the_end() -> None:
    """They said nothing, since no table has such a place."""
    assert said({"t": [1, 2, 3]}, "t[-1] == 3; t[-3] == 1") == ""
    assert said({"t": [1, 2, 3]}, "t[-1] == 2") == "t[-1] == 2"
    assert said({"t": [[1, 2], [3, 4]]}, "t[i, -1] == 2 * i + 2; t[0, -2] == 1") == ""
    assert written_out("t[-1] == 2") is None
    check_assumption("args[4] is cu_seqlens(total=8)")


@pytest.mark.parametrize("empty", [False, True])
def test_the_metadata_of_grouped_products_is_as_their_schemas_say(empty: bool) -> None:
    """That of the JAX that is installed, for groups of any sizes; and with one entry changed it is not."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    gmm = importlib.import_module("jax.experimental.pallas.ops.tpu.megablox.gmm")
    made = jax.jit(gmm.make_group_metadata, static_argnames=("m", "tm", "num_nonzero_groups", "visit_empty_groups"))
    random = np.random.default_rng(5)
    for _ in range(40):
        ends = np.sort(random.choice([0, 128, 384, 512, *random.integers(0, 513, 4)], 3))
        sizes = np.diff([0, *ends, 512]).astype(np.int32)
        tables, steps = made(
            group_sizes=sizes, m=512, tm=128, start_group=np.int32(0), num_nonzero_groups=4, visit_empty_groups=empty
        )
        offsets, groups, tiles = map(np.asarray, tables)
        texts = _grouped(int(steps), empty)
        held = {"offsets": offsets, "groups": groups, "tiles": tiles}
        assert said(held, *texts) == "", sizes
        # a step of an empty group may lie in either of two tiles
        if not empty:
            moved = tiles.copy()
            moved[int(random.integers(0, int(steps)))] += 1
            assert said({**held, "tiles": moved % 4}, *texts) != "", sizes


def _grouped(steps: int, empty: bool) -> Sequence[str]:
    given = f"groups=4, offsets=offsets, tiles=tiles, tile=128, total=512, steps={steps}"
    onto = [f"groups[:{steps}] is onto"] if empty else []
    return ["offsets is cu_seqlens(total=512)", f"groups is group_tiles({given})", *onto]


MASK = "t is {}(blocks=4, kinds=kinds, masks=masks, partial={})"


def _splash(seed: int) -> Any:
    """The wheel's splash attention of 512 by 512 under a mask at random, of blocks of 128."""
    attention = "jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_"
    kernel, masks = (importlib.import_module(attention + part) for part in ("kernel", "mask"))
    random = np.random.default_rng(seed)
    seen = np.kron(random.integers(0, 3, (4, 4)), np.ones((128, 128), np.int64))
    held = (seen == 2) | ((seen == 1) & (random.random((512, 512)) < 0.5))
    held[:, 0] = True
    sizes = dict.fromkeys(("q", "kv", "kv_compute", "q_dkv", "kv_dkv", "kv_dkv_compute", "q_dq", "kv_dq"), 128)
    blocks = kernel.BlockSizes(**{f"block_{name}": size for name, size in sizes.items()})
    mask = masks.MultiHeadMask([masks.NumpyMask(held)])
    return kernel.make_splash_mha(mask, block_sizes=blocks, head_shards=1, q_seq_shards=1)


def test_the_tables_of_splash_attention_are_as_their_schemas_say() -> None:
    """Those of the JAX that is installed, for masks at random; and with one step done twice they are not."""
    pytest.importorskip("jax", reason="JAX is not installed")
    for seed in range(6):
        made = _splash(seed)
        for info, name in ((made.fwd_mask_info, "splash_mask"), (made.dkv_mask_info, "splash_mask_dkv")):
            data, kinds, masks = (np.asarray(n, np.int64) for n in (info.data_next, info.block_mask, info.mask_next))
            text = MASK.format(name, len(np.asarray(info.partial_mask_blocks)))
            tables = {"t": data, "kinds": kinds, "masks": masks}
            assert said(tables, text) == "", seed
            assert said({**tables, "kinds": kinds + 1}, text) != "", seed
            along = 2 if name == "splash_mask" else 1
            pairs = np.argwhere(np.minimum(kinds, np.roll(kinds, -1, along)) > 0)
            first = next(tuple(at) for at in pairs.tolist() if at[along] < kinds.shape[along] - 1)
            after = tuple(n + (k == along) for k, n in enumerate(first))
            again = data.copy()
            again[after] = again[first]
            assert said({**tables, "t": again}, text) != "", seed


@pytest.mark.slow
def test_splash_attention_whose_mask_is_an_argument_is_proved_under_the_schema() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    leaves, tree = jax.tree.flatten(_splash(0))
    x = jax.ShapeDtypeStruct((1, 512, 128), np.float32)

    def attend(leaves: Any, q: Any, k: Any, v: Any) -> Any:
        return jax.tree.unflatten(tree, leaves)(q, k, v)

    partial = leaves[3].shape[0]
    schema = f"prefetch0 is splash_mask(blocks=4, kinds=prefetch1, masks=prefetch2, partial={partial})"
    given = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
    assert lp.kernels(attend, given, x, x, x).exit_code == 3
    assert lp.kernels(attend, given, x, x, x, assume=[schema]).exit_code == 0


@pytest.mark.fast
def test_every_schema_is_on_the_page() -> None:
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text()
    for name, schema in SCHEMAS.items():
        form = f"{name}({', '.join(f'{parameter}=..' for parameter in schema.parameters)})"
        assert f"| `{form}` | {schema.meaning} |" in page
