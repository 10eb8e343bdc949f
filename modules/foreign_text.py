"""Other people's words on their way to the model: cleaned, and framed so that they cannot pass for anything else."""

from __future__ import annotations

import random
import re
import unicodedata

from modules.skills import Skills

# NOTE(self): chat-template tokens of the usual model families; a model may read them as the end of our words.
_TEMPLATE_TOKEN = re.compile(
    r"<[|\uff5c][^|\uff5c<>\n]{1,40}[|\uff5c]>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>"
    r"|</?(?:tool_calls?|function_calls?|think|thinking|antml:[^<>\n]{1,40})>",
    re.IGNORECASE,
)
_FRAME = re.compile(r"</?(?:post|conversation|reading)-[^>\n]{0,80}>?", re.IGNORECASE)
_ATTRIBUTE_LENGTH = 300
_QUOTES = str.maketrans({'"': "'", "<": "\u2039", ">": "\u203a"})
_KEEP = {"\n", "\t"}
_JOINERS = {"\u200d", "\ufe0f"}  # they build emoji


def clean(text: str) -> str:
    """`text` without control and zero-width characters, chat-template tokens and our own frames."""
    visible = "".join(
        char for char in text if char in _KEEP or char in _JOINERS or unicodedata.category(char) not in {"Cc", "Cf"}
    )
    before = ""
    while before != visible:
        before = visible
        visible = _FRAME.sub("", _TEMPLATE_TOKEN.sub("", visible))
    return visible.strip()


class Framer:
    """Frames foreign text. The boundary is drawn anew for each framer, one for each turn."""

    def __init__(self, skills: Skills, rng: random.Random) -> None:
        self._skills = skills
        self._boundary = f"{rng.getrandbits(48):012x}"

    def frame(self, kind: str, *, author: str, uri: str, text: str) -> str:
        """A block of kind `post` or `conversation`."""
        return self._skills.render(
            "core",
            "Foreign Text",
            kind=kind,
            boundary=self._boundary,
            author=_attribute(author),
            uri=_attribute(uri),
            text=clean(text),
        )


def _attribute(text: str) -> str:
    """Foreign text inside the frame's own quotes: it can neither end them nor the tag."""
    return one_line(text, _ATTRIBUTE_LENGTH).translate(_QUOTES)


def one_line(text: str, length: int = 64) -> str:
    """Foreign text that stands inside a sentence of ours, such as a display name: cleaned, on one line, short."""
    return " ".join(clean(text).split())[:length]
