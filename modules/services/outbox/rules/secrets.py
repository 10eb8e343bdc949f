"""The last scan for secrets before something becomes public. Stores nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from common.redact import LEAK, Redactor
from modules.services.outbox.types import ProposedAction, Verdict


class SecretScan:
    """A rule at admission: blocks an action that holds a secret, without naming it; no copy of the action is stored."""

    name = "secrets"

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> Sequence[Verdict]:
        leaks = self._redactor.finds_in([action.body.stored(), action.target])
        return [Verdict(self.name, "block", LEAK, withhold=True) if leaks else Verdict(self.name)]
