"""`layoutproof kernels`: what it finds, what it shows, its exit codes, and every wrong input it can be given."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import layoutproof
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.pallas.findings import Judged, exit_code, judged, without_proved
from layoutproof.pallas.from_jax.user import argument
from layoutproof.pallas.judge import kernel_of, kernel_target
from layoutproof.pallas.report import as_json, place, summary, text, why_unknown
from tests.cli.user_code import ABOUT_BODIES, CALL_LINE, SPEC_LINE, WITH_TARGET, kernels_command
from tests.said import stretch, words

pytestmark = pytest.mark.slow

ROOT = Path(layoutproof.__file__).parents[1]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One command line in a folder with user code: its exit code, stdout and stderr."""
    pytest.importorskip("jax", reason="JAX is not installed")
    return kernels_command(capsys, tmp_path, monkeypatch)


def test_a_proof(run: Any) -> None:
    """A right kernel: where it is, its grid and target, how much is proved, and nothing else."""
    code, out, err = run("users_kernels:copy", "--arg", "f32[1024,128]", "--target", "v5e")
    lines = out.splitlines()
    assert (code, err) == (0, "imported\n")
    assert lines[:3] == [
        f"body   users_kernels.py:{CALL_LINE}",
        "  grid     (4)",
        f"  target   v5e, {kernel_target('v5e').compiler}",
    ]
    assert lines[3].startswith("  proved   ")
    counted = "1 Pallas call: 1 proved, 0 refuted, 0 unknown; 1 not asked"
    assert lines[-1] == f"{counted}; grid and BlockSpecs proved; {WITH_TARGET}"
    assert "refuted" not in "\n".join(lines[:-1])


def test_a_refutation(run: Any) -> None:
    """A wrong grid: verdict, property, operand, block, elements, size, fix and place are all on the screen."""
    code, out, _ = run("users_kernels.py:copy", "--arg", "f32[1000,128]")
    assert code == 1
    assert f"refuted  outputs_covered  outputs f32[1000,128] block (256, 128)   users_kernels.py:{SPEC_LINE}" in out
    assert (
        "  because  "
        + words(
            "pallas.outputs_covered_unwritten",
            operand="outputs",
            parts="768:1000, 0:128",
            kind="block",
            number="(3, 0)",
        )
        in out
    )
    assert "  at       block=(3, 0)" in out
    assert "pl.cdiv(1000, 256)" in out
    assert "  explain  layoutproof explain outputs_covered" in out
    assert "none given" in out
    assert out.splitlines()[-1] == "1 Pallas call: 0 proved, 1 refuted, 0 unknown"


def test_json_has_every_finding(run: Any) -> None:
    """One value: the exit code, the calls, and the proved findings too; what user code prints goes to stderr."""
    code, out, err = run("users_kernels:copy", "--arg", "f32[1000,128]", "--json")
    found = json.loads(out)
    assert (code, err, found["exit_code"]) == (1, "imported\n", 1)
    counts = {
        "kernels": 1,
        "proved": 0,
        "refuted": 1,
        "unknown": 0,
        "accepted": 0,
        "warnings": 0,
        "infos": 0,
        "not_asked": 0,
    }
    assert found["summary"] == counts
    (call,) = found["kernels"]
    verdicts = {finding["question"]: finding["verdict"] for finding in call["findings"]}
    assert verdicts["outputs_covered"] == "refuted"
    assert verdicts["blocks_in_bounds"] == "proved"
    wrong = next(f for f in call["findings"] if f["verdict"] == "refuted")
    assert wrong["counterexample"] == {"block": [3, 0]}
    assert (Path(wrong["file"]).name, wrong["line"]) == ("users_kernels.py", SPEC_LINE)
    assert wrong["fix"]
    assert call["operands"][1]["dims"] == [1000, 128]


