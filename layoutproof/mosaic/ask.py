"""The TPU compiler asked of kernels: `compiled` gives one report for each kernel and target.

It can abort its process, hang, or need more memory than there is, so it runs in child processes with a time limit: one
for what it makes of kernels, and another, with other settings, for its estimates of cycles, in which it aborts more
often. A failure of the second does not affect the answer of the first.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.compiler import libtpu
from layoutproof.compiler.child import Child, Reply, ask
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.core.result import Verdict
from layoutproof.core.term import reads
from layoutproof.hardware.tpu_chips import CHIPS, generation
from layoutproof.kernel.kernel import Kernel
from layoutproof.messages.read import read as explained
from layoutproof.mosaic.bounds import pipeline_cycles, product_cycles, share, traffic_cycles
from layoutproof.mosaic.compiling import flags
from layoutproof.mosaic.vectors import free
from layoutproof.pallas.compiled import MIB, Compiled, Estimate, Explained, Line, Part, Relayout, Vmem
from layoutproof.pallas.from_jax.sent import identity, sent
from layoutproof.pallas.problems import NOT_SENT

SECONDS = 300.0
"""That the compiler may take for one kernel."""
PROFILE_SECONDS = 120.0
"""That its estimate of cycles may take: of long programs it simulates for minutes."""
PROFILED = ("v5e", "v5p", "v6e", "7x")
"""Generations that the estimate knows; on others it aborts (libtpu 0.0.52: VF, VL, GF and GL)."""


@dataclass(frozen=True, slots=True)
class CompilerQuestion:
    """One kernel for one target.

    code: the function that makes the call, with its arguments, as `sent` gives them.  kernel: the call.  call: which of
    the function's calls it is, from 0.  target: a TPU generation.  estimate: whether its cycles are asked for too.
    """

    code: str
    kernel: Kernel
    call: int
    target: str
    estimate: bool = True

    @property
    def title(self) -> str:
        """Its name in messages of progress."""
        return f"{self.kernel.name} for {self.target}"


def asked(
    function: Callable[..., object] | str,
    args: Sequence[object],
    kwargs: dict[str, object],
    kernel: Kernel,
    call: int,
    target: str,
    estimate: bool = True,
) -> CompilerQuestion:
    """One kernel of a function for one target.

    Args:
        function: As `lp.kernels` takes it.
        args: Of the function, as there.
        kwargs: The same by name.
        kernel: The call, as it was found there.
        call: Its number among the calls that were found.
        target: A TPU generation.
        estimate: Whether its cycles are asked for too.

    Returns:
        What `compiled` takes, plain data that can be sent to another process.

    Raises:
        LayoutError: The target is no TPU generation, or the function cannot be sent to another process.
    """
    name = generation(target)
    try:
        code = sent(function, args, kwargs)
    except Exception as error:
        why = shorten(f"{type(error).__name__}: {error}", 200)
        raise LayoutError(NOT_SENT(why)) from None
    return CompilerQuestion(code, replace(kernel, body_reader=None), call, name, estimate)


def compiled(
    given: Iterable[CompilerQuestion],
    *,
    library: str = "",
    seconds: float = SECONDS,
    memory: int | None = None,
    progress: Callable[[str, str], None] = lambda title, what: None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Compiled]:
    """The compiler's report on each kernel, in their order, each as soon as it is there.

    Many may be asked at once in processes of their own (`compiler.workers.spread`): each call has its own children.

    Args:
        given: The kernels, each taken when its turn comes.
        library: The path of another libtpu, as `libtpu.library_at` gives it; "" for the installed one.
        seconds: That one kernel may take.
        memory: Bytes of address space of the compiler's process, None for no limit.
        progress: Called with a kernel's title and what is done now.
        stop: Whether the caller no longer waits, as of `compiler.child.ask`.

    Yields:
        One report for each; a missing answer is a `problem` in it.
    """
    missing = libtpu.missing(library)
    if missing:
        for one in given:
            yield Compiled(one.kernel.name, one.target, problem=f"{libtpu.WHAT} cannot be asked: {missing}")
        return
    with tempfile.TemporaryDirectory(prefix="layoutproof-") as folder:
        plain, profile = (os.path.join(folder, name) for name in ("plain", "profile"))
        first = child(flags(plain, False), library, seconds, memory)
        second = child(flags(profile, True), library, min(seconds, PROFILE_SECONDS), memory)
        current: list[CompilerQuestion] = []
        wanted: list[CompilerQuestion] = []

        def requests() -> Iterator[dict[str, object]]:
            for one in given:
                current[:] = [one]
                yield request_of(one, library, plain, False)

        def estimates_of() -> Iterator[dict[str, object]]:
            while wanted:
                yield request_of(wanted.pop(), library, profile, True)

        def tell(what: object) -> None:
            progress(current[0].title, str(what))

        with (
            closing(ask(first, requests(), dict, tell, stop)) as answers,
            closing(ask(second, estimates_of(), dict, stop=stop)) as more,
        ):
            for answer in answers:
                one = current[0]
                report, why = _read(one, answer, library)
                if report.accepted and one.estimate:
                    if not why:
                        tell("estimating")
                        wanted.append(one)
                    estimate = Estimate(reason=why) if why else _estimate(one, next(more), answer.value or {})
                    report = replace(report, estimate=estimate)
                yield report


def child(flags: str, library: str, seconds: float, memory: int | None) -> Child:
    """The compiler's process. flags: for libtpu.  library: the path of another one, "".  seconds: for each answer."""
    environment = {**libtpu.environment(library), libtpu.FLAGS: f"{libtpu.told()} {flags}".strip()}
    return Child(libtpu.WHAT, "layoutproof.mosaic.compiling", environment, seconds, memory)


