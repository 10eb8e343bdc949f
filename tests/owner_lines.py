"""The owner's lines in the terminal, for tests."""

from __future__ import annotations

from modules.services.owner.talk import OwnerTalk


async def answered(talk: OwnerTalk, line: str) -> str:
    """Say a line and return its answer; what waits before it is answered first. Raises why there is none."""
    stored = await talk.receive(line)
    while answer := await talk.answer_next():
        if answer.failed:
            raise answer.failed
        if answer.message.id == stored.id:
            return answer.text
    return ""
