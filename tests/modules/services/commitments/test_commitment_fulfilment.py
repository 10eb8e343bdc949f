"""A commitment on its way from the queue through the outbox to GitHub, and its news back in the room.

A claim lasts as long as the work, but no longer than others should have to wait for it.
"""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adapters.space.types import ActionDone, AgentState, StateChanged
from common.clock import FakeClock
from common.redact import Redactor
from common.result import ApiResult, Ok
from modules.runtime.scheduler.policy import Outcome
from modules.services.commitments.handle import HELD, CommitmentPresence
from modules.services.commitments.naming import QueuedCommitment
from tests.adapters.results import soon_gone
from tests.modules.services.commitments.commitment_values import queued, wanted
from tests.modules.services.commitments.soul_in_town import LOGIN, SoulInTown, Town, listening
from tests.patience import HANG_S, until
from town.github.values import Fault, FaultKind


async def test_a_committed_issue_is_opened_once_and_told_once(soul_in_town: SoulInTown) -> None:
    async with listening(soul_in_town.town) as marvin:
        one = await soul_in_town.enqueue(
            wanted(title="Release checklist", description="## Why\nNobody knows.", target="acme/site#Release")
        )
        await soul_in_town.live(20)
        (issue,) = soul_in_town.town.issues()
        assert issue.author.login == LOGIN
        assert issue.title == "Release checklist"
        assert (issue.body or "").startswith(
            "## Why\nNobody knows.\n\n---\n\n> I'll open it now.\n\n*Committed in an agent"
        )
        assert "<!-- soul:intent=" in (issue.body or "")
        url = f"{soul_in_town.town.url}/acme/site/issues/1"
        assert await marvin.receives(1) == [f"Done — issue opened: Release checklist: {url}"]
        kept = soul_in_town.status(one)
        assert (kept.status, kept.attempt_count) == ("completed", 1)
        assert kept.result == {"issues": [{"number": 1, "title": "Release checklist", "url": url}], "count": 1}
        assert marvin.client.view.claims.live() == ()
        told = soul_in_town.told()
        assert any(line.startswith("Commitments: 1 pending: create_issue") for line in told)
        assert any(line.startswith("[space] Fulfillment announced | Done — issue opened: Release") for line in told)


async def test_a_new_commitment_is_looked_at_before_any_time_passes(soul_in_town: SoulInTown) -> None:
    class Time:
        async def run_guarded(self, name: str) -> Outcome:
            assert name == soul_in_town.loop.name
            return await soul_in_town.loop.run()

        def bring_forward(self, name: str, seconds: float = 0.0) -> None:
            asked.append((name, seconds))

    asked: list[tuple[str, float]] = []
    watching = asyncio.create_task(soul_in_town.loop.keep_awake(Time()))
    await asyncio.sleep(0)
    one = await soul_in_town.enqueue(wanted())
    await until(lambda: soul_in_town.status(one).status == "in_progress")
    await until(lambda: bool(asked))
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert asked == [(soul_in_town.loop.name, 1.0)]


async def test_an_open_issue_of_ours_with_the_same_title_is_the_one_that_was_committed(
    soul_in_town: SoulInTown,
) -> None:
    account = soul_in_town.town.network.find(LOGIN)
    assert account is not None
    soul_in_town.town.network.open_issue(
        soul_in_town.town.repo, account, title="release  Checklist", body="from before"
    )
    one = await soul_in_town.enqueue(wanted(title="Release checklist"))
    await soul_in_town.live(20)
    assert len(soul_in_town.town.issues()) == 1
    assert (soul_in_town.status(one).result or {})["issues"][0]["number"] == 1


async def test_a_comment_goes_where_it_was_committed_and_is_never_said_twice(soul_in_town: SoulInTown) -> None:
    account = soul_in_town.town.network.find("acme")
    assert account is not None
    soul_in_town.town.network.open_issue(soul_in_town.town.repo, account, title="Slow build")
    async with listening(soul_in_town.town) as marvin:
        one = await soul_in_town.enqueue(wanted("Say why in #1", kind="comment_issue", content="Cache it, @marvin."))
        await soul_in_town.live(20)
        (issue,) = soul_in_town.town.issues()
        (comment,) = issue.comments
        assert comment.body.startswith("Cache it, @\u200bmarvin.")
        (line,) = await marvin.receives(1)
        assert line == f"Done — Say why in #1: {(soul_in_town.status(one).result or {})['url']}"
        assert "#issuecomment-" in line


