"""One row of axe_cases.jsonl against layoutproof: the sentence that says what is wrong, or "".

Where TVM's recorded answer is not the right one, `defect` names which of its documented defects (facts of
apache-tvm 0.27.0.post1) explains it; an answer that nothing explains is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from layoutproof.algebra.axe import canonical_form as c
from layoutproof.algebra.axe import grouping, recognise, scopes, slices, sums, tiling, wellformed, width
from layoutproof.algebra.axe.factories import to_psum
from layoutproof.algebra.axe.locate import forward
from layoutproof.core.errors import LayoutError, Reason
from layoutproof.core.progressions import low_high
from layoutproof.layouts import axe
from layoutproof.layouts.axe import AxeLayout
from layoutproof.layouts.axe.layout import axis_iters
from tests.oracles import axe_plain

Row = dict[str, Any]


def read(value: Any) -> AxeLayout:
    """A layout of the file, whether mapping or text."""
    return axe.read(value)


def is_layout(value: Any) -> bool:
    return isinstance(value, dict) and ("D" in value or value.get("kind") == "compose")


def rejected(question: Callable[[], Any]) -> bool:
    """Whether the answer is a Reason or a LayoutError."""
    try:
        return isinstance(question(), Reason)
    except LayoutError:
        return True


def compare(found: Any, expected: Any, cuda: bool = False) -> str:
    """Equal as maps and, in our canonical form, as text; None is a Reason."""
    if expected is None or expected == "reject":
        return "" if isinstance(found, Reason) else f"expected none, found {found}"
    if isinstance(found, Reason):
        return f"expected {expected}, found none: {found}"
    if not is_layout(expected):
        return "" if found == expected else f"expected {expected}, found {found}"
    wanted = read(expected)
    if cuda:
        fused = scopes.same_threads(found, wanted)
        return "" if fused is True else f"expected {wanted} with threads fused, found {found} ({fused})"
    if not c.same(found, wanted):
        return f"expected {wanted}, found {found}"
    forms = [str(c.canonical(each)) for each in (plain(found), plain(wanted))]
    return "" if forms[0] == forms[1] else f"equal maps with the canonical forms {forms}"


def plain(layout: AxeLayout) -> AxeLayout:
    return AxeLayout(layout.D, layout.R, layout.O, None, None, layout.swizzle)


def props(row: Row) -> str:
    """What the file says of a layout, recomputed without enumeration."""
    layout, wanted = read(row["layout"]), row["props"]
    if layout.size() != wanted["size"]:
        return f"size {layout.size()}, not {wanted['size']}"
    for axis, facts in wanted["axes"].items():
        found = c.axis_facts(layout, axis)
        mine = {
            "min": found.low,
            "max": found.high,
            "span": found.span,
            "image": found.image,
            "holes": found.holes,
            "distinct_replica_offsets": found.replicas,
        }
        # a null was too large to enumerate when the file was made
        if any(value is not None and mine[name] != value for name, value in facts.items()):
            return f"axis {axis}: {mine}, not {facts}"
    for name, found_verdict in (("D_injective", c.injective(layout)), ("fibers_disjoint", c.fibers_disjoint(layout))):
        if wanted[name] is not None and found_verdict is not wanted[name]:
            return f"{name} is {found_verdict}"
    return ""


def apply(layout: AxeLayout, args: list[int], shape: list[int] | None, expected: Any) -> str:
    """TVM's apply: the base place of one element; one argument is a flat index, n_D of them are digits."""
    if shape is None and len(args) > 1:
        shape = [e for e, _, _ in layout.D]  # type: ignore[misc]
    count = args[0] + 1 if shape is None else int(axe_plain.flat([e - 1 for e in shape], shape)) + 1
    if wellformed.is_swizzle(layout) and count > layout.size():
        # a bare swizzle has no size of its own
        layout = wellformed.widened(layout, count)
    alone = AxeLayout(layout.D, (), layout.O, None, None, layout.swizzle)
    in_range = shape is not None or args[0] < layout.size()
    if expected == "reject" or not in_range:
        ok = rejected(lambda: forward(alone, args, shape or [layout.size()]))
        return "" if ok else "an index outside was taken"
    (found,) = forward(alone, args, shape or [layout.size()])
    return "" if axe_plain.point(found) == axe_plain.point(expected) else f"{found}, not {expected}"


