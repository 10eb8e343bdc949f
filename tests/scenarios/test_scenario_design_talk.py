"""Talk about design shows a real picture with its alt text and its source.

If the owner describes a small tool in public to three SOULs, they make one workspace and one plan and link both there.
"""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.atproto.types import Post
from adapters.github.types import Repo
from common.clock import SystemClock
from modules.lives.bluesky.expression_policy import invites
from modules.runtime.scheduler.policy import peers_before
from modules.services.commitments.writer import contains_promise
from modules.services.outbox.bodies import PostBody
from tests.hasty_clock import HastyClock
from tests.patience import until
from tests.running_town import Answering, RunningTown, awake, call, replying
from tests.scenarios.designing import CHANNEL, VOUCHED, Designing
from tests.scenarios.designing import designing as open_designing
from tests.scenarios.workplace import Workplace, open_workplace
from tests.town.github_place import needs_git
from town.gallery.service import Fault
from town.github.arrangement import ORGANISATION
from town.model.types import ChatRequest, Completion

PLAIN = "Do you prefer tin or slate?"
SEEN = "A sheet of paper with rows of drawn bars."
ABOUT_PICTURE = "Drawn by hand, line by line. Which would you rather draw, the sea or the table of it?"


@asynccontextmanager
async def designing(town: RunningTown, url: str = CHANNEL) -> AsyncIterator[Designing]:
    """Open the gallery and the home, with a mind that shows the picture that it is offered."""
    async with open_designing(town, url) as world:
        town.mind.answer = seeing
        yield world


def seeing(request: ChatRequest) -> Completion:
    names = {offer.name for offer in request.offers}
    if "bluesky_reply_picture" in names:
        return call(
            "bluesky_reply_picture", text="A tide table: every bar is half an hour. It is the plainest one I know."
        )
    if "bluesky_post_found" in names:
        return call("bluesky_post_found", text=ABOUT_PICTURE, alt_text=SEEN)
    return replying(PLAIN)(request)


@pytest.mark.parametrize(
    ("url", "source"),
    [
        (CHANNEL, "designInspiration-arena"),
        pytest.param("{gallery}/exhibition", "designInspiration-web", marks=pytest.mark.slow),
    ],
)
async def test_a_thought_about_design_shows_a_picture_with_alt_text_and_source(
    running_town: RunningTown, url: str, source: str
) -> None:
    async with designing(running_town, url) as world, awake(world.home) as life:
        assert await world.picture_thought(life) == source
        (picture,), (entry,), (request,) = world.shown(), world.logged(), running_town.mind.asked
        (thought,) = json.loads((world.home.memory / "expressions.json").read_text())["expressions"].values()
    assert picture["alt"] == SEEN
    said, _, place = picture["text"].partition("\n\nSource: ")
    assert said == ABOUT_PICTURE
    assert invites(said)
    assert place.startswith("http")
    assert place in entry["source"].values()
    assert entry["why_picked"] == thought["promptSource"] == source
    assert sorted(offer.name for offer in request.offers) == ["bluesky_post_found", "stay_silent"]
    assert f'uri="{place}"' in request.messages[-1].text


def posting(texts: Iterator[str]) -> Answering:
    """Return a model that posts the next of these texts with the tool that it has for it."""
    return lambda request: call(next(one.name for one in request.offers if one.name != "stay_silent"), text=next(texts))


@pytest.mark.slow
async def test_each_picture_is_shown_once_and_then_thoughts_are_words_alone(running_town: RunningTown) -> None:
    async with designing(running_town) as world, awake(world.home) as life:
        texts = iter(f"Picture number {number}: would you rather keep it or draw it?" for number in range(9))
        running_town.mind.answer = posting(texts)
        for _ in range(3):
            await world.picture_thought(life)
        assert len({picture["text"] for picture in world.shown()}) == 3
        await world.picture_thought(life)
        assert len(world.shown()) == 3
        assert len(world.posts()) == 4
        told = [one.entry for one in await life.app.services.journal.recent(20) if "No picture" in one.entry.summary]
    assert "shown before" in told[0].reason


@pytest.mark.slow
async def test_a_picture_that_waits_for_a_yes_is_not_chosen_again(running_town: RunningTown) -> None:
    async with designing(running_town) as world:
        with world.home.env.open("a") as env:
            env.write("SOUL_APPROVAL=drafts\n")
        texts = iter(f"Number {number}: would you rather keep it or draw it?" for number in range(3))
        running_town.mind.answer = posting(texts)
        async with awake(world.home) as life:
            for _ in range(3):
                await world.picture_thought(life)
            held = await life.app.services.outbox.held()
    posts = [intent.body for intent in held if isinstance(intent.body, PostBody)]
    shown = [picture.source.block_id for body in posts for picture in body.pictures]
    assert sorted(shown) == [5001, 5003, 5005]


