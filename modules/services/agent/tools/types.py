"""The types of tools, which the model can call. A tool is an input model and a small handler."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Literal

from pydantic import BaseModel

from common.provenance import Importance, Provenance
from modules.runtime.llm.dialect import ToolAnswer
from modules.services.work.types import Disposition

TIME_LIMIT_S = 60.0
"""How long a tool may take unless its family says otherwise."""

_DID = re.compile(r"\bdid:[a-z]+:[\w.%:-]*[\w-]")
Capability = Literal["social", "github", "code", "self"]


Effect = Literal["look", "fetch", "act"]
"""What a call leaves behind: a `look` nothing anywhere; a `fetch` a request to an address that the model chose, so it
needs the same trust as an act; an `act` something, here or in the world."""


@dataclass(frozen=True, slots=True)
class OwnAct:
    """An act of the SOUL's own that a call ends, moves or replaces: in words for a judge, and its own text, if any."""

    told: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class OwnerRequest:
    """The owner's words that a turn is about; the acts that they ask for are checked against them.

    Attributes:
        text: all lines that the turn answers, without anything added to them.
        mentions: the accounts that the owner's app marked in them: the words and the DID of each.
        named: the DIDs, as of the start of the turn, by handle in the text, in lower case; "" for nobody.
        linked: the same by handle in the addresses of posts in the text.
        authors: the accounts of which it liked or reposted a post whose address the words do not give.
        called: tool answers after the line from before this turn, if a restart interrupted it.
        said_before: the SOUL's last words before the line. They tell a judge what a short line answers.
        said_among: the provenance of the least trusted words behind `said_before`.
        question: for one call: the part of `said_before` that the line agrees to, as a judge found; also in `text`.

    """

    text: str
    mentions: tuple[tuple[str, str], ...] = ()
    named: dict[str, str] = field(default_factory=dict)
    linked: dict[str, str] = field(default_factory=dict)
    authors: set[str] = field(default_factory=set)
    called: tuple[ToolAnswer, ...] = ()
    said_before: str = ""
    said_among: Provenance = Provenance.OWNER
    question: str = ""

    def names_of(self, did: str) -> list[str]:
        """Return the handles and the marked mentions by which the words name the account `did`."""
        return [name for name, named in (*self.named.items(), *self.mentions) if named == did]

    def account_of(self, handle: str) -> str:
        """Return the DID of a handle (in lower case) that the words name; "" if they do not."""
        marked = {words.removeprefix("@").lower(): did for words, did in self.mentions}
        return marked.get(handle) or self.named.get(handle, "")

    def names(self, did: str) -> bool:
        """Return whether the words name the account `did`. A marked mention counts as the account in its mark."""
        return did in {*(marked for _, marked in self.mentions), *_DID.findall(self.text), *self.named.values()}


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the model with tools.

    Attributes:
        loop: the loop that runs it, for example `awareness`.
        provenance: that of the least trusted text in the turn so far: computed by code, never by the model. It drops
            when a tool brings in somebody's words, and never rises.
        cause_id: what caused it: a notification's URI, or a name such as `expression`.
        subject: the life's own value, for its own tools.
        importance: its importance for the budget.
        origin: the provenance of who asked for the turn; by default the initial `provenance`.
        told_of: the provenance of the least trusted words that its task reports; they take no tool away from it.
        hold: set by the executor for one call: why the act was not ordered and waits for approval, else "".
        request: the owner's words that it is about; None if it is about somebody else's words or nobody's.
        made: the ids of the intents that resulted from it, without those of its cause from before it was begun anew;
            None if its cause may have led to others.
        is_ordered: set by the executor for one call: whether a judge of `request` alone found that it asks for it.
        accounts: the handles that its task or the owner's earlier lines name, and those that it was shown, in lower
            case, with what each may be looked up by: its DID, or in the owner's lines the handle itself.
        shown_whole: the SHA-256 of each text that it was shown whole and may replace.
        written: set by the executor for one call: the model's arguments if the owner's line replaced some of them,
            else None. They may repeat others' words.
        files: the texts of SELF.md, GOALS.md and HEARTBEAT.md that it was shown last, by name.

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
    made: set[str] | None = None
    is_ordered: bool = False
    accounts: dict[str, str] = field(default_factory=dict, compare=False)
    shown_whole: set[str] = field(default_factory=set, compare=False)
    written: BaseModel | None = None
    files: dict[str, str] = field(default_factory=dict, compare=False)

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
        """Whether the turn holds only the owner's words, or a judge found that their line asks for the call."""
        return self.provenance is Provenance.OWNER or self.is_ordered


