"""Talk in rooms never ends by itself, so it may use half of a day, whoever else there is in the room."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import BudgetExceeded
from common.importance import Importance
from modules.runtime.budget.policy import has_share_left
from modules.runtime.budget.types import Caps, Spent
from modules.runtime.llm.dialect import Usage
from tests.modules.runtime.budget.budget_rig import Rules, process, request

CAPS = Caps(tokens=1000, micro_usd=None)


@pytest.mark.parametrize(
    ("purpose", "importance", "tokens", "left"),
    [
        ("space-participation", "own", 0, True),
        ("space-participation", "own", 399, True),
        ("space-participation", "own", 400, False),
        ("space-participation", "mention", 449, True),
        ("space-participation", "mention", 450, False),
        ("space-participation", "commitment", 499, True),
        ("space-participation", "commitment", 500, False),
        ("space-judgement", "own", 900, False),
        ("owner", "owner", 900, True),
        ("awareness", "own", 900, True),
    ],
)
def test_only_rooms_have_a_share_of_their_own_and_in_it_a_request_comes_last(
    purpose: str, importance: Importance, *, tokens: int, left: bool
) -> None:
    assert has_share_left(purpose, importance, Spent(tokens, 0), CAPS) is left


async def test_a_room_that_talked_away_its_half_of_the_day_is_refused_and_everybody_else_goes_on(
    tmp_path: Path,
) -> None:
    path, rules = tmp_path / "soul.db", Rules(Caps(100_000))
    async with process(path, rules) as one:
        await one.budget.settle(await one.ask(request(), "mention", "space-participation"), Usage(49_000, 1_000), 0)
    async with process(path, rules) as one:
        with pytest.raises(BudgetExceeded, match="talk in rooms may use 50 % of it, the host's requests first"):
            await one.ask(request(), "mention", "space-judgement")
        await one.ask(request(), "own", "expression")
        await one.clock.advance(86_400)
        await one.ask(request(), "own", "space-participation")


async def test_strangers_who_used_their_share_of_the_day_are_refused_and_peers_and_owner_go_on(tmp_path: Path) -> None:
    async with process(tmp_path / "soul.db", Rules(Caps(100_000))) as one:
        await one.budget.settle(await one.ask(request(), "stranger"), Usage(49_000, 500), 0)
        await one.budget.settle(await one.ask(request(), "stranger"), Usage(600, 100), 0)
        with pytest.raises(BudgetExceeded, match="strangers may use 50 % of it, and have"):
            await one.ask(request(), "stranger")
        for importance in ("own", "commitment", "mention", "owner"):
            await one.budget.release(await one.ask(request(), importance))
        await one.clock.advance(86_400)
        await one.ask(request(), "stranger")
