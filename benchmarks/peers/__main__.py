"""The same questions put to layoutproof and to its peers: `python benchmarks/peers`.

Each peer answers in a process of its own, which may use so much time (`--seconds` for one question) and memory. What it
answers is held against what looking at every element gives (`questions.py`). A peer has its environment below FOLDER,
made by `--install`, or is one that this Python has; the others are left out, and that is said.

An answer is right or wrong; "refused" is an exception, or that it cannot tell; where there is no answer, as of a
composition that no layout is, to refuse is right. "not asked": the peer has no words for the question. The times are
medians, each layout made anew, over the questions that both answered. `--speed` is about ours alone, and the engine of
bit matrices beside Triton's (`speed.py`).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
if __package__ != "benchmarks.peers":
    # Python puts this folder in front, whose files have the names of the peers that they ask
    sys.path[0] = str(ROOT)

from benchmarks.peers.questions import Question, exists, questions, right  # noqa: E402
from layoutproof.compiler.child import Child, Reply, ask  # noqa: E402

FOLDER = Path(tempfile.gettempdir(), "layoutproof-peers")
MEMORY = 12 << 30
"""Bytes of address space; the libraries of some peers reserve several at their start."""
OURS = "ours"
OUTCOMES = ("correct", "wrong", "refused", "crashed", "timed out", "not asked")
NOT_PEERS = ("__main__", "asking", "expressions", "questions", "speed")


@dataclass(frozen=True)
class Outcome:
    """What became of one question.

    words: of a refusal or an end.  us: the median time of an answer, in microseconds.
    """

    question: Question
    what: str
    words: str = ""
    value: Any = None
    us: float = 0.0
    version: str = ""


@dataclass(frozen=True)
class Peer:
    """One file beside this one."""

    name: str
    folder: Path = FOLDER

    @cached_property
    def module(self) -> ModuleType:
        """The file, which imports the peer only when it is asked."""
        return importlib.import_module(f"benchmarks.peers.{self.name}")

    @property
    def python(self) -> Path | None:
        """The interpreter of its own environment."""
        found = self.folder / self.name / "bin" / "python"
        return found if found.exists() else None

    @property
    def installed(self) -> bool:
        """Whether it can be asked here."""
        return self.python is not None or importlib.util.find_spec(self.module.IMPORT) is not None

    def install(self) -> None:
        """Makes its environment anew."""
        place = self.folder / self.name
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        subprocess.run([str(place / "bin" / "python"), "-m", "pip", "install", "-q", *self.module.INSTALL], check=True)

    def child(self, seconds: float) -> Child:
        """The process that asks it, with so many seconds for one question."""
        paths = (str(ROOT),)
        return Child(self.name, self.module.__name__, seconds=seconds, memory=MEMORY, python=self.python, paths=paths)

    def outcomes(self, asked: Sequence[Question], seconds: float) -> list[Outcome]:
        """What it says to each question."""
        answers = ask(self.child(seconds), asked, dict)
        return [judged(question, answer) for question, answer in zip(asked, answers, strict=True)]


def peers(folder: Path = FOLDER) -> list[Peer]:
    """All of them, ours first."""
    names = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_PEERS)
    return [Peer(name, folder) for name in sorted(names, key=lambda name: name != OURS)]


def judged(question: Question, answer: Reply[Any]) -> Outcome:
    """An answer held against the truth."""
    if answer.value is None:
        what = "timed out" if answer.cause == "slow" else "crashed" if answer.cause == "ended" else "refused"
        return Outcome(question, what, answer.problem)
    found = answer.value
    version = found["version"]
    if found["said"] == "not asked":
        return Outcome(question, "not asked", found["words"], version=version)
    if found["said"] == "refused":
        return Outcome(question, "refused" if exists(question) else "correct", found["words"], version=version)
    fits = right(question, found["value"])
    return Outcome(question, "correct" if fits else "wrong", "", found["value"], found["us"], version)


def table(found: dict[str, list[Outcome]]) -> Iterable[str]:
    """One row for each peer."""
    yield f"| peer | version | {' | '.join(OUTCOMES)} | its time | ours on the same | ours / its |"
    yield f"|---|---|{'---:|' * (len(OUTCOMES) + 3)}"
    mine = {id(outcome.question): outcome.us for outcome in found[OURS]}
    for name, outcomes in found.items():
        counts = Counter(outcome.what for outcome in outcomes)
        version = next((outcome.version for outcome in outcomes if outcome.version), "")
        both = [(o.us, mine[id(o.question)]) for o in outcomes if o.us and mine[id(o.question)]]
        times = ["", "", ""]
        if both:
            its, ours = (statistics.median(column) for column in zip(*both, strict=True))
            times = [shown(its), shown(ours), f"{statistics.median(o / i for i, o in both):.2g}"]
        cells = [named(name), version, *(str(counts[what] or "") for what in OUTCOMES), *times]
        yield f"| {' | '.join(cells)} |"


def by_group(found: dict[str, list[Outcome]]) -> Iterable[str]:
    """Correct of asked, for each group of questions and peer."""
    groups = list(dict.fromkeys(question["group"] for question in questions()))
    yield f"| | {' | '.join(groups)} |"
    yield f"|---|{'---|' * len(groups)}"
    for name, outcomes in found.items():
        cells = []
        for group in groups:
            here = [o.what for o in outcomes if o.question["group"] == group and o.what != "not asked"]
            wrong = f", {here.count('wrong')} wrong" if "wrong" in here else ""
            cells.append(f"{here.count('correct')} of {len(here)}{wrong}" if here else "")
        yield f"| {named(name)} | {' | '.join(cells)} |"


def wrong_answers(found: dict[str, list[Outcome]]) -> Iterable[str]:
    """Each wrong answer."""
    yield "| peer | question | of | it says |\n|---|---|---|---|"
    for name, outcomes in found.items():
        for o in outcomes:
            if o.what == "wrong":
                value = str(o.value)
                said = value if len(value) < 60 else f"{value[:57]}.."
                yield f"| {named(name)} | {o.question['kind']} | {o.question['name']} | {said} |"


def slower(found: dict[str, list[Outcome]]) -> Iterable[str]:
    """Where a peer answers rightly in less time than we do."""
    mine = {id(outcome.question): outcome for outcome in found[OURS]}
    for name, outcomes in found.items():
        pairs = [(o, mine[id(o.question)]) for o in outcomes if o.what == "correct" and o.us and name != OURS]
        faster = [(o, m) for o, m in pairs if m.us > o.us]
        if faster:
            kinds = Counter(f"{o.question['group']}: {o.question['kind']}" for o, _ in faster)
            most = max(m.us / o.us for o, m in faster)
            what = ", ".join(f"{kind} {many}" if many > 1 else kind for kind, many in kinds.items())
            yield f"- {named(name)} is faster on {len(faster)} of {len(pairs)}, at most {most:.0f} times: {what}."


def named(name: str) -> str:
    """A peer as the page calls it: the first words of its file."""
    return NAMES.get(name, name)


NAMES = {
    "ours": "layoutproof",
    "cute_dsl": "CuTe DSL",
    "jax": "JAX, `interpret=True`",
    "jax_interpret_params": "JAX, `InterpretParams`",
    "tensor_layouts": "tensor-layouts",
    "triton": "Triton linear layouts",
    "tvm": "TVM",
    "isl": "raw isl",
    "z3": "raw z3",
}


def shown(micro: float) -> str:
    """A time in words."""
    return f"{micro:.1f} us" if micro < 1000 else f"{micro / 1000:.1f} ms"


def matrices(folder: Path) -> Iterable[str]:
    """The engine of bit matrices beside Triton's."""
    from benchmarks.peers.speed import matrix_rows

    yield "| of | what | time |\n|---|---|---:|"
    for group, what, micro in matrix_rows(Peer("triton", folder)):
        yield f"| {group.rpartition(', ')[2]} | {what} | {shown(micro)} |"


