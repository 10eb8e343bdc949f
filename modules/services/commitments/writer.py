"""Asks the model about commitments: to find them in replies, to write a body for a short one, and to announce one.

Each call is one request with a deadline at the gateway; if it fails, nothing changes. Commitments that are found go to
the queue, and a fulfilled one is announced once, where it was made.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import regex
from pydantic import ValidationError

from adapters.atproto.records import parse_at_uri
from common.clock import Clock
from common.errors import Fatal, SoulError
from common.facts import QuestionFacts, TurnFacts
from common.schemas import (
    Commitment,
    CommitmentType,
    CommitmentValidation,
    Dropped,
    ExtractedCommitment,
    in_words,
    normalize_commitment_fields,
    validate_commitments,
)
from common.text.echo import is_loop
from common.text.graphemes import fit_post_text
from common.text.markdown import outline, unwrapped
from common.text.patterns import lazy_regex
from common.text.strings import normalize_quotes
from common.text.untrusted import clean, one_line
from common.wording import LineKind
from modules.runtime.events import Publish, discard
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import ChatResult, Message
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.scheduler.scheduler import Attention
from modules.services.agent.one_sentence import SentenceAsker, SentenceQuestion, fitting_words
from modules.services.commitments.acts import CommitmentsReady, announcement_target, origin
from modules.services.commitments.naming import (
    CommitmentRequest,
    CommitmentSource,
    Enqueued,
    Progress,
    QueuedCommitment,
    extract_fulfillment_url,
    read_params,
    resolve_repo,
)
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.texts import done_line, done_title
from modules.services.outbox.bodies import RecordRef, ReplyBody, SpaceChatBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction
from modules.services.skills.skills import SYSTEM_SECTION, Framer, Skills
from modules.services.voice_phrases import FORMS, Phrase

SKILL = "commitments"
THIN_CHARS = 80
RICH_CHARS = 50

_EXTRACTION_TOKENS = 500
_BODY_TOKENS = 1_500
_POST_TOKENS = 300
_TITLE_CHARS = 300
_REASON_CHARS = 1_000
_SHOWN_CHARS = 100
_TELL = "tell_it_is_done"
_EXEMPT = r"""(?:
    admit | say | be | note | ask | disagree | stop | wait | stay | leave\ (?:it|that) | take\ that | push\ back
  | concede | know | see | add | think | never | not
)\b"""
_PROMISE = lazy_regex(
    rf"""
      \bi(?:'ll|\ will|\ shall)\ (?:(?:also|gladly|happily|then|now|just)\ )*(?!{_EXEMPT})\p{{L}}
    | \blet\ me\ (?!{_EXEMPT})\p{{L}}
    | \bi(?:'m|\ am)\ (?:just\ |now\ )?(?:going\ to|about\ to|happy\ to|opening|creating|drafting|filing|submitting
        |posting|commenting|writing|documenting|putting)\b
    | \bi(?:'d|\ would)\ (?:be\ (?:happy|glad)\ to|like\ to|love\ to)\ (?!{_EXEMPT})\p{{L}}
    | \bi\ (?:want\ to|plan\ to|intend\ to|promise|commit)\b
    | ^\W*(?:will\ do|on\ it|opening|creating|filing|drafting|writing|posting)\b
    | \b(?:consider\ it\ done|leave\ (?:it|that)\ (?:to|with)\ me)\b
    """,
    regex.VERBOSE | regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Extraction:
    """The content of a model's answer: commitments, and invalid items; `error` says why it could not be read."""

    found: tuple[ExtractedCommitment, ...] = ()
    left_out: tuple[Dropped, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class CommitmentWriter:
    """Asks the model about commitments.

    Attributes:
        agent_name: the name of the SOUL.
        gateway: the model.
        sentences: asks the model for public texts.
        skills: the prompts.
        journal: records failed questions, and items of an answer that were left out.
        rng: draws the boundaries of untrusted text.

    """

    agent_name: str
    gateway: LLMGateway
    sentences: SentenceAsker
    skills: Skills
    journal: Journal
    rng: random.Random

    async def extract_commitments(
        self,
        replies: Sequence[str],
        *,
        noted: str = "",
        context: str = "",
        repo: str = "",
        done: Sequence[CommitmentType] = (),
    ) -> tuple[ExtractedCommitment, ...]:
        """Return the commitments in replies of ours; none if no reply sounds like one or the model cannot be asked.

        Args:
            replies: our replies.
            noted: what the model itself noted that they promise, in any language; "" for nothing.
            context: what others said before.
            repo: `owner/name` of the repository that the conversation is about, if known.
            done: kinds of work done in the same turn, which are therefore no longer to be done.

        """
        said = [reply for reply in replies if noted or contains_promise(reply)]
        if not said:
            return ()
        framed = self._framed("conversation", context) if context.strip() else "-"
        asked = self.skills.render(
            SKILL,
            "Extraction Message",
            replies="\n".join(f"{number}. {one_line(reply, 5_000)}" for number, reply in enumerate(said, 1)),
            noted=one_line(noted, 5_000) or "-",
            repo=repo or "-",
            conversation=framed,
        )
        system = self.skills.render(SKILL, "Extraction", agent_name=self.agent_name)
        answer = await self._ask(asked, system, _EXTRACTION_TOKENS, "extraction")
        if answer is None:
            return ()
        read = read_extracted(answer.text)
        if read.error:
            await self._warn("The model's answer about commitments could not be read", f"{read.error}: {answer.text}")
        if read.left_out:
            await self._warn("Left out of the commitments that were found", _listed(read.left_out))
        passed_over = [Dropped(one.description, why) for one in read.found if (why := _why_not(one, done))]
        if passed_over:
            entry = Entry("decision", SKILL, "Not taken as commitments", line=None, reason=_listed(passed_over))
            await self.journal.record(entry)
        return tuple(one for one in read.found if not _why_not(one, done))

    async def enrich(self, commitment: Commitment, conversation: str) -> str:
        """Return a full body for a short one, and the words of a comment or a post that has none.

        The body is unchanged if that is not needed or not possible.
        """
        thin, kind = commitment.description, commitment.type
        is_issue = kind in {"create_issue", "create_plan"}
        is_whole = len(thin) >= THIN_CHARS if is_issue else bool(thin or commitment.content)
        if is_whole:
            return thin
        asked = self.skills.render(
            SKILL,
            "Enrichment Message",
            title=one_line(commitment.title or thin, _TITLE_CHARS),
            repo=commitment.repo or "-",
            description=thin or "-",
            conversation=self._framed("conversation", conversation) if conversation.strip() else "-",
        )
        place = ("Enrichment",) if is_issue else ("Words", kind)
        system = self.skills.render(SKILL, *place, agent_name=self.agent_name)
        answer = await self._ask(asked, system, _BODY_TOKENS, "enrichment")
        body = _whole_body(answer) if answer else ""
        return body if len(body) > RICH_CHARS or not is_issue else thin

    async def tell_kept(self, commitment: QueuedCommitment, result: Mapping[str, Any]) -> str:
        """Return a post, in the SOUL's own words, on what came of a commitment; it ends with the link.

        "" if the words of the model do not fit.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        asked = self.skills.render(
            SKILL,
            "Announcement Message",
            said=one_line(commitment.source_reply_text, _TITLE_CHARS),
            what=done_title(commitment, result, _TITLE_CHARS),
        )
        about = QuestionFacts("announcement")
        said = await self.sentences.ask(
            SentenceQuestion(SKILL, asked, _TELL, "Announcement Tool", about, _POST_TOKENS, "commitment")
        )
        ours = "\n".join(self.skills.section(SKILL, name) for name in (SYSTEM_SECTION, "Announcement Message"))
        url = extract_fulfillment_url(commitment.type, result)
        words = fitting_words(said.replace(url, " "), told=ours)
        return fit_post_text(words, url) if words else ""

    async def _ask(self, asked: str, system: str, max_tokens: int, what: str) -> ChatResult | None:
        """Return the answer, or None after recording a failure."""
        try:
            return await self.gateway.chat_with_tools(
                [Message("user", asked)],
                system=system,
                max_tokens=max_tokens,
                temperature=0,
                purpose=f"{SKILL}-{what}",
                importance="commitment",
                facts=TurnFacts(QuestionFacts(what)),
            )
        except Fatal:
            raise
        except SoulError as error:
            await self._warn(f"The model could not be asked for {what}", str(error))
            return None

    async def _warn(self, summary: str, reason: str) -> None:
        entry = Entry("error", SKILL, summary, line="warn", reason=one_line(reason, _REASON_CHARS))
        await self.journal.record(entry)

    def _framed(self, kind: str, text: str) -> str:
        return Framer(self.skills, self.rng).frame(kind, author="several", uri="", text=text)


def contains_promise(text: str) -> bool:
    """Return whether the author of `text` says what they are going to do."""
    return _PROMISE.search(" ".join(normalize_quotes(text).split())) is not None


def read_extracted(answer: str) -> Extraction:
    """Return the commitments in the JSON array of a model's answer, whatever text is around it."""
    items = _array(answer)
    if items is None:
        return Extraction(error="it holds no JSON array of commitments")
    found, left_out = [], []
    for item in items:
        try:
            found.append(ExtractedCommitment.model_validate(item))
        except ValidationError as error:
            left_out.append(Dropped(item, in_words(error)))
    return Extraction(tuple(found), tuple(left_out))


def as_commitments(
    extracted: Sequence[ExtractedCommitment], *, repo: str = "", social_only: bool = False
) -> CommitmentValidation:
    """Convert extracted commitments to those of a decision, with the same checks; `repo` if none is named."""
    checked = validate_commitments([_raw(one) for one in extracted], social_only=social_only)
    return replace(checked, valid=tuple(_placed(one, repo) for one in checked.valid))


def _whole_body(answer: ChatResult) -> str:
    """Return the Markdown of an answer without a fence around it; "" if it is cut off or repeats itself."""
    lines = unwrapped(clean(answer.text, is_ours=True).split("\n"))
    body = clean("\n".join(lines), is_ours=True)
    return "" if answer.stop_reason == "max_tokens" or outline(lines).open_fence or is_loop(body) else body


def _raw(one: ExtractedCommitment) -> dict[str, Any]:
    return {"title": clean(one.description, is_ours=True), **normalize_commitment_fields(one.params), "type": one.type}


def _placed(commitment: Commitment, repo: str) -> Commitment:
    return commitment if commitment.repo or not commitment.is_github else commitment.model_copy(update={"repo": repo})


def _array(answer: str) -> list[Any] | None:
    """Return the first array that contains an object, or else an empty one before any object, or None."""
    decoder, empty, place = json.JSONDecoder(), None, answer.find("[")
    while place >= 0:
        try:
            items, end = decoder.raw_decode(answer, place)
        except RecursionError:
            return None
        except ValueError:
            items, end = [None], place + 1
        if any(isinstance(item, Mapping) for item in items):
            return list(items)
        if not items and "{" not in answer[:place]:
            empty = list[Any]()
        place = answer.find("[", end)
    return empty


def _why_not(one: ExtractedCommitment, done: Sequence[CommitmentType]) -> str:
    if one.confidence == "low":
        return "it is a guess"
    return "it was done in the same breath" if one.type in done else ""


def _listed(left_out: Sequence[Dropped]) -> str:
    """Return each item with the reason, on one line."""
    return one_line("; ".join(f"{_shown(one.raw)}: {one.reason}" for one in left_out), _REASON_CHARS)


def _shown(raw: object) -> str:
    named = raw.get("description", raw) if isinstance(raw, Mapping) else raw
    return one_line(str(named), _SHOWN_CHARS)


_LOOP = "commitment-fulfillment"
_LOOK_AGAIN, _HELD_AGAIN = timedelta(minutes=1), timedelta(minutes=15)


@dataclass(slots=True)
class Announcer:
    """Announces that a commitment is fulfilled.

    Attributes:
        outbox: the only way out.
        clock: the time.
        phrase: returns operational texts.
        writer: writes the text for Bluesky; without it nothing is announced there.
        attention: held during the call of the model; the SOUL does one thing at a time.
        publish: receives `CommitmentsReady` once an announcement that had to wait can have the attention.
        where: returns the room in which these words of ours were said, for announcements that belong only there.

    """

    outbox: Outbox
    clock: Clock
    phrase: Phrase
    writer: CommitmentWriter | None = None
    attention: Attention = field(default_factory=Attention)
    publish: Publish = discard
    where: Callable[[str], str] | None = None

    async def announce(self, commitment: QueuedCommitment, result: Mapping[str, Any]) -> Progress:
        """Submit the announcement to each asker to the outbox, unless it is there already.

        For `done`, the reason says why it was not announced. `waits` was not tried; `later` asks for a new try.
        """
        told = [await self._announce(one, result) for one in commitment.by_asker]
        return next((one for one in told if one.state != "done"), told[0])

    async def _announce(self, commitment: QueuedCommitment, result: Mapping[str, Any]) -> Progress:
        if commitment.source == "space":
            return await self._in_room(commitment, result)
        if not extract_fulfillment_url(commitment.type, result) or not commitment.source_thread_uri.startswith("at://"):
            return Progress("done", "there is no link, or no thread to tell it in")
        if commitment.type == "post_bluesky":
            return Progress("done", "the post stands where they are")
        return await self._on_bluesky(commitment, result)

    async def _in_room(self, commitment: QueuedCommitment, result: Mapping[str, Any]) -> Progress:
        target = announcement_target(commitment.id)
        known = await self.outbox.standing("space_chat", target)
        if known.intent and _settled([known.intent]):
            return Progress("done")
        body = SpaceChatBody(**origin(commitment), text=done_line(commitment, result))
        if self.where is not None:
            said = commitment.source_reply_text
            room_id = commitment.params.room_id
            body = body.model_copy(update={"room": self.where(said), "said": said, "room_id": room_id})
        cause = commitment.source_thread_uri
        return await self._submit(ProposedAction(body, target, cause_id=cause, urgent=True))

    async def _on_bluesky(self, commitment: QueuedCommitment, result: Mapping[str, Any]) -> Progress:
        ours = await self._commitment_post(commitment)
        if ours is None or self.writer is None:
            return Progress("done", "the reply that made the commitment is gone")
        below = await self._below(ours, commitment)
        if isinstance(below, Progress):
            return below
        if not self.attention.free:
            # NOTE(self): a step that waited here for a slow model would hold up all other commitments.
            self.attention.when_free(_LOOP, lambda: self.publish(CommitmentsReady()))
            return Progress("waits", f"busy with {self.attention.mode}")
        try:
            async with self.attention.take(_LOOP):
                text = await self.writer.tell_kept(commitment, result) or self._plain(commitment, result)
        except Fatal:
            raise
        except SoulError as error:
            return Progress("later", str(error))
        parent = RecordRef(uri=below.result_uri or "", cid=below.made("record"))
        root = ours.body.root if isinstance(ours.body, ReplyBody) else parent
        at = parse_at_uri(commitment.source_thread_uri)
        asker = at.repo if at else ""
        body = ReplyBody(text=text, parent=parent, root=root, commitment_id=commitment.id, told_to=asker)
        cause = commitment.source_thread_uri
        return await self._submit(ProposedAction(body, once=f"{commitment.id}#{cause}", cause_id=cause))

    async def _below(self, ours: Intent, commitment: QueuedCommitment) -> Intent | Progress:
        """Return our latest reply below `ours`; a progress if it is announced there or another reply must leave first.

        One reply may contain several commitments, and each post gets one answer: each announcement answers the last.
        """
        while True:
            rows = await self.outbox.by_target("reply", ours.result_uri or "")
            if _settled([row for row in rows if _tells_of(row, commitment)]):
                return Progress("done")
            other = next((row for row in rows if row.state in ACTIVE_STATES), None)
            if other is None:
                return ours
            if other.state != "done":
                wait = self.clock.real(_HELD_AGAIN if other.state == "held" else _LOOK_AGAIN)
                reason, again = "other words of ours below that reply have not left yet", self.clock.now() + wait
                return Progress("waits", reason, not_before=again)
            ours = other

    def _plain(self, commitment: QueuedCommitment, result: Mapping[str, Any]) -> str:
        """Return the fixed text for the announcement if the model finds no words; the link alone if it stood before."""
        named = f"fulfillment.{'part' if result.get('wanted') else commitment.type}"
        url = extract_fulfillment_url(commitment.type, result)
        if result.get("deduplicated"):
            return url
        return self.phrase(named if named in FORMS else "fulfillment.default", url=url)

    async def _submit(self, action: ProposedAction) -> Progress:
        submitted = await self.outbox.submit(action)
        if submitted.advice.code == "later":
            return Progress("later", submitted.reason, not_before=submitted.advice.not_before)
        return Progress("done", "" if submitted.accepted else submitted.reason)

    async def _commitment_post(self, commitment: QueuedCommitment) -> Intent | None:
        """Return our reply to the post that the commitment answered, if it was sent."""
        ours = (await self.outbox.standing("reply", commitment.source_thread_uri)).active
        return ours if ours and ours.state == "done" and ours.result_uri and ours.made("record") else None


def _tells_of(row: Intent, commitment: QueuedCommitment) -> bool:
    return isinstance(row.body, ReplyBody) and row.body.commitment_id == commitment.id


def _settled(rows: Sequence[Intent]) -> bool:
    """Return whether the announcement was admitted once, or refused by the owner; not if only a rule refused it."""
    return any(row.state != "blocked" or row.rejected for row in rows)


_KEPT_PARAMS = ("count", "memo")


def commitment_request(
    commitment: Commitment,
    *,
    source: CommitmentSource,
    thread: str,
    said: str,
    default_repo: str | None = None,
    description: str = "",
    target: str = "",
    host_request: bool = False,
    more: dict[str, Any] | None = None,
) -> CommitmentRequest:
    """Return a commitment as a request for the queue; empty parameters are left out.

    Args:
        commitment: as decided; its description is the body of the artefact.
        source: where it was made.
        thread: the conversation, `space://conversation/…` or the `at://` uri of the post that was answered.
        said: the words of the commitment.
        default_repo: `owner/name` if the commitment names no repository and needs one.
        description: the body, if it was written in full since.
        target: the target that was claimed for it in the room.
        host_request: whether the host of the room asked for it.
        more: other parameters, for example `count`.

    """
    named = (commitment.repo or default_repo or "") if commitment.is_github else ""
    repo = resolve_repo(named) if named else None
    body = description or commitment.description
    params = {
        "title": commitment.title,
        "description": body,
        "content": commitment.content,
        "repo": repo.name if repo else named,
        "owner": repo.owner if repo else "",
        "repoName": repo.name if repo else "",
        "issueNumber": commitment.number if commitment.type == "comment_issue" else None,
        "target": target,
        **(more or {}),
        "hostRequest": host_request,
    }
    kept = read_params(commitment.type, {name: value for name, value in params.items() if value})
    return CommitmentRequest(commitment.title or body or commitment.content, thread, said, kept, source)


@dataclass(frozen=True, slots=True)
class ReplyCommitments:
    """Finds commitments in the replies that were sent on Bluesky, and queues them.

    Attributes:
        queue: stores them.
        writer: finds them.
        journal: records each.
        social_only: whether this SOUL does nothing on GitHub.

    """

    queue: CommitmentQueue
    writer: CommitmentWriter
    journal: Journal
    social_only: bool = False

    async def note_reply(
        self,
        reply: str,
        *,
        to_uri: str,
        noted: str = "",
        conversation: str = "",
        repo: str = "",
        done: Sequence[CommitmentType] = (),
        to_owner: bool = False,
    ) -> list[QueuedCommitment]:
        """Queue the commitments that `reply` makes, and return the new ones.

        Args:
            reply: our reply.
            to_uri: the post that it answers.
            noted: what the model itself noted that it promises.
            conversation: what others said before.
            repo: `owner/name` of the repository that they point to, for commitments that name none.
            done: kinds of work that a tool did in the same turn.
            to_owner: whether it answers the owner.

        """
        found = await self.writer.extract_commitments([reply], noted=noted, context=conversation, repo=repo, done=done)
        said, taken = f"{conversation}\n{self.writer.agent_name}: {reply}", []
        for one in found:
            checked = as_commitments([one], repo=repo, social_only=self.social_only)
            if checked.valid:
                (commitment,) = checked.valid
                request = commitment_request(
                    commitment,
                    source="bluesky",
                    thread=to_uri,
                    said=reply,
                    description=await self.writer.enrich(commitment, said),
                    host_request=to_owner,
                    more={name: one.params[name] for name in _KEPT_PARAMS if name in one.params},
                )
                enqueued = await self.queue.enqueue_commitment(request)
            else:
                enqueued = Enqueued(None, new=False, reason=checked.dropped[0].reason)
            await self._tell(one, enqueued, to_uri)
            if enqueued.new and enqueued.commitment is not None:
                taken.append(enqueued.commitment)
        return taken

    async def _tell(self, found: ExtractedCommitment, enqueued: Enqueued, to_uri: str) -> None:
        summary = (
            f"Committed: {found.description}" if enqueued.new else f"Not taken as a commitment: {found.description}"
        )
        reason = enqueued.reason or found.type
        line: LineKind | None = "act" if enqueued.new else None
        await self.journal.record(Entry("decision", "commitments", summary, line, reason, trigger_uri=to_uri))
