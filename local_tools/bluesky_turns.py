"""Shared parts of the Bluesky tools: their inputs, the facts of the turn, checks of a reply, and look-ups.

Their descriptions are in `skills/bluesky-tools`; an empty input means "the one given". All results of a look-up are
untrusted text.
"""

import dataclasses
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, Field

from adapters.atproto.client import Atproto
from adapters.atproto.records import parse_at_uri
from adapters.atproto.types import Actor, ListPage, Post, Profile
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.provenance import Provenance
from common.result import ApiResult
from common.schemas import Impression
from common.text.closings import asks
from common.text.echo import is_loop
from common.text.graphemes import grapheme_len, leading_sentences
from common.text.strings import account_name, is_given_in
from local_tools.words import ToolWords
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.reply_check import (
    ReplyProblem,
    SuspectedEcho,
    repeats,
    reply_problem,
    sayable,
    suspected_echo,
    tells,
    unsayable,
)
from modules.lives.bluesky.thread import shown_under
from modules.lives.bluesky.types import ActTerms, ExpressionTurn, ThreadTurn
from modules.lives.messages.types import MessageTurn
from modules.lives.rhythm import OwnTimeTurn
from modules.services.agent.tools.policy import edited, is_post_given, is_said, is_worded, post_addresses
from modules.services.agent.tools.types import OwnAct, Tool, ToolResult, Turn
from modules.services.agent.verdicts import YesNoJudge
from modules.services.moderation import Moderation
from modules.services.outbox.types import Intent
from modules.services.peers.registry import tells_username
from modules.services.rights.preferences import Preferences

AccountName = Annotated[str, AfterValidator(account_name)]
"""A handle, a login or a DID as a model gives it: alone, after an @, or as the address of a profile."""


class PictureInput(BaseModel):
    """A post or a reply with a picture."""

    text: str
    alt_text: str = ""


class PictureReplyInput(PictureInput):
    """A reply with a picture."""

    impression: Impression = ""
    wish: str = ""


class ReplyInput(BaseModel):
    """A reply. Without `post_uri` it answers the post of this turn."""

    text: str
    post_uri: str = ""
    promise: str = ""
    impression: Impression = ""
    wish: str = ""


class SubjectInput(BaseModel):
    """A post to like or repost, by its uri or its web address. Empty means the post of this turn."""

    post_uri: str = ""


class ExitInput(BaseModel):
    """The end of a conversation."""

    closing_type: Literal["like", "message"] = "like"
    reason: str
    closing_message: str = ""


class SilenceInput(BaseModel):
    """The reason for saying nothing."""

    reason: str


class DidInput(BaseModel):
    """An account."""

    did: AccountName


class MuteInput(DidInput):
    """An account to mute, or with `off` to unmute."""

    off: bool = False


class ActorInput(BaseModel):
    """An account."""

    actor: AccountName


class ActorListInput(ActorInput):
    """A list that belongs to an account."""

    limit: int = Field(default=50, ge=1, le=100)


class LimitInput(BaseModel):
    """The number of items to read."""

    limit: int = Field(default=20, ge=1, le=100)


@dataclass(frozen=True, slots=True)
class ReplyCheck:
    """Checks replies. `publisher` knows where we have replied; `judge` is asked once about each text."""

    publisher: Publisher
    judge: YesNoJudge

    async def problem(self, text: str, thread: ThreadTurn, turn: Turn, *, closing: bool = False) -> ReplyProblem | None:
        """Return why this text must not be posted in the thread; None if it may. Raises `Fatal`.

        The owner always gets an answer: the second draft for them is refused only for words of our prompt, or for a
        claim to be a person. Mere thanks may be sent to the owner, and at the end of a conversation; if we have replied
        before and were asked for nothing, the publisher sends a like instead.
        """
        if thread.is_owner and thread.revisions.asked_for_better:
            return unsayable(text, thread.scaffold, thread.said)
        if repeats(text, thread.notification.text):
            return "repeats them"
        if any(repeats(text, told) for told in thread.revisions.told_done):
            return "repeats"
        asked, spoken = thread.notification.text, self.publisher.has_spoken(thread.root)
        may_thank = closing or thread.is_owner or spoken
        meanwhile = thread.revisions.peers_since
        said = (*thread.said, *meanwhile)
        # NOTE(self): what we made is news, even if the text is similar to that of others who made a part of it.
        peers_said = () if thread.revisions.made else (*thread.peers_said, *meanwhile)
        others = (*thread.others_said, *meanwhile)
        if found := reply_problem(text, said, thread.scaffold, may_thank=may_thank, asked=asked, others_said=others):
            return found
        # NOTE(self): whoever asks may be told what we told somebody else, but not what others have told already.
        suspected = suspected_echo(text, (asked, *others) if asks(asked) else said, peers_said)
        return suspected.problem if suspected and await self._is_echo(text, suspected, thread, turn) else None

    async def _is_echo(self, text: str, suspected: SuspectedEcho, thread: ThreadTurn, turn: Turn) -> bool:
        """Return whether the judge confirms that `text` only repeats the suspected post."""
        judged = thread.revisions.judged
        if (text, suspected) not in judged:
            judged[text, suspected] = await self.judge.is_same(text, suspected.post, turn)
        return judged[text, suspected]


