"""The owner changes an account or a setting of a home that has lived before: the SOUL goes on with the new one."""

from dataclasses import replace

import pytest

from adapters.github.types import Repo
from modules.lives.messages.alarms import OwnerNotices
from modules.lives.messages.state import MessageState
from tests.github_moves import rename_account
from tests.running_town import RunningSoul, RunningTown, awake, call, prompt_of
from tests.scenarios.phone import Phone, look
from tests.scenarios.workspace_town import DAY_S, SITE, WorkspaceTown, open_workspace
from town.model.types import ChatRequest, Completion

pytestmark = pytest.mark.slow


class TalkativeMind:
    """Comments whenever it may, each time in other words."""

    def __init__(self) -> None:
        self.comments = 0

    def __call__(self, request: ChatRequest) -> Completion:
        if "github_create_issue_comment" not in {offer.name for offer in request.offers}:
            return Completion(text="[]")
        self.comments += 1
        side = "narrow" if self.comments % 2 else "wide"
        body = f"Thought number {self.comments}: the {side} one, as its menu stays in view on page {7 * self.comments}."
        return call("github_create_issue_comment", body=body)


async def looks(place: WorkspaceTown, soul: RunningSoul, times: int) -> None:
    """Let the SOUL look at its workspaces and at what waits there, every ten minutes."""
    for _ in range(times):
        for loop in ("plan-awareness", "github-awareness"):
            place.clock.ahead += 300
            await soul.app.scheduler.run_guarded(loop)
            await soul.send()


async def test_a_soul_that_is_renamed_on_github_while_it_lives_answers_no_comment_of_its_own(
    running_town: RunningTown,
) -> None:
    async with open_workspace(running_town) as place:
        running_town.mind.answer = TalkativeMind()
        first = place.opens("kit", "Which layout?", "Narrow or wide? @rowan")
        async with awake(place.home(), clock=place.clock) as soul:
            soul.app.services.workspaces.watch(SITE)
            await looks(place, soul, 3)
            rowan = place.network.find("rowan")
            assert rowan
            rename_account(place.network, rowan, "rowan-soul")
            second = place.opens("kit", "Which colour?", "Tin or slate?")
            place.says("eve", first, "@rowan and @rowan-soul: which of them is the lighter one?")
            await looks(place, soul, 6)
            assert (place.said(first.number, "rowan-soul"), len(place.said(second.number, "rowan-soul"))) == (
                [comment.body.partition("\n\n<!--")[0] for comment in first.comments if comment.author.login != "eve"],
                1,
            )
            assert len(first.comments) == 3
            assert soul.app.services.me.github_username == "rowan-soul"


async def test_a_soul_with_the_token_of_another_account_acts_as_that_account(running_town: RunningTown) -> None:
    async with open_workspace(running_town, collaborators=("wren", "kit")) as place:
        running_town.mind.answer = TalkativeMind()
        wren = place.network.find("wren")
        assert wren
        issue = place.opens("kit", "Which layout?", "Narrow or wide? @wren")
        home = place.home(WORKSPACE_ORG="acme", AGENT_GITHUB_TOKEN=wren.token)
        for times in (5, 2):
            async with awake(home, clock=place.clock) as soul:
                await looks(place, soul, times)
        assert [comment.author.login for comment in issue.comments] == ["wren"]


async def test_the_identity_post_names_the_account_of_the_token(running_town: RunningTown) -> None:
    async with open_workspace(running_town) as place:
        running_town.mind.answer = lambda _: Completion("I look after roofs, and I like those of tin best.")
        wren = place.network.find("wren")
        assert wren
        async with awake(place.home(AGENT_GITHUB_TOKEN=wren.token), clock=place.clock) as soul:
            await soul.app.scheduler.run_guarded("peers")
            await soul.send()
        (post,) = running_town.texts("rowan")
        assert "`wren`" in post


def rename_on_bluesky(town: RunningTown, did: str, handle: str) -> None:
    """Give an account on Bluesky another handle, which no method of the town does."""
    homes, dids = (vars(town.network)[name] for name in ("_homes", "_dids"))
    del dids[homes[did].account.handle]
    dids[handle] = did
    homes[did].account = replace(homes[did].account, handle=handle)


@pytest.mark.parametrize("login", ["ada.private@example.com", "a DID"])
async def test_a_soul_that_logs_in_without_its_handle_is_known_by_its_handle_alone(
    running_town: RunningTown, login: str
) -> None:
    network, kit = running_town.network, running_town.account("kit")
    rowan = network.create_account("rowan.test", "town-password-1", email="ada.private@example.com")
    given = rowan.did if login == "a DID" else login
    async with awake(running_town.make_home("rowan", AGENT_BLUESKY_USERNAME=given)) as soul:
        network.post_as(kit, "@rowan.test which roof is louder?")
        network.post_as(running_town.account("owner"), "@rowan.test hello, how is the quay?")
        await soul.look()
        prompts = [prompt_of(request) for request in running_town.mind.asked]
        assert any("on Bluesky as @rowan.test" in prompt for prompt in prompts)
        assert not any("ada.private" in prompt or f"@{rowan.did}" in prompt for prompt in prompts)
        assert not [one for one in soul.app.services.peer_registry.all_peers() if one.bluesky_handle == "rowan.test"]
        assert soul.app.services.redactor.finds(login) == ("@" in login)


