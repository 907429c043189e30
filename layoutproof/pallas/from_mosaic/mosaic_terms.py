"""Index maps of Mosaic modules (functions of MLIR's arith) as terms, as `jaxpr_terms` makes them of jaxprs.

Every operation is modelled or refused by name. Arithmetic is over the unbounded integers; that Mosaic computes it in
32 bits is the business of the property `index_int32`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layoutproof.bodies import problems as body_problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.core.document import JsonObject
from layoutproof.core.term import Term
from layoutproof.pallas import problems as pallas_problems
from layoutproof.pallas.from_mosaic import problems
from layoutproof.pallas.from_mosaic.mosaic_ops import (
    BITS,
    OPERATIONS,
    WIDENED,
    compared,
    constant_of,
    masked,
    number,
    select,
    width,
)

PREFIX = "stable_mosaic."
"""Before the names of operations in a serialised module (jaxlib's mosaic-serde pass)."""

EXACT = ("i32", "i64", "index")
"""Types whose arithmetic is taken for that of unbounded integers."""

LARGEST, DEEPEST = 5000, 120
"""Bounds on the parts of one term, and on their depth, so that it can be printed and evaluated."""


def index_terms(functions: Mapping[str, JsonObject], name: str, arguments: Sequence[object]) -> tuple[Term, ...]:
    """The results of the function `name`, a module's function as `mosaic_worker` writes it.

    arguments: a term for each program index, after them the name (a str) of each table of signed
    integers, None for any other table.
    Raises UnsupportedOp, naming the operation, for what is no integer arithmetic.
    """
    results = _TermWalk(functions).call(name, list(arguments))
    if not all(isinstance(result, Term) for result in results):
        raise UnsupportedOp(problems.WHOLE_TABLE())
    return tuple(number(result) for result in results)


class _TermWalk:
    """The functions there are, and how large each term made so far is."""

    def __init__(self, functions: Mapping[str, JsonObject]) -> None:
        self.functions = functions
        self.sizes: dict[int, tuple[int, int]] = {}
        self.kept: list[Term] = []
        self.calls = 0

    def call(self, name: str, arguments: list[Any]) -> list[Any]:
        """The results of one function."""
        self.calls += 1
        blocks = self.functions.get(name, {}).get("body")
        if blocks is None:
            raise UnsupportedOp(problems.FUNCTION_MISSING(name))
        if len(blocks) != 1 or len(blocks[0]["arguments"]) != len(arguments):
            raise UnsupportedOp(problems.FUNCTION_FORM(name))
        if self.calls > 100:
            raise UnsupportedOp(problems.MOST_CALLS())
        return self.block(blocks[0], dict(zip(blocks[0]["arguments"], arguments, strict=True)))

    def block(self, block: Mapping[str, Any], values: dict[int, Any]) -> list[Any]:
        """The results of a block, by `return` or `yield`."""
        if block["cut"]:
            raise UnsupportedOp(problems.MOST_OPERATIONS())
        for operation in block["operations"]:
            name = operation["name"].removeprefix(PREFIX)
            if any(known not in values for known in operation["operands"]):
                raise UnsupportedOp(problems.OPERAND_NOT_THERE(name))
            operands = [values[known] for known in operation["operands"]]
            if name in ("func.return", "scf.yield"):
                return operands
            results = self.results(name, operation, operands, values)
            if len(results) != len(operation["results"]):
                raise UnsupportedOp(problems.OPERATION_RESULTS(name, len(operation["results"])))
            for new, result in zip(operation["results"], results, strict=True):
                self.measure(result)
                values[new] = result
        raise UnsupportedOp(problems.BLOCK_END())

    def results(
        self, name: str, operation: Mapping[str, Any], operands: list[Any], values: dict[int, Any]
    ) -> list[Any]:
        """The results of one operation."""
        attributes = operation["attributes"]
        if name == "arith.constant":
            return [constant_of(attributes.get("value"), operation["types"])]
        if name == "func.call":
            return self.call(str(attributes.get("callee", "")).removeprefix("@"), operands)
        if name == "memref.load":
            return [_read(operands, width(operation["types"][0]))]
        if any(not isinstance(operand, Term) for operand in operands):
            raise UnsupportedOp(pallas_problems.OPERATION_ON_TABLE(name))
        if name == "scf.if":
            if [len(region) for region in operation["regions"]] != [1, 1]:
                raise UnsupportedOp(problems.BRANCH_FORM())
            sides = [self.block(region[0], dict(values)) for region in operation["regions"]]
            if len(sides[0]) != len(sides[1]):
                raise UnsupportedOp(problems.BRANCH_RESULTS())
            return [select(operands[0], yes, no) for yes, no in zip(sides[0], sides[1], strict=True)]
        kind = next(iter(operation["operand_types"]), "")
        if name == "arith.cmpi" and (kind in EXACT or (kind == "i1" and attributes.get("predicate") in (0, 1))):
            return [compared(attributes.get("predicate"), *operands)]
        if name == "tpu.assume_multiple" and type(attributes.get("multiple")) is int and attributes["multiple"] > 0:
            return [Term("multiple_of", number(operands[0]), Term("int", attributes["multiple"]))]
        if name in WIDENED:
            types = (operation["operand_types"], operation["types"])
            return [WIDENED[name](operands, *[width(part[0]) for part in types])]
        if name in BITS and kind != "i1":
            return [masked(BITS[name], operands)]
        if name not in OPERATIONS:
            raise UnsupportedOp(body_problems.OPERATION(name))
        if kind not in EXACT and name not in BITS and name != "arith.select":
            raise UnsupportedOp(problems.OPERATION_WRAPS(name, kind))
        return [OPERATIONS[name](*operands)]

    def measure(self, result: object) -> tuple[int, int]:
        """Parts and depth of a term, shared parts counted each time. UnsupportedOp where it is too large."""
        if not isinstance(result, Term) or result.op in ("int", "name"):
            return 1, 1
        if id(result) not in self.sizes:
            inner = [self.measure(part) for part in result.args]
            parts, depth = 1 + sum(n for n, _ in inner), 1 + max(d for _, d in inner)
            if parts > LARGEST or depth > DEEPEST:
                raise UnsupportedOp(problems.EXPRESSION(LARGEST, DEEPEST))
            self.sizes[id(result)] = parts, depth
            self.kept.append(result)  # an id means something as long as its term is there
        return self.sizes[id(result)]


def _read(operands: list[Any], bits: int) -> Term:
    if not operands or not isinstance(operands[0], str) or bits == 1:
        raise UnsupportedOp(problems.NO_TABLE())
    return Term("read", Term("name", operands[0]), *(number(index) for index in operands[1:]))