def test_keyword_values_and_static_arguments(run: Any) -> None:
    """A block size given by name or as a literal changes the answer."""
    assert run("users_kernels:copy", "--arg", "f32[1000,128]", "--kwarg", "block=200")[0] == 0
    assert run("users_kernels:copy", "--arg", "f32[1000,128]", "--arg", "200")[0] == 0
    assert run("users_kernels:copy", "--arg", "f32[1000,128]", "--kwarg", "block=256")[0] == 1


def test_a_function_without_arguments_builds_its_own(run: Any) -> None:
    """Nothing has to be given to a function that needs nothing."""
    code, out, _ = run("users_kernels:whole")
    assert code == 1
    assert "f32[1000,128]" in out


def test_several_calls(run: Any) -> None:
    """Each is shown in its order, and counted."""
    code, out, _ = run("users_kernels:two", "--arg", "f32[1024,128]", "--all")
    assert code == 0
    assert out.index("grid     (8)") < out.index("grid     (16)")
    assert (
        out.splitlines()[-1]
        == f"2 Pallas calls: 2 proved, 0 refuted, 0 unknown; grid and BlockSpecs proved; {ABOUT_BODIES}"
    )
    assert "proved   blocks_in_bounds  args[0] f32[1024,128]" in out


def test_pipelines_inside_of_kernels(run: Any) -> None:
    """What `emit_pipeline` moves inside of a kernel is judged as a call of its own."""
    assert run("users_kernels:pipelined", "--arg", "f32[32,128]", "--arg", "4")[0] == 0
    code, out, _ = run("users_kernels:pipelined", "--arg", "f32[32,128]", "--arg", "3")
    assert code == 1
    assert "no program writes" in out


def test_one_property(run: Any) -> None:
    """Only what is named is asked, and what has nothing to ask of a call is unknown, never proved."""
    arguments = ("users_kernels:copy", "--arg", "f32[1000,128]")
    code, out, _ = run(*arguments, "--property", "blocks_in_bounds", "--json")
    assert code == 0
    assert {f["question"] for f in json.loads(out)["kernels"][0]["findings"]} == {"blocks_in_bounds"}
    code, out, _ = run(*arguments, "--property", "parallel_writes", "--json")
    assert code == 3
    (found,) = json.loads(out)["kernels"][0]["findings"]
    assert found["verdict"] == "unknown"
    assert found["reason"].startswith("not applicable: no dimension of the grid runs in parallel on a TPU")


def test_nothing_asked_is_nothing_proved(run: Any) -> None:
    """No Pallas call, and the grid alone of a kernel that moves all data by manual DMA, end with 3."""
    code, out, err = run("users_kernels:plain", "--arg", "f32[8]")
    assert (code, out) == (3, "")
    assert err == "imported\nusers_kernels:plain makes no Pallas call; there is nothing to prove\n"
    code, out, _ = run("users_kernels:plain", "--arg", "f32[8]", "--json")
    assert code == 3
    assert json.loads(out)["error"]["kind"] == "unknown"
    assert run("users_kernels:by_hand", "--arg", "f32[8,128]")[0] == 0
    code, out, _ = run("users_kernels:by_hand", "--arg", "f32[8,128]", "--only", "grid")
    assert code == 3
    assert "unknown  analysable" in out
    assert "manual DMA" in out


def test_assumptions_about_prefetched_values(run: Any) -> None:
    """Without one the verdict is unknown and names it; with it everything is proved; about no table it is an error."""
    arguments = ("users_kernels:gather", "--arg", "s32[8]", "--arg", "f32[64,128]")
    code, out, _ = run(*arguments)
    assert code == 3
    assert "0 <= prefetch0 < 8" in out
    assert run(*arguments, "--assume", "0 <= prefetch0 < 8")[0] == 0
    assert run("users_kernels:gather_below_8", *arguments[1:])[0] == 0
    code, _, err = run(*arguments, "--assume", "0 <= t < 8")
    assert code == 2
    assert stretch("kernel.assumption_no_table", have="the calls have prefetch0") in err


