"""`lp.compile`: programs compiled ahead of time, and their records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from layoutproof.answers import problems
from layoutproof.core.document import Doc, Document, Exactly, envelope
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import DUMP_ENDS
from layoutproof.core.finding import Answer, Finding, FindingEntry, as_dict, exit_code, text
from layoutproof.programs import report
from layoutproof.programs.advice import Advice, AdviceEntry, advice
from layoutproof.programs.compile import CPU, LONGEST, Asked, Made, completed, made
from layoutproof.programs.reading import read_program, record_of
from layoutproof.programs.record import Provenance, Record


class CompileDocument(Document):
    """The records of compiled programs."""

    records: list[Annotated[dict[str, Any], Exactly(Record)]]
    findings: Annotated[list[FindingEntry], Doc("why there is no record of the rest")]
    tried: Annotated[list[AdviceEntry], Doc("with --try, for each record")]


@dataclass(frozen=True, slots=True)
class Programs(Answer):
    """records: of the compiled programs, in the order of the request.  texts: the compiled program of each.
    problems: why there is no record of the rest.  top: lines of each list of the report.  advice: the candidates tried
    for each record, where that was asked for.  same: likewise, whether each computes what its source says.
    bugs: the known bugs of the compiler that the programs meet, which decide no exit code."""

    records: tuple[Record, ...]
    problems: tuple[Finding, ...] = ()
    texts: tuple[str, ...] = ()
    top: int = 5
    advice: tuple[Advice, ...] = ()
    same: tuple[Finding, ...] = ()
    bugs: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Why a program has no record, why no candidate could be tried, whether each program computes what its
        source says, and the known bugs that it meets."""
        tried = (finding for each in self.advice for finding in each.findings)
        return (*self.problems, *tried, *self.same, *self.bugs)

    @property
    def exit_code(self) -> int:
        """0 all compiled, 1 a compiler refused one, 2 bad input, 3 not installed, time limit or abort; likewise 1 where
        one computes something else than its source, and 3 where that is unknown."""
        return exit_code(self.findings)

    def __str__(self) -> str:
        blocks = [report.text(record, self.top) for record in self.records]
        blocks += filter(None, map(str, self.advice))
        return "\n\n".join([*blocks, *map(text, self.findings)])

    def as_dict(self) -> CompileDocument:
        """What `layoutproof compile --json` prints."""
        return {
            **envelope(self.exit_code),
            "records": [each.as_dict() for each in self.records],
            "findings": list(map(as_dict, self.findings)),
            "tried": [each.as_dict() for each in self.advice],
        }


def compile(
    program: object,
    *args: object,
    target: str | Sequence[str] = (),
    topology: str = "",
    mesh: Mapping[str, int] | None = None,
    in_specs: Sequence[str] = (),
    out_specs: Sequence[str] = (),
    donate: Sequence[int] = (),
    flags: Mapping[str, str] | None = None,
    libtpu: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    seconds: float = LONGEST,
    top: int = 5,
    try_: bool = False,
    same: bool = False,
    schedule: bool = False,
    **kwargs: object,
) -> Programs:
    """Compile a program ahead of time, for a TPU that is not there or for the CPU, and record its compiler's figures.

    A function is traced and compiled in a process of its own. A compiled program is read.

    Args:
        program: `package.module:function` or `file.py:function`; the path of a file of `jax.export`; a dump's path, its
            text (several lines), or what has it as `as_text()`, such as `jax.jit(f).lower(x).compile()`.
        args: Of a function: shapes such as "bf16[8,128]", Python literals as text, dicts and lists of them.
        target: A TPU generation, or several; "cpu", the default, needs JAX alone.
        topology: Chips, such as "2x2"; one chip by default.
        mesh: Axis to size, in the order of the devices. Of a dump it names the axes of collectives.
        in_specs: For each argument "P('data', None)"; replicated where there is none.
        out_specs: The same for each result; the compiler chooses by default.
        donate: Arguments, by number, whose buffers the program may take.
        flags: Options of the compiler.
        libtpu: Where another libtpu is, or several; the installed one by default.
        seconds: That one program may take.
        top: Lines of each list of the report.
        try_: Compile a function again with each candidate (layouts, donation, padding); `advice` says which helped.
        same: Compare what the compiler made of a function with the function, at random points of prime fields and on
            float64; `same` says what came of it.
        schedule: Have the compiler simulate its schedule too: the cycles of each operation, in `schedule` of a record.
        kwargs: Of a function, as args.

    Returns:
        The records: `records`, with the `texts` they were read from; `findings` say why one is missing; `exit_code`;
        `str` the report; `advice`, with `try_`.

    Raises:
        LayoutError: There is no program. A mistake in one of several is a finding.

    >>> compile("HloModule m\\nENTRY e {\\n  ROOT p = f32[8,128]{1,0} parameter(0)\\n}").records[0].entry_bytes
    4096
    """
    if not is_function(program):
        if try_ or same or schedule:
            raise LayoutError(problems.COMPILED_ALREADY())
        return of_compiled(program, mesh or {}, top)
    asked = asked_for(
        str(program),
        [target] if isinstance(target, str) else target,
        [libtpu] if isinstance(libtpu, str | PathLike) else libtpu,
        args=args,
        kwargs=kwargs,
        topology=topology,
        mesh=dict(mesh or {}),
        ins=tuple(in_specs),
        outs=tuple(out_specs),
        donate=tuple(donate),
        flags=dict(flags or {}),
        same=same,
        schedule=schedule,
    )
    found = made(asked, seconds)
    return gathered(with_advice(found, seconds) if try_ else ((each, None) for each in found), top)


