"""Proves that the status file holds the day's budget, the signs against acting and the owner's drafts.

Proves that arguments of `soul status` that are read without Typer mean the same to Typer. Every command that a place
lists is answered there.
"""

import asyncio
import json
from pathlib import Path

import pytest
import typer
from hypothesis import example, given
from hypothesis import strategies as st

from common.clock import SystemClock, parse_iso
from modules.runtime.budget import ledger
from modules.runtime.budget.report import lines
from modules.runtime.control import Control
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import day_lines
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.types import ProposedAction
from soul.command_line import app
from soul.command_table import Place, rows_at
from soul.commands.mcp import HomeTools
from soul.commands.owner_commands import OwnerCommands
from soul.dashboard.facts import PageActs
from soul.room_host.host import HostCommands
from soul.status_arguments import StatusArguments, read_status_arguments
from soul.status_report import status_line
from tests.running_town import RunningTown, awake
from town.atproto.service import Fault


async def test_budget_signs_and_drafts_are_told_in_the_status_file(running_town: RunningTown) -> None:
    home = running_town.make_home(
        "rowan", BUDGET_TOKENS_PER_DAY="1000", BUDGET_USD_PER_DAY="2.5", MODEL_PRICES="test-mind=0/0"
    )
    control = Control(home.memory)
    async with awake(home) as life:
        facts = life.app.status_report
        before = await facts.gather()
        submitted = await life.app.services.outbox.submit(
            ProposedAction(PostBody(text="Tin sings."), hold="as you wished")
        )
        control.pause("holiday")
        after = await facts.gather()
    budget = before["modelBudget"]
    assert (budget["step"], budget["tokens"]) == ("normal", {"used": 0, "unanswered": 0, "onItsWay": 0, "cap": 1000})
    assert budget["usd"] == {"used": 0, "cap": 2.5}
    assert parse_iso(budget["resetsAt"]) > SystemClock().now()
    assert before["standing"] == {"paused": False, "safeMode": False, "reasons": []}
    assert before["drafts"] == []
    assert after["standing"] == {"paused": True, "safeMode": False, "reasons": ["paused by the owner: holiday"]}
    (draft,) = after["drafts"]
    told = {
        "id": submitted.intent.id,
        "act": "post",
        "kind": "post",
        "text": "Tin sings.",
        "target": "",
        "why": "as you wished",
        "createdAt": submitted.intent.created_at,
        "expiresAt": submitted.intent.expires_at,
    }
    assert draft | told == draft
    assert json.loads(json.dumps(after)) == after
    spoken = status_line(after)
    assert "1 waiting for the owner's approval" in spoken
    assert "tokens of today 0 of 1,000" in spoken
    assert spoken.endswith("paused by the owner: holiday")


async def test_while_a_service_is_left_alone_the_status_says_so_and_until_when(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home, clock=SystemClock()) as life:
        report = life.app.status_report
        assert (await report.gather())["troubles"] == []
        running_town.faults.arm(Fault("rate_limited", "*", times=9, seconds=900))
        await life.app.scheduler.run_guarded("awareness")
        facts = await report.gather()
    (trouble,) = facts["troubles"]
    assert trouble["service"] == "Bluesky"
    assert parse_iso(trouble["until"]) > SystemClock().now()
    assert trouble["what"] in status_line(facts)


