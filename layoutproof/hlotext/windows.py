"""Windows and dimensions of convolutions and of reductions by windows, as XLA prints them."""

from __future__ import annotations

from typing import NamedTuple


class ConvolutionNumbers(NamedTuple):
    """The dimensions of a convolution by the names that JAX has: batch and features, then those in space."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


class ConvolutionWindow(NamedTuple):
    """`window={..}`, of each dimension. reversed: whether the kernel is looked at backwards."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    base: tuple[int, ...]
    dilation: tuple[int, ...]
    reversed: tuple[int, ...]


def read_window(text: str, rank: int) -> ConvolutionWindow:
    """A window as the text has it. rank: how many dimensions it has where the text says none.

    >>> read_window("{size=3x3 pad=1_1x0_0}", 2).padding, read_window("", 0).size
    (((1, 1), (0, 0)), ())
    """
    said = {key: value for key, _, value in (part.partition("=") for part in text.strip("{}").split())}

    def each(name: str, default: int) -> tuple[int, ...]:
        return tuple(map(int, said[name].split("x"))) if name in said else (default,) * rank

    size = each("size", 1)
    rank = len(size)
    pads = said.get("pad", "x".join(["0_0"] * rank)).split("x") if rank else []
    padding = tuple((int(low), int(high)) for low, _, high in (p.partition("_") for p in pads))
    return ConvolutionWindow(
        size, each("stride", 1), padding, each("lhs_dilate", 1), each("rhs_dilate", 1), each("rhs_reversal", 0)
    )  # fmt: skip


def read_labels(text: str) -> tuple[ConvolutionNumbers, int]:
    """The dimensions of `dim_labels`, and how many are in space.

    >>> read_labels("bf_io->bf")
    (ConvolutionNumbers(lhs_spec=(0, 1), rhs_spec=(1, 0), out_spec=(0, 1)), 0)
    """
    left, _, rest = text.partition("_")
    right, _, out = rest.partition("->")
    space = sorted(c for c in left if c.isdigit())

    def places(labels: str, first: str) -> tuple[int, ...]:
        return tuple(labels.index(c) for c in (*first, *space))

    return ConvolutionNumbers(places(left, "bf"), places(right, "oi"), places(out, "bf")), len(space)
