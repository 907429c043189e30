"""Texts of spec and search files that name code which `[tool.layoutproof] trace` does not list."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from benchmarks.attacks.room import RAN, Untried, layoutproof

NIGHT = ("what_stands_for_a_function", "functions_that_make_inputs")
MODULE = """
import os
import subprocess
from os import system
from pathlib import Path
from subprocess import getoutput

import jax
import jax._src.xla_bridge

shell = os.system

class Kernels:
    os = os

class Helper(subprocess.Popen):
    pass

def fine(x):
    return x + 1

def twice(x):
    return x + x
"""
NAMES = (
    *("jax._src.xla_bridge.os.system", "os.system", "system", "getoutput", "shell", "Kernels.os.system"),
    *("subprocess.getoutput", "fine.__globals__", "fine.__class__", "Helper.__init__", "Path", "Helper"),
)


def traced_functions(room: Path) -> str:
    """`trace:` of a spec file names, in an allowed module, what that module imported and attributes of it."""
    return _checked(room, {"kernels": {f"k{k}": _entry("trace", room, name) for k, name in enumerate(NAMES)}}, "kernel")


STAND_INS = """
import functools
import operator
import os
import subprocess
import types

from pkg.kernels import fine

part = functools.partial(os.system)
part_of_python = functools.partial(subprocess.getoutput)
kept = functools.lru_cache(os.system)
called = operator.methodcaller("system")
method = types.MethodType(subprocess.getoutput, "id")
chosen = functools.singledispatch(subprocess.getoutput)

class Meta(type):
    run = property(lambda cls: os.system)
    def __getattr__(cls, name):
        return subprocess.getoutput

class Kernels(metaclass=Meta):
    quiet = staticmethod(os.system)
    whole = classmethod(subprocess.getoutput)

class Popen(subprocess.Popen):
    pass

def __getattr__(name):
    return {"late": os.system, "later": subprocess.getoutput, "module": os}[name]
"""
"""Of a module that the list has: what is called in the end is Python's."""
OF_THEM = (
    *("part", "part_of_python", "kept", "called", "method", "chosen", "Kernels.run", "Kernels.other"),
    *("Kernels.quiet", "Kernels.whole", "Popen", "Popen.communicate", "late", "later", "module.system"),
)


def what_stands_for_a_function(room: Path) -> str:
    """`trace:` names what is no function and calls one of Python's: partial, cached, bound, made late."""
    work = _work(room)
    (work / "pkg" / "others.py").write_text(STAND_INS)
    (work / "pyproject.toml").write_text('[tool.layoutproof]\ntrace = ["pkg"]\n')
    shell = [repr(f"echo ran >> {room / RAN}")]
    entries = {f"k{k}": {"trace": f"pkg.others:{name}", "args": shell} for k, name in enumerate(OF_THEM)}
    return _checked(room, {"kernels": entries}, "kernel", work)


def functions_that_make_inputs(room: Path) -> str:
    """`inputs:` of a claim about values names what the list has not, and with --no-trace it names anything."""
    work = _work(room)
    entries = {name: {"trace": f"pkg.kernels:{name}", "args": ["f32[8]"]} for name in ("fine", "twice")}
    (work / "pkg" / "evil.py").write_text(f"open({str(room / RAN)!r}, 'w').write('imported')\ndef inputs(r): ...\n")
    names = ("pkg.evil:inputs", "os:system", "pkg.kernels:shell", "pkg/evil.py:inputs", "../evil.py:inputs")
    checks = [{"same": "fine", "as": "twice", "inputs": name} for name in names]
    spec = {"source": "x", "kernels": entries, "checks": checks}
    (work / "specs" / "a.yaml").write_text(json.dumps(spec))
    said = ""
    for more in ((), ("--no-trace",), ("--no-trace", "--jobs", "2")):
        done = layoutproof(work, "check", "specs", *more)
        if done.returncode in (0, 1) or _ran(room):
            said += f"{more}: exit {done.returncode}: {done.stdout}{done.stderr}\n"
    return said + _ran(room)


def compiled_functions(room: Path) -> str:
    """`programs: function:` names the same, of which a claim about memory would be proved."""
    programs = {f"k{k}": _entry("function", room, name) for k, name in enumerate(NAMES)}
    return _checked(room, {"programs": programs}, "peak_memory")


def options_of_the_compiler(room: Path) -> str:
    """`programs:` asks for a compiler of the stranger's, and has the real one write where the stranger says."""
    entry = {"function": "pkg.kernels:fine", "args": ["f32[8]"]}
    programs = {
        "k0": {**entry, "flags": {"xla_dump_to": str(room / RAN)}},
        "k1": {**entry, "flags": {"xla_dump_to": RAN}},
        "k2": {**entry, "target": "v5e", "libtpu": "libtpu.so"},
    }
    work = _work(room)
    (work / "libtpu.so").write_bytes(b"")
    return _checked(room, {"programs": programs}, "peak_memory") or ("written" if (work / RAN).exists() else "")


def a_file_under_an_allowed_name(room: Path) -> str:
    """A search file brings a folder of its own, in which a file lies under the name of an allowed module."""
    work = _work(room)
    evil = work / "evil" / "pkg"
    evil.mkdir(parents=True)
    (evil / "kernels.py").write_text(f"open({str(room / RAN)!r}, 'w').write('imported')\n")
    said = {"search": "s", "target": "v5e", "trace": "pkg/kernels.py:f", "args": ["f32[8,128]"], "tune": {"b": [8]}}
    (work / "evil" / "s.yaml").write_text(json.dumps(said))
    done = layoutproof(work, "search", "evil/s.yaml")
    return _ran(room) or ("" if done.returncode == 3 else f"exit {done.returncode}: {done.stdout}{done.stderr}")


def _entry(key: str, room: Path, name: str) -> dict[str, object]:
    return {key: f"pkg.kernels:{name}", "args": [repr(f"echo {name} ran >> {room / RAN}")]}


def _work(room: Path) -> Path:
    if importlib.util.find_spec("jax") is None:
        raise Untried("no JAX, so nothing is traced")
    work = room / "work"
    (work / "pkg").mkdir(parents=True, exist_ok=True)
    (work / "pkg" / "__init__.py").write_text("")
    (work / "pkg" / "kernels.py").write_text(MODULE)
    (work / "pyproject.toml").write_text('[tool.layoutproof]\ntrace = ["pkg.kernels"]\n')
    (work / "specs").mkdir(exist_ok=True)
    return work


def _checked(room: Path, said: dict[str, dict[str, object]], claim: str, work: Path | None = None) -> str:
    """What `check` of a file ran, or which of its claims it did not refuse."""
    work = work or _work(room)
    (names,) = said.values()
    bound = {"at_most": "1GiB"} if claim == "peak_memory" else {}
    checks = [{claim: name, **bound} for name in names]
    (work / "specs" / "a.yaml").write_text(json.dumps({"source": "x", **said, "checks": checks}))
    done = layoutproof(work, "check", "specs")
    told = done.stdout + done.stderr
    refused = sum(told.count(words) for words in _REFUSALS)
    return _ran(room) or ("" if refused >= len(names) and done.returncode else told)


_REFUSALS = (
    *("not traced: ", "is no class of that module", "a function is named by its plain name"),
    *("an option of the compiler in a file names no other file", "is code that a file names"),
)


def _ran(room: Path) -> str:
    return (room / RAN).read_text() if (room / RAN).is_file() else "written" if (room / RAN).exists() else ""
