"""Tools for our own posts: publish one, now or later, for everybody or some; limit its replies; take it back."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from adapters.atproto.records import LIKE, REPOST, parse_at_uri
from common.clock import Clock, local, parse_iso, parse_local_or_none, spoken, spoken_ahead
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.errors import NotWaiting
from common.provenance import Provenance
from common.text.untrusted import one_line
from local_tools.bluesky import BlueskyTools
from local_tools.bluesky_turns import (
    PictureInput,
    act_terms,
    fitted,
    names_post,
    post_problem,
    post_terms,
    request_tool,
    telling_of,
)
from local_tools.words import ToolStopped, ToolWords
from modules.lives.bluesky.expression_policy import add_invitation, lacks_invitation
from modules.lives.bluesky.publish import Publisher, refused, text_problem
from modules.lives.bluesky.reply_check import gives_back, is_verbatim, said_before
from modules.lives.bluesky.types import POST_FOUND, ExpressionTurn, ThreadTurn
from modules.runtime.journal.rows import Journal
from modules.services.agent.tools.types import OwnAct, Tool, ToolResult, Turn
from modules.services.commitments.naming import QueuedCommitment, title_of
from modules.services.commitments.queue import CommitmentQueue, withdraw_for_owner
from modules.services.outbox.bodies import AllowedReplies, DeleteBody, PostBody, ReplyBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.outbox.types import Intent
from modules.services.own_feed.expressions import Prompts
from modules.services.own_feed.reply_limits import NEWEST, Audience, ReplyLimits, allowed_replies
from modules.services.pictures.choosing import ChosenPicture, bare_words
from modules.services.skills.skills import Skills

_TITLE_CHARS = 80


class PostInput(BaseModel):
    """A post of the SOUL's own, who may reply to it, and the owner's local date and time at which it is sent.

    Without `who` the account's usual setting applies; without `at` it is sent now, or at the time of the waiting post
    with the number `changes`, which it replaces.
    """

    text: str
    who: list[Audience] | None = Field(default=None, min_length=1)
    at: Annotated[str, "now"] = ""
    changes: int = Field(default=0, ge=0)


class LimitRepliesInput(BaseModel):
    """The people who may reply to a post that is published, or waits to be sent."""

    who: list[Audience] = Field(min_length=1)
    post_uri: str = ""


class OwnRecordInput(BaseModel):
    """A post of our own, by its address or as `newest`; or our like or repost of the post at that address."""

    post_uri: str = Field(min_length=1)
    what: Literal["post", "like", "repost"] = "post"


class WaitingActInput(BaseModel):
    """A waiting act or commitment, by its number, or a scheduled post by its local date and time."""

    number: int = Field(default=0, ge=0)
    at: str = ""


@dataclass(frozen=True, slots=True)
class OwnPostTools:
    """The handlers, with their services; `timezone` is the owner's, `languages` those of the posts."""

    outbox: Outbox
    publisher: Publisher
    limits: ReplyLimits
    on_bluesky: BlueskyTools
    skills: Skills
    rng: random.Random
    clock: Clock
    timezone: str
    languages: Sequence[str]
    commitments: CommitmentQueue
    journal: Journal

    @property
    def words(self) -> ToolWords:
        """The texts for the model about these tools."""
        return self.on_bluesky.words

    async def post(self, args: PostInput, turn: Turn) -> ToolResult:
        """Publish a post, now or at its time. The outbox decides whether the time is acceptable."""
        replies = "as usual" if args.who is None else allowed_replies(args.who)
        if replies == "Unclear Audience":
            return self.words.error(replies)
        moment = self._moment(args.at) if args.at.strip() else None
        if args.at.strip() and moment is None:
            return self.words.error("Unclear Moment")
        older = await self._changed(args)
        if older and args.who is None and isinstance(older.body, PostBody):
            replies = older.body.replies
        if older and older.scheduled_for and moment is None:
            moment = parse_iso(older.scheduled_for)
        result = await self._publish(args.text, turn, replies=replies, moment=moment, older=older)
        stays = await self._told_waiting(older) if result.outcome.held else ""
        if result.is_error or not (moment or stays):
            return result
        when = spoken(local(moment, self.timezone)) if moment else ""
        if result.outcome.held:
            content = f"{result.content} {self.words.answer('If Approved', when=when, stays=stays)}"
        else:
            content = f"{self.words.answer('Scheduled', when=when)}\n{result.content}"
        return replace(result, content=content, told={"at": when})

    async def _changed(self, args: PostInput) -> Intent | None:
        """Return the waiting post that a post replaces: the one with the number, or a scheduled one with the same text.

        Raises `NotWaiting`, `ToolStopped`.
        """
        if args.changes:
            older, act = await self.outbox.waiting(str(args.changes))
            if older.kind != "post":
                answers = older.body.parent.uri if isinstance(older.body, ReplyBody) else ""
                self.words.stop("No Waiting Post", act=act, answers=answers)
            return older
        said = (one for one in await self.outbox.scheduled() if one.body.public_text == args.text.strip())
        return next(said, None) if args.at.strip() else None

    async def replaced_post(self, args: PostInput, _: Turn) -> OwnAct | None:
        """Return the waiting post that a post replaces; None if there is none."""
        try:
            older = await self._changed(args)
        except (NotWaiting, ToolStopped):
            return None
        act = await self._told_waiting(older)
        return await self._own_act(act, older, is_replaced=True) if act and older else None

    async def _told_waiting(self, intent: Intent | None) -> str:
        """Return the number and the text of an act that still waits; "" for any other."""
        try:
            return (await self.outbox.waiting(intent.id))[1] if intent else ""
        except NotWaiting:
            return ""

    async def _own_act(self, act: str, one: Intent, *, newest: bool = False, is_replaced: bool = False) -> OwnAct:
        """Return an act of our own, with the time at which it is sent if it waits."""
        expected = (await self.outbox.departures([one])).get(one.id)
        at, zone = one.scheduled_for or (expected.at if expected else ""), self.timezone
        when = spoken_ahead(local(parse_iso(at), zone), local(self.clock.now(), zone)) if at else ""
        state = "gone" if not one.is_unsent else "held" if one.state == "held" else "stuck" if expected else "waits"
        told = {"act": act, "state": state, "when": when, "newest": newest, "is_replaced": is_replaced}
        return OwnAct(self.words.answer("Own Act", **told), one.body.public_text)

    async def post_found(self, args: PictureInput, turn: Turn) -> ToolResult:
        """Publish a thought about what the turn shows: a picture, which is attached, or what was read."""
        shown = turn.subject.picture if isinstance(turn.subject, ExpressionTurn) else None
        return await self._publish(args.text, turn, shown, args.alt_text)

    async def _publish(
        self,
        said: str,
        turn: Turn,
        shown: ChosenPicture | None = None,
        alt_text: str = "",
        *,
        replies: AllowedReplies | Literal["as usual"] = "as usual",
        moment: datetime | None = None,
        older: Intent | None = None,
    ) -> ToolResult:
        subject, most = turn.subject, shown.room if shown else PORTABLE_MAX_GRAPHEMES
        text = fitted(bare_words(said) if shown else said, turn, most)
        if shown and (problem := text_problem(text, most)):
            return self.on_bluesky.answered(refused(problem), "posted", ends=False)
        if stands := await self.publisher.made_before("post", turn):
            return self.words.error("Done Before", stands=stands)
        if unfit := self._unfit(text, turn, shown):
            return self.words.error(unfit)
        if (
            isinstance(subject, ExpressionTurn)
            and not (subject.is_bounded or text_problem(text))
            and lacks_invitation(text, subject.said)
        ):
            advice = self.skills.section("expression", "Nothing To Answer").strip()
            if subject.revisions.ask_for_better(text, advice):
                revision = self._revision(text, advice, subject.tool)
                return ToolResult(revision, is_error=True, draft=text)
            if all(one.lower().split("-")[0] == "en" for one in self.languages):
                text = add_invitation(text, Prompts(self.skills).invitations("Direct"), most)
        published = await self.publisher.post(
            shown.credited(text) if shown else text,
            post_terms(
                text,
                turn,
                hold=shown.hold if shown else "",
                is_all=shown is None,
                older=older,
            ),
            pictures=(shown.described(alt_text),) if shown else (),
            replies=replies,
            scheduled_for=moment,
            replaces=older,
        )
        return self.on_bluesky.answered(published, "posted", ends=isinstance(subject, ExpressionTurn))

    def _unfit(self, text: str, turn: Turn, shown: ChosenPicture | None) -> str:
        """Return why `text` must not be posted in `turn`, a subsection of `Answers`; "" if it may."""
        if problem := post_problem(text, turn):
            return problem
        read = turn.subject.finding if isinstance(turn.subject, ExpressionTurn) else ""
        theirs = (*(shown.said if shown else ()), *((read,) if read else ()))
        if theirs and (is_verbatim(text, theirs) or any(gives_back(text, one) for one in theirs)):
            return "Only The Source"
        is_old = shown and isinstance(turn.subject, ExpressionTurn) and said_before(text, turn.subject.said)
        return "Said Before" if is_old else ""

    def _revision(self, draft: str, problem: str, tool: str) -> str:
        prompts = Prompts(self.skills)
        return self.skills.render(
            "expression",
            "Revision",
            draft=draft,
            problem=problem,
            tool=tool,
            choice_example=self.rng.choice(prompts.invitations("Choice")),
            bounded_example=self.rng.choice(prompts.invitations("Bounded")),
        )

    async def withdraw(self, args: WaitingActInput, _: Turn) -> ToolResult:
        """Withdraw the act or commitment with that number or time; else tell what waits."""
        meant, act = await self._waiting(args)
        if isinstance(meant, Intent):
            return await self._withdrawn(meant, act)
        await withdraw_for_owner(self.commitments, self.journal, meant, "withdrawn", "")
        return self._gone(act)

    async def waiting_act_meant(self, args: WaitingActInput, _: Turn) -> OwnAct | None:
        """Return the waiting act with that number or time; None if there is none."""
        try:
            one, act = await self._waiting(args)
            return await self._own_act(act, one) if isinstance(one, Intent) else OwnAct(act, one.source_reply_text)
        except (NotWaiting, ToolStopped):
            return None

    async def _waiting(self, args: WaitingActInput) -> tuple[Intent | QueuedCommitment, str]:
        """Return what is meant, and what it is, in our own words. Raises `NotWaiting`, `ToolStopped`."""
        commitments = await self.commitments.withdrawable()
        named = {
            number: self.words.answer("Commitment", number=number, what=one_line(title_of(one), _TITLE_CHARS))
            for number, one in commitments.items()
        }
        if args.number in commitments:
            return commitments[args.number], named[args.number]
        if args.number:
            return await self.outbox.waiting(str(args.number))
        scheduled = await self.outbox.scheduled()
        meant = [one for one in scheduled if args.at and _moment_of(one) == self._moment(args.at)]
        if len(meant) == 1:
            return await self.outbox.waiting(meant[0].id)
        moments = "; ".join(spoken(local(_moment_of(one), self.timezone)) for one in scheduled)
        if not (moments or named):
            self.words.stop("None Waits")
        return self.words.stop("Unclear Scheduled", moments=moments, commitments="; ".join(named.values()))

    async def _withdrawn(self, intent: Intent, act: str) -> ToolResult:
        await self.outbox.reject(intent.id, outcome="withdrawn")
        return self._gone(act)

    def _gone(self, act: str) -> ToolResult:
        return ToolResult(self.words.answer("Withdrawn", act=act), told={"told": ""})

    async def limit(self, args: LimitRepliesInput, turn: Turn) -> ToolResult:
        """Set who may reply to a post of ours."""
        if stands := await self.publisher.made_before("threadgate", turn):
            return self.words.error("Done Before", stands=stands)
        is_named = names_post(turn, args.post_uri, args.post_uri)
        terms = act_terms(turn, is_seen=is_named, is_order=is_named)
        asked_in = turn.subject.notification.uri if isinstance(turn.subject, ThreadTurn) else ""
        limited = await self.limits.limit(
            # NOTE(self): a small model names the owner's post of the turn if it means its own newest post.
            "" if args.post_uri == asked_in else args.post_uri,
            args.who,
            cause_id=terms.cause_id,
            by_owner=terms.by_owner,
            own_words=terms.own_words,
            hold=terms.hold,
        )
        if isinstance(limited, str):
            return self.words.error(limited)
        return self.on_bluesky.answered(self.publisher.published(limited), "limited", ends=False)

    async def delete(self, args: OwnRecordInput, turn: Turn) -> ToolResult:
        """Delete a post, reply, like or repost of ours. If it was not sent yet, it is withdrawn."""
        uri = await self._own_record(args, turn)
        if not uri:
            return self.words.error("No Post" if args.post_uri == NEWEST else "Not Your Record")
        terms = act_terms(turn, is_order=True)
        intent, act = await self.outbox.own_record(uri)
        if intent and not terms.hold and intent.is_unsent:
            return await self._withdrawn(intent, act)
        published = await self.publisher.delete(DeleteBody(uri=uri), terms)
        answered = self.on_bluesky.answered(published, "deleted", ends=False)
        content = f"{answered.content}\n{self.words.answer('Deletes', act=act or uri)}"
        return replace(answered, content=content, told={**answered.told, "act": act or uri})

    async def _own_record(self, args: OwnRecordInput, turn: Turn) -> str:
        """Return the uri of what is meant; "" if it is not ours. Raises `ToolStopped`."""
        did, at = self.publisher.atproto.did, parse_at_uri(args.post_uri)
        if at and at.repo == did and at.collection in {LIKE, REPOST}:
            return args.post_uri
        if args.what == "post":
            return await self.limits.own_post(args.post_uri)
        target = await self.on_bluesky.target(args.post_uri, turn)
        act = (await self.outbox.standing(args.what, target.uri)).active
        return record_uri(did, act) if act else ""

    async def own_record_meant(self, args: OwnRecordInput, turn: Turn) -> OwnAct | None:
        """Return the record that is meant; None for one that is not from the outbox.

        The call then names it by its address: another may be the newest once the judge has answered.
        """
        newest = await self.limits.own_post(NEWEST)
        try:
            uri = newest if args.post_uri == NEWEST else await self._own_record(args, turn)
        except ToolStopped:
            return None
        args.post_uri = uri or args.post_uri
        intent, act = await self.outbox.own_record(uri)
        return await self._own_act(act, intent, newest=uri == newest) if intent else None

    def _moment(self, at: str) -> datetime | None:
        """Return the moment that the model gave as a local date and time; None if it is not valid."""
        moment = parse_local_or_none(at, self.timezone)
        return moment and moment.replace(second=0, microsecond=0)


