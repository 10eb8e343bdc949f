"""People's declarations and requests about their own data: which applies to us, and what it allows. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from adapters.atproto.records import POST
from adapters.atproto.types import Record
from common.provenance import Importance
from common.text.rights_requests import RequestKind

Choice = Literal["allow", "deny", "unset"]
Found = Literal["first", "possible", "called"]
"""The occasions for reading a post: before its turn, if no turn looks for a request, or if the model called it one."""
ASKED: Final = "asked"
"""The act of a turn whose model found that the post asks about its author's own data."""


@dataclass(frozen=True, slots=True)
class Preference:
    """A person's choices, as they apply to us.

    The SOUL trains no model, so `training` decides nothing here; `soul know` shows all that a person declared.

    Attributes:
        training: models may be trained on their posts.
        inference: their posts may stand in a prompt.
        synthetic_content: a model may write from their posts, for example a reply.
        embedding: searchable memories may be made of their posts.

    """

    training: Choice = "unset"
    inference: Choice = "unset"
    synthetic_content: Choice = "unset"
    embedding: Choice = "unset"


@dataclass(frozen=True, slots=True)
class Addressed:
    """A post or a message that somebody wrote to us.

    Attributes:
        uri: of the post, or another text that is unique to the message.
        did: its author. A request in it concerns this account and no other.
        handle: its author's handle at that time.
        text: what was written; neither a quoted post nor the text of a picture.
        importance: how much its author matters for the day's budget.
        answers: the uri of the post or message that it answers; "" if it answers none.

    """

    uri: str
    did: str
    handle: str
    text: str
    importance: Importance = "stranger"
    answers: str = ""


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """The result of the requests in a post.

    `answer`: they are carried out, and `text` is to be sent once. `silent`: they are carried out, or there were none
    (no `kinds`), and nothing may be said. `later`: they wait for `retry_in_s` seconds.
    """

    code: Literal["answer", "silent", "later"]
    kinds: tuple[RequestKind, ...] = ()
    text: str = ""
    reason: str = ""
    retry_in_s: float = 0.0

    @property
    def ends(self) -> bool:
        """Whether the answer ends the conversation."""
        return not {"forget", "no_reply"}.isdisjoint(self.kinds)


PREFERENCE = "community.lexicon.preference.ai"
INTENTS = "org.user-intents.declaration"

_FIELDS = {
    "training": "training",
    "inference": "inference",
    "syntheticContent": "synthetic_content",
    "embedding": "embedding",
}
_ENTITY_NAMES = ("entity", "did", "domain")
Scope = Literal["entity", "collection", "global", "unknown", "other"]
_RANK: Mapping[Scope, int] = {"entity": 0, "collection": 1, "global": 2, "unknown": 3}


@dataclass(frozen=True, slots=True)
class _Declared:
    """The choices of one record, and its scope."""

    scope: Scope
    choices: Mapping[str, Choice]


def preference_of(records: Iterable[Record], intents: Iterable[Record], us: Collection[str]) -> Preference:
    """Return what a person's records say about their posts, for us.

    Each field is taken from the narrowest record that sets it: one that names us, then one about posts, then one about
    everything. A record with an unknown scope counts only in what it denies. The older declaration fills in what no
    other record sets.

    Args:
        records: of the collection `PREFERENCE`, newest first.
        intents: of the older collection `INTENTS`.
        us: our DID and our handle.

    """
    names = {name.lower() for name in us if name}
    declared = [_declared(record, names) for record in records]
    ranked = sorted((one for one in declared if one.scope in _RANK), key=lambda one: _RANK[one.scope])
    chosen: dict[str, Choice] = {}
    for one in ranked:
        for field, choice in one.choices.items():
            if choice != "unset" and (one.scope != "unknown" or choice == "deny"):
                chosen.setdefault(field, choice)
    for record in intents:
        if (choice := _choice(record.value.get("syntheticContentGeneration"))) != "unset":
            chosen.setdefault("synthetic_content", choice)
    return Preference(**chosen)


def may_stand_in_prompt(preference: Preference | None) -> bool:
    """Return whether a person's post may stand in a prompt; None means that their choice could not be read."""
    return preference is not None and preference.inference != "deny"


def may_reply(preference: Preference, *, asked: bool) -> bool:
    """Return whether a reply may be made from a person's post; `asked` means that they asked us directly."""
    return asked or preference.synthetic_content != "deny"


def _declared(record: Record, us: Collection[str]) -> _Declared:
    held = record.value.get("preferences")
    values = held if isinstance(held, dict) else record.value
    choices = {field: _choice(values.get(name)) for name, field in _FIELDS.items()}
    return _Declared(_scope(record, us), choices)


def _scope(record: Record, us: Collection[str]) -> Scope:
    scope = record.value.get("scope")
    if scope is None:
        return "global" if record.uri.endswith("/self") else "unknown"
    if isinstance(scope, str):
        return "global" if scope.rpartition("#")[2].startswith("global") else "unknown"
    if not isinstance(scope, dict):
        return "unknown"
    if named := [*_texts(scope, _ENTITY_NAMES)]:
        return "entity" if any(name in us for name in named) else "other"
    if collections := [*_texts(scope, ("collection",))]:
        return "collection" if POST.lower() in collections else "other"
    return "global" if str(scope.get("$type", "")).rpartition("#")[2].startswith("global") else "unknown"


def _texts(scope: Mapping[str, object], names: Iterable[str]) -> Iterator[str]:
    yield from (value.lower() for value in map(scope.get, names) if isinstance(value, str) and value)


def _choice(value: object) -> Choice:
    """Return a choice that is written as a bare boolean or as an object with `allow`."""
    allowed = value.get("allow") if isinstance(value, dict) else value
    if not isinstance(allowed, bool):
        return "unset"
    return "allow" if allowed else "deny"
