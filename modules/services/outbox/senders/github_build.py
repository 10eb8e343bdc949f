"""Who sends what to GitHub; stars and follows are sent here."""

from __future__ import annotations

from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.github_bodies import AccountFollowBody, StarBody
from modules.services.outbox.repository_identity import RepositoryIdentity
from modules.services.outbox.senders.github import GitHubSender
from modules.services.outbox.senders.github_code_changes import BranchUpdateSender, CodeChangeSender
from modules.services.outbox.senders.github_issue_changes import IssueChangeSender
from modules.services.outbox.senders.github_looking import ChangeSender, repo_of
from modules.services.outbox.types import Intent, Sender, Sent


class LikingSender(ChangeSender[StarBody | AccountFollowBody]):
    """Sends intents of the kinds `star` and `account_follow`; each is the same if it is done again."""

    bodies = (StarBody, AccountFollowBody)

    async def _look(self, intent: Intent, body: StarBody | AccountFollowBody, *, departs: bool) -> None:
        return None

    async def _do(self, intent: Intent, body: StarBody | AccountFollowBody) -> Sent:
        repo = repo_of(body)
        if isinstance(body, StarBody):
            done, url = await self._github.repositories.star(repo), self._github.page(repo)
        else:
            done, url = await self._github.accounts.follow(body.login), f"{self._github.address}/{body.login}"
        done.or_raise()
        return Sent(url)


def github_senders(identity: RepositoryIdentity) -> dict[IntentKind, Sender]:
    """Return who sends each kind of intent that goes to GitHub."""
    kinds = (GitHubSender, IssueChangeSender, CodeChangeSender, BranchUpdateSender, LikingSender)
    return {body.kind: sender for sender in (kind(identity) for kind in kinds) for body in sender.bodies}