def _moment_of(intent: Intent) -> datetime:
    return parse_iso(intent.scheduled_for or intent.created_at)


def own_post_tools(tools: OwnPostTools) -> Sequence[Tool]:
    """Return the tools of the family."""
    words = tools.words
    return (
        words.tool(
            "bluesky_post",
            PostInput,
            "social",
            Provenance.SELF,
            telling_of("bluesky_post", tools.post, words),
            holdable=True,
            owner_fields=frozenset({"who", "at", "changes"}),
            own_act=tools.replaced_post,
            answers=ExpressionTurn,
        ),
        words.tool(
            POST_FOUND,
            PictureInput,
            "social",
            Provenance.STRANGER,
            tools.post_found,
            subject=ExpressionTurn,
            fits=lambda turn: isinstance(turn.subject, ExpressionTurn) and turn.subject.tool == POST_FOUND,
            holdable=True,
            answers=ExpressionTurn,
        ),
        request_tool(words, "bluesky_limit_replies", LimitRepliesInput, tools.limit),
        request_tool(words, "bluesky_delete_post", OwnRecordInput, tools.delete, own_act=tools.own_record_meant),
        request_tool(
            words,
            "withdraw_act",
            WaitingActInput,
            tools.withdraw,
            holdable=False,
            named_only=True,
            own_act=tools.waiting_act_meant,
        ),
    )
