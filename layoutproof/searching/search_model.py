"""Search files as pydantic models: tilings of a declared kernel, of a traced function, or arrays.

A model also converts the written values for the search: amounts of memory into bytes, ranges into their values,
expressions into terms. A field may look at those before it: ranges need the sizes, costs the names of both.
`layoutproof schema search` prints the JSON Schema that is made from them; the descriptions here are the manual.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema
from pydantic_core.core_schema import with_info_plain_validator_function

from layoutproof.core.amounts import amount
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.term import Term
from layoutproof.hardware.tpu_chips import chip_of
from layoutproof.kernel.kernel import MEMORIES, SEMANTICS
from layoutproof.kernel.kernel_parts import word_of
from layoutproof.kernel.kernel_text import PIPELINES, PLATFORMS, REVISITS, ROLES
from layoutproof.layouts import xla
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.questions import problems as question_problems
from layoutproof.searching import problems
from layoutproof.searching.cost import FIGURES
from layoutproof.searching.machines import BODIES, Headroom, headroom, picoseconds
from layoutproof.searching.problem import Constraint, WeightedSizes
from layoutproof.searching.ranges import condition_of, domain, expression
from layoutproof.searching.shardings import REQUIRED, RESTRICTIONS, Contraction, read_product
from layoutproof.specs.validation import Model

LARGEST = 2**63 - 1
"""XLA holds sizes in 64 bits: int64 of xla/shape.h."""
MOST_DEVICES = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class ValueReader:
    """How a value is read. read: raises LayoutError; takes what was read before it too.  schema: for editors."""

    read: Callable[[Any, ValidationInfo], object]
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        return with_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, core: object, handler: object) -> JsonObject:
        return dict(self.schema)


def one_of(known: Sequence[str], what: str) -> ValueReader:
    """One of some words. what: they are about, for errors."""
    return ValueReader(lambda value, _: word_of(value, known, what), {"enum": list(known)})


def _identifier(name: str) -> str:
    if not name.isidentifier():
        raise LayoutError(problems.NO_NAME(shorten(name, 40)))
    return name


def _name(name: str) -> str:
    if keyword.iskeyword(_identifier(name)):
        raise LayoutError(problems.NO_NAME(shorten(name, 40)))
    if name in FIGURES:
        raise LayoutError(problems.FIGURE_NAME(name))
    return name


def _variable(name: str, info: ValidationInfo) -> str:
    if any(name in shape.sizes for shape in info.data.get("sizes", ())):
        raise LayoutError(problems.SIZE_AND_VARIABLE(name))
    return name


Count = Annotated[int, Field(ge=1, le=LARGEST)]
Name = Annotated[str, AfterValidator(_name)]
Variable = Annotated[str, AfterValidator(_name), AfterValidator(_variable)]
_NAMES: Any = {"propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}}


def _tpu(name: str, info: ValidationInfo) -> str:
    from layoutproof.pallas.judge import kernel_target  # with all rules of kernels, which arrays do not need

    chip = kernel_target(name, info.data.get("compiler"))
    if chip.platform != "tpu":
        raise LayoutError(problems.NO_TPU(chip.name))
    return chip_of(chip.name).name


def _generation(name: str) -> str:
    return chip_of(name).name


def _shape_or_shapes(value: object) -> str:
    return "several" if isinstance(value, list) else "one"


def _shapes(value: dict[str, int] | list[dict[str, int]]) -> tuple[WeightedSizes, ...]:
    entries = value if isinstance(value, list) else [value]
    weightless = [{name: size for name, size in entry.items() if name != "weight"} for entry in entries]
    if not all(weightless):
        raise LayoutError(problems.SIZES_EMPTY())
    if any(set(sizes) != set(weightless[0]) for sizes in weightless):
        raise LayoutError(problems.SIZES_DIFFER())
    return tuple(WeightedSizes(sizes, entry.get("weight", 1)) for sizes, entry in zip(weightless, entries, strict=True))


def _one_set(shapes: tuple[WeightedSizes, ...]) -> tuple[WeightedSizes, ...]:
    if len(shapes) > 1:
        raise LayoutError(problems.ONE_SET_OF_SIZES())
    return shapes


def _range_kind(value: object) -> str:
    return "range" if isinstance(value, dict) else "list" if isinstance(value, list) else "number"


class Range(Model):
    """The values of a tile variable as a range."""

    from_: Count | str | None = Field(
        None, alias="from", description="The smallest, or an expression of sizes; default: multiple_of.", examples=[8]
    )
    to: Count | str | None = Field(
        None, description="The largest, or an expression of sizes; default: the largest of them.", examples=[4096, "M"]
    )
    multiple_of: Count | str | None = Field(None, description="What divides every value.", examples=[128])
    powers_of: Annotated[int, Field(ge=2, le=LARGEST)] | None = Field(
        None, description="Every value is a power of it.", examples=[2]
    )
    divides: Count | str | None = Field(
        None, description="A size, or an expression of sizes, that every value divides.", examples=["K"]
    )

    def plain(self) -> JsonObject:
        """As the file has it; a key with nothing behind it says nothing."""
        return self.model_dump(by_alias=True, exclude_none=True)


def _values(entry: Range | list[int] | int, info: ValidationInfo) -> tuple[int, ...]:
    if "sizes" not in info.data:
        return ()  # their mistake is reported already
    try:
        return domain(entry.plain() if isinstance(entry, Range) else entry, info.data["sizes"])
    except LayoutError as error:
        raise ValueError(error.problem) from None


def _known(info: ValidationInfo, *more: str) -> set[str] | None:
    """The names that an expression may use; None where those that it needs cannot be read."""
    if not {"sizes", "tune"} <= info.data.keys():
        return None
    return {*info.data["tune"], *(name for shape in info.data["sizes"] for name in shape.sizes), *more}


def _cost(value: object, info: ValidationInfo) -> Term:
    return expression(value, _known(info, *FIGURES))


def _flops(value: object, info: ValidationInfo) -> Term:
    return expression(value, _known(info, "steps"))


def _condition(value: object, info: ValidationInfo) -> Constraint:
    return condition_of(value, _known(info, *FIGURES))


_TEXTS = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
"""A text, or a list of them, as `_listed` reads it."""


def _listed(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list) else () if value is None else (value,)


if TYPE_CHECKING:
    Sizes = tuple[WeightedSizes, ...]
    Values = tuple[int, ...]
else:
    _One = Annotated[dict[Name, Count], Field(min_length=1, json_schema_extra=_NAMES)]
    Sizes = Annotated[
        Annotated[_One, Tag("one")] | Annotated[Annotated[list[_One], Field(min_length=1)], Tag("several")],
        Discriminator(_shape_or_shapes),
        AfterValidator(_shapes),
    ]
    Values = Annotated[
        Annotated[Count, Tag("number")]
        | Annotated[Annotated[list[Count], Field(min_length=1)], Tag("list")]
        | Annotated[Range, Tag("range")],
        Discriminator(_range_kind),
        AfterValidator(_values),
    ]

_EXPRESSION = {"type": ["string", "integer"]}
Amount = Annotated[
    int, ValueReader(lambda value, _: amount(value), {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]})
]
Tpu = Annotated[str, AfterValidator(_tpu)]
Cost = Annotated[Term, ValueReader(_cost, _EXPRESSION)]
Flops = Annotated[Term, ValueReader(_flops, _EXPRESSION)]
Condition = Annotated[Constraint, ValueReader(_condition, {"type": "string"})]
Conditions = Annotated[
    tuple[Condition, ...],
    BeforeValidator(_listed),
    _TEXTS,
]
Time = Annotated[int, ValueReader(lambda value, _: picoseconds(value), {"anyOf": [{"const": 0}, {"type": "string"}]})]
Kept = Annotated[
    Headroom | None,
    ValueReader(lambda value, _: None if value is None else headroom(value), {"type": ["string", "integer", "null"]}),
]


class _SearchKeys(Model):
    search: str = Field("", description="A name; default: that of the file.", examples=["matmul 8192 bf16"])
    source: str = Field("", description="Where the problem comes from.", examples=["https://docs.jax.dev"])
    note: str = Field("", description="Anything worth knowing.", examples=["the body keeps the scores in VMEM"])


class _Tilings(_SearchKeys):
    """Shared keys of tilings of declared and of traced kernels."""

    compiler: str | None = Field(None, description="The compiler's version whose rules hold.", examples=["0.0.42.1"])
    target: Tpu = Field(description="The TPU generation.", examples=["v5e", "v6e"])
    sizes: Sizes = Field(
        (),
        description="What the names of sizes stand for: a mapping, or a list of them, each with an optional weight.",
        examples=[{"M": 8192, "N": 8192, "K": 8192}, [{"N": 8192}, {"N": 1000, "weight": 4}]],
    )
    tune: dict[Variable, Values] = Field(
        min_length=1,
        description="What each tile variable may be: a range, a list, or one number.",
        examples=[{"bm": {"from": 8, "to": 4096, "multiple_of": 8}, "bn": [128, 256], "bk": {"divides": "K"}}],
        json_schema_extra=_NAMES,
    )
    constraints: Conditions = Field(
        (),
        description="What must hold, over sizes, tile variables, time, bytes, flops, steps, vmem and padding.",
        examples=[["bm * bn <= 2**20"]],
    )
    flops: Flops | None = Field(None, description="Operations of all kernels.", examples=["2 * M * N * K"])
    cost: Cost | None = Field(None, description="What to make small; default: time, in ps.", examples=["bytes"])
    partial: Annotated[str, one_of(("masked", "none"), "partial")] | None = Field(
        None,
        description="May blocks reach over the edge of an array, which the kernel masks (default: masked)?",
        examples=["none"],
    )
    vmem: Amount | None = Field(
        None, description="The limit; default: what a kernel gets that asks for none.", examples=["16MiB"]
    )
    headroom: Kept = Field(
        None,
        validate_default=True,
        description="How much of vmem is kept free for registers that spill: a percentage, or the kind of body "
        f"({', '.join(BODIES)}) with what was measured; default: the kind of the body of a traced function, or of "
        "`body`, else the worst kind. What takes more is set aside, and nothing is proved of it.",
        examples=["25%", "matmul"],
    )
    step_overhead: Time | None = Field(None, description="Time of one grid step.", examples=["350ns"])


class ScratchKeys(Model):
    """Keys of memory of a declared kernel that is no window of an array."""

    array: str = Field(description="Element type and sizes.", examples=["f32[bm,bn]"])
    memory: Annotated[str, one_of(MEMORIES, "memory")] = Field("vmem", description="Where it lies.", examples=["vmem"])


class OperandKeys(ScratchKeys):
    """Keys of an operand of a declared kernel, in the language of `layoutproof.kernel.kernel_text`."""

    name: str | None = Field(None, description="Its name in answers.", examples=["x"])
    role: Annotated[str, one_of(ROLES, "role")] = Field(
        "in", description="Under operands: read or written?", examples=["out"]
    )
    block: list[Any] | None = Field(
        None, description="What one program sees, per dimension; null: squeezed.", examples=[["bm", "bk"]]
    )
    index: str | None = Field(None, description="The index map.", examples=["(i, j, k) -> (i, k)"])
    buffers: Annotated[int, Field(ge=1)] | None = Field(None, description="Buffers of a window.", examples=[2])
    lookahead: bool = Field(False, description="pl.Buffered(use_lookahead=..).", examples=[True])
    revisit: Annotated[str, one_of(REVISITS, "revisit")] = Field(
        "immediate", description="When a block may be written again.", examples=["any"]
    )
    live: bool = Field(True, description="Whether an output is used.", examples=[False])
    pipelined: bool = Field(False, description="Whether emit_pipeline moves it.", examples=[True])
    same_as: str = Field("", description="The earlier input that is the same array.", examples=["x"])
    indexing_mode: str | None = Field(None, description="Of jax before 0.6.1; not priced.", examples=["Unblocked()"])


class TableKeys(Model):
    """Keys of a scalar-prefetch operand."""

    array: str = Field(description="Element type and sizes.", examples=["s32[8]"])
    assume: list[str] = Field([], description="What is known of its entries.", examples=[["0 <= t < 8"]])


_OPERANDS = [{"name": "x", "array": "bf16[M,K]", "block": ["bm", "bk"], "index": "(i, j, k) -> (i, k)"}]


class KernelKeys(Model):
    """Keys of a declared kernel, in the kernel language with names where numbers will stand."""

    name: str = Field("kernel", description="Its name in answers.", examples=["matmul"])
    grid: list[Any] | dict[str, Any] | str | int = Field(
        description="Programs per dimension.", examples=[["cdiv(M, bm)", "cdiv(N, bn)"]]
    )
    inputs: list[OperandKeys] = Field([], description="What is read.", examples=[_OPERANDS])
    outputs: list[OperandKeys] = Field([], description="What is written.", examples=[_OPERANDS])
    operands: list[OperandKeys] = Field(
        [],
        description="Inputs and outputs in one list, each with its role.",
        examples=[[{**_OPERANDS[0], "role": "out"}]],
    )
    semantics: list[Annotated[str, one_of(SEMANTICS, "semantics")]] = Field(
        [], description="Of each grid dimension.", examples=[["parallel", "arbitrary"]]
    )
    vmapped: list[str] = Field([], description="Grid dimensions that jax.vmap added.", examples=[["b"]])
    aliases: dict[str, str] = Field(
        {}, description="Input to the output that shares its memory.", examples=[{"x": "o"}]
    )
    tables: dict[str, TableKeys | str] = Field({}, description="Scalar-prefetch operands.", examples=[{"t": "s32[8]"}])
    scratch: list[ScratchKeys] = Field([], description="Scratch memory.", examples=[[{"array": "f32[bm,bn]"}]])
    scoped: list[ScratchKeys] = Field(
        [], description="What the body allocates itself.", examples=[[{"array": "f32[bm,bn]"}]]
    )
    vmem_limit: Annotated[int, Field(ge=1)] | None = Field(None, description="vmem_limit_bytes.", examples=[33554432])
    pipeline: Annotated[str, one_of(PIPELINES, "pipeline")] = Field(
        "pallas_call", description="What runs it.", examples=["emit_pipeline"]
    )
    platform: Annotated[str, one_of(PLATFORMS, "platform")] = Field(
        "tpu", description="Whose rules hold.", examples=["tpu"]
    )


class KernelSearch(_Tilings):
    """The best tilings of a kernel that the file declares."""

    kernel: KernelKeys = Field(
        description="The kernel, with names where numbers will stand.",
        examples=[{"grid": ["cdiv(M, bm)"], "outputs": _OPERANDS}],
    )
    sizes: Sizes = Field(description=_Tilings.model_fields["sizes"].description, examples=[{"M": 8192, "N": 8192}])
    over: Annotated[str, one_of(("worst", "sum"), "over")] | None = Field(
        None, description="Of several sizes: the largest cost counts (default), or the weighted sum.", examples=["sum"]
    )
    body: str | None = Field(
        None, description="The kernel's Python function, needed by --compile alone.", examples=["kernels.py:matmul"]
    )


class TraceSearch(_Tilings):
    """The best tilings of a function that makes Pallas calls: it is traced, never run."""

    sizes: Annotated[Sizes, AfterValidator(_one_set)] = Field(
        (), description="What the names of sizes stand for.", examples=[{"M": 4096}]
    )
    trace: str = Field(
        description="MODULE:FUNCTION, or FILE.py:FUNCTION beside this file.",
        examples=["jax.experimental.pallas.ops.tpu.matmul:matmul"],
    )
    args: list[Any] = Field(
        description="Its arguments: shapes, Python literals as text, or values.", examples=[["bf16[M,K]", "bf16[K,N]"]]
    )
    kwargs: dict[str, Any] | None = Field(
        None,
        description="How the variables are passed; default: each by its own name.",
        examples=[{"block_shape": "(bm, bn)", "block_k": "bk"}],
    )
    assume: list[str] | None = Field(
        None,
        description="Of scalar-prefetch operands, with names of sizes and tune.",
        examples=[["0 <= prefetch0 < 8"]],
    )
    confirm: Annotated[str, one_of(("compiler",), "confirm")] | None = Field(
        None, description="Have the real compiler (libtpu) take what is found.", examples=["compiler"]
    )

    @property
    def names(self) -> Mapping[str, int]:
        """The sizes by name, empty where the file has none."""
        return self.sizes[0].sizes if self.sizes else {}


class SearchArray(NamedTuple):
    """An array of a search file. dims: the name of each dimension or "".  written: whether it has its own layout.

    tilings: where variables stand in its tiles, their values and the layout of each choice; `shape` is the first's.
    """

    shape: XlaLayout
    dims: tuple[str, ...]
    written: bool
    tilings: tuple[tuple[Mapping[str, int], XlaLayout], ...] = ()


MOST_TILINGS = 4096
_TILES = re.compile(r":T\([^{}]*")
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


def _array(text: object, info: ValidationInfo) -> SearchArray:
    """A shape; with variables in its tiles, all the layouts that it stands for."""
    if not isinstance(text, str):
        return _one_array(text, info)
    found = _TILES.search(text)
    tune = info.data.get("tune") or {}
    names = [] if found is None else [n for n in dict.fromkeys(_NAME.findall(found[0])) if n in tune]
    if found is None or not names:
        return _one_array(text, info)
    if prod(len(tune[name]) for name in names) > MOST_TILINGS:
        raise LayoutError(problems.TOO_MANY_LAYOUTS(shorten(text, 60), MOST_TILINGS))
    made = []
    for values in product(*(tune[name] for name in names)):
        chosen = dict(zip(names, values, strict=True))
        tiles = _NAME.sub(lambda name, at=chosen: str(at.get(name[0], name[0])), found[0])  # type: ignore[misc]
        made.append((chosen, _one_array(text.replace(found[0], tiles), info)))
    return made[0][1]._replace(tilings=tuple((chosen, array.shape) for chosen, array in made))


def _one_array(text: object, info: ValidationInfo) -> SearchArray:
    if not isinstance(text, str):
        raise LayoutError(problems.SHAPE_FORM(shorten(repr(text), 60)))
    shape = xla.read(text)
    if not isinstance(shape, XlaLayout):
        raise LayoutError(question_problems.LAYOUT_OF_NO_ARRAY(shorten(text, 60)))
    if any(shape.dynamic):
        raise LayoutError(problems.UNKNOWN_DIMENSIONS(shorten(text, 60)))
    open_ones = [str(size) for tile in shape.tiles for size in tile if type(size) is not int]
    if open_ones:
        name = open_ones[0]
        raise LayoutError(problems.TILE_NAME(name, shorten(text, 60)))
    names = tuple("" if isinstance(extent, int) else str(extent) for extent in shape.dims)
    sizes = info.data.get("sizes")
    if sizes is None:
        return SearchArray(shape, names, "{" in text)  # the mistake in the sizes is reported already
    for name in names:
        if name and name not in sizes:
            raise LayoutError(problems.NOT_IN_SIZES(name, ", ".join(sizes) or "none"))
    dims = tuple(sizes[name] if name else extent for name, extent in zip(names, shape.dims, strict=True))
    return SearchArray(replace(shape, dims=dims), names, "{" in text)


def _ordered(array: SearchArray, info: ValidationInfo) -> SearchArray:
    if info.data.get("order") == "shared" and "" in array.dims:
        raise LayoutError(problems.NAMES_NEEDED())
    if info.data.get("order") == "shared" and array.tilings:
        raise LayoutError(problems.TILES_OF_COMPILER())
    return array


def _meshed(arrays: dict[str, SearchArray], info: ValidationInfo) -> dict[str, SearchArray]:
    if arrays and not info.data.get("mesh", True):
        raise LayoutError(problems.MESH_NEEDED())
    return arrays


def _devices(mesh: dict[str, int]) -> dict[str, int]:
    devices = prod(mesh.values())
    if devices > MOST_DEVICES:
        raise LayoutError(problems.TOO_MANY_DEVICES(devices, MOST_DEVICES))
    return mesh


_RESTRICTION = {"enum": list(RESTRICTIONS)}
Written = Annotated[SearchArray, ValueReader(_array, {"type": "string", "minLength": 1})]
Arrays = Annotated[dict[str, Written], Field(min_length=1)]


_SWEPT_BY_SEARCH = re.compile(r"target|mesh|libtpu|(in|out)\d+")


def _swept(axes: dict[str, Sequence[object]]) -> dict[str, tuple[str, ...]]:
    """The axes of a sweep as texts. LayoutError for those that the search itself states, and for a compiler."""
    for name in axes:
        if _SWEPT_BY_SEARCH.fullmatch(name):
            raise LayoutError(problems.SWEPT_BY_SEARCH(name))
    return {name: tuple(map(str, values)) for name, values in axes.items()}


class ShardedProgram(Model):
    """The function that computes with the arrays of `shardings`, for --compile."""

    function: str = Field(
        description="MODULE:FUNCTION, or FILE.py:FUNCTION beside this file.", examples=["pkg.mod:step"]
    )
    args: list[Any] = Field(
        description="Its arguments: arrays by their names in `shardings`, which are cut as the search says; also in "
        "dicts and lists. Other shapes are replicated, and literals stay.",
        examples=[["x", {"up": "up", "down": "down"}]],
    )
    out: list[Any] = Field([], description="Its results, likewise; default: the compiler chooses.", examples=[["y"]])
    topology: str = Field("", description="Chips; one by default.", examples=["2x4"])
    donate: list[int] = Field([], description="Arguments that are given away.", examples=[[0]])
    sweep: Annotated[dict[str, Annotated[list[Any], Field(min_length=1)]], AfterValidator(_swept)] = Field(
        {},
        description="Each assignment is compiled at each of these: `topology`, or what the function takes by name, "
        "such as a remat policy.",
        examples=[{"policy": ["None", "jax.checkpoint_policies.dots_saveable"]}],
    )


class ArraysSearch(_SearchKeys):
    """Layouts of arrays with the fewest padded bytes, shapes that waste nothing, and how a mesh should cut them."""

    target: Annotated[str, AfterValidator(_generation)] = Field(description="The TPU generation.", examples=["v5e"])
    sizes: dict[Annotated[str, AfterValidator(_identifier)], Count] = Field(
        {}, description="What the names in shapes stand for.", examples=[{"b": 16, "s": 1280, "h": 40}]
    )
    order: Annotated[str, one_of(("each", "shared"), "order")] = Field(
        "each", description="shared: one order of the named dimensions for all arrays.", examples=["shared"]
    )
    tune: dict[Annotated[str, AfterValidator(_name)], Annotated[list[Count], Field(min_length=1)]] = Field(
        {},
        description="What variables in the tiles of layouts may be; with those that stand in sizes no name is shared.",
        examples=[{"t": [1, 2, 4, 8]}],
    )
    layouts: dict[str, Annotated[Written, AfterValidator(_ordered)]] = Field(
        {},
        min_length=1,
        description="Arrays whose least padded bytes are wanted; a layout that is written is compared.",
        examples=[{"q": "bf16[b,s,h]"}],
    )
    padding: Arrays = Field(
        {},
        description="Arrays whose nearest larger shape that wastes nothing is wanted; a written layout is kept.",
        examples=[{"w": "f32[1000,5]"}],
    )
    mesh: Annotated[dict[str, Count], Field(min_length=1), AfterValidator(_devices)] = Field(
        {}, description="The devices of each mesh axis.", examples=[{"data": 4, "model": 2}]
    )
    memory: Amount | None = Field(
        None, description="Bytes of one device for all of them; default: the target's HBM.", examples=["8GiB"]
    )
    require: Annotated[
        tuple[Annotated[str, one_of(tuple(RESTRICTIONS), "require")], ...],
        BeforeValidator(_listed),
        WithJsonSchema({"anyOf": [_RESTRICTION, {"type": "array", "items": _RESTRICTION}]}),
    ] = Field(REQUIRED, description="What every shard must be; []: nothing.", examples=[["even", "whole"]])
    shardings: Annotated[Arrays, AfterValidator(_meshed)] = Field(
        {},
        description="Arrays that the mesh cuts; those that share names are cut alike.",
        examples=[{"w": "bf16[h,f]"}],
    )
    products: Annotated[
        tuple[Annotated[Contraction, ValueReader(lambda value, _: read_product(str(value)), {"type": "string"})], ...],
        BeforeValidator(_listed),
        _TEXTS,
    ] = Field(
        (),
        description="What a step computes of these arrays: with it, what the devices send one another is weighed too.",
        examples=[["x, up -> h", "h, down -> y"]],
    )
    fsdp: Annotated[
        tuple[str, ...],
        BeforeValidator(_listed),
        _TEXTS,
    ] = Field(
        (),
        description="Arrays that may be held in more parts than products use, which then gather them (FSDP).",
        examples=[["up", "down"]],
    )
    price: Annotated[int, Field(ge=0, le=LARGEST)] = Field(
        1, description="What a byte that a device sends costs, in bytes that it holds.", examples=[1, 10]
    )
    program: ShardedProgram | None = Field(
        None,
        description="The function that --compile compiles with the best shardings.",
        examples=[{"function": "pkg.mod:step", "args": ["x", "w"], "topology": "2x4"}],
    )

    @model_validator(mode="after")
    def _asks(self) -> ArraysSearch:
        if not any(getattr(self, section) for section in SECTIONS):
            raise LayoutError(problems.NOTHING_ASKED(", ".join(SECTIONS)))
        spoken = {name for array in self.layouts.values() for values, _ in array.tilings for name in values}
        for name in self.tune:
            if name not in spoken:
                raise LayoutError(problems.TUNED_IN_NO_LAYOUT(name))
        return self


SECTIONS = ("layouts", "padding", "shardings")
MODELS: Mapping[str, type[Model]] = {"kernel": KernelSearch, "trace": TraceSearch, "arrays": ArraysSearch}


def json_schema() -> JsonObject:
    """The JSON Schema (draft 2020-12) of a search file, for editors.

    Which of the three kinds a file is, `kernel` and `trace` say: conditions, so that a validator names the wrong key
    or value; of alternatives it could only say that none fits.

    >>> json_schema()["if"], list(json_schema()["then"])
    ({'required': ['kernel']}, ['$ref'])
    """
    from pydantic.json_schema import models_json_schema

    refs, whole = models_json_schema([(model, "validation") for model in MODELS.values()])
    whole["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    whole["title"] = "layoutproof search"
    kernel, trace, arrays = (refs[model, "validation"] for model in MODELS.values())
    whole["type"] = "object"
    said = {kind: model.model_fields[kind] for kind, model in MODELS.items() if kind in model.model_fields}
    whole["properties"] = {k: {"description": f.description, "examples": f.examples} for k, f in said.items()}
    whole |= {"if": {"required": ["kernel"]}, "then": kernel}
    whole["else"] = {"if": {"required": ["trace"]}, "then": trace, "else": arrays}
    return whole
