"""What was decided about a repository holds under its new name; an act leaves there only if its owner stayed the same.

The owner's no, the end of a talk and an order to stop watching survive a rename. What was approved or promised before a
rename is done under the new name; after a transfer to another owner it is not done, as other rules may hold there.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.github_moves import transfer_repo
from tests.running_town import RunningTown, awake, call
from tests.scenarios.github_talk import CLOCK, SAID, Place, acts, look, minding, open_place
from tests.scenarios.test_scenario_github_wanted import commit, opened
from tests.scenarios.workspace_town import HOUR_S, SITE, open_workspace
from town.model.types import ChatRequest, Completion

MORE = "The wide one after all: it has room for a second menu beside the first."

pytestmark = pytest.mark.slow


def rename(place: Place) -> None:
    place.network.rename_repo(place.repo, "garden")


def transfer(place: Place) -> None:
    transfer_repo(place.network, place.repo, place.network.create_account("newco"))


def stay(_place: Place) -> None:
    """Leave the repository where it is."""


@pytest.mark.parametrize("move", [rename, transfer])
async def test_the_owners_no_holds_under_the_new_name(running_town: RunningTown, move: Callable[[Place], None]) -> None:
    running_town.mind.answer = minding(SAID, MORE)
    async with open_place(running_town, "stranger") as place:
        place.say("kit", "@rowan what do you think?")
        async with awake(place.home(SOUL_APPROVAL="strangers"), clock=CLOCK) as soul:
            await look(soul)
            (draft,) = await soul.app.services.outbox.held()
            await soul.app.services.outbox.reject(draft.id, reason="never there")
        async with awake(place.home(SOUL_APPROVAL="off"), clock=CLOCK) as soul:
            move(place)
            place.say("kit", "@rowan and now?")
            await look(soul)
            assert (await acts(soul))[-1] == ("silent", "unwelcome")
        assert place.comments == []


async def test_a_thread_that_the_soul_left_stays_left_under_the_new_name(running_town: RunningTown) -> None:
    left: list[bool] = []

    def mind(request: ChatRequest) -> Completion:
        if "github_graceful_exit" in {offer.name for offer in request.offers} and not left:
            left.append(True)
            return call("github_graceful_exit", reason="all is said", closing_type="message", closing_message=SAID)
        return minding(MORE)(request)

    running_town.mind.answer = mind
    async with open_place(running_town, "owner") as place:
        place.say("kit", "@rowan what do you think?")
        async with awake(place.home(), clock=CLOCK) as soul:
            await look(soul)
            rename(place)
            place.say("kit", "I still think the wide one is better.")
            for _ in range(2):
                await look(soul)
            assert ("silent", "concluded") in await acts(soul)
        assert place.comments == [SAID]


@pytest.mark.parametrize(("move", "said"), [(stay, [SAID]), (rename, [SAID]), (transfer, [])])
async def test_an_approved_comment_leaves_unless_the_repository_has_another_owner(
    running_town: RunningTown, move: Callable[[Place], None], said: list[str]
) -> None:
    running_town.mind.answer = minding()
    async with open_place(running_town, "stranger") as place:
        place.say("kit", "@rowan what do you think?")
        async with awake(place.home(SOUL_APPROVAL="drafts"), clock=CLOCK) as soul:
            await look(soul)
            (draft,) = await soul.app.services.outbox.held()
            move(place)
            await soul.app.services.outbox.approve(draft.id)
            await soul.send()
        assert place.comments == said


async def test_a_draft_stays_the_only_answer_to_its_thread_under_the_new_name(running_town: RunningTown) -> None:
    running_town.mind.answer = minding(SAID, MORE)
    async with open_place(running_town, "stranger") as place:
        place.say("kit", "@rowan what do you think?")
        async with awake(place.home(SOUL_APPROVAL="drafts"), clock=CLOCK) as soul:
            await look(soul)
            rename(place)
            place.say("kit", "@rowan and now?")
            await look(soul)
            assert len(await soul.app.services.outbox.held()) == 1


@pytest.mark.parametrize(("move", "status"), [(rename, "completed"), (transfer, "abandoned")])
async def test_a_promised_issue_is_opened_unless_the_repository_has_another_owner(
    running_town: RunningTown, move: Callable[[Place], None], status: str
) -> None:
    running_town.mind.answer = minding()
    async with open_place(running_town, "owner") as place, awake(place.home(), clock=CLOCK) as soul:
        before = replace(place, repo=replace(place.repo))
        move(place)
        assert (await commit(before, soul)).status == status
        assert opened(place) == (["A gate"] if status == "completed" else [])


async def test_a_workspace_that_the_owner_unwatched_is_not_watched_under_the_new_name(
    running_town: RunningTown,
) -> None:
    async with (
        open_workspace(running_town) as place,
        awake(place.home(WORKSPACE_ORG="acme"), clock=place.clock) as soul,
    ):
        watched = soul.app.services.workspaces
        await soul.app.services.own_workspace.watch_existing()
        assert watched.get(SITE)
        watched.unwatch(SITE)
        place.network.rename_repo(place.repo, "www-lil-intdev-garden")
        place.clock.ahead += HOUR_S
        await soul.app.services.own_workspace.watch_existing()
        assert not watched.names()
