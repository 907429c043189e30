"""What a kernel of this benchmark is, and how a wrong one is made of it: by one edit of the text of its function."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F32 = jnp.float32
HBM = pl.BlockSpec(memory_space=pl.ANY)
Spec = tuple[tuple[int | None, ...], Callable[..., Any]]

KINDS = {
    "": "other numbers, shown on float64",
    "order": "a copy, a read or two writes that nothing orders: shown by JAX's interpreter of TPU kernels",
    "unstable": "the same over the reals, and not finite on large or small numbers",
    "rounding": "the same over the reals, and further from them on float32 than the right one",
}
"""What is wrong with a kernel, and how that is shown without layoutproof."""


@dataclass(frozen=True)
class Kernel:
    """A right kernel.

    function, reference: called on arrays of `arguments`: texts (f32[8,128]), or arrays of integers as they are.
    wrong: what is wrong -> (old, new) or (old, new, kind): an edit of the function's text, where old stands once.
    """

    function: Callable[..., Any]
    reference: Callable[..., Any]
    arguments: tuple[Any, ...]
    wrong: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The function's."""
        return self.function.__name__

    def kind(self, wrong: str) -> str:
        """What sort of wrong that is, a key of `KINDS`."""
        return str([*self.wrong[wrong], ""][2])

    def text(self, wrong: str = "") -> str:
        """The whole file of the function, edited.

        Raises:
            ValueError: What the edit replaces does not stand there once, or the edit changes nothing.
        """
        whole, own = inspect.getsource(inspect.getmodule(self.function)), inspect.getsource(self.function)  # type: ignore[arg-type]
        if not wrong:
            return whole
        old, new = self.wrong[wrong][:2]
        if own.count(old) != 1 or old == new or whole.count(own) != 1:
            raise ValueError(f"{self.name}: {wrong}: {old!r} stands there {own.count(old)} times, not once")
        return whole.replace(own, own.replace(old, new))


def module_of(kernel: Kernel, wrong: str, folder: Path) -> ModuleType:
    """The file of a kernel, edited, written into a folder and imported from there."""
    words = re.sub(r"\W+", "_", wrong) or "right"
    return imported(kernel.text(wrong), folder / f"{kernel.name}_{words}.py")


def imported(text: str, path: Path) -> ModuleType:
    """A module of this text, written to a file and imported from there."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(f"wrong_kernels_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(
    body: Callable[..., None],
    out: Any,
    *arrays: Any,
    grid: tuple[int, ...] = (),
    ins: Sequence[Spec | None] | None = None,
    outs: Any = None,
    scratch: Sequence[Any] = (),
    tables: int = 0,
    aliases: Mapping[int, int] | None = None,
) -> Any:
    """A Pallas call for TPUs. ins, outs: (block, index map) or None for whole arrays in HBM; all in VMEM by default."""
    given = [pl.BlockSpec()] * (len(arrays) - tables) if ins is None else [_spec(s) for s in ins]
    if outs is None:
        made = jax.tree.map(lambda _: pl.BlockSpec(), out)
    else:
        made = [_spec(s) for s in outs] if isinstance(outs, list) else _spec(outs)
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=tables, grid=grid, in_specs=given, out_specs=made, scratch_shapes=list(scratch)
    )
    return pl.pallas_call(body, grid_spec=grid_spec, out_shape=out, input_output_aliases=dict(aliases or {}))(*arrays)


def _spec(spec: Spec | None) -> pl.BlockSpec:
    return HBM if spec is None else pl.BlockSpec(*spec)


def shape(*dims: int, dtype: Any = F32) -> jax.ShapeDtypeStruct:
    """An array of this shape."""
    return jax.ShapeDtypeStruct(dims, dtype)
