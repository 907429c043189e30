"""Pairs the entities of the baseline with those of the current state.

Each round matches by one key what no earlier round matched. A key that several things have on one side matches them in
their order when both sides have as many of them, and then it is a heuristic; otherwise it matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Match(Generic[T]):
    """old or new is None for what is new or gone. match_heuristic: how it was matched; "" by its identity."""

    old: T | None
    new: T | None
    match_heuristic: str = ""


@dataclass(frozen=True, slots=True)
class Round(Generic[T]):
    """One way to tell which is which. key: None where it says nothing.

    match_heuristic: "" where the key is the thing's identity, otherwise how it was matched.
    ordered: whether several with one key are matched in their order.
    alike: whether things with one key are the same in all that is reported: then as many as both sides have are
        matched, it is no heuristic, and the rest is new or gone.
    """

    key: Callable[[T], Hashable | None]
    match_heuristic: str = ""
    ordered: bool = True
    alike: bool = False


def match(old: Sequence[T], new: Sequence[T], rounds: Sequence[Round[T]]) -> list[Match[T]]:
    """Every thing of both sides exactly once: in the order of `new`, then what is gone in the order of `old`.

    >>> by_name = Round(lambda text: text.partition("=")[0])
    >>> by_value = Round(lambda text: text.partition("=")[2], match_heuristic="by its value")
    >>> for found in match(["a=1", "b=2"], ["a=3", "c=2", "d=4"], [by_name, by_value]):
    ...     print((found.old, found.new, found.match_heuristic))
    ('a=1', 'a=3', '')
    ('b=2', 'c=2', 'by its value')
    (None, 'd=4', '')
    """
    partner: dict[int, tuple[int, str]] = {}
    free_old, free_new = dict(enumerate(old)), dict(enumerate(new))
    for each in rounds:
        groups_old, groups_new = _groups(free_old, each), _groups(free_new, each)
        for key, ours in groups_new.items():
            theirs = groups_old.get(key, [])
            if not each.alike and (len(ours) != len(theirs) or (len(ours) > 1 and not each.ordered)):
                continue
            order = f"{len(ours)} alike, matched in their order" if len(ours) > 1 and not each.alike else ""
            match_heuristic = "; ".join(part for part in (each.match_heuristic, order) if part)
            for here, there in zip(ours, theirs, strict=False):
                partner[here] = (there, match_heuristic)
                del free_new[here], free_old[there]
    matched = [
        Match(old[partner[k][0]], item, partner[k][1]) if k in partner else Match(None, item)
        for k, item in enumerate(new)
    ]
    return [*matched, *(Match(item, None) for item in free_old.values())]


def _groups(free: dict[int, T], each: Round[T]) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for number, item in free.items():
        key = each.key(item)
        if key is not None:
            groups.setdefault(key, []).append(number)
    return groups
