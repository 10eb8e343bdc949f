"""Reads the log of all conversations, and takes in what the owner wrote.

The owner is known by DID, as the service tells who sent a message. Groups are left alone: a message counts only in our
conversation of two with its sender. What others write is left unread.
"""

from __future__ import annotations

from adapters.atproto.client import Atproto
from adapters.atproto.types import Conversation, DirectMessage, MessageEvent, MessageEventPage
from common.clock import Clock
from common.result import ApiResult, Err, Ok
from modules.lives.messages.policy import is_too_old
from modules.lives.messages.state import MessageState
from modules.lives.messages.types import Perceived
from modules.services.inbox.messages import Talk

_MOST_PAGES = 10
_MOST_UNREAD = 50


class MessagePerceiver:
    """Looks at what is new."""

    def __init__(self, *, atproto: Atproto, state: MessageState, clock: Clock, owner_did: str) -> None:
        self._atproto = atproto
        self._state = state
        self._clock = clock
        self._owner_did = owner_did

    async def look(self) -> ApiResult[Perceived]:
        """Take in what came since the last look. What could not be read is read by the next one."""
        cursor = await self._state.cursor()
        return await (self._go_on(cursor) if cursor else self._begin())

    async def _begin(self) -> ApiResult[Perceived]:
        """The first look: from where the log stands now, and what the owner wrote before and was not read."""
        log = await self._atproto.get_message_log()
        if isinstance(log, Err):
            return log
        talk = await self._owners_talk()
        if isinstance(talk, Err):
            # NOTE(self): who takes no messages from us may still write to us; then their conversation becomes known.
            return talk if talk.kind == "transient" else Ok(await self._taken([], log.data))
        unread: tuple[DirectMessage, ...] = ()
        if talk.data.unread_count:
            page = await self._atproto.get_messages(talk.data.id, min(talk.data.unread_count, _MOST_UNREAD))
            if isinstance(page, Err):
                return page
            unread = page.data.messages
        return Ok(await self._taken([(talk.data.id, one) for one in unread], log.data))

    async def _go_on(self, cursor: str) -> ApiResult[Perceived]:
        new = of_others = 0
        for _ in range(_MOST_PAGES):
            log = await self._atproto.get_message_log(cursor)
            if isinstance(log, Err):
                return log
            found = await self._of_owner(log.data.events)
            if isinstance(found, Err):
                return found
            perceived = await self._taken(found.data, log.data)
            new, of_others = new + perceived.new, of_others + perceived.of_others
            if not log.data.events or not log.data.cursor or log.data.cursor == cursor:
                break
            cursor = log.data.cursor
        return Ok(Perceived(new, of_others))

    async def _of_owner(self, events: tuple[MessageEvent, ...]) -> ApiResult[list[tuple[str, DirectMessage]]]:
        """What the owner wrote, in the conversation with us alone."""
        said = [
            (event.conversation_id, event.message)
            for event in events
            if event.kind == "message" and event.message and event.message.sender_did == self._owner_did
        ]
        known = await self._state.talk_with(self._owner_did)
        if all(known and talk_id == known.id for talk_id, _ in said):
            return Ok(said)
        talk = await self._owners_talk()
        if isinstance(talk, Err):
            return talk if talk.kind == "transient" else Ok([])
        return Ok([(talk_id, message) for talk_id, message in said if talk_id == talk.data.id])

    async def _owners_talk(self) -> ApiResult[Conversation]:
        found = await self._atproto.get_conversation_with(self._owner_did)
        if isinstance(found, Err):
            return found
        others = {member.did for member in found.data.members} - {self._atproto.did}
        if found.data.is_group or others != {self._owner_did}:
            return Err("it is not a conversation with the owner alone", kind="invalid")
        await self._state.keep_talk(Talk(found.data.id, self._owner_did, found.data.status))
        return found

    async def _taken(self, found: list[tuple[str, DirectMessage]], log: MessageEventPage) -> Perceived:
        now = self._clock.now()
        said = [
            (talk_id, one)
            for talk_id, one in found
            if one.sender_did == self._owner_did and one.text.strip() and not is_too_old(one.sent_at, now)
        ]
        new = await self._state.take_in(said, log.cursor)
        for talk_id in {talk_id for talk_id, _ in said} if new else ():
            await self._atproto.mark_read(talk_id)
        return Perceived(new, sum(self._is_of_others(event) for event in log.events))

    def _is_of_others(self, event: MessageEvent) -> bool:
        sender = event.message.sender_did if event.kind == "message" and event.message else ""
        return bool(sender) and sender not in {self._owner_did, self._atproto.did}
