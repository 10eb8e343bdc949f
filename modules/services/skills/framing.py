"""Untrusted text on its way to a model: cleaned, and inside a frame that it cannot leave."""

from __future__ import annotations

import random
import re

from common.text.untrusted import clean, one_line
from modules.services.skills.skills import Skills, interpolate

_ATTRIBUTE_LENGTH = 300
_BOUNDARY = re.compile(r"(?<=[a-z]-)[0-9a-f]{12}(?=[ >])")
_QUOTES = str.maketrans({'"': "'", "<": "\u2039", ">": "\u203a"})


class Framer:
    """Frames untrusted text. Each framer draws its boundary, after the words that it frames were written."""

    def __init__(self, skills: Skills, rng: random.Random) -> None:
        self._template = skills.section("core", "Untrusted Text")
        self._boundary = f"{rng.getrandbits(48):012x}"

    def frame(self, kind: str, *, author: str, uri: str, text: str) -> str:
        """Return a block of kind `post`, `quoted`, `attached`, `links`, `conversation`, `message` or `reading`.

        `author` and `uri` stand between quotes: what is in them can close neither the quotes nor the tag.
        """
        who, where = (one_line(value, _ATTRIBUTE_LENGTH).translate(_QUOTES) for value in (author, uri))
        values = {"kind": kind, "boundary": self._boundary, "author": who, "uri": where, "text": clean(text)}
        return interpolate(self._template, values)


def without_boundaries(text: str) -> str:
    """Return `text` without the boundaries of its frames: each is drawn anew, and is no change."""
    return _BOUNDARY.sub("", text)
