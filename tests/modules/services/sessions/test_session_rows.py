"""Proves that a message comes back unchanged from its row and from its line in an archive, whatever it contains.

Proves that a chat service accepts every stored conversation, and that what is cut off is whole. Proves that archives
are made in three steps or not at all, whatever fails in between, and can be read again. Proves that a conversation that
is over is archived whole, and that what was only for it is deleted.
"""

import asyncio
import gzip
import json
import threading
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.storage.objects import media_key
from common.provenance import Provenance
from common.redact import MASK, Redactor
from common.result import Err, Ok
from common.session_keys import OWNER_SESSION
from modules.runtime.llm.dialect import Image, Message, Text, ToolAnswer, ToolCall, Usage, convert_messages
from modules.services.sessions.archives import read_archive
from modules.services.sessions.archivist import conversation, fitting, outgrown, units
from modules.services.sessions.types import (
    ArchivedLine,
    Role,
    blocks,
    dump,
    from_fields,
    pack,
    parts,
    redacted,
    said_lines,
    to_fields,
    transcript,
    unpack,
)
from tests.exploration import examples
from tests.modules.services.sessions.session_home import AGENT, BUDGET, SUMMARY, THREAD, SessionHome, keeps
from tests.modules.services.sessions.session_values import MESSAGES, answers, asks, joined, normal, rows_of
from tests.patience import until
from town.model.service import read_request

SECRET = "correct-horse-battery"


@settings(max_examples=examples(80))
@given(MESSAGES)
def test_a_message_comes_back_from_its_rows_in_normal_form(message: Message) -> None:
    back = joined((role, from_fields(role, json.loads(dump(to_fields(role, part))))) for role, part in parts(message))
    assert back == normal(message)
    assert [again for each in back for again in normal(each)] == back


@settings(max_examples=examples(80))
@given(MESSAGES)
def test_a_model_is_told_the_same_before_and_after(message: Message) -> None:
    assert convert_messages(normal(message)) == convert_messages([message])


@settings(max_examples=examples(60))
@given(st.lists(MESSAGES, max_size=6))
def test_an_archive_holds_every_message_and_is_the_same_bytes_each_time(said: list[Message]) -> None:
    rows = rows_of(said)
    lines = unpack(pack(rows))
    assert pack(rows) == pack(rows)
    assert len(lines) == len(rows)
    assert convert_messages(_messages(lines)) == convert_messages(said)


def test_a_line_of_an_archive_has_role_content_and_time_and_a_tool_result_its_call() -> None:
    said = [Message("user", "hello"), asks("look"), answers("look"), Message("assistant", "done")]
    lines = [json.loads(line) for line in _text(pack(rows_of(said))).splitlines()]
    assert lines == [
        {"role": "user", "content": "hello", "timestamp": 1767614460250},
        {
            "role": "assistant",
            "content": [{"type": "toolCall", "id": "look", "name": "look", "arguments": {"of": "look"}}],
            "timestamp": 1767614520250,
        },
        {
            "role": "toolResult",
            "content": "what look printed",
            "toolCallId": "look",
            "toolName": "look",
            "isError": False,
            "timestamp": 1767614580250,
        },
        {"role": "assistant", "content": [{"type": "text", "text": "done"}], "timestamp": 1767614640250},
    ]


def test_a_picture_is_kept_as_a_reference_to_its_bytes() -> None:
    fields = to_fields("user", Message("user", (Text("look"), Image("media/k/1.png", "image/png", "a gull"))))
    assert fields["content"][1] == {"type": "image", "r2Key": "media/k/1.png", "mimeType": "image/png", "alt": "a gull"}


def test_half_a_surrogate_pair_and_a_zero_byte_survive() -> None:
    said = [Message("user", "half \ud83d of a pair, \x00, and a line\u2028break")]
    assert _messages(unpack(pack(rows_of(said)))) == said


