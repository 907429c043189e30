"""Texts at random for every reader: of a language's grammar, then often broken. What is no layout is a LayoutError.

A text is drawn by the grammar (layouts of each language, expressions) or taken from the repository's own files, and
half of the time its numbers are exchanged or it is cut, repeated, nested, spliced or salted. Reading must end, within
SECONDS and MEGABYTES, with a value or with a LayoutError; what was read is printed, and read again it is the same.
"""

from __future__ import annotations

import json
import random
import resource
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from benchmarks.bad_inputs import broken, seeds
from layoutproof.core.errors import LayoutError, Undecided
from tests.questions.questions_at_random import LANGUAGES, question

SECONDS = 5.0
"""Longest time that one text may take a core; most take less than a millisecond."""
MEGABYTES = 400
"""Most that one text may add to the peak memory of the process."""

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


def read_search(text: str) -> None:
    from layoutproof.specs.positions import read_yaml
    from layoutproof.tilings.read import read_problem

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
}
FILES = {"spec": ("spec", "stated"), "search": ("search", "candidates"), "hlo": ("program",)}


@cache
def texts(kind: str) -> tuple[str, ...]:
    """What the repository has of a kind: bodies of its own spec and search files, a program."""
    return (MOSAIC,) if kind == "mosaic" else tuple(text for name in FILES[kind] for text in seeds()[name])


def make(seed: int, number: int) -> tuple[str, str]:
    """(kind, text) with this number of this seed. Layouts and expressions are short, so they are most."""
    rng = random.Random(f"{seed}/{number}")
    (kind,) = rng.choices(("layout", "known layout", *READERS), (50, 16, 10, 10, 4, 3, 4, 3))
    if kind == "layout":
        name, text = layout(rng)
        others = (text, layout(rng)[1])
    elif kind == "known layout":
        name = rng.choice([name for name in KNOWN if seeds().get(name)])
        others = seeds()[name]
        text = rng.choice(others)
    elif kind in ("condition", "expression"):
        name, text = kind, condition(rng) if kind == "condition" else expression(rng)
        others = (text, expression(rng))
    else:
        name, others = kind, texts(kind)
        text = rng.choice(others)
    return name, broken(rng, text, others) if rng.random() < 0.7 else text


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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
