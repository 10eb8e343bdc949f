"""Proves that a turn carries out the model's calls, returns their results to it, and always ends."""

import asyncio
import dataclasses
import json
import threading
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from pydantic import BaseModel

from common.clock import FakeClock
from common.errors import ModelRefused, PromptTooLong, StorageError
from common.provenance import Provenance
from common.redact import MASK, Redactor
from modules.runtime.llm.dialect import Message, Usage
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.tools.executor import Executor, Registry
from modules.services.agent.tools.policy import MIXED
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.agent.turn.runner import TurnResult, run_turn
from modules.services.skills.skills import Framer
from modules.services.work.types import Disposition
from tests.modules.runtime.llm.scripted_model import ScriptedModel, calls, refuses, says
from tests.patience import until
from tests.shipped_skills import SHIPPED

TakeTurn = Callable[..., Any]


class Reading(BaseModel):
    """What to read."""

    name: str


class Replying(BaseModel):
    """What to answer."""

    post_uri: str
    text: str


class Nothing(BaseModel):
    """No parameters."""


class RecordingTools:
    """Tools that record their calls."""

    def __init__(self, clock: FakeClock) -> None:
        self.did: list[str] = []
        self._clock = clock
        self._rng = Random(7)

    async def read(self, arguments: Reading, turn: Turn) -> ToolResult:
        self.did.append(f"read {arguments.name}")
        if arguments.name == "missing":
            return ToolResult("no such note", is_error=True)
        if arguments.name == "disk":
            raise StorageError("disk full")
        if arguments.name == "framed":
            framed = Framer(SHIPPED, self._rng).frame("reading", author="kit", uri="here", text="hello")
            return ToolResult(framed)
        if arguments.name.startswith("long"):
            framed = Framer(SHIPPED, self._rng).frame("reading", author="kit", uri="here", text="word " * 8_000)
            return ToolResult(framed)
        if arguments.name == "slow":
            await self._clock.advance(700)
        return ToolResult(f"{arguments.name} says hello")

    async def reply(self, arguments: Replying, turn: Turn) -> ToolResult:
        self.did.append(f"reply {arguments.post_uri}")
        return ToolResult("sent")

    async def follow(self, arguments: Reading, turn: Turn) -> ToolResult:
        self.did.append(f"follow {arguments.name}")
        if arguments.name == "nobody":
            return ToolResult("no such account", is_error=True)
        return ToolResult("followed", outcome=Disposition("", held=arguments.name == "held"))

    async def answer(self, arguments: Reading, turn: Turn) -> ToolResult:
        self.did.append(f"answer {arguments.name}")
        return ToolResult("said", ends_turn=True)

    async def finish(self, arguments: Nothing, turn: Turn) -> ToolResult:
        self.did.append("finish")
        return ToolResult("silent", ends_turn=True)

    def tools(self) -> list[Tool]:
        return [
            Tool("read", "Reads.", Reading, "self", Provenance.STRANGER, self.read),
            Tool("bluesky_reply", "Replies.", Replying, "social", Provenance.STRANGER, self.reply),
            Tool("follow", "Follows.", Reading, "social", Provenance.STRANGER, self.follow),
            Tool("answer", "Answers.", Reading, "social", Provenance.STRANGER, self.answer, answers=str),
            Tool("stay_silent", "Ends.", Nothing, "social", Provenance.STRANGER, self.finish, closes=str),
            Tool("secret", "Hidden.", Nothing, "self", Provenance.OWNER, self.finish),
        ]


@pytest.fixture
def recording_tools(clock: FakeClock) -> RecordingTools:
    return RecordingTools(clock)


@pytest.fixture
def take_turn(gateway: LLMGateway, recording_tools: RecordingTools, clock: FakeClock) -> TakeTurn:
    async def run(**options: Any) -> TurnResult:
        return await run_turn(
            gateway=gateway,
            executor=Executor(Registry(recording_tools.tools(), social_only=True), SHIPPED),
            turn=Turn("test", Provenance.STRANGER, subject="a post"),
            system="be kind",
            messages=[Message("user", "hello")],
            purpose="test",
            clock=clock,
            **options,
        )

    return run


def read(name: str) -> tuple[str, str]:
    return "read", json.dumps({"name": name})


