"""A SOUL says operational things in its own words once it has some, and in those of the skill until then.

Proves also what an operational text must contain, and how it is filled in.
"""

import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.runtime.home import Home
from modules.services.voice_phrases import (
    FORMS,
    SKILL,
    VERSION,
    VOICED,
    as_object,
    interpolate,
    problem_of,
    read_phrases,
)
from tests.running_town import RunningSoul, RunningTown, awake, prompt_of
from tests.shipped_skills import SHIPPED
from town.model.service import Fault
from town.model.types import ChatRequest, Completion

DEFAULTS = SHIPPED.subsections("voice-phrases", "Defaults")


def file_of(**changed: str | None) -> dict[str, Any]:
    """Return the object of a file with the skill's texts; `__` in a name stands for a dot, None leaves a text out."""
    texts: dict[str, str | None] = {**DEFAULTS, **{name.replace("__", "."): text for name, text in changed.items()}}
    return as_object({key: text for key, text in texts.items() if text is not None})


def refusal(raw: object) -> str:
    with pytest.raises(ValueError, match=r"\w") as refused:
        read_phrases(raw)
    return str(refused.value)


def test_the_texts_of_the_skill_are_all_there_is_and_valid() -> None:
    assert DEFAULTS.keys() == FORMS.keys()
    assert read_phrases(file_of()) == DEFAULTS


@pytest.mark.parametrize("raw", [None, 5, "x", [], {}, {"version": 2}, {**file_of(), "version": "1"}])
def test_what_is_no_object_of_this_version_is_refused(raw: object) -> None:
    assert refusal(raw) == f"it is no JSON object of version {VERSION}"


WRONG: list[tuple[dict[str, str | None], str]] = [
    ({"task_claim": None}, "task_claim is missing"),
    ({"fulfillment__default": "  "}, "fulfillment.default is missing"),
    ({"fulfillment__default": "Done."}, "fulfillment.default lacks {{url}}"),
    ({"task_claim": "On {{number}}."}, "task_claim lacks {{title}}"),
    ({"task_claim": "On {{number}}, {{title}} by {{author}}."}, "has {{author}}, which nobody fills in"),
    ({"task_claim": f"{{{{number}}}} {{{{title}}}} {'x' * 120}"}, "has more than 120 characters"),
    ({"github__plan_complete": "x" * 2001}, "has more than 2000 characters"),
    ({"github__task_failed": "**Task {{number}}: {{title}}** did not work. {{details}}"}, "lacks 'failed'"),
    ({"github__task_abandoned": "Task {{number}} has failed {{count}} times."}, "lacks '**task {{number}}**'"),
    ({"github__plan_complete": "Done, @ada."}, "names an account or an address"),
    ({"github__plan_complete": "See https://evil.example."}, "names an account or an address"),
    ({"space__creating": "Now\u202e."}, "space.creating holds control characters"),
]


@pytest.mark.parametrize(("changed", "problem"), WRONG)
def test_a_text_that_must_not_be_said_so_is_refused_by_its_name(changed: dict[str, str | None], problem: str) -> None:
    assert problem in refusal(file_of(**changed))


def test_a_text_that_names_the_soul_s_own_account_is_refused_where_that_is_asked() -> None:
    text = "SH-rowan: all tasks are done."
    assert problem_of("github.plan_complete", text, names=("", "sh-rowan")) == (
        "github.plan_complete names the SOUL's own account"
    )
    assert not problem_of("github.plan_complete", text)


def test_a_placeholder_is_filled_in_everywhere_and_what_was_put_in_is_not_read_again() -> None:
    template = "{{url}} and {{ url }}: {{title}}, {{unknown}}"
    filled = interpolate(template, {"url": "{{title}}", "title": "{{url}} \\1 {% x %}"})
    assert filled == "{{title}} and {{title}}: {{url}} \\1 {% x %}, {{unknown}}"


@given(st.text(), st.text())
def test_whatever_is_put_in_stands_there_as_it_is(title: str, details: str) -> None:
    filled = interpolate("a{{title}}b{{details}}c{{title}}", {"title": title, "details": details})
    assert filled == f"a{title}b{details}c{title}"


OURS = "It is there, dear: {{url}}"
LINK = "https://github.com/acme/site/issues/1"
ON_GITHUB = {"AGENT_GITHUB_USERNAME": "sh-rowan", "AGENT_GITHUB_TOKEN": "a-token"}
HOUR_S = 3_600
VOICE = "## Voice\n\nWarm, a little old-fashioned.\n"


def write(home: Home, content: object) -> None:
    home.voice_phrases.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    # NOTE(self): two writes within one tick of the file system's clock must count as two.
    stamp = home.voice_phrases.stat().st_mtime_ns + 1_000_000
    os.utime(home.voice_phrases, ns=(stamp, stamp))


def complaints(life: RunningSoul) -> list[str]:
    return [" ".join(map(str, line)) for line in life.console.lines if "voice-phrases.json" in str(line)]


async def told(life: RunningSoul) -> list[str]:
    entries = await life.app.services.journal.recent(50)
    return [f"{one.entry.summary} | {one.entry.reason}" for one in entries if one.entry.loop == SKILL]


async def becomes(life: RunningSoul, voice: str, purpose: str = "To take part.", runs: int = len(VOICED)) -> None:
    """Change SELF.md to this voice and purpose, and run the work loop `runs` times."""
    services = life.app.services
    text = services.identity.text().partition("## Voice")[0] + f"{purpose}\n\n{voice}"
    change = await services.self_keeper.change(text, reason="I have changed.", by="owner")
    assert change.status != "refused"
    await services.events.settle()
    for _ in range(runs):
        await life.app.scheduler.run_guarded("work")


