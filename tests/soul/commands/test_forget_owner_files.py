"""Proves that a forget reaches SELF.md and its history, and tells the owner of their own files at once, only once."""

import asyncio
from dataclasses import replace

import pytest

from common.files import write_atomic
from modules.runtime.console import SilentConsole
from modules.runtime.home import Home
from modules.services.identity.history import SelfHistory
from modules.services.rights.requests import ForgetRequests
from soul.commands.people import carry_out_requests
from tests.owner_lines import approve_shown
from tests.running_town import RunningSoul, RunningTown, awake, settings_of
from tests.scenarios.phone import Phone, look
from tests.scenarios.test_scenario_rights import answering, home_of
from tests.soul.commands.test_forget_command import places_that_hold

_SELF = """# Rowan

I'm rowan, and I listen to roofs more than I talk.

## Values

- Attention, also where nobody asks for it and nothing comes of it.
{alone}- Rain is worth listening to, however long it takes.
"""
ALONE = "- Patience: {} showed me what it is worth.\n"
SELF = _SELF.format(alone="")
TOGETHER = "Two people taught me to wait:\n@quillon.test and the keeper of the weir.\n"
SKILL = """---
name: weir
description: How I tell of the weir.
---

- When somebody asks how high the water stands, wait until it is seen.
"""
USER = "# Me\n\nI live by the weir.\nMy oldest friend is @quillon.test.\n"
BEWARE = "\n## Beware\n\nNever lend quillon.test a ladder.\n"


def belong(home: Home, self_text: str) -> None:
    """Write about quillon into each file of the home's owner and of its SOUL."""
    write_atomic(home.self_md, self_text)
    write_atomic(home.soul, home.soul.read_text() + BEWARE)
    write_atomic(home.workspace / "USER.md", USER)


async def ask_to_be_forgotten(town: RunningTown, home: Home, did: str) -> None:
    """Let the account ask to be forgotten, after some versions of SELF.md cited it."""
    town.mind.answer = answering({"wipe whatever": "forget"})
    async with awake(home) as soul:
        keeper, before = soul.app.services.self_keeper, home.self_md.read_text()
        for number in range(3):
            await keeper.change(
                f"{before}- Tin, {number}.\n", reason="rain", by="soul", cites=[f"at://{did}/x/{number}"]
            )
        await keeper.change(before, reason="somebody asked", by="soul")
        town.network.post_as(did, "@rowan.test wipe whatever you have got of me")
        await soul.look()


async def carry_out(home: Home) -> list[str]:
    """Carry out the requests now; return the warnings that the terminal shows."""
    requests, console = ForgetRequests(home.memory), SilentConsole()
    for one in requests.all():
        requests.give(replace(one, not_before=one.not_before.replace(year=2020)))
    await asyncio.to_thread(carry_out_requests, settings_of(home), home, console=console)
    assert requests.all() == []
    return [f"{message}: {detail}" for kind, message, detail in console.lines if kind == "warn"]


def files_that_name(home: Home, did: str) -> set[str]:
    return {place.rpartition(": ")[0] for place in places_that_hold(home.root, did, "quillon")}


async def live(soul: RunningSoul) -> None:
    await look(soul)
    await soul.look()


