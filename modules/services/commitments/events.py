"""What the queue and the runner of commitments publish on the event bus, and how the journal names a giving up."""

from __future__ import annotations

from dataclasses import dataclass

from modules.runtime.events import Event
from modules.services.commitments.types import QueuedCommitment

COMMITMENTS, ABANDONED = "commitments", "abandoned"
"""The loop of the journal's entries on commitments, and the act of the one that was given up: its id is `promise`."""


@dataclass(frozen=True, slots=True)
class CommitmentsReady(Event):
    """Some commitment can be worked at now: it is new, the room confirmed it, or what it waited for is there."""


@dataclass(frozen=True, slots=True)
class CommitmentKept(Event):
    """A commitment was completed, and that is on the disk."""

    commitment: QueuedCommitment


@dataclass(frozen=True, slots=True)
class CommitmentAbandoned(Event):
    """A commitment was given up, and that is on the disk. Published once for each."""

    commitment: QueuedCommitment
