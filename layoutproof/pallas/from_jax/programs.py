"""A jaxpr as a `Program`: the one place that says what a jaxpr's parts are.

Read from jax 0.10.2 and 0.12.0.1; where they differ, the attribute that is there decides. Nested jaxprs are converted
once each, by identity, so that the work is linear in what JAX holds.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import cached_property, partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

from layoutproof.core.element_types import ELEMENT_BITS, element_type
from layoutproof.ir.program import (
    Array,
    Atom,
    Aval,
    Dimension,
    Equation,
    Grid,
    Leaf,
    Literal,
    MemRefType,
    Opaque,
    Other,
    Program,
    Variable,
    Window,
    primitive,
    view,
)
from layoutproof.pallas.from_jax.adapter import (
    MESH_KERNELS,
    is_jaxs_own,
    is_literal,
    is_pallas_call,
    is_tracer,
    memory_word,
    name_of,
    opened,
    over_meshes,
    place_of,
    places_of,
    scan_parts,
    scope_of,
)
from layoutproof.pallas.from_jax.inline_code import inline_code
from layoutproof.pallas.from_jax.of_jax import EitherJaxpr, JaxAtom, JaxAval, JaxEquation, JaxJaxpr

if TYPE_CHECKING:
    from jax._src.pallas.core import BlockDim, BlockMapping, GridMapping
    from jax.extend.core import JaxprEqn
    from jax.sharding import Mesh
    from jax.tree_util import PyTreeDef
    from jax.typing import ArrayLike

_TREES = (
    *("tree", "args_tree", "transforms_treedef", "src_transforms_treedef", "dst_transforms_treedef"),
    *("barrier_transforms_treedef", "acc_transforms_tree", "a_transforms_tree", "b_transforms_tree"),
    *("barrier_transforms_tree", "result_transforms_tree", "transforms_tree", "smem_tree", "tmem_tree"),
    *("a_scale_transforms_tree", "b_scale_transforms_tree", "a_sparse_metadata_transforms_tree"),
)
"""Parameters that are trees of operands."""
_PLAIN = frozenset({bool, int, float, str, type(None)})
"""Types of parameters that hold nothing else."""


def program_of(jaxpr: EitherJaxpr) -> Program:
    """A jaxpr, closed or not, as a program."""
    return _Converter().program(jaxpr)


def memory_of(aval: JaxAval) -> str:
    """The memory of a reference, a word of `kernel.MEMORIES`."""
    dtype = element_type(getattr(aval, "dtype", "f32"))
    return "semaphore" if dtype not in ELEMENT_BITS else memory_word(getattr(aval, "memory_space", None))


def aval_of(aval: JaxAval) -> Aval:
    """What JAX says of a value or a reference."""
    if hasattr(aval, "inner_aval"):
        return _memory(aval)
    if hasattr(aval, "shape") and hasattr(aval, "dtype"):
        return Array(tuple(aval.shape), aval.dtype)
    return Opaque()


def _memory(aval: JaxAval) -> MemRefType:
    dims, memory = tuple(getattr(aval, "shape", ())), memory_of(aval)
    lies = _tensor_lies(int(dims[-1]), getattr(aval, "layout", None)) if memory == "tmem" and dims else ("", 0)
    return MemRefType(dims, getattr(aval, "dtype", "f32"), memory, *lies)


def _tensor_lies(columns: int, layout: object) -> tuple[str, int]:
    """How tensor memory lies, and its packing: the layouts that jax/experimental/mosaic/gpu/tcgen05.py makes."""
    packing = int(getattr(layout, "vector_length", 0))
    if not packing:
        return "", 0
    from jax.experimental.mosaic.gpu import tcgen05

    if layout == tcgen05.tmem_default_layout(packing):
        return "whole", packing
    for name, made in (("half", tcgen05.tmem_half_lane_layout), ("pair", tcgen05.tmem_m64_collective_layout)):
        with suppress(ValueError):
            if layout == made(columns, packing):
                return name, packing
    return "other", packing


class _EquationPlace:
    """The place of an equation, which JAX computes slowly: looked up on first use."""

    def __init__(self, info: object) -> None:
        self.info = info

    @cached_property
    def text(self) -> str:
        return place_of(self.info)

    @cached_property
    def every(self) -> tuple[str, ...]:
        """Those of all frames, from the innermost outwards."""
        return places_of(self.info)

    def __str__(self) -> str:
        return self.text


class _Converter:
    """One conversion. Converted objects are kept alive with it, so that their identities stay unique."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[Any, Program]] = {}
        self.trees: dict[Any, Any] = {}

    def program(self, jaxpr: EitherJaxpr) -> Program:
        """A jaxpr, which is converted now if it was not."""
        if id(jaxpr) not in self.made:
            # of jax 0.12 a jaxpr holds its constants itself
            inner, consts = opened(jaxpr)
            made = self._made(jaxpr) if inner is jaxpr else self.program(inner)
            known = consts and not any(map(is_tracer, consts))
            made = dataclasses.replace(made, consts=consts) if known else made
            self.made[id(jaxpr)] = jaxpr, made
        return self.made[id(jaxpr)][1]

    def _made(self, jaxpr: JaxJaxpr) -> Program:
        variables: dict[Any, Variable] = {}

        def new(given: Sequence[JaxAtom]) -> tuple[Variable, ...]:
            made = tuple([Variable(aval_of(v.aval)) for v in given])
            variables.update(zip(given, made, strict=True))
            return made

        def atoms(given: Sequence[JaxAtom]) -> tuple[Atom, ...]:
            return tuple([Literal(a.val, aval_of(a.aval)) if is_literal(a) else variables[a] for a in given])

        constvars, invars = new(jaxpr.constvars), new(jaxpr.invars)
        eqns = []
        for equation in jaxpr.eqns:
            operands = atoms(equation.invars)
            eqns.append(
                Equation(
                    primitive(name_of(equation.primitive)), operands, new(equation.outvars), self.parameters(equation),
                    _EquationPlace(equation.source_info), scope_of(equation), bool(equation.effects),
                    partial(_computed, equation),
                )
            )  # fmt: skip
        return Program(invars, tuple(eqns), atoms(jaxpr.outvars), constvars, own=is_jaxs_own(jaxpr))

    def parameters(self, equation: JaxEquation) -> Mapping[str, object]:
        """The parameters of an equation, but for functions, which are none of its data."""
        params = equation.params
        found = {
            name: self.tree(value) if name in _TREES and value is not None else self.parameter(value)
            for name, value in params.items()
            if type(value) in _PLAIN or not callable(value) or hasattr(value, "jaxpr") or isinstance(value, type)
        }
        if "ref_transforms" in params:
            found["ref_transforms"] = _planted(params["ref_transforms"])
        if equation.primitive.name == "scan":
            found["num_consts"], found["num_carry"] = scan_parts(equation)
        if equation.primitive.name == "shard_map":
            # a mesh can be called, as a decorator
            found["mesh"] = dict(_axes(params["mesh"]))
        if equation.primitive.name in MESH_KERNELS:
            meshes, bodies = over_meshes(params)
            found["meshes"] = tuple((type(mesh).__name__, _axes(mesh)) for mesh in meshes)
            if all("mosaic_gpu" in type(mesh).__module__ for mesh in meshes):
                found["together"] = tuple(map(_together, meshes))
            found["jaxprs"] = tuple(map(self.program, bodies))
            found["input_output_aliases"] = tuple(dict(params.get("input_output_aliases") or {}).items())
        if "atomic_type" in params:
            found["atomic_type"] = str(params["atomic_type"].value)
        if "mgpu_fn" in params:
            found["code"] = inline_code(params, [v.aval for v in equation.invars])
        if is_pallas_call(params):
            with suppress(AttributeError):
                # of a version that has it in another form: who runs the kernel refuses it
                found["grid_mapping"] = self.grid(params["grid_mapping"])
        return found

    def parameter(self, value: Any) -> Any:
        """A parameter; one that is no jaxpr is kept as JAX has it."""
        if type(value) in _PLAIN:
            return value
        if hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns"):
            return self.program(value)
        if type(value) not in (tuple, list):
            return value
        made = tuple([self.parameter(entry) for entry in value])
        return made if any(map(operator.is_not, made, value)) else value

    def tree(self, tree: PyTreeDef) -> object:
        """The structure of a tree of JAX, once for all equal trees."""
        if tree not in self.trees:
            from jax.tree_util import tree_unflatten

            try:
                self.trees[tree] = _planted(tree_unflatten(tree, list(map(Leaf, range(tree.num_leaves)))))
            except Exception as error:
                # objects that look at their parts when they are made: this equation is refused, and no other
                self.trees[tree] = Other(type(error).__name__, {})
        return self.trees[tree]

    def grid(self, mapping: GridMapping) -> Grid:
        """The grid of a kernel call."""
        extents = tuple(mapping.grid)
        batched = tuple(getattr(mapping, "vmapped_dims", ()) or ())
        return Grid(
            extents, mapping.num_dynamic_grid_bounds, mapping.num_index_operands, mapping.num_inputs,
            tuple(map(self.window, mapping.block_mappings)), tuple(map(_memory, mapping.scratch_avals)),
            tuple(k for k in range(len(extents)) if k not in batched),
        )  # fmt: skip

    def window(self, block: BlockMapping) -> Window:
        """The window of one operand."""
        memory = memory_of(getattr(block, "transformed_block_aval", block.block_aval))
        dims = tuple(map(_dimension, block.block_shape))
        return Window(dims, self.program(block.index_map_jaxpr), aval_of(block.array_aval), memory)


