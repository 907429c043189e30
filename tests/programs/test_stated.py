"""Rows of a program as its source states it."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="reading programs needs the extra [jax]")

import jax
import jax.numpy as jnp

from layoutproof.pallas.from_jax.programs import program_of
from layoutproof.programs.stated import stated


def turned(x: jax.Array) -> jax.Array:
    return jnp.flip(jnp.sin(x), 0)


def test_a_function_of_jax_is_at_the_place_of_its_call() -> None:
    """`jnp.flip` is traced once for all its calls, and its equations have no frames of the user's file."""
    rows = {row["op"]: row for row in stated(program_of(jax.make_jaxpr(turned)(jnp.zeros((8, 128)))))}
    assert rows["rev"]["places"] == rows["jit"]["places"] == rows["sin"]["places"]
    assert [place.rpartition("/")[2].partition(":")[0] for place in rows["rev"]["places"]][:1] == ["test_stated.py"]
