"""Which code a file may run: `--no-trace`, the list in pyproject.toml (the base's against a revision), and never what
lies outside of the repository. Code that was run leaves a file behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from layoutproof.cli import main as cli

pytestmark = pytest.mark.slow

pytest.importorskip("jax", reason="JAX is not installed")

CODE = """
from pathlib import Path
Path({ran!r}).touch()
import jax
from jax.experimental import pallas as pl

def copy(x, block=8):
    spec = pl.BlockSpec((block, 128), lambda i: (i, 0))
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...]
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, grid=(64 // block,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)
"""
Run = Callable[..., tuple[int, str]]


class Home:
    """A repository with kernels in a package, and what its commands say. ran: whether its code was run."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.mark = folder / "ran"
        self.write("pkg/kernels/mm.py", CODE.format(ran=str(self.mark)))
        self.write("pkg/__init__.py", "")
        self.write("pkg/kernels/__init__.py", "")
        (folder / ".git").mkdir()

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def spec(self, trace: str) -> None:
        entry = {"trace": trace, "args": ["f32[64,128]"]}
        self.write(
            "specs/a.yaml", json.dumps({"source": "here", "kernels": {"mm": entry}, "checks": [{"kernel": "mm"}]})
        )

    def run(self, *words: str) -> tuple[int, str]:
        self.mark.unlink(missing_ok=True)
        for name in [name for name in sys.modules if name.partition(".")[0] in ("pkg", "mm")]:
            del sys.modules[name]
        code = cli.run([*words])
        out = self.capsys.readouterr()
        return code, out.out + out.err

    @property
    def ran(self) -> bool:
        return self.mark.exists()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Home:
    folder = tmp_path / "repo"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("LAYOUTPROOF_CACHE", "off")
    return Home(folder, capsys)


@pytest.mark.parametrize("trace", ["pkg.kernels.mm:copy", "pkg/kernels/mm.py:copy"])
def test_check_traces_at_home_and_not_when_told(home: Home, trace: str) -> None:
    home.spec(trace)
    assert home.run("check")[0] == 0
    assert home.ran
    code, out = home.run("check", "--no-trace")
    assert (code, home.ran) == (3, False)
    assert "not traced: --no-trace" in out
    code, out = home.run("kernels", "specs/a.yaml", "--no-trace")
    assert (code, home.ran) == (3, False)
    assert home.run("kernels", "specs/a.yaml")[0] == 0


def test_an_expected_unknown_is_not_green_either(home: Home) -> None:
    home.write(
        "specs/a.yaml",
        json.dumps(
            {
                "source": "here",
                "checks": [{"kernel": {"pallas": {"trace": "pkg.kernels.mm:copy"}}, "expect": "unknown"}],
            }
        ),
    )
    assert home.run("check", "--no-trace")[0] == 3
    assert not home.ran


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_list_of_pyproject(home: Home, jobs: str) -> None:
    """In this process and in others; a prefix ends where a part of the name ends."""
    home.spec("pkg.kernels.mm:copy")
    again = (
        (home.folder / "specs" / "a.yaml").read_text().replace('"checks": [', '"checks": [' + '{"kernel": "mm"}, ' * 40)
    )
    home.write("specs/a.yaml", again)
    for allowed, code in (('["pkg.kernels"]', 0), ('["pkg"]', 0), ('["pkg.kern"]', 3), ('["other"]', 3), ("[]", 3)):
        home.write("pyproject.toml", f"[tool.layoutproof]\ntrace = {allowed}\n")
        got, out = home.run("check", "--jobs", jobs)
        assert got == code, out
        # other processes live on, and import a module once
        assert home.ran is (code == 0) or (jobs == "2" and not home.ran)
        assert ("not traced: " in out) is (code == 3)
    home.write("pyproject.toml", "[tool.layoutproof]\ntrace = 'pkg'\n")
    code, out = home.run("check")
    assert (code, home.ran) == (3, False)
    assert "not traced: " in out
    assert "trace is a list of prefixes" in out


def test_outside_of_the_repository(home: Home, tmp_path: Path) -> None:
    """As an absolute path, with .., through a link: refused with words. Inside, an absolute path will do."""
    outside = tmp_path / "outside.py"
    outside.write_text(CODE.format(ran=str(home.mark)))
    (home.folder / "link.py").symlink_to(outside)
    for trace in (f"{outside}:copy", "../outside.py:copy", "link.py:copy", "pkg/../../outside.py:copy"):
        home.spec(trace)
        code, out = home.run("check")
        assert (code, home.ran) == (2, False), trace
        assert "outside of the repository" in out
    home.spec(f"{home.folder / 'pkg' / 'kernels' / 'mm.py'}:copy")
    assert home.run("check")[0] == 0
    # a person may name what a file may not
    assert home.run("kernels", f"{outside}:copy", "--arg", "f32[64,128]")[0] == 0
    assert home.ran


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_gate_asks_the_base(home: Home) -> None:
    """A change cannot allow itself: the list of the revision that it is compared with holds."""
    (home.folder / ".git").rmdir()
    home.spec("pkg.kernels.mm:copy")
    home.write("pyproject.toml", '[tool.layoutproof]\ntrace = ["safe"]\n')
    git(home.folder, "init")
    git(home.folder, "add", "-A")
    git(home.folder, "commit", "-m", "base")
    home.write("pyproject.toml", '[tool.layoutproof]\ntrace = ["pkg"]\n')
    text = (home.folder / "specs" / "a.yaml").read_text()
    home.write("specs/a.yaml", text.replace('"checks": [', '"checks": [{"outputs_covered": "mm"}, '))
    code, out = home.run("gate", "--against", "HEAD")
    assert not home.ran
    assert code != 0
    assert "not traced: pkg.kernels.mm is not among what pyproject.toml at HEAD allows: safe" in out
    git(home.folder, "commit", "-am", "allowed now")
    home.write("specs/a.yaml", text)
    home.write("specs/a.yaml", text.replace('"checks": [', '"checks": [{"revisits": "mm"}, '))
    home.run("gate", "--against", "HEAD")
    assert home.ran
    code, out = home.run("gate", "--against", "HEAD", "--no-trace")
    assert not home.ran
    assert code != 0
    assert "not traced: --no-trace" in out
    code, out = home.run("gate", "--lock", "--no-trace")
    assert (code, home.ran, (home.folder / "layoutproof.lock").exists()) == (3, False, False)


SEARCH = """search: copy
target: v5e
trace: {trace}
args: ["f32[64,128]"]
tune: {{block: [8, 16]}}
"""


def test_search(home: Home, tmp_path: Path) -> None:
    home.write("s/s.yaml", SEARCH.format(trace="pkg.kernels.mm:copy"))
    assert home.run("search", "s/s.yaml")[0] == 0
    assert home.ran
    code, out = home.run("search", "s/s.yaml", "--no-trace")
    assert (code, home.ran) == (3, False)
    assert "not traced: --no-trace" in out
    (tmp_path / "outside.py").write_text(CODE.format(ran=str(home.mark)))
    home.write("s/s.yaml", SEARCH.format(trace="../../outside.py:copy"))
    code, out = home.run("search", "s/s.yaml")
    assert (code, home.ran) == (2, False)
    assert "outside of the repository" in out
    home.write("s/s.yaml", SEARCH.format(trace="../pkg/kernels/mm.py:copy"))
    assert home.run("search", "s/s.yaml")[0] == 0


def test_bodies_of_declared_kernels_are_run_by_compile_only(home: Home) -> None:
    kernel = """search: copy
target: v5e
kernel:
  grid: ["cdiv(N, bn)"]
  inputs: [{name: x, array: "f32[N,128]", block: [bn, 128], index: "i -> (i, 0)"}]
  outputs: [{name: o, array: "f32[N,128]", block: [bn, 128], index: "i -> (i, 0)"}]
body: pkg.kernels.mm:copy
sizes: {N: 64}
tune: {bn: [8, 16]}
"""
    home.write("k.yaml", kernel)
    assert home.run("search", "k.yaml")[0] == 0
    assert not home.ran
    _, out = home.run("search", "k.yaml", "--compile", "--no-trace")
    assert not home.ran
    assert "not traced: --no-trace" in out
    assert "accepted" not in out


def test_pytest(home: Home) -> None:
    home.spec("pkg.kernels.mm:copy")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        plugin = ["-p", "no:cacheprovider", "-q"]
        home.mark.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", *plugin, "--layoutproof-specs", "specs", *words]
        return subprocess.run(command, cwd=home.folder, capture_output=True, text=True, check=False)

    done = run("--layoutproof-no-trace")
    assert (done.returncode, home.ran) == (1, False), done.stdout + done.stderr
    assert "not traced: --no-trace" in done.stdout
    done = run()
    assert (done.returncode, home.ran) == (0, True), done.stdout + done.stderr
