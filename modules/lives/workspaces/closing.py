"""Closes issues of a workspace: it is said first, and done once that stands there.

What we say ends in a mark that readers do not see, so that a SOUL that does not know of us does not say it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from common.result import Err
from modules.lives.workspaces.upkeep_policy import is_work
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.github_writer import GitHubWriter, act_key
from modules.services.workspaces.trust import TrustedAccounts

PLAN_COMPLETE = "plan-complete"
"""The key under which `PlanStanding` closes a plan, and says why."""


@dataclass(frozen=True, slots=True)
class Closing:
    """Says why an issue is closed, and closes it; `what` names the reason for good, `loop` the part that records it."""

    github: GitHub
    writer: GitHubWriter
    journal: Journal
    loop: str

    async def reread(self, repo: Repo, issue: Issue) -> Issue | None:
        """Return an issue as it stands now; None where it is closed or cannot be read."""
        found = (await self.github.get_issue(repo, issue.number)).or_else(None)
        return found if found and found.state == "open" else None

    async def said(self, repo: Repo, number: int, what: str, text: str, trusted: TrustedAccounts) -> bool:
        """Comment once; return whether the comment stands there, which it does at a later look at the soonest."""
        key = act_key(repo, number, what)
        ours = await self.writer.outbox.standing("issue_comment", key)
        if ours.active:
            return ours.code == "done"
        if (comments := (await self.github.list_comments(repo, number)).or_else(None)) is None:
            return False
        mark = f"<!-- soul:upkeep={what} -->"
        if any(mark in one.body and trusted.covers(one.account) for one in comments):
            return True
        await self.writer.comment(repo, number, key, text, mark)
        return False

    async def was_said(self, repo: Repo, number: int, what: str) -> bool:
        """Return whether a comment of ours for this reason stands there."""
        return (await self.writer.outbox.standing("issue_comment", act_key(repo, number, what))).code == "done"

    async def is_closed(self, repo: Repo, number: int, what: str) -> bool:
        """Return whether we closed an issue for this reason, or are about to."""
        return (await self.writer.outbox.standing("issue_update", act_key(repo, number, what))).active is not None

    async def close(self, repo: Repo, issue: Issue, what: str, why: str) -> bool:
        """Close an issue, once for this reason; return whether that was proposed now."""
        key = act_key(repo, issue.number, what)
        if not (await self.writer.set_state(repo, issue.number, key, "closed")).is_new:
            return False
        summary = f"Closing {repo.full_name}#{issue.number}"
        await self.journal.record(Entry("decision", self.loop, summary, line="info", reason=why))
        return True

    async def end(self, repo: Repo, number: int, what: str, text: str, trusted: TrustedAccounts, *, why: str) -> bool:
        """Comment on an issue, and close it once that stands there; return whether nothing of it is left to be done.

        What GitHub does not let us close is left alone, and so it is where the comment was refused.
        """
        found = await self.github.get_issue(repo, number)
        if isinstance(found, Err):
            return found.kind == "not_found"
        if found.data.state != "open" or not is_work(found.data) or not trusted.lets_close(found.data.account):
            return True
        if await self.said(repo, number, what, text, trusted):
            await self.close(repo, found.data, what, why)
            return True
        comment = await self.writer.outbox.standing("issue_comment", act_key(repo, number, what))
        return comment.code in {"refused", "left_alone"}
