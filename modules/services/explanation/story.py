"""What happened to one post or by one act, as values: what reached it, what it thought, decided and did, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from modules.services.coding.types import CodingStep


@dataclass(frozen=True, slots=True)
class Received:
    """A post or message that reached it. `state` is pending, handled or dropped, `outcome` how it was handled.

    `handled_with` is the later one of the same person in the same thread or conversation, with which it was handled.
    """

    uri: str
    author: str = ""
    did: str = ""
    reason: str = ""
    text: str = ""
    at: str = ""
    received_at: str = ""
    state: str = ""
    outcome: str = ""
    attempts: int = 0
    handled_with: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of what the model was told: characters, and of a file the first digits of its SHA-256."""

    name: str
    chars: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model asked for; `error` is what it was told where it was refused, `said` its own words."""

    tool: str
    said: str = ""
    error: str = ""
    intent_id: str = ""


@dataclass(frozen=True, slots=True)
class Thinking:
    """One turn of the model. `usd` is None where no price is known; `failed` says why it came to nothing.

    `provenance` is the least trusted of the words in it when it began, `sank_to` when it ended; `memories` are the ids
    of what was recalled for it; `unanswered_tokens` are counted for requests without an answer, which may have been
    billed.
    """

    began: str
    at: str
    purpose: str
    provenance: str = ""
    sank_to: str = ""
    importance: str = ""
    model: str = ""
    rounds: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    unanswered_tokens: int = 0
    prompt: tuple[Part, ...] = ()
    memories: tuple[int, ...] = ()
    calls: tuple[Call, ...] = ()
    failed: str = ""


@dataclass(frozen=True, slots=True)
class StoryEntry:
    """Something weighed (`kind` decision), that went wrong on the way (error), or that led to it (life)."""

    at: str
    kind: str
    loop: str
    summary: str
    reason: str = ""
    act: str = ""


@dataclass(frozen=True, slots=True)
class RuleSaid:
    """The verdict of one admission rule: pass, hold or block; what it counted, and against what."""

    rule: str
    says: str
    reason: str = ""
    value: str | float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Movement:
    """One step of an act on its way."""

    at: str
    state: str
    summary: str
    reason: str = ""
    rules: tuple[RuleSaid, ...] = ()


@dataclass(frozen=True, slots=True)
class Act:
    """An act in public, and every step it took. `why` is the reason of its state, if it is blocked, held or failed.

    Of one that waits for its turn for longer than a minute, `leaves_at` is when it is expected to leave, "" if nobody
    knows, and `waits_for` why not sooner.
    """

    id: str
    kind: str
    target: str
    text: str
    state: str
    uri: str
    why: str
    cause: str
    created_at: str
    expires_at: str
    leaves_at: str = ""
    waits_for: str = ""
    movements: tuple[Movement, ...] = ()


@dataclass(frozen=True, slots=True)
class Story:
    """The whole story. Times are ISO-8601 UTC; each tuple is in time order.

    Attributes:
        asked: what was asked, as it was resolved: a uri, or an act's id.
        act_id: the act asked about; "" when the question is about somebody's post.
        cause: what it began with: the uri of a post, the key of a task, or a word such as `expression` or `owner`.
        trigger: that post, if it was one.
        holding: what keeps that post waiting, as far as the SOUL as a whole is held back (a pause, the budget).
        handles: by DID, of those whom a reason names so, as far as they are known.
        coding: the steps of the code that was written for a task, under its latest claim.
        since: how far back the journal reaches, when what was before is gone; "" if nothing is.

    """

    asked: str
    act_id: str
    cause: str
    trigger: Received | None
    thinkings: tuple[Thinking, ...] = ()
    decisions: tuple[StoryEntry, ...] = ()
    acts: tuple[Act, ...] = ()
    holding: tuple[StoryEntry, ...] = ()
    coding: tuple[CodingStep, ...] = ()
    since: str = ""
    handles: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unknown:
    """There is no story; `reason` says why, in one line."""

    reason: str
