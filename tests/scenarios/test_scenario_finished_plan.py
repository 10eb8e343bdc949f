"""A finished plan with merged work of a SOUL is announced on its profile once, with a picture from that work."""

import io
from base64 import b64encode
from dataclasses import dataclass, field

import httpx
import pytest
from PIL import Image

from adapters.github.types import Repo
from common.facts import QuestionFacts
from modules.runtime.home import Home
from modules.services.own_feed.announcement import ANNOUNCEMENT
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import Plan, Task
from modules.services.work.types import NewWork
from tests.adapters.results import ok
from tests.running_town import RunningSoul, RunningTown, awake, prompt_of
from tests.scenarios.test_scenario_reflection import at_noon
from tests.town.github_place import needs_git
from tests.town_github import TownGitHub
from town.model.types import ChatRequest, Completion

pytestmark = [needs_git, pytest.mark.slow]
SITE = Repo("acme", "www-lil-intdev-site")
HOUR_S = 3_600.0
WORDS = "A counter that counts sheep, with a picture of it."


@dataclass
class Editor:
    """A mind that finds all work worth a post, or none; `asked` holds the requests for this decision."""

    decision: str = "yes"
    asked: list[ChatRequest] = field(default_factory=list)

    def answer(self, request: ChatRequest) -> Completion:
        about = request.facts.about
        question = about.question if isinstance(about, QuestionFacts) else ""
        if question == "announcement-decision":
            self.asked.append(request)
            return Completion(self.decision)
        return Completion(WORDS if question == "announcement-post" else "[]")


@dataclass
class Builder:
    """A SOUL with a workspace in which it offers work."""

    github: TownGitHub
    soul: RunningSoul
    repo: Repo = SITE

    async def offers(self, plan: int, name: str, *, picture: bool = False, away: str = "") -> int:
        """Open a pull request of the SOUL for a plan, and let its merge loop see it; return its number.

        It adds a file, and removes the file `away` from the repository.
        """
        client = self.soul.app.services.github
        main = ok(await client.refs.get(self.repo, "main")).sha
        ok(await client.refs.create(self.repo, name, main))
        data = io.BytesIO()
        Image.new("RGB", (40, 30), "green").save(data, "PNG")
        path, content = (f"{name}.png", data.getvalue()) if picture else (f"{name}.md", b"It counts.\n")
        written = {"message": "m", "content": b64encode(content).decode(), "branch": name}
        headers = {"Authorization": f"Bearer {self.github.token}"}
        url = f"{self.github.url}/repos/{self.repo.full_name}/contents/{path}"
        async with httpx.AsyncClient() as web:
            (await web.put(url, json=written, headers=headers)).raise_for_status()
            if away:
                at = f"{url.rpartition('/')[0]}/{away}"
                sha = (await web.get(at, headers=headers)).json()["sha"]
                gone = {"message": "m", "sha": sha, "branch": name}
                (await web.request("DELETE", at, json=gone, headers=headers)).raise_for_status()
        body = f"Part of #{plan}"
        opened = ok(await client.pulls.create(self.repo, title=f"Count {name}", body=body, head=name, base="main"))
        await self.soul.app.scheduler.run_guarded("merges")
        return opened.number

    async def has_merged(self, plan: int, name: str, *, picture: bool = False, away: str = "") -> None:
        """Open and merge such a pull request, and let the merge loop see it."""
        number = await self.offers(plan, name, picture=picture, away=away)
        ok(await self.soul.app.services.github.pulls.merge(self.repo, number))
        self.soul.passes(300)
        await self.soul.app.scheduler.run_guarded("merges")

    async def plans(self, title: str) -> int:
        """Open a plan whose tasks are all completed; return its number."""
        plan = Plan(title, goal="It counts.", tasks=(Task(1, "Count", status="completed"),))
        body = generate_plan_markdown(plan)
        client = self.soul.app.services.github
        return ok(await client.create_issue(self.repo, f"[PLAN] {title}", body, labels=("plan",))).number

    async def closes(self, plan: int) -> None:
        ok(await self.soul.app.services.github.update_issue(self.repo, plan, state="closed"))


def home_of(github: TownGitHub, **more: str) -> Home:
    return github.make_home(AI_GATEWAY_FACTS="on", SOUL_SPEED="1", SOUL_TIMEZONE="UTC", **more)


async def _begins(github: TownGitHub, soul: RunningSoul) -> Builder:
    github.add_repo(SITE.name)
    services = soul.app.services
    services.workspaces.watch(SITE)
    ok(await services.github.contents.write(SITE, "README.md", "A counter\n", message="Begin"))
    return Builder(github, soul)


async def _announces(soul: RunningSoul, hours: float = 4) -> list[str]:
    """Run the loop for work once, hours later; return the outcome of each announcement, oldest first."""
    soul.passes(hours * HOUR_S)
    await soul.app.scheduler.run_guarded("work")
    await soul.send()
    rows = await soul.app.services.work.newest(ANNOUNCEMENT, 10)
    return [one.outcome for one in reversed(rows)]


