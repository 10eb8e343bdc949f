"""Opens a ritual with a post, and writes the memo of a run into the ritual's workspace.

An opening is one post per local date: a view of our own, the names of those invited, and one question. The owner's
comments on earlier memos on GitHub guide the next one. If the day has a memo already, ours becomes a comment on it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import TypeVar

from adapters.atproto.client import Atproto
from adapters.atproto.records import POST, web_url
from adapters.atproto.types import Post, ThreadNode
from adapters.github.client import GitHub
from adapters.github.types import Comment, Issue, Repo
from common.clock import from_local, iso
from common.constants import MINUTE_MS, SECOND_MS
from common.provenance import Provenance, Trust
from common.result import GONE, ApiResult, ErrKind, Ok, Undone, answering
from common.text.github_text import comment_body, without_mentions
from common.text.untrusted import one_line
from modules.lives.rituals.writing import Memo, MemoRequest, OpeningRequest, RitualWriter
from modules.services.commitments.acts import MEMO
from modules.services.experiences import ExperienceLog, NewExperience
from modules.services.identity.self_mechanics import DailyRitual
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody, IssueUpdateBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.rights.preferences import Preferences
from modules.services.rituals.policy import (
    MEMO_KIND,
    OPENING_KIND,
    RITUAL_PROMPT_RUNS,
    RitualRun,
    RitualThread,
    memo_cause,
    memo_mark,
    memo_place,
    memo_title,
    name_of,
    note_of,
    opening_cause,
    parts_are_even,
    ritual_role,
    workspace_of,
)
from modules.services.rituals.rituals import Rituals
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, WorkItem
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

_MOST_LINES, _LINE_CHARS = 3, 300


@dataclass(frozen=True, slots=True)
class OwnerComments:
    """Reads the owner's comments on our artefacts; `trust` says which account is the owner's, `timezone` is ours."""

    outbox: Outbox
    github: GitHub
    trust: WorkspaceTrust
    experiences: ExperienceLog
    timezone: str

    async def read(self, runs: Sequence[RitualRun]) -> list[str]:
        """Return the owner's newest comments on our artefacts, a line each, and record each once as guidance.

        Only comments since the day of the newest artefact count, also those on older ones. What cannot be read is left
        out. A comment that was edited counts only if nobody but the owner and we may edit it.
        """
        written = [run for run in runs if run.artefact_url]
        since = iso(from_local(datetime.combine(written[0].day, time()), self.timezone)) if written else ""
        found = [one for run in written for one in await self._on(run.artefact_url, since)]
        theirs = sorted(found, key=lambda one: one.created_at)[-_MOST_LINES:]
        for one in theirs:
            key = f"memo-comment:{one.id}"
            await self.experiences.record(
                NewExperience("owner_guidance", "ritual", key, one.body, uri=one.html_url, trust="owner")
            )
        return [one_line(one.body, _LINE_CHARS) for one in theirs]

    async def _on(self, url: str, since: str) -> list[Comment]:
        """Return the owner's comments since a moment on a memo of ours."""
        if (place := memo_place(url)) is None:
            return []
        repo, memo = place
        people, found = (
            await self.trust.accounts(repo),
            (await self.github.list_comments(repo, memo, since=since)).or_else(()),
        )
        is_ours_alone = people.editors >= Provenance.SELF
        by_owner = [one for one in found if people.is_owner(one.account) and one.created_at >= since]
        return [one for one in by_owner if is_ours_alone or one.updated_at == one.created_at]


MOST_OPENING_TRIES = 2
OPENING_AGAIN_S = 30 * MINUTE_MS / SECOND_MS


