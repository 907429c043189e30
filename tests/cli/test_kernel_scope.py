"""What every command says was proved of a Pallas call, and what it leaves unknown: the body, and manual DMA."""

from __future__ import annotations

import json
import warnings
import zlib
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.cli import main as cli
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.pallas.judge import BODY, scope
from layoutproof.specs.check import Outcome
from layoutproof.specs.check import run as checked
from layoutproof.specs.report import summary
from layoutproof.specs.spec import loads
from tests.cli.user_code import ABOUT_BODIES, folder_with_kernels, kernels_command
from tests.said import stretch, words

pytestmark = pytest.mark.slow

SCOPE = f"grid and BlockSpecs proved; {ABOUT_BODIES}"
STATED = "grid and BlockSpecs proved; body not looked at"
CODE = '''
import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
STILL = pl.BlockSpec(memory_space=pl.ANY)


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def call(kernel, x, specs, out=ROWS, scratch=()):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    given = pl.pallas_call(kernel, grid=(8,), in_specs=specs, out_specs=out, out_shape=shape, scratch_shapes=scratch)
    return given(*[x] * len(specs))


def half_by_hand(x, many=8, barrier=False):
    """A good BlockSpec beside an array of which each program copies its rows; or, with 16, twice too many."""

    def kernel(x_ref, y_hbm, o_ref, rows):
        if barrier:
            pl.semaphore_signal(pl.get_global(pltpu.SemaphoreType.REGULAR(())), 1)
        pltpu.sync_copy(y_hbm.at[pl.ds(pl.program_id(0) * many, many)], rows.at[pl.ds(0, many)])
        o_ref[...] = x_ref[...]

    return call(kernel, x, [ROWS, STILL], scratch=[pltpu.VMEM((16, 128), x.dtype)])


def by_table(t, x, many=8):
    """What is copied by hand begins where a table says."""

    def kernel(t_ref, x_ref, y_hbm, o_ref, rows):
        pltpu.sync_copy(y_hbm.at[pl.ds(t_ref[pl.program_id(0)] * 8, many)], rows.at[pl.ds(0, many)])
        o_ref[...] = x_ref[...]

    rows = pl.BlockSpec((8, 128), lambda i, t: (i, 0))
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(8,),
        in_specs=[rows, STILL],
        out_specs=rows,
        scratch_shapes=[pltpu.VMEM((16, 128), x.dtype)],
    )
    given = pl.pallas_call(kernel, grid_spec=grid_spec, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))
    return given(t, x, x)


def piped(x, view=False, again=False, inside=False):
    """A pipeline moves all; or of a view; or the body touches an array again, beside or inside of the pipeline."""

    def kernel(x_hbm, o_hbm, rows):
        def body(x_ref, o_ref):
            o_ref[...] = x_ref[...]
            if inside:
                pltpu.sync_copy(x_hbm.at[pl.ds(0, 8)], rows)

        def step(_, carry):
            a, b = (r.at[pl.ds(0, 32)] if view else r for r in (x_hbm, o_hbm))
            pltpu.emit_pipeline(body, grid=(a.shape[0] // 8,), in_specs=[ROWS], out_specs=[ROWS])(a, b)
            return carry

        jax.lax.fori_loop(0, 2, step, 0)
        if again:
            pltpu.sync_copy(x_hbm.at[pl.ds(0, 8)], rows)

    return call(kernel, x, [STILL], STILL, [pltpu.VMEM((8, 128), x.dtype)])


def plain(x):
    return call(copy, x, [ROWS])


def for_a_gpu(x):
    from jax.experimental.pallas import mosaic_gpu

    params = mosaic_gpu.CompilerParams()
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(copy, grid=(8,), in_specs=[ROWS], out_specs=ROWS, out_shape=shape, compiler_params=params)(x)


def total(x, how=None):
    """The sum of eight blocks: right where programs run in order, and nothing says that they do."""

    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    first = pl.BlockSpec((8, 128), lambda i: (0, 0))
    params = None if how is None else pltpu.CompilerParams(dimension_semantics=(how,))
    return pl.pallas_call(
        kernel, grid=(8,), in_specs=[ROWS], out_specs=first, out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        compiler_params=params,
    )(x)
'''


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One `kernels` command in a folder with both modules of user code: exit code, stdout and stderr."""
    pytest.importorskip("jax", reason="JAX is not installed")
    (tmp_path / "hands.py").write_text(CODE)
    return kernels_command(capsys, tmp_path, monkeypatch)


def test_the_headline_says_what_was_proved(run: Any) -> None:
    """As text and as JSON, of a proved call; one that is refuted proves nothing."""
    code, out, _ = run("users_kernels:copy", "--arg", "f32[1024,128]")
    assert (code, out.splitlines()[-1].endswith(f"; {SCOPE}")) == (0, True)
    assert "of the grid and BlockSpecs; 1 of 1 question about the body" in out or "questions about the body" in out
    found = json.loads(run("users_kernels:copy", "--arg", "f32[1024,128]", "--json")[1])
    assert (found["scope"], found["kernels"][0]["scope"], found["kernels"][0]["manual_dma"]) == (SCOPE, SCOPE, [])
    code, out, _ = run("users_kernels:copy", "--arg", "f32[1000,128]")
    assert (code, SCOPE in out) == (1, False)


def test_one_property_is_not_the_whole_call(run: Any) -> None:
    """Where only some properties were asked, the headline says which."""
    arguments = ("users_kernels:copy", "--arg", "f32[1000,128]", "--property", "blocks_in_bounds")
    code, out, _ = run(*arguments)
    assert code == 0
    assert out.splitlines()[-1].endswith("; blocks_in_bounds proved of the grid and BlockSpecs; body not looked at")


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("half_by_hand", [], ["args[1]"]),
        ("piped", [], []),
        ("piped", ["--kwarg", "again=True"], ["args[0]"]),
        ("piped", ["--kwarg", "inside=True"], ["args[0]"]),
    ],
)
def test_what_the_body_moves_by_hand_is_judged(run: Any, name: str, arguments: list[str], named: list[str]) -> None:
    """By the questions about the body; where only the grid is asked it is named and leaves the call unknown."""
    for only, many in ((), 0), (("--only", "grid"), len(named)):
        code, out, _ = run(f"hands:{name}", "--arg", "f32[64,128]", *arguments, *only)
        assert code == (3 if many else 0)
        assert ("unknown  analysable" in out) is bool(many)
        _, out, _ = run(f"hands:{name}", "--arg", "f32[64,128]", *arguments, *only, "--json")
        found = json.loads(out)
        assert found["kernels"][0]["manual_dma"] == named
        assert found["summary"]["unknown"] == many
        assert ("of the body: body_in_bounds" in found["kernels"][0]["scope"]) is not bool(only)


def _barrier() -> int:
    return 1 + next(k for k, text in enumerate(CODE.splitlines()) if "pl.get_global(" in text)


def test_what_is_moved_by_hand_in_a_body_that_is_not_modelled_is_unknown(run: Any) -> None:
    """It is named, with what is not modelled and its line."""
    code, out, _ = run("hands:half_by_hand", "--arg", "f32[64,128]", "--kwarg", "barrier=True")
    assert code == 3
    assert "args[1] is moved by manual DMA (memory any) in the body, which BlockSpecs say nothing of" in out
    said = f"not modelled: the primitive get_global (memory that outlives the kernel) at hands.py:{_barrier()}; to "
    # by each question about the body, once
    assert out.count(said) == out.count("\nunknown  ") - 1 == 5


def test_a_pipeline_over_a_view_leaves_the_rest_unwritten(run: Any) -> None:
    """What it is not given, it does not store: rows 32 and up of the output."""
    code, out, _ = run("hands:piped", "--arg", "f32[64,128]", "--kwarg", "view=True")
    assert code == 1
    assert stretch("pallas.outputs_stored_no_copy", what="element [32, 0] of outputs") in out


def test_copies_by_hand_are_judged(run: Any) -> None:
    """What the body copies past the end of an array is refuted, unless only the grid is asked."""
    arguments = ("hands:half_by_hand", "--arg", "f32[64,128]", "--kwarg", "many=16")
    code, out, _ = run(*arguments)
    assert code == 1
    assert "the body copies from elements 64:80 of dimension 0 of args[1], which has 64" in out
    code, out, _ = run(*arguments, "--only", "grid")
    assert code == 3
    assert "body not asked (--only grid)" in out
    assert "body_in_bounds" not in out


def test_only_the_grid(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The headline says that the body was not asked; and it is not read, by no question."""
    from layoutproof.pallas.from_jax import bodies

    monkeypatch.setattr(bodies, "read_body", lambda *arguments: pytest.fail("the body was read"))
    assert run("hands:by_table", "--arg", "s32[8]", "--arg", "f32[64,128]", "--only", "grid")[0] == 3
    code, out, _ = run("users_kernels:copy", "--arg", "f32[1024,128]", "--only", "grid")
    assert code == 0
    assert out.splitlines()[-1].endswith("; grid and BlockSpecs proved; body not asked (--only grid)")


