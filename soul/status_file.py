"""Checks the fields of a status file. It imports little, since `soul status` needs little else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_Fits = Callable[[Any], bool]
_DEPTH_MAX = 8


def fitting(raw: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields with valid values, and the names of the others. An unknown field may hold anything.

    No field may be nested deeper than a status is, since the JSON reader goes deeper than the writer.
    """
    kept = {name: value for name, value in raw.items() if _is_flat(value) and _FIELDS.get(name, _anything)(value)}
    return kept, tuple(name for name in raw if name not in kept)


def _anything(_: object) -> bool:
    return True


def _text(value: object) -> bool:
    return isinstance(value, str)


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _or_nothing(fits: _Fits) -> _Fits:
    return lambda value: value is None or fits(value)


def _list_of(fits: _Fits) -> _Fits:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _each(fits: _Fits) -> _Fits:
    return lambda value: isinstance(value, dict) and all(map(fits, value.values()))


def _record(**fields: _Fits) -> _Fits:
    """Return a check for an object that has all of these fields; it may have others."""
    return lambda value: (
        isinstance(value, dict) and all(name in value and fits(value[name]) for name, fits in fields.items())
    )


def _is_flat(value: object, depth: int = _DEPTH_MAX) -> bool:
    if isinstance(value, dict):
        return depth > 0 and all(_is_flat(item, depth - 1) for item in value.values())
    return not isinstance(value, list) or (depth > 0 and all(_is_flat(item, depth - 1) for item in value))


_FIELDS: Mapping[str, _Fits] = {
    "handle": _or_nothing(_text),
    "mode": _text,
    "updatedAt": _text,
    "counts": _each(_count),
    "waits": _each(_count),
    "schedules": _list_of(_record(number=_count, what=_text, due=_text)),
    "conversations": _record(active=_count, concluded=_count),
    "rituals": _list_of(
        _record(
            name=_text,
            workspace=_text,
            role=_text,
            nextAt=_or_nothing(_text),
            day=_or_nothing(_text),
            thread=_text,
            part=_text,
            note=_text,
            artefact=_text,
        )
    ),
    "nextExpressionSource": _text,
    "cachedShare": _or_nothing(_share),
    "promptNotes": _list_of(_text),
    "lastDecision": _or_nothing(_record(at=_text, summary=_text, reason=_text)),
    "decisions": _list_of(_record(at=_text, summary=_text, reason=_text)),
    "troubles": _list_of(_record(service=_text, what=_text, until=_or_nothing(_text))),
    "loops": _list_of(_record(name=_text, nextAt=_or_nothing(_text), lastOutcome=_text)),
    "room": _or_nothing(_record(status=_text, url=_text, peers=_list_of(_text))),
    "growth": _record(
        open=_count,
        changes=_list_of(_record(at=_text, version=_text, reason=_text, learned=_text, diff=_list_of(_text))),
        friction=_list_of(_record(description=_text, count=_count)),
    ),
    "watched": _list_of(_record(repo=_text, url=_text, requested=lambda value: isinstance(value, bool))),
    "commitments": _list_of(_record(what=_text, type=_text, status=_text)),
}
