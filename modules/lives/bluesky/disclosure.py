"""Says openly what we are: the label `bot` on our own profile, and in the bio how to reach who runs us.

What stands is never cut: the record is read, changed where it must be, and written back only if nobody changed it
meanwhile. Nothing is written where all stands already, so a crash at any point costs at most one more look.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.atproto.client import Atproto
from adapters.atproto.convert import BOT_LABEL
from adapters.atproto.records import PROFILE
from adapters.atproto.types import ServiceErr
from common.clock import Clock, iso
from common.constants import PROFILE_BIO_MAX_BYTES
from common.result import ApiResult, Err, Ok
from common.text.graphemes import grapheme_len
from modules.runtime.database.database import Database
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.rules.counts import note_write
from modules.services.outbox.rules.rules import COST_CREATE, COST_UPDATE

PROFILE_BIO_MAX_GRAPHEMES = 256

CONTACT = "Bot operator: "

_SELF_LABELS = "com.atproto.label.defs#selfLabels"
_MAX_LABELS = 10
_TRIES = 3
_FIRST_PAUSE_S = 600.0
_LONGEST_PAUSE_S = 3600.0


class Disclosure:
    """Keeps the profile honest. `label` off leaves it alone; an empty `contact` leaves the bio alone."""

    def __init__(
        self, *, atproto: Atproto, database: Database, journal: Journal, clock: Clock, label: bool, contact: str
    ) -> None:
        self._atproto = atproto
        self._database = database
        self._journal = journal
        self._clock = clock
        self._label = label
        self._contact = " ".join(contact.split())
        self._settled = False
        self._failing = False
        self._pause_s = _FIRST_PAUSE_S
        self._not_before = clock.monotonic()

    async def ensure_once(self) -> None:
        """`ensure`, until it succeeds once in this life; what failed is tried again after ever longer pauses."""
        now = self._clock.monotonic()
        if self._settled or now < self._not_before:
            return
        self._not_before = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        self._settled = isinstance(await self.ensure(), Ok)

    async def ensure(self) -> ApiResult[str]:
        """Make the profile say it: "off", "stands" or "written". The first failure in a row is told as a warning."""
        if not self._label:
            await self._warn("SOUL_BOT_LABEL is off: the profile does not say that this is a bot, against the customs")
            return Ok("off")
        result = await self._written()
        failed_before, self._failing = self._failing, isinstance(result, Err)
        if isinstance(result, Err):
            if not failed_before:
                await self._warn(f"The profile could not be made to say that this is a bot: {result.error}")
        elif failed_before or result.data == "written":
            summary = "The profile says that this is a bot"
            await self._journal.record(Entry("act", "start", summary, line="done", data={"contact": self._contact}))
        return result

    async def _written(self) -> ApiResult[str]:
        address = f"at://{self._atproto.did}/{PROFILE}/self"
        tried: Err = Err("it kept changing meanwhile", kind="transient")
        for _ in range(_TRIES):
            found = await self._atproto.get_record(address)
            if isinstance(found, Err):
                return found
            stands = found.data.value if found.data else {"createdAt": iso(self._clock.now())}
            record, problems = honest(stands, contact=self._contact)
            if record != stands:
                await self._count((COST_UPDATE if found.data else COST_CREATE).limit)
                written = await self._atproto.put_profile(record, swap=found.data.cid if found.data else None)
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
        await self._database.run(lambda connection: note_write(connection, now, "profile", points))

    async def _warn(self, summary: str) -> None:
        await self._journal.record(Entry("life", "start", summary, line="warn"))


def _deserves_another_look(error: Err) -> bool:
    """Whether it was changed meanwhile, or may have been written all the same."""
    return error.kind == "unknown_outcome" or (isinstance(error, ServiceErr) and error.name == "InvalidSwap")


def honest(profile: Mapping[str, Any], *, contact: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A profile record that says what we are, and why it could not say all of it. What it said before stays."""
    labels, label_problem = _with_label(profile.get("labels"))
    bio, bio_problem = _with_contact(profile.get("description"), contact)
    changed = {**profile, **({"labels": labels} if labels else {}), **({"description": bio} if bio else {})}
    return changed, tuple(problem for problem in (label_problem, bio_problem) if problem)


def _with_label(labels: object) -> tuple[dict[str, Any] | None, str]:
    if labels is None:
        return {"$type": _SELF_LABELS, "values": [{"val": BOT_LABEL}]}, ""
    values = labels.get("values") if isinstance(labels, dict) else None
    if not isinstance(labels, dict) or not isinstance(values, list):
        return None, "The profile's labels are of an unknown kind: the label bot could not be put beside them"
    if any(isinstance(value, dict) and value.get("val") == BOT_LABEL for value in values):
        return labels, ""
    if len(values) >= _MAX_LABELS:
        return labels, f"The profile has {len(values)} labels already: there is no room for the label bot"
    return {**labels, "values": [*values, {"val": BOT_LABEL}]}, ""


def _with_contact(description: object, contact: str) -> tuple[str, str]:
    bio = description if isinstance(description, str) else ""
    if not contact:
        return bio, ""
    lines = bio.split("\n") if bio else []
    ours = [number for number, line in enumerate(lines) if line.startswith(CONTACT)]
    kept = [line for number, line in enumerate(lines) if number not in ours]
    kept.insert(ours[0] if ours else len(kept), CONTACT + contact)
    changed = "\n".join(kept)
    if grapheme_len(changed) > PROFILE_BIO_MAX_GRAPHEMES or len(changed.encode()) > PROFILE_BIO_MAX_BYTES:
        return bio, "There is no room in the bio for OPERATOR_CONTACT; shorten the bio, or the contact"
    return changed, ""
