"""The tools to read repositories on GitHub, to talk about code, and to change them and their pull requests.

The owner asks for the changes. What is read is untrusted text: it lowers the turn's provenance, so that a later act
waits for the owner's approval. Our account, which may read private repositories, is used only for the owner's eyes.

Each act on a pull request waits until GitHub has it. A merge is requested only if nothing prevents it at the last read,
and names the commit that was read, so that later pushes are never merged.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Literal, Protocol

from pydantic import Field

from adapters.github.types import (
    Comment,
    Issue,
    PullFile,
    PullRequest,
    Repo,
    Repository,
    Review,
    is_login,
    newest_review,
    parse_github_url,
)
from common.provenance import Provenance
from common.text.strings import both_ends
from common.text.untrusted import clean, legible, one_line
from local_tools.github_acting import (
    IN_THREAD,
    AccountInput,
    GitHubActing,
    GitHubToolServices,
    InRepository,
    IssueCreateInput,
    IssueLookInput,
    IssueUpdateInput,
    OrgReposInput,
    PullCommentInput,
    PullCreateInput,
    PullLookInput,
    PullMergeInput,
    PullReviewInput,
    ThreadCommentInput,
)
from local_tools.words import CUT, READ_CHARS, NoInput, within
from modules.lives.bluesky.types import MadeThing
from modules.lives.tasks.merge.policy import merge_problem
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.outbox.github_bodies import (
    AccountFollowBody,
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
    body_digest,
)
from modules.services.peers.registry import PeerRegistry
from modules.services.plans.plan_text import TITLE_MARK
from modules.services.plans.types import PLAN_LABEL
from modules.services.repositories import HISTORY, RepositoryCopy, RepositoryReader
from modules.services.workspaces.acting import pick_reviewers
from modules.services.workspaces.sentinel import FINISHED_LABEL
from modules.services.workspaces.watched import is_workspace_name

_SKILL = "repository-tools"
_TITLE_CHARS, _NAME_CHARS, _TOLD_CHARS, _MOST_ORGS = 200, 50, 1_000, 100
_SAID_CHARS, _CHANGES_CHARS = 2_000, 15_000


class RepositoryTools:
    """The handlers."""

    def __init__(self, acting: GitHubActing) -> None:
        self._acting = acting
        self._services = acting.services
        self._github = acting.services.github
        self.words = acting.words

    async def get(self, args: InRepository, turn: Turn) -> ToolResult:
        repo = self._acting.place(args.owner, args.repo, turn)
        found = (await self._github.get_repository(repo)).or_raise()
        return self._acting.read(_of_repository(found) | {"archived": found.archived}, uri=self._github.page(repo))

    async def issues(self, args: IssueLookInput, turn: Turn) -> ToolResult:
        repo = self._acting.place(args.owner, args.repo, turn)
        if args.issue_number:
            one = (await self._github.get_issue(repo, args.issue_number)).or_raise()
            told = _of_issue(one, READ_CHARS)
            if CUT not in told:
                turn.shown_whole.add(body_digest(one.body))
            comments = (await self._github.list_comments(repo, args.issue_number)).or_raise()
            told |= _newest("comments", list(map(_of_comment, comments)), READ_CHARS - _length(told))
            return self._acting.read(told, uri=one.html_url)
        found = (await self._github.list_issues(repo, state=args.state, limit=args.limit, pulls=False)).or_raise()
        return self._acting.listed(list(map(_of_issue, found)), args.limit, uri=self._github.page(repo))

    async def pulls(self, args: PullLookInput, turn: Turn) -> ToolResult:
        repo = self._acting.place(args.owner, args.repo, turn)
        if args.pull_number:
            return await self._pull(repo, args.pull_number)
        listed = (await self._github.pulls.list(repo, state=args.state, limit=args.limit)).or_raise()
        return self._acting.listed(list(map(_of_pull, listed)), args.limit, uri=self._github.page(repo))

    async def _pull(self, repo: Repo, number: int) -> ToolResult:
        """Return one pull request with its changes, and the newest of what reviews and comments say about it."""
        one = (await self._github.pulls.get(repo, number)).or_raise()
        files = (await self._github.pulls.files(repo, number)).or_raise()
        reviews = (await self._github.pulls.reviews(repo, number)).or_raise()
        lines = (await self._github.pulls.review_comments(repo, number)).or_raise()
        comments = (await self._github.list_comments(repo, number)).or_raise()
        said = [
            *(_of_comment(comment) for comment in comments),
            *(_of_comment(line.comment) | {"on": f"{line.path}:{line.line}"} for line in lines),
            *(_of_review(review) for review in reviews if review.submitted_at),
        ]
        told = _of_pull(one) | within(clean(one.body), _TOLD_CHARS * 3, "body")
        told |= {"changes": within("\n".join(map(_of_file, files)), _CHANGES_CHARS)}
        left = READ_CHARS - _length(told)
        said.sort(key=lambda each: str(each["at"]))
        return self._acting.read(told | _newest("said", said, left), uri=one.html_url)

    async def of_organisation(self, args: OrgReposInput, turn: Turn) -> ToolResult:
        listed = await self._github.repositories.of_organization(args.org, sort="pushed", limit=args.limit)
        return self._acting.listed(list(map(_of_repository, listed.or_raise())), args.limit, uri=self._github.address)

    async def own_organisations(self, _: NoInput, __: Turn) -> ToolResult:
        listed = (await self._github.repositories.organizations(limit=_MOST_ORGS)).or_raise()
        told = [{"login": one.login, "description": one_line(one.description, _TITLE_CHARS)} for one in listed]
        return self._acting.listed(told, _MOST_ORGS, uri=self._github.address)

    async def account(self, args: AccountInput, turn: Turn) -> ToolResult:
        found = (await self._github.get_user(args.username)).or_raise()
        return self._acting.read(asdict(found), uri=found.html_url)

    async def create(self, args: IssueCreateInput, turn: Turn) -> ToolResult:
        repo = self._acting.place(args.owner, args.repo, turn)
        title, body = one_line(args.title, _TITLE_CHARS, is_ours=True), clean(args.body, is_ours=True)
        if not title:
            return self.words.error("No Title")
        issue = IssueBody(
            repo=repo.full_name,
            title=title,
            body=body,
            labels=_names(args.labels),
            assignees=_names(args.assignees),
        )
        sent = await self._acting.send(issue, title, turn)
        number = sent.issue_number
        issue_made = {"number": number, "title": title, "url": sent.result_uri}
        told = {"success": True, "issue": issue_made, **await self._acting.watch(repo, turn)}
        made = self._acting.made(MadeThing("issue_made", sent.result_uri or ""), told, turn)
        return await self._acting.with_added(made, issue, sent)

    async def update(self, args: IssueUpdateInput, turn: Turn) -> ToolResult:
        args = _without_empty_lists(args)
        repo = self._acting.place(args.owner, args.repo, turn)
        read = (await self._github.get_issue(repo, args.issue_number)).or_raise()
        if args.body.strip() and CUT in _of_issue(read) and body_digest(read.body) not in turn.shown_whole:
            return self.words.error("Text Not Read")
        if problem := update_problem(args, read, login=self._github.login, is_ours=self._is_ours(repo)):
            return self.words.error(problem)
        body = _update(args, repo, read)
        key = f"{args.issue_number} {body_digest(body.as_json)}"
        sent = await self._acting.send(body, key, turn, again=True)
        issue = {"number": args.issue_number, "url": sent.result_uri}
        told = self._acting.told({"success": True, "issue": issue, "changed": body.about})
        return await self._acting.with_added(told, body, sent)

    def _is_ours(self, repo: Repo) -> bool:
        """Return whether a repository is a watched workspace, or belongs to our account or the owner's."""
        own = {self._github.login.lower(), self._services.settings.owner_github_username.lower()}
        return repo.owner.lower() in own or self._services.workspaces.get(repo) is not None

    async def star(self, args: InRepository, turn: Turn) -> ToolResult:
        repo = self._acting.place(args.owner, args.repo, turn)
        return await self._like(StarBody(repo=repo.full_name), turn)

    async def follow(self, args: AccountInput, turn: Turn) -> ToolResult:
        login = args.username
        if not is_login(login):
            return self.words.error("No Account")
        return await self._like(AccountFollowBody(repo=f"{login}/{login}"), turn)

    async def _like(self, body: GitHubBody, turn: Turn) -> ToolResult:
        sent = await self._acting.send(body, "once", turn)
        return self._acting.told({"success": True, "url": sent.result_uri})


