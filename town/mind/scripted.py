"""The mind that the town ships with: small, scripted, no language model, and the same answer to the same request.

It reads the facts of a request and its tools, never a message: one row of `TABLE` for each kind of turn. It knows
nothing but them and the phrase files beside it, and remembers nothing.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from common.facts import (
    ExpressionFacts,
    MemoryFacts,
    OwnerFacts,
    PostFacts,
    QuestionFacts,
    RoomFacts,
    ToolOutcome,
    TurnFacts,
)
from common.text.strings import is_empty
from town.mind.bank import ANY, Bank, load_bank
from town.mind.choosing import TOOLS, Choice, choose
from town.mind.posts import post, post_of_two, revised
from town.mind.questions import QUESTIONS
from town.mind.remembering import keep
from town.mind.replies import answer_freely, reply
from town.mind.room import decide
from town.mind.words import Words, fit
from town.model.types import ChatRequest, Completion, Json, Offer, ToolUse

MODEL = "town/small-scripted-mind"

_POST_THIS = re.compile(
    r"^(?:please |could you |can you )*(?:post|publish|share|say)\b(?: this| that)?[:,]?\s*(.*)$",
    re.IGNORECASE | re.DOTALL,
)
_VAGUE = re.compile(r"^(?:something|anything|a (?:post|thought)|what|your)\b|^$", re.IGNORECASE)
_STATUS = re.compile(
    r"\b(status|how (?:do )?things stand|how (?:are|is) (?:you|it|things)|what'?s up|report)\b", re.IGNORECASE
)


class ScriptedMind:
    """A `Mind`. `seed` gives another town with other choices."""

    models = (MODEL,)
    about = "They think with a small scripted mind, not a language model."

    def __init__(self, *, seed: int = 0) -> None:
        self._bank = load_bank()
        self._seed = seed

    async def complete(self, request: ChatRequest) -> Completion:
        return self.answer(request)

    def answer(self, request: ChatRequest) -> Completion:
        """Its answer. A request without facts comes from another client: its last line is taken for an owner's."""
        facts = request.facts
        if facts.about is None:
            line = next((one.text for one in reversed(request.messages) if one.role == "user"), "")
            facts = replace(facts, about=OwnerFacts(line))
        offers = {offer.name: offer for offer in request.offers}
        return TABLE[type(facts.about)](_Turn(facts, offers, request.force, self._bank, self._seed), facts.about)


