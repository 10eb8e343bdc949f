"""Shared parts of the GitHub tools: their inputs, the repository that is meant, and sending an act and waiting for it.

Their descriptions are in the skills; an empty input means "not given".
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from adapters.github.client import GitHub
from adapters.github.types import Repo, is_repo
from common.clock import Clock
from common.provenance import Provenance
from common.result import Err
from common.schemas import repository_name
from common.settings import Settings
from common.text.strings import normalized_title
from common.text.untrusted import clean_value, one_line
from local_tools.bluesky_turns import AccountName, act_terms, gives, is_by_owner, names, post_problem
from local_tools.words import REASON_CHARS, ToolStopped, ToolWords
from modules.lives.bluesky.types import MadeThing, ThreadTurn
from modules.lives.github.types import IssueTurn
from modules.lives.rhythm import OwnTimeTurn
from modules.runtime.journal.rows import Journal
from modules.services.agent.tools.types import ToolResult, Turn
from modules.services.outbox.github_bodies import (
    GitHubBody,
    IssueBody,
    IssueCommentBody,
    IssueUpdateBody,
    MergeBody,
    PullRequestBody,
    RefBody,
    ReviewBody,
    ReviewRequestBody,
    StarBody,
)
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ActStanding, Intent, ProposedAction, standing_of
from modules.services.plans.compose import FIELD_CHARS, GOAL_CHARS, MOST_FILES, MOST_TASKS, TEXT_CHARS, TITLE_CHARS
from modules.services.repository_rules.checking import ForeignRepositories
from modules.services.schedules import KIND as SCHEDULE
from modules.services.skills.skills import Framer, Skills
from modules.services.voice_phrases import VoicePhrases
from modules.services.work.types import Disposition
from modules.services.workspaces.watched import OwnWorkspace, RequestedRepositories, WatchedWorkspaces

RepoName = Annotated[str, AfterValidator(lambda said: repository_name(said.strip()) or said)]
"""A repository as a model gives it: `owner/repo`, the name alone, or the address of a page of it."""
LongText = Annotated[str, Field(max_length=20_000)]
"""What GitHub shows under a title. A longer text is refused, not cut."""
Title = Annotated[str, Field(max_length=200)]
"""What GitHub shows on one line; a longer one is refused, not cut."""
MOST_LABELS = 100
"""GitHub lets an issue have no more."""
Labels = Annotated[list[str], Field(default_factory=list, max_length=MOST_LABELS)]


class WorkspaceCreateInput(BaseModel):
    """A workspace in the organisation that the owner set. `org` is hidden from the model: another one is refused."""

    name: str
    description: Title = ""
    org: Annotated[str, SkipJsonSchema()] = ""


class WorkspaceFindInput(BaseModel):
    """An organisation; by default the one that the owner set."""

    org: AccountName = ""


class InRepository(BaseModel):
    """A repository; by default that of the turn's thread, else the only workspace that is watched.

    `owner` is hidden from the model: `repo` is `owner/repo`. A model that gives them separately is understood.
    """

    owner: Annotated[AccountName, SkipJsonSchema()] = ""
    repo: RepoName = ""


class MemoInput(InRepository):
    """An issue that records a thought."""

    title: Title
    body: LongText = ""
    labels: Labels


PlanTitle = Annotated[str, Field(max_length=TITLE_CHARS)]
PlanField = Annotated[str, Field(max_length=FIELD_CHARS)]
PlanText = Annotated[str, Field(max_length=TEXT_CHARS)]


class PlanTask(BaseModel):
    """A task, or only its title. Other fields are left out; `estimate` is hidden from the model: no rule reads it."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    title: PlanTitle
    description: PlanText = ""
    estimate: Annotated[str, SkipJsonSchema()] = ""
    dependencies: list[PlanField] = Field(default_factory=list)
    files: list[PlanField] = Field(default_factory=list, max_length=MOST_FILES)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: object) -> object:
        told = {"title": given} if isinstance(given, str) else given
        return {name: told[name] for name in cls.model_fields if name in told} if isinstance(told, Mapping) else told


class PlanInput(InRepository):
    """A plan of work."""

    title: PlanTitle
    goal: Annotated[str, Field(max_length=GOAL_CHARS)]
    context: PlanText = ""
    tasks: Annotated[list[PlanTask], Field(max_length=MOST_TASKS)]
    verification: list[PlanField] = Field(default_factory=list)


