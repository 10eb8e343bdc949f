"""What an archive is, from the moment it is intended: all that is still to be done stands in its row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from common.provenance import Provenance
from modules.services.memory.types import NewMemory

Status = Literal[
    "nothing",  # nothing was to be done
    "done",  # archived, distilled, and replaced or ended
    "waiting",  # intended for good; what the store could not take yet is finished later
    "postponed",  # not begun: everything is as it was
]


@dataclass(frozen=True, slots=True)
class Distilled:
    """What is kept of a conversation.

    Attributes:
        summary: what happened, in a few sentences; "" if it was not worth a thought.
        message: the summary as it stands in the conversation in place of what was said; "" without one.
        provenance: the least trusted words it rests on.
        memories: what is to be remembered.
        remembered_at: the moment these carry, ISO-8601 UTC.

    """

    summary: str
    message: str
    provenance: Provenance
    memories: tuple[NewMemory, ...]
    remembered_at: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "provenance": int(self.provenance)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Distilled:
        memories = tuple(
            NewMemory(**{**each, **{name: tuple(each.get(name, ())) for name in ("tags", "dids")}})
            for each in data["memories"]
        )
        return cls(**{**data, "provenance": Provenance(data["provenance"]), "memories": memories})


@dataclass(frozen=True, slots=True)
class Archive:
    """Messages of a session that lie in the store, or are on their way there.

    Attributes:
        key: of the object in the store.
        session_id: whose messages.
        session_key: of that session.
        last_seq: the last row that is in it.
        part: its number among the parts of a session that goes on; None for what was left when it ended.
        message_count: lines in it.
        metadata: as it stands beside the object.
        distilled: what was kept of it.
        prepared_at: when it was intended, ISO-8601 UTC.
        dids: the accounts whose words are in it, with spaces between.

    """

    key: str
    session_id: str
    session_key: str
    last_seq: int
    part: int | None
    message_count: int
    metadata: Mapping[str, str]
    distilled: Distilled
    prepared_at: str
    dids: str = ""


@dataclass(frozen=True, slots=True)
class ArchiveOutcome:
    """What came of compacting, resetting, or finishing. `reason` says why, in words."""

    status: Status
    reason: str
    archive: Archive | None = field(default=None)
