"""What a conversation is made of, as it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from common.provenance import Provenance
from modules.runtime.llm.types import Message

Role = Literal["user", "assistant", "toolResult"]


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation that is going on. Times are ISO-8601 UTC."""

    id: str
    key: str
    created_at: str
    last_active_at: str


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One message as it is kept: `message` is what the model saw, `tokens` an estimate, `provenance` whose words.

    `is_note` tells words of the program, such as a summary of ours, from what somebody said.
    `dids` are the accounts whose words it rests on, with spaces between: with them it goes when they are forgotten.
    """

    session_id: str
    seq: int
    role: Role
    message: Message
    tokens: int
    provenance: Provenance
    created_at: str
    dids: str = ""
    is_note: bool = False
