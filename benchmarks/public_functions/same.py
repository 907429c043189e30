"""`python benchmarks/public_functions/same.py CHECKOUTS [--only TEXT]`: do public kernels compute what they are to?

Each call of `calls.py` that has a reference (`references.py`) is compared with it by `lp.same`, in a process of its own
that may take half an hour, and is a row of the table of docs/same.md, which this prints. Of what is unknown the reasons
are counted. Exits 1 where something is refuted that is not known to be wrong (`KNOWN`), or a process gives no answer.
"""

from __future__ import annotations

import argparse
import datetime
import json
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from asking import lines_of
from calls import CALLS, Call
from modules import imported, older_names

SECONDS = 1800
FIRST, LAST = "<!-- public calls -->", "<!-- end of public calls -->"
LENGTHS = "it reads the lengths of sequences at the number of them"
PAST = "where a group ends with its tile it loads the sublanes behind the block, and then does not use them"
ONE = "one semaphore is for both buffers, so a wait may take the bytes of the copy that is for the next step"
SCALES = "scales become integers of 32 bits before they are multiplied with, most of them 0"
KNOWN = {
    **{
        ("AI-Hypercomputer/JetStream", name): LENGTHS
        for name in ("paged attention", "paged attention, programs for sequences")
    },
    **{(repository, "gmm v2"): PAST for repository in ("AI-Hypercomputer/maxtext", "sgl-project/sglang-jax")},
    ("AI-Hypercomputer/JetStream", "chunked prefill"): ONE,
    ("sgl-project/sglang-jax", "blockwise quantised"): SCALES,
}
"""What is wrong in a call, by repository and name."""


def compared(call: Call, checkouts: Path, brief: bool = False) -> dict[str, Any]:
    """One call beside its reference, in this process."""
    from references import REFERENCES

    import layoutproof as lp

    older_names()
    module = imported(call, checkouts)
    function, args = call.make(module)
    beside = REFERENCES[call.repository, call.name]
    filled = [beside.tables.get(k, a) for k, a in enumerate(args)]
    found = lp.same(
        beside.given(function), beside.given(beside.make(module)), *filled, target="v6e", outputs=beside.outputs
    )
    use = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "verdict": found.verdict.value, "reason": found.reason, "whose": beside.whose, "text": str(found),
        "seconds": use.ru_utime + use.ru_stime,
    }  # fmt: skip


def apart(k: int, checkouts: Path) -> dict[str, Any]:
    """The same in a process of its own, which has an end."""
    command = [sys.executable, __file__, str(checkouts), "--call", str(k)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"verdict": "none", "reason": f"no answer in {SECONDS} s", "seconds": SECONDS, "whose": ""}
    if "tracing the function raised" in done.stderr:
        words = done.stderr.rpartition("tracing the function raised ")[2].splitlines()[0]
        return {"verdict": "not traced", "reason": words[:300], "seconds": 0.0, "whose": ""}
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "Error" in line]
        return {"verdict": "none", "reason": (errors or ["no words"])[-1][:300], "seconds": 0.0, "whose": ""}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A row for each call that was compared, counts of verdicts, and of reasons of what is unknown."""
    yield "| repository | call | reference | verdict | CPU s | because |\n|---|---|---|---|---:|---|"
    for call in CALLS:
        if said := rows.get(f"{call.repository} {call.name}"):
            known = KNOWN.get((call.repository, call.name), "")
            because = f"{known}: {said['reason']}" if known and said["verdict"] == "refuted" else said["reason"]
            row = (call.repository, call.name, said["whose"], said["verdict"], f"{said['seconds']:.1f}", because[:300])
            yield f"| {' | '.join(row)} |"
    counts = Counter(said["verdict"] for said in rows.values())
    yield f"\n{len(rows)} of {len(CALLS)} calls: {', '.join(f'{n} {v}' for v, n in sorted(counts.items()))}"
    open_ = [said["reason"] for said in rows.values() if said["verdict"] == "unknown"]
    reasons = Counter("".join("#" if c.isdigit() else c for c in reason)[:140] for reason in open_)
    yield from (f"unknown {n}: {reason}" for reason, n in reasons.most_common())


def errors(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What must not be."""
    for name, said in rows.items():
        if said["verdict"] == "none" or (said["verdict"] == "refuted" and not any(name == " ".join(k) for k in KNOWN)):
            yield f"{name}: {said['verdict']}: {said['reason']}"


def main() -> int:
    """Compares the calls that were not yet, prints the table and counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--call", type=int)
    parser.add_argument("--keep", type=Path, help="answers as lines of JSON; what stands there is not asked again")
    parser.add_argument("--page", type=Path, help="a page to write the table into, between its marks; asks nothing")
    given = parser.parse_args()
    checkouts = given.checkouts.resolve()
    if given.call is not None:
        print(json.dumps(compared(CALLS[given.call], checkouts)))
        return 0
    import jax

    rows = {said["name"]: said for said in lines_of(given.keep)}
    from references import REFERENCES

    for k, call in enumerate(CALLS):
        if (call.repository, call.name) not in REFERENCES:
            continue
        name = f"{call.repository} {call.name}"
        if given.only in name and name not in rows and not given.page:
            said = apart(k, checkouts)
            rows[name] = {"name": name, **said, "reason": said["reason"].replace(f"{checkouts}/", "")}
            print(name, rows[name]["verdict"], rows[name]["reason"], file=sys.stderr, flush=True)
            if given.keep:
                with given.keep.open("a") as file:
                    file.write(json.dumps(rows[name]) + "\n")
    lines = "\n".join([f"{datetime.date.today()}, jax {jax.__version__}.", "", *table(rows)])
    print(lines)
    if given.page:
        before, _, rest = given.page.read_text().partition(FIRST)
        given.page.write_text(f"{before}{FIRST}\n{lines}\n{LAST}{rest.partition(LAST)[2]}")
    wrong = list(errors(rows))
    print("\n".join([*wrong, f"{len(wrong)} refuted that nobody knows to be wrong, or without an answer"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
