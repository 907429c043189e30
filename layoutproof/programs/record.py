"""The record of one compiled program, as plain data.

A record comes from the text of the compiled program (`reading`), and from what only the compiler can say
(`Provenance`).
None stands for what is unknown: it is never 0. All bytes are bytes on one device, padding included.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from layoutproof.core.counted import Counted
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.programs import problems

if TYPE_CHECKING:
    from pydantic import TypeAdapter

VERSION = 1
"""Of the form of a record. Later ones add keys and never rename; a record of a later one is not read."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands. instruction: its name.  line: in the compiled text.  op_name, source: of the user's
    program, "" where the text does not say."""

    instruction: str
    line: int = 0
    op_name: str = ""
    source: str = ""

    def __str__(self) -> str:
        return self.instruction + (f" ({self.source})" if self.source else "")


@dataclass(frozen=True, slots=True)
class Often:
    """How often something runs each time the program does.

    times: None where a loop's trip count is unknown; `why` says which loop.  sometimes: it stands in a branch, so that
    it may run less often, or never.
    """

    times: int | None = 1
    sometimes: bool = False
    why: str = ""

    def counted(self, number: int, branch: str, loop: str = "") -> Counted:
        """A number that is there each time, in all. branch, loop: why it is open, in words, where either leaves it so.

        >>> Often(3).counted(8, "a branch"), Often(None).counted(8, "", "its trips are unknown")
        (Counted(least=24, most=24, why=''), Counted(least=0, most=None, why='its trips are unknown'))
        """
        found = Counted.of(number).often(self.times, loop or self.why)
        return found.branch(branch) if self.sometimes else found


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Bytes of one device's memory, by the compiler's own figures.

    peak: the compiler's own peak memory. libtpu includes VMEM in it, and counts of an allocation only the part in use
    (0.0.52), so it is no amount of HBM; `taken` is.
    """

    arguments: int | None = None
    outputs: int | None = None
    aliased: int | None = None
    temporaries: int | None = None
    generated_code: int | None = None
    peak: int | None = None

    @property
    def taken(self) -> int | None:
        """The device's main memory during a run: arguments, results and temporaries, less their shared buffers.

        All are allotted for the whole run. The program's code lies beside them. None where the compiler does not say.

        >>> MemoryStats(arguments=8716288, outputs=2048000, aliased=0, temporaries=0, peak=18956288).taken
        10764288
        """
        if self.arguments is None or self.outputs is None or self.temporaries is None:
            return None
        return self.arguments + self.outputs + self.temporaries - (self.aliased or 0)


@dataclass(frozen=True, slots=True)
class ProgramValue:
    """A parameter or a result of the program.

    number: its position.  name: as the user's program has it (`params['w']`, `result[0]`), "" if unknown.
    shape: on one device, layout included.  bytes, unpadded: allotted, and of the elements alone; None where
    unknown.  whole: the global shape, without layout.  sharding: as JAX or the compiler prints it.
    devices: how many hold each element, None where unknown.  donated: of a parameter, the use of its buffer.
    alias: of a result, the parameter whose buffer it has.  spec: the sharding as JAX spells it, `P('x', None) on ..`,
    "" where it is no NamedSharding, or unknown.
    """

    number: int
    name: str
    shape: str
    bytes: int | None
    unpadded: int | None
    whole: str = ""
    sharding: str = ""
    devices: int | None = None
    donated: str = ""
    alias: int | None = None
    spec: str = ""


@dataclass(frozen=True, slots=True)
class Collective:
    """Devices that exchange data.

    kind: the opcode without `-start`.  does: its words in full, groups by device.  groups: how many devices talk to
    each other, None where the groups are not read.  axes: of the program's mesh, None where they are not whole axes or
    no mesh is known.  operands, results: shapes.  bytes: the larger side, on each device, each time.  moved: the least
    bytes that each device has to receive, each time.  None: unknown.
    """

    place: Place
    kind: str
    does: str
    groups: int | None
    axes: tuple[str, ...] | None
    operands: tuple[str, ...]
    results: tuple[str, ...]
    bytes: int | None
    moved: int | None
    often: Often


