"""Enters the owner's lines in the terminal, for tests."""

from __future__ import annotations

from pathlib import Path

from modules.services.owner import OwnerTalk
from soul.commands.drafts import run_drafts
from soul.commands.options import DraftAction


def approve_shown(root: Path, document: str) -> None:
    """Show and then approve the draft of a change of a document."""
    for action in (DraftAction.SHOW, DraftAction.APPROVE):
        run_drafts(root, action, [document], as_json=False)


async def answered(talk: OwnerTalk, line: str) -> str:
    """Say a line and return its answer, after answering the lines before it; raise the error of a failed answer."""
    stored = await talk.receive(line)
    while answer := await talk.answer_next():
        if answer.failed:
            raise answer.failed
        if answer.message.id == stored.id:
            return answer.text
    return ""
