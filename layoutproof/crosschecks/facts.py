"""The facts of `layoutproof.hardware`, each found again with the compiler and the JAX that are installed.

A fact that is not as recorded has moved: a rule rests on what is no longer so, on this version. What aborts, or is
refused for another reason, leaves a fact unanswered; what only documents say, or what takes a kernel of a person's, is
not asked, and is counted as that.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from layoutproof.compiler import libtpu
from layoutproof.core.document import JsonObject
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import shorten
from layoutproof.crosschecks import asking, tpu_cases
from layoutproof.crosschecks.asking import Failed
from layoutproof.crosschecks.source import Agree, Disagree
from layoutproof.crosschecks.sources import tpu_kernels
from layoutproof.hardware.facts import AS_THE_RULE, Fact, as_of, facts
from layoutproof.hardware.tpu import default_layout
from layoutproof.hardware.tpu_chips import CHIPS, KIB, MIB
from layoutproof.kernel.kernel_print import mapping_of

ARRAYS = 400
"""Random arrays whose default layouts are asked, on every generation."""
KERNELS = 48
"""Random kernels that are compiled."""
PAST = 1 << 38
"""Bytes that no chip has."""

Ask = Callable[[list[Any]], Any]
"""Puts one request to the compiler."""


@dataclass(frozen=True, slots=True)
class Today:
    """A fact and what is found now. value: "" where nothing is, then `why`.  version: who says it now."""

    fact: Fact
    value: str = ""
    version: str = ""
    why: str = ""

    @property
    def state(self) -> str:
        """ "same", "moved", "unanswered" (the compiler gave no answer) or "not asked"."""
        if self.value:
            return "same" if self.value == self.fact.value else "moved"
        return "unanswered" if self.version else "not asked"


class _NoAnswerError(Exception):
    """The compiler gave none; the words say why."""


def today(library: str = "", every: tuple[Fact, ...] | None = None) -> Iterator[Today]:
    """Every fact as of the compiler's version, with what is found now, each as soon as it is there.

    library: of the compiler, "" = the one in use.  every: the facts, None = all that are recorded.
    """
    number = libtpu.number(library)
    who = {"libtpu": f"libtpu {number}", "jax": f"jax {importlib.metadata.version('jax')}"}
    with asking.session(library) as ask:
        for fact in as_of(facts() if every is None else every, who["libtpu"]):
            program = fact.version.split()[0]
            find = FINDERS.get(fact.name) if fact.target in ("", *CHIPS) else None
            if find is None:
                why = "read in documents" if program not in who else "found by hand, as its source says"
                yield Today(fact, why=why)
                continue
            try:
                yield Today(fact, find(ask, fact, number), who[program])
            except _NoAnswerError as error:
                yield Today(fact, "", who[program], str(error))


def _said(ask: Ask, request: list[object]) -> Any:
    """The answer. Raises _NoAnswerError where there is none."""
    answer = ask(request)
    if isinstance(answer, Failed):
        raise _NoAnswerError(str(answer))
    return answer


def _taken(ask: Ask, request: list[object]) -> bool:
    """Whether the compiler takes it. Raises _NoAnswerError where it died of it."""
    answer = ask(request)
    if isinstance(answer, Failed) and answer.aborted:
        raise _NoAnswerError(str(answer))
    return not isinstance(answer, Failed)


def _layout(ask: Ask, generation: str, element: str, dims: list[int]) -> str:
    (text,) = _said(ask, ["defaults", [[generation, element, dims]]])
    return "refused" if text is None else str(text)


def _tile(ask: Ask, generation: str, element: str, dims: list[int]) -> list[int]:
    text = _layout(ask, generation, element, dims)
    found = re.search(r"T\(([\d,]+)\)", text)
    if found is None:
        raise _NoAnswerError(f"{element}{dims} has no tile: {text}")
    return list(map(int, found[1].split(",")))


def _kind(ask: Ask, fact: Fact, number: str) -> str:
    return str(_said(ask, ["kind", fact.target]))


def _topology(ask: Ask, fact: Fact, number: str) -> str:
    _said(ask, ["kind", fact.target])
    return fact.value


def _devices(ask: Ask, fact: Fact, number: str) -> str:
    return f"{_said(ask, ['devices', fact.target]):g}"


def _published(ask: Ask, fact: Fact, number: str) -> str:
    return str(_said(ask, ["published", fact.target])[fact.name])


def _packed_rows(ask: Ask, fact: Fact, number: str) -> str:
    return str(_tile(ask, fact.target, "f32", [1, 128])[0])


def _sub_byte(ask: Ask, fact: Fact, number: str) -> str:
    return str("E(4)" in _layout(ask, fact.target, "s4", [64, 256]))


def _large_tiles(ask: Ask, fact: Fact, number: str) -> str:
    grown = [
        ELEMENT_BITS[element]
        for element in ("u1", "u2", "u4", "u8", "u16", "u32")
        if _tile(ask, fact.target, element, [256, 128])[0] > _tile(ask, fact.target, element, [257, 128])[0]
    ]
    return ", ".join(map(str, sorted(grown))) or "none"


def _most(taken: Callable[[int], bool], recorded: int, step: int) -> int:
    """The most bytes that are taken, in steps: the recorded ones, where one step more is refused, else by halves."""
    if taken(recorded):
        if not taken(recorded + step):
            return recorded
        least, past = recorded // step + 1, PAST // step
    else:
        least, past = 0, recorded // step
    while past - least > 1:
        middle = (least + past) // 2
        least, past = (middle, past) if taken(middle * step) else (least, middle)
    return least * step


def _hbm(ask: Ask, fact: Fact, number: str) -> str:
    def taken(size: int) -> bool:
        array = ["f32", [size // KIB, 256], [1, 0], [[8, 128]], 0]
        return _taken(ask, ["unused", fact.target, [array]])

    return str(_most(taken, int(fact.value), MIB))


def _vmem(ask: Ask, fact: Fact, number: str, limit: int | None = 1 << 30) -> str:
    def taken(size: int) -> bool:
        # one operand in and one out, two buffers each: four blocks of f32
        rows = size // (4 * 4 * 128)
        block = {"array": f"f32[{4 * rows},128]", "block": [rows, 128], "index": "(i) -> (i, 0)"}
        kernel = {"kernel": {"grid": {"i": 4}, "inputs": [block], "outputs": [block]}}
        return _taken(ask, ["kernel", fact.target, kernel, limit])

    return str(_most(taken, int(fact.value), 16 * KIB))


def _vmem_begin(ask: Ask, fact: Fact, number: str) -> str:
    # an array that is too large to be in VMEM as a whole
    window = {"array": f"f32[1,{1 << 25}]", "block": [1, 128], "index": "(i) -> (0, i)"}
    alone = {"kernel": {"grid": {"i": 4}, "outputs": [window]}}
    behind = {"kernel": {**alone["kernel"], "scratch": [{"array": "f32[1,128]", "memory": "vmem"}]}}
    found = [_said(ask, ["kernel", fact.target, kernel])["vmem"] for kernel in (alone, behind)]
    if None in found:
        raise _NoAnswerError("the window's array is in VMEM as a whole")
    return str(found[1] - found[0])


def _extent_of_tile(ask: Ask, fact: Fact, number: str) -> str:
    found = {_tile(ask, name, "f32", [1024, 1024])[fact.name == "lanes"] for name in CHIPS}
    return ", ".join(map(str, sorted(found)))


def _default_layouts(ask: Ask, fact: Fact, number: str) -> str:
    wrong = []
    cases = [case.parsed for case in tpu_cases.arrays(ARRAYS, 0)]
    for name in CHIPS:
        said = _said(ask, ["defaults", [[name, layout.element_type, list(layout.dims)] for layout in cases]])
        for layout, text in zip(cases, said, strict=True):
            ours = str(default_layout(layout.dims, ELEMENT_BITS[layout.element_type], name))
            shape = f"{layout.element_type}[{','.join(map(str, layout.dims))}]"
            wrong += [] if text == ours else [f"{shape} on {name} is {text}, the rule says {ours}"]
    return _counted(wrong, ARRAYS * len(CHIPS))


def _six_bits(ask: Ask, fact: Fact, number: str) -> str:
    found = [_layout(ask, "v5e", element, [8, 128]) for element in ("f6e2m3fn", "f6e3m2fn")]
    return ", ".join(sorted(set(found)))


def _kernels(ask: Ask, fact: Fact, number: str, what: str = "kernel") -> str:
    """Of all kernels whatever is compared; `what` begins the differences that are meant."""
    wrong, asked = [], 0
    for case, name in zip(tpu_cases.kernels(KERNELS, 1), itertools.cycle(CHIPS), strict=False):
        kernel = tpu_kernels.kernel_of(case)
        if kernel is None:
            continue
        said = ask(["kernel", name, {"kernel": mapping_of(kernel)}])
        outcome = tpu_kernels.outcome(kernel, name, said, number)
        asked += isinstance(outcome, Agree | Disagree)
        if isinstance(outcome, Disagree) and outcome.what.startswith(what):
            wrong.append(f"{case.text} on {name}: {outcome.theirs}, the rule says {outcome.ours}")
    if not asked:
        raise _NoAnswerError("the compiler answered nothing of any kernel")
    return _counted(wrong, asked)


def _counted(wrong: list[str], asked: int) -> str:
    return f"{len(wrong)} of {asked} not: {shorten(wrong[0], 400)}" if wrong else AS_THE_RULE


def _one(array: str, block: str, index: str, role: str = "outputs", **more: object) -> JsonObject:
    """A kernel of eight programs with one operand, besides a plain output."""
    plain = {"array": "f32[8,128]", "block": [8, 128], "index": "(i) -> (0, 0)"}
    operand = {"array": array, "block": [*filter(None, block.split("; "))], "index": f"(i) -> ({index})", **more}
    both = {"outputs": [operand]} if role == "outputs" else {"inputs": [operand], "outputs": [plain]}
    return {"kernel": {"grid": {"i": 8}, **both}}


def _narrow_rows(ask: Ask, fact: Fact, number: str) -> str:
    return str(_taken(ask, ["kernel", "v5e", _one("s8[64,128]", "8; 128", "i, 0")]))


def _sums(ask: Ask, fact: Fact, number: str) -> str:
    windows = _one("f32[128,128]", "Element(8); Element(128)", "i*8 + 8, 0")
    return str(_taken(ask, ["kernel", "v5e", windows]))


def _scalars(ask: Ask, fact: Fact, number: str) -> str:
    found = []
    for memory, grid in itertools.product(("vmem", "smem"), (8, 0)):
        kernel = _one("f32[]", "", "", "inputs", memory=memory)
        if not grid:
            kernel["kernel"]["grid"] = {}
            for operand in (*kernel["kernel"]["inputs"], *kernel["kernel"]["outputs"]):
                operand["index"] = operand["index"].replace("(i)", "()")
        if _taken(ask, ["kernel", "v5e", kernel]):
            found.append(f"in {memory.upper()}, {'in a' if grid else 'without a'} grid")
    return " and ".join(found) or "refused"


def _refused_inputs(ask: Ask, fact: Fact, number: str) -> str:
    arrays = {name: _one(f"{name}[32,128]", "32; 128", "0, 0", "inputs") for name in ELEMENT_BITS}
    return ", ".join(sorted(name for name, kernel in arrays.items() if not _taken(ask, ["kernel", "v5e", kernel])))


def _empty_inputs(ask: Ask, fact: Fact, number: str) -> str:
    return "taken" if _taken(ask, ["kernel", "v5e", _one("s32[0]", "1", "0,", "inputs")]) else "refused"


FINDERS: Mapping[str, Callable[[Ask, Fact, str], str]] = {
    "kind": _kind,
    "topology": _topology,
    "devices": _devices,
    "packed_rows": _packed_rows,
    "sub_byte": _sub_byte,
    "large_tiles": _large_tiles,
    "hbm": _hbm,
    "vmem": _vmem,
    "vmem_scoped": partial(_vmem, limit=None),
    "vmem_begin": _vmem_begin,
    **dict.fromkeys(("cores", "smem", "bandwidth", "bf16", "int8", "fp8"), _published),
    "lanes": _extent_of_tile,
    "sublanes": _extent_of_tile,
    "window bytes": partial(_kernels, what="bytes"),
    "default layouts": _default_layouts,
    "layouts of 6 bits": _six_bits,
    "narrow_rows": _narrow_rows,
    "sums": _sums,
    "blocks of calls": _kernels,
    "scalars": _scalars,
    "refused inputs": _refused_inputs,
    "inputs without elements": _empty_inputs,
}
"""Name of a fact -> how it is found again: of (ask, the fact, the number of the compiler's version)."""
