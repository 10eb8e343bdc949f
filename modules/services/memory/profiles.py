"""Who the SOUL is and whom it serves, in a few fields. Set once at commissioning, later only by the owner's own words.

The rows survive a crash once a call has returned. A change needs `evidence`: a piece of what the owner wrote in that
session, word for word; a model that made it up, or was talked into it by somebody else, has none.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal, get_args

from common.clock import Clock, iso, local
from common.text.untrusted import clean, one_line
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.database.people import change_owner
from modules.services.skills.skills import Skills

Subject = Literal["agent", "user"]
SUBJECTS: tuple[Subject, ...] = get_args(Subject)
FIELD_LENGTH, VALUE_LENGTH = 40, 500
LIMITS, POSTING, POSTS_A_DAY = "limits", "posting", "posts_a_day"
"""Fields of the SOUL's profile: what its owner rules out, what they want of its own posts, and how many at most."""
STANDING = (LIMITS, POSTING)
"""The fields to which words are added, each with its day: only an order that takes some back removes them."""
FIELDS = frozenset({*STANDING, POSTS_A_DAY, "name", "role", "voice", "location", "about"})
"""The fields that have a use of their own; the model may name others."""

BLOCK_TOKENS = 400

_OWNER = "owner_did"
_SHOWN_LENGTH = 160
_FIELD = re.compile(r"[a-z][a-z0-9_]*")
_LONE_DAY = re.compile(r"(?:^|;) *\(said on [\d-]{10}\)")
_EVIDENCE_BYTES, _WORDS_BYTES = 8, 5
_UPSERT = """
INSERT INTO profiles (subject, field, value, updated_at, updated_by) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (subject, field) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at,
    updated_by = excluded.updated_by
"""


@dataclass(frozen=True, slots=True)
class ProfileFields:
    """Both profiles: field → value, in the order in which the fields were first set."""

    agent: Mapping[str, str] = field(default_factory=dict)
    user: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """What came of a request to change a field: whether it was done, and if not why. `before` is what it said."""

    accepted: bool
    reason: str
    before: str = ""


def field_name(name: str) -> str:
    """A field's name as it is kept: lower case, words joined by `_`; "" when there is none in it."""
    plain = "_".join(re.findall(r"[a-z0-9]+", name.lower()))[:FIELD_LENGTH].strip("_")
    return plain if _FIELD.fullmatch(plain) else ""


def with_added(standing: str, said: str, day: date, taken_back: str = "") -> str:
    """Return the words that stand in a field without those `taken_back`, and with what was `said` on a day."""
    left = _LONE_DAY.sub("", standing.replace(taken_back, "") if taken_back else standing).strip(" ;,")
    new = said.removeprefix(left).strip(" ;,")
    entry = f"{new} (said on {day.isoformat()})" if new else ""
    return left if f"; {entry};" in f"; {left};" else "; ".join(filter(None, (left, entry)))


def most_posts(profile: ProfileFields) -> int | None:
    """Return how many posts of its own the owner lets the SOUL make in a day; None if they did not say."""
    said = profile.agent.get(POSTS_A_DAY, "")
    return int(said) if said.isdecimal() else None


def unfounded(evidence: str, owner_words: Iterable[str]) -> str:
    """Why `evidence` does not show that the owner said so; "" when it does. White space counts as one blank."""
    said = _plain(evidence)
    size = len("".join(char for char in said if char.isalnum()).encode(errors="replace"))
    if size < (_WORDS_BYTES if " " in said else _EVIDENCE_BYTES):
        return "the evidence is too short to show anything"
    if not any(said in _plain(words) for words in owner_words):
        return "the evidence is not what the owner wrote in this session"
    return ""


def initialise(
    connection: sqlite3.Connection, agent: Mapping[str, str], user: Mapping[str, str], by: str, now: datetime
) -> None:
    """Set the fields inside a transaction of the caller's; blank ones and names that say nothing are left out."""
    for subject, fields in (("agent", agent), ("user", user)):
        for name, value in fields.items():
            known, said = field_name(name), one_line(value, VALUE_LENGTH)
            if known and said:
                connection.execute(_UPSERT, (subject, known, said, iso(now), by))


def begin_with_owner(connection: sqlite3.Connection, owner_did: str) -> str:
    """Set aside what the owner of the last start said in private, and forget their profile, where it was another.

    Return the DID of that other; "" for none.
    """
    former = marks.get(connection, _OWNER)
    marks.put(connection, {_OWNER: owner_did})
    if former in {"", owner_did}:
        return ""
    connection.execute("DELETE FROM profiles WHERE subject = 'user'")
    change_owner(connection, "memories", "source", former, owner_did)
    return former


