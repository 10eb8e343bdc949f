"""Has GitHub merge the base into the branch of a pull request, once."""

from __future__ import annotations

from common.result import ApiResult, Err, Ok
from modules.services.outbox.github_bodies import BranchUpdateBody
from modules.services.outbox.senders.github import repo_of
from modules.services.outbox.senders.github_looking import CHANGED, ChangeSender, Look, OvertakenErr
from modules.services.outbox.types import Intent, Sent

_NOT_THERE_YET = Err("GitHub accepted the update and does not show it yet", "unknown_outcome")


class BranchUpdateSender(ChangeSender[BranchUpdateBody]):
    """Sends intents of the kind `branch_update`. A result's id is the commit that the update made."""

    bodies = (BranchUpdateBody,)

    async def _look(self, intent: Intent, body: BranchUpdateBody, *, departs: bool) -> Look:
        """Look for the merge that an update makes: its first parent is the commit that was updated."""
        repo = repo_of(body)
        read = await self._github.pulls.get(repo, body.number)
        if isinstance(read, Err):
            return read
        pull = read.data
        if pull.state == "closed":
            return OvertakenErr("the pull request was closed", "invalid")
        if pull.head.sha == body.head_sha:
            return Ok(None)
        commit = await self._github.refs.commit(repo, pull.head.sha)
        if isinstance(commit, Err):
            return commit
        is_update = len(commit.data.parents) > 1 and commit.data.parents[0] == body.head_sha
        return Ok(Sent(pull.html_url, "commit", pull.head.sha)) if is_update else CHANGED

    async def _do(self, intent: Intent, body: BranchUpdateBody) -> ApiResult[Sent]:
        asked = await self._github.pulls.update_branch(repo_of(body), body.number, head_sha=body.head_sha)
        if isinstance(asked, Err):
            return asked
        made = await self._look(intent, body, departs=False)
        if isinstance(made, Err):
            return made
        return Ok(made.data) if made.data is not None else _NOT_THERE_YET
