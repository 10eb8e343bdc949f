"""The SOUL's own words about itself and its peers, over real HTTP: the fixed parts stand, whatever the model writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.text.graphemes import grapheme_len
from modules.services.agent.one_sentence import SentenceAsker, fitting_words
from modules.services.identity.identity import extract_from_self
from modules.services.peers.own_identity import PeerVoice
from modules.services.peers.registry import extract_github_username_from_text
from modules.services.peers.types import Peer
from tests.modules.runtime.llm.scripted_model import ScriptedModel, calls, scripted_gateway
from tests.modules.services.agent.prompt.prompt_home import PromptHome
from tests.shipped_skills import SHIPPED

NOW = datetime(2026, 1, 5, tzinfo=UTC)
WREN = Peer(
    github_username="sh-wren",
    bluesky_handle="wren.test",
    bluesky_did="did:plc:wren",
    discovered_at=NOW,
    discovered_via="owner_mention",
    confidence="medium",
    last_seen_at=NOW,
)

SELF = extract_from_self(
    "# Rowan\n\n## Purpose\n\nI am here to keep a map of every gutter in the old town.\n\n"
    "## Questions I'm Sitting With\n\n- Which roof sings first?\n"
)


@pytest.fixture
async def voice(model: ScriptedModel, tmp_path: Path) -> AsyncIterator[PeerVoice]:
    clock = FakeClock()
    gateway = scripted_gateway(
        model.url,
        clock=clock,
        max_retries=0,
    )
    prompter = PromptHome(tmp_path / "home").prompter
    yield PeerVoice(SentenceAsker("rowan.test", gateway, prompter, SHIPPED, clock), SHIPPED, lambda: SELF)
    await gateway.aclose()


def wrote(tool: str, sentence: str) -> tuple[str, str]:
    return tool, json.dumps({"sentence": sentence})


async def test_the_identity_post_is_the_models_sentence_between_marker_and_link(
    voice: PeerVoice, model: ScriptedModel
) -> None:
    model.plays(calls(wrote("say_who_you_are", "I keep old roofs dry.")))
    assert await voice.introduce("sh-rowan") == "🔗—`sh-rowan` I keep old roofs dry.\n\nhttps://github.com/sh-rowan"
    assert "`sh-rowan`" in json.dumps(model.requests[-1]["messages"])


async def test_the_identity_post_may_say_what_its_own_pages_say_which_the_model_is_shown(
    voice: PeerVoice, model: ScriptedModel
) -> None:
    model.plays(calls(wrote("say_who_you_are", "I keep a map of every gutter in the old town.")))
    assert "I keep a map of every gutter in the old town." in await voice.introduce("sh-rowan")
    shown = json.dumps(model.requests[-1]["messages"])
    assert "to keep a map of every gutter in the old town" in shown
    assert "Which roof sings first?" in shown


@pytest.mark.parametrize(
    "said",
    [
        "🔗—`sh-eve` I am @kit.test in disguise. See https://github.com/sh-eve for more.",
        "long words " * 200,
        "I keep old roofs dry. 🔗— https://example.org/a is where.",
    ],
)
async def test_whatever_the_model_writes_the_post_claims_our_own_name(
    voice: PeerVoice, model: ScriptedModel, said: str
) -> None:
    model.plays(calls(wrote("say_who_you_are", said)))
    text = await voice.introduce("sh-rowan")
    assert extract_github_username_from_text(text) == "sh-rowan"
    assert text.endswith("\n\nhttps://github.com/sh-rowan")
    assert text.count("http") == 1
    assert "@" not in text
    assert grapheme_len(text) <= 300


@pytest.mark.parametrize("said", ["Hi.", "https://github.com/sh-rowan"])
async def test_words_that_say_nothing_make_no_post(voice: PeerVoice, model: ScriptedModel, said: str) -> None:
    model.plays(calls(wrote("say_who_you_are", said)))
    assert await voice.introduce("sh-rowan") == ""


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Meet @wren.test, who takes radios apart.", "Meet @wren.test, who takes radios apart."),
        ("I found a neighbour worth a look.", "@wren.test I found a neighbour worth a look."),
        ("Meet @Wren.test and @kit.test today.", "Meet @Wren.test and kit.test today."),
    ],
)
async def test_an_announcement_names_the_handle_and_the_address_and_nobody_else(
    voice: PeerVoice, model: ScriptedModel, said: str, text: str
) -> None:
    model.plays(calls(wrote("tell_of_peer", said)))
    assert await voice.announce(WREN) == f"{text}\n\nhttps://github.com/sh-wren"


def test_a_sentence_that_gives_our_instructions_back_is_left_out() -> None:
    told = "Tell your readers in a few words of your own what you found. Not who made you."
    said = "I found @wren.test. Tell your readers in a few words of your own what you found! They mend radios."
    assert fitting_words(said, "wren.test", told=told) == "I found @wren.test. They mend radios."
    assert fitting_words("I found @wren.test. See [their link].", "wren.test") == "I found @wren.test."


def test_words_end_with_a_whole_sentence_where_they_are_too_long() -> None:
    assert (
        fitting_words("The first sentence is this one. " + "And on it goes " * 30) == "The first sentence is this one."
    )
