"""What other packages add behind entry points: a real package, installed with pip into a fresh environment."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import layoutproof
from tests.new import EXAMPLES as examples_of_the_guide
from tests.new import Example

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
GROUPS = {
    "properties": "properties",
    "rules": "properties",
    "layouts": "languages",
    "hardware": "targets",
    "formats": "formats",
}
"""Folder of the package -> the group of entry points for the same kind of file."""
EXAMPLES = [each for each in examples_of_the_guide if Path(next(iter(each.files))).parent.name in GROUPS]
"""Those of the guide that another package may have; messages are read by this one alone."""

TINY = '''"""Every element has a place of its own, if it is asked politely.

Why it matters: it shows an option.
"""

from layoutproof.properties import injective

LAYOUTS = 1


def claims(m, *, politely: str | None = None):
    """Those of injective; fails where it is not asked politely."""
    if politely is None:
        raise KeyError("the magic word")
    return injective.claims(m)
'''


def wheel(folder: Path, name: str, modules: dict[str, str], entries: dict[str, dict[str, str]]) -> Path:
    """A wheel of a package of our own making: no build tool, so no network."""
    info = f"{name}-1.0.dist-info"
    files = {f"{name}/__init__.py": "", **{f"{name}/{module}.py": text for module, text in modules.items()}}
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    groups = [
        f"[layoutproof.{group}]\n" + "".join(f"{key} = {value}\n" for key, value in each.items())
        for group, each in entries.items()
    ]
    files[f"{info}/entry_points.txt"] = "\n".join(groups)
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return path


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment of its own, where layoutproof and its libraries are, and pip."""
    folder = tmp_path_factory.mktemp("plugins")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True, capture_output=True)
    where = [str(folder / "env" / "bin" / "python"), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip())
    libraries = [*site.getsitepackages(), *(entry for entry in sys.path if entry.endswith("-packages"))]
    (packages / "shared.pth").write_text("\n".join(dict.fromkeys([str(ROOT), *libraries])))
    return folder


@pytest.fixture(scope="module")
def examples(room: Path) -> Path:
    """The folder, with the guide's examples installed as a package of somebody else's, and faulty ones beside."""
    modules = {
        "politely": TINY,
        "raises": "1 / 0",
        "empty": '"""Nothing."""',
        "taken": 'EXTENTS = {"cuda": {"lane": 1}}',
    }
    entries: dict[str, dict[str, str]] = {group: {} for group in set(GROUPS.values())}
    for example in EXAMPLES:
        for file, source in example.files.items():
            path = Path(file)
            if path.parts[0] == "tests":
                continue
            if path.suffix == ".py":
                modules[path.stem] = source
                entries[GROUPS[path.parent.name]][path.stem] = f"theirs.{path.stem}"
            else:
                (room / path).parent.mkdir(exist_ok=True)
                (room / path).write_text(source)
    entries["properties"] |= {
        "politely": "theirs.politely",
        "raises": "theirs.raises",
        "gone": "theirs.nowhere",
        "empty": "theirs.empty",
        "padding": "theirs.politely",
        "twice": "theirs.politely",
    }
    entries["languages"]["wrecked"] = "theirs.raises"
    entries["formats"]["wrecked"] = "theirs.raises"
    entries["targets"] |= {"wrecked": "theirs.raises", "taken": "theirs.taken"}
    install(room, wheel(room, "theirs", modules, entries))
    install(room, wheel(room, "others", {"politely": TINY}, {"properties": {"twice": "others.politely"}}))
    return room


def install(room: Path, package: Path) -> None:
    pip = [str(room / "env" / "bin" / "python"), "-m", "pip", "install", "--no-index", "--no-deps", str(package)]
    subprocess.run(pip, check=True, capture_output=True)


