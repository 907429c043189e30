"""Pictures of every subject as files, to be looked at: `python -m tests.pictures.gallery DIR`.

Each is drawn light and dark as PNG and once as SVG, which has both. `.ci/run` leaves them as artefacts of the build.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import layoutproof as lp
from layoutproof.pallas.judge import kernel_target
from layoutproof.pictures.counterexamples import difference, finding_drawing
from layoutproof.pictures.drawing import Drawing
from layoutproof.pictures.picture import png_bytes, svg_picture
from layoutproof.pictures.subjects import drawing_of

FIG2 = "S[(8,2,4,2):(4@lane,1@warp,1@lane,1@reg)] + R[2:4@warp] + 5@warp on (8,16)"
MATMUL: Mapping[str, Any] = {
    "kernel": {
        "name": "matmul_with_a_name_as_long_as_people_give_to_their_kernels_in_large_code_bases",
        "grid": {"i": 3, "j": 2, "k": 2},
        "inputs": [
            {"name": "x", "array": "bf16[40,256]", "block": [16, 128], "index": "(i, j, k) -> (i, k)"},
            {
                "name": "weights_of_the_second_projection",
                "array": "bf16[256,200]",
                "block": [128, 128],
                "index": "(i, j, k) -> (k, j)",
            },
        ],
        "outputs": [{"name": "o", "array": "f32[40,200]", "block": [16, 128], "index": "(i, j, k) -> (i, j)"}],
        "scratch": [{"array": "f32[16,128]"}],
    }
}


def asked(question: str, *layouts: Any, **parameters: Any) -> Drawing:
    """The answer to a question, drawn."""
    read = [lp.read_layout(layout) for layout in layouts]
    drawn = finding_drawing(lp.ask(question, *read, **parameters), read)
    if drawn is None:
        raise ValueError(f"{question}: nothing is drawn")
    return drawn


PICTURES: Mapping[str, Callable[[], Drawing]] = {
    "xla_tiles": lambda: drawing_of("f32[3,5]{1,0:T(2,2)}"),
    "xla_tiles_in_tiles": lambda: drawing_of("bf16[4,8]{1,0:T(2,4)(2,1)}"),
    "xla_combined": lambda: drawing_of("f32[2,3,5]{2,1,0:T(*,2,2)}"),
    "xla_at_scale": lambda: drawing_of("bf16[4096,11008]{1,0:T(8,128)(2,1)}"),
    "xla_ragged": lambda: drawing_of("f32[1000,300]{1,0:T(8,128)}"),
    "strides_collide": lambda: drawing_of("f32[3,5] strides (4,1)"),
    "axe_lanes": lambda: drawing_of(FIG2),
    "axe_swizzle": lambda: drawing_of("S[(8,64):(64,1)] swizzle (3,3,3) on (8,64)"),
    "cute_threads": lambda: drawing_of("((4,8),(2,2)):((32,1),(16,8))"),
    "sharding_mesh": lambda: drawing_of("f32[7,12] sharded {mesh['x'=2,'y'=2], [{'y'}, {'x'}]}"),
    "sharding_replicas": lambda: drawing_of("f32[8,12] sharded {devices=[2,1,2]<=[4] last_tile_dim_replicate}"),
    "sharding_large": lambda: drawing_of("f32[8192,8192] sharded {devices=[16,16]<=[256]}"),
    "triton_linear": lambda: drawing_of(
        {"linear": {"in": {"register": [[0, 1]], "lane": [[1, 0], [0, 0]]}, "out": ["dim0", "dim1"]}}
    ),
    "kernel_matmul": lambda: drawing_of(dict(MATMUL), kernel_target("v5e")),
    "kernel_outside": lambda: drawing_of("s32[3,4] blockspec (1, 2) (i, j) -> (i + 1, 0) grid (4, 2) out"),
    "kernel_ragged": lambda: drawing_of("f32[1000,128] blockspec (256, 128) (i) -> (i, 0) grid (4,)"),
    "kernel_over_its_memory": lambda: drawing_of(
        {"blockspec": {"array": "f32[4096,4096]", "block": [2048, 2048], "index": "(i) -> (i, 0)", "grid": [2]}},
        kernel_target("v5e"),
    ),
    "asked_injective": lambda: asked("injective", "f32[3,5] strides (4,1)"),
    "asked_covers": lambda: asked("covers", "f32[3,5] strides (6,1)"),
    "asked_same_map": lambda: asked("same_map", "f32[8,8]{1,0:T(2,4)}", "f32[8,8]{1,0}"),
    "asked_bitcast": lambda: asked("bitcast", "f32[3,5]{1,0:T(2,2)}", "f32[15]{0:T(2)}"),
    "two_layouts": lambda: difference("f32[8,8]{1,0:T(2,4)}", "f32[8,8]{0,1:T(2,4)}"),
}
"""What is drawn, by the name of its file."""


def main(folder: Path) -> None:
    """Write every picture into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        drawn = draw()
        (folder / f"{name}.svg").write_text(svg_picture(drawn))
        for dark in (False, True):
            (folder / f"{name}{'_dark' if dark else ''}.png").write_bytes(png_bytes(drawn, dark))
    print(f"{len(PICTURES)} pictures in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
