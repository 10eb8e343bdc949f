"""Computes when a loop runs and who goes first, from the SOUL's name, so that no two act at the same moment."""

from __future__ import annotations

import math
from collections.abc import Iterable

from common.election import ranked
from common.intervals import PEER_JITTER_MIN_MS, PEER_JITTER_SPAN_MS, PEER_STEP_MS
from common.text.strings import rolling_hash
from modules.runtime.scheduler.types import TIMER_JITTER_PERCENT

_BACKOFF_FROM_ERRORS = 2
_BACKOFF_MAX_FACTOR = 8
_STEPS = 1000


def get_agent_jitter(name: str, minimum_ms: float = PEER_JITTER_MIN_MS, span_ms: float = PEER_JITTER_SPAN_MS) -> int:
    """Return how long this SOUL lets others go first, in ms: between `minimum_ms` and `minimum_ms + span_ms`."""
    share = abs(rolling_hash(name)) % PEER_JITTER_SPAN_MS
    return round(minimum_ms + share * span_ms / PEER_JITTER_SPAN_MS)


def get_peer_delay(
    name: str, peers: Iterable[str], root_uri: str, first_ms: float = PEER_JITTER_MIN_MS, step_ms: float = PEER_STEP_MS
) -> float:
    """Return how long `name` lets `peers` go first in the thread that begins with `root_uri`, in ms.

    All of them compute the same order, a different one for each thread, so that no two reply at the same moment.
    """
    return first_ms + len(peers_before(name, peers, root_uri)) * step_ms


def peers_before(name: str, peers: Iterable[str], root_uri: str) -> list[str]:
    """Return those of `peers`, in lower case, who go before `name` in the thread that begins with `root_uri`."""
    order = ranked({one.lower() for one in (name, *peers)}, root_uri)
    return order[: order.index(name.lower())]


def get_timer_jitter(name: str, timer: str, base_ms: float, pct: float = TIMER_JITTER_PERCENT) -> int:
    """Return this SOUL's own interval for a timer, in ms: `base_ms` plus or minus at most the share `pct`."""
    step = abs(rolling_hash(f"{name}:{timer}", seed=5381, factor=33)) % (2 * _STEPS + 1) - _STEPS
    return round(base_ms) + math.floor(base_ms * pct * (step / _STEPS) + 0.5)


def awareness_skip_probability(errors: int, skipped: int = 0) -> float:
    """Return the probability that a tick is skipped after `errors` failures in a row: 0 at first, then up to 7/8.

    At most 8 are skipped in a row, of which `skipped` were already: chance must not prolong a long outage.
    """
    if errors <= _BACKOFF_FROM_ERRORS or skipped >= _BACKOFF_MAX_FACTOR:
        return 0.0
    return 1 - 1 / min(errors - 1, _BACKOFF_MAX_FACTOR)
