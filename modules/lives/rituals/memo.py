"""Writes down what we take from a run: the memo of the day in the ritual's workspace, or a comment where one stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TypeVar

from adapters.atproto.client import Atproto
from adapters.atproto.records import web_url
from adapters.atproto.types import Post, ThreadNode
from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from common.provenance import Trust
from common.result import LASTING, ApiResult, ErrKind, Ok, Undone, answering
from common.text.github_text import comment_body, without_mentions
from common.text.untrusted import one_line
from modules.lives.rituals.owner_comments import OwnerComments
from modules.lives.rituals.writing import Memo, MemoRequest, RitualWriter
from modules.services.commitments.acts import MEMO
from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import NewExperience
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody, IssueUpdateBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.rights.preferences import Preferences
from modules.services.rituals.policy import (
    MEMO_KIND,
    RITUAL_PROMPT_RUNS,
    memo_cause,
    memo_mark,
    memo_title,
    note_of,
    ritual_role,
    workspace_of,
)
from modules.services.rituals.rituals import Rituals
from modules.services.rituals.types import RitualRun, RitualThread
from modules.services.work.types import Disposition, Handler, WorkItem
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

T = TypeVar("T")

_MOST_TRIES = 3
_LOOK_AGAIN_S, _HELD_AGAIN_S = 60.0, 3600.0
_THREAD_DEPTH, _POST_CHARS, _MOST_POSTS = 6, 400, 40
_END = "\n\n---\n\n"
"""Between the words of a memo and the link to its thread."""


@dataclass
class MemoHandler(Handler):
    """Handles a row for each run in which we said something.

    Attributes:
        rituals: which there are, and what came of them.
        writer: asks the model.
        outbox: takes the memo.
        atproto: reads the thread.
        github: reads the workspace.
        trust: says whose memo counts there.
        workspaces: those that are watched.
        preferences: whose posts may stand in a prompt.
        owner_comments: reads what the owner said to earlier memos.
        experiences: keeps what we wrote down.
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
    agent_name: str

    async def handle(self, item: WorkItem) -> Disposition:
        run = await self._run(item)
        ritual = self.rituals.listed().get(run.key) if run else None
        if run is None or ritual is None:
            return Disposition("dropped", "gone", "the ritual or its run is gone")
        repo = workspace_of(ritual, [Repo(one.owner, one.repo) for one in self.workspaces.all()])
        if repo is None:
            return Disposition("silent", "no-workspace", f"no workspace {ritual.workspace} is watched")
        for one in await self.outbox.by_cause(item.cause_id):
            if one.rejected or one.state in {"expired", "failed"}:
                code = "rejected" if one.rejected else one.state
                return Disposition("silent", code, f"{one.error or code}: it is not written again")
        thread = RitualThread(ritual, run, ritual_role(self.agent_name, run.thread_uri))
        return await self._write_down(item, thread, repo)

    async def _write_down(self, item: WorkItem, thread: RitualThread, repo: Repo) -> Disposition:
        """Have a memo written, and hand it to the outbox. Raises `SoulError`."""
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
        """Keep where the artefact stands, once it does."""
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
        """Return where the memo of a run stands, after another look: somebody else may have written one meanwhile.

        The first one stands. Ours becomes a comment there and is closed. Raises `Transient`.
        """
        owner, _, name = body.repo.partition("/")
        repo = Repo(owner, name)
        standing = (await self._standing(repo, run)).or_else(None, *LASTING)
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
        """Keep what we wrote down as an experience with those who took part. Raises `Transient`.

        None is kept where the thread cannot be read any more.
        """
        if (posts := (await self._thread(run)).or_else(None, *LASTING)) is None:
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
        """Return the memo that the model writes of a thread; None where it finds no words. Raises `SoulError`."""
        run = thread.run
        await self.rituals.runs.note_took_part(run, await self.rituals.took_part(thread, posts))
        runs = await self.rituals.runs.latest(run.key, RITUAL_PROMPT_RUNS)
        await self.owner_comments.read(runs)
        history = self.rituals.history(runs, before=run.day)
        said = [self._line(post) for post in await self._shown(posts)]
        return await self.writer.memo(MemoRequest(thread, history, said, standing.body if standing else ""))

    @answering
    async def _thread(self, run: RitualRun) -> ApiResult[list[Post]]:
        """Return the posts of a thread, its opening first; none where it is gone."""
        read = _of(f"the thread of {run.name}", await self.atproto.get_post_thread(run.thread_uri, _THREAD_DEPTH, 0))
        if (thread := read.or_else(None, "not_found")) is None:
            return Ok([])
        return Ok(sorted(_posts(thread), key=lambda post: (post.uri != run.thread_uri, post.created_at))[:_MOST_POSTS])

    async def _shown(self, posts: Iterable[Post]) -> list[Post]:
        """Return the posts whose authors allow that they stand in a prompt, and whom the owner did not mute."""
        posts = list(posts)
        dids = {post.author.did for post in posts} - {self.atproto.did}
        may = await self.preferences.readable(dids) | {self.atproto.did}
        return [post for post in posts if post.author.did in may]

    def _line(self, post: Post) -> str:
        who = "YOU" if post.author.did == self.atproto.did else f"@{post.author.handle}"
        return f"{who}: {one_line(post.text, _POST_CHARS)}"

    @answering
    async def _standing(self, repo: Repo, run: RitualRun) -> ApiResult[Issue | None]:
        """Return the memo of a run that somebody whose words count there wrote first."""
        found = _of(repo.full_name, await self.github.list_issues(repo, labels=(MEMO,))).or_raise()
        accounts, mark = await self.trust.accounts(repo), memo_mark(run.thread_uri)
        memos = [one for one in found if mark in one.body and accounts.covers(one.account)]
        return Ok(min(memos, key=lambda one: one.number, default=None))


def _of(what: str, answer: ApiResult[T]) -> ApiResult[T]:
    """Return an answer whose error says what it is about. A conflict passes by itself."""
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
