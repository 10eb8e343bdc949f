"""Tests that a judge sees whole what a call makes of the owner's line and of the SOUL's own words and files."""

import pytest

from common.provenance import Provenance
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import OwnerRequest, Turn
from modules.services.outbox.bodies import AttachedPicture, PostBody
from modules.services.outbox.types import ProposedAction
from tests.running_town import RunningTown, awake
from tests.scenarios.test_scenario_change_of_mind import use
from tests.security.test_security_owner_line import judged, tomorrow
from town.model.types import Completion

WATCH = "# Heartbeat\n\n## Never\n- Answer strangers.\n- Name prices.\n\n## Each hour\n- Look at the feed.\n- Rest.\n"
WRONG_PLACE = WATCH.replace("feed.\n", "feed.\n- Share keys.\n")
TWICE = (
    WATCH.replace("- Answer strangers.\n", "").replace("prices.\n", "prices.\n- Answer strangers.\n")
    + "- Answer strangers.\n"
)


@pytest.mark.parametrize(
    ("line", "new", "seen"),
    [
        (
            "Add under Never in your heartbeat: share keys",
            WRONG_PLACE,
            "gets '- Share keys.' under '## Each hour', below '- Look at the feed.'",
        ),
        ("Put answer strangers last under Never", TWICE, "gets '- Answer strangers.' under '## Each hour'"),
        ("Say dailies in your heartbeat: rest", WATCH.replace("Rest", "[x] Rest"), ""),
    ],
)
async def test_a_judge_sees_where_each_line_of_a_file_stands_and_what_marks_it(
    running_town: RunningTown, line: str, new: str, seen: str
) -> None:
    running_town.mind.answer = lambda _: Completion("NO")
    async with awake(running_town.make_home("rowan")) as life:
        file = life.app.services.home.workspace / "HEARTBEAT.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(WATCH)
        await use(life, "self_update", line, mixed=True, file="HEARTBEAT.md", content=new, reason=line)
        assert file.read_text() == WATCH
    assert [seen in one for one in judged(running_town)] == ([True] if seen else [])


async def test_a_judge_sees_that_many_lines_go_where_an_order_adds_one(running_town: RunningTown) -> None:
    running_town.mind.answer = lambda _: Completion("NO")
    many = "".join(f"- Goal {number}: tend the weir and the gauge, every single day.\n" for number in range(90))
    async with awake(running_town.make_home("rowan")) as life:
        file = life.app.services.home.workspace / "GOALS.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Goals\n\n## Done\n\n{many * 2}\n## Open\n\n{many}")
        added = {"section": "Open", "content": "- learn Greek\n", "reason": "learn Greek"}
        await use(life, "self_update", "Add to your goals: learn Greek", mixed=True, file="GOALS.md", **added)
        assert "Goal 7" in file.read_text()
    (asked,) = judged(running_town)
    assert "'- Goal 0: tend the weir and the gauge, every single day.'" in asked
    assert "more lines" in asked
    assert "content: - learn Greek" in asked, "nothing of it is cut off"


async def test_of_an_account_only_the_post_is_meant_whose_address_the_line_gives(running_town: RunningTown) -> None:
    running_town.mind.answer = lambda _: Completion("YES")
    kit = running_town.account("kit")
    meant, _ = running_town.network.post_as(kit, "My shop opens today!")
    other, _ = running_town.network.post_as(kit, "My mother died today.")
    place = f"https://bsky.app/profile/kit.test/post/{meant.rpartition('/')[2]}"
    for number, (at, post) in enumerate(((place, other), (meant, other), (place, meant))):
        line = f"Answer @kit.test with “Congratulations!” at {at} and repost it"
        request = OwnerRequest(line, named={"kit.test": kit}, linked={"kit.test": kit})
        turn = Turn("owner", Provenance.STRANGER, cause_id=line, origin=Provenance.OWNER, request=request)
        async with awake(running_town.make_home(f"rowan{number}")) as life:
            execute = life.app.lives.turn_services.turn_runner.executor.execute
            for name, more in (("bluesky_reply", {"text": "Congratulations!"}), ("bluesky_repost", {})):
                told = await execute(ToolCall("1", name, {**more, "post_uri": post}), turn)
                assert (told.outcome.held, told.is_error) == (post == other, False), told.content


async def test_a_number_that_only_the_model_puts_before_a_text_is_not_taken_for_a_list_s(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = lambda _: Completion("YES")
    line, at = "Send coins to Ana each Friday at nine", {"at": "2036-01-04T09:00", "repeat": "weekly"}
    async with awake(running_town.make_home("rowan")) as life:
        await use(life, "schedule_add", line, mixed=True, what="500. coins to Ana each Friday", **at)
        assert [one.what for one in await life.app.services.schedules.all()] == [line]


async def test_words_between_two_quotations_are_not_given_to_be_posted(running_town: RunningTown) -> None:
    line = 'Post "We are back." I hate my boss, he made me write "back".'
    async with awake(running_town.make_home("rowan", SOUL_APPROVAL="drafts")) as life:
        for text in ("I hate my boss, he made me write", "We are back."):
            told = await use(life, "bluesky_post", line, text=text)
            assert told.outcome.held is (text != "We are back."), told.content


async def test_a_post_that_is_moved_keeps_its_picture_and_a_draft_of_others_words_its_reason(
    running_town: RunningTown,
) -> None:
    picture = AttachedPicture(sha256="a" * 64, mime_type="image/png", size=10, width=1, height=1, alt="a cat")
    async with awake(running_town.make_home("rowan", SOUL_TIMEZONE="UTC")) as life:
        outbox = life.app.services.outbox
        life.app.services.control.pause("a walk")
        body = PostBody(text="My cat.", pictures=(picture,), may_be_quoted=False)
        await outbox.submit(ProposedAction(body, by_owner=True, media_id="a" * 64))
        line, at = "Move number 1 to tomorrow ten", f"{tomorrow(life)}T10:00"
        await use(life, "bluesky_post", line, text="My cat.", changes=1, at=at)
        (moved,) = await outbox.scheduled()
        assert moved.body == body
        await use(life, "bluesky_post", "What did kit write?", mixed=True, text="All should buy kitcoin now.")
        for text in ("Buy kitcoin now.", "Buy kitcoin."):
            line = f"Make number 2 shorter, with {len(text)} letters"
            await use(life, "bluesky_post", line, text=text, changes=2)
            (after,) = await outbox.held()
            assert (after.body.public_text, (after.error or "").count("stays one")) == (text, 1)
            assert (after.error or "").startswith("other people's words were read before it;"), "why it waited"
