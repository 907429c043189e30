"""Git repositories of a stranger, which `gate --against` reads: their settings, missing objects and names in trees."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.attacks.room import GIT, RAN, ROOT, Untried, environment, git, layoutproof

NIGHT: tuple[str, ...] = ()
SPEC = "layouts:\n  a: f32[3,5]{{1,0}}\n  b: f32[{rows},5]{{1,0}}\nchecks:\n  - injective: a\n"
SETTINGS = {
    "core.fsmonitor": "{program}",
    "core.pager": "{program}",
    "core.editor": "{program}",
    "core.sshCommand": "{program}",
    "core.gitProxy": "{program}",
    "core.askPass": "{program}",
    "core.hooksPath": "{hooks}",
    "core.alternateRefsCommand": "{program}",
    "core.attributesFile": "{attributes}",
    "credential.helper": "!{program}",
    "diff.external": "{program}",
    "diff.evil.textconv": "{program}",
    "diff.evil.command": "{program}",
    "filter.evil.smudge": "{program}",
    "filter.evil.clean": "{program}",
    "filter.evil.process": "{program}",
    "filter.evil.required": "true",
    "gpg.program": "{program}",
    "log.showSignature": "true",
    "pager.rev-parse": "{program}",
    "pager.ls-tree": "{program}",
    "pager.config": "{program}",
    "submodule.recurse": "true",
    "protocol.allow": "always",
    "protocol.ext.allow": "always",
    "protocol.file.allow": "always",
    "uploadpack.packObjectsHook": "{program}",
} | {f"alias.{name}": "!{program}" for name in ("cat-file", "config", "ls-files", "ls-tree", "rev-parse")}


def settings_of_the_repository(room: Path) -> str:
    """Every setting of a repository that names a program names the stranger's, also through `include.path`."""
    work = _repository(room)
    _settings(work)
    return _gate(work, 0, "gate", "specs", "--against", "HEAD")


def a_blob_that_is_not_there(room: Path) -> str:
    """What the base holds is missing, and the remote to fetch it from is a program of the stranger's."""
    work = _repository(room)
    blob = git(work, "rev-parse", "HEAD:specs/a.yaml").strip()
    (work / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": str(work),
        "remote.origin.uploadpack": str(_program(work)),
        "protocol.allow": "always",
        "protocol.file.allow": "always",
    }.items():
        git(work, "config", name, value)
    return _gate(work, 2, "gate", "specs", "--against", "HEAD") or _gate(
        work, 2, "gate", "specs", "--against", "HEAD", without=("GIT_NO_LAZY_FETCH",)
    )


def a_base_that_is_written_out(room: Path) -> str:
    """`--compile-base` writes a base whose files have filters, whose links and names lead out of its folder."""
    work = _repository(room)
    (work / ".gitattributes").write_text("* filter=evil diff=evil text eol=crlf\n")
    (work / "specs" / "out.yaml").symlink_to("/etc/passwd")
    (work / "specs" / "up").symlink_to("../../..")
    git(work, "add", ".")
    git(work, "commit", "-qm", "two")
    _settings(work)
    (found, left) = _written(work)
    if (work.parent / RAN).exists():
        return (work.parent / RAN).read_text()
    if found.get("specs/a.yaml") != SPEC.format(rows=3):
        return f"not as the objects have it: {found}"
    links = [name for name in found if name in ("specs/out.yaml", "specs/up")]
    return (", ".join(links) and f"links lead out of the folder: {links}") or left


def attributes_that_rewrite_contents(room: Path) -> str:
    """`.gitattributes` has what is read rewritten: export-subst, ident, an encoding, filters of LFS, no export at all.

    What the base holds is compared as it is: the claim that the head weakens is seen.
    """
    work = _repository(room)
    rules = (
        "* export-subst ident working-tree-encoding=UTF-16 filter=lfs diff=lfs merge=lfs -text\nspecs/* export-ignore\n"
    )
    (work / ".gitattributes").write_text(rules)
    (work / ".git" / "info" / "attributes").write_text(rules)
    program = _program(work)
    for name in ("clean", "smudge", "process"):
        git(work, "config", f"filter.lfs.{name}", str(program))
    (work / "specs" / "a.yaml").write_text(SPEC.format(rows=4) + "# $Format:%H$ $Id$\n")
    done = layoutproof(work, "gate", "specs", "--against", "HEAD")
    if (work.parent / RAN).exists():
        return (work.parent / RAN).read_text()
    said = " ".join(done.stdout.split())
    return "" if "reshaped layout b" in said else f"exit {done.returncode}: {said}{done.stderr}"


