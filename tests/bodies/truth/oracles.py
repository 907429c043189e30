"""What others say of random kernels: JAX's interpreter, and the linter of the TPU compiler. Both in child processes.

The interpreter can wait for ever, and the compiler can abort. `Child` asks one, watches it, and goes on with another
where it has to. What the literal walk of the same run says is held against what they show. They do not show all; where
they show less, a rule says why (`BLIND`). What no rule explains is a conflict.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import select
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.bodies import random_rings
from tests.bodies.truth.compare import compared
from tests.bodies.truth.description import Description, E, Signal, Slice, Wait, parts
from tests.bodies.truth.generate import kernel
from tests.bodies.truth.literal import FOREIGN, Run, Seen, arrays, contents, races, shares
from tests.bodies.truth.watch import LOOK, Watch, used

MODES = {
    "nan": {"uninitialized_memory": "nan", "dma_execution_mode": "on_wait"},
    "zero": {"uninitialized_memory": "zero", "dma_execution_mode": "eager"},
}
"""How the interpreter is asked: what new memory holds, and when copies happen."""

LINTS = ("bounds_check", "dma_race", "vmem_poison_use")
HANG = "waits for ever"
ABORT = "aborts"
LATE = "takes too long"

QUICK = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
"""For what runs once: LLVM takes longer than the run. XLA's own passes are the same."""

TPU = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}

# in the child


def interpreted(made: Description, mode: str) -> tuple[str, list[Any]]:
    """What the interpreter says, in a few words, and the outputs."""
    import jax.numpy as jnp
    from jax._src.pallas.mosaic.interpret import interpret_pallas_call
    from jax.experimental.pallas import tpu as pltpu

    from tests.bodies.truth.pallas import function

    given = [*_tables(made), *arrays(made, made.seed)]
    params = pltpu.InterpretParams(detect_races=True, num_cores_or_threads=2 if made.parallel else 1, **MODES[mode])
    said, outputs, text = "", [], io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            outputs = [np.asarray(x) for x in function(made)(*map(jnp.asarray, given), interpret=params)]
    except Exception as error:
        # its state is not usable after an error
        pltpu.reset_tpu_interpret_mode_state()
        said = f"{type(error).__name__}: {error}"
    said += text.getvalue()
    found = getattr(interpret_pallas_call, "races", None)
    if found is not None and getattr(found, "races_found", False):
        said += " RACE"
        found.races_found = False
    return _words(said), outputs


def _tables(made: Description) -> list[Any]:
    """What the tables hold in the run of the interpreter."""
    every, _ = contents(made, made.seed)
    return every[made.seed % len(every) if made.assume else 0]


def _words(said: str) -> str:
    # in capitals: a traceback has the letters too
    if "RACE" in said:
        return "race"
    lowered = said.lower()
    for sign, word in (
        ("out-of-bounds block index", "block out of bounds"),
        ("revisited block", "revisited"),
        ("out-of-bounds", "out of bounds"),
        ("out of bound", "out of bounds"),
        ("assertionerror", "out of bounds"),
        ("non-zero count", "semaphore left"),
        ("notimplementederror", "not implemented"),
    ):
        if sign in lowered:
            return word
    return " ".join(said.split())[:300]


def literal_run(made: Description, share: int = 0) -> Seen:
    """The run that the interpreter is given; share: what of it one core does, 0 for all of it."""
    run = Run(made, arrays(made, made.seed), _tables(made), shares(made)[share])
    seen = run.run()
    races(run, seen.found)
    return seen


def one_run(seed: int, mode: str) -> dict[str, Any]:
    """One run of the literal walk and of the interpreter: what is found, where they differ, what garbage became."""
    made = kernel(seed)
    seen = literal_run(made)
    said, outputs = interpreted(made, mode)
    differs, garbage = "", []
    for ref, literal, output in zip(made.outputs, seen.outputs, outputs, strict=bool(outputs)):
        clean = (literal.bits & ~np.uint8(FOREIGN)) == 0
        v, other = (np.asarray(x, np.float64) for x in (literal.v, output))
        bad = clean & ~np.isclose(v, other, rtol=2e-2, atol=1e-2)
        if bad.any():
            at = tuple(int(n) for n in np.argwhere(bad)[0])
            differs = f"{ref.name}{at} is {v[at]}, {other[at]} there"
        garbage += [None if np.isnan(x) else x for x in other[~clean].tolist()]
    return {"said": said, "differs": differs, "garbage": garbage, "ran": bool(outputs)}


