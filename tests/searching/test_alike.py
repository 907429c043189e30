"""Searches that trace few candidates answer what searches that trace all of them do."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from layoutproof.core.recorded import Recorded, Trail
from layoutproof.core.term import Term
from layoutproof.searching import alike, traced
from layoutproof.searching.searched import Searched
from layoutproof.searching.solve import solve
from layoutproof.searching.tilings import Tilings
from layoutproof.searching.traced_file import read
from layoutproof.specs.positions import read_yaml
from tests.said import stretch

pytestmark = pytest.mark.slow

pytest.importorskip("jax", reason="JAX is not installed")

HERE = Path(__file__).parent
ROWS, COLUMNS = [8, 16, 32, 64, 128, 256, 512], [128, 256, 512]


@pytest.fixture(autouse=True)
def only_what_is_shown_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is judged is traced itself; so few candidates are otherwise judged all, to count what is refused."""
    monkeypatch.setattr(traced, "LEFT", 0)


def searched(name: str, rows: list[int] = ROWS, best: int = 3, more: str = "") -> Tilings:
    text = f"target: v5e\ntrace: traced_functions.py:{name}\nargs: ['f32[512,512]']\nheadroom: 0%\n{more}"
    text += f"tune: {{rows: {rows}, columns: {COLUMNS}}}\n"
    return solve(read(read_yaml(text, "f.yaml"), (HERE / "f.yaml").as_posix()), best)


def said(found: Tilings) -> dict[str, Any]:
    """All that an answer says, but how it was found."""
    how = found.enumerated
    kept = ("looked_at", "refused", "undecided", "cheaper", "alike", "unasked")
    rows = [(one.values, one.cost, one.figures) for one in found.found]
    ranked = [(one.values, one.cost) for one in how.ranked]
    both = {"found": rows, "ranked": ranked, "count": found.asked, "unknown": found.unknown}
    return both | {name: getattr(how, name) for name in kept}


