"""Proves that the controls on the demo's page act on real homes: they explain, decide drafts and pause a living SOUL.

What a killed demo left is removed by the next one; a demo that lives, or another folder, never is.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pytest

from common.clock import SystemClock
from common.errors import SoulError
from common.settings import load_settings
from modules.runtime.control import Control
from modules.runtime.home import Home, HomeLock
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.types import ProposedAction
from modules.services.rituals.policy import memo_cause, opening_cause
from soul.commands.demo import HomeControls, demo_folder, environment_of, make_home
from tests.running_town import RunningSoul, RunningTown, awake
from tests.scenarios.test_scenario_own_skills import NAME, ONE, TWO, page_of, proposing, reflect
from town.town import open_town

QUESTION = "Morning @rowan.test, which roof is louder in the rain?"


async def hold(life: RunningSoul, text: str, cause: str = "expression") -> str:
    submitted = await life.app.services.outbox.submit(
        ProposedAction(PostBody(text=text), cause_id=cause, hold="as you wished")
    )
    assert submitted.held
    return submitted.intent.id


async def test_it_tells_why_in_plain_words(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    theirs, _ = running_town.network.post_as(kit, QUESTION)
    controls = HomeControls({"rowan.test": home})
    async with awake(home) as life:
        await life.look()
        told = await controls.why("rowan.test", theirs)
    assert told.title == "Why: reply to @kit.test (done)"
    assert told.lead.startswith("@kit.test wrote to it, it wrote an answer")
    assert told.lead.count(".") == told.lead.count("kit.test") + 1, "one sentence"
    assert told.steps[0].text == "@kit.test mentioned it"
    assert told.steps[0].details == (f"“{QUESTION}”",), "no bare address"
    assert any("Because: question asked" in step.details for step in told.steps)


async def test_a_yes_lets_a_draft_out_and_a_no_keeps_it_in(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    controls = HomeControls({"rowan.test": home})
    async with awake(home) as life:
        yes, no = await hold(life, "A tin roof sings."), await hold(life, "A slate roof listens.")
        assert [one["id"] for one in (await life.app.status_report.gather())["drafts"]] == [yes, no]
        await controls.decide("rowan.test", yes, yes=True)
        await controls.decide("rowan.test", no, yes=False)
        await life.send()
        with pytest.raises(SoulError, match="does not wait any more"):
            await controls.decide("rowan.test", no, yes=True)
        told = await controls.why("rowan.test", no)
        assert (await life.app.status_report.gather())["drafts"] == []
    assert running_town.texts("rowan") == ["A tin roof sings."]
    assert told.title == "Why: post (the owner rejected it)"
    assert told.lead == "Its schedule called for a post, and it wrote this, but that has not left."
    assert any("the owner rejected it" in " ".join(step.details) for step in told.steps)


async def test_a_yes_lets_a_skill_of_its_own_in_only_as_it_was_shown(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    controls = HomeControls({"rowan.test": home})
    async with awake(home) as life:
        await reflect(running_town, life, proposing(ONE))
        (held,) = (await life.app.status_report.gather())["growth"]["waiting"]
        assert (held["file"], held["reason"]) == (NAME, "How I talk of roofs.")
        assert "+- Say tin by `bluesky_reply`." in held["diff"]
        await reflect(running_town, life, proposing(TWO))
        with pytest.raises(SoulError, match="was not shown to you"):
            await controls.decide("rowan.test", f"{NAME}@{held['at']}", yes=True)
        assert not (home.workspace / NAME).exists()
        (held,) = (await life.app.status_report.gather())["growth"]["waiting"]
        await controls.decide("rowan.test", f"{NAME}@{held['at']}", yes=True)
        assert TWO in page_of(home)
        await reflect(running_town, life, proposing(ONE))
        (held,) = (await life.app.status_report.gather())["growth"]["waiting"]
        await controls.decide("rowan.test", f"{NAME}@{held['at']}", yes=False)
        assert (await life.app.status_report.gather())["growth"]["waiting"] == []
    assert TWO in page_of(home)


async def test_at_the_highest_speed_each_resident_can_read_its_settings(tmp_path: Path) -> None:
    async with open_town(homes=tmp_path, controls=HomeControls({})) as town:
        homes = [make_home(tmp_path / one.name, one, town, 1000) for one in town.residents]
    assert {load_settings(home.root).soul_speed for home in homes} == {1000}


def test_no_setting_of_the_environment_reaches_a_resident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ALARM_URL", "storage_url", "SLEEP_WATCH_URI", "SOUL_APPROVL"):
        monkeypatch.setenv(name, "https://alarms.test")
    assert "https://alarms.test" not in environment_of(tmp_path).values()
    assert environment_of(tmp_path)["PATH"]


async def test_what_began_with_something_else_is_no_thought_of_its_own(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    controls = HomeControls({"rowan.test": home})
    causes = (opening_cause("roof-hour", date(2026, 1, 5)), memo_cause("roof-hour", date(2026, 1, 5)), "", "other:1")
    async with awake(home) as life:
        for number, cause in enumerate(causes):
            told = await controls.why("rowan.test", await hold(life, f"A roof of {number} slates.", cause))
            assert "called for a post" not in told.lead
            assert ("ritual" in told.lead) is cause.startswith("ritual")


async def test_a_pause_is_given_and_taken_back(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    controls = HomeControls({"rowan.test": home})
    await controls.pause("rowan.test", paused=True)
    assert Control(home.memory).standing().paused
    await controls.pause("rowan.test", paused=False)
    assert Control(home.memory).standing().may_act


async def test_what_speaks_against_going_on_beside_the_pause_is_said(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    Control(home.memory).heed_record("I am away")
    with pytest.raises(SoulError, match="I am away"):
        await HomeControls({"rowan.test": home}).pause("rowan.test", paused=False)


async def test_who_does_not_live_here_is_nobody(running_town: RunningTown) -> None:
    controls = HomeControls({})
    with pytest.raises(SoulError, match="Nobody"):
        await controls.why("../rowan", "at://x/y/1")


_HOLDS = """
import sys, time
from pathlib import Path
from soul.commands.demo import demo_folder
with demo_folder(Path(sys.argv[1])) as folder:
    (folder / "secret").write_text("a password")
    print(folder, flush=True)
    time.sleep(600)
