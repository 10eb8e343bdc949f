"""SOULs find peers by identity posts, then follow and announce each peer once, even over restarts, with limited trust.

A peer that unfollowed us, or whose follow was undone, is not followed again before the cool-down is over. An
identity post counts for GitHub only while the account there names the SOUL in return, and stays the same account.
"""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import datetime

import pytest

from modules.runtime.home import Home
from modules.runtime.journal.types import Entry
from modules.services.peers.registry import IDENTITY_POST_MARKER
from modules.services.rights import store
from tests.counted_requests import CountedRequests
from tests.github_moves import rename_account
from tests.hasty_clock import HastyClock
from tests.known_profiles import RULED_OUT, set_profiles
from tests.running_town import RunningSoul, RunningTown, awake, call, prompt_of
from tests.scenarios.peers_github import account_of, page_of
from tests.scenarios.test_scenario_change_of_mind import use
from town.atproto.service import Fault
from town.github.network import GitHubNetwork
from town.model.types import ChatRequest, Completion

pytestmark = pytest.mark.usefixtures("peers_github")


NAMES = ("rowan", "wren", "marlow")
CYCLES = 8
QUARTER_HOUR_S = 5
"""More than enough at the speed of these tests."""
A_DAY_S = 90
"""The same for a day."""


def speaking(request: ChatRequest) -> Completion:
    """Answer as a model that writes the sentences it is asked for, and likes posts or is silent in threads."""
    names = {offer.name for offer in request.offers}
    if "say_who_you_are" in names:
        return call("say_who_you_are", sentence="I keep notes on how old houses stay dry.")
    if "tell_of_peer" in names:
        return call("tell_of_peer", sentence="I found a neighbour who is worth a look.")
    return call("bluesky_like" if "bluesky_like" in names else "stay_silent", reason="nothing to add")


def home_of(town: RunningTown, name: str, **more: str) -> Home:
    account = account_of(town, name, f"sh-{name}")
    there = {"AGENT_GITHUB_TOKEN": account.token, "GITHUB_API_URL": town.github_url} if account else {}
    return town.make_home(name, AGENT_GITHUB_USERNAME=f"sh-{name}", **{**there, **more})


async def cycle(soul: RunningSoul) -> None:
    """Run a quarter of an hour of one SOUL: it reads, looks for peers, and sends all its intents."""
    soul.passes(QUARTER_HOUR_S)
    await soul.look()
    await soul.app.scheduler.run_guarded("peers")
    await soul.send()


async def live(home: Home, cycles: int = 4, clock: HastyClock | None = None) -> list[Entry]:
    """Run some quarters of an hour of one SOUL; return its journal entries on peers, oldest first."""
    async with awake(home, clock=clock or HastyClock()) as soul:
        for _ in range(cycles):
            await cycle(soul)
        stored = await soul.app.services.journal.recent(1000)
        return [one.entry for one in reversed(stored) if one.entry.loop == "peers"]


def introduces_itself(town: RunningTown, name: str, username: str = "") -> str:
    """Let an account that is none of our SOULs write an identity post; return its URI."""
    username = username or f"sh-{name}"
    account_of(town, name, username)
    text = f"{IDENTITY_POST_MARKER}`{username}` Hello from me. https://github.com/{username}"
    return town.network.post_as(town.account(name), text)[0]


def identity_posts(town: RunningTown, name: str) -> list[str]:
    return [text for text in town.texts(name) if text.startswith(IDENTITY_POST_MARKER)]


def announcements(town: RunningTown, name: str) -> list[str]:
    return [text for text in town.texts(name) if not text.startswith(IDENTITY_POST_MARKER)]


def follows(town: RunningTown, name: str) -> list[str]:
    records = town.network.records(town.account(name), "app.bsky.graph.follow")
    return sorted(town.network.actor(str(record.value["subject"])).handle for record in records)


