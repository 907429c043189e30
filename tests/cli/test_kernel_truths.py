"""Real kernels as a user asks about them: the Pallas page's first example and the jax wheel's, wrong and right."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user_code import kernels_command

pytestmark = pytest.mark.slow

CODE = '''
import importlib

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def iota(size, grid, smem=False):
    """The first example of JAX's page on Pallas."""

    def iota_kernel(o_ref):
        i = pl.program_id(0)
        o_ref[i] = i

    more = {"out_specs": pl.BlockSpec(memory_space=pltpu.SMEM)} if smem else {}
    return pl.pallas_call(iota_kernel, out_shape=jax.ShapeDtypeStruct((size,), jnp.int32), grid=(grid,), **more)()


def matmul(x, y):
    from jax.experimental.pallas.ops.tpu.matmul import matmul

    return matmul(x, y, block_shape=(256, 256), block_k=256)


def flash(q, k, v):
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    return flash_attention(q, k, v, causal=True)


def splash(q, k, v):
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernels
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    mask = masks.MultiHeadMask([masks.CausalMask((q.shape[1], q.shape[1])) for _ in range(q.shape[0])])
    sizes = kernels.BlockSizes(block_q=128, block_kv=128, block_kv_compute=128)
    return kernels.make_splash_mha_single_device(mask, block_sizes=sizes)(q, k, v)


def gmm(lhs, rhs, sizes):
    return importlib.import_module("jax.experimental.pallas.ops.tpu.megablox.gmm").gmm(lhs, rhs, sizes)


def paged(q, k, v, lengths, pages):
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention_kernel as kernels

    return kernels.paged_attention(q, k, v, lengths, pages, pages_per_compute_block=4, inline_seq_dim=False)