Handler: TypeAlias = Callable[[Any, Turn], Awaitable[ToolResult]]


def fitted(text: str, turn: Turn, most: int = PORTABLE_MAX_GRAPHEMES) -> str:
    """Return `text`, or its leading whole sentences if the model failed to shorten it once already.

    Small models cannot count; a thought without its last sentence is better than none. A loop stays unchanged.
    """
    subject = turn.subject
    if isinstance(subject, ThreadTurn | ExpressionTurn) and grapheme_len(text) > most and not is_loop(text):
        return text if subject.revisions.ask_for_shorter() else leading_sentences(text, most) or text
    return text


def bare_account(text: str, account: str) -> str:
    """Return `text` without the @ before `account`, our name on GitHub: it would name somebody else on Bluesky."""
    return re.sub(rf"`?@{re.escape(account)}`?(?![\w-]|\.\w)", f"`{account}`", text) if account else text


def told_account(text: str, account: str) -> bool:
    """Return whether `text` mentions `account`, our name on GitHub; also True if `account` is "" and none is due."""
    return not account or tells_username(text, account)


def add_sentence(text: str, sentence: str, most: int) -> str:
    """Return `text` and `sentence` in at most `most` characters; the last sentences of `text` are dropped for it.

    If not even the first sentence of `text` fits beside `sentence`, return `text` alone.
    """
    whole = f"{text.rstrip()} {sentence}"
    if grapheme_len(whole) <= most:
        return whole
    leading = leading_sentences(text, most - grapheme_len(sentence) - 1)
    return f"{leading.rstrip()} {sentence}" if leading else text


def is_urgent(turn: Turn) -> bool:
    """Return whether the acts of a turn skip the pacing: it answers the owner."""
    return turn.provenance is Provenance.OWNER or (isinstance(turn.subject, ThreadTurn) and turn.subject.is_owner)


def is_by_owner(turn: Turn) -> bool:
    """Return whether a turn holds only the owner's words."""
    return turn.provenance is Provenance.OWNER


def is_told_to_owner(turn: Turn) -> bool:
    """Return whether the result of a turn is told to the owner: they asked for it, or it is one of the SOUL's own."""
    return turn.asked_by is Provenance.OWNER or isinstance(turn.subject, OwnTimeTurn)


def gives(text: str, turn: Turn) -> bool:
    """Return whether the owner's line gives this text as the text of a post.

    The line may continue after it if a judge found that it asks for the act; its other words may not be meant for the
    public. The words of a question that the line answers with yes count too.
    """
    if turn.request is None:
        return False
    line = turn.request.text
    is_begun = f": {' '.join(text.split())}" in " ".join(line.split())
    is_known = turn.is_ordered and is_begun and is_worded(text, line)
    return is_given_in(text, line) or is_known or is_worded(text, turn.request.question)


def names(turn: Turn, *labels: str) -> bool:
    """Return whether the owner's line names the target of an act by one of the `labels`.

    A label is an address, a name or a number; it must occur as a whole word, in any case.
    """
    return turn.request is not None and any(is_said(one, turn.request.text) for one in labels if one)


