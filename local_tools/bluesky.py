"""What a SOUL can do on Bluesky. Each tool is an input model and a small handler; the checks stand in the publisher."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel

from adapters.atproto.client import Atproto
from adapters.atproto.types import Actor, FeedItem, Page, StrongRef
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.provenance import Provenance
from common.result import ApiResult, Err
from common.text.closings import asks
from common.text.graphemes import grapheme_len, leading_sentences
from common.text.untrusted import clean_value, one_line
from local_tools.bluesky_inputs import (
    ActorInput,
    ActorListInput,
    DidInput,
    ExitInput,
    LimitInput,
    PostInput,
    ReplyInput,
    SilenceInput,
    SubjectInput,
    UriInput,
)
from modules.lives.bluesky.expression_policy import check_invitation
from modules.lives.bluesky.expression_prompts import Prompts
from modules.lives.bluesky.publish import Publisher, text_problem
from modules.lives.bluesky.reply_check import repeats, reply_problem
from modules.lives.bluesky.types import Act, ExpressionTurn, Published, ThreadTurn
from modules.services.agent.framing import Framer
from modules.services.agent.skills.skills import Skills
from modules.services.agent.tools.types import Effect, Tool, ToolResult, Turn

_FOLLOWS = "app.bsky.graph.follow/"
_ERROR_LENGTH = 300
_INSTRUCTIONS = "it holds words of your instructions; say the thought itself, in your own words"


class BlueskyTools:
    """The handlers, with what they need."""

    def __init__(self, *, atproto: Atproto, publisher: Publisher, skills: Skills, rng: random.Random) -> None:
        self._atproto = atproto
        self._publisher = publisher
        self._skills = skills
        self._prompts = Prompts(skills)
        self._rng = rng

    async def post(self, args: PostInput, turn: Turn) -> ToolResult:
        subject, text = turn.subject, fitted(args.text, turn)
        if isinstance(subject, ExpressionTurn) and subject.scaffold.is_in(text):
            return ToolResult(f"Error: this post was not sent: {_INSTRUCTIONS}", is_error=True)
        if isinstance(subject, ExpressionTurn) and not text_problem(text) and not subject.revised:
            check = check_invitation(text)
            if check.confidence != "strong":
                subject.revised = True
                problem = check.suggestion or "readers have nothing to answer"
                return ToolResult(self._revision(text, problem), is_error=True, data={"draft": text})
        published = await self._publisher.post(
            text, cause_id=turn.cause_id or turn.loop, urgent=_urgent(turn), by_owner=_by_owner(turn), hold=turn.hold
        )
        return _answer(published, "posted", ends=isinstance(subject, ExpressionTurn))

    async def reply(self, args: ReplyInput, turn: Turn) -> ToolResult:
        target = _target(args.post_uri, args.post_cid, turn)
        if isinstance(target, str):
            return ToolResult(target, is_error=True)
        thread, text = turn.subject if isinstance(turn.subject, ThreadTurn) else None, fitted(args.text, turn)
        if f"@{self._atproto.handle}" in text.lower():
            return ToolResult(f"Error: @{self._atproto.handle} is you; speak to the person who wrote", is_error=True)
        if thread and (problem := self._problem(text, thread)):
            return await self._send_back(problem, thread, turn, target)
        published = await self._publisher.reply(
            text,
            target,
            root=thread.root if thread else None,
            cause_id=turn.cause_id,
            urgent=_urgent(turn),
            by_owner=_by_owner(turn),
            hold=turn.hold,
            is_unanswered=thread is not None and thread.is_unanswered and target == thread.notification.ref,
        )
        if published.status == "liked_instead":
            data = _data("liked", published.reason, published)
            content = f"CONVERTED TO LIKE: {published.reason}. Move on."
            return ToolResult(content, is_error=True, ends_turn=True, data=data)
        return _answer(published, "replied", ends=thread is not None)

    def _problem(self, text: str, thread: ThreadTurn, *, closing: bool = False) -> str:
        """Why these words must not stand in the thread.

        To the owner thanks are enough, and at the end of a talk; where we spoke before and nothing was asked, the
        publisher likes instead.
        """
        if repeats(text, thread.notification.text):
            return "it only repeats their words; say something of your own"
        spoken = self._publisher.has_spoken(thread.root) and not asks(thread.notification.text)
        may_thank = closing or thread.is_owner or spoken
        return reply_problem(text, thread.said, thread.scaffold, may_thank=may_thank)

    async def _send_back(self, problem: str, thread: ThreadTurn, turn: Turn, target: StrongRef) -> ToolResult:
        """A reply that must not leave is asked for once more, then becomes a like, or silence."""
        if not thread.sent_back:
            thread.sent_back = True
            return ToolResult(f"Error: this reply was not sent: {problem}, or like, or stay silent", is_error=True)
        liked = await self._publisher.like(target, cause_id=turn.cause_id, by_owner=_by_owner(turn), hold=turn.hold)
        act: Act = "silent" if liked.status == "blocked" else "liked"
        data = _data(act, f"no reply, twice: {problem}", liked)
        return ToolResult("No reply was sent. Move on.", is_error=True, ends_turn=True, data=data)

    async def like(self, args: SubjectInput, turn: Turn) -> ToolResult:
        return await self._on_subject(args, turn, self._publisher.like, "liked")

    async def repost(self, args: SubjectInput, turn: Turn) -> ToolResult:
        return await self._on_subject(args, turn, self._publisher.repost, "reposted")

    async def exit(self, args: ExitInput, turn: Turn) -> ToolResult:
        thread = _thread(turn)
        target = thread.notification.ref
        problem = self._problem(args.closing_message, thread, closing=True) if args.closing_type == "message" else ""
        if problem and not thread.sent_back:
            return await self._send_back(problem, thread, turn, target)
        if args.closing_type == "message" and not problem and not self._publisher.has_spoken(thread.root):
            if not args.closing_message.strip():
                return ToolResult("Error: closing_type message needs closing_message", is_error=True)
            said = await self._publisher.reply(
                args.closing_message,
                target,
                root=thread.root,
                cause_id=turn.cause_id,
                urgent=thread.is_owner,
                by_owner=_by_owner(turn),
                is_unanswered=thread.is_unanswered,
            )
            like = None if said.status in {"accepted", "held"} else target
        else:
            like = target
        left = await self._publisher.conclude(
            thread.root, args.reason, like=like, cause_id=turn.cause_id, by_owner=_by_owner(turn)
        )
        data = _data("left", args.reason, left)
        return ToolResult("You left the conversation.", ends_turn=True, data=data)

    async def silence(self, args: SilenceInput, turn: Turn) -> ToolResult:
        if _thread(turn).is_owner:
            return ToolResult("Error: this is your owner; always answer", is_error=True)
        data = {"act": "silent", "reason": args.reason}
        return ToolResult("You stayed silent.", ends_turn=True, data=data)

    async def follow(self, args: DidInput, turn: Turn) -> ToolResult:
        published = await self._publisher.follow(
            args.did, cause_id=turn.cause_id, by_owner=_by_owner(turn), hold=turn.hold
        )
        return _answer(published, "followed", ends=False)

    async def unfollow(self, args: UriInput, turn: Turn) -> ToolResult:
        if _FOLLOWS not in args.follow_uri:
            return ToolResult(f"Error: a follow record's uri contains {_FOLLOWS}", is_error=True)
        published = await self._publisher.delete(
            args.follow_uri, cause_id=turn.cause_id, by_owner=_by_owner(turn), hold=turn.hold
        )
        return _answer(published, "unfollowed", ends=False)

    async def timeline(self, args: LimitInput, turn: Turn) -> ToolResult:
        page = await self._atproto.get_timeline(limit=args.limit)
        return self._read(page if isinstance(page, Err) else [_brief(item) for item in page.data.items])

    async def notifications(self, args: LimitInput, turn: Turn) -> ToolResult:
        page = await self._atproto.get_notifications(limit=args.limit)
        if isinstance(page, Err):
            return self._read(page)
        keys = ("uri", "cid", "kind", "text", "indexed_at")
        return self._read(
            [{**_named(item.author), **{key: getattr(item, key) for key in keys}} for item in page.data.notifications]
        )

    async def profile(self, args: ActorInput, turn: Turn) -> ToolResult:
        if problem := _unreachable(args.actor, turn):
            return ToolResult(problem, is_error=True)
        profile = await self._atproto.get_profile(args.actor)
        return self._read(profile if isinstance(profile, Err) else dataclasses.asdict(profile.data))

    async def followers(self, args: ActorListInput, turn: Turn) -> ToolResult:
        return await self._actors(self._atproto.get_followers, args, turn)

    async def follows(self, args: ActorListInput, turn: Turn) -> ToolResult:
        return await self._actors(self._atproto.get_follows, args, turn)

    async def _actors(
        self, get: Callable[..., Awaitable[ApiResult[Page]]], args: ActorListInput, turn: Turn
    ) -> ToolResult:
        if problem := _unreachable(args.actor, turn):
            return ToolResult(problem, is_error=True)
        page = await get(args.actor, limit=args.limit)
        return self._read(page if isinstance(page, Err) else [dataclasses.asdict(actor) for actor in page.data.actors])

    async def _on_subject(
        self,
        args: SubjectInput,
        turn: Turn,
        act: Callable[..., Awaitable[Published]],
        name: Act,
    ) -> ToolResult:
        target = _target(args.post_uri, args.post_cid, turn)
        if isinstance(target, str):
            return ToolResult(target, is_error=True)
        published = await act(target, cause_id=turn.cause_id, by_owner=_by_owner(turn), hold=turn.hold)
        return _answer(published, name, ends=isinstance(turn.subject, ThreadTurn))

    def _read(self, result: Err | object) -> ToolResult:
        """What was read, as JSON inside a frame: it is other people's words."""
        if isinstance(result, Err):
            return ToolResult(f"Error: {one_line(result.error, _ERROR_LENGTH)}", is_error=True)
        text = json.dumps(clean_value(result), ensure_ascii=False)
        framed = Framer(self._skills, self._rng).frame("reading", author="several", uri="Bluesky", text=text)
        return ToolResult(framed, provenance=Provenance.STRANGER if result else None)

    def _revision(self, draft: str, problem: str) -> str:
        return self._skills.render(
            "expression",
            "Revision",
            draft=draft,
            problem=problem,
            choice_example=self._prompts.invitation("Choice", self._rng),
            bounded_example=self._prompts.invitation("Bounded", self._rng),
        )


