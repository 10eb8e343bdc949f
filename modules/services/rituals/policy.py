"""Rituals: their values, parts, recognition, checks of an opening, and how a memo is found again. Pure."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Literal

import regex

from adapters.atproto.richtext import detect_mentions
from adapters.atproto.types import Notification, Post
from adapters.github.types import Repo
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.text.closings import count_questions, only_acknowledges
from common.text.graphemes import grapheme_len
from common.text.handles import UNSPACED
from common.text.strings import create_slug
from common.text.untrusted import one_line
from modules.services.identity.self_mechanics import DailyRitual
from modules.services.outbox.rules.policy import says_the_same

Part = Literal["analyst", "critic", "observer"]
"""The parts of an agent in one thread of a ritual; it may have another part in another thread."""
RunRole = Literal["initiator", "participant"]


@dataclass(frozen=True, slots=True)
class RitualRun:
    """One run of a ritual on one local date.

    Attributes:
        key: identifies the ritual: its name as a slug.
        day: the local date.
        name: the ritual's name in SELF.md at that time.
        role: whether we opened it.
        thread_uri: its opening post.
        opener: DID of the account that opened it.
        artefact_url: our memo, or our comment on the memo of the day; "" if there is none.
        note: the beginning of our memo, or of our post if there is none.
        took_part: DIDs of the others listed in SELF.md who answered the opening with a view.

    """

    key: str
    day: date
    name: str
    role: RunRole
    thread_uri: str
    opener: str
    artefact_url: str = ""
    note: str = ""
    took_part: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The unique id of a run: `<key>/<local date>`."""
        return f"{self.key}/{self.day.isoformat()}"


@dataclass(frozen=True, slots=True)
class RitualThread:
    """The thread of a run for an answer: the ritual as SELF.md has it now, and our part in this thread."""

    ritual: DailyRitual
    run: RitualRun
    part: Part
    context: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether we opened it."""
        return self.run.role == "initiator"


OpeningProblem = Literal["Empty", "Too Long", "Unnamed", "Others Named", "Uninvited", "No Question", "Said Before"]
"""The problems of the opening post of a ritual: subsections of `Problems` in the skill `ritual-initiation`."""
MemoProblem = Literal["Empty", "No Title", "Repeats"]
"""The problems of the memo of a ritual: subsections of `Problems` in the skill `ritual-memo`."""
OPENING_KIND, MEMO_KIND = "ritual", "ritual-memo"
"""The kinds of work: opening a ritual on a date, and writing the memo of its run."""
RITUAL_HISTORY_MAX = 30
RITUAL_RECOGNITION_RUNS = 7
RITUAL_PROMPT_RUNS = 5
RITUAL_NOTE_CHARS = 200
MOST_PARTICIPANTS = 6

_PARTS: tuple[Part, ...] = ("analyst", "critic", "observer")
_HANDLE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})(?:\.[A-Za-z0-9][A-Za-z0-9-]{0,62}){1,8}")
_WORDS = re.compile(r"\W+")
_BEGINS = rf"(?:(?<!\w)|(?<=[{UNSPACED}])|(?=[{UNSPACED}]))"
_ENDS = rf"(?:(?!\w)|(?=[{UNSPACED}])|(?<=[{UNSPACED}]))"
_LEAST_MEMO_CHARS = 40
_MEMO_MARK = "<!-- soul:ritual="
_TITLE_CHARS = 120


def ritual_role(agent_name: str, thread_uri: str) -> Part:
    """Return the part of an agent in the thread under a root; all agents compute the same."""
    digest = hashlib.sha256(f"{agent_name}{thread_uri}".encode()).hexdigest()
    return _PARTS[int(digest[:8], 16) % len(_PARTS)]


def parts_are_even(agent_names: Collection[str], thread_uri: str) -> bool:
    """Return whether these agents share the parts as evenly as possible: each of three has its own."""
    falls = Counter(ritual_role(name, thread_uri) for name in agent_names)
    shares = [falls[part] for part in _PARTS]
    return max(shares) - min(shares) <= 1


def name_of(handle: str) -> str:
    """Return the agent's name in a handle."""
    return handle.partition(".")[0]


def ritual_key(name: str) -> str:
    """Return the key of a ritual, which is the same for all spellings of its name, in any script."""
    slug = create_slug(name)
    if all(sign.isascii() for sign in unicodedata.normalize("NFD", name) if sign.isalnum()):
        return slug
    return f"{slug}-{hashlib.sha256(_plain(name).encode()).hexdigest()[:8]}"


def opening_cause(key: str, day: date) -> str:
    """Return the cause of the opening post of a ritual on a local date."""
    return f"{OPENING_KIND}:{key}/{day.isoformat()}"


def memo_cause(key: str, day: date) -> str:
    """Return the cause of our artefact of a run."""
    return f"{MEMO_KIND}:{key}/{day.isoformat()}"


def next_opening(ritual: DailyRitual, over: Collection[date], now: datetime) -> datetime | None:
    """Return when a ritual opens next, in local time; None if its schedule is not understood.

    `over` are the dates on which it was opened, or on which its opening was given up.
    """
    schedule, today = ritual.when, now.date()
    if schedule is None:
        return None
    is_today = schedule.is_on(today) and today not in over and not schedule.is_over(now)
    return schedule.opens_at(today if is_today else schedule.next_date(today))


