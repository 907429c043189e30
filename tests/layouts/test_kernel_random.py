"""Random kernels: text and back, the walk by hand against the map of elements, and both against jax run for real."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.kernel.kernel import Block, Kernel
from layoutproof.kernel.windows import program_map
from tests.layouts.kernels_at_random import kernels
from tests.pallas.reference import operand_of, windows, written_by

pytestmark = pytest.mark.slow

TABLE = {"t": [2, 0, 5]}


def read(mapping: dict[str, Any]) -> Kernel:
    kernel: Kernel = lp.read_layout({"kernel": mapping}).kernel
    return kernel


@given(kernels())
def test_a_kernel_prints_what_reads_as_itself(mapping: dict[str, Any]) -> None:
    """The mapping of a kernel is read as the same kernel, field by field, and is its own mapping."""
    layout = lp.read_layout({"kernel": mapping})
    again = lp.read_layout({"kernel": layout.mapping()})
    assert repr(again.kernel) == repr(layout.kernel)
    assert again == layout
    assert str(again) == str(layout)
    assert again.mapping() == layout.mapping()


@given(kernels())
def test_windows_are_what_the_map_of_elements_says(mapping: dict[str, Any]) -> None:
    """For every program, the elements of the window are the places of its replicas."""
    layout = lp.read_layout({"blockspec": {"kernel": mapping, "operand": "x"}})
    m, blocks = layout.index_map(), program_map(layout.kernel, layout.operand)
    for program in itertools.product(*map(range, m.domain.extents)):
        window = windows(layout.kernel, layout.operand, program)
        places = {m.at(program, replica) for replica in itertools.product(*map(range, m.replicas.extents))}
        assert places == set(itertools.product(*(range(*ends) for ends in window)))
        assert tuple(map(Block.start, layout.operand.block, blocks.at(program))) == tuple(first for first, _ in window)


@settings(max_examples=12)
@given(kernels(), st.sampled_from(sorted(TABLE)))
def test_interpret_mode_writes_what_the_walk_says(mapping: dict[str, Any], table: str) -> None:
    """Every element is written last by the program that `written_by` names, and by none where it says none."""
    pytest.importorskip("jax")
    from tests.layouts.kernels_in_jax import NEVER, written

    mapping = {**mapping, "inputs": []}
    kernel = read(mapping)
    found = written_by(kernel, operand_of(kernel, role="out"), tables=TABLE)
    assert np.array_equal(written(kernel, TABLE), np.where(found < 0, NEVER, found))


@settings(max_examples=12)
@given(kernels())
def test_interpret_mode_reads_what_the_walk_says(mapping: dict[str, Any]) -> None:
    """Every program reads the elements of its window; what a window has outside the array is not compared."""
    pytest.importorskip("jax")
    from tests.layouts.kernels_in_jax import seen

    kernel = read(mapping)
    operand = operand_of(kernel, "x")
    dims = tuple(int(n) for n in operand.dims)  # type: ignore[arg-type]
    positions = np.arange(np.prod(dims)).reshape(dims)
    found = seen(kernel, operand)
    for program in itertools.product(*(range(int(n)) for n in kernel.grid)):  # type: ignore[arg-type]
        window = windows(kernel, operand, program)
        for at in itertools.product(*(range(*ends) for ends in window)):
            if all(0 <= a < n for a, n in zip(at, dims, strict=True)):
                inside = [
                    a - first
                    for a, (first, _), b in zip(at, window, operand.block, strict=True)
                    if b.kind != "squeezed"
                ]
                assert found[(*program, *inside)] == positions[at]
