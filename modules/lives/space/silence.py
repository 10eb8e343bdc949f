"""Says when a SOUL must be silent in a room, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from common.settings import Settings

_SILENT = "Silent in rooms: SOUL_APPROVAL=drafts with SOUL_APPROVAL_ROOM=on needs approval of every message"
_SILENT_IN_FOUND = "Silent in this room: SOUL_APPROVAL=drafts, and it is neither on this machine nor in SPACE_URL"
_ONLY_ANSWERS = "SOUL_APPROVAL=drafts: it only answers the host"


@dataclass(frozen=True, slots=True)
class RoomSilence:
    """Asks the pause and the owner's choice of approval; each method returns the reason, "" for none.

    With `SOUL_APPROVAL=drafts` the host of a trusted room is answered without approval, as the host is present.
    """

    settings: Settings
    write_block_reason: Callable[[], str]
    is_trusted_room: Callable[[], bool]

    def reason(self) -> str:
        """Return why nothing may be shown or said in the room just now."""
        return self.write_block_reason() or self.of_approval()

    def unasked(self) -> str:
        """Return why nothing may be said just now that does not answer the host."""
        return self.reason() or (_ONLY_ANSWERS if self.settings.soul_approval == "drafts" else "")

    def of_approval(self) -> str:
        """Return why the owner's choice of approval keeps the SOUL silent."""
        if self.settings.soul_approval != "drafts":
            return ""
        if self.settings.soul_approval_room:
            return _SILENT
        return "" if self.is_trusted_room() else _SILENT_IN_FOUND
