"""How many steps each reader of a stranger's text takes as the text doubles, up to 50 MB or to the reader's own bound.

python benchmarks/readers.py [MEGABYTES] [READER..]    a row per reader: its worst text, steps a character at each size

A text is a beginning that the reader knows, with something in it again and again: line ends, digits, quotes and
brackets that nobody closes. The one that takes most steps at `SHORT` characters is doubled from `FIRST` on while it
takes less than SECONDS. Steps are counted as `tests/steps.py` does, what C does over a text among them: they are the
same on every machine. A reader is linear where a row does not rise; one that does by more than half ends with RISES,
and the exit code is 1. `tests/test_readers.py` counts over all of these texts, each at two sizes.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

SECONDS = 3.0
"""Of one text: it is not doubled again."""
SHORT = 1 << 10
"""Characters of the texts of which the worst is taken."""
FIRST = 1 << 16
"""Characters of it at first."""
MOST_RISE = 1.5
"""Of the steps a character, from the first size to the last."""
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
    """Something that reads text. read: all of it.  begins: texts with a hole.  again: comes there besides `AGAIN`."""

    read: Callable[[str], object]
    begins: tuple[str, ...]
    again: tuple[str, ...] = ()


class Text(NamedTuple):
    """One text that can be of any length."""

    reader: str
    begin: str
    again: str

    def of(self, length: int) -> str:
        """The text with about so many characters."""
        times = length // len(self.again)
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
    from layoutproof.changes.program import read

    return read(text.encode("utf-8", "surrogatepass"), "a.txt")


def _spec(text: str) -> object:
    from layoutproof.specs.positions import read_yaml
    from layoutproof.specs.spec import read_spec

    return read_spec(read_yaml(text, "a.yaml"), "a.yaml")


def _search(text: str) -> object:
    from layoutproof.specs.positions import read_yaml
    from layoutproof.tilings.read import read_problem

    return read_problem(read_yaml(text, "a.yaml"))


def _lock(text: str) -> object:
    from layoutproof.changes.lock import read_lock

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
    from layoutproof.tilings.prune import read_rows

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
    from layoutproof.tilings.shardings import read_product

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
    "XLA": Reader(_layout("xla"), ("@@", "f32[@@", "f32[8]{@@", "f32[8,8]{1,0:T(@@"), ("(8,128)", "T(8)", "8,", "<=")),
    "sharding": Reader(
        _layout("sharding"),
        ("@@", "{devices=[@@", "{@@", "P(@@", "f32[8] sharding={@@", "[{'x'@@", "@mesh<['x'=@@"),
        ("{replicated}, ", "'x',", "2,1", "<=[", "T(1,0)", "last_tile_dims={", "('x',"),
    ),
    "Axe": Reader(
        _layout("axe"), ("@@", "S[@@", "S[(@@", "S[(8,8):(@@", "S[8:1] @@"), ("8:1,", "+ R[2:1]", "1@x,", "(8,")
    ),
    "CuTe": Reader(_layout("cute"), ("@@", "(8,@@", "((8,@@", "(8,4):(@@", "S<@@"), ("8,", "(8,", "):(", "_8,")),
    "map": Reader(
        _layout("map"),
        ("@@", "(i < 4@@", "(i < 4) -> (@@", "(i < 4) -> (i@@"),
        ("+i", "*2", "i,", "i//2+", "((", "min(", "-", "i<4,"),
    ),
    "strided": Reader(_layout("strided"), ("@@", "f32[4] strides (@@", "f32[@@", "f32[4] @@"), ("1,", "N*", "(1,")),
    "kernel": Reader(
        _layout("kernel"),
        ("@@", "grid (2)\nin x: f32[16] block (8) index (i) -> (i)\n@@", "grid (@@", "grid (2)\n@@"),
        ("in x: f32[16] block (8)\n", "N=4;", "; ", "table t: s32[4]\n"),
    ),
    "layout of any language": Reader(_layout(), ("@@", "f32@@", "[(@@"), ("8:1,", ":", "->")),
    "size": Reader(_expression("parse_size"), ("@@", "N@@", "cdiv(@@"), ("+N", "*N", "N,", "cdiv(", "-", "//2")),
    "expression": Reader(
        _expression("parse_expression"), ("@@", "i@@", "min(@@"), ("+i", "*2", "i,", "min(", "-", "//2")
    ),
    "condition": Reader(
        _expression("parse_condition"), ("@@", "N % 8 == 0@@", "N@@"), (" and N > 1", " or N", "not ", " < N")
    ),
    "HLO": Reader(_in_file("a.txt", _hlo), _DUMPS, _BODIES),
    "HLO, packed": Reader(_in_file("a.txt.gz", _hlo, True), ("@@", f"{_MODULE}@@"), ()),
    "HLO of two states": Reader(_program, (f"{_MODULE}{_ENTRY}\n@@}}\n", "HloModule m\n@@"), _BODIES),
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
    ),
    "search": Reader(
        _search,
        ("@@", "search: @@", "search: a\ntune:\n@@", "search: a\ntarget: v5e\nkernel:\n  grid: [@@", "sizes: {@@"),
        ("  a@n: [8]\n", "'cdiv(M, b)', ", "a@n: 8, ", "- {name: x, "),
    ),
    "lock": Reader(
        _lock,
        ("@@", '{"version": 2, "@@', '{"version": 2, "files": {@@', "[@@"),
        ('"a": {', '{"a":', "[1,", '"a@n": 1,'),
    ),
    "records of kernels": Reader(
        _in_file("a.jsonl", _records), ("@@", "{@@", '{"version": @@'), ("{}\n", '{"a":', "[", '"a@n": 1,')
    ),
    "record of a program": Reader(
        _record, ("@@", '{"version": 2, "@@": 1}', '{"a": [@@0]}', "[@@0]"), ('"a", ', "0,", "{},")
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
    ),
    "candidates": Reader(
        _in_file("a.json", _rows), ("@@", "[@@", '[{"a": @@', '[@@{"a": 1}]'), ('{"a": 1},', "[", '{"a":')
    ),
    "baseline": Reader(
        _in_file("a.json", _baseline), ("@@", '{"version": 2, "accepted": {@@', "[@@"), ('"a@n": 1,', "[", '{"a":')
    ),
    "settings": Reader(
        _settings,
        ("@@", "[tool.layoutproof]\n@@", "[tool.layoutproof.gate]\n@@"),
        ("a@n = 1\n", "a = [", "[[a]]\n", '"""', "[a@n]\n", "a.", "'a b' . "),
    ),
    "mesh": Reader(_mesh, ("@@", "x=2@@"), (",x=2", "=", "x=")),
    "partition specs": Reader(_specs, ("@@", "P(@@", "[P('x'), @@"), ("'x',", "P('x'),", "(", "None,")),
    "product of a mesh": Reader(_product, ("@@", "bs,@@"), ("->", "b,", "bs,sd->bd")),
    "operands put together": Reader(_fusion, ("@@",), ("fusion(", "a,")),
    "groups of devices": Reader(_groups, ("@@", "{{@@", "[2,4]<=[@@"), ("0,", "{0},", "},{")),
    "vector layout": Reader(_vector, ("@@", "16,{@@"), ("0,", "(8,128)", "*,")),
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


