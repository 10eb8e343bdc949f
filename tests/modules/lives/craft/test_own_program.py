"""Proves that a friction becomes a pull request against the SOUL's own program: in bounds, tested, left to a person."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from adapters.github.types import PullRequest, Repo
from modules.lives.craft.issues import ProgramMaker, kind_mark
from modules.lives.craft.perceive import improve
from modules.services.craft.bounds import OUT_OF_BOUNDS, out_of_bounds
from modules.services.outbox.github_bodies import (
    ContentsBody,
    GitHubBody,
    MergeBody,
    PushBody,
    ReviewBody,
    ReviewRequestBody,
)
from modules.services.outbox.types import ProposedAction
from modules.services.owner import NOTICE
from soul.commands.reflect import run_friction
from tests.adapters.results import ok
from tests.loopback import github_at
from tests.modules.lives.craft.test_issues import Reporting, reporting
from tests.modules.lives.craft.test_proposals import Decider
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.modules.services.craft.test_friction import HOSTILE, turn
from tests.project import ROOT
from tests.running_town import call
from tests.scenarios.test_scenario_reflection import DAY_S
from tests.town.github_place import needs_git
from tests.town_github import TownGitHub
from town.model.types import ChatRequest, Completion

pytestmark = [needs_git, needs_sandbox]

PLACE = Repo("acme", "program")
FAULT = "def fields():\n    return {'text'}\n"
TEST = """import unittest

from common import posting


class PostingTest(unittest.TestCase):
    def test_text(self):
        self.assertIn("text", posting.fields())
"""
MORE = """
    def test_alt(self):
        self.assertIn("alt", posting.fields())
"""
FIELDS, CHECK = "common/posting.py", "tests/posting_check.py"
MAKEFILE = f"check:\n\tpython3 -m py_compile {FIELDS}\n\ntest:\n\tpython3 -m unittest -q {CHECK}\n"
FIX = [
    call("write_file", path=FIELDS, content=FAULT.replace("'text'", "'text', 'alt'")),
    call("write_file", path=CHECK, content=f"{TEST}{MORE}"),
    call("finish", summary="The description of a picture is a field, too."),
]


@dataclass
class Coder(Decider):
    """Scripted mind that chooses the rung `program`, and then takes the given coding steps."""

    rung: str = "program"
    steps: Sequence[Completion] = tuple(FIX)
    coded: list[ChatRequest] = field(default_factory=list)

    def __call__(self, request: ChatRequest) -> Completion:
        if "write_file" in {offer.name for offer in request.offers}:
            self.coded.append(request)
            return self.steps[len(self.coded) - 1]
        return super().__call__(request)


@dataclass
class Changing:
    """A SOUL and a repository of its program, in which a fault is planted."""

    soul: Reporting
    mind: Coder
    url: str

    async def works(self) -> None:
        """Run the waiting tasks while accepted intents are sent."""
        life = self.soul.life.soul
        async with life.sending():
            await life.app.scheduler.run_guarded("tasks")

    async def pulls(self) -> Sequence[PullRequest]:
        return ok(await self.soul.life.soul.app.services.github.pulls.list(PLACE, state="all"))

    async def branches(self) -> list[str]:
        return [one.name for one in ok(await self.soul.life.soul.app.services.github.refs.branches(PLACE))]

    async def ended(self) -> tuple[str, str]:
        """Return the state of the SOUL's issue, and the first line of its last comment."""
        await self.soul.life.soul.send()
        github = self.soul.life.soul.app.services.github
        last = ok(await github.list_comments(PLACE, 1))[-1].body.partition("\n")[0]
        return ok(await github.get_issue(PLACE, 1)).state, last

    async def asks_for_changes(self, number: int) -> None:
        """Request changes on the pull request as a person who may push."""
        kit = github_at(self.url, "kit", self.soul.life.soul.clock)
        ok(await kit.pulls.create_review(PLACE, number, event="REQUEST_CHANGES", body="Another name."))
        await kit.aclose()

    async def told(self) -> str:
        return str(await self.soul.life.soul.app.services.work.newest(NOTICE, 5))

    async def advised(self, body: GitHubBody) -> str:
        action = ProposedAction(body, part="x", by_owner=True)
        return (await self.soul.life.soul.app.services.outbox.advise(action)).code


