"""What is worth trying for a program, and whether it helped: from records alone, nothing is compiled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layoutproof.core.size import product
from layoutproof.programs.candidates import (
    AUTO,
    MOST,
    NOTHING,
    ProgramChange,
    Try,
    candidates,
    changes,
    figures,
    gain,
    judged,
    together,
)
from layoutproof.programs.record import Copy, MemoryStats, Often, Place, ProgramValue, Record

W = "bf16[1000,256]{1,0:T(8,128)(2,1)}"
X = "bf16[64,256]{1,0:T(8,128)(2,1)}"
AT = Place("copy.1", 7)


def value(number: int, name: str, shape: str, size: int, **more: object) -> ProgramValue:
    return ProgramValue(number, name, shape, size, size, **more)  # type: ignore[arg-type]


def record(**more: object) -> Record:
    """A program with a parameter that it copies first, and a result that could take another's buffer."""
    found = Record(
        "m",
        memory=MemoryStats(arguments=544768, outputs=512000, temporaries=600000, peak=1_600_000),
        cycles=50_000,
        parameters=(value(0, "x", X, 32768), value(1, "w", W, 512000)),
        results=(value(0, "result", W, 512000),),
        copies=(
            Copy(AT, "copy", "relayout", W, W.replace("{1,0", "{0,1"), 1_024_000, 1, Often(), "parameter 1"),
            Copy(AT, "copy", "relayout", X, X.replace("{1,0", "{0,1"), 65_536, 1, Often(8)),
        ),
    )
    return replace(found, **more)  # type: ignore[arg-type]


def kinds(of: Record) -> list[str]:
    return [each.kind for each in candidates(of)]


def test_what_is_tried_and_in_which_order() -> None:
    """The compiler's choice, what the program copies first, donation, padding, and the largest arrays turned."""
    found = candidates(record())
    assert kinds(record()) == ["auto", "order", "donation", "padding", "order", "order"]
    auto, copied, donated, padded, turned, result = found
    assert (auto.orders, auto.results) == ({0: AUTO, 1: AUTO}, {0: AUTO})
    assert (copied.orders, copied.saves, copied.what) == ({1: (1, 0)}, 1_024_000, "w laid out {0,1} instead of {1,0}")
    assert (donated.donated, donated.saves) == ((1,), 512000)
    assert padded.padded == {1: (1024, 256)}
    assert (turned.orders, result.results) == ({0: (1, 0)}, {0: (1, 0)})


def test_nothing_is_tried_that_changes_the_meaning_or_is_the_compilers() -> None:
    """No parameter loses elements; a copy between temporaries is no candidate; what is donated stays donated."""
    for each in candidates(record()):
        for table in (each.padded, each.reshaped):
            for number, dims in table.items():
                own = (64, 256) if number == 0 else (1000, 256)
                assert product(dims) == product(own) or all(a >= b for a, b in zip(dims, own, strict=True))
    alone = replace(record(), copies=record().copies[1:])
    assert not any(each.saves == 65_536 for each in candidates(alone))
    given = record(parameters=(value(0, "x", X, 32768), value(1, "w", W, 512000, donated="result {0} (may-alias)")))
    assert "donation" not in kinds(given)
    taken = record(results=(value(0, "result", W, 512000, alias=1),))
    assert "donation" not in kinds(taken)
    assert all(each.kind != "donation" for each in candidates(record(), donors=False))


def test_on_several_devices_shapes_are_not_the_whole() -> None:
    """Orders of results, larger and reshaped parameters are not tried there."""
    found = candidates(record(devices=4))
    assert [each.kind for each in found] == ["auto", "order", "donation", "order"]
    assert all(not each.results or set(each.results.values()) == {AUTO} for each in found)


def test_mostly_padding_is_held_reshaped() -> None:
    """f32[20000,3,3] row-major is 43 times its elements: two dimensions of it merged are 4/3."""
    shape = "f32[20000,3,3]{2,1,0:T(4,128)}"
    held = ProgramValue(0, "turns", shape, 20000 * 4 * 128 * 4, 20000 * 36)
    (found,) = [c for c in candidates(record(parameters=(held,), copies=(), results=())) if c.kind == "reshape"]
    (dims,) = found.reshaped.values()
    assert product(dims) == 180_000
    assert found.saves > 39_000_000


def test_shapes_that_nobody_knows_are_left_alone() -> None:
    """A tuple, a token, a dynamic size, an empty array: the compiler's own choice is all that is tried."""
    shapes = ("(f32[2]{0}, token[])", "token[]", "f32[<=5,8]{1,0}", "f32[0,8]{1,0}", "f31[8,8]{1,0}")
    odd = record(
        parameters=tuple(ProgramValue(k, "", s, None, None) for k, s in enumerate(shapes)), copies=(), results=()
    )
    assert kinds(odd) == ["auto"]
    many = tuple(value(k, f"p{k}", W, 512000) for k in range(40))
    assert len(candidates(record(parameters=many, results=tuple(replace(v, name="") for v in many)))) <= MOST