@dataclass
class OpeningHandler(Handler):
    """Handles one row for each ritual and local date.

    Attributes:
        rituals: the listed rituals, and their runs.
        writer: asks the model.
        outbox: takes the post.
        atproto: gives our own DID.
        owner_comments: reads the owner's comments on earlier memos.
        keep_hours: whether a ritual opens only in its hours; off where days are shortened.

    """

    kind = OPENING_KIND
    most_tries = MOST_OPENING_TRIES

    rituals: Rituals
    writer: RitualWriter
    outbox: Outbox
    atproto: Atproto
    owner_comments: OwnerComments
    keep_hours: bool

    async def handle(self, item: WorkItem) -> Disposition:
        key, day = str(item.payload["ritual"]), date.fromisoformat(item.payload["day"])
        ritual = self.rituals.listed().get(key)
        if ritual is None:
            return Disposition("dropped", "gone", "SELF.md names it no longer")
        if why_not := await self._why_not(ritual, key, day, by_hand=bool(item.payload.get("by_hand"))):
            return why_not
        invitations = await self.rituals.invitations(ritual)
        if invitations.left_out and not invitations.invited:
            who = ", ".join(f"@{handle}" for handle in invitations.left_out)
            reason = f"{who}: neither the owner, nor peers, nor took part before"
            return Disposition("later", "nobody-agreed", reason, OPENING_AGAIN_S)
        run = RitualRun(key, day, ritual.name, "initiator", "", self.atproto.did)
        text = await self.writer.opening(await self._request(ritual, run, invitations.invited))
        if not text:
            return Disposition("undecided", "no-words", "the model found no words that fit", OPENING_AGAIN_S)
        names = [self.rituals.me.agent_name, *map(name_of, invitations.invited)]

        def deals_parts(key_of_record: str) -> bool:
            return parts_are_even(names, f"at://{self.atproto.did}/{POST}/{key_of_record}")

        action = ProposedAction(
            PostBody(text=text),
            once=opening_cause(key, day),
            cause_id=item.cause_id,
            until=from_local(datetime.combine(day + timedelta(days=1), time()), self.rituals.me.timezone),
            key_fits=deals_parts,
        )
        submitted = await self.outbox.submit(action)
        if not submitted.accepted:
            return Disposition("undecided", "refused", submitted.reason, OPENING_AGAIN_S)
        return await self._opened(run, submitted.intent)

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> Disposition:
        """Store the run of a post that was accepted before a crash."""
        key, day = str(item.payload["ritual"]), date.fromisoformat(item.payload["day"])
        ritual = self.rituals.listed().get(key)
        run = RitualRun(key, day, ritual.name if ritual else key, "initiator", "", self.atproto.did)
        return await self._opened(run, accepted[0])

    async def _opened(self, run: RitualRun, intent: Intent) -> Disposition:
        uri, note = record_uri(self.atproto.did, intent), note_of(intent.body.public_text)
        await self.rituals.runs.add(RitualRun(run.key, run.day, run.name, run.role, uri, run.opener, note=note))
        return Disposition("done", "opened", uri, intent_id=intent.id, held=intent.state == "held")

    async def _why_not(self, ritual: DailyRitual, key: str, day: date, *, by_hand: bool) -> Disposition | None:
        """Return why a ritual is no longer opened on that day; None if it is."""
        schedule, now = ritual.when, self.rituals.now()
        is_open = schedule is not None and (not self.keep_hours or schedule.is_open(now))
        if day != now.date() or not (by_hand or is_open):
            return Disposition("dropped", "day-over", f"its time on {day.isoformat()} is over")
        if await self.rituals.runs.of_day(key, day):
            return Disposition("silent", "runs-already", "somebody else opened it today")
        return None

    async def _request(self, ritual: DailyRitual, run: RitualRun, invited: Sequence[str]) -> OpeningRequest:
        runs = await self.rituals.runs.latest(run.key, RITUAL_PROMPT_RUNS)
        causes = [opening_cause(one.key, one.day) for one in runs if one.role == "initiator"]
        said = [intent.body.public_text for cause in causes for intent in await self.outbox.accepted(cause)]
        history = self.rituals.history(runs, before=run.day)
        return OpeningRequest(
            ritual, run, invited, history, tuple(filter(None, said)), await self.owner_comments.read(runs)
        )


T = TypeVar("T")

_MOST_TRIES = 3
_LOOK_AGAIN_S, _HELD_AGAIN_S = 60.0, 3600.0
_THREAD_DEPTH, _POST_CHARS, _MOST_POSTS = 6, 400, 40
_END = "\n\n---\n\n"
"""Separates the text of a memo from the link to its thread."""