@pytest.mark.slow
async def test_three_souls_that_the_owner_names_find_follow_and_announce_each_other_once(
    running_town: RunningTown,
) -> None:
    town = running_town
    town.mind.answer = speaking
    homes = {name: home_of(town, name) for name in NAMES}
    named = " ".join(f"@{name}.test" for name in NAMES)
    town.network.post_as(town.account("owner"), f"{named} here is a thought about a rain garden.")
    clock = HastyClock()
    for _ in range(CYCLES):
        async with AsyncExitStack() as stack:
            for name in NAMES:
                await cycle(await stack.enter_async_context(awake(homes[name], clock=clock)))
    for name in NAMES:
        others = sorted(other for other in NAMES if other != name)
        (identity,) = identity_posts(town, name)
        assert identity.startswith(f"{IDENTITY_POST_MARKER}`sh-{name}` I keep notes")
        assert identity.endswith(f"https://github.com/sh-{name}")
        assert follows(town, name) == [f"{other}.test" for other in others]
        told = announcements(town, name)
        assert len(told) == len(others)
        for other in others:
            (text,) = [text for text in told if f"@{other}.test" in text]
            assert f"https://github.com/sh-{other}" in text


async def test_an_identity_post_that_was_deleted_by_hand_is_written_anew_once(running_town: RunningTown) -> None:
    running_town.mind.answer = speaking
    home, clock = home_of(running_town, "rowan"), HastyClock()
    async with awake(home, clock=clock) as soul:
        for _ in range(2):
            await cycle(soul)
        (post,) = [one for one in running_town.network.posts() if one.author.handle == "rowan.test"]
        running_town.network.delete(*post.uri.removeprefix("at://").split("/"))
        soul.passes(A_DAY_S)
        for _ in range(3):
            await cycle(soul)
        assert len(identity_posts(running_town, "rowan")) == 1
        assert soul.app.services.peer_registry.is_mutual


async def test_an_identity_post_that_the_owner_had_deleted_is_not_written_anew(running_town: RunningTown) -> None:
    running_town.mind.answer = speaking
    async with awake(home_of(running_town, "rowan"), clock=HastyClock()) as soul:
        for _ in range(2):
            await cycle(soul)
        assert len(identity_posts(running_town, "rowan")) == 1
        await use(soul, "bluesky_delete_post", "Delete that post about your GitHub account.", post_uri="newest")
        await soul.send()
        soul.passes(A_DAY_S)
        for _ in range(3):
            await cycle(soul)
    assert identity_posts(running_town, "rowan") == []


