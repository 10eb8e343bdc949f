"""What an adapter answers (`ApiResult`) and what a rule decides (`Decision`).

An adapter never raises for what the world did: it returns `Ok` or `Err`. It raises for our own bugs. Whoever decides
nothing on an `Err` takes the answer with `or_raise`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Generic, Literal, NoReturn, ParamSpec, TypeAlias, TypeVar

from common.errors import SoulError, Transient

T = TypeVar("T")
D = TypeVar("D")
P = ParamSpec("P")

ErrKind = Literal[
    "transient",  # worth another try later: 408, 429, 5xx, no connection, the budget gate
    "unknown_outcome",  # a write may or may not have happened: time-out or connection lost after sending
    "auth",  # credentials or token refused
    "not_found",
    "conflict",  # somebody else wrote in between: read again, then try again
    "invalid",  # the request itself is wrong and will stay wrong
    "fatal",  # nothing we do helps: account taken down or deactivated
]

LASTING: tuple[ErrKind, ...] = ("auth", "not_found", "conflict", "invalid", "fatal")
"""What does not pass by waiting."""


@dataclass(frozen=True, slots=True)
class Ok(Generic[T]):
    """The world did what was asked."""

    data: T

    @property
    def success(self) -> Literal[True]:
        return True

    def or_raise(self) -> T:
        """Return what was answered."""
        return self.data

    def or_wait(self) -> T:
        """Return what was answered."""
        return self.data

    def or_else(self, _: object, *__: ErrKind) -> T:
        """Return what was answered."""
        return self.data


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

    def or_raise(self) -> NoReturn:
        """Raise what the work loop settles.

        Raises:
            Unable: the same may work later; the work waits, and no try is counted.
            Undone: it will not work by waiting.

        """
        raise Unable(self) if self.kind in {"transient", "unknown_outcome"} else Undone(self)

    def or_wait(self) -> NoReturn:
        """Raise `Unable` as if it were transient: the work waits for what only the world can change."""
        raise Unable(replace(self, kind="transient"))

    def or_else(self, default: D, *kinds: ErrKind) -> D:
        """Return `default`; where `kinds` are given, only for these, and do as `or_raise` for any other."""
        return default if not kinds or self.kind in kinds else self.or_raise()


class Undone(SoulError):
    """The world did not do what was asked, as `err` says."""

    def __init__(self, err: Err) -> None:
        super().__init__(err.error)
        self.err = err


class Unable(Transient):
    """The world could not do what was asked for now, as `err` says."""

    def __init__(self, err: Err) -> None:
        super().__init__(err.error, retry_after=err.retry_after)
        self.err = err


ApiResult: TypeAlias = Ok[T] | Err


def answering(call: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T | Err]]:
    """Let `call` return the `Err` on which `or_raise` stopped it."""

    @wraps(call)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> T | Err:
        try:
            return await call(*args, **kwargs)
        except (Unable, Undone) as stopped:
            return stopped.err

    return answered


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to act, and the reason that the terminal and the journal will show."""

    should: bool
    reason: str

    def __bool__(self) -> bool:
        return self.should
