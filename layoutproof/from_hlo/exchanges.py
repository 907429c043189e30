"""What the devices of a partitioned program exchange, and which of them a computation runs on.

All devices are one axis of a mesh, `DEVICES`, numbered as `hlo.groups` numbers them: partition p of replica r is
r * partitions + p. So each collective is the one that JAX has, over groups of that axis.
"""

from __future__ import annotations

from collections.abc import Callable

from layoutproof.core.errors import LayoutError
from layoutproof.core.nested import leaves
from layoutproof.from_hlo import problems
from layoutproof.from_hlo.body import NOTHING, EquationList, Rule, Value
from layoutproof.from_hlo.elementwise import converted
from layoutproof.from_hlo.shapes import like, read_shape
from layoutproof.from_hlo.sums import combiner
from layoutproof.hlo.collectives import groups_of
from layoutproof.hlotext.module import Instruction
from layoutproof.ir.program import Array, Atom, Aval, Literal
from layoutproof.values.devices import DEVICES

_PAIRED = ("all-gather-start", "collective-permute-start")
"""What is started with its operands and results side by side."""
_PARTED = "async_collective_fusion_config"
_REDUCED = {"add": "psum", "max": "pmax", "min": "pmin"}


def _groups(body: EquationList, at: Instruction) -> tuple[tuple[int, ...], ...]:
    return groups_of(at, at.opcode.removesuffix("-start"), body.reading.module.header)


def _results(at: Instruction) -> list[Array]:
    """What it gives, tuples opened; of what is started, what will be there."""
    shape = read_shape(at.shape)
    if at.opcode in _PAIRED:
        shape = shape[1]
    return [aval for aval in leaves(shape) if isinstance(aval, Array)]


def _given(body: EquationList, at: Instruction, operands: list[Atom], made: tuple[Atom, ...]) -> Value:
    """The value of the instruction. made: the results, in order."""
    shape, said = read_shape(at.shape), _said(body, at)
    if _PARTED in at.attributes:
        # clones of one exchange, which each do a part of it
        channel = at.attribute("channel_id")
        if body.reading.channels.setdefault(channel, said) != said:
            raise LayoutError(problems.CHANNEL_NOT_ALIKE(channel), line=at.line)
    for sent, came in zip(operands, made, strict=True):
        body.reading.exchanged[came] = said, sent
    if at.opcode in _PAIRED:
        # (operands, results, contexts)
        whole: Value = operands[0] if len(operands) == 1 else tuple(operands)
        results: Value = like(shape[1], made)
        return (whole, results, *[NOTHING] * (len(shape) - 2))
    value: Value = like(shape, made)
    return value


def _said(body: EquationList, at: Instruction) -> tuple[object, ...]:
    """What an exchange does, whatever it is called."""
    reduced = combiner(body, at.calls[0][1]) if at.calls else ""
    return at.opcode.removesuffix("-start"), _groups(body, at), at.dimensions, reduced


def _all_reduce(body: EquationList, at: Instruction, operands: list[Atom]) -> Value | None:
    kind = _REDUCED.get(combiner(body, at.calls[0][1]))
    if kind is None:
        return None
    results = _results(at)
    sent = [converted(body, value, aval, at) for value, aval in zip(operands, results, strict=True)]
    made = body.emit(kind, sent, results, at, axes=(DEVICES,), axis_index_groups=_groups(body, at))
    return _given(body, at, operands, made)