@pytest.mark.slow
async def test_a_citation_goes_from_self_md_and_its_history_and_the_owner_is_told_of_their_own_files(
    running_town: RunningTown,
) -> None:
    home, did, phone = home_of(running_town), running_town.account("quillon"), Phone(running_town, "owner", "rowan")
    phone.says("/status")
    belong(home, _SELF.format(alone=ALONE.format(did)))
    soul_text = home.soul.read_text()
    await ask_to_be_forgotten(running_town, home, did)
    assert files_that_name(home, did) > {"SELF.md", "SOUL.md", "workspace/USER.md"}
    told = await carry_out(home)
    places = "SOUL.md (line {}), workspace/USER.md (line 4)".format(soul_text.count("\n"))
    assert [line.startswith("Somebody was forgotten: ") for line in told] == [True]
    assert told[0].endswith(f": still named in {places}; only you change that")
    assert files_that_name(home, did) == {"SOUL.md", "workspace/USER.md"}
    assert home.self_md.read_text() == SELF
    assert (home.soul.read_text(), (home.workspace / "USER.md").read_text()) == (soul_text, USER)
    with SelfHistory(home).alone() as history:
        assert [history.read(one).decode() for one in history.versions()] == [SELF]
        assert history.held() is None
    for _ in range(2):
        async with awake(home) as soul:
            await live(soul)
            await live(soul)
    messages = [one for one in phone.answers if "was forgotten" in one]
    assert len(messages) == 1
    assert messages[0].endswith(f": {places}")
    assert not any("quillon" in one for one in phone.answers)


@pytest.mark.slow
async def test_what_cannot_go_from_self_md_alone_waits_for_the_owner_and_leaves_no_version_after_their_yes(
    running_town: RunningTown,
) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    text = SELF + "\n## People\n\n" + TOGETHER
    belong(home, text)
    await ask_to_be_forgotten(running_town, home, did)
    told = await carry_out(home)
    assert home.self_md.read_text() == text
    assert "A change of SELF.md waits for your approval: soul drafts show SELF.md" in told[0]
    assert "SELF.md (line 13; a change waits for your approval: soul drafts show SELF.md)" in told[1]
    async with awake(home) as soul:
        await live(soul)
    assert files_that_name(home, did) > {"SELF.md", "SOUL.md", "workspace/USER.md"}
    await asyncio.to_thread(approve_shown, home.root, "SELF.md")
    assert home.self_md.read_text() == SELF + "\n## People\n\n"
    assert files_that_name(home, did) == {"SOUL.md", "workspace/USER.md"}


async def test_a_change_that_waits_already_loses_what_names_the_person_too(running_town: RunningTown) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    before = _SELF.format(alone=ALONE.format(did))
    belong(home, before)
    async with awake(home) as soul:
        proposed = before.replace("rowan", "rowan the second")
        change = await soul.app.services.self_keeper.change(proposed, reason="rain", by="soul", hold="look at it")
        assert change.status == "held"
        goals = soul.app.services.keepers["GOALS.md"]
        for text in (before, before + "- Learn to wait.\n"):
            assert (await goals.change(text, reason="rain", by="soul", cites=[f"at://{did}/x/1"])).status == "changed"
        skill = soul.app.services.self_keeper.of("skills/weir")
        for page in (SKILL + ALONE.format(did), SKILL + ALONE.format(did) + "- Go home.\n"):
            assert (await skill.change(page, reason="rain", by="owner", cites=[did])).status == "changed"
    await ask_to_be_forgotten(running_town, home, did)
    await carry_out(home)
    with SelfHistory(home).alone() as history:
        held = history.held()
    assert held is not None
    assert held.content == proposed.replace(ALONE.format(did), "")
    assert (home.workspace / "GOALS.md").read_text() == SELF + "- Learn to wait.\n"
    assert (home.workspace / "skills" / "weir" / "SKILL.md").read_text() == SKILL + "- Go home.\n"
    assert files_that_name(home, did) == {"SOUL.md", "workspace/USER.md"}


async def test_words_that_the_soul_says_of_itself_stay_though_it_said_them_to_the_person(
    running_town: RunningTown,
) -> None:
    home, did = home_of(running_town), running_town.account("quillon")
    belong(home, SELF)
    said = "Attention, also where nobody asks for it and nothing comes of it."
    running_town.mind.answer = answering({"wipe whatever": "forget"}, said)
    async with awake(home) as soul:
        running_town.network.post_as(did, "@rowan.test wipe whatever you have got of me")
        await soul.look()
    assert running_town.texts("rowan") == [said]
    await carry_out(home)
    assert home.self_md.read_text() == SELF