def reply(uri: str) -> tuple[str, str]:
    return "bluesky_reply", json.dumps({"post_uri": uri, "text": "hi"})


SILENT = ("stay_silent", "{}")


def follow(name: str) -> tuple[str, str]:
    return "follow", json.dumps({"name": name})


def answer(words: str) -> tuple[str, str]:
    return "answer", json.dumps({"name": words})


async def test_results_go_back_to_the_model_until_it_has_no_more_calls(
    take_turn: TakeTurn, model: ScriptedModel, recording_tools: RecordingTools
) -> None:
    model.plays(calls(read("note"), read("missing"), text="Let me see."), calls(read("other")), says("I see."))
    turn_result = await take_turn()
    assert (turn_result.text, turn_result.rounds, turn_result.stopped) == ("I see.", 3, "ended")
    assert turn_result.usage == Usage(50, 21)
    assert recording_tools.did == ["read note", "read missing", "read other"]
    assert [result.is_error for _, result in turn_result.calls] == [False, True, False]
    seen = model.requests[1]["messages"]
    assert [message["role"] for message in seen] == ["system", "user", "assistant", "tool", "tool"]
    assert [message["content"] for message in seen[3:]] == ["note says hello", "Error: no such note"]
    assert [call["id"] for call in seen[2]["tool_calls"]] == [message["tool_call_id"] for message in seen[3:]]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (
            ("Slate is quieter, as mass damps the drumming.", "Noted."),
            "Slate is quieter, as mass damps the drumming.\n\nNoted.",
        ),
        (("Slate is quieter.", "Slate is quieter.\nI noted your roof."), "Slate is quieter.\nI noted your roof."),
        (("Slate is quieter. Noted.", "Noted."), "Slate is quieter. Noted."),
        (("Slate is quieter.", ""), "Slate is quieter."),
        (("No.", "Noted."), "No.\n\nNoted."),
    ],
    ids=str,
)
async def test_what_the_model_says_beside_a_call_is_part_of_its_answer(
    take_turn: TakeTurn, model: ScriptedModel, texts: tuple[str, str], said: str
) -> None:
    beside, last = texts
    model.plays(calls(read("note"), text=beside), says(last))
    assert (await take_turn()).said == said


def sizes(request: dict[str, Any]) -> list[int]:
    return [len(message["content"]) for message in request["messages"] if message["role"] == "tool"]


async def test_what_tools_brought_is_shown_shorter_until_the_model_takes_it(
    take_turn: TakeTurn, model: ScriptedModel
) -> None:
    too_long = refuses(400, "too long", code="context_length_exceeded")
    kept: list[Message] = []

    async def keep(said: Any) -> None:
        kept.extend(message for message, _ in said)

    model.plays(calls(read("note"), read("long")), too_long, too_long, calls(read("longer")), says("I see."))
    turn_result = await take_turn(keep=keep)
    assert (turn_result.text, turn_result.stopped) == ("I see.", "ended")
    whole, half, quarter, later = (sizes(request) for request in model.requests[1:])
    assert whole[1] > 30_000
    assert half[1] < whole[1] * 0.6
    assert quarter[1] < half[1] * 0.6
    assert later == [*quarter, pytest.approx(quarter[1], abs=200)]
    assert whole[0] == later[0] == len("note says hello")
    told = model.requests[-1]["messages"][-1]["content"]
    assert told.count("<reading-") == told.count("</reading-") == 1
    assert told.count("[TRUNCATED") == 1
    assert str(kept).count("word ") > 11_000


async def test_a_model_that_takes_nothing_is_asked_no_more_once_little_is_left_of_what_tools_brought(
    take_turn: TakeTurn, model: ScriptedModel
) -> None:
    model.plays(calls(read("long")), *[refuses(400, "too long", code="context_length_exceeded")] * 9)
    with pytest.raises(PromptTooLong):
        await take_turn()
    assert len(model.requests) < 9
    assert sizes(model.requests[-1])[0] < 1_500


async def test_no_more_of_what_tools_brought_is_shown_than_there_is_room_for(
    take_turn: TakeTurn, model: ScriptedModel
) -> None:
    model.plays(calls(read("long")), says("I see."))
    turn_result = await take_turn(fits=lambda said, _: len(str(said)) < 8_000)
    assert turn_result.stopped == "ended"
    assert 1_000 < sizes(model.requests[1])[0] < 8_000


