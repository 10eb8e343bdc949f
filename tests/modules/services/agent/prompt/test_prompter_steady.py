"""Proves that the unchanging part of a prompt stays the same bytes, whatever the changing parts come to say."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.provenance import Provenance
from modules.services.agent.prompt.fitting import Audience, PromptFile
from tests.exploration import examples
from tests.modules.services.agent.prompt.prompt_home import NOW, PromptHome, recalled

# NOTE(self): words that look like the frame of a prompt are the ones that could break out of their place.
_FRAME = ["---", "\n\n---\n\n", "# SOUL", "## A", "```", "{{name}}", "{% x %}", "You are Kit.", "\u2028", "\r\n", "🌊"]
_WORDS = st.lists(st.sampled_from(_FRAME) | st.text(max_size=30), max_size=6).map("\n".join)
_DAYS = st.dictionaries(st.sampled_from([(NOW - timedelta(days=1)).date(), NOW.date()]), _WORDS, max_size=4)
_TURN = st.fixed_dictionaries(
    {
        "days": _DAYS,
        "degraded": _WORDS,
        "attention_list": st.tuples(_WORDS, _WORDS),
        "boot": st.fixed_dictionaries({"owner:terminal": _WORDS, "bluesky:somewhere": _WORDS}),
        "recalled": st.fixed_dictionaries({True: _WORDS.map(recalled), False: _WORDS.map(recalled)}),
        "extra": st.lists(
            st.builds(PromptFile, st.just("letter.md"), _WORDS, st.just(10), st.just("dynamic")), max_size=1
        ),
        "away": st.sampled_from(["", "the store does not answer"]),
    }
)
_FILES = st.fixed_dictionaries({"HEARTBEAT.md": _WORDS, "CONTEXT.md": _WORDS})
_AUDIENCES = st.sampled_from(list[Audience](("owner", "bluesky", "space")))


@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(turns=st.lists(st.tuples(_TURN, _FILES, _WORDS), min_size=2, max_size=4), audience=_AUDIENCES)
async def test_the_static_text_is_the_same_bytes_from_turn_to_turn_whatever_the_changing_parts_say(
    tmp_path: Path, turns: list[tuple[dict[str, object], dict[str, str], str]], audience: Audience
) -> None:
    prompt_home = PromptHome(tmp_path / "marlow")
    for name in ("USER.md", "AGENTS.md"):
        prompt_home.write(name, f"The page {name}.\n")
    prompt_home.write("IDENTITY.md", "---\nname: Marlow of the Quay\n---\n")
    seen: set[str] = set()
    for number, (says, files, about) in enumerate(turns):
        for name, value in says.items():
            setattr(prompt_home.known, name, value)
        for name, text in files.items():
            prompt_home.write(name, text)
        least = Provenance.OWNER if number % 2 else Provenance.STRANGER
        prompt = await prompt_home.prompt(audience, query=about, now=NOW + timedelta(hours=number), least=least)
        (static,) = [block.text for block in prompt.blocks if block.group == "static"]
        seen.add(static)
        assert prompt.text.startswith(static)
    assert len(seen) == 1
