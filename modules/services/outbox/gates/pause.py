"""Nothing public leaves while the owner has paused the SOUL, or while it only listens; messages to the owner do."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from modules.runtime.control import Control
from modules.services.outbox.bodies import DirectMessageBody
from modules.services.outbox.types import Intent, Wait

_ASK_AGAIN_S = 5.0


@dataclass(frozen=True, slots=True)
class PauseGate:
    """Asks `control` before each departure."""

    control: Control
    owner_did: str = ""

    def __call__(self, _connection: sqlite3.Connection, intent: Intent, _now: datetime, /) -> Wait | None:
        standing = self.control.standing()
        if (
            not standing.writes_blocked
            and isinstance(intent.body, DirectMessageBody)
            and intent.body.to == self.owner_did
        ):
            return None
        return None if standing.may_act else Wait(str(standing), _ASK_AGAIN_S)