class TaskInput(InRepository):
    """A task of a plan, to be taken or left alone."""

    task: int = Field(ge=1)
    plan: int = Field(default=0, ge=0)
    leave: bool = False


class FinishInput(InRepository):
    """The end of the work in a workspace."""

    summary: LongText


MOST_ASSIGNEES = 10
"""GitHub assigns an issue to no more."""


class IssueListInput(InRepository):
    """The newest issues of a repository."""

    state: Literal["open", "closed", "all"] = "open"
    limit: int = Field(default=30, ge=1, le=100)


class IssueLookInput(IssueListInput):
    """The newest issues of a repository, or one of them with its whole text."""

    issue_number: int = Field(default=0, ge=0)


class PullLookInput(IssueListInput):
    """The newest pull requests of a repository, or one of them with its changes and what was said about it."""

    pull_number: int = Field(default=0, ge=0)


class OrgReposInput(BaseModel):
    """The repositories of an organisation, the most recently pushed first."""

    org: AccountName
    limit: int = Field(default=30, ge=1, le=100)


class AccountInput(BaseModel):
    """An account."""

    username: AccountName


class IssueCreateInput(InRepository):
    """A new issue. `assignees` is hidden from the model: without them it is assigned to the SOUL."""

    title: Title
    body: LongText = ""
    labels: Labels
    assignees: Annotated[list[str], SkipJsonSchema()] = Field(default_factory=list, max_length=MOST_ASSIGNEES)


class IssueUpdateInput(InRepository):
    """A change of an issue. An empty text changes nothing; an empty list takes all away where nothing else is given."""

    issue_number: int = Field(ge=1)
    title: Title = ""
    body: LongText = ""
    state: Literal["open", "closed", ""] = ""
    labels: list[str] | None = Field(default=None, max_length=MOST_LABELS)
    assignees: list[str] | None = Field(default=None, max_length=MOST_ASSIGNEES)


class PullInput(InRepository):
    """A pull request."""

    pull_number: int = Field(ge=1)


class ThreadCommentInput(InRepository):
    """A comment on an issue or a pull request, given by its URL, or by its number and repository."""

    body: LongText
    url: str = ""
    number: int = Field(default=0, ge=0)


class PullCommentInput(PullInput):
    """A comment on a pull request."""

    body: LongText


class PullReviewInput(PullInput):
    """A review of a pull request."""

    event: Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"]
    body: LongText = ""


class PullMergeInput(PullInput):
    """The merge of a pull request, as one commit."""


class PullCreateInput(InRepository):
    """A new pull request, from the branch `head` into `base`, the default branch if none is given."""

    title: Title
    head: str
    body: LongText = ""
    base: str = ""
    draft: bool = False


_TIME_LIMIT_S = 150.0
"""How long a tool may take that waits for GitHub: requests are seconds apart."""

_MOST_A_DAY = 50


class GitHubToolServices(Protocol):
    """The services that the tools are built from."""

    settings: Settings
    clock: Clock
    rng: random.Random
    skills: Skills
    journal: Journal
    phrases: VoicePhrases
    github: GitHub
    outbox: Outbox
    workspaces: WatchedWorkspaces
    own_workspace: OwnWorkspace
    requested: RequestedRepositories
    foreign: ForeignRepositories


IN_THREAD: Mapping[type, frozenset[str]] = {IssueTurn: frozenset({"owner", "repo"})}
"""The fields of a repository tool that a turn about a GitHub thread fills in."""


def _is_for_owner(turn: Turn) -> bool:
    """Return whether only the owner reads the result of a turn: a conversation with them, or what they scheduled."""
    return turn.loop == "owner" or (turn.loop == SCHEDULE and turn.asked_by is Provenance.OWNER)