def test_a_single_property_does_not_hide_what_is_moved_by_hand(run: Any) -> None:
    """Not one about the program; what hardware demands of the windows holds whatever the body does."""
    arguments = ("hands:half_by_hand", "--arg", "f32[64,128]")
    assert run(*arguments, "--property", "outputs_covered")[0] == 3
    assert run(*arguments, "--property", "block_shape", "--target", "v5e")[0] == 0


ON_GPU = "what the body does: it was read as a TPU runs it; bodies of kernels for mosaic_gpu are not read; --only grid"
OF_GPU = words(
    "pallas.body_unread", unread=words("traced.platform", platform="mosaic_gpu"), less_asked="--only grid asks less"
)


@pytest.mark.parametrize(
    ("name", "target", "said"), [("plain", ("--target", "mosaic_gpu"), ON_GPU), ("for_a_gpu", (), OF_GPU)]
)
def test_a_body_that_was_not_read_is_unknown(run: Any, name: str, target: tuple[str, ...], said: str) -> None:
    """Grid and blocks hold, and nobody has read the body: 3, as text and as JSON; who asks less is told less, and 0."""
    arguments = (f"hands:{name}", "--arg", "f32[64,128]", *target)
    code, out, _ = run(*arguments)
    assert (code, f"  unknown  {said}" in out) == (3, True)
    assert out.splitlines()[-1] == "1 Pallas call: 0 proved, 0 refuted, 1 unknown"
    (found,) = json.loads(run(*arguments, "--json")[1])["kernels"]
    assert (found["verdict"], found["reason"].startswith(said)) == ("unknown", True)
    code, out, _ = run(*arguments, "--only", "grid")
    assert (code, "body not asked (--only grid)" in out) == (0, True)
    assert run(*arguments, "--property", "blocks_in_bounds")[0] == 0
    assert run(*arguments, "--property", "body_in_bounds")[0] == 3
    run(*arguments, "--write-baseline", "known.json")
    code, out, _ = run(*arguments, "--baseline", "known.json")
    assert (code, "0 unknown, 1 accepted" in out) == (0, True)


