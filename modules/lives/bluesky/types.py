"""What this life hands around between its rooms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from adapters.atproto.types import Notification, StrongRef
from common.clock import parse_iso
from modules.lives.bluesky.reply_check import Scaffold

PublishedAs = Literal["accepted", "held", "liked_instead", "blocked"]
Act = Literal[
    "replied",
    "liked",
    "left",
    "silent",
    "concluded",
    "skipped",
    "dropped",
    "undecided",
    "later",
    "posted",
    "reposted",
    "followed",
    "unfollowed",
]


@dataclass(frozen=True, slots=True)
class Pending:
    """A post that waits to be handled, as stored; `earlier` are other waiting posts of the same thread."""

    notification: Notification
    received_at: str
    attempts: int = 0
    earlier: tuple[Notification, ...] = ()

    @property
    def indexed(self) -> datetime:
        """When the network learnt of the post."""
        return parse_iso(self.notification.indexed_at)

    @property
    def received(self) -> datetime:
        """When the row was written."""
        return parse_iso(self.received_at)

    @property
    def uris(self) -> tuple[str, ...]:
        """The uris of all posts that are settled with it."""
        return (self.notification.uri, *(earlier.uri for earlier in self.earlier))


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a text or an act was refused before the outbox saw it.

    `code` names the answer that the model reads, in `skills/bluesky-tools`, and `values` fill it in; `reason` is for
    people.
    """

    code: str
    reason: str
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Published:
    """What the outbox made of a proposed action.

    `held` waits for the owner's yes. `uri` is where it will stand, known before it is sent. `ends` says of a blocked
    act that nothing else may be tried instead, `problem` what the model is told of it, where this life refused it.
    """

    status: PublishedAs
    reason: str = ""
    uri: str = ""
    intent_id: str = ""
    ends: bool = False
    problem: Problem | None = None


@dataclass(slots=True)
class ThreadTurn:
    """One turn about one post.

    `seen` holds every post shown to the model: the only ones its tools may touch; `said` their texts, oldest first, and
    `scaffold` the words that only our own prompt has. `told_too_long` remembers that a shorter text was asked
    for, `sent_back` that a better one was. `is_unanswered`: the thread was read, and no reply of ours stands under the
    post.
    """

    notification: Notification
    root: StrongRef
    is_owner: bool
    seen: dict[str, StrongRef] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    scaffold: Scaffold = field(default_factory=Scaffold)
    told_too_long: bool = False
    sent_back: bool = False
    is_unanswered: bool = False


@dataclass(slots=True)
class ExpressionTurn:
    """One turn about a thought of our own. `revised` remembers that a better invitation was asked for.

    `scaffold` are the words that only our own prompt has.
    """

    source: str
    prompt: str
    scaffold: Scaffold = field(default_factory=Scaffold)
    revised: bool = False
    told_too_long: bool = False


@dataclass(frozen=True, slots=True)
class Disposition:
    """What became of a post, or of a thought of our own.

    Two acts leave a post waiting: `undecided`, a try that came to nothing, and `later`, to be looked at again in
    `retry_in_s` seconds. `held` says that what was chosen waits for the owner's yes.
    """

    act: Act
    reason: str
    intent_id: str | None = None
    retry_in_s: float = 0.0
    held: bool = False
