"""How many turns an account or a place may have: each number with its reason. `docs/manners.md` shows them too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from common.importance import Importance

_HOUR_S = 3600.0
_DAY_S = 24 * _HOUR_S


@dataclass(frozen=True, slots=True)
class TurnLimit:
    """At most `limit` turns within `window_s` lived seconds; `explanation` says in one line what that is for."""

    name: str
    limit: int
    window_s: float
    explanation: str

    @property
    def reason(self) -> str:
        """Why something waits."""
        return f"{self.name}: {self.limit} turns are enough for now"


TURNS_PER_PERSON = TurnLimit(
    "turns-per-person",
    8,
    _HOUR_S,
    "Posts of one person, neither owner nor peer, that the model reads, whatever comes of it. Later ones wait."
    " Direct messages are counted separately, with the same limit.",
)
TURNS_PER_PEER = TurnLimit(
    "turns-per-peer",
    20,
    _HOUR_S,
    "Posts of one listed peer that the model reads, whatever comes of it. Later ones wait.",
)
TURNS_PER_DAY = TurnLimit(
    "turns-per-day",
    60,
    _DAY_S,
    "Posts of one account, other than the owner's, that the model reads. Later ones wait.",
)
TURNS_PER_REPOSITORY = TurnLimit(
    "turns-per-repository",
    20,
    _HOUR_S,
    "Calls in one repository on GitHub by anybody but the owner that the model reads. Later ones wait.",
)
TURNS_ON_GITHUB = TurnLimit(
    "turns-on-github",
    40,
    _HOUR_S,
    "Calls on GitHub, in all repositories together, by people who are neither owner nor peer, that the model"
    " reads. Later ones wait.",
)

TURN_LIMITS = (TURNS_PER_PERSON, TURNS_PER_PEER, TURNS_PER_DAY, TURNS_PER_REPOSITORY, TURNS_ON_GITHUB)
LONGEST_S = max(one.window_s for one in TURN_LIMITS)
"""The longest window, in lived seconds."""


def limits_of(importance: Importance) -> Sequence[TurnLimit]:
    """Return the limits of one account that matters so much, other than the owner's."""
    return (TURNS_PER_PERSON if importance == "stranger" else TURNS_PER_PEER), TURNS_PER_DAY
