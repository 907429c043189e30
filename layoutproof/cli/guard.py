"""`with layoutproof.guard():` checks every Pallas call that is traced inside, without a changed line.

with layoutproof.guard(target="v5e"):
    my_test()                      # jit-ed, called, lowered, in interpret mode: all are traced
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutproof.cli import problems
from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict

if TYPE_CHECKING:
    from layoutproof.kernel.kernel import Kernel, Unmodelled
    from layoutproof.pallas.findings import Judged


class KernelError(Exception):
    """A Pallas call is wrong; the text is the report. No LayoutError: those say that the question is wrong.

    calls: the refuted calls, with their findings.
    """

    def __init__(self, report: str, calls: tuple[Judged, ...] = ()) -> None:
        super().__init__(report, calls)
        self.report = report
        self.calls = calls

    def __str__(self) -> str:
        return self.report


class KernelWarning(UserWarning):
    """A Pallas call was traced and it is unknown whether it is right, or none was; with on="warn": one is wrong."""


class Judge:
    """Judges calls, each distinct one once. target: as for `guard`.  strict_tables: as for `lp.kernels`."""

    def __init__(self, target: str | None = None, strict_tables: bool = False) -> None:
        self.target = target
        self.strict_tables = strict_tables
        self._known: dict[str, Judged] = {}

    def of(self, calls: tuple[Kernel | Unmodelled, ...], assume: Sequence[str] = ()) -> dict[str, Judged]:
        """The findings of these calls, in order, equal ones once, by a key that is the same in every process.

        assume: conditions on scalar prefetch operands; each is for the calls that have the table.
        """
        from layoutproof.kernel.kernel import Kernel
        from layoutproof.kernel.table_assumptions import check_tables, with_assumptions
        from layoutproof.pallas.findings import judged, key_of

        if assume:
            check_tables(calls, assume)
        found: dict[str, Judged] = {}
        for call in calls:
            if isinstance(call, Kernel):
                # where in its program it stands makes no other call of it
                call = replace(call, last=False)
                call = with_assumptions(call, assume, strict=False) if assume else call
            key = hashlib.sha256(key_of(call).encode(errors="backslashreplace")).hexdigest()
            if key not in self._known:
                self._known[key] = judged(call, target=self.target, strict_tables=self.strict_tables)
            found[key] = self._known[key]
        return found


class SeenCalls:
    """The calls that a guard has seen. calls: the distinct calls with their findings, complete when the guard ends."""

    def __init__(self) -> None:
        self.calls: tuple[Judged, ...] = ()


@contextmanager
def guard(target: str | None = None, on: str = "raise") -> Iterator[SeenCalls]:
    """Check every Pallas call that is traced inside of a `with` block, when the block ends.

    An unknown call is always a KernelWarning, and so is a block without any call. Findings of severity warning or info
    stand in `calls` of what the guard gives. An exception of the block itself goes on, with the report as a note.

    JAX traces a function once per shape. A function in the jit cache when the guard starts is not traced again, and so
    not checked; `jax.clear_caches()` before the guard makes it trace. Of a call outside of any jit every output counts
    as used. The hook is for the whole process, all threads.

    Args:
        target: Also check the rules of this hardware, e.g. "v5e"; None checks only those of all hardware.
        on: The reaction to a refutation: "raise" a KernelError, or "warn".

    Yields:
        The calls that the guard has seen: `calls`, complete when the block ends.

    Raises:
        KernelError: Something is refuted and `on` is "raise".
        LayoutError: The target or `on` is unknown, or JAX is missing.
    """
    if on not in ("raise", "warn"):
        raise LayoutError(problems.GUARD_ON(on))
    if target is not None:
        from layoutproof.pallas.judge import kernel_target

        kernel_target(target)
    if "jax" not in sys.modules and importlib.util.find_spec("jax") is None:
        raise LayoutError(problems.GUARD_WITHOUT_JAX())
    from layoutproof.pallas.from_jax.hook import traced

    seen, found = SeenCalls(), list["Kernel | Unmodelled"]()
    try:
        with traced(lambda calls, _: found.extend(calls)):
            yield seen
    except BaseException as error:
        seen.calls = tuple(Judge(target).of(tuple(found)).values())
        wrong = refuted(seen.calls)
        if wrong:
            error.add_note(f"layoutproof: {report_of(wrong)}")
        raise
    seen.calls = tuple(Judge(target).of(tuple(found)).values())
    if not found:
        nothing = problems.GUARD_NO_CALL()
        warnings.warn(nothing, KernelWarning, stacklevel=3)
    for call in seen.calls:
        if call.verdict is Verdict.UNKNOWN:
            warnings.warn(report_of((call,)), KernelWarning, stacklevel=3)
    wrong = refuted(seen.calls)
    if wrong and on == "raise":
        raise KernelError(report_of(wrong), wrong)
    for call in wrong:
        warnings.warn(report_of((call,)), KernelWarning, stacklevel=3)


def refuted(calls: tuple[Judged, ...]) -> tuple[Judged, ...]:
    """Those of which something is an error."""
    return tuple(call for call in calls if call.verdict is Verdict.REFUTED)


def report_of(calls: tuple[Judged, ...]) -> str:
    """The report as `layoutproof kernels` prints it."""
    from layoutproof.pallas.report import text

    return text(calls)
