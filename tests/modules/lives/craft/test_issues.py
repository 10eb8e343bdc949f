"""Proves that a friction is reported in the maker's repository: in codes, once among all SOULs, each time approved."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from modules.lives.craft.issues import IssueMaker, told_outside
from modules.services.craft.proposals import Proposal
from modules.services.outbox.types import Intent
from soul.commands.drafts import run_drafts
from soul.commands.options import DraftAction
from soul.dashboard.facts import PageFacts
from tests.modules.lives.craft.test_proposals import Decider, Life, PageMaker, home_of
from tests.modules.services.craft.test_friction import HOSTILE, turn
from tests.running_town import awake
from tests.scenarios.test_scenario_reflection import DAY_S, HOUR_S, at_noon
from tests.town_github import TownGitHub
from town.github.values import StoredRepo


@dataclass
class Reporting:
    """A SOUL that meets the same friction three times and reports it."""

    life: Life
    repo: StoredRepo

    async def proposes(self) -> None:
        await self.life.meets_three_times()
        await self.life.works()

    async def drafts(self) -> list[Intent]:
        return await self.life.soul.app.services.outbox.held()

    async def approves(self) -> None:
        (draft,) = await self.drafts()
        await self.life.soul.app.services.outbox.approve(draft.id)
        await self.life.soul.send()

    async def looks(self) -> list[tuple[str, str]]:
        await self.life.works(7 * HOUR_S)
        return [(one.state, one.made) for one in await self.life.craft.proposals.all()]


def maker_repo(github: TownGitHub) -> StoredRepo:
    """Create the repository of the program's makers, in which no SOUL may write."""
    return github.network.create_repo(github.repo.owner, "program")


@asynccontextmanager
async def reporting(
    github: TownGitHub,
    name: str = "rowan",
    repo: StoredRepo | None = None,
    mind: Decider | None = None,
    **settings: str,
) -> AsyncIterator[Reporting]:
    repo = repo or maker_repo(github)
    account = github.network.find(name) or github.network.create_account(name)
    home = home_of(
        github.town,
        name,
        GITHUB_API_URL=github.url,
        AGENT_GITHUB_USERNAME=name,
        AGENT_GITHUB_TOKEN=account.token,
        SOUL_ALLOW_PRIVATE_NET="on",
        **({"SOUL_MAKER_REPOSITORY": repo.full_name, "IMPROVEMENT_BURN_IN_MS": "0"} | settings),
    )
    github.town.mind.answer = mind = mind or Decider(rung="issue")
    async with awake(home, clock=at_noon()) as soul:
        life = Life(soul, mind, PageMaker())
        life.handler.makers = life.own_makers
        yield Reporting(life, repo)


def issues_of(repo: StoredRepo) -> list[str]:
    return [one.body or "" for one in repo.issues.values() if one]


@pytest.mark.parametrize("approval", ["off", "drafts"])
async def test_an_issue_of_codes_is_opened_once_the_owner_approved_it(town_github: TownGitHub, approval: str) -> None:
    async with reporting(town_github, SOUL_APPROVAL=approval) as soul:
        await soul.proposes()
        (draft,) = await soul.drafts()
        assert issues_of(soul.repo) == []
        assert await soul.looks() == [("waiting", "")]
        await soul.approves()
        (body,) = issues_of(soul.repo)
        assert "`expression`: `bluesky_post Wrong Fields` (tools)" in body
        assert "3 times, on 2 days" in body
        assert HOSTILE not in f"{body}{draft.body.preview}"
        ((state, made),) = await soul.looks()
        assert (state, made.endswith("/acme/program/issues/1")) == ("taken", True)


async def test_its_draft_shows_what_it_rests_on_and_each_why_of_the_page_is_told(
    town_github: TownGitHub, capsys: pytest.CaptureFixture[str]
) -> None:
    async with reporting(town_github) as soul:
        await soul.proposes()
        (draft,) = await soul.drafts()
        running = soul.life.soul
        services = running.app.services
        await running.app.status.write("running")
        rests_on = [
            "To mend: tools: bluesky_post Wrong Fields, in own posts",
            "It occurred 3 times within a week, on 2 days",
            "The SOUL's reason: A page would end it.",
        ]
        await asyncio.to_thread(run_drafts, services.home.root, DraftAction.SHOW, [draft.id], as_json=False)
        shown = capsys.readouterr().out
        assert [line for line in rests_on if f"  {line}\n" not in shown] == []
        assert shown.count("bluesky_post") >= 4, "a line for each time"
        facts = PageFacts(services.home, services.settings, running.clock)
        now = await asyncio.to_thread(facts.now)
        assert set(rests_on) < set(now["drafts"][0]["rests_on"])
        offered = {one["about"] for one in (*now["drafts"], *now["decisions"])} - {""}
        assert offered >= {draft.id, "improvement:friction:1"}
        told = [await asyncio.to_thread(facts.story, one) for one in offered]
        for story in told:
            assert any("A page would end it." in str(step) for step in story["steps"]), story


