"""What an adapter answers (`ApiResult`) and what a rule decides (`Decision`).

An adapter never raises for what the world did: it returns `Ok` or `Err`. It raises for our own bugs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

T = TypeVar("T")

ErrKind = Literal[
    "transient",  # worth another try later: 408, 429, 5xx, no connection, the budget gate
    "unknown_outcome",  # a write may or may not have happened: time-out or connection lost after sending
    "auth",  # credentials or token refused
    "not_found",
    "conflict",  # somebody else wrote in between: read again, then try again
    "invalid",  # the request itself is wrong and will stay wrong
    "fatal",  # nothing we do helps: account taken down or deactivated
]


@dataclass(frozen=True, slots=True)
class Ok(Generic[T]):
    """The world did what was asked."""

    data: T

    @property
    def success(self) -> Literal[True]:
        return True


@dataclass(frozen=True, slots=True)
class Err:
    """The world did not. `error` is one line; `status` is the HTTP status, if any; `retry_after` is in seconds."""

    error: str
    kind: ErrKind
    status: int | None = None
    retry_after: float | None = None

    @property
    def success(self) -> Literal[False]:
        return False


ApiResult: TypeAlias = Ok[T] | Err


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to act, and the reason that the terminal and the journal will show."""

    should: bool
    reason: str

    def __bool__(self) -> bool:
        return self.should
