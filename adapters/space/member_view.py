"""A member's view of its room: members, typing, identities, reflections, states, workspaces and claims.

Built from the room's events, and lost with the process; the room sends it again at each join. Bounded, because a room
may send anything. Pure; times are monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from adapters.space.member_claims import Claims
from adapters.space.member_name import MemberName
from adapters.space.types import (
    ActionDone,
    Claimed,
    Event,
    History,
    Identified,
    IdentitySummary,
    Joined,
    Left,
    Presence,
    PresenceList,
    Reflected,
    Said,
    StateChanged,
    Typing,
    WorkspaceProgress,
)
from common.constants import SECOND_MS, SPACE_WORKSPACE_STATE_TTL_MS

K = TypeVar("K")
V = TypeVar("V")

TYPING_S: Final = 10.0
_WORKSPACE_STATE_S = SPACE_WORKSPACE_STATE_TTL_MS / SECOND_MS
_KEPT = 1_000


class RoomView:
    """The room as seen by `me`, whose own events are left out."""

    def __init__(self, me: MemberName) -> None:
        self._me = me
        self._present: dict[str, Presence] = {}
        self._typing: dict[str, float] = {}
        self._identities: dict[str, IdentitySummary] = {}
        self._reflections: dict[str, Reflected] = {}
        self._states: dict[str, StateChanged] = {}
        self._workspaces: dict[str, tuple[WorkspaceProgress, float]] = {}
        self.claims = Claims(me)

    def apply(self, event: Event, now: float) -> None:
        """Applies an event of the room."""
        if read := self._readers.get(type(event)):
            read(self, event, now)

    def cut_off(self) -> None:
        """The connection was lost: who is present is no longer known."""
        self._present.clear()
        self._typing.clear()
        self._states.clear()

    def peers(self) -> dict[str, Presence]:
        """The other members by name, in the order in which they joined."""
        return {name: presence for name, presence in self._present.items() if name != self._me.current}

    def typing(self, now: float) -> list[str]:
        """The members that sent `typing` within the last 10 s and no message since."""
        self._typing = {name: until for name, until in self._typing.items() if now < until}
        return list(self._typing)

    def identities(self) -> dict[str, IdentitySummary]:
        return dict(self._identities)

    def reflections(self) -> dict[str, Reflected]:
        return dict(self._reflections)

    def states(self) -> dict[str, StateChanged]:
        return dict(self._states)

    def workspace_states(self, now: float) -> dict[str, WorkspaceProgress]:
        """The latest report for each workspace within a day."""
        self._workspaces = {key: held for key, held in self._workspaces.items() if now < held[1]}
        return {key: progress for key, (progress, _) in self._workspaces.items()}

    def _on_list(self, event: PresenceList, now: float) -> None:
        self._present = {agent.name: agent for agent in event.agents}
        for agent in event.agents:
            if agent.identity is not None and agent.name != self._me.current:
                _put(self._identities, agent.name, agent.identity)
        for known in (self._identities, self._reflections, self._states, self._typing):
            for name in [name for name in known if name not in self._present]:
                del known[name]

    def _on_joined(self, event: Joined, now: float) -> None:
        _put(self._present, event.name, Presence(event.name, event.id, event.version, "", "", None, event.capabilities))

    def _on_left(self, event: Left, now: float) -> None:
        present = self._present.get(event.name)
        if present and event.id and present.id and present.id != event.id:
            return
        caches: tuple[dict[str, Any], ...] = (
            self._present,
            self._typing,
            self._identities,
            self._reflections,
            self._states,
        )
        for known in caches:
            known.pop(event.name, None)
        self.claims.left(event.name)

    def _on_said(self, event: Said, now: float) -> None:
        self._typing.pop(event.name, None)

    def _on_typing(self, event: Typing, now: float) -> None:
        if event.name != self._me.current:
            _put(self._typing, event.name, now + TYPING_S)

    def _on_identified(self, event: Identified, now: float) -> None:
        if event.name != self._me.current:
            _put(self._identities, event.name, event.summary)

    def _on_reflected(self, event: Reflected, now: float) -> None:
        if event.name != self._me.current:
            _put(self._reflections, event.name, event)

    def _on_history(self, event: History, now: float) -> None:
        for entry in event.entries:
            if entry.type == "reflection" and entry.agent_name in self._present:
                self._on_reflected(Reflected(entry.agent_name, entry.agent_id, entry.content, entry.timestamp), now)

    def _on_state(self, event: StateChanged, now: float) -> None:
        if event.name != self._me.current:
            _put(self._states, event.name, event)

    def _on_workspace(self, event: WorkspaceProgress, now: float) -> None:
        if event.name != self._me.current:
            _put(self._workspaces, event.workspace, (event, now + _WORKSPACE_STATE_S))

    def _on_claimed(self, event: Claimed, now: float) -> None:
        self.claims.claimed(event, now)

    def _on_done(self, event: ActionDone, now: float) -> None:
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
        StateChanged: _on_state,
        WorkspaceProgress: _on_workspace,
        Claimed: _on_claimed,
        ActionDone: _on_done,
    }


def _put(known: dict[K, V], key: K, value: V) -> None:
    known.pop(key, None)
    known[key] = value
    while len(known) > _KEPT:
        known.pop(next(iter(known)))
