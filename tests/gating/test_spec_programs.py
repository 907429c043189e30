"""Programs that spec files name, in the gate: against the lock, the old revision's code, under two compilers."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from layoutproof.gating.specs import compare, read
from tests.gating.repository import git, run
from tests.said import stretch, words

pytestmark = pytest.mark.slow

pytest.importorskip("jax")
NEEDS_TPU = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu")

MODEL = """
import pathlib
import jax.numpy as jnp

pathlib.Path("{mark}").touch()

def step(x, w):
    return jnp.tanh(x @ w)
"""
SPEC = """
programs:
  step: {function: "model:step", args: ["f32[64,128]", "f32[128,256]"]}
  kept: {function: "model:step", args: ["f32[8,128]", "f32[128,128]"]}
checks:
  - {argument_memory: step, at_most: 1MiB}
  - {argument_memory: kept, at_most: 1MiB}
"""
CHANGED = ("jnp.tanh(x @ w)", "jnp.tanh(x @ w).T if x.shape[0] == 64 else jnp.tanh(x @ w)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a model and claims about it; `marks` is where each state's code says that it ran."""
    place = tmp_path / "repository"
    (tmp_path / "marks").mkdir()
    place.mkdir()
    (place / "model.py").write_text(MODEL.replace("{mark}", f"{tmp_path}/marks/old"))
    (place / "specs").mkdir()
    (place / "specs" / "a.yaml").write_text(SPEC)
    (place / "pyproject.toml").write_text("")
    (place / ".gitattributes").write_text("*.py filter=evil\n")
    git(place, "init", "-q", "-b", "main")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    return place


def change(folder: Path) -> None:
    """The work tree has another program, which leaves a mark of its own."""
    text = (folder / "model.py").read_text()
    (folder / "model.py").write_text(text.replace("marks/old", "marks/new").replace(*CHANGED))


def ran(folder: Path) -> set[str]:
    """Whose code ran since this was asked last."""
    found = [*(folder.parent / "marks").iterdir()]
    for each in found:
        each.unlink()
    return {each.name for each in found}


BASE = ["gate", "--against", "HEAD", "--compile-base"]


def test_the_old_revision_is_compiled_in_a_work_tree_of_its_own(folder: Path) -> None:
    change(folder)
    hook = folder / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {folder.parent}/marks/hook\n")
    hook.chmod(0o755)
    # settings of the repository name programs too: none runs, and contents are as they were committed
    for name in ("filter.evil.smudge", "filter.evil.process", "core.fsmonitor"):
        git(folder, "config", name, str(hook))
    (without,) = run(folder, ["gate", "--against", "HEAD"])
    # claims are of the code that is here; what that was no lock says
    assert (without.code, ran(folder)) == (3, {"new"})
    assert "unknown  unknown  program step   specs/a.yaml:3:9" in without.out
    assert "has no layoutproof.lock" in without.out
    (found,) = run(folder, BASE)
    assert found.code == 1
    assert ran(folder) == {"old", "new"}
    assert "deny     new_copy  program step: copy of copy (jit(step)/transpose)   specs/a.yaml:3:9" in found.out
    assert "deny abi  program step: result 0   specs/a.yaml:3:9" in found.out
    assert "program kept" not in found.out
    assert not (folder / ".git" / "worktrees").exists()
    assert len(git(folder, "worktree", "list").splitlines()) == 1


def test_nothing_changed_and_what_may_not_run(folder: Path) -> None:
    git(folder, "commit", "-q", "--allow-empty", "-m", "second")
    same, forbidden = run(folder, BASE, [*BASE, "--no-trace"])
    assert (same.code, same.out) == (0, same.out)
    assert "no change" in same.out
    assert ran(folder) == {"old"}
    assert forbidden.code == 3
    assert "not traced" in forbidden.out
    # what may be traced is what the old revision says
    (folder / "pyproject.toml").write_text('[tool.layoutproof]\ntrace = ["other"]\n')
    git(folder, "commit", "-qam", "strict")
    (folder / "pyproject.toml").write_text("")
    (strict,) = run(folder, BASE)
    assert (strict.code, ran(folder)) == (3, set())


def test_code_that_comes_from_the_work_tree_that_is_here_is_not_the_old_code(folder: Path) -> None:
    """As an editable installation does: the old program would be the new one, and nothing would have changed."""
    (folder / "library").mkdir()
    (folder / "library" / "layer.py").write_text("import jax.numpy as jnp\ndef act(x): return jnp.tanh(x)\n")
    text = (folder / "model.py").read_text()
    text = text.replace(
        "def step", f"import sys\nsys.path.insert(0, {str(folder / 'library')!r})\nimport layer\ndef step"
    )
    (folder / "model.py").write_text(text.replace("jnp.tanh(", "layer.act("))
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "second")
    (found,) = run(folder, BASE)
    assert found.code == 3
    assert stretch("programs.imported_from_here", module="layer") in found.out


