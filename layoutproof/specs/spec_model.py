"""What a spec file may say, as pydantic models: one for the file, one per kind of check.

A property's model is made from the property's module: how many layouts it speaks of and which options it has. So a
new property is known here without an edit. `specs.spec` turns files into checks with these; editors use `json_schema`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model, model_validator

from layoutproof.registry.catalogue import kernel_properties, layouts_of, options_of, properties, property_module
from layoutproof.solvers.decide import ENGINES
from layoutproof.specs.validation import Model, shown

EXAMPLE = '"f32[3,5]{1,0:T(2,2)}"'
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
"""What names a layout. No layout text looks like this: each has brackets."""


def _layout(value: object) -> object:
    if isinstance(value, str):
        if value.strip():
            return value
    elif isinstance(value, dict) and len(value) == 1:
        return value
    raise ValueError(f"expected a layout's name, a text such as {EXAMPLE}, or {{language: ..}}; found {shown(value)}")


def _exact(value: object) -> object:
    # a float is never exact, so it never equals a figure
    if type(value) in (int, str) or (isinstance(value, list | dict) and _only_exact(value)):
        return value
    raise ValueError(f"expected a whole number, a closed form as text, or lists of them; found {shown(value)}")


def _only_exact(value: object) -> bool:
    parts = value if isinstance(value, list) else value.values() if isinstance(value, dict) else None
    return type(value) in (int, str) if parts is None else all(_only_exact(part) for part in parts)


def _offsets(value: object) -> object:
    if type(value) is int or (isinstance(value, list) and all(_offsets(part) is part for part in value)):
        return value
    raise ValueError(f"expected an offset or nested lists of offsets; found {shown(value)}")


def _programs(value: object) -> object:
    if value is None or type(value) is int or (isinstance(value, list) and all(_programs(p) is p for p in value)):
        return value
    raise ValueError(f"expected a program, null, or nested lists of them; found {shown(value)}")


def _engine(value: object) -> object:
    if value in ENGINES:
        return value
    raise ValueError(f"expected one of {', '.join(ENGINES)}; found {shown(value)}")


_LAYOUT_SCHEMA = {
    "description": "A name from `layouts`, a layout text, or a mapping with one key, the language.",
    "anyOf": [{"type": "string", "minLength": 1}, {"type": "object", "minProperties": 1, "maxProperties": 1}],
}
_EXACT_SCHEMA = {"type": ["integer", "string", "array", "object"]}
Layout = Annotated[Any, BeforeValidator(_layout), WithJsonSchema(_LAYOUT_SCHEMA)]
Exact = Annotated[Any, BeforeValidator(_exact), WithJsonSchema(_EXACT_SCHEMA)]
Offsets = Annotated[Any, BeforeValidator(_offsets), WithJsonSchema({"type": ["integer", "array"]})]
Programs = Annotated[Any, BeforeValidator(_programs), WithJsonSchema({"type": ["integer", "array", "null"]})]
Engine = Annotated[Any, BeforeValidator(_engine), WithJsonSchema({"enum": list(ENGINES)})]
Place = dict[str, int]


class KernelModel(Model):
    """The Pallas calls of a function: `module:function` or `file.py:function`, and what it is traced with.

    args: shapes such as bf16[1024,1024], Python literals as text, or values.  kwargs: values.  target, compiler: the
    hardware.  assume: of scalar prefetch.  call: one of several calls, by its number or name.
    """

    trace: str = Field(pattern=r"^.+:[^:/\\]+$")
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    target: str | None = None
    compiler: str | None = None
    assume: list[str] = []
    call: int | str | None = None


class SpecFile(Model):
    """A spec file. source: where the truth comes from.  layouts, kernels: what is named.  checks: what must hold."""

    source: str = ""
    layouts: dict[str, Layout] = {}
    kernels: dict[str, KernelModel] = {}
    checks: list[dict[str, Any]] = Field(min_length=1)


class CheckModel(Model):
    """What every check may say besides its kind."""

    name: str = ""
    note: str = ""


class PropertyCheck(CheckModel):
    """What every check of a property may say; `specs.check` says when the expectation is met."""

    expect: Literal["proved", "refuted", "unknown"] = "proved"
    counterexample: dict[str, list[int] | dict[str, int]] | None = None
    reason: str = ""
    figures: dict[str, Exact] = {}
    where: str | None = None
    engine: Engine | None = None
    confirm: bool = False
    effort: int = Field(default=1, ge=1, le=1000)

    @model_validator(mode="after")
    def _consistent(self) -> PropertyCheck:
        if self.counterexample is not None and self.expect != "refuted":
            raise ValueError(f"a counterexample belongs to 'expect: refuted', not to {self.expect!r}")
        if self.expect == "proved" and self.reason:
            raise ValueError("a proof has no reason; 'reason' belongs to 'expect: refuted' or 'expect: unknown'")
        return self


class KernelCheck(PropertyCheck):
    """Every property of kernels, of one kernel or of every Pallas call that a name stands for."""

    kernel: Layout
    target: str | None = None
    compiler: str | None = None


class LocateCheck(CheckModel):
    """Where one element is: one place, or a list of places, one per replica."""

    locate: Layout
    index: list[int]
    is_: Place | list[Place] = Field(alias="is")


class TableCheck(CheckModel):
    """The offset of every element, as nested lists of the logical shape."""

    table: Layout
    is_: Offsets = Field(alias="is")


class PrintsCheck(CheckModel):
    """What a layout's text is printed as after reading it."""

    prints: Layout
    is_: str = Field(alias="is")
    mode: Literal["strict", "xla"] = "strict"


