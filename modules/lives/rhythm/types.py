"""The subject of a turn of the SOUL's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OwnTimeTurn:
    """A turn of the SOUL's own. Only the owner may read the texts in `private`, such as its task.

    `seen` is what it was shown: addresses, each with the DID of the author.
    """

    private: Sequence[str]
    seen: dict[str, str] = field(default_factory=dict)
