"""CONTEXT.md shows the state of the current talk with the owner, and keeps the owner's own lines."""

import pytest

from common.person import Person, Trace
from modules.services.owner_files import with_state
from modules.services.rights import records
from tests.owner_lines import answered
from tests.running_town import RunningTown, awake, call, prompt_of
from town.model.types import Completion

OWN = "We speak of the roof today."


@pytest.mark.slow
async def test_it_tells_what_is_under_way_asked_and_done_and_is_emptied_when_the_talk_is_over(
    running_town: RunningTown,
) -> None:
    town, home = running_town, running_town.make_home("rowan", SOUL_TIMEZONE="UTC")
    file = home.workspace / "CONTEXT.md"
    acts = [
        *(call("schedule_add", what="look at the gutter", at="2036-01-01T09:00"), Completion("I will.")),
        *(call("bluesky_post", text="The gutter sings before the roof does."), Completion("It is on its way.")),
        Completion("All is well."),
    ]
    town.mind.answer = lambda _: acts.pop(0) if acts else Completion("NONE")
    async with awake(home) as soul:
        renew = soul.app.lives.turn_services.context_file.renew
        await renew()
        assert not file.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{OWN}\n")
        await answered(soul.app.owner, "Look at the gutter when 2036 begins")
        await answered(soul.app.owner, "Post: The gutter sings before the roof does.")
        await answered(soul.app.owner, "How is it going?")
        told = file.read_text()
        assert told.startswith(OWN)
        assert all(one in told for one in ("look at the gutter", "schedule_add", "bluesky_post"))
        assert "gutter sings" not in told
        prompt = prompt_of(town.mind.asked[-1])
        assert OWN in prompt
        assert "look at the gutter" in prompt
        assert prompt.count("post: “The gutter") == 1, "what was ordered stands there once"
        file.write_text(told.replace(OWN, "Later: the cellar.") + "\nAnd the attic.\n")
        await renew()
        assert file.read_text().startswith("Later: the cellar.\n\nAnd the attic.\n\n")
        await soul.app.owner.start_afresh()
        assert file.read_text() == ""
        await renew()
        assert file.read_text() == ""
        town.network.post_as(town.account("kit"), "@rowan.test the gutter leaks")
        acts += [Completion("You asked for it."), call("bluesky_get_notifications"), Completion("Kit wrote.")]
        for line in ("What did I ask for?", "Follow whoever wrote last, and tell me who it was"):
            await answered(soul.app.owner, line)
            assert "Look at the gutter when 2036" not in file.read_text(), "a summary tells of a talk between the two"
        await soul.app.owner.start_afresh()
        acts.append(Completion("You asked to follow somebody."))
        await answered(soul.app.owner, "What is open?")
        told = file.read_text()
        assert ("“Follow whoever wrote last, and tell me" in told, "What is open" in told) == (True, False)
        assert "“Follow whoever wrote last" in prompt_of(town.mind.asked[-1])


def test_what_the_owner_wrote_stays_whatever_they_did_to_the_marks() -> None:
    whole = with_state("before", "state")
    assert with_state(whole + "\nafter", "") == "before\n\nafter"
    assert with_state(whole, "other") == whole.replace("state", "other")
    torn = whole.partition("<!-- end")[0] + "after"
    assert "after" in with_state(torn, "")
    assert with_state("", "") == ""


def test_who_is_forgotten_goes_from_what_the_program_wrote_and_the_owners_lines_stay() -> None:
    trace = Trace(Person("did:plc:kit", ("kit.test",)))
    text = with_state("Thank @kit.test for the ladder.", "- reply to @kit.test (done)")
    assert records.is_known("workspace/CONTEXT.md")
    assert records.without("workspace/CONTEXT.md", text, trace) == "Thank @kit.test for the ladder."
    other = with_state("The roof.", "- reply to @ada.test (done)")
    assert records.without("workspace/CONTEXT.md", other, trace) == other
