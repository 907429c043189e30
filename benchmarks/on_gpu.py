"""Kernels of Mosaic GPU run on a GPU, right and wrong, and what was seen beside what layoutproof says.

On a machine with a Hopper GPU and jax, `python -m benchmarks.on_gpu run OUT.json [--only TEXT]` runs each kernel in a
process of its own, as a wait may never end, and writes down what was seen. It needs neither islpy nor Z3. Anywhere,
`python -m benchmarks.on_gpu judge OUT.json` asks layoutproof about the same kernels, prints a table of both, and keeps
it in `tests/cases/mosaic_gpu_on_gpu.json` for `python -m tests.pallas.mosaic_gpu_page`. It exits 1 where a kernel that
is proved was seen wrong.

Kernels are run many times, each time on other numbers, and before each run shared memory and the memory of the results
are filled with NaN. What is right in all runs may still be wrong: a race need not show.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests" / "cases" / "mosaic_gpu_on_gpu.json"
RUNS = 40
"""Of each kernel."""
SECONDS = 40
"""For one kernel with its start and its compilation, after which its wait counts as one without an end."""
AT_ONCE = 12
"""Processes."""
SEED, DRAWN = 20261129, 120
"""Of the kernels that are drawn at random."""
TUNED, EACH = ("hopper_matmul", "attention"), 24
"""Kernels of `benchmarks/legal_gpu.py`, and how many configurations of each are run."""
OF_LIMITS = ("warpgroup_registers", "memory_budget", "gpu_instructions")
"""The questions about kernels at the limits, which compute nothing."""


@dataclass(frozen=True)
class Subject:
    """A kernel that is run.

    group: pairs, drawn, values, wheel, legal or limits.  name: its name in the group.  build: makes (function, shapes).
    want: what it should compute, of arrays, None where that does not matter.  said: layoutproof's verdict where a test
    holds it, "" where `judge` asks.  close: how far from what is wanted it may be, relative to the largest number.
    """

    group: str
    name: str
    build: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]
    want: Callable[..., Any] | None
    said: str = ""
    close: float = 0.0


@dataclass(frozen=True)
class Seen:
    """What was seen of one. saw: right, wrong numbers, NaN, no end, or error.  runs: how many of RUNS were wrong."""

    group: str
    name: str
    saw: str
    runs: int
    detail: str


def subjects() -> Iterator[Subject]:
    """All of them."""
    yield from _pairs()
    yield from _drawn()
    yield from _values()
    yield from _wheel()
    yield from _legal()
    yield from _limits()


def _pairs() -> Iterator[Subject]:
    from tests.pallas.mosaic_gpu_pairs import PAIRS, WANTED
    from tests.pallas.mosaic_gpu_tensor_pairs import TENSOR_PAIRS
    from tests.pallas.mosaic_gpu_thread_pairs import THREAD_PAIRS

    for name, pair in (PAIRS | THREAD_PAIRS).items():
        for side, options, said in (("right", {}, "proved"), ("wrong", pair.wrong, "refuted")):
            build = lambda p=pair, o=options: (p.make(**o), p.args)  # noqa: E731
            yield Subject("pairs", f"{name}: {side}", build, WANTED[pair.args], said)
    name, pair = next(iter(TENSOR_PAIRS.items()))
    yield Subject(
        "limits", f"tensor memory on Hopper ({name}, right)", lambda: (pair.make(), pair.args), None, "refuted"
    )


def options() -> dict[Callable[..., Any], tuple[Any, dict[str, Sequence[Any]]]]:
    """Of each kernel of the pairs its arguments and what its options may be, the right value first.

    None of them changes what a kernel computes whose places and order are right.
    """
    from tests.pallas import mosaic_gpu_pairs as own
    from tests.pallas import mosaic_gpu_thread_pairs as threads

    yes, no = (True, False), (False, True)
    return {
        own.add_one: (own.ROWS, {"wait": yes, "commit": yes, "leave": no, "grid": (4, 3, 5), "step": (64, 32, 96),
                                 "arrivals": (1, 2)}),
        own.doubled: (own.LONG, {"allowed": (1, 0, 2, 3), "commit_early": no}),
        own.matmul: (own.FACTORS, {"wait": yes, "done": yes, "commit": yes, "arrivals": (2, 1, 3)}),
        own.piped: (own.FACTORS, {"done": yes, "steps": (2, 1, 3, 4), "filled": yes}),
        partial(own.piped, transposed=True): (own.TURNED, {"done": yes, "steps": (2, 1, 3, 4)}),
        threads.handed: (own.LONG, {
            "filled": yes, "released": ("after", "before", "never"), "awaited": yes,
            "commit": ("own", "other", "none"), "drained": yes, "turns": (4, 3, 5),
            "arrivals": ((1, 1), (2, 1), (1, 2), (2, 2)), "twice": no, "guarded": yes,
        }),
        threads.shared_by_two: (own.LONG, {"arrivals": (2, 1, 3), "half": (32, 0, 16)}),
        threads.stored_for_another: (own.LONG, {"met": yes, "back": yes, "rows": (64, 32)}),
        threads.multiplied: (own.FACTORS, {"done": yes, "slots": (2, 1), "both": (2, 1, 3), "leave": (0, 1)}),
        threads.spread: (own.LONG, {"met": yes, "all_of_them": yes, "wanted": (1, 2)}),
        threads.spread_factors: (own.FACTORS, {"met": yes, "all_of_them": yes}),
    }  # fmt: skip


def _drawn() -> Iterator[Subject]:
    """Kernels of the pairs with none to four options off, drawn at random, each once."""
    from tests.pallas.mosaic_gpu_pairs import WANTED

    choices, found, draw = [*options().items()], set(), random.Random(SEED)
    while len(found) < DRAWN:
        make, (args, given) = draw.choice(choices)
        off = draw.sample(sorted(given), min(draw.randint(0, 4), len(given)))
        chosen = {name: draw.choice(given[name]) for name in off}
        changed = {name: value for name, value in chosen.items() if value != given[name][0]}
        base = make.func if isinstance(make, partial) else make
        also = " transposed" if isinstance(make, partial) else ""
        name = f"{base.__name__}{also} {' '.join(f'{k}={v}' for k, v in sorted(changed.items())) or 'as it is'}"
        if name not in found:
            found.add(name)
            yield Subject("drawn", name, lambda m=make, c=changed, a=args: (m(**c), a), WANTED[args])


def _values() -> Iterator[Subject]:
    from tests.values.mosaic_gpu_cases import CASES

    for name, case in CASES.items():
        for wrong, want in {"": case.want, **case.wrong}.items():
            build = lambda c=case, w=wrong: (c.make(w), c.args)  # noqa: E731
            yield Subject("values", f"{name}: {wrong or 'right'}", build, want, "proved", 5e-3)


def _wheel() -> Iterator[Subject]:
    from benchmarks.same_mosaic_gpu import ROWS
    from tests.pallas.mosaic_gpu_ops import ops

    for op in ops():
        if op.chip == "h100" and op.name in ROWS:
            yield Subject("wheel", op.name, op.build, ROWS[op.name].reference(False), "", 5e-3)


def _legal() -> Iterator[Subject]:
    """Configurations of two kernels of JAX, drawn at random, without tiles that the functions refuse themselves."""
    from benchmarks.legal import configurations
    from benchmarks.legal_gpu import GPU
    from benchmarks.same_mosaic_gpu import attended, multiplied
    from layoutproof.pallas.from_jax.user import argument

    for name in TUNED:
        of = GPU[name]
        of = of._replace(
            parameters={key: [n for n in some if n % 64 == 0 or n < 64] for key, some in of.parameters.items()}
        )
        for values in configurations(of, EACH):
            build = lambda o=of, v=values: (partial(o.function, **v), tuple(map(argument, o.args)))  # noqa: E731
            want = attended(bool(values["causal"]), False) if "causal" in values else multiplied(False)
            called = " ".join(f"{key}={value}" for key, value in values.items())
            yield Subject("legal", f"{name} {called}", build, want, "", 5e-3)


def _limits() -> Iterator[Subject]:
    from tests.pallas.mosaic_gpu_limits import ROWS, limits

    for name, (make, said) in limits().items():
        yield Subject("limits", name, lambda m=make: (m(), (ROWS,)), None, said)


# on the machine with a GPU


def seen(subject: Subject) -> Seen:
    """Runs one kernel, in this process."""
    import jax

    function, args = subject.build()
    fill, call = _filled(), jax.jit(function)
    want = jax.jit(subject.want or (lambda *_: ()))
    draw, wrong, worst, kinds = np.random.default_rng(SEED), 0, 0.0, Counter[str]()
    host = jax.devices("cpu")[0]
    for _ in range(RUNS):
        given = [_numbers(draw, a) for a in args]
        fill()
        found = [np.asarray(x, np.float64) for x in jax.tree.leaves(call(*given))]
        with jax.default_device(host):
            wanted = [np.asarray(x, np.float64) for x in jax.tree.leaves(want(*given))]
        off = max((_off(x, w) for x, w in zip(found, wanted, strict=subject.want is not None)), default=0.0)
        worst = max(worst, off)
        if not off <= subject.close:
            wrong += 1
            kinds["NaN" if np.isnan(off) else "wrong numbers"] += 1
    saw = kinds.most_common(1)[0][0] if wrong else "right"
    return Seen(subject.group, subject.name, saw, wrong, f"off by {worst:.2g}" if subject.close else "")


def _off(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def _numbers(draw: np.random.Generator, a: Any) -> np.ndarray:
    """Small whole numbers, of which sums are exact; of floats in products of several steps they are none."""
    from benchmarks.same_mosaic_gpu import GROUPS

    if a.shape == (len(GROUPS),):
        return np.array(GROUPS, a.dtype)
    if np.dtype(a.dtype).kind in "iu":
        return draw.integers(-4, 5, a.shape).astype(a.dtype)
    return draw.integers(-2, 3, a.shape).astype(np.float32).astype(a.dtype)


def _filled() -> Callable[[], None]:
    """What fills the shared memory of all multiprocessors, and some of the free memory of the GPU, with NaN."""
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import mosaic_gpu as plgpu

    many, shape = jax.devices()[0].core_count, (2 * 226, 128)
    out = jax.ShapeDtypeStruct((many, 4, 128), jnp.int32)

    def body(o_gmem: Any, smem: Any) -> None:
        smem[...] = jnp.full(shape, -1, jnp.int32)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(smem.at[pl.ds(0, 4)], o_gmem.at[lax.axis_index("i")])
        plgpu.wait_smem_to_gmem(0)

    memory = [plgpu.SMEM(shape, jnp.int32)]
    shared = jax.jit(plgpu.kernel(body, out_type=out, grid=(many,), grid_names=("i",), scratch_types=memory))
    free = jax.jit(lambda: [jnp.full((1 << 20,), jnp.nan, jnp.float32) for _ in range(4)])

    def fill() -> None:
        jax.block_until_ready((shared(), free()))

    return fill


def started(subject: Subject) -> Seen:
    """Runs one in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.on_gpu", "one", subject.group, subject.name]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_TRACEBACK_FILTERING": "off"}
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", **quiet}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            output, errors = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Seen(subject.group, subject.name, "no end", RUNS, "")
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            return Seen(**json.loads(line))
    said = [line.strip() for line in errors.splitlines() if re.match(r"[\w.]*Error: ", line)]
    return Seen(subject.group, subject.name, "error", RUNS, (said or [f"exit code {process.returncode}"])[-1][:300])


