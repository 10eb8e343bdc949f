"""Hands what is to be written into a workspace to the outbox, each thing once. Nothing else is kept.

A `key` names one act of one occasion, such as `close-sentinel:acme/www-lil-intdev-site#7:12`. What was accepted under a
key, or refused by the owner, is not proposed again, in this process or in a later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from adapters.github.types import Repo
from common.clock import Clock, parse_iso
from common.text.untrusted import one_line
from modules.services.commitments.texts import comment_body, without_mentions
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody, IssueUpdateBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction

SOURCE = "workspace"
TITLE_CHARS = 200

_AGAIN_AFTER = timedelta(hours=1)
"""How long what was refused or could not be done is left alone."""
_WAITING = ACTIVE_STATES - {"done"}
_ABOUT_CHARS = 120
_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class WorkspaceWriter:
    """Proposes acts; each method returns whether the act was accepted, now or before."""

    outbox: Outbox
    clock: Clock

    async def open_issue(
        self,
        repo: Repo,
        key: str,
        title: str,
        body: str,
        *,
        labels: Sequence[str] = (),
    ) -> bool:
        """Open an issue that notifies nobody."""
        short, text = one_line(without_mentions(title), TITLE_CHARS), comment_body(body)
        about = f"{repo.full_name}: {short}"
        issue = IssueBody(
            source=SOURCE,
            repo=repo.full_name,
            about=about,
            text=f"{about}\n\n{text}",
            title=short,
            body=text,
            labels=tuple(labels),
        )
        return await self._propose(ProposedAction(issue, key, cause_id=repo.url))

    async def comment(self, repo: Repo, number: int, key: str, words: str) -> bool:
        """Comment on an issue; an `@` in the words calls nobody."""
        text, place = comment_body(words), f"{repo.full_name}#{number}"
        comment = IssueCommentBody(
            source=SOURCE,
            repo=repo.full_name,
            about=f"{place}: {one_line(text, _ABOUT_CHARS)}",
            text=f"{place}\n\n{text}",
            number=number,
            body=text,
        )
        return await self._propose(ProposedAction(comment, key, cause_id=repo.url))

    async def set_state(self, repo: Repo, number: int, key: str, state: Literal["open", "closed"]) -> bool:
        """Close an issue, or open it again."""
        about = f"{'close' if state == 'closed' else 'reopen'} {repo.full_name}#{number}"
        update = IssueUpdateBody(
            source=SOURCE, repo=repo.full_name, about=about, text=about, number=number, state=state
        )
        return await self._propose(ProposedAction(update, key, cause_id=repo.url))

    async def unsent(self, kind: IntentKind, prefix: str) -> bool:
        """Whether an act of a kind whose key begins with `prefix` was accepted and is not done yet."""
        found = await self.outbox.of_kind(kind, _LOOKED_AT)
        return any(one.state in _WAITING and one.target.startswith(prefix) for one in found)

    async def settled(self, kind: IntentKind, key: str) -> bool:
        """Whether an act was accepted under a key, or refused by the owner."""
        return any(_is_settled(one) for one in await self.outbox.by_target(kind, key))

    async def _propose(self, action: ProposedAction) -> bool:
        found = await self.outbox.by_target(action.kind, action.part)
        if any(_is_settled(one) for one in found):
            return True
        lately = self.clock.now() - _AGAIN_AFTER
        if any(parse_iso(one.created_at) > lately for one in found):
            return False
        return (await self.outbox.submit(action)).accepted


def _is_settled(intent: Intent) -> bool:
    return intent.rejected or intent.state in ACTIVE_STATES
