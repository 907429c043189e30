"""`python benchmarks/public_functions CHECKOUTS [--only TEXT]`: public kernels, before and after the advice.

CHECKOUTS is a folder that has checkouts of the repositories of `calls.py`, each named `OWNER+NAME`; none of their code
is here. Their modules are imported without the `__init__` of their packages, so that little else has to be installed.
Each call is judged in a process of its own as `layoutproof kernels` judges it for v6e, and then once more with all the
assumptions that the first answer advises. Exits 1 where something is refuted that is not known to be wrong: `calls.py`
says what is.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from calls import CALLS, Call
from modules import imported, older_names

SECONDS = 600


def counted(answer: Any) -> dict[str, Any]:
    """What one pass says: counts of verdicts of errors, what is refuted and unknown, and what it advises."""
    from layoutproof.pallas.judge import advice

    errors = [f for f in answer.findings if f.severity == "error"]
    verdicts = Counter(f.verdict.value for f in errors)
    advised = list(dict.fromkeys(advice(call.findings) for call in answer.calls))
    return {
        "calls": len(answer.calls),
        "exit": answer.exit_code,
        **{v: verdicts[v] for v in ("proved", "refuted", "unknown")},
        "refutations": [f"{f.question} {f.subject}: {f.reason}" for f in errors if f.verdict.value == "refuted"],
        "open": dict(Counter(f.question for f in errors if f.verdict.value == "unknown")),
        "assume": [text for text, _ in advised if text],
        "where": [text for _, text in advised if text],
    }


def judged(call: Call, checkouts: Path) -> dict[str, Any]:
    """Both passes over one call, in this process."""
    import layoutproof as lp

    older_names()
    function, args = call.make(imported(call, checkouts))
    before = counted(lp.kernels(function, *args, target="v6e"))
    after = None
    if before["assume"] or before["where"]:
        after = counted(lp.kernels(function, *args, target="v6e", assume=before["assume"], where=before["where"]))
    use = resource.getrusage(resource.RUSAGE_SELF)
    return {"before": before, "after": after, "seconds": use.ru_utime + use.ru_stime, "mb": use.ru_maxrss / 1024}


def apart(k: int, checkouts: Path) -> dict[str, Any]:
    """The same in a process of its own, which has an end."""
    command = [sys.executable, __file__, str(checkouts), "--call", str(k)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"failed": f"no answer in {SECONDS} s"}
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "Error: " in line]
        return {"failed": (errors or ["no words"])[-1][:300]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def wrongly(call: Call, found: dict[str, Any]) -> list[str]:
    """What is refuted in a call and not known to be wrong."""
    passes = [found["before"], found["after"]]
    return [r for said in passes if said for r in said["refutations"] if r.split()[0] not in call.wrong]


def table(rows: list[tuple[Call, dict[str, Any]]]) -> list[str]:
    """A row for each call, and counts of all."""
    lines = [
        "| repository | call | kernels | proved | refuted | unknown | advised | proved | refuted | unknown | CPU s |"
        " MB |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for call, found in rows:
        if "failed" in found:
            lines.append(f"| {call.repository} | {call.name} | not traced: {found['failed']} |||||||||||")
            continue
        first, last = found["before"], found["after"] or found["before"]
        advised = len(first["assume"]) + len(first["where"])
        lines.append(
            f"| {call.repository} | {call.name} | {first['calls']} | {first['proved']} | {first['refuted']} | "
            f"{first['unknown']} | {advised or ''} | {last['proved']} | {last['refuted']} | {last['unknown']} | "
            f"{found['seconds']:.1f} | {found['mb']:.0f} |"
        )
    return lines


def main() -> int:
    """Judges the calls, prints each as it is judged, and the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--call", type=int)
    given = parser.parse_args()
    checkouts = given.checkouts.resolve()
    if given.call is not None:
        print(json.dumps(judged(CALLS[given.call], checkouts)))
        return 0
    rows, wrong = [], []
    for k, call in enumerate(CALLS):
        if given.only not in f"{call.repository} {call.name}":
            continue
        found = apart(k, checkouts)
        rows.append((call, found))
        print(table(rows)[-1], flush=True)
        if "failed" in found:
            continue
        for question, count in (found["after"] or found["before"])["open"].items():
            print(f"    unknown {question} {count}")
        refuted = {r for said in (found["before"], found["after"]) if said for r in said["refutations"]}
        for refutation in sorted(refuted):
            print(f"    refuted {refutation[:300]}", flush=True)
        wrong += wrongly(call, found)
    print("\n".join(("", *table(rows))))
    told = [found for _, found in rows if "failed" not in found]
    whole = [sum(not (f[p] or f["before"])["refuted"] and not (f[p] or f["before"])["unknown"] for f in told)
             for p in ("before", "after")]  # fmt: skip
    print(f"\n{len(rows)} calls, {len(told)} traced; proved whole {whole[0]} before the advice and {whole[1]} after;")
    print(f"refuted wrongly {len(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
