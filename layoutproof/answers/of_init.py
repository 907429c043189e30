"""`lp.init`: the first files of a repository, and what in it there is to prove."""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, TypedDict

from layoutproof.answers import problems
from layoutproof.answers.proposed_call import arguments_of
from layoutproof.core.document import Doc, Document, envelope
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import DUMP_ENDS, MIB, lines, read, write_whole
from layoutproof.core.finding import Answer, Finding
from layoutproof.core.visible import json_text
from layoutproof.gating.lock_head import RENEW
from layoutproof.scanning.problems import NO_FOLDER

SPEC = "specs/layouts.yaml"
SCHEMA = ".layoutproof/spec.schema.json"
WORKFLOW = ".github/workflows/layoutproof.yml"
HOOKS = ".pre-commit-config.yaml"
MOST_FILES = 20_000
"""Files of a repository that are looked at."""
MOST_SHOWN = 10
_DUMP_HEAD = 20
"""Lines of a text in which a module of HLO begins, if it is a dump."""

_SPEC = """\
# yaml-language-server: $schema=../.layoutproof/spec.schema.json
# What this repository relies on about tensor layouts. Prove it: layoutproof check
# The keys: layoutproof schema.  The properties: layoutproof explain.  A layout as a picture: layoutproof show LAYOUT
source: our model                       # where the truth of these claims comes from
layouts:                                # examples, to be replaced by your own; text as XLA prints it
  weights: bf16[4096,11008]{1,0:T(8,128)(2,1)}
  scores: f32[1000,5]{0,1:T(8,128)}     # what a v5e gives f32[1000,5]: layoutproof show "f32[1000,5]" --target v5e
checks:
  - injective: weights                  # no two elements share a place
  - padding: weights
    at_most: 0%
  - padding: scores                     # stored as 8 x 1024: 8,192 places for 5,000 elements
    at_most: 40%
  - injective: "f32[N,M]{1,0:T(8,128)}" # for all N and M
  - injective: {strided: "f32[3,5] strides (4,1)"}
    expect: refuted                     # a claim may also be that something is wrong
  # - same_map: [weights, "bf16[4096,11008]{1,0}"]
  # - bitcast: ["f32[16,8,128]{2,1,0:T(8,128)}", "f32[128,128]{1,0:T(8,128)}"]
  # - kernel: mm                        # every question about its grid, blocks and body, with the entry below
# kernels:                              # Pallas calls of your own, traced with shapes on the CPU
#   mm: {trace: "my_kernels.py:matmul", args: ["f32[512,512]", "f32[512,512]"], target: v5e}
# The gate compares kernels with what layoutproof.lock says they were: layoutproof gate --lock writes it; commit it
"""

_WORKFLOW = """\
# Proves the claims in specs, and judges what a pull request changes in layouts.
# OWNER/layoutproof is the repository of layoutproof that you use, COMMIT the commit of it that you looked at. Leave the
# event at pull_request: pull_request_target would give a stranger's files the rights of this repository.
name: layouts
on: {pull_request: {types: [opened, synchronize, reopened, labeled]}}
permissions: {contents: read, security-events: write}
jobs:
  layouts:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
      - uses: OWNER/layoutproof@COMMIT
        with:
          check: specs
          paths: specs
          # of 32 characters or more; with it jobs and pull requests share answers. It may be missing
          cache-key: "${{ secrets.LAYOUTPROOF_CACHE_KEY }}"@PACKAGES@
      - uses: github/codeql-action/upload-sarif@ff0a06e83cb2de871e5a09832bc6a81e7276941f # v3.28.18
        if: always()
        with: {sarif_file: layoutproof.sarif}
"""

_HOOK = """\
  - repo: local
    hooks:
      - id: layoutproof-check
        name: layoutproof check
        entry: layoutproof check specs
        language: system
        # code and data that specs read; another kind of data that yours reads goes into the list
        files: (\\.(pyi?|ya?ml|jsonl?|toml|csv|npy|npz|txt|hlo|mlir)|(^|/)layoutproof\\.lock)$
        pass_filenames: false
"""


class CallEntry(TypedDict):
    file: str
    line: int
    function: Annotated[str, Doc("the outermost function that the call is in; empty where it is in none")]


