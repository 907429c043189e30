"""What XLA's own functions about reshapes and transposes say, held against the proofs.

Each rule is a function that takes a row, asks our engine what the row's expectation means, and returns what is wrong
("" when nothing is). XLA's functions know neither tiles nor element widths; where a row differs for that reason it must
fit exactly one of the named `REASONS`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import INTS
from layoutproof.core.reshape import after, common_factors, reshape
from layoutproof.core.result import Verdict
from layoutproof.core.space import Space
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.registry.read import read_layout
from tests.recorded import rows

pytestmark = pytest.mark.slow

FILE = "xla_bitcast_cases.jsonl"
Row = dict[str, Any]


def holds(name: str, *layouts: object, **options: Any) -> bool:
    """Whether it is proved. An unknown is a failure; shapes that no reshape or transpose connects are no bitcast."""
    try:
        verdict = lp.ask(name, *layouts, **options).verdict
    except lp.LayoutError as error:
        assert "no reshape" in str(error) or "has shape" in str(error) or "element width" in str(error)  # noqa: PT017
        return False
    assert verdict is not Verdict.UNKNOWN, (name, layouts, options)
    return verdict is Verdict.PROVED


def index_space(dims: Sequence[int]) -> Space:
    return Space(tuple(f"i{k}" for k in range(len(dims))), tuple(dims))


def logical(dims: Sequence[int], to: Sequence[int], *, by: Callable[..., Any]) -> IndexMap:
    """The map from indices of `dims` to indices of `to`."""
    return IndexMap(index_space(dims), index_space(to), lambda index, _copy, on: tuple(by(index, on)))


def orders(dims: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every minor_to_major up to where dimensions of extent 1 stand, which without tiles changes nothing."""
    wide = [d for d in range(len(dims)) if dims[d] != 1]
    assert len(wide) <= 7, f"{dims} has too many orders to try"
    ones = tuple(d for d in range(len(dims)) if dims[d] == 1)
    return (order + ones for order in itertools.permutations(wide))


def untiled(dims: Sequence[int], order: Sequence[int], element_type: str = "f32") -> XlaLayout:
    return XlaLayout(element_type, tuple(dims), ("",) * len(dims), tuple(order))


# --- is it a bitcast? --------------------------------------------------------------------------------------------


def bitcast_of(row: Row, before: XlaLayout, result: XlaLayout) -> bool:
    axes = {"permutation": tuple(row["dimension_mapping"])} if "dimension_mapping" in row else {}
    if row.get("ignore_element_type"):
        result = replace(result, element_type=before.element_type)
    return holds("bitcast", before, result, **axes)


def plainly(layout: XlaLayout) -> XlaLayout:
    return untiled(layout.dims, layout.minor_to_major, layout.element_type)  # type: ignore[arg-type]


def ignores_tiles(row: Row, before: XlaLayout, result: XlaLayout) -> bool:
    bare = plainly(before), plainly(result)
    return (before, result) != bare and bitcast_of(row, *bare) == row["expected"]


def compares_types(row: Row, before: XlaLayout, result: XlaLayout) -> bool:
    return not row["expected"] and before.element_type != result.element_type and not row.get("ignore_element_type")


def has_no_elements(row: Row, before: XlaLayout, result: XlaLayout) -> bool:
    return bool(row["expected"]) and 0 in before.dims and 0 in result.dims


def counts_ones(row: Row, before: XlaLayout, _result: XlaLayout) -> bool:
    return "dimension_mapping" in row and not row["expected"] and 1 in before.dims


REASONS = {
    "XLA ignores tiles": ignores_tiles,
    "XLA wants equal element types": compares_types,
    "XLA calls everything without elements a bitcast, of which nothing is to be proved": has_no_elements,
    "XLA compares where dimensions of extent 1 stand, which moves no element": counts_ones,
}


def is_bitcast(row: Row) -> str:
    before, result = read_layout(row["input"]), read_layout(row["output"])
    empty = 0 in before.dims and 0 in result.dims
    ours = False if empty else bitcast_of(row, before, result)
    if ours == row["expected"]:
        return ""
    fitting = [name for name, fits in REASONS.items() if fits(row, before, result)]
    return "" if len(fitting) == 1 else f"we say {ours}; reasons that fit: {fitting}"


