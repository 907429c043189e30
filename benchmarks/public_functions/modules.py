"""Modules of checkouts, imported without the `__init__` of their packages and without what no kernel needs."""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from calls import Call
from pages import Page


def imported(call: Call, checkouts: Path) -> Any:
    """The module or the page of a call. The packages that it is in are made without running their `__init__`."""
    root = checkouts / call.repository.replace("/", "+") / call.root
    if not root.is_dir():
        sys.exit(f"no checkout of {call.repository}: {root} is no folder")
    if call.module.endswith(".md"):
        return Page.read(root / call.module)
    sys.path.insert(0, str(root))
    parts = call.module.split(".")
    sys.meta_path.append(Absent())
    for k in range(1, len(parts)):
        name = ".".join(parts[:k])
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*parts[:k]))]
        sys.modules[name] = package
    for name in call.bare:
        stand_in = Absent().create_module(importlib.machinery.ModuleSpec(name, None, is_package=True))
        stand_in.__path__ = [str(root.joinpath(*name.split(".")))]
        sys.modules[name] = stand_in
    return importlib.import_module(call.module)


class Absent:
    """Finds what is not installed and no kernel needs, such as frameworks that a module imports for its logger."""

    NAMES = frozenset(
        {"torch", "vllm", "eformer", "torchax", "spectrax", "ejkernel", "chex", "optax", "flax", "tensorflow", "seqio",
         "immutabledict", "orbax", "qwix", "tqdm", "aqt", "transformers", "huggingface_hub", "datasets", "grain",
         "fastapi", "uvicorn", "zmq", "partial_json_parser", "scipy", "sklearn", "pandas", "tensorstore", "wandb",
         "requests", "tokamax", "tensorflow_datasets", "tensorflow_text", "sentencepiece", "evaluate", "wrapt"}
    )  # fmt: skip

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """A spec of an empty stand-in, for the names that are known to be needless."""
        return importlib.util.spec_from_loader(name, self) if name.partition(".")[0] in self.NAMES else None

    def create_module(self, spec: Any) -> Any:
        """A module that has every name."""
        module = MagicMock(name=spec.name)
        module.__path__ = []
        module.__spec__ = spec
        return module

    def exec_module(self, module: Any) -> None:
        """Nothing is run."""


def older_names() -> None:
    """Names of JAX and Pallas that this JAX no longer has, and these repositories still use."""
    import jax
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
    jax.jit = renamed(jax.jit, {"abstracted_axes": None})
    jax.shard_map = renamed(jax.shard_map, {"check_rep": "check_vma"})


def renamed(function: Any, names: dict[str, str | None]) -> Any:
    """The function with arguments by names of before: each by its name of today, or left out where it has none."""

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        now = {names.get(name, name): value for name, value in given.items()}
        now.pop(None, None)
        return function(*args, **now)

    return call