@pytest.mark.parametrize(
    ("name", "advised", "where"),
    [
        ("scattered", {"0 <= prefetch0 < 8", "prefetch0 is injective"}, ""),
        ("shared", {"0 <= prefetch0 < 8"}, ""),
        ("nested", {"0 <= prefetch0 < 16", "0 <= prefetch1 < 512"}, ""),
        ("zeros", {"0 <= prefetch0 < 1"}, ""),
        ("taken_away", {"0 <= prefetch0 < 512", "0 <= prefetch1 < 1"}, ""),
        ("masked", {"0 <= prefetch0 < 5"}, ""),
        ("dynamic", {"0 <= prefetch0 < 512"}, "grid0 <= 8"),
        ("sorted_dynamic", {"0 <= prefetch0 < 512", "prefetch0 is monotone"}, "grid0 <= 8"),
        ("two_sizes", set(), "grid0 <= 512 and grid1 <= 8"),
    ],
)
def test_all_advice_can_be_pasted_at_once(name: str, advised: set[str], where: str, run: Any) -> None:
    """One bound for each table, whoever asks; never all zeros where another place has room for more.

    Of sizes of the running program, too: never so few programs that they can do nothing wrong.
    """
    Path("tables.py").write_text(TABLES)
    arguments = (f"tables.py:{name}",)
    code, out, _ = run(*arguments)
    assert code == 3
    (line,) = (line for line in out.splitlines() if line.startswith("  assume   --"))
    options = shlex.split(line.removeprefix("  assume   "))
    pasted = dict(zip(options[::2], options[1::2], strict=True))
    assert set(filter(None, pasted.get("--assume", "").split("; "))) == advised
    assert pasted.get("--where", "") == where
    assert all(f"'{one}'" in out for one in advised)
    found = json.loads(run(*arguments, "--json")[1])["kernels"][0]
    assert (found["assume"], found["where"]) == (pasted.get("--assume", ""), where)
    assert all("needs" in f or "where" in f for f in found["findings"] if said_of(f) == ("unknown", "error"))
    code, out, _ = run(*arguments, *options)
    assert (code, "  assume   " in out) == (0, False)


def test_what_several_calls_need_alike_is_said_once(run: Any) -> None:
    """A file of calls that read the same kind of table."""
    source = "from users_kernels import gather\n\n\ndef alike(t, x):\n"
    Path("several.py").write_text(source + "    for k in range(4):\n        x = gather(t + k, x)\n    return x\n")
    code, out, _ = run("several.py:alike", "--args", "s32[8], f32[64,128]")
    assert code == 3
    assert out.count("  assume   ") == 1
    joint = '4 calls need the same: kernel\n  assume   --assume "0 <= prefetch0 < 8"\n\n4 Pallas calls: '
    assert joint in out
    found = json.loads(run("several.py:alike", "--args", "s32[8], f32[64,128]", "--json")[1])
    assert [call["assume"] for call in found["kernels"]] == ["0 <= prefetch0 < 8"] * 4
    code, out, _ = run("several.py:alike", "--args", "s32[8], f32[64,128]", "--assume", "0 <= prefetch0 < 8")
    assert (code, "  assume   " in out) == (0, False)


