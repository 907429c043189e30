# %% [markdown]
# # 6. A program: what the compiler makes of it, and how to keep it so
#
# What does a program take of a TPU's memory, and what does it copy? The compiler decides that, and it runs ahead of
# time on any machine: no TPU is needed, but `pip install 'layoutproof[tpu]'` is. Here a reshape that looks free is
# compiled for a v5e, explained, and kept out of the next release.

# %%
import os
import tempfile
from pathlib import Path

import layoutproof as lp

lp.show("f32[64,5,1024]", target="v5e")

# %% [markdown]
# A batch of 64 matrices of 5 rows, as the compiler keeps it when it may choose: it puts the batch into the tiles, so
# that five rows need not be padded to eight. Now a program that flattens the batch, as many do:

# %%
MODEL = """
def scores(x, w):
    batch, rows, columns = x.shape
    return x.reshape(batch * rows, columns) @ w
"""
os.chdir(tempfile.mkdtemp())
Path("model.py").write_text(MODEL.lstrip())

eight = lp.compile("model:scores", "f32[64,8,1024]", "f32[1024,512]", target="v5e")
print(eight)

# %% [markdown]
# With eight rows there is nothing to say: no padding, no copies. With five:

# %%
five = lp.compile("model:scores", "f32[64,5,1024]", "f32[1024,512]", target="v5e")
print(five)

# %% [markdown]
# Less work, and yet more bytes: the whole input is copied, twice. On a larger array that is most of the program's time.
#
# ## Why
# The reshape merges two dimensions. Whether that moves bytes is a question about two layouts, and its answer holds for
# every size:

# %%
before, after = "f32[B,N,1024]{2,1,0:T(8,128)}", "f32[B*N,1024]{1,0:T(8,128)}"
print(lp.ask("bitcast", before, after))

# %% [markdown]
# Eight rows fill a tile, five do not: every matrix of the batch would have to move up. Drawn for a small one, with the
# first element that moves:

# %%
lp.ask("bitcast", "f32[2,5,128]{2,1,0:T(8,128)}", "f32[10,128]{1,0:T(8,128)}")

# %% [markdown]
# So the batch should be padded once to eight rows, where it is made, or the sum over the five rows be written without
# the reshape.
#
# ## Keep it so
# A record is plain data. Two of them, of the main branch and of a change, are what the gate compares:

# %%
Path("main.json").write_text(eight.records[0].to_json())
Path("change.json").write_text(five.records[0].to_json())
changes = lp.gate("main.json", "change.json")
print(changes)

# %% [markdown]
# In a repository the program stands in a spec file, and `layoutproof gate --against main` does the same in CI:
#
# ```yaml
# programs:
#   scores: {function: "model:scores", args: ["f32[64,8,1024]", "f32[1024,512]"], target: v5e}
# checks:
#   - {copies: scores, at_most: 0 bytes}
#   - {peak_memory: scores, at_most: 8MiB}
# ```

# %%
SPEC = """
programs:
  scores: {function: "model:scores", args: ["f32[64,8,1024]", "f32[1024,512]"], target: v5e}
checks:
  - {copies: scores, at_most: 0 bytes}
  - {peak_memory: scores, at_most: 8MiB}
"""
Path("programs.yaml").write_text(SPEC)
print(lp.check(["programs.yaml"]))

# %% [markdown]
# ## A message explained
# What the compiler says when there is no room can be pasted, and is explained the same way:

# %%
print(lp.why("f32[1024,1024,4]{2,1,0:T(8,128)}"))

# %% [markdown]
# ## Exercises
# The answers below are wrong on purpose: change them until the verdict is *proved*.
#
# **1.** Which numbers of rows make the reshape free, for every batch? Answer with a condition on N.


# %%
def exercise_1(condition):
    return lp.ask("bitcast", before, after, where=condition)


print(exercise_1("N >= 8"))

# %% [markdown]
# **2.** The batch is padded where it is made. To how many rows must five grow at least, so that nothing is wasted?


# %%
def exercise_2(rows):
    assert 5 <= rows <= 8
    return lp.ask("padding", f"f32[64,{rows},1024]{{2,1,0:T(8,128)}}", at_most="0%")


print(exercise_2(6))

# %% [markdown]
# **3.** In bfloat16 tiles are `T(8,128)(2,1)`. Are nine rows free then? Find a number of rows above eight that is.


# %%
def exercise_3(rows):
    assert rows > 8
    return lp.ask(
        "bitcast", f"bf16[64,{rows},1024]{{2,1,0:T(8,128)(2,1)}}", f"bf16[{64 * rows},1024]{{1,0:T(8,128)(2,1)}}"
    )


print(exercise_3(9))
