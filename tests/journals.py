"""Journal entries about one post or intent, for tests that check single entries; `soul why` tells the whole story."""

from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import StoredEntry


async def told_of(journal: Journal, what: str) -> list[StoredEntry]:
    """Return the entries about a post or an intent, oldest first."""
    stored = reversed(await journal.recent(1000))
    return [one for one in stored if what in {one.entry.trigger_uri, one.entry.intent_id}]
