"""The impression that somebody's words leave, as the model reports it in the call that answers them."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator

Impressed = Literal["", "challenge", "question"]
"""`challenge`: they disagree with us; `question`: they leave us with a question that we cannot answer yet."""

_KNOWN = frozenset(get_args(Impressed))


def _known_or_none(value: object) -> object:
    return value if isinstance(value, str) and value in _KNOWN else ""


Impression = Annotated[Impressed, BeforeValidator(_known_or_none)]
"""The field of an input model; any other value counts as left out."""
