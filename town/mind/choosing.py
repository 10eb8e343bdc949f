"""What to do about a post: reply, like, leave or stay silent, and why. Pure rules and a little chance."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Literal

from town.mind.bank import Bank, Idea, Intent
from town.mind.reading import Scene, mentioned

Act = Literal["reply", "like", "exit", "silent"]
TOOLS: dict[Act, str] = {
    "reply": "bluesky_reply",
    "like": "bluesky_like",
    "exit": "graceful_exit",
    "silent": "stay_silent",
}

_ALREADY = re.compile(r"already|not part of|you have replied|has your reply", re.IGNORECASE)
_SETTLED = {"thanks", "agree", "goodbye"}
_LONG_TALK = 3
_REPLY_TO_ANSWER = 0.6
_REPLY_TO_CROWD = 0.5


@dataclass(frozen=True, slots=True)
class Choice:
    """An act, and what it rests on.

    Attributes:
        act: what to do.
        intent: what kind of thing they said, if we know it.
        asked: the idea whose question they ask.
        answered: our idea whose question they answer.
        closing: it is our last word here.

    """

    act: Act
    intent: Intent | None = None
    asked: Idea | None = None
    answered: Idea | None = None
    closing: bool = False


def choose(scene: Scene, bank: Bank, rng: random.Random) -> Choice:
    """Decide what to do about the post of `scene`."""
    if scene.problem and _ALREADY.search(scene.problem):
        return Choice("silent")
    intent = _intent(scene.text, bank)
    if intent and intent.act == "silent":
        return Choice("silent", intent)
    asked = bank.asked_in(scene.text)
    is_owner = bool(scene.author) and scene.author == scene.me.owner
    own = len(scene.own)
    closing = own >= _LONG_TALK
    base = Choice("reply", intent, asked[1] if asked else None, _answered(scene, bank), closing)
    if intent and intent.name in _SETTLED and not base.asked:
        return Choice("exit" if intent.act == "exit" and not is_owner else "like", intent)
    if is_owner or _asks(scene):
        return base if is_owner or own <= _LONG_TALK else Choice("exit", intent)
    if closing:
        return Choice("exit", intent)
    return base if rng.random() < _eagerness(scene, base) else Choice(_quiet(scene, rng), intent)


def _intent(text: str, bank: Bank) -> Intent | None:
    return next((intent for intent in bank.intents if intent.match.search(text)), None)


def _answered(scene: Scene, bank: Bank) -> Idea | None:
    """Our idea that they are answering, if our last words here asked its question."""
    found = bank.asked_in(scene.own[-1]) if scene.own else None
    return found[1] if found else None


def _asks(scene: Scene) -> bool:
    """Whether the post asks us something: it has a question, and others who were addressed have not all the say."""
    if "?" not in scene.text:
        return False
    addressed = mentioned(scene.text)
    return not addressed or scene.me.handle in addressed or scene.reason != "mention"


def _eagerness(scene: Scene, choice: Choice) -> float:
    """How likely a statement is worth words: after our own answer a like does, after theirs maybe a word."""
    others = {said.who for said in scene.conversation if said.who} - {scene.author}
    if "Several" in scene.notes or "Others were addressed" in scene.notes or len(others) > 1:
        return _REPLY_TO_CROWD
    if scene.own:
        return _REPLY_TO_ANSWER if choice.answered else 0.0
    return 1.0 if scene.reason == "mention" else _REPLY_TO_ANSWER


def _quiet(scene: Scene, rng: random.Random) -> Act:
    """The wordless act: mostly a like; silence where others have spoken."""
    others = {said.who for said in scene.conversation if said.who} - {scene.author}
    return "silent" if others and rng.random() < _REPLY_TO_CROWD else "like"
