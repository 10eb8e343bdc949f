"""The last scan for secrets, and gates asked before an intent leaves: the pause, the newest post on our own feed.

Nothing public leaves while the owner has paused the SOUL, or while it only listens; messages to the owner do.

The pace of the outbox counts what `soul.db` knows. If the database was lost, or the account is also used by hand, the
feed has newer posts. The gate for that keeps its state in memory: the feed is read at each start, and then four times
an hour.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from adapters.atproto.types import Post
from common.clock import parse_iso_or_none, span
from common.redact import LEAK, Redactor
from modules.runtime.control import Control
from modules.services.outbox.bodies import DirectMessageBody
from modules.services.outbox.policy import goes_first
from modules.services.outbox.types import Intent, ProposedAction, Verdict, Wait

_ASK_AGAIN_S = 1.0


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


@dataclass(slots=True)
class FeedPaceGate:
    """Keeps `cooldown_s` seconds between two posts on the feed; acts that go first do not wait."""

    cooldown_s: float
    newest: datetime | None = field(default=None, init=False)
    """When the newest post on the feed was created, as the post itself says; None while that is not known."""

    def note(self, own: Iterable[Post]) -> None:
        """Read the newest post from the SOUL's own feed. Replies are skipped, because they have a pace of their own."""
        made = (parse_iso_or_none(post.created_at) for post in own if post.reply is None)
        self.newest = max((moment for moment in made if moment is not None), default=None)

    def __call__(self, _connection: sqlite3.Connection, intent: Intent, now: datetime, /) -> Wait | None:
        if intent.kind != "post" or goes_first(intent) or self.newest is None or self.newest > now:
            return None
        left = self.cooldown_s - (now - self.newest).total_seconds()
        if left <= 0:
            return None
        return Wait(f"{span(self.cooldown_s)} after the newest post on its feed", left, ends=True)


class SecretScan:
    """A rule at admission: blocks an action that holds a secret, without naming it; no copy of the action is stored."""

    name = "secrets"

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> Sequence[Verdict]:
        leaks = self._redactor.finds_in([action.body.stored(), action.target])
        return [Verdict(self.name, "block", LEAK, withhold=True) if leaks else Verdict(self.name)]
