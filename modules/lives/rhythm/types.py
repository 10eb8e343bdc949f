"""What a turn of the SOUL's own is about."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OwnTimeTurn:
    """A turn of the SOUL's own. `private` says what to do: its words are nobody's to read but the owner's."""

    private: str
