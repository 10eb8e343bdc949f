"""Before any act in a repository of somebody else its own rules are asked, once for all acts, whoever proposes them."""

from __future__ import annotations

import pytest

from adapters.github.types import Repo
from common.provenance import Provenance
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import Turn
from modules.services.commitments.naming import CommitmentRequest, QueuedCommitment
from modules.services.commitments.params import read_params
from modules.services.outbox.github_bodies import IssueBody, LabelBody, PullRequestBody
from modules.services.outbox.types import ProposedAction
from tests.github_moves import delete_repo
from tests.running_town import RunningSoul, RunningTown, awake
from tests.scenarios.github_talk import CLOCK, RULES, Place, in_foreign_place, minding, open_place, put_files
from town.github.faults import Fault

BAN = {"CONTRIBUTING": "AI-generated issues are not accepted."}
CONDITIONS = {"AI_POLICY": "You must disclose AI."}
WHY_BANNED = "CONTRIBUTING.md does not want AI agents"


def issue(place: Place, title: str = "A gate", *, by_owner: bool = False) -> ProposedAction:
    """An issue that the host of a room wants there, so that no other rule speaks against it."""
    body = IssueBody(
        repo=place.repo.full_name,
        title=title,
        body="Cars.",
        commitment_id="c",
        source="space",
        host_named=True,
        text=title,
    )
    return ProposedAction(body, f"c#{title}", by_owner=by_owner)


def pull(place: Place, head: str) -> ProposedAction:
    body = PullRequestBody(repo=place.repo.full_name, title=head, body="", head=head, base="main", text=head)
    return ProposedAction(body, f"c#{head}", by_owner=True)


async def state_of(soul: RunningSoul, action: ProposedAction) -> tuple[str, str]:
    submitted = await soul.app.services.outbox.submit(action)
    return submitted.intent.state, submitted.reason


async def commit(place: Place, soul: RunningSoul) -> QueuedCommitment:
    """Commit, towards the owner, to an issue there, and let it be tried four times."""
    params: dict[str, object] = {
        "title": "A gate",
        "description": "Cars.",
        "owner": place.repo.owner.login,
        "repoName": place.repo.name,
    }
    params["hostRequest"] = True
    request = CommitmentRequest("A gate", "at://did:plc:o/p/1", "Soon.", read_params("create_issue", params), "bluesky")
    made = (await soul.app.lives.queue.enqueue_commitment(request)).commitment
    assert made
    for _ in range(4):
        soul.passes(60)
        await soul.app.lives.commitments.run()
        await soul.send()
    found = soul.app.lives.queue.get(made.id)
    assert found
    return found


def opened(place: Place) -> list[str]:
    return [one.title for one in place.repo.issues.values() if one and one.author.login == "rowan"]


