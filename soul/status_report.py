"""What one SOUL can say of itself at a glance: for the heartbeat, the owner's turns, and the status file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from common.clock import iso, local, parse_iso
from common.wording import counted
from modules.lives.bluesky.conversations import Conversations
from modules.lives.bluesky.expression import ExpressionCycle
from modules.lives.bluesky.state import PendingPosts
from modules.runtime.budget.types import Amount, Report
from modules.runtime.control import Standing
from modules.services.commitments.naming import title_of
from modules.services.commitments.types import QueuedCommitment
from modules.services.day.gathering import DayReader, counts_of_today
from modules.services.day.rendering import brief_text
from modules.services.explanation.handles import named
from modules.services.outbox import store
from modules.services.outbox.types import Intent
from modules.services.rituals.rituals import Rituals
from modules.services.sessions import owner_inbox
from soul.composition.services import Services

_DECISIONS_SHOWN, _DECISIONS_READ = 10, 40


@dataclass(frozen=True, slots=True)
class StatusReport:
    """Asks the services.

    `model_budget` and `standing` say how the day's budget and the signs against acting stand, `cached_share` how much
    of its input the model service had kept, `prompt_notes` what had no room in a prompt, `live_commitments` what
    is still to be done, `growth` how SELF.md changed of late and what goes wrong again and again.
    """

    services: Services
    pending: PendingPosts
    conversations: Conversations
    rituals: Rituals
    expression: ExpressionCycle
    model_budget: Callable[[], Awaitable[Report]]
    standing: Callable[[], Standing]
    cached_share: Callable[[], float | None]
    prompt_notes: Callable[[], Sequence[str]]
    live_commitments: Callable[[], Sequence[QueuedCommitment]]
    growth: Callable[[], Awaitable[dict[str, Any]]]

    async def gather(self) -> dict[str, Any]:
        """The fields of the status file that come from the services, in its camelCase."""
        services = self.services
        atproto, github, room = services.atproto, services.github, services.integrations.room
        zone = services.settings.soul_timezone
        counts, acts, owner_messages = await services.database.run(
            lambda connection: (
                counts_of_today(connection, services.clock, zone),
                store.counts(connection),
                owner_inbox.count(connection),
            )
        )
        budget = atproto.rate_limit_status()
        rate = github.rate if github.configured else None
        report = await self.model_budget()
        standing = self.standing()
        go_on, concluded = self.conversations.counts()
        decisions = [
            {
                "at": stored.at,
                "summary": stored.entry.summary,
                "reason": stored.entry.reason,
                "triggerUri": stored.entry.trigger_uri,
            }
            for stored in reversed(await services.journal.recent(_DECISIONS_READ, kinds=["decision"]))
            if not stored.entry.data.get("held")  # the drafts tell of it while it waits
        ][-_DECISIONS_SHOWN:]
        await services.database.run(partial(_name_people, decisions))
        return {
            "handle": atproto.handle,
            "did": atproto.did,
            "lastDecision": decisions[-1] if decisions else None,
            "decisions": decisions,
            "counts": counts,
            "pendingNotifications": await self.pending.count(),
            "pendingIntents": acts.get("pending", 0) + acts.get("sending", 0),
            "conversations": {"active": go_on, "concluded": concluded},
            "rituals": await self.rituals.told(),
            "ownerMessages": owner_messages,
            "nextExpressionAt": iso(self.expression.next_at) if self.expression.next_at else None,
            "nextExpressionSource": self.expression.next_source,
            "budget": {"remaining": budget.remaining, "limit": budget.limit, "resetAt": budget.reset_at},
            "troubles": self._troubles(report),
            "modelBudget": self._spent(report),
            "cachedShare": self.cached_share(),
            "promptNotes": list(self.prompt_notes()),
            "standing": {
                "paused": standing.paused,
                "safeMode": standing.safe_mode,
                "reasons": list(standing.reasons),
            },
            "drafts": [_draft(intent) for intent in await services.outbox.held()],
            "room": {
                "status": room.status,
                "url": room.url,
                "peers": list(room.peers()),
                "silence": services.integrations.silence.of_approval(),
            },
            "growth": await self.growth(),
            "github": {"remaining": rate.remaining, "limit": rate.limit, "resetAt": rate.reset_at} if rate else None,
            "watched": [
                {"repo": f"{one.owner}/{one.repo}", "url": one.url, "requested": one.requested}
                for one in services.workspaces.all()
            ],
            "commitments": [
                {
                    "id": one.id,
                    "type": one.type,
                    "what": title_of(one),
                    "status": one.status,
                    "createdAt": one.created_at,
                }
                for one in self.live_commitments()
            ],
        }

    async def line(self) -> str:
        """Return one line of prose, for the heartbeat."""
        return status_line(await self.gather(), self.services.settings.soul_timezone)

    async def moment(self) -> str:
        """Return what the owner's turns are told: the day so far, and how things stand."""
        services = self.services
        days = DayReader(services.settings, services.home, services.clock)
        day = brief_text(await asyncio.to_thread(days.read))
        now = moment_line(await self.gather(), services.settings.soul_timezone)
        return "\n".join(filter(None, (day, now)))

    def _troubles(self, report: Report) -> list[dict[str, Any]]:
        """What the SOUL waits for: a service that is left alone or fails, and tokens; `until` where it is known."""
        now = self.services.clock.now()
        waits = {"Bluesky": self.services.atproto.back_off(), "GitHub": self.services.github.back_off()}
        left_alone = {name: wait for name, wait in waits.items() if wait}
        troubles: list[dict[str, Any]] = [
            {"service": name, "what": wait.reason, "until": iso(now + timedelta(seconds=wait.seconds))}
            for name, wait in left_alone.items()
        ]
        for one in self.services.health.degraded():
            if one.service not in left_alone:
                what = f"{one.service} fails again and again"
                troubles.append({"service": one.service, "what": what, "until": None})
        if report.step == "listen":
            until = iso(now + timedelta(seconds=report.resets_in_s))
            troubles.append({"service": "model", "what": "today's budget for the model is used up", "until": until})
        return troubles

    def _spent(self, report: Report) -> dict[str, Any]:
        return {
            "step": report.step,
            "tokens": _amount(report.tokens),
            "usd": _amount(report.usd) if report.usd else None,
            "resetsAt": iso(self.services.clock.now() + timedelta(seconds=report.resets_in_s)),
        }


