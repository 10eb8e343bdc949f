"""A small real model reads what people ask about their own data, and answers in words that can be said.

`pytest -rP` shows what it wrote.
"""

# ruff: noqa: T201 - what a real model says is worth reading, and pytest captures it

from __future__ import annotations

import pytest

from common.text.rights_requests import RequestKind
from modules.services.rights.request_reader import RequestReader
from modules.services.rights.voice import RightsVoice, fitting_answer
from tests.model.conftest import settings_for
from tests.running_town import RunningTown, awake

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

POSTS: tuple[tuple[str, RequestKind | None], ...] = (
    ("Hey, could you get rid of anything you've saved about me?", "forget"),
    ("Bitte lösch alles, was du von mir hast.", "forget"),
    ("so what do you actually have on file about me?", "know"),
    ("¿Qué información tienes guardada sobre mí?", "know"),
    ("Leave me alone please, I don't want a bot in my replies.", "no_reply"),
    ("Arrête de me répondre, s'il te plaît.", "no_reply"),
    ("what made you reply to my post?", "why"),
    ("ok, I take it back, feel free to answer me again", "reply_again"),
    ("Never forget where you parked, that is my whole advice.", None),
    ("Do you know why my tin roof stops drumming in the snow?", None),
)
LEAST_RIGHT = 8


async def test_it_reads_requests_in_several_languages(running_town: RunningTown, real_model: str) -> None:
    mind = settings_for(real_model, SOUL_SPEED="1")
    async with awake(running_town.make_home("rowan", **mind)) as soul:
        services = soul.app.services
        reader = RequestReader(services.gateway, services.skills)
        readings = [(text, kind, await reader.read(text, "stranger")) for text, kind in POSTS]
        for text, kind, reading in readings:
            print(f"{text} -> {reading} (expected {kind})")
        voice = RightsVoice(
            "rowan.test",
            "owner.test",
            services.gateway,
            soul.app.lives.turn_services.prompter,
            services.skills,
            services.clock,
        )
        facts = ("posts and messages of yours that reached me: 3", "replies and likes of mine to you: 2")
        said = [
            await voice.say("know", facts, "en", "stranger"),
            await voice.say("forget", ("asked",), "de", "stranger"),
        ]
        print(*said, sep="\n")
    right = sum(reading is not None and reading.kind == kind for _, kind, reading in readings)
    print(f"{right} of {len(POSTS)} read right")
    assert right >= LEAST_RIGHT
    assert all(reading is not None for *_, reading in readings)
    assert fitting_answer(said[0], facts, contact="owner.test") == said[0]
    assert all(fitting_answer(one, contact="owner.test") for one in said)
