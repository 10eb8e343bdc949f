"""Opens a ritual: one post a local date, with a view of its own, those invited by name, and one question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from adapters.atproto.client import Atproto
from adapters.atproto.records import POST
from common.clock import from_local
from common.constants import MINUTE_MS, SECOND_MS
from modules.lives.rituals.owner_comments import OwnerComments
from modules.lives.rituals.writing import OpeningRequest, RitualWriter
from modules.services.identity.self_mechanics import DailyRitual
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.rituals.policy import (
    OPENING_KIND,
    RITUAL_PROMPT_RUNS,
    name_of,
    note_of,
    opening_cause,
    parts_are_even,
)
from modules.services.rituals.rituals import Rituals
from modules.services.rituals.types import RitualRun
from modules.services.work.types import Disposition, Handler, WorkItem

MOST_OPENING_TRIES = 2
OPENING_AGAIN_S = 30 * MINUTE_MS / SECOND_MS


@dataclass
class OpeningHandler(Handler):
    """Handles a row for each ritual and local date.

    Attributes:
        rituals: which there are, and what came of them.
        writer: asks the model.
        outbox: takes the post.
        atproto: says who we are.
        owner_comments: reads what the owner said to earlier memos.
        keep_hours: off where days are shortened.

    """

    kind = OPENING_KIND
    most_tries = MOST_OPENING_TRIES

    rituals: Rituals
    writer: RitualWriter
    outbox: Outbox
    atproto: Atproto
    owner_comments: OwnerComments
    keep_hours: bool

    async def handle(self, item: WorkItem) -> Disposition:
        key, day = str(item.payload["ritual"]), date.fromisoformat(item.payload["day"])
        ritual = self.rituals.listed().get(key)
        if ritual is None:
            return Disposition("dropped", "gone", "SELF.md names it no longer")
        if why_not := await self._why_not(ritual, key, day, by_hand=bool(item.payload.get("by_hand"))):
            return why_not
        invitations = await self.rituals.invitations(ritual)
        if invitations.left_out and not invitations.invited:
            who = ", ".join(f"@{handle}" for handle in invitations.left_out)
            reason = f"{who}: neither the owner, nor peers, nor took part before"
            return Disposition("later", "nobody-agreed", reason, OPENING_AGAIN_S)
        run = RitualRun(key, day, ritual.name, "initiator", "", self.atproto.did)
        text = await self.writer.opening(await self._request(ritual, run, invitations.invited))
        if not text:
            return Disposition("undecided", "no-words", "the model found no words that fit", OPENING_AGAIN_S)
        names = [self.rituals.me.agent_name, *map(name_of, invitations.invited)]

        def deals_parts(key_of_record: str) -> bool:
            return parts_are_even(names, f"at://{self.atproto.did}/{POST}/{key_of_record}")

        action = ProposedAction(
            PostBody(text=text),
            once=opening_cause(key, day),
            cause_id=item.cause_id,
            until=from_local(datetime.combine(day + timedelta(days=1), time()), self.rituals.me.timezone),
            key_fits=deals_parts,
        )
        submitted = await self.outbox.submit(action)
        if not submitted.accepted:
            return Disposition("undecided", "refused", submitted.reason, OPENING_AGAIN_S)
        return await self._opened(run, submitted.intent)

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> Disposition:
        """Keep the run of a post that was accepted before a crash."""
        key, day = str(item.payload["ritual"]), date.fromisoformat(item.payload["day"])
        ritual = self.rituals.listed().get(key)
        run = RitualRun(key, day, ritual.name if ritual else key, "initiator", "", self.atproto.did)
        return await self._opened(run, accepted[0])

    async def _opened(self, run: RitualRun, intent: Intent) -> Disposition:
        uri, note = record_uri(self.atproto.did, intent), note_of(intent.body.public_text)
        await self.rituals.runs.add(RitualRun(run.key, run.day, run.name, run.role, uri, run.opener, note=note))
        return Disposition("done", "opened", uri, intent_id=intent.id, held=intent.state == "held")

    async def _why_not(self, ritual: DailyRitual, key: str, day: date, *, by_hand: bool) -> Disposition | None:
        """Return why a ritual is not opened any more on that day; None where it is."""
        schedule, now = ritual.when, self.rituals.now()
        is_open = schedule is not None and (not self.keep_hours or schedule.is_open(now))
        if day != now.date() or not (by_hand or is_open):
            return Disposition("dropped", "day-over", f"its time on {day.isoformat()} is over")
        if await self.rituals.runs.of_day(key, day):
            return Disposition("silent", "runs-already", "somebody else opened it today")
        return None

    async def _request(self, ritual: DailyRitual, run: RitualRun, invited: Sequence[str]) -> OpeningRequest:
        runs = await self.rituals.runs.latest(run.key, RITUAL_PROMPT_RUNS)
        causes = [opening_cause(one.key, one.day) for one in runs if one.role == "initiator"]
        said = [intent.body.public_text for cause in causes for intent in await self.outbox.accepted(cause)]
        history = self.rituals.history(runs, before=run.day)
        return OpeningRequest(
            ritual, run, invited, history, tuple(filter(None, said)), await self.owner_comments.read(runs)
        )
