"""What a turn of the SOUL's own is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OwnTimeTurn:
    """A turn of the SOUL's own. The words of `private`, such as what it is to do, are for the owner's eyes only.

    `seen` is what it was shown, as that of a turn of reading.
    """

    private: Sequence[str]
    seen: dict[str, str] = field(default_factory=dict)