class InitDocument(Document):
    """The files written, and the commands to prove their claims."""

    written: list[str]
    kept: list[str]
    add: Annotated[str, Doc("what to put below `repos:` of the pre-commit configuration that was kept")]
    kernels: list[CallEntry]
    dumps: list[str]
    git: Annotated[bool, Doc("whether the folder is the root of a git repository")]
    next: Annotated[list[str], Doc("commands to run now")]


@dataclass(frozen=True, slots=True)
class Initialised(Answer):
    """The files written and the kernels and dumps found. Paths are relative to the folder, with `/`.

    written: files that are new or were replaced.  kept: files that were there and stay as they were.
    kernels: (file, line, function) of Pallas calls; the function is "" where the call is in none.
    dumps: HLO texts.  add: the entry for `repos:` of a pre-commit configuration that was kept.
    git: whether the folder is a repository's root.  arguments: shapes for the first of `kernels` that has a function.
    """

    written: tuple[str, ...]
    kept: tuple[str, ...]
    kernels: tuple[tuple[str, int, str], ...]
    dumps: tuple[str, ...]
    add: str = ""
    git: bool = False
    arguments: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """None: nothing is asked."""
        return ()

    @property
    def exit_code(self) -> int:
        """0: it is written."""
        return 0

    @property
    def next(self) -> tuple[str, ...]:
        """Commands to run now, the first that proves what was written."""
        given = f' --args "{", ".join(self.arguments)}"' if self.arguments else ""
        named = [(file, name) for file, _, name in self.kernels if name]
        kernels = [f"layoutproof kernels {file}:{name}{given}" for file, name in named[:1]]
        dumps = [f"layoutproof hlo {file}" for file in self.dumps[:1]]
        return ("layoutproof check", *kernels, *dumps)

    def __str__(self) -> str:
        rows = [*(("written", path) for path in self.written), *(("kept", path) for path in self.kept)]
        rows += [("found", f"a Pallas call at {f}:{n}{f', in {name}' if name else ''}") for f, n, name in self.kernels]
        rows += [("found", f"an HLO dump, {file}") for file in self.dumps]
        lines = [f"{name:<9} {what}" for name, what in rows[: len(self.written) + len(self.kept) + 2 * MOST_SHOWN]]
        if self.add:
            lines += [f"add       to {HOOKS}, below repos:", self.add.rstrip("\n")]
        if WORKFLOW in self.written:
            lines.append(f"edit      {WORKFLOW}: put the owner of your layoutproof for OWNER, its commit for COMMIT")
        if self.kernels:
            lines.append(f"note      {problems.LOCK_FOR_KERNELS(RENEW)}")
        if not self.git:
            lines.append("note      this is no git repository; the gate of the workflow compares with a git revision")
        return "\n".join([*lines, *(f"next      {command}" for command in self.next)])

    def as_dict(self) -> InitDocument:
        """What `layoutproof init --json` prints."""
        return {
            **envelope(0),
            "written": list(self.written),
            "kept": list(self.kept),
            "add": self.add,
            "kernels": [{"file": file, "line": line, "function": name} for file, line, name in self.kernels],
            "dumps": list(self.dumps),
            "git": self.git,
            "next": list(self.next),
        }


def init(folder: str | PathLike[str] = ".", *, force: bool = False) -> Initialised:
    """Write the first files of a repository: a commented spec file, its schema for editors, a workflow for GitHub and
    an entry for pre-commit; and look for Pallas calls and HLO dumps. No code is imported.

    Args:
        folder: The root of the repository, or any folder.
        force: Replace files of these names that are there. A pre-commit configuration is never replaced: it has
            entries of others.

    Returns:
        The files written, kept and found, and the commands to run next; `str` is the command's output.

    Raises:
        LayoutError: There is no such folder, it is inside of a repository and not its root, or a file cannot be
            written; then none is.

    >>> import tempfile
    >>> init(tempfile.mkdtemp()).written[:2]
    ('specs/layouts.yaml', '.layoutproof/spec.schema.json')
    """
    if not isinstance(folder, str | PathLike):
        raise LayoutError(problems.FOLDER_TYPE(shorten(repr(folder), 60)))
    root = Path(folder)
    if not os.path.isdir(root):
        raise LayoutError(NO_FOLDER(root))
    git = (root / ".git").exists()
    if not git:
        for above in root.resolve().parents:
            if (above / ".git").exists():
                raise LayoutError(problems.INSIDE_REPOSITORY(root.resolve(), above))
    from layoutproof.specs.spec_model import json_schema

    specs = sorted(path.relative_to(root).as_posix() for path in (root / SPEC).parent.glob("*.y*ml"))
    kernels, dumps = _look(root)
    needs = _packages([_text(root / spec) for spec in specs], kernels)
    wanted = {
        SPEC: _SPEC,
        SCHEMA: json_text(json_schema()) + "\n",
        WORKFLOW: _WORKFLOW.replace("@PACKAGES@", f"\n          packages: {needs}" if needs else ""),
        HOOKS: f"repos:\n{_HOOK}",
    }
    there = {name for name in wanted if os.path.lexists(root / name)}
    kept = there & {HOOKS} if force else there
    if specs and not force:
        # who has spec files needs no example
        kept |= {SPEC}
    _write_all(root, {name: text for name, text in wanted.items() if name not in kept})
    add = _HOOK if HOOKS in kept and "layoutproof" not in _text(root / HOOKS) else ""
    return Initialised(
        tuple(name for name in wanted if name not in kept),
        tuple(kept_name for name in wanted if name in kept for kept_name in (specs if name == SPEC else [name])),
        tuple(kernels),
        tuple(dumps),
        add,
        git,
        next((arguments_of(_text(root / file), name) for file, _, name in kernels if name), ()),
    )


