"""Finds the pull requests in the watched workspaces that we have to review, and those of our own that need changes.

Each commit is a row of work.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from adapters.github.client import GitHub
from adapters.github.types import Account, PullRequest, Repo
from common.clock import parse_iso
from common.errors import Transient
from common.result import GONE, Err, answering
from modules.lives.tasks.review.handle import APPROVED, CLOSED, COMMENTED, MOVED, REVIEW, ReviewPlace
from modules.lives.tasks.review.rounds import AGAIN_AFTER, MOST_ROWS, REVISION, Round, is_tried, next_round
from modules.services.outbox.types import Intent
from modules.services.plans.types import parse_task_branch
from modules.services.work.table import WorkTable
from modules.services.work.types import NewWork, Perceiver, WorkItem
from modules.services.workspaces.acting import (
    is_reviewed_by_test,
    requested_changes,
    review_cause,
    reviews_to_answer,
)
from modules.services.workspaces.trust import TrustedAccounts, WorkspaceTrust, plan_of, read_pulls
from modules.services.workspaces.watched import WatchedWorkspaces

_SAME_SECOND = timedelta(minutes=1)
"""How long after its last change a pull request may change without a sign: GitHub's times are in whole seconds."""


@dataclass(slots=True)
class ReviewPerceiver(Perceiver):
    """Looks at the open pull requests of each workspace.

    `peers` returns the logins of the known SOULs, `acts` all intents of a cause.
    """

    github: GitHub
    workspaces: WatchedWorkspaces
    trust: WorkspaceTrust
    table: WorkTable
    peers: Callable[[], Collection[str]]
    acts: Callable[[str], Awaitable[Sequence[Intent]]]
    _left: dict[str, tuple[str, tuple[Account, ...], frozenset[str]]] = field(default_factory=dict, init=False)
    """The commits with nothing to do, by key: when they last changed, who was asked or counts, the known SOULs."""
    _apart: dict[str, str] = field(default_factory=dict, init=False)
    """By key of a review, the newest commit of the base that changed no file of its pull request."""

    async def perceive(self) -> None:
        """Add a row for each commit that we have to review or to change.

        Raises `Transient` if a workspace cannot be read.
        """
        problem: Err | None = None
        for one in self.workspaces.all():
            if not self.github.enough_for_loops:
                return
            repo = Repo(one.owner, one.repo)
            problem = await self._look_at(repo) or problem
        if problem is not None:
            raise Transient(problem.error, retry_after=problem.retry_after)

    @answering
    async def _look_at(self, repo: Repo) -> None:
        trusted = await self.trust.accounts(repo)
        for pull in (await read_pulls(self.github, repo, None, trusted)).or_raise():
            if is_reviewed_by_test(pull, trusted):
                await self._consider(repo, pull, trusted)
            elif trusted.why(pull.account) == "us" and not pull.draft and _is_for_task(pull):
                await self._look_for_requests(repo, pull, trusted)

    async def _consider(self, repo: Repo, pull: PullRequest, trusted: TrustedAccounts) -> None:
        place = ReviewPlace(repo, pull.number, pull.head.sha)
        row = place.row
        # NOTE(self): GitHub's times are in whole seconds; a review may still be requested within the same second.
        known = frozenset([*self.peers(), *([pull.author] if trusted.is_program(pull.account) else [])])
        seen = (pull.updated_at, pull.requested_reviewers, known)
        if self._left.get(row.key) == seen:
            return
        last = next(iter(await self.table.newest(REVIEW, 1, key_prefix=row.key)), None)
        is_asked = trusted.us in pull.requested_reviewers
        is_ungiven = is_asked and last is not None and await self._is_ungiven(last)
        is_over = last is not None and last.state != "pending" and last.outcome in {CLOSED, MOVED}
        if last is None or is_over or (is_ungiven and last.key == row.key):
            reviews = (await self.github.pulls.reviews(repo, pull.number)).or_raise()
            if review_cause(f"{repo.full_name}#{pull.number}", pull, reviews, trusted, self.peers()):
                tip = (await self.github.refs.get(repo, pull.base.ref)).or_raise()
                await self.table.offer(replace(place, base=tip.sha).row)
            else:
                self._left[row.key] = seen
        elif is_asked and (last.outcome == COMMENTED or is_ungiven):
            await self._decide_again(place, trusted, self.table.offer if is_ungiven else self.table.add)
        else:
            await self._look_at_base(place, pull, last)

    async def _is_ungiven(self, row: WorkItem) -> bool:
        """Return whether a review was given up an hour ago or earlier, or its draft expired."""
        if row.state == "pending" or self.table.clock.since(parse_iso(row.created_at)) < AGAIN_AFTER:
            return False
        return row.state == "dropped" or {one.state for one in await self.acts(row.cause_id)} == {"expired"}

    async def _decide_again(
        self, place: ReviewPlace, trusted: TrustedAccounts, add: Callable[[NewWork], Awaitable[object]]
    ) -> None:
        """Add another review of a commit on which we only commented, if asked again; once for each base commit."""
        reviews = (await self.github.pulls.reviews(place.repo, place.number)).or_raise()
        if not any(one.author_id == trusted.us.id and one.commit_id == place.sha for one in reviews):
            return
        # NOTE(self): read after the reviews, because GitHub removes a request with the review that answers it.
        pull = (await self.github.pulls.get(place.repo, place.number)).or_raise()
        if trusted.us not in pull.requested_reviewers:
            return
        tip = (await self.github.refs.get(place.repo, pull.base.ref)).or_raise()
        await add(replace(place, base=tip.sha, is_again=True).row)

    async def _look_at_base(self, place: ReviewPlace, pull: PullRequest, reviewed: WorkItem) -> None:
        """Add another review of an approved commit if its base has since changed a file of the pull request."""
        before, repo = reviewed.payload.get("base", ""), place.repo
        if reviewed.outcome != APPROVED or not before:
            return
        tip = (await self.github.refs.get(repo, pull.base.ref)).or_raise()
        if tip.sha in {before, self._apart.get(reviewed.key)}:
            return
        files = (await self.github.pulls.files(repo, pull.number)).or_raise()
        changed = (await self.github.pulls.changed(repo, before, tip.sha)).or_else(files, *GONE)
        if {one.path for one in changed} & {one.path for one in files}:
            await self.table.add(replace(place, base=tip.sha, is_again=True).row)
        else:
            self._apart[reviewed.key] = tip.sha

    async def _look_for_requests(self, repo: Repo, pull: PullRequest, trusted: TrustedAccounts) -> None:
        """Add another round for our pull request if a review of its newest commit has to be answered."""
        this = Round(repo, pull.number, pull.head.sha)
        known = await self.table.get(REVISION, this.key)
        seen = (pull.updated_at, tuple(trusted.others()), frozenset[str]())
        if (known and (known.state == "pending" or is_tried(known))) or self._left.get(this.key) == seen:
            return
        reviews = (await self.github.pulls.reviews(repo, pull.number)).or_raise()
        if reviews_to_answer(this.sha, reviews, trusted):
            earlier = await self.table.newest(REVISION, MOST_ROWS, key_prefix=this.key_prefix)
            is_asked = bool(requested_changes(this.sha, reviews, trusted))
            if due := next_round(this, earlier, self.table.clock.since, is_change_asked=is_asked):
                await self.table.offer(due.row)
        elif self.table.clock.now() - parse_iso(pull.updated_at) > _SAME_SECOND:
            self._left[this.key] = seen


def _is_for_task(pull: PullRequest) -> bool:
    return plan_of(pull.body) is not None and parse_task_branch(pull.head.ref) is not None
