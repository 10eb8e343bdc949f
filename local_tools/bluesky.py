"""The tools for Bluesky. Each is an input model and a small handler; the checks are in the publisher."""

import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import UnionType
from typing import Any

from pydantic import BaseModel

from adapters.atproto.client import Atproto
from adapters.atproto.records import POST, parse_at_uri
from adapters.atproto.richtext import parse_bsky_post_url
from adapters.atproto.types import StrongRef
from common.clock import Clock, span
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.provenance import Provenance
from common.settings import Approval
from common.text.graphemes import grapheme_len, leading_sentences
from common.text.untrusted import clean_value, one_line
from local_tools.bluesky_turns import (
    ActorInput,
    ActorListInput,
    BlueskyLooks,
    DidInput,
    ExitInput,
    LimitInput,
    MuteInput,
    PictureReplyInput,
    ReplyCheck,
    ReplyInput,
    SilenceInput,
    SubjectInput,
    act_terms,
    add_sentence,
    bare_account,
    corrected,
    fitted,
    gives,
    is_addressed,
    is_by_owner,
    is_told_to_owner,
    is_urgent,
    may_end_without_words,
    may_stay_silent,
    names_author,
    names_post,
    request_tool,
    telling_of,
    told_account,
)
from local_tools.words import REASON_CHARS, ToolWords, subject_of
from modules.lives.bluesky.publish import Publisher, refused, text_problem
from modules.lives.bluesky.reply_check import ReplyProblem, calls_for_answer
from modules.lives.bluesky.types import SILENCE_TOOL, Act, ActTerms, ExpressionTurn, Published, ThreadTurn
from modules.lives.messages.types import MessageTurn
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.services.agent.tools.executor import look_up_named
from modules.services.agent.tools.types import Effect, OwnerRequest, Tool, ToolResult, Turn
from modules.services.agent.verdicts import YesNoJudge
from modules.services.outbox import approval
from modules.services.outbox.bodies import DeleteBody, FollowBody
from modules.services.outbox.departures import SOON_S
from modules.services.outbox.types import Wait
from modules.services.peers.own_identity import FOLLOWS, find_own_record
from modules.services.peers.registry import github_url
from modules.services.pictures.choosing import ChosenPicture, bare_words
from modules.services.plans.events import tells_link
from modules.services.rights import store
from modules.services.rights.mute import change_mute, withdrawn_line
from modules.services.rights.policy import ASKED
from modules.services.skills.skills import Framer, Skills
from modules.services.work.types import Disposition

_SENDING_S = 45.0
"""How long an unfollow waits for a follow that is being sent; less than a tool may take."""


