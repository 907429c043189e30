"""Pallas kernels without JAX: a grid, and for every operand the block of it that each program sees.

Written as a mapping: {"kernel": {"grid": [4, 2], "outputs": [{"array": "f32[7,5]", "block": [2, 3], "index":
"(i, j) -> (i, j)"}]}}; the whole form is the page of `layoutproof.kernel.kernel_text`, its meaning that of
`layoutproof.kernel.kernel`. A kernel is asked properties of kernels: `ask("blocks_in_bounds", {"kernel": ..})`. It is a
layout itself only where a single operand of it has blocks: {"blockspec": {"kernel": .., "operand": x}} picks one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from layoutproof.layouts.kernel.layout import KernelLayout

__all__ = ["KernelLayout", "looks_like", "read"]


def __getattr__(name: str) -> Any:
    # every text that anybody reads is first shown to `looks_like`: only a kernel pays for importing the language
    if name == "KernelLayout":
        return importlib.import_module("layoutproof.layouts.kernel.layout").KernelLayout
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def looks_like(text: str) -> bool:
    """No text is a kernel: it is written as a mapping.

    Args:
        text: A layout without the name of a language.

    Returns:
        False.
    """
    return False


def read(value: object, mode: str = "strict") -> KernelLayout:
    """A kernel from its mapping, or from a `Kernel`.

    Args:
        value: A mapping with grid, inputs, outputs; or a `Kernel`.
        mode: "strict" or "xla"; this language has one mode.

    Returns:
        The layout: frozen data; its `str` is its text.

    Raises:
        LayoutError: A field is wrong; the text names it.

    >>> print(read({"grid": [4, 2], "outputs": [{"array": "f32[7,5]", "block": [2, 3], "index": "(i, j) -> (i, j)"}]}))
    kernel grid (i < 4, j < 2)
      out  outputs[0] f32[7,5] block (2, 3) index (i, j) -> (i, j)
    """
    from layoutproof.layouts.kernel import layout

    return layout.from_value(value)
