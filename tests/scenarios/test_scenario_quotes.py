"""The quote, page, pictures and video of a post are read with it: framed, and within limits."""

from typing import Any

from common.clock import iso
from modules.services.rights import store
from tests.running_town import RunningTown, awake, prompt_of
from town.atproto.index import POST

GUTTERS = "Copper gutters turn green in about nine years near the sea."


def write(town: RunningTown, author: str, text: str, embed: dict[str, Any], **more: Any) -> tuple[str, str]:
    """Post `text` with `embed`, as a mention if it begins with "@rowan.test"; return the URI and the CID."""
    mention = {"$type": "app.bsky.richtext.facet#mention", "did": town.account("rowan")}
    named = text.startswith("@rowan.test")
    facets = [{"index": {"byteStart": 0, "byteEnd": 11}, "features": [mention]}] if named else []
    record = {"text": text, "createdAt": iso(town.network.clock.now()), "facets": facets, "embed": embed, **more}
    written = town.network.create(town.account(author), POST, record)
    return written.record.uri, written.record.cid


def quote(uri: str, cid: str) -> dict[str, Any]:
    return {"$type": "app.bsky.embed.record", "record": {"uri": uri, "cid": cid}}


def card(title: str, description: str) -> dict[str, Any]:
    page = {"uri": "https://news.example/p", "title": title, "description": description}
    return {"$type": "app.bsky.embed.external", "external": page}


def told(town: RunningTown) -> str:
    return prompt_of(town.mind.asked[-1])


def block(text: str, kind: str) -> str:
    """Return the framed block of this kind, from its opening tag to its closing tag."""
    return text[text.index(f"<{kind}-") : text.index(f"</{kind}-")]


async def test_the_quoted_post_stands_beside_the_question_about_it(running_town: RunningTown) -> None:
    town = running_town
    home = town.make_home("rowan")
    quoted = town.network.post_as(town.account("sam"), GUTTERS)
    write(town, "quillon", "@rowan.test is this true?", quote(*quoted))
    async with awake(home) as soul:
        await soul.look()
    shown = block(told(town), "quoted")
    assert GUTTERS in shown
    assert "@sam.test" in shown
    assert GUTTERS not in town.mind.asked[-1].messages[0].text


async def test_of_a_quote_of_our_own_post_it_is_told_which_one_and_that_it_is_ours(running_town: RunningTown) -> None:
    town = running_town
    home = town.make_home("rowan")
    ours = town.network.post_as(town.account("rowan"), "A roof is a slow instrument; rain plays it for decades.")
    async with awake(home) as soul:
        write(town, "quillon", "I do not agree, sorry. What do you mean by slow?", quote(*ours))
        await soul.look()
    shown = block(told(town), "quoted")
    assert "slow instrument" in shown
    assert 'author="YOU"' in shown
    assert ours[0] in shown


async def test_a_card_and_what_hangs_on_a_quoted_post_are_told(running_town: RunningTown) -> None:
    town = running_town
    home = town.make_home("rowan")
    quoted = write(town, "sam", "Read this.", card("Why copper gutters go green", "A chemist explains " + "x" * 5_000))
    write(town, "quillon", "@rowan.test worth reading?", quote(*quoted))
    async with awake(home) as soul:
        await soul.look()
        asked = told(town)
        soul.passes(300)
        write(town, "quillon", "@rowan.test and this page?", card("The green roofs of Malmö", "Moss, mostly."))
        await soul.look()
    assert "Why copper gutters go green" in block(asked, "quoted")
    assert "x" * 1_000 not in asked
    assert "The green roofs of Malmö \u2014 Moss, mostly." in block(told(town), "attached")


async def test_earlier_posts_of_a_thread_are_read_with_what_they_show(running_town: RunningTown) -> None:
    town = running_town
    home = town.make_home("rowan")
    quoted = town.network.post_as(town.account("sam"), GUTTERS)
    first = write(town, "vera", "Look at these two.", quote(*quoted))
    second = write(
        town,
        "vera",
        "And at this page.",
        card("Patina, a diary", ""),
        reply={
            "root": dict(zip(("uri", "cid"), first, strict=True)),
            "parent": dict(zip(("uri", "cid"), first, strict=True)),
        },
    )
    town.network.post_as(town.account("quillon"), "@rowan.test what do you make of it?", reply_to_uri=second[0])
    async with awake(home) as soul:
        await soul.look()
    shown = block(told(town), "conversation")
    assert f"@sam.test: {GUTTERS}" in shown
    assert "Patina, a diary" in shown


async def test_the_words_of_somebody_who_is_muted_are_not_read_in_a_quote_either(running_town: RunningTown) -> None:
    town = running_town
    home, sam = town.make_home("rowan"), town.account("sam")
    quoted = town.network.post_as(sam, GUTTERS)
    async with awake(home) as soul:
        services = soul.app.services
        await services.database.run(lambda connection: store.mute(connection, sam, services.clock.now()))
        write(town, "quillon", "@rowan.test is this true?", quote(*quoted))
        await soul.look()
    assert "is this true" in told(town)
    assert "Copper gutters" not in told(town)
