"""What a SOUL and each of its peers did together in public: `.memory/peer_histories.json`.

Of accounts, by DID, and apart from the members of rooms (`room_members.py`): in a room anybody may take any name. Each
act counts once. Its key stands in the entry that it changes and is written in the same step, so that neither a crash
nor a second look counts it again; whoever is forgotten is forgotten with the keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field

from common.clock import Clock
from common.text.untrusted import one_line
from modules.runtime.record_file import FileRecord, Moment, RecordFile
from modules.services.peers.room_members import Stance

HISTORIES_FILE = "peer_histories.json"
LOOKED_BACK = timedelta(days=7)
"""An act that is older is not counted any more."""
KEPT_PEERS, KEPT_KEYS, KEPT_PLACES = 500, 100, 50
_MAX_CHARS = 200
_KEY_CHARS = 16

PeerAct = Literal["built_on", "reviews_given", "reviews_received", "claims_won"]


class PeerHistory(FileRecord):
    """What one peer and we did.

    Attributes:
        did: its account.
        handle: as it was last seen.
        agreements: how often one of us agreed with the other in a thread.
        productive_disagreements: how often one of us contradicted the other and said why.
        built_on: how often we answered what it said.
        reviews_given: our reviews of its pull requests.
        reviews_received: its reviews of ours.
        claims_won: how often it was first to claim a task that we tried to claim.
        shared_work: issues and plans of both, `owner/name#1`, newest last.
        followed: we follow it.
        announced: we told of it.
        last_interaction: when the latest of these acts was done.
        counted: keys of the acts that were counted, each with when it was done.
        counted_until: what was done up to then is not counted any more; None before keys had to go.

    """

    did: str
    handle: str
    agreements: int = 0
    productive_disagreements: int = 0
    built_on: int = 0
    reviews_given: int = 0
    reviews_received: int = 0
    claims_won: int = 0
    shared_work: tuple[str, ...] = ()
    followed: bool = False
    announced: bool = False
    last_interaction: Moment | None = None
    counted: dict[str, Moment] = Field(default_factory=dict)
    counted_until: Moment | None = None

    @property
    def acts(self) -> int:
        """How much there is, to tell who is close."""
        talk = self.agreements + self.productive_disagreements + self.built_on
        work = self.reviews_given + self.reviews_received + self.claims_won + len(self.shared_work)
        return talk + work + self.followed + self.announced


class PeerHistories:
    """The store. `notice` is a line for the owner if the file was not as expected."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self._file = RecordFile(path, "histories", PeerHistory)
        self.notice = self._file.notice

    def get(self, did: str) -> PeerHistory | None:
        """What one account and we did."""
        return self._file.records.get(did)

    def count(self, did: str, handle: str, act: PeerAct, key: str, at: datetime) -> bool:
        """Count an act with the key `key`, done `at`; False if it was counted before."""
        known = self._known(did, handle)
        return self._counted(known, key, at, **{act: getattr(known, act) + 1})

    def take_stance(self, did: str, handle: str, stance: Stance, key: str, at: datetime) -> bool:
        """One of us agreed with the other, or disagreed and said why; else as `count`."""
        known = self._known(did, handle)
        if stance == "agrees":
            return self._counted(known, key, at, agreements=known.agreements + 1)
        return self._counted(known, key, at, productive_disagreements=known.productive_disagreements + 1)

    def share_work(self, did: str, handle: str, place: str) -> None:
        """We both worked on the issue or plan `place`."""
        known = self._known(did, handle)
        if place not in known.shared_work:
            places = (*known.shared_work, one_line(place, _MAX_CHARS))[-KEPT_PLACES:]
            self._keep(known.replace(shared_work=places, last_interaction=self._clock.now()))

    def meet(self, did: str, handle: str, *, followed: bool, announced: bool) -> None:
        """Note whether we follow a peer, and told of it; a peer of which neither holds gets no entry for it."""
        known = self.get(did)
        if known or followed or announced:
            known = self._known(did, handle)
            self._keep(known.replace(followed=followed, announced=known.announced or announced))

    def _known(self, did: str, handle: str) -> PeerHistory:
        known = self.get(did) or PeerHistory(did=did, handle=handle)
        return known.replace(handle=handle) if handle else known

    def _counted(self, known: PeerHistory, key: str, at: datetime, **changes: int) -> bool:
        digest = hashlib.sha256(key.encode()).hexdigest()[:_KEY_CHARS]
        oldest = max(filter(None, (known.counted_until, self._clock.now() - LOOKED_BACK)))
        if digest in known.counted or at <= oldest:
            return False
        young = sorted(((name, done) for name, done in known.counted.items() if done > oldest), key=lambda one: one[1])
        keys = sorted([*young, (digest, at)], key=lambda one: one[1])
        gone, kept = keys[:-KEPT_KEYS], keys[-KEPT_KEYS:]
        last = max(filter(None, (known.last_interaction, at)))
        self._keep(
            known.replace(
                **changes,
                last_interaction=last,
                counted=dict(kept),
                counted_until=gone[-1][1] if gone else known.counted_until,
            )
        )
        return True

    def _keep(self, after: PeerHistory) -> None:
        """Write what changed; of too many peers those go with whom we did least, longest ago."""
        if self._file.records.get(after.did) == after:
            return
        records = {**self._file.records, after.did: after}
        self._file.records = dict(_closest(records.items()))
        self._file.save()


def _closest(entries: Iterable[tuple[str, PeerHistory]]) -> list[tuple[str, PeerHistory]]:
    def worth(entry: tuple[str, PeerHistory]) -> tuple[int, float]:
        last = entry[1].last_interaction
        return entry[1].acts, last.timestamp() if last else 0.0

    listed = list(entries)
    return listed if len(listed) <= KEPT_PEERS else sorted(listed, key=worth)[len(listed) - KEPT_PEERS :]
