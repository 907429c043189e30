"""Texts at random for every reader: of a language's grammar, then often broken. What is no layout is a LayoutError.

A text is drawn by the grammar (layouts of each language, expressions) or taken from the repository's own files, and
half of the time its numbers are exchanged or it is cut, repeated, nested, spliced or salted. Reading must end, within
SECONDS and MEGABYTES, with a value or with a LayoutError; what was read is printed, and read again it is the same.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import layoutproof as lp
from benchmarks.bad_inputs import broken, seeds
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.files import read_json
from layoutproof.core.result import Verdict
from layoutproof.core.size import symbol
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Block, Kernel, Operand, Table, Unmodelled
from layoutproof.kernel.table_assumptions import with_assumptions
from layoutproof.pallas.accepted import accepted, read_baseline
from layoutproof.pallas.findings import Judged
from layoutproof.pallas.judge import judge
from layoutproof.pallas.records import read_records
from tests.peak import peak
from tests.questions.questions_at_random import LANGUAGES, question

SECONDS = 5.0
"""Longest time that one text may take a core; most take less than a millisecond."""
MEGABYTES = 400
"""Most that one text may add to the peak memory of the process."""

N = symbol("N")
NAMES = ("i", "j", "N", "M")
FORMS = (
    *("{a} + {b}", "{a} - {b}", "{a} * {b}", "({a}) // {b}", "({a}) % {b}", "-({a})", "({a}) ^ ({b})"),
    *("min({a}, {b})", "max({a}, {b})", "select({a} < {b}, {b}, {a})", "cdiv({a}, {b})"),
    *("({a}) << 3", "({a}) >> 2", "({a}) & 7"),
)
KNOWN = ("xla", "axe", "sharding", "cute", "strided", "map", "mapping")
"""Kinds of layouts in the repository's spec files."""


def expression(rng: random.Random, depth: int = 3) -> str:
    """An expression by the grammar: arithmetic, min, max, select, cdiv, shifts, masks."""
    if depth == 0 or rng.random() < 0.25:
        return rng.choice((*NAMES, *map(str, (0, 1, 2, 7, 8, 128, 2**31, 10**19))))
    a, b = expression(rng, depth - 1), expression(rng, depth - 1)
    form = rng.choice(FORMS)
    return form.format(a=a, b=b)


def condition(rng: random.Random) -> str:
    parts = [f"{expression(rng, 2)} {rng.choice(('<', '<=', '==', '!=', '>', '>='))} {expression(rng, 1)}"]
    parts += [rng.choice((" and ", " or ", " and not ")) + condition(rng) for _ in range(rng.random() < 0.3)]
    return "".join(parts)


def layout(rng: random.Random) -> tuple[str, str]:
    """A text or JSON of one of the languages, with the language's name."""
    drawn = question(rng).layouts[0]
    return drawn.language, drawn.text if isinstance(drawn.text, str) else json.dumps(drawn.text)


