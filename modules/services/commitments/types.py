"""What a commitment is, while it waits to be fulfilled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from adapters.space.types import AgentState
from common.result import ApiResult
from common.schemas import CommitmentType
from modules.services.commitments.params import CommitmentParams, PlanParams
from modules.services.outbox.standing import ActStanding

CommitmentStatus = Literal["pending", "in_progress", "completed", "failed", "abandoned"]
CommitmentSource = Literal["bluesky", "space"]

LIVE: frozenset[CommitmentStatus] = frozenset({"pending", "in_progress", "failed"})
"""States of a commitment that is still to be fulfilled."""


@dataclass(frozen=True, slots=True)
class QueuedCommitment:
    """A commitment in the queue: the payload of a row of work, and one line of the file that shows it.

    Attributes:
        id: `commitment-<epoch ms>-<16 hex>`.
        created_at: ISO-8601 UTC.
        description: what is to be done, as the commitment was made; at its creation the title, or the words themselves.
        source_thread_uri: the conversation, `at://…` or `space://conversation/…`.
        source_reply_text: the words in which it was made.
        params: what it is about; their type is the kind of act that keeps it.
        source: where it was made.
        status: how far it is.
        attempt_count: tries that failed for good reason or brought the result.
        last_attempt_at: when the last try began, ISO-8601 UTC.
        error: why the last try failed.
        not_before: while it is `pending`, when a try may begin at the earliest, ISO-8601 UTC; None if at once.
        waits_for: why it was last said to wait, since its last try began; None if nothing hindered it.
        result: what came of it, also in part: `{"issues": [{"number", "title", "url"}], "count"}`, `{"uri", "cid"}`, …

    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel, extra="ignore", defer_build=True)

    id: Annotated[str, Field(min_length=1)]
    created_at: str
    description: str
    source_thread_uri: str
    source_reply_text: str
    params: CommitmentParams
    source: CommitmentSource = "bluesky"
    status: CommitmentStatus = "pending"
    attempt_count: Annotated[int, Field(ge=0)] = 0
    last_attempt_at: str | None = None
    error: str | None = None
    result: Mapping[str, Any] | None = None
    not_before: str | None = None
    waits_for: str | None = None

    @property
    def type(self) -> CommitmentType:
        """The kind of act that keeps it."""
        return self.params.type


@dataclass(frozen=True, slots=True)
class CommitmentRequest:
    """A commitment as it is handed in."""

    description: str
    source_thread_uri: str
    source_reply_text: str
    params: CommitmentParams
    source: CommitmentSource

    @property
    def type(self) -> CommitmentType:
        """The kind of act that keeps it."""
        return self.params.type


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What the queue said: the commitment that now stands, and whether it is new; `reason` is why it is not."""

    commitment: QueuedCommitment | None
    new: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a commitment is.

    Attributes:
        state: `done`; `prepared`, with its parameters as they are then; `waits` for an act that is
            on its way; `held`, an act waits for the owner's approval; `failed` for good reason; `put_off`, and it was
            nobody's fault; `later`, the outbox asks to propose it again; `refused` by the owner;
            `unwelcome` where it was to be done, and never to be tried again.
        reason: why it is not done.
        result: what came of it so far.
        not_before: of `later`, when to propose it again.
        prepared: see above.
        proposed: the act that was proposed in this step, as it stands.

    """

    state: Literal["done", "prepared", "waits", "held", "failed", "put_off", "later", "refused", "unwelcome"]
    reason: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)
    not_before: datetime | None = None
    prepared: PlanParams | None = None
    proposed: ActStanding | None = None


class CommitmentRoom(Protocol):
    """The agent space, as far as fulfilling a commitment needs it. Every call answers at once and is never fatal."""

    @property
    def is_active(self) -> bool: ...

    async def send_state(self, state: AgentState, detail: str = "") -> ApiResult[None]: ...

    async def send_claim(self, action: str, target: str) -> ApiResult[None]: ...

    async def renew_claim(self, action: str, target: str) -> ApiResult[None]: ...

    async def send_action_result(
        self, action: str, target: str, *, success: bool, link: str = "", error: str = ""
    ) -> ApiResult[None]: ...

    def has_active_claim(self, action: str, target: str) -> str | None:
        """Who else holds it."""
        ...