def bluesky_tools(tools: BlueskyTools) -> Sequence[Tool]:
    """The family, as the registry takes it."""

    def tool(
        name: str,
        description: str,
        model: type[BaseModel],
        handler: Any,  # noqa: ANN401 - each handler takes its own input model
        needs: Provenance,
        *,
        effect: Effect = "act",
        subject: type | None = None,
    ) -> Tool:
        holdable = effect == "act" and subject is None
        return Tool(
            name, description, model, "social", needs, handler, subject=subject, effect=effect, holdable=holdable
        )

    look = partial(tool, effect="look")
    in_thread = partial(tool, subject=ThreadTurn)
    anyone, own, owner = Provenance.STRANGER, Provenance.SELF, Provenance.OWNER
    return (
        tool("bluesky_post", "Publish a post of your own.", PostInput, tools.post, own),
        tool("bluesky_reply", "Reply to a post, in public.", ReplyInput, tools.reply, anyone),
        tool("bluesky_like", "Like a post: warm, and starts nothing new.", SubjectInput, tools.like, anyone),
        tool("bluesky_repost", "Show a post to your followers.", SubjectInput, tools.repost, own),
        in_thread("graceful_exit", "Leave this conversation kindly.", ExitInput, tools.exit, anyone),
        in_thread("stay_silent", "Do nothing, and say why.", SilenceInput, tools.silence, anyone),
        tool("bluesky_follow", "Follow an account.", DidInput, tools.follow, owner),
        tool("bluesky_unfollow", "Stop following an account.", UriInput, tools.unfollow, owner),
        look("bluesky_get_timeline", "Read your timeline.", LimitInput, tools.timeline, owner),
        look("bluesky_get_notifications", "Read your notifications.", LimitInput, tools.notifications, owner),
        look("bluesky_get_profile", "Read an account's profile.", ActorInput, tools.profile, anyone),
        look("bluesky_get_followers", "List who follows an account.", ActorListInput, tools.followers, anyone),
        look("bluesky_get_follows", "List whom an account follows.", ActorListInput, tools.follows, anyone),
    )


