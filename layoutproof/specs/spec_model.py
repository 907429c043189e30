"""Spec files as pydantic models: one for the file, one per kind of check.

A property's model is made from the property's module: how many layouts it speaks of and which options it has. So a
new property is known here without an edit. `specs.spec` turns files into checks with these; editors use `json_schema`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model, model_validator

from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError
from layoutproof.registry.catalogue import kernel_properties, layouts_of, options_of, properties, property_module
from layoutproof.registry.expressions import operator, operators
from layoutproof.registry.read import languages
from layoutproof.solvers.decide import ENGINES
from layoutproof.specs import problems
from layoutproof.specs.validation import Model, shown

_EXAMPLE = "f32[3,5]{1,0:T(2,2)}"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
"""A name of a layout. No layout text looks like this: each has brackets."""


def _layout(value: object) -> object:
    if isinstance(value, str):
        if value.strip():
            return value
    elif isinstance(value, dict) and len(value) == 1:
        return value
    raise ValueError(problems.LAYOUT_FORM(_EXAMPLE, shown(value)))


def _exact(value: object) -> object:
    # a float is never exact, so it never equals a figure
    if type(value) in (int, str) or (isinstance(value, list | dict) and _only_exact(value)):
        return value
    raise ValueError(problems.EXPECTED("a whole number, a closed form as text, or lists of them", shown(value)))


def _some(checks: list[JsonObject]) -> list[JsonObject]:
    if not checks:
        raise LayoutError(problems.CHECKS_EMPTY())
    return checks


def _only_exact(value: object) -> bool:
    parts = value if isinstance(value, list) else value.values() if isinstance(value, dict) else None
    return type(value) in (int, str) if parts is None else all(_only_exact(part) for part in parts)


def _offsets(value: object) -> object:
    if type(value) is int or (isinstance(value, list) and all(_offsets(part) is part for part in value)):
        return value
    raise ValueError(problems.EXPECTED("an offset or nested lists of offsets", shown(value)))


def _contents(value: object) -> object:
    if value in ("padding", "hole", "outside") or _is_index(value):
        return value
    if isinstance(value, list) and value and all(_is_index(part) for part in value):
        return value
    wanted = "an index such as [2, 3], a list of them, padding, hole or outside"
    raise ValueError(problems.EXPECTED(wanted, shown(value)))


def _is_index(value: object) -> bool:
    return isinstance(value, list) and all(type(entry) is int for entry in value)


def _names(value: object) -> object:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, list) and value and all(isinstance(part, str) and part for part in value):
        return value
    raise ValueError(problems.EXPECTED("a name or a list of names", shown(value)))


def _engine(value: object) -> object:
    if value in ENGINES:
        return value
    raise ValueError(problems.EXPECTED(f"one of {', '.join(ENGINES)}", shown(value)))


_LAYOUT_SCHEMA: dict[str, Any] = {
    "description": "A name from `layouts`, a layout text, or a mapping with one key: a language, or an operator.",
    "anyOf": [{"type": "string", "minLength": 1}, {"type": "object", "minProperties": 1, "maxProperties": 1}],
}
_LAYOUT_REFERENCE = {"$ref": "#/$defs/any_layout"}
_EXACT_SCHEMA = {"type": ["integer", "string", "array", "object"]}
Layout = Annotated[Any, BeforeValidator(_layout), WithJsonSchema(_LAYOUT_SCHEMA)]
Exact = Annotated[Any, BeforeValidator(_exact), WithJsonSchema(_EXACT_SCHEMA)]
Offsets = Annotated[Any, BeforeValidator(_offsets), WithJsonSchema({"type": ["integer", "array"]})]
Engine = Annotated[Any, BeforeValidator(_engine), WithJsonSchema({"enum": list(ENGINES)})]
Contents = Annotated[Any, BeforeValidator(_contents), WithJsonSchema({"type": ["array", "string"]})]
Place = dict[str, int]
Mode = Literal["strict", "xla"]


_TARGET: Any = Field(None, description="The hardware whose rules hold.", examples=["v5e", "triton"])
_COMPILER: Any = Field(None, description="The compiler's version whose rules hold.", examples=["0.0.42.1"])

_STRICT: Any = Field(
    False, description="Whether a violation that only some of the assumed tables have is refuted.", examples=[True]
)


class KernelModel(Model):
    """The Pallas calls of a function, and what it is traced with."""

    trace: str = Field(
        pattern=r"^.+:[^:/\\]+$",
        description="MODULE:FUNCTION or FILE.py:FUNCTION.",
        examples=["jax.experimental.pallas.ops.tpu.matmul:matmul"],
    )
    args: list[Any] = Field(
        [],
        description="Its arguments: shapes, with names for sizes that may be any, Python literals as text, or values.",
        examples=[["bf16[1024,1024]", "bf16[1024,1024]"], ["f32[8*M,128]"]],
    )
    kwargs: dict[str, Any] = Field({}, description="Its keyword arguments.", examples=[{"block_k": 256}])
    target: str | None = _TARGET
    compiler: str | None = _COMPILER
    assume: list[str] = Field(
        [], description="What is known of scalar-prefetch operands.", examples=[["0 <= prefetch0 < 8"]]
    )
    call: int | str | None = Field(None, description="One of several calls, by its number or name.", examples=[0])


class ProgramModel(Model):
    """A program, and what it is compiled for; or one that is compiled already."""

    function: str = Field(
        "",
        pattern=r"^$|^.+:[^:/\\]+$",
        description="MODULE:FUNCTION or FILE.py:FUNCTION, compiled when a check is run.",
        examples=["pkg.mod:step"],
    )
    export: str = Field("", description="Instead: a file that jax.export made.", examples=["step.jax"])
    dump: str = Field("", description="Instead: the text of a compiled program.", examples=["dumps/step.hlo"])
    record: str = Field(
        "", description="Instead: a record that `layoutproof compile -o` wrote.", examples=["step.json"]
    )
    args: list[Any] = Field([], description="Shapes, literals as text, dicts and lists.", examples=[["bf16[8,128]"]])
    kwargs: dict[str, Any] = Field({}, description="Keyword arguments.", examples=[{"steps": 4}])
    target: str = Field("cpu", description="A TPU generation, or cpu.", examples=["v5e"])
    topology: str = Field("", description="Chips; one by default.", examples=["2x2"])
    mesh: dict[str, Annotated[int, Field(ge=1)]] = Field(
        {}, description="Axis to size, in the order of the devices.", examples=[{"data": 2, "model": 2}]
    )
    in_: list[str] = Field([], alias="in", description="A sharding for each argument.", examples=[["P('data', None)"]])
    out: list[str] = Field([], description="A sharding for each result.", examples=[["P('data')"]])
    donate: list[int] = Field([], description="Arguments, by number, that are given away.", examples=[[0]])
    flags: dict[str, str] = Field({}, description="Options of the compiler.", examples=[{"xla_flag": "true"}])
    libtpu: str = Field("", description="Where another libtpu is.", examples=["/opt/libtpu-0.0.50"])
    schedule: bool = Field(
        default=False, description="Whether its record has the cycles of the compiler's schedule.", examples=[True]
    )
    seconds: int = Field(600, ge=1, description="That compiling may take.", examples=[60])

    @model_validator(mode="after")
    def _one_source(self) -> ProgramModel:
        given = [name for name in ("function", "export", "dump", "record") if getattr(self, name)]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise ValueError(problems.PROGRAM_SOURCE(found))
        return self


class SpecFile(Model):
    """A spec file: layouts, kernels and programs by name, and what must hold of them."""

    source: str = Field(
        "", description="Where the truth comes from.", examples=["https://openxla.org/xla/tiled_layout"]
    )
    layouts: dict[str, Layout] = Field(
        {}, description="Layouts by name.", examples=[{"scores": "f32[3,5]{1,0:T(2,2)}"}]
    )
    kernels: dict[str, KernelModel] = Field(
        {},
        description="Pallas calls of user code by name, traced when a check is run.",
        examples=[{"mm": {"trace": "a:f"}}],
    )
    programs: dict[str, ProgramModel] = Field(
        {},
        description="Programs by name, compiled when a check is run.",
        examples=[{"step": {"function": "pkg.mod:step", "args": ["bf16[8,128]"], "target": "v5e"}}],
    )
    checks: Annotated[list[dict[str, Any]], AfterValidator(_some)] = Field(
        [],
        description="What must hold, one question each. Without any the file is for the gate, and nothing is proved.",
        examples=[[{"injective": "scores"}]],
        json_schema_extra={"minItems": 1},
    )
    gate: dict[str, Any] = Field(
        {},
        description="Rules of the gate for this file, class to severity; `layoutproof gate` reads them, no check does.",
        examples=[{"grew": "warn, deny above 2%"}],
    )


SAME = "same"
"""The kind of check that compares the values of two functions."""
SUM_TYPES = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Types that sums are kept in: bits of their significands, with the one that is not stored (IEEE 754; bfloat16: 8)."""


