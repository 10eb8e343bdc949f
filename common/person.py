"""Somebody of whom a home may hold words: by what they are recognised in a text. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

_LONG_NAME = 8
_LEAST_WORDS = 24
_CUT = 60
_ESCAPED = r"|(?<=\\[nrtbf])|(?<=\\u[0-9a-f]{4})"
"""What may stand before a name in JSON: the letter of an escape is no letter of the text."""


@dataclass(frozen=True, slots=True)
class Person:
    """One account.

    Attributes:
        did: its DID; "" where only a handle is known.
        handles: those it was seen under.
        names: its display names. Only those that can hardly mean anything else are looked for: two words, or 8 letters.

    """

    did: str
    handles: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def joined(self, other: Person) -> Person:
        """Return the same person with all handles and names of both."""
        handles, names = (*self.handles, *other.handles), (*self.names, *other.names)
        return Person(self.did or other.did, tuple(dict.fromkeys(handles)), tuple(dict.fromkeys(names)))

    def is_named_in(self, *texts: object) -> bool:
        """Return whether one of the texts holds the DID, a handle or a name; what is no text holds none."""
        pattern = _pattern(self)
        return any(isinstance(text, str) and pattern.search(text) is not None for text in texts)


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a person's words lie beside the places that name them.

    Attributes:
        person: whose.
        sessions: keys of the conversations in which they took part.
        intents: ids of the intents that reach them, name them, or stand in the threads of these conversations.
        posts: URIs of what others wrote to us in the threads of these conversations.
        words: what is remembered of them and what was said to them, as it may stand in files again; 24 letters or more.

    """

    person: Person
    sessions: frozenset[str] = frozenset()
    intents: frozenset[str] = frozenset()
    posts: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()

    def joined(self, other: Trace) -> Trace:
        """Return both together."""
        return Trace(
            self.person.joined(other.person),
            self.sessions | other.sessions,
            self.intents | other.intents,
            self.posts | other.posts,
            self.words | other.words,
        )

    def covers(self, *texts: str) -> bool:
        """Return whether one of the texts names the person, one of the conversations, or holds some of the words."""
        if self.person.is_named_in(*texts):
            return True
        needles = [*self.sessions, *self.words]
        return any(needle in text for text in texts for needle in needles)


@dataclass(frozen=True, slots=True)
class Held:
    """What one store holds of a person: how many entries, and the words in them."""

    store: str
    count: int
    words: tuple[str, ...] = ()


def needles(texts: Iterable[str]) -> frozenset[str]:
    """Return the forms under which long texts are found in files: whole, as JSON has them, on one line, and cut."""
    found: set[str] = set()
    for text in texts:
        line = " ".join(text.split())
        forms = {text, line, line[:_CUT].rstrip(), json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
        found |= {form for form in forms if len(form) >= _LEAST_WORDS}
    return frozenset(found)


@lru_cache(maxsize=64)
def _pattern(person: Person) -> re.Pattern[str]:
    return re.compile("|".join(_alternatives(person)) or r"(?!)", re.IGNORECASE)


def _alternatives(person: Person) -> Iterator[str]:
    if person.did:
        yield from (re.escape(form) for form in (person.did, quote(person.did, safe=""), _as_key(person.did)))
    for handle in person.handles:
        yield rf"(?:(?<![\w.-]){_ESCAPED}){re.escape(handle)}(?![\w-])"
    for name in _telling(person.names):
        yield from (rf"(?:(?<!\w){_ESCAPED}){re.escape(form)}(?!\w)" for form in {name, json.dumps(name)[1:-1]})


def _telling(names: Iterable[str]) -> Iterator[str]:
    for name in map(str.strip, names):
        if len(name.split()) > 1 or sum(map(str.isalpha, name)) >= _LONG_NAME:
            yield name


def _as_key(text: str) -> str:
    """Return a text as it stands in the key of an object: `adapters/storage/keys.py`."""
    return text.replace(":", "~3A").replace("/", "~2F")
