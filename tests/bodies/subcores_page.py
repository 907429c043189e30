# ruff: noqa: E501
"""`docs/subcores.md`: pairs of kernels of SparseCores, what is said of each, and what runs show. `python -m` prints it."""

from __future__ import annotations

from tests.bodies.run_subcores import SEEDS
from tests.bodies.subcore_pairs import CASES

BEFORE = f"""# Kernels of SparseCores

What is asked of a kernel over a `plsc.VectorSubcoreMesh` or a `ScalarSubcoreMesh`: [kernels.md](kernels.md). Each of these
is written twice, right and with one error (`tests/bodies/subcore_pairs.py`). All right ones are proved whole, for v6e, with
what is assumed of their lists; of each wrong one the question in the table speaks. "refuted if" is said where it goes wrong
for some lists of places only, and exits with 3.

JAX's interpreter (0.10.2, 0.12.0.1) takes no lists of places and no barriers of subcores, so that both are run by one of our
own on NumPy arrays (`python -m tests.bodies.run_subcores`), in {SEEDS} orders drawn by chance: memory starts as NaN, a copy
moves when it starts or when it is waited for. All right ones give what is wanted in each order. `tests/bodies/test_subcores.py`
asks both, and `tests/values/test_cores.py` whether `layoutproof same` tells right from wrong: it does for all. libtpu 0.0.52 compiles all right ones for v6e, those that signal each other not
looked at: JAX 0.10.2 leaves the core of a signal out where both are of one mesh (`_device_id_to_logical`, "short circuit"),
0.12.0.1 does not. `python -m tests.bodies.subcores_page` prints this page.

| pair | what is wrong | question | answer | a run shows |
|---|---|---|---|---|
"""
AFTER = """
Subcores that signal each other, and TensorCores that do (`pltpu.core_barrier`), are run, every one, as the devices of a mesh
are: what orders two of them are waits and barriers. Where what they do depends on data nothing is said of their order.

## JAX's own tests

`python benchmarks/jax_tests.py FILE`, of `tests/pallas/tpu_sparsecore_pallas_test.py` of jax-ml/jax at 2026-08-08 with jax
0.10.2: of 472 tests that make a kernel 282 are proved whole, nothing assumed; of 15,647 questions 15,247 are proved, 40 refuted
and 360 unknown, most of them for want of the range of a list, which is named. The 40 were looked at, and each is so: outputs
that a test stores in part and looks at in part; numbers loaded from VMEM and HBM, which these tests expect to be refused; a
list in HBM, likewise; and `test_barrier` with tiles and without, where each subcore copies its neighbour's row after the
barrier and then writes its own, which another one may still read.

## What the compiler refuses

Measured ahead of time (libtpu 0.0.52, no TPU), for v5p, v6e and 7x, which have SparseCores; v5e has none.

| what | its words | asked by |
|---|---|---|
| scratch of all subcores and `VMEM_SHARED` together above 4 MiB (v6e), 8 MiB (v5p, 7x) | `exceeds the legitimate user allocatable offset upper bound (1048575 words) in memory space spmem` | `memory_budget` |
| more than 2,046 numbers in the SMEM of a vector subcore | the same, `(2046 words) in memory space smem_tile` | `memory_budget` |
| rows by a list, of HBM in tiles of TensorCores, no multiple of 128 | `expected slice size (16) to be aligned with source (gather operand) tiling (128)` | `body_accesses` |
| the same of elements that have not 32 bits | `only 32-bit elements are supported` | `body_accesses` |
| a copy that adds by a list into HBM | `Scatter with add is only supported into spmem or tile_spmem` | `body_accesses` |
| a number loaded from VMEM | `To load a scalar from VMEM ..` (JAX lowering) | `body_accesses` |

Known and not asked: parts of an array of 16-bit elements in tiles of TensorCores that start or end inside of one
(`Slice sizes along tiled dimensions must be aligned to tiles`); masks where layout passes run (`Mask is not supported`).
"""


def page() -> str:
    """The page."""
    rows = []
    for name, case in CASES.items():
        what = " ".join((case.build.__doc__ or "").split())
        rows.append(f"| `{name}` | {what} | `{case.kind}` | {case.answer} | {case.seen} |\n")
    return BEFORE + "".join(rows) + AFTER


if __name__ == "__main__":
    print(page(), end="")
