"""Announces a fulfilled commitment once, to those to whom it was made, where it was made.

In a room it is one line in a form that other members read. On Bluesky it is a reply below the reply that held the
commitment (or below the news of another one that it held), in the SOUL's own words. Each is an intent with a target
of its own: a crash makes none of them twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from adapters.atproto.records import parse_at_uri
from common.clock import Clock
from common.errors import Fatal, SoulError
from modules.runtime.events import Publish, discard
from modules.runtime.scheduler.attention import Attention
from modules.services.commitments.acts import announcement_target, origin
from modules.services.commitments.events import CommitmentsReady
from modules.services.commitments.naming import extract_fulfillment_url
from modules.services.commitments.texts import done_line
from modules.services.commitments.types import Progress, QueuedCommitment
from modules.services.commitments.writer import CommitmentWriter
from modules.services.outbox.bodies import RecordRef, ReplyBody, SpaceChatBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction
from modules.services.voice_phrases.phrases import FORMS
from modules.services.voice_phrases.store import Phrase

_LOOP = "commitment-fulfillment"
_LOOK_AGAIN, _HELD_AGAIN = timedelta(minutes=1), timedelta(minutes=15)


@dataclass(slots=True)
class Announcer:
    """Tells it.

    Attributes:
        outbox: the only way out.
        clock: the time.
        phrase: returns operational texts.
        writer: finds words for Bluesky; without it nothing is told there.
        attention: held while it thinks; one mind does one thing at a time.
        publish: receives `CommitmentsReady` when news that found no attention may have it.
        where: the room in which these words of ours were said, for what must be told there and nowhere else.

    """

    outbox: Outbox
    clock: Clock
    phrase: Phrase
    writer: CommitmentWriter | None = None
    attention: Attention = field(default_factory=Attention)
    publish: Publish = discard
    where: Callable[[str], str] | None = None

    async def announce(self, commitment: QueuedCommitment, result: Mapping[str, Any]) -> Progress:
        """Hand the news to the outbox, unless it has it already.

        Of what is `done`, the reason says why it was not told. What `waits` was not tried; `later` asks for a new try.
        """
        url = extract_fulfillment_url(commitment.type, result)
        if commitment.source == "space":
            return await self._in_room(commitment, url)
        if not url or not commitment.source_thread_uri.startswith("at://"):
            return Progress("done", "there is no link, or no thread to tell it in")
        if commitment.type == "post_bluesky":
            return Progress("done", "the post stands where they are")
        return await self._on_bluesky(commitment, url)

    async def _in_room(self, commitment: QueuedCommitment, url: str) -> Progress:
        target = announcement_target(commitment.id)
        known = await self.outbox.standing("space_chat", target)
        if known.intent and _settled([known.intent]):
            return Progress("done")
        body = SpaceChatBody(**origin(commitment), text=done_line(commitment, url))
        if self.where is not None:
            said = commitment.source_reply_text
            room_id = commitment.params.room_id
            body = body.model_copy(update={"room": self.where(said), "said": said, "room_id": room_id})
        cause = commitment.source_thread_uri
        return await self._submit(ProposedAction(body, target, cause_id=cause, urgent=True))

    async def _on_bluesky(self, commitment: QueuedCommitment, url: str) -> Progress:
        ours = await self._commitment_post(commitment)
        if ours is None or self.writer is None:
            return Progress("done", "the reply that made the commitment is gone")
        below = await self._below(ours, commitment)
        if isinstance(below, Progress):
            return below
        if not self.attention.free:
            # NOTE(self): a step that waited here for a slow model would hold up all other commitments.
            self.attention.when_free(_LOOP, lambda: self.publish(CommitmentsReady()))
            return Progress("waits", f"busy with {self.attention.mode}")
        try:
            async with self.attention.take(_LOOP):
                text = await self.writer.tell_kept(commitment, url) or self._plain(commitment, url)
        except Fatal:
            raise
        except SoulError as error:
            return Progress("later", str(error))
        parent = RecordRef(uri=below.result_uri or "", cid=below.made("record"))
        root = ours.body.root if isinstance(ours.body, ReplyBody) else parent
        at = parse_at_uri(commitment.source_thread_uri)
        asker = at.repo if at else ""
        body = ReplyBody(text=text, parent=parent, root=root, commitment_id=commitment.id, told_to=asker)
        return await self._submit(ProposedAction(body, cause_id=commitment.source_thread_uri))

    async def _below(self, ours: Intent, commitment: QueuedCommitment) -> Intent | Progress:
        """Return the latest of what we said below our reply; or that it is told there, or waits for other words there.

        One reply may hold several commitments, and each post is answered once: each news stands below the one before.
        """
        while True:
            rows = await self.outbox.by_target("reply", ours.result_uri or "")
            if _settled([row for row in rows if _tells_of(row, commitment)]):
                return Progress("done")
            other = next((row for row in rows if row.state in ACTIVE_STATES), None)
            if other is None:
                return ours
            if other.state != "done":
                wait = self.clock.real(_HELD_AGAIN if other.state == "held" else _LOOK_AGAIN)
                reason, again = "other words of ours below that reply have not left yet", self.clock.now() + wait
                return Progress("waits", reason, not_before=again)
            ours = other

    def _plain(self, commitment: QueuedCommitment, url: str) -> str:
        """The words for it where the model finds none."""
        named = f"fulfillment.{commitment.type}"
        return self.phrase(named if named in FORMS else "fulfillment.default", url=url)

    async def _submit(self, action: ProposedAction) -> Progress:
        submitted = await self.outbox.submit(action)
        if submitted.advice.code == "later":
            return Progress("later", submitted.reason, not_before=submitted.advice.not_before)
        return Progress("done", "" if submitted.accepted else submitted.reason)

    async def _commitment_post(self, commitment: QueuedCommitment) -> Intent | None:
        """Our own reply to the post that the commitment answered."""
        ours = (await self.outbox.standing("reply", commitment.source_thread_uri)).active
        return ours if ours and ours.state == "done" and ours.result_uri and ours.made("record") else None


def _tells_of(row: Intent, commitment: QueuedCommitment) -> bool:
    return isinstance(row.body, ReplyBody) and row.body.commitment_id == commitment.id


def _settled(rows: Sequence[Intent]) -> bool:
    """Whether the news was admitted once, or refused by the owner; what a rule refused may be proposed again."""
    return any(row.state != "blocked" or row.rejected for row in rows)
