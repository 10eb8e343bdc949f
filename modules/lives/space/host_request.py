"""Follows a host request from the moment it is received until it is done, withdrawn or given up. Pure.

Each look at an open request makes it more urgent, at most once in five seconds: first a note, then CRITICAL, then its
assignee acts without the model (`modules/lives/space/speak.py`). Peers' claims and results count as well as our own
commitments; the same peer events may be passed again. Claims suspend a request for ten minutes at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

import regex

from adapters.space.types import DECLINES, HOST
from common.constants import MINUTE_MS, SPACE_CLAIM_TTL_MS
from modules.lives.space.request_parser import answers
from modules.lives.space.types import Escalation, HistoryEntry, HostRequest, OwnWork, PeerEvent

SPACE_CRITICAL_CYCLES = 2
SPACE_MAX_REOPENS = 2
SPACE_REPLAYED_REQUEST_MAX_AGE_MS = 10 * MINUTE_MS

FollowUp = Literal["none", "urge", "link", "wake_commitments"]
"""What follows if the host asks about a request: act now; link what was made; run what was committed to."""

CYCLE = timedelta(seconds=5)
_CLAIM = timedelta(milliseconds=SPACE_CLAIM_TTL_MS)
_LONGEST_REST = timedelta(minutes=10)
_REPLAYED = timedelta(milliseconds=SPACE_REPLAYED_REQUEST_MAX_AGE_MS)
_DONE = regex.compile(r"\s*Done\s*\p{Pd}\s", regex.IGNORECASE)


RequestEvent = Literal[
    "attempted",  # a try of our model for it was completed, whatever the result
    "rejected",  # our own try for it failed, by a check or by our own choice
    "forced",  # we acted on it without the model
    "committed",  # a commitment for it is queued, by us or a peer, or is done
    "abandoned",  # a commitment for it was given up
    "repo_asked",  # the host was asked for a repository
    "too_late",  # the host took it back, and our act for it cannot be stopped any more
    "declined",  # we have told the host that it will not be done
]
"""What happens to a request other than looks at it."""


@dataclass(frozen=True, slots=True)
class Looked:
    """A look at the room; see `advance_host_request`."""

    latest_action: HistoryEntry | None
    latest_host: HistoryEntry | None
    now: datetime
    own_commitments: OwnWork
    peer_events: tuple[PeerEvent, ...] = ()
    owner: str | None = None
    frozen: bool = False
    withdrawal: HistoryEntry | None = None


def next_request(state: HostRequest, event: Looked | RequestEvent) -> HostRequest:  # noqa: PLR0911 - one case each
    """Return the request after `event`. Pure, and the only place that changes a request."""
    match event:
        case Looked():
            return advance_host_request(
                state,
                event.latest_action,
                event.latest_host,
                event.now,
                event.own_commitments,
                event.peer_events,
                owner=event.owner,
                frozen=event.frozen,
                withdrawal=event.withdrawal,
            )
        case "attempted":
            return count_attempt(state)
        case "rejected":
            return count_rejection(state)
        case "forced":
            return replace(state, forced=state.forced + 1)
        case "committed":
            return committed(state)
        case "abandoned":
            return reopen(state)
        case "repo_asked":
            return replace(state, repo_asked=True)
        case "too_late":
            return replace(state, too_late=True)
        case "declined":
            return replace(state, given_up=True)


def is_open(state: HostRequest) -> bool:
    """Return whether something was asked for that nobody has committed to or delivered, and that is not given up."""
    return bool(state.content) and not state.fulfilled and not state.given_up


def is_claimed(state: HostRequest, now: datetime) -> bool:
    """Return whether a peer's claim on the request holds."""
    return state.claimed_until is not None and now < state.claimed_until


def is_withdrawn(state: HostRequest, withdrawal: HistoryEntry | None, action: HistoryEntry | None) -> bool:
    """Return whether the host's newest withdrawal came after the request and after its newest call to act."""
    if withdrawal is None or state.requested_at is None or (action and action.at > withdrawal.at):
        return False
    return bool(state.content) and withdrawal.at >= state.requested_at


