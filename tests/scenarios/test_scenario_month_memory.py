"""A SOUL that takes part in a ritual and reflects for thirty days in one process hardly grows in memory."""

import sys
from datetime import timedelta
from pathlib import Path

import pytest

from common.files import write_atomic
from modules.runtime.home import Home, read_self
from tests.scenarios.ritual_process import RitualProcess
from tests.scenarios.ritual_town import MONDAY, open_ritual_town, think
from tests.scenarios.test_scenario_reflection import growing, named, versions
from town.model.types import ChatRequest, Completion

DAYS, WARM_DAYS, WEEKDAYS = 30, 3, 22
MOST_MORE_MIB = 5.0


def learning(home: Home, request: ChatRequest) -> Completion:
    """Add a line to SELF.md in each reflection, and take part in the ritual in other turns."""
    if not any(offer.name == "self_update" for offer in request.offers):
        return think(request)
    known = [line for line in read_self(home).splitlines() if line.startswith("- Learning")]
    content = "\n".join([*known, f"- Learning {len(known) + 1}."])
    return growing("", named, section="Recent Learnings", content=content)(request)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: reads /proc")
async def test_thirty_days_of_rituals_and_reflections_in_one_process_keep_at_most_five_megabytes_more(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with open_ritual_town(tmp_path, ("rowan",), kind=RitualProcess) as town:
        soul, owner, kept = town.souls["rowan"], town.github.find("owner"), list[float]()
        assert isinstance(soul, RitualProcess)
        assert owner
        write_atomic(soul.home.self_md, soul.home.self_md.read_text().replace("@rowan.test", "@owner.test"))
        town.mind.answer = lambda request: learning(soul.home, request)
        for day in range(DAYS):
            town.sleep_until(MONDAY + timedelta(days=day))
            before = len(town.memos)
            await town.live(120, step_s=1800)
            for memo in town.memos[before:]:
                town.github.write_comment(town.repo, memo, owner, f"Look at gauge {day} first.")
            town.mind.asked.clear()
            kept.append(soul.resident_mib())
        grown = [one for one in versions(soul.home) if one.by == "soul"]
        assert len(town.memos) == WEEKDAYS
        assert len(grown) >= WEEKDAYS
        assert all(one.reason and one.cites for one in grown)
        more = kept[-1] - kept[WARM_DAYS - 1]
        with capfd.disabled():
            told = f"{kept[WARM_DAYS - 1]:.1f} MiB after {WARM_DAYS} days, {kept[-1]:.1f} MiB after {DAYS}"
            sys.stdout.write(f"\n{told}; {len(grown)} changes of SELF.md, {len(town.memos)} memos\n")
        assert more <= MOST_MORE_MIB, kept
