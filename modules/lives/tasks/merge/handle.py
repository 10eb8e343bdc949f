"""Handles the row of a pull request of ours: keeps it up to date, merges it once that is allowed, and cleans up.

A conflict with the base gets one round, which merges the base into its branch. Each act is named by what it does and
at which commit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar

from adapters.git.worktree import Merging, Worktree
from adapters.github.client import GitHub
from adapters.github.types import Account, PullRequest, Repo, Review, latest_verdicts, newest_review
from common.clock import Clock, parse_iso, seldom_s
from common.files import delete_tree
from common.result import GONE, Err, Ok
from common.text.strings import both_ends
from common.text.untrusted import clean, one_line
from common.wording import LineKind, told_outcome
from modules.lives.tasks.code import TreeTests
from modules.lives.tasks.execute import place_of_pull
from modules.lives.tasks.merge.perceive import MERGE, pull_of
from modules.lives.tasks.merge.policy import MergeDecision, MergeFacts, RoundState, judge_merge, why_untested
from modules.lives.tasks.merge.wishes import wishes_row
from modules.lives.tasks.offering import (
    TAKEN_UP,
    TaskActs,
    read,
    told_talk,
    told_task,
)
from modules.lives.tasks.review.handle import PullFiles
from modules.lives.tasks.review.revise import Made, RevisionHandler
from modules.lives.tasks.review.rounds import (
    MOST_ROUNDS,
    MOST_ROWS,
    REVISION,
    Round,
    count_of_next,
    is_tried,
    next_round,
)
from modules.runtime.events import Publish
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.claims.lease_store import TaskEnded, TaskOffered, TaskOrders
from modules.services.coding.gates import GateFacts, closed_gate, gate_told
from modules.services.coding.policy import CodingEnd
from modules.services.outbox.github_bodies import (
    BranchUpdateBody,
    GitHubBody,
    IssueCommentBody,
    IssueUpdateBody,
    MergeBody,
    PullRequestBody,
    PushBody,
    RefBody,
)
from modules.services.outbox.github_writer import for_workspace, review_requests
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.github_changes import repo_of
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.own_feed.announcement import plan_of_pull
from modules.services.plans.plan_text import parse_plan
from modules.services.plans.types import ACTIVE_TASKS, claim_key, parse_task_branch
from modules.services.skills.skills import Framer
from modules.services.voice_phrases import Phrase
from modules.services.work.table import WorkTable
from modules.services.work.types import HELD, Disposition, Handler, WorkItem
from modules.services.workspaces.acting import REVIEWERS, SEEN_WITHIN, pick_reviewers, requested_changes
from modules.services.workspaces.trust import TrustedAccounts, WorkspaceTrust, plan_of

CONFLICT = "conflict"
"""The kind of the rows: one for each commit of ours that conflicts with its base, `owner/repo#31@<sha>`."""
MOST_CONFLICTS = 3
"""How many conflicts of one pull request are resolved."""

_SKILL = "merge-conflict"
_LINE_CHARS, _TEXT_CHARS, _MOST_CONFLICTING = 200, 6_000, 60


@dataclass(slots=True)
class ConflictHandler(RevisionHandler):
    """Merges the base into the branch of one pull request at a time. If that fails, the merge loop gives it back."""

    kind = CONFLICT
    what: ClassVar[str] = "merge"
    steps: ClassVar[str] = CONFLICT
    most_rounds: ClassVar[int] = MOST_CONFLICTS
    says: ClassVar[str] = "github.base_merged"

    async def _reviews(self, this: Round, pull: PullRequest) -> Sequence[Review]:
        """Return the verdicts that no longer count once the branch has another commit."""
        given = read(await self.github.pulls.reviews(this.repo, this.number))
        trusted = await self.trust.whole(this.repo)
        last = latest_verdicts(given).values()
        return [one for one in last if trusted.covers_besides_us(Account(one.author_id, one.author))]

    async def _made(
        self, this: Round, pull: PullRequest, acts: TaskActs, files: PullFiles, reviews: Sequence[Review]
    ) -> Made:
        """Have the merge of the base committed, and return the result."""
        tree = files.work
        merging = read(await tree.merge(await self._base(this, tree, pull.base.ref)))
        await asyncio.to_thread(delete_tree, files.base)
        files.base.mkdir()
        read(await tree.export(merging.theirs, files.base))
        tests = TreeTests(tree, partial(self._suite_change, files.base))

        async def wrong() -> str:
            left = read(await tree.unresolved(merging))
            broken = self.code.failed((await tests.result()).broken)
            told = self.skills.render(_SKILL, "Not Resolved", files=clean("\n".join(left))).strip() if left else ""
            changes = read(await tree.staged(this.sha, merged=merging.theirs))
            facts = GateFacts(changes.branch, changes, (), self.code.redactor.finds, acts.task.files)
            shut = gate_told(self.skills, closed_gate(facts))
            return "\n\n".join(filter(None, (told, broken or shut)))

        failing, end = await wrong(), CodingEnd("finished")
        if merging.conflicts or failing:
            message = self._task(acts, pull, merging, failing)
            end = await self._coded(this, acts, files.room_from(merging.start, merging.start), message, wrong)
        else:
            await self._commit(tree, f"Merge {pull.base.ref} into {pull.head.ref}\n", self.clock.now())
        changes = read(await tree.changes(this.sha, merged=merging.theirs))
        unresolved, finds = read(await tree.unresolved(merging)), self.code.redactor.finds
        suites = await tests.result()
        facts = GateFacts(pull.head.ref, changes, suites.broken, finds, acts.task.files, unresolved)
        return Made(facts, end.text, self._text(acts, pull, end, changes, suites))

    async def _base(self, this: Round, tree: Worktree, branch: str) -> str:
        """Return the commit of the base that a round merges, which stays the same after a restart."""
        row = await self.table.get(CONFLICT, this.key)
        if row is not None and (known := row.payload.get("base")):
            return str(known)
        base = read(await tree.tip(branch))
        if row is not None:
            await self.table.note(row, base=base)
        return base

    def _task(self, acts: TaskActs, pull: PullRequest, merging: Merging, failing: str) -> str:
        """Return what the agent is told of the conflict."""
        framer = Framer(self.skills, self.rng)

        def framed(text: str) -> str:
            return framer.frame("reading", author=acts.repo.full_name, uri=pull.html_url, text=text)

        lines = (merging.told or merging.conflicts)[:_MOST_CONFLICTING]
        return self.skills.render(
            _SKILL,
            "Message",
            repo=acts.repo.full_name,
            branch=one_line(pull.head.ref, _LINE_CHARS),
            base=one_line(pull.base.ref, _LINE_CHARS),
            task=f"{framed(told_task(acts.task))}\n\n{told_talk(self.skills, framer, acts.held.talk)}".strip(),
            conflicts=framed(both_ends("\n".join(lines) or failing, _TEXT_CHARS)),
            ours=framed(both_ends("\n".join(merging.our_subjects), _TEXT_CHARS)),
            theirs=framed(both_ends("\n".join(merging.their_subjects), _TEXT_CHARS)),
        )

    async def _tell_owner(self, this: Round, code: str, reason: str) -> Disposition:
        """Return the disposition that settles the row; the merge loop then gives the task back and tells the owner."""
        return Disposition("silent", code, reason)


@dataclass(frozen=True, slots=True)
class PullActs:
    """The acts for one pull request as it was read; all of them share `cause`.

    `by` is who made it, `name:model`, and `credit` names whose work it continued: the message of a squashed commit
    keeps both. `last_review` is the id of its newest review, 0 if it has none.
    """

    repo: Repo
    pull: PullRequest
    cause: str
    by: str = ""
    credit: str = ""
    last_review: int = 0

    @property
    def key(self) -> str:
        """The pull request: `owner/repo#12`."""
        return f"{self.repo.full_name}#{self.pull.number}"

    @property
    def task(self) -> int | None:
        """The number of the task that its branch is for; None if it is for none."""
        return parse_task_branch(self.pull.head.ref)

    @property
    def task_cause(self) -> str:
        """The cause that all acts for the task share: `owner/repo#12/task-3`."""
        return claim_key(self.repo.owner, self.repo.name, plan_of(self.pull.body) or 0, self.task or 0)

    def merge(self, hold: str = "") -> ProposedAction:
        """Return its merge at the commit that was read; `hold` is why that waits for the owner's approval."""
        title = f"{self.pull.title} (#{self.pull.number})"
        body = MergeBody(
            **for_workspace(self.repo),
            number=self.pull.number,
            task=self.task_cause if self.task else "",
            title=title,
            message="\n".join(filter(None, (self.by and f"Assisted-by: {self.by}", self.credit))),
            head_sha=self.pull.head.sha,
            last_review=self.last_review,
        )
        return self._action(body, f"{'asked-' if hold else ''}merge:{self.key}@{self.pull.head.sha}", hold)

    def update_branch(self) -> ProposedAction:
        """Return the merge of its base into its branch, at the commit that was read."""
        number, sha = self.pull.number, self.pull.head.sha
        body = BranchUpdateBody(**for_workspace(self.repo), number=number, head_sha=sha)
        return self._action(body, f"update:{self.key}@{sha}")

    def review_requests(self, reviewers: Sequence[str], *, of: str = "") -> list[ProposedAction]:
        """Return the requests to review it.

        `of` is the commit for which reviewers of an earlier one are asked again; "" for those who are asked for the
        first time.
        """
        asked, name = review_requests(self.repo, self.pull.number, reviewers), f"{self.key}@{of}" if of else self.key
        return [self._action(one, f"reviewer:{name}:{one.reviewers[0].lower()}") for one in asked]

    def give_back(self, text: str, *, keeps_branch: bool = False) -> tuple[ProposedAction, ...]:
        """Return the acts that withdraw it, in order: a comment, closing it, and the deletion of its branch."""
        number, name = self.pull.number, f"{'kept' if keeps_branch else 'given-back'}:{self.key}"
        said = IssueCommentBody(**for_workspace(self.repo), number=number, body=text)
        closed = IssueUpdateBody(**for_workspace(self.repo), number=number, state="closed")
        return (
            self._action(said, name),
            self._action(closed, name),
            *(() if keeps_branch else (self.delete_branch(),)),
        )

    def delete_branch(self) -> ProposedAction:
        """Return the deletion of its branch, which is done only if nothing was pushed to it since."""
        branch, sha = self.pull.head.ref, self.pull.head.sha
        body = RefBody(**for_workspace(self.repo), action="delete", branch=branch, sha=sha)
        return self._action(body, f"delete:{self.key}@{sha}")

    def _action(self, body: GitHubBody, name: str, hold: str = "") -> ProposedAction:
        return ProposedAction(body, part=name, cause_id=self.cause, hold=hold)


