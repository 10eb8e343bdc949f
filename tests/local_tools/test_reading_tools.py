"""Proves that a SOUL that searches and reads feeds and lists leaves out what it must not read and approaches nobody."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from common.clock import local
from common.provenance import Provenance
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import OwnerRequest, ToolResult, Turn
from modules.services.memory.admission import NewMemory
from modules.services.outbox.bodies import LikeBody
from modules.services.outbox.types import ProposedAction
from tests.hasty_clock import HastyClock
from tests.modules.lives.bluesky.test_preferences import declare
from tests.owner_lines import answered
from tests.running_town import RunningSoul, RunningTown, awake, call, open_running_town
from tests.scenarios.test_scenario_change_of_mind import playing
from town.atproto.index import FOLLOW, GENERATOR, LIST, LIST_ITEM, PROFILE, STARTER_PACK
from town.atproto.service import Fault
from town.model.types import Completion

NOW = "2026-01-05T12:00:00.000Z"
OWN = Turn("reading", Provenance.SELF, cause_id="reading")
HIDES_RUDE = {"$type": "app.bsky.actor.defs#contentLabelPref", "label": "rude", "visibility": "hide"}


def make(town: RunningTown, who: str, collection: str, rkey: str | None = None, **fields: object) -> str:
    did = town.account(who)
    return town.network.create(did, collection, {"createdAt": NOW, **fields}, rkey=rkey).record.uri


async def use(life: RunningSoul, name: str, turn: Turn = OWN, /, **arguments: object) -> ToolResult:
    return await life.app.lives.turn_services.turn_runner.executor.execute(ToolCall("1", name, dict(arguments)), turn)


def read(result: ToolResult) -> Any:
    """Return what a reading tool brought, without its frame; it must count as a stranger's words."""
    assert result.provenance is Provenance.STRANGER, result.content
    return json.loads(result.content.splitlines()[1])


@pytest.fixture
def moss(running_town: RunningTown) -> dict[str, str]:
    """Have kit make a feed, a list and a starter pack of people who write about moss; return their URIs."""
    uris = {
        "feed": make(running_town, "kit", GENERATOR, "moss", did="did:web:feeds.test", displayName="Moss"),
        "list": make(running_town, "kit", LIST, name="moss people", purpose="app.bsky.graph.defs#curatelist"),
    }
    for who in ("sam", "vera", "anna", "otto", "rude"):
        make(running_town, "kit", LIST_ITEM, list=uris["list"], subject=running_town.account(who))
        running_town.network.post_as(running_town.account(who), f"{who} on #moss")
    uris["pack"] = make(running_town, "kit", STARTER_PACK, name="begin with moss", list=uris["list"])
    return uris


async def test_each_way_of_reading_leaves_out_whom_our_account_or_they_themselves_keep_from_it(
    running_town: RunningTown, moss: dict[str, str]
) -> None:
    network, home = running_town.network, running_town.make_home("rowan")
    network.mutes(running_town.account("rowan")).add(running_town.account("vera"))
    make(running_town, "anna", "app.bsky.graph.block", subject=running_town.account("rowan"))
    declare(running_town, "otto", inference=False)
    labels = {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "rude"}]}
    network.put(running_town.account("rude"), PROFILE, "self", {"labels": labels})
    network.preferences(running_town.account("rowan")).append(HIDES_RUDE)
    rkey = moss["list"].rpartition("/")[2]
    async with awake(home) as life:
        for name, arguments in (
            ("bluesky_search", {"query": "moss"}),
            ("bluesky_read_feed", {"address": "https://bsky.app/profile/kit.test/feed/moss"}),
            ("bluesky_read_feed", {"address": moss["list"]}),
        ):
            assert [one["text"] for one in read(await use(life, name, **arguments))] == ["sam on #moss"], name
        for name, arguments in (
            ("bluesky_read_list", {"address": f"https://bsky.app/profile/kit.test/lists/{rkey}"}),
            ("bluesky_read_list", {"address": moss["pack"]}),
        ):
            told = read(await use(life, name, **arguments))
            assert told["described"][0]["name"] in {"moss people", "begin with moss"}
            assert [one["handle"] for one in told["accounts"]] == ["sam.test"], name
        found = read(await use(life, "bluesky_search", query="sam", what="people"))
        assert [one["did"] for one in found] == [running_town.account("sam")]
        nobody = await use(life, "bluesky_search", query="vera", what="people")
        assert nobody.provenance is None


