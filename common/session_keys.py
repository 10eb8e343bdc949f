"""The keys under which conversations are stored, and which of them are private. Pure."""

from common.constants import SPACE_DEFAULT_NAME

MAIN_PREFIX = "owner:"
OWNER_SESSION = "owner:terminal"
FORMER_PREFIX = "former-owner:"
"""The prefix of the keys of a former owner's conversations, before their DID: hidden until that owner is back."""
ROOM_PREFIX = "space:"
THREAD_PREFIX = "bluesky:thread:"


def is_main(session_key: str) -> bool:
    """Return whether a session is between the SOUL and its owner only."""
    return session_key.startswith(MAIN_PREFIX)


def is_github_thread(session_key: str) -> bool:
    """Return whether a session is about one issue or pull request on GitHub."""
    return session_key.startswith("github:") and "#" in session_key


def room_session(room_name: str) -> str:
    """Return the session key of the room of that name, as set in the owner's settings."""
    return f"{ROOM_PREFIX}{room_name.strip() or SPACE_DEFAULT_NAME}"
