"""What the owner is told of this life: one line in the terminal and one entry in the journal for each decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.text.untrusted import one_line
from modules.lives.space.names import shown
from modules.lives.space.scene import Scene
from modules.runtime.console import LineKind
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry

LOOP = "space-participation"

_HEARD, _CHARS = 10, 200


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells `journal`."""

    journal: Journal

    async def decided(
        self,
        summary: str,
        reason: str,
        scene: Scene,
        *,
        line: LineKind = "social",
        data: Mapping[str, Any] | None = None,
    ) -> None:
        """Something was decided about `scene`; `data` says with which values."""
        heard = [
            f"{shown(entry.name, is_host=entry.is_host)}: {one_line(entry.content[: 4 * _CHARS], _CHARS)}"
            for entry in scene.batch[-_HEARD:]
        ]
        about = {
            "heard": heard,
            "mode": scene.mode,
            "owner": scene.owner or "",
            "role": scene.role,
            "request": one_line(scene.request.content[: 4 * _CHARS], _CHARS) if scene.is_open else "",
            "cycles": scene.request.cycles,
        }
        author = scene.batch[-1].name if scene.batch else None
        await self.journal.record(
            Entry(
                "decision",
                LOOP,
                f"[space] {summary}",
                line=line,
                reason=reason,
                trigger_uri=scene.thread_uri,
                author=author,
                data={**about, **(data or {})},
            )
        )

    async def happened(self, summary: str, reason: str, *, line: LineKind = "info") -> None:
        """Something that is no decision."""
        await self.journal.record(Entry("life", LOOP, f"[space] {summary}", line=line, reason=reason))

    async def trouble(self, summary: str, reason: str, *, trace: str = "") -> None:
        """Something went wrong."""
        data = {"trace": trace} if trace else {}
        await self.journal.record(Entry("error", LOOP, f"[space] {summary}", line="warn", reason=reason, data=data))
