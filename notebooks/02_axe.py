# %% [markdown]
# # Axe layouts, with proofs
#
# A blog post retells the Axe paper with code: layouts as D (shard), R (replicas) and O (offset), printing, forward and
# backward mapping. Here its examples are asked of layoutproof. Its printing and its one worked index are right; its
# forward mapping, its backward mapping and what it says of a sharded tensor need fixing, and each fix is proved.

# %%
import itertools

import layoutproof as lp
from layoutproof.algebra.axe import backward, canonical, forward, same, slice_, tile

# %% [markdown]
# ## The four layouts
# A tensor-core tile over two warps with a replica four warps away, a tensor sharded over a 2x2 mesh, and two
# accelerator memories. `matrix` prints the two lines of the paper: extents above strides.

# %%
layout_a = lp.read_layout("S[(8,2,4,2):(4@lane,1@warp,1@lane,1@reg)] + R[2:4@warp] + 5@warp on (8,16)")
layout_b = lp.read_layout("S[(2,32,2,64):(1@gpuid,128@m,2@gpuid,1@m)] on (64,128)")
layout_c = lp.read_layout("S[(2,128,512):(512@F,1@P,1@F)] on (256,512)")
layout_d = lp.read_layout("S[(2,128,112):(112@Col,1@Lane,1@Col)] on (256,112)")
for name, layout in (("layout_a", layout_a), ("layout_b", layout_b), ("layout_c", layout_c), ("layout_d", layout_d)):
    print(f"{name}:\n{layout.matrix()}\n")

# %% [markdown]
# ## Forward
# Element (2, 9) is digit (2, 1, 0, 1): lane 8, register 1, and warps 6 and 10, one for each replica.

# %%
places = lp.locate(layout_a, (2, 9))
print(places)
assert places == [{"lane": 8, "warp": 6, "reg": 1}, {"lane": 8, "warp": 10, "reg": 1}]

# %% [markdown]
# The blog's code runs `itertools.product` over *one* list of all replicas' steps. With one replica iter that is right;
# with two it gives E1 + E2 places where there are E1 * E2.

# %%
two_replicas = lp.read_layout("S[4:1] + R[2:4@warp] + R[2:8@warp]")
blog = [step for (step,) in itertools.product([d * s for e, s, _ in two_replicas.R for d in range(int(e))])]
ours = [place["warp"] for place in forward(two_replicas, (0,))]
print("blog", blog, "- all replicas", ours)
assert blog == [0, 4, 0, 8]
assert ours == [0, 4, 8, 12]
assert lp.ask("replicas_distinct", two_replicas).verdict is lp.Verdict.PROVED

# %% [markdown]
# The paper itself says that an element has as many places as replicas. Not always: six replicas can be four places.

# %%
print(lp.ask("replicas_distinct", "S[4:1] + R[(2,3):(2@a,2@a)]"))
assert len(forward(lp.read_layout("S[4:1] + R[(2,3):(2@a,2@a)]"), (0,))) == 4

# %% [markdown]
# ## Shapes are admitted, not wrapped
# A shape of 256 elements on a layout of 128 gives an answer in the blog's code, because `%` wraps. Here it is an error.

# %%
try:
    forward(layout_a, (7, 31), (8, 32))
except lp.LayoutError as error:
    print(error)
else:
    raise AssertionError("the shape (8, 32) was admitted")

# %% [markdown]
# ## Backward
# The blog looks at the first place, skips R, and divides axis by axis. All four steps can go wrong. The inverse image
# is a set of (index, replica): empty at a hole, two or more where elements collide.

# %%
assert backward(layout_a, places[0]) == [((2, 9), (0,))]
assert backward(layout_a, places[1]) == [((2, 9), (1,))]
print("a hole, warp 7:", backward(layout_a, {"warp": 7, "lane": 8, "reg": 1}))
assert backward(layout_a, {"warp": 7, "lane": 8, "reg": 1}) == []

padded = lp.read_layout("S[(4,32):(33,1)] on (4,32)")  # rows of 32 with one element of padding
wrong = sum((m // 33 % 4, m // 1 % 32) != (i, j) for i in range(4) for j in range(32) for m in [33 * i + j])
print(f"per-axis division finds {wrong} of 128 elements wrongly; the inverse image finds each:")
assert wrong == 96
assert all(backward(padded, {"m": 33 * i + j}) == [((i, j), ())] for i in range(4) for j in range(32))
print(lp.ask("injective", padded))

# %% [markdown]
# ## A sharded tensor is not compact
# layout_b shards rows and columns over four GPUs. Each holds 32 x 64 = 2,048 elements. The strides are those of the
# whole tensor's rows, so they lie spread over 4,032 places; a fitting local tensor has row stride 64.

# %%
spread = lp.ask("owners", layout_b, owner=["gpuid"]).figures
compact = lp.ask("owners", "S[(2,32,2,64):(1@gpuid,64@m,2@gpuid,1@m)] on (64,128)", owner=["gpuid"]).figures
print(spread, compact, sep="\n")
assert (spread["local_places"], spread["local_span"], spread["local_holes"]) == (2048, 4032, 1984)
assert (compact["local_places"], compact["local_span"], compact["local_holes"]) == (2048, 2048, 0)

# %% [markdown]
# ## What the post leaves out: the operations
# Equality of maps, whatever the spelling; tiling; slices, exact, with a reason where there is none. The paper's and
# TVM's rule for slices that wrap is wrong in one place: it gives 102, 103, 200, 201 for the slice below.

# %%
respelled = lp.read_layout("S[(8,2,2,2,2):(4@lane,1@warp,2@lane,1@lane,1@reg)] + R[2:-4@warp] + 9@warp")
assert same(layout_a, respelled)
print(canonical(respelled))
print(tile(lp.read_layout("S[(8,8):(8,1)]"), (8, 8), lp.read_layout("S[(2,3):(3,1)]"), (2, 3)))
wrapped = lp.read_layout("S[(2,2,4):(1000,100,1)]")
cut = slice_(wrapped, (16,), [(6, 10)])
print(cut)
assert cut
assert [forward(cut, (u,))[0]["m"] for u in range(4)] == [102, 103, 1000, 1001]
print(slice_(lp.read_layout("S[(4,4):(100,1)]"), (16,), [(3, 6)]))

# %% [markdown]
# And for all sizes at once:

# %%
print(lp.ask("same_map", "S[(N,M):(M,1)] on (N,M)", "S[N*M:1] on (N,M)"))
assert lp.ask("injective", "S[(N,4,8):(1@warpid,8@laneid,1@laneid)] on (N,32)").verdict is lp.Verdict.PROVED
