"""What a day may cost, how far it is used, and the report of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from typing import Literal

from common.errors import ConfigError

MICRO = 1_000_000

Step = Literal[
    "normal",
    "cheaper",  # the cheaper model is used, if one is set
    "pressing",  # only for the owner, mentions and commitments
    "owner_only",  # only for the owner
    "listen",  # no model call
]


@dataclass(frozen=True, slots=True)
class Caps:
    """What one day may use: tokens of input and output together, and millionths of a dollar (None: no cap)."""

    tokens: int
    micro_usd: int | None = None

    @classmethod
    def per_day(cls, tokens: int, usd: float | None = None) -> Caps:
        """Return the caps that the owner set; a part of a millionth is cut off. Raises `ConfigError`."""
        if usd is None:
            return cls(tokens)
        if not math.isfinite(usd) or usd < 0:
            raise ConfigError("Settings: BUDGET_USD_PER_DAY must be a number of dollars", remedy="Correct .env.")
        return cls(tokens, int((Decimal(str(usd)) * MICRO).to_integral_value(ROUND_FLOOR)))


@dataclass(frozen=True, slots=True)
class Spent:
    """What a day has used, reservations included."""

    tokens: int = 0
    micro_usd: int = 0

    def without(self, part: Spent) -> Spent:
        """Return what is left after taking `part` away."""
        return Spent(self.tokens - part.tokens, self.micro_usd - part.micro_usd)

    def over(self, more: Spent, caps: Caps) -> Spent:
        """Return how far `more` would lead beyond the caps."""
        micro_usd = 0 if caps.micro_usd is None else max(0, self.micro_usd + more.micro_usd - caps.micro_usd)
        return Spent(max(0, self.tokens + more.tokens - caps.tokens), micro_usd)


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of tokens or dollars: `used` is settled; `reserved` is not, and counts at its upper bound.

    `unanswered` is the part of `reserved` for which no whole answer came, and which may have been billed: it is spent.
    The rest is set aside for calls on their way and to come, and shrinks when they are answered.
    """

    used: float
    reserved: float
    cap: float | None
    unanswered: float = 0

    @property
    def on_its_way(self) -> float:
        return self.reserved - self.unanswered

    @property
    def spent(self) -> float:
        return self.used + self.unanswered

    @property
    def taken(self) -> float:
        return self.used + self.reserved


@dataclass(frozen=True, slots=True)
class Share:
    """What one purpose or one model spent of the day; `usd` is None if a price is unknown.

    `on_its_way` are the tokens that are set aside beside that.
    """

    name: str
    calls: int
    tokens: int
    usd: float | None
    on_its_way: int = 0


@dataclass(frozen=True, slots=True)
class Day:
    """One day as a line. `step` is the furthest step announced; "" if there was none."""

    day: str
    calls: int
    tokens: int
    usd: float | None
    step: str


@dataclass(frozen=True, slots=True)
class Report:
    """The state of one day's budget.

    Attributes:
        day: the owner's local calendar day, `2026-01-05`.
        step: the step that holds now.
        fraction: how much of the day is spent, 1 for all; the larger of tokens and dollars.
        tokens: input and output together.
        usd: None if a price is unknown.
        calls: requests that left, refused ones included.
        uncounted: those of them for which not one byte of an answer came from a service that bills nobody.
        by_purpose: the purposes, the largest first.
        by_model: the models, the largest first.
        resets_in_s: seconds until the next day begins.

    """

    day: str
    step: Step
    fraction: float
    tokens: Amount
    usd: Amount | None
    calls: int
    by_purpose: tuple[Share, ...]
    by_model: tuple[Share, ...]
    resets_in_s: float
    uncounted: int = 0
