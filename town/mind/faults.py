"""Switches that make the service fail as real ones do, so that a client can be seen to live through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from town.faults import ArmedFaults, read_fault
from town.mind.types import Json

FaultKind = Literal[
    "rate_limited",  # 429 with retry-after
    "bad_gateway",  # 502 with an HTML body
    "hang",  # answer nothing for `seconds`, then 502
    "cut",  # begin the answer, then drop the connection
    "unauthorized",  # 401
    "payment_required",  # 402
]
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault for the next `times` requests; `seconds` is how long to hang, or the `retry-after`."""

    kind: FaultKind
    times: int = 1
    seconds: float = 30.0


class Faults(ArmedFaults[Fault]):
    """The armed faults of the model service."""

    def meet(self) -> Fault | None:
        """The fault that the present request meets."""
        return self.use(lambda _: True)


def fault_from_json(body: Json) -> Fault:
    """A fault as `POST /town/faults` takes it. Raises `ValueError` for a kind or a field that is not known."""
    return read_fault(Fault, KINDS, body)
