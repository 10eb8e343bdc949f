"""The proposals of a SOUL: one is open at a time; each is kept in `soul.db` with its evidence."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Literal, Protocol

from common.clock import Clock, iso, parse_iso
from modules.runtime.database.database import Database
from modules.runtime.database.people import PersonalRows, PersonalTable
from modules.services.craft.friction import COUNTED_DAYS, Friction, day_of, within_a_week
from modules.services.craft.record import put_row, read_all

Rung = Literal["skill", "issue", "program"]
"""What a proposal makes: a skill of its own, an issue in the maker's repository, or a change of its own program."""
RungVerdict = Literal["skill", "issue", "program", "habit", "not_at_all"]
"""What the SOUL decided would help; the last two need no proposal."""
ProposalState = Literal["asked", "making", "waiting", "taken", "mended", "again", "left", "failed"]
"""`asked`: the SOUL decides; `making`: being written; `waiting`: for a person; `taken`: in use, effect is counted."""

_TABLE, _DECIDED_WITHIN = "proposals", timedelta(days=14)
OPEN: frozenset[ProposalState] = frozenset({"asked", "making", "waiting"})


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal about a friction (its number) or about a wish (its words). Times are ISO-8601 UTC, "" for not yet.

    `evidence` holds the occurrences and days of the friction within a week, and the numbers of its journal entries.
    `made` is the name of a skill, or the URL of an issue or a pull request. `why` is the SOUL's reason for its
    decision. `reason` is why the proposal is in its state; "" if the SOUL's own no is the reason.
    """

    id: int
    at: str
    friction: int | None
    wish: str
    rung: RungVerdict | Literal[""]
    evidence: Mapping[str, Any]
    state: ProposalState
    reason: str = ""
    made: str = ""
    decided_at: str = ""
    why: str = ""

    @property
    def cause(self) -> str:
        """The cause id of its acts, which its skill cites too."""
        return f"proposal:{self.id}"

    @property
    def about(self) -> tuple[int | None, str]:
        """Its subject: the number of its friction or None, and its wish or ""."""
        return self.friction, self.wish

    @property
    def told(self) -> str:
        """The reason for its state: `reason`, or `why` if only the SOUL's own yes or no led there."""
        return self.reason or (self.why if self.state in {"making", "left"} else "")

    @property
    def entries(self) -> Sequence[int]:
        """The numbers of the journal entries that it rests on."""
        return list(self.evidence.get("entries", ()))


@dataclass(frozen=True, slots=True)
class ProposalStep:
    """The next state of a proposal that was taken up; `made` and `reason` are "" if they do not change."""

    state: ProposalState
    made: str = ""
    reason: str = ""


def decided_in_time(proposal: Proposal, step: ProposalStep, clock: Clock) -> ProposalStep:
    """Return `step`, or a step to `left` if an open proposal is too old, so that it does not block others."""
    if step.state in OPEN and clock.since(parse_iso(proposal.at)) > _DECIDED_WITHIN:
        return ProposalStep("left", step.made, f"nobody decided within {_DECIDED_WITHIN.days} days")
    return step


class Maker(Protocol):
    """Makes what a proposal of one rung asks for. Only a person, never the maker, puts the result into use."""

    @property
    def rung(self) -> Rung: ...

    def is_ready(self) -> bool:
        """Return whether this rung can be used in this life, with these settings."""
        ...

    async def advance(self, proposal: Proposal) -> ProposalStep:
        """Begin or continue it, or check its state. A crash may repeat this: do each act once per `proposal.id`."""
        ...


@dataclass(frozen=True, slots=True)
class ProposalGates:
    """When a SOUL may propose by itself: least lived time since birth, and since its last proposal (0: never)."""

    burn_in: timedelta = timedelta(hours=48)
    between: timedelta = timedelta(hours=24)

    def closed(self, *, lived: timedelta | None, since_last: timedelta | None, has_open: bool, is_idle: bool) -> str:
        """Return why nothing may be proposed now; "" if something may."""
        if not self.between:
            return "IMPROVEMENT_MIN_HOURS is 0"
        if lived is None or lived < self.burn_in:
            return "its first hours are for living"
        if has_open:
            return "another proposal is open"
        if since_last is not None and since_last < self.between:
            return "the last proposal was a short while ago"
        return "" if is_idle else "it is busy"


