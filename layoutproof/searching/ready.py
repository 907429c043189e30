"""Problems that need no file: the ready kernels with sizes of one's own, and functions named on the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, closest, shorten
from layoutproof.core.files import MIB, read
from layoutproof.searching import problems
from layoutproof.searching.problem import WeightedSizes
from layoutproof.searching.ranges import NoNumber, domain, number_of

FOLDERS = (Path(__file__).parent / "ready", Path(__file__).resolve().parents[2] / "specs" / "search")
"""Where the files of ready kernels lie: in an installed package, and in a checkout."""

DEFAULT_TARGET = "v5e"
_ARRAY = re.compile(r"([a-z0-9]+)\[")
_SPAN = re.compile(r"(?P<low>\w+)\.\.(?P<high>[\w*+/ ()-]+?)(?::(?:x(?P<power>\d+)|(?P<step>\d+)))?")

INIT = """\
# A search file: layoutproof search {name}      What may stand in it: layoutproof schema search, explain search
search: my matmul                        # a name for the answers
target: v5e                              # the TPU generation
kernel:                                  # a Pallas call, with names where numbers will stand
  grid: ["cdiv(M, bm)", "cdiv(N, bn)", "cdiv(K, bk)"]
  semantics: [parallel, parallel, arbitrary]
  inputs:
    - {{name: x, array: "bf16[M,K]", block: [bm, bk], index: "(i, j, k) -> (i, k)"}}
    - {{name: y, array: "bf16[K,N]", block: [bk, bn], index: "(i, j, k) -> (k, j)"}}
  outputs:
    - {{name: o, array: "bf16[M,N]", block: [bm, bn], index: "(i, j, k) -> (i, j)"}}
  scratch:
    - {{array: "f32[bm,bn]"}}
# or your own function, which is traced and never run, instead of `kernel`:
# trace: my_kernels.py:matmul            # MODULE:FUNCTION, or FILE.py:FUNCTION beside this file
# args: ["bf16[M,K]", "bf16[K,N]"]       # shapes, or Python literals as text
# kwargs: {{block_shape: "(bm, bn)", block_k: bk}}   # default: each variable by its own name
sizes: {{M: 4096, N: 4096, K: 4096}}       # what the capital names stand for
tune:                                    # what is sought; the ends of a range may be expressions of sizes
  bm: {{from: 128, to: M, multiple_of: 128}}
  bn: {{from: 128, to: N, multiple_of: 128}}
  bk: {{multiple_of: 128, divides: K}}
  # also a list, bm: [128, 256, 512], or powers: {{from: 128, to: 2048, powers_of: 2}}
# constraints: ["bm * bn <= 2**20"]      # over sizes, variables and time, bytes, flops, carried, steps, vmem, padding
flops: 2 * M * N * K                     # of the whole kernel; without it compute never limits
headroom: matmul                         # VMEM kept free for registers that spill: a kind of body, or 25%
# partial: none                          # blocks may not reach over an edge (default: masked, they may)
# cost: bytes                            # what to make small (default: time)
"""


@cache
def kernels() -> Mapping[str, Path]:
    """The ready kernels by name, each with its search file."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    paths = [] if folder is None else sorted(folder.glob("*.yaml"))
    return {path.stem: path for path in paths if b"\nbody: " in read(path, MIB)}


