"""The answering side of a comparison of what a program computes with what it computed: traces both, in one process.

Each of the two is code of a checkout of its own, with modules of the same names. So the modules of a checkout are only
there while its code runs; libraries, JAX above all, are the same for both. Nothing is compiled, and no device is
needed: a mesh is one of devices of the processor.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import layoutproof
from layoutproof.compiler.serve import Tell, serve
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, Unsupported
from layoutproof.core.files import repository_of
from layoutproof.core.result import Verdict
from layoutproof.ir.codec import digest
from layoutproof.pallas.from_jax.adapter import need_jax
from layoutproof.programs import compiling, problems
from layoutproof.programs.differing import elements_differ
from layoutproof.programs.pairing import Pairing, paired
from layoutproof.questions.reduced import equations_in, work_of
from layoutproof.questions.same import MOST_ELEMENTS, answered
from layoutproof.questions.same_answer import Same
from layoutproof.questions.same_plan import Plan, TracedPair
from layoutproof.questions.same_plan import traced as traced_plan
from layoutproof.values.digests import evaluator, values_of
from layoutproof.values.elementwise import kind_of
from layoutproof.values.pair import Input, elements_of
from layoutproof.values.parting import parting
from layoutproof.values.refusals import NotModelled
from layoutproof.values.work import MOST_STEPS

if TYPE_CHECKING:
    from jax import Array


class Tree:
    """A checkout: while it is here its code runs in its folder, and finds its own modules and no other checkout's."""

    def __init__(self, folder: str, paths: Sequence[str]) -> None:
        self.folder, self.paths = folder, [*paths]
        self.top = repository_of(Path(folder))
        self.modules: dict[str, Any] = {}
        self.inside = False

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """Within it this checkout's code runs."""
        if self.inside:
            yield
            return
        folder, paths = os.getcwd(), list(sys.path)
        self.inside = True
        os.chdir(self.folder)
        sys.path[:] = [self.folder, *self.paths]
        sys.modules.update(self.modules)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            self.modules = {name: module for name, module in sys.modules.items() if self.has(module)}
            for name in self.modules:
                del sys.modules[name]
            sys.path[:] = paths
            os.chdir(folder)
            self.inside = False

    def has(self, module: object) -> bool:
        """Whether a module comes from it: not what is installed below it, and not this package."""
        places = [getattr(module, "__file__", None), *_folders(module)]
        own = Path(layoutproof.__file__).parent
        return any(
            place.is_relative_to(self.top) and not place.is_relative_to(own) and "site-packages" not in place.parts
            for place in (Path(str(each)) for each in places if each)
        )

    def without(self, place: str) -> str:
        """A place in it as it is written from its folder."""
        for folder in (self.folder, str(self.top)):
            place = place.replace(folder + os.sep, "")
        return place


def _folders(module: object) -> list[str]:
    with contextlib.suppress(Exception):
        return [str(each) for each in getattr(module, "__path__", ())]
    return []


@dataclass(frozen=True)
class Side:
    """One of the two programs. call: of its arrays alone, giving its outputs.  arrays: by name, with their shapes.

    outputs: of each output its name and its shape with its type, in the order in which `call` gives them.
    """

    tree: Tree
    call: Callable[..., list[Any]]
    arrays: tuple[Input, ...]
    outputs: tuple[tuple[str, Any], ...]


