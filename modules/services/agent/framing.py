"""Untrusted text on its way to a model: cleaned, and inside a frame that it cannot leave."""

from __future__ import annotations

import random

from common.text.untrusted import clean, one_line
from modules.services.agent.skills.skills import Skills

_ATTRIBUTE_LENGTH = 300
_QUOTES = str.maketrans({'"': "'", "<": "\u2039", ">": "\u203a"})


class Framer:
    """Frames untrusted text. The boundary is drawn anew for each framer, one for each turn."""

    def __init__(self, skills: Skills, rng: random.Random) -> None:
        self._skills = skills
        self._boundary = f"{rng.getrandbits(48):012x}"

    def frame(self, kind: str, *, author: str, uri: str, text: str) -> str:
        """A block of kind `post`, `conversation`, `message` or `reading`."""
        return self._skills.render(
            "core",
            "Untrusted Text",
            kind=kind,
            boundary=self._boundary,
            author=_attribute(author),
            uri=_attribute(uri),
            text=clean(text),
        )


def _attribute(text: str) -> str:
    """Return untrusted text inside the frame's quotes; the text can close neither the quotes nor the tag."""
    return one_line(text, _ATTRIBUTE_LENGTH).translate(_QUOTES)
