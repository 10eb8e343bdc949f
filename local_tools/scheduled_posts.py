"""Tools for posts that leave later, at a moment that the owner names, and for taking them back before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pydantic import BaseModel

from common.clock import from_local, local, parse_iso, spoken
from local_tools.bluesky import BlueskyTools
from local_tools.bluesky_turns import post_terms, request_tool
from local_tools.words import ToolWords
from modules.lives.bluesky.publish import Publisher
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent
from modules.services.skills.skills import Skills


class ScheduledPostInput(BaseModel):
    """A post of your own, and the owner's local date and time at which it leaves."""

    text: str
    at: str


class ScheduledMomentInput(BaseModel):
    """The local date and time of a scheduled post. Empty means the only one."""

    at: str = ""


class ScheduledPostTools:
    """The handlers, with what they need; `timezone` is the owner's."""

    def __init__(
        self, outbox: Outbox, publisher: Publisher, on_bluesky: BlueskyTools, words: ToolWords, timezone: str
    ) -> None:
        self._outbox = outbox
        self._publisher = publisher
        self._on_bluesky = on_bluesky
        self._words = words
        self._timezone = timezone

    async def schedule(self, args: ScheduledPostInput, turn: Turn) -> ToolResult:
        """Let a post leave later. The outbox says whether the moment will do."""
        if unfit := await self._on_bluesky.unfit(args.text, turn):
            return self._words.error(unfit)
        moment = self._moment(args.at)
        if moment is None:
            return self._words.error("Unclear Moment")
        published = await self._publisher.post(args.text, post_terms(args.text, turn), scheduled_for=moment)
        result = self._on_bluesky.answered(published, "posted", ends=False)
        if result.is_error:
            return result
        when = spoken(local(moment, self._timezone))
        content = self._words.answer("Scheduled Held" if published.status == "held" else "Scheduled", when=when)
        return replace(result, content=content, data={**result.data, "told": {"at": when}})

    async def cancel(self, args: ScheduledMomentInput, turn: Turn) -> ToolResult:
        """Take back the scheduled post of that moment, or the only one; else tell for which moments there are some."""
        scheduled = await self._outbox.scheduled()
        moment = self._moment(args.at) if args.at else None
        meant = [one for one in scheduled if not args.at or _moment_of(one) == moment]
        if len(meant) != 1:
            moments = "; ".join(self._spoken(one) for one in scheduled)
            return (
                self._words.error("Unclear Scheduled", moments=moments) if moments else self._words.error("None Waits")
            )
        taken = await self._outbox.reject(meant[0].id)
        when = self._spoken(taken)
        return ToolResult(self._words.answer("Unscheduled", when=when), data={"told": {"at": when}})

    def _moment(self, at: str) -> datetime | None:
        """The moment that the model gave as a local date and time; None where it is none."""
        try:
            moment = datetime.fromisoformat(at.strip())
            return from_local(moment.replace(tzinfo=None, second=0, microsecond=0), self._timezone)
        except (ValueError, OverflowError):
            return None

    def _spoken(self, intent: Intent) -> str:
        return spoken(local(_moment_of(intent), self._timezone))


def _moment_of(intent: Intent) -> datetime:
    return parse_iso(intent.scheduled_for or intent.created_at)


def scheduled_post_tools(
    outbox: Outbox, publisher: Publisher, on_bluesky: BlueskyTools, skills: Skills, timezone: str
) -> Sequence[Tool]:
    """The family, as the registry takes it."""
    words = ToolWords(skills, "bluesky-tools")
    tools = ScheduledPostTools(outbox, publisher, on_bluesky, words, timezone)
    return (
        request_tool(words, "bluesky_schedule_post", ScheduledPostInput, tools.schedule),
        request_tool(words, "bluesky_unschedule_post", ScheduledMomentInput, tools.cancel, holdable=False),
    )