async def test_handles_that_change_while_it_lives_are_in_the_next_prompt(running_town: RunningTown) -> None:
    network, owner = running_town.network, running_town.account("owner")
    home = running_town.make_home("rowan")
    async with awake(home) as soul:
        rename_on_bluesky(running_town, owner, "ada.garden.test")
        rename_on_bluesky(running_town, running_town.account("rowan"), "rowan.garden.test")
        network.post_as(owner, "@rowan.garden.test hello from my new name")
        await soul.look()
        prompt = prompt_of(running_town.mind.asked[-1])
        assert "ada.garden.test" in prompt
        assert "owner.test" not in prompt
        assert soul.app.services.me.owner_handle == "ada.garden.test"
    async with awake(home) as soul:
        assert soul.app.services.me.bluesky_username == "rowan.garden.test"


async def test_after_a_change_of_the_account_notices_go_to_the_conversation_with_the_new_one(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = lambda _: Completion("Fine.")
    former, present = Phone(running_town, "owner", "rebecca"), Phone(running_town, "owner", "wren")
    async with awake(running_town.make_home("rebecca")) as soul:
        await look(soul)
        former.says("/status")
        await look(soul)
    home = running_town.make_home("rebecca", AGENT_BLUESKY_USERNAME="wren.test")
    async with awake(home, take_over=True) as soul:
        await look(soul)
        present.says("/status")
        await look(soul)
        answered = len(present.answers)
        assert answered
        services = soul.app.services
        state = MessageState(services.database, services.clock, services.redactor, services.me)
        assert await OwnerNotices(state, services.outbox).send("A draft waits.", "notice")
        await soul.send()
        assert present.answers[answered:] == ["A draft waits."]


@pytest.mark.parametrize("after", ["beta", ""])
async def test_a_workspace_of_an_organisation_that_is_set_no_longer_is_left_and_that_is_told(
    running_town: RunningTown, after: str
) -> None:
    async with open_workspace(running_town) as place:
        beta = place.network.create_account("beta", kind="Organization")
        new = place.network.create_repo(beta, "www-lil-intdev-new", collaborators=["rowan"])
        async with awake(place.home(WORKSPACE_ORG="acme"), clock=place.clock) as soul:
            await looks(place, soul, 1)
            assert soul.app.services.workspaces.names() == {SITE.full_name}
            soul.app.services.workspaces.watch(Repo("acme", "asked-for"), requested=True)
        issue = place.opens("kit", "Which layout?", "Narrow or wide?")
        running_town.mind.answer = TalkativeMind()
        async with awake(place.home(WORKSPACE_ORG=after), clock=place.clock) as soul:
            await looks(place, soul, 3)
            expected = {"acme/asked-for"} | ({new.full_name} if after else set())
            assert soul.app.services.workspaces.names() == expected
            assert not issue.comments
            assert len([line for line in soul.console.lines if SITE.full_name in line[1]]) == 1
        async with awake(place.home(WORKSPACE_ORG="acme"), clock=place.clock) as soul:
            await looks(place, soul, 1)
            assert SITE.full_name in soul.app.services.workspaces.names()


async def test_a_name_that_the_self_does_not_have_is_told_until_it_has(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as soul:
        assert not told(soul, "AGENT_NAME")
    home = running_town.make_home("rowan", AGENT_NAME="Wren")
    for _ in range(2):
        async with awake(home) as soul:
            assert len(told(soul, "AGENT_NAME")) == 1
    home.self_md.write_text(home.self_md.read_text().replace("rowan", "Wren"))
    async with awake(home) as soul:
        assert not told(soul, "AGENT_NAME")


async def test_files_of_the_home_that_are_not_read_are_told(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    home.workspace.mkdir(exist_ok=True)
    (home.workspace / "USER.md").write_text("My name is Ada, I keep bees.")
    async with awake(home) as soul:
        assert not told(soul, "SOUL_WORKSPACE")
    async with awake(running_town.make_home("rowan", SOUL_WORKSPACE="store")) as soul:
        (line,) = told(soul, "SOUL_WORKSPACE")
        assert "USER.md" in line


def told(soul: RunningSoul, about: str) -> list[str]:
    """Return the lines for the owner that name a setting."""
    return [message for _, message, _ in soul.console.lines if about in message]


async def test_a_workspace_that_is_archived_is_no_longer_watched(running_town: RunningTown) -> None:
    async with open_workspace(running_town) as place:
        place.opens("kit", "A counter", "It counts.", "work")
        async with awake(place.home(WORKSPACE_ORG="acme"), clock=place.clock) as soul:
            await looks(place, soul, 1)
            place.repo.archived = True
            place.clock.ahead += DAY_S
            await looks(place, soul, 3)
            assert not soul.app.services.workspaces.names()
            assert len(told(soul, "archived")) == 1
