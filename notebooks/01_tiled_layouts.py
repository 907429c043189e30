# %% [markdown]
# # Tiled layouts, with proofs
#
# XLA's document on tiled layouts explains by example how TPU arrays lie in memory. Here each of its statements is
# asked of layoutproof, and what the document leaves to the reader is proved. Open it in Jupyter with jupytext, or run
# it as it is.

# %%
import numpy as np

import layoutproof as lp

# %% [markdown]
# ## Figure 1: a 3x5 array in 2x2 tiles
# Tiles are laid over the array in row-major order; elements within a tile too. Dots are padding.

# %%
figure1 = lp.read_layout("f32[3,5]{1,0:T(2,2)}")
print(lp.show(figure1))

# %% [markdown]
# The document computes by hand that element (2, 3) is at 17.

# %%
assert lp.locate(figure1, (2, 3)) == [{"offset": 17}]
print(lp.ask("padding", figure1).figures)

# %% [markdown]
# ## The other definition: pad, reshape, transpose
# The document gives a second definition, as moves of whole arrays. NumPy does them; both agree on every element.

# %%
array = np.arange(15, dtype=np.float32).reshape(3, 5)
memory = np.pad(array, ((0, 1), (0, 1))).reshape(2, 2, 3, 2).transpose(0, 2, 1, 3).ravel()
assert np.array_equal(memory[lp.table(figure1)], array)
print(memory)

# %% [markdown]
# ## Figure 2: tiles in tiles
# `(2,4)(2,1)` is the shape of the bfloat16 format: the second tile puts two rows of a column side by side, so that
# two 16-bit values share a 32-bit word.

# %%
print(lp.show("f32[4,8]{1,0:T(2,4)(2,1)}"))

# %% [markdown]
# ## What the document does not say: for all shapes
# No two elements of any bfloat16 matrix share a place, whatever its size, and the padding has a closed form.

# %%
bf16 = "bf16[N,M]{1,0:T(8,128)(2,1)}"
assert lp.ask("bijective", bf16).verdict is lp.Verdict.PROVED
print(lp.ask("padding", bf16).figures["bytes"])

# %% [markdown]
# ## When is a reshape free?
# Merging the two major dimensions of a tiled array moves bytes unless rows come in whole tiles. The condition is
# found, each alternative of it is proved, and the smallest element that moves otherwise is shown.

# %%
free = lp.ask("bitcast", "f32[a,b,c]{2,1,0:T(8,128)}", "f32[a*b,c]{1,0:T(8,128)}")
print(free)
print(free.figures["holds_when"], "-", free.figures["holds_when_is"])
assert free.figures["holds_when"] == "b % 8 == 0 or a == 1"

# %% [markdown]
# ## One row more
# TPU compilers choose the order of dimensions by how much padding it costs, so that one row more can flip a layout.

# %%
for rows in (104, 105):
    print(lp.tpu_default(f"f32[{rows},100]", target="v5e"))
