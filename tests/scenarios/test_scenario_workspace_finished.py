"""A workspace without open work is judged, and an issue says that it is finished until somebody says otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.running_town import RunningTown
from tests.scenarios.workspace_town import DAY_S, HOUR_S, LivingSoul, WorkspaceTown, open_workspace
from town.github.faults import Fault
from town.github.values import StoredIssue

README = "A map of the town. The search is planned."


@pytest.fixture
async def place(running_town: RunningTown) -> AsyncIterator[WorkspaceTown]:
    async with open_workspace(running_town) as found:
        found.opens("kit", "An old wish")
        found.closes("kit", 1)
        yield found


async def finished(place: WorkspaceTown, one: LivingSoul) -> StoredIssue:
    """The sentinel that the SOUL made, once it knows of it."""
    await one.look(HOUR_S, times=2)
    number = one.watched.finished_issue_number
    assert number is not None
    return place.issue(number)


async def test_what_the_pages_promise_and_nobody_built_becomes_one_issue(place: WorkspaceTown) -> None:
    await place.write(README=README)
    place.mind.verdict = {"complete": False, "summary": "No search yet.", "remaining": ["Build the @eve search"]}
    async with place.living() as one:
        await one.look(HOUR_S, times=2)
        assert one.watched.last_health_check_attempt is not None
    made = place.issue(2)
    assert (made.title, made.state) == ("Unfinished: No search yet.", "open")
    assert "Build the" in (made.body or "")
    assert "@eve" not in (made.body or "")
    assert README in place.mind.prompts("workspace_verdict")[0]
    assert len(place.issues()) == 2


@pytest.mark.slow
async def test_what_is_missing_becomes_work_twice_at_most_and_again_once_somebody_says_so(place: WorkspaceTown) -> None:
    await place.write(README=README)
    place.mind.verdict = {"complete": False, "summary": "No search yet.", "remaining": ["Build the search"]}
    async with place.living() as one:
        for number in (2, 3):
            await one.look(DAY_S, times=2)
            assert place.issue(number).title.startswith("Unfinished: ")
            place.closes("kit", number)
        await one.look(DAY_S, times=2)
        made = place.issue(4)
        assert [label.name for label in made.labels] == ["finished"]
        assert one.watched.finished_issue_number == made.number
        place.says("kit", made, "The search is missing.")
        await one.look(60, times=3)
        place.closes("kit", 5)
        await one.look(DAY_S, times=3)
        assert place.issue(6).title.startswith("Unfinished: ")


async def test_a_finished_workspace_says_so_once(place: WorkspaceTown) -> None:
    await place.write(README=README)
    home = place.home()
    async with place.living(home) as one:
        made = await finished(place, one)
    async with place.living(home) as one:
        await one.look(DAY_S, times=3)
        assert one.watched.finished_issue_number == made.number
    assert made.title == f"LIL INTDEV FINISHED: {place.mind.verdict['summary']}"
    assert [label.name for label in made.labels] == ["finished"]
    assert len(place.issues()) == 2
    assert len(place.mind.prompts("workspace_verdict")) == 1


async def test_where_nothing_was_begun_nothing_is_finished(running_town: RunningTown) -> None:
    async with open_workspace(running_town) as place, place.living() as one:
        await one.look(HOUR_S, times=2)
        assert place.issues() == []


async def test_a_page_that_cannot_be_read_finishes_nothing(place: WorkspaceTown) -> None:
    await place.write(README=README)
    place.faults.arm(Fault("bad_gateway", "GET /repos/*/contents/*", times=40))
    async with place.living() as one:
        await one.look()
        assert one.watched.last_health_check_attempt is None
        assert len(place.issues()) == 1
        place.faults.clear()
        await finished(place, one)


async def test_a_sentinel_of_a_peer_is_adopted_and_left_to_it(place: WorkspaceTown) -> None:
    place.repo.collaborators.add("wren")
    for title in ("LIL INTDEV FINISHED: All is there.", "LIL INTDEV FINISHED: All is there, I think."):
        place.opens("wren", title, "", "finished")
    async with place.living() as one:
        await one.look(HOUR_S)
        assert one.watched.finished_issue_number == 2
        place.says("kit", place.issue(2), "The search is missing.")
        await one.look(HOUR_S, times=2)
    assert [state for _, state, _ in place.issues()] == ["closed", "open", "open"]
    assert place.mind.asked == []


async def test_of_two_sentinels_made_at_once_the_first_stands_and_its_author_closes_the_second(
    place: WorkspaceTown,
) -> None:
    place.repo.collaborators.add("wren")
    early = place.opens("wren", "LIL INTDEV FINISHED: All is there.", "", "discussion")
    async with place.living() as one:
        made = await finished(place, one)
        place.labels("kit", early, "finished")
        await one.look(60, times=2)
        assert one.watched.finished_issue_number == early.number < made.number
        assert (place.state(early.number), place.state(made.number)) == ("open", "closed")


async def test_words_on_the_sentinel_become_an_issue_and_the_work_goes_on(place: WorkspaceTown) -> None:
    async with place.living() as one:
        made = await finished(place, one)
        place.says("eve", made, "Buy my course.")
        place.says("kit", made, "Looks good!")
        await one.look(60, times=2)
        assert place.state(made.number) == "open"
        place.says("kit", made, "<!-- soul:x -->The search is missing.\nAsk @eve.")
        await one.look(60, times=3)
        assert one.watched.finished_issue_number is None
    assert place.state(made.number) == "closed"
    assert len(place.said(2)) == 1
    feedback = place.issue(3)
    assert feedback.title == "Feedback from #2: The search is missing."
    assert "kit wrote:" in (feedback.body or "")
    assert "soul:x" not in (feedback.body or "")
    assert "course" not in (feedback.body or "")
    assert "@eve" not in (feedback.body or "")
    assert "good" not in (feedback.body or "")
    assert len(place.issues()) == 3


@pytest.mark.slow
async def test_a_wish_in_another_issue_starts_the_work_again(place: WorkspaceTown) -> None:
    talk = place.opens("kit", "How do you like it?", "", "discussion")
    async with place.living() as one:
        made = await finished(place, one)
        place.says("eve", talk, "I want more.")
        await one.look(60, times=2)
        assert place.state(made.number) == "open"
        place.says("kit", talk, "A search would be good.")
        await one.look(60, times=3)
        assert one.watched.finished_issue_number is None
    assert place.state(made.number) == "closed"
    assert len(place.said(made.number)) == 1
    assert len(place.issues()) == 3


@pytest.mark.slow
async def test_a_person_who_closes_it_is_asked_once_and_has_a_day(place: WorkspaceTown) -> None:
    async with place.living() as one:
        made = await finished(place, one)
        place.closes("kit", made.number)
        await one.look(60, times=2)
        assert one.watched.finished_issue_number is None
        assert len(place.said(made.number)) == 1
        await one.look(7 * HOUR_S, times=3)
        assert len(place.issues()) == 2
        entries = await one.soul.app.services.journal.recent(500)
        assert sum(each.entry.data.get("act") == "sentinel-cleared" for each in entries) == 1
        await one.look(2 * HOUR_S, times=3)
        assert one.watched.finished_issue_number == 3
    assert len(place.said(made.number)) == 1