def update_problem(args: IssueUpdateInput, issue: Issue, *, login: str, is_ours: bool) -> str:
    """Return why an issue must not be changed so, a subsection of `Answers`; "" if it may.

    A plan is closed by its keeper, a sentinel by its author; in others' repositories they decide which labels exist and
    what is closed, but for issues of ours.
    """
    labels = {label.lower() for label in issue.labels}
    if not (args.title.strip() or args.body.strip() or args.state) and args.labels is args.assignees is None:
        return "No Change"
    is_by_us = issue.author.lower() == login.lower()
    if not is_ours and (args.labels is not None or (args.state == "closed" and not is_by_us)):
        return "Not Ours"
    if args.state != "closed":
        return ""
    if PLAN_LABEL in labels or issue.title.startswith(TITLE_MARK):
        return "Plan Closing"
    if FINISHED_LABEL in labels and not is_by_us:
        return "Sentinel Closing"
    return ""


def repository_tools(services: GitHubToolServices) -> Sequence[Tool]:
    """Return the tools of the family."""
    acting = GitHubActing(services, _SKILL)
    tools, owner = RepositoryTools(acting), Provenance.OWNER
    act = partial(
        acting.words.tool, capability="github", needs=owner, holdable=True, fits=acting.serves, given=IN_THREAD
    )
    look = partial(
        acting.words.tool, capability="github", needs=owner, effect="look", fits=acting.serves, given=IN_THREAD
    )
    far = partial(acting.words.tool, capability="github", needs=owner, fits=acting.serves_owner)
    return (
        look("github_get_repo", InRepository, handler=tools.get),
        look("github_list_issues", IssueLookInput, handler=tools.issues),
        look("github_list_pull_requests", PullLookInput, handler=tools.pulls),
        far("github_list_org_repos", OrgReposInput, handler=tools.of_organisation, effect="look"),
        far("github_list_my_orgs", NoInput, handler=tools.own_organisations, effect="look"),
        far("github_get_user", AccountInput, handler=tools.account, effect="look"),
        act("github_create_issue", IssueCreateInput, handler=tools.create, fits=acting.serves_post),
        act("github_update_issue", IssueUpdateInput, handler=tools.update),
        act("github_star_repo", InRepository, handler=tools.star),
        far("github_follow_user", AccountInput, handler=tools.follow, holdable=True),
    )


