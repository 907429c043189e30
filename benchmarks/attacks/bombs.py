"""Files that are small and say much: aliases and tags, packed files, numbers and brackets without end, long names.

Each is read in a process that may have so much memory and no more, and is killed after so many seconds.
"""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

from benchmarks.attacks.room import RAN, Untried, command, environment, git

NIGHT = ("aliases_and_tags", "packed_again_and_again", "trees_without_end", "numbers_in_arguments")
"""Each is a dozen processes; `tests/test_readers.py` reads such texts in one."""
MEMORY = 4 << 30
"""Bytes of address space that a process may have."""
SECONDS = 240.0
"""That one may take, on a machine that is busy."""


def aliases_and_tags(room: Path) -> str:
    """A spec file and a search file are YAML whose aliases expand without end, or whose tags would make objects."""
    work = _work(room)
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 12)]
    ran = f"open({str(room / RAN)!r}, 'w').write('ran')"
    texts = {
        "laughs": "\n".join(rows),
        "laughs in claims": "\n".join([*rows, "checks: [{injective: *a11}]"]),
        "keys": "? &a [&b [&c {}, *b], *a]\n: x\nlayouts: {*a : 'f32[8]'}",
        "itself": "layouts: &a {b: *a}\nchecks: [*a]",
        "merged": "layouts: &a {b: 'f32[8]'}\nkernels: {<<: [*a, *a], <<: *a}",
        "python": f'layouts: {{a: !!python/object/apply:builtins.exec ["{ran}"]}}',
        "python module": "layouts: {a: !!python/module:evil}",
        "own tag": "layouts: {a: !<tag:yaml.org,2002:python/name:os.system> x}",
        "binary": "source: !!binary aWQ=\nchecks: !!set {injective}",
        "documents": "---\n".join(["checks: [{injective: 'f32[8]'}]\n"] * 2000),
        "directives": "%TAG ! tag:yaml.org,2002:python/\n---\nlayouts: {a: !name:os.system x}",
        "numbers": f"layouts: {{a: 0x{'f' * 100_000}}}\nchecks: [{{padding: 'f32[8]', at_most: 1e{'9' * 100_000}}}]",
        "nested": "checks: " + "[" * 200_000,
        "UTF-16": "﻿layouts: {a: 'f32[8]'}\nchecks: [{injective: !!python/name:os.system a}]",
    }
    said = ""
    for name, text in texts.items():
        for head, words in (("", ("check", "specs")), ("search: s\ntarget: v5e\n", ("search", "specs/a.yaml"))):
            data = (head + text).encode("utf-16" if name == "UTF-16" else "utf-8")
            (work / "specs" / "a.yaml").write_bytes(data)
            said += _read(work, f"{name}: {words[0]}", (1, 2, 3), *words, "--no-trace")
    return said + _ran(room)


def packed_again_and_again(room: Path) -> str:
    """A dump is a packed file of line ends without end, packed twice, of many members, cut off, or another archive."""
    work = _work(room)
    lines = gzip.compress(b"\n" * (300 << 20), 1)
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../a.txt", b"HloModule m\n")
    texts = {
        "lines": lines,
        "lines behind a header": gzip.compress(b"HloModule m\n") + lines,
        "one line": gzip.compress(b"HloModule m, " + b"a" * (200 << 20), 1),
        "twice": gzip.compress(lines),
        "members": gzip.compress(b"HloModule m\n") + gzip.compress(b"") * 200_000,
        "cut off": gzip.compress(b"HloModule m\n" * 100_000)[:-20],
        "zip": other.getvalue(),
        "rest": gzip.compress(b"HloModule m\n") + b"\0" * 1_000_000 + b"x",
    }
    said = ""
    for name, data in texts.items():
        (work / "specs" / "a.txt.gz").write_bytes(data)
        for words in (("hlo", "specs/a.txt.gz"), ("kernels", "specs/a.txt.gz"), ("gate", "other", "specs")):
            more = ("--no-trace",) if words[0] != "hlo" else ()
            said += _read(work, f"{name}: {words[0]}", (0, 1, 2, 3) if name == "rest" else (1, 2, 3), *words, *more)
    return said


def trees_without_end(room: Path) -> str:
    """Locks, baselines, records, candidates and settings are JSON or TOML that is nested, wide or no data at all."""
    work = _work(room)
    (work / "m.txt").write_text("HloModule m\nENTRY e {\n  ROOT x = f32[8]{0} parameter(0)\n}\n")
    texts = {
        "nested": "[" * 500_000,
        "nested keys": '{"a":' * 500_000,
        "numbers": '{"version": 1e999, "files": NaN, "a": -Infinity, "b": ' + "9" * 100_000 + "}",
        "twice": '{"version": 2, "version": 3, ' + ", ".join(['"a": {}'] * 100_000) + "}",
        "surrogates": '{"version": 2, "files": {"\\ud800": "\\udfff\\u0000"}}',
        "lists": '{"version": 2, "files": [[]], "accepted": [1], "calls": {"a": []}}',
        "dotted": "a" + ".a" * 200_000 + " = 1",
        "tables": "[a" + ".a" * 200_000 + "]",
        "arrays": "[tool.layoutproof]\ntrace = " + "[" * 100_000,
        "nothing": "",
        "pickle": "\x80\x04\x95",
    }
    said = ""
    for name, text in texts.items():
        for file, words in {
            "layoutproof.lock": ("gate", "--no-trace"),
            "b.json": ("kernels", "m.txt", "--baseline", "b.json"),
            "specs/a.jsonl": ("kernels", "specs/a.jsonl"),
            "rows.json": ("search", "matmul", "8", "8", "8", "--prune", "rows.json", "--no-trace"),
            "pyproject.toml": ("gate", "other", "other"),
        }.items():
            path = work / file
            path.write_text(text, errors="surrogatepass")
            said += _read(work, f"{name}: {file}", (0, 1, 2, 3), *words)
            path.unlink()
    return said


