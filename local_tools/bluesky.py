"""What a SOUL can do on Bluesky. Each tool is an input model and a small handler; the checks stand in the publisher."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel

from adapters.atproto.client import Atproto
from adapters.atproto.types import Actor, FeedItem, Page, StrongRef
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.provenance import Provenance
from common.result import ApiResult, Err
from common.text.closings import asks
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
from local_tools.bluesky_turns import data_of, fitted, is_by_owner, is_urgent, may_look_up, thread_of
from local_tools.words import ToolWords, failed
from modules.lives.bluesky.expression_policy import add_invitation, check_invitation
from modules.lives.bluesky.publish import Publisher, refused, text_problem
from modules.lives.bluesky.reply_check import ReplyProblem, repeats, reply_problem
from modules.lives.bluesky.types import Act, ExpressionTurn, Published, ThreadTurn
from modules.services.agent.framing import Framer
from modules.services.agent.skills.skills import Skills
from modules.services.agent.tools.types import Effect, Tool, ToolResult, Turn
from modules.services.own_feed.starting_points import Prompts
from modules.services.pictures.choosing import ChosenPicture
from modules.services.rights.policy import may_stand_in_prompt
from modules.services.rights.preferences import Preferences

_FOLLOWS = "app.bsky.graph.follow/"
_ERROR_LENGTH = 300


class BlueskyTools:
    """The handlers, with what they need."""

    def __init__(
        self, atproto: Atproto, publisher: Publisher, preferences: Preferences, skills: Skills, rng: random.Random
    ) -> None:
        self._atproto = atproto
        self._preferences = preferences
        self._publisher = publisher
        self._skills = skills
        self._prompts = Prompts(skills)
        self._rng = rng
        self.words = ToolWords(skills, "bluesky-tools")

    async def post(self, args: PostInput, turn: Turn) -> ToolResult:
        return await self._publish_post(args.text, turn)

    async def post_picture(self, args: PostInput, turn: Turn) -> ToolResult:
        """Publish a thought with the picture that its turn is about."""
        shown = turn.subject.picture if isinstance(turn.subject, ExpressionTurn) else None
        return await self._publish_post(args.text, turn, shown) if shown else self.words.error("No Picture")

    async def _publish_post(self, said: str, turn: Turn, shown: ChosenPicture | None = None) -> ToolResult:
        subject, most = turn.subject, shown.room if shown else PORTABLE_MAX_GRAPHEMES
        text = fitted(said, turn, most)
        if shown and (problem := text_problem(text, most)):
            return self.answered(refused(problem), "posted", ends=False)
        if isinstance(subject, ExpressionTurn) and subject.scaffold.is_in(text):
            return self.words.error("Post Not Sent")
        if isinstance(subject, ExpressionTurn) and not text_problem(text):
            check = check_invitation(text)
            if check.advice:
                advice = self._skills.subsection("expression", "Advice", check.advice).strip()
                if subject.revisions.ask_for_better(text, advice):
                    revision = self._revision(text, advice, "bluesky_post_picture" if shown else "bluesky_post")
                    return ToolResult(revision, is_error=True, data={"draft": text})
            subject.revisions.invitation = check.confidence
            if not check.has_invitation:
                whole = add_invitation(text, self._prompts.invitations("Direct"), most)
                subject.revisions.invitation = "none" if whole == text else "added"
                text = whole
        published = await self._publisher.post(
            shown.credited(text) if shown else text,
            pictures=(shown.picture,) if shown else (),
            cause_id=turn.cause_id or turn.loop,
            urgent=is_urgent(turn),
            by_owner=is_by_owner(turn),
            hold=turn.hold,
        )
        return self.answered(published, "posted", ends=isinstance(subject, ExpressionTurn))

    async def reply(self, args: ReplyInput, turn: Turn) -> ToolResult:
        return await self._publish_reply(args, turn)

    async def reply_picture(self, args: PostInput, turn: Turn) -> ToolResult:
        """Answer the post of the turn, and show the picture that was chosen for it."""
        shown = turn.subject.picture if isinstance(turn.subject, ThreadTurn) else None
        if shown is None:
            return self.words.error("No Picture")
        return await self._publish_reply(ReplyInput(text=args.text), turn, shown)

    async def _publish_reply(self, args: ReplyInput, turn: Turn, shown: ChosenPicture | None = None) -> ToolResult:
        target = self._target(args.post_uri, args.post_cid, turn)
        if isinstance(target, ToolResult):
            return target
        most = shown.room if shown else PORTABLE_MAX_GRAPHEMES
        thread, text = turn.subject if isinstance(turn.subject, ThreadTurn) else None, fitted(args.text, turn, most)
        if shown and (too_long := text_problem(text, most)):
            return self.answered(refused(too_long), "replied", ends=False)
        if f"@{self._atproto.handle}" in text.lower():
            return self.words.error("Own Handle", handle=self._atproto.handle)
        if thread and (problem := self._problem(text, thread)):
            return await self._send_back(problem, thread, turn, target)
        published = await self._publisher.reply(
            shown.credited(text) if shown else text,
            target,
            root=thread.root if thread else None,
            pictures=(shown.picture,) if shown else (),
            cause_id=turn.cause_id,
            urgent=is_urgent(turn),
            by_owner=is_by_owner(turn),
            hold=turn.hold,
            is_unanswered=thread is not None and thread.is_unanswered and target == thread.notification.ref,
        )
        if published.status == "liked_instead":
            data = data_of("liked", published.reason, published)
            return self.words.end("Liked Instead", data, is_error=True, reason=published.reason)
        return self.answered(published, "replied", ends=thread is not None)

    def _problem(self, text: str, thread: ThreadTurn, *, closing: bool = False) -> ReplyProblem | None:
        """Why these words must not stand in the thread; None if they may.

        To the owner thanks are enough, and at the end of a conversation; where we spoke before and nothing was
        asked, the publisher likes instead.
        """
        if repeats(text, thread.notification.text):
            return "repeats them"
        spoken = self._publisher.has_spoken(thread.root) and not asks(thread.notification.text)
        may_thank = closing or thread.is_owner or spoken
        return reply_problem(text, thread.said, thread.scaffold, may_thank=may_thank, peers_said=thread.peers_said)

    async def _send_back(self, code: ReplyProblem, thread: ThreadTurn, turn: Turn, target: StrongRef) -> ToolResult:
        """A reply that must not leave is asked for once more, then becomes a like, or silence."""
        problem = self.words.answer(code)
        if thread.revisions.ask_for_better():
            return self.words.error("Reply Not Sent", problem=problem)
        liked = await self._publisher.like(target, cause_id=turn.cause_id, by_owner=is_by_owner(turn), hold=turn.hold)
        act: Act = "silent" if liked.status == "blocked" else "liked"
        data = data_of(act, f"no reply, twice: {problem}", liked)
        return self.words.end("No Reply", data, is_error=True)

    async def like(self, args: SubjectInput, turn: Turn) -> ToolResult:
        return await self._on_subject(args, turn, self._publisher.like, "liked")

    async def repost(self, args: SubjectInput, turn: Turn) -> ToolResult:
        return await self._on_subject(args, turn, self._publisher.repost, "reposted")

    async def exit(self, args: ExitInput, turn: Turn) -> ToolResult:
        thread = thread_of(turn)
        target = thread.notification.ref
        problem = self._problem(args.closing_message, thread, closing=True) if args.closing_type == "message" else None
        if problem and not thread.revisions.asked_for_better:
            return await self._send_back(problem, thread, turn, target)
        if args.closing_type == "message" and not problem and not self._publisher.has_spoken(thread.root):
            if not args.closing_message.strip():
                return self.words.error("No Closing Message")
            said = await self._publisher.reply(
                args.closing_message,
                target,
                root=thread.root,
                cause_id=turn.cause_id,
                urgent=thread.is_owner,
                by_owner=is_by_owner(turn),
                is_unanswered=thread.is_unanswered,
            )
            like = None if said.status in {"accepted", "held"} else target
        else:
            like = target
        left = await self._publisher.conclude(
            thread.root, args.reason, like=like, cause_id=turn.cause_id, by_owner=is_by_owner(turn), must_like=True
        )
        if left.status == "blocked":
            return self.answered(left, "left", ends=False)
        data = data_of("left", args.reason, left)
        return self.words.end("Left", data)

    async def silence(self, args: SilenceInput, turn: Turn) -> ToolResult:
        if thread_of(turn).is_owner:
            return self.words.error("Owner Waits")
        data = {"act": "silent", "reason": args.reason}
        return self.words.end("Silent", data)

    async def follow(self, args: DidInput, turn: Turn) -> ToolResult:
        published = await self._publisher.follow(
            args.did, cause_id=turn.cause_id, by_owner=is_by_owner(turn), hold=turn.hold
        )
        return self.answered(published, "followed", ends=False)

    async def unfollow(self, args: UriInput, turn: Turn) -> ToolResult:
        if _FOLLOWS not in args.follow_uri:
            return self.words.error("No Follow Record")
        published = await self._publisher.delete(
            args.follow_uri, cause_id=turn.cause_id, by_owner=is_by_owner(turn), hold=turn.hold
        )
        return self.answered(published, "unfollowed", ends=False)

    async def timeline(self, args: LimitInput, turn: Turn) -> ToolResult:
        page = await self._atproto.get_timeline(limit=args.limit)
        if isinstance(page, Err):
            return self._read(page)
        shown = await self._allowed(item.post.author for item in page.data.items)
        return self._read([_brief(item) for item in page.data.items if item.post.author.did in shown])

    async def notifications(self, args: LimitInput, turn: Turn) -> ToolResult:
        page = await self._atproto.get_notifications(limit=args.limit)
        if isinstance(page, Err):
            return self._read(page)
        keys = ("uri", "cid", "kind", "text", "indexed_at")
        told = page.data.notifications
        shown = await self._allowed(item.author for item in told)
        return self._read(
            [
                {**_named(item.author), **{key: getattr(item, key) for key in keys}}
                for item in told
                if item.author.did in shown
            ]
        )

    async def _allowed(self, authors: Iterable[Actor]) -> set[str]:
        """Return the DIDs of those whose posts may stand in a prompt."""
        dids = {author.did for author in authors}
        left_out = await self._preferences.muted(dids) | await self._preferences.forgotten(dids)
        preferences = await self._preferences.of(dids)
        return {
            did for did, preference in preferences.items() if did not in left_out and may_stand_in_prompt(preference)
        }

    async def profile(self, args: ActorInput, turn: Turn) -> ToolResult:
        if not may_look_up(args.actor, turn):
            return self.words.error("By Did")
        profile = await self._atproto.get_profile(args.actor)
        return self._read(profile if isinstance(profile, Err) else dataclasses.asdict(profile.data))

    async def followers(self, args: ActorListInput, turn: Turn) -> ToolResult:
        return await self._actors(self._atproto.get_followers, args, turn)

    async def follows(self, args: ActorListInput, turn: Turn) -> ToolResult:
        return await self._actors(self._atproto.get_follows, args, turn)

    async def _actors(
        self, get: Callable[..., Awaitable[ApiResult[Page]]], args: ActorListInput, turn: Turn
    ) -> ToolResult:
        if not may_look_up(args.actor, turn):
            return self.words.error("By Did")
        page = await get(args.actor, limit=args.limit)
        return self._read(page if isinstance(page, Err) else [dataclasses.asdict(actor) for actor in page.data.actors])

    async def _on_subject(
        self,
        args: SubjectInput,
        turn: Turn,
        act: Callable[..., Awaitable[Published]],
        name: Act,
    ) -> ToolResult:
        target = self._target(args.post_uri, args.post_cid, turn)
        if isinstance(target, ToolResult):
            return target
        published = await act(target, cause_id=turn.cause_id, by_owner=is_by_owner(turn), hold=turn.hold)
        return self.answered(published, name, ends=isinstance(turn.subject, ThreadTurn))

    def _read(self, result: Err | object) -> ToolResult:
        """What was read, as JSON inside a frame: it is untrusted text."""
        if isinstance(result, Err):
            return failed(one_line(result.error, _ERROR_LENGTH))
        return self.framed(result, uri="Bluesky")

    def framed(self, result: object, *, uri: str) -> ToolResult:
        """Return what was read at `uri` as JSON inside a frame: it is untrusted text, unless it is empty."""
        text = json.dumps(clean_value(result), ensure_ascii=False)
        content = Framer(self._skills, self._rng).frame("reading", author="several", uri=uri, text=text)
        return ToolResult(content, provenance=Provenance.STRANGER if result else None)

    def _target(self, uri: str, cid: str, turn: Turn) -> StrongRef | ToolResult:
        """The post meant, or an error. In a thread turn only posts that were shown may be touched."""
        if isinstance(turn.subject, ThreadTurn):
            if not uri:
                return turn.subject.notification.ref
            return turn.subject.seen.get(uri) or self.words.error("Not In Thread")
        return StrongRef(uri, cid) if uri and cid else self.words.error("Post Unnamed")

    def answered(self, published: Published, act: Act, *, ends: bool) -> ToolResult:
        """Return what became of an act that was handed to the publisher."""
        if published.status == "blocked":
            problem = published.problem
            reason = self.words.answer(problem.code, **problem.values) if problem else published.reason
            content = self.words.answer("Blocked", reason=one_line(reason, _ERROR_LENGTH))
            data = data_of("silent", published.reason, published)
            return ToolResult(content, is_error=True, ends_turn=published.ends, data=data)
        if published.status == "held":
            data = data_of(act, f"waits for the owner's yes: {published.reason}", published)
            return ToolResult(self.words.answer("Held"), ends_turn=ends, data=data)
        content = json.dumps({"success": True, "uri": published.uri, "state": "queued"})
        return ToolResult(content, ends_turn=ends, data=data_of(act, "", published))

    def _revision(self, draft: str, problem: str, tool: str) -> str:
        return self._skills.render(
            "expression",
            "Revision",
            draft=draft,
            problem=problem,
            tool=tool,
            choice_example=self._rng.choice(self._prompts.invitations("Choice")),
            bounded_example=self._rng.choice(self._prompts.invitations("Bounded")),
        )


def bluesky_tools(tools: BlueskyTools) -> Sequence[Tool]:
    """The family, as the registry takes it."""

    def tool(
        name: str,
        model: type[BaseModel],
        handler: Any,  # noqa: ANN401 - each handler takes its own input model
        needs: Provenance,
        *,
        effect: Effect = "act",
        subject: type | None = None,
        holdable: bool | None = None,
    ) -> Tool:
        holdable = effect == "act" and subject is None if holdable is None else holdable
        return tools.words.tool(
            name, model, "social", needs, handler, subject=subject, effect=effect, holdable=holdable
        )

    look = partial(tool, effect="look")
    in_thread = partial(tool, subject=ThreadTurn)
    anyone, own, owner = Provenance.STRANGER, Provenance.SELF, Provenance.OWNER
    return (
        tool("bluesky_post", PostInput, tools.post, own),
        tool("bluesky_reply", ReplyInput, tools.reply, anyone),
        tool("bluesky_like", SubjectInput, tools.like, anyone),
        tool("bluesky_repost", SubjectInput, tools.repost, own),
        tool("bluesky_post_picture", PostInput, tools.post_picture, anyone, subject=ExpressionTurn, holdable=True),
        in_thread("bluesky_reply_picture", PostInput, tools.reply_picture, anyone, holdable=True),
        in_thread("graceful_exit", ExitInput, tools.exit, anyone),
        in_thread("stay_silent", SilenceInput, tools.silence, anyone),
        tool("bluesky_follow", DidInput, tools.follow, owner),
        tool("bluesky_unfollow", UriInput, tools.unfollow, owner),
        look("bluesky_get_timeline", LimitInput, tools.timeline, owner),
        look("bluesky_get_notifications", LimitInput, tools.notifications, owner),
        look("bluesky_get_profile", ActorInput, tools.profile, anyone),
        look("bluesky_get_followers", ActorListInput, tools.followers, anyone),
        look("bluesky_get_follows", ActorListInput, tools.follows, anyone),
    )


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