class CheckModel(Model):
    """What every check may say besides its kind."""

    name: str = Field("", description="What it is about, for reports.", examples=["whole tiles have no padding"])
    note: str = Field("", description="Anything worth knowing.", examples=["openxla/xla issue 47378"])


class PropertyCheck(CheckModel):
    """What every check of a property may say; `specs.check` says when the expectation is met."""

    expect: Literal["proved", "refuted", "unknown"] = Field(
        "proved", description="The verdict that is expected.", examples=["refuted"]
    )
    counterexample: dict[str, list[int] | dict[str, int]] | None = Field(
        None,
        description="With expect refuted: the smallest counterexample.",
        examples=[{"first": [0, 4], "second": [1, 0]}],
    )
    reason: str = Field("", description="A part of the reason of what is not proved.", examples=["is not modelled"])
    figures: dict[str, Exact] = Field(
        {}, description="Exact numbers of the answer; any subset.", examples=[{"padding_elements": 9}]
    )
    where: str | None = Field(None, description="A condition on the sizes.", examples=["N % 8 == 0"])
    engine: Engine | None = Field(None, description="The one engine that is asked.", examples=["isl"])
    confirm: bool = Field(False, description="Whether a second engine must agree.", examples=[True])
    effort: int = Field(1, ge=1, le=1000, description="Multiplies the budget of solver steps.", examples=[10])

    @model_validator(mode="after")
    def _consistent(self) -> PropertyCheck:
        if self.counterexample is not None and self.expect != "refuted":
            raise ValueError(problems.COUNTEREXAMPLE_WITHOUT_REFUTED(self.expect))
        if self.expect == "proved" and self.reason:
            raise ValueError(problems.REASON_OF_PROVED())
        return self