def profile_of(connection: sqlite3.Connection) -> ProfileFields:
    """Both profiles as they stand."""
    found: dict[str, dict[str, str]] = {subject: {} for subject in SUBJECTS}
    for row in connection.execute("SELECT subject, field, value FROM profiles ORDER BY rowid"):
        found[row["subject"]][row["field"]] = row["value"]
    return ProfileFields(found["agent"], found["user"])


def profile_block(
    profile: ProfileFields,
    skills: Skills,
    estimate: Callable[[str], int],
    *,
    public_only: bool,
    max_tokens: int = BLOCK_TOKENS,
) -> str:
    """The profiles as a compact part of a prompt, whole fields, limits first; "" when there are none.

    With `public_only` what is known of the owner stays out, and what they want of the SOUL's own posts.
    """
    private = {POSTING, POSTS_A_DAY} if public_only else ()
    agent = sorted(profile.agent.items(), key=lambda item: item[0] not in STANDING)
    wanted = [("agent", name, value) for name, value in agent if name not in private]
    wanted += [] if public_only else [("user", name, value) for name, value in profile.user.items()]
    told = [(of, f"{name}: {value if name in STANDING else _shortened(value)}") for of, name, value in wanted]
    if estimate(text := _block(told, skills)) <= max_tokens:
        return text
    shown: list[tuple[str, str]] = []
    for one in told:
        if estimate(_block([*shown, one], skills)) <= max_tokens:
            shown.append(one)
    return _block(shown, skills)


class Profiles:
    """The two profiles in the database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def get(self) -> ProfileFields:
        """Both profiles as they stand."""
        return await self._database.run(profile_of)

    async def update(
        self,
        subject: Subject,
        field: str,
        value: str,
        *,
        evidence: str,
        owner_words: Sequence[str],
        by: str,
        taken_back: str = "",
        timezone: str = "",
    ) -> ProfileChange:
        """Change one field, if the owner's own words of this session bear it out; never raises for a refusal.

        To limits and wishes for posts the value is added, with the day in `timezone`; only what is `taken_back`, as
        it stands there, goes. Any other field takes the value; an empty one deletes it.
        """
        known, said, gone = field_name(field), _plain(clean(value)), _plain(clean(taken_back))
        if not known:
            return ProfileChange(accepted=False, reason="the field has no usable name")
        is_standing = subject == "agent" and known in STANDING
        if is_standing and not said and not gone:
            return ProfileChange(accepted=False, reason="the value is empty")
        if (subject, known) == ("agent", POSTS_A_DAY) and said and not said.isdecimal():
            return ProfileChange(accepted=False, reason=f"{POSTS_A_DAY} takes a whole number")
        if reason := unfounded(evidence, owner_words):
            return ProfileChange(accepted=False, reason=reason)
        now = self._clock.now()

        def write(connection: sqlite3.Connection) -> ProfileChange:
            profile = profile_of(connection)
            before = (profile.agent if subject == "agent" else profile.user).get(known, "")
            if is_standing and gone not in before:
                return ProfileChange(accepted=False, reason="what is taken back does not stand there in these words")
            after = with_added(before, said, local(now, timezone).date(), gone) if is_standing else said
            if len(after) > VALUE_LENGTH:
                return ProfileChange(accepted=False, reason=f"all of it would be longer than {VALUE_LENGTH} characters")
            if after:
                connection.execute(_UPSERT, (subject, known, after, iso(now), by))
            else:
                connection.execute("DELETE FROM profiles WHERE subject = ? AND field = ?", (subject, known))
            return ProfileChange(accepted=True, reason="the owner said so", before=before)

        return await self._database.run(write)


def _block(told: Iterable[tuple[str, str]], skills: Skills) -> str:
    lines: dict[str, list[str]] = {subject: [] for subject in SUBJECTS}
    for subject, line in told:
        lines[subject].append(line)
    return skills.render("memory", "Profile", **{about: "; ".join(each) for about, each in lines.items()}).strip()


def _shortened(value: str) -> str:
    return f"{value[: _SHOWN_LENGTH - 1].rstrip()}…" if len(value) > _SHOWN_LENGTH else value


def _plain(text: str) -> str:
    return " ".join(text.split())
