"""The budget guard: every request to the model is counted at its worst case before it leaves.

Adding up the day, deciding and reserving are one transaction, on the disk before the request goes: whatever runs at
once, in one process or in several, the day never passes its cap, provided that the service keeps to the limit of an
answer. The day is the calendar day of the owner; if a clock is set back, the day is found as it was left.

A call that was interrupted stays counted at its worst case.
"""

import asyncio
import contextlib
import sqlite3
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from common.clock import Clock, iso
from common.errors import BudgetExceeded
from common.provenance import Importance
from common.settings import Settings
from modules.runtime.budget import ledger
from modules.runtime.budget.policy import (
    MICRO,
    ROOMS,
    ROOMS_PERCENT,
    STRANGERS_PERCENT,
    USEFUL_TOKENS,
    Caps,
    Leave,
    Report,
    Spent,
    Step,
    counted,
    day_of,
    fraction,
    has_room,
    has_share_left,
    input_bound,
    input_floor,
    is_news,
    may_ask,
    output_limit,
    room_for_output,
    seconds_left,
    sent_as,
    settled,
    step_at,
    strangers_have_share_left,
    surely_kept,
    takes_cheaper,
    weigh,
)
from modules.runtime.budget.prices import Price, PriceList, unpriced
from modules.runtime.budget.report import (
    amounts_in_words,
    announcement,
    reason_to_refuse,
    report_of,
    spoken_duration,
)
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.connection import Request, Reservation
from modules.runtime.llm.dialect import Usage

T = TypeVar("T")


