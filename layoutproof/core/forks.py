"""What a fork waits for: in the child only the thread that forked goes on, and what others held stays locked for ever.

That is every lock of ours around native code, which has locks of its own, and every import that is under way.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from _thread import RLock

NATIVE = RLock()
"""Held while native code that has locks of its own runs without Python's: no fork comes in between."""


def _before() -> None:
    known: set[str] = set()
    while True:
        for name in _imported_now() - known:
            # waits until the other thread is through
            with contextlib.suppress(Exception):
                importlib.import_module(name)
            # what this very thread is importing stays unfinished
            known.add(name)
        NATIVE.acquire()
        if _imported_now() <= known:
            return
        # never wait for an import with the lock held: what is imported may want it
        NATIVE.release()


def _imported_now() -> set[str]:
    modules = list(sys.modules.items())
    return {name for name, module in modules if getattr(getattr(module, "__spec__", None), "_initializing", False)}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=NATIVE.release, after_in_child=NATIVE.release)