def test_a_record_of_a_body_that_was_not_read_is_unknown(run: Any) -> None:
    """As the call that was traced."""
    run("hands:for_a_gpu", "--arg", "f32[64,128]", "--record", "calls.jsonl")
    code, out, _ = run("calls.jsonl")
    assert (code, OF_GPU in out) == (3, True)


IN_ORDER = "its programs are taken to run in order, as on a TPU (no target is given, and a GPU runs them at once)"


def test_that_programs_run_in_order_is_a_premise(run: Any) -> None:
    """It is named where a proof rests on it and nothing says for what the call is: a GPU runs them at once."""
    for more in ((), ("--only", "grid")):
        code, out, _ = run("hands:total", "--arg", "f32[64,128]", *more)
        assert code == 0
        assert f"  premise  {IN_ORDER}" in out
        assert out.splitlines()[-1].endswith(f"; {IN_ORDER}")
        found = json.loads(run("hands:total", "--arg", "f32[64,128]", *more, "--json")[1])
        assert found["scope"].endswith(f"; {IN_ORDER}")
    for more in (("--target", "v5e"), ("--kwarg", "how='arbitrary'")):
        code, out, _ = run("hands:total", "--arg", "f32[64,128]", *more)
        assert (code, "premise" in out, IN_ORDER in out) == (0, False, False)
    assert run("hands:total", "--arg", "f32[64,128]", "--target", "triton")[0] == 1
    assert run("hands:total", "--arg", "f32[64,128]", "--kwarg", "how='parallel'")[0] == 1
    # what holds in any order rests on none
    code, out, _ = run("hands:plain", "--arg", "f32[64,128]")
    assert (code, "premise" in out) == (0, False)


