"""Announces our work on GitHub in a post, if a model finds that it is worth the readers' time.

That is an issue that was opened for a room, or a finished plan with merged work of ours. Each is a row of work, so that
neither a restart nor a crash repeats one, and what was found not worth a post is not examined again.
"""

import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Literal

from adapters.atproto.richtext import detect_urls
from adapters.github.client import GitHub
from adapters.github.types import PullRequest, Repo
from common.clock import Clock, iso, parse_iso
from common.constants import DAY_MS, HOUR_MS, PORTABLE_MAX_GRAPHEMES, SECOND_MS
from common.facts import AgentFacts, QuestionFacts, TurnFacts
from common.provenance import Provenance
from common.result import GONE, LASTING
from common.text.graphemes import grapheme_len
from common.text.untrusted import clean, one_line
from modules.runtime.llm.dialect import Message
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.prompt.fitting import SystemPrompt
from modules.services.agent.prompt.prompter import Prompter
from modules.services.commitments.acts import FOUND, CommitmentKept
from modules.services.commitments.naming import (
    IssueParams,
    QueuedCommitment,
    extract_fulfillment_url,
    repo_of,
    title_of,
)
from modules.services.identity.identity import Me
from modules.services.outbox.bodies import AttachedPicture, PictureSource, PostBody
from modules.services.outbox.github_bodies import IssueBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, ProposedAction
from modules.services.own_feed.expressions import NoteInsight
from modules.services.pictures.pictures import Pictures
from modules.services.plans.plan_text import parse_plan
from modules.services.skills.skills import Framer, Skills
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, NewWork, WorkItem
from modules.services.workspaces.trust import WorkspaceTrust, plan_of, pulls_for

ANNOUNCEMENT = "announcement"
"""The kind of the rows. Their key is the address of the work."""
SKILL = "github-announcement"
Problem = Literal["Too Long", "Without Link", "Other Link", "Markup"]
"""The problems of a post: subsections of `Problems` in the skill."""

_TOKENS = 300
_TITLE_CHARS = 300
_EDGES = " \n\"'`\u201c\u201d"
_MARKUP = ("**", "](", "```", "[Link]", "[Reading]", "\n#")
_YES = re.compile(r"\W*yes\b", re.IGNORECASE)
_AGAIN_S = HOUR_MS / SECOND_MS
_TOLD_WITHIN = timedelta(days=7)
"""The time after its end during which work is still announced."""
_MOST_PULLS = 100
_PICTURES = frozenset({".png", ".jpg", ".jpeg", ".webp"})
_TOO_OLD = Disposition("silent", "too-old", "it was done more than a week ago")


@dataclass(frozen=True, slots=True)
class AnnouncementContext:
    """Work to announce: its address, its title, and its repository.

    `plan` is the number of the plan, 0 for an issue; `merged` are our merged pull requests for it.
    """

    url: str
    title: str
    repo: Repo
    plan: int = 0
    merged: tuple[PullRequest, ...] = ()

    @property
    def row(self) -> NewWork:
        """Its row of work."""
        place = {"owner": self.repo.owner, "repo": self.repo.name, "plan": self.plan}
        return NewWork(ANNOUNCEMENT, self.url, {"title": self.title, **place})


