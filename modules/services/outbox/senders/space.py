"""Sends to the agent space, once, the news that a commitment was fulfilled; also the base of acts that GitHub can show.

A room gives no receipt but its echo. What was on its way when the process died is looked for in the record that the
room replays to whoever joins: `EchoLog` must be shown each event of the room, from before the first join on. The news
is for the room in which the commitment was made: the one with the same id. Where a room tells no id, it is the one at
the address where it was made or the one whose record holds the words of the commitment.
"""

from __future__ import annotations

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Generic, Protocol, TypeVar
from urllib.parse import quote

from cachetools import FIFOCache

from adapters.git.client import Git
from adapters.github.types import Issue, PullRequest, Repo
from adapters.space.member_cycle import aliases
from adapters.space.types import History, Said, SpaceEvent
from common.clock import parse_iso, parse_iso_or_none
from common.result import ApiResult, Err, Ok, answering
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.bodies import SpaceChatBody
from modules.services.outbox.github_bodies import NOT_IN_A_REPOSITORY, OnGitHub, PushBody
from modules.services.outbox.repository_identity import RepositoryIdentity
from modules.services.outbox.types import Intent, Sent, Wait

B = TypeVar("B", bound=OnGitHub)
T = TypeVar("T")

_FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class OvertakenErr(Err):
    """What the act was to be done upon is not there any more."""


CHANGED = OvertakenErr("somebody changed it since it was read", "invalid")


class ChangeSender(ABC, Generic[B]):
    """Sends intents whose bodies are of the types in `bodies`. What it asks of GitHub it takes with `or_raise`."""

    bodies: tuple[type[B], ...]

    def __init__(self, identity: RepositoryIdentity) -> None:
        self._github = identity.github
        self._identity = identity

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Do it, unless it is done already."""
        return meant(await self._sent(intent))

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Whether an earlier try arrived. One that was overtaken did not, as far as can be seen."""
        found = await self._found(intent)
        return Ok(None) if isinstance(found, OvertakenErr) else meant(found)

    @answering
    async def _sent(self, intent: Intent) -> ApiResult[Sent]:
        if not self._github.configured:
            return Err("there is no account on GitHub to write as", "auth")
        body = self._body(intent)
        async with self._github.burst():
            in_one = intent.kind not in NOT_IN_A_REPOSITORY
            if in_one and (refusal := await self._identity.write_refusal(repo_of(body))):
                return refusal
            return Ok(await self._look(intent, body, departs=True) or await self._do(intent, body))

    @answering
    async def _found(self, intent: Intent) -> ApiResult[Sent | None]:
        async with self._github.burst():
            return Ok(await self._look(intent, self._body(intent), departs=False))

    def _body(self, intent: Intent) -> B:
        if isinstance(body := intent.body, self.bodies):
            return body
        return Err("it names no repository and nothing to do on GitHub", "invalid").or_raise()

    @abstractmethod
    async def _look(self, intent: Intent, body: B, *, departs: bool) -> Sent | None:
        """Return what is done already; `departs` says that it sets out now, else an earlier try is looked for."""

    @abstractmethod
    async def _do(self, intent: Intent, body: B) -> Sent:
        """Do it."""


def repo_of(body: OnGitHub) -> Repo:
    """Return the repository that an act is for."""
    owner, _, name = body.repo.partition("/")
    return Repo(owner, name)


def mark(intent_id: str) -> str:
    """Return the unseen mark of an intent."""
    return f"<!-- soul:intent={intent_id} -->"


def marked(body: str, intent_id: str) -> str:
    """Return `body` with the mark of its intent."""
    return f"{body}\n\n{mark(intent_id)}" if body else mark(intent_id)


def meant(done: ApiResult[T]) -> ApiResult[T]:
    """What GitHub's refusals mean for one act: an account that may not write there need not wait for a day.

    What changed in between does not change back. An account that GitHub has closed does not end the life of a SOUL,
    which has other things to do.
    """
    if isinstance(done, Ok):
        return done
    forbidden = done.kind == "auth" and done.status == _FORBIDDEN
    return replace(done, kind="invalid") if forbidden or done.kind in {"fatal", "conflict"} else done