class KernelCheck(PropertyCheck):
    """Every property of kernels, of one kernel or of every Pallas call that a name stands for."""

    kernel: Layout = Field(examples=["mm"])
    target: str | None = _TARGET
    compiler: str | None = _COMPILER
    strict_tables: bool = _STRICT
    only: Literal["", "grid"] = Field("", description="grid asks nothing of the bodies.", examples=["grid"])


class ValuesCheck(CheckModel):
    """What every claim about the values of a function may say."""

    expect: Literal["sampled", "refuted", "unknown"] = Field(
        "sampled", description="The verdict that is expected; proved is more than sampled.", examples=["refuted"]
    )
    reason: str = Field("", description="A part of the reason of what is not sampled.", examples=["is not modelled"])
    figures: dict[str, Exact] = Field(
        {}, description="Exact numbers of the answer; any subset.", examples=[{"different": 512}]
    )
    inputs: str | None = Field(
        None,
        pattern=r"^.+:[^:/\\]+$",
        description="Instead of args: a function that gives the arguments, tables among them.",
        examples=["pkg.kernels:arguments"],
    )
    where: list[str] = Field(
        [], description="Conditions on sizes that only the running program knows.", examples=[["grid1 <= 7"]]
    )

    @model_validator(mode="after")
    def _consistent(self) -> ValuesCheck:
        if self.expect == "sampled" and self.reason:
            raise ValueError(problems.REASON_OF_SAMPLED())
        return self


