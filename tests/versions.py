"""What tests ask of the versions of what is installed."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version

import pytest


def jaxlib_version() -> str:
    """Of jaxlib, "" where it is not installed."""
    return version("jaxlib") if importlib.util.find_spec("jaxlib") is not None else ""


jaxlib_measured = pytest.mark.skipif(
    jaxlib_version() != "" and not jaxlib_version().startswith("0.10."),
    reason=f"mode xla is measured on jaxlib 0.10.2; {jaxlib_version()} judges a few odd texts otherwise",
)
