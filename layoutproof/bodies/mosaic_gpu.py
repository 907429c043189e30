"""Primitives of Mosaic GPU: copies by TMA, barriers of shared memory, MMAs of a warpgroup and on tensor memory.

Read from jax/_src/pallas/mosaic_gpu/primitives.py (jax 0.10.2). A copy into shared memory, and `barrier_arrive`, count
one arrival on a barrier; `barrier_wait` takes as many as end a phase. Copies to global memory, and MMAs, are on no
semaphore of the code: they end in the order in which they were started, and a wait says how many of the last ones may
be left. An accumulator holds zeros at first (`_run_scoped_lowering_rule` in lowering.py), and loading it waits for its
MMAs.

An MMA of Blackwell (`tcgen05_mma`) reads its operands, and adds to its accumulator in tensor memory or overwrites it,
until a barrier has its arrival: `tcgen05_commit_arrive`, or the MMA with a barrier of its own, arrives when all that
the thread has started before has ended. So it is of a copy from shared to tensor memory, which comes before each MMA
that is started behind it (`async_copy_smem_to_tmem` of jax 0.12). A load of tensor memory has ended at
`wait_load_tmem`, although what it loads may be used before; a store to it is there after `commit_tmem`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import (
    COPIES_IN,
    COPIES_OUT,
    MMAS,
    TENSOR,
    TENSOR_LOADS,
    TENSOR_STORES,
    WARPS,
    Access,
    BodyReference,
    Committed,
    GpuInstruction,
    Index,
    Loop,
    Signal,
    Slice,
    StartedCopy,
    StartedUse,
    TensorFence,
    View,
    ViewStep,
    Wait,
)
from layoutproof.bodies.integers import condition_of
from layoutproof.bodies.memory import allocated, load, loaded, through, view_of
from layoutproof.bodies.passes import BodyValue, Pass, Rule, as_array
from layoutproof.bodies.programs import axis_of
from layoutproof.bodies.values import Value, dims_of
from layoutproof.core.folding import FALSE, TRUE, any_of, fold, folded, linear, negation
from layoutproof.core.term import ONE, ZERO, Term
from layoutproof.ir.gpu_code import (
    LOADED,
    NAMED_BARRIERS,
    STORED,
    WARP,
    NamedBarrier,
    is_proxy_fence,
    named_barrier,
    statements,
    tensor_fence,
)
from layoutproof.ir.program import Dtype, Equation, Variable, element_type_named, leaves_in, planted

_CLIPPED = ("ZEROS", "2", "None")
"""How `copy_gmem_to_smem` is told to give zeros outside of the array, which is the default (`OOBFillMode`)."""


def _views(on: Pass, given: Sequence[BodyValue], trees: Sequence[object], rest: Sequence[BodyValue]) -> list[View]:
    """Some memory, each through its own transforms. rest: the operands of the trees, in order."""
    left = list(rest)
    found: list[View] = []
    for operand, tree in zip(given, trees, strict=True):
        count = leaves_in(tree)
        own, left = left[:count], left[count:]
        view = view_of(on, operand)
        found.append(through(on, view, planted(tree, own)) if tree else view)
    if left:
        raise UnsupportedOp(problems.GPU_OPERANDS())
    return found


def _queue(on: Pass, name: str) -> View:
    """A semaphore that no code names."""
    found = next((r for r in on.references if r.name == name), None)
    if found is None:
        found = BodyReference(name, "semaphore", (), "semaphore", "semaphore", in_order=True)
        on.references.append(found)
    return View(found)


def _copy_in(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    params = equation.params
    led, across = params.get("leader_tracked") is not None, _axes(*(params.get("collective_axes") or ()))
    if led and len(across) > 1:
        raise UnsupportedOp(problems.CLUSTER_AXES(len(across)))
    # of jax 0.12
    if params.get("has_user_predicate"):
        raise UnsupportedOp(problems.COPY_FORM())
    if not params.get("has_barrier", True):
        return _copy_by_lanes(on, equation, operands)
    trees = [params[f"{side}_transforms_treedef"] for side in ("src", "dst", "barrier")]
    source, target, barrier = _views(on, operands[:3], trees, operands[3:])
    mode = params.get("oob_mode")
    clips = str(getattr(mode, "name", mode)) in _CLIPPED
    if led:
        on.instructions.append(GpuInstruction("copy_gmem_to_smem", on.spot()))
        source = _own_part(on, source, params["leader_tracked"], "".join(across))
    on.effects.append(StartedCopy(source, target, _slot(barrier), on.spot(), clips=clips, across=across, led=led))
    return []


def _copy_by_lanes(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """A copy without a barrier (cp.async), of GPUs before Hopper: a group of its own, and nothing clips its box."""
    trees = [equation.params[f"{side}_transforms_treedef"] for side in ("src", "dst")]
    source, target = _views(on, operands[:2], trees, operands[2:])
    on.instructions.append(GpuInstruction(COPIES_IN, on.spot()))
    on.effects.append(StartedCopy(source, target, _queue(on, COPIES_IN), on.spot()))
    return []


def _wait_in(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`wait_gmem_to_smem`."""
    return _wait_in_order(on, COPIES_IN, _left(equation, operands))


