"""Decides which conversations are distilled, and which parts of a model's answer become memories. Pure.

Small models parrot their instructions, write text instead of lists, and fill empty fields with "none". Any other entry
is kept, in whatever words; from strangers only kinds that they may teach us: who they are, what was said.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from common.provenance import Provenance
from common.session_keys import is_main
from common.text.untrusted import clean, one_line
from modules.services.memory.admission import Kind, NewMemory, kinds_from, trust_of
from modules.services.sessions.types import MessageRow, blocks, words_of

FIELDS: Mapping[str, Kind] = {
    "people": "person",
    "facts": "fact",
    "events": "episode",
    "preferences": "preference",
    "decisions": "decision",
    "lessons": "lesson",
    "rules": "protocol",
}
"""The lists that a model fills, and the kind of memory in each."""

SUMMARY_CHARS = 1600
MOST_MEMORIES = 12

_WORTH_MESSAGES, _WORTH_OF_OTHERS = 4, 2
_WORTH_BYTES = 4000
_SUBJECT_CHARS = 80
_BODY_CHARS = 500
_FEWEST_BYTES = 8
_SUBJECT_WORDS = 6
_OWNERS_ONLY: frozenset[Kind] = frozenset({"preference", "protocol"})
_ENTRY = re.compile(r"^(?:[-*•]|\d{1,9}[.)])\s+")
_DIVIDED = re.compile(r":\s|：|\s[-–—]\s|\|")  # noqa: RUF001 - the dashes and the colon that models write
_NOTHING = re.compile(
    rf"(?:none|nothing|n/?a|null|unknown|no (?:{'|'.join(FIELDS)})|not (?:mentioned|stated|applicable)|empty|-+)[.!]?",
    re.IGNORECASE,
)


def worth(rows: Sequence[MessageRow], *, of_others: bool = False) -> bool:
    """Return whether a conversation is long enough to be distilled; with `of_others` only their own words count."""
    counted = [row for row in rows if not of_others or (row.role == "user" and not row.is_note)]
    size = sum(len(words_of(block).encode()) for row in counted for block in blocks(row.message))
    return len(counted) >= (_WORTH_OF_OTHERS if of_others else _WORTH_MESSAGES) or size >= _WORTH_BYTES


def needs_summary(session_key: str, provenance: Provenance, *, whole: bool) -> bool:
    """Return whether a summary is read later: in a conversation that goes on, or by the SOUL if it rests on no others.

    `whole` says that the conversation is over.
    """
    return not whole or is_main(session_key) or provenance >= Provenance.SELF


def fields_for(session_key: str, provenance: Provenance) -> tuple[str, ...]:
    """Return the lists that may be filled from a conversation whose least trusted words are of `provenance`."""
    kinds = kinds_from(provenance)
    if not (is_main(session_key) and provenance is Provenance.OWNER):
        kinds -= _OWNERS_ONLY
    return tuple(name for name, kind in FIELDS.items() if kind in kinds)


def summary_of(answer: Mapping[str, Any], instructions: str, redact: Callable[[str], str]) -> str:
    """Return the summary in a model's answer to `instructions`; "" if there is no usable one."""
    said = answer.get("summary")
    text = " ".join(clean(redact(said)).split()) if isinstance(said, str) else ""
    return _cut(text, SUMMARY_CHARS) if _usable(text, instructions) else ""


def memories_of(
    answer: Mapping[str, Any],
    instructions: str,
    redact: Callable[[str], str],
    *,
    session_key: str,
    provenance: Provenance,
    tags: tuple[str, ...] = (),
) -> tuple[NewMemory, ...]:
    """Return the memories in a model's answer, at most a dozen; entries about one subject become one memory."""
    found: dict[tuple[Kind, str], list[str]] = {}
    subjects: dict[tuple[Kind, str], str] = {}
    for name in fields_for(session_key, provenance):
        for entry in _entries(answer.get(name)):
            text = one_line(redact(entry), _SUBJECT_CHARS + _BODY_CHARS)
            if not _usable(text, instructions):
                continue
            subject, body = _divided(text)
            key = (FIELDS[name], subject.casefold())
            subjects.setdefault(key, subject)
            bodies = found.setdefault(key, [])
            if body.casefold() not in map(str.casefold, bodies):
                bodies.append(body)
    return tuple(
        NewMemory(
            kind=kind,
            subject=subjects[kind, subject],
            body=_cut("; ".join(bodies), _BODY_CHARS),
            tags=tags,
            source=session_key,
            trust=trust_of(provenance),
        )
        for (kind, subject), bodies in list(found.items())[:MOST_MEMORIES]
    )


def _entries(value: object) -> Iterator[str]:
    """Yield the entries of a list in the forms in which small models write it: texts, lines of a text, or objects."""
    match value:
        case str():
            yield from (_ENTRY.sub("", line.strip(), count=1) for line in value.splitlines())
        case list():
            for item in value:
                yield from _entries(item)
        case dict():
            yield ": ".join(str(part) for part in value.values() if isinstance(part, str | int | float))


def _divided(text: str) -> tuple[str, str]:
    """Return what an entry is about, and what it says about it."""
    about, *rest = (part.strip() for part in _DIVIDED.split(text, maxsplit=1))
    if rest and rest[0] and 0 < len(about) <= _SUBJECT_CHARS:
        return about, rest[0]
    return " ".join(text.split()[:_SUBJECT_WORDS]).rstrip(".,;:")[:_SUBJECT_CHARS], text


def _usable(text: str, instructions: str) -> bool:
    """Return whether a text says something of its own, which no part of the instructions does."""
    is_empty = len(text.encode()) < _FEWEST_BYTES or _NOTHING.fullmatch(text.rpartition(": ")[2])
    return not is_empty and text.casefold() not in " ".join(instructions.casefold().split())


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"
