"""What claims tasks and gives them back, built once for all lives."""

from __future__ import annotations

from dataclasses import dataclass

from modules.services.claims.claim_requests import ClaimWords
from modules.services.claims.claimer import Claimer
from modules.services.claims.plan_reading import PlanReader
from modules.services.claims.task_comments import TaskComments
from modules.services.workspaces.acting import ActingTurns


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of this SOUL.

    Attributes:
        claimer: claims tasks, keeps what was claimed, and gives it back.
        reader: reads a plan with all that a claim depends on.
        comments: what is said of tasks on their plans.
        acting: whose turn shared work is, among us and the peers that were seen lately.
        words: returns what the comment of a claim tells people.

    """

    claimer: Claimer
    reader: PlanReader
    comments: TaskComments
    acting: ActingTurns
    words: ClaimWords
