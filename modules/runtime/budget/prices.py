"""What a model costs: the owner's own prices first, then the published ones that are installed with this program.

Nothing is fetched. Where a price depends on the length of the context or on the hour, the highest one counts. Cached
input is cheaper, but that is known only once the answer says so; and where storing a prompt costs more than reading it,
each token that was not cached counts as stored. So a price is an upper bound, as the budget guard needs it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from common.errors import ConfigError
from modules.runtime.llm.dialect import takes_marks

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

_UNBOUNDED = "output_citation_mtok"
_STORING = Fraction(5, 4)
"""What services that cache only on request charge for storing, as a multiple of the price of reading."""


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens, which is millionths of a dollar per token; `request` is millionths per request.

    `kept` is for a cached token of input, `stored` for one that is cached from now on; None if the price is the same.
    """

    input: Fraction
    output: Fraction
    request: Fraction = Fraction(0)
    kept: Fraction | None = None
    stored: Fraction | None = None

    @property
    def input_at_most(self) -> Fraction:
        """The highest price of a token of input, cached or not."""
        return max(self.input, self.kept or self.input, self.stored or self.input)

    def cost(self, input_tokens: int, output_tokens: int, kept_tokens: int = 0) -> int:
        """Return the cost in millionths of a dollar, rounded up. `kept_tokens` of the input were surely cached."""
        fresh = self.input_at_most
        kept = fresh if self.kept is None else self.kept
        sent = fresh * (input_tokens - kept_tokens) + kept * kept_tokens
        return math.ceil(self.request + sent + self.output * output_tokens)

    def output_within(self, micro_usd: int, input_tokens: int) -> int | None:
        """Return how many output tokens fit beside the input; negative if not even that fits, None if they are free."""
        left = micro_usd - self.request - self.input_at_most * input_tokens
        if left < 0:
            return -1
        return math.floor(left / self.output) if self.output else None


class PriceList(Mapping[str, Price]):
    """The prices of those of `models` that have one.

    The owner's own are known at once. The published ones are looked up at the first access, which may take half a
    second, because the data is large.

    Args:
        models: names as the service uses them, `provider/model` or bare; empty ones are skipped.
        overrides: dollars per million tokens of input and of output, by model; these take precedence.
        base_url: the service, which may have its own prices.
        now: decides which prices are in force.

    Raises:
        ConfigError: a price in `overrides` is no number.

    """

    def __init__(
        self, models: Iterable[str], overrides: Mapping[str, tuple[float, float]], *, base_url: str, now: datetime
    ) -> None:
        self._own = {name: _override(name, overrides) for name in models if name}
        self._base_url = base_url
        self._now = now

    @cached_property
    def _known(self) -> dict[str, Price]:
        found = {name: own or _published(name, self._base_url, self._now) for name, own in self._own.items()}
        return {name: price for name, price in found.items() if price is not None}

    def __getitem__(self, model: str) -> Price:
        return self._known[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def unpriced(model: str) -> ConfigError:
    """Return the error for a budget in dollars when the price of a model is not known."""
    return ConfigError(
        f"BUDGET_USD_PER_DAY is set, but the price of {model} is not known",
        remedy=f"Add MODEL_PRICES={model}=in/out to .env, in dollars per million tokens (0/0 if it is free).",
    )


def _override(model: str, overrides: Mapping[str, tuple[float, float]]) -> Price | None:
    pair = overrides.get(model) or overrides.get(model.rpartition("/")[2])
    if pair is None:
        return None
    if not all(math.isfinite(part) and part >= 0 for part in pair):
        raise ConfigError(f"Settings: MODEL_PRICES has no number for {model}", remedy="Correct .env.")
    given, taken = (Fraction(str(part)) for part in pair)
    return Price(given, taken, stored=given * _STORING if takes_marks(model) else None)


def _published(model: str, base_url: str, now: datetime) -> Price | None:
    # NOTE(self): the data is a large module; an owner who names every price should not wait for it.
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - see above

    provider, slash, bare = model.partition("/")
    named = (bare, provider, None) if slash else (model, None, None)
    for ref, provider_id, url in ((model, None, base_url), named):
        try:
            _, info = get_snapshot().find_provider_model(ref, None, provider_id, url)
        except LookupError:
            continue
        return _dearest(info, now)
    return None


def _dearest(info: ModelInfo, now: datetime) -> Price | None:
    """Return the highest of all prices that hold now, or later without notice: other hours, announced changes."""
    prices = [_read(listed) for listed in _in_force(info, now)]
    known = [price for price in prices if price is not None]
    if not known or len(known) < len(prices):
        return None
    return Price(
        max(price.input for price in known),
        max(price.output for price in known),
        max(price.request for price in known),
        kept=_kept(known),
        stored=max((price.stored for price in known if price.stored is not None), default=None),
    )


def _kept(prices: list[Price]) -> Fraction | None:
    """Return the highest price of a cached token; None unless all prices have one."""
    found = [price.kept for price in prices if price.kept is not None]
    return max(found) if len(found) == len(prices) else None


def _in_force(info: ModelInfo, now: datetime) -> list[ModelPrice]:
    """Return the prices in force: the list from its end to the first price that holds all day."""
    from genai_prices.types import ModelPrice, StartDateConstraint  # noqa: PLC0415 - as the data itself

    if isinstance(info.prices, ModelPrice):
        return [info.prices]
    held = []
    for conditional in reversed(info.prices):
        held.append(conditional.prices)
        rule = conditional.constraint
        if rule is None or (isinstance(rule, StartDateConstraint) and rule.active(now)):
            break
    return held


def _read(listed: ModelPrice) -> Price | None:
    """Return a price; None if text has no price, or if something is charged that no limit bounds."""
    if listed.input_mtok is None or listed.output_mtok is None or getattr(listed, _UNBOUNDED) is not None:
        return None
    return Price(
        _highest(listed.input_mtok),
        max(_highest(listed.output_mtok), _highest(listed.output_reasoning_mtok)),
        _highest(listed.requests_kcount) * 1000,
        kept=None if listed.cache_read_mtok is None else _highest(listed.cache_read_mtok),
        stored=None if listed.cache_write_mtok is None else _highest(listed.cache_write_mtok),
    )


def _highest(price: object) -> Fraction:
    """Return the highest price of all tiers; zero if there is no price."""
    tiers = [tier.price for tier in getattr(price, "tiers", ())]
    parts = (getattr(price, "base", price), *tiers)
    return max((Fraction(part) for part in parts if isinstance(part, Decimal)), default=Fraction(0))