def names_post(turn: Turn, uri: str, *labels: str) -> bool:
    """Return whether the owner's line gives the address of the post `uri`, or one of the other `labels` of it."""
    return turn.request is not None and names(turn, *post_addresses(turn.request, uri), *labels)


def names_author(turn: Turn, uri: str) -> bool:
    """Return whether the owner's line names the author of the post `uri`, and a judge found that it asks for the act.

    Others' words may have selected the post, so this holds for one post of an account, and for none of which the line
    gives the address of a post.
    """
    post, request = parse_at_uri(uri), turn.request
    if not (turn.is_ordered and request and post and request.names(post.repo)):
        return False
    if post.repo in request.authors or is_post_given(request, post.repo):
        return False
    request.authors.add(post.repo)
    return True


def act_terms(turn: Turn, *, is_seen: bool = True, is_order: bool = False, is_given: bool = False) -> ActTerms:
    """Return the terms under which an act is sent.

    Args:
        turn: the turn that does it.
        is_seen: whether the owner gave its text, or named its target if it has none.
        is_order: whether their line gives all of it. It is then the owner's act although the turn holds others' words,
            if a judge found that the line asks for it.
        is_given: whether the owner gave its text and named its target, if it has one.

    """
    is_order = is_order and turn.is_ordered
    by_owner = is_order or (is_by_owner(turn) and not turn.hold)
    hold, is_for_owner = "" if is_order else turn.hold, turn.asked_by is Provenance.OWNER
    terms = ActTerms(turn.cause_id, by_owner=by_owner, own_words=by_owner and not is_seen, hold=hold)
    is_given = is_given and by_owner
    return replace(terms, is_given=is_given, is_for_owner=is_for_owner, provenance=turn.rests_on)


def post_terms(text: str, turn: Turn, *, hold: str = "", is_all: bool = True, older: Intent | None = None) -> ActTerms:
    """Return the terms under which a post with this text is sent.

    `hold` is why it must wait, if the turn gives no reason; `is_all` says that it has only its text: no picture, and no
    post that it answers; `older` is the waiting post that it replaces. Unless that waits for approval, it may keep its
    words, also with words of the owner's line put in if a judge found that the line asks for it.
    """
    is_given = is_all_theirs = is_seen = gives(text, turn)
    if older and older.state != "held":
        before, line = older.body.public_text, turn.request.text if turn.request else ""
        is_kept = text == before or (turn.is_ordered and bool(edited(text, line, before)))
        is_all_theirs, is_seen = is_given or is_kept, is_given or (is_kept and not older.own_words)
    is_plain = is_given and is_all and older is None
    terms = act_terms(turn, is_seen=is_seen, is_order=is_all_theirs and is_all, is_given=is_plain)
    return replace(
        terms,
        cause_id=turn.cause_id or turn.loop,
        urgent=terms.by_owner or is_urgent(turn),
        hold=terms.hold or hold,
    )


def post_problem(text: str, turn: Turn) -> Literal["Post Not Sent", "Post Loops"] | None:
    """Return why `text` must not be posted, as the name of the answer for the model; None if it may.

    It holds words that only our own prompt has, except those that were said in the thread or given to be posted; or it
    repeats itself in a loop that the owner did not give.
    """
    subject = turn.subject
    if is_loop(text) and not gives(text, turn):
        return "Post Loops"
    if isinstance(subject, ExpressionTurn):
        return "Post Not Sent" if subject.scaffold.is_in(text) else None
    if isinstance(subject, OwnTimeTurn):
        is_private = any(tells(text, one) and not is_given_in(text, one) for one in subject.private)
        return "Post Not Sent" if is_private else None
    if not isinstance(subject, ThreadTurn):
        return None
    return "Post Not Sent" if subject.scaffold.is_in(text, (*subject.said, subject.notification.text)) else None


