"""The result of an adapter (`ApiResult`) and the decision of a rule (`Decision`).

An adapter never raises for failures outside the program: it returns `Ok` or `Err`. It raises for our own bugs. A caller
that does not handle an `Err` itself uses `or_raise`.
"""

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
    "conflict",  # another write came in between: read again, then try again
    "invalid",  # the request itself is wrong and will stay wrong
    "fatal",  # nothing that we do helps: account taken down or deactivated
]

LASTING: tuple[ErrKind, ...] = ("auth", "not_found", "conflict", "invalid", "fatal")
"""The kinds that waiting does not cure."""
GONE: tuple[ErrKind, ...] = ("not_found", "invalid")
"""The kinds that say that what was asked for is not there; any other leaves that unknown."""


@dataclass(frozen=True, slots=True)
class Ok(Generic[T]):
    """The request succeeded."""

    data: T

    @property
    def success(self) -> Literal[True]:
        return True

    def or_raise(self) -> T:
        """Return the data."""
        return self.data

    def or_wait(self) -> T:
        """Return the data."""
        return self.data

    def or_else(self, _: object, *__: ErrKind) -> T:
        """Return the data."""
        return self.data


@dataclass(frozen=True, slots=True)
class Err:
    """The request failed. `error` is one line; `status` is the HTTP status, if any; `retry_after` is in seconds."""

    error: str
    kind: ErrKind
    status: int | None = None
    retry_after: float | None = None

    @property
    def success(self) -> Literal[False]:
        return False

    def or_raise(self) -> NoReturn:
        """Raise an exception that the work loop handles.

        Raises:
            Unable: it may work later; the work waits, and the attempt is not counted.
            Undone: waiting does not help.

        """
        raise Unable(self) if self.kind in {"transient", "unknown_outcome"} else Undone(self)

    def or_wait(self) -> NoReturn:
        """Raise `Unable` for any kind, as if it were transient: the work waits for a change outside the program."""
        raise Unable(replace(self, kind="transient"))

    def or_else(self, default: D, *kinds: ErrKind) -> D:
        """Return `default`; with `kinds`, only for these, and raise as `or_raise` does for any other."""
        return default if not kinds or self.kind in kinds else self.or_raise()


class Undone(SoulError):
    """The request failed, as `err` says."""

    def __init__(self, err: Err) -> None:
        super().__init__(err.error)
        self.err = err


class Unable(Transient):
    """The request could not be done now, as `err` says."""

    def __init__(self, err: Err) -> None:
        super().__init__(err.error, retry_after=err.retry_after)
        self.err = err


ApiResult: TypeAlias = Ok[T] | Err


def answering(call: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T | Err]]:
    """Make `call` return the `Err` on which `or_raise` stopped it."""

    @wraps(call)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> T | Err:
        try:
            return await call(*args, **kwargs)
        except (Unable, Undone) as stopped:
            return stopped.err

    return answered


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to act, and the reason for the terminal and the journal."""

    should: bool
    reason: str

    def __bool__(self) -> bool:
        return self.should
