# %% [markdown]
# # 4. Axe layouts and shardings: where is everything, and how often?
#
# [Axe](https://arxiv.org/abs/2601.19092) writes the layouts of threads, registers, memories and devices in one way: D
# says where an element goes, digit by digit; R, what is added for each of its replicas; O, where everything begins.
# Here are the paper's four examples, drawn, and what shardings of JAX and XLA are in the same words.

# %%
import layoutproof as lp

tensor_core = lp.read_layout("S[(8,2,4,2):(4@lane,1@warp,1@lane,1@reg)] + R[2:4@warp] + 5@warp on (8,16)")
lp.show(tensor_core)

# %% [markdown]
# A tile of a tensor core, 8x16, over the lanes, warps and registers of a GPU. Neighbours of one colour are in one lane;
# every element is in two warps, four apart, joined by `|`. The paper prints it as two lines, extents above strides:

# %%
print(tensor_core.matrix())
print(lp.locate(tensor_core, (2, 9)))

# %% [markdown]
# Are the replicas always at different places? And do two elements ever meet? Both are proved:

# %%
print(lp.ask("replicas_distinct", tensor_core))
print(lp.ask("injective", tensor_core))

# %% [markdown]
# ## A tensor over a mesh of devices
# 64x128 over 2x2 GPUs, split by rows and by columns. A large layout is drawn as the boxes in which places go on in
# equal steps:

# %%
mesh = lp.read_layout("S[(2,32,2,64):(1@gpuid,128@m,2@gpuid,1@m)] on (64,128)")
lp.show(mesh)

# %% [markdown]
# Each GPU holds 32 x 64 = 2,048 elements, but they reach over 4,032 places of its memory: the strides are those of the
# whole tensor's rows. The picture shows it, and the answer counts it:

# %%
print(lp.ask("owners", mesh, owner=["gpuid"]))

# %% [markdown]
# ## Two memories of accelerators
# SBUF of Trainium has 128 partitions P, tensor memory of Blackwell 128 lanes. Twice 128 rows go beside each other:

# %%
lp.show("S[(2,128,512):(512@F,1@P,1@F)] on (256,512)")

# %%
lp.show("S[(2,128,112):(112@Col,1@Lane,1@Col)] on (256,112)")

# %% [markdown]
# Does it fit? Two times 112 columns do; five times do not, and the answer names the first element that is outside.

# %%
print(lp.ask("in_bounds", "S[(2,128,112):(112@Col,1@Lane,1@Col)]", within="cuda"))
print(lp.ask("in_bounds", "S[(5,128,112):(112@Col,1@Lane,1@Col)]", within="cuda"))

# %% [markdown]
# ## Equal, whatever the spelling
# One map can be written in many ways: digits split, replicas counted from the other end. `same_map` decides whether two
# are the same, with all their replicas.

# %%
respelled = "S[(8,2,2,2,2):(4@lane,1@warp,2@lane,1@lane,1@reg)] + R[2:-4@warp] + 9@warp on (8,16)"
print(lp.ask("same_map", tensor_core, respelled))
print(lp.ask("same_map", "S[(N,M):(M,1)] on (N,M)", "S[N*M:1] on (N,M)"))

# %% [markdown]
# ## There and back
# The inverse is exact: each element at a place with the replica that it is, or the reason why there is none.

# %%
print(lp.inverse(tensor_core).at(lane=8, warp=10, reg=1))
print(lp.inverse(tensor_core).at(lane=8, warp=7, reg=1))

# %% [markdown]
# ## The operations
# `lp.algebra` tiles, slices, groups and adds layouts. A result is returned only if it satisfies the equation that
# defines the operation, for every element; else there is a reason.

# %%
axe = lp.algebra.axe
print(axe.tile(lp.read_layout("S[(8,8):(8,1)]"), (8, 8), lp.read_layout("S[(2,3):(3,1)]"), (2, 3)))
print(axe.slice_(lp.read_layout("S[(4,4):(100,1)]"), (16,), [(3, 6)]))

# %% [markdown]
# ## Shardings
# A sharding is a layout whose places are devices. JAX's, XLA's and Axe's spellings are read, drawn and compared:

# %%
lp.show("f32[7,12] sharded {mesh['x'=2,'y'=2], [{'y'}, {'x'}]}")

# %% [markdown]
# Seven rows over two devices: the second one holds three, and its shard is padded. Is what one function leaves on the
# devices what the next one needs there? `refines` asks whether every place that the first layout requires is one that
# the second provides:

# %%
whole_rows = "f32[8,12] sharded {mesh['x'=2,'y'=2], [{'x'}, {}]}"
split_rows = "f32[8,12] sharded {mesh['x'=2,'y'=2], [{'x'}, {'y'}]}"
needs = lp.ask("refines", whole_rows, split_rows)
print(needs)

# %% [markdown]
# The same layout in another language is given only where the equality is proved:

# %%
print(lp.convert(mesh, "sharding"))
print(lp.convert("S[(2,32,128):(1@gpuid,128@m,1@m)] + R[2:2@gpuid] on (64,128)", "sharding"))

# %% [markdown]
# ## Exercises
# The answers below are wrong on purpose: change them until the verdict is *proved*.
#
# **1.** Give each GPU its 32x64 elements without gaps: which row stride fits?


# %%
def exercise_1(row_stride):
    layout = f"S[(2,32,2,64):(1@gpuid,{row_stride}@m,2@gpuid,1@m)] on (64,128)"
    return lp.ask("owners", layout, owner=["gpuid"], dense=True)


print(exercise_1(128))

# %% [markdown]
# **2.** Six replicas written as `R[(2,3):(2@a,2@a)]` are at four places only. With which stride of the second iter are
# all six distinct?


# %%
def exercise_2(stride):
    return lp.ask("replicas_distinct", f"S[4:1] + R[(2,3):(2@a,{stride}@a)]")


print(exercise_2(2))

# %% [markdown]
# **3.** Write with mesh axes: rows over x, and everything on both devices of y.


# %%
def exercise_3(axes):
    written = f"f32[64,128] sharded {{mesh['x'=2,'y'=2], {axes}}}"
    return lp.ask("same_map", written, "f32[64,128] sharded {devices=[2,1,2]<=[4] last_tile_dim_replicate}")


print(exercise_3("[{'x'}, {'y'}]"))