def read_layout(text: str) -> None:
    from layoutproof.registry.read import map_of
    from layoutproof.registry.read import read_layout as read

    value: Any = text
    if text.startswith("{"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
    found = read(value)
    if isinstance(value, str):
        again = str(found)
        assert str(read(again)) == again, f"printed as {again}, which reads as {read(again)}"
    map_of(found)


def read_expression(text: str) -> None:
    from layoutproof.core.expression import parse_condition, parse_expression, parse_map, parse_size

    for parse in (parse_condition, parse_expression, parse_size, parse_map):
        try:
            parse(text if parse is not parse_map else f"(i, j) -> ({text}, 0)")
        except (LayoutError, Undecided):
            continue


def read_spec(text: str) -> None:
    from layoutproof.specs.positions import read_yaml
    from layoutproof.specs.spec import read_spec as read

    _, errors = read(read_yaml(text, "a.yaml"), "a.yaml")
    assert all(isinstance(error, LayoutError) for error in errors)


def read_claims(text: str) -> None:
    """A spec file with claims about programs: those that a dump or a record answers are judged, none is compiled."""
    from layoutproof.specs.check import run
    from layoutproof.specs.positions import read_yaml
    from layoutproof.specs.spec import read_spec as read

    dump, record = kept("step.txt", seeds()["program"][0]), kept("step.json", compiled())
    text = text.replace("step.txt", str(dump)).replace("step.json", str(record))
    checks, errors = read(read_yaml(text, "a.yaml"), "a.yaml")
    assert all(isinstance(error, LayoutError) for error in errors)
    for check in checks:
        if check.is_of_program and {"dump", "record"} & set(check.layouts[0]) and "function" not in check.layouts[0]:
            outcome = run(check)
            assert "bug in layoutproof" not in outcome.finding.reason, outcome.finding.reason


def read_compiled(text: str) -> None:
    """The record of a compiled program: claims about what is read of it are judged."""
    from layoutproof.programs.claims import judge as claimed
    from layoutproof.programs.record import read_record as read

    found = read(read_json(kept("step.json", text), 1 << 20), "step.json")
    for claim, options in CLAIMED:
        assert claimed(claim, found, options, "", "step").question == claim


@cache
def compiled() -> str:
    """The record of the program of `seeds`."""
    from layoutproof.programs.reading import record_of

    return record_of(seeds()["program"][0].splitlines(keepends=True), "step.txt").to_json()


def read_search(text: str) -> None:
    from layoutproof.searching.read import read_problem
    from layoutproof.specs.positions import read_yaml

    read_problem(read_yaml(text, "a.yaml"), "a.yaml")


def read_program(text: str) -> None:
    from layoutproof.hlotext.lines import read_hlo
    from layoutproof.pallas.from_mosaic.mosaic_calls import calls_in_module

    for module in read_hlo(text.splitlines(keepends=True), "a.txt"):
        list(calls_in_module(module, "a.txt"))


def read_mosaic(text: str) -> None:
    from layoutproof.pallas.from_mosaic.mosaic_config import config_of
    from layoutproof.pallas.from_mosaic.mosaic_module import calls_in

    for call in calls_in(text, "a.mlir"):
        config_of(call.config)


def read_where(text: str) -> None:
    """A condition as `ask --where` gets it, about a layout with the names N and M."""
    lp.ask("in_bounds", "f32[N,M] strides (M,1)", where=text, engine="digits")


def read_assumption(text: str) -> None:
    """What is assumed of tables as `kernels --assume` gets it, for a kernel whose blocks two tables choose."""
    tables = (Table("t", (4,)), Table("start", (4,)))
    index = (Term("read", Term("name", "t"), Term("name", "i")), Term("read", Term("name", "start"), Term("name", "i")))
    rows = Operand("x", "in", (N * 8, 1024), "f32", (Block("blocked", 8), Block("blocked", 128)), index)
    kernel = Kernel("k", (4,), ("i",), (rows,), tables=tables)
    assert all(f.reason or f.verdict is Verdict.PROVED for f in judge(with_assumptions(kernel, [text])))


def read_comment(text: str) -> None:
    """A line of code with a call, and the comments at it that accept what is unknown."""
    path = kept("call.py", text)
    line = max(1, len(path.read_text(errors="replace").splitlines()))
    call = Judged(Unmodelled("k", f"{path}:{line}", "it is not modelled"))
    found = accepted(call, {})
    assert found.verdict is Verdict.UNKNOWN
    assert all(finding.verdict is Verdict.UNKNOWN and finding.reason for finding in found.findings)


def read_accepted(text: str) -> None:
    read_baseline(kept("baseline.json", text))


def read_record(text: str) -> None:
    """A recorded call: what is read of its body is judged."""
    for call in read_records(kept("calls.jsonl", text)):
        if isinstance(call, Kernel):
            found = judge(call, names=["body_in_bounds", "outputs_stored", "undefined_values"])
            assert all(finding.reason or finding.verdict is Verdict.PROVED for finding in found)


def kept(name: str, text: str) -> Path:
    """A file with this text."""
    path = Path(_folder().name, name)
    path.write_bytes(text.encode(errors="surrogatepass"))
    return path


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="texts")


ASSUMED = (
    *("0 <= t < N", "t is monotone", "-1 < t[i] <= N - 1; 0 <= start < 8", "start is injective; t is onto"),
    *("0 <= start[i] <= cdiv(N, 8)", "0 <= t[] < 8", "t[i, j] is onto"),
)
COMMENTS = (
    "y = call(x)  # layoutproof: accept[kernel] the caller knows",
    "# layoutproof: accept[body_in_bounds, revisits] the tables are checked before\ny = call(x)",
    "# layoutproof: accept[outputs_stored]\n# and so on\ncall(",
)
BASELINE = """{"version": 2, "accepted": {"0123456789abcdef": "k body_in_bounds x: why", "f": ""}}"""
OPERAND: dict[str, Any] = {
    "dims": [8],
    "dtype": "f32",
    "block": [{"kind": "blocked", "size": 8}],
    "index": [{"term": ["%", "g0", 1]}],
}
WHOLE = {"list": [{"is": "NDIndexer", "indices": {"list": [{"is": "Slice", "start": 0, "size": 8, "stride": 1}]}}]}
RECORD: dict[str, Any] = {
    "record": 1,
    "jax": "0.10.2",
    "kernel": {
        "name": "copy",
        "grid": [2],
        "grid_names": ["g0"],
        "operands": [{"name": "x", "role": "in", **OPERAND}, {"name": "o", "role": "out", **OPERAND}],
    },
    "body": {
        "types": [["float32", "f", 4]],
        "avals": [[[8], 0, "vmem"], [[8], 0, ""]],
        "jaxprs": [
            {
                "in": [0, 0],
                "eqns": [
                    ["get", {"tree": {"tree": WHOLE}}, [0], [1], "a.py:1", 0],
                    ["mul", {}, [2, 2], [1], "a.py:2", 0],
                    ["swap", {"tree": {"tree": WHOLE}}, [1, 3], [1], "a.py:3", 0],
                ],
                "out": [],
            }
        ],
    },
}
"""A recorded copy, written by hand; `tests/pallas/test_records.py` has those that JAX writes."""