class GitHubActing:
    """Finds repositories, sends acts, and reports their results. `words` are those of the family `skill`."""

    def __init__(self, services: GitHubToolServices, skill: str) -> None:
        self.services = services
        self.words = ToolWords(services.skills, skill, unread="Unread", time_limit_s=_TIME_LIMIT_S)

    def serves(self, turn: Turn) -> bool:
        """Return whether the tools make sense in a turn: there is an account, and only the owner reads the answer.

        In a turn about a thread that the owner showed us, what is read becomes public, so only the thread's own
        repository may be named there (`place`).
        """
        in_thread = isinstance(turn.subject, IssueTurn) and turn.asked_by is Provenance.OWNER
        return self.services.github.configured and (_is_for_owner(turn) or in_thread)

    def serves_post(self, turn: Turn) -> bool:
        """Return whether tools that only act, and report what they made, make sense: also for a post of the owner's."""
        subject = turn.subject
        if not isinstance(subject, ThreadTurn):
            return self.serves(turn)
        return self.services.github.configured and subject.is_owner

    def serves_owner(self, turn: Turn) -> bool:
        """Return whether only the owner reads the answer, and there is an account: it may then read for them."""
        return self.services.github.configured and _is_for_owner(turn)

    def place(self, owner: str, repo: str, turn: Turn) -> Repo:
        """Return the repository that is meant. Raises `ToolStopped`.

        If none is named it is that of the thread of the turn, else the default of the watch list.
        """
        owner, _, name = repo.strip().rpartition("/") if "/" in repo else (owner.strip(), "", repo.strip())
        if isinstance(turn.subject, IssueTurn):
            here = turn.subject.waiting.repo
            if name and f"{owner}/{name}".lower() != here.lower():
                self.words.stop("Other Repository", repo=here)
            owner, _, name = here.partition("/")
            return Repo(owner, name)
        if not name and (only := self.services.workspaces.default()):
            return only
        return found if is_repo(found := Repo(owner, name)) else self.words.stop("No Repository")

    async def watch(self, repo: Repo, turn: Turn) -> dict[str, str]:
        """Watch a repository in which the owner asked in private for work; return what to add to the answer.

        That is nothing, or `notWatched` with the reason. A turn with others' words watches nothing.
        """
        if turn.loop != "owner" or not is_by_owner(turn):
            return {}
        watched = await self.services.requested.watch(repo)
        return {"notWatched": one_line(watched.error, REASON_CHARS)} if isinstance(watched, Err) else {}

    async def send(self, body: GitHubBody, key: str, turn: Turn, *, again: bool = False) -> Intent:
        """Send an act and wait for it; return the intent once it is done. `key` and `again` as in `propose`.

        Raises `ToolStopped` if it is not done.
        """
        act = await self.propose(body, key, turn, again=again)
        if act.active is None:
            self.words.stop("Refused", reason=one_line(act.reason, REASON_CHARS))
        settled = await self.services.outbox.settled(act.active.id)
        if settled is None:
            raise ToolStopped(self.words.done("On Its Way"))
        number = await self.services.outbox.draft_number(settled.id)
        if waits := self.words.waits(settled.state, settled.error, number):
            raise ToolStopped(waits)
        if settled.state != "done":
            self.words.stop("Not Done", reason=one_line(settled.error or settled.state, REASON_CHARS))
        return settled

    async def propose(self, body: GitHubBody, key: str, turn: Turn, *, again: bool = False) -> ActStanding:
        """Submit an act to the outbox; return its state.

        The same `key` is sent once a day at most; if it is asked for again, the first intent is returned. Once that is
        done, another request with another text is another act; with `again`, any request is.
        """
        now = self.services.clock.now()
        if isinstance(turn.subject, ThreadTurn):
            turn.subject.revisions.tried = True
        is_own_time = isinstance(turn.subject, OwnTimeTurn)
        if is_own_time and isinstance(body, IssueBody) and post_problem(f"{body.title}\n{body.body}", turn):
            self.words.stop("Repeats Schedule")
        if earlier := await self._opened_before(body, turn):
            return standing_of([earlier], 1, None, self.services.clock.since)
        terms = act_terms(turn, is_seen=_is_seen(body, turn), is_order=_is_order(body, turn))
        hold = terms.hold or (turn.subject.hold if isinstance(turn.subject, IssueTurn) else "")
        part = f"tool:{body.kind}:{body.repo.lower()}:{normalized_title(key)}:{now:%Y-%m-%d}"
        action = replace(terms, urgent=turn.importance == "owner", hold=hold).proposed(body)
        for count in range(_MOST_A_DAY):
            target = f"{part}:{count}" if again or count else part
            act = await self.services.outbox.do_once(replace(action, part=target), _MOST_A_DAY)
            # NOTE(self): if the owner refused it before, a new request is another act.
            was_refused = act.code == "refused" and act.advice is None
            is_past = act.code == "done" and (again or _is_another(act.intent, action))
            if not was_refused and not is_past:
                break
        if act.active and turn.made is not None:
            turn.made.add(act.active.id)
        return act

    async def _opened_before(self, body: GitHubBody, turn: Turn) -> Intent | None:
        """Return the issue or comment that the same cause led to before a restart, maybe with another text."""
        if turn.made is None or not turn.cause_id or not isinstance(body, IssueBody | IssueCommentBody):
            return None
        made = await self.services.outbox.accepted(turn.cause_id, body.kind)
        earlier = (one for one in made if one.id not in turn.made and _place(one.body) == _place(body))
        return next(earlier, None)

    def made(self, made: MadeThing, told: dict[str, Any], turn: Turn) -> ToolResult:
        """Return what was made, and record it for the answer to a post."""
        if isinstance(turn.subject, ThreadTurn):
            turn.subject.revisions.made.append(made)
        return self.told(told, act=made.kind, url=made.url, words=made.words)

    def told(self, result: dict[str, Any], *, act: str = "", url: str = "", words: tuple[str, ...] = ()) -> ToolResult:
        """Return our own facts as JSON; the other arguments are fields of `ToolResult` and its outcome."""
        content = json.dumps(result, ensure_ascii=False)
        return ToolResult(content, outcome=Disposition(act), url=url, words=words)

    async def with_added(self, result: ToolResult, given: GitHubBody, sent: Intent) -> ToolResult:
        """Return the answer to an act with what was added to its text because the repository requires it."""
        if not (added := await self.services.foreign.added(given, sent.body)):
            return result
        shown = self.read({"added_as_the_repository_asks": added}, uri=given.repo)
        return replace(result, content=f"{result.content}\n{shown.content}", provenance=shown.provenance)

    def listed(self, found: Sequence[Mapping[str, Any]], limit: int, *, uri: str) -> ToolResult:
        """Return a list as `read` does; one of `limit` items is followed by a line that there may be more."""
        shown = self.read(found, uri=uri)
        more = f"\n{self.words.answer('More', limit=limit)}" if len(found) >= limit else ""
        return replace(shown, content=f"{shown.content}{more}")

    def read(self, result: object, *, uri: str) -> ToolResult:
        """Return what others wrote as framed JSON: it is untrusted text, unless it is empty."""
        text = json.dumps(clean_value(result), ensure_ascii=False)
        framer = Framer(self.services.skills, self.services.rng)
        content = framer.frame("reading", author="several", uri=uri, text=text)
        return ToolResult(content, provenance=Provenance.STRANGER if result else None)


