"""The proposals of a SOUL, kept in `soul.db` with their evidence; and the words for them and for frictions."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Literal, Protocol

from common.clock import Clock, iso, parse_iso
from common.wording import counted, purpose
from modules.runtime.database.database import Database
from modules.runtime.database.people import PersonalRows, PersonalTable
from modules.services.craft.friction import COUNTED_DAYS, Friction, day_of, within_a_week
from modules.services.craft.record import evidence_lines, frictions, put_row, read_all
from modules.services.identity.entries import OWN_SKILL

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
    """Return the evidence for a proposal about a friction: its own occurrences, as others' count for nothing."""
    _, own, days = within_a_week(friction, now, day)
    return {"occurrences": own, "days": days, "entries": friction.own_entries}


def counted_at(proposal: Proposal, day: timedelta) -> datetime:
    """Return when the seven days after the day on which a proposal was taken are over."""
    return parse_iso(day_of(parse_iso(proposal.decided_at), day)) + (COUNTED_DAYS + 1) * day


def outcome_of(proposal: Proposal, friction: Friction, day: timedelta) -> ProposalStep:
    """Return `mended` if it occurs by itself at most half as often after the proposal was taken, else `again`."""
    end, week = counted_at(proposal, day), COUNTED_DAYS * day
    _, before, _ = friction.within(end - 2 * week, end - week)
    _, after, _ = friction.within(end - week, end)
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


_STATES = {
    "seen": "counted",
    "asked": "considered",
    "making": "prepared",
    "taken": "accepted",
    "again": "open again",
    "left": "dropped",
}
_LOOPS = {
    "awareness": "answers on Bluesky",
    "budget": "the budget",
    "github-awareness": "threads on GitHub",
    "message-others": "direct messages",
    "messages": "direct messages with you",
    "outbox": "what it does in public",
    "owner": "talks with you",
    "scheduler": "the loops",
    "self": "SELF.md",
    "task": "tasks",
    "workspace-files": "its files",
}
_RUNGS = {"skill": "A skill", "issue": "An issue", "program": "A change of the program"}


def in_words(friction: Friction) -> str:
    """Return a friction in words for the owner: category, code and place."""
    code = f"{friction.code} ({friction.words})" if friction.words else friction.code
    return f"{friction.category}: {code}, in {_LOOPS.get(friction.loop) or purpose(friction.loop)}"


def friction_stands(friction: Friction) -> str:
    """Return the state of a friction, and why, in words for the owner."""
    state, rest = friction.came_of_it
    told = ": ".join(filter(None, (_STATES.get(state, state), rest)))
    if friction.state == "ready":
        return f"often enough for a proposal{f'; the last one was {told}' if told else ''}"
    if friction.state == "proposed":
        return f"a proposal is {told if state in {*OPEN, 'taken'} else 'considered'}"
    return told or _STATES.get(friction.state, friction.state)


def ended_as(code: str) -> str:
    """Return the sentence for the end of a proposal; `code` is its state."""
    return f"Proposal {_STATES.get(code, code)}"


def proposal_stands(one: Proposal) -> str:
    """Return the kind and state of a proposal; for an open one also its date and what it waits for."""
    rung = "A page for the skill" if one.rung == "skill" and one.made else _RUNGS.get(one.rung, "A proposal")
    what = " ".join(filter(None, (rung, one.made)))
    state = _STATES.get(one.state, one.state)
    if one.state in OPEN:
        return f"{what}: {state} since {one.at[:10]}; {_waits_for(one)}"
    return ": ".join(filter(None, (what, state, one.told)))


def _waits_for(one: Proposal) -> str:
    if one.state == "asked":
        return "the SOUL decides next whether to take it up"
    if one.rung != "skill":
        return one.reason or "it is made next"
    shows = f"`soul drafts show {OWN_SKILL}{one.made}` shows it; awake, it takes up your answer within a minute"
    return shows if one.state == "waiting" else "its next reflection writes the skill"


def names_of(one: Proposal) -> list[str]:
    """Return the names of a proposal in the journal: of its decision, of its acts, and of its skill."""
    about = f"friction:{one.friction}" if one.friction else wish_key(one.wish)
    skill = [f"{OWN_SKILL}{one.made}"] if one.rung == "skill" and one.made else []
    return [f"improvement:{about}", one.cause, *skill]


def names_about(connection: sqlite3.Connection, one: Proposal) -> list[str]:
    """Return the names of all proposals about the same friction or wish."""
    return [name for each in proposals(connection) if each.about == one.about for name in names_of(each)]


def behind(connection: sqlite3.Connection, name: str) -> Proposal | None:
    """Return the newest proposal that has this name in `names_of`, or None."""
    return next((one for one in proposals(connection) if name in names_of(one)), None)


def rests_on(connection: sqlite3.Connection, one: Proposal | None) -> list[str]:
    """Return the lines of `evidence_for`, and the SOUL's reason for its decision."""
    # if its own no ended the proposal, `proposal_stands` shows this reason already
    reason = one.why if one and (one.reason or one.state != "left") else ""
    return [*evidence_for(connection, one), *([f"The SOUL's reason: {reason}"] if reason else [])]


def evidence_for(connection: sqlite3.Connection, one: Proposal | None) -> list[str]:
    """Return what was known when a proposal began: the friction or wish, how often it occurred, and the evidence."""
    if one is None:
        return []
    if (friction := next((each for each in frictions(connection) if each.id == one.friction), None)) is None:
        return [f"Wished for: {one.wish}"] if one.wish else []
    times, days = (int(one.evidence.get(name, 0)) for name in ("occurrences", "days"))
    often = f"It occurred {counted(times, 'time')} within a week, on {counted(days, 'day')}"
    evidence = (f"  {line}" for line in evidence_lines(connection, friction, one.entries))
    return [f"To mend: {in_words(friction)}", *([often] if times else []), *evidence]