def _row(name: str, most: int) -> tuple[str, bool]:
    """The text of a reader that takes most steps, doubled, and whether its steps a character rise."""
    of = READERS[name]
    for text in texts(of, name):
        # what is imported, or kept, once
        said(of.read, text.of(100))
    worst = max(texts(of, name), key=lambda text: _counted(of.read, text.of(SHORT))[0])
    length, found, seconds, words = FIRST, list[float](), 0.0, ""
    while length <= most and seconds < SECONDS:
        some, seconds, words = _counted(of.read, worst.of(length))
        found.append(some)
        length *= 2
    rises = max(found) > MOST_RISE * found[0] + 1
    # a text that is refused for its length takes fewer steps a character: the largest that was read counts
    row = f"| {name} | {length / 2e6:.1f} | {' '.join(f'{some:.1f}' for some in found)} "
    row += f"| `{_shown(worst.begin)}` with {worst.again!r} | {_shown(words)} |{' RISES' if rises else ''}"
    return row, rises


def _shown(text: str) -> str:
    flat = " ".join(text.split()).replace("|", "\\|")
    return flat if len(flat) <= 70 else f"{flat[:40]} .. {flat[-25:]}"


def main(given: list[str]) -> int:
    """Prints the table."""
    from tests import steps

    steps.install()
    most = int(float(given[0]) * 1e6) if given else 50_000_000
    print("| reader | MB at last | steps a character, from 64 KB on, doubling | worst text | what is said of it |")
    print("|---|---:|---|---|---|", flush=True)
    rise = False
    for name in given[1:] or READERS:
        row, rises = _row(name, most)
        rise = rise or rises
        print(row, flush=True)
    return int(rise)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
