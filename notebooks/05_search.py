# %% [markdown]
# # 5. Search: from naive blocks to the compiler's yes
#
# Which block sizes are best for a matrix product? Not by trying them on a TPU: every candidate is traced with shapes,
# proved or refuted, and priced by the bytes that it moves, its flops and its grid steps. Where libtpu is installed, the
# real compiler confirms. The search needs `jax`; nothing here needs a TPU.

# %%
import importlib.util

import layoutproof as lp


def matmul(bm, bn, bk, size=4096):
    """The blocks of a matrix product, as a kernel without its body."""
    x = {"name": "x", "array": f"bf16[{size},{size}]", "block": [bm, bk], "index": "(i, j, k) -> (i, k)"}
    y = {"name": "y", "array": f"bf16[{size},{size}]", "block": [bk, bn], "index": "(i, j, k) -> (k, j)"}
    out = {"name": "o", "array": f"bf16[{size},{size}]", "block": [bm, bn], "index": "(i, j, k) -> (i, j)"}
    grid = {"i": -(-size // bm), "j": -(-size // bn), "k": -(-size // bk)}
    return {
        "kernel": {
            "name": "matmul",
            "grid": grid,
            "inputs": [x, y],
            "outputs": [out],
            "scratch": [{"array": f"f32[{bm},{bn}]"}],
            "semantics": ["parallel", "parallel", "arbitrary"],
        }
    }


lp.show(matmul(1024, 1024, 1024), target="v5e")

# %% [markdown]
# Which step of the grid sees which block, when blocks are moved, and what VMEM must hold. Everything that a search
# trades is in this picture: larger blocks are fetched less often, and fill VMEM.
#
# ## Naive
# One block size of 128 in every direction: legal, and slow. Each block of the left matrix is fetched again for every
# block of columns, and 32,768 steps each cost something of their own.

# %%
MATMUL = """
search: matrix product, {size} x {size}, bf16
target: v5e
trace: jax.experimental.pallas.ops.tpu.matmul:matmul
sizes: {{N: {size}}}
args: ["bf16[N,N]", "bf16[N,N]"]
kwargs: {{block_shape: "(bm, bn)", block_k: bk}}
tune: {tune}
flops: 2 * N * N * N
headroom: {headroom}
"""


def search(size, tune, more="", best=3, headroom="0%"):
    """The best of some block sizes. On the command line the text is a file: `layoutproof search FILE`."""
    return lp.search(MATMUL.format(size=size, tune=tune, headroom=headroom) + more, best=best)


naive = search(4096, "{bm: 128, bn: 128, bk: 128}")
print(naive)

# %% [markdown]
# ## Best
# All 125 choices of powers of two from 256 on. Nothing is sampled: those that are not shown come later, or are refused
# for a reason that `--why` prints, so nothing better exists by this model. That is what the certificate says.

# %%
found = search(4096, "{bm: &p {from: 256, to: 4096, powers_of: 2}, bn: *p, bk: *p}")
print(found)
best, slow = found.as_dict()["best"][0], naive.as_dict()["best"][0]
print(f"{slow['bytes'] / best['bytes']:.1f}x fewer bytes, {slow['cost'] / best['cost']:.1f}x less time by the model")

# %% [markdown]
# ## What the real compiler says
# Windows and scratch of the best fill VMEM to the last byte, and a kernel's registers spill there too. That is in no
# index map, so only the compiler can say how much. `confirm: compiler` has libtpu compile what is found, ahead of
# time and without a TPU, and takes the next where it refuses.

# %%
if importlib.util.find_spec("libtpu"):
    confirmed = search(4096, "{bm: [512, 1024], bn: 1024, bk: [512, 1024]}", "confirm: compiler\n", best=1)
    taken = confirmed.as_dict()["best"][0]["values"]
    print("the compiler takes", taken)
    print("it refused:", *confirmed.as_dict()["refused"])

# %% [markdown]
# ## No answer is an answer
# At size 1000 no power of two divides, and this function forgets what is left over. So every candidate is refuted, and
# the search says for what:

# %%
print(search(1000, "{bm: [128, 256, 512], bn: [128, 256, 512], bk: [128, 256, 512]}"))

# %% [markdown]
# How far should the matrices grow, so that no byte of them is padding?

# %%
print(lp.search({"target": "v5e", "padding": {"x": "bf16[1000,1000]{1,0:T(8,128)(2,1)}"}}))

# %% [markdown]
# ## Ready kernels
# The usual ones need no file: `layoutproof search matmul 4096 4096 4096`, attention, softmax, and others
# (`layoutproof explain search` lists them).

# %%
print(lp.search("matmul", sizes=[4096, 4096, 4096], target="v5e", best=2))

# %% [markdown]
# ## Exercises
# The answers below are wrong on purpose: change them until the verdict is *proved*.
#
# **1.** Find blocks for 1000 x 1000 that forget nothing. A block may be as long as the array.


# %%
def exercise_1(bm, bn, bk):
    return search(1000, f"{{bm: {bm}, bn: {bn}, bk: {bk}}}", best=1)


print(exercise_1(256, 256, 256))

# %% [markdown]
# **2.** Blocks of 2048 x 1024 do not fit into VMEM, 512 at a time. Find the next smaller ones that do.


# %%
def exercise_2(bm, bn):
    assert bm * bn >= 1024 * 1024
    return lp.ask("memory_budget", matmul(bm, bn, 512), target="v5e")


print(exercise_2(2048, 1024))

# %% [markdown]
# **3.** How many columns must `f32[1000,300]` have at least, so that no place holds padding?


# %%
def exercise_3(columns):
    assert 300 <= columns < 512
    return lp.ask("padding", f"f32[1000,{columns}]{{1,0:T(8,128)}}", at_most="0%")


print(exercise_3(320))
