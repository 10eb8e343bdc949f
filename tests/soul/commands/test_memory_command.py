"""Proves what the owner is shown of memory, whether the SOUL is awake or not.

Proves what the owner sees of a prompt without any network, and that looking changes nothing.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.storage.objects import archive_key
from common.clock import FakeClock
from common.errors import SoulError, UsageError
from modules.runtime.database.database import Database
from modules.runtime.database.file import reading
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from modules.services.memory.admission import NewMemory
from modules.services.memory.rows import MemoryStore
from modules.services.sessions.archives import prepared
from soul.command_table import rows_at
from soul.commands.memory import (
    forget_memory,
    run_memory_list,
    run_memory_search,
    run_memory_show,
)
from soul.commands.options import MemoryKind
from soul.commands.owner_commands import OwnerCommands
from tests.known_profiles import set_profiles
from tests.owner_lines import answer_message, answered
from tests.running_town import RunningTown, awake, call, settings_of, write_home
from tests.soul.commands.test_forget_command import places_that_hold
from town.model.types import ChatRequest, Completion

FIRST = NewMemory("lesson", "clocks", "Oil the pivots,\nnever the teeth.", ("repair",), source="owner:terminal")
CHANGED = replace(FIRST, body="Oil nothing.")
PUBLIC = NewMemory("person", "kit", "Kit mends clocks.", trust="stranger", source="bluesky:x")


def make_home(root: Path) -> Home:
    more = {"OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner", "SOUL_TIMEZONE": "UTC", "SOUL_SPEED": "1"}
    return write_home(root, "rowan", **more)


async def live(home: Home, use: Callable[[Database, FakeClock], Awaitable[Any]]) -> None:
    """Run `use` on the home's database, as the living SOUL would."""
    database = await Database.open(home.database, MIGRATIONS)
    await use(database, FakeClock())
    await database.close()


def remember(home: Home, *memories: NewMemory) -> None:
    """Save the memories, one a day, and then both profiles."""

    async def save(database: Database, clock: FakeClock) -> None:
        for memory in memories:
            await MemoryStore(database).save(memory, clock.now())
            await clock.advance(24 * 3600)
        await set_profiles(database, clock, {"name": "Rowan"}, {"name": "Ana"}, "owner")

    asyncio.run(live(home, save))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = make_home(tmp_path / "rowan")
    remember(home, FIRST, PUBLIC)
    return home


def listed(home: Home, **more: Any) -> None:
    run_memory_list(home.root, **{"as_json": False, **more})


