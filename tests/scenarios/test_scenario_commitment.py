"""A commitment made on Bluesky is kept on GitHub and reported in its thread, and the owner can ask why."""

import asyncio
import json
from functools import partial

import pytest

from adapters.github.types import Repo
from common.errors import NotWaiting
from modules.services.explanation.rendering import tell
from modules.services.outbox.act_words import act_words
from modules.services.owner import NOTICE
from soul.commands.owner_commands import OwnerCommands
from tests.local_tools.test_bluesky_tools import use_as_owner
from tests.running_town import RunningSoul, RunningTown, awake, call
from tests.scenarios.test_scenario_quotes import quote, write
from tests.town.mind.town_mind_prompts import SKILLS
from tests.town_github import TownGitHub
from town.model.types import ChatRequest, Completion

QUESTION = "@rowan.test the clock on acme/site stops at midnight, have you seen that?"
SPOKEN = "I have not, and it should not. I'll open an issue in acme/site with what you saw."
TITLE = "Clock stops at midnight"
BODY = "The clock on the page stops at midnight and shows dashes until the page is loaded again, in every time zone."
TOLD = "Written down, with what you saw:"
OURS = "It is on the board: {{url}}"


def _mind(request: ChatRequest) -> Completion:
    names = {offer.name for offer in request.offers}
    system = "\n".join(message.text for message in request.messages if message.role == "system")
    if "bluesky_reply" in names:
        return call("bluesky_reply", text=SPOKEN)
    if SKILLS.render("commitments", "Extraction", agent_name="rowan").strip()[:60] in system:
        found = {"title": TITLE, "description": BODY, "repo": "acme/site"}
        commitment = {"description": TITLE, "type": "create_issue", "params": found, "confidence": "high"}
        return Completion(text=json.dumps([commitment]))
    if "tell_it_is_done" in names:
        return call("tell_it_is_done", sentence=TOLD)
    return Completion(text="[]")


