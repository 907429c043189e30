"""What may be wrong with an XLA shape and its layout."""

from __future__ import annotations

from layoutproof.core.message import Template

AFTER_SHAPE = Template("xla.after_shape", "unexpected '{word}' after the shape: give one shape alone")
BUFFER = Template("xla.buffer", "a buffer b(..) holds one plain array, not a tuple, token, opaque or buffer")
COMMENT = Template("xla.comment", "the comment /* is not closed by */")
DEPTH = Template("xla.depth", "over {max_depth} nested parentheses")
DIMENSIONS_END = Template("xla.dimensions_end", "the text ends inside the dimensions: ] is missing{hint}")
DIMENSION_FORM = Template("xla.dimension_form", "'{word}' is not a dimension: {fix}")
DIMENSION_RULE = Template("xla.dimension_rule", "dimension {number} is {value}: {rule}")
EMPTY_TILE = Template("xla.empty_tile", "the empty tile () has no sizes: give them, e.g. T(8,128), or leave T out")
EXTENT_LEAST = Template(
    "xla.extent_least",
    "dimension {number} is {value}: every extent must be at least 1 for all sizes (each name stands "
    "for any integer >= 1)",
)
FORM = Template("xla.form", "an xla layout is {form}, not {value!r}")
GIVEN_TWICE = Template("xla.given_twice", "{key}(..) is given twice{more}")
INT64 = Template("xla.int64", "{size} does not fit in 64 bits: the largest integer is {int64_max}")
MEMORY_SPACE = Template(
    "xla.memory_space", "S({value}): XLA keeps the memory space in 8 bits, -128 to 127, and would read {int8}"
)
MERGE_LAST = Template(
    "xla.merge_last",
    "a tile cannot end with *: * merges a dimension into the next more minor one, and the last has none",
)
MINOR_TO_MAJOR_NEEDED = Template(
    "xla.minor_to_major_needed",
    "minor_to_major is needed where tiles or other properties are given: a list such as [1, 0]",
)
NEGATIVE = Template("xla.negative", "{key}({value}): {what} is not negative")
NO_DIMENSION = Template("xla.no_dimension", "'{word}' is not a dimension in XLA: an integer, <=integer or ?")
NO_ELEMENTS = Template("xla.no_elements", "{element_type}[] has no elements, so there is nothing to place")
OPERATORS = Template("xla.operators", "over {max_operators} operators in the sizes of one text")
ORDER = Template("xla.order", "properties out of order: {key}(..) must come before {later}(..)")
PARENTHESES = Template("xla.parentheses", "over {max_parentheses} nested parentheses in a size")
PROPERTY = Template("xla.property", "unknown layout property '{key}': XLA has, in this order, {known}")
QUESTION_MARK_NAME = Template(
    "xla.question_mark_name", "the size d{number} is the ? of dimension {number}: give the other size another name"
)
RANK = Template("xla.rank", "over {max_rank} dimensions")
SHAPE_FORM = Template("xla.shape_form", "shape is a text without a layout, such as f32[3,5], not {shape}")
SIZE_INT64 = Template("xla.size_int64", "a number in this size is over {int64_max} and does not fit in 64 bits")
SIZE_TERMS = Template("xla.size_terms", "a size may have at most {limits} when multiplied out")
SPARSE = Template(
    "xla.sparse", "{key}(..), {sparse}, is left over from sparse arrays, which XLA no longer has: remove {key}(..)"
)
SPARSE_LEFTOVER = Template(
    "xla.sparse_leftover", "#(..) and *(..), leftovers of XLA's removed sparse layouts, are not modelled"
)
SPLIT_MEMORY = Template(
    "xla.split_memory", "SC(..), a split of the array over several memories, is understood but not modelled"
)
TAIL_ALIGNMENT = Template("xla.tail_alignment", "L({value}): the tail padding alignment must be at least 1 element")
TILE_EMPTY = Template("xla.tile_empty", "{shown} has no meaning: a tile has at least one size")
TILE_FORM = Template("xla.tile_form", '{key}: a tile has numbers, "*" or size expressions, not {size}')
TILE_LEAST = Template("xla.tile_least", "{shown} has no meaning: tile sizes must be at least 1")
TILE_MERGE = Template(
    "xla.tile_merge", "{shown} has no meaning: a '*' merges into the next more minor dimension, and there is none"
)
TILE_MINUS_ONE = Template(
    "xla.tile_minus_one", "tile size -1: where a tile combines dimensions, write * as XLA prints it"
)
TILE_POSITIVE = Template("xla.tile_positive", "tile size {size} must be positive")
TILE_RULE = Template("xla.tile_rule", "the tile size {size} {rule}")
TUPLE = Template("xla.tuple", "a tuple of {elements} shapes has no layout of its own; ask about one element")
TUPLE_COMMA = Template("xla.tuple_comma", "a tuple does not end with a comma: remove it or add a shape")
WHOLE_NUMBERS = Template("xla.whole_numbers", "{key} takes whole numbers, not {value}")
WITHOUT_DIMENSIONS = Template("xla.without_dimensions", "{element_type} has no {what}: write {element_type}[]")
