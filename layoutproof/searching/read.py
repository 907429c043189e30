"""The problem of a search file that declares a kernel. `search_model` says what may stand in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.kernel_text import read_kernel
from layoutproof.searching import problems
from layoutproof.searching.cost import CostModel
from layoutproof.searching.document import at, at_key, beside
from layoutproof.searching.machines import headroom, machine, vmem_limit
from layoutproof.searching.problem import DeclaredKernel, Problem, WeightedSizes
from layoutproof.searching.search_model import KernelSearch
from layoutproof.searching.traffic import traffic
from layoutproof.specs.positions import Node, read_file
from layoutproof.specs.validation import read_as


def load(path: str | Path) -> Problem:
    """The problem in a file. LayoutError with the place for everything that is wrong with it."""
    return read_problem(read_file(path), Path(path).as_posix())


def read_problem(root: Node, file: str = "search") -> Problem:
    """The problem of a document. LayoutError with the place for everything that is wrong with it."""
    said = read_as(KernelSearch, root, file)
    node, tune = root.value["kernel"], root.value["tune"]
    known = {*said.tune, *said.sizes[0].sizes}
    kernel = _kernel(node, file, known)
    asked = kernel.vmem_limit
    with at(node, file):
        own = vmem_limit(said.target, asked)
    if said.vmem is not None and said.vmem > own and asked is None:
        # more than a kernel gets that asks for nothing: this one asks
        with at(root.value["vmem"], file):
            own = vmem_limit(said.target, said.vmem)
        kernel = replace(kernel, vmem_limit=said.vmem)
    spoken = kernel.parameters()
    for name in spoken:
        if name not in known:
            raise at_key(root, "kernel", file, problems.NAME_OF_NOTHING(name))
    with at(node, file):
        _check_some_candidate(kernel, said.tune, said.sizes[0])
    for name in said.tune:
        if name not in spoken and not any(name in c.condition.names() for c in said.constraints):
            raise at_key(tune, name, file, problems.TUNED_NOWHERE(name))
    with at(root.value.get("body", root), file):
        body = None if said.body is None else beside(said.body, file)
    return Problem(
        name=said.search or Path(file).stem,
        kernels=DeclaredKernel(CostModel(kernel, said.flops, machine(said.target, kernel, said.step_overhead)), body),
        variables=said.tune,
        shapes=said.sizes,
        target=said.target,
        limit=min(own, said.vmem or own),
        compiler=said.compiler,
        headroom=said.headroom or headroom(None),
        flops=said.flops,
        cost=said.cost,
        worst=said.over != "sum",
        partial=said.partial != "none",
        constraints=said.constraints,
        source=file,
        step_overhead=said.step_overhead,
        ranges=tune.plain(),
    )


def _kernel(node: Node, file: str, known: Collection[str]) -> Kernel:
    """The kernel, whose amounts are terms over the known names; an error in one operand gets that operand's place."""
    mapping = node.plain()
    refused = _refused(mapping, known)
    if refused is None:
        return read_kernel(mapping, ELEMENT_BITS, known)[0]
    # everything but the operands, and then with one operand after the other
    frame = {key: mapping[key] for key in ("grid", "tables") if key in mapping}
    keys = [key for key in ("inputs", "outputs", "operands") if key in mapping]
    rows = [(key, k, row) for key in keys for k, row in enumerate(node.value[key].value)]
    if _refused({**frame, "operands": [_SCALAR]}, known) is not None:
        rows = []
    for key, k, row in rows:
        alone = {name: value for name, value in row.plain().items() if name != "same_as"}
        others = [_SCALAR if key == "operands" else {"array": "f32[]"}] * k
        why = _refused({**frame, key: [*others, alone]}, known)
        if why is not None:
            with at(row, file):
                raise why
    with at(node, file):
        raise refused


_SCALAR = {"array": "f32[]", "role": "in"}
"""An operand of which nothing is wrong."""


def _refused(mapping: Mapping[str, object], known: Collection[str]) -> LayoutError | None:
    """Why a mapping is no kernel whose windows have a price."""
    try:
        traffic(read_kernel(mapping, ELEMENT_BITS, known)[0])
    except LayoutError as error:
        return error
    except Undecided as unpriced:
        return LayoutError(str(unpriced))
    return None


def _check_some_candidate(kernel: Kernel, tune: Mapping[str, tuple[int, ...]], shape: WeightedSizes) -> None:
    """LayoutError where the kernel language takes neither the smallest nor the largest candidate."""
    try:
        kernel.bind({**shape.sizes, **{name: values[0] for name, values in tune.items()}})
    except LayoutError as error:
        try:
            kernel.bind({**shape.sizes, **{name: values[-1] for name, values in tune.items()}})
        except LayoutError:
            raise error from None