async def test_a_trend_leads_to_its_posts_and_a_search_is_narrowed(
    running_town: RunningTown, moss: dict[str, str]
) -> None:
    running_town.network.post_as(running_town.account("sam"), "moss again")
    async with awake(running_town.make_home("rowan")) as life:
        [trend] = read(await use(life, "bluesky_trends"))
        assert (trend["topic"], trend["posts"], trend["address"]) == ("moss", 5, moss["feed"])
        assert len(read(await use(life, "bluesky_read_feed", address=trend["address"], limit=2))) == 2
        by_sam = read(await use(life, "bluesky_search", query="moss", author="@sam.test", since="2020-01-01"))
        assert [one["text"] for one in by_sam] == ["moss again", "sam on #moss"]
        assert (await use(life, "bluesky_search", query="moss", since="lately")).is_error
        assert read(await use(life, "bluesky_read_list", address=moss["feed"]))["described"][0]["name"] == "Moss"
        assert (await use(life, "bluesky_read_feed", address=moss["pack"])).is_error


@pytest.mark.slow
async def test_since_a_day_means_since_its_beginning_in_the_time_zone_of_the_soul(tmp_path: Path) -> None:
    zone, clock = "Pacific/Auckland", HastyClock()
    here = local(clock.now(), zone)
    clock.ahead = (here.replace(hour=9, minute=0) + timedelta(days=1) - here).total_seconds()
    today = f"{local(clock.now(), zone):%Y-%m-%d}"
    async with (
        open_running_town(tmp_path, clock=clock) as town,
        awake(town.make_home("rowan", SOUL_SPEED="1", SOUL_TIMEZONE=zone), clock=clock) as life,
    ):
        town.network.post_as(town.account("kit"), "@rowan.test why does moss hum?")
        await life.look()
        asked = Turn("owner", Provenance.OWNER, origin=Provenance.OWNER)
        new = NewMemory("fact", "moss", "Moss hums.", source="owner", trust="owner")
        await life.app.services.knowledge.stores.memories.save(new, clock.now())
        for name, words in (("talk_search", "words"), ("memory_search", "query"), ("bluesky_search", "query")):
            found = await use(life, name, asked, **{words: "moss", "since": today})
            assert "hum" in found.content, name


async def test_what_is_its_own_is_marked_so_among_what_a_search_finds(running_town: RunningTown) -> None:
    for who in ("rowan", "sam"):
        running_town.network.post_as(running_town.account(who), f"{who} on #moss")
    async with awake(running_town.make_home("rowan")) as life:
        for query, what, key in (("moss", "posts", "author_did"), ("rowan", "people", "did"), ("sam", "people", "did")):
            for one in read(await use(life, "bluesky_search", query=query, what=what)):
                assert one.get("is_you", False) is (one[key] == running_town.account("rowan"))


async def test_it_is_for_turns_of_the_owner_and_of_its_own_and_carries_nothing_away(
    running_town: RunningTown, moss: dict[str, str]
) -> None:
    owner = Turn("owner", Provenance.OWNER, request=OwnerRequest("what is in kit's feed?"))
    async with awake(running_town.make_home("rowan")) as life:
        for turn in (owner, OWN, replace(OWN, provenance=Provenance.STRANGER, origin=Provenance.SELF)):
            assert not (await use(life, "bluesky_search", turn, query="moss")).is_error
        stranger = Turn("awareness", Provenance.STRANGER)
        assert (await use(life, "bluesky_search", stranger, query="moss")).content.startswith("Blocked")
        mixed = replace(owner, provenance=Provenance.STRANGER, origin=Provenance.OWNER)
        made_up = "https://bsky.app/profile/what-it-saw.kit.test/feed/moss"
        assert "did" in (await use(life, "bluesky_read_feed", mixed, address=made_up)).content
        assert read(await use(life, "bluesky_read_feed", mixed, address=moss["feed"]))


