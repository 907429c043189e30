"""Primitives of Mosaic GPU: copies by TMA, barriers of shared memory, MMAs of a warpgroup, in values.

Read from jax/_src/pallas/mosaic_gpu/primitives.py and jax/experimental/mosaic/gpu/launch_context.py (jax 0.10.2); the
names are those of `bodies.mosaic_gpu`. Where a copy goes nothing is defined until it is waited for. An MMA is computed
where it is started: that nothing overwrites its operands before it ends is a premise (`dma_order`). How shared memory
lies, and an array in registers, is nothing to values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from layoutproof.core.element_types import element_type
from layoutproof.ir.gpu_code import LOADED, STORED, WARP, is_proxy_fence, named_barrier, statements, tensor_fence
from layoutproof.ir.program import (
    Array,
    Dtype,
    Equation,
    Indexed,
    Other,
    Span,
    Transform,
    Variable,
    leaves_in,
    planted,
    primitive,
)
from layoutproof.values.contractions import product
from layoutproof.values.control import decided
from layoutproof.values.elementwise import converted, within
from layoutproof.values.kernels import overlap
from layoutproof.values.kinds import Data, Shaped
from layoutproof.values.known import Known, combined, moved
from layoutproof.values.memory import ElementView, HeldMemory, Semaphore, TensorMemory
from layoutproof.values.references import held_type, index_of, load, store, through, unwritten, view_of
from layoutproof.values.refusals import OutOfBounds
from layoutproof.values.state import Rule, Walking
from layoutproof.values.warpgroups import threads_of

Places = np.ndarray[Any, Any]

_CLIPPED = ("ZEROS", "2", "None")
"""How `copy_gmem_to_smem` is told to give zeros outside of the array, which is the default (`OOBFillMode`)."""
_CODE = "inline_mgpu_p"
"""The primitive of code of the compiler."""
_NO_SWIZZLE = 16
"""The width of rows, in bytes, within which nothing is swizzled."""


def _trees(
    params: Mapping[str, object], names: Sequence[str], operands: Sequence[Shaped]
) -> list[tuple[Transform, ...]]:
    """The transforms of some references. names: of the trees, in the order of their operands."""
    found, left = [], list(operands)
    for name in names:
        tree = params[name]
        count = leaves_in(tree)
        own, left = left[:count], left[count:]
        steps = planted(tree, own) if tree else ()
        found.append(steps if isinstance(steps, tuple) else (steps,))
    return found


@dataclass(frozen=True)
class _Box:
    """A part of an array in global memory, which may reach beyond it.

    part: of each dimension its first element and its extent.  kept: the dimensions that are no single elements.
    """

    memory: HeldMemory
    part: tuple[tuple[int, int], ...]
    kept: tuple[int, ...]

    def __post_init__(self) -> None:
        self.inside()

    def inside(self) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """What of it lies in the array: (in the array, in the box). It has to begin in it."""
        shape = self.memory.shape
        for (first, extent), n in zip(self.part, shape, strict=True):
            if extent and not 0 <= first < n:
                raise OutOfBounds(f"a copy from or to elements {first} to {first + extent - 1} of {n}")
        return overlap(self.part, shape)

    @property
    def extents(self) -> tuple[int, ...]:
        """Of all dimensions."""
        return tuple(extent for _, extent in self.part)

    @property
    def shown(self) -> tuple[int, ...]:
        """The shape without single elements."""
        return tuple(self.part[dim][1] for dim in self.kept)

    def view(self) -> ElementView:
        """What of it lies in the array."""
        array, _ = self.inside()
        shape = tuple(s.stop - s.start for s in array)
        return ElementView(self.memory, None, shape, box=array)


def _box(on: Walking, memory: Shaped, transforms: Sequence[Transform]) -> _Box:
    """The box that slices of slices of an array are: TMA looks at the whole array, and at no part of it."""
    if not isinstance(memory, HeldMemory):
        raise on.refuse("a copy by TMA of a part of memory")
    part: list[tuple[int, int]] = [(0, n) for n in memory.shape]
    left = list(range(len(part)))
    for transform in transforms:
        if not isinstance(transform, Indexed):
            raise on.refuse(f"a copy by TMA through {getattr(transform, 'kind', type(transform).__name__)}")
        kept = []
        for dim, entry in zip(left, transform.indices, strict=True):
            first, extent = _piece(on, entry)
            part[dim] = part[dim][0] + first, 1 if extent is None else extent
            if extent is not None:
                kept.append(dim)
        left = kept
    return _Box(memory, tuple(part), tuple(left))


def _piece(on: Walking, entry: Span | Shaped | int) -> tuple[int, int | None]:
    """(The first element, the extent of a slice or None of a single element)."""
    if not isinstance(entry, Span):
        at = index_of(on, entry)
        if not isinstance(at, int):
            raise on.refuse("a copy by TMA that gathers")
        return at, None
    first, size = (index_of(on, one) for one in (entry.start, entry.size))
    if not isinstance(first, int) or not isinstance(size, int) or int(entry.stride or 1) != 1:
        raise on.refuse("a copy by TMA of elements that do not follow one another")
    return first, size


def _alike(on: Walking, box: _Box, shared: ElementView) -> None:
    """Raises where a box and shared memory are of different shapes or element types."""
    types = [element_type(memory.dtype) for memory in (box.memory, shared.memory)]
    if shared.shape != box.shown or types[0] != types[1]:
        raise on.refuse(f"a copy of {types[0]}{list(box.shown)} beside {types[1]}{list(shared.shape)}")


def _undefined(on: Walking, view: ElementView, mask: Places | None = None) -> None:
    """Nothing is defined where a copy goes that is on its way."""
    dtype = view.memory.dtype
    missing = getattr(dtype, "kind", "f") in "iub"
    store(on, view, unwritten(on, view.shape, dtype), mask, missing=missing)


def _whole(on: Walking, box: _Box) -> Shaped:
    """What a box holds: zeros outside of the array."""
    array, block = box.inside()
    found = load(on, box.view())
    if all(s.stop - s.start == n for s, n in zip(array, box.extents, strict=True)):
        return moved(on.numbers, found, lambda r: r.reshape(box.shown))
    zeros = Known(np.zeros(box.extents, held_type(box.memory.dtype)))

    def move(parts: Sequence[Places]) -> Places:
        out = np.array(parts[0])
        out[block] = parts[1]
        return out.reshape(box.shown)

    return combined(on.numbers, [zeros, found], move)


def _copy_in(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`copy_gmem_to_smem`: one arrival on a barrier, which has come once the copy has ended."""
    params, threads = equation.params, threads_of(on)
    across = tuple(params.get("collective_axes") or ())
    if len(across) > 1:
        raise on.refuse("a copy over several axes of a cluster")
    # of jax 0.12
    if params.get("has_user_predicate"):
        raise on.refuse("a copy into shared memory with a condition")
    counted = bool(params.get("has_barrier", True))
    names = [f"{side}_transforms_treedef" for side in ("src", "dst", *(["barrier"] if counted else []))]
    of_source, of_target, *of_barrier = _trees(params, names, operands[2 + counted :])
    box = _box(on, operands[0], of_source)
    target = through(on, view_of(on, operands[1]), of_target)
    led = params.get("leader_tracked")
    sharing = threads.along(on, (across,) if across else ())
    if led is not None:
        box = _own_part(on, box, getattr(led, "axis", None), sharing.index(threads.program(on)), len(sharing))
    mode = params.get("oob_mode")
    clipped = counted and str(getattr(mode, "name", mode)) in _CLIPPED
    if not clipped and box.view().shape != box.extents:
        raise OutOfBounds(f"a copy of elements beyond an array of {list(box.memory.shape)}, which nothing clips")
    _alike(on, box, target)
    mask = None
    if len(sharing) > 1 and led is None:
        owners = _owners(on, target, of_target, len(sharing))
        mask = owners == sharing.index(threads.program(on))
    targets = [target] if led is not None else [threads.of_program(on, target, program) for program in sharing]
    counts = sharing[:1] if led is not None else sharing
    for program, view in zip(counts, targets, strict=True):
        _undefined(on, view, mask)

        def land(view: ElementView = view) -> None:
            if box.memory.changed:
                raise on.refuse("a copy out of global memory that the kernel writes to")
            store(on, view, _whole(on, box), mask)

        if not counted:
            threads.starts(on, land, True, True)
            continue
        barrier = through(on, view_of(on, operands[2]), of_barrier[0])
        threads.arrives(on, barrier, program, threads.whole // len(sharing), land)
    return []


def _own_part(on: Walking, box: _Box, axis: int | None, own: int, many: int) -> _Box:
    """What a program copies where the first one of two sees the end of both copies (`CopyPartition`).

    axis: along which dimension of what is shown each has a part; None where each copies all of it.
    """
    if many != 2:
        raise on.refuse(f"a copy of {many} programs of a cluster that the first one tracks")
    if axis is None:
        return box
    dim = box.kept[axis]
    first, extent = box.part[dim]
    if extent % many:
        raise on.refuse(f"a copy of {extent} rows of which each of {many} programs has a part")
    part = first + own * (extent // many), extent // many
    return _Box(box.memory, (*box.part[:dim], part, *box.part[dim + 1 :]), box.kept)


def _wait_in(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`wait_gmem_to_smem`, of copies without a barrier."""
    threads_of(on).drains(on, _left(on, equation, operands), True)
    return []


def _left(on: Walking, equation: Equation, operands: Sequence[Shaped]) -> int:
    """How many groups a wait may leave: an operand, and of jax 0.12 a parameter."""
    left = operands[0] if operands else None
    if left is not None and (not isinstance(left, Known) or left.sampled):
        raise on.refuse("a wait for a number of copies that rests on data")
    return int(equation.params["n"] if left is None else left.array)


def _owners(on: Walking, target: ElementView, transforms: Sequence[Transform], many: int) -> Places:
    """Of each element of a copy that programs of a cluster share, the number of the one that brings it.

    The slice is cut as it lies in tiles (`_prepare_tma` in launch_context.py): along its first dimensions, the
    last one left out where rows are swizzled.
    """
    layout: tuple[Other, ...] = target.memory.layout
    tilings = [tuple(map(int, t.parts["tiling"])) for t in layout if t.kind == "UntilingTransform"]
    swizzled = any(int(t.parts["swizzle"]) > _NO_SWIZZLE for t in layout if t.kind == "UnswizzleRef")
    if len(tilings) > 1 or any(not isinstance(t, Indexed) for t in transforms[len(layout) :]):
        raise on.refuse("a copy that programs of a cluster share into memory that is turned, or tiled twice")
    tiling = tilings[0] if tilings else ()
    outer = len(target.shape) - len(tiling)
    at = list(np.indices(target.shape))
    sizes = [*target.shape[:outer], *(n // t for n, t in zip(target.shape[outer:], tiling, strict=True)), *tiling]
    at = [*at[:outer], *(a // t for a, t in zip(at[outer:], tiling, strict=True)),
          *(a % t for a, t in zip(at[outer:], tiling, strict=True))]  # fmt: skip
    owners: Places = np.zeros(target.shape, np.int64)
    weight, left = 1, many
    for index, size in list(zip(at, sizes, strict=True))[: len(sizes) - swizzled]:
        if size % left == 0:
            owners += weight * (index // (size // left))
            return owners
        if left % size:
            break
        owners, weight, left = owners + weight * index, weight * size, left // size
    raise on.refuse(f"a copy of {list(target.shape)} that {many} programs of a cluster share")


def _copy_out(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`copy_smem_to_gmem`: what lies outside of the array is not written."""
    params, threads = equation.params, threads_of(on)
    if params.get("reduction_op") is not None:
        raise on.refuse(f"a copy that combines by {params['reduction_op']}")
    predicated = bool(params["has_user_predicate"])
    if predicated:
        held = operands[-1]
        if not isinstance(held, Known) or held.sampled:
            raise on.refuse("a copy whose condition rests on data")
        if not held.array:
            if params["commit_group"]:
                threads.commits(on)
            return []
    names = [f"{side}_transforms_treedef" for side in ("src", "dst")]
    of_source, of_target = _trees(params, names, operands[2 : len(operands) - predicated])
    source = through(on, view_of(on, operands[0]), of_source)
    box = _box(on, operands[1], of_target)
    _alike(on, box, source)
    _undefined(on, box.view())

    def land() -> None:
        _, block = box.inside()
        store(on, box.view(), moved(on.numbers, load(on, source), lambda r: r.reshape(box.extents)[block]))

    threads.starts(on, land, bool(params["commit_group"]))
    return []


def _commit_group(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    threads_of(on).commits(on)
    return []


def _wait_out(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`wait_smem_to_gmem`: what was read has been written when the kernel ends, if not before."""
    threads_of(on).drains(on, _left(on, equation, operands))
    return []


def _barrier(on: Walking, equation: Equation, operands: list[Shaped]) -> ElementView:
    (transforms,) = _trees(equation.params, ["transforms_treedef"], operands[1:])
    return through(on, view_of(on, operands[0]), transforms)


def _arrive(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    threads, barrier = threads_of(on), _barrier(on, equation, operands)
    for program in threads.along(on, getattr(barrier.memory, "across", ())):
        threads.arrives(on, barrier, program, threads.whole)
    return []


def _wait(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    threads_of(on).passes(on, _barrier(on, equation, operands))
    return []


def _wgmma(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`acc += a @ b`, where a and b lie in shared memory, and a may lie in registers."""
    names = [f"{side}_transforms_tree" for side in ("acc", "a", "b")]
    steps = _trees(equation.params, names, operands[3:])
    acc = through(on, view_of(on, operands[0]), steps[0])
    left, right = (_operand(on, one, own) for one, own in zip(operands[1:3], steps[1:], strict=True))
    if len(acc.shape) != 2 or (left.shape[1:], (left.shape[0], *right.shape[1:])) != (right.shape[:1], acc.shape):
        raise on.refuse(f"a product of {list(left.shape)} and {list(right.shape)} into {list(acc.shape)}")
    one = _one(acc.shape, acc.memory.dtype)
    sides = zip((left, right), (aval.aval.dtype for aval in equation.invars[1:3]), strict=True)
    found = _product(on, one, *(_signed(on, side, dtype) for side, dtype in sides))
    store(on, acc, within(on, on.numbers.add(on.data(load(on, acc)), found), one))
    return []


def _operand(on: Walking, value: Shaped, transforms: Sequence[Transform]) -> Shaped:
    if not isinstance(value, HeldMemory | ElementView):
        return value
    return load(on, through(on, view_of(on, value), tuple(transforms)))


def _one(shape: tuple[int, ...], dtype: Dtype) -> Equation:
    """A product of matrices that gives an array of some shape and type."""
    return Equation(primitive("dot_general"), (), (Variable(Array(shape, dtype)),))


def _signed(on: Walking, value: Shaped, dtype: Dtype) -> Shaped:
    """An operand as it is multiplied: 8 bits always with a sign.

    Source: wgmma.py:232 and tcgen05.py:88 of jax 0.10.2; seen on an H200.
    """
    return converted(on, value, dtype, np.dtype(np.int8)) if element_type(dtype) == "u8" else value


def _product(on: Walking, one: Equation, left: Shaped, right: Shaped) -> Data:
    """What `one` says of two operands without batch dimensions."""
    (a, b) = (moved(on.numbers, side, lambda r: r[None]) for side in (left, right))
    return on.data(product(on, one, a, b, one.outvars[0].aval.shape))


def _accumulated(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """A load of an accumulator, which waits for the MMAs first."""
    if equation.params["wait_n"] != 0:
        raise on.refuse("a load of an accumulator that leaves MMAs running")
    return [load(on, view_of(on, operands[0]))]


def _run_state(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """Memory that begins with values and whose last ones are given; memory around it goes in and out as it is."""
    inner = equation.params["jaxpr"]
    begun = equation.params.get("is_initialized") or (True,) * len(inner.invars)
    if not all(begun):
        raise on.refuse("run_state of memory that begins without a value")
    memory: list[Shaped] = []
    own: dict[int, HeldMemory] = {}
    for k, (variable, value) in enumerate(zip(inner.invars, operands, strict=True)):
        if not isinstance(value, HeldMemory | ElementView | Semaphore):
            value = own[k] = HeldMemory(value, variable.aval.dtype)
        memory.append(value)
    on.run(inner, memory)
    return [own[k].value if k in own else one for k, one in enumerate(memory)]


def _tensor_mma(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`tcgen05_mma`: a product that a tensor core adds to tensor memory, or puts there; where it does nothing is
    defined until a barrier says that it has ended.

    Of two programs of a cluster each has half of the rows of the result and of the first operand, and half of the
    columns of the second one; the first program starts it for both.
    """
    params, threads = equation.params, threads_of(on)
    if params.get("scaled") or params.get("sparse"):
        raise on.refuse("an MMA with scales, or of sparse operands")
    adds = operands[3]
    if not isinstance(adds, Known) or adds.sampled:
        raise on.refuse("an MMA of which data decide whether it adds")
    together = _together(on, params["collective_axis"])
    if threads.program(on) != together[0]:
        return []
    arrives = bool(params["arrive"])
    sides = ["acc", "a", "b", *(["barrier"] if arrives else [])]
    steps = _trees(params, [f"{side}_transforms_tree" for side in sides], operands[4 + arrives :])
    views = [through(on, view_of(on, one), own) for one, own in zip(operands[:3], steps[:3], strict=True)]
    of_each = [[threads.of_program(on, view, program) for view in views] for program in together]
    rows, columns = views[0].shape
    if (views[1].shape, views[2].shape[1] * len(together)) != ((rows, views[2].shape[0]), columns):
        shapes = " and ".join(str(list(view.shape)) for view in views[1:])
        raise on.refuse(f"a product of {shapes} into {[rows, columns]}")
    begun = bool(adds.array)
    for acc, _, _ in of_each:
        _undefined(on, acc)

    def land() -> None:
        def held(view: ElementView) -> Shaped:
            return _signed(on, load(on, _settled(view)), view.memory.dtype)

        parts = [held(right) for _, _, right in of_each]
        beside = parts[0] if len(parts) == 1 else combined(on.numbers, parts, lambda each: np.concatenate(each, 1))
        one = _one((rows, columns), views[0].memory.dtype)
        products = [_product(on, one, held(left), beside) for _, left, _ in of_each]
        for (acc, _, _), found in zip(of_each, products, strict=True):
            if begun:
                found = within(on, on.numbers.add(on.data(load(on, _settled(acc))), found), one)
            _store(on, acc, found)

    threads.multiplies(on, land)
    if arrives:
        barrier = through(on, view_of(on, operands[4]), steps[3])
        for program in together:
            threads.arrives(on, barrier, program, threads.whole, threads.multiplied(on))
    return []


def _together(on: Walking, axis: object) -> list[int]:
    """The programs of a cluster that multiply together: two along an axis, or the one that runs now without an axis."""
    if not axis:
        return [threads_of(on).program(on)]
    found = threads_of(on).along(on, ((str(axis),),))
    if len(found) != 2:
        raise on.refuse(f"an MMA of {len(found)} programs of a cluster")
    return found


def _settled(view: ElementView) -> ElementView:
    """Elements as they are once the MMAs have ended that were started before."""
    if not isinstance(view.memory, TensorMemory):
        return view
    return ElementView(view.memory.settled, view.at, view.shape, box=view.box)


def _store(on: Walking, view: ElementView, value: Shaped) -> None:
    """Stores to tensor memory what is there from now on."""
    store(on, view, value)
    if isinstance(view.memory, TensorMemory):
        store(on, _settled(view), value)


def _tensor_arrives(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`tcgen05_commit_arrive`: an arrival once the MMAs have ended that this thread has started.

    Where two programs multiply together, the first one arrives for both.
    """
    params, threads = equation.params, threads_of(on)
    together = _together(on, params["collective_axis"])
    if threads.program(on) != together[0]:
        return []
    (steps,) = _trees(params, ["barrier_transforms_tree"], operands[1:])
    barrier = through(on, view_of(on, operands[0]), steps)
    for program in together:
        threads.arrives(on, barrier, program, threads.whole, threads.multiplied(on))
    return []


def _tensor_store(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`async_store_tmem`; that it is committed before an MMA reads it is a premise."""
    _store(on, through(on, view_of(on, operands[0]), planted(equation.params["tree"], operands[2:])), operands[1])
    return []


def _mma(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`mma`: a sum and a product of arrays in registers, at once."""
    acc, left, right = operands
    one = _one(tuple(acc.shape), equation.outvars[0].aval.dtype)
    sides = zip((left, right), (aval.aval.dtype for aval in equation.invars[1:3]), strict=True)
    found = _product(on, one, *(_signed(on, side, dtype) for side, dtype in sides))
    return [within(on, on.numbers.add(on.data(acc), found), one)]


def _asks_for_work(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`try_cluster_cancel`."""
    params, threads = equation.params, threads_of(on)
    # of jax 0.12 each thread asks that is not along an axis that is said
    along = params.get("collective_axes")
    several = {name for name, extent in on.mesh if extent > 1 and name in threads.inside}
    if along is not None and several - set(map(str, along)):
        raise on.refuse("work for which several threads ask")
    steps = _trees(params, [f"{side}_transforms_tree" for side in ("result", "barrier")], operands[2:])
    answer, barrier = (through(on, view_of(on, one), own) for one, own in zip(operands[:2], steps, strict=True))
    threads.asks_for_work(on, answer, barrier)
    return []


def _is_given_work(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`query_cluster_cancel`: the ids of the work, and whether there is more; where there is none they are any."""
    params, threads = equation.params, threads_of(on)
    (steps,) = _trees(params, ["transforms_tree"], operands[1:])
    number = threads.work(on, through(on, view_of(on, operands[0]), steps))
    names = [str(name) for name in params["grid_names"]]
    outside = [(name, extent) for name, extent in on.mesh if name not in threads.inside]
    if set(names) - {name for name, _ in outside}:
        raise on.refuse("work by an axis that is none of the grid")
    more = Known(np.asarray(number is not None))
    if number is None:
        return [*(Known(on.numbers.garbage((), v.aval.dtype)) for v in equation.outvars[:-1]), more]
    ids = np.unravel_index(number, [extent for _, extent in outside])
    place = dict(zip((name for name, _ in outside), map(int, ids), strict=True))
    return [*(Known(np.asarray(place[name], np.int32)) for name in names), more]


def gives_what_code_computes(equation: Equation) -> bool:
    """Whether an equation is code of which nothing is known, or that gives what it computes in registers."""
    return equation.primitive.name == _CODE and (equation.params.get("code") is None or bool(equation.outvars))


def _inline(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`inline_mgpu`: named barriers say who goes on when, fences and waits for tensor memory are no values.

    That they order what they should is a premise. What code computes in registers is not known.
    """
    steps = equation.params.get("code")
    if steps is None:
        raise on.refuse("inline_mgpu: what it does is not known")
    for step in steps:
        for done in statements(step):
            if done in (LOADED, STORED) or tensor_fence(done) or is_proxy_fence(done):
                continue
            found = named_barrier(step, done)
            number = None if found is None else found.number
            if found is None or number is None or found.threads % WARP:
                raise on.refuse(f"inline_mgpu: {done}")
            if isinstance(number, str) and number[0] == "$":
                number = decided(on, operands[int(number[1:])], "a named barrier")
            threads_of(on).meets_by_name(on, number, found.threads, found.waits)
    if any(map(on.is_used, equation.outvars)):
        raise on.refuse("inline_mgpu: what it computes in registers")
    return [Known(on.numbers.garbage(v.aval.shape, np.dtype(np.int32))) for v in equation.outvars]


def _load(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`plgpu.load`, `async_load_tmem`."""
    return [load(on, through(on, view_of(on, operands[0]), planted(equation.params["tree"], operands[1:])))]


def _same(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`layout_cast`: the same array, in other registers."""
    return [operands[0]]


def _nothing(on: Walking, equation: Equation, operands: list[Shaped]) -> list[Shaped]:
    """`commit_smem`, `wgmma_wait`, `wait_load_tmem`, `set_max_registers`: no values; what they order is a premise."""
    return []


PRIMITIVES: dict[str, Rule] = {
    "copy_gmem_to_smem": _copy_in,
    "copy_smem_to_gmem": _copy_out,
    "wait_gmem_to_smem": _wait_in,
    "commit_group": _commit_group,
    "wait_smem_to_gmem": _wait_out,
    "commit_smem": _nothing,
    "barrier_arrive": _arrive,
    "barrier_wait": _wait,
    "wgmma_ref": _wgmma,
    "wgmma_wait": _nothing,
    "mma": _mma,
    "wgmma_accumulator_deref_p": _accumulated,
    "run_state": _run_state,
    "mgpu_load": _load,
    "tcgen05_mma": _tensor_mma,
    "tcgen05_commit_arrive": _tensor_arrives,
    "async_load": _load,
    "async_store_tmem": _tensor_store,
    "wait_load_tmem": _nothing,
    "commit_tmem": _nothing,
    "try_cluster_cancel": _asks_for_work,
    "query_cluster_cancel": _is_given_work,
    _CODE: _inline,
    "layout_cast": _same,
    "set_max_registers_p": _nothing,
}
