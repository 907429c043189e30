"""`python benchmarks/public_functions/table.py CHECKOUTS ROWS [--part NAME] [--write]`: one table of public kernels.

Of each call of `calls.py` and `drawn_calls.py`: places before and after advice (`__main__.py`), values beside a
reference (`same.py`), and what the TPU compiler makes of it on each target: VMEM, and relayouts in registers. ROWS is a
folder with the answers as lines of JSON, a file for each of the three; what stands there is not asked again, so that a
run that was stopped goes on. `--write` makes docs/public_table.md and docs/public_table.json of ROWS and asks nothing.
What changed since the JSON that was there stands on top of the page.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from asking import EVERY, apart, last_pass, lines_of, named, without_paths
from modules import imported, older_names
from same import KNOWN

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
TARGETS = ("v5e", "v6e", "7x")
PARTS = ("places", "values", "compiled")
MIB = 1 << 20
HEAD = """\
`python benchmarks/public_functions/table.py CHECKOUTS ROWS --write`. Each row is a call of a public kernel at a small
size; none of its code is here. **Places**: questions of `layoutproof kernels` for v6e, under the assumptions that its
first answer advises (as many as `assumed` says). **Values**: `layoutproof same` beside a reference. **VMEM**: MiB of
the kernel that takes most, by the TPU compiler, ahead of time. **Relayouts**: in registers, of those that cost
something. An empty cell was not asked: of values, where no reference stands beside the call. The same rows as data:
[public_table.json](public_table.json).
"""


def compiled(k: int, checkouts: Path) -> dict[str, Any]:
    """What the compiler says of a call of `EVERY`. VMEM is that of the kernel that takes most, in bytes."""
    import layoutproof as lp
    from layoutproof.core.errors import LayoutError, Unsupported

    call = EVERY[k]
    older_names()
    function, args = call.make(imported(call, checkouts))
    # the compiler runs in processes of its own, which have to find the module, too
    sys.path.insert(0, str(HERE / "stand_ins"))
    os.environ |= {"PUBLIC_CALL": str(k), "PUBLIC_CHECKOUTS": str(checkouts)}
    found: dict[str, Any] = {}
    for target in TARGETS:
        try:
            # what a function does may depend on the chip
            answer = lp.kernels(function, *args, target=target, compile=True, only="grid")
        except (LayoutError, Unsupported) as error:
            found[target] = {"answer": "not traced", "vmem": None, "relayouts": 0, "why": str(error)[:200]}
            continue
        said = [one for kernel in answer.calls for one in kernel.compiled]
        words = [one.word for one in said]
        found[target] = {
            "answer": next((word for word in ("refused", "unknown", "accepted") if word in words), "unknown"),
            "vmem": max((one.vmem.total for one in said if one.vmem is not None), default=None),
            "relayouts": sum(each.count for one in said for each in one.relayouts if not each.reason),
            "why": next((one.words or one.problem for one in said if one.accepted is not True), "")[:200],
        }
    return {"targets": found, "libtpu": importlib.metadata.version("libtpu")}


def asked(checkouts: Path, rows: Path, only: str, parts: Sequence[str]) -> None:
    """Asks what ROWS has not of these parts."""
    for script, part in ((HERE, "places"), (HERE / "same.py", "values")):
        if part not in parts:
            continue
        words = [sys.executable, str(script), str(checkouts), "--only", only, "--keep", str(rows / f"{part}.jsonl")]
        # exit code 1 is an answer: something is refuted
        subprocess.run(words, check=False, stdout=subprocess.DEVNULL)
    kept = rows / "compiled.jsonl"
    known = {said["name"] for said in lines_of(kept)}
    for k, (call, name) in enumerate(named(EVERY) if "compiled" in parts else ()):
        there = (checkouts / call.repository.replace("/", "+")).is_dir()
        if only in name and name not in known and there:
            said = {"name": name, **apart([sys.executable, __file__, str(checkouts), "-", "--call", str(k)])}
            with kept.open("a") as file:
                file.write(json.dumps(said) + "\n")
            print(name, said.get("failed") or said["targets"], file=sys.stderr, flush=True)


def table(rows: Path) -> dict[str, dict[str, Any]]:
    """Each call by its name, as the JSON has it: what was not asked of it is null."""
    parts = {part: {said["name"]: said for said in lines_of(rows / f"{part}.jsonl")} for part in PARTS}
    found = {}
    for call, name in named(EVERY):
        if all(name not in said for said in parts.values()):
            continue
        places, values, of_compiler = (parts[part].get(name) for part in PARTS)
        found[name] = {
            "repository": call.repository,
            "call": call.name,
            "places": None if places is None else _places(places),
            "known_wrong": list(call.wrong),
            "values": None if values is None else values["verdict"],
            "values_known": KNOWN.get((call.repository, call.name), "") if values is not None else "",
            "compiled": None if of_compiler is None else _compiled(of_compiler),
            "failed": without_paths((places or {}).get("failed") or (of_compiler or {}).get("failed") or ""),
        }
    return found


def _compiled(said: Mapping[str, Any]) -> dict[str, Any] | None:
    """The compiler's answer for each target; None where the call could not be made."""
    if "targets" not in said:
        return None
    return {target: {**one, "why": without_paths(one["why"])} for target, one in said["targets"].items()}


