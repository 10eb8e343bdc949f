"""A commitment as a step of its fulfilment finds it: its acts, and how far they are."""

from dataclasses import dataclass
from typing import Any

from modules.services.commitments.acts import CommitmentWork, result_of
from modules.services.commitments.naming import QueuedCommitment
from modules.services.commitments.texts import part_line
from modules.services.outbox.types import ActStanding


@dataclass(frozen=True, slots=True)
class CommitmentCase:
    """A commitment at the beginning of a step.

    Attributes:
        commitment: the commitment.
        work: the acts that fulfil it, or why there are none.
        acts: the state of each act.

    """

    commitment: QueuedCommitment
    work: CommitmentWork
    acts: tuple[ActStanding, ...] = ()

    @property
    def is_begun(self) -> bool:
        """Whether an act is done, or may still be done."""
        return any(one.active for one in self.acts)

    @property
    def is_on_its_way(self) -> bool:
        """Whether an act may still be done."""
        return any(one.code in {"waits", "held"} for one in self.acts)

    @property
    def is_done(self) -> bool:
        """Whether every act is done, so that only its announcement is left."""
        return bool(self.acts) and all(one.code == "done" for one in self.acts)

    @property
    def part(self) -> dict[str, Any]:
        """What was made of several acts of which others are missing; {} if nothing was, or all is done."""
        done = [one.active for one in self.acts if one.active and one.code == "done"]
        if not done or self.is_done:
            return {}
        return result_of(self.commitment, done) | {"wanted": len(self.work.actions)}

    def with_part(self, reason: str) -> str:
        """Return the reason for which the commitment ended, followed by what was made of it."""
        return "; ".join(filter(None, (reason, part_line(self.part))))

    @property
    def broken(self) -> str:
        """Why an act that was proposed is not done and will not be; "" if there is none."""
        return next((one.reason for one in self.acts if one.code in {"refused", "left_alone"}), "")

    @property
    def intent_id(self) -> str | None:
        """The id of the latest intent."""
        return next((one.intent.id for one in reversed(self.acts) if one.intent), None)
