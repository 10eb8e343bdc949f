"""Proves that what one owner said in private reaches no prompt, page or command of the next, and is not deleted."""

import asyncio
from functools import partial

import pytest

from modules.runtime.database.file import reading
from modules.runtime.home import Home
from modules.services.memory.admission import Query
from modules.services.owner import begin_with
from modules.services.sessions import talks
from soul.commands.memory import run_memory_show
from soul.dashboard.facts import PageFacts
from tests.owner_lines import answered
from tests.running_town import RunningTown, awake, prompt_of, replying, settings_of
from tests.scenarios.test_scenario_change_of_mind import use

SECRET = "weir lanterns hum"


async def seen_by(town: RunningTown, home: Home, owner: str) -> list[str]:
    """Return what an owner is shown that holds the secret, and the prompts of a line of theirs that hold it."""
    async with awake(home) as life:
        services, memories = life.app.services, life.app.services.knowledge.stores.memories
        await services.database.run(partial(begin_with, owner_did=town.account(owner)))
        town.mind.asked.clear()
        town.mind.answer = replying("As you like.")
        await answered(life.app.owner, "What do you know about the weir?")
        shown = [prompt_of(each) for each in town.mind.asked]
        found = [*await memories.listed(), *await memories.search(Query("weir lanterns"), services.clock.now())]
        found += [one for number in range(1, 9) for one in await memories.history(number)]
        with reading(home.database) as connection:
            keys = [one.session_key for one in talks.listed(connection, 50)]
        shown += map(str, found)
        shown.append(str(PageFacts(home, services.settings, services.clock).talk()))
        shown.append(str(keys) if "former" in str(keys) else "")
    return [one for one in shown if SECRET in one or "former" in one]


async def test_a_new_owner_is_shown_nothing_of_what_the_former_one_said_in_private(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    running_town.mind.answer = replying("Noted.")
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        await life.app.services.database.run(partial(begin_with, owner_did=running_town.account("owner")))
        await answered(life.app.owner, f"At night the {SECRET}.")
        await use(life, "memory_save", "Remember it.", kind="fact", subject="the weir", body=f"The {SECRET}.")
    assert await seen_by(running_town, home, "owner"), "the owner still sees it"
    assert await seen_by(running_town, home, "bea") == []
    with pytest.raises(Exception, match="no memory 1"):
        await asyncio.to_thread(run_memory_show, home.root, 1, as_json=False)
    assert SECRET not in capsys.readouterr().out
    assert await seen_by(running_town, home, "owner"), "nothing was deleted"
    assert settings_of(home).agent_name
