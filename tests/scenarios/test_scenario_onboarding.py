"""A new SOUL speaks first, learns who it and its owner are to each other, and never asks again."""

import asyncio

import pytest

from common.files import write_atomic
from modules.runtime.home import Home
from modules.services.agent.onboarding import BOOTSTRAP_DONE, BOOTSTRAP_FILE
from soul.resources import template
from tests.owner_lines import answered
from tests.patience import HANG_S
from tests.program import started, until
from tests.running_town import RunningTown, awake, call
from town.model.types import ChatRequest, Completion

GREETING = "I'm rowan, and I have just woken up. What should I call you?"
SUMMARY = "You are Ana, and I look after roofs. Is that right?"
FAREWELL = "Then let us begin, Ana."
ONLY_THEN = "This is your first talk with your owner"
AFTERWARDS = "is speaking to you in private"
FILE_WORDS = "this is your first talk with your owner. It happens once."


def told(request: ChatRequest) -> str:
    """Return all instructions of a request: its system messages and the last user message, which holds what changes."""
    asked = [message.text for message in request.messages if message.role == "user"][-1:]
    return "\n".join([message.text for message in request.messages if message.role == "system"] + asked)


def led(request: ChatRequest) -> Completion:
    """Answer as a model that leads the first talk and closes it when told to."""
    last = request.messages[-1]
    if ONLY_THEN not in told(request):
        return Completion(text=FAREWELL if last.role == "tool" else "As you like.")
    if last.role == "tool":
        return Completion(text=FAREWELL)
    if last.text.rstrip().endswith("ask your first question.)"):
        return Completion(text=GREETING)
    if last.text.endswith("yes"):
        return call("complete_commissioning", user_name="Ana", role="looks after roofs", voice="plain")
    return Completion(text=SUMMARY)


@pytest.fixture
def home(running_town: RunningTown) -> Home:
    """Return a home as `soul init` leaves it."""
    made = running_town.make_home("rowan")
    write_atomic(made.workspace / BOOTSTRAP_FILE, template(BOOTSTRAP_FILE))
    running_town.mind.answer = led
    return made


def files(home: Home) -> list[str]:
    return sorted(path.name for path in home.workspace.glob("BOOTSTRAP*"))


async def test_the_soul_speaks_first_and_the_talk_ends_with_both_profiles(
    running_town: RunningTown, home: Home
) -> None:
    async with awake(home) as life:
        owner, knowledge = life.app.owner, life.app.services.knowledge
        assert await owner.open() == GREETING
        assert await answered(owner, "Ana. You look after roofs, and be plain about it.") == SUMMARY
        assert knowledge.onboarding.due()
        assert await answered(owner, "yes") == FAREWELL
        assert not knowledge.onboarding.due()
        profile = await knowledge.profiles.get()
        assert profile.agent == {"role": "looks after roofs", "voice": "plain"}
        assert profile.user == {"name": "Ana"}
        assert files(home) == [BOOTSTRAP_DONE]
        assert await owner.open() == ""
        assert await answered(owner, "which roof do you like?") == "As you like."
        frame = told(running_town.mind.asked[-1])
        assert AFTERWARDS in frame
        assert ONLY_THEN not in frame
        assert "looks after roofs" in frame
        assert "Ana" in frame


async def test_the_first_talk_is_told_only_what_it_needs(running_town: RunningTown, home: Home) -> None:
    write_atomic(home.workspace / "GOALS.md", "# Goals\n\n- canary of goals")
    write_atomic(home.workspace / "USER.md", "I live in Porto.")
    async with awake(home) as life:
        await life.app.owner.open()
        await answered(life.app.owner, "Ana.")
    for asked in running_town.mind.asked[-2:]:
        frame = told(asked)
        assert FILE_WORDS in frame
        assert "I live in Porto." in frame
        assert "I am an autonomous agent with a life of my own" in frame, "SOUL.md"
        assert "I have just arrived" not in frame, "SELF.md"
        assert "canary" not in frame


async def test_strangers_hear_nothing_of_it_while_it_goes_on(running_town: RunningTown, home: Home) -> None:
    running_town.network.post_as(running_town.account("kit"), "@rowan.test who are you?")
    running_town.mind.answer = lambda request: (
        call("stay_silent", reason="first things first")
        if any(offer.name == "stay_silent" for offer in request.offers)
        else led(request)
    )
    async with awake(home) as life:
        await life.app.owner.open()
        asked = len(running_town.mind.asked)
        await life.look()
        met = running_town.mind.asked[asked:]
    assert met
    for request in met:
        assert FILE_WORDS not in told(request)
        assert ONLY_THEN not in told(request)
        assert "complete_commissioning" not in {offer.name for offer in request.offers}


async def test_a_talk_that_was_broken_off_goes_on_in_the_next_life(running_town: RunningTown, home: Home) -> None:
    async with awake(home) as life:
        assert await life.app.owner.open() == GREETING
        await answered(life.app.owner, "Ana. You look after roofs.")
    assert files(home) == [BOOTSTRAP_FILE]
    async with awake(home) as life:
        assert await answered(life.app.owner, "yes") == FAREWELL
    async with awake(home) as life:
        assert await life.app.owner.open() == ""
        assert (await life.app.services.knowledge.profiles.get()).user == {"name": "Ana"}


@pytest.mark.slow
@pytest.mark.smoke
async def test_at_the_terminal_the_first_words_are_the_souls(running_town: RunningTown, home: Home) -> None:
    async with started("run", "--home", str(home.root), stdin=asyncio.subprocess.PIPE) as process:
        assert process.stdin is not None
        assert GREETING in await until(process, "rowan: ")
        for typed, answer in (("Ana. You look after roofs.", SUMMARY), ("yes", FAREWELL)):
            process.stdin.write(f"{typed}\n".encode())
            await process.stdin.drain()
            assert answer in await until(process, "rowan: ")
        process.stdin.write(b"exit\n")
        await process.stdin.drain()
        assert await asyncio.wait_for(process.wait(), HANG_S) == 0
    assert files(home) == [BOOTSTRAP_DONE]
