"""`lp.kernels`: every Pallas call of a function, a compiled program or a spec file, judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from layoutproof.answers import problems
from layoutproof.compiler.tracing import here, only
from layoutproof.core.errors import LayoutError, Unsupported, listed
from layoutproof.core.files import DUMP_ENDS, RECORD_ENDS, YAML_ENDS, lines
from layoutproof.core.finding import Answer, Finding
from layoutproof.core.message import Template
from layoutproof.core.result import Verdict
from layoutproof.hardware.tpu_chips import CHIPS, generation
from layoutproof.kernel.kernel import Kernel, KernelTarget, Operand, Unmodelled
from layoutproof.kernel.table_assumptions import check_tables, with_assumptions
from layoutproof.pallas import report
from layoutproof.pallas.accepted import accepted, read_baseline
from layoutproof.pallas.compiled import Compiled
from layoutproof.pallas.findings import Judged, exit_code, judged
from layoutproof.pallas.judge import GRID, conditions_of, foreign, judge, kernel_target, kernel_targets, meant_for
from layoutproof.pallas.kept_judgements import kept
from layoutproof.pallas.overruled import overruled
from layoutproof.pallas.records import read_records
from layoutproof.pallas.replay import replays
from layoutproof.registry.catalogue import kernel_property

NO_TPU = Template(
    "answers.compile_no_tpu",
    "{target} is a GPU, and the compiler that is asked is the TPU's: leave --compile out; what JAX's lowering takes, "
    "jax.jit(f).trace(*args).lower(lowering_platforms=('cuda',)) says without a GPU",
)
PROGRAMS = (*DUMP_ENDS, ".mlir", ".mlir.gz")
"""How the names of files end that hold the text of a program."""


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call, the target whose rules are asked of it, None for none, and the version of its compiler, likewise."""

    call: Kernel | Unmodelled
    target: str | None = None
    compiler: str | None = None


