"""What the owner says is never lost: it waits for its answer while the model is down, and survives a kill."""

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from datetime import timedelta
from functools import partial

import pytest

from common.clock import SystemClock, iso
from common.errors import Transient
from common.session_keys import FORMER_PREFIX, OWNER_SESSION
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.services.day.gathering import DayReader
from modules.services.owner import NOTICE, OwnerAnswers, begin_with
from modules.services.work.table import WorkTable
from modules.services.work.types import OWNER_LINE, NewWork
from tests import patience
from tests.owner_lines import answer_message, answered
from tests.program import started, until
from tests.running_town import RunningSoul, RunningTown, awake, call, prompt_of, replying
from town.model.service import Fault
from town.model.types import ChatRequest, Completion, ToolUse

DOWN = Fault("rate_limited", times=1000, seconds=0)


def said(request: ChatRequest) -> list[str]:
    """Return the owner's messages so far, as the model sees them."""
    return [message.text for message in request.messages if message.role == "user"]


def answering(request: ChatRequest) -> Completion:
    last = said(request)[-1]
    word = next((word for word in ("heron", "weir", "mill") if last.endswith(f"{word}.")), "nothing")
    return Completion(text=f"So: {word}.")


@asynccontextmanager
async def talking(life: RunningSoul) -> AsyncIterator[tuple[OwnerAnswers, asyncio.Queue[str]]]:
    """Run the terminal's side of a talk; yield it with the queue of what it prints."""
    shown: asyncio.Queue[str] = asyncio.Queue()
    answers = OwnerAnswers(life.app.owner, console=life.console, say=shown.put_nowait, clock=SystemClock())
    task = asyncio.create_task(answers.run(greet=True))
    try:
        yield answers, shown
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def told(life: RunningSoul, words: str) -> str:
    """Wait until the owner is told a line that contains `words`; return it."""
    found: list[str] = []

    def is_there() -> bool:
        found[:] = [message for _, message, _ in life.console.lines if words in message]
        return bool(found)

    await patience.until(is_there, what=words)
    return found[0]


@pytest.fixture(autouse=True)
def _mind(running_town: RunningTown) -> None:
    running_town.mind.answer = answering


async def test_what_is_said_while_the_model_is_down_is_answered_in_order_once_it_is_back(
    running_town: RunningTown,
) -> None:
    async with awake(running_town.make_home("rowan")) as life, talking(life) as (answers, shown):
        running_town.mind_faults.arm(DOWN)
        await answers.receive("I saw a heron.")
        await told(life, "The model does not answer now; 1 of your messages waits and will be answered")
        day = DayReader(life.app.services.settings, life.app.services.home, life.clock).read()
        assert "The model does not answer now" in [one.what for one in day.troubles]
        await answers.receive("It stood at the weir.")
        await told(life, "Kept; 2 of your messages wait for an answer")
        assert shown.empty()
        running_town.mind_faults.clear()
        await answers.receive("Now to the mill.")
        assert [await shown.get() for _ in range(3)] == ["So: heron.", "So: weir.", "So: mill."]
        assert await life.app.owner.waiting() == 0
    for number, words in enumerate(("heron.", "weir.", "mill."), 1):
        asked = [request for request in running_town.mind.asked if said(request)[-1].endswith(words)]
        assert len(asked) == 1, "each message is thought about once"
        assert len(said(asked[0])) == number, "and each stands in the conversation once"