BEFORE = record()


@pytest.mark.parametrize(
    ("after", "verdict", "less", "more"),
    [
        ({}, "same", (), ()),
        ({"temporaries": 400_000}, "helped", ("memory",), ()),
        ({"temporaries": 590_000}, "same", (), ()),
        ({"temporaries": 700_000}, "worse", (), ("memory",)),
        ({"copies": ()}, "helped", ("copies",), ()),
        ({"copies": (), "temporaries": 700_000}, "trade", ("copies",), ("memory",)),
        ({"cycles": 48_000}, "same", (), ()),
        ({"cycles": 40_000}, "helped", ("cycles",), ()),
        ({"cycles": 60_000}, "worse", (), ("cycles",)),
        ({"cycles": None}, "same", (), ()),
    ],
)
def test_whether_it_helped(after: dict[str, object], verdict: str, less: object, more: object) -> None:
    """Something is less and nothing is more; one percent of bytes and five of cycles are the same."""
    given = dict(after)
    size = given.pop("temporaries", None)
    memory = BEFORE.memory if size is None else replace(BEFORE.memory, temporaries=size)  # type: ignore[arg-type]
    found = judged(NOTHING, BEFORE, replace(BEFORE, memory=memory, **given))  # type: ignore[arg-type]
    assert (found.verdict, found.less, found.more) == (verdict, less, more)


def test_a_loop_of_unknown_trips_is_counted_apart() -> None:
    """A copy that is saved outside of it does not pay for one that is added inside, however often that runs."""
    outside, inside = BEFORE.copies[0], replace(BEFORE.copies[1], often=Often(None, why="loop"))
    before = replace(BEFORE, copies=(outside,))
    found = judged(NOTHING, before, replace(BEFORE, copies=(inside,)))
    assert (found.verdict, found.less, found.more) == ("trade", ("copies",), ("copies in loops",))
    assert figures(replace(BEFORE, copies=(inside,))).copied_each_trip == 65_536
    assert figures(BEFORE).copied == 1_024_000 + 8 * 65_536


def test_what_is_brought_to_another_memory_is_no_copy_to_save() -> None:
    """The compiler prefetches on purpose."""
    assert figures(replace(BEFORE, copies=(replace(BEFORE.copies[0], kind="space"),))).copied == 0


def test_memory_is_what_stands_in_hbm() -> None:
    """Arguments, results and temporaries, less what they share; the compiler's peak counts VMEM too."""
    memory = MemoryStats(arguments=100, outputs=50, temporaries=7, aliased=50, peak=900)
    assert figures(replace(BEFORE, memory=memory)).memory == 107
    assert figures(replace(BEFORE, memory=replace(memory, temporaries=None))).memory is None


def test_what_the_compiler_chose_is_named() -> None:
    """Of what was left to it, what it lays out otherwise than before."""
    turned = replace(
        BEFORE, parameters=(BEFORE.parameters[0], replace(BEFORE.parameters[1], shape=W.replace("1,0", "0,1")))
    )
    found = judged(candidates(BEFORE)[0], BEFORE, turned)
    assert dict(found.layouts) == {"w": W.replace("1,0", "0,1")}


def test_together_is_what_does_not_exclude_itself() -> None:
    """The better of two changes of one parameter, and a donation; one alone is nothing together."""
    now = figures(BEFORE)
    auto, copied, donated, *_ = candidates(BEFORE)
    helped = [Try(c, "helped", replace(now, copied=k)) for k, c in enumerate((copied, auto, donated))]
    found = together(helped)
    assert found is not None
    assert (found.orders, found.results, found.donated) == ({1: (1, 0)}, {}, (1,))
    assert together(helped[:2]) is None
    (padded,) = [each for each in candidates(BEFORE) if each.kind == "padding"]
    assert together([Try(donated, "helped", now), Try(padded, "helped", now)]) is None
    assert together([Try(donated, "same", now), helped[0]]) is None
    assert gain(now, helped[0]) > gain(now, Try(auto, "same", now))


def test_numbers_before_and_after() -> None:
    """Only what differs stands in the line."""
    before, after = figures(BEFORE), figures(replace(BEFORE, copies=(), cycles=25_000))
    assert changes(before, after) == "copies 1.5 MiB in 9 -> 0 B in 0, cycles 50,000 -> 25,000 (-50 %)"
    assert changes(before, before) == "no figure changes"
    assert ProgramChange("auto", "").change["donated"] == []
