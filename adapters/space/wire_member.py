"""What a member says to a room, as frames. A server stamps and signs anew, yet other members expect all of it.

Key order is part of the wire. Pure; times are ISO-8601 UTC (`iso_now`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.space.types import AgentState, Frame, IdentitySummary


@dataclass(frozen=True, slots=True)
class MemberFrames:
    """Builds the frames of one member; `encode_message` makes text of them, without what is None."""

    name: str
    id: str

    def join(
        self, at: str, *, version: str, capabilities: Sequence[str] | None = None, resume: str | None = None
    ) -> Frame:
        listed = None if capabilities is None else list(capabilities)
        return self._frame("join", at, version=version, capabilities=listed, resume=resume)

    def chat(self, at: str, content: str, *, thread_id: str = "") -> Frame:
        return self._frame("chat", at, content=content, threadId=thread_id or None)

    def typing(self, at: str) -> Frame:
        return self._frame("typing", at)

    def identity(self, at: str, summary: IdentitySummary) -> Frame:
        return self._frame("identity", at, summary=summary_frame(summary))

    def claim(self, at: str, *, action: str, target: str) -> Frame:
        return self._frame("claim", at, action=action, target=target)

    def state(self, at: str, state: AgentState, *, detail: str = "") -> Frame:
        return self._frame("state", at, state=state, detail=detail or None)

    def action_result(
        self, at: str, *, action: str, target: str, success: bool, link: str = "", error: str = ""
    ) -> Frame:
        what = {"action": action, "target": target, "success": success}
        return self._frame("action_result", at, **what, link=link or None, error=error or None)

    def reflection(self, at: str, summary: str) -> Frame:
        return self._frame("reflection", at, summary=summary)

    def workspace_state(
        self,
        at: str,
        *,
        workspace: str,
        total: float,
        completed: float,
        plan_number: float = 0,
        blocked: float = 0,
        in_progress: float = 0,
    ) -> Frame:
        return self._frame(
            "workspace_state",
            at,
            workspace=workspace,
            planNumber=plan_number,
            totalTasks=total,
            completedTasks=completed,
            blockedTasks=blocked,
            inProgressTasks=in_progress,
        )

    def _frame(self, kind: str, at: str, **fields: object) -> Frame:
        given = {key: value for key, value in fields.items() if value is not None}
        return {"type": kind, "name": self.name, "id": self.id, **given, "timestamp": at}


def summary_frame(summary: IdentitySummary) -> Frame:
    """A summary under the keys of the wire; `soulEssence` only where there is one."""
    essence = {"soulEssence": summary.soul_essence} if summary.soul_essence else {}
    return {
        "coreValues": list(summary.core_values),
        "currentInterests": list(summary.current_interests),
        "voice": summary.voice,
        "expertise": list(summary.expertise),
        "recentWork": summary.recent_work,
        **essence,
    }