def run(path: Path, only: str) -> None:
    """Runs all, and writes down what was seen."""
    import jax

    chosen = [s for s in subjects() if only in f"{s.group} {s.name}"]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = []
        for each in pool.map(started, chosen):
            found.append(each)
            print(f"{each.group} {each.name}: {each.saw} {each.runs} {each.detail[:100]}", flush=True)
    name = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                          capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    about = {"gpu": name, "jax": jax.__version__, "date": str(datetime.date.today()), "runs": RUNS, "seed": SEED}
    path.write_text(json.dumps({**about, "seen": [asdict(f) for f in found]}, indent=1) + "\n", "utf-8")


def main() -> int:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    of_run = verbs.add_parser("run")
    of_run.add_argument("--only", default="", help="kernels whose group and name have this")
    for own in (of_run, verbs.add_parser("judge")):
        own.add_argument("path", type=Path)
    one = verbs.add_parser("one")
    one.add_argument("group")
    one.add_argument("name")
    given = parser.parse_args()
    if given.verb == "run":
        run(given.path, given.only)
    elif given.verb == "one":
        (subject,) = islice((s for s in subjects() if (s.group, s.name) == (given.group, given.name)), 1)
        print(json.dumps(asdict(seen(subject))), flush=True)
        # no wait for what the GPU may still do
        os._exit(0)
    else:
        return judge(given.path)
    return 0


