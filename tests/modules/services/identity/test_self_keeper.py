"""Proves which changes of SELF.md the keeper applies, holds and refuses, and that no text is lost.

Proves the pure rules for this by tables and properties, and what is deleted from SELF.md when somebody is forgotten:
some of it at once, the rest only with the owner's approval. A SELF.md that is too large or not text stops the SOUL with
one line.
"""

import asyncio
import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.clock import FakeClock
from common.constants import SELF_MAX_BYTES
from common.errors import IdentityError, NotWaiting, StorageError
from common.person import Person
from common.redact import Redactor
from modules.runtime.home import Home, check_self, read_self
from modules.services.identity.entries import SELF
from modules.services.identity.history import HISTORY_KEPT, SelfHistory, held_documents, rejected_edits
from modules.services.identity.keeper import without
from modules.services.identity.policy import hold_reason, limits_reason, loss, refusal, sections_moved, with_section
from tests.journals import told_of
from tests.modules.services.identity.self_home import BORN, SelfHome

GROWN = BORN + "- Slate, because it remembers the rain.\n"
POST = "at://did:plc:kit/app.bsky.feed.post/3l"
TIRED = "# Rowan\n\nNothing.\n"


async def test_a_change_is_written_and_what_was_is_kept_with_the_reason(self_home: SelfHome) -> None:
    change = await self_home.keeper.change(GROWN, reason="kit spoke of roofs", by="soul", cites=[POST])
    assert (change.status, self_home.text) == ("changed", GROWN)
    assert self_home.texts == [GROWN, BORN]
    newest, oldest = self_home.versions
    assert (newest.name, newest.by, newest.reason, newest.cites) == (
        change.version,
        "soul",
        "kit spoke of roofs",
        (POST,),
    )
    assert (oldest.by, oldest.reason) == ("hand", "as it was found")
    told = json.loads((self_home.home.memory / "self-history" / f"{newest.name}.json").read_text())
    assert told["sha256"] == newest.sha256
    assert told["at"] == "2026-01-05T12:00:00.000Z"


async def test_a_change_is_told_in_the_journal_under_the_post_it_grew_from(self_home: SelfHome) -> None:
    await self_home.keeper.change(GROWN, reason="kit spoke of roofs", by="soul", cites=[POST])
    (stored,) = await told_of(self_home.journal, POST)
    assert (stored.entry.summary, stored.entry.reason) == (
        "SELF.md changed; what was written by hand is kept as 20260105T120000000Z",
        "kit spoke of roofs",
    )


async def test_the_same_text_again_leaves_no_trace(self_home: SelfHome) -> None:
    await self_home.keeper.change(GROWN, reason="first", by="soul")
    files = self_home.files
    assert (await self_home.keeper.change(GROWN, reason="again", by="soul")).status == "unchanged"
    assert self_home.files == files
    assert len(await self_home.told()) == 1


async def test_what_is_refused_changes_nothing_and_is_journalled(self_home: SelfHome) -> None:
    change = await self_home.keeper.change("hunter2-hunter2", reason="a whim", by="owner")
    assert change.status == "refused"
    assert (self_home.text, self_home.files) == (BORN, [])
    assert [data["status"] for data in await self_home.told()] == ["refused"]


async def test_the_soul_writes_no_heading_twice(self_home: SelfHome) -> None:
    change = await self_home.keeper.change("- Tin.\n\n## Slate\n\n## slate\n", reason="why", by="soul", section="New")
    assert (change.status, self_home.text) == ("refused", BORN)
    assert (await self_home.keeper.change("- Tin.", reason="why", by="soul", section="New")).status == "changed"


async def test_a_secret_in_the_reason_is_masked_wherever_it_is_kept(self_home: SelfHome) -> None:
    await self_home.keeper.change(GROWN, reason="they said hunter2-hunter2", by="soul")
    kept = "".join(path.read_text() for path in (self_home.home.memory / "self-history").glob("*.json"))
    assert "hunter2" not in kept
    assert "[redacted]" in kept


async def test_a_change_that_loses_most_of_the_text_waits_for_the_owner(self_home: SelfHome) -> None:
    change = await self_home.keeper.change(TIRED, reason="tired of myself", by="soul", cites=[POST])
    assert (change.status, self_home.text) == ("held", BORN)
    held = self_home.held
    assert held is not None
    assert (held.content, held.reason, held.cites) == (TIRED, "tired of myself", (POST,))
    assert "%" in held.why
    assert [data["status"] for data in await self_home.told()] == ["held"]


