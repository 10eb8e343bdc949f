"""Under which keys conversations are kept, and which of them are private. Pure."""

from __future__ import annotations

MAIN_PREFIX = "owner:"
OWNER_SESSION = "owner:terminal"


def is_main(session_key: str) -> bool:
    """Whether a session is between the SOUL and its owner alone."""
    return session_key.startswith(MAIN_PREFIX)
