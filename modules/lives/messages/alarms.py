"""Direct messages to the owner that are not replies: alarms, and the end of acts that they ordered in a message.

Each order is a row of work, so its end is told once, across restarts.

The same way, the owner is told that a plan that they asked for in a direct message is done. They are also told of a
reflection that they ordered and that no command waited for, of a reminder, and of the results of the SOUL's own turns:
what was found about a question of theirs, and what was done on a schedule or for HEARTBEAT.md.

Each alarm is a row of work, so it is sent once, across restarts: by direct message, and to the address the owner set.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from adapters.atproto.messages import MESSAGE_MAX_GRAPHEMES
from adapters.web.client import WebClient
from common.clock import Clock, doubled, local, parse_iso
from common.errors import SoulError, StorageError, Transient
from common.provenance import Provenance
from common.redact import Redactor
from common.result import Err
from common.text.graphemes import leading_part
from common.text.untrusted import one_line
from modules.lives.messages.policy import NO_BUDGET, quiet_until
from modules.lives.messages.state import MessageState
from modules.runtime.events import Event, Publish
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.commitments.acts import ABANDONED, COMMITMENTS
from modules.services.commitments.naming import QueuedCommitment, title_of
from modules.services.commitments.texts import part_line
from modules.services.day.situation import Situation
from modules.services.identity.entries import change_of
from modules.services.inbox.messages import ReceivedMessage
from modules.services.outbox.bodies import DirectMessageBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction, Submitted
from modules.services.owner import NOTICE, UNTOLD
from modules.services.plans.events import PLAN_DONE, PLAN_ENDS
from modules.services.work.table import WorkTable
from modules.services.work.types import HELD, Disposition, Handler, NewWork, Perceiver, WorkItem

KIND = "order"
_UNDER_WAY = frozenset({"held", "pending", "sending"})
_MOST_LINES = 10
_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class OwnerNotices:
    """Sends direct messages of the program to the owner, in the conversation with them."""

    state: MessageState
    outbox: Outbox

    async def send(
        self, text: str, cause_id: str, *, drafts: Sequence[str] = (), forgotten: Sequence[str] = ()
    ) -> Submitted | None:
        """Propose a message with these fields of its body; return None if no conversation with the owner is known."""
        talk = await self.state.talk_with(self.state.me.owner_did)
        if talk is None:
            return None
        body = DirectMessageBody(
            conversation_id=talk.id,
            to=self.state.me.owner_did,
            text=leading_part(text, MESSAGE_MAX_GRAPHEMES),
            after_rev=await self.state.newest_rev(talk.id),
            drafts=tuple(drafts),
            forgotten=tuple(forgotten),
            is_notice=True,
        )
        return await self.outbox.submit(ProposedAction(body, cause_id=cause_id, urgent=True))


@dataclass(frozen=True, slots=True)
class Orders:
    """Stores orders, so that the owner is told how they ended."""

    work: WorkTable
    outbox: Outbox

    async def keep(self, message: ReceivedMessage, cause: str) -> None:
        """Store the order in a message if acts with its `cause` were queued.

        An act that was sent meanwhile counts too: the answer was written before that.
        """
        acts = [one.id for one in await self.outbox.accepted(cause) if one.kind != "direct_message"]
        if acts:
            await self.work.add(NewWork(KIND, message.name, {"acts": acts[::-1]}))


@dataclass(kw_only=True)
class OrderHandler(Handler):
    """Sends one message for each order, once all its acts were sent or failed, and outside of quiet hours."""

    kind = KIND
    is_public = False
    pause_s = _MINUTE_S
    tells = True

    notices: OwnerNotices
    outbox: Outbox
    clock: Clock
    timezone: str
    quiet_hours: tuple[int, int] | None

    async def handle(self, item: WorkItem) -> Disposition:
        found = [await self.outbox.get(one) for one in item.payload["acts"]]
        acts: list[Intent] = [one for one in found if one is not None]
        if states := _UNDER_WAY & {one.state for one in acts}:
            code = HELD if HELD in states else "under-way"
            return Disposition("later", code, "acts of the order have not left yet")
        if quiet_until(self.clock.now(), self.quiet_hours, self.timezone):
            return Disposition("later", "quiet", "it is told after the quiet hours")
        told = await self.outbox.ends([one for one in acts if not one.is_taken_back])
        if not told:
            return Disposition("silent", "rejected", "it was taken back or replaced, or its traces were deleted")
        more = [f"and {len(told) - _MOST_LINES} more"] if len(told) > _MOST_LINES else []
        submitted = await self.notices.send("\n".join((*told[:_MOST_LINES], *more)), item.cause_id)
        return Disposition("told", "ended", intent_id=submitted.intent.id if submitted else None)


AlarmKind = Literal["stopped", "budget", "draft", "document", "commitment", "plan", "reflection", "own"]

LOST = "lost"
"""The `act` of the journal entry, made at the next start, about a run that ended unexpectedly."""
_BUDGET_PERCENT = 85
_LATELY = timedelta(days=1)
"""What happened longer ago, while the SOUL did not run, is no longer an alarm."""
_LINE_CHARS = 250
_UNTOLD = "direct messages are off, or no conversation with you is known"
_DECIDED = "the owner decided before they were told"
_DEADLINE_S = 10.0
_POST_AGAIN_S, _LONGEST_PAUSE_S, _MOST_POSTS = 300.0, 14_400.0, 10
"""An address that fails is tried again after 5 minutes, 10, 20 … up to 4 hours: for 17 hours in all."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm, sent once for its name. `text` is one line that tells the owner to look, without private content.

    Only the direct message and the next conversation contain the SOUL's `words`; `provenance` and `dids` are as in
    `TellOwner`.
    """

    kind: AlarmKind
    name: str
    text: str
    words: str = ""
    provenance: Provenance = Provenance.STRANGER
    dids: tuple[str, ...] = ()

    def work(self, not_before: datetime | None = None, *, is_posted: bool = False) -> NewWork:
        """Return the alarm's row of work; with `is_posted`, only the direct message is left to send."""
        payload = {**asdict(self), "posted": is_posted}
        return NewWork(NOTICE, f"{self.kind}/{self.name}", payload, not_before=not_before)


