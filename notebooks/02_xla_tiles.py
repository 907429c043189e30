# %% [markdown]
# # 2. XLA's tiles
#
# [XLA's page on tiled layouts](https://openxla.org/xla/tiled_layout) explains by example how arrays lie in a TPU's
# memory. Here each of its statements is asked of layoutproof, and what the page leaves to the reader is proved.

# %%
import numpy as np

import layoutproof as lp

figure_2 = lp.read_layout("bf16[4,8]{1,0:T(2,4)(2,1)}")
lp.show(figure_2)

# %% [markdown]
# That is the page's second figure, *tiles in tiles*: number for number. The second tile, `(2,1)`, puts two rows of a
# column beside each other, so that two 16-bit numbers share a 32-bit word.
#
# ## The first figure, and its other definition
# The page computes by hand that element (2, 3) of `f32[3,5]` in tiles of 2x2 is at 17:

# %%
figure_1 = lp.read_layout("f32[3,5]{1,0:T(2,2)}")
assert lp.locate(figure_1, (2, 3)) == [{"offset": 17}]
print(lp.ask("padding", figure_1))

# %% [markdown]
# Its second definition moves whole arrays: pad, reshape, transpose. NumPy does that, and both agree on every element:

# %%
array = np.arange(15).reshape(3, 5)
memory = np.pad(array, ((0, 1), (0, 1))).reshape(2, 2, 3, 2).transpose(0, 2, 1, 3).ravel()
assert np.array_equal(memory[lp.table(figure_1)], array)
print(memory)

# %% [markdown]
# And not only for 3x5 in 2x2. The page's formula holds for every array in every tile:

# %%
print(lp.ask("same_map", "f32[N,M]{1,0:T(a,b)}", "(i < N, j < M) -> (i // a, j // b, i % a, j % b)"))
print(lp.ask("bijective", "f32[N,M]{1,0:T(a,b)(c,d)}"))

# %% [markdown]
# ## Dimensions that are combined
# A `*` in a tile joins a dimension with the next one before the tile is laid: `[2,7,8,11,10]` in tiles `(*,*,2,*,3)`
# has the bytes of `[112,110]` in tiles `(2,3)`.

# %%
print(lp.ask("bitcast", "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", "f32[112,110]{1,0:T(2,3)}"))

# %% [markdown]
# ## At the size of real arrays
# A weight matrix of a language model, as a TPU v5e keeps it: too many elements for a page, so its tiles are drawn.

# %%
lp.show("bf16[1000,11008]", target="v5e")

# %% [markdown]
# ## Padding
# What holds nothing, exactly, and as a formula of the sizes. A small last dimension is the classic surprise: four
# columns in tiles of 128 take 32 times their bytes. Where the compiler may choose, it turns the array.

# %%
for layout in ("f32[1024,4]{1,0:T(8,128)}", lp.tpu_default("f32[1024,4]", target="v5e")):
    figures = lp.ask("padding", layout).figures
    print(f"{layout!s:26} {figures['unpadded_bytes']:>6} bytes take {figures['bytes']:>6}")
print("bf16[N,M] takes", lp.ask("padding", "bf16[N,M]{1,0:T(8,128)(2,1)}").figures["bytes"], "bytes")

# %% [markdown]
# It chooses by what an order costs, so one row more can turn a layout around:

# %%
for rows in (104, 105):
    print(lp.tpu_default(f"f32[{rows},100]", target="v5e"))

# %% [markdown]
# ## Bitcasts: when is a reshape free?
# Merging the two major dimensions moves bytes, unless rows come in whole tiles. The answer finds that condition:

# %%
before, after = "f32[K,N,128]{2,1,0:T(8,128)}", "f32[K*N,128]{1,0:T(8,128)}"
print(lp.ask("bitcast", before, after))
lp.ask("bitcast", "f32[2,3,4]{2,1,0:T(2,4)}", "f32[6,4]{1,0:T(2,4)}")

# %% [markdown]
# ## Exercises
# The answers below are wrong on purpose: change them until the verdict is *proved*.
#
# **1.** Under which condition on N is the reshape above free, for every K?


# %%
def exercise_1(condition):
    return lp.ask("bitcast", before, after, where=condition)


print(exercise_1("N % 4 == 0"))

# %% [markdown]
# **2.** `f32[3,5]` in tiles of 2x2 wastes 9 of 24 places. Find a tile that wastes none, of two rows or more.


# %%
def exercise_2(rows, columns):
    assert rows >= 2
    return lp.ask("padding", f"f32[3,5]{{1,0:T({rows},{columns})}}", at_most="0%")


print(exercise_2(2, 2))

# %% [markdown]
# **3.** A mask `pred[N,100]` is kept in tiles of (32,128). To how many columns can it grow, for no byte more?


# %%
def exercise_3(columns):
    return lp.ask("padding", f"pred[64,{columns}]{{1,0:T(32,128)}}", at_most="0%")


print(exercise_3(120))
