"""Notices where a service keeps less of a prompt than it was sent, without a word. Pure; forgotten with the process.

A server with a small window drops what does not fit, most often the instructions, and answers all the same. Its bills
show it: far fewer tokens than any tokenizer makes of so many characters, and the same number for prompts of different
lengths. Only that number is taken for its window; some services count wrongly in other ways, and cut nothing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

MOST_CHARS_PER_TOKEN = 6.0
"""Tokenizers make a token of four or five characters of prose, and of less in most other texts."""

_WORTH_TELLING_CHARS = 8_000
_CLEARLY_LONGER = 1.25
_BILLS_KEPT = 50


def is_short(chars: int, tokens: int) -> bool:
    """Whether that is less than what was sent can be."""
    return chars > tokens * MOST_CHARS_PER_TOKEN


@dataclass(slots=True)
class PromptWindow:
    """Of one model: the bills seen, and how many tokens its service keeps, None while nothing tells of a limit."""

    tokens: int | None = None
    is_told: bool = False
    _bills: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_BILLS_KEPT))

    def note(self, chars: int, tokens: int) -> bool:
        """Take a bill; return whether it says what the owner has not been told."""
        if self.tokens is not None and tokens > self.tokens:
            self.tokens = None
            self._bills.clear()
        short = is_short(chars, tokens)
        growth = 1.0 if short else _CLEARLY_LONGER
        alike = [sent for sent, counted in self._bills if counted == tokens]
        if any(max(sent, chars) > min(sent, chars) * growth for sent in alike):
            self.tokens = tokens
        self._bills.append((chars, tokens))
        is_news = not self.is_told and (self.tokens is not None or short) and chars >= _WORTH_TELLING_CHARS
        self.is_told = self.is_told or is_news
        return is_news