def is_done_chat(content: str) -> bool:
    """Return whether a message is one by which an agent announces what it made: `Done — …`."""
    return _DONE.match(content) is not None


def content_of(state: HostRequest, action: HistoryEntry | None) -> str:
    """Return the text of the request after `action`, the host's newest call to act.

    An answer to an agent's question continues the open request. If none is open, question and answer make one.
    """
    if action is None or action.id == state.entry_id or (action.answers and is_open(state)):
        return state.content
    asked = action.answers
    return f"{asked.asker}: {asked.text}\n{HOST}: {action.content}" if asked else action.content


def assignee_of(state: HostRequest, action: HistoryEntry | None) -> str:
    """Return the agent that acts because the host answered its question; "" if an agent is elected."""
    if action is None or action.id == state.entry_id:
        return state.assignee
    return action.answers.asker if action.answers else ""


def escalation_level(state: HostRequest, now: datetime | None = None) -> Escalation:
    """Return how urgent the request is; with `now`, `none` while a peer's claim on it holds."""
    if not is_open(state) or not state.cycles or (now is not None and is_claimed(state, now)):
        return "none"
    return "critical" if state.cycles >= SPACE_CRITICAL_CYCLES else "info"


def follow_up(state: HostRequest, latest_host: HistoryEntry | None, own: OwnWork) -> FollowUp:
    """Return what the host's newest message calls for if it asks about the request, else `none`."""
    if not state.content or latest_host is None or latest_host.intent != "follow_up":
        return "none"
    if is_open(state):
        return "urge"
    if own.completed:
        return "link"
    return "wake_commitments" if own.live else "none"


def advance_host_request(  # noqa: PLR0917 - the order that all agents' authors know
    state: HostRequest,
    latest_action: HistoryEntry | None,
    latest_host: HistoryEntry | None,
    now: datetime,
    own_commitments: OwnWork,
    peer_events: Sequence[PeerEvent] = (),
    *,
    owner: str | None = None,
    frozen: bool = False,
    withdrawal: HistoryEntry | None = None,
) -> HostRequest:
    """Return the state after one more look.

    Args:
        state: the state before.
        latest_action: the host's newest message that asks for something to be done, if any.
        latest_host: the host's newest message.
        now: aware UTC, of the same clock as the messages' times.
        own_commitments: our commitments in this request's conversation.
        peer_events: the acts of peers, at least since the last look. For a replayed request, the whole record, with
            our own acts in an earlier process.
        owner: the assignee, who acts on it.
        frozen: whether this look does not count, because the assignee is typing.
        withdrawal: the host's newest message that takes a request back, if any.

    """
    state = _asked(state, latest_action, now, peer_events)
    if is_withdrawn(state, withdrawal, latest_action):
        state = HostRequest(entry_id=state.entry_id, requested_at=state.requested_at)
    if not state.content or state.given_up:
        return state
    state = _asked_about(state, latest_host, now, own_commitments, peer_events)
    if state.fulfilled:
        return state
    if own_commitments.live or own_commitments.completed:
        return committed(state)
    state = _with_peer_events(state, peer_events, owner)
    if state.fulfilled or frozen or is_claimed(state, now):
        return state
    if state.last_cycle_at is not None and now - state.last_cycle_at < CYCLE:
        return state
    return replace(state, cycles=state.cycles + 1, last_cycle_at=now)


def committed(state: HostRequest) -> HostRequest:
    """Return the state after a commitment for the request was queued, by us or a peer, or was done."""
    return replace(state, fulfilled=True, claimed_until=None)


def reopen(state: HostRequest) -> HostRequest:
    """Return the state after a commitment was given up: open again, twice at most; then the request is given up."""
    if not state.content or state.given_up:
        return state
    if state.reopened >= SPACE_MAX_REOPENS:
        return replace(state, given_up=True, claimed_until=None)
    return replace(state, fulfilled=False, attempts=0, reopened=state.reopened + 1, claimed_until=None)


