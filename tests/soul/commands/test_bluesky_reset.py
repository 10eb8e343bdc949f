"""Proves that all posts of an account are deleted if its owner types yes, and may then be said again."""

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial

import pytest

from common.clock import FakeClock
from common.errors import Auth, HomeLocked
from modules.runtime.home import Home
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.types import ProposedAction
from soul import cli
from soul.commands.bluesky_reset import BACK_OFF_S, PAUSE_S, run_bluesky_reset
from soul.exit_codes import ExitCode
from tests.running_town import RunningTown, awake
from town.atproto.service import Fault

DELETE = "com.atproto.repo.deleteRecord"


class RecordingClock(FakeClock):
    """A clock on which sleeps return at once; `waits` keeps their seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def saying(answer: str) -> Callable[[str], str]:
    return lambda _: answer


async def reset(home: Home, answer: str = "yes", *, dry_run: bool = False, clock: RecordingClock | None = None) -> bool:
    clock = clock or RecordingClock()
    run = partial(run_bluesky_reset, home.root, dry_run=dry_run, ask=saying(answer), clock=clock)
    return await asyncio.to_thread(run)


def fill(running_town: RunningTown, count: int) -> None:
    rowan = running_town.account("rowan")
    top, _ = running_town.network.post_as(rowan, "Tin sings.")
    for number in range(count - 1):
        running_town.network.post_as(rowan, f"Slate hums, number {number}.", reply_to_uri=top if number % 2 else None)


async def test_every_post_and_reply_is_deleted_with_half_a_second_between_them(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home, clock = running_town.make_home("rowan"), RecordingClock()
    fill(running_town, 120)
    running_town.network.post_as(running_town.account("kit"), "This one is mine.")
    assert await reset(home, clock=clock)
    assert running_town.texts("rowan") == []
    assert running_town.texts("kit") == ["This one is mine."]
    assert clock.waits == [PAUSE_S] * 119
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "@rowan.test has 120 posts and replies"
    assert said[1:-1] == [f"{number} of 120" for number in range(10, 120, 10)]
    assert said[-1] == "Deleted 120 of 120"


@pytest.mark.parametrize("answer", ["", "Yes"])
async def test_any_other_word_than_yes_deletes_nothing(running_town: RunningTown, answer: str) -> None:
    home = running_town.make_home("rowan")
    fill(running_town, 2)
    assert await reset(home, answer)
    assert len(running_town.texts("rowan")) == 2


async def test_a_dry_run_lists_all_and_asks_nothing(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan")
    fill(running_town, 3)
    assert await reset(home, dry_run=True)
    said = capsys.readouterr().out.splitlines()
    assert len([line for line in said if line.startswith("at://")]) == 3
    assert said[-1] == "Nothing was deleted"
    assert len(running_town.texts("rowan")) == 3


async def test_what_fails_is_tried_once_more_after_half_a_minute(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home, clock = running_town.make_home("rowan"), RecordingClock()
    fill(running_town, 3)
    running_town.faults.arm(Fault("server_error", DELETE))
    assert await reset(home, clock=clock)
    assert running_town.texts("rowan") == []
    assert clock.waits == [BACK_OFF_S, PAUSE_S, PAUSE_S]
    assert "trying again in 30 s" in capsys.readouterr().out


async def test_what_fails_twice_stays_is_named_and_ends_with_code_1(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan")
    fill(running_town, 3)
    running_town.faults.arm(Fault("server_error", DELETE, times=2))
    assert not await reset(home)
    (left,) = running_town.texts("rowan")
    assert left == "Slate hums, number 1."
    assert "Still there: at://" in capsys.readouterr().out


async def test_what_was_deleted_may_be_said_again_and_what_stayed_may_not(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        for text in ("Tin sings.", "Slate hums."):
            assert (await life.app.services.outbox.submit(ProposedAction(PostBody(text=text)))).accepted
            await life.send()
            life.passes(86_400)
    running_town.faults.arm(Fault("server_error", DELETE, times=2))
    assert not await reset(home)
    assert running_town.texts("rowan") == ["Slate hums."]
    with sqlite3.connect(home.database) as rows:
        kept = [row[0] for row in rows.execute("SELECT uri FROM feed_keys")]
        told = [row[0] for row in rows.execute("SELECT summary FROM journal WHERE loop = 'owner'")]
    rows.close()
    assert len(kept) == 1
    assert told == ["The owner had 1 post deleted"]
    async with awake(home) as life:
        life.passes(7 * 86_400)
        outbox = life.app.services.outbox
        assert (await outbox.submit(ProposedAction(PostBody(text="Tin sings.")))).accepted
        assert not (await outbox.submit(ProposedAction(PostBody(text="Slate hums.")))).accepted


async def test_a_soul_that_is_awake_is_left_alone(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    fill(running_town, 1)
    async with awake(home):
        with pytest.raises(HomeLocked):
            await reset(home)
    assert len(running_town.texts("rowan")) == 1


async def test_a_login_that_is_refused_is_told_with_its_remedy(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", AGENT_BLUESKY_PASSWORD="wrong-password")
    with pytest.raises(Auth, match="Bluesky"):
        await reset(home)
    assert await asyncio.to_thread(cli.run, ["bluesky-reset", "--dry-run", "--home", str(home.root)]) == ExitCode.CONFIG
