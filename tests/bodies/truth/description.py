"""A kernel as data: operands, scratch, tables, and a body of statements over expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

Shape = tuple[int, ...]


@dataclass(frozen=True)
class E:
    """An expression: a scalar (shape ()) or an array. args: expressions, and whatever else the operation needs."""

    op: str
    args: tuple[Any, ...] = ()
    shape: Shape = ()
    dtype: str = "i32"


@dataclass(frozen=True)
class Slice:
    """One dimension of a view: `size` elements from `start`, `stride` apart; `single`: an index, which drops it."""

    start: E
    size: int
    stride: int = 1
    single: bool = False


@dataclass(frozen=True)
class View:
    """A reference, or (slices) a part of it."""

    ref: str
    slices: tuple[Slice, ...] = ()


@dataclass(frozen=True)
class Ref:
    """Memory. role: in, out, scratch, fresh. memory: vmem, smem, hbm, dma or signal (semaphores).

    block: one (kind, size) per dimension of what has windows: ("blocked", 8), ("squeezed", 1), ("element", 8).  index:
    one scalar each.
    """

    name: str
    role: str
    shape: Shape
    dtype: str = "f32"
    memory: str = "vmem"
    block: tuple[tuple[str, int], ...] = ()
    index: tuple[E, ...] = ()
    low: int = 0
    high: int = 0

    @property
    def seen(self) -> Shape:
        """The shape that the body sees."""
        return tuple(size for kind, size in self.block if kind != "squeezed") if self.block else self.shape


@dataclass(frozen=True)
class Table:
    """A scalar-prefetch operand: `length` numbers, low <= number <= high. shape: where it has several dimensions."""

    name: str
    length: int
    low: int
    high: int
    shape: Shape = ()

    @property
    def dims(self) -> Shape:
        """Its extents."""
        return self.shape or (self.length,)


@dataclass(frozen=True)
class Let:
    """A name for a value."""

    name: str
    value: E


@dataclass(frozen=True)
class Store:
    """A store, of a part where the view says so, of some elements where the mask says so."""

    view: View
    value: E
    mask: E | None = None


@dataclass(frozen=True)
class When:
    """Statements under a condition, and the others. as `pl.when`, or one `lax.cond` where there are two."""

    condition: E
    then: tuple[Any, ...]
    otherwise: tuple[Any, ...] = ()


@dataclass(frozen=True)
class For:
    """Statements for start <= name < stop. kind: fori, while, unrolled."""

    name: str
    start: E
    stop: E
    body: tuple[Any, ...]
    kind: str = "fori"


@dataclass(frozen=True)
class Start:
    """A copy starts."""

    source: View
    target: View
    semaphore: View


@dataclass(frozen=True)
class Wait:
    """A wait for the bytes of a copy with this source."""

    source: View
    target: View
    semaphore: View


@dataclass(frozen=True)
class Signal:
    """A semaphore is counted up, or waited for and counted down."""

    semaphore: View
    amount: int
    wait: bool = False


@dataclass(frozen=True)
class Scoped:
    """`run_scoped`: memory for some statements."""

    refs: tuple[Ref, ...]
    body: tuple[Any, ...]


@dataclass(frozen=True)
class Description:
    """A kernel. parallel: how many of the first grid dimensions are. aliases: (input, output). notes: what slipped.

    assume: what is assumed of the tables, where that is more than their ranges.
    """

    seed: int
    grid: Shape
    parallel: int
    tables: tuple[Table, ...]
    inputs: tuple[Ref, ...]
    outputs: tuple[Ref, ...]
    scratch: tuple[Ref, ...]
    body: tuple[Any, ...]
    aliases: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()
    assume: tuple[str, ...] = ()


def parts(thing: Any) -> Iterator[Any]:
    """Everything in a description, itself first."""
    yield thing
    if isinstance(thing, tuple):
        for part in thing:
            yield from parts(part)
    elif hasattr(thing, "__dataclass_fields__"):
        for field in fields(thing):
            yield from parts(getattr(thing, field.name))


def shown(thing: Any, depth: int = 0) -> str:
    """A statement, an expression or a kernel in lines that people read."""
    pad = "    " * depth
    inner = depth + 1

    def block(body: tuple[Any, ...]) -> str:
        return "".join(shown(s, inner) for s in body)

    match thing:
        case E("int" | "float", (value,)):
            return str(value)
        case E("pid", (k,)):
            return f"p{k}"
        case E("name", (name,)):
            return str(name)
        case E("load", (view, mask)):
            return f"{shown(view)}" + (f" masked {shown(mask)}" if mask is not None else "")
        case E(op, (a, b)) if not op[0].isalpha() and isinstance(a, E) and isinstance(b, E):
            return f"({shown(a)} {op} {shown(b)})"
        case E(op, args, shape):
            return f"{op}({', '.join(shown(a) if not isinstance(a, (int, str)) else str(a) for a in args)})" + (
                f":{'x'.join(map(str, shape))}" if shape else ""
            )
        case Slice(start, size, stride, single):
            return shown(start) if single else f"{shown(start)}+:{size}" + (f":{stride}" if stride != 1 else "")
        case View(ref, slices):
            return f"{ref}[{', '.join(map(shown, slices))}]"
        case Let(name, value):
            return f"{pad}{name} = {shown(value)}\n"
        case Store(view, value, mask):
            return f"{pad}{shown(view)} := {shown(value)}" + (f" where {shown(mask)}" if mask else "") + "\n"
        case When(condition, then, otherwise):
            rest = f"{pad}else:\n{block(otherwise)}" if otherwise else ""
            return f"{pad}when {shown(condition)}:\n{block(then)}{rest}"
        case For(name, start, stop, body, kind):
            return f"{pad}{kind} {name} in {shown(start)}..{shown(stop)}:\n{block(body)}"
        case Start(source, target, semaphore):
            return f"{pad}start {shown(source)} -> {shown(target)} on {shown(semaphore)}\n"
        case Wait(source, _, semaphore):
            return f"{pad}wait for {shown(source)} on {shown(semaphore)}\n"
        case Signal(semaphore, amount, wait):
            return f"{pad}{'take' if wait else 'signal'} {amount} {shown(semaphore)}\n"
        case Scoped(refs, body):
            return f"{pad}scoped {', '.join(shown(r) for r in refs)}:\n{block(body)}"
        case Ref(name, role, shape, dtype, memory, blocks, index):
            sizes = [s if k == "blocked" else (k, s) for k, s in blocks]
            window = f" block {sizes} at ({', '.join(map(shown, index))})"
            return f"{role} {name} {dtype}{list(shape)} {memory}{window if blocks else ''}"
        case Description():
            head = f"seed {thing.seed}: grid {thing.grid}, {thing.parallel} parallel; {', '.join(thing.notes)}\n"
            refs = [*thing.tables, *thing.inputs, *thing.outputs, *thing.scratch]
            lines = "".join(f"  {r if isinstance(r, Table) else shown(r)}\n" for r in refs)
            aliases = f"  aliases {thing.aliases}\n" if thing.aliases else ""
            assumed = "".join(f"  assume {text}\n" for text in thing.assume)
            return head + lines + assumed + aliases + "".join(shown(s, 1) for s in thing.body)
        case tuple():
            return f"({', '.join(map(shown, thing))})"
    return str(thing)