async def test_a_gallery_in_trouble_costs_the_picture_and_not_the_thought(running_town: RunningTown) -> None:
    async with designing(running_town) as world, awake(world.home) as life:
        world.faults.arm(Fault("bad_gateway", "GET /*", times=100))
        await world.picture_thought(life)
        assert [record["text"] for record in world.posts()] == [PLAIN]
        world.faults.clear()
        assert life.app.lives.bluesky.expression.next_at is not None


@pytest.mark.slow
async def test_a_thought_with_a_picture_that_invites_nobody_gets_an_invitation_and_keeps_its_source(
    running_town: RunningTown,
) -> None:
    for said in ("Moss.", "Slate hums.", "Copper is green.", "Rain falls."):
        running_town.network.post_as(running_town.account("rowan"), said)
    async with designing(running_town) as world, awake(world.home, clock=HastyClock()) as life:
        running_town.mind.answer = lambda _: call("bluesky_post_found", text="Drawn by hand at night.")
        life.passes(1_800)
        await world.picture_thought(life)
        (picture,) = world.shown()
    said, _, place = picture["text"].partition("\n\nSource: ")
    assert said.startswith("Drawn by hand at night. ")
    assert invites(said)
    assert place


async def test_words_that_are_the_sources_are_sent_back(running_town: RunningTown) -> None:
    def copying(request: ChatRequest) -> Completion:
        told = request.messages[-1].text
        framed = told[told.index("<reading-") : told.rindex("</reading-")] if "<reading-" in told else ABOUT_PICTURE
        return call("bluesky_post_found", text=f"{framed} How about you?" if "<reading-" in told else framed)

    async with designing(running_town) as world, awake(world.home) as life:
        running_town.mind.answer = copying
        await world.picture_thought(life)
        asked = [request.messages[-1].text for request in running_town.mind.asked]
    assert [picture["text"].partition("\n\nSource: ")[0] for picture in world.shown()] == [ABOUT_PICTURE]
    assert "only repeats what the source says" in asked[1]


@pytest.mark.slow
async def test_the_same_words_do_not_stand_beside_two_pictures(running_town: RunningTown) -> None:
    async with designing(running_town) as world, awake(world.home) as life:
        texts = iter((ABOUT_PICTURE, ABOUT_PICTURE, "Which would you rather mend, the wall or the door?"))
        running_town.mind.answer = lambda _: call("bluesky_post_found", text=next(texts))
        for _ in range(2):
            await world.picture_thought(life)
        told = running_town.mind.asked[2].messages[-1].text
    assert len({picture["text"].partition("\n\n")[0] for picture in world.shown()}) == len(world.shown()) == 2
    assert "beside another picture" in told


@pytest.mark.slow
async def test_words_too_long_beside_the_source_are_asked_for_shorter(running_town: RunningTown) -> None:
    long = "Each bar is half an hour and each hour is drawn. " * 6 + "Would you rather read it or draw it?"
    async with designing(running_town) as world, awake(world.home) as life:
        texts = iter((long, ABOUT_PICTURE))
        running_town.mind.answer = lambda _: call("bluesky_post_found", text=next(texts))
        await world.picture_thought(life)
        (picture,) = world.shown()
    assert picture["text"].startswith(ABOUT_PICTURE)


@pytest.mark.parametrize("asker", ["kit", pytest.param("owner", marks=pytest.mark.slow)])
async def test_who_asks_about_design_is_answered_with_a_picture_from_our_own_collections(
    running_town: RunningTown, asker: str
) -> None:
    async with designing(running_town) as world:
        text = "@rowan.test which poster or drawing do you like best? Mine is https://images.example/mine.png"
        uri, _ = running_town.network.post_as(running_town.account(asker), text)
        async with awake(world.home) as life:
            await life.look()
            (picture,), (entry,), request = world.shown(), world.logged(), running_town.mind.asked[-1]
    assert picture["reply"]["parent"]["uri"] == uri
    assert picture["alt"]
    assert "\n\nSource: http" in picture["text"]
    assert "images.example" not in json.dumps(entry)
    assert entry["source"]["channel_url"] == CHANNEL
    assert {offer.name for offer in request.offers} >= {"bluesky_reply_picture", "bluesky_reply", "bluesky_like"}


async def test_no_picture_is_offered_where_nobody_asks_about_design(running_town: RunningTown) -> None:
    async with designing(running_town) as world:
        running_town.network.post_as(running_town.account("kit"), "@rowan.test I love that poster design.")
        running_town.mind.answer = replying("Slate, because it remembers the rain.")
        async with awake(world.home) as life:
            await life.look()
    offered = {offer.name for request in running_town.mind.asked for offer in request.offers}
    assert "bluesky_reply_picture" not in offered
    assert world.shown() == []