async def test_what_the_owner_approves_is_done_once_and_in_their_name(self_home: SelfHome) -> None:
    await self_home.keeper.change(TIRED, reason="tired of myself", by="soul", cites=[POST])
    change = await self_home.keeper.approve()
    assert change is not None
    assert (change.status, change.vanished, self_home.text) == ("changed", ("Voice",), TIRED)
    newest = self_home.versions[0]
    assert (newest.by, newest.reason, newest.cites) == ("owner", "tired of myself (approved by the owner)", (POST,))
    assert await self_home.keeper.approve() is None
    assert [data["status"] for data in await self_home.told()] == ["held", "changed"]


async def test_what_the_owner_rejects_is_gone_and_never_done(self_home: SelfHome) -> None:
    await self_home.keeper.change(TIRED, reason="tired of myself", by="soul")
    assert await self_home.keeper.reject() is not None
    assert (self_home.held, await self_home.keeper.approve(), await self_home.keeper.reject()) == (None, None, None)
    assert self_home.text == BORN
    assert [data["status"] for data in await self_home.told()] == ["held", "rejected"]


async def test_a_change_that_somebody_else_may_have_slipped_in_waits_however_small_it_is(self_home: SelfHome) -> None:
    change = await self_home.keeper.change(
        GROWN, reason="asked to", by="soul", hold="a stranger's words are in the turn"
    )
    assert (change.status, change.reason, self_home.text) == ("held", "a stranger's words are in the turn", BORN)
    change = await self_home.keeper.change(TIRED, reason="asked to", by="soul", hold="a stranger's words")
    assert change.reason.startswith("a stranger's words; it loses"), "the owner reads both"


async def test_what_the_owner_looked_at_cannot_be_swapped_for_something_else_before_their_yes(
    self_home: SelfHome,
) -> None:
    await self_home.keeper.change("# Rowan\n\nNobody saw this.\n", reason="before", by="soul")
    await self_home.keeper.change(TIRED, reason="first", by="soul")
    assert list(held_documents(self_home.home)) == [SELF]
    shown = SelfHistory(self_home.home).show_held()
    assert (shown and shown.content) == TIRED, "the newest waits, where nobody looked at the other"
    assert (await self_home.keeper.change(TIRED, reason="the same again", by="soul")).status == "held"
    other = await self_home.keeper.change("# Rowan\n\nSomething worse.\n", reason="second", by="soul", unasked=True)
    assert other.status == "refused"
    await self_home.keeper.approve()
    assert self_home.text == TIRED


async def test_the_owner_can_ask_for_another_than_they_looked_at_and_must_see_that_one_before_their_yes(
    self_home: SelfHome,
) -> None:
    await self_home.keeper.change(TIRED, reason="first", by="soul")
    shown = SelfHistory(self_home.home).show_held()
    await self_home.clock.advance(1.0)
    assert (await self_home.keeper.change("# Rowan\n\nAwake.\n", reason="they asked", by="soul")).status == "held"
    for seen in ("", shown.at if shown else "", "2026-01-01T00:00:00.000Z"):
        with pytest.raises(NotWaiting):
            await self_home.keeper.approve(seen)
    SelfHistory(self_home.home).show_held()
    await self_home.keeper.approve("")
    assert self_home.text == "# Rowan\n\nAwake.\n"


async def test_a_change_that_waits_is_gone_once_the_same_text_is_applied(self_home: SelfHome) -> None:
    await self_home.keeper.change(GROWN, reason="asked to", by="soul", hold="a stranger's words")
    assert (await self_home.keeper.change(GROWN, reason="asked to again", by="soul")).status == "changed"
    assert (self_home.text, self_home.held, held_documents(self_home.home)) == (GROWN, None, {})


@pytest.mark.parametrize("is_by_hand", [False, True])
async def test_what_waited_is_applied_to_the_text_of_the_day_of_the_yes(
    self_home: SelfHome,
    is_by_hand: bool,  # noqa: FBT001 - a table
) -> None:
    await self_home.keeper.change(GROWN, reason="asked to", by="soul", hold="a stranger's words")
    newer = BORN.replace("Plain and warm", "Plain, warm") + "- Patience.\n"
    if is_by_hand:
        self_home.home.self_md.write_text(newer)
    else:
        await self_home.keeper.change(newer, reason="the owner asked", by="soul")
    both = newer.replace("- Patience.\n", "- Slate, because it remembers the rain.\n- Patience.\n")
    assert (self_home.held and self_home.held.content) == both, "what is shown is what would be"
    change = await self_home.keeper.approve()
    assert (change and change.status, self_home.text, self_home.held) == ("changed", both, None)


