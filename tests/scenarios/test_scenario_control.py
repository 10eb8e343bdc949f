"""The owner controls a running SOUL on a real network: pause, resume, approve, reject, and a used-up budget."""

import asyncio
import sqlite3

from common.clock import ScaledClock, SystemClock, iso, local
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.control import COLLECTION, EVERY_SOUL, Control, note_start
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.services.outbox import approval
from tests.outbox_rows import counted
from tests.patience import until
from tests.running_town import RunningSoul, RunningTown, awake
from town.atproto.service import Fault

PUT = "com.atproto.repo.putRecord"


async def rounds(life: RunningSoul, number: int = 5) -> None:
    """Run the loops for control, posts and the outbox a number of times."""
    for _ in range(number):
        for name in ("control", "awareness", "outbox"):
            await life.app.scheduler.run_guarded(name)


async def test_a_pause_stops_what_was_already_accepted_and_resuming_sends_it(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    uri, _ = running_town.network.post_as(kit, "Morning @rowan.test, which roof is louder in the rain?")
    async with awake(home) as life:
        await life.app.scheduler.run_guarded("awareness")
        (home.memory / "PAUSE").touch()
        await rounds(life)
        assert running_town.texts("rowan") == []
        (home.memory / "PAUSE").unlink()
        await life.send()
    (sent,) = [post for post in running_town.network.posts() if post.author.handle == "rowan.test"]
    assert sent.reply
    assert sent.reply.parent.uri == uri


async def test_a_pause_stops_a_write_that_waits_on_its_way_and_nothing_is_lost(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    running_town.network.post_as(kit, "Morning @rowan.test, which roof is louder in the rain?")
    async with awake(home) as life:
        await life.app.scheduler.run_guarded("awareness")
        running_town.faults.arm(Fault("rate_limited", PUT, seconds=250))
        sending = asyncio.create_task(life.app.services.outbox.deliver_due())
        await until(lambda: not running_town.faults.armed, what="the write")
        Control(home.memory).pause("wait")
        assert (await sending).done == 0
        assert await counted(life.app.services.outbox) == {"pending": 1}
    assert running_town.texts("rowan") == []


async def test_while_paused_it_perceives_but_asks_no_model_and_meets_everybody_after(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    async with awake(home) as life:
        life.app.services.control.pause("a quiet day")
        running_town.network.post_as(kit, "Morning @rowan.test, which roof is louder in the rain?")
        await rounds(life)
        await life.app.lives.bluesky.expression.express()
        now = await life.app.services.situation()
        assert (now.waits.posts, running_town.mind.asked, running_town.texts("rowan")) == (1, [], [])
        life.app.services.control.resume()
        await life.look()
    assert len(running_town.texts("rowan")) == 1


async def test_the_owners_record_on_bluesky_pauses_and_its_end_resumes(running_town: RunningTown) -> None:
    home, owner = running_town.make_home("rowan", SOUL_SPEED="1000"), running_town.account("owner")
    running_town.network.put(owner, COLLECTION, EVERY_SOUL, {"$type": COLLECTION, "reason": "asleep"})
    async with awake(home) as life:
        running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder?")
        await rounds(life)
        assert (running_town.texts("rowan"), running_town.mind.asked) == ([], [])
        running_town.network.delete(owner, COLLECTION, EVERY_SOUL)

        async def may_act() -> bool:
            await rounds(life, 1)
            return life.app.services.control.standing().may_act

        await until(may_act)
        await rounds(life, 1)
        await life.send()
        said = [message for _, message, _ in life.console.lines]
    assert len(running_town.texts("rowan")) == 1
    assert said.count("Paused: nothing public leaves") == 1
    assert said.count("Going on: what waited may leave again") == 1


async def test_a_record_that_was_made_while_it_slept_holds_before_the_first_act_and_the_profile(
    running_town: RunningTown,
) -> None:
    home, owner = running_town.make_home("rowan"), running_town.account("owner")
    running_town.network.put(owner, COLLECTION, EVERY_SOUL, {"$type": COLLECTION, "reason": "asleep"})
    async with awake(home) as life:
        await life.app.lives.bluesky.expression.express()
        await life.app.services.outbox.deliver_due()
    profile = running_town.network.profile(running_town.account("rowan"))
    assert (running_town.mind.asked, running_town.texts("rowan")) == ([], [])
    assert "labels" not in (profile.value if profile else {})


async def test_what_was_paused_at_its_start_says_that_it_is_a_bot_once_it_may_act(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", OPERATOR_CONTACT="someone@example.com")
    Control(home.memory).pause("not yet")
    async with awake(home) as life:
        life.app.services.control.resume()
        await rounds(life, 2)
    profile = running_town.network.profile(running_town.account("rowan"))
    assert profile
    assert profile.value["labels"]["values"] == [{"val": "bot"}]
    assert profile.value["description"].endswith("someone@example.com")


async def test_the_third_start_in_a_row_only_listens_until_the_owner_resumes(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="20")
    running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder?")
    for _ in range(2):
        note_start(home.memory, Control(home.memory), ScaledClock(SystemClock(), 20))
    async with awake(home) as life:
        assert [kind for kind, message, _ in life.console.lines if "SAFE MODE" in message] == ["error"]
        await rounds(life, 1)
        assert (running_town.mind.asked, running_town.texts("rowan")) == ([], [])
        life.app.services.control.resume()
        await rounds(life, 1)
        assert len(running_town.mind.asked) == 1


async def test_with_drafts_on_a_reply_waits_for_the_owner_who_may_answer_from_elsewhere(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder?")
    async with awake(home) as life:
        await rounds(life)
        (held,) = await life.app.services.outbox.held()
        assert (running_town.texts("rowan"), len(running_town.mind.asked)) == ([], 1)
        clock, beside = SystemClock(), await Database.beside(home.database)
        journal, now = Journal(beside, SilentConsole(), clock, Redactor()), clock.now()
        await journal.record_all_with(lambda connection: approval.approve(connection, [held.id], now))
        await beside.close()
        await rounds(life)
        assert len(running_town.mind.asked) == 1
    assert len(running_town.texts("rowan")) == 1


async def test_without_a_budget_posts_wait_with_one_line_and_no_hammering(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", BUDGET_TOKENS_PER_DAY="0")
    for name in ("kit", "bea", "sam"):
        running_town.network.post_as(running_town.account(name), "Morning @rowan.test, which roof is louder?")
    async with awake(home) as life:
        await rounds(life)
        await life.app.lives.bluesky.expression.express()
        first_thought_at = life.app.lives.bluesky.expression.next_at
        now = await life.app.services.situation()
        said = [message for _, message, _ in life.console.lines]
    assert (now.waits.posts, running_town.mind.asked) == (3, [])
    assert len([message for message in said if "has to wait, for at least" in message]) == 1
    assert len([message for message in said if "No thought before" in message]) == 1
    assert first_thought_at is not None
    assert first_thought_at > SystemClock().now()


async def test_when_little_is_left_the_owner_is_answered_and_the_others_wait(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", BUDGET_TOKENS_PER_DAY="1000000")
    async with awake(home) as life:
        await life.app.services.database.run(_spend_96_percent)
        running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder?")
        await rounds(life, 2)
        assert running_town.mind.asked == []
        mine, _ = running_town.network.post_as(running_town.account("owner"), "@rowan.test are you well today?")
        await rounds(life, 2)
        await life.send()
        now = await life.app.services.situation()
    (sent,) = [post for post in running_town.network.posts() if post.author.handle == "rowan.test"]
    assert sent.reply
    assert (sent.reply.parent.uri, now.waits.posts) == (mine, 1)


def _spend_96_percent(connection: sqlite3.Connection) -> None:
    now = SystemClock().now()
    day = f"{local(now):%Y-%m-%d}"
    connection.execute(
        "INSERT INTO model_calls (id, day, at, purpose, importance, model, state, input_tokens, output_tokens,"
        " cost_micro_usd) VALUES ('earlier', ?, ?, 'test', 'owner', 'test-mind', 'settled', 950000, 10000, 0)",
        (day, iso(now)),
    )