def status_line(facts: dict[str, Any], timezone: str = "") -> str:
    """The same as one line of prose, for the heartbeat."""
    counts, talks = facts["counts"], facts["conversations"]
    return (
        f"today {counted(counts['posts'], 'post')}, {counted(counts['replies'], 'reply', 'replies')}, "
        f"{counted(counts['likes'], 'like')}, {counts['silences']} left alone; "
        f"{counted(talks['active'], 'open conversation')}, {talks['concluded']} concluded; "
        f"{_requests(facts['budget'])}; {moment_line(facts, timezone)}"
    )


def moment_line(facts: dict[str, Any], timezone: str = "") -> str:
    """Return what waits, what is planned and what is wrong, for the heartbeat and the owner's turns."""
    tokens = facts["modelBudget"]["tokens"]
    waits = (
        (facts["pendingNotifications"], ("post to answer", "posts to answer")),
        (facts["pendingIntents"], ("act to send", "acts to send")),
        (len(facts["drafts"]), ("waiting for the owner's approval",) * 2),
        (len(facts["commitments"]), ("open commitment", "open commitments")),
    )
    waiting = ", ".join(counted(count, *what) for count, what in waits if count)
    return (
        f"{waiting or 'nothing waits'}; next thought of a post {_planned(facts['nextExpressionAt'], timezone)}; "
        f"tokens of today {tokens['used']:,.0f} of {tokens['cap']:,.0f}; {_company(facts['room'])}"
        + "".join(f"; {reason}" for reason in (*troubles_told(facts, timezone), *facts["standing"]["reasons"]))
    )


def troubles_told(status: Mapping[str, Any], timezone: str = "") -> list[str]:
    """The troubles of a status in words, each with the moment until which it lasts, if that is known."""
    return [
        f"{one['what']}, until {local(parse_iso(one['until']), timezone):%H:%M:%S}" if one["until"] else one["what"]
        for one in status.get("troubles", ())
    ]


def _planned(at: str | None, timezone: str) -> str:
    return f"at {local(parse_iso(at), timezone):%Y-%m-%d %H:%M}" if at else "not planned"


def _requests(budget: dict[str, Any]) -> str:
    """How many requests Bluesky still takes; before the first answer that is not known."""
    if budget["remaining"] is None or budget["limit"] is None:
        return "requests to Bluesky not counted yet"
    return f"{budget['remaining']:,} of {budget['limit']:,} requests to Bluesky left"


def _company(room: dict[str, Any]) -> str:
    if room["status"] not in {"joined", "draining"}:
        return "in no room"
    # NOTE(self): how many, not who: names are chosen by others, and this line stands in the owner's own prompt.
    return f"in a room with {counted(len(room['peers']), 'other')}" if room["peers"] else "alone in a room"


def _amount(amount: Amount) -> dict[str, float | None]:
    """What is reserved counts as used: it may yet be, and the limit does not move."""
    return {"used": amount.used + amount.reserved, "cap": amount.cap}


def _name_people(decisions: list[dict[str, Any]], connection: sqlite3.Connection) -> None:
    """Put handles in the place of DIDs in what each decision says."""
    for one in decisions:
        one["summary"], one["reason"] = named(connection, one["summary"]), named(connection, one["reason"])


def _draft(intent: Intent) -> dict[str, Any]:
    return {
        "id": intent.id,
        "kind": intent.kind,
        "text": intent.body.preview,
        "target": intent.target,
        "why": intent.error or "",
        "createdAt": intent.created_at,
        "expiresAt": intent.expires_at,
    }
