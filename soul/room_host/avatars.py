"""How a member of the room looks in the terminal: everybody's colour and symbol follow from the name alone.

So the same agent looks the same in every host's terminal, also in that of another program. Pure.
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
    """The number from which a name's look follows: `h * 31 + unit` over its UTF-16 units in 32 bits, without sign."""
    return abs(hash31(name))


def colour(name: str) -> str:
    """The name's colour, as the terminal library calls it."""
    return COLOURS[name_hash(name) % len(COLOURS)]


def symbol(name: str) -> str:
    """The sign that stands before the name."""
    return SYMBOLS[name_hash(name) % len(SYMBOLS)]