class BlueskyTools:
    """The handlers, with their services."""

    def __init__(
        self,
        atproto: Atproto,
        publisher: Publisher,
        looks: Callable[[ToolWords, Callable[..., ToolResult]], BlueskyLooks],
        judge: YesNoJudge,
        *,
        skills: Skills,
        rng: random.Random,
    ) -> None:
        self._atproto = atproto
        self._publisher = publisher
        self._check = ReplyCheck(publisher, judge)
        self._skills = skills
        self._rng = rng
        self.words = ToolWords(skills, "bluesky-tools")
        self.looks = looks(self.words, partial(self.framed, uri="Bluesky"))

    async def reply(self, args: ReplyInput, turn: Turn) -> ToolResult:
        return await self._publish_reply(args, turn)

    async def reply_picture(self, args: PictureReplyInput, turn: Turn) -> ToolResult:
        """Answer the post of the turn with the picture that was chosen for it."""
        shown = turn.subject.picture if isinstance(turn.subject, ThreadTurn) else None
        if shown is None:
            return self.words.error("No Picture")
        reply = ReplyInput(text=bare_words(args.text), impression=args.impression, wish=args.wish)
        return await self._publish_reply(reply, turn, shown, args.alt_text)

    async def _publish_reply(
        self, args: ReplyInput, turn: Turn, shown: ChosenPicture | None = None, alt_text: str = ""
    ) -> ToolResult:
        target = await self.target(args.post_uri, turn)
        most = shown.room if shown else PORTABLE_MAX_GRAPHEMES
        thread = turn.subject if isinstance(turn.subject, ThreadTurn) else None
        text = fitted(corrected(args.text, turn), turn, most)
        text = bare_account(text, thread.account) if thread else text
        if thread and thread.revisions.told_before and await self._check.problem(text, thread, turn):
            text = completed("", thread, most)
        if shown and (too_long := text_problem(text, most)):
            return self.answered(refused(too_long), "replied", ends=False)
        if f"@{self._atproto.handle}" in text.lower():
            return self.words.error("Own Handle", handle=self._atproto.handle)
        if thread and (instead := await self._instead_of(text, thread, turn, target)):
            return instead
        text = completed(text, thread, most) if thread else text
        is_given = shown is None and gives(text, turn)
        adds = is_given and names_post(turn, target.uri, args.post_uri)
        is_order = adds or (is_given and names_author(turn, target.uri))
        terms = act_terms(turn, is_order=is_order, is_given=is_order)
        published = await self._publisher.reply(
            shown.credited(text) if shown else text,
            target,
            replace(terms, urgent=terms.by_owner or is_urgent(turn)),
            root=thread.root if thread else None,
            pictures=(shown.described(alt_text),) if shown else (),
            is_unanswered=thread is not None and thread.is_unanswered and target == thread.notification.ref,
            adds=adds,
            is_asked=thread is not None and calls_for_answer(thread.notification.text),
            promise=args.promise,
        )
        if published.status == "liked_instead":
            liked = published.came("liked", published.reason)
            return self.words.end("Liked Instead", liked, is_error=True, reason=published.reason)
        answer = self.answered(published, "replied", ends=thread is not None)
        return replace(answer, outcome=replace(answer.outcome, impression=args.impression, wish=args.wish))

    async def _instead_of(self, text: str, thread: ThreadTurn, turn: Turn, target: StrongRef) -> ToolResult | None:
        """Return what happens instead of a reply with this text; None if it may be sent."""
        if thread.is_among_others and not thread.revisions.tried:
            return self.words.end("Others First", Disposition("unheard"), is_error=True)
        if problem := await self._check.problem(text, thread, turn):
            return await self._send_back(problem, thread, turn, target)
        if not told_account(text, thread.account) and thread.revisions.ask_for_account():
            return self.words.error("Account Missing", github_username=thread.account)
        instead = await self._peers_meanwhile(thread, turn, target)
        if instead is None and (problem := await self._check.problem(text, thread, turn)):
            return await self._send_back(problem, thread, turn, target)
        return instead

    async def _peers_meanwhile(self, thread: ThreadTurn, turn: Turn, target: StrongRef) -> ToolResult | None:
        """Check for new replies of peers before a reply is sent; show them to the model once.

        If a peer replies again after that, the reply becomes a like. Returns None if it may be sent.
        """
        revisions = thread.revisions
        posts = await thread.peers_since(target.uri) if thread.peers_since else []
        news = [post for post in posts if post.uri not in thread.seen]
        thread.seen.update({post.uri: post.ref for post in news})
        revisions.peers_since += [post.text for post in news]
        if thread.is_told_by_others:
            return await self._like_instead(self.words.answer("Told Already"), turn, target)
        # NOTE(self): replies of peers would taint a turn with only the owner's words; they are only compared with.
        if not news or is_by_owner(turn):
            return None
        names = ", ".join(dict.fromkeys(f"@{post.author.handle}" for post in news))
        if not revisions.shown_peers:
            revisions.shown_peers = True
            told = self.framed([{"author": post.author.handle, "text": post.text} for post in news], uri=target.uri)
            content = f"{self.words.answer('Peers Meanwhile', peers=names, **_ways_out(turn))}\n{told.content}"
            return ToolResult(content, is_error=True, provenance=told.provenance)
        return await self._like_instead(f"{names} replied just now", turn, target)

    async def _like_instead(self, reason: str, turn: Turn, target: StrongRef) -> ToolResult:
        liked = await self._publisher.like(target, act_terms(turn))
        act: Act = "silent" if liked.status == "blocked" else "liked"
        return self.words.end("Liked Instead", liked.came(act, reason), is_error=True, reason=reason)

    async def _send_back(self, code: ReplyProblem, thread: ThreadTurn, turn: Turn, target: StrongRef) -> ToolResult:
        """Return the result for a reply that must not be sent: a request for a better one, then a like or silence."""
        problem = self.words.answer(code)
        if thread.revisions.ask_for_better():
            return self.words.error("Reply Not Sent", problem=problem, **_ways_out(turn))
        liked = await self._publisher.like(target, act_terms(turn))
        act: Act = "silent" if liked.status == "blocked" else "liked"
        return self.words.end("No Reply", liked.came(act, f"no reply, twice: {problem}"), is_error=True)

    async def like(self, args: SubjectInput, turn: Turn) -> ToolResult:
        return await self._on_subject(
            args, turn, self._publisher.like, "liked", ends=isinstance(turn.subject, ThreadTurn)
        )

    async def repost(self, args: SubjectInput, turn: Turn) -> ToolResult:
        return await self._on_subject(args, turn, self._publisher.repost, "reposted", ends=False)

    async def exit(self, args: ExitInput, turn: Turn) -> ToolResult:
        thread = subject_of(turn, ThreadTurn)
        target = thread.notification.ref
        says = args.closing_type == "message"
        problem = await self._check.problem(args.closing_message, thread, turn, closing=True) if says else None
        if problem and not thread.revisions.asked_for_better:
            return await self._send_back(problem, thread, turn, target)
        if says and not problem and not self._publisher.has_spoken(thread.root):
            if not args.closing_message.strip():
                return self.words.error("No Closing Message")
            said = await self._publisher.reply(
                args.closing_message,
                target,
                replace(act_terms(turn), urgent=thread.is_owner),
                root=thread.root,
                is_unanswered=thread.is_unanswered,
            )
            like = None if said.status in {"accepted", "held"} else target
        else:
            like = target
        left = await self._publisher.conclude(
            thread.root, args.reason, like=like, terms=act_terms(turn), must_like=True
        )
        if left.status == "blocked":
            return self.answered(left, "left", ends=False)
        return self.words.end("Left", left.came("left", args.reason))

    async def silence(self, args: SilenceInput, turn: Turn) -> ToolResult:
        return self.words.end("Silent", Disposition("silent", reason=args.reason))

    async def data_request(self, args: SilenceInput, turn: Turn) -> ToolResult:
        """End the turn, because the model found that the post asks about its author's own data."""
        return self.words.end("Asked", Disposition(ASKED, reason=args.reason))

    async def _on_subject(
        self,
        args: SubjectInput,
        turn: Turn,
        act: Callable[[StrongRef, ActTerms], Awaitable[Published]],
        name: Act,
        *,
        ends: bool,
    ) -> ToolResult:
        target = await self.target(args.post_uri, turn)
        # NOTE(self): a like of the post that the turn is about answers it; it needs no order.
        is_answer = name == "liked" and isinstance(turn.subject, ThreadTurn) and target == turn.subject.notification.ref
        is_named = names_post(turn, target.uri, args.post_uri) or names_author(turn, target.uri)
        published = await act(target, act_terms(turn, is_seen=is_answer or is_named, is_order=is_named))
        return self.answered(published, name, ends=ends)

    def framed(self, result: object, *, uri: str) -> ToolResult:
        """Return what was read at `uri` as framed JSON: it is untrusted text, unless it is empty."""
        text = json.dumps(clean_value(result), ensure_ascii=False)
        content = Framer(self._skills, self._rng).frame("reading", author="several", uri=uri, text=text)
        return ToolResult(content, provenance=Provenance.STRANGER if result else None)

    async def target(self, named: str, turn: Turn) -> StrongRef:
        """Return the post meant, by its uri or its web address.

        In a turn about a post it must be one that was shown, or one whose address the owner's line gives. Raises
        `ToolStopped`.
        """
        if not isinstance(turn.subject, ThreadTurn):
            return await self._looked_up(named, turn)
        if not named:
            return turn.subject.notification.ref
        if named in turn.subject.seen:
            return turn.subject.seen[named]
        is_order = is_by_owner(turn) and names_post(turn, named, named)
        return await self._looked_up(named, turn) if is_order else self.words.stop("Not In Thread")

    async def _looked_up(self, named: str, turn: Turn) -> StrongRef:
        at, link = parse_at_uri(named), parse_bsky_post_url(named)
        account, rkey = (at.repo, at.rkey) if at and at.collection == POST else link or ("", "")
        if not account:
            self.words.stop("Post Unnamed")
        account = self.looks.account(account, turn)
        did = account if account.startswith("did:") else (await self._atproto.resolve_handle(account)).or_raise()
        found = (await self._atproto.get_posts([f"at://{did}/{POST}/{rkey}"])).or_raise()
        return found[0].ref if found else self.words.stop("Post Gone")

    def answered(self, published: Published, act: Act, *, ends: bool) -> ToolResult:
        """Return the result of an act that was given to the publisher."""
        if published.status == "blocked":
            problem, outcome = published.problem, published.came("silent", published.reason)
            ours = self.words.answer(problem.code, **problem.values) if problem else ""
            content = self.words.answer("Blocked", reason=ours or one_line(published.reason, REASON_CHARS))
            return ToolResult(content, is_error=True, ends_turn=published.ends, outcome=outcome)
        if published.status == "held":
            outcome = published.came(act, f"waits for the owner's approval: {published.reason}")
            reason = one_line(published.reason, REASON_CHARS)
            told = {"reason": reason, "number": published.number, "is_change": published.is_change}
            held = self.words.answer("Held", **told)
            return ToolResult(held, ends_turn=ends, outcome=outcome)
        when = self._when(published.wait)
        state = "changed, and queued" if published.is_change else "queued"
        queued = {"state": state, "number": published.number, "leaves": when, "uri": published.uri}
        content = json.dumps(queued, ensure_ascii=False)
        return ToolResult(content, ends_turn=ends, outcome=published.came(act, ""), told={"when": when})

    def _when(self, wait: Wait) -> str:
        """Return in words when a waiting act will be sent, and why not sooner."""
        if not wait.ends:
            return self.words.answer("Cannot Leave Yet", reason=wait.reason)
        if wait.seconds < SOON_S:
            return self.words.answer("Leaves Soon")
        return self.words.answer("Leaves Later", span=span(wait.seconds), reason=wait.reason)


