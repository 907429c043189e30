"""The value of each instruction of a program, as a label, which ignores names, layouts, order, copies and fusions.

A label is a digest of the opcode, the result's shape without layout, the attributes of the instruction, and the
labels of its operands and of the computations that it runs. Copies, barriers, tuples that are taken apart again and
slices that are put together again pass on the label of their operand, and so does a fusion: the instructions in it are
labelled from the fusion's operands, in whichever order these are numbered. An operation that is started and waited for
is the operation; a bitcast is the reshape or the transpose that it stands for. The order of operands that
commute says nothing.

Each computation is gone through once, a fusion's once for each fusion: the time is linear in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import NamedTuple

from layoutproof.core.errors import LayoutError
from layoutproof.gating import problems
from layoutproof.gating.program import MOST_NESTED, OPENED, DumpInstruction, DumpProgram
from layoutproof.hlotext.texts import element_of, logical

_COMMUTE = frozenset(("add", "multiply", "maximum", "minimum", "and", "or", "xor", "after-all"))
_HANDS_ON = frozenset(("copy", "copy-start", "copy-done", "opt-barrier"))
_EFFECTS = frozenset(("custom-call", "outfeed", "send", "infeed"))
"""Instructions with side effects."""
_SIZE = 16
"""Bytes of a label: two that are different have the same one never, for all that a program can have."""
_DIMS = re.compile(r"\[([\d,]*)\](?:\{([\d,]*))?")
_CUTS = re.compile(r"\[(\d+):(\d+)\]")
MOST_OPENED = 2
"""How many times as long a program may become where computations are opened for each of several callers."""
MOST_RUNNING, RUN = 250, 2
"""Computations within one another; one that a loop, a branch or a reduction runs counts for so many more than one that
is opened, as it takes more of Python's stack."""
FREE = 10_000
"""Instructions for which the time is not asked."""
LABELLED = 1
"""How labels are made; another number whenever one program has other ones."""
Label = bytes


class InstructionLabel(NamedTuple):
    """The label of one instruction, by its parts. own: its opcode and attributes; given: of its operands, in their
    order.  runs: the results of the computations that it runs, for each.  shape: of the result, without layout.
    """

    what: DumpInstruction
    own: str
    shape: str
    given: tuple[Label, ...]
    runs: tuple[str, ...] = ()


class Tuple(NamedTuple):
    """A tuple whose elements are known."""

    label: Label
    parts: tuple[Value, ...]


class Started(NamedTuple):
    """An operation that was started. node: it, but for its result's shape, which the end of it says."""

    label: Label
    node: InstructionLabel


class Ahead(NamedTuple):
    """A computation that was started, with what it was given so far: libtpu for 7x gives it some at the start, some
    with an update.
    """

    label: Label
    called: str
    given: tuple[Value, ...]


Value = Label | Tuple | Started | Ahead
_UNKNOWN: Label = bytes(_SIZE)


