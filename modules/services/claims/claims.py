"""Who gets a task that several SOULs want: the decision, and what the comments on a plan tell of earlier claims. Pure.

The decision is the one that all peers make (`docs/plans.md`): logins compare in lower case, and the lowest wins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from common.clock import iso, parse_iso
from common.json_lines import split_lines
from modules.services.plans.events import parse_task_event_markers
from modules.services.plans.types import ACTIVE_TASKS, Plan

LEASE = timedelta(minutes=30)
RENEWED_AFTER = timedelta(minutes=5)
GRACE = timedelta(minutes=2)
"""How long an expired claim is still left alone: what clocks and answers may be late by."""

Decision = Literal["win", "lose", "reassert", "wait_contest", "wait_propagation"]

_MARKER = re.compile(r"<!--[ \t]{0,8}task-claim[ \t]{0,8}(\{[^{}<>\n]{1,300}\})[ \t]{0,8}-->")
_CLAIM_WORD = re.compile(r"\b(?:claim|claimed|claiming)\b", re.IGNORECASE)
_ENDING = frozenset({"reset", "failed", "blocked", "timeout"})


@dataclass(frozen=True, slots=True)
class PlanComment:
    """A comment on a plan: its place in the order of the service, its author's login, its text, its last change."""

    id: int
    author: str
    body: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """What a comment tells of a claim. A peer that speaks the older protocol names no `epoch` (0) and no `until`."""

    comment_id: int
    soul: str
    task: int
    epoch: int = 0
    until: datetime | None = None

    def is_live(self, now: datetime, *, grace: timedelta = timedelta()) -> bool:
        """Return whether it still holds; one without an end holds until its task is reset."""
        return self.until is None or now < self.until + grace


def claim_contenders(assignees: Iterable[str], plan: Plan, number: int, me: str) -> list[str]:
    """Return the others who are assigned to the issue and may want this task, in lower case and in order.

    Who works on another task of the plan is assigned because of that.
    """
    busy = {
        task.assignee.lower()
        for task in plan.tasks
        if task.number != number and task.assignee and task.status in ACTIVE_TASKS
    }
    return sorted({name.lower() for name in assignees} - busy - {me.lower()})


def decide_claim(line: str | None, contenders: Sequence[str], me: str, stage: Literal[1, 2]) -> Decision:
    """Return what follows from who stands on the task's line (None or "" is nobody) and who else wants it."""
    name, mine = (line or "").lower(), me.lower()
    if stage == 2:  # noqa: PLR2004 - the second of two
        return "win" if name == mine else "lose"
    if name == mine:
        return "wait_contest" if contenders else "win"
    if not name:
        return "wait_propagation"
    return "lose" if name < mine else "reassert"


def claim_marker(claim: Claim) -> str:
    """Return the marker that tells machines of a claim. Raises `ValueError` for one that never ends."""
    if claim.until is None:
        raise ValueError("a claim of ours ends")
    told = {"task": claim.task, "soul": claim.soul, "epoch": claim.epoch, "until": iso(claim.until)}
    return f"<!-- task-claim {json.dumps(told, separators=(',', ':'))} -->"


def with_claim_until(body: str, number: int, until: datetime) -> str:
    """Return the text of a claim's comment with another end; an end in the past releases it."""

    def renewed(found: re.Match[str]) -> str:
        claim = _claim(0, found[1])
        if claim is None or claim.task != number:
            return found[0]
        return claim_marker(Claim(0, claim.soul, claim.task, claim.epoch, until))

    return _MARKER.sub(renewed, body)


def claims_on(comments: Iterable[PlanComment], number: int) -> list[Claim]:
    """Return the claims on a task since it was last reset or failed, in the order of the service.

    A claim counts only where its author is the SOUL that it names, and for no longer than a lease from the comment's
    last change. Whose comments are trusted is the caller's choice.
    """
    claims: list[Claim] = []
    for comment in sorted(comments, key=lambda one: one.id):
        told = [event.event for event in parse_task_event_markers(comment.body) if event.task == number]
        if _ENDING.intersection(told):
            claims = []
        claims += _claims_in(comment, number)
    return claims


def highest_epoch(comments: Iterable[PlanComment], number: int) -> int:
    """Return the highest epoch of any claim on a task, also of those before its last reset; 0 where there is none."""
    return max((claim.epoch for comment in comments for claim in _claims_in(comment, number)), default=0)


def _claims_in(comment: PlanComment, number: int) -> list[Claim]:
    read = (_claim(comment.id, found[1]) for found in _MARKER.finditer(comment.body))
    last = comment.updated_at + LEASE
    marked = [replace(claim, until=min(claim.until or last, last)) for claim in read if claim]
    own = [claim for claim in marked if claim.task == number and claim.soul.lower() == comment.author.lower()]
    if own or marked:
        return own
    return [Claim(comment.id, comment.author, number)] if _says_claimed(comment.body, number) else []


def _says_claimed(body: str, number: int) -> bool:
    """Whether a peer says that it takes a task: by the marker of an event, or in words."""
    if events := parse_task_event_markers(body):
        return any(event.task == number and event.event == "claimed" for event in events)
    name = re.compile(rf"\btask[ \t]{{1,8}}{number}(?![0-9])", re.IGNORECASE)
    return any(
        name.search(line) and _CLAIM_WORD.search(line)
        for line in split_lines(body)
        if not line.lstrip().startswith(">")
    )


def _claim(comment_id: int, text: str) -> Claim | None:
    try:
        told = json.loads(text)
        match told:
            case {"task": int(task), "soul": str(soul), "epoch": int(epoch), "until": str(until)} if epoch >= 0:
                return Claim(comment_id, soul, task, epoch, parse_iso(until))
    except ValueError:
        return None
    return None
