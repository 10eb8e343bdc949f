"""Stores memories of what the SOUL did on GitHub and of what happened to it there, once for each act.

A review that requests changes of a pull request of ours is recorded as a challenge.

Our acts are intents of the outbox; the journal tells which workspaces were joined. What only code writes, for example
that a task is claimed or merged, is no conversation: the model is not asked what in it matters. If nobody else wrote
in a thread, our own words are stored as they are, also without the model.
Any other thread is read once more after our last act in it: the skill `memory-extraction` says what in it matters. A
memory rests on the least trusted words in the thread, and on whoever may edit them there. If memories are in `soul.db`,
they and the mark of what happened are one transaction, so that a crash leaves both or neither. On another server they
are stored before the mark, and after a crash in between the same is stored once more.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

from adapters.github.client import GitHub
from adapters.github.types import Account, Repo
from common.clock import Clock, iso, parse_iso
from common.constants import MINUTE_MS
from common.errors import BudgetExceeded, Transient
from common.provenance import Provenance
from common.result import ApiResult, Err
from common.text.markdown import without_html_comments
from common.text.untrusted import one_line
from modules.lives.github.policy import MOST_COMMENTS, caller
from modules.lives.github.types import IssueThread, KnownParticipants
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry, StoredEntry
from modules.runtime.llm.dialect import Message, Text
from modules.runtime.scheduler.policy import Loop, Outcome
from modules.services.experiences import ExperienceLog, ExperienceType, NewExperience
from modules.services.memory.admission import NewMemory, trust_of
from modules.services.memory.rows import MemoryStore, remember
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.github_bodies import (
    IssueBody,
    IssueCommentBody,
    OnGitHub,
    PullRequestBody,
    ReactionBody,
    ReviewBody,
)
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.github_changes import repo_of
from modules.services.outbox.types import Intent
from modules.services.plans.events import parse_task_event_markers
from modules.services.rituals.policy import MEMO_KIND
from modules.services.sessions.archives import Distiller
from modules.services.sessions.types import MessageRow, Session
from modules.services.workspaces.trust import TrustedAccounts, WorkspaceTrust

T = TypeVar("T")

EXPERIENCED: tuple[IntentKind, ...] = (
    "issue_comment",
    "reaction",
    "issue",
    "review",
    "pull_request",
    "repository",
)
"""The kinds of acts on GitHub that are worth a memory."""

JOURNALLED = {"workspaces": ("workspace-joined",)}
"""What happens to it there: the loop that records it, and the `act` of the entries; `about` identifies each."""

_HELPED = frozenset({"issue comment", "reaction", "review"})
"""Acts that are done for others; the rest is our own work, from which we learn."""

_MARK = "github.experience:"
_INTERVAL_MS = 10 * MINUTE_MS
_LOOKED_BACK = timedelta(days=2)
_REVIEWS_EVERY = timedelta(hours=1)
_AT_A_TIME = 3
QUIET = timedelta(minutes=30)
"""A thread is over for us after this time without an act of ours."""
_EPISODE_CHARS = 500


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened on GitHub, with a unique key.

    `number` is that of the issue whose thread covers it, 0 if there is none. `own` are our words that are nowhere else,
    "" if the thread contains them. `is_routine`: the plan and the pull request tell all of it, as with a task that was
    offered or reviewed, and the model is not asked what in it matters. `is_memo`: it is the memo of a ritual. `repeats`
    is the provenance of the words that `own` may repeat.
    """

    key: str
    at: str
    code: str
    repo: Repo
    number: int = 0
    own: str = ""
    is_routine: bool = False
    is_memo: bool = False
    repeats: Provenance = Provenance.SELF

    @property
    def place(self) -> str:
        """The place where it happened: `owner/name#1`, or `owner/name`."""
        return f"{self.repo.full_name}#{self.number}" if self.number else self.repo.full_name