async def test_the_model_coming_back_is_enough_the_owner_need_not_speak_again(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        running_town.mind_faults.arm(DOWN)
        with pytest.raises(Transient):
            await answered(life.app.owner, "I saw a heron.")
        running_town.mind_faults.clear()
        async with talking(life) as (_, shown):
            assert await shown.get() == "So: heron."
        assert "Answering what you said at" in await told(life, "Answering what you said at")


async def test_what_waits_is_tried_again_sooner_than_after_the_day_that_was_asked_for(
    running_town: RunningTown,
) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        shown: list[str] = []
        answers = OwnerAnswers(life.app.owner, console=life.console, say=shown.append, clock=life.app.services.clock)
        running_town.mind_faults.arm(Fault("rate_limited", times=1000, seconds=86_400))
        await answers.receive("I saw a heron.")
        answering = asyncio.create_task(answers.run(greet=False))
        steps = [10] * 100

        def is_there(words: str) -> bool:
            life.passes(steps.pop() if steps else 0)
            return words in f"{life.console.lines} {shown}"

        await patience.until(lambda: is_there("does not answer now"))
        running_town.mind_faults.clear()
        steps = [600] * 100
        await patience.until(lambda: is_there("So: heron."))
        answering.cancel()
        assert shown == ["So: heron."]


async def test_a_database_that_another_program_holds_ends_no_talk(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        await life.app.owner.receive("I saw a heron.")
        await life.app.services.database.run(lambda connection: connection.execute("PRAGMA busy_timeout = 10"))
        with closing(sqlite3.connect(home.database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            async with talking(life) as (answers, shown):
                await told(life, "does not answer now")
                other.execute("ROLLBACK")
                await answers.receive("It stood at the weir.")
                assert [await shown.get() for _ in range(2)] == ["So: heron.", "So: weir."]


async def test_what_waits_is_answered_after_a_restart_and_stands_once_in_the_talk(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        running_town.mind_faults.arm(DOWN)
        with pytest.raises(Transient):
            await answered(life.app.owner, "I saw a heron.")
        await life.app.owner.receive("It stood at the weir.")
    running_town.mind_faults.clear()
    async with awake(home) as life, talking(life) as (_, shown):
        assert [await shown.get() for _ in range(2)] == ["So: heron.", "So: weir."]
        assert await told(life, "From before, 2 of your messages wait for an answer")
        session = await life.app.services.knowledge.sessions.open(OWNER_SESSION)
        rows = await life.app.services.knowledge.sessions.rows(session.id)
    assert [(row.role, row.message.content) for row in rows] == [
        ("user", "I saw a heron."),
        ("assistant", "So: heron."),
        ("user", "It stood at the weir."),
        ("assistant", "So: weir."),
    ]


async def test_lines_that_an_earlier_version_kept_are_answered_each_by_its_owner(running_town: RunningTown) -> None:
    home, old = running_town.make_home("rowan"), {number: MIGRATIONS[number] for number in (42, 43)}
    former, answers, message = running_town.account("bea"), list[str](), "chat:c1/m1"
    async with await Database.open(home.database, old) as database:
        at = iso(SystemClock().now())
        rows = [
            ("I saw a heron.", at, "", ""),
            ("Now to the mill.", at, f"{FORMER_PREFIX}{former}:2", ""),
            ("It stood at the weir.", at, "", ""),
            ("And you?", at, message, "talk-7"),
        ]
        insert = "INSERT INTO owner_messages (text, received_at, via, session_id) VALUES (?, ?, ?, ?)"
        await database.run(lambda connection: connection.executemany(insert, rows))
        await WorkTable(database, SystemClock()).add(NewWork("owner-talk", message))
    async with awake(home) as life:
        (kept,) = await life.app.services.work.waiting("owner-talk")
        assert (kept.key, kept.payload) == (message, {"session": "talk-7"})
        await life.app.services.work.remove(kept)
        while answer := await life.app.owner.answer_next():
            answers.append(answer.text)
        assert answers == ["So: heron.", "So: weir."]
        for owner, waiting in (("owner", 0), ("bea", 1), ("owner", 0)):
            begun = partial(begin_with, owner_did=running_town.account(owner))
            await life.app.services.database.run(begun)
            assert await life.app.owner.waiting() == waiting


async def test_an_answer_that_a_crash_kept_from_being_shown_is_shown_and_not_thought_of_again(
    running_town: RunningTown,
) -> None:
    home, whole = running_town.make_home("rowan"), "So: herons fish at dusk.\n\nNoted."
    note = ToolUse("memory_save", {"kind": "fact", "subject": "owner", "body": "They saw a heron."})
    steps = [Completion(text="So: herons fish at dusk.", calls=(note,)), Completion(text="Noted.")]
    running_town.mind.answer = lambda _: steps.pop(0)
    async with awake(home) as life:
        assert await answered(life.app.owner, "I saw a heron.") == whole
    with sqlite3.connect(home.database) as connection:
        connection.execute(
            "INSERT INTO work (kind, key, payload, author, importance, not_before, cause_id, created_at)"
            " SELECT ?, 'heron', json_object('text', 'I saw a heron.', 'session', id), '', 'owner', '', '', created_at"
            " FROM sessions WHERE key = ? AND ended_at IS NULL",
            (OWNER_LINE, OWNER_SESSION),
        )
    connection.close()
    asked = len(running_town.mind.asked)
    async with awake(home) as life, talking(life) as (_, shown):
        assert await shown.get() == whole
        assert await life.app.owner.waiting() == 0
    assert len(running_town.mind.asked) == asked


async def test_the_talk_is_not_archived_over_what_waits(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        running_town.mind_faults.arm(DOWN)
        with pytest.raises(Transient):
            await answered(life.app.owner, "I saw a heron.")
        running_town.mind_faults.clear()
        session = await life.app.services.knowledge.sessions.open(OWNER_SESSION)
        long_ago = iso(SystemClock().now() - timedelta(hours=3))
        await life.app.services.database.run(
            lambda connection: connection.execute("UPDATE sessions SET last_active_at = ?", (long_ago,))
        )
        await life.app.scheduler.run_guarded("sessions")
        assert (await life.app.services.knowledge.sessions.open(OWNER_SESSION)).id == session.id
        await answered(life.app.owner, "It stood at the weir.")
        await life.app.services.database.run(
            lambda connection: connection.execute("UPDATE sessions SET last_active_at = ?", (long_ago,))
        )
        await life.app.scheduler.run_guarded("sessions")
        assert (await life.app.services.knowledge.sessions.open(OWNER_SESSION)).id != session.id


async def test_a_message_that_can_never_be_answered_keeps_none_behind_it_waiting(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as life, talking(life) as (answers, shown):
        running_town.mind.models = ("another",)
        await answers.receive("I saw a heron.")
        await told(life, "could not answer this message: The model service rejects the request")
        running_town.mind.models = ("test-mind",)
        await answers.receive("It stood at the weir.")
        assert await shown.get() == "So: weir."
        assert await life.app.owner.waiting() == 0


async def test_a_message_over_which_the_time_was_up_twice_is_told_and_keeps_none_behind_it_waiting(
    running_town: RunningTown,
) -> None:
    async with awake(running_town.make_home("rowan")) as life:

        def looking(request: ChatRequest) -> Completion:
            if "weir" in said(request)[-1]:
                return answering(request)
            life.passes(700)
            return Completion(calls=(ToolUse("bluesky_get_timeline", {}),))

        running_town.mind.answer = looking
        async with talking(life) as (answers, shown):
            await answers.receive("I saw a heron.")
            await told(life, "The model does not answer now; 1 of your messages waits")
            await answers.receive("It stood at the weir.")
            await told(life, "could not answer this message")
            assert await shown.get() == "So: weir."
            assert await life.app.owner.waiting() == 0
    assert ["weir" in said(request)[-1] for request in running_town.mind.asked] == [False, False, True]


async def test_an_owner_who_gets_no_words_is_told_why(running_town: RunningTown) -> None:
    look = Completion(calls=(ToolUse("bluesky_get_timeline", {}),))
    running_town.mind.answer = lambda _: look
    async with awake(running_town.make_home("rowan")) as life, talking(life) as (answers, shown):
        await answers.receive("I saw a heron.")
        assert "again and again" in await told(life, "could not answer this message")
        assert shown.empty()


async def test_secrets_do_not_wait_in_the_open(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", AI_GATEWAY_API_KEY="model-key-for-tests")
    async with awake(home) as life:
        await life.app.owner.receive("the key is model-key-for-tests, the weir.")
        (waiting,) = await life.app.services.work.waiting(OWNER_LINE)
    assert waiting.payload["text"].endswith("the weir.")
    assert "model-key-for-tests" not in waiting.payload["text"]


@pytest.mark.slow
@pytest.mark.smoke
async def test_the_program_answers_after_kill_9_what_it_was_told_before(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    running_town.mind_faults.arm(DOWN)
    async with started("run", "--home", str(home.root), stdin=asyncio.subprocess.PIPE) as process:
        await until(process, "Awake")
        assert process.stdin is not None
        process.stdin.write(b"I saw a heron.\nIt stood at the weir.\n")
        await process.stdin.drain()
        await until(process, "retry 1/3")
        process.send_signal(signal.SIGKILL)
        await process.wait()
    running_town.mind_faults.clear()
    async with started("run", "--home", str(home.root)) as process:
        seen = await until(process, "So: weir.")
        assert "So: heron." in seen


async def test_what_the_owner_was_told_is_known_in_the_next_talk_however_many_drafts_came_since(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = replying("Well.")
    async with awake(running_town.make_home("rowan")) as life:
        told = NewWork(NOTICE, "reading/1", {"text": "Something to say", "words": "The weir froze.", "provenance": 3})
        drafts = [NewWork(NOTICE, f"draft/{number}", {"text": "A draft waits"}) for number in range(51)]
        await life.app.services.work.add(told, *drafts)
        await life.app.scheduler.run_guarded("alarms")
        await answered(life.app.owner, "Good morning.")
        assert "The weir froze." in prompt_of(running_town.mind.asked[-1])


async def test_lines_that_waited_together_are_all_the_owner_s_order(running_town: RunningTown) -> None:
    words = "Slack water: the sea thinks."

    def posting(request: ChatRequest) -> Completion:
        if request.offers and request.messages[-1].role == "user":
            return call("bluesky_post", text=words)
        return Completion(text="It leaves in a moment.")

    async with awake(running_town.make_home("rowan", SOUL_APPROVAL="drafts")) as life:
        running_town.mind_faults.arm(DOWN)
        with pytest.raises(Transient):
            await answered(life.app.owner, "How much have you spent today?")
        with pytest.raises(Transient):
            await answer_message(life.app.owner, "phone", f'Post: "{words}"')
        running_town.mind_faults.clear()
        running_town.mind.answer = posting
        await life.app.owner.answer_next()
        assert await life.app.services.outbox.held() == []
        await life.send()
    assert running_town.texts("rowan") == [words]
