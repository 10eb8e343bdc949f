"""What a turn of the SOUL's own is about."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OwnTimeTurn:
    """A turn of the SOUL's own. `private` says what to do: its words are nobody's to read but the owner's.

    `seen` is what it was shown, as that of a turn of reading.
    """

    private: str
    seen: dict[str, str] = field(default_factory=dict)
