"""What the owner says on GitHub to what came of earlier runs: it stands in the next opening, and is guidance for us."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.provenance import Provenance
from common.text.untrusted import one_line
from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import NewExperience
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody
from modules.services.outbox.outbox import Outbox
from modules.services.rituals.policy import memo_cause
from modules.services.rituals.types import RitualRun
from modules.services.workspaces.trust import WorkspaceTrust

_MOST_LINES, _LINE_CHARS = 3, 300


@dataclass(frozen=True, slots=True)
class OwnerComments:
    """Reads them; `trust` says which account is the owner's."""

    outbox: Outbox
    github: GitHub
    trust: WorkspaceTrust
    experiences: ExperienceLog

    async def read(self, runs: Sequence[RitualRun]) -> list[str]:
        """Return what the owner said to our newest artefact, a line each, and keep it as guidance, each comment once.

        Nothing where it cannot be read. A comment that was edited counts only where nobody but the owner and we may
        edit it.
        """
        place = next(filter(None, [await self._place_of(run) for run in runs if run.artefact_url]), None)
        if place is None:
            return []
        comments, people = await self.github.list_comments(*place), await self.trust.accounts(place[0])
        by_owner = [one for one in comments.or_else(()) if people.is_owner(one.account)]
        is_ours_alone = people.editors >= Provenance.SELF
        theirs = [one for one in by_owner if is_ours_alone or one.updated_at == one.created_at][-_MOST_LINES:]
        for one in theirs:
            key = f"memo-comment:{one.id}"
            await self.experiences.record(
                NewExperience("owner_guidance", "ritual", key, one.body, uri=one.html_url, trust="owner")
            )
        return [one_line(one.body, _LINE_CHARS) for one in theirs]

    async def _place_of(self, run: RitualRun) -> tuple[Repo, int] | None:
        """Return the issue in which our artefact of a run stands."""
        for intent in await self.outbox.done(memo_cause(run.key, run.day)):
            body = intent.body
            if isinstance(body, IssueBody | IssueCommentBody):
                owner, _, name = body.repo.partition("/")
                number = body.number if isinstance(body, IssueCommentBody) else intent.issue_number
                return Repo(owner, name), number
        return None
