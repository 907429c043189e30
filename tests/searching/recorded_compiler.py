"""A program that answers in the compiler's place: every kernel takes its windows, its scratch and so many spills.

What is asked is written to a file. SPILLS and CYCLES, its estimate, are Python expressions over the kernel's `windows`
and `scratch` in bytes, ABORTS is one over its `grid`: where it holds the process aborts, as the compiler's can.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from layoutproof.compiler.serve import Tell, serve
from layoutproof.hardware.tpu_memory import memory
from layoutproof.mosaic.unseen import flops, unseen
from layoutproof.pallas.from_jax.adapter import body_of
from layoutproof.pallas.from_jax.programs import program_of
from layoutproof.pallas.from_jax.sent import call_of


def answered(request: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """One answer, of the form of `mosaic.compiling.answered`."""
    kernel, site = call_of(request)
    body = program_of(body_of(site.equation.params))
    parts = memory(kernel, request["target"])[0].parts
    windows = sum(size for name, size in parts if "buffer" in name)
    scratch = sum(size for name, size in parts if "scratch" in name)
    known = {"windows": windows, "scratch": scratch, "grid": tuple(kernel.grid), "max": max, "min": min}
    if eval(os.environ.get("ABORTS", "False"), known):
        os.write(2, b"F1122 10:00:00.000 1 x.cc:9] Check failed: rows\n")
        os.abort()
    about = {"jax": "0", "compiler": "a recorded compiler", "unseen": unseen(body)}
    about |= {"flops": flops(body, prod(kernel.grid))}
    if request["profile"]:
        return {**about, "refused": "", "cycles": int(eval(os.environ.get("CYCLES", "1_000_000 + windows"), known))}
    with Path(os.environ["ASKED"]).open("a") as file:
        file.write(f"{kernel.grid}\n")
    spills = int(eval(os.environ.get("SPILLS", "0"), known))
    total, limit = windows + scratch + spills, memory(kernel, request["target"])[0].limit
    words = f"Scoped allocation with size {total} and limit {limit} exceeded scoped vmem limit by {total - limit}K"
    sizes = [["window", "", windows], ["scratch", "", scratch], ["spill", "", spills]]
    return {
        **about,
        "refused": words if total > limit else "",
        "used": total,
        "vmem": {"total": total, "parts": sizes},
        "whole": [],
        "moves": None,
        "relayouts": [],
    }


if __name__ == "__main__":
    serve(answered)
