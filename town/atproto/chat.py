"""Direct messages: who may write to whom, the messages, and the log of events. No HTTP.

Bluesky's chat service is closed source. This imitates its lexicon and the rules that its clients reveal, without
groups. Everything is in memory.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from common.clock import Clock
from town.atproto.index import Json, XrpcError, invalid

CHAT_SERVICE = "did:web:api.bsky.chat#bsky_chat"
DECLARATION = "chat.bsky.actor.declaration"
LOG_PAGE = 100

Policy = Literal["all", "none", "following"]
Status = Literal["request", "accepted"]
LogKind = Literal[
    "logBeginConvo",
    "logAcceptConvo",
    "logLeaveConvo",
    "logMuteConvo",
    "logUnmuteConvo",
    "logCreateMessage",
    "logDeleteMessage",
    "logReadConvo",
]

_UNSOLICITED, _WINDOW, _PAUSE = 5, timedelta(minutes=1), timedelta(hours=6)
_REFUSALS = {
    "BlockedActor": "block between recipient and sender",
    "MessagesDisabled": "recipient has disabled incoming messages",
    "NotFollowedBySender": "recipient requires incoming messages to come from someone they follow",
}


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message. `extras` are its facets, embed and `replyTo`, as sent; `rev` orders all changes."""

    id: str
    rev: str
    sender: str
    text: str
    sent_at: datetime
    extras: Json = field(default_factory=dict)


@dataclass(slots=True)
class ChatMember:
    """The state of a conversation for one member; `read_to` is the id of the last message read."""

    status: Status
    muted: bool = False
    has_left: bool = False
    read_to: str = ""
    deleted: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Convo:
    """A conversation between two accounts."""

    id: str
    rev: str
    members: dict[str, ChatMember]
    messages: list[ChatMessage] = field(default_factory=list)

    def other(self, did: str) -> str:
        """Return the did of the other member."""
        return next(member for member in self.members if member != did)

    def unread(self, did: str) -> int:
        """Return how many messages of the other member came after the last one that was read."""
        read_to = self.members[did].read_to
        return sum(message.sender != did and message.id > read_to for message in self.messages)

    def message(self, message_id: str) -> ChatMessage | None:
        return next((message for message in self.messages if message.id == message_id), None)


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event in a conversation, as one member's log holds it."""

    kind: LogKind
    rev: str
    convo: Convo
    message: ChatMessage | None = None


