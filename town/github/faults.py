"""What can go wrong between a client and GitHub, switched on for the next requests that match.

A request meets at most one fault, and besides it the conditions that hold: it may be slow, and see what is stale.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from town import faults

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
    "slow",  # do it only after a random time of up to `seconds`, also if the client has left meanwhile
    "stale",  # a GET shows what was true a random time of up to `seconds` ago
]
CONDITIONS: frozenset[FaultKind] = frozenset({"slow", "stale"})
STRIKES: frozenset[FaultKind] = frozenset(get_args(FaultKind)) - CONDITIONS
DOING: frozenset[FaultKind] = frozenset({"garbled", "hang", "lost_answer"})
Fault: TypeAlias = faults.Fault[FaultKind]


class GitHubFaults(faults.ArmedFaults[FaultKind]):
    """The armed faults of the town's GitHub."""

    kinds = get_args(FaultKind)
