"""What a SOUL and its peers do together, in threads and on GitHub, is counted once, and told in threads with them.

SOULs in one thread: each is told what its peers said there, and says something else, or likes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from common.provenance import Provenance
from modules.runtime.home import Home
from modules.runtime.journal.types import Entry
from modules.services.outbox.github_bodies import IssueBody, ReviewBody
from modules.services.outbox.types import ProposedAction
from modules.services.peers.histories import LOOP, PeerHistory
from modules.services.rights.requests import ForgetRequest, ForgetRequests
from soul.commands.people import carry_out_requests
from soul.composition.wiring.people import build_histories_told
from tests.hasty_clock import HastyClock
from tests.running_town import RunningSoul, RunningTown, awake, call, prompt_of, replying, settings_of
from tests.scenarios.github_talk import CLOCK, SAID, Place, look, minding, open_place
from tests.scenarios.peers_github import page_of
from tests.scenarios.test_scenario_peers import introduces_itself
from town.github.pulls import open_pull
from town.github.repository import NO_COMMIT
from town.model.types import ChatRequest, Completion

QUESTION = "@rowan.test I say slate hums all night because the battens carry the rain. What do you hear?"
OURS = "I disagree: the battens are silent, it is the gutter that carries every drop down to the bed."
THEIRS = "I disagree with you: the gutter is cast iron here and swallows every sound of the rain."


async def count(soul: RunningSoul, did: str, times: int = 1) -> PeerHistory | None:
    for _ in range(times):
        await soul.app.scheduler.run_guarded(LOOP)
    return soul.app.services.peer_histories.get(did)


async def talk(town: RunningTown) -> tuple[Home, str]:
    """Let a peer ask, the SOUL contradict, and the peer contradict; return the home and the peer's account."""
    wren = town.account("wren")
    home = town.make_home("rowan", SOUL_PEERS="wren.test")
    town.network.post_as(wren, QUESTION)
    town.mind.answer = replying(OURS)
    async with awake(home, clock=HastyClock()) as soul:
        await soul.look()
        await soul.send()
        assert town.texts("rowan") == [OURS]
        (ours,) = [record.uri for record in town.network.records(town.account("rowan"), "app.bsky.feed.post")]
        town.network.post_as(wren, THEIRS, reply_to_uri=ours)
        soul.passes(600)
        await soul.look()
        known = await count(soul, wren, 3)
    assert known is not None
    answered = len(town.texts("rowan"))
    assert (known.built_on, known.productive_disagreements, known.agreements) == (answered, 2, 0)
    return home, wren


async def test_who_disagreed_with_whom_in_a_thread_counts_once_and_is_told_when_the_peer_asks_again(
    running_town: RunningTown,
) -> None:
    home, wren = await talk(running_town)
    async with awake(home, clock=HastyClock()) as soul:
        before = soul.app.services.peer_histories.get(wren)
        assert await count(soul, wren, 2) == before
        running_town.mind.asked.clear()
        running_town.network.post_as(wren, "@rowan.test which sound would you record first on a wet night?")
        soul.passes(600)
        await soul.look()
    prompt = prompt_of(running_town.mind.asked[0])
    assert "@wren.test: you answered what they said" in prompt
    assert "disagreed with reasons 2 times" in prompt


async def test_whoever_is_forgotten_is_not_counted_again_from_what_is_left(running_town: RunningTown) -> None:
    home, wren = await talk(running_town)
    await asyncio.to_thread(forget, home, wren)
    assert wren not in (home.memory / "peer_histories.json").read_text()
    async with awake(home, clock=HastyClock()) as soul:
        assert await count(soul, wren, 2) is None


def forget(home: Home, who: str) -> None:

    requests = ForgetRequests(home.memory)
    requests.give(ForgetRequest(who, datetime(2020, 1, 1, tzinfo=UTC)))
    carry_out_requests(settings_of(home), home)


@pytest.fixture
async def place(running_town: RunningTown) -> AsyncIterator[Place]:
    async with open_place(running_town, "owner") as found:
        yield found


