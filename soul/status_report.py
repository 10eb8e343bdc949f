"""The status of a SOUL, for the heartbeat, the owner's turns, and the status file.

It also has the answers to the owner's direct messages.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

from common.clock import iso
from common.wording import counted, counts_text, cut_off, set_aside, waiting_text
from modules.lives.bluesky.expression import ExpressionCycle
from modules.lives.bluesky.publish import Conversations
from modules.runtime.budget.policy import Report
from modules.services.commitments.naming import QueuedCommitment, title_of
from modules.services.day.gathering import DayReader, counts_of_today
from modules.services.day.rendering import brief_text
from modules.services.day.situation import Situation
from modules.services.explanation.drafts import draft_fields
from modules.services.explanation.story import named
from modules.services.identity.entries import waiting_line
from modules.services.identity.identity import Me
from modules.services.outbox.outbox import Outbox
from modules.services.owner import OwnerTalk, cause_of, problem_of
from modules.services.rights.answering import PersonRequests
from modules.services.rights.policy import Addressed
from modules.services.rituals.rituals import Rituals
from modules.services.work.types import WorkItem
from soul.command_table import Commands
from soul.composition.services import Services
from soul.terminal.wording import moment, troubles_text

_NO_WORDS = "The model ended without an answer. Ask again, in other words."

PhoneCommands = Callable[[Any], Commands]
"""Builds the commands that the owner can give by direct message to a running SOUL, which is the argument."""


@dataclass
class OwnerMessages:
    """Answers messages of the owner; `owner` and `commands` are called once the SOUL is built.

    Requests of the owner about their own data go to `requests` first.
    """

    me: Me
    outbox: Outbox
    requests: PersonRequests
    owner: Callable[[], OwnerTalk]
    commands: Callable[[], Commands]

    @cached_property
    def _built(self) -> Commands:
        return self.commands()

    def takes_a_while(self, line: str) -> bool:
        """Return whether a slash command takes so long that later commands do not wait for it."""
        return bool(self._built.begins(line))

    async def obey(self, line: str) -> str:
        """Carry out a slash command; return the text of the answer, "" if there is none."""
        lines, *problem = await self._built.obey(line)
        return "\n".join((*lines, *filter(None, problem)))

    async def answer(self, item: WorkItem, text: str, sent_at: str) -> str:
        """Return the SOUL's answer, or why there is none. Raises the same errors as `OwnerTalk.answer_message`."""
        asked = Addressed(item.key, self.me.owner_did, self.me.owner_handle, text, "owner")
        requested = await self.requests.carry_out(asked)
        if requested and requested.code == "answer":
            return requested.text
        answer = await self.owner().answer_message(item, text, sent_at)
        if answer.text:
            return answer.text
        problem = problem_of(answer.failed) if answer.failed else (_NO_WORDS, "")
        acts = await self.outbox.ends((await self.outbox.by_cause(cause_of(item.key)))[::-1])
        return "\n".join(filter(None, (*problem, *acts)))


_DECISIONS_SHOWN, _DECISIONS_READ = 10, 40