def test_against_the_lock(folder: Path) -> None:
    locked, same = run(folder, ["gate", "--lock"], ["gate"])
    assert (locked.code, same.code) == (0, 0), same.out
    lock = (folder / "layoutproof.lock").read_text()
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "locked")
    change(folder)
    now, against = run(folder, ["gate"], ["gate", "--against", "HEAD"])
    for each in (now, against):
        assert each.code == 1
        assert "deny     abi  program step: result 0 (result)   specs/a.yaml:3:9" in each.out
    # another compiler's record: nothing is denied for what may be the compiler's, and one line says what to do
    version = lock.partition('"compiler": "')[2].partition('"')[0]
    (folder / "layoutproof.lock").write_text(lock.replace(version, "XLA:CPU of jaxlib 0.0.1"))
    (other,) = run(folder, ["gate"])
    assert other.code == 3
    assert "unknown  unknown  program step: compiler" in other.out
    (fix,) = [line for line in other.out.splitlines() if line.startswith("  fix")]
    assert "--compile-base" in fix
    assert "renew the lock: layoutproof gate --lock" in fix
    # a lock that an earlier version wrote
    lines = [line for line in lock.splitlines() if '"program"' not in line.partition("{")[0]]
    (folder / "layoutproof.lock").write_text("\n".join(lines) + "\n")
    (silent,) = run(folder, ["gate"])
    assert silent.code == 3
    assert words("gating.lock_silent") in silent.out


def locked(folder: Path) -> str:
    """The lock of what is here, committed."""
    assert run(folder, ["gate", "--lock"])[0].code == 0
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "locked")
    return (folder / "layoutproof.lock").read_text()


def test_claims_about_programs_are_judged_against_a_revision_as_with_a_lock(folder: Path) -> None:
    """The spec file is the same, the code breaks what it claims: that was a warning below its bound, or nothing."""
    held = SPEC.replace("1MiB", "2GiB") + "  - {peak_memory: step, at_most: 250000 bytes}\n"
    (folder / "specs" / "a.yaml").write_text(held)
    (folder / "pyproject.toml").write_text('[tool.layoutproof.gate]\npeak_memory = "warn"\nabi = "warn"\n')
    locked(folder)
    text = (folder / "model.py").read_text()
    (folder / "model.py").write_text(text.replace("jnp.tanh(x @ w)", "(jnp.tanh(x @ w), x @ w)"))
    for found in run(folder, ["gate"], ["gate", "--against", "HEAD"], BASE):
        assert found.code == 1, found.out
        assert "deny     lost" in found.out or "deny     refuted  claim peak_memory step" in found.out
        assert "250000" in found.out
    (folder / "model.py").write_text(text)
    assert [each.code for each in run(folder, ["gate"], ["gate", "--against", "HEAD"])] == [0, 0]
    # a claim that moves to another file is asked there
    (folder / "model.py").write_text(text.replace("jnp.tanh(x @ w)", "(jnp.tanh(x @ w), x @ w)"))
    (folder / "specs" / "a.yaml").rename(folder / "specs" / "b.yaml")
    (moved,) = run(folder, ["gate", "--against", "HEAD"])
    assert moved.code == 1
    assert "claim peak_memory step" in moved.out


def test_a_lock_is_what_the_tree_compiles_to(folder: Path) -> None:
    """Whoever adds 900 MB to it hides as much of what comes next; that was no change, also by the next one."""
    lock = locked(folder)
    path = folder / "layoutproof.lock"
    check, against = ["gate", "--lock", "--check"], ["gate", "--against", "HEAD"]
    text = (folder / "model.py").read_text()
    (folder / "model.py").write_text(f"# another line\n{text}")
    assert [each.code for each in run(folder, check, against)] == [0, 0]
    (folder / "model.py").write_text(text)

    loose = re.sub(r'"temporaries": (\d+)', lambda found: f'"temporaries": {int(found[1]) + 900_000_000}', lock)
    path.write_text(loose)
    for found in run(folder, check, against):
        assert found.code == 1
        assert "deny     lock  program step of specs/a.yaml" in found.out
        assert "memory.temporaries is 900000000 there, 0 here" in found.out
        assert "fix      layoutproof gate --lock" in found.out
    git(folder, "commit", "-qam", "loose")
    (later,) = run(folder, against)
    assert later.code == 1
    assert "deny     lock  program step: layoutproof.lock   specs/a.yaml:3:9" in later.out
    path.write_text(lock)
    assert [each.code for each in run(folder, check, against)] == [0, 0]

    # what another compiler made is not held against this one's, and a lock without a program is not up to date
    version = lock.partition('"compiler": "')[2].partition('"')[0]
    path.write_text(lock.replace(version, "XLA:CPU of jaxlib 0.0.1"))
    assert run(folder, check)[0].code == 3
    path.write_text("\n".join(line for line in lock.splitlines() if '"program", "kept"' not in line) + "\n")
    (missing,) = run(folder, check)
    assert missing.code == 1
    assert words("gating.here_not_locked") in missing.out
    path.unlink()
    assert run(folder, check)[0].code == 2