async def test_a_commitment_is_given_up_at_once_where_ai_is_not_wanted_and_the_journal_says_why(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = minding(rule="forbidden")
    async with in_foreign_place(running_town, **BAN) as place, awake(place.home(), clock=CLOCK) as soul:
        commitment = await commit(place, soul)
        assert opened(place) == []
        assert (commitment.status, commitment.attempt_count) == ("abandoned", 0)
        assert WHY_BANNED in (commitment.error or "")
        told = [entry.entry for entry in await soul.app.services.journal.recent(100)]
        rules = [rule for entry in told for rule in entry.data.get("rules", []) if rule["rule"] == "welcome"]
        assert [(rule["says"], rule["value"]) for rule in rules] == [("block", "forbidden")]
        assert any("abandoned" in entry.summary and WHY_BANNED in entry.reason for entry in told)


async def test_the_rules_of_a_repository_are_read_once_for_all_acts_there(running_town: RunningTown) -> None:
    running_town.mind.answer = minding(rule="forbidden")
    async with in_foreign_place(running_town, **BAN) as place, awake(place.home(), clock=CLOCK) as soul:
        assert (await state_of(soul, issue(place)))[0] == "blocked"
        place.faults.arm(Fault("server_error", "GET /repos/*/contents*", times=100))
        assert (await state_of(soul, issue(place, "A fence")))[0] == "blocked"
        assert len([one for one in running_town.mind.asked if RULES in one.messages[0].text]) == 1


async def test_the_owner_has_the_last_word_and_says_it_once_for_a_repository(running_town: RunningTown) -> None:
    running_town.mind.answer = minding(rule="conditions")
    async with in_foreign_place(running_town, **CONDITIONS) as place, awake(place.home(), clock=CLOCK) as soul:
        state, reason = await state_of(soul, issue(place))
        assert (state, "AI_POLICY.md has conditions" in reason) == ("held", True)
        (draft,) = await soul.app.services.outbox.held()
        await soul.app.services.outbox.approve(draft.id)
        assert (await state_of(soul, issue(place, "A fence")))[0] == "pending"


async def test_of_what_the_owner_said_of_a_repository_the_newest_counts_whatever_it_was_about(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = minding(rule="conditions")
    async with in_foreign_place(running_town, **CONDITIONS) as place, awake(place.home(), clock=CLOCK) as soul:
        outbox = soul.app.services.outbox
        labels = LabelBody(repo=place.repo.full_name, number=1, add=("gate",), commitment_id="c", source="space")
        asked = await outbox.submit(issue(place))
        soul.passes(1)
        refused = await outbox.submit(ProposedAction(labels, "c#label"))
        await outbox.approve(asked.intent.id)
        await outbox.reject(refused.intent.id)
        assert (await state_of(soul, issue(place, "A fence")))[0] == "blocked"


def make_anew(place: Place) -> None:
    """The repository is deleted, and somebody else makes one of that name."""
    delete_repo(place.network, place.repo)
    place.repo = place.network.create_repo(place.repo.owner, place.repo.name)


@pytest.mark.parametrize("said", ["yes", "nothing"])
async def test_what_was_said_or_found_of_a_repository_counts_for_no_other_one_of_its_name(
    running_town: RunningTown, said: str
) -> None:
    running_town.mind.answer = minding(rule="conditions")
    files = CONDITIONS if said == "yes" else {}
    async with in_foreign_place(running_town, **files) as place, awake(place.home(), clock=CLOCK) as soul:
        outbox, names = soul.app.services.outbox, soul.app.services.pinned_names
        submitted = await outbox.submit(issue(place))
        if said == "yes":
            await outbox.approve(submitted.intent.id)
        assert (await state_of(soul, issue(place, "A fence")))[0] == "pending"
        make_anew(place)
        await put_files(place.network, place.repo, CONDITIONS)
        assert (await state_of(soul, issue(place, "A path")))[0] == "blocked"
        assert await names.accept(f"repository:{place.repo.full_name}") == "accepted"
        soul.passes(1)
        assert (await state_of(soul, issue(place, "A hedge")))[0] == "held"


async def test_what_waits_does_not_leave_for_another_repository_of_the_same_name(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = minding()
    async with open_place(running_town, "stranger") as place, awake(place.home(), clock=CLOCK) as soul:
        submitted = await soul.app.services.outbox.submit(issue(place))
        assert submitted.intent.state == "pending"
        make_anew(place)
        await soul.send()
        intent = await soul.app.services.outbox.get(submitted.intent.id)
        assert (intent and intent.state, opened(place)) == ("failed", [])
        assert f"repository:{place.repo.full_name}" in [one.label for one in soul.app.services.pinned_names.waiting()]


async def test_what_the_owner_asks_for_is_done_also_where_ai_is_not_wanted(running_town: RunningTown) -> None:
    running_town.mind.answer = minding(rule="forbidden")
    async with in_foreign_place(running_town, **BAN) as place, awake(place.home(), clock=CLOCK) as soul:
        assert (await state_of(soul, issue(place, by_owner=True)))[0] == "pending"


@pytest.mark.slow
@pytest.mark.parametrize(("organisation", "state"), [("stranger", "pending"), ("", "blocked")])
async def test_a_workspace_is_asked_like_any_other_place_unless_it_is_of_the_owners_organisation(
    running_town: RunningTown, organisation: str, state: str
) -> None:
    running_town.mind.answer = minding(rule="forbidden")
    async with in_foreign_place(running_town, **BAN) as place:
        home = place.home(WORKSPACE_ORG=organisation)
        async with awake(home, clock=CLOCK) as soul:
            soul.app.services.workspaces.watch(Repo(place.repo.owner.login, place.repo.name))
            assert (await state_of(soul, issue(place)))[0] == state


async def test_while_the_rules_cannot_be_read_a_commitment_waits(running_town: RunningTown) -> None:
    async with in_foreign_place(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        place.faults.arm(Fault("server_error", "GET /repos/*", times=100))
        commitment = await commit(place, soul)
        assert (commitment.status, commitment.attempt_count, opened(place)) == ("pending", 0, [])
        place.faults.clear()
        soul.passes(600)
        await soul.app.lives.commitments.run()
        await soul.send()
        assert opened(place) == ["A gate"]


async def test_whoever_asks_for_an_issue_is_told_that_it_is_not_wanted(running_town: RunningTown) -> None:
    running_town.mind.answer = minding(rule="forbidden")
    async with in_foreign_place(running_town, **BAN) as place, awake(place.home(), clock=CLOCK) as soul:
        executor = soul.app.lives.turn_services.turn_runner.executor
        asked = {"owner": place.repo.owner.login, "repo": place.repo.name, "title": "A gate"}
        # NOTE(self): words of others stand in this turn, so that the owner did not ask for it in so many words.
        turn = Turn("owner", Provenance.STRANGER, cause_id="owner", origin=Provenance.OWNER)
        for name in ("github_create_issue", "create_memo"):
            result = await executor.execute(ToolCall("1", name, asked), turn)
            assert (result.is_error, WHY_BANNED in result.content) == (True, True)
        assert await soul.app.services.outbox.held() == []


@pytest.mark.slow
async def test_a_second_pull_request_waits_until_the_first_is_closed(running_town: RunningTown) -> None:
    async with in_foreign_place(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        assert (await state_of(soul, pull(place, "one")))[0] == "pending"
        state, reason = await state_of(soul, pull(place, "two"))
        assert (state, reason) == ("blocked", "1 open pull requests already, the limit is 1")
