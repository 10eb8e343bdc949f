"""What can go wrong between a client and the network, switched on for the next requests that match."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from town import faults

FaultKind = Literal[
    "rate_limited",  # 429 with retry-after
    "server_error",  # 500
    "bad_gateway",  # 502 with an HTML body
    "expired_token",  # 400 ExpiredToken
    "bad_request",  # 400 InvalidRequest
    "hang",  # do it, and answer only after `seconds`
    "lost_request",  # drop the connection before anything is done
    "lost_answer",  # do it, then drop the connection
]
Fault: TypeAlias = faults.Fault[FaultKind]


class AtprotoFaults(faults.ArmedFaults[FaultKind]):
    """The armed faults of the network."""

    kinds = get_args(FaultKind)
