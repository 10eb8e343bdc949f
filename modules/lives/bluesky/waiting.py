"""What the life on Bluesky has to say for the attention list: posts that wait for an answer, drafts for the owner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from modules.services.agent.attention_list import Attention, Blocked, Source
from modules.services.outbox.audit import SHORT_ID_CHARS
from modules.services.outbox.types import Intent


def waiting_mentions(count: Callable[[], Awaitable[int]]) -> Source:
    """Return a source that says how many posts wait."""

    async def mentions() -> Attention:
        return Attention(mentions=await count())

    return mentions


def waiting_drafts(held: Callable[[], Awaitable[Sequence[Intent]]]) -> Source:
    """Return a source that names each draft by its id.

    A draft may repeat what strangers said, so a turn of the owner's is told of it without its words.
    """

    async def drafts() -> Attention:
        return Attention(
            blocked=tuple(
                Blocked(f"{draft.kind} {draft.id[:SHORT_ID_CHARS]}", draft.error or "", private=True, asked=True)
                for draft in await held()
            )
        )

    return drafts
