"""Questions in rounds: the answers in their order, one process through all rounds, whatever becomes of one request."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from layoutproof.compiler.child import Child, Reply
from layoutproof.compiler.rounds import ask_in_rounds

CHILD = Child("the reader", "tests.compiler.answering", seconds=30)
Plan = Generator[Sequence[Any], list[Reply[Any]], Any]


@pytest.fixture(autouse=True)
def _tests_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answering program is a module of the tests."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))


def test_rounds() -> None:
    """A round may ask of the answers before it; one that ends its process has words, the others their answers."""
    told: list[tuple[int, Any]] = []

    def plan() -> Plan:
        (first,) = yield [["pid"]]
        many = yield [["echo", first.value], ["abort"], ["progress", 2], *(["echo", k] for k in range(5))]
        (last,) = yield [["echo", "end"]]
        return first, many, last

    first, many, last = ask_in_rounds(CHILD, plan(), lambda value: value, lambda *of: told.append(of), jobs=3)
    assert many[0].value == first.value
    assert (many[1].value, many[1].cause) == (None, "ended")
    assert [each.value for each in many[2:]] == [2, 0, 1, 2, 3, 4]
    assert last.value == "end"
    assert (2, {"done": 1}) in told
    assert sum(what is None for _, what in told) == 10


def test_one_process_asks_in_all_rounds() -> None:
    """Where nobody helps it is the same one; several are others."""

    def plan() -> Plan:
        one = yield [["pid"]]
        more = yield [["pid"], ["pid"]]
        return [each.value for each in one + more]

    assert len(set(ask_in_rounds(CHILD, plan(), int, jobs=1))) == 1


@pytest.mark.parametrize("requests", [[], [["pid"], ["pid"], ["pid"]]], ids=["none", "three"])
def test_what_a_plan_raises_is_raised(requests: list[Any]) -> None:
    """Not lost in a thread, and no process is left to wait for."""

    def plan() -> Plan:
        yield requests
        raise ValueError("the plan")

    with pytest.raises(ValueError, match="the plan"):
        ask_in_rounds(CHILD, plan(), int)
