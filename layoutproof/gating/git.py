"""Git, asked for what a repository keeps: the one place that starts it.

A repository may be a stranger's: then its settings, its objects and the names in its trees are too. So git is started
with commands that only read (`READS`), never with one that checks out, filters, fetches or shows: no hook, monitor,
filter, pager, alias, transport or program that the repository names runs. Contents come from objects, as they are.

Source: git(1) and git-config(1). A git before 2.45 does not know `GIT_NO_LAZY_FETCH`: there `GIT_ALLOW_PROTOCOL`, which
no setting overrules, ends the fetch before a program is started.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.message import extended
from layoutproof.gating import problems

READS = Literal["cat-file", "config", "ls-files", "ls-tree", "rev-parse"]
_SETTINGS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.alternateRefsCommand=",
    "core.sshCommand=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
)
_OPTIONS = (
    *("--no-pager", "--no-replace-objects", "--no-optional-locks", "--literal-pathspecs"),
    *(word for setting in _SETTINGS for word in ("-c", setting)),
)
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_FOUND = re.compile(rb"([0-9a-f]{40,64}) (blob|tree) [0-9]+")
LINK, MODULE = "120000", "160000"
_AT_ONCE = 64 << 20
"""Bytes of contents that are held at once while a revision is written."""


def git(where: Path, command: READS, *options: str, given: bytes | None = None) -> bytes:
    """The output of git in a folder. LayoutError in its own words where it refuses.

    options: a user's text stands after `--end-of-options` or `--`, or is a name that git itself gave.
    """
    said = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # where PATH names the current folder, a program of the repository called git would be found there
    paths = [path for path in said.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(path)]
    try:
        done = subprocess.run(
            ["git", *_OPTIONS, "-C", str(where), command, *options],
            input=b"" if given is None else given,
            capture_output=True,
            env={**said, **_ENVIRONMENT, "PATH": os.pathsep.join(paths)},
            check=False,
        )
    except FileNotFoundError:
        raise LayoutError(problems.NO_GIT()) from None
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise LayoutError(f"git: {shorten(words[0]) if words else f'{command} failed'}")
    return done.stdout


def top_here() -> Path:
    """The top of the repository that the current folder is in: the nearest folder upwards that has .git.

    LayoutError where there is none, and where its settings say that its files are elsewhere.
    """
    here = Path.cwd()
    marked = _marked(here)
    top = Path(git(marked or here, "rev-parse", "--show-toplevel").decode(errors="surrogateescape").rstrip("\n"))
    if marked is None or top.resolve() != marked.resolve():
        where = "no folder above has .git" if marked is None else f".git is in {marked}"
        raise LayoutError(problems.OTHER_REPOSITORY(top, where))
    return top


def _marked(here: Path) -> Path | None:
    # git would take a folder that looks like a bare repository for one before it looks further up
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)


def commit_of(top: Path, reference: str) -> str:
    """The commit that a person names by a branch, a tag or a revision, in hexadecimal. LayoutError where none is."""
    if reference.startswith("-"):
        raise LayoutError(problems.NO_REVISION_NAME(shorten(reference, 40)))
    asked = ("--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
    try:
        found = git(top, "rev-parse", *asked).decode(errors="replace").split()
    except (LayoutError, ValueError):
        hint = "in CI, fetch it first, e.g. actions/checkout with fetch-depth: 0"
        raise LayoutError(problems.UNKNOWN_REVISION(shorten(reference, 60), hint)) from None
    # versions older than the option repeat it
    return found[-1]


def author(where: Path) -> str:
    """The name that git signs commits with, "" where it has none or there is no git."""
    try:
        return " ".join(git(where, "config", "--get", "user.name").decode(errors="replace").split())
    except LayoutError:
        return ""


def listed(
    top: Path, command: Literal["ls-tree", "ls-files"], what: str, relpaths: Sequence[str], deep: bool = True
) -> Iterator[tuple[str, str, str]]:
    """(mode, identity, path) of what a commit or the index (`what` is --stage) has at some paths."""
    flags = ["-r"] if command == "ls-tree" and deep else []
    listing = git(top, command, *flags, "-z", what, "--", *(u or "." for u in relpaths))
    for line in listing.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        about, _, name = line.partition("\t")
        parts = about.split()
        yield parts[0], parts[2] if command == "ls-tree" else parts[1], name


def led_to(top: Path, commit: str, relpath: str) -> tuple[str, str]:
    """(blob or tree, identity) of what a path of a commit leads to through its links; ("", "") for nothing."""
    if "\n" in relpath:
        return "", ""
    asked = f"{commit}:{relpath}\n".encode(errors="surrogateescape")
    found = _FOUND.fullmatch(git(top, "cat-file", "--batch-check", "--follow-symlinks", given=asked).strip())
    return (found[2].decode(), found[1].decode()) if found else ("", "")


def has_commit(top: Path, commit: str) -> bool:
    """Whether a repository has a commit."""
    try:
        git(top, "cat-file", "-e", f"{commit}^{{commit}}")
    except LayoutError:
        return False
    return True


def contents_of(top: Path, identities: Sequence[str]) -> list[bytes | None]:
    """The contents of many blobs, of identities or `commit:path`; None for a path that leads to no file of the commit.

    LayoutError where a blob is not here: none is fetched.
    """
    if not identities:
        return []
    given = "".join(f"{i}\n" for i in identities).encode(errors="surrogateescape")
    try:
        out = git(top, "cat-file", "--batch", "--follow-symlinks", given=given)
    except LayoutError as error:
        raise LayoutError(extended(error.problem, f"; {_PARTIAL}")) from None
    found: list[bytes | None] = []
    at = 0
    for identity in identities:
        end = out.index(b"\n", at)
        head = out[at:end]
        is_blob = (parts := _FOUND.fullmatch(head)) is not None and parts[2] == b"blob"
        if not is_blob and ":" not in identity:
            raise LayoutError(problems.CONTENTS_MISSING(identity, _PARTIAL))
        if head.endswith(b" missing"):
            found.append(None)
            at = end + 1
            continue
        size = int(head.rpartition(b" ")[2])
        found.append(out[end + 1 : end + 1 + size] if is_blob else None)
        at = end + size + 2
    return found


_PARTIAL = "of a partial clone fetch it first (git fetch --refetch --no-filter): nothing is fetched by itself"


def write_tree(top: Path, commit: str, folder: Path) -> None:
    """The files of a commit in an empty folder, as its objects have them: no filter, hook or line end is applied.

    A link that leads out of the folder is left out, and what submodules hold. LayoutError for a name that is none.
    """
    links: list[tuple[Path, str]] = []
    for names in _in_parts(top, commit):
        data = contents_of(top, [identity for _, identity, _ in names])
        for (mode, _, name), contents in zip(names, data, strict=True):
            path = folder / _sound(name)
            if mode == LINK:
                links.append((path, os.fsdecode(contents or b"")))
                continue
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with open(path, "xb") as file:
                    file.write(contents or b"")
                if mode == "100755":
                    path.chmod(0o755)
            except OSError as error:
                raise LayoutError(problems.FILE_NOT_WRITTEN(shorten(name, 120), commit[:10], error)) from None
    # after all files, so that nothing is written through one
    for path, target in links:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)
        except (OSError, ValueError) as error:
            raise LayoutError(problems.LINK_NOT_WRITTEN(shorten(path.name, 120), error)) from None
    root = folder.resolve()
    for path in [path for path, _ in links if not Path(os.path.realpath(path)).is_relative_to(root)]:
        path.unlink()


def _in_parts(top: Path, commit: str) -> Iterator[list[tuple[str, str, str]]]:
    """The files and links of a commit as `listed` gives them, in lists of which each can be held in memory."""
    listing = git(top, "ls-tree", "-r", "-z", "-l", commit).decode("utf-8", "surrogateescape")
    part: list[tuple[str, str, str]] = []
    held = 0
    for line in listing.split("\0")[:-1]:
        about, _, name = line.partition("\t")
        mode, _, identity, size = about.split()
        if mode == MODULE:
            continue
        if part and held + int(size) > _AT_ONCE:
            yield part
            part, held = [], 0
        part.append((mode, identity, name))
        held += int(size)
    yield part


def _sound(name: str) -> str:
    """The path of a file in a tree, as git itself would write it. LayoutError for one that leads elsewhere."""
    if any(map(_is_no_name, name.split("/"))):
        raise LayoutError(problems.NO_FILE_NAME(shorten(name, 120)))
    return name


def _is_no_name(part: str) -> bool:
    """Whether a name in a tree is one that git refuses to write: it leads elsewhere, or into git's own folder."""
    # on some systems .GIT, git~1 and ".git " are .git
    plain = part.lower().rstrip(". ")
    elsewhere = os.sep == "\\" and any(mark in part for mark in "\\:")
    return part in ("", ".", "..") or elsewhere or plain == ".git" or plain.startswith("git~")
