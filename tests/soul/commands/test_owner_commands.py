"""The owner's commands as a person or a program uses them, beside a SOUL that lives or sleeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from common.clock import SystemClock
from common.errors import PolicyBlocked
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, Pacing, ProposedAction
from soul.commands.run import owner_commands
from tests.outbox_rows import newest_intents
from tests.patience import HANG_S
from tests.program import one_clear_line, soul, started, until
from tests.running_town import KEY, RunningTown, awake, replying, write_home

OWNER = {"OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return write_home(tmp_path / "rowan", "rowan", ATPROTO_SERVICE_URL="http://127.0.0.1:9", **OWNER)


async def hold(home: Home, *texts: str) -> list[Intent]:
    """Drafts that wait, as a life of this SOUL would leave them."""
    database = await Database.open(home.database, MIGRATIONS)
    clock = SystemClock()
    outbox = Outbox(
        database=database,
        journal=Journal(database, SilentConsole(), clock, Redactor()),
        clock=clock,
        senders={},
        pacing=Pacing(0, 0, 0, 0, 0),
        own_did=lambda: "did:plc:rowan",
    )
    drafts = [ProposedAction(PostBody(text=text), cause_id="expression", hold="drafts") for text in texts]
    held = [(await outbox.submit(draft)).intent for draft in drafts]
    await database.close()
    return held


async def drafts(home: Home, *words: str) -> list[dict[str, Any]]:
    ended = await soul("drafts", *words, "--home", str(home.root), "--json")
    assert ended.code == 0, ended.output
    listed: list[dict[str, Any]] = json.loads(ended.output)
    return listed


@pytest.mark.slow
async def test_pause_and_resume_are_seen_by_status_before_the_first_life(home: Home) -> None:
    at = ("--home", str(home.root))
    assert "Paused, from its next start" in (await soul("pause", "off", "to", "bed", *at)).output
    told = await soul("status", *at)
    assert "paused by the owner: off to bed: nothing public leaves" in told.output
    status = json.loads((await soul("status", "--json", *at)).output)
    assert status["standing"] == {"paused": True, "safeMode": False, "reasons": ["paused by the owner: off to bed"]}
    resumed = await soul("resume", *at)
    assert (resumed.code, resumed.output) == (0, "Going on: public acts may leave\n")
    assert Control(home.memory).standing().may_act


@pytest.mark.slow
async def test_resume_says_clearly_when_the_record_on_bluesky_still_pauses(home: Home) -> None:
    control = Control(home.memory)
    control.pause("one")
    control.enter_safe_mode("3 starts within 20 s")
    control.heed_record("asleep")
    resumed = await soul("resume", "--home", str(home.root))
    assert resumed.code == 1
    assert resumed.output.splitlines()[0] == "Still paused by the owner's record on Bluesky: asleep"
    assert "town.soul.control.pause" in resumed.remedies[0]


@pytest.mark.slow
@pytest.mark.smoke
async def test_drafts_are_listed_shown_and_decided_beside_the_soul(home: Home) -> None:
    first, second, third = await hold(home, "slate or tin?", "a kite over the mill", "the third")
    at = ("--home", str(home.root))
    listed = await soul("drafts", *at)
    assert [line.split()[:2] for line in listed.output.splitlines()[:3]] == [
        [str(number), intent.id[:6]] for number, intent in enumerate((first, second, third), start=1)
    ]
    shown = await soul("drafts", "show", second.id[:4], *at)
    assert "a kite over the mill" in shown.output
    assert "waits because drafts" in shown.output
    approved = await soul("drafts", "approve", first.id[:5], second.id[:6], *at)
    assert approved.code == 0
    assert f"Approved {first.id}\nApproved {second.id}\nNobody is awake" in approved.output
    rejected = await drafts(home, "reject", third.id[:6], "--reason", "too dull")
    assert [(item["id"], item["state"], item["why"]) for item in rejected] == [
        (third.id, "blocked", "the owner rejected it: too dull")
    ]
    assert await drafts(home) == []


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("approve",), "Which draft?", 2),
        *(((action, "7"), "No draft has the number 7", 1) for action in ("approve", "reject", "show")),
        (("show", "xyz"), "is too short", 1),
        (("approve", "wxyz"), "cannot be a draft's id", 1),
    ],
)
@pytest.mark.slow
async def test_what_names_no_draft_is_one_clear_line(home: Home, words: Sequence[str], said: str, code: int) -> None:
    await hold(home, "slate or tin?")
    ended = await soul("drafts", *words, "--home", str(home.root))
    one_clear_line(ended, code=code)
    assert said in ended.complaints[0]


async def test_a_draft_gets_the_owner_s_words_and_leaves_or_keeps_its_own(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        outbox, typed = life.app.services.outbox, owner_commands(life.app, asyncio.Event())
        held = (await outbox.submit(ProposedAction(PostBody(text="Slate hums."), hold="wish"))).intent
        await typed.answer("/drafts")
        assert "Slate hums." in await typed.answer("/edit 1")
        with pytest.raises(PolicyBlocked):
            await typed.answer(f"/edit 1 Slate hums. {KEY}")
        assert [(one.state, one.body) for one in await newest_intents(outbox, 1)] == [("held", held.body)]
        told = await typed.answer("/edit 1 Slate hums,\nand tin sings.")
        assert "leaves" in told[0]
        await life.send()
    assert running_town.texts("rowan") == ["Slate hums,\nand tin sings."]


async def test_only_one_name_at_a_time_and_only_whom_the_owner_was_told_of_is_trusted(
    running_town: RunningTown,
) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        names, typed = life.app.services.pinned_names, owner_commands(life.app, asyncio.Event())
        for account in ("1", "2"):
            await names.check("github", "bob", account)
        for account in ("did:plc:bob", "did:plc:eve"):
            await names.check("bluesky", "bob", account)
        (several,) = await typed.answer("/trust bob")
        assert "github:bob" in several
        assert "bluesky:bob" in several
        await names.check("github", "bob", "3")
        (another,) = await typed.answer("/trust github:bob")
        assert "nothing is accepted" in another
        assert (names.get("github", "bob"), names.get("bluesky", "bob")) == ("1", "did:plc:bob")
        assert any("github:bob is somebody else now (3)" in line for _, line, _ in life.console.lines)
        await typed.answer("/trust github:bob")
        await typed.answer("/trust bob")
        assert (names.get("github", "bob"), names.get("bluesky", "bob")) == ("3", "did:plc:eve")
        (none,) = await typed.answer("/trust bob")
        assert "No change of bob waits" in none


@asynccontextmanager
async def at_the_terminal(home: Home) -> AsyncIterator[asyncio.subprocess.Process]:
    async with started("run", "--home", str(home.root), stdin=asyncio.subprocess.PIPE) as process:
        await until(process, "On Bluesky as")
        yield process


@pytest.mark.slow
async def test_the_owner_types_commands_that_need_no_model(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    uri, _ = running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
    async with at_the_terminal(home) as process:

        async def typed(line: str, answer: str) -> str:
            assert process.stdin is not None
            process.stdin.write(f"{line}\n".encode())
            await process.stdin.drain()
            return await until(process, answer)

        told = await until(process, "Slate, because it remembers the rain")
        assert "Waits for your approval" in told.splitlines()[-1]
        draft = told.rpartition("/approve ")[2].split()[0]
        await typed("/approve 7", "No draft has the number 7")
        assert "/reject ID [reason]" in await typed("/help", "Anything else is said to the SOUL")
        assert "✗" in await typed("/nonsense", "There is no /nonsense")
        assert draft in await typed("/drafts", draft)
        await typed("/status", "for your approval")
        await typed("/budget", "the next day begins in")
        await typed("/self", "SELF.md")
        await typed(f"/why {uri}", "which roof is louder")
        await typed("/pause for a moment", "Paused: nothing public leaves")
        await typed(f"/approve {draft}", "Approved reply")
        await typed(f"/approve {draft}", "does not wait any more: it is pending")
        assert running_town.texts("rowan") == []
        # NOTE(self): a slow machine may come to a thought of its own meanwhile.
        assert not any("/nonsense" in str(request) for request in running_town.mind.asked)
        await typed("/resume", "Going on")
        await until(process, "Sent reply")
        await typed("/quit", "Stopped; nothing accepted is lost")
        assert await asyncio.wait_for(process.wait(), HANG_S) == 0
    assert len(running_town.texts("rowan")) == 1


@pytest.mark.slow
async def test_a_draft_says_to_whom_and_to_what_it_is_the_answer(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    running_town.mind.answer = replying("Slate, because it remembers the rain.")
    async with awake(home) as life:
        running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?\nTin or slate?")
        await life.look()
        [listed] = await owner_commands(life.app, asyncio.Event()).answer("/drafts")
    assert "reply to @kit.test: Slate, because" in listed
    [draft] = await drafts(home)
    assert draft["answers"] == {"handle": "kit.test", "text": "@rowan.test which roof is louder?\nTin or slate?"}
    shown = (await soul("drafts", "show", draft["id"], "--home", str(home.root))).output
    assert "to     @kit.test, who wrote:\n" in shown
    assert "@rowan.test which roof is louder?\n           Tin or slate?\n" in shown
    assert shown.index("Tin or slate?") < shown.index("Slate, because")


@pytest.mark.slow
async def test_today_is_the_same_in_the_terminal_and_as_a_command_beside_the_soul_and_after_it(
    running_town: RunningTown,
) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    running_town.network.post_as(kit, "Morning @rowan.test, which roof is louder in the rain?")
    at = ("--home", str(home.root))
    async with awake(home) as life:
        await life.look()
        beside = await soul("today", *at)
        typed = "\n".join(await owner_commands(life.app, asyncio.Event()).answer("/today"))
    assert beside.code == 0, beside.output
    assert beside.output.strip() == typed
    assert "rowan on " in typed
    assert "1 reply" in typed
    after = json.loads((await soul("today", "--json", *at)).output)
    assert (after["awake"], after["done"].get("reply")) == (False, 1)
    one_clear_line(await soul("today", "--date", "2999-01-01", *at), "is yet to come", code=2)
    one_clear_line(await soul("today", "--date", "0001-01-01", *at), "before the times that are kept", code=2)