@dataclass(frozen=True, slots=True)
class Kernels(Answer):
    """Every call with all that was found of it, the proved too: `calls`, in the order in which they are made."""

    calls: tuple[Judged, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of all calls, in their order."""
        return tuple(finding for call in self.calls for finding in call.findings)

    @property
    def exit_code(self) -> int:
        """0 all proved, 1 something refuted, 3 something unknown."""
        return exit_code(self.calls)

    def text(self, everything: bool = False) -> str:
        """The findings of each call that are not proved, or all of them, and a line of counts."""
        return report.text(self.calls, everything)

    def __str__(self) -> str:
        return self.text()

    def svg(self) -> str:
        """The refuted findings of each call as pictures, or the walk of its grid."""
        # pictures read every language; a command that draws none does not wait for them
        from layoutproof.answers.of_pictures import calls_svg

        return calls_svg(self.calls)

    def as_dict(self) -> report.KernelsDocument:
        """What `layoutproof kernels --json` prints."""
        return report.as_json(self.calls)


def kernels(
    function: Callable[..., object] | str | Path,
    *args: object,
    target: str | Sequence[str] | None = None,
    compiler: str | None = None,
    assume: str | Sequence[str] = (),
    properties: str | Sequence[str] = (),
    effort: int = 1,
    only: str = "",
    baseline: str | Path | None = None,
    trace: bool = True,
    where: str | Sequence[str] = (),
    replay: bool = False,
    compile: bool = False,
    try_: bool = False,
    strict_tables: bool = False,
    **kwargs: object,
) -> Kernels:
    """Judge every Pallas call that `function(*args, **kwargs)` makes. It is traced on shapes; nothing is computed.

    Args:
        function: A function; `MODULE:FUNCTION` or `FILE.py:FUNCTION`, whose arguments may be texts such as bf16[8,128];
            or a file with a compiled program (.hlo, .txt, .mlir), a spec file, or records of calls (.jsonl), which have
            their arguments in them.
        *args: Arrays and `jax.ShapeDtypeStruct`s are traced; all else is passed as it is.
        target: Also ask what this hardware demands, e.g. "v5e". With `compile` several may be given: the compiler is
            asked of each, the rules of the first.
        compiler: The version of its compiler, where rules differ between versions.
        assume: Conditions on scalar prefetch operands, e.g. ["0 <= prefetch0 < 8"].
        properties: Ask only these properties of kernels; all by default.
        effort: A whole number >= 1 that multiplies the engines' budgets of steps.
        only: "grid" asks nothing of the bodies; the answer says so.
        baseline: A file that `layoutproof kernels --write-baseline` wrote: the unknowns in it are accepted.
        trace: Whether code that a spec file names may be imported.
        where: Conditions on sizes of the running program, e.g. ["grid1 <= 7"]; each is for the calls that have them.
        replay: Whether each TPU kernel is also run in JAX's interpreter, in a child process: a run that contradicts a
            proof makes it unknown, and is an error `conflict`.
        compile: Whether the TPU compiler compiles each kernel, ahead of time, in a child process: whether it accepts
            it, and its figures of VMEM, spills, relayouts and cycles: `calls[..].compiled`.
        try_: With `compile`: whether rewrites of each kernel are compiled too, operands given merged or transposed,
            heads taken apart, conversions moved: `calls[..].compiled[..].rewrites`, the best first.
        strict_tables: Whether a violation that only some of the assumed tables have is refuted. By default it is
            unknown, "refuted if prefetch0 can be 0, 1, 0", unless the entries of the table are fixed.
        **kwargs: Arguments of the function by name, as `args`.

    Returns:
        The kernels: `calls`, `findings` of all calls, `exit_code`, `str` the report.

    Raises:
        LayoutError: The input is wrong, or the function raises; with its file and line.
        Undecided: The function makes no Pallas call, so nothing is asked.
    """
    if replay and not callable(function) and str(function).endswith((*PROGRAMS, *YAML_ENDS)):
        raise LayoutError(problems.RUN_WITHOUT_FUNCTION(function))
    targets, assume, properties, where = map(_each, (target, assume, properties, where))
    chip = first_of(targets, compile, function)
    found = calls_of(function, args, kwargs, chip, compiler, assume, properties, trace)
    answer = judged_all(found, properties, effort, only, baseline, where, strict_tables)
    answer = asked_compiler(answer, function, args, kwargs, targets, compiler, try_=try_) if compile else answer
    return replayed(answer, function, args, kwargs, chip) if replay else answer


def _each(given: str | Sequence[str] | None) -> list[str]:
    """One text, or several."""
    return [given] if isinstance(given, str) else list(given or ())


def first_of(targets: Sequence[str], compile: bool, function: Callable[..., object] | str | Path) -> str | None:
    """The target whose rules are asked, None for no target.

    Raises LayoutError where several targets are given for nothing, and where the compiler cannot be asked of this.
    """
    if compile and not callable(function) and str(function).endswith((*PROGRAMS, *YAML_ENDS, *RECORD_ENDS)):
        raise LayoutError(problems.COMPILED_WITHOUT_FUNCTION(function))
    if compile and not targets:
        raise LayoutError(problems.COMPILER_WITHOUT_TARGET())
    other = next((name for name in targets if compile and name in kernel_targets() and name not in CHIPS), None)
    if other is not None:
        raise LayoutError(NO_TPU(other))
    if len(targets) > 1 and not compile:
        raise LayoutError(problems.SEVERAL_TARGETS())
    return targets[0] if targets else None


def asked_compiler(
    answer: Kernels,
    function: Callable[..., object] | str | Path,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    targets: Sequence[str],
    compiler: str | None = None,
    progress: Callable[[str, str], None] = lambda title, what: None,
    try_: bool = False,
) -> Kernels:
    """The same answer, and of each kernel what the TPU compiler makes of it. Arguments as of `kernels`, but no file.

    targets: the first is the one whose rules were asked.  progress: called with a kernel's title and what is done now.
    """
    from layoutproof.mosaic.ask import asked, compiled
    from layoutproof.mosaic.rewriting import tried

    names = list(dict.fromkeys(generation(target) for target in targets))
    first = kernel_target(names[0], compiler)
    place = function if callable(function) else str(function)
    calls = [(k, call.call) for k, call in enumerate(answer.calls)]
    wanted = [(k, call) for k, call in calls if isinstance(call, Kernel) and _compiles(call, first)]
    given = [(k, kernel) for k, kernel in wanted if not kernel.named_sizes()]
    questions = [asked(place, args, dict(kwargs), kernel, k, name) for k, kernel in given for name in names]
    told = compiled(questions, progress=progress)
    if try_:
        told = (tried(one, report, progress=progress) for one, report in zip(questions, told, strict=True))
    found = list(answer.calls)
    for k, kernel in wanted:
        more, made = list(found[k].findings), []
        for name in names:
            made.append(_without_numbers(kernel, name) if kernel.named_sizes() else next(told))
            chip = (first if name == names[0] else kernel_target(name)).told(made[-1].answer())
            # the compiler has decided what the rules of the first target left open
            again = {f.question for f in more} & {"vmem_total", "memory_budget"} if name == names[0] else set()
            settled = judge(kernel, names=["compiled", *sorted(again)], target=chip, where=found[k].where or None)
            more = [f for f in more if f.question not in again] + list(settled)
        found[k] = replace(found[k], findings=tuple(more), compiled=tuple(made))
    return Kernels(tuple(found))


def _without_numbers(call: Kernel, target: str) -> Compiled:
    problem = (
        f"{listed(call.named_sizes())} is no number, and a program is compiled for numbers: give it arguments of some"
    )
    return Compiled(call.name, target, problem=problem)


def _compiles(call: Kernel, target: KernelTarget) -> bool:
    """Whether the compiler is asked of a call by itself.

    A pipeline is compiled with the call around it, and what is not modelled is unknown anyway.
    """
    return (
        isinstance(call, Kernel) and call.pipeline != "emit_pipeline" and not foreign(meant_for(call, target), target)
    )


def replayed(
    answer: Kernels,
    function: Callable[..., object] | str | Path,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    target: str | None,
) -> Kernels:
    """The same answer, and of each kernel what came of running it. Arguments as of `kernels`, of which no file."""
    place = function if callable(function) else str(function)
    chip = "" if target is None else kernel_target(target).name
    runs = replays(place, args, kwargs, chip, [(call.call, call.findings) for call in answer.calls])
    return Kernels(tuple(overruled(replace(call, replay=run)) for call, run in zip(answer.calls, runs, strict=True)))


def judged_all(
    calls: Sequence[AskedCall],
    properties: Sequence[str],
    effort: int,
    only: str = "",
    baseline: str | Path | None = None,
    where: Sequence[str] = (),
    strict_tables: bool = False,
) -> Kernels:
    """The findings of some calls; arguments and errors as of `kernels`."""
    if only not in ("", GRID):
        raise LayoutError(problems.ONLY(GRID, only))
    asked = list(properties) or None
    how: dict[str, Any] = {"names": asked, "only": only, "effort": effort, "strict_tables": strict_tables}
    known = {} if baseline is None else read_baseline(Path(baseline))
    held = conditions_of([each.call for each in calls], where)
    found: list[Judged] = []
    for each, said in zip(calls, held, strict=True):
        by = {**how, "target": each.target, "compiler": each.compiler, "where": said}
        asked_of = partial(judged, _partly_filled(each.call, found), **by)
        found.append(accepted(kept(asked_of.args[0], asked_of.keywords, asked_of), known))
    return Kernels(tuple(found))


def _partly_filled(call: Kernel | Unmodelled, before: Sequence[Judged]) -> Kernel | Unmodelled:
    """The call, with what is known of inputs that earlier kernels make: that they store a part of one alone."""
    if not isinstance(call, Kernel) or not any(o.made_by for o in call.operands):
        return call
    parts: set[tuple[str, ...]] = {
        (one.call.name, one.call.source, finding.subject)
        for one in before
        for finding in one.of("outputs_stored")
        if finding.verdict is Verdict.REFUTED and finding.severity == "error"
    }

    def known(operand: Operand) -> Operand:
        if operand.made_by not in parts:
            return operand
        name, source, output = operand.made_by
        return replace(operand, partly=f"{name} at {source} stores a part of its {output} alone")

    return call.with_operands(known)


def calls_of(
    function: Callable[..., object] | str | Path,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    target: str | None,
    compiler: str | None,
    assume: Sequence[str],
    properties: Sequence[str] = (),
    trace: bool = True,
) -> tuple[AskedCall, ...]:
    """The calls, before anything is asked of them; arguments and errors as of `kernels`.

    Without a target, a call of a spec file is asked what its entry states.
    """
    if compiler is not None and target is None:
        raise LayoutError(problems.VERSION_WITHOUT_TARGET())
    if target is not None:
        kernel_target(target, compiler)  # a wrong name is told before anything of the user's is imported
    for name in properties:
        kernel_property(name)
    with only(here(trace)):
        found = _found(function if callable(function) else str(function), args, kwargs, target, tuple(assume))
    if not found:
        name = getattr(function, "__name__", "the function") if callable(function) else str(function)
        raise Unsupported(f"{name} makes no Pallas call; there is nothing to prove")
    return found if target is None else tuple(AskedCall(each.call, target, compiler) for each in found)


def _found(
    function: Callable[..., object] | str,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    target: str | None,
    assume: tuple[str, ...],
) -> tuple[AskedCall, ...]:
    if isinstance(function, str) and function.endswith(YAML_ENDS) and not (args or kwargs or assume):
        from layoutproof.specs.traced import kernels_named_in

        return tuple(AskedCall(*each) for each in kernels_named_in(Path(function)))
    return tuple(map(AskedCall, _calls(function, args, kwargs, target, assume)))


def _calls(
    function: Callable[..., object] | str,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    target: str | None,
    assume: tuple[str, ...],
) -> tuple[Kernel | Unmodelled, ...]:
    if callable(function):
        from layoutproof.pallas.from_jax.user import calls_in

        return calls_in(function, args, kwargs, target=target, assume=assume)
    if function.endswith((*PROGRAMS, *YAML_ENDS, *RECORD_ENDS)) and (args or kwargs):
        raise LayoutError(problems.ARGUMENTS_OF_FILE(function))
    if function.endswith(RECORD_ENDS):
        calls = read_records(Path(function))
        check_tables(calls, assume)
        return tuple(with_assumptions(k, assume, strict=False) if isinstance(k, Kernel) else k for k in calls)
    if function.endswith(PROGRAMS):
        from layoutproof.pallas.from_mosaic.mosaic_module import kernels_in_hlo

        with lines(Path(function)) as text:
            return kernels_in_hlo("".join(text), Path(function).as_posix(), assume)
    if function.endswith(YAML_ENDS):
        raise LayoutError(problems.ASSUMPTIONS_OF_FILE())
    from layoutproof.pallas.from_jax.user import calls_of as calls_of_place

    return calls_of_place(function, args, kwargs, target=target, assume=assume)