class Labels:
    """The labels of one program.

    once: whether computations that several instructions call stay closed.  kept: whether `made` (label -> what) and
    `of` (label of each instruction, by computation and name) are filled.  results, effects: of each computation, its
    result as a function of its parameters, and its side effects.
    """

    __slots__ = (
        "_own",
        "_running",
        "_said",
        "_slices",
        "_stretched",
        "_times",
        "effects",
        "kept",
        "made",
        "of",
        "once",
        "program",
        "results",
    )

    def __init__(self, program: DumpProgram, once: bool = False, kept: bool = False) -> None:
        self.program, self.once, self.kept = program, once, kept
        self._times = Counter(each.calls for each in program.of(*OPENED) if each.calls)
        self._own: dict[tuple[int, str, str], tuple[str, bytes, bool]] = {}
        # the effect of a collective or a custom call, by its line
        self._said = {each.line: f"{each.what} {'' if each.alone else 'shared'}" for each in program.exchanges}
        self._said |= {each.line: f"{each.target} {each.said} {each.written}" for each in program.customs}
        self._stretched: dict[Label, tuple[Label, str]] = {}
        self._slices: dict[Label, tuple[Label, str, str]] = {}
        self._running = 0
        self.made: dict[Label, InstructionLabel] = {}
        self.of: dict[tuple[str, str], Label] = {}
        self.results: dict[str, Value] = {}
        self.effects: dict[str, tuple[Label, ...]] = {}

    def run(self) -> Labels:
        """Itself, with everything labelled that the program runs."""
        entry = self.entry
        # each computation stands before those that call it
        for name in self.program.named if self.once else ():
            self._result(name)
        if entry:
            self._result(entry)
        return self

    @property
    def entry(self) -> str:
        """The computation that the program starts with; "" of a text without one."""
        return next((n for n, inside in self.program.named.items() if any(i.entry for i in inside.values())), "")

    @property
    def result(self) -> Label | None:
        """The label of all that the program computes; None of a text without an entry."""
        return self.label(self.entry) if self.entry else None

    def label(self, computation: str) -> Label:
        """The result of a computation as a function of its parameters, and its side effects."""
        value = self._result(computation)
        effects = self.effects.get(computation, ())
        return self._tuple((value, *effects), b"with").label if effects else _of(value)

    def lengths(self) -> tuple[int, int]:
        """The program's instructions, as they stand and with each computation opened for each of its callers."""
        known: dict[str, int] = {}
        # a computation stands before those that call it
        for name, inside in self.program.named.items():
            known[name] = len(inside) + sum(known.get(i.calls, 0) for i in inside.values() if i.calls)
        whole = sum(length for name, length in known.items() if not self._times[name])
        return sum(map(len, self.program.named.values())), whole

    def _result(self, computation: str) -> Value:
        """The result of a computation as a function of its parameters."""
        if computation not in self.results:
            self.results[computation] = _UNKNOWN  # a broken text may call itself
            effects: set[Label] = set()
            self._running += RUN
            value = self._run(computation, None, effects, 0)
            self._running -= RUN
            self.results[computation] = value
            self.effects[computation] = tuple(sorted(effects))
        return self.results[computation]

    def _run(self, computation: str, inputs: list[Value] | None, effects: set[Label], depth: int) -> Value:
        """The value of a computation's result. inputs: its arguments, None for a computation by itself."""
        known: dict[str, Value] = {}
        result: Value = _UNKNOWN
        self._running += 1
        if self._running > MOST_RUNNING:
            raise LayoutError(problems.NESTED_TOO_DEEP(computation))
        for name, of in self.program.named.get(computation, {}).items():
            given = [known[each] if each in known else self._element(known, each) for each in of.operands]
            value = known[name] = self._value(of, given, inputs, effects, depth)
            if of.root:
                result = value
            if self.kept:
                self.of.setdefault((computation, name), _of(value))
        self._running -= 1
        return result

    def _value(
        self, of: DumpInstruction, given: list[Value], inputs: list[Value] | None, effects: set[Label], depth: int
    ) -> Value:
        opcode = of.opcode
        if opcode in _HANDS_ON and given:
            return given[0]
        if opcode == "parameter":
            return inputs[of.number] if inputs is not None and 0 <= of.number < len(inputs) else self._new(of, ())
        if opcode == "tuple":
            return self._gathered(of, given)
        if opcode == "get-tuple-element" and given:
            return self._part(given[0], of.element, of)
        if opcode.startswith("async-") and (opcode == "async-start" or (given and isinstance(given[0], Ahead))):
            return self._ahead(of, given, effects, depth)
        if of.calls and self._opened(of.calls, depth):
            return self._run(of.calls, given, effects, depth + 1)
        if opcode.endswith("-start"):
            own = f"{opcode.removesuffix('-start')}\0{self._says(of)}"
            node = InstructionLabel(of, own, "", tuple(map(_of, given)), of.runs)
            return Started(self._kept(node), node)
        if opcode.endswith("-done") and given and isinstance(given[0], Started):
            node = given[0].node._replace(shape=logical(of.shape))
            return self._sliced(self._kept(node), node)
        if opcode == "slice":
            made = InstructionLabel(of, f"slice\0{of.said}", logical(of.shape), tuple(map(_of, given)))
            return self._sliced(self._kept(made), made)
        if opcode == "concat-bitcast":
            whole = self._whole(given)
            return self._new(of, tuple(map(_of, given))) if whole is None else whole
        if opcode in ("bitcast", "reshape") and given:
            return self._stretch(of, _of(given[0]))
        label = self._new(of, tuple(map(_of, given)))
        if opcode in _EFFECTS:
            effects.add(label)
        return label

    def _gathered(self, of: DumpInstruction, given: list[Value]) -> Tuple:
        """The tuple that an instruction makes."""
        value = self._tuple(tuple(given))
        if self.kept:
            made = InstructionLabel(of, "tuple", logical(of.shape), tuple(map(_of, given)))
            self.made.setdefault(value.label, made)
        return value

    def _ahead(self, of: DumpInstruction, given: list[Value], effects: set[Label], depth: int) -> Value:
        """A computation that runs beside others: with its end it is what it computes of all that it was given."""
        known = given[0] if given and of.opcode != "async-start" else None
        called, before = (known.called, known.given) if isinstance(known, Ahead) else (of.calls, ())
        inputs = (*before, *(given if known is None else given[1:]))
        if of.opcode == "async-done" and self._opened(called, depth):
            return self._run(called, [*inputs], effects, depth + 1)
        parts = self._tuple(inputs, b"ahead" + (self.label(called) if called in self.program.named else b""))
        return Ahead(parts.label, called, inputs)

    def _opened(self, called: str, depth: int) -> bool:
        """Whether a computation is inlined into its caller."""
        few = not self.once or self._times[called] == 1
        return called in self.program.named and few and depth < MOST_NESTED

    def _new(self, of: DumpInstruction, given: tuple[Label, ...]) -> Label:
        said = self._says(of)
        key = (of.number, of.shape, of.opcode if not said else f"{of.opcode}\0{said}")
        own = self._own.get(key)
        if own is None:
            text = key[2] if of.number < 0 else f"parameter {of.number}"
            shape = logical(of.shape)
            own = (text, f"{text}\0{shape}\0".encode(errors="surrogatepass"), commutes(text))
            self._own[key] = own
        called = of.runs or ((of.calls,) if of.calls else ())
        runs = b"".join([self.label(each) for each in called]) if called else b""
        label = blake2b(b"".join((own[1], runs, *(sorted(given) if own[2] else given))), digest_size=_SIZE).digest()
        if self.kept and label not in self.made:
            self.made[label] = InstructionLabel(of, own[0], logical(of.shape), given, called)
        return label

    def _says(self, of: DumpInstruction) -> str:
        return of.said or self._said.get(of.line, "")

    def _kept(self, node: InstructionLabel) -> Label:
        """The label of what has no instruction of exactly its shape and opcode."""
        own = f"{node.own}\0{node.shape}\0".encode(errors="surrogatepass")
        runs = [self.label(each) for each in node.runs]
        label = blake2b(b"".join((own, *runs, *node.given)), digest_size=_SIZE).digest()
        if self.kept:
            self.made.setdefault(label, node)
        return label

    def _tuple(self, parts: tuple[Value, ...], kind: bytes = b"tuple") -> Tuple:
        label = blake2b(b"".join((kind, *map(_of, parts))), digest_size=_SIZE).digest()
        return Tuple(label, parts)

    def _element(self, known: dict[str, Value], operand: str) -> Value:
        """An element of a tuple that is named with the operand, as jaxlib 0.12 prints it."""
        name, path = element_of(operand)
        value = known.get(name, _UNKNOWN)
        for each in path:
            value = self._part(value, each, None)
        return value

    def _part(self, value: Value, element: int, of: DumpInstruction | None) -> Value:
        if isinstance(value, Tuple) and 0 <= element < len(value.parts):
            return value.parts[element]
        of = of or self._any()
        return self._kept(InstructionLabel(of, f"element {element}", "", (_of(value),)))

    def _any(self) -> DumpInstruction:
        return next(iter(self.program.instructions))

    def _sliced(self, label: Label, node: InstructionLabel) -> Label:
        """The label of a slice, from which the whole is found again."""
        if node.given and node.own.startswith("slice\0") and label not in self._slices:
            source = self.program.operand(node.what)
            cut = [int(high) - int(low) for low, high in _CUTS.findall(node.own)]
            typed = source is not None and source.shape.partition("[")[0] == node.shape.partition("[")[0]
            if source is not None and typed and cut == _sizes(node.shape):
                self._slices[label] = (node.given[0], node.own, logical(source.shape))
        return label

    def _whole(self, given: list[Value]) -> Label | None:
        """The array that concatenated slices were cut from, where they are all of it and in their order."""
        pieces = [self._slices.get(_of(each)) for each in given]
        if not pieces or any(piece is None or piece[:1] != pieces[0][:1] for piece in pieces):  # type: ignore[index]
            return None
        base, _, shape = pieces[0]  # type: ignore[misc]
        return base if _fill([piece[1] for piece in pieces if piece], shape) else None

    def _stretch(self, of: DumpInstruction, given: Label) -> Label:
        """A reshape, or a bitcast by what it stands for. A reshape of a reshape is one, and of its own shape none."""
        operand = self.program.operand(of)
        source, target = "" if operand is None else operand.shape, of.shape
        how = "reshape" if of.opcode == "reshape" else _bitcast(source, target)
        shape = logical(target)
        if how != "reshape":
            return given if not how else self._kept(InstructionLabel(of, how, shape, (given,)))
        base, was = self._stretched.get(given, (given, logical(source)))
        if was == shape:
            return base
        label = self._kept(InstructionLabel(of, how, shape, (base,)))
        self._stretched.setdefault(label, (base, was))
        return label


