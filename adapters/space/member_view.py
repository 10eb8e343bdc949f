"""A member's view of its room: members, typing, identities, reflections, states, workspaces and claims.

Built from the room's events, and lost with the process; the room sends it again at each join. It is bounded, because a
room may send anything.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final

from cachetools import FIFOCache, TTLCache

from adapters.space.member_cycle import MemberName
from adapters.space.types import (
    SPACE_WORKSPACE_STATE_TTL_MS,
    ActionDone,
    Claimed,
    History,
    Identified,
    IdentitySummary,
    Joined,
    Left,
    Presence,
    PresenceList,
    Reflected,
    Said,
    SpaceEvent,
    Typing,
    WorkspaceProgress,
)
from common.clock import Clock
from common.constants import SECOND_MS, SPACE_CLAIM_TTL_MS

CLAIM_TTL_S: Final = SPACE_CLAIM_TTL_MS / SECOND_MS
SOMEBODY: Final = "another agent"
"""The holder of a claim that we lost, if the error names no member that we know."""

_ANSWER_WITHIN_S = 10.0
_MOST_CLAIMS = 1_000

Key = tuple[str, str]


class MemberClaims:
    """The claims of peers and of `me`."""

    def __init__(self, me: MemberName, clock: Clock) -> None:
        self._me = me
        self._clock = clock
        self._peers = TTLCache[Key, Claimed](_MOST_CLAIMS, CLAIM_TTL_S, timer=clock.monotonic)
        self._asked: deque[tuple[Key, float]] = deque(maxlen=_MOST_CLAIMS)
        self._lost = FIFOCache[Key, None](_MOST_CLAIMS)

    def asked(self, action: str, target: str) -> None:
        """Record that a claim or renewal of ours is being sent; an earlier refusal of it is forgotten."""
        self._asked.append(((action, target), self._clock.monotonic()))
        self._lost.pop((action, target), None)

    def claimed(self, claim: Claimed) -> None:
        """Record a claim that the room broadcast, of a peer or our own."""
        key = (claim.action, claim.target)
        if claim.name == self._me.current:
            self._answered(key)
            self._peers.pop(key, None)
            return
        self._peers[key] = claim

    def done(self, result: ActionDone) -> None:
        """Record a result that was broadcast, which ends the claim on it."""
        self._peers.pop((result.action, result.target), None)

    def left(self, name: str) -> None:
        """Drop the claims of a member that left."""
        for key in [key for key, claim in self._peers.items() if claim.name == name]:
            self._peers.pop(key, None)

    def conflict(self, message: str, names: Iterable[str], at: str) -> Key | None:
        """Record that the room refused a claim; return the claim, if one is pending. `names`: the possible holders."""
        now = self._clock.monotonic()
        waiting = [key for key, since in self._asked if now - since <= _ANSWER_WITHIN_S]
        named = [key for key in waiting if key[1] in message]
        key = next(iter((*(key for key in named if key[0] in message), *named, *waiting)), None)
        if key is None:
            return None
        self._answered(key)
        self._lost[key] = None
        if key not in self._peers:
            holder = next((name for name in sorted(names, key=len, reverse=True) if name in message), SOMEBODY)
            self.claimed(Claimed(holder, "", *key, at))
        return key

    def holder(self, action: str, target: str) -> str | None:
        """Return the peer that holds a claim; None if none does."""
        held = self._peers.get((action, target))
        return held.name if held else None

    def live(self) -> tuple[Claimed, ...]:
        """Return the live claims of peers, oldest first."""
        return tuple(self._peers.values())

    @property
    def lost(self) -> set[Key]:
        """Our claims that the room refused because another member held them, until we claim them again."""
        return set(self._lost)

    def _answered(self, key: Key) -> None:
        for waiting in self._asked:
            if waiting[0] == key:
                self._asked.remove(waiting)
                return


TYPING_S: Final = 10.0
_WORKSPACE_STATE_S = SPACE_WORKSPACE_STATE_TTL_MS / SECOND_MS
_KEPT = 1_000


class RoomView:
    """The room as seen by `me`, whose own events are left out."""

    def __init__(self, me: MemberName, clock: Clock) -> None:
        self._me = me
        self._present = FIFOCache[str, Presence](_KEPT)
        self._typing = TTLCache[str, None](_KEPT, TYPING_S, timer=clock.monotonic)
        self._identities = FIFOCache[str, IdentitySummary](_KEPT)
        self._reflections = FIFOCache[str, Reflected](_KEPT)
        self._workspaces = TTLCache[str, WorkspaceProgress](_KEPT, _WORKSPACE_STATE_S, timer=clock.monotonic)
        self.claims = MemberClaims(me, clock)

    def apply(self, event: SpaceEvent) -> None:
        """Apply an event of the room."""
        if read := self._readers.get(type(event)):
            read(self, event)

    def cut_off(self) -> None:
        """Record that the connection was lost, so that it is no longer known who is present."""
        self._present.clear()
        self._typing.clear()

    def peers(self) -> dict[str, Presence]:
        """Return the other members by name, in the order in which they joined."""
        return {name: presence for name, presence in self._present.items() if name != self._me.current}

    def typing(self) -> list[str]:
        """Return the members that sent `typing` within the last 10 s and no message since."""
        return list(self._typing)

    def identities(self) -> dict[str, IdentitySummary]:
        return dict(self._identities)

    def reflections(self) -> dict[str, Reflected]:
        return dict(self._reflections)

    def workspace_states(self) -> dict[str, WorkspaceProgress]:
        """Return the latest report for each workspace within a day."""
        return dict(self._workspaces.items())

    def _told(self) -> tuple[MutableMapping[str, Any], ...]:
        """Return the mappings by member name, besides that of the presence."""
        return self._typing, self._identities, self._reflections

    def _on_list(self, event: PresenceList) -> None:
        self._present.clear()
        self._present.update((agent.name, agent) for agent in event.agents)
        for agent in event.agents:
            if agent.identity is not None and agent.name != self._me.current:
                self._identities[agent.name] = agent.identity
        for known in self._told():
            for name in [name for name in known if name not in self._present]:
                known.pop(name, None)

    def _on_joined(self, event: Joined) -> None:
        self._present.pop(event.name, None)  # NOTE(self): a member that rejoins goes last
        self._present[event.name] = Presence(event.name, event.id, event.version, "", "", None, event.capabilities)

    def _on_left(self, event: Left) -> None:
        present = self._present.get(event.name)
        if present and event.id and present.id and present.id != event.id:
            return
        for known in (self._present, *self._told()):
            known.pop(event.name, None)
        self.claims.left(event.name)

    def _on_said(self, event: Said) -> None:
        self._typing.pop(event.name, None)

    def _on_typing(self, event: Typing) -> None:
        if event.name != self._me.current:
            self._typing[event.name] = None

    def _on_identified(self, event: Identified) -> None:
        if event.name != self._me.current:
            self._identities[event.name] = event.summary

    def _on_reflected(self, event: Reflected) -> None:
        if event.name != self._me.current:
            self._reflections[event.name] = event

    def _on_history(self, event: History) -> None:
        for entry in event.entries:
            if entry.type == "reflection" and entry.agent_name in self._present:
                self._on_reflected(Reflected(entry.agent_name, entry.agent_id, entry.content, entry.timestamp))

    def _on_workspace(self, event: WorkspaceProgress) -> None:
        if event.name != self._me.current:
            self._workspaces[event.workspace] = event

    def _on_claimed(self, event: Claimed) -> None:
        self.claims.claimed(event)

    def _on_done(self, event: ActionDone) -> None:
        self.claims.done(event)

    _readers: Final[Mapping[type, Callable[..., None]]] = {
        PresenceList: _on_list,
        Joined: _on_joined,
        Left: _on_left,
        Said: _on_said,
        Typing: _on_typing,
        Identified: _on_identified,
        Reflected: _on_reflected,
        History: _on_history,
        WorkspaceProgress: _on_workspace,
        Claimed: _on_claimed,
        ActionDone: _on_done,
    }
