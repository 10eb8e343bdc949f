"""Proves that a SOUL that waits for nothing sleeps and misses nothing: news, its time or a command wakes it."""

import itertools
import os
import re
import signal
import sys

import httpx
import pytest

from modules.runtime.home import Home, lock_holder
from modules.runtime.sleep_note import read_note
from soul.commands.status import look, status_lines
from tests.patience import until as comes
from tests.program import soul, until
from tests.running_town import Answering, RunningTown, call
from tests.soul.test_up import answers, ends, up
from tests.town_github import serve_github
from town.model.types import ChatRequest, Completion

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="several SOULs under one supervisor need Linux"),
]
FAST = {"SOUL_SPEED": "200"}
ROOFS = ("slate", "tin", "thatch", "copper", "turf", "glass", "cedar", "clay", "felt", "lead", "zinc", "straw")


def new_words() -> Answering:
    """Return a mind that never says the same twice, since a repetition would not be sent."""
    numbers = itertools.count()

    def answer(request: ChatRequest) -> Completion:
        number = next(numbers)
        words = f"A {ROOFS[number % len(ROOFS)]} roof number {number} drips in its own key, {'tap ' * (number + 1)}."
        for name in ("bluesky_reply", "bluesky_post"):
            if request.force and name in {offer.name for offer in request.offers}:
                return call(name, text=words)
        return Completion(text=words)

    return answer


async def test_what_comes_and_its_time_wake_it_and_what_came_is_answered_once(running_town: RunningTown) -> None:
    running_town.mind.answer = new_words()
    rowan = running_town.make_home("rowan", **FAST)
    async with up(rowan) as process:
        await until(process, "rowan: asleep")
        assert lock_holder(rowan) is None
        note = read_note(rowan.memory)
        assert note
        assert note.did == running_town.account("rowan")
        assert "asleep since" in (await soul("status", "--home", str(rowan.root))).output

        await answers(running_town, "rowan", len(running_town.texts("rowan")) + 1)
        assert "something came" in await until(process, "rowan: asleep")

        thoughts = sum(post.reply is None for post in running_town.network.posts(1000))
        assert "its time has come" in await until(process, "its time has come")
        await until(process, "rowan: asleep")
        assert sum(post.reply is None for post in running_town.network.posts(1000)) > thoughts, (
            "it woke for its thought"
        )
        assert (await ends(process))[0] == 0
    replies = [post for post in running_town.network.posts(1000) if post.reply and post.author.did == note.did]
    assert len(replies) == 1


async def test_a_command_that_writes_something_for_it_wakes_it(running_town: RunningTown) -> None:
    running_town.mind.answer = new_words()
    running_town.account("kit")
    rowan = running_town.make_home("rowan", SOUL_SPEED="50")
    async with up(rowan) as process:
        await until(process, "rowan: asleep")
        assert (await soul("status", "--home", str(rowan.root))).code == 0
        assert lock_holder(rowan) is None, "who only looks wakes nobody"
        assert (await soul("mute", "@kit.test", "--home", str(rowan.root))).code == 0
        await until(process, "something was written for it")
        await until(process, "rowan: asleep")
        assert (await ends(process))[0] == 0
    assert "would wake it, has ended" in (await soul("status", "--home", str(rowan.root))).output


async def test_a_watcher_that_was_killed_is_started_again_and_misses_nothing(running_town: RunningTown) -> None:
    running_town.mind.answer = new_words()
    rowan = running_town.make_home("rowan", **FAST)
    async with up(rowan) as process:
        told = await until(process, "rowan: asleep")
        watcher = re.search(r"watch: process (\d+)", told)
        assert watcher
        os.kill(int(watcher[1]), signal.SIGKILL)
        running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, tin or slate?")
        assert "watch: process" in await until(process, "rowan: woken")
        assert (await ends(process))[0] == 0


