"""What a wakeup context is rendered from: typed values, so that what has no place in it cannot get in.

There is no field for a transcript or for what a tool printed. Whoever gathers the state (plans, rituals, sessions)
hands over one line per thing; `private` keeps a line from every turn that is not the owner's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from modules.services.agent.attention_list import Item


@dataclass(frozen=True, slots=True)
class Teammate:
    """Somebody whom the SOUL works beside, and as what."""

    name: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class Protocol:
    """How something is done here: a memory of kind `protocol`."""

    subject: str
    body: str
    private: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """What is going on: tasks taken on, branches in flight, what stands in the way, what comes next."""

    tasks: tuple[Item, ...] = ()
    branches: tuple[Item, ...] = ()
    blockers: tuple[Item, ...] = ()
    next_actions: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class LastSession:
    """What the newest stretch of life came to. `at` is its local date, "" if there was none."""

    at: str = ""
    outcomes: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OlderSession:
    """A conversation that is over, in one line. `at` is its local date."""

    at: str
    summary: str


@dataclass(frozen=True, slots=True)
class WakeupState:
    """All that a SOUL should know when it wakes.

    Attributes:
        name: the SOUL's own.
        role: what it is here for.
        team: those it works beside.
        protocols: how things are done here, the most important first.
        work: what is going on.
        last: the newest stretch of life.
        older: conversations before it, newest first.
        milestones: what changed the course of this life, newest first.
        relationships: who matters, and why, the closest first.

    """

    name: str
    role: str = ""
    team: tuple[Teammate, ...] = ()
    protocols: tuple[Protocol, ...] = ()
    work: Work = Work()
    last: LastSession = LastSession()
    older: tuple[OlderSession, ...] = ()
    milestones: tuple[str, ...] = ()
    relationships: tuple[str, ...] = ()


Gather = Callable[[], Awaitable[WakeupState]]
"""Looks at what is there now."""
