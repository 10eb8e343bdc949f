"""Builds the snapshot of a room at the moment of one check."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from adapters.github.types import Repo
from adapters.space.client import SpaceClient
from adapters.space.room_addressing import parse_addressed
from adapters.space.types import HOST
from common.clock import Clock, parse_iso_or_none
from common.constants import DAY_MS, MINUTE_MS
from common.text.host_intent import classify_host_intent_structural
from common.version import __version__
from modules.lives.space.host_request import (
    SPACE_REPLAYED_REQUEST_MAX_AGE_MS,
    Looked,
    assignee_of,
    content_of,
    escalation_level,
    follow_up,
    is_claimed,
    is_open,
)
from modules.lives.space.perceive import SKEW, Classified, RoomConversation
from modules.lives.space.policy import (
    action_owner,
    conversation_mode,
    count_since_host,
    required_capability,
    role_budget,
    role_now,
    saturation_signal,
    saturation_threshold,
)
from modules.lives.space.request_parser import conversation_thread_uri, host_line, named_repos, parse_request
from modules.lives.space.snapshot import RoomContents, RoomSnapshot
from modules.lives.space.types import (
    HistoryEntry,
    HostLine,
    HostRequest,
    IntentClassifier,
    Meaning,
    OwnCommitments,
    OwnWork,
)
from modules.services.commitments.naming import LIVE, QueuedCommitment, claim_target, extract_fulfillment_url
from modules.services.commitments.policy import concerns_room, ended_at, is_of_room
from modules.services.commitments.queue import CommitmentQueue

_SHOWN_FULFILLED_MS = 30 * MINUTE_MS
_OLD = timedelta(milliseconds=SPACE_REPLAYED_REQUEST_MAX_AGE_MS)
_ASKED_AT_ONCE = 8
_REMEMBERED = timedelta(milliseconds=DAY_MS)


@dataclass(frozen=True, slots=True)
class SnapshotBuilder:
    """Builds the snapshots of one room.

    Attributes:
        social_only: whether this SOUL has no GitHub.
        is_trusted_room: returns whether the owner named the room; one that we only found is not told of work elsewhere.
        watched: returns the workspaces that are watched, `owner/name`.
        default_repo: returns the workspace that is meant if nobody names one; None if there is not exactly one.
        timezone: IANA name of the SOUL's time zone; "" for the machine's own.

    """

    client: SpaceClient
    talk: RoomConversation
    intents: IntentClassifier
    queue: CommitmentQueue
    clock: Clock
    social_only: bool
    is_trusted_room: Callable[[], bool]
    watched: Callable[[], Sequence[str]]
    default_repo: Callable[[], Repo | None]
    timezone: str = ""

    def room(self) -> RoomContents:
        """Return what the room shows now."""
        return RoomContents(
            peers=self.client.peers(),
            typing=tuple(self.client.view.typing()),
            claims=self.client.view.claims.live(),
            identities=self.client.view.identities(),
            reflections=self.client.view.reflections(),
            workspaces=self.client.view.workspace_states(),
        )

    async def understand(self) -> None:
        """Classify each message of the host by the lines before it; old replayed ones by their form alone.

        Those since our oldest promise may take it back, and so do not count as old.
        If the model could not be asked, the meaning is a guess, and the next look asks again. Of many messages at once
        it is asked only about the newest, so that no host can make a look expensive.
        """
        now, host = self.clock.now(), self.talk.state.host_messages
        until = min(now - _OLD, self.promised_at() or now)
        past = [entry for entry in host if entry.replayed and entry.at <= until]
        recent = [entry for entry in host if not (entry.replayed and entry.at <= until)]
        fresh = [entry for entry in recent if self._is_unsettled(entry)]
        after = [entry for entry in fresh if is_open(self.talk.state.request) and _asks_after_it(entry.content)]
        fresh = [entry for entry in fresh if entry not in after]
        fresh, crowd = fresh[-_ASKED_AT_ONCE:], fresh[:-_ASKED_AT_ONCE]
        unread = [entry for entry in (*past, *crowd) if entry.intent is None]
        meant = {one.id: Meaning(classify_host_intent_structural(one.content).intent) for one in unread}
        meant |= {entry.id: Meaning("follow_up") for entry in after}
        lines = {entry.id: self._line(entry) for entry in fresh}
        found = await self.intents.classify_host_messages(list(lines.values()))
        meant |= dict(zip(lines, found, strict=True))
        no = [entry for entry in fresh if meant[entry.id].intent == "withdrawal"]
        self.talk.handle(Classified(meant | {entry.id: Meaning("discussion") for entry in no}))
        for entry in no:
            self.talk.handle(Classified({entry.id: await self._taken_back(entry, lines[entry.id])}))

    async def _taken_back(self, entry: HistoryEntry, line: HostLine) -> Meaning:
        """Return what a withdrawal takes back; the model is asked which, if more was promised than one thing.

        What was still to be done when it was said counts, so that the answer is the same after a restart. Until the
        model has answered, nothing is taken back.
        """
        talk, call = self.talk.state, self._next_call()
        before = [one for one in talk.host_messages if one.at <= entry.at]
        if call is None or call not in before:
            call = next((one for one in reversed(before) if one.intent == "action_request"), None)
        content = content_of(talk.request, call)
        thread = conversation_thread_uri(HOST, content)
        gone_before = {commitment_id for one in before for commitment_id in one.takes_back}
        later = {conversation_thread_uri(HOST, one.content) for one in talk.host_messages if one.at > entry.at}
        owed = [
            one
            for one in self._promised()
            if _was_owed(one, entry) and one.id not in gone_before and one.source_thread_uri not in later
        ]
        latest = [one for one in owed if one.source_thread_uri == thread]
        earlier = [one for one in owed if one.source_thread_uri != thread]
        if not earlier and len(latest) <= 1:
            return Meaning("withdrawal", takes_back=tuple(one.id for one in latest))
        asked = [f"{one.type} {claim_target(one)}: {one.description}" for one in (*earlier, *latest)]
        asked += [content] if content and not latest else []
        places = set(await self.intents.taken_back(line, asked) or ())
        chosen = [one for place, one in enumerate((*earlier, *latest)) if place in places]
        gone = tuple(one.id for one in chosen if one.status != "completed")
        is_request_gone = bool(content) and places.issuperset(range(len(earlier), len(asked)))
        if not gone and not is_request_gone:
            return Meaning("discussion")
        return Meaning("withdrawal", takes_back=gone, spares_request=not is_request_gone)

    def _promised(self) -> list[QueuedCommitment]:
        """Return what we promised in this room, oldest first."""
        room_id = self.client.room_id
        return [one for one in self.queue.all() if one.source == "space" and is_of_room(one, room_id)]

    def promised_at(self) -> datetime | None:
        """Return a moment before our oldest live promise in this room and the request for it; None if there is none."""
        live = (one for one in self._promised() if one.status in LIVE)
        made = next(filter(None, (parse_iso_or_none(one.created_at) for one in live)), None)
        return made - _OLD if made else None

    def _is_unsettled(self, entry: HistoryEntry) -> bool:
        """Return whether a meaning is unknown or a guess; a follow-up or withdrawal keeps its meaning."""
        if entry.intent is None:
            return True
        return entry.intent not in {"follow_up", "withdrawal"} and not self.intents.is_settled(self._line(entry))

    def _line(self, entry: HistoryEntry) -> HostLine:
        return host_line(self.talk.state.history, entry)

    def advance(self) -> list[QueuedCommitment]:
        """Advance the host's request by one look; return the live commitments that the host took back."""
        now, talk = self.clock.now(), self.talk.state
        action = self._next_call()
        content = content_of(talk.request, action)
        owner = self._owner(content, assignee_of(talk.request, action))
        no = [entry for entry in talk.host_messages if entry.intent == "withdrawal"]
        self.talk.handle(
            Looked(
                action,
                talk.latest_host(),
                now,
                self._work(content, action.at if action else talk.request.requested_at),
                talk.peer_events,
                owner=owner,
                frozen=owner in self.client.view.typing(),
                withdrawal=next((entry for entry in reversed(no) if not entry.spares_request), None),
            )
        )
        after = self.talk.state.request
        is_gone = bool(content) and not after.content and (action is None or after.entry_id == action.id)
        thread = conversation_thread_uri(HOST, content) if is_gone else None
        named = {commitment_id for entry in no for commitment_id in entry.takes_back}
        owed = [one for one in self._promised() if one.status in LIVE]
        return [one for one in owed if one.id in named or one.source_thread_uri == thread]

    def _next_call(self) -> HistoryEntry | None:
        """Return the host's newest call to act; if it addresses a peer, rather the newest for us that is not met."""
        talk = self.talk.state
        calls = [entry for entry in talk.host_messages if entry.intent == "action_request"]
        if not calls or calls[-1].replayed or not self._addressed(calls[-1]) or self._is_ours(calls[-1]):
            return calls[-1] if calls else None
        seen = next((place for place, one in enumerate(calls) if one.id == talk.request.entry_id), -1)
        left = calls[seen if seen >= 0 and is_open(talk.request) else seen + 1 :]
        since = talk.request.requested_at
        ours = (one for one in reversed(left) if not one.replayed and (since is None or one.at >= since))
        return next(filter(self._is_ours, ours), calls[-1])

    def _is_ours(self, action: HistoryEntry) -> bool:
        """Return whether it is ours to act on that call."""
        request = self.talk.state.request
        return self.owns(HostRequest(content_of(request, action), assignee=assignee_of(request, action)))

    def build_snapshot(
        self, batch: Sequence[HistoryEntry], *, opens: bool = False, needs_repo: bool = False
    ) -> RoomSnapshot:
        """Return the snapshot of the room as it is now; nothing is advanced."""
        now, talk, room = self.clock.now(), self.talk.state, self.room()
        latest, request = talk.latest_host(), talk.request
        new = {entry.id for entry in batch}
        is_new = latest is not None and latest.id in new
        open_now = is_open(request)
        meant = request if request.content else self._settled(now)
        work = self._work(meant.content, meant.requested_at)
        mode = conversation_mode(latest.intent if latest else None)
        acts = self._owner(request.content, request.assignee) if request.content else None
        owner = acts if open_now else None
        is_owner = owner == talk.me
        role = role_now(talk.me, request.content, mode, room.peers, is_owner=acts == talk.me)
        threshold = saturation_threshold(len(room.peers) + 1, mode)
        counts = count_since_host(talk.history, talk.me)
        workspaces = tuple(self.watched()) if self.is_trusted_room() else ()
        only = self.default_repo() if workspaces else None
        named = named_repos(talk.history, workspaces)
        in_doubt = len(named) > 1
        workspace = next(
            (one for one in workspaces if named == (one,)), only.full_name if only and not in_doubt else None
        )
        repo = None if in_doubt else next(iter(named), talk.repo or workspace or room.shared_workspace)
        return RoomSnapshot(
            now=now,
            me=talk.me,
            batch=tuple(entry for entry in talk.history if entry.id in new),
            history=talk.history,
            timezone=self.timezone,
            room=room,
            own_commitments=self._own_commitments(work),
            request=request,
            asked=parse_request(request.content),
            is_open=open_now,
            is_claimed=is_claimed(request, now),
            mode=mode,
            owner=owner,
            is_owner=is_owner,
            role=role,
            counts=counts,
            saturation=threshold,
            budget=role_budget(role, mode),
            signal=saturation_signal(counts, threshold),
            escalation=escalation_level(request, now),
            follow_up=follow_up(meant, latest if is_new else None, work),
            addressed=self._addressed(latest) if is_new else (),
            repo=repo,
            workspace=workspace,
            workspaces=workspaces,
            pinned=talk.pinned,
            refusals=talk.refusals,
            peer_events=talk.peer_events,
            opens=opens,
            needs_repo=needs_repo,
            social_only=self.social_only,
            thread_uri=self._thread(request.content, latest),
        )

    def owns(self, request: HostRequest) -> bool:
        """Return whether it is ours to act on that request."""
        return bool(request.content) and self._owner(request.content, request.assignee) == self.talk.state.me

    def _owner(self, content: str, assignee: str) -> str | None:
        """Return who acts on such a request; None if it needs GitHub and nobody here has it."""
        peers = self.client.peers()
        need = required_capability(content, [peer.version for peer in peers.values()], __version__)
        able = {name: peer.capabilities for name, peer in peers.items()}
        owner = action_owner(
            self.talk.state.me,
            peers,
            able,
            social_only=self.social_only,
            content=content,
            need=need,
            assignee=assignee,
        )
        return None if owner == self.talk.state.me and self.social_only and need == "github" else owner

    def _work(self, content: str, since: datetime | None) -> OwnWork:
        """Return the counts of our commitments to that request, and their results since it was made."""
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
        """Return the request from before the pause: nobody acts on it again, but the host may ask about it."""
        settled = self.talk.state.settled
        asked_at = settled.requested_at
        if asked_at is None or now - asked_at > _REMEMBERED:
            return HostRequest()
        return replace(settled, fulfilled=True)

    def _own_commitments(self, work: OwnWork) -> OwnCommitments:
        concerns = partial(concerns_room, is_trusted=self.is_trusted_room())
        fulfilled = self.queue.get_recently_completed_commitments(_SHOWN_FULFILLED_MS)
        return OwnCommitments(tuple(filter(concerns, self.queue.live())), tuple(filter(concerns, fulfilled)), work)

    def _addressed(self, latest: HistoryEntry | None) -> tuple[str, ...]:
        """Return whom the host's message addresses, according to the room, else by its text."""
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
    ended = ended_at(commitment)
    return since is None or (ended is not None and ended >= since)


def _was_owed(commitment: QueuedCommitment, no: HistoryEntry) -> bool:
    """Return whether a commitment was still to be fulfilled when the host said `no`.

    A message that is read again after a restart may be what ended the commitment.
    """
    made, ended = parse_iso_or_none(commitment.created_at), ended_at(commitment)
    is_ended_by_it = no.replayed and commitment.status == "abandoned"
    is_owed = commitment.status in LIVE or is_ended_by_it or (ended is not None and ended >= no.at)
    return is_owed and made is not None and made - SKEW <= no.at


def _asks_after_it(content: str) -> bool:
    """Return whether the words ask about what is still to be done: "give me the summary" then wants no second one."""
    return classify_host_intent_structural(content, request_open=True).intent == "follow_up"
