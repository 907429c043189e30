"""What XLA's parser demands of one instruction by its opcode: how many operands, which attributes, each once.

Measured: of texts that jaxlib 0.10.2 and 0.12.0.1 print, 5,000 edited ones were given to both, and what both reject for
these reasons is here (`ParseInstructionRhs`, `ParseAttributes` of `hlo_parser.cc` of openxla/xla). Opcodes of which
versions say different things, and attributes that a later version may allow elsewhere, are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from layoutproof.core.errors import shorten
from layoutproof.hlotext.texts import balanced, parts

OPERANDS: dict[str, int] = {
    **dict.fromkeys(("iota", "partition-id", "replica-id", "rng-get-and-update-state"), 0),
    **dict.fromkeys(
        (
            *("abs", "all-gather-done", "all-reduce-done", "bitcast", "bitcast-convert", "broadcast", "cbrt", "ceil"),
            *("cholesky", "collective-permute-done", "convert", "copy", "copy-done", "copy-start", "cosine", "domain"),
            *("erf", "exponential", "exponential-minus-one", "fft", "floor", "get-dimension-size", "is-finite"),
            *("get-tuple-element", "imag", "infeed", "log", "log-plus-one", "logistic", "negate", "not", "opt-barrier"),
            *("popcnt", "real", "recv", "recv-done", "reduce-precision", "reshape", "reverse"),
            *("round-nearest-even", "rsqrt", "send-done", "sign", "sine", "slice", "sqrt", "tan", "tanh", "topk"),
            *("transpose", "while"),
        ),
        1,
    ),
    **dict.fromkeys(
        (
            *("add", "add-dependency", "and", "atan2", "compare", "complex", "divide", "gather", "maximum", "minimum"),
            *("multiply", "or", "outfeed", "pad", "power", "remainder", "send", "set-dimension-size"),
            *("shift-right-arithmetic", "shift-right-logical", "stochastic-convert", "subtract"),
            *("triangular-solve", "xor"),
        ),
        2,
    ),
    **dict.fromkeys(("batch-norm-training", "clamp", "select", "select-and-scatter"), 3),
    **dict.fromkeys(("batch-norm-grad", "batch-norm-inference"), 5),
}
"""Opcode -> how many operands it has."""
PAIRED = frozenset(("reduce", "reduce-window"))
"""Opcodes with an initial value for each array."""

_NEEDED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("all-gather", "all-gather-start", "concatenate", "get-dimension-size", "reverse"), ("dimensions",)
    ),
    **dict.fromkeys(("set-dimension-size", "transpose"), ("dimensions",)),
    **dict.fromkeys(("all-reduce", "all-reduce-start", "call", "map", "reduce-window"), ("to_apply",)),
    **dict.fromkeys(("reduce", "reduce-scatter", "sort"), ("dimensions", "to_apply")),
    **dict.fromkeys(("batch-norm-grad", "batch-norm-inference", "batch-norm-training"), ("epsilon", "feature_index")),
    **dict.fromkeys(("collective-permute", "collective-permute-start"), ("source_target_pairs",)),
    "compare": ("direction",),
    "convolution": ("dim_labels",),
    "custom-call": ("custom_call_target",),
    "domain": ("domain",),
    "dynamic-slice": ("dynamic_slice_sizes",),
    "fft": ("fft_length", "fft_type"),
    "fusion": ("calls",),
    "gather": ("collapsed_slice_dims", "index_vector_dim", "offset_dims", "slice_sizes", "start_index_map"),
    "get-tuple-element": ("index",),
    "iota": ("iota_dimension",),
    "pad": ("padding",),
    "reduce-precision": ("exponent_bits", "mantissa_bits"),
    "rng": ("distribution",),
    "rng-bit-generator": ("algorithm",),
    "rng-get-and-update-state": ("delta",),
    "scatter": (
        *("index_vector_dim", "inserted_window_dims", "scatter_dims_to_operand_dims", "to_apply"),
        "update_window_dims",
    ),
    "select-and-scatter": ("scatter", "select"),
    "slice": ("slice",),
    "topk": ("k",),
    "while": ("body", "condition"),
}
"""Opcode -> attributes without which it says too little."""

_ALONE: dict[str, frozenset[str]] = {
    "body": frozenset(("while",)),
    "condition": frozenset(("while",)),
    "dim_labels": frozenset(("convolution",)),
    "dimensions": frozenset(
        (
            *("broadcast", "get-dimension-size", "reverse", "set-dimension-size", "transpose"),
            *("all-gather-done", "topk"),
        )
    ),
    "direction": frozenset(("compare",)),
    "dynamic_slice_sizes": frozenset(),
    "fft_type": frozenset(("fft",)),
    "index": frozenset(("get-tuple-element",)),
    "iota_dimension": frozenset(("iota",)),
    "padding": frozenset(("pad",)),
    "slice": frozenset(("slice",)),
    "window": frozenset(("select-and-scatter",)),
}
"""Attribute -> the opcodes of `OPERANDS` that take it."""

PLAIN: dict[str, int] = {opcode: count for opcode, count in OPERANDS.items() if opcode not in _NEEDED}
"""Opcode -> how many operands it has, of those of which nothing is wrong where nothing stands before an `ENDS`.

Most lines of a dump are so, and to ask `wrong` of each of them took a tenth of the gate's time."""