# anywhere


def judge(path: Path) -> int:
    """Asks layoutproof about what was seen, keeps both, and prints where they do not go together."""
    import jax

    kept = json.loads(path.read_text("utf-8"))
    own = {(s.group, s.name): s for s in subjects()}
    for row in kept["seen"]:
        subject = own.get((row["group"], row["name"]))
        if subject is None:
            raise SystemExit(f"{row['group']} {row['name']}: there is no such kernel any more")
        row["said"], row["question"] = (subject.said, "") if subject.group == "values" else asked(subject)
    kept["judged with jax"] = jax.__version__
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    wrong = [row for row in kept["seen"] if row["said"] == "proved" and row["saw"] != "right"]
    for group in dict.fromkeys(row["group"] for row in kept["seen"]):
        rows = [row for row in kept["seen"] if row["group"] == group]
        count = Counter((row["said"], "right" if row["saw"] == "right" else "seen wrong") for row in rows)
        print(f"{group}: " + ", ".join(f"{said} and {saw} {many}" for (said, saw), many in sorted(count.items())))
    for row in wrong:
        print(f"proved, and {row['saw']} in {row['runs']} of {kept['runs']} runs: {row['group']} {row['name']}")
    return 1 if wrong else 0


def _answered(name: str) -> tuple[str, str]:
    """What `lp.legal` says of a configuration, and by which question."""
    import layoutproof as lp
    from benchmarks.legal_gpu import GPU

    kernel, *values = name.split()
    of = GPU[kernel]
    legal = lp.legal(of.function, *of.args, target="h200", parameters=of.parameters)
    answer = legal(**{key: int(value) for key, _, value in (text.partition("=") for text in values)})
    refused = answer.verdict.value == "refuted"
    return answer.verdict.value, (answer.question or "the function") if refused else ""


def asked(subject: Subject) -> tuple[str, str]:
    """What `layoutproof kernels` says of a kernel on an H200, and the question that says so."""
    import layoutproof as lp
    from tests.pallas.mosaic_gpu_ops import pretended

    with pretended("h100"):
        if subject.group == "legal":
            return _answered(subject.name)
        function, args = subject.build()
        try:
            findings = lp.kernels(function, *args, target="h200").findings
        except lp.LayoutError as error:
            return "unknown", str(error)[:100]
    errors = [f for f in findings if f.asked and f.severity == "error"]
    errors = [f for f in errors if subject.group != "limits" or f.question in OF_LIMITS]
    worst = min(errors, key=lambda f: f.verdict)
    return worst.verdict.value, "" if worst.verdict.value == "proved" else worst.question


if __name__ == "__main__":
    sys.exit(main())