def linted(seed: int, target: str) -> dict[str, Any]:
    """What the compiler's linter says of a kernel; `lowered`: whether the compiler takes it at all."""
    import jax
    from jax.experimental import topologies
    from jax.sharding import Mesh, SingleDeviceSharding

    from tests.bodies.truth.pallas import function, shapes

    made = kernel(seed)
    desc = topologies.get_topology_desc(platform="tpu", topology_name="v5e:1x1", chips_per_host_bounds=(1, 1, 1))
    device = desc.devices[0]
    placed = [jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=SingleDeviceSharding(device)) for s in shapes(made)]
    try:
        with jax.sharding.use_abstract_mesh(Mesh([device], ("d",)).abstract_mesh):
            low = jax.jit(function(made)).lower(*placed)
        if target == LINTS[0]:
            low.compile()
    except Exception as error:
        return {"lowered": False, "said": f"{type(error).__name__}: {error}"[:200]}
    options = {
        "xla_tpu_enable_llo_linter": "true",
        "xla_tpu_llo_linter_targets": target,
        "xla_tpu_llo_linter_analyze_tpu_custom_calls": "true",
        "xla_tpu_llo_linter_fail_fast": "true",
        "xla_tpu_llo_linter_crash_on_error": "true",
    }
    try:
        low.compile(compiler_options=options)
    except Exception as error:
        return {"lowered": True, "said": " ".join(str(error).split())[:400]}
    return {"lowered": True, "said": ""}


def judged(seed: int, _: str) -> dict[str, Any]:
    """The verdicts on a kernel, with the truth, in the child's version of JAX."""
    return compared(seed).as_dict()


def version(_: int, word: str) -> dict[str, Any]:
    """Which JAX this is."""
    import jax

    return {"said": jax.__version__}


def serve() -> None:
    """Answers lines of standard input in a fork of this process, and in another one where that one is killed.

    What takes long to import is imported once; nothing here starts threads of JAX, so that forks can use it.
    """
    import jax  # noqa: F401
    from jax._src.pallas.mosaic.interpret import interpret_pallas_call  # noqa: F401

    import tests.bodies.device_pairs
    import tests.bodies.truth.pallas  # noqa: F401

    _end_with_parent()
    while True:
        worker = os.fork()
        if worker == 0:
            _end_with_parent()
            _answers()
            os._exit(0)
        _send({"worker": worker})
        if os.waitpid(worker, 0)[1] == 0:
            # nothing more is asked
            return


