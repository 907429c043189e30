"""A hundred thousand bad inputs: does every command end in time, within its memory, in words of its own?

python benchmarks/bad_inputs.py --inputs 100000 --seed 1     counts, seconds and megabytes per kind of input
python benchmarks/bad_inputs.py --seed 1 --only 4711         that one input again, with what it printed

Seeds are the layouts, conditions, spec and search files of this repository, a small program, rules and a lock file.
Each input is one of them with its numbers exchanged (so that its grammar holds) or its text cut, repeated, nested,
spliced or salted, and goes to a command as a user would give it. Good are the exit codes 0 to 3 within SECONDS of a
core and MEGABYTES; a defect of ours, a death, a wait or a swelling is printed with its number, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

SPECS = Path(__file__).parents[1] / "specs"
SECONDS = 20.0
"""Longest time of one input on a core of its own; budgets count steps, and cores may be shared."""
WAIT = 300.0
"""Longest time by the clock: for what waits and computes nothing."""
MEGABYTES = 400
"""Most that one input may add to the peak memory of a process."""
ROOM = 6 << 30
"""Address space of a process, so that a swelling is seen before the machine feels it."""
DEFECT = "this is a bug in layoutproof"

NUMBERS = (
    0,
    1,
    1,
    2,
    2,
    3,
    4,
    5,
    7,
    8,
    8,
    16,
    31,
    32,
    64,
    100,
    127,
    128,
    128,
    255,
    256,
    1000,
    1024,
    4096,
    65536,
    -1,
    -8,
)
LARGE = (2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), 10**19, 10**20, 10**30, 10**500)
SALT = (
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "*",
        "?",
        "<=",
        "->",
        "@",
        "+",
        "-",
        "//",
        "%",
        "T(8,128)",
        "N",
        "M",
        "a b",
    ),
    *(
        "'",
        '"',
        "\\",
        "#",
        "&a",
        "*a",
        "!!x",
        "|",
        "- ",
        "\n",
        "\t",
        "\r",
        "\0",
        "\x1b[0m",
        "\ufeff",
        "\u202e",
        "\U0001f9e8",
    ),
    *("null", "true", ".inf", "1e9", "0x10", "1_000", "\u0665", "lambda: 0", "__import__('os')", "%s%n", "../..", "~"),
)
PROPERTIES = ("injective", "in_bounds", "covers", "bijective", "padding", "fits_int32", "even", "replicas_distinct")
PROGRAM = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[8,256]{1,0})->f32[256,8]{1,0}}

%double (p: f32[8,256]) -> f32[8,256] {
  %p = f32[8,256]{1,0} parameter(0)
  ROOT %add.1 = f32[8,256]{1,0} add(%p, %p), metadata={op_name="f/add"}
}

ENTRY %main (x: f32[8,256]) -> f32[256,8] {
  %x = f32[8,256]{1,0} parameter(0), sharding={replicated}, metadata={op_name="x"}
  %fusion = f32[8,256]{1,0} fusion(%x), kind=kLoop, calls=%double, metadata={op_name="f/add"}
  %bitcast.1 = f32[256,8]{0,1} bitcast(%fusion)
  ROOT %copy.1 = f32[256,8]{1,0} copy(%bitcast.1), metadata={op_name="f/transpose"}
}
"""
STATED = "source: x\nlayouts:\n  a: f32[3,5] strides (5,1)\nchecks:\n  - injective: a\n"
RULES = """[tool.layoutproof.gate]
moved = "warn"
padding = "deny"

[[tool.layoutproof.gate.approvals]]
fingerprint = "0123456789abcdef"
reason = "measured"
until = 2026-12-31
"""
LOCK = """# layoutproof.lock 1: written by layoutproof gate --lock, of ["a.yaml"]
["a.yaml", "claim", {"kind": "injective", "labels": ["a"], "layouts": ["f32[3,5] strides (5,1)"]}, "proved"]
["a.yaml", "layout", "a", "f32[3,5] strides (5,1)"]
"""
ROWS = '[{"bm": 128, "bn": 256, "bk": 512}, {"bm": 256, "bn": 256, "bk": 256, "note": "x"}]'
CONDITIONS = (
    *("N % 8 == 0", "N % 8 == 0 and M >= 128", "N == 4 or M < 3", "not N < M", "N*N == 2*M", "1 <= N < M <= 8"),
    *("cdiv(N, 8) == M // 2", "min(N, M) + max(N, 3) != 7", "N*M*N % 128 == 0 and (N == 1 or M == 1)"),
)
SHARDINGS = (
    "{devices=[2,2]<=[4]}",
    "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
    "{devices=[2,2]0,2,1,3}",
    "{replicated}",
    "{maximal device=3}",
)