async def test_what_a_model_thought_before_its_calls_is_given_back_in_each_further_round(
    take_turn: TakeTurn, model: ScriptedModel
) -> None:
    asked = calls(read("note"), read("other"))
    thought = {"choices": [{"index": 0, "delta": {"reasoning_content": "Notes first."}, "finish_reason": None}]}
    model.plays(dataclasses.replace(asked, chunks=(thought, *asked.chunks)), calls(read("more")), says("I see."))
    await take_turn()
    thoughts = [[said.get("reasoning_content") for said in request["messages"]] for request in model.requests]
    assert thoughts[1:] == [[None, None, "Notes first.", None, None], [None, None, "Notes first.", *[None] * 4]]


@pytest.mark.parametrize(
    ("asked", "did"),
    [
        ([read("note"), SILENT, follow("kit")], ["read note", "follow kit", "finish"]),
        ([answer("yes"), follow("kit")], ["follow kit", "answer yes"]),
        ([SILENT, answer("yes")], ["answer yes"]),
        ([answer("yes"), answer("yes")], ["answer yes"]),
    ],
    ids=str,
)
async def test_what_ends_the_turn_comes_last_in_an_answer_and_an_answer_before_silence(
    take_turn: TakeTurn,
    model: ScriptedModel,
    recording_tools: RecordingTools,
    asked: list[tuple[str, str]],
    did: list[str],
) -> None:
    model.plays(calls(*asked))
    turn_result = await take_turn()
    assert (turn_result.stopped, recording_tools.did) == ("ended", did)
    assert [result.is_error for _, result in turn_result.calls] == [number >= len(did) for number in range(len(asked))]


@pytest.mark.parametrize(
    ("first", "did"),
    [
        ([follow("nobody"), answer("Done: I follow them.")], ["follow nobody"]),
        ([answer("Done: I follow them."), follow("held")], ["follow held"]),
        ([("like_all", "{}"), answer("Done: I like them.")], []),
        ([answer("(1/2)"), answer("(2/2)")], []),
    ],
    ids=str,
)
async def test_an_answer_beside_an_act_that_came_to_nothing_or_in_two_parts_is_sent_back_once(
    take_turn: TakeTurn,
    model: ScriptedModel,
    recording_tools: RecordingTools,
    first: list[tuple[str, str]],
    did: list[str],
) -> None:
    model.plays(calls(*first), calls(answer("what is true")))
    turn_result = await take_turn(tool_choice="required")
    assert (turn_result.stopped, recording_tools.did) == ("ended", [*did, "answer what is true"])
    seen = model.requests[1]["messages"]
    asked = next(message["tool_calls"] for message in seen if message.get("tool_calls"))
    assert [one["function"]["name"] for one in asked] == [name for name, _ in first]
    assert sum(message["role"] == "tool" for message in seen) == len(first)


async def test_an_answer_in_two_parts_once_more_is_carried_out_in_its_first_part(
    take_turn: TakeTurn, model: ScriptedModel, recording_tools: RecordingTools
) -> None:
    parts = calls(answer("(1/2)"), answer("(2/2)"))
    model.plays(parts, parts)
    assert (await take_turn()).stopped == "ended"
    assert recording_tools.did == ["answer (1/2)"]


async def test_a_required_call_that_does_not_come_is_asked_for_once_more(
    take_turn: TakeTurn, model: ScriptedModel
) -> None:
    model.plays(says("I would rather talk."), calls(SILENT))
    turn_result = await take_turn(tool_choice="required", nudge="Decide now.")
    assert (turn_result.stopped, turn_result.rounds) == ("ended", 2)
    last = model.requests[1]["messages"][-2:]
    assert [message["content"] for message in last] == ["I would rather talk.", "Decide now."]
    assert [request["tool_choice"] for request in model.requests] == ["required", "required"]


async def test_a_model_that_never_calls_is_left_alone_after_the_nudge(
    take_turn: TakeTurn, model: ScriptedModel
) -> None:
    model.plays(says("Words."), says("Words."))
    turn_result = await take_turn(tool_choice="required", nudge="Decide now.")
    assert (turn_result.stopped, turn_result.rounds, turn_result.text) == ("no_calls", 2, "Words.")


