"""The owner is told once about what cannot wait: by direct message, and at an address that they set."""

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from common.clock import SystemClock, iso
from common.errors import Auth
from modules.runtime.budget import ledger
from modules.runtime.budget.policy import Spent
from modules.runtime.budget.report import lines
from modules.runtime.control import STARTS, Control
from modules.runtime.home import Home
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import day_lines
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.types import ProposedAction
from soul import cli
from soul.commands.reflect import run_reflect
from soul.commands.status import read_status
from soul.dashboard.facts import PageFacts
from soul.status_report import status_line
from tests import patience
from tests.modules.services.commitments.commitment_values import taken
from tests.program import soul, started, until
from tests.running_town import RunningSoul, RunningTown, awake, served, settings_of
from tests.scenarios.phone import Phone, look
from tests.scenarios.test_scenario_reflection import reflections
from town.model.types import Completion


@dataclass
class Topic:
    """A topic like those of ntfy: each line posted to it rings a phone."""

    url: str = ""
    is_down: bool = False
    rang: list[str] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        line = (await request.body()).decode()
        answer: Response = JSONResponse({"event": "message", "message": line})
        if self.is_down:
            answer = Response(status_code=503)
        elif request.method == "POST" and request.url.path == "/my-topic":
            self.rang.append(line)
        await answer(scope, receive, send)


@asynccontextmanager
async def open_topic() -> AsyncIterator[Topic]:
    topic = Topic()
    async with served(topic) as (address,):
        topic.url = f"{address}/my-topic"
        yield topic


async def tell(soul: RunningSoul) -> None:
    """Run the loop for alarms once, and send its messages."""
    await soul.app.scheduler.run_guarded("alarms")
    await soul.send()


def looked_for_alarms(root: Path) -> bool:
    """Return whether the loop for alarms has run, according to the status file."""
    loops = read_status(Home.at(root)).get("loops", ())
    return any(one["lastOutcome"] for one in loops if one["name"] == "alarms")


async def spend(soul: RunningSoul, tokens: int) -> None:
    now = soul.app.services.clock.now()
    day, at = f"{now:%Y-%m-%d}", iso(now)

    def work(connection: sqlite3.Connection) -> None:
        ledger.hold(connection, "coding", day=day, at=at, amount=Spent(tokens))
        ledger.settle(connection, "held:coding", input_tokens=tokens, output_tokens=0, micro_usd=0)

    await soul.app.services.database.run(work)


async def test_budget_draft_and_commitment_are_told_once_also_after_a_restart(running_town: RunningTown) -> None:
    phone = Phone(running_town, "owner")
    async with open_topic() as topic:
        more = {"SOUL_APPROVAL": "drafts", "BUDGET_TOKENS_PER_DAY": "1000", "SOUL_TIMEZONE": "UTC"}
        home = running_town.make_home("rebecca", ALARM_URL=topic.url, **more)
        async with awake(home) as soul:
            await look(soul)
            queue = soul.app.lives.queue
            await taken(queue, "Open an issue on the mill", title="The mill")
            made = await taken(queue, "Open an issue on the weir", title="The weir")
            await queue.withdraw(made.id, "a peer was first")
            await tell(soul)
            assert (topic.rang, phone.answers) == ([], [])
            soul.passes(25 * 3600)
            await soul.app.scheduler.run_guarded("commitment-fulfillment")
            await spend(soul, 860)
            await soul.app.services.outbox.submit(ProposedAction(PostBody(text="Tin sings."), cause_id="expression"))
            await tell(soul)
            await tell(soul)
            assert len(topic.rang) == 3
        async with awake(home) as soul:
            await tell(soul)
        assert len(topic.rang) == 3
        assert not any("Tin sings" in line for line in topic.rang), "what a draft says stays at home"
        assert not any("weir" in line for line in topic.rang), "what a peer did in its place was not given up"
        assert [sum(word in line for line in topic.rang) for word in ("86%", "draft", "mill")] == [1, 1, 1]
        assert [sum(word in line for line in phone.answers) for word in ("86%", "draft", "mill")] == [1, 0, 1]


