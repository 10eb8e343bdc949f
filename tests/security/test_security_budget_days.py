"""Proves that no day passes its cap, whatever happens on it; `BUDGET_DAYS=10000` tries as many days.

Each example is a home over several days. Calls are made one after the other and many at once, from one process and
from two on the same file; they are answered with a count, answered without, refused, lost, known to have no answer, or
cut off by a crash; the process starts again; the clock is set ahead and back over midnight. The model service is
simulated, and as greedy as the rules allow: it makes up to one token of every byte it is sent, and uses up its limit
even when the answer never arrives. What it really consumed is counted here, beside the ledger, and must stay below the
cap as well.
"""

import asyncio
import os
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from common.clock import FakeClock
from common.errors import BudgetExceeded
from common.provenance import Importance
from modules.runtime.budget.policy import TOKENS_PER_MESSAGE, Caps, input_bound
from modules.runtime.budget.prices import Price
from modules.runtime.console import SilentConsole
from modules.runtime.llm.connection import Request, Reservation
from modules.runtime.llm.dialect import Usage
from tests.modules.runtime.budget.budget_rig import CHEAP, MAIN, Rig, Rules, process

DAYS_EACH = 5
EXAMPLES = max(1, int(os.environ.get("BUDGET_DAYS", "200")) // DAYS_EACH)
FOLDER = os.environ.get("BUDGET_DAYS_DIR")

DAY_S = 86_400
STEPS = {"normal": 0, "cheaper": 70, "pressing": 85, "owner_only": 95, "listen": 100}
ALLOWED: dict[str, set[Importance]] = {
    "normal": {"own", "commitment", "mention", "owner"},
    "cheaper": {"own", "commitment", "mention", "owner"},
    "pressing": {"commitment", "mention", "owner"},
    "owner_only": {"owner"},
    "listen": set(),
}
Ending = Literal["counted", "uncounted", "refused", "lost", "crashed", "unanswered"]


@dataclass(frozen=True)
class Call:
    """One call; `greed` is the percentage of what the service may consume that it really consumes."""

    importance: Importance
    ending: Ending
    text: str
    limit: int
    greed: int
    other_process: bool


@dataclass(frozen=True)
class Burst:
    """Calls that are made at once."""

    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Restart:
    """Both processes end, and two new ones open the same file."""


@dataclass(frozen=True)
class Jump:
    """The clock is set, or time passes."""

    seconds: int


Event = Burst | Restart | Jump

_CALLS = st.builds(
    Call,
    importance=st.sampled_from(["own", "commitment", "mention", "owner"]),
    ending=st.sampled_from(["counted", "uncounted", "refused", "lost", "crashed", "unanswered"]),
    text=st.builds(lambda letter, count: letter * count, st.sampled_from("aä한🦆"), st.integers(0, 3000)),
    limit=st.sampled_from([256, 300, 1024, 4096]),
    greed=st.sampled_from([0, 10, 50, 100, 100]),
    other_process=st.booleans(),
)
_EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Burst, st.tuples(_CALLS)),
    st.builds(Burst, st.tuples(_CALLS)),
    st.builds(Burst, st.lists(_CALLS, min_size=2, max_size=6).map(tuple)),
    st.just(Restart()),
    st.builds(Jump, st.integers(-2 * DAY_S, 2 * DAY_S)),
)
_COSTS = st.sampled_from([Fraction(0), Fraction(1, 7), Fraction(5, 4), Fraction(8), Fraction(30)])
_PRICES = st.fixed_dictionaries(
    {MAIN: st.builds(Price, _COSTS, _COSTS, _COSTS), CHEAP: st.builds(Price, _COSTS, _COSTS)}
)
_RULES = st.builds(
    Rules,
    caps=st.builds(
        Caps,
        st.sampled_from([0, 1, 1500, 3000]) | st.integers(2_000, 100_000),
        st.none() | st.sampled_from([0, 1]) | st.integers(1_000, 60_000) | st.integers(1_000, 300_000),
    ),
    prices=_PRICES,
    cheap_model=st.sampled_from(["", CHEAP]),
    timezone=st.sampled_from(["UTC", "Europe/Lisbon", "America/Havana", "Pacific/Chatham"]),
)
_DAYS = st.lists(st.lists(_EVENTS, max_size=12), min_size=DAYS_EACH, max_size=DAYS_EACH)


