"""Answers as the cache holds them: frozen data as JSON, and back; the one form of all that is kept.

A tuple is a list of JSON; everything else that is no text, number or truth value is an object with one key, which says
what it is: "mapping", "list", "Verdict", or the name of a class. Other values come back as something else, so the
caller that keeps an answer checks that it comes back unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from layoutproof.core.message import Message, plain_figure
from layoutproof.core.result import Verdict

Classes = Mapping[str, type]
"""The classes whose objects may be kept, by name."""


def classes(*of: type) -> Classes:
    """Some classes by their names."""
    return {each.__name__: each for each in of}


def as_json(value: object, held: Classes) -> object:
    """A value as JSON holds it; an object of an unknown class as its text.

    >>> as_json({"at": (0, 4), "said": [Verdict.PROVED]}, {})
    {'mapping': [['at', [0, 4]], ['said', {'list': [{'Verdict': 'proved'}]}]]}
    """
    if isinstance(value, Verdict):
        return {"Verdict": value.value}
    if isinstance(value, Message):
        figures = {name: plain_figure(figure) for name, figure in value.figures.items()}
        return {"Message": [str(value), value.id, as_json(figures, held)]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return [as_json(each, held) for each in value]
    if isinstance(value, list):
        return {"list": [as_json(each, held) for each in value]}
    if isinstance(value, Mapping):
        return {"mapping": [[as_json(name, held), as_json(each, held)] for name, each in value.items()]}
    name = type(value).__name__
    if is_dataclass(value) and held.get(name) is type(value):
        return {name: {f.name: as_json(getattr(value, f.name), held) for f in fields(value)}}
    return str(value)


def from_json(value: Any, held: Classes) -> Any:
    """What `as_json` was given; None for what it never wrote.

    >>> from_json(as_json({"at": (0, 4), "said": [Verdict.PROVED]}, {}), {})
    {'at': (0, 4), 'said': [<Verdict.PROVED: 'proved'>]}
    """
    try:
        return _read(value, held)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _read(value: Any, held: Classes) -> Any:
    if isinstance(value, list):
        return tuple([_read(each, held) for each in value])
    if not isinstance(value, dict):
        return value
    ((name, parts),) = value.items()
    match name:
        case "list":
            return [_read(each, held) for each in parts]
        case "Message":
            text, id, figures = parts
            return Message(text, id, _read(figures, held))
        case "Verdict":
            return Verdict(parts)
        case "mapping":
            return {_read(key, held): _read(each, held) for key, each in parts}
    return held[name](**{key: _read(each, held) for key, each in parts.items()})
