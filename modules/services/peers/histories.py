"""Counts what peers and we did together in public, on Bluesky and on GitHub, and describes it for a prompt.

The counts are kept in `.memory/peer_histories.json`. They are made from the inbox, the outbox, the registry and the
journal, so that an act counts even if the process ends after it, and only once it was done. GitHub is asked who wrote
what we commented on or reviewed, and who wrote on our issues and pull requests: a few requests at a time, and never
about a private repository. Accounts that are muted or forgotten are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from adapters.atproto.types import Actor
from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.clock import Clock, iso, parse_iso
from common.constants import MINUTE_MS
from common.provenance import Provenance
from common.result import GONE, ApiResult, Err, Ok, answering
from common.text.untrusted import one_line
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.record_file import FileRecord, Moment, RecordFile
from modules.runtime.scheduler.policy import Loop, Outcome
from modules.services.inbox import received
from modules.services.outbox.bodies import IntentKind, PostBody, ReplyBody
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody, PullRequestBody, ReviewBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.senders.github_changes import repo_of
from modules.services.outbox.types import Intent
from modules.services.peers.policy import Peer
from modules.services.peers.registry import PeerRegistry
from modules.services.peers.room_identity import Stance, stance_of
from modules.services.rights.preferences import Preferences
from modules.services.skills.skills import Skills, interpolate

MOST_TOLD = 5
"""The most peers that one prompt describes."""
_SKILL = "peer-awareness"
_SHOWN_PLACES = 3


@dataclass(frozen=True, slots=True)
class HistoriesTold:
    """Describes `histories` for a prompt; a peer is named by its DID, or by its GitHub name in `registry`."""

    histories: PeerHistories
    registry: PeerRegistry
    preferences: Preferences
    skills: Skills

    async def text(self, peers: Collection[str], *, least: Provenance) -> str:
        """Return a line for each of `peers` with a history; "" if `least` does not allow words of peers."""
        if least > Provenance.PEER or not peers:
            return ""
        dids = list(dict.fromkeys(filter(None, map(self._did_of, peers))))
        hidden = await self.preferences.hidden(dids)
        found = [one for did in dids if did not in hidden and (one := self.histories.get(did)) is not None and one.acts]
        return "\n".join(map(self._line, found[:MOST_TOLD]))

    def _did_of(self, name: str) -> str:
        if name.startswith("did:"):
            return name
        peer = self.registry.get(name)
        return (peer.bluesky_did or "") if peer is not None and peer.stands and peer.github_id else ""

    def _line(self, one: PeerHistory) -> str:
        words = self.skills.subsections(_SKILL, "Relationship")
        values: dict[str, object] = {
            "Built On": one.built_on,
            "Agreements": one.agreements,
            "Disagreements": one.productive_disagreements,
            "Shared Work": ", ".join(one.shared_work[-_SHOWN_PLACES:]),
            "Reviews Given": one.reviews_given,
            "Reviews Received": one.reviews_received,
            "Claims Won": one.claims_won,
            "Followed": "yes" if one.followed else "",
            "Announced": "yes" if one.announced else "",
        }
        told = "; ".join(interpolate(words[part], {"value": value}) for part, value in values.items() if value)
        return interpolate(words["Peer"], {"handle": one.handle, "told": told})


LOOP = "peer-histories"
MOST_REQUESTED = 6
"""The most acts and works of ours on GitHub that one run asks about."""
_INTERVAL_MS = 10 * MINUTE_MS
_OVERLAP = timedelta(hours=1)
_WORK_LOOKED_AT_EVERY = timedelta(hours=6)
_PLACE = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}#\d{1,9}")
_OURS: tuple[IntentKind, ...] = ("review", "issue_comment")
_WORKS: tuple[IntentKind, ...] = ("issue", "pull_request")


@dataclass(kw_only=True)
class PeerHistoriesLoop(Loop):
    """Counts into `histories`."""

    name = LOOP
    at_start = True

    histories: PeerHistories
    registry: PeerRegistry
    etiquette: Etiquette
    preferences: Preferences
    outbox: Outbox
    database: Database
    github: GitHub
    journal: Journal
    clock: Clock
    own_did: Callable[[], str]
    _since: datetime | None = field(default=None, init=False)
    _asked: dict[str, datetime] = field(default_factory=dict, init=False)

    @property
    def interval_ms(self) -> float:
        return self.clock.real(_INTERVAL_MS)

    async def run(self) -> Outcome:
        now = self.clock.now()
        present = await self._present()
        for peer in present:
            self._meet(peer)
        counted = await self._replies(now) + await self._answers(now)
        counted += await self._claims({peer.github_username.lower(): peer for peer in present}, now)
        by_id = {peer.github_id: peer for peer in present if peer.github_id}
        problem = await self._on_github(by_id, now) if self.github.configured else None
        reason = f"; GitHub: {problem.error}" if problem else ""
        return Outcome(ran=counted > 0, reason=f"{counted} acts of peers and ours counted{reason}")

    async def _present(self) -> list[Peer]:
        linked = self.registry.get_linked_peers()
        hidden = await self.preferences.hidden({peer.bluesky_did or "" for peer in linked})
        return [peer for peer in linked if peer.bluesky_did not in hidden]

    def _meet(self, peer: Peer) -> None:
        """Store what the registry knows: follow, announcement, and the plans that both are assigned to."""
        did, handle = peer.bluesky_did or "", peer.bluesky_handle or ""
        self.histories.meet(did, handle, followed=peer.followed_on_bluesky, announced=peer.announced_on_bluesky)
        for context in peer.contexts:
            if _PLACE.fullmatch(context):
                self.histories.share_work(did, handle, context)

    async def _replies(self, now: datetime) -> int:
        """Count our replies to posts by peers."""
        counted = 0
        for intent, body in _done(await self.outbox.since(["reply"], now - LOOKED_BACK)):
            if not isinstance(body, ReplyBody) or body.about_rights:
                continue
            said = await self.database.run(partial(received.get, uri=body.parent.uri))
            if said is None or not await self._is_peer(said):
                continue
            at, did, handle = parse_iso(intent.created_at), said.author_did, said.handle
            counted += self.histories.count(did, handle, "built_on", f"reply:{intent.id}", at)
            if stance := stance_of(body.text):
                counted += self.histories.take_stance(did, handle, stance, f"stance:{intent.id}", at)
        return counted

    async def _answers(self, now: datetime) -> int:
        """Count the stances in peers' replies to posts of ours."""
        counted, own = 0, f"at://{self.own_did()}/"
        since = max(now - LOOKED_BACK, self._since - _OVERLAP) if self._since else now - LOOKED_BACK
        for said in await self.database.run(partial(received.taken_in_since, moment=iso(since))):
            if not said.parent_uri.startswith(own) or not await self._is_peer(said):
                continue
            made = await self.outbox.made(said.parent_uri)
            ours = made.body.text if made and isinstance(made.body, PostBody | ReplyBody) else ""
            if ours and (stance := stance_of(said.text)):
                key, at = f"answer:{said.uri}", parse_iso(said.indexed_at)
                counted += self.histories.take_stance(said.author_did, said.handle, stance, key, at)
        self._since = now
        return counted

    async def _is_peer(self, said: received.ReceivedPost) -> bool:
        """Return whether a peer wrote it; False if its row no longer names its author."""
        is_peer = bool(said.handle) and self.etiquette.is_peer(Actor(said.author_did, said.handle))
        return is_peer and not await self.preferences.hidden({said.author_did})

    async def _claims(self, peers: Mapping[str, Peer], now: datetime) -> int:
        """Count the tasks that peers claimed before us."""
        counted = 0
        for stored in await self.journal.with_act("claim", "claim-lost", now - LOOKED_BACK, now):
            data = stored.entry.data
            if peer := peers.get(str(data.get("holder", "")).lower()):
                key = f"claim:{data.get('about', '')}"
                counted += self._count(peer, "claims_won", key, parse_iso(stored.at))
        return counted

    def _count(
        self, peer: Peer, act: Literal["reviews_given", "reviews_received", "claims_won"], key: str, at: datetime
    ) -> bool:
        return self.histories.count(peer.bluesky_did or "", peer.bluesky_handle or "", act, key, at)

    @answering
    async def _on_github(self, peers: Mapping[int, Peer], now: datetime) -> Err | None:
        """Ask GitHub about some of our acts and works; return the error, if any."""
        if not peers or not self.github.enough_for_loops:
            return None
        self._asked = {key: at for key, at in self._asked.items() if now - at < LOOKED_BACK}
        due = [one for one in await self._acts(now) if self._is_due(one)][:MOST_REQUESTED]
        for intent in due:
            (await self._look_at(intent, peers)).or_else(None, *GONE)
            self._asked[intent.id] = now
        return None

    async def _acts(self, now: datetime) -> list[Intent]:
        """Return our acts and works on GitHub, those asked about longest ago first."""
        found = [intent for intent, _ in _done(await self.outbox.since([*_OURS, *_WORKS], now - LOOKED_BACK))]
        return sorted(
            found, key=lambda one: (iso(self._asked[one.id]) if one.id in self._asked else "", one.created_at)
        )

    def _is_due(self, intent: Intent) -> bool:
        """Return whether to ask about an intent: once per process about acts, repeatedly about works."""
        asked = self._asked.get(intent.id)
        return asked is None or (intent.kind in _WORKS and self.clock.since(asked) >= _WORK_LOOKED_AT_EVERY)

    @answering
    async def _look_at(self, intent: Intent, peers: Mapping[int, Peer]) -> ApiResult[None]:
        body = intent.body
        if not isinstance(body, IssueBody | PullRequestBody | IssueCommentBody | ReviewBody):
            return Ok(None)
        repo = repo_of(body)
        if (await self.github.get_repository(repo)).or_raise().private:
            return Ok(None)
        if isinstance(body, IssueCommentBody | ReviewBody):
            await self._look_at_act(intent, repo, body.number, peers)
        elif isinstance(body, PullRequestBody):
            await self._look_at_reviews(repo, intent.issue_number, peers)
        else:
            await self._look_at_comments(repo, intent.issue_number, peers)
        return Ok(None)

    async def _look_at_act(self, intent: Intent, repo: Repo, number: int, peers: Mapping[int, Peer]) -> None:
        """Look up the author of what we commented on or reviewed, and count it if that is a peer."""
        issue = (await self.github.get_issue(repo, number)).or_raise()
        if peer := peers.get(issue.author_id):
            if intent.kind == "review":
                self._count(peer, "reviews_given", f"review:{intent.id}", parse_iso(intent.created_at))
            elif not issue.is_pull_request:
                self._share(peer, repo, number)

    async def _look_at_reviews(self, repo: Repo, number: int, peers: Mapping[int, Peer]) -> None:
        for review in (await self.github.pulls.reviews(repo, number)).or_raise():
            if review.submitted_at and (peer := peers.get(review.author_id)):
                key = f"received:{repo.full_name.lower()}:{review.id}"
                self._count(peer, "reviews_received", key, parse_iso(review.submitted_at))

    async def _look_at_comments(self, repo: Repo, number: int, peers: Mapping[int, Peer]) -> None:
        comments = (await self.github.list_comments(repo, number)).or_raise()
        for author in {one.author_id for one in comments} & peers.keys():
            self._share(peers[author], repo, number)

    def _share(self, peer: Peer, repo: Repo, number: int) -> None:
        self.histories.share_work(peer.bluesky_did or "", peer.bluesky_handle or "", f"{repo.full_name}#{number}")


