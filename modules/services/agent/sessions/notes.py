"""The notes of one conversation with the owner (CONTEXT.md): they are emptied when it is over."""

from __future__ import annotations

from modules.services.agent.owner_files import OwnerFiles
from modules.services.agent.prompt.rows import CONTEXT
from modules.services.agent.session_keys import is_main


async def forget_notes(workspace: OwnerFiles, session_key: str) -> None:
    """Empty them, if the conversation that is over was with the owner. Raises what the workspace raises."""
    if is_main(session_key) and await workspace.read(CONTEXT) is not None:
        await workspace.write(CONTEXT, "")
