"""Proves the owner's commands as a person or a program uses them, beside a SOUL that lives or sleeps.

An account that the owner muted is left alone, whether the SOUL was awake at the time or not. A command that stops
something or looks needs only the folder, whatever mistake `.env` holds. A draft keeps its number on every surface for
as long as it waits.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from common.clock import FakeClock, SystemClock, iso
from common.errors import ConfigError, NotWaiting, PolicyBlocked, UsageError
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal
from modules.services.explanation.drafts import Draft
from modules.services.explanation.rendering import tell
from modules.services.outbox.act_words import act_words
from modules.services.outbox.bodies import FollowBody, LikeBody, OpaqueBody, PostBody
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, Pacing, ProposedAction
from modules.services.rights import store
from soul.commands.budget import run_budget
from soul.commands.drafts import full_lines, list_lines, run_drafts, split_changes, with_colours
from soul.commands.memory import run_memory_list
from soul.commands.options import DraftAction
from soul.commands.pause import run_pause, run_resume
from soul.commands.people import run_know, run_mute
from soul.commands.run import owner_commands, phone_commands
from soul.commands.self_ import run_self_log
from soul.commands.status import run_status
from soul.commands.talks import run_talks
from soul.dashboard.facts import PageFacts
from tests.known_profiles import set_profiles
from tests.outbox_rows import newest_intents
from tests.patience import HANG_S
from tests.program import one_clear_line, soul, started, until
from tests.running_town import KEY, RunningTown, awake, call, replying, settings_of, write_home
from town.model.types import ChatRequest, Completion

OWNER = {"OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return write_home(tmp_path / "rowan", "rowan", ATPROTO_SERVICE_URL="http://127.0.0.1:9", **OWNER)


async def hold(home: Home, *texts: str) -> list[Intent]:
    """Store drafts that wait, as a life of this SOUL would leave them."""
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
    told = [f"Approved {one.id}: post: {one.body.public_text}" for one in (first, second)]
    assert "\n".join([*told, "Nobody is awake"]) in approved.output
    rejected = await drafts(home, "reject", third.id[:6], "--reason", "too dull")
    assert [(item["id"], item["state"], item["why"]) for item in rejected] == [
        (third.id, "blocked", "the owner rejected it: too dull")
    ]
    assert [(item["id"], item["state"]) for item in await drafts(home)] == [
        (one.id, "pending") for one in (first, second)
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("approve",), "Which draft?"),
        *(((action, "7"), "No draft has the number 7") for action in ("approve", "reject", "show")),
        (("show", "xyz"), "is too short"),
        (("approve", "wxyz"), "cannot be a draft's id"),
    ],
)
@pytest.mark.slow
async def test_what_names_no_draft_is_one_clear_line(home: Home, words: Sequence[str], said: str) -> None:
    await hold(home, "slate or tin?")
    ended = await soul("drafts", *words, "--home", str(home.root))
    one_clear_line(ended, code=2)
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


@pytest.mark.parametrize(
    ("body", "mark"),
    [
        (IssueBody(repo="a/b", title="The gate", body=f"It squeaks. {'Oil it. ' * 100}\n\n<!-- made-for: x -->"), "x"),
        (IssueCommentBody(repo="a/b", number=7, body=f"It squeaks. {'Oil it. ' * 100}"), ""),
    ],
)
async def test_the_text_of_a_draft_on_github_is_shown_in_part_and_replaced(
    running_town: RunningTown, body: IssueBody | IssueCommentBody, mark: str
) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        outbox, typed = life.app.services.outbox, owner_commands(life.app, asyncio.Event())
        held = (await outbox.submit(ProposedAction(body, by_owner=True, is_given=True, hold="not ordered"))).intent
        (line,) = await typed.answer("/drafts")
        assert all(one in line for one in ("It squeaks. Oil it.", "more characters", "not ordered"))
        assert body.words in await typed.answer("/edit 1")
        with pytest.raises(PolicyBlocked):
            await typed.answer(f"/edit 1 Oil it. {KEY}")
        await typed.answer("/edit 1 It sings, says @kit.")
        edited = await outbox.get(held.id)
    assert edited
    assert isinstance(edited.body, IssueBody | IssueCommentBody)
    assert (edited.state, edited.body.words, mark in edited.body.body) == ("pending", "It sings, says @kit.", True)


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
        await typed(f"yes {draft}", "Approved reply")
        await typed(f"/approve {draft}", f"Number {draft} needs no approval: it leaves by itself")
        await typed("yes 99", "No draft has the number 99")
        assert running_town.texts("rowan") == []
        # NOTE(self): on a slow machine the SOUL may have asked the model for a thought of its own meanwhile.
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
    assert all(words in listed for words in ("reply to @kit.test", "Tin or slate?", "Slate, because"))
    [draft] = await drafts(home)
    assert draft["answers"] == {"handle": "kit.test", "text": "@rowan.test which roof is louder?\nTin or slate?"}
    shown = (await soul("drafts", "show", draft["id"], "--home", str(home.root))).output
    assert "@kit.test wrote:\n" in shown
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
    one_clear_line(await soul("today", "2999-01-01", *at), "is yet to come", code=2)
    one_clear_line(await soul("today", "0001-01-01", *at), "before the times that are kept", code=2)


async def test_a_muted_account_gets_nothing_until_the_mute_ends(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    async with awake(home) as life:
        await asyncio.to_thread(run_mute, home.root, kit, off=False, as_json=False)
        running_town.network.post_as(kit, "@rowan.test which roof is louder?")
        await life.look()
        (decision,) = await life.decisions()
        assert decision.entry.reason == "the owner muted the author"
        assert not running_town.mind.asked
        outbox = life.app.services.outbox
        refused = await outbox.submit(ProposedAction(FollowBody(did=kit)))
        assert (refused.accepted, refused.advice.code) == (False, "silence")
        assert (await outbox.submit(ProposedAction(FollowBody(did=kit), by_owner=True))).accepted
        await asyncio.to_thread(run_mute, home.root, kit, off=True, as_json=False)
        running_town.network.post_as(kit, "@rowan.test and which one is cheaper?")
        life.passes(60)
        await life.look()
    assert len(running_town.texts("rowan")) == 1


async def test_the_owner_mutes_and_unmutes_from_the_terminal_and_the_phone(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    async with awake(home) as life:
        for typed in (owner_commands(life.app, asyncio.Event()), phone_commands(life.app)):
            assert (await typed.answer("/mute @kit.test"))[0].startswith("Muted @kit.test")
            assert await life.app.services.database.run(store.muted)
            assert await typed.answer(f"/unmute {kit}") == [f"Unmuted {kit}"]
            assert not await life.app.services.database.run(store.muted)


def _next(steps: Iterator[Completion], request: ChatRequest) -> Completion:
    done = call("bluesky_reply", text="Done.")
    return next(steps, done) if any(one.name == "mute_account" for one in request.offers) else done


async def test_the_owner_mutes_and_unmutes_by_word(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    async with awake(home) as life:
        muted = life.app.services.database
        for word, off, expected in (("mute", False, {kit}), ("unmute", True, set())):
            steps = iter((call("mute_account", did="@kit.test", off=off),))
            running_town.mind.answer = partial(_next, steps)
            running_town.network.post_as(running_town.account("owner"), f"@rowan.test please {word} @kit.test")
            for _ in range(2):  # the other accounts that are addressed have their turn first
                life.passes(600)
                await life.look()
            assert (await muted.run(store.muted)).keys() == expected


async def test_a_mute_withdraws_what_was_to_reach_the_account_and_had_not_left_also_what_was_ordered(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home, kit, ada = running_town.make_home("rowan"), running_town.account("kit"), running_town.account("ada")
    uri, cid = running_town.network.post_as(kit, "@rowan.test which roof is louder?")
    async with awake(home) as life:
        await life.look()
        outbox = life.app.services.outbox
        follow = ProposedAction(FollowBody(did=kit, handle="kit.test"), by_owner=True)
        like = ProposedAction(LikeBody(uri=uri, cid=cid), cause_id=uri)
        other = ProposedAction(FollowBody(did=ada), by_owner=True)
        accepted = [(await outbox.submit(action)).intent.id for action in (follow, like, other)]
        await asyncio.to_thread(run_mute, home.root, kit, off=False, as_json=False)
        assert "follow @kit.test" in capsys.readouterr().out
        life.passes(600)
        await outbox.deliver_due()
        states = {one.id: one.state for one in await newest_intents(outbox, 10)}
        assert [states[one] for one in accepted] == ["blocked", "blocked", "done"]
        assert "the owner muted this account" in "\n".join(await tell(life.app.services.database, accepted[0]))


async def test_the_posts_of_a_muted_account_are_left_out_of_a_thread(running_town: RunningTown) -> None:
    home, sam = running_town.make_home("rowan"), running_town.account("sam")
    top, _ = running_town.network.post_as(sam, "The heron at the weir counts to nine.")
    running_town.network.post_as(running_town.account("kit"), "What do you say, @rowan.test?", reply_to_uri=top)
    async with awake(home) as life:
        await asyncio.to_thread(run_mute, home.root, sam, off=False, as_json=False)
        await life.look()
    assert len(running_town.texts("rowan")) == 1
    assert "heron" not in "".join(str(request) for request in running_town.mind.asked)


async def test_a_handle_will_do(running_town: RunningTown, capsys: pytest.CaptureFixture[str]) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    async with awake(home):
        for off in (False, True):
            await asyncio.to_thread(run_mute, home.root, "@kit.test", off=off, as_json=True)
            assert [one["did"] for one in json.loads(capsys.readouterr().out)] == ([] if off else [kit])
        await asyncio.to_thread(run_mute, home.root, "@kit.test", off=True, as_json=False)
        assert "Unmuted" not in capsys.readouterr().out


@pytest.mark.parametrize(("did", "off"), [("", True), ("nobody-there.test", False)])
async def test_a_wrong_name_is_refused(running_town: RunningTown, did: str, *, off: bool) -> None:
    home = running_town.make_home("rowan")
    async with awake(home):
        with pytest.raises(UsageError):
            await asyncio.to_thread(run_mute, home.root, did, off=off, as_json=False)


_COMMANDS: dict[str, Callable[[Path], object]] = {
    "pause": lambda root: run_pause(root, ["enough"], as_json=True),
    "resume": lambda root: run_resume(root, as_json=True),
    "drafts": lambda root: run_drafts(root, as_json=True),
    "mute": lambda root: run_mute(root, "did:plc:kit", off=False, as_json=True),
    "know": lambda root: run_know(root, "did:plc:kit", as_json=True),
    "talks": lambda root: run_talks(root, as_json=True),
    "budget": lambda root: run_budget(root, as_json=True),
    "self log": lambda root: run_self_log(root, as_json=True),
    "memory list": lambda root: run_memory_list(root, as_json=True),
    "status": lambda root: run_status(root, as_json=True),
}
_MISTAKES = {
    "a value": b"BUDGET_USD_PER_DAY=$2.50\n",
    "a line": b"BUDGET_USD_PER_DAY: 2.50\n",
    "bytes": b"OPERATOR_CONTACT=Andr\xe9\n",
    "a zone": b"SOUL_TIMEZONE=Here\n",
}


@pytest.fixture
async def empty_home(tmp_path: Path) -> Home:
    empty_home = write_home(tmp_path / "rowan", "rowan", OWNER_BLUESKY_SOCIAL_HANDLE_DID="did:plc:owner")
    empty_home.memory.mkdir()
    await (await Database.open(empty_home.database, MIGRATIONS)).close()
    return empty_home


@pytest.mark.parametrize("mistake", _MISTAKES)
async def test_a_mistake_in_the_settings_keeps_no_such_command(
    empty_home: Home, mistake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    empty_home.env.write_bytes(empty_home.env.read_bytes() + b"\n" + _MISTAKES[mistake])
    for name, run in _COMMANDS.items():
        await _in_thread(run, empty_home.root)
        said = capsys.readouterr()
        json.loads(said.out)
        assert ("Settings:" in said.err) is (name != "status"), name


async def test_without_any_settings_it_is_paused_all_the_same(empty_home: Home) -> None:
    empty_home.env.unlink()
    run_pause(empty_home.root, ["enough"])
    assert Control(empty_home.memory).pause_reason() == "enough"


def test_where_nobody_lives_nothing_is_paused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no SOUL here"):
        run_pause(tmp_path)
    assert not (tmp_path / ".memory").exists()


def test_on_a_disk_that_is_not_there_nothing_is_paused(tmp_path: Path) -> None:
    empty_home = write_home(tmp_path / "rowan", "rowan", MEMORY_DIR=str(tmp_path / "disk" / "rowan"))
    with pytest.raises(ConfigError, match="MEMORY_DIR"):
        run_pause(empty_home.root)
    assert not (tmp_path / "disk").exists()


async def _in_thread(run: Callable[[Path], object], root: Path) -> None:
    await asyncio.to_thread(run, root)


async def test_a_draft_has_one_number_on_every_surface_and_no_other_draft_gets_it_later(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")

    async def drafts(action: DraftAction, *ids: str) -> str:
        await asyncio.to_thread(run_drafts, home.root, action, list(ids), as_json=False)
        return capsys.readouterr().out

    async with awake(home) as life:
        outbox, typed = life.app.services.outbox, owner_commands(life.app, asyncio.Event())
        texts = ("Tin.", "Slate.", "Chalk.")
        one, two, three = [(await outbox.submit(ProposedAction(PostBody(text=text)))).intent for text in texts]
        await typed.answer("/reject 1")
        shell, terminal = await drafts(DraftAction.LIST), await typed.answer("/drafts")
        page = PageFacts(home, settings_of(home), life.app.services.clock).now()["drafts"]
        assert [line.split()[:2] for line in shell.splitlines()[:2]] == [["2", two.id[:6]], ["3", three.id[:6]]]
        assert terminal == shell.splitlines()[:2]
        assert [(draft["number"], draft["id"]) for draft in page] == [(2, two.id), (3, three.id)]
        Control(home.memory).pause("a quiet week")
        assert "a quiet week" in await drafts(DraftAction.APPROVE, "2")
        newest = (await outbox.submit(ProposedAction(PostBody(text="Flint.")))).intent
        await drafts(DraftAction.REJECT, "4")
        states = {intent.id: intent.state for intent in await newest_intents(outbox, 4)}
        assert [states[draft.id] for draft in (one, two, three, newest)] == ["blocked", "pending", "held", "blocked"]
        with pytest.raises(NotWaiting):
            await drafts(DraftAction.APPROVE, "1")


def test_changes_have_colours_from_where_they_begin() -> None:
    told = ["push 1", "", "  + one file", "  diff --git a/a b/a", "  @@ -1 +1 @@", "  -old", "  +new", "   kept"]
    assert [colour for _, colour in with_colours(told)] == [None] * 4 + ["cyan", "red", "green", None]
    assert split_changes("Hello.") == ("Hello.", [])


def test_a_kind_has_its_words_wherever_a_draft_is_shown() -> None:
    now = FakeClock().now()
    act = Intent("5eed" * 4, "issue_comment", "", OpaqueBody({}), "", "", "", "", iso(now), iso(now), "held")
    with closing(sqlite3.connect(":memory:")) as connection:
        draft = Draft(act, act_words(connection, act))
    for line in (*full_lines(draft, now, "UTC"), *list_lines([draft], now, "UTC", ())):
        assert "issue_comment" not in line


async def test_the_owner_sees_what_the_profiles_hold(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        services = life.app.services
        await set_profiles(services.database, services.clock, {"limits": "No boats"}, {"name": "Ana"})
        shown = await phone_commands(life.app).answer("/self")
    assert [line.partition(": ")[2] for line in shown[-2:]] == ["limits: No boats", "name: Ana"]
