"""Products of matrices, convolutions, triangular systems, and reductions, whose computations are recognised."""

from __future__ import annotations

from itertools import product

from layoutproof.core.nested import leaves
from layoutproof.from_hlo.body import EquationList, Rule, Value
from layoutproof.from_hlo.elementwise import converted
from layoutproof.from_hlo.shapes import numbers_of, read_shape
from layoutproof.hlotext.module import Computation, Instruction
from layoutproof.hlotext.windows import ConvolutionNumbers, ConvolutionWindow, read_labels, read_window
from layoutproof.ir.program import Array, Atom, Literal, Program, Variable

_COMBINED = {
    "add": "add", "multiply": "mul", "maximum": "max", "minimum": "min", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
_REDUCED = {"add": "sum", "mul": "prod", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor"}
_SAME = ("convert", "copy", "bitcast", "reduce-precision")


def combiner(body: EquationList, name: str) -> str:
    """What a computation of two numbers does: a primitive, "second" where it gives the second one; "" for another."""
    computation = body.reading.computation(name)
    root = computation.root
    found = () if root is None else combined(computation, root, 1)
    return found[0] if found else ""


def combined(computation: Computation, root: Instruction, many: int) -> tuple[str, ...]:
    """Of a computation of 2 `many` numbers, what it does with the k-th of both halves, for each k; () for another."""
    known = computation.by_name

    def parameter(name: str) -> int:
        each = known.get(name)
        while each is not None and each.opcode in _SAME and len(each.operands) == 1:
            each = known.get(each.operands[0])
        return -1 if each is None else each.number

    def resolved(each: Instruction) -> Instruction:
        while each.opcode in _SAME and len(each.operands) == 1 and each.operands[0] in known:
            each = known[each.operands[0]]
        return each

    results = [root] if many == 1 and root.opcode != "tuple" else [known[o] for o in root.operands if o in known]
    found = []
    for k, result in enumerate(map(resolved, results)):
        if result.opcode == "parameter" and result.number == many + k:
            found.append("second")
        elif result.opcode in _COMBINED and sorted(map(parameter, result.operands)) == [k, many + k]:
            found.append(_COMBINED[result.opcode])
        else:
            return ()
    return tuple(found) if len(found) == many else ()


def _begins(kind: str, aval: Array, init: Atom) -> bool:
    """Whether a number that a reduction begins with changes nothing."""
    import numpy as np

    if not isinstance(init, Literal) or init.val is None:
        return False
    value = np.asarray(init.val).reshape(-1)[0]
    if kind in ("max", "min"):
        if aval.dtype.kind in "iu":
            info = np.iinfo(aval.dtype)
            return bool(value == (info.min if kind == "max" else info.max))
        return bool(value == (-np.inf if kind == "max" else np.inf))
    if kind == "and":
        return bool(value) if aval.dtype.kind == "b" else False
    return bool(value == (1 if kind == "mul" else 0))


def _from(body: EquationList, kind: str, value: Atom, init: Atom, at: Instruction) -> Value:
    """A reduction with what it begins with."""
    if _begins(kind, value.aval, init):
        return value
    out = value.aval
    start = converted(body, init, out, at)
    if out.shape:
        start = body.one(
            "broadcast_in_dim", [start], out, at, shape=out.shape, broadcast_dimensions=(), sharding=None
        )  # fmt: skip
    return body.one(kind, [start, value], out, at)


def _reduce(body: EquationList, at: Instruction, operands: list[Atom]) -> Value | None:
    shape = read_shape(at.shape)
    many = len(operands) // 2
    computation = body.reading.computation(at.calls[0][1])
    kinds = combined(computation, computation.root, many) if computation.root is not None else ()
    if not kinds and many == 2 and isinstance(shape, tuple):
        return _first(body, at, operands, shape)
    if not kinds or "second" in kinds:
        return None
    found = []
    for kind, value, init, out in zip(kinds, operands[:many], operands[many:], leaves(shape), strict=True):
        given = converted(body, value, out, at)
        made = body.one(f"reduce_{_REDUCED[kind]}", [given], out, at, axes=at.dimensions or ())
        found.append(_from(body, kind, made, init, at))
    return tuple(found) if isinstance(shape, tuple) else found[0]


_ORDER = frozenset(("parameter", "compare", "and", "or", "xor", "not", "select", "tuple", *_SAME))
"""What a computation is made of that does nothing but compare its numbers and choose among them."""


def _first(body: EquationList, at: Instruction, operands: list[Atom], shape: tuple[Array, Array]) -> Value | None:
    """The greatest or the smallest of one operand, with the least of the other's integers that stand beside such."""
    found, axes = ordered(body, at.calls[0][1]), at.dimensions or ()
    if found is None or not axes:
        return None
    of, kind = found
    given = []
    for k in (of, 1 - of):
        # what it begins with is one more element
        value, init, out = operands[k], operands[2 + k], shape[k]
        wide = Array(tuple(n + (d == axes[0]) for d, n in enumerate(value.aval.shape)), out.dtype)
        config = tuple((0, int(d == axes[0]), 0) for d in range(len(wide.shape)))
        parts = [converted(body, each, out, at) for each in (value, init)]
        given.append(body.one("pad", parts, wide, at, padding_config=config))
    made = body.emit(f"reduce_{kind}_with", given, [shape[of], shape[1 - of]], at, axes=axes)
    return made if of == 0 else made[::-1]


def ordered(body: EquationList, name: str) -> tuple[int, str] | None:
    """(Which of two numbers is compared, "max" or "min") of a computation of two pairs that gives the pair with the
    greater or smaller one, of equal ones the less of the other; None for another.

    It compares and chooses, and computes nothing, so what it does with each order of its numbers is all that it does.
    NaN is above all, and which of two is taken is not defined.
    """
    computation = body.reading.computation(name)
    if len(computation.parameters) != 4 or any(each.opcode not in _ORDER for each in computation.instructions):
        return None
    program = body.reading.program(computation)
    kinds = [v.aval.dtype.kind for v in program.invars]
    if any(v.aval.shape for v in program.invars) or kinds[:2] != kinds[2:]:
        return None
    for of in (0, 1):
        if kinds[1 - of] not in "iu":
            continue
        for kind, sign in (("max", 1), ("min", -1)):
            if _orders(program, of, sign):
                return of, kind
    return None


def _orders(program: Program, of: int, sign: int) -> bool:
    import numpy as np

    from layoutproof.values.floats import Floats, array_of
    from layoutproof.values.known import Known
    from layoutproof.values.refusals import NotModelled
    from layoutproof.values.walk import Prepared, Walk

    dtypes = [v.aval.dtype for v in program.invars]
    numbers, prepared = Floats(1), Prepared()
    whole = dtypes[of].kind in "iu"
    for x, y in product((1, 2) if whole else (1, 2, float("nan")), repeat=2):
        if x != x and y != y:
            continue
        for i, j in product((1, 2), repeat=2):
            first = x != x or (y == y and sign * x > sign * y)
            said = (x if first else y), (i if first else j) if x != y else min(i, j)
            given = [(x, i), (y, j)] if of == 0 else [(i, x), (j, y)]
            flat = [
                np.asarray(n, d if d.kind in "iu" else np.float64) for n, d in zip(sum(given, ()), dtypes, strict=True)
            ]
            try:
                results = Walk(numbers, prepared).run(program, [Known(n) for n in flat])
            except NotModelled:
                return False
            got = [np.asarray(array_of(r)).item() for r in results]
            if not np.array_equal(got, said[:: 1 if of == 0 else -1], equal_nan=True):
                return False
    return True


def _reduce_window(body: EquationList, at: Instruction, operands: list[Atom]) -> Value | None:
    out = read_shape(at.shape)
    kind = combiner(body, at.calls[0][1])
    if isinstance(out, tuple) or kind not in _REDUCED or kind == "xor":
        return None
    value, init = operands
    w = read_window(at.attribute("window"), len(out.shape))
    made = body.one(
        f"reduce_window_{_REDUCED[kind]}", [converted(body, value, out, at)], out, at, window_dimensions=w.size,
        window_strides=w.stride, padding=w.padding, base_dilation=w.base, window_dilation=w.dilation,
    )  # fmt: skip
    return _from(body, kind, made, init, at)


def _dot(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    numbers = (
        (numbers_of(at, "lhs_contracting_dims"), numbers_of(at, "rhs_contracting_dims")),
        (numbers_of(at, "lhs_batch_dims"), numbers_of(at, "rhs_batch_dims")),
    )
    return _product(body, at, operands, read_shape(at.shape), numbers)


def _product(body: EquationList, at: Instruction, operands: list[Atom], out: Array, numbers: object) -> Variable:
    return body.one(
        "dot_general", operands, out, at, dimension_numbers=numbers, precision=None, preferred_element_type=out.dtype,
        out_sharding=None,
    )  # fmt: skip


def _convolution(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    left, right = operands
    out = read_shape(at.shape)
    numbers, rank = read_labels(at.attribute("dim_labels"))
    w = read_window(at.attribute("window"), rank)
    groups, batches = (int(at.attribute(f"{name}_group_count") or 1) for name in ("feature", "batch"))
    backwards = tuple(numbers.rhs_spec[2 + k] for k, turned in enumerate(w.reversed) if turned)
    if backwards:
        right = body.one("rev", [right], right.aval, at, dimensions=backwards)
    batch = _batches(left, w, numbers, out)
    if batch is not None and groups == batches == 1:
        # how the TPU compiler writes a product of matrices
        found = (
            ((numbers.lhs_spec[1],), (numbers.rhs_spec[1],)),
            (tuple(numbers.lhs_spec[2 + k] for k in batch), tuple(numbers.rhs_spec[2 + k] for k in batch)),
        )
        shape = tuple(out.shape[numbers.out_spec[k]] for k in (*(2 + k for k in batch), 0, 1))
        made = _product(body, at, [left, right], Array(shape, out.dtype), found)
        order = (*(2 + k for k in batch), 0, 1)
        back = [order.index(numbers.out_spec.index(k)) for k in range(len(out.shape))]
        if back == list(range(len(back))):
            return made
        return body.one("transpose", [made], out, at, permutation=tuple(back))
    return body.one(
        "conv_general_dilated", [left, right], out, at, dimension_numbers=numbers, window_strides=w.stride,
        padding=w.padding, lhs_dilation=w.base, rhs_dilation=w.dilation, feature_group_count=groups,
        batch_group_count=batches,
    )  # fmt: skip


def _batches(left: Atom, w: ConvolutionWindow, numbers: ConvolutionNumbers, out: Array) -> tuple[int, ...] | None:
    """The dimensions in space, where in each the k-th element of the result looks at the k-th of both; else None."""
    for k, size in enumerate(w.size):
        extent = left.aval.shape[numbers.lhs_spec[2 + k]]
        same = size == extent == out.shape[numbers.out_spec[2 + k]]
        # element o sees tap o alone: o stride + o = o base, for all o
        alone = w.padding[k] == (0, 0) and w.dilation[k] == 1 and w.base[k] == size and w.stride[k] == max(size - 1, 1)
        if not (same and (alone or (size == 1 and w.padding[k] == (0, 0)))):
            return None
    return tuple(range(len(w.size)))


def _fourier(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    lengths = numbers_of(at, "fft_length")
    return body.one("fft", operands, read_shape(at.shape), at, fft_type=at.attribute("fft_type"), fft_lengths=lengths)


def _triangular(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    names = ("left_side", "lower", "unit_diagonal")
    said = {name: at.attribute(name) == "true" for name in names}
    turned = at.attribute("transpose_a")
    said["transpose_a"], said["conjugate_a"] = turned in ("TRANSPOSE", "ADJOINT"), turned == "ADJOINT"
    return body.one("triangular_solve", operands, read_shape(at.shape), at, **said)


def _cholesky(body: EquationList, at: Instruction, operands: list[Atom]) -> Value:
    if at.attribute("lower") != "true":
        return body.unknown(at, operands, "a factorisation into an upper triangle")
    return body.one("cholesky", operands, read_shape(at.shape), at)


RULES: dict[str, Rule] = {
    "fft": _fourier,
    "triangular-solve": _triangular,
    "cholesky": _cholesky,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "dot": _dot,
    "convolution": _convolution,
}
