"""The problem of a search file that declares a kernel. `search_model` says what may stand in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from layoutproof.core.errors import LayoutError
from layoutproof.core.term import parameters
from layoutproof.specs.positions import Node, read_file
from layoutproof.specs.validation import read_as
from layoutproof.tilings.document import at, at_key, beside
from layoutproof.tilings.machines import machine, vmem_limit
from layoutproof.tilings.problem import Problem, Shape
from layoutproof.tilings.search_model import KernelSearch
from layoutproof.tilings.template import Template, read_template


def load(path: str | Path) -> Problem:
    """The problem in a file. LayoutError with the place for everything that is wrong with it."""
    return read_problem(read_file(path), Path(path).as_posix())


def read_problem(root: Node, file: str = "search") -> Problem:
    """The problem of a document. LayoutError with the place for everything that is wrong with it."""
    said = read_as(KernelSearch, root, file)
    node, tune = root.value["kernel"], root.value["tune"]
    template = _template(node, file)
    asked = template.mapping.get("vmem_limit")
    with at(node, file):
        own = vmem_limit(said.target, asked)
    if said.vmem is not None and said.vmem > own and asked is None:
        # more than a kernel gets that asks for nothing: this one asks
        with at(root.value["vmem"], file):
            own = vmem_limit(said.target, said.vmem)
        template = read_template({**template.mapping, "vmem_limit": said.vmem})
    known, spoken = {*said.tune, *said.sizes[0].sizes}, template.names()
    for name in spoken:
        if name not in known:
            raise at_key(root, "kernel", file, f"the kernel speaks of {name}, which is neither in sizes nor in tune")
    with at(node, file):
        _some_instance(template, said.tune, said.sizes[0])
    for name in said.tune:
        if name not in spoken and not any(name in c.condition.names() for c in said.constraints):
            raise at_key(tune, name, file, f"{name} is tuned and appears nowhere in the kernel")
    with at(root.value.get("body", root), file):
        body = None if said.body is None else beside(said.body, file)
    return Problem(
        name=said.search or Path(file).stem,
        template=template,
        variables=said.tune,
        shapes=said.sizes,
        machine=machine(said.target, template, said.step_overhead),
        target=said.target,
        vmem=min(own, said.vmem or own) * (100 - said.headroom.percent) // 100,
        compiler=said.compiler,
        headroom=said.headroom,
        flops=said.flops,
        cost=said.cost,
        worst=said.over != "sum",
        partial=said.partial != "none",
        constraints=said.constraints,
        source=file,
        body=body,
        overhead_given=said.step_overhead is not None,
        ranges=tune.plain(),
    )


def _template(node: Node, file: str) -> Template:
    """The kernel; an error in one operand gets that operand's place."""
    for key in ("inputs", "outputs", "operands"):
        for row in node.value[key].value if key in node.value else ():
            with at(row, file):
                read_template({"grid": [], key: [row.plain()]})
    with at(node, file):
        template = read_template(node.plain())
        clash = template.clear()
        if clash:
            raise LayoutError(clash)
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