def _done(intents: list[Intent]) -> Iterator[tuple[Intent, object]]:
    """Yield the intents that are done, except upkeep of workspaces; oldest first, each with its body."""
    for intent in reversed(intents):
        is_upkeep = intent.kind == "issue_comment" and intent.target.startswith("workspace:")
        if intent.state == "done" and not is_upkeep:
            yield intent, intent.body


HISTORIES_FILE = "peer_histories.json"
LOOKED_BACK = timedelta(days=7)
"""An act older than this is not counted any more."""
KEPT_PEERS, KEPT_KEYS, KEPT_PLACES = 500, 100, 50
_MAX_CHARS = 200
_KEY_CHARS = 16
PeerAct = Literal["built_on", "reviews_given", "reviews_received", "claims_won"]


class PeerHistory(FileRecord):
    """The history of one peer and us.

    Attributes:
        did: its account.
        handle: its handle when it was last seen.
        agreements: how often one of us agreed with the other in a thread.
        productive_disagreements: how often one of us contradicted the other and said why.
        built_on: how often we answered its posts.
        reviews_given: our reviews of its pull requests.
        reviews_received: its reviews of our pull requests.
        claims_won: how often it was first to claim a task that we tried to claim.
        shared_work: issues and plans of both, `owner/name#1`, newest last.
        followed: we follow it.
        announced: we announced it.
        last_interaction: when the latest of these acts was done.
        counted: keys of the counted acts, each with when it was done.
        counted_until: acts done up to then are no longer counted; None if no key was dropped yet.

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
        """The number of all acts, which tells how close the peer is."""
        talk = self.agreements + self.productive_disagreements + self.built_on
        work = self.reviews_given + self.reviews_received + self.claims_won + len(self.shared_work)
        return talk + work + self.followed + self.announced


class PeerHistories:
    """The store of histories. `notice` is a line for the owner if the file was not as expected."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self._file = RecordFile(path, "histories", PeerHistory)
        self.notice = self._file.notice

    def get(self, did: str) -> PeerHistory | None:
        """Return the history with one account, or None."""
        return self._file.records.get(did)

    def count(self, did: str, handle: str, act: PeerAct, key: str, at: datetime) -> bool:
        """Count an act with the key `key`, done `at`; return False if it was counted before or is too old."""
        known = self._known(did, handle)
        return self._counted(known, key, at, **{act: getattr(known, act) + 1})

    def take_stance(self, did: str, handle: str, stance: Stance, key: str, at: datetime) -> bool:
        """Count that one of us agreed, or disagreed and said why; otherwise as `count`."""
        known = self._known(did, handle)
        if stance == "agrees":
            return self._counted(known, key, at, agreements=known.agreements + 1)
        return self._counted(known, key, at, productive_disagreements=known.productive_disagreements + 1)

    def share_work(self, did: str, handle: str, place: str) -> None:
        """Record that we both worked on the issue or plan `place`."""
        known = self._known(did, handle)
        if place not in known.shared_work:
            places = (*known.shared_work, one_line(place, _MAX_CHARS))[-KEPT_PLACES:]
            self._keep(known.replace(shared_work=places, last_interaction=self._clock.now()))

    def meet(self, did: str, handle: str, *, followed: bool, announced: bool) -> None:
        """Record whether we follow a peer and announced it; if neither, no entry is added."""
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
        """Store an entry; of too many peers, those with the fewest and oldest acts are dropped."""
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
