"""Proves that the watcher looks for all SOULs that sleep as often as they ask, whatever becomes of one look."""

import asyncio
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from adapters.watch import SPENT, SleepWatch, watch_token
from common.clock import FakeClock, SystemClock, iso
from common.errors import ConfigError
from common.result import ApiResult, Err, Ok
from common.settings import Settings, settings_of
from modules.runtime.home import Home
from modules.runtime.sleep_note import Figures, SleepNote, is_noted, woke, write_note
from soul.watch.policy import BLIND_S, LOOKS_PER_S, OWN_TIMES_S, is_blind, is_over
from soul.watch.watcher import Sleeper, Source, Watcher
from tests.patience import until
from tests.running_town import PASSWORD, RunningTown
from town.serving import serve


@dataclass
class Looked:
    """A source that answers `found`, if that is None not before `answers` is set; `looks` counts the looks."""

    found: ApiResult[bool] | None
    service: str = "https://example.test"
    seen: dict[str, str] = field(default_factory=dict)
    slower: float = 1.0
    looks: int = 0
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    async def came(self) -> ApiResult[bool]:
        self.looks += 1
        if self.found is None:
            await self.answers.wait()
        assert self.found
        return self.found


CAME, NOTHING = Ok(data=True), Ok(data=False)


async def watched(
    folder: Path, readers: dict[str, Looked], seconds: int, *, back: timedelta = timedelta(), lost: bool = False
) -> list[str]:
    """Return who is woken within `seconds`; the clock is set back by `back` at first, or the note is `lost`."""
    clock, called = FakeClock(), list[str]()

    async def wake(name: str) -> bool:
        called.append(name)
        return True

    watcher = Watcher(lambda _: None, wake, clock)
    since, wake_at = clock.now() + back, clock.now() + back + timedelta(hours=20)
    note = SleepNote("rowan", "did:plc:rowan", iso(since), iso(wake_at), {"bluesky": 45.0})
    for name, reader in readers.items():
        (folder / name).mkdir(exist_ok=True)
        home = Home(folder, folder / name)
        write_note(home.memory, note)
        if lost:
            woke(home.memory)
        one = Sleeper(name, home, {"bluesky": Source(reader, clock.monotonic(), 45.0)}, note, edited=(0, 0, 0))
        watcher.sleepers[name] = one
    watching = asyncio.create_task(watcher.watch())
    for _ in range(seconds):
        await asyncio.sleep(0)
        await clock.advance(1)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    return called


async def test_a_service_that_does_not_answer_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    assert await watched(tmp_path, {"slow": Looked(None), "well": Looked(CAME)}, 60) == ["well"]