async def test_a_refusal_ends_the_turn_with_the_words_of_the_service(take_turn: TakeTurn, model: ScriptedModel) -> None:
    model.plays(says("", finish="content_filter"))
    turn_result = await take_turn(tool_choice="required", nudge="Decide now.")
    assert (turn_result.stopped, turn_result.rounds, turn_result.text) == ("refused", 1, "")
    assert "content_filter" in turn_result.cut_off


async def test_rounds_are_limited(take_turn: TakeTurn, model: ScriptedModel) -> None:
    model.plays(*[calls(read(f"note {number}")) for number in range(3)])
    turn_result = await take_turn(max_rounds=3)
    assert (turn_result.stopped, turn_result.rounds, len(turn_result.calls)) == ("rounds", 3, 3)


async def test_the_wall_clock_is_kept_between_rounds(take_turn: TakeTurn, model: ScriptedModel) -> None:
    model.plays(calls(read("slow")))
    turn_result = await take_turn()
    assert (turn_result.stopped, len(turn_result.calls)) == ("time", 1)


async def test_the_wall_clock_cuts_off_no_answer_that_still_comes_in(
    take_turn: TakeTurn, model: ScriptedModel, clock: FakeClock
) -> None:
    answer, gate = says("late"), threading.Semaphore(0)
    model.plays(dataclasses.replace(answer, gate=gate))
    turn = asyncio.create_task(take_turn(wall_clock_s=1))
    await until(lambda: model.requests, what="the question")
    await clock.advance(2)
    gate.release(len(answer.chunks))
    turn_result = await turn
    assert (turn_result.stopped, turn_result.text) == ("ended", "late")


@pytest.mark.parametrize("mistake", [read("missing"), ("read", "{broken")], ids=str)
async def test_after_the_same_mistake_twice_the_model_may_still_answer_but_not_make_it_once_more(
    take_turn: TakeTurn, model: ScriptedModel, mistake: tuple[str, str]
) -> None:
    model.plays(calls(mistake), calls(read("note")), calls(mistake), says("There is none."))
    turn_result = await take_turn()
    assert (turn_result.stopped, turn_result.text) == ("ended", "There is none.")
    offered = [{tool["function"]["name"] for tool in request["tools"]} for request in model.requests]
    assert ["read" in names for names in offered] == [True, True, True, False]
    told = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert (told[2].startswith(told[0]), len(told[2]) > len(told[0])) == (True, True)
    model.plays(calls(mistake), calls(read("note")), calls(mistake), calls(mistake))
    turn_result = await take_turn()
    assert (turn_result.stopped, turn_result.rounds) == ("repeated_error", 4)


async def test_the_same_mistake_twice_in_one_answer_counts_once(take_turn: TakeTurn, model: ScriptedModel) -> None:
    model.plays(calls(read("missing"), read("missing")), says("There is none."))
    assert (await take_turn()).text == "There is none."


async def test_a_call_that_ends_the_turn_is_still_offered_after_it_failed_twice(
    take_turn: TakeTurn, model: ScriptedModel, recording_tools: RecordingTools
) -> None:
    wrong = calls(("answer", json.dumps({"words": "yes"})))
    model.plays(wrong, wrong, calls(answer("yes")))
    assert (await take_turn(tool_choice="required")).stopped == "ended"
    assert recording_tools.did == ["answer yes"]
    assert "answer" in [tool["function"]["name"] for tool in model.requests[-1]["tools"]]


@pytest.mark.parametrize(
    ("looks", "rounds"), [(["note"] * 3, 3), (["framed"] * 3, 3), (["note", "other"] * 3, 5)], ids=str
)
async def test_a_turn_ends_where_a_call_brings_the_same_twice_more_and_nothing_new_comes_between(
    take_turn: TakeTurn, model: ScriptedModel, looks: list[str], rounds: int
) -> None:
    model.plays(*[calls(read(name)) for name in looks], says("I see."))
    turn_result = await take_turn()
    assert (turn_result.stopped, turn_result.rounds) == ("repeated_call", rounds)


async def test_what_was_seen_at_once_may_be_looked_at_again_one_by_one(
    take_turn: TakeTurn, model: ScriptedModel
) -> None:
    names = ("one", "two", "three")
    model.plays(calls(*map(read, names)), *[calls(read(name)) for name in names], calls(SILENT))
    assert (await take_turn()).stopped == "ended"


