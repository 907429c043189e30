"""The answer to a search about arrays: layouts, paddings, shardings. `arrays_text` and `arrays_json` show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.core.result import Verdict
from layoutproof.searching.array_layouts import ArrayAnswer, SharedAnswer
from layoutproof.searching.padded_shapes import PaddingAnswer
from layoutproof.searching.shardings import ShardingAnswer


@dataclass(frozen=True, slots=True)
class ArraysAnswer:
    """Everything that was asked of some arrays; a text stands in the place of an answer that is unknown, and says why.

    best: how many layouts of each are shown.  layouts, padding: by array.
    shared: one order for all arrays.  shared, shardings: None = not asked.
    """

    name: str
    target: str
    best: int
    layouts: Mapping[str, ArrayAnswer]
    shared: SharedAnswer | str | None
    padding: Mapping[str, PaddingAnswer | str]
    shardings: ShardingAnswer | None

    @property
    def verdict(self) -> Verdict:
        """PROVED: nothing better exists.  REFUTED: something that is asked for does not exist.  UNKNOWN otherwise."""
        found = [Verdict.UNKNOWN] if isinstance(self.shared, str) else [Verdict.PROVED]
        for one in self.padding.values():
            none = Verdict.UNKNOWN if isinstance(one, str) else Verdict.REFUTED
            found.append(none if isinstance(one, str) or one.full is None else Verdict.PROVED)
        if self.shardings is not None:
            none = Verdict.UNKNOWN if self.shardings.reason else Verdict.REFUTED
            found.append(none if self.shardings.reason or self.shardings.infeasible else Verdict.PROVED)
        return min(found)
