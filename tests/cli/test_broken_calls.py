"""One call that cannot be read, or that we fail on, is an unknown with its place and cause; the others are judged."""

from __future__ import annotations

import importlib.util
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from layoutproof.cli import main as cli
from layoutproof.pallas.rules import blocks_in_bounds
from tests.cli.user_code import kernels_command
from tests.said import stretch

pytestmark = pytest.mark.slow

CODE = '''
import dataclasses

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
STILL = pl.BlockSpec(memory_space=pl.ANY)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Second(pltpu.BufferedRef):
    """One BlockSpec for two references, of which it copies the second."""

    def copy_in(self, src_ref, grid_indices):
        super().copy_in(src_ref[1], grid_indices)

    def wait_in(self, src_ref, grid_indices):
        super().wait_in(src_ref[1], grid_indices)


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def good(x, rows=8):
    spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(copy, grid=(x.shape[0] // rows,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)


def buffered(x, of_their_own=True):
    """A pipeline whose buffers are given; of the user's class, or JAX's own."""

    def kernel(t_hbm, x_hbm, o_hbm):
        def inner(first, last):
            pipeline = pltpu.emit_pipeline(copy, grid=(8,), in_specs=[ROWS], out_specs=[ROWS])
            pipeline((t_hbm, x_hbm) if of_their_own else x_hbm, o_hbm, allocations=(first, last))

        kind = Second if of_their_own else pltpu.BufferedRef
        pl.run_scoped(inner, kind.input(ROWS, x.dtype, 2), pltpu.BufferedRef.output(ROWS, x.dtype, 2))

    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    table = jnp.zeros((7,), jnp.int32)
    return pl.pallas_call(kernel, in_specs=[STILL, STILL], out_specs=STILL, out_shape=shape)(table, x)


def all_three(x):
    """One that nobody can read, a right one, a wrong one."""
    return good(good(buffered(x)), 24)
'''


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One `kernels` command in a folder with the code above: exit code, stdout and stderr."""
    pytest.importorskip("jax", reason="JAX is not installed")
    (tmp_path / "broken.py").write_text(CODE)
    return kernels_command(capsys, tmp_path, monkeypatch)


def test_several_references_for_one_blockspec(run: Any) -> None:
    """The pipeline is unknown, with its line and why; the calls beside it are judged."""
    code, out, _ = run("broken.py:all_three", "--arg", "f32[64,128]", "--json")
    found = json.loads(out)
    assert (code, found["exit_code"]) == (1, 1)
    assert [c["verdict"] for c in found["kernels"]] == ["unknown", "proved", "refuted", "unknown"]
    pipeline = found["kernels"][-1]
    assert stretch("traced.buffer_class", kind="Second") in pipeline["reason"]
    line = 1 + CODE.splitlines().index(next(text for text in CODE.splitlines() if "pipeline((t_hbm" in text))
    assert (Path(pipeline["file"]).name, pipeline["line"]) == ("broken.py", line)


def test_buffers_of_jaxs_own_class(run: Any) -> None:
    """A pipeline that is given them is judged like any other; the array beside it is the body's."""
    _, out, _ = run("broken.py:buffered", "--arg", "f32[64,128]", "--kwarg", "of_their_own=False", "--json")
    call, pipeline = json.loads(out)["kernels"]
    assert call["manual_dma"] == ["args[0]"]
    assert pipeline["verdict"] == "proved"


def test_a_guard_goes_on(run: Any, tmp_path: Path) -> None:
    """It warns of what it cannot read, and raises only for what is refuted."""
    import jax
    import jax.numpy as jnp

    import layoutproof
    from layoutproof.pallas.from_jax.adapter import device_of

    spec = importlib.util.spec_from_file_location("broken_here", tmp_path / "broken.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with warnings.catch_warnings(record=True) as said, device_of("v5e"), layoutproof.guard() as seen:
        warnings.simplefilter("always")
        jax.make_jaxpr(lambda x: module.good(module.buffered(x)))(jnp.zeros((64, 128)))
    assert [call.verdict.value for call in seen.calls] == ["unknown", "proved", "unknown"]
    assert any(stretch("traced.buffer_class", kind="Second") in str(w.message) for w in said)


def _fail(*given: Any) -> Any:
    raise IndexError("tuple index out of range")


def test_a_failure_of_ours_is_an_unknown_of_one_question(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a property raises: the rest of the call and the other calls are judged, and the cause is told."""
    with monkeypatch.context() as patch:
        patch.setattr(blocks_in_bounds, "obligations", _fail)
        code, out, err = run("broken.py:good", "--arg", "f32[64,128]")
        assert code == 3
        assert "unknown  blocks_in_bounds" in out
        assert "IndexError: tuple index out of range (test_broken_calls.py:" in out
        assert "Traceback" not in out + err
        assert "0 proved, 0 refuted, 1 unknown" in out.splitlines()[-1]
        assert run("broken.py:good", "--arg", "f32[60,128]")[0] == 1
    assert run("broken.py:good", "--arg", "f32[64,128]")[0] == 0


def test_a_failure_while_a_call_is_read(run: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """It is an unknown of that call, in the command and in spec files; the next call is read."""
    from layoutproof.pallas.from_jax import calls

    kernel = calls._operand
    first = [True]

    def operand(*given: Any) -> Any:
        if first:
            first.clear()
            _fail()
        return kernel(*given)

    monkeypatch.setattr(calls, "_operand", operand)
    code, out, _ = run("broken.py:all_three", "--arg", "f32[64,128]", "--json")
    verdicts = [c["verdict"] for c in json.loads(out)["kernels"]]
    assert (code, verdicts) == (1, ["unknown", "proved", "refuted", "unknown"])
    first.append(True)
    Path("a.yaml").write_text('kernels: {k: {trace: "broken.py:good", args: ["f32[64,128]"]}}\nchecks: [{kernel: k}]\n')
    assert cli.run(("check", "a.yaml")) == 3
    assert "IndexError: tuple index out of range" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")  # core_map and its mesh, by jax 0.12
@pytest.mark.parametrize(
    ("start", "code", "said"), [(0, 0, "2 proved, 0 refuted, 0"), (60, 1, "1 proved, 1 refuted, 0")]
)
def test_a_kernel_over_a_mesh_is_seen(run: Any, tmp_path: Path, start: int, code: int, said: str) -> None:
    """`pl.core_map` has no block mappings: its body is judged, and the call is not invisible."""
    (tmp_path / f"meshes_{start}.py").write_text(
        "import jax\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n"
        "from jax.experimental.pallas import tpu as pltpu\nimport broken\n\n"
        "def f(x):\n"
        "    @pl.run_state\n"
        "    def inner(refs):\n"
        "        x_ref, o_ref = refs\n"
        "        @pl.core_map(pltpu.create_tensorcore_mesh('core', num_cores=1))\n"
        "        def _():\n"
        "            i = jax.lax.axis_index('core')\n"
        f"            pltpu.sync_copy(x_ref.at[pl.ds({start} + i, 8)], o_ref.at[pl.ds(0, 8)])\n"
        "    return broken.good(inner((x, jnp.zeros_like(x)))[1])\n"
    )
    found, out, _ = run(f"meshes_{start}.py:f", "--arg", "f32[64,128]")
    assert found == code
    assert f"2 Pallas calls: {said} unknown" in out
    assert "questions about the body" in out
