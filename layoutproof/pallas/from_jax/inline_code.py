"""Code of a GPU's compiler in a kernel (`plgpu.inline_mgpu`): the operations that it makes, as data.

The function that makes them is run once for each kind of GPU, in a module that is thrown away. Operations that compute
in registers alone, and touch no memory, are left out: of their results nothing is said.

Read from `_inline_mgpu_lowering_rule` in jax/_src/pallas/mosaic_gpu/primitives.py (jax 0.10.2, 0.12.0.1); which
operations have no effects is said by the dialects of MLIR.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from layoutproof.ir.program import CodeStep
from layoutproof.pallas.from_jax.of_jax import JaxAval, Params

if TYPE_CHECKING:
    from jax._src.lib.mlir import ir
    from numpy import ndarray

_GPUS = ((9, 0), (10, 0))
"""Compute capabilities that code may ask for; it has to be the same for all."""
_MOST_THREADS, _WARPGROUP = 1024, 128
_COMPUTED: dict[str, Callable[..., Any]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: a // b,
    "arith.shrui": lambda a, b: a >> b,
    "arith.index_cast": lambda a: a,
    "arith.index_castui": lambda a: a,
    "arith.trunci": lambda a: a,
    "arith.extui": lambda a: a,
}
"""What threads compute of their own numbers to find their warpgroup; all of it is small."""
_PURE = ("arith.", "math.")
"""Dialects of which no operation touches memory, or is seen by another thread."""
_PURE_NAMES = frozenset(
    (
        "vector.broadcast", "vector.bitcast", "vector.extract", "vector.insert", "vector.shape_cast",
        "vector.from_elements", "vector.to_elements", "vector.shuffle", "vector.extract_strided_slice",
        "vector.insert_strided_slice", "vector.extractelement", "vector.insertelement", "vector.splat",
        "llvm.bitcast", "llvm.extractvalue", "llvm.insertvalue", "llvm.mlir.undef", "llvm.mlir.poison",
        "llvm.mlir.constant", "llvm.mlir.zero", "gpu.thread_id", "gpu.block_dim", "gpu.block_id",
        "nvvm.shfl.sync", "nvvm.vote.sync",
        "func.return",
    )
)  # fmt: skip
_PURE_PTX = frozenset(
    (
        "abs", "add", "and", "bfe", "bfi", "bfind", "brev", "clz", "copysign", "cos", "cvt", "div", "ex2", "fma", "lg2",
        "lop3", "mad", "max", "min", "mov", "mul", "neg", "not", "or", "popc", "prmt", "rcp", "rem", "rsqrt", "selp",
        "set", "setp", "shf", "shl", "shr", "sin", "slct", "sqrt", "sub", "tanh", "testp", "xor", ".reg",
    )
)  # fmt: skip
"""Instructions of PTX that compute in registers, and the declaration of one."""


class _NoLaunch:
    """What code is given of the launch, of which nothing is known: who asks for a part of it raises AttributeError."""


def inline_code(params: Params, avals: Sequence[JaxAval]) -> tuple[CodeStep, ...] | None:
    """What code does beside computing in registers, in order; None where that is not known.

    params: of the primitive.  avals: of its operands.
    """
    try:
        found = [_made_for(gpu, params, avals) for gpu in _GPUS]
    except Exception:
        # a function of the user's, and interfaces of JAX that may be others in another version
        return None
    return found[0] if all(each == found[0] for each in found) else None


def _made_for(gpu: tuple[int, int], params: Params, avals: Sequence[JaxAval]) -> tuple[CodeStep, ...] | None:
    import jax
    import numpy as np
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jax._src.lib.mlir.dialects import func
    from jax.experimental.mosaic import gpu as mgpu
    from jax.experimental.mosaic.gpu import utils

    layouts = params["flat_arg_types"]
    if len(layouts) != len(avals) or not all(hasattr(one, "to_mgpu") for one in layouts):
        return None
    with mlir.make_ir_context() as context, ir.Location.unknown():
        mgpu.dialect.register_dialect(context)
        module = ir.Module.create()
        i32 = ir.IntegerType.get_signless(32)
        for name, number in zip(("major", "minor"), gpu, strict=True):
            module.operation.attributes[f"mosaic_gpu.arch_{name}"] = ir.IntegerAttr.get(i32, number)
        lies = [layout.to_mgpu() for layout in layouts]
        shapes = [lie.registers_shape(tuple(aval.shape)) for lie, aval in zip(lies, avals, strict=True)]
        elements = [utils.dtype_to_ir_type(aval.dtype) for aval in avals]
        kinds = [lie.registers_element_type(one) for lie, one in zip(lies, elements, strict=True)]
        many = [int(np.prod(shape)) for shape in shapes]
        types = [kind for kind, count in zip(kinds, many, strict=True) for _ in range(count)]
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("code", ir.FunctionType.get(types, []))
        block = function.add_entry_block()
        given, arguments = list(block.arguments), []
        for lie, aval, shape, count in zip(lies, avals, shapes, many, strict=True):
            own, given = given[:count], given[count:]
            registers = np.empty(count, dtype=object)
            registers[:] = own
            signed = utils.is_signed(aval.dtype)
            arguments.append(mgpu.FragmentedArray(_registers=registers.reshape(shape), _layout=lie, _is_signed=signed))
        with ir.InsertionPoint(block):
            params["mgpu_fn"](_NoLaunch(), *jax.tree.unflatten(params["pytree_args"], arguments))
        # a single number is the same for all
        scalars = {sum(many[:k]): k for k, aval in enumerate(avals) if not aval.shape}
        return tuple(_steps(block, scalars))


def _steps(block: ir.Block, scalars: dict[int, int]) -> Iterator[CodeStep]:
    """The operations of a block that do more than compute. scalars: of some registers the number of the operand."""
    for operation in block.operations:
        name = str(operation.operation.name)
        attributes = operation.attributes
        if name == "llvm.inline_asm":
            text, held = attributes["asm_string"].value, attributes["constraints"].value
            if "has_side_effects" not in attributes and "memory" not in held and _is_pure(text):
                continue
            # the text counts results first
            text = text if "=" not in held and "memory" not in held else f"unread {text}"
        elif len(operation.regions) or not (name.startswith(_PURE) or name in _PURE_NAMES):
            names = sorted(str(getattr(each, "name", each)) for each in attributes)
            text = ", ".join(f"{one}={attributes[one]}" for one in names)
        else:
            continue
        yield CodeStep(name, text, tuple(_operand(each, scalars) for each in operation.operands))


def _is_pure(text: str) -> bool:
    """Whether assembly has no instruction but those that compute in registers.

    >>> _is_pure("{{ .reg .b32 t; shr.u32 t, $1, 4; mov.b32 $0, t; }}"), _is_pure("ld.shared.u32 $0, [$1];")
    (True, False)
    """
    statements = re.split(r"[;{}]+", text)
    return all(s.split()[0].partition(".")[0] in _PURE_PTX or s.split()[0] == ".reg" for s in statements if s.split())


def _operand(value: ir.Value, scalars: dict[int, int]) -> int | str | None:
    """As of `CodeStep`."""
    from jax._src.lib.mlir import ir

    owner = value.owner
    if isinstance(owner, ir.Block):
        number = scalars.get(ir.BlockArgument(value).arg_number)
        return None if number is None else f"${number}"
    if str(owner.name) != "arith.constant":
        return _by_warpgroup(value)
    constant: Any = owner.attributes["value"]
    return int(constant.value) if isinstance(constant, ir.IntegerAttr) else None


def _by_warpgroup(value: ir.Value) -> str | None:
    """ "warpgroup + n" of a number that lanes compute from their own numbers, and in which they differ so."""
    import numpy as np

    threads = np.arange(_MOST_THREADS)
    found = _of_threads(value, threads)
    if found is None:
        return None
    first = int(np.broadcast_to(found, threads.shape)[0])
    return f"warpgroup + {first}" if np.array_equal(found, first + threads // _WARPGROUP) else None


def _of_threads(value: ir.Value, threads: ndarray) -> ndarray | int | None:
    """The number that each thread of a block computes, None where that is not known. JAX counts threads along x."""
    from jax._src.lib.mlir import ir

    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    name = str(owner.name)
    if name == "arith.constant":
        constant = _operand(value, {})
        return constant if isinstance(constant, int) else None
    if name in ("gpu.thread_id", "gpu.block_dim"):
        along, others = (threads, 0) if name == "gpu.thread_id" else (_MOST_THREADS, 1)
        return along if str(owner.attributes["dimension"]).endswith("x>") else others
    parts = [_of_threads(each, threads) for each in owner.operands] if name in _COMPUTED else [None]
    return None if any(part is None for part in parts) else _COMPUTED[name](*parts)