def evidence_of(friction: Friction, now: datetime, day: timedelta) -> dict[str, Any]:
    """Return the evidence for a proposal about a friction."""
    count, own, days = within_a_week(friction, now, day)
    return {"occurrences": count, "own": own, "days": days, "entries": friction.own_entries}


def counted_at(proposal: Proposal, day: timedelta) -> datetime:
    """Return when the seven days after the day on which a proposal was taken are over."""
    return parse_iso(day_of(parse_iso(proposal.decided_at), day)) + (COUNTED_DAYS + 1) * day


def outcome_of(proposal: Proposal, friction: Friction, day: timedelta) -> ProposalStep:
    """Return `mended` if the friction occurs at most half as often after the proposal was taken, else `again`."""
    end = counted_at(proposal, day)
    before, after = int(proposal.evidence["occurrences"]), friction.within(end - COUNTED_DAYS * day, end)[0]
    told = f"{before} in the seven days before, {after} in the seven days after"
    return ProposalStep("mended" if 2 * after <= before else "again", reason=told)


@dataclass(frozen=True, slots=True)
class Proposals:
    """Stores the proposals of one SOUL; each call is one transaction."""

    database: Database
    clock: Clock

    async def all(self) -> list[Proposal]:
        """Return all proposals, newest first."""
        return await self.database.run(proposals)

    async def open(self) -> Proposal | None:
        """Return the open proposal, or None."""
        return next((one for one in await self.all() if one.state in OPEN), None)

    async def to_write(self) -> Proposal | None:
        """Return the open proposal whose skill the next reflection is to write, or None."""
        found = await self.open()
        return found if found and (found.rung, found.state) == ("skill", "making") else None

    async def begin(
        self, friction: int | None, wish: str, evidence: Mapping[str, Any], *, after: Proposal | None = None
    ) -> Proposal | None:
        """Store `after`, then begin a proposal or return the open one about the same; None if another is open."""
        new = Proposal(0, iso(self.clock.now()), friction, wish, "", evidence, "asked")

        def write(connection: sqlite3.Connection) -> Proposal | None:
            if after:
                put_row(connection, _TABLE, after)
            before = next((one for one in proposals(connection) if one.state in OPEN), None)
            if before is None:
                put_row(connection, _TABLE, new)
                return proposals(connection)[0]
            return before if before.about == (friction, wish) else None

        return await self.database.run(write)

    async def put(self, proposal: Proposal, **changes: Any) -> Proposal:  # noqa: ANN401 - fields of different kinds
        """Store a proposal with these changes, and with `decided_at` if it stops being open; return it."""
        after = replace(proposal, **changes)
        if after.state not in OPEN and proposal.state in OPEN:
            after = replace(after, decided_at=iso(self.clock.now()))
        await self.database.run(lambda connection: put_row(connection, _TABLE, after))
        return after


def wish_key(wish: str) -> str:
    """Return the key of the work item for a wish: a hash, as a wish may name somebody and keys are never redacted."""
    return f"wish:{sha256(wish.casefold().encode()).hexdigest()}"


def proposals(connection: sqlite3.Connection) -> list[Proposal]:
    """Return all proposals, newest first, as a step of a caller's transaction."""
    return read_all(connection, _TABLE, Proposal)


CRAFT_OF_PEOPLE = PersonalRows(
    "proposals",
    (
        PersonalTable(name="friction", redacts={"reason": "redacted(reason)"}, also="named(reason)"),
        PersonalTable(
            name="proposals",
            redacts={name: f"redacted({name})" for name in ("wish", "reason", "why")},
            also="named(wish, reason, why)",
        ),
    ),
)
"""Replaces the DID and handles of a forgotten person in the SOUL's wishes and reasons."""
