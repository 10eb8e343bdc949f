"""How the journal tells what became of a conversation."""

from __future__ import annotations

from modules.runtime.journal.types import Entry
from modules.services.agent.sessions.archived import Archive, Outcome

_LOOP = "sessions"


def told(session_key: str, outcome: Outcome) -> Entry:
    """What came of condensing or ending a conversation."""
    archive = outcome.archive
    match outcome.status:
        case "done" if archive is not None:
            summary = f"{_what(archive)} of {session_key} {'are' if archive.message_count > 1 else 'is'} archived"
            return Entry("life", _LOOP, summary, "mem", outcome.reason, data=_data(archive))
        case "waiting" if archive is not None:
            summary = f"{_what(archive)} of {session_key} cannot be archived yet"
            return Entry("life", _LOOP, summary, "warn", outcome.reason, data=_data(archive))
        case "postponed":
            return Entry("life", _LOOP, f"{session_key} stays as it is", None, outcome.reason)
        case _:
            return Entry("life", _LOOP, f"{session_key} is over", None, outcome.reason)


def left_behind(session_key: str, reason: str) -> Entry:
    """A conversation is over, and what was only for it is still there."""
    return Entry("error", _LOOP, f"What belonged to {session_key} cannot be cleared away yet", "warn", reason)


def _what(archive: Archive) -> str:
    return f"{archive.message_count} message{'s' if archive.message_count > 1 else ''}"


def _data(archive: Archive) -> dict[str, object]:
    return {
        "key": archive.key,
        "session": archive.session_id,
        "part": archive.part,
        "messages": archive.message_count,
        "memories": len(archive.distilled.memories),
        "summarised": bool(archive.distilled.summary),
    }
