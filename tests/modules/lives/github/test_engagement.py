"""Proves what is remembered of a thread on GitHub: one reducer, and a file that survives crashes and upgrades.

Over the town's GitHub no notification is lost, and most looks where nothing changed cost nothing of the rate limit.
"""

import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.github.client import GitHub
from adapters.web.client import http_transport_factory
from common.clock import FakeClock, iso, parse_iso
from common.result import Ok
from modules.lives.github.engagement import (
    FILE,
    OLD_AFTER,
    OVER_AFTER,
    Commented,
    Engagement,
    EngagementEvent,
    GitHubPerceiver,
    GitHubState,
    LeftThread,
    Reentered,
    StayedSilent,
    ThreadRead,
    Tracked,
    after,
    is_outlived,
)
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.services.github_threads import THREAD, ThreadInbox, WaitingThread, thread_of
from modules.services.inbox import received
from modules.services.inbox.received import ReceivedPost
from modules.services.work.table import WorkTable
from tests.modules.lives.github.threads import ME, at, thread
from town.github.limits import GitHubMeter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import StoredRepo
from town.serving import serve

WAITING = WaitingThread("acme/site", 7, "issue", "bluesky_url", at(1))
KEY, URL = "acme/site#7", "https://github.com/acme/site/issues/7"
NOW = FakeClock().now()


def known(**changes: object) -> Engagement:
    record = after(None, Tracked(WAITING, URL), NOW)
    assert record
    return record.replace(**changes)


def test_what_leads_to_a_thread_begins_a_record_and_leads_to_it_again() -> None:
    record = known()
    assert (record.owner, record.repo, record.number, record.state) == ("acme", "site", 7, "new")
    assert record.source == "bluesky_url"
    later = NOW + timedelta(hours=1)
    assert after(record, Tracked(WAITING, URL), later) == record.replace(last_checked=later)
    assert after(None, Commented(), later) is None


def test_the_state_follows_what_was_read_and_said() -> None:
    read = after(known(), ThreadRead(thread(("kit", f"@{ME}")), ME, is_to_be_answered=True), NOW)
    assert read
    assert (read.state, read.our_comment_count, read.our_comment_id) == ("active", 0, None)
    said = after(read, Commented(), NOW)
    assert said
    assert (said.state, said.last_commented_at) == ("awaiting_response", NOW)
    again = after(said, ThreadRead(thread((ME, "a"), (ME, "b")), ME, is_to_be_answered=False), NOW)
    assert again
    assert (again.state, again.our_comment_count, again.our_comment_id) == ("awaiting_response", 2, 102)
    closed = after(again, ThreadRead(thread((ME, "a"), state="closed"), ME, is_to_be_answered=False), NOW)
    assert closed
    assert closed.state == "closed"


def noted(record: Engagement, event: EngagementEvent) -> Engagement:
    found = after(record, event, NOW)
    assert found
    return found


def test_what_an_attempt_to_answer_read_counts_as_read_once_it_succeeds() -> None:
    record = known()
    events: tuple[EngagementEvent, ...] = (Commented(), LeftThread("enough"), StayedSilent(thread()))
    for count, event in enumerate(events):
        before = record.read_until
        for said in ([], [("kit", "hm")] * count):
            record = noted(record, ThreadRead(thread(*said), ME, is_to_be_answered=True))
            assert record.read_until == before
        record = noted(record, event)
        assert record.read_until == parse_iso(at(count))


def test_a_thread_that_we_left_stays_so_until_it_is_entered_again_and_only_others_are_counted() -> None:
    left = after(known(), LeftThread("it went in circles"), NOW)
    assert left
    assert (left.state, left.conclusion_reason, left.concluded_at) == ("concluded", "it went in circles", NOW)
    read = after(left, ThreadRead(thread(("kit", "hm")), ME, is_to_be_answered=False), NOW)
    assert read
    assert read.state == "concluded"
    for by_owner, count in ((True, 0), (False, 1)):
        back = after(read, Reentered(by_owner=by_owner), NOW)
        assert back
        assert (back.state, back.concluded_at, back.reengagement_count) == ("active", None, count)


@pytest.mark.parametrize(
    ("state", "age", "gone"),
    [
        ("concluded", OVER_AFTER, False),
        ("concluded", OVER_AFTER + timedelta(seconds=1), True),
        ("closed", OVER_AFTER + timedelta(seconds=1), True),
        ("active", OVER_AFTER + timedelta(days=1), False),
        ("awaiting_response", OLD_AFTER + timedelta(seconds=1), True),
    ],
)
def test_what_is_over_goes_after_a_month_and_anything_after_two(state: str, age: timedelta, *, gone: bool) -> None:
    assert is_outlived(known(state=state, last_checked=NOW - age), NOW) is gone


