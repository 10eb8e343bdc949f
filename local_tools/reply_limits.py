"""Tools with which the owner has the SOUL say who may reply in its threads."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from local_tools.bluesky import BlueskyTools
from local_tools.bluesky_turns import (
    is_by_owner,
    is_urgent,
    once_for,
    post_problem,
    request_tool,
)
from local_tools.words import ToolWords
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.types import ThreadTurn
from modules.services.agent.skills.skills import Skills
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.own_feed.reply_limits import Audience, ReplyLimits, allowed_replies


class LimitRepliesInput(BaseModel):
    """Who may reply to a post that stands, or waits to leave."""

    who: list[Audience] = Field(min_length=1)
    post: str = ""


class LimitedPostInput(BaseModel):
    """A post of your own, and who may reply to it."""

    text: str
    who: list[Audience] = Field(min_length=1)


class ReplyLimitTools:
    """The handlers, with what they need."""

    def __init__(self, limits: ReplyLimits, publisher: Publisher, on_bluesky: BlueskyTools, words: ToolWords) -> None:
        self._limits = limits
        self._publisher = publisher
        self._on_bluesky = on_bluesky
        self._words = words

    async def limit(self, args: LimitRepliesInput, turn: Turn) -> ToolResult:
        # NOTE(self): a small model gives the post of the turn, which is the owner's, where it means its own newest.
        asked_in = turn.subject.notification.uri if isinstance(turn.subject, ThreadTurn) else ""
        post = "" if args.post == asked_in else args.post
        limited = await self._limits.limit(
            post, args.who, cause_id=turn.cause_id, by_owner=is_by_owner(turn), hold=turn.hold
        )
        if isinstance(limited, str):
            return self._words.error(limited)
        return self._on_bluesky.answered(self._publisher.published(limited), "limited", ends=False)

    async def post(self, args: LimitedPostInput, turn: Turn) -> ToolResult:
        if unfit := post_problem(args.text, turn):
            return self._words.error(unfit)
        replies = allowed_replies(args.who)
        if replies == "Unclear Audience":
            return self._words.error(replies)
        published = await self._publisher.post(
            args.text,
            replies=replies,
            once=once_for(turn),
            cause_id=turn.cause_id or turn.loop,
            urgent=is_urgent(turn),
            by_owner=is_by_owner(turn),
            hold=turn.hold,
        )
        return self._on_bluesky.answered(published, "posted", ends=False)


def reply_limit_tools(
    limits: ReplyLimits, publisher: Publisher, on_bluesky: BlueskyTools, skills: Skills
) -> Sequence[Tool]:
    """The family, as the registry takes it."""
    words = ToolWords(skills, "bluesky-tools")
    tools = ReplyLimitTools(limits, publisher, on_bluesky, words)
    return (
        request_tool(words, "bluesky_limit_replies", LimitRepliesInput, tools.limit),
        request_tool(words, "bluesky_post_limited", LimitedPostInput, tools.post),
    )
