"""Links in a pull request that lead out of it: what lies elsewhere on the machine is quoted in no report."""

from __future__ import annotations

import json
import os
from pathlib import Path

from benchmarks.attacks.room import git, layoutproof

NIGHT = ("files_that_are_links", "folders_that_are_links", "what_git_keeps", "links_in_circles")
"""Each is a dozen processes; `tests/cli/test_links.py` tries the same in one."""
SECRET = "sk_live_51Hq"
TEXTS = {
    "yaml": f"{SECRET}: of this machine\n",
    "txt": f"[{SECRET}]\nHloModule\n",
    "json": f'["{SECRET}"]\n',
    "toml": f"[tool.layoutproof]\n{SECRET} = 1\n[tool.layoutproof.gate]\n{SECRET} = 1\n",
}


def files_that_are_links(room: Path) -> str:
    """Spec files, dumps, records, locks and settings of a pull request are links to files of the machine."""
    work, outside = _work(room)
    (work / "specs" / "a.yaml").symlink_to(outside / "secret.yaml")
    (work / "specs" / "a.txt").symlink_to(outside / "secret.txt")
    (work / "specs" / "a.json").symlink_to(outside / "secret.json")
    (work / "layoutproof.lock").symlink_to(outside / "secret.json")
    (work / "pyproject.toml").symlink_to(outside / "secret.toml")
    (work / "rows.json").symlink_to("specs/a.json")
    return _quoted(work)


def folders_that_are_links(room: Path) -> str:
    """The folder of claims is a link to one of the machine, which is a repository, or to a link that leads there."""
    work, outside = _work(room)
    git(outside, "init", "-q")
    for name in ("a.yaml", "a.txt", "a.json"):
        (outside / name).write_text(TEXTS[name[2:]])
    (work / "specs").rmdir()
    (work / "between").symlink_to(outside, target_is_directory=True)
    (work / "specs").symlink_to("between", target_is_directory=True)
    return _quoted(work)


def what_git_keeps(room: Path) -> str:
    """A spec file is a link to `.git/config`, where a checkout keeps its token."""
    work, _ = _work(room)
    git(work, "config", f"http.{SECRET}.extraheader", SECRET)
    (work / "specs" / "a.yaml").symlink_to("../.git/config")
    return _quoted(work)


def links_in_circles(room: Path) -> str:
    """Spec files and folders are links to themselves and to one another; beside them lie pipes and sockets."""
    work, _ = _work(room)
    specs = work / "specs"
    (specs / "a.yaml").symlink_to("a.yaml")
    (specs / "b.yaml").symlink_to("c.yaml")
    (specs / "c.yaml").symlink_to("b.yaml")
    (specs / "loop").symlink_to(".", target_is_directory=True)
    (specs / "up").symlink_to("..", target_is_directory=True)
    (specs / "nowhere.txt").symlink_to("missing")
    os.mkfifo(specs / "pipe.yaml")
    os.mkfifo(work / "pyproject.toml")
    os.mkfifo(work / "layoutproof.lock")
    said = ""
    for words in (("check", "specs"), ("gate", "specs", "--against", "HEAD"), ("gate",), ("kernels", "specs/a.yaml")):
        for more in (("--no-trace",), ()):
            done = layoutproof(work, *words, *more, seconds=120.0)
            told = done.stdout + done.stderr
            if done.returncode not in (2, 3) or "Traceback" in told or "a bug in" in told:
                said += f"{words} exit {done.returncode}: {told[-600:]}\n"
    return said


def files_that_a_file_names(room: Path) -> str:
    """`dump:` and `record:` of a spec file name files of the machine: by an absolute path, by `..`, through a link."""
    work, outside = _work(room)
    (work / "link").symlink_to(outside, target_is_directory=True)
    said = {"dump": "secret.txt", "record": "secret.json"}
    paths = [(key, f"{way}/{name}") for key, name in said.items() for way in (outside, "../outside", "link")]
    programs = {f"p{k}": {key: path} for k, (key, path) in enumerate(paths)}
    checks = [{"peak_memory": name, "at_most": "1GiB"} for name in programs]
    (work / "specs" / "a.yaml").write_text(json.dumps({"programs": programs, "checks": checks}))
    done = layoutproof(work, "check", "specs", "--no-trace")
    told = done.stdout + done.stderr
    return told if SECRET in told or told.count("outside of the repository") < len(paths) else ""


def _work(room: Path) -> tuple[Path, Path]:
    work, outside = room / "work", room / "outside"
    (work / "specs").mkdir(parents=True)
    outside.mkdir()
    for end, text in TEXTS.items():
        (outside / f"secret.{end}").write_text(text)
    git(work, "init", "-q", "-b", "main")
    git(work, "commit", "-q", "--allow-empty", "-m", "one")
    return work, outside


def _quoted(work: Path) -> str:
    """What any command says of the secret; also that a link that stays within the repository is read."""
    fine = 'layouts: {a: "f32[3,5]{1,0}"}\nchecks: [{injective: a}]\n'
    (work / "mine").mkdir()
    (work / "mine" / "b.yaml").symlink_to("../real.yaml")
    (work / "real.yaml").write_text(fine)
    (work / "other").mkdir()
    (work / "other" / "a.yaml").write_text(fine)
    said = ""
    for command in (
        ("check", "specs"),
        ("check", str(work / "specs"), "--jobs", "2"),
        ("gate", "specs", "--against", "HEAD"),
        ("gate", "specs", "--against", "HEAD", "--jobs", "2"),
        ("gate", "other", "specs"),
        ("gate",),
        ("search", "specs/a.yaml"),
        ("search", "matmul", "8", "8", "8", "--prune", "rows.json"),
        ("kernels", "specs/a.yaml"),
        ("kernels", "specs/a.txt"),
    ):
        done = layoutproof(work, *command, "--no-trace")
        if SECRET in done.stdout + done.stderr or done.returncode in (0, 1):
            said += f"{json.dumps(command)} exit {done.returncode}: {done.stdout}{done.stderr}\n"
    kept = layoutproof(work, "check", "mine", "--no-trace")
    return said + ("" if kept.returncode == 0 else f"a link that stays: {kept.stdout}{kept.stderr}")
