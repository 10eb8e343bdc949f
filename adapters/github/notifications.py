"""Notifications of one account, and which of them ask for something. Every operation answers `ApiResult`.

A look is conditional: it hands back the marker of the look before, and where nothing changed GitHub answers 304, which
costs nothing. Who calls keeps the marker, and hands it back once what it got was taken in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from adapters.github.checks import moment_of, no_time
from adapters.github.types import GitHubNotification, NotificationPoll
from common.result import ApiResult, Err

if TYPE_CHECKING:
    from adapters.github.calls import Caller

ACTIONABLE = dict.fromkeys(("mention", "author", "comment", "review_requested", "assign"), True)
"""GitHub's codes for why it notifies, as far as they may ask something of us."""


class Notifications:
    """What GitHub wants the account to know. A fine-grained token is refused here."""

    def __init__(self, caller: Callable[[], Caller]) -> None:
        self._caller = caller

    async def poll(
        self, *, unread_only: bool = True, participating: bool = False, since: str = "", marker: str = ""
    ) -> ApiResult[NotificationPoll]:
        """All notifications, or that nothing changed.

        Args:
            unread_only: without those that are marked as read.
            participating: only those of threads that we take part in; it hides mentions in repositories new to us.
            since: only those changed since, ISO-8601.
            marker: of the look before with the same arguments; "" for everything.

        """
        what = "read the notifications"
        moment = moment_of(since)
        if wrong := no_time(what, since, moment):
            return wrong
        told = f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else ""
        return await self._caller().read(
            what,
            lambda ask: ask.notifications.poll(
                unread_only=unread_only, participating=participating, since=told, marker=marker
            ),
        )

    async def mark_read(self, thread_id: str) -> ApiResult[None]:
        """Mark the thread of a notification (its `id`) as read."""
        what = "mark a notification as read"
        if not thread_id.isdecimal():
            return Err(f"could not {what}: {thread_id!r} is no thread", kind="invalid")
        return await self._caller().write(what, lambda ask: ask.notifications.mark_read(thread_id))


def filter_actionable_notifications(items: Iterable[GitHubNotification], me: str) -> list[GitHubNotification]:
    """Those that may ask something of the account `me`, in the order given; of nobody (""), none."""
    return [item for item in items if ACTIONABLE.get(item.reason)] if me else []
