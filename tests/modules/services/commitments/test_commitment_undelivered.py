"""Proves that nothing is done for a commitment whose words the room never received."""

from common.clock import parse_iso
from modules.services.commitments.policy import NEVER_DELIVERED
from tests.modules.services.commitments.commitment_values import wanted
from tests.modules.services.commitments.soul_in_town import SoulInTown, listening
from tests.patience import until

WORDS = "I'll open the checklist now."


async def test_what_the_room_never_received_is_given_up_and_not_done(soul_in_town: SoulInTown) -> None:
    one = await soul_in_town.enqueue(wanted(text=WORDS, undelivered=True))
    await soul_in_town.live(60, step_s=5)
    assert soul_in_town.status(one).status == "pending"
    assert any("the room has not received it yet" in line for line in soul_in_town.told())
    await soul_in_town.live(600, step_s=15)
    assert (soul_in_town.status(one).status, soul_in_town.status(one).error) == ("abandoned", NEVER_DELIVERED)
    assert soul_in_town.town.issues() == []


async def test_what_the_rooms_record_holds_is_done_though_its_echo_was_missed(soul_in_town: SoulInTown) -> None:
    async with listening(soul_in_town.town) as marvin:
        one = await soul_in_town.enqueue(wanted(text=WORDS, undelivered=True))
        assert soul_in_town.room is not None
        await soul_in_town.room.send_chat(WORDS)
        await marvin.receives(1)
        await soul_in_town.restart()
        await until(lambda: soul_in_town.space_sender.was_delivered(WORDS, parse_iso(one.created_at)))
        soul_in_town.town.later()
        await soul_in_town.live(30)
        assert (soul_in_town.status(one).status, soul_in_town.status(one).params.undelivered) == ("completed", False)
        assert len(soul_in_town.town.issues()) == 1
