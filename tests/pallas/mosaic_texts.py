"""For tests of Mosaic kernels in programs: functions lowered for TPU without one, and kernels made comparable."""

from __future__ import annotations

import base64
import itertools
import json
from collections import Counter
from dataclasses import replace
from typing import Any

from layoutproof.core.numbers import INTS
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Block, Kernel, Operand
from layoutproof.pallas.from_jax.adapter import device_of
from layoutproof.pallas.judge import judge


def lowered(built: Any, target: str = "v5e") -> str:
    """StableHLO text of (function, arguments) for TPU. What JAX refuses it raises."""
    import jax

    function, arguments = built
    with device_of(target):
        return str(jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",)).as_text())


def call_line(config: str, *, operands: str = "tensor<32x128xf32>", results: str = "tensor<32x128xf32>") -> str:
    """The text of a program with one call, whose backend_config is `config`."""
    escaped = config.replace("\\", "\\5C").replace('"', "\\22").replace("\n", "\\0A")
    call = f'stablehlo.custom_call @tpu_custom_call(%arg0) {{backend_config = "{escaped}", kernel_name = "copy"}}'
    return (
        f"module @m {{\n  func.func public @main(%arg0: {operands}) -> {results} {{\n"
        f"    %0 = {call} : ({operands}) -> {results}\n    return %0 : {results}\n  }}\n}}\n"
    )


WINDOW = "{transform_indices = @transform_0, window_bounds = array<i64: 8, 128>}"
MODULE = f"""
module attributes {{stable_mosaic.version = 11 : i64}} {{
  func.func @copy(%i: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>,
      %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {{
      dimension_semantics = [#tpu.dimension_semantics<arbitrary>], iteration_bounds = array<i64: 4>,
      scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>,
      window_params = [{WINDOW}, {WINDOW}]}} {{
    return
  }}
  func.func @transform_0(%i: i32) -> (i32, i32) {{
    %c = arith.constant 0 : i32
    return %i, %c : i32, i32
  }}
}}
"""
"""A copy, as MLIR text, which is a form of a module's body too."""


def body(module: str = MODULE) -> str:
    return base64.b64encode(module.encode()).decode()


def config(module: str = MODULE, **more: Any) -> str:
    custom = {"body": body(module), "serialization_format": 1, "needs_layout_passes": True} | more.pop("custom", {})
    return json.dumps({"custom_call_config": custom} | more)


def as_compiled(kernel: Kernel) -> Kernel:
    """A traced kernel without what no module says: names, vmapped and squeezed dimensions, booleans, sources, body."""
    names = {table.name: f"prefetch{k}" for k, table in enumerate(kernel.tables)}
    assert all(old == new for old, new in names.items())
    return replace(
        kernel,
        name="",
        operands=tuple(_operand(o, kernel) for o in kernel.operands),
        semantics=tuple("parallel" if k in kernel.parallel() else "arbitrary" for k in range(len(kernel.grid))),
        vmapped=(),
        # what bounds a grid is computed outside of the module
        most=(),
        scratch=tuple(replace(s, dtype="") if s.memory == "semaphore" else s for s in kernel.scratch),
        accesses=(),
        touched=None,
        source="",
        plain=False,
        work=None,
        alone=False,
        last=False,
        body_reader=None,
    )


def _operand(operand: Operand, kernel: Kernel) -> Operand:
    element = any(b.kind == "element" for b in operand.block)
    squeezed = Block("element" if element else "blocked", 1)
    block = tuple(squeezed if b.kind == "squeezed" else b for b in operand.block)
    whole = all(b.size == n for b, n in zip(block, operand.dims, strict=True))
    still = all(term.op == "int" and term.args[0] == 0 for term in operand.index)
    # the compiler is told that a window which never moves needs one buffer
    buffers = 1 if whole and still and operand.memory == "vmem" and kernel.grid else operand.buffers
    position = [o for o in kernel.operands if o.role == operand.role].index(operand)
    return replace(
        operand,
        name=f"{operand.role}[{position}]",
        dtype="s32" if operand.dtype == "pred" else operand.dtype,
        block=block,
        buffers=buffers,
        index=(),
        source="",
        # of the function around the kernel
        made_by=(),
        partly="",
    )


def windows(kernel: Kernel) -> list[Any]:
    """For some programs, and for values of tables that are made up, the index of every operand's window."""
    spans = [sorted({0, 1, 2, n - 1} & set(range(n))) if type(n) is int else [0, 1, 2] for n in kernel.grid]
    found: list[Any] = []
    for point in itertools.islice(itertools.product(*spans), 300):
        at = dict(zip(kernel.grid_names, point, strict=True))
        found.append((point, [tuple(value(term, at) for term in o.index) for o in kernel.operands]))
    return found


def value(term: Term, at: dict[str, int]) -> int:
    """The value of an index term; a table's entry is some number that depends on the table and the index."""
    return int(_settled(term, at).evaluate({}, INTS))


def _settled(term: Term, at: dict[str, int]) -> Term:
    if term.op == "name":
        return Term("int", at[term.args[0]])
    if term.op == "int":
        return term
    if term.op == "read":
        where = [value(index, at) for index in term.args[1:]]
        seed = sum((k + 2) * index for k, index in enumerate(where)) + len(str(term.args[0]))
        return Term("int", (seed * 7 + 3) % 11 - 2)
    return Term(term.op, *(_settled(part, at) for part in term.args))


def verdicts(kernel: Kernel, target: str) -> Counter[Any]:
    """What is found of a kernel, without the names of its operands and how it was decided.

    Bugs of JAX are known of its own kernels by the file of the call, which a module does not name.
    """
    findings = judge(kernel, target=target, only="grid", strict_tables=True)
    own = [f for f in findings if f.question != "known_jax_bugs"]
    return Counter((f.question, f.severity, f.verdict.value, str(f.counterexample or "")) for f in own)
