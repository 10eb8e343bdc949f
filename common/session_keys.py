"""Under which keys conversations are kept, and which of them are private. Pure."""

from __future__ import annotations

from common.constants import SPACE_DEFAULT_NAME

MAIN_PREFIX = "owner:"
OWNER_SESSION = "owner:terminal"
FORMER_PREFIX = "former-owner:"
"""How the keys of a former owner's talks begin, before their DID: nobody is shown these, until that owner is back."""
ROOM_PREFIX = "space:"
THREAD_PREFIX = "bluesky:thread:"


def is_main(session_key: str) -> bool:
    """Whether a session is between the SOUL and its owner alone."""
    return session_key.startswith(MAIN_PREFIX)


def is_github_thread(session_key: str) -> bool:
    """Return whether a session is about one issue or pull request on GitHub."""
    return session_key.startswith("github:") and "#" in session_key


def room_session(room_name: str) -> str:
    """Return the session of the room of that name, as the owner's settings give it."""
    return f"{ROOM_PREFIX}{room_name.strip() or SPACE_DEFAULT_NAME}"
