"""Functions lowered for a GPU by JAX's own Mosaic GPU, on any machine."""

from __future__ import annotations

from typing import Any


def lowered_for_cuda(function: Any, *args: Any) -> Any:
    """A jitted function as JAX lowers it for CUDA, whatever devices are here.

    Args:
        function: What `jax.jit` gives.
        args: Its arguments, arrays or shapes.

    Returns:
        The lowered program, of `jax.stages`; JAX raises what its lowering refuses.
    """
    return function.trace(*args).lower(lowering_platforms=("cuda",))