def _end_with_parent() -> None:
    """Linux ends this process when the one that started it ends: what waits for ever is not left behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _answers() -> None:
    """One answer in JSON for each line of standard input: the name of a function here, a seed, and a word."""
    known = {
        "one_run": one_run, "linted": linted, "judged": judged, "version": version,
        "ring_judged": lambda seed, _: random_rings.judged(seed), "ring_run": random_rings.run,
    }  # fmt: skip
    # unbuffered: the next fork reads on where this one ends
    with os.fdopen(0, "rb", buffering=0) as lines:
        for line in lines:
            name, seed, word = json.loads(line)
            try:
                found = known[name](seed, word)
            except Exception as error:
                found = {"failed": f"{type(error).__name__}: {error}"[:400]}
            _send(found)


def _send(found: Mapping[str, Any]) -> None:
    os.write(1, b"\n@@" + json.dumps(found).encode() + b"\n")


# in the parent


class Child:
    """A process that answers. Its work is done by forks of it, which are cheap to end: one that hangs, or is old."""

    def __init__(self, python: str, more: Mapping[str, str] | None = None) -> None:
        root = str(Path(__file__).parents[3])
        self.command = [python, "-m", "tests.bodies.truth.oracles"]
        self.environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": root, **(more or {})}
        self.root = root
        self.process: subprocess.Popen[bytes] | None = None
        self.worker = 0
        self.held = b""

    def ask(self, name: str, seed: int, word: str, limit: float) -> dict[str, Any]:
        """An answer; {"said": HANG} where all its threads only wait; {"said": ABORT} where it ends by itself.

        limit: seconds of CPU that it may take; {"said": LATE} after them.
        """
        if self.process is None:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self.root,
                env=self.environment,
            )
        while not self.worker:
            self.worker = (self._message() or {"worker": 0})["worker"]
        assert self.process.stdin is not None
        self.process.stdin.write((json.dumps([name, seed, word]) + "\n").encode())
        self.process.stdin.flush()
        watch, began = Watch(self.worker), used(self.worker)
        while True:
            found = self._message(LOOK)
            if found is not None:
                if "worker" in found:
                    self.worker = found["worker"]
                    return {"said": ABORT}
                return found
            if watch.idle():
                self.renew()
                return {"said": HANG}
            if used(self.worker) - began > limit:
                self.renew()
                return {"said": LATE}

    def _message(self, seconds: float | None = None) -> dict[str, Any] | None:
        """The next message, None where none comes in time."""
        assert self.process is not None
        assert self.process.stdout is not None
        out = self.process.stdout.fileno()
        while True:
            line, end, rest = self.held.partition(b"\n")
            if end:
                self.held = rest
                # what a library prints is no message
                if line.startswith(b"@@"):
                    return dict(json.loads(line[2:]))
                continue
            if not select.select([out], [], [], seconds)[0]:
                return None
            piece = os.read(out, 1 << 16)
            if not piece:
                raise RuntimeError(f"{' '.join(self.command)} ended")
            self.held += piece

    def renew(self) -> None:
        """Ends the fork that answers; the next question goes to a new one."""
        if self.worker:
            os.kill(self.worker, signal.SIGKILL)
            self.worker = 0

    def close(self) -> None:
        """Ends the process."""
        self.renew()
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process, self.held = None, b""


# what the interpreter hides, and why


GOES_ON = "a place or a condition is garbage: the walk ends there, the interpreter goes on with some number"


def verdict_of_runs(seed: int, answers: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """(conflicts, blind spots) of the interpreter's runs of one kernel, one per mode, against the literal walk."""
    made = kernel(seed)
    conflicts, blind = [], []
    found = literal_run(made).found
    said = {mode: a.get("said", a.get("failed", "")) for mode, a in answers.items()}
    if any(word == "not implemented" for word in said.values()):
        return [], ["masked loads and stores are not implemented there"]
    if LATE in said.values():
        return [], [LATE]
    outside = bool({"out of bounds", "block outside", "table read outside"} & set(found))
    moving = bool({"dma", "race", "uses foreign", "reads foreign", "window in flight"} & set(found))
    stopped = "garbage" in found.get("stopped", "")
    for mode, word in said.items():
        expected = {
            "out of bounds": outside,
            "block out of bounds": "block outside" in found,
            "revisited": "revisited" in found,
            "race": moving or outside,
            "semaphore left": moving or outside,
            HANG: moving or outside,
            "": True,
        }
        if not expected.get(word, False):
            rule = GOES_ON if stopped else _why_more(made, word)
            (blind if rule else conflicts).append(rule or f"{mode}: {word}")
        differs = answers[mode].get("differs", "")
        if differs and not moving and not outside and "revisited" not in found:
            if stopped:
                blind.append(GOES_ON)
            elif any(ref.low for ref in made.inputs):
                blind.append("padding in front of Element windows is left out")
            else:
                conflicts.append(f"{mode}: {differs}")
    if outside:
        hidden = not {"out of bounds", "block out of bounds"} & set(said.values())
        return conflicts, blind + ([_why_inside(found)] if hidden else [])
    shown = [w for w in said.values() if w] + [a["differs"] for a in answers.values() if a.get("differs")]
    if moving and not shown:
        blind.append(_why_still(found))
    runs = [a for a in answers.values() if a.get("ran")]
    if len(runs) == 2 and runs[0]["garbage"]:
        kept = [a for a, b in zip(runs[0]["garbage"], runs[1]["garbage"], strict=True) if a is not None and a == b]
        if len(kept) == len(runs[0]["garbage"]):
            blind.append(_why_kept(made, found))
    elif len(runs) == 2 and {"uses unwritten", "not stored", "padding"} & set(found):
        blind.append("what is undefined reaches no output")
    return conflicts, sorted(set(blind))


