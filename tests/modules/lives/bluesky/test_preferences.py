"""Proves that what people declared about AI's use of their posts is read at first contact and respected."""

import asyncio
import json
from dataclasses import replace

import pytest

from adapters.atproto.client import PublicRepos
from adapters.atproto.records import FOLLOW
from common.clock import FakeClock
from common.provenance import Provenance
from common.result import ApiResult, Err, Ok
from modules.services.agent.tools.types import Turn
from modules.services.memory.admission import NewMemory
from modules.services.rights.policy import PREFERENCE, Preference
from tests.running_town import RunningTown, awake
from town.atproto.service import Fault

DESCRIBE = "com.atproto.repo.describeRepo"
SECRET = "the heron at the weir counts to nine"


def declare(running_town: RunningTown, name: str, **preferences: bool) -> None:
    record = {"$type": PREFERENCE, "preferences": {field: {"allow": value} for field, value in preferences.items()}}
    running_town.network.put(running_town.account(name), PREFERENCE, "self", record)


def prompts(running_town: RunningTown) -> str:
    """Return all requests to the model as one text."""
    return "\n".join(str(request) for request in running_town.mind.asked)


async def test_who_denies_inference_is_handled_without_a_model(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    declare(running_town, "kit", inference=False)
    running_town.network.post_as(running_town.account("kit"), f"@rowan.test {SECRET}, or does it?")
    async with awake(home) as life:
        await life.look()
        (decision,) = await life.decisions()
    assert decision.entry.reason == "the author denies that their posts stand in a prompt"
    assert not running_town.mind.asked
    assert running_town.texts("rowan") == []


async def test_the_post_of_one_who_denies_inference_is_left_out_of_a_thread_that_others_ask_about(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    declare(running_town, "sam", inference=False)
    top, _ = running_town.network.post_as(running_town.account("sam"), SECRET)
    running_town.network.post_as(running_town.account("kit"), "What do you say, @rowan.test?", reply_to_uri=top)
    async with awake(home) as life:
        await life.look()
    assert len(running_town.texts("rowan")) == 1
    assert "What do you say" in prompts(running_town)
    assert "heron" not in prompts(running_town)


async def test_who_denies_synthetic_content_is_answered_only_where_they_asked(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    declare(running_town, "kit", syntheticContent=False)
    mine, _ = running_town.network.post_as(running_town.account("rowan"), "Which roof is louder, tin or slate?")
    running_town.network.post_as(
        running_town.account("kit"),
        "Slate, because each drop lands on stone that rings for a while.",
        reply_to_uri=mine,
    )
    async with awake(home) as life:
        await life.look()
        (decision,) = await life.decisions()
        assert decision.entry.reason == "the author denies replies that they did not ask for"
        assert len(running_town.texts("rowan")) == 1
        running_town.network.post_as(running_town.account("kit"), "@rowan.test and which one is cheaper?")
        life.passes(60)
        await life.look()
    assert len(running_town.texts("rowan")) == 2


async def test_what_a_person_allows_is_asked_once_a_day(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    kit = running_town.account("kit")
    async with awake(home) as life:
        preferences = life.app.services.preferences
        assert await preferences.of({kit}) == {kit: Preference()}
        declare(running_town, "kit", inference=False)
        life.passes(23 * 3600)
        assert await preferences.of({kit}) == {kit: Preference()}
        life.passes(3600)
        assert await preferences.of({kit}) == {kit: Preference(inference="deny")}


async def test_what_was_known_holds_while_it_cannot_be_read(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    kit, wren = running_town.account("kit"), running_town.account("wren")
    declare(running_town, "wren", inference=False)
    async with awake(home) as life:
        preferences = life.app.services.preferences
        await preferences.of({wren})
        life.passes(25 * 3600)
        running_town.faults.arm(Fault("server_error", DESCRIBE, times=2))
        assert await preferences.of({kit, wren}) == {wren: Preference(inference="deny")}


DIRECTORY, SERVER = "https://plc.directory/", "https://pds.example/"
A_DID = "did:plc:z72i7hdynmk6r22z27h6tvur"


@pytest.mark.parametrize(
    ("broken", "answer", "is_known"),
    [
        (DIRECTORY, Err("plc.directory is out of bounds: 10.0.0.1 is a private address", "invalid"), False),
        (SERVER, Err("pds.example is out of bounds: 10.0.0.1 is a private address", "invalid"), False),
        (SERVER, Err("the answer is text/html, not application/json", "invalid"), False),
        (SERVER, Err("the answer is HTTP 404", "not_found", 404), False),
        (SERVER, Err("the answer is HTTP 400", "invalid", 400), True),
        (DIRECTORY, Err("the answer is HTTP 404", "not_found", 404), True),
    ],
)
async def test_only_who_knows_no_such_account_says_that_it_declared_nothing(
    running_town: RunningTown,
    broken: str,
    answer: Err,
    is_known: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    document = {"id": A_DID, "service": [{"id": "#atproto_pds", "serviceEndpoint": SERVER}]}

    async def fetch(url: str) -> ApiResult[bytes]:
        return answer if url.startswith(broken) else Ok(json.dumps(document).encode())

    async with awake(running_town.make_home("rowan")) as life:
        repos = PublicRepos(fetch, clock=FakeClock())
        preferences = replace(life.app.services.preferences, repos=repos)
        assert await preferences.of({A_DID}) == ({A_DID: Preference()} if is_known else {})


async def test_a_post_waits_while_what_its_author_allows_cannot_be_read(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
    running_town.faults.arm(Fault("server_error", DESCRIBE, times=1))
    async with awake(home) as life:
        await life.look()
        assert not running_town.mind.asked
        assert [item.entry.reason for item in await life.decisions()] == ["what the author allows could not be read"]
        life.passes(61)
        await life.look()
    assert len(running_town.texts("rowan")) == 1


async def test_a_server_that_takes_its_time_for_each_of_many_pages_keeps_nobody_waiting_for_all_of_them(
    running_town: RunningTown,
) -> None:
    clock, kit = FakeClock(), running_town.account("kit")

    async def slow(_: str) -> ApiResult[bytes]:
        await clock.sleep(25)
        return Ok(json.dumps({"collections": [PREFERENCE], "records": [], "cursor": "more"}).encode())

    async with awake(running_town.make_home("rowan")) as life:
        repos = PublicRepos(slow, clock=clock, home_url="http://slow.test")
        preferences = replace(life.app.services.preferences, repos=repos, clock=clock)
        read = asyncio.ensure_future(preferences.of({kit}))
        await clock.advance(60)
        is_over = read.done()
        read.cancel()
        assert is_over
        assert await read == {}


async def test_the_timeline_of_the_owner_is_read_without_the_posts_of_those_who_deny_it(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    declare(running_town, "kit", inference=False)
    for name, text in (("kit", SECRET), ("sam", "Slate it is.")):
        running_town.network.post_as(running_town.account(name), text)
        did = running_town.account(name)
        follow = {"$type": FOLLOW, "subject": did, "createdAt": "2026-01-05T12:00:00.000Z"}
        running_town.network.create(running_town.account("rowan"), FOLLOW, follow)
    async with awake(home) as life:
        tool = life.app.lives.turn_services.turn_runner.executor.registry.get("bluesky_get_timeline")
        assert tool is not None
        told = await tool.handler(tool.input_model(), Turn("owner", Provenance.OWNER))
    assert "Slate it is." in told.content
    assert "heron" not in told.content


async def test_what_somebody_said_leaves_the_conversation_once_they_deny_inference(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    sam, kit = running_town.account("sam"), running_town.account("kit")
    top, _ = running_town.network.post_as(sam, f"@rowan.test {SECRET}, or does it?")
    running_town.network.post_as(kit, "@rowan.test and what does the otter count?", reply_to_uri=top)
    async with awake(home) as life:
        services = life.app.services
        await life.look()

        async def said() -> str:
            query = "SELECT group_concat(content) FROM session_messages"
            return str(await services.database.run(lambda connection: connection.execute(query).fetchone()[0]))

        assert "heron" in await said()
        declare(running_town, "sam", inference=False)
        life.passes(25 * 3600)
        assert await services.preferences.of({sam, kit}) == {sam: Preference(inference="deny"), kit: Preference()}
        assert "heron" not in await said()
        assert "otter" in await said()


async def test_who_denies_embedding_stands_in_no_memory(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    sam = running_town.account("sam")
    top, _ = running_town.network.post_as(sam, f"@rowan.test {SECRET}, or does it?")
    async with awake(home) as life:
        services = life.app.services
        memories, preferences = services.knowledge.stores.memories, services.preferences
        await life.look()
        assert await preferences.may_be_remembered(f"bluesky:thread:{top}")
        await memories.save(NewMemory("person", "sam.test", f"says that {SECRET}", dids=(sam,)), services.clock.now())
        await memories.save(NewMemory("fact", "slate", "Slate is louder than tin."), services.clock.now())
        declare(running_town, "sam", embedding=False)
        life.passes(25 * 3600)
        await preferences.of({sam})
        assert [memory.subject for memory in await memories.listed()] == ["slate"]
        assert not await preferences.may_be_remembered(f"bluesky:thread:{top}")
        assert await preferences.may_be_remembered("owner:terminal")


@pytest.mark.slow
async def test_a_conversation_is_archived_without_the_words_of_who_denied_inference_meanwhile(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    sam, kit = running_town.account("sam"), running_town.account("kit")
    top, _ = running_town.network.post_as(sam, f"@rowan.test {SECRET}, or does it?")
    async with awake(home) as life:
        for what in ("otter", "owl", "newt", "crane"):
            await life.look()
            life.passes(300)
            running_town.network.post_as(kit, f"@rowan.test and what does the {what} count?", reply_to_uri=top)
        await life.look()
        assert "heron" in prompts(running_town)
        declare(running_town, "sam", inference=False)
        life.passes(25 * 3600)
        running_town.mind.asked.clear()
        await life.app.lives.turn_services.archivist.reset(f"bluesky:thread:{top}")
    assert "otter" in prompts(running_town)
    assert "heron" not in prompts(running_town)
