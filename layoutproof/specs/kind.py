"""Which kind of file a YAML text is: claims, or a problem to search."""

from __future__ import annotations

import re

_KEY = re.compile(rb"^search\s*:", re.MULTILINE)


def is_search(data: bytes) -> bool:
    r"""Whether a YAML text states a problem to search, and so no claims: its top level has the key `search`.

    >>> is_search(b"# a matmul\nsearch: matmul\n"), is_search(b"source: x\n  search: y\n")
    (True, False)
    """
    return _KEY.search(data) is not None
