"""Kernels of several GPUs: random ones against every order of their steps, JAX's own with errors, what is refused."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="needs the extra layoutproof[jax]")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import mosaic_gpu as plgpu  # noqa: E402
from jax.sharding import AbstractMesh, AxisType, PartitionSpec  # noqa: E402

import layoutproof as lp  # noqa: E402
from layoutproof import Finding, Verdict  # noqa: E402
from layoutproof.kernel.kernel import Kernel  # noqa: E402
from layoutproof.pallas.from_jax.trace import kernels_of  # noqa: E402
from layoutproof.pallas.judge import judge  # noqa: E402
from tests.pallas.mosaic_gpu_ops import array, collective_matmul, on_devices, pretended  # noqa: E402
from tests.pallas.mosaic_gpu_pairs import PAIRS, F  # noqa: E402
from tests.pallas.mosaic_gpu_remote_pairs import SIGNALS, kernel, over, rows_of  # noqa: E402
from tests.pallas.mosaic_gpu_remote_random import built, drawn, faults  # noqa: E402
from tests.pallas.mosaic_gpu_thread_pairs import THREAD_PAIRS  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="of jax 0.10.2"),
]

TWO = (jax.ShapeDtypeStruct((128, 128), F),)
ASKED = {
    "race": {"device_races", "body_races", "dma_order"},
    "late": {"device_races"},
    "never": {"device_waits"},
    "unwritten": {"initialised"},
    "unstored": {"outputs_stored"},
}
"""Of each fault the questions that may speak of it."""


def open_or_wrong(function: Any, args: tuple[Any, ...]) -> list[Finding]:
    found = lp.kernels(function, *args, target="mosaic_gpu").findings
    return [f for f in found if f.asked and f.severity == "error" and f.verdict is not Verdict.PROVED]


def refuted(found: list[Finding]) -> set[str]:
    return {f.question for f in found if f.verdict is Verdict.REFUTED}


# random kernels


@pytest.mark.parametrize("seed", range(60))
def test_a_random_kernel_is_right_where_every_order_of_its_steps_is(seed: int) -> None:
    program = drawn(Random(seed))
    wrong, found = faults(program), open_or_wrong(*built(program))
    # what waits for ever leaves other things undone, too
    speaks = {f.question for f in found} if "never" in wrong else refuted(found)
    assert bool(found) == bool(wrong)
    assert all(ASKED[fault] & {f.question for f in found} for fault in wrong)
    assert "never" in wrong or speaks <= {question for fault in wrong for question in ASKED[fault]}


def test_random_kernels_are_right_and_wrong() -> None:
    every = [faults(drawn(Random(seed))) for seed in range(60)]
    assert set().union(*every) == set(ASKED)
    assert 20 < sum(not wrong for wrong in every) < 40


# JAX's own kernels, with an error

GATHER, SCATTER, PRODUCT = "all_gather_mgpu", "reduce_scatter_mgpu", "collective_matmul_mgpu"
WAITS = "pl.semaphore_wait(done_barrier, num_devices, decrement=False)"
TELLS = "plgpu.semaphore_signal_multicast(done_barrier, collective_axes=axis_name)"
ARRIVED = "semaphore_wait(received_sem, value=(device_offset + 1) * num_sms, decrement=False)"
PLANTED = {
    "gather: no wait": (GATHER, WAITS, "pass", "device_races"),
    "gather: one signal too few": (GATHER, WAITS, WAITS.replace("num_devices", "num_devices - 1"), "device_races"),
    "gather: one signal too many": (GATHER, WAITS, WAITS.replace("num_devices", "num_devices + 1"), "device_waits"),
    "gather: no signal": (GATHER, TELLS, "pass", "device_waits"),
    "gather: a row too far": (GATHER, "pl.ds(dev_idx * input", "pl.ds(1 + dev_idx * input", "body_in_bounds"),
    "gather: a tile too few": (GATHER, "input_gather_dim // gather_tile\n", "input_gather_dim // gather_tile - 1\n",
                               "outputs_stored"),
    "gather: all to one place": (GATHER, "pl.ds(dev_idx * input", "pl.ds(0 * input", "device_races"),
    "scatter: no wait": (SCATTER, WAITS, "pass", "device_races"),
    "scatter: one signal too few": (SCATTER, WAITS, WAITS.replace("num_devices", "num_devices - 1"), "device_races"),
    "scatter: a row too far": (SCATTER, "pl.ds(dev_idx * output", "pl.ds(1 + dev_idx * output", "body_in_bounds"),
    "product: reads alone awaited": (PRODUCT, "(0, wait_read_only=False)", "(0, wait_read_only=True)",
                                        "device_races"),
    "product: no wait for the copy": (PRODUCT, "plgpu.wait_smem_to_gmem(0, wait_read_only=False)", "pass",
                                      "device_races"),
    "product: a signal to itself": (PRODUCT, "device_id=send_dev_id)", "device_id=dev_id)", "device_races"),
    "product: no wait": (PRODUCT, f"pl.{ARRIVED}", "pass", "device_races"),
    "product: one signal too few": (PRODUCT, "+ 1) * num_sms", "+ 1) * num_sms - 1", "device_races"),
    "product: one signal too many": (PRODUCT, "+ 1) * num_sms", "+ 1) * num_sms + 1", "device_waits"),
    "product: a copy here": (PRODUCT, "remote_ref(scratch_ref, send_dev_id)", "remote_ref(scratch_ref, dev_id)",
                                  "body_races"),
    "product: nothing sent": (PRODUCT, "jnp.bool(n_idx == 0)", "jnp.bool(n_idx == 7)", "outputs_stored"),
    "product: rows of the next tile": (PRODUCT, "pl.ds(m_idx * cta_tile_m,", "pl.ds((m_idx + 1) * cta_tile_m,",
                                       "outputs_stored"),
}  # fmt: skip
"""Of each error: the file, what stands there, what stands there instead, and the question that speaks of it."""


def with_error(folder: Path, name: str, there: str, instead: str) -> Any:
    """A copy of a file of JAX with an error in it, as a module."""
    found = importlib.util.find_spec(f"jax.experimental.pallas.ops.gpu.{name}")
    text = Path(str(found and found.origin)).read_text("utf-8")
    assert there in text
    path = folder / f"{name}_with_error.py"
    path.write_text(text.replace(there, instead), "utf-8")
    module = ModuleType(path.stem)
    exec(compile(path.read_text("utf-8"), path, "exec"), module.__dict__)
    return module


def of_jax(name: str, own: Any) -> Any:
    """A kernel of JAX on 2 GPUs of 4 multiprocessors, and its arguments."""
    split = PartitionSpec("x")
    if name == GATHER:
        function = on_devices(lambda x: own.all_gather(x, axis_name="x"), 2, split, result=PartitionSpec())
        return function, (array((1024, 128), "float32"),)
    if name == SCATTER:
        columns = PartitionSpec(None, "x")
        function = on_devices(lambda x: own.reduce_scatter(x, axis_name="x"), 2, columns, result=columns)
        return function, (array((1024, 256), "float32"),)
    return collective_matmul(2, 128, 128, 256, own)


@pytest.mark.parametrize("name", PLANTED)
def test_an_error_in_a_kernel_of_jax_is_refuted(name: str, tmp_path: Path) -> None:
    file, there, instead, question = PLANTED[name]
    with pretended("h100", 2, cores=4):
        right = open_or_wrong(*of_jax(file, with_error(tmp_path, file, there, there)))
        wrong = open_or_wrong(*of_jax(file, with_error(tmp_path, file, there, instead)))
    assert not right
    assert question in refuted(wrong)


def test_a_product_of_several_tiles_fetches_what_is_still_multiplied() -> None:
    """With `delay_release=1` nothing waits for the last MMA of a tile before the next one is fetched."""
    with pretended("h100", 2, cores=4):
        found = open_or_wrong(*collective_matmul(2, 512, 128, 128))
    assert refuted(found) == {"dma_order"}


def test_the_product_is_right_whatever_the_number_of_multiprocessors() -> None:
    with pretended("h100", 2):
        assert not open_or_wrong(*collective_matmul(2, 128, 128, 128))


# what is refused, by its name


def takes_from_one(takes: bool) -> Any:
    """Two programs wait for one semaphore of their device."""

    def body(x: Any, o: Any) -> None:
        here = pl.get_global(SIGNALS)
        rows = pl.ds(lax.axis_index("i") * 32, 32)
        o[rows] = x[rows]
        pl.semaphore_signal(here, device_id=1 - lax.axis_index("x"))
        pl.semaphore_wait(here, 1 if takes else 2, decrement=takes)

    return over(2, lambda x: kernel(body, rows_of(x), grid=2)(x))


def along(axes: Any) -> Any:
    def body(x: Any, o: Any, done: Any) -> None:
        plgpu.multimem_store(x[...], o, axes)
        plgpu.semaphore_signal_multicast(done, collective_axes=axes)
        pl.semaphore_wait(done, 4, decrement=False)

    return over(4, lambda x: kernel(body, rows_of(x), [SIGNALS])(x), axes=("x", "y"))


def unordered() -> Any:
    def body(x: Any, o: Any, done: Any) -> None:
        plgpu.remote_ref(o, 1 - lax.axis_index("x"))[...] = x[...]
        pl.semaphore_signal(done, device_id=1 - lax.axis_index("x"))
        pl.semaphore_wait(done)

    def call(x: Any) -> Any:
        return plgpu.kernel(
            body,
            out_type=rows_of(x),
            scratch_types=[SIGNALS],
            compiler_params=plgpu.CompilerParams(unsafe_no_auto_barriers=True),
        )(x)

    return over(2, call)


def in_parallel() -> Any:
    def body(x: Any, o: Any, done: Any) -> None:
        other = 1 - lax.axis_index("x")
        plgpu.remote_ref(o, other)[...] = x[...]
        plgpu.semaphore_signal_parallel(plgpu.SemaphoreSignal(done, device_id=other))
        pl.semaphore_wait(done)

    return over(2, lambda x: kernel(body, rows_of(x), [SIGNALS])(x))


def scoped_in_a_loop() -> Any:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

        def turn(_: Any, carry: None) -> None:
            def scope(here: Any) -> None:
                pl.semaphore_signal(here, device_id=1 - lax.axis_index("x"))
                pl.semaphore_wait(here, decrement=False)

            pl.run_scoped(scope, SIGNALS)

        lax.fori_loop(0, 2, turn, None)

    return over(2, lambda x: kernel(body, rows_of(x))(x))


def of_nobody() -> Any:
    """A signal to a device that the mesh has not."""

    def body(x: Any, o: Any, done: Any) -> None:
        o[...] = x[...]
        pl.semaphore_signal(done, device_id=lax.axis_index("x") + 1)
        pl.semaphore_wait(done)

    return over(2, lambda x: kernel(body, rows_of(x), [SIGNALS])(x))


REFUSED = {
    "one thread takes": (lambda: takes_from_one(True), TWO),
    "has x, y": (lambda: along("x"), (jax.ShapeDtypeStruct((256, 128), F),)),
    "unsafe_no_auto_barriers": (unordered, TWO),
    "semaphore_signal_parallel": (in_parallel, TWO),
    "semaphores of several scopes": (scoped_in_a_loop, TWO),
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_is_not_known_is_refused_by_its_name(said: str) -> None:
    make, args = REFUSED[said]
    found = open_or_wrong(make(), args)
    assert Verdict.UNKNOWN in {f.verdict for f in found}
    assert Verdict.REFUTED not in {f.verdict for f in found}
    assert any(said in f.reason for f in found)


@pytest.mark.parametrize("programs", [132, 264])
def test_more_programs_than_multiprocessors_need_not_run_at_once(programs: int) -> None:
    def body(x: Any, o: Any, done: Any) -> None:
        part = x.shape[0] // programs
        rows = pl.ds(lax.axis_index("i") * part, part)
        plgpu.remote_ref(o, 1 - lax.axis_index("x")).at[rows][...] = x[rows]
        pl.semaphore_signal(done, device_id=1 - lax.axis_index("x"))
        pl.semaphore_wait(done)

    call = over(2, lambda x: kernel(body, rows_of(x), [SIGNALS], programs)(x))
    found = open_or_wrong(call, (jax.ShapeDtypeStruct((2 * 264, 128), F),))
    questions = {"device_waits", "dma_order"} if programs > 132 else set()
    assert {(f.question, f.verdict) for f in found} == {(question, Verdict.UNKNOWN) for question in questions}


WITHOUT = [name for name in PAIRS | THREAD_PAIRS if "named barrier" not in name]


@pytest.mark.parametrize("name", WITHOUT)
def test_all_programs_together_are_judged_as_one_of_them(name: str) -> None:
    """Kernels that speak to nobody: the run of all programs finds what that of one of each class finds, or less."""
    pair = (PAIRS | THREAD_PAIRS)[name]
    for made, right in ((pair.make(), True), (pair.make(**pair.wrong), False)):
        for call in kernels_of(made, pair.args):
            if isinstance(call, Kernel) and call.pipeline == "pallas_call":
                findings = judge(call.changed(remote=True), target="mosaic_gpu")
                found = [f for f in findings if f.asked and f.severity == "error" and f.verdict is not Verdict.PROVED]
                assert bool(found) is not right


def test_a_device_that_the_mesh_has_not_is_out_of_bounds() -> None:
    assert refuted(open_or_wrong(of_nobody(), TWO)) == {"body_in_bounds"}


def test_programs_that_take_nothing_may_wait_for_one_semaphore() -> None:
    assert not open_or_wrong(takes_from_one(False), TWO)


def test_an_array_of_another_shape_than_it_is_written_in() -> None:
    """What is missing is said as an element of the array, and not of the shape in which it is written."""

    def body(x: Any, o: Any, done: Any) -> None:
        flat = o.reshape((2 * 64 * 128,)).at[pl.ds(lax.axis_index("x") * 8192, 8192 - 128)]
        plgpu.multimem_store(x.reshape((8192,)).at[pl.ds(0, 8192 - 128)][...], flat, "x")
        plgpu.semaphore_signal_multicast(done, collective_axes="x")
        pl.semaphore_wait(done, 2, decrement=False)

    call = over(2, lambda x: kernel(body, rows_of(x, 2), [SIGNALS])(x))
    (found,) = [f for f in open_or_wrong(call, TWO) if f.question == "outputs_stored"]
    assert found.verdict is Verdict.REFUTED
    assert found.counterexample == {"device": (0,), "element": (63, 0)}


def test_programs_of_one_device_are_ordered_by_its_semaphores() -> None:
    """Without a mesh there is one device. The program that reads waits for the one that writes, or does not."""

    def made(waits: bool) -> Any:
        def body(x: Any, o: Any, buffer: Any) -> None:
            here = pl.get_global(SIGNALS)

            @pl.when(lax.axis_index("i") == 0)
            def _writes() -> None:
                buffer[...] = x[...] * 2
                pl.semaphore_signal(here)

            @pl.when(lax.axis_index("i") == 1)
            def _reads() -> None:
                if waits:
                    pl.semaphore_wait(here)
                o[...] = buffer[...] + 1

        return lambda x: kernel(body, [rows_of(x), rows_of(x)], grid=2)(x)[0]

    assert not open_or_wrong(made(True), TWO)
    assert "body_races" in refuted(open_or_wrong(made(False), TWO))


# as a user asks

OPS = """
from types import SimpleNamespace
from unittest import mock
import jax
from jax.experimental.pallas.ops.gpu import all_gather_mgpu, collective_matmul_mgpu, hopper_matmul_mgpu
from jax.sharding import AbstractMesh, AxisType, PartitionSpec as P

