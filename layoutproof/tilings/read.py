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
headroom: 25%                          of it, kept free for registers that spill; or the kind of body: elementwise,
                                       matmul, reduction, attention, with what was measured; default: the worst kind
step_overhead: 350ns                   of one grid step
body: kernels.py:matmul                the kernel's Python function, in a file beside this one; for --compile only
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError, closest, shorten
from layoutproof.core.term import parameters
from layoutproof.pallas.judge import kernel_target
from layoutproof.specs.positions import Node, read_file
from layoutproof.tilings.cost import FIGURES
from layoutproof.tilings.document import at_key, beside, placed
from layoutproof.tilings.machines import headroom, machine, vmem_limit
from layoutproof.tilings.problem import Constraint, Problem, Shape
from layoutproof.tilings.ranges import amount, constraint, domain, expression, word
from layoutproof.tilings.template import Template, read_template

KEYS = (
    "search", "source", "note", "target", "compiler", "kernel", "body", "sizes", "tune", "constraints", "flops", "cost",
    "over", "partial", "vmem", "headroom", "step_overhead",
)  # fmt: skip


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
    limit: int | None = at("vmem", lambda value: None if value is None else amount(value))
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
    apart(root.value["tune"], tune, shapes[0].sizes, file)
    for name in template.names():
        if name not in known:
            raise at_key(root, "kernel", file, f"the kernel speaks of {name}, which is neither in sizes nor in tune")
    placed(root.value["kernel"], file, lambda _: _some_instance(template, tune, shapes[0]))
    kept = at("headroom", headroom)
    vmem = own if limit is None else min(own, limit)
    names = known | set(FIGURES)
    stated = constraints(root.value.get("constraints"), file, names)
    for name in tune:
        if name not in template.names() and not any(name in c.condition.names() for c in stated):
            raise at_key(root.value["tune"], name, file, f"{name} is tuned and appears nowhere in the kernel")
    return Problem(
        name=str(root.value["search"].plain()) if "search" in root.value else Path(file).stem,
        template=template,
        variables=tune,
        shapes=shapes,
        machine=at("step_overhead", lambda value: machine(target, template, value)),
        target=target,
        vmem=vmem * (100 - kept.percent) // 100,
        compiler=compiler,
        headroom=kept,
        flops=at("flops", lambda value: None if value is None else expression(value, known | {"steps"})),
        cost=at("cost", lambda value: None if value is None else expression(value, names)),
        worst=at("over", lambda value: word(value, "over", ("worst", "sum"))) == "worst",
        partial=at("partial", lambda value: word(value, "partial", ("masked", "none"))) == "masked",
        constraints=stated,
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
    """LayoutError where the kernel language takes neither the smallest nor the largest candidate, or where a name in
    its tables stands for no number.
    """
    try:
        kernel = template.instance({**shape.sizes, **{name: values[0] for name, values in tune.items()}})
    except LayoutError as error:
        try:
            kernel = template.instance({**shape.sizes, **{name: values[-1] for name, values in tune.items()}})
        except LayoutError:
            raise error from None
    for name in parameters(e for t in kernel.tables for e in (*t.dims, t.low, t.high) if e is not None):
        raise LayoutError(f"the kernel speaks of {name}, which is neither in sizes nor in tune")


def _operand(key: str, value: Any) -> Template:
    return read_template({"grid": [], key: [value]})


def apart(tuned: Node, tune: Collection[str], sizes: Collection[str], file: str) -> None:
    """LayoutError where a name is both a variable and a size."""
    for name in tune:
        if name in sizes:
            raise at_key(tuned, name, file, f"{name} is in sizes too; it is one or the other")


def constraints(node: Node | None, file: str, names: set[str]) -> tuple[Constraint, ...]:
    """The conditions of a list, or the one that stands alone; LayoutError with the place of that which is wrong."""
    if node is None or node.value is None:
        return ()
    entries = node.value if type(node.value) is list else [node]
    return tuple(placed(entry, file, lambda value: constraint(value, names)) for entry in entries)


def _shapes(value: Any) -> tuple[Shape, ...]:
    entries = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    found = []
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise LayoutError(f"sizes is a mapping {{M: 8192, ..}} or a list of them, not {shorten(repr(entry), 60)}")
        sizes = {name: size for name, size in entry.items() if name != "weight"}
        for name, size in entry.items():
            _named_well(str(name), "size")
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
        _named_well(str(name), "variable")
    return {str(name): entry for name, entry in value.items()}


def _named_well(name: str, what: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise LayoutError(f"{shorten(name, 40)!r} is no name")
    if name in FIGURES:
        raise LayoutError(f"{name} is a figure of every candidate; give the {what} another name")


def _domains(value: Any, shapes: Sequence[Shape]) -> dict[str, tuple[int, ...]]:
    return {name: domain(name, entry, shapes) for name, entry in _named(value).items()}


def _closest(key: str) -> str:
    return closest(key, KEYS) or f"; the keys here are {', '.join(KEYS)}"
