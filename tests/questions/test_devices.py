"""The evaluator on arrays of NumPy and of JAX, for every language: the places that `locate` gives one by one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.registry.read import map_of, read_layout
from tests.questions.test_expressions import LAYOUTS
from tests.said import Said, raises

pytestmark = pytest.mark.slow

CONSTANT = [text for text in LAYOUTS if not map_of(read_layout(text)).sizes()]


def first_replica(text: str) -> tuple[int, ...] | None:
    """None where a layout has one replica only, which then need not be named."""
    extents = map_of(read_layout(text)).replicas.extents
    return tuple(int(extent) - 1 for extent in extents) if any(extent != 1 for extent in extents) else None


@pytest.mark.parametrize("text", CONSTANT)
def test_a_table_on_a_device_is_the_table(text: str) -> None:
    """Every language, the last replica; of JAX's width of integers, on the device that was named."""
    jax = pytest.importorskip("jax")
    device = jax.devices("cpu")[0]
    found = lp.table(text, first_replica(text), device=device)
    assert isinstance(found, jax.Array)
    assert found.devices() == {device}
    np.testing.assert_array_equal(np.asarray(found), lp.table(text, first_replica(text)))


@pytest.mark.parametrize("library", ["numpy", "jax.numpy"])
@pytest.mark.parametrize("text", CONSTANT)
def test_many_elements_are_where_each_one_is(text: str, library: str) -> None:
    """Every language: indices in any shape, broadcast together."""
    xp = pytest.importorskip(library)
    m = map_of(read_layout(text))
    random = np.random.default_rng(0)
    shapes = [(3, 1), (1, 4), (3, 4)]
    indices = [xp.asarray(random.integers(0, extent, shapes[d % 3])) for d, extent in enumerate(m.domain.extents)]
    replica = first_replica(text)
    found = np.asarray(lp.evaluate(text, indices, replica))
    names = ["offset"] if m.memory is not None else m.range.names or [f"p{k}" for k in range(m.coordinates())]
    every = np.broadcast_arrays(*map(np.asarray, indices)) if indices else []
    shape = every[0].shape if every else ()
    assert found.shape == (shape if len(names) == 1 else (*shape, len(names)))
    for at in np.ndindex(shape):
        places = lp.locate(text, [int(entry[at]) for entry in every])
        place = [places[-1][name] for name in names]
        assert np.atleast_1d(found[at]).tolist() == place


def test_places_can_be_traced() -> None:
    """Inside of jit the function of the layout is compiled with the rest."""
    jax = pytest.importorskip("jax")
    text = "f32[6,5]{1,0:T(4,3)}"
    moved = jax.jit(lambda i, j: lp.evaluate(text, [i, j]))(np.array([1, 5]), np.array([4, 0]))
    assert moved.tolist() == lp.evaluate(text, [np.array([1, 5]), np.array([4, 0])]).tolist()


def test_large_numbers_are_exact_or_refused() -> None:
    """NumPy goes on in Python's integers; JAX without 64 bits says so."""
    text = "(i < 4611686018427387904) -> (i * 5 // 10)"
    last = 4611686018427387903
    assert lp.evaluate(text, [np.array([last])]).tolist() == [last * 5 // 10]
    with pytest.raises(lp.LayoutError, match="does not fit into 64 bits"):
        lp.evaluate("(i < 4611686018427387904) -> (i * 5)", [[last]])
    jnp = pytest.importorskip("jax.numpy")
    with raises(lp.LayoutError, Said("questions.places_range", bits=32, more=": set jax_enable_x64")):
        lp.evaluate("(i < 70000) -> (i * 70000)", [jnp.array([69999])])
    with raises(lp.LayoutError, Said("questions.places_range", bits=32, more=": set jax_enable_x64")):
        lp.table("(i < 70000) -> (i * 70000)", device="cpu")


@pytest.mark.parametrize(
    ("layout", "indices", "message"),
    [
        ("f32[3,5]{1,0}", [[0]], Said("questions.index_arrays", found=1, expected=2, layout="f32[3,5]{1,0}")),
        (
            "f32[3,5]{1,0}",
            [[0, 3], [0, 0]],
            Said("questions.index_outside", index=3, dimension=0, name="i", last=2, layout="f32[3,5]{1,0}"),
        ),
        (
            "f32[3,5]{1,0}",
            [[0], [-1]],
            Said("questions.index_outside", index=-1, dimension=1, name="j", last=4, layout="f32[3,5]{1,0}"),
        ),
        ("f32[3,5]{1,0}", [[0.5], [0]], Said("questions.index_dtype", dimension=0)),
        ("f32[3,5]{1,0}", [[0, 1], [0, 1, 2]], Said("questions.index_shapes", shapes="(2,) and (3,)")),
        ("f32[N,5]{1,0}", [[0], [0]], Said("questions.size_without_value", layout="f32[N,5]{1,0}", size="N")),
        ("(i < 3) -> (7 // i)", [[0, 1]], "divides by zero"),
        (
            "S[(2,3):(3,1)] + R[2:7]",
            [[0]],
            Said("questions.replica_missing", layout="S[(2,3):(3,1)] + R[2:7]", places=2),
        ),
    ],
)
@pytest.mark.parametrize("library", ["numpy", "jax.numpy"])
def test_bad_indices_are_refused(library: str, layout: str, indices: list[Any], message: Said | str) -> None:
    """The same rules on both kinds of array."""
    xp = pytest.importorskip(library)
    if message == "divides by zero" and library != "numpy":
        message = Said("questions.places_range")
    if isinstance(message, Said) and message.id == "questions.index_dtype":
        message = Said(message.id, dimension=0, found=str(xp.asarray([0.5]).dtype))
    with raises(lp.LayoutError, message):
        lp.evaluate(layout, [xp.asarray(array) for array in indices])


def test_devices_that_are_not_there_are_refused() -> None:
    pytest.importorskip("jax")
    with raises(lp.LayoutError, Said("questions.unknown_device", device="abacus")):
        lp.table("f32[3]{0}", device="abacus")
    with raises(lp.LayoutError, Said("questions.device_type", found="3")):
        lp.table("f32[3]{0}", device=3)


def test_empty_tables_and_indices() -> None:
    pytest.importorskip("jax")
    assert lp.table("f32[0,5]{1,0}", device="cpu").shape == (0, 5)
    assert lp.evaluate("f32[3,5]{1,0}", [[], []]).shape == (0,)


def test_one_of_several_devices_is_used() -> None:
    """A table goes to the device that is named, not to the first."""
    pytest.importorskip("jax")
    code = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
import jax, layoutproof as lp
found = lp.table("f32[3,5]{1,0:T(2,2)}", device=jax.devices()[2])
print(found.devices() == {jax.devices()[2]}, found.tolist() == lp.table("f32[3,5]{1,0:T(2,2)}").tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "True True\n", done.stderr