async def linked(place: Place, soul: RunningSoul) -> str:
    """Let the SOUL find that the account `sh-wren` on GitHub belongs to wren; return wren's account."""
    place.town.github = place.network
    introduces_itself(place.town, "wren")
    place.town.network.post_as(place.town.account("owner"), "@rowan.test meet @wren.test")
    for _ in range(4):
        soul.passes(5)
        await soul.look()
        await soul.app.scheduler.run_guarded("peers")
    assert [peer.github_username for peer in soul.app.services.peer_registry.get_linked_peers()] == ["sh-wren"]
    return place.town.account("wren")


@pytest.mark.slow
async def test_issues_reviews_and_claims_of_both_count_once_and_are_told_in_a_thread_with_the_peer(
    place: Place,
) -> None:
    network, repo = place.network, place.repo
    sh_wren, rowan = (
        network.create_account("sh-wren", website=page_of(place.town.account("wren"))),
        network.find("rowan"),
    )
    assert rowan
    repo.collaborators.add("sh-wren")
    theirs = open_pull(
        network,
        repo,
        sh_wren,
        title="Narrow",
        body="",
        refs=("main", "narrow"),
        commits=(NO_COMMIT, NO_COMMIT),
        draft=False,
    )
    place.town.mind.answer = minding(SAID, "One more thought.", "And another one.")
    home = place.home()
    async with awake(home, clock=CLOCK) as soul:
        wren = await linked(place, soul)
        outbox, journal = soul.app.services.outbox, soul.app.services.journal
        issue = IssueBody(source="owner", repo=repo.full_name, title="The menu", body="It moves.", text="The menu")
        review = ReviewBody(
            source="owner", repo=repo.full_name, number=theirs.number, event="COMMENT", body="Reads well.", text="Reads"
        )
        for body in (issue, review):
            assert (await outbox.submit(ProposedAction(body, by_owner=True, part=f"test:{body.kind}"))).accepted
        await soul.send()
        (ours,) = [one for one in repo.issues.values() if one and one.author.login == "rowan"]
        network.write_comment(repo, ours, sh_wren, "I saw it too, on the third page.")
        data = {"act": "claim-lost", "repo": repo.full_name, "about": "owner/site#9:1@0", "holder": "sh-wren"}
        for _ in range(2):
            await journal.record(Entry("life", "claim", "Task 1 not claimed: taken (sh-wren)", data=data))
        known = await count(soul, wren, 3)
    async with awake(home, clock=CLOCK) as soul:
        assert await count(soul, wren, 2) == known
        on_github, place.town.mind.answer = place.town.mind.answer, replying(OURS)
        place.town.network.post_as(wren, QUESTION)
        await soul.look()
        assert OURS in place.town.texts("rowan")
        place.town.mind.answer = on_github
        place.say("sh-wren", "Wide pages tire me.")
        place.post_link()
        place.town.mind.asked.clear()
        await look(soul)
    assert known is not None
    assert known.shared_work == (f"{repo.full_name}#{ours.number}",)
    assert (known.reviews_given, known.claims_won) == (1, 1)
    prompt = next(
        prompt_of(one) for one in place.town.mind.asked if "github_create_issue_comment" in {o.name for o in one.offers}
    )
    assert f"you both worked on {repo.full_name}#{ours.number}" in prompt
    assert "you reviewed 1 of their pull requests" in prompt
    assert f"@wren.test: {QUESTION}" in prompt, "what they said on Bluesky is told where they are linked"


@pytest.mark.slow
async def test_of_a_private_repository_nothing_is_counted(place: Place) -> None:
    network, repo = place.network, place.repo
    sh_wren = network.create_account("sh-wren", website=page_of(place.town.account("wren")))
    place.town.mind.answer = minding(SAID)
    async with awake(place.home(), clock=CLOCK) as soul:
        wren = await linked(place, soul)
        body = IssueBody(source="owner", repo=repo.full_name, title="The menu", body="It moves.", text="The menu")
        assert (await soul.app.services.outbox.submit(ProposedAction(body, by_owner=True, part="test:issue"))).accepted
        await soul.send()
        (ours,) = [one for one in repo.issues.values() if one and one.author.login == "rowan"]
        network.write_comment(repo, ours, sh_wren, "I saw it too.")
        repo.private = True
        known = await count(soul, wren, 2)
        assert known is None or not known.shared_work
        repo.private = False
    async with awake(place.home(), clock=CLOCK) as soul:
        known = await count(soul, wren)
    assert known is not None
    assert known.shared_work == (f"{repo.full_name}#{ours.number}",)


