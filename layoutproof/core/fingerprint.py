"""Names of findings that stay the same: in another run, on another machine, and when lines above are added.

A fingerprint is made of the class, the file's name within the state, the subject, and both texts. So an approval is of
this one change, and is worth nothing when the layout changes once more.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from layoutproof.core.finding import Finding

FORM = re.compile(r"[0-9a-f]{16}")


def named(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, each with its fingerprint; equal names are numbered in order.

    >>> [found.fingerprint for found in named([Finding("moved", "layout a", ""), Finding("moved", "layout a", "x")])]
    ['d1f96d55c614da3b', '4c1a01fe9d6a7dd2']
    """
    seen: Counter[str] = Counter()
    done = []
    for finding in findings:
        parts = (finding.question, finding.relpath, finding.subject, finding.before, finding.after)
        digest = hashlib.sha256("\0".join(parts).encode(errors="backslashreplace")).hexdigest()
        seen[digest] += 1
        if seen[digest] > 1:
            digest = hashlib.sha256(f"{digest} {seen[digest]}".encode()).hexdigest()
        done.append(replace(finding, fingerprint=digest[:16]))
    return done
