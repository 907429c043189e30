"""A child process that asks jaxlib's HLO parser about shapes: a JSON list of texts in, a JSON list of answers out.

An answer is what XLA prints for the text, or null where it refuses or aborts. XLA aborts the whole process on some
texts, so forks do the asking: one that dies answers null for the text it died on, and the next one goes on after it.
"""

from __future__ import annotations

import json
import sys


def printed(text: str) -> str | None:
    from jaxlib import _hlo

    try:
        module = _hlo.hlo_module_from_text(f"HloModule m\nENTRY e {{ ROOT p = {text}\n parameter(0) }}")
    except Exception:
        return None
    (root,) = (line for line in module.to_string().splitlines() if line.strip().startswith("ROOT "))
    return root.strip().removeprefix("ROOT %p = ").removesuffix(" parameter(0)")


if __name__ == "__main__":
    import jaxlib._hlo  # noqa: F401  loaded once, before the forks
    from forked import answers

    json.dump(answers(json.load(sys.stdin), printed), sys.stdout)
