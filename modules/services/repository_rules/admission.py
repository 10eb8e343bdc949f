"""Asks, before an act on GitHub is admitted, whether the repository is the one that was known under its name.

Of a repository of somebody else it is asked whether it wants us there.

For a pull request it is asked, too, whether one of ours is open there already.

Every way to GitHub leads through the outbox, so this is the one place where it is asked, whoever proposes the act.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.errors import BudgetExceeded, Transient
from common.result import Unable, Undone
from modules.runtime.database.database import Database
from modules.services.outbox import store
from modules.services.outbox.github_bodies import NOT_IN_A_REPOSITORY, OnGitHub, PullRequestBody
from modules.services.outbox.repository_identity import AnotherRepositoryErr
from modules.services.outbox.rules.policy import held_to, is_ours
from modules.services.outbox.rules.rules import PULLS_PER_REPOSITORY, WELCOME
from modules.services.outbox.rules.types import TrustCircle
from modules.services.outbox.senders.github_looking import repo_of
from modules.services.outbox.types import ProposedAction, Verdict
from modules.services.repository_rules.checking import ASKED, NoSuchRepository, RepositoryRules
from modules.services.repository_rules.types import VerdictCode

ASK_AGAIN_S = 300.0
SAME_REPOSITORY = "same-repository"

_ON_ITS_WAY = frozenset({"held", "pending", "sending"})


@dataclass(frozen=True, slots=True)
class ForeignRepositories:
    """An `Inquiry` of the outbox. Foreign is what is neither ours, nor the owner's, nor a workspace of theirs."""

    rules: RepositoryRules
    github: GitHub
    database: Database
    circle: Callable[[], TrustCircle]

    async def __call__(self, action: ProposedAction) -> Sequence[Verdict]:
        body = action.body
        if not isinstance(body, OnGitHub) or action.kind in NOT_IN_A_REPOSITORY or not self.github.configured:
            return ()
        repo = repo_of(body)
        known = await self.rules.identity.check(repo)
        if isinstance(known, AnotherRepositoryErr):
            return [Verdict(SAME_REPOSITORY, "block", known.error, value=VerdictCode.ANOTHER, instead="silence")]
        if action.kind not in ASKED or not self.is_foreign(body.repo):
            return ()
        said = [await self._welcome(repo, by_owner=action.by_owner)]
        if isinstance(body, PullRequestBody) and said[0].says != "block":
            said.append(await self._pulls(repo))
        return said

    def is_foreign(self, place: str) -> bool:
        """Return whether a repository, `owner/name`, is somebody else's, who is asked before anything is done there."""
        return not is_ours(place, self.circle())

    async def _welcome(self, repo: Repo, *, by_owner: bool) -> Verdict:
        name = WELCOME.name
        if by_owner:
            return Verdict(name, reason="the owner asked for it")
        try:
            found = await self.rules.verdict(repo, "commitment")
        except NoSuchRepository as error:
            return Verdict(name, reason=f"the act itself will tell: {error}")
        except (BudgetExceeded, Transient) as error:
            return _later(name, str(error), error.retry_after)
        reason, code = f"{repo.full_name}: {found.reason}", found.code.value
        match found.welcome:
            case "welcome":
                return Verdict(name, reason=found.reason, value=code)
            case "unclear":
                return Verdict(name, "hold", found.reason, value=code)
            case _:
                return Verdict(name, "block", reason, value=code, instead=WELCOME.instead)

    async def _pulls(self, repo: Repo) -> Verdict:
        """Whether another pull request of ours may be opened; those that wait or are on their way count."""
        name = PULLS_PER_REPOSITORY.name
        try:
            if (await self.github.get_repository(repo)).or_raise().can_push:
                return Verdict(name, reason="our account may push there")
            written = (await self.github.list_issues(repo, creator=self.github.login)).or_raise()
        except (Unable, Undone) as unread:
            return _later(name, unread.err.error, unread.err.retry_after)
        is_open = sum(one.is_pull_request for one in written)
        return held_to(PULLS_PER_REPOSITORY, is_open + await self._on_their_way(repo))

    async def _on_their_way(self, repo: Repo) -> int:
        place = repo.full_name.lower()
        made = await self.database.run(lambda rows: store.at_place(rows, ["pull_request"], place))
        return sum(one.state in _ON_ITS_WAY for one in made)


def _later(rule: str, reason: str, retry_after: float | None) -> Verdict:
    return Verdict(rule, "block", reason, instead="later", retry_in_s=retry_after or ASK_AGAIN_S)