class StableCheck(ValuesCheck):
    """Whether every exponential of a function is of a number that is at most 0, and one of them 0: none overflows."""

    stable: str = Field(description="The function: a name from `kernels`.", examples=["mm"])


class SumsCheck(ValuesCheck):
    """Whether every sum of a function is kept in a type at least as exact as the one that is named."""

    sums_at_least: str = Field(description="The function: a name from `kernels`.", examples=["mm"])
    dtype: Literal["bfloat16", "float16", "float32", "float64"] = Field(
        description="The type, by the bits of its significand.", examples=["float32"]
    )


class SameCheck(ValuesCheck):
    """Whether a function computes what a reference computes: two entries of `kernels`, on the arguments of the first.

    It is over the reals, at random points of prime fields, and `sampled` at best: `layoutproof explain sampled`.
    """

    same: str = Field(description="The function: a name from `kernels`.", examples=["mm"])
    as_: str = Field(
        alias="as", description="The reference: a name from `kernels`. Without args it takes those.", examples=["dot"]
    )
    args: str | list[Any] | None = Field(
        None,
        description="The arguments of both, instead of those of the entries: one text, or a list. Sizes may be names, "
        "of which relations prove all.",
        examples=["f32[M,K], f32[K,N]"],
    )
    points: int = Field(3, ge=1, le=100, description="At how many random points.", examples=[5])
    gradient: bool = Field(False, description="Whether the gradients are compared.", examples=[True])
    outputs: list[Annotated[int, Field(ge=0)]] | None = Field(
        None, min_length=1, description="Only these outputs, from 0; all by default.", examples=[[0]]
    )


class LocateCheck(CheckModel):
    """Where one element is: one place, or a list of places, one per replica."""

    locate: Layout = Field(examples=["scores"])
    index: list[int] = Field(description="The logical index.", examples=[[2, 3]])
    is_: Place | list[Place] = Field(alias="is", description="Axis to coordinate.", examples=[{"offset": 17}])


class AtCheck(CheckModel):
    """What is at a place: one element, several that are there, padding, a hole, or nothing because it is outside.

    The place's coordinates are keys of their own: `offset` (in elements), `byte`, `bit`, or the names of axes.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": {"type": "integer"}})

    at: Layout = Field(examples=["scores"])
    is_: Contents = Field(alias="is", description="An index, several, or a word.", examples=[[2, 3]])
    dimensions: list[str] | None = Field(
        None, description="Of padding: the dimensions whose rounding up made it.", examples=[["i"]]
    )
    count: int | None = Field(None, description="How many elements there are.", examples=[1])

    @model_validator(mode="after")
    def _placed(self) -> AtCheck:
        given = self.model_extra or {}
        for name, value in given.items():
            if type(value) is not int:
                raise ValueError(problems.COORDINATE_TYPE(name, shown(value)))
        if not given:
            raise ValueError(problems.NO_COORDINATES())
        if self.dimensions is not None and self.is_ != "padding":
            raise ValueError(problems.DIMENSIONS_WITHOUT_PADDING())
        return self


class TableCheck(CheckModel):
    """The offset of every element, as nested lists of the logical shape."""

    table: Layout = Field(examples=["scores"])
    is_: Offsets = Field(alias="is", description="The offsets.", examples=[[[0, 1], [2, 3]]])


class PrintsCheck(CheckModel):
    """What a layout's text is printed as after reading it: the contract of a layout language."""

    prints: Layout = Field(examples=["f32[3,5]{1,0:T(2,2)}"])
    is_: str = Field(alias="is", description="The text.", examples=["f32[3,5]{1,0:T(2,2)}"])
    mode: Mode = Field("strict", description="As whom it is read.", examples=["xla"])


