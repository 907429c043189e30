"""What may be wrong with a target, and shapes without a default layout."""

from __future__ import annotations

from layoutproof.core.message import Template

COMPILER_VERSION = Template(
    "hardware.compiler_version", "a compiler is a version of libtpu, not {found!r}; measured: {measured}"
)
GPU_COMPILER = Template("hardware.gpu_compiler", "no rules for compiler {found!r}; read from: {known}")
NAMED_DEFAULT = Template(
    "hardware.named_default", "[{shape}]: the default layout depends on divisibility; give numbers"
)
NEGATIVE_EXTENT = Template("hardware.negative_extent", "{shape}: an extent is never negative")
TOO_LARGE = Template(
    "hardware.too_large", "{shape} has more than 2**48 elements; no default layout is known above that"
)
