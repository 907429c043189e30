"""Schemas of tables: how they are said, and that real tables of that meaning, and no others, are as they say."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

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


@pytest.mark.fast
def test_every_schema_is_on_the_page() -> None:
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text()
    for name, schema in SCHEMAS.items():
        form = f"{name}({', '.join(f'{parameter}=..' for parameter in schema.parameters)})"
        assert f"| `{form}` | {schema.meaning} |" in page
