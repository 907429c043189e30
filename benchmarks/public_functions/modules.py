"""Modules of checkouts, imported without the `__init__` of their packages and without what no kernel needs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from calls import Call


def imported(call: Call, checkouts: Path) -> Any:
    """The module of a call. The packages that it is in are made without running their `__init__`."""
    root = checkouts / call.repository.replace("/", "+") / call.root
    if not root.is_dir():
        sys.exit(f"no checkout of {call.repository}: {root} is no folder")
    sys.path.insert(0, str(root))
    parts = call.module.split(".")
    sys.meta_path.append(Absent())
    for k in range(1, len(parts)):
        name = ".".join(parts[:k])
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*parts[:k]))]
        sys.modules[name] = package
    return importlib.import_module(call.module)


class Absent:
    """Finds what is not installed and no kernel needs, such as frameworks that a module imports for its logger."""

    NAMES = frozenset({"torch", "vllm", "eformer", "torchax", "spectrax", "ejkernel"})

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """A spec of an empty stand-in, for the names that are known to be needless."""
        return importlib.util.spec_from_loader(name, self) if name.partition(".")[0] in self.NAMES else None

    def create_module(self, spec: Any) -> Any:
        """A module that has every name."""
        module = MagicMock(name=spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: Any) -> None:
        """Nothing is run."""


def older_names() -> None:
    """Names of Pallas that this JAX no longer has, and these repositories still use."""
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    spaces = types.SimpleNamespace(ANY=pl.ANY, VMEM=pltpu.VMEM, SMEM=pltpu.SMEM, HBM=pltpu.HBM)
    for name, value in {
        "TPUMemorySpace": spaces,
        "ANY": pl.ANY,
        "repeat": jnp.repeat,
        "TPUCompilerParams": pltpu.CompilerParams,
    }.items():
        if not hasattr(pltpu, name):
            setattr(pltpu, name, value)