def folded(names: tuple[str, ...]) -> set[str]:
    """Names as GitHub compares them."""
    return {name.lower() for name in names}


def sent(one: Issue | PullRequest) -> Sent:
    """Where it stands, and its number."""
    return Sent(one.html_url, "issue", str(one.number))


class PushSender(ChangeSender[PushBody]):
    """Sends intents of the kind `push`. A result's cid is the commit.

    Args:
        identity: of the repository, whose branch is looked for.
        git: pushes.
        root: the home, below which the clones lie.

    """

    bodies = (PushBody,)

    def __init__(self, identity: RepositoryIdentity, git: Git, root: Path) -> None:
        super().__init__(identity)
        self._git = git
        self._root = root

    async def _look(self, intent: Intent, body: PushBody, *, departs: bool) -> Sent | None:
        found = (await self._github.refs.get(repo_of(body), body.branch)).or_else(None, "not_found")
        stands = found.sha if found else ""
        if stands == body.sha:
            return self._at(body)
        return None if stands == body.before else CHANGED.or_raise()

    async def _do(self, intent: Intent, body: PushBody) -> Sent:
        repo = repo_of(body)
        folder = self._root / body.folder
        (await self._git.push(folder, repo.owner, repo.name, body.branch, sha=body.sha)).or_raise()
        found = (await self._github.refs.get(repo, body.branch)).or_else(None)
        if found is None or found.sha != body.sha:
            Err("it was pushed, and is not seen there yet", "unknown_outcome").or_raise()
        return self._at(body)

    def _at(self, body: PushBody) -> Sent:
        return Sent(f"{self._github.page(repo_of(body))}/tree/{quote(body.branch)}", "commit", body.sha)


ABSENT = "the agent space is not connected"
OTHER_ROOM = "its commitment belongs to another room"

_KEPT = 500
_ECHO_WAIT_S = 10.0
_ASK_AGAIN_S = 5.0
_CLOCKS_APART = timedelta(hours=1)


class RoomSpeaker(Protocol):
    """A place in a room, as far as announcing needs it."""

    @property
    def is_active(self) -> bool: ...

    @property
    def url(self) -> str: ...

    @property
    def room_id(self) -> str: ...

    async def send_chat(self, content: str) -> ApiResult[str]: ...

    async def delivered(self, chat_id: str) -> ApiResult[bool]: ...


class EchoLog:
    """The latest 500 messages of the SOUL that the room received, under any of its names, live and replayed."""

    def __init__(self, name: str) -> None:
        self._names = frozenset((name, *aliases(name)))
        self._messages: deque[tuple[str, str, str]] = deque(maxlen=_KEPT)
        self._here: deque[str] = deque(maxlen=_KEPT)
        self._places = FIFOCache[str, str](_KEPT)
        self._room_id = ""

    def receive(self, event: SpaceEvent, url: str = "") -> None:
        """Something happened in the room at `url`.

        A record is another room's if its id is another; without ids, if it holds no word that we said before.
        """
        own = list(self._own(event))
        words = [said for said, _ in own]
        if isinstance(event, History):
            before, self._room_id = self._room_id, event.room_id
            ids_known = bool(before and self._room_id)
            if before != self._room_id if ids_known else not set(words) & set(self._here):
                self._here.clear()
        self._messages.extend((said, at, self._room_id) for said, at in own)
        self._here.extend(words)
        self._places.update(dict.fromkeys(words, url))

    def said_here(self, words: str) -> bool:
        """Whether these words were said in the room that we are in, or were in last."""
        return words.strip() in self._here

    def place(self, words: str) -> str:
        """The address of the room in which they were said last; "" if that is not known."""
        return self._places.get(words.strip(), "")

    def contains(self, words: str, since: datetime, room_id: str = "") -> bool:
        """Return whether the room received these words since then, as far as its clock can be compared with ours.

        With `room_id` no room counts that is known to be another.
        """
        earliest = since - _CLOCKS_APART
        return any(
            said == words.strip()
            and (parse_iso_or_none(at) or earliest) >= earliest
            and (not (room_id and told_in) or room_id == told_in)
            for said, at, told_in in self._messages
        )

    def _own(self, event: SpaceEvent) -> Iterator[tuple[str, str]]:
        if isinstance(event, Said) and event.name in self._names:
            yield event.content.strip(), event.timestamp
        elif isinstance(event, History):
            for entry in event.entries:
                if entry.type == "chat" and entry.agent_name in self._names:
                    yield entry.content.strip(), entry.timestamp


