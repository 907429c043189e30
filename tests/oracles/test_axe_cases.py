"""Every row of axe_cases.jsonl: the paper's examples and errors, TVM's calls and defects, layouts in the wild."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from layoutproof.algebra.axe import canonical_form as c
from layoutproof.algebra.axe import factories, grouping, recognise, scopes, slices, sums, tiling, wellformed, width
from layoutproof.algebra.axe.locate import backward, forward
from layoutproof.core.errors import LayoutError, Reason
from tests.oracles import axe_plain
from tests.oracles.axe_rows import (
    Row,
    apply,
    compare,
    every_map,
    is_layout,
    operation,
    props,
    read,
    rejected,
    span,
)
from tests.recorded import rows

pytestmark = pytest.mark.slow

FILE = "axe_cases.jsonl"


def example(row: Row) -> str:
    """Sampled points of a published layout are all its places there, and its facts hold."""
    layout = read(row["layout"])
    for coordinate, wanted in row["points"]:
        found = {axe_plain.point(place) for place in forward(layout, coordinate, row["shape"])}
        if found != {axe_plain.point(place) for place in wanted}:
            return f"{coordinate}: {found}, not {wanted}"
        for place in wanted:
            origins = [index for index, _ in backward(layout, place, row["shape"])]
            if tuple(coordinate) not in origins:
                return f"backward({place}) is {origins}, without {coordinate}"
    return props(row)


def algebra(row: Row) -> str:
    """The paper's worked operations."""
    op = row["op"]
    if op in ("tile", "direct_sum"):
        operate = tiling.tile if op == "tile" else sums.direct_sum
        return compare(operate(read(row["A"]), row["SA"], read(row["B"]), row["SB"]), row["expect"])
    if op in ("is_tile_of", "tile_of"):
        found = recognise.is_tile_inner(read(row["B"]), read(row["tiled"]), row["S_tiled"], row["SB"])
        return compare(found, row["expect"])
    layout = next(read(row[key]) for key in ("layout", "L", "A") if key in row)
    shape = next((row[key] for key in ("shape", "S", "SA") if key in row), None)
    if op == "slice":
        return compare(slices.slice_(layout, shape, [tuple(r) for r in row["region"]]), row["expect"])
    if op == "group":
        found = grouping.group(layout, shape)
        return compare(found if isinstance(found, Reason) else found[0], row["expect"])
    return f"unknown operation {op!r}"


def paper_error(row: Row) -> str:
    """Where the paper is wrong, the right answer."""
    if "expect_cardinality" in row:
        found = len(forward(read(row["layout"]), (0,)))
        return "" if found == row["expect_cardinality"] != row["claimed"] else f"{found} places"
    if "region" in row:
        return sliced(row)
    if "tiled" in row and "B" in row:
        found = recognise.is_tile_inner(read(row["B"]), read(row["tiled"]), row["S_tiled"], row["SB"])
        return compare(found, row.get("expect", row.get("spec")))
    if "Alg.1" in row["name"]:
        grid = read("S[(8,8):(8,1)]")
        found = grouping.group(grid, (8, 8))
        return "" if not isinstance(found, Reason) and found[0].D == grid.D else str(found)
    return every_map(row)


def sliced(row: Row) -> str:
    """A slice is the right one at every index, or there is none; outside the domain it is refused."""
    layout, shape, region = read(row["layout"]), row["shape"], [tuple(r) for r in row["region"]]
    outside = any(not 0 <= b < e <= extent for (b, e), extent in zip(region, shape, strict=True))
    if outside:
        try:
            return f"outside the domain, found {slices.slice_(layout, shape, region)}"
        except LayoutError:
            return ""
    if row.get("spec") == "reject":
        return "" if rejected(lambda: slices.slice_(layout, shape, region)) else "a slice was found"
    found = slices.slice_(layout, shape, region)
    counts = [e - b for b, e in region]
    wanted = [
        axe_plain.places(layout, axe_plain.flat([u + b for u, (b, _) in zip(index, region, strict=True)], shape))
        for index in axe_plain.box(counts)
    ]
    for local, address in row.get("spec_points", []):
        if wanted[local] != {axe_plain.point({"m": address})}:
            return f"the file's point {local} -> {address} is not the layout's"
    if isinstance(found, Reason):
        single = [next(iter(places)) for places in wanted] if not layout.R else []
        return f"the slice exists: {found}" if single and axe_plain.is_digits(single) else ""
    if is_layout(row.get("tvm")) and axe_plain.table(read(row["tvm"])) == wanted:
        return "TVM's slice is right, so the row records no defect"
    return "" if axe_plain.table(found) == wanted else f"{found} is another map"