class InvalidCheck(CheckModel):
    """A text that is no layout, and a part of the message that says why."""

    invalid: Any
    error: str = ""
    mode: Literal["strict", "xla"] = "strict"


class TpuDefaultCheck(CheckModel):
    """The layout that the TPU compiler picks for a shape."""

    tpu_default: str
    target: str
    is_: str = Field(alias="is")


class SizesCheck(CheckModel):
    """How many bytes an array takes, by who says so (`layouts.xla.sizes`); any subset of the names."""

    sizes: Layout
    is_: dict[str, Exact] = Field(alias="is", min_length=1)


class ProgramsCheck(CheckModel):
    """Which program writes each element of an output last: nested lists of its shape, null where none does.

    A program is a number, `value` over the names of the grid (else the decimal digits of its index), or its index.
    """

    programs: Layout
    operand: str = ""
    value: str = ""
    is_: Programs = Field(alias="is")


class SlicesCheck(CheckModel):
    """The elements that one program sees: [first, one past the last] per dimension of the array."""

    slices: Layout
    operand: str = ""
    program: list[int]
    is_: list[Annotated[list[int], Field(min_length=2, max_length=2)]] = Field(alias="is")


FACTS: dict[str, type[CheckModel]] = {
    "locate": LocateCheck,
    "table": TableCheck,
    "prints": PrintsCheck,
    "invalid": InvalidCheck,
    "tpu_default": TpuDefaultCheck,
    "sizes": SizesCheck,
    "programs": ProgramsCheck,
    "slices": SlicesCheck,
}
"""Kinds of check that compare a number or a text instead of asking a property."""


@lru_cache(maxsize=1)
def kinds() -> tuple[str, ...]:
    """Every kind of check: the properties, then the facts."""
    return (*properties(), *kernel_properties(), "kernel", *FACTS)


@lru_cache(maxsize=256)
def model_of(kind: str) -> type[CheckModel]:
    """The model of one kind of check."""
    if kind in FACTS:
        return FACTS[kind]
    if kind == "kernel":
        return KernelCheck
    module = property_module(kind)
    many = layouts_of(kind)
    about: Any = Layout if many == 1 else Annotated[list[Layout], Field(min_length=many, max_length=many)]
    fields: dict[str, Any] = {kind: (about, ...)}
    for option, (annotation, default) in options_of(kind).items():
        fields[option] = (annotation, default)
    page = (module.__doc__ or kind).strip().splitlines()[0]
    model: type[CheckModel] = create_model(kind, __base__=PropertyCheck, __doc__=page, **fields)
    return model


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a spec file, for editors.

    >>> json_schema()["required"]
    ['checks']
    """
    whole = SpecFile.model_json_schema()
    definitions = {kind: model_of(kind).model_json_schema(by_alias=True) for kind in kinds()}
    whole["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    whole["title"] = "layoutproof spec"
    whole["properties"]["checks"]["items"] = {"anyOf": [{"$ref": f"#/$defs/{kind}"} for kind in definitions]}
    whole["properties"]["layouts"]["propertyNames"] = {"pattern": f"^{NAME.pattern}$"}
    whole["properties"]["kernels"]["additionalProperties"] = KernelModel.model_json_schema()
    whole["$defs"] = definitions
    return whole