def impression_of(
    kind: ExperienceType, comment: Intent, thread: IssueThread, known: KnownParticipants
) -> NewExperience:
    """Return the experience that follows from the words that a comment answers, told in our own words.

    It is the only experience of that comment. `known` says who may push there.
    """
    said = [(thread.issue.account, thread.issue.body), *((one.account, one.body) for one in thread.comments)]
    others = [(account, text) for account, text in said if account != known.people.us]
    who = caller(thread, known.login, known.people)
    people = known.people
    said_by = min((people.provenance(account) for account, _ in others), default=Provenance.STRANGER)
    ours = comment.body.words if isinstance(comment.body, OnGitHub) else ""
    key, trust = _experience_key(comment.id), trust_of(min(said_by, people.editors))
    return NewExperience(kind, "github", key, ours, f"github:{who.id}", f"@{who.login}", thread.issue.html_url, trust)


@dataclass(kw_only=True)
class GitHubExperienceLoop(Loop):
    """Stores memories of acts that have none yet, three at a time."""

    name = "github-experiences"
    needs_idle = True
    social_only = False
    at_start = True

    github: GitHub
    outbox: Outbox
    distiller: Distiller
    memories: MemoryStore
    database: Database
    journal: Journal
    clock: Clock
    trust: WorkspaceTrust
    experiences: ExperienceLog
    _asked_at: dict[str, datetime] = field(default_factory=dict, init=False)
    """When the reviews of each pull request of ours were last read, by the id of its intent."""

    @property
    def interval_ms(self) -> float:
        return self.clock.real(_INTERVAL_MS)

    async def run(self) -> Outcome:
        """Store what is worth a memory in the oldest acts."""
        if not self.github.enough_for_loops:
            return Outcome(ran=False, reason=f"{self.github.rate.remaining} requests to GitHub are left in this hour")
        kept = 0
        try:
            await self._keep_challenges()
        except Transient as error:
            return Outcome(ran=False, reason=f"the reviews of our pull requests wait: {error}")
        for one in (await self._due())[:_AT_A_TIME]:
            try:
                kept += await self._keep(one)
            except (BudgetExceeded, Transient) as error:
                return Outcome(ran=bool(kept), reason=f"{kept} kept; the rest waits: {error}")
        return Outcome(ran=kept > 0, reason=f"{kept} memories of GitHub kept")

    async def _due(self) -> list[Happening]:
        """Return what happened, is over and is not stored yet, oldest first."""
        now = self.clock.now()
        known = await self.database.run(lambda connection: _known(connection, iso(now - _LOOKED_BACK)))
        intents = await self.outbox.since(EXPERIENCED, now - _LOOKED_BACK)
        happened = [one for intent in intents if (one := _done(intent))]
        for loop, acts in JOURNALLED.items():
            for act in acts:
                entries = await self.journal.with_act(loop, act, now - _LOOKED_BACK, now)
                happened += [one for entry in entries if (one := _told(entry))]
        happened.sort(key=lambda one: one.at)
        newest = {one.place: one.at for one in happened if one.number}
        due = {one.key: self._read_with(newest.get(one.place, one.at), one) for one in happened if one.key not in known}
        return [one for one in due.values() if one is not None]

    def _read_with(self, newest: str, one: Happening) -> Happening | None:
        """Return an act as it is to be stored; None while its thread, whose last act was at `newest`, goes on.

        A thread is read once, after its last act.
        """
        if not one.number or one.is_routine:
            return one
        if self.clock.since(parse_iso(newest)) < QUIET:
            return None
        return one if one.at == newest else replace(one, is_routine=True)

    async def _keep(self, one: Happening) -> int:
        """Store what is worth a memory in it; return the number of memories."""
        rows = await self._rows(one)
        if not rows:
            await self._settle(one, ())
            return 0
        provenance = min(one.repeats, *(row.provenance for row in rows))
        await self._record(one, rows, provenance)
        if one.is_routine:
            await self._settle(one, ())
            return 0
        if all(row.role == "assistant" for row in rows):
            await self._settle(one, (self._episode(one, _told_by(rows), provenance),))
            return 1
        session = Session(one.key, f"github:{one.place}".lower(), rows[0].created_at, one.at)
        tags = ("github", one.code)
        told = await self.distiller.distil(session, rows, provenance, remembered_at=one.at, tags=tags)
        memories = told.memories
        if told.summary:
            memories += (self._episode(one, told.summary, provenance),)
        await self._settle(one, memories)
        summary = f"What happened at {one.place} is {'remembered' if memories else 'not worth a memory'}"
        await self.journal.record(Entry("life", self.name, summary, line="mem" if memories else None))
        return len(memories)

    def _episode(self, one: Happening, text: str, provenance: Provenance) -> NewMemory:
        """Return a memory of what happened."""
        subject = one.place if one.number else f"{one.place}, {one.code} at {one.at[:16]}"
        key = f"github:{one.place}".lower()
        return NewMemory("episode", subject, text, ("github", one.code), source=key, trust=trust_of(provenance))

    async def _keep_challenges(self) -> None:
        """Record each review that requests changes of a pull request of ours; check each pull request once an hour."""
        now = self.clock.now()
        self._asked_at = {key: at for key, at in self._asked_at.items() if self.clock.since(at) < _REVIEWS_EVERY}
        made = await self.outbox.since(["pull_request"], now - _LOOKED_BACK)
        opened = [one for one in made if one.state == "done" and one.issue_number and one.id not in self._asked_at]
        for intent in opened[:_AT_A_TIME]:
            if isinstance(intent.body, PullRequestBody):
                await self._keep_challenge(repo_of(intent.body), intent.issue_number)
                self._asked_at[intent.id] = now

    async def _keep_challenge(self, repo: Repo, number: int) -> None:
        known = (await self.github.get_repository(repo)).or_else(None)
        if known is None or known.private:
            return
        found, people = await self.github.pulls.reviews(repo, number), await self.trust.people()
        for one in _if_there(found) or ():
            who = Account(one.author_id, one.author)
            if one.state == "CHANGES_REQUESTED" and who != people.us:
                about = f"A review of our pull request {repo.full_name}#{number} asks for changes"
                key, did, trust = f"review:{one.id}", f"github:{who.id}", trust_of(people.provenance(who))
                await self.experiences.record(
                    NewExperience("was_challenged", "github", key, about, did, f"@{who.login}", one.html_url, trust)
                )

    async def _record(self, one: Happening, rows: Sequence[MessageRow], provenance: Provenance) -> None:
        """Record it as an experience, in our own words; the memo of a ritual was recorded before."""
        if one.is_memo:
            return
        own = one.own or next((text for row in reversed(rows) if (text := _own_text(row))), "")
        said = own.removeprefix(f"{one.place}: ")
        kind: ExperienceType = "helped_someone" if one.code in _HELPED else "learned_something"
        new = NewExperience(kind, "github", _experience_key(one.key), f"{one.code} at {one.place}: {said}")
        await self.experiences.record(replace(new, uri=self.github.page(one.repo), trust=trust_of(provenance)))

    async def _settle(self, one: Happening, memories: Sequence[NewMemory]) -> None:
        now, at = self.clock.now(), parse_iso(one.at)

        def step(connection: sqlite3.Connection) -> None:
            for memory in memories:
                remember(connection, memory, at)
            marks.put(connection, {f"{_MARK}{one.key}": iso(now)})

        await self.database.run(step)

    async def _rows(self, one: Happening) -> list[MessageRow]:
        """Return the thread and our words as messages; none if the repository is private, or something is gone."""
        known = _if_there(await self.github.get_repository(one.repo))
        if known is None or known.private:
            return []
        said = await self._thread(one.repo, one.number) if one.number else []
        if one.number and not said:
            return []
        people = await self.trust.accounts(one.repo)
        rows = [_row(one, place, author, people, text) for place, (author, text) in enumerate(said) if text.strip()]
        if one.own.strip():
            message = Message("assistant", without_html_comments(one.own))
            rows.append(MessageRow(one.key, len(said), message.role, message, 0, Provenance.SELF, one.at))
        return rows

    async def _thread(self, repo: Repo, number: int) -> list[tuple[Account, str]]:
        async with self.github.burst():
            issue = _if_there(await self.github.get_issue(repo, number))
            comments = _if_there(await self.github.list_comments(repo, number)) if issue else None
        if issue is None or comments is None:
            return []
        said = [one for one in comments if not parse_task_event_markers(one.body)]
        last = [(one.account, without_html_comments(one.body)) for one in said][-MOST_COMMENTS:]
        return [(issue.account, f"{issue.title}\n{without_html_comments(issue.body)}"), *last]


