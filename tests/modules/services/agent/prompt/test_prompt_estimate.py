"""Proves that the estimate learns from bills, stays within its bounds, and survives restarts and unreadable files.

Proves that the changing part of a prompt follows the stable part, from the first message of a conversation on.
"""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modules.runtime.console import SilentConsole
from modules.runtime.llm.dialect import Message, PromptBlock, ToolAnswer, ToolCall, convert_messages
from modules.services.agent.prompt.estimate import LEAST_RATIO, MOST_RATIO, START_RATIO, Estimator
from modules.services.agent.prompt.fitting import placed
from modules.services.memory.admission import NewMemory
from tests.exploration import examples
from tests.owner_lines import answered
from tests.running_town import RunningTown, awake
from town.model.types import Completion

MODEL = "test/mind"


def at(folder: Path, model: str = MODEL) -> Estimator:
    return Estimator(folder / "estimate.json", model=model)


def test_a_model_without_a_bill_is_taken_at_four_characters_a_token_rounded_up(tmp_path: Path) -> None:
    estimator = at(tmp_path)
    assert [estimator.estimate("x" * length) for length in (0, 1, 4, 5, 400)] == [0, 1, 1, 2, 100]


def test_bills_move_the_ratio_towards_what_they_say_and_only_for_their_model(tmp_path: Path) -> None:
    estimator = at(tmp_path)
    for _ in range(60):
        estimator.learn(MODEL, 3000, 1000)
    assert 3.0 <= estimator.ratio < 3.1
    assert estimator.estimate("x" * 3100) >= 1000
    assert at(tmp_path, "another").ratio == START_RATIO


@pytest.mark.parametrize(("chars", "tokens", "bound"), [(6_000, 1000, MOST_RATIO), (1000, 1000, LEAST_RATIO)])
def test_the_ratio_stays_within_its_bounds(tmp_path: Path, chars: int, tokens: int, bound: float) -> None:
    estimator = at(tmp_path)
    for _ in range(200):
        estimator.learn(MODEL, chars, tokens)
    assert estimator.ratio == pytest.approx(bound, abs=0.06)
    assert LEAST_RATIO <= estimator.ratio <= MOST_RATIO


def test_what_was_learned_survives_a_restart(tmp_path: Path) -> None:
    before = at(tmp_path)
    for _ in range(20):
        before.learn(MODEL, 5000, 1000)
    assert at(tmp_path).ratio == before.ratio > START_RATIO


def test_bills_that_agree_change_neither_the_estimate_nor_the_disk(tmp_path: Path) -> None:
    estimator = at(tmp_path)
    for wobble in (3900, 4100, 4050, 3950) * 20:
        estimator.learn(MODEL, wobble, 1000)
    assert estimator.ratio == START_RATIO
    assert not (tmp_path / "estimate.json").exists()


@pytest.mark.parametrize(("chars", "tokens"), [(3000, 0), (0, 1000), (54_608, 4_096), (6_001, 1_000)])
def test_bills_that_say_nothing_teach_nothing(tmp_path: Path, chars: int, tokens: int) -> None:
    estimator = at(tmp_path)
    for _ in range(50):
        estimator.learn(MODEL, chars, tokens)
    assert estimator.ratio == START_RATIO


@pytest.mark.parametrize("content", ["{", '{"ratios": 3}', '{"ratios": {"test/mind": 1e999}}'])
def test_a_file_of_nonsense_is_no_ratio(tmp_path: Path, content: str) -> None:
    (tmp_path / "estimate.json").write_text(content)
    assert at(tmp_path).ratio == START_RATIO


def test_only_so_many_models_are_remembered(tmp_path: Path) -> None:
    estimator = at(tmp_path)
    for number in range(30):
        estimator.learn(f"model-{number}", 5900, 1000)
    assert at(tmp_path, "model-0").ratio == START_RATIO
    assert at(tmp_path, "model-29").ratio > START_RATIO


@settings(max_examples=examples(30))
@given(one=st.text(), other=st.text())
def test_more_text_is_never_fewer_tokens_and_parts_are_never_fewer_than_the_whole(one: str, other: str) -> None:
    estimator = Estimator(Path("/nowhere/estimate.json"), model=MODEL)
    assert estimator.estimate(one + other) >= estimator.estimate(one)
    assert estimator.estimate(one + other) <= estimator.estimate(one) + estimator.estimate(other)