def _packages(specs: Sequence[str], kernels: Sequence[object]) -> str:
    """The further packages of the workflow: those that trace kernels and compile programs of spec files."""
    if any(
        re.search(r"(?m)^programs\s*:", text) and re.search(r"\btarget\s*:\s*['\"]?(?!cpu)\w", text) for text in specs
    ):
        return "jax libtpu"
    names_code = any(re.search(r"(?m)^(kernels|programs)\s*:|\btrace\s*:", text) for text in specs)
    return "jax" if kernels or names_code else ""


def _write_all(root: Path, files: dict[str, str]) -> None:
    """All of them or, where one cannot be written, none."""
    before: dict[Path, bytes | None] = {}
    folders: list[Path] = []
    try:
        for name, text in files.items():
            path = root / name
            missing = [above for above in (path.parent, *path.parent.parents) if not above.exists()]
            for above in reversed(missing):
                above.mkdir()
                folders.append(above)
            old = read(path, 16 * MIB) if os.path.lexists(path) else None
            write_whole(path, text.encode())
            before[path] = old
    except (OSError, LayoutError) as error:
        for path, data in before.items():
            if data is None:
                path.unlink(missing_ok=True)
            else:
                write_whole(path, data)
        for above in reversed(folders):
            above.rmdir()
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise LayoutError(problems.NOT_WRITTEN(path, why)) from error


def _look(root: Path) -> tuple[list[tuple[str, int, str]], list[str]]:
    """The Pallas calls in Python files and the HLO dumps of a repository, by name."""
    kernels: list[tuple[str, int, str]] = []
    dumps: list[str] = []
    for path in _files(root):
        name = path.relative_to(root).as_posix()
        if path.suffix == ".py":
            kernels += [(name, line, function) for line, function in _calls(_text(path))]
        elif name.endswith(DUMP_ENDS) and _is_dump(path):
            dumps.append(name)
    return kernels, dumps


def _files(root: Path) -> Iterator[Path]:
    """Files that may be of the repository itself: nothing hidden, no environment, at most `MOST_FILES`."""
    seen = 0
    for folder, names, files in os.walk(root):
        hidden = [n for n in names if n.startswith(".") or n in ("node_modules", "site-packages", "__pycache__")]
        names[:] = sorted({*names} - {*hidden} - {n for n in names if Path(folder, n, "pyvenv.cfg").exists()})
        for name in sorted(files):
            seen += 1
            if seen > MOST_FILES:
                return
            yield Path(folder, name)


def _text(path: Path) -> str:
    """A file's text; "" of what cannot be read."""
    try:
        return read(path, MIB).decode(errors="replace")
    except LayoutError:
        return ""


def _is_dump(path: Path) -> bool:
    try:
        with lines(path) as text:
            return any(line.startswith("HloModule ") for line in itertools.islice(text, _DUMP_HEAD))
    except LayoutError:
        return False


def _calls(text: str) -> Iterator[tuple[int, str]]:
    """The lines that call `pallas_call`, each with the outermost function that it is in."""
    if "pallas_call" not in text:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for part in tree.body:
        function = part.name if isinstance(part, ast.FunctionDef) else ""
        for node in ast.walk(part):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "pallas_call":
                yield node.lineno, function