def page(found: dict[str, list[Outcome]], missing: Sequence[Peer], seconds: float, folder: Path) -> str:
    """docs/peers.md."""
    system = f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}"
    many = len(questions())
    parts = [
        HEAD.format(many=many, seconds=f"{seconds:g}", system=system, day=time.strftime("%Y-%m-%d")),
        "\n".join(table(found)),
        "\nRight answers of those asked for, by what the questions are about:\n",
        "\n".join(by_group(found)),
        "\n## Wrong answers\n\nWhat can be pasted of them is in [BUGS-FOUND.md](../BUGS-FOUND.md).\n",
        "\n".join(wrong_answers(found)),
        "\n## Where a peer is faster\n",
        "\n".join(slower(found)) or "Nowhere in this run.",
        MATRICES,
        "\n".join(matrices(folder)),
        TAIL,
    ]
    parts += [f"Not installed, so left out: {', '.join(peer.name for peer in missing)}.\n"] if missing else []
    return "\n".join(parts)


HEAD = """# Peers on the same questions

`python benchmarks/peers --page` prints this page; `--install` makes the environments that it asks. {many} questions
(`benchmarks/peers/questions.py`; {system}, {day}), each to each peer that has words
for it, in a process of its own with {seconds} s for one question. Whether an answer is right is known by looking at
every element. Where there is no answer (no layout is that composition) to refuse is right. "refused" is an exception,
or "cannot prove it". The times are medians over the questions that both answered, with every layout made anew and
nothing remembered; read the ratio, which is the median of the ratios.
"""

