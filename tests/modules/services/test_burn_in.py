"""A version on trial: how its figures are judged, how its hours count, and that it is put back only once."""

import json
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.journal.figures import GoodShare, VersionFigures, figures_around, newest_entry
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry, EntryKind
from modules.runtime.program import ProgramVersion
from modules.services.burn_in import (
    BURN_IN_S,
    TICK_S,
    HomeProgram,
    current,
    note_end,
    note_lived,
    note_start,
    problem_of,
    take_over,
    verdict,
)
from tests.fresh_database import in_memory, open_database

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD, NEW, NEWER = (ProgramVersion(one, one * 64, 37) for one in "abc")
FINE = GoodShare(40, 8, 0.9)


def figures(answered: GoodShare = FINE, taken: GoodShare = FINE, **faults: int) -> VersionFigures:
    return VersionFigures(faults, answered, taken)


def on_trial() -> sqlite3.Connection:
    connection = in_memory()
    note_lived(connection, OLD, is_settled=True)
    assert take_over(connection, NEW)
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


@pytest.mark.parametrize("problem", ["", "the heartbeat failed"])
def test_the_hours_of_a_trial_are_ticks_that_were_lived_and_at_their_end_a_good_version_stays(problem: str) -> None:
    connection, ticks = on_trial(), int(BURN_IN_S / TICK_S)
    for tick in range(1, ticks):
        if tick % 700 == 0:
            note_end(connection)
            note_start(connection, NEW)
        known = note_lived(connection, NEW, is_settled=False)
        assert known
        assert (known.before, known.lived_s) == (OLD, tick * TICK_S)
    known = note_lived(connection, NEW, problem, is_settled=True)
    assert known
    assert (known.program, known.before, known.bad) == (NEW, OLD if problem else None, problem)
    assert note_start(connection, NEW) == known


def test_three_starts_in_a_row_that_did_not_last_are_a_crash_loop_and_an_orderly_end_makes_none() -> None:
    connection = on_trial()
    for _ in range(9):
        note_start(connection, NEW)
        note_start(connection, NEW)
        note_end(connection)
    for _ in range(9):
        note_start(connection, NEW)
        note_start(connection, NEW)
        note_lived(connection, NEW, is_settled=True)
    for _ in range(3):
        known = note_start(connection, NEW)
        assert known
        assert not known.bad
    known = note_start(connection, NEW)
    assert known
    assert known.bad == "it crashed 3 times in a row"


def test_a_version_goes_back_once_and_what_goes_wrong_with_the_one_before_changes_nothing() -> None:
    connection = on_trial()
    assert note_lived(connection, NEW, "the heartbeat failed", is_settled=True)
    decided = current(connection)
    assert decided
    assert decided.bad == "the heartbeat failed"
    for _ in range(9):
        assert note_start(connection, NEW) == decided
        assert note_start(connection, OLD) == decided
        assert problem_of(connection) == ""
        assert note_lived(connection, OLD, is_settled=True) == decided


def test_the_version_before_of_a_bad_one_is_the_one_to_which_the_next_goes_back() -> None:
    connection = on_trial()
    note_lived(connection, NEW, "bad", is_settled=True)
    begun = take_over(connection, NEWER)
    assert begun
    assert (begun.program, begun.before) == (NEWER, OLD)


def test_the_owner_takes_over_a_bad_version_all_the_same_by_a_second_upgrade() -> None:
    connection = on_trial()
    note_lived(connection, NEW, "bad", is_settled=True)
    assert take_over(connection, NEW) is None
    for _ in range(9):
        assert note_start(connection, NEW) == HomeProgram(NEW)
    assert take_over(connection, OLD)


@pytest.mark.parametrize("who", [OLD, NEWER])
def test_a_trial_ends_where_the_owner_installs_another_version(who: ProgramVersion) -> None:
    connection = on_trial()
    assert note_start(connection, who) == HomeProgram(OLD)
    assert note_lived(connection, who, is_settled=True) == HomeProgram(who)


def test_only_a_version_that_lived_here_and_reads_the_database_as_it_is_comes_before_another() -> None:
    connection = in_memory()
    assert note_start(connection, OLD) is None
    assert take_over(connection, OLD) is None
    assert note_lived(connection, OLD, is_settled=False) is None
    assert note_lived(connection, OLD, is_settled=True) == HomeProgram(OLD)
    assert take_over(connection, OLD) is None
    changed = replace(NEW, schema=OLD.schema + 1)
    assert take_over(connection, changed) is None
    assert note_start(connection, changed) == HomeProgram(OLD)
    assert take_over(connection, replace(NEWER, schema=changed.schema)) is None
    assert note_lived(connection, changed, is_settled=True) == HomeProgram(changed)
    assert take_over(connection, replace(NEWER, schema=changed.schema))


CRAFTED: dict[str, dict[str, object]] = {
    "no starts": {"starts": [3]},
    "hours in words": {"lived_s": "x"},
    "more hours than there are": {"lived_s": -1e300},
    "hours without an end": {"lived_s": float("nan")},
    "a beginning that is no number": {"since": "x"},
    "a beginning before all entries": {"since": -1},
    "a beginning after all entries": {"since": 2**63},
    "a reason that is none": {"bad": 7},
    "a hash that is none": {"before": {"version": "1", "fingerprint": 7, "schema": 37}},
    "a version that is none": {"program": {"fingerprint": ["x"]}},
}
NO_TRIALS = ("", "no", "[]", "{}", '{"program": 1, "before": {}}', '{"program": {"path": "x"}}')