@pytest.mark.parametrize("later", [1, HISTORY_KEPT + 1])
async def test_what_waited_and_fits_no_more_is_told_and_neither_it_nor_the_newer_text_is_lost(
    self_home: SelfHome, later: int
) -> None:
    wanted = BORN.replace("Plain and warm", "Loud")
    await self_home.keeper.change(wanted, reason="asked to", by="soul", hold="a stranger's words")
    for number in range(later):
        newer = f"{BORN.replace('Plain and warm', 'Plain, warm')}- {number}\n"
        await self_home.clock.advance(1)
        await self_home.keeper.change(newer, reason="the owner asked", by="soul")
    with pytest.raises(NotWaiting, match="were changed since"):
        await self_home.keeper.approve()
    assert self_home.text == newer
    assert (self_home.held and self_home.held.content) == wanted
    assert await self_home.keeper.reject() is not None
    assert rejected_edits(self_home.home) == [], "the owner drops a leftover, and rejects no wish of the SOUL"


async def test_who_is_forgotten_leaves_both_texts_and_what_waits_still_fits(self_home: SelfHome) -> None:
    kit = BORN + "- Kit likes tin.\n"
    await self_home.keeper.change(kit, reason="met", by="owner")
    await self_home.keeper.change(kit + "- Slate.\n", reason="asked to", by="soul", hold="a stranger's words")
    gone = await self_home.keeper.forget(lambda text: "Kit" in text, lambda text: "Kit" in text, reason="asked")
    assert (gone.status, self_home.text) == ("changed", BORN)
    await self_home.keeper.approve()
    assert self_home.text == BORN + "- Slate.\n"


async def test_the_owner_may_lose_as_much_as_they_like(self_home: SelfHome) -> None:
    assert (await self_home.keeper.change(TIRED, reason="start anew", by="owner")).status == "changed"


async def test_a_text_that_grew_a_secret_after_it_was_held_is_refused_and_goes_on_waiting(self_home: SelfHome) -> None:
    await self_home.keeper.change(TIRED, reason="first", by="soul")
    path = self_home.home.memory / "self-held.json"
    path.write_text(path.read_text().replace("Nothing.", "hunter2-hunter2"))
    change = await self_home.keeper.approve()
    assert change is not None
    assert (change.status, self_home.text) == ("refused", BORN)
    assert self_home.held is not None


async def test_an_edit_by_hand_is_kept_before_it_is_overwritten(self_home: SelfHome) -> None:
    await self_home.keeper.change(GROWN, reason="first", by="soul")
    by_hand = GROWN + "- And tin.\n"
    self_home.home.self_md.write_text(by_hand)
    await self_home.clock.advance(60)
    change = await self_home.keeper.change(GROWN + "- And thatch.\n", reason="second", by="soul")
    assert self_home.texts == [GROWN + "- And thatch.\n", by_hand, GROWN, BORN]
    kept = self_home.versions[1]
    assert (kept.by, kept.reason, kept.name) == ("hand", "edited by hand", change.by_hand)


async def test_an_edit_by_hand_is_noticed_at_the_next_start_once(self_home: SelfHome) -> None:
    await self_home.keeper.wake()
    self_home.home.self_md.write_bytes(b"\xff not even UTF-8")
    await self_home.keeper.wake()
    await self_home.keeper.wake()
    assert [version.reason for version in self_home.versions] == ["edited by hand", "as it was found"]
    assert [message for _, message, _ in self_home.console.lines] == [
        "SELF.md, as it was found, is kept in the history",
        "SELF.md, edited by hand, is kept in the history",
    ]


async def test_rolling_back_is_a_change_too_and_can_itself_be_rolled_back(self_home: SelfHome) -> None:
    await self_home.keeper.change(GROWN, reason="first", by="soul")
    first = self_home.find("20260105T120000000")
    assert first is not None
    assert (await self_home.keeper.roll_back(first)).status == "changed"
    assert self_home.texts == [BORN, GROWN, BORN]
    assert self_home.versions[0].reason == f"back to {first.name}"