def reordered(row: Row) -> str:
    """The expected order makes the transpose a bitcast, and no other order does."""
    before, result = read_layout(row["input"]), read_layout(row["expected"])
    axes = tuple(row["permutation"])
    if not holds("bitcast", before, result, permutation=axes):
        return "the expected layout moves elements"
    shape = tuple(before.dims[axis] for axis in axes)
    free = [o for o in orders(shape) if holds("bitcast", before, untiled(shape, o), permutation=axes)]
    return "" if len(free) == 1 else f"{len(free)} orders are free"


def descending(row: Row) -> str:
    """Listing the dimensions most major first is a transpose to the last-dimension-fastest order, and free."""
    before, result = read_layout(row["input"]), read_layout(row["expected"])
    if result.minor_to_major != tuple(range(len(result.dims)))[::-1]:
        return "the expected layout does not descend"
    axes = before.minor_to_major[::-1]
    return "" if holds("bitcast", before, result, permutation=axes) else "elements move"


def deduced(row: Row) -> str:
    """The expected permutation is free, or none is."""
    before, result = row["input"], row["output"]
    rank = len(read_layout(before).dims)
    if row["expected"] is not None:
        return "" if holds("bitcast", before, result, permutation=tuple(row["expected"])) else "elements move"
    free = [p for p in itertools.permutations(range(rank)) if holds("bitcast", before, result, permutation=p)]
    return f"{free} are free" if free else ""


def aligned(row: Row) -> str:
    """The expected order makes the reshape a bitcast; without one, no order does."""
    before, dims = read_layout(row["input"]), row["output_dims"]
    if row["expected"] is not None:
        order = row["expected"]
        result = read_layout(order) if isinstance(order, str) else untiled(dims, order)
        return "" if holds("bitcast", before, result) else "elements move"
    free = [order for order in orders(dims) if holds("bitcast", before, untiled(dims, order))]
    return f"{free} are free" if free else ""


def decomposed(row: Row) -> str:
    """Each step is proved to move nothing, and the steps lead from the input to the output."""
    expected, at = row["expected"], row["input"]
    kind = expected["kind"]
    axes = {key: tuple(value) for key, value in expected.items() if key.endswith("dims")}
    steps: list[tuple[str, tuple[int, ...] | None]]
    if kind == "reshape":
        steps = [(row["output"], None)]
    elif kind == "transpose":
        steps = [(row["output"], next(iter(axes.values())))]
    elif kind == "trt":
        first, second = axes["transpose1_dims"], axes["transpose2_dims"]
        for number, given in (("1", first), ("2", second)):
            if expected[f"transpose{number}_identity"] != (given == tuple(sorted(given))):
                return f"transpose {number} {given} is called identity wrongly"
        steps = [(expected["transpose1_shape"], first), (expected["reshape_shape"], None), (row["output"], second)]
    else:
        return f"unknown kind of decomposition {kind}"
    for to, permutation in steps:
        if not holds("bitcast", at, to, **({} if permutation is None else {"permutation": permutation})):
            return f"{at} -> {to} by {permutation} moves elements"
        at = to
    return ""


# --- tiles and orders --------------------------------------------------------------------------------------------


def is_untiled(row: Row) -> str:
    """A tiling is a no-op: the same addresses as without, and (unless padding at the end may be) the same bytes."""
    dims = tuple(row["dims_physical_major_to_minor"])
    bare = untiled(dims, range(len(dims))[::-1])
    tiled = replace(bare, tiles=tuple(map(tuple, row["tiles"])))
    ours = holds("same_map", bare, tiled)
    if not row.get("allow_trailing_padding"):
        bytes_ = [lp.ask("padding", layout).figures["bytes"] for layout in (bare, tiled)]
        ours = ours and bytes_[0] == bytes_[1]
        if holds("bitcast", bare, tiled) != ours:
            return "bitcast differs from same_map and bytes"
    return "" if ours == row["expected"] else f"we say {ours}"


def is_most_major(row: Row) -> str:
    """The map stays when the dimension is moved to the most major place, whatever its extent."""
    layout, moved = read_layout(row["input"]), row["dimension"]
    wide = tuple(max(2, extent) if d == moved else extent for d, extent in enumerate(layout.dims))
    order = (*(d for d in layout.minor_to_major if d != moved), moved)
    ours = holds("same_map", replace(layout, dims=wide), replace(layout, dims=wide, minor_to_major=order))
    return "" if ours == row["expected"] else f"we say {ours}"


# --- logical reshapes --------------------------------------------------------------------------------------------


