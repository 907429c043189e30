"""Search: the best tilings under a target's constraints, each proved legal, with a certificate that none is better.

A search file is YAML with a top-level key `search` and one of: `kernel` (grid, BlockSpecs, scratch) or `trace` (your
function) with `tune` (names and their candidates), `layouts` (the fewest padded bytes), `paddings`, `shardings`.
`target` says which hardware. `layoutproof search FILE` ranks what is legal; specs/search has one of each.
"""

from __future__ import annotations

import re

_KEY = re.compile(rb"^search\s*:", re.MULTILINE)


def is_search(data: bytes) -> bool:
    r"""Whether a YAML text states a problem to search, and so no claims: its top level has the key `search`.

    >>> is_search(b"# a matmul\nsearch: matmul\n"), is_search(b"source: x\n  search: y\n")
    (True, False)
    """
    return _KEY.search(data) is not None