async def test_who_slept_sleeps_on_under_the_next_supervisor_until_something_comes(running_town: RunningTown) -> None:
    running_town.mind.answer = new_words()
    rowan = running_town.make_home("rowan", SOUL_SPEED="50")
    async with up(rowan) as process:
        await until(process, "rowan: asleep")
        process.kill()
    async with up(rowan) as process:
        assert "rowan: process" not in await until(process, "watch: process")
        await comes(lambda: "asleep since" in _told(rowan), what="a watcher that goes on")
        running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, tin or slate?")
        assert "something came" in await until(process, "rowan: woken")
        await until(process, "rowan: asleep")
        process.kill()
    rowan.soul.write_text(f"{rowan.soul.read_text()}\nIt likes rain.\n")
    async with up(rowan) as process:
        assert "cannot be used" in await until(process, "rowan: woken")
        await ends(process)


def _told(home: Home) -> str:
    return "\n".join(status_lines("rowan", look(home)))


async def test_who_is_not_to_sleep_stays_awake(running_town: RunningTown) -> None:
    running_town.mind.answer = new_words()
    rowan = running_town.make_home("rowan", SOUL_SPEED="200", SLEEP="off")
    wren = running_town.make_home("wren", **FAST)
    async with up(rowan, wren) as process:
        assert "rowan: asleep" not in await until(process, "wren: asleep")
        assert lock_holder(rowan)
        assert (await ends(process))[0] == 0


async def test_who_builds_sleeps_too_and_what_comes_on_github_wakes_it(running_town: RunningTown) -> None:
    running_town.mind.answer = new_words()
    async with serve_github(running_town) as github:
        rowan = github.make_home(**FAST)
        async with up(rowan) as process:
            await until(process, "rowan: asleep")
            note = read_note(rowan.memory)
            assert note
            assert [*note.github] == ["/notifications"]
            kit = github.network.create_account("kit")
            github.network.open_issue(github.repo, kit, title="Leaks", body="Which roof is dry, @rowan?")
            assert "something came" in await until(process, "something came")
            assert (await ends(process))[0] == 0


async def test_status_does_not_say_that_it_wakes_where_nobody_watches(running_town: RunningTown) -> None:
    running_town.mind.answer = new_words()
    rowan = running_town.make_home("rowan", **FAST)
    async with up(rowan) as process:
        told = await until(process, "rowan: asleep")
        watcher = int(re.search(r"watch: process (\d+)", told)[1])  # type: ignore[index]
        os.kill(process.pid, signal.SIGSTOP)
        os.kill(watcher, signal.SIGKILL)  # all at once, as when the machine loses power
        process.kill()
    said = (await soul("status", "--home", str(rowan.root))).output
    assert "would wake it, has ended" in said
    assert "until something comes" not in said


async def test_a_mention_that_the_watcher_saw_before_the_soul_could_is_not_missed(running_town: RunningTown) -> None:
    """Bluesky answers from many servers, and one may lag behind another."""
    running_town.mind.answer = new_words()
    rowan = running_town.make_home("rowan", SOUL_SPEED="50")
    running_town.account("rowan")
    kit, faults = running_town.account("kit"), f"{running_town.atproto_url}/town/faults"
    login, notifications = "com.atproto.server.createSession", "app.bsky.notification.listNotifications"
    async with httpx.AsyncClient() as client:
        for fault in (
            {"kind": "hang", "request": login, "times": 2, "seconds": 0.3},  # one of the SOUL, one of the watcher
            {"kind": "hang", "request": f"{notifications}?*limit=25*", "times": 1000, "seconds": 0.0},
            {"kind": "lags", "request": notifications, "times": 100_000, "seconds": 0.7},  # what the SOUL requests
        ):
            (await client.post(faults, json=fault)).raise_for_status()
    async with up(rowan) as process:
        armed = running_town.faults
        await comes(lambda: login not in {one.request for one in armed.armed}, what="a watcher that is about to look")
        running_town.network.post_as(kit, "Morning @rowan.test, tin or slate?")
        await until(process, "rowan: asleep")
        asked = (message.text for request in running_town.mind.asked for message in request.messages)
        assert any("tin or slate" in text for text in asked), "it thought about it before it fell asleep"
        await ends(process)