def test_a_service_that_cuts_prompts_is_told_of_once_and_no_more_is_sent_than_it_keeps(tmp_path: Path) -> None:
    console = SilentConsole()
    estimator = Estimator(tmp_path / "estimate.json", model=MODEL, console=console)
    assert (estimator.within(200_000), estimator.prompt_within(40_000)) == (200_000, 40_000)
    for chars in (54_608, 54_700, 61_000):
        estimator.learn(MODEL, chars, 4_096)
    assert (estimator.within(200_000), estimator.within(3_000)) == (4_096, 3_000)
    assert estimator.prompt_within(40_000) == 2_048
    assert [kind for kind, *_ in console.lines] == ["warn"]
    assert "CONTEXT_TOKENS=4096" in console.lines[0][2]
    assert estimator.ratio == START_RATIO


@pytest.mark.parametrize(
    "bills",
    [
        [(40_000, 26), (40_000, 9_900), (41_000, 310)],  # cached input is not counted
        [(40_000, 9_900), (40_000, 9_900), (41_000, 9_900)],
        [(40_000, 10_000), (44_000, 11_000), (30_000, 7_400)],
        [(16_000, 2_626), (9_000, 820), (9_200, 820)],  # a window is no smaller than an earlier count
    ],
)
def test_other_counts_tell_of_no_window(tmp_path: Path, bills: list[tuple[int, int]]) -> None:
    estimator = at(tmp_path)
    for chars, tokens in bills:
        estimator.learn(MODEL, chars, tokens)
    assert estimator.within(200_000) == 200_000


STABLE = (PromptBlock("static", "Who I am."), PromptBlock("semi-static", "---\n\nWhat I know."))


def changing(what: str) -> tuple[PromptBlock, ...]:
    return (*STABLE, PromptBlock("dynamic", f"---\n\n{what}"))


def test_the_first_two_messages_of_a_talk_have_the_same_system_prompt() -> None:
    first, _ = placed(changing("It is noon."), [Message("user", "Hello.")], may_go_on=True)
    talk = [Message("user", "Hello."), Message("assistant", "Yes?"), Message("user", "And now?")]
    second, _ = placed(changing("It is one."), talk, may_go_on=True)
    assert first == second == STABLE


def test_what_changes_stands_before_the_words_that_are_answered_and_nowhere_else() -> None:
    talk = [Message("user", "Hello."), Message("assistant", "Yes?"), Message("user", "And now?")]
    _, shown = placed(changing("It is one."), talk, may_go_on=True)
    *_, last = convert_messages(shown)
    assert shown[:-1] == tuple(talk[:-1])
    assert last["content"].index("It is one.") < last["content"].index("And now?")
    _, (only,) = placed(changing("It is noon."), [Message("user", "Hello.")], may_go_on=True)
    assert convert_messages([only])[0]["content"] == "It is noon.\n\n---\n\n\nHello."


def test_a_turn_that_a_crash_cut_off_after_a_tool_answered_holds_no_message_without_words() -> None:
    call = ToolCall("1", "read", {})
    talk = [Message("user", "Hello."), Message("assistant", (call,)), Message("user", (ToolAnswer("1", "read", "x"),))]
    _, shown = placed(changing("It is one."), talk)
    first, *rest = convert_messages(shown)
    assert first["content"] == "It is one.\n\n---\n\n\nHello."
    assert [message["role"] for message in rest] == ["assistant", "tool"]


async def test_while_the_owner_talks_the_notes_from_before_stay_in_front_and_a_new_one_changes_nothing_there(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = lambda _: Completion(text="So it is.")
    async with awake(running_town.make_home("rowan")) as life:
        memories, clock = life.app.services.knowledge.stores.memories, life.app.services.clock
        await memories.save(NewMemory("lesson", "reeds", "Reeds bend."), clock.now() - timedelta(minutes=5))
        await memories.save(NewMemory("curated", "kit", "Kit mends clocks."), clock.now() - timedelta(days=5))
        await answered(life.app.owner, "Hello.")
        await memories.save(NewMemory("lesson", "slate", "Slate hums."), clock.now())
        await memories.save(NewMemory("curated", "ferry", "The ferry is late."), clock.now())
        await answered(life.app.owner, "And now?")
    before, after = (
        "".join(message.text for message in request.messages if message.role == "system")
        for request in running_town.mind.asked
    )
    assert before == after
    assert "Reeds bend." in before
    assert "# What you keep in mind (MEMORY.md)\n\n## kit\n\nKit mends clocks." in before
    assert all(
        words in running_town.mind.asked[1].messages[-1].text
        for words in ("Slate hums.", "## ferry\n\nThe ferry is late.")
    )