@dataclass(frozen=True, slots=True)
class Reshard:
    """Collectives that move data with nothing but moves between them, through which more is sent than is read.

    collectives: their names; `place` is the first.  received: bytes that a device receives through them, each time, its
    elements alone.  needed: the least that the device with most must receive, because its computation reads the data
    and the device does not hold it.  None: unknown, and why.
    """

    place: Place
    collectives: tuple[str, ...]
    received: int | None
    needed: int | None
    often: Often
    why: str = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """All copies, transposes and reshapes between two layouts that run equally often.

    kind: `relayout` (elements move), `space` (to another memory space), `same` (a second array like the first),
    `unknown`.  boundary: `parameter 3` or `result 0` where it is one of these that is copied, else "".
    bytes: read and written together, each time.  count: how many there are; `place` is the first.  reason: why unknown.
    """

    place: Place
    opcode: str
    kind: str
    source: str
    target: str
    bytes: int | None
    count: int
    often: Often
    boundary: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One Pallas kernel. vmem: bytes of VMEM as the compiler counted them.  digest: of its whole text.  communicates:
    whether it may talk to other devices itself.

    cycles: each time, by the compiler's simulation; None, and `why`, where it says nothing that holds.
    products: flops of its products, each time, by their types.  flops, transcendentals: likewise, products too. None
    where its source was not at hand.
    """

    place: Place
    name: str
    vmem: int | None
    digest: str
    often: Often
    communicates: bool = False
    cycles: int | None = None
    why: str = ""
    products: Mapping[str, Counted] = field(default_factory=dict)
    flops: Counted | None = None
    transcendentals: Counted | None = None


@dataclass(frozen=True, slots=True)
class PricedOperation:
    """An instruction of which the compiler says its cycles: each time it runs."""

    place: Place
    opcode: str
    cycles: int
    often: Often


@dataclass(frozen=True, slots=True)
class Schedule:
    """Cycles by the compiler's own schedule: its simulation of the instruction words of each operation by itself.

    Kernels are not among them: they have their own (`KernelCall`).

    cycles: of all operations, loops by their trips; None, and `why`, where they are not known.  operations: of all
    `many` ones those that take most.
    """

    cycles: int | None = None
    operations: tuple[PricedOperation, ...] = ()
    many: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class WorkPlace:
    """What one line of the user's program has the device do, each time.

    source: `file:line`.  scope: the named scopes around it, as JAX writes them.  often: how often.  products: flops of
    matrix products and convolutions, by the types of both sides.  flops: all of them, products too.  transcendentals:
    elements of such functions.  bytes: read and written by its instructions, padding included, in whichever memory.
    hbm: of these bytes in main memory those of elements alone, which have to be moved.
    """

    source: str
    scope: str
    often: Often
    products: Mapping[str, int] = field(default_factory=dict)
    flops: int = 0
    transcendentals: int = 0
    bytes: int = 0
    hbm: int = 0


@dataclass(frozen=True, slots=True)
class ProgramWork:
    """What one run does on one device, loops by their trips, kernels by their grids.

    products, flops, transcendentals, bytes, hbm: the sums, as of `WorkPlace`; a loop of unknown trips leaves them
    open, and says so.  places: where most is done, the most flops first.  many: how many places there are.
    source: flops of products as the function states them, on all devices together; None where it was not at hand.
    uncounted: the instructions whose work is not counted.
    """

    products: Mapping[str, Counted] = field(default_factory=dict)
    flops: Counted = Counted()
    transcendentals: Counted = Counted()
    bytes: Counted = Counted()
    hbm: Counted = Counted()
    places: tuple[WorkPlace, ...] = ()
    many: int = 0
    source: Counted | None = None
    uncounted: tuple[str, ...] = ()

    @property
    def product_flops(self) -> Counted:
        """Flops of products of all types."""
        return sum(self.products.values(), Counted())


@dataclass(frozen=True, slots=True)
class Custom:
    """All custom calls of one target that is no Pallas kernel. effect: whether one of them says it has side effects."""

    target: str
    count: int
    place: Place
    effect: bool = False


@dataclass(frozen=True, slots=True)
class Padding:
    """Arrays of one layout that take memory. bytes, unpadded: of all `count` of them; `place` is the first."""

    shape: str
    count: int
    bytes: int
    unpadded: int
    place: Place


@dataclass(frozen=True, slots=True)
class Provenance:
    """The facts that the text of a compiled program does not have.

    target, topology: as asked for, "v5e" and "2x2".  compiler: name and version.  jax: its version.  flags: the
    compiler's options.  mesh: axis -> size, in the order of the devices.  lowered: digest of the program before it was
    compiled, without the places in its source.  command: makes this record again.  chips: the coordinates of each
    device's chip in the slice, devices in the order in which the program numbers them; () where they are not known.
    slices: the slice of each device in that order; () where there is one.
    """

    function: str = ""
    target: str = ""
    topology: str = ""
    compiler: str = ""
    jax: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)
    mesh: Mapping[str, int] = field(default_factory=dict)
    lowered: str = ""
    command: str = ""
    chips: tuple[tuple[int, ...], ...] = ()
    slices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """One compiled program.

    Attributes:
        version: Of this form.
        name: The program's name, as its module has it.
        made: Where it comes from: function, target, compiler, mesh.
        devices: How many devices run it together.
        memory: The compiler's own figures.
        flops, bytes_accessed: Of one run on one device, by the compiler's cost analysis, which counts the body of a
            loop once however often it turns; None where it says nothing.
        work: The same counted here, loops by their trips; None in records that were made before it was counted.
        cycles: The sum of what the compiler has priced, loops by their trips; None without prices, or where a trip
            count is unknown.
        parameters, results: Of the program, in order.
        collectives, kernels: Each one, in the order of the text.
        reshards: Those through which a device receives more than it must, and those of which it is unknown.
        copies: By layouts, the most bytes first.
        operations: Of all `priced` ones the most expensive, loops by their trips.
        padded, unpadded: Bytes of all arrays that take memory, each counted once, and what their elements take.
        padding: The layouts with most bytes without an element.
        customs: Custom calls that are no Pallas kernels, by target.
        schedule: Cycles by the compiler's own schedule; None where it was not asked for them.
        unknown: The unknown figures, each with its reason.
        digest: Of the compiled text.
    """

    name: str
    made: Provenance = Provenance()
    devices: int = 1
    memory: MemoryStats = MemoryStats()
    flops: float | None = None
    bytes_accessed: float | None = None
    cycles: int | None = None
    priced: int = 0
    parameters: tuple[ProgramValue, ...] = ()
    results: tuple[ProgramValue, ...] = ()
    collectives: tuple[Collective, ...] = ()
    copies: tuple[Copy, ...] = ()
    kernels: tuple[KernelCall, ...] = ()
    operations: tuple[PricedOperation, ...] = ()
    padded: int = 0
    unpadded: int = 0
    padding: tuple[Padding, ...] = ()
    customs: tuple[Custom, ...] = ()
    reshards: tuple[Reshard, ...] = ()
    unknown: tuple[str, ...] = ()
    digest: str = ""
    version: int = VERSION
    work: ProgramWork | None = None
    schedule: Schedule | None = None

    def as_dict(self) -> dict[str, object]:
        """Plain data: dicts, lists, text and numbers, as `read_record` takes it."""
        found: dict[str, Any] = _plain(asdict(self))
        return found

    def to_json(self) -> str:
        """The same as text, one JSON object."""
        return json.dumps(self.as_dict(), ensure_ascii=False)

    @property
    def entry_bytes(self) -> int | None:
        """Bytes of all parameters together, from their layouts; None where one of them is unknown."""
        sizes = [value.bytes for value in self.parameters]
        return None if None in sizes else sum(sizes)  # type: ignore[arg-type]


def read_record(data: Any, file: str = "") -> Record:
    """A record from plain data, as JSON has it.

    Raises LayoutError for what is no record, with the key, and for a record of a later version.
    """
    from pydantic import ValidationError

    version = data.get("version") if isinstance(data, Mapping) else None
    if type(version) is not int:
        raise LayoutError(problems.NO_VERSION(), file=file)
    if version > VERSION:
        raise LayoutError(problems.VERSION_NEWER(version, VERSION), file=file)
    known = Record.__dataclass_fields__
    given = {key: value for key, value in data.items() if key in known}
    try:
        return _adapter().validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise LayoutError(problems.NO_RECORD(shorten(where, 60), first["msg"]), file=file) from None


def json_schema() -> dict[str, object]:
    """The JSON Schema (draft 2020-12) of a record."""
    schema = _adapter().json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "layoutproof program record"
    return schema


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Record]:
    from pydantic import TypeAdapter

    return TypeAdapter(Record)


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