def bluesky_tools(tools: BlueskyTools) -> Sequence[Tool]:
    """Return the tools of the family."""

    def tool(
        name: str,
        model: type[BaseModel],
        handler: Any,  # noqa: ANN401 - each handler takes its own input model
        needs: Provenance,
        *,
        effect: Effect = "act",
        subject: type | UnionType | None = None,
        holdable: bool | None = None,
        fits: Callable[[Turn], bool] | None = None,
        given: Mapping[type, frozenset[str]] | None = None,
        named_fields: frozenset[str] = frozenset(),
        answers: type | UnionType | None = None,
        closes: type | UnionType | None = None,
    ) -> Tool:
        holdable = effect == "act" and subject is None if holdable is None else holdable
        return tools.words.tool(
            name,
            model,
            "social",
            needs,
            handler,
            subject=subject,
            effect=effect,
            holdable=holdable,
            fits=fits,
            given=given,
            named_fields=named_fields,
            answers=answers,
            closes=closes,
        )

    look = partial(tool, effect="look")
    in_thread = partial(tool, subject=ThreadTurn)
    about_post = partial(tool, given={ThreadTurn: frozenset({"post_uri"})})
    named_post = partial(about_post, named_fields=frozenset({"post_uri"}))
    anyone, own, owner = Provenance.STRANGER, Provenance.SELF, Provenance.OWNER
    silent = ThreadTurn | ExpressionTurn
    return (
        about_post("bluesky_reply", ReplyInput, tools.reply, anyone, answers=ThreadTurn),
        named_post("bluesky_like", SubjectInput, tools.like, anyone, fits=may_end_without_words, closes=ThreadTurn),
        named_post("bluesky_repost", SubjectInput, telling_of("bluesky_repost", tools.repost, tools.words), own),
        in_thread(
            "bluesky_reply_picture", PictureReplyInput, tools.reply_picture, anyone, holdable=True, answers=ThreadTurn
        ),
        in_thread("graceful_exit", ExitInput, tools.exit, anyone, fits=may_end_without_words, closes=ThreadTurn),
        tool(SILENCE_TOOL, SilenceInput, tools.silence, anyone, subject=silent, fits=may_stay_silent, closes=silent),
        tool(
            "data_request",
            SilenceInput,
            tools.data_request,
            anyone,
            fits=is_addressed,
            holdable=False,
            answers=ThreadTurn | MessageTurn,
        ),
        look("bluesky_get_timeline", LimitInput, tools.looks.timeline, owner),
        look("bluesky_get_notifications", LimitInput, tools.looks.notifications, own, fits=is_told_to_owner),
        look("bluesky_get_profile", ActorInput, tools.looks.profile, anyone),
        look("bluesky_get_followers", ActorListInput, tools.looks.followers, anyone),
        look("bluesky_get_follows", ActorListInput, tools.looks.follows, anyone),
    )


