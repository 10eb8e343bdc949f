"""Who asked for a plan that stood already: it stands in the journal, so that each of them hears how that plan ends.

Pure but for the entries, which the caller records.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapters.github.types import Issue, Repo
from modules.runtime.journal.types import Entry
from modules.services.plans.events import PLAN_ASKED, PLAN_ENDS
from modules.services.plans.wishes import wish_mark, wish_of

_IN_ROOM = "room:"


@dataclass(frozen=True, slots=True)
class PlanAsk:
    """What asked for plan `number` of `repo`: a post or the owner, by its cause, or the `commitment` to a room.

    `is_openers`: who opened the plan tells its end in the same place.
    """

    repo: str
    number: int
    cause: str
    is_openers: bool

    @property
    def commitment(self) -> str:
        """The commitment to a room, "" for who asked elsewhere."""
        return self.cause.removeprefix(_IN_ROOM) if self.cause.startswith(_IN_ROOM) else ""


def asked_in_room(commitment_id: str) -> str:
    """Return the cause of who asked in a room, where a commitment was made of it."""
    return f"{_IN_ROOM}{commitment_id}"


def asked_entry(repo: Repo, plan: Issue, cause: str) -> Entry:
    """Return the entry that keeps that `cause` asked for what a plan does that stands already."""
    is_openers = wish_mark(cause) in plan.body or (cause.startswith(_IN_ROOM) and not wish_of(plan.body))
    data = {"act": PLAN_ASKED, "repo": repo.full_name, "number": plan.number, "cause": cause, "openers": is_openers}
    summary = f"What was asked for is what {repo.full_name}#{plan.number} is for, so no other plan is made"
    return Entry("life", PLAN_ENDS, summary, line=None, reason=plan.html_url, trigger_uri=cause, data=data)


def ask_of(entry: Entry) -> PlanAsk:
    """Return what an entry keeps. Raises `KeyError` for another entry."""
    told = entry.data
    return PlanAsk(told["repo"], told["number"], told["cause"], told["openers"])
