"""Proves that `soul budget` shows what was spent, while the SOUL runs and while it does not."""

import json
from pathlib import Path

import pytest

from common.errors import ConfigError
from modules.runtime.budget.report import keep_zone
from modules.runtime.budget.types import Caps
from modules.runtime.home import Home
from modules.runtime.llm.dialect import Usage
from soul.commands.budget import run_budget
from tests.modules.runtime.budget.budget_rig import MAIN, Rules, process, request
from tests.running_town import write_home


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