MATRICES = """
The times above are of whole questions: text or data is read, layouts are made, claims are built and decided, words are
found for the answer. Triton's are of a few calls of C++. What decides a linear layout or a swizzle in both is a matrix
over GF(2); the engines alone, on 2^30 elements, with the matrix made for the question and with the matrix known:
"""

TAIL = """
What the peers are asked is what they are for: nothing here says that a compiler's layout class should decide padding.
isl and z3 are the engines that layoutproof asks too, after its own; raw means without its coordinates and its order.
JAX's interpreters are asked whether a kernel that writes a block per program stays in its array, and fills it.
TVM's `inverse` counts as its proof of a bijection; when it refuses one it has said nothing.
pycute, CuTe DSL and TVM return a layout; it is evaluated on every element, by the peer itself where it can. pycute and
tensor-layouts return theirs without a proof, in less time than ours, which holds each result against its law.
"""


def main() -> int:
    """Ask, print; 1 where one of our own answers is wrong, or none comes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="make the environments of those that this Python lacks")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"of the environments; {FOLDER} without it")
    parser.add_argument("--only", default="", metavar="PEER", help="this peer, beside ours")
    parser.add_argument("--seconds", type=float, default=20.0, help="for one question, the start of a process included")
    parser.add_argument("--page", action="store_true", help="print docs/peers.md")
    parser.add_argument("--speed", action="store_true", help="time questions about 2^30 elements, algebra, conversions")
    parser.add_argument("--json", action="store_true", help="of --speed")
    given = parser.parse_args()
    if given.speed:
        from benchmarks.peers import speed

        speed.show_all(Peer("triton", given.folder), given.json)
        return 0
    chosen = [peer for peer in peers(given.folder) if given.only in ("", peer.name) or peer.name == OURS]
    if given.install:
        for peer in chosen:
            if not peer.installed:
                peer.install()
        importlib.invalidate_caches()
    found: dict[str, list[Outcome]] = {}
    for peer in chosen:
        if peer.installed:
            print(f"asking {peer.name}", file=sys.stderr, flush=True)
            found[peer.name] = peer.outcomes(questions(), given.seconds)
    missing = [peer for peer in chosen if not peer.installed]
    if given.page:
        print(page(found, missing, given.seconds, given.folder), end="")
    else:
        for name, outcomes in found.items():
            for o in outcomes:
                if o.what not in ("correct", "not asked"):
                    print(f"{name} {o.what}: {o.question['kind']} of {o.question['name']}: {o.words or o.value}"[:300])
        print("\n".join((*table(found), "", *by_group(found), "", *slower(found))))
        for peer in missing:
            print(f"{peer.name}: not installed ({' '.join(peer.module.INSTALL)}); --install installs it")
    return 1 if any(o.what not in ("correct", "refused") for o in found[OURS]) else 0


if __name__ == "__main__":
    sys.exit(main())
