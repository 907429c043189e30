"""The gate of two dumps by values: `python benchmarks/gate_values.py [--each N] [--target T] [FILE|FOLDER ..]`.

Edits of texts that the TPU compiler wrote, each as it is and with every name and all metadata gone: such that change
what is computed (`tests/gating/mutants.py`), such that leave every value (`tests/gating/neutral.py`), and such that
differ where two numbers are equal alone. Whether values differ is asked once more, on float64 at other draws than the
gate's. Wrong is: exit code 0 where values differ, denied where they do not, and a tie that is called the same. The exit
code is 1 where one is.

`--loops` does it for texts of our own whose loops and branches inputs decide (`tests/gating/loops.py`), with edits of
what is carried, of which branch is taken, of first and last steps; there values are asked about at all single integers
near those of the texts.

`--compiled` does it for programs instead (`benchmarks/functions`): each is compiled for a v5e, as it was and rewritten
rightly and wrongly, and the texts are gated. With `--keep FOLDER` these texts are then edited by a second call.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if __package__ != "benchmarks":
    sys.path[0] = str(ROOT)

VALUED = (
    *("operation", "constant", "operands", "operand_replaced", "operation_skipped", "other_root", "other_called"),
    *("direction", "axes", "reduction", "trips", "bounds", "slice_moved", "element"),
    *("groups", "collective_added", "collective_removed"),
)
"""Operators of `mutants` that change what is computed, and nothing else."""
ALIKE = ("renamed", "reordered", "metadata")
TOLD = ("same, exit 0", "other, not named")
"""What is printed of edits, to be looked at."""
SEEDS = range(40, 48)
"""Draws of float64 by which it is asked whether values differ."""


def main(arguments: Sequence[str]) -> int:
    """Prints a table: operator, edits, what became of them; and what should not be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=[ROOT / "tests" / "cases" / "programs.jsonl.gz"])
    parser.add_argument("--each", type=int, default=1, help="edits of each operator and dump")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--target", action="append", help="of JSON lines those of a generation; may be repeated")
    parser.add_argument("--steps", type=int, default=2**25, help="dumps of which one walk takes no more steps")
    parser.add_argument("--only", type=int, default=0, help="so many dumps")
    parser.add_argument("--loops", action="store_true", help="texts with loops and branches that inputs decide instead")
    parser.add_argument("--compiled", action="store_true", help="programs compiled from changed source instead")
    parser.add_argument("--keep", type=Path, help="with --compiled, the folder for the texts before the changes")
    given = parser.parse_args(arguments)
    if given.compiled:
        return _compiled(given.keep)
    return _edited(given)