@pytest.mark.parametrize(
    ("role", "fields"),
    [
        ("assistant", {"content": [{"type": "song"}]}),
        ("assistant", {"content": [{"type": "text"}]}),
        ("toolResult", {"content": "x"}),
    ],
)
def test_what_is_no_message_is_refused(role: Role, fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a"):
        from_fields(role, fields)


def test_secrets_are_taken_out_of_every_block_and_ids_stay() -> None:
    said = Message(
        "assistant",
        (
            Text(f"it is {SECRET}"),
            Image("media/k/1.png", "image/png", SECRET),
            ToolCall("call_a", "look", {"key": [SECRET]}, SECRET),
            ToolAnswer("call_a", "look", SECRET),
        ),
    )
    clean = redacted(said, Redactor([SECRET]))
    assert clean == Message(
        "assistant",
        (
            Text(f"it is {MASK}"),
            Image("media/k/1.png", "image/png", MASK),
            ToolCall("call_a", "look", {"key": [MASK]}, MASK),
            ToolAnswer("call_a", "look", MASK),
        ),
    )
    assert redacted(Message("user", SECRET), Redactor([SECRET])) == Message("user", MASK)


def _text(data: bytes) -> str:
    return gzip.decompress(data).decode()


def _messages(lines: list[ArchivedLine]) -> list[Message]:
    return joined((line.role, line.message) for line in lines)


CONVERSATIONS = st.lists(MESSAGES, max_size=12)


@settings(max_examples=examples(80))
@given(CONVERSATIONS)
def test_whatever_is_kept_a_chat_service_accepts_it(said: list[Message]) -> None:
    shown = [*conversation(rows_of(said)), Message("assistant", "so be it")]
    read_request({"model": "m", "messages": convert_messages(shown)}, models=["m"])
    roles = [message.role for message in shown[:-1]]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))]


@settings(max_examples=examples(80))
@given(CONVERSATIONS, st.integers(0, 80), st.integers(0, 12))
def test_what_is_fitting_is_the_newest_within_the_budget_and_splits_nothing(
    said: list[Message], budget: int, tokens: int
) -> None:
    rows = rows_of(said, tokens=tokens or None)
    kept = fitting(rows, budget)
    assert sum(row.tokens for row in kept) <= budget
    assert kept == tuple(rows[len(rows) - len(kept) :])
    assert not kept or kept[0].role != "toolResult"
    older = rows[: len(rows) - len(kept)]
    assert units(older) + units(kept) == units(rows)
    if older and units(older)[-1][0].role != "toolResult":
        assert sum(row.tokens for row in (*units(older)[-1], *kept)) > budget


@settings(max_examples=examples(50))
@given(CONVERSATIONS, st.integers(0, 60))
def test_what_is_condensed_is_the_oldest_and_what_was_said_last_stays(said: list[Message], budget: int) -> None:
    rows = rows_of(said)
    old = outgrown(rows, budget)
    assert old == tuple(rows[: len(old)])
    if old:
        assert sum(row.tokens for row in rows) > budget
        assert len(old) < len(rows)
        assert units(rows[len(old) :])[-1] == units(rows)[-1]
        assert units(old) + units(rows[len(old) :]) == units(rows)


def test_a_summary_alone_is_not_condensed_again() -> None:
    summary, question = rows_of([Message("user", "in brief"), Message("user", "a very long question")], tokens=900)
    assert outgrown([summary, question], 1000) == ()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ([answers("look"), Message("user", "well?")], [Message("user", "well?")]),
        ([Message("user", "q"), asks("look"), Message("user", "well?")], [Message("user", "q\n\nwell?")]),
        ([Message("user", "q"), asks("look"), answers("look")], [Message("user", "q"), asks("look"), answers("look")]),
        (
            [Message("user", "q"), asks("look", "post"), answers("post")],
            [Message("user", "q"), asks("post"), answers("post")],
        ),
        ([Message("assistant", "hi"), Message("user", "q")], [Message("user", "q")]),
        ([Message("user", "q"), Message("assistant", " "), Message("user", "r")], [Message("user", "q\n\nr")]),
    ],
)
def test_what_a_chat_service_would_refuse_is_left_out(said: list[Message], shown: list[Message]) -> None:
    assert conversation(rows_of(said)) == shown


def test_a_call_that_was_made_or_answered_twice_stands_there_once() -> None:
    twice = Message("assistant", (ToolCall("a", "look"), ToolCall("a", "look")))
    both = Message("user", (ToolAnswer("a", "look", "first"), ToolAnswer("a", "look", "second")))
    assert conversation(rows_of([Message("user", "q"), twice, both])) == [
        Message("user", "q"),
        Message("assistant", (ToolCall("a", "look"),)),
        Message("user", (ToolAnswer("a", "look", "first"),)),
    ]


