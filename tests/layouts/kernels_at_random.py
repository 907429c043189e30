"""Random small kernels, drawn by hypothesis: mappings whose every window lies in its array, as interpret mode needs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

_NAMES = ("i", "j", "k")


@st.composite
def operands(draw: st.DrawFn, grid: tuple[int, ...], tables: dict[str, int], kinds: tuple[str, ...]) -> dict[str, Any]:
    """An operand with an int32 array: block kinds mixed as they come, index maps kept inside by min and max."""
    rank = draw(st.integers(1, 3))
    dims, block, results = [], [], []
    for _ in range(rank):
        extent, size = draw(st.integers(1, 7)), draw(st.integers(1, 8))
        kind = draw(st.sampled_from(kinds))
        low, high = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        if kind == "element":
            size = min(size, low + extent + high)
        count = {
            "blocked": -(-extent // size),
            "squeezed": extent,
            "element": low + extent + high - size + 1,
        }[kind]
        dims.append(extent)
        block.append({"blocked": size, "squeezed": None, "element": f"Element({size}, ({low}, {high}))"}[kind])
        results.append(f"min(max({draw(expressions(grid, tables))}, 0), {count - 1})")
    names = ", ".join(_NAMES[: len(grid)])
    return {
        "array": f"s32[{','.join(map(str, dims))}]",
        "block": block,
        "index": f"({names}) -> ({', '.join(results)})",
        "memory": draw(st.sampled_from(["vmem", "smem"])),
        "buffers": draw(st.sampled_from([1, 2, 3])),
        "lookahead": draw(st.booleans()),
        "revisit": draw(st.sampled_from(["immediate", "any"])),
        "live": draw(st.booleans()),
    }


@st.composite
def expressions(draw: st.DrawFn, grid: tuple[int, ...], tables: dict[str, int], depth: int = 2) -> str:
    """Integer arithmetic on the grid's names and on entries of tables that the index stays inside of."""
    if depth == 0 or draw(st.booleans()):
        names = [*_NAMES[: len(grid)], *(f"{t}[{g} % {n}]" for t, n in tables.items() for g in _NAMES[: len(grid)])]
        return draw(st.sampled_from([*names, "0", "1", "3"]))
    left, right = (draw(expressions(grid, tables, depth - 1)) for _ in range(2))
    op = draw(st.sampled_from(["+", "-", "*", "//", "%", "min", "max", "select"]))
    if op in ("//", "%"):
        return f"({left}) {op} {draw(st.integers(1, 4))}"
    if op in ("min", "max"):
        return f"{op}({left}, {right})"
    if op == "select":
        return f"select({left} < {right}, {right}, {left})"
    return f"({left}) {op} ({right})"


@st.composite
def kernels(draw: st.DrawFn, kinds: tuple[str, ...] = ("blocked", "squeezed", "element")) -> dict[str, Any]:
    """A kernel with one input and one output, and half of the time a table."""
    grid = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    tables = draw(st.sampled_from([{}, {"t": 3}]))
    whole = kinds if draw(st.booleans()) else ("blocked", "squeezed")
    return {
        "name": "random",
        "grid": dict(zip(_NAMES, grid, strict=False)),
        "inputs": [{"name": "x", **draw(operands(grid, {}, whole))}],
        "outputs": [{"name": "o", **draw(operands(grid, tables, whole))}],
        "tables": {name: {"array": f"s32[{n}]"} for name, n in tables.items()},
        **draw(extras(len(grid))),
    }


@st.composite
def extras(draw: st.DrawFn, rank: int) -> dict[str, Any]:
    """Fields of a kernel that say nothing of its windows, each there half of the time."""
    fields: dict[str, st.SearchStrategy[Any]] = {
        "semantics": st.lists(
            st.sampled_from(["parallel", "core_parallel", "arbitrary"]), min_size=rank, max_size=rank
        ),
        "vmapped": st.sampled_from([[], ["i"]]),
        "scratch": st.lists(st.just({"array": "f32[8,128]", "memory": "smem"}), max_size=2),
        "vmem_limit": st.integers(1, 1 << 27),
        "pipeline": st.sampled_from(["pallas_call", "emit_pipeline"]),
        "platform": st.sampled_from(["tpu", "triton", "mosaic_gpu"]),
    }
    return {key: draw(values) for key, values in fields.items() if draw(st.booleans())}
