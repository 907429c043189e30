"""Asking: from several threads, with arguments of the wrong kind, and where it is unknown."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from tests.said import Said, raises

pytestmark = pytest.mark.slow


def test_threads_ask_at_once() -> None:
    """Answers from four threads are those from one; in a process of its own, because native code would end ours."""
    program = """
        from concurrent.futures import ThreadPoolExecutor
        import layoutproof as lp
        questions = [
            ("covers", "f32[N,M]{1,0:T(8,128)}"),
            ("injective", "f32[N,M] strides (M-1,1)"),
            ("bitcast", "f32[a,b,c]{2,1,0:T(8,128)}", "f32[a*b,c]{1,0:T(8,128)}"),
        ] * 8
        alone = [str(lp.ask(*question)) for question in questions[:3]] * 8
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda question: str(lp.ask(*question)), questions)) == alone
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where": 5}, Said("questions.where_type", found="5")),
        ({"where": ["N % 8 == 0"]}, Said("questions.where_type", found="['N % 8 == 0']")),
        ({"effort": 0}, Said("questions.effort", found="0")),
        ({"effort": "2"}, Said("questions.effort", found="'2'")),
    ],
)
def test_arguments_of_the_wrong_kind_are_bad_input(options: dict[str, Any], message: Said) -> None:
    """What is no condition and no effort is named, instead of failing somewhere inside."""
    with raises(LayoutError, message):
        lp.ask("injective", "f32[N]{0:T(8)}", **options)


def test_a_condition_that_nobody_can_satisfy_or_refute_is_unknown() -> None:
    """Whether N*N == 2*M*M has a solution is beyond the engines: that is no error of the user's."""
    result = lp.ask("injective", "f32[N,M]{1,0:T(8,128)}", where="N*N == 2*M*M")
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason.startswith("cannot tell whether any sizes satisfy N * N == 2 * M * M: ")


def test_sizes_that_a_condition_names_are_tried() -> None:
    """Of a product of sizes no engine found them, and it took seconds to say so."""
    where = "N*M*N % 256128 == 0 and (N == 1 or M == 1)"
    assert lp.ask("injective", "f32[N,M]{1,0}", where=where).verdict is Verdict.PROVED
    nothing = lp.ask("injective", "f32[N,M]{1,0}", where="N == 256128 and N % 5 == 0 and M < 3")
    assert (nothing.verdict, nothing.reason.partition(":")[0]) == (Verdict.UNKNOWN, "vacuous")


def test_one_engine_is_enough_to_find_sizes() -> None:
    """Sizes that satisfy N*N == 49 only one engine finds, and the question is then about those."""
    assert lp.ask("injective", "f32[N]{0:T(8)}", where="N*N == 49").verdict is Verdict.PROVED
    refuted = lp.ask("covers", "f32[N]{0:T(8)}", where="N*N == 49")
    assert refuted.counterexample == {"sizes": {"N": 7}, "place": (0, 7)}


def test_a_permutation_from_numpy() -> None:
    """numpy.argsort gives an array of numpy integers; that is a permutation, a text is none."""
    pair = ("f32[4,8]{1,0}", "f32[8,4]{0,1}")
    assert lp.ask("bitcast", *pair, permutation=np.argsort([1, 0])).verdict is Verdict.PROVED
    with pytest.raises(LayoutError, match="permutation is a list of dimension numbers"):
        lp.ask("bitcast", *pair, permutation="10")


def test_a_condition_said_to_be_exact_was_proved() -> None:
    """For all M >= 1,000,000, no grid of small ones; and M == 128 is not all that works under the second one."""
    alone = lp.ask("covers", "f32[M]{0:T(8)}", where="M > 1000000")
    assert alone.figures == {"holds_when": "M % 8 == 0", "holds_when_is": "exact"}
    more = lp.ask("covers", "f32[N,M]{1,0:T(8,128)}", where="N % 8 == 0 and (M % 128 == 0 or M % 256 == 3)")
    assert more.figures["holds_when_is"] == "sufficient, not necessary: it also holds for N == 8 and M == 256"


@pytest.mark.parametrize(
    ("question", "where", "verdict", "counterexample"),
    [
        (("in_bounds", "f32[4,4] strides (N,1) in 16"), "N == 4", Verdict.PROVED, None),
        (("in_bounds", "f32[4,4] strides (N,1) in 16"), "N > 4", Verdict.REFUTED, {"N": 5}),
        (("in_bounds", "f32[4] strides (1) offset N in 8"), "N < 5", Verdict.PROVED, None),
        (("in_bounds", "f32[4] strides (1) offset N in 8"), None, Verdict.REFUTED, {"N": 5}),
        (
            ("same_map", "f32[4,4] strides (N,1) in 16", "f32[4,4] strides (M,1) in 16"),
            "N <= 4 and M <= 4",
            Verdict.REFUTED,
            {"N": 1, "M": 2},
        ),
        (("injective", "f32[4,4] strides (N,1) in 16"), "N < 4", Verdict.REFUTED, {"N": 1}),
    ],
)
def test_sizes_that_stand_in_strides_and_offsets_alone(
    question: tuple[str, ...], where: str | None, verdict: Verdict, counterexample: dict[str, int] | None
) -> None:
    """They are sizes of the layout like those of its shape, and a counterexample names them."""
    result = lp.ask(*question, where=where)
    assert result.verdict is verdict
    assert (result.counterexample or {}).get("sizes") == counterexample


@pytest.mark.parametrize("target", [None, 5])
def test_a_target_that_is_no_name(target: Any) -> None:
    """A generation that is not even a text is an unknown one."""
    with pytest.raises(LayoutError, match=f"unknown TPU generation {str(target)!r}"):
        lp.tpu_default("f32[1000,5]", target=target)


@pytest.mark.parametrize(
    ("question", "options", "ways"),
    [
        (
            # the product N * (N - 1) is even, which nobody here knows
            ("in_bounds", "Sw<1,0,3> o 0 o (3,N):(1,8*N)"),
            {},
            "give numbers for N, or say what holds of them (--where), or allow more steps (--effort 10)",
        ),
        (
            ("injective", "(i < 30000000) -> (i * i,)"),
            {"engine": "brute"},
            "ask every engine, without --engine, or ask about fewer elements, or allow more steps (--effort 10)",
        ),
        (("same_map", "Sw<1,0,1> o 0 o 8:1", "8:1"), {"engine": "digits"}, "ask every engine, without --engine"),
        (
            ("same_map", "(i < N) -> (i * i,)", "(i < N) -> (i * i + 0 * i,)"),
            {"confirm": True},
            "ask for one engine alone, without --confirm",
        ),
    ],
)
def test_an_unknown_says_what_may_settle_it(question: tuple[str, ...], options: dict[str, Any], ways: str) -> None:
    """Behind what each engine says: sizes, an assumption, fewer elements, more steps, other engines."""
    found = lp.ask(*question, **options)
    assert found.verdict is Verdict.UNKNOWN
    assert found.reason.endswith(f"; to settle it, {ways}"), found.reason