def factors(row: Row) -> str:
    """Every boundary of XLA's is one of ours; ours are finer where XLA merges trivial ranges into a neighbour."""
    before, result = row["from_dims"], row["to_dims"]
    groups = common_factors(before, result)
    ends = [(b1, a1) for (_, b1), (_, a1) in groups]
    ours = [(0, 0), *ends]
    if any(prod(before[b0:b1]) != prod(result[a0:a1]) for (b0, b1), (a0, a1) in groups):
        return f"unequal products in {groups}"
    theirs = [tuple(pair) for pair in row["expected"]]
    if [pair for pair in theirs if pair not in ours]:
        return f"our boundaries are {ours}"
    if 0 in before:
        # XLA takes an array without elements as one range
        return "" if theirs == [(0, 0), (len(before), len(result))] else f"an empty array is one range, not {theirs}"
    for (b0, a0), (b1, a1) in itertools.pairwise(theirs):
        inside = [p for p in ours if b0 <= p[0] <= b1 and a0 <= p[1] <= a1]
        nontrivial = [(p, q) for p, q in itertools.pairwise(inside) if prod(before[p[0] : q[0]]) != 1]
        if len(nontrivial) > 1:
            return f"XLA merges the nontrivial {nontrivial}"
    return ""


def normalized(row: Row) -> str:
    """The transpose of the normalized shape, between two reshapes, is the same transpose of indices."""
    dims, result, axes = row["input_dims"], row["output_dims"], row["dimensions"]
    target, few = row["expected"]["normalized_dims"], row["expected"]["permutation"]
    source = [0] * len(few)
    for k, axis in enumerate(few):
        source[axis] = target[k]
    gather, scatter = reshape(dims, source), reshape(target, result)
    whole = logical(dims, result, by=lambda index, _: [index[axis] for axis in axes])

    def short(permutation: Sequence[int]) -> IndexMap:
        def by(index: Any, on: Any) -> Any:
            grouped = gather(index, on)
            return scatter(tuple(grouped[axis] for axis in permutation), on)

        return logical(dims, result, by=by)

    if not holds("same_map", whole, short(few)):
        return "another element ends there"
    # the same question must be refuted without the transpose, where there is one
    straight = reshape(dims, result)
    plain = logical(dims, result, by=lambda index, on: straight(index, on))
    if few != sorted(few) and holds("same_map", whole, plain):
        return "the plain reshape would do as well"
    return ""


def only_ones(row: Row) -> str:
    """A reshape that only inserts or deletes dimensions of extent 1 passes every other index entry through."""
    dims, result = row["input_dims"], row["output_dims"]
    kept, made = ([d for d, extent in enumerate(side) if extent != 1] for side in (dims, result))
    ours = False
    if [dims[d] for d in kept] == [result[d] for d in made]:
        by = reshape(dims, result)
        passed = logical(dims, [dims[d] for d in kept], by=lambda index, _: [index[d] for d in kept])
        there = logical(dims, [result[d] for d in made], by=lambda index, on: [by(index, on)[d] for d in made])
        ours = holds("same_map", passed, there)
    return "" if ours == row["expected"] else f"we say {ours}"


def unmodified(row: Row) -> str:
    """A pair (dimension before, dimension after) is listed when the reshape passes that index entry through."""
    dims, result = row["input_dims"], row["output_dims"]
    by = reshape(dims, result)
    listed = {tuple(pair) for pair in row["expected"]}
    pairs = list(itertools.product(range(len(dims)), range(len(result))))
    if listed - set(pairs):
        return f"{listed - set(pairs)} are no dimensions"
    for b, a in pairs:
        if dims[b] != result[a]:
            passes = False
        else:
            one = logical(dims, [dims[b]], by=lambda index, _, b=b: [index[b]])  # type: ignore[misc]
            other = logical(dims, [result[a]], by=lambda index, on, a=a: [by(index, on)[a]])  # type: ignore[misc]
            passes = holds("same_map", one, other)
        # an entry of extent 1 is always 0: which of them XLA pairs is its choice
        if ((b, a) in listed) != passes and not (passes and dims[b] == 1):
            return f"dimension {b} {'is' if passes else 'is not'} dimension {a} of the result"
    return ""


def bitcast_indexing(row: Row) -> str:
    """The printed map takes each index of the output to the index of the input at the same address."""
    before, result = read_layout(row["input"]), read_layout(row["output"])
    text = re.split(r",\s*domain", row["expected"])[0].replace("/", "//").replace(" mod ", " % ")
    printed = lp.index_map(text, shape=list(result.dims), range=list(before.dims))
    if not holds("in_bounds", printed):
        return "an index of the output leads outside the input"
    place = printed.index_map().place
    source = before.index_map()
    there = after(lambda index, on: place(index, (), on), source, result.index_map().domain)
    return "" if holds("same_map", result, there) else "another element is at that address"