class ChatService:
    """All conversations.

    Args:
        clock: the network's time.
        next_tid: returns ids and revisions that only grow.
        policy_of: returns from whom an account accepts messages.
        follows: whether the first account follows the second.
        blocks: whether the first account blocks the second.

    """

    def __init__(
        self,
        clock: Clock,
        next_tid: Callable[[], str],
        *,
        policy_of: Callable[[str], Policy],
        follows: Callable[[str, str], bool],
        blocks: Callable[[str, str], bool],
    ) -> None:
        self._clock = clock
        self._next = next_tid
        self._policy_of = policy_of
        self._follows = follows
        self._blocks = blocks
        self._convos: dict[str, Convo] = {}
        self._logs: dict[str, list[LogEvent]] = defaultdict(list)
        self._unsolicited: dict[str, list[datetime]] = defaultdict(list)
        self._paused: dict[str, datetime] = {}

    def convo(self, did: str, convo_id: str) -> Convo:
        """Return a conversation of this account. Raises `XrpcError` `InvalidConvo`."""
        found = self._convos.get(convo_id)
        if found is None or did not in found.members:
            raise XrpcError(400, "InvalidConvo", "Convo not found")
        return found

    def convos(self, did: str) -> list[Convo]:
        """Return the conversations that this account sees, latest change first."""
        seen = [c for c in self._convos.values() if did in c.members and not c.members[did].has_left]
        started = [c for c in seen if c.messages or next(iter(c.members)) == did]
        return sorted(started, key=lambda convo: convo.rev, reverse=True)

    def between(self, did: str, other: str) -> Convo | None:
        """Return the conversation between these two, if there is one."""
        return next((convo for convo in self._convos.values() if convo.members.keys() == {did, other}), None)

    def why_not(self, sender: str, recipient: str) -> XrpcError | None:
        """Return the refusal of a first message; None if it may be sent."""
        name = ""
        if self._blocks(sender, recipient) or self._blocks(recipient, sender):
            name = "BlockedActor"
        elif self._policy_of(recipient) == "none":
            name = "MessagesDisabled"
        elif self._policy_of(recipient) == "following" and not self._follows(recipient, sender):
            name = "NotFollowedBySender"
        return XrpcError(400, name, _REFUSALS[name]) if name else None

    def begin(self, did: str, other: str) -> Convo:
        """Return the conversation between these two, new if there is none. Raises `XrpcError` if it may not begin."""
        if convo := self.between(did, other):
            return convo
        if refusal := self.why_not(did, other):
            raise refusal
        convo_id = self._next()
        convo = Convo(convo_id, convo_id, {did: ChatMember("accepted"), other: ChatMember("request")})
        self._convos[convo_id] = convo
        self._log("logBeginConvo", convo, *convo.members)
        return convo

    def send(self, did: str, convo: Convo, text: str, extras: Json) -> ChatMessage:
        """Send a message, even if it repeats another. Answering a request accepts it. Raises `XrpcError`."""
        recipient = convo.other(did)
        if refusal := self.why_not(did, recipient):
            stands = refusal.name != "BlockedActor" and convo.members[recipient].status == "accepted"
            if not stands:
                raise XrpcError(400, "InvalidRequest", refusal.message)
        answers_to = (extras.get("replyTo") or {}).get("messageId")
        if answers_to and convo.message(answers_to) is None:
            raise invalid("Message replied to not found")
        self._check_pace(did, convo)
        self.accept(did, convo)
        for member in convo.members.values():
            member.has_left = False
        message_id = self._next()
        message = ChatMessage(message_id, message_id, did, text, self._clock.now(), extras)
        convo.messages.append(message)
        self._log("logCreateMessage", convo, *convo.members, message=message, rev=message_id)
        return message

    def accept(self, did: str, convo: Convo) -> str | None:
        """Accept a request; return the new revision, or None if it was already accepted."""
        if convo.members[did].status == "accepted":
            return None
        convo.members[did].status = "accepted"
        return self._log("logAcceptConvo", convo, did)

    def read(self, did: str, convo: Convo, message_id: str | None) -> bool:
        """Mark messages up to this one, or all, as read; return whether that changed anything. Raises `XrpcError`."""
        if message_id and convo.message(message_id) is None:
            raise invalid("Message not found")
        message = convo.message(message_id) if message_id else (convo.messages[-1] if convo.messages else None)
        member = convo.members[did]
        if message is None or message.id <= member.read_to:
            return False
        member.read_to = message.id
        self._log("logReadConvo", convo, did, message=message)
        return True

    def mute(self, did: str, convo: Convo, *, muted: bool) -> None:
        """Mute or unmute a conversation for this account."""
        convo.members[did].muted = muted
        self._log("logMuteConvo" if muted else "logUnmuteConvo", convo, did)

    def leave(self, did: str, convo: Convo) -> str:
        """Leave for this account only; the other's next message restores it as a request. Returns the revision."""
        member = convo.members[did]
        member.has_left, member.status = True, "request"
        member.deleted.update(message.id for message in convo.messages)
        return self._log("logLeaveConvo", convo, did)

    def delete_for_self(self, did: str, convo: Convo, message_id: str) -> ChatMessage:
        """Delete a message for this account only. Raises `XrpcError`."""
        message = convo.message(message_id)
        if message is None:
            raise invalid("Message not found")
        convo.members[did].deleted.add(message_id)
        self._log("logDeleteMessage", convo, did, message=message)
        return message

    def log(self, did: str, cursor: str | None) -> tuple[list[LogEvent], str]:
        """Return the events after `cursor`, oldest first, at most a page, and the cursor for the next call.

        Without a cursor: no events, and the current end of the log.
        """
        if cursor is None:
            return [], self._next()
        page = [event for event in self._logs[did] if event.rev > cursor][:LOG_PAGE]
        return page, page[-1].rev if page else cursor

    def _log(
        self, kind: LogKind, convo: Convo, *to: str, message: ChatMessage | None = None, rev: str | None = None
    ) -> str:
        convo.rev = rev or self._next()
        for did in to:
            self._logs[did].append(LogEvent(kind, convo.rev, convo, message))
        return convo.rev

    def _check_pace(self, did: str, convo: Convo) -> None:
        """Refuse an account for six hours after five messages a minute without an answer, as was observed."""
        now = self._clock.now()
        if any(message.sender != did for message in convo.messages):
            return
        if now < self._paused.get(did, now):
            raise _too_many()
        recent = [at for at in self._unsolicited[did] if now - at < _WINDOW]
        if len(recent) >= _UNSOLICITED:
            self._paused[did] = now + _PAUSE
            raise _too_many()
        self._unsolicited[did] = [*recent, now]


def policy_in(declaration: Mapping[str, object] | None) -> Policy:
    """Return from whom an account accepts messages, by its declaration record; by default from those it follows."""
    said = (declaration or {}).get("allowIncoming")
    if said == "all":
        return "all"
    return "none" if said == "none" else "following"


def _too_many() -> XrpcError:
    return XrpcError(429, "RateLimitExceeded", "Rate Limit Exceeded")
