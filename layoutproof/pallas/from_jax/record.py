"""A traced call as a record, the form that `pallas/records.py` says: written here, read there without JAX."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError
from layoutproof.ir.codec import written
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.pallas.from_jax import problems
from layoutproof.pallas.from_jax.bodies import TracedBody
from layoutproof.pallas.records import FORM, plain


def record_of(call: Kernel | Unmodelled, origin: Mapping[str, object] | None = None) -> str:
    """A line of JSON, with its line end. origin: where the call comes from, kept as it is."""
    import jax

    said: dict[str, Any] = {"record": FORM, "jax": jax.__version__}
    if origin:
        said["origin"] = dict(origin)
    if isinstance(call, Unmodelled):
        said["unmodelled"] = {"name": call.name, "source": _short(call.source), "reason": call.reason}
    else:
        said["kernel"] = _shortened(plain(call))
        traced = call.body_reader
        said["body"] = _body(traced) if isinstance(traced, TracedBody) else None
    return json.dumps(said, separators=(",", ":"), allow_nan=False) + "\n"


def records_of(calls: Sequence[Kernel | Unmodelled]) -> bytes:
    """A file of records of calls that were traced here.

    Raises LayoutError where a call was not traced, but read from a file: such a call has no body to record.
    """
    odd = [call.name for call in calls if isinstance(call, Kernel) and not _traced(call)]
    if odd:
        raise LayoutError(problems.READ_FROM_FILE(odd[0]))
    return "".join(map(record_of, calls)).encode()


def _body(traced: TracedBody) -> JsonObject:
    if traced.refused:
        return {"refused": traced.refused}
    body = written(traced.program, cache(_short))
    return {**body, "around": [plain(one) for one in traced.around]} if traced.around else body


def _traced(call: Kernel) -> bool:
    # kernels of GPUs have no body that is read
    return call.body_reader is None or (isinstance(call.body_reader, TracedBody) and call.around is None)


def _shortened(data: JsonObject) -> JsonObject:
    """A kernel's data whose places name no folder of this machine."""
    for part in (data, *data["operands"]):
        if "source" in part:
            part["source"] = _short(part["source"])
        if "made_by" in part:
            name, place, output = part["made_by"]
            part["made_by"] = [name, _short(place), output]
        if "unfilled" in part:
            what, at, place = part["unfilled"].partition(" at ")
            part["unfilled"] = f"{what}{at}{_short(place)}"
    return data


def _short(place: str) -> str:
    """`file:line` below the folder that Python imports the file from, or that is worked in; else the file's name.

    >>> _short(""), _short("<string>:3")
    ('', '<string>:3')
    """
    file, colon, line = place.rpartition(":")
    if not colon or file.startswith("<"):
        return place
    path = Path(file).absolute()
    folders = [Path(folder).absolute() for folder in {*sys.path, "."}]
    inside = [path.relative_to(folder).as_posix() for folder in folders if path.is_relative_to(folder)]
    return f"{min(inside, key=len, default=path.name)}:{line}"
