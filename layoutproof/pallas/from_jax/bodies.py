"""The body of a traced pallas_call, as data: what only somebody who knows JAX's jaxprs can say of it.

Read from jax 0.10.2 and 0.12.0.1; where they differ, the attribute that is there decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from layoutproof.bodies.effects import Body, Reference
from layoutproof.bodies.interpreter import body_of
from layoutproof.bodies.values import dims_of
from layoutproof.core.element_types import ELEMENT_BITS, element_type
from layoutproof.core.errors import BudgetExceeded, failure
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.adapter import in_pipeline, is_jaxs_own, memory_word, opened, place_of


class JaxReader:
    """A `bodies.interpreter.Reader` for the jax that is installed."""

    def opened(self, jaxpr: Any) -> tuple[Any, tuple[Any, ...]]:
        """The jaxpr and the values of its constants."""
        return opened(jaxpr)

    def unflatten(self, tree: Any, leaves: Sequence[Any]) -> Any:
        """The object that a tree of JAX makes of leaves."""
        from jax.tree_util import tree_unflatten

        return tree_unflatten(tree, leaves)

    def place_of(self, equation: Any) -> str:
        """`file:line` of the user's line of an equation."""
        return place_of(equation.source_info)

    def scan_parts(self, equation: Any) -> tuple[int, int]:
        """Of a scan: how many constants, how many carried values."""
        params = equation.params
        if "num_consts" in params:
            return int(params["num_consts"]), int(params["num_carry"])
        # jax 0.12
        consts, carry, _ = params["ft_in"].update(list(equation.invars)).unpack()
        return len(list(consts)), len(list(carry))

    def element_type(self, dtype: Any) -> str:
        """XLA's name of an element type."""
        return element_type(dtype)

    def memory_of(self, aval: Any) -> str:
        """The memory of a reference, a word of `kernel.MEMORIES`."""
        dtype = element_type(getattr(aval, "dtype", "f32"))
        return "semaphore" if dtype not in ELEMENT_BITS else memory_word(getattr(aval, "memory_space", None))

    def in_pipeline(self, equation: Any) -> bool:
        """Whether an equation belongs to a pipeline's own machinery, and not to the body it runs."""
        return in_pipeline(equation)

    def is_jaxs_own(self, jaxpr: Any) -> bool:
        """Whether a nested jaxpr was traced from a function of the jax package."""
        return is_jaxs_own(jaxpr)


def with_body(jaxpr: Any, kernel: Kernel) -> Kernel:
    """The kernel with its body, which is read where it is asked about: grids and BlockSpecs do not wait for it."""
    return replace(kernel, body_reader=cache(partial(_body, jaxpr, kernel)))


def _body(jaxpr: Any, kernel: Kernel) -> Body:
    """The body of a call whose grid and operands `kernel` says. What goes wrong is said in `unmodelled`."""
    reader = JaxReader()
    inner, _ = opened(jaxpr)
    tables = len(kernel.tables)
    references = []
    # the references of `core_map` are its constants
    for position, variable in enumerate(inner.invars or inner.constvars):
        aval = variable.aval
        memory = reader.memory_of(aval)
        k = position - tables
        if position < tables:
            name, role, number = kernel.tables[position].name, "prefetch", position
            memory = "smem"
        elif k < len(kernel.operands):
            operand = kernel.operands[k]
            name, role, number = operand.name, operand.role, k
            memory = memory if operand.windowed else operand.memory
        else:
            number = k - len(kernel.operands)
            name, role = f"scratch[{number}]", "semaphore" if memory == "semaphore" else "scratch"
        dims = dims_of(aval)
        dtype = reader.element_type(getattr(aval, "dtype", "f32"))
        references.append(Reference(name, role, dims, dtype, memory, number))
    import jax

    try:
        body = body_of(reader, jaxpr, references, kernel)
    except BudgetExceeded as over:
        return Body(tuple(references), unmodelled=((str(over), kernel.source),))
    except Exception as error:
        # mostly a parameter that another version of JAX stores in another form
        return Body(
            tuple(references),
            unmodelled=((f"the body, as jax {jax.__version__} has it ({failure(error)})", kernel.source),),
        )
    named = tuple(
        (f"{what} of jax {jax.__version__}" if what.startswith("the primitive ") and "(" not in what else what, at)
        for what, at in body.unmodelled
    )
    return replace(body, unmodelled=named)