class InvalidCheck(CheckModel):
    """A text that is no layout: the contract of a layout language."""

    invalid: Any = Field(description="The text, or {language: ..}.", examples=["f32[3,5]{1}"])
    error: str = Field("", description="A part of the message that says why.", examples=["minor_to_major"])
    mode: Mode = Field("strict", description="As whom it is read.", examples=["xla"])


class TpuDefaultCheck(CheckModel):
    """The layout that the TPU compiler picks for a shape."""

    tpu_default: str = Field(description="The shape.", examples=["f32[1000,5]"])
    target: str = Field(description="The TPU generation.", examples=["v5e"])
    is_: str = Field(alias="is", description="The layout.", examples=["f32[1000,5]{0,1:T(8,128)}"])


class SizesCheck(CheckModel):
    """How many bytes an array takes, by who says so (`layouts.xla.sizes`)."""

    sizes: Layout = Field(examples=["bf16[1,5]{1,0:T(8,128)(2,1)}"])
    is_: dict[str, Exact] = Field(
        alias="is", min_length=1, description="Bytes by name; any subset.", examples=[{"definition": 2048}]
    )


class ProgramCheck(CheckModel):
    """What every claim about a program may say."""

    expect: Literal["proved", "refuted", "unknown"] = Field(
        "proved", description="The verdict that is expected.", examples=["refuted"]
    )
    reason: str = Field("", description="A part of the reason of what is not proved.", examples=["all-gather"])
    figures: dict[str, Exact] = Field(
        {}, description="Exact numbers of the answer; any subset.", examples=[{"bytes": 0}]
    )


Bytes = Annotated[int | str, WithJsonSchema({"type": ["integer", "string"]})]
_NAME: Any = Field(description="A name from `programs`.", examples=["step"])
_AT_MOST: Any = Field(description="Bytes, or a text such as 12GiB.", examples=["12GiB"])
_NAMES = Annotated[Any, BeforeValidator(_names), WithJsonSchema({"type": ["string", "array"]})]


class PeakMemoryCheck(ProgramCheck):
    """The most memory at one time on one device, by the compiler's own figure."""

    peak_memory: str = _NAME
    at_most: Bytes = _AT_MOST


class ArgumentMemoryCheck(ProgramCheck):
    """Bytes of all arguments on one device, padding included."""

    argument_memory: str = _NAME
    at_most: Bytes = _AT_MOST


class CopiesCheck(ProgramCheck):
    """Bytes that relayout copies read and write, in loops times their trips; those of parameters and results apart."""

    copies: str = _NAME
    at_most: Bytes | None = Field(None, description="Of copies inside of the program.", examples=["1MiB"])
    entry_at_most: Bytes | None = Field(None, description="Of copies of parameters and results.", examples=["0 bytes"])


class CollectivesCheck(ProgramCheck):
    """Bytes on one device, the larger side of each collective, in loops times their trips."""

    collectives: str = _NAME
    at_most: Bytes = _AT_MOST
    kind: _NAMES = Field((), description="Only of these kinds.", examples=["all-gather"])
    axes: _NAMES = Field((), description="Only those along one of these axes of the mesh.", examples=[["model"]])


class ProgramPaddingCheck(ProgramCheck):
    """The share of all arrays of the program that holds no element."""

    program_padding: str = _NAME
    at_most: str = Field(description="A share.", examples=["5%"])


class LayoutCheck(ProgramCheck):
    """The layout of one parameter or result."""

    layout: str = _NAME
    of: str = Field(description="Its name, or parameter 0, result 0.", examples=["params['w']"])
    is_: str = Field(alias="is", description="Its shape with layout.", examples=["f32[8,128]{1,0:T(8,128)}"])


class DonatedCheck(ProgramCheck):
    """Parameters whose buffers results take."""

    donated: str = _NAME
    of: _NAMES = Field(description="Their names; with a * at the end, all that start so.", examples=["params*"])


class SpellingCheck(ProgramCheck):
    """Shardings that are spelled so that JAX compiles nothing again."""

    spelling: str = _NAME
    of: str | None = Field(None, description="A parameter; with a * at the end, all that start so.", examples=["cache"])
    as_: str | None = Field(None, alias="as", description="The sharding that is passed.", examples=["P('data', None)"])


