"""Validates what a model reports before anything else uses it: its decision about a turn in the agent space. Pure.

Field names and words of a fixed set are recognised however a model spells them. A null of an optional field and
placeholders of small models (`"none"`, an issue 0) count as left out; no value is converted if that could change its
meaning. Text of digits is taken as a whole number where the schema has one, and JSON in a text as a list or an object.
The impression that somebody's words leave comes with the call that answers them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    field_validator,
    model_validator,
)

Impressed = Literal["", "challenge", "question"]
"""`challenge`: they disagree with us; `question`: they leave us with a question that we cannot answer yet."""

_KNOWN = frozenset(get_args(Impressed))


def _known_or_none(value: object) -> object:
    return value if isinstance(value, str) and value in _KNOWN else ""


Impression = Annotated[Impressed, BeforeValidator(_known_or_none)]
"""The field of an input model; any other value counts as left out."""


_TRUTH = {"true": True, "false": False}
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,15}")
_STRUCTURES: dict[str, type] = {"array": list, "object": dict}
_CHOICES = ("anyOf", "oneOf", "allOf")
_DEFINED = "#/$defs/"

Schema = Mapping[str, Any]


def squashed(word: str) -> str:
    """Return the letters and digits of a word, in lower case and joined."""
    return "".join(filter(str.isalnum, word.casefold()))


def named(sent: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return `sent` with each field renamed to the one of `names` that it spells; an exact name wins."""
    known = {squashed(name): name for name in names}
    found = {name: value for name, value in sent.items() if known.get(squashed(name), name) == name}
    for name, value in sent.items():
        found.setdefault(known.get(squashed(name), name), value)
    return found


