"""The files of the user that a run has read: those that it opened, those of its modules, and the folders it listed.

What a run answers depends on them, on its options, on the tool (`cache.tool`), on the packages that are installed and
on a few variables of the environment, and on nothing else that a kernel's code usually asks for. So a run whose files
all hold what they held gives the same answer, and nothing is imported to find that out, as pytest-testmon does for
tests. A name that is only looked for counts with its folder: a file that is new there is another listing.

Not seen: what other processes of the run read, whose runs take `whole` instead; variables of the environment other
than `VARIABLES`; the network, the clock.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from layoutproof.compiler import cache
from layoutproof.core.errors import LayoutError
from layoutproof.core.files import MIB, read
from layoutproof.core.opens import imported, opening

MOST_FILE = 256 * MIB
VARIABLES = ("JAX_", "XLA_", "LIBTPU", "TPU_", "PYTHON", "CUDA_VISIBLE")
"""The beginnings of the variables that count."""
CODE_AND_DATA = (
    ".py", ".pyi", ".so", ".yaml", ".yml", ".json", ".jsonl", ".toml", ".cfg", ".ini", ".csv", ".npy", ".npz", ".txt",
    ".hlo", ".mlir", ".pkl", ".lock", ".gz",
)  # fmt: skip
"""The endings of files that `whole` counts: code, and data that specs and kernels read."""
_NOT_READ = ("__pycache__", "node_modules")

Read = tuple[str, str, str]
"""("file" or "folder", its path, a digest of what it holds; "" where there is none)."""


class Reads:
    """What was read so far, in the order of the first time."""

    def __init__(self, leave: Sequence[str]) -> None:
        self.leave = {os.path.abspath(path) for path in leave}
        self.files: dict[str, None] = {}
        self.folders: dict[str, None] = {}
        self.on = True
        self.start = time.time()

    def __call__(self, event: str, given: tuple[object, ...]) -> None:
        if self.on and (found := opening(event, given)) is not None and found.reads:
            (self.folders if found.folder else self.files)[found.path] = None

    def list(self) -> list[Read] | None:
        """Each with the digest of what it holds; None where one has changed since the run began, so that nobody knows
        which of both was read."""
        self.files |= dict.fromkeys(imported())
        ours = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, *_elsewhere())
        if (kept_answers := cache.folder()) is not None:
            ours += (str(kept_answers) + os.sep,)

        def kept(path: str) -> bool:
            parts = path.split(os.sep)
            if path in self.leave or any(part in _NOT_READ or part == ".git" for part in parts):
                return False
            return not path.startswith(ours) and not path.endswith(".pyc") and "site-packages" not in parts

        files = [path for path in self.files if kept(path) and not _special(path)]
        if any(_changed_at(path) >= self.start for path in files):
            return None
        found: list[Read] = [("file", path, _file(path)) for path in files]
        return found + [("folder", path, _folder(path, self.leave)) for path in self.folders if kept(path)]


@contextlib.contextmanager
def recorded(leave: Sequence[str] = ()) -> Iterator[Reads]:
    """Within it everything that this process reads is noted. leave: files that the run itself writes."""
    found = Reads(leave)
    # Python has no way to take a hook out again; it is told to stop
    sys.addaudithook(found)
    try:
        yield found
    finally:
        found.on = False


def whole(root: Path, leave: Sequence[str] = ()) -> list[Read]:
    """All code and data of a repository as one entry, for runs whose other processes read what nobody notes."""
    return [("tree", str(root), _tree(root, leave))]


def unchanged(reads: Sequence[Sequence[str]], leave: Sequence[str] = ()) -> bool:
    """Whether everything holds what it held.

    >>> unchanged([("file", "/there/is/no/such/file", "")])
    True
    """
    left = {os.path.abspath(path) for path in leave}

    def now(kind: str, path: str) -> str:
        if kind == "tree":
            return _tree(Path(path), leave)
        return _file(path) if kind == "file" else _folder(path, left)

    return all(now(kind, path) == digest for kind, path, digest in reads)


def surroundings() -> list[str]:
    """The installed packages by name and version, and the variables that count."""
    installed = [
        name
        for entry in dict.fromkeys(sys.path)
        if entry and os.path.isdir(entry)
        for name in sorted(os.listdir(entry))
        if name.endswith((".dist-info", ".egg-info", ".pth"))
    ]
    return [*installed, *(f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(VARIABLES))]


def _elsewhere() -> tuple[str, ...]:
    """Python's own folders, and those of the system."""
    own = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    return (*(os.path.join(folder, "lib") + os.sep for folder in own), "/proc/", "/sys/", "/dev/", "/etc/", "/usr/")


def _special(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)


def _changed_at(path: str) -> float:
    try:
        return os.stat(path).st_ctime
    except OSError:
        return 0.0


def _file(path: str) -> str:
    try:
        return hashlib.sha256(read(path, MOST_FILE)).hexdigest()
    except LayoutError:
        return ""


def _folder(path: str, leave: set[str]) -> str:
    """Of the names in it; those of hidden files and of what the run writes are left out."""
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return ""
    kept = [n for n in names if not n.startswith(".") and n not in _NOT_READ and os.path.join(path, n) not in leave]
    return hashlib.sha256("\0".join(kept).encode(errors="surrogateescape")).hexdigest()


def _tree(root: Path, leave: Sequence[str]) -> str:
    left = {os.path.abspath(path) for path in leave}
    done = hashlib.sha256()
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if not n.startswith(".") and n not in _NOT_READ and not _made(folder, n))
        for name in sorted(files):
            path = os.path.join(folder, name)
            if name.endswith(CODE_AND_DATA) and path not in left and os.path.abspath(path) not in left:
                done.update(f"{os.path.relpath(path, root)}\0{_file(path)}\n".encode(errors="surrogateescape"))
    return done.hexdigest()


def _made(folder: str, name: str) -> bool:
    return os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
