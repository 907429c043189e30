"""`python benchmarks/public_functions CHECKOUTS [--only TEXT] [--keep FILE] [--page FILE]`: public kernels judged.

CHECKOUTS is a folder that has checkouts of the repositories of `calls.py`, each named `OWNER+NAME`; none of their code
is here. Their modules are imported without the `__init__` of their packages, so that little else has to be installed.
Each call is judged in a process of its own as `layoutproof kernels` judges it for v6e, before the advice and after it:
once more with all the assumptions that the first answer advises. Exits 1 where something is refuted that is not known
to be wrong: `calls.py` says what is.

A row is made again, and takes its place among those kept, by `--only 'owner/name call' --keep FILE --again`. What other
interpreters have to trace is one more run into the same file: `--python FILE` names one (tokamax needs Python 3.12).
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import re
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from asking import EVERY, apart, last_pass, lines_of, named, without_paths
from calls import CALLS, Call
from drawn_calls import DRAWN, UNCALLED
from modules import imported, older_names

PARTS = (("public functions", CALLS), ("drawn functions", DRAWN))
"""The parts of the page by their marks."""


def counted(answer: Any) -> dict[str, Any]:
    """What one pass says: counts of verdicts of errors, what is refuted and unknown, and what it advises."""
    from layoutproof.pallas.judge import about_body, advice

    errors = [f for f in answer.findings if f.severity == "error"]
    verdicts = Counter(f.verdict.value for f in errors)
    advised = list(dict.fromkeys(advice(call.findings) for call in answer.calls))
    return {
        "calls": len(answer.calls),
        "exit": answer.exit_code,
        **{v: verdicts[v] for v in ("proved", "refuted", "unknown")},
        "refutations": [f"{f.question} {f.subject}: {f.reason}" for f in errors if f.verdict.value == "refuted"],
        "bodies": dict(Counter(f.verdict.value for f in errors if about_body(f.question))),
        "open": [(f.question, f.subject, f.reason) for f in errors if f.verdict.value == "unknown"],
        "assume": [text for text, _ in advised if text],
        "where": [text for _, text in advised if text],
    }


def judged(call: Call, checkouts: Path) -> dict[str, Any]:
    """Both passes over one call, in this process."""
    import layoutproof as lp

    older_names()
    function, args = call.make(imported(call, checkouts))
    before = counted(lp.kernels(function, *args, target="v6e"))
    once, after = taken(), None
    if before["assume"] or before["where"]:
        after = counted(lp.kernels(function, *args, target="v6e", assume=before["assume"], where=before["where"]))
    return {
        "before": before, "after": after, "once": once, "seconds": taken(),
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "jax": importlib.metadata.version("jax"),
    }  # fmt: skip


def taken() -> float:
    """Seconds of CPU that this process has taken, with its imports."""
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


def revision() -> str:
    """The revision of the code that judges, where it stands in a repository."""
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    return asked.stdout.strip()


def passes_of(found: Mapping[str, Any]) -> list[Any]:
    """What is said before the advice, and after it where anything is advised."""
    return [said for said in (found["before"], found["after"]) if said]


def wrongly(call: Call, found: Mapping[str, Any], after: bool) -> list[str]:
    """What one pass refutes in a call that is not known to be wrong."""
    said = last_pass(found) if after else found["before"]
    return [r for r in said["refutations"] if r.split()[0] not in call.wrong]


def table(rows: list[tuple[Call, dict[str, Any]]]) -> Iterator[str]:
    """A row for each call."""
    verdicts = "proved | refuted | unknown"
    yield f"| repository | call | kernels | {verdicts} | advised | {verdicts} | CPU s, one pass | both | MB |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for call, found in rows:
        if "failed" in found:
            yield f"| {call.repository} | {call.name} | not traced: {without_paths(found['failed'])} ||||||||||||"
            continue
        first, last = found["before"], last_pass(found)
        advised = len(first["assume"]) + len(first["where"])
        yield (
            f"| {call.repository} | {call.name} | {first['calls']} | {first['proved']} | {first['refuted']} | "
            f"{first['unknown']} | {advised or ''} | {last['proved']} | {last['refuted']} | {last['unknown']} | "
            f"{once_of(found)} | {found['seconds']:.1f} | {found['mb']:.0f} |"
        )


def once_of(found: Mapping[str, Any]) -> str:
    """CPU seconds of the first pass, which is all where nothing is advised; "" of a row that does not say it."""
    once = found.get("once", None if found["after"] else found["seconds"])
    return "" if once is None else f"{once:.1f}"


def summary(rows: list[tuple[Call, dict[str, Any]]]) -> Iterator[str]:
    """Counts of all calls, and what is unknown at last, by question and cause."""
    told = [found for _, found in rows if "failed" not in found]
    yield f"{len(rows)} calls, {len(told)} traced.\n"
    yield "| | before the advice | after |\n|---|---:|---:|"
    passes = ([found["before"] for found in told], [last_pass(found) for found in told])
    whole = [sum(not said["refuted"] and not said["unknown"] for said in those) for those in passes]
    yield f"| proved whole | {whole[0]} | {whole[1]} |"
    for name, of in (("questions", lambda said: said), ("questions about bodies", lambda said: said["bodies"])):
        counts = [
            [sum(of(said).get(v, 0) for said in those) for v in ("proved", "refuted", "unknown")] for those in passes
        ]
        texts = [f"{p} / {r} / {u}: {(p + r) / max(1, p + r + u):.1%} decided" for p, r, u in counts]
        yield f"| {name} proved / refuted / unknown | {texts[0]} | {texts[1]} |"
    wrong = [
        [r for call, found in rows if "failed" not in found for r in wrongly(call, found, after)]
        for after in (False, True)
    ]
    yield f"| refuted wrongly | {len(wrong[0])} | {len(wrong[1])} |"
    passes_ = [("one pass", [float(once) for found in told if (once := once_of(found))])]
    passes_.append(("both passes", [found["seconds"] for found in told]))
    for what, taken_ in passes_:
        seconds = sorted(taken_) or [0.0]
        middle, most = seconds[len(seconds) // 2], seconds[int(0.9 * (len(seconds) - 1))]
        of = f" of {len(seconds)} calls" if len(seconds) < len(told) else ""
        yield f"\nCPU time of {what}{of} with imports: median {middle:.1f} s, 90 % within {most:.1f} s."
    yield ""
    causes: Counter[tuple[str, str]] = Counter()
    calls: dict[tuple[str, str], set[str]] = {}
    for call, found in rows:
        for question, _, reason in last_pass(found)["open"] if "failed" not in found else ():
            key = question, cause(reason)
            causes[key] += 1
            calls.setdefault(key, set()).add(f"{call.repository} {call.name}")
    yield "| question | what is not known | questions | calls |\n|---|---|---:|---:|"
    for (question, text), count in causes.most_common():
        yield f"| `{question}` | {text} | {count} | {len(calls[question, text])} |"


def cause(reason: str) -> str:
    """A reason without its numbers and its advice, so that those of one kind are alike."""
    return re.sub(r"\d+", "#", reason.partition("; to settle it")[0])[:160].replace("|", "/")


def main() -> int:
    """Judges the calls, prints each as it is judged, and the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--call", type=int)
    parser.add_argument("--keep", type=Path, help="answers as lines of JSON; what stands there is not asked again")
    parser.add_argument("--again", action="store_true", help="ask again what stands there")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that traces and judges")
    parser.add_argument("--code", default=revision(), help="the revision of the code, kept with each answer")
    parser.add_argument("--page", type=Path, help="a page to write the tables into, between their marks; asks nothing")
    given = parser.parse_args()
    checkouts = given.checkouts.resolve()
    if given.call is not None:
        print(json.dumps(judged(EVERY[given.call], checkouts)))
        return 0
    known = {said["name"]: said for said in lines_of(given.keep)}
    if given.page:
        page = given.page.read_text()
        for part, calls in PARTS:
            page = between(page, part, "\n".join(told(part, [(c, known[n]) for c, n in named(calls) if n in known])))
        given.page.write_text(page)
    rows = []
    for k, (call, name) in enumerate(named(EVERY)):
        if given.only not in name or (given.page and name not in known):
            continue
        if name not in known or given.again:
            command = [given.python, __file__, str(checkouts), "--call", str(k)]
            known[name] = {"name": name, "code": given.code, **apart(command)}
            if given.keep:
                kept = {**{said["name"]: said for said in lines_of(given.keep)}, name: known[name]}
                given.keep.write_text("".join(json.dumps(said) + "\n" for said in kept.values()))
        rows.append((call, known[name]))
        if not given.page:
            print("\n".join(said_of(call, known[name])), flush=True)
    print("\n".join([*summary(rows), "", *table(rows)]))
    wrong = [r for call, found in rows if "failed" not in found for a in (False, True) for r in wrongly(call, found, a)]
    print("\n".join(["", *wrong, f"{len(wrong)} refuted wrongly"]))
    return 1 if wrong else 0


