"""The pictures of README and site, made again by the commands that make them: `python -m tests.pictures.images`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from layoutproof.cli import main as cli

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
IMAGES: Mapping[str, Sequence[str]] = {
    "tiles.svg": ("show", "f32[3,5]{1,0:T(2,2)}"),
    "tiles_in_tiles.svg": ("show", "bf16[4,8]{1,0:T(2,4)(2,1)}"),
    "collision.svg": ("ask", "injective", "f32[3,5] strides (4,1)"),
    "blocks.svg": ("show", "f32[40,200] blockspec (16, 128) (i, j) -> (i, j) grid (3, 2) out", "--target", "v5e"),
    "swizzle.svg": ("show", "S[(8,64):(64,1)] swizzle (3,3,3) on (8,64)"),
}
"""Each file's command, but for `--svg FILE`."""


def made(folder: Path) -> None:
    """Write all of them into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, command in IMAGES.items():
        cli.run([*command, "--svg", str(folder / name)])


if __name__ == "__main__":
    made(FOLDER)