def _ways_out(turn: Turn) -> dict[str, bool]:
    """Return in which ways, besides a reply, a turn about a post may end, as values for an answer."""
    return {"may_like": may_end_without_words(turn), "may_be_silent": may_stay_silent(turn)}


def completed(text: str, thread: ThreadTurn, most: int) -> str:
    """Return `text` with the links of what the turn made, and to our account on GitHub if that is due, without words.

    Its last sentences are dropped to make room, but for no link except the last one. A plan stands for its workspace.
    """
    account = "" if told_account(text, thread.account) else github_url(thread.account)
    room = most - grapheme_len(account) - 1 if account else most
    made = [one for one in thread.revisions.made if one.kind != "workspace_made"] or thread.revisions.made
    links = [one.url for one in made] or [url for url in (thread.revisions.found,) if url]
    text = _with_link(text, links[-1], room) if links else text
    for url in links[:-1]:
        more = f"{text} {url}"
        text = text if tells_link(text, url) or grapheme_len(more) > room else more
    return add_sentence(text, account, most) if account else text


def _with_link(text: str, url: str, most: int) -> str:
    if tells_link(text, url):
        return text
    prose = text.rstrip()
    if grapheme_len(prose) + 1 + grapheme_len(url) > most:
        prose = leading_sentences(prose, most - grapheme_len(url) - 1)
    return f"{prose} {url}".strip()


