"""The story of one post or act, as values: what arrived, what the model considered, decided and did, and why.

A question may name a link, an `at://` uri, or an act's id. The record stores DIDs; people read handles.
"""

import dataclasses
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import unquote

from adapters.atproto.writes import tid_time
from common.clock import iso
from common.person import INVALID_HANDLE
from common.text.handles import named_dids, with_handles
from modules.runtime.budget import ledger
from modules.runtime.journal import rows
from modules.runtime.journal.rows import JournalRow
from modules.services.coding import trajectory
from modules.services.coding.policy import CodingStep
from modules.services.craft.proposals import Proposal, behind, evidence_for, names_about
from modules.services.identity.entries import OWN_SKILL
from modules.services.inbox import messages, received
from modules.services.inbox.messages import MESSAGES, ReceivedMessage
from modules.services.outbox import departures, store
from modules.services.outbox.act_words import act_words
from modules.services.outbox.bodies import FollowBody
from modules.services.outbox.departures import Departure
from modules.services.outbox.types import STANDS, Intent, IntentState
from modules.services.work import table as work


def handle_of(connection: sqlite3.Connection, did: str) -> str:
    """Return the newest handle of an account that the home knows, in one line; "" if none.

    It comes from what the account wrote to us, otherwise from a follow of ours.
    """
    talk = messages.talk_with(connection, did)
    follows = (one.body for one in store.by_target(connection, "follow", did))
    seen = (
        received.latest_handle(connection, did),
        talk.handle if talk else "",
        *(body.handle for body in follows if isinstance(body, FollowBody)),
    )
    handle = next((one for one in seen if one and one != INVALID_HANDLE), "")
    if not handle:
        return ""
    from common.text.untrusted import one_line  # noqa: PLC0415 - slow to load, and `soul status` needs this too

    return one_line(handle)


def known_handles(connection: sqlite3.Connection, text: str) -> dict[str, str]:
    """Return the known handles, by DID, of the accounts that `text` names by DID."""
    return {did: handle for did in named_dids(text) if (handle := handle_of(connection, did))}


def named(connection: sqlite3.Connection, text: str) -> str:
    """Return `text` with `@handle` for each DID whose handle is known."""
    return with_handles(text, known_handles(connection, text))


@dataclass(frozen=True, slots=True)
class Received:
    """A post or message that arrived. `state` is pending, handled or dropped, `outcome` how it was handled.

    `handled_with` is the later one of the same person in the same thread or conversation that was handled with it.
    """

    uri: str
    author: str = ""
    did: str = ""
    reason: str = ""
    text: str = ""
    at: str = ""
    received_at: str = ""
    state: str = ""
    outcome: str = ""
    attempts: int = 0
    handled_with: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a prompt: its characters, and of a file the first digits of its SHA-256."""

    name: str
    chars: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model; `error` is what it was told if it was refused, `said` its own words."""

    tool: str
    said: str = ""
    error: str = ""
    intent_id: str = ""


@dataclass(frozen=True, slots=True)
class Thinking:
    """One turn of the model. `usd` is None if no price is known; `failed` says why it had no result.

    `provenance` is the least trusted of the words in it; `memories` are the ids of the recalled memories;
    `unanswered_tokens` are counted for requests without an answer, which may have been billed.
    """

    began: str
    at: str
    purpose: str
    provenance: str = ""
    importance: str = ""
    model: str = ""
    rounds: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    unanswered_tokens: int = 0
    prompt: tuple[Part, ...] = ()
    memories: tuple[int, ...] = ()
    calls: tuple[Call, ...] = ()
    failed: str = ""


@dataclass(frozen=True, slots=True)
class StoryEntry:
    """A journal entry: a decision (`kind` decision), a failure (error), or an event that led to it (life)."""

    at: str
    kind: str
    loop: str
    summary: str
    reason: str = ""
    act: str = ""


@dataclass(frozen=True, slots=True)
class RuleSaid:
    """The verdict of one admission rule: pass, hold or block, with the counted value and the limit."""

    rule: str
    says: str
    reason: str = ""
    value: str | float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Movement:
    """One step of an act on its way; `words` are the owner's new words in this step, `before` the old ones."""

    at: str
    state: str
    summary: str
    reason: str = ""
    rules: tuple[RuleSaid, ...] = ()
    words: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class Act:
    """A public act, in words (`what`), and all its steps.

    `why` is the reason of its state, if it is blocked, held or failed.
    If it is scheduled, or waits for its turn for longer than a minute, `leaves_at` is when it is expected to leave, ""
    if unknown, and `waits_for` why not sooner. `stands` is its outcome in words.
    """

    id: str
    kind: str
    what: str
    target: str
    text: str
    state: IntentState
    uri: str
    why: str
    cause: str
    created_at: str
    expires_at: str
    leaves_at: str = ""
    waits_for: str = ""
    stands: str = ""
    movements: tuple[Movement, ...] = ()

    @property
    def own_text(self) -> str:
        """Its text before the owner changed it."""
        return next((one.before for one in self.movements if one.words), self.text)


