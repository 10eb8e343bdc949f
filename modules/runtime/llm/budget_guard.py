"""What every single request must pass before it leaves for the model. The gateway knows the gate, not who keeps it.

How a request that brought no answer counts (`policy.was_refused` decides):

- Surely not billed, and released: the service was never reached (connection refused, no connection in time); the
  request was not sent in full; the service refused it by a 4xx status (not by 408, 409, 424 or 499, which leave it
  open); it sent us to another address, or answered at once by something else than an answer or a stream of one (a
  page, an error as JSON); it said by a 503 that the model is still being loaded; or it is the owner's own, on this
  machine or in a private network (`policy.is_own_service`), and let the time pass without one byte of an answer.
- Perhaps billed, and counted in full: everything else. A time-out without one byte of an answer is among it where
  somebody else runs the service: it has the whole request then, and may read the prompt and even write the answer
  while nobody listens any more.

Requests without an answer are told apart from those that are on their way. After a time-out the next request is a very
small one, which asks whether anybody answers at all: a service that hangs costs one prompt and not one for each try.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from common.importance import Importance
from modules.runtime.llm.types import Usage

Request: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Leave to send one request.

    Attributes:
        id: names it; "" if nobody keeps count.
        request: as it may leave, perhaps to a cheaper model, perhaps with a smaller limit.
        input_tokens: no fewer than the request can have.
        output_tokens: the limit of the answer.
        micro_usd: what it can cost at most, in millionths of a dollar; None if the price is unknown.
        step: how far the budget is used, in the words of who keeps it.

    """

    id: str
    request: Request
    input_tokens: int = 0
    output_tokens: int = 0
    micro_usd: int | None = None
    step: str = ""


class BudgetGuard(Protocol):
    """Lets a request through, or raises `BudgetExceeded`. One that is neither settled nor released counts in full."""

    async def reserve(self, request: Request, *, purpose: str, importance: Importance) -> Reservation:
        """Leave for one request, counted at its worst case before this returns. Raises `BudgetExceeded`."""
        ...

    async def settle(self, reservation: Reservation, usage: Usage | None, weight: int) -> int | None:
        """Settle an answered call by `usage`, else by `weight` tokens of output; returns millionths of a dollar."""
        ...

    async def release(self, reservation: Reservation, *, unanswered: bool = False) -> None:
        """Free the reservation of a call that cost nothing: it was refused, or no byte of an answer came."""
        ...

    async def unanswered(self, reservation: Reservation) -> None:
        """Keep the reservation of a call without a whole answer: it may have been billed, and is shown apart."""
        ...


class NoBudgetGuard:
    """A guard that counts nothing, for a single call that a person watches."""

    async def reserve(self, request: Request, *, purpose: str, importance: Importance) -> Reservation:
        return Reservation("", request)

    async def settle(self, reservation: Reservation, usage: Usage | None, weight: int) -> int | None:
        return None

    async def release(self, reservation: Reservation, *, unanswered: bool = False) -> None:
        return

    async def unanswered(self, reservation: Reservation) -> None:
        return
