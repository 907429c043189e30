"""layoutproof proves what tensor layouts do: which byte, tile, device or grid step each element goes to.

>>> import layoutproof as lp
>>> lp.ask("injective", "bf16[4096,11008]{1,0:T(8,128)(2,1)}").verdict
<Verdict.PROVED: 'proved'>
>>> lp.locate("f32[3,5]{1,0:T(2,2)}", (2, 3))
[{'offset': 17}]
"""

from __future__ import annotations

import importlib

import layoutproof.core.forks  # noqa: F401  from the first import on, or a fork during the first question hangs

__version__ = "0.1.0"

TYPE_CHECKING = False
"""Importing `typing` takes most of the time before Ctrl-C is handled: it is deferred."""

if TYPE_CHECKING:
    from typing import Any

    from layoutproof import algebra as algebra
    from layoutproof.answers.of_ci import ci as ci
    from layoutproof.answers.of_crosscheck import crosscheck as crosscheck
    from layoutproof.answers.of_dumps import audit as audit
    from layoutproof.answers.of_facts import drift as drift
    from layoutproof.answers.of_init import init as init
    from layoutproof.answers.of_kernels import kernels as kernels
    from layoutproof.answers.of_layout import show as show
    from layoutproof.answers.of_legal import legal as legal
    from layoutproof.answers.of_messages import why as why
    from layoutproof.answers.of_programs import compile as compile
    from layoutproof.answers.of_repair import repair as repair
    from layoutproof.answers.of_scan import scan as scan
    from layoutproof.answers.of_search import search as search
    from layoutproof.answers.of_specs import check as check
    from layoutproof.answers.of_states import gate as gate
    from layoutproof.answers.of_sweep import sweep as sweep
    from layoutproof.cli.guard import KernelError as KernelError
    from layoutproof.cli.guard import KernelWarning as KernelWarning
    from layoutproof.cli.guard import guard as guard
    from layoutproof.core.errors import LayoutError as LayoutError
    from layoutproof.core.errors import Undecided as Undecided
    from layoutproof.core.finding import Finding as Finding
    from layoutproof.core.result import Verdict as Verdict
    from layoutproof.core.term import equal as equal
    from layoutproof.core.term import less as less
    from layoutproof.core.term import maximum as maximum
    from layoutproof.core.term import minimum as minimum
    from layoutproof.core.term import select as select
    from layoutproof.layouts.map import index_map as index_map
    from layoutproof.pallas.from_jax.assume import assume as assume
    from layoutproof.pallas.sampled_tables import assume_from as assume_from
    from layoutproof.pictures.formula import as_sympy as as_sympy
    from layoutproof.questions.ask import ask as ask
    from layoutproof.questions.convert import convert as convert
    from layoutproof.questions.evaluate import evaluate as evaluate
    from layoutproof.questions.evaluate import locate as locate
    from layoutproof.questions.evaluate import pack as pack
    from layoutproof.questions.evaluate import table as table
    from layoutproof.questions.evaluate import unpack as unpack
    from layoutproof.questions.expressions import as_isl as as_isl
    from layoutproof.questions.expressions import as_z3 as as_z3
    from layoutproof.questions.inverse import inverse as inverse
    from layoutproof.questions.programs import program_ids as program_ids
    from layoutproof.questions.same import same as same
    from layoutproof.registry.defaults import tpu_default as tpu_default
    from layoutproof.registry.read import read_layout as read_layout

_WHERE = {
    "answers.of_ci": ("ci",),
    "answers.of_crosscheck": ("crosscheck",),
    "answers.of_dumps": ("audit",),
    "answers.of_facts": ("drift",),
    "answers.of_init": ("init",),
    "answers.of_kernels": ("kernels",),
    "answers.of_layout": ("show",),
    "answers.of_legal": ("legal",),
    "answers.of_programs": ("compile",),
    "answers.of_messages": ("why",),
    "questions.same": ("same",),
    "answers.of_repair": ("repair",),
    "answers.of_scan": ("scan",),
    "answers.of_search": ("search",),
    "answers.of_specs": ("check",),
    "answers.of_states": ("gate",),
    "answers.of_sweep": ("sweep",),
    "core.errors": ("LayoutError", "Undecided"),
    "core.finding": ("Finding",),
    "core.result": ("Verdict",),
    "core.term": ("equal", "less", "maximum", "minimum", "select"),
    "cli.guard": ("KernelError", "KernelWarning", "guard"),
    "questions.ask": ("ask",),
    "questions.convert": ("convert",),
    "registry.defaults": ("tpu_default",),
    "questions.evaluate": ("evaluate", "locate", "pack", "table", "unpack"),
    "questions.expressions": ("as_isl", "as_z3"),
    "pictures.formula": ("as_sympy",),
    "questions.inverse": ("inverse",),
    "questions.programs": ("program_ids",),
    "registry.read": ("read_layout",),
    "pallas.from_jax.assume": ("assume",),
    "pallas.sampled_tables": ("assume_from",),
    "layouts.map": ("index_map",),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted([*_MODULE_OF, "__version__", "algebra"])


def __getattr__(name: str) -> Any:
    # names load on first use, so that `import layoutproof` costs nothing that is not asked for
    if name == "algebra":
        return importlib.import_module("layoutproof.algebra")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'layoutproof' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"layoutproof.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