@dataclass
class Life:
    """One home, what happened in it, and what the service really consumed each day."""

    path: Path
    rules: Rules
    clock: FakeClock = field(default_factory=lambda: FakeClock(datetime(2026, 3, 27, 12, tzinfo=UTC)))
    console: SilentConsole = field(default_factory=SilentConsole)
    tokens: Counter[str] = field(default_factory=Counter)
    micro_usd: dict[str, Fraction] = field(default_factory=dict)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    rigs: list[Rig] = field(default_factory=list)

    async def start(self) -> None:
        """Replace the processes with two new ones on the same file."""
        await self.stack.aclose()
        self.rigs = [
            await self.stack.enter_async_context(process(self.path, self.rules, clock=self.clock, console=self.console))
            for _ in range(2)
        ]

    @property
    def today(self) -> str:
        return self.clock.now().astimezone(ZoneInfo(self.rules.timezone)).date().isoformat()

    async def live(self, event: Event) -> None:
        match event:
            case Restart():
                await self.start()
            case Jump(seconds):
                self.clock.jump(seconds)
            case Burst(calls):
                await self.burst(calls)

    async def burst(self, calls: tuple[Call, ...]) -> None:
        day, before = self.today, self.full(await self.ledger(self.today))
        leaves = await asyncio.gather(*(self.call(one) for one in calls))
        for one, leave in zip(calls, leaves, strict=True):
            if leave is not None:
                # what is used only grows during a burst
                assert STEPS[leave.step] >= STEPS[_step(before)]
                assert one.importance in ALLOWED[leave.step]
        if len(calls) == 1:
            self.judge_single(calls[0], leaves[0], before, await self.ledger(day))

    def judge_single(self, one: Call, leave: Reservation | None, before: int, after: tuple[int, int]) -> None:
        """Assert that a single call was refused only if it had to be."""
        if leave is not None:
            assert leave.step == _step(before)
            return
        if one.importance not in ALLOWED[_step(before)]:
            return
        caps = self.rules.caps
        bound, useful = input_bound(_request(one)), min(256, one.limit)
        model = CHEAP if self.rules.cheap_model and before >= 70 else MAIN
        full_tokens = after[0] + bound + useful > caps.tokens
        cost = after[1] + self.rules.prices[model].cost(bound, useful)
        assert full_tokens or (caps.micro_usd is not None and cost > caps.micro_usd)

    async def call(self, one: Call) -> Reservation | None:
        """Call a greedy service as the gateway does; return the reservation, or None if the budget guard refused."""
        rig, day = self.rigs[one.other_process], self.today
        try:
            leave = await rig.ask(_request(one), one.importance)
        except BudgetExceeded:
            return None
        assert leave.output_tokens >= min(256, one.limit)
        await asyncio.sleep(0)
        if one.ending == "refused":
            await rig.budget.release(leave)
            return leave
        sent, answered = _consume(leave.request, one.greed)
        price = self.rules.prices[str(leave.request["model"])]
        self.tokens[day] += sent + answered
        cost = price.request + price.input * sent + price.output * answered
        self.micro_usd[day] = self.micro_usd.get(day, Fraction(0)) + cost
        if one.ending == "counted":
            await rig.budget.settle(leave, Usage(sent, answered), answered)
        elif one.ending == "uncounted":
            await rig.budget.settle(leave, None, answered)
        elif one.ending == "unanswered":
            await rig.budget.unanswered(leave)
        return leave

    async def ledger(self, day: str) -> tuple[int, int]:
        """Return the tokens and millionths of a dollar of a day, added up in another way than the product does."""
        rows = [row for row in await self.rigs[0].rows() if row["day"] == day]
        tokens = sum(row["input_tokens"] + row["output_tokens"] for row in rows)
        return tokens, sum(row["cost_micro_usd"] for row in rows)

    def full(self, used: tuple[int, int]) -> int:
        """Return the used share of the day's tokens or money, whichever is larger, in percent, rounded down."""
        tokens, micro_usd = used
        caps = self.rules.caps
        parts = [tokens * 100 // caps.tokens if caps.tokens else 100]
        if caps.micro_usd is not None:
            parts.append(micro_usd * 100 // caps.micro_usd if caps.micro_usd else 100)
        return max(parts)

    async def judge(self) -> None:
        """Assert that no day is above its cap, in the ledger and in truth, and that no step was told twice on a day."""
        rows = await self.rigs[0].rows()
        tokens: Counter[str] = Counter()
        micro_usd: Counter[str] = Counter()
        for row in rows:
            tokens[row["day"]] += row["input_tokens"] + row["output_tokens"]
            micro_usd[row["day"]] += row["cost_micro_usd"]
        caps = self.rules.caps
        assert all(self.tokens[day] <= tokens[day] <= caps.tokens for day in {*tokens, *self.tokens})
        if caps.micro_usd is not None:
            assert all(micro_usd[day] <= caps.micro_usd for day in micro_usd)
            assert all(spent <= micro_usd[day] for day, spent in self.micro_usd.items())
        told = await self.rigs[0].told()
        assert len(told) == len(set(told))
        assert len(self.console.lines) == len(told)


def _request(one: Call) -> Request:
    messages = [{"role": "system", "content": "You are somebody."}, {"role": "user", "content": one.text}]
    return {"model": MAIN, "messages": messages, "max_tokens": one.limit}


def _consume(request: Request, greed: int) -> tuple[int, int]:
    """Return the input and output tokens that the service consumes: `greed` percent of the most that it may."""
    words = [str(message["content"]).encode() for message in request["messages"]]
    most = sum(map(len, words)) + TOKENS_PER_MESSAGE * len(words)
    # A service that counts at all counts at least one token.
    return max(1, most * greed // 100), max(1, int(request["max_tokens"]) * greed // 100)


def _step(percent: int) -> str:
    return [step for step, least in STEPS.items() if percent >= least][-1]


@pytest.mark.timeout(60 + EXAMPLES * 2)
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(rules=_RULES, days=_DAYS)
@pytest.mark.slow
def test_no_day_passes_its_cap_whatever_happens_on_it(rules: Rules, days: list[list[Event]]) -> None:
    async def lived(folder: str) -> None:
        life = Life(Path(folder) / "soul.db", rules)
        try:
            await life.start()
            for events in days:
                for event in events:
                    await life.live(event)
                await life.judge()
                life.clock.jump(DAY_S)
        finally:
            await life.stack.aclose()

    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        asyncio.run(lived(folder))
