"""Switches that make the service fail as real ones do, so that a client can be seen to live through it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal, get_args

FaultKind = Literal["rate_limit", "bad_gateway", "hang", "cut", "unauthorized", "payment_required"]
KINDS: frozenset[str] = frozenset(get_args(FaultKind))


@dataclass(frozen=True, slots=True)
class Fault:
    """One failure. `retry_after` (seconds) is told to the client on `rate_limit`."""

    kind: FaultKind
    retry_after: float = 1.0


class Faults:
    """A queue of failures: each request takes the next one."""

    def __init__(self) -> None:
        self._queue: deque[Fault] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def inject(self, kind: FaultKind, *, times: int = 1, retry_after: float = 1.0) -> None:
        """Let the next `times` requests fail."""
        self._queue.extend([Fault(kind, retry_after)] * times)

    def clear(self) -> None:
        """Fail no more."""
        self._queue.clear()

    def take(self) -> Fault | None:
        """The failure that the present request meets, if any."""
        return self._queue.popleft() if self._queue else None