def over_scratch(start: str, semantics: tuple[str, ...] | None = None) -> Any:
    """A sum in scratch over the second dimension, zeroed as `start` says, of a call that names no order by itself."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(x: Any, out: Any, acc: Any) -> None:
        @pl.when((pl.program_id(1) == 0) | (start == "always"))
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        acc[...] += x[...]
        out[...] = acc[...]

    return pl.pallas_call(
        body,
        grid=(4, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, k: (i, k))],
        out_specs=pl.BlockSpec((8, 128), lambda i, k: (i, k)),
        out_shape=jax.ShapeDtypeStruct((32, 256), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
        compiler_params=None if semantics is None else pltpu.CompilerParams(dimension_semantics=semantics),
    )


def test_that_scratch_is_handed_on_in_order_is_a_premise() -> None:
    """Scratch makes a call a TPU's, and still it does not say that its programs run in order."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x = jax.ShapeDtypeStruct((32, 256), "float32")
    in_order = (
        "; its programs are taken to run in order, as on one core of a TPU (no target and no dimension_semantics)"
    )
    taken = lp.kernels(over_scratch("first"), x)
    assert (taken.exit_code, in_order in str(taken).splitlines()[-1]) == (0, True)
    said = ("arbitrary", "arbitrary")
    for none in (
        lp.kernels(over_scratch("first"), x, target="v5e"),
        lp.kernels(over_scratch("first", said), x),
        lp.kernels(over_scratch("always"), x),
    ):
        assert (none.exit_code, "taken to run" in str(none)) == (0, False)


SPEC = """
kernels:
  good: {trace: "users_kernels:copy", args: ["f32[1024,128]"]}
  gpu: {trace: "hands:for_a_gpu", args: ["f32[64,128]"]}
  sum: {trace: "hands:total", args: ["f32[64,128]"]}
  hands: {trace: "hands:half_by_hand", args: ["f32[64,128]"]}
layouts:
  stated:
    kernel:
      grid: [8]
      inputs: [{name: x, array: "f32[64,128]", block: [8, 128], index: "i -> (i, 0)"}]
      outputs: [{name: o, array: "f32[64,128]", block: [8, 128], index: "i -> (i, 0)"}]
  still:
    kernel: {grid: [8], inputs: [{name: pages, array: "f32[64,128]", memory: any}],
             outputs: [{name: o, array: "f32[64,128]", block: [8, 128], index: "i -> (i, 0)"}]}
  piped:
    kernel: {grid: [8], inputs: [{name: pages, array: "f32[64,128]", memory: any, pipelined: true}],
             outputs: [{name: o, array: "f32[64,128]", block: [8, 128], index: "i -> (i, 0)"}]}
checks:
"""


