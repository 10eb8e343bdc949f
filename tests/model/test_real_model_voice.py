"""A small real model puts the operational texts into a voice, and keeps what must stand in them.

`pytest -rP` shows what it wrote.
"""

# ruff: noqa: T201 - what a real model says is worth reading, and pytest captures it

from __future__ import annotations

import json

import pytest

from modules.services.voice_phrases.phrases import FORMS
from tests.model.conftest import settings_for
from tests.running_town import RunningTown, awake

pytestmark = [pytest.mark.model, pytest.mark.timeout(1_800)]
VOICE = "Warm and a little old-fashioned, like a letter to a friend. I finish something by saying so plainly."


async def test_the_texts_become_the_soul_s_own_and_stay_usable(running_town: RunningTown, real_model: str) -> None:
    home = running_town.make_home("rowan", **settings_for(real_model, SOUL_SPEED="1"))
    async with awake(home) as soul:
        services = soul.app.services
        text = f"{services.identity.text().partition('## Voice')[0]}## Voice\n\n{VOICE}\n"
        await services.self_keeper.change(text, reason="A voice.", by="owner")
        await services.events.settle()
        told = [one.entry for one in await services.journal.recent(50) if one.entry.loop == "voice-phrases"]
        print(*(f"{entry.summary} | {entry.reason}" for entry in told), sep="\n")
        own = {key for key in FORMS if services.phrases.template(key) != services.phrases.default(key)}
    print(json.loads(home.voice_phrases.read_text(encoding="utf-8")) if home.voice_phrases.exists() else "no file")
    assert own
