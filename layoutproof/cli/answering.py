"""The answering side of `serving.pool`: runs commands in one process, and says which files it has opened.

A request is a `Request`, the answer {"value": .., "seen": .., "good": ..} as of `serving.pool.Answered`; of a run its
value is a `Ran`.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NotRequired, TypedDict

from layoutproof.cli.main import BAD_INPUT, run
from layoutproof.cli.progress import heard
from layoutproof.cli.spoken import spoken
from layoutproof.cli.tools import all_declared, command_line
from layoutproof.compiler import cache
from layoutproof.compiler.serve import Tell, serve
from layoutproof.core.document import envelope, error_entry
from layoutproof.core.errors import LayoutError
from layoutproof.core.files import MIB, read
from layoutproof.serving.pool import Ran
from layoutproof.serving.watched import Opened

MOST_CALLS = 500
"""Questions to one process: each leaves a little in it, and more where it imports a file again (SECURITY.md)."""
MOST_PICTURE = 64 * MIB


class Request(TypedDict):
    """What a worker is sent. do: "warm", "tools" or "run"; of a run the tool and its arguments."""

    do: str
    tool: NotRequired[str]
    arguments: NotRequired[dict[str, object]]


class Answering:
    """What one worker does. folder: for its pictures."""

    def __init__(self, opened: Opened, folder: str) -> None:
        self.opened, self.folder, self.calls = opened, folder, 0

    def answer(self, request: Request, tell: Tell) -> dict[str, object]:
        """Of one request."""
        self.calls += 1
        match request["do"]:
            case "warm":
                warm()
                value: object = None
            case "tools":
                value = all_declared()
            case _:
                with heard(tell):
                    value = ran(request["tool"], request["arguments"], self.folder)
        return {"value": value, "seen": self.opened.told(), "good": self.calls < MOST_CALLS and not _is_large()}


def ran(tool: str, arguments: Mapping[str, object], folder: str) -> Ran:
    """The answer of a tool: the object that its command prints, the same in words, and its picture."""
    picture = Path(folder, "picture.svg")
    picture.unlink(missing_ok=True)
    try:
        words = command_line(tool, arguments, str(picture))
    except LayoutError as error:
        failed = {**envelope(BAD_INPUT), "error": error_entry(error, "usage", str(error))}
        return {"document": failed, "text": spoken(failed), "picture": ""}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        run(words)
    document = json.loads(printed.getvalue())
    drawn = read(picture, MOST_PICTURE).decode() if picture.is_file() else ""
    return {"document": document, "text": spoken(document), "picture": drawn}


def warm() -> None:
    """Imports what most questions need, and asks one of each kind. What is not installed is left out."""
    import layoutproof

    layoutproof.ask("injective", "f32[N,M]{1,0:T(8,128)}")
    cache.tool()
    try:
        import jax
        from jax.experimental import pallas
    except ImportError:
        return

    def copied(source, result):  # type: ignore[no-untyped-def]
        result[...] = source[...] * 2.0

    def called(x):  # type: ignore[no-untyped-def]
        spec = pallas.BlockSpec((8, 128), lambda i: (i, 0))
        kernel = pallas.pallas_call(
            copied, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype)
        )
        return kernel(x)

    layoutproof.kernels(called, jax.ShapeDtypeStruct((16, 128), "float32"), target="v5e")


def _is_large() -> bool:
    """Whether this process has come to hold half of the memory that it may use."""
    try:
        import resource  # not on every system
    except ImportError:
        return False
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return most != resource.RLIM_INFINITY and 2 * held > most


def main() -> None:
    """Answers until there is no more to answer."""
    with tempfile.TemporaryDirectory(prefix="layoutproof-") as folder:
        kept = cache.folder()
        opened = Opened([folder, *([str(kept)] if kept else [])])
        opened.begin()
        serve(Answering(opened, folder).answer)


if __name__ == "__main__":
    main()