def _axes(mesh: Mesh) -> tuple[tuple[str, int], ...]:
    """The axes of a mesh of devices or cores, with their extents."""
    return tuple((str(name), int(extent)) for name, extent in dict(mesh.shape).items())


def _together(mesh: Mesh) -> tuple[tuple[str, ...], str]:
    """Of a mesh of a GPU: the axes of a cluster, and that of the threads (warpgroups), "" of none."""
    return tuple(map(str, getattr(mesh, "cluster_names", ()))), str(getattr(mesh, "thread_name", None) or "")


def _computed(equation: JaxprEqn, arrays: Sequence[ArrayLike]) -> list[ArrayLike]:
    """The results of an equation for some arrays, computed by JAX on this machine's processor."""
    import jax
    import numpy as np

    given = [
        a if hasattr(a, "dtype") and not isinstance(a, np.ndarray) else jax.numpy.asarray(a, v.aval.dtype)
        for a, v in zip(arrays, equation.invars, strict=True)
    ]
    with jax.default_device(jax.devices("cpu")[0]), jax.ensure_compile_time_eval():
        found = equation.primitive.bind(*given, **equation.params)
    return list(found) if equation.primitive.multiple_results else [found]


def _dimension(entry: int | BlockDim | None) -> Dimension:
    """A dimension of a block, as the versions of JAX have it."""
    kind = type(entry).__name__
    if entry is None or kind == "Squeezed":
        return Dimension("squeezed", 1)
    if isinstance(entry, int):
        return Dimension("blocked", int(entry))
    if kind == "Blocked":
        # a size that is a name stays one
        size = entry.block_size
        return Dimension("blocked", int(size) if isinstance(size, Integral) else size)
    if kind == "Element":
        return Dimension("element", int(entry.block_size), int((entry.padding or (0, 0))[0]))
    if kind == "BoundedSlice":
        return Dimension("bounded", int(entry.block_size))
    return Dimension(kind, 1)


def _planted(value: object) -> object:
    """An object that JAX's tree made of leaves, as data."""
    if isinstance(value, tuple | list):
        return tuple(map(_planted, value))
    if isinstance(value, dict):
        return tuple((name, _planted(part)) for name, part in value.items())
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Leaf | slice) or not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    parts = {entry.name: _planted(getattr(value, entry.name)) for entry in dataclasses.fields(value)}
    layout = getattr(value, "layout", None)
    if "alias_group_idx" in parts and layout is not None:
        # one of several arrays in one place of tensor memory: how it lies there
        shape = tuple(int(extent) for extent in value.shape)  # type: ignore[attr-defined]
        parts["layout"] = _tensor_lies(shape[-1], layout)
        parts["columns"] = int(layout.cols_in_shape(shape, ELEMENT_BITS[element_type(parts["dtype"])]))
    return view(type(value).__name__, parts)
