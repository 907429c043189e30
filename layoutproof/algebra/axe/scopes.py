"""Hardware axes: which hold threads and which memory, how wide they are, and how thread axes make up one another.

    tx = 32*warpid + laneid = 128*wgid + tid_in_wg
    tid_in_wg = 32*wid_in_wg + laneid
    warpid = 4*wgid + wid_in_wg

Fusing is a bijection of places only while the low part stays below its factor, and splitting is exact only when the
low digits do not carry; both are proved here from what the layout reaches. TVM fuses unchecked.
Sources: apache/tvm `axis_registry.cc` at 5d4dc87213 (bx, by, bz are (kernel, cta) here; there, by mistake, (thread,
cta), and a layout with bx and tx makes it loop); PTX ISA and CUDA launch limits for the extents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutproof.algebra.axe.canonical_form import canonical, same
from layoutproof.core.errors import InternalError, Reason
from layoutproof.core.progressions import low_high
from layoutproof.layouts.axe.layout import AxeLayout, Iter, axis_iters, constant

THREADS: dict[str, tuple[str, str]] = {
    "bx": ("kernel", "cta"),
    "by": ("kernel", "cta"),
    "bz": ("kernel", "cta"),
    "cbx": ("cluster", "cta"),
    "cby": ("cluster", "cta"),
    "cbz": ("cluster", "cta"),
    "tx": ("cta", "thread"),
    "warpid": ("cta", "warp"),
    "laneid": ("warp", "thread"),
    "wgid": ("cta", "warpgroup"),
    "tid_in_wg": ("warpgroup", "thread"),
    "wid_in_wg": ("warpgroup", "warp"),
}
"""Thread axes: (scope, subscope), the axis numbers the subscopes within one scope."""

OWNERS = frozenset({"lane", "warp", "gpu", "gpuid", "gpuid_x", "gpuid_y", "gpuid_z", "pid", "device"})
"""Axes of owners (threads, devices) that papers and books name and no registry describes."""

MEMORIES = frozenset({"m", "P", "F", "Bank", "TCol", "TLane", "reg", "Col", "Lane"})
"""Axes of memory, the paper's names (reg, Col, Lane) included."""

EXTENTS = {
    "laneid": 32,
    "lane": 32,
    "wid_in_wg": 4,
    "tid_in_wg": 128,
    "warpid": 32,
    "wgid": 8,
    "tx": 1024,
    "TLane": 128,
    "P": 128,
    "Bank": 8,
}
"""How many there are, where the hardware says so. TCol counts elements, not 32-bit columns, so it is not here."""

FUSIONS = (
    ("tid_in_wg", "wid_in_wg", "laneid", 32),
    ("tx", "wgid", "tid_in_wg", 128),
    ("tx", "warpid", "laneid", 32),
    ("warpid", "wgid", "wid_in_wg", 4),
)
"""(whole, high, low, factor): whole = factor*high + low, with 0 <= low < factor."""


def owns(axis: str) -> bool | None:
    """Whether an axis numbers owners (threads, devices) rather than memory.

    Args:
        axis: Name of an axis.

    Returns:
        None where it is not known.

    >>> owns("laneid"), owns("m"), owns("gpuid_q"), owns("mystery")
    (True, False, True, None)
    """
    if axis in THREADS or axis in OWNERS or axis.startswith("gpuid"):
        return True
    return False if axis in MEMORIES else None


def fuse(layout: AxeLayout, high: str, low: str) -> AxeLayout | Reason:
    """Two thread axes as the one they make up. Requires constants.

    Ensures: the new coordinate is factor*high + low and 0 <= low < factor everywhere, so no two places are fused into
    one. A Reason where that is not so, or the layout already uses the axis. Canonical.

    Args:
        layout: An Axe layout.
        high: Name of the slower axis.
        low: Name of the faster axis.

    Returns:
        The layout, or the reason why there is none.

    >>> str(fuse(AxeLayout(((2, 1, "warpid"), (32, 1, "laneid"))), "warpid", "laneid"))
    'S[64:1@tx]'
    >>> str(fuse(AxeLayout(((2, 1, "warpid"), (64, 1, "laneid"))), "warpid", "laneid"))
    'laneid goes from 0 to 63, so 32*warpid + laneid would join different places'
    """
    constant(layout)
    for whole, upper, lower, factor in FUSIONS:
        if (upper, lower) != (high, low):
            continue
        if whole in layout.axes():
            return Reason(f"the layout already uses {whole}")
        least, most = low_high(*axis_iters(layout, low))
        if least < 0 or most >= factor:
            return Reason(f"{low} goes from {least} to {most}, so {factor}*{high} + {low} would join different places")
        return canonical(_renamed(layout, {high: (whole, factor), low: (whole, 1)}))
    return Reason(f"{high} and {low} do not make up one axis")


def fuse_all(layout: AxeLayout) -> AxeLayout | Reason:
    """Every pair of thread axes that make up one, fused, until there is none left (TVM: canonicalize for CUDA).

    Args:
        layout: An Axe layout.

    Returns:
        The layout, or the reason why there is none.

    >>> digits = ((2, 2, "wgid"), (2, 2, "wid_in_wg"), (8, 4, "laneid"), (2, 1, "wgid"), (2, 1, "wid_in_wg"))
    >>> str(fuse_all(AxeLayout((*digits, (4, 1, "laneid")))))
    'S[(2,2,8,2,2,4):(256@tx,64@tx,4@tx,128@tx,32@tx,1@tx)]'
    """
    current = layout
    while True:
        axes = _used(current)
        pair = next(((high, low) for _, high, low, _ in FUSIONS if high in axes and low in axes), None)
        if pair is None:
            return canonical(current)
        fused = fuse(current, *pair)
        if isinstance(fused, Reason):
            return fused
        current = fused


