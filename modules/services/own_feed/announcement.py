"""Announces work of ours on GitHub in a post, where a model finds that it is worth the readers' time.

The record is the outbox: an announcement is an intent whose cause is the address of the work, so that neither a restart
nor a crash repeats one. What was not announced is not tried again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from adapters.atproto.richtext import detect_urls
from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.clock import Clock, iso
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.errors import Fatal, SoulError
from common.facts import AgentFacts, QuestionFacts, TurnFacts
from common.provenance import Provenance
from common.result import Err
from common.text.graphemes import grapheme_len
from common.text.untrusted import clean, one_line
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import Message
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.scheduler.scheduler import Attention
from modules.services.agent.prompt.fitting import SystemPrompt
from modules.services.agent.prompt.prompter import Prompter
from modules.services.commitments.acts import CommitmentKept
from modules.services.commitments.naming import QueuedCommitment, extract_fulfillment_url, repo_of, title_of
from modules.services.commitments.params import IssueParams
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ProposedAction, Submitted
from modules.services.own_feed.expressions import NoteInsight
from modules.services.skills.skills import Framer, Skills

ANNOUNCEMENT = "announcement"
SKILL = "github-announcement"
Problem = Literal["Too Long", "Without Link", "Other Link", "Markup"]
"""What is wrong with a post: a subsection of `Once More` in the skill."""

_TOKENS = 300
_TITLE_CHARS = 300
_EDGES = " \n\"'`\u201c\u201d"
_MARKUP = ("**", "](", "```", "[Link]", "[Reading]", "\n#")
_YES = re.compile(r"\W*yes\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnnouncementContext:
    """The work: its address, its title, and its repository as `owner/name`."""

    url: str
    title: str
    repo: str


@dataclass(frozen=True, slots=True)
class Announcements:
    """Asks the model twice, whether and with which words, and hands the post to the outbox.

    Attributes:
        prompter: tells the model who it is.
        bluesky_username: the handle of our account.
        agent: returns who asks the model.
        write_block_reason: returns why nothing may be said just now, "" if something may.
        note_insight: is told of each announcement that the outbox accepted.

    """

    prompter: Prompter
    gateway: LLMGateway
    skills: Skills
    github: GitHub
    outbox: Outbox
    attention: Attention
    journal: Journal
    clock: Clock
    rng: random.Random
    bluesky_username: str
    agent: Callable[[], AgentFacts]
    write_block_reason: Callable[[], str]
    note_insight: NoteInsight

    async def announce_kept(self, event: CommitmentKept) -> None:
        """Announce what came of a commitment that was kept, if strangers may be told of it."""
        if work := announceable(event.commitment):
            await self.announce_if_worthy(work)

    async def announce_if_worthy(self, context: AnnouncementContext) -> bool:
        """Announce work of ours once, if it is public and worth it; return whether the outbox accepted a post.

        Why nothing is announced is told by the journal.

        Raises:
            Fatal: the process must end.

        """
        try:
            submitted = await self._announce(context)
            if isinstance(submitted, str):
                await self._tell(context, "Not announced", submitted)
                return False
            if not submitted.accepted:
                await self._tell(context, "Not announced", submitted.reason)
                return False
            await self._tell(context, "Announced", submitted.reason or "worth a post", intent_id=submitted.intent.id)
            self.note_insight("Announced", context.title, significant=True)
        except Fatal:
            raise
        except SoulError as error:
            summary = f"Announcing failed: {one_line(context.title, _TITLE_CHARS)}"
            entry = Entry("error", ANNOUNCEMENT, summary, line="warn", reason=str(error), data={"url": context.url})
            await self.journal.record(entry)
            return False
        return True

    async def _announce(self, context: AnnouncementContext) -> Submitted | str:
        """What the outbox says of the announcement, or why none was proposed. Raises `SoulError`."""
        if hindrance := self.write_block_reason() or await self._why_not_public(context.repo):
            return hindrance
        async with self.attention.take(ANNOUNCEMENT):
            earlier = await self.outbox.by_cause(context.url)
            if any(one.state != "blocked" or one.rejected for one in earlier):
                return "it was announced before"
            system = await self._system()
            shown = self._shown(context)
            asked = self.skills.render(SKILL, "Announcement Decision", context=shown)
            answer = await self._ask(system, [Message("user", asked)], "announcement-decision", context)
            if _YES.match(answer) is None:
                return "the model does not find it worth a post"
            text = await self._compose(system, shown, context)
            if not text:
                return "the model found no words that fit"
            return await self.outbox.submit(ProposedAction(PostBody(text=text), cause_id=context.url))

    async def _why_not_public(self, repo: str) -> str:
        owner, _, name = repo.partition("/")
        read = await self.github.get_repository(Repo(owner, name))
        if isinstance(read, Err):
            return f"whether the repository is public cannot be read: {read.error}"
        return "the repository is private" if read.data.private else ""

    async def _system(self) -> SystemPrompt:
        return await self.prompter.prompt(
            skill=SKILL,
            variables={"bluesky_username": self.bluesky_username},
            audience="bluesky",
            session_key=SKILL,
            now=self.clock.now(),
            least=Provenance.SELF,
            bare=True,
        )

    def _shown(self, context: AnnouncementContext) -> str:
        """The work as the model is told of it: its title is data, for it may hold the words of others."""
        title = one_line(context.title, _TITLE_CHARS)
        framed = Framer(self.skills, self.rng).frame("reading", author=context.repo, uri=context.url, text=title)
        return self.skills.render(SKILL, "Context", title=framed, repo=context.repo, url=context.url)

    async def _compose(self, system: SystemPrompt, shown: str, context: AnnouncementContext) -> str:
        """A post that can be sent; one that cannot is sent back once. "" if the model found none."""
        skills = self.skills
        messages = [Message("user", skills.render(SKILL, "Bluesky Post", context=shown))]
        text = await self._write(system, messages, context)
        if not text or not (problem := problem_of(text, context.url)):
            return text
        again = skills.render(
            SKILL,
            "Once More",
            problem=skills.subsection(SKILL, "Problems", problem).strip(),
            url=context.url,
            most=str(PORTABLE_MAX_GRAPHEMES),
        )
        text = await self._write(system, [*messages, Message("assistant", text), Message("user", again)], context)
        return "" if problem_of(text, context.url) else text

    async def _write(self, system: SystemPrompt, messages: list[Message], context: AnnouncementContext) -> str:
        """The post, with the address of the work behind it where it holds none. "" if the model wrote nothing."""
        text = clean(await self._ask(system, messages, "announcement-post", context)).strip(_EDGES)
        return f"{text} {context.url}" if text and not detect_urls(text) else text

    async def _ask(
        self, system: SystemPrompt, messages: list[Message], question: str, context: AnnouncementContext
    ) -> str:
        about = QuestionFacts(question, {"title": (context.title,), "url": (context.url,)})
        return await self.gateway.chat(
            messages,
            system=system.blocks,
            max_tokens=_TOKENS,
            purpose=SKILL,
            importance="own",
            facts=TurnFacts(about, self.agent(), iso(self.clock.now())),
        )

    async def _tell(
        self, context: AnnouncementContext, summary: str, reason: str, *, intent_id: str | None = None
    ) -> None:
        title = one_line(context.title, _TITLE_CHARS)
        act = "posted" if intent_id else "skipped"
        entry = Entry(
            "decision",
            ANNOUNCEMENT,
            f"{summary}: {title}",
            line="social",
            reason=reason,
            intent_id=intent_id,
            data={"act": act, "url": context.url},
        )
        await self.journal.record(entry)


def announceable(kept: QueuedCommitment) -> AnnouncementContext | None:
    """The work that strangers may be told of; None where there is none.

    That is an issue whose commitment was not made on Bluesky: there it was told in the thread. The memo of a talk is
    for those who took part. What was agreed in a room that was only found on the network is left out: whoever is in
    the same network can open one.
    """
    url, repo = extract_fulfillment_url(kept.type, kept.result), repo_of(kept.params)
    is_told = kept.source == "bluesky" or kept.params.found_room
    if not isinstance(kept.params, IssueParams) or kept.params.memo or is_told or not url or repo is None:
        return None
    return AnnouncementContext(url, title_of(kept), repo.full_name)


def problem_of(text: str, url: str) -> Problem | None:
    """What is wrong with a post: no address of the work, another one, markup, or too many characters; or None."""
    links = {span.value for span in detect_urls(text)}
    if url not in links:
        return "Without Link"
    if links != {url}:
        return "Other Link"
    if any(mark in text for mark in _MARKUP):
        return "Markup"
    return "Too Long" if grapheme_len(text) > PORTABLE_MAX_GRAPHEMES else None