def tvm_span(layout: AxeLayout, axis: str | None) -> int:
    """What TVM computes: offset counted, strides with their sign, memory axes summed, swizzle ignored."""
    axes = [axis] if axis else [a for a in layout.axes() if scopes.owns(a) is False]
    iters = [(e, s) for e, s, a in (*layout.D, *layout.R) if a in axes]
    total: Any = 1 + sum((e - 1) * s for e, s in iters) + sum(layout.O.get(a, 0) for a in axes)  # type: ignore[misc, operator]
    return int(total)


def span(layout: AxeLayout, args: list[str], expected: Any) -> str:
    """Our spans; where TVM's number differs, one of its four span defects must give exactly that number."""
    if isinstance(expected, dict):
        found = tiling.spans(layout)
        return "" if found == expected else f"{found}, not {expected}"
    memory = [a for a in layout.axes() if scopes.owns(a) is False]
    axis = args[0] if args else None
    if axis or len(memory) == 1:
        mine = tiling.span(layout, axis or memory[0])
        if mine == expected:
            return ""
    if tvm_span(layout, axis) == expected:
        return "" if defect_of_span(layout, memory, axis) else f"TVM's {expected} is explained by no defect"
    return f"{expected} is neither ours nor TVM's formula"


def defect_of_span(layout: AxeLayout, memory: list[str], axis: str | None) -> str:
    if axis is None and len(memory) > 1:
        return "span(): sums different memory axes"
    if any(layout.O.values()):
        return "span: offset counted"
    if any(s < 0 for _, s, _ in (*layout.D, *layout.R)):  # type: ignore[operator]
        return "span: negative strides"
    return "span ignores the swizzle" if layout.swizzle is not None else ""


def with_scopes(recogniser: Callable[..., Any], part: AxeLayout, args: list[Any], cuda: bool) -> Any:
    """A tile recogniser; for a CUDA target first on common thread axes."""
    tiled = read(args[0])
    if cuda:
        aligned = scopes.align(part, tiled)
        if isinstance(aligned, Reason):
            return aligned
        part, tiled = aligned
    parted = wellformed.widened(part, _count(args[2]))
    return recogniser(parted, wellformed.widened(tiled, _count(args[1])), args[1], args[2])


