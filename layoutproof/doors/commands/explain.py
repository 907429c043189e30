"""`layoutproof explain [NAME]`: the page of a property or of a layout language."""

from __future__ import annotations

import inspect

import click

from layoutproof.core.errors import LayoutError
from layoutproof.doors.arguments import json_flag, print_json, say


@click.command()
@click.argument("name", required=False)
@json_flag
def command(name: str | None, as_json: bool) -> int:
    """Explain a property or a layout language; list all without NAME."""
    pages = _pages()
    if name is None:
        firsts = {kind: {n: page.splitlines()[0] for n, page in found.items()} for kind, found in pages.items()}
        if as_json:
            print_json(firsts)
        else:
            say("\n\n".join(_list(kind, found) for kind, found in firsts.items()))
        return 0
    for kind, found in pages.items():
        if name in found:
            if as_json:
                print_json({"name": name, "kind": kind, "page": found[name]})
            else:
                say(f"{name}\n\n{found[name]}")
            return 0
    from layoutproof.jobs.spec_model import closest

    known = [n for found in pages.values() for n in found]
    raise LayoutError(f"nothing is called {name!r}" + (closest(name, known) or f"; known: {', '.join(known)}"))


def _pages() -> dict[str, dict[str, str]]:
    """The module texts, by kind and name."""
    from layoutproof.engine.catalogue import kernel_properties, properties, property_module
    from layoutproof.engine.read import language, languages

    return {
        "properties": {n: inspect.cleandoc(property_module(n).__doc__ or "") for n in properties()},
        "properties of kernels": {n: inspect.cleandoc(property_module(n).__doc__ or "") for n in kernel_properties()},
        "layout languages": {n: inspect.cleandoc(language(n).__doc__ or "") for n in languages()},
    }


def _list(kind: str, firsts: dict[str, str]) -> str:
    width = max(map(len, firsts))
    return "\n".join([kind, *(f"  {name:<{width}}  {first}" for name, first in firsts.items())])
