"""Sends the owner direct messages that are not replies, such as the end of acts that they ordered in a message.

Each order is a row of work, so its end is told once, across restarts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.atproto.messages import MESSAGE_MAX_GRAPHEMES
from common.clock import Clock
from common.text.graphemes import truncate_graphemes
from modules.lives.messages.policy import quiet_until
from modules.lives.messages.state import MessageState
from modules.services.inbox.messages import ReceivedMessage
from modules.services.outbox.bodies import DirectMessageBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction, Submitted
from modules.services.work.table import WorkTable
from modules.services.work.types import HELD, Disposition, Handler, NewWork, WorkItem

KIND = "order"
_UNDER_WAY = frozenset({"held", "pending", "sending"})
_MOST_LINES = 10
_CUT_CHARS = 2
_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class OwnerNotices:
    """Sends direct messages of the program to the owner, in the conversation with them."""

    state: MessageState
    outbox: Outbox

    async def send(
        self, text: str, cause_id: str, *, drafts: Sequence[str] = (), forgotten: Sequence[str] = ()
    ) -> Submitted | None:
        """Propose a message with these fields of its body; return None if no conversation with the owner is known."""
        talk = await self.state.talk_with(self.state.me.owner_did)
        if talk is None:
            return None
        shown = truncate_graphemes(text, MESSAGE_MAX_GRAPHEMES - _CUT_CHARS)
        body = DirectMessageBody(
            conversation_id=talk.id,
            to=self.state.me.owner_did,
            text=shown if shown == text else f"{shown} …",
            after_rev=await self.state.newest_rev(talk.id),
            drafts=tuple(drafts),
            forgotten=tuple(forgotten),
            is_notice=True,
        )
        return await self.outbox.submit(ProposedAction(body, cause_id=cause_id, urgent=True))


@dataclass(frozen=True, slots=True)
class Orders:
    """Stores orders, so that the owner is told how they ended."""

    work: WorkTable
    outbox: Outbox

    async def keep(self, message: ReceivedMessage, cause: str) -> None:
        """Store the order in a message if acts with its `cause` were queued.

        An act that was sent meanwhile counts too: the answer was written before that.
        """
        acts = [one.id for one in await self.outbox.accepted(cause) if one.kind != "direct_message"]
        if acts:
            await self.work.add(NewWork(KIND, message.name, {"acts": acts[::-1]}))


@dataclass(kw_only=True)
class OrderHandler(Handler):
    """Sends one message for each order, once all its acts were sent or failed, and outside of quiet hours."""

    kind = KIND
    is_public = False
    pause_s = _MINUTE_S
    tells = True

    notices: OwnerNotices
    outbox: Outbox
    clock: Clock
    timezone: str
    quiet_hours: tuple[int, int] | None

    async def handle(self, item: WorkItem) -> Disposition:
        found = [await self.outbox.get(one) for one in item.payload["acts"]]
        acts: list[Intent] = [one for one in found if one is not None]
        if states := _UNDER_WAY & {one.state for one in acts}:
            code = HELD if HELD in states else "under-way"
            return Disposition("later", code, "acts of the order have not left yet")
        if quiet_until(self.clock.now(), self.quiet_hours, self.timezone):
            return Disposition("later", "quiet", "it is told after the quiet hours")
        told = await self.outbox.ends([one for one in acts if not one.is_taken_back])
        if not told:
            return Disposition("silent", "rejected", "it was taken back or replaced, or its traces were deleted")
        more = [f"and {len(told) - _MOST_LINES} more"] if len(told) > _MOST_LINES else []
        submitted = await self.notices.send("\n".join((*told[:_MOST_LINES], *more)), item.cause_id)
        return Disposition("told", "ended", intent_id=submitted.intent.id if submitted else None)