class Input(NamedTuple):
    """What a user gives. files: what lies in the folder, by name."""

    kind: str
    arguments: list[str]
    files: dict[str, bytes]


class Outcome(NamedTuple):
    """What came of one. grown: megabytes added to the peak.  trouble: "" when all is well."""

    number: int
    kind: str
    code: int
    seconds: float
    grown: float
    peak: float
    trouble: str


def broken(chance: random.Random, text: str, others: tuple[str, ...]) -> str:
    """A text with its numbers exchanged, or broken in one to four ways."""
    if chance.random() < 0.5:
        large, often = chance.random() < 0.3, chance.choice((0.05, 0.2, 0.7))
        return re.sub(r"\d+", lambda m: _number(chance, m[0], large, often), text)
    parts = re.findall(r"\w+|\s+|.", text, re.DOTALL) or [""]
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(parts))
        match chance.randrange(10):
            case 0:
                del parts[at : at + chance.choice((1, 1, 2, 5))]
            case 1:
                parts.insert(at, chance.choice(SALT))
            case 2:
                parts[at] = str(chance.choice((*NUMBERS, *LARGE)))
            case 3:
                other = chance.randrange(len(parts))
                parts[at], parts[other] = parts[other], parts[at]
            case 4:
                piece = parts[at : at + chance.choice((1, 2, 4, 8))]
                parts[at:at] = piece * chance.choice((1, 2, 5, 20, 300, 3000))
            case 5:
                del parts[at:]
            case 6:
                left, right = chance.choice(("()", "[]", "{}"))
                deep = chance.choice((1, 3, 40, 300, 3000))
                parts[at] = left * deep + parts[at] + right * deep
            case 7:
                other = chance.choice(others)
                cut = chance.randrange(len(other) + 1)
                parts[at:] = [other[cut:]]
            case 8:
                parts[at] = chance.choice(SALT)
            case _:
                parts.insert(at, parts[chance.randrange(len(parts))])
        parts = parts[:200_000] or [""]
    return "".join(parts)


def _number(chance: random.Random, was: str, large: bool, often: float) -> str:
    if chance.random() > often:
        return was
    return str(chance.choice(LARGE if large and chance.random() < 0.4 else NUMBERS))


@cache
def seeds() -> dict[str, tuple[str, ...]]:
    """The texts that inputs are made of, by kind."""
    found: dict[str, list[str]] = defaultdict(list)
    import yaml

    for path in sorted(SPECS.glob("*.yaml")):
        text = path.read_text()
        if "trace:" in text:
            continue  # inputs run no code of anybody
        whole = yaml.load(text, yaml.BaseLoader)
        named = whole.get("layouts", {})
        for check in whole.get("checks", []):
            used = {name: layout for name, layout in named.items() if re.search(rf"\b{re.escape(name)}\b", str(check))}
            found["spec"].append(json.dumps({"source": "x", "layouts": used, "checks": [check]}))
        for value in (*whole.get("layouts", {}).values(), *_asked(whole)):
            shown = value if isinstance(value, str) else json.dumps(value)
            if len(shown) < 3000:
                found[_language(shown)].append(shown)
        found["where"] += [check["where"] for check in whole.get("checks", []) if "where" in check]
    for path in sorted((SPECS / "search").glob("*.yaml")):
        text = path.read_text()
        if "trace:" not in text:
            kind = "candidates" if "kernel:" in text else "search"
            found[kind].append("\n".join(line for line in text.split("\n") if "body:" not in line))
    found["where"] += CONDITIONS
    found["sharding"] += SHARDINGS
    found |= {"program": [PROGRAM], "rules": [RULES], "lock": [LOCK], "stated": [STATED]}
    return {kind: tuple(texts) for kind, texts in found.items()}