def brought_home(schema: Schema, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was sent, with names and words spelled as in `schema`, the schema of an object.

    At every level, a null of a field that is not required counts as left out.
    """
    return _object(schema, sent, schema.get("$defs", {}))


def _object(schema: Schema, sent: Mapping[str, Any], defined: Schema) -> dict[str, Any]:
    kinds, required = schema.get("properties", {}), schema.get("required", ())
    given = ((name, one) for name, one in named(sent, kinds).items() if one is not None or name in required)
    return {name: _value(kinds.get(name, {}), one, defined) for name, one in given}


def _value(schema: Schema, value: Any, defined: Schema) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value, spelled as in the schema."""
    kinds = list(_kinds(schema, defined))
    value = _unpacked(kinds, value)
    if isinstance(value, Mapping):
        return _object(next((one for one in kinds if "properties" in one), {}), value, defined)
    if isinstance(value, list):
        item: Schema = next((one["items"] for one in kinds if "items" in one), {})
        return [_value(item, one, defined) for one in value]
    return _scalar(kinds, value)


def _unpacked(kinds: Sequence[Schema], value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return the list or the object in a text that holds its JSON, if the schema has one of these and no text."""
    types = {str(one.get("type")) for one in kinds}
    structures = tuple(_STRUCTURES[one] for one in types & _STRUCTURES.keys())
    if not isinstance(value, str) or "string" in types or not structures:
        return value
    try:
        found = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value
    return found if isinstance(found, structures) else value


def _scalar(kinds: Sequence[Schema], value: Any) -> Any:  # noqa: ANN401 - any JSON value
    types = {one.get("type") for one in kinds if "enum" not in one}
    if isinstance(value, float) and value.is_integer() and "integer" in types:
        return int(value)
    if not isinstance(value, str) or "string" in types:
        return value
    if "boolean" in types and value.strip().casefold() in _TRUTH:
        return _TRUTH[value.strip().casefold()]
    if "integer" in types and _WHOLE_NUMBER.fullmatch(value.strip()):
        return int(value)
    words = {word for one in kinds for word in (*one.get("enum", ()), one.get("const")) if isinstance(word, str)}
    spelt = [word for word in words if squashed(word) == squashed(value)]
    return spelt[0] if len(spelt) == 1 else value


def _kinds(schema: Schema, defined: Schema) -> Iterator[Schema]:
    """Yield the schemas of which a value may follow one."""
    if str(schema.get("$ref", "")).startswith(_DEFINED):
        yield from _kinds(defined.get(schema["$ref"].removeprefix(_DEFINED), {}), defined)
    choices = [one for name in _CHOICES for one in schema.get(name, ())]
    for one in choices:
        yield from _kinds(one, defined)
    if not choices:
        yield schema


MAX_COMMITMENTS_PER_DECISION = 5


CommitmentType = Literal["create_issue", "create_plan", "comment_issue", "post_bluesky"]
VALID_COMMITMENT_TYPES: tuple[CommitmentType, ...] = get_args(CommitmentType)
GITHUB_COMMITMENT_TYPES: frozenset[CommitmentType] = frozenset({"create_issue", "create_plan", "comment_issue"})

_ALIASES = {
    "action": "type",
    "commitmentType": "type",
    "kind": "type",
    "repository": "repo",
    "name": "title",
    "subject": "title",
    "body": "description",
    "details": "description",
    "text": "content",
    "message": "content",
    "post": "content",
    "issue": "issue_number",
    "number": "issue_number",
}
_TYPE_ALIASES = tuple(alias for alias, name in _ALIASES.items() if name == "type")
_REPO = re.compile(
    r"(?:https?://)?(?:www\.)?(?:github\.com/)?([A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?)/([\w.-]+?)(?:\.git)?/?"
)
_SHORT_NAME = re.compile(r"[\w.-]{0,99}[A-Za-z0-9]", re.ASCII)
_PAGE = re.compile(
    r"((?:https?://)?(?:www\.)?github\.com/(?!(?:apps|enterprise|marketplace|orgs|settings|sponsors|topics|users)/)"
    r"[^/\s?#]+/[^/\s?#]+)[/?#]\S*"
)
_SAYS_NOTHING = frozenset({"", "-", "n-a", "n.a.", "n/a", "na", "nil", "none", "null", "undefined", "unknown"})
_NUMBER = re.compile(r"(?:https?://\S+/issues/|issue\s*)?#?(\d{1,9})", re.IGNORECASE | re.ASCII)
_ISSUE_NUMBER = re.compile(r"(?<![\w&#])#(\d{1,9})(?![\w;])")


def says_nothing(text: str) -> bool:
    """Return whether a text is a placeholder by which models say that there is nothing to say."""
    said = text.strip().casefold()
    return said in _SAYS_NOTHING or said.rstrip(".!") in _SAYS_NOTHING


def repository_name(said: str) -> str:
    """Return the `owner/name` of a repository given by that or by the address of a page of it; "" if it is neither."""
    page = _PAGE.fullmatch(said)
    found = _REPO.fullmatch(page[1] if page else said)
    return f"{found[1]}/{found[2]}" if found else ""


class Commitment(BaseModel):
    """A commitment; `description` is the body of the artefact, `repo` is `owner/name` or only the short name.

    Fields inside `params` count as if they were beside it; unknown fields are dropped.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True, defer_build=True)

    type: CommitmentType
    repo: str = ""
    title: str = ""
    description: str = ""
    content: str = ""
    issue_number: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_params(cls, value: object) -> object:
        params = value.get("params") if isinstance(value, dict) else None
        return {**params, **value} if isinstance(value, dict) and isinstance(params, dict) else value

    @field_validator("repo", "title", "description", "content", mode="before")
    @classmethod
    def _absent_is_empty(cls, value: object) -> object:
        return "" if value is None else value

    @field_validator("issue_number", mode="before")
    @classmethod
    def _number(cls, value: object) -> int | None:
        """Return the number that is meant; a value that is not a number, or below 1, names no issue."""
        if isinstance(value, str):
            found = _NUMBER.fullmatch(value.strip())
            value = int(found[1]) if found else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return int(value) if value >= 1 and value % 1 == 0 else None

    @field_validator("repo")
    @classmethod
    def _repo(cls, value: str) -> str:
        if says_nothing(value):
            return ""
        found = repository_name(value) or (value if _SHORT_NAME.fullmatch(value) else "")
        if not found:
            raise ValueError("must look like owner/name")
        return found

    @model_validator(mode="after")
    def _says_something(self) -> Commitment:
        if not (self.title or self.description or self.content):
            raise ValueError("needs a title, a description or a content")
        return self

    @property
    def number(self) -> int | None:
        """The issue meant: as given, else the first `#N` in title, description or content."""
        if self.issue_number is not None:
            return self.issue_number
        found = _ISSUE_NUMBER.search(f"{self.title}\n{self.description}\n{self.content}")
        return int(found[1]) if found else None

    @property
    def is_github(self) -> bool:
        return self.type in GITHUB_COMMITMENT_TYPES


class ExtractedCommitment(BaseModel):
    """A commitment found in text that was already said."""

    model_config = ConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True, defer_build=True)

    description: str = Field(min_length=1)
    type: CommitmentType
    params: dict[str, Any] = Field(default_factory=dict)
    confidence: Literal["high", "medium", "low"]

    @model_validator(mode="before")
    @classmethod
    def _spelt(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        sent = brought_home(_FOUND_SCHEMA, named(value, [*cls.model_fields, *_TYPE_ALIASES]))
        kind = next((sent[alias] for alias in _TYPE_ALIASES if alias in sent), None)
        return sent if kind is None or "type" in sent else brought_home(_FOUND_SCHEMA, {**sent, "type": kind})

    @field_validator("params", mode="before")
    @classmethod
    def _absent_is_empty(cls, value: object) -> object:
        return {} if value is None else value


SPACE_DECISION_TOOL = "space_decision"
_COMMITMENT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": {"type": "string", "enum": list(VALID_COMMITMENT_TYPES)},
        "repo": {"type": "string"},
        "title": {"type": "string"},
        "description": {"type": "string"},
        "content": {"type": "string"},
        "issue_number": {"type": "number"},
    },
}
"""JSON Schema of one commitment of a decision; the skill explains the fields."""


