"""A case: one thing of which sources are asked what we say of it too."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from layoutproof.core.errors import shorten
from layoutproof.layouts.kernel.layout import KernelLayout
from layoutproof.registry.read import read_layout

Kind = Literal["layout", "pair", "kernel"]


@dataclass(frozen=True, slots=True)
class PallasCall:
    """A Pallas call of a function of the user's, so that another process can make the same one.

    function: where it is, "pkg.mod:fn".  args, kwargs: as `layoutproof kernels` takes them.  target: "" for none.
    number: of the call, in the order in which the function makes them.
    """

    function: str
    args: tuple[str, ...] = ()
    kwargs: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """One layout (of any language: memory, shards, programs), two of them, or one kernel.

    Attributes:
        kind: "layout", "pair" or "kernel".
        text: What `layoutproof crosscheck` takes as an argument: a layout as its language writes it, "A -> B" for a
            pair, a mapping for a kernel, "pkg.mod:fn" for one of the user's.
        parsed: What `read_layout` gives: of a pair both, of a kernel a `KernelLayout`.
        origin: Where it came from: "specs/a.yaml:12", "step.txt:40", "seed 7 number 31"; "" for an argument.
        call: Of a kernel that was traced, how to make it again.
    """

    kind: Kind
    text: str
    parsed: Any
    origin: str = ""
    call: PallasCall | None = None

    def paste(self, source: str = "") -> str:
        """A command line that asks the same again.

        >>> Case("layout", "f32[3,5]{1,0}", None).paste("numpy")
        "layoutproof crosscheck 'f32[3,5]{1,0}' --source numpy"
        """
        words = ["layoutproof", "crosscheck", self.text]
        for value in self.call.args if self.call else ():
            words += ["--arg", value]
        for name, value in (self.call.kwargs if self.call else {}).items():
            words += ["--kwarg", f"{name}={value}"]
        return shlex.join([*words, *(["--source", source] if source else [])])

    def __str__(self) -> str:
        return shorten(self.text, 200)


def layout_case(value: object, origin: str) -> Case:
    """A layout or a kernel, as `read_layout` takes it. LayoutError where it cannot be read.

    >>> layout_case("f32[3,5]", "specs/a.yaml:3").text
    'f32[3,5]{1,0}'
    """
    layout = read_layout(value)
    if isinstance(layout, KernelLayout):
        return Case("kernel", json.dumps({"kernel": layout.mapping()}), layout, origin)
    return Case("layout", str(layout), layout, origin)
