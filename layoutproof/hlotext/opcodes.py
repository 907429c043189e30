"""The opcodes of HLO. Source: `hlo_opcode.h` of openxla/xla (2026-08)."""

from __future__ import annotations

_SYNCHRONOUS = (
    *("abs", "acos", "acosh", "add", "add-dependency", "after-all", "and", "asin", "asinh", "atan2", "atanh"),
    *("batch-norm-grad", "batch-norm-inference", "batch-norm-training", "bitcast", "bitcast-convert", "broadcast"),
    *("call", "cbrt", "ceil", "cholesky", "clamp", "collective-broadcast", "compare", "complex", "concatenate"),
    *("conditional", "constant", "convert", "convolution", "cosine", "cosh", "count-leading-zeros", "custom-call"),
    *("divide", "domain", "dot", "dynamic-reshape", "dynamic-slice", "dynamic-update-slice", "erf", "exponential"),
    *("exponential-minus-one", "fft", "floor", "fusion", "gather", "get-dimension-size", "get-tuple-element", "imag"),
    *("infeed", "iota", "is-finite", "log", "log-plus-one", "logistic", "map", "maximum", "minimum", "mulhi"),
    *("multiply", "negate", "not", "opt-barrier", "or", "outfeed", "pad", "parameter", "partition-id", "popcnt"),
    *("power", "ragged-all-to-all", "ragged-dot", "real", "reduce", "reduce-precision", "reduce-scatter"),
    *("reduce-window", "remainder", "replica-id", "reshape", "reverse", "rng", "rng-bit-generator"),
    *("rng-get-and-update-state", "round-nearest-afz", "round-nearest-even", "rsqrt", "scaled-dot", "scan", "scatter"),
    *("select", "select-and-scatter", "set-dimension-size", "shift-left", "shift-right-arithmetic", "sign"),
    *("shift-right-logical", "sine", "sinh", "slice", "sort", "sqrt", "stochastic-convert", "subtract", "tan", "tanh"),
    *("topk", "transpose", "triangular-solve", "tuple", "while", "xor", "all-to-all"),
)
"""Each of these can be started and waited for, as `slice-start`, `slice-update`, `slice-done`."""
_PAIRS = ("all-gather", "all-reduce", "async", "collective-permute", "copy")
"""Those that have opcodes of their own for that."""
OPCODES = frozenset(
    (
        *_SYNCHRONOUS,
        *(f"{name}-{step}" for name in _SYNCHRONOUS for step in ("start", "update", "done")),
        *(f"{name}{step}" for name in _PAIRS for step in ("-start", "-done")),
        *("all-gather", "all-reduce", "collective-permute", "copy", "async-update"),
        *(f"{name}{step}" for name in ("send", "recv", "send-done", "recv-done") for step in ("", "-start", "-done")),
    )
)
"""Every opcode that XLA's parser knows."""