def _all_gather(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    return _tiled(body, at, operands, "all_gather", "all_gather_dimension")


def _reduce_scatter(body: EquationList, at: Instruction, operands: list[Atom]) -> Value | None:
    if _REDUCED.get(combiner(body, at.calls[0][1])) != "psum":
        return None
    return _tiled(body, at, operands, "reduce_scatter", "scatter_dimension")


def _tiled(body: EquationList, at: Instruction, operands: list[Atom], primitive: str, dimension: str) -> Value:
    """An exchange along one dimension, whose parts lie one after the other. dimension: what the primitive calls it."""
    (dim,) = at.dimensions or ()
    made = body.emit(
        primitive, operands, _results(at), at, tiled=True, axis_name=(DEVICES,), axis_index_groups=_groups(body, at),
        **{dimension: dim},
    )  # fmt: skip
    return _given(body, at, operands, made)


def _all_to_all(body: EquationList, at: Instruction, operands: list[Atom]) -> Value | None:
    groups = _groups(body, at)
    over = {"axis_name": (DEVICES,), "axis_index_groups": groups, "tiled": True}
    if at.dimensions:
        (dim,) = at.dimensions
        made = body.emit("all_to_all", operands, _results(at), at, split_axis=dim, concat_axis=dim, **over)
        return _given(body, at, operands, made)
    # the k-th operand goes to the k-th device of a group: as rows of one array
    shapes = _results(at)
    many = len(operands)
    if len(shapes) != many or any(len(group) != many for group in groups) or len(set(shapes)) > 1:
        return None
    one = shapes[0]
    row, whole = (Array((n, *one.shape), one.dtype) for n in (1, many))
    rows = [
        body.one("reshape", [converted(body, value, one, at)], row, at, new_sizes=row.shape, dimensions=None)
        for value in operands
    ]
    sent = body.one("concatenate", rows, whole, at, dimension=0)
    came = body.one("all_to_all", [sent], whole, at, split_axis=0, concat_axis=0, **over)
    found = []
    for k in range(many):
        starts, limits = (k, *(0 for _ in one.shape)), (k + 1, *one.shape)
        part = body.one("slice", [came], row, at, start_indices=starts, limit_indices=limits, strides=None)
        found.append(body.one("reshape", [part], one, at, new_sizes=one.shape, dimensions=None))
    return tuple(found)


def _permute(body: EquationList, at: Instruction, operands: list[Atom]) -> Value | None:
    results = _results(at)
    if len(operands) != 1 or len(results) < 1:
        # written in the place of another array
        return None
    made = body.emit("ppermute", operands, results[:1], at, perm=_groups(body, at), axis_name=(DEVICES,))
    return _given(body, at, operands, made)


def started(body: EquationList, at: Instruction, operands: list[Atom]) -> Value | None:
    """What libtpu starts in one fusion, does a part of in others and waits for in a last one (libtpu 0.0.52).

    It gives (the operand, the result, contexts). Each fusion has the exchange whole, as a clone of its own.
    """
    shape = read_shape(at.shape)
    if len(operands) != 1 or operands[0] not in body.reading.exchanged or not isinstance(shape[1], Array):
        return None
    _, sent = body.reading.exchanged[operands[0]]
    return sent, operands[0], *map(_zeros, shape[2:])


def ended(body: EquationList, at: Instruction, operands: list[Atom]) -> Value | None:
    """The result, which is given as it was started: (the operand, the result, the clone's result, contexts)."""
    known = body.reading.exchanged
    if len(operands) < 3 or operands[1] not in known or known[operands[1]] != known.get(operands[2]):
        return None
    return operands[1]


def _zeros(aval: Aval) -> Literal:
    """A context: no instruction computes with it."""
    import numpy as np

    return Literal(np.zeros(aval.shape, aval.dtype), aval) if isinstance(aval, Array) else NOTHING


def _done(body: EquationList, at: Instruction, operands: list[tuple[Value, ...]]) -> Value:
    value: Value = operands[0] if at.opcode == "all-reduce-done" else operands[0][1]
    return value


def _which(of: Callable[[int, int], tuple[str, int]]) -> Rule:
    """The number of the device as an operation of it makes it. of: replicas, partitions -> the operation, with what."""

    def rule(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
        import numpy as np

        header, out = body.reading.module.header, read_shape(at.shape)
        whole = Array((), np.dtype(np.int32))
        device = body.one("axis_index", [], whole, at, axis_name=(DEVICES,))
        operation, number = of(header.replicas, header.partitions)
        found = body.one(operation, [device, Literal(np.int32(number), whole)], whole, at)
        return body.one("convert_element_type", [found], out, at, new_dtype=out.dtype)

    return rule


RULES: dict[str, Rule] = {
    **dict.fromkeys(("all-reduce", "all-reduce-start"), _all_reduce),
    **dict.fromkeys(("all-gather", "all-gather-start"), _all_gather),
    **dict.fromkeys(("collective-permute", "collective-permute-start"), _permute),
    **dict.fromkeys(("all-reduce-done", "all-gather-done", "collective-permute-done"), _done),
    "reduce-scatter": _reduce_scatter,
    "all-to-all": _all_to_all,
    "partition-id": _which(lambda replicas, partitions: ("rem", partitions)),
    "replica-id": _which(lambda replicas, partitions: ("div", partitions)),
}
