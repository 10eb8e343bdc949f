"""When this life runs; nothing else. Each loop is a name, an interval, and one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from adapters.atproto.client import Atproto
from common.clock import local
from common.constants import MINUTE_MS, SECOND_MS, SESSION_EXPIRY_MARGIN_S
from common.errors import Fatal
from common.pace import Pace
from common.result import Err, ErrKind
from common.wording import counted
from modules.lives.bluesky.expression import ExpressionCycle
from modules.lives.bluesky.perceive import PostPerceiver
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.types import Loop, Outcome
from modules.services.outbox.account import ACCOUNT_REMEDY
from modules.services.own_feed.feed import OwnFeed
from modules.services.peers.own_identity import OwnIdentity
from modules.services.work.loop import WorkLoop

_LOGIN_REMEDY = "set AGENT_BLUESKY_PASSWORD in .env to an app password that is valid, and start it again"


def _at_once() -> bool:
    return True


@dataclass(slots=True)
class NotificationLoop(Loop):
    """Reads notifications while a slow model keeps the loop that answers busy: reading never waits for thinking."""

    name = "notifications"

    pace: Pace
    perceiver: PostPerceiver
    awareness: WorkLoop

    @property
    def interval_ms(self) -> float:
        return self.pace.awareness_ms

    async def run(self) -> Outcome:
        if not self.awareness.is_busy:
            return Outcome(ran=False, reason="they are read when it looks for posts to answer")
        read = await self.perceiver.read()
        if isinstance(read, Err):
            return Outcome(ran=False, reason=read.error)
        new = read.data.new
        return Outcome(ran=True, reason=f"{counted(new, 'new notification')} read")


@dataclass(slots=True)
class ExpressionLoop(Loop):
    """Looks whether a thought is due, once `ready` says that it is known when the last one was."""

    name = "expression-check"
    needs_idle = True

    pace: Pace
    expression: ExpressionCycle
    ready: Callable[[], bool] = _at_once

    @property
    def interval_ms(self) -> float:
        return self.pace.expression_check_ms

    async def run(self) -> Outcome:
        if not self.ready():
            wait_s = self.pace.atproto_spacing_ms / 1000
            return Outcome(ran=False, reason="its own feed is still to be read", next_in_s=wait_s)
        return await self.expression.run_if_due()


@dataclass(slots=True)
class SessionLoop(Loop):
    """Keeps the session fresh, well before it runs out; the adapter also recovers on its own.

    What fails is told once, until it goes well or fails in another way. An account that is not in use at its service
    ends the process. A look costs no request while the session is valid.
    """

    name = "session-refresh"
    interval_ms = 20 * SECOND_MS
    at_start = True
    renewed_before_ms: ClassVar[float] = 15 * MINUTE_MS

    atproto: Atproto
    journal: Journal
    _told: ErrKind | None = field(default=None, init=False)

    async def run(self) -> Outcome:
        margin = self.renewed_before_ms / SECOND_MS + 2 * SESSION_EXPIRY_MARGIN_S
        result = await self.atproto.ensure_session_or_reauth(margin_s=margin)
        if isinstance(result, Err):
            if result.kind == "fatal":
                raise Fatal(f"Bluesky: {result.error}", remedy=ACCOUNT_REMEDY)
            if result.kind != self._told:
                self._told = result.kind
                summary = f"The Bluesky session could not be renewed: {result.error}"
                remedy = _LOGIN_REMEDY if result.kind == "auth" else ""
                await self.journal.record(Entry("error", self.name, summary, line="error", reason=remedy))
            return Outcome(ran=False, reason=result.error)
        self._told = None
        if result.data != "valid":
            await self.journal.record(Entry("life", self.name, f"Bluesky session {result.data}", line="done"))
        return Outcome(ran=True, reason=result.data)


async def warm_up(
    *, feed: OwnFeed, identity: OwnIdentity, expression: ExpressionCycle, journal: Journal, timezone: str = ""
) -> None:
    """One look at our own feed before anything starts.

    It tells what we already said, whether our identity post stands, when we last spoke, and what repeats an older post.
    """
    read = await feed.read()
    if isinstance(read, Err):
        await journal.record(Entry("life", "start", f"Own feed could not be read: {read.error}", line="warn"))
        await expression.schedule()
        return
    own = read.data
    await identity.note_feed(own)
    top_level = [post.created_at for post in own if post.reply is None]
    due = await expression.schedule(max(top_level, default=None))
    summary = (
        f"Read {counted(len(own), 'recent post')} of its own; the next is due at {local(due, timezone):%Y-%m-%d %H:%M}"
    )
    await journal.record(Entry("life", "start", summary, line="mem"))
    if pruned := await feed.pruner.prune(own):
        summary = f"Deletes {counted(pruned, 'post')} of its own that only repeat older ones"
        await journal.record(Entry("life", "start", summary, line="info"))
