"""One-to-one onto everything that is not padding: injective, and every element in bounds.

Why it matters: this is what makes a layout a layout. Padding is by definition the places of the range that hold no
element; an injective map in bounds reaches exactly as many places as there are elements, and the figures say how many
remain (`padding`). Ask `covers` when no padding is allowed at all.
Refuted by: what refutes `injective` (`first`, `second`) or `in_bounds` (`element`).
"""

from __future__ import annotations

from layoutproof.core.claim import Claim
from layoutproof.core.index_map import IndexMap
from layoutproof.core.result import plain
from layoutproof.core.size import Extent
from layoutproof.properties import in_bounds, injective

LAYOUTS = 1


def claims(m: IndexMap) -> tuple[Claim, ...]:
    """The claims of injective and of in_bounds.

    Args:
        m: The map of one layout.

    Returns:
        The claims, in the order in which they are refuted.
    """
    return (*injective.claims(m), *in_bounds.claims(m))


def figures(m: IndexMap) -> dict[str, object]:
    """places = elements + padding.

    Args:
        m: The map of one layout.

    Returns:
        elements, places and padding, in elements.
    """
    elements: Extent = m.domain.count()
    places: Extent = m.memory.allotted if m.memory else m.range.count()
    numbers: dict[str, object] = plain({"elements": elements, "places": places, "padding": places - elements})
    return numbers
