"""What an owner reads of a friction and of a proposal: what it is, where it stands, and what it rests on."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from common.wording import counted, purpose
from modules.runtime.journal import rows
from modules.services.craft.friction import Friction, FrictionCategory
from modules.services.craft.proposals import OPEN, Proposal, proposals
from modules.services.craft.record import evidence_lines, frictions

_CATEGORIES: Mapping[FrictionCategory, str] = {
    "pacing": "pace and budget",
    "expression": "own posts",
    "memory": "memory",
    "social": "talk with others",
    "tools": "use of tools",
    "understanding": "understanding",
    "other": "other",
}
_STATES: Mapping[str, str] = {
    "seen": "counted",
    "ready": "ready to be proposed",
    "asked": "being considered",
    "making": "being prepared",
    "waiting": "waiting for a decision",
    "taken": "in use, and counted for a week",
    "again": "open again",
    "left": "not taken up",
}
_WORK, _CAUSE = "improvement:", "proposal:"
_DECIDES = "improvement_decide"


def in_words(friction: Friction) -> str:
    """Return what goes wrong, in words of this program."""
    code = f"{friction.code} ({friction.words})" if friction.words else friction.code
    return f"{_CATEGORIES[friction.category]}: {code}, in {purpose(friction.loop)}"


def friction_stands(friction: Friction) -> str:
    """Return where a friction stands, and why."""
    state = _STATES.get(friction.state, friction.state)
    head, _, rest = friction.reason.partition(": ")
    if head == friction.state:
        return ": ".join(filter(None, (state, rest)))
    before = ": ".join(filter(None, (_STATES.get(head, head), rest)))
    return f"{state} ({before})" if before else state


def proposal_stands(proposal: Proposal) -> str:
    """Return what a proposal is, where it stands, and for an open one since when and what it waits for."""
    what = {"": "A proposal", "skill": "A skill", "issue": "An issue", "program": "A change of the program"}
    name = f" {proposal.made}" if proposal.made else ""
    told = f"{what.get(proposal.rung, 'A wish')}{name}: {_STATES.get(proposal.state, proposal.state)}"
    return f"{told} since {proposal.at[:10]}; {_waits_for(proposal)}" if proposal.state in OPEN else told


def _waits_for(proposal: Proposal) -> str:
    if proposal.state == "asked":
        return "the SOUL decides next whether to take it up"
    if proposal.rung == "skill":
        by_owner = f"`soul drafts show skills/{proposal.made}` shows it, and how to approve it"
        return by_owner if proposal.state == "waiting" else "its next reflection writes the skill"
    return proposal.reason


def open_proposal(connection: sqlite3.Connection) -> Proposal | None:
    """Return the proposal that is open, if any."""
    return next((one for one in proposals(connection) if one.state in OPEN), None)


def behind(connection: sqlite3.Connection, *, skill: str = "", cause: str = "") -> Proposal | None:
    """Return the proposal that made a skill of this name that waits, or whose acts have this cause."""
    found = (
        one
        for one in proposals(connection)
        if (skill and one.state == "waiting" and one.made == skill) or cause == f"{_CAUSE}{one.id}"
    )
    return next(found, None)


def causes(connection: sqlite3.Connection, name: str) -> list[str]:
    """Return under which names what belongs to a proposal is told: its decision, and its acts; [] for another name."""
    if not name.startswith((_WORK, _CAUSE)):
        return []
    known = [(work_of(one), f"{_CAUSE}{one.id}") for one in proposals(connection)]
    return [*dict.fromkeys([name, *(one for pair in known if name in pair for one in pair)])]


def work_of(proposal: Proposal) -> str:
    """Return the cause of the turn in which a proposal was decided."""
    of = f"friction:{proposal.friction}" if proposal.friction else f"wish:{proposal.wish.casefold()}"
    return f"{_WORK}{of}"


def rests_on(connection: sqlite3.Connection, proposal: Proposal) -> list[str]:
    """Return what a proposal rests on: what goes wrong, how often, the evidence, and the SOUL's reason."""
    friction = next((one for one in frictions(connection) if one.id == proposal.friction), None)
    times, days = (int(proposal.evidence.get(name, 0)) for name in ("occurrences", "days"))
    lines = [f"To mend: {in_words(friction)}"] if friction else []
    lines += [f"Wished for: {proposal.wish}"] if proposal.wish else []
    lines += [f"It occurred {counted(times, 'time')} within a week, on {counted(days, 'day')}:"] if times else []
    lines += [f"  {line}" for line in evidence_lines(connection, proposal.entries)]
    reason = _own_reason(connection, proposal) or proposal.reason
    return [*lines, *([f"The SOUL's reason: {reason}"] if reason else [])]


def _own_reason(connection: sqlite3.Connection, proposal: Proposal) -> str:
    """Return why the SOUL took it up, as it said; "" where the journal does not hold it any more."""
    for entry in rows.about(connection, [work_of(proposal)], []):
        for call in entry["data"].get("calls", ()):
            if call["tool"] == _DECIDES and not call.get("error") and entry["at"] >= proposal.at:
                return str(call["input"].get("reason", ""))
    return ""
