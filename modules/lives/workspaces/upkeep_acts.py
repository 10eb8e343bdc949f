"""How what is tidied up in a workspace reaches GitHub: as intents of the outbox, each once for good under its key.

What a person undoes stays undone: an issue that was opened again is not closed a second time for the same reason. A
comment ends in a mark that readers do not see, so that a SOUL that does not know of us does not say it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from common.clock import Clock, parse_iso
from common.result import Err
from modules.lives.workspaces.upkeep_policy import is_work
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.github_bodies import GitHubBody, IssueCommentBody, IssueUpdateBody, LabelBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, ProposedAction
from modules.services.workspaces.trust import TrustedAccounts

SOURCE = "workspace"
_AGAIN_AFTER = timedelta(hours=24)
"""How long what was refused or could not be done is left alone."""


class UpkeepActs:
    """Proposes what is to be done with an issue of a workspace; `loop` is the name under which it is recorded."""

    def __init__(self, github: GitHub, outbox: Outbox, journal: Journal, clock: Clock, loop: str) -> None:
        self._github = github
        self._outbox = outbox
        self._journal = journal
        self._clock = clock
        self._loop = loop

    def may_close(self, issue: Issue, trusted: TrustedAccounts) -> bool:
        """Return whether GitHub lets us close and label an issue; what it would refuse is not announced either."""
        return trusted.lets_close(issue.account)

    async def reread(self, repo: Repo, issue: Issue) -> Issue | None:
        """Return an issue as it stands now; None where it is closed or cannot be read."""
        found = await self._github.get_issue(repo, issue.number)
        return None if isinstance(found, Err) or found.data.state != "open" else found.data

    async def said(self, repo: Repo, number: int, key: str, text: str, trusted: TrustedAccounts) -> bool:
        """Comment once; return whether the comment stands there, which it does at a later look at the soonest."""
        part = _part(repo, number, key)
        found = await self._outbox.by_target("issue_comment", part)
        if any(one.state == "done" for one in found):
            return True
        if any(one.state in ACTIVE_STATES for one in found):
            return False
        comments = await self._github.list_comments(repo, number)
        if isinstance(comments, Err):
            return False
        mark = f"<!-- soul:upkeep={key} -->"
        if any(mark in one.body and trusted.covers(one.account) for one in comments.data):
            return True
        body = IssueCommentBody(
            source=SOURCE,
            repo=repo.full_name,
            number=number,
            body=f"{text}\n\n{mark}",
            text=text,
            about=f"comment on {repo.full_name}#{number}",
        )
        await self.propose(body, key, number)
        return False

    async def was_said(self, repo: Repo, number: int, key: str) -> bool:
        """Return whether a comment of ours under this key stands there."""
        found = await self._outbox.by_target("issue_comment", _part(repo, number, key))
        return any(one.state == "done" for one in found)

    async def is_to_be_closed(self, repo: Repo, number: int, key: str) -> bool:
        """Return whether a comment of ours under this key stands there, and the issue was not closed for it."""
        if not await self.was_said(repo, number, key):
            return False
        found = await self._outbox.by_target("issue_update", _part(repo, number, key))
        return not any(one.state in ACTIVE_STATES for one in found)

    async def close(self, repo: Repo, issue: Issue, key: str, why: str) -> bool:
        """Close an issue, once for this reason; return whether that was proposed now."""
        about = f"close {repo.full_name}#{issue.number}"
        body = IssueUpdateBody(
            source=SOURCE, repo=repo.full_name, number=issue.number, state="closed", about=about, text=about
        )
        if not await self.propose(body, key, issue.number):
            return False
        summary = f"Closing {repo.full_name}#{issue.number}"
        await self._journal.record(Entry("decision", self._loop, summary, line="info", reason=why))
        return True

    async def end(self, repo: Repo, number: int, key: str, text: str, trusted: TrustedAccounts, *, why: str) -> bool:
        """Comment on an issue, and close it once that stands there; return whether nothing of it is left to be done.

        What GitHub does not let us close is left alone, and so it is where the comment was refused.
        """
        found = await self._github.get_issue(repo, number)
        if isinstance(found, Err):
            return found.kind == "not_found"
        if found.data.state != "open" or not is_work(found.data) or not self.may_close(found.data, trusted):
            return True
        if await self.said(repo, number, key, text, trusted):
            await self.close(repo, found.data, key, why)
            return True
        proposed = await self._outbox.by_target("issue_comment", _part(repo, number, key))
        return bool(proposed) and not any(one.state in ACTIVE_STATES for one in proposed)

    async def label(self, repo: Repo, issue: Issue, change: tuple[Sequence[str], Sequence[str]], key: str) -> bool:
        """Change the labels of an issue; return whether that was proposed now."""
        add, remove = change
        about = f"label {repo.full_name}#{issue.number}: {', '.join(add) or 'less'}"
        body = LabelBody(
            source=SOURCE,
            repo=repo.full_name,
            number=issue.number,
            add=tuple(add),
            remove=tuple(remove),
            about=about,
            text=about,
        )
        return await self.propose(body, key, issue.number)

    async def propose(self, body: GitHubBody, key: str, number: int) -> bool:
        """Hand an act to the outbox, once for its kind and key; return whether it was taken in now."""
        owner, _, name = body.repo.partition("/")
        part = _part(Repo(owner, name), number, key)
        found = await self._outbox.by_target(body.kind, part)
        lately = self._clock.now() - _AGAIN_AFTER
        if any(one.state in ACTIVE_STATES or one.rejected or parse_iso(one.created_at) > lately for one in found):
            return False
        submitted = await self._outbox.submit(ProposedAction(body, part=part, cause_id=part))
        return submitted.accepted


def _part(repo: Repo, number: int, key: str) -> str:
    return f"workspace:{repo.full_name.lower()}#{number}/{key}"
