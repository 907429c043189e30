"""Functions that are hard to read, `Any` in signatures, names with two meanings and sentences of the product in tests
may only become fewer."""

from __future__ import annotations

import pytest

from tests.imports import sources
from tests.ratchet import Measured, grown, measured, recorded, suite

pytestmark = pytest.mark.slow

BRANCHES = "\n".join(f"    if x == {k}:\n        return {k}" for k in range(26))
HARD = f"def hard(x: int) -> int:\n{BRANCHES}\n    return 0\n"


def test_nothing_has_grown_and_the_record_is_what_there_is() -> None:
    """What has fallen is written down, so that it cannot come back: `python -m tests.ratchet`."""
    now, before = measured(sources(), suite()), recorded()
    assert grown(before, now) == []
    assert now == before, "fewer than recorded: python -m tests.ratchet"


LOOSE = "kernel has 1 functions with Any in their signature, it had 0: say the type"
TWICE = "layoutproof.core.place and layoutproof.kernel.new have a class Place each: one name, one meaning"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (HARD, "layoutproof.kernel.new:hard has complexity 27, above 25: split it"),
        ("def f(x: Any) -> int: ...", LOOSE),
        ("def f(x: int) -> dict[str, Any]: ...", LOOSE),
        ("class Place: ...", TWICE),
        ("def f(x: int, *, Any_: int) -> int: ...", None),
        ("class _Place: ...", None),
    ],
)
def test_what_is_planted_is_found(source: str, said: str | None) -> None:
    """And what is no more than there was is not."""
    modules = {"layoutproof.core.place": "class Place: ...\n"}
    found = grown(measured(modules, {}), measured({**modules, "layoutproof.kernel.new": source}, {}))
    assert found == ([] if said is None else [said])


def test_a_function_that_has_grown_is_found() -> None:
    """Also one that was above the bound."""
    before, now = (Measured({"layoutproof.a:f": many}, {}, {}, {}) for many in (27, 28))
    assert grown(before, now) == ["layoutproof.a:f has complexity 28, it had 27: split it"]
    assert grown(now, before) == []
    assert grown(Measured({"layoutproof.b:f": 28}, {}, {}, {}), now) == []
    assert grown(Measured({"layoutproof.b:g": 28}, {}, {}, {}), now) == [
        "layoutproof.a:f has complexity 28, above 25: split it"
    ]


def test_a_sentence_of_the_product_in_a_test_is_found() -> None:
    """With another number in it, too; its id is none."""
    product = {"layoutproof.a": "def f(k, n): return f'grid dimension {k} has {n} programs'"}
    before = measured(product, {"a/test_a.py": "assert f(0, 3) == 'one of three words'"})
    after = measured(product, {"a/test_a.py": "assert f(0, 3) == 'grid dimension 0 has 3 programs'"})
    assert (before.sentences, after.sentences) == ({}, {"a": 1})
    assert [line.partition(",")[0] for line in grown(before, after)] == ["tests/a repeats 1 sentences of the product"]
    assert grown(after, before) == []