def _without_empty_lists(args: IssueUpdateInput) -> IssueUpdateInput:
    """Return the change without its empty lists, unless one of them is all that it gives.

    Models fill every parameter of a call; only a call with a single list means to empty it.
    """
    given = [one for one in (args.title.strip(), args.body.strip(), args.state, args.labels, args.assignees) if one]
    lists = {"labels": args.labels, "assignees": args.assignees}
    empty = [name for name, names in lists.items() if names == []]
    return args.model_copy(update=dict.fromkeys(empty)) if given or len(empty) > 1 else args


def _update(args: IssueUpdateInput, repo: Repo, issue: Issue) -> IssueUpdateBody:
    title, text = one_line(args.title, _TITLE_CHARS, is_ours=True), clean(args.body, is_ours=True)
    changed = {"title": title, "state": args.state, "labels": args.labels, "assignees": args.assignees}
    said = [f"{name} {to or 'none'}" for name, to in changed.items() if to or to == []]
    said += [f"a text of {len(text):,} characters in place of {len(issue.body):,}"] if text else []
    told = ", ".join(said)
    return IssueUpdateBody(
        repo=repo.full_name,
        number=issue.number,
        title=title,
        body=text,
        state=args.state or None,
        labels=None if args.labels is None else _names(args.labels),
        assignees=None if args.assignees is None else _names(args.assignees),
        over=body_digest(issue.body) if text else "",
        about=one_line(f"{repo.full_name}#{issue.number}: {told}", _TITLE_CHARS),
    )


def _names(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for one in given if (name := one_line(one, _NAME_CHARS)))


def _of_repository(one: Repository) -> dict[str, Any]:
    return {
        "name": one.repo.name,
        "full_name": one.full_name,
        "description": one_line(one.description, _TITLE_CHARS),
        "html_url": one.html_url,
        "default_branch": one.default_branch,
        "private": one.private,
    }


