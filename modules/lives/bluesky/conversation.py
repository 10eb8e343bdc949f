"""A conversation: what is kept of one thread, what can happen to it, and `Conversation.after`, which alone changes it.

Pure: a conversation and an event in, the next conversation out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from pydantic import Field

from common.constants import DAY_MS
from common.text.closings import asks, content_words, is_low_value_closing
from common.text.host_intent import requests
from modules.runtime.record_file import Moment, Record

CONVERSATION_RETENTION_MS = 7 * DAY_MS
CONVERSATION_STALE_RETENTION_MS = 30 * DAY_MS

State = Literal["new", "active", "awaiting_response", "concluded", "stale"]
Source = Literal["notification", "owner_mention", "expression_reply"]

_KEPT_REPLIES = 10
_RECENT_POSTS = 4


class Participant(Record):
    """Somebody else in a conversation."""

    did: str
    handle: str
    display_name: str | None = None
    reply_count: int = 0
    first_reply_at: Moment
    last_reply_at: Moment
    seems_disengaged: bool = False


class OurReply(Record):
    """A reply of ours; the newest ten are kept."""

    uri: str
    at: Moment


@dataclass(frozen=True, slots=True)
class Incoming:
    """A post that reached us: `depth` posts stand above it, `recent_texts` are those right before it, oldest first."""

    did: str
    handle: str
    text: str
    at: datetime
    depth: int = 0
    display_name: str = ""
    recent_texts: Sequence[str] = ()
    is_automated: bool = False

    @property
    def is_closing(self) -> bool:
        """Whether it only thanks, agrees or says goodbye."""
        return is_low_value_closing(self.text)

    @property
    def asks_us(self) -> bool:
        """Whether a person asks for something; programs may ask each other without end."""
        return not self.is_automated and (asks(self.text) or requests(self.text))

    @property
    def new_words(self) -> int:
        """How many words with a meaning it has that the latest posts before it have not."""
        known = {word for text in self.recent_texts[-_RECENT_POSTS:] for word in content_words(text)}
        return len(set(content_words(self.text)) - known)


@dataclass(frozen=True, slots=True)
class Seen:
    """The thread came up; what is told of its root replaces what was known."""

    root_cid: str | None = None
    root_author_did: str | None = None
    root_author_handle: str | None = None


@dataclass(frozen=True, slots=True)
class Spoken:
    """Somebody else wrote in it. The same post twice counts once."""

    post: Incoming


@dataclass(frozen=True, slots=True)
class Replied:
    """A reply of ours stands in it. The same uri twice counts once."""

    uri: str


@dataclass(frozen=True, slots=True)
class Reopened:
    """It goes on after its end; `reengaged_at` is the time of the post that earned it, None where none had to."""

    reengaged_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Disengaged:
    """Those with these handles, and no others, seem to have left it."""

    handles: Sequence[str]


@dataclass(frozen=True, slots=True)
class Concluded:
    """It is over. What only ran dry can still be ended on purpose; otherwise the first end stays."""

    reason: str
    by_silence: bool = False


@dataclass(frozen=True, slots=True)
class Aged:
    """Time passed: without news for `max_age_ms` milliseconds it is stale, unless it is concluded."""

    max_age_ms: float = CONVERSATION_RETENTION_MS


Event: TypeAlias = Seen | Spoken | Replied | Reopened | Disengaged | Concluded | Aged


class Conversation(Record):
    """A thread that we follow.

    `concluded_by_silence`: nobody ended it, it only ran dry. `reengaged_at`: the time of the post that reopened it.
    """

    root_uri: str
    root_cid: str | None = None
    root_author_did: str | None = None
    root_author_handle: str | None = None
    first_seen: Moment
    last_checked: Moment
    thread_depth: int = 0
    participants: dict[str, Participant] = Field(default_factory=dict)
    our_reply_count: int = 0
    our_last_reply_at: Moment | None = None
    our_last_reply_uri: str | None = None
    our_replies: tuple[OurReply, ...] = ()
    state: State = "new"
    conclusion_reason: str | None = None
    concluded_at: Moment | None = None
    concluded_by_silence: bool = False
    source: Source = "notification"
    reengagement_count: int = 0
    reengaged_at: Moment | None = None

    def is_expired(self, now: datetime, max_age_ms: float = CONVERSATION_RETENTION_MS) -> bool:
        """Whether it is old enough to be forgotten: `max_age_ms` after its end, or 30 days after it went stale."""
        if self.state == "concluded":
            return now - (self.concluded_at or self.last_checked) > timedelta(milliseconds=max_age_ms)
        stale_for = timedelta(milliseconds=CONVERSATION_STALE_RETENTION_MS)
        return self.state == "stale" and now - self.last_checked > stale_for

    def after(self, event: Event, now: datetime) -> Conversation:
        """Return the conversation after `event`, which happened at `now`."""
        match event:
            case Seen():
                after = self.replace(
                    root_cid=event.root_cid or self.root_cid,
                    root_author_did=event.root_author_did or self.root_author_did,
                    root_author_handle=event.root_author_handle or self.root_author_handle,
                    last_checked=now,
                )
            case Spoken(post):
                after = self._after_post(post)
            case Replied(uri):
                after = self._after_our_reply(uri, now)
            case Reopened(reengaged_at):
                after = self._reopened(reengaged_at)
            case Disengaged(handles):
                marked = {
                    did: one.replace(seems_disengaged=one.handle in handles) for did, one in self.participants.items()
                }
                after = self.replace(participants=marked)
            case Concluded(reason, by_silence):
                after = self._concluded(reason, now, by_silence=by_silence)
            case Aged(max_age_ms):
                is_old = now - self.last_checked > timedelta(milliseconds=max_age_ms)
                after = self.replace(state="stale") if is_old and self.state != "concluded" else self
        return after

    def _after_post(self, post: Incoming) -> Conversation:
        before = self.participants.get(post.did)
        if before and post.at <= before.last_reply_at:
            participant = before
        else:
            participant = Participant(
                did=post.did,
                handle=post.handle,
                display_name=post.display_name or (before.display_name if before else None),
                reply_count=(before.reply_count if before else 0) + 1,
                first_reply_at=before.first_reply_at if before else post.at,
                last_reply_at=post.at,
            )
        return self.replace(
            participants={**self.participants, post.did: participant},
            thread_depth=max(self.thread_depth, post.depth),
            state="active" if self.state in {"awaiting_response", "stale"} else self.state,
        )

    def _after_our_reply(self, uri: str, now: datetime) -> Conversation:
        if any(reply.uri == uri for reply in self.our_replies):
            return self
        return self.replace(
            our_reply_count=self.our_reply_count + 1,
            our_last_reply_at=now,
            our_last_reply_uri=uri,
            our_replies=(*self.our_replies, OurReply(uri=uri, at=now))[-_KEPT_REPLIES:],
            state="concluded" if self.state == "concluded" else "awaiting_response",
        )

    def _reopened(self, reengaged_at: datetime | None) -> Conversation:
        if self.state != "concluded":
            return self
        after = self.replace(state="active", conclusion_reason=None, concluded_at=None, concluded_by_silence=False)
        if reengaged_at is None:
            return after
        return after.replace(reengagement_count=self.reengagement_count + 1, reengaged_at=reengaged_at)

    def _concluded(self, reason: str, now: datetime, *, by_silence: bool) -> Conversation:
        if self.state == "concluded" and (by_silence or not self.concluded_by_silence):
            return self
        return self.replace(
            state="concluded", conclusion_reason=reason, concluded_at=now, concluded_by_silence=by_silence
        )
