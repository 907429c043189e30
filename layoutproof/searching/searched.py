"""The answer of a search for tilings, with the one way to show it; the renderers are imported on first use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutproof.core.result import Verdict

if TYPE_CHECKING:
    from layoutproof.searching.answer import TilingAnswer
    from layoutproof.searching.solve import Tilings
    from layoutproof.searching.tilings_json import TilingsDocument, TracedDocument
    from layoutproof.searching.traced import TracedFound


@dataclass(frozen=True, slots=True)
class Searched:
    """The answer for a declared kernel or a traced function, and how it is shown."""

    result: Tilings | TracedFound

    @property
    def verdict(self) -> Verdict:
        """PROVED: nothing that costs less is legal.  REFUTED: no candidate is legal.  UNKNOWN otherwise."""
        return self.result.verdict

    @property
    def answer(self) -> TilingAnswer:
        """The whole answer; the other candidates are gone through on first use only."""
        from layoutproof.searching.solve import Tilings

        if isinstance(self.result, Tilings):
            from layoutproof.searching import declared_answer

            return declared_answer.answer_of(self.result)
        from layoutproof.searching import traced_answer

        return traced_answer.answer_of(self.result)

    def text(self, why: bool = True) -> str:
        """The answer as text. why: with the model, its sources, and the refused candidates."""
        from layoutproof.searching.tilings_text import text

        return text(self.answer, why)

    def as_json(self) -> TilingsDocument | TracedDocument:
        """The answer as plain data."""
        from layoutproof.searching.tilings_json import as_json

        return as_json(self.answer)