async def test_our_own_posts_are_not_read_again_for_a_day_while_the_identity_post_waits_or_after_the_owners_no(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = speaking
    reads = CountedRequests(running_town.faults, "com.atproto.repo.listRecords?*app.bsky.feed.post*", "lags")
    async with awake(home_of(running_town, "rowan", SOUL_APPROVAL="drafts"), clock=HastyClock()) as soul:

        async def looks(after_s: float = QUARTER_HOUR_S) -> int:
            reads.taken()
            soul.passes(after_s)
            await soul.app.scheduler.run_guarded("peers")
            return reads.taken()

        await looks()
        outbox = soul.app.services.outbox
        (draft,) = [one for one in await outbox.held() if one.kind == "post"]
        assert [await looks() for _ in range(3)] == [0] * 3
        await outbox.reject(draft.id)
        assert [await looks() for _ in range(3)] == [0] * 3
        assert await looks(A_DAY_S) > 0
    assert identity_posts(running_town, "rowan") == []


async def test_nothing_is_written_while_our_own_posts_cannot_be_read(running_town: RunningTown) -> None:
    running_town.mind.answer = speaking
    home, clock = home_of(running_town, "rowan"), HastyClock()
    async with awake(home, clock=clock) as soul:
        running_town.faults.arm(Fault("bad_gateway", "com.atproto.repo.listRecords", times=100))
        for _ in range(3):
            await cycle(soul)
        assert identity_posts(running_town, "rowan") == []
        running_town.faults.clear()
        for _ in range(3):
            await cycle(soul)
    assert len(identity_posts(running_town, "rowan")) == 1


async def test_a_home_that_lost_everything_neither_follows_nor_announces_again(running_town: RunningTown) -> None:
    running_town.mind.answer = speaking
    introduces_itself(running_town, "wren")
    clock = HastyClock()
    await live(home_of(running_town, "rowan", SOUL_PEERS="wren.test"), 5, clock)
    assert len(announcements(running_town, "rowan")) == 1
    shutil.rmtree(running_town.root / "rowan")
    clock.ahead += 60
    await live(home_of(running_town, "rowan", SOUL_PEERS="wren.test"), 5, clock)
    assert len(announcements(running_town, "rowan")) == 1
    assert follows(running_town, "rowan") == ["wren.test"]
    assert len(identity_posts(running_town, "rowan")) == 1


async def test_the_owners_number_of_posts_a_day_also_binds_the_identity_post_and_announcements(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = speaking
    home = home_of(running_town, "rowan", SOUL_PEERS="wren.test")
    introduces_itself(running_town, "wren")
    async with awake(home, clock=HastyClock()) as soul:
        services = soul.app.services
        for most, posts in (("0", 0), ("1", 1), ("2", 2)):
            await set_profiles(services.database, services.clock, {"posts_a_day": most}, {})
            for _ in range(4):
                await cycle(soul)
            assert len(running_town.texts("rowan")) == posts


async def test_a_stranger_that_says_who_it_is_is_linked_and_followed_only_once_the_owner_names_it(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = speaking
    home, clock = home_of(running_town, "rowan"), HastyClock()
    introduces_itself(running_town, "wren")
    running_town.network.post_as(running_town.account("wren"), "@rowan.test I'm `sh-wren` on GitHub, and you?")
    told = await live(home, clock=clock)
    assert [entry.summary for entry in told if "Linked" in entry.summary] == ["Linked @wren.test → github.com/sh-wren"]
    assert follows(running_town, "rowan") == announcements(running_town, "rowan") == []
    running_town.network.post_as(running_town.account("owner"), "@rowan.test do you know @wren.test ?")
    await live(home, clock=clock)
    assert follows(running_town, "rowan") == ["wren.test"]
    assert len(announcements(running_town, "rowan")) == 1


async def test_a_peer_that_goes_on_writing_stays_one_and_who_takes_its_post_back_does_not(
    running_town: RunningTown,
) -> None:
    home, clock = home_of(running_town, "rowan"), HastyClock()
    introduces_itself(running_town, "rowan")
    uri = introduces_itself(running_town, "wren")
    running_town.network.post_as(running_town.account("wren"), "@rowan.test I'm `sh-wren` on GitHub.")
    async with awake(home, clock=clock) as soul:
        for _ in range(2):
            await cycle(soul)
        registry = soul.app.services.peer_registry
        assert "wren.test" in registry.found()
        for number in range(60):
            running_town.network.post_as(running_town.account("wren"), f"Thought number {number} about slates.")
        soul.passes(A_DAY_S)
        await cycle(soul)
        assert not registry.due_for_scan(5), "it was seen again"
        assert "wren.test" in registry.found()
        running_town.network.delete(*uri.removeprefix("at://").split("/"))
        soul.passes(A_DAY_S)
        await cycle(soul)
        assert registry.found() == frozenset()


@pytest.mark.parametrize("leave", [store.mute, store.want_no_reply])
async def test_who_is_to_be_left_alone_is_neither_followed_nor_announced(
    running_town: RunningTown, leave: Callable[[sqlite3.Connection, str, datetime], object]
) -> None:
    running_town.mind.answer = speaking
    home = home_of(running_town, "rowan", SOUL_PEERS="wren.test")
    introduces_itself(running_town, "wren")
    async with awake(home, clock=HastyClock()) as soul:
        services, wren = soul.app.services, running_town.account("wren")
        await services.database.run(lambda connection: leave(connection, wren, services.clock.now()))
        for _ in range(4):
            await cycle(soul)
    assert follows(running_town, "rowan") == announcements(running_town, "rowan") == []


async def test_what_the_owner_rules_out_stands_above_each_question_for_a_public_sentence(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = speaking
    introduces_itself(running_town, "wren")
    async with awake(home_of(running_town, "rowan", SOUL_PEERS="wren.test"), clock=HastyClock()) as soul:
        told = {"name": "Odile Marsh"}
        await set_profiles(soul.app.services.database, soul.app.services.clock, {"limits": RULED_OUT}, told)
        for _ in range(4):
            await cycle(soul)
    prompts = [prompt_of(one) for one in running_town.mind.asked]
    assert len(running_town.texts("rowan")) == 2, "an identity post and an announcement"
    assert [one for one in prompts if RULED_OUT not in one or told["name"] in one] == []


async def test_a_soul_without_an_account_on_github_says_nothing_and_follows_nobody(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = speaking
    introduces_itself(running_town, "wren")
    await live(running_town.make_home("rowan", SOUL_PEERS="wren.test"))
    assert running_town.texts("rowan") == []
    assert follows(running_town, "rowan") == []


async def test_what_the_owner_refused_is_not_asked_again(running_town: RunningTown) -> None:
    running_town.mind.answer = speaking
    async with awake(home_of(running_town, "rowan", SOUL_APPROVAL="drafts"), clock=HastyClock()) as soul:
        await cycle(soul)
        (draft,) = await soul.app.services.outbox.held()
        await cycle(soul)
        assert await soul.app.services.outbox.held() == [draft]
        await soul.app.services.outbox.reject(draft.id, reason="not now")
        for _ in range(3):
            await cycle(soul)
        assert await soul.app.services.outbox.held() == []
    assert running_town.texts("rowan") == []


async def test_of_two_that_claim_one_name_the_one_that_the_github_page_names_is_a_peer(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = speaking
    home = home_of(running_town, "rowan")
    account_of(running_town, "wren", "sh-wren")
    for name in ("eve", "wren"):
        introduces_itself(running_town, name, "sh-wren")
    running_town.network.post_as(running_town.account("owner"), "@rowan.test meet @eve.test and @wren.test !")
    await live(home, 6)
    assert follows(running_town, "rowan") == ["wren.test"]
    (told,) = announcements(running_town, "rowan")
    assert "@wren.test" in told


async def test_a_peer_whose_account_is_gone_holds_up_no_other(running_town: RunningTown) -> None:
    running_town.mind.answer = speaking
    home = home_of(running_town, "rowan")
    for name in ("marlow", "wren"):
        introduces_itself(running_town, name)
    gone = running_town.account("marlow").rpartition(":")[2]
    running_town.faults.arm(Fault("bad_request", f"*.getProfile?*{gone}*", times=1_000))
    running_town.network.post_as(running_town.account("owner"), "@rowan.test meet @marlow.test and @wren.test !")
    async with awake(home, clock=HastyClock()) as soul:
        for _ in range(6):
            await cycle(soul)
        met = soul.app.services.peer_registry.get_linked_peers()
    assert [(peer.bluesky_handle, peer.profile_read_at is None) for peer in met] == [
        ("marlow.test", False),
        ("wren.test", False),
    ]
    assert follows(running_town, "rowan") == ["wren.test"]


async def test_a_soul_that_is_only_social_says_who_it_is_too(running_town: RunningTown) -> None:
    running_town.mind.answer = speaking
    async with awake(home_of(running_town, "rowan"), clock=HastyClock(), social_only=True) as soul:
        for _ in range(2):
            await cycle(soul)
    assert len(identity_posts(running_town, "rowan")) == 1


@pytest.mark.slow
async def test_a_peer_whose_follow_was_taken_back_is_followed_again_only_after_the_cooldown(
    running_town: RunningTown,
) -> None:
    town, clock = running_town, HastyClock()
    town.mind.answer = speaking
    introduces_itself(town, "wren")
    home = home_of(town, "rowan", PEER_UNFOLLOW_COOLDOWN="3")
    town.network.post_as(town.account("owner"), "@rowan.test meet @wren.test")
    async with awake(home, clock=clock) as soul:
        for _ in range(CYCLES):
            await cycle(soul)
        assert follows(town, "rowan") == ["wren.test"]
        (record,) = town.network.records(town.account("rowan"), "app.bsky.graph.follow")
        town.network.delete(*record.uri.removeprefix("at://").split("/"))
        soul.passes(A_DAY_S)
        await cycle(soul)
        told = [one.entry for one in await soul.decisions() if one.entry.loop == "peers"]
        assert (told[-1].summary, told[-1].reason) == (
            "Does not follow @wren.test for now",
            "our follow of it was taken back",
        )
        soul.passes(A_DAY_S)
        await cycle(soul)
    async with awake(home, clock=clock) as soul:
        await cycle(soul)
        assert follows(town, "rowan") == []
        soul.passes(2 * A_DAY_S)
        for _ in range(2):
            await cycle(soul)
        assert follows(town, "rowan") == ["wren.test"]
    assert len([text for text in announcements(town, "rowan") if "@wren.test" in text]) == 1


@pytest.mark.slow
async def test_whom_the_owner_had_unfollowed_is_followed_again_only_at_their_word(running_town: RunningTown) -> None:
    running_town.mind.answer = speaking
    introduces_itself(running_town, "wren")
    home = home_of(running_town, "rowan", SOUL_PEERS="wren.test", PEER_UNFOLLOW_COOLDOWN="1")
    async with awake(home, clock=HastyClock()) as soul:
        await cycle(soul)
        while not follows(running_town, "rowan"):
            await cycle(soul)
        told, found = announcements(running_town, "rowan"), []
        for name, said in (
            ("bluesky_unfollow", "Unfollow @wren.test, and never follow them again"),
            ("bluesky_follow", "Follow @wren.test"),
        ):
            await use(soul, name, said, did="@wren.test")
            await soul.send()
            for _ in range(4):
                soul.passes(A_DAY_S)
                await cycle(soul)
            found.append((follows(running_town, "rowan"), len(announcements(running_town, "rowan"))))
    assert found == [([], len(told)), (["wren.test"], 1)]


@pytest.mark.slow
async def test_a_peer_that_unfollowed_us_is_not_followed_for_a_while(running_town: RunningTown) -> None:
    town, clock = running_town, HastyClock()
    town.mind.answer = speaking
    introduces_itself(town, "wren")
    wren, rowan, home = town.account("wren"), town.account("rowan"), home_of(town, "rowan")
    town.network.put(
        wren, "app.bsky.graph.follow", "3jzfcijpj2z2a", {"subject": rowan, "createdAt": "2026-01-01T00:00:00Z"}
    )
    town.network.post_as(town.account("owner"), "@rowan.test meet @wren.test")
    async with awake(home, clock=clock) as soul:
        for _ in range(CYCLES):
            await cycle(soul)
        assert follows(town, "rowan") == ["wren.test"]
        town.network.delete(wren, "app.bsky.graph.follow", "3jzfcijpj2z2a")
        for record in town.network.records(rowan, "app.bsky.graph.follow"):
            town.network.delete(*record.uri.removeprefix("at://").split("/"))
        for _ in range(3):
            soul.passes(A_DAY_S)
            await cycle(soul)
        assert follows(town, "rowan") == []


DAY_S = 25 * 3600.0


async def test_under_a_name_on_github_that_does_not_name_it_back_nothing_is_said_or_done(
    running_town: RunningTown, peers_github: GitHubNetwork
) -> None:
    running_town.mind.answer = speaking
    home = home_of(running_town, "rowan", SOUL_PEERS="wren.test")
    peers_github.create_account("famous-person", website="https://famous.example")
    introduces_itself(running_town, "wren", "famous-person")
    running_town.network.post_as(running_town.account("owner"), "@rowan.test meet @wren.test !")
    async with awake(home, clock=HastyClock()) as soul:
        for _ in range(6):
            await cycle(soul)
        registry = soul.app.services.peer_registry
        assert (registry.get_linked_peers(), registry.get_listed_accounts()) == ([], [])
    assert follows(running_town, "rowan") == announcements(running_town, "rowan") == []


async def test_a_login_that_somebody_else_took_over_is_no_peers_until_the_owner_says_so(
    running_town: RunningTown, peers_github: GitHubNetwork
) -> None:
    running_town.mind.answer = speaking
    home, clock = home_of(running_town, "rowan", SOUL_PEERS="wren.test"), HastyClock()
    introduces_itself(running_town, "wren")
    async with awake(home, clock=clock) as soul:
        await cycle(soul)
        services = soul.app.services
        assert [one.login for one in services.peer_registry.get_listed_accounts()] == ["sh-wren"]
        before = peers_github.find("sh-wren")
        assert before
        rename_account(peers_github, before, "gone")
        new = peers_github.create_account("sh-wren", website=page_of(running_town.account("wren")))
        clock.ahead += DAY_S
        await cycle(soul)
        assert services.peer_registry.get_listed_accounts() == []
        assert [one.name for one in services.pinned_names.waiting()] == ["sh-wren"]
        assert await services.pinned_names.accept("SH-wren") == "accepted"
        clock.ahead += DAY_S
        await cycle(soul)
        assert [one.id for one in services.peer_registry.get_listed_accounts()] == [new.id]
