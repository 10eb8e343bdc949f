"""Each claim in a workspace and its finished plan are told in the thread that named the workspace, once, with a link.

A workspace without open work is judged, and an issue says that it is finished until somebody objects.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from common.constants import OWNER_CAUSE
from common.result import Ok
from modules.services.claims.lease_store import TaskPlace
from modules.services.commitments.acts import announcement_target
from modules.services.inbox.messages import message_name
from modules.services.outbox.bodies import RecordRef, ReplyBody, SpaceChatBody
from modules.services.outbox.github_bodies import IssueBody
from modules.services.outbox.types import ProposedAction
from modules.services.peers.policy import PeerClaim
from modules.services.plans.events import asked_entry, asked_in_room, wish_mark
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import Plan, Task, TaskStatus
from modules.services.rights import store as rights
from modules.services.rights import tombstones
from modules.services.rights.policy import PREFERENCE
from modules.services.workspaces.health import SCENARIOS
from modules.services.workspaces.trust import READ_AGAIN_S
from tests.adapters.results import ok
from tests.counted_requests import CountedRequests
from tests.hasty_clock import SetAhead
from tests.modules.lives.space.soul_in_room import Onlooker
from tests.patience import until
from tests.running_town import RunningTown
from tests.scenarios.workspace_town import DAY_S, DONE, HOUR_S, SITE, LivingSoul, WorkspaceTown, open_workspace
from town.github.values import Fault, StoredIssue

THREADS = "app.bsky.feed.getPostThread*"
OTHER_CAUSE = "plan-synthesis:x"
OPEN = Plan("Tides", goal="They can be read.", tasks=(Task(1, "Read"), Task(2, "Warn @kit"), Task(3, "Print")))
CODED = Plan("Tides", goal="They can be read.", tasks=(Task(1, "Read", files=("tides.py",)),))


@pytest.fixture
async def place(running_town: RunningTown) -> AsyncIterator[WorkspaceTown]:
    async with open_workspace(running_town) as place:
        yield place


def plan(place: WorkspaceTown, by: str = "kit", **statuses: tuple[TaskStatus, str | None]) -> StoredIssue:
    """Open a plan with the given status and assignee of each task, by keyword such as `t1`."""
    tasks = [Task(one.number, one.title, *statuses.get(f"t{one.number}", ("pending", None))) for one in OPEN.tasks]
    body = generate_plan_markdown(Plan(OPEN.title, OPEN.goal, tasks=tuple(tasks)))
    return place.opens(by, "[PLAN] Tides", body, "plan")


async def opens(living: LivingSoul, cause: str, mark: str = "", what: Plan = OPEN, **more: Any) -> None:
    """Let the SOUL open a plan, with `cause` as the cause."""
    outbox, body = living.soul.app.services.outbox, f"{generate_plan_markdown(what)}{mark}"
    issue = IssueBody(
        repo=SITE.full_name, title="[PLAN] Tides", body=body, labels=("plan",), about="a plan", text=body, **more
    )
    assert (await outbox.submit(ProposedAction(issue, "plan", cause_id=cause, by_owner=True))).accepted
    await living.soul.send()


async def tells_room(living: LivingSoul, text: str, room: str) -> None:
    """Let the SOUL tell a room the result of a commitment that was made there."""
    said = SpaceChatBody(source="space", commitment_id="commitment-1", text=text, room=room)
    told = ProposedAction(said, announcement_target("commitment-1"), by_owner=True, urgent=True)
    assert (await living.soul.app.services.outbox.submit(told)).accepted


def thread(place: WorkspaceTown, living: LivingSoul, by: str = "owner") -> str:
    """Start a thread in which the workspace is named; return its URI."""
    place.town.account("rowan")
    root, _ = place.town.network.post_as(place.town.account(by), "A table of tides would be a fine thing.")
    watched = living.soul.app.services.workspaces
    watched.watch(SITE, root)
    return root


@pytest.mark.slow
async def test_each_claim_of_ours_is_told_once_below_our_latest_words_there(place: WorkspaceTown) -> None:
    issue = plan(place, t1=("in_progress", "Rowan"), t2=("claimed", "rowan"), t3=("in_progress", "kit"))
    url = f"{place.url}/{SITE.full_name}"
    pull = place.opens("rowan", "task(2): Warn", f"Part of #{issue.number}")
    pull.is_pull = True
    async with place.living() as living:
        root = thread(place, living)
        await living.look(times=4)
        first, second = place.town.texts("rowan")
        assert first == f"Task 1 is mine: Read\n\n{url}/issues/{issue.number}"
        assert second == f"Task 2 is mine: Warn @\u200bkit\n\n{url}/pull/{pull.number}"
        own = [one for one in reversed(place.town.network.posts(9)) if one.author.handle == "rowan.test"]
        assert [one.reply.root.uri for one in own if one.reply] == [root, root]
        assert [one.reply.parent.uri for one in own if one.reply] == [root, own[0].uri]
    async with place.living() as living:
        await living.look(times=2)
    assert len(place.town.texts("rowan")) == 2


@pytest.mark.parametrize(
    "left_alone",
    ["", *(pytest.param(why, marks=pytest.mark.slow) for why in ("muted", "no reply", "forgotten", "denies"))],
)
async def test_who_asked_for_a_plan_hears_that_it_stands_and_that_it_is_done(
    place: WorkspaceTown, left_alone: str
) -> None:
    place.town.account("rowan")
    network, asker = place.town.network, place.town.account("wren")
    root, _ = network.post_as(place.town.account("kit"), "The tides again.")
    asked, _ = network.post_as(asker, "@rowan.test could you plan a tide table?", reply_to_uri=root)
    if left_alone == "denies":
        network.put(asker, PREFERENCE, "self", {"$type": PREFERENCE, "preferences": {"inference": {"allow": False}}})
    async with place.living() as living:
        services = living.soul.app.services
        await living.soul.look()
        thread(place, living)
        await opens(living, asked, f"\n\n{wish_mark(asked)}")
        now = services.clock.now()
        match left_alone:
            case "muted":
                await services.database.run(lambda rows: rights.mute(rows, asker, now))
            case "no reply":
                await services.database.run(lambda rows: rights.want_no_reply(rows, asker, now))
            case "forgotten":
                await services.database.run(lambda rows: tombstones.bury(rows, asker, now, muted=False))
            case _:
                pass
        await living.look(after_s=600, times=3)
        place.completes("kit", 1)
        await living.look(after_s=60, times=5)
        assert place.state(1) == "closed"
    url = f"{place.url}/{SITE.full_name}/issues/1"
    told = [f"The plan is here: {url}", f"All of the plan is done: {url}"]
    assert place.town.texts("rowan") == ([] if left_alone else told)
    own = [one for one in network.posts(9) if one.author.handle == "rowan.test"]
    assert {one.reply.root.uri for one in own if one.reply} == (set() if left_alone else {root})


@pytest.mark.slow
async def test_however_many_asked_for_the_issues_of_a_plan_each_hears_of_it_once(place: WorkspaceTown) -> None:
    place.town.account("rowan")
    network, home = place.town.network, place.home()
    askers = ("wren", "kit", "bea", "cyd", "dan", "eli", "fay", "gus")
    asked = [network.post_as(place.town.account(who), f"@rowan.test {who} wants tides.")[0] for who in askers]
    tasks = tuple(Task(number, f"Step {number}", description=f"For #{number}.") for number in range(1, 9))
    async with place.living(home) as living:
        await living.soul.look()
        for at, cause in enumerate(asked):
            issue = IssueBody(repo=SITE.full_name, title=f"Tides {at}", body="As asked.", source="workspace")
            wanted = ProposedAction(issue, part=f"{at}", cause_id=cause, by_owner=True)
            assert (await living.soul.app.services.outbox.submit(wanted)).accepted
            await living.soul.send()
        await opens(living, "workspace", what=Plan(OPEN.title, OPEN.goal, tasks=tasks))
        await living.look(after_s=600, times=3)
        await living.look(after_s=6 * 3600, times=2)
    async with place.living(home) as living:
        place.completes("kit", 9)
        await living.look(after_s=60, times=6)
        await living.look(after_s=6 * 3600, times=2)
    ours = [(one.reply.root.uri, one.text) for one in network.posts(40) if one.reply]
    told = [[text for root, text in ours if root == post and "/issues/9" in text] for post in asked]
    assert [len(texts) for texts in told] == [2] * 8, "more than may be told in an hour, in words that are the same"
    assert len({text for texts in told for text in texts}) == 2


@pytest.mark.slow
async def test_the_end_of_a_plan_is_said_once_after_its_last_pull_request_also_over_restarts(
    place: WorkspaceTown,
) -> None:
    asked, _ = place.town.network.post_as(place.town.account("owner"), "@rowan.test please plan a tide table.")
    home = place.home()
    async with place.living(home) as living:
        await living.soul.look()
        await opens(living, asked)
        issue = place.issue(1)
        pull = place.opens("rowan", "task(3): Print", f"Part of #{issue.number}")
        stray = place.opens("eve", "task(3): Print", f"Part of #{issue.number}")
        pull.is_pull = stray.is_pull = True
        place.completes("kit", issue.number)
        await living.look(after_s=600, times=3)
        assert (place.state(1), place.said(1)) == ("open", [])
        before = place.town.texts("rowan")
        place.closes("rowan", pull.number)
        await living.look(after_s=60)
    for _ in range(4):
        async with place.living(home) as living:
            await living.look(after_s=60)
    assert (place.state(1), len(place.said(1))) == ("closed", 1)
    done = f"All of the plan is done: {place.url}/{SITE.full_name}/issues/1"
    assert [text for text in place.town.texts("rowan") if text not in before] == [done]


@pytest.mark.parametrize(
    "why", ["no thread", "deleted post", *(pytest.param(why, marks=pytest.mark.slow) for why in ("muted", "no plan"))]
)
async def test_what_nobody_can_be_told_is_not_looked_for_again(place: WorkspaceTown, why: str) -> None:
    place.town.account("rowan")
    network, asker = place.town.network, place.town.account("wren")
    asked, _ = network.post_as(asker, "@rowan.test could you plan a tide table?")
    reads = CountedRequests(place.faults, "GET /repos/*/issues/1*"), CountedRequests(place.town.faults, THREADS, "lags")

    async def read_of_issue_and_thread() -> list[int]:
        await living.look(after_s=600, times=2)
        for one in reads:
            one.taken()
        await living.look(after_s=180, times=2)
        return [one.taken() for one in reads]

    async with place.living() as living:
        services = living.soul.app.services
        await living.soul.look()
        await opens(living, OTHER_CAUSE if why == "no thread" else asked)
        for number in (1, 99):
            await services.work.offer(TaskPlace(SITE, 1, number).row)
        match why:
            case "deleted post":
                network.delete(asker, "app.bsky.feed.post", asked.rpartition("/")[2])
            case "muted":
                await services.database.run(lambda rows: rights.mute(rows, asker, services.clock.now()))
            case "no plan":
                owner = place.network.find("owner")
                assert owner
                place.network.delete_issue(place.repo, place.issue(1), owner)
            case _:
                pass
        assert (await read_of_issue_and_thread())[1] == 0
        if why != "no plan":
            place.completes("kit", 1)
            place.closes("kit", 1)
        assert await read_of_issue_and_thread() == [0, 0]
    assert place.town.texts("rowan") == []


async def test_news_that_a_thread_has_already_is_not_looked_for_again(place: WorkspaceTown) -> None:
    place.town.account("rowan")
    asker = place.town.account("wren")
    asked, cid = place.town.network.post_as(asker, "@rowan.test could you plan a tide table?")
    reads = CountedRequests(place.town.faults, THREADS, "lags")
    async with place.living() as living:
        await living.soul.look()
        await opens(living, asked)
        there = RecordRef(uri=asked, cid=cid)
        answer = ReplyBody(text=f"{place.url}/{SITE.full_name}/issues/1", parent=there, root=there, told_to=asker)
        submitted = await living.soul.app.services.outbox.submit(ProposedAction(answer, cause_id=asked, by_owner=True))
        assert submitted.accepted
        await living.look(after_s=600, times=2)
        reads.taken()
        await living.look(after_s=180, times=2)
        assert reads.taken() == 0
    assert len(place.town.texts("rowan")) == 1


@asynccontextmanager
async def living_in_room(place: WorkspaceTown, url: str) -> AsyncIterator[LivingSoul]:
    """Yield a SOUL that is in the room at `url`."""
    async with place.living(place.home(SPACE_URL=url)) as living:
        room = living.soul.app.services.integrations.room
        runs = asyncio.create_task(room.run())
        await until(lambda: room.is_active, what="the room")
        yield living
        await room.close()
        await runs


@pytest.mark.parametrize(
    "asked_in", ["room", *(pytest.param(place, marks=pytest.mark.slow) for place in ("post", "terminal", "message"))]
)
async def test_who_opened_a_plan_tells_its_end_once_where_it_was_asked_for_whoever_closed_it(
    place: WorkspaceTown, asked_in: str
) -> None:
    place.town.account("rowan")
    asked, _ = place.town.network.post_as(place.town.account("wren"), "@rowan.test could you plan a tide table?")
    causes = {"room": "space://conversation/tides", "post": asked, "terminal": OWNER_CAUSE}
    host = Onlooker()
    server = SpaceServer(ChatLog(place.town.root / "room"), host, clock=SetAhead())
    assert isinstance(await server.start(0), Ok)
    room_url, url = f"ws://127.0.0.1:{server.port}", f"{place.url}/{SITE.full_name}/issues/1"
    told_in_room: dict[str, Any] = {"source": "space", "commitment_id": "commitment-1"} if asked_in == "room" else {}
    async with living_in_room(place, room_url) as living:
        await living.soul.look()
        if asked_in == "room":
            await tells_room(living, f"Done — plan stands: Tides: {url}", room_url)
        await opens(living, causes.get(asked_in) or f"{OWNER_CAUSE}:{message_name('talk', 'm1')}", **told_in_room)
        await living.look()
        place.completes("kit", 1)
        place.closes("kit", 1)
        await living.look(after_s=60, times=4)
    async with living_in_room(place, room_url) as living:
        await living.look(after_s=60, times=2)
        await living.soul.app.lives.alarm_loop.run()
        entries = await living.soul.app.services.journal.recent(500)
        ended = [one.entry.data["place"] for one in entries if one.entry.data.get("act") == "plan-done"]
        alarms = [one for one in entries if one.entry.loop == "alarms" and url in one.entry.summary]
    await server.stop()
    assert ended == ["thread" if asked_in == "post" else asked_in]
    end = f"All of the plan is done: {url}"
    assert [one.content for one in host.chats() if one.content == end] == ([end] if asked_in == "room" else [])
    assert [one for one in place.town.texts("rowan") if one == end] == ([end] if asked_in == "post" else [])
    assert len(alarms) == (asked_in == "message")


@pytest.mark.slow
async def test_who_asked_later_for_what_a_plan_does_hears_its_end_too_once_where_they_asked(
    place: WorkspaceTown,
) -> None:
    place.town.account("rowan")
    wren, network = place.town.account("wren"), place.town.network
    asked, _ = network.post_as(wren, "@rowan.test could you plan a tide table?")
    again, _ = network.post_as(wren, "Is it there yet?", reply_to_uri=asked)
    host = Onlooker()
    server = SpaceServer(ChatLog(place.town.root / "room"), host, clock=SetAhead())
    assert isinstance(await server.start(0), Ok)
    room_url, url = f"ws://127.0.0.1:{server.port}", f"{place.url}/{SITE.full_name}/issues/1"
    async with living_in_room(place, room_url) as living:
        services = living.soul.app.services
        await living.soul.look()
        await tells_room(living, f"Done — {url}", room_url)
        await opens(living, OWNER_CAUSE)
        found = ok(await services.github.get_issue(SITE, 1))
        for cause in (asked, asked, again, asked_in_room("commitment-1")):
            await services.journal.record(asked_entry(SITE, found, cause))
        place.completes("kit", 1)
        place.closes("kit", 1)
        await living.look(after_s=60, times=4)
    async with living_in_room(place, room_url) as living:
        await living.look(after_s=60, times=2)
        entries = await living.soul.app.services.journal.recent(500)
    await server.stop()
    places = [one.entry.data["place"] for one in entries if one.entry.data.get("act") == "plan-done"]
    assert sorted(places) == ["room", "terminal", "thread", "thread"]
    end = f"All of the plan is done: {url}"
    assert [one.content for one in host.chats() if one.content == end] == [end]
    assert place.town.texts("rowan") == [end]


@pytest.mark.parametrize("comes_back", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_the_end_of_a_plan_whose_soul_never_came_back_is_told_by_another_once(
    place: WorkspaceTown, *, comes_back: bool
) -> None:
    place.town.account("rowan")
    place.town.account("wren")
    place.repo.collaborators.add("wren")
    asked, _ = place.town.network.post_as(place.town.account("kit"), "@wren.test @rowan.test could you plan it?")
    issue = plan(place, by="wren")
    issue.body = f"{issue.body}\n\n{wish_mark(asked)}"
    wren = place.network.find("wren")
    assert wren
    async with place.living(place.home(SOUL_PEERS="wren.test")) as living:
        services = living.soul.app.services
        await living.soul.look()
        claim = PeerClaim("wren.test", place.town.account("wren"), "wren")
        services.peer_registry.link_bluesky_handle_to_github(claim, github_id=wren.id)
        await services.journal.record(asked_entry(SITE, ok(await services.github.get_issue(SITE, 1)), asked))
        place.clock.ahead += 60
        place.completes("kit", 1)
        place.closes("kit", 1)
        await living.look(after_s=60, times=2)
        assert place.town.texts("rowan") == []
        if comes_back:
            services.peer_registry.register_peer_by_github_username("wren", "plan", SITE.full_name)
        await living.look(after_s=700, times=3)
    async with place.living(place.home(SOUL_PEERS="wren.test")) as living:
        await living.look(after_s=700, times=2)
    end = f"All of the plan is done: {place.url}/{SITE.full_name}/issues/1"
    assert place.town.texts("rowan") == ([] if comes_back else [end])
    assert sum("end-told" in one.body for one in issue.comments) == (not comes_back)


async def test_who_opened_a_plan_and_comes_back_late_does_not_tell_its_end_again(place: WorkspaceTown) -> None:
    place.repo.collaborators.add("wren")
    async with place.living() as living:
        await opens(living, thread(place, living))
        place.completes("kit", 1)
        place.closes("kit", 1)
        place.says("wren", place.issue(1), "I tell it.\n\n<!-- soul:end-told -->")
        await living.look(after_s=60, times=3)
    assert place.town.texts("rowan") == []


@pytest.mark.parametrize(("author", "named"), [("eve", True), pytest.param("kit", False, marks=pytest.mark.slow)])
async def test_nothing_is_told_of_a_strangers_plan_or_without_a_thread(
    place: WorkspaceTown, author: str, *, named: bool
) -> None:
    plan(place, t1=("in_progress", "rowan")).author = place.network.find(author) or place.network.create_account(author)
    async with place.living() as living:
        if named:
            thread(place, living)
        await living.look(times=3)
    assert place.town.texts("rowan") == []


README = "A map of the town. The search is planned."


@pytest.fixture
async def ended(running_town: RunningTown) -> AsyncIterator[WorkspaceTown]:
    async with open_workspace(running_town) as found:
        found.opens("kit", "An old wish")
        found.closes("kit", 1)
        yield found


async def finished(ended: WorkspaceTown, one: LivingSoul) -> StoredIssue:
    """Return the sentinel issue that the SOUL opened, after the SOUL recorded its number."""
    await one.look(HOUR_S, times=2)
    number = one.watched.finished_issue_number
    assert number is not None
    return ended.issue(number)


async def test_what_the_pages_promise_and_nobody_built_becomes_one_issue(ended: WorkspaceTown) -> None:
    await ended.write(README=README)
    ended.mind.verdict = {"complete": False, "summary": "No search yet.", "remaining": ["Build the @eve search"]}
    async with ended.living() as one:
        await one.look(HOUR_S, times=2)
        assert one.watched.last_health_check_attempt is not None
    made = ended.issue(2)
    assert (made.title, made.state) == ("Unfinished: No search yet.", "open")
    assert "Build the" in (made.body or "")
    assert "@eve" not in (made.body or "")
    assert README in ended.mind.prompts("workspace_verdict")[0]
    assert len(ended.issues()) == 2


@pytest.mark.slow
async def test_what_is_missing_becomes_work_twice_at_most_and_again_once_somebody_says_so(ended: WorkspaceTown) -> None:
    await ended.write(README=README)
    ended.mind.verdict = {"complete": False, "summary": "No search yet.", "remaining": ["Build the search"]}
    async with ended.living() as one:
        for number in (2, 3):
            await one.look(DAY_S, times=2)
            assert ended.issue(number).title.startswith("Unfinished: ")
            ended.closes("kit", number)
        await one.look(DAY_S, times=2)
        made = ended.issue(4)
        assert [label.name for label in made.labels] == ["finished"]
        assert one.watched.finished_issue_number == made.number
        ended.says("kit", made, "The search is missing.")
        await one.look(60, times=3)
        ended.closes("kit", 5)
        await one.look(DAY_S, times=3)
        assert ended.issue(6).title.startswith("Unfinished: ")


async def test_a_finished_workspace_says_so_once(ended: WorkspaceTown) -> None:
    await ended.write(README=README)
    home = ended.home()
    async with ended.living(home) as one:
        made = await finished(ended, one)
    async with ended.living(home) as one:
        await one.look(DAY_S, times=3)
        assert one.watched.finished_issue_number == made.number
    assert made.title == f"LIL INTDEV FINISHED: {ended.mind.verdict['summary']}"
    assert [label.name for label in made.labels] == ["finished"]
    assert len(ended.issues()) == 2
    assert len(ended.mind.prompts("workspace_verdict")) == 1


async def test_where_nothing_was_begun_nothing_is_finished(running_town: RunningTown) -> None:
    async with open_workspace(running_town) as ended, ended.living() as one:
        await one.look(HOUR_S, times=2)
        assert ended.issues() == []


async def test_a_page_that_cannot_be_read_finishes_nothing(ended: WorkspaceTown) -> None:
    await ended.write(README=README)
    ended.faults.arm(Fault("bad_gateway", "GET /repos/*/contents/*", times=40))
    async with ended.living() as one:
        await one.look()
        assert one.watched.last_health_check_attempt is None
        assert len(ended.issues()) == 1
        ended.faults.clear()
        await finished(ended, one)


@pytest.mark.slow
async def test_a_verdict_that_cannot_be_used_is_asked_for_less_and_less_often(ended: WorkspaceTown) -> None:
    await ended.write(README=README)
    ended.mind.verdict = {"complete": "perhaps"}
    async with ended.living() as one:
        await one.look(HOUR_S, times=24)
        assert len(ended.mind.prompts("workspace_verdict")) <= 12
        ended.mind.verdict = dict(DONE)
        await one.look(HOUR_S, times=24)
        assert one.watched.finished_issue_number == 2


async def test_scenarios_without_a_result_finish_nothing(ended: WorkspaceTown) -> None:
    await ended.write(README=README, SCENARIOS="# Scenarios\n\n## One\n\n- **Somebody does:** runs x\n")
    made = ended.opens("kit", "[PLAN] Tides", generate_plan_markdown(CODED), "plan", "plan:complete")
    ended.completes("kit", made.number)
    ended.closes("kit", made.number)
    async with ended.living() as one:
        ended.faults.arm(Fault("bad_gateway", "GET /repos/*/collaborators", times=40))
        await one.look(60, times=2)
        ended.faults.clear()
        assert len(ended.issues()) == 2
        await one.look(60)
        work = one.soul.app.services.work
        (row,) = await work.newest(SCENARIOS, 2)
        await work.settle(row, "dropped", "failed")
        await one.look(60, times=3)
        assert [one.state for one in await work.newest(SCENARIOS, 2)] == ["pending"]
    assert len(ended.issues()) == 2


async def test_a_sentinel_of_a_peer_is_adopted_and_left_to_it(ended: WorkspaceTown) -> None:
    ended.repo.collaborators.add("wren")
    for title in ("LIL INTDEV FINISHED: All is there.", "LIL INTDEV FINISHED: All is there, I think."):
        ended.opens("wren", title, "", "finished")
    async with ended.living() as one:
        await one.look(HOUR_S)
        assert one.watched.finished_issue_number == 2
        ended.says("kit", ended.issue(2), "The search is missing.")
        await one.look(HOUR_S, times=2)
    assert [state for _, state, _ in ended.issues()] == ["closed", "open", "open"]
    assert ended.mind.asked == []


async def test_of_two_sentinels_made_at_once_the_first_stands_and_its_author_closes_the_second(
    ended: WorkspaceTown,
) -> None:
    ended.repo.collaborators.add("wren")
    early = ended.opens("wren", "LIL INTDEV FINISHED: All is there.", "", "discussion")
    async with ended.living() as one:
        made = await finished(ended, one)
        ended.labels("kit", early, "finished")
        await one.look(60, times=2)
        assert one.watched.finished_issue_number == early.number < made.number
        assert (ended.state(early.number), ended.state(made.number)) == ("open", "closed")


async def test_words_on_the_sentinel_become_an_issue_and_the_work_goes_on(ended: WorkspaceTown) -> None:
    async with ended.living() as one:
        made = await finished(ended, one)
        ended.says("eve", made, "Buy my course.")
        ended.says("kit", made, "Looks good!")
        await one.look(60, times=2)
        assert ended.state(made.number) == "open"
        ended.says("kit", made, "<!-- soul:x -->The search is missing.\nAsk @eve.")
        ended.faults.arm(Fault("unavailable", f"GET /repos/{SITE.full_name}/collaborators", times=20))
        await one.look(READ_AGAIN_S)
        ended.faults.clear()
        await one.look(60, times=3)
        assert one.watched.finished_issue_number is None
    assert ended.state(made.number) == "closed"
    assert len(ended.said(2)) == 1
    feedback = ended.issue(3)
    assert feedback.title == "Feedback from #2: The search is missing."
    assert "kit wrote:" in (feedback.body or "")
    assert "soul:x" not in (feedback.body or "")
    assert "course" not in (feedback.body or "")
    assert "@eve" not in (feedback.body or "")
    assert "good" not in (feedback.body or "")
    assert len(ended.issues()) == 3


@pytest.mark.slow
async def test_a_wish_in_another_issue_starts_the_work_again(ended: WorkspaceTown) -> None:
    talk = ended.opens("kit", "How do you like it?", "", "discussion")
    async with ended.living() as one:
        made = await finished(ended, one)
        ended.says("eve", talk, "I want more.")
        await one.look(60, times=2)
        assert ended.state(made.number) == "open"
        ended.says("kit", talk, "A search would be good.")
        await one.look(60, times=3)
        assert one.watched.finished_issue_number is None
    assert ended.state(made.number) == "closed"
    assert len(ended.said(made.number)) == 1
    assert len(ended.issues()) == 3


@pytest.mark.slow
async def test_a_person_who_closes_it_is_asked_once_and_has_a_day(ended: WorkspaceTown) -> None:
    async with ended.living() as one:
        made = await finished(ended, one)
        ended.closes("kit", made.number)
        await one.look(60, times=2)
        assert one.watched.finished_issue_number is None
        assert len(ended.said(made.number)) == 1
        await one.look(7 * HOUR_S, times=3)
        assert len(ended.issues()) == 2
        entries = await one.soul.app.services.journal.recent(500)
        assert sum(each.entry.data.get("act") == "sentinel-cleared" for each in entries) == 1
        await one.look(2 * HOUR_S, times=3)
        assert one.watched.finished_issue_number == 3
    assert len(ended.said(made.number)) == 1