def kernel(
    name: str,
    sizes: Sequence[int] = (),
    dtype: str | None = None,
    target: str | None = None,
    headroom: str | None = None,
) -> tuple[JsonObject, str]:
    """(the search file of a ready kernel with these sizes, its path). sizes: in the order of the file, () = its own.

    dtype: of all arrays that have the type of the first input.  A range in which no number is, as 128 divides none of
    7000, becomes the whole dimension, which every block may be.  Raises LayoutError for the wrong number of sizes.

    >>> document, _ = kernel("matmul", [1024, 512, 256], "s8", "v6e")
    >>> document["sizes"], document["kernel"]["outputs"][0]["array"], document["target"]
    ({'M': 1024, 'N': 512, 'K': 256}, 's8[M,N]', 'v6e')
    """
    import yaml

    path = kernels()[name]
    document: dict[str, Any] = yaml.safe_load(read(path, MIB))
    first = document["sizes"][0] if isinstance(document["sizes"], list) else document["sizes"]
    names = [key for key in first if key != "weight"]
    if sizes:
        if len(sizes) != len(names):
            raise LayoutError(problems.SIZES_OF_READY(name, len(names), " ".join(names), len(sizes)))
        document["sizes"] = dict(zip(names, sizes, strict=True))
        document["tune"] = {key: _some(values, document["sizes"]) for key, values in document["tune"].items()}
        document.pop("over", None)
    operands = [*document["kernel"]["inputs"], *document["kernel"]["outputs"]]
    own = _type_of(operands[0])
    for operand in operands:
        if dtype is not None and _type_of(operand) == own:
            operand["array"] = dtype + operand["array"].removeprefix(own)
    if sizes or dtype:
        document["search"] = f"{name} {' x '.join(map(str, sizes or first.values()))} {dtype or own}"
    document["target"] = target or document["target"]
    document |= {} if headroom is None else {"headroom": headroom}
    return document, path.as_posix()


def _some(values: Any, sizes: Mapping[str, int]) -> Any:
    """The same values, or, of a range in which no number is, the dimension that they cut."""
    shape = WeightedSizes(sizes)
    whole = values.get("divides", values.get("to")) if isinstance(values, dict) else None
    try:
        domain(values, [shape])
    except NoNumber:
        return values if whole is None else [number_of(whole, shape)]
    except LayoutError:
        pass  # it is said of the variable, once the document is read
    return values


def function(
    place: str,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    tune: Mapping[str, object],
    target: str | None,
    headroom: str | None = None,
) -> dict[str, object]:
    """The search file of a function. place: as of `trace`.  tune: the range of each variable.  headroom: as there."""
    if not tune:
        raise LayoutError(problems.NOTHING_TO_CHOOSE(shorten(place, 60)))
    found: dict[str, object] = {"search": place, "target": target or DEFAULT_TARGET, "trace": place, "args": list(args)}
    found |= {"kwargs": dict(kwargs)} if kwargs else {}
    found |= {"headroom": headroom} if headroom is not None else {}
    return found | {
        "tune": {name: values_of(value) if isinstance(value, str) else value for name, value in tune.items()}
    }


def values_of(text: str) -> dict[str, int | str] | list[int]:
    """The range of a variable, from the command line: `256`, `128,256`, `128..2048` (multiples of 128), `8..2048:64`
    (multiples of 64), `128..2048:x2` (powers of 2). LayoutError for anything else.

    >>> values_of("128..2048"), values_of("8..M:64"), values_of("8..64:x2"), values_of("1,2,4")
    ({'from': 128, 'to': 2048, 'multiple_of': 128}, {'from': 8, 'to': 'M', 'multiple_of': 64}, \
{'from': 8, 'to': 64, 'powers_of': 2}, [1, 2, 4])
    """
    found = _SPAN.fullmatch(text.strip())
    if found is not None:
        low, high = (int(end) if end.isdecimal() else end.strip() for end in (found["low"], found["high"]))
        if found["power"]:
            return {"from": low, "to": high, "powers_of": int(found["power"])}
        return {"from": low, "to": high, "multiple_of": low if found["step"] is None else int(found["step"])}
    parts = [part.strip() for part in text.split(",")]
    if all(part.isdecimal() for part in parts):
        return [int(part) for part in parts]
    raise LayoutError(problems.VARIABLE_FORM(shorten(text, 60)))


def unknown(name: str) -> LayoutError:
    """The error for a word that is no file."""
    near = closest(name, kernels())
    return LayoutError(problems.NO_FILE_OR_READY(shorten(name, 80), ", ".join(kernels()), near))


def _type_of(operand: Mapping[str, str]) -> str:
    found = _ARRAY.match(operand["array"])
    return "" if found is None else found[1]
