"""Intents: the only way out of the house."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from common.result import ApiResult

IntentKind = Literal["post", "reply", "like", "repost", "follow", "delete"]
IntentState = Literal["pending", "sending", "done", "failed", "expired", "blocked"]


@dataclass(frozen=True, slots=True)
class Draft:
    """A public act that a life wants. It becomes an intent when the outbox accepts it.

    Attributes:
        kind: what is to be done.
        target: what it is done to: the uri answered, liked, reposted or deleted; the did followed; "" for a post.
        body: everything the courier needs to send it, JSON-like (for example text and reply refs).
        text: the words that become public, for deduplication; "" when there are none.
        media_id: identifies attached media, for deduplication.
        cause_id: what caused it: the uri of the notification, or a name such as `expression`.
        urgent: sent ahead of the pace (answers to the owner).

    """

    kind: IntentKind
    target: str
    body: dict[str, Any]
    text: str = ""
    media_id: str | None = None
    cause_id: str | None = None
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Intent:
    """A row of the outbox. Times are ISO-8601 UTC; `rkey` is a TID derived once from `created_at` and `id`.

    `attempts` counts the tries that left with an unknown outcome, `deferrals` those that the service put off.
    `departed_at` is when it first set out: that is the time the world sees, and every later try repeats it.
    """

    id: str
    kind: IntentKind
    target: str
    body: dict[str, Any]
    body_hash: str
    dedup_key: str
    rkey: str
    cause_id: str | None
    created_at: str
    expires_at: str
    state: IntentState
    attempts: int = 0
    urgent: bool = False
    not_before: str | None = None
    result_uri: str | None = None
    result_cid: str | None = None
    error: str | None = None
    deferrals: int = 0
    departed_at: str | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """What the door said: the intent, and whether it may leave (`blocked` intents carry the reason)."""

    intent: Intent
    accepted: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """Where the act now stands on the network; both empty for an act that leaves no record (a delete)."""

    uri: str = ""
    cid: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """What one round of deliveries came to; `next_in_s` is when something waiting may go (None: nothing waits)."""

    done: int = 0
    failed: int = 0
    expired: int = 0
    put_off: int = 0
    next_in_s: float | None = None


class Courier(Protocol):
    """Carries one kind of intent to one service, and can look whether it already arrived."""

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Do it. Repeating with the same intent must not do it twice."""
        ...

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Whether an earlier try arrived: `Ok(None)` when the service says it did not."""
        ...


class Rule(Protocol):
    """Something that stands at the door and may say no, for example manners or the owner's approval."""

    async def __call__(self, draft: Draft) -> str | None:
        """The reason to block, or None."""
        ...


@dataclass(frozen=True, slots=True)
class Pacing:
    """Seconds that must lie between acts: of the same lane, and between any two."""

    post_s: float
    reply_s: float
    like_s: float
    follow_s: float
    action_s: float
    extra: dict[str, float] = field(default_factory=dict)