"""


@contextmanager
def held(within: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a process that holds a demo's folder, and yield both."""
    words = [sys.executable, "-c", _HOLDS, str(within)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def killed(within: Path) -> Path:
    """Return the folder that a killed demo left."""
    with held(within) as (process, folder):
        process.kill()
        process.wait()
    assert (folder / "secret").exists()
    return folder


def test_the_folder_of_a_killed_demo_is_removed_at_the_next_start_and_one_that_lives_is_not(tmp_path: Path) -> None:
    left = killed(tmp_path)
    with held(tmp_path) as (_, alive):
        assert not left.exists()
        with demo_folder(tmp_path) as own:
            assert sorted(tmp_path.iterdir()) == sorted([alive, own])
            assert (alive / "secret").read_text() == "a password"
        assert list(tmp_path.iterdir()) == [alive]


def test_a_folder_in_which_a_soul_still_lives_stays_until_it_has_ended(tmp_path: Path) -> None:
    left = killed(tmp_path)
    home = Home.at(left / "maren")
    lock = HomeLock(home, agent_name="maren", started_at=SystemClock().now())
    with lock, demo_folder(tmp_path):
        assert left.exists()
    with demo_folder(tmp_path):
        assert not left.exists()


def test_what_no_demo_made_is_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".lock").touch()
    (tmp_path / "soul-demo-link").symlink_to(elsewhere)
    (tmp_path / "soul-demo-file").touch()
    (tmp_path / "soul-demo-without-lock").mkdir()
    with demo_folder(tmp_path) as own:
        names = {path.name for path in tmp_path.iterdir()} - {own.name}
    assert names == {"elsewhere", "soul-demo-link", "soul-demo-file", "soul-demo-without-lock"}
    assert (elsewhere / ".lock").exists()
