"""Tools: what a SOUL can do when the model asks. A tool is an input model and a small handler."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Literal

from pydantic import BaseModel

from common.importance import Importance
from common.provenance import Provenance
from modules.runtime.llm.dialect import ToolAnswer
from modules.services.work.types import Disposition

TIME_LIMIT_S = 60.0
"""How long a tool may take unless its family says otherwise."""

_DID = re.compile(r"\bdid:[a-z]+:[\w.%:-]*[\w-]")
Capability = Literal["social", "github", "code", "self"]


Effect = Literal["look", "fetch", "act"]
"""What a call leaves behind: a `look` nothing at all, anywhere; a `fetch` a request to an address that the model chose,
so that it needs what an act needs; an `act` something, here or in the world."""


@dataclass(frozen=True, slots=True)
class OwnerRequest:
    """What the owner wrote that a turn is about: the words by which an act of theirs is checked.

    Attributes:
        text: the words alone, without what was put beside them; all lines that the turn answers.
        mentions: the accounts that they name, where their program marked these: the words and the DID of each.
        named: the DIDs of the handles in the text, in lower case, as they answered when the turn began; "" for nobody.
        authors: the accounts of which it liked or reposted a post that the words do not give by its address.
        made: the ids of the intents that came of it in this turn. What came of it before was done before a restart.
        called: the answers of tools that came after the line before this turn began, as it was begun before a restart.
        said_before: the SOUL's last words before the line. They tell a judge what a short line answers.
        said_among: the least trusted words behind these.
        question: for one call: the part of them to which a judge found that the line says yes; `text` holds it, too.

    """

    text: str
    mentions: tuple[tuple[str, str], ...] = ()
    named: dict[str, str] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    authors: set[str] = field(default_factory=set)
    called: tuple[ToolAnswer, ...] = ()
    said_before: str = ""
    said_among: Provenance = Provenance.OWNER
    question: str = ""

    def names_of(self, did: str) -> list[str]:
        """Return the handles and the marked mentions by which the words name the account `did`."""
        return [name for name, named in (*self.named.items(), *self.mentions) if named == did]

    def account_of(self, handle: str) -> str:
        """Return the DID of a handle in lower case as the words name it; "" if they do not."""
        marked = {words.removeprefix("@").lower(): did for words, did in self.mentions}
        return marked.get(handle) or self.named.get(handle, "")

    def names(self, did: str) -> bool:
        """Return whether the words name the account `did`. A mention that was marked counts as it was marked."""
        return did in {*(marked for _, marked in self.mentions), *_DID.findall(self.text), *self.named.values()}


@dataclass(frozen=True, slots=True)
class Turn:
    """One stretch of thinking with tools.

    Attributes:
        loop: who thinks, for example `awareness`.
        provenance: the least trusted text in the turn so far: computed by code, never by the model. It sinks when a
            tool brings in somebody's words, and never rises.
        cause_id: what caused it: a notification's uri, or a name such as `expression`.
        subject: the life's own value, for its own tools.
        importance: for whom it is, as the budget sees it.
        origin: the provenance of who asked for the turn; by default what `provenance` was at its beginning.
        told_of: the provenance of the least trusted words that its task tells of; they take no tool away from it.
        hold: set by the executor for one call: why what it does was not ordered and waits for approval, else "".
        request: the owner's words that it is about; None where somebody else's are, or nobody's.
        is_ordered: set by the executor for one call: whether a judge of `request` alone found that it asks for it.
        accounts: the DIDs of the handles that its task names and of those that it was shown, by handle in lower case.
        written: set by the executor for one call: what the model wrote where the owner's line took the place of some of
            it; None where all of it was kept. It may repeat others' words.

    """

    loop: str
    provenance: Provenance
    cause_id: str | None = None
    subject: object | None = None
    importance: Importance = "own"
    origin: Provenance | None = None
    told_of: Provenance = Provenance.OWNER
    hold: str = ""
    request: OwnerRequest | None = None
    is_ordered: bool = False
    accounts: dict[str, str] = field(default_factory=dict, compare=False)
    written: BaseModel | None = None

    @property
    def asked_by(self) -> Provenance:
        """The provenance of who asked for the turn."""
        return self.provenance if self.origin is None else self.origin

    @property
    def rests_on(self) -> Provenance:
        """The provenance of the least trusted words behind what it does."""
        return min(self.provenance, self.told_of)

    @property
    def is_at_owner_word(self) -> bool:
        """Whether only the owner's words are in it, or a judge found that their line asks for the call."""
        return self.provenance is Provenance.OWNER or self.is_ordered