def tvm_bug(row: Row) -> str:
    """The right answer, and that TVM's recorded one is not."""
    op = row.get("op")
    if "spec" in row and "tvm" in row and row["spec"] == row["tvm"]:
        return "the row records no defect"
    if op == "canonical_structural_equal":
        return "" if c.same(read(row["A"]), read(row["B"])) is row["spec"] else "same says otherwise"
    if op in ("apply", "size", "span", "pack", "unpack"):
        layout = read(row["layout"])
        if op == "apply":
            return apply(layout, row["args"], row.get("kwargs", {}).get("shape"), row["spec"])
        if op == "size":
            return "" if layout.size() == row["spec"] else f"{layout.size()}"
        if op == "span":
            return span(layout, row.get("args", []), row["spec"])
        return compare(getattr(width, op)(layout, *row["args"]), row["spec"])
    if op == "canonicalize":
        layout = read(row["layout"])
        return compare(scopes.fuse_all(layout) if row.get("target") == "cuda" else c.canonical(layout), row["spec"])
    if op is not None:
        return f"unknown operation {op!r}"
    if "expr" in row:
        if row["spec"] == "reject":
            return "" if rejected(lambda: read(row["expr"])) else "the text was read"
        return compare(read(row["expr"]), row["spec"])
    if "tiled" in row:
        if "B" in row:
            found = recognise.is_tile_inner(read(row["B"]), read(row["tiled"]), row["S_tiled"], row["SB"])
        else:
            found = recognise.is_tile_outer(read(row["A"]), read(row["tiled"]), row["S_tiled"], row["SA"])
        return compare(found, row["spec"]) if "spec" in row else ""
    if "sum" in row:
        if "B" in row:
            return compare(
                sums.is_direct_sum_right(read(row["B"]), read(row["sum"]), row["interleaved"], row["SB"]), row["spec"]
            )
        return compare(
            sums.is_direct_sum_left(read(row["A"]), read(row["sum"]), row["interleaved"], row["SA"]), row["spec"]
        )
    if {"A", "B", "SA", "SB"} <= set(row):
        found = tiling.tile(read(row["A"]), row["SA"], read(row["B"]), row["SB"])
        if is_layout(row.get("tvm")) and not isinstance(found, Reason) and c.same(found, read(row["tvm"])):
            return "ours is the defective one"
        return compare(found, row["spec"]) if "spec" in row else ""
    if "region" in row:
        return sliced(row)
    return without_operation(row)


def without_operation(row: Row) -> str:
    """A layout that TVM takes and should not, or on which it fails: every decision is made, the stated ones hold."""
    layout = read(row["layout"])
    facts: dict[str, Callable[[], Any]] = {
        "D_injective": lambda: c.injective(layout),
        "fibers_disjoint": lambda: c.fibers_disjoint(layout),
    }
    spec = row.get("spec", {})
    for name, value in spec.items() if isinstance(spec, dict) else ():
        if name in facts and facts[name]() is not value:
            return f"{name} is {facts[name]()}"
    if isinstance(spec, dict) and "witness" in spec:
        first, second = (axe_plain.places(layout, index) for index in spec["witness"])
        if not first & second:
            return f"{spec['witness']} share no place"
    if row["name"].startswith("verify_well_formed") and row.get("tvm") is True and not wellformed.problems(layout):
        return "TVM finds it well-formed, and so do we"
    if c.canonical(c.canonical(layout)) != c.canonical(layout) or not tiling.spans(layout):
        return "canonical form or spans"
    return every_map(row)


