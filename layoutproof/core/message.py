"""Messages: texts that say which message they are, and with what.

A reason or a problem is a text, and goes where texts go. One that a `Template` makes has an id besides, which stays the
same where the words are bettered, and the values that were filled in. Programs and tests compare these; the words are
for people. As with `markupsafe.Markup`, what is cut from such a text or joined to it is a plain text again; what
`located` and `restated` make is the message still.

Templates stand in `problems.py` of a package, or in the file of the one rule that uses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import Formatter


class Message(str):
    """A text of the product.

    Attributes:
        id: The message, as `package.what`: `kernel.block_rank`. It never changes.
        figures: The values that were filled in, by name.
    """

    __slots__ = ("figures", "id")
    id: str
    figures: Mapping[str, object]

    def __new__(cls, text: str, id: str, figures: Mapping[str, object]) -> Message:
        """The text with its id and its values."""
        made = super().__new__(cls, text)
        made.id, made.figures = id, figures
        return made

    def __str__(self) -> str:
        # pytest sends what str gives of an exception to other processes, and pytest-xdist takes plain texts only
        return str.__str__(self)

    def __reduce__(self) -> tuple[object, ...]:
        return (
            Message,
            (str.__str__(self), self.id, {name: plain_figure(value) for name, value in self.figures.items()}),
        )


@dataclass(frozen=True, slots=True)
class Template:
    """The words of one message.

    Attributes:
        id: The message, `package.what`; one id has one template.
        words: The text; `{name}` stands for a value, as in `str.format`.

    >>> RANK = Template("kernel.block_rank", "block has {block} dimensions, and the array has {array}")
    >>> said = RANK(1, 2)
    >>> said == "block has 1 dimensions, and the array has 2", said.id, said.figures
    (True, 'kernel.block_rank', {'block': 1, 'array': 2})
    """

    id: str
    words: str

    def names(self) -> tuple[str, ...]:
        """The values that it takes, in the order of the text, each once."""
        return _names(self.words)

    def __call__(self, *values: object) -> Message:
        """The text with values, one for each of its names; of an exception what it says, if that is a message too."""
        said = [message_of(value) if isinstance(value, Exception) else value for value in values]
        figures = dict(zip(_names(self.words), said, strict=True))
        return Message(self.words.format_map(figures), self.id, figures)


@lru_cache(maxsize=2048)
def _names(words: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for _, name, *_ in Formatter().parse(words) if name))


def message_of(error: Exception) -> str:
    """What an error says: its message where it was given one, which `str` makes a plain text.

    Args:
        error: Any exception.

    Returns:
        The message, or the text.

    >>> brief(message_of(ValueError(Template("kernel.word", "{word!r} is no word")("a b"))))
    "kernel.word(word='a b')"
    """
    text, *_ = error.args or ("",)
    return text if isinstance(text, Message) and text == str(error) else str(error)


def located(where: str, text: str) -> str:
    """A message with the part of the input that it is about in front.

    Args:
        where: The part, as `inputs[0]`.
        text: The message.

    Returns:
        `where: text`; of a message the same one, with `at` as one more value.

    >>> brief(located("inputs[0]", Template("kernel.word", "{word!r} is no word")("a b")))
    "kernel.word(word='a b', at='inputs[0]')"
    """
    inner = text.figures.get("at") if isinstance(text, Message) else None
    return restated(f"{where}: {text}", text, at=where if inner is None else f"{where}: {inner}")


def restated(text: str, of: str, **figures: object) -> str:
    """A text that says a message with more around it.

    Args:
        text: All of it.
        of: The message that it says.
        figures: Further values.

    Returns:
        The text; of a message the same one.
    """
    return Message(text, of.id, {**of.figures, **figures}) if isinstance(of, Message) else text


def extended(text: str, rest: str) -> str:
    """A text with more at its end.

    Args:
        text: The text.
        rest: What follows it.

    Returns:
        Both; of a message the same one.

    >>> brief(extended(Template("kernel.word", "{word!r} is no word")("a b"), "; words: a"))
    "kernel.word(word='a b')"
    """
    return restated(f"{text}{rest}", text)


def listing(texts: Sequence[str], between: str = "; ") -> str:
    """Several texts as one.

    Args:
        texts: The texts.
        between: What stands between two of them.

    Returns:
        All of them; the message that the first one is.

    >>> brief(listing([Template("kernel.word", "{word!r} is no word")("a b"), "and more"]))
    "kernel.word(word='a b')"
    """
    return restated(between.join(texts), texts[0]) if texts else ""


def brief(text: str) -> str:
    """A message as tests compare it.

    Args:
        text: Any text.

    Returns:
        Its id and its values, of which some may be messages; the text itself where it is no message.

    >>> brief(Template("axe.twice", "{word!r} stands twice")("on")), brief("no message")
    ("axe.twice(word='on')", 'no message')
    """
    if not isinstance(text, Message):
        return text
    values = ((n, brief(v) if isinstance(v, Message) else repr(plain_figure(v))) for n, v in text.figures.items())
    return f"{text.id}({', '.join(f'{name}={value}' for name, value in values)})"


def plain_figure(value: object) -> object:
    """A value as plain data: what is no message, number, truth value or None is its text."""
    return value if value is None or isinstance(value, bool | int | float | Message) else str(value)
