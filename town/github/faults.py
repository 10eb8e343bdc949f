"""What can go wrong between a client and GitHub, switched on for the next requests that match.

At most one of `STRIKES` hits a request; `CONDITIONS` apply in addition: a request may be slow, and a read stale.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from town import faults

FaultKind = Literal[
    "server_error",  # 500
    "bad_gateway",  # 502 with an HTML body
    "unavailable",  # 503
    "rate_limited",  # 403, the hour's requests are used up; the limit resets after `seconds`
    "secondary_limit",  # 403 with retry-after, though requests are left
    "too_many",  # 429 with retry-after
    "suspended",  # 403, the account is suspended
    "elsewhere",  # 301 to another host
    "garbled",  # do it, but answer with invalid JSON
    "hang",  # do it, but answer only after `seconds`
    "lost_request",  # drop the connection before anything is done
    "lost_answer",  # do it, then drop the connection
    "slow",  # do it only after a random time of up to `seconds`, also if the client has left meanwhile
    "stale",  # a GET shows the state of a random time up to `seconds` ago
]
CONDITIONS: frozenset[FaultKind] = frozenset({"slow", "stale"})
STRIKES: frozenset[FaultKind] = frozenset(get_args(FaultKind)) - CONDITIONS
DOING: frozenset[FaultKind] = frozenset({"garbled", "hang", "lost_answer"})
Fault: TypeAlias = faults.Fault[FaultKind]


class GitHubFaults(faults.ArmedFaults[FaultKind]):
    """The armed faults of the town's GitHub."""

    kinds = get_args(FaultKind)
