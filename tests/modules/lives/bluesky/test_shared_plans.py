"""Several SOULs and one plan: who comes later adds what it lacks, once, or likes; people's words in it stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from adapters.github.types import Repo
from modules.runtime.scheduler.policy import peers_before
from modules.services.plans.events import wish_mark
from modules.services.plans.plan_text import parse_plan
from tests.running_town import RunningSoul, RunningTown, awake, call
from tests.town_github import TownGitHub
from town.github.values import StoredIssue, StoredRepo
from town.model.types import ChatRequest, Completion

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
    """A mind that asks for the workspace and the plan, names `missing`, and answers `says`."""

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
        for name in ("workspace_create", "plan_create"):
            if name in offered and name not in self.steps:
                self.steps.append(name)
                tasks = [{"title": "Mine", "description": "Mine."}]
                return call(name, name="tides", title="Mine", goal="Mine.", tasks=tasks)
        return call("bluesky_reply", text=self.says) if self.says else call("bluesky_like")


@dataclass
class Standing:
    """A workspace with a plan in it that a peer wrote, and a SOUL that is asked for both."""

    town: RunningTown
    github: TownGitHub
    repo: StoredRepo
    plan: StoredIssue

    async def look(self, mind: Judge, *, told: bool = True, marked: bool = False) -> str:
        """Let the SOUL handle the owner's post; returns the uri of that.

        `told`: kit told the link before; `marked`: the plan has the mark of the post.
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
        """The owner's post; its uri decides whether `kit_first`, so it is posted until that is so."""
        network, owner = self.town.network, self.town.account("owner")
        self.town.account("kit")
        while True:
            root, _ = network.post_as(owner, ASKED)
            if kit_first in {None, bool(peers_before("rowan.test", ["kit.test"], root))}:
                return root
            network.delete(owner, "app.bsky.feed.post", root.rpartition("/")[2])

    def answers(self, root: str) -> None:
        """Kit tells where the plan is."""
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
    assert answer.startswith(f"{DONE} More in the plan now: warns of spring tides {standing.url}")
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
    assert f". More in the plan now: warns of spring tides {standing.url}" in answer


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


@pytest.mark.parametrize("change", ["stranger", pytest.param("closed", marks=pytest.mark.slow)])
async def test_a_plan_of_a_stranger_and_one_that_is_closed_stay_as_they_are(standing: Standing, change: str) -> None:
    if change == "closed":
        standing.plan.state, standing.plan.closed_at = "closed", standing.plan.created_at
    else:
        standing.plan.author = standing.github.network.create_account("mallory")
    await standing.look(mind := Judge([WARN]))
    assert (standing.plan.body, mind.judged) == (BODY, 0)
