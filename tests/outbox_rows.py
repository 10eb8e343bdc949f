"""Reads the rows of an outbox, for tests."""

from datetime import UTC, datetime
from typing import get_args

from modules.services.outbox import store
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, IntentState

_KINDS: tuple[IntentKind, ...] = get_args(IntentKind)
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)


async def counted(outbox: Outbox) -> dict[IntentState, int]:
    """Return how many intents are in each state, as in the status."""
    return await outbox.database.run(store.counts)


async def newest_intents(outbox: Outbox, limit: int) -> list[Intent]:
    """Return the last `limit` intents, newest first."""
    return (await outbox.since(_KINDS, _BEGINNING))[:limit]
