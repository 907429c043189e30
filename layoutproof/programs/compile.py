"""A function compiled ahead of time for a target that is not there, and the record of what came of it.

Tracing runs the user's code and compiling can abort, so both happen in a process of their own (`compiling`), one for
each compiler. A program that cannot be compiled is a problem beside the records of the others.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from layoutproof.compiler import libtpu
from layoutproof.compiler.child import Child, Reply, ask
from layoutproof.compiler.tracing import Tracing
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import repository_of
from layoutproof.core.finding import Finding, wrong_input
from layoutproof.core.message import extended
from layoutproof.core.result import Verdict
from layoutproof.hardware.tpu_chips import generation
from layoutproof.known_bugs import ask as known_bugs
from layoutproof.known_bugs.bug import BugSeen
from layoutproof.mosaic import dumps
from layoutproof.mosaic.ask import PROFILED
from layoutproof.mosaic.compiling import PROFILE
from layoutproof.mosaic.compiling import flags as profile_flags
from layoutproof.programs import problems
from layoutproof.programs.kernel_work import with_source
from layoutproof.programs.reading import holders, record_of
from layoutproof.programs.record import MemoryStats, ProgramValue, Provenance, Record, Schedule
from layoutproof.programs.same_source import finding
from layoutproof.programs.totals import with_kernels

CPU = "cpu"
LONGEST = 600.0
"""Seconds that one program may take, by default."""
QUESTION = "compile"
_EACH = "--xla_jf_hlo_deduplication_all_unique=true"
"""The compiler's flag with which it schedules equal operations each; else one of them stands for all."""
_CONFIGURED = re.compile(r", backend_config=.*")
"""What the compiler adds to an instruction, in which it also writes what it simulates."""
_TOPOLOGY = re.compile(r"[1-9]\d{0,3}(x[1-9]\d{0,3}){1,2}")


@dataclass(frozen=True, slots=True)
class Asked:
    """One program for one target.

    program: `package.module:function` or `file.py:function`, or the path of a file that `jax.export` made.
    args, kwargs: shapes such as `bf16[8,128]`, Python literals, dicts and lists of them.  target: a TPU generation, or
    `cpu`.  topology: `2x2`, "" for one chip.  mesh: axis -> size.  ins, outs: `P('data', None)` for each argument and
    result.  donate: arguments by number.  flags: options of the compiler.
    libtpu: the path of a libtpu, "" for the installed one.  name: in reports, by default the program's.
    folder: in which the program is imported and runs, one of another checkout of the repository that the current folder
    is in; "" for the current folder.  rule: of the file that names it, None where a person did.  same: whether the
    compiled program is compared with the source.  schedule: whether the cycles of its operations are asked for, as the
    compiler's schedule has them.
    """

    program: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    target: str = CPU
    topology: str = ""
    mesh: Mapping[str, int] = field(default_factory=dict)
    ins: Sequence[str] = ()
    outs: Sequence[str] = ()
    donate: Sequence[int] = ()
    flags: Mapping[str, str] = field(default_factory=dict)
    libtpu: str = ""
    name: str = ""
    folder: str = ""
    rule: Tracing | None = None
    same: bool = False
    schedule: bool = False

    @property
    def title(self) -> str:
        """Its name in reports."""
        where = " ".join(filter(None, (self.target, self.topology)))
        return f"{self.name or self.program} for {where}"

    @property
    def is_file(self) -> bool:
        """Whether it is a file of an exported program, and no function."""
        return ":" not in os.path.basename(self.program)

    def command(self) -> str:
        """The command that compiles it again."""
        words = ["layoutproof", "compile", self.program]
        words += [word for value in self.args for word in ("--arg", str(value))]
        words += [word for name, value in self.kwargs.items() for word in ("--kwarg", f"{name}={value}")]
        words += ["--target", self.target]
        words += ["--topology", self.topology] if self.topology else []
        words += ["--mesh", ",".join(f"{k}={v}" for k, v in self.mesh.items())] if self.mesh else []
        words += [word for text in self.ins for word in ("--in", text)]
        words += [word for text in self.outs for word in ("--out", text)]
        words += [word for number in self.donate for word in ("--donate", str(number))]
        words += [word for name, value in self.flags.items() for word in ("--flag", f"{name}={value}")]
        words += ["--same"] if self.same else []
        words += ["--schedule"] if self.schedule else []
        return shlex.join(words)