def both(name: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Tilings, Tilings]:
    """The search as it is, and with every candidate traced."""
    found = searched(name, **options)
    with monkeypatch.context() as patched:
        patched.setattr(alike, "FEW", 10**9)
        every = searched(name, **options)
    assert every.enumerated.traced == every.enumerated.looked_at
    return found, every


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("copy", 5),
        ("special", 6),
        ("checked", 6),
        ("shortened", 5),
        ("rounded_up", 5),
        ("mapped", 5),
        ("keyed", 21),
        ("by_bits", 12),
        ("padded", 5),
        ("twice", 5),
        # the three that its body refuses are traced, as nobody knows what it has looked at
        ("loose_body", 9),
        ("nested_memory", 6),
        # sizes choose which of two allocations is the larger: all are traced
        ("memory_in_turn", 21),
        ("looks_at_shapes", 6),
    ],
)
def test_terms_answer_what_tracing_answers(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found, every = both(name, monkeypatch)
    assert said(found) == said(every)
    assert found.enumerated.traced <= most
    assert all(one.traced and one.kernels[0].body_reader is not None for one in found.enumerated.taken)


def test_what_the_function_refuses_is_refused_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    found, every = both("copy", monkeypatch, rows=[3, 5, 7, *ROWS])
    assert said(found) == said(every)
    assert [n for why, n in found.enumerated.refused.items() if "512 rows are no multiple of 3" in why] == [3]
    assert found.enumerated.traced < 10


def test_terms_without_the_decisions_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: where nothing is recorded, the answer for a special case is that of the others."""
    right = searched("special", best=7)
    assert {(one.values["rows"], one.values["columns"]) for one in right.found} >= {(64, 256), (512, 512)}
    monkeypatch.setattr(Trail, "decide", lambda *arguments: None)
    wrong = searched("special", best=7)
    assert said(wrong) != said(right)
    assert (64, 256) not in {(one.values["rows"], one.values["columns"]) for one in wrong.found}


def test_what_costs_more_is_judged_too_where_it_is_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the same answers, with every candidate traced and judged."""
    few = searched("copy")
    monkeypatch.setattr(traced, "LEFT", len(ROWS) * len(COLUMNS))
    every = searched("copy")
    assert said(every) == said(few)
    assert (every.enumerated.traced, every.enumerated.unjudged) == (21, 0)
    assert few.enumerated.traced + few.enumerated.unjudged >= 21 > few.enumerated.traced


def test_few_candidates_are_all_traced() -> None:
    found = searched("copy", rows=[8, 16])
    assert (found.asked, found.enumerated.traced) == (6, 6)


def test_the_answer_says_how_many_were_traced() -> None:
    text = f"target: v5e\ntrace: traced_functions.py:copy\nargs: ['f32[512,512]']\ntune: {{rows: {ROWS}}}\n"
    text = text.replace("tune: {", f"tune: {{columns: {COLUMNS}, ")
    answered = Searched(solve(read(read_yaml(text, "f.yaml"), (HERE / "f.yaml").as_posix()), 3))
    assert f"21 candidates, 21 looked at, {answered.result.enumerated.traced} traced" in answered.text()
    assert stretch("searching.decides_alike") in " ".join(answered.as_json()["notes"])


def recorded(value: int, trail: Trail, name: str = "b") -> Any:
    return Recorded(Term("name", name), value, trail)


@pytest.mark.parametrize(
    ("use", "decisions"),
    [
        (lambda b: b + 1 > 3, [("3 < b + 1", 1)]),
        (lambda b: 100 // b * 2, [("b == 0", 0)]),
        (lambda b: bool(b % 4), [("b % 4 == 0", 1)]),
        (lambda b: min(b, 5), [("5 < b", 1)]),
        (lambda b: b in (1, 8), [("b == 1", 0), ("b == 8", 1)]),
        (lambda b: {8: 1}.get(b), [("b", 8)]),
        (lambda b: list(range(b // 4)), [("b // 4", 2)]),
        (lambda b: [1, 2, 3][b - 6], [("b - 6", 2)]),
        (lambda b: f"{b}", [("b", 8)]),
        (lambda b: b / 2, [("b", 8)]),
        (lambda b: b * 0.5, [("b", 8)]),
        (lambda b: b.bit_length(), [("b", 8)]),
        (lambda b: b & 3, [("b", 8)]),
        (lambda b: b << 2, []),
        (lambda b: divmod(b, 3), []),
        (lambda b: abs(-b), [("0 - b < 0", 1)]),
        (lambda b: b == None, []),  # noqa: E711
        (lambda b: [b] * 2 == [b] * 2, []),
    ],
)
def test_each_decision_is_recorded_once(use: Any, decisions: list[tuple[str, int]]) -> None:
    trail = Trail()
    use(recorded(8, trail))
    use(recorded(8, trail))
    assert [(str(term), outcome) for term, outcome in trail.decisions] == decisions


def test_what_the_cache_of_a_library_compares_is_no_decision() -> None:
    """A cache finds what has one hash, and in a library's file the hash is that of the term; `==` there decides."""

    @dataclass(frozen=True)
    class Key:
        number: Any

    trail = Trail(lambda file: file == __file__)
    cached = functools.lru_cache(lambda key: [key])
    first = cached(Key(recorded(8, trail, "a")))
    assert cached(Key(recorded(8, trail))) is not first
    assert cached(Key(recorded(8, trail, "a"))) is first
    assert trail.decisions == []
    assert Key(recorded(7, trail, "a")) != Key(recorded(8, trail))
    assert Key(recorded(8, trail)) in [Key(8)]
    assert [(str(term), outcome) for term, outcome in trail.decisions] == [("a == b", 0), ("b == 8", 1)]


def test_a_number_that_is_the_key_of_a_cache_is_no_decision() -> None:
    """As of `jit` for what it does not trace: a number has an entry of its own, another one of the same value too."""
    trail, again = Trail(lambda file: file == __file__), Trail(lambda file: file == __file__)
    cached = functools.lru_cache(lambda number: [number])
    given = [recorded(8, trail, "a"), recorded(8, trail), recorded(8, trail) + 0, recorded(8, again)]
    found = [cached(number)[0] for number in given]
    assert all(one is number for one, number in zip(found, given, strict=True))
    assert cached(recorded(8, trail))[0] is given[1]
    assert trail.decisions == again.decisions == []
    # of another run, kept by a cache: it is another number, and nothing is decided
    assert given[1] != given[3]
    assert not operator.eq(given[1], given[3])
    assert trail.decisions == again.decisions == []
    # what is asked without a hash is a question
    assert operator.eq(given[0], given[1])
    assert [str(term) for term, _ in trail.decisions] == ["a == b"]


def test_in_code_of_a_user_a_hash_is_the_number() -> None:
    """A dictionary or a set there finds a number by its value, and that is a decision."""
    trail = Trail()
    b = recorded(8, trail)
    assert {8: "found"}[b] == "found"
    assert 8 in {b}
    assert [str(term) for term, _ in trail.decisions] == ["b"]


def test_nothing_is_read_of_bytecode() -> None:
    """What a frame executes, and how, is another thing in each version of Python."""
    import inspect

    from layoutproof.core import recorded as module

    text = inspect.getsource(module)
    assert not [word for word in ("f_lasti", "co_code", "opmap", "import dis", "opcode") if word in text]


def test_recorded_numbers_count_as_ints_do() -> None:
    trail = Trail()
    b, c = recorded(13, trail), recorded(-5, trail, "c")
    for use in (
        lambda b, c: b + c * 3 - 2,
        lambda b, c: b // c + b % c,
        lambda b, c: (7 - b, -c, abs(c), +b, b**2, 2**b, ~b, b ^ c, b | 1, b >> 1, b << 3, 1 << b),
        lambda b, c: (b / c, c / b, 1.5 * b, b - 0.5, round(b), float(b), int(c), divmod(b, c), divmod(100, b)),
        lambda b, c: (b < c, b <= c, b > c, b >= c, b == c, b != c, b < 12.5, bool(b), not c),
        lambda b, c: (max(b, c), min(b, c, 0), sum([b, c]), sorted([b, c, 0]), isinstance(b, int), hash(b)),
        lambda b, c: (str(b), repr(c), f"{b:>5}", format(b, "d"), list(range(b))[c], [0] * b, b.real, {b: c}[13]),
    ):
        assert use(b, c) == use(13, -5)
