"""Two programs that may run at the same time never touch one element of shared memory, one of them writing.

Why it matters: programs of a "parallel" grid dimension are spread over cores. One may overwrite another's copy to HBM,
or read half of it; scratch passes from one program to the next only on the same core. The order is chance.
Refuted by: the smallest pair of programs, `first` and `second`, that differ in a parallel dimension, with the element.
Asked of arrays in HBM that the body copies from and into, and of scratch that a program reads before it has written it:
each core has its own scratch, so what another program left there is only there by chance.
A destination that a table chooses is proved where the table is assumed to hold no value twice.
Example: grid 4, parallel, every program copies to `o_ref.at[pl.ds(i * 8, 16)]`: programs 0 and 1 both write row 8.
Of SparseCores every subcore runs a program, and those of one core share `VMEM_SHARED`. Effects in different segments
of their runs, between barriers that all of them reach, do not happen at the same time; additions to one element by
copies or `addupdate_scatter` commute. Iterations of a `parallel_loop` have
no order either: two that meet in one element of any memory, one writing, are a race of their program with itself.
Of Triton all programs run at once, and an operation in one go (`atomic_add`) meets the same one in any order. Two
elements of one store at one place are a race, too; what a program stores and loads again is unknown without a
`debug_barrier`, since threads have the elements that the compiler gives them.
Of a GPU barriers order what threads of a program, and programs of a cluster, do to an array in global memory. A copy
there that comes after what another thread loaded or stored, or another program copied, is unknown.
Windows that programs share are asked by `parallel_writes`. Two copies of one program are asked by `dma_order`.
Source: docs/pallas/tpu/details.rst and distributed.md of JAX (0.10.2); `pltpu.InterpretParams(detect_races=True)` tells
it for the sizes that are run, on two cores; the compiler says nothing.
Fix: give each program elements of its own, initialise scratch in the first step of every parallel program, or make the
dimension "arbitrary".
Incident: a race in the barrier of JAX's own tutorial: https://github.com/jax-ml/jax/issues/27963
Limits: Programs of one call. Races between kernels are not asked; those between devices are `device_races`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import combinations_with_replacement

from layoutproof.bodies.barriers import ends_in_its_segment, odd, segment
from layoutproof.bodies.claims import Beside, BodyClaim, asked, beside, not_modelled
from layoutproof.bodies.devices import has_cores
from layoutproof.bodies.effects import (
    ATOMICS,
    Access,
    Body,
    BodyReference,
    Effect,
    Loop,
    Signal,
    StartedCopy,
    View,
    adds_to,
    is_remote,
    places,
)
from layoutproof.bodies.memory_state import States
from layoutproof.bodies.order import in_array
from layoutproof.bodies.recurrence import difference
from layoutproof.bodies.terms import inlined, names_in, renaming, replaced
from layoutproof.bodies.touched import Touch, any_element, masked, same_place, touches
from layoutproof.bodies.values import Index, Value
from layoutproof.bodies.warpgroups import kept_apart, threads_of
from layoutproof.core.budget import budget, effort
from layoutproof.core.claim import Claim
from layoutproof.core.errors import Undecided, Unsupported
from layoutproof.core.folding import FALSE, all_of, any_of, fold, folded, negation
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Counterexample, Point, Verdict
from layoutproof.core.term import ZERO, Term, every
from layoutproof.kernel.fixes import LEFT, KernelFix, in_order
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Due, Obligation, Settled, by_rule, undecided
from layoutproof.pallas import problems
from layoutproof.pallas.body_memory import Deciding
from layoutproof.pallas.device_problems import of_devices
from layoutproof.pallas.rules.body_in_bounds import about
from layoutproof.pallas.rules.initialised import reads_unwritten
from layoutproof.pallas.thread_problems import between_threads, of_threads
from layoutproof.pallas.triton_threads import of_own_threads
from layoutproof.solvers.decide import proves

ON_DEVICE = Template("pallas.body_races_on_device", "programs on {device}: not modelled")
ATOMICS_ORDER = Template("pallas.body_races_atomics_order", "atomic operations whose results are used may order them")
SIGNALS_ORDER = Template("pallas.body_races_signals_order", "signals between them may order them")
BARRIER_ORDERS = Template(
    "pallas.body_races_barrier_orders", "a barrier that not every program reaches equally often may order them"
)
COPY_AT_BARRIER = Template(
    "pallas.body_races_copy_at_barrier",
    "whether a copy has ended where its program comes to the next barrier is not known",
)
ITERATIONS_MEET = Template(
    "pallas.body_races_iterations_meet", "whether two iterations of a parallel loop meet in {name}"
)
LOOK_AT_ITERATION = Template(
    "pallas.body_races_look_at_iteration",
    "look at what an iteration needs of others: give each elements of its own, carry it, or use pl.loop",
)
MEET = Template("pallas.body_races_meet", "{which}, and {meet}")
PROGRAMS_MEET = Template("pallas.body_races_programs_meet", "whether two programs meet in {name}")
LOOK_AT_DIMENSION = Template(
    "pallas.body_races_look_at_dimension",
    "look at {dimension}: programs run at the same time, and want elements of their own{more}",
)
HOLDS_OTHERS = Template("pallas.body_races_holds_others", "whether {name} holds what a program on another core left")
HOLDS_OPEN = Template(
    "pallas.body_races_holds_open", "{reason}: not known, it {does} before it writes there in the same program"
)
WAIT_FOR_EACH_OTHER = Template(
    "pallas.body_races_wait_for_each_other", "programs that share memory may wait for each other"
)
SCRATCH_OF_OTHERS = Template(
    "pallas.body_races_scratch_of_others", "{which}: they may run at the same time, on cores with scratch of their own"
)


TARGET = False
BODY = True
SETTLED_BY = (
    'choose elements by program ids, or order the programs: a dimension "arbitrary" of a grid, a barrier of subcores, '
    "signals between cores"
)
SETTLED_BY_ON_GPU = "choose elements by program ids and axis_index, or put a barrier between the threads"
FEW_TOUCHES = 2
"""Of fewer effects on arrays of a GPU their pairs are asked, of more its threads are run."""
WALK = 200_000
"""The budget for running them, once for each question about them."""
MOST_PAIRS = 400
"""Pairs of effects on one array that are asked; more are over budget."""


def obligations(kernel: Kernel) -> tuple[Due, ...]:
    """One per pair of effects on an array, and one per read of scratch; one that holds where nothing is parallel."""
    body: Body | None = kernel.body
    if body is None:
        return ()
    parallel = [k for k in kernel.parallel() if kernel.grid[k] != 1]
    unordered = [effect for effect in body.effects if any(loop.parallel for loop in effect.spot.loops)]
    if not parallel and not unordered and not kernel.tensor and not kernel.in_body:
        return (Obligation(kernel.name, by_rule(""), source=kernel.source),)
    if kernel.remote:
        return of_threads(kernel, "meets")
    cores = has_cores(kernel)
    found: list[Due] = [*(of_devices(kernel, "meets") if cores else (*not_modelled(kernel, body), *_elsewhere(body)))]
    found += of_threads(kernel, "meets")
    pair = beside(kernel, body)
    found += _of_iterations(kernel, pair, unordered)
    found += of_own_threads(kernel, pair) if kernel.in_body else ()
    # cores that signal each other are run, all of them
    touched = [touch for effect in body.effects for touch in touches(effect)] if parallel and not cores else []
    apart = _walked(kernel, touched)
    for name in dict.fromkeys(_array(kernel, t.view.reference) for t in touched):
        if name in apart:
            found.append(Obligation(name, by_rule("", by="walk"), source=kernel.source))
        elif name:
            own = [touch for touch in touched if _array(kernel, touch.view.reference) == name]
            found += _shared(kernel, pair, name, own, parallel)
    # a subcore runs one program, and finds nothing that another one has left in memory of its own
    for own in () if kernel.subcores else _of_scratch(body, touched):
        found += _carried(kernel, body, pair, own, parallel)
    return tuple(found) or (Obligation(kernel.name, by_rule(""), source=kernel.source),)


def _of_scratch(body: Body, touched: Sequence[Touch]) -> Iterator[list[Touch]]:
    """What is touched of each scratch."""
    for reference in body.references:
        if reference.role == "scratch":
            yield [touch for touch in touched if touch.view.reference is reference]


def _walked(kernel: Kernel, touched: Sequence[Touch]) -> frozenset[str]:
    """Of arrays of a GPU that are written to those that its threads, run one by one, surely have no element of."""
    if kernel.platform != "mosaic_gpu" or kernel.aliases or kernel.body.unmodelled:
        return frozenset()
    names = {_array(kernel, touch.view.reference) for touch in touched if touch.writes} - {""}
    own = [touch for touch in touched if _array(kernel, touch.view.reference) in names]
    if len(own) < FEW_TOUCHES:
        return frozenset()
    with budget(WALK), suppress(Undecided):
        return kept_apart(kernel, names)
    return frozenset()


def _elsewhere(body: Body) -> Iterator[Obligation]:
    for effect in body.effects:
        if isinstance(effect, StartedCopy | Signal) and is_remote(effect):
            reason = ON_DEVICE(effect.device)
            yield Obligation(effect.semaphore.reference.name, undecided(reason), source=effect.spot.source)
            return


def _array(kernel: Kernel, reference: BodyReference) -> str:
    """The array that a reference of a body is: the output's name where they share one, "" for what is no array.

    Memory that the subcores of a core share is one, too.
    """
    if _is_of_core(reference):
        # a core has one scalar subcore, so it is not shared
        return reference.name if kernel.subcores == "vector" else ""
    if reference.role not in ("in", "out") or reference.memory not in ("any", "hbm", "gmem"):
        return ""
    for source, target in kernel.aliases:
        if source >= 0 and kernel.inputs[source].name == reference.name:
            return kernel.outputs[target].name
    return reference.name


def _is_of_core(reference: BodyReference) -> bool:
    """Whether a reference is memory that the subcores of one SparseCore share."""
    return reference.memory == "vmem_shared" and reference.role in ("scratch", "fresh")


def _differ(kernel: Kernel, pair: Beside, parallel: Sequence[int]) -> Term:
    ids = [Term("name", name) for name in kernel.grid_names]
    return any_of([Term("!=", ids[k], pair.other(ids[k])) for k in parallel])


def _at_once(kernel: Kernel, pair: Beside, a: Touch, b: Touch) -> tuple[list[Term], str]:
    """The conditions that effects of two programs may happen at the same time, beside that the programs differ.

    And why that is not known, "" where it is.
    """
    if any(map(is_remote, pair.body.effects)):
        return [], SIGNALS_ORDER()
    if any(isinstance(effect, Access) and effect.told for effect in pair.body.effects):
        return [], ATOMICS_ORDER()
    if kernel.subcores != "vector":
        return [], ""
    core = Term("name", kernel.grid_names[0])
    alike = Term("==", core, pair.other(core))
    shared = [alike] if _is_of_core(a.view.reference) else []
    if not pair.body.barriers:
        return shared, ""
    body: Body = kernel.body
    if odd(body):
        return shared, BARRIER_ORDERS()
    for touch in (a, b):
        if isinstance(touch.effect, StartedCopy) and not ends_in_its_segment(body, touch.effect):
            return shared, COPY_AT_BARRIER()
    first, second = segment(body, a.spot), pair.other(segment(body, b.spot))
    return [*shared, any_of([negation(alike), fold("==", first, second)])], ""


def _of_iterations(kernel: Kernel, pair: Beside, unordered: Sequence[Effect]) -> Iterator[Due]:
    """No two iterations of a loop without order touch one element, one of them writing."""
    groups: dict[tuple[str, str], tuple[Loop, list[Touch]]] = {}
    for effect in unordered:
        for loop in (loop for loop in effect.spot.loops if loop.parallel):
            for touch in touches(effect):
                reference = touch.view.reference
                if loop not in reference.fresh_in and reference.role != "semaphore":
                    groups.setdefault((loop.name, reference.name), (loop, []))[1].append(touch)
    for loop, own in groups.values():
        pairs = [(a, b) for a, b in combinations_with_replacement(own, 2) if _clash(a, b)]
        if len(pairs) > MOST_PAIRS:
            name = own[0].view.reference.name
            yield Obligation(name, undecided(f"{len(pairs)} pairs of effects; {MOST_PAIRS} are looked at"))
            continue
        for a, b in pairs:
            yield partial(_two_iterations, kernel, pair, loop, a, b)


def _clash(a: Touch, b: Touch) -> bool:
    """Whether two effects on one element want an order: one writes, and not both do one operation in one go."""
    return (a.writes or b.writes) and not (_atomic(a) and _atomic(a) == _atomic(b))


def _atomic(touch: Touch) -> str:
    """What an effect does to an element in one go, of which the order does not matter; "" for nothing such.

    Whatever adds to an element of a SparseCore's own memory does.
    """
    own = touch.view.reference.memory in ("vmem", "vmem_shared")
    if touch.writes and adds_to(touch.effect) and own:
        return "add"
    operation = touch.effect.atomic if isinstance(touch.effect, Access) else ""
    return operation if operation in ATOMICS else ""


def _two_iterations(kernel: Kernel, pair: Beside, loop: Loop, a: Touch, b: Touch) -> Obligation:
    name = a.view.reference.name
    what = ITERATIONS_MEET(name)
    counter = Term("name", loop.name)
    around = a.spot.loops[: a.spot.loops.index(loop)]
    same = [Term("name", n) for n in (*kernel.grid_names, *(outer.name for outer in around))]
    apart = [*(Term("==", term, pair.other(term)) for term in same), Term("!=", counter, pair.other(counter))]

    def who(at: Point, value: Callable[[Term], int]) -> str:
        turns = f"iterations {value(counter)} and {value(pair.other(counter))} of the parallel loop"
        return f"{turns} may run in any order"

    try:
        found, doubt = _meeting(kernel, pair, name, a, b, apart, who, (counter, pair.other(counter)))
    except Undecided as lost:
        return Obligation(name, undecided(problems.DEPENDS_ON(what, lost)), source=a.spot.source)

    def hint(at: Point, on: Numbers) -> str:
        return LOOK_AT_ITERATION()

    asked_for = about(name, replace(found, claim=replace(found.claim, hint=hint)), a.spot.source, what)
    return _in_doubt(asked_for, what, doubt)


def _in_doubt(asked_for: Obligation, what: str, doubt: str) -> Obligation:
    """The obligation, with a doubt whether a violation is one: "" for no doubt."""
    if not doubt or asked_for.leaves_open:
        return asked_for
    return replace(asked_for, leaves_open={Verdict.REFUTED: f"{what}: {doubt}"})


def _meeting(
    kernel: Kernel,
    pair: Beside,
    name: str,
    a: Touch,
    b: Touch,
    apart: Sequence[Term],
    who: Callable[[Point, Callable[[Term], int]], str],
    extra: tuple[Term, ...] = (),
) -> tuple[BodyClaim, str]:
    """The claim that an effect here and one of another program, or iteration, meet in an element. And a doubt of it.

    apart: that they are two, which may happen at the same time.  who: in words which two.  extra: as of `asked`.
    """
    one, two = any_element(a.view, "at"), any_element(b.view, "there")
    place, there = (_place_in_array(kernel, t, e.place) for t, e in ((a, one), (b, two)))
    (mine, doubt), (theirs, other_doubt) = masked(a, one.index), masked(b, two.index)
    condition = [
        *apart,
        *a.spot.path,
        *map(pair.other, b.spot.path),
        one.condition,
        pair.other(two.condition),
        *mine,
        *map(pair.other, theirs),
        same_place(place, tuple(map(pair.other, there))),
    ]

    def explain(at: Point, on: Numbers, value: Callable[[Term], int]) -> str:
        return MEET(who(at, value), _meet(a, b, tuple(map(value, place)), name))

    found = asked(
        kernel,
        pair.body,
        condition,
        (*a.spot.loops, *pair.loops(b.spot.loops)),
        {**one.names, **{f"{k}_2": extent for k, extent in two.names.items()}},
        explain,
        extra=extra,
        programs=pair.programs,
        place=place,
    )
    return found, doubt or other_doubt


def _meet(a: Touch, b: Touch, element: tuple[int, ...], name: str) -> str:
    """The conflict of two accesses to one element, in words."""
    both = "" if a.effect is b.effect else f" ({b.does} it at {b.spot.source.rpartition(':')[2] or '?'})"
    did = "both write" if a.writes and b.writes else "one writes and one reads"
    return f"{did} element {element} of {name}{both}"


def _shared(kernel: Kernel, pair: Beside, name: str, own: Sequence[Touch], parallel: Sequence[int]) -> Iterator[Due]:
    """No two programs touch one element of an array, one of them writing."""
    pairs = [(a, b) for a, b in combinations_with_replacement(own, 2) if _clash(a, b)]
    if len(pairs) > MOST_PAIRS:
        yield Obligation(name, undecided(f"{len(pairs)} pairs of effects; {MOST_PAIRS} are looked at"))
        return
    windows = {o.name for o in kernel.operands if o.windowed}
    sharing = [kernel.inputs[a].name for a, b in kernel.aliases if a >= 0 and kernel.outputs[b].name == name]
    if windows & {name, *sharing} and pairs:
        yield Obligation(name, undecided("shares its buffer with an operand that has windows"))
        return
    apart = [k for k in parallel if kernel.grid_names[k] not in kernel.together]
    within = [k for k in parallel if k not in apart]

    @cache
    def runs() -> bool:
        with budget(WALK, effort()), suppress(Undecided):
            return kernel.by_events and not kernel.body.unmodelled and bool(threads_of(kernel, frozenset((name,))))
        return False

    for a, b in pairs:
        if apart:
            yield partial(_pair, kernel, pair, name, a, b, apart)
        if within:
            yield partial(_in_cluster, kernel, pair, name, a, b, within, runs)


def _place_in_array(kernel: Kernel, touch: Touch, place: Index) -> Index:
    """An element of an array as the array has it; of memory that subcores share as it is."""
    reference = touch.view.reference
    if reference.role not in ("in", "out"):
        return place
    # of a batch each program sees its own part of the array
    return tuple(in_array(kernel.operands[reference.position], place))


def _in_cluster(
    kernel: Kernel, pair: Beside, name: str, a: Touch, b: Touch, within: Sequence[int], runs: Callable[[], bool]
) -> Obligation:
    """As of `_pair`, of programs that share memory: where they may meet, barriers are looked at that order them.

    runs: whether it is known what their threads do. That has a budget of its own, beside that of the question.
    """
    found = _pair(kernel, pair, name, a, b, within, WAIT_FOR_EACH_OTHER())
    if not runs():
        return found
    with budget(WALK, effort()), suppress(Undecided):
        if not (isinstance(found.claim, Claim) and proves(found.claim, effort=effort())):
            return between_threads(kernel, name, a.spot, b.spot)
    return found


def _pair(
    kernel: Kernel, pair: Beside, name: str, a: Touch, b: Touch, parallel: Sequence[int], doubt: str = ""
) -> Obligation:
    """doubt: whether programs that differ in these dimensions of the grid may run at the same time."""
    what = PROGRAMS_MEET(name)
    # programs that differ only where the body never asks do the same, and write the same
    alike = kernel.subcores and a.effect is b.effect and a.writes and b.writes and not adds_to(a.effect)
    asked_of = [k for k in parallel if not alike or kernel.grid_names[k] in kernel.body.asks]

    def who(at: Point, value: Callable[[Term], int]) -> str:
        return f"programs {at['first']} and {at['second']} may run at the same time"

    try:
        together, doubt_of_order = _at_once(kernel, pair, a, b)
        apart = [_differ(kernel, pair, asked_of), *together]
        found, doubt_of_mask = _meeting(kernel, pair, name, a, b, apart, who)
    except Undecided as lost:
        return Obligation(name, undecided(problems.DEPENDS_ON(what, lost)), source=a.spot.source)
    last = "of programs that write one element the last one decides what it is" if a.writes and b.writes else ""
    asked_for = about(name, _with_hint(kernel, found), a.spot.source, what, _in_order(kernel, last))
    return _in_doubt(asked_for, what, doubt or doubt_of_order or doubt_of_mask)


def _differs(kernel: Kernel, at: Mapping[str, tuple[int, ...]]) -> int:
    return next(d for d in kernel.parallel() if at["first"][d] != at["second"][d])


def _with_hint(kernel: Kernel, found: BodyClaim) -> BodyClaim:
    def hint(at: Point, on: Numbers) -> str:
        k = _differs(kernel, at)
        more = ", or batch outside of the call" if k in kernel.vmapped else ""
        return LOOK_AT_DIMENSION(kernel.dimension(k), more)

    return replace(found, claim=replace(found.claim, hint=hint))


def _in_order(kernel: Kernel, doubt: str = "") -> Callable[[Counterexample], Iterator[KernelFix]]:
    def fixes(at: Counterexample) -> Iterator[KernelFix]:
        yield from in_order(kernel, (_differs(kernel, at),), doubt)
        yield from in_order(kernel, tuple(k for k in kernel.parallel() if kernel.grid[k] != 1), doubt)

    return fixes


def _carried(kernel: Kernel, body: Body, pair: Beside, own: Sequence[Touch], parallel: Sequence[int]) -> Iterator[Due]:
    """No program reads of scratch what a program on another core has written."""
    writes = [touch for touch in own if touch.writes]
    deciding = Deciding()
    states = States(kernel, body, deciding.proves, deciding.holds, unwritten=True)

    def of(read: Touch) -> Obligation:
        if _written_here(states, read):
            # an earlier iteration wrote it, as `initialised` shows
            proved = Settled(Verdict.PROVED, by=deciding.names())
            return Obligation(read.view.reference.name, proved, source=read.spot.source)
        return _exposed(kernel, body, pair, read, writes, parallel)

    for read in own:
        reads = not read.writes or (isinstance(read.effect, Access) and read.effect.kind == "add")
        if reads and writes:
            yield partial(of, read)


def _written_here(states: States, read: Touch) -> bool:
    """Whether all that is read of scratch was written by programs that the same core surely ran."""
    if not isinstance(read.effect, Access | StartedCopy):
        return False
    with suppress(Undecided, RecursionError):
        asked_for = reads_unwritten(states, read.effect)
        return asked_for is not None and asked_for[1]
    return False


def _exposed(
    kernel: Kernel, body: Body, pair: Beside, read: Touch, writes: Sequence[Touch], parallel: Sequence[int]
) -> Obligation:
    name = read.view.reference.name
    inner = [k for k in range(max(parallel) + 1, len(kernel.grid)) if k not in kernel.parallel()]
    ids = [Term("name", n) for n in kernel.grid_names]
    reason = HOLDS_OTHERS(name)
    try:
        element = any_element(read.view, "at")
        before = [w for w in writes if w.spot.number < read.spot.number]
        kept = any_of([_covers(body, w, element.place, read.spot.loops, _same) for w in before])
        if inner:
            # the first step of the same parallel program, when this is a later one
            first_step = renaming({kernel.grid_names[k]: ZERO for k in inner})
            later = any_of([fold("<", ZERO, ids[k]) for k in inner])
            earlier = any_of(
                [_covers(body, w, element.place, (), lambda term: replaced(term, first_step)) for w in writes]
            )
            kept = any_of([kept, all_of([later, earlier])])
        unsafe = [*read.spot.path, element.condition, negation(kept)]
        wide = asked(kernel, body, unsafe, read.spot.loops, element.names)
    except Undecided as lost:
        return Obligation(name, undecided(problems.DEPENDS_ON(reason, lost)), source=read.spot.source)
    open_ = {Verdict.REFUTED: HOLDS_OPEN(reason, read.does)}
    graver: list[Obligation] = []
    known = not read.spot.loops and not any(w.spot.loops for w in before)
    known = known and not any(getattr(w.effect, "mask", None) is not None for w in before)
    if known and not body.unmodelled:
        with suppress(Undecided):
            for found in _used(kernel, pair, read, writes, body, parallel):
                graver.append(about(name, _with_hint(kernel, found), read.spot.source, reason, _in_order(kernel, LEFT)))
    return Obligation(
        name,
        wide.claim,
        reads=bool(wide.tables),
        source=read.spot.source,
        leaves_open=open_,
        tables=wide.tables,
        graver=tuple(graver),
    )


def _covers(body: Body, write: Touch, place: Index, around: Sequence[Loop], program: Callable[[Term], Term]) -> Term:
    """The condition that a write puts something at a place of its reference: a sufficient one.

    around: loops of which it is the same iteration.  program: turns a term of the body into one of the program that
    writes. Of other loops, the iteration is taken that comes to the place.
    """
    box = _box(write.view)
    if box is None or getattr(write.effect, "mask", None) is not None:
        return FALSE
    path = [inlined(body.definitions, c) for c in write.spot.path]
    box = [(inlined(body.definitions, start), inlined(body.definitions, size), stride) for start, size, stride in box]
    conditions: list[Term] = []
    other = [loop for loop in write.spot.loops if loop not in around]
    if other or program is not _same:
        # an unknown may be another number in another iteration or program
        terms = [*path, *(term for start, size, _ in box for term in (start, size))]
        if any(n in body.unknowns for term in terms for n in names_in(term)) or any(map(_loads, terms)):
            return FALSE
    for loop in other:
        if loop.count is None or loop.count.op != "int":
            return FALSE
        turn = _iteration(loop, [start for start, _, _ in box], place)
        conditions += [fold("<=", ZERO, turn), fold("<", turn, loop.count)]
        change = renaming({loop.name: turn})
        path = [replaced(c, change) for c in path]
        box = [(replaced(start, change), replaced(size, change), stride) for start, size, stride in box]
    conditions += [folded(program(c)) for c in path]
    for entry, (start, size, stride) in zip(place, box, strict=True):
        start, size = program(start), program(size)
        offset = entry if start.op == "int" and start.args[0] == 0 else Term("-", entry, start)
        conditions.append(fold("<=", ZERO, offset))
        reach = size if stride == 1 else Term("*", size, Term("int", stride))
        conditions.append(fold("<", offset, reach))
        if stride != 1:
            conditions.append(Term("==", Term("%", offset, Term("int", stride)), ZERO))
    return all_of(conditions)


def _loads(term: Term) -> bool:
    return any(part.op == "read" for part in every(term))


def _iteration(loop: Loop, starts: Sequence[Term], place: Index) -> Term:
    """The iteration in which slices with these starts come to a place; the first where none moves evenly."""
    counter = Term("name", loop.name)
    for start, entry in zip(starts, place, strict=True):
        step = difference(replaced(start, renaming({loop.name: Term("+", counter, Term("int", 1))})), start)
        if step is not None and step > 0:
            begin = replaced(start, renaming({loop.name: ZERO}))
            return Term("//", Term("-", entry, begin), Term("int", step))
    return ZERO


def _box(view: View) -> list[tuple[Term, Term, int]] | None:
    """Start, size and stride per dimension of the reference, where a view is one slice of it."""
    if not view.steps:
        return [(ZERO, Term("int", extent), 1) for extent in view.reference.dims]
    if len(view.steps) == 1 and view.steps[0].kind == "slices":
        return [(piece.start, piece.size, piece.stride) for piece in view.steps[0].slices]
    return None


def _used(
    kernel: Kernel,
    pair: Beside,
    read: Touch,
    writes: Sequence[Touch],
    body: Body,
    parallel: Sequence[int],
) -> Iterator[BodyClaim]:
    """The claims that nothing which the first step of a parallel program finds in scratch is stored anywhere."""
    name = read.view.reference.name
    before = [w for w in writes if w.spot.number < read.spot.number]
    ids = [Term("name", n) for n in kernel.grid_names]
    first = [fold("==", ids[k], ZERO) for k in range(len(ids)) if k not in kernel.parallel()]

    def found_there(index: Index) -> Term:
        place = places(read.view, index)
        if place is None:
            raise Unsupported("a view through a bitcast")
        own = any_of([_covers(body, w, place, (), _same) for w in before])
        theirs = any_of([_covers(body, w, place, (), pair.other) for w in writes])
        return all_of([*read.spot.path, negation(own), theirs])

    def explain(at: Point, on: Numbers, value: Callable[[Term], int]) -> str:
        who = f"program {at['first']} uses what it finds in {name}, where program {at['second']} wrote"
        return SCRATCH_OF_OTHERS(who)

    for touch in (t for effect in body.effects for t in touches(effect)):
        effect = touch.effect
        later = touch.spot.number > read.spot.number and touch.writes and isinstance(effect, Access)
        if effect is read.effect:
            element = any_element(read.view, "at")
            used = found_there(_index(read.view))
        elif later and isinstance(effect, Access) and effect.mask is None and isinstance(effect.value, Value):
            element = any_element(touch.view, "at")
            leaves = read.effect.name if isinstance(read.effect, Access) else ""
            used = replaced(effect.value.undefined(_index(touch.view)), _leaf_by(leaves, found_there))
        else:
            continue
        if effect is read.effect and not (touch.writes or isinstance(effect, StartedCopy)):
            continue
        condition = [_differ(kernel, pair, parallel), *first, *touch.spot.path, element.condition, used]
        if all_of(condition) is not FALSE:
            yield asked(
                kernel,
                pair.body,
                condition,
                touch.spot.loops,
                element.names,
                explain,
                programs=pair.programs,
                place=element.place,
            )


def _leaf_by(name: str, found: Callable[[Index], Term]) -> Callable[[Term], Term | None]:
    """The value that a load found, by name; all other terms are kept, and unknowns are false."""

    def change(part: Term) -> Term | None:
        if part.op == "leaf":
            return found(part.args[1:]) if part.args[0] == name else FALSE
        if part.op == "maybe":
            return FALSE
        if part.op in ("and", "or"):
            return (all_of if part.op == "and" else any_of)(part.args)
        return None

    return change


def _index(view: View) -> Index:
    """The index that `any_element` of the view speaks of."""
    return tuple(ZERO if extent == 1 else Term("name", f"at{k}") for k, extent in enumerate(view.dims or ()))


def _same(term: Term) -> Term:
    return term