def handles_of(ritual: DailyRitual, *, without: str = "") -> list[str]:
    """Return the handles among a ritual's participants, in lower case, without our own."""
    found = (match[0].lower() for one in ritual.participants for match in _HANDLE.finditer(one))
    return [handle for handle in dict.fromkeys(found) if handle != without.lower()]


def gives_view(post: Post, thread_uri: str) -> bool:
    """Return whether a post replies to the opening of a thread itself, with more than thanks or agreement."""
    return post.reply is not None and post.reply.parent.uri == thread_uri and not only_acknowledges(post.text)


def opens_ritual(notification: Notification, ritual: DailyRitual, our_did: str) -> bool:
    """Return whether a post opens a thread for a ritual: the first of its thread, mentions us and names the ritual.

    Whether its author may open one is checked elsewhere: see `Rituals.thread_of`.
    """
    is_first = notification.kind == "mention" and notification.uri == notification.root.uri
    return is_first and notification.author.did != our_did and names_ritual(notification.text, ritual)


def names_ritual(text: str, ritual: DailyRitual) -> bool:
    """Return whether a text names the ritual or its workspace, in whole words if the script separates words."""
    said, workspace = _plain(text), ritual.workspace.rpartition("/")[2]
    names = filter(None, map(_plain, (ritual.name, workspace)))
    return any(regex.search(rf"{_BEGINS}{regex.escape(bare)}{_ENDS}", said) for bare in names)


def meant_first(text: str, listed: Iterable[tuple[str, DailyRitual]]) -> list[tuple[str, DailyRitual]]:
    """Return the rituals that a text may name, by key: those named themselves, longest name first; if none is, all.

    Rituals may share a workspace, so its name alone does not say which one is meant if another is named.
    """
    named = [one for one in listed if names_ritual(text, replace(one[1], workspace=""))]
    return sorted(named, key=lambda one: -len(one[1].name)) or list(listed)


def workspace_of(ritual: DailyRitual, watched: Mapping[Repo, Collection[str]]) -> Repo | None:
    """Return the watched workspace that a ritual names, with or without its owner; None if none or several fit.

    `watched` has for each workspace all its names, `owner/name`, as it may have been renamed.
    """
    meant = f"/{ritual.workspace}".lower()
    fitting = [repo for repo, names in watched.items() if any(f"/{one}".lower().endswith(meant) for one in names)]
    return fitting[0] if len(fitting) == 1 else None


def opening_problem(
    text: str, ritual: DailyRitual, invited: Sequence[str], earlier: Sequence[str]
) -> OpeningProblem | None:
    """Return what is wrong with an opening post, or None.

    It must name the ritual, the invited people and nobody else, ask no second question, and repeat no `earlier` text.
    That it asks one at all is not checked: not every script has a question mark.
    """
    mentioned = {span.value.lower() for span in detect_mentions(text)}
    checks: tuple[tuple[bool, OpeningProblem], ...] = (
        (not text.strip(), "Empty"),
        (grapheme_len(text) > PORTABLE_MAX_GRAPHEMES, "Too Long"),
        (not names_ritual(text, ritual), "Unnamed"),
        (not mentioned <= set(invited), "Others Named"),
        (not set(invited) <= mentioned, "Uninvited"),
        (count_questions(text) > 1, "No Question"),
        (any(says_the_same(text, one) for one in earlier), "Said Before"),
    )
    return next((problem for applies, problem in checks if applies), None)


def memo_problem(title: str, body: str, said: Sequence[str]) -> MemoProblem | None:
    """Return what is wrong with a memo, or None; `said` is what is in the thread already."""
    if not title.strip():
        return "No Title"
    if len(body.strip()) < _LEAST_MEMO_CHARS:
        return "Empty"
    return "Repeats" if any(says_the_same(body, one) for one in said) else None


def memo_title(run: RitualRun, title: str) -> str:
    """Return the title of a run's memo."""
    return f"{run.name}, {run.day.isoformat()}: {one_line(title, _TITLE_CHARS)}"


def memo_place(url: str) -> tuple[Repo, int] | None:
    """Return the issue at the address of a memo, or of a comment on one; None for another address."""
    *_, owner, name, what, number = ["", "", "", "", *url.partition("#")[0].split("/")]
    return (Repo(owner, name), int(number)) if what == "issues" and number.isdecimal() else None


def memo_mark(thread_uri: str) -> str:
    """Return the hidden mark in the body of a memo by which all participants find it."""
    return f"{_MEMO_MARK}{thread_uri} -->"


def has_memo_mark(body: str) -> bool:
    """Return whether a text is marked as the memo of a ritual."""
    return _MEMO_MARK in body


def note_of(text: str) -> str:
    """Return the note of a run: the beginning of a text."""
    return one_line(text.replace("**", ""), RITUAL_NOTE_CHARS)


def _plain(text: str) -> str:
    return _WORDS.sub(" ", text.casefold()).strip()