async def test_the_last_fifty_are_kept(self_home: SelfHome) -> None:
    for number in range(HISTORY_KEPT + 5):
        await self_home.clock.advance(1)
        await self_home.keeper.change(f"{GROWN}- {number}\n", reason=f"number {number}", by="soul")
    assert len(self_home.files) == 2 * HISTORY_KEPT
    reasons = [version.reason for version in self_home.versions]
    assert reasons == [f"number {number}" for number in reversed(range(5, HISTORY_KEPT + 5))]


async def test_many_at_once_each_find_the_text_of_the_one_before(self_home: SelfHome) -> None:
    texts = [f"{BORN}- {number}\n" for number in range(10)]
    changes = await asyncio.gather(*(self_home.keeper.change(text, reason="on", by="soul") for text in texts))
    assert {change.status for change in changes} == {"changed"}
    kept = self_home.texts
    assert sorted(kept) == sorted([*texts, BORN])
    assert kept[0] == self_home.text


async def test_a_disk_that_refuses_leaves_everything_as_it_was(self_home: SelfHome) -> None:
    (self_home.home.memory / "self-history").write_text("in the way")
    with pytest.raises(StorageError):
        await self_home.keeper.change(GROWN, reason="first", by="soul")
    assert (self_home.text, await self_home.told()) == (BORN, [])


def test_a_history_that_somebody_else_holds_is_waited_for(tmp_path: Path) -> None:
    entered = threading.Event()

    def enter() -> None:
        with SelfHistory(Home.at(tmp_path)).alone():
            entered.set()

    other = threading.Thread(target=enter)
    with SelfHistory(Home.at(tmp_path)).alone():
        other.start()
        assert not entered.wait(0.1)
    other.join(5)
    assert entered.is_set()


REDACTOR = Redactor(["hunter2-hunter2"])
PROSE = "Slate remembers the rain, and tin forgets it by noon.\n"


