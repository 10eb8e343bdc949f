"""What one SOUL can say of itself at a glance: for the heartbeat, the owner's turns, and the status file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from common.clock import iso
from common.wording import counted, counts_text, waiting_text
from modules.lives.bluesky.conversations import Conversations
from modules.lives.bluesky.expression import ExpressionCycle
from modules.runtime.budget.types import Report
from modules.services.commitments.naming import title_of
from modules.services.commitments.types import QueuedCommitment
from modules.services.day.gathering import DayReader, counts_of_today
from modules.services.day.rendering import brief_text
from modules.services.explanation.handles import named
from modules.services.outbox.types import Intent
from modules.services.rituals.rituals import Rituals
from soul.composition.services import Services
from soul.terminal.wording import moment, troubles_text

_DECISIONS_SHOWN, _DECISIONS_READ = 10, 40


@dataclass(frozen=True, slots=True)
class StatusReport:
    """Asks the services.

    `cached_share` says how much of its input the model service had kept, `prompt_notes` what had no room in a prompt,
    `live_commitments` what is still to be done, `growth` how SELF.md changed of late and what often goes wrong.
    """

    services: Services
    conversations: Conversations
    rituals: Rituals
    expression: ExpressionCycle
    cached_share: Callable[[], float | None]
    prompt_notes: Callable[[], Sequence[str]]
    live_commitments: Callable[[], Sequence[QueuedCommitment]]
    growth: Callable[[], Awaitable[dict[str, Any]]]

    async def gather(self) -> dict[str, Any]:
        """The fields of the status file that come from the services, in its camelCase."""
        services = self.services
        atproto, github, room = services.atproto, services.github, services.integrations.room
        zone = services.settings.soul_timezone
        counts = await services.database.run(lambda connection: counts_of_today(connection, services.clock, zone))
        now = await services.situation()
        budget = atproto.rate_limit_status()
        rate = github.rate if github.configured else None
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
            "waits": asdict(now.waits),
            "leaving": [{"act": what, "at": leaves.at, "why": leaves.reason} for what, leaves in now.leaving],
            "conversations": {"active": go_on, "concluded": concluded},
            "rituals": await self.rituals.told(),
            "nextExpressionAt": iso(self.expression.next_at) if self.expression.next_at else None,
            "nextExpressionSource": self.expression.next_source,
            "budget": {"remaining": budget.remaining, "limit": budget.limit, "resetAt": budget.reset_at},
            "troubles": self._troubles(now.budget),
            "modelBudget": self._spent(now.budget),
            "cachedShare": self.cached_share(),
            "promptNotes": list(self.prompt_notes()),
            "standing": now.standing.fields(),
            "drafts": [_draft(intent) for intent in now.drafts],
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
            "tokens": {"used": report.tokens.taken, "cap": report.tokens.cap},
            "usd": {"used": usd.taken, "cap": usd.cap} if (usd := report.usd) else None,
            "resetsAt": iso(self.services.clock.now() + timedelta(seconds=report.resets_in_s)),
        }


def status_line(facts: dict[str, Any], timezone: str = "") -> str:
    """The same as one line of prose, for the heartbeat."""
    talks = facts["conversations"]
    return (
        f"today {counts_text(facts['counts'])}; "
        f"{counted(talks['active'], 'open conversation')}, {talks['concluded']} concluded; "
        f"{_requests(facts['budget'])}; {moment_line(facts, timezone)}"
    )


def moment_line(facts: dict[str, Any], timezone: str = "") -> str:
    """Return what waits, what is planned and what is wrong, for the heartbeat and the owner's turns."""
    tokens, waits = facts["modelBudget"]["tokens"], facts["waits"]
    others = (
        (waits["drafts"], ("waiting for the owner's approval",) * 2),
        (len(facts["commitments"]), ("open commitment", "open commitments")),
    )
    told = (waiting_text(waits | {"drafts": 0, "owner_messages": 0}), *(counted(n, *what) for n, what in others if n))
    waiting, at = ", ".join(filter(None, told)), facts["nextExpressionAt"]
    planned = f"at {moment(at, timezone)}" if at else "not planned"
    return (
        f"{waiting or 'nothing waits'}; next thought of a post {planned}; "
        f"tokens of today {tokens['used']:,.0f} of {tokens['cap']:,.0f}; {_company(facts['room'])}"
        + "".join(f"; {_leaving(one, timezone)}" for one in facts["leaving"])
        + "".join(f"; {reason}" for reason in (*troubles_text(facts, timezone), *facts["standing"]["reasons"]))
    )


def _leaving(one: Mapping[str, str], timezone: str) -> str:
    until = f" until {moment(one['at'], timezone)}" if one["at"] else ""
    return f"a {one['act']} waits{until}: {one['why']}"


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
