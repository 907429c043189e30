"""Which functions a file may name in a module that may be imported: its own, however they are wrapped."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from layoutproof.compiler.tracing import Tracing, function_named, only, permit
from layoutproof.core.errors import LayoutError, Unsupported
from layoutproof.pallas.from_jax.user import argument, check_stated

LIST = Tracing(True, ("pkg.kernels",), "pyproject.toml")
ANY = Tracing()

INNER = """
def inner(x): return x
class Base:
    def run(self): return 1
"""
OTHER = "def other(x): return x\n"
KERNELS = """
import contextlib, functools, os, subprocess, threading
from os import system
from subprocess import getoutput
from pkg.kernels.inner import inner
from pkg.other import other

def plain(x): return x
def decorated(f):
    @functools.wraps(f)
    def call(*args): return f(*args)
    return call
wrapped = decorated(plain)
cached = functools.cache(plain)
part = functools.partial(plain, 1)
run = functools.partial(subprocess.run, shell=True)
short = lambda x: x
alias = os.system

class Model:
    os = os
    class Inner:
        @staticmethod
        def apply(x): return x
    @classmethod
    def made(cls): return cls()
    def __call__(self, x): return x

class Thread(threading.Thread):
    pass

model = Model()
bound = model.__call__
"""


@pytest.fixture
def kernels() -> Iterator[types.ModuleType]:
    """A module pkg.kernels, with what it imports from two others."""
    made = {}
    for name, text in (("pkg", ""), ("pkg.kernels.inner", INNER), ("pkg.other", OTHER), ("pkg.kernels", KERNELS)):
        module = types.ModuleType(name)
        made[name] = sys.modules[name] = module
        exec(text, vars(module))
    yield made["pkg.kernels"]
    for name in made:
        del sys.modules[name]


@pytest.mark.parametrize(
    "name",
    ["plain", "wrapped", "cached", "part", "short", "inner", "Model.made", "Model.Inner.apply", "model", "bound"],
)
def test_its_own_however_they_are_wrapped(kernels: types.ModuleType, name: str) -> None:
    for rule in (LIST, ANY, None):
        assert callable(function_named(kernels, "pkg.kernels", name, rule))


@pytest.mark.parametrize(
    "name", ["system", "getoutput", "alias", "run", "other", "Thread.run", "Thread.start", "Thread"]
)
def test_what_it_imported_is_not_the_files_to_call(kernels: types.ModuleType, name: str) -> None:
    with pytest.raises(Unsupported, match=r"^not traced: .* is defined in .*, which is not among .* pkg\.kernels$"):
        function_named(kernels, "pkg.kernels", name, LIST)
    # a person may name what there is
    assert callable(function_named(kernels, "pkg.kernels", name, None))


@pytest.mark.parametrize("name", ["system", "getoutput", "alias", "run", "Thread.run"])
def test_pythons_own_library_is_refused_without_a_list_too(kernels: types.ModuleType, name: str) -> None:
    with pytest.raises(LayoutError, match="Python's own library"):
        function_named(kernels, "pkg.kernels", name, ANY)
    assert callable(function_named(kernels, "pkg.kernels", "other", ANY))


@pytest.mark.parametrize("name", ["os.system", "functools.partial", "model.made", "Model.os.system", "plain.func"])
@pytest.mark.parametrize("rule", [LIST, ANY])
def test_attributes_of_anything_but_classes_are_refused(kernels: types.ModuleType, rule: Tracing, name: str) -> None:
    with pytest.raises(LayoutError, match="is no class of that module"):
        function_named(kernels, "pkg.kernels", name, rule)


@pytest.mark.parametrize("name", ["plain.__globals__", "__builtins__", "a b", "", "a..b", "Model.__subclasses__"])
def test_what_is_no_name_is_refused_before_anything_is_imported(name: str) -> None:
    with pytest.raises(LayoutError, match="plain name"):
        permit(f"never.imported:{name}")


def test_a_module_of_the_name_of_a_library_is_told_from_it() -> None:
    """A file `pkg/kernels/os.py` has functions of its own, and what it imported is still not its own."""
    module = types.ModuleType("os")
    exec("from os import popen\ndef mine(x): return x", vars(module))
    assert callable(function_named(module, "pkg/kernels/os.py", "mine", LIST))
    with pytest.raises(Unsupported):
        function_named(module, "pkg/kernels/os.py", "popen", Tracing(True, ("pkg.kernels",)))


def test_what_a_file_gives_a_function() -> None:
    """Shapes, numbers, texts, and lists, tuples and dicts of them; a bounded number of values."""
    check_stated([1, True, None, 1.5, "highest", (8, 128), {"a": [1, {"b": 2}]}, argument("(8, 128)")], "m:f")
    for value in (b"bytes", {1, 2}, 1j, ..., functools.partial(int)):
        with pytest.raises(LayoutError, match=r"^a file gives m:f shapes, numbers"):
            check_stated([[value]], "m:f")
    with pytest.raises(LayoutError, match="more than 100,000 values"):
        check_stated([[0] * 100_001], "m:f")


def test_nothing_is_compiled_with_no_trace() -> None:
    """An exported program and another compiler are what a file names, too."""
    from layoutproof.specs.compiled import permitted

    with only(Tracing(on=False, source="--no-trace")), pytest.raises(Unsupported, match="--no-trace"):
        permitted({"export": "a.jax"})
    with only(LIST):
        assert permitted({"export": "a.jax", "flags": {"xla_cpu_enable_fast_math": "true"}}) == LIST
        with pytest.raises(Unsupported, match=r"libtpu at x\.so is code"):
            permitted({"export": "a.jax", "libtpu": "x.so"})
    for name, value in (("xla_dump_to", "here"), ("xla_gpu_cuda_data_dir", "x"), ("xla_any", "/etc/x")):
        with pytest.raises(LayoutError, match="names no other file"):
            permitted({"export": "a.jax", "flags": {name: value}})


def test_a_file_that_is_named_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no name among modules from here: where there is a list it is not on it, and without one it may run."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    place = f"{tmp_path / 'there' / 'bodies.py'}:f"
    with only(ANY):
        assert permit(place, tmp_path / "there") == ANY
    with (
        only(LIST),
        pytest.raises(Unsupported, match=r"bodies\.py is not among what pyproject\.toml allows: pkg\.kernels"),
    ):
        permit(place, tmp_path / "there")