def _of_issue(one: Issue, most: int = _TOLD_CHARS) -> dict[str, Any]:
    return {
        "number": one.number,
        "title": one.title,
        "state": one.state,
        "author": one.author,
        "labels": list(one.labels),
        "assignees": list(one.assignees),
        **within(clean(one.body), most, "body"),
        "html_url": one.html_url,
        "updated_at": one.updated_at,
    }


def _of_comment(one: Comment) -> dict[str, Any]:
    return {"author": one.author, "at": one.created_at, "text": both_ends(clean(one.body), _SAID_CHARS)}


def _of_review(one: Review) -> dict[str, Any]:
    said = {"author": one.author, "at": one.submitted_at, "verdict": one.state, "of_commit": one.commit_id}
    return said | {"text": both_ends(clean(one.body), _SAID_CHARS)}


def _of_file(one: PullFile) -> str:
    moved = f" from {one.previous_path}" if one.previous_path else ""
    return f"{one.path} ({one.status}{moved}, +{one.additions} -{one.deletions})\n{legible(one.patch)}"


def _newest(name: str, said: Sequence[Mapping[str, Any]], most: int) -> dict[str, Any]:
    """Return the newest items, oldest first, that fit into `most` characters of JSON, and the number of all others."""
    shown: list[Mapping[str, Any]] = []
    for one in reversed(said):
        if (most := most - _length(one)) < 0:
            break
        shown.insert(0, one)
    left_out = len(said) - len(shown)
    return {name: shown} | ({"older_ones_not_shown": left_out} if left_out else {})


def _length(told: Mapping[str, Any]) -> int:
    return len(json.dumps(told, ensure_ascii=False))


def _of_pull(one: PullRequest) -> dict[str, Any]:
    return {
        "number": one.number,
        "title": one.title,
        "state": one.state,
        "draft": one.draft,
        "merged": one.merged,
        "author": one.author,
        "head": one.head.ref,
        "base": one.base.ref,
        "requested_reviewers": [reviewer.login for reviewer in one.requested_reviewers],
        "html_url": one.html_url,
        "updated_at": one.updated_at,
    }


_MOST_CHARS, _MOST_COMMITS = 16_000, 30
_DEPTHS = {"history": HISTORY, "commit": 2}
_SHOW = ("--stat", "--patch", "--diff-merges=first-parent", "--no-color", "--no-ext-diff", "--no-textconv")


class RepositoryReadInput(InRepository):
    """The thing to read, and the branch, tag or commit; the default branch if none is given."""

    what: Literal["files", "file", "search", "history", "commit"] = "files"
    at: str = ""
    path: str = ""
    text: str = ""
    from_line: int = Field(default=1, ge=1)


class RepositoryReadingTools:
    """The handler, with its services."""

    def __init__(self, reader: RepositoryReader, acting: GitHubActing) -> None:
        self._reader = reader
        self._acting = acting

    def serves(self, turn: Turn) -> bool:
        """Return whether there is a sandbox to read in."""
        return self._reader.sandbox.is_there

    async def read(self, args: RepositoryReadInput, turn: Turn) -> ToolResult:
        """Read one thing. A turn whose answer others see too gets only what is public."""
        repo = self._acting.place(args.owner, args.repo, turn)
        depth, as_account = _DEPTHS.get(args.what, 1), self._acting.serves_owner(turn)
        at = "" if args.at.strip() == "HEAD" else args.at.strip()
        # NOTE(self): the repository of a copy that was fetched without an account may be private by now.
        github = self._acting.services.github
        if not as_account and github.configured and (await github.get_repository(repo)).or_raise().private:
            self._acting.words.stop("Private", repo=repo.full_name)
        async with self._reader.open(repo, at, depth, as_account=as_account) as copy:
            told = {"repo": repo.full_name, "commit": copy.sha, "content": await self._content(args, copy)}
        return self._acting.read(told, uri=github.page(repo))

    async def _content(self, args: RepositoryReadInput, copy: RepositoryCopy) -> str:
        if args.what == "commit":
            return legible(both_ends((await copy.git("show", *_SHOW, copy.sha)).or_raise(), _MOST_CHARS))
        if args.what == "history":
            only = ("--", f":(top,literal){args.path}") if args.path else ()
            form = ("--format=%h %ad %an: %s", "--date=short", "--no-color")
            return legible((await copy.git("log", f"-{_MOST_COMMITS}", *form, copy.sha, *only)).or_raise())
        from modules.services.coding.hands import RefusedCall, TreeFiles  # noqa: PLC0415 - few lives need it

        files = TreeFiles(copy.tree)
        read = {"files": files.list_files, "file": files.read_file, "search": files.search}[args.what]
        try:
            return await asyncio.to_thread(read, {"path": args.path, "text": args.text, "from_line": args.from_line})
        except RefusedCall as refused:
            self._acting.words.stop(refused.answer, **refused.words)


