"""The answering side of `workers`: does what it is sent, a function and one item at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from layoutproof.compiler.serve import Tell, serve
from layoutproof.compiler.workers import packed, unpacked

function_of = lru_cache(maxsize=1)(unpacked)
"""Of all requests of a run it is the same."""


def answered(request: list[str], tell: Tell) -> str:
    """The result of a request's function for its item."""
    function, item = request
    given: Any = function_of(function)(unpacked(item))
    return packed(given)


if __name__ == "__main__":
    serve(answered)