@dataclass(slots=True)
class Revision:
    """Whether the model was asked for another text in this turn already."""

    asked: bool = False

    def ask(self) -> bool:
        """Note that another text is asked for; return whether this is the first time."""
        is_first, self.asked = not self.asked, True
        return is_first


_NO_ACT = Disposition("")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a handler answers.

    Attributes:
        content: what the model reads.
        is_error: whether the call came to nothing.
        ends_turn: whether nothing more needs to be asked of the model.
        provenance: whose words the content holds, if they are not our own: the turn sinks to it.
        outcome: which act came of it, and what the turn came to where this ends it.
        draft: the text that was sent back to be written anew.
        url: where that which it made, or found in its place, stands.
        words: those of the request for which it did something.
        told: values for the words that tell of the act, beside the arguments of the call.
        decision: what the call decided, as the life that offers the tool reads it.
        went_wrong: whether it ran and did not end: its words may be those of somebody outside.
        malformed: whether the tool does not take the call as it was written: that tells the model what to write.
        answer: the name of the answer of its skill, where the call came to nothing by it.
        traceback: where a handler broke.

    """

    content: str
    is_error: bool = False
    ends_turn: bool = False
    provenance: Provenance | None = None
    outcome: Disposition = _NO_ACT
    draft: str = ""
    url: str = ""
    words: tuple[str, ...] = ()
    told: Mapping[str, str] = field(default_factory=dict)
    decision: Mapping[str, Any] = field(default_factory=dict)
    went_wrong: bool = False
    malformed: bool = False
    answer: str = ""
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A capability with a name.

    Attributes:
        name: as the model calls it, for example `bluesky_reply`.
        description: as the model reads it.
        input_model: validates what the model sent; its JSON Schema is what the model sees.
        capability: `social` tools are the only ones in a social-only life, besides `self`.
        needs: the least provenance at which the tool exists. A `look` is judged by who asked for the turn, an `act` by
            the least trusted text in it.
        handler: does it.
        subject: the kind of turn in which it has a meaning, by the type of `Turn.subject`; None for any.
        fits: whether it can serve a turn in which it would exist otherwise; None for always. It only takes tools away.
        time_limit_s: seconds after which the handler is stopped.
        effect: what it leaves behind.
        fields: descriptions of the input model's fields, by name, as the model reads them.
        given: the fields that the subject of a turn gives, by its type: they are taken there, and not shown.
        owner_fields: the fields that only a turn which the owner asked for shows and takes.
        holdable: whether its handler honours `Turn.hold`. In a turn that the owner began and whose provenance was
            lowered since, such an act is let through to wait for the owner's approval; any other that `needs` more is
            refused.
        named_fields: of those in `given`, the ones that a turn which the owner asked for shows: they may name another.
        named_only: whether it stays among others' words, where it is run only if a judge finds that the owner's newest
            line asks for it, and gives what it does not take from that line.
        needs_name: whether the owner must name whom it is done to: so a yes to a question that does is always judged.
        from_line: the fields of which among others' words only what is the owner's is taken (`in_owner_words`).
        own_act: returns the act of the SOUL's own that a call ends, moves or replaces, in words for the judge; "" for
            any other call.
        family: offered only once the conversation has opened this family, unless a turn asks for the tool by name; ""
            for always. It says nothing of who may use it.

    """

    name: str
    description: str
    input_model: type[BaseModel]
    capability: Capability
    needs: Provenance
    handler: Callable[[Any, Turn], Awaitable[ToolResult]]
    time_limit_s: float = TIME_LIMIT_S
    subject: type | UnionType | None = None
    fits: Callable[[Turn], bool] | None = None
    effect: Effect = "act"
    holdable: bool = False
    fields: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[type, frozenset[str]] = field(default_factory=dict)
    owner_fields: frozenset[str] = frozenset()
    named_fields: frozenset[str] = frozenset()
    named_only: bool = False
    needs_name: bool = False
    from_line: frozenset[str] = frozenset()
    own_act: Callable[[Any, Turn], Awaitable[str]] | None = None
    family: str = ""