@pytest.mark.parametrize("kind", ["lost_answer", "hang", "lost_request"])
async def test_an_answer_that_never_came_leads_to_one_issue_all_the_same(
    soul_in_town: SoulInTown, kind: FaultKind
) -> None:
    faults = soul_in_town.town.faults
    faults.arm(Fault(kind, "POST /repos/*/issues", times=1, seconds=2 * HANG_S))
    if kind == "hang":
        soon_gone(soul_in_town.github._sender._client, lambda request: request.method == "POST" and bool(faults.armed))
    one = await soul_in_town.enqueue(wanted(title="Release checklist"))
    await soul_in_town.live(120, step_s=5)
    assert len(soul_in_town.town.issues()) == 1
    assert (soul_in_town.status(one).status, soul_in_town.status(one).attempt_count) == ("completed", 1)


async def test_a_commitment_that_cannot_be_kept_is_given_up_in_silence_and_the_room_learns_that_it_failed(
    soul_in_town: SoulInTown,
) -> None:
    async with listening(soul_in_town.town) as marvin:
        one = await soul_in_town.enqueue(wanted(repoName="nowhere", target="acme/nowhere#x"))
        await soul_in_town.live(8 * 60, step_s=5)
        assert (soul_in_town.status(one).status, soul_in_town.status(one).attempt_count) == ("abandoned", 3)
        assert soul_in_town.abandoned == [one.id]
        results = [event for event in marvin.client.inbox.take_events() if isinstance(event, ActionDone)]
        assert [event.success for event in results] == [False, False, False]
        assert marvin.client.inbox.take_messages() == []
        assert sum(line.startswith("[space] Commitment abandoned silently") for line in soul_in_town.told()) == 1


async def test_a_service_that_is_down_uses_no_attempt(soul_in_town: SoulInTown) -> None:
    soul_in_town.town.faults.arm(Fault("unavailable", times=10_000))
    one = await soul_in_town.enqueue(wanted())
    await soul_in_town.live(30 * 60, step_s=60)
    assert (soul_in_town.status(one).status, soul_in_town.status(one).attempt_count) == ("in_progress", 0)
    soul_in_town.town.faults.clear()
    await soul_in_town.live(40 * 60, step_s=60)
    assert (soul_in_town.status(one).status, len(soul_in_town.town.issues())) == ("completed", 1)


async def test_without_a_room_the_work_is_done_and_the_news_waits_for_it(tmp_path: Path, town: Town) -> None:
    soul_in_town = SoulInTown(tmp_path, town, with_room=False)
    await soul_in_town.wake()
    one = await soul_in_town.enqueue(wanted(title="Release checklist"))
    await soul_in_town.live(20)
    assert soul_in_town.status(one).status == "completed"
    async with listening(town) as marvin:
        async with listening(town, "rowan") as before:
            await before.client.send_chat(one.source_reply_text)
            await marvin.receives_from("rowan")
        town.later()
        soul_in_town.with_room = True
        await soul_in_town.restart()
        await soul_in_town.live(5)
        assert (await marvin.receives(1))[0].startswith("Done — issue opened: Release checklist: ")
        await soul_in_town.live(5)
        assert len(marvin.chats) == 1
    await soul_in_town.sleep()