def _places(said: Mapping[str, Any]) -> dict[str, Any] | None:
    """Counts of questions after the advice, and how many assumptions that took."""
    if "failed" in said:
        return None
    last = last_pass(said)
    advised = len(said["before"]["assume"]) + len(said["before"]["where"])
    return {**{verdict: last[verdict] for verdict in ("proved", "refuted", "unknown")}, "assumed": advised}


def changes(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What is otherwise than at the last run, a line each; what was not asked at one of both is no change.

    >>> was = {"a": {"places": None, "values": "sampled"}}
    >>> changes(was, {"a": {"places": {"proved": 1}, "values": "refuted"}, "b": {"values": "proved"}})
    ['a: values: was sampled, is refuted', 'b: new']
    """
    found = []
    for name, row in now.items():
        if name not in before:
            found.append(f"{name}: new")
            continue
        for key in ("places", "values", "compiled", "failed"):
            was, is_ = before[name].get(key), row.get(key)
            if was != is_ and was is not None and is_ is not None:
                found.append(f"{name}: {key}: was {_short(key, was)}, is {_short(key, is_)}")
    return found + [f"{name}: no longer asked" for name in before if name not in now]


def _short(key: str, said: Any) -> str:
    if key == "places":
        return _counts(said)
    if key == "compiled":
        return ", ".join(f"{target} {_memory(said, target)}" for target in said)
    return str(said) or "judged"


def _counts(places: Mapping[str, Any]) -> str:
    parts = [f"{places[verdict]} {verdict}" for verdict in ("refuted", "unknown") if places[verdict]]
    return ", ".join([*parts, f"{places['proved']} proved"])


def _memory(said: Mapping[str, Any], target: str) -> str:
    one = said[target]
    size = "" if one["vmem"] is None else f"{one['vmem'] / MIB:.2f}"
    return size if one["answer"] == "accepted" else " ".join(filter(None, (one["answer"], size)))


def page(now: Mapping[str, Mapping[str, Any]], before: Mapping[str, Mapping[str, Any]], made: str) -> Iterator[str]:
    """The lines of the page."""
    yield "# Public kernels, in one table\n"
    yield HEAD
    yield f"{made}\n"
    yield "## Changes since the last run\n"
    changed = changes(before, now)
    listed = "\n".join(f"- {line}" for line in changed) if changed else "None."
    yield listed if before else "This is the first run."
    yield "\n## Table\n"
    yield f"| repository | call | places | assumed | values | {' | '.join(f'VMEM {t}' for t in TARGETS)} | relayouts |"
    yield f"|---|---|---|---:|---|{'---:|' * len(TARGETS)}---|"
    for row in now.values():
        places, of = row["places"], row["compiled"]
        counts = row["failed"] if places is None else _counts(places)
        if row["known_wrong"]:
            counts += f" (known to be wrong: {', '.join(row['known_wrong'])})"
        memory = " | ".join(_memory(of, target) if of else "" for target in TARGETS)
        moved = " / ".join(str(of[target]["relayouts"]) for target in TARGETS) if of else ""
        assumed = (places or {}).get("assumed") or ""
        yield (
            f"| {row['repository']} | {row['call']} | {counts} | {assumed} | {row['values'] or ''} | {memory} | "
            f"{'' if set(moved) <= {'0', ' ', '/'} else moved} |"
        )
    yield "\n## What is known of refuted values\n"
    yield from (
        f"- {row['repository']} {row['call']}: {row['values_known'] or 'nothing yet; it may be a false alarm'}"
        for row in now.values()
        if row["values"] == "refuted"
    )
    yield ""


def written(rows: Path) -> Sequence[str]:
    """Writes page and JSON; the changes."""
    data = DOCS / "public_table.json"
    before = json.loads(data.read_text())["rows"] if data.exists() else {}
    now = table(rows)
    versions = {str(said["libtpu"]) for said in lines_of(rows / "compiled.jsonl") if "libtpu" in said}
    made = f"{datetime.date.today()}, jax {importlib.metadata.version('jax')}, libtpu {', '.join(sorted(versions))}."
    (DOCS / "public_table.md").write_text("\n".join(page(now, before, made)))
    data.write_text(json.dumps({"made": made, "rows": now}, indent=1) + "\n")
    return changes(before, now)


def main() -> int:
    """Asks what is missing, or writes page and JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("rows", type=Path, help="a folder")
    parser.add_argument("--only", default="")
    parser.add_argument("--part", action="append", choices=PARTS, help="may be repeated; all by default")
    parser.add_argument("--call", type=int)
    parser.add_argument("--write", action="store_true", help="write the page and its JSON, and ask nothing")
    given = parser.parse_args()
    checkouts = given.checkouts.resolve()
    if given.call is not None:
        print(json.dumps(compiled(given.call, checkouts)))
    elif given.write:
        print("\n".join(written(given.rows)))
    else:
        given.rows.mkdir(parents=True, exist_ok=True)
        asked(checkouts, given.rows, given.only, given.part or PARTS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