def writing(**changed: str | None) -> Any:
    def answer(request: ChatRequest) -> Completion:
        asked = request.messages[-1].text
        flat = {**DEFAULTS, **{name.replace("__", "."): text for name, text in changed.items()}}
        texts = {key: text for key, text in flat.items() if f'"{key}"' in asked}
        return Completion(f"Here it is:\n```json\n{json.dumps(texts)}\n```")

    return answer


async def test_the_file_counts_at_once_and_a_broken_one_is_told_of_once(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        phrase = life.app.services.phrases.phrase
        assert phrase("fulfillment.default", url=LINK) == f"Done, as I said: {LINK}"
        write(home, file_of(fulfillment__default=OURS, space__creating=None))
        assert phrase("fulfillment.default", url=LINK) == f"It is there, dear: {LINK}"
        assert phrase("space.creating") == DEFAULTS["space.creating"]
        write(home, file_of(fulfillment__default="Done."))
        assert [phrase("fulfillment.default", url=LINK) for _ in range(2)] == [f"Done, as I said: {LINK}"] * 2
        (line,) = complaints(life)
        assert "fulfillment.default lacks {{url}}" in line
        for broken in ("{", "[" * 100_000, "\x00", "{}"):
            write(home, broken)
            assert phrase("space.creating") == DEFAULTS["space.creating"]
        assert len(complaints(life)) == 5
        home.voice_phrases.unlink()
        assert phrase("space.creating") == DEFAULTS["space.creating"]
        assert len(complaints(life)) == 5


async def test_a_new_voice_in_self_md_gives_new_texts_once(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", **ON_GITHUB)
    running_town.mind.answer = writing(fulfillment__default=OURS, github__plan_superseded="Closed.")
    async with awake(home) as life:
        await becomes(life, VOICE)
        await becomes(life, VOICE, purpose="To listen.")
        assert life.app.services.phrases.phrase("fulfillment.default", url=LINK) == f"It is there, dear: {LINK}"
        (line,) = await told(life)
        assert "are reworded" in line
        assert line.endswith("as they were: github.plan_superseded lacks {{url}}")
    async with awake(home) as life:
        await becomes(life, VOICE, purpose="To rest.")
    assert len(running_town.mind.asked) == len(VOICED)
    for request in running_town.mind.asked:
        assert "Warm, a little old-fashioned." in prompt_of(request)
    held = json.loads(home.voice_phrases.read_text(encoding="utf-8"))
    assert held["version"] == 1
    assert held["generatedAt"]
    kept, default = held["github"]["plan_superseded"], DEFAULTS["github.plan_superseded"]
    assert kept == default, "a text that lost its placeholder is refused"


@pytest.mark.parametrize(
    "answer",
    [
        writing(fulfillment__create_issue="Written down."),
        writing(task_claim="sh-rowan takes {{number}}: {{title}}"),
        lambda _: Completion('{"fulfillment": '),
        writing(),
    ],
    ids=["placeholder lost", "names itself", "half JSON", "the same"],
)
async def test_texts_that_cannot_be_used_change_nothing(running_town: RunningTown, answer: Any) -> None:
    home = running_town.make_home("rowan", **ON_GITHUB)
    running_town.mind.answer = answer
    before = as_object({**DEFAULTS, "fulfillment.default": OURS})
    write(home, before)
    async with awake(home) as life:
        await becomes(life, VOICE)
        await becomes(life, VOICE, purpose="To listen.")
        (line,) = await told(life)
    assert "cannot be used" in line
    assert json.loads(home.voice_phrases.read_text(encoding="utf-8")) == before
    assert len(running_town.mind.asked) <= len(VOICED), "the same voice is not asked about again"


async def test_rewording_goes_on_after_a_restart_and_lets_whoever_writes_go_first(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", **ON_GITHUB)
    running_town.mind.answer = writing(fulfillment__default=OURS)
    async with awake(home) as life:
        running_town.mind_faults.arm(Fault("bad_gateway", times=50))
        await becomes(life, VOICE, runs=1)
        running_town.mind_faults.clear()
    assert not home.voice_phrases.exists()
    running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
    attentive = set[str]()

    def answer(request: ChatRequest) -> Any:
        if "Warm, a little" not in request.messages[-1].text:
            return Completion("")
        attentive.add(life.app.services.attention.mode)
        return writing(fulfillment__default=OURS)(request)

    running_town.mind.answer = answer
    async with awake(home) as life:
        before = len(running_town.mind.asked)
        await life.look()
        for _ in range(len(VOICED)):
            life.passes(HOUR_S)
            await life.app.scheduler.run_guarded("work")
    asked = [prompt_of(one) for one in running_town.mind.asked[before:]]
    assert "which roof is louder" in asked[0]
    assert attentive == {"idle"}, "a line of the owner's waits for none of these calls"
    assert [any(f'"{group[0]}"' in text for text in asked) for group in VOICED] == [True] * len(VOICED)
    assert home.voice_phrases.exists()


@pytest.mark.parametrize("more", [{}, {"AGENT_GITHUB_USERNAME": "sh-rowan"}])
async def test_without_an_account_on_github_no_text_for_it_is_worded(
    running_town: RunningTown, more: dict[str, str]
) -> None:
    async with awake(running_town.make_home("rowan", **more)) as life:
        await becomes(life, VOICE)
    assert running_town.mind.asked == []