async def test_one_picture_is_enough_for_a_thread(running_town: RunningTown) -> None:
    async with designing(running_town) as world:
        kit = running_town.account("kit")
        running_town.network.post_as(kit, "@rowan.test which poster do you like best?")
        async with awake(world.home) as life:
            await life.look()
            ours = running_town.network.records(running_town.account("rowan"), "app.bsky.feed.post")[0].uri
            running_town.network.post_as(kit, "And which typeface would you set beside it?", reply_to_uri=ours)
            running_town.mind.answer = replying("Something narrow, with room between the lines.")
            await life.look()
    assert len(world.posts()) == 2
    assert len(world.shown()) == 1


async def test_a_picture_that_anybody_may_have_hung_up_waits_for_a_yes_and_says_nothing_of_theirs(
    running_town: RunningTown,
) -> None:
    async with designing(running_town) as world:
        world.home.soul.write_text(world.home.soul.read_text().replace(VOUCHED.format(url=CHANNEL), ""))
        async with awake(world.home) as life:
            await world.picture_thought(life)
            assert world.posts() == []
            (held,) = await life.app.services.outbox.held()
            running_town.network.post_as(running_town.account("kit"), "@rowan.test which poster do you like best?")
            await life.look()
            assert world.shown() == []
            assert len(world.posts()) == 1
    assert isinstance(held.body, PostBody)
    (picture,) = held.body.pictures
    assert picture.alt == SEEN
    assert held.body.text.endswith(f"Source: https://www.are.na/block/{picture.source.block_id}")


SPEED = 10.0
WORKSPACE = Repo(ORGANISATION, "www-lil-intdev-tide-table")
ASKED = (
    "{names} please make a workspace for a tide table and write a plan: it reads the tides from a file,"
    " prints the next high water, and warns of spring tides."
)
ASKED_ALONE = "@maren.test please make us a workspace and a plan for a tide table."
PARTS = ["Reads the tides from a file", "Prints the next high water", "Warns of spring tides"]


def posts_under(place: Workplace, root: str) -> list[Post]:
    """Return the replies in a thread, oldest first."""
    posts = reversed(place.town.network.posts(1000))
    return [one for one in posts if one.reply and one.reply.root.uri == root]


def in_turn(root: str, handles: list[str]) -> list[str]:
    """Return the handles in the order in which their SOULs take up shared work."""
    return sorted(handles, key=lambda one: len(peers_before(one, handles, root)))


@needs_git
@pytest.mark.slow
@pytest.mark.timeout(420)
async def test_one_makes_workspace_and_plan_another_adds_what_is_missing_and_the_third_only_likes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = SystemClock()
    began = clock.monotonic()
    async with open_workplace(tmp_path, speed=SPEED, asleep=("maren", "tobias", "odile"), unasked=True) as place:
        handles = [one.handle for one in place.town.residents]
        names = {one.handle: one.name for one in place.town.residents}
        root, _ = place.town.network.post_as(
            place.town.owner.did, ASKED.format(names=" ".join(f"@{handle}" for handle in handles))
        )
        first, second, third = in_turn(root, handles)

        def answers(handle: str) -> list[str]:
            under = [one for one in posts_under(place, root) if one.reply and one.reply.parent.uri == root]
            return [one.text for one in under if one.author.handle == handle]

        for handle in (first, second):
            await place.wakes(names[handle])
        await until(lambda: bool(answers(first)), what="the answer of the first")
        await until(lambda: bool(answers(second)), what="the answer of the second")
        await until(lambda: len(place.plans) == 1, what="the one open plan")
        (plan,) = place.plans
        url = plan_url(place)
        assert [task.title for task in place.plan.tasks] == PARTS
        assert all(url in answers(handle)[0] for handle in (first, second))
        # NOTE(self): a SOUL that is late loses its place, and the first one may be late on a busy machine.
        (other,) = {first, second} - {f"{plan.author.login}.test"}
        assert "warns of spring tides" in answers(other)[0]

        await place.wakes(names[third])
        await until(lambda: third in likers(place, root), what="the like of the third")
        await until(lambda: place.watched_by(WORKSPACE) == set(place.homes), what="all three watch the workspace")

        assert [one.name for one in place.workspaces] == [WORKSPACE.name]
        await until(lambda: [one for one in place.issues if one.state == "open"] == [plan], what="no other open issue")
        assert [task.title for task in place.plan.tasks] == PARTS
        assert likers(place, root) == [third]
        assert [len(answers(handle)) for handle in (first, second)] == [1, 1]
        said = posts_under(place, root)
        assert {one.author.handle for one in said} <= set(handles)
        assert all(f"/{WORKSPACE.full_name}/" in one.text for one in said)
        assert not any(contains_promise(one.text) for one in said)
    with capfd.disabled():
        sys.stdout.write(f"\n{len(said)} posts, all results, after {clock.monotonic() - began:.0f} s\n")


def plan_url(place: Workplace) -> str:
    """Return the URL of the plan."""
    (plan,) = place.plans
    return f"{place.town.github_url}/{WORKSPACE.full_name}/issues/{plan.number}"


def likers(place: Workplace, uri: str) -> list[str]:
    """Return the handles of those who like a post."""
    return [one.handle for one in place.town.network.likes(uri)]
