"""The day of a SOUL, gathered from a real home and rendered for its owner."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters.atproto.records import web_url
from adapters.github.types import Repo
from common.clock import FakeClock, iso
from common.errors import UsageError
from common.provenance import Provenance
from common.redact import Redactor
from modules.runtime.budget import ledger
from modules.runtime.budget.policy import Spent
from modules.runtime.console import SilentConsole
from modules.runtime.control import Control
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.journal.rows import MALFORMED, Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import Turn
from modules.services.claims.lease_store import TaskPlace
from modules.services.commitments.naming import IssueParams, QueuedCommitment
from modules.services.commitments.policy import STALE
from modules.services.commitments.queue import COMMITMENT, CommitmentQueue, as_json
from modules.services.day.gathering import DayReader, counts_of_today
from modules.services.day.rendering import brief_text, day_lines, did, led_to, told_text
from modules.services.identity.entries import SELF, HeldEdit
from modules.services.identity.history import SelfHistory
from modules.services.identity.keeper import SelfKeeper
from modules.services.memory.admission import NewMemory
from modules.services.memory.rows import remember
from modules.services.outbox import store
from modules.services.outbox.bodies import (
    DirectMessageBody,
    FollowBody,
    OpaqueBody,
    PostBody,
    RecordRef,
    ReplyBody,
    TheirPost,
)
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.presence import owner_follow
from modules.services.work.table import WorkTable
from modules.services.work.types import NewWork
from tests.fresh_database import open_database
from tests.modules.services.commitments.commitment_values import taken
from tests.owner_lines import answered
from tests.plain_settings import plain_settings
from tests.running_town import PASSWORD, RunningTown, awake, call, settings_of
from tests.scenarios.test_scenario_change_of_mind import playing
from tests.scenarios.test_scenario_reflection import at_noon
from town.model.types import ChatRequest, Completion

EVENING = datetime(2026, 1, 5, 23, 30, tzinfo=UTC)
"""Half past eleven at night in UTC, and half past six in the evening in New York."""
KIT = "at://did:plc:kit/app.bsky.feed.post/3l"

BLOCKED = {"status": "blocked", "holder": "", "is_open": True, "since": ""}


@dataclass
class LivedHome:
    home: Home
    database: Database
    clock: FakeClock
    journal: Journal

    def reader(self, timezone: str = "UTC", owner: str = "") -> DayReader:
        settings = plain_settings(soul_timezone=timezone, owner_bluesky_social_handle_did=owner)
        return DayReader(settings, self.home, self.clock)

    async def decided(self, act: str, reason: str, uri: str = KIT, **data: object) -> None:
        entry = Entry("decision", "awareness", f"{act} @kit", reason=reason, trigger_uri=uri, data={"act": act} | data)
        await self.journal.record(entry)

    async def done(self, kind: str, number: int, **more: Any) -> None:
        now = iso(self.clock.now())
        values: dict[str, Any] = {"target": "", "body_hash": "", "dedup_key": "", "cause_id": "", "state": "done"}
        row = Intent(
            **values | {"id": f"{number:04x}", "rkey": str(number), "kind": kind, "body": OpaqueBody({})} | more,
            created_at=iso(self.clock.now().replace(microsecond=number * 1000)),
            expires_at=now,
            sent_at=now,
        )
        await self.database.run(lambda connection: store.insert(connection, row))


@pytest.fixture
async def lived(tmp_path: Path) -> AsyncIterator[LivedHome]:
    home = Home.at(tmp_path)
    database = await open_database(home.database)
    clock = FakeClock(EVENING)
    yield LivedHome(home, database, clock, Journal(database, SilentConsole(), clock, Redactor()))
    await database.close()


async def test_a_day_holds_what_was_done_in_it_and_nothing_of_the_next(lived: LivedHome) -> None:
    await lived.done("post", 1)
    await lived.done("like", 2)
    await lived.done("reply", 3, state="held")
    await lived.decided("skipped", "thanks need no answer")
    lived.clock.jump(3600)
    await lived.done("reply", 4)
    await lived.decided("silent", "nothing to add", chosen=True)
    yesterday, today = lived.reader().read("2026-01-05"), lived.reader().read()
    assert (yesterday.done, today.done) == ({"like": 1, "post": 1}, {"reply": 1})
    assert [one.reason for one in yesterday.reasons] == ["thanks need no answer"]
    assert [one.reason for one in today.reasons] == ["nothing to add"]
    assert (today.is_today, today.waits.drafts, yesterday.is_today) == (True, 1, False)
    west = lived.reader("America/New_York").read()
    assert (west.day, sum(west.done.values())) == ("2026-01-05", 3), "the day is the owner's own"


async def test_reasons_are_counted_and_the_three_cases_are_of_different_kinds_the_rarest_first(
    lived: LivedHome,
) -> None:
    for number in range(5):
        await lived.decided("skipped", "thanks need no answer", f"{KIT}{number}")
    await lived.decided("silent", "we commented 4 times", "github:a/b#1/x", code="enough-said")
    await lived.decided("silent", "we commented 7 times", "github:a/b#2/x", code="enough-said")
    await lived.decided("left", "two of them have it well in hand", f"{KIT}9", chosen=True)
    await lived.decided("silent", "it is not to be had any more", "task:a/b#1/2", code="taken")
    found = lived.reader().read()
    assert [(one.act, one.reason, one.count) for one in found.reasons] == [
        ("skipped", "thanks need no answer", 5),
        ("silent", "we commented 7 times", 2),
        ("left", "two of them have it well in hand", 1),
    ]
    assert {(case.act, case.uri) for case in found.cases} == {
        ("left", f"{KIT}9"),
        ("silent", "github:a/b#2/x"),
        ("skipped", f"{KIT}4"),
    }
    lines = day_lines(found)
    assert max(map(len, lines)) < 80
    assert sum("soul why" in line for line in lines) == 2


async def test_a_post_counts_once_however_often_it_was_decided_and_the_last_decision_holds(lived: LivedHome) -> None:
    await lived.decided("silent", "first look", f"{KIT}1", chosen=True)
    await lived.decided("silent", "second look", f"{KIT}1", chosen=True)
    await lived.decided("skipped", "not now", f"{KIT}2")
    await lived.decided("replied", "it asked again", f"{KIT}2")
    await lived.decided("later", "a turn is due", f"{KIT}1")
    found = lived.reader().read()
    assert [(one.act, one.count, one.reason) for one in found.reasons] == [("silent", 1, "second look")]
    counted = await lived.database.run(lambda connection: counts_of_today(connection, lived.clock, "UTC"))
    assert counted["silences"] == 1, "the status counts by the same rule"


async def test_a_day_names_people_leaves_out_the_programs_own_messages_and_tells_orders_and_blocked_tasks(
    lived: LivedHome,
) -> None:
    owner, frida = "did:plc:owner", "did:plc:frida"
    to_owner = {"conversation_id": "talk", "to": owner, "text": "Done."}
    await lived.done("direct_message", 1, body=DirectMessageBody(**to_owner))
    await lived.done("direct_message", 2, body=DirectMessageBody(**to_owner, is_notice=True))
    ordered = {"by_owner": True, "cause_id": "owner:1"}
    await lived.done("follow", 3, target=frida, body=FollowBody(did=frida, handle="frida.test"), **ordered)
    lost = FollowBody(did="did:plc:bo", handle="bo.test")
    await lived.done("follow", 4, target="did:plc:bo", body=lost, state="failed", **ordered)
    mention = RecordRef(uri=f"at://{owner}/app.bsky.feed.post/3m", cid="c")
    answer = ReplyBody(text="Tin.", parent=mention, root=mention)
    await lived.done("reply", 5, body=answer, by_owner=True, cause_id=mention.uri)
    stranger = RecordRef(uri=f"at://{frida}/app.bsky.feed.post/3m", cid="c")
    theirs = TheirPost(handle="frida.test", text="Is it tin?")
    drafted = ReplyBody(text="Slate.", parent=stranger, root=stranger, theirs=theirs)
    await lived.done("reply", 6, body=drafted, by_owner=True, cause_id=stranger.uri)
    dull = drafted.model_copy(update={"text": "Basalt."})
    await lived.done("reply", 7, body=dull, state="blocked", rejected=True, cause_id=stranger.uri, error="too dry")
    refused = {"state": "blocked", "kind": "reply"}
    await lived.journal.record(Entry("act", "outbox", "Rejected", reason="too dry", intent_id="0007", data=refused))
    first = FollowBody(did="did:plc:earlier", handle="earlier.test")
    await lived.done("follow", 8, target=first.did, body=first, by_owner=True, cause_id=owner_follow.CAUSE)
    later = FollowBody(did=owner, handle="owner.test")
    await lived.done("follow", 9, target=owner, body=later, **ordered)
    row = TaskPlace(Repo("a", "b"), 1, 2).row
    await WorkTable(lived.database, lived.clock).keep(replace(row, payload={**row.payload, "standing": BLOCKED}))
    found = lived.reader(owner=owner).read()
    assert found.done == {"direct_message": 1, "follow": 3, "reply": 2}
    day = await lived.database.run(lambda connection: store.done_since(connection, "2026-01-01"))
    assert day == found.done, "every count of acts leaves them out"
    assert len(found.orders) == 5, "neither an answer to a mention of the owner nor the first follow of one is an order"
    assert found.with_whom == {
        "direct_message": ("owner.test",),
        "follow": ("owner.test", "earlier.test", "frida.test"),
    }
    assert [one.what for one in found.troubles] == ["The task a/b#1/2 is blocked"]
    brief = brief_text(found)
    orders = ("follow @owner.test (done)", "follow @bo.test (failed)", "follow @frida.test (done)")
    assert f"Ordered by your owner: {', '.join(orders)}" in brief
    stopped = "Stopped by your owner: reply to @frida.test (the owner rejected it)"
    assert stopped in brief, "others may have led to its words"
    told = told_text(found)
    assert (told.count("too dry"), "Basalt" in told, "refused" in told) == (1, True, False), "each act is told once"
    assert "Approved by your owner: reply to @frida.test: “Slate.” (done)" in brief
    for told in ("@owner.test", "@frida.test", "a/b#1/2"):
        assert told in brief
    assert len(told) < 800


async def test_a_commitment_stands_under_the_day_on_which_it_ended(lived: LivedHome, tmp_path: Path) -> None:
    queue = CommitmentQueue(tmp_path, WorkTable(lived.database, lived.clock), lived.clock)
    kept, given_up = [await taken(queue, words) for words in ("The list", "The poem")]
    await queue.mark_in_progress(kept.id)
    await lived.clock.advance(8 * 3_600)
    await queue.mark_completed(kept.id, {})
    await queue.give_up(given_up.id, STALE)
    yesterday, today = (lived.reader().read(day).commitments for day in ("2026-01-05", "2026-01-06"))
    assert (yesterday.kept, yesterday.given_up) == ((), ())
    assert [len(today.kept), len(today.given_up)] == [1, 1]


async def test_it_tells_what_is_open_learned_spent_and_wrong_with_the_remedy(lived: LivedHome) -> None:
    now = iso(lived.clock.now())

    def made(number: int, status: Any) -> QueuedCommitment:
        return QueuedCommitment(
            f"commitment-{number}", now, f"Thing {number}", "", "", IssueParams(), status=status, last_attempt_at=now
        )

    known = [made(1, "pending"), made(2, "completed"), made(3, "abandoned")]
    rows = [NewWork(COMMITMENT, one.id, as_json(one), author="", importance="commitment") for one in known]
    await WorkTable(lived.database, lived.clock).add(*rows)
    await lived.database.run(
        lambda connection: remember(connection, NewMemory("fact", "the mill", "It grinds."), lived.clock.now())
    )

    def spend(connection: sqlite3.Connection) -> None:
        ledger.hold(connection, "spent", day="2026-01-05", at=now, amount=Spent(900))
        ledger.settle(connection, "held:spent", input_tokens=900, output_tokens=0, micro_usd=0)
        ledger.hold(connection, "coding", day="2026-01-05", at=now, amount=Spent(50))

    await lived.database.run(spend)
    for _ in range(2):
        await lived.journal.record(Entry("error", "start", "No login", reason="Make a new app password"))
    Control(lived.home.memory).pause("off to bed")
    found = lived.reader().read()
    assert (found.commitments.open, found.commitments.kept, found.commitments.given_up) == (
        ("Thing 1",),
        ("Thing 2",),
        ("Thing 3",),
    )
    assert (found.learned.memories, found.learned.subjects) == (1, ("the mill",))
    assert (found.spent.tokens, found.spent.tokens_set_aside, found.spent.fraction) == (900, 50, 0.9)
    assert [(one.what, one.count) for one in found.troubles] == [
        ("paused by the owner: off to bed", 1),
        ("90% of the day's budget is used", 1),
        ("No login", 2),
    ]
    assert all(one.remedy for one in found.troubles)
    told = " ".join(" ".join(day_lines(found)).split())
    for words in ("not awake", "Thing 1", "the mill", "10% of the day's budget is left", "soul resume"):
        assert words in told
    same = replace(found.learned, self_changes=("it came up twice",) * 3)
    assert " ".join(day_lines(replace(found, learned=same))).count("it came up twice") == 1
    assert json.loads(json.dumps(asdict(found)))["day"] == "2026-01-05"


@pytest.mark.parametrize("day", ["2026-01-06", "2026-13-01"])
async def test_what_is_no_day_that_was_lived_is_wrong_usage(lived: LivedHome, day: str) -> None:
    with pytest.raises(UsageError):
        lived.reader().read(day)


async def test_silences_that_the_model_chose_count_as_its_own_judgement_and_those_of_rules_by_their_rule(
    running_town: RunningTown,
) -> None:
    reasons = iter(("they were talking to Sam", "Ada said it all", "it is a joke among friends"))
    running_town.mind.answer = lambda _: call("stay_silent", reason=next(reasons))
    home = running_town.make_home("rowan")
    root, _ = running_town.network.post_as(running_town.account("rowan"), "Tin sings.")
    running_town.network.post_as(running_town.account("bo"), "thanks!", reply_to_uri=root)
    for who, text in (("kit", "I told @rowan.test, did I not, Sam?"), ("ada", "Slate it is, @rowan.test")):
        running_town.network.post_as(running_town.account(who), text)
    async with awake(home) as life:
        await life.look()
        found = DayReader(settings_of(home), home, life.app.services.clock).read()
    silent = [one for one in found.reasons if one.act == "silent"]
    assert [(one.count, one.is_chosen) for one in silent] == [(2, True)]
    assert [(one.reason, one.is_chosen) for one in found.reasons if one.act == "liked"] == [
        ("low-value acknowledgment", False)
    ]
    told = " ".join(" ".join(day_lines(found)).split())
    assert "left alone 2: its own judgement (2: @" in told
    assert all(name in told for name in ("@kit.test", "@ada.test"))


async def test_a_day_tells_what_was_sent_back_refused_and_dropped_and_a_chosen_like_as_a_like(
    running_town: RunningTown,
) -> None:
    calls = [call("bluesky_reply", text="@rowan.test is me"), call("bluesky_like")]
    running_town.mind.answer = lambda _: calls.pop(0)
    home = running_town.make_home("rowan")
    running_town.network.post_as(running_town.account("kit"), "I agree with all of it, @rowan.test")
    async with awake(home) as life:
        await life.look()
        services = life.app.services
        dropped = Entry("decision", "work", "Giving up on a ritual", reason="SELF.md names it no longer")
        await services.journal.record(replace(dropped, data={"act": "dropped"}))
        refused = await services.outbox.submit(
            ProposedAction(PostBody(text=f"It is {PASSWORD}."), cause_id="expression")
        )
        assert not refused.accepted
        found = DayReader(settings_of(home), home, services.clock).read()
    assert [(one.what, one.count) for one in found.sent_back] == [("bluesky_reply", 1)]
    told = " ".join(" ".join(day_lines(found)).split())
    assert "sent back 1: bluesky reply: @rowan.test is you;" in told
    assert "refused 1: post: " in told
    assert "dropped 1: Giving up on a ritual: SELF.md names it no longer (1)" in told
    assert "Liking the post of @kit.test" in told
    assert "instead" not in told


async def test_who_wants_work_of_the_owner_is_listed_with_the_posts_and_named_in_the_owners_turn(
    running_town: RunningTown,
) -> None:
    said = iter(
        (
            ("My owner would have to ask me for a site.", "a site"),
            ("Gladly, once the person I belong to wants it.", "songs"),
            ("Only the person I belong to can order the site.", "the site of a cafe"),
        )
    )

    def answer(_: ChatRequest) -> Completion:
        text, wish = next(said)
        return call("bluesky_reply", text=text, wish=wish)

    running_town.mind.answer = answer
    home = running_town.make_home("rowan")
    posts = [
        running_town.network.post_as(running_town.account(who), f"@rowan.test build my {what} a site, will you?")[0]
        for who, what in (("kit", "cafe"), ("ada", "choir"))
    ]
    async with awake(home) as life:
        await life.look()
        running_town.network.post_as(running_town.account("kit"), "@rowan.test and the site of the cafe?")
        await life.look()
        found = DayReader(settings_of(home), home, life.app.services.clock).read()
    told = " ".join("\n".join(day_lines(found)).split())
    assert told_text(found).count("@kit.test: ") == 1
    assert all(web_url(post) in told for post in posts)
    assert told.count("songs") == told_text(found).count("songs") == 1
    assert "a site" not in brief_text(found)
    assert "2 (@ada.test, @kit.test)" in brief_text(found) or "2 (@kit.test, @ada.test)" in brief_text(found)


async def test_a_call_that_a_tool_does_not_take_is_told_without_the_answer_for_the_model(lived: LivedHome) -> None:
    fields = "Error: name (text), voice (optional text), limits (optional text), posting (optional text)"
    wrong = {"tool": "profile_update", "input": {}, "error": fields, "malformed": True}
    await lived.journal.record(
        Entry("model", "owner", "A turn", data={"calls": [wrong, {"tool": "act", "error": "Error: no."}]})
    )
    told = " ".join(" ".join(day_lines(lived.reader().read())).split())
    assert f"sent back 2: profile update: {MALFORMED} (1); act: no. (1)" in told


async def test_a_day_is_own_with_reasons_of_the_owner_s_and_of_the_program_s_and_not_with_others(
    lived: LivedHome,
) -> None:
    ordered: dict[str, Any] = {"by_owner": True, "cause_id": "owner:1", "body": FollowBody(did="did:plc:bo")}
    await lived.done("follow", 1, state="blocked", rejected=True, error="the owner rejected it: too many", **ordered)
    await lived.done("follow", 2, state="blocked", rejected=True, error="withdrawn: the owner asked for it", **ordered)
    await lived.done("follow", 3, state="blocked", error="@bo.test is muted", **ordered)
    await lived.done("follow", 4, state="expired", error="waited too long", **ordered)
    await lived.done("follow", 5, state="held", error="the order did not name its target", **ordered)
    refused = {"state": "blocked", "kind": "post", "attempts": 0, "deferrals": 0}
    await lived.journal.record(Entry("act", "outbox", "Blocked", reason="Near-duplicate", intent_id="ff", data=refused))
    silent = {"act": "silent", "source": "values"}
    thought = Entry("decision", "expression", "Posted nothing (values)", reason="the kiln is cold; next", data=silent)
    await lived.journal.record(replace(thought, provenance=Provenance.SELF))
    day = lived.reader().read()
    told = " ".join(" ".join(day_lines(day)).split())
    assert all(one in told for one in ("too many", "the owner asked for it", "is muted", "no post", "the kiln is cold"))
    assert "no post: Posted nothing (values): the kiln is cold" in told_text(day)
    assert day.is_own
    for kind, sent_at in (("follow", iso(EVENING)), ("issue", None)):
        await lived.done(kind, 6, first_sent_at=sent_at, state="failed", error="Mute me not!", **ordered)
        assert not lived.reader().read().is_own
        await lived.database.run(lambda connection: connection.execute("DELETE FROM intents WHERE state = 'failed'"))
        assert lived.reader().read().is_own
    answered: dict[str, Any] = {"tool": "mute_account", "input": {}, "error": "Blocked: mute_account was not called"}
    turn = Entry("model", "owner", "Thought", data={"calls": [answered]}, provenance=Provenance.OWNER)
    failed = replace(turn, data={"calls": [{**answered, "error": "Error: Mute me not!", "went_wrong": True}]})
    for entry, is_own in ((turn, True), (replace(turn, provenance=Provenance.STRANGER), False), (failed, False)):
        await lived.journal.record(entry)
        assert lived.reader().read().is_own is is_own, entry
        await lived.database.run(lambda connection: connection.execute("DELETE FROM journal WHERE kind = 'model'"))
    for draft, is_own in ((Provenance.SELF, True), (Provenance.STRANGER, False)):
        kept = {"cause_id": "owner:1", "body": FollowBody(did="did:plc:bo"), "state": "blocked", "rejected": True}
        await lived.done("follow", 7 + int(is_own), error="the owner rejected it", **kept)
        entry = Entry("act", "outbox", "Waits", intent_id=f"{7 + int(is_own):04x}", provenance=draft)
        await lived.journal.record(entry)
        assert lived.reader().read().is_own is is_own, draft
    await lived.database.run(lambda connection: connection.execute("DELETE FROM intents WHERE rkey = '7'"))
    await lived.journal.record(thought)
    assert not lived.reader().read().is_own, "it was about a picture, or what was read"


@pytest.mark.parametrize("is_own", [True, False])
async def test_a_waiting_change_of_a_file_leaves_a_day_own_unless_others_words_are_behind_it(
    lived: LivedHome, *, is_own: bool
) -> None:
    SelfHistory(lived.home, SELF).hold(HeldEdit("Tin.", "roofs", (), iso(EVENING), "it is short", is_own=is_own))
    day = lived.reader().read()
    assert "A change of SELF.md waits for your approval" in told_text(day)
    assert day.is_own is is_own


async def test_after_a_run_that_was_killed_the_day_says_that_this_is_wrong(lived: LivedHome) -> None:
    assert not lived.reader().read().troubles
    await lived.database.run(lambda connection: marks.put(connection, {marks.RUNNING: iso(lived.clock.now())}))
    (trouble,) = lived.reader().read().troubles
    assert (marks.KILLED in trouble.what, "`soul run`" in trouble.remedy) == (True, True)


async def test_a_day_tells_each_thing_once_and_as_it_stands_now(lived: LivedHome) -> None:
    """A refusal has one heading, a deleted post is not counted, and a like that waited when chosen is no case."""
    gone = "at://did:plc:rowan/app.bsky.feed.post/3gone"
    await lived.done("post", 1, result_uri=gone)
    await lived.done("post", 2, result_uri="at://did:plc:rowan/app.bsky.feed.post/3kept")
    await lived.done("delete", 3, target=gone)
    blocked = {"tool": "bluesky_post", "input": {}, "error": "Blocked: said before"}
    calls = [blocked | {"intent_id": "0001"}, blocked | {"tool": "bluesky_reply"}]
    await lived.journal.record(Entry("model", "owner", "Thought", line=None, data={"calls": calls}))
    await lived.decided("liked", "a kind word", held=True)
    found = lived.reader().read()
    assert found.done == {"delete": 1, "post": 1}
    assert [one.what for one in found.sent_back] == ["bluesky_reply"]
    assert found.cases == ()


async def test_a_change_of_a_file_is_a_draft_while_it_waits_and_then_told_as_decided(lived: LivedHome) -> None:
    keeper = SelfKeeper(
        home=lived.home, clock=lived.clock, journal=lived.journal, redactor=Redactor(), document="GOALS.md"
    )
    await keeper.change("# Goals\n\n- Rest.\n", reason="you asked for it", by="soul", hold="others' words")
    day = lived.reader().read()
    assert (day.waits.drafts, day.own_time) == (1, ())
    assert told_text(day).count("A change of GOALS.md waits") == 1
    await keeper.reject()
    day = lived.reader().read()
    assert (day.waits.drafts, day.drafts) == (0, ())
    assert "waits" not in told_text(day)
    assert "files: The owner rejected a change of GOALS.md" in told_text(day)
    assert "own time" not in told_text(day)


async def test_the_day_tells_what_was_unfollowed_deleted_approved_and_changed_at_the_owner_s_word(
    running_town: RunningTown,
) -> None:
    home, goals = running_town.make_home("rowan", SOUL_APPROVAL="drafts", SOUL_TIMEZONE="UTC"), "# Goals\n\n- Flour.\n"
    async with awake(home, clock=at_noon()) as life:
        services = life.app.services
        theirs, _ = running_town.network.post_as(running_town.account("kit"), "Zinc creeps.")
        orders = {
            f"Like {theirs}": call("bluesky_like", post_uri=theirs),
            f"Undo your like of {theirs}": call("bluesky_delete_post", post_uri=theirs, what="like"),
            "Follow kit.test": call("bluesky_follow", did="kit.test"),
            "Unfollow kit.test": call("bluesky_unfollow", did="kit.test"),
            "Post: Flour is dust.": call("bluesky_post", text="Flour is dust."),
            "Delete your newest post": call("bluesky_delete_post", post_uri="newest"),
            "Write something about tin": call("bluesky_post", text="Tin rusts."),
            "Put flour into your goals": call("self_update", file="GOALS.md", content=goals, reason="a wish"),
        }
        for line, step in orders.items():
            running_town.mind.answer = playing([step, Completion("Well.")])
            await answered(life.app.owner, line)
            for one in await services.outbox.held():
                await services.outbox.approve(one.id)
            life.passes(600)
            await life.send()
        day = await asyncio.to_thread(DayReader(services.settings, home, life.clock).read)
        lines, shown = dict(did(day)), told_text(day)
        (post,) = day.posts
        written = [one.entry.summary for one in await services.journal.recent(200)]
        turn = Turn("owner", Provenance.OWNER, origin=Provenance.OWNER)
        asked = ToolCall("1", "talk_search", {"words": "flour"})
        found = await life.app.lives.turn_services.turn_runner.executor.execute(asked, turn)
    assert {"Queued unfollow: @kit.test", "Sent unfollow: @kit.test"} <= {*written}
    assert not any("graph.follow" in one for one in written)
    assert "Flour is dust" not in found.content, "it was deleted"
    assert lines["also done"] == "deletion (2), unfollow (1)"
    assert "post: “Flour is dust.” (deleted since)" in lines["ordered"]
    assert "take back the like of @kit.test: “Zinc creeps.” (done)" in lines["ordered"]
    assert "delete a post of its own: “Flour is dust.” (done)" in lines["ordered"]
    assert "GOALS.md changed (done)" in lines["ordered"]
    assert lines["approved"] == "post: “Tin rusts.” (done)"
    assert not any("GOALS.md" in one for _, one in led_to(day))
    assert f"posted: “Tin rusts.” {post[1]}" in shown
    assert post[1].startswith("https://bsky.app/profile/")
