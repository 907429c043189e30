"""33 programs, each rewritten rightly and wrongly: `python benchmarks/functions [--only NAME] [--keep FOLDER]`.

They are put into a git repository, and `layoutproof gate --against main --same-function` judges both changes. A right
rewrite that is denied, and a wrong one that is not, is wrong; the exit code is then 1, as where more than a tenth of
them are unknown. What is wrong is shown first without layoutproof: JAX computes both on random inputs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if __package__ != "benchmarks.functions":
    sys.path[0] = str(HERE.parents[1])

_F16, _W = "f32[16,8]", "f32[8,8]"
_PARAMETERS = (_F16,) * 2
_MOMENTS = (_F16,) * 4
PROGRAMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("sgd", "sgd_rate", "averaged"), _PARAMETERS),
    **dict.fromkeys(("adam", "adam_second", "adamw"), _MOMENTS),
    **dict.fromkeys(("momentum", "lion", "mixed_loss"), (_F16,) * 3),
    "layer_norm": (_F16, "f32[8]", "f32[8]"),
    "exp_product": (_F16, "f32[8,4]", "f32[8,4]"),
    "residual": (_F16, "f32[8,12]", "f32[12,8]"),
    "softmax": (_F16,),
    "cross_entropy": _PARAMETERS,
    "gated": (_F16, "f32[8,12]", "f32[8,12]", "f32[12,8]"),
    "clip": (_F16,),
    "causal": ("f32[8,16]",) * 3,
    "rms_norm": (_F16, "f32[8]"),
    "batch_norm": (_F16, "f32[8]", "f32[8]"),
    "heads": ("f32[8,16]", *("f32[16,16]",) * 3),
    "grouped": ("f32[4,8,4]", "f32[2,8,4]", "f32[2,8,4]"),
    "linear_attention": (_F16,) * 3,
    "layers": (_F16, "f32[3,8,8]"),
    "loss_and_grad": (_W, _F16, _F16),
    "remat": ("f32[3,8,8]", _F16),
    "huber": _PARAMETERS,
    "contrastive": _PARAMETERS,
    "schedule": ("f32[]",),
    "accumulate": (_W, "f32[4,16,8]"),
    "moe": (_W, "f32[4,8,6]"),
    "moe_gates": (_W, "f32[4,8,6]", "f32[8]"),
    "rotary": (_F16, "f32[16,4]", "f32[16,4]"),
    "convolution": ("f32[2,6,6,3]", "f32[3,3,3,4]"),
}
"""Each program with its arguments."""
SIDES = ("right", "wrong")


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PROGRAMS, action="append", help="Only this program.")
    parser.add_argument("--keep", type=Path, help="The folder of the repository; by default it is gone afterwards.")
    given = parser.parse_args(arguments)
    names = given.only or list(PROGRAMS)
    with tempfile.TemporaryDirectory() as folder:
        place = given.keep or Path(folder)
        repository(place, names)
        bad, unknown, count = 0, 0, 0
        for side in SIDES:
            start = time.perf_counter()
            found = judged(place, side)
            for name in names:
                question, reason = found.get(name, ("nothing said", ""))
                count += 1
                unknown += question == "function_unknown"
                right = question == {"right": "same_function", "wrong": "other_function"}[side]
                bad += not right and question != "function_unknown"
                differs = witness(name, side)
                if differs is not (side == "wrong"):
                    raise SystemExit(f"{name} {side}: JAX says that they {'differ' if differs else 'are the same'}")
                mark = "" if right else "? " if question == "function_unknown" else "WRONG "
                print(f"{mark}{name:<17} {side:<6} {question}  {reason[:160]}")
            print(f"{side}: {time.perf_counter() - start:.0f} s")
    print(f"{count} changes: {bad} wrong, {unknown} unknown")
    return int(bad > 0 or 10 * unknown > count)


def repository(place: Path, names: Sequence[str]) -> None:
    """A repository in which the programs are as they were."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "model.py").write_text((HERE / "before.py").read_text())
    (place / "specs").mkdir()
    entries = [f"  {name}: {json.dumps({'function': f'model:{name}', 'args': PROGRAMS[name]})}" for name in names]
    (place / "specs" / "programs.yaml").write_text("\n".join(["programs:", *entries, ""]))
    (place / "pyproject.toml").write_text("")
    for command in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "before")):
        settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *settings, *command], cwd=place, check=True)


def judged(place: Path, side: str) -> dict[str, tuple[str, str]]:
    """Of each program (class, reason), once the work tree has one side."""
    (place / "model.py").write_text((HERE / f"{side}.py").read_text())
    command = [sys.executable, "-m", "layoutproof", "gate", "--against", "main", "--same-function", "--json", "specs"]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, env=environment, check=False)
    found: dict[str, tuple[str, str]] = {}
    for each in json.loads(done.stdout)["findings"]:
        name = each["subject"].partition(":")[0].removeprefix("program ")
        found[name] = each["question"], each["reason"]
    return found


def witness(name: str, side: str) -> bool:
    """Whether JAX computes another value than before, on one draw in float64."""
    import jax
    import numpy as np

    jax.config.update("jax_enable_x64", True)

    from layoutproof.pallas.from_jax.user import argument

    rng = np.random.default_rng(7)
    given = [np.abs(rng.normal(size=argument(text).shape)) for text in PROGRAMS[name]]
    if name == "schedule":
        given = [np.float64(37.0)]
    values: list[Any] = []
    for module in ("before", side):
        function = getattr(importlib.import_module(f"benchmarks.functions.{module}"), name)
        values.append(jax.tree.leaves(function(*given)))
    return any(not np.allclose(a, b, rtol=1e-6, atol=1e-9) for a, b in zip(*values, strict=True))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
