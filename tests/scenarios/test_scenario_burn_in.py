"""A version that fails after `soul upgrade` is put back automatically, once; what the SOUL did stays done."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from modules.runtime.database import marks
from modules.runtime.home import Home
from soul.exit_codes import ExitCode
from tests.patience import until as until_true
from tests.program import until
from tests.running_town import RunningTown, call
from tests.scenarios.phone import Phone
from tests.versions import Edits, Installation
from town.model.types import ChatRequest, Completion

CRASHES: Edits = {
    "soul/app.py": (
        "        self.stages.reach(Stage.LOGGED_IN)\n",
        "        self.stages.reach(Stage.LOGGED_IN)\n        __import__('os').kill(__import__('os').getpid(), 9)\n",
    )
}
FAILS: Edits = {
    "modules/lives/bluesky/perceive.py": (
        "return await self.expression.run_if_due()",
        "raise ValueError('planted')",
    )
}


def lives_here(home: Home) -> dict[str, Any]:
    """Return what the database of the home holds about its program; {} if nothing."""
    with closing(sqlite3.connect(home.database)) as connection:
        row = connection.execute("SELECT value FROM marks WHERE name = ?", (marks.PROGRAM,)).fetchone()
    return dict(json.loads(row[0])) if row else {}


def replies_alone(request: ChatRequest) -> Completion:
    offered = {offer.name for offer in request.offers}
    said = "Slate, because it remembers the rain."
    return call("bluesky_reply", text=said) if "bluesky_reply" in offered else Completion(text="Nothing to say.")


class World:
    """A SOUL with version 0.4.0, its owner, and somebody who asks it something."""

    def __init__(self, town: RunningTown, folder: Path) -> None:
        self.town, self.phone = town, Phone(town, "owner", "rowan")
        self.home = town.make_home("rowan")
        self.program = Installation(folder / "program")
        self.program.install("0.4.0")
        town.mind.answer = replies_alone

    async def lives_well(self) -> None:
        async with self.program.started(self.home, "run") as process:
            await until(process, "Awake")
            await until_true(lambda: lives_here(self.home) and [*self.program.kept()])
            process.terminate()
            assert await process.wait() == 0

    def asks(self) -> str:
        return self.town.network.post_as(self.town.account("kit"), "@rowan.test tin or slate?")[0]

    def replies_to(self, uri: str) -> int:
        did = self.town.account("rowan")
        posts = self.town.network.posts(1000)
        return sum(one.author.did == did and one.reply is not None and one.reply.parent.uri == uri for one in posts)

    def told(self) -> list[str]:
        return [one for one in self.phone.answers if "is put back" in one]

    async def crashes(self, times: int = 3) -> None:
        for _ in range(times):
            assert (await self.program.run(self.home, "run")).code == -9

    async def goes_on(self, uri: str, *, said: str = "") -> None:
        """Check that the earlier version runs, answers the post at `uri` once, and tells the owner once."""
        async with self.program.started(self.home, "run") as process:
            assert said in await until(process, "Awake")
            await until_true(lambda: self.replies_to(uri) and self.told())
            beside = await self.program.run(self.home, "run")
            assert beside.code == ExitCode.IN_USE, beside.output
            process.terminate()
            assert await process.wait() == 0
        assert self.replies_to(uri) == 1
        assert len(self.told()) == 1


@pytest.fixture
def world(running_town: RunningTown, tmp_path: Path) -> World:
    return World(running_town, tmp_path)


@pytest.mark.smoke
async def test_a_version_that_crashes_again_and_again_goes_back_and_is_told_once(world: World) -> None:
    await world.lives_well()
    world.program.install("0.5.0", CRASHES)
    upgraded = await world.program.run(world.home, "upgrade")
    assert "if it goes wrong, version 0.4.0 comes back" in upgraded.output
    status = await world.program.run(world.home, "status")
    assert "version 0.5.0 is on trial: 0.0 of 48 hours lived" in status.output
    asked = world.asks()
    await world.crashes()
    await world.goes_on(asked, said="0.4.0 goes on")
    await world.goes_on(asked, said="0.4.0 goes on")
    status = await world.program.run(world.home, "status")
    assert "version 0.5.0 was put back: it crashed 3 times in a row; version 0.4.0 is to live here" in status.output
    world.program.install("0.5.1")
    upgraded = await world.program.run(world.home, "upgrade")
    assert "if it goes wrong, version 0.4.0 comes back" in upgraded.output
    async with world.program.started(world.home, "run") as process:
        assert "goes on" not in await until(process, "Awake")


@pytest.mark.slow
async def test_a_version_whose_program_fails_in_a_new_place_goes_back_within_its_life(world: World) -> None:
    await world.lives_well()
    world.program.install("0.5.0", FAILS)
    assert (await world.program.run(world.home, "upgrade")).code == 0
    asked = world.asks()
    async with world.program.started(world.home, "run") as process:
        said = await until(process, "goes on")
        assert "times by a fault of the program, and never before" in said
        await until(process, "Awake")
        await until_true(lambda: world.replies_to(asked) and world.told())
        process.terminate()
        assert await process.wait() == 0
    await world.goes_on(asked, said="0.4.0 goes on")


@pytest.mark.slow
async def test_where_no_copy_is_kept_a_bad_version_stays_stopped_until_the_one_before_is_installed(
    world: World,
) -> None:
    await world.lives_well()
    world.program.state = "another machine"
    world.program.install("0.5.0", CRASHES)
    upgraded = (await world.program.run(world.home, "upgrade")).output
    assert "version 0.4.0 comes back once you install it" in upgraded
    asked = world.asks()
    await world.crashes()
    for _ in range(2):
        ended = await world.program.run(world.home, "run")
        assert ended.code == ExitCode.CONFIG
        assert "Install version 0.4.0." in ended.output
    status = json.loads((await world.program.run(world.home, "status", "--json")).output)
    assert status["burnIn"]["bad"] == "it crashed 3 times in a row"
    world.program.install("0.4.0")
    await world.goes_on(asked)
