"""Tells people and the owner about an edit on GitHub that a write of ours replaced and that could not be restored."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.github.history import LostEdit
from modules.runtime.events import Event
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.github_writer import GitHubWriter, act_key
from modules.services.voice_phrases.regenerate import Phrase


@dataclass(frozen=True, slots=True)
class EditWasLost(Event):
    """An edit by somebody else is now only in the edit history."""

    lost: LostEdit


@dataclass(frozen=True, slots=True)
class LostEditNotice:
    """Comments once on the issue or pull request, and records it for the owner."""

    writer: GitHubWriter
    journal: Journal
    phrase: Phrase

    async def tell(self, event: EditWasLost) -> None:
        """Report one lost edit."""
        repo, number, edit = event.lost.repo, event.lost.number, event.lost.edit
        summary = f"Replaced an edit by @{edit.editor} on {repo.full_name}#{number}"
        reason = "it was made at the same moment as mine and could not be restored; it is in the edit history there"
        await self.journal.record(Entry("error", "github", summary, line="warn", reason=reason))
        key = act_key(repo, number, f"lost-edit:{edit.editor}:{edit.at}")
        words = self.phrase("github.edit_lost", editor=edit.editor, at=edit.at)
        await self.writer.comment(repo, number, key, words)