CLAIMED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("peak_memory", {"at_most": "12MiB"}),
    ("copies", {"at_most": "0 bytes", "entry_at_most": "1KiB"}),
    ("collectives", {"axes": ["data"], "at_most": "4KiB"}),
    ("program_padding", {"at_most": "1%"}),
)
PROGRAMS = """programs:
  step: {dump: step.txt, target: v5e, mesh: {data: 2, model: 2}}
  kept: {record: step.json}
  made: {function: "model:step", args: ["{'w': 'bf16[8,1024]'}", "bf16[256,1024]"], target: v5e, topology: 2x2,
    mesh: {data: 2}, in: ["{'w': P(None, 'model')}", "P('data', None)"], donate: [1]}
checks:
  - {peak_memory: step, at_most: 12MiB}
  - {argument_memory: kept, at_most: 8KiB, expect: proved}
  - {collectives: step, axes: [data], kind: all-gather, at_most: 4KiB}
  - {copies: kept, at_most: 0 bytes, entry_at_most: 8192 bytes}
  - {donated: step, of: x}
  - {replicated: step, above: 1MiB}
  - {program_padding: step, at_most: 1%}
  - {layout: step, of: x, is: "f32[8,256]{1,0}"}
  - {vmem: kept, at_most: 16MiB}
  - {kernels: step}
  - {estimated_cycles: made, at_most: 1000}
"""

MOSAIC = """module @m {
  func.func public @main(%arg0: tensor<32x128xf32>) -> tensor<32x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%arg0) {backend_config = "{\\22custom_call_config\\22: {\\22body\\22: \
\\22TUzvUg==\\22, \\22needs_layout_passes\\22: true, \\22serialization_format\\22: 1}}", kernel_name = "copy", \
operand_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<32x128xf32>) -> tensor<32x128xf32>
    return %0 : tensor<32x128xf32>
  }
}
"""

READERS: dict[str, Callable[[str], None]] = {
    "condition": read_expression,
    "expression": read_expression,
    "spec": read_spec,
    "search": read_search,
    "hlo": read_program,
    "mosaic": read_mosaic,
    "where": read_where,
    "assumption": read_assumption,
    "comment": read_comment,
    "baseline": read_accepted,
    "record": read_record,
    "claims": read_claims,
    "compiled": read_compiled,
}
FILES = {"spec": ("spec", "stated"), "search": ("search", "candidates"), "hlo": ("program",), "where": ("where",)}
WRITTEN = {
    "mosaic": (MOSAIC,),
    "assumption": ASSUMED,
    "comment": COMMENTS,
    "baseline": (BASELINE,),
    "record": (json.dumps(RECORD),),
    "claims": (PROGRAMS,),
}


@cache
def texts(kind: str) -> tuple[str, ...]:
    """What the repository has of a kind: bodies of its own spec and search files, a program, texts written here."""
    if kind == "compiled":
        return (compiled(),)
    return WRITTEN[kind] if kind in WRITTEN else tuple(text for name in FILES[kind] for text in seeds()[name])


def make(seed: int, number: int) -> tuple[str, str]:
    """(kind, text) with this number of this seed. Layouts and expressions are short, so they are most."""
    rng = random.Random(f"{seed}/{number}")
    (kind,) = rng.choices(("layout", "known layout", *READERS), (41, 13, 9, 9, 4, 3, 4, 3, 4, 3, 2, 1, 2, 1, 1))
    if kind == "layout":
        name, text = layout(rng)
        others = (text, layout(rng)[1])
    elif kind == "known layout":
        name = rng.choice([name for name in KNOWN if seeds().get(name)])
        others = seeds()[name]
        text = rng.choice(others)
    elif kind in ("condition", "expression") or (kind == "where" and rng.random() < 0.5):
        name, text = kind, expression(rng) if kind == "expression" else condition(rng)
        others = (text, expression(rng))
    else:
        name, others = kind, texts(kind)
        text = rng.choice(others)
    return name, broken(rng, text, others) if rng.random() < 0.7 else text


def ask(seed: int, number: int) -> tuple[str, str, str]:
    """Read the text with this number of this seed: (kind, "read" or "refused", what is wrong or "")."""
    kind, text = make(seed, number)
    return kind, *answer(kind, text)


def answer(kind: str, text: str) -> tuple[str, str]:
    """Read a text of some kind: ("proved" where it is read or "refuted" or "error", what is wrong with that or "")."""
    before, start, what, wrong = peak(), time.process_time(), "proved", ""
    try:
        READERS.get(kind, read_layout)(text)
    except (LayoutError, Undecided) as error:
        what = "refuted"
        wrong = "" if str(error).strip() else "an error without words"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        what, wrong = "error", f"{type(error).__name__}: {str(error)[:200]}"
    seconds, grown = time.process_time() - start, peak() - before
    wrong = wrong or (f"{seconds:.1f} s" if seconds > SECONDS else f"{grown:.0f} MB" if grown > MEGABYTES else "")
    return what, f"{kind} {text[:500]!r}: {wrong}" if wrong else ""


KINDS = (*LANGUAGES, *READERS)
