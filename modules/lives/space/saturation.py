"""Counts who has spoken since the host did, and says how much is enough. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

from common.constants import (
    DISCUSSION_OBSERVER_THRESHOLD,
    DISCUSSION_ROLE_BUDGET_MULTIPLIER,
    DISCUSSION_SATURATION_BONUS,
    ROLE_MESSAGE_BUDGET_ACTOR,
    ROLE_MESSAGE_BUDGET_OBSERVER,
    ROLE_MESSAGE_BUDGET_REVIEWER,
    SPACE_ACTION_OBSERVER_THRESHOLD,
    SPACE_SATURATION_BASE,
)
from modules.lives.space.types import Counts, HistoryEntry, Mode, Role

Signal = Literal["none", "saturated", "spoken", "only_new"]
"""What to tell a model: enough was said; it spoke enough itself; only what is genuinely new."""

_SPOKEN_ENOUGH = 2
_ECHO_HISTORY = 20
COMPARED_CHARS = 5_000
"""Of a message, as far as it is compared with others; who writes more must not make everybody think for minutes."""

_BUDGETS: dict[Role, int] = {
    "actor": ROLE_MESSAGE_BUDGET_ACTOR,
    "reviewer": ROLE_MESSAGE_BUDGET_REVIEWER,
    "observer": ROLE_MESSAGE_BUDGET_OBSERVER,
}


def count_since_host(history: Sequence[HistoryEntry], me: str) -> Counts:
    """Messages of agents, and our own, since the host last spoke; all of them if the host never did."""
    since = list(takewhile(lambda entry: not entry.is_host, reversed(history)))
    return Counts(agents=len(since), own=sum(entry.is_me or entry.name == me for entry in since))


def saturation_threshold(connected: int, mode: Mode) -> int:
    """How many messages of agents are enough, where `connected` agents are in the room, ourselves among them."""
    return SPACE_SATURATION_BASE + connected + (DISCUSSION_SATURATION_BONUS if mode == "discussion" else 0)


def warning_threshold(threshold: int) -> int:
    """From which count on only new thoughts are wanted."""
    return math.ceil(threshold / 2)


def saturation_signal(counts: Counts, threshold: int) -> Signal:
    """The strongest that holds."""
    if counts.agents >= threshold:
        return "saturated"
    if counts.own >= _SPOKEN_ENOUGH:
        return "spoken"
    return "only_new" if counts.agents >= warning_threshold(threshold) else "none"


def role_budget(role: Role, mode: Mode) -> int:
    """How many messages without a promise a role has between two of the host."""
    return _BUDGETS[role] * (DISCUSSION_ROLE_BUDGET_MULTIPLIER if mode == "discussion" else 1)


def observer_threshold(mode: Mode) -> int:
    """After how many messages of agents an observer stays silent."""
    return DISCUSSION_OBSERVER_THRESHOLD if mode == "discussion" else SPACE_ACTION_OBSERVER_THRESHOLD


def agent_messages(history: Sequence[HistoryEntry]) -> tuple[str, ...]:
    """What agents, we among them, said within the last 20 messages, oldest first: what an echo is compared with."""
    return tuple(entry.content[:COMPARED_CHARS] for entry in history[-_ECHO_HISTORY:] if not entry.is_host)