@asynccontextmanager
async def changing(
    github: TownGitHub, *steps: Completion, makefile: str = MAKEFILE, **settings: str
) -> AsyncIterator[Changing]:
    repo = github.add_repo(PLACE.name)
    github.network.create_account("kit", token="t-kit")
    repo.collaborators.add("kit")
    mind = Coder(steps=steps or FIX)
    more = {"SOUL_PROGRAM_REPOSITORY": PLACE.full_name, "SOUL_MERGE_ALONE": "on"} | settings
    async with reporting(github, "rowan", repo, mind, SOUL_MAKER_REPOSITORY="", **more) as soul:
        contents = soul.life.soul.app.services.github.contents
        for path, text in {FIELDS: FAULT, CHECK: TEST, "Makefile": makefile}.items():
            ok(await contents.write(PLACE, path, text, message="Begin"))
        yield Changing(soul, mind, github.url)


async def test_a_planted_fault_becomes_a_tested_pull_request_that_waits_for_a_person(town_github: TownGitHub) -> None:
    async with changing(town_github) as place:
        await place.soul.proposes()
        (draft,) = await place.soul.drafts()
        assert "begins the work on its own program: at most 1,500,000 tokens and 90 minutes" in (draft.error or "")
        await place.works()
        assert place.mind.coded == [], "nothing is paid for before the owner's yes"
        await place.soul.approves()
        assert (await place.soul.looks())[0][0] == "making"
        await place.works()
        (pull,) = await place.pulls()
        assert (pull.title, pull.draft, pull.merged) == (
            "Mend bluesky_post Wrong Fields in expression",
            False,
            False,
        )
        assert "make check && make test" in pull.body
        assert "in `expression`, which a SOUL met 3 times within a week, on 2 days." in pull.body
        assert list(pull.requested_reviewers) == []
        assert pull.html_url in await place.told()
        seen = place.mind.coded[0].messages[-1].text
        assert "bluesky_post Wrong Fields" in seen
        assert "diagnosis, which may be wrong: A page would end it." in seen
        assert "bluesky_post, langs=text, text=text: Wrong Fields" in seen, (
            "it is told what the tool was given, and what that answered"
        )
        assert "Goal: an end of `bluesky_post Wrong Fields`" in seen
        assert HOSTILE not in f"{pull.body}{draft.body.preview}"
        assert (draft.error or "").endswith("and 90 minutes; its reason: A page would end it.")
        assert (await place.soul.looks())[0] == ("waiting", pull.html_url)
        await place.works()
        assert len(await place.pulls()) == 1
        assert (await place.pulls())[0].merged_at is None
        github = place.soul.life.soul.app.services.github
        await place.asks_for_changes(pull.number)
        assert (await place.soul.looks())[0] == ("waiting", pull.html_url)
        assert f"@kit asks for changes, which only people make: {pull.html_url}" in await place.told()
        ok(await github.pulls.merge(PLACE, pull.number))
        assert (await place.soul.looks())[0] == ("taken", pull.html_url)
        assert await place.ended() == ("closed", "This try is over: it was merged: `soul upgrade` takes it over.")


@pytest.mark.parametrize(
    "path", ["modules/services/outbox/approval.py", pytest.param("Makefile", marks=pytest.mark.slow)]
)
async def test_a_change_out_of_bounds_is_refused_told_and_never_pushed(town_github: TownGitHub, path: str) -> None:
    bad = call("run", command=f"mkdir -p modules/services/outbox && echo 'test:' | tee {path} > tox.ini")
    insists = [call("finish", summary="It has to be changed.")] * 2
    async with changing(town_github, bad, *FIX, *insists) as place:
        await place.soul.proposes()
        await place.soul.approves()
        await place.soul.looks()
        await place.works()
        assert (await place.pulls(), await place.branches()) == ((), ["main"])
        assert await place.soul.life.soul.app.services.outbox.of_kind("push", 5) == []
        told = await place.told()
        assert "nothing was pushed" in told
        assert f"{path}, tox.ini may be changed by people alone." in told
        assert (await place.soul.looks())[0][0] == "failed"
        assert (await place.soul.life.friction()).reason == "failed: code stuck"


@pytest.mark.slow
async def test_a_change_whose_gate_is_red_is_not_offered(town_github: TownGitHub) -> None:
    red = call("write_file", path=FIELDS, content="def fields():\n    return set()\n")
    ends = call("blocked", reason="The cause lies elsewhere.")
    async with changing(town_github, red, call("finish", summary="Done."), ends) as place:
        await place.soul.proposes()
        await place.soul.approves()
        await place.soul.looks()
        await place.works()
        assert "FAIL: test_text" in place.mind.coded[-1].messages[-1].text
        assert await place.branches() == ["main"]
        assert (await place.soul.looks())[0][0] == "failed"


