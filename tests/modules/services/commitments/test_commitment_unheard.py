"""Proves that nothing is done for a promise whose words the room never heard."""

from __future__ import annotations

import pytest

from common.clock import parse_iso
from modules.services.commitments.policy import NEVER_HEARD, UNHEARD
from tests.modules.services.commitments.commitment_house import House, listening, until
from tests.modules.services.commitments.commitment_values import wanted

WORDS = "I'll open the checklist now."


async def test_what_the_room_never_heard_is_given_up_and_not_done(house: House) -> None:
    one = await house.promise(wanted(text=WORDS, unheard=True))
    await house.live(60, step_s=5)
    assert house.status(one).status == "pending"
    assert any("the room has not heard of it yet" in line for line in house.told())
    await house.live(600, step_s=15)
    assert (house.status(one).status, house.status(one).error) == ("abandoned", NEVER_HEARD)
    assert house.place.issues() == []


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_the_rooms_record_holds_is_done_though_its_echo_was_missed(house: House, *, restarted: bool) -> None:
    async with listening(house.place) as marvin:
        one = await house.promise(wanted(text=WORDS, unheard=True))
        assert house.room is not None
        await house.room.send_chat(WORDS)
        await marvin.hears(1)
        if restarted:
            await house.restart()
        await until(lambda: house.space_sender.was_heard(WORDS, parse_iso(one.created_at)))
        house.place.later()
        await house.live(30)
        assert (house.status(one).status, UNHEARD in house.status(one).params) == ("completed", False)
        assert len(house.place.issues()) == 1
