"""How each reader of a stranger's text takes one that doubles, up to 50 MB or to the reader's own bound.

python benchmarks/readers.py [--whole] [MEGABYTES] [READER..]    steps a character, and what whole texts take

A text is a beginning that the reader knows, with something in it again and again: line ends, digits, quotes and
brackets that nobody closes. The one that takes most steps at `SHORT` characters is doubled. Steps are counted as
`tests/steps.py` does, what C does over a text among them: they are the same on every machine, and counting takes many
times as long as reading. So they are counted while a text takes less than SECONDS of CPU, and from there on the CPU of
a process that does not count is measured, up to the end; so are floods of line ends, of one long line, of brackets and
of arrows, of which a packed file is one more reader. A reader is linear where neither rises; one that does ends with
RISES, and the exit code is 1. A reader with a bound is asked to it and beyond. `--whole` counts the steps of the whole
text too, however long that takes. `tests/test_readers.py` counts over all of these texts, each at two sizes.
"""

from __future__ import annotations

import gzip
import importlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SECONDS = 2.0
"""Of one text whose steps are counted: it is not doubled again."""
PATIENCE = 1800.0
"""Seconds of one reader's whole texts."""
SHORT = 1 << 10
"""Characters of the texts of which the worst is taken."""
FIRST = 1 << 16
"""Characters of it at first."""
MOST_RISE = 1.5
"""Of the steps a character, from the first size to the last; of the CPU too, where it can be told from nothing."""
PART = 8
"""Of the length of the worst text, one is as long that is a flood."""
FLOODS = ("\n", "a ", "a", "(", "[", "()->", "{")
"""What a text is flooded with, besides what is worst for its reader."""
HOLE = "@@"
"""In the beginning of a text, where something comes again and again."""
NUMBER = "@n"
"""In what comes again and again, its number: names are there once."""
AGAIN = (
    *("\n", " ", "a", "7", "(", "[", "{", "}", ")", ",", '"', "'", "\\", "%", "/*", "//", "#", "- ", ": ", "\t", "*"),
    *("()->", "1,", "a,", "(1,", "f32[", "a=", "a ", ") -> ", '"a" ', "{}", "a(", "\n\n  a", "a\n", "a: 1\n", "{a} "),
)
"""What comes again and again in every reader's texts."""


class Reader(NamedTuple):
    """Something that reads text.

    read: all of it.  begins: texts with a hole.  again: comes there besides `AGAIN`.  bound: the constant that says how
    long a text may be, "" for a text that is a part of another one.
    """

    read: Callable[[str], object]
    begins: tuple[str, ...]
    again: tuple[str, ...] = ()
    bound: str = ""

    def most(self) -> int:
        """Characters that it reads at most; 0 for no bound of its own."""
        module, _, name = self.bound.rpartition(".")
        return int(getattr(importlib.import_module(f"layoutproof.{module}"), name)) if module else 0


class Text(NamedTuple):
    """One text that can be of any length."""

    reader: str
    begin: str
    again: str

    def of(self, length: int) -> str:
        """The text with about so many characters, and no more."""
        times = max(0, length - len(self.begin)) // len(self.again)
        return self.begin.replace(HOLE, "".join(self.again.replace(NUMBER, str(n)) for n in range(times)))


def _layout(language: str = "") -> Callable[[str], object]:
    def read(text: str) -> object:
        from layoutproof.registry.read import read_layout

        return read_layout({language: text} if language else text)

    return read


def _expression(name: str) -> Callable[[str], object]:
    def read(text: str) -> object:
        from layoutproof.core import expression

        return getattr(expression, name)(text)

    return read


def _in_file(name: str, read: Callable[[Path], object], pack: bool = False) -> Callable[[str], object]:
    def of(text: str) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            data = text.encode("utf-8", "surrogatepass")
            path.write_bytes(gzip.compress(data, 1) if pack else data)
            return read(path)

    return of


def _hlo(path: Path) -> object:
    from layoutproof.hlotext.lines import read_hlo

    for module in read_hlo(path):
        for error in module.errors:
            raise error
    return None


def _program(text: str) -> object:
    from layoutproof.gating.program import read

    return read(text.encode("utf-8", "surrogatepass"), "a.txt")


def _spec(text: str) -> object:
    from layoutproof.specs.positions import read_yaml
    from layoutproof.specs.spec import read_spec

    return read_spec(read_yaml(text, "a.yaml"), "a.yaml")