async def test_a_finished_plan_is_told_once_with_a_picture_and_a_second_one_a_day_later(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    town, editor, clock = running_town, Editor(), at_noon()
    town.mind.answer = editor.answer
    home = home_of(town_github)
    async with awake(home, clock=clock) as soul:
        builder = await _begins(town_github, soul)
        first, second = await builder.plans("A counter of sheep"), await builder.plans("A counter of clouds")
        await builder.has_merged(first, "sheep", picture=True)
        await builder.has_merged(first, "lambs")
        await builder.has_merged(second, "clouds")
        assert await _announces(soul) == ["open", "open"]
        assert editor.asked == []
        await builder.closes(first)
        await builder.closes(second)
        assert await _announces(soul, 3) == ["posted", "not-now"]
        (post,) = town.network.posts(100)
        url = f"{town_github.url}/{SITE.full_name}/issues/{first}"
        assert post.text == f"{WORDS} {url}"
        (record,) = town.network.records(town.account("rowan"), "app.bsky.feed.post")
        (picture,) = record.value["embed"]["images"]
        assert "sheep.png" in picture["alt"]
        assert town.network.blob(town.account("rowan"), picture["image"]["ref"]["$link"])
        shown = prompt_of(editor.asked[0])
        assert "Count sheep" in shown
        assert "Count lambs" in shown
        assert "Count clouds" not in shown
    async with awake(home, clock=clock) as soul:
        row = await soul.app.services.work.get(ANNOUNCEMENT, url)
        assert row
        assert await soul.app.services.work.offer(NewWork(row.kind, row.key, row.payload)), (
            "killed before it was settled"
        )
        assert await _announces(soul, 1) == ["done-before", "not-now"]
        assert await _announces(soul, 24) == ["done-before", "posted"]
        assert len(town.network.posts(100)) == 2
        assert await _announces(soul, 24) == ["done-before", "posted"]
    assert len(town.network.posts(100)) == len(editor.asked) == 2


async def test_what_is_private_not_worth_it_or_not_its_own_is_never_told(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    town, editor = running_town, Editor("no")
    town.mind.answer = editor.answer
    async with awake(home_of(town_github), clock=at_noon()) as soul:
        builder = await _begins(town_github, soul)
        plan = await builder.plans("A counter of sheep")
        await builder.has_merged(plan, "sheep")
        unmerged = await builder.plans("A counter of clouds")
        number = await builder.offers(unmerged, "clouds")
        ok(await soul.app.services.github.update_issue(SITE, number, state="closed"))
        for one in (plan, unmerged):
            await builder.closes(one)
        await soul.app.scheduler.run_guarded("merges")
        assert await _announces(soul) == ["not-worth"]
        assert await _announces(soul, 24) == ["not-worth"]
        editor.decision, hidden = "yes", await builder.plans("A counter of secrets")
        await builder.has_merged(hidden, "secrets")
        await builder.closes(hidden)
        next(one for one in town_github.network.repos() if one.name == SITE.name).private = True
        assert await _announces(soul, 24) == ["not-worth", "not-public"]
    assert len(editor.asked) == 1
    assert town.network.posts(100) == []


@pytest.mark.parametrize("is_of_plan", [True, False], ids=["of the same plan", "of an earlier one"])
async def test_a_picture_that_the_work_took_away_is_not_shown(
    running_town: RunningTown, town_github: TownGitHub, *, is_of_plan: bool
) -> None:
    town = running_town
    town.mind.answer = Editor().answer
    async with awake(home_of(town_github), clock=at_noon()) as soul:
        builder = await _begins(town_github, soul)
        plan = await builder.plans("A scan is taken away")
        await builder.has_merged(plan if is_of_plan else 0, "scan", picture=True)
        await builder.has_merged(plan, "away", away="scan.png")
        await builder.closes(plan)
        assert await _announces(soul) == ["posted"]
    (record,) = town.network.records(town.account("rowan"), "app.bsky.feed.post")
    assert "embed" not in record.value


async def test_it_waits_for_the_morning_and_for_the_owner(running_town: RunningTown, town_github: TownGitHub) -> None:
    town, editor, clock = running_town, Editor(), at_noon()
    town.mind.answer = editor.answer
    async with awake(home_of(town_github, SOUL_APPROVAL="drafts"), clock=clock) as soul:
        builder = await _begins(town_github, soul)
        plan = await builder.plans("A counter of sheep")
        await builder.has_merged(plan, "sheep")
        await builder.closes(plan)
        assert await _announces(soul, 12) == ["not-now"]
        assert await _announces(soul, 8) == ["posted"]
        assert [one.kind for one in await soul.app.services.outbox.held() if one.kind != "merge"] == ["post"]
    assert town.network.posts(100) == []