@dataclass(frozen=True, slots=True)
class Made:
    """One compiled program: a record with the compiled text, or the problem; where it was asked, whether it computes
    what its source says; the known bugs of its compiler that it meets; and its values as the source states them, as of
    `stated.stated`.

    seconds: that the compiler took, 0 where its answer was kept.  cpu: seconds of processor time, from the start of
    tracing until the record is there; 0 where the process could not say.
    """

    asked: Asked
    record: Record | None = None
    text: str = ""
    problem: Finding | None = None
    seconds: float = 0.0
    cpu: float = 0.0
    same: Finding | None = None
    bugs: tuple[Finding, ...] = ()
    stated: Sequence[JsonObject] = field(default=(), repr=False)


def checked(asked: Asked) -> Asked:
    """The same with the names of its target as they are spelled here. LayoutError for what is no target or topology."""
    target = asked.target if asked.target == CPU else generation(asked.target)
    if asked.topology and not _TOPOLOGY.fullmatch(asked.topology):
        raise LayoutError(problems.TOPOLOGY_FORM(shorten(asked.topology, 40)))
    if asked.topology and target == CPU:
        raise LayoutError(problems.NO_TOPOLOGY_OF_CPU())
    if any(number < 0 or number >= len(asked.args) for number in asked.donate) and not asked.is_file:
        raise LayoutError(problems.DONATED_FORM(len(asked.args) - 1, list(asked.donate)))
    return replace(asked, target=target)


def made(
    given: Sequence[Asked],
    seconds: float = LONGEST,
    memory: int | None = None,
    progress: Callable[[Asked, str], None] = lambda asked, what: None,
) -> Iterator[Made]:
    """Each program compiled, in their order, each as soon as it is there.

    seconds, memory: that one program may take, in a process of its own.  progress: called with each step.
    """
    waiting: list[tuple[Asked, Made | Child]] = []
    for asked in given:
        try:
            sound = checked(asked)
            if why := missing(sound):
                problem = _problem(sound, problems.NOT_COMPILED(why), Verdict.UNKNOWN)
                waiting.append((sound, Made(sound, problem=problem)))
            else:
                waiting.append((sound, child_of(sound, seconds, memory)))
        except LayoutError as error:
            waiting.append((asked, Made(asked, problem=_bad(asked, error))))
    for known, group in groupby(waiting, key=lambda pair: pair[1]):
        alike = [asked for asked, _ in group]
        if isinstance(known, Made):
            yield known
            continue
        # programs for one compiler share its process: JAX is imported once
        now = iter(alike)
        current = alike[:1]

        def requests(now: Iterator[Asked] = now, current: list[Asked] = current) -> Iterator[JsonObject]:
            for asked in now:
                current[:] = [asked]
                yield request_of(asked)

        def tell(what: object, current: list[Asked] = current) -> None:
            progress(current[0], str(what))

        for asked, answer in zip(alike, ask(known, requests(), dict, tell), strict=True):
            found = made_of(asked, answer, progress)
            yield _scheduled(found, seconds, memory, progress) if asked.schedule else found


