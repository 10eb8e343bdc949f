"""A claim lives as long as the work, and no longer than anybody should have to wait for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from adapters.space.types import AgentState
from common.clock import FakeClock
from common.redact import Redactor
from common.result import ApiResult, Ok
from modules.services.commitments.handle import CommitmentPresence
from modules.services.commitments.naming import QueuedCommitment
from tests.modules.services.commitments.commitment_values import queued

STEP_S = 15


@dataclass
class NotedRoom:
    """A room that notes what it is told, and when."""

    clock: FakeClock
    is_active: bool = True
    holder: str | None = None
    told: list[tuple[float, str]] = field(default_factory=list)

    async def send_state(self, state: AgentState, detail: str = "") -> ApiResult[None]:
        return self._note(f"{state} {detail}".strip())

    async def send_claim(self, action: str, target: str) -> ApiResult[None]:
        return self._note(f"claim {action} {target}")

    async def renew_claim(self, action: str, target: str) -> ApiResult[None]:
        return self._note(f"renew {action} {target}")

    async def send_action_result(
        self, action: str, target: str, *, success: bool, link: str = "", error: str = ""
    ) -> ApiResult[None]:
        return self._note(f"ended {action} {target} {link or error}")

    def has_active_claim(self, action: str, target: str) -> str | None:
        return self.holder

    def renewed_at(self) -> list[float]:
        return [at for at, what in self.told if what.startswith("renew")]

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
    presence.let_go(commitment)
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
