"""What may be wrong with the operands of an operation on layouts."""

from __future__ import annotations

from layoutproof.core.message import Template

ANNOTATION = Template(
    "algebra.annotation", "{annotation!r} for {shape}: one letter, P or F, per dimension of at least 1"
)
COMPLEMENT_TARGET = Template(
    "algebra.complement_target", "complement: the target is a number of places, at least 1, not {found!r}"
)
COMPLEMENT_TOO_LARGE = Template(
    "algebra.complement_too_large",
    "cannot tell whether {result} is a complement of {a}: {total} offsets are more than {most}",
)
DATAPATH = Template(
    "algebra.datapath", "datapath {datapath!r} with {rows} rows and {columns} columns: {known} rows are known"
)
DATAPATH_FOLDS = Template(
    "algebra.datapath_folds", "datapath {datapath} folds columns into {parts} parts; {columns} does not divide"
)
DOES_NOT_DIVIDE = Template("algebra.does_not_divide", "{what}: {divisor} does not divide {extent} in {shape} by {by}")
EXTENT_BELOW_1 = Template("algebra.extent_below_1", "{what}: the extent {extent} must be at least 1")
INDEX_OUTSIDE = Template("algebra.index_outside", "the index {index} is outside the shape {shape}")
INDEX_RANK = Template(
    "algebra.index_rank", "the index {index} has {entries} entries but the shape {shape} {dimensions}"
)
NAMED_EXTENT = Template("algebra.named_extent", "group_many needs constant extents, not {extent}")
NAMED_LAYOUT = Template("algebra.named_layout", "{layout}: the algebra needs constant extents and strides")
NEGATIVE_STRIDE_COMPLEMENT = Template("algebra.negative_stride_complement", "complement: {a} has a negative stride")
NEGATIVE_STRIDE_COMPOSED = Template(
    "algebra.negative_stride_composed", "composition: {b} has a negative stride, so its offsets are no positions of {a}"
)
NOT_INTERLEAVED = Template(
    "algebra.not_interleaved", "the interleaved shape {interleaved} does not hold {parts} in turn"
)
NO_AXIS = Template("algebra.no_axis", "the layout {layout} has no axis {axis!r}; it has {axes}")
NO_DIMENSIONS = Template("algebra.no_dimensions", "group_many needs shapes of at least one dimension")
NO_PERMUTATION_OF_GROUPS = Template(
    "algebra.no_permutation_of_groups", "the order {order} is no permutation of {groups} groups"
)
NO_PERMUTATION_OF_ITERS = Template(
    "algebra.no_permutation_of_iters", "the order {order} is no permutation of D's {iters} iters"
)
NO_RIGHT_INVERSE = Template("algebra.no_right_inverse", "right_inverse({a}): {why}")
NO_SHAPES = Template("algebra.no_shapes", "group_many needs at least one shape")
NO_SUB_SLAB = Template("algebra.no_sub_slab", "datapath {datapath} has no sub-slab {sub_slab}")
OTHER_SIZE = Template("algebra.other_size", "the shape {shape} does not have the {size} elements of {tiled}")
PARTITIONS = Template(
    "algebra.partitions", "{found} partitions: at most {most}, or one P dimension that is a multiple of it"
)
POSITION_OUTSIDE = Template("algebra.position_outside", "position {position} is outside D's {iters} iters")
RANKS_DIFFER = Template("algebra.ranks_differ", "the shapes {left} and {right} have different ranks")
RANKS_OF = Template("algebra.ranks_of", "{what}: the shapes {left} and {right} have different ranks")
REGION_RANK = Template(
    "algebra.region_rank", "the region has {ranges} ranges for the {dimensions} dimensions of {shape}"
)
RESULT_TOO_LARGE = Template(
    "algebra.result_too_large", "cannot tell whether {result} is {formula}: {count} elements are more than {most}"
)
SEPARATORS = Template("algebra.separators", "the separators {separators} do not cut D's {iters} iters")
SIGN_OPEN = Template("algebra.sign_open", "the sign of the stride {stride} in {layout} depends on its sizes")
SLICE_OUTSIDE = Template(
    "algebra.slice_outside", "the slice [{begin}, {end}) of dimension {dimension} is not within 0..{extent}"
)
SWIZZLE_BELOW_0 = Template(
    "algebra.swizzle_below_0", "a swizzle needs addresses >= 0, but {index} of {layout} is below"
)
SWIZZLE_IN_ALGEBRA = Template(
    "algebra.swizzle_in_algebra",
    "{layout}: the algebra is about shape:stride; a swizzle may stand only left of a composition",
)
SWIZZLE_WIDTH = Template("algebra.swizzle_width", "a swizzled layout unpacks by powers of two, not {width}")
TILER = Template("algebra.tiler", "a tiler is a layout, an integer, None or a tuple of them, not {found!r}")
TILERS = Template("algebra.tilers", "{tilers} tilers for the {modes} modes of {a}")
TOO_MANY_ELEMENTS = Template(
    "algebra.too_many_elements", "{size} elements of a composition without whole digits are more than {most}"
)
WIDTH = Template("algebra.width", "{layout} packs and unpacks by a whole number of at least 1, not {width!r}")