@dataclass(frozen=True, slots=True)
class Story:
    """The whole story. Times are ISO-8601 UTC; each tuple is in time order.

    Attributes:
        asked: what was asked about, resolved: a uri, or an act's id.
        act_id: the act asked about; "" if the question is about somebody's post.
        cause: the beginning: the uri of a post, the key of a task, or a word such as `expression` or `owner`.
        trigger: that post, if it was one.
        holding: what keeps that post waiting, if the SOUL as a whole is held back (a pause, the budget).
        handles: by DID, of the accounts that a reason names by DID, if known.
        coding: the coding steps of a task, under its latest claim.
        since: where the journal begins, if earlier entries are gone; "" if none are.
        proposal: the proposal that the story is about, if any.
        rests_on: what the proposal rests on, one line each.

    """

    asked: str
    act_id: str
    cause: str
    trigger: Received | None
    thinkings: tuple[Thinking, ...] = ()
    decisions: tuple[StoryEntry, ...] = ()
    acts: tuple[Act, ...] = ()
    holding: tuple[StoryEntry, ...] = ()
    coding: tuple[CodingStep, ...] = ()
    since: str = ""
    handles: Mapping[str, str] = field(default_factory=dict)
    proposal: Proposal | None = None
    rests_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """There is no story; `reason` says why, in one line."""

    reason: str


_LINK = re.compile(r"https?://[^/?#]+/profile/([^/?#]+)/post/([\w.~:-]+)", re.IGNORECASE)
_URI = re.compile(r"at://([^/?#]+)/([\w.-]+)/([\w.~:-]+)")
_ISSUE = re.compile(r"https?://[^/?#]+/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+(?:#issuecomment-\d+)?", re.IGNORECASE)
_THREAD = re.compile(r"(?:^|/)(?P<repo>[\w.-]+/[\w.-]+)(?:/(?:issues|pull)/|#)(?P<number>\d+)$", re.IGNORECASE)
_THREAD_CAUSE = re.compile(r"(?:github:(?P<thread>[^/]+/[^/]+)/|(?:review|revision):(?P<pull>[^@]+)@).*")
_NUMBERED = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}#[0-9]{1,9}")
_MESSAGE = re.compile(rf"{MESSAGES}[^/\s]+/\S+")
_TASK = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}#[0-9]{1,9}/task-[0-9]{1,9}")
_LEAST_ID_CHARS = 4
_ID = re.compile(r"[0-9]{1,3}|[0-9a-f]{4,32}")
_POST = "app.bsky.feed.post"