@dataclass
class MemoHandler(Handler):
    """Handles one row for each run in which we said something.

    Attributes:
        rituals: the listed rituals, and their runs.
        writer: asks the model.
        outbox: takes the memo.
        atproto: reads the thread.
        github: reads the workspace.
        trust: says whose memo counts there.
        workspaces: the watched workspaces.
        preferences: says whose posts may be shown in a prompt.
        owner_comments: reads the owner's comments on earlier memos.
        experiences: stores what we wrote down.
        table: the rows of work.
        agent_name: our name, from which our part follows.

    """

    kind = MEMO_KIND
    most_tries = _MOST_TRIES

    rituals: Rituals
    writer: RitualWriter
    outbox: Outbox
    atproto: Atproto
    github: GitHub
    trust: WorkspaceTrust
    workspaces: WatchedWorkspaces
    preferences: Preferences
    owner_comments: OwnerComments
    experiences: ExperienceLog
    table: WorkTable
    agent_name: str

    async def handle(self, item: WorkItem) -> Disposition:
        run = await self._run(item)
        ritual = self.rituals.listed().get(run.key) if run else None
        if run is None or ritual is None:
            return Disposition("dropped", "gone", "the ritual or its run is gone")
        names, watched = self.rituals.pinned_names, [Repo(one.owner, one.repo) for one in self.workspaces.all()]
        repo = workspace_of(ritual, {one: names.same_as("repository", one.full_name) for one in watched})
        if repo is None:
            return Disposition("silent", "no-workspace", f"no workspace {ritual.workspace} is watched")
        for one in await self.outbox.by_cause(item.cause_id):
            if one.rejected or one.state in {"expired", "failed"}:
                code = "rejected" if one.rejected else one.state
                return Disposition("silent", code, f"{one.error or code}: it is not written again")
        thread = RitualThread(ritual, run, ritual_role(self.agent_name, run.thread_uri))
        return await self._write_down(item, thread, repo)

    async def _write_down(self, item: WorkItem, thread: RitualThread, repo: Repo) -> Disposition:
        """Have a memo written, and submit it to the outbox. Raises `SoulError`."""
        run = thread.run
        try:
            standing, posts = (await self._standing(repo, run)).or_raise(), (await self._thread(run)).or_raise()
        except Undone as unreadable:
            return Disposition("dropped", "unreadable", str(unreadable))
        memo = await self._written(thread, posts, standing)
        if memo is None:
            return Disposition("undecided", "no-words", "the model found nothing to write that fits")
        body = _comment(repo, standing, memo) if standing else _issue(repo, run, memo)
        submitted = await self.outbox.submit(ProposedAction(body, part=item.cause_id, cause_id=item.cause_id))
        if not submitted.accepted:
            return Disposition("undecided", "refused", submitted.reason)
        return _on_its_way(submitted.intent)

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> Disposition:
        """Store the address of the artefact, once it is published."""
        intent, run = accepted[0], await self._run(item)
        if intent.state != "done":
            return _on_its_way(intent)
        if run and isinstance(body := intent.body, IssueBody | IssueCommentBody):
            title = body.title if isinstance(body, IssueBody) else ""
            note = note_of(f"{title} — {body.body}" if title else body.body)
            written = intent.result_uri or ""
            if isinstance(body, IssueBody):
                written = await self._let_one_stand(item, run, body, written)
            await self.rituals.runs.note_artefact(run, written, note)
            await self._record(run, body)
        return Disposition("done", "written", intent.result_uri or "", 0.0, intent.id)

    async def _let_one_stand(self, item: WorkItem, run: RitualRun, body: IssueBody, written: str) -> str:
        """Return the address of the memo of a run, after another look: somebody else may have written one meanwhile.

        The first memo stays. If it is not ours, ours is copied to a comment there and closed. Raises `Transient`.
        """
        owner, _, name = body.repo.partition("/")
        repo = Repo(owner, name)
        standing = (await self._standing(repo, run)).or_else(None, *GONE)
        number = written.rpartition("/")[2]
        if standing is None or not number.isdecimal() or standing.number >= int(number):
            return written
        words = comment_body(f"**{body.title}**\n\n{body.body.partition(_END)[0]}")
        for part, act in (
            ("comment", IssueCommentBody(**for_workspace(repo), number=standing.number, body=words)),
            ("close", IssueUpdateBody(**for_workspace(repo), number=int(number), state="closed")),
        ):
            cause = f"{item.cause_id}:{part}"
            await self.outbox.submit(ProposedAction(act, part=cause, cause_id=cause))
        return standing.html_url

    async def _record(self, run: RitualRun, body: IssueBody | IssueCommentBody) -> None:
        """Record what we wrote down as an experience with those who took part. Raises `Transient`.

        Nothing is recorded if the thread cannot be read any more.
        """
        if (posts := (await self._thread(run)).or_else(None, *GONE)) is None:
            return
        key, others = memo_cause(run.key, run.day), {post.author.did for post in posts} - {self.atproto.did}
        trust: Trust = "peer" if others else "self"
        if any(self.rituals.etiquette.is_stranger(did) for did in others):
            trust = "stranger"
        await self.experiences.record(
            NewExperience("learned_something", "ritual", key, body.body, uri=run.thread_uri, trust=trust)
        )

    async def _run(self, item: WorkItem) -> RitualRun | None:
        return await self.rituals.runs.of_day(str(item.payload["ritual"]), date.fromisoformat(item.payload["day"]))

    async def _written(self, thread: RitualThread, posts: Sequence[Post], standing: Issue | None) -> Memo | None:
        """Return the model's memo of a thread; None if it writes nothing that fits. Raises `SoulError`."""
        run = thread.run
        await self.rituals.runs.note_took_part(run, await self.rituals.took_part(thread, posts))
        runs = await self.rituals.runs.latest(run.key, RITUAL_PROMPT_RUNS)
        await self.owner_comments.read(runs)
        history = self.rituals.history(runs, before=run.day)
        said = [self._line(post) for post in await self._shown(posts)]
        return await self.writer.memo(MemoRequest(thread, history, said, standing.body if standing else ""))

    @answering
    async def _thread(self, run: RitualRun) -> ApiResult[list[Post]]:
        """Return the posts of a thread, its opening first; an empty list if it is gone."""
        read = _of(f"the thread of {run.name}", await self.atproto.get_post_thread(run.thread_uri, _THREAD_DEPTH, 0))
        if (thread := read.or_else(None, "not_found")) is None:
            return Ok([])
        return Ok(sorted(_posts(thread), key=lambda post: (post.uri != run.thread_uri, post.created_at))[:_MOST_POSTS])

    async def _shown(self, posts: Iterable[Post]) -> list[Post]:
        """Return the posts whose authors allow their use in a prompt, and whom the owner did not mute."""
        posts = list(posts)
        dids = {post.author.did for post in posts} - {self.atproto.did}
        may = await self.preferences.readable(dids) | {self.atproto.did}
        return [post for post in posts if post.author.did in may]

    def _line(self, post: Post) -> str:
        who = "YOU" if post.author.did == self.atproto.did else f"@{post.author.handle}"
        return f"{who}: {one_line(post.text, _POST_CHARS)}"

    @answering
    async def _standing(self, repo: Repo, run: RitualRun) -> ApiResult[Issue | None]:
        """Return the first memo of a run by somebody whose words count in the repository, or None."""
        found = _of(repo.full_name, await self.github.list_issues(repo, labels=(MEMO,))).or_raise()
        accounts, mark = await self.trust.whole(repo), memo_mark(run.thread_uri)
        memos = [one for one in found if mark in one.body and accounts.covers(one.account)]
        return Ok(min(memos, key=lambda one: one.number, default=None))