def _count(shape: list[int]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


def lost_shapes(layout: AxeLayout, args: list[Any], expected: Any) -> str:
    """`tile` whose keyword arguments were not recorded: some shapes of at most three dimensions must explain it."""
    wanted = read(expected)
    outer_size = int(wanted.size()) // int(layout.size())
    for rank in (2, 1, 3):
        for inner_shape, outer_shape in itertools.product(factors(int(layout.size()), rank), factors(outer_size, rank)):
            tiled_shape = [a * b for a, b in zip(inner_shape, outer_shape, strict=True)]
            outer = read(args[0]) if args else recognise.is_tile_inner(layout, wanted, tiled_shape, inner_shape)
            if isinstance(outer, Reason):
                continue
            found = tiling.tile(outer, outer_shape, layout, inner_shape)
            if not isinstance(found, Reason) and c.same(found, wanted):
                return ""
    return f"no shapes make it {wanted}"


def factors(number: int, rank: int) -> Iterator[list[int]]:
    if rank == 1:
        yield [number]
        return
    for first in (d for d in range(1, number + 1) if number % d == 0):
        for rest in factors(number // first, rank - 1):
            yield [first, *rest]


def operation(row: Row) -> str:
    """A recorded call of TVM's: our result is the same map, or TVM's is explained by a documented defect."""
    op, args, cuda = row["op"], list(row.get("args", [])), row.get("target") == "cuda"
    layout = read(row["layout"])
    args += list(row.get("kwargs", {}).values()) if op not in ("apply", "size", "span") else []
    if op not in CALLS and op not in ("apply", "span", "verify_well_formed", "canonicalize"):
        return f"unknown operation {op!r}: add it to tests/oracles/axe_rows.py"
    if op == "apply":
        return apply(layout, args, row.get("kwargs", {}).get("shape"), row["expect"])
    if "expect_error" in row:
        if op == "verify_well_formed":
            return "" if wellformed.problems(layout) else "TVM refuses it, and nothing is wrong"
        return "" if rejected(lambda: CALLS[op](layout, args, cuda)) else f"TVM refuses: {row['expect_error']}"
    expected = row["expect"]
    if op == "span":
        return span(layout, args, expected)
    if op == "verify_well_formed":
        found = wellformed.problems(layout)
        return "" if (not found) == expected else f"{[str(p) for p in found]}"
    if op == "canonicalize":
        return canonicalize(layout, expected, cuda)
    if op == "tile" and len(args) < 3:
        return lost_shapes(layout, args, expected)
    if expected is None:
        # TVM's None also stands for shapes that are not admitted, which here are bad input
        return "" if rejected(lambda: CALLS[op](layout, args, cuda)) else "TVM finds none, we do"
    return compare(CALLS[op](layout, args, cuda), expected, cuda and op == "slice")


def canonicalize(layout: AxeLayout, expected: Any, cuda: bool) -> str:
    found = scopes.fuse_all(layout) if cuda else c.canonical(layout)
    if isinstance(found, Reason):
        return str(found)
    if c.canonical(found) != found:
        return f"{found} is not canonical"
    wrong = compare(found, expected)
    if wrong:
        return wrong
    wanted = read(expected)
    same_text = (found.D, found.R) == (wanted.D, wanted.R)
    return "" if same_text or c.canonical(wanted) != plain(wanted) else f"{found}, TVM writes {wanted}"


def grouped(result: Any) -> Any:
    if isinstance(result, Reason):
        return result
    layout, seps = result
    seps = [list(s) for s in seps] if seps and isinstance(seps[0], tuple) else list(seps)
    mapping = {"kind": "tile", "D": [list(i) for i in layout.D], "R": [list(i) for i in layout.R], "O": dict(layout.O)}
    return [mapping, seps]


CALLS: dict[str, Callable[[AxeLayout, list[Any], bool], Any]] = {
    "size": lambda it, a, _: it.size(*a),
    "group": lambda it, a, _: grouped(grouping.group(it, a[0])),
    "group_many": lambda it, a, _: grouped(grouping.group_many(it, a[0])),
    "tile": lambda it, a, _: tiling.tile(read(a[0]), a[1], wellformed.widened(it, _count(a[2])), a[2]),
    "tile_to": lambda it, a, _: tiling.tile_to(wellformed.widened(it, _count(a[1])), a[0], a[1]),
    "is_tile_inner": lambda it, a, cuda: with_scopes(recognise.is_tile_inner, it, a, cuda),
    "is_tile_outer": lambda it, a, cuda: with_scopes(recognise.is_tile_outer, it, a, cuda),
    "direct_sum": lambda it, a, _: sums.direct_sum(read(a[0]), a[1], wellformed.widened(it, _count(a[2])), a[2]),
    "is_direct_sum_right": lambda it, a, _: sums.is_direct_sum_right(it, read(a[0]), a[1], a[2]),
    "is_direct_sum_left": lambda it, a, _: sums.is_direct_sum_left(it, read(a[0]), a[1], a[2]),
    "slice": lambda it, a, _: slices.slice_(wellformed.widened(it, _count(a[0])), a[0], [tuple(r) for r in a[1]]),
    "storage": lambda it, a, _: width.storage(it),
    "unpack": lambda it, a, _: width.unpack(it, *a),
    "pack": lambda it, a, _: width.pack(it, *a),
    "broadcast": lambda it, a, _: width.broadcast(it, *a),
    "permute_dims": lambda it, a, _: grouping.permute_dims(it, a[0]),
    "permute_by_groups": lambda it, a, _: grouping.permute_by_groups(it, a[0], a[1]),
    "apply_to_shape": lambda it, a, _: list(grouping.apply_to_shape(it, a[0], a[1])),
    "get_scope": lambda it, a, _: wellformed.scope_of(it),
    "is_trivial": lambda it, a, _: wellformed.is_trivial(it),
    "is_swizzle": lambda it, a, _: wellformed.is_swizzle(it),
    "is_trainium": lambda it, a, _: wellformed.is_trainium(it),
    "to_psum": lambda it, a, _: to_psum(it),
}


def every_map(row: Row) -> str:
    """For rows of any other form: each small layout in it, decided by structure and by enumeration, agrees."""
    layouts = [read(value) for value in row.values() if is_layout(value)]
    for layout in layouts:
        if int(layout.size()) > 20_000:
            continue
        table = axe_plain.table(layout)
        if axe_plain.table(c.canonical(layout)) != table:
            return f"canonical({layout}) is another map"
        places = [place for fiber in table for place in fiber]
        if c.fibers_disjoint(layout) != (len(set(places)) == len(places)):
            return f"fibers_disjoint({layout})"
        for axis in layout.axes():
            reached = {dict(place).get(axis, 0) for place in places}
            if layout.swizzle is None and low_high(*axis_iters(layout, axis)) != (min(reached), max(reached)):
                return f"bounds of {layout}"
    return ""