def test_what_an_engine_leaves_open_is_no_bug_to_report(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hole that no second engine confirms is an unknown with that reason."""
    from layoutproof.core.errors import Unsupported
    from layoutproof.pallas import judge

    def conclude(*arguments: Any, **more: Any) -> Finding:
        raise Unsupported("found a hole that no second engine confirms")

    monkeypatch.setattr(judge, "concluded", conclude)
    code, out, _ = run("users_kernels:copy", "--arg", "f32[1024,128]", "--property", "outputs_covered")
    assert code == 3
    assert "because  found a hole that no second engine confirms" in out


def said_of(finding: dict[str, Any]) -> tuple[str, str]:
    return finding["verdict"], finding["severity"]


TABLES = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = pl.BlockSpec((8, 128), lambda i, *t: (i, 0))
CHOSEN = pl.BlockSpec((8, 128), lambda i, t: (t[i], 0))
SMALL = jax.ShapeDtypeStruct((64, 128), jnp.float32)
FEW, MANY = jnp.zeros((8,), jnp.int32), jnp.zeros((16,), jnp.int32)
X = jnp.zeros((4096, 128))


def fill(*refs):
    refs[-1][...] = jnp.zeros_like(refs[-1])


def unknown(table):
    # what the code says of a table, or of a grid, is read: nobody knows what a chip makes of floats
    return jnp.asarray(table).astype(jnp.float32).astype(jnp.int32)


def call(tables, specs, out=ROWS, shape=SMALL, **more):
    many = len(tables)
    grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=many, grid=(8,), in_specs=specs, out_specs=out)
    return pl.pallas_call(fill, grid_spec=grid, out_shape=shape, **more)(*map(unknown, tables), *[X] * len(specs))


def scattered():
    # an output whose blocks a table chooses: one may be left and visited again
    return call([FEW], [ROWS], CHOSEN)


def shared():
    # one table for an array of 512 blocks and for one of 8
    return call([FEW], [CHOSEN, pl.BlockSpec((512, 128), lambda i, t: (t[i], 0))])


def nested():
    # a table that is read at what another holds
    return call([FEW, MANY], [pl.BlockSpec((8, 128), lambda i, t, u: (u[t[i]], 0))])


def zeros():
    # the one block there is
    return call([FEW], [pl.BlockSpec((4096, 128), lambda i, t: (t[i], 0))])


def taken_away():
    # what is taken away from a number that may be 0
    return call([FEW, FEW], [pl.BlockSpec((8, 128), lambda i, t, u: (t[i] - u[0], 0))])


def masked():
    # a mask whose end a table says, which also says where to store 4 rows of 8; the last block has 4 rows
    def body(t, x, o, s):
        s[pl.ds(t[0], 4)] = jnp.zeros((4, 128))
        o[...] = jnp.where(jax.lax.broadcasted_iota(jnp.int32, (8, 128), 0) < t[0], x[...], 0)

    scratch = [pltpu.VMEM((8, 128), jnp.float32)]
    specs = {"in_specs": [ROWS], "out_specs": ROWS, "scratch_shapes": scratch}
    grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,), **specs)
    shape = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    return pl.pallas_call(body, grid_spec=grid, out_shape=shape)(unknown(FEW), X[:28])


def grown(tables, sizes, spec, out):
    # a grid that only the running program knows
    def many(*sizes):
        count = len(tables)
        grid = tuple(unknown(n) for n in sizes)
        grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=count, grid=grid, in_specs=[spec], out_specs=out)
        shape = jax.ShapeDtypeStruct((8, 128) if out is FIRST else X.shape, jnp.float32)
        return pl.pallas_call(fill, grid_spec=grid, out_shape=shape, **ALIAS[out is FIRST])(*map(unknown, tables), X)

    return jax.jit(many)(*sizes)


FIRST = pl.BlockSpec((8, 128), lambda *at: (0, 0))
ALIAS = [{"input_output_aliases": {1: 0}}, {}]


def dynamic():
    return grown([FEW], [5], CHOSEN, FIRST)


def sorted_dynamic():
    # an output that is written where a table says, in order: two programs could do nothing wrong
    return grown([FEW], [5], CHOSEN, pl.BlockSpec((8, 128), lambda i, t: (t[i], 0)))


def two_sizes():
    return grown([], [5, 3], pl.BlockSpec((8, 16), lambda i, j: (i, j)), FIRST)
"""


@pytest.mark.parametrize(
    ("texts", "dtype"),
    [
        (("f32[8,128]", "float32[8,128]"), "float32"),
        (("bf16[8,128]", "bfloat16[8,128]"), "bfloat16"),
        (("s32[]", "i32[]", "int32[]"), "int32"),
        (("u8[4]", "uint8[4]"), "uint8"),
        (("pred[8]", "bool[8]"), "bool"),
        (("c64[8]", "complex64[8]"), "complex64"),
        (("f8e4m3fn[8]", "float8_e4m3fn[8]"), "float8_e4m3fn"),
    ],
)
def test_types_of_arguments_as_numpy_writes_them(texts: tuple[str, ...], dtype: str) -> None:
    """XLA's name, NumPy's and a jaxpr's are one type; the error of a name that is none is tested below."""
    pytest.importorskip("jax", reason="JAX is not installed")
    assert {str(argument(text).dtype) for text in texts} == {dtype}


def test_a_kernel_of_types_as_numpy_writes_them(run: Any) -> None:
    """On the command line, too; what is said of it has XLA's names."""
    said = [run("users_kernels:copy", "--arg", f"{name}[1024,128]", "--target", "v5e") for name in ("float32", "f32")]
    assert said[0][:2] == said[1][:2]
    assert said[0][0] == 0


def test_what_is_no_python_is_named_itself(run: Any) -> None:
    """A text beside a module of its name, and a file with a null byte, of which Python names neither file nor line."""
    Path("users_kernels.txt").write_text("no Python")
    Path("users_kernels").write_text("no ending")
    Path("odd.py").write_bytes(b"def f(x):\n    return x\0\n")
    for where, said in (
        ("users_kernels.txt:copy", words("traced.no_module_name", where="users_kernels.txt")),
        ("odd.py:f", f"odd.py:2: {words('traced.null_byte')}"),
    ):
        code, _, err = run(where, "--arg", "f32[8]")
        assert (code, said in err) == (2, True), err
    assert run("users_kernels:copy", "--arg", "f32[1024,128]")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere_at_all:f"], "there is no module 'nowhere_at_all'; modules are found from "),
        (["users_kernels.deep:f"], stretch("traced.no_module", part="users_kernels.deep")),
        (["nowhere.py:f"], "nowhere.py: No such file"),
        (["users_kernels:cpy"], "users_kernels has no 'cpy'" + words("core.did_you_mean", name="copy")),
        (["users_kernels:three"], words("traced.not_callable", where="users_kernels", name="three", found=3)),
        (["users_kernels"], words("traced.function_form", place="users_kernels")),
        ([":f"], stretch("traced.function_form")),
        (["a b:f"], words("traced.no_module_name", where="a b")),
        (
            ["users_kernels:copy"],
            stretch(
                "traced.called_with",
                parameters="x, block=256",
                given="0 arguments",
                error="missing a required argument: 'x'",
            ),
        ),
        (["users_kernels:whole", "--arg", "f32[8]"], stretch("traced.called_with", parameters="", given="1 argument")),
        (["users_kernels:copy", "--arg", "f32[8]", "--kwarg", "bloc=8"], "unexpected keyword argument 'bloc'"),
        (
            ["users_kernels:copy", "--arg", "q32[8]"],
            words("core.element_type", name="q32", near=words("core.did_you_mean", name="u32")),
        ),
        (["users_kernels:copy", "--arg", "f32[8,]"], "dimensions are whole numbers separated by commas"),
        (["users_kernels:copy", "--arg", "eight"], "a shape such as bf16[4096,512] or a Python literal; 'eight'"),
        (["users_kernels:copy", "--arg", "1+"], "a Python literal; '1+'"),
        (["users_kernels:copy", "--kwarg", "block"], words("cli.keyword_argument_form", found="block")),
        (["users_kernels:copy", "--kwarg", "block=f(8)"], "a Python literal; 'f(8)' is none"),
        (["users_kernels:copy", "--target", "v99"], "unknown target 'v99'; known: "),
        (
            ["users_kernels:copy", "--target", "v5e", "--compiler", "new"],
            "a compiler is a version of libtpu, not 'new'",
        ),
        (["users_kernels:copy", "--compiler", "0.0.42.1"], words("cli.compiler_without_target")),
        (["users_kernels:copy", "--property", "covered"], "unknown property of kernels 'covered'"),
        (["users_kernels:copy", "--property", "block_shape", "--arg", "f32[1024,128]"], "give one: "),
        (["users_kernels:raises", "--arg", "f32[8]"], "RuntimeError: no such luck"),
        (["users_kernels:copy", "--arg", "f32[8,8,8]"], "users_kernels.py:"),
        (["users_kernels:copy", "--arg", "'text'"], "AttributeError: 'str' object has no attribute 'shape'"),
        (["program.hlo"], ""),
        (["program.hlo", "--arg", "f32[8]"], words("cli.file_with_arguments")),
    ],
)
def test_wrong_input(arguments: list[str], said: str, run: Any) -> None:
    """Each mistake is told in one message with exit code 2; never a traceback, never a verdict."""
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert "bug in layoutproof" not in err
    assert "Traceback" not in err