async def test_what_a_reflection_ordered_from_a_shell_came_to_is_told_by_message_alone(
    running_town: RunningTown,
) -> None:
    phone, words = Phone(running_town, "owner"), "Nothing of it lasts."
    running_town.mind.answer = lambda _: Completion(text=words)
    async with open_topic() as topic:
        home = running_town.make_home("rebecca", ALARM_URL=topic.url)
        async with awake(home) as soul:
            await look(soul)
            await asyncio.to_thread(run_reflect, home.root)
            await soul.app.scheduler.run_guarded("work")
            for _ in range(2):
                await tell(soul)
    ordered = soul.app.services.skills.subsection("reflection", "Reader", "Ordered").strip()
    assert [ordered in one.messages[-1].text for one in reflections(running_town)] == [True]
    assert [words in line for line in phone.answers] == [True]
    assert [words in line for line in topic.rang] == [False]


async def test_a_stop_rings_before_the_end_and_is_told_by_message_at_the_next_start(running_town: RunningTown) -> None:
    phone = Phone(running_town, "owner")
    async with open_topic() as topic:
        home = running_town.make_home("rebecca", ALARM_URL=topic.url)
        async with awake(home) as soul:
            await look(soul)
            await soul.app.note_end(Auth("Bluesky refuses the app password", remedy="Make a new one"))
            assert ["app password" in line for line in topic.rang] == [True]
        async with awake(home) as soul:
            await soul.app.note_end(Auth("Bluesky refuses the app password", remedy="Make a new one"))
        for _ in range(2):
            async with awake(home) as soul:
                await tell(soul)
        assert len(topic.rang) == 1, "who starts it again and again rings once"
        assert ["app password" in line for line in phone.answers] == [True]


@pytest.mark.slow
async def test_only_a_run_that_was_killed_is_told_by_the_next_no_walk_and_no_restored_copy(
    running_town: RunningTown, tmp_path: Path
) -> None:
    async with open_topic() as topic:
        home = running_town.make_home("rebecca", ALARM_URL=topic.url)
        old, new, file = str(home.root), str(tmp_path / "new"), str(tmp_path / "rebecca.soul")
        for _ in range(STARTS):
            assert (await soul("walk", "--home", old)).code == 0
        assert (await soul("status", "--home", old)).complaints == []
        async with started("run", "--home", old) as process:
            await until(process, "Awake")
            assert not Control(home.memory).standing().safe_mode
            assert (await soul("backup", file, "--home", old)).code == 0
            process.send_signal(signal.SIGINT)
            await process.wait()
        assert (await soul("restore", file, "--home", new)).code == 0
        assert "killed" not in (await soul("status", "--home", new)).output
        for root in (new, old):
            async with started("run", "--home", root, "--take-over") as process:
                await until(process, "Awake")
                await patience.until(partial(looked_for_alarms, Path(root)))
                process.kill()
                await process.wait()
            assert topic.rang == []
            assert "killed" in (await soul("status", "--home", root)).output
        async with started("run", "--home", old):
            await patience.until(lambda: bool(topic.rang))
    (told,) = topic.rang
    assert "ended unexpectedly" in told
    assert "stopped:" not in told


async def test_where_systemd_gives_up_the_address_is_told_once(running_town: RunningTown) -> None:
    async with open_topic() as topic:
        home = running_town.make_home("rebecca", ALARM_URL=topic.url)
        assert await asyncio.to_thread(cli.run, ["service", "alarm", "--home", str(home.root)]) == 0
        assert ["not started again" in line for line in topic.rang] == [True]
        async with awake(home) as soul:
            await soul.app.note_end(Auth("Bluesky refuses the app password"))
        assert await asyncio.to_thread(cli.run, ["service", "alarm", "--home", str(home.root)]) == 0
        assert len(topic.rang) == 2
        topic.is_down = True
        home = running_town.make_home("marvin", ALARM_URL=topic.url)
        assert await asyncio.to_thread(cli.run, ["service", "alarm", "--home", str(home.root)]) == 1