class SpaceDecision(BaseModel):
    """A model's decision: whether to speak, why, the message, and the commitments that it makes.

    `declines`: the message tells the host that the request will not be carried out. Except for the decision itself, a
    field of a wrong type is left out, and a single commitment becomes a list.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        defer_build=True,
        json_schema_extra={"required": ["shouldSpeak", "reason"]},
    )

    should_speak: StrictBool = Field(alias="shouldSpeak")
    reason: str = ""
    message: str = ""
    commitments: list[dict[str, Any]] = Field(default_factory=list, json_schema_extra={"items": _COMMITMENT_SCHEMA})
    declines: bool = False
    adjust_behavior: dict[str, Any] | None = Field(default=None, alias="adjustBehavior")
    impression: Impression = ""

    @field_validator("message", mode="before")
    @classmethod
    def _words(cls, value: object) -> object:
        return "" if value is None else value

    @field_validator("reason", mode="before")
    @classmethod
    def _text_or_empty(cls, value: object) -> str:
        return value if isinstance(value, str) else ""

    @field_validator("commitments", mode="before")
    @classmethod
    def _objects(cls, value: object) -> list[object]:
        listed = value if isinstance(value, list | tuple) else [value]
        return [one for one in listed if isinstance(one, Mapping) and one]

    @field_validator("declines", mode="before")
    @classmethod
    def _true_or_false(cls, value: object) -> bool:
        return value is True

    @field_validator("adjust_behavior", mode="before")
    @classmethod
    def _object_or_none(cls, value: object) -> object:
        return value if isinstance(value, Mapping) else None


@cache
def _decision_schema() -> Schema:
    return SpaceDecision.model_json_schema()


_FOUND_SCHEMA: Mapping[str, Any] = ExtractedCommitment.model_json_schema()


@dataclass(frozen=True, slots=True)
class ParseResult:
    """A decision, or in `error` what is wrong with it: `path: message`, joined by `; `."""

    data: SpaceDecision | None
    error: str = ""

    @property
    def success(self) -> bool:
        return self.data is not None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A commitment that was refused, and the reason."""

    raw: object
    reason: str


@dataclass(frozen=True, slots=True)
class CommitmentValidation:
    """The accepted commitments, in the given order, and the refused ones."""

    valid: tuple[Commitment, ...]
    dropped: tuple[Dropped, ...]


def parse_space_decision(raw: object) -> ParseResult:
    """Return a model's answer as a decision; only true or false decide whether to speak."""
    if not isinstance(raw, Mapping):
        return ParseResult(None, "(root): must be an object")
    try:
        return ParseResult(SpaceDecision.model_validate(brought_home(_decision_schema(), raw)))
    except ValidationError as error:
        return ParseResult(None, in_words(error))


def normalize_commitment_fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return `raw` with other usual names replaced by the field's own; a value under its own name wins unless empty."""
    raw = named(raw, [*Commitment.model_fields, *_ALIASES])
    normal = {key: value for key, value in raw.items() if key not in _ALIASES}
    for alias, name in _ALIASES.items():
        if alias in raw and _plain(raw[alias]) and normal.get(name, "") in (None, ""):
            normal[name] = raw[alias]
    return normal


def validate_commitments(
    raws: Sequence[object], *, social_only: bool = False, most: int = MAX_COMMITMENTS_PER_DECISION
) -> CommitmentValidation:
    """Return which of a model's commitments are complete, known, and of a kind that is allowed here."""
    valid: list[Commitment] = []
    dropped: list[Dropped] = []
    for raw in raws:
        found = _commitment(raw)
        if isinstance(found, str):
            dropped.append(Dropped(raw, found))
        elif social_only and found.is_github:
            dropped.append(Dropped(raw, f"Social-only: {found.type} needs GitHub"))
        elif found.type == "comment_issue" and found.number is None:
            dropped.append(Dropped(raw, "comment_issue names no issue: give issue_number"))
        elif len(valid) == most:
            dropped.append(Dropped(raw, f"more than {most} commitments in one decision"))
        else:
            valid.append(found)
    return CommitmentValidation(tuple(valid), tuple(dropped))


def in_words(error: ValidationError) -> str:
    """Return what is wrong and where: `path: message`, joined by `; `."""
    return "; ".join(
        f"{'.'.join(str(step) for step in item['loc']) or '(root)'}: {item['msg'].removeprefix('Value error, ')}"
        for item in error.errors()
    )


def _commitment(raw: object) -> Commitment | str:
    if not isinstance(raw, Mapping):
        return "must be an object"
    try:
        return Commitment.model_validate(brought_home(_COMMITMENT_SCHEMA, normalize_commitment_fields(raw)))
    except ValidationError as error:
        return in_words(error)


def _plain(value: object) -> bool:
    """Return whether a value under another name can fit a field: a nested object or a truth value cannot."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)