async def test_the_owners_no_is_kept(town_github: TownGitHub) -> None:
    async with reporting(town_github) as soul:
        await soul.proposes()
        (draft,) = await soul.drafts()
        await soul.life.soul.app.services.outbox.reject(draft.id, reason="not theirs")
        assert await soul.looks() == [("left", "")]
        assert "not theirs" in (await soul.life.friction()).reason
        assert (await soul.drafts(), issues_of(soul.repo)) == ([], [])


async def test_a_draft_that_nobody_decided_is_proposed_anew_for_two_weeks(town_github: TownGitHub) -> None:
    async with reporting(town_github) as soul:
        await soul.proposes()
        for _ in range(3):
            await soul.life.works(DAY_S + HOUR_S)
            await soul.life.soul.app.services.outbox.deliver_due()
            await soul.life.works(7 * HOUR_S)
            assert len(await soul.drafts()) == 1
        await soul.life.works(15 * DAY_S)
        assert [one.state for one in await soul.life.craft.proposals.all()] == ["left"]
        assert issues_of(soul.repo) == []


async def test_two_souls_open_one_issue_and_the_other_says_once_that_it_meets_it_too(town_github: TownGitHub) -> None:
    async with AsyncExitStack() as stack:
        repo = maker_repo(town_github)
        one = await stack.enter_async_context(reporting(town_github, "rowan", repo))
        await one.proposes()
        other = await stack.enter_async_context(reporting(town_github, "hazel", repo))
        await other.proposes()
        await one.approves()
        await other.approves()
        assert len(issues_of(repo)) == 1, "it was looked for again as it left"
        assert (await other.looks())[0][0] == "waiting"
        await other.approves()
        assert len(issues_of(repo)) == 1
        (comment,) = [said.body for issue in repo.issues.values() if issue for said in issue.comments]
        assert "3 times within a week, on 2 days" in comment
        assert (await other.looks())[0][0] == "taken"
        assert (await one.looks())[0][0] == "taken"
        await other.life.works(2 * DAY_S)
        assert await other.drafts() == []


async def test_a_week_is_between_two_reports(town_github: TownGitHub) -> None:
    async with reporting(town_github) as soul:
        await soul.proposes()
        await soul.approves()
        await soul.life.works(DAY_S)
        await soul.life.meets(*(turn("bluesky_like") for _ in range(3)))
        await soul.life.works(DAY_S)
        await soul.life.meets(*(turn("bluesky_like") for _ in range(3)))
        await soul.life.works(DAY_S)
        assert (await soul.looks())[0] == ("making", "")
        assert await soul.drafts() == []
        await soul.life.works(4 * DAY_S)
        assert len(await soul.drafts()) == 1


async def test_each_step_repeated_after_a_kill_acts_once(town_github: TownGitHub) -> None:
    async with reporting(town_github) as soul:
        await soul.life.meets_three_times()
        await soul.life.craft.friction.count()
        (maker,) = (one for one in soul.life.handler.makers if isinstance(one, IssueMaker))
        friction = await soul.life.friction()
        proposal = await soul.life.craft.proposals.begin(friction.id, "", {"occurrences": 3, "days": 2})
        assert proposal
        for _ in range(3):
            assert (await maker.advance(proposal)).state == "waiting"
        await soul.approves()
        for _ in range(3):
            assert (await maker.advance(proposal)).state == "taken"
        assert len(issues_of(soul.repo)) == 1
        home = soul.life.soul.app.services.home
    async with awake(home, clock=soul.life.soul.clock) as again:
        (maker,) = (one for one in _makers(again.app.lives.growth.handlers) if isinstance(one, IssueMaker))
        assert (await maker.advance(proposal)).state == "taken"
        await again.send()
        assert len(issues_of(soul.repo)) == 1


def _makers(handlers: object) -> list[object]:
    return [maker for one in handlers for maker in getattr(one, "makers", ())]  # type: ignore[attr-defined]


async def test_what_does_not_look_like_a_code_is_never_told(town_github: TownGitHub) -> None:
    async with reporting(town_github) as soul:
        await soul.life.meets_three_times()
        found = await soul.life.friction()
    proposal = Proposal(1, "", found.id, "", "issue", {}, "making")
    assert told_outside(found, proposal)
    for code in ("asked @bea.test", "did:plc:x", "see https://evil.example", "a\nb", "<!-- x -->", "é", "x" * 81):
        assert told_outside(replace(found, code=code), proposal) is None
        assert told_outside(replace(found, loop=code), proposal) is None
    assert "secret words" not in str(told_outside(replace(found, words="secret words"), proposal))


async def test_without_a_repository_or_social_only_it_is_no_choice(town_github: TownGitHub) -> None:
    async with reporting(town_github, SOUL_MAKER_REPOSITORY="") as soul:
        await soul.proposes()
        assert "as `rung`: skill." in soul.life.mind.decisions[0]
        assert await soul.drafts() == []
        home = soul.life.soul.app.services.home
    async with awake(home, social_only=True) as alone:
        assert [type(one).__name__ for one in _makers(alone.app.lives.growth.handlers)] == ["SkillMaker"]
