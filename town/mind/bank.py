"""What the scripted mind knows by heart: the phrase files, loaded once and checked as they are loaded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import yaml
from pydantic import TypeAdapter

from common.text.strings import straighten
from town.mind import tools

FIELDS = ("sea", "mend", "table", "street")
GENERAL = "street"
ANY = "any"

_WORD = re.compile(r"[a-zà-ÿ]{3,}")
_PHRASES = files("town.mind") / "phrases"
COMMON = frozenset((_PHRASES / "common.txt").read_text("utf-8").split())


@dataclass(frozen=True)
class Idea:
    """Something to say, a question that goes with it, what others may answer (by field), and a last word on that."""

    say: str
    ask: str
    answers: Mapping[str, str]
    more: str

    def __post_init__(self) -> None:
        if ANY not in self.answers:
            raise ValueError(f"{self.say!r} needs an answer for `{ANY}`")

    @cached_property
    def stems(self) -> frozenset[str]:
        """The telling words of what is said and asked."""
        return stems(f"{self.say} {self.ask}")


@dataclass(frozen=True, slots=True)
class Field:
    """What a mind may care about.

    `words` recognise it; `general` holds for most of it; `beyond` says what does not; `notes` are posts by themselves.
    """

    name: str
    label: str
    words: frozenset[str]
    beyond: tuple[str, ...]
    general: tuple[str, ...]
    notes: tuple[str, ...]
    ideas: tuple[Idea, ...]


@dataclass(frozen=True, slots=True)
class PhraseKind:
    """A kind of thing people say, how to recognise it, and what to do: reply, thought, like, exit or silent.

    `say` holds phrases by field.
    """

    name: str
    match: re.Pattern[str]
    say: Mapping[str, tuple[str, ...]]
    act: str = "reply"


@dataclass(frozen=True)
class Bank:
    """All of it.

    `known_from` counts the ideas a stem occurs in; `lines` is the rest of `talk.yaml` by its headings, `room` is
    `room.yaml`, `code` the rows of `coding.yaml` and of `tools.yaml`.
    """

    fields: Mapping[str, Field]
    known_from: Mapping[str, int]
    intents: tuple[PhraseKind, ...]
    lines: Mapping[str, Any]
    room: dict[str, Any]
    code: tuple[Mapping[str, Any], ...]

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Words of what can be built and talked about."""
        said = (word for row in self.code for word in _WORD.findall(f"{row['words']} {row.get('title', '')}".lower()))
        return frozenset(said).union(*(field.words for field in self.fields.values()))

    def ideas(self) -> Iterator[Idea]:
        """Every idea of every field."""
        return (idea for field in self.fields.values() for idea in field.ideas)

    def intent_of(self, text: str) -> PhraseKind | None:
        """The kind of thing that `text` says, if it is one that people usually say."""
        return next((intent for intent in self.intents if intent.match.search(text)), None)

    def asked_in(self, text: str) -> Idea | None:
        """The idea whose question stands in `text`."""
        flat = flatten(text)
        return next((idea for idea in self.ideas() if flatten(idea.ask) in flat), None)

    def invited_in(self, text: str) -> str:
        """The kind of general invitation that stands in `text`, if one does."""
        flat = flatten(text)
        kinds = self.lines["invite"].items()
        return next((kind for kind, phrases in kinds for phrase in phrases if flatten(phrase) in flat), "")

    def field_of(self, text: str) -> Field | None:
        """The field that most words of `text` belong to, if any do. The general one only breaks no ties."""
        words = _WORD.findall(text.lower())
        scores = {name: sum(word in field.words for word in words) for name, field in self.fields.items()}
        best = max(scores, key=lambda name: (scores[name], name != GENERAL))
        return self.fields[best] if scores[best] else None


@cache
def load_bank() -> Bank:
    """Read the phrase files, once in a process. Raises `ValueError` if one is not as it should be."""
    fields = {name: TypeAdapter(Field).validate_python({"name": name, **_read(name)}) for name in FIELDS}
    known_from = Counter(stem for field in fields.values() for idea in field.ideas for stem in idea.stems)
    lines = _read("talk")
    intents = TypeAdapter(tuple[PhraseKind, ...]).validate_python([_intent(raw) for raw in lines.pop("intents")])
    code = (*_load("coding"), *tools.rows(_read("tools")))
    return Bank(fields, known_from, intents, lines, _read("room"), code)


def stems(text: str) -> frozenset[str]:
    """The telling words of a text, cut so that `tides` meets `tide` and `mended` meets `mending`."""
    words = (word for word in _WORD.findall(text.lower()) if word not in COMMON)
    return frozenset(re.sub(r"(?:ings?|ed|es|s|e)$", "", word) or word for word in words)


def flatten(text: str) -> str:
    """A text for comparison: lower case, straight quotes, single spaces."""
    return " ".join(straighten(text).lower().split())


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = _load(name)
    return content


def _load(name: str) -> Any:  # noqa: ANN401 - any YAML
    return yaml.safe_load((_PHRASES / f"{name}.yaml").read_text("utf-8"))


def _intent(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """An intent as it is written; a plain list of phrases is for any field."""
    said = raw.get("say") or {}
    by_field = {ANY: said} if isinstance(said, list) else said
    return {**raw, "match": re.compile(raw["match"], re.IGNORECASE), "say": by_field}
