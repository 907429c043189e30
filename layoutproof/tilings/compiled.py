"""What the real TPU compiler says of tilings: compiled ahead of time in a child process, because it can abort."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from layoutproof.compiler.child import Answer
from layoutproof.compiler.libtpu import version
from layoutproof.compiler.tracing import permit
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.kernel.kernel import CompilerAnswer
from layoutproof.kernel.kernel_print import mapping_of
from layoutproof.tilings.branch import Candidate
from layoutproof.tilings.problem import Problem

_OWN_FAULT = re.compile(r"(Layout|Name|UnboundLocal|Type|Attribute|Import|ModuleNotFound|Syntax|Key|Index)Error: ")
"""What no compiler raises: the body is wrong, and no other tiling helps."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """One candidate. refused: the compiler's message.  unknown: why it said nothing.  asked: whether it was asked.

    stand_in: what was compiled has a body that writes zeros, because the file names none: its windows and scratch.
    """

    values: Mapping[str, int]
    refused: str = ""
    unknown: str = ""
    asked: bool = True
    stand_in: bool = False

    @property
    def accepted(self) -> bool | None:
        """Whether the compiler takes the kernel itself, None = unknown."""
        if self.refused:
            return False
        return None if self.unknown or self.stand_in else True

    @property
    def word(self) -> str:
        """The same in one word or two."""
        if not self.asked:
            return "not asked"
        if self.unknown:
            return "unknown"
        return "refused" if self.refused else "windows only" if self.stand_in else "accepted"


def asked(problem: Problem, found: Sequence[Candidate], known: Sequence[Compiled] = ()) -> tuple[Compiled, ...]:
    """What the compiler says of each, for all shapes of the problem; those in `known` are not asked again.

    Raises LayoutError where the kernel's body is not there or cannot be traced.
    """
    from layoutproof.tilings.declared_call import array_text
    from layoutproof.tilings.traced_compile import refused

    said = {tuple(one.values.values()): one for one in known}
    new = [one.values for one in found if tuple(one.values.values()) not in said]
    answers = [Answer("")] * len(new)
    try:
        if problem.body is not None:
            permit(problem.body, Path(problem.source).parent)
        for shape in problem.shapes:
            left = [k for k, answer in enumerate(answers) if answer.value == ""]
            kernels = [problem.bind(shape, new[k]) for k in left]
            if not kernels:
                break
            tables = [array_text(f"{'s' if t.signed else 'u'}{t.bits}", t.dims) for t in kernels[0].tables]
            inputs = [array_text(o.dtype, o.dims) for o in kernels[0].inputs]
            questions = []
            for k, kernel in zip(left, kernels, strict=True):
                named = {**shape.sizes, **new[k]}
                questions.append({"mapping": mapping_of(kernel), "body": problem.body or "", "named": named})
            place = "layoutproof.tilings.declared_call:call"
            said_now = refused(place, [*tables, *inputs], questions, problem.target)
            for k, answer in zip(left, said_now, strict=True):
                if _OWN_FAULT.match(answer.value or ""):
                    why = f"{problem.body or problem.name} cannot be traced: {answer.value}"
                    raise LayoutError(why, file=problem.source)
                answers[k] = answer
    except Undecided as undecided:
        return tuple(Compiled(one.values, unknown=str(undecided), asked=False) for one in found)
    for values, answer in zip(new, answers, strict=True):
        one = Compiled(values, answer.value or "", answer.problem, stand_in=not problem.body)
        said[tuple(values.values())] = one
    return tuple(said[tuple(one.values.values())] for one in found)


def answer_of(compiled: Compiled) -> CompilerAnswer | None:
    """What the compiler said of the user's kernel; None where it was not asked, or of another body."""
    if compiled.unknown or compiled.stand_in:
        return None
    return CompilerAnswer(compiled.refused, f"{version()}, ahead of time")


def refusing(refused: Mapping[tuple[int, ...], tuple[Candidate, str]], values: Mapping[str, int]) -> str:
    """What the compiler said of a candidate that it refused, "" of any other."""
    pair = refused.get(tuple(values.values()))
    return f"the compiler: {pair[1]}" if pair else ""
