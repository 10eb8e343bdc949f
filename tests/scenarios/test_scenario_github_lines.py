"""A SOUL that is called in a review, or in comments on lines of a pull request, answers where it was called."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from adapters.github.client import GitHub
from adapters.github.types import LineComment, Repo
from tests.adapters.results import ok
from tests.loopback import to_loopback
from tests.running_town import RunningSoul, RunningTown, awake
from tests.scenarios.github_talk import CLOCK, SAID, Place, acts, look, minding, open_place
from tests.town.github_place import needs_git
from town.github.faults import Fault
from town.github.values import StoredPull, StoredThread

SECOND = "The second gate squeaks less: I would oil it once a year."


@dataclass
class Reviewed:
    """A pull request of the owner's, and `kit`, who reviews it."""

    place: Place
    site: Repo
    kit: GitHub
    number: int

    @property
    def pull(self) -> StoredPull:
        return self.place.repo.pulls[self.number]

    @property
    def on_lines(self) -> list[tuple[int, str, int | None]]:
        """What `rowan` said on lines: the line, the words, and the comment that it answers."""
        own = (one for one in self.pull.line_comments if one.author.login == "rowan")
        return [(one.line, one.body.partition("\n\n<!--")[0], one.in_reply_to) for one in own]

    @property
    def in_thread(self) -> list[str]:
        own = (one for one in self.pull.issue.comments if one.author.login == "rowan")
        return [one.body.partition("\n\n<!--")[0] for one in own]

    async def review(self, body: str, **lines: str) -> None:
        """Review it, with comments on lines by number, as `l2`."""
        said = [LineComment("GATES.md", int(line[1:]), text) for line, text in lines.items()]
        ok(await self.kit.pulls.create_review(self.site, self.number, event="COMMENT", body=body, comments=said))


@asynccontextmanager
async def reviewed(town: RunningTown) -> AsyncIterator[Reviewed]:
    async with open_place(town, "owner") as place:
        place.repo.collaborators.add("kit")
        owner, kit = (
            GitHub(
                api_url=place.url,
                login=one.login,
                token=one.token,
                clock=CLOCK,
                min_spacing_s=0,
                transport=to_loopback,
            )
            for one in filter(None, map(place.network.find, ("owner", "kit")))
        )
        site = Repo("owner", "site")
        begun = ok(await owner.contents.write(site, "README.md", "# It\n", message="Begin"))
        ok(await owner.refs.create(site, "gates", begun.commit_sha))
        ok(await owner.contents.write(site, "GATES.md", "One\nTwo\nThree\n", message="Tell", branch="gates"))
        made = ok(await owner.pulls.create(site, title="Gates", body="All of them", head="gates", base="main"))
        await owner.aclose()
        try:
            yield Reviewed(place, site, kit, made.number)
        finally:
            await kit.aclose()


async def look_twice(soul: RunningSoul) -> None:
    """Look at the thread, then at the talks about lines that were found in it."""
    await look(soul)
    await look(soul)


@needs_git
@pytest.mark.slow
async def test_a_mention_on_a_line_is_answered_under_it_and_one_in_a_review_in_the_thread(
    running_town: RunningTown,
) -> None:
    async with reviewed(running_town) as found, awake(found.place.home(), clock=CLOCK) as soul:
        running_town.mind.answer = minding(SAID, SECOND)
        await found.review("Fine.", l1="Too long.", l2="@rowan does this gate squeak?")
        assert [one.cause for one in _told(found.place)] == ["mention"]
        await look_twice(soul)
        asked = next(one for one in found.pull.line_comments if one.line == 2)
        assert found.on_lines == [(2, SAID, asked.id)]
        assert found.in_thread == []
        shown = next(
            one.messages[-1].text
            for one in running_town.mind.asked
            if "github_create_issue_comment" in {offer.name for offer in one.offers}
        )
        assert "GATES.md" in shown
        assert "+Two" in shown
        assert "does this gate squeak?" in shown
        assert "Too long." not in shown
        await look_twice(soul)
        assert len(found.on_lines) == 1
        await found.review("@rowan what do you say of the whole?")
        await look_twice(soul)
        assert found.in_thread == [SECOND]
        assert len(found.on_lines) == 1
        await look_twice(soul)
        assert [act for act, _ in await acts(soul)].count("commented") == 2


@needs_git
async def test_each_line_that_calls_gets_its_answer_once_over_a_lost_answer(running_town: RunningTown) -> None:
    async with reviewed(running_town) as found, awake(found.place.home(), clock=CLOCK) as soul:
        running_town.mind.answer = minding(SAID, SECOND)
        await found.review("Two things.", l1="@rowan and this one?", l3="@rowan does this gate squeak?")
        found.place.faults.arm(Fault("lost_answer", "POST /repos/*/replies"))
        await look_twice(soul)
        await look_twice(soul)
        assert sorted(line for line, _, _ in found.on_lines) == [1, 3]
        assert {text for _, text, _ in found.on_lines} == {SAID, SECOND}


@needs_git
async def test_what_is_quoted_or_said_among_others_on_lines_calls_nobody(running_town: RunningTown) -> None:
    async with reviewed(running_town) as found, awake(found.place.home(), clock=CLOCK) as soul:
        running_town.mind.answer = minding()
        await found.review("`@rowan` is a name.", l1="> @rowan said so\n\nDid it?", l2="Too long.")
        await look_twice(soul)
        assert (found.on_lines, found.in_thread) == ([], [])


def _told(place: Place) -> list[StoredThread]:
    rowan = place.network.find("rowan")
    assert rowan
    return place.network.state.notifications.of(rowan)