def test_what_user_code_raises_has_the_users_line(run: Any, tmp_path: Path) -> None:
    """An exception inside points to the user's file and line, whether it is traced or imported."""
    line = (tmp_path / "users_kernels.py").read_text().splitlines().index('    raise RuntimeError("no such luck")') + 1
    assert f"users_kernels.py:{line}" in run("users_kernels:raises", "--arg", "f32[8]")[2]
    for name, source, said in (
        ("fails", "x = 1\ny = x / 0\n", "fails.py:2: ZeroDivisionError: division by zero"),
        ("odd", "def f(:\n", "odd.py:1: SyntaxError: "),
        ("needs", "import not_there_at_all\n", "needs.py:1: ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("leaves", "import sys\n\nsys.exit(7)\n", "leaves.py:3: SystemExit: 7"),
    ):
        (tmp_path / f"{name}.py").write_text(source)
        for where in (name, f"{name}.py"):
            code, out, err = run(f"{where}:f")
            assert (code, out) == (2, "")
            assert said in err


def test_the_path_is_put_back(run: Any) -> None:
    """Importing user code leaves no folder on the path, not even after an error."""
    before = list(sys.path)
    run("users_kernels.py:whole")
    run("users_kernels.py:nothing")
    assert sys.path == before


def test_without_jax(tmp_path: Path) -> None:
    """Where jax is missing, one sentence says how to get it, and code 2; other commands do not care."""
    (tmp_path / "mine.py").write_text("def f(x):\n    return x\n")
    blocked = "import sys\nsys.modules['jax'] = None\nfrom layoutproof.cli.main import main\nmain(sys.argv[1:])\n"

    def done(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", blocked, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    for arguments in (["mine:f", "--arg", "f32[8]"], ["mine:f", "--arg", "8"]):
        failed = done("kernels", *arguments)
        assert (failed.returncode, failed.stdout) == (2, "")
        assert "pip install jax" in failed.stderr
    assert done("ask", "injective", "f32[3,5]{1,0}").returncode == 0


def finding(verdict: Verdict, severity: str = "error", **more: Any) -> Finding:
    """A finding of no kernel in particular."""
    point = {"program": (3,)} if verdict is Verdict.REFUTED else None
    reason = "" if verdict is Verdict.PROVED else "a reason"
    more |= {"verdict": verdict, "counterexample": point, "severity": severity}
    return Finding("blocks_in_bounds", "x", reason, **more)


def kernel(grid: int = 3) -> Kernel:
    """A kernel that copies."""
    value = {"blockspec": f"f32[1000,128] blockspec (256, 128) (i) -> (i, 0) grid ({grid}) out"}
    return kernel_of(value, "a test")


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ([finding(Verdict.PROVED)], 0),
        ([finding(Verdict.PROVED), finding(Verdict.REFUTED, "warning"), finding(Verdict.REFUTED, "info")], 0),
        ([finding(Verdict.UNKNOWN, "info"), finding(Verdict.PROVED)], 0),
        ([finding(Verdict.UNKNOWN), finding(Verdict.PROVED)], 3),
        ([finding(Verdict.UNKNOWN), finding(Verdict.REFUTED)], 1),
        ([], 3),
    ],
)
def test_exit_codes_by_severity(findings: list[Finding], code: int) -> None:
    """Only what would be an error decides; nothing found is nothing proved."""
    assert exit_code([Judged(kernel(), tuple(findings))]) == code