def gather(x):
    def of_each(shard):
        return all_gather_mgpu.all_gather(shard, axis_name="x", num_blocks=132)
    mesh = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
    return jax.shard_map(of_each, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)

def product(a, b):
    config = hopper_matmul_mgpu.TuningConfig(64, 64, 64, 4)
    def of_each(a, b):
        return collective_matmul_mgpu.all_gather_lhs_matmul(a, b, "x", config=config)
    gpus = [SimpleNamespace(core_count=8)] * 3
    answers = {"devices": lambda: gpus, "device_count": lambda: 3, "local_device_count": lambda: 3}
    with mock.patch.multiple(jax, **answers):
        mesh, columns = AbstractMesh((3,), ("x",), axis_types=(AxisType.Auto,)), P(None, "x")
        specs = P("x"), columns
        return jax.shard_map(of_each, mesh=mesh, in_specs=specs, out_specs=columns, check_vma=False)(a, b)
"""


@pytest.mark.parametrize(
    ("name", "args", "code", "says"),
    [
        ("gather", "f32[1024,128]", 0, "device_races"),
        ("product", "f16[384,128], f16[128,384]", 1, "of outputs[1] of device x=2 while program x=2"),
    ],
)
def test_a_user_asks_with_a_mesh_of_devices_that_nobody_has(
    name: str, args: str, code: int, says: str, tmp_path: Path
) -> None:
    (tmp_path / "ops.py").write_text(OPS, "utf-8")
    command = [sys.executable, "-m", "layoutproof", "kernels", f"ops.py:{name}", "--args", args]
    done = subprocess.run(
        [*command, "--target", "mosaic_gpu", "--json"],
        cwd=tmp_path,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    said = json.loads(done.stdout)
    assert (said["summary"]["refuted"], said["exit_code"]) == (code, code)
    assert says in done.stdout


def test_a_place_on_each_axis_of_a_mesh_is_a_device() -> None:
    """`remote_ref` of a mesh of two axes takes a place on each."""

    def body(x: Any, o: Any, done: Any) -> None:
        there = {"x": 1 - lax.axis_index("x"), "y": lax.axis_index("y")}
        plgpu.remote_ref(o, there)[...] = x[...] + jnp.float32(1)
        pl.semaphore_signal(done, device_id=there)
        pl.semaphore_wait(done)

    mesh = AbstractMesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    specs = PartitionSpec(("x", "y"))
    call = jax.shard_map(
        lambda x: kernel(body, rows_of(x), [SIGNALS])(x), mesh=mesh, in_specs=specs, out_specs=specs, check_vma=False
    )
    assert not open_or_wrong(call, (jax.ShapeDtypeStruct((256, 128), F),))
