"""What the TPU compiler made of functions, beside the functions: `python benchmarks/compiled_same [--only NAME]`.

Sets: `one` has functions for one device, each with wrong twins; `partitioned` functions over a mesh, each with a wrong
twin, and with edits of every exchange in its compiled text. A right one that is refuted, and a wrong one that passes,
are marked; unknown counts apart. Edits that change no value are in `ALIKE`, with why. It needs the extra `tpu`. The
exit code is 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if __package__ != "benchmarks.compiled_same":
    sys.path[0] = str(HERE.parents[1])

TARGET = "v5e"
TOPOLOGIES = {1: "", 4: "2x2", 8: "2x4"}
SAME = ("sampled", "proved")
ALIKE: dict[str, str] = {
    "ring_attention: collective-permute of channel 1: the other direction": "keys and values go round the other way",
}
"""Of an edit that changes no value, "program: what was edited", and why."""


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="Only this function.")
    parser.add_argument("--set", choices=("one", "partitioned"), action="append", help="Only this set.")
    given = parser.parse_args(arguments)
    from layoutproof.compiler import libtpu

    os.environ.update(libtpu.environment())
    wrong, counts = 0, Counter[str]()
    for of, cases in (("one", one_device), ("partitioned", partitioned)):
        if given.set and of not in given.set:
            continue
        for name, kind, wanted, verdict, reason, seconds in cases(given.only):
            said = "unknown" if verdict == "unknown" else "right" if verdict in wanted else "WRONG"
            wrong += said == "WRONG"
            counts[f"{of}, {kind}: {said}"] += 1
            mark = "" if said == "right" else f"{said} "
            print(f"{mark}{name:<28} {kind:<8} {verdict:<9} {seconds:6.1f} s  {reason[:200]}", flush=True)
    print("\n".join(f"{what}: {many}" for what, many in sorted(counts.items())))
    return int(wrong > 0)


Row = tuple[str, str, Sequence[str], str, str, float]
"""(function, right, wrong or edit, the verdicts that are right, the verdict, its reason, seconds beyond compiling)."""


def one_device(only: Sequence[str] | None) -> Iterator[Row]:
    """Functions for one device."""
    from benchmarks.compiled_same import one_device as module

    for name, (_, args) in module.FUNCTIONS.items():
        if only and name not in only:
            continue
        text, kept, shardings, jaxpr = made(module.__file__, name, args, {}, (), ())
        yield name, "right", SAME, *verdict(text, jaxpr, kept, shardings)
        for k, other in enumerate(module.WRONG.get(name, ())):
            yield f"{name} {k}", "wrong", ("refuted",), *verdict(text, traced(other, args, None), kept, shardings)


def partitioned(only: Sequence[str] | None) -> Iterator[Row]:
    """Functions over a mesh."""
    from benchmarks.compiled_same import partitioned as module
    from benchmarks.compiled_same.edits import edited

    for name, (args, mesh, ins, outs) in module.PROGRAMS.items():
        if only and name not in only:
            continue
        text, kept, shardings, jaxpr = made(module.__file__, name, args, mesh, ins, outs)
        yield name, "right", SAME, *verdict(text, jaxpr, kept, shardings)
        if name in module.WRONG:
            other = traced(partial(getattr(module, name), **module.WRONG[name]), args, mesh)
            yield name, "wrong", ("refuted",), *verdict(text, other, kept, shardings)
        for what, edit in edited(text, prod(mesh.values())):
            alike = f"{name}: {what}" in ALIKE
            yield f"{name} {what}", "edit", SAME if alike else ("refuted",), *verdict(edit, jaxpr, kept, shardings)


def made(
    file: str, name: str, args: Sequence[Any], mesh: dict[str, int], ins: Sequence[str], outs: Sequence[str]
) -> tuple[str, Any, Any, Any]:
    """What the compiler prints, with all constants; the arguments that it keeps; shardings; the jaxpr."""
    from layoutproof.programs import compiling
    from layoutproof.programs.compile import Asked, request_of

    asked = Asked(
        f"{file}:{name}", args, target=TARGET, topology=TOPOLOGIES[prod(mesh.values())], mesh=mesh, ins=ins, outs=outs,
        same=True,
    )  # fmt: skip
    found: list[Any] = []

    def lower(request: Any) -> Any:
        lowered, results, jaxpr = compiling._lowered(request)
        found.append((compiling._kept_inputs(lowered), jaxpr))
        return lowered, results

    said = compiling.answer_of(request_of(asked), lambda what: None, lower)
    if "refused" in said:
        raise SystemExit(f"{name}: {said['refused']}")
    ((kept, jaxpr),) = found
    return said["whole"] or said["text"], kept, said["shardings"], jaxpr


def traced(function: Any, args: Sequence[Any], mesh: dict[str, int] | None) -> Any:
    """The jaxpr of a function."""
    import jax

    from layoutproof.programs.compiling import _mesh, _tree

    given = [_tree(value) for value in args]
    if not mesh:
        return jax.make_jaxpr(function)(*given)
    request = {"target": TARGET, "topology": TOPOLOGIES[prod(mesh.values())], "mesh": mesh}
    with jax.set_mesh(_mesh(request)):
        return jax.make_jaxpr(function)(*given)


def verdict(text: str, jaxpr: Any, kept: Any, shardings: Any) -> tuple[str, str, float]:
    """(verdict, reason, seconds)."""
    from layoutproof.pallas.from_jax.programs import program_of
    from layoutproof.programs.same_source import compared

    start = time.perf_counter()
    found = compared(text, program_of(jaxpr), kept, shardings)
    return found["verdict"], found["reason"], time.perf_counter() - start


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
