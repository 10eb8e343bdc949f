"""The day's budget as the settings want it, for whoever asks the model: a life, or a command beside it.

What was counted is in the database; nothing is kept here.
"""

from __future__ import annotations

import asyncio

from common.clock import Clock
from common.settings import Settings
from modules.runtime.budget.budget import Budget
from modules.runtime.budget.prices import PriceList
from modules.runtime.budget.types import Caps
from modules.runtime.database.database import Database
from modules.runtime.journal.journal import Journal


async def build_budget(settings: Settings, *, database: Database, journal: Journal, clock: Clock) -> Budget:
    """The keeper of the day's caps, with all prices that are known. Raises `ConfigError` as `Budget` does."""
    models = (settings.ai_gateway_model, settings.ai_gateway_model_cheap)
    prices = PriceList(models, settings.model_prices, base_url=settings.ai_gateway_base_url, now=clock.now())
    if settings.budget_usd_per_day is not None:
        await asyncio.to_thread(len, prices)  # the look-up takes long, and a cap in dollars needs it from the start
    return Budget(
        database=database,
        clock=clock,
        journal=journal,
        caps=Caps.per_day(settings.budget_tokens_per_day, settings.budget_usd_per_day),
        prices=prices,
        model=models[0],
        cheap_model=models[1],
        timezone=settings.soul_timezone,
    )
