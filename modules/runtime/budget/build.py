"""Builds the day's budget from the settings, for a life or for a command beside it."""

from __future__ import annotations

import asyncio
from datetime import datetime

from common.clock import Clock
from common.settings import Settings
from modules.runtime.budget.budget import Budget
from modules.runtime.budget.prices import PriceList, unpriced
from modules.runtime.budget.types import Caps
from modules.runtime.database.database import Database
from modules.runtime.journal.journal import Journal


async def load_prices(settings: Settings, clock: Clock) -> PriceList:
    """Return the prices of the models in use; looked up now only where a cap in dollars needs them from the start."""
    models = (settings.ai_gateway_model, settings.ai_gateway_model_cheap)
    prices = PriceList(models, settings.model_prices, base_url=settings.ai_gateway_base_url, now=clock.now())
    if settings.budget_usd_per_day is not None:
        await asyncio.to_thread(len, prices)
    return prices


def refuse_unpriced(settings: Settings, now: datetime) -> None:
    """Raise `ConfigError` where a budget in dollars is set and the price of a model in use is not known.

    The first look at the prices takes up to half a second.
    """
    if settings.budget_usd_per_day is None:
        return
    models = [name for name in (settings.ai_gateway_model, settings.ai_gateway_model_cheap) if name]
    prices = PriceList(models, settings.model_prices, base_url=settings.ai_gateway_base_url, now=now)
    for model in models:
        if model not in prices:
            raise unpriced(model)


def build_budget(
    settings: Settings, prices: PriceList, *, database: Database, journal: Journal, clock: Clock
) -> Budget:
    """Return the keeper of the day's caps. Raises `ConfigError` as `Budget` does."""
    return Budget(
        database=database,
        clock=clock,
        journal=journal,
        caps=Caps.per_day(settings.budget_tokens_per_day, settings.budget_usd_per_day),
        prices=prices,
        model=settings.ai_gateway_model,
        cheap_model=settings.ai_gateway_model_cheap,
        timezone=settings.soul_timezone,
    )
