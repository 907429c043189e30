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
cost: time                             what to make small (default: time, in picoseconds; bytes; ..)
over: worst                            or sum: of several sizes
partial: masked                        or none: may blocks reach over the edge of an array?
vmem: 16MiB                            the limit; default: what the target gives a kernel that asks for none
headroom: 10%                          of it, kept free for what the compiler itself needs
step_overhead: 350ns                   of one grid step
body: kernels.py:matmul                the kernel's Python function, in a file beside this one; for --compile only
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import gcd
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_condition, parse_expression
from layoutproof.core.numbers import INTS
from layoutproof.core.term import Term
from layoutproof.engine.kernels import kernel_target
from layoutproof.jobs.positions import Node, read_file
from layoutproof.jobs.search.cost import FIGURES
from layoutproof.jobs.search.document import at_key, beside, placed
from layoutproof.jobs.search.machines import machine, vmem_limit
from layoutproof.jobs.search.problem import Constraint, Problem, Shape
from layoutproof.jobs.search.template import Template, read_template

KEYS = (
    "search", "source", "note", "target", "compiler", "kernel", "body", "sizes", "tune", "constraints", "flops", "cost",
    "over", "partial", "vmem", "headroom", "step_overhead",
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

    def at(key: str, read: Callable[[Any], Any]) -> Any:
        node = root.value.get(key)
        return read(None) if node is None else placed(node, file, read)

    compiler: str | None = at("compiler", lambda value: None if value is None else str(value))
    target: str = at("target", lambda value: _target(str(value), compiler))
    limit: int | None = at("vmem", lambda value: None if value is None else _bytes(value))
    template = _template(root.value["kernel"], file)
    asked = template.mapping.get("vmem_limit")
    own: int = placed(root.value["kernel"], file, lambda _: vmem_limit(target, asked))
    if limit is not None and limit > own and asked is None:
        # more than a kernel gets that asks for nothing: this one asks
        own = at("vmem", lambda _: vmem_limit(target, limit))
        template = read_template({**template.mapping, "vmem_limit": limit})
    shapes: tuple[Shape, ...] = at("sizes", _shapes)
    at("tune", _named)
    ranges: Mapping[str, Node] = root.value["tune"].value
    tune: dict[str, tuple[int, ...]]
    tune = {name: placed(node, file, partial(domain, name, shapes=shapes)) for name, node in ranges.items()}
    known = {*tune, *shapes[0].sizes}
    both = [name for name in tune if name in shapes[0].sizes]
    if both:
        raise at_key(root.value["tune"], both[0], file, f"{both[0]} is in sizes too; it is one or the other")
    for name in template.names():
        if name not in known:
            raise at_key(root, "kernel", file, f"the kernel speaks of {name}, which is neither in sizes nor in tune")
    placed(root.value["kernel"], file, lambda _: _some_instance(template, tune, shapes[0]))
    headroom = at("headroom", _percent)
    vmem = own if limit is None else min(own, limit)
    names = known | set(FIGURES)
    constraints = _constraints(root.value.get("constraints"), file, names)
    for name in tune:
        if name not in template.names() and not any(name in c.condition.names() for c in constraints):
            raise at_key(root.value["tune"], name, file, f"{name} is tuned and appears nowhere in the kernel")
    return Problem(
        name=str(root.value["search"].plain()) if "search" in root.value else Path(file).stem,
        template=template,
        variables=tune,
        shapes=shapes,
        machine=at("step_overhead", lambda value: machine(target, template, value)),
        target=target,
        vmem=vmem * (100 - headroom) // 100,
        compiler=compiler,
        flops=at("flops", lambda value: None if value is None else _expression(value, known | {"steps"})),
        cost=at("cost", lambda value: None if value is None else _expression(value, names)),
        worst=at("over", lambda value: _word(value, "over", ("worst", "sum"))) == "worst",
        partial=at("partial", lambda value: _word(value, "partial", ("masked", "none"))) == "masked",
        constraints=constraints,
        source=file,
        body=at("body", lambda value: None if value is None else beside(value, file)),
        overhead_given="step_overhead" in root.value,
        ranges={name: node.plain() for name, node in ranges.items()},
    )


def _target(name: str, compiler: str | None) -> str:
    chip = kernel_target(name, compiler)
    if chip.platform != "tpu":
        raise LayoutError(f"tilings are searched for TPUs, and {chip.name} is none")
    return chip.name


def _template(node: Node, file: str) -> Template:
    """The kernel; an error in one operand gets that operand's place."""
    if type(node.value) is dict:
        for key in ("inputs", "outputs", "operands"):
            rows = node.value.get(key)
            for row in rows.value if rows is not None and type(rows.value) is list else ():
                placed(row, file, partial(_operand, key))
    template: Template = placed(node, file, read_template)
    clash = template.clear()
    if clash:
        raise LayoutError(clash, file=file, line=node.line, column=node.column)
    return template


def _some_instance(template: Template, tune: Mapping[str, tuple[int, ...]], shape: Shape) -> None:
    """LayoutError where the kernel language takes neither the smallest nor the largest candidate."""
    try:
        template.instance({**shape.sizes, **{name: values[0] for name, values in tune.items()}})
    except LayoutError as error:
        try:
            template.instance({**shape.sizes, **{name: values[-1] for name, values in tune.items()}})
        except LayoutError:
            raise error from None


def _operand(key: str, value: Any) -> Template:
    return read_template({"grid": [], key: [value]})


def _constraints(node: Node | None, file: str, names: set[str]) -> tuple[Constraint, ...]:
    if node is None:
        return ()
    entries = node.value if type(node.value) is list else [node]
    return tuple(placed(entry, file, lambda value: _constraint(value, names)) for entry in entries)


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
    if not found or not all(shape.sizes for shape in found):
        raise LayoutError("sizes is empty")
    if any(set(shape.sizes) != set(found[0].sizes) for shape in found):
        raise LayoutError("every entry of sizes names the same sizes")
    return tuple(found)


def _named(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value:
        raise LayoutError("tune says what each tile variable may be, e.g. {bm: {from: 8, to: 1024, multiple_of: 8}}")
    for name in value:
        if not str(name).isidentifier():
            raise LayoutError(f"{shorten(str(name), 40)!r} is no name")
        if name in FIGURES:
            raise LayoutError(f"{name} is a figure of every candidate; give the variable another name")
    return {str(name): entry for name, entry in value.items()}


def _domains(value: Any, shapes: Sequence[Shape]) -> dict[str, tuple[int, ...]]:
    return {name: domain(name, entry, shapes) for name, entry in _named(value).items()}


def domain(name: str, entry: Any, shapes: Sequence[Shape]) -> tuple[int, ...]:
    """The values of one variable, rising. LayoutError for what is no range."""
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