def _asked(whole: dict[str, Any]) -> Iterator[Any]:
    named = whole.get("layouts", {})
    for check in whole.get("checks", []):
        for key, value in check.items():
            if key in PROPERTIES or key in ("same_map", "bitcast", "refines", "invalid"):
                for each in value if isinstance(value, list) else [value]:
                    if not (isinstance(each, str) and each in named):
                        yield each


def _language(text: str) -> str:
    if text.startswith("{"):
        return "mapping"
    for mark, name in (
        (" strides", "strided"),
        ("->", "map"),
        ("S[", "axe"),
        ("devices=", "sharding"),
        ("bases", "linear"),
    ):
        if mark in text:
            return name
    return "cute" if re.match(r"[\w\s<>,]*\(?[\d(].*\):", text) and "[" not in text else "xla"


LANGUAGES = ("xla", "axe", "sharding", "cute", "strided", "map", "mapping")


def make(seed: int, number: int) -> Input:
    """The input of this number: the same for the same seed."""
    chance = random.Random(f"{seed}:{number}")
    found = seeds()
    kinds: dict[str, Callable[[random.Random], Input]] = {
        **{name: lambda c, name=name: _question(c, name) for name in LANGUAGES},
        "where": _where,
        "index": _index,
        "spec": _spec,
        "search": _search,
        "hlo": _program,
        "gate": _gate,
        "rules": _rules,
        "lock": _locked,
        "bytes": _bytes,
    }
    name = chance.choice([name for name in kinds if name not in LANGUAGES or found.get(name)])
    return kinds[name](chance)


def _broken(chance: random.Random, kind: str) -> str:
    texts = seeds()[kind]
    return broken(chance, chance.choice(texts), texts)


def _question(chance: random.Random, kind: str) -> Input:
    text = _broken(chance, kind)
    index = ",".join(str(chance.choice(NUMBERS)) for _ in range(chance.choice((1, 2, 2, 3))))
    line = chance.choice(
        (
            ["ask", chance.choice(PROPERTIES), text],
            ["ask", chance.choice(PROPERTIES), text],
            ["ask", "same_map", text, _broken(chance, kind)],
            ["locate", text, index],
            ["show", text],
            ["convert", text, "--to", chance.choice(LANGUAGES[:-1])],
        )
    )
    return Input(kind, line, {})


def _where(chance: random.Random) -> Input:
    layout = chance.choice(("f32[N,M]{1,0}", "f32[N,M] strides (M,1)", "S[(N,M):(M,1)]", "f32[N,8]{0,1}"))
    return Input("where", ["ask", chance.choice(PROPERTIES[:5]), layout, "--where", _broken(chance, "where")], {})


def _index(chance: random.Random) -> Input:
    index = broken(chance, chance.choice(("2,3", "(1, 2, 3)", "0", "[1]")), ("1,2", "3"))
    return Input("index", ["locate", chance.choice(("f32[3,5]{1,0}", "S[(8,4):(4,1)]")), index], {})


def _spec(chance: random.Random) -> Input:
    return Input("spec", ["check", "a.yaml"], {"a.yaml": _bytes_of(_broken(chance, "spec"))})