def answer(request: JsonObject, tell: Tell) -> JsonObject:
    """The comparison of two programs.

    request: of "new" and "old" a mapping as of `compile.request_of`, with `folder` and `paths`; `points`. Or "of" such
    a mapping, of the one program whose values are to be kept.
    """
    need_jax()
    if "of" in request:
        return _kept(request["of"], request["points"], tell)
    meshes = [request[name]["mesh"] for name in ("new", "old")]
    if meshes[0] != meshes[1]:
        return {"state": "unknown", "reason": problems.MESH_CHANGED(meshes[0], meshes[1])}
    target = request["new"]["target"]
    with contextlib.ExitStack() as stack:
        mesh = compiling._mesh({**request["new"], "target": compiling.CPU, "topology": ""})
        stack.enter_context(compiling.on_mesh(mesh))
        tell("tracing what it was")
        with _whose("the base"):
            old = _side(request["old"], target, stack)
        # a module of the checkout that is here was no old code
        compiling._refuse_modules_of(repository_of(Path(request["new"]["folder"])))
        tell("tracing")
        new = _side(request["new"], target, stack)
        pairing = paired(_said(new.arrays), _said(old.arrays), new.outputs, old.outputs)
        if pairing.why:
            return {"state": "unknown", "reason": pairing.why}
        plan = _plan(new, old, pairing, target, request["points"])
        pair = traced_plan(plan)
        if _too_large(pair):
            plan = replace(plan, reduced=True, halved=True)
        return _told(answered(plan, tell, pair), plan, pair, pairing, new, old)


def _kept(request: JsonObject, points: int, tell: Tell) -> JsonObject:
    """The values of one program at fixed points, as `functions.Kept` has them, or the reason why there are none."""
    jax = need_jax()
    target = request["target"]
    with contextlib.ExitStack() as stack:
        mesh = compiling._mesh({**request, "target": compiling.CPU, "topology": ""})
        stack.enter_context(compiling.on_mesh(mesh))
        tell("tracing")
        side = _side(request, target, stack)
        # traced twice: a function that depends on more than its arguments has no values to keep
        pair = traced_plan(Plan(("it", "it"), (side.call, side.call), side.arrays, points=points, target=target))
    program, again = pair.programs
    why = problems.TRACED_TWICE() if digest(program) != digest(again) else _too_much(pair)
    if why:
        return {"reason": why}
    tell("values")
    try:
        found = values_of(program, pair.arrays, points)
    except (NotModelled, MemoryError) as error:
        return {"reason": str(error) or problems.MEMORY_RAN_OUT()}
    arrays = [[name, list(shape), dtype] for name, (shape, dtype) in _said(side.arrays)]
    outputs = [[name, list(shape), kind] for name, (shape, kind) in side.outputs]
    return {"jax": jax.__version__, "evaluator": evaluator(), "arrays": arrays, "outputs": outputs, **asdict(found)}


def _too_large(pair: TracedPair) -> bool:
    return max(map(work_of, pair.programs)) > MOST_STEPS or elements_of(pair.programs, pair.arrays) > MOST_ELEMENTS


def _too_much(pair: TracedPair) -> str:
    """Why no values of a program are kept, before it is walked over; "" for no reason. pair: it, traced twice."""
    if any(equation.primitive.name == "pallas_call" for equation in equations_in(pair.programs[0])):
        return problems.HAS_KERNELS()
    return problems.TOO_LARGE_TO_WALK() if _too_large(pair) else ""


def _said(arrays: Sequence[Input]) -> list[tuple[str, Any]]:
    return [(i.name, (i.shape, str(i.dtype))) for i in arrays]


@contextlib.contextmanager
def _whose(side: str) -> Iterator[None]:
    """Errors within it say whose they are."""
    try:
        yield
    except LayoutError as error:
        raise _said_of(error, f"{side}: {error.problem}", error.file or "") from None


def _said_of(error: LayoutError, problem: str, file: str) -> LayoutError:
    return LayoutError(problem, text=error.text, column=error.column, file=file, line=error.line)


