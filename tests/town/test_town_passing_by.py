"""A passer-by looks into the room, says a line, and is gone before any work could wait for it."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

from common.clock import SystemClock
from tests.town.page.room_guests import guest
from town.mind.words import load_bank
from town.page.room import KnownResident
from town.passing_by import NAME, lines, look_in
from town.town import open_room


async def test_it_comes_in_speaks_and_leaves(tmp_path: Path) -> None:
    clock = SystemClock()
    async with (
        open_room(tmp_path, clock, {NAME: KnownResident("kit.test", "Kit")}, KnownResident("you.test", "You")) as room,
        guest(room.url, "maren") as maren,
    ):
        await look_in(room.url, "Only looking in. Glass or sky?", clock, random.Random(1), stay_s=0.1)
        assert (await maren.receive("chat"))["content"] == "Only looking in. Glass or sky?"
        kinds = [row["kind"] for row in room.view.rows() if row["by"]["handle"] == "kit.test"]
        assert kinds == ["joined", "said", "left"]
        assert [one["name"] for one in room.view.present()] == ["maren"]


def test_it_does_not_repeat_itself_soon_and_asks_what_somebody_here_can_answer() -> None:
    bank = load_bank()
    said = list(itertools.islice(lines(bank, random.Random(1)), 40))
    assert len(set(said)) == 40
    assert all(bank.asked_in(line) for line in said)
