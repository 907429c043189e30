"""Calls of the functions of `drawn.txt`, which were drawn before anybody read one of them. Nothing was tuned to them."""

from __future__ import annotations

from calls import Call

DRAWN: tuple[Call, ...] = ()
UNCALLED: dict[str, str] = {}