def _operations(made: Description) -> set[str]:
    return {p.op for p in parts(made) if isinstance(p, E)}


def _why_more(made: Description, word: str) -> str:
    """Why the interpreter reports what is not there; "" where nothing explains it."""
    if word == HANG and made.parallel and any(isinstance(p, Signal) for p in parts(made.body)):
        return "on two cores a signal that names no core goes to the first one, and the other waits for ever"
    if word == HANG and any("dma" in literal_run(made, k).found for k in range(1, len(shares(made)))):
        return "on two cores, one waits for a copy that the other one started"
    if word == "block out of bounds":
        return "a window past its array is looked at where it is fetched: a question about the grid"
    if word == "race" and any(isinstance(p, Slice) and p.stride > 1 for p in parts(made.body)):
        return "strided slices race by their hulls"
    if word == "out of bounds" and any(isinstance(p, Wait) for p in parts(made.body)):
        return "the place that a wait's descriptor names is looked at"
    if "Cannot lower jaxpr with verifier errors" in word and made.aliases:
        return "an alias with partial blocks is not lowered there"
    return ""


def _why_inside(found: Mapping[str, str]) -> str:
    where = found.get("out of bounds") or found.get("table read outside", "")
    if where and int(where.split(": ")[1].split("..")[0]) < 0:
        return "a negative index wraps"
    return "an access out of bounds is not seen: something else comes first"


def _why_still(found: Mapping[str, str]) -> str:
    if "dma" in found:
        return "a copy in flight: it ends before and after with the same numbers"
    if "race" in found:
        return "a race of two programs that one core ran"
    return "scratch of another core"


def _why_kept(made: Description, found: Mapping[str, str]) -> str:
    if "not stored" in found or "uses unwritten" in found:
        return "a stale window or scratch: what an earlier program left"
    if {"select", "min", "max", "amax", "amin", "<", "<="} & _operations(made):
        return "a choice or comparison takes NaN and 0 alike"
    return "NaN and 0 give one number"


def verdict_of_lints(seed: int, answers: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """(conflicts, what was said and was true) of the linter's answers, one per target, against the literal walk."""
    made = kernel(seed)
    found: dict[str, str] = {}
    for tables in contents(made, made.seed)[0]:
        for programs in shares(made)[:1]:
            run = Run(made, arrays(made, made.seed), tables, programs)
            found = run.run().found | found
    reasons = {
        "bounds_check": {"out of bounds"},
        "dma_race": {"dma", "out of bounds", "window in flight"},
        "vmem_poison_use": {"reads unwritten", "copies unwritten", "uses unwritten", "out of bounds", "dma"},
    }
    # every partial block is poison to it, masked or not, and XLA's own copy of an output that has one; and what is left
    # of a tile that a window or an array does not fill
    arrays_ = (*made.inputs, *made.outputs)
    padded = any(any(n % size for n, (_, size) in zip(r.shape, r.block, strict=False)) for r in arrays_)
    seen = [ref.seen for ref in (*arrays_, *made.scratch) if len(ref.seen) > 1]
    torn = any(dims[-1] % 128 or dims[-2] % 8 for dims in seen)
    conflicts, words = [], []
    for target, answer in answers.items():
        flagged, true = bool(answer.get("said")), bool(reasons[target] & set(found))
        # a small array may lie in VMEM as a whole: its last block then ends behind its memory
        fills = (padded or torn) if target == "vmem_poison_use" else padded and "S(1)" in answer.get("said", "")
        if flagged and not true and not fills:
            conflicts.append(f"{target}: {answer['said']}")
        elif flagged:
            words.append(f"{target}: {'flagged, and true' if true else 'flags what fills up a block or a tile'}")
        else:
            words.append(f"{target}: silent, {'though it is true' if true else 'nothing to say'}")
    return conflicts, words


if __name__ == "__main__":
    serve()
