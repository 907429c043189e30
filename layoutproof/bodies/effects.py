"""A body as data: references, views of them, and the effects in program order. This is the manual of bodies.

A reference is memory that the body is given (the window of an operand, a whole array in HBM, a scalar-prefetch operand,
scratch, semaphores) or allocates (`run_scoped`). A view is a reference seen through steps: a slice per dimension, a
reshape, a bitcast. Every effect happens at a `Spot`: under a path condition, inside loops, at a source line.

Names in terms: a dimension of the grid by its name in the kernel; a loop's counter `loop3`; an unknown `any5`
(an `Unknown` with a range); a carried number by a `definition`; the result of a load `read(load2, indices)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from layoutproof.core.folding import linear
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Table

Index = tuple[Term, ...]

ROLES = ("in", "out", "scratch", "prefetch", "fresh", "semaphore", "around")
"""The roles of a reference: an operand's, memory of the call, a scalar-prefetch operand, allocated by the body, or, of
a pipeline's body, memory of the body around it."""


COPIES_IN = "wait_gmem_to_smem"
"""The semaphore of copies to shared memory that are on no barrier, named by what waits for it."""
COPIES_OUT = "wait_smem_to_gmem"
"""The semaphore of copies to global memory, named by what waits for it."""
MMAS = "wgmma_wait"
"""The semaphore of MMAs of a warpgroup, named by what waits for it."""
TENSOR = "tcgen05_commit_arrive"
"""The order of MMAs on tensor memory, and of copies to it, named by what says that all of them before it have ended."""
TENSOR_LOADS, TENSOR_STORES = "wait_load_tmem", "commit_tmem"
"""Those of loads of tensor memory and of stores to it, named by what waits for them."""
ATOMICS = ("add", "max", "min", "and", "or", "xor")
"""Atomic operations that give the same in any order, each with itself."""
WARPS = 4
"""The warps of a warpgroup (`WarpMesh` in jax/_src/pallas/mosaic_gpu/core.py)."""


