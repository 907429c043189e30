"""`layoutproof explain [NAME]`: the page of a property, language, operator, verdict, engine, target or gate class.

In the list: about: Show the page of a property or rule or language; list all pages.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
from contextlib import suppress
from typing import Annotated, TypedDict

import click

from layoutproof.cli.arguments import json_flag, print_json, say
from layoutproof.core.document import Doc, Document, envelope
from layoutproof.core.errors import LayoutError, unknown_name
from layoutproof.core.files import MIB, read


def _complete_page(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return sorted(name for found in _pages().values() for name in found if name.startswith(incomplete))


class PagesDocument(Document):
    """The first line of every page, by kind and name."""

    pages: dict[str, dict[str, str]]


class PageEntry(TypedDict):
    kind: str
    page: str


class PageDocument(Document):
    """The page of a name; seven names have two."""

    name: str
    kind: str
    page: str
    also: Annotated[list[PageEntry], Doc("pages of the same name among other kinds")]


@click.command()
@click.argument("name", required=False, shell_complete=_complete_page)
@json_flag
def command(name: str | None, as_json: bool) -> int:
    """Explain a property, claim, language, operator, verdict, engine, target or gate class; list all without NAME.

    \b
    Example:
      layoutproof explain injective
    """
    pages = _pages()
    if not any(name in found for found in pages.values()):
        pages |= _added(pages)
    if name is None:
        firsts = {kind: {n: page.partition("\n")[0] for n, page in found.items()} for kind, found in pages.items()}
        if as_json:
            every: PagesDocument = {**envelope(0), "pages": firsts}
            return print_json(every)
        say("\n\n".join(_list(kind, found) for kind, found in firsts.items() if found))
        return 0
    named = {kind: found[name] for kind, found in pages.items() if name in found}
    if not named:
        named = _by_other_name(name)
    if not named:
        from layoutproof.pallas.judge import other_names

        raise unknown_name("page", name, [n for found in pages.values() for n in found], other_names())
    (kind, page), *others = named.items()
    if as_json:
        also: list[PageEntry] = [{"kind": other, "page": text} for other, text in others]
        found: PageDocument = {**envelope(0), "name": name, "kind": kind, "page": page, "also": also}
        return print_json(found)
    say("\n\n".join([f"{name}\n\n{page}", *(f"{name}, among {other}\n\n{text}" for other, text in others)]))
    return 0


def _by_other_name(name: str) -> dict[str, str]:
    """The page of a target that a name is another one of (h100, ironwood), by its kind; {} for other names."""
    from layoutproof.pallas.judge import target_page

    with suppress(LayoutError):
        return {"targets": target_page(name)}
    return {}


_VERDICTS = {
    "proved": "No violation exists, for any element and any sizes. Exit code 0.\n\nIt is about the layout as written, "
    "under the assumptions shown beside it. An engine is named; --confirm demands a second, independent one.",
    "refuted": "A violation exists; the smallest one is shown, replayed on plain integers first. Exit code 1.",
    "sampled": "Of values: no difference at random points of prime fields, over the reals, at these sizes. Exit code "
    "0, 3 with --strict; counted apart, never as proved.\n\nThe answer names the functions that are taken to obey few "
    "laws, and the bound on the chance that a difference is missed, where one is proved.",
    "unknown": "Nothing is proved and nothing refuted. Exit code 3, never 0.\n\nThe question is vacuous (no element, "
    "assumptions that contradict one another), outside of what the engines decide, or over the step budget.\n"
    "The reason says what would settle it: sizes, an assumption, a larger --effort, another engine.",
}


def _pages() -> dict[str, dict[str, str]]:
    """The pages, by kind and name."""
    from layoutproof.core.finding_kinds import pages as pages_of_classes
    from layoutproof.gating.policy import DEFAULTS
    from layoutproof.pallas.judge import kernel_targets, target_page
    from layoutproof.programs.claims import CLAIMS
    from layoutproof.registry.catalogue import kernel_properties, properties, property_module
    from layoutproof.registry.expressions import operator_module, operators
    from layoutproof.registry.read import language, languages
    from layoutproof.solvers.decide import ENGINES

    return {
        "properties": {n: inspect.cleandoc(property_module(n).__doc__ or "") for n in properties()},
        "properties of kernels": {n: inspect.cleandoc(property_module(n).__doc__ or "") for n in kernel_properties()},
        "claims about programs": {n: inspect.cleandoc(f.__doc__ or "") for n, f in CLAIMS.items()},
        "layout languages": {n: inspect.cleandoc(language(n).__doc__ or "") for n in languages()},
        "operators on layouts": {n: inspect.cleandoc(operator_module(n).__doc__ or "") for n in operators()},
        "verdicts": _VERDICTS,
        "engines": {n: _doc_of(f"layoutproof.solvers.{n}") for n in ENGINES},
        "targets": {n: target_page(n) for n in kernel_targets()},
        "classes of the gate": {
            name: page.replace("\n\n", f"\n\nBy default: {DEFAULTS[name]}.\n" if name in DEFAULTS else "\n\n", 1)
            for name, page in pages_of_classes().items()
        },
        "subjects": {
            n: _doc_of(f"layoutproof.{package}")
            for n, package in (
                ("gate", "gating"),
                ("hlo", "hlo"),
                ("inverse", "questions.inverse"),
                ("compile", "programs"),
                ("try", "programs.candidates"),
                ("search", "searching"),
                ("conflict", "pallas.overruled"),
            )
        },
    }


def _added(own: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The pages of what other packages add, and what of theirs cannot be used."""
    from layoutproof import formats
    from layoutproof.core import plugins
    from layoutproof.registry import catalogue, hardware, read

    built_in = {
        "properties": ((*own["properties"], *own["properties of kernels"]), catalogue.WANTED),
        "languages": (own["layout languages"], read.WANTED),
        "formats": (formats.names(), (formats.WANTED,)),
    }
    pages: dict[str, dict[str, str]] = {}
    refused: list[str] = []
    for kind, (names, wanted) in built_in.items():
        found, broken = plugins.every(kind, *wanted)
        kept = {name: module for name, module in found.items() if name not in names}
        pages[f"{kind} of other packages"] = {n: inspect.cleandoc(m.__doc__ or "") for n, m in kept.items()}
        refused += broken + plugins.collisions(kind, names)
    targets = {name: inspect.cleandoc(m.__doc__ or "") for m in hardware.other_targets() for name in hardware.named(m)}
    pages["targets of other packages"] = targets
    refused += hardware.refused_targets()
    return pages | {"not usable": {f"{number}": sentence for number, sentence in enumerate(refused, 1)}}


def _doc_of(module: str) -> str:
    """A module's text, without running it: a solver's library is heavy."""
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    source = read(found.origin, MIB)
    return ast.get_docstring(ast.parse(source)) or ""


def _list(kind: str, firsts: dict[str, str]) -> str:
    width = max(map(len, firsts))
    return "\n".join([kind, *(f"  {name:<{width}}  {first}" for name, first in firsts.items())])
