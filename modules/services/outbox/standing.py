"""How an act that is done once stands, by all that was proposed for its target. Pure: rows in, standing out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from common.clock import parse_iso
from modules.services.outbox.types import ACTIVE_STATES, Advice, Intent, Submitted

ActCode = Literal["done", "waits", "held", "refused", "left_alone", "free"]
"""`waits`: accepted and not done yet; `held`: waits for the owner's yes; `refused`: by the owner, or by a rule just
now; `left_alone`: it came to nothing too often or too lately; `free`: it may be proposed."""


@dataclass(frozen=True, slots=True)
class ActStanding:
    """How an act stands.

    Attributes:
        code: what may be expected of it.
        intent: the intent that counts: the one that was accepted or that the owner refused, else the latest.
        advice: the answer of the outbox where it was proposed just now; None where it was not.
        tries: how often it was proposed before.

    """

    code: ActCode
    intent: Intent | None = None
    advice: Advice | None = None
    tries: int = 0

    @property
    def active(self) -> Intent | None:
        """The intent that is done, or may still be; None where there is none."""
        return self.intent if self.code in {"done", "waits", "held"} else None

    @property
    def is_new(self) -> bool:
        """Whether it was proposed just now, and accepted."""
        return self.advice is not None and self.active is not None

    @property
    def is_decided(self) -> bool:
        """Whether it is done, may still be, or was refused by the owner: nothing more has to be proposed."""
        return self.active is not None or (self.intent is not None and self.intent.rejected)

    @property
    def reason(self) -> str:
        """Why it is not done, or the bare state of its intent."""
        return (self.intent.error or self.intent.state) if self.intent else ""


def standing_of(
    intents: Sequence[Intent], tries: int, again_after: timedelta | None, since: Callable[[datetime], timedelta]
) -> ActStanding:
    """Return how an act stands by its `intents`, newest first.

    What came to nothing `tries` times is left alone for `again_after` since its last try, or for good if that is None.
    `since` returns how long ago a moment was.
    """
    active = next((one for one in intents if one.state in ACTIVE_STATES), None)
    if active is not None:
        return ActStanding(_code_of(active), active, tries=len(intents))
    if refused := next((one for one in intents if one.rejected), None):
        return ActStanding("refused", refused, tries=len(intents))
    if not intents:
        return ActStanding("free")
    is_over = again_after is not None and since(parse_iso(intents[0].created_at)) >= again_after
    return ActStanding("free" if len(intents) < tries or is_over else "left_alone", intents[0], tries=len(intents))


def standing_after(submitted: Submitted, tries: int) -> ActStanding:
    """Return how an act stands that was proposed just now, after so many `tries`."""
    intent = submitted.intent
    return ActStanding(_code_of(intent) if submitted.accepted else "refused", intent, submitted.advice, tries)


def _code_of(accepted: Intent) -> ActCode:
    if accepted.state == "done":
        return "done"
    return "held" if accepted.state == "held" else "waits"