# --- commuting a bitcast with a transpose or a broadcast -----------------------------------------------------------


def bitcast_array(values: np.ndarray[Any, Any], dims: Sequence[int]) -> np.ndarray[Any, Any]:
    """`values` reshaped by our own map of indices."""
    where = reshape(dims, values.shape)(tuple(np.indices(tuple(dims))), INTS)
    return np.broadcast_to(values[where], tuple(dims)) if where else values.reshape(dims)


def broadcast(values: np.ndarray[Any, Any], dims: Sequence[int], to: Sequence[int]) -> np.ndarray[Any, Any]:
    """XLA's broadcast: dimension k of the operand becomes dimension to[k] of the result."""
    wide = [1] * len(dims)
    for extent, d in zip(values.shape, to, strict=True):
        wide[d] = extent
    return np.broadcast_to(values.reshape(wide), dims)


def commuted(row: Row) -> str:
    """The two operations in the other order give the same array; where XLA finds no such order, there is none."""
    rule = row["rule"].partition(":")[2]
    found = re.fullmatch(r"Calculate(Bitcast|Transpose|Broadcast)Of(Bitcast|Transpose|Broadcast)\w*", rule)
    if found is None:
        return f"unknown way to commute {rule}"
    outer, inner = found.groups()
    if (outer == "Bitcast") == (inner == "Bitcast"):
        return f"{rule} does not commute a bitcast with something"
    move = outer if inner == "Bitcast" else inner
    values = np.arange(prod(row["operand"])).reshape(row["operand"])

    def moved(array: np.ndarray[Any, Any], axes: Sequence[int], dims: Sequence[int]) -> np.ndarray[Any, Any]:
        return array.transpose(axes) if move == "Transpose" else broadcast(array, dims, axes)

    axes = row["dims"] if "dims" in row else row["broadcast_dims"]
    if outer == "Bitcast":
        shape = row[inner.lower()]
        goal = bitcast_array(moved(values, axes, shape), row["result"])
    else:
        shape = row["result"] if "result" in row else row[outer.lower()]
        goal = moved(bitcast_array(values, row["bitcast"]), axes, shape)

    def instead(dims: Sequence[int], new: Sequence[int]) -> bool:
        if outer == "Bitcast":
            return np.array_equal(moved(bitcast_array(values, dims), new, goal.shape), goal)
        array = moved(values, new, dims)
        return array.shape == tuple(dims) and np.array_equal(bitcast_array(array, goal.shape), goal)

    if row["expected"] is not None:
        same = instead(row["expected"], row["expected_new_dims"])
        return "" if same else "the other order gives another array"
    free = [way for way in ways(move, outer, row["operand"], goal.shape) if instead(*way)]
    return f"{free} would do" if free else ""


