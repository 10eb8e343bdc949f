"""Proves that a workspace named by the owner or a peer is watched, and that its thread is about work for everybody.

A workspace that the owner asks for in a public post is created and belongs to the whole thread. The requests for one
answered post are counted. Where several SOULs have one plan, a later one adds what it lacks, once, or likes; people's
words in it stay.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from adapters.github.types import Repo
from common.clock import SystemClock
from modules.runtime.scheduler.policy import peers_before
from modules.services.peers.policy import PeerClaim
from modules.services.pinned_names import FILE, PinnedNames
from modules.services.plans.events import wish_mark
from modules.services.plans.plan_text import parse_plan
from modules.services.workspaces.watched import MOST_WATCHED
from tests.running_town import KEY, Mind, RunningSoul, RunningTown, awake, call, prompt_of, replying, served
from tests.town_github import TownGitHub
from tests.trusting import told_nobody
from town.atproto.network import Network
from town.atproto.service import AtprotoFaults, atproto_app
from town.github.values import Fault, StoredIssue, StoredRepo
from town.model.service import ModelFaults, model_app
from town.model.types import ChatRequest, Completion

ADDRESS = "https://github.com/owner-hub/www-lil-intdev-garden"
GARDEN = Repo("owner-hub", "www-lil-intdev-garden")


@pytest.mark.parametrize(("author", "is_watched"), [("owner", True), ("wren", True), ("kit", False)])
async def test_the_owner_and_peers_can_have_a_workspace_watched_and_nobody_else(
    running_town: RunningTown, author: str, *, is_watched: bool
) -> None:
    home = running_town.make_home("rowan", SOUL_PEERS="wren.test")
    root, _ = running_town.network.post_as(running_town.account(author), f"@rowan.test let us meet at {ADDRESS} today?")
    async with awake(home) as life:
        await life.look()
        watched = life.app.services.workspaces
        assert (watched.get(GARDEN) is not None) is is_watched
        assert watched.is_thread_of_one(root) is is_watched
        told = [line for _, line, _ in life.console.lines if "www-lil-intdev-garden" in line and "Watches" in line]
        assert len(told) == is_watched


async def test_the_owner_is_told_that_a_workspace_has_no_place_and_one_that_is_finished_gives_its_own(
    running_town: RunningTown,
) -> None:
    owner = running_town.account("owner")
    async with awake(running_town.make_home("rowan")) as life:
        watched, others = (
            life.app.services.workspaces,
            [Repo("acme", f"www-lil-intdev-{n}") for n in range(MOST_WATCHED)],
        )
        for repo in others:
            watched.watch(repo)
        for is_watched in (False, True):
            running_town.network.post_as(owner, f"@rowan.test let us meet at {ADDRESS} today?")
            await life.look()
            assert (watched.get(GARDEN) is not None) is is_watched
            watched.note(others[0], finished_issue_number=3)
        told = [line for _, line, _ in life.console.lines if f"{GARDEN.full_name}, which @owner.test named" in line]
        assert len(told) == 2
        assert watched.get(others[0]) is None


async def test_a_workspace_that_the_owner_unwatched_is_watched_again_only_at_their_newer_word(
    running_town: RunningTown,
) -> None:
    link = f"@rowan.test let us meet at {ADDRESS} today?"
    async with awake(running_town.make_home("rowan", SOUL_PEERS="wren.test")) as life:
        running_town.network.post_as(running_town.account("owner"), link)
        await life.look()
        assert life.app.services.workspaces.unwatch(GARDEN)
        for author, names in (("wren", frozenset[str]()), ("owner", {GARDEN.full_name})):
            running_town.network.post_as(running_town.account(author), link)
            await life.look()
            assert life.app.services.workspaces.names() == names


async def test_a_found_peer_has_no_workspace_watched(running_town: RunningTown) -> None:
    kit = running_town.account("kit")
    async with awake(running_town.make_home("rowan")) as life:
        registry = life.app.services.peer_registry
        registry.link_bluesky_handle_to_github(PeerClaim("kit.test", kit, "kit"), github_id=7)
        registry.is_mutual = True
        running_town.network.post_as(kit, f"@rowan.test let us meet at {ADDRESS} today?")
        await life.look()
        assert kit in registry.found()
        assert life.app.services.workspaces.get(GARDEN) is None


async def test_a_listed_handle_that_somebody_else_took_over_gives_no_rights_until_the_owner_says_so(
    running_town: RunningTown,
) -> None:
    home, wren = running_town.make_home("rowan", SOUL_PEERS="wren.test"), running_town.account("wren")
    await PinnedNames(home.memory / FILE, SystemClock(), told_nobody).check("bluesky", "wren.test", "did:plc:former")
    running_town.network.post_as(wren, f"@rowan.test let us meet at {ADDRESS} today?")
    async with awake(home) as life:
        services = life.app.services
        await life.look()
        assert services.workspaces.get(GARDEN) is None
        assert services.account.peers() == {"did:plc:former"}
        assert any("wren.test is somebody else now" in line for _, line, _ in life.console.lines)
        assert await services.pinned_names.accept("wren.test") == "accepted"
        running_town.network.post_as(wren, f"@rowan.test is {ADDRESS} good?")
        await life.look()
        assert services.workspaces.get(GARDEN) is not None


@pytest.mark.parametrize("is_thread_of_workspace", [True, False])
async def test_the_thread_of_a_workspace_is_about_work_whoever_writes_in_it(
    running_town: RunningTown, *, is_thread_of_workspace: bool
) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    root, _ = running_town.network.post_as(kit, "The weir was loud last night.")
    running_town.network.post_as(kit, "@rowan.test where does the water come from?", reply_to_uri=root)
    async with awake(home) as life:
        life.app.services.workspaces.watch(GARDEN, root if is_thread_of_workspace else "at://another")
        await life.look()
        known = life.app.lives.bluesky_state.conversations.get_conversation(root)
    assert known is not None
    assert known.is_project is is_thread_of_workspace


TASKS = [{"title": "Count visits", "description": "In the server.", "files": ["server.js"]}]
SITE = Repo("acme", "site")
ASKED_FOR_WORKSPACE = "@rowan.test please make a workspace called tide-table for us, and write a plan there"


class Maker:
    """Scripted mind that creates a workspace and a plan where it can, then replies; `offered` keeps its tools."""

    def __init__(self) -> None:
        self.offered: list[set[str]] = []

    def respond(self, request: ChatRequest) -> Completion:
        offered = {offer.name for offer in request.offers}
        if "bluesky_reply" not in offered:
            return Completion("Noted.")
        self.offered.append(offered)
        steps = [
            call("workspace_create", name="tide-table", description="Tides."),
            call("plan_create", title="A tide table", goal="It tells the tides.", tasks=TASKS),
        ]
        done = len(self.offered) - 1
        if "workspace_create" in offered and done < len(steps):
            return steps[done]
        return call("bluesky_reply", text="The bell rings twice at noon.")


@pytest.mark.parametrize("is_deep", [False, True])
@pytest.mark.slow
async def test_a_workspace_that_the_owner_asks_for_belongs_to_the_root_of_the_thread(
    running_town: RunningTown, town_github: TownGitHub, *, is_deep: bool
) -> None:
    town_github.network.state.members["acme"] = {"rowan"}
    town_github.repo.is_template = True
    running_town.mind.answer = Maker().respond
    home = town_github.make_home(WORKSPACE_ORG="acme", WORKSPACE_TEMPLATE="acme/site")
    network, owner = running_town.network, running_town.account("owner")
    async with awake(home) as life, life.sending():
        await life.app.services.github.contents.write(SITE, "README.md", "# It\n", message="Add")
        root, _ = network.post_as(owner, "The tides again." if is_deep else ASKED_FOR_WORKSPACE)
        if is_deep:
            above, _ = network.post_as(owner, "High at six.", reply_to_uri=root)
            network.post_as(owner, ASKED_FOR_WORKSPACE, reply_to_uri=above)
        await life.look()
        (watched,) = life.app.services.workspaces.all()
    assert (watched.repo, watched.discovered_in_thread) == ("www-lil-intdev-tide-table", root)
    (made,) = [one for one in town_github.network.repos() if one.name == watched.repo]
    assert [one.title for one in made.issues.values() if one] == ["[PLAN] A tide table"]
    (answer,) = running_town.texts("rowan")
    assert answer.startswith("The bell rings twice at noon.")


async def test_nobody_else_is_served_so(running_town: RunningTown, town_github: TownGitHub) -> None:
    running_town.mind.answer = (mind := Maker()).respond
    home = town_github.make_home(WORKSPACE_ORG="acme", WORKSPACE_TEMPLATE="acme/site")
    running_town.network.post_as(running_town.account("kit"), ASKED_FOR_WORKSPACE)
    async with awake(home) as life:
        await life.look()
    assert mind.offered
    assert not {"workspace_create", "plan_create", "github_create_issue", "create_memo"} & {
        name for one in mind.offered for name in one
    }


def counted(app: ASGIApp, requests: Counter[str]) -> ASGIApp:
    """Return the same application, with its requests counted by method."""

    async def count(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            requests[scope["path"].rpartition(".")[2]] += 1
        await app(scope, receive, send)

    return count


async def test_what_was_read_of_a_post_is_not_asked_for_again(tmp_path: Path) -> None:
    requests: Counter[str] = Counter()
    network, faults, mind = (
        Network(clock=SystemClock()),
        AtprotoFaults(random.Random(7)),
        Mind(replying("Slate sings.")),
    )
    apps = counted(atproto_app(network, faults=faults), requests), model_app(mind, api_key=KEY, faults=ModelFaults())
    async with served(*apps) as (atproto_url, model_url):
        running_town = RunningTown(network, atproto_url, faults, mind, model_url, ModelFaults(), tmp_path)
        home = running_town.make_home("rowan")
        top, _ = network.post_as(running_town.account("sam"), "Which roof is louder, tin or slate?")
        network.post_as(running_town.account("kit"), "What do you say, @rowan.test?", reply_to_uri=top)
        async with awake(home) as life:
            await life.app.lives.bluesky.perceiver.look()
            requests.clear()
            await life.look()
        assert running_town.texts("rowan") == ["Slate sings."]
    assert requests == {
        "listNotifications": 2,  # posts, and reactions
        "getPostThread": 2,  # the post with its parents and replies, and the root with its replies
        "describeRepo": 2,  # the preferences of each of the two people, once a day
        "putRecord": 1,
    }


SPACE = Repo("acme", "www-lil-intdev-tides")
ASKED = (
    "@rowan.test @kit.test please make a workspace for a tide table and write a plan: it reads the tides from a file,"
    " and warns of spring tides."
)
BODY = """\
# [PLAN] Tides

