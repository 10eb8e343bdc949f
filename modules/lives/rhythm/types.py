"""What a turn of the SOUL's own is about, and how the owner is told of what was done at a set time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OwnTimeTurn:
    """A turn of the SOUL's own. `private` says what to do: its words are nobody's to read but the owner's."""

    private: str


class TellOwner(Protocol):
    """Tells the owner something outside of a talk, once for each name, across restarts."""

    async def __call__(self, name: str, text: str, words: str, *, at_once: bool) -> None:
        """Keep it to be told: `text` is the headline, `words` what is said in private.

        Unless `at_once`, it waits for the end of the owner's quiet hours.
        """
        ...
