"""The answer of a search of any kind, with the one way to show it; the renderers are imported on first use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutproof.core.result import Verdict

if TYPE_CHECKING:
    from layoutproof.searching.answer import TilingAnswer
    from layoutproof.searching.arrays_answer import ArraysAnswer
    from layoutproof.searching.arrays_json import ArraysDocument
    from layoutproof.searching.tilings import Tilings
    from layoutproof.searching.tilings_json import TilingsDocument


@dataclass(frozen=True, slots=True)
class Searched:
    """The answer for a declared kernel, a traced function or arrays, and how it is shown."""

    result: Tilings | ArraysAnswer

    @property
    def verdict(self) -> Verdict:
        """PROVED: nothing that costs less is legal.  REFUTED: there is none.  UNKNOWN otherwise."""
        return self.result.verdict

    @property
    def answer(self) -> TilingAnswer | ArraysAnswer:
        """The whole answer; the other candidates of tilings are gone through on first use only."""
        from layoutproof.searching.arrays_answer import ArraysAnswer

        if isinstance(self.result, ArraysAnswer):
            return self.result
        from layoutproof.searching.tilings_answer import tilings_answer

        return tilings_answer(self.result)

    def text(self, why: bool = True) -> str:
        """The answer as text. why: with the model, its sources, and the refused candidates."""
        from layoutproof.searching import arrays_text, tilings_text
        from layoutproof.searching.arrays_answer import ArraysAnswer

        answer = self.answer
        return arrays_text.text(answer) if isinstance(answer, ArraysAnswer) else tilings_text.text(answer, why)

    def as_json(self) -> TilingsDocument | ArraysDocument:
        """The answer as plain data."""
        from layoutproof.searching import arrays_json, tilings_json
        from layoutproof.searching.arrays_answer import ArraysAnswer

        answer = self.answer
        return arrays_json.as_json(answer) if isinstance(answer, ArraysAnswer) else tilings_json.as_json(answer)