def computes(program: DumpProgram) -> str:
    """The digest of a program's values by its labels, as text, after the version of the labels.

    A Mosaic kernel counts as what is around it: of its body `custom_calls` says what changed, and its bytes hold places
    of the source. "" of a program without an entry, and of one whose computations are nested too deep.
    """
    program = replace(program, customs=[replace(each, written="") for each in program.customs])
    try:
        length, whole = Labels(program).lengths()
        result = Labels(program, _is_long(length, whole)).result
    except LayoutError:
        return ""
    return "" if result is None else f"{LABELLED}:{result.hex()}"


def _is_long(length: int, whole: int) -> bool:
    return whole > MOST_OPENED * length + FREE


class LabelledPair:
    """Two programs, labelled alike, on first use."""

    def __init__(self, before: DumpProgram, after: DumpProgram) -> None:
        self.before, self.after = before, after

    @cached_property
    def _once(self) -> bool:
        lengths = [Labels(each).lengths() for each in (self.before, self.after)]
        return any(_is_long(length, whole) for length, whole in lengths)

    @cached_property
    def alike(self) -> bool:
        """Whether both compute the same; also where one has no entry that computes anything."""
        one, other = (Labels(each, self._once).result for each in (self.before, self.after))
        return one is None or other is None or one == other

    @cached_property
    def kept(self) -> tuple[Labels, Labels]:
        """The labels of both, with what has them."""
        return Labels(self.before, self._once, kept=True).run(), Labels(self.after, self._once, kept=True).run()

    def label_of(self, of: DumpInstruction) -> Label | None:
        """The label of an instruction of the old or of the new program; None where nothing runs it."""
        old = self.before.named.get(of.computation, {}).get(of.name)
        return self.kept[0 if old is of else 1].of.get((of.computation, of.name))


