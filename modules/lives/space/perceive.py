"""Takes in what the room said and did since the last look: messages into the conversation, peer events beside it.

The room's record comes back at each join; what in it we did in a former life counts as anybody's. Who came in as a
member is no host, whatever name or id a careless server let it take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cachetools import FIFOCache

from adapters.space.client import SpaceClient
from adapters.space.types import HOST, ActionDone, Claimed, History, Joined, LogEntry, Said, SpaceEvent, is_host
from common.clock import Clock, parse_iso_or_none
from common.constants import MINUTE_MS
from common.json_lines import json_object
from modules.lives.space.commitment_filter import same_target
from modules.lives.space.host_request import is_done_chat, is_open
from modules.lives.space.request_parser import conversation_thread_uri
from modules.lives.space.state import Entered, LeftRoom, MessagesArrived, Paused, RoomConversation, moment, new_entries
from modules.lives.space.transcript import shown
from modules.lives.space.types import HistoryEntry, PeerEvent
from modules.services.commitments.naming import claim_target
from modules.services.commitments.policy import concerns_room
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.types import LIVE
from modules.services.peers.room_members import PeerRelationships

_STILL_NEW = timedelta(milliseconds=MINUTE_MS)
_WAITS_FOR_A_MIND = timedelta(milliseconds=30 * MINUTE_MS)
_SKEW = timedelta(milliseconds=MINUTE_MS)
_PULL_REQUEST = re.compile(r"/pull/\d+/?$")
_LOST = "a peer was first"
_GUESTS_KEPT = 2_000


@dataclass(slots=True)
class RoomPerceiver:
    """Reads what came from the room, and brings the state of the conversation up to date.

    A commitment whose claim was lost is withdrawn from `queue`; a room that was only found (`is_trusted_room`) has no
    say in what was made elsewhere. `on_reset` is called when another conversation begins.
    """

    client: SpaceClient
    talk: RoomConversation
    relationships: PeerRelationships
    queue: CommitmentQueue
    clock: Clock
    is_trusted_room: Callable[[], bool]
    on_reset: Callable[[], None] = lambda: None
    _joins: int = field(default=0, init=False)
    _guests: FIFOCache[str, None] = field(default_factory=lambda: FIFOCache(_GUESTS_KEPT), init=False)

    async def look(self) -> list[HistoryEntry]:
        """What others said since the last look and is still new, oldest first."""
        now = self.clock.now()
        self._enter(now)
        if self.talk.state.is_idle(now) and not (self._at_work() or self._awaits_delivery(now)):
            self.talk.handle(Paused())
            self.on_reset()
        events = self.client.take_events()
        self._note_guests(events)
        own = [event for event in events if isinstance(event, Said) and event.name == self.talk.state.me]
        received = [self._unmasked(one) for one in (*self.client.get_and_flush_messages(), *own)]
        said = sorted(received, key=lambda one: one.timestamp)
        me, new = self.talk.state.me, new_entries(self.talk.state, said, now)
        peer_events = tuple(peer_events_in(events, me, self.client.agent_id, now))
        self.talk.handle(MessagesArrived(new, now, peer_events, dict(_issues(events, me))))
        if names := [entry.name for entry in new if not (entry.is_host or entry.is_me or entry.replayed)]:
            self.relationships.record_space_interaction(names)
            self._note_strengths(names)
        for action, target in self.client.lost_claims():
            await self.queue.withdraw_claimed(action, target, _LOST)
        for peer_event in peer_events:
            if peer_event.kind == "success":
                await self._leave_to(peer_event)
        return self._still_new(new, now)

    def _note_strengths(self, names: Iterable[str]) -> None:
        """Remember what those who spoke say of themselves that they are good at."""
        identities = self.client.identities()
        for name in dict.fromkeys(names):
            if (identity := identities.get(name)) is not None and identity.expertise:
                self.relationships.record_complementary_strengths(name, identity.expertise)

    async def _leave_to(self, peer_event: PeerEvent) -> None:
        """Withdraw our commitments to what a peer has made: nobody knew of them, or our try failed."""
        for one in self.queue.live():
            made = parse_iso_or_none(one.created_at)
            is_theirs = one.source == "space" and concerns_room(one, is_trusted=self.is_trusted_room())
            is_that = one.type == peer_event.action and same_target(claim_target(one), peer_event.target)
            if is_theirs and is_that and (made is None or made - _SKEW <= peer_event.at):
                await self.queue.withdraw(one.id, f"{peer_event.name} has made it")

    def _at_work(self) -> bool:
        """Whether a commitment to the host's request is still open; until it ends, the request is not forgotten."""
        request = self.talk.state.request.content
        thread = conversation_thread_uri(HOST, request)
        made = self.queue.in_conversation(thread, self.client.room_id) if request else ()
        return any(one.status in LIVE for one in made)

    def _awaits_delivery(self, now: datetime) -> bool:
        """Whether the host's request is open and nobody came to it, as when no model answers for a while."""
        request = self.talk.state.request
        young = request.requested_at is not None and now - request.requested_at < _WAITS_FOR_A_MIND
        return is_open(request) and not request.attempts and request.claimed_until is None and young

    def _enter(self, now: datetime) -> None:
        """Note that we joined since the last look; another room begins another conversation."""
        if self.client.joins == self._joins:
            return
        if self._joins and self.client.fresh_room:
            self.talk.handle(LeftRoom(now))
            self.on_reset()
        self._joins = self.client.joins
        self.talk.handle(Entered(self.client.name, now))

    def _note_guests(self, events: Iterable[SpaceEvent]) -> None:
        """Whose ids came in as members', now or by the room's record; those who are present are forgotten last."""
        for event in events:
            if isinstance(event, Joined):
                self._guests[event.id] = None
            elif isinstance(event, History):
                self._guests.update((entry.agent_id, None) for entry in event.entries if entry.type == "join")
        self._guests.update((presence.id, None) for presence in self.client.peers().values())

    def _unmasked(self, said: Said) -> Said:
        """A member who passes as the host, as what it is."""
        if not (said.by_host and said.id and said.id in self._guests):
            return said
        return replace(said, name=shown(said.name) if said.name == HOST else said.name, id="", addressed=())

    def _still_new(self, new: Sequence[HistoryEntry], now: datetime) -> list[HistoryEntry]:
        """Without our own words, and of what was replayed only what nobody had the time to answer."""
        spoke = max((entry.at for entry in self.talk.state.own_messages), default=None)
        return [
            entry
            for entry in new
            if not entry.is_me
            and (not entry.replayed or (now - entry.at < _STILL_NEW and (spoke is None or entry.at > spoke)))
        ]