@dataclass(frozen=True, slots=True)
class Named:
    """The subject of a question: the record `key` in `collection` of `who` (handle or DID), or an act's id prefix.

    Or `link`, to an issue or a comment on GitHub, or `owner/repo#12`; `message`, the name of a direct message; or
    `task`, the key of a task.
    """

    who: str = ""
    collection: str = ""
    key: str = ""
    intent: str = ""
    link: str = ""
    message: str = ""
    task: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a question: an act of ours, or something that was decided about, by its name.

    The latter is somebody's record or direct message, a task of a plan, or an issue or pull request.
    """

    intent: str = ""
    uri: str = ""


def understand(what: str) -> Named | None:
    """Return what `what` names, or None if one cannot ask about it."""
    said = what.strip().strip("<>\"'")
    if link := _LINK.match(said):
        return Named(_owner(link[1]), _POST, link[2])
    if issue := _ISSUE.match(said) or _NUMBERED.fullmatch(said):
        return Named(link=issue[0])
    if uri := _URI.match(said):
        return Named(_owner(uri[1]), uri[2], uri[3])
    if message := _MESSAGE.fullmatch(said):
        return Named(message=message[0])
    if is_task(said):
        return Named(task=said)
    return Named(intent=said) if _ID.fullmatch(said) else None


def find(connection: sqlite3.Connection, what: str) -> Subject | Unknown:
    """Return the act or post that `what` means."""
    named = understand(what)
    # NOTE(self): a cause of one word, such as `expression`, belongs to everything of its kind.
    is_known = rows.names(connection, what) or store.names(connection, what) or behind(connection, what)
    if named is None and is_known and (":" in what or what.startswith(OWN_SKILL)):
        return Subject(uri=what)
    if named is None:
        return Unknown(
            f"“{what}” is nothing that can be asked about: give a link to a post, an at:// uri, an issue or pull "
            "request as owner/repo#12, a task as owner/repo#12/task-3, a skill of its own as "
            "skills/NAME, a draft's number, or at least 4 characters of an act's id"
        )
    if named.message:
        return _message(connection, named.message)
    if named.task:
        return _task(connection, named.task)
    if named.link:
        return _on_github(connection, named.link)
    return _act_by_id(connection, named.intent) if named.intent else _record(connection, named)


def is_task(key: str) -> bool:
    """Return whether a cause is the key of a task of a plan."""
    return bool(_TASK.fullmatch(key))


def thread_of(cause: str) -> str:
    """Return the issue or pull request of a cause, `owner/repo#12`; "" if there is none."""
    found = _THREAD_CAUSE.fullmatch(cause)
    return (found["thread"] or found["pull"]) if found else ""


def became_of(connection: sqlite3.Connection, url: str) -> list[str]:
    """Return the causes that followed from an issue or pull request of ours: its merge, and rounds after a review."""
    thread = _THREAD.search(url)
    if thread is None:
        return []
    key = f"{thread['repo']}#{thread['number']}".lower()
    merge, revision = f"merge:{key}", f"revision:{key}@"
    named = rows.names_about(connection, [merge, revision])
    return [one for one in named if one.lower() == merge or one.startswith(revision)]


def _owner(said: str) -> str:
    who = unquote(said)
    return who if who.startswith("did:") else who.removeprefix("@").lower()


def _act_by_id(connection: sqlite3.Connection, prefix: str) -> Subject | Unknown:
    if len(prefix) < _LEAST_ID_CHARS:
        drafts = [one for one, number in store.draft_numbers(connection).items() if number == int(prefix)]
        unknown = Unknown(f"No draft has the number {prefix}: `soul drafts` lists them, `soul today` what has left")
        return Subject(intent=drafts[0]) if drafts else unknown
    found = store.starting_with(connection, prefix)
    if len(found) > 1:
        return Unknown(f"More than one act has an id that begins with {prefix}: give more of it")
    return Subject(intent=found[0].id) if found else Unknown(f"No act has an id that begins with {prefix}")


def _on_github(connection: sqlite3.Connection, link: str) -> Subject | Unknown:
    thread = _THREAD.search(link)
    key = f"{thread['repo']}#{thread['number']}".lower() if thread else ""
    made = store.opened_thread(connection, *key.split("#")) if key else None
    if made := made or store.at_result(connection, link, any_case=True):
        return Subject(intent=made.id)
    reviews = (f"review:{key}@", f"revision:{key}@")
    about = rows.names_about(connection, [*reviews, f"github:{key}/"]) if key else []
    acted = [one for one in about if store.names(connection, one)]
    reviewed = [one for one in acted if one.startswith(reviews)]
    # NOTE(self): a look without a result is mostly the newest, and says nothing about what was done.
    meant = next(iter((*reviewed, *acted, *about)), "")
    return Subject(uri=meant) if meant else Unknown(f"{link} was made by no act that is known")


def _task(connection: sqlite3.Connection, key: str) -> Subject | Unknown:
    known = trajectory.latest(connection, key) or store.names(connection, key)
    return Subject(uri=key) if known else Unknown(f"{key} is no task that it worked on")


def _message(connection: sqlite3.Connection, name: str) -> Subject | Unknown:
    ours = store.at_result(connection, name)
    if ours:
        return Subject(intent=ours.id)
    if messages.named(connection, name) or rows.names(connection, name):
        return Subject(uri=name)
    return Unknown(f"{name} was never seen: no direct message that reached it, and none of its own, has that name")


def _record(connection: sqlite3.Connection, named: Named) -> Subject | Unknown:
    uri = f"at://{named.who}/{named.collection}/{named.key}"
    if not named.who.startswith("did:"):
        known = _by_handle(connection, named)
        if isinstance(known, Unknown):
            return known
        uri = known or uri
    # NOTE(self): an act that has not left yet has no uri, but its record key is chosen already.
    ours = store.at_result(connection, uri) or store.unsent_with_key(connection, named.key)
    if ours:
        return Subject(intent=ours.id)
    if received.get(connection, uri) or rows.names(connection, uri) or store.names(connection, uri):
        return Subject(uri=uri)
    return Unknown(_unseen(connection, uri, tid_time(named.key)))


def _by_handle(connection: sqlite3.Connection, named: Named) -> str | Unknown:
    """Return the uri of the record whose owner is given by handle; "" if no such key was ever seen."""
    # NOTE(self): a record key is unique enough to find a post; the handle only decides between several.
    tail = f"/{named.collection}/{named.key}"
    seen: dict[str, set[str]] = {uri: {""} for uri in store.uris_ending_in(connection, tail)}
    for uri, handle in (*received.with_key(connection, tail), *rows.with_key(connection, tail)):
        seen.setdefault(uri, set()).add(handle.lower())
    theirs = [uri for uri, handles in seen.items() if named.who in handles]
    nobodys = [uri for uri, handles in seen.items() if handles == {""}]
    meant = list(seen) if len(seen) == 1 else theirs or nobodys
    if len(meant) > 1 or (seen and not meant):
        return Unknown(f"Several records have the key {named.key}: give the at:// uri of the one you mean")
    return next(iter(meant), "")


def _unseen(connection: sqlite3.Connection, uri: str, made: datetime | None) -> str:
    if store.feed_shows(connection, uri):
        return f"{uri} stands in its own feed, but no act of its outbox made it, or the records of that are gone"
    since = rows.kept_since(connection)
    if since and (made is None or iso(made) < since):
        return f"{uri} is not known: the journal reaches back to {since[:10]}, what was before is pruned"
    return f"{uri} was never seen: nothing that reached it, and no act of its own, has that name"


T = TypeVar("T", Part, RuleSaid)

_RECEIVED = ("at://", MESSAGES)


def gather(connection: sqlite3.Connection, subject: Subject) -> Story | Unknown:
    """Return the story of an act, of somebody's post, of a task, or of decisions about a thread on GitHub."""
    cause = subject.uri or _cause(connection, subject.intent)
    handled_with = _handled_with(connection, cause)
    made = asked.result_uri or "" if (asked := store.get(connection, subject.intent)) else ""
    posts = [uri for uri in (cause, handled_with, made) if uri.startswith(_RECEIVED) or is_task(uri) or thread_of(uri)]
    posts += names_about(connection, proposal) if (proposal := behind(connection, cause)) else []
    posts += filter(None, (subject.uri, *became_of(connection, made)))
    acts = store.about(connection, subject.intent, posts)
    entries = _entries(connection, posts, acts)
    leaving = departures.expected(connection)
    trigger = _received(connection, cause, handled_with, entries) if cause.startswith(_RECEIVED) else None
    waits = trigger is not None and trigger.state == "pending"
    story = Story(
        asked=subject.uri or subject.intent,
        act_id=subject.intent,
        cause=cause,
        trigger=trigger,
        thinkings=tuple(_thinking(connection, entry) for entry in entries if entry["kind"] == "model"),
        decisions=tuple(_decided(entry) for entry in entries if entry["kind"] in {"decision", "error", "life"}),
        acts=tuple(_act(row, act_words(connection, row).what, entries, leaving.get(row.id)) for row in acts),
        coding=tuple(trajectory.latest(connection, cause)),
        holding=tuple(map(_decided, rows.holding(connection))) if waits else (),
        since=rows.kept_since(connection),
        handles=known_handles(connection, " ".join(_reasons(acts, entries))),
        proposal=proposal,
        rests_on=tuple(evidence_for(connection, proposal)),
    )
    if trigger and trigger.state in {"handled", "dropped"} and not acts and not entries:
        return Unknown(
            f"{cause} reached it on {trigger.received_at[:10]} and was let go; the reason is not kept any more"
            + (f": the journal reaches back to {story.since[:10]}, what was before is pruned" if story.since else "")
        )
    return story


