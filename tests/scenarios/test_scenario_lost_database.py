"""A SOUL whose database is lost goes on from its last copy: it knows what it knew, and does nothing a second time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from modules.runtime.backup.restoring import GIB, restore_backup, write_backup
from modules.runtime.database import copies
from modules.runtime.home import Home
from modules.services.memory.admission import NewMemory
from soul.commands.run import flush
from tests.outbox_rows import counted
from tests.owner_lines import answered
from tests.running_town import RunningSoul, RunningTown, awake, replying, settings_of
from tests.scenarios.phone import Phone, look

ANSWERS = ("Tin, because it sings.", "Slate, because it remembers.", "Thatch, because it is quiet.")


def damage(home: Home) -> None:
    with home.database.open("r+b") as file:
        file.seek(4096)
        file.write(b"\x5a" * 8192)


async def known(life: RunningSoul) -> list[str]:
    return [memory.body for memory in await life.app.services.knowledge.stores.memories.listed()]


async def beat(life: RunningSoul) -> None:
    await life.app.scheduler.run_guarded("heartbeat")


@pytest.mark.parametrize("copied", ["before the mention was read", "before the answer left"])
async def test_a_mention_has_one_answer_where_the_copy_is_from_before_it(
    running_town: RunningTown, copied: str
) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    running_town.mind.answer = replying(ANSWERS[0])
    async with awake(home) as life:
        running_town.network.post_as(kit, "@rowan.test which roof is louder, tin or slate?")
        if copied == "before the answer left":
            await life.app.scheduler.run_guarded("awareness")
            assert (await counted(life.app.services.outbox))["pending"] == 1
        await beat(life)
        assert running_town.texts("rowan") == []
        await life.look()
    async with awake(home) as life:  # a later epoch of the home's lease than the copy knows
        assert running_town.texts("rowan") == [ANSWERS[0]]
    damage(home)
    running_town.mind.answer = replying(ANSWERS[1])
    async with awake(home) as life:
        told = [line for kind, line, _ in life.console.lines if kind == "error"]
        assert len([line for line in told if copies.newest_first(home.database)[0].name in line]) == 1
        for _ in range(2):
            await life.look()
            life.passes(3600)
        assert running_town.texts("rowan") == [ANSWERS[0]]
        running_town.mind.answer = replying(ANSWERS[2])
        running_town.network.post_as(kit, "@rowan.test and which one is quiet?")
        await life.look()
    assert running_town.texts("rowan") == [ANSWERS[0], ANSWERS[2]]


@pytest.mark.parametrize("lost", ["the database", "the disk"])
async def test_what_the_owner_wrote_by_message_is_done_and_answered_once(
    running_town: RunningTown, tmp_path: Path, lost: str
) -> None:
    home, phone, kept = running_town.make_home("rebecca"), Phone(running_town, "owner"), tmp_path / "kept.soul"
    running_town.mind.answer = replying(ANSWERS[0])
    async with awake(home) as life:
        await look(life)
        phone.says("/status", "Which one remembers?")
        await life.app.scheduler.run_guarded("messages")
        await beat(life)
        write_backup(home, kept)
        assert phone.answers == [], "the copy holds an answer that has not left, and a message that waits"
        await look(life)
        phone.says("/pause I am on a train")
        await look(life)
        phone.says("/resume")
        await look(life)
        phone.says("Tin or slate?")
        await look(life)
        before = phone.answers
        assert len(before) == 5
    if lost == "the disk":
        shutil.rmtree(home.root)
        restore_backup(kept, home.root, "", most_bytes=GIB)
    else:
        damage(home)
    phone.says("And which one is quiet?")
    running_town.mind.answer = replying(ANSWERS[1])
    async with awake(home) as life:
        for _ in range(2):
            await look(life)
        assert phone.answers == [*before, ANSWERS[1]]
        assert life.app.services.control.standing().may_act


async def test_a_message_that_waits_is_answered_where_the_home_was_moved(
    running_town: RunningTown, tmp_path: Path
) -> None:
    home, phone, moved = running_town.make_home("rebecca"), Phone(running_town, "owner"), tmp_path / "moved.soul"
    running_town.mind.answer = replying(ANSWERS[0])
    async with awake(home) as life:
        await look(life)
        phone.says("Which one remembers?")
        await life.app.scheduler.run_guarded("messages")
    write_backup(home, moved, ends=True)
    shutil.rmtree(home.root)
    restore_backup(moved, home.root, "", most_bytes=GIB)
    async with awake(home) as life:
        await look(life)
    assert phone.answers == [ANSWERS[0]]


async def test_it_knows_what_it_knew(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        new = NewMemory("fact", "weir", "The weir was built in 1904")
        await life.app.services.knowledge.stores.memories.save(new, life.app.services.clock.now())
        await answered(life.app.owner, "I saw a heron at the weir.")
        await beat(life)
    damage(home)
    running_town.mind.answer = replying("A heron.")
    async with awake(home) as life:
        assert "The weir was built in 1904" in await known(life)
        await answered(life.app.owner, "What did I see?")
    asked = "\n".join(message.text for message in running_town.mind.asked[-1].messages)
    assert "I saw a heron at the weir." in asked


async def test_what_was_deleted_on_purpose_does_not_come_back(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        new = NewMemory("fact", "weir", "The weir was built in 1904")
        await life.app.services.knowledge.stores.memories.save(new, life.app.services.clock.now())
        await beat(life)
    flush(home, settings_of(home))
    assert not home.database.exists()
    for _ in range(2):
        async with awake(home) as life:
            assert await known(life) == []
            assert [kind for kind, _, _ in life.console.lines if kind in {"warn", "error"}] == []
            await beat(life)
        damage(home)
        async with awake(home) as life:
            assert await known(life) == []