def numbers_in_arguments(room: Path) -> str:
    """`args:` of a function are expressions that would fill the memory, shapes beyond it, and texts of Python."""
    if not _has_jax():
        raise Untried("no JAX, so nothing is traced")
    work = _work(room)
    (work / "pkg.py").write_text("import jax.numpy as jnp\ndef fine(x):\n    return jnp.sum(x)\n")
    bombs = (
        *("2**10**10", "'a'*10**10", "[0]*10**10", "9" * 5000, "(" * 5000 + "1" + ")" * 5000, "1" + "+1" * 5000),
        *(
            "f32[9999999999]",
            "f32[99999999999999999999]",
            "f32[9,9,9999999999,9999999999]",
            "f32[" + "9," * 5000 + "9]",
        ),
        *(
            f"open({str(room / RAN)!r}, 'w')",
            "__import__('os').system('id')",
            "{**{}}",
            "f'{1}'",
            "lambda: 0",
            "x := 1",
        ),
        *("f32[-1]", "f32[0x10]", "f32[8]()", "()->" * 5000, "\0", "b'" + "a" * 5000 + "'", "[" + "[]," * 5000 + "]"),
    )
    said = ""
    for kind, claim in (("trace", "kernel"), ("function", "peak_memory")):
        section = {f"k{k}": {kind: "pkg:fine", "args": [bomb]} for k, bomb in enumerate(bombs)}
        bound = {"at_most": "1GiB"} if kind == "function" else {}
        checks = [{claim: name, **bound} for name in section]
        spec = {"source": "x", "kernels" if kind == "trace" else "programs": section, "checks": checks}
        (work / "specs" / "a.yaml").write_text(json.dumps(spec))
        said += _read(work, kind, (1, 2, 3), "check", "specs", memory=64 << 30)
    return said + _ran(room)


def long_names(room: Path) -> str:
    """Files have names as long as a system allows, and the base has names that no system could write."""
    work = _work(room)
    long = "n" * 250 + ".yaml"
    (work / "specs" / long).write_text("checks: [{injective: 'f32[8]'}]\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "one")
    blob = git(work, "rev-parse", f"HEAD:specs/{long}").strip()
    tree = _tree(work, [("100644", "n" * 5000 + ".yaml", blob), ("100644", "a.yaml", blob)])
    deep = tree
    for _ in range(300):
        deep = _tree(work, [("40000", "d" * 100, deep)])
    top = _tree(work, [("40000", "specs", tree), ("40000", "deep", deep)])
    commit = git(work, "commit-tree", "-m", "x", top).strip()
    said = _read(work, "check", (0,), "check", "specs")
    for more in ((), ("--compile-base",), ("--jobs", "2")):
        said += _read(work, f"gate {more}", (0, 1, 2, 3), "gate", "specs", "deep", "--against", commit, *more)
    return said


def pointers_and_submodules(room: Path) -> str:
    """Spec files and dumps are pointers of Git LFS, a folder is a submodule, in the head, in the base, and in both."""
    work = _work(room)
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 123\n"
    for name in ("a.yaml", "a.txt", "a.jsonl"):
        (work / "specs" / name).write_text(pointer)
    git(work, "add", ".")
    git(work, "commit", "-qm", "one")
    head = git(work, "rev-parse", "HEAD").strip()
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{head},specs/inner")
    (work / ".gitmodules").write_text(f'[submodule "specs/inner"]\n\tpath = specs/inner\n\turl = file://{work}\n')
    git(work, "add", ".gitmodules")
    git(work, "commit", "-qm", "two")
    said = ""
    for words in (("check", "specs"), ("gate", "specs", "--against", "HEAD"), ("gate", "specs", "--against", "HEAD~1")):
        said += _read(work, f"{words}", (1, 2, 3), *words, "--no-trace")
    return said


def _work(room: Path) -> Path:
    work = room / "work"
    (work / "specs").mkdir(parents=True)
    (work / "other").mkdir()
    (work / "other" / "a.yaml").write_text("checks: [{injective: 'f32[8]'}]\n")
    git(work, "init", "-q", "-b", "main")
    git(work, "commit", "-q", "--allow-empty", "-m", "one")
    return work


def _read(work: Path, what: str, codes: tuple[int, ...], *arguments: str, memory: int = MEMORY) -> str:
    """What is wrong with how a command takes it: another exit code, a traceback, a defect of ours, no end."""
    limit = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2); "
    start = [sys.executable, "-c", f"{limit}os.execv(sys.argv[2], sys.argv[2:])", str(memory), *command(*arguments)]
    # each thread of a library of numbers takes memory of its own
    more = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            start, cwd=work, env=environment(more), capture_output=True, text=True, errors="replace", timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"{what}: not done after {SECONDS:g} s\n"
    told = done.stdout + done.stderr
    wrong = done.returncode not in codes or "Traceback" in told or "a bug in layoutproof" in told
    return f"{what}: exit {done.returncode}: {told[-600:]}\n" if wrong else ""


def _ran(room: Path) -> str:
    return f"{RAN} was written\n" if (room / RAN).exists() else ""


def _has_jax() -> bool:
    import importlib.util

    return importlib.util.find_spec("jax") is not None


def _tree(work: Path, rows: list[tuple[str, str, str]]) -> str:
    from benchmarks.attacks.revisions import _hashed, _row

    return _hashed(work, "tree", b"".join(_row(*row) for row in sorted(rows, key=lambda row: row[1])))
