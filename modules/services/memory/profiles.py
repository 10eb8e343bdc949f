"""Two profiles, of the SOUL and of its owner. Set at commissioning, later changed only by the owner's own words.

A change is durable once the call returns. It needs `evidence`: a piece of what the owner wrote in that session, word
for word, or a whole line of it, however short. A model that made the change up, or was talked into it by somebody else,
has none.
"""

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal, get_args

from common.clock import Clock, iso, local
from common.text.strings import quotation
from common.text.untrusted import clean, one_line
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.database.people import change_owner
from modules.services.skills.skills import Skills

Subject = Literal["agent", "user"]
SUBJECTS: tuple[Subject, ...] = get_args(Subject)
FIELD_LENGTH, VALUE_LENGTH, STANDING_LENGTH = 40, 500, 2_000
LIMITS, POSTING, POSTS_A_DAY = "limits", "posting", "posts_a_day"
"""Fields of the SOUL's profile: what its owner rules out, wants of its own posts, and allows as posts per day."""
STANDING = (LIMITS, POSTING)
"""The fields to which words are added with their day; only an order that takes words back removes them."""
FIELDS = frozenset({*STANDING, POSTS_A_DAY, "name", "role", "voice", "location", "about"})
"""The fields that the program uses; the model may name others."""

BLOCK_TOKENS = 400
"""For all fields of both profiles but `STANDING`, which are always shown."""

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
    """The result of a request to change a field: whether it was done, the reason, and the value `before`."""

    accepted: bool
    reason: str
    before: str = ""


def field_name(name: str, subject: str = "") -> str:
    """Return a field's name as it is stored: lower case, words joined by `_`; "" if it has no usable characters.

    A prefix that repeats the subject is left out: `user_name` of `user` is `name`.
    """
    plain = "_".join(re.findall(r"[a-z0-9]+", name.lower())).removeprefix(f"{subject}_")[:FIELD_LENGTH].strip("_")
    return plain if _FIELD.fullmatch(plain) else ""


def with_added(standing: str, said: str, day: date, taken_back: str = "") -> str:
    """Return the text of a field without the words `taken_back`, and with what was `said` on a day."""
    left = _LONE_DAY.sub("", standing.replace(taken_back, "") if taken_back else standing).strip(" ;,")
    new = said.removeprefix(left).strip(" ;,")
    entry = f"{new} (said on {day.isoformat()})" if new else ""
    return left if f"; {entry};" in f"; {left};" else "; ".join(filter(None, (left, entry)))


def most_posts(profile: ProfileFields) -> int | None:
    """Return the most posts of its own that the owner allows the SOUL per day; None if not said."""
    said = profile.agent.get(POSTS_A_DAY, "")
    return int(said) if said.isdecimal() else None


def unfounded(evidence: str, owner_words: Iterable[str]) -> str:
    """Return why `evidence` does not show that the owner said so, or ""; compared as by `quotation`."""
    said = evidence.strip().rstrip(".!")
    found = [(one, words) for words in owner_words if (one := quotation(said, words))]
    if not found:
        return "the evidence is not what the owner wrote in this session"
    least = _WORDS_BYTES if " " in found[0][0] else _EVIDENCE_BYTES
    is_long = len(_letters(said).encode(errors="replace")) >= least
    is_whole = any(_letters(one) in map(_letters, words.splitlines()) for one, words in found if _letters(one))
    return "" if is_long or is_whole else "the evidence is too short to show anything"


def initialise(
    connection: sqlite3.Connection, agent: Mapping[str, str], user: Mapping[str, str], by: str, now: datetime
) -> None:
    """Set the fields inside a transaction of the caller; empty values and unusable names are left out."""
    for subject, fields in (("agent", agent), ("user", user)):
        for name, value in fields.items():
            known = field_name(name)
            said = one_line(value, _length_of(known))
            if known and said:
                connection.execute(_UPSERT, (subject, known, said, iso(now), by))


def begin_with_owner(connection: sqlite3.Connection, owner_did: str) -> str:
    """Set aside the former owner's private memories and delete their profile if the owner has changed.

    Return the DID of the former owner; "" if it is the same or there was none.
    """
    former = marks.get(connection, _OWNER)
    marks.put(connection, {_OWNER: owner_did})
    if former in {"", owner_did}:
        return ""
    connection.execute("DELETE FROM profiles WHERE subject = 'user'")
    change_owner(connection, "memories", "source", former, owner_did)
    return former


def profile_of(connection: sqlite3.Connection) -> ProfileFields:
    """Return both profiles."""
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
    """Return the profiles as a compact part of a prompt, in whole fields, limits first; "" if there are none.

    `max_tokens` is for all but the fields of `STANDING`, which are shown in addition.
    With `public_only` the owner's profile is left out, and what they want of the SOUL's own posts.
    """
    private = {POSTING, POSTS_A_DAY} if public_only else ()
    agent = sorted(profile.agent.items(), key=lambda item: item[0] not in STANDING)
    wanted = [("agent", name, value) for name, value in agent if name not in private]
    wanted += [] if public_only else [("user", name, value) for name, value in profile.user.items()]
    shown: list[tuple[str, str]] = []
    for of, name, value in wanted:
        one = (of, f"{name}: {value if name in STANDING else _shortened(value)}")
        max_tokens += estimate(one[1]) if name in STANDING else 0
        if estimate(_block([*shown, one], skills)) <= max_tokens:
            shown.append(one)
    return _block(shown, skills)


class Profiles:
    """The two profiles in the database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def get(self) -> ProfileFields:
        """Return both profiles."""
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
        """Change one field if the owner's own words of this session support it; a refusal is returned, not raised.

        For `limits` and `posting` the value is added, with the day in `timezone`; only what is `taken_back`, word for
        word, is removed. Any other field is replaced; an empty value deletes it.
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
            there = quotation(gone, before) or gone
            if is_standing and there not in before:
                return ProfileChange(accepted=False, reason="what is taken back does not stand there in these words")
            after = with_added(before, said, local(now, timezone).date(), there) if is_standing else said
            if len(after) > (most := _length_of(known)):
                return ProfileChange(accepted=False, reason=f"all of it would be longer than {most} characters")
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


def _length_of(name: str) -> int:
    return STANDING_LENGTH if name in STANDING else VALUE_LENGTH


def _shortened(value: str) -> str:
    return f"{value[: _SHOWN_LENGTH - 1].rstrip()}…" if len(value) > _SHOWN_LENGTH else value


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isalnum())


def _plain(text: str) -> str:
    return " ".join(text.split())
