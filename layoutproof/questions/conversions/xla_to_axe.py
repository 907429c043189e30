"""XLA to Axe, by way of CuTe's digits: D over the tiles, on the memory axis. Padding within a dimension has no D."""

from __future__ import annotations

from layoutproof.layouts.axe.layout import AxeLayout
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.questions.conversions import cute_to_axe
from layoutproof.questions.conversions.modes import strided_digits
from layoutproof.questions.conversions.xla_to_cute import from_digits, plain_memory


def convert(layout: XlaLayout) -> AxeLayout:
    """`bf16[16,256]{1,0:T(8,128)(2,1)}` is `S[(2,4,2,2,128):(2048,256,1,1024,2)] on (16,256)`."""
    m = layout.index_map()
    plain_memory(m, "Axe")
    return cute_to_axe.convert(from_digits(*strided_digits(m), ""))
