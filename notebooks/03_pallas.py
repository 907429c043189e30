# %% [markdown]
# # 3. Pallas: grids, blocks, and a kernel that is silently wrong
#
# [JAX's page on grids and BlockSpecs](https://docs.jax.dev/en/latest/pallas/grid_blockspec.html), example by example,
# drawn; then a matrix product that returns wrong numbers without a word: found, fixed, and proved, its body included.
# The kernels need `jax`; nothing here needs a TPU.

# %%
import layoutproof as lp

lp.show("s32[8,6] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2) out")

# %% [markdown]
# An array of 8x6, cut into blocks of 2x3, written by a grid of 4x2 programs. A cell of the upper picture is a block
# with the step that writes it; the lower one says when a block leaves the chip.
#
# ## The page's tables
# Its `show_program_ids` writes the index of each program into its block, as digits. `programs=True` draws the same
# from the index map alone; nothing runs.

# %%
lp.show("s32[8,6] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2) out", programs=True)

# %% [markdown]
# Blocks that reach past the array are allowed, as long as one element is inside. What is past the edge is hatched:

# %%
lp.show("s32[7,5] blockspec (2, 3) (i, j) -> (i, j) grid (4, 2) out")

# %% [markdown]
# Three grid dimensions, of which the index map uses two: each block is visited by ten programs in a row, the last wins.

# %%
lp.show("s32[8,6] blockspec (2, 3) (i, j, k) -> (i, j) grid (4, 2, 10) out", programs=True)

# %% [markdown]
# If those ten may run at the same time, the result depends on chance. That is a question, and its answer is a proof or
# two programs that collide:


# %%
def ten(third):
    """The same kernel; third: how the programs of the last dimension run, "parallel" or "arbitrary"."""
    out = {"name": "o", "array": "s32[8,6]", "block": [2, 3], "index": "(i, j, k) -> (i, j)"}
    grid = {"i": 4, "j": 2, "k": 10}
    return {"kernel": {"grid": grid, "outputs": [out], "semantics": ["parallel", "parallel", third]}}


print(lp.ask("parallel_writes", ten("parallel")))
print(lp.ask("parallel_writes", ten("arbitrary")))

# %% [markdown]
# Overlapping windows with padding, which the page calls unblocked, are `Element` dimensions today:

# %%
padded = {
    "blockspec": {
        "array": "s32[7,7]",
        "block": ["Element(2, (1, 0))", "Element(3, (2, 0))"],
        "index": "(i, j) -> (2 * i, 3 * j)",
        "grid": [4, 3],
        "role": "out",
    }
}
lp.show(padded, programs=True)

# %% [markdown]
# ## A mistake in an index map
# `i + 1` for `i`: the first block is never written, and the last program is outside of the array. JAX's interpreter
# clamps it and shows nothing.

# %%
shifted = "s32[8,6] blockspec (2, 6) (i) -> (i + 1, 0) grid (4,) out"
print(lp.ask("blocks_in_bounds", shifted))
print(lp.ask("outputs_covered", shifted))
lp.show(shifted)

# %% [markdown]
# ## A kernel that is silently wrong
# A matrix product whose last block of K reaches past the arrays. Every index map is right, every output is written, the
# compiler takes it. On a TPU what lies past the edge is whatever was there, and the sum takes it in.

# %%
import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def body(x_ref, y_ref, o_ref, acc_ref, *, mask, size, block):
    k = pl.program_id(2)

    @pl.when(k == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    x, y = x_ref[...], y_ref[...]
    if "x" in mask:
        x = jnp.where(k * block + jax.lax.broadcasted_iota(jnp.int32, x.shape, 1) < size, x, 0)
    if "y" in mask:
        y = jnp.where(k * block + jax.lax.broadcasted_iota(jnp.int32, y.shape, 0) < size, y, 0)
    acc_ref[...] += jnp.dot(x, y, preferred_element_type=jnp.float32)

    @pl.when(k == pl.num_programs(2) - 1)
    def _():
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)


def matmul(x, y, mask="", bm=256, bn=256, bk=512):
    (m, size), n = x.shape, y.shape[1]
    return pl.pallas_call(
        functools.partial(body, mask=mask, size=size, block=bk),
        grid=(pl.cdiv(m, bm), pl.cdiv(n, bn), pl.cdiv(size, bk)),
        in_specs=[pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)), pl.BlockSpec((bk, bn), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, y)


square = jax.ShapeDtypeStruct((1000, 1000), jnp.float32)

# %% [markdown]
# ## Found
# The function is traced with shapes only, and its body is read, not run. The answer names the program, the element that
# comes out wrong, the padding that it comes from, and what to write instead.

# %%
found = lp.kernels(matmul, square, square)
wrong = next(f for f in found.findings if f.severity == "error" and f.verdict is lp.Verdict.REFUTED)
print(wrong.reason)
print("fix:", wrong.fix)
found

# %% [markdown]
# ## Fixed, and proved
# Both operands are masked: `0 * undefined` is still undefined, so one mask is not enough. Every property of the grid
# and of the body is now proved, for every program and every element.

# %%
proved = lp.kernels(matmul, square, square, mask="xy")
print(str(proved).splitlines()[-1])

# %% [markdown]
# On the command line the same is `layoutproof kernels mymodule:matmul --args "f32[1000,1000], f32[1000,1000]"`, and in
# a test `with lp.guard(): ...` judges every Pallas call that is traced inside.
#
# ## Exercises
# The answers below are wrong on purpose: change them until nothing is refuted.
#
# **1.** Which operands must be masked? (`""`, `"x"`, `"y"`, `"xy"`)


# %%
def exercise_1(mask):
    return lp.kernels(matmul, square, square, mask=mask)


exercise_1("x")

# %% [markdown]
# **2.** The same without a mask: which block of K is right for 1000 x 1000?


# %%
def exercise_2(bk):
    return lp.kernels(matmul, square, square, bk=bk)


exercise_2(256)

# %% [markdown]
# **3.** Write the rows of an array from its last block to its first. The grid has 8 programs, the array 8 blocks.


# %%
def exercise_3(block_of_i):
    return lp.ask("outputs_covered", f"f32[1024,128] blockspec (128, 128) (i) -> ({block_of_i}, 0) grid (8,) out")


print(exercise_3("i // 2"))