@dataclass(frozen=True)
class _Turn:
    """The facts of one request, the tools by name, which of them must be called, and the phrases to answer with."""

    facts: TurnFacts
    offers: Mapping[str, Offer]
    force: str | None
    bank: Bank
    seed: int

    @cached_property
    def rng(self) -> random.Random:
        """Chance drawn from the facts: the words of a prompt change nothing."""
        said = repr((self.seed, self.facts, self.force, list(self.offers)))
        return random.Random(hashlib.sha256(said.encode()).digest())

    def _words(self, *, text: str = "", earlier: tuple[str, ...] = (), situation: str = "") -> Words:
        return Words(self.bank, self.facts, self.rng, text=text, earlier=earlier, situation=situation)

    def post(self, about: PostFacts) -> Completion:
        thread = tuple(line.text for line in about.thread)
        words = self._words(text=about.text, earlier=(*thread, about.text, *self._tried()))
        choice = choose(about, self.facts.agent.handle, self.bank, self.rng)
        if (last := self._last()) and last.failed and last.act == "silent":
            choice = Choice("silent")
        act = next((act for act in (choice.act, *TOOLS) if self._may(TOOLS[act])), None)
        if act is None:
            return self.anything(words)
        known: Json = {"post_uri": about.uri, "post_cid": about.cid, "uri": about.uri, "cid": about.cid}
        if act == "reply":
            is_first = all(line.who for line in about.thread)
            known["text"] = reply(words, choice, is_first=is_first, pictures=about.pictures)
        elif choice.intent and choice.intent.act == act and choice.intent.say:
            known["reason"] = words.say(choice.intent.say)
        else:
            known["reason"] = words.line("reasons", act)
        return _call(self.offers[TOOLS[act]], known | {"closing_type": "like"})

    def expression(self, about: ExpressionFacts) -> Completion:
        tried, last = self._tried(), self._last()
        words = self._words(
            text=" ".join(about.lines), earlier=(*about.recent, *(() if last and last.draft else tried))
        )
        if "bluesky_post" not in self.offers:
            return self.anything(words)
        if last is None:
            text = post(words, about)
        elif not last.failed:
            return Completion(words.line("owner", "done"))
        else:
            text = revised(words, last.draft) if last.draft else post_of_two(words, about)
        return _call(self.offers["bluesky_post"], {"text": text})

    def owner(self, about: OwnerFacts) -> Completion:
        words = self._words(text=about.line, earlier=(*self._tried(), about.line), situation=about.situation)
        if last := self._last():
            return Completion(words.line("owner", "failed" if last.failed else "done"))
        if self.force:
            return self.anything(words)
        if "bluesky_post" in self.offers and (asked := _POST_THIS.match(about.line)):
            text = asked[1].strip().strip("\"“”'")
            given = post(words, ExpressionFacts()) if _VAGUE.match(text) else fit(text)
            return _call(self.offers["bluesky_post"], {"text": given})
        if about.situation and _STATUS.search(about.line):
            return Completion(words.line("owner", "status"))
        replying = (one for one in self.bank.intents if one.act == "reply" and one.match.search(about.line))
        if intent := next(replying, None):
            return Completion(words.say(intent.say))
        return Completion(answer_freely(words, {ANY: self.bank.lines["owner"]["plain"]}))

    def room(self, about: RoomFacts) -> Completion:
        latest = next((line.text for line in reversed(about.said) if line.who), "")
        words = self._words(text=latest, earlier=tuple(line.text for line in about.said))
        offer = next(iter(self.offers), None)
        return Completion(calls=(ToolUse(offer, decide(words, about)),)) if offer else self.anything(words)

    def memory(self, about: MemoryFacts) -> Completion:
        offer = next(iter(self.offers.values()), None)
        if offer is None:
            return self.anything(self._words())
        return Completion(calls=(ToolUse(offer.name, keep(about, (offer.parameters.get("properties") or {}).keys())),))

    def question(self, about: QuestionFacts) -> Completion:
        if answer := QUESTIONS.get(about.question):
            return Completion(answer(about.fields))
        words = self._words(text="\n".join(text for texts in about.fields.values() for text in texts))
        return Completion(words.line("ground")) if about.question == "grounding" else self.anything(words)

    def anything(self, words: Words) -> Completion:
        """A request nobody foresaw: a sensible line, or a forced tool filled by its schema."""
        text = fit(answer_freely(words))
        offer = next((offer for name, offer in self.offers.items() if self.force in {"any", name}), None)
        return _call(offer, {"text": text}, words) if offer else Completion(text)

    def _last(self) -> ToolOutcome | None:
        return self.facts.outcomes[-1] if self.facts.outcomes else None

    def _tried(self) -> tuple[str, ...]:
        """The texts of the calls so far."""
        return tuple(outcome.text for outcome in self.facts.outcomes)

    def _may(self, tool: str) -> bool:
        return tool in self.offers and self.force in {None, "any", tool}


TABLE: Mapping[type[object], Callable[[_Turn, Any], Completion]] = {
    PostFacts: _Turn.post,
    ExpressionFacts: _Turn.expression,
    OwnerFacts: _Turn.owner,
    RoomFacts: _Turn.room,
    MemoryFacts: _Turn.memory,
    QuestionFacts: _Turn.question,
}
"""What answers each kind of turn."""


def _call(offer: Offer, known: Json, words: Words | None = None) -> Completion:
    """A call with what is known and fits the tool; what it requires beyond that is made up by type."""
    properties = offer.parameters.get("properties") or {"text": {}}
    required = set(offer.parameters.get("required") or ())
    told = {"text", "reason", "closing_type"}
    given = {name: known[name] for name in properties if name in known and (name in told or name in required)}
    missing = [name for name in properties if name in required and is_empty(given.get(name))]
    made_up = {name: _made_up(properties[name], words) for name in missing}
    return Completion(calls=(ToolUse(offer.name, given | made_up),))


def _made_up(schema: Json, words: Words | None) -> object:
    """The smallest sensible value of a JSON Schema."""
    unions = [schema[key][0] for key in ("anyOf", "oneOf", "allOf") if schema.get(key)]
    if unions:
        return _made_up(unions[0], words)
    inner = schema.get("properties") or {}
    plain: dict[str, Callable[[], object]] = {
        "object": lambda: {name: _made_up(inner.get(name, {}), words) for name in schema.get("required") or ()},
        "array": lambda: [_made_up(schema.get("items") or {}, words)] * int(schema.get("minItems", 0)),
        "integer": lambda: schema.get("minimum", 1),
        "number": lambda: schema.get("minimum", 1),
        "boolean": lambda: True,
        "string": lambda: words.line("filler") if words else "noted",
    }
    return (schema.get("enum") or [schema.get("const")])[0] or plain[schema.get("type", "string")]()
