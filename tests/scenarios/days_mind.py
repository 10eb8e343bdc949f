"""A mind that breaks the rules: it repeats itself, echoes its peers, thanks for thanks, and invites nobody.

If a SOUL with this mind keeps the rules, the program enforces them. The town's own mind takes the other turns.
"""

import json
import random
import re
from collections import Counter, defaultdict

from common.facts import ExpressionFacts, MessageFacts, OwnerFacts, PostFacts, TurnFacts
from tests.kept_prompts import KeptPrompts
from tests.running_town import call
from town.mind.scripted import ScriptedMind
from town.model.types import ChatRequest, Completion

MODEL = "test-mind"
WORKSPACE = "ferry clock"
ASKS_FOR_WORK = "Please make a workspace"
"""The words of a post that asks for work; the mind begins work for no other post."""
TASKS = [{"title": "Read the timetable", "description": "All lines, all days.", "files": ["timetable.js"]}]

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
    """Return a random statement that is very unlikely to occur twice."""
    one, two, three = rng.sample(_NOUNS.split(), 3)
    first, second = rng.sample(_ADJECTIVES.split(), 2)
    verb, other = rng.sample(_VERBS.split(), 2)
    return f"A {first} {one} {verb} the {two} {rng.choice(_PLACES)}, and a {second} {three} {other} it."


def question(rng: random.Random) -> str:
    """Return a random question with two things to choose from."""
    one, two = rng.sample(_NOUNS.split(), 2)
    first, second = rng.sample(_ADJECTIVES.split(), 2)
    return f"Which would you pick {rng.choice(_PLACES)}, a {first} {one} or a {second} {two}?"


def _shared_work(facts: TurnFacts, about: PostFacts, offers: set[str]) -> Completion | None:
    """Return the call that creates the workspace, then the plan, if the post asks for work; else None."""
    if ASKS_FOR_WORK not in about.text:
        return None
    tried = {outcome.tool for outcome in facts.outcomes}
    if {"workspace_create", "plan_create"} <= offers and "workspace_create" not in tried:
        return call("workspace_create", name=WORKSPACE, description="It tells when the ferries leave.")
    if "plan_create" in offers and tried == {"workspace_create"}:
        return call("plan_create", title=WORKSPACE, goal="Everybody sees when the next ferry leaves.", tasks=TASKS)
    return None


def _made(request: ChatRequest) -> str:
    """Return the URL of the plan that this turn created; "" if it created none."""
    for message in request.messages:
        if message.role == "tool" and '"issueUrl"' in message.text:
            told = json.loads(message.text)
            return "" if told.get("deduplicated") else str(told["issueUrl"])
    return ""


class WilfulMind:
    """A `Mind`. `wanted` counts the texts that it chose, by kind; `prompts` keeps the requests."""

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
        match facts.about:
            case ExpressionFacts():
                chosen = self._express(facts, offers)
            case PostFacts() as about:
                chosen = _shared_work(facts, about, offers) or self._reply(request, about, offers)
            case MessageFacts() if "message_answer" in offers:
                chosen = call("message_answer", text=self._want("message", sentence(self._rng)))
            case OwnerFacts() if request.force is None:
                chosen = Completion(self._want("owner", sentence(self._rng)))
            case _:
                chosen = None
        return chosen or await self._scripted.complete(request)

    def _express(self, facts: TurnFacts, offers: set[str]) -> Completion | None:
        """Return a call that posts a picture (one in three invites nobody) or a thought; None without these tools."""
        if "bluesky_post_found" in offers:
            asks = f" {question(self._rng)}" if self._rng.random() > 1 / 3 else ""
            return self._say("bluesky_post_found", facts, self._want("picture", f"{sentence(self._rng)}{asks}"))
        return self._say("bluesky_post", facts, self._thought(facts)) if "bluesky_post" in offers else None

    def _reply(self, request: ChatRequest, about: PostFacts, offers: set[str]) -> Completion | None:
        if "bluesky_reply_picture" in offers:
            text = self._want("shown", sentence(self._rng))
            return self._say("bluesky_reply_picture", request.facts, text)
        if "bluesky_reply" not in offers:
            return None
        made = _made(request)
        text = f"{sentence(self._rng)} {made}" if made else self._answer(request.facts, about)
        return self._say("bluesky_reply", request.facts, text)

    def _say(self, tool: str, facts: TurnFacts, text: str) -> Completion:
        self._said[facts.agent.handle].append(text)
        return call(tool, text=text)

    def _thought(self, facts: TurnFacts) -> str:
        """Return a thought: one in seven was said before, one in four invites nobody, one in ten speaks to a peer."""
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
        """Return thanks for thanks, the words of a peer in the thread, sometimes its own again, or something new."""
        # NOTE(self): it does not repeat thanks, as a question needs an answer with content.
        chance, earlier = self._rng.random(), [one for one in self._said[facts.agent.handle] if one not in _THANKS]
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
