# %% [markdown]
# # 1. One function, many numbers
#
# A layout says where each element of a tensor lies. Here it is one function, `place`, written with `+ - * // %` and
# nothing else. What changes is the kind of number that it is run on: integers say where one element is, arrays where
# all are, symbols give the formula, sets give proofs for every size at once.

# %%
import layoutproof as lp

tiled = lp.read_layout("f32[3,5]{1,0:T(2,2)}")
lp.show(tiled)

# %% [markdown]
# A 3x5 array in tiles of 2x2: the upper picture is the array as you index it, the lower one memory in its order.
# Hatched places are padding. Every number in both comes from the same function.
#
# ## Integers: where is one element?

# %%
lp.locate(tiled, (2, 3))

# %% [markdown]
# And back: what is at a place? An element, padding, or nothing.

# %%
print(lp.inverse(tiled).at(offset=17))
print(lp.inverse(tiled).at(offset=9))

# %% [markdown]
# ## Arrays: where are all of them?
# `table` is the function on NumPy arrays. `pack` moves a real array into the layout's memory, `unpack` brings it back.

# %%
import numpy as np

print(lp.table(tiled))
array = np.arange(15, dtype=np.float32).reshape(3, 5)
memory = lp.pack(tiled, array)
print(memory.view("f4").astype(int))
assert np.array_equal(lp.unpack(tiled, memory), array)

# %% [markdown]
# ## Symbols: the formula
# The same function on symbols. `N` and `M` are any sizes, `a` and `b` any tile.

# %%
found = lp.as_sympy("f32[N,M]{1,0:T(a,b)}")
print("offset ", found.offset)
print("padding", found.padding)

# %% [markdown]
# ## Sets and solvers: every size at once
# A property is one formula that says what a violation looks like. If there is none, it is *proved*; if there is one,
# it is *refuted*, and you are shown the smallest; if no engine decides it within a budget of steps, it is *unknown*.
# There is no fourth answer, and `bool(answer)` raises, because three outcomes do not fit into two.

# %%
print(lp.ask("injective", "f32[N,M]{1,0:T(a,b)}"))

# %% [markdown]
# Every 2-D array in every tile: no two elements share a place. That line is a proof, not a test of some sizes. Now a
# layout with a mistake, rows of five elements that begin four apart:

# %%
wrong = lp.ask("injective", "f32[3,5] strides (4,1)")
print(wrong)
wrong

# %% [markdown]
# The two elements that collide are framed. Of an array with any number of rows the answer also says when it is right:

# %%
print(lp.ask("injective", "f32[N,5] strides (4,1)"))

# %% [markdown]
# ## Your own function
# A layout need not have a name. Any function of `+ - * // %` is one, as text or in Python.

# %%
swapped = lp.index_map(lambda i, j: (i // 2, j, i % 2), shape=[4, 6])
print(lp.ask("injective", swapped))
print(lp.locate(swapped, (3, 5)))
print(lp.ask("same_map", "(i < N, j < M) -> (i // 8, j // 128, i % 8, j % 128)", "f32[N,M]{1,0:T(8,128)}"))

# %% [markdown]
# ## Exercises
# Each is a function that asks layoutproof. The answers below are wrong on purpose: change them until the verdict is
# *proved*.
#
# **1.** How far apart must rows begin, so that the 3x5 array lies row after row without a gap?


# %%
def exercise_1(row_stride):
    return lp.ask("same_map", f"f32[3,5] strides ({row_stride},1)", "f32[3,5]{1,0}")


exercise_1(4)

# %% [markdown]
# **2.** Write the offset of element (i, j) of an N x 4 array that is stored column after column, for every N.


# %%
def exercise_2(offset):
    return lp.ask("same_map", f"(i < N, j < 4) -> ({offset})", "f32[N,4] strides (1,N)")


print(exercise_2("4 * i + j"))

# %% [markdown]
# **3.** `(i + j) % 8` puts 8 x 8 elements into 8 places. Add a second coordinate, so that no two share a place.


# %%
def exercise_3(second):
    return lp.ask("injective", f"(i < 8, j < 8) -> ((i + j) % 8, {second})")


print(exercise_3("i + j"))