def test_exit_codes_of_many_calls() -> None:
    """No call and a call that is not modelled are never green; refuted comes before unknown."""
    good = Judged(kernel(), (finding(Verdict.PROVED),))
    bad = Judged(kernel(), (finding(Verdict.REFUTED),))
    odd = Judged(Unmodelled("mm", "a.py:7", "a grid of floats"))
    assert [exit_code(c) for c in ([], [good], [good, odd], [odd, bad, good])] == [3, 0, 3, 1]
    assert "not modelled" in text([odd])
    assert "a grid of floats" in text([odd])
    assert as_json([odd])["kernels"][0]["reason"] == "a grid of floats"


def test_the_worst_is_last() -> None:
    """What is proved is left out, and errors stand where a terminal shows them."""
    found = [finding(Verdict.REFUTED), finding(Verdict.PROVED), finding(Verdict.REFUTED, "info")]
    found += [finding(Verdict.UNKNOWN), finding(Verdict.REFUTED, "warning")]
    left = without_proved(Judged(kernel(), tuple(found))).findings
    assert [(f.verdict.value, f.severity) for f in left] == [
        ("refuted", "info"),
        ("refuted", "warning"),
        ("unknown", "error"),
        ("refuted", "error"),
    ]


def test_words_of_the_report() -> None:
    """A warning is called one, assumptions are shown, and what is unknown says why."""
    shown = text([Judged(kernel(), (finding(Verdict.REFUTED, "warning", fix="do so", assumes=("0 <= t < 8",)),))])
    assert "warning  blocks_in_bounds  x" in shown
    assert "  fix      do so" in shown
    assert "  assumes  0 <= t < 8" in shown
    assert "1 Pallas call: 1 proved, 0 refuted, 0 unknown; 1 warning; " in shown
    assert why_unknown(Judged(kernel(), (finding(Verdict.UNKNOWN),))).endswith("blocks_in_bounds of x: a reason")
    assert summary([]) == "no Pallas call; there is nothing to prove"


