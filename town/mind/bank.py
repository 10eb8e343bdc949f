"""What the scripted mind knows by heart: the phrase files, loaded once and checked as they are loaded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml

from common.text.strings import straighten

FIELDS = ("sea", "mend", "table", "street")
GENERAL = "street"
ANY = "any"

_WORD = re.compile(r"[a-zà-ÿ]{3,}")
COMMON = frozenset((files("town.mind") / "phrases" / "common.txt").read_text("utf-8").split())


@dataclass(frozen=True, slots=True)
class Idea:
    """Something to say, a question that goes with it, what others may answer (by field), and a last word on that."""

    say: str
    ask: str
    answers: Mapping[str, str]
    more: str
    stems: frozenset[str]


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
class Intent:
    """A kind of thing people say, how to recognise it, and what to do: reply, thought, like, exit or silent.

    `say` holds phrases by field.
    """

    name: str
    match: re.Pattern[str]
    act: str
    say: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Bank:
    """All of it.

    `known_from` counts the ideas a stem occurs in; `lines` is the rest of `talk.yaml` by its headings, `room` is
    `room.yaml`.
    """

    fields: Mapping[str, Field]
    known_from: Mapping[str, int]
    intents: tuple[Intent, ...]
    lines: Mapping[str, Any]
    room: dict[str, Any]

    def ideas(self) -> Iterator[tuple[Field, Idea]]:
        """Every idea with its field."""
        return ((field, idea) for field in self.fields.values() for idea in field.ideas)

    def intent_of(self, text: str) -> Intent | None:
        """The kind of thing that `text` says, if it is one that people usually say."""
        return next((intent for intent in self.intents if intent.match.search(text)), None)

    def asked_in(self, text: str) -> Idea | None:
        """The idea whose question stands in `text`."""
        flat = flatten(text)
        return next((idea for _, idea in self.ideas() if flatten(idea.ask) in flat), None)

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


def load_bank() -> Bank:
    """Read the phrase files. Raises `KeyError` or `ValueError` if one is not as it should be."""
    folder = files("town.mind") / "phrases"
    fields = {name: _field(name, yaml.safe_load((folder / f"{name}.yaml").read_text("utf-8"))) for name in FIELDS}
    lines = yaml.safe_load((folder / "talk.yaml").read_text("utf-8"))
    intents = tuple(
        Intent(
            name=raw["name"],
            match=re.compile(raw["match"], re.IGNORECASE),
            act=raw.get("act", "reply"),
            say=_by_field(raw.get("say", ())),
        )
        for raw in lines.pop("intents")
    )
    known_from = Counter(stem for field in fields.values() for idea in field.ideas for stem in idea.stems)
    room = yaml.safe_load((folder / "room.yaml").read_text("utf-8"))
    return Bank(fields, known_from, intents, lines, room)


def stems(text: str) -> frozenset[str]:
    """The telling words of a text, cut so that `tides` meets `tide` and `mended` meets `mending`."""
    words = (word for word in _WORD.findall(text.lower()) if word not in COMMON)
    return frozenset(re.sub(r"(?:ings?|ed|es|s|e)$", "", word) or word for word in words)


def flatten(text: str) -> str:
    """A text for comparison: lower case, straight quotes, single spaces."""
    return " ".join(straighten(text).lower().split())


def _by_field(said: Mapping[str, list[str]] | list[str]) -> dict[str, tuple[str, ...]]:
    """Phrases by field; a plain list is for any."""
    return {key: tuple(lines) for key, lines in (said if isinstance(said, Mapping) else {ANY: said}).items() if lines}


def _field(name: str, raw: Mapping[str, Any]) -> Field:
    ideas = tuple(
        Idea(
            say=idea["say"],
            ask=idea["ask"],
            answers=dict(idea["answers"]),
            more=idea["more"],
            stems=stems(f"{idea['say']} {idea['ask']}"),
        )
        for idea in raw["thoughts"]
    )
    if any(ANY not in idea.answers for idea in ideas):
        raise ValueError(f"{name}: each thought needs an answer for `{ANY}`")
    return Field(
        name=name,
        label=raw["label"],
        words=frozenset(raw["words"]),
        beyond=tuple(raw["beyond"]),
        general=tuple(raw["general"]),
        notes=tuple(raw["notes"]),
        ideas=ideas,
    )