def _search(text: str) -> object:
    from layoutproof.searching.read import read_problem
    from layoutproof.specs.positions import read_yaml

    return read_problem(read_yaml(text, "a.yaml"))


def _lock(text: str) -> object:
    from layoutproof.gating.lock import read_lock

    return read_lock(text.encode("utf-8", "surrogatepass"), "layoutproof.lock", "")


def _records(path: Path) -> object:
    from layoutproof.pallas.records import read_records

    return read_records(path)


def _record(text: str) -> object:
    from layoutproof.programs.record import read_record

    return read_record(json.loads(text), "a.json")


def _message(text: str) -> object:
    from layoutproof.messages.read import read

    return read(text)


def _rows(path: Path) -> object:
    from layoutproof.searching.prune import read_rows

    return read_rows(path)


def _baseline(path: Path) -> object:
    from layoutproof.pallas.accepted import read_baseline

    return read_baseline(path)


def _settings(text: str) -> object:
    from layoutproof.core.files import toml_of

    return toml_of(text, "pyproject.toml")


def _mesh(text: str) -> object:
    from layoutproof.programs.shardings import read_mesh

    return read_mesh(text)


def _specs(text: str) -> object:
    from layoutproof.programs.shardings import read_specs

    return read_specs(text, {"x": 2, "y": 4})


def _product(text: str) -> object:
    from layoutproof.searching.shardings import read_product

    return read_product(text)


def _fusion(text: str) -> object:
    from layoutproof.core.fusion import read_fusion

    return read_fusion(text)


def _groups(text: str) -> object:
    from layoutproof.hlo.groups import read_groups

    return read_groups(text, 8)


def _vector(text: str) -> object:
    from layoutproof.mosaic.vectors import read_vector

    return read_vector(text, "8x128xf32")


_MODULE = "HloModule m, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}\n"
_ENTRY = "ENTRY %e (x: f32[8]) -> f32[8] {\n  ROOT %x = f32[8]{0} parameter(0)"
_DUMPS = (
    *("@@", "HloModule @@", "HloModule m, @@", f"{_MODULE}@@", f"{_MODULE}ENTRY e (@@", f"{_MODULE}@@ {{"),
    f"{_MODULE}{_ENTRY}@@\n}}\n",
    f"{_MODULE}{_ENTRY}, metadata={{@@}}\n}}\n",
    f"{_MODULE}ENTRY %e {{\n  %c = f32[8]{{0}} constant({{@@}})\n}}\n",
    "HloModule m\nENTRY e {\n @@ }\n",
    "HloModule m\n@@ ENTRY e { ROOT x = f32[8] parameter(0) }\n",
    "BufferAssignment:\n@@",
)
_BODIES = (
    *("c@n { x = f32[8] parameter(0) } ", "c@n { x = f32[8] parameter(0) }, a={b} "),
    *("c@n (x: f32[8]) -> f32[8] { x = f32[8] parameter(0) } ", "}\nc@n {\n", "(x: f32[8]{0}) ", "c (x: f32[8])\n"),
    *("x@n = f32[8] add(x, x) ", "x@n = f32[8] add(x, x)\n", "x = add(x, "),
    *("HloModule m\n", "HloModule m {} ", "f32[8]{0}, ", 'a@n="b", ', "a@n={b}, ", "/*index=5*/", "{0}: (0, {}), "),
    *("allocation 0: size 8, a\n", " value: <1 a @0> (size=8,offset=0): f32[2]\n", '@n "a"\n', "FileNames\n"),
)
_MESSAGES = (
    *("@@", "error: @@", "Ran out of memory in memory space hbm. @@", "Mosaic failed to compile TPU kernel: @@"),
    *("ValueError: One of pjit arguments was given the sharding of NamedSharding(@@", "f32[8]{0} = @@"),
)