def ways(move: str, outer: str, operand: Sequence[int], goal: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Every (shape, axes) the other order could use; where the bitcast comes last, every factoring."""
    if move == "Transpose":
        rank = len(goal) if outer == "Bitcast" else len(operand)
        for axes in map(list, itertools.permutations(range(rank))):
            shape = [0] * rank
            for k, axis in enumerate(axes):
                shape[axis if outer == "Bitcast" else k] = goal[k] if outer == "Bitcast" else operand[axis]
            yield shape, axes
    elif outer == "Bitcast":
        for count in range(len(goal) + 1):
            for axes in map(list, itertools.combinations(range(len(goal)), count)):
                if prod(shape := [goal[axis] for axis in axes]) == prod(operand):
                    yield shape, axes
    else:
        for rank in range(len(operand), len(operand) + len(goal) + 1):
            for axes in map(list, itertools.combinations(range(rank), len(operand))):
                for extra in factorings(prod(goal) // prod(operand), rank - len(operand)):
                    shape, rest = [0] * rank, iter(extra)
                    for k in range(rank):
                        shape[k] = operand[axes.index(k)] if k in axes else next(rest)
                    yield shape, axes


def factorings(number: int, count: int) -> Iterator[tuple[int, ...]]:
    """Every way to write `number` as an ordered product of `count` numbers."""
    if count == 0:
        if number == 1:
            yield ()
        return
    for first in range(1, number + 1):
        if number % first == 0:
            for rest in factorings(number // first, count - 1):
                yield (first, *rest)


RULES: dict[str, Callable[[Row], str]] = {
    "ReshapeIsBitcast": is_bitcast,
    "TransposeIsBitcast": is_bitcast,
    "ReorderLogicalDimensions": reordered,
    "MakeShapeWithDescendingLayoutAndSamePhysicalLayout": descending,
    "DeduceTransposeDimensionsForBitcast": deduced,
    "AlignLayouts": aligned,
    "DecomposeBitcast": decomposed,
    "IsUntiledLayout": is_untiled,
    "IsEffectivelyMostMajorDimension": is_most_major,
    "CommonFactorsMergingTrivialRanges": factors,
    "GetNormalizedLogicalTransposeShape": normalized,
    "InsertedOrDeleted1SizedDimensions": only_ones,
    "DimensionsUnmodifiedByReshape": unmodified,
    "BitcastIndexing_out_to_in": bitcast_indexing,
    "CommuteBitcast": commuted,
}


def rule_of(row: Row) -> str:
    """The rule's name without what follows in `(..)` or after `:`."""
    return re.split(r"[(:]", row["rule"])[0]


@pytest.mark.parametrize("rule", RULES)
def test_every_row(rule: str) -> None:
    """What XLA expects of this rule is what our proofs say."""
    chosen = [row for row in rows(FILE) if rule_of(row) == rule]
    assert chosen
    assert [(row, wrong) for row in chosen if (wrong := RULES[rule](row))] == []


def test_every_rule_is_known() -> None:
    """A row of a rule that nobody interprets here fails, by name, instead of being skipped."""
    unknown = sorted({row["rule"] for row in rows(FILE) if rule_of(row) not in RULES})
    assert not unknown, f"no meaning is given here to the rules {unknown}"


def opposite(row: Row) -> Row | None:
    """The row with a wrong expectation; None where it has no obvious one."""
    expected = row["expected"]
    if isinstance(expected, bool):
        return {**row, "expected": not expected}
    rule = rule_of(row)
    if rule == "AlignLayouts":
        given = expected is not None
        return {**row, "expected": None if given else list(range(len(row["output_dims"])))}
    if rule == "ReorderLogicalDimensions":
        layout = read_layout(expected)
        return {**row, "expected": str(replace(layout, minor_to_major=layout.minor_to_major[::-1]))}
    if rule == "BitcastIndexing_out_to_in":
        return {**row, "expected": re.sub(r"\d+(?=\D*\)$)", lambda m: str(int(m[0]) + 1), expected)}
    if rule == "GetNormalizedLogicalTransposeShape":
        count = len(expected["permutation"])
        return {**row, "expected": {**expected, "permutation": list(range(count))}}
    if rule == "CommonFactorsMergingTrivialRanges":
        return {**row, "expected": [*expected, [len(row["from_dims"]) + 1, len(row["to_dims"])]]}
    if rule == "DeduceTransposeDimensionsForBitcast":
        given = expected is not None
        return {**row, "expected": None if given else list(range(len(read_layout(row["input"]).dims)))}
    if rule == "MakeShapeWithDescendingLayoutAndSamePhysicalLayout":
        layout = read_layout(expected)
        return {**row, "expected": str(replace(layout, dims=layout.dims[::-1]))}
    if rule == "DecomposeBitcast" and expected["kind"] == "trt":
        dims = expected["transpose2_dims"][::-1]
        return {**row, "expected": {**expected, "transpose2_dims": dims, "transpose2_identity": dims == sorted(dims)}}
    if rule == "CommuteBitcast" and row.get("expected_new_dims") not in (None, [0]):
        return {**row, "expected_new_dims": row["expected_new_dims"][::-1]}
    if rule == "DimensionsUnmodifiedByReshape":
        return {**row, "expected": [*expected, [len(row["input_dims"]) - 1, len(row["output_dims"])]]}
    return None


def planted(row: Row) -> str:
    wrong = opposite(row)
    assert wrong is not None
    try:
        return RULES[rule_of(row)](wrong)
    except (lp.LayoutError, AssertionError, ValueError, IndexError) as refused:
        return str(refused) or "refused"


@pytest.mark.parametrize("rule", RULES)
def test_a_wrong_expectation_is_found(rule: str) -> None:
    """A planted wrong expectation is reported, so the rows above can fail."""
    chosen = [row for row in rows(FILE) if rule_of(row) == rule and opposite(row) is not None]
    assert chosen
    assert [row for row in chosen if not excused(row) and not planted(row)] == []


def excused(row: Row) -> bool:
    """Whether a reason explains the wrong expectation too: of dimensions of extent 1 XLA asks more than we do."""
    return rule_of(row) == "TransposeIsBitcast" and 1 in read_layout(row["input"]).dims