def _own_part(on: Pass, source: View, partition: object, axis: str) -> View:
    """What a program copies of a source of which only the first program of a cluster sees the end (`CopyPartition`)."""
    split = getattr(partition, "axis", None)
    many = dict(zip(on.names, on.grid, strict=True)).get(axis)
    if split is None and many == 2:
        # each copies all of it
        return source
    split = split or 0
    if source.dims is None or many != 2 or source.dims[split] % many:
        raise UnsupportedOp(problems.CLUSTER_PART())
    dims = list(source.dims)
    dims[split] //= many
    on.asks.add(axis)
    starts = [ZERO] * len(dims)
    starts[split] = linear([(dims[split], Term("name", axis))])
    slices = tuple(Slice(start, Term("int", size)) for start, size in zip(starts, dims, strict=True))
    return View(source.reference, (*source.steps, ViewStep("slices", source.dims, tuple(dims), slices)))


def _copy_out(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    params = equation.params
    predicated = bool(params["has_user_predicate"])
    if params.get("reduction_op") is not None:
        raise UnsupportedOp(problems.COMBINES(params["reduction_op"]))
    trees = [params[f"{side}_transforms_treedef"] for side in ("src", "dst")]
    source, target = _views(on, operands[:2], trees, operands[2 : len(operands) - predicated])
    conditions = [folded(condition_of(on.scalar(as_array(operands[-1]))))] if predicated else []
    with on.under(*conditions):
        queue = _queue(on, COPIES_OUT)
        grouped = bool(params["commit_group"])
        on.effects.append(StartedCopy(source, target, queue, on.spot(), clips=True, grouped=grouped))
    return []


def _commit_group(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    on.effects.append(Signal(_queue(on, COPIES_OUT), ONE, on.spot()))
    return []


def _wait_out(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`wait_smem_to_gmem`. Where only the reads are waited for, what was written is not to be read here any more."""
    reads = bool(equation.params["wait_read_only"])
    if reads and not on.kernel.remote and _reads_back(on):
        raise UnsupportedOp(problems.WAIT_READS())
    return _wait_in_order(on, COPIES_OUT, _left(equation, operands), reads)


def _left(equation: Equation, operands: Sequence[BodyValue]) -> BodyValue | Term:
    """How many of the last ones a wait leaves: an operand, and of jax 0.12 a parameter."""
    if len(operands) == 1:
        return operands[0]
    left = equation.params.get("n")
    if operands or type(left) is not int:
        raise UnsupportedOp(problems.WAIT_LEAVES())
    return Term("int", left)


def _reads_back(on: Pass) -> bool:
    copied = {e.target.reference.name for e in on.effects if isinstance(e, StartedCopy)}
    read = {e.source.reference.name for e in on.effects if isinstance(e, StartedCopy)}
    read |= {e.view.reference.name for e in on.effects if isinstance(e, Access) and e.kind != "write"}
    return bool({r.name for r in on.references if r.memory == "gmem"} & copied & read)


def _wait_in_order(on: Pass, name: str, given: BodyValue | Term = ZERO, of_reads: bool = False) -> list[BodyValue]:
    left = given if isinstance(given, Term) else on.scalar(as_array(given))
    if left.op != "int":
        raise UnsupportedOp(problems.WAIT_LEAVES())
    queue = _queue(on, name)
    on.effects.append(Wait(queue, queue, on.spot(), int(left.args[0]), of_reads))
    return []


def _commit(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    on.effects.append(Committed(on.spot()))
    return []


def _slot(barrier: View) -> View:
    """A barrier as it is counted. UnsupportedOp for those that programs along several axes of a cluster share."""
    if not barrier.reference.arrivals:
        raise UnsupportedOp(problems.BARRIER_KIND(barrier.reference.dtype))
    if barrier.dims and any(extent != 1 for extent in barrier.dims):
        raise UnsupportedOp(problems.SEVERAL_BARRIERS())
    if not barrier.dims:
        return barrier
    # a barrier alone is a row of one
    first = tuple(Slice(ZERO, ONE, single=True) for _ in barrier.dims)
    return View(barrier.reference, (*barrier.steps, ViewStep("slices", barrier.dims, (), first)))


def _barrier(on: Pass, equation: Equation, operands: list[BodyValue]) -> View:
    (barrier,) = _views(on, operands[:1], [equation.params["transforms_treedef"]], operands[1:])
    return _slot(barrier)


def _arrive(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    on.effects.append(Signal(_barrier(on, equation, operands), ONE, on.spot()))
    return []


def _wait(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    barrier = _barrier(on, equation, operands)
    on.effects.append(Wait(barrier, barrier, on.spot()))
    return []


def _wgmma(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`acc += a @ b`, where a and b lie in shared memory, and a may lie in registers."""
    trees = [equation.params[f"{side}_transforms_tree"] or () for side in ("acc", "a", "b")]
    # an array in registers has no transforms
    lies = [k for k, one in enumerate(operands[:3]) if isinstance(one, View)]
    acc, *held = _views(on, [operands[k] for k in lies], [trees[k] for k in lies], operands[3:])
    loaded_from = [_operand(on, view) for view in held]
    left, right = loaded_from if len(held) == 2 else (as_array(operands[1]), *loaded_from)
    if acc.dims is None:
        raise UnsupportedOp(problems.ACCUMULATOR_SHAPE())
    value = _product(on, acc.dims, element_type_named(acc.dtype), left, right)
    # both end together: where threads are run, the sum is there when the MMA has ended
    on.effects.append(Access("add", acc, on.spot(), value, queue=MMAS if on.kernel.by_events else ""))
    on.effects.append(StartedUse(tuple(held), _queue(on, MMAS), on.spot()))
    return []


def _product(on: Pass, dims: tuple[int, ...], dtype: Dtype, left: Value, right: Value) -> Value:
    """A product of matrices, whose numbers no term says; where it is undefined a row or a column is."""

    def undefined(index: Index) -> Term:
        at = on.witness(left.dims[-1])
        return any_of([left.undefined((index[0], at)), right.undefined((at, index[1]))])

    defined = left.defined and right.defined
    return Value(dims, dtype, problems.MATRIX_PRODUCT(), None if defined else undefined)


def _mma(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`mma`: a sum and a product of arrays in registers, at once."""
    acc, left, right = map(as_array, operands)
    product = _product(on, acc.dims, acc.dtype, left, right)
    doubt = None if acc.defined and product.defined else lambda at: any_of([acc.undefined(at), product.undefined(at)])
    return [Value(acc.dims, acc.dtype, problems.MATRIX_PRODUCT(), doubt)]


def _operand(on: Pass, operand: View) -> Value:
    if operand.dims is None:
        raise UnsupportedOp(problems.WGMMA_SHAPE())
    access = Access("read", operand, on.spot())
    on.effects.append(access)
    return loaded(on, operand, access, operand.dims, element_type_named(operand.dtype))


def _wgmma_wait(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    return _wait_in_order(on, MMAS, _left(equation, operands))


def _accumulated(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """A load of an accumulator, which waits for all MMAs but the last ones first (`wait_n`; None = for none)."""
    left = equation.params["wait_n"]
    if left != 0 and not on.kernel.by_events:
        raise UnsupportedOp(problems.LOAD_LEAVES(left))
    if left is not None:
        _wait_in_order(on, MMAS, Term("int", int(left)))
    return [load(on, view_of(on, operands[0]), equation.outvars[0])]


def _accumulates(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`wgmma_accumulator_store`, which also gives what it has stored."""
    if not on.kernel.by_events:
        raise UnsupportedOp(problems.ACCUMULATOR_STORE())
    value = as_array(operands[1])
    on.effects.append(Access("write", view_of(on, operands[0]), on.spot(), value))
    return [value]


def _run_state(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """Accumulators that begin with a value and whose last value is given; memory around it goes in and out as it is.

    JAX puts what the body takes from outside into memory, too.
    """
    inner = equation.params["jaxpr"]
    if not all(equation.params["is_initialized"]):
        raise UnsupportedOp(problems.RUN_STATE_EMPTY())
    views: list[View] = []
    for variable, operand in zip(inner.invars, operands, strict=True):
        if isinstance(operand, View):
            views.append(operand)
            continue
        if variable.aval.memory not in ("regs", "vmem"):
            raise UnsupportedOp(problems.RUN_STATE_KIND(variable.aval.memory))
        views.append(allocated(on, variable.aval))
        on.effects.append(Access("write", views[-1], on.spot(), operand))
    on.run(inner, views)
    _wait_in_order(on, MMAS)
    ends = zip(views, operands, equation.outvars, strict=True)
    return [operand if isinstance(operand, View) else load(on, view, variable) for view, operand, variable in ends]


def _tensor_mma(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`tcgen05_mma`; along an axis of a cluster the first program does it for both."""
    params = equation.params
    arrives = ["barrier"] if params["arrive"] else []
    beside = ["a_scale", "b_scale"] if params.get("scaled") else []
    beside += ["a_sparse_metadata"] if params.get("sparse") else []
    sides = ["acc", "a", "b", *arrives, *beside]
    given = [*operands[:3], *operands[4 : len(sides) + 1]]
    trees = [params[f"{side}_transforms_tree"] or () for side in sides]
    acc, left, right, *more = _views(on, given, trees, operands[len(sides) + 1 :])
    barriers, scales = more[: len(arrives)], more[len(arrives) :]
    if acc.dims is None:
        raise UnsupportedOp(problems.ACCUMULATOR_SHAPE())
    slots = list(map(_slot, barriers))
    axes = _axes(params["collective_axis"])
    adds = folded(condition_of(on.scalar(as_array(operands[3]))))
    value = Value(acc.dims, element_type_named(acc.dtype), problems.MATRIX_PRODUCT())
    with on.under(*_leads(on, axes)):
        for view in (*scales, left, right):
            on.effects.append(Access("read", view, on.spot(), queue=TENSOR, across=axes))
        for kind, condition in (("add", adds), ("write", negation(adds))):
            if condition is not FALSE:
                with on.under(condition):
                    on.effects.append(Access(kind, acc, on.spot(), value, queue=TENSOR, across=axes))
        held = tuple(view for view in (left, right) if view.reference.memory != "tmem") + tuple(scales)
        on.effects.append(StartedUse(held, _queue(on, TENSOR), on.spot(), axes))
        for slot in slots:
            on.effects.append(Signal(slot, ONE, on.spot(), after=TENSOR, across=axes))
    return []


def _tensor_copy(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """A copy from shared to tensor memory, of operands, of scales or of what is left of sparse operands."""
    params = equation.params
    trees = [params[f"{side}_tree"] or () for side in ("smem", "tmem")]
    source, target = _views(on, operands[:2], trees, operands[2:])
    axes = _axes(params["collective_axis"])
    with on.under(*_leads(on, axes)):
        on.effects.append(StartedCopy(source, target, _queue(on, TENSOR), on.spot(), across=axes))
    return []


def _axes(*names: object) -> tuple[str, ...]:
    """The axes of a cluster along which programs do something together; None is none."""
    return tuple(str(name) for name in names if name)


def _leads(on: Pass, axes: tuple[str, ...]) -> list[Term]:
    """The conditions that a program is the first one along some axes of its cluster."""
    for axis in axes:
        if axis not in on.names:
            raise UnsupportedOp(problems.AXIS_INDEX(axis))
        on.asks.add(axis)
    return [fold("==", Term("name", axis), ZERO) for axis in axes]


def _tensor_arrives(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`tcgen05_commit_arrive`."""
    params = equation.params
    (barrier,) = _views(on, operands[:1], [params["barrier_transforms_tree"] or ()], operands[1:])
    axes = _axes(params["collective_axis"])
    with on.under(*_leads(on, axes)):
        on.effects.append(Signal(_slot(barrier), ONE, on.spot(), after=TENSOR, across=axes))
    return []


def _tensor_load(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`async_load_tmem`."""
    if equation.params.get("reduce") is not None:
        raise UnsupportedOp(problems.LOAD_REDUCES())
    view = through(on, view_of(on, operands[0]), planted(equation.params["tree"], operands[1:]))
    at = len(on.effects)
    value = load(on, view, equation.outvars[0], queue=TENSOR_LOADS)
    known = any(isinstance(effect, Access) and effect.value is value for effect in on.effects)
    begun = on.effects[at]
    if isinstance(begun, Access) and not known:
        on.effects[at] = replace(begun, value=value)
    return [value]


def _tensor_store(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`async_store_tmem`."""
    view = through(on, view_of(on, operands[0]), planted(equation.params["tree"], operands[2:]))
    on.effects.append(Access("write", view, on.spot(), as_array(operands[1]), queue=TENSOR_STORES))
    return []


def _tensor_loaded(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`wait_load_tmem`."""
    return _wait_in_order(on, TENSOR_LOADS)


def _tensor_stored(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`commit_tmem`."""
    return _wait_in_order(on, TENSOR_STORES)


def _claims(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`try_cluster_cancel`: the first thread asks for more work, and each arrives; the answer comes into memory."""
    params = equation.params
    if not (on.loops and on.loops[-1].units):
        raise UnsupportedOp(problems.UNITS_LOOP())
    # of jax 0.12 each thread asks that is not along an axis that is said
    along = params.get("collective_axes")
    if along is not None and set(on.kernel.together) - set(map(str, along)):
        raise UnsupportedOp(problems.UNITS_ASKED())
    trees = [params[f"{side}_transforms_tree"] or () for side in ("result", "barrier")]
    result, barrier = _views(on, operands[:2], trees, operands[2:])
    slot, threads = _slot(barrier), on.kernel.threads
    first = TRUE
    if threads:
        on.asks.add(threads)
        first = fold("==", Term("name", threads), ZERO)
    with on.under(first):
        on.effects.append(StartedCopy(View(_GIVEN), result, slot, on.spot(), given=True))
    if threads:
        with on.under(negation(first)):
            on.effects.append(Signal(slot, ONE, on.spot()))
    return []


_GIVEN = BodyReference("the work that is left", "around", (16,), "s8", "any")
"""What a GPU gives out."""


def _claimed(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`query_cluster_cancel`: the ids of the work, and whether there is more, of which the loop takes notice."""
    names = [str(name) for name in equation.params["grid_names"]]
    inside = {name for name, extent in zip(on.names, on.grid, strict=True) if extent == 1} | set(on.kernel.together)
    if not (on.loops and on.loops[-1].units) or set(names) & set(on.kernel.together):
        raise UnsupportedOp(problems.UNITS_LOOP())
    if set(on.names) - inside - set(names):
        raise UnsupportedOp(problems.UNITS_AXES())
    (result,) = _views(on, operands[:1], [equation.params["transforms_tree"] or ()], operands[1:])
    on.effects.append(Access("read", result, on.spot()))
    ids = [axis_of(on, name, variable.aval.dtype) for name, variable in zip(names, equation.outvars, strict=False)]
    more = Value((), equation.outvars[-1].aval.dtype, problems.UNITS_LEFT())
    return [*ids, more]


_TENSOR_WAITS = {LOADED: TENSOR_LOADS, STORED: TENSOR_STORES}
"""Waits of each warp for what it has started on tensor memory itself.

What its warpgroup then does together, which warps have to meet for, is looked at where JAX puts no barriers around it.
"""


def _inline(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`inline_mgpu`: code of fences, of named barriers, and of what computes in registers alone."""
    steps = equation.params.get("code")
    if steps is None:
        raise UnsupportedOp(problems.INLINE_CODE())
    for step in steps:
        for done in statements(step):
            if is_proxy_fence(done):
                continue
            if done in _TENSOR_WAITS and not on.kernel.ordered:
                _wait_in_order(on, _TENSOR_WAITS[done])
                continue
            if (fence := tensor_fence(done)) and on.kernel.by_events:
                on.effects.append(TensorFence(on.spot(), fence == "before"))
                continue
            found = named_barrier(step, done)
            if found is None or found.number is None or found.threads % WARP or not on.kernel.by_events:
                raise UnsupportedOp(problems.INLINE_OPERATION(done))
            _meets(on, operands, found, found.number)
    held = [as_array(operand) for operand in operands]
    if any(not dims_of(variable.aval) for variable in equation.outvars):
        raise UnsupportedOp(problems.INLINE_NUMBER())
    return [_computed(on, variable, held) for variable in equation.outvars]


def _meets(on: Pass, operands: Sequence[BodyValue], done: NamedBarrier, number: int | str) -> None:
    """`bar.arrive`, an arrival of each warp on a named barrier, or `bar.sync`, which also waits for those of all."""
    at = _barrier_number(on, operands, number)
    name = f"barriers of {done.threads} threads"
    found = next((r for r in on.references if r.name == name), None)
    if found is None:
        found = BodyReference(
            name,
            "semaphore",
            (NAMED_BARRIERS,),
            "barrier",
            "semaphore",
            arrivals=done.threads // WARP,
            by_name=True,
        )
        on.references.append(found)
    part = ViewStep("slices", found.dims, (), (Slice(at, ONE, single=True),))
    slot = View(found, (part,))
    on.effects.append(Signal(slot, Term("int", 1 if on.warps else WARPS), on.spot()))
    if done.waits:
        on.effects.append(Wait(slot, slot, on.spot()))


def _barrier_number(on: Pass, operands: Sequence[BodyValue], number: int | str) -> Term:
    """Which named barrier code means; number: as of `CodeStep`."""
    if isinstance(number, int):
        return Term("int", number)
    if number[0] == "$":
        return on.scalar(as_array(operands[int(number[1:])]))
    first = Term("int", int(number.rpartition(" ")[2]))
    return fold("+", Term("name", on.kernel.threads), first) if on.kernel.threads else first


def _computed(on: Pass, variable: Variable, given: Sequence[Value]) -> Value:
    """What code computes of some arrays: no term says it, and nothing of it is defined where a part of them is not."""
    dims = dims_of(variable.aval)

    def undefined(index: Index) -> Term:
        return any_of([one.undefined(tuple(map(on.witness, one.dims))) for one in given])

    doubt = None if all(one.defined for one in given) else undefined
    return Value(dims, variable.aval.dtype, problems.INLINE_CODE(), doubt)


def _warps(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """A body that the warps of a warpgroup run, each by itself; they meet before and after it."""
    meshes, programs = equation.params["meshes"], equation.params["jaxprs"]
    if [kind for kind, _ in meshes] != ["WarpMesh"] or len(programs) != 1 or equation.outvars or on.warps:
        raise UnsupportedOp(problems.BODY_MESH(", ".join(kind for kind, _ in meshes)))
    ((_, ((axis, many),)),) = meshes
    loop = Loop(on.named("warp"), Term("int", int(many)), on.source(), warps=True)
    on.warps[str(axis)] = Term("name", loop.name)
    with on.inside(loop):
        on.run(programs[0], operands)
    del on.warps[str(axis)]
    return []


def _load(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`plgpu.load`."""
    view = through(on, view_of(on, operands[0]), planted(equation.params["tree"], operands[1:]))
    return [load(on, view, equation.outvars[0])]


def _same(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`layout_cast`: the same array, in other registers."""
    return [operands[0]]


def _registers(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    """`set_max_registers`, which touches no memory."""
    # of jax 0.12 it is a parameter
    term = on.scalar(as_array(operands[0])) if operands else Term("int", int(equation.params["n"]))
    many = int(term.args[0]) if term.op == "int" else None
    on.instructions.append(GpuInstruction(REGISTERS, on.spot(), many, str(equation.params["action"]) == "increase"))
    return []


REGISTERS = "set_max_registers_p"
"""The primitive that says how many registers a thread may have from here on."""
NOT_EVERYWHERE = frozenset(
    (
        "wgmma_ref", "wgmma_wait", "wgmma_accumulator_deref_p", "wgmma_accumulator_store_p",
        "tcgen05_mma", "tcgen05_commit_arrive", "async_load", "wait_load_tmem", "async_store_tmem", "commit_tmem",
        "async_copy_smem_to_tmem", "async_copy_scales_to_tmem", "async_copy_sparse_metadata_to_tmem",
        "try_cluster_cancel", "query_cluster_cancel", COPIES_IN,
    )
)  # fmt: skip
"""Primitives of instructions that not every GPU of Mosaic GPU has; `hardware.mosaic_gpu` says which one has them."""

PRIMITIVES: dict[str, Rule] = {
    "copy_gmem_to_smem": _copy_in,
    "wait_gmem_to_smem": _wait_in,
    "copy_smem_to_gmem": _copy_out,
    "commit_group": _commit_group,
    "wait_smem_to_gmem": _wait_out,
    "commit_smem": _commit,
    "barrier_arrive": _arrive,
    "barrier_wait": _wait,
    "wgmma_ref": _wgmma,
    "wgmma_wait": _wgmma_wait,
    "mma": _mma,
    "wgmma_accumulator_deref_p": _accumulated,
    "wgmma_accumulator_store_p": _accumulates,
    "run_state": _run_state,
    "tcgen05_mma": _tensor_mma,
    "tcgen05_commit_arrive": _tensor_arrives,
    "async_copy_smem_to_tmem": _tensor_copy,
    "async_copy_scales_to_tmem": _tensor_copy,
    "async_copy_sparse_metadata_to_tmem": _tensor_copy,
    "async_load": _tensor_load,
    "wait_load_tmem": _tensor_loaded,
    "async_store_tmem": _tensor_store,
    "commit_tmem": _tensor_stored,
    "try_cluster_cancel": _claims,
    "query_cluster_cancel": _claimed,
    "inline_mgpu_p": _inline,
    "core_map": _warps,
    "mpmd_map": _warps,
    "mgpu_load": _load,
    "layout_cast": _same,
    REGISTERS: _registers,
}
