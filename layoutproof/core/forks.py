"""What a fork waits for: in the child only the thread that forked goes on, and what others held stays locked for ever.

That is every lock of ours around native code, which has locks of its own, and every import that is under way.
"""

from __future__ import annotations

import importlib
import os
from _thread import RLock, get_ident

NATIVE = RLock()
"""Held while native code that has locks of its own runs without Python's: no fork comes in between."""


def _before() -> None:
    known: set[str] = set()
    while True:
        for name in _imported_now() - known:
            # once each: it may in turn wait for what this very thread is importing
            known.add(name)
            try:
                # waits until the other thread is through
                importlib.import_module(name)
            except Exception:
                # the other thread hears of it
                continue
        NATIVE.acquire()
        if _imported_now() <= known:
            return
        # never wait for an import with the lock held: what is imported may want it
        NATIVE.release()


def _imported_now() -> set[str]:
    """Modules that other threads are importing, from the search for their files on."""
    # nothing public says it; where this is missing, a fork during an import behaves as it does without us
    locks = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    owners = [(name, getattr(lock(), "owner", None)) for name, lock in list(locks.items())]
    return {name for name, owner in owners if owner not in (None, get_ident())}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=NATIVE.release, after_in_child=NATIVE.release)