def commutes(own: str) -> bool:
    """Whether the order of operands says nothing. own: the opcode and what it says."""
    opcode, _, said = own.partition("\0")
    return opcode in _COMMUTE or (opcode == "compare" and ("=EQ" in said or "=NE" in said))


def _of(value: Value) -> Label:
    return value if isinstance(value, bytes) else value.label


@lru_cache(maxsize=4096)
def _bitcast(source: str, target: str) -> str:
    """The operation of a bitcast by its dimensions, in the order of memory: a reshape, a transpose, else itself.

    Tiles are no part of it: whether it is sound is a question of its own.

    >>> _bitcast("f32[8,128]{1,0:T(8,128)}", "f32[1,1024]{1,0:T(1,128)}")
    'reshape'
    >>> _bitcast("f32[8,128]{1,0:T(8,128)}", "f32[128,8]{0,1:T(8,128)}")
    'transpose\\x00dimensions={1,0}'
    >>> _bitcast("f32[8,128]{1,0}", "f32[8,128]{1,0}")
    ''
    """
    if source.partition("[")[0] != target.partition("[")[0]:
        return f"bitcast\0{source.partition('[')[0]}"
    one, other = _physical(source), _physical(target)
    if one is None or other is None:
        return "bitcast"
    if logical(source) == logical(target) and [at for at, _ in one] == [at for at, _ in other]:
        return ""
    ascends = [[at for at, _ in side] == sorted(at for at, _ in side) for side in (one, other)]
    if all(ascends):
        return "reshape"
    if [size for _, size in one] == [size for _, size in other]:
        # dimension k of the target is the one of the source that lies where it lies
        sources = [at for _, at in sorted((to, at) for (at, _), (to, _) in zip(one, other, strict=True))]
        if sources == sorted(sources):
            return "reshape"
        if len(one) == len(_sizes(source)) == len(_sizes(target)):
            return f"transpose\0dimensions={{{','.join(map(str, sources))}}}"
        return f"transpose\0{sources}"
    return f"bitcast\0{[at for at, _ in one]}{[at for at, _ in other]}"


