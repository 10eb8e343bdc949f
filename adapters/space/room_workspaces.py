"""How far the plans of a room have come: one latest report for each workspace. Pure; times monotonic, s."""

from __future__ import annotations

from adapters.space.types import WorkspaceProgress
from common.constants import SPACE_WORKSPACE_STATE_TTL_MS

MAX_WORKSPACES = 100
_TTL_S = SPACE_WORKSPACE_STATE_TTL_MS / 1000


class Workspaces:
    """The latest reports, at most 100: the oldest give way."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[float, WorkspaceProgress]] = {}

    def put(self, progress: WorkspaceProgress, now: float) -> None:
        self._latest.pop(progress.workspace, None)
        self._latest[progress.workspace] = (now, progress)
        while len(self._latest) > MAX_WORKSPACES:
            del self._latest[next(iter(self._latest))]

    def drop_all_of(self, name: str) -> None:
        self._latest = {key: kept for key, kept in self._latest.items() if kept[1].name != name}

    def drop_stale(self, now: float) -> None:
        """Forget reports that are a day old."""
        self._latest = {key: kept for key, kept in self._latest.items() if now - kept[0] <= _TTL_S}

    def all(self) -> tuple[WorkspaceProgress, ...]:
        return tuple(progress for _, progress in self._latest.values())
