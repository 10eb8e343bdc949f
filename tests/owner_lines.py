"""Enters the owner's lines in the terminal, for tests."""

from pathlib import Path

from modules.services.owner import OwnerAnswer, OwnerTalk
from modules.services.work.types import NewWork
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
        if answer.message.key == stored:
            return answer.text
    return ""


async def answer_message(talk: OwnerTalk, key: str, text: str) -> OwnerAnswer:
    """Answer a message of the owner that did not come through the terminal, as a row of work that is not settled."""
    await talk.work.add(NewWork("owner-talk", key, importance="owner", cause_id=key))
    item = await talk.work.get("owner-talk", key)
    assert item
    return await talk.answer_message(item, text, "")
