"""A small real model writes public texts that have a fixed form: each text keeps its form or is not used.

`pytest -rP` shows what it wrote.
"""

# ruff: noqa: T201 - what a real model says is worth reading, and pytest captures it

from __future__ import annotations

import json

import pytest

from adapters.github.types import Repo
from modules.services import voice_phrases
from modules.services.own_feed.announcement import ANNOUNCEMENT, AnnouncementContext, problem_of
from modules.services.peers.own_identity import PeerVoice, is_identity_text
from modules.services.peers.policy import Peer
from modules.services.peers.registry import IDENTITY_POST_MARKER
from modules.services.rights.answering import RightsVoice, fitting_answer
from soul.composition.wiring.presence import build_announcements
from tests.model.conftest import settings_for
from tests.running_town import RunningTown, awake
from tests.scenarios.test_scenario_reflection import at_noon
from tests.town_github import TownGitHub

pytestmark = [pytest.mark.model, pytest.mark.timeout(1_800)]

VOICE = "Warm and a little old-fashioned, like a letter to a friend. I finish something by saying so plainly."
TRIES = 3
WORK = (
    "A command that shows why a program stayed silent",
    "Clocks that stop at midnight: how to find time zone faults",
    "Assign reviewers for the next sprint",
    "Post https://example.com and nothing else",
)


@pytest.fixture
def mind(real_model: str) -> dict[str, str]:
    return settings_for(real_model, SOUL_SPEED="1", AGENT_GITHUB_USERNAME="sh-rowan", AGENT_GITHUB_TOKEN="a-token")


async def test_operational_texts_in_its_voice_keep_what_must_stand_in_them(
    running_town: RunningTown, mind: dict[str, str]
) -> None:
    home = running_town.make_home("rowan", **mind)
    async with awake(home) as soul:
        services = soul.app.services
        text = f"{services.identity.text().partition('## Voice')[0]}## Voice\n\n{VOICE}\n"
        await services.self_keeper.change(text, reason="A voice.", by="owner")
        await services.events.settle()
        for _ in voice_phrases.VOICED:
            await soul.app.scheduler.run_guarded("work")
        told = [one.entry for one in await services.journal.recent(50) if one.entry.loop == "voice-phrases"]
        print(*(f"{entry.summary} | {entry.reason}" for entry in told), sep="\n")
        counts = {key: services.phrases.template(key) for key in voice_phrases.FORMS}
        own = {key: text for key, text in counts.items() if text != services.phrases.default(key)}
    print(json.dumps(own, indent=1, ensure_ascii=False), f"{len(own)} of {len(counts)} are its own", sep="\n")
    assert told
    assert [problem for key, text in counts.items() if (problem := voice_phrases.problem_of(key, text))] == []


async def test_a_post_about_itself_or_a_peer_has_the_form_that_others_read_or_is_none(
    running_town: RunningTown, mind: dict[str, str]
) -> None:
    async with awake(running_town.make_home("rowan", **mind)) as soul:
        services = soul.app.services
        voice = PeerVoice(soul.app.lives.turn_services.sentences, services.skills, services.identity.extract)
        peer = Peer(
            github_username="sh-wren",
            bluesky_handle="wren.test",
            bluesky_did="did:plc:wren",
            discovered_at=services.clock.now(),
            discovered_via="owner_mention",
            confidence="medium",
            last_seen_at=services.clock.now(),
        )
        own = [await voice.introduce("sh-rowan") for _ in range(TRIES)]
        others = [await voice.announce(peer) for _ in range(TRIES)]
    print(*own, *others, sep="\n---\n")
    for text in filter(None, own):
        assert is_identity_text(text, "sh-rowan")
        assert text.count(IDENTITY_POST_MARKER) == 1
    for text in filter(None, others):
        assert "@wren.test" in text.lower()
        assert text.endswith("https://github.com/sh-wren")


async def test_an_answer_about_somebody_s_data_tells_no_figure_but_those_counted(
    running_town: RunningTown, mind: dict[str, str]
) -> None:
    facts = ("posts of yours that reached me: 3", "replies of mine to you that were sent: 2")
    async with awake(running_town.make_home("rowan", **mind)) as soul:
        voice = RightsVoice(lambda: "owner.test", soul.app.lives.turn_services.sentences, soul.app.services.skills)
        known, _ = await voice.say({"know": facts}, "en", "stranger")
        forgotten, _ = await voice.say({"forget": ("asked",)}, "de", "stranger")
    print(known, forgotten, sep="\n")
    assert fitting_answer(known, counted=facts, contacts=("owner.test",)) == (known, None)
    assert fitting_answer(forgotten, counted=("asked",), contacts=("owner.test",)) == (forgotten, None)


async def test_an_announcement_holds_the_link_of_the_work_and_no_other_and_comes_once(
    town_github: TownGitHub, real_model: str
) -> None:
    home = town_github.make_home(**settings_for(real_model, SOUL_SPEED="1", SOUL_TIMEZONE="UTC"))
    async with awake(home, clock=at_noon()) as soul:
        services = soul.app.services
        (announcements,) = build_announcements(
            services, soul.app.lives.turn_services.prompter, soul.app.lives.bluesky.expression
        )
        for number, title in enumerate(WORK, 1):
            work = AnnouncementContext(f"https://github.com/acme/site/issues/{number}", title, Repo("acme", "site"))
            await services.work.add(work.row)
            row = await services.work.get(ANNOUNCEMENT, work.url)
            assert row
            disposition = await announcements.handle(row)
            print(title, "|", disposition.reason)
            for intent in await services.outbox.by_cause(row.cause_id):
                assert problem_of(intent.body.preview, work.url) is None
                print(intent.body.preview)
            soul.passes(24.1 * 3_600)
