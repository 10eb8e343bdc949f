"""What can go wrong between a client and the network, switched on for the next requests that match."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from town.atproto.values import Json, invalid
from town.faults import LikelyFaults, read_fault

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


class Faults(LikelyFaults[Fault]):
    """The armed faults of the network."""

    def __init__(self, rng: random.Random | None = None) -> None:
        super().__init__(lambda fault: fault.method, rng)


def fault_from_json(body: Json) -> Fault:
    """A fault as `POST /town/faults` takes it. Raises `XrpcError` for a kind or a field that is not known."""
    try:
        return read_fault(Fault, KINDS, body)
    except ValueError as error:
        raise invalid(str(error)) from error


def fault_to_json(fault: Fault) -> Json:
    """The same, as the list of armed faults shows it."""
    return asdict(fault)
