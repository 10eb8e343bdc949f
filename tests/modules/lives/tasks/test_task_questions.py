"""A task that asks a question waits until a person answers, or changes the task."""

from __future__ import annotations

from modules.lives.tasks.handle import PAUSE_S
from modules.lives.tasks.types import Blocked, HeldTask, WorkResult
from modules.services.claims.offers import ASKS, TaskPlace
from modules.services.day.gathering import DayReader
from modules.services.plans.events import build_task_event_marker, count_task_failures
from modules.services.plans.types import Plan
from soul.commands.tasks import task_lines, tasks_of
from tests.adapters.results import ok
from tests.modules.lives.tasks.site import PLAN, SITE, Site, Work, site_with_plan
from tests.running_town import RunningTown
from tests.town_github import TownGitHub

QUESTION = "Which unit do the beds have, @owner? <!-- hidden --> The readings say 3 and 300."
ONE_TASK = Plan("One", goal="g", tasks=PLAN.tasks[:1])


class Asking:
    """Asks, and keeps what it was shown of the thread each time."""

    def __init__(self) -> None:
        self.shown: list[list[tuple[str, str]]] = []
        self.work = Work(self._ask)

    async def _ask(self, task: HeldTask) -> WorkResult:
        self.shown.append([(one.author, one.body.partition("<!-- task-event")[0].strip()) for one in task.talk])
        return Blocked(QUESTION)


async def look_later(site: Site, work: Work) -> None:
    """A cycle once the row is due again."""
    site.clock.ahead += PAUSE_S + 1
    await site.cycle(work)


def say(town_github: TownGitHub, login: str, body: str) -> None:
    """A comment on the plan by somebody else."""
    network = town_github.network
    repo = network.state.repos[SITE.full_name.lower()]
    author = network.find(login) or network.create_account(login)
    network.write_comment(repo, network.issue(repo, 1), author, body)


async def test_a_task_that_asks_is_claimed_again_once_a_person_who_counts_answered(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, ONE_TASK) as site:
        network, asking = town_github.network, Asking()
        network.create_account("kit")
        network.state.repos[SITE.full_name.lower()].collaborators.add("kit")
        await site.cycle(asking.work)
        asked = (await site.comments())[1]
        assert "Which unit do the beds have" in asked
        assert "@owner" not in asked
        assert "hidden -->" not in asked.partition("<!-- task-event")[0].replace("<!\u200b-- hidden -->", "")
        assert await site.task(1) == ("blocked", None)
        assert count_task_failures(await site.comments(), 1) == 0
        assert (await site.row(1)).outcome == ASKS
        say(town_github, "mallory", "Metres.")
        say(town_github, "kit", f"Task 2 is done. {build_task_event_marker(2, 'completed', 1)}")
        await look_later(site, asking.work)
        assert asking.work.asked == [1]
        (line,) = await tasks_of(site.services.database, site.services.home, site.clock, "https://github.com")
        assert line.state == ASKS
        assert "Which unit do the beds have" in task_lines([line], "UTC")[0]
        assert DayReader(site.services.settings, site.services.home, site.clock).read().waits.tasks == 1
        say(town_github, "kit", "Centimetres.")
        await look_later(site, asking.work)
        assert asking.work.asked == [1, 1]
        assert [author for author, _ in asking.shown[1]] == ["rowan", "kit"]
        assert asking.shown[1][1] == ("kit", "Centimetres.")
        await look_later(site, asking.work)
        assert asking.work.asked == [1, 1]


async def test_a_peer_waits_for_the_answer_too_and_another_text_of_the_task_or_the_owner_lets_it_go_on(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, ONE_TASK) as site:
        github, asking = site.services.github, Asking()
        await site.cycle(asking.work)
        await site.services.work.settle(await site.row(1), "done", "of another soul")
        await look_later(site, asking.work)
        assert asking.work.asked == [1]
        rooms = site.rooms(asking.work)
        await rooms.life.orders.take(TaskPlace(SITE, 1, 1))
        await site.run(rooms)
        assert asking.work.asked == [1, 1]
        await look_later(site, asking.work)
        assert asking.work.asked == [1, 1]
        body = ok(await github.get_issue(SITE, 1)).body
        ok(await github.update_issue(SITE, 1, body=body.replace("Task 1: Count", "Task 1: Count in cm")))
        await look_later(site, asking.work)
        assert asking.work.asked == [1, 1, 1]


def test_a_block_that_asks_nothing_counts_as_a_failure_as_peers_tell_it() -> None:
    plain = build_task_event_marker(1, "blocked", 1)
    assert count_task_failures([plain, build_task_event_marker(1, "blocked", 2, "0123456789abcdef")], 1) == 1