@pytest.mark.parametrize(
    ("content", "reason", "word"),
    [
        ("", "because", "empty"),
        ("# Rowan \ud83d", "because", "UTF-8"),
        ("ä" * (SELF_MAX_BYTES // 2 + 1), "because", "bytes"),
        ("# Rowan\nMy password is hunter2-hunter2.", "because", "secret"),
        ("# Rowan\nMy key is sk-" + "a1" * 12, "because", "secret"),
        ("# Rowan\n", " ", "reason"),
    ],
)
def test_what_can_never_be_a_self_is_refused_by_name(content: str, reason: str, word: str) -> None:
    assert word in refusal(content, reason, REDACTOR)


@pytest.mark.parametrize(
    "content", ["# Rowan\n", "no heading at all", "x" * SELF_MAX_BYTES, "🌧" * (SELF_MAX_BYTES // 4)]
)
def test_whatever_else_is_said_is_the_souls_own_affair(content: str) -> None:
    assert refusal(content, "because", REDACTOR) == ""


@pytest.mark.parametrize(
    ("old", "new", "lost", "total"),
    [
        ("", PROSE, 0, 0),
        ("one two", "two; ONE!", 0, 6),
        ("one two", "one", 3, 6),
        ("one one one", "one", 6, 9),
        ("# A heading\none\n### Another\n", "one", 0, 3),
        ("- **one**\n\n\n* `two`", "one\ntwo", 0, 6),
        ("#hashtags are words", "hashtags are words", 0, 16),
        ("雨の日は好き", "雨の日", 3, 6),
    ],
)
def test_a_loss_is_counted_in_letters_of_words_that_are_gone(old: str, new: str, lost: int, total: int) -> None:
    found = loss(old, new)
    assert (found.lost, found.total) == (lost, total)


@pytest.mark.parametrize(
    ("old", "new", "held"),
    [
        ("aa bb", "aa", False),
        ("aa bb c", "aa", True),
        ("# Only\n## Headings\n", "anything", False),
        (PROSE * 20, PROSE * 11, False),
        (PROSE * 20, PROSE * 9, True),
        (PROSE * 20, PROSE * 9 + "Something else of the very same length, no more. " * 11, True),
    ],
)
def test_a_change_is_held_when_more_than_half_of_the_text_would_go(old: str, new: str, held: bool) -> None:  # noqa: FBT001 - a table
    assert bool(hold_reason(old, new)) is held


@given(st.text(), st.text())
def test_a_text_with_something_added_loses_nothing(old: str, more: str) -> None:
    assert loss(old, f"{old}\n{more}").lost == 0


MECHANICS = "## Social Mechanics\n\n| Replies | 4 |\n"
VOICE = "## Voice\n\nPlain.\n"
RITUALS = "## Daily Rituals\n\n- **Watch** [daily] (garden)\n"


@pytest.mark.parametrize(
    ("old", "new", "appeared", "vanished"),
    [
        (VOICE, VOICE + MECHANICS, ("Social Mechanics",), ()),
        (VOICE + MECHANICS + RITUALS, VOICE, (), ("Social Mechanics", "Daily Rituals")),
        (VOICE, RITUALS, ("Daily Rituals",), ("Voice",)),
        (VOICE, "## My Voice\n\nLoud.\n", (), ()),
        (VOICE, "## Voice\n\n", (), ("Voice",)),
    ],
)
def test_the_sections_that_run_the_soul_are_missed_when_they_go(
    old: str, new: str, appeared: tuple[str, ...], vanished: tuple[str, ...]
) -> None:
    assert sections_moved(old, new) == (appeared, vanished)


WHOLE = (
    "# Rowan\n\nI'm rowan.\n\n---\n\n## Values\n\n- Rain.\n\n---\n\n## What I've Learned\n\n- Tin.\n\n---\n\n*today*\n"
)


@pytest.mark.parametrize(
    ("heading", "body", "old", "new"),
    [
        ("Values", "- Slate.", "- Rain.", "- Slate."),
        ("Values", "## Values\n\n- Slate.\n- Rain.", "- Rain.", "- Slate.\n- Rain."),
        ("what i’ve learned", "- Slate.", "- Tin.", "- Slate."),  # noqa: RUF001 - the apostrophe is under test
        ("Values", "```\n## Voice\n```", "- Rain.", "```\n## Voice\n```"),
        ("Voice", "Plain.", "*today*\n", "*today*\n\n## Voice\n\nPlain.\n"),
    ],
)
def test_one_section_changes_and_all_else_stays(heading: str, body: str, old: str, new: str) -> None:
    assert with_section(WHOLE, heading, body) == WHOLE.replace(old, new)


@pytest.mark.parametrize("heading", ["Goals", "# goals", "## Goals"])
def test_a_section_with_the_name_of_the_only_heading_is_all_of_the_file(heading: str) -> None:
    body = "# Goals\n\n- Ink.\n"
    assert with_section("# Goals\n\n- Slate.\n\n### Soon\n\n- Tin.\n", heading, "- Ink.") == body
    assert with_section("# Goals\n\n- Slate.\n", heading, body) == body


def test_a_heading_in_code_is_no_section() -> None:
    text = "# Rowan\n\n```\n## Values\n```\n"
    assert with_section(text, "Values", "- Rain.") == f"{text}\n## Values\n\n- Rain.\n"


@given(st.from_regex(r"[A-Za-z]{1,9}", fullmatch=True))
def test_a_section_that_was_written_can_be_written_again(heading: str) -> None:
    once = with_section(WHOLE, heading, "- Rain.")
    twice = with_section(with_section(WHOLE, heading, "- Slate."), heading, "- Rain.")
    assert once == twice


LIMITS = "## Social Mechanics\n\n| Signal | Threshold |\n|---|---|\n| Thread depth | 10 |\n"
RITUAL = "## Daily Rituals\n\n- **Roofs** [daily 09:00] (roofs)\n  Participants: @ada.test\n"


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (LIMITS, LIMITS.replace("10", "40"), "limits"),
        (LIMITS, PROSE, "limits"),
        (LIMITS, f"{LIMITS}\nI leave with a like.\n{PROSE}", ""),
        (PROSE, RITUAL, "@ada.test"),
        (RITUAL, RITUAL.replace("@ada.test", "@ada.test, @bob.test"), "@bob.test"),
        (RITUAL, RITUAL.replace("Roofs", "Gutters"), "@ada.test"),
        (RITUAL, RITUAL.replace("09:00", "10:00"), ""),
        (RITUAL, PROSE, ""),
        (PROSE, RITUAL.partition("  Participants")[0], ""),
    ],
)
def test_new_limits_and_new_guests_of_a_ritual_wait_for_the_owner(old: str, new: str, word: str) -> None:
    assert bool(limits_reason(old, new)) is bool(word)
    assert word in limits_reason(old, new)


PERSON = Person("did:plc:quillon", ("quillon.test",), ("Curiosity",))

ALONE = {
    "a bullet": (
        "## People\n\n- Sam.\n- did:plc:quillon taught me patience.\n- Kim.\n",
        "## People\n\n- Sam.\n- Kim.\n",
    ),
    "a bullet over two lines": ("- Patience, from\n  did:plc:quillon.\n- Kim.\n", "- Kim.\n"),
    "a numbered item": ("1. Kim.\n2. did:plc:quillon asked why.\n", "1. Kim.\n"),
    "an item below another": ("- People:\n  - did:plc:quillon\n  - Kim\n", "- People:\n  - Kim\n"),
    "a line of its own": ("# Rowan\n\nI met did:plc:quillon.\n\nI like rain.\n", "# Rowan\n\n\nI like rain.\n"),
    "line ends of Windows": ("- Kim.\r\n- did:plc:quillon.\r\n", "- Kim.\r\n"),
}
HELD = {
    "a paragraph of more lines": "I met @quillon.test\nand learned to wait.\n\nRain is loud.\n",
    "a heading": "# Rowan\n\n## @quillon.test\n\n- Patience.\n\n## Values\n\n- Rain.\n",
    "an item with items": "- @quillon.test\n  - Patience.\n- Kim.\n",
    "an item with a paragraph": "- @quillon.test\n\n  said so.\n\n- Kim.\n",
    "a line that leads a list": "From @quillon.test I have:\n\n- Patience.\n",
    "code": "```\nquillon.test\nx\n```\n\nRain.\n",
    "a row of a table": "| who | what |\n|---|---|\n| quillon.test | patience |\n\nRain.\n",
    "a handle alone, which may be anybody's by now": "- @quillon.test taught me patience.\n- Rain.\n",
    "a ritual": "# Rowan\n\nRain.\n\n## Daily Rituals\n\n- **Walk** [daily] (yard) with quillon.test\n",
}


@pytest.mark.parametrize("case", ALONE)
def test_what_goes_alone(case: str) -> None:
    before, after = ALONE[case]
    found = without(before, PERSON.is_named_in, PERSON.holds_did)
    assert found is not None
    assert (found.text, found.hold) == (after, "")


@pytest.mark.parametrize("case", HELD)
def test_what_waits_for_the_owner(case: str) -> None:
    found = without(HELD[case], PERSON.is_named_in, PERSON.holds_did)
    assert found is not None
    assert found.hold
    assert not PERSON.is_named_in(found.text)
    assert found.text.strip()


def test_a_text_that_is_about_nobody_else_cannot_become_any() -> None:
    assert without("# All about quillon.test\n\nHe hums.\n", PERSON.is_named_in, PERSON.holds_did) is None


def test_a_display_name_is_no_name_here() -> None:
    text = "- Curiosity is what I live by.\n- Rain.\n"
    found = without(text, PERSON.is_named_in, PERSON.holds_did)
    assert found is not None
    assert (found.text, found.hold) == (text, "")


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"# a\n" * (SELF_MAX_BYTES // 4 + 1), "is larger than 256 KiB"), (b"# Rowan \xff", "is not UTF-8 text")],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    home = Home.at(tmp_path)
    home.self_md.write_bytes(content)
    with pytest.raises(IdentityError, match=problem):
        check_self(home)
    assert read_self(home) == ""


@pytest.mark.parametrize("content", [None, b"#" * SELF_MAX_BYTES, b"\xef\xbb\xbf# Rowan"])
def test_a_missing_one_and_one_that_can_be_read_pass(tmp_path: Path, content: bytes | None) -> None:
    home = Home.at(tmp_path)
    if content is not None:
        home.self_md.write_bytes(content)
    check_self(home)
    assert read_self(home).startswith("#") is (content is not None)


def test_one_that_is_too_large_is_neither_copied_nor_replaced(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.self_md.write_bytes(b"a" * (SELF_MAX_BYTES + 1))
    with SelfHistory(home).alone() as history, pytest.raises(StorageError, match="larger than 256 KiB"):
        history.notice(FakeClock().now())
    assert not list((home.memory / "self-history").glob("*.md"))