def _search(chance: random.Random) -> Input:
    if chance.random() < 0.5:
        return Input("search", ["search", "a.yaml"], {"a.yaml": _bytes_of(_broken(chance, "search"))})
    # a whole search of tilings takes its time with the best of inputs; candidates are judged one by one
    texts = {"a.yaml": seeds()["candidates"][0], "rows.json": ROWS}
    name = chance.choice(sorted(texts))
    texts[name] = _broken(chance, "candidates") if name == "a.yaml" else broken(chance, ROWS, (ROWS,))
    return Input("search", ["search", "a.yaml", "--prune", "rows.json"], {n: _bytes_of(t) for n, t in texts.items()})


def _program(chance: random.Random) -> Input:
    data = _bytes_of(_broken(chance, "program"))
    if chance.random() < 0.2:
        data = bytearray(gzip.compress(data))
        data[chance.randrange(len(data))] = chance.randrange(256)
    return Input("hlo", [chance.choice(("hlo", "hlo", "kernels")), "a.txt"], {"a.txt": bytes(data)})


def _gate(chance: random.Random) -> Input:
    kind, end = chance.choice((("program", "txt"), ("stated", "yaml")))
    sides = [seeds()[kind][0], _broken(chance, kind)]
    chance.shuffle(sides)
    files = {f"{side}.{end}": _bytes_of(text) for side, text in zip(("old", "new"), sides, strict=True)}
    return Input("gate", ["gate", f"old.{end}", f"new.{end}"], files)


def _rules(chance: random.Random) -> Input:
    files = {"old.yaml": STATED.encode(), "new.yaml": STATED.replace("5,1", "4,1").encode()}
    return Input(
        "rules", ["gate", "old.yaml", "new.yaml"], {**files, "pyproject.toml": _bytes_of(_broken(chance, "rules"))}
    )


def _locked(chance: random.Random) -> Input:
    files = {"a.yaml": STATED.encode(), "layoutproof.lock": _bytes_of(_broken(chance, "lock"))}
    return Input("lock", ["gate"], files)


def _bytes(chance: random.Random) -> Input:
    data = chance.randbytes(chance.choice((0, 1, 30, 3000)))
    line = chance.choice(
        (["check", "a.yaml"], ["search", "a.yaml"], ["hlo", "a.txt"], ["gate", "a.txt", "a.yaml"], ["gate"])
    )
    return Input("bytes", line, dict.fromkeys(("a.yaml", "a.txt", "layoutproof.lock", "pyproject.toml"), data))


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def run(given: Input) -> tuple[int, str]:
    """The exit code and all that was printed, in a folder of its own."""
    from layoutproof.cli import main as cli

    with tempfile.TemporaryDirectory() as folder:
        for name, data in given.files.items():
            Path(folder, name).write_bytes(data)
        out = io.StringIO()
        before = os.getcwd()
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                code = cli.run(given.arguments)
        finally:
            os.chdir(before)
    return code, out.getvalue()


def judged(seed: int, number: int) -> Outcome:
    """What came of one input."""
    given = make(seed, number)
    before, start = _peak(), time.process_time()
    try:
        code, text = run(given)
        trouble = "" if code in (0, 1, 2, 3) else f"exit code {code}"
        at = text.find(DEFECT)
        trouble = trouble or (text[at : at + 200].replace("\n", " ") if at >= 0 else "")
        trouble = trouble or ("nothing printed" if code and not text.strip() else "")
    except BaseException as error:
        code, trouble = -1, f"{type(error).__name__}: {str(error)[:150]}"
    seconds, peak = time.process_time() - start, _peak()
    if not trouble and peak - before > MEGABYTES:
        trouble = f"{peak - before:.0f} MB more"
    return Outcome(number, given.kind, code, seconds, peak - before, peak, trouble)


def _peak() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def work(seed: int, numbers: range, pipe: Connection) -> None:
    """Judges some inputs, one after the other; says which one it begins."""
    os.environ["LAYOUTPROOF_CACHE"] = "off"
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seeds()
    with contextlib.suppress(BrokenPipeError):
        for number in numbers:
            pipe.send(number)
            # nobody handles this signal: it ends native code too
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            pipe.send(judged(seed, number))
        pipe.send(None)