def _reasons(acts: Iterable[Intent], entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the reasons of the acts' states and of all entries; none of them is text of a post."""
    yield from (act.error or "" for act in acts)
    for entry in entries:
        yield str(entry["reason"] or "")
        rules = entry["data"].get("rules")
        yield from (str(rule.get("reason", "")) for rule in rules or () if isinstance(rule, dict))


def _cause(connection: sqlite3.Connection, intent_id: str) -> str:
    intent = store.get(connection, intent_id)
    return (intent.cause_id or "") if intent else ""


def _handled_with(connection: sqlite3.Connection, uri: str) -> str:
    """Return the later post or message that was handled in place of this one, as only a person's newest is; or ""."""
    post = messages.named(connection, uri) if uri.startswith(MESSAGES) else received.get(connection, uri)
    if post is None or post.state == "pending" or rows.was_decided(connection, uri, finished=True):
        return ""
    if isinstance(post, ReceivedMessage):
        later = [one.name for one in messages.later_than(connection, post)]
    else:
        thread = received.in_thread(connection, post.root_uri)
        theirs = [one for one in thread if one.author_did == post.author_did and one.indexed_at >= post.indexed_at]
        later = [one.uri for one in theirs if one.uri != uri]
    return next((one for one in later if rows.was_decided(connection, one)), "")


def _entries(connection: sqlite3.Connection, posts: list[str], acts: list[Intent]) -> list[JournalRow]:
    """Return all entries about it, in order: by the posts, by the acts, and by the turns of acts with another cause."""
    found = {row["id"]: row for row in rows.about(connection, posts, [act.id for act in acts])}
    for act in acts:
        if act.cause_id and not act.cause_id.startswith(_RECEIVED):
            found |= {row["id"]: row for row in rows.turn_of(connection, act.id, act.cause_id.partition(":")[0])}
    return [found[number] for number in sorted(found)]


def _received(
    connection: sqlite3.Connection, uri: str, handled_with: str, entries: Iterable[Mapping[str, Any]]
) -> Received:
    row = messages.named(connection, uri) or received.get(connection, uri)
    if row is None:
        author = next((entry["author"] for entry in entries if entry["trigger_uri"] == uri and entry["author"]), "")
        return Received(uri, author=author)
    return Received(
        uri=uri,
        author=row.handle,
        did=row.author_did,
        reason=row.reason,
        text=row.text,
        at=row.at,
        received_at=row.received_at,
        state=row.state,
        outcome=row.outcome,
        attempts=work.tries(connection, uri),
        handled_with=handled_with,
    )


def _thinking(connection: sqlite3.Connection, entry: Mapping[str, Any]) -> Thinking:
    data = entry["data"]
    began, purpose = data.get("began", entry["at"]), data.get("purpose", "")
    came_in, went_out, usd, unanswered = ledger.between(connection, purpose, began, entry["at"])
    return Thinking(
        began=began,
        at=entry["at"],
        purpose=purpose,
        provenance=data.get("sank_to") or data.get("provenance", ""),
        importance=data.get("importance", ""),
        model=data.get("model", ""),
        rounds=data.get("rounds", 0),
        input_tokens=data.get("input_tokens", came_in or 0),
        output_tokens=data.get("output_tokens", went_out or 0),
        usd=data.get("usd", usd),
        unanswered_tokens=unanswered or 0,
        prompt=tuple(_as(Part, part) for part in data.get("prompt", ())),
        memories=tuple(data.get("memories", ())),
        calls=tuple(_call(call) for call in data.get("calls", ())),
        failed="" if entry["reason"] == "ended" else entry["reason"],
    )


def _call(call: Mapping[str, Any]) -> Call:
    arguments = call.get("input") or {}
    said = arguments.get("text") or arguments.get("closing_message") or arguments.get("reason") or ""
    return Call(call["tool"], str(said), call.get("error", ""), call.get("intent_id", ""))


def _decided(entry: Mapping[str, Any]) -> StoryEntry:
    act = str(entry["data"].get("act", ""))
    reason = "" if entry["data"].get("held") else entry["reason"]  # the held act shows it
    return StoryEntry(entry["at"], entry["kind"], entry["loop"], entry["summary"], reason, act)


def _act(act: Intent, what: str, entries: Iterable[Mapping[str, Any]], leaves: Departure | None) -> Act:
    return Act(
        id=act.id,
        kind=act.kind,
        what=what,
        target=act.target,
        text=act.body.preview,
        state=act.state,
        uri=act.result_uri or "",
        why=act.error or "",
        cause=act.cause_id or "",
        created_at=act.created_at,
        expires_at=act.expires_at,
        leaves_at=leaves.at if leaves else act.scheduled_for or "",
        waits_for=leaves.reason if leaves else "",
        stands=STANDS[act.outcome],
        movements=tuple(
            _movement(entry) for entry in entries if entry["kind"] == "act" and entry["intent_id"] == act.id
        ),
    )


def _movement(entry: Mapping[str, Any]) -> Movement:
    data = entry["data"]
    rules = tuple(_as(RuleSaid, rule) for rule in data.get("rules", ()))
    return Movement(
        entry["at"],
        str(data.get("state", "")),
        entry["summary"],
        entry["reason"],
        rules,
        str(data.get("words", "")),
        str(data.get("before", "")),
    )


def _as(kind: type[T], stored: Mapping[str, Any]) -> T:
    """Return a value of `kind` from data that an older or newer version may have stored."""
    known = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in stored.items() if name in known})