async def test_what_the_owner_must_see_first_waits_without_an_attempt(tmp_path: Path, town: Town) -> None:
    soul_in_town = SoulInTown(tmp_path, town, approval="strangers", with_room=False)
    await soul_in_town.wake()
    asked = await soul_in_town.enqueue(wanted("One", hostRequest=True))
    waits, refused = await soul_in_town.enqueue(wanted("Two")), await soul_in_town.enqueue(wanted("Three"))
    await soul_in_town.live(30)
    assert soul_in_town.status(asked).status == "completed"
    assert [issue.title for issue in town.issues()] == ["One"]
    assert [intent.body.short_preview for intent in await soul_in_town.outbox.held()] == [
        "issue in acme/site: Two",
        "issue in acme/site: Three",
    ]
    first, second = await soul_in_town.outbox.held()
    soul_in_town.clock.jump(11 * 60)
    await soul_in_town.live(2)
    assert [soul_in_town.status(one).attempt_count for one in (waits, refused)] == [0, 0]
    await soul_in_town.restart()
    await soul_in_town.outbox.approve(first.id)
    await soul_in_town.outbox.reject(second.id, reason="not there")
    await soul_in_town.live(30)
    assert [soul_in_town.status(one).status for one in (waits, refused)] == ["completed", "abandoned"]
    assert [issue.title for issue in town.issues()] == ["One", "Two"]
    assert soul_in_town.abandoned == []
    assert sum(f"| {HELD}" in line for line in soul_in_town.told() if line.startswith("A commitment waits: Two")) <= 2
    await soul_in_town.sleep()


async def test_what_the_owner_approves_late_is_done_and_told_as_done(tmp_path: Path, town: Town) -> None:
    soul_in_town = SoulInTown(tmp_path, town, approval="drafts", with_room=False)
    await soul_in_town.wake()
    one = await soul_in_town.enqueue(wanted())
    await soul_in_town.live(10)
    (draft,) = await soul_in_town.outbox.held()
    soul_in_town.clock.jump(23.5 * 3600)
    await soul_in_town.live(5)
    await soul_in_town.outbox.approve(draft.id)
    await soul_in_town.live(30)
    assert soul_in_town.status(one).status == "completed"
    assert not any("Timed out" in line for line in soul_in_town.told())
    await soul_in_town.sleep()


async def test_a_plan_for_no_repository_waits_for_a_workspace_is_told_once_and_given_up_after_a_day(
    soul_in_town: SoulInTown,
) -> None:
    one = await soul_in_town.enqueue(wanted(kind="create_plan", owner="", repoName=""))
    await soul_in_town.live(10)
    assert (soul_in_town.status(one).status, soul_in_town.status(one).attempt_count) == ("pending", 0)
    assert sum("waits for a workspace" in line for line in soul_in_town.told()) == 1
    soul_in_town.clock.jump(25 * 3600)
    await soul_in_town.live(2)
    assert soul_in_town.status(one).status == "abandoned"
    assert soul_in_town.abandoned == [one.id]
    assert any("waits for a workspace" in line for line in soul_in_town.told() if "abandoned silently" in line)


async def test_a_try_without_end_times_out_and_uses_an_attempt(soul_in_town: SoulInTown) -> None:
    one = await soul_in_town.enqueue(wanted(kind="create_plan"))
    await soul_in_town.live(2)
    assert soul_in_town.status(one).status == "in_progress"
    soul_in_town.clock.jump(11 * 60)
    await soul_in_town.live(2)
    late = soul_in_town.status(one)
    assert late.attempt_count == 1
    assert (late.error or "").startswith("Timed out")


async def test_a_life_without_github_or_without_any_part_in_it_leaves_such_commitments_alone(
    tmp_path: Path, town: Town
) -> None:
    soul_in_town = SoulInTown(tmp_path, town, with_room=False, github_account=False)
    await soul_in_town.wake()
    one = await soul_in_town.enqueue(wanted())
    await soul_in_town.live(3)
    assert any("AGENT_GITHUB_TOKEN" in line for line in soul_in_town.told())
    soul_in_town.social_only, soul_in_town.github_account = True, True
    await soul_in_town.restart()
    await soul_in_town.live(3)
    assert soul_in_town.status(one).status == "pending"
    assert any("Social-only" in line for line in soul_in_town.told())
    assert town.issues() == []
    await soul_in_town.sleep()