def a_git_that_is_no_folder(room: Path) -> str:
    """`.git` is a file or a link that leads to another repository, whose settings name the stranger's program."""
    work, other = _repository(room), _repository(room / "other")
    _settings(other)
    kept = work / ".git"
    kept.rename(room / "kept")
    said = ""
    for plant in (
        lambda: kept.write_text(f"gitdir: {other / '.git'}\n"),
        lambda: kept.symlink_to(other / ".git"),
        lambda: kept.write_text("gitdir: " + "a/" * 100_000),
        lambda: kept.symlink_to(".git"),
    ):
        plant()
        said += _gate(work, 2, "gate", "specs", "--against", "HEAD", allowed=(0, 1, 2, 3))
        kept.unlink()
    return said


def names_in_the_base_that_lead_elsewhere(room: Path) -> str:
    """A tree made by hand has files called `../x`, `.git/config` and `a` under a link called `a`."""
    work = _repository(room)
    blob = git(work, "rev-parse", "HEAD:specs/a.yaml").strip()
    link = _hashed(work, "blob", str(room).encode())
    said = []
    for names in (
        [("100644", "..", "tree")],
        [("100644", ".git", "tree")],
        [("100644", ".GIT ", "blob")],
        [("100644", "../x.yaml", "blob")],
        [("120000", "specs", "link"), ("40000", "specs", "tree")],
    ):
        inner = _hashed(work, "tree", _row("100644", "config", blob))
        rows = b"".join(
            _row("40000" if what == "tree" else mode, name, {"tree": inner, "blob": blob, "link": link}[what])
            for mode, name, what in names
        )
        commit = git(work, "commit-tree", "-m", "x", _hashed(work, "tree", rows)).strip()
        before = _everything(room)
        _written(work, commit)
        said += sorted(_everything(room) - before)
    return "\n".join(said)


def a_work_tree_elsewhere(room: Path) -> str:
    """`core.worktree` says that the files are elsewhere, so that another folder's would be compared."""
    work = _repository(room)
    git(work, "config", "core.worktree", "/")
    return _gate(work, 2, "gate", "specs", "--against", "HEAD")


def a_bare_repository_in_the_tree(room: Path) -> str:
    """A folder of the pull request looks like a bare repository, and the gate runs inside of it."""
    work = _repository(room)
    evil = work / "evil"
    git(room, "init", "-q", "--bare", str(evil))
    (evil / "specs").mkdir()
    (evil / "specs" / "a.yaml").write_text(SPEC.format(rows=3))
    for name, value in {
        "core.bare": "false",
        "core.worktree": str(evil),
        "core.fsmonitor": str(_program(work)),
    }.items():
        git(work, "config", "--file", str(evil / "config"), name, value)
    return _gate(evil, 0, "gate", "specs", "--against", "HEAD", allowed=(0, 1, 2, 3))


def replaced_and_grafted_objects(room: Path) -> str:
    """The base is replaced by a commit of the stranger's, by `refs/replace` and by grafts."""
    work = _repository(room)
    base = git(work, "rev-parse", "HEAD").strip()
    (work / "specs" / "a.yaml").write_text(SPEC.format(rows=4))
    git(work, "commit", "-qam", "two")
    git(work, "replace", base, "HEAD")
    (work / ".git" / "info").mkdir(exist_ok=True)
    (work / ".git" / "info" / "grafts").write_text("")
    done = layoutproof(work, "gate", "specs", "--against", base)
    said = " ".join(done.stdout.split())
    return "" if "reshaped layout b" in said else f"the base is not what its name says: {said}"


def variables_of_the_caller(room: Path) -> str:
    """`GIT_DIR` and others lead git to the stranger's repository, and PATH starts with the folder that is checked."""
    work, other = _repository(room), _repository(room / "other")
    _settings(other)
    (work / "git").write_text((_program(work)).read_text())
    (work / "git").chmod(0o755)
    more = {
        "GIT_DIR": str(other / ".git"),
        "GIT_EXTERNAL_DIFF": str(_program(work)),
        "GIT_SSH_COMMAND": str(_program(work)),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(_program(work)),
        "PATH": f".:{os.environ['PATH']}",
    }
    return _gate(work, 0, "gate", "specs", "--against", "HEAD", more=more)


def a_reference_that_is_an_option(room: Path) -> str:
    """What is compared with is an option of git, on the command line and in the action's script."""
    work = _repository(room)
    program = _program(work)
    git(room, "clone", "-q", str(work), "clone")
    for option in (
        f"--upload-pack={program}",
        f"--output={room / RAN}",
        "+HEAD:refs/heads/made",
        "HEAD:refs/heads/made",
    ):
        done = _action(room / "clone", option)
        if done.returncode != 2:
            return f"{option}: exit {done.returncode}"
    written = git(room / "clone", "for-each-ref", "refs/heads/made")
    return written or _gate(work, 2, "gate", "specs", "--against", f"--upload-pack={program}")