class Worker:
    """One process and what it is to do. `number` is what it is at, since `since`."""

    def __init__(self, seed: int, numbers: range) -> None:
        self.seed, self.numbers, self.number = seed, numbers, numbers.start
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(
            target=work, args=(seed, numbers, other), daemon=True
        )
        self.process.start()
        other.close()
        self.since = time.monotonic()

    def rest(self) -> range:
        """What is to be done after the input that it is at."""
        return range(self.number + self.numbers.step, self.numbers.stop, self.numbers.step)


def soak(seed: int, inputs: int, jobs: int) -> Iterator[Outcome]:
    """The outcomes of all inputs, in no order; a process that waits or dies is replaced, and that is an outcome too."""
    workers = [Worker(seed, range(start, inputs, jobs)) for start in range(min(jobs, inputs))]
    while workers:
        ready = wait([w.pipe for w in workers], timeout=1)
        for worker in list(workers):
            trouble, done = "", False
            if worker.pipe in ready:
                try:
                    said = worker.pipe.recv()
                    done = said is None
                    if isinstance(said, int):
                        worker.number, worker.since = said, time.monotonic()
                    elif said is not None:
                        yield said
                except EOFError:
                    worker.process.join()
                    code = worker.process.exitcode or 0
                    trouble = f"died of {signal.Signals(-code).name if code < 0 else code}"
                    trouble = f"more than {SECONDS:.0f} s" if code == -signal.SIGPROF else trouble
            elif time.monotonic() - worker.since > WAIT:
                trouble = f"waited {WAIT:.0f} s"
            if trouble:
                worker.process.kill()
                yield Outcome(worker.number, make(seed, worker.number).kind, -1, SECONDS, 0.0, 0.0, trouble)
            if trouble or done:
                worker.process.join()
                workers.remove(worker)
                if trouble and worker.rest():
                    workers.append(Worker(seed, worker.rest()))


def main() -> int:
    """The table, and whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, help="one input, by its number")
    options = parser.parse_args()
    if options.only is not None:
        given = make(options.seed, options.only)
        print(given.arguments, {name: data[:2000] for name, data in given.files.items()})
        print(*run(given), sep="\n")
        return 0
    start, found = time.perf_counter(), list[Outcome]()
    for outcome in soak(options.seed, options.inputs, options.jobs):
        found.append(outcome)
        if outcome.trouble:
            print(f"input {outcome.number}, {outcome.kind}: {outcome.trouble}", flush=True)
    print("kind       inputs  exit 0       1       2       3  mean ms   slowest  most MB  wrong")
    for kind in sorted({o.kind for o in found}):
        of = [o for o in found if o.kind == kind]
        codes = Counter(o.code for o in of)
        counts = " ".join(f"{codes[code]:>7}" for code in range(4))
        slowest, most = max(of, key=lambda o: o.seconds), max(o.grown for o in of)
        wrong = sum(bool(o.trouble) for o in of)
        mean = 1e3 * sum(o.seconds for o in of) / len(of)
        times = f"{mean:>8.1f} {slowest.seconds:>7.2f} s {most:>8.1f}"
        print(f"{kind:<9} {len(of):>7} {counts} {times} {wrong:>6}")
    wrong = sum(bool(o.trouble) for o in found)
    peak, slowest = max(o.peak for o in found), max(found, key=lambda o: o.seconds)
    took = time.perf_counter() - start
    print(
        f"{len(found)} inputs, seed {options.seed}, in {took:.0f} s: slowest {slowest.seconds:.2f} s (input "
        f"{slowest.number}), peak {peak:.0f} MB, {wrong} wrong"
    )
    return 1 if wrong or len(found) != options.inputs else 0


if __name__ == "__main__":
    sys.exit(main())
