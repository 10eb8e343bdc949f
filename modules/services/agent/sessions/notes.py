"""The notes of one conversation with the owner (CONTEXT.md): they are emptied when it is over."""

from __future__ import annotations

from modules.services.agent.owner_files import OwnerFiles
from modules.services.agent.prompt.rows import CONTEXT
from modules.services.agent.session_keys import is_main


async def forget_notes(owner_files: OwnerFiles, session_key: str) -> None:
    """Empty them, if the conversation that is over was with the owner. Raises what `owner_files` raises."""
    if is_main(session_key) and await owner_files.read(CONTEXT) is not None:
        await owner_files.write(CONTEXT, "")
