"""Elects one of several to do what only one need do. Pure.

All who reckon it come to the same end without a word between them: the lowest hash of a name and of the matter decides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from common.text.utf16 import u16_len, u16_slice


def lot(name: str, matter: str) -> str:
    """Return what a name draws in a matter: their SHA-256 in hex, half a surrogate pair told by U+FFFD."""
    text = f"{name}{matter}"
    return hashlib.sha256(u16_slice(text, u16_len(text)).encode()).hexdigest()


def ranked(names: Iterable[str], matter: str) -> list[str]:
    """Return the names in the order in which they come in a matter, the lowest lot first."""
    return sorted(names, key=lambda name: lot(name, matter))


def elect(names: Iterable[str], matter: str) -> str | None:
    """Return the name that decides a matter; None when there is none. The order of names does not matter."""
    return next(iter(ranked(names, matter)), None)
