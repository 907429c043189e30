import jax
from jax.experimental import pallas as pl


def mm(x):
    def body(x, o):
        o[...] = x[...]

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, grid=(4,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)
