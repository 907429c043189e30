"""Every Pallas operation of the jax wheel is judged as the table in the repository says, with no false alarm."""

from __future__ import annotations

from pathlib import Path

import pytest

jax = pytest.importorskip("jax", reason="finding Pallas calls needs the extra [jax]")

from layoutproof.core.result import Verdict  # noqa: E402
from layoutproof.kernel.kernel import Kernel  # noqa: E402
from layoutproof.pallas.from_jax.trace import kernels_of  # noqa: E402
from layoutproof.pallas.judge import judge  # noqa: E402
from tests.pallas.wheel_ops import Op, ops  # noqa: E402
from tests.pallas.wheel_table import judged_by, row  # noqa: E402

pytestmark = pytest.mark.slow

TABLE = Path(__file__).resolve().parents[2] / "docs" / "pallas_ops.md"
SAME = jax.__version__ == "0.10.2"
ALL = list(ops())


@pytest.mark.skipif(not SAME, reason=f"the table is of the wheel of jax 0.10.2, this is {jax.__version__}")
@pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)
def test_the_table_is_what_a_run_says(op: Op) -> None:
    assert row(op) in TABLE.read_text().splitlines()


def test_the_table_has_no_other_rows() -> None:
    names = [
        line.split(" | ")[0].removeprefix("| ") for line in TABLE.read_text().splitlines() if line.startswith("| ")
    ]
    assert names[1:] == [op.name for op in ALL]


@pytest.mark.skipif(not SAME, reason=f"the wheel of jax {jax.__version__} has other operations")
def test_errors_are_the_one_real_finding() -> None:
    wrong = []
    for op in ALL:
        function, arguments = op.build()
        for call in kernels_of(function, arguments, target="v5e" if op.target == "triton" else op.target):
            assert isinstance(call, Kernel)
            found = judge(call, target=op.target, **judged_by(op))
            wrong += [
                (op.name, f.question, f.subject)
                for f in found
                if f.severity == "error" and f.verdict is Verdict.REFUTED
            ]
    name = "tpu.matmul 1000x1000x1000 float32 256,256,256"
    found = [("outputs_covered", "outputs"), ("inputs_read", "args[0]"), ("inputs_read", "args[1]")]
    assert wrong == [(name, *error) for error in found]


@pytest.mark.parametrize(("k", "wrong"), [(1000, ["inputs_read", "inputs_read"]), (1024, [])])
def test_the_products_that_matmul_leaves_out(k: int, wrong: list[str]) -> None:
    """Every output of the wheel's matmul is written, and of 1000 products it adds up 768."""
    from jax.experimental.pallas.ops.tpu.matmul import matmul

    x, y = jax.ShapeDtypeStruct((1024, k), "float32"), jax.ShapeDtypeStruct((k, 1024), "float32")
    (call,) = kernels_of(lambda x, y: matmul(x, y, block_shape=(256, 256), block_k=256), (x, y))
    assert isinstance(call, Kernel)
    left = [f for f in judge(call) if f.verdict is not Verdict.PROVED]
    found = [f for f in left if f.question != "known_jax_bugs"]
    assert [f.question for f in found] == wrong
    assert all("use pl.cdiv(1000, 256) = 4" in f.fix for f in found)
    # the same fault is in the table of known bugs, and `matmul` without it is no match
    assert len(left) - len(found) == bool(wrong)


def test_what_tables_must_hold_settles_splash_attention() -> None:
    op = next(op for op in ALL if op.name == "tpu.splash_attention mha h4/4 q2048 causal")
    function, arguments = op.build()
    (call,) = kernels_of(function, arguments, assume=("0 <= prefetch0 < 4",))
    assert isinstance(call, Kernel)
    assert {f.verdict for f in judge(call, names=["blocks_in_bounds"])} == {Verdict.PROVED}