def _of(what: str, answer: ApiResult[T]) -> ApiResult[T]:
    """Return an answer whose error says what it is about. A conflict becomes transient, because it passes by itself."""
    if isinstance(answer, Ok):
        return answer
    kind: ErrKind = "transient" if answer.kind == "conflict" else answer.kind
    return replace(answer, error=f"{what}: {answer.error}", kind=kind)


def _on_its_way(intent: Intent) -> Disposition:
    is_held = intent.state == "held"
    return Disposition("later", "on-its-way", "", _HELD_AGAIN_S if is_held else _LOOK_AGAIN_S, intent.id, held=is_held)


def _issue(repo: Repo, run: RitualRun, memo: Memo) -> IssueBody:
    title = without_mentions(memo_title(run, memo.title))
    link = f"{_END}{web_url(run.thread_uri)}\n\n{memo_mark(run.thread_uri)}"
    return IssueBody(
        **for_workspace(repo),
        title=title,
        body=comment_body(memo.body) + link,
        labels=(MEMO,),
    )


def _comment(repo: Repo, standing: Issue, memo: Memo) -> IssueCommentBody:
    text = comment_body(f"**{memo.title}**\n\n{memo.body}")
    return IssueCommentBody(**for_workspace(repo), number=standing.number, body=text)


def _posts(node: ThreadNode) -> Iterator[Post]:
    yield node.post
    for reply in node.replies:
        yield from _posts(reply)
