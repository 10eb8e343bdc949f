"""Proves that 500 requests about one's own data, in many languages and among look-alikes, are answered once and soon.

They come by mention, by reply and by direct message, each from an account of its own, some from people who deny
inference: no prompt holds a word of theirs. Whoever asked to be forgotten is, as the program does it: the life ends as
soon as a request is due, and the next one begins by carrying it out. No byte of the home names them or holds their
words afterwards. `pytest -s` shows the figures.
"""

# ruff: noqa: T201 - the figures are worth reading, and pytest captures them

import asyncio
import itertools
import json
import random
import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

import pytest

from common.clock import SystemClock, parse_iso
from common.facts import MessageFacts, PostFacts, QuestionFacts
from common.text.rights_requests import kind_by_words
from modules.runtime.home import Home
from modules.services.rights.policy import PREFERENCE
from modules.services.rights.requests import ForgetRequests
from soul.commands.people import carry_out_requests
from tests.labelled_posts import AskedCase, asked_cases
from tests.running_town import RunningSoul, RunningTown, awake, call, replying, settings_of
from tests.scenarios.phone import Phone
from tests.security.test_security_flood import sentence
from tests.soul.commands.test_forget_command import places_that_hold
from tests.striding_clock import StridingClock
from town.model.types import ChatRequest, Completion

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]

Way = Literal["mention", "reply", "message"]

REQUESTS, LOOK_ALIKES, DENYING = 500, 100, 50
EACH_ROUND, ROUND_S, LOOKS = 5, 60, 2
SOONEST_S = 300
AFTERWARDS_S = 1_800
THREADS = 10
WAYS: tuple[Way, ...] = ("mention", "mention", "mention", "reply", "message")
"""The ways in which the accounts ask, one after the other."""

MENTIONED = ("@rowan.test {}", "@rowan.test hm. {}", "{} (@rowan.test)")
ADDRESSED = ("{}", "hm. {}", "{} 🙂")
"""Text around a labelled post; all posts are used with one frame after the other, until there are enough."""


@dataclass
class Asked:
    """What one account wrote, in which way and when; `mark` is a word that nobody else wrote.

    `denies` says that the account denies inference.
    """

    case: AskedCase
    way: Way
    name: str
    mark: str
    denies: bool = False
    did: str = ""
    uri: str = ""
    at: float = 0.0
    phone: Phone | None = None

    @property
    def text(self) -> str:
        return f"{self.case.text} #{self.mark}"


