"""The attention list: one line for each thing that is due, none if nothing is, and nothing private for others."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from modules.runtime.home import Home
from modules.services.agent.attention_list import (
    FILE,
    AttentionList,
    AttentionNeeds,
    Insight,
    Item,
    Reflection,
    render_attention,
)
from modules.services.owner_files import LocalOwnerFiles
from modules.services.skills.skills import Skills
from soul.resources import SKILLS

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
MORNING = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def skills() -> Skills:
    return Skills.load(SKILLS)


def test_when_nothing_is_due_nothing_is_said(skills: Skills) -> None:
    assert render_attention(AttentionNeeds(), skills) == ""


def test_each_thing_is_one_line_and_the_earliest_comes_first(skills: Skills) -> None:
    attention = AttentionNeeds(
        commitments=(Item("send the bill", at=NOON), Item("call @kit.test\n# now", at=MORNING)),
        blocked=(Item("mend the roof", "no nails"),),
        mentions=3,
        rituals=(Item("evening walk", at=NOON),),
    )
    assert render_attention(attention, skills, timezone="Asia/Tokyo").splitlines()[1:] == [
        "- Due 2026-01-05 17:00, you gave your word: call @kit.test # now",
        "- Due 2026-01-05 21:00, you gave your word: send the bill",
        "- Stuck: mend the roof (no nails). Find another way, or say so to whoever waits.",
        "- Posts to you that wait to be answered: 3",
        "- Today, 21:00: evening walk",
    ]


def test_what_waits_for_the_owners_yes_is_not_to_be_got_round(skills: Skills) -> None:
    attention = AttentionNeeds(blocked=(Item("reply 3fa9c1", "addressed to a stranger: kit.test", waits_as="Draft"),))
    (line,) = render_attention(attention, skills).splitlines()[1:]
    assert line.startswith("- Waits for your owner's approval: reply 3fa9c1 (addressed to a stranger: kit.test). ")
    assert line.endswith("Leave it to them; do not say it another way meanwhile.")


def test_after_ten_events_what_was_learned_is_to_be_thought_over_with_the_owner(skills: Skills) -> None:
    learned = (Insight("New Person", "@kit.test"), Insight("Answered", "Tin sings."), Insight("Unheard of", "x"))
    due = AttentionNeeds(reflection=Reflection(6, learned[:1])) + AttentionNeeds(reflection=Reflection(4, learned[1:]))
    first, *lines = render_attention(due, skills).splitlines()[1:]
    assert first.startswith("- Since you last wrote in SELF.md")
    assert lines == [
        "- Met @kit.test for the first time",
        "- Readers answered this; what in it reached them? Tin sings.",
    ]
    assert render_attention(due, skills, public=True) == ""
    assert render_attention(AttentionNeeds(reflection=Reflection(9, learned)), skills) == ""


def test_what_is_private_is_told_only_to_the_owner(skills: Skills) -> None:
    attention = AttentionNeeds(
        commitments=(Item("canary one", at=NOON, private=True),),
        blocked=(Item("canary two", "canary three", private=True),),
        rituals=(Item("canary four", at=NOON, private=True),),
    )
    assert render_attention(attention, skills, public=True) == ""
    assert render_attention(attention, skills).count("canary") == 4


def test_of_many_things_only_ten_of_a_kind_are_told(skills: Skills) -> None:
    many = tuple(Item(f"thing {number}", at=NOON) for number in range(50))
    assert render_attention(AttentionNeeds(commitments=many), skills).count("gave your word") == 10


async def test_all_sources_are_asked_and_the_file_follows_only_changes(skills: Skills, tmp_path: Path) -> None:
    waiting = [2]

    async def plans() -> AttentionNeeds:
        return AttentionNeeds(blocked=(Item("mend the roof", "no nails", private=True),))

    async def posts() -> AttentionNeeds:
        return AttentionNeeds(mentions=waiting[0])

    home = Home.at(tmp_path)
    attention_list = AttentionList(sources=(plans, posts), skills=skills, files=LocalOwnerFiles(home, print))
    assert "no nails" not in await attention_list.text(public=True)
    assert "wait to be answered: 2" in await attention_list.text(public=False)
    assert await attention_list.text(public=True) == ""
    await attention_list.refresh()
    file = home.workspace / FILE
    assert file.read_text() == await attention_list.text(public=False) + "\n"
    before = file.stat().st_ino
    await attention_list.refresh()
    assert file.stat().st_ino == before, "not written again"
    waiting[0] = 0
    await attention_list.refresh()
    assert "wait to be answered" not in file.read_text()
    assert "no nails" in file.read_text()


async def test_when_nothing_is_due_old_news_go_and_no_file_is_made(skills: Skills, tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    attention_list = AttentionList(sources=(), skills=skills, files=LocalOwnerFiles(home, print))
    await attention_list.refresh()
    assert not home.workspace.exists()
    home.workspace.mkdir()
    (home.workspace / FILE).write_text("old news")
    await attention_list.refresh()
    assert (home.workspace / FILE).read_text() == ""
