"""The backend_config beside a Mosaic module in its custom call, as JAX writes it and as XLA prints it again.

Every key is modelled, without meaning for what is proved (listed here), or refused by name where it says anything.
Source: `to_json` of jax/_src/tpu_custom_call.py, jax 0.10.2 and 0.12.0.1; programs compiled by libtpu 0.0.42.1, which
adds what it decided and writes numbers as text.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.pallas.from_mosaic import problems

_VMEM = 1
"""Mosaic's number of VMEM; 0 is HBM."""

_NO_MEANING = frozenset(
    # the form of the module, or how its body is compiled; arrays, windows and programs are unaffected
    {
        "serialization_format",
        "needs_layout_passes",
        "needs_hlo_passes",
        "cost_estimate",
        "shape_invariant_numerics",
        # how programs on several chips, or one after another, wait for each other
        "has_communication",
        "collective_id",
        "skip_device_barrier",
        # checks that the compiler puts into the body
        "disable_bounds_checks",
        "disable_semaphore_checks",
        # whether XLA may compute an input inside of the kernel; its windows are the same
        "allow_input_fusion",
        # libtpu's report on itself
        "used_scoped_memory_configs",
        "retry_config",
        "aliasing_operands",
    }
)


@dataclass(frozen=True, slots=True)
class Config:
    """body: base64 of the module.  vmem_limit: bytes the call asks for, None = the default.  scratch: bytes of VMEM
    that its compiler needs besides.  locations: base64 of where its operations come from, "" where the module has that.
    """

    body: str
    vmem_limit: int | None = None
    scratch: int = 0
    locations: str = ""


def config_of(text: str) -> Config:
    """The backend_config that a text starts with, JSON or a string that holds JSON.

    >>> config_of('{"custom_call_config": {"body": "TUzvUg=="}, "scoped_memory_configs": []}')
    Config(body='TUzvUg==', vmem_limit=None, scratch=0, locations='')

    Raises LayoutError for text that is no JSON, and for a field that is not modelled.
    """
    given = _json(text)
    if isinstance(given, str):
        given = _json(given)
    if not isinstance(given, Mapping):
        raise LayoutError(problems.CONFIG_NO_OBJECT(shorten(text, 40)))
    limit, scratch, body, locations = None, 0, "", ""
    for name, value in given.items():
        if name == "custom_call_config" and isinstance(value, Mapping):
            body, scratch, locations = _custom(value)
        elif name == "scoped_memory_configs":
            limit = _limit(value)
        else:
            _refuse(name, value)
    if not body:
        raise LayoutError(problems.CONFIG_NO_BODY())
    try:
        base64.b64decode(body, validate=True)
    except ValueError as error:
        raise LayoutError(problems.BODY_NO_BASE64(error)) from None
    return Config(body, limit, scratch, locations)


def _custom(given: Mapping[str, object]) -> tuple[str, int, str]:
    body, scratch, locations = "", 0, ""
    for name, value in given.items():
        if name == "body" and isinstance(value, str):
            body = value
        elif name == "debug_locations" and isinstance(value, str):
            locations = value
        elif name == "internal_scratch_in_bytes":
            scratch = _number(value, name)
        elif name in ("input_memory_space_colors", "output_memory_space_colors", "output_memory_colors"):
            _colors(name, value)
        else:
            _refuse(name, value)
    return body, scratch, locations


def _colors(name: str, value: object) -> None:
    """Memories that whole arrays are put into: HBM is where they are anyway."""
    for entry in value if isinstance(value, list) else [value]:
        color = entry.get("color", 0) if isinstance(entry, Mapping) else entry
        if _number(color, name) != 0:
            where = "VMEM" if str(color) == str(_VMEM) else f"memory {color}"
            raise LayoutError(problems.WHOLE_ARRAY(name, where))


def _limit(value: Any) -> int | None:
    limit = None
    for entry in value if isinstance(value, list) else [value]:
        known = isinstance(entry, Mapping) and set(entry) <= {"memory_space", "offset", "size"}
        if not known or _number(entry.get("memory_space"), "memory_space") != _VMEM or limit is not None:
            raise LayoutError(problems.SCOPED_FORM(shorten(str(value), 80)))
        if _number(entry.get("offset", 0), "offset") != 0:
            raise LayoutError(problems.SCOPED_OFFSET())
        limit = _number(entry.get("size"), "size")
    return limit


def _refuse(name: str, value: object) -> None:
    """Nothing where a key has no meaning here or says nothing; LayoutError otherwise."""
    if name not in _NO_MEANING and value not in ([], {}, "", None, False):
        raise LayoutError(problems.CONFIG_KEY(shorten(name, 60)))


def _number(value: object, name: str) -> int:
    # XLA prints 64-bit numbers as text
    if type(value) is int or (isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) < 20):
        return int(value)
    raise LayoutError(problems.CONFIG_NUMBER(name, shorten(repr(value), 40)))


def _json(text: str) -> object:
    try:
        return json.JSONDecoder().raw_decode(text.lstrip())[0]
    except (ValueError, RecursionError) as error:
        raise LayoutError(problems.CONFIG_NO_JSON(error)) from None