async def test_while_a_peer_works_at_it_a_commitment_waits(soul_in_town: SoulInTown) -> None:
    async with listening(soul_in_town.town) as marvin:
        await marvin.client.send_claim("create_issue", "acme/site#x")
        room = soul_in_town.room
        assert room is not None
        await until(lambda: room.has_active_claim("create_issue", "acme/site#x") == "marvin")
        one = await soul_in_town.enqueue(wanted(target="acme/site#x"))
        await soul_in_town.live(3)
        assert soul_in_town.status(one).status == "pending"
        assert any("marvin works at it" in line for line in soul_in_town.told())
        await marvin.client.send_action_result("create_issue", "acme/site#x", success=False, error="no")
        await until(lambda: room.has_active_claim("create_issue", "acme/site#x") is None)
        await soul_in_town.live(10)
        assert soul_in_town.status(one).status == "completed"


@pytest.mark.parametrize(("knows_room", "pause"), [(False, ""), (True, "paused by the owner")])
async def test_a_commitment_of_a_room_waits_until_that_is_known_after_a_restart_and_for_the_end_of_a_pause(
    soul_in_town: SoulInTown,
    pause: str,
    *,
    knows_room: bool,
) -> None:
    soul_in_town.knows_room, soul_in_town.pause = knows_room, pause
    from_room, from_thread = wanted("One"), wanted("Two", source="bluesky", thread="at://did:plc:ada/app/1")
    waits, goes = await soul_in_town.enqueue(from_room), await soul_in_town.enqueue(from_thread)
    await soul_in_town.live(5)
    assert soul_in_town.status(waits).status == "pending"
    assert soul_in_town.status(goes).status != "pending"
    soul_in_town.knows_room, soul_in_town.pause = True, ""
    await soul_in_town.live(10)
    assert soul_in_town.status(waits).status == "completed"


async def test_the_room_sees_a_claim_for_as_long_as_the_work_takes(soul_in_town: SoulInTown) -> None:
    soul_in_town.town.faults.arm(Fault("unavailable", times=10_000))
    async with listening(soul_in_town.town) as marvin:
        await soul_in_town.enqueue(wanted(target="acme/site#x"))
        await soul_in_town.live(5)
        (claim,) = marvin.client.view.claims.live()
        assert (claim.action, claim.target) == ("create_issue", "acme/site#x")
        soul_in_town.town.faults.clear()
        await soul_in_town.live(70, step_s=5)
        await until(lambda: not marvin.client.view.claims.live())
        states = [event for event in marvin.client.inbox.take_events() if isinstance(event, StateChanged)]
        assert [(event.state, event.detail) for event in states] == [
            ("acting", "fulfilling create_issue: acme/site#x"),
            ("idle", ""),
        ]


async def test_what_was_begun_is_claimed_again_only_once_it_is_known_what_the_host_said_meanwhile(
    soul_in_town: SoulInTown,
) -> None:
    soul_in_town.town.faults.arm(Fault("unavailable", times=10_000))
    async with listening(soul_in_town.town) as marvin:
        await soul_in_town.enqueue(wanted(target="acme/site#x"))
        await soul_in_town.live(5)
        await soul_in_town.sleep()
        await until(lambda: not marvin.client.view.claims.live())
        soul_in_town.knows_room = False
        await soul_in_town.wake()
        await soul_in_town.live(80, step_s=5)
        assert not marvin.client.view.claims.live()
        soul_in_town.knows_room = True
        await soul_in_town.live(40, step_s=5)
        await until(lambda: bool(marvin.client.view.claims.live()))


STEP_S = 15


@dataclass
class NotedRoom:
    """A room that records what it is told, and when."""

    clock: FakeClock
    is_active: bool = True
    holder: str | None = None
    told: list[tuple[float, str]] = field(default_factory=list)

    async def send_state(self, state: AgentState, detail: str = "") -> ApiResult[None]:
        return self._note(f"{state} {detail}".strip())

    async def send_claim(self, action: str, target: str) -> ApiResult[None]:
        return self._note(f"claim {action} {target}")

    async def send_action_result(
        self, action: str, target: str, *, success: bool, link: str = "", error: str = ""
    ) -> ApiResult[None]:
        return self._note(f"ended {action} {target} {link or error}")

    def has_active_claim(self, action: str, target: str) -> str | None:
        return self.holder

    def renewed_at(self) -> list[float]:
        return [at for at, what in self.told if what.startswith("claim")][1:]

    def _note(self, what: str) -> ApiResult[None]:
        self.told.append((self.clock.monotonic(), what))
        return Ok(None)