async def test_what_was_committed_in_a_reply_is_done_once_and_told_below_it(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    running_town.mind.answer = _mind
    home = town_github.make_home(OWNER_GITHUB_USERNAME="acme")
    running_town.network.post_as(running_town.account("kit"), QUESTION)
    async with awake(home) as life:
        await life.look()
        await life.app.scheduler.run_guarded("work")
        for _ in range(8):
            life.passes(1)
            await life.app.lives.commitments.run()
            await life.send()
        told = await tell(life.app.services.database, f"{town_github.url}/acme/site/issues/1")
    assert town_github.titles == [TITLE]
    assert BODY in town_github.bodies[0]
    texts = running_town.texts("rowan")
    assert texts[0] == SPOKEN
    assert [text for text in texts[1:] if TOLD in text] == texts[1:]
    assert len(texts) == 2
    assert told[0] == "Why: issue in acme/site (done)"
    assert any(SPOKEN[:40] in line for line in told)


async def test_what_a_reply_commits_to_is_done_after_the_yes_that_it_waited_for(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    running_town.mind.answer = _mind
    home = town_github.make_home(OWNER_GITHUB_USERNAME="acme", SOUL_APPROVAL="strangers")
    running_town.network.post_as(running_town.account("kit"), QUESTION)
    async with awake(home) as life:
        app = life.app
        await life.look()
        (reply,) = await app.services.outbox.held()
        await app.scheduler.run_guarded("work")
        assert (running_town.texts("rowan"), app.lives.queue.live()) == ([], [])
        await app.services.outbox.approve(reply.id)
        await life.send()
        for _ in range(3):
            life.passes(180)
            await app.scheduler.run_guarded("work")
            await app.lives.commitments.run()
            await life.send()
    assert running_town.texts("rowan") == [SPOKEN]
    assert town_github.titles == [TITLE]


TITLES = (TITLE, "Dashes instead of the hour")


def _two(request: ChatRequest) -> Completion:
    """Answer as a mind that finds two commitments in its reply."""
    answer = _mind(request)
    if not answer.text.startswith('[{"description"'):
        return answer
    (one,) = json.loads(answer.text)
    both = [{**one, "description": title, "params": {**one["params"], "title": title}} for title in TITLES]
    return Completion(text=json.dumps(both))


@pytest.mark.parametrize("approval", ["", "strangers"])
async def test_each_of_two_commitments_of_one_reply_is_told_in_its_thread(
    running_town: RunningTown, town_github: TownGitHub, approval: str
) -> None:
    running_town.mind.answer = _two
    home = town_github.make_home(OWNER_GITHUB_USERNAME="acme", SOUL_APPROVAL=approval)
    running_town.network.post_as(running_town.account("kit"), QUESTION)
    named = set[str]()
    async with awake(home) as life:
        await life.look()
        for _ in range(10):
            for held in await life.app.services.outbox.held():
                named.add((await life.app.services.database.run(partial(act_words, intent=held))).what)
                await life.app.services.outbox.approve(held.id)
            await life.app.scheduler.run_guarded("work")
            await life.app.lives.commitments.run()
            await life.send()
            life.passes(180)
    assert named == ({"reply to @kit.test"} if approval else set())
    assert sorted(town_github.titles) == sorted(TITLES)
    first, second = [post for post in reversed(running_town.network.posts(100)) if TOLD in post.text]
    for number in (1, 2):
        assert sum(f"/issues/{number}" in post.text for post in (first, second)) == 1
    assert second.reply is not None
    assert second.reply.parent.uri == first.uri


@pytest.mark.parametrize(
    ("words", "written"), [("Sie steht um Mitternacht.", "Unused."), ("", "Nachts um zwölf steht sie still."), ("", "")]
)
async def test_a_promise_that_the_model_notes_is_kept_in_its_own_words_or_not_at_all(
    running_town: RunningTown, town_github: TownGitHub, words: str, written: str
) -> None:
    asked, own = list[str](), words or written
    writes = SKILLS.render("commitments", "Words", "comment_issue", agent_name="rowan").strip()

    def mind(request: ChatRequest) -> Completion:
        answer = _mind(request)
        if any(writes in message.text for message in request.messages):
            return Completion(text=written)
        if answer.calls and answer.calls[0].name == "bluesky_reply":
            return call("bluesky_reply", text="Gern, das schreibe ich dazu.", promise=f"acme/site#1: {words}")
        if not answer.text.startswith('[{"description"'):
            return answer
        asked.append(request.messages[-1].text)
        params = {"repo": "acme/site", "issueNumber": 1, **({"content": words} if words else {})}
        found = {"description": "Comment on the clock", "type": "comment_issue", "params": params, "confidence": "high"}
        return Completion(text=json.dumps([found]))

    running_town.mind.answer = mind
    home = town_github.make_home(OWNER_GITHUB_USERNAME="acme")
    kit = town_github.network.create_account("kit")
    issue = town_github.network.open_issue(town_github.repo, kit, title=TITLE, body=BODY)
    running_town.network.post_as(running_town.account("kit"), "@rowan.test schreibst du das dazu?")
    async with awake(home) as life:
        await life.look()
        await life.app.scheduler.run_guarded("work")
        for _ in range(4):
            life.passes(30)
            await life.app.lives.commitments.run()
            await life.send()
    assert f"acme/site#1: {words}".strip() in asked[0]
    assert [own in one.body for one in issue.comments] == ([True] if own else [])


async def test_what_a_reply_promises_is_begun_only_if_the_reply_leaves(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    running_town.mind.answer = _mind
    home = town_github.make_home(OWNER_GITHUB_USERNAME="acme")
    running_town.network.post_as(running_town.account("kit"), QUESTION)
    async with awake(home) as life:
        app = life.app
        await app.scheduler.run_guarded("awareness")
        (reply,) = await app.services.outbox.of_kind("reply", 1)
        assert reply.is_unsent
        await app.services.outbox.reject(reply.id)
        for _ in range(3):
            life.passes(180)
            await app.scheduler.run_guarded("work")
            await app.lives.commitments.run()
            await life.send()
        assert app.lives.queue.live() == []
    assert (running_town.texts("rowan"), town_github.titles) == ([], [])


async def test_a_promise_that_the_owner_takes_out_of_a_reply_is_not_kept(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    def mind(request: ChatRequest) -> Completion:
        if "bluesky_reply" in {offer.name for offer in request.offers}:
            return call("bluesky_reply", text=SPOKEN, promise=f"open an issue in acme/site: {TITLE}")
        return _mind(request)

    running_town.mind.answer = mind
    home = town_github.make_home(OWNER_GITHUB_USERNAME="acme", SOUL_APPROVAL="strangers")
    running_town.network.post_as(running_town.account("kit"), QUESTION)
    async with awake(home) as life:
        app = life.app
        await life.look()
        (reply,) = await app.services.outbox.held()
        await app.services.outbox.edit(reply.id, "Thank you. Please file it there yourself, we only read along.", ())
        await life.send()
        for _ in range(3):
            life.passes(180)
            await app.scheduler.run_guarded("work")
            await app.lives.commitments.run()
            await life.send()
        assert app.lives.queue.live() == []
    assert (len(running_town.texts("rowan")), town_github.titles) == (1, [])


def _three(request: ChatRequest) -> Completion:
    """Answer as a mind that finds a promise of three issues in its reply."""
    answer = _mind(request)
    if answer.text.startswith('[{"description"'):
        (one,) = json.loads(answer.text)
        answer = Completion(text=json.dumps([one | {"params": one["params"] | {"count": 3}}]))
    return answer


@pytest.mark.slow
@pytest.mark.parametrize("way", ["reject", "expire", "refuse"])
async def test_of_a_promise_that_ends_early_what_was_made_is_told_once_and_why(
    running_town: RunningTown, town_github: TownGitHub, way: str
) -> None:
    running_town.mind.answer = _three
    approval = "off" if way == "refuse" else "drafts"
    home = town_github.make_home(OWNER_GITHUB_USERNAME="acme", SOUL_APPROVAL=approval)
    running_town.network.post_as(running_town.account("owner"), QUESTION)
    async with awake(home) as life:
        app, outbox = life.app, life.app.services.outbox
        await life.look()
        for _ in range(24):
            is_second = len(town_github.titles) == 1
            town_github.repo.has_issues = not (is_second and way == "refuse")
            for held in await outbox.held():
                if held.kind != "issue" or not is_second:
                    await outbox.approve(held.id)
                elif way == "reject":
                    await outbox.reject(held.id, reason="one is enough")
            await app.scheduler.run_guarded("work")
            await app.lives.commitments.run()
            await app.scheduler.run_guarded("alarms")
            await life.send()
            life.passes(4 * 3600 if way == "expire" else 180)
        (ended,) = app.lives.queue.all()
        why = [one.entry.reason for one in await app.services.journal.recent(400) if one.entry.loop == "commitments"]
        alarms = [one.payload["text"] for one in await app.services.work.newest(NOTICE, 99)]
    link = f"{town_github.url}/acme/site/issues/1"
    assert [len(town_github.titles), ended.status, (ended.result or {})["count"]] == [1, "abandoned", 1]
    assert [link in one or "acme/site/issues/1" in one for one in running_town.texts("rowan")] == [False, True]
    asked = [one for one in running_town.mind.asked if "tell_it_is_done" in {offer.name for offer in one.offers}]
    assert ["1 of 3" in one.messages[-1].text for one in asked] == [True]
    assert {"reject": "one is enough", "expire": "approval", "refuse": "ssues"}[way] in (ended.error or "")
    assert link in why[0]
    assert any(link in one for one in alarms) == (way != "reject")


@pytest.mark.parametrize("way", ["withdraw_act", "reject"])
async def test_the_owner_withdraws_a_promise_that_is_not_begun(
    running_town: RunningTown, town_github: TownGitHub, way: str
) -> None:
    running_town.mind.answer = _two
    home = town_github.make_home(OWNER_GITHUB_USERNAME="acme")
    running_town.network.post_as(running_town.account("kit"), QUESTION)
    async with awake(home) as life:
        app, commands = life.app, OwnerCommands(rows={}, app=life.app, ended=asyncio.Event())
        await life.look()
        await app.scheduler.run_guarded("work")
        app.services.control.pause("a walk")
        listed = await commands.run_drafts("")
        (number,) = [line.split()[0] for line in listed if TITLES[1] in line]
        asked = await use_as_owner(life, "withdraw_act", "Drop the second promise.")
        assert TITLES[1] in asked.content
        assert f"number {number}" in asked.content
        if way == "reject":
            with pytest.raises(NotWaiting):
                await commands.run_reject(f"{number} 99")
            assert len(app.lives.queue.live()) == len(TITLES)
            await commands.run_reject(f"{number} not ours to do")
            (left,) = [one for one in app.lives.queue.all() if one.status == "abandoned"]
            assert "not ours to do" in (left.error or "")
        else:
            told = await use_as_owner(life, "withdraw_act", "Drop it.", number=int(number))
            assert (told.is_error, TITLES[1] in told.content) == (False, True)
        assert not any(TITLES[1] in line for line in await commands.run_drafts(""))
        app.services.control.resume()
        for _ in range(4):
            life.passes(180)
            await app.lives.commitments.run()
            await life.send()
    assert town_github.titles == [TITLES[0]]


_THERE = {
    "comment_issue": {"issueNumber": 1, "content": "It also happens in Firefox."},
    "create_issue": {"title": "Firefox, too", "description": BODY},
}


@pytest.mark.parametrize("kind", _THERE)
@pytest.mark.parametrize(("by", "link"), [("ada", "post"), ("ada", "quote"), ("owner", "post"), ("ada", "")])
async def test_a_promise_is_kept_in_the_repository_that_its_conversation_links(
    running_town: RunningTown, town_github: TownGitHub, by: str, link: str, kind: str
) -> None:
    asked = list[str]()

    def mind(request: ChatRequest) -> Completion:
        answer = _mind(request)
        if answer.calls and answer.calls[0].name == "bluesky_reply":
            return call(
                "bluesky_reply", text="That goes to #1, gladly.", promise="add to #1: It also happens in Firefox."
            )
        if not answer.text.startswith('[{"description"'):
            return answer
        asked.append(request.messages[-1].text)
        found = {"description": "Firefox, too", "type": kind, "params": _THERE[kind], "confidence": "high"}
        return Completion(text=json.dumps([found]))

    running_town.mind.answer = mind
    github, network = town_github.network, running_town.network
    home = town_github.make_home(OWNER_GITHUB_USERNAME="acme", WORKSPACE_ORG="acme")
    workspace = town_github.add_repo("www-lil-intdev-tides")
    repos = (town_github.repo, workspace)
    issues = [github.open_issue(repo, repo.owner, title=TITLE, body=BODY) for repo in repos]
    url = "https://github.com/acme/site/issues/1" if link else "https://clocks.test"
    said = network.post_as(running_town.account("kit"), f"the clock stops at midnight: {url}")
    words = "@rowan.test add there that it happens in Firefox"
    if link == "quote":
        write(running_town, by, words, quote(*said))
    else:
        network.post_as(running_town.account(by), words, reply_to_uri=said[0])
    async with awake(home) as life:
        life.app.services.workspaces.watch(Repo("acme", workspace.name))
        for _ in range(2):
            await life.look()
        await life.app.scheduler.run_guarded("work")
        for _ in range(6):
            life.passes(1)
            await life.app.lives.commitments.run()
            await life.send()
    assert url in asked[0]
    made = [len(one.comments) for one in issues]
    if kind == "create_issue":
        made = [len(repo.issues) - 1 for repo in repos]
    assert made == ([1, 0] if link else [0, int(kind == "create_issue")])


async def test_a_promise_to_an_earlier_post_is_told_below_the_answer_to_it(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    first, asked = "", list[str]()

    def mind(request: ChatRequest) -> Completion:
        answer = _mind(request)
        if answer.calls and answer.calls[0].name == "bluesky_reply":
            return call("bluesky_reply", text=SPOKEN, post_uri=first)
        if answer.text.startswith('[{"description"'):
            asked.append(request.messages[-1].text)
        return answer

    running_town.mind.answer = mind
    home, kit = town_github.make_home(OWNER_GITHUB_USERNAME="acme"), running_town.account("kit")
    first, _ = running_town.network.post_as(kit, QUESTION)
    second = "@rowan.test lovely weather today, the apple trees are out"
    running_town.network.post_as(kit, second, reply_to_uri=first)
    async with awake(home) as life:
        for _ in range(2):
            await life.look()
        await life.app.scheduler.run_guarded("work")
        for _ in range(6):
            life.passes(1)
            await life.app.lives.commitments.run()
            await life.send()
    assert QUESTION in asked[0]
    assert second in asked[0]
    assert [text for text in running_town.texts("rowan") if TOLD in text]


@pytest.mark.parametrize("is_kept", [False, True])
async def test_everybody_to_whom_the_same_was_promised_is_told(
    running_town: RunningTown, town_github: TownGitHub, *, is_kept: bool
) -> None:
    words = [
        SPOKEN,
        "Thank you for telling me. I'll open an issue in acme/site about that.",
        "I'll file it. It is odd.",
    ]

    def mind(request: ChatRequest) -> Completion:
        answer = _mind(request)
        if answer.calls and answer.calls[0].name == "bluesky_reply":
            return call("bluesky_reply", text=words.pop(0))
        return answer

    running_town.mind.answer = mind
    home, network = town_github.make_home(OWNER_GITHUB_USERNAME="acme"), running_town.network
    asked = [f"@rowan.test {said}" for said in ("the clock stops at midnight", "your clock shows dashes", "any news?")]
    kit, ada = running_town.account("kit"), running_town.account("ada")

    async def keep(life: RunningSoul) -> None:
        for _ in range(8):
            life.passes(30)
            await life.app.lives.commitments.run()
            await life.send()

    async with awake(home) as life:
        for who, text in zip((kit, ada, kit), asked, strict=True):
            network.post_as(who, text)
            await life.look()
            await life.app.scheduler.run_guarded("work")
            if is_kept:
                await keep(life)
        await keep(life)
    assert words == []
    assert town_github.titles == [TITLE]
    posts = network.posts(100)
    said = {post.uri: post for post in posts}
    answered = [said[post.reply.parent.uri].reply for post in posts if TOLD in post.text and post.reply]
    assert {said[one.parent.uri].author.handle for one in answered if one} == {"kit.test", "ada.test"}
    assert len(answered) == 2


@pytest.mark.parametrize(("verdict", "written"), [("YES", 1), ("NO", 2)])
async def test_a_comment_that_says_what_an_earlier_one_in_its_thread_said_is_not_written_and_its_asker_gets_the_link(
    running_town: RunningTown, town_github: TownGitHub, verdict: str, written: int
) -> None:
    comments = ["The clock stops because its timer counts one day.", "One day is all that its timer counts."]
    replies = [SPOKEN, "Gladly: I'll comment on that issue in acme/site."]
    left, judged = list(comments), list[str]()

    def mind(request: ChatRequest) -> Completion:
        answer, said = _mind(request), request.messages[-1].text
        if answer.calls and answer.calls[0].name == "bluesky_reply":
            return call("bluesky_reply", text=replies.pop(0))
        if answer.text.startswith('[{"description"'):
            about = {"repo": "acme/site", "issueNumber": 1, "content": left.pop(0)}
            found = {"description": f"Say why, {len(left)}", "type": "comment_issue", "params": about}
            return Completion(text=json.dumps([{**found, "confidence": "high"}]))
        if all(one in said for one in comments):
            judged.append(said)
            return Completion(text=verdict)
        return answer

    running_town.mind.answer = mind
    home = town_github.make_home(OWNER_GITHUB_USERNAME="acme")
    town_github.network.open_issue(town_github.repo, town_github.repo.owner, title=TITLE)
    async with awake(home) as life:
        for who, text in (("kit", "why does the clock stop?"), ("ada", "say on acme/site#1 what stops the clock")):
            running_town.network.post_as(running_town.account(who), f"@rowan.test {text}")
            await life.look()
            await life.app.scheduler.run_guarded("work")
        for _ in range(12):
            life.passes(30)
            await life.app.lives.commitments.run()
            await life.send()
    issue = town_github.repo.issues[1]
    assert issue is not None
    assert [one.body.partition("\n")[0] for one in issue.comments] == comments[:written]
    assert len(judged) == 1
    links = [text.rpartition(" ")[2] for text in running_town.texts("rowan") if TOLD in text]
    assert (len(links), len(set(links))) == (2, written)
