"""SOULs in one thread: each is told what its peers said there, and says something else, or likes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from modules.runtime.home import Home
from tests.hasty_clock import HastyClock
from tests.running_town import RunningTown, awake, call
from town.model.types import ChatRequest, Completion

PEER_SAID = "Slate hums all night, because the battens underneath carry the rain."
SAME = "All night the slate hums: rain is carried by the battens underneath."
PEER_COMPARED = "Slate lasts longer than copper on a steep roof, my grandfather laid both."
TURNED = "Slate lasts a shorter time than copper on a steep roof, my grandfather laid both."
OTHER = "Ask what stands below: over a bedroom I would pay for slate, over a shed for tin."


def thread(town: RunningTown, *, author: str = "kit", peers: str = "wren.test") -> tuple[Home, str]:
    """A question to two SOULs that one of them has answered; returns the home of the other and the question's uri."""
    for name in (author, "wren"):
        town.account(name)
    home = town.make_home("rowan", SOUL_PEERS=peers)
    uri, _ = town.network.post_as(town.account(author), "@rowan.test @wren.test which roof is louder in the rain?")
    town.network.post_as(town.account("wren"), PEER_SAID, reply_to_uri=uri)
    return home, uri


def answers(town: RunningTown, *texts: str, verdict: str = "YES") -> None:
    """Let the model reply with these, one after the other and the last again; each suspected echo is judged alike."""
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
    """Let the peer say these under the post, one each time that a reply is thought of."""
    left = list(texts)

    async def ponder(request: ChatRequest) -> None:
        if left and "bluesky_reply" in {offer.name for offer in request.offers}:
            town.network.post_as(town.account("wren"), left.pop(0), reply_to_uri=uri)

    return ponder


def question(town: RunningTown) -> tuple[Home, str]:
    """A question to two SOULs that nobody has answered yet; returns the home of one and the question's uri."""
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