@dataclass(frozen=True, slots=True)
class StatusReport:
    """Gathers the status from the services.

    `cached_share` returns which share of its input the model service had cached, `prompt_notes` what had no room in a
    prompt, `live_commitments` the open commitments, `growth` the latest changes of SELF.md and the frictions.
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
        """Return the fields of the status file that come from the services, in its camelCase."""
        services = self.services
        atproto, github, integrations = services.atproto, services.github, services.integrations
        zone = services.settings.soul_timezone
        counts = await services.database.run(lambda connection: counts_of_today(connection, services.clock, zone))
        now = await services.situation()
        stands = self._stands(now)
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
            if not stored.entry.data.get("held")  # shown among the drafts while it waits
        ][-_DECISIONS_SHOWN:]
        await services.database.run(partial(_name_people, decisions))
        return {
            **stands,
            "handle": atproto.handle,
            "did": atproto.did,
            "lastDecision": decisions[-1] if decisions else None,
            "decisions": decisions,
            "counts": counts,
            "conversations": {"active": go_on, "concluded": concluded},
            "rituals": await self.rituals.told(),
            "nextExpressionSource": self.expression.next_source,
            "budget": {"remaining": budget.remaining, "limit": budget.limit, "resetAt": budget.reset_at},
            "cachedShare": self.cached_share(),
            "promptNotes": list(self.prompt_notes()),
            "drafts": [draft_fields(draft, services.clock.now()) for draft in now.drafts],
            "room": {
                **stands["room"],
                "url": integrations.room.url,
                "silence": integrations.silence.of_approval(),
            },
            "growth": await self.growth(),
            "github": {"remaining": rate.remaining, "limit": rate.limit, "resetAt": rate.reset_at} if rate else None,
            "watched": [
                {"repo": f"{one.owner}/{one.repo}", "url": one.url, "requested": one.requested}
                for one in services.workspaces.all()
            ],
        }

    def _stands(self, now: Situation) -> dict[str, Any]:
        """Return the fields on what waits, what is planned and what is wrong."""
        room, zone = self.services.integrations.room, self.services.settings.soul_timezone
        return {
            "waits": asdict(now.waits),
            "leaving": [*now.leaving],
            "documents": [waiting_line(one) for one in now.documents],
            "schedules": [{"number": one.number, "what": one.told(zone), "due": iso(one.due)} for one in now.schedules],
            "nextExpressionAt": iso(self.expression.next_at) if self.expression.next_at else None,
            "troubles": self._troubles(now),
            "modelBudget": self._spent(now.budget),
            "standing": now.standing.fields(),
            "room": {"status": room.status, "peers": list(room.peers())},
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
        """Return the status as one line of prose, for the heartbeat."""
        return status_line(await self.gather(), self.services.settings.soul_timezone)

    async def moment(self) -> str:
        """Return the status in words for the owner's turns: the day so far, and how things stand."""
        services = self.services
        days = DayReader(services.settings, services.home, services.clock)
        day = brief_text(await asyncio.to_thread(days.read))
        now = moment_line(self._stands(await services.situation()), services.settings.soul_timezone)
        return "\n".join(filter(None, (day, now)))

    def _troubles(self, situation: Situation) -> list[dict[str, Any]]:
        """Return what the SOUL waits for: paused or failing services, and tokens; `until` is None if unknown."""
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
        if situation.no_answer:
            until = iso(now + timedelta(seconds=situation.budget.resets_in_s))
            troubles.append({"service": "model", "what": situation.no_answer, "until": until})
        return troubles

    def _spent(self, report: Report) -> dict[str, Any]:
        of = report.tokens
        return {
            "step": report.step,
            "tokens": {"used": of.spent, "unanswered": of.unanswered, "onItsWay": of.on_its_way, "cap": of.cap},
            "usd": {"used": usd.spent, "cap": usd.cap} if (usd := report.usd) else None,
            "resetsAt": iso(self.services.clock.now() + timedelta(seconds=report.resets_in_s)),
        }


def status_line(facts: dict[str, Any], timezone: str = "") -> str:
    """Return the fields of `StatusReport.gather` as one line of prose, for the heartbeat."""
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
        f"tokens of today {tokens['used']:,.0f} of {tokens['cap']:,.0f}"
        f"{cut_off(tokens['unanswered'])}{set_aside(tokens['onItsWay'])};"
        f" {_company(facts['room'])}"
        + "".join(f"; scheduled next: {one['what']}" for one in facts["schedules"][:1])
        + "".join(f"; {_leaving(one, timezone)}" for one in facts["leaving"])
        + "".join(f"; {reason}" for reason in (*troubles_text(facts, timezone), *facts["standing"]["reasons"]))
    )


def _leaving(one: Mapping[str, str], timezone: str) -> str:
    until = f" until {moment(one['at'], timezone)}" if one["at"] else ""
    return f"a {one['act']} waits{until}: {one['why']}"


def _requests(budget: dict[str, Any]) -> str:
    """Return in words how many requests Bluesky still allows, which is unknown before its first answer."""
    if budget["remaining"] is None or budget["limit"] is None:
        return "requests to Bluesky not counted yet"
    return f"{budget['remaining']:,} of {budget['limit']:,} requests to Bluesky left"


def _company(room: dict[str, Any]) -> str:
    if room["status"] not in {"joined", "draining"}:
        return "in no room"
    # NOTE(self): the number, not the names: others choose their names, and this line is in the owner's own prompt.
    return f"in a room with {counted(len(room['peers']), 'other')}" if room["peers"] else "alone in a room"


def _name_people(decisions: list[dict[str, Any]], connection: sqlite3.Connection) -> None:
    """Replace DIDs by handles in the summary and reason of each decision."""
    for one in decisions:
        one["summary"], one["reason"] = named(connection, one["summary"]), named(connection, one["reason"])