def test_words_and_tool_answers_of_one_turn_are_one_message() -> None:
    rows = rows_of([Message("user", "q"), asks("look"), answers("look"), Message("user", "and now?")])
    assert blocks(conversation(rows)[-1]) == (*blocks(answers("look")), Text("and now?"))


def test_a_transcript_says_who_spoke_and_cuts_what_tools_printed() -> None:
    said = [Message("user", "what is\nnew?"), asks("look"), answers("look"), Message("assistant", "a gull")]
    printed = Message("user", (ToolAnswer("b", "post", "x" * 1000),))
    assert transcript(rows_of([*said, printed]), len, 10_000).splitlines() == [
        "OWNER: what is new?",
        'YOU used look {"of":"look"}',
        "TOOL look: what look printed",
        "YOU: a gull",
        f"TOOL post: {'x' * 300}…",
    ]
    assert transcript(rows_of([Message("user", "hi")], provenance=Provenance.PEER), len, 100) == "THEM: hi"
    assert transcript([], len, 100) == ""


def test_words_of_the_program_are_nobody_s_in_a_transcript() -> None:
    note, line = rows_of([Message("user", "(The owner opened the terminal.)"), Message("user", "hello")])
    rows = [replace(note, is_note=True), line]
    assert transcript(rows, len, 100).splitlines() == ["NOTE: (The owner opened the terminal.)", "OWNER: hello"]
    assert [one.text for one in said_lines(rows)] == ["hello"]


def test_a_transcript_that_is_too_long_keeps_its_first_line_and_the_newest() -> None:
    rows = rows_of([Message("user", f"line {number}") for number in range(10)])
    assert transcript(rows, len, 45).splitlines() == ["OWNER: line 0", "[…]", "OWNER: line 8", "OWNER: line 9"]


async def test_what_the_store_cannot_take_waits_and_nothing_is_listed_or_lost(session_home: SessionHome) -> None:
    session_id = await session_home.talk()
    before = await session_home.history(session_id)
    session_home.model.plays(keeps(facts=["Roof: Kit has leaking tiles"]))
    broken = session_home.unreachable()
    assert (await broken.compact(session_id, BUDGET)).status == "waiting"
    assert await session_home.history(session_id) == before
    assert await session_home.memories.count() == 0
    assert await session_home.archives() == []
    assert [outcome.status for outcome in await broken.finish_prepared()] == ["waiting"]
    assert (await broken.compact(session_id, BUDGET)).reason == "an earlier part waits for the store"
    assert len(session_home.model.requests) == 1
    (finished,) = await session_home.archivist.finish_prepared()
    assert finished.status == "done"
    assert SUMMARY in str((await session_home.history(session_id))[0].content)
    assert await session_home.memories.count() == 1
    assert await session_home.archived(finished.archive) == before[: len(await session_home.archived(finished.archive))]
    assert await session_home.archivist.finish_prepared() == []


async def test_a_conversation_that_ended_without_the_store_stays_ended_and_is_archived_later(
    session_home: SessionHome,
) -> None:
    session_id = await session_home.talk()
    before = await session_home.history(session_id)
    session_home.model.plays(keeps())
    assert (await session_home.unreachable().reset(OWNER_SESSION)).status == "waiting"
    new = await session_home.say(OWNER_SESSION, Message("user", "good morning"))
    picture = media_key(OWNER_SESSION, "new", "image/png")
    await session_home.storage.put(picture, b"picture")
    (finished,) = await session_home.archivist.finish_prepared()
    assert finished.archive is not None
    assert finished.archive.session_id == session_id
    assert await session_home.archived(finished.archive) == before
    assert await session_home.history(new) == [Message("user", "good morning")]
    assert isinstance(await session_home.storage.get(picture), Ok)
    assert session_home.forgotten == session_home.ended == [OWNER_SESSION]
    await session_home.archivist.reset(OWNER_SESSION)
    assert session_home.forgotten == session_home.ended == [OWNER_SESSION] * 2


