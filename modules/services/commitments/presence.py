"""What the room sees of a commitment being fulfilled: that we act, what we claim, how it ended.

Nothing here is stored; a claim ends by itself a minute after the process. Work that cannot leave for long, as the owner
paused us or GitHub wants to be left alone, must not keep others from it: after ten minutes its claim runs out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from common.clock import Clock
from common.constants import SECOND_MS
from common.redact import Redactor
from common.text.untrusted import one_line
from modules.services.commitments.naming import claim_target
from modules.services.commitments.policy import COMMITMENT_IN_PROGRESS_TIMEOUT_MS, concerns_room
from modules.services.commitments.types import CommitmentRoom, QueuedCommitment

CLAIM_RENEWAL_INTERVAL_MS = 30 * SECOND_MS

_TARGET_CHARS, _ERROR_CHARS = 60, 200
_FAILED = "failed"
_RENEWED_EVERY_S = CLAIM_RENEWAL_INTERVAL_MS / SECOND_MS
_RENEWED_FOR_S = COMMITMENT_IN_PROGRESS_TIMEOUT_MS / SECOND_MS


@dataclass(slots=True)
class CommitmentPresence:
    """Shows it. What cannot be said is not said later, for the room would learn nothing from it, but that we rest.

    Attributes:
        room: the room; None: there is none.
        clock: tells when.
        redactor: knows what must not be told, in an error as anywhere.
        silence: why nothing may be told just now, "" if something may.
        is_trusted_room: whether the owner named the room; one that was only found is told of what was made there alone.

    """

    room: CommitmentRoom | None
    clock: Clock
    redactor: Redactor = field(default_factory=Redactor)
    silence: Callable[[], str] = lambda: ""
    is_trusted_room: Callable[[], bool] = lambda: True
    _begun_at: dict[str, float] = field(default_factory=dict, init=False)
    _claimed_at: dict[str, float] = field(default_factory=dict, init=False)
    _acting: bool = field(default=False, init=False)

    def holder(self, commitment: QueuedCommitment) -> str:
        """Who else works at it; "" if nobody does."""
        room = self._active() if self._concerns(commitment) else None
        return (room.has_active_claim(commitment.type, claim_target(commitment)) or "") if room else ""

    async def begins(self, commitment: QueuedCommitment) -> None:
        """Claim the commitment in the room, and show that we act."""
        if (room := self._listening(commitment)) is None:
            return
        await self._acts(room, commitment)
        await room.send_claim(commitment.type, claim_target(commitment))
        self._begun_at[commitment.id] = self._claimed_at[commitment.id] = self.clock.monotonic()

    async def goes_on(self, commitment: QueuedCommitment) -> None:
        """Renew the claim on a commitment that is worked at, every 30 s and for ten minutes at most."""
        room, last = self._listening(commitment), self._claimed_at.get(commitment.id)
        now = self.clock.monotonic()
        if room is None or (last is not None and now - last < _RENEWED_EVERY_S):
            return
        if now - self._begun_at.setdefault(commitment.id, now) >= _RENEWED_FOR_S:
            return
        if not self._acting:
            await self._acts(room, commitment)
        await room.renew_claim(commitment.type, claim_target(commitment))
        self._claimed_at[commitment.id] = now

    async def ended(self, commitment: QueuedCommitment, *, link: str = "", error: str = "") -> None:
        """A try ended, well if there is no `error`."""
        self.let_go(commitment)
        if room := self._listening(commitment):
            told = "" if not error else _FAILED if self.redactor.finds_in(error) else one_line(error, _ERROR_CHARS)
            await room.send_action_result(
                commitment.type, claim_target(commitment), success=not error, link=link, error=told
            )

    def let_go(self, commitment: QueuedCommitment) -> None:
        """Stop renewing the claim, which then runs out: the commitment is not worked at for now."""
        self._begun_at.pop(commitment.id, None)
        self._claimed_at.pop(commitment.id, None)

    async def rests(self) -> None:
        """Tell who saw us act that nothing is being done any more, as soon as that may be told; a room left forgets."""
        if self._begun_at:
            return
        if (room := self._active()) is None:
            self._acting = False
        elif self._acting and not self.silence():
            self._acting = not (await room.send_state("idle")).success

    async def _acts(self, room: CommitmentRoom, commitment: QueuedCommitment) -> None:
        self._acting = True
        target = claim_target(commitment)[:_TARGET_CHARS]
        await room.send_state("acting", f"fulfilling {commitment.type}: {target}")

    def _active(self) -> CommitmentRoom | None:
        return self.room if self.room is not None and self.room.is_active else None

    def _listening(self, commitment: QueuedCommitment) -> CommitmentRoom | None:
        """The room, if it may be told something of a commitment."""
        return None if self.silence() or not self._concerns(commitment) else self._active()

    def _concerns(self, commitment: QueuedCommitment) -> bool:
        return concerns_room(commitment, is_trusted=self.is_trusted_room())
