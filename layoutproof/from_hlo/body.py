"""Equations being made of one computation, and what all computations of a module share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from layoutproof.core.errors import LayoutError
from layoutproof.core.nested import leaves
from layoutproof.from_hlo import problems
from layoutproof.from_hlo.expansions import Region, holds, regions, skipped
from layoutproof.from_hlo.shapes import like, read_shape
from layoutproof.hlotext.module import Computation, Instruction, Module
from layoutproof.hlotext.texts import element_of
from layoutproof.ir.program import Array, Atom, Aval, Equation, Literal, Opaque, Program, Variable, primitive

MOST_EQUATIONS = 200_000
"""Equations of one module, fusions opened wherever they are called."""
MOST_NESTED = 100
"""Computations within one another."""

Value: TypeAlias = "Atom | tuple[Value, ...]"
"""The result of an instruction: an array, or a tuple of these."""
Rule: TypeAlias = "Callable[[EquationList, Instruction, list[Any]], Value | None]"
"""From an instruction and its operands, arrays or tuples as its opcode demands, to its value; None: not modelled."""
NOTHING = Literal(None, Opaque())
"""A token, or the context of an asynchronous instruction: no instruction computes with it."""


class ModuleReading:
    """The state of reading a module.

    file: the name in places.  of_text: whether all places are the text's.
    """

    def __init__(self, module: Module, rules: Mapping[str, Rule], file: str, of_text: bool = False) -> None:
        self.module, self.rules, self.file, self.of_text = module, rules, file, of_text
        self.computations = {each.name: each for each in module.computations}
        self.programs: dict[str, Program] = {}
        self.converts: Counter[tuple[str, str]] = Counter()
        self.expanded: dict[str, Mapping[str, Region | None]] = {}
        self.expansions: Counter[str] = Counter()
        # of each result of an exchange between devices: what the exchange does, and of what
        self.exchanged: dict[Any, tuple[Any, Any]] = {}
        self.channels: dict[str, Any] = {}
        # kernels that are read by their own bodies, and why others are not
        self.kernels = 0
        self.unread: list[str] = []
        self.made = 0
        self.within: list[str] = []

    def computation(self, name: str) -> Computation:
        """A computation by its name."""
        if name not in self.computations:
            raise LayoutError(problems.NO_COMPUTATION(name))
        return self.computations[name]

    def program(self, computation: Computation) -> Program:
        """A computation as a program of its parameters, tuples opened; each is made once."""
        if computation.name not in self.programs:
            shapes = [read_shape(each.shape) for each in computation.parameters]
            body = EquationList(self)
            given = [like(shape, [Variable(aval) for aval in leaves(shape)]) for shape in shapes]
            result = body.opened(computation, given)
            invars = tuple(leaves(tuple(given)))
            self.programs[computation.name] = Program(invars, tuple(body.equations), tuple(leaves(result)))
        return self.programs[computation.name]

    def functions(self, computation: Computation) -> Mapping[str, Region | None]:
        """The instructions that write a function out, as `expansions.skipped` has them."""
        if computation.name not in self.expanded:
            self.expanded[computation.name] = {}
            # what is asked about a region is a computation of its own, with none in it
            found = [r for r in regions(computation) if holds(r, computation, self._alone)]
            self.expanded[computation.name] = skipped(found)
            self.expansions.update(region.name for region in found)
        return self.expanded[computation.name]

    def _alone(self, computation: Computation) -> Program:
        apart = ModuleReading(self.module, self.rules, self.file)
        apart.expanded[computation.name] = {}
        return apart.program(computation)

    def place(self, instruction: Instruction) -> str:
        """`file:line` in the user's program, or where the text does not say it in the text."""
        source = "" if self.of_text else self.module.header.source(instruction)
        return source or f"{self.file}:{instruction.line}"


class EquationList:
    """The equations of one program, in order."""

    def __init__(self, reading: ModuleReading) -> None:
        self.reading = reading
        self.equations: list[Equation] = []
        # of the computation that is read, by their names
        self.instructions: Mapping[str, Instruction] = {}

    def emit(
        self, name: str, operands: Sequence[Atom], results: Sequence[Aval], at: Instruction, **params: object
    ) -> tuple[Variable, ...]:
        """One more equation; its results, of which `results` says what they are."""
        self.reading.made += 1
        if self.reading.made > MOST_EQUATIONS:
            raise LayoutError(problems.TOO_MANY_EQUATIONS(MOST_EQUATIONS))
        made = tuple(map(Variable, results))
        place = self.reading.place(at)
        self.equations.append(Equation(primitive(name), tuple(operands), made, params, place))
        return made

    def one(self, name: str, operands: Sequence[Atom], result: Array, at: Instruction, **params: object) -> Variable:
        """One more equation, of one result."""
        return self.emit(name, operands, [result], at, **params)[0]

    def opened(self, computation: Computation, given: Sequence[Value]) -> Value:
        """The result of a computation for some values of its parameters; its equations are made here."""
        within = self.reading.within
        if computation.name in within or len(within) >= MOST_NESTED:
            raise LayoutError(problems.CALLS_ITSELF(computation.name), line=computation.line)
        if computation.root is None:
            raise LayoutError(problems.NO_ROOT(computation.name), line=computation.line)
        outer, self.instructions = self.instructions, computation.by_name
        functions = self.reading.functions(computation)
        within.append(computation.name)
        values: dict[str, Value] = {}
        for each in computation.instructions:
            if each.name in functions:
                region = functions[each.name]
                if region is not None:
                    values[each.name] = self.one(
                        region.name, [cast("Atom", values[region.given])], read_shape(each.shape), each
                    )
            elif each.opcode == "parameter":
                if not 0 <= each.number < len(given):
                    raise LayoutError(problems.NO_PARAMETER(each.name, computation.name), line=each.line)
                values[each.name] = given[each.number]
            else:
                values[each.name] = self._value(each, [self._operand(values, name, each) for name in each.operands])
        within.pop()
        self.instructions = outer
        return values[computation.root.name]

    def _operand(self, values: Mapping[str, Value], name: str, at: Instruction) -> Value:
        known, indices = element_of(name)
        if known not in values:
            raise LayoutError(problems.OPERAND_NOT_ABOVE(at.name, known), line=at.line)
        value = values[known]
        for index in indices:
            value = cast("tuple[Value, ...]", value)[index]
        return value

    def _value(self, instruction: Instruction, operands: list[Value]) -> Value:
        rule = self.reading.rules.get(instruction.opcode)
        if rule is not None:
            found = rule(self, instruction, operands)
            if found is not None:
                return found
        return self.unknown(instruction, operands, instruction.opcode)

    def unknown(self, instruction: Instruction, operands: Sequence[Value], what: str, **params: object) -> Value:
        """The value of an unmodelled instruction: an equation whose name is no primitive."""
        shape = read_shape(instruction.shape)
        arrays = [o for o in leaves(tuple(operands)) if o is not NOTHING]
        made = iter(self.emit(what, arrays, [a for a in leaves(shape) if isinstance(a, Array)], instruction, **params))
        whole: Value = like(shape, [next(made) if isinstance(a, Array) else NOTHING for a in leaves(shape)])
        return whole
