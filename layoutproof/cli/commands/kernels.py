"""`layoutproof kernels MODULE:FUNCTION`: prove every Pallas call that a function makes.

In the list: kernels and programs: Prove what every Pallas call of a function reads and writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli import problems
from layoutproof.cli.arguments import (
    args_options,
    complete_file,
    complete_target,
    json_flag,
    no_cache_flag,
    no_trace_flag,
    print_json,
    say,
    svg_option,
    told_of,
    waiting,
    with_written,
)
from layoutproof.cli.fixing import Fixing, diff_option, fix_option, say_repair, with_repair
from layoutproof.core.document import Document, envelope
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import RECORD_ENDS, YAML_ENDS, write_whole

if TYPE_CHECKING:
    from layoutproof.answers.of_kernels import Kernels


class SpecDocument(Document):
    """The calls as a spec file."""

    spec: str


@click.command()
@click.argument("place", metavar="MODULE:FUNCTION|FILE.py:FUNCTION|FILE", shell_complete=complete_file)
@args_options("bf16[4096,512], f32[8*M,128], or a Python literal.")
@click.option("--kwarg", "kwargs", metavar="NAME=VALUE", multiple=True, help="The same, by name, e.g. block=256.")
@click.option(
    "--target",
    "targets",
    shell_complete=complete_target,
    metavar="NAME",
    multiple=True,
    help="Also ask what this hardware demands, e.g. v5e; with --compile repeatable.",
)
@click.option("--compiler", metavar="VERSION", help="Its compiler, where rules differ between versions.")
@click.option(
    "--assume",
    metavar="CONDITION",
    multiple=True,
    help='Of tables: "0 <= prefetch0 < 8; prefetch0 is onto; prefetch0[i] <= prefetch1[i + 1]".',
)
@click.option(
    "--where",
    metavar="CONDITION",
    multiple=True,
    help='Of sizes that are names, or that only the running program knows: "M % 8 == 0", "grid1 <= 7".',
)
@click.option(
    "--strict-tables",
    is_flag=True,
    help="Count a violation that only some of the assumed tables have as refuted, not as unknown (refuted if).",
)
@click.option("--only", type=click.Choice(["grid"]), help="Ask nothing of the kernels' bodies; the headline says so.")
@click.option("--baseline", type=click.Path(path_type=Path), help="Accept the unknowns that this file records.")
@click.option(
    "--write-baseline", type=click.Path(path_type=Path), help="Record today's unknowns in a file, for --baseline."
)
@click.option("--property", "names", metavar="NAME", multiple=True, help="Only this one; may be repeated.")
@click.option(
    "--effort", type=click.IntRange(1, 1000), default=1, show_default=True, help="Multiply the budgets of steps."
)
@click.option("--replay", is_flag=True, help="Also run each kernel in JAX's interpreter, which may overrule a proof.")
@click.option("--compile", "compile_", is_flag=True, help="Also ask the TPU compiler of each kernel, for each target.")
@click.option(
    "--try", "try_", is_flag=True, help="With --compile: compile rewrites of each kernel, and say what helped."
)
@click.option("--spec", is_flag=True, help="Print the calls as a spec file, to check and to gate without this code.")
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    help="Write what is read of the calls to a file (.jsonl): no source code.",
)
@click.option("--all", "everything", is_flag=True, help="Show what is proved one by one too.")
@fix_option
@diff_option
@no_trace_flag
@svg_option
@no_cache_flag
@json_flag
def command(
    place: str,
    args: tuple[str, ...],
    kwargs: tuple[str, ...],
    targets: tuple[str, ...],
    compiler: str | None,
    assume: tuple[str, ...],
    where: tuple[str, ...],
    strict_tables: bool,
    only: str | None,
    baseline: Path | None,
    write_baseline: Path | None,
    names: tuple[str, ...],
    effort: int,
    replay: bool,
    compile_: bool,
    try_: bool,
    spec: bool,
    record: Path | None,
    everything: bool,
    fix: bool,
    diff: bool,
    no_trace: bool,
    svg: Path | None,
    as_json: bool,
) -> int:
    """Prove every Pallas call that a function makes.

    The function is imported and traced with shapes on the CPU; nothing is computed. A function without arguments
    builds its own. A dimension may be a name, f32[M,128] or f32[8*M,128]: then all sizes are asked about. A file is a
    program that was lowered, exported or compiled (.hlo, .txt, .mlir), a spec file, of which every kernel is proved
    that it names, or records (.jsonl) that --record wrote, judged without JAX and without the code. Exit code 3 also
    where a call cannot be modelled, and where there is no call at all. With --replay each TPU kernel is also run, on
    small numbers, in JAX's interpreter, by a child process that is ended if it hangs: its outcome stands beside the
    verdicts; a run that contradicts a proof makes it unknown, and is an error, conflict.
    With --compile the TPU compiler, libtpu, compiles the kernel ahead of time: whether it accepts it, its VMEM with
    spills by source line, relayouts in registers that cost something, and its estimate of cycles. The rules are those
    of the first target. With --try as well rewrites of the kernel are compiled: an operand given merged or transposed,
    heads taken apart, a conversion before or after what moves data. One that gives the same numbers and takes less is
    shown, with the operation that moves the data. With --fix the function's file is edited in one place, in many ways
    in turn; the first edit after which nothing is refuted is written, or shown by --diff. `same --fix` also compares
    what it then computes.

    \b
    Example:
      layoutproof kernels my_kernels.py:matmul --args "f32[512,512], f32[512,512]"
    """
    from layoutproof.answers.of_kernels import PROGRAMS, asked_compiler, calls_of, first_of, judged_all, replayed

    is_file = place.endswith((*PROGRAMS, *YAML_ENDS, *RECORD_ENDS))
    source = not is_file and not spec
    _refuse(
        {
            problems.FILE_WITH_COMPILE(): compile_ and not source,
            problems.COMPILE_WITHOUT_TARGET(): compile_ and not targets,
            problems.TRY_WITHOUT_COMPILE(): try_ and not compile_,
            problems.COMPILER_WITHOUT_TARGET(): compiler is not None and not targets,
            problems.FUNCTION_WITH_NO_TRACE(): no_trace and not is_file,
            problems.FILE_WITH_ARGUMENTS(): is_file and bool(args or kwargs),
            problems.SPEC_WITH_ASSUME(): place.endswith(YAML_ENDS) and bool(assume),
            problems.FILE_WITH_FIX(): fix and not source,
            problems.DIFF_WITHOUT_FIX(): diff and not fix,
            problems.FILE_WITH_REPLAY(): replay and not source,
            problems.FILE_WITH_RECORD(): record is not None and is_file,
        }
    )
    target = first_of(targets, compile_, place)
    named = dict(map(_named, kwargs))
    found = calls_of(place, args, named, target, compiler, assume, names, not no_trace)
    if record is not None:
        from layoutproof.pallas.from_jax.record import records_of

        write_whole(record, records_of([each.call for each in found]))
    if spec:
        from layoutproof.pallas.spec_text import spec_text

        written = spec_text([each.call for each in found], f"layoutproof kernels {place}", target).rstrip()
        if as_json:
            calls: SpecDocument = {**envelope(0), "spec": written}
            return print_json(calls)
        say(written)
        return 0
    answer = judged_all(found, names, effort, only or "", baseline, where, strict_tables)
    if compile_:
        answer = asked_compiler(answer, place, args, named, targets, compiler, told_of, try_)
    if replay:
        waiting(f"{place}: run in JAX's interpreter")
        answer = replayed(answer, place, args, named, target)
    _write(answer, write_baseline, svg)
    wanted = Fixing(diff) if fix else None
    if wanted is not None:
        _search(wanted, place, args, named, target, assume, where)
    if as_json:
        return print_json(with_repair(with_written(answer.as_dict(), svg), wanted))
    say(answer.text(everything))
    say_repair(wanted, answer.exit_code)
    return answer.exit_code


def _write(answer: Kernels, baseline: Path | None, svg: Path | None) -> None:
    """Writes the files that are asked for."""
    if baseline is not None:
        from layoutproof.pallas.accepted import baseline_text

        write_whole(baseline, baseline_text(answer.calls).encode())
    if svg is not None:
        write_whole(svg, answer.svg().encode())


def _search(
    wanted: Fixing,
    place: str,
    args: Sequence[str],
    named: Mapping[str, object],
    target: str | None,
    assume: Sequence[str],
    where: Sequence[str],
) -> None:
    """Looks for an edit after which nothing is refuted."""
    from layoutproof.answers.of_repair import repair

    wanted.search(
        place, lambda tick: repair(place, *args, target=target, assume=assume, where=where, tick=tick, named=named)
    )


def _refuse(rules: Mapping[str, bool]) -> None:
    """Raises a usage error with the first rule that is broken."""
    for rule, broken in rules.items():
        if broken:
            raise click.UsageError(rule)


def _named(text: str) -> tuple[str, object]:
    from layoutproof.pallas.from_jax.user import argument

    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise LayoutError(problems.KEYWORD_ARGUMENT_FORM(shorten(text, 60)))
    return name.strip(), argument(value)
