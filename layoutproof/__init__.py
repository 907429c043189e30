"""layoutproof proves what tensor layouts do: which byte, tile, device or grid step each element goes to.

>>> import layoutproof as lp
>>> lp.ask("injective", "bf16[4096,11008]{1,0:T(8,128)(2,1)}").verdict
<Verdict.PROVED: 'proved'>
>>> lp.locate("f32[3,5]{1,0:T(2,2)}", (2, 3))
[{'offset': 17}]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import layoutproof.core.forks  # noqa: F401  from the first import on, or a fork during the first question hangs

__version__ = "0.1.0"

if TYPE_CHECKING:
    from layoutproof.core.errors import LayoutError as LayoutError
    from layoutproof.core.result import Result as Result
    from layoutproof.core.result import Verdict as Verdict
    from layoutproof.core.term import equal as equal
    from layoutproof.core.term import less as less
    from layoutproof.core.term import maximum as maximum
    from layoutproof.core.term import minimum as minimum
    from layoutproof.core.term import select as select
    from layoutproof.doors.guard import KernelError as KernelError
    from layoutproof.doors.guard import KernelWarning as KernelWarning
    from layoutproof.doors.guard import guard as guard
    from layoutproof.engine.ask import ask as ask
    from layoutproof.engine.convert import convert as convert
    from layoutproof.engine.defaults import tpu_default as tpu_default
    from layoutproof.engine.evaluate import locate as locate
    from layoutproof.engine.evaluate import pack as pack
    from layoutproof.engine.evaluate import table as table
    from layoutproof.engine.evaluate import unpack as unpack
    from layoutproof.engine.read import read_layout as read_layout
    from layoutproof.jobs.pallas.assume import assume as assume
    from layoutproof.layouts.map import index_map as index_map

_WHERE = {
    "core.errors": ("LayoutError",),
    "core.result": ("Result", "Verdict"),
    "core.term": ("equal", "less", "maximum", "minimum", "select"),
    "doors.guard": ("KernelError", "KernelWarning", "guard"),
    "engine.ask": ("ask",),
    "engine.convert": ("convert",),
    "engine.defaults": ("tpu_default",),
    "engine.evaluate": ("locate", "pack", "table", "unpack"),
    "engine.read": ("read_layout",),
    "jobs.pallas.assume": ("assume",),
    "layouts.map": ("index_map",),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted([*_MODULE_OF, "__version__"])


def __getattr__(name: str) -> Any:
    # names load on first use, so that `import layoutproof` costs nothing that is not asked for
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'layoutproof' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"layoutproof.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