@dataclass(frozen=True, slots=True)
class MeantAccount:
    """The account of an act for the owner; `handle` is "" if it cannot be read.

    `is_named`: the owner's words name it, or it is the owner's own account.
    """

    did: str
    handle: str
    is_named: bool


class MeantAccounts:
    """Finds the account of an act for the owner: one that the owner's words name, or the owner's own.

    Any other is accepted only for an act that waits for the owner's approval: by the turn's `hold`, or by `approval`.
    """

    def __init__(self, atproto: Atproto, owner_did: str, approval: Approval, words: ToolWords) -> None:
        self._atproto = atproto
        self._owner_did = owner_did
        self._approval = approval
        self._words = words

    async def find(self, account: str, turn: Turn, *, is_shown: bool = True) -> MeantAccount:
        """Return the account of the handle or DID `account`. Raises `ToolStopped`, `Unable`, `Undone`.

        The owner's words of the turn name it by DID, by a mention that their program marked, or by a handle, which
        stands for the account that had it when the turn began. `is_shown`: the act goes through the outbox, so it can
        wait for the owner's approval, which shows the account's name; then "me" may also mean the owner's own account.
        """
        if turn.request:
            await look_up_named(turn.request, partial(self._atproto.resolve_handle, fresh=True))
        did = await self._resolved(account, turn.request)
        is_owner, is_me = did == self._owner_did, did == self._atproto.did
        is_named = is_shown if is_owner else turn.request is not None and not is_me and turn.request.names(did)
        waits = is_shown and self._approval == "drafts" and not is_me
        if not (is_named or waits or turn.hold):
            self._words.stop("Not Named")
        name = account.lower()
        if "." in name and not name.startswith("did:"):
            return MeantAccount(did, name, is_named)
        profile = (await self._atproto.get_profile(did)).or_else(None)
        return MeantAccount(did, profile.handle if profile else "", is_named)

    async def _resolved(self, account: str, request: OwnerRequest | None) -> str:
        known = account if account.startswith("did:") else request and request.named.get(account.lower())
        return known or (await self._atproto.resolve_handle(account, fresh=True)).or_raise()


