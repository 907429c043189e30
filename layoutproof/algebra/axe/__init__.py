"""Axe layouts: canonical form, grouping, tiling, slices, direct sums, scopes, width. Start at `canonical_form.py`."""

from __future__ import annotations

from layoutproof.algebra.axe.canonical_form import (
    AxisFacts,
    axis_facts,
    canonical,
    fibers_disjoint,
    injective,
    replicas_distinct,
    same,
    with_sizes,
)
from layoutproof.algebra.axe.factories import tmem_datapath, to_psum, trainium
from layoutproof.algebra.axe.grouping import apply_to_shape, group, group_many, permute_by_groups, permute_dims
from layoutproof.algebra.axe.locate import backward, digits_of, forward
from layoutproof.algebra.axe.recognise import is_tile_inner, is_tile_outer
from layoutproof.algebra.axe.scopes import align, fuse, fuse_all, owns, same_threads, split
from layoutproof.algebra.axe.slices import slice_
from layoutproof.algebra.axe.sums import direct_sum, is_direct_sum_left, is_direct_sum_right
from layoutproof.algebra.axe.tiling import span, spans, tile, tile_to
from layoutproof.algebra.axe.wellformed import is_swizzle, is_trainium, is_trivial, problems, scope_of, widened
from layoutproof.algebra.axe.width import broadcast, pack, storage, unpack
from layoutproof.layouts.axe.layout import AxeLayout
from layoutproof.layouts.axe.swizzle import Swizzle

__all__ = [
    "AxeLayout",
    "AxisFacts",
    "Swizzle",
    "align",
    "apply_to_shape",
    "axis_facts",
    "backward",
    "broadcast",
    "canonical",
    "digits_of",
    "direct_sum",
    "fibers_disjoint",
    "forward",
    "fuse",
    "fuse_all",
    "group",
    "group_many",
    "injective",
    "is_direct_sum_left",
    "is_direct_sum_right",
    "is_swizzle",
    "is_tile_inner",
    "is_tile_outer",
    "is_trainium",
    "is_trivial",
    "owns",
    "pack",
    "permute_by_groups",
    "permute_dims",
    "problems",
    "replicas_distinct",
    "same",
    "same_threads",
    "scope_of",
    "slice_",
    "span",
    "spans",
    "split",
    "storage",
    "tile",
    "tile_to",
    "tmem_datapath",
    "to_psum",
    "trainium",
    "unpack",
    "widened",
    "with_sizes",
]