def split(layout: AxeLayout, high: str, low: str) -> AxeLayout | Reason:
    """A thread axis as two, e.g. tx as warpid and laneid. Requires constants.

    Ensures: high = whole // factor and low = whole % factor everywhere; proved by the low digits' largest sum being
    below the factor. A Reason where a digit straddles the factor.

    Args:
        layout: An Axe layout on the axis that the two make up.
        high: Name of the slower axis.
        low: Name of the faster axis.

    Returns:
        The layout, or the reason why there is none.

    >>> str(split(AxeLayout(((2, 64, "tx"), (8, 4, "tx"), (2, 32, "tx"), (4, 1, "tx"))), "warpid", "laneid"))
    'S[(2,8,2,4):(2@warpid,4@laneid,1@warpid,1@laneid)]'
    """
    constant(layout)
    match = next((entry for entry in FUSIONS if entry[1:3] == (high, low)), None)
    if match is None:
        return Reason(f"{high} and {low} do not make up one axis")
    whole, _, _, factor = match
    if {high, low} & set(_used(layout)):
        return Reason(f"the layout already uses {high} or {low}")
    parts = []
    for iters in (canonical(layout).D, canonical(layout).R):
        cut = _cut(iters, whole, high, low, factor)
        if isinstance(cut, Reason):
            return cut
        parts.append(cut)
    offset: dict[str, Any] = {axis: value for axis, value in canonical(layout).O.items() if axis != whole}
    quotient, rest = divmod(int(canonical(layout).O.get(whole, 0)), factor)
    offset |= {axis: value for axis, value in ((high, quotient), (low, rest)) if value}
    result = AxeLayout(parts[0], parts[1], offset, layout.shape, None, layout.swizzle)
    least, most = low_high(*axis_iters(result, low))
    if least < 0 or most >= factor:
        return Reason(f"the part of {whole} below {factor} goes from {least} to {most}, so it carries")
    if not same(_renamed(result, {high: (whole, factor), low: (whole, 1)}), layout):
        raise InternalError(f"splitting {layout} changed its map: please report this")
    return canonical(result)


def same_threads(left: AxeLayout, right: AxeLayout) -> bool | Reason:
    """Whether two layouts are the same map once all thread axes are fused; a Reason where fusing is not proved.

    Args:
        left: An Axe layout.
        right: An Axe layout.

    Returns:
        True or False, or why it is not proved.

    >>> lanes, threads = AxeLayout(((2, 1, "warpid"), (32, 1, "laneid"))), AxeLayout(((64, 1, "tx"),))
    >>> same_threads(lanes, threads)
    True
    """
    one, other = fuse_all(left), fuse_all(right)
    if isinstance(one, Reason):
        return one
    return other if isinstance(other, Reason) else same(one, other)


def _used(layout: AxeLayout) -> set[str]:
    return {a for e, s, a in (*layout.D, *layout.R) if e != 1 and s != 0} | {a for a, v in layout.O.items() if v != 0}


def _renamed(layout: AxeLayout, names: dict[str, tuple[str, int]]) -> AxeLayout:
    def put(iters: Sequence[Iter]) -> tuple[Iter, ...]:
        return tuple([(e, s * names.get(a, (a, 1))[1], names.get(a, (a, 1))[0]) for e, s, a in iters])

    offset: dict[str, Any] = {}
    for axis, value in layout.O.items():
        name, factor = names.get(axis, (axis, 1))
        offset[name] = offset.get(name, 0) + value * factor
    return AxeLayout(put(layout.D), put(layout.R), offset, layout.shape, None, layout.swizzle)


def _cut(iters: Sequence[Iter], whole: str, high: str, low: str, factor: int) -> tuple[Iter, ...] | Reason:
    found: list[Iter] = []
    for extent, stride, axis in iters:
        e, s = int(extent), int(stride)
        if axis != whole:
            found.append((extent, stride, axis))
        elif s % factor == 0:
            found.append((e, s // factor, high))
        elif abs(s) * (e - 1) < factor:
            found.append((e, s, low))
        elif s > 0 and factor % s == 0 and e % (factor // s) == 0:
            found += [(e // (factor // s), 1, high), (factor // s, s, low)]
        else:
            return Reason(f"the digit ({e}, {s}@{whole}) straddles the factor {factor}")
    return tuple(found)


def align(part: AxeLayout, whole: AxeLayout) -> tuple[AxeLayout, AxeLayout] | Reason:
    """A part of a layout and the layout on the same thread axes: the part's are fused, or the layout's split.

    For recognising tiles across scopes, as TVM does: lanes of a tile within threads of a block.

    Args:
        part: A layout of some threads.
        whole: A layout of all of them.

    Returns:
        (part, whole) on the same axes, or why there is no such pair.

    >>> lanes, threads = AxeLayout(((32, 1, "laneid"),)), AxeLayout(((64, 1, "tx"),))
    >>> [str(each) for each in align(lanes, threads)]
    ['S[32:1@laneid]', 'S[(2,32):(1@warpid,1@laneid)]']
    """
    for joined, high, low, _ in FUSIONS:
        if joined not in _used(whole):
            continue
        mine = _used(part) & {high, low}
        if len(mine) == 2:
            fused = fuse(part, high, low)
            return fused if isinstance(fused, Reason) else align(fused, whole)
        if mine:
            cut = split(whole, high, low)
            return cut if isinstance(cut, Reason) else align(part, cut)
    return part, whole
