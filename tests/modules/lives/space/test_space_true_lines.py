"""True answers of many kinds are said: what single words suspect is for the model to judge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modules.lives.space.types import HistoryEntry
from modules.lives.space.validator import validate_space_message
from tests.modules.lives.space.test_space_validator import NOW, OPEN, Judge, context

ASKED = "Rebecca, open an issue for the clock in acme/site."
"""What the host asked for where a line names nothing else; Rebecca makes it."""

TRUE_LINES: list[tuple[str, str, tuple[str, ...]]] = [
    ("Give me the steps, numbered.", "1. Stop the clock.\n2. Set it.\n3. Start it at noon.", ()),
    ("Which options do we have?", "- keep the clock\n- buy a new one\n- do without", ()),
    ("What did you measure?", "Three things: (1) 12 ms cold, (2) 3 ms warm, (3) 40 ms on a full disk.", ()),
    ("When did you see it?", "As I said this morning, the clock stopped at midnight, and only in Lisbon.", ()),
    ("What was the error last week?", "I don't remember that; can you paste it?", ()),
    ("Do you know where the log is?", "No. Where was it filed last time? I have only seen the build log.", ()),
    ("Do you agree?", "I agree.", ()),
    ("Is that right, Marvin?", "Exactly.", ("The clock counts in UTC.",)),
    ("Shall we use UTC?", "I agree, and the logs of March prove it: all 41 faults fell on the change of the hour.", ()),
    ("Thanks, that is all!", "You're welcome!", ()),
    (ASKED, "Rebecca, the acceptance criteria of #12 still hold; nothing has changed since.", ()),
    ("What should the issue contain?", "It should contain the time zone and the hour at which the clock stops.", ()),
    ("How would you lay out the plan?", "I'd structure it by room: hall first, then kitchen, then attic.", ()),
    ("Anything to add?", "I'd add the time zone: without it nobody sees the fault in Lisbon.", ()),
    ("Is something missing?", "One more thing: the clock has no battery.", ()),
    ("Can you look at the log?", "I'll look at it now and tell you what I see.", ()),
    ("What do you do next?", "I'll read the two open pull requests, since nobody has.", ()),
    ("Who reviews it?", "Happy to review once Rebecca opens it, since I know that file.", ()),
    ("Will you start?", "I'll wait for Rebecca's measurement, because the fix depends on it.", ()),
    ("Which repo is the clock in?", "acme/clock, not acme/site. Which repo did you have in mind for the issue?", ()),
    ("Where should we meet?", "Where do you live? Lisbon would suit me.", ()),
    ("Is the plan good?", "The plan could fail at step 3: nobody has the key of the attic.", ()),
    ("Why not tin?", "Slate lasts a shorter time than copper.", ("Slate lasts longer than copper.",)),
    (
        "Should backups verify?",
        "No: nightly backups should not verify checksums before rotating archives.",
        ("Nightly backups should verify checksums before rotating archives.",),
    ),
    ("And how many days?", "Keep backup archives 90 days online.", ("Keep backup archives 30 days online.",)),
    ("Who trusts whom?", "The client trusts the server.", ("The server trusts the client.",)),
    ("In one word, what is the cause?", "Rain.", ("It is the rain.",)),
    (ASKED, "I won't open a second issue; Rebecca's is enough.", ()),
    ("What happened at midnight?", "The server ran out of disk, and the clock froze with it.", ()),
    (
        "Can you help me word it?",
        'Let me offer this: "The clock stops at 00:00 in Lisbon and starts when reloaded."',
        (),
    ),
]


@pytest.mark.parametrize("owns", [True, False])
async def test_of_thirty_true_lines_at_most_one_is_held(*, owns: bool) -> None:
    suspected, held = 0, []
    for asked, line, said in TRUE_LINES:
        message, commitments, snapshot = context(line, is_owner=owns, request=OPEN, agent_messages=said)
        host = HistoryEntry("h", "host", asked, NOW, is_host=True)
        case = (message, commitments, replace(snapshot, history=(*snapshot.history, host)))
        suspected += bool(validate_space_message(*case).suspected)
        if (await Judge(confirms=False).validated(*case)).stop:
            held.append(line)
    assert len(TRUE_LINES) == 30
    assert suspected >= 10  # or these lines would show nothing
    assert len(held) <= 1, held
