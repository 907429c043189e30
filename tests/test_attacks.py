"""What `benchmarks/attacks` says of an attack, and every attack that is not left to the night."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.attacks import __main__ as commands
from benchmarks.attacks.__main__ import Attack, attacks, of
from benchmarks.attacks.room import Untried, hostile, ran

pytestmark = pytest.mark.slow

ATTACKS = {f"{attack.file}.{attack.name}": attack for attack in attacks()}


@pytest.mark.commit
@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if not attack.night])
def test_held(name: str) -> None:
    said, found = ATTACKS[name].outcome()
    if said == "untried":
        pytest.skip(found)
    assert (said, found) == ("held", "")


def test_each_says_what_a_stranger_does() -> None:
    """One sentence, which is what a row shows; a name of the night is that of an attack."""
    for attack in ATTACKS.values():
        assert attack.what.endswith("."), attack.name
    for file in {attack.file for attack in ATTACKS.values()}:
        module = __import__(f"benchmarks.attacks.{file}", fromlist=["NIGHT"])
        assert set(getattr(module, "NIGHT", ())) <= {attack.name for attack in of(module)}


def planted(room: Path) -> str:
    """A stranger's module is imported by a careless program."""
    work = hostile(room / "work", ["yaml"])
    exec((work / "yaml.py").read_text(), {})
    return ran(work)


def harmless(room: Path) -> str:
    """A stranger's module is there and nobody imports it."""
    return ran(hostile(room / "work", ["yaml"]))


def lacking(room: Path) -> str:
    """Nothing can be done here."""
    raise Untried("no such machine")


def clumsy(room: Path) -> str:
    """The attack does not come so far."""
    return (room / "nothing").read_text()


@pytest.mark.parametrize(
    ("chosen", "code", "words"),
    [
        ((harmless,), 0, ["held     here.harmless", "1 held"]),
        ((harmless, planted), 1, ["broken   here.planted", "| yaml was imported", "1 held, 1 broken"]),
        ((harmless, lacking), 3, ["untried  here.lacking", "| no such machine", "1 held, 1 untried"]),
        ((clumsy,), 1, ["broken   here.clumsy", "FileNotFoundError", "1 broken"]),
        ((planted, lacking), 1, ["1 broken, 1 untried"]),
    ],
)
def test_what_the_command_says(
    chosen: tuple[object, ...],
    code: int,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A planted success of the stranger is broken and exit 1; what could not be tried is never green."""
    found = [Attack(function.__name__, "here", function, False) for function in chosen]  # type: ignore[attr-defined,arg-type]
    monkeypatch.setattr(commands, "attacks", lambda: found)
    assert commands.main([]) == code
    said = capsys.readouterr().out
    for word in words:
        assert word in said


def test_attacks_are_the_public_functions_of_a_file() -> None:
    module = ModuleType("benchmarks.attacks.made_up")
    exec("def _helper(room): ...\ndef one(room): ...\nNIGHT = ('one',)\n", vars(module))
    assert [(attack.name, attack.file, attack.night) for attack in of(module)] == [("one", "made_up", True)]
