"""The whole way of a promise: from the queue through the door to GitHub, and the news back into the room."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from adapters.space.types import ActionDone, StateChanged
from modules.runtime.scheduler.types import Outcome
from modules.services.commitments.fulfil import HELD
from modules.services.commitments.queue import FILE
from modules.services.outbox.senders.github import mark
from tests.modules.services.commitments.commitment_house import LOGIN, SECRET, House, Place, listening, until
from tests.modules.services.commitments.commitment_values import wanted
from town.github.faults import Fault, FaultKind


async def test_a_promised_issue_is_opened_once_and_told_once(house: House) -> None:
    async with listening(house.place) as marvin:
        one = await house.promise(
            wanted(title="Release checklist", description="## Why\nNobody knows.", target="acme/site#Release")
        )
        await house.live(20)
        (issue,) = house.place.issues()
        assert issue.author.login == LOGIN
        assert issue.title == "Release checklist"
        assert (issue.body or "").startswith(
            "## Why\nNobody knows.\n\n---\n\n> I'll open it now.\n\n*Promised in an agent"
        )
        assert "<!-- soul:intent=" in (issue.body or "")
        url = f"{house.place.url}/acme/site/issues/1"
        assert await marvin.hears(1) == [f"Done — Release checklist: {url}"]
        kept = house.status(one)
        assert (kept.status, kept.attempt_count) == ("completed", 1)
        assert kept.result == {"issues": [{"number": 1, "title": "Release checklist", "url": url}], "count": 1}
        assert house.place.server.claims == ()
        told = house.told()
        assert any(line.startswith("Commitments: 1 pending: create_issue") for line in told)
        assert any(line.startswith("[space] Fulfillment announced | Done — Release") for line in told)


async def test_a_new_promise_is_looked_at_within_a_second(house: House) -> None:
    class Time:
        async def run_guarded(self, name: str) -> Outcome:
            assert name == house.loop.name
            return await house.loop.run()

        def bring_forward(self, name: str, seconds: float = 0.0) -> None:
            asked.append((name, seconds))

    asked: list[tuple[str, float]] = []
    watching = asyncio.create_task(house.loop.keep_awake(Time()))
    await asyncio.sleep(0)
    one = await house.promise(wanted())
    await until(lambda: house.status(one).status == "in_progress", within_s=1)
    await until(lambda: bool(asked))
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert asked == [(house.loop.name, 1.0)]


async def test_several_issues_are_opened_one_after_the_other_each_once(house: House) -> None:
    house.place.faults.arm(Fault("unavailable", "POST /repos/*/issues", times=1))
    one = await house.promise(wanted("Two issues for the tests", title="Flaky test", count=3, hostWish=True))
    await house.live(60)
    assert [issue.title for issue in house.place.issues()] == [f"Flaky test ({n}/3)" for n in (1, 2, 3)]
    assert house.status(one).status == "completed"
    assert house.status(one).attempt_count == 1


async def test_an_open_issue_of_ours_with_the_same_title_is_the_one_that_was_promised(house: House) -> None:
    account = house.place.network.find(LOGIN)
    assert account is not None
    house.place.network.open_issue(house.place.repo, account, title="release  Checklist", body="from before")
    one = await house.promise(wanted(title="Release checklist"))
    await house.live(20)
    assert len(house.place.issues()) == 1
    assert (house.status(one).result or {})["issues"][0]["number"] == 1


async def test_a_comment_goes_where_it_was_promised_and_is_never_said_twice(house: House) -> None:
    account = house.place.network.find("acme")
    assert account is not None
    house.place.network.open_issue(house.place.repo, account, title="Slow build")
    async with listening(house.place) as marvin:
        one = await house.promise(wanted("Say why in #1", kind="comment_issue", content="Cache it, @marvin."))
        await house.live(20)
        (issue,) = house.place.issues()
        (comment,) = issue.comments
        assert comment.body.startswith("Cache it, @\u200bmarvin.")
        (line,) = await marvin.hears(1)
        assert line == f"Done — Say why in #1: {(house.status(one).result or {})['url']}"
        assert "#issuecomment-" in line


@pytest.mark.parametrize("kind", ["lost_answer", "garbled", "hang", "server_error", "lost_request", "bad_gateway"])
async def test_an_answer_that_never_came_leads_to_one_issue_all_the_same(house: House, kind: FaultKind) -> None:
    house.place.faults.arm(Fault(kind, "POST /repos/*/issues", times=1, seconds=1))
    one = await house.promise(wanted(title="Release checklist"))
    await house.live(120, step_s=5)
    assert len(house.place.issues()) == 1
    assert (house.status(one).status, house.status(one).attempt_count) == ("completed", 1)


async def test_a_promise_that_cannot_be_kept_is_given_up_in_silence_and_the_room_learns_that_it_failed(
    house: House,
) -> None:
    async with listening(house.place) as marvin:
        one = await house.promise(wanted(repoName="nowhere", target="acme/nowhere#x"))
        await house.live(8 * 60, step_s=5)
        assert (house.status(one).status, house.status(one).attempt_count) == ("abandoned", 3)
        assert house.abandoned == [one.id]
        results = [event for event in marvin.client.take_events() if isinstance(event, ActionDone)]
        assert [event.success for event in results] == [False, False, False]
        assert marvin.client.get_and_flush_messages() == []
        assert sum(line.startswith("[space] Commitment abandoned silently") for line in house.told()) == 1


async def test_a_service_that_is_down_uses_no_attempt(house: House) -> None:
    house.place.faults.arm(Fault("unavailable", times=10_000))
    one = await house.promise(wanted())
    await house.live(30 * 60, step_s=30)
    assert (house.status(one).status, house.status(one).attempt_count) == ("in_progress", 0)
    house.place.faults.clear()
    await house.live(40 * 60, step_s=60)
    assert (house.status(one).status, len(house.place.issues())) == ("completed", 1)


async def test_without_a_room_the_work_is_done_and_the_news_waits_for_it(tmp_path: Path, place: Place) -> None:
    house = House(tmp_path, place, with_room=False)
    await house.wake()
    one = await house.promise(wanted(title="Release checklist"))
    await house.live(20)
    assert house.status(one).status == "completed"
    async with listening(place) as marvin:
        async with listening(place, "rowan") as before:
            await before.client.send_chat(one.source_reply_text)
            await marvin.hears_from("rowan")
        place.later()
        house.with_room = True
        await house.restart()
        await house.live(5)
        assert (await marvin.hears(1))[0].startswith("Done — Release checklist: ")
        await house.live(5)
        assert len(marvin.chats) == 1
    await house.sleep()


async def test_news_that_nobody_could_hear_for_six_hours_are_not_told_any_more(tmp_path: Path, place: Place) -> None:
    house = House(tmp_path, place, with_room=False)
    await house.wake()
    one = await house.promise(wanted())
    await house.live(20)
    house.clock.jump(6 * 3600)
    await house.live(3)
    (row,) = await house.outbox.by_target("space_chat", f"{one.id}#announced")
    assert row.state == "expired"
    await house.sleep()


async def test_what_the_owner_must_see_first_waits_without_an_attempt(tmp_path: Path, place: Place) -> None:
    house = House(tmp_path, place, approval="strangers", with_room=False)
    await house.wake()
    asked = await house.promise(wanted("One", hostWish=True))
    waits, refused = await house.promise(wanted("Two")), await house.promise(wanted("Three"))
    await house.live(30)
    assert house.status(asked).status == "completed"
    assert [issue.title for issue in place.issues()] == ["One"]
    assert [intent.body.short_preview for intent in await house.outbox.held()] == ["acme/site: Two", "acme/site: Three"]
    first, second = await house.outbox.held()
    await house.restart()
    await house.outbox.approve(first.id)
    await house.outbox.reject(second.id, "not there")
    await house.live(30)
    assert [house.status(one).status for one in (waits, refused)] == ["completed", "abandoned"]
    assert [issue.title for issue in place.issues()] == ["One", "Two"]
    assert house.abandoned == []
    assert sum(f"| {HELD}" in line for line in house.told() if line.startswith("A commitment waits: Two")) <= 2
    await house.sleep()


async def test_what_was_promised_on_bluesky_stays_in_repositories_of_ours_unless_the_owner_agrees(house: House) -> None:
    account = house.place.network.find(LOGIN)
    assert account is not None
    house.place.network.create_repo(account, "notes")
    thread = "at://did:plc:kit/app.bsky.feed.post/1"
    await house.promise(wanted("One", thread=thread, source="bluesky"))
    ours = await house.promise(wanted("Two", thread=thread, source="bluesky", owner=LOGIN, repoName="notes"))
    await house.live(20)
    assert house.status(ours).status == "completed"
    assert house.place.issues() == []
    (held,) = await house.outbox.held()
    assert "somebody else" in (held.error or "")


async def test_a_plan_waits_for_workspaces_is_told_once_and_given_up_after_a_day(house: House) -> None:
    one = await house.promise(wanted(kind="create_plan"))
    await house.live(10)
    assert (house.status(one).status, house.status(one).attempt_count) == ("pending", 0)
    assert sum("waits for workspaces" in line for line in house.told()) == 1
    house.clock.jump(25 * 3600)
    await house.live(2)
    assert house.status(one).status == "abandoned"
    assert house.abandoned == [one.id]
    assert any("waits for workspaces" in line for line in house.told() if "abandoned silently" in line)


async def test_what_waits_for_the_owner_is_not_given_up_before_the_owner_could_decide(
    tmp_path: Path, place: Place
) -> None:
    house = House(tmp_path, place, approval="drafts", with_room=False)
    await house.wake()
    one = await house.promise(wanted(kind="create_plan"))
    house.clock.jump(2 * 3600)
    issue = await house.promise(wanted("Another"))
    await house.live(2)
    house.clock.jump(22.5 * 3600)
    await house.live(2)
    assert (house.status(one).status, house.status(issue).status) == ("abandoned", "in_progress")
    house.clock.jump(2 * 3600)
    await house.live(3)
    assert house.status(issue).status == "abandoned"
    assert place.issues() == []
    await house.sleep()


async def test_a_life_without_github_or_without_any_part_in_it_leaves_such_promises_alone(
    tmp_path: Path, place: Place
) -> None:
    house = House(tmp_path, place, with_room=False, github_account=False)
    await house.wake()
    one = await house.promise(wanted())
    await house.live(3)
    assert any("AGENT_GITHUB_TOKEN" in line for line in house.told())
    house.social_only, house.github_account = True, True
    await house.restart()
    await house.live(3)
    assert house.status(one).status == "pending"
    assert any("Social-only" in line for line in house.told())
    assert place.issues() == []
    await house.sleep()


async def test_a_secret_in_what_was_promised_never_leaves(house: House) -> None:
    one = await house.promise(wanted("Log in", description=f"The password is {SECRET}."))
    await house.live(3)
    assert house.place.issues() == []
    assert "secret" in (house.status(one).error or "")
    assert not any(SECRET in line for line in house.told())


async def test_while_a_peer_works_at_it_a_promise_waits(house: House) -> None:
    async with listening(house.place) as marvin:
        await marvin.client.send_claim("create_issue", "acme/site#x")
        room = house.room
        assert room is not None
        await until(lambda: room.has_active_claim("create_issue", "acme/site#x") == "marvin")
        one = await house.promise(wanted(target="acme/site#x"))
        await house.live(3)
        assert house.status(one).status == "pending"
        assert any("marvin works at it" in line for line in house.told())
        await marvin.client.send_action_result("create_issue", "acme/site#x", success=False, error="no")
        await until(lambda: room.has_active_claim("create_issue", "acme/site#x") is None)
        await house.live(10)
        assert house.status(one).status == "completed"


async def test_after_a_restart_a_promise_waits_until_it_is_known_what_others_made_meanwhile(house: House) -> None:
    house.knows_room = False
    from_room, from_thread = wanted("One"), wanted("Two", source="bluesky", thread="at://did:plc:ada/app/1")
    waits, goes = await house.promise(from_room), await house.promise(from_thread)
    await house.live(5)
    assert house.status(waits).status == "pending"
    assert house.status(goes).status != "pending"
    house.knows_room = True
    await house.live(10)
    assert house.status(waits).status == "completed"


async def test_the_room_sees_a_claim_for_as_long_as_the_work_takes(house: House) -> None:
    house.place.faults.arm(Fault("unavailable", times=10_000))
    async with listening(house.place) as marvin:
        await house.promise(wanted(target="acme/site#x"))
        await house.live(5)
        (claim,) = house.place.server.claims
        assert (claim.action, claim.target) == ("create_issue", "acme/site#x")
        house.place.faults.clear()
        await house.live(70, step_s=5)
        await until(lambda: not house.place.server.claims)
        states = [event for event in marvin.client.take_events() if isinstance(event, StateChanged)]
        assert [(event.state, event.detail) for event in states] == [
            ("acting", "fulfilling create_issue: acme/site#x"),
            ("idle", ""),
        ]


async def test_while_the_owner_is_asked_the_room_does_not_see_us_act(tmp_path: Path, place: Place) -> None:
    house = House(tmp_path, place, approval="strangers")
    async with listening(place) as marvin:
        await house.wake()
        await house.promise(wanted("Two", target="acme/site#x"))
        await house.live(10)
        states: list[str] = []

        def showed(*expected: str) -> bool:
            states.extend(one.state for one in marvin.client.take_events() if isinstance(one, StateChanged))
            return states == list(expected)

        await until(lambda: showed("acting", "idle"))
        (held,) = await house.outbox.held()
        place.faults.arm(Fault("unavailable", times=10_000))
        await house.outbox.approve(held.id)
        await house.live(20)
        await until(lambda: showed("acting", "idle", "acting"))
        place.faults.clear()
        await house.live(90, step_s=5)
        await until(lambda: showed("acting", "idle", "acting", "idle"))
        await house.sleep()


async def test_a_post_is_promised_like_anything_else(house: House) -> None:
    async with listening(house.place) as marvin:
        await house.promise(wanted("Tell them", kind="post_bluesky", title="Tell them", content="The weir holds."))
        await house.live(20)
        (post,) = house.bluesky.records.values()
        assert (post.kind, post.body.preview) == ("post", "The weir holds.")
        (line,) = await marvin.hears(1)
        assert line == f"Done — Tell them: https://bsky.app/profile/did:plc:rowan/post/{post.rkey}"


async def test_the_story_of_an_issue_holds_the_words_of_the_promise(house: House) -> None:
    one = await house.promise(wanted(title="Release checklist"))
    await house.live(20)
    (row,) = await house.outbox.by_target("issue", f"{one.id}#1")
    entries = [stored.entry for stored in await house.journal.recent(50) if stored.entry.intent_id == row.id]
    begun = next(entry for entry in entries if entry.data.get("act") == "begun")
    assert "I'll open it now." in begun.reason
    rules = next(entry.data["rules"] for entry in entries if "rules" in entry.data)
    assert "it was promised in the agent space" in json.dumps(rules)
    assert mark(row.id) in (house.place.issues()[0].body or "")


async def test_five_failures_leave_a_repository_alone_and_use_no_more_attempts(house: House) -> None:
    for number in range(5):
        await house.promise(wanted(f"Promise {number}", repoName="nowhere"))
    await house.live(10 * 60, step_s=15)
    later = await house.promise(wanted("One more", repoName="nowhere"))
    elsewhere = await house.promise(wanted("Elsewhere"))
    await house.live(60, step_s=15)
    assert [one.attempt_count for one in house.queue.all()] == [1, 1, 1, 1, 1, 0, 1]
    assert (house.status(later).status, house.status(elsewhere).status) == ("pending", "completed")
    assert sum("acme/nowhere is left alone until" in line for line in house.told()) == 1
    assert json.loads((house.folder / FILE).read_text().splitlines()[-1])["status"] == "completed"