@dataclass(frozen=True, slots=True)
class AnnouncementHandler(Handler):
    """Asks the model whether to post and for the text, and submits the post to the outbox.

    Attributes:
        prompter: builds the system prompt.
        me: our account.
        agent: returns the facts about the agent that asks the model.
        why_not_now: returns why no post of our own fits now, "" if one does.
        note_insight: is called with each announcement that the outbox accepted.
        tells_rooms: whether the owner allows posts about what was opened for a room.

    """

    kind = ANNOUNCEMENT
    pause_s = _AGAIN_S

    prompter: Prompter
    gateway: LLMGateway
    skills: Skills
    github: GitHub
    trust: WorkspaceTrust
    pictures: Pictures
    outbox: Outbox
    table: WorkTable
    clock: Clock
    rng: random.Random
    me: Me
    agent: Callable[[], AgentFacts]
    why_not_now: Callable[[], Awaitable[str]]
    note_insight: NoteInsight
    tells_rooms: bool

    async def announce_kept(self, event: CommitmentKept) -> None:
        """Add a row for the result of a kept commitment, if the owner and its room allow its announcement."""
        if self.tells_rooms and (work := announceable(event.commitment)):
            await self.table.add(work.row)

    async def handle(self, item: WorkItem) -> Disposition:
        """Announce work once, if it is public and worth it."""
        told, repo = item.payload, Repo(item.payload["owner"], item.payload["repo"])
        work = await self._done(item, AnnouncementContext(item.key, told["title"], repo, told["plan"]))
        if isinstance(work, Disposition):
            return work
        if why_not := await self.why_not_now() or await self._why_not_today():
            return Disposition("later", "not-now", why_not)
        system, shown = await self._system(), self._shown(work)
        asked = self.skills.render(SKILL, "Announcement Decision", context=shown)
        answer = await self._ask(system, [Message("user", asked)], "announcement-decision", work)
        if _YES.match(answer) is None:
            return Disposition("silent", "not-worth", "the model does not find it worth a post")
        if not (text := await self._compose(system, shown, work)):
            return Disposition("undecided", "no-words", "the model found no words that fit")
        post = PostBody(text=text, pictures=await self._pictures(work))
        submitted = await self.outbox.submit(ProposedAction(post, cause_id=item.cause_id))
        if not submitted.accepted:
            return Disposition("undecided", "refused", submitted.reason)
        intent = submitted.intent
        return Disposition("done", "posted", "worth a post", intent_id=intent.id, held=intent.state == "held")

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        if disposition.code == "posted":
            self.note_insight("Announced", item.payload["title"], significant=True)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        said = {"done": "Announced", "later": "Not announced yet"}.get(disposition.act, "Not announced")
        return f"{said}: {one_line(item.payload['title'], _TITLE_CHARS)}"

    async def _done(self, item: WorkItem, work: AnnouncementContext) -> AnnouncementContext | Disposition:
        """Return the work if it is done and strangers may hear of it, otherwise the disposition of its row."""
        known = (await self.github.get_repository(work.repo)).or_else(None, *GONE)
        if known is None or known.private:
            reason = "the repository is private" if known else "whether the repository is public cannot be read"
            return Disposition("silent", "not-public", reason)
        opened = await self.outbox.opened(work.url)
        source = opened.body.source if opened and isinstance(opened.body, IssueBody) else ""
        if source == FOUND or (source == "space" and not self.tells_rooms):
            return Disposition("silent", "of-room", "it was opened for a room")
        if work.plan:
            return await self._finished(item, work)
        return work if self._is_recent(item.created_at) else _TOO_OLD

    async def _finished(self, item: WorkItem, work: AnnouncementContext) -> AnnouncementContext | Disposition:
        """Return a plan with our work for it if it is closed with all tasks completed, otherwise a disposition."""
        issue = (await self.github.get_issue(work.repo, work.plan)).or_else(None, *GONE)
        plan = parse_plan(issue.body, issue.title) if issue else None
        if issue and plan and issue.state == "open":
            return Disposition("later", "open", "its plan is still open")
        if issue is None or plan is None or plan.status != "complete":
            return Disposition("silent", "unfinished", "it is no plan, or was not finished")
        if not self._is_recent(issue.closed_at or item.created_at):
            return _TOO_OLD
        trusted = await self.trust.accounts(work.repo)
        closed = (await self.github.pulls.list(work.repo, state="closed", limit=_MOST_PULLS)).or_raise()
        ours = [one for one in pulls_for(work.plan, closed, trusted) if one.account == trusted.us and one.merged]
        if not ours:
            return Disposition("later", "unread", "no merged work of its own is found in the plan")
        return replace(work, title=plan.title, merged=tuple(ours))

    def _is_recent(self, moment: str) -> bool:
        return self.clock.since(parse_iso(moment)) < _TOLD_WITHIN

    async def _why_not_today(self) -> str:
        """Return why nothing more is announced today, or ""; one announcement a day is enough."""
        began = self.clock.now() - timedelta(milliseconds=self.clock.real(DAY_MS))
        posts = await self.outbox.since(["post"], began)
        told = any((one.cause_id or "").startswith(f"{ANNOUNCEMENT}:") and one.state in ACTIVE_STATES for one in posts)
        return "something was announced within a day" if told else ""

    async def _pictures(self, work: AnnouncementContext) -> Sequence[AttachedPicture]:
        """Return the first picture in our merged work that still exists and can be shown; [] if there is none."""
        known = (await self.github.get_repository(work.repo)).or_raise()
        tree = (await self.github.contents.tree(work.repo, known.default_branch)).or_else(None, *LASTING)
        stands = {one.sha for one in tree.entries} if tree else set[str]()
        for pull in work.merged:
            for file in (await self.github.pulls.files(work.repo, pull.number)).or_else((), *LASTING):
                is_picture = PurePosixPath(file.path).suffix.lower() in _PICTURES
                if not is_picture or file.status != "added" or file.sha not in stands:
                    continue
                data = (await self.github.contents.blob(work.repo, file.sha)).or_else(b"", *LASTING)
                page = f"{self.github.page(work.repo)}/blob/{pull.merge_commit_sha}/{file.path}"
                source = PictureSource(type="other", image_url=page, page_url=pull.html_url, filename=file.path)
                alt = f"{one_line(file.path, _TITLE_CHARS)}, from {one_line(work.title, _TITLE_CHARS)}"
                made = await self.pictures.attach(data, alt=alt, why=ANNOUNCEMENT, source=source)
                if picture := made.or_else(None, *LASTING):
                    return (picture,)
        return ()

    async def _system(self) -> SystemPrompt:
        return await self.prompter.prompt(
            skill=SKILL,
            variables={"bluesky_username": self.me.bluesky_username},
            audience="bluesky",
            session_key=SKILL,
            now=self.clock.now(),
            least=Provenance.SELF,
            bare=True,
        )

    def _shown(self, context: AnnouncementContext) -> str:
        """Return the work as the model sees it; its title is framed, as it may hold words of others."""
        merged = [f"- {one_line(one.title, _TITLE_CHARS)} ({one.html_url})" for one in context.merged]
        text = "\n".join([one_line(context.title, _TITLE_CHARS), *merged])
        framed = Framer(self.skills, self.rng).frame(
            "reading", author=context.repo.full_name, uri=context.url, text=text
        )
        plan = "yes" if context.plan else ""
        return self.skills.render(
            SKILL, "Context", title=framed, repo=context.repo.full_name, url=context.url, plan=plan
        )

    async def _compose(self, system: SystemPrompt, shown: str, context: AnnouncementContext) -> str:
        """Return a valid post; an invalid one is sent back once. "" if there is none."""
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
        """Return the post, with the address of the work added if it has no link; "" if the model wrote nothing."""
        text = clean(await self._ask(system, messages, "announcement-post", context), is_ours=True).strip(_EDGES)
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


