"""Functions over several devices against their references on one: each wrong twin is refuted, each right one is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import layoutproof as lp
from tests.values.device_cases import LINE, PLANE, RIGHT, cases, over
from tests.values.sharded_layer import arguments, layer, layers, sharded

pytestmark = pytest.mark.slow

CASES = cases()


@pytest.mark.parametrize(
    ("reference", "args", "function", "right"),
    [
        pytest.param(reference, args, function, kind in RIGHT, id=f"{name}: {kind}")
        for name, reference, args, kinds in CASES
        for kind, function in kinds.items()
    ],
)
def test_sharded_computes_what_one_device_does(
    reference: Callable[..., Any], args: tuple[str, ...], function: Callable[..., Any], right: bool
) -> None:
    found = lp.same(function, reference, *args)
    assert found.verdict.value == ("sampled" if right else "refuted"), found.reason


def test_there_are_as_many_wrong_ones_as_the_names_say() -> None:
    assert sum(kind not in RIGHT for *_, kinds in CASES for kind in kinds) >= 24


@pytest.mark.parametrize("checked", [False, True])
def test_devices_that_hold_different_numbers_under_one_name(checked: bool) -> None:
    """The answer names both devices and the element; a result that is the same everywhere is none of it."""
    own = over(lambda x: x.sum(0), PLANE, P("x", None), P())
    found = lp.same(own, lambda x: x[:2].sum(0), "f32[4,8]")
    assert found.verdict.value == "refuted"
    assert "the same on device (x=0, y=0) and device (x=1, y=0), and [0] differs" in found.reason
    assert "out of bounds" not in found.reason
    everywhere = over(lambda x: lax.psum(x.sum(0), "x"), PLANE, P("x", None), P(), checked)
    assert lp.same(everywhere, lambda x: x.sum(0), "f32[4,8]").verdict.value == "sampled"


def test_a_reference_that_differs_between_devices_says_nothing_of_the_function() -> None:
    own = over(lambda x: x.sum(0), LINE, P("d", None), P())
    found = lp.same(lambda x: x.sum(0), own, "f32[4,8]")
    assert found.verdict.value == "unknown"
    assert "the reference" in found.reason


def test_meshes_inside_meshes() -> None:
    def outer(by: str) -> Any:
        def f(x: Any) -> Any:
            def inner(x: Any) -> Any:
                return lax.psum(x, "y") + lax.axis_index("y")

            y = jax.shard_map(inner, in_specs=P(None, "y"), out_specs=P(), axis_names={"y"}, check_vma=False)(x)
            return lax.psum(y, "x") if by else y

        return jax.shard_map(f, mesh=PLANE, in_specs=P("x", None), out_specs=P(), axis_names={"x"}, check_vma=False)

    def theirs(x: Any) -> Any:
        return x.reshape(2, 2, 4, 2).sum((0, 2))

    found = lp.same(outer("x"), theirs, "f32[4,8]")
    assert found.verdict.value == "refuted"
    assert "y=1" in found.reason


def test_a_collective_that_some_devices_do_not_reach_is_unknown() -> None:
    """On hardware the others wait for ever."""

    def f(x: Any) -> Any:
        return lax.cond(lax.axis_index("d") == 0, lambda x: lax.psum(x, "d"), lambda x: x, x)

    found = lp.same(over(f, LINE, P("d", None), P("d", None)), lambda x: x, "f32[4,8]")
    assert found.verdict.value == "unknown"
    assert "a collective in a branch or loop that devices take otherwise" in found.reason


def test_loops_of_which_each_device_has_its_own_count() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < lax.axis_index("d"), lambda c: (c[0] + 1, c[1] * 2), (0, x))[1]

    ours = over(f, LINE, P("d", None), P("d", None))
    assert lp.same(ours, lambda x: x * jnp.array([1.0, 2, 4, 8])[:, None], "f32[4,8]").verdict.value == "sampled"
    assert lp.same(ours, lambda x: x * jnp.array([1.0, 2, 4, 4])[:, None], "f32[4,8]").verdict.value == "refuted"


def test_a_kernel_on_each_device() -> None:
    pl = pytest.importorskip("jax.experimental.pallas")

    def kernel(wrong: float) -> Any:
        def body(x: Any, o: Any) -> None:
            o[...] = x[...] * (lax.axis_index("d") + wrong)

        call = pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))
        return over(call, LINE, P("d", None), P("d", None))

    def theirs(x: Any) -> Any:
        return x * jnp.repeat(jnp.arange(1.0, 5.0), 8)[:, None]

    assert lp.same(kernel(1), theirs, "f32[32,128]").verdict.value in ("sampled", "unknown")
    assert lp.same(kernel(2), theirs, "f32[32,128]").verdict.value in ("refuted", "unknown")


FAULTS = ("every part begins at 0", "gathered over another axis", "residual in the sum")


@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_a_transformer_layer_over_three_axes(fault: str) -> None:
    """Parameters, heads and tokens in parts."""
    found = lp.same(sharded(fault), layer, *arguments(2, 8, 16, 32))
    assert found.verdict.value == ("refuted" if fault else "sampled"), found.reason


@pytest.mark.parametrize("gradient", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_transformer_layer_and_its_gradient(gradient: bool) -> None:
    small = arguments(2, 8, 16, 32) if not gradient else arguments(4, 64, 128, 512)
    assert lp.same(sharded(), layer, *small, gradient=True).verdict.value == "sampled"


@pytest.mark.parametrize("fault", ["", *(pytest.param(f, marks=pytest.mark.nightly) for f in FAULTS)])
def test_layers_in_a_scan(fault: str) -> None:
    """Each step has weights of its own, and communicates."""
    found = lp.same(sharded(fault, scanned=True), layers(), *arguments(2, 8, 16, 32, layers=3))
    assert found.verdict.value == ("refuted" if fault else "sampled"), found.reason


@pytest.mark.nightly
@pytest.mark.parametrize("policy", ["nothing_saveable", "dots_saveable", "everything_saveable"])
@pytest.mark.parametrize("fault", ["", "residual in the sum"])
def test_the_gradient_of_layers_that_are_computed_again(policy: str, fault: str) -> None:
    """Under each policy of what is kept, against layers that keep all."""
    ours = sharded(fault, scanned=True, remat=getattr(jax.checkpoint_policies, policy))
    found = lp.same(ours, layers(), *arguments(2, 8, 16, 32, layers=2), gradient=True)
    assert found.verdict.value == ("refuted" if fault else "sampled"), found.reason


def test_a_mesh_of_devices_that_are_there() -> None:
    """Unlike an abstract one it can be called."""
    mesh = Mesh(np.array(jax.devices()[:1]), ("d",))
    function = over(lambda x: lax.psum(x.sum(), "d") + lax.axis_index("d"), mesh, P("d"), P())
    assert lp.same(function, lambda x: x.sum(), "f32[8]").verdict.value == "sampled"
    assert lp.same(function, lambda x: x.sum() + 1, "f32[8]").verdict.value == "refuted"


def test_axes_that_are_part_of_the_type() -> None:
    """The argument says its sharding, for the function alone; what to give is said where it does not."""
    mesh = AbstractMesh((4,), ("d",), (AxisType.Explicit,))

    def function(x: Any) -> Any:
        return over(lambda x: lax.psum(x.sum(), "d"), mesh, P("d"), P())(x)

    struct = jax.ShapeDtypeStruct((8,), "float32", sharding=NamedSharding(mesh, P("d")))
    assert lp.same(function, lambda x: x.sum(), struct).verdict.value == "sampled"
    assert lp.same(function, lambda x: 2 * x.sum(), struct).verdict.value == "refuted"
    with pytest.raises(lp.LayoutError, match=r"the argument says its sharding: jax\.ShapeDtypeStruct"):
        lp.same(function, lambda x: x.sum(), "f32[8]")


def test_devices_that_are_not_there() -> None:
    with pytest.raises(lp.LayoutError, match="to trace, no devices are needed"):
        lp.same(lambda x: over(lambda x: x, jax.make_mesh((99,), ("d",)), P("d"), P("d"))(x), lambda x: x, "f32[99]")
