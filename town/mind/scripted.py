"""The mind that the town ships with: small, scripted, no language model, and the same answer to the same request.

It knows nothing but the messages of the request and the phrase files beside it; it remembers nothing.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable

from common.text.strings import is_empty
from town.mind.bank import load_bank
from town.mind.choosing import TOOLS, Act, choose
from town.mind.posts import post
from town.mind.reading import Scene, Task, read_scene
from town.mind.remembering import keep
from town.mind.replies import answer_freely, reply
from town.mind.room import TOOL as ROOM_TOOL
from town.mind.room import decide
from town.mind.room_verdicts import repeats, wanted, worth_an_answer
from town.mind.types import ChatRequest, Json, Offer, Thought, ToolUse
from town.mind.words import Words, fit

MODEL = "town/small-scripted-mind"

_WISH = re.compile(
    r"^(?:please |could you |can you )*(?:post|publish|share|say)\b(?: this| that)?[:,]?\s*(.*)$",
    re.IGNORECASE | re.DOTALL,
)
_VAGUE = re.compile(r"^(?:something|anything|a (?:post|thought)|what|your)\b|^$", re.IGNORECASE)
_STATUS = re.compile(
    r"\b(status|how (?:do )?things stand|how (?:are|is) (?:you|it|things)|what'?s up|report)\b", re.IGNORECASE
)
_YES_SHARE = 0.35


class ScriptedMind:
    """A `Mind`. `seed` gives another town with other choices."""

    models = (MODEL,)
    about = "They think with a small scripted mind, not a language model."

    def __init__(self, *, seed: int = 0) -> None:
        self._bank = load_bank()
        self._seed = seed

    async def think(self, request: ChatRequest) -> Thought:
        scene = read_scene(request)
        words = Words(self._bank, scene, self._chance(request))
        tasks: dict[Task, Callable[[ChatRequest, Words], Thought]] = {
            "answer": self._answer,
            "express": self._express,
            "owner": self._owner,
            "ground": lambda _, words: Thought(words.line("ground")),
            "judge": lambda _, words: Thought("yes" if words.rng.random() < _YES_SHARE else "no"),
            "remember": lambda asked, words: Thought(calls=(_keep(asked.offers[0], words.scene.text),)),
            "room": lambda _, words: Thought(calls=(ToolUse(ROOM_TOOL, decide(words)),)),
            "repeats": lambda _, words: Thought(repeats(words.scene.prompt)),
            "wanted": lambda _, words: Thought(wanted(words.scene.prompt)),
            "worth": lambda _, words: Thought(worth_an_answer(words.scene.prompt)),
            "promises": lambda _, __: Thought("[]"),
            "other": self._other,
        }
        return tasks[scene.task](request, words)

    def _answer(self, request: ChatRequest, words: Words) -> Thought:
        choice = choose(words.scene, self._bank, words.rng)
        ladder: tuple[Act, ...] = (choice.act, "like", "silent", "exit", "reply")
        offers = {offer.name: offer for offer in request.offers}
        act = next((act for act in ladder if TOOLS[act] in offers and request.force in {None, "any", TOOLS[act]}), None)
        if act is None:
            return self._other(request, words)
        known: Json = {**_subject(words.scene), "closing_type": "like"}
        if act == "reply":
            known["text"] = reply(words, choice)
        elif choice.intent and choice.intent.act == act and choice.intent.say:
            known["reason"] = words.pick(words.for_field(choice.intent.say))
        else:
            known["reason"] = words.line("reasons", act)
        return Thought(calls=(_use(offers[TOOLS[act]], known),))

    def _express(self, request: ChatRequest, words: Words) -> Thought:
        if words.scene.done:
            return Thought(words.line("owner", "done"))
        offer = next(offer for offer in request.offers if offer.name == "bluesky_post")
        return Thought(calls=(_use(offer, {"text": post(words)}),))

    def _owner(self, request: ChatRequest, words: Words) -> Thought:
        scene = words.scene
        if scene.problem:
            return Thought(words.line("owner", "failed", problem=scene.problem.splitlines()[0]))
        if scene.done:
            return Thought(words.line("owner", "done"))
        offer = next((offer for offer in request.offers if offer.name == "bluesky_post"), None)
        if offer and (wish := _WISH.match(scene.text)):
            wanted = wish[1].strip().strip("\"“”'")
            return Thought(calls=(_use(offer, {"text": post(words) if _VAGUE.match(wanted) else fit(wanted)}),))
        if scene.situation and _STATUS.search(scene.text):
            return Thought(words.line("owner", "status"))
        for intent in self._bank.intents:
            if intent.match.search(scene.text) and intent.act == "reply":
                return Thought(words.fill(words.pick(words.for_field(intent.say))))
        return Thought(answer_freely(words, words.pick(self._bank.lines["owner"]["plain"])))

    def _other(self, request: ChatRequest, words: Words) -> Thought:
        """A request nobody foresaw: a sensible line, or a forced tool filled by its schema."""
        if request.force is None:
            return Thought(fit(answer_freely(words)))
        offers = [offer for offer in request.offers if request.force in {"any", offer.name}]
        return Thought(calls=(_use(offers[0], {"text": fit(answer_freely(words))}, words),))

    def _chance(self, request: ChatRequest) -> random.Random:
        said = repr((self._seed, request.messages, request.force, [offer.name for offer in request.offers]))
        return random.Random(hashlib.sha256(said.encode()).digest())


def _subject(scene: Scene) -> Json:
    return {"post_uri": scene.uri, "post_cid": scene.cid, "uri": scene.uri, "cid": scene.cid}


def _keep(offer: Offer, page: str) -> ToolUse:
    """A call that keeps what a conversation was about."""
    return ToolUse(offer.name, keep(page, (offer.parameters.get("properties") or {}).keys()))


def _use(offer: Offer, known: Json, words: Words | None = None) -> ToolUse:
    """A call with what is known and fits the tool; what it requires beyond that is made up by type."""
    properties = offer.parameters.get("properties") or {"text": {}}
    required = set(offer.parameters.get("required") or ())
    told = {"text", "reason", "closing_type"}
    given = {name: known[name] for name in properties if name in known and (name in told or name in required)}
    missing = [name for name in properties if name in required and is_empty(given.get(name))]
    return ToolUse(offer.name, given | {name: _made_up(properties[name], words) for name in missing})


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