def repository_reading_tools(reader: RepositoryReader, acting: GitHubActing) -> Sequence[Tool]:
    """Return the tool: a look for turns that the owner began."""
    tools = RepositoryReadingTools(reader, acting)
    look = partial(acting.words.tool, effect="look", fits=tools.serves, given=IN_THREAD)
    return (look("github_read_repository", RepositoryReadInput, "social", Provenance.OWNER, tools.read),)


_PULL_SKILL = "pull-request-tools"
_BRANCH_CHARS = 200


class PullToolServices(GitHubToolServices, Protocol):
    """The services that the tools are built from."""

    peer_registry: PeerRegistry


class PullRequestTools:
    """The handlers. `registry` has the peers that are asked to review what is opened in a workspace."""

    def __init__(self, acting: GitHubActing, registry: PeerRegistry) -> None:
        self._acting = acting
        self._services = acting.services
        self._github = acting.services.github
        self._registry = registry
        self.words = acting.words

    async def comment_on_pull(self, args: PullCommentInput, turn: Turn) -> ToolResult:
        named = ThreadCommentInput(owner=args.owner, repo=args.repo, number=args.pull_number, body=args.body)
        return await self.comment(named, turn)

    async def comment(self, args: ThreadCommentInput, turn: Turn) -> ToolResult:
        """Comment on a pull request or on an issue: GitHub keeps the comments of both in one place."""
        address = parse_github_url(args.url)
        number, text = args.number or (address.number if address else 0), _text(args.body)
        if (args.url and (address is None or address.type == "discussion" or number != address.number)) or not number:
            return self.words.error("No Thread")
        named = (address.owner, address.repo) if address else (args.owner, args.repo)
        repo = self._acting.place(*named, turn)
        (await self._github.get_issue(repo, number)).or_raise()
        if not text:
            return self.words.error("No Words")
        body = IssueCommentBody(repo=repo.full_name, number=number, body=text)
        sent = await self._acting.send(body, f"{number} {body_digest(text)}", turn)
        told = {"success": True, "url": sent.result_uri}
        made = self._acting.made(MadeThing("comment_made", sent.result_uri or ""), told, turn)
        return await self._acting.with_added(made, body, sent)

    async def review(self, args: PullReviewInput, turn: Turn) -> ToolResult:
        (repo, pull), text = await self._found(args, turn), _text(args.body)
        if pull.author.lower() == self._github.login.lower():
            return self.words.error("Own Pull Request")
        if pull.state != "open":
            return self.words.error("Closed")
        if not text and args.event != "APPROVE":
            return self.words.error("No Words")
        body = ReviewBody(
            repo=repo.full_name,
            number=pull.number,
            event=args.event,
            body=text,
            commit_id=pull.head.sha,
        )
        given = await self._acting.services.outbox.standing_verdict(body)
        us_again = self._github.login.lower() in {one.login.lower() for one in pull.requested_reviewers}
        if given and not (given.state == "done" and us_again):
            return self.words.waits(given.state, given.error) or self.words.done("Reviewed Already")
        sent = await self._acting.send(body, f"{pull.number} {args.event} {pull.head.sha} {body_digest(text)}", turn)
        return await self._acting.with_added(self._told(sent.result_uri), body, sent)

    async def create(self, args: PullCreateInput, turn: Turn) -> ToolResult:
        repo = self._acting.place(args.owner, args.repo, turn)
        title, head = one_line(args.title, _TITLE_CHARS, is_ours=True), one_line(args.head, _BRANCH_CHARS)
        if not title or not head:
            return self.words.error("No Branch")
        base = one_line(args.base, _BRANCH_CHARS)
        if not base:
            base = (await self._github.get_repository(repo)).or_raise().default_branch
        body = PullRequestBody(
            repo=repo.full_name,
            title=title,
            body=_text(args.body),
            head=head,
            base=base,
            draft=args.draft,
        )
        sent = await self._acting.send(body, f"{head} {base}", turn)
        number = sent.issue_number
        asked = await self._ask_for_reviews(repo, number, turn) if is_workspace_name(repo.name) else []
        told = self._told(sent.result_uri, number=number, reviewers=asked)
        return await self._acting.with_added(told, body, sent)

    async def _ask_for_reviews(self, repo: Repo, number: int, turn: Turn) -> list[str]:
        """Ask peers for a review, with one request each, so that one who cannot review does not block the others."""
        peers = [one.github_username for one in self._registry.get_linked_peers()]
        asked = pick_reviewers(f"{repo.full_name}#{number}", self._github.login, peers)
        for login in asked:
            body = ReviewRequestBody(repo=repo.full_name, number=number, reviewers=(login,))
            await self._acting.propose(body, f"{number} {login}", turn)
        return asked

    async def merge(self, args: PullMergeInput, turn: Turn) -> ToolResult:
        repo, pull = await self._found(args, turn)
        if not is_workspace_name(repo.name) or pull.author.lower() != self._github.login.lower():
            return self.words.error("Not Ours")
        reviews = (await self._github.pulls.reviews(repo, pull.number)).or_raise()
        pushers = (await self._github.repositories.pushers(repo)).or_raise()
        if problem := merge_problem(pull, reviews, pushers):
            return self.words.error(problem)
        title = f"{pull.title} (#{pull.number})"
        body = MergeBody(
            repo=repo.full_name,
            number=pull.number,
            title=title,
            head_sha=pull.head.sha,
            last_review=newest_review(reviews),
        )
        sent = await self._acting.send(body, f"{pull.number} {pull.head.sha}", turn)
        if sent.made("queue"):
            return self._told(sent.result_uri, waits_in="the merge queue")
        await self._delete_branch(repo, pull, turn)
        return self._told(sent.result_uri, sha=sent.made("commit"))

    async def _delete_branch(self, repo: Repo, pull: PullRequest, turn: Turn) -> None:
        """Delete the branch of a merge, if it is in the repository and nothing was pushed to it since."""
        branch, known = pull.head.ref, (await self._github.get_repository(repo)).or_else(None)
        is_here = pull.head.repo.lower() == repo.full_name.lower()
        if known is None or not is_here or branch in {known.default_branch, "main", "master"}:
            return
        body = RefBody(repo=repo.full_name, action="delete", branch=branch, sha=pull.head.sha)
        await self._acting.propose(body, f"{branch} {pull.head.sha}", turn)

    async def _found(self, args: PullReviewInput | PullMergeInput, turn: Turn) -> tuple[Repo, PullRequest]:
        """Return the pull request that is meant, as it is now. Raises `ToolStopped`, `Unable`, `Undone`."""
        repo = self._acting.place(args.owner, args.repo, turn)
        return repo, (await self._github.pulls.get(repo, args.pull_number)).or_raise()

    def _told(self, url: str | None, **more: object) -> ToolResult:
        return self._acting.told({"success": True, "url": url, **more})


def pull_request_tools(services: PullToolServices) -> Sequence[Tool]:
    """Return the tools of the family."""
    acting = GitHubActing(services, _PULL_SKILL)
    tools, owner = PullRequestTools(acting, services.peer_registry), Provenance.OWNER
    act = partial(
        acting.words.tool, capability="github", needs=owner, holdable=True, fits=acting.serves, given=IN_THREAD
    )
    return (
        act("github_comment", ThreadCommentInput, handler=tools.comment, fits=acting.serves_post),
        act("github_create_pr_comment", PullCommentInput, handler=tools.comment_on_pull),
        act("github_review_pr", PullReviewInput, handler=tools.review),
        act("github_create_pr", PullCreateInput, handler=tools.create),
        act("github_merge_pr", PullMergeInput, handler=tools.merge),
    )


def _text(body: str) -> str:
    return clean(body, is_ours=True)