def request_of(one: CompilerQuestion, library: str, folder: str, profile: bool) -> dict[str, object]:
    """The request to that process. folder: for its files.  profile: whether it is for cycles."""
    return {
        "code": one.code,
        "target": one.target,
        "call": one.call,
        "same": identity(one.kernel),
        "library": library,
        "flags": libtpu.told(),
        "folder": folder,
        "profile": profile,
    }


def _read(one: CompilerQuestion, answer: Reply[JsonObject], library: str) -> tuple[Compiled, str]:
    """The report of one kernel without its cycles, and why those are not asked for."""
    compiler = libtpu.with_flags(libtpu.version(library), libtpu.told())
    report = Compiled(one.kernel.name, one.target, compiler, source=one.kernel.source)
    said = answer.value
    if said is None:
        return replace(report, problem=answer.problem), ""
    report = replace(report, jax=said["jax"], compiler=said["compiler"])
    refused, vmem = str(said["refused"]), _vmem(one, said)
    if refused:
        report = replace(report, refused=refused, explained=_explained(refused, one.target, vmem))
    moves = said.get("moves") or {"lines": [], "slots": 0}
    lines = sorted(
        (Line(file, line, **counts) for file, line, counts in moves["lines"]),
        key=lambda each: (not each.line, -each.reloads, -each.moves, each.file, each.line),
    )
    costly, nothing = _relayouts(said.get("relayouts") or ())
    report = replace(
        report,
        vmem=vmem,
        lines=tuple(lines),
        relayouts=costly,
        free=nothing,
    )
    return report, _no_estimate(one, said)


