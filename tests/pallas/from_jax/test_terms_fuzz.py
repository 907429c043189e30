"""Index maps at random, traced by JAX: the terms give JAX's own numbers, or some part of them leaves int32."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="tracing needs the extra [jax]")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

from layoutproof.core.numbers import INTS  # noqa: E402
from layoutproof.core.operations import CONDITIONS  # noqa: E402
from layoutproof.core.term import Term  # noqa: E402
from layoutproof.pallas.from_jax.jaxpr_terms import terms_of  # noqa: E402

pytestmark = pytest.mark.slow

Map = Callable[[Any, Any], Any]
PROGRAMS = list(itertools.product(range(4), range(3)))


def number(value: Any) -> Any:
    return jnp.asarray(value).astype(jnp.int32)


def any_map(rng: random.Random, depth: int = 0) -> Map:
    """A number made of the program's indices; what is drawn is drawn once."""
    k, small = rng.randint(1, 9), rng.randint(-3, 3)
    leaves: list[Map] = [lambda i, j: i, lambda i, j: j, lambda i, j: jnp.int32(small)]
    if depth == 4 or rng.random() < 0.1:
        return rng.choice(leaves)
    a, b, c = (any_map(rng, depth + 1) for _ in range(3))
    if_ = any_condition(rng, depth + 1)
    narrow = rng.choice((jnp.int8, jnp.uint8, jnp.int16, jnp.uint16, jnp.uint32))
    mask, bits, top = rng.choice((-8, -2, -1, 0, 1, 5, 6, 7, 12, 255)), rng.randint(0, 4), rng.choice((0, 1, 28, 31))
    forms: list[Map] = [
        lambda i, j: a(i, j) + b(i, j),
        lambda i, j: a(i, j) - b(i, j),
        lambda i, j: a(i, j) * small,
        lambda i, j: a(i, j) // k + b(i, j) % k,
        lambda i, j: lax.div(a(i, j), jnp.int32(k)) - lax.rem(b(i, j), jnp.int32(k)),
        lambda i, j: (a(i, j) << bits) + (b(i, j) >> bits),
        lambda i, j: lax.shift_right_logical(a(i, j), jnp.int32(top)),
        lambda i, j: (a(i, j) & mask) + (b(i, j) | mask),
        lambda i, j: (a(i, j) ^ mask) - ~b(i, j),
        lambda i, j: jnp.where(if_(i, j), a(i, j), b(i, j)),
        lambda i, j: jnp.clip(a(i, j), -small, 5) + jnp.minimum(b(i, j), jnp.maximum(c(i, j), 1)),
        lambda i, j: lax.cond(if_(i, j), lambda: a(i, j), lambda: b(i, j)),
        lambda i, j: lax.switch(a(i, j), [lambda: b(i, j), lambda: c(i, j), lambda: i, lambda: j][: 1 + k % 4]),
        lambda i, j: lax.select_n(jnp.clip(a(i, j), 0, 2), b(i, j), c(i, j), i),
        lambda i, j: jnp.abs(a(i, j)) - jnp.sign(b(i, j)),
        lambda i, j: number(a(i, j).astype(narrow) * narrow(k) - narrow(1)),
        lambda i, j: number(a(i, j).astype(narrow) // narrow(k)) + number(b(i, j).astype(narrow) >> narrow(1)),
        lambda i, j: number(if_(i, j)) + jnp.square(a(i, j)),
    ]
    return rng.choice(forms)


def any_condition(rng: random.Random, depth: int) -> Map:
    a, b = any_map(rng, depth), any_map(rng, depth)
    which = rng.randint(0, 4)
    if which < 3 or depth >= 3:
        return [lambda i, j: a(i, j) < b(i, j), lambda i, j: a(i, j) == b(i, j), lambda i, j: a(i, j).astype(bool)][
            which % 3
        ]
    p, q = any_condition(rng, depth + 1), any_condition(rng, depth + 1)
    if which == 3:
        return lambda i, j: (p(i, j) & q(i, j)) | ~p(i, j)
    return lambda i, j: jnp.where(p(i, j), q(i, j), p(i, j) ^ q(i, j))


def parts(term: Term) -> Iterator[Term]:
    if term.op not in ("int", "name"):
        for inner in term.args:
            yield from parts(inner)
        if term.op not in CONDITIONS:
            yield term


@pytest.mark.parametrize("seed", range(120))
def test_terms_give_jaxs_numbers(seed: int) -> None:
    index = any_map(random.Random(seed))
    traced = jax.make_jaxpr(lambda i, j: number(index(i, j)))(jnp.int32(0), jnp.int32(0))
    (term,) = terms_of(traced, [Term("name", "i"), Term("name", "j")])
    columns = np.array(PROGRAMS, dtype=np.int32).T
    wanted = jax.jit(jax.vmap(lambda i, j: number(index(i, j))))(*columns)
    every = {str(part): part for part in parts(term)}.values()
    for (i, j), value in zip(PROGRAMS, wanted, strict=True):
        at = {"i": i, "j": j}
        if term.evaluate(at, INTS) != int(value):
            # int32 has wrapped, which `index_int32` refutes
            assert any(not -(2**31) <= part.evaluate(at, INTS) < 2**31 for part in every), (str(term), at, value)
