"""Turns the work on a task into a pull request: the branch, its contents, the pull request, the review requests.

Nothing is stored here. Each act is an intent of the outbox, named by its task, the epoch and what it does. So the
outbox performs none twice, and a restarted process continues where the killed one stopped.
"""

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from adapters.github.client import GitHub
from adapters.github.types import Branch, Comment, GitRef, PullRequest, Repo, Repository
from common.clock import Clock
from common.result import ApiResult, Err
from common.text.github_text import without_closing_words, without_mentions
from common.text.markdown import without_html_comments
from common.text.strings import both_ends
from common.text.untrusted import clean, one_line
from modules.lives.tasks.types import UNCLAIMED, Deferred, Failed, HeldTask, Lost, Opened, Stopped, WorkResult
from modules.services.commitments.texts import TITLE_CHARS
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
    Plan,
    Task,
    claim_key,
    get_task_branch_name,
    task_of_branch,
)
from modules.services.repository_rules.policy import Condition
from modules.services.skills.skills import Framer, Skills
from modules.services.voice_phrases import Phrase
from modules.services.workspaces.acting import pick_reviewers
from modules.services.workspaces.trust import TrustedAccounts, WorkspaceTrust, pulls_for, read_pulls

FIRST_PAGE = "README.md"
"""The file in the first commit of a repository."""

TESTS_PASSED = "<!-- soul:tests=passed -->"
"""Hidden mark in our pull request: its tests ran before it was offered, and none failed that passed before."""
TAKEN_UP = "<!-- soul:taken-up -->"
"""Hidden mark at the end of the line in our pull request that names whose work it continues."""
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
        """The repository in which the task is done."""
        return self.held.found.repo

    @property
    def issue(self) -> int:
        """The number of the issue that holds the plan."""
        return self.held.found.number

    @property
    def task(self) -> Task:
        """The task."""
        return self.held.task

    @property
    def cause(self) -> str:
        """The cause that all acts for the task share, whatever the claim: `owner/repo#12/task-3`."""
        return claim_key(self.repo.owner, self.repo.name, self.issue, self.task.number)

    @property
    def title(self) -> str:
        """The title of the pull request and its commits, without words that would close an issue."""
        is_alone = self.held.epoch == UNCLAIMED and self.held.found.plan.tasks == (self.task,)  # not in a plan
        of_plan = "" if is_alone else f"task({self.task.number}): "
        title = one_line(f"{of_plan}{self.task.title}", TITLE_CHARS)
        return without_closing_words(without_mentions(title))

    @property
    def told(self) -> dict[str, str | int]:
        """The facts on the task and its plan for the body of a pull request, by their names in the phrases."""
        plan = self.held.found.plan
        return {
            "number": self.task.number,
            "title": without_mentions(one_line(self.task.title, _TITLE_CHARS)),
            "issue": self.issue,
            "plan": without_mentions(one_line(plan.title, _TITLE_CHARS)),
            "goal": without_mentions(one_line(plan.goal, _GOAL_CHARS)),
        }

    def name(self, what: str) -> str:
        """Return the name of the act `what` under this claim."""
        return f"{self.cause}@{self.held.epoch}:{what}"

    def first_commit(self, description: str) -> ProposedAction:
        """Return the first commit of an empty repository: a page with its name and `description`.

        Every SOUL writes the same page, whatever the task, so that it exists only once.
        """
        told = without_mentions(one_line(description, _GOAL_CHARS))
        text = "\n\n".join(filter(None, (f"# {self.repo.name}", told))) + "\n"
        contents = ContentsBody(**for_workspace(self.repo), path=FIRST_PAGE, content=text, message=self.title)
        return self.action("first-commit", contents)

    def pull_request(self, *, head: str, base: str, body: str, draft: bool = False) -> ProposedAction:
        """Return the pull request from the branch `head` into `base`; a draft is never merged."""
        at = for_workspace(self.repo)
        offered = PullRequestBody(**at, title=self.title, body=body, head=head, base=base, draft=draft)
        return self.action("pull-request", offered)

    @property
    def credit(self) -> str:
        """The trailer that names the author of the work that is continued; "" if there is none."""
        if (left := self.held.left) is None:
            return ""
        return f"Co-authored-by: {left.author} <{left.author_id}+{left.author}@users.noreply.github.com>"

    def review_requests(self, number: int, reviewers: Sequence[str]) -> list[ProposedAction]:
        """Return the requests to review pull request `number`."""
        asked = review_requests(self.repo, number, reviewers)
        return [self.action(f"reviewer:{one.reviewers[0].lower()}", one) for one in asked]

    def action(self, what: str, body: GitHubBody) -> ProposedAction:
        """Return the act `what` with its name. An act that changes code leaves only while the claim holds."""
        if isinstance(body, OfTask) and self.held.epoch != UNCLAIMED:
            body = body.model_copy(update={"task": self.cause, "epoch": self.held.epoch})
        return ProposedAction(body, part=self.name(what), cause_id=self.cause)