def telling_of(name: str, handler: Handler, words: ToolWords) -> Handler:
    """Return a handler that also records, in a turn about a post, that an act was tried, and reports it as done.

    So the model can tell the owner the result.
    """

    async def noted(arguments: Any, turn: Turn) -> ToolResult:  # noqa: ANN401 - each handler takes its own input model
        subject = turn.subject
        if isinstance(subject, ThreadTurn):
            subject.revisions.tried = True
        result = await handler(arguments, turn)
        if turn.made is not None and (intent_id := result.outcome.intent_id):
            turn.made.add(intent_id)
        if not isinstance(subject, ThreadTurn) or result.is_error or result.outcome.held:
            return result
        values = {key: ", ".join(value) if isinstance(value, list) else value for key, value in arguments}
        # NOTE(self): what was done without an intent has no time at which it leaves.
        did, known = (name, values) if result.outcome.intent_id else ("At Once", {"told": result.content})
        told = words.act_done(did, **{**known, **result.told})
        subject.revisions.told_done.append(told)
        return replace(result, content=told)

    return noted


def request_tool(
    words: ToolWords,
    name: str,
    model: type[BaseModel],
    handler: Handler,
    *,
    holdable: bool = True,
    named_only: bool = False,
    own_act: Callable[[Any, Turn], Awaitable[OwnAct | None]] | None = None,
) -> Tool:
    """Return a tool for the owner only, in private and by a public post."""
    served, owner = telling_of(name, handler, words), Provenance.OWNER
    return words.tool(name, model, "social", owner, served, holdable=holdable, named_only=named_only, own_act=own_act)


def corrected(text: str, turn: Turn) -> str:
    """Return `text` without the sentences that must not be sent, if the model was told of them once already."""
    thread = turn.subject
    if not isinstance(thread, ThreadTurn) or not thread.revisions.asked_for_better:
        return text
    return sayable(text, thread.scaffold, thread.said) or text


def may_end_without_words(turn: Turn) -> bool:
    """Return whether a like may end a turn: no act was tried in it that has to be reported to the post's author."""
    subject = turn.subject
    return not isinstance(subject, ThreadTurn) or subject.is_told_by_others or not subject.revisions.tried


def is_addressed(turn: Turn) -> bool:
    """Return whether a turn is about what a person wrote on Bluesky: a post, or direct messages."""
    return isinstance(turn.subject, ThreadTurn | MessageTurn)


def may_stay_silent(turn: Turn) -> bool:
    """Return whether a turn may end in silence: it is not about a post of the owner's."""
    return not (isinstance(turn.subject, ThreadTurn) and turn.subject.is_owner)


def note_accounts(turn: Turn, shown: Iterable[Actor | Profile]) -> None:
    """Record the accounts that a turn is shown: from then on their handles stand for them."""
    turn.accounts.update({one.handle.lower(): one.did for one in shown})