@dataclass(frozen=True, slots=True, eq=False)
class BodyReference:
    """Memory that a body may address.

    name: of the operand, or `scratch[0]`, `prefetch[1]`, `scoped2`.  role: one of ROLES.  dims: of its view in the
    body, in elements: the window of a blocked operand, without squeezed dimensions.  dtype: XLA's name of the element
    type.
    memory: where it lies, a word of `kernel.MEMORIES`.  position: among the operands, scratches or prefetched ones.
    fresh_in: for memory the body allocates, the loops around the allocation.  pipeline: whether it is a buffer of a
    pipeline (`emit_pipeline`), which fills and empties it.
    arrivals: of a GPU's barrier, how many arrivals end a phase; 0 for a semaphore that counts bytes.  across: of one
    that programs of a cluster share, groups of axes: an arrival counts for all programs that differ along the axes of
    one group alone, and each of them has to arrive so often.
    in_order: of a semaphore that no code names: what is started on it ends in that order, and a wait says how many of
    the last ones may be left.
    tilings: of shared memory of a GPU, the tiles in which its last dimensions lie, in elements, as its transforms have
    them; `dims` are without.  swizzle: bytes of the rows whose parts are permuted, 0 for none.
    orders: of a GPU's barrier, whether it orders tensor memory, too (`orders_tensor_core`).  lanes, packing: of tensor
    memory how it lies there, as of `ir.program.MemRefType`.
    elsewhere: of an array of other GPUs, the name of the own one that has its place here, and whose it is.
    of_device: of a semaphore in global memory, whether all programs of a device have it; else each has its own.
    """

    name: str
    role: str
    dims: tuple[int, ...]
    dtype: str
    memory: str
    position: int = 0
    fresh_in: tuple[Loop, ...] = ()
    pipeline: bool = False
    arrivals: int = 0
    across: tuple[tuple[str, ...], ...] = ()
    in_order: bool = False
    tilings: tuple[tuple[int, ...], ...] = ()
    swizzle: int = 0
    orders: bool = False
    lanes: str = ""
    packing: int = 0
    by_name: bool = False
    within: tuple[str, int, int] | None = None
    elsewhere: tuple[str, Device] | None = None
    of_device: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop: its counter `name` takes 0, 1, .. below `count`; None where only a condition ends it.

    source: file:line.  parallel: whether its iterations may run in any order, or together (`parallel_loop`).
    warps: whether it is no loop but the warps of a warpgroup, each of which runs one iteration (`WarpMesh`).
    units: whether each iteration does the work of another program of the grid, which a GPU gives out
    (`try_cluster_cancel`): the body's ids are then those of the work, whoever does it.
    """

    name: str
    count: Term | None
    source: str = ""
    parallel: bool = False
    warps: bool = False
    units: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """One dimension of an access: `size` elements from `start`, `stride` apart; `single`: an index, no dimension."""

    start: Term
    size: Term
    stride: int = 1
    single: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ViewStep:
    """One step of a view: slices of something of shape `dims`, or (slices empty) a change of shape.

    kind: "slices", "reshape", "transpose", "bitcast", "gather".  after: the shape that it gives; None where a size is
    not known.  permutation: of a transpose.  dtype: of the elements after a bitcast.
    picks: of a gather, for each dimension of `dims` a `values.Value` of one dimension whose k-th number is where the
    k-th part lies, None for a dimension that stays; `after` is their length, then the dimensions that stay.
    picked: for each dimension the place of some part, of which `part` is the number.  lists: memory that a copy reads
    the places from.  held: which parts are moved, a `values.Value` of one dimension, None = all.
    """

    kind: str
    dims: tuple[int, ...]
    after: tuple[int, ...] | None
    slices: tuple[Slice, ...] = ()
    permutation: tuple[int, ...] = ()
    dtype: str = ""
    picks: tuple[Any, ...] = ()
    picked: tuple[Term | None, ...] = ()
    part: Term | None = None
    lists: tuple[View, ...] = ()
    held: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A reference through steps, the first applied to the reference itself. dims: None where a size is not known."""

    reference: BodyReference
    steps: tuple[ViewStep, ...] = ()

    @property
    def dims(self) -> tuple[int, ...] | None:
        """The shape of what is seen."""
        return self.steps[-1].after if self.steps else self.reference.dims

    @property
    def dtype(self) -> str:
        """The element type of what is seen."""
        return next((step.dtype for step in reversed(self.steps) if step.dtype), self.reference.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """When and where an effect happens.

    number: its position in program order.  path: conditions that all hold.  loops: around it, outermost first.
    source: file:line.  scope: "pipeline" for what a pipeline (`emit_pipeline`) does itself, "body" for what the body
    does that it runs, "" outside of pipelines.
    """

    number: int
    path: tuple[Term, ...]
    loops: tuple[Loop, ...]
    source: str
    scope: str = ""

    def happens_with(self, other: Spot) -> bool:
        """Whether it happens wherever the other one does: in no other loop, and under no condition of its own."""
        loops = all(a is b for a, b in zip(self.loops, other.loops, strict=False))
        held = all(any(one is condition for one in other.path) for condition in self.path)
        return loops and held and len(self.loops) <= len(other.loops)


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A load or a store. kind: "read", "write" or "add" (reads and writes).

    mask: the condition for an element of the view, None = all.  value: the written one; of a load that only begins
    here the one that it gives.
    queue: of one that only begins here, on tensor memory of a GPU or by an MMA, what says that it has ended.
    across: the axes of a cluster along which it is done in the memory of all programs, () for its own.
    atomic: the operation of one that no other program's comes between, a word of `ATOMICS` or another one, "" = it is
    none.  told: of such a one, whether the body uses what was there before, by which programs may order themselves.
    """

    kind: str
    view: View
    spot: Spot
    value: Any = None
    mask: Any = None
    queue: str = ""
    across: tuple[str, ...] = ()
    atomic: str = ""
    told: bool = False

    @property
    def name(self) -> str:
        """The name of a load in terms (`Body.loads`) and as a possibly undefined source (`values.leaf`)."""
        return f"load{self.spot.number}"


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A device, or a core, whose memory or semaphore is meant, as the body says it.

    places: along axes of the mesh, by name; along others it is where the device is that runs the body.  logical: its
    number, counted over the mesh in row-major order.  core: whether it is a core.  along: axes of the mesh, of all
    devices along which it is one and the same.  None of them: a form that is not modelled.
    """

    places: tuple[tuple[str, Term], ...] = ()
    logical: Term | None = None
    core: bool = False
    along: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "another core" if self.core else "another device"


@dataclass(frozen=True, slots=True, eq=False)
class StartedCopy:
    """A copy that is started. semaphore: to which its end adds bytes; sent: of a remote copy, the sender's.

    device: of a remote copy, where `target` and `semaphore` are; None = local.  adds: whether the data is added to the
    target, element by element and never two at once.  mask: the condition that an element is moved, a `values.Value` of
    the target's shape, None = all.
    clips: whether elements outside of the array in global memory are read as zeros and never written (TMA of a GPU).
    grouped: of one on a semaphore that is `in_order`, whether it ends a group, of which waits count.  across: the axes
    of a cluster along which each program brings its share to all of them (a multicast).  led: that each brings its part
    of an arrival to the semaphore of the first program along it instead, and fills its own memory (`leader_tracked`).
    given: that a GPU writes which work is next, for all programs of the cluster (`try_cluster_cancel`).
    """

    source: View
    target: View
    semaphore: View
    spot: Spot
    sent: View | None = None
    device: Device | None = None
    adds: bool = False
    mask: Any = None
    clips: bool = False
    grouped: bool = True
    across: tuple[str, ...] = ()
    led: bool = False
    given: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StartedUse:
    """An operation that is started and reads memory until it is waited for: an MMA of tensor cores.

    What it computes is said by accesses beside it.  views: what it reads, but for a left operand in tensor memory.
    across: the axes of a cluster along which it reads of all programs, () for its own alone.
    """

    views: tuple[View, ...]
    semaphore: View
    spot: Spot
    across: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Wait:
    """A wait for as many bytes as `view` has; only its shape counts, and no address. Waits are a device's own.

    Of a GPU's barrier it is a wait for the end of a phase, whatever the view is.
    left: on a semaphore that is `in_order`, how many of the last groups may still run.  of_reads: whether it is for
    what these read alone, and not for what they write.
    """

    view: View
    semaphore: View
    spot: Spot
    left: int | None = None
    of_reads: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """A semaphore that is counted up by `amount`, or waited for and counted down (`wait`).

    device: where it is; None = where the body runs.
    after: that it arrives when all has ended that the same thread has begun on this queue.  across: the axes of a
    cluster along which it arrives at all programs, () for its own alone.
    keeps: of a wait, that it leaves the semaphore as it is.
    """

    semaphore: View
    amount: Term | None
    spot: Spot
    wait: bool = False
    device: Device | None = None
    after: str = ""
    across: tuple[str, ...] = ()
    keeps: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Freed:
    """The end of a scope (`run_scoped`): its references are dead, and others may get their memory.

    spot: unconditional, since memory of an untaken scope is untouched.
    """

    references: tuple[BodyReference, ...]
    spot: Spot


@dataclass(frozen=True, slots=True, eq=False)
class Committed:
    """What threads of a GPU have stored to shared memory is seen by copies and MMAs from here on (`commit_smem`)."""

    spot: Spot


@dataclass(frozen=True, slots=True, eq=False)
class TensorFence:
    """What a thread has done on tensor memory comes before its next arrival on a barrier (before), or what it does
    there comes after its last wait for one (`tcgen05.fence`)."""

    spot: Spot
    before: bool


@dataclass(frozen=True, slots=True, eq=False)
class GpuInstruction:
    """What code of a GPU uses that not every GPU has, by the name of its primitive, or a limit of registers.

    registers: of a thread from here on (`set_max_registers`); 0 for all else, None where it is no constant.  more:
    whether it asks for more than the thread has, and does not give some back.
    """

    name: str
    spot: Spot
    registers: int | None = 0
    more: bool = False


Effect = Access | StartedCopy | StartedUse | Wait | Signal | Freed | Committed | TensorFence


@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    """An unknown number: low <= value < high. why: its origin, in words, with its line.

    facts: conditions that hold of it, in every iteration of the loops that they speak of (`invariants`).  fixed: that a
    program has one such number, and no iteration of a loop has its own.
    """

    name: str
    low: int
    high: int
    why: str
    source: str = ""
    facts: tuple[Term, ...] = ()
    fixed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class KeptEntry:
    """A load of scalar memory that the call fills and the body stores to: the bounds that stores preserve.

    reference: its name.  sign: if the call fills in no number below 0, the load gives none.  highs: if it fills in
    numbers from 0 to below one of these, the load gives such a number.  least: so it is of any that is not less, as
    nothing is stored but what was loaded, and constants below it; None = something else is.
    """

    reference: str
    highs: tuple[int, ...] = ()
    sign: bool = True
    least: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """The body of one program.

    references: in the order of its arguments.  effects: in program order.
    unknowns: by name.  definitions: carried numbers as terms over their loops' counters, by name.
    loads: for each integer or boolean load, the table that models its values.
    kept: bounds that the body's stores preserve, of scalar memory that the caller fills, by the name of the load.
    handed: loop-carried numbers without a closed form.
    carried: loop-carried values, by name.  witnesses: names for "some k", each below its extent.
    unmodelled: (what, file:line) that the interpreter refused, each once: nothing is known of what they do.  beyond:
    the names of the references that these are given, and perhaps write.
    multiples: (number, what `multiple_of` says divides it, where).  facts: conditions that hold of unknowns.
    checks: of `pl.debug_check` and `checkify`, (the condition that one fails, where).
    goes_on: for each while loop, the condition under which it continues, by the loop's name.
    doubts: the values behind unknowns that may be undefined, by the unknown's name.
    masks: of elements that are chosen, loaded or stored, in program order.
    barriers: where all subcores of a core wait for each other (`subcore_barrier`); an effect whose number is less comes
    before.  units: the number of iterations of its loop over work that a GPU gives out, "" where there is none.
    instructions: of a GPU, those that not every GPU has, in program order.
    asks: the axes of the grid of which it asks where its program is; programs that differ in others do the
    same.
    loaded: conditions that hold of what a load gives, by its name.
    """

    references: tuple[BodyReference, ...] = ()
    effects: tuple[Effect, ...] = ()
    unknowns: Mapping[str, Unknown] = field(default_factory=dict)
    definitions: Mapping[str, Term] = field(default_factory=dict)
    loads: Mapping[str, Table] = field(default_factory=dict)
    carried: Mapping[str, Carried] = field(default_factory=dict)
    witnesses: Mapping[str, int] = field(default_factory=dict)
    unmodelled: tuple[tuple[str, str], ...] = ()
    multiples: tuple[tuple[Term, int, Spot], ...] = ()
    facts: tuple[Term, ...] = ()
    goes_on: Mapping[str, Term] = field(default_factory=dict)
    doubts: Mapping[str, Any] = field(default_factory=dict)
    kept: Mapping[str, KeptEntry] = field(default_factory=dict)
    handed: tuple[Handed, ...] = ()
    masks: tuple[Mask, ...] = ()
    checks: tuple[tuple[Term, Spot], ...] = ()
    barriers: tuple[Spot, ...] = ()
    asks: frozenset[str] = frozenset()
    beyond: frozenset[str] = frozenset()
    units: str = ""
    loaded: Mapping[str, tuple[Term, ...]] = field(default_factory=dict)
    instructions: tuple[GpuInstruction, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """The condition that chooses among elements: of a select, or of a masked load or store.

    value: a `values.Value` of truth values.  cases: of a select, and of a load, the `Value`s that are taken where it
    is false and where it is true, None = unnamed.
    """

    value: Any
    spot: Spot
    cases: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Handed:
    """A number that `loop` carries, an unknown elsewhere: `start` at first, then `following` of the last one.

    name: in an iteration.  after: its name when the loop has ended.  trips: the trip count.
    """

    name: str
    after: str
    loop: Loop
    start: Term
    following: Term
    trips: Term | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """A value that `loop` carries from one iteration to the next.

    start, next: `values.Value`s; the second is over the loop's counter.  final: the value after the loop.
    """

    loop: Loop
    start: Any
    next: Any
    final: bool = False


def short_place(source: str) -> str:
    """`file:line` without folders: where a reason speaks of a line, it is the same in every checkout.

    >>> short_place("/home/me/kernels/gmm.py:40")
    'gmm.py:40'
    """
    return source.rpartition("/")[2]


def is_remote(effect: Effect) -> bool:
    """Whether an effect is also one on another device or core."""
    return isinstance(effect, StartedCopy | Signal) and effect.device is not None


def adds_to(effect: Effect) -> bool:
    """Whether an effect adds to what is there, and so needs it."""
    match effect:
        case Access(kind):
            return kind == "add"
        case StartedCopy(adds=adds):
            return adds
    return False


def writes_to(effect: Effect) -> View | None:
    """The view that a store, or a copy that arrives, changes; None for every other effect."""
    match effect:
        case Access(kind, view) if kind != "read":
            return view
        case StartedCopy(_, target):
            return target
    return None


def reads_from(effect: Effect) -> View | None:
    """The view that a load, or a copy that leaves, reads; None for every other effect."""
    match effect:
        case Access(kind, view) if kind != "write":
            return view
        case StartedCopy(source):
            return source
    return None


def lists_of(copy: StartedCopy) -> tuple[View, ...]:
    """The memory out of which a copy takes the places of what it moves."""
    return tuple(one for view in (copy.source, copy.target) for step in view.steps for one in step.lists)


def stored_names(effects: Iterable[Effect]) -> frozenset[str]:
    """The references that something stores to; of what is written on other devices the own one, too."""
    stored = [view.reference for view in map(writes_to, effects) if view is not None]
    return frozenset(name for one in stored for name in (one.name, *(one.elsewhere or ())[:1]))


@lru_cache(maxsize=8)
def loads_of(body: Body) -> Mapping[str, Access]:
    """The accesses of a body by the names that terms have for what they load."""
    return {effect.name: effect for effect in body.effects if isinstance(effect, Access)}


def views_of(body: Body | None) -> tuple[View, ...]:
    """All that a body addresses, effect by effect."""
    found: list[View] = []
    for effect in () if body is None else body.effects:
        match effect:
            case Access(_, view):
                found.append(view)
            case StartedCopy(source, target, semaphore, _, sent):
                found += [source, target, semaphore, *([] if sent is None else [sent])]
            case StartedUse(views, semaphore):
                found += [*views, semaphore]
            case Wait(_, semaphore) | Signal(semaphore):
                found.append(semaphore)
    return tuple(found)


def places(view: View, index: Index, some: Callable[[int], Term] | None = None) -> Index | None:
    """Where an element of a view lies in its reference; None where it is no single one (a bitcast to wider elements).

    index: one term per dimension of the view.  some: gives a name for "some k below a number": then of several
    elements it is some one.
    """
    from layoutproof.bodies.row_major import quotient, reshaped  # the one rule of row-major order

    for step in reversed(view.steps):
        if step.kind == "slices":
            rest = iter(index)
            index = tuple(
                piece.start if piece.single else linear([(1, piece.start), (piece.stride, next(rest))])
                for piece in step.slices
            )
        elif step.kind == "gather":
            part, *kept = index
            rest = iter(kept)
            index = tuple(next(rest) if picks is None else picks.number((part,)) for picks in step.picks)
        elif step.kind == "reshape" and step.after is not None:
            index = reshaped(index, step.after, step.dims)
        elif step.kind == "transpose":
            back = list(index)
            for k, d in enumerate(step.permutation):
                back[d] = index[k]
            index = tuple(back)
        elif step.kind == "bitcast" and step.after is not None and step.after[-2] > step.dims[-2]:
            # narrower elements: each is a part of one
            index = (*index[:-2], quotient("//", index[-2], step.after[-2] // step.dims[-2]), index[-1])
        elif step.kind == "bitcast" and step.after is not None and some is not None:
            count = step.dims[-2] // step.after[-2]
            index = (*index[:-2], linear([(1, some(count)), (count, index[-2])]), index[-1])
        else:
            return None
    return index
