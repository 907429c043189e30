"""The locks that a fork waits for: the child has only the thread that forked, and locks of others stay held for ever.

That is every lock of ours around native code, which has locks of its own, and every import that is under way.

An import is under way from the moment that its lock exists, which is before any thread owns it. The lock that guards
the making of those locks is held from the last look until the fork is done: no thread begins an import in between.
What cannot be waited for, since it waits for an import of the very thread that forks, is begun anew in the child.
"""

from __future__ import annotations

import _imp
import contextlib
import importlib
import os
import sys
from _thread import RLock, get_ident

TYPE_CHECKING = False  # as in `layoutproof`, whose first import this is
if TYPE_CHECKING:
    from typing import Any

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
        # in this order: who is inside of native code may want to import
        NATIVE.acquire()
        _imp.acquire_lock()
        if _imported_now() <= known:
            return
        # never wait for an import with the locks held: the imported module may want them
        _release()


def _release() -> None:
    _imp.release_lock()
    NATIVE.release()


def _in_child() -> None:
    for name, lock in _locks().items():
        # a Python with other locks: an import without a thread to finish it stays as it was
        with contextlib.suppress(AttributeError):
            lock.lock._at_fork_reinit()
            lock.wakeup._at_fork_reinit()
            lock.waiters = type(lock.waiters)()
            if lock.owner != get_ident():
                lock.owner, lock.count = None, type(lock.count)()
                if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
                    del sys.modules[name]
    _release()


def _imported_now() -> set[str]:
    """Modules that other threads are importing, from the search for their files on."""
    return {name for name, lock in _locks().items() if getattr(lock, "owner", None) != get_ident()}


def _locks() -> dict[str, Any]:
    """The locks of the imports that are under way, by the module's name: there is one as long as a thread wants it."""
    # nothing public says it; where this is missing, a fork during an import behaves as it does without us
    references = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    locks = {name: reference() for name, reference in list(references.items())}
    return {name: lock for name, lock in locks.items() if lock is not None}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