READERS = {
    "XLA": Reader(
        _layout("xla"),
        ("@@", "f32[@@", "f32[8]{@@", "f32[8,8]{1,0:T(@@"),
        ("(8,128)", "T(8)", "8,", "<="),
        bound="core.bounds.MAX_CHARACTERS",
    ),
    "sharding": Reader(
        _layout("sharding"),
        ("@@", "{devices=[@@", "{@@", "P(@@", "f32[8] sharding={@@", "[{'x'@@", "@mesh<['x'=@@"),
        ("{replicated}, ", "'x',", "2,1", "<=[", "T(1,0)", "last_tile_dims={", "('x',"),
        bound="core.bounds.MAX_CHARACTERS",
    ),
    "Axe": Reader(
        _layout("axe"),
        ("@@", "S[@@", "S[(@@", "S[(8,8):(@@", "S[8:1] @@"),
        ("8:1,", "+ R[2:1]", "1@x,", "(8,"),
        bound="layouts.axe.text.LONGEST",
    ),
    "CuTe": Reader(
        _layout("cute"),
        ("@@", "(8,@@", "((8,@@", "(8,4):(@@", "S<@@"),
        ("8,", "(8,", "):(", "_8,"),
        bound="layouts.cute.text.LONGEST",
    ),
    "map": Reader(
        _layout("map"),
        ("@@", "(i < 4@@", "(i < 4) -> (@@", "(i < 4) -> (i@@"),
        ("+i", "*2", "i,", "i//2+", "((", "min(", "-", "i<4,"),
        bound="core.bounds.MAX_CHARACTERS",
    ),
    "strided": Reader(
        _layout("strided"),
        ("@@", "f32[4] strides (@@", "f32[@@", "f32[4] @@"),
        ("1,", "N*", "(1,"),
        bound="layouts.strided.LONGEST",
    ),
    "kernel": Reader(
        _layout("kernel"),
        ("@@", "grid (2)\nin x: f32[16] block (8) index (i) -> (i)\n@@", "grid (@@", "grid (2)\n@@"),
        ("in x: f32[16] block (8)\n", "N=4;", "; ", "table t: s32[4]\n"),
        bound="core.bounds.MAX_CHARACTERS",
    ),
    "layout of any language": Reader(
        _layout(), ("@@", "f32@@", "[(@@"), ("8:1,", ":", "->"), bound="core.bounds.MAX_CHARACTERS"
    ),
    "size": Reader(
        _expression("parse_size"),
        ("@@", "N@@", "cdiv(@@"),
        ("+N", "*N", "N,", "cdiv(", "-", "//2"),
        bound="core.expression.LONGEST",
    ),
    "expression": Reader(
        _expression("parse_expression"),
        ("@@", "i@@", "min(@@"),
        ("+i", "*2", "i,", "min(", "-", "//2"),
        bound="core.expression.LONGEST",
    ),
    "condition": Reader(
        _expression("parse_condition"),
        ("@@", "N % 8 == 0@@", "N@@"),
        (" and N > 1", " or N", "not ", " < N"),
        bound="core.expression.LONGEST",
    ),
    "HLO": Reader(_in_file("a.txt", _hlo), _DUMPS, _BODIES, bound="core.files.MAX_TEXT"),
    "HLO, packed": Reader(_in_file("a.txt.gz", _hlo, True), ("@@", f"{_MODULE}@@"), (), bound="core.files.MAX_TEXT"),
    "HLO of two states": Reader(
        _program, (f"{_MODULE}{_ENTRY}\n@@}}\n", "HloModule m\n@@"), _BODIES, bound="gating.states.MAX_DUMP"
    ),
    "spec": Reader(
        _spec,
        (
            "@@",
            "layouts:\n  a: @@",
            "layouts:\n@@",
            "checks:\n@@",
            "checks:\n  - injective: @@",
            "checks: [@@",
            "a: '@@",
            "a: |\n@@",
        ),
        (
            "  a@n: f32[8]\n",
            "- injective: f32[8]\n",
            "&a ",
            "*a ",
            "&a@n ",
            "- - ",
            "? ",
            "[a, ",
            "{a: ",
            "!!a ",
            "---\n",
            " a: &a [*a]\n",
        ),
        bound="core.files.MAX_YAML",
    ),
    "search": Reader(
        _search,
        ("@@", "search: @@", "search: a\ntune:\n@@", "search: a\ntarget: v5e\nkernel:\n  grid: [@@", "sizes: {@@"),
        ("  a@n: [8]\n", "'cdiv(M, b)', ", "a@n: 8, ", "- {name: x, "),
        bound="core.files.MAX_YAML",
    ),
    "lock": Reader(
        _lock,
        ("@@", '{"version": 2, "@@', '{"version": 2, "files": {@@', "[@@"),
        ('"a": {', '{"a":', "[1,", '"a@n": 1,'),
        bound="gating.lock_head.MAX_LOCK",
    ),
    "records of kernels": Reader(
        _in_file("a.jsonl", _records),
        ("@@", "{@@", '{"version": @@'),
        ("{}\n", '{"a":', "[", '"a@n": 1,'),
        bound="core.files.MAX_TEXT",
    ),
    "record of a program": Reader(
        _record,
        ("@@", '{"version": 2, "@@": 1}', '{"a": [@@0]}', "[@@0]"),
        ('"a", ', "0,", "{},"),
        bound="core.files.MAX_TEXT",
    ),
    "message": Reader(
        _message,
        _MESSAGES,
        (
            "1.",
            "a1",
            "aError",
            "tensor<",
            "1x",
            "vector<f32,",
            "bf16[8,128] ",
            "P('x',",
            "allocation: ",
            "_",
            "bf16[1]{0}\n",
        ),
        bound="messages.read.MOST_BYTES",
    ),
    "candidates": Reader(
        _in_file("a.json", _rows),
        ("@@", "[@@", '[{"a": @@', '[@@{"a": 1}]'),
        ('{"a": 1},', "[", '{"a":'),
        bound="searching.prune.MAX_ROWS",
    ),
    "baseline": Reader(
        _in_file("a.json", _baseline),
        ("@@", '{"version": 2, "accepted": {@@', "[@@"),
        ('"a@n": 1,', "[", '{"a":'),
        bound="pallas.accepted.MOST_BYTES",
    ),
    "settings": Reader(
        _settings,
        ("@@", "[tool.layoutproof]\n@@", "[tool.layoutproof.gate]\n@@"),
        ("a@n = 1\n", "a = [", "[[a]]\n", '"""', "[a@n]\n", "a.", "'a b' . "),
        bound="core.files.MAX_CONFIG",
    ),
    "mesh": Reader(_mesh, ("@@", "x=2@@"), (",x=2", "=", "x="), bound="core.bounds.MAX_CHARACTERS"),
    "partition specs": Reader(
        _specs, ("@@", "P(@@", "[P('x'), @@"), ("'x',", "P('x'),", "(", "None,"), bound="programs.shardings.LONGEST"
    ),
    "product of a mesh": Reader(
        _product, ("@@", "bs,@@"), ("->", "b,", "bs,sd->bd"), bound="core.bounds.MAX_CHARACTERS"
    ),
    "operands put together": Reader(_fusion, ("@@",), ("fusion(", "a,"), bound="core.expression.LONGEST"),
    "groups of devices": Reader(
        _groups, ("@@", "{{@@", "[2,4]<=[@@"), ("0,", "{0},", "},{"), bound="core.bounds.MAX_CHARACTERS"
    ),
    "vector layout": Reader(_vector, ("@@", "16,{@@"), ("0,", "(8,128)", "*,"), bound="core.bounds.MAX_CHARACTERS"),
}