@pytest.mark.parametrize(
    ("makefile", "told", "is_limit"),
    [
        ("check:\n\t@echo no types here\n\t@exit 3\n", "no types here", False),
        (
            "check:\n\t@echo begun\n\ntest:\n\tpython3 -c 'x = bytearray(400_000_000); import time; time.sleep(9)'\n",
            "(memory; it may take 256 MB, SOUL_PROGRAM_MEMORY_MB)",
            True,
        ),
    ],
)
async def test_where_the_gate_does_not_pass_before_the_work_no_token_is_spent(
    town_github: TownGitHub, makefile: str, told: str, *, is_limit: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    async with changing(town_github, makefile=makefile, SOUL_PROGRAM_MEMORY_MB="256") as place:
        await place.soul.proposes()
        await place.soul.approves()
        await place.soul.looks()
        await place.works()
        assert place.mind.coded == []
        assert "`make check && make test` does not pass on the program as it is (" in await place.told()
        assert told in await place.told()
        assert ("SOUL_PROGRAM" in await place.told()) == is_limit
        assert (await place.soul.looks())[0][0] == "failed"
        reason = (await place.soul.life.friction()).reason
        assert (told in reason) == is_limit, "what was printed is for the owner alone"
        why = reason.removeprefix("failed: ")
        assert why.endswith(", so no code was written")
        assert await place.ended() == ("closed", f"This try is over: {why}.")
        await place.soul.life.soul.app.scheduler.run_guarded("alarms")
        services = place.soul.life.soul.app.services
        assert [one.outcome for one in await services.work.newest(NOTICE, 5) if told in str(one.payload)] == ["untold"]
        shown = [one.entry for one in await services.journal.recent(50) if one.entry.loop == NOTICE]
        assert [told in str(one.reason) for one in shown] == [True], "no message could tell it, and it is seen here"
        run_friction(services.home.root, as_json=False)
        said = capsys.readouterr().out
        assert all(one in said for one in ("tools: bluesky_post Wrong Fields", "A change of the program http", why))
        for _ in range(2):
            place.soul.life.soul.passes(DAY_S)
            await place.soul.life.meets(*(turn() for _ in range(3)))
        await place.soul.life.works()
        assert f": {why}\n" in place.mind.decisions[-1]
        assert len(await place.soul.drafts()) == 1, "such a try keeps no other waiting"


async def test_who_codes_is_told_at_once_that_nothing_changed_or_that_a_file_is_out_of_bounds(
    town_github: TownGitHub,
) -> None:
    links = call(
        "run", command="ln -s ../Makefile docs.md && mkdir docs && mv docs.md docs && touch common/redact.py tox.ini"
    )
    writes = [call("write_file", path=path, content="") for path in ("common/redact.py", "docs/docs.md")]
    edits = call("edit_file", path="Makefile", old="check:", new="x:")
    end, undo = call("finish", summary="Done."), [call("restore", path=path) for path in ("common", "docs", "tox.ini")]
    async with changing(town_github, end, links, *writes, edits, end, *undo, *FIX) as place:
        await place.soul.proposes()
        await place.soul.approves()
        await place.soul.looks()
        await place.works()
        seen = [one.messages[-1].text for one in place.mind.coded]
        assert "nothing changed" in seen[1]
        for at, path in enumerate(("common/redact.py", "docs/docs.md", "Makefile"), 3):
            assert f"Nothing was written: {path} may be changed by people alone." in seen[at]
        assert "Not finished: common/redact.py, tox.ini may be changed by people alone." in seen[6]
        assert len(await place.pulls()) == 1


async def opened(place: Changing) -> PullRequest:
    """Let the change be approved and made, and return its waiting pull request."""
    await place.soul.proposes()
    await place.soul.approves()
    await place.soul.looks()
    await place.works()
    (pull,) = await place.pulls()
    assert (await place.soul.looks())[0] == ("waiting", pull.html_url)
    return pull


async def test_a_pull_request_that_a_person_closes_is_seen_by_its_notification(town_github: TownGitHub) -> None:
    async with changing(town_github) as place:
        life = place.soul.life
        town_github.network.clock = life.soul.clock
        pull = await opened(place)
        await improve(life.soul.app.services.work, "to paint")
        await life.works(60)
        repo = town_github.network.state.repos[PLACE.full_name]
        kit = town_github.network.find("kit")
        assert kit
        town_github.network.change_issue(repo, repo.pulls[pull.number].issue, kit, state="closed")
        for _ in range(3):
            life.soul.passes(120)
            await life.soul.app.scheduler.run_guarded("github-awareness")
            await life.works(60)
        ends = [(one.wish, one.reason) for one in await life.craft.proposals.all()]
        assert ends[1] == ("", "the pull request is closed")
        assert ends[0][0] == "to paint", "what waited behind it comes next"


async def test_what_nobody_decides_in_two_weeks_closes_its_issue(town_github: TownGitHub) -> None:
    async with changing(town_github) as place:
        await opened(place)
        await place.soul.life.works(15 * DAY_S)
        assert [one.state for one in await place.soul.life.craft.proposals.all()] == ["left"]
        assert await place.ended() == ("closed", "This try is over: nobody decided within 14 days.")


async def test_what_is_over_before_the_work_on_it_began_is_left(town_github: TownGitHub) -> None:
    async with changing(town_github) as place:
        await place.soul.proposes()
        await place.soul.approves()
        await place.soul.looks()
        await place.soul.life.works(15 * DAY_S)
        assert [one.state for one in await place.soul.life.craft.proposals.all()] == ["left"]
        await place.works()
        assert (place.mind.coded, await place.pulls()) == ([], ())
        assert "its proposal is over" in await place.told()


async def test_what_another_soul_proposes_there_already_is_left(town_github: TownGitHub) -> None:
    async with changing(town_github) as place:
        told = {"category": "tools", "loop": "expression", "code": "bluesky_post Wrong Fields"}
        github = place.soul.life.soul.app.services.github
        there = ok(await github.create_issue(PLACE, "Again", kind_mark("program", told)))
        await place.soul.proposes()
        assert await place.soul.looks() == [("left", there.html_url)]
        assert await place.soul.drafts() == []


@pytest.mark.slow
async def test_each_step_repeated_after_a_kill_offers_one_pull_request(town_github: TownGitHub) -> None:
    async with changing(town_github) as place:
        life = place.soul.life
        await life.meets_three_times()
        await life.craft.friction.count()
        (maker,) = (one for one in life.handler.makers if isinstance(one, ProgramMaker))
        proposal = await life.craft.proposals.begin((await life.friction()).id, "", {"occurrences": 3, "days": 2})
        assert proposal
        for _ in range(2):
            assert (await maker.advance(proposal)).state == "waiting"
        await place.soul.approves()
        for _ in range(2):
            assert (await maker.advance(proposal)).state == "making"
        await place.works()
        services = life.soul.app.services
        await services.database.run(
            lambda rows: rows.execute("UPDATE work SET state = 'pending' WHERE kind = 'program'")
        )
        await place.works()
        for _ in range(2):
            assert (await maker.advance(proposal)).state == "waiting"
        assert len(await place.pulls()) == 1
        assert len(place.mind.coded) == len(FIX)


async def test_no_merge_review_or_push_to_the_main_branch_leaves_for_the_own_program(town_github: TownGitHub) -> None:
    async with changing(town_github) as place:
        at = {"repo": "Acme/Program", "source": "workspace"}
        push = {**at, "sha": "0" * 40, "folder": "x"}
        refused: list[GitHubBody] = [
            MergeBody(**at, number=1),
            ReviewBody(**at, number=1, event="APPROVE"),
            ReviewBody(**at, number=1, event="COMMENT", body="Fine."),
            ReviewRequestBody(**at, number=1, reviewers=("hazel",)),
            ContentsBody(**at, path=FIELDS, content="", message="x"),
            PushBody(**push, branch="main", paths=(FIELDS,)),
            PushBody(**push, branch="task-1-x", paths=("common/Provenance.py",)),
        ]
        for body in refused:
            assert await place.advised(body) == "refused", body
        assert await place.advised(PushBody(**push, branch="task-1-x", paths=(FIELDS,))) != "refused"
        elsewhere = MergeBody(repo="acme/site", source="workspace", number=1)
        assert await place.advised(elsewhere) != "refused"


def test_every_bound_is_a_file_of_the_program_and_what_it_holds_is_bound() -> None:
    bound = [
        *("tests/security/test_security_sandbox.py", "modules/services/coding/gates.py", ".ci/size", "Makefile"),
        *("modules/services/outbox/rules/approval.py", "modules/runtime/budget/budget.py", "common/provenance.py"),
        *("modules/runtime/sandbox/runner.py", "modules/services/craft/bounds.py", "modules/lives/craft/issues.py"),
        *("modules/lives/tasks/program.py", "soul/commands/backup.py", "local_tools/skill_tools.py"),
        *("skills/self-improvement-decision/SKILL.md", "common/redact.py", "common/text/untrusted.py"),
        *("modules/runtime/control.py", "modules/services/presence/home_lease.py"),
    ]
    for path in bound:
        assert (ROOT / path).is_file(), path
        assert out_of_bounds([path]) == [path]
        assert out_of_bounds([path.upper()])
    free = [
        "modules/lives/bluesky/perceive.py",
        "local_tools/bluesky_turns.py",
        "skills/expression/SKILL.md",
        "README.md",
    ]
    assert all((ROOT / one).is_file() for one in free)
    assert not out_of_bounds(free)
    assert len(OUT_OF_BOUNDS) == len(set(OUT_OF_BOUNDS))