class ReplicatedCheck(ProgramCheck):
    """No parameter above a size is on every device."""

    replicated: str = _NAME
    above: Bytes = Field(description="Bytes, or a text such as 1MiB.", examples=["1MiB"])


class VmemCheck(ProgramCheck):
    """VMEM that each Pallas kernel takes, as its compiler counted it."""

    vmem: str = _NAME
    at_most: Bytes = _AT_MOST
    of: str | None = Field(None, description="Only of the kernel of this name.", examples=["matmul_kernel"])


class KernelsCheck(ProgramCheck):
    """The program's own Pallas calls, proved."""

    kernels: str = _NAME


class EstimatedCyclesCheck(ProgramCheck):
    """The sum of what the compiler prices, in loops times their trips."""

    estimated_cycles: str = _NAME
    at_most: int = Field(ge=0, description="Cycles.", examples=[100000])


class FlopsCheck(ProgramCheck):
    """Flops of one run on one device, in loops times their trips."""

    flops: str = _NAME
    at_most: int = Field(ge=0, description="Flops.", examples=[1000000000000])


class StepTimeBoundCheck(ProgramCheck):
    """A lower bound of a step's time, by what it computes and moves; no promise of speed."""

    step_time_bound: str = _NAME
    at_most: str = Field(description="A time.", examples=["20 ms"])


SAME_FUNCTION = "same_function"
"""The kind of check that the gate alone asks, because it is about two states."""


class SameFunctionCheck(ProgramCheck):
    """The program computes what it did in the state that the gate compares with; no other command asks it."""

    same_function: str = _NAME

    @model_validator(mode="after")
    def _of_the_gate(self) -> SameFunctionCheck:
        if self.expect != "proved" or self.reason or self.figures:
            raise ValueError(problems.GATE_CLAIM_EXPECTATION())
        return self


PROGRAM_CLAIMS: dict[str, type[ProgramCheck]] = {
    "peak_memory": PeakMemoryCheck,
    "argument_memory": ArgumentMemoryCheck,
    "copies": CopiesCheck,
    "collectives": CollectivesCheck,
    "program_padding": ProgramPaddingCheck,
    "layout": LayoutCheck,
    "donated": DonatedCheck,
    "spelling": SpellingCheck,
    "replicated": ReplicatedCheck,
    "vmem": VmemCheck,
    "kernels": KernelsCheck,
    "estimated_cycles": EstimatedCyclesCheck,
    "flops": FlopsCheck,
    "step_time_bound": StepTimeBoundCheck,
    SAME_FUNCTION: SameFunctionCheck,
}
"""Kinds of check that are about a program; `programs.claims` asks them, and the gate the last one."""


OF_VALUES: dict[str, type[ValuesCheck]] = {SAME: SameCheck, "stable": StableCheck, "sums_at_least": SumsCheck}
"""Kinds of check that are about the values of functions; `specs.compared` asks them."""


FACTS: dict[str, type[CheckModel]] = {
    "locate": LocateCheck,
    "at": AtCheck,
    "table": TableCheck,
    "prints": PrintsCheck,
    "invalid": InvalidCheck,
    "tpu_default": TpuDefaultCheck,
    "sizes": SizesCheck,
}
"""Kinds of check that compare a number or a text instead of asking a property."""


@lru_cache(maxsize=1)
def kinds() -> tuple[str, ...]:
    """Every kind of check: the properties, what is about functions, the facts, the claims about programs."""
    return (*properties(), *kernel_properties(), "kernel", *OF_VALUES, *FACTS, *PROGRAM_CLAIMS)


