"""Proves that odd skills of its own, and what others bring about, neither break a SOUL nor change it."""

from __future__ import annotations

import pytest

from tests.running_town import RunningTown, awake, replying


@pytest.mark.parametrize("turns", ["[[mentions]]", "[{mentions: yes}]", '["\\Uffffffff"]'])
async def test_a_page_with_odd_turns_costs_only_that_skill(running_town: RunningTown, turns: str) -> None:
    home = running_town.make_home("rowan")
    page = home.workspace / "skills" / "odd" / "SKILL.md"
    page.parent.mkdir(parents=True)
    page.write_text(f"---\nname: odd\ndescription: Odd.\nturns: {turns}\n---\n\nSay the hour.\n")
    running_town.mind.answer = replying("Tin, at least where I sit. What do you hear?")
    async with awake(home) as life:
        running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
        await life.look()
    assert len(running_town.texts("rowan")) == 1