@dataclass(slots=True)
class AccountTools:
    """The handlers. `on_bluesky` reports the result of an act."""

    atproto: Atproto
    publisher: Publisher
    on_bluesky: BlueskyTools
    meant: MeantAccounts
    database: Database
    journal: Journal
    clock: Clock

    async def follow(self, args: DidInput, turn: Turn) -> ToolResult:
        """Follow an account."""
        meant = await self.meant.find(args.did, turn)
        body = FollowBody(did=meant.did, handle=meant.handle)
        published = await self.publisher.follow(body, act_terms(turn, is_seen=meant.is_named, is_order=meant.is_named))
        followed = self.on_bluesky.answered(published, "followed", ends=False)
        is_muted = await self.database.run(partial(store.muted_among, dids=[meant.did]))
        muted = self.on_bluesky.words.answer("Muted Still") if is_muted else ""
        content = f"{followed.content}\n{muted}".strip()
        return replace(followed, content=content, told={**followed.told, "muted": muted})

    async def unfollow(self, args: DidInput, turn: Turn) -> ToolResult:
        """Delete our follow of an account; withdraw it if it was not sent yet."""
        meant = await self.meant.find(args.did, turn)
        looked = await find_own_record(self.atproto, FOLLOWS, lambda record: record.value.get("subject") == meant.did)
        if (found := looked.or_raise()) is None:
            # NOTE(self): a withdrawal happens at once and cannot be held, so others' words must not cause it.
            if turn.hold and not turn.is_ordered:
                self.on_bluesky.words.stop("Not Named")
            if await self._withdraw_follow(meant):
                return self.on_bluesky.words.done("Follow Withdrawn")
        uri = found.uri if found else await self._sent_follow(meant)
        body = DeleteBody(uri=uri, did=meant.did, handle=meant.handle)
        published = await self.publisher.delete(body, act_terms(turn, is_seen=meant.is_named, is_order=meant.is_named))
        return self.on_bluesky.answered(published, "unfollowed", ends=False)

    async def _withdraw_follow(self, meant: MeantAccount) -> bool:
        """Withdraw a follow that was not sent yet; return whether there was one."""
        withdrawn = await self.database.run(partial(approval.withdraw_follow, did=meant.did))
        for entry in withdrawn:
            await self.journal.record(entry)
        return bool(withdrawn)

    async def _sent_follow(self, meant: MeantAccount) -> str:
        """Return the record of a follow that is being sent, once it is there. Raises `ToolStopped` if none is."""
        outbox = self.publisher.outbox
        follows = await outbox.by_target("follow", meant.did)
        leaving = next((one for one in follows if one.state in {"pending", "sending"}), None)
        sent = await outbox.settled(leaving.id, _SENDING_S) if leaving else None
        if sent and sent.state in {"pending", "sending"}:
            self.on_bluesky.words.stop("Follow Leaves")
        return sent.result_uri if sent and sent.result_uri else self.on_bluesky.words.stop("Not Followed")

    async def mute(self, args: MuteInput, turn: Turn) -> ToolResult:
        """Mute or unmute an account, as `soul mute` does. The network is not told, so the outbox is not needed."""
        meant = await self.meant.find(args.did, turn, is_shown=False)
        change = partial(change_mute, did=meant.did, now=self.clock.now(), off=args.off, handle=meant.handle)
        withdrawn, entries = await self.database.run(change)
        for entry in entries:
            await self.journal.record(replace(entry, trigger_uri=entry.trigger_uri or turn.cause_id))
        words, who = self.on_bluesky.words, f"@{meant.handle}" if meant.handle else meant.did
        wants = bool(args.off and await self.database.run(partial(store.no_reply_among, dids=[meant.did])))
        return (
            words.done("Unmuted", no_reply="yes" if wants else "")
            if args.off
            else words.done("Muted", who=who, withdrawn=withdrawn_line(withdrawn))
        )


def account_tools(tools: AccountTools, skills: Skills) -> Sequence[Tool]:
    """Return the tools, for the owner only."""
    words = ToolWords(skills, "bluesky-tools")
    family = (
        request_tool(words, "bluesky_follow", DidInput, tools.follow),
        request_tool(words, "bluesky_unfollow", DidInput, tools.unfollow),
        request_tool(words, "mute_account", MuteInput, tools.mute, holdable=False, named_only=True),
    )
    return [replace(tool, needs_name=True) for tool in family]