MERGES = "merges"
"""The name of the loop."""
LOOK_AGAIN_S, LEFT_ALONE_S = 120.0, 3_600.0
_TRIES = 3
_TRIED_AGAIN_AFTER = timedelta(days=1)
"""How long an act is left alone after `_TRIES` tries, as somebody may grant a right or change a rule meanwhile."""
_MOST_TRIES = 7
"""How often one act is tried in total; what GitHub still refuses then is left to a person."""
_MOST_UPDATES = 10
"""How often the branch of one pull request is updated."""
_NOT_SENT = "not-sent"
_LEFT_ALONE = Disposition("later", "left-alone", "you said to leave its task alone", LOOK_AGAIN_S)
_UPDATED = Disposition("later", "updated", "its branch was just updated", LOOK_AGAIN_S)
_NEVER_DROPPED = 10_000


@dataclass(frozen=True, slots=True)
class MergeHandler(Handler):
    """Handles one pull request at a time.

    Attributes:
        peers: returns the logins of the SOULs that could be asked for a review.
        seen: returns the logins of the SOULs that were seen since a moment.
        phrase: returns operational texts.
        by: returns who writes our code, `name:model`.
        may_merge_alone: whether we merge without a review if nobody can give one.
        failing: returns the tests that fail with a merge and do not fail on its base.

    """

    kind = MERGE
    most_tries = _NEVER_DROPPED
    is_cut_off = True

    github: GitHub
    trust: WorkspaceTrust
    table: WorkTable
    orders: TaskOrders
    outbox: Outbox
    journal: Journal
    clock: Clock
    publish: Publish
    peers: Callable[[], Iterable[str]]
    seen: Callable[[datetime], Iterable[str]]
    phrase: Phrase
    by: Callable[[], str]
    may_merge_alone: bool
    failing: Callable[[WorkItem, Repo, PullRequest], Awaitable[Sequence[str]]]

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> None:
        """Return None, to handle the row again: each act is done once by its name, and the last may be missing."""

    async def handle(self, item: WorkItem) -> Disposition:
        """Look at the pull request as it is now, and do what is needed."""
        repo, number = pull_of(item)
        read = await self.github.pulls.get(repo, number)
        if isinstance(read, Err):
            act, code = ("silent", "gone") if read.kind == "not_found" else ("later", "unread")
            return Disposition(act, code, read.error, LOOK_AGAIN_S)
        acts = PullActs(repo, read.data, item.cause_id, self.by())
        acts = replace(acts, credit=credit_in(await self._offered(acts)))
        trusted = await self.trust.accounts(repo)
        if not trusted.is_whole:
            return Disposition("later", "unread", "who may push there cannot be read now", LOOK_AGAIN_S)
        if trusted.why(acts.pull.account) != "us" or acts.pull.is_from_fork:
            return Disposition("silent", "not-ours", "it is not offered by us from a branch there")
        if acts.pull.state == "open":
            place = place_of_pull(acts.repo, acts.pull)
            is_left = place is not None and await self.orders.is_left(place)
            disposition = _LEFT_ALONE if is_left else await self._handle_open(item, acts, trusted)
            await self._tell(item, acts, disposition)
            # NOTE(self): a change that GitHub lists ends the pause; the base and checks change unlisted.
            pause_s = seldom_s(self.clock.since(parse_iso(acts.pull.updated_at)), LOOK_AGAIN_S, LEFT_ALONE_S)
            return replace(disposition, retry_in_s=max(disposition.retry_in_s, pause_s))
        for name in ("merge", "asked-merge"):
            await self.outbox.withdraw_begun(f"{name}:{acts.key}@", "the pull request is closed")
        return await self._merged(acts) if acts.pull.merged else await self._closed(acts, trusted)

    async def _handle_open(self, item: WorkItem, acts: PullActs, trusted: TrustedAccounts) -> Disposition:
        reviews = await self.github.pulls.reviews(acts.repo, acts.pull.number)
        if isinstance(reviews, Err):
            return Disposition("later", "unread", reviews.error, LOOK_AGAIN_S)
        facts = await self._facts(acts, reviews.data, trusted)
        await self._ask_again(acts, facts)
        decision = judge_merge(facts)
        if decision.code != "wait" and await self._has_other(acts):
            return Disposition("later", "taken-up", "another SOUL has its task now", LOOK_AGAIN_S)
        if decision.code in {"merge", "ask_owner"}:
            failing = await self.failing(item, acts.repo, acts.pull)
            # NOTE(self): the tests may have taken long enough for another review.
            latest = (await self.github.pulls.reviews(acts.repo, acts.pull.number)).or_raise()
            decision = judge_merge(replace(facts, failing=failing, reviews=latest))
            acts = replace(acts, last_review=newest_review(latest))
        return await self._do(acts, decision)

    async def _do(self, acts: PullActs, decision: MergeDecision) -> Disposition:
        match decision.code:
            case "merge":
                return await self._merge(acts, acts.merge(), decision)
            case "ask_owner":
                return await self._merge(acts, acts.merge(hold=decision.reason), decision)
            case "ask_others":
                await self._ask_others(acts)
            case "update":
                return await self._undone(acts.update_branch(), decision) or _UPDATED
            case "resolve":
                await self._resolve(acts)
            case "give_back":
                return await self._give_back(acts, decision)
        return Disposition("later", "waits", decision.reason, LOOK_AGAIN_S)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        return f"Pull request {item.key}: {told_outcome(disposition.code)}"

    async def _facts(self, acts: PullActs, reviews: Sequence[Review], trusted: TrustedAccounts) -> MergeFacts:
        us, now = self.github.login.lower(), self.clock.now()
        updates = [one for one in await self.outbox.by_cause(acts.cause) if isinstance(one.body, BranchUpdateBody)]
        unchanged = _unchanged(acts.pull.head.sha, updates)
        here = Round(acts.repo, acts.pull.number, acts.pull.head.sha)
        is_asked = bool(requested_changes(here.sha, reviews, trusted))
        failed = [one for one in updates if one.target == acts.update_branch().target]
        known = {login.lower() for login in (*self.peers(), *self.seen(now - SEEN_WITHIN))}
        return MergeFacts(
            pull=acts.pull,
            reviews=reviews,
            pushers=trusted.pushers,
            since=self.clock.since,
            has_peers=bool(known - {us}),
            untested=await self._untested(acts, {acts.pull.head.sha, *unchanged}),
            may_merge_alone=self.may_merge_alone,
            revision=await self._round(here, REVISION, MOST_ROUNDS, is_change_asked=is_asked),
            conflict=await self._round(here, CONFLICT, MOST_CONFLICTS),
            unchanged=unchanged,
            can_update=len(updates) < _MOST_UPDATES and len(failed) < _TRIES,
        )

    async def _round(self, here: Round, kind: str, most: int, *, is_change_asked: bool = True) -> RoundState:
        rows = await self.table.newest(kind, MOST_ROWS, key_prefix=here.key_prefix)
        known = next((one for one in rows if one.key == here.key), None)
        if known and known.state == "pending":
            return "waits"
        is_done = known is not None and is_tried(known, is_change_asked=is_change_asked)
        return "none" if is_done or count_of_next(rows) > most else "expected"

    async def _untested(self, acts: PullActs, shas: Collection[str]) -> str:
        """Return why no stored test shows that one of these commits works; "" if one does, or for documents alone."""
        done, text = await self.outbox.done(acts.task_cause), await self._offered(acts)
        pushed = [one.body for one in done if isinstance(one.body, PushBody) and one.body.branch == acts.pull.head.ref]
        if text is None:
            return "it was not offered by this SOUL, so its tests are not known"
        return why_untested(text, pushed, shas) if pushed else ""

    async def _offered(self, acts: PullActs) -> str | None:
        """Return the text with which it was offered, as we stored it; None if this SOUL did not offer it."""
        made = [one for one in await self.outbox.done(acts.task_cause) if one.made("issue") == str(acts.pull.number)]
        return next((one.body.body for one in made if isinstance(one.body, PullRequestBody)), None)

    async def _has_other(self, acts: PullActs) -> bool:
        """Return whether the plan gives the task to somebody else, who took it over while we were inactive."""
        place = place_of_pull(acts.repo, acts.pull)
        issue = (await self.github.get_issue(acts.repo, place.issue)).or_else(None, *GONE) if place else None
        plan = parse_plan(issue.body, issue.title) if issue else None
        task = plan.task(place.number) if plan and place else None
        holder = task.assignee or "" if task and task.status in ACTIVE_TASKS else ""
        return holder.lower() not in {"", self.github.login.lower()}

    async def _merge(self, acts: PullActs, action: ProposedAction, decision: MergeDecision) -> Disposition:
        """Merge it at the commit that was read, or ask the owner to approve that, each once."""
        if undone := await self._undone(action, decision):
            return undone
        done = (await self.outbox.standing(action.kind, action.target)).active
        return await (self._queued(acts) if done and done.made("queue") else self._merged(acts))

    async def _queued(self, acts: PullActs) -> Disposition:
        """Wait for the merge queue, and tell the owner if the pull request was removed; a new commit joins again."""
        queue = await self.github.pulls.queue(acts.repo, acts.pull.number)
        if isinstance(queue, Err):
            return Disposition("later", "unread", queue.error, LOOK_AGAIN_S)
        if queue.data == "in":
            return Disposition("later", "queued", "it waits in the merge queue", LOOK_AGAIN_S)
        return Disposition("later", _NOT_SENT, "it left the merge queue without being merged", LEFT_ALONE_S)

    async def _give_back(self, acts: PullActs, decision: MergeDecision) -> Disposition:
        """Say why it is withdrawn, and close it; its task becomes free once that is seen.

        Its branch is deleted only if it was rejected; otherwise the work may still be useful.
        """
        said = self.phrase(f"github.pull_{decision.problem}", base=acts.pull.base.ref, branch=acts.pull.head.ref)
        actions = acts.give_back(said, keeps_branch=decision.problem != "rejected")
        if (await self.outbox.standing(actions[1].kind, actions[1].target)).code == "done":
            return Disposition("later", "reopened", "somebody reopened it after it was taken back", LOOK_AGAIN_S)
        for action in actions:
            if waits := await self._undone(action, decision):
                return waits
        summary = f"{acts.key} is taken back: {decision.reason}"
        await self.journal.record(_entry(acts, summary, line="warn"))
        self.publish(TaskEnded())
        return Disposition("done", decision.problem, decision.reason)

    async def _ask_others(self, acts: PullActs) -> None:
        """Ask as many other peers as were asked before, each once."""
        picked = pick_reviewers(acts.key, self.github.login, self.peers(), 2 * REVIEWERS)
        asked = {one.login.lower() for one in acts.pull.requested_reviewers}
        for action in acts.review_requests([login for login in picked[REVIEWERS:] if login.lower() not in asked]):
            await self.outbox.do_once(action)

    async def _ask_again(self, acts: PullActs, facts: MergeFacts) -> None:
        """Ask reviewers again whose approval GitHub dismissed when the branch was updated, each once."""
        asked = {one.login.lower() for one in acts.pull.requested_reviewers}
        dismissed = sorted(
            one.author
            for one in latest_verdicts(facts.reviews).values()
            if one.state == "DISMISSED" and one.commit_id in facts.unchanged and one.author.lower() not in asked
        )
        for action in acts.review_requests(dismissed, of=acts.pull.head.sha):
            await self.outbox.do_once(action)

    async def _resolve(self, acts: PullActs) -> None:
        """Add a round that resolves its conflict."""
        here = Round(acts.repo, acts.pull.number, acts.pull.head.sha, kind=CONFLICT)
        earlier = await self.table.newest(CONFLICT, MOST_ROWS, key_prefix=here.key_prefix)
        if due := next_round(here, earlier, self.clock.since):
            await self.table.offer(due.row)
            self.publish(TaskOffered())

    async def _tell(self, item: WorkItem, acts: PullActs, disposition: Disposition) -> None:
        """Store for the owner why a pull request waits, and tell them once if GitHub refuses what it needs."""
        if disposition.act != "later":
            return
        kept = {"waits": disposition.reason}
        if not kept.items() <= item.payload.items():
            await self.table.note(item, **kept)
        sha = acts.pull.head.sha
        if disposition.code == _NOT_SENT and item.payload.get("told") != sha:
            summary = f"Please look at {acts.key}, which GitHub does not let me finish: {acts.pull.html_url}"
            data = {"act": "merge-refused", "repo": acts.repo.full_name}
            await self.journal.record(
                Entry("decision", MERGES, summary, "warn", disposition.reason, trigger_uri=acts.cause, data=data)
            )
            await self.table.note(item, told=sha)

    async def _undone(self, action: ProposedAction, decision: MergeDecision) -> Disposition | None:
        """Perform an act, once for its name; return the disposition of the row if it is not done yet, else None."""
        standing = await self.outbox.standing(action.kind, action.target)
        if standing.code == "left_alone" and not await self._is_out_of_queue(action):
            # NOTE(self): what the owner is asked, and what GitHub refused so often, is left to a person.
            again_after = None if action.hold or standing.tries >= _MOST_TRIES else _TRIED_AGAIN_AFTER
            standing = await self.outbox.do_once(action, _TRIES, again_after)
        elif standing.code == "free":
            standing = await self.outbox.do_once(action)
        if standing.code == "left_alone":
            return Disposition("later", _NOT_SENT, standing.reason, LEFT_ALONE_S)
        if standing.active is None:
            if standing.advice:
                return Disposition("later", "not-allowed", standing.reason, LEFT_ALONE_S)
            return Disposition("later", "refused", f"you said no: {action.body.short_preview}", LEFT_ALONE_S)
        row = await self.outbox.settled(standing.active.id) or standing.active
        if row.state == "done":
            return None
        reason = row.error or decision.reason
        return Disposition("later", row.state, reason, LOOK_AGAIN_S, row.id, held=row.state == HELD)

    async def _is_out_of_queue(self, action: ProposedAction) -> bool:
        """Return whether an act is a merge that waits outside of its merge queue: there one try is enough."""
        if not isinstance(body := action.body, MergeBody):
            return False
        queue = await self.github.pulls.queue(repo_of(body), body.number)
        return isinstance(queue, Ok) and queue.data == "out"

    async def _merged(self, acts: PullActs) -> Disposition:
        """Delete its branch, and have the task completed at once, whoever merged it."""
        if acts.task:
            await self._delete_branch(acts)
        plans = [work.row] if (work := plan_of_pull(acts.repo, acts.pull)) else []
        await self.table.add(*plans, wishes_row(acts.repo, acts.pull.number))
        await self.journal.record(_entry(acts, f"{acts.key} is merged", line="done"))
        self.publish(TaskEnded())
        return Disposition("done", "merged", acts.pull.html_url)

    async def _closed(self, acts: PullActs, trusted: TrustedAccounts) -> Disposition:
        """Free the task, but leave it alone if the owner closed the pull request.

        The branch is deleted only if we closed it: a person who closed it may reopen it.
        """
        issue = await self.github.get_issue(acts.repo, acts.pull.number)
        if isinstance(issue, Err):
            return Disposition("later", "unread", issue.error, LOOK_AGAIN_S)
        place = place_of_pull(acts.repo, acts.pull)
        if place and trusted.why(issue.data.closer) == "owner" and not await self.orders.is_left(place):
            await self.orders.leave(place)
            summary = f"You closed {acts.key}: its task is left alone"
            await self.journal.record(_entry(acts, summary, line="done"))
        closed = acts.give_back("")[1]
        if (await self.outbox.standing(closed.kind, closed.target)).active:
            await self._delete_branch(acts)
        self.publish(TaskEnded())
        return Disposition("silent", "closed", "it was closed without a merge")

    async def _delete_branch(self, acts: PullActs) -> None:
        await self.outbox.do_once(acts.delete_branch())


def _unchanged(sha: str, updates: Iterable[Intent]) -> frozenset[str]:
    """Return the earlier commits to which `sha` adds nothing but updates of its branch that GitHub made."""
    made = {
        one.made("commit"): one.body.head_sha
        for one in updates
        if one.state == "done" and isinstance(one.body, BranchUpdateBody)
    }
    found = set[str]()
    while (sha := made.get(sha, "")) and sha not in found:
        found.add(sha)
    return frozenset(found)


def credit_in(text: str | None) -> str:
    """Return the trailer that names whose work a pull request of ours continued; "" if it has none."""
    lines = [line for line in (text or "").splitlines() if line.endswith(f"` {TAKEN_UP}")]
    return lines[-1].removesuffix(f"` {TAKEN_UP}").rpartition("`")[2] if lines else ""


def _entry(acts: PullActs, summary: str, *, line: LineKind) -> Entry:
    return Entry("life", MERGES, summary, line=line, reason=acts.pull.html_url, trigger_uri=acts.cause)