def with_advice(
    found: Iterable[Made],
    seconds: float = LONGEST,
    memory: int | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Iterator[tuple[Made, Advice | None]]:
    """Each program that was compiled, with what was tried for it. seconds, memory: that one candidate may take."""
    for each in found:
        yield each, None if each.record is None else advice(each.asked, seconds, memory, progress)


def asked_for(
    program: str, targets: Sequence[str], libraries: Sequence[str | PathLike[str]], **about: Any
) -> list[Asked]:
    """One program for each target and each compiler."""
    several = len(targets) > 1
    return [
        # beside TPUs, the CPU has the mesh alone
        Asked(
            program,
            target=target,
            libtpu=str(library),
            **(about | ({"topology": ""} if several and target == CPU else {})),
        )
        for target in targets or (CPU,)
        for library in (libraries if target != CPU else ()) or ("",)
    ]


def gathered(found: Iterable[tuple[Made, Advice | None]], top: int = 5) -> Programs:
    """One answer of what came of each, and of what was tried for it."""
    records, texts, unread, tried, same = [], [], [], [], []
    bugs: list[Finding] = []
    for each, about in found:
        bugs += each.bugs
        if each.same is not None:
            same.append(each.same)
        if about is not None:
            tried.append(about)
        if each.record is not None:
            records.append(each.record)
            texts.append(each.text)
        if each.problem is not None:
            unread.append(each.problem)
    return Programs(tuple(records), tuple(unread), tuple(texts), top, tuple(tried), tuple(same), tuple(bugs))


def is_function(program: object) -> bool:
    """Whether it has to be compiled: a place `module:function`, or a file that is no dump."""
    if not isinstance(program, str | PathLike):
        return False
    name = str(program)
    return "\n" not in name and not name.endswith(DUMP_ENDS) and name != "-"


def of_compiled(program: object, mesh: Mapping[str, int], top: int = 5) -> Programs:
    """The record of what is compiled already."""
    about = Provenance(mesh=dict(mesh))
    found = program.as_text() if hasattr(program, "as_text") else program
    if isinstance(found, str) and "\n" in found:
        lines = found.splitlines(keepends=True)
        if hasattr(program, "memory_analysis"):
            from layoutproof.programs.compiling import compiled

            said = compiled(program)
            record = completed(record_of(lines, "the text", about, said["shardings"]["parameters"]), said)
        else:
            record = record_of(lines, "the text", about)
        return Programs((record,), (), (found,), top)
    if isinstance(found, str | PathLike):
        return Programs((read_program(Path(found), about),), (), (), top)
    raise LayoutError(problems.PROGRAM_TYPE(shorten(repr(program), 60)))
