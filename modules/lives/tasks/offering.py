"""Turns the work on a task into a pull request: the branch, what is written there, the pull request, the reviews.

Nothing is stored here. Each act is an intent of the outbox under a name of its own: its task, the epoch, what it does.
So the outbox lets none happen twice, and a life that was killed goes on where it ended.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from adapters.github.client import GitHub
from adapters.github.types import Comment, GitRef, PullRequest, Repo, Repository
from common.clock import Clock
from common.result import ApiResult, Err
from common.text.github_text import without_closing_words, without_mentions
from common.text.markdown import without_html_comments
from common.text.untrusted import one_line
from modules.lives.tasks.types import UNCLAIMED, Deferred, Failed, HeldTask, Lost, Opened, Stopped, WorkResult
from modules.services.commitments.texts import TITLE_CHARS
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.github_bodies import (
    ContentsBody,
    GitHubBody,
    IssueCommentBody,
    IssueUpdateBody,
    OfTask,
    PullRequestBody,
    PushBody,
    RefBody,
)
from modules.services.outbox.github_writer import for_workspace, review_requests
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.plans.types import (
    Task,
    claim_key,
    get_task_branch_candidates,
    get_task_branch_name,
    parse_task_branch,
)
from modules.services.repository_rules.policy import Condition
from modules.services.skills.skills import Framer, Skills
from modules.services.voice_phrases.regenerate import Phrase
from modules.services.workspaces.reviewers import pick_reviewers
from modules.services.workspaces.trust import TrustedAccounts, WorkspaceTrust, pulls_for, read_pulls

FIRST_PAGE = "README.md"
"""What the first commit of a repository holds."""

TESTS_PASSED = "<!-- soul:tests=passed -->"
"""What a pull request of ours holds whose tests all ran and passed before it was offered; no reader sees it."""
TAKEN_UP = "<!-- soul:taken-up -->"
"""What ends the line of a pull request of ours that names whose work it goes on with."""
TESTS_WEAKENED = "<!-- soul:tests=weakened -->"
TESTS_FAILED = "<!-- soul:tests=failed -->"
TESTS_UNRUN = "<!-- soul:tests=unrun -->"

_TITLE_CHARS, _GOAL_CHARS = 120, 600


@dataclass(frozen=True, slots=True)
class TaskActs:
    """The acts for one task under one claim."""

    held: HeldTask

    @property
    def repo(self) -> Repo:
        """Where it is done."""
        return self.held.found.repo

    @property
    def issue(self) -> int:
        """The number of the issue that holds the plan."""
        return self.held.found.number

    @property
    def task(self) -> Task:
        """What is done."""
        return self.held.task

    @property
    def cause(self) -> str:
        """What all acts for the task have in common, under whichever claim: `owner/repo#12/task-3`."""
        return claim_key(self.repo.owner, self.repo.name, self.issue, self.task.number)

    @property
    def title(self) -> str:
        """The title of the pull request and of its commits, which closes no issue by its words."""
        is_alone = self.held.epoch == UNCLAIMED and self.held.found.plan.tasks == (self.task,)  # in no plan
        of_plan = "" if is_alone else f"task({self.task.number}): "
        title = one_line(f"{of_plan}{self.task.title}", TITLE_CHARS)
        return without_closing_words(without_mentions(title))

    @property
    def told(self) -> dict[str, str | int]:
        """What the body of a pull request tells of the task and its plan, by the names in the phrases."""
        plan = self.held.found.plan
        return {
            "number": self.task.number,
            "title": without_mentions(one_line(self.task.title, _TITLE_CHARS)),
            "issue": self.issue,
            "plan": without_mentions(one_line(plan.title, _TITLE_CHARS)),
            "goal": without_mentions(one_line(plan.goal, _GOAL_CHARS)),
        }

    def name(self, what: str) -> str:
        """Return the name of an act."""
        return f"{self.cause}@{self.held.epoch}:{what}"

    def first_commit(self, description: str) -> ProposedAction:
        """Return the page with which a repository without a commit begins: its name, and what it says of itself.

        Whichever SOUL makes it, for whichever task, writes the same, so that it stands there once.
        """
        told = without_mentions(one_line(description, _GOAL_CHARS))
        text = "\n\n".join(filter(None, (f"# {self.repo.name}", told))) + "\n"
        contents = ContentsBody(**for_workspace(self.repo), path=FIRST_PAGE, content=text, message=self.title)
        return self.action("first-commit", contents)

    def pull_request(self, *, head: str, base: str, body: str, draft: bool = False) -> ProposedAction:
        """Return the pull request from the branch `head` into `base`; no draft is merged."""
        at = for_workspace(self.repo)
        offered = PullRequestBody(**at, title=self.title, body=body, head=head, base=base, draft=draft)
        return self.action("pull-request", offered)

    @property
    def credit(self) -> str:
        """The trailer that names the author of the work that is taken up; "" where none is."""
        if (left := self.held.left) is None:
            return ""
        return f"Co-authored-by: {left.author} <{left.author_id}+{left.author}@users.noreply.github.com>"

    def review_requests(self, number: int, reviewers: Sequence[str]) -> list[ProposedAction]:
        """Return the requests to review pull request `number`."""
        asked = review_requests(self.repo, number, reviewers)
        return [self.action(f"reviewer:{one.reviewers[0].lower()}", one) for one in asked]

    def action(self, what: str, body: GitHubBody) -> ProposedAction:
        """Return an act under the name of what it does. What changes code leaves only while the claim holds."""
        if isinstance(body, OfTask) and self.held.epoch != UNCLAIMED:
            body = body.model_copy(update={"task": self.cause, "epoch": self.held.epoch})
        return ProposedAction(body, part=self.name(what), cause_id=self.cause)


BranchCode = Literal["create", "go_on", "opened", "left"]


@dataclass(frozen=True, slots=True)
class BranchChoice:
    """Where a task is worked on.

    Attributes:
        code: `create` the branch; `go_on` upon it, because we made it; `opened`, because our pull request is open; or
            `left` alone, because of `reason`.
        branch: its name; "" for `left`.
        pull: the pull request that is open.
        reason: a sentence for people.

    """

    code: BranchCode
    branch: str = ""
    pull: PullRequest | None = None
    reason: str = ""


def choose_branch(
    task: Task,
    issue: int,
    epoch: int,
    *,
    branches: Collection[str],
    own: Collection[str],
    pulls: Sequence[PullRequest],
    trusted: TrustedAccounts,
) -> BranchChoice:
    """Return where a task is worked on.

    What somebody else began is never touched: then the branch has the epoch behind its name. A pull request belongs to
    the task by the number in its branch and by the plan that its body names; those of strangers do not count.

    Args:
        task: the task.
        issue: the number of the plan.
        epoch: of our claim.
        branches: the branches of the repository.
        own: those that we made for this task, also under an earlier claim.
        pulls: pull requests of the repository, in any state.
        trusted: whose pull requests count there.

    """
    about = [one for one in pulls_for(issue, pulls, trusted) if parse_task_branch(one.head.ref) == task.number]
    opened = [one for one in about if one.state == "open"]
    if mine := next((one for one in opened if trusted.why(one.account) == "us"), None):
        return BranchChoice("opened", mine.head.ref, mine)
    if other := next((one for one in (*opened, *about) if one.state == "open" or one.merged), None):
        what = "is open" if other.state == "open" else "was merged"
        return BranchChoice("left", reason=f"the pull request #{other.number} for it, by {other.author}, {what}")
    offered = {one.head.ref for one in pulls if trusted.covers(one.account)}
    return _branch_for(task, epoch, branches, {*own} - offered)


def _branch_for(task: Task, epoch: int, branches: Collection[str], usable: Collection[str]) -> BranchChoice:
    """Return a branch of ours that is there, else one that is to be made; `usable` are ours that nothing came of."""
    known = [one for one in get_task_branch_candidates(task.number, task.title) if one in branches]
    if begun := next((one for one in known if one in usable), None):
        return BranchChoice("go_on", begun)
    name = get_task_branch_name(task.number, task.title)
    with_epoch = f"{name}-e{epoch}"
    if with_epoch in branches and with_epoch in usable:
        return BranchChoice("go_on", with_epoch)
    free = next((one for one in (name, with_epoch) if one not in branches), "")
    return BranchChoice("create", free) if free else BranchChoice("left", reason=f"the branch {with_epoch} is taken")


T = TypeVar("T")

_TRIES = 3
"""So often one act is proposed under one claim, where it fails each time."""
_LOOK_AGAIN_S = 5.0
_LOOKS = 4
"""So often a first commit is looked for, which GitHub may show a little later."""
_NOT_OF_THE_TASK = frozenset({"transient", "unknown_outcome", "auth", "fatal"})
"""Why something could not be read for reasons that lie with GitHub, or with our account."""
_MAKES_BRANCH: dict[IntentKind, str] = {"ref": "branch", "push": "push"}
"""The acts that make the branch of a task, by what they are called."""


class TaskStopped(Exception):
    """Nothing more is to be done."""

    def __init__(self, result: WorkResult) -> None:
        super().__init__(type(result).__name__)
        self.result = result


@dataclass(frozen=True, slots=True)
class BranchPlace:
    """Where a task is worked on.

    Attributes:
        repository: as it is there.
        branch: the branch of the task.
        begun: the intent that makes the branch, where there is one.
        pull: our pull request, where it is open already.
        is_new: the branch is to be made.

    """

    repository: Repository
    branch: str
    begun: Intent | None = None
    pull: PullRequest | None = None
    is_new: bool = False

    @property
    def base(self) -> str:
        """The branch into which it is offered."""
        return self.repository.default_branch


@dataclass(frozen=True, slots=True)
class Offering:
    """Has the acts of a task done, each once.

    Attributes:
        github: what stands in the repository.
        trust: whose pull requests count there.
        outbox: the only way out.
        clock: waits for what is on its way.
        phrase: returns operational texts.
        peers: returns the logins of the SOULs that are known, who may be asked for a review.
        file_lines: returns the lines that a repository of somebody else wants in its files with each pull request.

    """

    github: GitHub
    trust: WorkspaceTrust
    outbox: Outbox
    clock: Clock
    phrase: Phrase
    peers: Callable[[], Iterable[str]]
    file_lines: Callable[[Repo], Awaitable[Sequence[Condition]]]

    @property
    def has_reviewers(self) -> bool:
        """Whether a peer can be asked for a review."""
        return bool(pick_reviewers("", self.github.login, self.peers()))

    async def place(self, acts: TaskActs) -> BranchPlace:
        """Return where the task is worked on. Raises `TaskStopped` where a pull request of somebody else is for it."""
        repository = read(await self.github.get_repository(acts.repo))
        for kind, what in _MAKES_BRANCH.items():
            row = (await self.outbox.standing(kind, acts.name(what))).active
            if row is not None and isinstance(row.body, RefBody | PushBody):
                return BranchPlace(repository, row.body.branch, begun=row)
        branches = {one.name for one in read(await self.github.refs.branches(acts.repo))}
        trusted = await self.trust.accounts(acts.repo)
        pulls = read(await read_pulls(self.github, acts.repo, acts.issue, trusted))
        made = await self.outbox.done(acts.cause, "ref")
        own = {one.body.branch for one in made if isinstance(one.body, RefBody)}
        left = acts.held.left
        pulls = tuple(one for one in pulls if left is None or one.number != left.number)
        choice = choose_branch(
            acts.task, acts.issue, acts.held.epoch, branches=branches, own=own, pulls=pulls, trusted=trusted
        )
        if choice.code == "left":
            raise TaskStopped(Lost())
        return BranchPlace(repository, choice.branch, pull=choice.pull, is_new=choice.code == "create")

    async def missing_lines(self, repo: Repo) -> list[tuple[str, str]]:
        """Return the lines that the repository wants and its default branch lacks, each with the path of its file.

        Raises `SoulError` where that cannot be read.
        """
        missing = []
        for one in await self.file_lines(repo):
            page = (await self.github.contents.read(repo, one.path)).or_else(None, "not_found", "conflict", "invalid")
            missing += [] if page and one.text in page.text.splitlines() else [(one.path, one.text)]
        return missing

    async def head(self, acts: TaskActs, repository: Repository) -> str:
        """Return the last commit of the default branch. Where the repository has none, its first is made before."""
        base = repository.default_branch
        found = await self.github.refs.get(acts.repo, base)
        if not _is_empty(found):
            return read(found).sha
        refused: TaskStopped | None = None
        try:
            await self.done(acts.first_commit(repository.description))
        except TaskStopped as ended:
            # NOTE(self): somebody else may have made another first commit meanwhile.
            refused = ended
        for _ in range(_LOOKS):
            found = await self.github.refs.get(acts.repo, base)
            if refused or not _is_empty(found):
                break
            await self.clock.sleep(_LOOK_AGAIN_S)
        if refused and isinstance(found, Err):
            raise refused
        return read(found).sha

    async def opened(
        self, acts: TaskActs, pull_request: ProposedAction, summary: str, *, push: ProposedAction | None = None
    ) -> Opened:
        """Return the pull request once it is open, and reviews of it are asked for.

        Where its `push` waits for the owner it is proposed too, so that one approval lets both out.
        """
        if push is not None:
            row = await self.proposed(push)
            if row.state == "held":
                await self.proposed(pull_request)
            await self.settled(row)
        done = await self.done(pull_request)
        await self._ask_for_reviews(acts, done.issue_number)
        await self._close_left(acts, done.result_uri or "")
        return Opened(done.result_uri or "", summary)

    async def stands(self, acts: TaskActs, pull: PullRequest, summary: str) -> Opened:
        """Return a pull request that is open already, once reviews of it are asked for."""
        await self._ask_for_reviews(acts, pull.number)
        await self._close_left(acts, pull.html_url)
        return Opened(pull.html_url, summary)

    def taken_up(self, acts: TaskActs) -> str:
        """Return what ends the text of a pull request that goes on with the work of a SOUL that is gone; else ""."""
        if (left := acts.held.left) is None:
            return ""
        told = self.phrase("github.pull_taken_up", url=left.html_url, login=left.author)
        return f"\n\n{told} `{acts.credit}` {TAKEN_UP}"

    async def _close_left(self, acts: TaskActs, url: str) -> None:
        """Say once on the pull request that was taken up where the work goes on, and close it; its branch stays."""
        if (left := acts.held.left) is not None:
            at = for_workspace(acts.repo)
            said = IssueCommentBody(**at, number=left.number, body=self.phrase("github.pull_gone_on", url=url))
            # NOTE(self): under no claim, as its author may come back and open it again before the next one.
            told = ProposedAction(said, part=f"{acts.cause}:left-said:{left.number}", cause_id=acts.cause)
            await self.outbox.do_once(told)
            closed = IssueUpdateBody(**at, number=left.number, state="closed")
            await self.outbox.do_once(acts.action("left-closed", closed))

    async def done(self, action: ProposedAction) -> Intent:
        """Return the intent of an act once it is done. Raises `TaskStopped` as `proposed` and `settled` do."""
        return await self.settled(await self.proposed(action))

    async def proposed(self, action: ProposedAction) -> Intent:
        """Return the intent of an act, which is proposed where it was not, or came to nothing.

        It leaves only while the claim holds (`lease_gate`). Raises `TaskStopped` where it may not be done.
        """
        standing = await self.outbox.do_once(action, _TRIES)
        if standing.active is None:
            raise TaskStopped(Failed("not_allowed" if standing.advice else "not_sent", standing.reason))
        return standing.active

    async def settled(self, row: Intent) -> Intent:
        """Wait until an intent has left, and return it once it is done.

        Raises `TaskStopped` where it failed, or waits for the owner's approval.
        """
        row = await self.outbox.settled(row.id, math.inf) or row
        if row.state == "held":
            raise TaskStopped(Stopped(f"it waits for your approval: {row.error or row.state}"))
        if row.state != "done":
            raise TaskStopped(Failed("not_sent", row.error or row.state))
        return row

    async def _ask_for_reviews(self, acts: TaskActs, number: int) -> None:
        """Ask a few peers to review it. Who cannot is left out, and nobody has to be there."""
        key = f"{acts.repo.full_name}#{number}"
        for action in acts.review_requests(number, pick_reviewers(key, self.github.login, self.peers())):
            await self.outbox.do_once(action)


def read(result: ApiResult[T]) -> T:
    """Return what was read. Raises `TaskStopped` where it could not be."""
    if isinstance(result, Err):
        if result.kind in _NOT_OF_THE_TASK:
            raise TaskStopped(Deferred(result.error, result.retry_after))
        raise TaskStopped(Failed("unreadable", result.error))
    return result.data


def _is_empty(found: ApiResult[GitRef]) -> bool:
    """Whether no branch could be read because there is no commit at all."""
    return isinstance(found, Err) and found.kind == "conflict"


_SKILL, _SECTION = "code-review", "Asked"
_COMMENT_CHARS, _MOST_COMMENTS = 2_000, 10


def told_talk(skills: Skills, framer: Framer, talk: Sequence[Comment]) -> str:
    """Return the newest comments, oldest first, with a line that says what they are; "" where there is none."""
    framed = [
        framer.frame(
            "reading",
            author=f"@{one.author}",
            uri=one.html_url,
            text=without_html_comments(one.body).strip()[:_COMMENT_CHARS],
        )
        for one in talk[-_MOST_COMMENTS:]
    ]
    return skills.render(_SKILL, _SECTION, text="\n\n".join(framed)).strip() if framed else ""
