"""Counts sentences and cuts between them. Pure; linear in the length of the text."""

from __future__ import annotations

import regex

from common.text.utf16 import u16_len

_URL = regex.compile(r"https?://\S*[^\s.,;:!?)\]\"'}>]")
_END = regex.compile(r"(?<![.!?])[.!?]++[\"'”’)\]*_]*+(?=\s|\Z)|[。！？]++|;(?=\s)")  # noqa: RUF001 - the signs meant
_LINE_END = regex.compile(r"\n")


def count_sentences(message: str) -> int:
    """How often a sentence ends: full stops, question and exclamation marks, semicolons; not those within a link."""
    return len(_ends(message))


def auto_trim(message: str, max_chars: int, max_sentences: int) -> str:
    """As many whole sentences from the start as fit; what follows the last end is no sentence. "" if none fits.

    `max_chars` are UTF-16 code units. A semicolon counts as `count_sentences` counts it, but nothing is cut there.
    """
    read = length = taken = 0
    for end in _ends(message)[: max(max_sentences, 0)]:
        length += u16_len(message[read:end])
        if length > max_chars:
            break
        read = end
        if message[end - 1] != ";":
            taken = end
    return message[:taken]


def without_first(message: str) -> str:
    """What follows the first sentence, or the first line if that is shorter; "" if nothing does."""
    message = message.strip()
    line = _LINE_END.search(message)
    places = [place for place in (*_ends(message)[:1], line.start() if line else 0) if place]
    return message[min(places) :].strip() if places else ""


def _ends(message: str) -> list[int]:
    masked = _URL.sub(lambda link: "x" * len(link[0]), message)
    return [found.end() for found in _END.finditer(masked)]
