"""A SOUL whose database is lost continues from its last copy: it knows what it knew, and does nothing twice.

A SOUL also keeps running, and stops as ordered, while another program locks its database for too long. A full disk
fails only the current turn, and the SOUL continues once there is room. Without a free file descriptor the SOUL keeps
running, loses no file, and reports this once.
"""

import asyncio
import os
import random
import resource
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from adapters.atproto.session import SessionFile
from common.errors import DiskFull, IdentityError, MachineTrouble
from common.files import load_state, save_state
from modules.runtime.backup import GIB, restore_backup, write_backup
from modules.runtime.console import SilentConsole
from modules.runtime.control import Control
from modules.runtime.database import copies
from modules.runtime.database.database import Database
from modules.runtime.home import Home, SoulDocument
from modules.runtime.journal.types import Entry
from modules.runtime.status import Stage
from modules.services.memory.admission import NewMemory
from modules.services.owner import OwnerAnswers
from soul.app import open_soul
from soul.commands.run import flush
from tests.hasty_clock import HastyClock
from tests.loopback import held_port
from tests.outbox_rows import counted
from tests.owner_lines import answered
from tests.patience import until
from tests.running_town import HASTE_STEP_BY_STEP, RunningSoul, RunningTown, awake, prompt_of, replying, settings_of
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
    async with awake(home) as life:  # the lease of the home now has a later epoch than in the copy
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
    asked = prompt_of(running_town.mind.asked[-1])
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


async def test_a_database_that_another_program_holds_ends_no_life(running_town: RunningTown) -> None:
    console, ended = SilentConsole(), asyncio.Event()
    with held_port() as port:
        home = running_town.make_home("rowan", SPACE_URL=f"ws://127.0.0.1:{port}")
        async with open_soul(
            settings_of(home), home, console=console, clock=HastyClock(HASTE_STEP_BY_STEP), rng=random.Random(1)
        ) as app:
            await app.log_in()
            database = app.services.database
            await database.run(lambda connection: connection.execute("PRAGMA busy_timeout = 50").fetchone())
            other = sqlite3.connect(home.database, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            app.stages.reach(Stage.CHECKED)
            life = asyncio.create_task(app.run(ended))
            await until(lambda: life.done() or any("[space]" in message for _, message, _ in console.lines))
            await until(lambda: life.done() or any(loop.last_ran_at for loop in app.scheduler.states()))
            assert not life.done()
            other.execute("ROLLBACK")
            await until(lambda: life.done() or app.stages.has_reached(Stage.SETTLED))
            assert not life.done()
            other.execute("BEGIN IMMEDIATE")
            ended.set()
            await life
            other.close()


SAID = "Tin, and you hear each drop of it."


async def fill(life: RunningSoul) -> None:
    """Fill the database until no page is left, as if its disk were full."""
    await life.app.services.database.run(_no_more_pages)
    for size in (4000, 400, 40, 0):
        with suppress(DiskFull):
            while True:
                await life.app.services.journal.record(Entry("life", "ballast", "x" * size, line=None))


def _no_more_pages(connection: sqlite3.Connection) -> None:
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}").fetchone()


async def free(database: Database) -> None:
    await database.run(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchone())


def told(life: RunningSoul, words: str) -> list[str]:
    return [message for _, message, _ in life.console.lines if words in message]


async def test_a_full_disk_fails_the_look_and_the_mention_is_answered_once_there_is_room(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = replying(SAID)
    async with awake(running_town.make_home("rowan")) as life:
        scheduler = life.app.scheduler
        running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder in the rain?")
        await fill(life)
        doomed = asyncio.create_task(scheduler.doomed())
        for _ in range(3):
            outcome = await scheduler.run_guarded("awareness")
            assert not outcome.ran
        assert len(told(life, "awareness: Disk full")) == 1
        assert not doomed.done()
        assert running_town.texts("rowan") == []
        await free(life.app.services.database)
        await life.look()
        assert len(told(life, "awareness: works again")) == 1
        assert running_town.texts("rowan") == [SAID]
        doomed.cancel()


async def test_what_the_owner_said_is_answered_once_there_is_room(running_town: RunningTown) -> None:
    running_town.mind.answer = replying(SAID)
    answers: list[str] = []
    async with awake(running_town.make_home("rowan")) as life:
        app = life.app
        talk = OwnerAnswers(
            app.owner, console=life.console, say=answers.append, clock=app.services.clock, timezone="UTC"
        )
        await talk.receive("tin or slate?")
        await fill(life)
        with pytest.raises(DiskFull):
            await talk.receive("and " + "moss " * 2000)
        answering = asyncio.create_task(talk.run(greet=False))
        await until(lambda: told(life, "This machine allows no answer now"))
        assert not answering.done()
        await free(app.services.database)

        def is_answered() -> bool:
            life.passes(60)
            return bool(answers)

        await until(is_answered)
        answering.cancel()
    assert answers == [SAID]


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Use up the file descriptors of this process, so that it can open nothing more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, soft), hard))
    held: list[int] = []
    try:
        while True:
            try:
                held.append(os.dup(1))
            except OSError:
                break
        yield
    finally:
        for handle in held:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_life_that_can_open_nothing_waits_tells_and_goes_on(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        app = life.app
        doomed = asyncio.create_task(app.scheduler.doomed())
        with no_descriptor_left():
            for name in ("identity-watch", "heartbeat", "identity-watch"):
                await app.scheduler.run_guarded(name)
            with pytest.raises(MachineTrouble):
                await app.services.database.read(lambda connection: connection.execute("SELECT 1"))
            assert not doomed.done()
        assert len(told(life, "identity-watch: This machine cannot use")) == 1
        assert (await app.scheduler.run_guarded("identity-watch")).ran
        assert (await app.scheduler.run_guarded("heartbeat")).ran
        assert len(told(life, "identity-watch: works again")) == 1
        doomed.cancel()


async def test_no_file_is_taken_for_missing_or_damaged(tmp_path: Path) -> None:
    state, session, soul = tmp_path / "state.json", tmp_path / "session.json", tmp_path / "SOUL.md"
    save_state(state, {"kept": 1})
    session.write_text("{}")
    database = await Database.open(tmp_path / "soul.db", {1: "CREATE TABLE kept (x)"})
    await database.close()
    before = names(tmp_path)
    with no_descriptor_left():
        with pytest.raises(MachineTrouble):
            load_state(state, {})
        with pytest.raises(MachineTrouble):
            SessionFile(session, service_url="", identifier="").load()
        with pytest.raises(MachineTrouble):
            SoulDocument(soul)
        with pytest.raises(MachineTrouble):
            await Database.open(tmp_path / "soul.db", {1: "CREATE TABLE kept (x)"}, signs=("status.json",))
        assert "cannot be read now (Too many open files)" in str(Control(tmp_path).standing())
    assert names(tmp_path) == before
    assert load_state(state, {}).data == {"kept": 1}
    with pytest.raises(IdentityError):
        SoulDocument(soul)
