"""A body from its front end: its arguments, and reasons for unreadable parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.bodies import problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.block_views import block_views
from layoutproof.bodies.effects import Body, BodyReference, View
from layoutproof.bodies.integers import condition_of
from layoutproof.bodies.interpreter import Begin, body_of
from layoutproof.bodies.values import Value, dims_of, number
from layoutproof.core.element_types import element_type
from layoutproof.core.errors import BudgetExceeded, Unsupported, failure
from layoutproof.core.message import message_of
from layoutproof.core.term import Term
from layoutproof.ir.program import Program
from layoutproof.kernel.kernel import Kernel, in_place


@dataclass(frozen=True, slots=True)
class Around:
    """A value that the body of a pipeline captures from the body around it.

    kind: "memory"; "table": scalar memory of integers, the table `name` of the kernel; "number": `term` says it;
    "value": nothing is known of it, but that it is defined.
    """

    kind: str
    name: str = ""
    term: Term | None = None


class LateBody:
    """A `kernel.BodyReader`: the body is read once, where it is asked about."""

    def __init__(self, read: Callable[[Kernel, Begin], Body], kernel: Kernel, begin: Begin = ()) -> None:
        """begin: the memory that is filled with zeros when a program begins, and where."""
        self.read, self.kernel, self.begin = read, kernel, begin
        self._body: Body | None = None

    def __call__(self) -> Body:
        """The body."""
        if self._body is None:
            self._body = self.read(self.kernel, self.begin)
        return self._body

    def of(self, kernel: Kernel) -> LateBody:
        """The same body of another kernel."""
        return LateBody(self.read, kernel, self.begin)

    def beginning(self, kernel: Kernel, begin: Begin) -> LateBody:
        """The same body, which fills memory with zeros first."""
        return LateBody(self.read, kernel, (*begin, *self.begin))


class EditedBody:
    """A `kernel.BodyReader`: the body of another one, with a change."""

    def __init__(self, reader: Any, edit: Callable[[Body], Body]) -> None:
        """reader: of the body that is changed."""
        self.reader, self.edit = reader, edit
        self._body: Body | None = None

    def __call__(self) -> Body:
        """The changed body."""
        if self._body is None:
            self._body = self.edit(self.reader())
        return self._body

    def of(self, kernel: Kernel) -> EditedBody:
        """The same of another kernel."""
        return EditedBody(self.reader.of(kernel), self.edit)

    def beginning(self, kernel: Kernel, begin: Begin) -> Any:
        """The same of a body that fills memory with zeros first; numbers of effects would be others."""
        raise Unsupported(problems.BODY_CHANGED())


def refused_body(why: str, kernel: Kernel) -> Body:
    """A body that cannot be read at all."""
    return Body(unmodelled=((why, kernel.source),))


def read_body(
    program: Callable[[], Program],
    kernel: Kernel,
    version: str,
    around: Sequence[Around] = (),
    begin: Begin = (),
) -> Body:
    """The body of a call with the grid and operands of `kernel`. Failures are recorded in `unmodelled`.

    program: gives it.  version: of JAX, for messages.  around: of a pipeline's body, its constants; its inputs are the
    windows.  begin: the memory that is filled with zeros first.
    """
    references: tuple[BodyReference, ...] = ()
    kernel = in_place(kernel)
    try:
        body = program()
        if kernel.platform == "triton":
            blocks = block_views(body, kernel)
            references = tuple(dict.fromkeys(view.reference for view in blocks))
            found = body_of(body, references, kernel, blocks, version, begin)
        elif kernel.pipeline == "emit_pipeline":
            given = _given(body, kernel, around)
            references = tuple(one.reference for one in given if isinstance(one, View))
            found = body_of(body, references, kernel, given, version, begin)
        else:
            references = references_of(body, kernel)
            found = body_of(body, references, kernel, version=version, begin=begin)
    except (BudgetExceeded, UnsupportedOp) as refused:
        return Body(references, unmodelled=((message_of(refused), kernel.source),))
    except Exception as error:
        # mostly a parameter that another version of JAX stores in another form
        return Body(references, unmodelled=((problems.BODY_AS(version, failure(error)), kernel.source),))
    return found


def references_of(program: Program, kernel: Kernel) -> tuple[BodyReference, ...]:
    """The arguments of the body: its tables, its operands, its scratch, in this order."""
    tables = len(kernel.tables)
    references = []
    for position, variable in enumerate(program.given):
        aval = variable.aval
        memory = aval.memory
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
        dtype = element_type(aval.dtype)
        references.append(BodyReference(name, role, dims, dtype, memory, number))
    return tuple(references)


def _given(program: Program, kernel: Kernel, around: Sequence[Around]) -> list[View | Value]:
    """The arguments of a pipeline's body: its captured values, and its windows."""
    given: list[View | Value] = []
    for position, (variable, one) in enumerate(zip(program.constvars, around, strict=True)):
        aval = variable.aval
        dims = dims_of(aval)
        if one.kind in ("memory", "table"):
            memory = aval.memory
            role = "prefetch" if one.kind == "table" else "semaphore" if memory == "semaphore" else "around"
            name = one.name or f"around[{position}]"
            given.append(View(BodyReference(name, role, dims, element_type(aval.dtype), memory, position)))
        elif one.term is None:
            given.append(Value(dims, aval.dtype, "a value of the body around the pipeline"))
        else:
            given.append(number(condition_of(one.term) if aval.dtype.kind == "b" else one.term, aval.dtype))
    for position, (operand, variable) in enumerate(zip(kernel.operands, program.invars, strict=True)):
        memory = variable.aval.memory if operand.windowed else operand.memory
        dims = dims_of(variable.aval)
        given.append(View(BodyReference(operand.name, operand.role, dims, operand.dtype, memory, position)))
    return given
