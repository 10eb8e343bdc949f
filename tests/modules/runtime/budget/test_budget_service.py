"""Proves what the budget guard counts, refuses and says, over a real file and across restarts.

Proves that `soul budget` shows what was spent, while the SOUL runs and while it does not.
"""

import asyncio
import json
import sqlite3
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.errors import BudgetExceeded, ConfigError
from modules.runtime.budget.policy import Amount, Caps, Share, input_bound
from modules.runtime.budget.prices import Price
from modules.runtime.budget.report import keep_zone, lines, used_up
from modules.runtime.home import Home
from modules.runtime.llm.dialect import Usage
from soul.commands.budget import run_budget
from tests.modules.runtime.budget.budget_rig import CHEAP, MAIN, PRICES, Rules, process, request
from tests.running_town import write_home

BOUND = input_bound(request())


def caps(percent_used: int, *, then: int = 0) -> Caps:
    """Return a cap of which a settled call of 10 000 tokens uses so many percent, plus `then` tokens."""
    return Caps(10_000 * 100 // percent_used + then)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "soul.db"


async def test_the_worst_case_is_on_the_disk_before_the_request_may_leave(path: Path) -> None:
    async with process(path, Rules()) as one:
        leave = await one.ask(request(limit=1000), "mention", "reply")
        other = sqlite3.connect(path)
        (row,) = other.execute("SELECT day, purpose, importance, model, state FROM model_calls")
        other.close()
        assert row == ("2026-01-05", "reply", "mention", MAIN, "reserved")
        assert (leave.request, leave.input_tokens, leave.output_tokens) == (request(limit=1000), BOUND, 1000)
        assert leave.micro_usd == BOUND * 2 + 8000
        report = await one.budget.report()
        assert (report.tokens.used, report.tokens.reserved) == (0, BOUND + 1000)


async def test_a_call_is_settled_once_whatever_is_said_of_it_later(path: Path) -> None:
    async with process(path, Rules()) as one:
        leave = await one.ask(request())
        await one.budget.settle(leave, Usage(300, 20), 99)
        await one.budget.release(leave)
        assert (await one.budget.report()).tokens.used == 320


async def test_what_was_lost_with_a_process_counts_in_full_in_the_next(path: Path) -> None:
    rules = Rules(Caps(BOUND + 1500))
    async with process(path, rules) as one:
        await one.ask(request(limit=1000))
    async with process(path, rules) as two:
        with pytest.raises(BudgetExceeded):
            await two.ask(request(), "owner")
        assert (await two.budget.report()).tokens == Amount(0, BOUND + 1000, BOUND + 1500)


async def test_no_tokens_a_day_means_no_model_call_and_says_how_to_mend_it(path: Path) -> None:
    async with process(path, Rules(Caps(0))) as one:
        with pytest.raises(BudgetExceeded) as caught:
            await one.ask(request(), "owner")
        assert caught.value.retry_after == 12 * 3600
        assert "BUDGET_TOKENS_PER_DAY" in caught.value.remedy
        assert "12 h" in caught.value.remedy


async def test_however_many_ask_at_once_the_day_does_not_pass_its_cap(path: Path) -> None:
    rules = Rules(Caps(20 * (BOUND + 1000) + 100))
    async with process(path, rules) as one, process(path, rules) as two:
        asked = [rig.ask(request(limit=1000), "owner") for rig in (one, two) for _ in range(20)]
        came = await asyncio.gather(*asked, return_exceptions=True)
        refused = [error for error in came if isinstance(error, BudgetExceeded)]
        assert len(refused) == 20
        report = await one.budget.report()
        assert report.tokens.reserved == 20 * (BOUND + 1000)
        assert report.calls == 20


async def test_the_cheaper_model_is_asked_once_the_day_is_well_used_and_at_its_own_price(path: Path) -> None:
    async with process(path, Rules(caps(71, then=50_000), cheap_model=CHEAP)) as one:
        assert (await one.ask(request())).request["model"] == MAIN
    async with process(path, Rules(Caps(14_000), cheap_model=CHEAP)) as two:
        await two.budget.settle(await two.ask(request(limit=300)), Usage(8_000, 1), 1)
        leave = await two.ask(request(limit=300))
        assert (leave.request["model"], leave.step) == (CHEAP, "cheaper")
        assert leave.micro_usd == PRICES[CHEAP].cost(BOUND, 300)


async def test_each_step_is_told_once_a_day_over_restarts_and_by_one_of_two_processes(path: Path) -> None:
    rules, clock = Rules(Caps(100_000)), FakeClock()
    shown = []
    for tokens in (30_000, 41_000, 1_000, 15_000, 8_000, 1_000):
        async with process(path, rules, clock=clock) as one, process(path, rules, clock=clock) as two:
            await one.budget.settle(await one.ask(request(limit=300), "owner"), Usage(tokens, 1), 1)
            await asyncio.gather(one.budget.tidy(), two.budget.tidy())
            shown += one.console.lines + two.console.lines
            told = await one.told()
    assert [step for _, step in told] == ["cheaper", "pressing", "owner_only"]
    assert len(shown) == 3


async def test_a_new_day_begins_with_nothing_used_and_says_so_once(path: Path) -> None:
    clock = FakeClock(datetime(2026, 1, 5, 23, 0, tzinfo=UTC))
    async with process(path, Rules(Caps(10_000)), clock=clock) as one:
        late = await one.ask(request(limit=8000), "owner")
        await one.budget.tidy()
        clock.jump(2 * 3600)
        await one.budget.settle(late, Usage(7_000, 1), 1)
        await one.budget.tidy()
        report = await one.budget.report()
        assert (report.day, report.tokens.used, report.step) == ("2026-01-06", 0, "normal")
        assert await one.told() == [("2026-01-05", "pressing"), ("2026-01-06", "normal")]
        assert [kind for kind, _, _ in one.console.lines] == ["warn", "sys"]


async def test_a_clock_set_back_finds_the_day_as_it_was_left_even_after_a_leap_over_years(path: Path) -> None:
    clock = FakeClock()
    async with process(path, Rules(Caps(BOUND + 1000)), clock=clock) as one:
        await one.ask(request())
        for leap_days in (1, 1000, -2000):
            clock.jump(leap_days * 86_400)
            await one.ask(request(), "owner")
            await one.budget.tidy()
        clock.jump(999 * 86_400)
        assert (await one.budget.report()).day == "2026-01-05"
        with pytest.raises(BudgetExceeded):
            await one.ask(request(), "owner")


async def test_only_the_last_ninety_days_are_kept(path: Path) -> None:
    clock = FakeClock()
    async with process(path, Rules(), clock=clock) as one:
        for _ in range(93):
            await one.ask(request())
            await one.ask(request())
            clock.jump(86_400)
        clock.jump(-86_400)
        assert await one.budget.tidy() == 6
        assert len({row["day"] for row in await one.rows()}) == 90
        assert await one.budget.tidy() == 0


@pytest.mark.parametrize(("cheap_model", "known"), [("", CHEAP), (CHEAP, MAIN)])
async def test_a_cap_in_dollars_needs_a_price_for_every_model_in_use(path: Path, cheap_model: str, known: str) -> None:
    prices = {known: PRICES[known]}
    with pytest.raises(ConfigError, match="price of") as caught:
        async with process(path, Rules(Caps(100, 100), prices, cheap_model)):
            pass
    assert "MODEL_PRICES" in caught.value.remedy


async def test_without_a_cap_in_dollars_an_unknown_price_is_shown_as_unknown(path: Path) -> None:
    async with process(path, Rules(prices={})) as one:
        leave = await one.ask(request())
        assert leave.micro_usd is None
        assert await one.budget.settle(leave, Usage(10, 10), 1) is None
        report = await one.budget.report()
        assert report.usd is None
        assert report.by_model == (Share(MAIN, 1, 20, None),)
        assert "unknown" in "\n".join(lines(report))


async def test_what_was_spent_before_prices_were_known_counts_against_a_new_cap_in_dollars(path: Path) -> None:
    async with process(path, Rules(prices={})) as one:
        await one.budget.settle(await one.ask(request()), Usage(1000, 1000), 1)
        await one.budget.settle(await one.ask(request() | {"model": "forgotten"}), Usage(1000, 1000), 1)
    free = {CHEAP: Price(Fraction(0), Fraction(0))}
    async with process(path, Rules(Caps(10**6, 10**6), PRICES | free, CHEAP)) as two:
        await two.budget.tidy()
        assert [row["cost_micro_usd"] for row in await two.rows()] == [10_000, 10_000]


async def test_the_report_says_what_it_was_for_and_who_answered(path: Path) -> None:
    async with process(path, Rules(Caps.per_day(200_000, 0.5))) as one:
        await one.budget.settle(await one.ask(request(), purpose="reply"), Usage(40_000, 2_000), 1)
        await one.budget.settle(await one.ask(request(), purpose="reply"), Usage(4_000, 0), 10)
        await one.budget.settle(await one.ask(request(), purpose="post"), Usage(1_000, 1_000), 1)
        report = await one.budget.report()
    assert (report.calls, report.step, report.fraction) == (3, "normal", 0.2401)
    assert report.tokens == Amount(48_010, 0, 200_000)
    assert report.usd == Amount(0.11408, 0, 0.5)
    assert report.by_purpose == (Share("reply", 2, 46_010, 0.10408), Share("post", 1, 2_000, 0.01))
    assert report.by_model == (Share(MAIN, 3, 48_010, 0.11408),)
    assert report.resets_in_s == 12 * 3600
    assert lines(report) == [
        "2026-01-05: 24% of the day's budget used, all is well",
        "  tokens   48,010 of 200,000",
        "  dollars  0.1141 of 0.5000",
        "  calls    3; the next day begins in 12 h 0 min",
        "  for      reply: 2 calls, 46,010 tokens, 0.1041 USD",
        "  for      post: 1 call, 2,000 tokens, 0.0100 USD",
        f"  by       {MAIN}: 3 calls, 48,010 tokens, 0.1141 USD",
    ]


@pytest.mark.parametrize("usd", [float("nan"), float("inf"), -1.0])
def test_a_cap_that_is_no_amount_is_named(usd: float) -> None:
    with pytest.raises(ConfigError, match="BUDGET_USD_PER_DAY"):
        Caps.per_day(1, usd)


async def test_what_is_set_aside_is_there_for_its_purpose_and_for_nothing_else(path: Path) -> None:
    async with process(path, Rules(Caps(12_000))) as one:
        await one.budget.hold("coding", tokens=6_000, usd=None)
        rest = await one.ask(request(limit=9_000), "commitment", "reply")
        assert rest.output_tokens == 6_000 - BOUND
        with pytest.raises(BudgetExceeded):
            await one.budget.hold("reviewing", tokens=5_000, usd=None)
        leave = await one.ask(request(limit=5_000), "commitment", "coding")
        report = await one.budget.report()
        assert report.tokens.reserved <= 12_000
        assert report.calls == 2
        await one.budget.settle(leave, Usage(100, 50), 99)
        await one.budget.hold("coding", tokens=5_000, usd=None)
    async with process(path, Rules(Caps(12_000))) as one:
        await one.budget.let_go("coding")
        assert "set aside" not in {row["model"] for row in await one.rows()}


async def test_what_is_set_aside_closes_no_step_and_the_owner_goes_before_it(path: Path) -> None:
    async with process(path, Rules(Caps(20_000))) as one:
        await one.budget.settle(await one.ask(request()), Usage(11_900, 100), 99)
        await one.budget.hold("coding", tokens=7_500, usd=None)
        assert not await one.budget.why_not("own")
        assert (await one.budget.report()).step == "normal"
        with pytest.raises(BudgetExceeded):
            await one.ask(request(limit=1_000 + BOUND), "mention", "reply")
        leave = await one.ask(request(limit=4_000), "owner", "chat")
        report = await one.budget.report()
        assert (leave.output_tokens, report.tokens.taken) == (4_000, 20_000)
        await one.budget.release(leave)
        assert not used_up(await one.budget.report())


async def test_of_what_is_capped_at_most_half_is_set_aside_so_that_it_fits_on_some_day(path: Path) -> None:
    async with process(path, Rules(Caps(1_000_000, 2_000_000))) as one:
        await one.budget.hold("coding", tokens=1_500_000, usd=2.5)
        report = await one.budget.report()
        assert (report.tokens.reserved, report.usd) == (500_000, Amount(0.0, 1.0, 2.0))
        await one.budget.hold("reviewing", tokens=1_000, usd=1.0)
        with pytest.raises(BudgetExceeded):
            await one.budget.hold("drawing", tokens=1_000, usd=0.1)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return write_home(
        tmp_path / "ada",
        "ada",
        OWNER_BLUESKY_SOCIAL_HANDLE_DID="did:plc:owner",
        BUDGET_TOKENS_PER_DAY="100000",
        BUDGET_USD_PER_DAY="2",
        SOUL_TIMEZONE="UTC",
        SOUL_SPEED="1",
    )


async def test_it_reads_beside_the_living_process_and_after_it(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    async with process(home.database, Rules(Caps.per_day(100_000, 2))) as one:
        await one.budget.settle(await one.ask(request(), purpose="reply"), Usage(71_000, 1_000), 1)
        one.clock.jump(86_400)
        await one.budget.settle(await one.ask(request(), purpose="post"), Usage(500, 100), 1)
        run_budget(home.root, as_json=False, clock=one.clock)
        alive = capsys.readouterr().out
    run_budget(home.root, as_json=False, clock=one.clock)
    assert capsys.readouterr().out == alive
    assert alive.splitlines() == [
        "2026-01-06: 1% of the day's budget used, all is well",
        "  tokens   600 of 100,000",
        "  dollars  0.0018 of 2.00",
        "  calls    1; the next day begins in 12 h 0 min",
        "  for      post: 1 call, 600 tokens, 0.0018 USD",
        f"  by       {MAIN}: 1 call, 600 tokens, 0.0018 USD",
        "  2026-01-06       1 call         600 tokens    0.0018 USD  normal",
        "  2026-01-05       1 call      72,000 tokens    0.1500 USD  cheaper",
    ]


async def test_programs_get_json_with_as_many_days_as_they_ask_for(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    async with process(home.database, Rules()) as one:
        for _ in range(3):
            await one.ask(request())
            one.clock.jump(86_400)
        one.clock.jump(-86_400)
    run_budget(home.root, as_json=True, days=2, clock=one.clock)
    found = json.loads(capsys.readouterr().out)
    assert [day["day"] for day in found["days"]] == ["2026-01-07", "2026-01-06"]
    one.clock.jump(86_400)
    run_budget(home.root, as_json=True, days=2, clock=one.clock)
    later = json.loads(capsys.readouterr().out)
    assert [day["day"] for day in later["days"]] == ["2026-01-07"], "days without calls count too"
    assert found["step"] == "normal"
    assert found["tokens"]["reserved"] > 1000
    assert found["tokens"]["cap"] == 100_000


def test_before_the_first_life_there_is_one_clear_line(home: Home) -> None:
    with pytest.raises(ConfigError, match="has not lived here yet"):
        run_budget(home.root, as_json=False)


async def test_it_counts_the_day_by_which_the_soul_lives(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with process(home.database, Rules()) as one:
        await one.budget.settle(await one.ask(request()), Usage(500, 100), 1)
        await one.database.run(lambda connection: keep_zone(connection, "UTC"))
    monkeypatch.setenv("SOUL_TIMEZONE", "Pacific/Kiritimati")
    run_budget(home.root, as_json=True, clock=one.clock)
    assert json.loads(capsys.readouterr().out)["tokens"]["used"] == 600
