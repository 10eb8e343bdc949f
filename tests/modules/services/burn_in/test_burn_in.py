"""A version on trial: what its figures say, how its hours count, and that it goes back only once."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from common.clock import FakeClock, iso
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.journal.figures import GoodShare, VersionFigures, figures_between
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry, EntryKind
from modules.runtime.program import ProgramVersion
from modules.services.burn_in.burn_in import begin, current, note_end, note_lived, note_settled, note_start, problem_of
from modules.services.burn_in.policy import BURN_IN_S, verdict
from tests.fresh_database import in_memory, open_database

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD, NEW, NEWER = (ProgramVersion(one, one * 64, 37) for one in "abc")
FINE = GoodShare(40, 8, 0.9)


def figures(answered: GoodShare = FINE, taken: GoodShare = FINE, **faults: int) -> VersionFigures:
    return VersionFigures(faults, answered, taken)


def on_trial() -> sqlite3.Connection:
    connection = in_memory()
    note_settled(connection, OLD)
    assert begin(connection, NEW, NOW)
    return connection


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (figures(), figures(), ""),
        (figures(), figures(heartbeat=4), ""),
        (figures(), figures(heartbeat=5), "heartbeat failed 5 times"),
        (figures(heartbeat=1), figures(heartbeat=50), ""),
        (figures(), figures(GoodShare(10, 3, 0.45)), "only 45% of what was to be answered was, after 90% before"),
        (figures(), figures(GoodShare(10, 3, 0.46)), ""),
        (figures(), figures(GoodShare(9, 3, 0.0)), ""),
        (figures(), figures(GoodShare(100, 2, 0.0)), ""),
        (figures(GoodShare()), figures(GoodShare(100, 9, 0.0)), ""),
        (figures(), figures(taken=GoodShare(10, 3, 0.2)), "80% of the turns had something sent back, after 10%"),
    ],
)
def test_a_version_is_bad_by_a_new_fault_or_a_fallen_figure_and_not_by_little(
    before: VersionFigures, now: VersionFigures, said: str
) -> None:
    assert verdict(before, now).startswith(said)
    assert bool(verdict(before, now)) == bool(said)


def test_the_hours_of_a_trial_are_those_that_were_lived_and_at_their_end_the_version_stays() -> None:
    connection = on_trial()
    for life in range(4):
        later = NOW + timedelta(days=10 * life)
        assert note_start(connection, NEW, later, begins=False)
        known = note_lived(connection, BURN_IN_S / 4, "", later)
        note_end(connection)
        assert (known.lived_s if known else BURN_IN_S) == BURN_IN_S / 4 * (life + 1)
    assert known is None
    assert note_start(connection, NEW, NOW, begins=False) is None


def test_three_starts_in_a_row_that_did_not_last_are_a_crash_loop_and_an_orderly_end_makes_none() -> None:
    connection = on_trial()
    for _ in range(9):
        note_start(connection, NEW, NOW, begins=False)
        note_start(connection, NEW, NOW, begins=False)
        note_end(connection)
    for _ in range(9):
        note_start(connection, NEW, NOW, begins=False)
        note_start(connection, NEW, NOW, begins=False)
        note_settled(connection, NEW)
    for _ in range(3):
        known = note_start(connection, NEW, NOW, begins=False)
        assert known
        assert not known.bad
    known = note_start(connection, NEW, NOW, begins=False)
    assert known
    assert known.bad == "it crashed 3 times in a row"


def test_a_version_goes_back_once_and_what_goes_wrong_with_the_one_before_changes_nothing() -> None:
    connection = on_trial()
    assert note_lived(connection, 60.0, "the heartbeat failed", NOW)
    decided = current(connection)
    assert decided
    assert decided.bad == "the heartbeat failed"
    for _ in range(9):
        assert note_start(connection, NEW, NOW, begins=False) == decided
        assert note_start(connection, OLD, NOW, begins=False) == decided
        assert problem_of(connection, NOW) == ""
        assert note_lived(connection, BURN_IN_S, "the same", NOW) is None


def test_the_version_before_of_a_bad_one_is_the_one_to_which_the_next_goes_back() -> None:
    connection = on_trial()
    note_settled(connection, NEW)
    note_lived(connection, 60.0, "bad", NOW)
    begun = begin(connection, NEWER, NOW)
    assert begun
    assert (begun.program, begun.before) == (NEWER, OLD)


def test_the_owner_takes_over_a_bad_version_all_the_same_by_a_second_upgrade() -> None:
    connection = on_trial()
    note_lived(connection, 60.0, "bad", NOW)
    assert begin(connection, NEW, NOW) is None
    assert current(connection) is None
    assert begin(connection, OLD, NOW)


@pytest.mark.parametrize("who", [OLD, NEWER])
def test_a_trial_ends_where_the_owner_installs_another_version(who: ProgramVersion) -> None:
    connection = on_trial()
    assert note_start(connection, who, NOW, begins=False) is None
    assert current(connection) is None


def test_an_image_is_on_trial_from_its_first_start_and_only_a_known_version_comes_before_one() -> None:
    connection = in_memory()
    assert note_start(connection, OLD, NOW, begins=True) is None
    assert begin(connection, OLD, NOW) is None
    note_settled(connection, OLD)
    assert note_start(connection, OLD, NOW, begins=True) is None
    begun = note_start(connection, NEW, NOW, begins=True)
    assert begun
    assert (begun.program, begun.before, begun.starts) == (NEW, OLD, 1)


@pytest.mark.parametrize("text", ["", "no", "[]", "{}", '{"program": 1, "before": {}}', '{"program": {"path": "x"}}'])
def test_a_mark_that_is_no_trial_is_none(text: str) -> None:
    connection = in_memory()
    connection.execute("INSERT INTO marks (name, value) VALUES ('burn_in', ?)", (text,))
    assert current(connection) is None
    assert note_lived(connection, 60.0, "bad", NOW) is None


async def test_one_person_counts_once_however_much_they_wrote(tmp_path: Path) -> None:
    clock = FakeClock(NOW)

    def post(who: str, number: int) -> str:
        return f"at://did:plc:{who}/app.bsky.feed.post/{number}"

    async with await open_database(tmp_path / "soul.db") as database:
        journal = Journal(database, SilentConsole(), clock, Redactor())

        async def decided(who: str, number: int, act: str, code: str = "") -> None:
            kind: EntryKind = "error" if code == "failed" else "decision"
            data = {"act": act, "code": code, "kind": "post"}
            uri, dids = post(who, number), (f"did:plc:{who}",)
            await journal.record(Entry(kind, "work", "Of a post", trigger_uri=uri, data=data, dids=dids))

        for who in ("kit", "ada", "bo"):
            await decided(who, 1, "replied", "said")
        for number in range(50):
            await decided("mallory", number, "dropped", "failed")
            await decided("mallory", number + 50, "dropped", "too-late")
            await decided("mallory", number + 100, "silent")
            calls = [{"tool": "bluesky_reply", "error": "too long"}]
            uri = post("mallory", number)
            await journal.record(Entry("model", "work", "Thought", trigger_uri=uri, data={"calls": calls}))
        await journal.record(Entry("model", "work", "Thought", data={"calls": [{"tool": "x", "error": ""}]}))
        refused = [{"tool": "x", "error": "not now", "intent_id": "1"}]
        await journal.record(Entry("model", "work", "Thought", data={"calls": refused}))
        for _ in range(5):
            await journal.record(Entry("error", "heartbeat", "Failed", data={"trace": "…"}))
            await journal.record(Entry("error", "awareness", "Bluesky gives no answer"))
        clock.jump(1)
        found = await database.read(lambda connection: figures_between(connection, iso(NOW), iso(clock.now())))
    assert found.faults == {"work/post": 1, "heartbeat": 5}
    assert found.answered == GoodShare(53, 4, 0.75)
    assert found.taken == GoodShare(52, 2, 0.5)