def stopped_alarm(name: str, why: str, at: datetime, timezone: str) -> Alarm:
    """Return the alarm for a stop: one a day for the same reason, however often something restarts the SOUL."""
    return _end_told(f"{name} stopped: {why}", at, timezone)


def _end_told(text: str, at: datetime, timezone: str) -> Alarm:
    line = one_line(text, _LINE_CHARS)
    return Alarm("stopped", f"{local(at, timezone).date()}/{line}", line)


@dataclass(frozen=True, slots=True)
class AlarmKept(Event):
    """Published when a turn of the SOUL's own, or a reminder, has a result for the owner."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """The address that the owner set for alarms; it takes a line of plain text, as ntfy does. `url` is "" for none."""

    url: str
    web: WebClient
    redactor: Redactor

    async def post(self, text: str) -> str:
        """Send a line; return the error, or "" if it was sent or there is no address."""
        if not self.url:
            return ""
        sent = await self.web.post(self.url, self.redactor.text(text), deadline_s=_DEADLINE_S)
        return sent.error if isinstance(sent, Err) else ""


@dataclass(kw_only=True)
class AlarmHandler(Handler, Perceiver):
    """Adds a row for each new alarm, and tells the owner about it.

    In quiet hours, an alarm waits for their end, unless it is for a stop or told `at_once`. Drafts are sent only to the
    address, because separate direct messages list them.

    Attributes:
        commitments: returns all stored commitments.
        reflections: returns key and words of each reflection that the owner ordered and was not told about.
        quiet_hours: the local hours at which they begin and end; None for none.
        sends: whether the owner lets the SOUL send direct messages.

    """

    kind = NOTICE
    most_tries = _MOST_POSTS
    is_public = False

    name: str
    notices: OwnerNotices
    sends: bool
    work: WorkTable
    journal: Journal
    outbox: Outbox
    situation: Callable[[], Awaitable[Situation]]
    commitments: Callable[[], Sequence[QueuedCommitment]]
    reflections: Callable[[], Awaitable[Sequence[tuple[str, str]]]]
    webhook: Webhook
    publish: Publish
    clock: Clock
    timezone: str
    quiet_hours: tuple[int, int] | None

    def needs_attention(self, item: WorkItem) -> bool:
        return False

    async def perceive(self) -> None:
        now = self.clock.now()
        quiet = quiet_until(now, self.quiet_hours, self.timezone)
        later = (*self._waiting(await self.situation()), *await self._given_up(now), *await self._plans(now))
        later += tuple(
            Alarm("reflection", key, f"{self.name} reflected, as you ordered", words)
            for key, words in await self.reflections()
        )
        await self.work.add(*(one.work() for one in await self._ends(now)), *(one.work(quiet) for one in later))

    async def tell(
        self, name: str, text: str, words: str, provenance: Provenance, *, at_once: bool, dids: Sequence[str] = ()
    ) -> None:
        """Store the result of a turn of the SOUL's own, to be told once for its name; see `TellOwner`."""
        quiet = None if at_once else quiet_until(self.clock.now(), self.quiet_hours, self.timezone)
        await self.work.add(Alarm("own", name, text, words, provenance, tuple(dids)).work(quiet))
        self.publish(AlarmKept())

    async def tell_end(self, error: SoulError) -> None:
        """Post the error that ends the process before it ends; the direct message follows at the next start."""
        alarm, is_known = self._stopped(self.clock.now(), str(error)), False
        work = alarm.work()
        with suppress(StorageError, Transient):
            is_known = await self.work.get(NOTICE, work.key) is not None
        if not is_known and not await self.webhook.post(alarm.text):
            with suppress(StorageError, Transient):
                await self.work.add(alarm.work(is_posted=True))

    async def _ends(self, now: datetime) -> list[Alarm]:
        acts = {"ended": self._stopped, LOST: self._lost}
        return [
            alarm_of(parse_iso(one.at), one.entry.summary)
            for act, alarm_of in acts.items()
            for one in await self.journal.with_act("stop", act, now - _LATELY, now)
        ]

    def _stopped(self, at: datetime, why: str) -> Alarm:
        return stopped_alarm(self.name, why, at, self.timezone)

    def _lost(self, at: datetime, told: str) -> Alarm:
        return _end_told(f"{self.name}: {told}", at, self.timezone)

    def _waiting(self, now: Situation) -> Iterator[Alarm]:
        """Yield the alarms for a budget that is nearly used up, for each draft, and for each file that waits."""
        if now.no_answer:
            yield Alarm("budget", f"{NO_BUDGET}/{now.budget.day}", f"{self.name}: {now.no_answer}")
        elif (used := now.budget.fraction) * 100 >= _BUDGET_PERCENT:
            text = f"{self.name}: {used:.0%} of the budget of {now.budget.day} is used"
            yield Alarm("budget", now.budget.day, text)
        for draft in now.drafts:
            yield Alarm("draft", draft.intent.id, f"{self.name}: a draft waits for your approval")
        for document, at in now.documents.items():
            text = f"{self.name}: {change_of(document)} waits for your approval: /drafts {document} shows it"
            yield Alarm("document", f"{document} {at}", text)

    async def _plans(self, now: datetime) -> list[Alarm]:
        done = [one.entry.data for one in await self.journal.with_act(PLAN_ENDS, PLAN_DONE, now - _LATELY, now)]
        return [
            Alarm("plan", one["url"], f"{self.name}: all tasks of the plan are done: {one['url']}")
            for one in done
            if one["place"] == "message"
        ]

    async def _given_up(self, now: datetime) -> list[Alarm]:
        """Return the alarms for commitments lately given up, however old they are, but not for withdrawn ones."""
        told = await self.journal.with_act(COMMITMENTS, ABANDONED, now - _LATELY, now)
        given_up = {one.entry.data["promise"] for one in told}
        begun = f"{self.name} gave up a commitment: "
        return [
            Alarm("commitment", one.id, "; ".join(filter(None, (f"{begun}{title}", part_line(one.result)))))
            for one in self.commitments()
            if one.id in given_up
            for title in [one_line(title_of(one), _LINE_CHARS)]
        ]

    async def handle(self, item: WorkItem) -> Disposition:
        if item.payload["kind"] == "draft":
            draft = await self.outbox.get(item.payload["name"])
            if draft is None or draft.state != "held":
                return Disposition("silent", "decided", _DECIDED)
        elif item.payload["kind"] == "document" and not await self._still_waits(item.payload["name"]):
            return Disposition("silent", "decided", _DECIDED)
        elif not await self._is_told(item):
            text = "\n".join(filter(None, (item.payload["text"], item.payload.get("words"))))
            is_sent = self.sends and await self.notices.send(text, item.cause_id) is not None
            if item.payload.get("words") and not is_sent:
                return await self._shown(item)
        return await self._post(item)

    async def _is_told(self, item: WorkItem) -> bool:
        """Return whether a notice told the owner of that budget already."""
        return item.payload["kind"] == "budget" and bool(await self.outbox.by_cause(item.payload["name"]))

    async def _shown(self, item: WorkItem) -> Disposition:
        """Show in the terminal an alarm that no direct message can tell. The next talk tells it too."""
        if not item.attempts:
            is_own = item.payload.get("provenance", Provenance.STRANGER) >= Provenance.SELF
            reason = item.payload["words"] if is_own else ""
            await self.journal.record(Entry("life", NOTICE, item.payload["text"], line="warn", reason=reason))
        posted = await self._post(item)
        return posted if posted.act == "undecided" else replace(posted, act="silent", code=UNTOLD, reason=_UNTOLD)

    async def _still_waits(self, name: str) -> bool:
        return name in {f"{document} {at}" for document, at in (await self.situation()).documents.items()}

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> Disposition | None:
        """Post the alarm, whose direct message was accepted before."""
        return await self._post(item)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return the journal line about a disposition."""
        return f"Alarm: {item.payload['text']}"

    async def _post(self, item: WorkItem) -> Disposition:
        problem = "" if item.payload["posted"] else await self.webhook.post(item.payload["text"])
        if problem:
            pause_s = doubled(_POST_AGAIN_S, item.attempts, _LONGEST_PAUSE_S)
            return Disposition("undecided", "unreachable", f"ALARM_URL: {problem}", pause_s)
        return Disposition("told", item.payload["kind"])