def _thread(turn: Turn) -> ThreadTurn:
    if not isinstance(turn.subject, ThreadTurn):
        raise TypeError("the registry offers this tool in thread turns only")
    return turn.subject


def _target(uri: str, cid: str, turn: Turn) -> StrongRef | str:
    """The post meant, or an error text. In a thread turn only posts that were shown may be touched."""
    if isinstance(turn.subject, ThreadTurn):
        if not uri:
            return turn.subject.notification.ref
        return turn.subject.seen.get(uri, "Error: that post is not part of this conversation; leave post_uri empty")
    if not uri or not cid:
        return "Error: post_uri and post_cid are both needed here"
    return StrongRef(uri, cid)


def fitted(text: str, turn: Turn) -> str:
    """`text`, or its whole leading sentences where the model was asked to shorten it once already and could not.

    Small models cannot count; a thought is better told without its last sentence than lost.
    """
    subject = turn.subject
    if isinstance(subject, ThreadTurn | ExpressionTurn) and grapheme_len(text) > PORTABLE_MAX_GRAPHEMES:
        if subject.told_too_long:
            return leading_sentences(text) or text
        subject.told_too_long = True
    return text


def _urgent(turn: Turn) -> bool:
    return turn.provenance is Provenance.OWNER or (isinstance(turn.subject, ThreadTurn) and turn.subject.is_owner)