def _sizes(shape: str) -> list[int]:
    found = _DIMS.search(shape)
    return [int(size) for size in found[1].split(",") if size] if found else []


def _physical(shape: str) -> list[tuple[int, int]] | None:
    """(dimension, extent) from the outermost in memory, those of one element left out; None where it is not told."""
    found = _DIMS.search(shape)
    if found is None or shape.startswith("("):
        return None
    sizes = _sizes(shape)
    order = [int(at) for at in (found[2] or "").split(",") if at] or [*range(len(sizes))][::-1]
    if sorted(order) != [*range(len(sizes))]:
        return None
    return [(at, sizes[at]) for at in reversed(order) if sizes[at] != 1]


def _fill(cuts: list[str], shape: str) -> bool:
    """Whether slices, by what they say, are all of an array one after the other along one dimension.

    >>> _fill(["slice={[0:2], [0:8]}", "slice={[2:5], [0:8]}"], "f32[5,8]")
    True
    >>> _fill(["slice={[0:2], [0:8]}", "slice={[3:5], [0:8]}"], "f32[5,8]")
    False
    """
    sizes = _sizes(shape)
    boxes = [[(int(low), int(high)) for low, high in _CUTS.findall(cut)] for cut in cuts]
    if any(len(box) != len(sizes) for box in boxes):
        return False
    cut = [k for k, size in enumerate(sizes) if any(box[k] != (0, size) for box in boxes)]
    if len(cut) != 1:
        return not cut and len(boxes) == 1
    ends = [0, *(box[cut[0]][1] for box in boxes)]
    return all(box[cut[0]][0] == end for box, end in zip(boxes, ends, strict=False)) and ends[-1] == sizes[cut[0]]