async def test_a_reset_finishes_what_had_been_left_first(session_home: SessionHome) -> None:
    session_id = await session_home.talk()
    session_home.model.plays(keeps(), keeps())
    broken = session_home.unreachable()
    await broken.compact(session_id, BUDGET)
    assert (await broken.reset(OWNER_SESSION)).status == "waiting"
    assert (await session_home.sessions.open(OWNER_SESSION)).id == session_id
    assert (await session_home.archivist.reset(OWNER_SESSION)).status == "done"
    whole, part = await session_home.archives(OWNER_SESSION)
    assert (whole.part, part.part) == (None, 1)
    assert whole.message_count + part.message_count == 8 + 1  # the whole includes the summary of the part
    assert await session_home.archives(THREAD) == []


async def test_a_damaged_archive_is_told_as_such(session_home: SessionHome) -> None:
    await session_home.talk()
    session_home.model.plays(keeps())
    archive = (await session_home.archivist.reset(OWNER_SESSION)).archive
    assert archive is not None
    await session_home.storage.put(archive.key, gzip.compress(b"{}\n"))
    found = await read_archive(session_home.storage, archive)
    assert isinstance(found, Err)
    assert found.kind == "invalid"
    await session_home.storage.delete(archive.key)
    gone = await read_archive(session_home.storage, archive)
    assert isinstance(gone, Err)
    assert gone.kind == "not_found"


async def test_a_reset_archives_the_whole_and_begins_a_new_conversation(session_home: SessionHome) -> None:
    session_id = await session_home.talk()
    before = await session_home.history(session_id)
    await session_home.sessions.count(session_id, Usage(120, 30))
    session_home.model.plays(keeps())
    outcome = await session_home.archivist.reset(OWNER_SESSION)
    assert outcome.archive is not None
    assert outcome.archive.key == f"agents/{AGENT}/sessions/{session_id}.jsonl.gz"
    assert outcome.archive.metadata == {
        "sessionKey": OWNER_SESSION,
        "sessionId": session_id,
        "agentId": AGENT,
        "messageCount": "8",
        "archivedAt": "2026-01-05T12:08:00.000Z",
        "inputTokens": "120",
        "outputTokens": "30",
        "totalTokens": "150",
    }
    assert await session_home.archived(outcome.archive) == before
    assert await session_home.table("SELECT * FROM session_messages") == []
    assert (await session_home.sessions.open(OWNER_SESSION)).id != session_id
    assert outcome.archive.distilled.summary == SUMMARY


async def test_a_reset_remembers_at_the_time_of_the_last_activity_not_today(session_home: SessionHome) -> None:
    await session_home.talk()
    await session_home.clock.advance(3 * 24 * 3600)
    session_home.model.plays(keeps(events=["Kit's roof: the tiles were leaking"]))
    await session_home.archivist.reset(OWNER_SESSION)
    noted = await session_home.memories.listed()
    assert {one.updated_at for one in noted} == {"2026-01-05T12:07:00.000Z"}
    assert {one.tags for one in noted} == {()}
    summaries = [(one.kind, one.private) for one in noted if one.body == SUMMARY]
    assert summaries == [("episode", True)]


async def test_a_reset_deletes_the_media_of_the_conversation_and_no_others(session_home: SessionHome) -> None:
    mine, other = (media_key(key, "1", "image/png") for key in (OWNER_SESSION, THREAD))
    for key in (mine, other):
        await session_home.storage.put(key, b"picture")
    await session_home.say(OWNER_SESSION, Message("user", (Text("look"), Image(mine, "image/png", "a gull"))))
    await session_home.archivist.reset(OWNER_SESSION)
    assert isinstance(await session_home.storage.get(mine), Err)
    assert isinstance(await session_home.storage.get(other), Ok)


async def test_a_conversation_that_goes_on_while_it_is_distilled_is_not_ended(session_home: SessionHome) -> None:
    session_id = await session_home.talk()
    answer, gate = keeps(), threading.Semaphore(0)
    session_home.model.plays(replace(answer, gate=gate))
    ending = asyncio.create_task(session_home.archivist.reset(OWNER_SESSION))
    await until(lambda: session_home.model.requests, what="the question what to keep")
    await session_home.say(OWNER_SESSION, Message("user", "and one more thing"))
    gate.release(len(answer.chunks))
    outcome = await ending
    assert (outcome.status, outcome.reason) == ("postponed", "the conversation went on meanwhile")
    assert len(await session_home.sessions.rows(session_id)) == 9
    assert await session_home.archives() == []
