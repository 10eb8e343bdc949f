"""The colour and the symbol of a member, derived from its name alone. Pure.

The same agent therefore looks the same in every host's terminal, including that of the reference implementation.
"""

from __future__ import annotations

from common.text.utf16 import hash31

COLOURS = (
    "ansicyan",
    "ansigreen",
    "ansiyellow",
    "ansimagenta",
    "ansibrightblue",
    "ansibrightcyan",
    "ansibrightgreen",
    "ansibrightmagenta",
)
SYMBOLS = "●◆★♥■•○"


def name_hash(name: str) -> int:
    """Returns the hash of a name: `h * 31 + unit` over its UTF-16 units in 32 bits, as an absolute value."""
    return abs(hash31(name))


def colour(name: str) -> str:
    """Returns the colour of a name, as prompt_toolkit calls it."""
    return COLOURS[name_hash(name) % len(COLOURS)]


def symbol(name: str) -> str:
    """Returns the character shown before a name."""
    return SYMBOLS[name_hash(name) % len(SYMBOLS)]