class SpaceSender:
    """Sends intents of the kind `space_chat`; `gate` keeps them in while there is no room."""

    def __init__(self, room: RoomSpeaker | None, echo_log: EchoLog, journal: Journal) -> None:
        self._room = room
        self._echo_log = echo_log
        self._journal = journal
        self._on_the_way: dict[str, str] = {}

    def gate(self, _: sqlite3.Connection, intent: Intent, __: datetime) -> Wait | None:
        """Asked by the outbox before each departure."""
        why_not = self._absent(intent) if intent.kind == "space_chat" else ""
        return Wait(why_not, _ASK_AGAIN_S) if why_not else None

    def was_delivered(self, words: str, since: datetime, room_id: str = "") -> bool:
        """Return whether the room received these words of ours since then; see `EchoLog.contains`."""
        return self._echo_log.contains(words, since, room_id)

    def where(self, words: str) -> str:
        """The address of the room in which we said these words, as far as it is known; else of the one we are in."""
        return self._echo_log.place(words) or (self._room.url if self._room is not None else "")

    @answering
    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Say it, and wait for the echo."""
        room = self._room
        if room is None:
            return Err(ABSENT, "transient")
        chat_id = self._on_the_way.get(intent.id)
        if chat_id is None:
            if not isinstance(intent.body, SpaceChatBody):
                return Err("it holds no line for a room", "invalid")
            self._on_the_way[intent.id] = chat_id = (await room.send_chat(intent.body.text)).or_raise()
        try:
            async with asyncio.timeout(_ECHO_WAIT_S):
                echoed = await room.delivered(chat_id)
        except TimeoutError:
            return Err("it waits to be said in the room", "unknown_outcome")
        del self._on_the_way[intent.id]
        if isinstance(echoed, Err):
            return echoed if echoed.kind == "transient" else Err(echoed.error, "unknown_outcome")
        if not echoed.data:
            return Err("the room did not echo it", "unknown_outcome")
        return Ok(await self._arrived(intent))

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Return whether the room received it."""
        if why_not := self._absent(intent):
            return Err(why_not, "transient")
        since = parse_iso(intent.first_sent_at or intent.created_at)
        if not self._echo_log.contains(intent.body.preview, since):
            return Ok(None)
        self._on_the_way.pop(intent.id, None)
        return Ok(await self._arrived(intent))

    def _absent(self, intent: Intent) -> str:
        """Why those who should hear it are not here, or ""; what was to be told before rooms were told apart leaves."""
        if self._room is None or not self._room.is_active:
            return ABSENT
        body = intent.body
        if not isinstance(body, SpaceChatBody):
            return ""
        if body.room_id and self._room.room_id:
            return "" if body.room_id == self._room.room_id else OTHER_ROOM
        if body.room is None or self._echo_log.said_here(body.said):
            return ""
        return "" if body.room and body.room == self._room.url else OTHER_ROOM

    async def _arrived(self, intent: Intent) -> Sent:
        text = intent.body.preview
        entry = Entry("act", "commitments", "[space] Fulfillment announced", "done", text, intent_id=intent.id)
        await self._journal.record(entry)
        return Sent()