async def test_a_heartbeat_tells_the_mode_the_age_the_next_look_and_what_is_going_on(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        conversations = life.app.lives.bluesky_state.conversations
        conversations.track_conversation("at://did:plc:ada/app.bsky.feed.post/1")
        conversations.mark_conversation_concluded("at://did:plc:ada/app.bsky.feed.post/2", "enough")
        told = (await life.app.scheduler.run_guarded("heartbeat")).reason
        (awoke,) = [
            stored.entry for stored in await life.app.services.journal.recent(200) if stored.entry.summary == "Awake"
        ]
    assert told.startswith("idle, awake for ")
    assert "1 open conversation, 1 concluded" in told
    assert "looks at Bluesky every" in awoke.reason, "the rhythm stands in the line that the owner sees"


async def test_each_surface_tells_what_calls_on_their_way_and_cut_off_hold(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan", BUDGET_TOKENS_PER_DAY="1000")
    async with awake(home) as life:
        facts = life.app.status_report
        day = f"{SystemClock().now().astimezone():%Y-%m-%d}"
        rows = [
            ("a", day, "", "reply", "mention", "test-mind", "settled", 100, 20, -1),
            ("b", day, "", "reply", "mention", "test-mind", "reserved", 300, 50, -1),
            ("c", day, "", "reply", "mention", "test-mind", "reserved", 200, 10, -1),
        ]
        await life.app.services.database.run(
            lambda connection: connection.executemany(
                "INSERT INTO model_calls (id, day, at, purpose, importance, model, state, input_tokens, output_tokens,"
                " cost_micro_usd) VALUES (?,?,?,?,?,?,?,?,?,?)",
                rows,
            )
        )
        await life.app.services.database.run(lambda connection: ledger.note_unanswered(connection, "c"))
        budget, moment = (await facts.gather())["modelBudget"], await facts.moment()
        told = lines(await life.app.services.budget.report())
        summary = await asyncio.to_thread(DayReader(life.app.services.settings, home, life.app.services.clock).read)
    assert budget["tokens"] == {"used": 330, "unanswered": 210, "onItsWay": 350, "cap": 1000}
    cut_off, aside = ", at most 210 of it for calls without an answer", "; 350 more set aside"
    assert "tokens of today 330 of 1,000" in moment
    for line in (moment, told[1], " ".join(day_lines(summary)[-4:])):
        assert (cut_off in " ".join(line.split()), aside in " ".join(line.split())) == (True, True), line
    assert [line.partition(":")[2][:32] for line in told[4:]] == [" 3 calls, 330 tokens, price unkn"] * 2
    assert all(aside in line for line in told[4:]), "the parts add up to the whole"
    assert budget["usd"] is None, "a price that is not known is not made up"


WORDS = (
    "status",
    "--json",
    "--loops",
    "--home",
    "--home=here",
    "~/here",
    "-h",
    "--help",
    "--",
    "",
    "-",
    "-x",
    "here",
    "./a b",
    "/",
)
TYPER = typer.main.get_group(app)


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=5))
@example(["--home", "here", "--json", "--home", "there"])
def test_what_is_understood_means_the_same_to_typer(words: list[str]) -> None:
    asked = read_status_arguments(["status", *words])
    if asked is not None:
        context = TYPER.commands["status"].make_context("status", list(words))
        assert asked == StatusArguments(*(context.params[name] for name in ("root", "as_json", "with_loops")))


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("status", StatusArguments(Path(), as_json=False)),
        ("status --json", StatusArguments(Path(), as_json=True)),
        ("status --loops", StatusArguments(Path(), as_json=False, with_loops=True)),
        ("status --home here", StatusArguments(Path("here"), as_json=False)),
        ("status --json --home here", StatusArguments(Path("here"), as_json=True)),
    ],
)
def test_the_usual_ways_to_ask_are_understood(words: str, asked: StatusArguments) -> None:
    assert read_status_arguments(words.split()) == asked


@pytest.mark.parametrize(
    "words",
    ["", "run", "--json status", "status -h", "status --home", "status --home --json", "status here", "status --"],
)
def test_whatever_else_is_left_to_typer(words: str) -> None:
    assert read_status_arguments(words.split()) is None


@pytest.mark.parametrize(
    ("place", "answers"),
    [
        ("terminal", OwnerCommands),
        ("message", OwnerCommands),
        ("room", HostCommands),
        ("page", PageActs),
        ("mcp", HomeTools),
        ("mcp acts", HomeTools),
    ],
)
def test_every_command_of_a_place_is_answered_there(place: Place, answers: type) -> None:
    names = rows_at(place)
    assert names
    assert [name for name in names if not hasattr(answers, f"run_{name}")] == []