@pytest.mark.slow
async def test_whoever_has_a_peers_old_login_on_github_is_not_counted_as_the_peer(place: Place) -> None:
    network, repo = place.network, place.repo
    network.create_account("sh-wren", website=page_of(place.town.account("wren")))
    place.town.mind.answer = minding(SAID)
    async with awake(place.home(), clock=CLOCK) as soul:
        wren = await linked(place, soul)
        body = IssueBody(source="owner", repo=repo.full_name, title="The menu", body="It moves.", text="The menu")
        assert (await soul.app.services.outbox.submit(ProposedAction(body, by_owner=True, part="test:issue"))).accepted
        await soul.send()
        (ours,) = [one for one in repo.issues.values() if one and one.author.login == "rowan"]
        other = replace(network.create_account("eve"), login="sh-wren")
        network.write_comment(repo, ours, other, "I saw it too.")
        known = await count(soul, wren, 2)
    assert known is None or not known.shared_work


async def test_what_was_done_with_a_peer_is_told_without_its_words_and_never_in_the_owners_own_request(
    running_town: RunningTown,
) -> None:
    home, wren = await talk(running_town)
    async with awake(home, clock=HastyClock()) as soul:
        told_of = build_histories_told(soul.app.services)
        words = await told_of.text([wren], least=Provenance.STRANGER)
        assert await told_of.text([wren], least=Provenance.OWNER) == ""
    assert "swallows every sound" not in words
    assert "disagreed with reasons 2 times" in words


PEER_SAID = "Slate hums all night, because the battens underneath carry the rain."
SAME = "All night the slate hums: rain is carried by the battens underneath."
PEER_COMPARED = "Slate lasts longer than copper on a steep roof, my grandfather laid both."
TURNED = "Slate lasts a shorter time than copper on a steep roof, my grandfather laid both."
OTHER = "Ask what stands below: over a bedroom I would pay for slate, over a shed for tin."


def thread(town: RunningTown, *, author: str = "kit", peers: str = "wren.test") -> tuple[Home, str]:
    """Post a question to two SOULs and the answer of one; return the home of the other and the question's URI."""
    for name in (author, "wren"):
        town.account(name)
    home = town.make_home("rowan", SOUL_PEERS=peers)
    uri, _ = town.network.post_as(town.account(author), "@rowan.test @wren.test which roof is louder in the rain?")
    town.network.post_as(town.account("wren"), PEER_SAID, reply_to_uri=uri)
    return home, uri


def answers(town: RunningTown, *texts: str, verdict: str = "YES") -> None:
    """Let the model reply with these texts in order, repeating the last; every suspected echo gets `verdict`."""
    left = list(texts)

    def complete(request: ChatRequest) -> Completion:
        names = {offer.name for offer in request.offers}
        if "bluesky_reply" not in names:
            return Completion(text=verdict if is_judged(request) else "ok")
        return call("bluesky_reply", text=left.pop(0) if len(left) > 1 else left[0])

    town.mind.answer = complete


def is_judged(request: ChatRequest) -> bool:
    """Return whether the model is asked if a reply repeats a post of a peer."""
    return not request.offers and any(said in request.messages[-1].text for said in (PEER_SAID, PEER_COMPARED))


async def live(home: Home) -> None:
    async with awake(home, clock=HastyClock()) as soul:
        for _ in range(3):
            soul.passes(5)
            await soul.look()


async def test_the_prompt_says_which_peers_spoke_and_marks_their_lines(running_town: RunningTown) -> None:
    home, _ = thread(running_town)
    answers(running_town, OTHER)
    await live(home)
    (asked,) = running_town.mind.asked
    prompt = asked.messages[-1].text
    assert f"@wren.test (peer) → @kit.test: {PEER_SAID}" in prompt
    assert "have spoken here: @wren.test" in prompt
    assert running_town.texts("rowan") == [OTHER]