BranchCode = Literal["create", "opened", "left"]


@dataclass(frozen=True, slots=True)
class BranchChoice:
    """The branch on which a task is worked on.

    Attributes:
        code: `create` the branch; `opened` if our pull request is open; `left` if the task is left alone because of
            `reason`.
        branch: its name; "" for `left`.
        pull: our open pull request.
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
    pulls: Sequence[PullRequest],
    trusted: TrustedAccounts,
    tasks: Sequence[Task] = (),
) -> BranchChoice:
    """Return the branch on which a task is worked on.

    A branch that exists is never touched; ours then has the epoch after its name. A pull request belongs
    to the task if its branch is the task's and its body names the plan; those of strangers do not count.

    Args:
        task: the task.
        issue: the number of the plan.
        epoch: of our claim.
        branches: the branches of the repository.
        pulls: pull requests of the repository, in any state.
        trusted: the accounts whose pull requests count there.
        tasks: the tasks of the plan.

    """
    every = (task, *(one for one in tasks if one.number != task.number))
    about = [one for one in pulls_for(issue, pulls, trusted) if task_of_branch(one.head.ref, every) == task.number]
    opened = [one for one in about if one.state == "open"]
    if mine := next((one for one in opened if trusted.why(one.account) == "us"), None):
        return BranchChoice("opened", mine.head.ref, mine)
    if other := next((one for one in (*opened, *about) if one.state == "open" or one.merged), None):
        what = "is open" if other.state == "open" else "was merged"
        return BranchChoice("left", reason=f"the pull request #{other.number} for it, by {other.author}, {what}")
    name = get_task_branch_name(task.number, task.title)
    with_epoch = f"{name}-e{epoch}"
    free = next((one for one in (name, with_epoch) if one not in branches), "")
    return BranchChoice("create", free) if free else BranchChoice("left", reason=f"the branch {with_epoch} is taken")


T = TypeVar("T")

_TRIES = 3
"""How often one act is proposed under one claim if it fails each time."""
_LOOK_AGAIN_S = 5.0
_LOOKS = 4
"""How often a first commit is looked for, which GitHub may show with a delay."""
_NOT_OF_THE_TASK = frozenset({"transient", "unknown_outcome", "auth", "fatal"})
"""Kinds of read errors that are caused by GitHub or our account, not by the task."""


class TaskStopped(Exception):
    """Raised to end the work on a task with `result`."""

    def __init__(self, result: WorkResult) -> None:
        super().__init__(type(result).__name__)
        self.result = result


@dataclass(frozen=True, slots=True)
class BranchPlace:
    """The repository and branch in which a task is worked on.

    Attributes:
        repository: as GitHub shows it.
        branch: the branch of the task.
        begun: the intent that creates the branch, if there is one.
        pull: our pull request, if it is open already.

    """

    repository: Repository
    branch: str
    begun: Intent | None = None
    pull: PullRequest | None = None

    @property
    def base(self) -> str:
        """The branch into which the work is offered."""
        return self.repository.default_branch


@dataclass(frozen=True, slots=True)
class Offering:
    """Performs the acts of a task, each once.

    Attributes:
        github: reads the repository.
        trust: knows whose pull requests count there.
        outbox: sends all acts.
        clock: waits for what is on its way.
        phrase: returns operational texts.
        peers: returns the logins of the known SOULs, who may be asked for a review.
        file_lines: returns the lines that a repository of somebody else requires in its files with each pull request.

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
        """Return where the task is worked on. Raises `TaskStopped` if somebody else has a pull request for it."""
        repository = read(await self.github.get_repository(acts.repo))
        row = (await self.outbox.standing("push", acts.name("push"))).active
        if row is not None and isinstance(row.body, PushBody):
            return BranchPlace(repository, row.body.branch, begun=row)
        found = read(await self.github.refs.branches(acts.repo))
        trusted = await self.trust.accounts(acts.repo)
        pulls = read(await read_pulls(self.github, acts.repo, acts.issue, trusted))
        left = acts.held.left
        pulls = tuple(one for one in pulls if left is None or one.number != left.number)
        deleted = await self._delete_unoffered(acts, found, {one.head.ref for one in pulls})
        branches = {one.name for one in found} - deleted
        choice = choose_branch(
            acts.task,
            acts.issue,
            acts.held.epoch,
            branches=branches,
            pulls=pulls,
            trusted=trusted,
            tasks=acts.held.found.plan.tasks,
        )
        if choice.code == "left":
            raise TaskStopped(Lost())
        return BranchPlace(repository, choice.branch, pull=choice.pull)

    async def _delete_unoffered(self, acts: TaskActs, found: Iterable[Branch], offered: Collection[str]) -> set[str]:
        """Delete the branches that earlier claims pushed, if nobody changed them since; return those deleted.

        Such a claim ended before its pull request was opened; the next push goes to a branch from the newest base.
        """
        made = [one.body for one in await self.outbox.done(acts.cause, "push")]
        pushed = {(one.branch, one.sha) for one in made if isinstance(one, PushBody)}
        deleted = set()
        for one in found:
            if (one.name, one.sha) in pushed and one.name not in offered:
                body = RefBody(**for_workspace(acts.repo), action="delete", branch=one.name, sha=one.sha)
                row = (await self.outbox.do_once(acts.action(f"unoffered:{one.name}", body))).active
                row = await self.outbox.settled(row.id) if row else None
                deleted |= {one.name} if row and row.state == "done" else set()
        return deleted

    async def missing_lines(self, repo: Repo) -> list[tuple[str, str]]:
        """Return the required lines that the default branch lacks, each as path of its file and text.

        Raises `SoulError` if these cannot be read.
        """
        missing = []
        for one in await self.file_lines(repo):
            page = (await self.github.contents.read(repo, one.path)).or_else(None, "not_found", "conflict", "invalid")
            missing += [] if page and one.text in page.text.splitlines() else [(one.path, one.text)]
        return missing

    async def head(self, acts: TaskActs, repository: Repository) -> str:
        """Return the newest commit of the default branch; an empty repository gets its first commit before."""
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
        """Open the pull request, ask for reviews of it, and return it.

        If its `push` waits for the owner, the pull request is proposed too, so that one approval releases both.
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
        """Ask for reviews of a pull request that is open already, and return it."""
        await self._ask_for_reviews(acts, pull.number)
        await self._close_left(acts, pull.html_url)
        return Opened(pull.html_url, summary)

    def taken_up(self, acts: TaskActs) -> str:
        """Return the end of the text of a pull request that continues the work of an inactive SOUL; else ""."""
        if (left := acts.held.left) is None:
            return ""
        told = self.phrase("github.pull_taken_up", url=left.html_url, login=left.author)
        return f"\n\n{told} `{acts.credit}` {TAKEN_UP}"

    async def _close_left(self, acts: TaskActs, url: str) -> None:
        """Say once on the pull request that is continued where the work goes on, and close it; its branch stays."""
        if (left := acts.held.left) is not None:
            at = for_workspace(acts.repo)
            said = IssueCommentBody(**at, number=left.number, body=self.phrase("github.pull_gone_on", url=url))
            # NOTE(self): named without the claim, as its author may reopen it before the next claim.
            told = ProposedAction(said, part=f"{acts.cause}:left-said:{left.number}", cause_id=acts.cause)
            await self.outbox.do_once(told)
            closed = IssueUpdateBody(**at, number=left.number, state="closed")
            await self.outbox.do_once(acts.action("left-closed", closed))

    async def done(self, action: ProposedAction) -> Intent:
        """Perform an act, and return its intent once done. Raises `TaskStopped` as `proposed` and `settled` do."""
        return await self.settled(await self.proposed(action))

    async def proposed(self, action: ProposedAction) -> Intent:
        """Return the intent of an act; propose it first if it was not proposed yet, or if that failed.

        It leaves only while the claim holds (`lease_gate`). Raises `TaskStopped` if it may not be done.
        """
        standing = await self.outbox.do_once(action, _TRIES)
        if standing.advice and (again := standing.advice.not_before):
            raise TaskStopped(Deferred(standing.reason, (again - self.clock.now()).total_seconds()))
        if standing.intent and is_refused(standing.intent):
            raise TaskStopped(Stopped(standing.reason))
        if standing.active is None:
            raise TaskStopped(Failed("not_allowed" if standing.advice else "not_sent", standing.reason))
        return standing.active

    async def settled(self, row: Intent) -> Intent:
        """Wait until an intent has left, and return it once it is done.

        Raises `TaskStopped` if it failed, waits for the owner's approval, or was rejected by them.
        """
        row = await self.outbox.settled(row.id, math.inf) or row
        if row.state == "held":
            raise TaskStopped(Stopped(f"it waits for your approval: {row.error or row.state}"))
        if is_refused(row):
            raise TaskStopped(Stopped(row.error or row.state))
        if row.state != "done":
            raise TaskStopped(Failed("not_sent", row.error or row.state))
        return row

    async def _ask_for_reviews(self, acts: TaskActs, number: int) -> None:
        """Ask a few peers to review it. A request that fails is ignored, and there may be no peers."""
        key = f"{acts.repo.full_name}#{number}"
        for action in acts.review_requests(number, pick_reviewers(key, self.github.login, self.peers())):
            await self.outbox.do_once(action)


def is_refused(row: Intent) -> bool:
    """Return whether an act was done under a claim and the owner rejected it."""
    return row.rejected and isinstance(row.body, OfTask) and row.body.epoch != UNCLAIMED


def read(result: ApiResult[T]) -> T:
    """Return the data of a result. Raises `TaskStopped` if it is an error."""
    if isinstance(result, Err):
        if result.kind in _NOT_OF_THE_TASK:
            raise TaskStopped(Deferred(result.error, result.retry_after))
        raise TaskStopped(Failed("unreadable", result.error))
    return result.data


def _is_empty(found: ApiResult[GitRef]) -> bool:
    """Return whether no branch could be read because the repository has no commit."""
    return isinstance(found, Err) and found.kind == "conflict"


_SKILL, _SECTION = "code-review", "Asked"
TASK_CHARS = 8_000
"""The most characters of a task that one who codes or reviews is told; of a longer one its beginning and end."""
_TEXT_CHARS = 4_000
_LINE_CHARS, _COMMENT_CHARS, _MOST_COMMENTS = 200, 2_000, 10
_MOST_TASKS, _OTHER_CHARS = 20, 1_000


def told_plan(plan: Plan, task: Task) -> str:
    """Return the title of a plan, its goal, its context, and its first tasks but `task`: files, state, description."""
    goal, context = one_line(plan.goal, _TEXT_CHARS), both_ends(clean(plan.context), _TEXT_CHARS)
    others = [one for one in plan.tasks if one.number != task.number][:_MOST_TASKS]
    named = [one_line(f"- {one.title} ({', '.join(one.files)}) [{one.status}]", _LINE_CHARS) for one in others]
    told = (both_ends(clean(one.description), _OTHER_CHARS) for one in others)
    tasks = "\n\n".join(f"{name}\n{words}".strip() for name, words in zip(named, told, strict=True))
    more = (goal and f"Goal: {goal}", context and f"Context:\n{context}", tasks and f"Other tasks:\n{tasks}")
    return "\n\n".join([f"Title: {one_line(plan.title, _LINE_CHARS)}", *filter(None, more)])


def told_task(task: Task) -> str:
    """Return the title and the description of a task."""
    return f"{one_line(task.title, _LINE_CHARS)}\n\n{both_ends(clean(task.description), TASK_CHARS)}".strip()


def told_talk(skills: Skills, framer: Framer, talk: Sequence[Comment]) -> str:
    """Return the newest comments, oldest first, with a line that says what they are; "" if there are none."""
    framed = [
        framer.frame(
            "reading",
            author=f"@{one.author}",
            uri=one.html_url,
            text=both_ends(without_html_comments(one.body).strip(), _COMMENT_CHARS),
        )
        for one in talk[-_MOST_COMMENTS:]
    ]
    return skills.render(_SKILL, _SECTION, text="\n\n".join(framed)).strip() if framed else ""