def _row(one: Happening, place: int, author: Account, people: TrustedAccounts, text: str) -> MessageRow:
    is_own = author == people.us
    message = Message("assistant" if is_own else "user", text if is_own else f"@{author.login}: {text}")
    provenance = min(people.provenance(author), people.editors)
    return MessageRow(one.key, place, message.role, message, 0, provenance, one.at)


def _experience_key(happening: str) -> str:
    return f"github:{happening}"


def _own_text(row: MessageRow) -> str:
    """Return the text of a message of ours; "" for a message of others."""
    content = row.message.content
    texts = [content] if isinstance(content, str) else [one.text for one in content if isinstance(one, Text)]
    return " ".join(texts) if row.role == "assistant" else ""


def _told_by(rows: Sequence[MessageRow]) -> str:
    """Return our own words about what happened, in one line."""
    return one_line(" ".join(_own_text(row) for row in rows), _EPISODE_CHARS)


def _done(intent: Intent) -> Happening | None:
    """Return what an intent did; None if it is not done or not worth a memory."""
    body = intent.body
    if intent.state != "done" or not isinstance(body, OnGitHub) or _is_upkeep(intent):
        return None
    if isinstance(body, IssueCommentBody) and parse_task_event_markers(body.body):
        return None
    number = intent.issue_number if isinstance(body, IssueBody) else 0
    if isinstance(body, IssueCommentBody | ReactionBody | ReviewBody):
        number = body.number
    own = "" if number and not isinstance(body, ReviewBody) else body.text or body.preview
    is_offer = isinstance(body, PullRequestBody) and bool(body.task)
    is_said_by_code = isinstance(body, ReviewBody | IssueCommentBody) and body.source == "workspace"
    kind = intent.kind.replace("_", " ")
    is_memo, is_routine = (intent.cause_id or "").startswith(f"{MEMO_KIND}:"), is_offer or is_said_by_code
    # NOTE(self): the words of a commitment made in a room come from what its host and its members said.
    repeats = {"space": Provenance.PEER, "found": Provenance.STRANGER}.get(body.source, Provenance.SELF)
    return Happening(intent.id, intent.created_at, kind, repo_of(body), number, own, is_routine, is_memo, repeats)