async def _work_on(
    presence: CommitmentPresence, commitment: QueuedCommitment, clock: FakeClock, minutes: float
) -> None:
    for _ in range(round(minutes * 60 / STEP_S)):
        await clock.advance(STEP_S)
        await presence.goes_on(commitment)


async def test_a_claim_is_renewed_every_half_minute_while_the_work_goes_on() -> None:
    clock = FakeClock()
    room = NotedRoom(clock)
    presence, commitment, began = CommitmentPresence(room, clock), queued(target="acme/site#x"), clock.monotonic()
    await presence.begins(commitment)
    await _work_on(presence, commitment, clock, 3)
    assert [at - began for at in room.renewed_at()] == [30, 60, 90, 120, 150, 180]
    await presence.ended(commitment, link="https://x/1")
    assert room.told[:2] == [
        (began, "acting fulfilling create_issue: acme/site#x"),
        (began, "claim create_issue acme/site#x"),
    ]
    assert room.told[-1][1] == "ended create_issue acme/site#x https://x/1"


async def test_a_room_that_was_found_is_told_only_of_what_was_made_in_such_a_room_and_holds_nothing_else() -> None:
    clock = FakeClock()
    room = NotedRoom(clock, holder="mallory")
    presence = CommitmentPresence(room, clock, is_trusted_room=lambda: False)
    for found in (False, True):
        commitment = queued(target="acme/secret#x", found_room=found)
        await presence.begins(commitment)
        await _work_on(presence, commitment, clock, 1)
        await presence.ended(commitment, link="https://x/1")
        assert (bool(room.told), presence.holder(commitment)) == (found, "mallory" if found else "")


async def test_what_cannot_leave_for_ten_minutes_keeps_nobody_else_from_it() -> None:
    clock = FakeClock()
    room = NotedRoom(clock)
    presence, commitment, began = CommitmentPresence(room, clock), queued(target="acme/site#x"), clock.monotonic()
    await presence.begins(commitment)
    await _work_on(presence, commitment, clock, 60)
    assert max(room.renewed_at()) - began < 10 * 60
    await presence.begins(commitment)
    before = len(room.renewed_at())
    await _work_on(presence, commitment, clock, 2)
    assert len(room.renewed_at()) == before + 4


async def test_while_nothing_may_be_told_the_room_sees_nothing() -> None:
    clock, paused = FakeClock(), ["paused by the owner"]
    room = NotedRoom(clock)
    presence, commitment = (
        CommitmentPresence(room, clock, silence=lambda: "".join(paused)),
        queued(target="acme/site#x"),
    )
    await presence.begins(commitment)
    await _work_on(presence, commitment, clock, 2)
    await presence.ended(commitment, error="no answer")
    assert room.told == []
    paused.clear()
    await presence.begins(commitment)
    assert [what.split()[0] for _, what in room.told] == ["acting", "claim"]


async def test_that_nothing_is_done_any_more_is_told_when_something_may_be_told_again() -> None:
    clock, paused = FakeClock(), [""]
    room = NotedRoom(clock)
    presence, commitment = CommitmentPresence(room, clock, silence=lambda: paused[0]), queued(target="acme/site#x")
    await presence.begins(commitment)
    paused[0] = "paused by the owner"
    presence.keep_only({"another"})
    await presence.rests()
    assert [what.split()[0] for _, what in room.told] == ["acting", "claim"]
    paused[0] = ""
    for _ in range(2):
        await presence.rests()
    assert [what.split()[0] for _, what in room.told] == ["acting", "claim", "idle"]


async def test_an_error_is_told_on_one_line_and_without_secrets() -> None:
    clock = FakeClock()
    room = NotedRoom(clock)
    presence = CommitmentPresence(room, clock, Redactor({"hunter2-and-some-more"}))
    for error in ("GitHub refuses hunter2-and-some-more", "no\nanswer"):
        await presence.ended(queued(target="acme/site#x"), error=error)
    assert [what for _, what in room.told] == [
        "ended create_issue acme/site#x failed",
        "ended create_issue acme/site#x no answer",
    ]
