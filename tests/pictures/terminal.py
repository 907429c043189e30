"""The README's first command as a terminal shows it: `python -m tests.pictures.terminal` runs it and draws that."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from layoutproof.cli.arguments import VERDICTS
from tests.cli.in_one_process import commands
from tests.console_pages import lay
from tests.pictures.images import FOLDER

ROOT = FOLDER.parents[1]
PICTURE = FOLDER / "same.svg"
WORDS = ["same", "rms_norm.py:rms_norm", "--reference", "rms_norm.py:reference", "--args", "f32[64,512]"]
COLUMNS = 98
_THEME = TerminalTheme(
    (24, 26, 31),
    (214, 218, 224),
    [
        *((24, 26, 31), (255, 107, 104), (126, 200, 120), (230, 190, 90)),
        *((110, 170, 255), (214, 130, 220), (90, 200, 210), (214, 218, 224)),
    ],
)
_FORM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
role="img" aria-label="layoutproof same, in a terminal">
<style>.{unique_id}-matrix{{font:{char_height}px ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace}}
{styles}</style>
<defs>{lines}</defs>
<rect width="100%" height="100%" rx="8" fill="#181a1f"/>
<g transform="translate(14, 24)">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def text_of(lines: list[str]) -> Text:
    """A command and what it prints, in the colours of a terminal."""
    said = Text("\n".join(lines))
    for pattern, style in VERDICTS:
        said.highlight_regex(pattern, style)
    said.highlight_regex(r"^\$ .*", "bold")
    return said


def picture(folder: Path) -> str:
    """The SVG, the command having run in `folder` on the files of the README."""
    lay((ROOT / "README.md").read_text("utf-8"), folder)
    (answer,), _ = commands(folder, WORDS, seconds=300)
    command = "$ layoutproof " + " ".join(f'"{word}"' if "[" in word else word for word in WORDS)
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    console.print(text_of([command, *answer.out.rstrip().splitlines()]), soft_wrap=False)
    return console.export_svg(theme=_THEME, code_format=_FORM, unique_id="t")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as at:
        PICTURE.write_text(picture(Path(at)), "utf-8")
