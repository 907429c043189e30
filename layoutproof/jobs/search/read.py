"""Search files: YAML that states a problem once.

    search: matmul                         a name
    target: v5e                            and, if it matters, compiler: 0.0.42.1
    kernel:                                the kernel language, with names where numbers will stand
      grid: ["cdiv(M, bm)", "cdiv(N, bn)", "cdiv(K, bk)"]
      inputs: [..]
    sizes: {M: 8192, N: 8192, K: 8192}     or a list of them, each with an optional weight
    tune:
      bm: {from: 8, to: 4096, multiple_of: 8}      or powers_of: 2; or a list; or one number; or divides: M
    constraints: [bm * bn <= 2**20]        over sizes, tile variables, time, bytes, flops, steps, vmem, padding
    flops: steps * 2 * bm * bn * bk        of the whole kernel
    cost: time                             what to make small (default: time)
    over: worst                            or sum: of several sizes
    partial: masked                        or none: may blocks reach over the edge of an array?
    vmem: 16MiB                            the limit; default: what the target gives a kernel that asks for none
    headroom: 10%                          of it, kept free for what the compiler itself needs
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import gcd
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_condition, parse_expression
from layoutproof.core.numbers import INTS
from layoutproof.core.term import Term
from layoutproof.jobs.positions import Node, read_file
from layoutproof.jobs.search.cost import FIGURES
from layoutproof.jobs.search.machines import machine, vmem_limit
from layoutproof.jobs.search.problem import Constraint, Problem, Shape
from layoutproof.jobs.search.template import Template, read_template

KEYS = (
    "search", "source", "target", "compiler", "kernel", "sizes", "tune", "constraints", "flops", "cost", "over",
    "partial", "vmem", "headroom", "step_overhead", "note", "trace", "args", "layouts", "shardings",
)  # fmt: skip
LARGEST_DOMAIN = 1 << 20
"""Values that one tile variable may take."""
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*(KiB|MiB|GiB|B)?")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def load(path: str | Path) -> Problem:
    """The problem in a file. LayoutError with the place for everything that is wrong with it."""
    root = read_file(path)
    return read_problem(root, Path(path).as_posix())


def read_problem(root: Node, file: str = "search") -> Problem:
    """A problem from a document; `load` says what may stand in it."""
    if type(root.value) is not dict:
        raise LayoutError("a search file is a mapping with kernel, sizes and tune", file=file, line=1, column=1)
    for key, (line, column) in (root.keys or {}).items():
        if key not in KEYS:
            near = _closest(key)
            raise LayoutError(f"unknown key {shorten(key, 40)!r}{near}", file=file, line=line, column=column)
    for key in ("kernel", "sizes", "tune", "target"):
        if key not in root.value:
            raise LayoutError(f"{key!r} is missing", file=file, line=root.line, column=root.column)

    def at(key: str, read: Any) -> Any:
        node = root.value.get(key)
        try:
            return read(None if node is None else node.plain())
        except LayoutError as error:
            raise error.at(file, node.line, node.column) if node is not None and error.line is None else error from None

    template: Template = at("kernel", read_template)
    shapes: tuple[Shape, ...] = at("sizes", _shapes)
    target = str(root.value["target"].plain())
    tune = at("tune", lambda value: _domains(value, shapes))
    known = {*tune, *shapes[0].sizes}
    for name in template.names():
        if name not in known:
            raise LayoutError(f"the kernel speaks of {name}, which is neither in sizes nor in tune", file=file)
    unused = [name for name in tune if name not in template.names()]
    limit: int | None = at("vmem", lambda value: None if value is None else _bytes(value))
    headroom = at("headroom", _percent)
    vmem = limit if limit is not None else vmem_limit(target, template.mapping.get("vmem_limit"))
    names = known | set(FIGURES)
    constraints = at("constraints", lambda value: tuple(_constraint(text, names) for text in value or ()))
    if unused and not any(name in c.condition.names() for c in constraints for name in unused):
        raise LayoutError(f"{', '.join(unused)} is tuned and appears nowhere in the kernel", file=file)
    return Problem(
        name=str(root.value["search"].plain()) if "search" in root.value else Path(file).stem,
        template=template,
        variables=tune,
        shapes=shapes,
        machine=at("step_overhead", lambda value: machine(target, template, value)),
        target=target,
        vmem=vmem * (100 - headroom) // 100,
        compiler=at("compiler", lambda value: None if value is None else str(value)),
        flops=at("flops", lambda value: None if value is None else _expression(value, known | {"steps"})),
        cost=at("cost", lambda value: None if value is None else _expression(value, names)),
        worst=at("over", lambda value: _word(value, "over", ("worst", "sum"))) == "worst",
        partial=at("partial", lambda value: _word(value, "partial", ("masked", "none"))) == "masked",
        constraints=constraints,
        source=file,
    )


def _shapes(value: Any) -> tuple[Shape, ...]:
    entries = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    found = []
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise LayoutError(f"sizes is a mapping {{M: 8192, ..}} or a list of them, not {shorten(repr(entry), 60)}")
        sizes = {name: size for name, size in entry.items() if name != "weight"}
        for name, size in entry.items():
            if type(size) is not int or size < 1:
                raise LayoutError(f"{name} is a whole number of at least 1, not {shorten(repr(size), 40)}")
        found.append(Shape(sizes, entry.get("weight", 1)))
    if not found:
        raise LayoutError("sizes is empty")
    if any(set(shape.sizes) != set(found[0].sizes) for shape in found):
        raise LayoutError("every entry of sizes names the same sizes")
    return tuple(found)


def _domains(value: Any, shapes: Sequence[Shape]) -> dict[str, tuple[int, ...]]:
    if not isinstance(value, Mapping) or not value:
        raise LayoutError("tune says what each tile variable may be, e.g. {bm: {from: 8, to: 1024, multiple_of: 8}}")
    return {str(name): _domain(str(name), entry, shapes) for name, entry in value.items()}


def _domain(name: str, entry: Any, shapes: Sequence[Shape]) -> tuple[int, ...]:
    if type(entry) is int:
        entry = [entry]
    if isinstance(entry, list):
        values = entry
    elif isinstance(entry, Mapping):
        values = _range(name, entry, shapes)
    else:
        raise LayoutError(f"{name} is a number, a list, or {{from, to, multiple_of}}; not {shorten(repr(entry), 60)}")
    if not all(type(v) is int and v >= 1 for v in values):
        raise LayoutError(f"the values of {name} are whole numbers of at least 1: {shorten(repr(entry), 60)}")
    if not values:
        raise LayoutError(f"{name} has no value: {shorten(repr(entry), 60)}")
    return tuple(sorted(set(values)))


def _range(name: str, entry: Mapping[str, Any], shapes: Sequence[Shape]) -> list[int]:
    known = ("from", "to", "multiple_of", "powers_of", "divides")
    for key in entry:
        if key not in known:
            raise LayoutError(f"{name} has no {key!r}; known: {', '.join(known)}")
    for key in ("from", "to", "multiple_of", "powers_of"):
        if key in entry and (type(entry[key]) is not int or entry[key] < (2 if key == "powers_of" else 1)):
            raise LayoutError(f"{name}: {key} is a whole number, not {shorten(repr(entry[key]), 40)}")
    step = entry.get("multiple_of", 1)
    largest = max(max(shape.sizes.values()) for shape in shapes)
    low, high = entry.get("from", step), entry.get("to", largest)
    if "powers_of" in entry:
        values, power = [], 1
        while power <= high:
            values.append(power)
            power *= entry["powers_of"]
    else:
        start = -(-low // step) * step
        if (high - start) // step >= LARGEST_DOMAIN:
            raise LayoutError(f"{name} may have {LARGEST_DOMAIN} values; {low}..{high} by {step} are more")
        values = list(range(start, high + 1, step))
    values = [v for v in values if low <= v <= high and v % step == 0]
    if "divides" in entry:
        whole = [_number(entry["divides"], shape) for shape in shapes]
        values = [v for v in values if gcd(v, *whole) == v]
    return values


def _number(text: Any, shape: Shape) -> int:
    term = _expression(text, set(shape.sizes))
    return int(term.evaluate(shape.sizes, INTS))


def _expression(text: Any, known: set[str]) -> Term:
    term = Term("int", text) if type(text) is int else parse_expression(_powers(str(text)))
    _check(term, known, str(text))
    return term


def _constraint(text: Any, known: set[str]) -> Constraint:
    condition = parse_condition(_powers(str(text)))
    _check(condition, known, str(text))
    return Constraint(str(text), condition)


def _check(term: Term, known: set[str], text: str) -> None:
    for name in term.names():
        if name not in known:
            raise LayoutError(f"{name} is not known here; known: {', '.join(sorted(known))}", text=text)


def _powers(text: str) -> str:
    # 2**20 is how people write it, and the grammar of expressions has no powers
    return re.sub(r"\b(\d+)\s*\*\*\s*(\d{1,3})\b", lambda found: str(int(found[1]) ** int(found[2])), text)


def _bytes(value: Any) -> int:
    if type(value) is int and value > 0:
        return value
    found = _BYTES.fullmatch(str(value).strip())
    if found is None:
        raise LayoutError(f"an amount of memory is a number of bytes or a text such as 16MiB, not {value!r}")
    return int(float(found[1]) * _UNITS[found[2] or "B"])


def _percent(value: Any) -> int:
    if value is None:
        return 0
    text = str(value).strip().removesuffix("%")
    if not text.isdigit() or int(text) > 99:
        raise LayoutError(f"headroom is a percentage from 0% to 99%, not {value!r}")
    return int(text)


def _word(value: Any, key: str, words: tuple[str, ...]) -> str:
    if value is None:
        return words[0]
    if value not in words:
        raise LayoutError(f"{key} is {' or '.join(words)}, not {shorten(repr(value), 40)}")
    return str(value)


def _closest(key: str) -> str:
    from layoutproof.jobs.spec_model import closest

    return closest(key, KEYS) or f"; the keys here are {', '.join(KEYS)}"