def plan_of_pull(repo: Repo, pull: PullRequest) -> AnnouncementContext | None:
    """Return the plan of a pull request of ours, which may be announced when it is finished, or None."""
    if not (number := plan_of(pull.body)):
        return None
    url = f"{pull.html_url.rpartition('/pull/')[0]}/issues/{number}"
    return AnnouncementContext(url, f"{repo.full_name}#{number}", repo, number)


def announceable(kept: QueuedCommitment) -> AnnouncementContext | None:
    """Return the work that strangers may be told of, or None.

    That is an issue whose commitment was not made on Bluesky, where the thread told it already. The memo of a talk is
    for those who took part. What was agreed in a room that was only found on the network is left out, as anybody in the
    same network can open one.
    """
    url, repo = extract_fulfillment_url(kept.type, kept.result), repo_of(kept.params)
    is_told = kept.source == "bluesky" or kept.params.found_room
    if not isinstance(kept.params, IssueParams) or kept.params.memo or is_told or not url or repo is None:
        return None
    return AnnouncementContext(url, title_of(kept), repo)


def problem_of(text: str, url: str) -> Problem | None:
    """Return what is wrong with a post (no address of the work, another one, markup, too long), or None."""
    links = {span.value for span in detect_urls(text)}
    if url not in links:
        return "Without Link"
    if links != {url}:
        return "Other Link"
    if any(mark in text for mark in _MARKUP):
        return "Markup"
    return "Too Long" if grapheme_len(text) > PORTABLE_MAX_GRAPHEMES else None