def references_that_are_called_as_options(room: Path) -> str:
    """Branches and tags of the repository are called as options of git are, and HEAD leads to one of them."""
    work = _repository(room)
    head = git(work, "rev-parse", "HEAD").strip()
    for name in (f"--output={room / RAN}", f"--upload-pack={_program(work)}", "-x"):
        for kind in ("heads", "tags"):
            path = work / ".git" / "refs" / kind / name.replace("/", "_")
            path.write_text(f"{head}\n")
    (work / ".git" / "HEAD").write_text("ref: refs/heads/-x\n")
    return _gate(work, 0, "gate", "specs", "--against", "HEAD") or _gate(work, 2, "gate", "specs", "--against=-x")


def _repository(room: Path) -> Path:
    work = room / "work"
    (work / "specs").mkdir(parents=True)
    (work / "specs" / "a.yaml").write_text(SPEC.format(rows=3))
    git(work, "init", "-q", "-b", "main")
    git(work, "add", ".")
    git(work, "commit", "-qm", "one")
    return work


def _program(work: Path) -> Path:
    """A program of the stranger's, outside of the work tree, that tells when it runs."""
    program = work.parent / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $@" >> {work.parent / RAN}\nexit 1\n')
    program.chmod(0o755)
    return program


def _settings(work: Path) -> None:
    program, hooks = _program(work), work.parent / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc"):
        (hooks / name).write_text(program.read_text())
        (hooks / name).chmod(0o755)
    attributes = work.parent / "attributes"
    attributes.write_text("* filter=evil diff=evil\n")
    included = work.parent / "included"
    for name, value in SETTINGS.items():
        said = value.format(program=program, hooks=hooks, attributes=attributes)
        git(work, "config", "--file", str(included), name, said)
    (work / ".git" / "config").write_text(f"[include]\n\tpath = {included}\n" + (work / ".git" / "config").read_text())
    with open(work / ".git" / "config", "a") as config:
        config.write(f"[include]\n\tpath = {included}\n")


def _gate(
    work: Path,
    code: int,
    *arguments: str,
    more: dict[str, str] | None = None,
    allowed: tuple[int, ...] = (),
    without: tuple[str, ...] = (),
) -> str:
    """What ran, or another exit code than the one that is right. without: variables that an older git does not know."""
    if without:
        code_of = f"from layoutproof.gating import git; [git._ENVIRONMENT.pop(name) for name in {without!r}]"
        python = f"import sys; {code_of}; from layoutproof.cli.main import run; sys.exit(run({list(arguments)!r}))"
        command = [sys.executable, "-P", "-c", python]
        done = subprocess.run(command, cwd=work, env=environment(more), capture_output=True, text=True, timeout=300)
    else:
        done = layoutproof(work, *arguments, more=more)
    told = next((f / RAN for f in (work.parent, work.parent.parent) if (f / RAN).exists()), None)
    if told is not None:
        return told.read_text()
    return "" if done.returncode in (code, *allowed) else f"exit {done.returncode}: {done.stdout}{done.stderr}"


def _action(work: Path, against: str) -> subprocess.CompletedProcess[str]:
    if os.name != "posix":
        raise Untried("no bash here")
    given = {"AGAINST": against, "BASE": "", "DEFAULT": "main", "PATHS_TO_GATE": "", "PATHS_TO_CHECK": "", "MORE": ""}
    given["GITHUB_OUTPUT"] = str(work.parent / "output")
    command = [str(ROOT / "action" / "run")]
    return subprocess.run(command, cwd=work, env={**os.environ, **GIT, **given}, capture_output=True, text=True)


def _written(work: Path, reference: str = "HEAD") -> tuple[dict[str, str], str]:
    """The files of a revision as `--compile-base` has them written, and what it left in the repository."""
    from layoutproof.core.errors import LayoutError
    from layoutproof.gating.git import write_tree

    before = git(work, "worktree", "list") if reference == "HEAD" else ""
    with tempfile.TemporaryDirectory(dir=work.parent) as place:
        folder = Path(place) / "here" / "there"
        folder.mkdir(parents=True)
        try:
            write_tree(work, git(work, "rev-parse", reference).strip(), folder)
        except LayoutError:
            return {}, ""
        files = [path for path in folder.rglob("*") if path.is_symlink() or path.is_file()]
        found = {path.relative_to(folder).as_posix(): path.read_text() for path in files}
    return found, "" if before == (git(work, "worktree", "list") if before else "") else "a work tree is left"


def _row(mode: str, name: str, identity: str) -> bytes:
    return f"{mode} {name}\0".encode() + bytes.fromhex(identity)


def _hashed(work: Path, kind: str, data: bytes) -> str:
    command = ["git", "hash-object", "-w", "--literally", "-t", kind, "--stdin"]
    done = subprocess.run(command, cwd=work, input=data, env={**os.environ, **GIT}, capture_output=True, check=True)
    return done.stdout.decode().strip()


def _everything(room: Path) -> set[str]:
    return {str(path) for path in room.rglob("*") if ".git/objects" not in str(path)}