@pytest.mark.parametrize(
    ("check", "code", "said"),
    [
        ("kernel: good", 0, SCOPE),
        ("kernel: stated", 0, STATED),
        ("kernel: gpu", 3, OF_GPU),
        ("kernel: sum", 0, f"; {IN_ORDER}"),
        ("{kernel: gpu, only: grid}", 0, "grid and BlockSpecs proved; body not asked (--only grid)"),
        ("kernel: piped", 0, STATED),
        ("outputs_covered: stated", 0, "outputs_covered proved of the grid and BlockSpecs; body not looked at"),
        ("kernel: hands", 0, SCOPE),
        ("kernel: still", 3, "pages is moved by manual DMA (memory any)"),
        ("outputs_covered: still", 3, "pages is moved by manual DMA (memory any)"),
        ("blocks_in_bounds: hands", 3, "args[1] is moved by manual DMA (memory any)"),
    ],
)
def test_spec_files(run: Any, capsys: pytest.CaptureFixture[str], check: str, code: int, said: str) -> None:
    """`check` says it too, as text, as JSON and in every form of report; and `ask` of a stated kernel."""
    Path("a.yaml").write_text(f"{SPEC}  - {check}\n")
    assert cli.run(("check", "a.yaml")) == code
    assert said in capsys.readouterr().out
    for form in ("json", "sarif", "junit", "github", "html"):
        assert cli.run(("check", "a.yaml", "--format", form)) == code
        assert said in capsys.readouterr().out, form


OF_GRID = scope(["blocks_in_bounds"]).removesuffix(f"; {BODY}")
OF_BODY = ["dma_order", "initialised"]


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        (("blocks_in_bounds: good",), f"{OF_GRID}; {BODY}"),
        (("blocks_in_bounds: good", "outputs_covered: good"), STATED),
        (("initialised: good", "dma_order: good"), scope(OF_BODY)),
        (("blocks_in_bounds: good", "dma_order: good", "initialised: good"), scope(None, body=OF_BODY)),
        (("blocks_in_bounds: good", "kernel: good"), SCOPE),
        (("blocks_in_bounds: good", "initialised"), OF_GRID),
        (("blocks_in_bounds: good", "same"), OF_GRID),
        (("blocks_in_bounds: good", "outputs_covered"), f"{OF_GRID}; {BODY}"),
    ],
)
def test_the_headline_of_several_claims(run: Any, checks: tuple[str, ...], said: str) -> None:
    """The body was looked at where one of them is about it, whatever came of it."""
    held = [outcome_of(each) for each in checks]
    assert summary(held).endswith(f"; {said}")


def outcome_of(check: str) -> Outcome:
    """What comes of a claim; of a property alone that it is refuted."""
    if ":" not in check:
        return Outcome(Finding(check, "good", "", verdict=Verdict.REFUTED), "refuted")
    (found, *_), errors = loads(f"{SPEC}  - {check}\n", "a.yaml")
    assert errors == []
    return checked(found)


def test_a_printed_kernel_is_judged_as_the_traced_one(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """`--spec` keeps which arrays pipelines move, and which the body moves by manual DMA; the body is not in it."""
    for name, code in (("piped", 0), ("half_by_hand", 3)):
        Path("b.yaml").write_text(run(f"hands:{name}", "--arg", "f32[64,128]", "--spec")[1])
        assert cli.run(("check", "b.yaml")) == code
        capsys.readouterr()


def test_guard(run: Any) -> None:
    """The calls that a guard has seen say what was proved, manual DMA too; one that is unknown is a warning."""
    import jax
    import jax.numpy as jnp

    import layoutproof

    run("hands:piped", "--arg", "f32[64,128]")  # imports the module
    import importlib.util

    spec = importlib.util.spec_from_file_location("hands_here", "hands.py")
    assert spec is not None
    assert spec.loader is not None
    hands = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hands)
    with layoutproof.guard() as seen:
        jax.make_jaxpr(lambda x: hands.call(hands.copy, x, [hands.ROWS]))(jnp.zeros((64, 128)))
    assert [call.scope for call in seen.calls] == [SCOPE]
    with warnings.catch_warnings(record=True) as said, layoutproof.guard() as seen:
        warnings.simplefilter("always")
        jax.make_jaxpr(hands.half_by_hand)(jnp.zeros((64, 128)))
        jax.make_jaxpr(hands.by_table)(jnp.zeros(8, jnp.int32), jnp.zeros((64, 128)))
    assert [(call.manual_dma, call.verdict.value) for call in seen.calls] == [
        (("args[1]",), "proved"),
        (("args[2]",), "unknown"),
    ]
    (warned,) = (str(w.message) for w in said if "layoutproof" in str(w.category) or "body_in_bounds" in str(w.message))
    assert "assume '0 <= prefetch0 < 8' and it is proved" in warned