@dataclass(slots=True)
class Revision:
    """Tracks whether the model was already asked for another text in this turn."""

    asked: bool = False

    def ask(self) -> bool:
        """Record that another text is asked for; return whether this is the first time."""
        is_first, self.asked = not self.asked, True
        return is_first


_NO_ACT = Disposition("")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call.

    Attributes:
        content: what the model reads.
        is_error: whether the call failed.
        ends_turn: whether the turn ends with this call.
        provenance: that of the words in the content, None for the SOUL's own: the turn's is lowered to it.
        outcome: the act that resulted, and the disposition of the turn if this ends it.
        draft: the text that was sent back to be rewritten.
        url: the address of what it made, or found instead.
        words: the words of the request for which it did something.
        told: values for the text about the act, beside the arguments of the call.
        decision: what the call decided, for the life that offers the tool.
        went_wrong: whether it ran and failed: its content may hold untrusted text.
        malformed: whether the tool rejected the call as written; the content then says how to write it.
        answer: the name of the answer in the skill, if the call did not run or failed.
        traceback: the traceback of a handler that broke.

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
        name: the name by which the model calls it, for example `bluesky_reply`.
        description: the description that the model reads.
        input_model: validates what the model sent; its JSON Schema is what the model sees.
        capability: a social-only life has only `social` and `self` tools.
        needs: the lowest provenance at which the tool exists. A `look` is judged by who asked for the turn, an `act` by
            the least trusted text in it.
        handler: runs a call.
        subject: the type of `Turn.subject` that a turn needs for this tool; None for any.
        fits: whether it applies to a turn in which it would exist otherwise; None for always. It only removes the tool.
        time_limit_s: seconds after which the handler is stopped.
        effect: what it leaves behind.
        fields: descriptions of the input model's fields, by name, as the model reads them.
        given: fields that the subject of a turn sets, by its type: they are accepted there, but not shown.
        owner_fields: fields that are shown and accepted only in a turn that the owner asked for.
        holdable: whether its handler honours `Turn.hold`. In a turn that the owner began and whose provenance was
            lowered since, such an act is let through to wait for the owner's approval; any other that `needs` more is
            refused.
        named_fields: those of `given` that a turn which the owner asked for shows: they may name another target.
        named_only: whether it stays available among others' words, where it runs only if a judge finds that the owner's
            newest line asks for it and the line gives its arguments.
        needs_name: whether the owner must name the target, so that a yes to a question that names it is always judged.
        from_line: fields that take only the owner's words if others' words are in the turn (`in_owner_words`).
        own_act: returns the act of the SOUL's own that a call ends, moves or replaces; None for any other call.
        as_edit: for a tool that takes a whole text again: returns a call with only the lines that the owner must give,
            and what changes among the SOUL's own words, in words for the judge. None if a call is shown as it is.
        answers: the type of `Turn.subject` that a call answers, which ends the turn; None for none.
        closes: the type of `Turn.subject` whose turn a call ends without an answer; None for none.
        family: offered only once the conversation has opened this family, unless a turn asks for the tool by name; ""
            for always. It does not affect who may use the tool.

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
    own_act: Callable[[Any, Turn], Awaitable[OwnAct | None]] | None = None
    as_edit: Callable[[Any, OwnerRequest], Awaitable[tuple[BaseModel, str]]] | None = None
    answers: type | UnionType | None = None
    closes: type | UnionType | None = None
    family: str = ""
