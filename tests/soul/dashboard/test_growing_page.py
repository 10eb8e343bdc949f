"""Proves what the owner's page shows of the SOUL's growth, and of a SOUL that sleeps."""

import html
import os
from datetime import timedelta
from urllib.parse import quote

from common.clock import SystemClock, iso
from modules.runtime.sleep_note import SleepNote, is_wake_requested, process_mark, write_note
from modules.services.skills.own import SkillDraft, switched
from tests.modules.services.craft.test_friction import turn
from tests.running_town import RunningTown, awake
from tests.soul.dashboard.test_dashboard import act, opened, panel


async def test_what_it_proposes_its_skills_and_its_wishes_are_told_and_a_sleeper_is_woken(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    with home.self_md.open("a") as own:
        own.write("\n## What I Want to Be Able to Do\n\n- Draw maps.\n")
    (skill := home.workspace / "skills/maps/SKILL.md").parent.mkdir(parents=True)
    skill.write_text(switched(SkillDraft.of("maps", "How I draw.", "Draw it.", ()).text, off=True))
    async with awake(home) as life, opened(home) as client:
        craft = life.app.lives.growth.craft
        await life.app.services.journal.record(turn())
        (friction,) = await craft.friction.count()
        evidence = {"occurrences": 3, "days": 2, "entries": friction.own_entries}
        begun = await craft.proposals.begin(friction.id, "", evidence)
        assert begun
        await craft.proposals.put(begun, rung="issue", state="making", why="I post often.")
        page = html.unescape((await client.get("/growing")).text)
        told, evidence_of_it = panel("proposals", page).split("<summary>The evidence</summary>")
        assert "An issue: prepared since" in told
        assert "it is made next" in told
        assert "To mend: tools: bluesky_post Wrong Fields, in own posts" in told
        assert told.count("I post often.") == 1
        assert "bluesky_post" in evidence_of_it
        assert "1 time on 1 day" in panel("friction", page)
        assert "maps (off)" in panel("skills", page)
        assert "Draw maps." in panel("wishes", page)
        name = begun.cause
        assert f'href="/why?of={quote(name)}"' in page
        assert "To mend: tools: bluesky_post" in (await client.get("/why", params={"of": name})).text
    ends = iso(SystemClock().now() + timedelta(hours=20))
    write_note(
        home.memory, SleepNote("rowan", "did:plc:r", iso(SystemClock().now()), ends, kept_by=process_mark(os.getpid()))
    )
    async with opened(home) as client:
        assert "Asleep until" in panel("alive", (await client.get("/")).text)
        assert await act(client, "wake") == "It wakes now"
        assert is_wake_requested(home.memory)
