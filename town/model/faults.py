"""Switches that make the service fail as real ones do, so that a client can be seen to live through it."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from town import faults

FaultKind = Literal[
    "rate_limited",  # 429 with retry-after
    "bad_gateway",  # 502 with an HTML body
    "hang",  # answer nothing for `seconds`, then 502
    "cut",  # begin the answer, then drop the connection
    "unauthorized",  # 401
    "payment_required",  # 402
]
Fault: TypeAlias = faults.Fault[FaultKind]


class ModelFaults(faults.ArmedFaults[FaultKind]):
    """The armed faults of the model service."""

    kinds = get_args(FaultKind)