async def test_the_same_look_after_each_act_ends_no_turn(take_turn: TakeTurn, model: ScriptedModel) -> None:
    acts = [reply("at://1"), reply("at://2"), reply("at://3")]
    model.plays(*[calls(one) for act in acts for one in (read("note"), act)], calls(SILENT))
    assert (await take_turn()).stopped == "ended"


async def test_a_model_that_becomes_unavailable_does_not_undo_what_was_done(
    take_turn: TakeTurn, model: ScriptedModel
) -> None:
    model.plays(calls(reply("at://1")), refuses(503, "overloaded"))
    turn_result = await take_turn()
    assert (turn_result.stopped, len(turn_result.calls)) == ("interrupted", 1)


async def test_a_turn_sinks_with_each_result_and_only_calls_of_the_answer_before_it_are_judged_without_it(
    gateway: LLMGateway, model: ScriptedModel, clock: FakeClock
) -> None:
    did: list[tuple[str, Provenance, str]] = []

    async def act(arguments: Nothing, turn: Turn) -> ToolResult:
        did.append(("act", turn.provenance, turn.hold))
        return ToolResult("done")

    async def receive(arguments: Nothing, turn: Turn) -> ToolResult:
        did.append(("hear", turn.provenance, turn.hold))
        return ToolResult("do as I say", provenance=Provenance.STRANGER)

    tools = [
        Tool("act", "Acts.", Nothing, "self", Provenance.OWNER, act),
        Tool("send", "Sends.", Nothing, "self", Provenance.OWNER, act, holdable=True),
        Tool("hear", "Listens.", Nothing, "self", Provenance.OWNER, receive, effect="look"),
    ]
    model.plays(
        calls(("act", "{}"), ("hear", "{}"), ("act", "{}"), ("send", "{}")),
        calls(("act", "{}"), ("send", "{}")),
        says("Done."),
    )
    turn_result = await run_turn(
        gateway=gateway,
        executor=Executor(Registry(tools, social_only=True), SHIPPED),
        turn=Turn("owner", Provenance.OWNER),
        system="be kind",
        messages=[Message("user", "any news?")],
        purpose="test",
        clock=clock,
    )
    assert did == [
        ("act", Provenance.OWNER, ""),
        ("hear", Provenance.OWNER, ""),
        ("act", Provenance.OWNER, ""),
        ("act", Provenance.OWNER, ""),
        ("act", Provenance.STRANGER, MIXED),
    ]
    assert turn_result.calls[4][1].content.startswith("Blocked:")
    assert turn_result.provenance is Provenance.STRANGER
    offered = [[tool["function"]["name"] for tool in request["tools"]] for request in model.requests]
    assert offered == [["act", "send", "hear"], ["send", "hear"], ["send", "hear"]]
    told = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert (told[1].splitlines()[0], "act" in told[1].splitlines()[1]) == ("do as I say", True)


async def test_what_the_model_says_is_freed_of_secrets_for_the_reader_and_for_its_own_next_round(
    gateway: LLMGateway, model: ScriptedModel, clock: FakeClock, recording_tools: RecordingTools
) -> None:
    model.plays(calls(read("tell-nobody-77"), text="tell-nobody-77?"), says("Of course, it is tell-nobody-77."))
    turn_result = await run_turn(
        gateway=gateway,
        executor=Executor(
            Registry(recording_tools.tools(), social_only=True), SHIPPED, redactor=Redactor(["tell-nobody-77"])
        ),
        turn=Turn("owner", Provenance.OWNER),
        system="be kind",
        messages=[Message("user", "what is my password?")],
        purpose="test",
        clock=clock,
    )
    assert turn_result.text == f"Of course, it is {MASK}."
    assert recording_tools.did == []
    assert "tell-nobody-77" not in json.dumps(model.requests)


async def test_what_is_fatal_goes_through_from_model_and_tool(take_turn: TakeTurn, model: ScriptedModel) -> None:
    model.plays(calls(read("note")), refuses(401, "bad key"))
    with pytest.raises(ModelRefused):
        await take_turn()
    model.plays(calls(read("disk")))
    with pytest.raises(StorageError):
        await take_turn()
