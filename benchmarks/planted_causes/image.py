"""A convolution and what follows it, on one v5e."""

import jax
import jax.numpy as jnp

EPSILON = 1e-6


def finish(x):
    return x * (1 + EPSILON)


def convolved(x, kernel):
    y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu(y)


def flat(y):
    return y.reshape(y.shape[0], -1)


def forward(x, kernel, w):
    y = convolved(x, kernel)
    z = jnp.concatenate([y, x], axis=3)
    y = flat(z)
    y = y @ w.reshape(w.shape[0], -1)
    return finish(y)