def _side(request: JsonObject, target: str, stack: contextlib.ExitStack) -> Side:
    from layoutproof.pallas.from_jax.trace import traced
    from layoutproof.pallas.from_jax.user import device

    if request["exported"]:
        raise Unsupported(problems.EXPORT_FORM())
    flat, keys = need_jax().tree_util.tree_flatten_with_path, need_jax().tree_util.keystr
    tree = Tree(request["folder"], request["paths"])
    with tree.here():
        function, args, kwargs = compiling.called(request, stack)
    paths, form = flat((tuple(args), dict(kwargs)))
    leaves = [leaf for _, leaf in paths]
    at = [k for k, leaf in enumerate(leaves) if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]
    outputs: list[tuple[str, Any]] = []

    def call(*values: Array) -> list[Array]:
        filled = list(leaves)
        for k, value in zip(at, values, strict=True):
            filled[k] = value
        given, named = need_jax().tree_util.tree_unflatten(form, filled)
        with tree.here():
            found = flat(function(*given, **named))[0]
        outputs[:] = [(f"result{keys(path)}", (tuple(v.shape), kind_of(v.dtype))) for path, v in found]
        return [v for _, v in found]

    try:
        traced(call, [leaves[k] for k in at], None, **device(target))
    except LayoutError as error:
        raise _of(tree, error) from None
    # of the pair (args, kwargs)
    names = [("args", "kwargs")[path[0].idx] + keys(path[1:]) for path, _ in paths]
    arrays = tuple(Input(names[k], tuple(leaves[k].shape), leaves[k].dtype) for k in at)
    return Side(tree, call, arrays, tuple(outputs))


def _of(tree: Tree, error: LayoutError) -> LayoutError:
    """An error with places as they are written from a checkout's folder."""
    file = tree.without(error.file or "")
    return _said_of(error, tree.without(error.problem), file)


def _plan(new: Side, old: Side, pairing: Pairing, target: str, points: int) -> Plan:
    def of_new(*values: Array) -> list[Array]:
        found = new.call(*values)
        return [found[k] for k, _ in pairing.outputs]

    def of_old(*values: Array) -> list[Array]:
        given = dict(zip(pairing.inputs, values, strict=True))
        found = old.call(*(given[k] for k in range(len(given))))
        return [found[k] for _, k in pairing.outputs]

    return Plan(("it", "it before"), (of_new, of_old), new.arrays, points=points, target=target)


def _told(same: Same, plan: Plan, pair: TracedPair, pairing: Pairing, new: Side, old: Side) -> JsonObject:
    """The answer as plain data, with the names of outputs and places of both checkouts."""
    found, (finding,) = same.comparison, same.findings
    said: dict[str, Any] = {
        "state": "unknown", "reason": new.tree.without(old.tree.without(same.reason)), "points": found.points,
        "decided_by": same.decided_by, "axioms": list(found.axioms), "notes": [*found.drawn, *found.notes],
        "second": found.second, "figures": dict(finding.figures),
        "reduced": [f"{name} {list(shape)} for {list(given)}" for name, given, shape in same.reduced],
        "place": new.tree.without(finding.place) if finding.file else "", "before": "", "output": "",
        "gone": list(pairing.gone), "fresh": list(pairing.fresh), "guessed": pairing.guessed,
    }  # fmt: skip
    digests = [digest(each)[:16] for each in pair.programs]
    said |= {"digest": digests[0], "digest_before": digests[1]}
    if same.verdict in (Verdict.PROVED, Verdict.SAMPLED):
        return said | {"state": "same", "alike": len(set(digests)) == 1}
    if found.verdict is not Verdict.REFUTED or found.witness is None:
        return said
    witness = found.witness
    name = new.outputs[pairing.outputs[witness.output][0]][0]
    if same.reduced:
        smaller = {n: shape for n, _, shape in same.reduced}
        pair = traced_plan(plan.at([smaller.get(i.name, i.shape) for i in plan.arrays]))
    here, there = parting(pair.programs, pair.arrays, witness.output)
    begins = found.begins.place if found.begins is not None else ""
    return said | {
        "state": "other", "output": name, "place": new.tree.without(begins or here or said["place"]),
        "before": old.tree.without(there),
        "reason": elements_differ(name, witness, witness.index),
    }  # fmt: skip


if __name__ == "__main__":
    serve(answer)