class _AlreadyTold(Exception):
    """Raised when another writer announced the step first; nothing is written."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """The state of a day; `news` says that its step must be announced."""

    day: str
    step: Step
    spent: Spent
    news: bool


class Budget:
    """Keeps the day's budget; it is the `BudgetGuard` of the gateway.

    Args:
        database: holds the ledger.
        clock: decides which day it is.
        journal: records each step, once a day.
        caps: what a day may use.
        prices: of the models in use, as far as they are known. Without a cap in dollars they are first looked up at
            the first request, in a thread: that may take long.
        model: the usual model.
        cheap_model: the model once much of the day is used; "" for the same.
        timezone: of the owner; "" for the machine's.

    Raises:
        ConfigError: dollars are capped, and a model in use has no known price.

    """

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        journal: Journal,
        caps: Caps,
        prices: Mapping[str, Price],
        model: str,
        cheap_model: str = "",
        timezone: str = "",
    ) -> None:
        self._database = database
        self._clock = clock
        self._journal = journal
        self._caps = caps
        self._prices = prices
        self._cheap_model = cheap_model
        self._timezone = timezone
        if caps.micro_usd is not None:
            for name in filter(None, (model, cheap_model)):
                self._price(name)

    async def reserve(self, request: Request, *, purpose: str, importance: Importance) -> Reservation:
        """Return leave for one request, which is counted at its worst case on the disk.

        The returned request may name the cheaper model, or have a smaller limit if the wanted one does not fit.

        Raises:
            BudgetExceeded: it may not go today; `retry_after` is the time until the next day.
            StorageError: it could not be counted, so it may not go.

        """
        now, call_id, input_tokens = self._clock.now(), uuid.uuid4().hex, input_bound(request)
        day = day_of(now, self._timezone)
        await asyncio.to_thread(len, self._prices)  # looks them up, before the transaction asks for one

        def work(connection: sqlite3.Connection) -> tuple[Reservation | None, _Standing]:
            spent = self._spent(connection, day)
            # NOTE(self): what is set aside is not used yet: it closes no step, and the owner goes before it.
            own = ledger.held(connection, day, "" if importance == "owner" else purpose)
            step = self._step(connection, day, spent)
            leave, model = self._weigh(step, spent.without(own), request, input_tokens, importance)
            if not has_share_left(purpose, importance, ledger.spent(connection, day, ROOMS), self._caps):
                leave = Leave(leave.step, 0)
            on_strangers = ledger.spent(connection, day, importance="stranger")
            if not strangers_have_share_left(importance, on_strangers, self._caps):
                leave = Leave(leave.step, 0)
            reservation = None
            if importance == "owner":
                least = min(USEFUL_TOKENS, output_limit(request))
                needs = Spent(input_tokens + least, self._cost(model, input_tokens, least) or 0)
                ledger.note_refused(connection, day, None if leave.limit else needs)
            if leave.limit:
                outgoing = sent_as(request, model=model, limit=leave.limit)
                micro_usd = self._cost(model, input_tokens, leave.limit)
                reservation = Reservation(call_id, outgoing, input_tokens, leave.limit, micro_usd, leave.step)
                ledger.reserve(connection, reservation, day=day, at=iso(now), purpose=purpose, importance=importance)
                needed, of = Spent(input_tokens + leave.limit, micro_usd or 0), purpose
                if importance == "owner":
                    needed, of = spent.over(needed, self._caps), ""
                ledger.take_from_hold(connection, needed, of)
            return reservation, self._stand(connection, day, leave.step, spent)

        reservation, standing = await self._database.run(work)
        await self._tell(standing)
        if reservation is None:
            raise self._refusal(standing, importance, purpose)
        return reservation

    async def settle(self, reservation: Reservation, usage: Usage | None, weight: int) -> int | None:
        """Replace the worst case of an answered call by its use; return millionths of a dollar, None if unpriced."""
        sent, answered = settled(
            usage,
            weight=weight,
            input_tokens=reservation.input_tokens,
            output_tokens=reservation.output_tokens,
            input_least=input_floor(reservation.request),
        )
        kept = surely_kept(usage)
        micro_usd = self._cost(str(reservation.request["model"]), sent, answered, kept)
        used = counted(sent, kept)

        def work(connection: sqlite3.Connection) -> None:
            ledger.settle(connection, reservation.id, input_tokens=used, output_tokens=answered, micro_usd=micro_usd)

        await self._after(work)
        return micro_usd

    async def release(self, reservation: Reservation, *, unanswered: bool = False) -> None:
        """Count a request as free: it was refused before anything was done for it, or nothing at all came back."""

        def work(connection: sqlite3.Connection) -> None:
            if unanswered:
                ledger.note_unanswered(connection, reservation.id)
            ledger.settle(connection, reservation.id, input_tokens=0, output_tokens=0, micro_usd=0)

        await self._after(work)

    async def unanswered(self, reservation: Reservation) -> None:
        """Record that no whole answer came: the reservation stays counted, as the call may have been billed."""
        await self._database.run(lambda connection: ledger.note_unanswered(connection, reservation.id))

    async def note_lost(self) -> None:
        """Record, at a start, that calls which ended with an earlier process of this home got no whole answer."""
        await self._database.run(ledger.note_unanswered)

    async def hold(self, purpose: str, *, tokens: int, usd: float | None) -> None:
        """Set an amount aside for one purpose, in place of an earlier one; calls for that purpose are taken from it.

        It is at most half of what a day may use, so that it fits on some day. Dollars count only if they are capped.
        After a crash the amount stays set aside until the same purpose sets it again, or the day ends.

        Raises:
            BudgetExceeded: the day has not that much left, or allows no calls for commitments.

        """
        now = self._clock.now()
        day = day_of(now, self._timezone)
        micro_usd = min(int((usd or 0) * MICRO), (self._caps.micro_usd or 0) // 2)
        amount = Spent(min(tokens, self._caps.tokens // 2), micro_usd)

        def work(connection: sqlite3.Connection) -> tuple[bool, _Standing]:
            ledger.let_go(connection, purpose)
            spent = self._spent(connection, day)
            step = self._step(connection, day, spent)
            fits = may_ask(step, "commitment") and has_room(spent, amount, self._caps)
            if fits:
                ledger.hold(connection, purpose, day=day, at=iso(now), amount=amount)
            return fits, self._stand(connection, day, step, spent)

        fits, standing = await self._database.run(work)
        if not fits:
            raise self._refusal(standing, "commitment", purpose, f"it needs {amount.tokens:,} tokens set aside")

    async def let_go(self, purpose: str) -> None:
        """Give back what is left of the amount set aside for a purpose."""
        await self._database.run(lambda connection: ledger.let_go(connection, purpose))

    async def why_not(self, importance: Importance) -> str:
        """Return why no call of this importance may go now; "" if one that fits may."""
        day = day_of(self._clock.now(), self._timezone)
        step = await self._database.run(lambda one: self._step(one, day, self._spent(one, day)))
        return "" if may_ask(step, importance) else reason_to_refuse(step, importance)

    async def report(self) -> Report:
        """Return the report of today."""
        now = self._clock.now()
        return await self._database.run(lambda connection: report_of(connection, self._caps, now, self._timezone))

    async def tidy(self) -> int:
        """Announce a new day, and delete old calls; return how many were deleted."""
        return await self._after(ledger.prune)

    async def _after(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work`, then announce today's step if that is news."""
        day = day_of(self._clock.now(), self._timezone)

        def both(connection: sqlite3.Connection) -> tuple[T, _Standing]:
            result, spent = work(connection), self._spent(connection, day)
            return result, self._stand(connection, day, self._step(connection, day, spent), spent)

        result, standing = await self._database.run(both)
        await self._tell(standing)
        return result

    def _weigh(
        self, step: Step, spent: Spent, request: Request, input_tokens: int, importance: Importance
    ) -> tuple[Leave, str]:
        """Return whether the request may go, and to which model."""
        model = self._cheap_model if self._cheap_model and takes_cheaper(step) else str(request["model"])
        if not may_ask(step, importance):
            return Leave(step, 0), model
        room = room_for_output(spent, self._caps, self._price(model), input_tokens)
        return weigh(step, room=room, wanted=output_limit(request)), model

    def _spent(self, connection: sqlite3.Connection, day: str) -> Spent:
        if self._caps.micro_usd is not None:
            ledger.price_unpriced(connection, day, self._cost_at_most)
        return ledger.spent(connection, day)

    def _step(self, connection: sqlite3.Connection, day: str, spent: Spent) -> Step:
        """Return the step that holds once the day used `spent`, without what is only set aside of it."""
        return step_at(fraction(spent.without(ledger.held(connection, day)), self._caps))

    def _price(self, model: str) -> Price | None:
        price = self._prices.get(model)
        if price is None and self._caps.micro_usd is not None:
            raise unpriced(model)
        return price

    def _cost(self, model: str, input_tokens: int, output_tokens: int, kept_tokens: int = 0) -> int | None:
        price = self._price(model)
        return price.cost(input_tokens, output_tokens, kept_tokens) if price else None

    def _cost_at_most(self, model: str, input_tokens: int, output_tokens: int) -> int:
        """Return the cost of a call made while no price was known; if it still is not, that of the dearest model."""
        prices = [self._prices[model]] if model in self._prices else list(self._prices.values())
        return max(price.cost(input_tokens, output_tokens) for price in prices)

    def _stand(self, connection: sqlite3.Connection, day: str, step: Step, spent: Spent) -> _Standing:
        """Return the state of the day, and whether to announce it; a day that begins as usual is only stored."""
        today, before = ledger.told(connection, day)
        news = is_news(step, told_today=today, told_before=before)
        if today is None and not news:
            ledger.tell(connection, day, step)
        return _Standing(day, step, spent, news)

    async def _tell(self, standing: _Standing) -> None:
        """Journal and show the step, in one transaction with the note that it was announced."""
        if not standing.news:
            return

        def claim(connection: sqlite3.Connection) -> tuple[None, Entry]:
            today, before = ledger.told(connection, standing.day)
            if not is_news(standing.step, told_today=today, told_before=before):
                raise _AlreadyTold
            ledger.tell(connection, standing.day, standing.step)
            return None, self._entry(standing)

        with contextlib.suppress(_AlreadyTold):
            await self._journal.record_with(claim)

    def _entry(self, standing: _Standing) -> Entry:
        step, spent = standing.step, standing.spent
        usd = None if self._caps.micro_usd is None else spent.micro_usd / MICRO
        return Entry(
            "life",
            "budget",
            announcement(step, cheap_model=self._cheap_model),
            line="sys" if step == "normal" else "warn",
            reason=f"{amounts_in_words(spent, self._caps)}; the next day begins in {self._wait_in_words()}",
            data={"day": standing.day, "step": step, "tokens": spent.tokens, "usd": usd},
        )

    def _refusal(self, standing: _Standing, importance: Importance, purpose: str, needs: str = "") -> BudgetExceeded:
        used, why = amounts_in_words(standing.spent, self._caps), reason_to_refuse(standing.step, importance)
        if needs and may_ask(standing.step, importance):
            why = needs
        if purpose.startswith(ROOMS) and may_ask(standing.step, importance) and standing.step != "listen":
            why = f"talk in rooms may use {ROOMS_PERCENT} % of it, the host's requests first, and has"
        if importance == "stranger" and may_ask(standing.step, importance):
            why = f"strangers may use {STRANGERS_PERCENT} % of it, and have"
        return BudgetExceeded(
            f"The day's budget does not allow it ({used}): {why}",
            remedy=f"The next day begins in {self._wait_in_words()}; BUDGET_TOKENS_PER_DAY and BUDGET_USD_PER_DAY in"
            " .env set the limit.",
            retry_after=seconds_left(self._clock.now(), self._timezone),
        )

    def _wait_in_words(self) -> str:
        return spoken_duration(seconds_left(self._clock.now(), self._timezone))


async def load_prices(settings: Settings, clock: Clock) -> PriceList:
    """Return the prices of the models in use; look them up now only if a cap in dollars needs them from the start."""
    models = (settings.ai_gateway_model, settings.ai_gateway_model_cheap)
    prices = PriceList(models, settings.model_prices, base_url=settings.ai_gateway_base_url, now=clock.now())
    if settings.budget_usd_per_day is not None:
        await asyncio.to_thread(len, prices)
    return prices


def refuse_unpriced(settings: Settings, now: datetime) -> None:
    """Raise `ConfigError` if a budget in dollars is set and the price of a model in use is not known.

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
    """Return the budget that the settings describe. Raises `ConfigError` as `Budget` does."""
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