def peer_events_in(events: Iterable[SpaceEvent], me: str, my_id: str, now: datetime) -> Iterator[PeerEvent]:
    """What was done that counts for a request; ours only where the record tells of a former life."""
    for event in events:
        if isinstance(event, History):
            for entry in event.entries:
                if entry.agent_id != my_id and not is_host(entry.agent_name, entry.agent_id):
                    yield from _recorded(entry, now)
        elif isinstance(event, Claimed | ActionDone | Said) and event.name != me:
            yield from _done(event, moment(event.timestamp, now))


def _done(event: Claimed | ActionDone | Said, at: datetime) -> Iterator[PeerEvent]:
    match event:
        case Claimed():
            yield PeerEvent("claim", event.name, at, event.action, event.target)
        case ActionDone():
            yield PeerEvent("success" if event.success else "failure", event.name, at, event.action, event.target)
        case Said() if not event.by_host and is_done_chat(event.content):
            yield PeerEvent("done_chat", event.name, at)


def _recorded(entry: LogEntry, now: datetime) -> Iterator[PeerEvent]:
    at = moment(entry.timestamp, now)
    if entry.type == "chat" and is_done_chat(entry.content):
        yield PeerEvent("done_chat", entry.agent_name, at)
    elif entry.type == "claim":
        action, _, target = entry.content.partition(":")
        yield PeerEvent("claim", entry.agent_name, at, action, target)
    elif entry.type == "action_result":
        result = json_object(entry.content) or {}
        action, target = str(result.get("action", "")), str(result.get("target", ""))
        yield PeerEvent("success" if result.get("success") is True else "failure", entry.agent_name, at, action, target)


def _issues(events: Iterable[SpaceEvent], me: str) -> Iterator[tuple[str, str]]:
    """Links to issues and pull requests that peers made, and who made each."""
    for event in events:
        if not isinstance(event, ActionDone) or not event.success or event.name == me:
            continue
        if event.action == "create_issue" or _PULL_REQUEST.search(event.link):
            yield event.link, event.name
