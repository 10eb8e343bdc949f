"""The tools for pull requests at the owner's request: comment, review, open one, and merge one's own.

Each act waits until GitHub has it. A merge is requested only if nothing prevents it at the last read, and names the
commit that was read, so that later pushes are never merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from adapters.github.types import PullRequest, Repo, parse_github_url
from common.provenance import Provenance
from common.text.untrusted import clean, one_line
from local_tools.github_acting import (
    IN_THREAD,
    GitHubActing,
    GitHubToolServices,
    PullCommentInput,
    PullCreateInput,
    PullMergeInput,
    PullReviewInput,
    ThreadCommentInput,
)
from modules.lives.bluesky.types import MadeThing
from modules.lives.tasks.merge.policy import merge_problem
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.outbox.github_bodies import (
    IssueCommentBody,
    MergeBody,
    PullRequestBody,
    RefBody,
    ReviewBody,
    ReviewRequestBody,
    body_digest,
)
from modules.services.peers.registry import PeerRegistry
from modules.services.workspaces.reviewers import pick_reviewers
from modules.services.workspaces.watched import is_workspace_name

_SKILL = "pull-request-tools"
_TITLE_CHARS, _BRANCH_CHARS = 200, 200


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
        sent = await self._acting.send(body, f"{pull.number} {args.event} {pull.head.sha} {body_digest(text)}", turn)
        return await self._acting.with_added(self._told(sent.result_uri), body, sent)

    async def create(self, args: PullCreateInput, turn: Turn) -> ToolResult:
        repo = self._acting.place(args.owner, args.repo, turn)
        title, head = one_line(args.title, _TITLE_CHARS), one_line(args.head, _BRANCH_CHARS)
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
        body = MergeBody(repo=repo.full_name, number=pull.number, title=title, head_sha=pull.head.sha)
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
    acting = GitHubActing(services, _SKILL)
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