def count_attempt(state: HostRequest) -> HostRequest:
    """Return the state after a completed try of our model for the request, whatever the result."""
    return replace(state, attempts=state.attempts + 1) if is_open(state) else state


def count_rejection(state: HostRequest) -> HostRequest:
    """Return the state after our own try for the request failed, by a check or by our own choice."""
    return replace(state, owner_rejections=state.owner_rejections + 1) if is_open(state) else state


def _asked(
    state: HostRequest, action: HistoryEntry | None, now: datetime, peer_events: Sequence[PeerEvent]
) -> HostRequest:
    """Return the state after a new request or a repetition, which is new if we had given up, and urgent if open."""
    if action is None or action.id == state.entry_id:
        return state
    if state.requested_at is not None and action.at < state.requested_at:
        return state
    content, assignee = content_of(state, action), assignee_of(state, action)
    if action.answers and is_open(state):
        return replace(state, entry_id=action.id, assignee=assignee, repo_asked=False, attempts=0, owner_rejections=0)
    if content == state.content and not state.given_up:
        state = replace(state, entry_id=action.id, repo_asked=False)
        return state if state.fulfilled or action.replayed else _pressed(state, now)
    done = action.replayed and _settled(action, now, peer_events)
    return HostRequest(content, action.id, action.at, fulfilled=done, assignee=assignee)


def _settled(action: HistoryEntry, now: datetime, peer_events: Sequence[PeerEvent]) -> bool:
    """Return whether a request from before we joined needs nobody: it is old, or somebody took it."""
    return now - action.at >= _REPLAYED or any(
        event.at > action.at and event.kind != "failure" for event in peer_events
    )


def _asked_about(
    state: HostRequest, latest: HistoryEntry | None, now: datetime, own: OwnWork, peer_events: Sequence[PeerEvent]
) -> HostRequest:
    if latest is None or latest.intent != "follow_up" or latest.replayed:
        return state
    if not state.fulfilled:
        return _pressed(state, now)
    ours = own.live or own.completed
    return state if ours or (not own.failed_last and _taken_care_of(state, now, peer_events)) else reopen(state)


def _taken_care_of(state: HostRequest, now: datetime, peer_events: Sequence[PeerEvent]) -> bool:
    """Return whether a peer has done it, or has a claim on it that is recent enough to be still followed up."""
    since = [event for event in peer_events if state.requested_at is None or event.at > state.requested_at]
    return any(
        event.kind in {"success", "done_chat"} or (event.kind == "claim" and now - event.at < _CLAIM) for event in since
    )


def _pressed(state: HostRequest, now: datetime) -> HostRequest:
    if state.cycles >= SPACE_CRITICAL_CYCLES:
        return state
    return replace(state, cycles=SPACE_CRITICAL_CYCLES, last_cycle_at=now)


def _with_peer_events(state: HostRequest, peer_events: Sequence[PeerEvent], owner: str | None) -> HostRequest:
    """Return the state after the acts of peers. A result counts only from the assignee, or from who claimed it."""
    at_it = {owner}
    for event in sorted(peer_events, key=lambda event: event.at):
        if state.requested_at is None or event.at <= state.requested_at:
            continue
        if event.action == DECLINES and event.name == owner:
            return replace(state, given_up=True)
        if event.kind == "done_chat" and event.name in at_it:
            return committed(state)
        if event.kind == "done_chat" or not answers(event.action, state.content, by_owner=event.name == owner):
            continue
        if event.kind == "success" and event.name in at_it:
            return committed(state)
        at_it |= {event.name} if event.kind == "claim" else set()
        until = min(event.at + _CLAIM, state.requested_at + _LONGEST_REST) if event.kind == "claim" else None
        state = replace(state, claimed_until=until)
    return state
