"""Tools for posts of our own, for the owner: who may reply to them, and taking them back."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from local_tools.bluesky import BlueskyTools
from local_tools.bluesky_inputs import OwnPostInput
from local_tools.bluesky_turns import act_terms, is_by_owner, is_unnamed, post_terms, request_tool
from local_tools.words import ToolWords
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.types import ThreadTurn
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.outbox.bodies import DeleteBody
from modules.services.own_feed.reply_limits import Audience, ReplyLimits, allowed_replies
from modules.services.skills.skills import Skills


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
        if await self._publisher.made_before("threadgate", turn):
            return self._words.error("Done Before")
        limited = await self._limits.limit(
            _meant(args.post, turn),
            args.who,
            cause_id=turn.cause_id,
            by_owner=is_by_owner(turn),
            own_words=is_unnamed(turn, args.post),
            hold=turn.hold,
        )
        if isinstance(limited, str):
            return self._words.error(limited)
        return self._on_bluesky.answered(self._publisher.published(limited), "limited", ends=False)

    async def delete(self, args: OwnPostInput, turn: Turn) -> ToolResult:
        """Take back a post or a reply of ours; nothing else can be named. What is to be gone waits for no yes."""
        uri = await self._limits.own_post(_meant(args.post, turn))
        if not uri:
            return self._words.error("Not Your Record" if args.post else "No Post")
        published = await self._publisher.delete(DeleteBody(uri=uri), act_terms(turn))
        return self._on_bluesky.answered(published, "deleted", ends=False)

    async def post(self, args: LimitedPostInput, turn: Turn) -> ToolResult:
        if unfit := await self._on_bluesky.unfit(args.text, turn):
            return self._words.error(unfit)
        replies = allowed_replies(args.who)
        if replies == "Unclear Audience":
            return self._words.error(replies)
        published = await self._publisher.post(args.text, post_terms(args.text, turn), replies=replies)
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
        request_tool(words, "bluesky_delete_post", OwnPostInput, tools.delete),
    )


def _meant(post: str, turn: Turn) -> str:
    """The post that is meant: a small model names that of the turn, the owner's, where it means its own newest."""
    asked_in = turn.subject.notification.uri if isinstance(turn.subject, ThreadTurn) else ""
    return "" if post == asked_in else post