@lru_cache(maxsize=256)
def model_of(kind: str) -> type[CheckModel]:
    """The model of one kind of check."""
    if kind in FACTS:
        return FACTS[kind]
    if kind in PROGRAM_CLAIMS:
        return PROGRAM_CLAIMS[kind]
    if kind == "kernel":
        return KernelCheck
    if kind in OF_VALUES:
        return OF_VALUES[kind]
    module = property_module(kind)
    many = layouts_of(kind)
    about: Any = Layout if many == 1 else Annotated[list[Layout], Field(min_length=many, max_length=many)]
    page = (module.__doc__ or kind).strip()
    first = page.splitlines()[0]
    examples = ["mm" if kind in kernel_properties() else _EXAMPLE if many == 1 else [_EXAMPLE] * many]
    fields: dict[str, Any] = {kind: (about, Field(description=first, examples=examples))}
    for option, (annotation, default) in options_of(kind).items():
        said = {"target": _TARGET, "compiler": _COMPILER, "strict_tables": _STRICT}.get(option)
        fields[option] = (annotation, said or Field(default, description=_sentence(page, option)))
    model: type[CheckModel] = create_model(kind, __base__=PropertyCheck, __doc__=first, **fields)
    return model


def _sentence(page: str, option: str) -> str:
    """The first sentence of a property's page on an option."""
    sentences = re.split(r"(?<!e\.g\.)(?<=\.)\s+", " ".join(page.split()))
    return next((text for text in sentences if f"`{option}`" in text), f"An option; the page of it: {sentences[0]}")


def json_schema() -> JsonObject:
    """The JSON Schema (draft 2020-12) of a spec file, for editors.

    >>> list(json_schema()["properties"])
    ['source', 'layouts', 'kernels', 'programs', 'checks', 'gate']
    """
    whole = SpecFile.model_json_schema()
    definitions = {kind: model_of(kind).model_json_schema(by_alias=True) for kind in kinds()}
    whole["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    whole["title"] = "layoutproof spec"
    whole["properties"]["checks"]["items"] = _one_kind(definitions)
    whole["properties"]["layouts"]["propertyNames"] = {"pattern": f"^{NAME.pattern}$"}
    whole["properties"]["kernels"]["additionalProperties"] = KernelModel.model_json_schema()
    whole["properties"]["programs"]["additionalProperties"] = ProgramModel.model_json_schema(by_alias=True)
    whole["$defs"] = definitions
    return {**_referring(whole), "$defs": {**_referring(definitions), "any_layout": _layout_schema()}}


def _one_kind(definitions: JsonObject) -> JsonObject:
    """A check has one of the kinds as a key, and what else it may say is that kind's.

    Each kind is a condition of its own, so that a validator names the wrong key or value; of alternatives it could only
    say that none fits.
    """
    return {
        "type": "object",
        "properties": {
            kind: {"description": one["description"], "examples": one["properties"][kind]["examples"]}
            for kind, one in definitions.items()
        },
        "anyOf": [{"required": [kind]} for kind in definitions],
        "allOf": [{"if": {"required": [kind]}, "then": {"$ref": f"#/$defs/{kind}"}} for kind in definitions],
    }


def _layout_schema() -> JsonObject:
    """What may stand for a layout: also a language with its value, or an operator with as many operands as it takes."""
    known: dict[str, Any] = {name: {} for name in languages()}
    for name in operators():
        op = operator(name)
        most = op.layouts + bool(op.argument)
        listed: dict[str, Any] = {"type": "array", "minItems": most - op.optional, "maxItems": most}
        listed["prefixItems"] = [_LAYOUT_REFERENCE] * op.layouts
        said = {"description": f"{op.form}: {op.equation}."}
        known[name] = said | ({"anyOf": [_LAYOUT_REFERENCE, listed]} if listed["minItems"] == 1 else listed)
    text, mapping = _LAYOUT_SCHEMA["anyOf"]
    return {"description": _LAYOUT_SCHEMA["description"], "anyOf": [text, {**mapping, "properties": known}]}


def _referring(schema: Any) -> Any:
    """A schema that refers to the one of layouts instead of repeating it."""
    if isinstance(schema, list):
        return [_referring(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("anyOf") == _LAYOUT_SCHEMA["anyOf"]:
        return {key: part for key, part in schema.items() if key != "anyOf"} | _LAYOUT_REFERENCE
    return {key: _referring(part) for key, part in schema.items()}