async def test_all_of_many_are_looked_for_in_time(tmp_path: Path) -> None:
    readers = {f"soul-{number}": Looked(CAME) for number in range(150)}
    assert len(await watched(tmp_path, readers, 45 + 150 // LOOKS_PER_S + 5)) == 150


async def test_nobody_sleeps_on_where_the_clock_was_set_back(tmp_path: Path) -> None:
    assert await watched(tmp_path, {"rowan": Looked(NOTHING)}, 3, back=timedelta(days=30)) == ["rowan"]
    assert await watched(tmp_path, {"rowan": Looked(NOTHING)}, 3) == []


async def test_an_edited_file_of_the_owner_or_a_lost_note_wakes_who_sleeps(tmp_path: Path) -> None:
    assert await watched(tmp_path, {"rowan": Looked(NOTHING)}, 3, lost=True) == ["rowan"]
    (tmp_path / "HEARTBEAT.md").write_text("Look after the roof.")
    assert await watched(tmp_path, {"rowan": Looked(NOTHING)}, 3) == ["rowan"]


async def test_a_service_that_asks_for_a_pause_gets_it(tmp_path: Path) -> None:
    limited = Looked(Err("too fast", "transient", status=429, retry_after=300))
    assert await watched(tmp_path, {"rowan": limited}, 330) == []
    assert limited.looks == 1


@pytest.mark.parametrize(
    ("unread_s", "answered_s", "is_alone", "blind"),
    [
        (None, 0.0, True, False),
        (100.0, 0.0, True, True),
        (100.0, 0.0, False, False),  # no look is answered: the service is at fault
        (100.0, 200.0, False, True),
        (101.0, 200.0, False, False),
    ],
)
def test_who_alone_cannot_be_read_is_woken(
    unread_s: float | None, answered_s: float, *, is_alone: bool, blind: bool
) -> None:
    assert is_blind(unread_s, 100.0 + BLIND_S, answered_s, is_alone=is_alone) is blind


def account(root: Path, name: str, **settings: str) -> tuple[Home, Settings]:
    (root / name).mkdir(exist_ok=True)
    return Home(root, root / name), settings_of({"agent_bluesky_password": f"of {name}", **settings})[0]


async def test_a_soul_can_speak_for_itself_only(tmp_path: Path) -> None:
    async def wake(_: str) -> bool:
        return True

    watcher = Watcher(lambda name: account(tmp_path, name) if name in {"rowan", "wren"} else None, wake, FakeClock())
    transport = httpx.ASGITransport(watcher.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://watcher.test") as client:

        async def asked(name: str, password: str, method: str = "DELETE") -> int:
            headers = {"Authorization": f"Bearer {watch_token(password)}"}
            body = {"github": ["/repos/../user"]}
            answer = await client.request(method, "/sleepers", params={"name": name}, json=body, headers=headers)
            return answer.status_code

        assert await asked("rowan", "of rowan") == httpx.codes.NO_CONTENT
        assert await asked("wren", "of rowan") == httpx.codes.UNAUTHORIZED
        assert await asked("nobody", "") == httpx.codes.UNAUTHORIZED
        assert await asked("rowan", "of rowan", "POST") == httpx.codes.BAD_REQUEST
        assert await asked("rowan", "of rowan", "PUT") == httpx.codes.BAD_REQUEST


async def test_a_watcher_that_starts_goes_on_with_the_notes_and_wakes_whom_it_must(
    running_town: RunningTown, tmp_path: Path
) -> None:
    clock, called, held = SystemClock(), list[str](), list[str]()
    names = ("asleep", "edited", "late", "mentioned", "unknown")
    for name in names:
        running_town.account(name)

    def load(name: str) -> tuple[Home, Settings]:
        given = {"agent_bluesky_username": f"{name}.test", "atproto_service_url": running_town.atproto_url}
        home, settings = account(tmp_path, name, **given, agent_bluesky_password=PASSWORD)
        return Home(tmp_path / name, home.memory), settings

    async def wake(name: str) -> bool:
        called.append(name)
        return True

    async def note_held(name: str) -> None:
        held.append(name)

    first = Watcher(load, wake, clock, note_held)
    async with serve(first.app()) as url:
        for name in names[:4]:
            asleep = SleepWatch(url, name, watch_token(PASSWORD))
            assert await asleep.begin({"github": []}) == Ok(None)
            ends = clock.now() + (timedelta() if name == "late" else timedelta(hours=20))
            note = SleepNote(name, running_town.account(name), iso(clock.now()), iso(ends), {"bluesky": 0.01})
            assert await asleep.hold(asdict(note)) == Ok(None)
    await first.aclose()
    assert sorted(held) == sorted(names[:4])
    (tmp_path / "edited" / "HEARTBEAT.md").write_text("Look after the roof.")
    running_town.network.post_as(running_town.account("kit"), "Morning @mentioned.test, tin or slate?")

    second = Watcher(load, wake, clock)
    await second.resume(names, names)
    assert not called
    watching = asyncio.create_task(second.watch())
    await until(lambda: len(called) == 4, what="all others")
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await second.aclose()
    assert sorted(called) == ["edited", "late", "mentioned", "unknown"]
    assert [*second.sleepers] == ["asleep"]


class Engine:
    """A cluster that takes a while to answer `sleep`; `mode` is what it accepted last for a SOUL."""

    def __init__(self) -> None:
        self.mode = "Running"
        self.told: list[str] = []
        self.answers = asyncio.Event()

    async def sleep(self, name: str) -> bool:
        self.told.append("sleep asked")
        await self.answers.wait()
        self.mode = "Suspended"
        self.told.append("Suspended")
        return True

    async def wake(self, name: str) -> bool:
        self.told.append("wake asked")
        self.mode = "Running"
        return True


async def handing_over(town: RunningTown, folder: Path, engine: Engine, clock: SystemClock) -> tuple[Watcher, str]:
    town.account("rowan")
    given = {"agent_bluesky_username": "rowan.test", "atproto_service_url": town.atproto_url}

    def load(name: str) -> tuple[Home, Settings]:
        return account(folder, name, **given, agent_bluesky_password=PASSWORD)

    return Watcher(load, engine.wake, clock, engine.sleep), iso(clock.now() + timedelta(hours=20))


async def test_what_comes_while_the_cluster_suspends_wakes_it_afterwards(
    running_town: RunningTown, tmp_path: Path
) -> None:
    engine, clock = Engine(), SystemClock()
    watcher, wake_at = await handing_over(running_town, tmp_path, engine, clock)
    async with serve(watcher.app()) as url:
        asleep = SleepWatch(url, "rowan", watch_token(PASSWORD))
        await asleep.begin({"github": []})
        note = SleepNote("rowan", running_town.account("rowan"), iso(clock.now()), wake_at, {"bluesky": 0.01})
        watching = asyncio.create_task(watcher.watch())
        holding = asyncio.create_task(asleep.hold(asdict(note)))
        await until(lambda: bool(engine.told), what="the suspension")
        before = watcher.sleepers["rowan"].call_s
        running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, tin or slate?")
        await until(lambda: watcher.sleepers["rowan"].call_s != before, what="the look that finds it")
        engine.answers.set()
        await holding
        await until(lambda: engine.told == ["sleep asked", "Suspended", "wake asked"], what="a wake after it")
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    await watcher.aclose()


async def test_who_takes_back_that_it_sleeps_while_the_cluster_suspends_it_runs_in_the_end(
    running_town: RunningTown, tmp_path: Path
) -> None:
    engine, clock = Engine(), SystemClock()
    watcher, wake_at = await handing_over(running_town, tmp_path, engine, clock)
    async with serve(watcher.app()) as url:
        asleep = SleepWatch(url, "rowan", watch_token(PASSWORD))
        await asleep.begin({"github": []})
        note = SleepNote("rowan", running_town.account("rowan"), iso(clock.now()), wake_at, {"bluesky": 45.0})
        assert await asleep.hold(asdict(note)) == Ok(None)
        await until(lambda: bool(engine.told), what="the suspension")
        watching = asyncio.create_task(watcher.watch())
        assert await asleep.release() == Ok(None)
        engine.answers.set()
        await until(lambda: engine.told == ["sleep asked", "Suspended", "wake asked"], what="a wake after it")
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    await watcher.aclose()


async def test_who_took_back_that_it_sleeps_during_a_slow_look_has_no_note(
    running_town: RunningTown, tmp_path: Path
) -> None:
    clock = SystemClock()
    watcher, wake_at = await handing_over(running_town, tmp_path, Engine(), clock)
    async with serve(watcher.app()) as url:
        asleep = SleepWatch(url, "rowan", watch_token(PASSWORD))
        await asleep.begin({"github": []})
        slow = Looked(None)
        watcher.sleepers["rowan"].sources["bluesky"].newest = slow
        note = SleepNote("rowan", running_town.account("rowan"), iso(clock.now()), wake_at, {"bluesky": 45.0})
        holding = asyncio.create_task(asleep.hold(asdict(note)))
        await until(lambda: slow.looks == 1, what="the look")
        await asleep.release()
        await asleep.begin({"github": []})
        slow.found = NOTHING
        slow.answers.set()
        assert isinstance(await holding, Err)
        assert not is_noted(Home(tmp_path, tmp_path / "rowan").memory)
    await watcher.aclose()


async def test_who_has_another_account_than_its_note_says_may_not_sleep_and_is_woken(
    running_town: RunningTown, tmp_path: Path
) -> None:
    """The handle in its settings went to somebody else, whose mentions would be taken for its own."""
    engine, clock = Engine(), SystemClock()
    watcher, wake_at = await handing_over(running_town, tmp_path, engine, clock)
    async with serve(watcher.app()) as url:
        asleep = SleepWatch(url, "rowan", watch_token(PASSWORD))
        note = SleepNote("rowan", "did:plc:of-wren", iso(clock.now()), wake_at, {"bluesky": 0.01})
        await asleep.begin({"github": []})
        refused = await asleep.hold(asdict(note))
        assert isinstance(refused, Err)
        assert "another" in refused.error
    write_note(tmp_path / "rowan", replace(note, seen={"bluesky": {"notifications": "none"}}))
    await watcher.aclose()
    again = Watcher(watcher.load, engine.wake, clock)
    await again.resume(["rowan"], [])
    watching = asyncio.create_task(again.watch())
    await until(lambda: engine.told == ["wake asked"], what="a start")
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await again.aclose()


async def watch_for(watcher: Watcher, clock: FakeClock, seconds: int) -> BaseException | None:
    watching = asyncio.create_task(watcher.watch())
    for _ in range(seconds):
        await asyncio.sleep(0)
        await clock.advance(1)
    if not watching.done():
        watching.cancel()
    with suppress(asyncio.CancelledError):
        try:
            await watching
        except Exception as error:
            return error
    return None


def put(watcher: Watcher, folder: Path, name: str, looked: Looked, hours: float = 20) -> Sleeper:
    clock = watcher.clock
    (folder / name).mkdir(exist_ok=True)
    home = Home(folder / name, folder / name)
    note = SleepNote(name, f"did:plc:{name}", iso(clock.now()), iso(clock.now() + timedelta(hours=hours)))
    write_note(home.memory, note)
    one = Sleeper(name, home, {"bluesky": Source(looked, clock.monotonic(), 45.0)}, note, edited=(0, 0, 0))
    watcher.sleepers[name] = one
    return one


async def test_who_may_sleep_and_whose_note_is_of_no_use_is_woken_until_that_is_done(tmp_path: Path) -> None:
    clock, tries = FakeClock(), list[str]()

    def load(name: str) -> tuple[Home, Settings]:
        if name == "unreadable":
            raise ConfigError("The settings of unreadable cannot be read: .env, line 3")
        return account(tmp_path, name)

    async def wake(name: str) -> bool:
        tries.append(name)
        return tries.count(name) > 1  # the cluster's API was not available yet

    names = ["none", "damaged", "another", "unreadable", "awake"]
    for name in names:
        account(tmp_path, name)
    (tmp_path / "damaged" / "sleep.json").write_text('{"name": "rowan", "did": "did:plc:ro')
    note = SleepNote("wren", "did:plc:wren", iso(clock.now()), iso(clock.now() + timedelta(hours=20)))
    write_note(tmp_path / "another", replace(note, seen={"bluesky": {"notifications": "none"}}))
    watcher = Watcher(load, wake, clock)
    await watcher.resume(names, names[:4])
    assert await watch_for(watcher, clock, 60) is None
    assert sorted(tries) == sorted(names[:4] * 2)
    assert not watcher.sleepers


async def test_where_the_dollars_of_the_day_are_used_time_alone_wakes_nobody_and_all_else_does(tmp_path: Path) -> None:
    clock, called, told = FakeClock(), list[str](), list[tuple[str, float]]()

    async def wake(name: str) -> bool:
        called.append(name)
        return True

    async def tell(name: str, figures: Figures) -> None:
        told.append((name, figures.usd))

    day_ends, hour = iso(clock.now() + timedelta(hours=6)), timedelta(hours=1)
    watcher = Watcher(lambda name: account(tmp_path, name), wake, clock, told=tell, budget_usd=1.0)
    for name, looked, promised in (
        ("mentioned", CAME, ""),
        ("thinker", NOTHING, ""),
        ("promised", NOTHING, iso(clock.now() + hour)),
    ):
        one = put(watcher, tmp_path, name, Looked(looked), hours=1)
        assert one.note
        one.note = replace(one.note, promised_at=promised)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(watcher.app()), base_url="http://watcher.test"
    ) as client:
        (tmp_path / "awake").mkdir()
        for usd in (0.75, 1.25):  # for a SOUL that is awake
            answer = await client.patch(
                "/sleepers",
                params={"name": "awake"},
                headers={"Authorization": f"Bearer {watch_token('of awake')}"},
                json=asdict(Figures(usd, day_ends)),
            )
            assert answer.status_code == (SPENT if usd > 1 else httpx.codes.NO_CONTENT), "it has no thought of its own"
    assert told == [("awake", 0.75)], "the cluster is not told each minute"
    watching = asyncio.create_task(watcher.watch())

    async def passes(time: timedelta) -> None:
        for _ in range(int(time.total_seconds() // 60)):
            await asyncio.sleep(0)
            await clock.advance(60)

    await passes(2 * hour)
    assert sorted(called) == ["mentioned", "promised"]
    await passes(5 * hour)
    assert sorted(called) == ["mentioned", "promised", "thinker"], "a new day has begun"
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_own_times_that_come_together_wake_one_after_the_other_and_keep_nobody_else_waiting(
    tmp_path: Path,
) -> None:
    clock, called = FakeClock(), list[str]()

    async def wake(name: str) -> bool:
        called.append(name)
        return True

    watcher = Watcher(lambda _: None, wake, clock)
    for place in range(10):
        put(watcher, tmp_path, f"thinker{place}", Looked(NOTHING), hours=1 - place / 1000)
    one = put(watcher, tmp_path, "promised", Looked(NOTHING), hours=1)
    assert one.note
    one.note = replace(one.note, promised_at=one.note.wake_at)
    await clock.advance(3600)
    await watch_for(watcher, clock, 9)
    assert "promised" in called, "others wait for it"
    own = [name for name in called if name != "promised"]
    assert own == [f"thinker{place}" for place in range(9, 9 - len(own), -1)], "who waits longest comes first"
    assert 9 / OWN_TIMES_S - 1 <= len(own) <= 9 / OWN_TIMES_S + 1
    await watch_for(watcher, clock, 30)
    assert len(called) == 11


def test_nobody_sleeps_longer_than_a_day_and_two_hours_for_dollars() -> None:
    now = FakeClock().now()
    note = SleepNote("rowan", "did:plc:rowan", iso(now), iso(now + timedelta(hours=1)))
    assert is_over(note, now + timedelta(hours=2))
    assert not is_over(note, now + timedelta(hours=25), may_wait=True)
    assert is_over(note, now + timedelta(hours=27), may_wait=True)


class Faulty(Looked):
    """A source whose look ends in an error of the program."""

    async def came(self) -> ApiResult[bool]:
        raise KeyError("an answer that nobody thought of")


async def test_a_sick_home_or_a_faulty_look_costs_no_other_its_watcher(tmp_path: Path) -> None:
    clock, called = FakeClock(), list[str]()

    async def wake(name: str) -> bool:
        called.append(name)
        return True

    watcher = Watcher(lambda _: None, wake, clock)
    sick = put(watcher, tmp_path, "sick", Looked(NOTHING))
    put(watcher, tmp_path, "odd", Looked(NOTHING)).note = SleepNote(
        "odd", "did:plc:odd", "9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59-23:59"
    )
    put(watcher, tmp_path, "faulty", Faulty(NOTHING))
    put(watcher, tmp_path, "well", Looked(CAME))
    assert sick.home
    (sick.home.memory / "sleep.json").unlink()
    (sick.home.memory / "sleep.json").mkdir()
    (sick.home.memory / "WAKE").touch()
    assert await watch_for(watcher, clock, 60) is None
    assert sorted(called) == ["faulty", "odd", "sick", "well"]


async def test_many_that_are_due_at_once_are_not_all_started_at_once(tmp_path: Path) -> None:
    """`--wake` starts a process of about 50 MiB; the watcher's pod may have 512 MiB."""
    clock, now, most = FakeClock(), 0, 0

    async def wake(_: str) -> bool:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await clock.sleep(2)
        now -= 1
        return True

    watcher = Watcher(lambda _: None, wake, clock)
    for number in range(40):
        put(watcher, tmp_path, f"soul-{number}", Looked(CAME))
    await watch_for(watcher, clock, 120)
    assert most == 4
    assert not watcher.sleepers, "all are woken in the end"


async def test_a_look_that_never_ends_counts_as_one_that_failed(tmp_path: Path) -> None:
    """A server that sends one byte every ten seconds never exceeds the time limit of a read."""
    assert "slow" in await watched(tmp_path, {"slow": Looked(None), "well": Looked(NOTHING)}, int(BLIND_S) + 200)
