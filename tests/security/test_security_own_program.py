"""Proves that nothing of people and no secret reaches an issue about the program, its coder, or the pull request."""

from dataclasses import replace

import pytest

from modules.runtime.journal.types import Entry
from tests.adapters.results import ok
from tests.modules.lives.craft.test_issues import issues_of, reporting
from tests.modules.lives.craft.test_own_program import FIX, PLACE, changing
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.modules.services.craft.test_friction import turn
from tests.running_town import KEY, call
from tests.scenarios.test_scenario_reflection import DAY_S
from tests.town.github_place import needs_git
from tests.town_github import TownGitHub

pytestmark = [needs_git, needs_sandbox]

PEOPLE = ("Zoltan Quark", "did:plc:zoltan", "@zoltan.test", "zoltan@mail.invalid")
WORDS = f"I met {', '.join(PEOPLE)}; my key is {KEY}"


def told_of_people() -> list[Entry]:
    """Return entries of one friction whose words, input and errors name people and hold a secret."""
    entry = turn()
    calls = [one | {"input": {"text": WORDS}, "error": f"Error: {WORDS}"} for one in entry.data["calls"]]
    return [replace(entry, data={**entry.data, "calls": calls}, reason=WORDS) for _ in range(2)]


def assert_clean(*texts: object) -> None:
    said = "\n".join(map(str, texts))
    assert "bluesky_post Wrong Fields" in said
    assert not [one for one in (*PEOPLE, "zoltan", KEY) if one.lower() in said.lower()]


async def test_an_issue_names_nobody_and_holds_no_secret(town_github: TownGitHub) -> None:
    async with reporting(town_github) as soul:
        await soul.life.meets(*told_of_people())
        soul.life.soul.passes(DAY_S)
        await soul.life.meets(*told_of_people())
        await soul.life.works()
        (draft,) = await soul.drafts()
        await soul.approves()
        titles = [one.title for one in soul.repo.issues.values() if one]
        assert_clean(draft.body.stored(), *issues_of(soul.repo), *titles)


@pytest.mark.slow
@pytest.mark.parametrize(("summary", "is_offered"), [("Fixed.", True), (f"Fixed with {KEY}.", False)])
async def test_neither_the_one_who_codes_nor_the_pull_request_hears_of_people_or_secrets(
    town_github: TownGitHub, summary: str, *, is_offered: bool
) -> None:
    async with changing(town_github, *FIX[:-1], call("finish", summary=summary)) as place:
        life = place.soul.life
        await life.meets(*told_of_people())
        life.soul.passes(DAY_S)
        await life.meets(*told_of_people())
        await life.works()
        (draft,) = await place.soul.drafts()
        await place.soul.approves()
        await place.soul.looks()
        await place.works()
        pulls = await place.pulls()
        assert bool(pulls) == is_offered
        github = life.soul.app.services.github
        issues = [f"{one.title}\n{one.body}" for one in ok(await github.list_issues(PLACE, state="all"))]
        assert_clean(draft.body.stored(), *issues, *pulls, place.mind.coded[0])
