"""`layoutproof compile MODULE:FUNCTION`: compile a program ahead of time, and keep its record.

In the list: kernels and programs: Compile a program for a TPU that is not there and keep its record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli import problems
from layoutproof.cli.arguments import (
    VERDICTS,
    args_options,
    complete_file,
    complete_target,
    json_flag,
    no_cache_flag,
    show_answer,
    waiting,
)
from layoutproof.cli.sweeping import SweepOptions, run_sweep
from layoutproof.compiler.workers import BACKENDS
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import write_whole

if TYPE_CHECKING:
    from layoutproof.answers.of_programs import Programs
    from layoutproof.programs.compile import Asked, Made

_FILE = click.Path(path_type=Path, dir_okay=False)
_STYLES = (*VERDICTS, (r"(?m)^  (?!fix )[a-z]+ ", "bold"))


@click.command(name="compile")
@click.argument("program", metavar="MODULE:FUNCTION|FILE.py:FUNCTION|FILE", shell_complete=complete_file)
@args_options("bf16[8,128], {'w': 'bf16[8,128]'}, a literal.")
@click.option("--kwarg", "kwargs", metavar="NAME=VALUE", multiple=True, help="The same, by name, e.g. steps=4.")
@click.option(
    "--target",
    "targets",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_target,
    help="v5e, 7x, .. or cpu, the default; repeatable.",
)
@click.option("--topology", metavar="AxB[xC]", default="", help="Chips, such as 2x2; default one.")
@click.option(
    "--mesh", metavar="AXIS=SIZE,..", default="", help="The mesh, in the order of the devices: data=2,model=2."
)
@click.option("--in", "ins", metavar="SHARDING", multiple=True, help="P('data', None), for each argument in order.")
@click.option("--out", "outs", metavar="SHARDING", multiple=True, help="The same for each result.")
@click.option("--donate", "donated", metavar="NUMBER", type=int, multiple=True, help="An argument that is given away.")
@click.option("--flag", "flags", metavar="NAME=VALUE", multiple=True, help="An option of the compiler.")
@click.option("--libtpu", "libraries", metavar="PATH", multiple=True, help="Another libtpu; repeatable.")
@click.option("--seconds", type=click.FloatRange(min=1), default=600, show_default=True, help="For one program.")
@click.option("--memory", metavar="SIZE", help="Address space that the compiler may use, e.g. 32GiB.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A folder for records and compiled texts.")
@click.option("--try", "try_", is_flag=True, help="Compile it again with each candidate for less, and say what helped.")
@click.option(
    "--same", is_flag=True, help="Compare what the compiler made with the function: does it compute the same?"
)
@click.option(
    "--schedule", is_flag=True, help="Also say the cycles of each operation, as the compiler's schedule has them."
)
@click.option(
    "--sweep",
    "axes",
    metavar="NAME=VALUES",
    multiple=True,
    help="Compile it for each of these: B=8,16 or 'mesh=data=4;data=2,model=2'; repeatable.",
)
@click.option("--resume", metavar="FILE", help="Keep the rows of a sweep there (.jsonl), and take those that it has.")
@click.option("--hbm", metavar="SIZE", help="What a device of a sweep has, e.g. 14GiB; default that of its chip.")
@click.option(
    "--rank", metavar="time|chip-time|peak", default="time", show_default=True, help="What the cheapest is by."
)
@click.option("--jobs", type=click.IntRange(min=0), default=1, show_default=True, help="Processes; 0: one per core.")
@click.option("--backend", type=click.Choice(BACKENDS), help="Sweep on a cluster that is already there.")
@click.option("--scheduler", metavar="ADDRESS", default="", help="Its address, e.g. tcp://10.0.0.1:8786.")
@click.option("--markdown", type=_FILE, metavar="FILE", help="Write the table of a sweep as markdown there.")
@click.option("--svg", type=_FILE, metavar="FILE", help="Write a picture of a sweep there.")
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="Lines of each list.")
@no_cache_flag
@json_flag
def command(
    program: str,
    args: tuple[str, ...],
    kwargs: tuple[str, ...],
    targets: tuple[str, ...],
    topology: str,
    mesh: str,
    ins: tuple[str, ...],
    outs: tuple[str, ...],
    donated: tuple[int, ...],
    flags: tuple[str, ...],
    libraries: tuple[str, ...],
    seconds: float,
    memory: str | None,
    output: Path | None,
    try_: bool,
    same: bool,
    schedule: bool,
    axes: tuple[str, ...],
    resume: str | None,
    hbm: str | None,
    rank: str,
    jobs: int,
    backend: str | None,
    scheduler: str,
    markdown: Path | None,
    svg: Path | None,
    top: int,
    as_json: bool,
) -> int:
    """Compile a program ahead of time, for a TPU that is not there or for the CPU, and keep its record.

    The record says what the compiler made of it: memory, collectives by mesh axes, relayout copies, kernels with their
    VMEM, estimated cycles, parameters and results by name. PROGRAM is a function, a file that jax.export made, or the
    dump of a program that is compiled already (.hlo, .txt). A function is imported, traced and compiled in a process
    of its own; nothing is computed.

    With --try the program is compiled again with each candidate that its user controls: other layouts of parameters and
    results (the compiler's own choice too), donation, parameters held padded or reshaped. A candidate that lessens
    memory, copies or estimated cycles, and increases none of them, is a fix.

    With --same what the compiler made is compared with the function, at random points of prime fields and on float64,
    over the reals: rounding is not asked. Where its arguments are too large for that, it is another compilation, at
    smaller sizes that keep every kind of program, which the verdict's line names.

    With --schedule it is compiled once more, and the compiler simulates the instruction words that it has scheduled:
    the cycles of each operation, of which a record has the sum.

    With --sweep it is compiled at every point of some axes, and each point is a row: whether it fits, peak memory,
    bytes sent by axes of the mesh, cycles, the least time of a step, or why there is none of these. An axis is target,
    topology, mesh (one size may be -1: what the topology has left), in0 or out0 (the sharding of argument or result 0),
    the name of a size in --arg such as bf16[B,128], or an argument that the function takes by name, such as a remat
    policy (policy=jax.checkpoint_policies.dots_saveable). The cheapest that fits is named.

    Exit codes: 0 compiled, 1 a compiler refused it, 2 bad input, 3 not installed, time limit or abort; with --same also
    1 where it computes something else, and 3 where that is unknown; with --sweep also 1 where a point does not fit.

    \b
    Examples:
      layoutproof compile my_model.py:step --arg "bf16[8,128]" --target v5e
      layoutproof compile m.py:step --arg "f32[B,8]" --sweep B=8,16 --target v5e
    """
    from layoutproof.answers.of_programs import asked_for, gathered, is_function, of_compiled, with_advice
    from layoutproof.core.amounts import amount
    from layoutproof.programs.compile import made
    from layoutproof.programs.shardings import read_mesh

    options = SweepOptions(axes, resume, hbm, rank, jobs, backend, scheduler, markdown, svg)
    if needs := options.without_axes():
        raise click.UsageError(problems.OPTION_WITHOUT_SWEEP(needs))
    devices = read_mesh(mesh, unsized=bool(axes))
    if not is_function(program):
        if args or kwargs or targets or libraries:
            raise click.UsageError(problems.DUMP_WITH_ARGUMENTS())
        if same:
            raise click.UsageError(problems.DUMP_WITH_SAME())
        if axes or schedule:
            raise click.UsageError(problems.DUMP_WITH_SWEEP("--sweep" if axes else "--schedule"))
        if try_:
            raise click.UsageError(problems.DUMP_WITH_TRY())
        answer = of_compiled(program, devices, top)
    else:
        asked = asked_for(
            program,
            targets,
            libraries,
            args=args,
            kwargs=dict(map(_named, kwargs)),
            topology=topology,
            mesh=devices,
            ins=ins,
            outs=outs,
            donate=donated,
            flags=dict(map(_named, flags)),
            same=same,
            schedule=schedule,
        )
        bound = None if memory is None else amount(memory)
        if axes:
            if try_ or same or schedule or len(libraries) > 1:
                raise click.UsageError(problems.SWEEP_WITH_TRY())
            return run_sweep(asked[0], targets, options, output, seconds, bound, as_json)
        found = _told(made(asked, seconds, bound, _progress), len(asked))
        answer = gathered(
            with_advice(found, seconds, bound, waiting) if try_ else ((each, None) for each in found),
            top,
        )
    written = [] if output is None else _write(output, answer)
    return show_answer(answer, written, as_json, _STYLES)


def _progress(asked: Asked, what: str) -> None:
    waiting(f"{asked.title}: {what}")


def _told(found: Iterator[Made], many: int) -> Iterator[Made]:
    """Each as it comes; of several one line says that it is there, for who waits."""
    for number, each in enumerate(found, 1):
        if many > 1:
            waiting(f"{number} of {many}: {each.asked.title}")
        yield each


def _write(folder: Path, answer: Programs) -> list[str]:
    """The record of each program, and its compiled text where there is one. The names of the files."""
    from layoutproof.compiler.libtpu import without_flags

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LayoutError(f"{folder}: {error.strerror}") from None
    names: list[str] = []
    for number, record in enumerate(answer.records):
        made = record.made
        version = without_flags(made.compiler).rpartition(" ")[2]
        parts = [made.function.rpartition(":")[2] or record.name, made.target, made.topology, version]
        name = "-".join(re.sub(r"[^\w.]+", "_", part) for part in parts if part)
        if name in names:
            name = f"{name}-{number}"
        names.append(name)
        write_whole(folder / f"{name}.json", f"{record.to_json()}\n".encode())
        if number < len(answer.texts):
            write_whole(folder / f"{name}.hlo", answer.texts[number].encode(errors="backslashreplace"))
    return [(folder / name).as_posix() + ".json" for name in names]


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise LayoutError(problems.NAME_VALUE_FORM(shorten(text, 60)))
    return name.strip(), value
