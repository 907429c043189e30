# %% [markdown]
# # The best block sizes of a kernel, with a proof
#
# The matrix product that ships with JAX takes its block sizes as arguments. Which are best? Not by trying them on a
# TPU: every candidate is traced with shapes, proved or refuted by all properties of kernels, and priced by the bytes
# it moves, its flops and its grid steps. Needs jax; where libtpu is installed the real compiler confirms. No TPU.

# %%
import importlib.util
from typing import Any

import jax

import layoutproof as lp

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


def search(size: int, tune: str, more: str = "", best: int = 3, headroom: str = "0%") -> dict[str, Any]:
    answer = lp.search(MATMUL.format(size=size, tune=tune, headroom=headroom) + more, best=best)
    print(answer)
    return answer.as_dict()


# %% [markdown]
# ## Naive
# One block size of 128 in every direction: legal, and slow. The model says why: each block of the left matrix is
# fetched again for every block of columns, and 32768 steps each cost something of their own. On the command line the
# text above is a file, and `layoutproof search FILE` prints the same.

# %%
naive = search(4096, "{bm: 128, bn: 128, bk: 128}")["best"][0]
assert naive["steps"] == 32**3

# %% [markdown]
# ## Best
# All 125 choices of powers of two from 256 on. Nothing is sampled: those that are not shown come later, or are refused
# for the reason that is printed, so nothing better exists by this model.

# %%
POWERS = "{bm: &p {from: 256, to: 4096, powers_of: 2}, bn: *p, bk: *p}"
answer = search(4096, POWERS)
best = answer["best"][0]
assert answer["verdict"] == "proved"
assert answer["certificate"]["covered"] == 5**3
print(f"{naive['bytes'] / best['bytes']:.1f}x fewer bytes, {naive['cost'] / best['cost']:.1f}x less time")

# %% [markdown]
# ## What the real compiler says
# Windows and scratch of the best fill VMEM to the last byte, and registers of the kernel's body spill there too.
# That is in no index map, so nobody but the compiler can say how much. `confirm: compiler` has libtpu compile what is
# found, ahead of time, and take the next where it refuses. `headroom: matmul` keeps free what matmuls were measured to
# need at most, and a file that says nothing what the worst measured body needs. Here nothing was: `headroom: 0%`.

# %%
if importlib.util.find_spec("libtpu"):
    confirmed = search(4096, POWERS, "confirm: compiler\n", best=1)
    assert confirmed["verdict"] == "proved"
    assert any(why.startswith("the compiler") for why in confirmed["refused"])
    taken = confirmed["best"][0]
else:
    print("libtpu is not installed: what matmuls need is kept free instead")
    taken = search(4096, POWERS, best=1, headroom="matmul")["best"][0]
assert best["cost"] <= taken["cost"] < naive["cost"]
assert taken["vmem"] < best["vmem"]

# %% [markdown]
# ## No answer is an answer
# At size 1000 no power of two divides, and this function forgets what is left over (the notebook before this one).
# So every candidate that costs little is refuted, and the search says for what.

# %%
none = search(1000, "{bm: [128, 256, 512], bn: [128, 256, 512], bk: [128, 256, 512]}")
assert none["verdict"] == "refuted"
assert {why.split()[0] for why in none["refused"]} == {"outputs_covered"}

# %% [markdown]
# How far should the matrices grow, so that no byte of them is padding? Then there are blocks again.

# %%
grown = lp.search({"target": "v5e", "padding": {"x": "bf16[1000,1000]{1,0:T(8,128)(2,1)}"}})
print(grown)
rows, columns = grown.as_dict()["padding"]["x"]["dims"]
assert (rows, columns) == (1000, 1024)
fixed = search(columns, "{bm: [128, 256, 512], bn: [128, 256, 512], bk: [128, 256, 512]}", best=1, headroom="matmul")
assert fixed["verdict"] == "proved"

# %% [markdown]
# The best really computes a product, in JAX's own interpreter for TPU kernels.

# %%
from jax.experimental.pallas import tpu as pltpu  # noqa: E402
from jax.experimental.pallas.ops.tpu.matmul import matmul  # noqa: E402

ones = jax.numpy.ones((columns, columns), "bfloat16")
bm, bn, bk = (fixed["best"][0]["values"][name] for name in ("bm", "bn", "bk"))
with pltpu.force_tpu_interpret_mode():
    assert (matmul(ones, ones, block_shape=(bm, bn), block_k=bk) == columns).all()
print(f"{columns} x {columns} by blocks of {bm} x {bn} x {bk}: right")
