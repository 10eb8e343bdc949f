"""Requests to forget a person, each kept until all is carried out; later their earlier acts are not read again.

A kill at any moment therefore leaves the request, and the next start continues with it. A request holds nothing but the
account; what belongs to it is found when it is carried out. The file is deleted last.

An answer needs a post, a conversation and an act for a while, so a request is stored that deletes these a day later.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from adapters.atproto.types import Notification
from common.clock import Clock, iso, parse_iso
from common.constants import STATE_MAX_BYTES
from common.files import read_bounded, set_aside, write_atomic
from common.text.untrusted import one_line
from modules.runtime.database.database import Database
from modules.runtime.sleep_note import request_wake
from modules.services.rights import tombstones

FORGET_AFTER = timedelta(minutes=5)
"""The time that the answer has to leave once there is one."""
FORGET_UNANSWERED_AFTER = timedelta(minutes=35)
"""The time that the answer may take before it is deleted too. Everything is deleted within the hour in any case."""
FORGET_EVERY = timedelta(minutes=15)
"""Requests are carried out only at multiples of this interval, so that many requests end few lives."""
FORGET_AGAIN_AFTER = timedelta(hours=24)
"""What a person says after they were forgotten is deleted after this time, however often they ask."""

_REASON_CHARS = 100


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """One request: the DID to forget, and the earliest time to carry it out."""

    did: str
    not_before: datetime

    @property
    def name(self) -> str:
        """The name of its file, which does not identify the person."""
        return f"{hashlib.sha256(self.did.encode()).hexdigest()[:16]}.json"


class ForgetRequests:
    """The requests of one home, in the folder `memory`."""

    def __init__(self, memory: Path) -> None:
        self._folder = memory / "forget"

    def give(self, request: ForgetRequest) -> None:
        """Store a request and wake a sleeping SOUL; the earlier of two requests for the same person holds."""
        moments = [one.not_before for one in (request, *self.all()) if one.name == request.name]
        text = json.dumps({"did": request.did, "not_before": iso(min(moments))}, indent=2)
        write_atomic(self._folder / request.name, f"{text}\n")
        request_wake(self._folder.parent)

    def all(self) -> list[ForgetRequest]:
        """Return the readable requests, in the order of their names."""
        found = (_read(path) for path in sorted(self._folder.glob("*.json")))
        return [one for one in found if isinstance(one, ForgetRequest)]

    def set_unreadable_aside(self) -> list[str]:
        """Rename the files that hold no readable request, and return a line for the owner about each."""
        told: list[str] = []
        for path in sorted(self._folder.glob("*.json")):
            why = _read(path)
            if isinstance(why, str):
                what = f"{path.name} is no request to forget somebody that can be read ({why}); {set_aside(path)}"
                told.append(f"{what}. Whom it was about is forgotten with `soul forget WHO`.")
        return told

    def due(self, now: datetime) -> list[ForgetRequest]:
        """Return the requests that are due."""
        return [request for request in self.all() if request.not_before <= now]

    def done(self, request: ForgetRequest) -> None:
        """Delete half-written files and files set aside of the same person, and then the request."""
        for torn in (*self._folder.glob(".*"), *self._folder.glob(f"{request.name}.*")):
            torn.unlink()
        (self._folder / request.name).unlink(missing_ok=True)


def forget_at(clock: Clock, last: datetime | None = None, *, is_answered: bool = True) -> datetime:
    """Return when a person who asks now is forgotten: after the answer had time to leave, together with others.

    A person forgotten before (`last`) is forgotten again a day after that at the earliest, as each time ends a life.
    """
    now, every = clock.now(), clock.real(FORGET_EVERY.total_seconds())
    earliest = (now + clock.real(FORGET_AFTER if is_answered else FORGET_UNANSWERED_AFTER)).timestamp()
    if last is not None:
        earliest = max(earliest, last.timestamp() + FORGET_AGAIN_AFTER.total_seconds())
    return datetime.fromtimestamp((earliest // every + 1) * every, now.tzinfo)


def _read(path: Path) -> ForgetRequest | str:
    """Return a request, or why it cannot be read."""
    try:
        data = json.loads(read_bounded(path, STATE_MAX_BYTES).decode())
        did = data["did"]
        not_before = parse_iso(data["not_before"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return one_line(f"{type(error).__name__}: {error}", _REASON_CHARS)
    return ForgetRequest(did, not_before) if isinstance(did, str) and did.startswith("did:") else "it names no account"


_WORDS = frozenset({"mention", "reply", "quote"})


class ForgottenPeople:
    """Filters new notifications by whether their authors are forgotten."""

    def __init__(self, database: Database, requests: ForgetRequests, clock: Clock) -> None:
        self._database = database
        self._requests = requests
        self._clock = clock

    async def sift(self, fresh: Sequence[Notification]) -> tuple[list[Notification], frozenset[str]]:
        """Return the notifications to read, and the DIDs of forgotten authors in them, who must not be remembered."""
        dids = frozenset(item.author.did for item in fresh)
        since = await self._database.run(partial(tombstones.forgotten, dids=dids)) if dids else {}
        kept = [
            item
            for item in fresh
            if (at := since.get(item.author.did)) is None or (item.kind in _WORDS and parse_iso(item.indexed_at) > at)
        ]
        authors = frozenset(item.author.did for item in kept if item.author.did in since)
        for did in authors:
            self.sweep(did)
        return kept, authors

    async def is_forgotten(self, did: str) -> bool:
        """Return whether a person is forgotten."""
        return bool(await self._database.run(partial(tombstones.forgotten, dids=[did])))

    def sweep(self, did: str) -> None:
        """Store a request that deletes, a day later, what a forgotten person says to us now."""
        self._requests.give(ForgetRequest(did, forget_at(self._clock, last=self._clock.now())))
