"""Sends direct messages, each at most once, as far as a service that accepts no keys allows.

Before a second try it looks for these words in the conversation since the newest message that was known when this one
was proposed, without messages that other intents made. One that is found is the one that was sent. More than one cannot
be told apart: then nothing is sent again, and the owner is told.
"""

from __future__ import annotations

from adapters.atproto.client import Atproto
from adapters.atproto.types import DirectMessage
from common.result import ApiResult, Err, Ok, answering
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.inbox.messages import message_name
from modules.services.outbox import store
from modules.services.outbox.bodies import DirectMessageBody
from modules.services.outbox.types import AmbiguousErr, Intent, Sent

_UNREADABLE = Err("it holds no direct message", "invalid")
_AMBIGUOUS = (
    "{count} messages with these words stand in the conversation, and it is not known which of them this one is"
)


class DirectMessageSender:
    """Sends intents of the kind `direct_message`."""

    def __init__(self, atproto: Atproto, database: Database, journal: Journal, *, owner_did: str) -> None:
        self._atproto = atproto
        self._database = database
        self._journal = journal
        self._owner_did = owner_did
        self._told: set[str] = set()

    @answering
    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Send the message."""
        body = intent.body
        if not isinstance(body, DirectMessageBody):
            return _UNREADABLE
        sent = await self._atproto.send_message(body.conversation_id, body.text, to_owner=body.to == self._owner_did)
        return Ok(_sent(body, sent.or_raise()))

    @answering
    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Return the message of an earlier try that arrived; an `AmbiguousErr` if more than one may be it."""
        found = (await self._standing(intent)).or_raise()
        if len(found) > 1:
            return AmbiguousErr(_AMBIGUOUS.format(count=len(found)), "invalid")
        return Ok(found[0] if found else None)

    @answering
    async def close_duplicates(self, intent: Intent) -> ApiResult[int]:
        """Tell the owner about a message that may have arrived twice; return 0, as no message can be deleted."""
        found = (await self._standing(intent)).or_raise()
        if len(found) > 1 and intent.id not in self._told:
            self._told.add(intent.id)
            reason = _AMBIGUOUS.format(count=len(found))
            summary = "A direct message may have arrived twice"
            await self._journal.record(Entry("error", "outbox", summary, "warn", reason, intent_id=intent.id))
        return Ok(0)

    @answering
    async def _standing(self, intent: Intent) -> ApiResult[tuple[Sent, ...]]:
        body = intent.body
        if not isinstance(body, DirectMessageBody):
            return _UNREADABLE
        found = (await self._atproto.find_sent_messages(body.conversation_id, body.text, body.after_rev)).or_raise()
        others = await self._database.run(
            lambda connection: store.results_in_conversation(connection, body.conversation_id, without=intent.id)
        )
        standing = (_sent(body, message) for message in found)
        return Ok(tuple(sent for sent in standing if sent.uri not in others))


def _sent(body: DirectMessageBody, message: DirectMessage) -> Sent:
    return Sent(message_name(body.conversation_id, message.id), "message", message.rev)
