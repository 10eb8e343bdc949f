"""A person about whom a home may hold data: an account, and nothing else. Pure.

An account is its DID. Display names decide nothing: a row or a record belongs to the person because it holds the DID,
and only there are the handles searched for and replaced.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import regex

from common.json_lines import json_line
from common.text.handles import HANDLE_BEFORE, HANDLE_BEHIND
from common.text.patterns import lazy_regex

SOMEBODY_DID = "did:web:forgotten.invalid"
SOMEBODY_HANDLE = "forgotten.invalid"
"""These replace a forgotten account: names that belong to nobody, and can never belong to anybody."""
_SOMEBODY = "somebody who is forgotten"

INVALID_HANDLE = "handle.invalid"
"""The network shows this for each account whose handle cannot be verified now: nobody's name."""

_LEAST_WORDS = 24
_CUT = 60
_PLAIN = re.compile(r"[A-Za-z0-9]+")
_WORD = re.compile(r"\w+")
_NEVER = lazy_regex(r"(?!)")


def account_words(handle: str, did: str = "") -> str:
    """Return the name of an account for the owner."""
    if SOMEBODY_HANDLE in {handle, did.rpartition(":")[2]}:
        return _SOMEBODY
    return f"@{handle}" if handle else did


@dataclass(frozen=True, slots=True)
class Person:
    """One account.

    Attributes:
        did: its DID; "" if only a handle is known, and then nothing belongs to it.
        handles: the handles it was seen under.
        names: its display names; they are only used for reports to the owner.

    """

    did: str
    handles: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def part(self) -> str:
        """The part of the DID that every form of it contains unescaped; it finds the rows that may hold the DID."""
        return max(_PLAIN.findall(self.did), key=len, default="")

    def holds_did(self, *texts: object) -> bool:
        """Return whether one of the texts holds the DID as a whole word; values that are not text hold none."""
        if not self.did:
            return False
        pattern = _did(self.did)
        return any(isinstance(text, str) and pattern.search(text) is not None for text in texts)

    def is_in(self, dids: object) -> bool:
        """Return whether the account is among the DIDs that a row is tied to, separated by spaces."""
        return bool(self.did) and isinstance(dids, str) and self.did in dids.split()

    def is_named_in(self, *texts: object) -> bool:
        """Return whether one of the texts holds the DID or a handle as a whole word; for reports."""
        handles = _handles(self.handles)
        named = (isinstance(text, str) and handles.search(text) is not None for text in texts)
        return self.holds_did(*texts) or any(named)

    def is_called_in(self, text: object) -> bool:
        """Return whether a text holds a display name as whole words: only for reports, as others may have that name."""
        said = f" {_words(text)} " if isinstance(text, str) else ""
        return any(f" {words} " in said for name in self.names if (words := _words(name)))

    def without_did(self, text: str) -> str:
        """Return a text with the DID replaced."""
        return _did(self.did).sub(SOMEBODY_DID, text) if self.did else text

    def redacted(self, text: str) -> str:
        """Return a text of something that is tied to the person, with DID and handles replaced."""
        return _handles(self.handles).sub(SOMEBODY_HANDLE, self.without_did(text))

    def redacted_value(self, value: object) -> object:
        """Return a JSON value with each text in it redacted; in the keys only the DID is replaced."""
        match value:
            case str():
                return self.redacted(value)
            case dict():
                return {self.without_did(str(key)): self.redacted_value(item) for key, item in value.items()}
            case list():
                return [self.redacted_value(item) for item in value]
            case _:
                return value

    def redacted_json(self, text: str) -> str:
        """Return JSON with each text in it redacted; if it is not JSON, redact it as text."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self.redacted(text)
        after = self.redacted_value(value)
        return text if after == value else json_line(after).decode().removesuffix("\n")


@dataclass(frozen=True, slots=True)
class Trace:
    """The data of a person in a home.

    Attributes:
        person: the person.
        sessions: keys of the conversations in which they took part.
        intents: ids of the acts that reach them or resulted from what they wrote.
        posts: the names of what they wrote to us.
        copies: memories about them, as copies of memory hold them: subject and body, with a line end between; and
            whether each is deleted, or only loses their names.
        words: what we said to them, as it may appear in logs that name nobody; 24 letters or more.

    """

    person: Person
    sessions: frozenset[str] = frozenset()
    intents: frozenset[str] = frozenset()
    posts: frozenset[str] = frozenset()
    copies: Mapping[str, bool] = field(default_factory=dict)
    words: frozenset[str] = frozenset()

    def without_copies(self, text: str) -> str:
        """Return JSON, or JSON lines, with the deleted memories replaced."""
        instead = SOMEBODY_HANDLE if self.person.did else "(forgotten)"
        bodies = (copy.partition("\n")[2] for copy, goes in self.copies.items() if goes)
        for form in sorted(needles(bodies), key=len, reverse=True):
            text = text.replace(form, instead)
        return text

    def tells(self, line: str) -> bool:
        """Return whether a log line of the program holds some of the `words`."""
        return any(words in line for words in self.words)


@dataclass(frozen=True, slots=True)
class Held:
    """The data that one store holds about a person: how many entries, and the text in them."""

    store: str
    count: int
    words: tuple[str, ...] = ()


def tied(dids: Iterable[str]) -> str:
    """Return the form in which a row stores the accounts that it is tied to."""
    return " ".join(sorted(set(dids) - {""}))


def needles(texts: Iterable[str]) -> frozenset[str]:
    """Return the forms of long texts to search for in lines: whole, as in JSON, on one line, and cut."""
    found: set[str] = set()
    for text in texts:
        line = " ".join(text.split())
        forms = {text, line, line[:_CUT].rstrip(), json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
        found |= {form for form in forms if len(form) >= _LEAST_WORDS}
    return frozenset(found)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


@lru_cache(maxsize=64)
def _did(did: str) -> re.Pattern[str]:
    """Return a pattern of the whole DID: plain, and as URLs and keys of a store (`storage/objects.py`) escape it.

    It must not be preceded by a part of a name, and ends where its own grammar ends: trailing punctuation is not part
    of it, and in the method `plc` no punctuation is.
    """
    colon, percent = r"(?::|[%~](?:25)*3[Aa])", r"(?:%|[%~](?:25)+)"
    whole = "".join({":": colon, "%": percent}.get(one, re.escape(one)) for one in did)
    begins = r"(?:(?<![A-Za-z0-9])|(?<=[%~][0-9A-Fa-f]{2})|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4}))"
    more = "" if did.startswith("did:plc:") else r"(?:[:._-]|[%~](?:25)*3[Aa])*"
    return re.compile(rf"{begins}{whole}(?!{more}[A-Za-z0-9])")


@lru_cache(maxsize=64)
def _handles(handles: tuple[str, ...]) -> regex.Pattern[str]:
    """Return a pattern of handles as whole words, also in an account's URL, but not inside a longer name or address."""
    known = "|".join(re.escape(handle) for handle in handles if handle and handle.lower() != INVALID_HANDLE)
    if not known:
        return _NEVER
    begins = rf"(?:{HANDLE_BEFORE}|(?<=@)|(?<=at://)|(?<=/profile/))"
    return lazy_regex(rf"{begins}(?:{known}){HANDLE_BEHIND}(?!-\w|:/)(?!/\w+\.)", regex.IGNORECASE)
