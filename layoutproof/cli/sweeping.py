"""`layoutproof compile --sweep`: what its options mean, and what it writes."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from layoutproof.cli import problems
from layoutproof.cli.arguments import VERDICTS, show_answer, waiting
from layoutproof.cli.progress import progress_bar
from layoutproof.compiler.workers import Workers
from layoutproof.core.amounts import amount
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import write_whole

if TYPE_CHECKING:
    from layoutproof.answers.of_sweep import Sweep
    from layoutproof.programs.compile import Asked, Made

_STYLES = (*VERDICTS, (r"(?m)^(sweep|cheapest|rests on)  ", "bold"))


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """The options of a sweep as they are given. axes: `NAME=VALUES` each.  hbm: of a device.  resume: a file."""

    axes: tuple[str, ...]
    resume: str | None
    hbm: str | None
    rank: str
    jobs: int
    backend: str | None
    scheduler: str
    markdown: Path | None
    svg: Path | None

    def without_axes(self) -> str:
        """The first option that needs `--sweep`, where there is none; "" for none."""
        given = {
            "--resume": self.resume, "--hbm": self.hbm, "--backend": self.backend, "--scheduler": self.scheduler,
            "--markdown": self.markdown, "--svg": self.svg, "--jobs": self.jobs != 1, "--rank": self.rank != "time",
        }  # fmt: skip
        return "" if self.axes else next((name for name, value in given.items() if value), "")


def run_sweep(
    base: Asked, targets: Sequence[str], options: SweepOptions, output: Path | None, seconds: float, space: int | None,
    as_json: bool,
) -> int:  # fmt: skip
    """A sweep from its options; the exit code. base: the program, for the first of the targets.

    Raises LayoutError as `lp.sweep`, and where a file cannot be written.
    """
    from layoutproof.answers.of_sweep import swept_over
    from layoutproof.programs.sweep import read_axis

    axes = {"target": tuple(targets)} if len(targets) > 1 else {}
    for name, values in map(read_axis, options.axes):
        if name in axes:
            raise LayoutError(problems.SWEEP_AXIS_TWICE(shorten(name, 40)))
        axes[name] = values
    written: list[str] = []

    def keep(number: int, made: Made) -> None:
        if output is not None:
            written.extend(_write(output, number, made))

    def told(asked: Asked, what: str) -> None:
        if options.jobs == 1:
            waiting(f"{asked.title}: {what}")

    files = [str(each) for each in (options.markdown, options.svg) if each is not None]
    earlier = [str(each) for each in output.iterdir()] if output is not None and output.is_dir() else []
    with progress_bar("points", sys.stderr.isatty() and not as_json) as progress:
        answer = swept_over(
            base, axes, memory=None if options.hbm is None else amount(options.hbm), rank=options.rank,
            resume=options.resume, workers=Workers(options.jobs, options.backend or "", options.scheduler),
            seconds=seconds, space=space, leave=[*files, *earlier], each=keep, step=told, progress=progress,
        )  # fmt: skip
    return _show(answer, options, written, as_json)


def _show(answer: Sweep, options: SweepOptions, written: list[str], as_json: bool) -> int:
    if options.markdown is not None:
        write_whole(options.markdown, f"{answer.markdown()}\n".encode())
        written.append(str(options.markdown))
    if options.svg is not None:
        write_whole(options.svg, answer.svg().encode())
        written.append(str(options.svg))
    return show_answer(answer, written, as_json, _STYLES)


def _write(folder: Path, number: int, made: Made) -> list[str]:
    """The record of a point and its compiled text, where there are any. The name of the record's file."""
    if made.record is None:
        return []
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LayoutError(f"{folder}: {error.strerror}") from None
    name = re.sub(r"[^\w.]+", "_", made.asked.program.rpartition(":")[2])
    path = folder / f"{name}-{number:03}"
    write_whole(path.with_suffix(".json"), f"{made.record.to_json()}\n".encode())
    write_whole(path.with_suffix(".hlo"), made.text.encode(errors="backslashreplace"))
    return [path.with_suffix(".json").as_posix()]
