"""Proves that the town's mind answers the same however the skills are worded: it reads the facts of a request."""

import codecs
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from common.facts import About, ExpressionFacts, MemoryFacts, OwnerFacts, PostFacts, QuestionFacts, RoomFacts
from common.files import write_atomic
from modules.runtime.home import Home
from modules.services.agent.verdicts import Verdicts
from modules.services.skills.skills import CONTRACTS, parse_frontmatter
from soul.resources import SKILLS
from tests.modules.lives.space.soul_in_room import Room, open_room
from tests.owner_lines import answered
from tests.patience import until
from tests.running_town import RunningTown, awake
from town.mind.scripted import TABLE, ScriptedMind
from town.model.types import ChatRequest
from town.residents import RESIDENTS

_LONG_LINE = 30
FACTS = {"AI_GATEWAY_FACTS": "on"}
MAREN = RESIDENTS[0]
_KEPT = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|</?\{\{.*|^- \w+: (?=\S)|\b(?:YES|NO|SPEAK|LISTEN)\b", re.DOTALL)


def reworded(folder: Path) -> Path:
    """Write the skills to `folder` with every word replaced but headings, variables, frames and fields of examples."""
    for page in SKILLS.glob("*/SKILL.md"):
        raw = page.read_text("utf-8")
        _, body = parse_frontmatter(raw)
        lines = [line if line.startswith(("#", "<")) else _replaced(line) for line in body.splitlines(keepends=True)]
        target = folder / page.parent.name / page.name
        target.parent.mkdir(parents=True)
        target.write_text(raw.removesuffix(body) + "".join(lines), "utf-8")
    shutil.copy(SKILLS / CONTRACTS, folder)
    return folder


def _replaced(line: str) -> str:
    parts, end = [], 0
    for match in _KEPT.finditer(line):
        parts += [codecs.encode(line[end : match.start()], "rot13"), match[0]]
        end = match.end()
    return "".join([*parts, codecs.encode(line[end:], "rot13")])


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """Return the folder of the skills in other words than those of the program."""
    return reworded(tmp_path / "skills")


@pytest.fixture
async def room(running_town: RunningTown) -> AsyncIterator[Room]:
    async with open_room(running_town) as opened:
        yield opened


def as_maren(home: Home) -> Home:
    """Give the home the texts of the resident Maren, and return it."""
    write_atomic(home.soul, MAREN.soul)
    write_atomic(home.self_md, MAREN.self_md)
    return home


def is_answered_by_its_facts(request: ChatRequest) -> bool:
    """Return whether the mind answers the same to a request without its messages and the descriptions of its tools."""
    offers = tuple(replace(offer, description="") for offer in request.offers)
    mind = ScriptedMind()
    return mind.answer(replace(request, messages=(), offers=offers)) == mind.answer(request)


def skill_lines_in(requests: Sequence[ChatRequest], skills: Path) -> list[str]:
    """Return the long lines of skills that are in the facts of these requests."""
    lines = (line.strip("- ") for page in skills.glob("*/SKILL.md") for line in page.read_text("utf-8").splitlines())
    facts = "".join(repr(request.facts) for request in requests)
    return [line for line in lines if len(line) > _LONG_LINE and line in facts]


def test_each_kind_of_turn_has_a_row_in_the_mind_s_table() -> None:
    assert set(get_args(About)) == set(TABLE)
    kinds = [kind.__dataclass_fields__["kind"].default for kind in get_args(About)]
    assert len(set(kinds)) == len(kinds)


@pytest.mark.slow
async def test_a_resident_answers_posts_remembers_and_tells_how_things_stand(
    running_town: RunningTown, skills: Path
) -> None:
    running_town.mind.answer = ScriptedMind().answer
    for name in ("tobias", "odile"):
        running_town.account(name)
    home = as_maren(running_town.make_home("maren", SOUL_PEERS="tobias.test,odile.test", **FACTS))
    running_town.network.post_as(running_town.account("kit"), "@maren.test What is 12 times 12?")
    async with awake(home, skills_folder=skills) as life:
        await life.look()
        assert "144" in running_town.texts("maren")[-1]
        await life.app.lives.bluesky.expression.express()
        await life.send()
        assert len(running_town.texts("maren")) == 2
        assert "1 post, 1 reply" in await answered(life.app.owner, "How do things stand?")
        await answered(life.app.owner, 'Post this: "The fair is on Sunday."')
        await life.send()
        await life.app.owner.start_afresh()
        services = life.app.services
        verdicts = Verdicts(services.gateway, services.skills, services.clock)
        wish = "Would be great to have an issue for the lamp."
        assert await verdicts.ask("Intent", said="", content=wish) == "ACTION_REQUEST"
        repeated = {"first": "Seeds kept in jars make good tomatoes.", "second": "Good tomatoes: seeds kept in jars."}
        assert await verdicts.ask("Same Claim", examples="Same Claim Examples", **repeated) == "YES"
    assert running_town.texts("maren")[-1] == "The fair is on Sunday."
    kinds = {type(request.facts.about) for request in running_town.mind.asked}
    assert kinds == {PostFacts, ExpressionFacts, OwnerFacts, MemoryFacts, QuestionFacts}
    assert all(map(is_answered_by_its_facts, running_town.mind.asked))
    assert not skill_lines_in(running_town.mind.asked, skills)


async def test_a_resident_talks_in_a_room_and_takes_on_what_the_host_asks_for(room: Room, skills: Path) -> None:
    async with room.soul("maren", ScriptedMind().answer, settings=FACTS, skills=skills) as maren:
        await room.says("What is 12 times 12?", maren)
        assert (await maren.check()).reason == "spoke"
        await until(lambda: "144" in "".join(room.host.said("maren")))
        maren.later(60)
        await room.says("Can you open an issue for the broken clock in github.com/acme/site?", maren)
        assert (await maren.check()).reason == "spoke"
        assert [(one.type, one.params.title) for one in maren.queued_commitments()] == [
            ("create_issue", "Broken clock")
        ]
    asked = room.running_town.mind.asked
    assert {type(request.facts.about) for request in asked} >= {RoomFacts}
    assert all(map(is_answered_by_its_facts, asked))
    assert not skill_lines_in(asked, skills)