_FLAGS = frozenset(
    (
        *("constrain_layout", "indices_are_sorted", "is_host_transfer", "is_stable", "left_side", "lower"),
        *("unique_indices", "unit_diagonal", "use_global_device_ids", "custom_call_has_side_effect"),
    )
)
"""Attributes that are true or false."""
_DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
_KEY = re.compile(r', ([A-Za-z_][\w\-]*)=(\{|\[|\(|"(?:[^"\\]|\\.)*"|[^\s,{}]*)')
ENDS = (", metadata=", ", backend_config=", ", sharding=", ", frontend_attributes=", ", origin=", ", statistics=")
"""Before the attributes that say nothing of what an instruction does."""
_ONE_LIST = re.compile(r"\{\s*\d")


def wrong(name: str, opcode: str, operands: int, inside: str, attributes: str) -> str:
    """The mistake in an instruction's operands or attributes; "" for none.

    operands: how many names there are among them.  inside: their text.  attributes: the text after them, each with
    `, ` before it.

    >>> wrong("x", "add", 3, "a, b, c", ""), wrong("x", "add", 2, "a, b", ', metadata={op_name="f"}')
    ('the add x has 3 operands where it takes 2', '')
    >>> wrong("x", "slice", 1, "a", ""), wrong("x", "iota", 0, "", ", iota_dimension=0, iota_dimension=1")
    ('the slice x says no slice=: is text missing?', 'iota_dimension stands twice in x: two texts in one?')
    """
    problem = _wrong_operands(name, opcode, operands, inside)
    if problem:
        return problem
    said = dict[str, str]()
    if attributes and not attributes.startswith(ENDS):
        for key, value in _said(attributes):
            if key in said:
                return f"{key} stands twice in {shorten(name, 60)}: two texts in one?"
            said[key] = value
            if problem := _wrong_attribute(name, opcode, key, value, inside):
                return problem
    return _too_little(name, opcode, said, attributes)


def _wrong_operands(name: str, opcode: str, operands: int, inside: str) -> str:
    """The mistake in the number of operands; "" for none."""
    wanted = OPERANDS.get(opcode)
    if (wanted is not None and operands != wanted) or (opcode in PAIRED and (operands % 2 or not operands)):
        operands = len(parts(inside))  # people write some with `%` and some without
    if wanted is not None and operands != wanted:
        return f"the {opcode} {shorten(name, 60)} has {operands} operand{_s(operands)} where it takes {wanted}"
    if not operands and opcode.endswith(("-done", "-update")):
        return f"the {opcode} {shorten(name, 60)} says nothing of what was started"
    if opcode in PAIRED and (operands % 2 or not operands):
        return f"the {opcode} {shorten(name, 60)} has {operands} operand{_s(operands)}: an initial value goes with each"
    return ""


def _wrong_attribute(name: str, opcode: str, key: str, value: str, inside: str) -> str:
    """The mistake in one attribute of this opcode; "" for none."""
    if problem := _wrong_value(name, key, value, inside):
        return problem
    if opcode in OPERANDS and key in _ALONE and opcode not in _ALONE[key]:
        return f"the {opcode} {shorten(name, 60)} says {key}=, which it has not"
    if key == "replica_groups" and _ONE_LIST.match(value):
        return f"replica_groups of {shorten(name, 60)} are {shorten(value, 40)}, a list and no list of groups"
    return ""


def _too_little(name: str, opcode: str, said: Mapping[str, str], attributes: str) -> str:
    """The missing attribute of an instruction; "" for none. said: the attributes that were read."""
    for key in _NEEDED.get(opcode, ()):
        if key not in said and f", {key}=" not in attributes:
            return f"the {opcode} {shorten(name, 60)} says no {key}=: is text missing?"
    if said.get("use_global_device_ids") == "true" and "channel_id" not in said and opcode.startswith("all-reduce"):
        return f"{shorten(name, 60)} uses global numbers of devices, and has no channel_id"
    return ""


def _wrong_value(name: str, key: str, value: str, inside: str) -> str:
    """The mistake in the value of one attribute; "" for none."""
    if (
        value.startswith("$")
        or (key == "algorithm" and value.startswith("%"))
        or (key == "direction" and value not in _DIRECTIONS)
    ):
        return f"{key} of {shorten(name, 60)} is {shorten(value, 40)!r}"
    if key == "operand_layout_constraints":
        demanded, given = len(parts(value[1:-1])), len(parts(inside))
        if demanded != given:
            return f"{shorten(name, 60)} demands layouts of {demanded} operands, and has {given}"
    if key in _FLAGS and value not in ("true", "false"):
        return f"{key} of {shorten(name, 60)} is {shorten(value, 40)!r}, neither true nor false"
    return ""


def _said(attributes: str) -> Iterator[tuple[str, str]]:
    """(name, value) of each, as far as they are of this form; those from the metadata on are left out."""
    at = 0
    while (found := _KEY.match(attributes, at)) is not None:
        if attributes.startswith(ENDS, at):
            return
        value = found[2]
        if value in ("{", "[", "("):
            value = balanced(attributes, found.start(2))
            if not value:
                return
        yield found[1], value
        at = found.start(2) + len(value)


def _s(count: int) -> str:
    return "" if count == 1 else "s"
