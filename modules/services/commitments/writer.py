"""Asks the model for words about commitments: which were made, what a thin one means in full, how to announce one.

Keeps nothing. Each call is one request with its deadline at the gateway; what fails leaves things as they were.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import regex
from pydantic import ValidationError

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
from common.text.graphemes import fit_post_text
from common.text.markdown import outline, unwrapped
from common.text.patterns import lazy_regex
from common.text.repetition import begins_alike
from common.text.strings import normalize_quotes
from common.text.untrusted import clean, one_line
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.types import ChatResult, Message
from modules.services.agent.one_sentence import SentenceAsker, SentenceQuestion, fitting_words
from modules.services.commitments.naming import title_of
from modules.services.commitments.types import QueuedCommitment
from modules.services.skills.framing import Framer
from modules.services.skills.skills import SYSTEM_SECTION, Skills

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
    """What a model's answer holds: commitments, and items that are none; in `error`, why it could not be read."""

    found: tuple[ExtractedCommitment, ...] = ()
    left_out: tuple[Dropped, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class CommitmentWriter:
    """What the model says of commitments.

    Attributes:
        agent_name: who speaks.
        gateway: the model.
        sentences: asks it for what is said in public.
        skills: has the words.
        journal: records what could not be asked, and what of an answer was not taken.
        rng: draws the boundaries of untrusted text.

    """

    agent_name: str
    gateway: LLMGateway
    sentences: SentenceAsker
    skills: Skills
    journal: Journal
    rng: random.Random

    async def extract_commitments(
        self, replies: Sequence[str], *, context: str = "", repo: str = "", done: Sequence[CommitmentType] = ()
    ) -> tuple[ExtractedCommitment, ...]:
        """The commitments in our own words; none where no word speaks of one, or the model cannot be asked.

        Args:
            replies: what we said.
            context: what others said before it.
            repo: `owner/name` of the repository that is talked about, if known.
            done: kinds of work that were done in the same breath, so that nothing of it is still to be done.

        """
        said = [reply for reply in replies if contains_promise(reply)]
        if not said:
            return ()
        framed = self._framed("conversation", context) if context.strip() else "-"
        asked = self.skills.render(
            SKILL,
            "Extraction Message",
            replies="\n".join(f"{number}. {one_line(reply, 5_000)}" for number, reply in enumerate(said, 1)),
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
        """A full body for a thin one; the body as it is where that is not needed, or not to be had."""
        thin = commitment.description
        if commitment.type not in {"create_issue", "create_plan"} or len(thin) >= THIN_CHARS:
            return thin
        asked = self.skills.render(
            SKILL,
            "Enrichment Message",
            title=one_line(commitment.title or thin, _TITLE_CHARS),
            repo=commitment.repo or "-",
            description=thin or "-",
            conversation=self._framed("conversation", conversation) if conversation.strip() else "-",
        )
        answer = await self._ask(asked, self.skills.render(SKILL, "Enrichment"), _BODY_TOKENS, "enrichment")
        body = _whole_body(answer) if answer else ""
        return body if len(body) > RICH_CHARS else thin

    async def tell_kept(self, commitment: QueuedCommitment, url: str) -> str:
        """A post that tells, in the SOUL's own words, that a commitment was fulfilled; it ends in the link.

        "" where the model has no words that fit.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        asked = self.skills.render(
            SKILL,
            "Announcement Message",
            said=one_line(commitment.source_reply_text, _TITLE_CHARS),
            what=one_line(title_of(commitment), _TITLE_CHARS),
        )
        about = QuestionFacts("announcement")
        said = await self.sentences.ask(
            SentenceQuestion(SKILL, asked, _TELL, "Announcement Tool", about, _POST_TOKENS, "commitment")
        )
        ours = "\n".join(self.skills.section(SKILL, name) for name in (SYSTEM_SECTION, "Announcement Message"))
        words = fitting_words(said.replace(url, " "), told=ours)
        return fit_post_text(words, url) if words else ""

    async def _ask(self, asked: str, system: str, max_tokens: int, what: str) -> ChatResult | None:
        """The answer; None where there is none for now, which is told."""
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
    """Whether `text` speaks of what its author is about to do."""
    return _PROMISE.search(" ".join(normalize_quotes(text).split())) is not None


def read_extracted(answer: str) -> Extraction:
    """The commitments in a model's answer: those of its JSON array, whatever stands around it."""
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
    """The same as a decision's commitments, so that they pass the same checks; `repo` where none is named."""
    checked = validate_commitments([_raw(one) for one in extracted], social_only=social_only)
    return replace(checked, valid=tuple(_placed(one, repo) for one in checked.valid))


def _whole_body(answer: ChatResult) -> str:
    """The Markdown of an answer, without a block of code around it; "" where it is cut off or goes round in a loop."""
    lines = unwrapped(clean(answer.text).strip().split("\n"))
    body = "\n".join(lines).strip()
    return "" if answer.stop_reason == "max_tokens" or outline(lines).open_fence or begins_alike(body) else body


def _raw(one: ExtractedCommitment) -> dict[str, Any]:
    return {"title": clean(one.description), **normalize_commitment_fields(one.params), "type": one.type}


def _placed(commitment: Commitment, repo: str) -> Commitment:
    return commitment if commitment.repo or not commitment.is_github else commitment.model_copy(update={"repo": repo})


def _array(answer: str) -> list[Any] | None:
    """The first array with an object in it; where there is none, an empty one that stands before any object."""
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
    """Each with why, on one line."""
    return one_line("; ".join(f"{_shown(one.raw)}: {one.reason}" for one in left_out), _REASON_CHARS)


def _shown(raw: object) -> str:
    named = raw.get("description", raw) if isinstance(raw, Mapping) else raw
    return one_line(str(named), _SHOWN_CHARS)
