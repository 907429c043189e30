"""A body from whoever reads it: what its arguments are, and words for what cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from layoutproof.bodies.effects import Body, Reference
from layoutproof.bodies.interpreter import Reader, body_of
from layoutproof.bodies.values import dims_of
from layoutproof.core.errors import BudgetExceeded, failure
from layoutproof.kernel.kernel import Kernel


def read_body(reader: Reader, jaxpr: Callable[[], Any], kernel: Kernel, version: str) -> Body:
    """The body of a call whose grid and operands `kernel` says. What goes wrong is said in `unmodelled`.

    jaxpr: gives what `reader` reads.  version: of JAX, for messages.
    """
    references: tuple[Reference, ...] = ()
    try:
        body = jaxpr()
        references = references_of(reader, body, kernel)
        found = body_of(reader, body, references, kernel)
    except BudgetExceeded as over:
        return Body(references, unmodelled=((str(over), kernel.source),))
    except Exception as error:
        # mostly a parameter that another version of JAX stores in another form
        return Body(references, unmodelled=((f"the body, as {version} has it ({failure(error)})", kernel.source),))
    named = tuple(
        (f"{what} of {version}" if what.startswith("the primitive ") and "(" not in what else what, at)
        for what, at in found.unmodelled
    )
    return replace(found, unmodelled=named)


def references_of(reader: Reader, jaxpr: Any, kernel: Kernel) -> tuple[Reference, ...]:
    """What the body is given: its tables, its operands, its scratch, in this order."""
    inner, _ = reader.opened(jaxpr)
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
    return tuple(references)