async def test_a_service_that_fails_holds_up_no_message_and_is_tried_again(running_town: RunningTown) -> None:
    phone = Phone(running_town, "owner")
    async with open_topic() as topic:
        more = {"BUDGET_TOKENS_PER_DAY": "1000", "SOUL_TIMEZONE": "UTC"}
        async with awake(running_town.make_home("rebecca", ALARM_URL=topic.url, **more)) as soul:
            await look(soul)
            await spend(soul, 900)
            topic.is_down = True
            await tell(soul)
            for minutes in (10, 20, 40, 80, 160):
                soul.passes(minutes * 60)
                await tell(soul)
            assert (len(phone.answers), topic.rang) == (1, [])
            topic.is_down = False
            soul.passes(4 * 3600)
            await tell(soul)
        assert (len(phone.answers), len(topic.rang)) == (1, 1)


async def test_at_night_only_a_stop_rings_and_the_rest_waits_for_the_morning(running_town: RunningTown) -> None:
    phone, hour = Phone(running_town, "owner"), SystemClock().now().hour
    async with open_topic() as topic:
        more = {"SOUL_APPROVAL": "drafts", "SOUL_TIMEZONE": "UTC", "ALARM_QUIET_HOURS": f"{hour}-{(hour + 2) % 24}"}
        home = running_town.make_home("rebecca", ALARM_URL=topic.url, **more)
        async with awake(home) as soul:
            await look(soul)
            await soul.app.services.outbox.submit(ProposedAction(PostBody(text="Tin sings."), cause_id="expression"))
            await look(soul)
            await tell(soul)
            assert (topic.rang, phone.answers) == ([], [])
            await soul.app.note_end(Auth("Bluesky refuses the app password"))
            assert len(topic.rang) == 1
            soul.passes(2 * 3600)
            await look(soul)
            await tell(soul)
            await tell(soul)
        assert sum("draft" in line for line in topic.rang) == 1
        assert sum("Tin sings." in line for line in phone.answers) == 1


async def test_a_budget_without_room_for_an_answer_is_told_everywhere_and_once_in_a_message(
    running_town: RunningTown,
) -> None:
    phone = Phone(running_town, "owner")
    async with open_topic() as topic:
        more = {"BUDGET_TOKENS_PER_DAY": "60000", "SOUL_TIMEZONE": "UTC"}
        home = running_town.make_home("rebecca", ALARM_URL=topic.url, **more)
        async with awake(home, clock=SystemClock()) as soul:
            services = soul.app.services
            await look(soul)
            phone.says("/status")
            await look(soul)
            await spend(soul, 59_000)
            assert "used up" not in "".join(day_lines(DayReader(services.settings, home, services.clock).read()))
            phone.says("What did the millers say?", "And the weavers?")
            await look(soul)
            await look(soul)
            assert running_town.mind.asked == []
            assert ["is kept" in one for one in phone.answers] == [False, True]
            await tell(soul)
            assert [line for line in topic.rang if "used up" in line]
            assert len(phone.answers) == 2, "the answer to the owner told it"
            facts = await soul.app.status_report.gather()
            (trouble,) = [one for one in facts["troubles"] if one["service"] == "model"]
            assert trouble["what"].startswith("today's budget for the model is used up")
            assert trouble["until"]
            assert "tokens of today 59,000 of 60,000" in status_line(facts)
            told = lines(await services.budget.report())
            assert "59,000 of 60,000" in told[1]
            day = DayReader(services.settings, home, services.clock).read()
            assert "used up" in "".join(day_lines(day))
            (meter,) = [one for one in PageFacts(home, settings_of(home), services.clock).now()["meters"] if one["cap"]]
            assert (meter["percent"], meter["is_short"]) == (98, True)
            await services.database.run(lambda connection: ledger.let_go(connection, "coding"))
            assert not (await services.situation()).no_answer