def blog_bug(row: Row) -> str:
    """Forward gives the set of all places; backward every origin, none at holes."""
    layout, shape, spec = read(row["layout"]), row["shape"], row.get("spec")
    if "hw" in row:
        origins = backward(layout, row["hw"], shape)
        if spec == "no element":
            return "" if origins == [] else f"{origins}"
        wanted = tuple(spec if isinstance(spec, list) else row["coord"])
        return "" if {index for index, _ in origins} == {wanted} else f"{origins}, not {wanted}"
    if isinstance(spec, str) and spec.startswith("reject"):
        return "" if rejected(lambda: forward(layout, row["coord"], shape)) else "the shape was admitted"
    if "spec_count" in row:
        found = forward(layout, row["coord"], shape)
        return "" if len(found) == row["spec_count"] != row["blog_count"] else f"{len(found)} places"
    if isinstance(spec, list) and "coord" in row:
        found = {axe_plain.point(place) for place in forward(layout, row["coord"], shape)}
        return "" if found == {axe_plain.point(place) for place in spec} else f"{found}"
    for index in axe_plain.box(shape):
        for place in forward(layout, index, shape):
            if index not in [origin for origin, _ in backward(layout, place, shape)]:
                return f"backward misses {index}"
    return ""


def wild_bug(row: Row) -> str:
    """A published layout that puts two elements at one place is found out."""
    layout = read(row["layout"]).on(row["shape"])
    return "" if not c.fibers_disjoint(layout) and wellformed.problems(layout) else "found clean"


def tvm_factory(row: Row) -> str:
    """Layouts that TVM's factories return: admitted, the facts as recorded, and our own factories give the same."""
    layout = read(row["layout"]).on(row["shape"])
    if "compose" in row:
        swizzled = read({**row["layout"], "swizzle": row["compose"]})
        if str(swizzled.swizzle) != str(read(str(swizzled)).swizzle) or not c.fibers_disjoint(swizzled):
            return f"{swizzled}"
    own: Any = None
    if row["factory"] == "TileLayout.trainium":
        own = factories.trainium(*row["args"])
    elif row["factory"] == "tmem_datapath_layout":
        own = factories.tmem_datapath(*row["args"])
    if own is not None and (isinstance(own, Reason) or not c.same(own, layout)):
        return f"our factory gives {own}"
    return props(row)


def wild(row: Row) -> str:
    """Literal layouts of public code: facts as recorded; an extent of 0 (Relax writes the sharding S[0]) is refused."""
    if any(extent < 1 for extent, _, _ in row["layout"]["D"]):
        return "" if rejected(lambda: read(row["layout"])) else "an extent below 1 was read"
    return props(row)


CATEGORIES: dict[str, Callable[[Row], str]] = {
    "example": example,
    "algebra": algebra,
    "paper_error": paper_error,
    "tvm_test": operation,
    "tvm_apply": operation,
    "tvm_factory": tvm_factory,
    "wild": wild,
    "tvm_bug": tvm_bug,
    "wild_bug": wild_bug,
    "blog_bug": blog_bug,
}


def test_every_category_is_known() -> None:
    """The file holds no category that these tests pass over, and each of theirs has rows."""
    assert set(Counter(row["cat"] for row in rows(FILE))) == set(CATEGORIES)


@pytest.mark.parametrize("category", CATEGORIES)
def test_rows(category: str) -> None:
    """Every row of one category holds."""
    mine = [row for row in rows(FILE) if row["cat"] == category]
    failed = []
    for row in mine:
        try:
            wrong = CATEGORIES[category](row)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            failed.append(f"{row['id']}: {wrong}")
    assert mine
    assert not failed, f"{len(failed)} of {len(mine)}:\n" + "\n".join(failed)


@pytest.mark.parametrize(
    ("category", "change"),
    [
        ("example", {"points": [[[0, 0], [{"warp": 4}]]]}),
        ("algebra", {"expect": {"D": [[2, 7, "m"]]}}),
        ("wild_bug", {"layout": {"D": [[16, 1, "m"]]}, "shape": [16]}),
        ("tvm_apply", {"expect": {"m": 123456}}),
    ],
)
def test_the_rows_can_fail(category: str, change: dict[str, Any]) -> None:
    """A row with a planted wrong answer is found out."""
    row = next(row for row in rows(FILE) if row["cat"] == category)
    try:
        wrong = CATEGORIES[category]({**row, **change})
    except LayoutError as error:
        wrong = str(error)
    assert wrong
