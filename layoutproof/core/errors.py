"""The kinds of failure, by their cause: the input, the limits of a solver, or a bug of ours."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.core import problems
from layoutproof.core.message import restated


class LayoutError(ValueError):
    """The input is wrong: says the value, the rule it breaks, and the place.

    `text` is the text that was being read and `column` (1-based) where in it the problem starts;
    `file`, `line` are added by the reader of the file.

    >>> raise LayoutError("tile size 0 must be positive", text="f32[3]{0:T(0)}", column=12)
    Traceback (most recent call last):
    ...
    layoutproof.core.errors.LayoutError: tile size 0 must be positive
      f32[3]{0:T(0)}
                 ^ column 12
    """

    def __init__(
        self,
        problem: str,
        *,
        text: str = "",
        column: int | None = None,
        file: str = "",
        line: int | None = None,
    ) -> None:
        super().__init__(problem, text, column, file, line)
        self.problem = problem
        self.text = text
        self.column = column
        self.file = file
        self.line = line

    def at(self, file: str, line: int, column: int | None = None) -> LayoutError:
        """The same error, with where it stands in a file.

        Args:
            file: The file's path.
            line: 1-based.
            column: 1-based; None keeps the error's own.

        Returns:
            A new error.
        """
        shown = self.column if column is None else column
        return LayoutError(self.problem, text=self.text, column=shown, file=file, line=line)

    def __reduce__(self) -> tuple[object, ...]:
        fields = {"text": self.text, "column": self.column, "file": self.file, "line": self.line}
        return (_rebuild, (self.problem, fields))

    def __str__(self) -> str:
        lines = [self.problem]
        if self.file:
            spot = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
            lines[0] = f"{spot}: {self.problem}"
            if self.text:
                lines.append(f"  {shorten(self.text)}")
        elif self.text:
            start, shown = _window(self.text, self.column)
            lines.append(f"  {shown}")
            if self.column is not None:
                lines.append(" " * (1 + self.column - start) + f"^ column {self.column}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an operation on layouts has no result. `bool` of it is False, so `if result:` tells the two apart.

    text: in words.  position: the smallest element at which it shows, with what it needs (`wanted`) and what it would
    get (`got`); None where no single element shows it.
    """

    text: str
    position: int | None = None
    wanted: int | None = None
    got: int | None = None

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.text


class Undecided(Exception):
    """The answer is unknown, and the text says why. Catch this one; raise the kind that it is."""


class Unsupported(Undecided):
    """It cannot be decided here: an engine lacks the operation, a value is known at run time only, a rule is missing.

    More steps do not help. Another engine, known sizes or an assumption may.
    """


def not_installed(error: ModuleNotFoundError) -> Unsupported:
    """The exception for a missing library, as in a browser: one engine less, which is no error.

    >>> not_installed(ModuleNotFoundError("No module named 'islpy'", name="islpy"))
    Unsupported('islpy is not installed')
    """
    if error.name is None or error.name.startswith("layoutproof"):
        raise error
    return Unsupported(f"{error.name.partition('.')[0]} is not installed")


class BudgetExceeded(Undecided):
    """Its budget of steps, values or memory is spent. A larger `effort` may decide it."""


class NotSmallest(BudgetExceeded):
    """A solver has a violation, `point`, and cannot tell within its budget whether it is the smallest."""

    def __init__(self, reason: str, point: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__(reason)
        self.point = point


class InternalError(RuntimeError):
    """We are wrong: a refutation that does not replay, two engines that disagree. Never a verdict."""


def failure(error: Exception) -> str:
    """An internal error in one line, with its place: the user cannot fix it, and nothing is proved.

    >>> try:
    ...     {}["x"]
    ... except KeyError as error:
    ...     print(failure(error))
    layoutproof failed on this, please report it: KeyError: 'x' (<doctest layoutproof.core.errors.failure[0]>:2)
    """
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    place = "" if last is None else f" ({os.path.basename(last.tb_frame.f_code.co_filename)}:{last.tb_lineno})"
    said = shorten(f"{type(error).__name__}: {error}", 200)
    return f"layoutproof failed on this, please report it: {said}{place}"


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def shorten(text: str, width: int = 120) -> str:
    """At most `width` characters of `text` on one line, the middle left out.

    >>> shorten("f32[" + "1," * 100 + "1]", 20)
    'f32[1,1 ... ,1,1,1]'
    """
    flat = " ".join(text.split())
    if len(flat) <= width:
        return flat
    half = (width - 5) // 2
    return f"{flat[:half]} ... {flat[-half:]}"


def closest(word: object, known: Iterable[str], others: Mapping[str, str] | None = None) -> str:
    """`; did you mean 'x'?`, or "" when nothing is near.

    known: the names there are.  others: a common wrong name -> the name.

    >>> closest("injectve", ["injective", "padding"]), closest("zzz", ["padding"])
    ("; did you mean 'injective'?", '')
    >>> closest("TPU v5litepod-8", ["v5e", "v5p"], {"v5litepod": "v5e"})
    "; did you mean 'v5e'?"
    """
    import difflib

    names = {**{name.lower(): name for name in known}, **(others or {})}
    plain = str(word)[:60].lower()
    near = difflib.get_close_matches(plain, names, n=1, cutoff=0.6)
    return problems.DID_YOU_MEAN(names[near[0]]) if near else ""


def unknown_name(what: str, word: object, known: Iterable[str], others: Mapping[str, str] | None = None) -> LayoutError:
    """The error of an unknown name: its kind, the nearest name, and the known names.

    >>> str(unknown_name("engine", "digit", ["digits", "isl"]))
    "unknown engine 'digit'; did you mean 'digits'? Known: digits, isl"
    """
    names = list(known)
    near = closest(word, names, others)
    listed = ", ".join(names)
    rest = restated(f"{near} Known: {listed}", near, known=listed) if near else f"; known: {listed}"
    return LayoutError(problems.UNKNOWN_NAME(what, shorten(str(word), 40), rest))


def _window(text: str, column: int | None, width: int = 100) -> tuple[int, str]:
    flat = "".join(" " if c.isspace() else c for c in text)
    start = 0 if column is None else max(0, min(column - 1, len(flat)) - width // 2)
    return start, flat[start : start + width]


def _rebuild(problem: str, fields: dict[str, object]) -> LayoutError:
    return LayoutError(problem, **fields)  # type: ignore[arg-type]
