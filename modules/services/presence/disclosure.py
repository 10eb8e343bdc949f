"""States openly what we are: the label `bot` and an operator's contact in our profile, and a record for programs.

It also declares from whom we take direct messages, unless the owner chose that already. Existing text is never cut:
each record is read, changed where necessary, and written back only if nobody changed it meanwhile. Nothing is written
if all is in place, so a crash at any point costs at most two more looks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adapters.atproto.client import Atproto
from adapters.atproto.records import PROFILE
from adapters.atproto.types import ServiceErr
from common.clock import Clock, iso
from common.result import ApiResult, Err, Ok, answering
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.rules.counts import note
from modules.services.outbox.rules.rules import COST_CREATE, COST_UPDATE
from modules.services.presence.policy import (
    AUTONOMY,
    MESSAGES,
    MessagePolicy,
    Operator,
    autonomous,
    declared,
    honest,
    says_bot,
)

_TRIES = 3
_FIRST_PAUSE_S = 600.0
_LONGEST_PAUSE_S = 3600.0
_CONTACT = "disclosure.contact"
"""The contact that the account states, or may state after a crash."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """A record of ours under the key `self`; `said` returns it as it should be, and why it cannot say all of it.

    `is_dated`: a new one has its time of creation.
    """

    collection: str
    said: Callable[[Mapping[str, Any]], tuple[dict[str, Any], tuple[str, ...]]]
    is_dated: bool = True


class Disclosure:
    """Keeps the account's statements true. `label` off changes nothing; a contact that is no longer set is removed.

    `contact_line` is the line of the bio with the contact, with `{{contact}}` in it.

    Without a `message_policy` nothing is declared about direct messages.
    """

    def __init__(
        self,
        *,
        atproto: Atproto,
        database: Database,
        journal: Journal,
        clock: Clock,
        label: bool,
        operator: Operator,
        contact_line: str,
        message_policy: MessagePolicy | None = None,
    ) -> None:
        self._atproto = atproto
        self._database = database
        self._journal = journal
        self._clock = clock
        self._label = label
        self._operator = operator
        self._contact_line = contact_line
        self._message_policy = message_policy
        self._settled = False
        self._failing = False
        self._pause_s = _FIRST_PAUSE_S
        self._not_before = clock.monotonic()

    async def ensure_once(self) -> None:
        """Call `ensure` until it succeeds once in this life; after a failure the pauses grow."""
        now = self._clock.monotonic()
        if self._settled or now < self._not_before:
            return
        self._not_before = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        self._settled = isinstance(await self.ensure(), Ok)

    async def ensure(self) -> ApiResult[str]:
        """Make the account say it; return "off", "stands" or "written". Of failures in a row the first is a warning."""
        declared_it = await self._declare()
        disclosed = await self._disclose()
        return declared_it if isinstance(declared_it, Err) and isinstance(disclosed, Ok) else disclosed

    async def _declare(self) -> ApiResult[str]:
        """Declare from whom we take direct messages."""
        message_policy = self._message_policy
        if message_policy is None:
            return Ok("off")
        said = _Statement(MESSAGES, lambda stands: (declared(stands, message_policy), ()), is_dated=False)
        result = await self._written(said)
        if result == Ok("written"):
            whom = {"all": "everybody", "following": "those whom it follows"}[message_policy.incoming]
            summary = f"The account declares that it takes direct messages from {whom}"
            await self._journal.record(Entry("act", "start", summary, line="done"))
        return result

    async def _disclose(self) -> ApiResult[str]:
        if not self._label:
            return await self._left_alone()
        result = await self._all_written()
        failed_before, self._failing = self._failing, not result.success
        if isinstance(result, Err):
            if not failed_before:
                await self._warn(f"The profile could not be made to say that this is a bot: {result.error}")
        elif failed_before or result.data == "written":
            summary = "The profile says that this is a bot"
            data = {"contact": self._operator.contact, "level": self._operator.level}
            await self._journal.record(Entry("act", "start", summary, line="done", data=data))
        return result

    @answering
    async def _left_alone(self) -> ApiResult[str]:
        found = (await self._atproto.get_record(self._address(PROFILE))).or_raise()
        says = "still says that this is a bot; remove the label in the app if it should not"
        if found is None or not says_bot(found.value):
            says = "does not say that this is a bot, against the customs"
        await self._warn(f"SOUL_BOT_LABEL is off: the profile {says}")
        return Ok("off")

    @answering
    async def _all_written(self) -> ApiResult[str]:
        outcome, contact = "stands", self._operator.contact
        former = await self._database.run(lambda connection: marks.get(connection, _CONTACT))
        if contact and contact != former:
            await self._database.run(lambda connection: marks.put(connection, {_CONTACT: contact}))
        for statement in self._statements(replace(self._operator, former=former)):
            written = (await self._written(statement)).or_raise()
            outcome = "written" if "written" in {outcome, written} else "stands"
        if former and not contact:
            await self._database.run(lambda connection: marks.remove(connection, _CONTACT))
        return Ok(outcome)

    def _statements(self, operator: Operator) -> Sequence[_Statement]:
        def profile(stands: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
            return honest(stands, contact=operator.contact, line=self._contact_line, former=operator.former)

        return _Statement(PROFILE, profile), _Statement(AUTONOMY, lambda stands: (autonomous(stands, operator), ()))

    def _address(self, collection: str) -> str:
        return f"at://{self._atproto.did}/{collection}/self"

    @answering
    async def _written(self, statement: _Statement) -> ApiResult[str]:
        address = self._address(statement.collection)
        tried: Err = Err("it kept changing meanwhile", kind="transient")
        for _ in range(_TRIES):
            found = (await self._atproto.get_record(address)).or_raise()
            new = {"createdAt": iso(self._clock.now())} if statement.is_dated else {}
            stands = found.value if found else new
            record, problems = statement.said(stands)
            if record != stands:
                await self._count((COST_UPDATE if found else COST_CREATE).limit)
                swap = found.cid if found else None
                written = await self._atproto.put_own_record(statement.collection, record, swap=swap)
                if isinstance(written, Err):
                    if not _deserves_another_look(written):
                        return written
                    tried = written
                    continue
            for problem in problems:
                await self._warn(problem)
            return Ok("stands" if record == stands else "written")
        return tried

    async def _count(self, points: float) -> None:
        now = self._clock.now()
        await self._database.run(lambda connection: note(connection, now, "profile", points=points))

    async def _warn(self, summary: str) -> None:
        await self._journal.record(Entry("life", "start", summary, line="warn"))


def _deserves_another_look(error: Err) -> bool:
    """Return whether the record was changed meanwhile, or may have been written all the same."""
    return error.kind == "unknown_outcome" or (isinstance(error, ServiceErr) and error.name == "InvalidSwap")
