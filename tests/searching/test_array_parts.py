"""What is proved of a part without the dimensions that are its own is proved of the part, and the other way round."""

from __future__ import annotations

import random

import pytest

from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.kernel_text import read_kernel
from layoutproof.pallas.judge import judge
from layoutproof.searching.array_parts import ArrayPart, parts, reduced
from layoutproof.searching.configurations import ALONE, AT_ONCE, LEFT

GRID_NAMES = "ijk"


def drawn(seed: int) -> Kernel:
    """A kernel with one input and one output, whose index maps and grid are right or a little wrong."""
    take = random.Random(seed)
    rank = take.randint(1, 3)
    grid = [take.choice([1, 2, 3, 4]) for _ in range(rank)]
    names = list(GRID_NAMES[:rank])

    def operand(name: str) -> dict[str, object]:
        dims, block, index = [], [], []
        left = names[:]
        for _ in range(take.randint(1, 3)):
            size = take.choice([1, 2, 5, 8])
            chosen = take.choice(left) if left and take.random() < 0.8 else ""
            if chosen and take.random() < 0.85:
                left.remove(chosen)
            programs = grid[names.index(chosen)] if chosen else 1
            many = max(1, programs + take.choice([0, 0, 0, 0, 1, -1]))
            dims.append(max(1, many * size - take.choice([0, 0, size // 2])))
            block.append(size)
            wrong = [f"{chosen} + 1", f"max({chosen} - 1, 0)", f"{chosen} * 2", f"{chosen} // 2"]
            index.append("0" if not chosen else chosen if take.random() < 0.75 else take.choice(wrong))
        said = f"({', '.join(names)}) -> ({', '.join(index)})"
        return {"name": name, "array": f"f32[{','.join(map(str, dims))}]", "block": block, "index": said}

    semantics = [take.choice(["parallel", "arbitrary"]) for _ in names]
    return kernel_of({"grid": grid, "semantics": semantics, "inputs": [operand("x")], "outputs": [operand("o")]})


def kernel_of(mapping: dict[str, object]) -> Kernel:
    found, _ = read_kernel(mapping, {"f32": 32})
    return found


def proved(kernel: Kernel, part: ArrayPart, names: tuple[str, ...]) -> bool:
    found = judge(part.of(kernel), names=names, fixes=False)
    return all(f.verdict is Verdict.PROVED for f in found if f.severity == "error")


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_a_reduced_part_is_proved_where_the_part_is(first: int) -> None:
    less = 0
    for seed in range(first, first + 40):
        kernel = drawn(seed)
        for names, of in (
            (ALONE, parts(kernel)),
            (LEFT, parts(kernel, outputs=True, after=True)),
            (AT_ONCE, parts(kernel, outputs=True, most=2)),
        ):
            for part in of:
                small = reduced(part, kernel.grid_names, leading=names is LEFT)
                less += small is not part
                assert proved(kernel, small, names) == proved(kernel, part, names), (seed, names, part)
    assert less > 20


def test_a_dimension_of_its_own_has_one_program_for_each_block() -> None:
    def left(grid: list[int], array: str, block: list[int], index: str, leading: bool = False) -> tuple[object, ...]:
        kernel = kernel_of({"grid": grid, "outputs": [{"name": "o", "array": array, "block": block, "index": index}]})
        (part,) = parts(kernel, outputs=True)
        return reduced(part, kernel.grid_names, leading).grid

    assert left([4, 2], "f32[30,16]", [8, 8], "(i,j) -> (i,j)") == (1, 1)
    # a block too few, one too many, twice in the map, and with arithmetic
    assert left([3], "f32[30]", [8], "(i) -> (i,)") == (3,)
    assert left([5], "f32[30]", [8], "(i) -> (i,)") == (5,)
    assert left([4], "f32[30,30]", [8, 8], "i -> (i,i)") == (4,)
    assert left([4], "f32[30]", [8], "(i) -> (3 - i,)") == (4,)
    # the order counts only up to the first dimension that is none of its own
    assert left([2, 3, 4], "f32[16,32]", [8, 8], "(i,j,k) -> (i,k)") == (1, 1, 1)
    assert left([2, 3, 4], "f32[16,24,32]", [8, 8, 8], "(i,j,k) -> (i,2 - j,k)", leading=True) == (1, 3, 4)
    # int32 would not hold the last element
    assert left([1 << 21], f"f32[{1 << 31}]", [1 << 10], "(i) -> (i,)") == (1 << 21,)