async def test_a_post_that_was_found_is_liked_only_where_one_of_both_follows_the_other(
    running_town: RunningTown,
) -> None:
    uris = {who: running_town.network.post_as(running_town.account(who), f"moss by {who}") for who in ("sam", "kit")}
    make(running_town, "rowan", FOLLOW, subject=running_town.account("sam"))
    async with awake(running_town.make_home("rowan")) as life:
        await use(life, "bluesky_search", query="moss")
        for who in ("sam", "kit"):
            uri, cid = uris[who]
            submitted = await life.app.services.outbox.submit(ProposedAction(LikeBody(uri=uri, cid=cid)))
            assert submitted.accepted is (who == "sam"), submitted.reason


async def test_nothing_is_read_before_it_is_known_what_our_account_does_not_want_to_see(
    running_town: RunningTown,
) -> None:
    running_town.network.post_as(running_town.account("sam"), "moss")
    running_town.faults.arm(Fault("server_error", "app.bsky.actor.getPreferences", times=99))
    async with awake(running_town.make_home("rowan")) as life:
        assert "not known yet" in (await use(life, "bluesky_search", query="moss")).content


@pytest.mark.parametrize("address", ["sam.test", "@sam.test", "https://bsky.app/profile/sam.test", "did"])
async def test_the_posts_of_one_account_are_read_by_its_handle_its_profile_and_its_did(
    running_town: RunningTown, moss: dict[str, str], address: str
) -> None:
    sam = running_town.account("sam")
    among_others = replace(OWN, provenance=Provenance.STRANGER, origin=Provenance.SELF, accounts={})
    async with awake(running_town.make_home("rowan")) as life:
        address = sam if address == "did" else address
        posts = read(await use(life, "bluesky_read_feed", address=address))
        assert [one["author_did"] for one in posts] == [sam]
        refused = await use(life, "bluesky_read_feed", among_others, address=address)
        assert refused.is_error == (address != sam), "a made-up handle could carry away what was read"
        await use(life, "bluesky_search", among_others, query="moss")
        known = await use(life, "bluesky_read_feed", among_others, address=address)
        assert not known.is_error, "a handle that was shown is an account that is known"


async def test_a_handle_in_an_earlier_line_of_the_owner_is_known_and_one_in_others_words_is_not(
    running_town: RunningTown,
) -> None:
    running_town.network.post_as(running_town.account("sam"), "Ask eve.test about moss.")
    running_town.account("eve")
    refused = []
    async with awake(running_town.make_home("rowan")) as life:
        for line, address in (
            ("Which moss does sam.test mean?", "sam.test"),
            ("And what else?", "sam.test"),
            ("Who can be asked?", "eve.test"),
        ):
            steps = [call("bluesky_read_feed", address=address), Completion("Well.")]
            running_town.mind.answer = playing(steps)
            await answered(life.app.owner, line)
            refused.append("no new handle" in running_town.mind.asked[-1].messages[-1].text)
    assert refused == [False, False, True]


async def test_of_its_own_posts_those_that_answer_nobody_bring_in_nobodys_words(running_town: RunningTown) -> None:
    network, rowan = running_town.network, running_town.account("rowan")
    theirs, _ = network.post_as(running_town.account("sam"), "moss?")
    ours, _ = network.post_as(rowan, "Copper keeps it off.", reply_to_uri=theirs)
    network.post_as(running_town.account("sam"), "Copper it is, moss is gone.", reply_to_uri=ours)
    first, _ = network.post_as(rowan, "Roofs are grey.")
    mixed = replace(OWN, provenance=Provenance.STRANGER, origin=Provenance.SELF, accounts={})
    async with awake(running_town.make_home("rowan")) as life:
        own = await use(life, "bluesky_read_feed", mixed, address="@rowan.test")
        [post] = json.loads(own.content.splitlines()[1])
        assert (own.provenance, post["is_you"], post["uri"]) == (None, True, first)
        own = await use(life, "bluesky_search", mixed, query="copper", author="rowan.test")
        [post] = read(own)
        assert (own.provenance, post["is_you"], post["reply_to"]) == (Provenance.STRANGER, True, theirs)
        found = read(await use(life, "bluesky_search", mixed, query="moss"))
        assert [one.get("reply_to_you", False) for one in found] == [True, False]
