"""`lp.why`: the meaning of a pasted message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypedDict

from layoutproof.answers import problems
from layoutproof.core.document import Doc, Document, envelope
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import Answer, Finding, exit_code
from layoutproof.hardware.tpu_chips import generation
from layoutproof.messages.explanation import Explanation, MessageArray, human
from layoutproof.messages.read import read


class ArrayEntry(TypedDict):
    shape: str
    printed: Annotated[str, Doc("its size in the message's own words")]
    bytes: Annotated[int, Doc("as computed here, -1 where it cannot be")]
    unpadded: int
    agrees: Annotated[bool | None, Doc("whether the computed size is the printed one; null where none is printed")]
    count: int
    padded: list[str]
    made_by: str
    kind: str
    fixes: list[str]
    note: str


class MessageEntry(TypedDict):
    kind: str
    line: int
    said: str
    cause: Annotated[str, Doc("empty where it is not known")]
    reason: Annotated[str, Doc("why the cause is not known")]
    arrays: list[ArrayEntry]
    fixes: list[str]
    notes: list[str]
    source: str


class WhyDocument(Document):
    """The meaning of the messages of a pasted text."""

    messages: list[MessageEntry]


@dataclass(frozen=True, slots=True)
class Why(Answer):
    """The meaning of the messages of a text, in the order of their lines."""

    messages: tuple[Explanation, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One for each message, whether its cause is known, and one for each size that is not the printed one."""
        return tuple(finding for message in self.messages for finding in message.findings())

    @property
    def exit_code(self) -> int:
        """0 every cause is known, 1 a printed size is not ours, 3 a cause is not known."""
        return exit_code(self.findings)

    def __str__(self) -> str:
        return "\n\n".join(_text(message) for message in self.messages)

    def as_dict(self) -> WhyDocument:
        """What `layoutproof why --json` prints."""
        return {**envelope(self.exit_code), "messages": [_data(message) for message in self.messages]}


def why(text: str, *, target: str | None = None) -> Why:
    """Explain a pasted message: which arrays, how large and why, which change of the program would avoid it.

    Args:
        text: An out-of-memory report, a warning of the SPMD partitioner, an error of JAX's about
            shardings, donation or a Pallas kernel, a line of HLO or MLIR, a shape.
        target: The TPU generation that fixes and default layouts are for; by default v4 and later.

    Returns:
        The messages: `messages`, `findings`, `exit_code`; `str` is what the command prints. Sizes are bytes, computed
        from the shapes and compared with those that the text prints.

    Raises:
        LayoutError: Nothing in the text is known, or the target is not.

    >>> print(why("Shared memory size limit exceeded: requested 4194304, available: 101376"))
    line 1: out of shared memory
      said     Shared memory size limit exceeded: requested 4194304, available: 101376
      cause    the blocks of one program take 4194304 bytes of a GPU's shared memory, which has 101376
      fix      blocks of at most 101376 bytes together: 42 times smaller
    """
    if not isinstance(text, str):
        raise LayoutError(problems.MESSAGE_TYPE(shorten(repr(text), 60)))
    return Why(read(text, None if target is None else generation(target)))


def _text(message: Explanation) -> str:
    lines = [f"line {message.line}: {message.kind}", f"  said     {message.said}"]
    lines.append(f"  cause    {message.cause}" if message.cause else f"  unknown  {message.reason}")
    for number, each in enumerate(message.arrays, 1):
        lines += _array_lines(number, each)
    lines += [f"  fix      {fix}" for fix in message.fixes]
    lines += [f"  note     {note}" for note in message.notes]
    return "\n".join(lines)


def _array_lines(number: int, one: MessageArray) -> list[str]:
    times = f"{one.count} x " if one.count > 1 else ""
    size = f"{human(one.size)} ({one.size} bytes), {human(one.unpadded)} without padding" if one.size >= 0 else ""
    said = {True: ", as printed", False: f", but {one.printed} is printed", None: ""}[one.agrees]
    lines = [f"  array {number:<2} {times}{one.shape}" + (f": {size}{said}" if size else "")]
    lines += [f"           {what}" for what in (*one.padded, one.kind, one.made_by, one.note) if what]
    return lines


def _data(message: Explanation) -> MessageEntry:
    arrays: list[ArrayEntry] = [
        {
            "shape": each.shape,
            "printed": each.printed,
            "bytes": each.size,
            "unpadded": each.unpadded,
            "agrees": each.agrees,
            "count": each.count,
            "padded": list(each.padded),
            "made_by": each.made_by,
            "kind": each.kind,
            "fixes": list(each.fixes),
            "note": each.note,
        }
        for each in message.arrays
    ]
    return {
        "kind": message.kind,
        "line": message.line,
        "said": message.said,
        "cause": message.cause,
        "reason": message.reason,
        "arrays": arrays,
        "fixes": list(message.fixes),
        "notes": list(message.notes),
        "source": message.source,
    }