def made_of(
    asked: Asked,
    answer: Reply[JsonObject],
    progress: Callable[[Asked, str], None] = lambda asked, what: None,
) -> Made:
    """One compiled program, from the answer of its process."""
    if isinstance(answer.error, LayoutError):
        return Made(asked, problem=_bad(asked, answer.error))
    start = time.thread_time()
    said = answer.value
    if said is None:
        return Made(asked, problem=_problem(asked, answer.problem, Verdict.UNKNOWN))
    if "refused" in said:
        words = " ".join(str(said["refused"]).split())
        problem = _problem(asked, problems.REFUSED(said["compiler"], shorten(words, 1000)))
        bugs = known_bugs.of_refusal(words, asked.target, known_bugs.versions_in(said["compiler"]))
        return Made(asked, problem=problem, cpu=said.get("cpu", 0.0), bugs=tuple(_known(asked, bug) for bug in bugs))
    progress(asked, "reading")
    about = Provenance(
        function=asked.program,
        target=asked.target,
        topology=asked.topology,
        compiler=said["compiler"],
        jax=said["jax"],
        flags=dict(asked.flags),
        mesh=dict(asked.mesh),
        lowered=said["lowered"],
        command=asked.command(),
        chips=tuple(map(tuple, said["chips"])),
        slices=tuple(said["slices"]),
    )
    lines = said["text"].splitlines(keepends=True)
    try:
        record = completed(record_of(lines, asked.title, about, said["shardings"]["parameters"]), said)
    except LayoutError as error:
        return Made(asked, text=said["text"], problem=_problem(asked, problems.TEXT_NOT_READ(error), Verdict.UNKNOWN))
    same = finding(said["same"], asked.title) if "same" in said else None
    versions = known_bugs.versions_in(said["compiler"], f"jax {said['jax']}")
    bugs = known_bugs.of_program(lines, asked.target, versions, asked.flags)
    record = with_kernels(with_source(record, lines, said.get("source") or {}, asked.flags, _library(asked)))
    return Made(
        asked, record, said["text"], seconds=float(said.get("seconds", 0.0)), same=same,
        cpu=said.get("cpu", 0.0) + time.thread_time() - start,
        bugs=tuple(_known(asked, bug) for bug in bugs), stated=_from(asked.folder, said.get("stated", ())),
    )  # fmt: skip


def _scheduled(one: Made, seconds: float, memory: int | None, progress: Callable[[Asked, str], None]) -> Made:
    """The same with the cycles of its operations as the compiler's schedule has them, or why there are none.

    It is compiled once more, by a process of its own: the simulation aborts on some operations. Of a run that did not
    end nothing is taken, since it differs from run to run which operations are done.
    """
    asked, record = one.asked, one.record
    if record is None:
        return one
    if asked.target not in PROFILED:
        return replace(one, record=replace(record, schedule=Schedule(why=problems.NO_SCHEDULE_OF(asked.target))))
    progress(asked, "simulating the schedule")
    with tempfile.TemporaryDirectory(prefix="layoutproof-") as folder:
        Path(folder, PROFILE).mkdir()
        told = " ".join(filter(None, (libtpu.told(), profile_flags(folder, True), _EACH)))
        child = child_of(asked, seconds, memory)
        child = replace(child, environment={**child.environment, libtpu.FLAGS: told})
        (answer,) = ask(child, [{**request_of(asked), "same": False, "schedule": True}], dict)
        cycles = dumps.schedule(Path(folder, PROFILE))
    said = answer.value or {"refused": answer.problem}
    if "refused" in said:
        schedule = Schedule(why=shorten(" ".join(str(said["refused"]).split()), 300))
    elif _CONFIGURED.sub("", said["text"]) != _CONFIGURED.sub("", one.text):
        schedule = Schedule(why=problems.SCHEDULE_OF_ANOTHER())
    else:
        lines = one.text.splitlines(keepends=True)
        found = record_of(lines, asked.title, record.made, schedule=cycles).schedule
        schedule = found or Schedule(why=problems.COMPILER_SILENT(record.made.compiler, "its schedule"))
    return replace(one, record=replace(record, schedule=schedule))


def _from(folder: str, rows: Sequence[JsonObject]) -> list[JsonObject]:
    """Rows of `stated` with places from the folder on in which the program was imported."""
    start = (folder or os.getcwd()) + os.sep
    return [{**row, "places": [str(place).removeprefix(start) for place in row["places"]]} for row in rows]


def completed(record: Record, said: JsonObject) -> Record:
    """A record with what only the compiler says: memory, cost, and the shardings that its text may leave out."""
    cost, shardings = said["cost"], said["shardings"]
    specs = said.get("specs") or {"parameters": [], "results": []}
    parameters = _with(record.parameters, shardings["parameters"], [], specs["parameters"], record.devices)
    results = _with(record.results, shardings["results"], said["results"], specs["results"], record.devices)
    return replace(
        record,
        memory=MemoryStats(**said["memory"]),
        flops=cost.get("flops"),
        bytes_accessed=cost.get("bytes_accessed"),
        parameters=parameters,
        results=results,
    )


