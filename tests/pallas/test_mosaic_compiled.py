"""Kernels in programs that the real TPU compiler compiled are those that tracing finds, and so are their verdicts."""

from __future__ import annotations

import functools

import pytest

jax = pytest.importorskip("jax", reason="reading Mosaic kernels needs the extra [jax]")

from layoutproof.hlo.audit import audit  # noqa: E402
from layoutproof.kernel.kernel import Kernel  # noqa: E402
from layoutproof.kernel.table_assumptions import with_assumptions  # noqa: E402
from layoutproof.pallas.findings import judged  # noqa: E402
from layoutproof.pallas.from_jax.trace import kernels_of  # noqa: E402
from layoutproof.pallas.from_mosaic.mosaic_module import calls_in, kernels_in_hlo, kernels_of_calls  # noqa: E402
from tests.hardware.compiler import available  # noqa: E402
from tests.pallas.mosaic_compiler import Case, compiled  # noqa: E402
from tests.pallas.mosaic_texts import as_compiled, verdicts, windows  # noqa: E402
from tests.pallas.pitfalls import PITFALLS  # noqa: E402
from tests.recorded import dump  # noqa: E402

pytestmark = pytest.mark.slow

CASES: list[Case] = [
    *((n, "wrong") for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 23, 24, 26, 27, 28, 31, 32)),
    *((n, "right") for n in (2, 7, 12, 18, 22, 23, 24, 27)),
]  # fmt: skip
"""Pitfalls that the compiler says nothing about; it aborts at none of them (libtpu 0.0.42.1)."""


@functools.lru_cache(maxsize=1)
def texts() -> dict[Case, str]:
    """Compiled programs, in a process of their own."""
    reason = available()
    if reason:
        pytest.skip(reason)
    return dict(zip(CASES, compiled(CASES), strict=True))


@functools.lru_cache(maxsize=1)
def read() -> dict[Case, Kernel]:
    """The one kernel of each program."""
    calls = {case: list(calls_in(text, "dump.txt")) for case, text in texts().items()}
    assert all(len(found) == 1 for found in calls.values())
    found = kernels_of_calls(each for (each,) in calls.values())
    return {case: kernel for case, kernel in zip(calls, found, strict=True) if isinstance(kernel, Kernel)}


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]:02d} {c[1]}")
def test_a_compiled_kernel_is_the_traced_one(case: Case) -> None:
    pitfall = PITFALLS[case[0] - 1]
    function, arguments = getattr(pitfall, case[1])()
    (traced,) = kernels_of(function, arguments, assume=pitfall.assume)
    assert isinstance(traced, Kernel)
    kernel = with_assumptions(read()[case], pitfall.assume, strict=False)
    assert windows(kernel) == windows(traced)
    ours, theirs = as_compiled(traced), as_compiled(kernel)
    assert (ours.grid, ours.aliases, ours.vmem_limit) == (theirs.grid, theirs.aliases, theirs.vmem_limit)
    assert repr(ours.operands) == repr(theirs.operands)
    assert verdicts(kernel, "v5e") == verdicts(traced, "v5e")
    says = (pitfall.says, pitfall.severity, "refuted")
    found = {(name, severity, verdict) for name, severity, verdict, _ in verdicts(kernel, "v5e")}
    assert (says in found) == (case[1] == "wrong")


def test_places_are_told() -> None:
    """The kernel's is its line in the dump; an operand's the user's line, of its index map or else of the call."""
    kernel = read()[2, "wrong"]
    line = int(kernel.source.removeprefix("dump.txt:"))
    assert "tpu_custom_call" in texts()[2, "wrong"].splitlines()[line - 1]
    assert all("pitfalls.py:" in o.source or "mosaic_compiler.py:" in o.source for o in kernel.operands)


def test_an_audited_program_has_its_kernels_judged() -> None:
    for case in ((2, "wrong"), (2, "right")):
        found = audit(texts()[case].splitlines(keepends=True), "dump.txt", "v5e")
        assert found.errors == []
        assert dict(found.kernels) == {"refuted" if case[1] == "wrong" else "proved": 1}


@pytest.mark.parametrize("name", ["transformer_bf16_v5e", "transformer_bf16_v6e"])
def test_a_kernel_that_xla_wrote(name: str) -> None:
    """XLA's own attention kernel in a real program; its module is MLIR text."""
    (kernel,) = kernels_in_hlo(dump(name), name)
    assert isinstance(kernel, Kernel)
    assert str(kernel) == "online-softmax grid (4, 8, 1, 1)"
    assert kernel.semantics == ("parallel", "parallel", "parallel", "arbitrary")
    assert [str(o) for o in kernel.operands] == [
        "args[0] bf16[4,8,512,512] block (1, 1, 512, 512) index (g0, g1, g2, g3)",
        "args[1] bf16[4,8,512,64] block (1, 1, 512, 64) index (g0, g1, g3, 0)",
        "outputs[0] bf16[4,8,512,64] block (1, 1, 512, 64) index (g0, g1, g2, 0)",
    ]
    assert [s.dims for s in kernel.scratch] == [(1, 1, 512, 1)] * 2
    assert judged(kernel, target=name.partition("_bf16_")[2]).verdict.value == "proved"
