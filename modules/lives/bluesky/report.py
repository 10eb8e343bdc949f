"""How the journal and the terminal tell what became of a post."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Sequence

from modules.lives.bluesky.types import Pending
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.types import Importance
from modules.services.work.types import Disposition

_WHO_WAITS: dict[Importance, str] = {
    "owner": "The owner has",
    "mention": "Peers have",
    "stranger": "Everybody but owner and peers has",
}
_LINES: dict[str, str] = {
    "replied": "Replying to @{}",
    "answered": "Answering what @{} asked about their own data",
    "liked": "Liking instead of replying to @{}",
    "left": "Leaving the conversation with @{}",
    "silent": "Staying silent with @{}",
    "concluded": "No reply to @{}",
    "skipped": "No reply to @{}",
    "dropped": "Giving up on @{}",
    "undecided": "Undecided about @{}",
    "later": "@{} has to wait",
}
_LINES_OF_HELD: dict[str, str] = {
    "replied": "A reply to @{} waits for your yes",
    "liked": "A like for @{} waits for your yes",
}
# NOTE(self): whoever reads the journal must not take a post that waits its turn for one that is decided.
_COUNTED_AS: dict[str, str] = {"silent": "stay_silent", "later": "undecided"}
_KINDS: dict[str, str] = {
    "replied": "replied to",
    "liked": "liked",
    "left": "left",
    "concluded": "left",
    "silent": "met with silence",
    "skipped": "met with silence",
    "dropped": "given up",
}
_TRACE_CHARS = 4000


class Reporter:
    """Writes to the journal, in the name of `loop`."""

    def __init__(self, journal: Journal, loop: str) -> None:
        self._journal = journal
        self._loop = loop
        self._told_to_wait: set[str] = set()

    async def tell_disposition(self, item: Pending, disposition: Disposition) -> None:
        """Tell what became of a post. That it has to wait is told once, however often it is looked at."""
        notification = item.notification
        if disposition.act == "later":
            if notification.uri in self._told_to_wait:
                return
            self._told_to_wait.add(notification.uri)
        elif disposition.act != "undecided":
            self._told_to_wait.difference_update(item.uris)
        lines = _LINES | _LINES_OF_HELD if disposition.held else _LINES
        await self._journal.record(
            Entry(
                "decision",
                self._loop,
                lines.get(disposition.act, "Handled @{}").format(notification.author.handle),
                line="social",
                reason=disposition.reason,
                trigger_uri=notification.uri,
                author=notification.author.handle,
                intent_id=disposition.intent_id,
                data={"act": _COUNTED_AS.get(disposition.act, disposition.act)},
            )
        )

    async def tell_batch(self, settled: Sequence[Disposition]) -> None:
        """Tell in one line what became of the posts that were handled one after the other, if there were several."""
        if len(settled) <= 1:
            return
        counts = Counter(_KINDS.get(one.act, "others") for one in settled)
        told = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
        summary = f"Dealt with {len(settled)} posts: {told}"
        await self._journal.record(Entry("life", self._loop, summary, line="info", data=dict(counts)))

    async def tell_trouble(self, item: Pending, error: Exception) -> None:
        """Tell that a post has to wait because something failed."""
        notification = item.notification
        await self._journal.record(
            Entry(
                "error",
                self._loop,
                f"@{notification.author.handle} has to wait: {error}",
                line="warn",
                trigger_uri=notification.uri,
                author=notification.author.handle,
                data={"trace": "".join(traceback.format_exception(error))[-_TRACE_CHARS:]},
            )
        )

    async def tell_unreadable(self, uri: str) -> None:
        """Tell that a post was given up because its stored row cannot be read."""
        reason = "what was stored of it cannot be read"
        await self._journal.record(
            Entry("error", self._loop, "Giving up on a post", line="error", reason=reason, trigger_uri=uri)
        )

    async def tell_no_budget(self, item: Pending, importance: Importance, pause_s: float, error: Exception) -> None:
        """Tell that all whose posts matter as much have to wait, for at least `pause_s` seconds."""
        notification = item.notification
        minutes = max(1, round(pause_s / 60))
        await self._journal.record(
            Entry(
                "error",
                self._loop,
                f"{_WHO_WAITS[importance]} to wait, for at least {minutes} min: {error}",
                line="warn",
                reason="budget",
                trigger_uri=notification.uri,
                author=notification.author.handle,
            )
        )