def _with(
    values: tuple[ProgramValue, ...], shardings: Sequence[str], names: Sequence[str], specs: Sequence[str], devices: int
) -> tuple[ProgramValue, ...]:
    """Values with their shardings, names and specs, where there are as many of these; else as they are."""
    spelled = list(specs) if len(specs) == len(values) else [""] * len(values)
    said = list(shardings) if len(shardings) == len(values) else [""] * len(values)
    named = list(names) if len(names) == len(values) else [""] * len(values)
    return tuple(
        replace(
            value,
            name=value.name or name,
            sharding=value.sharding or text,
            devices=value.devices if value.devices is not None else holders(text, devices),
            spec=spec,
        )
        for value, text, name, spec in zip(values, said, named, spelled, strict=True)
    )


def request_of(asked: Asked) -> JsonObject:
    """The request to that process. Raises LayoutError where its libtpu is not there."""
    library = _library(asked)
    return {
        "program": asked.program,
        "exported": asked.is_file,
        "args": list(asked.args),
        "kwargs": dict(asked.kwargs),
        "target": asked.target,
        "topology": asked.topology,
        "mesh": dict(asked.mesh),
        "in": list(asked.ins),
        "out": list(asked.outs),
        "donate": list(asked.donate),
        "flags": dict(asked.flags),
        "libtpu": library and (libtpu.number(library) or library),
        "rule": None if asked.rule is None else [asked.rule.prefixes, asked.rule.source],
        "same": asked.same,
        "elsewhere": str(repository_of(Path.cwd())) if asked.folder else "",
    }


def missing(asked: Asked) -> str:
    """The missing packages for compiling it, and how to install them; "" for none."""
    if asked.target == CPU:
        import importlib.util

        return "" if importlib.util.find_spec("jax") else problems.NO_JAX()
    return libtpu.missing(asked.libtpu)


def child_of(asked: Asked, seconds: float = LONGEST, memory: int | None = None) -> Child:
    """The process that compiles it. Raises LayoutError where its libtpu is not there."""
    # sources are named from the current folder on, so that a record is the same on other machines
    here = {"JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX": f"^{re.escape(asked.folder or os.getcwd())}/"} | {
        name: value for name, value in os.environ.items() if name.startswith("JAX_HLO_SOURCE_FILE")
    }
    if asked.target == CPU:
        count = 1
        for size in asked.mesh.values():
            count *= size
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}".strip()
        what, environment = "XLA:CPU", {**here, "JAX_PLATFORMS": CPU, "XLA_FLAGS": flags}
    else:
        what, environment = libtpu.WHAT, {**here, **libtpu.environment(_library(asked))}
    where: dict[str, Any] = {}
    if asked.folder:
        where = {"folder": asked.folder, "python": Path(sys.executable), "paths": paths_in(Path(asked.folder))}
    return Child(what, "layoutproof.programs.compiling", environment, seconds, memory, **where)


def _library(asked: Asked) -> str:
    return libtpu.library_at(asked.libtpu) if asked.libtpu else ""


def paths_in(folder: Path) -> tuple[str, ...]:
    """Where this process finds modules, those of its own checkout of the repository in that of the folder."""
    own, other = repository_of(Path.cwd()), repository_of(folder)
    found = []
    for path in filter(None, sys.path):
        place = Path(path).resolve()
        there = other / place.relative_to(own) if place.is_relative_to(own) else place
        found.append(str(there) if there.exists() else path)
    return tuple(found)


def _problem(asked: Asked, reason: str, verdict: Verdict = Verdict.REFUTED) -> Finding:
    return Finding(QUESTION, asked.title, reason, verdict=verdict)


def _known(asked: Asked, bug: BugSeen) -> Finding:
    """A known bug as a finding, which decides no verdict: the program is right."""
    where = f"{asked.title}: {bug.subject}" + (f" ({bug.source})" if bug.source else "")
    return Finding(
        "known_bugs", where, bug.reason, severity=bug.severity, hint=bug.bug.way_out, decided_by="rule",
        figures={"bug": bug.bug.name},
    )  # fmt: skip


def _bad(asked: Asked, error: LayoutError) -> Finding:
    at = {"line": error.line or 0, "column": error.column or 0}
    words = extended(error.problem, f"; in {shorten(error.text)}" if error.text else "")
    return replace(wrong_input(asked.title, words, "", error.file or "", **at), question=QUESTION)