'''
SQUARE = "f32[1000,1000], f32[1000,1000]"
HEADS = "bf16[2,512,128], bf16[2,512,128], bf16[2,512,128]"
GROUPS = "bf16[512,1000], bf16[4,1000,1000], s32[4]"
PAGES = "bf16[3,32,128], bf16[16,64,16,128], bf16[16,64,16,128], s32[3], s32[3,20]"
TABLES = "0 <= prefetch1 < 64; 0 <= prefetch2 < 2"
ROWS = (
    # what each program has of the rows: it begins where the one before has ended, from the first row to the last
    "max(prefetch0[prefetch1[0]], 128 * prefetch2[0]) == 0",
    "max(prefetch0[prefetch1[i + 1]], 128 * prefetch2[i + 1])"
    " == min(prefetch0[prefetch1[i] + 1], 128 * prefetch2[i] + 128) if i + 1 < grid1",
    "min(prefetch0[prefetch1[grid1 - 1] + 1], 128 * prefetch2[grid1 - 1] + 128) == 512",
)
GROUPED = (
    "0 <= prefetch0 <= 512; prefetch0 is monotone; 0 <= prefetch1 < 4; 0 <= prefetch2 < 4; prefetch2 is monotone; "
    "prefetch2[:grid1] is onto; 0 <= prefetch3 < 1"
)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One `kernels` command in a folder with that code: exit code, stdout and stderr."""
    pytest.importorskip("jax", reason="JAX is not installed")
    (tmp_path / "real_kernels.py").write_text(CODE)
    return kernels_command(capsys, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("name", "args", "options", "code", "said"),
    [
        ("iota", "8, 8", [], 0, ["1 proved"]),
        (
            "iota",
            "8, 9",
            [],
            1,
            ["refuted  body_in_bounds", "the body writes element 8 of dimension 0 of outputs, which"],
        ),
        ("iota", "8, 7", [], 1, ["refuted  outputs_stored", "stores element [7] of outputs"]),
        ("iota", "8, 8", ["--target", "v5e"], 1, ["refuted  body_accesses", "a number is stored into outputs in VMEM"]),
        ("iota", "8, 8", ["--target", "v5e", "--kwarg", "smem=True"], 0, ["1 proved"]),
        (
            "matmul",
            SQUARE,
            [],
            1,
            ["no program reads elements 768:1000 of dimension 1 of args[0]", "pl.cdiv(1000, 256)"],
        ),
        ("matmul", "f32[1024,1024], f32[1024,1024]", [], 0, ["1 proved"]),
        ("flash", "bf16[1,2,256,128], bf16[1,2,256,128], bf16[1,2,256,128]", [], 0, ["1 proved"]),
        # its tables are made of its mask, which is a constant
        ("splash", HEADS, [], 0, ["1 proved"]),
        ("splash", HEADS, ["--assume", "0 <= prefetch0 < 4"], 0, ["1 proved"]),
        # it masks what is behind 1000 itself
        ("gmm", GROUPS, ["--property", "undefined_values"], 0, ["undefined_values proved of the body"]),
        ("gmm", GROUPS, ["--property", "body_in_bounds"], 3, ['--assume "0 <= prefetch1 < 4" --where "grid1 <= 7"']),
        (
            "gmm",
            GROUPS,
            ["--property", "body_in_bounds", "--assume", "0 <= prefetch1 < 4", "--where", "grid1 <= 7"],
            0,
            ["body_in_bounds proved of the body"],
        ),
        (
            "paged",
            PAGES,
            ["--property", "outputs_stored", "--assume", f"0 <= prefetch0 < 321; {TABLES}", "--strict-tables"],
            1,
            ["no program of the visit of program (0, 0, 0, 0) stores element [0, 0, 0, 0] of outputs[0]"],
        ),
        (
            "paged",
            PAGES,
            ["--property", "outputs_stored", "--assume", f"1 <= prefetch0 < 321; {TABLES}"],
            0,
            ["outputs_stored proved of the body"],
        ),
        (
            "paged",
            PAGES,
            ["--property", "body_in_bounds", "--assume", f"0 <= prefetch0 < 321; {TABLES}"],
            0,
            ["proved"],
        ),
        ("paged", PAGES, ["--only", "grid"], 3, ["args[5], args[7] are moved by manual DMA (memory any)"]),
    ],
)
def test_what_is_said_of_real_kernels(
    run: Any, name: str, args: str, options: list[str], code: int, said: list[str]
) -> None:
    found, out, _ = run(f"real_kernels:{name}", "--args", args, *options)
    assert found == code, out
    assert [text for text in said if text not in out] == []


def test_the_grouped_matmul_is_proved_as_a_whole(run: Any) -> None:
    assumed = f"{GROUPED}; {'; '.join(ROWS)}"
    found, out, _ = run(
        "real_kernels:gmm", "--args", GROUPS, "--target", "v5e", "--assume", assumed, "--where", "grid1 <= 7"
    )
    assert found == 0, out
    assert "1 Pallas call: 1 proved, 0 refuted, 0 unknown" in out
    assert "8 of 8 questions about the body" in out
    # every condition is in the verdict, as it can be pasted
    given = next(line for line in out.splitlines() if line.startswith("  given "))
    said = (*GROUPED.split("; "), *ROWS, "grid1 <= 7")
    # prefetch3, the first group of a shard, is 0 in the code: nothing is assumed of it
    assert [text for text in said if text.replace("<= 512", "< 513") not in given] == ["0 <= prefetch3 < 1"]


@pytest.mark.parametrize("left_out", range(len(ROWS)))
def test_without_one_condition_on_its_rows_the_grouped_matmul_is_open(run: Any, left_out: int) -> None:
    rows = [text for k, text in enumerate(ROWS) if k != left_out]
    options = ("--property", "initialised", "--where", "grid1 <= 7", "--assume", "; ".join((GROUPED, *rows)))
    found, out, _ = run("real_kernels:gmm", "--args", GROUPS, *options)
    assert found == 3, out


@pytest.mark.parametrize(
    ("assumed", "where", "said"),
    [
        ("; ".join((GROUPED, *ROWS, "prefetch0[4] == 300")), "grid1 <= 7", "vacuous: no prefetch"),
        ("; ".join((GROUPED, *ROWS)), "grid1 <= 3", "vacuous"),
    ],
)
def test_rows_that_cannot_be_prove_nothing(run: Any, assumed: str, where: str, said: str) -> None:
    options = ("--property", "initialised", "--where", where, "--assume", assumed)
    found, out, _ = run("real_kernels:gmm", "--args", GROUPS, *options)
    assert found == 3, out
    assert said in out


def test_what_is_assumed_of_the_rows_is_true_of_what_the_library_computes() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    grouped = importlib.import_module("jax.experimental.pallas.ops.tpu.megablox.gmm")
    for sizes in ([128, 128, 128, 128], [1, 0, 510, 1], [0, 0, 512, 0], [200, 100, 12, 200], [512, 0, 0, 0]):
        (offsets, ids, tiles), count = grouped.make_group_metadata(
            group_sizes=jax.numpy.array(sizes, "int32"),
            m=512,
            tm=128,
            start_group=jax.numpy.array(0, "int32"),
            num_nonzero_groups=4,
            visit_empty_groups=False,
        )
        known = {f"prefetch{k}": [int(v) for v in table] for k, table in enumerate((offsets, ids, tiles))}
        known["grid1"] = int(count)
        assert set(known["prefetch2"][: known["grid1"]]) == set(range(4)), sizes
        for text in ROWS:
            said, _, guard = text.partition(" if ")
            for i in range(known["grid1"] - 1 if guard else 1):
                assert eval(said, {**known, "i": i}), (sizes, i, text)


FEW_PAGES = "bf16[3,4,128], bf16[2,64,16,128], bf16[2,64,16,128], s32[3], s32[3,20]"
FILLED = "0 <= prefetch1 < 64; 0 <= prefetch2 < 1; 1 <= prefetch3 < 2"


@pytest.mark.parametrize("args", [FEW_PAGES, pytest.param(PAGES, marks=pytest.mark.nightly)])
def test_paged_attention_is_proved_as_a_whole_where_no_length_is_zero(run: Any, args: str) -> None:
    options = ("--target", "v5e", "--assume", f"1 <= prefetch0 <= 320; {FILLED}")
    found, out, _ = run("real_kernels:paged", "--args", args, *options)
    assert found == 0, out
    assert "1 Pallas call: 1 proved, 0 refuted, 0 unknown" in out
    assert "8 of 8 questions about the body" in out


@pytest.mark.parametrize("args", [FEW_PAGES, pytest.param(PAGES, marks=pytest.mark.nightly)])
def test_paged_attention_as_a_whole_is_refuted_for_a_length_of_zero(run: Any, args: str) -> None:
    options = ("--target", "v5e", "--assume", f"0 <= prefetch0 <= 320; {FILLED}")
    found, out, _ = run("real_kernels:paged", "--args", args, *options)
    assert (found, "refuted if prefetch0 can be 0 (no program of the visit" in out) == (3, True), out
    found, out, _ = run("real_kernels:paged", "--args", args, *options, "--strict-tables")
    assert found == 1, out
    assert "no program of the visit of program (0, 0, 0, 0) stores element [0, 0, 0, 0] of outputs[0]" in out
    assert "reads=(prefetch0[0] = 0)" in out


@pytest.mark.parametrize(
    "assumed",
    [
        # the first copy may never be started, and a sequence may be longer than the grid: its last copy is not taken
        "1 <= prefetch0 <= 320; 0 <= prefetch1 < 64; 0 <= prefetch2 < 1; 0 <= prefetch3 < 2",
        f"1 <= prefetch0 <= 321; {FILLED}",
    ],
)
def test_paged_attention_is_not_proved_where_a_copy_may_be_missing_or_left(run: Any, assumed: str) -> None:
    options = ("--property", "dma_order", "--assume", assumed)
    found, out, _ = run("real_kernels:paged", "--args", FEW_PAGES, *options)
    assert found in (1, 3), out
