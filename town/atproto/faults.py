"""What can go wrong between a client and the network, switched on for the next requests that match."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal, get_args

from town.atproto.values import Json, invalid

FaultKind = Literal[
    "rate_limited",  # 429 with retry-after
    "server_error",  # 500
    "bad_gateway",  # 502 with an HTML body
    "expired_token",  # 400 ExpiredToken
    "hang",  # do it, and answer only after `seconds`
    "lost_request",  # drop the connection before anything is done
    "lost_answer",  # do it, then drop the connection
]
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault for the next `times` requests whose method fits `method`, a pattern such as `com.atproto.repo.*`.

    Each of them is hit with `probability`; `seconds` is how long to hang, or the `retry-after`.
    """

    kind: FaultKind
    method: str = "*"
    times: int = 1
    probability: float = 1.0
    seconds: float = 30.0


class Faults:
    """The armed faults, oldest first; a request meets at most one."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
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

    def meet(self, method: str) -> Fault | None:
        """The fault that this request meets; only a hit uses it up."""
        for place, fault in enumerate(self._armed):
            if fnmatchcase(method, fault.method) and self._rng.random() < fault.probability:
                if fault.times > 1:
                    self._armed[place] = replace(fault, times=fault.times - 1)
                else:
                    del self._armed[place]
                return fault
        return None


def fault_from_json(body: Json) -> Fault:
    """A fault as `POST /town/faults` takes it. Raises `XrpcError` for a kind or a field that is not known."""
    if body.get("kind") not in KINDS:
        raise invalid(f"kind must be one of {', '.join(KINDS)}")
    try:
        return Fault(**body)
    except TypeError as error:
        raise invalid(f"unknown field: {error}") from error


def fault_to_json(fault: Fault) -> Json:
    """The same, as the list of armed faults shows it."""
    return asdict(fault)