def posts() -> list[Asked]:
    """Return what is asked, requests and look-alikes mixed evenly; every account writes once."""
    cases = asked_cases()
    requests = [case for case in cases if case.kind != "none"]
    others = [case for case in cases if case.kind == "none"][:LOOK_ALIKES]
    framed = [(frame, case) for frame, case in itertools.product(range(len(MENTIONED)), requests)][:REQUESTS]
    chosen = [*framed, *((0, case) for case in others)]
    mixed = sorted(enumerate(chosen), key=lambda numbered: (numbered[0] * 37) % len(chosen))
    asked = []
    for number, (_, (frame, case)) in enumerate(mixed):
        way = WAYS[number % len(WAYS)]
        text = (MENTIONED if way == "mention" else ADDRESSED)[frame].format(case.text)
        framed_case = AskedCase(case.language, case.kind, case.split, text)
        asked.append(Asked(framed_case, way, f"zq{number:03d}xk", f"vx{number:03d}qj"))
    plain = [one for one in asked if one.case.kind != "none" and kind_by_words(one.text) == one.case.kind]
    for one in plain[:: len(plain) // DENYING][:DENYING]:
        one.denies = True
    return asked


def answering(town: RunningTown, kinds: dict[str, AskedCase]) -> None:
    """Make the mind know the label of each post, and say the same words to all who ask the same."""
    numbers = itertools.count()

    def answer(request: ChatRequest) -> Completion:
        about = request.facts.about
        if request.facts.purpose == "rights-request" and isinstance(about, QuestionFacts):
            case = kinds[about.fields["post"][0]]
            return Completion(json.dumps({"kind": case.kind, "language": case.language}))
        if request.facts.purpose == "rights-answer" and isinstance(about, QuestionFacts):
            counted = re.findall(r"\d+", " ".join(about.fields["facts"]))
            return call("answer_request", sentence=f"That is done, {counted[0] if counted else 'as you asked'}.")
        if isinstance(about, PostFacts | MessageFacts) and kinds[about.text].kind != "none":
            return call("data_request", reason="their own data")
        return replying(f"{sentence(random.Random(next(numbers)))}?")(request)

    town.mind.answer = answer


async def live(soul: RunningSoul, clock: StridingClock) -> None:
    """Live for one minute."""
    for _ in range(LOOKS):
        for loop in ("awareness", "messages", "message-others"):
            await soul.app.scheduler.run_guarded(loop)
        for _ in range(3):
            await soul.app.services.outbox.deliver_due()
            await clock.sleep(ROUND_S / LOOKS / 3)


class Askers:
    """The accounts that ask, and when each was answered."""

    def __init__(self, town: RunningTown, asked: list[Asked], clock: StridingClock) -> None:
        self._town = town
        self._clock = clock
        self.asked = asked
        rowan = town.account("rowan")
        rng = random.Random(11)
        self._threads = [town.network.post_as(rowan, f"{sentence(rng)}.")[0] for _ in range(THREADS)]
        self.messages: dict[str, list[float]] = {}

    def write(self, some: list[Asked]) -> None:
        network = self._town.network
        for number, one in enumerate(some):
            one.did, one.at = self._town.account(one.name), self._clock.now().timestamp()
            if one.denies:
                declared = {"$type": PREFERENCE, "preferences": {"inference": {"allow": False}}}
                network.put(one.did, PREFERENCE, "self", declared)
            if one.way == "message":
                one.phone = Phone(self._town, one.name, "rowan")
                one.phone.says(one.text)
                continue
            root = self._threads[(number + len(one.text)) % THREADS]
            one.uri, _ = network.post_as(one.did, one.text, **({"reply_to_uri": root} if one.way == "reply" else {}))

    def note_answers(self) -> None:
        """Note the direct messages that came since."""
        for one in self.asked:
            if one.phone is not None:
                known = self.messages.setdefault(one.name, [])
                known += [self._clock.now().timestamp()] * (len(one.phone.answers) - len(known))

    def answers(self) -> dict[str, list[float]]:
        """Return the times at which each was answered, by name."""
        found: dict[str, list[float]] = {}
        for record in self._town.network.records(self._town.account("rowan"), "app.bsky.feed.post"):
            if reply := record.value.get("reply"):
                found.setdefault(reply["parent"]["uri"], []).append(parse_iso(record.value["createdAt"]).timestamp())
        return {one.name: found.get(one.uri, []) or self.messages.get(one.name, []) for one in self.asked}


async def test_each_request_is_answered_once_and_who_is_forgotten_leaves_no_byte(running_town: RunningTown) -> None:
    clock = running_town.network.clock = StridingClock(SystemClock().now())
    home = running_town.make_home("rowan", AI_GATEWAY_FACTS="true", SOUL_SPEED="1", BUDGET_TOKENS_PER_DAY="100000000")
    asked = posts()
    askers, requests = Askers(running_town, asked, clock), ForgetRequests(home.memory)
    answering(running_town, {one.text: one.case for one in asked})
    waiting, lives = list(asked), 0
    ends_at: float | None = None
    while ends_at is None or clock.now().timestamp() < ends_at:
        if lives:
            await asyncio.to_thread(carry_out_requests, settings_of(home), home, clock)
        lives += 1
        async with awake(home, clock=clock) as soul:
            await live(soul, clock)
            while not requests.due(clock.now()) and (ends_at is None or clock.now().timestamp() < ends_at):
                askers.write(waiting[:EACH_ROUND])
                del waiting[:EACH_ROUND]
                await live(soul, clock)
                askers.note_answers()
                if not waiting and ends_at is None:
                    ends_at = clock.now().timestamp() + AFTERWARDS_S
    print(f"{lives} lives")
    await asyncio.to_thread(carry_out_requests, settings_of(home), home, clock)
    judge(running_town, home, askers)


def judge(town: RunningTown, home: Home, askers: Askers) -> None:
    answers, asked = askers.answers(), askers.asked
    requests = [one for one in asked if one.case.kind != "none"]
    late = {one.name: answers[one.name][0] - one.at for one in requests if answers[one.name]}
    unanswered = [(one.way, one.denies, one.text) for one in requests if len(answers[one.name]) != 1]
    calls = Counter(request.facts.purpose for request in town.mind.asked)
    kinds, ways = (Counter(values) for values in ([one.case.kind for one in asked], [one.way for one in requests]))
    languages = len({one.case.language for one in requests})
    print(f"{len(requests)} requests in {languages} languages: {dict(kinds)}, {dict(ways)}")
    once, latest = len(requests) - len(unanswered), max(late.values())
    print(f"answered once: {once}; latest after {latest:.0f} s; calls {dict(calls)}")
    print("not answered once:", *unanswered, sep="\n")
    assert len(requests) == REQUESTS
    assert unanswered == []
    assert latest <= SOONEST_S
    assert not any(answers[one.name] for one in asked if one.case.kind == "none" and one.way == "message")
    assert ForgetRequests(home.memory).all() == []
    gone = [one for one in requests if one.case.kind == "forget"]
    needles = {needle for one in gone for needle in (one.did, one.name, one.mark, one.case.text)}
    print(f"{len(gone)} forgotten, {len(needles)} needles")
    assert places_that_hold(home.root, *needles) == []
    kept = [one for one in asked if one.case.kind == "none" and one.way != "message"]
    assert places_that_hold(home.root, *(one.did for one in kept))
    audit(town, asked)


def audit(town: RunningTown, asked: list[Asked]) -> None:
    """Assert that no prompt holds a word of those who deny inference, and that the same search finds others' words."""
    prompts = "\n".join(str(request) for request in town.mind.asked)
    denying = [one for one in asked if one.denies]
    held = [one.text for one in denying if one.mark in prompts]
    print(f"{len(town.mind.asked)} prompts; {len(held)} hold a post of one of {len(denying)} who deny inference")
    assert {one.way for one in denying} == set(WAYS)
    assert len(denying) == DENYING
    assert held == []
    assert sum(one.mark in prompts for one in asked if not one.denies) > REQUESTS - DENYING - LOOK_ALIKES