def test_the_list_tells_what_was_remembered_newest_first(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    listed(home)
    assert capsys.readouterr().out.splitlines() == [
        "     2  2026-01-06 12:00  person      kit: Kit mends clocks.",
        "     1  2026-01-05 12:00  lesson      clocks: Oil the pivots, never the teeth.",
    ]
    listed(home, as_json=True)
    newest, oldest = json.loads(capsys.readouterr().out)
    assert (newest["subject"], newest["private"]) == ("kit", False)
    assert (oldest["body"], oldest["tags"], oldest["private"]) == (FIRST.body, ["repair"], True)


def test_the_list_can_be_narrowed(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ({"kinds": [MemoryKind.PERSON]}, {"since": "2026-01-06"}, {"limit": 1}):
        listed(home, **more)
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["2"]
    listed(home, since="2026-02-01")
    assert capsys.readouterr().out == "Nothing of that is remembered\n"
    with pytest.raises(SoulError, match="is no day") as caught:
        listed(home, since="yesterday")
    assert "2026-01-31" in caught.value.remedy


def test_one_memory_is_shown_whole_with_what_it_replaced(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    remember(home, CHANGED)
    run_memory_show(home.root, 1, as_json=False)
    shown = capsys.readouterr().out
    assert "[1] lesson: clocks\n    Oil the pivots,\n    never the teeth.\n" in shown
    assert "from       owner:terminal (trust: self), may be told only to you" in shown
    assert "replaced by [3]" in shown
    assert "Under the same subject, newest first:\n  [3] lesson: clocks\n      Oil nothing." in shown
    run_memory_show(home.root, 3, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["body"], [each["id"] for each in found["history"]]) == ("Oil nothing.", [3, 1])
    with pytest.raises(UsageError, match="no memory 9"):
        run_memory_show(home.root, 9, as_json=False)


async def test_one_memory_is_forgotten_by_its_number_and_no_copy_holds_it(running_town: RunningTown) -> None:
    words = "Quagmire lanterns hum beside the seventh weir"
    steps = [call("memory_save", kind="fact", subject="the weir", body=words), Completion("Noted.")]
    running_town.mind.answer = lambda _: steps.pop(0)
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        await answered(life.app.owner, "Keep that of the weir in mind.")
        (kept,) = await life.app.services.knowledge.stores.memories.listed()
        assert kept.body == words
        await life.app.scheduler.run_guarded("heartbeat")
        assert any("copies/soul-" in place for place in places_that_hold(home.root, words))
        commands = OwnerCommands(rows=rows_at("terminal"), app=life.app, ended=asyncio.Event())
        with reading(home.database) as connection:
            connection.execute("SELECT count(*) FROM memories").fetchone()
            line = (await commands.obey(f"/memory forget {kept.id}"))[0][0]
        assert not list(home.memory.glob("copies/soul-*.db"))
        assert line.startswith(f"Memory {kept.id} is forgotten; others may tell the same (`soul memory search ")
        told = [one.entry.summary for one in await life.app.services.journal.recent(5)]
        assert "no memory" in (await commands.obey(f"/memory forget {kept.id}"))[1]
        await life.app.scheduler.run_guarded("heartbeat")
        assert list(home.memory.glob("copies/soul-*.db"))
    assert f"Memory {kept.id} is forgotten" in told
    assert places_that_hold(home.root, words) == []


async def test_a_memory_that_was_forgotten_does_not_come_back_when_the_talk_ends_after_a_restart(
    running_town: RunningTown,
) -> None:
    said = "I keep it: lanterns beside the seventh weir make a humming sound at night, as you like to hear."
    steps = [call("memory_save", kind="fact", subject="the weir", body="The lanterns there hum."), Completion(said)]
    kept = {"summary": "Of lanterns.", "facts": ["the weir: its lanterns hum at night"]}
    running_town.mind.answer = lambda asked: (
        steps.pop(0)
        if steps
        else Completion(f"The ferry sails at nine, as every day of the week. {len(running_town.mind.asked)}")
        if "more_tools" in {one.name for one in asked.offers}
        else call("keep_memories", **(kept if "lanterns" in asked.messages[-1].text else {"summary": "Of a ferry."}))
    )
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        await answered(life.app.owner, "Keep that of the weir in mind.")
        commands = OwnerCommands(rows=rows_at("terminal"), app=life.app, ended=asyncio.Event())
        await commands.obey("/memory forget 1")
    async with awake(home) as life:
        for line in ("When does the ferry sail on Mondays?", "And when on Tuesdays, if it sails at all?"):
            await answered(life.app.owner, line)
        assert said in "".join(str(one) for one in running_town.mind.asked[-1].messages), "the talk itself goes on"
        commands = OwnerCommands(rows=rows_at("terminal"), app=life.app, ended=asyncio.Event())
        line = (await commands.obey("/new"))[0][0]
        assert "with 1 note kept of it; nothing that was said before you had it forgotten is kept" in line
        memories = [one.body for one in await life.app.services.knowledge.stores.memories.listed()]
        await answered(life.app.owner, "Good morning.")
        assert "forgotten" not in (await commands.obey("/new"))[0][0], "that was in another talk"
    assert memories == ["Of a ferry."]


async def test_what_the_owner_says_to_forget_becomes_no_memory(running_town: RunningTown) -> None:
    def mind(asked: ChatRequest) -> Completion:
        offers, line = {one.name for one in asked.offers}, asked.messages[-1]
        if "keep_memories" in offers:
            kept = [word for word in ("sister", "ferry") if word in line.text]
            return call("keep_memories", summary=f"Of a {' and a '.join(kept)}.")
        if line.role == "user" and "Forget that" in line.text:
            return call("more_tools", family="self")
        if line.role == "tool" and "talk_forget" in offers and "Nothing that" not in line.text:
            return call("talk_forget")
        return Completion("Very well, that is how it shall be from now on.")

    running_town.mind.answer = mind
    async with awake(running_town.make_home("rowan")) as life:
        await answered(life.app.owner, "My sister is expecting a child, and nobody knows.")
        await answered(life.app.owner, "Forget that.")
        for line in ("When does the ferry sail on Mondays?", "And when on Tuesdays, if it sails at all?"):
            await answered(life.app.owner, line)
        commands = OwnerCommands(rows=rows_at("terminal"), app=life.app, ended=asyncio.Event())
        await commands.obey("/new")
        memories = [one.body for one in await life.app.services.knowledge.stores.memories.listed()]
    assert memories == ["Of a ferry."]


BOAT = "please remember: my sister's boat is called Fennimore"


def keeps_the_boat(request: ChatRequest) -> Completion:
    offers, asked = {one.name for one in request.offers}, request.messages[-1]
    if "keep_memories" in offers:
        words = {"summary": "Of the boat Fennimore.", "facts": ["boat: the sister's boat is the Fennimore"]}
        return call("keep_memories", **words)
    if asked.role == "user" and BOAT in asked.text and "memory_save" in offers:
        return call("memory_save", kind="fact", subject="the boat", body="The boat of the sister is the Fennimore.")
    return Completion("Noted, and thank you for telling me so plainly.")


async def test_what_the_owner_said_before_a_memory_was_forgotten_is_not_looked_back_on(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = keeps_the_boat
    async with awake(running_town.make_home("rowan")) as life:
        commands = OwnerCommands(rows=rows_at("terminal"), app=life.app, ended=asyncio.Event())
        await answered(life.app.owner, BOAT)
        await answer_message(life.app.owner, "at://owner/1", f"once more, {BOAT}")
        assert "Fennimore" in str(await life.app.services.experiences.open())
        await commands.obey("/memory forget 1")
        await answered(life.app.owner, "Please ask one thing at a time.")
        await commands.obey("/reflect")
        (looked,) = [one for one in running_town.mind.asked if "self_update" in {each.name for each in one.offers}]
    assert "Please ask one thing at a time." in looked.messages[-1].text
    assert "Fennimore" not in str(looked)


@pytest.mark.parametrize("meanwhile", ["a turn", "the end of the talk"])
async def test_a_memory_that_is_forgotten_while_the_model_thinks_does_not_come_back(
    running_town: RunningTown, meanwhile: str
) -> None:
    running_town.mind.answer = keeps_the_boat
    home, asked_for = running_town.make_home("rowan"), "memory_save" if meanwhile == "a turn" else "keep_memories"

    async def forget(request: ChatRequest) -> None:
        if asked_for in {one.name for one in request.offers} and request.messages[-1].role == "user":
            running_town.mind.ponder = None
            await forget_memory(settings_of(home), home, "1")

    async with awake(home) as life:
        for line in (BOAT, "And when does the ferry sail on Mondays?"):
            await answered(life.app.owner, line)
        running_town.mind.ponder = forget
        if meanwhile == "a turn":
            await answered(life.app.owner, "My sister has it, the Fennimore.")
        await life.app.owner.start_afresh()
        assert running_town.mind.ponder is None
        assert await life.app.services.experiences.open() == []
        assert await life.app.services.knowledge.stores.memories.listed() == []


async def test_a_memory_that_is_forgotten_does_not_come_back_from_a_talk_that_waits_for_the_store(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer, home = keeps_the_boat, running_town.make_home("rowan")
    async with awake(home) as life:
        for line in (BOAT, "And when does the ferry sail on Mondays?"):
            await answered(life.app.owner, line)
        blocked = home.store / archive_key("rowan", "x").rpartition("/")[0]
        blocked.parent.mkdir(parents=True, exist_ok=True)
        blocked.write_text("a file, where a folder is wanted")
        assert (await life.app.owner.start_afresh()).status == "waiting"
        blocked.unlink()
        await forget_memory(settings_of(home), home, "1")
        await life.app.scheduler.run_guarded("sessions")
        assert await life.app.services.database.run(prepared) == []
        assert await life.app.services.knowledge.stores.memories.listed() == []
        await life.app.lives.turn_services.leave_notes()
    async with awake(home) as life:
        await answered(life.app.owner, "Good morning.")
        assert "Fennimore" not in str(running_town.mind.asked[-1])


async def test_a_memory_that_is_forgotten_while_the_soul_sleeps_is_not_what_it_wakes_with(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer, home = keeps_the_boat, running_town.make_home("rowan")
    async with awake(home) as life:
        for line in (BOAT, "And when does the ferry sail on Mondays?"):
            await answered(life.app.owner, line)
        await life.app.owner.start_afresh()
        await life.app.lives.turn_services.leave_notes()
    for number in (1, 2, 3):
        await forget_memory(settings_of(home), home, str(number))
    async with awake(home) as life:
        await answered(life.app.owner, "Good morning.")
    assert "Fennimore" not in str(running_town.mind.asked[-1])


def test_all_of_it_works_while_the_soul_is_awake(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    async def meanwhile(database: Database, clock: FakeClock) -> None:
        await MemoryStore(database).save(replace(PUBLIC, subject="ana", body="Ana paints."), clock.now())
        await asyncio.to_thread(listed, home)
        await asyncio.to_thread(run_memory_search, home.root, ["paints"], as_json=False)
        await MemoryStore(database).save(CHANGED, clock.now())

    asyncio.run(live(home, meanwhile))
    assert capsys.readouterr().out.count("ana: Ana paints.") == 2