def _explained(refused: str, target: str, vmem: Vmem | None) -> tuple[Explained, ...]:
    """The meaning of a refusal. vmem: the memory of the kernel, which says more than the refusal."""
    if vmem is not None:
        largest = max((part for part in vmem.parts if part.kind != "spill"), key=lambda part: part.bytes, default=None)
        over = f"it takes {vmem.total - vmem.limit:,} bytes more than the {vmem.limit:,} that it may"
        ways = [] if largest is None else [f"a smaller block: {largest.what} takes {largest.bytes:,} bytes"]
        if vmem.of("spill") >= vmem.total - vmem.limit:
            ways.append("hold less at once, such as a loop over parts of the block: without its spills it would fit")
        room = CHIPS[target].vmem
        if vmem.total <= room:
            asked_for = -(-vmem.total // MIB) * MIB
            ways.append(f"vmem_limit_bytes={asked_for}, or more, up to the {room:,} of {target}")
        return (Explained(over, tuple(ways)),)
    try:
        found = explained(refused, target)
    except LayoutError:
        return ()
    return tuple(Explained(each.cause, each.fixes) for each in found if each.cause)


def _vmem(one: CompilerQuestion, said: JsonObject) -> Vmem | None:
    """The memory of the kernel, where the report and the compiled program agree."""
    found = said.get("vmem")
    if found is None or said.get("used") != found["total"]:
        return None
    parts = tuple(Part(*part) for part in found["parts"])
    if sum(part.bytes for part in parts) != found["total"]:
        return None
    slots = (said["moves"] or {"slots": 0})["slots"]
    return Vmem(found["total"], _limit(one), parts, slots, tuple(Part(*part) for part in said["whole"]))


def _limit(one: CompilerQuestion) -> int:
    chip, wanted = CHIPS[one.target], one.kernel.vmem_limit
    given = libtpu.scoped_vmem(libtpu.told()) if wanted is None else wanted
    return chip.vmem_scoped if given is None else min(given, chip.vmem)


def _relayouts(rows: Sequence[Any]) -> tuple[tuple[Relayout, ...], int]:
    """Those that cost something or may do so, the same of one line once; and how many others there are."""
    many = Counter(tuple(row) for row in rows)
    found, nothing = [], 0
    for (before, after, vector, file, line), count in many.items():
        verdict, reason = free(before, after, vector)
        if verdict is Verdict.PROVED:
            nothing += count
            continue
        *dims, element = vector.split("x")
        shape = f"{element}[{','.join(dims)}]"
        found.append(Relayout(shape, before, after, count, file, line, reason))
    return tuple(sorted(found, key=lambda each: (not each.line, each.file, each.line))), nothing


def _no_estimate(one: CompilerQuestion, said: JsonObject) -> str:
    """Why the compiler's estimate would say nothing of a kernel, "" where it may be asked."""
    if one.target not in PROFILED:
        return f"the compiler's simulation does not know {one.target}, and aborts"
    if one.kernel.runtime:
        return f"the grid depends on the running program ({', '.join(one.kernel.runtime)})"
    looked = [o.name for o in one.kernel.operands if any(True for _ in reads(o.terms()))]
    if looked:
        return f"the blocks of {', '.join(looked)} depend on a table, which it takes to hold 0"
    return "; ".join(said["unseen"])


def _estimate(one: CompilerQuestion, answer: Reply[JsonObject], said: JsonObject) -> Estimate:
    if answer.value is None:
        return Estimate(reason=shorten(answer.problem, 300))
    if answer.value["refused"]:
        return Estimate(reason=shorten(answer.value["refused"], 300))
    cycles = answer.value["cycles"]
    if cycles is None:
        return Estimate(reason="the compiler wrote none")
    needed = product_cycles(one.kernel, one.target, said["flops"])
    if cycles < needed:
        return Estimate(
            reason=f"{cycles:,} cycles are said, and the matrix products alone take {needed:,}: it leaves work out"
        )
    beyond = ["how long a cycle is", "that copies share the bandwidth of HBM"]
    try:
        bound = traffic_cycles(one.kernel, one.target)
        if bound and not said.get("whole"):
            # an operand that is whole in VMEM was fetched before the kernel begins
            bound = max(bound, pipeline_cycles(one.kernel, one.target, said["flops"]))
    except Undecided:
        bound = 0
    if not bound:
        beyond.append("any bound by the bandwidth of HBM, which is not known here")
    cores = CHIPS[one.target].cores if share(one.kernel, one.target) < 1 else 1
    return Estimate(cycles, unseen=tuple(beyond), at_least=bound, cores=cores)
