"""The attacks of SECURITY.md, carried out as a stranger would: `python benchmarks/attacks [NAME..]`.

Each attack is a public function of a file beside this one, found by its name: it gets an empty folder, does what its
docstring's first sentence says in processes of its own, and gives what came of it in words, "" where nothing did. A row
says `held` or `broken`; `untried` where this machine lacks something, which is no success either. An attack that itself
fails is `broken`: what was not carried out proves nothing. Exit 1 where one is broken, else 3 where one is untried.

Those that take long, named in `NIGHT` of their file, run here alone; `tests/test_attacks.py` runs all others.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
if __package__ != "benchmarks.attacks":
    sys.path[0] = str(ROOT)

from benchmarks.attacks.room import Untried  # noqa: E402

NOT_ATTACKS = ("__main__", "room")


@dataclass(frozen=True)
class Attack:
    """One function of a file here. file: its name.  night: whether only the night waits for it."""

    name: str
    file: str
    carry_out: Callable[[Path], str]
    night: bool

    @property
    def what(self) -> str:
        """What a stranger does, in a sentence."""
        return " ".join((inspect.getdoc(self.carry_out) or "").partition("\n\n")[0].split())

    def outcome(self) -> tuple[str, str]:
        """(held, broken or untried; what came of it)."""
        with tempfile.TemporaryDirectory(prefix="attack-", ignore_cleanup_errors=True) as room:
            try:
                found = self.carry_out(Path(room).resolve())
            except Untried as lack:
                return "untried", str(lack)
            except Exception:
                return "broken", f"the attack itself failed: {traceback.format_exc()}"
        return ("broken", found) if found else ("held", "")


def attacks() -> list[Attack]:
    """All of them, by file and in the order in which each file has them."""
    names = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_ATTACKS)
    return [attack for name in names for attack in of(importlib.import_module(f"benchmarks.attacks.{name}"))]


def of(module: ModuleType) -> Iterator[Attack]:
    """The attacks of one file."""
    night = getattr(module, "NIGHT", ())
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_"):
            yield Attack(name, module.__name__.rpartition(".")[2], value, name in night)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carries them out, a row for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="an attack, or a file of them; all by default")
    wanted = set(parser.parse_args(arguments).names)
    every = attacks()
    unknown = wanted - {attack.name for attack in every} - {attack.file for attack in every}
    if unknown:
        parser.error(f"no attack is called {', '.join(sorted(unknown))}")
    counts = {"held": 0, "broken": 0, "untried": 0}
    for attack in every:
        if not wanted or {attack.name, attack.file} & wanted:
            said, found = attack.outcome()
            counts[said] += 1
            print(f"{said:<8} {attack.file + '.' + attack.name:<52} {attack.what}", flush=True)
            if found:
                print("".join(f"         | {line}\n" for line in found.strip().splitlines()), end="", flush=True)
    print(", ".join(f"{count} {said}" for said, count in counts.items() if count))
    return 1 if counts["broken"] else 3 if counts["untried"] else 0


if __name__ == "__main__":
    sys.exit(main())
