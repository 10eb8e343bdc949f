"""Elects one of several to do what only one needs to do. Pure.

Everybody who computes it gets the same result without communication: the lowest hash of name and matter decides.
"""

import hashlib
from collections.abc import Iterable

from common.text.strings import u16_len, u16_slice


def lot(name: str, matter: str) -> str:
    """Return the lot of a name in a matter: their SHA-256 in hex, with lone surrogates as U+FFFD."""
    text = f"{name}{matter}"
    return hashlib.sha256(u16_slice(text, u16_len(text)).encode()).hexdigest()


def ranked(names: Iterable[str], matter: str) -> list[str]:
    """Return the names in order of their lots in a matter, the lowest first."""
    return sorted(names, key=lambda name: lot(name, matter))


def elect(names: Iterable[str], matter: str) -> str | None:
    """Return the name elected in a matter; None if there is none. The order of names does not matter."""
    return next(iter(ranked(names, matter)), None)
