"""Thread axes of an Axe layout joined into those they make up: `{fuse: A}`, or one pair of them.

One pair is named with the slower axis first: `{fuse: [A, "warpid, laneid"]}`.
tx = 32*warpid + laneid = 128*wgid + tid_in_wg, tid_in_wg = 32*wid_in_wg + laneid, warpid = 4*wgid + wid_in_wg.
No result: a low axis that reaches its factor (laneid 32 would be another warp's lane 0); an axis that is used already.
Example: `{fuse: "S[(2,32):(1@warpid,1@laneid)]"}` is `S[64:1@tx]`.
Source: apache/tvm's fusion maps for CUDA, which fuse unchecked.
"""

from __future__ import annotations

from layoutproof.algebra.axe.scopes import fuse, fuse_all
from layoutproof.core.errors import LayoutError, Reason, shorten
from layoutproof.layouts.axe.layout import AxeLayout

OF = AxeLayout
LAYOUTS = 1
ARGUMENT = "axes"
OPTIONAL = True
EQUATION = "each new coordinate is factor*high + low, with 0 <= low < factor at every place"


def apply(layout: AxeLayout, axes: object = None) -> AxeLayout | Reason:
    """The fused layout, or why there is none. LayoutError for a pair that cannot be read."""
    if axes is None:
        return fuse_all(layout)
    pair = axes.split(",") if isinstance(axes, str) else axes
    if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(axis, str) for axis in pair):
        raise LayoutError(
            f'a pair of axes is written "warpid, laneid", the slower first, not {shorten(repr(axes), 60)}'
        )
    return fuse(layout, pair[0].strip(), pair[1].strip())
