"""Puts together how the room stands at a check: who owns the host's request, how far it is, and how much was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from adapters.space.client import SpaceClient
from adapters.space.room_addressing import parse_addressed
from adapters.space.types import HOST
from common.clock import Clock, parse_iso_or_none
from common.constants import DAY_MS, MINUTE_MS
from common.text.host_intent import classify_host_intent_structural
from common.version import __version__
from modules.lives.space.classifiers import IntentClassifier
from modules.lives.space.host_request import (
    SPACE_REPLAYED_REQUEST_MAX_AGE_MS,
    Looked,
    escalation_level,
    follow_up,
    is_frozen,
    is_open,
)
from modules.lives.space.policy import (
    action_owner,
    conversation_mode,
    count_since_host,
    required_capability,
    role_now,
    saturation_signal,
    saturation_threshold,
)
from modules.lives.space.request_parser import conversation_thread_uri
from modules.lives.space.snapshot import OwnCommitments, Room, RoomSnapshot
from modules.lives.space.state import Classified, Conversation
from modules.lives.space.types import HistoryEntry, HostRequest, Intent, OwnWork
from modules.services.commitments.naming import extract_fulfillment_url
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.types import LIVE, QueuedCommitment

_SHOWN_FULFILLED_MS = 30 * MINUTE_MS
_OLD = timedelta(milliseconds=SPACE_REPLAYED_REQUEST_MAX_AGE_MS)
_ASKED_AT_ONCE = 8
_REMEMBERED = timedelta(milliseconds=DAY_MS)


@dataclass(frozen=True, slots=True)
class SnapshotBuilder:
    """Surveys one room.

    Attributes:
        client: our place in it.
        talk: what we keep in mind of it; its request moves on here.
        intents: say what the host's words mean.
        queue: our commitments.
        clock: tells when.
        social_only: whether this life has no GitHub.

    """

    client: SpaceClient
    talk: Conversation
    intents: IntentClassifier
    queue: CommitmentQueue
    clock: Clock
    social_only: bool

    def room(self) -> Room:
        """What the room shows just now."""
        return Room(
            peers=self.client.peers(),
            typing=tuple(self.client.typing()),
            claims=self.client.claims(),
            identities=self.client.identities(),
            reflections=self.client.reflections(),
            workspaces=self.client.workspace_states(),
        )

    async def understand(self) -> None:
        """Say of each message of the host what it means; what is long past is read by its form alone.

        Where nobody could be asked, the meaning is a guess, and the next look asks again. Of many at once the newest
        are asked about, so that no host can make one look cost more than a few words.
        """
        now, host = self.clock.now(), self.talk.state.host_messages
        past = [entry for entry in host if entry.replayed and now - entry.at >= _OLD]
        recent = [entry for entry in host if not (entry.replayed and now - entry.at >= _OLD)]
        fresh = [entry for entry in recent if self._is_unsettled(entry)]
        after = [entry for entry in fresh if is_open(self.talk.state.request) and _asks_after_it(entry.content)]
        fresh = [entry for entry in fresh if entry not in after]
        fresh, crowd = fresh[-_ASKED_AT_ONCE:], fresh[:-_ASKED_AT_ONCE]
        unread = [entry for entry in (*past, *crowd) if entry.intent is None]
        meant: dict[str, Intent] = {one.id: classify_host_intent_structural(one.content).intent for one in unread}
        meant |= {entry.id: "follow_up" for entry in after}
        found = await self.intents.classify_host_messages([entry.content for entry in fresh])
        meant |= {entry.id: intent for entry, intent in zip(fresh, found, strict=True)}
        self.talk.handle(Classified(meant))

    def _is_unsettled(self, entry: HistoryEntry) -> bool:
        """Whether its meaning is unknown or was a guess; a question after an open request stays what it was."""
        if entry.intent is None:
            return True
        return entry.intent != "follow_up" and self.intents.get_cached_intent(entry.content) is None

    def advance(self) -> None:
        """Let the host's request move on by one look."""
        now, talk = self.clock.now(), self.talk.state
        action = talk.latest_host(intent="action_request")
        content = action.content if action else talk.request.content
        owner = self._owner(content)
        self.talk.handle(
            Looked(
                action,
                talk.latest_host(),
                now,
                self._work(content, action.at if action else talk.request.requested_at),
                talk.peer_events,
                owner=owner,
                frozen=is_frozen(own_call=False, typing=self.client.typing(), owner=owner),
            )
        )

    def build_snapshot(
        self, batch: Sequence[HistoryEntry], *, opens: bool = False, needs_repo: bool = False
    ) -> RoomSnapshot:
        """How it stands now; nothing moves on."""
        now, talk, room = self.clock.now(), self.talk.state, self.room()
        latest, request = talk.latest_host(), talk.request
        new = {entry.id for entry in batch}
        is_new = latest is not None and latest.id in new
        open_now = is_open(request)
        meant = request if request.content else self._settled(now)
        work = self._work(meant.content, meant.requested_at)
        mode = conversation_mode(latest.intent if latest else None)
        acts = self._owner(request.content) if request.content else None
        owner = acts if open_now else None
        is_owner = owner == talk.me
        threshold = saturation_threshold(len(room.peers) + 1, mode)
        counts = count_since_host(talk.history, talk.me)
        return RoomSnapshot(
            now=now,
            me=talk.me,
            batch=tuple(entry for entry in talk.history if entry.id in new),
            history=talk.history,
            room=room,
            own_commitments=self._own_commitments(work),
            request=request,
            is_open=open_now,
            mode=mode,
            owner=owner,
            is_owner=is_owner,
            role=role_now(talk.me, request.content, mode, room.peers, is_owner=acts == talk.me),
            counts=counts,
            saturation=threshold,
            signal=saturation_signal(counts, threshold),
            escalation=escalation_level(request, now),
            follow_up=follow_up(meant, latest if is_new else None, work),
            addressed=self._addressed(latest) if is_new else (),
            repo=talk.repo,
            pinned=talk.pinned,
            points=talk.points,
            peer_events=talk.peer_events,
            opens=opens,
            needs_repo=needs_repo,
            social_only=self.social_only,
            thread_uri=self._thread(request.content, latest),
        )

    def owns(self, request: HostRequest) -> bool:
        """Whether it is ours to act on that request."""
        return bool(request.content) and self._owner(request.content) == self.talk.state.me

    def _owner(self, content: str) -> str | None:
        """Who acts on such a request; None where it needs a GitHub that nobody here has."""
        peers = self.client.peers()
        need = required_capability(content, [peer.version for peer in peers.values()], __version__)
        able = {name: peer.capabilities for name, peer in peers.items()}
        owner = action_owner(self.talk.state.me, peers, able, social_only=self.social_only, content=content, need=need)
        return None if owner == self.talk.state.me and self.social_only and need == "github" else owner

    def _work(self, content: str, since: datetime | None) -> OwnWork:
        """What we promised for that request, and what came of it since it was made."""
        if not content:
            return OwnWork()
        made = self.queue.in_conversation(conversation_thread_uri(HOST, content), self.client.room_id)
        done = [one for one in made if one.status == "completed" and _after(one, since)]
        links = (extract_fulfillment_url(one.type, one.result) for one in done)
        return OwnWork(
            live=sum(one.status in LIVE for one in made),
            completed=len(done),
            failed_last=bool(made) and made[-1].status in {"failed", "abandoned"},
            links=tuple(link for link in links if link),
        )

    def _settled(self, now: datetime) -> HostRequest:
        """The request before the pause: nobody acts on it again, but the host may ask what became of it."""
        settled = self.talk.state.settled
        asked_at = settled.requested_at
        if asked_at is None or now - asked_at > _REMEMBERED:
            return HostRequest()
        return replace(settled, fulfilled=True)

    def _own_commitments(self, work: OwnWork) -> OwnCommitments:
        fulfilled = self.queue.get_recently_completed_commitments(_SHOWN_FULFILLED_MS)
        return OwnCommitments(tuple(self.queue.live()), tuple(fulfilled), work)

    def _addressed(self, latest: HistoryEntry | None) -> tuple[str, ...]:
        """Whom the host's words name: by the room's word, else by their own."""
        if latest is None:
            return ()
        names = (self.talk.state.me, *self.client.peers())
        return latest.addressed or tuple(parse_addressed(latest.content, names))

    def _thread(self, request: str, latest: HistoryEntry | None) -> str:
        if request:
            return conversation_thread_uri(HOST, request)
        return (
            conversation_thread_uri(HOST, latest.content) if latest else conversation_thread_uri(self.talk.state.me, "")
        )


def _after(commitment: QueuedCommitment, since: datetime | None) -> bool:
    ended = parse_iso_or_none(commitment.last_attempt_at) or parse_iso_or_none(commitment.created_at)
    return since is None or (ended is not None and ended >= since)


def _asks_after_it(content: str) -> bool:
    """Whether the words ask after what is still to be done: "give me the summary" then wants no second one."""
    return classify_host_intent_structural(content, request_open=True).intent == "follow_up"
