"""500 posts in many languages, four fifths of them requests about one's own data: each is answered once, and soon.

Whoever asked to be forgotten is: no byte of the home tells of them afterwards. `pytest -s` shows the figures.
"""

# ruff: noqa: T201 - the figures are worth reading, and pytest captures them

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
from collections import Counter
from dataclasses import dataclass

import pytest

from bench.rights_requests import Case, read_cases
from common.clock import SystemClock, parse_iso
from common.facts import QuestionFacts
from modules.runtime.home import Home
from modules.services.rights.requests import ForgetRequests
from soul.commands.people import carry_out_requests
from tests.running_town import RunningSoul, RunningTown, awake, call, replying, settings_of
from tests.security.test_security_flood import sentence
from tests.soul.commands.test_forget_command import places_that_hold
from tests.striding_clock import StridingClock
from town.model.types import ChatRequest, Completion

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

REQUESTS, LOOK_ALIKES = 400, 100
EACH_ROUND, ROUND_S, LOOKS = 4, 60, 2
SOONEST_S = 300
FORGOTTEN_EVERY = 15
FRAMES = ("@rowan.test {}", "@rowan.test hm. {}", "{} (@rowan.test)")
"""What stands around a labelled post; each labelled post stands in the next frame, until there are enough."""


@dataclass
class Asked:
    """One post of one account, and when it was written."""

    case: Case
    name: str
    did: str = ""
    uri: str = ""
    at: float = 0.0


def posts() -> list[Asked]:
    """The posts, requests and look-alikes mixed evenly; every account writes one."""
    cases = read_cases()
    requests = [case for case in cases if case.kind != "none"]
    others = [case for case in cases if case.kind == "none"][:LOOK_ALIKES]
    framed = (
        Case(case.language, case.kind, case.split, frame.format(case.text))
        for frame, case in itertools.product(FRAMES, requests)
    )
    chosen = [
        *itertools.islice(framed, REQUESTS),
        *(Case(c.language, c.kind, c.split, f"@rowan.test {c.text}") for c in others),
    ]
    mixed = sorted(enumerate(chosen), key=lambda numbered: (numbered[0] * 37) % len(chosen))
    return [Asked(case, f"zq{number:03d}xk") for number, (_, case) in enumerate(mixed)]


def answering(town: RunningTown, kinds: dict[str, Case]) -> None:
    """The mind knows the label of each post, and says the same words to all who ask the same."""
    numbers = itertools.count()

    def answer(request: ChatRequest) -> Completion:
        about = request.facts.about
        if request.facts.purpose == "rights-request" and isinstance(about, QuestionFacts):
            case = kinds[about.fields["post"][0]]
            return Completion(json.dumps({"kind": case.kind, "language": case.language}))
        if request.facts.purpose == "rights-answer" and isinstance(about, QuestionFacts):
            counted = re.findall(r"\d+", " ".join(about.fields["facts"]))
            return call("answer_request", sentence=f"That is done, {counted[0] if counted else 'as you asked'}.")
        return replying(f"{sentence(random.Random(next(numbers)))}?")(request)

    town.mind.answer = answer


async def live(soul: RunningSoul, clock: StridingClock) -> None:
    """One minute of life."""
    for _ in range(LOOKS):
        await soul.app.scheduler.run_guarded("awareness")
        for _ in range(3):
            await soul.app.services.outbox.deliver_due()
            await clock.sleep(ROUND_S / LOOKS / 3)


def replies_of(town: RunningTown) -> dict[str, list[float]]:
    """When each post was replied to, in seconds since the epoch."""
    found: dict[str, list[float]] = {}
    for record in town.network.records(town.account("rowan"), "app.bsky.feed.post"):
        if reply := record.value.get("reply"):
            found.setdefault(reply["parent"]["uri"], []).append(parse_iso(record.value["createdAt"]).timestamp())
    return found


async def test_each_request_is_answered_once_and_who_is_forgotten_leaves_no_byte(running_town: RunningTown) -> None:
    clock = running_town.network.clock = StridingClock(SystemClock().now())
    home = running_town.make_home("rowan", AI_GATEWAY_FACTS="true", SOUL_SPEED="1", BUDGET_TOKENS_PER_DAY="100000000")
    asked = posts()
    answering(running_town, {one.case.text: one.case for one in asked})
    waiting = list(asked)
    while waiting:
        async with awake(home, clock=clock) as soul:
            for _ in range(FORGOTTEN_EVERY):
                write(running_town, waiting[:EACH_ROUND], clock)
                del waiting[:EACH_ROUND]
                await live(soul, clock)
            if not waiting:
                for _ in range(SOONEST_S // ROUND_S):
                    await live(soul, clock)
        await asyncio.to_thread(carry_out_requests, settings_of(home), home, clock)
    await clock.sleep(1800)
    await asyncio.to_thread(carry_out_requests, settings_of(home), home, clock)
    await judge(running_town, home, asked, clock)


def write(town: RunningTown, some: list[Asked], clock: StridingClock) -> None:
    for one in some:
        one.did, one.at = town.account(one.name), clock.now().timestamp()
        one.uri, _ = town.network.post_as(one.did, one.case.text)


async def judge(town: RunningTown, home: Home, asked: list[Asked], clock: StridingClock) -> None:
    replies = replies_of(town)
    requests = [one for one in asked if one.case.kind != "none"]
    late = {one.case.text: replies.get(one.uri, [])[0] - one.at for one in requests if replies.get(one.uri)}
    unanswered = [one.case.text for one in requests if len(replies.get(one.uri, [])) != 1]
    calls = Counter(request.facts.purpose for request in town.mind.asked)
    kinds = Counter(one.case.kind for one in asked)
    print(f"{len(requests)} requests in {len({one.case.language for one in requests})} languages: {dict(kinds)}")
    once, latest = len(requests) - len(unanswered), max(late.values())
    print(f"answered once: {once}; latest after {latest:.0f} s; calls {dict(calls)}")
    print("not answered once:", *unanswered, sep="\n")
    assert unanswered == []
    assert latest <= SOONEST_S
    assert ForgetRequests(home.memory).all() == []
    gone = [one for one in requests if one.case.kind == "forget" and one.case.text not in unanswered]
    held = places_that_hold(home.root, *(needle for one in gone for needle in (one.did, one.name)))
    assert held == []
    kept = [one for one in asked if one.case.kind == "none"]
    assert places_that_hold(home.root, *(one.did for one in kept))