async def test_an_echo_of_a_peer_is_sent_back_once_with_the_wish_for_another_angle(running_town: RunningTown) -> None:
    home, _ = thread(running_town)
    answers(running_town, SAME, OTHER)
    await live(home)
    assert running_town.texts("rowan") == [OTHER]
    assert "a peer of yours has said this" in running_town.mind.asked[-1].messages[-1].text


async def test_who_has_nothing_to_add_likes(running_town: RunningTown) -> None:
    home, uri = thread(running_town)
    answers(running_town, SAME)
    await live(home)
    assert running_town.texts("rowan") == []
    assert running_town.likers(uri) == ["rowan.test"]
    assert [is_judged(one) for one in running_town.mind.asked] == [False, True, False]


async def test_a_peer_that_asks_us_is_answered_about_what_it_said(running_town: RunningTown) -> None:
    home, _ = thread(running_town, author="wren")
    answers(running_town, SAME)
    await live(home)
    assert "(peer)" not in running_town.mind.asked[0].messages[-1].text
    assert running_town.texts("rowan") == [SAME]


def speaking_meanwhile(town: RunningTown, uri: str, *texts: str) -> Callable[[ChatRequest], Awaitable[object]]:
    """Let the peer post these texts in the thread, one during each request for a reply."""
    left = list(texts)

    async def ponder(request: ChatRequest) -> None:
        if left and "bluesky_reply" in {offer.name for offer in request.offers}:
            town.network.post_as(town.account("wren"), left.pop(0), reply_to_uri=uri)

    return ponder


def question(town: RunningTown) -> tuple[Home, str]:
    """Post a question to two SOULs that nobody has answered yet; return the home of one and the question's URI."""
    for name in ("kit", "wren"):
        town.account(name)
    home = town.make_home("rowan", SOUL_PEERS="wren.test")
    uri, _ = town.network.post_as(town.account("kit"), "@rowan.test @wren.test which roof is louder in the rain?")
    return home, uri


async def test_what_a_peer_said_while_it_thought_is_shown_before_the_reply_leaves(running_town: RunningTown) -> None:
    home, uri = question(running_town)
    answers(running_town, SAME, OTHER)
    running_town.mind.ponder = speaking_meanwhile(running_town, uri, PEER_SAID)
    await live(home)
    assert running_town.texts("rowan") == [OTHER]
    told = running_town.mind.asked[-1].messages[-1].text
    assert "@wren.test answered while you wrote" in told
    assert PEER_SAID in told
    assert len(running_town.mind.asked) == 2


async def test_where_a_peer_speaks_again_while_the_reply_is_written_anew_a_like_is_enough(
    running_town: RunningTown,
) -> None:
    home, uri = question(running_town)
    answers(running_town, OTHER)
    running_town.mind.ponder = speaking_meanwhile(running_town, uri, PEER_SAID, "Tin rings like a bell in a storm.")
    await live(home)
    assert running_town.texts("rowan") == []
    assert running_town.likers(uri) == ["rowan.test"]


def compared(town: RunningTown) -> Home:
    for name in ("kit", "wren"):
        town.account(name)
    home = town.make_home("rowan", SOUL_PEERS="wren.test")
    uri, _ = town.network.post_as(town.account("kit"), "@rowan.test @wren.test which roof lasts longer?")
    town.network.post_as(town.account("wren"), PEER_COMPARED, reply_to_uri=uri)
    return home


async def test_who_contradicts_a_peer_in_its_words_is_heard_where_the_judge_finds_no_echo(
    running_town: RunningTown,
) -> None:
    home = compared(running_town)
    answers(running_town, TURNED, verdict="NO")
    await live(home)
    assert running_town.texts("rowan") == [TURNED]
    assert sum(map(is_judged, running_town.mind.asked)) == 1


async def test_each_text_is_judged_once(running_town: RunningTown) -> None:
    home = compared(running_town)
    again = "Slate lasts a briefer time than copper on a steep roof, my grandfather laid both."
    answers(running_town, TURNED, again)
    await live(home)
    assert running_town.texts("rowan") == []
    assert sum(map(is_judged, running_town.mind.asked)) == 2