## Goal
The tides can be read.

## Context
Anna: mind   the gap.

## Tasks

### Task 1: Read the tides
**Status:** claimed (by Anna)
**Assignee:** @kit
**Dependencies:** none

**Description:**
From a file.

---

## Verification
- [ ] It works, says Anna
"""
WARN = {"asked": "warns of spring tides", "title": "Warn of spring tides, @kit", "description": "In red."}
DONE = "The list has one more line now, about the moon and its pull."


@dataclass
class Judge:
    """Scripted mind that creates the workspace and the plan, names `missing` tasks, and replies `says`."""

    missing: list[dict[str, str]]
    says: str = DONE
    before: Callable[[], None] | None = None
    judged: int = 0
    steps: list[str] = field(default_factory=list)

    def respond(self, request: ChatRequest) -> Completion:
        offered = {offer.name for offer in request.offers}
        if "plan_missing" in offered:
            self.judged += 1
            if self.before:
                self.before()
            return call("plan_missing", missing=self.missing)
        if "bluesky_reply" not in offered:
            return Completion("Noted.")
        plan = {"title": "Mine", "goal": "Mine.", "tasks": [{"title": "Mine", "description": "Mine."}]}
        for name, given in (("workspace_create", {"name": "tides"}), ("plan_create", plan)):
            if name in offered and name not in self.steps:
                self.steps.append(name)
                return call(name, **given)
        return call("bluesky_reply", text=self.says) if self.says else call("bluesky_like")


@dataclass
class Standing:
    """A workspace with a plan that a peer wrote, and a SOUL that is asked for both."""

    town: RunningTown
    github: TownGitHub
    repo: StoredRepo
    plan: StoredIssue

    async def look(self, mind: Judge, *, told: bool = True, marked: bool = False) -> str:
        """Let the SOUL handle the owner's post, and return the URI of the post.

        `told`: kit linked the plan before; `marked`: the plan has the mark of the post.
        """
        self.town.mind.answer = mind.respond
        home = self.github.make_home(WORKSPACE_ORG="acme", WORKSPACE_TEMPLATE="acme/site", SOUL_PEERS="kit.test")
        root = self.ask(kit_first=None if told else False)
        if marked:
            self.plan.body = f"{BODY}\n{wish_mark(root)}"
        if told:
            self.answers(root)
        async with awake(home) as life, life.sending():
            await self.until_settled(life)
        return root

    def ask(self, *, kit_first: bool | None = None) -> str:
        """Post as the owner until the URI gives kit its turn first, or not, as `kit_first` says; return the URI."""
        network, owner = self.town.network, self.town.account("owner")
        self.town.account("kit")
        while True:
            root, _ = network.post_as(owner, ASKED)
            if kit_first in {None, bool(peers_before("rowan.test", ["kit.test"], root))}:
                return root
            network.delete(owner, "app.bsky.feed.post", root.rpartition("/")[2])

    def answers(self, root: str) -> None:
        """Reply as kit with the link to the plan."""
        said = f"Laid out in small pieces. {self.url}"
        self.town.network.post_as(self.town.account("kit"), said, reply_to_uri=root)

    async def until_settled(self, life: RunningSoul) -> None:
        for _ in range(3):
            await life.look()
            life.passes(3_600)

    @property
    def url(self) -> str:
        return f"{self.github.url}/{SPACE.full_name}/issues/{self.plan.number}"

    @property
    def titles(self) -> list[str]:
        plan = parse_plan(self.plan.body or "", self.plan.title)
        assert plan is not None
        return [task.title for task in plan.tasks]


@pytest.fixture
def standing(running_town: RunningTown, town_github: TownGitHub) -> Standing:
    network = town_github.network
    network.state.members["acme"] = {"rowan", "kit"}
    town_github.repo.is_template = True
    repo, kit = town_github.add_repo(SPACE.name), network.create_account("kit")
    plan = network.open_issue(repo, kit, title="[PLAN] Tides", body=BODY, labels=["plan"])
    return Standing(running_town, town_github, repo, plan)


async def test_what_the_plan_lacks_is_added_once_behind_the_words_of_others(standing: Standing) -> None:
    root = await standing.look(mind := Judge([WARN, WARN]))
    assert standing.titles == ["Read the tides", "Warn of spring tides, @\u200bkit"]
    place = BODY.index("## Verification")
    assert (standing.plan.body or "").startswith(BODY[:place])
    assert (standing.plan.body or "").endswith(BODY[place:])
    (answer,) = standing.town.texts("rowan")
    assert answer.startswith(f"{DONE} {standing.url}")
    assert (mind.judged, standing.town.likers(root)) == (1, [])
    assert len(standing.repo.issues) == 1


async def test_who_finds_that_nothing_is_missing_only_likes(standing: Standing) -> None:
    root = await standing.look(mind := Judge([{**WARN, "asked": "reads the tides from a file"}], ""))
    assert (standing.plan.body, mind.judged) == (BODY, 1)
    assert standing.town.texts("rowan") == []
    assert standing.town.likers(root) == ["rowan.test"]


async def test_a_plan_that_nobody_told_of_is_told_where_nothing_is_missing(standing: Standing) -> None:
    root = await standing.look(Judge([]), told=False, marked=True)
    (answer,) = standing.town.texts("rowan")
    assert standing.url in answer
    assert (standing.plan.body, standing.town.likers(root)) == (f"{BODY}\n{wish_mark(root)}", [])


async def test_the_result_stands_behind_an_announcement(standing: Standing) -> None:
    await standing.look(Judge([WARN], "I will look into it and open a plan."))
    (answer,) = standing.town.texts("rowan")
    assert answer.startswith(f"I will look into it and open a plan. {standing.url}")


async def test_what_people_write_meanwhile_stays_and_is_not_judged_again(standing: Standing) -> None:
    def edit() -> None:
        standing.plan.body = BODY.replace("says Anna", "says Anna twice").replace("claimed (by Anna)", "in progress")

    mind = Judge([WARN], before=edit)
    await standing.look(mind)
    body = standing.plan.body or ""
    assert standing.titles == ["Read the tides", "Warn of spring tides, @\u200bkit"]
    assert body.startswith(BODY[: BODY.index("**Status:**")] + "**Status:** in progress")
    assert body.endswith("- [ ] It works, says Anna twice\n")
    assert mind.judged == 1


async def test_a_task_that_somebody_adds_meanwhile_is_not_added_again(standing: Standing) -> None:
    more = "### Task 2: Warn\n**Status:** pending\n\n**Description:**\nIt warns of spring tides.\n\n---\n\n"

    def edit() -> None:
        standing.plan.body = BODY.replace("## Verification", f"{more}## Verification")

    mind = Judge([WARN], before=edit)
    root = await standing.look(mind)
    assert standing.titles == ["Read the tides", "Warn"]
    assert (mind.judged, standing.town.texts("rowan"), standing.town.likers(root)) == (2, [], ["rowan.test"])


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.slow
async def test_whose_turn_comes_later_waits_for_the_answers_before_it_but_not_for_ever(
    standing: Standing, *, answers: bool
) -> None:
    standing.town.mind.answer = (mind := Judge([WARN])).respond
    home = standing.github.make_home(WORKSPACE_ORG="acme", WORKSPACE_TEMPLATE="acme/site", SOUL_PEERS="kit.test")
    home.env.write_text(home.env.read_text().replace("SOUL_SPEED=1000", "SOUL_SPEED=1"))
    root = standing.ask(kit_first=True)
    async with awake(home) as life, life.sending():
        for _ in range(3):
            await life.look()
            life.passes(60)
        assert mind.steps == ["workspace_create"], "asked once, told that others come first, and not asked again"
        assert standing.town.texts("rowan") == []
        mind.steps.clear()
        if answers:
            standing.answers(root)
        life.passes(60 if answers else 600)
        await life.look()
    assert mind.steps == ["workspace_create", "plan_create"]


async def test_whose_turn_comes_first_waits_for_nobody(standing: Standing) -> None:
    standing.town.mind.answer = (mind := Judge([WARN])).respond
    home = standing.github.make_home(WORKSPACE_ORG="acme", WORKSPACE_TEMPLATE="acme/site", SOUL_PEERS="kit.test")
    standing.ask(kit_first=False)
    async with awake(home) as life, life.sending():
        await life.look()
        life.passes(60)
        await life.look()
    assert mind.steps == ["workspace_create", "plan_create"]


async def test_the_open_plan_of_another_wish_stays_and_this_one_gets_its_own(standing: Standing) -> None:
    body = f"{BODY}\n{wish_mark('at://did:plc:kit/app.bsky.feed.post/1')}"
    standing.plan.body = body
    root = await standing.look(mind := Judge([WARN]), told=False)
    made = standing.repo.issues[2]
    assert made is not None
    assert (made.title, wish_mark(root) in (made.body or ""), mind.judged) == ("[PLAN] Mine", True, 0)
    assert (standing.plan.body, standing.plan.state) == (body, "open")
    (answer,) = standing.town.texts("rowan")
    assert f"{standing.github.url}/{SPACE.full_name}/issues/2" in answer


@pytest.mark.parametrize("change", ["stranger", "unread", pytest.param("closed", marks=pytest.mark.slow)])
async def test_a_plan_of_a_stranger_and_one_that_is_closed_stay_as_they_are(standing: Standing, change: str) -> None:
    if change == "unread":
        standing.github.faults.arm(Fault("unavailable", "GET /repos/*/collaborators", times=400))
    elif change == "closed":
        standing.plan.state, standing.plan.closed_at = "closed", standing.plan.created_at
    else:
        standing.plan.author = standing.github.network.create_account("mallory")
    await standing.look(mind := Judge([WARN]))
    assert (standing.plan.body, mind.judged) == (BODY, 0)
    assert not any('"added": []' in prompt_of(one) for one in standing.town.mind.asked)