def test_the_pytest_plugin(run: Any) -> None:
    """Its last line says it."""
    import subprocess
    import sys

    folder_with_kernels(Path())
    Path("test_it.py").write_text(
        "import jax, jax.numpy as jnp, users_kernels\n"
        "def test_it():\n    jax.make_jaxpr(users_kernels.copy)(jnp.zeros((1024, 128)))\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "--layoutproof"]
    done = subprocess.run([*command, "test_it.py"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"1 Pallas call in 1 test: 1 proved, 0 refuted, 0 unknown; {SCOPE}" in done.stdout


WARNED = """
layouts:
  wide:
    kernel:
      grid: [8]
      tables: {t: {array: "s32[8]", assume: ["0 <= t < 8", "t is monotone"]}}
      inputs: [{name: x, array: "f32[64,128]", block: [8, 128], index: "i -> (t[i], 0)"}]
      outputs: [{name: o, array: "f32[64,128]", block: [8, 128], index: "i -> (t[i], 0)", revisit: any}]
      aliases: {x: o}
"""


def test_one_rule_for_line_count_and_exit_code(run: Any) -> None:
    """What can at worst be a warning is a warning where it is unknown: it is not called unknown and then not counted.

    Whether every block of an aliased output is written depends here on a table.
    """
    Path("c.yaml").write_text(WARNED)
    code, out, _ = run("c.yaml")
    lines = [line.split("  ")[0].strip() for line in out.splitlines() if line[:1] not in (" ", "")]
    assert code == 0
    assert "unknown" not in lines
    assert lines.count("warning") == 1
    assert "0 unknown; 1 warning" in out.splitlines()[-1]
    assert "because  unknown: " in out
    found = json.loads(run("c.yaml", "--json")[1])
    assert (found["exit_code"], found["summary"]["unknown"], found["summary"]["warnings"]) == (0, 0, 1)
    code, out, _ = run("c.yaml", "--property", "outputs_covered")
    assert code == 3
    assert "unknown  outputs_covered" in out
    assert "0 proved, 0 refuted, 1 unknown" in out.splitlines()[-1]
    unwritten = WARNED.replace("      aliases: {x: o}\n", "")
    Path("c.yaml").write_text(unwritten)
    code, out, _ = run("c.yaml", "--property", "outputs_covered")
    assert code == 3
    assert "unknown  outputs_covered" in out
    assert "1 Pallas call: 0 proved, 0 refuted, 1 unknown" in out


def test_unknown_lines_of_a_refuted_call_are_counted(run: Any) -> None:
    """A call is counted once, by its worst; what else is unknown of it stands behind."""
    Path("c.yaml").write_text(WARNED.replace("      aliases: {x: o}\n", "").replace("grid: [8]", "grid: [9]"))
    code, out, _ = run("c.yaml")
    unknown = sum(line.startswith("unknown ") for line in out.splitlines())
    assert (code, unknown > 0) == (1, True)
    assert f"; {unknown} question{'s' if unknown > 1 else ''} unknown in what is refuted" in out.splitlines()[-1]


X = ("--arg", "f32[64,128]")
UNKNOWN = ("hands:by_table", "--arg", "s32[8]", "--arg", "f32[64,128]")


def test_a_baseline_accepts_what_it_records_and_nothing_else(run: Any) -> None:
    """An unknown of today is accepted, counted, and no proof; another unknown and a refutation are not."""
    code, _, _ = run(*UNKNOWN, "--write-baseline", "known.json")
    assert code == 3
    assert list(json.loads(Path("known.json").read_text())) == ["version", "accepted"]
    code, out, _ = run(*UNKNOWN, "--baseline", "known.json")
    assert code == 0
    assert "1 Pallas call: 0 proved, 0 refuted, 0 unknown, 1 accepted; 1 unknown question accepted" in out
    assert "accepted body_in_bounds" in out
    assert "in known.json" in out
    found = json.loads(run(*UNKNOWN, "--baseline", "known.json", "--json")[1])
    assert (found["exit_code"], found["summary"]["accepted"], found["summary"]["proved"]) == (0, 1, 0)
    assert found["scope"] == ""
    assert run("hands:half_by_hand", *X, "--kwarg", "many=16", "--baseline", "known.json")[0] == 1
    assert run(*UNKNOWN, "--kwarg", "many=16", "--baseline", "known.json")[0] == 3
    for text, problem in (
        ("[]", "is no baseline"),
        ('{"version": ' + "[" * 9_000, stretch("pallas.baseline", problem="no JSON: maximum recursion depth")),
        ("{", "is no baseline"),
        ('{"version": 9, "accepted": {}}', "is no"),
    ):
        Path("bad.json").write_text(text)
        code, _, err = run(*UNKNOWN, "--baseline", "bad.json")
        assert code == 2
        assert problem in err
    assert run(*UNKNOWN, "--baseline", "missing.json")[0] == 2


def test_a_baseline_holds_when_lines_are_added_above(run: Any) -> None:
    """Also where the reason names a line."""
    call = ("--arg", "f32[64,128]", "--kwarg", "barrier=True")
    assert run("hands:half_by_hand", *call, "--write-baseline", "lines.json")[0] == 3
    folder = Path("moved")
    folder.mkdir()
    (folder / "hands.py").write_text(f"# a line\n{CODE}")
    _, out, _ = run("moved/hands.py:half_by_hand", *call)
    assert f"hands.py:{_barrier() + 1}\n" in out
    assert run("moved/hands.py:half_by_hand", *call, "--baseline", "lines.json")[0] == 0


@pytest.mark.parametrize(
    ("comment", "code", "said"),
    [
        (
            "# layoutproof: accept[body_in_bounds] its rows are checked by hand",
            0,
            "its rows are checked by hand (accepts_",
        ),
        ("# layoutproof: accept[body_in_bounds]", 3, "accept[body_in_bounds] gives no reason"),
        ("# layoutproof: accept[body_in_bound] checked", 3, "did you mean 'body_in_bounds'"),
        ("# layoutproof: accept[inputs_read] checked", 3, "unknown  body_in_bounds"),
    ],
)
def test_an_unknown_is_accepted_at_its_call(run: Any, comment: str, code: int, said: str) -> None:
    """For a reason, by its name, at the line of the call or right above it."""
    call = "    return given(t, x, x)"
    name = f"accepts_{zlib.crc32(comment.encode())}"
    Path(f"{name}.py").write_text(CODE.replace(call, f"    {comment}\n{call}"))
    found, out, _ = run(f"{name}:by_table", *UNKNOWN[1:])
    assert (found, said in out) == (code, True), out


def test_lines_are_those_that_python_counts(run: Any) -> None:
    """A form feed, and a line separator within a text, end no line of code: the comment is found all the same."""
    call = "    return given(t, x, x)"
    comment = "    # layoutproof: accept[body_in_bounds] its rows are checked by hand\n"
    Path("accepts_fed.py").write_text(f'BREAK = "\u2028"\n\f\n{CODE.replace(call, comment + call)}')
    found, out, _ = run("accepts_fed:by_table", *UNKNOWN[1:])
    assert (found, "its rows are checked by hand (accepts_fed.py:" in out) == (0, True), out


def test_what_is_refuted_cannot_be_accepted(run: Any) -> None:
    call = "    return given(*"
    comment = "    # layoutproof: accept[body_in_bounds, analysable] we know\n"
    Path("accepts_all.py").write_text(CODE.replace(call, f"{comment}{call}"))
    assert run("accepts_all:half_by_hand", *X, "--kwarg", "many=16")[0] == 1
    assert run("accepts_all:half_by_hand", *X, "--only", "grid")[0] == 0