@pytest.mark.parametrize(
    "text",
    [*NO_TRIALS, *(json.dumps({"program": asdict(NEW), "before": asdict(OLD)} | one) for one in CRAFTED.values())],
)
def test_a_mark_that_is_no_trial_is_none_and_keeps_no_soul_from_starting(text: str) -> None:
    connection, other = in_memory(), in_memory()
    for one in (connection, other):
        one.execute("INSERT INTO marks (name, value) VALUES (?, ?)", (marks.PROGRAM, text))
        assert current(one) is None
    assert problem_of(connection) == ""
    assert note_start(connection, NEW) is None
    assert take_over(connection, NEW) is None
    assert note_lived(connection, NEW, is_settled=False) is None
    assert note_lived(other, NEW, "bad", is_settled=False) is None


def post(who: str, number: int) -> str:
    return f"at://did:plc:{who}/app.bsky.feed.post/{number}"


class Told:
    """A journal in which kit, ada and bo were answered on each of the four days before the trial begins."""

    def __init__(self, database: Database) -> None:
        self.clock = FakeClock(NOW)
        self.journal = Journal(database, SilentConsole(), self.clock, Redactor())
        self._database = database
        self._since = 0

    async def tells_of_before(self) -> None:
        for number in range(4):
            for who in ("kit", "ada", "bo"):
                await self.decided(who, number, "replied", "said")
            self.clock.jump(86_400)
        self._since = await self._database.read(newest_entry)

    async def decided(self, who: str, number: int, act: str, code: str = "") -> None:
        kind: EntryKind = "error" if code == "failed" else "decision"
        data = {"act": act, "code": code, "kind": "post"}
        uri, dids = post(who, number), (f"did:plc:{who}",)
        await self.journal.record(Entry(kind, "work", "Of a post", trigger_uri=uri, data=data, dids=dids))

    async def thought(self, provenance: str, **call: str) -> None:
        data = {"calls": [{"tool": "x", **call}], "provenance": provenance, "sank_to": provenance}
        await self.journal.record(Entry("model", "work", "Thought", data=data))

    async def faulty(self, loop: str, times: int) -> None:
        for _ in range(times):
            await self.journal.record(Entry("error", loop, "Failed", data={"trace": "…"}))

    async def figures(self) -> tuple[VersionFigures, VersionFigures]:
        return await self._database.read(partial(figures_around, since=self._since))

    async def problem(self) -> str:
        return verdict(*await self.figures())


@pytest.fixture
async def told(tmp_path: Path) -> AsyncIterator[Told]:
    async with await open_database(tmp_path / "soul.db") as database:
        told = Told(database)
        await told.tells_of_before()
        yield told


async def test_one_known_person_counts_once_however_much_they_wrote(told: Told) -> None:
    for number in range(10, 60):
        await told.decided("kit", number, "dropped", "failed")
        await told.decided("kit", number + 50, "dropped", "too-late")
        await told.decided("kit", number + 100, "silent")
    await told.decided("ada", 10, "replied", "said")
    await told.decided("bo", 10, "liked")
    before, now = await told.figures()
    assert before.answered == GoodShare(12, 3, 1.0)
    assert now.answered == GoodShare(52, 3, 2 / 3)
    for number in range(10, 20):
        await told.decided("ada", number, "dropped", "failed")
    assert (await told.problem()).startswith("only ")


async def test_nothing_that_strangers_bring_about_puts_a_version_back(told: Told) -> None:
    await told.thought("owner", error="")
    for number in range(50):
        who = f"fresh{number}"
        await told.decided(who, 1, "replied", "said")
        for again in range(2, 6):
            await told.decided(who, again, "dropped", "failed")
        await told.thought("stranger", error="too long")
        await told.thought("peer", error="too long")
    for loop in ("awareness", "work", "message-others", "github-awareness", "space-participation"):
        await told.faulty(loop, 9)
    assert await told.problem() == ""
    _, now = await told.figures()
    assert now == VersionFigures({}, GoodShare(), GoodShare(1, 1, 1.0))


@pytest.mark.parametrize("kind", ["schedule", "heartbeat-turn", "ritual", "reflection"])
async def test_own_work_that_fails_again_and_again_puts_a_version_back(told: Told, kind: str) -> None:
    data = {"act": "dropped", "code": "failed", "kind": kind}
    for number in range(5):
        assert await told.problem() == ""
        await told.journal.record(Entry("error", "work", "Failed", trigger_uri=f"{kind}:{number}", data=data))
    assert (await told.problem()).startswith(f"work/{kind} failed 5 times")


async def test_own_turns_of_which_much_is_sent_back_put_a_version_back(told: Told) -> None:
    for _ in range(10):
        await told.thought("self", error="too long", intent_id="1")
    await told.tells_of_before()
    for _ in range(10):
        await told.thought("self", error="too long")
    assert await told.problem() == "100% of the turns had something sent back, after 0%"


@pytest.mark.parametrize(("days", "is_found"), [(-400, True), (0, True), (3, True), (400, False)])
async def test_a_clock_that_is_set_makes_no_fault_new_and_hides_none_but_with_all_that_was_before(
    told: Told, days: int, *, is_found: bool
) -> None:
    await told.faulty("control", 1)
    await told.tells_of_before()
    told.clock.jump(days * 86_400)
    await told.journal.prune()
    await told.faulty("control", 9)
    assert await told.problem() == ""
    await told.faulty("heartbeat", 5)
    assert (await told.problem()).startswith("heartbeat failed 5 times") == is_found
