# %% [markdown]
# # A wrong Pallas kernel, found and fixed
#
# The matrix product that ships with JAX, `jax.experimental.pallas.ops.tpu.matmul`, divides its grid with `//` and does
# not check that blocks divide the matrices. JAX does not notice, the TPU compiler does not notice, and there is no
# error at run time. Needs jax; no TPU.

# %%
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu.matmul import matmul

import layoutproof as lp

# %% [markdown]
# ## Found before anything runs
# The function is traced with shapes only. On the command line the same is
#
#     layoutproof kernels jax.experimental.pallas.ops.tpu.matmul:matmul --arg f32[1000,1000] --arg f32[1000,1000] \
#         --kwarg "block_shape=(256, 256)" --kwarg block_k=256 --target v5e


# %%
def product(a: jax.Array, b: jax.Array) -> jax.Array:
    return matmul(a, b, block_shape=(256, 256), block_k=256)


square = jax.ShapeDtypeStruct((1000, 1000), jnp.float32)
found = lp.kernels(product, square, square, target="v5e")
print(found)
assert found.exit_code == 1
wrong = [f for f in found.findings if f.severity == "error" and f.verdict is lp.Verdict.REFUTED]
assert [f.question for f in wrong] == ["outputs_covered", "inputs_read", "inputs_read"]

# %% [markdown]
# ## What happens when it runs
# JAX's own interpreter for TPU kernels shows what the proof says: every element of a product of ones should be 1000.
# The three whole blocks of each sum give 768 (`inputs_read`: the tail of K is never read), and what no program writes
# is whatever was there, which it shows as NaN.

# %%
ones = jnp.ones((1000, 1000), jnp.float32)
with pltpu.force_tpu_interpret_mode():
    result = np.asarray(product(ones, ones))
print(result[:2, :3], f"{np.isnan(result).mean():.0%} NaN")
row, column = (256 * index for index in wrong[0].counterexample["block"])
assert np.isnan(result[row : row + 256, column : column + 256]).all()
assert (result[:768, :768] == 768).all()

# %% [markdown]
# ## Fixed
# Either the matrices are padded to whole blocks, or the blocks are chosen so that they divide the matrices. Both are
# proved, for this shape, for every property.


# %%
def padded(a: jax.Array, b: jax.Array) -> jax.Array:
    rows, columns = a.shape[0], b.shape[1]
    whole = ((0, -a.shape[0] % 256), (0, -a.shape[1] % 256)), ((0, -b.shape[0] % 256), (0, -b.shape[1] % 256))
    return product(jnp.pad(a, whole[0]), jnp.pad(b, whole[1]))[:rows, :columns]


def divided(a: jax.Array, b: jax.Array) -> jax.Array:
    return matmul(a, b, block_shape=(200, 1000), block_k=1000)


for fixed in (padded, divided):
    found = lp.kernels(fixed, square, square, target="v5e")
    print(found)
    assert found.exit_code == 0
    with pltpu.force_tpu_interpret_mode():
        assert (np.asarray(fixed(ones, ones)) == 1000).all()

# %% [markdown]
# ## Kept fixed
# A guard around a test, or `pytest --layoutproof` around all of them, finds the next one without a changed line.

# %%
try:
    with lp.guard(target="v5e"):
        jax.eval_shape(lambda a, b: product(a, b), square, square)
except lp.KernelError as error:
    print(str(error).splitlines()[0], "is refuted")
else:
    raise AssertionError("the guard saw nothing")