def test_a_target_for_other_kernels_is_said() -> None:
    """A TPU kernel judged for a GPU: its demands are not asked, and the report says so."""
    tpu, wrong = (replace(kernel(grid), plain=False) for grid in (4, 3))
    call = judged(tpu, target="triton")
    assert call.foreign == words("pallas.foreign", platform="tpu", target="triton", chip_platform="triton")
    assert call.foreign in text([call])
    assert call.foreign in why_unknown(call)
    assert call.verdict is Verdict.UNKNOWN
    assert judged(wrong, target="triton").verdict is Verdict.REFUTED
    assert judged(tpu, target="v5e").verdict is Verdict.PROVED


def test_a_call_that_says_no_platform_is_for_the_targets() -> None:
    """On a TPU programs run one after the other, on a GPU at once: nobody's block may then be another's."""
    for target, platform in ((None, "tpu"), ("v5e", "tpu"), ("triton", "triton")):
        call = judged(kernel(4), target=target)
        assert (call.foreign, call.verdict, call.call.platform) == ("", Verdict.PROVED, platform)  # type: ignore[union-attr]
        assert bool(call.of("parallel_writes")) is (platform == "triton")
    assert judged(kernel(3), target="triton").verdict is Verdict.REFUTED


def test_places_are_relative(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file below the current folder is shown from there, any other as it is."""
    monkeypatch.chdir(tmp_path)
    here = Path.cwd()
    assert place(f"{here / 'a.py'}:3") == "a.py:3"
    assert place("/elsewhere/a.py:3") == "/elsewhere/a.py:3"
    assert place("") == ""
