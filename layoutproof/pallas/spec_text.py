"""Traced Pallas calls as a spec file: checked again, and compared by the gate, without JAX and without the code."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from layoutproof.core.errors import Unsupported
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.kernel.kernel_print import mapping_of
from layoutproof.pallas import problems


def spec_text(calls: Sequence[Kernel | Unmodelled], source: str, target: str | None = None) -> str:
    """The YAML text of a spec file with one layout and one check per call.

    source: of the claims, kept in the file.  target: added to each check. Undecided for a call that the language of
    kernels cannot express: an omission would be taken for proved.
    """
    import yaml

    layouts: dict[str, Any] = {}
    for call in calls:
        why = not_serialisable(call)
        if why:
            raise Unsupported(problems.NO_SPEC(call.name, call.source, why))
        assert isinstance(call, Kernel)
        mapping = mapping_of(call)
        if call.plain:
            # the call does not say what it is for, and so its statement does not
            del mapping["platform"]
        layouts[name_of(call, layouts)] = {"kernel": mapping}
    asked = {} if target is None else {"target": target}
    whole = {"source": source, "layouts": layouts, "checks": [{"kernel": name, **asked} for name in layouts]}
    text: str = yaml.safe_dump(whole, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
    return text


def name_of(call: Kernel | Unmodelled, taken: Collection[str]) -> str:
    """A name for a call that spec files can use and that is not taken: its own, numbered from the second on.

    >>> name_of(Unmodelled("my kernel", "", ""), ["my_kernel"])
    'my_kernel.2'
    """
    name = re.sub(r"[^\w.-]+", "_", call.name).strip("_.-") or "call"
    name = f"k_{name}" if name[0].isdigit() else name
    number = 1
    while (f"{name}.{number}" if number > 1 else name) in taken:
        number += 1
    return f"{name}.{number}" if number > 1 else name


def not_serialisable(call: Kernel | Unmodelled) -> str:
    """The part of a call that the language of kernels cannot express, or "".

    >>> not_serialisable(Unmodelled("k", "a.py:3", "a grid of floats"))
    'a grid of floats'
    """
    if isinstance(call, Unmodelled):
        return call.reason
    beyond = next((f"{o.name}: {o.unmodelled}" for o in call.operands if o.unmodelled), "")
    if beyond:
        return beyond
    real = next((t for t in call.tables if t.dtype[:1] not in ("s", "u", "p", "")), None)
    if real is not None:
        return problems.TABLE_TYPE(real.name, real.dtype)
    if call.runtime:
        return problems.SPEC_SIZES(", ".join(call.runtime))
    if call.accesses and call.platform != "tpu":
        return problems.SPEC_BODY()
    return ""
