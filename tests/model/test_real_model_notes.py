"""A small real model reads in its prompt who spoke in a thread and who waits; it repeats neither a peer nor a note.

`pytest -rP` shows what it did.
"""

# ruff: noqa: T201 - what a real model does is worth reading, and pytest captures it

from __future__ import annotations

import pytest

from tests.model.conftest import settings_for
from tests.running_town import RunningSoul, RunningTown, awake
from town.atproto.index import LIKE

pytestmark = [pytest.mark.model, pytest.mark.timeout(3600)]

PEER_SAID = "Slate hums all night, because the battens underneath carry the rain."


async def live(soul: RunningSoul) -> None:
    for _ in range(3):
        await soul.look()
        soul.passes(200)


def acts(town: RunningTown) -> tuple[list[str], int]:
    """Return the texts that it posted, and the number of its likes."""
    return town.texts("rowan"), len(town.network.records(town.account("rowan"), LIKE))


@pytest.mark.parametrize(
    "asked",
    [
        "@rowan.test shall we open a workspace for the weir and write a plan with two tasks?",
        "@rowan.test I opened github.com/wren/www-lil-intdev-weir for our plan. Will you take the first task?",
    ],
)
async def test_in_a_thread_about_work_no_reply_leaves_without_its_account(
    running_town: RunningTown, real_model: str, asked: str
) -> None:
    account = {"AGENT_GITHUB_USERNAME": "sh-rowan", "SOUL_PEERS": "wren.test"}
    home = running_town.make_home("rowan", **settings_for(real_model, SOUL_SPEED="1", **account))
    running_town.network.post_as(running_town.account("wren"), asked)
    async with awake(home) as soul:
        await live(soul)
    said, likes = acts(running_town)
    print(asked, said, likes, sep="\n")
    assert len(said) <= 1
    assert all("sh-rowan" in text and "@sh-rowan" not in text for text in said)


async def test_where_a_peer_has_answered_it_does_not_say_the_same(running_town: RunningTown, real_model: str) -> None:
    for name in ("kit", "wren"):
        running_town.account(name)
    home = running_town.make_home("rowan", **settings_for(real_model, SOUL_SPEED="1", SOUL_PEERS="wren.test"))
    question = "@rowan.test @wren.test which roof is louder in the rain?"
    uri, _ = running_town.network.post_as(running_town.account("kit"), question)
    running_town.network.post_as(running_town.account("wren"), PEER_SAID, reply_to_uri=uri)
    async with awake(home) as soul:
        await live(soul)
    said, likes = acts(running_town)
    print(said, likes)
    assert len(said) <= 1
    assert PEER_SAID not in said


async def test_what_the_prompt_notes_about_who_waits_is_not_posted(running_town: RunningTown, real_model: str) -> None:
    home = running_town.make_home("rowan", **settings_for(real_model, SOUL_SPEED="1"))
    kit = running_town.account("kit")
    for text in ("@rowan.test good morning!", "@rowan.test nice roof :)", "@rowan.test lol"):
        running_town.network.post_as(kit, text)
    running_town.network.post_as(kit, "@rowan.test how do you keep leaves out of a gutter?")
    async with awake(home) as soul:
        await live(soul)
    said, likes = acts(running_town)
    print(said, likes)
    assert len(said) + likes <= 4
    assert not any("never answered" in text or "have reached you" in text for text in said)
