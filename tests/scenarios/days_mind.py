"""A mind that wants too much: it repeats itself, echoes its peers, thanks for thanks, and forgets to invite.

What holds for a SOUL with such a mind is held by the program. What is no post is left to the town's own mind.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict

from common.facts import ExpressionFacts, PostFacts, TurnFacts
from tests.kept_prompts import KeptPrompts
from tests.running_town import call
from town.mind.scripted import ScriptedMind
from town.model.types import ChatRequest, Completion

MODEL = "test-mind"

_NOUNS = """
gutter ladder orchard kettle harbour lantern chimney hedge cellar bicycle ferry meadow anvil beehive rowboat stairwell
compass sundial quarry greenhouse saddle windmill bakery tunnel archive loom pier barn canal piano rooftop workshop
hammock telescope aqueduct furnace toolbox bridge carpet violin
"""
_ADJECTIVES = """
copper crooked patient borrowed narrow painted forgotten heavy quiet northern hollow polished stubborn shallow wooden
early rusty gentle spare frozen crowded unlocked mended leaning
"""
_VERBS = """
outlasts carries repairs hides measures shelters wakes divides teaches balances explains survives rewards interrupts
remembers invents softens replaces
"""
_PLACES = (
    "before dawn",
    "after the storm",
    "along the river",
    "in late autumn",
    "under the viaduct",
    "at low tide",
    "behind the station",
    "on market days",
    "near the old mill",
    "during the drought",
    "past the last houses",
    "between two winters",
)
_THANKED = re.compile(r"\b(?:thanks?|thank you|appreciate|looking forward)\b", re.IGNORECASE)
_THANKS = (
    "Thank you so much, that means a lot, looking forward to more!",
    "Thanks, sounds great, glad we talked!",
    "Perfect, thanks a lot, see you soon!",
)


def sentence(rng: random.Random) -> str:
    """A statement that hardly anybody makes twice."""
    one, two, three = rng.sample(_NOUNS.split(), 3)
    first, second = rng.sample(_ADJECTIVES.split(), 2)
    verb, other = rng.sample(_VERBS.split(), 2)
    return f"A {first} {one} {verb} the {two} {rng.choice(_PLACES)}, and a {second} {three} {other} it."


def question(rng: random.Random) -> str:
    """A question with two things to choose from."""
    one, two = rng.sample(_NOUNS.split(), 2)
    first, second = rng.sample(_ADJECTIVES.split(), 2)
    return f"Which would you pick {rng.choice(_PLACES)}, a {first} {one} or a {second} {two}?"


class WilfulMind:
    """A `Mind`. `wanted` counts what it wanted by kind; `prompts` keeps what it was asked."""

    models = (MODEL,)
    about = "A mind of a test that wants too much."

    def __init__(self, prompts: KeptPrompts, handles: frozenset[str], seed: int) -> None:
        self.prompts = prompts
        self.wanted: Counter[str] = Counter()
        self._handles = handles
        self._rng = random.Random(seed)
        self._scripted = ScriptedMind(seed=seed)
        self._said: defaultdict[str, list[str]] = defaultdict(list)

    async def complete(self, request: ChatRequest) -> Completion:
        self.prompts.keep(request)
        facts, offers = request.facts, {offer.name for offer in request.offers}
        if isinstance(facts.about, ExpressionFacts) and "bluesky_post" in offers:
            return self._say("bluesky_post", facts, self._thought(facts))
        if isinstance(facts.about, PostFacts) and "bluesky_reply" in offers:
            return self._say("bluesky_reply", facts, self._answer(facts, facts.about))
        return await self._scripted.complete(request)

    def _say(self, tool: str, facts: TurnFacts, text: str) -> Completion:
        self._said[facts.agent.handle].append(text)
        return call(tool, text=text)

    def _thought(self, facts: TurnFacts) -> str:
        """One in seven was said before, one in four invites nobody, one in ten speaks to a peer."""
        chance, earlier = self._rng.random(), self._said[facts.agent.handle]
        if facts.outcomes:
            return f"{sentence(self._rng)} {question(self._rng)}"
        if chance < 0.15 and earlier:
            return self._want("repeat", self._rng.choice(earlier))
        if chance < 0.4:
            return self._want("no invitation", sentence(self._rng))
        if chance < 0.5:
            peer = self._rng.choice(sorted(self._handles - {facts.agent.handle}))
            return self._want("peer", f"@{peer} {sentence(self._rng)} {question(self._rng)}")
        return self._want("thought", f"{sentence(self._rng)} {question(self._rng)}")

    def _answer(self, facts: TurnFacts, about: PostFacts) -> str:
        """Thanks for thanks, the words of a peer where one spoke, now and then its own again; else something new."""
        chance, earlier = self._rng.random(), self._said[facts.agent.handle]
        peers = [line.text for line in about.thread if line.who in self._handles - {facts.agent.handle, about.author}]
        if facts.outcomes:
            return self._want("other words", sentence(self._rng))
        if _THANKED.search(about.text):
            return self._want("thanks", self._rng.choice(_THANKS))
        if peers and chance < 0.6:
            return self._want("echo", peers[-1])
        if chance < 0.1 and earlier:
            return self._want("repeat", self._rng.choice(earlier))
        asks_back = f" {question(self._rng)}" if chance > 0.6 else ""
        return self._want("answer", f"{sentence(self._rng)}{asks_back}")

    def _want(self, kind: str, text: str) -> str:
        self.wanted[kind] += 1
        return text
