"""Random edits of right kernels: `python benchmarks/edits --seed 1 --count 1000 [--rewrites] [--keep FILE]`.

The right kernels of `benchmarks/wrong_kernels` and of `tests/values/same_cases.py`, each with one random edit of its
source (`edited.py`), or rewritten at random so that it stays right (`--rewrites`: `rewritten.py`, and kernels made of
random parts, `families.py`). float64 says by JAX's own interpreter whether it still computes what its reference does
(`truth.py`); then `lp.same` is asked, which is not told. An edit that JAX does not trace is no kernel, and another one
is drawn. Each runs in a process that may take a minute for it, so an edit that makes an endless loop ends nothing.

Wrong is, and exits 1: what float64 tells apart and `same` calls sampled or proved; what computes the same and `same`
calls refuted, but where a question about places refutes it or JAX's interpreter of TPU kernels shows something; an
error of `same` itself. What is refuted or unknown is counted, by sort of edit, with the reasons of what is unknown.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
if __package__ != "benchmarks.edits":
    sys.path[0] = str(HERE.parents[1])

from benchmarks.beside import child, run  # noqa: E402
from benchmarks.edits.edited import edit  # noqa: E402

SECONDS = 60.0
WRONG = ("missed", "false alarm", "error")


@dataclass(frozen=True)
class Subject:
    """A right kernel. own: the function whose source is edited.  of: of an imported file (function, reference)."""

    name: str
    own: Callable[..., Any]
    arguments: tuple[Any, ...]
    of: Callable[[ModuleType], tuple[Callable[..., Any], Callable[..., Any]]]


@dataclass(frozen=True)
class Row:
    """What came of one edit. differs: what float64 says.  by: values or places, where it is refuted.

    answer: refuted, unknown, sampled, or one of `WRONG`.
    """

    seed: str
    kernel: str
    kind: str
    words: str
    differs: bool
    shown: str
    answer: str
    by: str
    reason: str
    seconds: float


def subjects() -> dict[str, Subject]:
    """All, by name."""
    from benchmarks.wrong_kernels.__main__ import kernels
    from tests.values import same_cases

    found = {}
    for name, kernel in kernels().items():

        def of(module: ModuleType, name: str = name) -> Any:
            (own,) = [k for k in module.KERNELS if k.function.__name__ == name]
            return own.function, own.reference

        found[name] = Subject(name, kernel.function, kernel.arguments, of)
    made = [
        ("matmul of a tail", same_cases.matmul, ("f32[32,48]", "f32[48,32]"), _matmul),
        ("online softmax", same_cases.softmax, ("f32[16,24]",), _softmax),
        ("two slots", same_cases.copied, ("f32[24,128]",), lambda x: 2 * x),
    ]
    for name, function, arguments, reference in made:

        def factory(module: ModuleType, name: str = function.__name__, reference: Any = reference) -> Any:
            return getattr(module, name)(), reference

        found[name] = Subject(name, function, arguments, factory)
    return found


def _matmul(x: Any, y: Any) -> Any:
    return x @ y


def _softmax(x: Any) -> Any:
    import jax

    return jax.nn.softmax(x, -1)


def imported(subject: Subject, text: str, folder: Path) -> ModuleType:
    """The file of a kernel with another text for its function, imported."""
    from benchmarks.wrong_kernels import made

    own = inspect.getsource(subject.own)
    whole = inspect.getsource(inspect.getmodule(subject.own))  # type: ignore[arg-type]
    assert whole.count(own) == 1
    return made.imported(whole.replace(own, text + "\n\n"), folder / "edited.py")


def answered(request: Mapping[str, Any], tell: Any) -> dict[str, Any]:
    """The answering side: one edit of one kernel; `none` says why it is no row."""
    from benchmarks.edits import families, rewritten

    draw = random.Random(request["seed"])
    with tempfile.TemporaryDirectory() as folder:
        if request["rewrites"] and draw.random() < 0.5:
            made = families.made(draw)
            both = made.function, made.reference
            return row(request["seed"], made.name, "made", made.words, *both, made, [], tell)
        subject = draw.choice(list(subjects().values()))
        text = inspect.getsource(subject.own)
        change = rewritten.rewrite(text, draw) if request["rewrites"] else edit(text, draw)
        if change.words == "nothing":
            return {"none": "nothing to rewrite"}
        try:
            module = imported(subject, change.text, Path(folder))
            function, reference = subject.of(module)
        except Exception as error:
            return {"none": f"no module: {error!r}"[:200]}
        return row(
            request["seed"], subject.name, change.kind, f"line {change.line}: {change.words}", function, reference,
            subject, [module], tell,
        )  # fmt: skip


def row(
    seed: str, name: str, kind: str, words: str, function: Any, reference: Any, given: Any, modules: Sequence[Any],
    tell: Any,
) -> dict[str, Any]:  # fmt: skip
    """One row. given: what has `arguments`.  modules: the file that the kernel stands in, whose floats are widened."""
    import jax

    import layoutproof as lp
    from benchmarks.edits import truth
    from benchmarks.wrong_kernels import columns

    tell("truth")
    try:
        jax.eval_shape(function, *columns.arrays(given))
        said = truth.shown(function, reference, given, modules)
    except Exception as error:
        return {"none": f"JAX: {type(error).__name__}: {error}"[:200]}
    tell("same")
    start = time.perf_counter()
    shown, by = said.words, ""
    try:
        found = lp.same(function, reference, *given.arguments)
    except lp.LayoutError as error:
        answer, reason = "error", str(error)
    else:
        answer, reason = found.verdict.value, found.reason
        if answer == "refuted":
            places = any(f.verdict is lp.Verdict.REFUTED for f in found.premises)
            # what float64 cannot tell apart, such as copies that nothing orders, these may explain
            values = found.comparison.verdict is lp.Verdict.REFUTED and (said.differs or not places)
            by = "values" if values else "places"
    seconds = time.perf_counter() - start
    if said.differs and answer in ("sampled", "proved"):
        answer = "missed"
    if not said.differs and answer == "refuted" and by == "values":
        tell("strictly")
        shown = truth.strictly(function, reference, given)
        if not shown:
            answer = "false alarm"
    made = Row(seed, name, kind, words, said.differs, shown, answer, by, reason[:400], seconds)
    return asdict(made)


def rows(seed: int, count: int, rewrites: bool, none: Counter[str]) -> Iterator[Row]:
    """As many rows as asked for. none: what was drawn and is none, counted."""
    from layoutproof.compiler.child import ask

    asked = child("an edit", HERE / "__main__.py", SECONDS)
    stage = [""]

    def progress(value: Any) -> None:
        stage[0] = str(value)

    many = 0
    requests = ({"seed": f"{seed}.{k}", "rewrites": rewrites} for k in itertools.count())
    for k, answer in enumerate(ask(asked, requests, dict, progress)):
        if many == count:
            return
        if answer.value is None:
            if stage[0] != "same":
                none[f"{stage[0] or 'made'}: {answer.cause}"] += 1
                continue
            many += 1
            yield Row(f"{seed}.{k}", "?", "?", "?", False, "", "error", "", answer.problem[:200], SECONDS)
        elif "none" in answer.value:
            none[answer.value["none"].split(":")[0]] += 1
        else:
            many += 1
            yield Row(**answer.value)


def tables(found: Sequence[Row]) -> Iterator[str]:
    """What came of them."""
    answers = ("refuted", "unknown", "sampled", "proved", *WRONG)
    shown = [a for a in answers if any(r.answer == a for r in found)]
    for title, differs in (("float64 tells apart", True), ("compute the same", False)):
        own = [r for r in found if r.differs is differs]
        if not own:
            continue
        yield f"| {title} | of | {' | '.join(shown)} |"
        yield "|---" * (len(shown) + 2) + "|"
        for kind in [*sorted({r.kind for r in own}), ""]:
            of_kind = [r for r in own if not kind or r.kind == kind]
            cells = [str(sum(r.answer == a for r in of_kind)) for a in shown]
            yield f"| {kind or 'all'} | {len(of_kind)} | {' | '.join(cells)} |"
        yield ""
    apart = [r for r in found if r.differs]
    if apart:
        share = sum(r.answer == "refuted" for r in apart) / len(apart)
        places = sum(r.answer == "refuted" and r.by == "places" for r in apart)
        yield f"{share:.1%} of {len(apart)} that float64 tells apart are refuted, {places} of them by their places"
    alike = [r for r in found if not r.differs]
    if alike:
        share = sum(r.answer in ("sampled", "proved") for r in alike) / len(alike)
        places = sum(r.answer == "refuted" for r in alike)
        yield f"{share:.1%} of {len(alike)} that compute the same are sampled or proved"
        yield f"{places} of these are refuted by their places, or by what JAX's interpreter of TPU kernels shows"
    yield f"median {statistics.median(r.seconds for r in found):.2f} s, longest {max(r.seconds for r in found):.1f} s"
    yield ""
    for reason, many in Counter(_short(r.reason) for r in found if r.answer == "unknown").most_common():
        yield f"unknown {many:4}  {reason}"


def _short(reason: str) -> str:
    """A reason without its numbers."""
    return "".join("#" if c.isdigit() else c for c in reason)[:140]


def errors(found: Iterable[Row]) -> Iterator[str]:
    """What must not be."""
    for r in found:
        if r.answer in WRONG:
            yield f"{r.answer}: {r.seed} {r.kernel}: {r.kind}: {r.words}: {r.shown}: {r.reason}"


def main() -> int:
    """Asks, prints the tables."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=100)
    options.add_argument("--rewrites", action="store_true", help="kernels that stay right, instead of edits")
    options.add_argument("--one", help="the one of a seed that is printed, such as 1.17")
    options.add_argument("--keep", type=Path, help="a file for the rows, as lines of JSON")
    given = options.parse_args()
    if given.one:
        print(json.dumps(answered({"seed": given.one, "rewrites": given.rewrites}, lambda value: None), indent=2))
        return 0
    none: Counter[str] = Counter()
    found = []
    for r in rows(given.seed, given.count, given.rewrites, none):
        found.append(r)
        if given.keep:
            with given.keep.open("a") as file:
                file.write(json.dumps(asdict(r)) + "\n")
        words = " ".join(r.words.split())[:160]
        print(f"{r.seconds:6.2f} {r.answer:8} {r.by:7} {r.seed} {r.kernel}: {r.kind}: {words}", flush=True)
    print("\n".join(tables(found)))
    print(f"no kernels: {dict(none)}")
    wrong = list(errors(found))
    print("\n".join([*wrong, f"{len(found)} with seed {given.seed}, {len(wrong)} wrong"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    run(answered, main)
