"""The GitHub action as a runner starts it: what it installs, what it runs, with which flags, and how it ends."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from tests.said import stretch

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]
GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **GIT}, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone of a repository with one spec file, as a runner has it."""
    upstream = tmp_path / "upstream"
    (upstream / "specs").mkdir(parents=True)
    (upstream / "specs" / "a.yaml").write_text("layouts:\n  a: f32[3,5]{1,0}\nchecks:\n  - injective: a\n")
    git(upstream, "init", "-q", "-b", "main")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "one")
    git(tmp_path, "clone", "-q", str(upstream), "work")
    return tmp_path / "work"


def program(folder: Path, text: str) -> str:
    """A folder with a program called python, to stand first on PATH."""
    folder.mkdir(exist_ok=True)
    file = folder / "python"
    file.write_text(text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(folder)


def run(folder: Path, python: str, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The action's script in a checkout. python: the text of the program that it calls python."""
    given = {"AGAINST": "origin/main", "BASE": "main", "DEFAULT": "main", "PATHS_TO_GATE": "specs", "MORE": ""}
    given |= {"PATHS_TO_CHECK": "specs", "GITHUB_OUTPUT": str(folder / "output"), **inputs}
    path = os.pathsep.join((program(folder.parent / "bin", python), os.environ["PATH"]))
    environment = {**os.environ, **GIT, "LAYOUTPROOF_CACHE": "off", "PYTHONPATH": str(ROOT), **given, "PATH": path}
    return subprocess.run(
        [str(ROOT / "action" / "run")], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


REAL = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
RECORDING = '#!/bin/sh\necho "$@" >> "$CALLS"\ncase "$4" in ci) exit $CI;; esac\n'


def test_a_moved_layout_is_denied(checkout: Path) -> None:
    """Unchanged is 0; a moved layout is an annotation, a summary page, a SARIF file, and 1."""
    fine = run(checkout, REAL)
    assert (fine.returncode, fine.stderr) == (0, "")
    (checkout / "specs" / "a.yaml").write_text("layouts:\n  a: f32[3,5]{0,1}\nchecks:\n  - injective: a\n")
    page = checkout / "summary.md"
    done = run(checkout, REAL, SARIF="out.sarif", GITHUB_STEP_SUMMARY=str(page))
    assert done.returncode == 1, done.stderr
    assert "::error file=specs/a.yaml,line=2" in done.stdout
    assert "1 claim as stated" in page.read_text()
    assert "**deny** `moved`" in page.read_text()
    assert (checkout / "out.sarif").exists()
    assert (checkout / "output").read_text().splitlines() == ["exit-code=0", "exit-code=1"]


def test_a_false_claim_fails_though_nothing_changed(checkout: Path) -> None:
    """`check` runs too: a claim that is false on both sides is no change, and is red."""
    (checkout / "specs" / "b.yaml").write_text("checks:\n  - injective: {strided: 'f32[3,5] strides (4,1)'}\n")
    done = run(checkout, REAL, PATHS_TO_GATE="")
    assert done.returncode == 1
    assert stretch("properties.replicas_distinct_both", place="offset 4") in done.stdout


@pytest.mark.parametrize("code", [0, 1, 2, 3, 130])
def test_the_code_is_that_of_the_run(code: int, checkout: Path) -> None:
    """As it is, and as the output of the step."""
    done = run(checkout, RECORDING, CALLS=str(checkout / "calls"), CI=str(code))
    assert done.returncode == code
    assert (checkout / "output").read_text() == f"exit-code={code}\n"


@pytest.mark.parametrize(
    ("inputs", "flags"),
    [
        ({}, ()),
        ({"FORK": "true"}, ("--no-trace",)),
        ({"APPROVED": "true"}, ("--accept-approvals",)),
        ({"FORK": "false", "APPROVED": "false", "REFACTORING": "false"}, ()),
        ({"REFACTORING": "true"}, ("--same-function",)),
        ({"REFACTORING": "true", "FORK": "true"}, ("--same-function", "--no-trace")),
    ],
)
def test_flags(inputs: dict[str, str], flags: tuple[str, ...], checkout: Path) -> None:
    """A fork's code is not imported; approvals of the change count only when the label was just set; a refactoring has
    to compute the same, of a fork too, where it is unknown."""
    calls = checkout / "calls"
    run(checkout, RECORDING, CALLS=str(calls), CI="0", **inputs)
    (call,) = calls.read_text().splitlines()
    for flag in ("--no-trace", "--accept-approvals", "--same-function"):
        assert (flag in call) == (flag in flags)


def test_what_a_fork_leaves_unjudged_is_named(checkout: Path) -> None:
    """Claims about code: exit 3, each by its name, with who judges it; nothing runs. A fork that is wrong stays red."""
    (checkout / "mm.py").write_text("open('ran', 'w')\n")
    programs = 'programs:\n  step: {function: "mm:f", args: ["f32[8,128]"], target: v5e}\n'
    claims = "checks:\n  - injective: 'f32[3,5]{1,0}'\n  - {peak_memory: step, at_most: 1MiB}\n"
    (checkout / "specs" / "p.yaml").write_text(programs + claims)
    page = checkout / "summary.md"
    done = run(checkout, REAL, FORK="true", PATHS_TO_GATE="", GITHUB_STEP_SUMMARY=str(page))
    assert (done.returncode, (checkout / "ran").exists()) == (3, False)
    assert "title=layoutproof%3A peak_memory step::not traced: --no-trace%0Ahint: nothing of it was run" in done.stdout
    assert "::notice title=layoutproof: not judged here::" in done.stdout
    assert "::notice::skipped: 1 claim of which code would have to be run" in done.stdout
    assert "### layoutproof: not judged here" in page.read_text()
    # what is wrong without any code is said as ever, and of a change that claims nothing of code nothing is left
    (checkout / "specs" / "b.yaml").write_text("checks:\n  - injective: {strided: 'f32[3,5] strides (4,1)'}\n")
    wrong = run(checkout, REAL, FORK="true", PATHS_TO_GATE="")
    assert (wrong.returncode, "::notice title" in wrong.stdout) == (1, False)
    for name in ("b.yaml", "p.yaml"):
        (checkout / "specs" / name).unlink()
    fine = run(checkout, REAL, FORK="true", PATHS_TO_GATE="")
    assert (fine.returncode, "::notice title" in fine.stdout) == (0, False)


def test_one_run_writes_all_forms(checkout: Path) -> None:
    """Programs are traced and compiled once, by one process, however many reports are wanted."""
    calls, page = checkout / "calls", checkout / "summary.md"
    wanted = {"SARIF": "out.sarif", "JUNIT": "out.xml", "HTML": "out.html", "GITHUB_STEP_SUMMARY": str(page)}
    demands = {"FAIL_UNDER": "90%", "BASELINE": "b.json", "SHARD": "1/2"}
    run(checkout, RECORDING, CALLS=str(calls), CI="0", **wanted, **demands)
    (call,) = calls.read_text().splitlines()
    for option in ("--sarif=out.sarif", "--junit=out.xml", "--html=out.html", "--fail-under=90%", "--baseline=b.json"):
        assert option in call.split()
    assert call.split()[-3:] == ["--gate=specs", "--", "specs"]
    assert run(checkout, REAL, **wanted).returncode == 0
    assert page.read_text().count("### layoutproof: 1 claim as stated") == 1
    assert '"version": "2.1.0"' in (checkout / "out.sarif").read_text()
    assert "<html" in (checkout / "out.html").read_text()


COMMENTING = '#!/bin/sh\necho "$@" >> "$CALLS"\ncp "$9" "$BODY"\n'


def test_the_comment_has_pictures_of_what_changed(checkout: Path) -> None:
    """Written where it is asked for, of a pull request of the repository itself and no fork's."""
    (checkout / "specs" / "a.yaml").write_text("layouts:\n  a: f32[3,5]{0,1}\nchecks:\n  - injective: a\n")
    calls, body = checkout / "calls", checkout / "body.md"
    program(checkout.parent / "bin", REAL)
    gh = checkout.parent / "bin" / "gh"
    gh.write_text(COMMENTING)
    gh.chmod(0o700)
    given = {"COMMENT": "true", "PULL_REQUEST": "7", "BASE_REPOSITORY": "us/it", "CALLS": str(calls), "BODY": str(body)}
    assert run(checkout, REAL, HEAD_REPOSITORY="us/it", **given).returncode == 1
    assert calls.read_text().split()[:3] == ["pr", "comment", "7"]
    assert "<summary>pictures</summary>" in body.read_text()
    calls.unlink()
    run(checkout, REAL, HEAD_REPOSITORY="them/it", **given)
    assert not calls.exists()


def test_what_a_runner_fills_in() -> None:
    """The label counts only in the run that its setting starts, and a fork is told from the repository itself."""
    (environment,) = [step["env"] for step in STEPS if step.get("id") == "run"]
    assert environment["APPROVED"] == (
        "${{ github.event.action == 'labeled' && github.event.label.name == inputs.approval-label }}"
    )
    assert environment["REFACTORING"] == (
        "${{ contains(github.event.pull_request.labels.*.name, inputs.refactoring-label) }}"
    )
    assert environment["GH_TOKEN"] == "${{ inputs.comment == 'true' && github.token || '' }}"
    assert environment["HEAD_REPOSITORY"] == "${{ github.event.pull_request.head.repo.full_name }}"
    assert environment["BASE_REPOSITORY"] == "${{ github.event.pull_request.base.repo.full_name }}"
    script = (ROOT / "action" / "run").read_text()
    for name in environment:
        # GH_TOKEN is read by gh itself
        assert f"${name}" in script or f"${{{name}" in script or name in ("CHECKOUT", "GH_TOKEN"), name


@pytest.mark.parametrize(
    ("version", "installed"), [("", "/the/checkout"), ("0.1.0", "layoutproof==0.1.0")], ids=["own checkout", "release"]
)
def test_what_is_installed(version: str, installed: str, tmp_path: Path) -> None:
    """The action's own checkout, never a bare name that anybody may register; a release only where one is named."""
    calls = tmp_path / "calls"
    path = os.pathsep.join((program(tmp_path / "bin", RECORDING), os.environ["PATH"]))
    given = {"CALLS": str(calls), "VERSION": version, "CHECKOUT": "/the/checkout", "PACKAGES": "jax", "PATH": path}
    subprocess.run(["bash", "-e", "-c", STEPS[1]["run"]], env={**os.environ, **given}, check=True)
    locked, own, more = (line.split() for line in calls.read_text().splitlines())
    assert locked[-3:] == ["--require-hashes", "-r", "/the/checkout/action/requirements.txt"]
    assert (own[-1], more[-1]) == (installed, "jax")
    assert "--no-deps" in own
    assert all(line[:3] == ["-P", "-m", "pip"] for line in (locked, own, more))
    assert STEPS[1]["working-directory"] == "${{ runner.temp }}"
    assert ACTION["inputs"]["version"]["default"] == ""


@pytest.mark.parametrize(
    ("head", "fork"), [("us/it", False), ("them/it", True), ("us/it-too", True), ("", True)], ids=str
)
def test_whose_change_it_is(head: str, fork: bool, checkout: Path) -> None:
    """By full names: a repository that is no fork to GitHub is one, and so is one that was deleted, which is null."""
    calls = checkout / "calls"
    given = {"PULL_REQUEST": "7", "HEAD_REPOSITORY": head, "BASE_REPOSITORY": "us/it"}
    run(checkout, RECORDING, CALLS=str(calls), CI="0", **given)
    assert [("--no-trace" in line) for line in calls.read_text().splitlines()] == [fork]


def test_a_push_is_no_fork(checkout: Path) -> None:
    """No pull request has no head: what is on main is our own."""
    calls = checkout / "calls"
    run(checkout, RECORDING, CALLS=str(calls), CI="0", PULL_REQUEST="", HEAD_REPOSITORY="")
    assert "--no-trace" not in calls.read_text()


def test_a_path_into_a_forks_checkout_is_left_out(checkout: Path) -> None:
    """A job that sets PYTHONPATH for its own code runs a fork's `yaml.py` no more."""
    (checkout / "yaml.py").write_text("raise SystemExit('from the pull request')\n")
    paths = os.pathsep.join((".", str(checkout), str(ROOT)))
    assert run(checkout, REAL, FORK="true", PYTHONPATH=paths).returncode == 0
    assert "from the pull request" in run(checkout, REAL, PYTHONPATH=paths).stderr


def test_everything_that_others_wrote_is_pinned() -> None:
    """Actions by commit, in our workflows, the action, what `init` writes and what the docs show; packages by hash."""
    files = [ROOT / "action.yml", ROOT / "layoutproof/answers/of_init.py", ROOT / "docs/howto/ci.md"]
    used = [
        use
        for file in [*files, *(ROOT / ".github" / "workflows").glob("*.yml")]
        for use in re.findall(r"uses: *(\S+)", file.read_text())
    ]
    assert len(used) >= 4
    assert [use for use in used if not re.search(r"@([0-9a-f]{40}|COMMIT)$", use)] == []
    rows = (ROOT / "action" / "requirements.txt").read_text().replace("\\\n", " ").splitlines()
    # a package that needs another version by the Python stands there several times
    locked = [re.match(r"([\w.-]+)==(\S+)", row) for row in rows if "==" in row]
    versions = [(found[1].lower(), found[2]) for found in locked if found is not None]
    assert all("--hash=sha256:" in row for row in rows if row and not row.startswith("#"))
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needs = [*wanted["project"]["dependencies"], *wanted["build-system"]["requires"]]
    for need in map(Requirement, needs):
        fit = [need.specifier.contains(version) for name, version in versions if name == need.name.lower()]
        assert fit, need
        assert all(fit), need


def test_what_signs_a_release_runs_nobodys_package() -> None:
    """A job that has a token to sign or to publish with runs pinned actions alone: any package could sign."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    signing = {name: job for name, job in jobs.items() if "id-token" in job.get("permissions", {})}
    assert set(signing) == {"attest", "publish"}
    for job in signing.values():
        assert all("run" not in step for step in job["steps"])
    assert "cyclonedx-py" in str(jobs["bill"])
    assert "pip-audit --disable-pip --require-hashes --strict" in (ROOT / ".ci" / "nightly").read_text()


def test_a_module_in_the_checkout_is_not_imported(checkout: Path) -> None:
    """A pull request that brings a `yaml.py` runs none of it."""
    (checkout / "yaml.py").write_text("open('ran', 'w').close()\nraise SystemExit('from the pull request')\n")
    done = run(checkout, REAL, FORK="true")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (checkout / "ran").exists()


def test_a_file_that_is_called_as_an_option(checkout: Path) -> None:
    """`*` in the lists of paths finds it, and it is a path: it neither sets anything nor is written over."""
    (checkout / "--output=b.yaml").write_text("checks: [{injective: {strided: 'f32[3,5] strides (4,1)'}}]\n")
    (checkout / "b.yaml").write_text("checks: [{injective: {strided: 'f32[3,5] strides (5,1)'}}]\n")
    before = (checkout / "b.yaml").read_text()
    done = run(checkout, REAL, PATHS_TO_CHECK="*.yaml", PATHS_TO_GATE="*.yaml")
    assert (checkout / "b.yaml").read_text() == before
    assert done.returncode == 1, done.stderr
    assert stretch("properties.replicas_distinct_both", place="offset 4") in done.stdout


def test_answers_between_jobs(checkout: Path) -> None:
    """With a secret they are kept in the folder that is saved, without what no run used for a month; forks none."""
    kept, told = checkout.parent / "answers", checkout / "told"
    kept.mkdir(mode=0o700)
    for name, age in (("old", 40 * 86400), ("new", 86400)):
        (kept / name).touch()
        os.utime(kept / name, (time.time() - age,) * 2)
    says = '#!/bin/sh\necho "$LAYOUTPROOF_CACHE $LAYOUTPROOF_CACHE_KEY" >> "$TOLD"\n'
    given = {"TOLD": str(told), "ANSWERS": str(kept), "CACHE_KEY": "k" * 32}
    run(checkout, says, FORK="true", **given)
    assert {path.name for path in kept.iterdir()} == {"old", "new"}
    run(checkout, says, **given)
    assert told.read_text().splitlines() == ["off ", f"{kept} {'k' * 32}"]
    assert {path.name for path in kept.iterdir()} == {"new"}


def test_steps_that_bring_answers_back() -> None:
    """One folder and name for both; never without the secret; a red run's are saved; first those of the same part."""
    restore, save = (step for step in STEPS if "actions/cache/" in step.get("uses", ""))
    (environment,) = [step["env"] for step in STEPS if step.get("id") == "run"]
    assert restore["with"]["path"] == save["with"]["path"] == environment["ANSWERS"]
    assert restore["with"]["key"] == save["with"]["key"]
    assert (restore["if"], save["if"]) == ("inputs.cache-key != ''", "always() && inputs.cache-key != ''")
    assert STEPS.index(restore) < next(k for k, step in enumerate(STEPS) if step.get("id") == "run") < STEPS.index(save)
    same_part, any_part = restore["with"]["restore-keys"].splitlines()
    assert (restore["with"]["key"].startswith(same_part), same_part) == (True, f"{any_part}${{{{ inputs.shard }}}}-")
    assert ACTION["inputs"]["cache-key"]["default"] == ""
