"""Reads the log of all conversations, and stores messages by the owner and by others who may get an answer.

Everybody is known by DID; the service says who sent a message. Groups are ignored: a message counts only in our
conversation of two with its sender. Of messages by anybody else, only those that may be a request about the sender's
own data are stored, a few per sender at a time; the rest is left unread. To the service, our answer to such a request
accepts the conversation, but that changes nothing here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from cachetools import TTLCache

from adapters.atproto.client import Atproto
from adapters.atproto.types import (
    Actor,
    Conversation,
    ConversationStatus,
    DirectMessage,
    MessageEvent,
    MessageEventPage,
    NotAllowedErr,
)
from adapters.web.spacing import Urgency, urgency
from common.clock import Clock
from common.errors import Transient
from common.result import GONE, ApiResult, Err, Ok, answering
from common.settings import MessagesFrom
from common.text.rights_requests import may_be_rights_request
from modules.lives.messages.policy import is_too_old, is_welcome
from modules.lives.messages.state import MessageState
from modules.lives.messages.types import Reach
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.inbox.messages import Talk
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.rights.requests import ForgottenPeople
from modules.services.work.types import Perceiver

Said = list[tuple[str, DirectMessage]]
"""Messages, each with the id of its conversation."""

LOOP = "messages"
ACCESS_REMEDY = (
    "Make another app password in Bluesky's settings, allow it access to direct messages, and put it into .env as"
    " AGENT_BLUESKY_PASSWORD; or set SOUL_DIRECT_MESSAGES=off"
)
_MOST_PAGES = 10
_MOST_UNREAD = 50
_MOST_LEFT_ALONE = 1_000
_LEFT_ALONE_S = 600.0
_MOST_REQUESTS = 5
_FAILS_FOR_S, _FAILING_KEPT_S, _TOLD = 1_800.0, 86_400.0, float("-inf")

T = TypeVar("T")


@dataclass(kw_only=True)
class MessagePerceiver(Perceiver):
    """Stores new messages. `messages_from` says who besides the owner may get an answer.

    If the app password has no access to direct messages, this is reported once, and no further request is made.
    """

    atproto: Atproto
    state: MessageState
    etiquette: Etiquette
    forgotten: ForgottenPeople
    clock: Clock
    messages_from: MessagesFrom
    journal: Journal
    _is_off: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._left_alone = TTLCache[str, Talk | None](_MOST_LEFT_ALONE, _LEFT_ALONE_S, timer=self.clock.monotonic)
        # NOTE(self): by conversation and what is read of it, since when that fails; `_TOLD` once it is left alone.
        self._failing = TTLCache[tuple[str, str], float](_MOST_LEFT_ALONE, _FAILING_KEPT_S, timer=self.clock.monotonic)

    async def perceive(self) -> None:
        if self._is_off:
            return
        with urgency(Urgency.AT_ONCE):  # the owner's commands are among them
            looked = await self.look()
        if not isinstance(looked, NotAllowedErr):
            if isinstance(looked, Err):  # reported once, and the SOUL does not sleep before it read them
                raise Transient(f"Direct messages could not be read: {looked.error}")
            return
        self._is_off = True
        summary = "Direct messages are off: the app password has no access to them"
        data = {"error": looked.error}
        await self.journal.record(Entry("life", LOOP, summary, line="warn", reason=ACCESS_REMEDY, data=data))

    async def look(self) -> ApiResult[None]:
        """Store what came since the last look. What could not be read is read by the next one."""
        cursor = await self.state.cursor()
        return await (self._go_on(cursor) if cursor else self._begin())

    @answering
    async def _begin(self) -> ApiResult[None]:
        """Take the first look: start at the present end of the log, and store what the owner wrote that is unread."""
        log = (await self.atproto.get_message_log()).or_raise()
        # NOTE(self): an owner who accepts no messages from us may still write; then their conversation becomes known.
        talk, said = (await self._owners_talk()).or_else(None, *GONE), list[tuple[str, DirectMessage]]()
        if talk and talk.unread_count:
            page = (await self.atproto.get_messages(talk.id, min(talk.unread_count, _MOST_UNREAD))).or_raise()
            said = [(talk.id, one) for one in page.messages]
        await self._take(said, log)
        return Ok(None)

    @answering
    async def _go_on(self, cursor: str) -> ApiResult[None]:
        problems: list[Err] = []
        for _ in range(_MOST_PAGES):
            log = (await self.atproto.get_message_log(cursor)).or_raise()
            # NOTE(self): stored at once, as reading a conversation of somebody else may take long, or fail.
            await self._take(await self._of_owner(log.events), replace(log, cursor=None))
            said = await self._of_others(log.events, problems)
            await self._take(said, replace(log, cursor=None) if problems else log)
            if not log.events or not log.cursor or log.cursor == cursor:
                break
            cursor = log.cursor
        return problems[0] if problems else Ok(None)

    async def _of_owner(self, events: tuple[MessageEvent, ...]) -> Said:
        """Return what the owner wrote in their conversation with us alone."""
        said = [
            (event.conversation_id, event.message)
            for event in events
            if event.kind == "message" and event.message and self.state.me.is_owner(event.message.sender_did)
        ]
        known = await self.state.talk_with(self.state.me.owner_did)
        if all(known and talk_id == known.id for talk_id, _ in said):
            return said
        talk = (await self._owners_talk()).or_else(None, *GONE)
        return [(talk_id, message) for talk_id, message in said if talk and talk_id == talk.id]

    async def _of_others(self, events: tuple[MessageEvent, ...], problems: list[Err]) -> Said:
        """Return what others wrote, each in a conversation with us alone, as far as it may be read.

        Adds to `problems` why a conversation cannot be read now.
        """
        if self.messages_from == "owner":
            return []
        unread: Said = []
        for talk_id in dict.fromkeys(event.conversation_id for event in events if event.kind == "accepted"):
            taken: Said = await self._as_read(talk_id, "unread", await self._taken_on(talk_id), [], problems)
            unread += taken
        new = [
            (event.conversation_id, event.message) for event in events if event.message and self._is_of_others(event)
        ]
        reach: dict[str, Reach] = {}
        for talk_id, message in (*unread, *new):
            if talk_id not in reach:
                looked = await self._look_at(talk_id, message.sender_did)
                reach[talk_id] = await self._as_read(talk_id, "reach", looked, "none", problems)
        said = {message.id: (talk_id, message) for talk_id, message in (*unread, *new)}
        return [one for one in said.values() if reach[one[0]] == "all"] + await self._requests_in(said, reach)

    async def _requests_in(self, said: Mapping[str, tuple[str, DirectMessage]], reach: Mapping[str, Reach]) -> Said:
        """Return possible data requests by people of whom nothing else is read; of each at most as many as may wait."""
        found: Said = []
        rooms: dict[str, int] = {}
        for talk_id, message in said.values():
            talk = self._left_alone.get(talk_id) if reach[talk_id] == "requests" else None
            if talk is None or not may_be_rights_request(message.text):
                continue
            if talk_id not in rooms:
                await self._keep(talk)
                rooms[talk_id] = _MOST_REQUESTS - await self.state.waiting_in(talk_id)
            if rooms[talk_id] > 0:
                rooms[talk_id] -= 1
                found.append((talk_id, message))
        return found

    async def _as_read(self, talk_id: str, what: str, read: ApiResult[T], default: T, problems: list[Err]) -> T:
        """Return what was read of a conversation, or `default`; one that fails for long is left alone, told once."""
        if isinstance(read, Ok):
            self._failing.pop((talk_id, what), None)
            return read.data
        since, now = self._failing.setdefault((talk_id, what), self.clock.monotonic()), self.clock.monotonic()
        if isinstance(read, NotAllowedErr) or now - since < _FAILS_FOR_S:
            problems.append(read)
            return default
        self._left_alone[talk_id] = None
        if since != _TOLD:
            self._failing[talk_id, what] = _TOLD
            summary = f"Direct messages in one conversation are left alone: it cannot be read ({talk_id})"
            await self.journal.record(Entry("error", LOOP, summary, line="warn", reason=read.error))
        return default

    @answering
    async def _taken_on(self, talk_id: str) -> ApiResult[Said]:
        """Return the unread messages of a conversation that was accepted since, for example in the app.

        A conversation that only our answer to a data request accepted is left out.
        """
        if await self.state.answered_requests_only(talk_id):
            return Ok([])
        self._left_alone.pop(talk_id, None)
        talk = (await self.atproto.get_conversation(talk_id)).or_else(None, *GONE)
        if talk is None or talk.is_group or not talk.unread_count:
            return Ok([])
        page = (await self.atproto.get_messages(talk_id, min(talk.unread_count, _MOST_UNREAD))).or_raise()
        ours = {self.state.me.owner_did, self.atproto.did}
        return Ok([(talk_id, one) for one in reversed(page.messages) if one.sender_did not in ours])

    @answering
    async def _look_at(self, talk_id: str, did: str) -> ApiResult[Reach]:
        """Return which of this account's messages in a conversation are read; if all are, store the conversation."""
        if talk_id in self._left_alone:
            return Ok("requests" if self._left_alone[talk_id] else "none")
        if (talk := (await self.atproto.get_conversation(talk_id)).or_else(None, *GONE)) is None:
            return Ok("none")
        other = next((member for member in talk.members if member.did == did), None)
        alone = other is not None and not talk.is_group and {one.did for one in talk.members} == {did, self.atproto.did}
        if other is None or not alone or talk.is_muted or other.barrier:
            self._left_alone[talk_id] = None
            return Ok("none")
        status, is_followed = await self._status_of(talk, other), False
        if status == "request" and not self.etiquette.is_peer(other):
            profile = (await self.atproto.get_profile(did)).or_else(None, *GONE)
            is_followed = profile is not None and profile.is_followed
        welcome = is_welcome(self.messages_from, status, is_peer=self.etiquette.is_peer(other), is_followed=is_followed)
        kept = Talk(talk.id, did, "accepted" if welcome else "request", other.handle, other.is_bot)
        if not welcome:
            self._left_alone[talk_id] = kept
            return Ok("requests")
        await self._keep(kept)
        return Ok("all")

    async def _status_of(self, talk: Conversation, other: Actor) -> ConversationStatus:
        """Return whether the conversation was accepted; data requests and what was before a forget do not count."""
        if await self.forgotten.is_forgotten(other.did) or await self.state.answered_requests_only(talk.id):
            return "request"
        return talk.status

    async def _keep(self, talk: Talk) -> None:
        """Store a conversation; if its author is forgotten, only for a day."""
        await self.state.keep_talk(talk)
        if await self.forgotten.is_forgotten(talk.did):
            self.forgotten.sweep(talk.did)

    @answering
    async def _owners_talk(self) -> ApiResult[Conversation]:
        found = (await self.atproto.get_conversation_with(self.state.me.owner_did)).or_raise()
        others = {member.did for member in found.members} - {self.atproto.did}
        if found.is_group or others != {self.state.me.owner_did}:
            return Err("it is not a conversation with the owner alone", kind="invalid")
        await self.state.keep_talk(Talk(found.id, self.state.me.owner_did, found.status))
        return Ok(found)

    async def _take(self, found: Said, log: MessageEventPage) -> None:
        """Store what the owner and others wrote, and how far the log was read; mark it as read."""
        now, own_did = self.clock.now(), self.atproto.did
        written = [(talk_id, one) for talk_id, one in found if one.sender_did != own_did and one.text.strip()]
        said = [(talk_id, one) for talk_id, one in written if not is_too_old(one.sent_at, now)]
        new = await self.state.take_in(said, log.cursor)
        for talk_id in {talk_id for talk_id, _ in said if talk_id not in self._left_alone} if new else ():
            await self.atproto.mark_read(talk_id)

    def _is_of_others(self, event: MessageEvent) -> bool:
        sender = event.message.sender_did if event.kind == "message" and event.message else ""
        return bool(sender) and sender not in {self.state.me.owner_did, self.atproto.did}