def _by_owner(turn: Turn) -> bool:
    """Whether nobody but the owner has a word in it."""
    return turn.provenance is Provenance.OWNER


def _unreachable(actor: str, turn: Turn) -> str:
    """Why `actor` may not be looked up, or "".

    A handle is looked up at an address that its holder owns: among others' words, a made-up one could carry away what
    the turn has seen.
    """
    if _by_owner(turn) or actor.startswith("did:plc:"):
        return ""
    return "Error: in this turn an account is named by its did, such as did:plc:…"


def _data(act: Act, reason: str, published: Published) -> dict[str, Any]:
    """What the life reads of a result: see `Disposition`."""
    held = published.status == "held"
    return {"act": act, "reason": reason, "intent_id": published.intent_id or None, "held": held}


def _answer(published: Published, act: Act, *, ends: bool) -> ToolResult:
    if published.status == "blocked":
        data = _data("silent", published.reason, published)
        content = f"BLOCKED: {one_line(published.reason, _ERROR_LENGTH)}"
        return ToolResult(content, is_error=True, ends_turn=published.ends, data=data)
    if published.status == "held":
        data = _data(act, f"waits for the owner's yes: {published.reason}", published)
        return ToolResult("HELD: it waits for your owner's yes. Do not try again.", ends_turn=ends, data=data)
    content = json.dumps({"success": True, "uri": published.uri, "state": "queued"})
    return ToolResult(content, ends_turn=ends, data=_data(act, "", published))


def _named(author: Actor) -> dict[str, object]:
    return {"author": author.handle, "author_did": author.did}


def _brief(item: FeedItem) -> dict[str, object]:
    post = item.post
    return {
        "uri": post.uri,
        "cid": post.cid,
        **_named(post.author),
        "text": post.text,
        "likes": post.like_count,
        "replies": post.reply_count,
        "indexed_at": post.indexed_at,
    }