def _edited(given: argparse.Namespace) -> int:
    from benchmarks.gate_mutants import texts
    from tests.gating import loops, mutants
    from tests.gating.neutral import NEUTRAL, TIES

    changing = loops.EDITS if given.loops else {name: mutants.MEANING[name] for name in VALUED} | loops.EDITS
    same = {**NEUTRAL, **{name: mutants.ALIKE[name] for name in ALIKE}}
    table: Counter[tuple[str, str]] = Counter()
    start = time.perf_counter()
    every_text = loops.TEXTS.items() if given.loops else texts(given.files, given.target)
    dumps = (each for each in every_text if _is_short(each[1], given.steps))
    for of, text in islice(dumps, given.only or None):
        print(f"{of}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        for kind, operators in (("changing", changing), ("neutral", same), ("ties", TIES)):
            many = 1 if given.loops and kind != "changing" else given.each
            for name, new in mutants.mutants(text, operators, many, given.seed):
                for called, edited in ((name, new), (f"{name}, unnamed", mutants.unnamed(new))):
                    word, why = _judged(kind, text, edited, new)
                    table[called, word] += 1
                    if word in TOLD or word.startswith(("WRONG", "differs")):
                        print(f"{called}: {word} {of}: {why[:300]}\n    {_edit(text, new)}", flush=True)
    names = [f"{name}{more}" for name in (*changing, *same, *TIES) for more in ("", ", unnamed")]
    for name in names:
        row = {word: many for (of, word), many in sorted(table.items()) if of == name}
        print(f"{name:<28} {sum(row.values()):>5}  " + ", ".join(f"{word} {many}" for word, many in row.items()))
    every: Counter[str] = Counter()
    for (_, word), many in table.items():
        every[word] += many
    print(f"{sum(every.values())} edits: " + ", ".join(f"{word} {many}" for word, many in sorted(every.items())))
    print(f"{time.perf_counter() - start:.0f} s")
    return int(any(word.startswith("WRONG") for word in every))


def _is_short(text: str, steps: int) -> bool:
    """Whether its values are compared, and one walk takes no more than so many steps."""
    from layoutproof.core.errors import LayoutError
    from layoutproof.programs.two_texts import program_of
    from layoutproof.questions.reduced import work_of

    try:
        return work_of(program_of(text, "a text")) <= steps
    except LayoutError:
        return False


def _judged(kind: str, old: str, new: str, edited: str) -> tuple[str, str]:
    """(What became of an edit, why). edited: the new text with its names."""
    code, findings = gate(old, new)
    questions = {f.question: f for f in findings}
    why = "; ".join(f"{f.question}: {f.reason}" for f in findings)
    if kind == "neutral":
        if "other_function" in questions:
            return "WRONG other", why
        return ("same or no change" if code == 0 else "unknown, denied as before" if code == 1 else f"exit {code}"), why
    if kind == "ties":
        other, unsure = "other_function" in questions, code != 0
        if code == 0 and _differs(old, new) is None:
            return "not evaluated", why
        return "told apart" if other else "unknown" if unsure else "same: no data are compared", why
    other = questions.get("other_function")
    if other is not None:
        # tables above the instructions are gone with the metadata
        gone = len(edited.splitlines()) - len(new.splitlines())
        lines = [each.line + gone for each in (other, *other.follows)]
        return ("other, named" if any(named(old, edited, line) for line in lines) else "other, not named"), why
    apart = _differs(old, new)
    if apart is None:
        return f"not evaluated, exit {code}", why
    if code == 0:
        return ("WRONG same" if apart else "same, exit 0"), why
    return f"{'differs' if apart else 'same'} on float64, exit {code}", why


def gate(old: str, new: str) -> tuple[int, list[Any]]:
    """(Exit code, findings) of the gate of two texts, by its default rules."""
    from layoutproof.core.finding import exit_code
    from layoutproof.gating import folding, policy
    from layoutproof.gating.program_changes import compare
    from layoutproof.gating.states import File

    files = File("a.txt", "old.txt", old.encode()), File("a.txt", "a.txt", new.encode())
    found = folding.unfolded(compare(*files, "a.txt", by_cause=True, by_values=True))
    judged = folding.refolded(policy.judge(found, {}, policy.Policy(), datetime.date(2026, 11, 22))[0])
    return exit_code(judged), judged


def _differs(old: str, new: str) -> bool | None:
    """Whether values differ on float64 at some draws; None where it cannot be evaluated."""
    import numpy as np

    from layoutproof.core.errors import LayoutError
    from layoutproof.programs.two_texts import inputs_of, program_of
    from layoutproof.values.floats import Floats
    from layoutproof.values.pair import drawn
    from layoutproof.values.refusals import NotModelled, OutOfBounds
    from layoutproof.values.walk import Prepared, Walk

    try:
        sides = [program_of(text, "a text") for text in (new, old)]
        for seed, inputs in _drawn(inputs_of(sides[0]), old, new):
            numbers = Floats(seed, whole=seed % 4 == 3, sign=seed % 4 == 2)
            given, prepared = drawn(numbers, inputs), Prepared(foreign=True)
            with np.errstate(all="ignore"):
                walks = [Walk(numbers, prepared) for _ in sides]
                ours, theirs = (
                    [walk.data(v).array for v in walk.run(side, given)] for walk, side in zip(walks, sides, strict=True)
                )
            for a, b in zip(ours, theirs, strict=True):
                both = np.isfinite(a) & np.isfinite(b)
                size = np.abs(b[both]).max(initial=0.0)
                if (np.abs(a - b)[both] > 1e-6 * size).any() or (np.isfinite(a) != np.isfinite(b)).any():
                    return True
    except (LayoutError, NotModelled, OutOfBounds, ValueError, KeyError, IndexError):
        return None
    return False


def _drawn(inputs: Sequence[Any], old: str, new: str) -> Iterator[tuple[int, Sequence[Any]]]:
    """(A seed, inputs with integers): some drawn, and single ones near those of the texts, which decide loops."""
    from dataclasses import replace

    import numpy as np

    from layoutproof.values.pair import with_integers

    given = with_integers(inputs)
    yield from ((seed, given) for seed in SEEDS)
    single = [k for k, i in enumerate(inputs) if i.dtype.kind in "iu" and not i.shape]
    said = {int(n) for text in (old, new) for n in re.findall(r"s32\[\]\S* constant\((-?\d+)\)", text)}
    near = sorted({n + d for n in said if abs(n) < 1024 for d in (-1, 0, 1, 2)} | set(range(-2, 12)))
    for k in single:
        for number in near:
            if number >= np.iinfo(inputs[k].dtype).min:
                chosen = np.asarray(number).astype(inputs[k].dtype)
                yield SEEDS[0], [replace(i, value=chosen) if j == k else i for j, i in enumerate(given)]


def named(old: str, new: str, line: int) -> bool:
    """Whether a line of the new text is one that was edited, or the next one that uses what it gives."""
    ones, others = old.splitlines(), new.splitlines()
    known = Counter(ones)
    edited = set()
    for k, each in enumerate(others, 1):
        if known[each]:
            known[each] -= 1
        else:
            edited.add(k)
    if not edited:
        # a line is gone, or they stand in another order
        return False
    if line in edited:
        return True
    text = others[line - 1] if 0 < line <= len(others) else ""
    for k in edited:
        made = re.match(r"\s*(?:ROOT )?%?([\w.\-]+) = ", others[k - 1])
        if made is not None and re.search(rf"%{re.escape(made[1])}(?![\w.\-])", text):
            return True
        # a computation that is called there
        called = re.findall(r"(?:calls|body|condition|to_apply|_computation)=%?([\w.\-]+)", others[k - 1])
        called += re.findall(r"%([\w.\-]+)", "".join(re.findall(r"branch_computations=\{(.*?)\}", others[k - 1])))
        within = _within(others, line)
        if within in called:
            return True
        # a parameter, or what begins otherwise, of a computation that is called by name at the line
        if _within(others, k) in re.findall(r"(?:calls|body|condition|to_apply)=%?([\w.\-]+)", text):
            return True
    return False


def _within(lines: Sequence[str], line: int) -> str:
    """The computation in which a line stands."""
    for k in range(line - 1, -1, -1):
        begins = re.match(r"(?:ENTRY )?%([\w.\-]+) \(", lines[k])
        if begins is not None:
            return begins[1]
    return ""


def _edit(old: str, new: str) -> str:
    pairs = zip(old.splitlines(), new.splitlines(), strict=False)
    return next((f"{a.strip()[:150]} -> {b.strip()[:150]}" for a, b in pairs if a != b), "")


def _compiled(keep: Path | None) -> int:
    """Each program of `benchmarks/functions`, compiled as it was, rewritten rightly and wrongly; the exit code."""
    import layoutproof as lp
    from benchmarks.functions.__main__ import PROGRAMS, SIDES, witness

    wrong = 0
    table: Counter[str] = Counter()
    start = time.perf_counter()
    for name, arguments in PROGRAMS.items():
        sides = {}
        for side in ("before", *SIDES):
            where = ROOT / "benchmarks" / "functions" / f"{side}.py"
            (sides[side],) = lp.compile(f"{where}:{name}", *arguments, target="v5e").texts
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{name}.txt").write_text(sides["before"])
        for side in SIDES:
            code, findings = gate(sides["before"], sides[side])
            differs = witness(name, side)
            if differs is not (side == "wrong"):
                raise SystemExit(f"{name} {side}: JAX says that they {'differ' if differs else 'are the same'}")
            questions = [f.question for f in findings]
            word = "other" if "other_function" in questions else f"exit {code}"
            if not findings:
                word = "no change"
            elif "same_function" in questions:
                word = f"same, exit {code}"
            bad = (side == "wrong" and code == 0) or (side == "right" and word == "other")
            wrong += bad
            table[f"{side}: {word}"] += 1
            why = "; ".join(f"{f.question}: {f.reason}" for f in findings)
            print(f"{'WRONG ' if bad else ''}{name:<17} {side:<6} {word:<14} {why[:200]}", flush=True)
    for word, many in sorted(table.items()):
        print(f"{word:<30} {many}")
    print(f"{time.perf_counter() - start:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
