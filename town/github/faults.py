"""What can go wrong between a client and GitHub, switched on for the next requests that match."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from town.faults import LikelyFaults, read_fault
from town.github.values import Json

FaultKind = Literal[
    "server_error",  # 500
    "bad_gateway",  # 502 with an HTML body
    "unavailable",  # 503
    "rate_limited",  # 403, the hour's requests are used up; they are back after `seconds`
    "secondary_limit",  # 403 with retry-after, though requests are left
    "too_many",  # 429 with retry-after
    "suspended",  # 403, the account is suspended
    "elsewhere",  # 301 to another host
    "garbled",  # do it, and answer what is no JSON
    "hang",  # do it, and answer only after `seconds`
    "lost_request",  # drop the connection before anything is done
    "lost_answer",  # do it, then drop the connection
]
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
DOING: frozenset[FaultKind] = frozenset({"garbled", "hang", "lost_answer"})


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault for the next `times` requests that fit `request`, a pattern such as `POST /repos/*/issues`.

    Each of them is hit with `probability`; `seconds` is how long to hang, or the `retry-after`.
    """

    kind: FaultKind
    request: str = "*"
    times: int = 1
    probability: float = 1.0
    seconds: float = 30.0


class Faults(LikelyFaults[Fault]):
    """The armed faults of the town's GitHub."""

    def __init__(self, rng: random.Random | None = None) -> None:
        super().__init__(lambda fault: fault.request, rng)


def fault_from_json(body: Json) -> Fault:
    """A fault as `POST /town/faults` takes it. Raises `ValueError` for a kind or a field that is not known."""
    return read_fault(Fault, KINDS, body)


def fault_to_json(fault: Fault) -> Json:
    """The same, as the list of armed faults shows it."""
    return asdict(fault)
