"""Switches that make the service fail as real ones do, so that a client can be seen to live through it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

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


class Faults:
    """The armed faults, oldest first; a request meets at most one."""

    def __init__(self) -> None:
        self._armed: list[Fault] = []

    @property
    def armed(self) -> tuple[Fault, ...]:
        return tuple(self._armed)

    def arm(self, fault: Fault) -> None:
        """Switch a fault on."""
        self._armed.append(fault)

    def clear(self) -> None:
        """Switch all off."""
        self._armed.clear()

    def meet(self) -> Fault | None:
        """The fault that the present request meets."""
        if not self._armed:
            return None
        fault = self._armed[0]
        self._armed[:1] = [replace(fault, times=fault.times - 1)] if fault.times > 1 else []
        return fault


def fault_from_json(body: Json) -> Fault:
    """A fault as `POST /town/faults` takes it. Raises `ValueError` for a kind or a field that is not known."""
    if body.get("kind") not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}")
    try:
        return Fault(**body)
    except TypeError as error:
        raise ValueError(f"unknown field: {error}") from error
