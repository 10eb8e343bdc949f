"""Describes frictions and proposals to the owner: what they are, their state, and their evidence."""

from __future__ import annotations

import sqlite3

from common.wording import counted, purpose
from modules.services.craft.friction import Friction
from modules.services.craft.proposals import OPEN, Proposal, proposals, wish_key
from modules.services.craft.record import evidence_lines, frictions
from modules.services.identity.types import OWN_SKILL

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
