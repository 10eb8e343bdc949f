"""What this life hands around between its rooms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from adapters.atproto.types import Notification, StrongRef
from modules.lives.bluesky.scaffold import Scaffold

PublishedAs = Literal["accepted", "held", "liked_instead", "blocked"]


@dataclass(frozen=True, slots=True)
class Pending:
    """A post that waits to be met, as stored; `earlier` are other waiting posts of the same thread."""

    notification: Notification
    received_at: str
    attempts: int = 0
    earlier: tuple[Notification, ...] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """What became of an act at the door.

    `held` waits for the owner's yes. `uri` is where it will stand, known before it is sent. `ends` says of a blocked
    act that nothing else may be tried instead.
    """

    status: PublishedAs
    reason: str = ""
    uri: str = ""
    intent_id: str = ""
    ends: bool = False


@dataclass(slots=True)
class ThreadTurn:
    """One turn about one post.

    `seen` holds every post shown to the model: the only ones its tools may touch; `said` their texts, oldest first, and
    `scaffold` the words that only our own prompt has. `told_too_long` remembers that a shorter text was asked
    for, `sent_back` that a better one was.
    """

    notification: Notification
    root: StrongRef
    is_owner: bool
    seen: dict[str, StrongRef] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    scaffold: Scaffold = field(default_factory=Scaffold)
    told_too_long: bool = False
    sent_back: bool = False


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
    """How a post was met: `act` is replied, liked, left, silent, concluded, skipped or dropped.

    Two acts leave it waiting: `undecided`, a try that came to nothing, and `later`, to be looked at again in
    `retry_in_s` seconds. `held` says that what was chosen waits for the owner's yes.
    """

    act: str
    reason: str
    intent_id: str | None = None
    retry_in_s: float = 0.0
    held: bool = False