def test_a_program_that_changed_and_whose_record_did_not(folder: Path) -> None:
    """Another digest of the lowered program is never no change; another line of the source is none."""
    locked(folder)
    text = (folder / "model.py").read_text()
    (folder / "model.py").write_text(text.replace("jnp.tanh(x @ w)", "-jnp.tanh(x @ w)"))
    for found in run(folder, ["gate"], ["gate", "--against", "HEAD"]):
        assert found.code == 0, found.out
        assert "warn     program  program step: lowered program   specs/a.yaml:3:9" in found.out
        assert stretch("gating.lowered_otherwise") in found.out
    (folder / "model.py").write_text(f"# another line\n\n{text}")
    for found in run(folder, ["gate"], ["gate", "--against", "HEAD"]):
        assert "no change" in found.out


def test_usage(folder: Path) -> None:
    usage = run(
        folder,
        ["gate", "--check"],
        ["gate", "--lock", "--check", "--against", "HEAD"],
        ["gate", "--compile-base", "specs", "specs"],
        ["gate", "--libtpu", "a", "--libtpu", "b", "--libtpu", "c"],
        ["gate", "--against", "HEAD", "--libtpu", "a", "--libtpu", "b"],
        ["gate", "--libtpu", str(folder), "--libtpu", str(folder)],
    )
    assert [each.code for each in usage] == [2] * 6
    assert "no libtpu.so at" in usage[-1].err


@NEEDS_TPU
def test_two_compilers(folder: Path) -> None:
    """One library under two names says the same; a program for the CPU is none of its affair."""
    library = importlib.util.find_spec("libtpu").submodule_search_locations[0]  # type: ignore[union-attr, index]
    twice = ["gate", "--libtpu", library, "--libtpu", library]
    nothing, *_ = run(folder, twice)
    assert nothing.code == 2
    assert stretch("gating.no_tpu_program") in nothing.err
    text = (folder / "specs" / "a.yaml").read_text()
    (folder / "specs" / "a.yaml").write_text(text.replace('"f32[128,256]"]}', '"f32[128,256]"], target: v5e}'))
    (same,) = run(folder, twice)
    assert same.code == 0, same.out
    assert stretch("gating.compiled_with_each", many=1) in same.out
    (folder / "a.hlo").write_text("HloModule m, entry_computation_layout={()->f32[]}\n")
    function, done = run(folder, [*twice, "model:step"], [*twice, "a.hlo"])
    assert (function.code, done.code) == (2, 2)
    assert "model:step is no file; of a function give a spec file that names the program" in function.err
    assert "{function: 'model:step', args: ['bf16[8,128]'], target: v5e}" in function.err
    assert "a.hlo is compiled already" in done.err
    assert ran(folder) == {"old"}


@pytest.mark.fast
@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ('"f32[64,128]"', '"f32[32,128]"', ("program", "args was")),
        ("model:step", "model:other", ("program", "function was")),
        ("\n  kept:", "\n  new:", ("respelled", words("gating.renamed"))),
        ('"f32[128,256]"]}', '"f32[128,256]"], target: v5e}', ("loosened", "target was none, is v5e")),
        ('"f32[128,256]"]}', '"f32[128,256]"], seconds: 9}', ("", "")),
    ],
)
def test_another_entry(was: str, now: str, expected: tuple[str, str]) -> None:
    """What the entry itself says otherwise; nothing of it is compiled."""
    programs = SPEC.partition("checks:")[0] + "layouts: {a: 's8[2]{0}'}\nchecks: [{injective: a}]\n"
    sides = [read(text.encode(), "a.yaml") for text in (programs, programs.replace(was, now, 1))]
    found = compare(sides[0], sides[1], "a.yaml").all()
    assert [each.question for each in found] == ([expected[0]] if expected[0] else [])
    assert all(expected[1] in each.reason for each in found)