def run(room: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command line in the environment."""
    code = [str(room / "env" / "bin" / "python"), "-m", "layoutproof", *arguments]
    done = subprocess.run(code, capture_output=True, text=True, check=False, cwd=room)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.commit
@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=[each.title for each in EXAMPLES])
def test_the_guides_examples_work_from_another_package(example: Example, examples: Path) -> None:
    """The same file as built in, the same commands, the same words."""
    (console,) = re.findall(r"^```console\n(.*?)^```$", example.text, re.DOTALL | re.MULTILINE)
    asked = re.findall(r"^\$ layoutproof (.*)\n((?:[^$\n].*\n)*)", console, re.MULTILINE)
    assert asked
    for command, said in asked:
        assert run(examples, *shlex.split(command))[1] == said, command


@pytest.mark.slow
def test_they_are_explained_and_asked_in_spec_files(examples: Path) -> None:
    """`explain` has their pages, `check` their claims and layouts, `ask` their options."""
    assert run(examples, "explain", "in_order")[1].startswith("in_order\n\nElements lie in memory in the order")
    assert "Rows that start a fixed number of elements apart" in run(examples, "explain", "pitched")[1]
    assert "AMD GPUs as data" in run(examples, "explain", "rocm")[1]
    (examples / "claims.yaml").write_text(
        "layouts:\n  rows: f32[3,5] pitch 8\n  named: {pitched: 'f32[3,5] pitch 8'}\n"
        "checks:\n  - in_order: rows\n  - injective: named\n  - in_order: 'f32[3,5]{0,1}'\n    expect: refuted\n"
    )
    code, said, _ = run(examples, "check", "claims.yaml", "--format", "json")
    assert code == 0, said
    assert run(examples, "ask", "politely", "f32[3,5]", "--politely", "please")[0] == 0
    assert "--politely" in run(examples, "ask", "politely", "f32[3,5]", "--help")[1]


FAULTS = [
    (("ask", "raises", "f32[3]"), "property 'raises' of theirs 1.0 is broken: theirs.raises cannot be imported"),
    (("ask", "gone", "f32[3]"), "property 'gone' of theirs 1.0 is broken: theirs.nowhere cannot be imported"),
    (("ask", "empty", "f32[3]"), "property 'empty' of theirs 1.0 is not usable: theirs.empty needs LAYOUTS and claims"),
    (("ask", "politely", "f32[3]"), "property 'politely' of theirs 1.0 is broken: claims failed: KeyError"),
    (("ask", "twice", "f32[3]"), "property 'twice' is offered by several packages: "),
    (("ask", "injective", "{wrecked: 'f32[3]'}"), "language 'wrecked' of theirs 1.0 is broken"),
    (("ask", "injective", "no language reads this"), "language 'wrecked' of theirs 1.0 is broken"),
    (("ask", "injective", "f32[3,5] pitch 4"), "the pitch 4 is less than a row of 5"),
    (("gate", "old", "new", "--format", "wrecked"), "format 'wrecked' of theirs 1.0 is broken"),
    (("ask", "in_bounds", "S[8:1@lane]", "--within", "wrecked"), "target 'wrecked' of theirs 1.0 is broken"),
    (("kernels", "nowhere:nothing", "--target", "wrecked"), "target 'wrecked' of theirs 1.0 is broken"),
    (("ask", "in_ordr", "f32[3]"), "unknown property 'in_ordr'; did you mean 'in_order'?"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "words"), FAULTS, ids=[f"{a[0]} {a[1]} {a[2]}" for a, _ in FAULTS])
def test_what_is_broken_is_one_named_error(arguments: tuple[str, ...], words: str, examples: Path) -> None:
    """Bad input, exit code 2, with the package's name; no traceback, no bug of ours."""
    code, said, complaint = run(examples, *arguments)
    assert (code, said) == (2, "")
    assert words in complaint
    assert "bug in layoutproof" not in complaint


@pytest.mark.slow
def test_what_is_broken_or_collides_hides_nothing(examples: Path) -> None:
    """What is built in stays what it is; the list names every one that cannot be used."""
    code, said, _ = run(examples, "ask", "padding", "f32[3,5]", "--at-most", "2%", "--json")
    assert (code, json.loads(said)["verdict"]) == (0, "proved")
    assert run(examples, "ask", "in_bounds", "S[32:1@lane]", "--within", "cuda")[0] == 0
    code, said, _ = run(examples, "explain")
    assert code == 0
    for words in (
        "  in_order ",
        "  pitched ",
        "property 'raises' of theirs 1.0 is broken",
        "property 'padding' of theirs 1.0 is refused: the name is built in",
        "language 'wrecked' of theirs 1.0 is broken",
        "target 'taken' of theirs 1.0 is refused: cuda is built in",
        "property 'twice' is offered by several packages",
    ):
        assert words in said, words


@pytest.mark.slow
def test_kept_answers_know_what_is_installed(examples: Path) -> None:
    """A package of theirs that changes is asked anew: no answer of an earlier one stands in."""
    kept = examples / "kept"
    (examples / "again.yaml").write_text("checks:\n  - fickle: 'f32[3,5]'\n")
    code = "import os; os.environ['LAYOUTPROOF_CACHE'] = 'kept'\nfrom layoutproof.cli.main import run\nprint(run(%r))"
    said = []
    for wanted in ("False", "True"):
        module = TINY.replace("if politely is None", f"if {wanted}")
        install_fickle(examples, module)
        python = [str(examples / "env" / "bin" / "python"), "-c", code % (["check", "again.yaml"],)]
        done = subprocess.run(python, capture_output=True, text=True, check=True, cwd=examples)
        said.append(done.stdout.splitlines()[-1])
    shutil.rmtree(kept, ignore_errors=True)
    assert said == ["0", "2"]


def install_fickle(room: Path, source: str) -> None:
    """A package of one property, as it is now."""
    package = wheel(room, "fickle", {"fickle": source}, {"properties": {"fickle": "fickle.fickle"}})
    python = str(room / "env" / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--no-index", "--no-deps", "--force-reinstall", str(package)]
    subprocess.run(pip, check=True, capture_output=True)


@pytest.mark.slow
def test_entry_points_are_looked_at_only_for_names_that_are_not_built_in() -> None:
    """They cost nothing to who asks what is built in, well formed or not refused by name."""
    code = (
        "import sys\nfrom layoutproof.cli.main import run\n"
        "run(['ask', 'injective', 'f32[3,5]'])\nrun(['locate', 'f32[3,5]', '1,1'])\nrun(['explain', 'injective'])\n"
        "print('importlib.metadata' in sys.modules)\nrun(['ask', 'injectve', 'f32[3,5]'])\n"
        "print('importlib.metadata' in sys.modules)\n"
    )
    python = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"]
    done = subprocess.run(python, capture_output=True, text=True, check=True, cwd=ROOT)
    answers = [line for line in done.stdout.splitlines() if line in ("True", "False")]
    assert answers == ["False", "True"]
    assert layoutproof.__version__