def texts(of: Reader, name: str) -> Iterator[Text]:
    """All of a reader."""
    for begin in of.begins:
        for again in (*AGAIN, *of.again):
            yield Text(name, begin, again)


def said(read: Callable[[str], object], text: str) -> str:
    """What a reader says of a text: "read", or its error."""
    from layoutproof.core.errors import LayoutError

    try:
        read(text)
    except LayoutError as error:
        return error.problem
    except (ValueError, RecursionError) as error:  # of JSON, which the caller turns into an error of ours
        return f"no JSON: {error}"
    return "read"


def _counted(read: Callable[[str], object], text: str) -> tuple[float, float, str]:
    """(steps a character, seconds, what the reader said)."""
    from tests import steps

    before, start = steps.steps, time.process_time()
    words = said(read, text)
    return (steps.steps - before) / len(text), time.process_time() - start, words


def _sizes(of: Reader, most: int) -> list[int]:
    """How long its text is, doubling up to its bound, or to `most`."""
    last = min(most, of.most() or most)
    sizes = [last]
    while sizes[0] > FIRST or (len(sizes) < 4 and sizes[0] > SHORT):
        sizes.insert(0, sizes[0] // 2)
    return sizes


def count(name: str, most: int, whole: bool = False) -> dict[str, object]:
    """The text of a reader that takes most steps, doubled. whole: up to its end, whatever lies between."""
    from tests import steps

    steps.install()
    of = READERS[name]
    for text in texts(of, name):
        # what is imported, or kept, once
        said(of.read, text.of(100))
    taken = {text: _counted(of.read, text.of(SHORT))[0] for text in texts(of, name)}
    worst = max(taken, key=lambda text: taken[text])
    floods = [max((t for t in taken if t.again == again), key=lambda text: taken[text]) for again in FLOODS]
    lengths, found, words = list[int](), list[float](), ""
    sizes = _sizes(of, most)
    seconds = 0.0
    for length in sizes:
        if seconds <= SECONDS or (whole and length == sizes[-1]):
            some, seconds, words = _counted(of.read, worst.of(length))
            lengths.append(length)
            found.append(some)
    return {"worst": worst, "floods": floods, "lengths": lengths, "steps": found, "words": words, "bound": of.most()}


def take(name: str, asked: list[tuple[str, str, int]]) -> list[dict[str, object]]:
    """What whole texts take, (begin, again, length) each, one after the other: seconds of CPU, MiB that the process had
    to get besides the text, words."""
    of, found = READERS[name], []
    for begin, again, length in asked:
        made = Text(name, begin, again)
        said(of.read, made.of(100))
        text = made.of(length)
        held, start = _peak(), time.process_time()
        words = said(of.read, text)
        found.append({"seconds": time.process_time() - start, "mib": _peak() - held, "words": words})
    return found


def _peak() -> float:
    import resource

    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kib / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def _in_process(*given: object, seconds: float | None = PATIENCE) -> Any:
    """What `count` or `take` gives, in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--", json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout)


def _row(name: str, most: int, counted: bool = False) -> tuple[str, bool]:
    """The steps of a reader's worst text as it doubles, what whole texts take, and whether either rises."""
    found = _in_process("count", name, most, counted, seconds=None if counted else PATIENCE)
    lengths, steps, bound = found["lengths"], found["steps"], found["bound"]
    last = min(most, bound or most)
    begin, again = found["worst"][1:]
    asked = [(begin, again, last // 2), (begin, again, last)]
    asked += [(*flood[1:], last // PART) for flood in found["floods"] if flood != found["worst"]]
    beyond = [(begin, again, bound + len(begin) + 2 * len(again))] if 0 < bound <= most else []
    half, whole, *others = _in_process("take", name, asked + beyond)
    words = others.pop()["words"] if beyond else ""
    flood = max(zip(asked[2:], others, strict=True), key=lambda pair: pair[1]["seconds"])
    mib = max(one["mib"] for one in (half, whole, *others))
    rises = max(steps) > MOST_RISE * steps[0] + 1
    rises = rises or (whole["seconds"] > 1 and whole["seconds"] > 2 * MOST_RISE * half["seconds"])
    columns = (
        *(name, f"{last / 1e6:.3g}", f"{lengths[-1] / 1e6:.2g}", f"{steps[0]:.1f} and {steps[-1]:.1f}"),
        *(f"{half['seconds']:.2f} and {whole['seconds']:.2f}", f"{flood[1]['seconds']:.2f} of {flood[0][1]!r}"),
        *(f"{mib:.0f}", f"`{_shown(begin)}` with {again!r}", _shown(words or whole["words"])),
    )
    return f"| {' | '.join(columns)} |{' RISES' if rises else ''}", rises


def _shown(text: str) -> str:
    flat = " ".join(text.split()).replace("|", "\\|")
    return flat if len(flat) <= 70 else f"{flat[:40]} .. {flat[-25:]}"


HEAD = (
    *("reader", "to, million characters", "counted to", "steps a character, first and last"),
    *(
        "CPU s, half and all",
        "most CPU s of a flood, an eighth",
        "MiB",
        "worst text",
        "what is said, beyond the bound where it has one",
    ),
)


def main(given: list[str]) -> int:
    """Prints the table."""
    if given[:1] == ["--"]:
        what, *rest = json.loads(given[1])
        print(json.dumps({"count": count, "take": take}[what](*rest)))
        return 0
    counted = given[:1] == ["--whole"]
    given = given[1:] if counted else given
    most = int(float(given[0]) * 1e6) if given else 50_000_000
    print(f"| {' | '.join(HEAD)} |")
    print(f"|{'---|' * len(HEAD)}", flush=True)
    rise = False
    for name in given[1:] or READERS:
        try:
            row, rises = _row(name, most, counted)
        except (subprocess.TimeoutExpired, RuntimeError) as error:
            # one that was not measured hides no other
            row, rises = f"| {name} | {_shown(str(error))} |", True
        rise = rise or rises
        print(row, flush=True)
    return int(rise)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