def _is_seen(body: GitHubBody, turn: Turn) -> bool:
    """Return whether the owner gave the text of an act, or named the target of one without text.

    A request for reviews and the deletion of a branch follow from an act that was already let out.
    """
    if words := _words(body):
        return gives(words, turn)
    if isinstance(body, ReviewRequestBody | RefBody):
        return True
    number = getattr(body, "number", 0)
    waiting = turn.subject.waiting if isinstance(turn.subject, IssueTurn) else None
    if waiting and (waiting.repo.lower(), waiting.number) == (body.repo.lower(), number):
        return True
    return names(turn, str(number) if number else body.repo.rpartition("/")[2])


def _is_order(body: GitHubBody, turn: Turn) -> bool:
    """Return whether the owner's line gives an act completely: its text, repository and number, if it has these."""
    if not isinstance(body, IssueBody | IssueCommentBody | MergeBody | StarBody):
        return False
    words, number = (getattr(body, "title", ""), getattr(body, "body", "")), getattr(body, "number", 0)
    is_given = all(gives(one, turn) for one in words if one)
    return is_given and names(turn, body.repo) and (not number or names(turn, str(number)))


def _words(body: GitHubBody) -> str:
    """Return the text of an act that others read; "" if it has none."""
    if isinstance(body, IssueCommentBody | ReviewBody):
        return body.body
    return body.body or body.title if isinstance(body, IssueBody | IssueUpdateBody | PullRequestBody) else ""


def _is_another(done: Intent | None, action: ProposedAction) -> bool:
    """Return whether an act that is done has another cause and another text, beyond what a repository had added."""
    if done is None or done.cause_id == action.cause_id:
        return False
    texts = ((getattr(one, name, "") for one in (action.body, done.body)) for name in ("title", "body"))
    return any(given not in stored for given, stored in texts)


def _place(body: object) -> tuple[str, str, int] | None:
    """Return the kind, repository and thread of a new issue (thread 0) or a comment; None for other acts."""
    if isinstance(body, IssueBody):
        return body.kind, body.repo.lower(), 0
    return (body.kind, body.repo.lower(), body.number) if isinstance(body, IssueCommentBody) else None