async def test_the_file_is_stamped_and_read_again_and_keeps_what_another_version_wrote(
    tmp_path: Path, database: Database
) -> None:
    clock = FakeClock()
    state = GitHubState(tmp_path, database, clock)
    state.note(KEY, Tracked(WAITING, URL))
    written = json.loads((tmp_path / FILE).read_text())
    assert written["_memoryVersion"]
    assert written["conversations"][KEY]["reengagementCount"] == 0
    written |= {"_memoryVersion": "0.0.1", "later": 1}
    (tmp_path / FILE).write_text(json.dumps(written))
    again = GitHubState(tmp_path, database, clock)
    assert again.notice == ""
    record = again.known(KEY)
    assert record
    assert record.source == "bluesky_url"
    again.note(KEY, Commented())
    assert json.loads((tmp_path / FILE).read_text())["later"] == 1
    await clock.advance(OLD_AFTER.total_seconds() + 1)
    again.cleanup_old_conversations()
    assert GitHubState(tmp_path, database, clock).known(KEY) is None


async def test_posts_are_read_on_after_the_clock_ran_ahead(tmp_path: Path, database: Database) -> None:
    clock = FakeClock()
    state = GitHubState(tmp_path, database, clock)

    async def read(uri: str, later: timedelta) -> set[str]:
        post = ReceivedPost(uri, uri, "did:plc:ada", {}, iso(NOW), iso(NOW + later), "pending")
        await database.run(lambda rows: received.insert(rows, [post]))
        found = await state.posts_since_last_look()
        await state.note_posts(found)
        return {one.uri for one in found}

    await database.run(lambda rows: marks.put(rows, {"github.posts_read": iso(NOW + timedelta(days=9))}))
    assert await read("at://ahead", timedelta(days=9)) == {"at://ahead"}
    await clock.advance(60)
    assert "at://now" in await read("at://now", timedelta(seconds=30))


LOOKS = int(os.environ.get("GITHUB_LOOKS", "100"))
"""Number of looks, two minutes apart; 5040 are a week."""
BETWEEN = 40
"""Number of looks from one mention to the next."""


@dataclass
class Place:
    clock: FakeClock
    network: GitHubNetwork
    repo: StoredRepo
    github: GitHub
    state: GitHubState
    work: WorkTable
    perceiver: GitHubPerceiver

    def mention(self, number: int) -> None:
        issue = self.repo.issues[1]
        kit = self.network.find("kit")
        assert issue
        assert kit
        self.network.write_comment(self.repo, issue, kit, f"@rowan number {number}?")

    async def settle(self) -> int:
        """Settle all waiting threads, and return how many there were."""
        waiting = await self.work.due([THREAD])
        for one in waiting:
            await self.work.settle(one, "done", "commented")
            assert isinstance(await self.github.notifications.mark_read(thread_of(one).notice), Ok)
        return len(waiting)


@pytest.fixture
async def place(tmp_path: Path, database: Database) -> AsyncIterator[Place]:
    clock = FakeClock()
    network = GitHubNetwork(clock=clock)
    rowan = network.create_account("rowan")
    repo = network.create_repo(network.create_account("acme"), "site")
    network.open_issue(repo, network.create_account("kit"), title="Which layout?", body="Narrow or wide?")
    async with serve(github_app(network, meter=GitHubMeter(clock, known=5000))) as url:
        transport = http_transport_factory(url, private_ok=True)
        github = GitHub(
            api_url=url, login="rowan", token=rowan.token, clock=clock, min_spacing_s=0, transport=transport
        )
        state = GitHubState(tmp_path, database, clock)
        work = WorkTable(database, clock)
        threads = ThreadInbox(work, clock, 0.0)
        perceiver = GitHubPerceiver(state, threads, github, clock, owner_did="did:plc:owner", watched=tuple)
        yield Place(clock, network, repo, github, state, work, perceiver)
        await github.aclose()


async def test_of_many_looks_most_cost_nothing_and_every_mention_is_found(place: Place) -> None:
    found, mentioned, paid = 0, 0, 0
    for look in range(LOOKS):
        if look % BETWEEN == BETWEEN // 2:
            place.mention(mentioned)
            mentioned += 1
        before = place.github.rate.remaining
        looked = await place.perceiver.look_at_notifications()
        assert isinstance(looked, Ok)
        paid += place.github.rate.remaining < before
        found += await place.settle()
        await place.clock.advance(120)
    assert found >= mentioned > 0
    assert paid / LOOKS <= 0.2, paid


async def test_a_look_comes_not_sooner_than_github_asks_for(place: Place) -> None:
    assert await place.perceiver.look_at_notifications() == Ok(0)
    place.mention(1)
    await place.clock.advance(30)
    assert await place.perceiver.look_at_notifications() == Ok(0)
    await place.clock.advance(31)
    assert await place.perceiver.look_at_notifications() == Ok(1)
    (row,) = await place.work.due([THREAD])
    waiting = thread_of(row)
    assert (waiting.key, waiting.kind, waiting.reason) == ("acme/site#1", "issue", "mention")
    assert place.state.seen_at >= waiting.at