def _told(stored: StoredEntry) -> Happening | None:
    """Return what happened by an entry of the journal; None if it names no repository."""
    data = stored.entry.data
    owner, _, name = str(data.get("repo", "")).partition("/")
    if not name:
        return None
    code, key = str(data["act"]).replace("-", " "), f"{data['act']}:{data.get('about', stored.id)}"
    return Happening(key, stored.at, code, Repo(owner, name), own=stored.entry.summary)


def _is_upkeep(intent: Intent) -> bool:
    """Return whether an act only keeps a workspace's issues in order; that a plan is complete is worth a memory."""
    in_order = intent.kind == "issue_comment" and intent.target.startswith("workspace:")
    return in_order and not intent.target.endswith("/plan-complete")


def _known(connection: sqlite3.Connection, since: str) -> set[str]:
    """Return the keys of what was stored, and delete the marks from before `since`, which are no longer needed."""
    known = marks.starting_with(connection, _MARK)
    for key, at in known.items():
        if at < since:
            marks.remove(connection, f"{_MARK}{key}")
    return set(known)


def _if_there(answer: ApiResult[T]) -> T | None:
    """Return what was read; None if it does not exist for us. Raises `Transient` if it may be readable later."""
    return None if isinstance(answer, Err) and answer.kind in {"not_found", "invalid"} else answer.or_wait()