@dataclass(slots=True)
class BlueskyLooks:
    """The handlers, with their services; `framed` puts what was read into a frame."""

    atproto: Atproto
    preferences: Preferences
    moderation: Moderation
    words: ToolWords
    framed: Callable[[object], ToolResult]

    async def timeline(self, args: LimitInput, turn: Turn) -> ToolResult:
        page = (await self.atproto.get_timeline(limit=args.limit)).or_raise()
        return self.framed_posts(await self.shown((item.post for item in page.items), turn))

    def account(self, named: str, turn: Turn) -> str:
        """Return the handle or DID by which an account may be looked up. Raises `ToolStopped`.

        A handle is looked up at an address that its holder owns: beside untrusted text, an invented one could leak what
        the turn has seen. A handle that the turn already knows stands for its account, and is not looked up.
        """
        if turn.provenance >= Provenance.SELF or named.startswith("did:plc:") or names(turn, named):
            return named
        known = {**turn.accounts, self.atproto.handle.lower(): self.atproto.did}
        return known.get(named.lower()) or self.words.stop("By Did")

    def framed_posts(self, told: Sequence[Mapping[str, object]]) -> ToolResult:
        """Return posts in a frame. Our own posts that answer and quote nobody hold nobody else's words."""
        framed = self.framed(told)
        is_own = all(one.get("is_you") and not one.keys() & {"beside", "reply_to"} for one in told)
        return replace(framed, provenance=None) if is_own else framed

    async def shown(self, posts: Iterable[Post], turn: Turn) -> list[dict[str, object]]:
        """Return those of these posts that may be shown in a prompt, each in brief."""
        await self._know_choices()
        seen = [post for post in posts if not self.moderation.why_unseen(post)]
        quoted = [post.quoted for post in seen if post.quoted]
        allowed = await self.allowed(post.author for post in (*seen, *quoted))
        readable = {one.uri for one in quoted if one.author.did in allowed and not self.moderation.why_unseen(one)}
        told = [post for post in seen if post.author.did in allowed]
        note_accounts(turn, (post.author for post in told))
        return [self._brief(post, readable) for post in told]

    async def _know_choices(self) -> None:
        """Refresh our account's moderation choices if it is time. Raises `ToolStopped` if they were never read."""
        await self.moderation.refresh()
        if not self.moderation.is_known:
            self.words.stop("Choices Unknown")

    async def readable_people(self, people: Iterable[Profile]) -> list[Profile]:
        """Return those of these accounts whose descriptions may be shown in a prompt."""
        await self._know_choices()
        seen = [one for one in people if not self.moderation.why_unseen(one)]
        allowed = await self.allowed(seen)
        return [one for one in seen if one.did in allowed]

    async def notifications(self, args: LimitInput, turn: Turn) -> ToolResult:
        page = (await self.atproto.get_notifications(limit=args.limit)).or_raise()
        await self._know_choices()
        keys = ("uri", "cid", "kind", "text", "indexed_at")
        told = [item for item in page.notifications if not self.moderation.why_unseen(item)]
        shown = await self.allowed(item.author for item in told)
        note_accounts(turn, (item.author for item in told))
        return self.framed(
            [
                {**self._named(item.author), **{key: getattr(item, key) for key in keys}}
                for item in told
                if item.author.did in shown
            ]
        )

    async def allowed(self, authors: Iterable[Actor | Profile]) -> frozenset[str]:
        """Return the DIDs of those whose posts may be shown in a prompt, and record our relation to each."""
        met = list(authors)
        self.moderation.note(*met)
        return await self.preferences.readable({author.did for author in met})

    async def profile(self, args: ActorInput, turn: Turn) -> ToolResult:
        profile = (await self.atproto.get_profile(self.account(args.actor, turn))).or_raise()
        self.moderation.note(profile)
        framed = self.framed(dataclasses.asdict(profile) | self.own_mark(profile.did))
        theirs = () if profile.did == self.atproto.did else (profile.display_name, profile.description)
        return framed if any(theirs) or profile.labels else replace(framed, provenance=None)

    async def followers(self, args: ActorListInput, turn: Turn) -> ToolResult:
        return await self._actors(self.atproto.get_followers, args, turn)

    async def follows(self, args: ActorListInput, turn: Turn) -> ToolResult:
        return await self._actors(self.atproto.get_follows, args, turn)

    async def _actors(
        self, get: Callable[..., Awaitable[ApiResult[ListPage[Actor]]]], args: ActorListInput, turn: Turn
    ) -> ToolResult:
        page = (await get(self.account(args.actor, turn), limit=args.limit)).or_raise()
        note_accounts(turn, page.items)
        return self.framed([dataclasses.asdict(actor) | self.own_mark(actor.did) for actor in page.items])

    def _brief(self, post: Post, readable: Collection[str]) -> dict[str, object]:
        """Return a post in brief; `readable` are the quoted posts that may be shown."""
        quoted = post.quoted if post.quoted and post.quoted.uri in readable else None
        beside = shown_under(replace(post, quoted=quoted), self.atproto.did, whole=True)
        return {
            "uri": post.uri,
            "cid": post.cid,
            **self._named(post.author),
            "text": post.text,
            **(self._answers(post.reply.parent.uri) if post.reply else {}),
            **({"beside": beside} if beside else {}),
            "likes": post.like_count,
            "replies": post.reply_count,
            "indexed_at": post.indexed_at,
        }

    def _answers(self, uri: str) -> dict[str, object]:
        at = parse_at_uri(uri)
        return {"reply_to": uri, **({"reply_to_you": True} if at and at.repo == self.atproto.did else {})}

    def _named(self, author: Actor) -> dict[str, object]:
        return {"author": author.handle, "author_did": author.did, **self.own_mark(author.did)}

    def own_mark(self, did: str) -> dict[str, object]:
        """Return the field which says that an account is our own; none for any other."""
        return {"is_you": True} if did == self.atproto.did else {}