def said_of(call: Call, found: dict[str, Any]) -> Iterator[str]:
    """A call's row, and what of it is unknown at last or refuted."""
    yield list(table([(call, found)]))[-1]
    if "failed" in found:
        return
    for question, subject, reason in last_pass(found)["open"]:
        yield f"    unknown {question} {subject}: {reason[:300]}"
    for refutation in sorted({r for said in passes_of(found) for r in said["refutations"]}):
        yield f"    refuted {refutation[:300]}"


def told(part: str, rows: list[tuple[Call, dict[str, Any]]]) -> Iterator[str]:
    """What the page says of one of its parts: when and by which code, the summary, a row for each call."""
    made = Counter((found.get("jax", ""), found.get("code", "")) for _, found in rows if "failed" not in found)
    by = ", ".join(f"{count} with jax {jax} at {code}" for (jax, code), count in made.most_common())
    yield f"{datetime.date.today()}: {by}.\n"
    yield from summary(rows)
    yield ""
    yield from table(rows)
    if part == "drawn functions" and UNCALLED:
        yield "\n| drawn, and not called | why |\n|---|---|"
        yield from (f"| {name} | {why} |" for name, why in UNCALLED.items())


def between(page: str, part: str, text: str) -> str:
    """The page with this text between the marks of a part."""
    first, last = f"<!-- {part} -->", f"<!-- end of {part} -->"
    before, _, rest = page.partition(first)
    return f"{before}{first}\n{text}\n{last}{rest.partition(last)[2]}"


if __name__ == "__main__":
    sys.exit(main())
